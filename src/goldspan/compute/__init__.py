"""Where work runs and where its state is kept: threads of this process, files on this disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.compute.checkpoint import FileCheckpoint
    from goldspan.compute.threads import Threads

__all__ = ["FileCheckpoint", "Threads"]

__getattr__ = lazy(
    __name__,
    {"FileCheckpoint": "goldspan.compute.checkpoint", "Threads": "goldspan.compute.threads"},
)
