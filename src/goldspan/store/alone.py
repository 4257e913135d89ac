"""One loop at a time: whoever steers a campaign holds it alone; others still read and answer.

Two loops over one campaign could not overspend, as the money is in constraints of the database,
but each would decide by what the other has half done. How a process holds the campaign, and how it
loses it, is in `goldspan.store.roles`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from goldspan.store import roles
from goldspan.store.check import sums_of
from goldspan.store.engine import StoreError
from goldspan.store.journal import Database
from goldspan.store.locks import PATIENCE


@contextmanager
def alone(database: Database) -> Iterator[None]:
    """Keep out others who would steer the campaign.

    Raises:
        HeldError: Another process steers it.
        LostError: Another process took over.
        StoreError: The database cannot be used.
    """
    who = f"process {os.getpid()}"
    refusal = partial(_refusal, database)
    with roles.hold(roles.Claim(database, roles.LOOP, who, refusal, PATIENCE)):
        yield


def check_sums(database: Database) -> None:
    """Refuse to steer by sums that are not those of the rows.

    Raises:
        StoreError: They are not.
    """
    faults = sums_of(database)
    if faults:
        raise StoreError(
            f"{database.where} is damaged: {'; '.join(faults)}: restore a backup, or import an "
            "export; nothing was changed"
        )


def _refusal(database: Database, _: str) -> str:
    return (
        f"{database.where}: another `goldspan run` is at work on this campaign: let it end or stop "
        "it, then run again; nothing was changed"
    )
