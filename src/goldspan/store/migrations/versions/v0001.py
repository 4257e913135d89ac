"""Version 1: the first tables, and a log that only grows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_FREE = sa.text("places > leased + filled")
_COUNTS = sa.text("counts = 1")


def upgrade() -> None:
    """Make the tables."""
    _make_pool()
    _make_queue()
    _make_answers()
    _make_facts()
    _make_log()


def _whole() -> sa.types.TypeEngine[int]:
    return sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _key(name: str = "number", target: str | None = None) -> sa.Column[int]:
    links = () if target is None else (sa.ForeignKey(target),)
    return sa.Column(name, _whole(), *links, primary_key=True, autoincrement=False)


def _numbers(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, _whole(), nullable=False) for name in names]


def _to(name: str, target: str) -> sa.Column[int]:
    return sa.Column(name, _whole(), sa.ForeignKey(target), nullable=False)


def _words(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


def _make_pool() -> None:
    money = ("cap", "reserved", "spent")
    op.create_table(
        "campaign",
        _key("id"),
        *_words("name", "currency", "tags", "encoding"),
        *_numbers(*money, "paused", "clock", "n_events"),
        *_words("head"),
        sa.CheckConstraint("id = 1", name="one_campaign"),
        sa.CheckConstraint("reserved >= 0 AND spent >= 0", name="money_not_negative"),
        sa.CheckConstraint("reserved + spent <= cap", name="money_within_cap"),
    )
    op.create_table(
        "items",
        _key(),
        *_words("id"),
        *_numbers("cost", "n_tokens"),
        *_words("tokens"),
        sa.Column("extra", sa.Text),
        sa.UniqueConstraint("id", name="item_id"),
        sa.CheckConstraint("cost >= 0", name="cost_not_negative"),
    )
    op.create_table(
        "workers",
        _key(),
        *_words("id"),
        *_numbers("cursor", "barred"),
        sa.UniqueConstraint("id", name="worker_id"),
    )
    op.create_index("workers_cursor", "workers", ["cursor"])


def _make_queue() -> None:
    op.create_table(
        "batches",
        _key(),
        *_words("name"),
        *_numbers("k", "n_items", "opened"),
        sa.UniqueConstraint("name", name="batch_name"),
    )
    op.create_table(
        "slots",
        _key("item", "items.number"),
        _to("batch", "batches.number"),
        *_numbers("position", "wanted", "places", "leased", "filled"),
        sa.CheckConstraint(
            "leased >= 0 AND filled >= 0 AND wanted >= 0", name="slots_not_negative"
        ),
        sa.CheckConstraint("leased + filled <= places", name="slots_within_places"),
        sa.CheckConstraint("wanted <= places", name="slots_wanted"),
    )
    op.create_index("slots_free", "slots", ["position"], sqlite_where=_FREE, postgresql_where=_FREE)
    op.create_table(
        "leases",
        _to("item", "slots.item"),
        _to("worker", "workers.number"),
        *_numbers("taken", "expires", "cost"),
        sa.PrimaryKeyConstraint("item", "worker", name="lease_of_item_and_worker"),
    )
    op.create_index("leases_expires", "leases", ["expires"])
    op.create_index("leases_worker", "leases", ["worker"])
    op.create_table(
        "skips",
        _to("item", "slots.item"),
        _to("worker", "workers.number"),
        *_numbers("time"),
        *_words("reason"),
        sa.PrimaryKeyConstraint("item", "worker", name="skip_of_item_and_worker"),
    )


def _make_answers() -> None:
    op.create_table(
        "answers",
        _key(),
        *_words("key"),
        _to("item", "slots.item"),
        _to("worker", "workers.number"),
        *_words("labels", "status", "reason"),
        *_numbers("counts", "started", "submitted", "cost"),
        sa.UniqueConstraint("key", name="answer_key"),
        sa.CheckConstraint("counts IN (0, 1)", name="answer_counts"),
        sa.CheckConstraint("counts = 1 OR cost = 0", name="answer_paid"),
    )
    op.create_index("answers_of_item", "answers", ["item", "worker"])
    op.create_index(
        "one_answer_counts",
        "answers",
        ["item", "worker"],
        unique=True,
        sqlite_where=_COUNTS,
        postgresql_where=_COUNTS,
    )


def _make_facts() -> None:
    op.create_table(
        "charges",
        _key(),
        *_words("name"),
        *_numbers("amount", "time"),
        sa.UniqueConstraint("name", name="charge_name"),
        sa.CheckConstraint("amount >= 0", name="charge_not_negative"),
    )
    op.create_table(
        "gold",
        _key("item", "items.number"),
        *_words("labels"),
        *_numbers("control", "time"),
    )
    op.create_table(
        "records",
        _key(),
        *_words("kind", "name", "body"),
        *_numbers("time"),
        sa.UniqueConstraint("kind", "name", name="record_name"),
    )


def _make_log() -> None:
    op.create_table("events", _key(), *_numbers("time"), *_words("kind", "body", "hash"))
    if op.get_bind().dialect.name == "sqlite":
        for act in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER events_no_{act.lower()} BEFORE {act} ON events "
                "BEGIN SELECT RAISE(ABORT, 'the log only grows'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION goldspan_log_only_grows() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the log only grows'; END $$"
    )
    op.execute(
        "CREATE TRIGGER events_only_grow BEFORE UPDATE OR DELETE OR TRUNCATE ON events "
        "FOR EACH STATEMENT EXECUTE FUNCTION goldspan_log_only_grows()"
    )
