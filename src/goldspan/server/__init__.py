"""The web page for workers and the requester's desk: one process, one campaign, one store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.server.app import create_app
    from goldspan.server.running import serve
    from goldspan.server.security.entrance import Entrance
    from goldspan.server.security.secret import Keys, load_keys
    from goldspan.server.service import Service, open_service
    from goldspan.server.settings import ServerSettings

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
    "Entrance": "goldspan.server.security.entrance",
    "Keys": "goldspan.server.security.secret",
    "ServerSettings": "goldspan.server.settings",
    "Service": "goldspan.server.service",
    "create_app": "goldspan.server.app",
    "load_keys": "goldspan.server.security.secret",
    "open_service": "goldspan.server.service",
    "serve": "goldspan.server.running",
}

__getattr__ = lazy(
    __name__,
    _HOME,
    extra="server",
    needs={"argon2", "fastapi", "itsdangerous", "jinja2", "starlette", "uvicorn"},
    purpose="the server",
)
