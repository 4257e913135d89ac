"""`goldspan serve`: one campaign or several, in one process or in more."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from goldspan.cli.campaign import missing_for_pages, write_findings
from goldspan.cli.options import (
    MORE,
    AllowCode,
    AsJson,
    Overlap,
    Place,
    Places,
    PublicUrl,
    at_campaigns,
    flag,
    option,
    told_of_damage,
)
from goldspan.cli.output import check_part, print_result, warn
from goldspan.crowd.atomic import NewPlaces
from goldspan.errors import GoldspanError, InputError
from goldspan.spans.notebook import counted

if TYPE_CHECKING:
    from fastapi import FastAPI

    from goldspan.campaign.inputs import CampaignInputs
    from goldspan.web import Auth, ServerSettings
    from goldspan.web.dependencies import ServerContext
    from goldspan.web.engine import LoopFiles
    from goldspan.web.processes import Child, Hosted
    from goldspan.web.service import Service

DAYS = 30
"""How long the links of the plan's annotators hold."""


@at_campaigns
def serve(
    places: Places,
    host: str = option("Address to listen on.", default="127.0.0.1"),
    port: int = option("Port to listen on; 0 picks a free one.", default=8080, min=0, max=65535),
    public_url: PublicUrl = None,
    insecure: bool = flag("Allow other machines to connect without HTTPS.", "--insecure"),
    trusted_proxies: str | None = option(
        "Addresses or networks of proxies that may name the client, separated by commas; by"
        " default this machine.",
        metavar="LIST",
        panel=MORE,
    ),
    reset_password: bool = flag(
        "Remove the requester's password and end all sessions.", "--reset-password"
    ),
    overlap: Overlap = None,
    allow_code: AllowCode = None,
    processes: int = option(
        "Web processes that answer requests; more than one needs PostgreSQL.",
        default=1,
        min=1,
        max=64,
    ),
    one_process: bool = flag(
        "Compute in the process that serves the pages: less memory, but pages wait.",
        "--one-process",
        panel=MORE,
    ),
    no_loop: bool = flag(
        "Only accept answers; start no rounds and make no decisions.", "--no-loop", panel=MORE
    ),
    metrics_port: int | None = option(
        "Offer Prometheus metrics at this port of 127.0.0.1; further web processes take the next.",
        min=0,
        max=65535,
        panel=MORE,
    ),
    log_format: Literal["text", "json"] = option(
        "Format of the log: text (logfmt) or json.", default="text", panel=MORE
    ),
    log_level: Literal["info", "debug"] = option(
        "What is logged: debug adds the requests that succeed.", default="info", panel=MORE
    ),
    json: AsJson = False,
) -> None:
    """Serve a campaign: annotators label in their browsers, the requester watches and decides.

    The requester is the person who runs the campaign. At its first start, the server prints a
    one-time link with which the requester chooses a password, and a personal link for each
    annotator in the plan. Links are shown only once, and are not stored.

    Several plans, or a folder of plans, are served together: each campaign has its own store and
    links, at /c/NAME, and the requester sees a list of all campaigns.

    Ctrl-C stops the server; all acknowledged answers are saved. The same command starts it again.

    Examples:

      goldspan serve campaign.toml

      goldspan serve campaign.toml --public-url https://labels.example.org
    """
    check_part("server")
    from goldspan.web.logs import open_log
    from goldspan.web.metrics import free_ports
    from goldspan.web.processes import CAN_SPLIT, loop_folder
    from goldspan.web.running import check_exposure, listen, read_proxies
    from goldspan.web.settings import Keys, ServerSettings

    if processes > 1:
        _check_shared(places, one_process=one_process)
    named, proxies = places.named(), read_proxies(trusted_proxies)
    if not places.is_several:
        _check(named[""], overlap)
    if not insecure:
        check_exposure(host, public_url or _url(host, port))
    lacks = missing_for_pages()
    asked = _Asked(
        {"overlap": overlap, "allow_code": None if no_loop else allow_code or []},
        reset=reset_password, has_report=not lacks, is_shared=processes > 1,
        apart=CAN_SPLIT and not one_process and not no_loop, has_loop=not no_loop,
        log={"log_format": log_format, "log_level": log_level}, proxies=proxies,
    )  # fmt: skip
    # What is faulty in the files of a plan that is alone is said before anything is opened.
    inputs = None if places.is_several else named[""].inputs(**asked.reading)
    if lacks:
        warn(f"goldspan: there will be no report: {lacks}")
    with _ended(), listen(host, port) as listening, ExitStack() as stack:
        # Each web process has its own; one that is taken ends the start.
        scraped = [] if metrics_port is None else free_ports(metrics_port, processes)
        url = public_url or _url(host, listening.getsockname()[1])
        # These keys sign nothing: every campaign and the list have their own.
        settings = ServerSettings(Keys.new(), url, processes=processes)
        loops = stack.enter_context(loop_folder()) if asked.apart else None
        open_log(log_format, log_level)
        opened: list[_Opened] = []
        broken: dict[str, str] = {}
        for number, (name, place) in enumerate(named.items()):
            loop_files = None if loops is None else loops / str(number)
            with _reported(name, broken):
                opened.append(_open(name, place, inputs, asked, settings, loop_files, stack))
        server = _Server(opened, broken, settings, asked)
        if places.is_several:
            server.open_list(places.out, stack)
        address = server.offer_metrics(scraped, stack) if scraped else None
        facts = server.facts(address)
        print_result(facts, server.greeting(facts), as_json=json)
        sys.stdout.flush()  # links must be seen now, also where the output is a file
        server.start(stack)
        if processes == 1:
            server.serve(listening)
        else:
            server.watch(processes, listening.fileno(), scraped, stack)


