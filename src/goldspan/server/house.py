"""All that the routes of one server share, and how they find it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from threading import Event
from typing import cast

from starlette.requests import HTTPConnection

from goldspan.campaign.clock import wall_clock
from goldspan.old_name import OLD_NAME
from goldspan.server.protocols import ServiceFace
from goldspan.server.security.csrf import FormSeal
from goldspan.server.security.entrance import Entrance
from goldspan.server.security.limits import Buckets
from goldspan.server.settings import ServerSettings
from goldspan.store.journal import Held


@dataclass(frozen=True)
class House:
    """One campaign's server.

    Attributes:
        service: The campaign: `service.work`, `service.desk`.
        settings: How it is run.
        entrance: Who may come in, and how they are known again.
        forms: The tokens of forms that are filled in before there is a session.
        buckets: How often things are done, by the names of `goldspan.server.settings.Rates`.
        held: Whether this process still serves the campaign.
        leaving: Set when the server stops: what would go on for ever ends.
    """

    service: ServiceFace
    settings: ServerSettings
    entrance: Entrance
    forms: FormSeal
    buckets: dict[str, Buckets]
    held: Held
    leaving: Event = field(default_factory=Event)

    @classmethod
    def of(cls, service: ServiceFace, settings: ServerSettings) -> House:
        """Give the house of a service."""
        if settings.clock is wall_clock:
            settings = replace(settings, clock=service.clock)
        rates = vars(settings.rates)
        database = getattr(service.ledger, "database", None)  # a ledger in memory has none
        return cls(
            service,
            settings,
            Entrance.of(service.ledger, service.setting.key, settings),
            FormSeal(settings.keys.of("form")),
            {name: Buckets(rate, settings.clock) for name, rate in rates.items()},
            Held() if database is None else database.held,
        )

    def cookie_name(self, kind: str) -> str:
        """Give the name of a cookie: "worker", "desk" or "form".

        Over HTTPS the name itself says that no other host has set the cookie.
        """
        return f"__Host-goldspan_{kind}" if self.settings.is_secure else f"goldspan_{kind}"

    def old_cookie_name(self, kind: str) -> str:
        """Return the name that a cookie had before the package was called goldspan."""
        return self.cookie_name(kind).replace("goldspan", OLD_NAME)

    def cookie_of(self, cookies: Mapping[str, str], kind: str) -> str | None:
        """Return the cookie of a kind among those that a browser sent, under either name."""
        return cookies.get(self.cookie_name(kind), cookies.get(self.old_cookie_name(kind)))


async def house_here(request: HTTPConnection) -> House:
    """Give the house (a dependency of FastAPI; `async`, so that it takes no thread)."""
    return house_of(request)


def house_of(request: HTTPConnection) -> House:
    """Give the house that a request came to."""
    return cast("House", request.app.state.house)
