"""How far a reader is, told to whoever asked, at most about a hundred times."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeVar

T = TypeVar("T")
Tell = Callable[[int, int], Any]

_TIMES = 100


class Progress:
    """Tells (done, total) when another hundredth is done.

    Args:
        tell: Whom to tell; None for nobody.
        total: How much there is to do.

    >>> progress = Progress(lambda done, total: print(f"{done} of {total}"), 2)
    >>> progress.at(2)
    2 of 2
    """

    def __init__(self, tell: Tell | None, total: int) -> None:
        self._tell, self._total, self._last = tell, total, 0
        self._step = max(1, total // _TIMES)

    def at(self, done: int) -> None:
        """Say how much is done; more than the total counts as the total."""
        done = min(done, self._total)
        new = done - self._last
        if self._tell and (new >= self._step or (new and done == self._total)):
            self._last = done
            self._tell(done, self._total)


def counted(things: Collection[T], tell: Tell | None) -> Iterator[T]:
    """Give things one by one, and tell how many of them are dealt with."""
    progress = Progress(tell, len(things))
    for n, thing in enumerate(things, start=1):
        yield thing
        progress.at(n)
