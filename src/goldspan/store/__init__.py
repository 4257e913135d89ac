"""Storage: what was asked, answered and paid in a campaign, in SQLite or PostgreSQL.

`create_ledger` and `open_ledger` return a campaign's ledger, a `SqlLedger`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.store.copies import (
        backup_ledger,
        export_ledger,
        export_partitions,
        import_ledger,
        restore_ledger,
    )
    from goldspan.store.engine import StoreError
    from goldspan.store.ledger import SqlLedger, create_ledger, open_ledger

__all__ = [
    "SqlLedger",
    "StoreError",
    "backup_ledger",
    "create_ledger",
    "export_ledger",
    "export_partitions",
    "import_ledger",
    "open_ledger",
    "restore_ledger",
]

_HOME = {
    "SqlLedger": "goldspan.store.ledger",
    "StoreError": "goldspan.store.engine",
    "backup_ledger": "goldspan.store.copies",
    "create_ledger": "goldspan.store.ledger",
    "export_ledger": "goldspan.store.copies",
    "export_partitions": "goldspan.store.copies",
    "import_ledger": "goldspan.store.copies",
    "open_ledger": "goldspan.store.ledger",
    "restore_ledger": "goldspan.store.copies",
}

__getattr__ = lazy(__name__, _HOME, extra="store", needs={"sqlalchemy"}, purpose="the store")
