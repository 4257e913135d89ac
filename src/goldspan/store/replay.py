"""From the log to the state: replaying all events gives the same tables, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, select

from goldspan.errors import InputError
from goldspan.protocols import Event
from goldspan.store.chain import BEGIN
from goldspan.store.engine import WRITE
from goldspan.store.journal import Database, Entry, first_entry
from goldspan.store.schema import BESIDE_THE_LOG, metadata

State = dict[str, list[dict[str, Any]]]


def state_of(database: Database) -> State:
    """Return all rows of all tables that the log determines, sorted by their keys."""
    tables = [table for table in metadata.sorted_tables if table.name not in BESIDE_THE_LOG]
    with database.read() as connection:
        return {table.name: _rows(connection, table) for table in tables}


def replay(
    events: Iterable[Event], database: Database, head: str | None = None,
    then: Callable[[Connection], None] | None = None,
) -> int:  # fmt: skip
    """Do all events again in a database without a campaign, all or nothing.

    Args:
        events: The log.
        database: Where to.
        head: The last hash, if known.
        then: Does the rest in the same transaction.

    Returns:
        The number of the last event.

    Raises:
        InputError: The log is empty, an entry is missing or was changed, or is of no known kind.
    """
    with database.turn, database.engine.connect() as plain:
        connection = plain.execution_options(**WRITE)
        with connection.begin():
            entry = first_entry(connection, 0, replayed=True)
            for event in events:
                _again(entry, event)
            if not entry.n_events:
                raise InputError("the log is empty: there is no campaign in it")
            if head not in {None, entry.head}:
                raise InputError(f"the log is broken: events after {entry.n_events} are missing")
            entry.close()
            if then is not None:
                then(connection)
    return entry.n_events


def _again(entry: Entry, event: Event) -> None:
    if not entry.n_events and event.kind == BEGIN:
        entry.n_events, entry.head = int(event.body["events"]), str(event.body["head"])
    number = entry.n_events + 1
    if event.number != number:
        raise InputError(f"the log is broken: event {number} is missing")
    entry.now = entry.clock = event.time
    entry.log(event.kind, event.body)
    if entry.head != event.hash:
        raise InputError(f"the log is broken: event {number} was changed")
    entry.flush()


def _rows(connection: Connection, table: Any) -> list[dict[str, Any]]:
    query = select(table).order_by(*table.primary_key.columns)
    return [log_part(table.name, _plain(row)) for row in connection.execute(query).mappings()]


def log_part(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without what is not in the log: of a sealed note, what it says."""
    if table == "notes" and row["salt"] is not None:  # what was reduced stands in it, without salt
        return {**row, **dict.fromkeys(("name", "body", "salt"))}
    return row


def _plain(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): value for name, value in row.items()}
