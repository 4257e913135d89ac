"""A campaign as a folder, and back: the log holds everything, so the log is what is written.

The folder holds `campaign.json` (what it is, layout, number of events, last hash) and
`events.jsonl`, one event per line: number, time, kind, body, hash. Importing replays the log, in
SQLite or in PostgreSQL, whichever it came from; the tables are the same, and so is a second export,
byte by byte.

Of a private campaign a third file, `people.jsonl`, holds what is not in the log: who the workers
are, and what they wrote. Without it the campaign is imported with pseudonyms alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, select
from sqlalchemy.exc import SQLAlchemyError

from goldspan.crowd.atomic import write_folder
from goldspan.errors import InputError
from goldspan.protocols import Event
from goldspan.store.chain import canonical, read_json
from goldspan.store.opening import empty_database, open_ledger
from goldspan.store.people import unsealed
from goldspan.store.replay import replay
from goldspan.store.schema import notes, people
from goldspan.store.verify import Chain, damaged, log_rows

if TYPE_CHECKING:
    from goldspan.store.ledger import SqlLedger

LAYOUT = 1
ABOUT, LOG, PEOPLE = "campaign.json", "events.jsonl", "people.jsonl"
SAID = ("name", "body", "salt")
"""What of a note is not in the log."""


def export_ledger(ledger: SqlLedger, folder: str | Path) -> None:
    """Write a campaign into a new folder, as its log says that it is at one moment.

    Raises:
        InputError: The folder exists already, or cannot be made.
        StoreError: The log is damaged; no folder is made. Of damaged tables it has nothing.
    """
    write_folder(folder, lambda path: _fill(ledger, path))


def import_ledger(folder: str | Path, place: str | Path) -> SqlLedger:
    """Make the campaign of a folder in an empty place, and open it.

    Args:
        folder: What `export_ledger` wrote.
        place: Path of a new SQLite file, or an address "postgresql://…" of an empty database.

    Raises:
        InputError: The folder is damaged or of a newer goldspan, or the place is not empty.
    """
    about = _about(Path(folder))
    database = empty_database(place)
    try:
        replay(
            _read_log(Path(folder) / LOG), database, head=about["head"],
            then=lambda connection: _read_people(Path(folder) / PEOPLE, connection),
        )  # fmt: skip
    finally:
        database.engine.dispose()
    return open_ledger(place)


def _fill(ledger: SqlLedger, path: Path) -> None:
    chain = Chain()
    with ledger.database.read() as connection, (path / LOG).open("w", encoding="utf-8") as out:
        for row in log_rows(connection):
            fault = chain.follow(row)
            if fault:
                raise damaged(ledger.database.where, fault)
            event = Event(row.number, row.time, row.kind, read_json(row.body), row.hash)
            out.write(canonical(vars(event)) + "\n")
        fault = chain.end(connection)
        if fault:
            raise damaged(ledger.database.where, fault)
        _write_people(connection, path / PEOPLE)
    number, head = chain.number, chain.head
    about = {"goldspan": "campaign", "layout": LAYOUT, "name": ledger.name}
    words = json.dumps({**about, "events": number, "head": head}, ensure_ascii=False, indent=1)
    (path / ABOUT).write_text(words + "\n", encoding="utf-8")


def _write_people(connection: Connection, path: Path) -> None:
    """Write who the workers are, and their notes, for the file's owner alone."""
    who = connection.execute(select(people)).mappings()
    known = notes.c.salt.is_not(None)
    said = connection.execute(select(notes).where(known).order_by(notes.c.number)).mappings()
    rows = [{"table": "people", **row} for row in who]
    rows += [{"table": "notes", **{name: row[name] for name in ("number", *SAID)}} for row in said]
    if rows:
        path.touch(0o600)
        path.write_text("".join(canonical(row) + "\n" for row in rows), encoding="utf-8")


def _read_people(path: Path, connection: Connection) -> None:
    """Put back what `_write_people` wrote, if it is what the log has sealed."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8") as lines:
        for n, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                table = row.pop("table")
                if table == "people":
                    connection.execute(people.insert(), {c.name: row[c.name] for c in people.c})
                else:
                    known = notes.update().where(notes.c.number == row["number"])
                    said = {name: row[name] for name in SAID}
                    connection.execute(known.values(said))
            except (ValueError, TypeError, KeyError, AttributeError, SQLAlchemyError) as error:
                raise InputError(f"{path} line {n} is not of an export: {error}") from None
    changed = unsealed(connection)
    if changed:
        raise InputError(f"{path}: note {changed[0]} is not what the log has sealed")


def _about(folder: Path) -> dict[str, Any]:
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        layout, _ = about["layout"], about["head"]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{folder} is no export of a campaign: {ABOUT}: {error}") from None
    if layout != LAYOUT:
        raise InputError(
            f"{folder} has layout {layout}, this goldspan reads {LAYOUT}: update goldspan"
        )
    return dict(about)


def _read_log(path: Path) -> Iterator[Event]:
    try:
        with path.open(encoding="utf-8") as lines:
            for n, line in enumerate(lines, start=1):
                try:
                    yield Event(**json.loads(line))
                except (ValueError, TypeError) as error:
                    raise InputError(f"{path} line {n} is no event: {error}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
