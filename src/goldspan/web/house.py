"""What every route is given: the campaign, the settings, who asks."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Annotated, cast

from fastapi import Depends, Header, Request, Security
from fastapi.security import APIKeyCookie
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection

from goldspan.campaign.clock import wall_clock
from goldspan.old_name import OLD_NAME
from goldspan.store.journal import Held
from goldspan.web.errors import Refused
from goldspan.web.protocols import ServiceFace
from goldspan.web.security.account import Buckets
from goldspan.web.security.entrance import HEADER, OLD_HEADER, SAFE, Entrance, FormSeal
from goldspan.web.security.sessions import DESK, WORKER, Facts, Session
from goldspan.web.settings import ServerSettings

# --------------------------------------------------------------------------------------------------
# All that the routes of one server share, and how they find it.


@dataclass(frozen=True)
class House:
    """One campaign's server.

    Attributes:
        service: The campaign: `service.work`, `service.desk`.
        settings: How it is run.
        entrance: Who may come in, and how they are known again.
        forms: The tokens of forms that are filled in before there is a session.
        buckets: How often things are done, by the names of `goldspan.web.settings.Rates`.
        held: Whether this process still serves the campaign.
        leaving: Set when the server stops: what would go on for ever ends.
    """

    service: ServiceFace
    settings: ServerSettings
    entrance: Entrance
    forms: FormSeal
    buckets: dict[str, Buckets]
    held: Held
    leaving: Event = field(default_factory=Event)

    @classmethod
    def of(cls, service: ServiceFace, settings: ServerSettings) -> House:
        """Return the house of a service."""
        if settings.clock is wall_clock:
            settings = replace(settings, clock=service.clock)
        rates = vars(settings.rates)
        database = getattr(service.ledger, "database", None)  # a ledger in memory has none
        return cls(
            service,
            settings,
            Entrance.of(service.ledger, service.inputs.key, settings),
            FormSeal(settings.keys.of("form")),
            {name: Buckets(rate, settings.clock) for name, rate in rates.items()},
            Held() if database is None else database.held,
        )

    def cookie_name(self, kind: str) -> str:
        """Return the name of a cookie: "worker", "desk" or "form".

        Over HTTPS the name itself says that no other host has set the cookie.
        """
        return f"__Host-goldspan_{kind}" if self.settings.is_secure else f"goldspan_{kind}"

    def old_cookie_name(self, kind: str) -> str:
        """Return the name that a cookie had before the package was called goldspan."""
        return self.cookie_name(kind).replace("goldspan", OLD_NAME)

    def cookie_of(self, cookies: Mapping[str, str], kind: str) -> str | None:
        """Return the cookie of a kind among those that a browser sent, under either name."""
        return cookies.get(self.cookie_name(kind), cookies.get(self.old_cookie_name(kind)))


async def house_here(request: HTTPConnection) -> House:
    """Return the house (a dependency of FastAPI; `async`, so that it takes no thread)."""
    return house_of(request)


def house_of(request: HTTPConnection) -> House:
    """Return the house that a request came to."""
    return cast("House", request.app.state.house)


# --------------------------------------------------------------------------------------------------
# Who may pass: a route names the person that it needs, and is not called for anybody else.


log = logging.getLogger("goldspan.web.security")
Token = Annotated[
    str | None,
    Header(alias=HEADER, max_length=200, description="Of the page; for requests that change."),
]
# These say in the OpenAPI document which cookie is meant; the door reads the cookie itself.
_worker_cookie = APIKeyCookie(name="goldspan_worker", scheme_name="worker", auto_error=False)
_desk_cookie = APIKeyCookie(name="goldspan_desk", scheme_name="requester", auto_error=False)


def worker_here(request: Request, token: str | None = None) -> Session:
    """Return the session of the worker who asks; may read the ledger.

    Raises:
        Refused: There is none, it has ended, the token is not its own, or it asks too often.
    """
    return _enter(request, WORKER, token)


def requester_here(request: Request, token: str | None = None) -> Session:
    """Return the session of the requester who asks; may read the ledger.

    Raises:
        Refused: As for a worker.
    """
    return _enter(request, DESK, token)


def session_here(request: Request, role: str) -> Session | None:
    """Return the session of somebody who may be nobody."""
    house = house_of(request)
    try:
        return house.entrance.sessions.read(role, house.cookie_of(request.cookies, role))
    except Refused:
        return None


def _enter(request: Request, role: str, token: str | None, facts: Facts | None = None) -> Session:
    house = house_of(request)
    sessions = house.entrance.sessions
    session = sessions.read(role, house.cookie_of(request.cookies, role), facts)
    house.buckets[role].take(session.person)
    given = token or request.headers.get(OLD_HEADER)
    if request.method not in SAFE and not sessions.is_csrf(session, given):
        log.warning("refused: a change in a %s's session without its token", role)
        raise Refused("csrf", "The page is out of date: load it again.", 403)
    return session


async def _worker(
    request: Request, _: Annotated[str | None, Security(_worker_cookie)], token: Token = None
) -> Session:
    return await worker_at_the_door(request, token)


async def worker_at_the_door(request: Request, token: str | None) -> Session:
    """Return the session of the worker who asks.

    Raises:
        Refused: As in `worker_here`.
    """
    return await _at_the_door(request, WORKER, token)


async def _requester(
    request: Request, _: Annotated[str | None, Security(_desk_cookie)], token: Token = None
) -> Session:
    return await _at_the_door(request, DESK, token)


async def _at_the_door(request: Request, role: str, token: str | None) -> Session:
    # A thread costs more than the check, and is taken only where the ledger must be asked.
    house = house_of(request)
    cookie = house.cookie_of(request.cookies, role)
    facts = house.entrance.sessions.at_hand(role, cookie)
    if facts is not None:
        return _enter(request, role, token, facts)
    return await run_in_threadpool(_enter, request, role, token)


WorkerHere = Annotated[Session, Depends(_worker)]
RequesterHere = Annotated[Session, Depends(_requester)]
HouseHere = Annotated[House, Depends(house_here)]
