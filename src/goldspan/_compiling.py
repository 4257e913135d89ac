"""Who is told that kernels are compiled: it takes up to a minute, once on a machine.

Kernels live where Numba is imported, and who is told must not import it: they meet here.
"""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[[bool], None]
"""Is told True when the compilation of a kernel begins, and False when it ends."""
_listeners: list[Listener] = []


def listen(listener: Listener) -> None:
    """Tell a listener of every kernel that is compiled, not of those that are in the cache."""
    _listeners.append(listener)


def forget(listener: Listener) -> None:
    """Tell a listener no more."""
    _listeners.remove(listener)


def tell(*, begins: bool) -> None:
    """Tell all listeners."""
    for listener in _listeners:
        listener(begins)
