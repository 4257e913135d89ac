"""The headers that every answer has, whatever it is."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; object-src 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""Nothing but this server's own files: no script in a page, nothing of third parties."""
UNUSED = (
    "accelerometer", "camera", "display-capture", "geolocation", "gyroscope", "magnetometer",
    "microphone", "midi", "payment", "usb",
)  # fmt: skip
ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": ", ".join(f"{name}=()" for name in UNUSED),
}
DEFAULT = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
"""What a route may say otherwise: files that never change, a report that holds its own styles."""
YEAR = 31_536_000


class Headers:
    """Sets the headers.

    Args:
        app: What answers.
        secure: Whether people come by HTTPS, and shall never come otherwise.
    """

    def __init__(self, app: ASGIApp, *, secure: bool) -> None:
        self._app = app
        strict = (
            {"Strict-Transport-Security": f"max-age={YEAR}; includeSubDomains"} if secure else {}
        )
        self._always = {**ALWAYS, **strict}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with them."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(self._always)
                for name, value in DEFAULT.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, add)
