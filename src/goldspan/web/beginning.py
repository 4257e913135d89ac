"""The first steps of a process that a server has started (`goldspan.web.processes`).

Loading what a loop or a web process needs takes seconds on a busy machine. Nothing here needs it,
so that such a process hears of its server's death meanwhile too.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

LOOK = 0.25
"""Seconds between two looks whether the server lives."""
GRACE = 1.0
"""Seconds that a process at work gets to end whose server was killed; the next server waits
longer."""


def main() -> None:
    """Be a process of a server: the argument is its number, and standard input says which part."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the server says what ends
    at_work, leaving = threading.Event(), threading.Event()
    watching = (int(sys.argv[1]), at_work, leaving)
    threading.Thread(target=_end_with, args=watching, daemon=True).start()

    from goldspan.web.processes import work

    sys.exit(work(at_work, leaving))


def _end_with(server: int, at_work: threading.Event, leaving: threading.Event) -> None:
    """End soon after the server was killed; at once if nothing is at work yet."""
    while os.getppid() == server:
        time.sleep(LOOK)
    leaving.set()
    if at_work.is_set():
        time.sleep(GRACE)
    os._exit(1)
