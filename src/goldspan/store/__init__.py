"""Storage: what was asked, answered and paid in a campaign, in SQLite or PostgreSQL.

`create_ledger` and `open_ledger` return a campaign's ledger, a `SqlLedger`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.store.copies import backup_ledger, export_ledger, import_ledger, restore_ledger
    from goldspan.store.engine import StoreError
    from goldspan.store.erasing import forget_listed, list_beside, scrub, write_list
    from goldspan.store.ledger import SqlLedger, create_ledger, open_ledger
    from goldspan.store.pool import pool_items
    from goldspan.store.verify import faults_of

__all__ = [
    "SqlLedger",
    "StoreError",
    "backup_ledger",
    "create_ledger",
    "export_ledger",
    "faults_of",
    "forget_listed",
    "import_ledger",
    "list_beside",
    "open_ledger",
    "pool_items",
    "restore_ledger",
    "scrub",
    "write_list",
]

_HOME = {
    "SqlLedger": "goldspan.store.ledger",
    "StoreError": "goldspan.store.engine",
    "backup_ledger": "goldspan.store.copies",
    "create_ledger": "goldspan.store.ledger",
    "export_ledger": "goldspan.store.copies",
    "faults_of": "goldspan.store.verify",
    "forget_listed": "goldspan.store.erasing",
    "import_ledger": "goldspan.store.copies",
    "list_beside": "goldspan.store.erasing",
    "open_ledger": "goldspan.store.ledger",
    "pool_items": "goldspan.store.pool",
    "restore_ledger": "goldspan.store.copies",
    "scrub": "goldspan.store.erasing",
    "write_list": "goldspan.store.erasing",
}

__getattr__ = lazy(__name__, _HOME, extra="store", needs={"sqlalchemy"}, purpose="the store")
