"""Making a campaign's ledger, and opening one that is there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, select
from sqlalchemy.exc import DatabaseError, OperationalError

from goldspan.errors import InputError
from goldspan.spans import Codec
from goldspan.store.engine import (
    WRITE,
    StoreError,
    connect,
    is_outside,
    is_sqlite,
    store_error,
    to_url,
)
from goldspan.store.journal import Database, Held, first_entry
from goldspan.store.migrate import upgrade
from goldspan.store.money import check_amount
from goldspan.store.names import check_name
from goldspan.store.schema import campaign

if TYPE_CHECKING:
    from goldspan.store.ledger import SqlLedger


def create_ledger(
    place: str | Path, *, name: str, cap: int, currency: str, tagset: Codec, now: int,
    private: bool = False,
) -> SqlLedger:  # fmt: skip
    """Make the ledger of a new campaign; the same call again opens it.

    Args:
        place: Path of a SQLite file, or an address "postgresql://…" of an empty database.
        name: The campaign's name.
        cap: What may be spent, in millionths of the currency unit. In a campaign that is there it
            stays what it is: `set_cap` changes it.
        currency: Its unit.
        tagset: The tags and their encoding.
        now: Milliseconds since 1970.
        private: Whether the log and the tables name workers by random pseudonyms, and what is
            known of them can be deleted; a campaign that is there stays what it is.

    Raises:
        InputError: Another campaign is there, or an argument is out of range.
        StoreError: The database cannot be opened or written.

    >>> import tempfile
    >>> from goldspan.protocols import PoolItem
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = create_ledger(
    ...     f"{folder.name}/c.db", name="c", cap=100, currency="EUR",
    ...     tagset=Codec.from_types(["yes", "no"], "PLAIN"), now=0)
    >>> ledger.add_items([PoolItem("i1", ("fine?",), cost=60)], now=1)
    1
    >>> batch = ledger.open_batch("first", ["i1"], k=2, now=2)
    >>> [lease.item for lease in ledger.lease("w1", now=3, seconds=60)]
    ['i1']
    >>> ledger.submit("key", "w1", "i1", ["yes"], now=4).status
    'accepted'
    >>> ledger.totals().left, ledger.lease("w2", now=5, seconds=60)
    (40, [])
    >>> ledger.close(); folder.cleanup()
    """
    check_name(name, "a campaign's name")
    body = {"name": name, "currency": currency, "cap": check_amount(cap, "the cap")}
    body |= {"tags": list(tagset.tags), "encoding": tagset.encoding}
    body |= {"private": 1} if private else {}
    database = _database(place, new=True)
    try:
        _found(database, body, tagset, now)
    except BaseException:
        database.engine.dispose()
        raise
    return _face(database)


def open_ledger(place: str | Path) -> SqlLedger:
    """Open the ledger of a campaign, and bring its tables to this goldspan's version.

    Args:
        place: Path of a SQLite file, or an address "postgresql://…".

    Raises:
        InputError: There is none.
        StoreError: A newer goldspan made it, or it cannot be read.
    """
    database = _database(place, new=False)
    ledger = _face(database)
    try:
        _ = ledger.name
    except BaseException:
        ledger.close()
        raise
    return ledger


def empty_database(place: str | Path) -> Database:
    """Open a database with tables and no campaign, for a log to be replayed into.

    Raises:
        InputError: A campaign is there.
    """
    database = _database(place, new=True)
    with database.read() as connection:
        taken = _is_taken(connection)
    if taken:
        database.engine.dispose()
        raise InputError(f"{database.where} holds a campaign: give a place that is empty")
    return database


def where_of(place: str | Path) -> str:
    """Name a place in messages, without its password.

    >>> where_of("postgresql://ann:secret@host/name")
    'postgresql+psycopg://ann:***@host/name'
    """
    url = to_url(place)
    return str(url.database) if url.get_backend_name() == "sqlite" else url.render_as_string()


def _database(place: str | Path, *, new: bool) -> Database:
    url, where = to_url(place), where_of(place)
    if url.get_backend_name() == "sqlite" and not new and not Path(str(url.database)).is_file():
        raise InputError(f"there is no campaign at {where}: create one first")
    held = Held()
    engine = connect(url, held.sign)
    try:
        _upgrade(engine, where)
    except BaseException:
        engine.dispose()
        raise
    return Database(engine, where, held)


def _upgrade(engine: Engine, where: str) -> None:
    try:
        upgrade(engine, where)
    except OperationalError as error:
        raise store_error(error, where) from None
    except DatabaseError as error:
        if is_sqlite(engine) and is_outside(error):
            raise store_error(error, f"{where} is no campaign's database") from None
        why = str(error.orig).strip().splitlines()[0]
        raise StoreError(f"{where} is no campaign's database: {why}") from None


def _found(database: Database, body: dict[str, object], tagset: Codec, now: int) -> None:
    """Write the first event, or check that it says the same."""
    try:
        with database.engine.connect() as plain:
            connection = plain.execution_options(**WRITE)
            with connection.begin():
                if not _is_taken(connection):
                    entry = first_entry(connection, now)
                    entry.log("create", body)
                    entry.close()
                    return
    except DatabaseError as error:
        if not is_outside(error):
            raise
        raise store_error(error, database.where) from None
    ledger = _face(database)
    first = next(ledger.events()).body
    # The cap is one of those that were set since; a campaign of before is not private; labels may
    # be added.
    fixed = [name for name in body if name not in {"cap", "private", "tags"}]
    other = [name for name in fixed if body[name] != first[name]]
    if other:
        told = ", ".join(f"{name} {first[name]!r}, not {body[name]!r}" for name in other)
        raise InputError(
            f"{database.where} holds the campaign {first['name']!r} with other settings ({told}): "
            "take them back, or give another place (on the command line --out or --store)"
        )
    lost = [tag for tag in ledger.tagset.tags if tag not in tagset.index]
    if lost:
        gone = ", ".join(label for label in ledger.tagset.types if label not in tagset.types)
        raise InputError(
            f"{database.where} holds the campaign {first['name']!r} with other settings: labels "
            f"are missing now ({gone}). Labels can be added while a campaign runs, but not removed "
            "or renamed: put them back (the guideline may tell annotators not to use them), and "
            "rename labels in what you export; for another task give another place (on the "
            "command line --out or --store)"
        )


def _is_taken(connection: Connection) -> bool:
    return connection.execute(select(campaign.c.id)).first() is not None


def _face(database: Database) -> SqlLedger:
    from goldspan.store.ledger import SqlLedger

    return SqlLedger(database)
