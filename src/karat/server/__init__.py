"""The web page for workers and the requester's desk: one process, one campaign, one store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karat._lazy import lazy
from karat.errors import MissingExtraError

if TYPE_CHECKING:
    from karat.server.app import create_app
    from karat.server.running import serve
    from karat.server.security.entrance import Entrance
    from karat.server.security.secret import Keys, load_keys
    from karat.server.service import Service, open_service
    from karat.server.settings import ServerSettings

__all__ = [
    "Entrance",
    "Keys",
    "ServerSettings",
    "Service",
    "create_app",
    "load_keys",
    "open_service",
    "serve",
]

_HOME = {
    "Entrance": "karat.server.security.entrance",
    "Keys": "karat.server.security.secret",
    "ServerSettings": "karat.server.settings",
    "Service": "karat.server.service",
    "create_app": "karat.server.app",
    "load_keys": "karat.server.security.secret",
    "open_service": "karat.server.service",
    "serve": "karat.server.running",
}
_EXTRA = {"argon2", "fastapi", "itsdangerous", "jinja2", "starlette", "uvicorn"}

_get = lazy(__name__, _HOME)


def __getattr__(name: str) -> Any:
    """Import a public name at first use.

    Raises:
        MissingExtraError: A package of the extra is not installed.
    """
    try:
        return _get(name)
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        raise MissingExtraError(error.name, "server", "the server") from None
