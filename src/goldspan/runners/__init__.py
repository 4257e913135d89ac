"""Where work runs – threads, or a cluster – and where its state is kept: files on this disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.runners.checkpoint import FileCheckpoint as FileCheckpoint
    from goldspan.runners.cluster import Ray as Ray
    from goldspan.runners.cluster import working as working
    from goldspan.runners.threads import Threads as Threads

__getattr__, __dir__, __all__ = lazy(__name__)
