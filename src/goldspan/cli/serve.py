"""`goldspan serve`: the campaign's server, for workers and for its requester."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli import reading as r
from goldspan.cli.compiling import notice
from goldspan.cli.output import check_part, say, warn
from goldspan.cli.served import command_line, place_in, read_setting, told_of_damage

if TYPE_CHECKING:
    from goldspan.web import Entrance, ServerSettings
    from goldspan.web.service import Service

DAYS = 30
"""How long the links of the plan's annotators hold."""


def serve(
    source: Annotated[str, typer.Argument(metavar="PLAN", help="The plan, campaign.toml.")],
    out: Annotated[str, typer.Option(help="Folder of what comes out, and of server.key.")] = "out",
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where the campaign is kept: sqlite:///FILE or postgresql://…; by default "
            "campaign.sqlite in the folder.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 is any free one.")] = 8080,
    public_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="What people type: https://labels.example.org behind a proxy; by default the "
            "address listened on.",
            show_default=False,
        ),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Let other machines come without HTTPS.")
    ] = False,
    reset_password: Annotated[
        bool,
        typer.Option(
            "--reset-password", help="Take the requester's password away and end all sessions."
        ),
    ] = False,
    overlap: r.Overlap = None,
    no_loop: Annotated[
        bool, typer.Option("--no-loop", help="Take answers, and decide nothing new.")
    ] = False,
) -> None:
    """Serve a campaign: workers label in their browsers, the requester watches and decides.

    At the first start it prints a link that holds once, to choose the requester's password, and a
    personal link for each of the plan's annotators: links are shown once and kept nowhere. Ctrl-C
    ends it; what was acknowledged is kept, and the same command goes on. A campaign has one server.

    Examples:

      goldspan serve campaign.toml

      goldspan serve campaign.toml --public-url https://labels.example.org

      goldspan links campaign.toml --workers ann,bob
    """
    check_part("server")
    from goldspan.campaign import read_plan
    from goldspan.cli.report import missing_for_pages, write_findings
    from goldspan.crowd.atomic import NewPlaces
    from goldspan.store.engine import HeldError
    from goldspan.store.roles import serving
    from goldspan.web import ServerSettings, create_app, load_keys, open_service
    from goldspan.web import serve as run
    from goldspan.web.running import check_exposure, listen
    from goldspan.web.security.secret import FILE as SECRET
    from goldspan.web.service import check_web

    check_web(read_plan(source, overlap=overlap))
    if not insecure:
        check_exposure(host, public_url or _url(host, port))
    inputs = read_setting(source, overlap=overlap)
    lacks = missing_for_pages()
    if lacks:
        warn(f"goldspan: there will be no report: {lacks}")
    # What is refused until `keep` leaves neither a secret nor a store behind.
    with (
        told_of_damage(store or place_in(out)),
        listen(host, port) as listening,
        NewPlaces(HeldError) as new,
    ):
        url = public_url or _url(host, listening.getsockname()[1])
        new.folder(out, 0o700)
        new.expect(Path(out) / SECRET)
        settings = ServerSettings(load_keys(out), url)
        report = None if lacks else write_findings
        options: dict[str, Any] = {"report": report, "new": new}
        service = open_service(inputs, out, settings.keys, store, **options)
        with _closing(service):
            _log()
            with serving(service.ledger.database, settings.public_url, service.deployment):
                service.begin()
                app = create_app(service, settings)
                new.keep()
                entrance = app.state.house.entrance
                entrance.links.move(settings.public_url)
                people = _still_known(service)
                names = "NAME" if people else "ann,bob"
                links = command_line(["links", source, "--workers", names], out, store)
                _greet(entrance, settings, source, links, people, reset=reset_password)
                try:
                    service.start(loop=not no_loop)
                    with notice.beside_another_display():  # the log
                        run(app, listening)
                finally:
                    service.stop()


@contextmanager
def _closing(service: Service) -> Iterator[None]:
    """Let go of a campaign at the end, and say why the server ended."""
    from goldspan.store.engine import LostError

    try:
        yield
    except LostError:  # the log has said why
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        warn("goldspan: stopped; all answers are kept, the same command goes on")
        raise typer.Exit(130) from None
    finally:
        service.close()


def _still_known(service: Service) -> list[str]:
    """Return the annotators of the plan who were not forgotten, and tell of the others."""
    named, ledger = service.inputs.plan.crowd.annotators, service.ledger
    gone = [name for name in named if ledger.was_forgotten(name)] if ledger.n_forgotten else []
    if gone:
        warn(
            f"goldspan: {len(gone)} names in crowd.annotators are of people who were forgotten, "
            "and get no link: take them out of the plan"
        )
    return [name for name in named if name not in gone]


def _url(host: str, port: int) -> str:
    """Return the address that is listened on."""
    from goldspan.errors import InputError

    if host in {"0.0.0.0", "::"}:  # noqa: S104 - to refuse it
        raise InputError(
            f"{host} is every address of this machine, and none that people can type: say which "
            "with --public-url https://…"
        )
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _greet(
    entrance: Entrance,
    settings: ServerSettings,
    source: str,
    links: str,
    annotators: Sequence[str],
    *,
    reset: bool,
) -> None:
    """Say where the server is, and how the requester and the annotators come in."""
    account = entrance.account
    say(f"goldspan serves {Path(source).name} at {settings.public_url}")
    if reset or not account.has_password:
        token = account.reset() if reset else account.open_setup()
        say(f"choose the requester's password, once, within {settings.setup_minutes:.0f} minutes:")
        say(f"  {settings.address(f'/setup/{token}')}")
    else:
        say(f"the requester logs in at {settings.address('/login')}")
    known = {link.worker for link in entrance.links.all()}
    new = [name for name in annotators if name not in known]
    if new:
        say(f"a personal link for each annotator, shown only now; it holds for {DAYS} days:")
        width = max(map(len, new))
        for link, token in entrance.links.make(new, DAYS):
            say(f"  {link.worker.ljust(width)}  {settings.address(f'/w/{token}')}")
    say(f"links for {'more annotators, or lost ones' if annotators else 'workers'}: {links}")
    say("Ctrl-C ends it")
    sys.stdout.flush()  # the link must be seen now, also where the output is a file


def _log() -> None:
    """Write what happens to standard error; no line holds a token, a cookie or an answer."""
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name, level in (("goldspan", logging.INFO), ("uvicorn", logging.WARNING)):
        logging.getLogger(name).addHandler(handler)
        logging.getLogger(name).setLevel(level)
