"""Who may pass: a route names the person that it needs, and is not called for anybody else.

    @router.get("/api/desk/overview")
    def overview(requester: RequesterHere, house: HouseHere) -> ...

A request that changes something must also carry the session's token in the header
`X-Goldspan-CSRF`, or a form in its field `csrf`.
"""

from __future__ import annotations

import logging
from typing import Annotated

from fastapi import Depends, Header, Request, Security
from fastapi.security import APIKeyCookie
from starlette.concurrency import run_in_threadpool

from goldspan.server.errors import Refused
from goldspan.server.house import House, house_here, house_of
from goldspan.server.security.csrf import HEADER, OLD_HEADER, SAFE
from goldspan.server.security.sessions import DESK, WORKER, Facts, Session

log = logging.getLogger("goldspan.server.security")
Token = Annotated[
    str | None,
    Header(alias=HEADER, max_length=200, description="Of the page; for requests that change."),
]
# These say in the OpenAPI document which cookie is meant; the door reads the cookie itself.
_worker_cookie = APIKeyCookie(name="goldspan_worker", scheme_name="worker", auto_error=False)
_desk_cookie = APIKeyCookie(name="goldspan_desk", scheme_name="requester", auto_error=False)


def worker_here(request: Request, token: str | None = None) -> Session:
    """Give the session of the worker who asks; may read the ledger.

    Raises:
        Refused: There is none, it has ended, the token is not its own, or it asks too often.
    """
    return _enter(request, WORKER, token)


def requester_here(request: Request, token: str | None = None) -> Session:
    """Give the session of the requester who asks; may read the ledger.

    Raises:
        Refused: As for a worker.
    """
    return _enter(request, DESK, token)


def session_here(request: Request, role: str) -> Session | None:
    """Give the session of somebody who may be nobody."""
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
    """Give the session of the worker who asks.

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
