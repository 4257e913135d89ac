"""What a plan says of the programs that are told what happens: `[[webhooks]]`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, Field, StrictStr

from goldspan.campaign.section import Name, Section
from goldspan.errors import InputError

EVENTS = ("round.closed", "campaign.ended", "answer")
"""What can be told."""
SECRET = "GOLDSPAN_WEBHOOK_SECRET"  # noqa: S105 - the name of a variable
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
    """A program that is sent a signed message when something happens.

    Attributes:
        url: Where to: https://…
        name: By which logs and the desk call it; the host of the address by default.
        events: What it is told: "round.closed", "campaign.ended", "answer".
        secret: The variable of the environment that holds the secret of the signature.
        local: Whether the address may be one of this machine or of a private network, and http://.
        answers_every: Seconds between two messages about answers: each is about all that came.
    """

    url: StrictStr
    name: Name | None = None
    events: Annotated[
        tuple[Literal["round.closed", "campaign.ended", "answer"], ...],
        Field(strict=False, min_length=1),
    ] = ("round.closed", "campaign.ended")
    secret: Annotated[StrictStr, AfterValidator(check_variable)] = SECRET
    local: bool = False
    answers_every: Annotated[float, Field(ge=1, le=86_400)] = 60.0

    @property
    def place(self) -> SplitResult:
        """The parts of the address."""
        return urlsplit(self.url)

    @property
    def called(self) -> str:
        """The name, or the host: an address may hold something secret."""
        return self.name or str(self.place.hostname)


def faults_of(hooks: Sequence[Webhook], *, served: bool) -> Iterator[str]:
    """List what is wrong with the webhooks of a plan."""
    if hooks and not served:
        yield 'webhooks: belong to source = "web": `goldspan run` sends nothing'
    for n, hook in enumerate(hooks):
        try:
            place = hook.place
            good = (
                place.scheme in {"http", "https"} and _is_host(place.hostname) and place.port != 0
            )
        except ValueError:
            good = False
        if not hook.url.isascii():
            yield (
                f"webhooks.{n}.url: must be written in ASCII: a host such as bücher.example as "
                "xn--bcher-kva.example, other letters as %C3%BC"
            )
        elif not good or "@" in place.netloc or place.fragment:
            yield (
                f"webhooks.{n}.url: must be an address such as https://example.org/goldspan, "
                "without a user, a password and a #"
            )
        elif place.scheme == "http" and not hook.local:
            yield (
                f"webhooks.{n}.url: must begin with https://; in a network that you trust alone "
                "set local = true"
            )
        elif len(hook.url) > 2_000:
            yield f"webhooks.{n}.url: is longer than 2,000 characters"
    names = [hook.called for hook in hooks if not _is_faulty(hook)]
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


def _is_faulty(hook: Webhook) -> bool:
    try:
        return not hook.place.hostname
    except ValueError:
        return True
