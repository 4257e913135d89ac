"""Coming in from outside: links, providers, their signed messages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from functools import partial
from hashlib import blake2b
from typing import Annotated, Any, cast, get_origin, get_type_hints

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from goldspan.campaign.clock import wall_of
from goldspan.store.bounds import BoundError
from goldspan.web.errors import Refused
from goldspan.web.house import House, HouseHere, house_of, session_here, worker_at_the_door
from goldspan.web.models import Request as Body
from goldspan.web.pages import (
    Fields,
    LoginForm,
    LogoutForm,
    SetupForm,
    message_page,
    page_answer,
    read_form,
)
from goldspan.web.providers.protocol import Reception, Store
from goldspan.web.providers.registry import open_provider
from goldspan.web.security.account import KNOWN_DAYS, address_name, in_turn
from goldspan.web.security.entrance import HEADER, OLD_HEADER
from goldspan.web.security.sessions import DESK, WORKER, Session

# --------------------------------------------------------------------------------------------------
# Routes that are taken all the time: the same door, body and answer, with less on the way.


_UNREAD = Refused("invalid", "The body must be JSON: Content-Type: application/json.", 422)


class DirectRoute(APIRoute):
    """A route of a worker: its function takes a session, the house and a model of the body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        act = self.endpoint
        model = _model(act)

        async def handle(request: Request) -> Response:
            worker = await worker_at_the_door(request, request.headers.get(HEADER))
            body = _read(model, request, await request.body())
            made: Response = await run_in_threadpool(act, worker, house_of(request), body)
            return made

        return handle


def _model(act: Callable[..., Any]) -> type[Body]:
    """Find the model of a function's body."""
    hints = [get_origin(hint) or hint for hint in get_type_hints(act).values()]
    (model,) = (hint for hint in hints if isinstance(hint, type) and issubclass(hint, Body))
    return model


def _read(model: type[Body], request: Request, words: bytes) -> Body:
    """Read a body.

    Raises:
        Refused: It does not say that it is JSON.
        RequestValidationError: It is none, or not what the route needs.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise _UNREAD
    try:
        return model.model_validate_json(words)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        places = [{**fault, "loc": ("body", *fault["loc"])} for fault in faults]
        raise RequestValidationError(places) from None


# --------------------------------------------------------------------------------------------------
# Coming in and going out: a worker's link, the requester's first password, login, logout.


router = APIRouter(include_in_schema=False)
log = logging.getLogger("goldspan.web.security")
KNOWN = "known"
"""Cookie of a browser in which the requester has logged in; it outlives the session."""
HOME = {WORKER: "/label", DESK: "/desk"}


@router.get("/")
def home(request: Request) -> Response:
    """Lead people to where they work."""
    for role in (DESK, WORKER):
        if session_here(request, role):
            return _see(HOME[role])
    words = "To label, open your personal link.\n\nThe requester logs in at /login."
    return message_page("goldspan", words)


@router.get("/w/{token}")
def worker_link(request: Request, house: HouseHere, token: str) -> Response:
    """Exchange a worker's link for a cookie; its token leaves the address bar at once."""
    try:
        link = house.entrance.links.read(token)
    except Refused as refused:
        count_bad(house, request, f"a worker's link: {refused.message}")
        raise
    return welcome(house, house.entrance.sessions.begin_work(link))


@router.get("/setup/{token}", response_class=HTMLResponse)
def setup_page(request: Request, house: HouseHere, token: str) -> Response:
    """Show the form to choose a password; looking at it does not use the link up."""
    _check_setup(house, request, token)
    return _form(house, "setup.html.j2", token=token)


@router.post("/setup")
async def set_up(request: Request, house: HouseHere, fields: Fields) -> Response:
    """Choose the password and be logged in."""
    form = read_form(SetupForm, fields)
    _check_form(house, request, form.csrf)
    return await in_turn(lambda: _set_up(request, house, form))


