"""The tables of a campaign's database: one database (or PostgreSQL schema) holds one campaign.

Numbers stand for items, workers, batches and answers; they count from 1 in the order in which
things came. Money is in millionths of the currency unit, time in milliseconds since 1970, both in
64 bits. What may never happen is a constraint: money above the cap, more answers and leases than
places, two answers that count by one worker to one item, one key twice.

The tables are defined here and nowhere else, and a new store is made from these definitions.
"""

from __future__ import annotations

from sqlalchemy import (
    DDL,
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    Engine,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    event,
    inspect,
    select,
    text,
)
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

from goldspan.errors import InputError
from goldspan.store.engine import WRITE, StoreError, is_sqlite

metadata = MetaData()
Whole: TypeEngine[int] = BigInteger().with_variant(Integer, "sqlite")
"""64 bits; SQLite's `INTEGER` makes a primary key the row's own address."""
FREE = "places > leased + filled"
"""An item that has a free place. SQLite would turn `leased + filled < places` round in a query, and
then not find the index that says so."""


def _table(name: str, *parts: SchemaItem) -> Table:
    return Table(name, metadata, *parts)


def _key(name: str = "number", target: str | None = None) -> Column[int]:
    links = [] if target is None else [ForeignKey(target)]
    return Column(name, Whole, *links, primary_key=True, autoincrement=False)


def _link(name: str, target: str) -> Column[int]:
    return Column(name, Whole, ForeignKey(target), nullable=False)


def _numbers(*names: str) -> list[Column[int]]:
    return [Column(name, Whole, nullable=False) for name in names]


def _words(*names: str, required: bool = True) -> list[Column[str]]:
    return [Column(name, Text, nullable=not required) for name in names]


campaign = _table(
    "campaign",
    _key("id"),
    *_words("name", "currency", "tags", "encoding"),
    *_numbers("cap", "reserved", "spent", "paused", "clock", "n_events"),
    *_words("head"),
    Column("private", Whole, nullable=False, server_default="0"),
    CheckConstraint("id = 1", name="one_campaign"),
    CheckConstraint("reserved >= 0 AND spent >= 0", name="money_not_negative"),
    CheckConstraint("reserved + spent <= cap", name="money_within_cap"),
)
items = _table(
    "items",
    _key(),
    *_words("id"),
    *_numbers("cost", "n_tokens"),
    *_words("tokens"),
    *_words("extra", required=False),
    UniqueConstraint("id", name="item_id"),
    CheckConstraint("cost >= 0", name="cost_not_negative"),
)
batches = _table(
    "batches",
    _key(),
    *_words("name"),
    *_numbers("k", "n_items", "opened"),
    UniqueConstraint("name", name="batch_name"),
)
# An item of a batch with its places: `wanted` of them, or more while more are in use.
slots = _table(
    "slots",
    _key("item", "items.number"),
    _link("batch", "batches.number"),
    *_numbers("position", "wanted", "places", "leased", "filled"),
    CheckConstraint("leased >= 0 AND filled >= 0 AND wanted >= 0", name="slots_not_negative"),
    CheckConstraint("leased + filled <= places", name="slots_within_places"),
    CheckConstraint("wanted <= places", name="slots_wanted"),
    Index("slots_free", "position", sqlite_where=text(FREE), postgresql_where=text(FREE)),
)
# `cursor`: below this position no place is free that the worker could take.
workers = _table(
    "workers",
    _key(),
    *_words("id"),
    *_numbers("cursor", "barred"),
    UniqueConstraint("id", name="worker_id"),
    Index("workers_cursor", "cursor"),
)
leases = _table(
    "leases",
    _link("item", "slots.item"),
    _link("worker", "workers.number"),
    *_numbers("taken", "expires", "cost"),
    PrimaryKeyConstraint("item", "worker", name="lease_of_item_and_worker"),
    Index("leases_expires", "expires"),
    Index("leases_worker", "worker"),
)
skips = _table(
    "skips",
    _link("item", "slots.item"),
    _link("worker", "workers.number"),
    *_numbers("time"),
    *_words("reason"),
    PrimaryKeyConstraint("item", "worker", name="skip_of_item_and_worker"),
    Index("skips_worker", "worker"),
)
_COUNTS = text("counts = 1")
answers = _table(
    "answers",
    _key(),
    *_words("key"),
    _link("item", "slots.item"),
    _link("worker", "workers.number"),
    *_words("labels", "status", "reason"),
    *_numbers("counts", "started", "submitted", "cost"),
    UniqueConstraint("key", name="answer_key"),
    CheckConstraint("counts IN (0, 1)", name="answer_counts"),
    CheckConstraint("counts = 1 OR cost = 0", name="answer_paid"),
    Index("answers_of_item", "item", "worker"),
    Index("answers_of_worker", "worker", "item"),
    Index(
        "one_answer_counts", "item", "worker", unique=True, sqlite_where=_COUNTS,
        postgresql_where=_COUNTS,
    ),
)  # fmt: skip
charges = _table(
    "charges",
    _key(),
    *_words("name"),
    *_numbers("amount", "time"),
    UniqueConstraint("name", name="charge_name"),
    CheckConstraint("amount >= 0", name="charge_not_negative"),
)
gold = _table("gold", _key("item", "items.number"), *_words("labels"), *_numbers("control", "time"))
records = _table(
    "records",
    _key(),
    *_words("kind", "name", "body"),
    *_numbers("time"),
    UniqueConstraint("kind", "name", name="record_name"),
)
events = _table("events", _key(), *_numbers("time"), *_words("kind", "body", "hash"))

