"""Writing long tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from goldspan.crowd.atomic import write_text
from goldspan.crowd.cells import any_formula, guard, marked
from goldspan.crowd.formats.span_exports import known_texts
from goldspan.crowd.formats.text_columns import (
    OFFSETS,
    TEXT,
    has_texts,
    json_text,
    texts_with_offsets,
)
from goldspan.crowd.grid import cell_text
from goldspan.crowd.model import Crowd


def write(crowd: Crowd, path: Path, *, text: bool = True, raw_csv: bool = False) -> None:
    """Write a long CSV (TSV for `.tsv`): every answer's every token on a row.

    Args:
        crowd: What to write.
        path: Where to.
        text: Whether to write columns text and, for sequences, offsets, where texts are known.
        raw_csv: Whether cells of CSV that a spreadsheet may take for formulas stay as they are.
    """
    mark = "\t" if path.suffixes[:1] == [".tsv"] or path.suffix == ".tsv" else ","
    is_guarded = mark == "," and not raw_csv and _needs_guard(crowd)
    write_text(path, _lines(crowd, mark, text=text, is_guarded=is_guarded))


def _needs_guard(crowd: Crowd) -> bool:
    """Whether a cell could become a formula."""
    return any_formula(
        crowd.item_ids.to_pylist(),
        crowd.worker_ids.to_pylist(),
        [] if crowd.groups is None else crowd.groups.to_pylist(),
        crowd.tagset.tags,
        set(chain.from_iterable(crowd.tokens_list)),
        known_texts(crowd),
    )


def _lines(crowd: Crowd, mark: str, *, text: bool, is_guarded: bool) -> Iterator[str]:
    """One chunk of lines per answer, the answers in the order of their items."""
    import csv
    import io

    answers, sequences = crowd.answers, not crowd.is_classification
    tags, texts = [*map(cell_text, crowd.tagset.tags), ""], known_texts(crowd)
    times = [n for n in ("started", "submitted", "cost") if getattr(answers, n) is not None]
    heads = {
        "item": True,
        "doc": crowd.groups is not None,
        "worker": True,
        "position": sequences,
        "token": sequences,
        "label": True,
        "gold": crowd.gold is not None,
        "attempt": bool(answers.attempt.any()),
        OFFSETS: sequences and text and has_texts(crowd),
        TEXT: text and any(one is not None for one in texts),
    }
    # TSV is never quoted, so that a token may be a quote.
    quotes: Any = {"quoting": csv.QUOTE_NONE, "quotechar": None} if mark == "\t" else {}
    if mark != "\t" and any("\r" in one for one in texts if one):
        quotes["quoting"] = csv.QUOTE_ALL  # else one that stands alone is not
    buffer = io.StringIO()
    out = csv.writer(buffer, delimiter=mark, lineterminator="\n", **quotes)
    # The text comes last, so that people see the other columns.
    names = [name for name, there in heads.items() if there]
    first, last = [name for name in names if name != TEXT], [TEXT] if heads[TEXT] else []
    out.writerow([*first, *times, *last])
    if is_guarded:
        head = marked(buffer.getvalue())
        buffer.seek(0)
        buffer.truncate()
        buffer.write(head)
    shown = [cells for _, cells in texts_with_offsets(crowd)] if heads[OFFSETS] else []
    seen: set[int] = set()
    ids, workers = _words(crowd.item_ids), _words(crowd.worker_ids)
    groups = _words(crowd.groups) if crowd.groups is not None else ids
    gold = np.full(crowd.n_tokens, -1, np.int16) if crowd.gold is None else crowd.gold
    for a in np.argsort(answers.item, kind="stable").tolist():
        n, start = int(answers.item[a]), int(answers.offset[a])
        extra = [int(getattr(answers, name)[a]) for name in times]
        whole, places = texts[n], shown[n] if shown else []
        said = "" if whole is None else json_text(whole) if mark == "\t" else whole
        for place, token in enumerate(crowd.tokens_list[n]):
            row = {
                "item": ids[n],
                "doc": groups[n],
                "worker": workers[answers.worker[a]],
                "position": place,
                "token": cell_text(token),
                "label": tags[answers.codes[start + place]],
                "gold": tags[gold[crowd.offsets[n] + place]],
                "attempt": answers.attempt[a],
                OFFSETS: places[place] if places else "",
            }
            # A long text would stand there as often as the item has tokens and answers.
            row[TEXT] = said if not sequences or (n not in seen and not place) else ""
            cells = [*(row[name] for name in first), *extra, *(row[name] for name in last)]
            out.writerow([guard(cell) for cell in cells] if is_guarded else cells)
        seen.add(n)
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _words(values: pa.Array) -> list[str]:
    return [cell_text(word or "") for word in values.to_pylist()]
