"""Whose turn it is to write: a lock whose waiters go in the order in which they came.

Python's own lock may be taken again by the thread that has just let go of it, while others wait for
seconds.
"""

from __future__ import annotations

import threading
from collections import deque


class Turn:
    """A fair lock, for `with`; it cannot be taken twice by one thread.

    >>> turn = Turn()
    >>> with turn:
    ...     turn.waiting
    0
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._queue: deque[threading.Lock] = deque()
        self._taken = False

    @property
    def waiting(self) -> int:
        """How many threads wait."""
        return len(self._queue)

    def __enter__(self) -> None:
        """Wait for one's turn."""
        with self._guard:
            if not self._taken:
                self._taken = True
                return
            mine = threading.Lock()
            mine.acquire()
            self._queue.append(mine)
        try:
            mine.acquire()
        except BaseException:
            self._leave(mine)
            raise

    def __exit__(self, *_: object) -> None:
        """Hand over to who has waited longest."""
        with self._guard:
            if self._queue:
                self._queue.popleft().release()
            else:
                self._taken = False

    def _leave(self, mine: threading.Lock) -> None:
        """Stop waiting after Ctrl-C; the turn may have come meanwhile."""
        with self._guard:
            waits = mine in self._queue
            if waits:
                self._queue.remove(mine)
        if not waits:
            self.__exit__()