_ONLY_GROWS = {
    "sqlite": (
        "CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN {reject}; END",
        "CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN {reject}; END",
    ),
    "postgresql": (
        """CREATE FUNCTION goldspan_log_only_grows() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN {reject}; END $$""",
        """CREATE TRIGGER events_only_grow BEFORE UPDATE OR DELETE OR TRUNCATE ON events
        FOR EACH STATEMENT EXECUTE FUNCTION goldspan_log_only_grows()""",
    ),
}
_REJECT = {
    "sqlite": "SELECT RAISE(ABORT, 'the log only grows')",
    "postgresql": "RAISE EXCEPTION 'the log only grows'",
}
for _dialect, _statements in _ONLY_GROWS.items():
    for _statement in _statements:
        _ddl = DDL(_statement.format(reject=_REJECT[_dialect]))  # type: ignore[no-untyped-call]
        event.listen(events, "after_create", _ddl.execute_if(dialect=_dialect))

# How often something was done on a day (UTC): `goldspan.store.facts`. It is in no event, and a log
# that is replayed does not bring it back.
usage = _table(
    "usage",
    *_words("kind", "name"),
    *_numbers("day", "n"),
    PrimaryKeyConstraint("kind", "name", name="usage_of_kind_and_name"),
    Index("usage_day", "day"),
)
# What is known of people is here and in `notes`, and nowhere else in a store whose campaign
# says `private = 1`: all other tables and the log name workers by pseudonym. Rows of these two are
# deleted when somebody is to be forgotten; see `goldspan.store.people`.
people = _table(
    "people",
    Column("pseudonym", Text, primary_key=True),
    *_words("id"),
    *_numbers("since"),
    UniqueConstraint("id", name="person_id"),
)
# `name`, `body` and `salt` come from outside the log, which holds `seal`, a hash of them, alone.
notes = _table(
    "notes",
    _key(),
    *_words("kind", "person", "seal"),
    *_numbers("time"),
    *_words("name", "body", "salt", required=False),
    UniqueConstraint("kind", "name", name="note_name"),
    Index("notes_person", "person"),
)
tombstones = _table(
    "tombstones",
    _key(),
    *_words("person", "hash", "salt"),
    *_numbers("time"),
    UniqueConstraint("person", name="tombstone_of_person"),
)
# Who steers and who serves: `goldspan.store.roles`. Facts about processes, not about the campaign:
# they are in no event, and a log that is replayed does not bring them back.
roles = _table(
    "roles", Column("name", Text, primary_key=True), *_numbers("epoch"), *_words("deployment")
)
processes = _table(
    "processes",
    Column("id", Text, primary_key=True),
    Column("role", Text, ForeignKey("roles.name"), primary_key=True),
    *_numbers("epoch"),
    *_words("who"),
    *_numbers("beat"),
)
# A process that has the campaign open to steer it; removed when it closes the store. A row of
# `processes` cannot say this: whoever takes a role over deletes the rows of the process that is
# gone, and the unclean end would be forgotten unchecked.
openings = _table("openings", Column("id", Text, primary_key=True), *_words("process"))
# When a token of the desk's API was last used: `goldspan.store.facts`. The tokens themselves are
# records.
token_uses = _table("token_uses", Column("token", Text, primary_key=True), *_numbers("time"))
# What programs are to be told (`[[webhooks]]` of the plan), and up to which entry of the log that
# was gathered: `goldspan.store.programs`. Without these rows, telling begins at the end of the log.
messages = _table(
    "messages",
    _key(),
    *_words("name", "hook", "event", "body", "state"),
    *_numbers("tries", "due", "made", "changed", "status"),
    *_words("why"),
    UniqueConstraint("name", name="message_name"),
    Index("messages_due", "state", "due"),
)
gathered = _table(
    "gathered",
    *_words("hook", "event"),
    *_numbers("number"),
    PrimaryKeyConstraint("hook", "event", name="gathered_of_hook_and_event"),
)

