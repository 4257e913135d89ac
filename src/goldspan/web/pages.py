"""Pages: how they are made, labelling, the desk, and what leads there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import blake2b
from importlib.resources import files
from typing import Annotated, Any, Self, TypeVar
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape
from pydantic import BaseModel, Field, ValidationError

from goldspan import __version__
from goldspan.campaign.inputs import CampaignInputs
from goldspan.campaign.plan import Layer
from goldspan.web.dependencies import (
    ContextHere,
    DeskRoute,
    ServerContext,
    requester_here,
    reviewer_here,
    session_here,
)
from goldspan.web.errors import Refused
from goldspan.web.models import Request as Body
from goldspan.web.security.access import MONEY, SCOPES
from goldspan.web.security.sessions import DESK, REVIEWER, Session

# --------------------------------------------------------------------------------------------------
# The files that pages load – scripts and styles – under addresses that name their content.


TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
"""Kinds of files that are served, by their endings; others in the folder are not."""
FOR_EVER = "public, max-age=31536000, immutable"
_IMPORT = re.compile(rb"""^(?:import|export)\b[^;]*?"\./([^"]+)";""", re.MULTILINE)


@dataclass(frozen=True)
class Assets:
    """The static files of this version, read once."""

    files: Mapping[str, bytes]
    version: str  # Hash of all names and contents; part of every address

    def address(self, name: str) -> str:
        """Return the address of a file; a name that is not there is an error of the template."""
        if name not in self.files:
            raise LookupError(f"there is no static file {name!r}: {', '.join(self.files)}")
        return f"/static/{self.version}/{name}"

    def modules(self, *names: str) -> list[str]:
        """Return the addresses of scripts and of all that they import, for the head of a page."""
        found: list[str] = []
        for name in names:
            new = [name]
            for one in new:
                ahead = [match.decode() for match in _IMPORT.findall(self.files[one])]
                new += [other for other in dict.fromkeys(ahead) if other not in [*found, *new]]
            found += [one for one in new if one not in found]
        return [self.address(one) for one in found]


@cache
def assets() -> Assets:
    """Read the static files of the package; they do not change while the process runs."""
    folder = files("goldspan.web").joinpath("static")
    found = sorted(path.name for path in folder.iterdir() if path.name.rpartition(".")[2] in TYPES)
    contents = {name: folder.joinpath(name).read_bytes() for name in found}
    digest = blake2b(digest_size=8)
    for name, content in contents.items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return Assets(contents, digest.hexdigest())


def static_files() -> APIRouter:
    """Return the route of the static files; it needs no cookie."""
    router = APIRouter(include_in_schema=False)

    @router.get("/static/{version}/{name}")
    async def static_file(version: str, name: str) -> Response:
        known = assets()
        # A name is looked up among those that were read, and never becomes a path.
        if version != known.version or name not in known.files:
            raise HTTPException(404, "there is no such file")
        headers = {"Cache-Control": FOR_EVER, "X-Content-Type-Options": "nosniff"}
        return Response(
            known.files[name], headers=headers, media_type=TYPES[name.rpartition(".")[2]]
        )

    return router


# --------------------------------------------------------------------------------------------------
# CampaignInputs values into the templates of pages.


MOUNT: ContextVar[str] = ContextVar("mount", default="")
"""Where the campaign of the request is: `ServerSettings.prefix`."""


