"""Sections of a plan, tables of keys each of an exact type: `[[webhooks]]` and `[oidc]`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal
from unicodedata import category
from urllib.parse import SplitResult, urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
)

from goldspan.errors import InputError
from goldspan.money import to_micro


def _money(value: str | float) -> str | float:
    to_micro(value, "it")
    return value


def _currency(value: str) -> str:
    """Reject what cannot be stored or stand in a line."""
    if any(category(mark) in {"Cc", "Cs"} for mark in value):
        raise InputError(f"must be text without control characters, such as EUR, not {value!r}")
    return value


def _name(value: str) -> str:
    """Reject what cannot stand in the names of files and the addresses of pages."""
    usable = all(mark in " .-_" or category(mark)[0] in "LMN" for mark in value)
    if not usable or not 1 <= len(value) <= 100 or not value[0].isalnum():
        raise InputError(
            "must be 1 to 100 letters, digits, spaces, points, dashes and underscores, beginning "
            f"with a letter or digit, not {value!r}"
        )
    return value


Name = Annotated[StrictStr, AfterValidator(_name)]
Words = Annotated[tuple[StrictStr, ...], Field(strict=False)]
Money = Annotated[StrictStr | StrictInt | StrictFloat, AfterValidator(_money)]
Currency = Annotated[str, AfterValidator(_currency)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Number = Annotated[int, Field(ge=0)]


class Section(BaseModel):
    """A table of the plan: frozen, of exact types, without unknown keys."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def newer(*, default: Any) -> Any:
    """Return a field that is left out where it is not used: plans made before keep their hash."""
    return Field(default=default, exclude_if=lambda value: bool(value == default))


# --------------------------------------------------------------------------------------------------
# What a plan says of the programs that are told what happens: `[[webhooks]]`.

WEBHOOK_SECRET = "GOLDSPAN_WEBHOOK_SECRET"  # noqa: S105 - the name of a variable
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE)
"""A part of a host's name."""
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,99}")


def check_variable(value: str) -> str:
    """Return the name of a variable."""
    if not _VARIABLE.fullmatch(value):
        raise InputError(
            "must be the name of a variable of the environment in capitals, which holds the "
            "secret: the secret itself must not be in a plan"
        )
    return value


class Webhook(Section):
    """A program that is sent a signed message when something happens."""

    url: StrictStr  # Where to: https://…
    # By which logs and the desk call it; the host of the address by default
    name: Name | None = None
    # What it is told: "round.closed", "campaign.ended", "answer"
    events: Annotated[
        tuple[Literal["round.closed", "campaign.ended", "answer"], ...],
        Field(strict=False, min_length=1),
    ] = ("round.closed", "campaign.ended")
    # The variable of the environment that holds the secret of the signature
    secret: Annotated[StrictStr, AfterValidator(check_variable)] = WEBHOOK_SECRET
    # Whether the address may be one of this machine or of a private network, and http://
    local: bool = False
    # Seconds between two messages about answers: each is about all that came
    answers_every: Annotated[float, Field(ge=1, le=86_400)] = 60.0

    @property
    def place(self) -> SplitResult:
        """The parts of the address."""
        return urlsplit(self.url)

    @property
    def called(self) -> str:
        """The name, or the host: an address may hold something secret."""
        return self.name or str(self.place.hostname)


def webhook_faults(hooks: Sequence[Webhook], *, served: bool) -> Iterator[str]:
    """List what is wrong with the webhooks of a plan."""
    if hooks and not served:
        yield 'webhooks: belong to source = "web": `goldspan run` sends nothing'
    for n, hook in enumerate(hooks):
        good = is_address(hook.url, local=True) and _is_host(hook.place.hostname)
        if not hook.url.isascii():
            yield (
                f"webhooks.{n}.url: must be written in ASCII: a host such as bücher.example as "
                "xn--bcher-kva.example, other letters as %C3%BC"
            )
        elif not good:
            yield (
                f"webhooks.{n}.url: must be an address such as https://example.org/goldspan, "
                "without a user, a password and a #"
            )
        elif hook.place.scheme == "http" and not hook.local:
            yield (
                f"webhooks.{n}.url: must begin with https://; in a network that you trust alone "
                "set local = true"
            )
        elif len(hook.url) > 2_000:
            yield f"webhooks.{n}.url: is longer than 2,000 characters"
    names = [hook.called for hook in hooks if is_address(hook.url, local=True)]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield (
            f"webhooks: two are called {name!r}: give the new one a name; messages that wait "
            "belong to the old name"
        )


def _is_host(name: str | None) -> bool:
    """Return whether something can be the name or the address of a host."""
    if name and ":" in name:  # urlsplit has checked that it is an address of IPv6
        return True
    name = (name or "").removesuffix(".")
    return len(name) <= 253 and all(map(_LABEL.fullmatch, name.split(".")))


# --------------------------------------------------------------------------------------------------
# What a plan says of logging in by OpenID Connect: `[oidc]`.

OIDC_SECRET = "GOLDSPAN_OIDC_SECRET"  # noqa: S105 - the name of a variable


class OpenId(Section):
    """A provider of identities, and who of its people may enter."""

    issuer: StrictStr  # Its address, under which /.well-known/openid-configuration is
    client_id: StrictStr  # By which it knows this server
    # The variable of the environment that holds the client's secret, if it has one
    secret: Annotated[StrictStr, AfterValidator(check_variable)] = OIDC_SECRET
    name: StrictStr = "single sign-on"  # What the login page calls it
    scopes: Words = ("email",)  # Asked for beside "openid"
    # Who enters as the requester: e-mail addresses that the provider has verified, or its subjects
    requesters: Words = ()
    requester_subjects: Words = ()
    reviewers: Words = ()  # Who enters as a reviewer, in the same way
    reviewer_subjects: Words = ()
    claim: StrictStr | None = None  # A claim whose values let people in, such as "groups"
    requester_values: Words = ()  # Values of the claim that a requester has one of
    reviewer_values: Words = ()  # The same of a reviewer
    local: bool = False  # Whether the provider may be reached by http://, for tests on one machine


def oidc_faults(plan: OpenId | None, *, served: bool) -> Iterator[str]:
    """List what is wrong with the section."""
    if plan is None:
        return
    if not served:
        yield 'oidc: belongs to source = "web"'
    if not is_address(plan.issuer, local=plan.local):
        yield "oidc.issuer: must be an address such as https://login.example.org, without ? and #"
    if not plan.client_id.strip():
        yield "oidc.client_id: is empty"
    values = (*plan.requester_values, *plan.reviewer_values)
    if bool(values) != (plan.claim is not None):
        yield "oidc.claim: belongs to requester_values or reviewer_values, which name its values"
    named = (*plan.requesters, *plan.reviewers)
    if not (values or named or plan.requester_subjects or plan.reviewer_subjects):
        yield "oidc.requesters: nobody could log in: name e-mail addresses, or a claim with values"
    for one in named:
        if "@" not in one.strip("@"):
            where = "requester_subjects or reviewer_subjects"
            yield f"oidc: {one!r} is no e-mail address: a subject belongs into {where}"


def is_address(url: str, *, local: bool) -> bool:
    """Whether an address of the provider can be used.

    >>> is_address("https://a.example", local=False), is_address("http://a.example", local=False)
    (True, False)
    """
    try:
        place = urlsplit(url)
        good = bool(place.hostname) and place.port != 0
    except ValueError:
        return False
    schemes = {"https", "http"} if local else {"https"}
    return good and place.scheme in schemes and not place.fragment and "@" not in place.netloc
