"""The tables of a campaign's database: one database (or PostgreSQL schema) holds one campaign.

Numbers stand for items, workers, batches and answers; they count from 1 in the order in which
things came. Money is in millionths of the currency unit, time in milliseconds since 1970, both in
64 bits. What may never happen is a constraint: money above the cap, more answers and leases than
places, two answers that count by one worker to one item, one key twice.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.types import TypeEngine

metadata = MetaData()
Whole: TypeEngine[int] = BigInteger().with_variant(Integer, "sqlite")
"""64 bits; SQLite's `INTEGER` makes a primary key the row's own address."""
FREE = "places > leased + filled"
"""An item that has a free place. SQLite would turn `leased + filled < places` round in a query, and
then not find the index that says so."""


def _key() -> Column[int]:
    return Column("number", Whole, primary_key=True, autoincrement=False)


def _number(name: str, target: str | None = None) -> Column[int]:
    if target is None:
        return Column(name, Whole, nullable=False)
    return Column(name, Whole, ForeignKey(target), nullable=False)


def _word(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


campaign = Table(
    "campaign",
    metadata,
    Column("id", Whole, primary_key=True, autoincrement=False),
    _word("name"),
    _word("currency"),
    _word("tags"),
    _word("encoding"),
    _number("cap"),
    _number("reserved"),
    _number("spent"),
    _number("paused"),
    _number("clock"),
    _number("n_events"),
    _word("head"),
    Column("private", Whole, nullable=False, server_default="0"),
    CheckConstraint("id = 1", name="one_campaign"),
    CheckConstraint("reserved >= 0 AND spent >= 0", name="money_not_negative"),
    CheckConstraint("reserved + spent <= cap", name="money_within_cap"),
)

items = Table(
    "items",
    metadata,
    _key(),
    _word("id"),
    _number("cost"),
    _number("n_tokens"),
    _word("tokens"),
    Column("extra", Text),
    UniqueConstraint("id", name="item_id"),
    CheckConstraint("cost >= 0", name="cost_not_negative"),
)

batches = Table(
    "batches",
    metadata,
    _key(),
    _word("name"),
    _number("k"),
    _number("n_items"),
    _number("opened"),
    UniqueConstraint("name", name="batch_name"),
)

# An item of a batch with its places: `wanted` of them, or more while more are in use.
slots = Table(
    "slots",
    metadata,
    Column("item", Whole, ForeignKey("items.number"), primary_key=True, autoincrement=False),
    _number("batch", "batches.number"),
    _number("position"),
    _number("wanted"),
    _number("places"),
    _number("leased"),
    _number("filled"),
    CheckConstraint("leased >= 0 AND filled >= 0 AND wanted >= 0", name="slots_not_negative"),
    CheckConstraint("leased + filled <= places", name="slots_within_places"),
    CheckConstraint("wanted <= places", name="slots_wanted"),
    Index("slots_free", "position", sqlite_where=text(FREE), postgresql_where=text(FREE)),
)

# `cursor`: below this position no place is free that the worker could take.
workers = Table(
    "workers",
    metadata,
    _key(),
    _word("id"),
    _number("cursor"),
    _number("barred"),
    UniqueConstraint("id", name="worker_id"),
    Index("workers_cursor", "cursor"),
)

leases = Table(
    "leases",
    metadata,
    _number("item", "slots.item"),
    _number("worker", "workers.number"),
    _number("taken"),
    _number("expires"),
    _number("cost"),
    PrimaryKeyConstraint("item", "worker", name="lease_of_item_and_worker"),
    Index("leases_expires", "expires"),
    Index("leases_worker", "worker"),
)

skips = Table(
    "skips",
    metadata,
    _number("item", "slots.item"),
    _number("worker", "workers.number"),
    _number("time"),
    _word("reason"),
    PrimaryKeyConstraint("item", "worker", name="skip_of_item_and_worker"),
    Index("skips_worker", "worker"),
)

answers = Table(
    "answers",
    metadata,
    _key(),
    _word("key"),
    _number("item", "slots.item"),
    _number("worker", "workers.number"),
    _word("labels"),
    _word("status"),
    _word("reason"),
    _number("counts"),
    _number("started"),
    _number("submitted"),
    _number("cost"),
    UniqueConstraint("key", name="answer_key"),
    CheckConstraint("counts IN (0, 1)", name="answer_counts"),
    CheckConstraint("counts = 1 OR cost = 0", name="answer_paid"),
    Index("answers_of_item", "item", "worker"),
    Index(
        "one_answer_counts",
        "item",
        "worker",
        unique=True,
        sqlite_where=text("counts = 1"),
        postgresql_where=text("counts = 1"),
    ),
)

charges = Table(
    "charges",
    metadata,
    _key(),
    _word("name"),
    _number("amount"),
    _number("time"),
    UniqueConstraint("name", name="charge_name"),
    CheckConstraint("amount >= 0", name="charge_not_negative"),
)

gold = Table(
    "gold",
    metadata,
    Column("item", Whole, ForeignKey("items.number"), primary_key=True, autoincrement=False),
    _word("labels"),
    _number("control"),
    _number("time"),
)

records = Table(
    "records",
    metadata,
    _key(),
    _word("kind"),
    _word("name"),
    _word("body"),
    _number("time"),
    UniqueConstraint("kind", "name", name="record_name"),
)

events = Table(
    "events",
    metadata,
    _key(),
    _number("time"),
    _word("kind"),
    _word("body"),
    _word("hash"),
)

# How often something was done on a day (UTC): `goldspan.store.bounds`. It is in no event, and a log
# that is replayed does not bring it back.
usage = Table(
    "usage",
    metadata,
    _word("kind"),
    _word("name"),
    _number("day"),
    _number("n"),
    PrimaryKeyConstraint("kind", "name", name="usage_of_kind_and_name"),
    Index("usage_day", "day"),
)

# What is known of people stands here and in `notes`, and nowhere else in a store whose campaign
# says `private = 1`: all other tables and the log name workers by pseudonym. Rows of these two are
# deleted when somebody is to be forgotten; see `goldspan.store.people`.
people = Table(
    "people",
    metadata,
    Column("pseudonym", Text, primary_key=True),
    _word("id"),
    _number("since"),
    UniqueConstraint("id", name="person_id"),
)

# `name`, `body` and `salt` come from outside the log, which holds `seal`, a hash of them, alone.
notes = Table(
    "notes",
    metadata,
    _key(),
    _word("kind"),
    _word("person"),
    _word("seal"),
    _number("time"),
    Column("name", Text),
    Column("body", Text),
    Column("salt", Text),
    UniqueConstraint("kind", "name", name="note_name"),
    Index("notes_person", "person"),
)

tombstones = Table(
    "tombstones",
    metadata,
    _key(),
    _word("person"),
    _word("hash"),
    _word("salt"),
    _number("time"),
    UniqueConstraint("person", name="tombstone_of_person"),
)

# Who steers and who serves: `goldspan.store.roles`. Facts about processes, not about the campaign:
# they are in no event, and a log that is replayed does not bring them back.
roles = Table(
    "roles",
    metadata,
    Column("name", Text, primary_key=True),
    _number("epoch"),
    _word("deployment"),
)

processes = Table(
    "processes",
    metadata,
    Column("id", Text, primary_key=True),
    Column("role", Text, ForeignKey("roles.name"), primary_key=True),
    _number("epoch"),
    _word("who"),
    _number("beat"),
)

# A process that has the campaign open to steer it; taken away when it lets go.
openings = Table(
    "openings",
    metadata,
    Column("id", Text, primary_key=True),
    _word("process"),
)

BESIDE_THE_LOG = {
    "roles": "who steers and who serves",
    "processes": "which processes do so",
    "usage": "how often something was done on a day",
    "people": "which ids the pseudonyms stand for: rows that can be deleted",
    "openings": "which processes have the campaign open, not what it holds",
}
"""Tables that the log does not determine, and why: they are not compared with it."""