def page_answer(name: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page as an answer that nobody keeps."""
    page = environment().get_template(name).render(version=__version__, **values)
    return HTMLResponse(page, status, {"Cache-Control": "no-store"})


def message_page(title: str, message: str, status: int = 200) -> HTMLResponse:
    """Return a page that says one thing: an error, a link that has expired, the end."""
    return page_answer("message.html.j2", status, title=title, paragraphs=message.split("\n\n"))


@cache
def environment() -> Environment:
    """Return the templates of the package; the desk's lie among them."""
    made = Environment(
        loader=PackageLoader("goldspan.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals["base"] = MOUNT.get
    made.globals["static"] = assets().address
    made.globals["modules"] = assets().modules
    return made


# --------------------------------------------------------------------------------------------------
# Forms of pages that work without a script: read by hand, strictly.


TYPE = "application/x-www-form-urlencoded"
MOST_FIELDS = 10
Secret = Annotated[str, Field(max_length=1_000)]
Form = TypeVar("Form", bound=BaseModel)


class LoginForm(Body):
    """A password, and the token of the form."""

    csrf: Secret
    password: Secret


class SetupForm(LoginForm):
    """A new password, twice, and the token of the link."""

    token: Secret
    again: Secret


class LogoutForm(Body):
    """The token of the session's page."""

    csrf: Secret


async def form_fields(request: Request) -> dict[str, str]:
    """Return the fields of a form; none if the body is no form, or a field appears twice."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if kind != TYPE:
        return {}
    try:
        pairs = parse_qsl(
            body.decode("utf-8"), keep_blank_values=True, strict_parsing=True,
            max_num_fields=MOST_FIELDS, errors="strict",
        )  # fmt: skip
    except ValueError:
        return {}
    fields = dict(pairs)
    return fields if len(fields) == len(pairs) else {}


def read_form(form: type[Form], fields: dict[str, str]) -> Form:
    """Return a form that was filled in."""
    try:
        return form.model_validate(fields)
    except ValidationError:
        words = "The form cannot be read: load the page again."
        raise Refused("invalid", words, 422) from None


Fields = Annotated[dict[str, str], Depends(form_fields)]


# --------------------------------------------------------------------------------------------------
# Instructions for workers: a little Markdown, without HTML in it.


_RULES = ["heading", "list", "blockquote", "emphasis", "backticks", "link", "newline", "escape"]
_EXAMPLE = re.compile(r"^(>.*)\n(?=>)", re.MULTILINE)
"""A line of an example before another one, which are paragraphs each."""


def read_instructions(text: str, labels: Sequence[str] = ()) -> Markup:
    """Return instructions as HTML; links lead to the web alone, or are examples of labels."""
    numbers = {label: n for n, label in enumerate(labels)}
    reader, tokens = _read(text, lambda url: url in numbers or url.startswith(WEB))
    for token in tokens:
        if token.type == "inline":
            token.children = list(_linked(token.children or [], numbers))
        elif token.type.startswith("heading"):
            token.tag = "h3"
        if token.type in {"heading_open", "paragraph_open", "list_item_open"}:
            token.attrSet("dir", "auto")
    return Markup(reader.renderer.render(tokens, reader.options, {}))  # noqa: S704 - it escapes


def _read(text: str, is_target: Callable[[str], bool]) -> tuple[MarkdownIt, list[Token]]:
    """Parse instructions; a link whose target is another stays as it was written."""
    reader = MarkdownIt("zero").enable(_RULES)
    reader.validateLink = is_target  # type: ignore[method-assign,assignment]
    reader.normalizeLink = str  # type: ignore[method-assign,assignment]
    return reader, reader.parse(_EXAMPLE.sub(r"\1\n>\n", text))


def _linked(tokens: Sequence[Token], numbers: Mapping[str, int]) -> Iterator[Token]:
    """Let links to the web open a page of their own, and show links to labels as marked spans."""
    label = ""
    for token in tokens:
        if token.type == "link_open":
            target = str(token.attrs["href"])
            label = target if target in numbers else ""
            if label:
                token.tag, token.attrs = "span", {"class": f"sample type-{numbers[label] % 10}"}
            else:
                token.attrs |= {"target": "_blank", "rel": "noopener noreferrer"}
        elif token.type == "link_close" and label:
            token.tag, shown = "span", f'<span class="sample-type">{escape(label)}</span>'
            yield Token("html_inline", "", 0, content=shown)
        yield token


def plain_words(text: str) -> str:
    r"""Return instructions without marks, for a mail: text in brackets keeps its label.

    >>> print(plain_words("# Names\n\nMark **all**.\n\n> [Ann](PER) sang"))
    Names
    <BLANKLINE>
    Mark all.
    <BLANKLINE>
        Ann (PER) sang
    """
    blocks: list[list[str]] = []
    mark = ""
    for token in _read(text, lambda _: True)[1]:
        if token.level == 0 and token.nesting == 1:
            blocks.append([])
            mark = "    " if token.type == "blockquote_open" else ""
        elif token.type == "list_item_open":
            mark = f"{token.info}. " if token.info else "- "
        elif token.type == "inline":
            blocks[-1].append(mark + "".join(_words(token.children or [])))
    return "\n\n".join("\n".join(lines) for lines in blocks)


def _words(tokens: Sequence[Token]) -> Iterator[str]:
    target: Any = ""
    for token in tokens:
        if token.type == "link_open":
            target = token.attrs["href"]
        yield f" ({target})" if token.type == "link_close" else token.content
        if token.type in {"softbreak", "hardbreak"}:
            yield " "


# --------------------------------------------------------------------------------------------------
# The pages of a worker: where they label, and the help.


WEB = ("https://", "http://")
KEYS = "1234567890qweravtgdjklmpoix"
"""Keys of the labels in their order; b, c, f, h, n, s, u, y and z do other things on the page."""
LAYER_KEYS = KEYS.replace("o", "")
"""Of a task with layers, where O goes from one span to another at its place."""
SKIP_REASONS = (
    "I do not understand this text",
    "I am not sure what is right",
    "It is in a language that I do not read",
    "Another reason",
)
FLAG_REASONS = (
    "The text is garbled or cut off",
    "It is in the wrong language",
    "It is offensive, or private",
    "None of the labels fits",
    "Something else",
)


@dataclass(frozen=True)
class LabelPage:
    """What the labelling page shows of a campaign."""

    campaign: str
    title: str
    kind: str  # "spans", "single" for one label per item, or "layers"
    labels: tuple[str, ...]  # Types of spans, or the labels, in the order in which they are offered
    instructions: str = ""  # In Markdown; examples show spans as `[Ann](PER)`
    paid: bool = True  # Whether answers are paid: a page of unpaid work does not speak of money
    skip_reasons: tuple[str, ...] = SKIP_REASONS  # Offered to a worker who skips a task
    flag_reasons: tuple[str, ...] = FLAG_REASONS  # Offered to a worker who reports an item
    layers: tuple[Layer, ...] = ()

    @classmethod
    def of(cls, inputs: CampaignInputs) -> Self:
        """Return the page of a campaign."""
        plan, layers = inputs.plan, inputs.plan.task.layers
        spans = next((one.types for one in layers if one.types), ())
        return cls(
            paid=plan.is_paid,
            campaign=inputs.key,
            title=plan.page.title or plan.name,
            kind=plan.kind,
            labels=plan.task.labels or plan.task.types or spans,
            layers=layers,
            instructions=inputs.guideline,
            skip_reasons=plan.page.skip_reasons,
        )

    @cached_property
    def asked(self) -> dict[str, Any]:
        """What it asks, as scripts have it."""
        return {
            "kind": self.kind,
            "labels": label_keys(self.labels, LAYER_KEYS if self.layers else KEYS),
            "layers": [layer_data(one) for one in self.layers],
        }

    @cached_property
    def common(self) -> dict[str, Any]:
        """Values of its templates."""
        return {
            **self.asked, "title": self.title, "paid": self.paid,
            "instructions": read_instructions(self.instructions, self.labels),
        }  # fmt: skip

    def answer(self, *, audit: bool, **more: Any) -> HTMLResponse:
        """Return the page; `more` are values of its script."""
        data = {
            **self.asked, "title": self.title, "campaign": self.campaign,
            "skip_reasons": self.skip_reasons, "flag_reasons": self.flag_reasons, **more,
        }  # fmt: skip
        return page_answer("label.html.j2", data=data, audit=audit, **self.common)


def worker_pages(page: LabelPage, visitor: Callable[[Request], dict[str, Any]]) -> APIRouter:
    """Return the routes of a worker's pages."""
    # `visitor` gives `csrf`, which requests carry in a header, `scope`, which names the drafts of
    # this worker and campaign in the browser and says nothing else, and whether they are `paid`.
    router = APIRouter(include_in_schema=False)

    @router.get("/label", response_class=HTMLResponse)
    def label(request: Request) -> HTMLResponse:
        return page.answer(audit=False, **visitor(request))

    @router.get("/help", response_class=HTMLResponse)
    def help_page(request: Request) -> HTMLResponse:
        return page_answer("help.html.j2", **page.common | visitor(request))

    return router


def label_keys(labels: Sequence[str], all_keys: str = KEYS) -> list[dict[str, str]]:
    """Return every label a key; those beyond the keys are chosen by mouse, touch or arrows."""
    keys = [*all_keys[: len(labels)], *[""] * max(0, len(labels) - len(all_keys))]
    return [{"name": name, "key": key} for name, key in zip(labels, keys, strict=True)]


def layer_data(layer: Layer) -> dict[str, Any]:
    """Return a layer as scripts have it: what it asks, with a key for each of its names."""
    facts = ("name", "kind", "overlapping", "ordinal", "required", "instructions")
    labels = label_keys(layer.types or layer.labels, LAYER_KEYS)
    return {"labels": labels, **{name: getattr(layer, name) for name in facts}}


# --------------------------------------------------------------------------------------------------
# The pages of the requester's desk.


router = APIRouter(include_in_schema=False, route_class=DeskRoute)
PAGES = {
    "overview": ("/desk", "Overview"),
    "review": ("/desk/review", "Review"),
    "audit": ("/desk/audit", "Audit"),
    "workers": ("/desk/workers", "Workers"),
    "items": ("/desk/items", "Items"),
    "links": ("/desk/links", "Links"),
    "exports": ("/desk/exports", "Downloads"),
    "api": ("/desk/api", "API"),
}
"""The pages in the order of the menu: path and name."""
FOR_REVIEWERS = ("review", "audit")


@router.get("/desk", response_class=HTMLResponse)
def overview(request: Request, context: ContextHere) -> Response:
    """Show how far it is."""
    return _page(request, context, "overview")


@router.get("/desk/items/{item:path}", response_class=HTMLResponse)
def item(request: Request, context: ContextHere, item: str) -> Response:
    """Show all that is known of an item."""
    shown = _page(request, context, "items", "desk_item", item=item)
    context.service.desk.check_item(item)
    return shown


@router.get("/desk/audit/check", response_class=HTMLResponse)
def check(request: Request, context: ContextHere) -> Response:
    """Show the labelling page of who checks for the audit."""
    session, sessions = _session(request, "audit"), context.auth.sessions
    return LabelPage.of(context.service.inputs).answer(
        audit=True, api="/api/desk/audit", csrf=sessions.csrf(session),
        scope=f"audit-{sessions.scope(session)}",
    )  # fmt: skip


@router.get("/desk/{name}", response_class=HTMLResponse)
def page(request: Request, context: ContextHere, name: str) -> Response:
    """Show one of the other pages."""
    if name not in PAGES or name == "overview":
        raise HTTPException(404)
    return _page(request, context, name)


def _session(request: Request, here: str) -> Session:
    """Return whose page it is: a reviewer has two pages alone."""
    if session_here(request, DESK):
        return requester_here(request, None)
    is_reviewer = session_here(request, REVIEWER) is not None
    if is_reviewer and here in FOR_REVIEWERS:
        return reviewer_here(request)
    place = "/desk/review" if is_reviewer else "/login"
    raise HTTPException(303, headers={"Location": MOUNT.get() + place})


def _page(
    request: Request, context: ServerContext, here: str, template: str = "", **more: Any
) -> Response:
    """Fill a page in; who is not logged in is led to where one logs in."""
    session = _session(request, here)
    plan, csrf = context.service.inputs.plan, context.auth.sessions.csrf(session)
    reviews = session.role == REVIEWER
    # An audit is of one question
    names = (one for one in PAGES if one != "audit" or not plan.task.layers)
    shown = {name: PAGES[name] for name in names if name in FOR_REVIEWERS or not reviews}
    if here not in shown:
        raise HTTPException(404)
    data = {
        "csrf": csrf,
        "reviewer": reviews,
        **LabelPage.of(context.service.inputs).asked,
        "single": plan.is_single,
        "currency": plan.prices.currency,
        "paid": plan.is_paid and not reviews,
        "control": bool(context.service.inputs.control),
        **more,
    }
    name = template or f"desk_{here}"
    return page_answer(
        f"{name}.html.j2", data=data, csrf=csrf, pages=shown, here=here, script=f"{name}.js",
        title=plan.page.title or plan.name, paid=plan.is_paid,
        scopes={one: words for one, words in SCOPES.items() if plan.is_paid or one != MONEY},
        **more,
    )  # fmt: skip