def _set_up(request: Request, house: House, form: SetupForm) -> Response:
    _check_setup(house, request, form.token)
    if form.password != form.again:
        words = "The two passwords are not the same."
        return _form(house, "setup.html.j2", 422, words, token=form.token)
    try:
        house.entrance.account.choose(form.token, form.password)
    except Refused as refused:
        if refused.code != "password":
            raise
        return _form(house, "setup.html.j2", 422, refused.message, token=form.token)
    log.warning("the requester's password was set, by %s", _address(request))
    return welcome(house, house.entrance.sessions.begin_desk())


@router.get("/login", response_class=HTMLResponse)
def login_page(house: HouseHere) -> Response:
    """Show the form to log in."""
    return _form(house, "login.html.j2")


@router.post("/login")
async def log_in(request: Request, house: HouseHere, fields: Fields) -> Response:
    """Log in with the password: a new session, whatever cookie came along."""
    form = read_form(LoginForm, fields)
    house.buckets["login"].take(_address(request))
    _check_form(house, request, form.csrf)
    return await in_turn(lambda: _log_in(request, house, form))


def _log_in(request: Request, house: House, form: LoginForm) -> Response:
    address = _address(request)
    known = request.cookies.get(house.cookie_name(KNOWN))
    try:
        is_right = house.entrance.account.is_password(form.password, known)
    except Refused:
        log.warning("refused: a password, because wrong ones were tried too often, by %s", address)
        raise
    if not is_right:
        log.warning("refused: a wrong password, by %s", address)
        return _form(house, "login.html.j2", 403, "That is not the password.")
    before = session_here(request, DESK)
    if before:
        house.entrance.sessions.end(before)
    log.warning("the requester logged in, by %s", address)
    return welcome(house, house.entrance.sessions.begin_desk())


@router.post("/logout")
def log_out(request: Request, house: HouseHere, fields: Fields) -> Response:
    """End the sessions whose token the header or the form has, and take their cookies."""
    headers = request.headers
    given = headers.get(HEADER) or headers.get(OLD_HEADER) or read_form(LogoutForm, fields).csrf
    sessions = house.entrance.sessions
    there = [session_here(request, role) for role in (DESK, WORKER)]
    ended = [one for one in there if one and sessions.is_csrf(one, given)]
    if not ended and any(there):
        raise Refused("csrf", "The page is out of date: load it again.", 403)
    page = message_page("Goodbye", "You are logged out on this device.")
    for session in ended:
        house.buckets[session.role].take(session.person)
        sessions.end(session)
        _drop_cookie(house, page, session.role)
    return page


def welcome(house: House, session: Session) -> Response:
    """Return the session's cookie and lead to where its person works.

    Raises:
        Refused: Too many sessions have begun with the link.
    """
    if session.role == WORKER:
        house.buckets["link"].take(session.link)
    answer = _see(HOME[session.role])
    seconds = (session.until - session.issued) // 1000
    value = house.entrance.sessions.cookie(session)
    _set_cookie(house, answer, session.role, value, seconds)
    if session.role == DESK:
        _drop_cookie(house, answer, "form")
        seconds = KNOWN_DAYS * 24 * 3600
        _set_cookie(house, answer, KNOWN, house.entrance.account.know(), seconds)
    return answer


def _form(
    house: House, template: str, status: int = 200, message: str = "", **values: str
) -> Response:
    """Show a form, with a token that belongs to a cookie of its own."""
    cookie = house.forms.new()
    csrf = house.forms.token(cookie)
    page = page_answer(template, status, csrf=csrf, message=message, **values)
    _set_cookie(house, page, "form", cookie, 3600)
    return page


def _check_form(house: House, request: Request, token: str) -> None:
    if not house.forms.fits(house.cookie_of(request.cookies, "form"), token):
        log.warning("refused: a form without its cookie, by %s", _address(request))
        raise Refused("csrf", "The form is out of date: go back and load the page again.", 403)


def _check_setup(house: House, request: Request, token: str) -> None:
    try:
        house.entrance.account.check_setup(token)
    except Refused:
        count_bad(house, request, "a link to choose a password")
        raise


