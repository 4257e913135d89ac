"""Refused requests: a code for programs, a message for people, an HTTP status."""

from __future__ import annotations

from goldspan.errors import GoldspanError


class Refused(GoldspanError):  # noqa: N818 - what happened to the request, not to the server
    """A request that is refused; the message is for who made it."""

    def __init__(self, code: str, message: str, status: int, retry: int = 0) -> None:
        self.code, self.message, self.status, self.retry = code, message, status, retry
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        return Refused, (self.code, self.message, self.status, self.retry)
