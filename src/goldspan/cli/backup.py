"""`goldspan backup` and `goldspan restore`: a campaign in one file, copied while people work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from goldspan.cli.output import Overwrite, check_outputs, check_part, say, warn
from goldspan.cli.report import STORE
from goldspan.cli.served import told_of_damage
from goldspan.cli.verify import progress

Store = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Where the campaign is kept, if not in campaign.sqlite in the folder.",
        show_default=False,
    ),
]


def backup(
    out: Annotated[str, typer.Argument(metavar="OUT", help="The campaign's folder.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="The copy.")],
    store: Store = None,
    damaged: Annotated[
        bool, typer.Option("--damaged", help="Copy also what is not whole, and say what is wrong.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Copy a campaign into one file, also while it is served: one moment of it, checked.

    The copy's tables are compared with its log, as by `goldspan verify`; if they differ, nothing is
    written, so that a damaged store does not replace a backup that is whole.

    The server's secret is not in it: keep server.key of the folder too, or all links and sessions
    end with a restore. For PostgreSQL use its own pg_dump.

    Examples:

      goldspan backup out/ monday.sqlite

      goldspan backup out/ latest.sqlite --overwrite
    """
    check_part("store")
    check_outputs(file, inputs=[str(Path(out) / STORE)], overwrite=overwrite)
    from goldspan.store import backup_ledger, open_ledger

    place = store or Path(out) / STORE
    with told_of_damage(place), open_ledger(place) as ledger, progress() as tell:
        found = backup_ledger(ledger, file, damaged=damaged, tell=tell)
    for line in found.lines():
        warn(f"goldspan: {line}")
    if not found.is_whole:
        warn(f"goldspan: {file} is a copy of a damaged store: keep the backups made before it")
    say(f"copied to {file}; head of its log: {found.head}")


def restore(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `goldspan backup` made.")],
    out: Annotated[str, typer.Argument(metavar="OUT", help="A folder without a campaign.")],
    forgotten: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="A list of the forgotten that lies elsewhere: campaign.sqlite.forgotten.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Make a campaign's folder of a backup, after comparing all its tables with its log.

    A backup that is not whole is refused, and nothing is written.

    Who was forgotten since is forgotten again: files `*.forgotten` beside the backup and in the
    folder are read for that.

    Then `goldspan serve` or `goldspan run` with this folder as --out goes on from there.

    Examples:

      goldspan restore monday.sqlite again/
    """
    check_part("store")
    from goldspan.crowd.atomic import NewPlaces
    from goldspan.store import restore_ledger

    place = Path(out) / STORE
    with NewPlaces() as new:
        new.folder(out)
        new.expect(place)
        with (
            progress() as tell,
            restore_ledger(file, place, lists=forgotten or (), tell=tell) as ledger,
        ):
            name, n, gone = ledger.name, ledger.n_events, ledger.forgotten()
    say(f"{place} holds the campaign {name!r}, {n} entries of its log")
    if gone:  # a copy may know one person by two pseudonyms
        say(f"forgotten in it: {len({one['hash'] for one in gone})}")
