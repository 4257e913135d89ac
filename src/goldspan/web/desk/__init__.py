"""The requester's desk, without HTTP."""

from goldspan.web.desk.desk import Desk

__all__ = ["Desk"]
