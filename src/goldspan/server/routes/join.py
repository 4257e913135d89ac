"""Coming in and going out: a worker's link, the requester's first password, login, logout."""

from __future__ import annotations

import logging

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from goldspan.server.doors import HouseHere, session_here
from goldspan.server.errors import Refused
from goldspan.server.forms import Fields, LoginForm, LogoutForm, SetupForm, read_form
from goldspan.server.house import House
from goldspan.server.rendering import message_page, page_answer
from goldspan.server.security.account import KNOWN_DAYS
from goldspan.server.security.csrf import HEADER, OLD_HEADER
from goldspan.server.security.limits import address_name
from goldspan.server.security.passwords import in_turn
from goldspan.server.security.sessions import DESK, WORKER, Session

router = APIRouter(include_in_schema=False)
log = logging.getLogger("goldspan.server.security")
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
    """Give the session's cookie and lead to where its person works.

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
