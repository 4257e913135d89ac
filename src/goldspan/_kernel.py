"""How kernels are compiled: by Numba, without the GIL, and cached on disk where that is possible.

`nogil` lets the threads of `goldspan.runners` run them side by side; `parallel=True` is never used,
because two Python threads inside it abort the process under one of Numba's threading layers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core import event

from goldspan._compiling import tell


class _Compiled(event.Listener):
    """Passes on what Numba says of its compiler, which it does not ask where the cache helps."""

    def on_start(self, event: Any) -> None:
        del event
        tell(begins=True)

    def on_end(self, event: Any) -> None:
        del event
        tell(begins=False)


event.register("numba:compile", _Compiled())  # type: ignore[no-untyped-call]


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of arrays at its first call.

    The machine code is kept beside the source or in the user's cache folder. An installation
    without any writable folder compiles anew in every process.
    """
    return _compiled(function)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that kernels call for every token: its code stands in theirs.

    A call passes seven words for every array, which costs more than a loop over a few labels.
    """
    return _compiled(function, forceinline=True)


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    compiled: Callable[..., Any]
    options |= {"nogil": True, "error_model": "numpy"}
    try:
        compiled = numba.njit(function, cache=True, **options)
    except RuntimeError:  # Numba found no folder to cache in
        compiled = numba.njit(function, **options)
    return compiled