@dataclass(frozen=True)
class _Asked:
    """What was asked for on the command line, for every campaign."""

    reading: dict[str, Any]  # How a plan is read: `Place.inputs`
    reset: bool
    has_report: bool
    is_shared: bool
    apart: bool
    has_loop: bool
    log: dict[str, Any]  # Its format and level
    proxies: tuple[str, ...]


@dataclass(frozen=True)
class _Opened:
    """A campaign that is open."""

    name: str  # In addresses; "" alone
    place: Place
    settings: ServerSettings  # How it is served
    app: FastAPI
    people: list[str]  # The annotators of the plan who have links
    made: dict[str, Any]  # Links that were made now
    loop_files: LoopFiles | None  # Where its loop is asked, in a process of its own

    @property
    def context(self) -> ServerContext:
        """The context of the application."""
        found: ServerContext = self.app.state.context
        return found

    @property
    def service(self) -> Service:
        """The campaign."""
        return self.context.service

    @property
    def hosted(self) -> Hosted:
        """The campaign for another process."""
        from goldspan.web.processes import Hosted

        assert self.loop_files is not None
        return Hosted.of(self.service, self.loop_files, self.place.store)


def _check(place: Place, overlap: int | None) -> None:
    """Reject a plan for another crowd."""
    from goldspan.campaign import read_plan
    from goldspan.web.service import check_web

    check_web(read_plan(place.plan, overlap=overlap))


def _open(
    name: str, place: Place, inputs: CampaignInputs | None, asked: _Asked,
    settings: ServerSettings, loop_files: Path | None, stack: ExitStack,
) -> _Opened:  # fmt: skip
    """Open a campaign; what is open of one that fails is closed, and what was made is removed."""
    from goldspan.store.engine import HeldError
    from goldspan.store.roles import serving
    from goldspan.web import create_app, load_keys, open_service
    from goldspan.web.engine import LoopFiles
    from goldspan.web.settings import CAMPAIGNS
    from goldspan.web.settings import FILE as SECRET

    if inputs is None:
        _check(place, asked.reading["overlap"])
        inputs = place.inputs(**asked.reading)
    with ExitStack() as own:
        own.enter_context(told_of_damage(place.address))
        # What is rejected before `keep` leaves neither a secret nor a store behind.
        new = own.enter_context(NewPlaces(HeldError))
        new.folder(place.out, 0o700)
        new.expect(Path(place.out) / SECRET)
        keys, prefix = load_keys(place.out), f"{CAMPAIGNS}{name}" if name else ""
        settings = replace(settings, keys=keys, prefix=prefix)
        at = None if loop_files is None else LoopFiles(loop_files)
        options: dict[str, Any] = {"report": write_findings if asked.has_report else None}
        options |= {"new": new, "watcher": None if at is None else at.watcher}
        service = open_service(inputs, place.out, keys, place.store, **options)
        own.callback(service.close)
        database, address = service.ledger.database, settings.address()
        held = serving(database, address, service.deployment, shared=asked.is_shared)
        own.enter_context(held)
        service.begin()
        app = create_app(service, settings)
        new.keep()
        auth = app.state.context.auth
        auth.links.move(address)
        people = _still_known(service)
        made = _account(auth, settings, reset=asked.reset, by_list=bool(name))
        made["links"] = _new_links(auth, settings, people)
        stack.enter_context(own.pop_all())
    return _Opened(name, place, settings, app, people, made, at)


