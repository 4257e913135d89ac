"""What `aggregate` writes of several layers: an item per line, with the labels of every question.

`{"item": "1", "text": "Ann sang.", "layers": {"spans": [{"type": "PER", "start": 0, "end": 3}],
"mood": ["glad"]}}`; a question that nobody answered is null. The labels are read as gold, as those
of span JSONL.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from goldspan.crowd.formats.json_records import (
    Record,
    collect,
    first_objects,
    one_of,
    only_one,
    read_records,
    shown,
)
from goldspan.crowd.labels import with_notes
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.registry import get_format
from goldspan.crowd.source import Source
from goldspan.errors import Fault, FormatError

HEAD = ("item", "doc", "text", "tokens", "token_start", "unit")
"""What a line says of its item."""


def sniff(source: Source) -> bool:
    """Return whether there are items with labels of layers."""
    found = [] if source.is_folder else first_objects(source)
    return any("item" in one and isinstance(one.get("layers"), dict) for one in found)


def layers(source: Source, options: ReadOptions) -> list[str]:  # noqa: ARG001
    """Return the questions."""
    return _names(read_records(source, []))


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read the labels of one question as gold, as span JSONL with this question alone."""
    faults: list[Fault] = []
    records = list(read_records(source, faults))
    names, wanted = _names(records), options.columns.get("label")
    if wanted is not None and records:
        only_one(records[0], names, f"no layer {wanted!r}", wanted)
    name = wanted or next(iter(names), "")
    known = []
    for record in records:
        with collect(faults):
            found = record.find("layers")
            known.append(None if found is None else record.inner(found, "layers").find(name))
    # An empty list is no span, or of labels none
    has_labels = any(one and _are_labels(one) for one in known)
    for record, one in zip(records, known, strict=False) if has_labels else ():
        if one is not None and not _are_labels(one):
            faults.append(record.fault(f"expected a list of labels, found {shown(one)}", "labels"))
    if faults:
        raise FormatError(faults)
    are_sets = has_labels and any(one is not None and len(one) != 1 for one in known)
    kind = "labels" if are_sets else "label" if has_labels else "spans"
    rows = (_row(*row, kind) for row in zip(records, known, strict=True))
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    columns = {role: column for role, column in options.columns.items() if role != "label"}
    plain = replace(source, data=data, text_encoding="utf-8")
    crowd = get_format("spans").read(plain, replace(options, columns=columns))
    crowd = replace(crowd, import_report=replace(crowd.import_report, format="layers"))
    return with_notes(crowd, [one_of(names)] if wanted is None and len(names) > 1 else [])


def _row(record: Record, known: Any, kind: str) -> dict[str, Any]:
    row = {key: record.value[key] for key in HEAD if key in record.value}
    if kind != "spans" and "text" in row:  # a label is one of the whole text
        row = {key: row[key] for key in ("item", "doc", "text") if key in row}
        row["tokens"] = [row["text"]]
    if known is None or kind == "spans":
        return row | {"gold": known}
    return row | {"gold": {kind: known[0] if kind == "label" else known}}


def _are_labels(known: Any) -> bool:
    return isinstance(known, list) and all(isinstance(one, str) for one in known)


def _names(records: Iterable[Record]) -> list[str]:
    found = (record.find("layers") for record in records)
    return list(dict.fromkeys(name for one in found if isinstance(one, dict) for name in one))
