"""Providers by name; personal links are the simplest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError, field_validator

from goldspan.campaign.plan import Plan
from goldspan.campaign.section import Section
from goldspan.errors import Fault, FaultsError, InputError, UnknownNameError
from goldspan.plugins import load
from goldspan.store import SqlLedger
from goldspan.web.errors import Refused
from goldspan.web.providers.base import Event, Provider
from goldspan.web.providers.payments import PaymentSender

# --------------------------------------------------------------------------------------------------
# Workers come by personal links that the requester hands out or sends by e-mail.


class LinkOptions(Section):
    """What a worker who is finished is given; by default nothing but the last message.

    Attributes:
        url: An address to go to.
        code: A code to hand in.
    """

    url: str | None = None
    code: str | None = None

    @field_validator("url")
    @classmethod
    def _web(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("https://", "http://")):
            raise ValueError("must be an address that begins with https://")
        return value


class Link:
    """The provider of personal links."""

    Options = LinkOptions
    name = "link"
    checks_people = False
    sends_requests = False

    def __init__(self, options: LinkOptions, _: SqlLedger, __: Callable[[], int]) -> None:
        self.options = options

    def identify(self, _: Mapping[str, str]) -> str:
        """Refuse: people come by `/w/TOKEN` and in no other way."""
        raise Refused("link", "Open your personal link.", 404)

    def is_new(self, _: Mapping[str, str]) -> bool:
        """Say no: nothing is kept."""
        return False

    def completion(self, _: str) -> dict[str, Any] | None:
        """Return the address and the code of the plan."""
        found = {key: value for key, value in self.options.model_dump().items() if value}
        return found or None

    def on_event(self, _: Mapping[str, str], __: bytes) -> Event:
        """Refuse: there is nobody who could send one."""
        raise Refused("unknown", "This page does not exist.", 404)

    def workers(self) -> list[str]:
        """Return nobody: requests are written to no one."""
        return []

    def owed(self, _: str, __: int) -> int:
        """Return 0: the requester pays by other means."""
        return 0

    def about(self, worker: str) -> str:
        """Refuse: there is nobody to write to."""
        raise InputError(
            f"{worker}: provider.name is 'link', which pays nobody: see `goldspan bill` for "
            "who gets what"
        )

    def check_rejection(self, _: str, __: str) -> None:
        """Do nothing."""

    def sender(self) -> PaymentSender | None:
        """Return None."""
        return None


# --------------------------------------------------------------------------------------------------
# The providers by name. A new provider is one file (or folder) and one line here.


PROVIDERS: dict[str, str] = {
    "link": "goldspan.web.providers.registry:Link",
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
