"""Storage: what was asked, answered and paid in a campaign, in SQLite or PostgreSQL.

`create_ledger` and `open_ledger` return a campaign's ledger, a `SqlLedger`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.store.copies import backup_ledger as backup_ledger
    from goldspan.store.copies import export_partitions as export_partitions
    from goldspan.store.copies import restore_ledger as restore_ledger
    from goldspan.store.engine import StoreError as StoreError
    from goldspan.store.ledger import SqlLedger as SqlLedger
    from goldspan.store.ledger import create_ledger as create_ledger
    from goldspan.store.ledger import open_ledger as open_ledger

__getattr__, __dir__, __all__ = lazy(
    __name__, extra="store", needs={"sqlalchemy"}, purpose="the store"
)
