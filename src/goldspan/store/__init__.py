"""Where a campaign lives: what was asked, answered and paid, in SQLite or PostgreSQL.

`create_ledger` and `open_ledger` give the `Ledger` that `goldspan.protocols` describes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from goldspan._lazy import lazy
from goldspan.errors import MissingExtraError

if TYPE_CHECKING:
    from goldspan.store.backup import backup_ledger, restore_ledger
    from goldspan.store.check import faults_of
    from goldspan.store.engine import StoreError
    from goldspan.store.export import export_ledger, import_ledger
    from goldspan.store.ledger import SqlLedger
    from goldspan.store.opening import create_ledger, open_ledger
    from goldspan.store.pool import pool_items

__all__ = [
    "SqlLedger",
    "StoreError",
    "backup_ledger",
    "create_ledger",
    "export_ledger",
    "faults_of",
    "import_ledger",
    "open_ledger",
    "pool_items",
    "restore_ledger",
]

_HOME = {
    "SqlLedger": "goldspan.store.ledger",
    "StoreError": "goldspan.store.engine",
    "backup_ledger": "goldspan.store.backup",
    "create_ledger": "goldspan.store.opening",
    "export_ledger": "goldspan.store.export",
    "faults_of": "goldspan.store.check",
    "import_ledger": "goldspan.store.export",
    "open_ledger": "goldspan.store.opening",
    "pool_items": "goldspan.store.pool",
    "restore_ledger": "goldspan.store.backup",
}

_get = lazy(__name__, _HOME)


def __getattr__(name: str) -> Any:
    """Import a public name at first use.

    Raises:
        MissingExtraError: SQLAlchemy is not installed.
    """
    try:
        return _get(name)
    except ModuleNotFoundError as error:
        if error.name != "sqlalchemy":
            raise
        raise MissingExtraError("sqlalchemy", "store", "the store") from None
