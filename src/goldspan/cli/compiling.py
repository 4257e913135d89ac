"""The line that says that kernels are compiled, for a terminal and for a log."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from goldspan import _compiling

TEXT = "Compiling numerical kernels (first run on this machine, up to a minute) …"
PERIOD = 0.25
"""Seconds after which the line is drawn again."""
IDLE = 2.0
"""Seconds without a compilation after which it is over, as far as one can tell."""


class CompileNotice:
    """Says on standard error that kernels are compiled: a live line on a terminal, else one line.

    Nothing is said where all kernels come from the cache.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0  # a kernel that calls another one compiles it within
        self._since = self._last = self._seconds = 0.0
        self._has_told = self._is_drawn = False
        self._displays = 0
        self._ticker: threading.Thread | None = None
        self._over = threading.Event()

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Listen while a command runs."""
        _compiling.listen(self._hear)
        try:
            yield
        finally:
            _compiling.forget(self._hear)
            self._over.set()
            ticker = self._ticker
            if ticker is not None:
                ticker.join()
            self._over.clear()

    @contextmanager
    def beside_another_display(self) -> Iterator[None]:
        """Draw nothing while a progress bar or a log has the terminal: a plain line says it."""
        with self._lock:
            self._displays += 1
            self._erase()
        try:
            yield
        finally:
            with self._lock:
                self._displays -= 1

    def _hear(self, begins: bool) -> None:
        with self._lock:
            self._depth += 1 if begins else -1
            now = time.monotonic()
            if begins and self._depth == 1:
                self._since = now
                self._tell()
            elif not begins and self._depth == 0:
                self._seconds += now - self._since
                self._last = now

    def _tell(self) -> None:
        """Say it at the first kernel; on a terminal go on saying it."""
        if self._displays or not sys.stderr.isatty():
            if not self._has_told:
                self._has_told = True
                _print(TEXT)
        elif self._ticker is None:
            self._ticker = threading.Thread(target=self._tick, daemon=True)
            self._ticker.start()

    def _tick(self) -> None:
        while True:
            with self._lock:
                now = time.monotonic()
                is_idle = self._depth == 0 and now - self._last > IDLE
                if is_idle or self._over.is_set():
                    self._finish()
                    self._ticker = None
                    return
                if not self._displays:
                    running = now - self._since if self._depth else 0.0
                    sys.stderr.write(f"\r{TEXT} {self._seconds + running:.0f} s ")
                    sys.stderr.flush()
                    self._is_drawn = True
            self._over.wait(PERIOD)

    def _erase(self) -> None:
        if self._is_drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._is_drawn = False

    def _finish(self) -> None:
        """Put in the place of the line how long it took."""
        self._erase()
        if self._seconds >= 1 and not self._displays:
            _print(f"Compiled numerical kernels in {self._seconds:.0f} s; the next run has them.")
        self._seconds = 0.0


def _print(line: str) -> None:
    # A reader who is gone must not stop the work.
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


notice = CompileNotice()
