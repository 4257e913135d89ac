"""`goldspan backup` and `goldspan restore`: a campaign in one file, copied while people work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from goldspan.cli.output import Overwrite, check_outputs, check_part, say
from goldspan.cli.report import STORE

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
    overwrite: Overwrite = False,
) -> None:
    """Copy a campaign into one file, also while it is served: one moment of it, checked.

    The server's secret is not in it: keep server.key of the folder too, or all links and sessions
    end with a restore. For PostgreSQL use its own pg_dump.

    Examples:

      goldspan backup out/ monday.sqlite

      goldspan backup out/ latest.sqlite --overwrite
    """
    check_part("store")
    check_outputs(file, inputs=[str(Path(out) / STORE)], overwrite=overwrite)
    from goldspan.store import backup_ledger, open_ledger

    with open_ledger(store or Path(out) / STORE) as ledger:
        backup_ledger(ledger, file)
    say(f"copied to {file}")


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
    """Make a campaign's folder of a backup, after checking it from its first entry to its last.

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
        with restore_ledger(file, place, lists=forgotten or ()) as ledger:
            name, n, gone = ledger.name, ledger.n_events, ledger.n_forgotten
    say(f"{place} holds the campaign {name!r}, {n} entries of its log")
    if gone:
        say(f"forgotten in it: {gone}")
