"""What processes know of a loop that runs in another one, and how they ask it.

How the loop is stands in a small file (`LiveFile`), which is read whenever a page asks. Those views
of the desk that need answers and labels are made in the loop's process (`goldspan.web.processes`),
which is asked at a socket (`Watcher.ask`).
"""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from goldspan.campaign.protocols import Decision, Waiting
from goldspan.web.engine import Live
from goldspan.web.errors import Refused

log = logging.getLogger("goldspan.web.processes")

# --------------------------------------------------------------------------------------------------
# How the loop is, in a file


class LiveFile:
    """How a loop in another process is: all of `Live` but answers, labels and verdicts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: tuple[tuple[int, int, int], Live] = (0, 0, 0), Live()

    def write(self, live: Live) -> None:
        """Replace the content."""
        kept = {name: getattr(live, name) for name in _KEPT}
        kept["waiting"] = None if live.waiting is None else asdict(live.waiting)
        kept["decision"] = None if live.decision is None else asdict(live.decision)
        new = self._path.with_suffix(".new")
        try:
            new.write_text(json.dumps(kept), encoding="utf-8")
            new.replace(self._path)
        except OSError as error:  # the desk shows what was before
            log.warning("cannot write %s: %s", self._path, error.strerror)

    def read(self) -> Live:
        """Return the content; "starting" before there is any."""
        try:
            found = self._path.stat()
            mark = found.st_ino, found.st_mtime_ns, found.st_size
            known, live = self._read
            if mark != known:
                live = _read_live(self._path.read_text(encoding="utf-8"))
                self._read = mark, live
        except (OSError, ValueError):
            return self._read[1]
        return live


_KEPT = ("version", "state", "n_answers", "n_labelled", "error", "advice", "n_faults", "looked")


def _read_live(words: str) -> Live:
    kept = json.loads(words)
    waiting, decision, looked = kept.pop("waiting"), kept.pop("decision"), kept.pop("looked")
    return Live(
        **kept,
        looked=None if looked is None else (looked[0], looked[1]),
        waiting=None if waiting is None else Waiting(**waiting),
        decision=None if decision is None else Decision(**decision),
    )


# --------------------------------------------------------------------------------------------------
# What the processes of the pages know of the loop, and ask it


AT_ONCE = 4
"""Views of the desk that one web process asks for at a time: its threads are for annotators."""
PATIENCE = 60.0
"""Seconds until a view that the loop's process makes counts as not coming."""
_AWAY = Refused(
    "unavailable",
    "The part of the server that computes is being started. Try again in a moment; answers are "
    "taken meanwhile.",
    503,
    retry=5,
)
_SLOW = Refused("busy", "The server is computing: try again in a moment.", 503, retry=5)


class Watcher:
    """Stands for the engine of a loop that runs in another process."""

    trouble: None = None
    """The other process writes the file for commands beside the server."""

    def __init__(self, file: LiveFile, place: Path) -> None:
        self._file, self._place = file, place
        self._free = threading.BoundedSemaphore(AT_ONCE)

    @property
    def live(self) -> Live:
        """How the loop is; its answers, labels and verdicts are in its own process alone."""
        return self._file.read()

    def is_over(self) -> bool:
        """Whether the campaign has ended."""
        return self.live.state == "ended"

    def notify(self, n: int = 1) -> None:
        """Do nothing: the loop's process reads in the store what has come."""

    def look_again(self) -> None:
        """Do nothing: as `notify`."""

    def look(self) -> Live:
        """Return how the loop is; it looks by itself."""
        return self.live

    def start(self) -> None:
        """Do nothing: the loop is started elsewhere."""

    def stop(self) -> None:
        """Do nothing: as `start`."""

    def abandon(self) -> None:
        """Do nothing: as `start`."""

    def ask(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Let the loop's process make a view of the desk."""
        if not self._free.acquire(timeout=PATIENCE):
            raise _SLOW
        try:
            with self._connected() as connection:
                connection.send((name, tuple(args), kwargs))
                if not connection.poll(PATIENCE):
                    raise _SLOW
                is_made, found = connection.recv()
        except (OSError, EOFError):
            raise _AWAY from None
        finally:
            self._free.release()
        if not is_made:
            raise found
        return found

    def _connected(self) -> Connection:
        end = time.monotonic() + PATIENCE / 4
        while True:
            link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                link.connect(str(self._place))
            except OSError:
                link.close()
                # It begins, or has ended and is started again.
                if self.live.error or time.monotonic() > end:
                    raise
                time.sleep(0.1)
            else:
                return Connection(link.detach())


@dataclass(frozen=True)
class Room:
    """Where the loop of one campaign says how it is, and is asked."""

    path: Path  # The beginning of its files' paths

    @property
    def file(self) -> LiveFile:
        """How the loop is."""
        return LiveFile(self.path.with_suffix(".json"))

    @property
    def socket(self) -> Path:
        """Where the loop is asked."""
        return self.path.with_suffix(".desk")

    @property
    def watcher(self) -> Watcher:
        """What stands for the loop in the processes of the pages."""
        return Watcher(self.file, self.socket)
