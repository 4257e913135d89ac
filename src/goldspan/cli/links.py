"""`goldspan links`: the personal links of workers, made and taken back without a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import Overwrite, check_part, emit_json, listed, say, table

if TYPE_CHECKING:
    from goldspan.campaign import CampaignInputs
    from goldspan.web import Entrance, ServerSettings
    from goldspan.web.security.sessions import Link


def links(
    source: Annotated[str, typer.Argument(metavar="PLAN", help="The plan, campaign.toml.")],
    workers: Annotated[
        list[str] | None,
        typer.Option(help="Make a link for each: ann,bob", metavar="NAMES", show_default=False),
    ] = None,
    addresses: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Workers and their e-mail addresses: worker,address a line.",
            show_default=False,
        ),
    ] = None,
    mail: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Write a message to send per worker, with their link.",
            show_default=False,
        ),
    ] = None,
    overwrite: Overwrite = False,
    days: Annotated[float, typer.Option(help="How long they hold.")] = 30,
    revoke: Annotated[
        list[str] | None,
        typer.Option(help="Take links back, by id.", metavar="ID", show_default=False),
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="Show all links that were made.")] = False,
    out: Annotated[str, typer.Option(help="Folder of the campaign, with server.key.")] = "out",
    store: Annotated[
        str | None,
        typer.Option(metavar="URL", help="As for `goldspan serve`.", show_default=False),
    ] = None,
    public_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="As for `goldspan serve`.", show_default=False),
    ] = None,
    json: r.AsJson = False,
) -> None:
    """Make personal links for workers, show them, or take them back (after `goldspan serve`).

    Whoever has a link is the worker: send each to one person. A link is shown once and kept
    nowhere; make a new one for who has lost theirs, and take the old one back.

    Examples:

      goldspan links campaign.toml --workers ann,bob --days 14

      goldspan links campaign.toml --addresses team.csv --mail letters

      goldspan links campaign.toml --list

      goldspan links campaign.toml --revoke 7d0c5a2e41f34f0b9f3a6f2c8e1b4d55
    """
    check_part("server")
    from goldspan.web.providers.outbox import read_addresses

    known = {} if addresses is None else read_addresses(addresses)
    names, gone = listed(workers, "--workers") or list(known), listed(revoke, "--revoke") or []
    if not (names or gone or show):
        raise typer.BadParameter("say --workers, --revoke or --list")
    with (
        _entrance(source, out, store, public_url) as (inputs, entrance, settings),
        _folder(mail, names, overwrite=overwrite) as written,
    ):
        for name in gone:
            entrance.links.revoke(name)
        made = entrance.links.make(names, days) if names else []
        urls = [(link, settings.address(f"/w/{token}")) for link, token in made]
        every = entrance.links.all() if show else []
        if written is not None:
            _write_mails(written, inputs, known, urls)
    if json:
        emit_json({
            "made": [{**_facts(link), "url": url} for link, url in urls],
            "revoked": gone,
            "links": [_facts(link) for link in every],
        })  # fmt: skip
        return
    for link, url in urls:
        say(f"{link.worker}\t{url}" if mail is None else f"{link.worker}\ta message in {mail}")
    for name in gone:
        say(f"{name} no longer holds")
    if show:
        say(_table(every))


@contextmanager
def _entrance(
    source: str, out: str, store: str | None, public_url: str | None
) -> Iterator[tuple[CampaignInputs, Entrance, ServerSettings]]:
    """Open the store and the secret of a campaign that was begun."""
    from dataclasses import replace

    from goldspan.campaign.clock import CampaignClock, wall_clock
    from goldspan.cli.served import check_served, read_setting
    from goldspan.web import Entrance, ServerSettings, load_keys
    from goldspan.web.opening import open_store, with_id

    inputs = read_setting(source)
    check_served(source, out, store)
    settings = ServerSettings(load_keys(out))
    with open_store(inputs, out, store, wall_clock()) as ledger:
        settings = replace(settings, clock=CampaignClock(ledger))
        inputs = with_id(inputs, ledger, settings.clock())
        entrance = Entrance.of(ledger, inputs.key, settings)
        place = public_url or entrance.links.place() or settings.public_url
        yield inputs, entrance, replace(settings, public_url=place)


@contextmanager
def _folder(mail: str | None, names: list[str], *, overwrite: bool) -> Iterator[Path | None]:
    """Make the folder of the messages before any link is made: a link is shown once."""
    from goldspan.crowd.atomic import NewPlaces
    from goldspan.web.providers.outbox import check_new

    if mail is None:
        yield None
        return
    if not overwrite:
        check_new(Path(mail), names)
    with NewPlaces() as new:
        new.folder(mail, 0o700)
        yield Path(mail)


def _write_mails(
    folder: Path, inputs: CampaignInputs, known: dict[str, str], urls: list[tuple[Link, str]]
) -> None:
    from goldspan.web.providers.outbox import Invitation, write_mails

    page = inputs.plan.page
    text = inputs.guideline
    title = page.title or inputs.plan.name
    write_mails(folder, [
        Invitation(link.worker, known.get(link.worker, ""), url, link.expires, title, text)
        for link, url in urls
    ])  # fmt: skip


def _facts(link: Link) -> dict[str, Any]:
    return {
        "id": link.id,
        "worker": link.worker,
        "issued": _day(link.issued),
        "expires": _day(link.expires),
        "revoked": link.revoked,
    }


def _table(every: list[Link]) -> str:
    rows = [["worker", "id", "made", "expires", ""]]
    for one in every:
        gone = "revoked" if one.revoked else ""
        rows.append([one.worker, one.id, _day(one.issued), _day(one.expires), gone])
    return table(rows)


def _day(time: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(time / 1000, UTC).isoformat(timespec="seconds")
