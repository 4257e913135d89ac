"""Where work runs and where its state is kept: threads of this process, files on this disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.runners.checkpoint import FileCheckpoint
    from goldspan.runners.threads import Threads

__all__ = ["FileCheckpoint", "Threads"]

__getattr__ = lazy(
    __name__,
    {"FileCheckpoint": "goldspan.runners.checkpoint", "Threads": "goldspan.runners.threads"},
)
