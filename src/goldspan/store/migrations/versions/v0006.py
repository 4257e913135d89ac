"""Version 6: which processes have the campaign open, so that an unclean end is seen."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "openings",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("process", sa.Text, nullable=False),
    )
