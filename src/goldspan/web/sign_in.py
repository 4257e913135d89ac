"""Signing in: personal links, the requester's login, and people and messages from providers."""

from __future__ import annotations

import logging
from functools import partial
from hashlib import blake2b
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from goldspan.campaign.clock import wall_of
from goldspan.web.dependencies import (
    ContextHere,
    ServerContext,
    address_here,
    context_of,
    session_here,
)
from goldspan.web.errors import Refused
from goldspan.web.pages import (
    Fields,
    LoginForm,
    LogoutForm,
    SetupForm,
    message_page,
    page_answer,
    read_form,
)
from goldspan.web.providers.registry import Admission, open_provider
from goldspan.web.security.access import HEADER
from goldspan.web.security.account import KNOWN_DAYS, in_turn
from goldspan.web.security.oidc import (
    CALLBACK,
    MINUTES,
    OpenIdLogin,
    ProviderError,
    check_installed,
)
from goldspan.web.security.sessions import DAY, DESK, REVIEWER, WORKER, Session

# --------------------------------------------------------------------------------------------------
# Links, the first password, login, logout


router = APIRouter(include_in_schema=False)
log = logging.getLogger("goldspan.web.security")
OIDC = "oidc"
"""Cookie of a browser that is on its way to the provider of identities and back."""
KNOWN = "known"
"""Cookie of a browser in which the requester has logged in; it outlives the session."""
HOME = {WORKER: "/label", DESK: "/desk", REVIEWER: "/desk/review"}


@router.get("/")
def home(request: Request) -> Response:
    """Lead people to where they work."""
    for role in (DESK, REVIEWER, WORKER):
        if session_here(request, role):
            return RedirectResponse(context_of(request).settings.prefix + HOME[role], 303)
    place = context_of(request).settings.prefix
    words = f"To label, open your personal link.\n\nThe requester logs in at {place}/login."
    return message_page("goldspan", words)


@router.get("/w/{token}")
def worker_link(request: Request, context: ContextHere, token: str) -> Response:
    """Exchange a worker's link for a cookie; its token leaves the address bar at once."""
    try:
        link = context.auth.links.read(token)
    except Refused as refused:
        count_refusal(context, request, f"a worker's link: {refused.message}")
        raise
    return welcome(context, context.auth.sessions.begin_work(link))


@router.get("/r/{token}")
def reviewer_link(request: Request, context: ContextHere, token: str) -> Response:
    """Exchange a reviewer's link for a cookie; its token leaves the address bar at once."""
    reviewers = context.auth.reviewers
    try:
        found = reviewers.read(token)
    except Refused:
        count_refusal(context, request, "a reviewer's link")
        words = "This link is not valid here, has expired or was revoked. Ask who sent it to you."
        raise Refused("link", words, 403) from None
    reviewers.touch(found)
    left = found.expires - wall_of(context.settings.clock)()
    return welcome(context, context.auth.sessions.begin_review(found.id, left, found.id))


@router.get("/setup/{token}", response_class=HTMLResponse)
def setup_page(request: Request, context: ContextHere, token: str) -> Response:
    """Show the form to choose a password; looking at it does not use the link up."""
    _check_setup(context, request, token)
    return _form(context, "setup.html.j2", token=token)


@router.post("/setup")
async def set_up(request: Request, context: ContextHere, fields: Fields) -> Response:
    """Choose the password and be logged in."""
    form = read_form(SetupForm, fields)
    _check_form(context, request, form.csrf)
    return await in_turn(lambda: _set_up(request, context, form))


def _set_up(request: Request, context: ServerContext, form: SetupForm) -> Response:
    _check_setup(context, request, form.token)
    if form.password != form.again:
        words = "The two passwords are not the same."
        return _form(context, "setup.html.j2", 422, words, token=form.token)
    try:
        context.auth.account.choose(form.token, form.password)
    except Refused as refused:
        if refused.code != "password":
            raise
        return _form(context, "setup.html.j2", 422, refused.message, token=form.token)
    log.warning("the requester's password was set, by %s", address_here(request))
    return welcome(context, context.auth.sessions.begin_desk())


@router.get("/login", response_class=HTMLResponse)
def login_page(context: ContextHere) -> Response:
    """Show the form to log in."""
    return _form(context, "login.html.j2")


@router.post("/login")
async def log_in(request: Request, context: ContextHere, fields: Fields) -> Response:
    """Log in with the password: a new session, whatever cookie came along."""
    form = read_form(LoginForm, fields)
    await run_in_threadpool(context.buckets["login"].take, address_here(request))
    _check_form(context, request, form.csrf)
    return await in_turn(lambda: _log_in(request, context, form))


