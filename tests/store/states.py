"""All rows of a campaign's database, to compare it with another one."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from goldspan.store.journal import Database
from goldspan.store.schema import BESIDE_THE_LOG, metadata
from goldspan.store.verify import log_part


def state_of(database: Database) -> dict[str, list[dict[str, Any]]]:
    """Return all rows of all tables that the log determines, sorted by their keys."""
    tables = [table for table in metadata.sorted_tables if table.name not in BESIDE_THE_LOG]
    with database.read() as connection:
        return {
            table.name: [
                log_part(table.name, dict(row))
                for row in connection.execute(
                    select(table).order_by(*table.primary_key.columns)
                ).mappings()
            ]
            for table in tables
        }
