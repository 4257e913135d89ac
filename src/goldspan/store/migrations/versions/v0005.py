"""Version 5: how often something was done today, and what a worker has skipped by index."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0003"


def upgrade() -> None:
    """Make the table of the daily bounds and the index."""
    whole = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "usage",
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("day", whole, nullable=False),
        sa.Column("n", whole, nullable=False),
        sa.PrimaryKeyConstraint("kind", "name", name="usage_of_kind_and_name"),
    )
    op.create_index("usage_day", "usage", ["day"])
    op.create_index("skips_worker", "skips", ["worker"])
