"""The providers by name. A new provider is one file (or folder) and one line here.

A provider is a class with a model of its options, `Options`, made from these, the ledger and a
clock; see `goldspan.server.providers.protocol`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from pydantic import ValidationError

from goldspan.campaign.plan import Plan
from goldspan.errors import Fault, FaultsError, UnknownNameError
from goldspan.server.providers.protocol import Provider, Store

PROVIDERS: dict[str, str] = {
    "link": "goldspan.server.providers.link:Link",
    "prolific": "goldspan.server.providers.prolific.provider:Prolific",
}


def open_provider(plan: Plan, store: Store, clock: Callable[[], int]) -> Provider:
    """Give the provider of a plan; "link" if it names none.

    Raises:
        UnknownNameError: There is no such provider.
        FaultsError: Its options are faulty; all that is wrong is listed.
    """
    kind, options = _read(plan)
    provider: Provider = kind(options, store, clock)
    return provider


def check_provider(plan: Plan) -> None:
    """Refuse a plan whose provider cannot be opened.

    Raises:
        UnknownNameError: There is no such provider.
        FaultsError: Its options are faulty; all that is wrong is listed.
    """
    _read(plan)


def _read(plan: Plan) -> tuple[Any, Any]:
    name = "link" if plan.provider is None else plan.provider.name
    if name not in PROVIDERS:
        raise UnknownNameError("provider", name, PROVIDERS)
    module, _, face = PROVIDERS[name].partition(":")
    kind = getattr(import_module(module), face)
    try:
        given = {} if plan.provider is None else plan.provider.options
        return kind, kind.Options.model_validate(given)
    except ValidationError as error:
        known = ", ".join(kind.Options.model_fields)
        faults = [Fault(_message(one, known)) for one in error.errors()]
        raise FaultsError(faults, "the plan is refused") from None


def _message(fault: Any, known: str) -> str:
    """Say what is wrong with an option; values are shown, as secrets do not stand in a plan."""
    path = ".".join(["provider", "options", *map(str, fault["loc"])])
    if fault["type"] == "extra_forbidden":
        return f"{path}: there is no such key: choose from {known}"
    if fault["type"] == "missing":
        return f"{path}: is missing"
    reason = fault.get("ctx", {}).get("error", fault["msg"])
    return f"{path}: {reason}, not {fault['input']!r}"
