"""Ctrl-C in a study whose runs are in several threads."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def at_interrupt(stop: threading.Event) -> Iterator[None]:
    """Let Ctrl-C end the runs of all threads, when they ask; a second one ends the main thread's.

    Only the main thread hears it, and it does runs, too: what it has finished is to be kept.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def hear(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            signal.default_int_handler(number, frame)
        stop.set()

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield
        if stop.is_set():  # after the last question
            raise KeyboardInterrupt
    finally:
        signal.signal(signal.SIGINT, before)
