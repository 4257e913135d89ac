"""Writing long tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from goldspan.crowd.atomic import write_text
from goldspan.crowd.grid import cell_text
from goldspan.crowd.model import Crowd


def write(crowd: Crowd, path: Path) -> None:
    """Write a long CSV (TSV for `.tsv`): every answer's every token on a row."""
    mark = "\t" if path.suffixes[:1] == [".tsv"] or path.suffix == ".tsv" else ","
    write_text(path, _lines(crowd, mark))


def _lines(crowd: Crowd, mark: str) -> Iterator[str]:
    """One chunk of lines per answer, the answers in the order of their items."""
    import csv
    import io

    answers, sequences = crowd.answers, not crowd.is_classification
    tags = [*map(cell_text, crowd.tagset.tags), ""]
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
    }
    # TSV is never quoted, so that a token may be a quote.
    quotes: Any = {"quoting": csv.QUOTE_NONE, "quotechar": None} if mark == "\t" else {}
    buffer = io.StringIO()
    out = csv.writer(buffer, delimiter=mark, lineterminator="\n", **quotes)
    out.writerow([*(name for name, there in heads.items() if there), *times])
    ids, workers = _words(crowd.item_ids), _words(crowd.worker_ids)
    groups = _words(crowd.groups) if crowd.groups is not None else ids
    gold = np.full(crowd.n_tokens, -1, np.int16) if crowd.gold is None else crowd.gold
    for a in np.argsort(answers.item, kind="stable").tolist():
        n, start = int(answers.item[a]), int(answers.offset[a])
        extra = [int(getattr(answers, name)[a]) for name in times]
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
            }
            out.writerow([*(row[name] for name, there in heads.items() if there), *extra])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _words(values: pa.Array) -> list[str]:
    return [cell_text(word or "") for word in values.to_pylist()]
