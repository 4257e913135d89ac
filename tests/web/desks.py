"""A real campaign behind a server, for what the requester does."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from goldspan.web import ServerSettings, create_app
from goldspan.web.settings import Rate, Rates
from web.loops import in_thread
from web.played import KEYS, URL, Played

FREE = Rates(*[Rate(1e6, 1_000_000)] * 6)


def as_json(view):
    """Return a view of the desk, or a list of them, as the API and `--json` give it."""
    return [one.to_dict() for one in view] if isinstance(view, list) else view.to_dict()


@dataclass
class Served(Played):
    """A server over a service of `web.serving`.

    Attributes:
        service: The campaign.
        url: Its address.
        rates: How often things may be done; without them nobody is slowed down.
    """

    service: Any = None
    url: str = URL
    rates: Rates = FREE

    def __post_init__(self):
        clock = self.service.clock
        self.settings = ServerSettings(KEYS, self.url, clock=clock, rates=self.rates)
        self.app = create_app(self.service, self.settings)


@contextmanager
def running(service):
    """Run a service's server on a free port of this machine."""

    def make(url):
        nonlocal served
        served = Served(service=service, url=url)
        return served.app

    served = None
    with in_thread(make) as app:
        yield served
        app.state.context.leaving.set()
