"""Opening the store of a campaign that is served, for the server and for commands beside it."""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path

from goldspan.campaign.inputs import CampaignInputs
from goldspan.crowd.atomic import NewPlaces
from goldspan.errors import InputError
from goldspan.store import SqlLedger, create_ledger
from goldspan.store.engine import to_url
from goldspan.store.erasing import forget_listed, list_beside, write_list

FILE = "campaign.sqlite"
SERVER, ID = "server", "id"
"""Kind and name of the record of a campaign's id."""
LABELS = ".labels"
"""Ending of the folder beside a store, or in its campaign's, with labels that took long."""
BESIDE = ("", "-wal", "-shm", "-journal")
"""What SQLite adds to a file's name: all of it holds answers."""
LOCKS = (".lock", ".serve.lock")
"""What goldspan adds to it."""


def open_store(
    inputs: CampaignInputs, out: str | Path, store: str | None, now: int, *,
    private: bool = True, new: NewPlaces | None = None,
) -> SqlLedger:  # fmt: skip
    """Open a campaign's store, and make it if it is not there."""
    place = store or Path(out) / FILE
    plan, file = inputs.plan, _file_of(place)
    with new or NewPlaces() as made:
        made.folder(out, 0o700 if private else 0o777)
        if file is not None and file.parent.is_dir():
            if made.file(file, 0o600 if private else 0o666):
                made.expect(*(file.with_name(file.name + end) for end in (*BESIDE[1:], *LOCKS)))
            if private:
                _make_private(file)
        ledger = create_ledger(
            place, name=plan.name, cap=plan.cap,
            currency=plan.prices.currency, tagset=inputs.plan.tagset, now=now,
            private=plan.crowd.is_served,
        )  # fmt: skip
        try:
            # Forget who was forgotten, where a backup was put in the place of the store
            path = list_of(out, store)
            ledger.labels_folder = path.with_suffix(LABELS)
            if path.is_file():
                forget_listed(ledger.database, [path])
            if ledger.n_forgotten:
                write_list(ledger.database, path)
        except BaseException:
            ledger.close()
            raise
        return ledger


def list_of(out: str | Path, store: str | None) -> Path:
    """Return the path of a campaign's list of the forgotten: beside its file, or in its folder."""
    file = _file_of(store or Path(out) / FILE)
    return list_beside(Path(out) / FILE if file is None else file)


def with_id(inputs: CampaignInputs, ledger: SqlLedger, now: int) -> CampaignInputs:
    """Return the inputs under the campaign's own id, which is made at the first start.

    Links, sessions, tasks and the workers' other names hold for this id. It is random, for two
    campaigns may share a plan and a secret, and kept in the ledger, for the plan may change and the
    ledger be moved.
    """
    known = _kept(ledger)
    if known is None:
        with suppress(InputError):  # another process was quicker
            ledger.record(SERVER, ID, {"id": f"{inputs.plan.name}-{secrets.token_hex(8)}"}, now)
        known = _kept(ledger)
    return inputs.named(str(known))


def _kept(ledger: SqlLedger) -> str | None:
    found = ledger.records(SERVER).get(ID)
    return None if found is None else str(found["id"])


def _file_of(place: str | Path) -> Path | None:
    """Return the file of a store; None where it is none."""
    url = to_url(place)
    name = url.database or ""
    is_file = url.get_backend_name() == "sqlite" and name and not name.startswith((":", "file:"))
    return Path(name) if is_file else None


def _make_private(file: Path) -> None:
    """Close a store that others may read; SQLite gives the files beside it its own mode."""
    try:
        for one in (file.with_name(file.name + more) for more in BESIDE):
            if one.is_file() and one.stat().st_mode & 0o077:
                with suppress(PermissionError):  # it is another user's, who decides
                    one.chmod(0o600)
    except OSError as error:
        raise InputError(f"cannot close {error.filename or file}: {error.strerror}") from None
