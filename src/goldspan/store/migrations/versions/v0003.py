"""Version 3: who people are stands in tables of its own, whose rows can be deleted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the tables; a campaign that is there stays as it is, with the ids in its log."""
    op.add_column("campaign", sa.Column("private", _whole(), nullable=False, server_default="0"))
    op.create_table(
        "people",
        sa.Column("pseudonym", sa.Text, primary_key=True),
        *_words("id"),
        *_numbers("since"),
        sa.UniqueConstraint("id", name="person_id"),
    )
    op.create_table(
        "notes",
        _key(),
        *_words("kind", "person", "seal"),
        *_numbers("time"),
        *(sa.Column(name, sa.Text) for name in ("name", "body", "salt")),
        sa.UniqueConstraint("kind", "name", name="note_name"),
    )
    op.create_index("notes_person", "notes", ["person"])
    op.create_table(
        "tombstones",
        _key(),
        *_words("person", "hash", "salt"),
        *_numbers("time"),
        sa.UniqueConstraint("person", name="tombstone_of_person"),
    )


def _whole() -> sa.types.TypeEngine[int]:
    return sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _key() -> sa.Column[int]:
    return sa.Column("number", _whole(), primary_key=True, autoincrement=False)


def _numbers(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, _whole(), nullable=False) for name in names]


def _words(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]
