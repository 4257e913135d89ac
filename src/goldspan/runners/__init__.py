"""Where work runs – threads, or a cluster – and where its state is kept: files on this disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.runners.checkpoint import FileCheckpoint
    from goldspan.runners.cluster import Ray, working
    from goldspan.runners.threads import Threads

__all__ = ["FileCheckpoint", "Ray", "Threads", "working"]

__getattr__ = lazy(
    __name__,
    {
        "FileCheckpoint": "goldspan.runners.checkpoint",
        "Ray": "goldspan.runners.cluster",
        "Threads": "goldspan.runners.threads",
        "working": "goldspan.runners.cluster",
    },
)
