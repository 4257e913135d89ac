"""What routes depend on: the server's context, and who sends the request."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from inspect import iscoroutinefunction
from threading import Event
from typing import Annotated, Any, cast

from fastapi import Depends, Header, Request, Security
from fastapi.routing import APIRoute
from fastapi.security import APIKeyCookie, HTTPBearer, SecurityScopes
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection

from goldspan.campaign.clock import wall_clock
from goldspan.store import SqlLedger
from goldspan.store.journal import Held
from goldspan.web.errors import Refused
from goldspan.web.metrics import Metrics
from goldspan.web.security.access import (
    ALL,
    HEADER,
    ONLY_REVIEW,
    SAFE,
    Auth,
    Caller,
    FormSigner,
    bearer_of,
)
from goldspan.web.security.account import Buckets, OwnThreads, address_name
from goldspan.web.security.sessions import DESK, REVIEWER, WORKER, Facts, Session
from goldspan.web.service import Service
from goldspan.web.settings import STORED, ServerSettings

# --------------------------------------------------------------------------------------------------
# What the routes of a server share


PLACES = {"desk": (1, 31), "view": (2, 10), "file": (1, 3)}
"""Threads of the desk, and how many requests may wait for one: for what the store tells, for what
the loop's process is asked, and for downloads."""
_BUSY = Refused("busy", "The server has too much to do for the desk: try again.", 503, retry=5)


@dataclass(frozen=True)
class ServerContext:
    """One campaign's server."""

    service: Service  # The campaign: `service.work`, `service.desk`
    settings: ServerSettings  # How it is run
    auth: Auth  # Links, the requester's account and sessions
    forms: FormSigner  # The tokens of forms that are filled in before there is a session
    # How often things are done, by the names of `goldspan.web.settings.Rates`
    buckets: dict[str, Buckets]
    held: Held  # Whether this process still serves the campaign
    metrics: Metrics
    leaving: Event = field(default_factory=Event)  # Set when the server stops
    threads: dict[str, OwnThreads] = field(
        default_factory=lambda: {name: OwnThreads(name, *n, _BUSY) for name, n in PLACES.items()}
    )

    @classmethod
    def of(
        cls, service: Service | None, ledger: SqlLedger, key: str, settings: ServerSettings
    ) -> ServerContext:
        """Return the context of a campaign, or of the list, which has no service."""
        return cls(
            cast("Service", service), settings, Auth.of(ledger, key, settings),
            FormSigner(settings.keys.of("form")), make_buckets(ledger, settings),
            ledger.database.held, Metrics(service),
        )  # fmt: skip

    def cookie_name(self, kind: str) -> str:
        """Return the name of a cookie: "worker", "desk" or "form".

        Over HTTPS the name itself says that no other host has set the cookie. It holds for all
        paths then, so that each of several campaigns has names of its own.
        """
        name = f"goldspan_{kind}{self.settings.prefix.replace('/', '_')}"
        return f"__Host-{name}" if self.settings.is_secure else name

    def cookie_of(self, cookies: Mapping[str, str], kind: str) -> str | None:
        """Return the cookie of a kind among those that a browser sent."""
        return cookies.get(self.cookie_name(kind))


def make_buckets(ledger: SqlLedger, settings: ServerSettings) -> dict[str, Buckets]:
    """Return what keeps the rates of a server, of several processes those of `STORED` together."""
    n, key = settings.processes, settings.keys.of("rates")
    return {
        name: Buckets(rate, wall_clock, ledger, name, key)
        if n > 1 and name in STORED
        else Buckets(rate.shared(n), settings.clock)
        for name, rate in vars(settings.rates).items()
    }


async def context_here(request: HTTPConnection) -> ServerContext:
    """Return the context (a dependency of FastAPI; `async`, so that it takes no thread)."""
    return context_of(request)


BROWSER = "the requester, at the desk"
"""Who asks, in the campaign's log."""


def context_of(request: HTTPConnection) -> ServerContext:
    """Return the context that a request came to."""
    return cast("ServerContext", request.app.state.context)


class DeskRoute(APIRoute):
    """A route of the desk, in threads of its own: annotators wait neither for it nor for a loop."""

    threads = "desk"

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        async def act(**given: Any) -> Any:
            context = given.get("context") or context_of(given["request"])
            return await context.threads[self.threads](partial(endpoint, **given))

        own = endpoint if iscoroutinefunction(endpoint) else wraps(endpoint)(act)
        super().__init__(path, own, **options)


def address_here(request: HTTPConnection) -> str:
    """Return the name under which what comes from the request's address is counted."""
    return address_name(request.client.host if request.client else None)


# --------------------------------------------------------------------------------------------------
# Authentication: a route names the role that it needs as a parameter


