"""Providers of workers, such as Prolific: what one does, and how its workers are admitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from pydantic import ValidationError, field_validator

from goldspan.campaign.plan import Plan
from goldspan.campaign.section import Section
from goldspan.errors import Fault, FaultsError, InputError, UnknownNameError
from goldspan.plugins import load
from goldspan.store import SqlLedger
from goldspan.web.errors import Refused
from goldspan.web.providers.payments import Deliver
from goldspan.web.security.sessions import Link, Links

# --------------------------------------------------------------------------------------------------
# What a provider of workers does; each method can be called again after a break.


@dataclass(frozen=True)
class Event:
    """What a message of the provider's meant."""

    said: str  # "taken"
    left: str = ""  # The worker whose work here is over, "" if nobody's is


class LinkOptions(Section):
    """What a worker who is finished is given; by default nothing but the last message."""

    url: str | None = None  # An address to go to
    code: str | None = None  # A code to hand in

    @field_validator("url")
    @classmethod
    def _web(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("https://", "http://")):
            raise ValueError("must be an address that begins with https://")
        return value


class Provider:
    """Where workers come from and go to: here personal links that the requester hands out.

    Other providers are subclasses. Each method can be called again after a break.
    """

    Options: type[Section] = LinkOptions
    name = "link"  # As in the plan
    checks_people = False  # Whether `identify` asks the provider who somebody is
    sends_requests = False  # Whether the server sends requests by itself

    def __init__(self, options: Any, store: SqlLedger, clock: Callable[[], int]) -> None:
        self.options, self._store, self._clock = options, store, clock

    def identify(self, _: Mapping[str, str]) -> str:
        """Return the id of the worker who came with these parameters of an address."""
        raise Refused("link", "Open your personal link.", 404)

    def is_new(self, _: Mapping[str, str]) -> bool:
        """Whether `identify` would keep something for these parameters, as far as can be known."""
        return False

    def completion(self, _: str) -> dict[str, Any] | None:
        """Return what a worker who is finished needs: an address `url`, a `code`, or nothing."""
        return {key: value for key, value in self.options.model_dump().items() if value} or None

    def on_event(self, _: Mapping[str, str], __: bytes) -> Event:
        """Take a message that the provider sent to the server."""
        raise Refused("unknown", "This page does not exist.", 404)

    def workers(self) -> list[str]:
        """Return everybody who came in from the provider."""
        return []

    def owed(self, _: str, __: int) -> int:
        """Return what of a worker's earnings is paid in bonuses, in millionths."""
        return 0

    def about(self, worker: str) -> str:
        """Return the provider's id of a worker's work, for requests."""
        raise InputError(
            f"{worker}: provider.name is 'link', which pays nobody: see `goldspan bill` for "
            "who gets what"
        )

    def check_rejection(self, _: str, __: str) -> None:
        """Check the reasons of a rejection before it is written."""

    def sender(self) -> Deliver | None:
        """Return what carries requests to the provider, None if nothing does."""
        return None


# --------------------------------------------------------------------------------------------------
# People come in from a provider's site, and the provider says what became of them.


DAYS = 30.0
"""How long somebody who came in can come back on the same device."""
LEFT = "link-left"
"""Kind of records: links that ended as their worker went, and that nobody took back."""
_TAKEN_BACK = (
    "Whoever runs this study has ended your work here, and you cannot come in again. If you have a "
    "question, please send them a message on the site from which you came."
)


class Admission:
    """Where a provider's workers come in."""

    def __init__(
        self, provider: Provider, store: SqlLedger, links: Links, clock: Callable[[], int],
        admit: Callable[[str], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self.provider, self._store, self._links, self._clock = provider, store, links, clock
        self._turn, self._admit = Lock(), admit

    def enter(self, parameters: Mapping[str, str], address: str = "") -> Link:
        """Return the link of who came in: the one that they have, if it holds.

        Who was shut out by the requester, whose last link was taken back, stays out until the
        requester makes them a new one.
        """
        if self.provider.is_new(parameters):
            self._admit(address)
        worker = self.provider.identify(parameters)
        with self._turn:  # of two visits at once one makes the link: the requester sees one
            mine = [link for link in self._links.all() if link.worker == worker]
            for link in reversed(mine):
                if link.holds:
                    return link
            if mine and mine[-1].revoked and mine[-1].id not in self._store.records(LEFT):
                raise Refused("revoked", _TAKEN_BACK, 403)
            ((link, _),) = self._links.make([worker], DAYS)
        return link

    def hear(self, headers: Mapping[str, str], body: bytes) -> str:
        """Take a message of the provider's; say what it meant.

        Who has left holds no tasks any more, and their session ends. A repeated message does it
        again, as the first time may have been cut off.
        """
        event = self.provider.on_event(headers, body)
        if event.left:
            now = self._clock()
            for lease in self._store.held(event.left, now):
                self._store.release(event.left, lease.item, now)
            for link in self._links.all():
                if link.worker == event.left and not link.revoked:
                    self._store.record(LEFT, link.id, {"worker": link.worker}, now)
                    self._links.revoke(link.id)
        return event.said


# --------------------------------------------------------------------------------------------------
# The providers by name. A new provider is one file (or folder) and one line here.


PROVIDERS: dict[str, str] = {
    "link": "goldspan.web.providers.registry:Provider",
    "prolific": "goldspan.web.providers.prolific:Prolific",
}


def open_provider(plan: Plan, store: SqlLedger, clock: Callable[[], int]) -> Provider:
    """Return the provider of a plan; "link" if it names none."""
    kind, options = _read(plan)
    provider: Provider = kind(options, store, clock)
    return provider


def check_provider(plan: Plan) -> None:
    """Reject a plan whose provider cannot be opened."""
    _read(plan)


def _read(plan: Plan) -> tuple[Any, Any]:
    name = "link" if plan.provider is None else plan.provider.name
    if name not in PROVIDERS:
        raise UnknownNameError("provider", name, PROVIDERS)
    kind = load(PROVIDERS[name])
    try:
        given = {} if plan.provider is None else plan.provider.options
        return kind, kind.Options.model_validate(given)
    except ValidationError as error:
        known = ", ".join(kind.Options.model_fields)
        faults = [Fault(_message(one, known)) for one in error.errors()]
        raise FaultsError(faults, "the plan is refused") from None


def _message(fault: Any, known: str) -> str:
    """Return what is wrong with an option; values are shown: a plan holds no secrets."""
    path = ".".join(["provider", "options", *map(str, fault["loc"])])
    if fault["type"] == "extra_forbidden":
        return f"{path}: there is no such key: choose from {known}"
    if fault["type"] == "missing":
        return f"{path}: is missing"
    reason = fault.get("ctx", {}).get("error", fault["msg"])
    return f"{path}: {reason}, not {fault['input']!r}"
