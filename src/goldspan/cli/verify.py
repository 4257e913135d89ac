"""`goldspan verify`: whether a campaign's store holds what its log says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import check_part, emit_json, say, steps, warn
from goldspan.cli.report import STORE

if TYPE_CHECKING:
    from goldspan.store.verify import Tell, Verification

NOT_WHOLE = 3
"""Exit code of a store that was read and is not what its log says."""
_PARTS = ("pages", "log", "tables")


def verify(
    source: Annotated[
        str,
        typer.Argument(
            metavar="PLAN|STORE",
            help="The plan, campaign.toml; or the campaign's folder, a SQLite file (a backup too), "
            "or postgresql://….",
        ),
    ],
    out: Annotated[str, typer.Option(help="With a plan: the folder of the campaign.")] = "out",
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="With a plan or a folder: where the campaign is kept, if not in "
            "campaign.sqlite in the folder.",
            show_default=False,
        ),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(
            metavar="HASH",
            help="A head that was noted before: it must be that of an entry of the log.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Rows named of each table.")] = 20,
    json: r.AsJson = False,
) -> None:
    """Compare a campaign's tables with its log, and run the database's own check.

    The log's chain of hashes is followed from its first entry to its last, its entries are done
    again in a temporary database, and every row of every table is compared. It may run beside
    `goldspan serve`. Note the head that it prints, outside of the store: --head shows later
    whether the log was written anew.

    Exit codes: 0 the store is whole, 3 it is not, 1 it cannot be opened, 2 wrong usage.

    Examples:

      goldspan verify campaign.toml

      goldspan verify monday.sqlite

      goldspan verify out/ --head 3f5a… --json
    """
    check_part("store")
    from goldspan.store.copies import opened_unchanged
    from goldspan.store.verify import verify as check

    place = place_of(source, out, store)
    with opened_unchanged(place) as database, progress(quiet=json) as tell:
        found = check(database, head=head, most=limit, tell=tell)
    if json:
        emit_json(found.to_dict())
    else:
        _tell(found)
    if not found.is_whole:
        raise typer.Exit(NOT_WHOLE)


def place_of(source: str, out: str, store: str | None) -> str | Path:
    """Return where a campaign is kept that is named by its plan, its folder or its store."""
    if store is not None:
        return store
    if "://" in source:
        return source
    path = Path(source)
    if path.is_dir():
        return path / STORE
    return Path(out) / STORE if path.suffix == ".toml" else path


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Tell]:
    """Show how far a comparison with the log is, if it takes longer than a second."""
    with steps(len(_PARTS), quiet=quiet) as step:
        begun: list[str] = []

        def tell(part: str, done: int, total: int) -> None:
            if part not in begun:
                begun.append(part)
                step(f"checking the {part}")
            step.part(done, total)

        yield tell


def _tell(found: Verification) -> None:
    for note in found.notes:
        warn(f"goldspan: {note}")
    if found.is_whole:
        log = f"the {found.n_events} entries of its log"
        say(f"{found.where} is whole: its tables are what {log} say")
        say(f"rows compared: {_counted(found.n_rows)}")
        say(f"head: {found.head}")
        return
    say(f"{found.where} is not what its log says:")
    for line in found.lines():
        say(f"  {line}")
    if found.head:
        say(f"head: {found.head} (of the {found.n_events} entries that could be followed)")
    say("keep this file as it is, and restore the newest backup that is whole: goldspan restore")


def _counted(rows: dict[str, Any]) -> str:
    return ", ".join(f"{count} {name}" for name, count in rows.items() if count)
