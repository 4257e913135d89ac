"""Bringing a database to the tables that this goldspan knows, when it is opened.

The steps are Alembic migrations in `migrations/versions/`, one file per version, numbered 0001,
0002, …. A database of a newer goldspan is refused, and left as it is.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from goldspan.store.engine import WRITE, StoreError, is_sqlite

HEAD = "0006"
"""The version of `schema.py`."""
FOLDER = Path(__file__).parent / "migrations"
_LOCK = 7_210_468_013
"""PostgreSQL's lock that two processes opening one new database take in turn."""


def version_of(connection: Connection) -> str | None:
    """Return the version of the tables, None where there are none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()


def upgrade(engine: Engine, where: str, *, folder: Path = FOLDER, head: str = HEAD) -> None:
    """Bring the tables to the newest version, all steps or none.

    Args:
        engine: The database.
        where: Its name in messages.
        folder: Where the steps are.
        head: The newest version.

    Raises:
        StoreError: A newer goldspan made the tables.
    """
    with engine.connect() as connection, connection.begin():
        if version_of(connection) == head:
            return
    with engine.connect() as plain:
        connection = plain.execution_options(**WRITE)
        with connection.begin():
            if not is_sqlite(engine):
                connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": _LOCK})
            found = version_of(connection)
            if found is not None and found > head:
                raise StoreError(
                    f"{where} was made by a newer goldspan (tables {found}, this one knows up to "
                    f"{head}): update goldspan; nothing was changed"
                )
            _run(connection, folder, head)


def _run(connection: Connection, folder: Path, head: str) -> None:
    from alembic.command import upgrade as run
    from alembic.config import Config

    config = Config()
    # Alembic reads % as the start of a variable.
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    run(config, head)
