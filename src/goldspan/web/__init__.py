"""The web page for workers and the requester's desk: one process, one campaign, one store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.web.app import create_app
    from goldspan.web.running import serve
    from goldspan.web.security.auth import Auth
    from goldspan.web.security.secret import Keys, load_keys
    from goldspan.web.service import Service, open_service
    from goldspan.web.settings import ServerSettings

__all__ = [
    "Auth",
    "Keys",
    "ServerSettings",
    "Service",
    "create_app",
    "load_keys",
    "open_service",
    "serve",
]

_HOME = {
    "Auth": "goldspan.web.security.auth",
    "Keys": "goldspan.web.security.secret",
    "ServerSettings": "goldspan.web.settings",
    "Service": "goldspan.web.service",
    "create_app": "goldspan.web.app",
    "load_keys": "goldspan.web.security.secret",
    "open_service": "goldspan.web.service",
    "serve": "goldspan.web.running",
}

__getattr__ = lazy(
    __name__,
    _HOME,
    extra="server",
    needs={
        "argon2",
        "fastapi",
        "itsdangerous",
        "jinja2",
        "prometheus_client",
        "starlette",
        "uvicorn",
    },
    purpose="the server",
)
