"""What Alembic runs: the steps, within the transaction that `goldspan.store.migrate` opened."""

from __future__ import annotations

from alembic import context

from goldspan.store.schema import metadata


def run() -> None:
    """Do the steps."""
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        # SQLite changes a table by copying it.
        render_as_batch=True,
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


# Alembic gives the context its config while it runs; an import alone does nothing.
if hasattr(context, "config"):
    run()
