"""The requester's desk, without HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.web.desk.desk import Desk as Desk

__getattr__, __dir__, __all__ = lazy(__name__)
