"""Writing wide tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from goldspan.crowd.atomic import write_text
from goldspan.crowd.formats.text_columns import (
    OFFSETS,
    TEXT,
    has_texts,
    json_text,
    texts_with_offsets,
)
from goldspan.crowd.grid import cell_text
from goldspan.crowd.model import Crowd


def write(crowd: Crowd, path: Path, *, text: bool = True) -> None:
    """Write a wide table with columns doc, sent (or item), attributes, token, gold, workers.

    Args:
        crowd: What to write.
        path: Where to.
        text: Whether to write columns text and offsets before the token, where texts are known.
    """
    write_text(path, _lines(crowd if text else replace(crowd, texts=None, token_start=None)))


def _lines(crowd: Crowd) -> Iterator[str]:
    """One block of lines per item."""
    words = np.array([*map(cell_text, crowd.tagset.tags), "?"], object)
    _, values = _id_columns(crowd)
    extra, shows = _attributes_of(crowd).values(), _shows_text(crowd)
    shown = texts_with_offsets(crowd) if shows else repeat((None, []), crowd.n_items)
    yield "\t".join(map(cell_text, _header(crowd))) + "\n"
    answers, tokens = crowd.latest, crowd.tokens_list
    for n, (name, (whole, offsets)) in enumerate(zip(values, shown, strict=True)):
        size = len(tokens[n])
        columns: list[list[str]] = [[cell_text(part)] * size for part in name]
        columns += [_cells(column[n], size) for column in extra]
        if shows:
            # On the first row alone: a long text would stand there as often as it has tokens.
            said = "" if whole is None else json_text(whole)
            columns += [[said, *[""] * (size - 1)], offsets]
        columns.append([cell_text(token) for token in tokens[n]])
        if crowd.gold is not None:
            columns.append(words[crowd.gold[crowd.offsets[n] : crowd.offsets[n + 1]]].tolist())
        given = {int(answers.worker[a]): int(answers.offset[a]) for a in crowd.by_item[n]}
        for worker in range(crowd.n_workers):
            start = given.get(worker)
            codes = slice(start, (start or 0) + size)
            columns.append(["?"] * size if start is None else words[answers.codes[codes]].tolist())
        rows = zip(*columns, strict=True)
        yield ("\n" if n else "") + "".join("\t".join(row) + "\n" for row in rows)


def _id_columns(crowd: Crowd) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The columns that name an item: doc and sent where the id is made of them."""
    ids = crowd.item_ids.to_pylist()
    if crowd.groups is None:
        return ("item",), [(name,) for name in ids]
    groups = [group or "" for group in crowd.groups.to_pylist()]
    both: list[tuple[str, ...]] = list(zip(groups, ids, strict=True))
    if all(name.startswith(f"{doc}-") for doc, name in both):
        return ("doc", "sent"), [(doc, name[len(doc) + 1 :]) for doc, name in both]
    return ("doc", "item"), both


def _header(crowd: Crowd) -> tuple[str, ...]:
    gold = () if crowd.gold is None else ("gold",)
    head, workers = _id_columns(crowd)[0], crowd.worker_ids.to_pylist()
    text = (TEXT, OFFSETS) if _shows_text(crowd) else ()
    return (*head, *_attributes_of(crowd), *text, "token", *gold, *workers)


def _shows_text(crowd: Crowd) -> bool:
    """Whether there are texts to show, and no column has the name of theirs."""
    taken = {*_attributes_of(crowd), *crowd.worker_ids.to_pylist()}
    return has_texts(crowd) and not taken & {TEXT, OFFSETS}


def _attributes_of(crowd: Crowd) -> dict[str, list[Any]]:
    return {} if crowd.attributes is None else crowd.attributes.to_pydict()


def _cells(value: object, size: int) -> list[str]:
    """What the rows of an item show of an attribute."""
    if isinstance(value, list) and len(value) == size:
        return [_cell(one) for one in value]
    return [_cell(value)] * size


def _cell(value: object) -> str:
    return "" if value is None else cell_text(str(value))
