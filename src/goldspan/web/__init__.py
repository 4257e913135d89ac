"""The web page for workers and the requester's desk: one process, one campaign, one store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.web.app import create_app as create_app
    from goldspan.web.running import serve as serve
    from goldspan.web.security.access import Auth as Auth
    from goldspan.web.service import Service as Service
    from goldspan.web.service import open_service as open_service
    from goldspan.web.settings import Keys as Keys
    from goldspan.web.settings import ServerSettings as ServerSettings
    from goldspan.web.settings import load_keys as load_keys

__getattr__, __dir__, __all__ = lazy(
    __name__,
    extra="server",
    needs={
        "argon2", "fastapi", "itsdangerous", "jinja2", "prometheus_client", "starlette", "uvicorn",
    },
    purpose="the server",
)  # fmt: skip