def _log_in(request: Request, context: ServerContext, form: LoginForm) -> Response:
    address = address_here(request)
    known = request.cookies.get(context.cookie_name(KNOWN))
    try:
        is_right = context.auth.account.is_password(form.password, known)
    except Refused:
        log.warning("refused: a password, because wrong ones were tried too often, by %s", address)
        raise
    if not is_right:
        log.warning("refused: a wrong password, by %s", address)
        return _form(context, "login.html.j2", 403, "The password is wrong.")
    before = session_here(request, DESK)
    if before:
        context.auth.sessions.end(before)
    log.warning("the requester logged in, by %s", address)
    return welcome(context, context.auth.sessions.begin_desk())


@router.post("/logout")
def log_out(request: Request, context: ContextHere, fields: Fields) -> Response:
    """End the sessions whose token the header or the form has, and take their cookies."""
    given = request.headers.get(HEADER) or read_form(LogoutForm, fields).csrf
    sessions = context.auth.sessions
    there = [session_here(request, role) for role in (DESK, REVIEWER, WORKER)]
    ended = [one for one in there if one and sessions.is_csrf(one, given)]
    if not ended and any(there):
        raise Refused("csrf", "The page is out of date: load it again.", 403)
    page = message_page("Goodbye", "You are logged out on this device.")
    for session in ended:
        context.buckets[session.role].take(session.person)
        sessions.end(session)
        drop_cookie(context, page, session.role)
    return page


def welcome(context: ServerContext, session: Session, answer: Response | None = None) -> Response:
    """Return the session's cookie and lead to where its person works, or as `answer` does."""
    if session.role == WORKER:
        context.buckets["link"].take(session.link)
    elif session.role == REVIEWER:
        context.buckets["link"].take(session.person)
    answer = answer or RedirectResponse(context.settings.prefix + HOME[session.role], 303)
    seconds = (session.until - session.issued) // 1000
    value = context.auth.sessions.cookie(session)
    _set_cookie(context, answer, session.role, value, seconds)
    if session.role == DESK:
        drop_cookie(context, answer, "form")
        seconds = KNOWN_DAYS * 24 * 3600
        _set_cookie(context, answer, KNOWN, context.auth.account.know(), seconds)
    return answer


def _form(
    context: ServerContext, template: str, status: int = 200, message: str = "", **values: str
) -> Response:
    """Show a form, with a token that belongs to a cookie of its own."""
    cookie = context.forms.new()
    csrf = context.forms.token(cookie)
    # The list of several campaigns has none.
    plan = context.service.inputs.plan.oidc if context.service else None
    values["oidc"] = "" if plan is None else plan.name
    page = page_answer(template, status, csrf=csrf, message=message, **values)
    _set_cookie(context, page, "form", cookie, 3600)
    return page


def _check_form(context: ServerContext, request: Request, token: str) -> None:
    if not context.forms.fits(context.cookie_of(request.cookies, "form"), token):
        log.warning("refused: a form without its cookie, by %s", address_here(request))
        raise Refused("csrf", "The form is out of date: go back and load the page again.", 403)


def _check_setup(context: ServerContext, request: Request, token: str) -> None:
    try:
        context.auth.account.check_setup(token)
    except Refused:
        count_refusal(context, request, "a link to choose a password")
        raise


def count_refusal(context: ServerContext, request: Request, what: str) -> None:
    """Count what did not hold; whoever tries too often waits."""
    address = address_here(request)
    log.warning("refused: %s, by %s", what, address)
    context.buckets["join"].take(address)


def _set_cookie(
    context: ServerContext, answer: Response, kind: str, value: str, seconds: int
) -> None:
    # Who comes from a link in a message: Lax lets the browser send the cookie there.
    same_site = "lax" if kind in {WORKER, REVIEWER, OIDC} else "strict"
    answer.set_cookie(
        context.cookie_name(kind), value, max_age=seconds, path="/", httponly=True,
        secure=context.settings.is_secure, samesite=same_site,  # type: ignore[arg-type]
    )  # fmt: skip


def drop_cookie(context: ServerContext, answer: Response, kind: str) -> None:
    """Let a browser forget a cookie."""
    answer.delete_cookie(
        context.cookie_name(kind), path="/", httponly=True, secure=context.settings.is_secure
    )


# --------------------------------------------------------------------------------------------------
# OpenID Connect: the way to the provider of identities, and back