BESIDE_THE_LOG = {
    "roles": "who steers and who serves",
    "processes": "which processes do so",
    "usage": "how often something was done on a day",
    "people": "which ids the pseudonyms stand for: rows that can be deleted",
    "openings": "which processes have the campaign open, not what it holds",
    "token_uses": "when programs last used their tokens",
    "messages": "what programs are to be told, which follows from the log",
    "gathered": "up to which entry of the log that was gathered",
}
"""Tables that the log does not determine, and why: they are not compared with it."""

# --------------------------------------------------------------------------------------------------
# The version of the tables, which says whether this goldspan can read them.


VERSION = 1
"""The version of the tables above."""
_version = Table(
    "schema_version",
    MetaData(),
    Column("version", Whole, primary_key=True, autoincrement=False),
)
_LOCK = 7_210_468_013
"""PostgreSQL's lock that two processes opening one new database take in turn."""


def version_of(connection: Connection) -> int | None:
    """Return the version of the tables, None where there are none."""
    if not inspect(connection).has_table(_version.name):
        return None
    return connection.execute(select(_version.c.version)).scalar_one_or_none()


def check_version(connection: Connection, where: str) -> bool:
    """Return whether there are tables; reject those of another goldspan."""
    found = version_of(connection)
    if found not in {None, VERSION}:
        raise StoreError(
            f"{where} has tables of version {found}, and this goldspan reads version {VERSION}: "
            "update goldspan; nothing was changed"
        )
    return found is not None


def make_tables(engine: Engine, where: str) -> None:
    """Make the tables where there are none: all or nothing."""
    with engine.connect() as connection, connection.begin():
        if check_version(connection, where):
            return
    with engine.connect() as plain:
        connection = plain.execution_options(**WRITE)
        with connection.begin():
            if not is_sqlite(engine):
                connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": _LOCK})
            if check_version(connection, where):
                return
            # A table of one of these names that is somebody else's is an error, not ours.
            metadata.create_all(connection, checkfirst=False)
            _version.create(connection)
            connection.execute(_version.insert().values(version=VERSION))


# --------------------------------------------------------------------------------------------------
# What the columns can hold: names and amounts that every database takes.


MOST_CHARACTERS = 1_000
MOST_MICRO = 10**18
"""The largest amount in millionths: sums of several still fit into 64 bits."""


def check_name(word: str, what: str) -> str:
    """Check a name or a key, and return it.

    >>> check_name("w1", "a worker")
    'w1'
    """
    if not isinstance(word, str) or not 0 < len(word) <= MOST_CHARACTERS:
        raise InputError(f"{what} must be text of 1 to {MOST_CHARACTERS} characters, not {word!r}")
    if not is_name(word):
        raise InputError(f"{what} {word!r} holds NUL or half of a surrogate pair: rename it")
    return word


def is_name(word: str) -> bool:
    """Return whether text can be a name.

    >>> is_name("w1"), is_name(""), is_name("a" + chr(0))
    (True, False, False)
    """
    if not isinstance(word, str) or not 0 < len(word) <= MOST_CHARACTERS or "\0" in word:
        return False
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_amount(amount: int, what: str) -> int:
    """Check that an amount is whole, not negative and not too large, and return it."""
    if isinstance(amount, bool) or not isinstance(amount, int) or not 0 <= amount <= MOST_MICRO:
        raise InputError(
            f"{what} must be whole millionths from 0 to {MOST_MICRO:,}, not {amount!r}"
        )
    return amount