def count_bad(house: House, request: Request, what: str) -> None:
    """Count what did not hold; whoever tries too often waits."""
    address = _address(request)
    log.warning("refused: %s, by %s", what, address)
    house.buckets["join"].take(address)


def _set_cookie(house: House, answer: Response, kind: str, value: str, seconds: int) -> None:
    # A worker comes from a link in a message: Lax lets the browser send the cookie there.
    same_site = "lax" if kind == WORKER else "strict"
    answer.set_cookie(
        house.cookie_name(kind), value, max_age=seconds, path="/", httponly=True,
        secure=house.settings.is_secure, samesite=same_site,  # type: ignore[arg-type]
    )  # fmt: skip
    _delete_cookie(house, answer, house.old_cookie_name(kind))


def _drop_cookie(house: House, answer: Response, kind: str) -> None:
    for name in (house.cookie_name(kind), house.old_cookie_name(kind)):
        _delete_cookie(house, answer, name)


def _delete_cookie(house: House, answer: Response, name: str) -> None:
    answer.delete_cookie(name, path="/", httponly=True, secure=house.settings.is_secure)


def _see(path: str) -> Response:
    return RedirectResponse(path, 303)


def _address(request: Request) -> str:
    return address_name(request.client.host if request.client else None)


# --------------------------------------------------------------------------------------------------
# Crowds from outside: where a provider's people come in, and where it sends its messages.


FEW = 50
"""New people of one address on one day that are always let in, as long as there is room at all."""
_FULL = "No more new people can come in today: try again tomorrow."


async def _body(request: Request) -> bytes:
    return await request.body()


HookBody = Annotated[bytes, Depends(_body)]


def _admit(house: House, address: str) -> None:
    """Count a new person where the provider does not say who they are.

    Raises:
        Refused: As many came in today as may, from this address or from all.
    """
    most, now = house.service.inputs.daily_joins, wall_of(house.settings.clock)()
    # An address could be found from a plain hash of it.
    name = blake2b(
        address.encode(), key=house.settings.keys.of("joins"), digest_size=16
    ).hexdigest()
    try:  # one address cannot keep all others out
        house.service.ledger.take("joins", name, max(FEW, most // 10), now)
        house.service.ledger.take("joins", "", most, now)
    except BoundError as error:
        raise Refused("daily", _FULL, 429, retry=error.seconds) from None


def outside(house: House) -> APIRouter:
    """Return the routes of the plan's provider; none where people come by personal links."""
    router = APIRouter(include_in_schema=False)
    provider = house.service.inputs.plan.provider
    if provider is None or provider.name == "link":
        return router
    store, clock = cast("Store", house.service.ledger), house.settings.clock
    opened = open_provider(house.service.inputs.plan, store, clock)
    admit = (lambda _: None) if opened.checks_people else partial(_admit, house)
    reception = Reception(opened, store, house.entrance.links, clock, admit)

    @router.get(f"/join/{opened.name}")
    def join(request: Request) -> Response:
        """Exchange a provider's parameters for a cookie; they leave the address bar at once."""
        try:
            address = address_name(request.client.host if request.client else None)
            if not opened.checks_people:  # nothing else slows down who makes names up
                house.buckets["join"].take(address)
            link = reception.enter(dict(request.query_params), address)
        except Refused as refused:
            if opened.checks_people and refused.status != 503:
                count_bad(house, request, f"somebody from {opened.name}: {refused.message}")
            raise
        return welcome(house, house.entrance.sessions.begin_work(link))

    @router.post(f"/api/hooks/{opened.name}")
    def hook(request: Request, body: HookBody) -> Response:
        """Take a signed message of the provider's."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            said = reception.hear(headers, body)
        except Refused as refused:
            count_bad(house, request, f"a message to {opened.name}'s address: {refused.code}")
            raise
        log.info("a message of %s: %s", opened.name, said)
        return JSONResponse({"status": said})

    return router
