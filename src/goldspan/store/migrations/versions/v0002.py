"""Version 2: which processes steer and serve the campaign."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables of roles and of the processes that hold them."""
    whole = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "roles",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("epoch", whole, nullable=False),
        sa.Column("deployment", sa.Text, nullable=False),
    )
    op.create_table(
        "processes",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("role", sa.Text, sa.ForeignKey("roles.name"), primary_key=True),
        sa.Column("epoch", whole, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("beat", whole, nullable=False),
    )
