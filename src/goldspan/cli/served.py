"""A campaign and the commands that work on it: how its plan is read, where it is kept."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
import typer

if TYPE_CHECKING:
    from goldspan.campaign import CampaignInputs
    from goldspan.errors import GoldspanError


def read_setting(source: str, *, overlap: int | None = None) -> CampaignInputs:
    """Read a plan with its files; every command that works on a campaign begins so.

    What `goldspan run` refuses is therefore refused by `goldspan serve` in the same words, before
    it listens.

    Args:
        source: The plan.
        overlap: Answers of every item, in place of what the plan says.

    Raises:
        InputError: The plan or its files are faulty.
        MissingExtraError: What the plan takes is not installed.
    """
    from goldspan.campaign import read_inputs, read_plan

    plan, folder = read_plan(source, overlap=overlap), Path(source).parent
    if plan.provider is not None:
        from goldspan.web.providers.registry import check_provider

        check_provider(plan)
    return read_inputs(plan, folder)


def check_served(source: str, out: str, store: str | None) -> None:
    """Reject a place without a campaign or without the server's secret, and make nothing there.

    Args:
        source: The plan, for the message.
        out: The campaign's folder.
        store: Path or address of the store; None for the one in the folder.

    Raises:
        InputError: There is none.
    """
    from goldspan.errors import InputError
    from goldspan.old_name import variable
    from goldspan.store import open_ledger
    from goldspan.web.opening import FILE as STORE
    from goldspan.web.security.secret import FILE as SECRET
    from goldspan.web.security.secret import VARIABLE

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


def place_in(out: str) -> Path:
    """Return where a campaign's folder keeps it, if no other store is named."""
    from goldspan.web.opening import FILE

    return Path(out) / FILE


@contextmanager
def told_of_damage(place: str | Path | None) -> Iterator[None]:
    """Turn a failure that a damaged store explains into a message; others stay what they are.

    Numbers and words of a damaged page reach every part of a command, which may fail in any way.

    Args:
        place: Path or address of the store.

    Raises:
        StoreError: The store is damaged.
    """
    from goldspan.errors import GoldspanError

    try:
        yield
    except (GoldspanError, typer.Exit, typer.Abort, click.ClickException, BrokenPipeError):
        raise
    except Exception as error:
        why = None if place is None else _damage(place)
        if why is None:
            raise
        raise why from error


def _damage(place: str | Path) -> GoldspanError | None:
    """Return what is wrong with a store, None if nothing is."""
    from goldspan.errors import GoldspanError
    from goldspan.store import open_ledger
    from goldspan.store.verify import check_whole

    try:
        with open_ledger(place) as ledger:
            check_whole(ledger.database)
    except GoldspanError as error:
        return error
    return None


def command_line(words: Sequence[str], out: str, store: str | None) -> str:
    """Return a command of the campaign at a place, without the password of a database."""
    from goldspan.store.opening import where_of

    every = ["goldspan", *words, "--out", out]
    if store is not None:
        place = where_of(store)
        every += ["--store", place if "***" in place else store]
    return shlex.join(every)
