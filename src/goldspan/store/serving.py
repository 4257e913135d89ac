"""Who serves a campaign, beside its loop and commands: one server at a time.

What every worker has done is read from the store before anything is decided, so that two servers
could not contradict each other; but limits of rate and what is shown are kept in memory. How a
process holds the campaign, and how it loses it, is in `goldspan.store.roles`, which would let
several processes of one deployment serve it together.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from goldspan.store import roles
from goldspan.store.journal import Database
from goldspan.store.locks import PATIENCE


@contextmanager
def serving(
    database: Database, address: str, deployment: str = "", *, shared: bool = False
) -> Iterator[None]:
    """Keep out other servers of the campaign.

    Args:
        database: The campaign's.
        address: Where it is served, told to who is kept out.
        deployment: What processes that may serve together have in common.
        shared: Whether other processes of the same deployment that share it may serve too.

    Raises:
        HeldError: Another process serves it.
        LostError: Another process took over.
        StoreError: The database or the lock's file cannot be used.
    """
    who = f"process {os.getpid()} at {address}"
    refusal = partial(_refusal, database)
    with roles.hold(
        roles.Claim(database, roles.WEB, who, refusal, PATIENCE, deployment, shared=shared)
    ):
        yield


def _refusal(database: Database, holder: str) -> str:
    return (
        f"{database.where} is served already, by {holder or 'another process'}: use that server, "
        "or end it with Ctrl-C and start again; nothing was changed"
    )