def oidc_routes(context: ServerContext) -> APIRouter:
    """Return the routes of the login by OpenID Connect; none if the plan has no provider."""
    router = APIRouter(include_in_schema=False)
    plan = context.service.inputs.plan.oidc
    if plan is None:
        return router
    check_installed()
    settings = context.settings
    login = OpenIdLogin(
        plan, settings.keys, context.service.ledger, wall_of(settings.clock),
        settings.address(CALLBACK),
    )  # fmt: skip
    context.auth.sessions.policy = login.policy

    @router.get("/login/oidc")
    def to_provider(request: Request) -> Response:
        """Lead a browser to the provider."""
        context.buckets["login"].take(address_here(request))
        try:
            address, cookie = login.begin()
        except ProviderError as error:
            raise _unable(error, request) from None
        answer = RedirectResponse(address, 303)
        _set_cookie(context, answer, OIDC, cookie, 60 * MINUTES)
        return answer

    @router.get(CALLBACK)
    def from_provider(request: Request) -> Response:
        """Log in who comes back from the provider: a new session, whatever cookie came along."""
        cookie = context.cookie_of(request.cookies, OIDC)
        try:
            found = login.finish(cookie, dict(request.query_params))
        except Refused as refused:
            context.buckets["login"].take(address_here(request))
            log.warning(
                "refused: OpenID Connect: %s, by %s", refused.message, address_here(request)
            )
            raise
        except ProviderError as error:
            context.buckets["login"].take(address_here(request))
            raise _unable(error, request) from None
        sessions = context.auth.sessions
        before = session_here(request, found.role)
        if before:
            sessions.end(before)
        begun = (
            sessions.begin_desk(login.policy)
            if found.role == DESK
            else sessions.begin_review(found.person, DAY, login.policy)
        )
        log.warning("logged in by OpenID Connect as %s, by %s", found.role, address_here(request))
        # The cookie is for this site alone: after a redirect that another site began, the browser
        # would not send it. A page that leads on is of this site.
        page = message_page("Logged in", "You are being led on.")
        page.headers["Refresh"] = f"0; url={settings.prefix}{HOME[found.role]}"
        answer = welcome(context, begun, page)
        drop_cookie(context, answer, OIDC)
        return answer

    return router


def _unable(error: ProviderError, request: Request) -> Refused:
    """Return the refusal of a login that failed at the provider; the log says why."""
    log.warning("refused: OpenID Connect: %s, by %s", error, address_here(request))
    words = "The provider of the login did not answer as it must: try again, or use the password."
    return Refused("oidc", words, 502)


# --------------------------------------------------------------------------------------------------
# External crowds: where a provider's people sign in, and where it sends its messages


FEW = 50
"""New people of one address on one day that are always let in, as long as there is room at all."""
_FULL = "No more new people can come in today: try again tomorrow."


async def _body(request: Request) -> bytes:
    return await request.body()


HookBody = Annotated[bytes, Depends(_body)]


def _admit(context: ServerContext, address: str) -> None:
    """Count a new person where the provider does not say who they are."""
    most, take = context.service.inputs.daily_joins, context.auth.records.take
    # An address could be found from a plain hash of it.
    name = blake2b(
        address.encode(), key=context.settings.keys.of("joins"), digest_size=16
    ).hexdigest()
    take("joins", name, max(FEW, most // 10), _FULL)  # one address cannot keep all others out
    take("joins", "", most, _FULL)


def provider_routes(context: ServerContext) -> APIRouter:
    """Return the routes of the plan's provider; none where people come by personal links."""
    router = APIRouter(include_in_schema=False)
    provider = context.service.inputs.plan.provider
    if provider is None or provider.name == "link":
        return router
    store, clock = context.service.ledger, context.settings.clock
    opened = open_provider(context.service.inputs.plan, store, clock)
    admit = (lambda _: None) if opened.checks_people else partial(_admit, context)
    admission = Admission(opened, store, context.auth.links, clock, admit)

    @router.get(f"/join/{opened.name}")
    def join(request: Request) -> Response:
        """Exchange a provider's parameters for a cookie; they leave the address bar at once."""
        try:
            address = address_here(request)
            if not opened.checks_people:  # nothing else slows down who makes names up
                context.buckets["join"].take(address)
            link = admission.enter(dict(request.query_params), address)
        except Refused as refused:
            if opened.checks_people and refused.status != 503:
                count_refusal(context, request, f"somebody from {opened.name}: {refused.message}")
            raise
        return welcome(context, context.auth.sessions.begin_work(link))

    @router.post(f"/api/hooks/{opened.name}")
    def hook(request: Request, body: HookBody) -> Response:
        """Take a signed message of the provider's."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            said = admission.hear(headers, body)
        except Refused as refused:
            count_refusal(context, request, f"a message to {opened.name}'s address: {refused.code}")
            raise
        log.info("a message of %s: %s", opened.name, said)
        return JSONResponse({"status": said})

    return router
