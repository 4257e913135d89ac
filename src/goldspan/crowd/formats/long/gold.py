"""Long tables without workers: their labels are gold."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from goldspan.crowd.builder import CrowdBuilder
from goldspan.crowd.formats.long.rows import Rows, integers, refuse_empty
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.errors import Fault


def read_gold(rows: Rows, options: ReadOptions, notes: tuple[str, ...]) -> Crowd:
    """Read a table of known labels as items with gold and no answers."""
    has_tokens, has_places = "token" in rows.columns, "position" in rows.columns
    refuse_empty(rows, ("item", *(["token"] if has_tokens else [])))
    builder = CrowdBuilder(options, rows.name, "long")
    builder.notes += [*notes, "no worker column: the labels are read as gold"]
    columns = {role: column.to_pylist() for role, column in rows.columns.items()}
    position = integers(rows, "position") if has_places else np.zeros(len(rows), np.int64)
    items: dict[str, list[int]] = {name: [] for name in columns["item"]}
    for i in np.argsort(position, kind="stable").tolist():
        items[columns["item"][i]].append(i)
    for name, places in items.items():
        builder.faults += _gold_faults(rows, name, position[places].tolist(), places)
        tokens = [columns["token"][i] for i in places] if has_tokens else [name] * len(places)
        if has_places and not has_tokens:
            tokens = [str(n) for n in range(len(places))]
        labels = [columns["label"][i] for i in places]
        builder.add_item(
            name,
            tokens,
            gold=[label if options.rename(label) is not None else None for label in labels],
            group=columns["doc"][places[0]] if "doc" in columns else None,
            text=(columns["text"][places[0]] or None) if "text" in columns else None,
            line=int(rows.line[places[0]]),
        )
    return builder.build(single=not has_tokens and not has_places)


def _gold_faults(rows: Rows, name: str, position: list[int], places: list[int]) -> Iterator[Fault]:
    """What is wrong with the rows of one item in a table of gold."""
    if "position" in rows.columns:
        for n, (at, i) in enumerate(zip(position, places, strict=True)):
            if at - position[0] != n or position[0] > 1:
                message = f"position {at}: they must run from 0 or 1 without gaps or repeats"
                yield Fault(message, rows.name, int(rows.line[i]), name, kind="position")
                return
    elif "token" not in rows.columns and len(places) > 1:
        message = (
            "the item has several labels: if these are answers, name the worker column "
            "with columns={'worker': …} (--columns worker=NAME)"
        )
        yield Fault(message, rows.name, int(rows.line[places[1]]), name, kind="duplicate-item")
