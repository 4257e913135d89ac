"""Routes that are taken all the time: the same door, body and answer, with less on the way.

FastAPI works out anew for every request what a route depends on and reads its body in several
steps, which costs as much as the answer itself. These routes are described to OpenAPI as all others
are, and read the one body that they have at once.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, get_origin, get_type_hints

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from goldspan.server.doors import worker_at_the_door
from goldspan.server.errors import Refused
from goldspan.server.house import house_of
from goldspan.server.models import Request as Body
from goldspan.server.security.csrf import HEADER

_UNREAD = Refused("invalid", "The body must be JSON: Content-Type: application/json.", 422)


class DirectRoute(APIRoute):
    """A route of a worker: its function takes a session, the house and a model of the body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Give what answers a request."""
        act = self.endpoint
        model = _model(act)

        async def handle(request: Request) -> Response:
            worker = await worker_at_the_door(request, request.headers.get(HEADER))
            body = _read(model, request, await request.body())
            made: Response = await run_in_threadpool(act, worker, house_of(request), body)
            return made

        return handle


def _model(act: Callable[..., Any]) -> type[Body]:
    """Find the model of a function's body."""
    hints = [get_origin(hint) or hint for hint in get_type_hints(act).values()]
    (model,) = (hint for hint in hints if isinstance(hint, type) and issubclass(hint, Body))
    return model


def _read(model: type[Body], request: Request, words: bytes) -> Body:
    """Read a body.

    Raises:
        Refused: It does not say that it is JSON.
        RequestValidationError: It is none, or not what the route needs.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise _UNREAD
    try:
        return model.model_validate_json(words)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        places = [{**fault, "loc": ("body", *fault["loc"])} for fault in faults]
        raise RequestValidationError(places) from None
