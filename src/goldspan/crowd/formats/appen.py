"""Appen (Figure Eight, CrowdFlower): full and aggregated reports, CSV or JSON; read only.

A full report has a row per judgement: `_unit_id` is the item, `_worker_id` the annotator, `_trust`
a fact of the annotator. Judgements that are `_tainted` are not answers, and counted. `X_gold` has
the right answers of the question `X` for the test questions (`_golden`); a cell with several lines
has several answers. An aggregated report (`X:confidence`) has a row per item, and is gold only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from goldspan.crowd.formats.assignments import (
    Assignment,
    cell,
    questions,
    read_assignments,
    table_rows,
    times,
    value_of,
)
from goldspan.crowd.formats.json_records import Record, collect, first_objects, read_records
from goldspan.crowd.formats.span_crowd import SpanCrowd
from goldspan.crowd.grid import header_names
from goldspan.crowd.guessing import Column, Table
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source
from goldspan.errors import Fault

_UNIT, _WORKER, _GOLD = "_unit_id", "_worker_id", "_gold"
_OTHERS = {"_golden", "_trusted_judgments", "_unit_state", "_trust", "_tainted"}
_FACTS = {"worker_id", "trust", "tainted", "golden", "started_at", "created_at"}
_BESIDE = (_GOLD, "_gold_reason", ":confidence")
"""Ends of the names of columns that say something of another column."""


def sniff(source: Source) -> bool:
    """Return whether the columns are those of a report."""
    if source.is_folder or source.is_parquet:
        return False
    units = (one.get("results") for one in first_objects(source, limit=3))
    is_json = any(isinstance(one, dict) and "judgments" in one for one in units)
    return is_json or is_header(header_names(source))


def is_header(names: Sequence[str]) -> bool:
    """Return whether these are the columns of a report."""
    found = {_plain(name) for name in names}
    return _UNIT in found and bool(found & {_WORKER, *_OTHERS})


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read the judgements of a full report, or an aggregated one as gold."""
    crowd, found, facts = _assignments(source, options)
    made = read_assignments(crowd, found, in_cells=True)
    return replace(made, worker_facts={**made.worker_facts, **facts})


def layers(source: Source, options: ReadOptions) -> list[str]:
    """Return the questions."""
    return questions(_assignments(source, options)[1])


def _assignments(
    source: Source, options: ReadOptions
) -> tuple[SpanCrowd, list[Assignment], dict[str, dict[str, str]]]:
    crowd = SpanCrowd(source, "appen", options)
    is_json = source.table is None and source.text.value.lstrip()[:1] in {"[", "{"}
    rows = [*_json_rows(source, crowd.faults)] if is_json else table_rows(source, options, ())
    header = list(dict.fromkeys(name for row in rows for name in row.value))
    if any(name.startswith("X_") for name in header):
        header = [*map(_plain, header)]
        rows = [row._replace(value={_plain(k): v for k, v in row.value.items()}) for row in rows]
    by_role = {"item": _UNIT, "worker": _WORKER if _WORKER in header else "", **options.columns}
    if header and by_role["item"] not in header:
        raise rows[0].error(f"no column {by_role['item']}: is this a report of Appen?", "column")
    columns = {name: Column(name, [row.value.get(name, "") for row in rows]) for name in header}
    unit = columns.get(by_role["item"], Column("", []))
    own = [one for name, one in columns.items() if name[:1] != "_" and not name.endswith(_BESIDE)]
    asked = _questions(own, header, unit, options.columns.get("label", ""))
    about = [one for one in own if one.name not in asked and one.values and not _varies(one, unit)]
    shown = Table(tuple(about)).text
    text = by_role.get("text") or (shown.name if shown else "")
    facts: dict[str, dict[str, str]] = {}
    found = []
    for row in rows:
        with collect(crowd.faults):
            who = cell(row, by_role["worker"]) if by_role["worker"] else ""
            record = row.at(item=cell(row, by_role["item"]), worker=who)
            if who and row.value.get("_trust", "").strip():
                facts[who] = {"trust": row.value["_trust"].strip()}
            answers, known = (_answers(row, asked, end) for end in ("", _GOLD))
            is_known = row.value.get("_golden", "true").strip().lower() != "false"
            gold = known if is_known else {}
            if not who:  # an aggregated answer is one of those that are right
                gold = answers | {name: right for name, right in gold.items() if len(right) == 1}
            one = Assignment(
                record,
                record.required(record.text(text), text) if text else None,
                answers if who else {},
                gold,
                times(crowd, record, "_started_at", "_created_at"),
                {one.name: row.value.get(one.name, "") for one in about if one.name != text},
                "tainted" if row.value.get("_tainted", "").strip().lower() == "true" else "",
            )
            found.append(one)
    return crowd, found, facts


def _json_rows(source: Source, faults: list[Fault]) -> Iterator[Record]:
    """Yield the judgements of a report in JSON, which has a unit per line, as rows of a table."""
    for unit in read_records(source, faults):
        with collect(faults):
            about = unit.inner(unit.find("data") or {}, "data").value
            for one in unit.inner(unit.find("results") or {}, "results").inners("judgments"):
                given = {f"_{name}": value for name, value in one.value.items() if name in _FACTS}
                answers = one.inner(one.find("data") or {}, "data").value
                row = {**about, **answers, **given, _UNIT: unit.find("id")}
                yield unit._replace(value={name: _words(value) for name, value in row.items()})


def _words(value: Any) -> str:
    """Return a value as a table has it, several answers on lines of their own."""
    listed = value if isinstance(value, list) else [value]
    return "\n".join(str(one) for one in listed if one is not None)


def _plain(name: str) -> str:
    """Return a name as the report has it; R puts an X before names that begin with a dash."""
    return name[1:] if name.startswith("X_") else name


def _questions(own: list[Column], header: list[str], unit: Column, label: str) -> list[str]:
    """Return what was asked: columns with gold or confidences, else those that differ in a unit."""
    if label:
        return [label]
    for end in (":confidence", _GOLD):
        if asked := [one.name for one in own if one.name + end in header and one.values]:
            return asked
    return [one.name for one in own if _varies(one, unit)]


def _varies(one: Column, unit: Column) -> bool:
    """Whether a column has several values for one item, as answers have."""
    first: dict[str, str] = {}
    pairs = zip(one.cells, unit.cells, strict=True)
    return any(first.setdefault(key, value) != value for value, key in pairs)


def _answers(row: Record, asked: list[str], end: str) -> dict[str, Any]:
    """Return the answers in cells, one a line; spans are a list in JSON."""
    found: dict[str, Any] = {}
    for name in asked:
        word = row.value.get(name + end, "").strip()
        if word:
            lines = [line.strip() for line in word.split("\n") if line.strip()]
            found[name] = value_of(word) if word[:2] in {"[{", "[]"} else lines
    return found
