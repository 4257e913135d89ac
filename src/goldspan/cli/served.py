"""A campaign and the commands beside it: they name its place, and make none by mistake."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path


def check_served(source: str, out: str, store: str | None) -> None:
    """Refuse a place without a campaign or without the server's secret, and make nothing there.

    Args:
        source: The plan, for the message.
        out: The campaign's folder.
        store: Path or address of the store; None for the one in the folder.

    Raises:
        InputError: There is none.
    """
    from goldspan.errors import InputError
    from goldspan.old_name import variable
    from goldspan.server.opening import FILE as STORE
    from goldspan.server.security.secret import FILE as SECRET
    from goldspan.server.security.secret import VARIABLE
    from goldspan.store import open_ledger

    start = (
        f"start `goldspan serve {source}` first, or give the --out and --store that it was started "
        "with"
    )
    place = Path(out) / STORE
    if store is None and not place.is_file():
        raise InputError(f"{out} holds no campaign: there is no {STORE} in it; {start}")
    try:
        open_ledger(store or place).close()
    except InputError as error:
        raise InputError(f"{str(error).removesuffix(': create one first')}; {start}") from None
    if not (variable(VARIABLE) or (Path(out) / SECRET).is_file()):
        raise InputError(
            f"{out} holds no {SECRET}, the server's secret, and links signed by another would not "
            f"hold; {start}"
        )


def command_line(words: Sequence[str], out: str, store: str | None) -> str:
    """Give a command of the campaign at a place, without the password of a database."""
    from goldspan.store.opening import where_of

    every = ["goldspan", *words, "--out", out]
    if store is not None:
        place = where_of(store)
        every += ["--store", place if "***" in place else store]
    return shlex.join(every)