@dataclass
class _Server:
    """The campaigns that are served, and the processes beside this one."""

    opened: list[_Opened]
    broken: dict[str, str]
    settings: ServerSettings
    asked: _Asked
    listed: ServerContext | None = None
    setup: str | None = None
    _list: tuple[Path, tuple[int, int]] | None = None

    def open_list(self, out: str, stack: ExitStack) -> None:
        """Open the list of several campaigns."""
        from goldspan.campaign.clock import CampaignClock
        from goldspan.store.roles import serving
        from goldspan.web import load_keys
        from goldspan.web.app import list_context, open_list

        if not self.opened:
            raise InputError("none of the plans can be served: correct what is said above")
        self.settings = replace(self.settings, keys=load_keys(out))
        ledger = stack.enter_context(open_list(out))
        stack.enter_context(serving(ledger.database, self.settings.address(), "list"))
        self.listed = list_context(ledger, self.settings)
        assert isinstance(self.listed.settings.clock, CampaignClock)
        self._list = Path(out), self.listed.settings.clock.moment
        made = _account(self.listed.auth, self.settings, reset=self.asked.reset)
        self.setup = made["setup"]

    def offer_metrics(self, scraped: Sequence[int], stack: ExitStack) -> str:
        """Offer the metrics of this process; return the address, or the first of several."""
        from goldspan.web.metrics import address_of, offer_metrics

        if len(scraped) == 1:
            metrics = {one.name: one.context.metrics for one in self.opened}
            stack.enter_context(offer_metrics(metrics, scraped[0]))
        return address_of(scraped[0])

    def facts(self, metrics: str | None) -> dict[str, Any]:
        """Return what a program is told: address, links, and what is not served."""
        rows = [self._facts(one) for one in self.opened]
        if self.listed is None:
            (row,) = rows
            return {
                "plan": row["plan"], "url": row["url"], "metrics": metrics,
                "login": row["login"], "setup": row["setup"], "links": row["links"],
                "invite": row["invite"],
            }  # fmt: skip
        settings = self.settings
        for row in rows:
            del row["login"], row["setup"]
        return {
            "url": settings.address(), "metrics": metrics, "login": settings.address("/login"),
            "setup": self.setup, "campaigns": rows,
            "not_served": [{"name": n, "error": why} for n, why in self.broken.items()],
        }  # fmt: skip

    def _facts(self, one: _Opened) -> dict[str, Any]:
        names = "NAME" if one.people else "ann,bob"
        invite = one.place.command(["invite", one.place.plan, "--workers", names])
        where = {"name": one.name, "plan": one.place.plan, "url": one.settings.address()}
        return {**where, **one.made, "invite": invite}

    def greeting(self, facts: dict[str, Any]) -> Iterator[str]:
        """Say where the server is, with the links of the requester and the annotators."""
        if facts["metrics"]:
            yield f"metrics, for this machine alone: {facts['metrics']}"
        if self.listed is None:
            yield f"goldspan serves {Path(facts['plan']).name} at {facts['url']}"
        else:
            yield f"goldspan serves {counted(len(self.opened), 'campaign')} at {facts['url']}"
        if facts["setup"]:
            minutes = f"{self.settings.setup_minutes:.0f} minutes"
            yield f"choose the requester's password, once, within {minutes}:"
            yield f"  {facts['setup']}"
        else:
            yield f"the requester logs in at {facts['login']}"
        for one, row in zip(self.opened, facts.get("campaigns", [facts]), strict=True):
            if self.listed is not None:
                yield f"{one.name} is at {row['url']}"
            yield from _links_of(row, one.people)
        yield "Ctrl-C ends it"

    def start(self, stack: ExitStack) -> None:
        """Start the loops, in processes of their own or here."""
        from goldspan.web.processes import loop_of

        for one in self.opened:
            stack.callback(one.service.stop)
            one.service.start(loop=one.loop_files is None and self.asked.has_loop)
        for one in self.opened:
            if one.loop_files is not None:
                self._add(loop_of(one.hosted, **self.asked.log), stack)

    def serve(self, listening: Any) -> None:
        """Answer requests in this process, until it is told to end."""
        from goldspan.web import serve as run
        from goldspan.web.app import Listed, create_list

        app: Any = self.opened[0].app
        if self.listed is not None:
            found = [Listed(one.name, one.app) for one in self.opened]
            found += [Listed(name, error=error) for name, error in self.broken.items()]
            app = create_list(self.listed, found)
        run(app, listening, self.asked.proxies)

    def watch(self, n: int, listening: int, scraped: Sequence[int], stack: ExitStack) -> None:
        """Let n other processes answer requests, until this one is told to end."""
        from goldspan.web.processes import Child, WebPart

        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        hosted = {one.name: one.hosted for one in self.opened}
        for k in range(n):
            metrics = scraped[k] if scraped else None
            part = WebPart(
                hosted, self.broken, self.settings, self._list, listening, metrics,
                self.asked.proxies,
            )  # fmt: skip
            child = Child(f"web process {k + 1}", part, **self.asked.log, fds=[listening])
            self._add(child, stack)
        while all(one.context.held.lost is None for one in self.opened):
            time.sleep(0.5)

    def _add(self, child: Child, stack: ExitStack) -> None:
        stack.callback(child.stop)
        child.start()


