"""Crowds from outside: where a provider's people come in, and where it sends its messages."""

from __future__ import annotations

import logging
from functools import partial
from hashlib import blake2b
from typing import Annotated, cast

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response

from goldspan.campaign.clock import wall_of
from goldspan.server.errors import Refused
from goldspan.server.house import House
from goldspan.server.providers.protocol import Store
from goldspan.server.providers.reception import Reception
from goldspan.server.providers.registry import open_provider
from goldspan.server.routes.join import count_bad, welcome
from goldspan.server.security.limits import address_name
from goldspan.store.bounds import BoundError

FEW = 50
"""New people of one address on one day that are always let in, as long as there is room at all."""
_FULL = "No more new people can come in today: try again tomorrow."
log = logging.getLogger("goldspan.server.providers")


async def _body(request: Request) -> bytes:
    return await request.body()


Body = Annotated[bytes, Depends(_body)]


def _admit(house: House, address: str) -> None:
    """Count a new person where the provider does not say who they are.

    Raises:
        Refused: As many came in today as may, from this address or from all.
    """
    most, now = house.service.setting.daily_joins, wall_of(house.settings.clock)()
    # An address could be found from a plain hash of it.
    name = blake2b(
        address.encode(), key=house.settings.keys.of("joins"), digest_size=16
    ).hexdigest()
    try:  # one address cannot keep all others out
        house.service.ledger.take("joins", name, max(FEW, most // 10), now)
        house.service.ledger.take("joins", "", most, now)
    except BoundError as error:
        raise Refused("daily", _FULL, 429, retry=error.seconds) from None


def outside(house: House) -> APIRouter:
    """Give the routes of the plan's provider; none where people come by personal links."""
    router = APIRouter(include_in_schema=False)
    provider = house.service.setting.plan.provider
    if provider is None or provider.name == "link":
        return router
    store, clock = cast("Store", house.service.ledger), house.settings.clock
    opened = open_provider(house.service.setting.plan, store, clock)
    admit = (lambda _: None) if opened.checks_people else partial(_admit, house)
    reception = Reception(opened, store, house.entrance.links, clock, admit)

    @router.get(f"/join/{opened.name}")
    def join(request: Request) -> Response:
        """Exchange a provider's parameters for a cookie; they leave the address bar at once."""
        try:
            address = address_name(request.client.host if request.client else None)
            if not opened.checks_people:  # nothing else slows down who makes names up
                house.buckets["join"].take(address)
            link = reception.enter(dict(request.query_params), address)
        except Refused as refused:
            if opened.checks_people and refused.status != 503:
                count_bad(house, request, f"somebody from {opened.name}: {refused.message}")
            raise
        return welcome(house, house.entrance.sessions.begin_work(link))

    @router.post(f"/api/hooks/{opened.name}")
    def hook(request: Request, body: Body) -> Response:
        """Take a signed message of the provider's."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            said = reception.hear(headers, body)
        except Refused as refused:
            count_bad(house, request, f"a message to {opened.name}'s address: {refused.code}")
            raise
        log.info("a message of %s: %s", opened.name, said)
        return JSONResponse({"status": said})

    return router
