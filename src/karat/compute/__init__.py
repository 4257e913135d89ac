"""Where work runs and where its state is kept: threads of this process, files on this disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat._lazy import lazy

if TYPE_CHECKING:
    from karat.compute.checkpoint import FileCheckpoint
    from karat.compute.threads import Threads

__all__ = ["FileCheckpoint", "Threads"]

__getattr__ = lazy(
    __name__,
    {"FileCheckpoint": "karat.compute.checkpoint", "Threads": "karat.compute.threads"},
)