def _check_shared(places: Places, *, one_process: bool) -> None:
    """Reject several web processes where they cannot share a campaign."""
    from goldspan.web.processes import CAN_SPLIT

    if one_process or not CAN_SPLIT:
        raise InputError("several web processes need one for the loop: leave out --one-process")
    if not places.is_shared:
        raise InputError(
            "several web processes need PostgreSQL, which they share: give --store postgresql://…"
        )


@contextmanager
def _reported(name: str, broken: dict[str, str]) -> Iterator[None]:
    """Report one of several campaigns that cannot be opened; the error of one alone ends all."""
    try:
        yield
    except GoldspanError as error:
        if not name:
            raise
        broken[name] = str(error)
        warn(f"goldspan: {name} is not served: {error}")


@contextmanager
def _ended() -> Iterator[None]:
    """Say why the server ended."""
    from goldspan.store.engine import LostError

    try:
        yield
    except LostError:  # the log has said why
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        warn("goldspan: stopped; all answers are saved, and the same command goes on")
        raise typer.Exit(130) from None


def _still_known(service: Service) -> list[str]:
    """Return the annotators of the plan who were not forgotten, and tell of the others."""
    named, ledger = service.inputs.plan.crowd.names, service.ledger
    gone = [name for name in named if ledger.was_forgotten(name)] if ledger.n_forgotten else []
    if gone:
        warn(
            f"goldspan: {len(gone)} names in crowd.annotators are of people who were forgotten, "
            "and get no link: take them out of the plan"
        )
    return [name for name in named if name not in gone]


def _url(host: str, port: int) -> str:
    """Return the address that is listened on."""
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - to reject it
        raise InputError(
            f"{host} stands for every address of this machine, which nobody can type: name the "
            "one that people use with --public-url https://…"
        )
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _account(
    auth: Auth, settings: ServerSettings, *, reset: bool, by_list: bool = False
) -> dict[str, Any]:
    """Make the requester's link if they have no password; none where they come by the list."""
    token = auth.account.reset() if reset else None
    if by_list:
        return {"login": None, "setup": None}
    if token is None and not auth.account.has_password:
        token = auth.account.open_setup()
    setup = None if token is None else settings.address(f"/setup/{token}")
    return {"login": settings.address("/login"), "setup": setup}


def _new_links(auth: Auth, settings: ServerSettings, annotators: Sequence[str]) -> dict[str, str]:
    """Make links for annotators who have none."""
    known = {link.worker for link in auth.links.all()}
    new = [name for name in annotators if name not in known]
    made = auth.links.make(new, DAYS) if new else []
    return {link.worker: settings.address(f"/w/{token}") for link, token in made}


def _links_of(facts: Mapping[str, Any], annotators: Sequence[str]) -> Iterator[str]:
    """Show the links of a campaign's annotators, and how to make more."""
    if facts["links"]:
        yield f"a personal link for each annotator, shown only now; it is valid for {DAYS} days:"
        width = max(map(len, facts["links"]))
        yield from (f"  {name.ljust(width)}  {url}" for name, url in facts["links"].items())
    whom = "more annotators, or lost ones" if annotators else "workers"
    yield f"links for {whom}: {facts['invite']}"
