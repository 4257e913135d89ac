"""Where a campaign lives: what was asked, answered and paid, in SQLite or PostgreSQL.

`create_ledger` and `open_ledger` give the `Ledger` that `karat.protocols` describes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karat._lazy import lazy
from karat.errors import MissingExtraError

if TYPE_CHECKING:
    from karat.store.backup import backup_ledger, restore_ledger
    from karat.store.check import faults_of
    from karat.store.engine import StoreError
    from karat.store.export import export_ledger, import_ledger
    from karat.store.ledger import SqlLedger
    from karat.store.opening import create_ledger, open_ledger
    from karat.store.pool import pool_items

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
    "SqlLedger": "karat.store.ledger",
    "StoreError": "karat.store.engine",
    "backup_ledger": "karat.store.backup",
    "create_ledger": "karat.store.opening",
    "export_ledger": "karat.store.export",
    "faults_of": "karat.store.check",
    "import_ledger": "karat.store.export",
    "open_ledger": "karat.store.opening",
    "pool_items": "karat.store.pool",
    "restore_ledger": "karat.store.backup",
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
