"""Opening the store of a campaign that is served, for the server and for commands beside it."""

from __future__ import annotations

from pathlib import Path

from karat.campaign import Setting
from karat.errors import InputError
from karat.money import to_micro
from karat.store import SqlLedger, create_ledger

FILE = "campaign.sqlite"


def open_store(setting: Setting, out: str | Path, store: str | None, now: int) -> SqlLedger:
    """Open a campaign's store, and make it if it is not there.

    Args:
        setting: The campaign.
        out: The folder of what comes out; the store is there if no other is named.
        store: Path or address of the store.
        now: Milliseconds since 1970.

    Raises:
        InputError: The folder cannot be made, or the store holds another campaign.
        StoreError: It cannot be opened.
    """
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {out}: {error.strerror}") from None
    plan = setting.plan
    return create_ledger(
        store or Path(out) / FILE, name=plan.name, cap=to_micro(plan.budget.money),
        currency=plan.prices.currency, tagset=setting.codec, now=now,
    )  # fmt: skip
