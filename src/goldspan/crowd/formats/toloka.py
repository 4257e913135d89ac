"""Toloka: assignments, aggregated answers and tasks as TSV (or saved as CSV); read only.

Columns are called by what they hold: INPUT:… what was shown, OUTPUT:… what was answered, GOLDEN:…
the known answers of control tasks, ASSIGNMENT:… who answered, when and for how much. An assignment
is a page of tasks: its reward is divided among its rows. Without ASSIGNMENT columns the answers are
aggregated ones (CONFIDENCE:…), which are read as gold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from goldspan.crowd.formats.assignments import (
    Assignment,
    cell,
    questions,
    read_assignments,
    reward,
    table_rows,
    times,
    value_of,
)
from goldspan.crowd.formats.json_records import Record, collect
from goldspan.crowd.formats.span_crowd import SpanCrowd
from goldspan.crowd.grid import header_names
from goldspan.crowd.guessing import Column, Table
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source

_INPUT, _OUTPUT, _GOLDEN, _ABOUT = "INPUT:", "OUTPUT:", "GOLDEN:", "ASSIGNMENT:"
_WORKER, _TASK, _PAGE = f"{_ABOUT}worker_id", f"{_ABOUT}task_id", f"{_ABOUT}assignment_id"
_NOT_GIVEN = {"rejected", "skipped", "expired", "active"}
"""States of assignments that are no answers."""


def sniff(source: Source) -> bool:
    """Return whether the columns are called as Toloka calls them."""
    return not (source.is_folder or source.is_parquet) and is_header(header_names(source))


def is_header(names: Sequence[str]) -> bool:
    """Return whether these are names of Toloka's columns."""
    kinds = {name.partition(":")[0] + ":" for name in names if ":" in name}
    return _INPUT in kinds and bool(kinds & {_OUTPUT, _GOLDEN})


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read assignments, or aggregated answers as gold."""
    return read_assignments(*_assignments(source, options), _OUTPUT, in_cells=True)


def layers(source: Source, options: ReadOptions) -> list[str]:
    """Return the questions."""
    return questions(_assignments(source, options)[1])


def _assignments(source: Source, options: ReadOptions) -> tuple[SpanCrowd, list[Assignment]]:
    crowd = SpanCrowd(source, "toloka", options)
    rows = table_rows(source, options, ())
    header = list(rows[0].value) if rows else []
    has_workers = any(name.startswith(_ABOUT) for name in header) or "worker" in options.columns
    inputs = [name for name in header if name.startswith(_INPUT)]
    worker = options.columns.get("worker", _WORKER) if has_workers else ""
    item = _named(options, "item", header) or (_TASK if _TASK in header else "")
    text = _named(options, "text", header) or _text_of(rows, inputs)
    n_rows = Counter(row.value.get(_PAGE, "") for row in rows)
    found = []
    for row in rows:
        with collect(crowd.faults):
            who = cell(row, worker) if worker else ""
            what = cell(row, item) if item else _shown(row, inputs)
            record = row.at(item=what, worker=who)
            page = row.value.get(_PAGE, "")
            facts = times(crowd, record, f"{_ABOUT}started", f"{_ABOUT}submitted")
            paid = reward(record, f"{_ABOUT}reward", n_rows[page] if page else 1)
            status = row.value.get(f"{_ABOUT}status", "").strip().lower()
            answers, gold = (_cells(row.value, kind) for kind in (_OUTPUT, _GOLDEN))
            others = _cells({name: row.value[name] for name in inputs if name != text}, _INPUT)
            one = Assignment(
                record,
                record.required(record.text(text), text) if text else None,
                answers if worker else {},
                gold if worker else answers | gold,
                facts._replace(cost=paid),
                {name: str(value) for name, value in others.items()},
                status if status in _NOT_GIVEN else "",
            )
            found.append(one)
    return crowd, found


def _named(options: ReadOptions, role: str, header: list[str]) -> str:
    """Return the column that the user named for a role, perhaps without INPUT:."""
    named = options.columns.get(role, "")
    return named if named in header else named and f"{_INPUT}{named.removeprefix(_INPUT)}"


def _text_of(rows: list[Record], inputs: list[str]) -> str:
    """Return the column of what was shown: by its name, the only one, or the one of texts."""
    columns = [
        Column(name.removeprefix(_INPUT), [row.value.get(name, "") for row in rows])
        for name in inputs
    ]
    found = Table(tuple(columns)).text
    name = found.name if found else columns[0].name if len(columns) == 1 else ""
    return name and f"{_INPUT}{name}"


def _shown(row: Record, inputs: list[str]) -> str:
    """Name an item by what was shown, in files without the ids of tasks."""
    return " | ".join(filter(None, (row.value.get(name, "").strip() for name in inputs)))


def _cells(row: Mapping[str, str], kind: str) -> dict[str, Any]:
    """Return the cells of one kind of columns that are not empty, by the names of the fields."""
    return {
        name.removeprefix(kind): value_of(word)
        for name, word in row.items()
        if name.startswith(kind) and word.strip()
    }
