"""The rows of a long table: which column is what, and where every row stands."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.crowd.formats.long.columns import as_strings, numbered, numbers
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.repeats import MAX_ATTEMPT
from goldspan.errors import Fault, FormatError

MAX_POSITION = 100_000
"""Largest position of a token that is still believed."""
ROLES: dict[str, tuple[str, ...]] = {
    "item": ("item", "task", "item_id", "task_id", "question", "question_id", "id", "sentence_id"),
    "worker": ("worker", "annotator", "worker_id", "workerid", "annotator_id", "user", "labeler"),
    "label": ("label", "tag", "answer", "response", "annotation", "category"),
    "token": ("token", "word"),
    "position": ("position", "token_index", "token_id", "index"),
    "gold": ("gold", "truth"),
    "doc": ("doc", "document", "group"),
    "attempt": ("attempt",),
    "started": ("started",),
    "submitted": ("submitted", "time", "timestamp"),
    "cost": ("cost",),
    "text": ("text",),
    "offsets": ("offsets",),
}
NUMBERS = ("position", "attempt", "started", "submitted", "cost")
"""Roles whose cells are numbers."""


@dataclass(frozen=True)
class Rows:
    """The columns of a long table by role, with the place of every row.

    Attributes:
        name: Of the file.
        columns: Arrow strings [n_rows]; those of words are dictionary arrays whose strings are
            distinct and numbered, int32, in the order in which they come.
        line: [n_rows], the line of every row.
        is_tsv: Whether texts stand in it as JSON strings.
    """

    name: str
    columns: dict[str, pa.Array]
    line: NDArray[np.int64] | range
    is_tsv: bool = False

    def __len__(self) -> int:
        return len(self.columns["item"])

    @property
    def is_gold(self) -> bool:
        """Whether nobody is named, so that the labels are the truth."""
        return "worker" not in self.columns


def rows_of_table(table: pa.Table, name: str, found: dict[str, str]) -> Rows:
    """Take the columns that play a role out of an Arrow table."""
    columns = {
        role: (as_strings if role in NUMBERS else numbered)(table.column(at), at, name)
        for role, at in found.items()
    }
    return Rows(name, columns, range(1, len(table) + 1))


def find_roles(header: tuple[str, ...], file: str, options: ReadOptions) -> dict[str, str]:
    """Find the column of every role, by the user's name for it or by the usual ones.

    Raises:
        FormatError: There is no such column, or no column for items or labels.
    """
    _refuse_spans(header, file, options)
    found: dict[str, str] = {}
    lower = {name.lower(): name for name in reversed(header)}
    for role, names in ROLES.items():
        wanted = options.columns.get(role)
        if wanted is not None and wanted not in header:
            message = f"there is no column {wanted!r}: the header has {', '.join(header)}"
            raise FormatError([Fault(message, file=file, line=1, kind="header")])
        taken = set(found.values()) | set(options.columns.values())
        guess = next((lower[n] for n in names if n in lower and lower[n] not in taken), None)
        if wanted or guess:
            found[role] = wanted or str(guess)
    twice = sorted({name for name in found.values() if header.count(name) > 1})
    if twice:
        message = f"columns {', '.join(map(repr, twice))} stand twice in the header"
        raise FormatError([Fault(message, file=file, line=1, kind="header")])
    absent = [role for role in ("item", "label") if role not in found]
    if absent:
        message = (
            f"no column for {' and '.join(absent)} (the header has {', '.join(header)}): "
            f"name it with columns={{{absent[0]!r}: …}} (--columns {absent[0]}=NAME)"
        )
        raise FormatError([Fault(message, file=file, line=1, kind="header")])
    return found


def _refuse_spans(header: tuple[str, ...], file: str, options: ReadOptions) -> None:
    """Refuse a table of spans, of which single labels would be half the truth.

    Raises:
        FormatError: There are columns start and end, and no row per token.
    """
    from goldspan.crowd.formats.span_table import is_span_table, span_columns

    found = span_columns(header, options.columns)
    if found is not None and is_span_table(header, options.columns):
        message = (
            f"columns {found[0]!r} and {found[1]!r} make this a table of spans, not of single "
            "labels: pass format='span-table'; if they are times, pass columns={'started': "
            f"{found[0]!r}, 'submitted': {found[1]!r}}}"
        )
        raise FormatError([Fault(message, file=file, line=1, kind="spans")])


def integers(rows: Rows, role: str) -> NDArray[np.int64]:
    """A column of integers; empty cells are -1, an empty attempt the first.

    Raises:
        FormatError: A cell is no integer; ISO times are read as milliseconds.
    """
    blank = 0 if role == "attempt" else -1
    found = numbers(rows.columns[role], role, lambda i: place_of(rows, i), blank=blank)
    most = {"position": MAX_POSITION, "attempt": MAX_ATTEMPT}.get(role)
    if most is not None and (bad := np.flatnonzero((found < 0) | (found > most))).size:
        message = f"{role} must be a number from 0 to {most}"
        places = (place_of(rows, i) for i in bad.tolist())
        raise FormatError([replace(place, message=message, kind="number") for place in places])
    return found


def refuse_empty(rows: Rows, roles: tuple[str, ...]) -> None:
    """Refuse empty cells in some columns.

    Raises:
        FormatError: There are some; every one is listed.
    """
    faults = []
    for role in roles:
        cells = rows.columns[role]
        words = cells.dictionary
        empty = pc.equal(words if role == "token" else pc.utf8_trim_whitespace(words), "")
        if not pc.any(empty).as_py():
            continue
        for i in np.flatnonzero(empty.take(cells.indices)).tolist():
            message = f"the {role} is empty: remove the row, or write the {role}"
            faults.append(Fault(message, rows.name, int(rows.line[i]), kind="empty-cell"))
    if faults:
        raise FormatError(faults)


def place_of(rows: Rows, i: int, token: int = -1) -> Fault:
    """Give a fault without a message that holds the place of a row."""
    item = rows.columns["item"][i].as_py()
    worker = "" if rows.is_gold else rows.columns["worker"][i].as_py()
    return Fault("", rows.name, int(rows.line[i]), item, token, worker)
