"""Opening the store of a campaign that is served, for the server and for commands beside it."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from goldspan.campaign import Setting
from goldspan.errors import InputError
from goldspan.protocols import Ledger
from goldspan.server.security.links import LINK
from goldspan.store import SqlLedger, create_ledger
from goldspan.store.engine import to_url

FILE = "campaign.sqlite"
SERVER, ID = "server", "id"
"""Kind and name of the record of a campaign's id."""
BESIDE = ("", "-wal", "-shm", "-journal")
"""What SQLite adds to a file's name: all of it holds answers."""


def open_store(setting: Setting, out: str | Path, store: str | None, now: int) -> SqlLedger:
    """Open a campaign's store, and make it if it is not there.

    What is made can be read by its owner alone: it holds answers and the password's hash.

    Args:
        setting: The campaign.
        out: The folder of what comes out; the store is there if no other is named.
        store: Path or address of the store.
        now: Milliseconds since 1970.

    Raises:
        InputError: The folder or the file cannot be made, or the store holds another campaign.
        StoreError: It cannot be opened.
    """
    place = store or Path(out) / FILE
    _make_private(Path(out), _file_of(place))
    plan = setting.plan
    return create_ledger(
        place, name=plan.name, cap=plan.cap,
        currency=plan.prices.currency, tagset=setting.codec, now=now,
    )  # fmt: skip


def with_id(setting: Setting, ledger: Ledger, now: int) -> Setting:
    """Give the setting under the campaign's own id, which is made at the first start.

    Links, sessions, tasks and the workers' other names hold for this id. It is random, for two
    campaigns may share a plan and a secret, and kept in the ledger, for the plan may change and the
    ledger be moved.

    Args:
        setting: The campaign.
        ledger: Where the id is kept.
        now: Milliseconds since 1970.
    """
    known = _kept(ledger)
    if known is None:
        with suppress(InputError):  # another process was quicker
            ledger.record(SERVER, ID, {"id": _first(setting, ledger)}, now)
        known = _kept(ledger)
    return setting.named(str(known))


def _kept(ledger: Ledger) -> str | None:
    found = ledger.records(SERVER).get(ID)
    return None if found is None else str(found["id"])


def _first(setting: Setting, ledger: Ledger) -> str:
    """Give a new id; a campaign that was served before it had one keeps what it was known by."""
    begun = ledger.records("plan").get("plan")
    if begun is not None:
        return str(begun["id"])
    return setting.key if ledger.records(LINK) else f"{setting.plan.name}-{secrets.token_hex(8)}"


def _file_of(place: str | Path) -> Path | None:
    """Give the file of a store; None where it is none."""
    url = to_url(place)
    return Path(str(url.database)) if url.get_backend_name() == "sqlite" else None


def _make_private(out: Path, file: Path | None) -> None:
    """Make the folder and the empty file of a store; close a file that others may read.

    A folder that is there stays as it is. SQLite gives the files beside the store its own mode.
    """
    try:
        out.mkdir(mode=0o700, parents=True, exist_ok=True)
        if file is None or not file.parent.is_dir():
            return
        with suppress(FileExistsError):
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        for one in (file.with_name(file.name + more) for more in BESIDE):
            _close(one)
    except OSError as error:
        raise InputError(f"cannot make {error.filename or out}: {error.strerror}") from None


def _close(file: Path) -> None:
    if file.is_file() and file.stat().st_mode & 0o077:
        with suppress(PermissionError):  # it is another user's, who decides
            file.chmod(0o600)
