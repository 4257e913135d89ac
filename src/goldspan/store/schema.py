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

# A process that has the campaign open to steer it; taken away when it lets go.
openings = Table(
    "openings",
    metadata,
    Column("id", Text, primary_key=True),
    _word("process"),
)

BESIDE_THE_LOG = {"openings": "which processes have the campaign open, not what it holds"}
"""Tables that the log does not determine, and why: they are not compared with it."""
