"""Writing wide tables, and what they cannot hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goldspan.crowd.atomic import write_text
from goldspan.crowd.formats.wide_columns import Columns, find_columns
from goldspan.crowd.grid import Grid, cell_text, lost_cells
from goldspan.crowd.labels import lost_labels
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions


def write(crowd: Crowd, path: Path) -> None:
    """Write a wide table with columns doc, sent (or item), attributes, token, gold, workers."""
    write_text(path, _lines(crowd))


def cannot_hold(crowd: Crowd) -> list[str]:
    """Name what a wide table cannot hold of this crowd."""
    answers = crowd.latest
    times = (crowd.answers.started, crowd.answers.submitted, crowd.answers.cost)
    groups = [] if crowd.groups is None else crowd.groups.to_pylist()
    tokens = pc.unique(crowd.tokens.flatten()).to_pylist()
    names = [*crowd.item_ids.to_pylist(), *crowd.worker_ids.to_pylist(), *filter(None, groups)]
    losses = {
        "repeated answers (the one that counts is written)": crowd.answers.attempt.any(),
        "times and costs of answers": any(column is not None for column in times),
        "the text between tokens": crowd.texts is not None,
        "answers in which every token was skipped": (
            not np.logical_or.reduceat(answers.codes >= 0, answers.offset[:-1]).all()
        ),
        "items without a document (its name becomes empty)": None in groups,
        "attributes that are not one text for every item or every token": (
            _attributes_shown(crowd) != _attributes_of(crowd)
        ),
        "names of workers or attributes that the header has twice, or reads as another column": (
            not _header_holds(crowd)
        ),
        "empty tokens (they are refused when they are read)": "" in tokens,
    }
    lost = [text for text, is_lost in losses.items() if is_lost]
    lost += lost_cells([*names, *tokens, *crowd.tagset.tags])
    return lost + lost_labels(replace(crowd, answers=answers))


def _lines(crowd: Crowd) -> Iterator[str]:
    """One block of lines per item."""
    words = np.array([*map(cell_text, crowd.tagset.tags), "?"], object)
    _, values = _id_columns(crowd)
    extra = _attributes_of(crowd).values()
    yield "\t".join(map(cell_text, _header(crowd))) + "\n"
    answers, tokens = crowd.latest, crowd.tokens_list
    for n, name in enumerate(values):
        size = len(tokens[n])
        columns: list[list[str]] = [[cell_text(part)] * size for part in name]
        columns += [_cells(column[n], size) for column in extra]
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
    return (*head, *_attributes_of(crowd), "token", *gold, *workers)


def _header_holds(crowd: Crowd) -> bool:
    """Whether every name of the header will be read as what it is."""
    header, (head, _) = _header(crowd), _id_columns(crowd)
    if len(set(header)) < len(header) or any(name.strip() != name for name in header):
        return False
    nothing = np.zeros(0, np.int64)
    found = find_columns(
        Grid("", header, pa.array([], pa.string()), nothing, nothing), ReadOptions()
    )
    token = header.index("token", len(head) + len(_attributes_of(crowd)))
    first = token + 1 + (crowd.gold is not None)
    item, doc, sent = (
        head.index(name) if name in head else None for name in ("item", "doc", "sent")
    )
    return found == Columns(
        token=token,
        gold=None if crowd.gold is None else token + 1,
        item=item,
        doc=doc,
        sent=sent,
        attributes=tuple(range(len(head), token)),
        workers=tuple(range(first, len(header))),
    )


def _attributes_of(crowd: Crowd) -> dict[str, list[Any]]:
    return {} if crowd.attributes is None else crowd.attributes.to_pydict()


def _attributes_shown(crowd: Crowd) -> dict[str, list[Any]]:
    """The attributes as they are read back: a text for every item, else one for every token."""
    sizes = np.diff(crowd.offsets).tolist()
    shown: dict[str, list[Any]] = {}
    for name, values in _attributes_of(crowd).items():
        cells = [_cells(value, size) for value, size in zip(values, sizes, strict=True)]
        one = all(len(set(row)) == 1 for row in cells)
        shown[name] = [row[0] for row in cells] if one else list(cells)
    return shown


def _cells(value: object, size: int) -> list[str]:
    """What the rows of an item show of an attribute."""
    if isinstance(value, list) and len(value) == size:
        return [_cell(one) for one in value]
    return [_cell(value)] * size


def _cell(value: object) -> str:
    return "" if value is None else cell_text(str(value))
