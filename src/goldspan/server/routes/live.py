"""What changes, as it changes: a stream of events that an open desk listens to.

An open desk holds no thread: once a second one looks, in a thread for a moment, whether anything is
new. The stream itself is no use of the session: a desk that nobody touches is closed in time.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any

import anyio
from anyio import to_thread
from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from goldspan.errors import GoldspanError
from goldspan.server.doors import HouseHere, RequesterHere
from goldspan.server.house import House
from goldspan.server.models import refusals
from goldspan.server.security.sessions import Session

router = APIRouter(prefix="/api/desk", tags=["desk"])
PACE = 1.0
"""Seconds between two events at least."""
HEARTBEAT = 15.0
"""Seconds after which one is sent though nothing is new: time passes, and proxies do not wait."""
TROUBLE = "trouble"
NO_STORE = (
    "The server cannot read the campaign's store; nothing can be answered or decided until it can. "
    "The log of goldspan serve says why."
)
"""No more than that: while the store is gone, nobody knows whether the session still holds."""
STREAM = {"description": "Events.", "content": {"text/event-stream": {"schema": {}}}}


@router.get("/live", response_class=StreamingResponse, responses={200: STREAM, **refusals()})
async def live(requester: RequesterHere, house: HouseHere) -> StreamingResponse:
    """Send the overview whenever something has changed, once a second at most.

    The event `overview` holds what `GET overview` gives; `trouble` says that the store cannot be
    read at the moment, and `ended` that the session is over.
    """
    headers = {"X-Accel-Buffering": "no"}
    stream = events(house, requester)
    return StreamingResponse(stream, headers=headers, media_type="text/event-stream")


async def events(house: House, session: Session) -> AsyncIterator[str]:
    """Give the events of a session's stream, until it or the server ends."""
    seen: Any = None
    told = -HEARTBEAT
    while not house.leaving.is_set():
        mark, news = await to_thread.run_sync(
            _look, house, session, None if time.monotonic() - told >= HEARTBEAT else seen
        )
        if mark is None:
            yield "event: ended\ndata: {}\n\n"
            return
        seen = mark
        if news == TROUBLE:
            told = time.monotonic()
            yield f"event: trouble\ndata: {json.dumps({'error': NO_STORE})}\n\n"
        elif news:
            told = time.monotonic()
            yield f"event: overview\ndata: {news}\n\n"
        await anyio.sleep(PACE)


def _look(house: House, session: Session, seen: Any) -> tuple[Any, str]:
    """Give what marks the state of things, and the overview if it is another; None at the end."""
    try:
        if not house.entrance.sessions.holds(session):
            return None, ""
        mark = house.service.desk.mark()
        if mark == seen:
            return mark, ""
        return mark, json.dumps(house.service.desk.overview(), ensure_ascii=False)
    except GoldspanError:  # the store cannot be read at the moment: the next look may
        return TROUBLE, "" if seen == TROUBLE else TROUBLE