log = logging.getLogger("goldspan.web.security")
Token = Annotated[
    str | None,
    Header(alias=HEADER, max_length=200, description="Of the page; for requests that change."),
]
# For the OpenAPI document alone; `_authorize` reads the cookie itself.
_worker_cookie = APIKeyCookie(name="goldspan_worker", scheme_name="worker", auto_error=False)
_desk_cookie = APIKeyCookie(name="goldspan_desk", scheme_name="requester", auto_error=False)
_bearer = HTTPBearer(
    scheme_name="token", auto_error=False,
    description="A token of `goldspan tokens add`, with the scopes that the operation names.",
)  # fmt: skip


def worker_here(request: Request, token: str | None = None) -> Session:
    """Return the session of the worker who asks; may read the ledger."""
    return _authorize(request, WORKER, token)


def requester_here(request: Request, token: str | None = None) -> Session:
    """Return the session of the requester who asks; may read the ledger."""
    return _authorize(request, DESK, token)


def reviewer_here(request: Request) -> Session:
    """Return the session of the reviewer who asks; may read the ledger."""
    return _authorize(request, REVIEWER, None)


def session_here(request: Request, role: str) -> Session | None:
    """Return the session of somebody who may be nobody."""
    context = context_of(request)
    try:
        return context.auth.sessions.read(role, context.cookie_of(request.cookies, role))
    except Refused:
        return None


def _authorize(
    request: Request, role: str, token: str | None, facts: Facts | None = None
) -> Session:
    context = context_of(request)
    sessions = context.auth.sessions
    session = sessions.read(role, context.cookie_of(request.cookies, role), facts)
    context.buckets[role].take(session.person)
    if request.method not in SAFE and not sessions.is_csrf(session, token):
        log.warning("refused: a change in a %s's session without its token", role)
        raise Refused("csrf", "The page is out of date: load it again.", 403)
    return session


async def _worker(
    request: Request, _: Annotated[str | None, Security(_worker_cookie)], token: Token = None
) -> Session:
    return await _authenticate(request, WORKER, token)


async def _requester(
    request: Request, _: Annotated[str | None, Security(_desk_cookie)], token: Token = None
) -> Session:
    return await _authenticate(request, DESK, token)


async def _authenticate(request: Request, role: str, token: str | None) -> Session:
    # A thread costs more than the check, and is taken only where the ledger must be asked.
    context = context_of(request)
    cookie = context.cookie_of(request.cookies, role)
    facts = context.auth.sessions.at_hand(role, cookie)
    if facts is not None:
        return _authorize(request, role, token, facts)
    return await run_in_threadpool(_authorize, request, role, token)


async def caller_here(
    request: Request,
    needed: SecurityScopes,
    _: Annotated[str | None, Security(_desk_cookie)],
    __: Annotated[object, Security(_bearer)],
    token: Token = None,
) -> Caller:
    """Return who asks the desk, by a token or by a session, if they have the scopes of the route.

    A request with a token needs no cookie and no CSRF token: no browser sends it by itself. Of a
    request that has both the token alone counts.
    """
    header = request.headers.get("authorization")
    caller = await _person(request, token) if header is None else await _program(request, header)
    caller.check(*needed.scopes)
    return caller


async def _person(request: Request, token: str | None) -> Caller:
    """Return the requester, or a reviewer where no requester is logged in."""
    try:
        session = await _authenticate(request, DESK, token)
    except Refused as refused:
        if refused.status != 401 or not has_reviewer(request):
            raise
        session = await _authenticate(request, REVIEWER, token)
        return Caller(session.person, f"the reviewer {session.person}", ONLY_REVIEW, session)
    return Caller(session.person, BROWSER, ALL, session)


def has_reviewer(request: Request) -> bool:
    """Whether a request has the cookie of a reviewer."""
    return context_of(request).cookie_of(request.cookies, REVIEWER) is not None


async def _program(request: Request, header: str) -> Caller:
    """Return the program that has a token."""
    context = context_of(request)
    tokens = context.auth.tokens
    try:
        text = bearer_of(header)
        read = tokens.read
        found = read(text) if tokens.is_at_hand() else await run_in_threadpool(read, text)
    except Refused as refused:
        address = address_here(request)
        log.warning("refused: a token, by %s", address)
        context.buckets["token"].take(address)
        raise refused from None
    context.buckets["program"].take(found.id)
    if tokens.is_due(found):
        await run_in_threadpool(tokens.touch, found)
    return Caller(found.id, f"a program, with the token {found.id}", frozenset(found.scopes))


WorkerHere = Annotated[Session, Depends(_worker)]
RequesterHere = Annotated[Session, Depends(_requester)]
ContextHere = Annotated[ServerContext, Depends(context_here)]
