"""The processes of a server: a loop's own for each campaign, and several web processes if wanted.

What computes – the campaign's loop, and what the desk makes of its labels – runs in a process of
its own, so that no request waits for Python's interpreter lock while numbers are computed. The
processes share the store. Besides it there are, in a folder that lives as long as the server:

* a small file in which the loop says how it is, read whenever a page asks;
* a socket at which the loop's process makes those views of the desk that need labels, for it alone
  has them.

The process of `goldspan serve` starts the others (`Child`), starts again what ends, and ends them
with itself: also when it is killed, for they look whether it lives (`goldspan.web.beginning`).
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from goldspan.campaign.clock import CampaignClock
from goldspan.campaign.inputs import CampaignInputs
from goldspan.errors import GoldspanError
from goldspan.store import SqlLedger
from goldspan.store.engine import StoreError
from goldspan.store.roles import serving
from goldspan.web.app import Listed, create_app, create_list, list_context, open_list
from goldspan.web.desk import Desk
from goldspan.web.desk.downloads import Report
from goldspan.web.engine import Engine, LoopFiles, Watcher, explain
from goldspan.web.errors import Refused
from goldspan.web.logs import Style, fields_of, open_log
from goldspan.web.metrics import offer_metrics
from goldspan.web.people import GOLD
from goldspan.web.running import HERE, serve
from goldspan.web.service import Service, open_service
from goldspan.web.settings import CAMPAIGNS, Keys, ServerSettings

log = logging.getLogger("goldspan.web.processes")

CAN_SPLIT = sys.platform != "win32"
"""Whether this system can hand sockets and folders to other processes as they are needed here."""

# --------------------------------------------------------------------------------------------------
# The desk's views, made where the labels are


class DeskServer:
    """Makes views of the desk for the processes of the pages, each in a thread."""

    def __init__(self, desk: Desk, place: Path) -> None:
        self._desk = desk
        place.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(place))
        self._socket.listen(64)
        threading.Thread(target=self._accept, name="goldspan desk", daemon=True).start()

    def close(self) -> None:
        """Take no more requests."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._socket.accept()
            except OSError:  # it was closed
                return
            connection = Connection(link.detach())
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: Connection) -> None:
        with connection, suppress(OSError, EOFError):  # who asked has gone
            name, args, kwargs = connection.recv()
            connection.send(self._make(name, args, kwargs))

    def _make(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[bool, Any]:
        """Return whether a view was made, and the view or the error."""
        try:
            return True, getattr(self._desk, name)(*args, **kwargs)
        except GoldspanError as error:
            return False, error
        except Exception as error:  # noqa: BLE001 - the requester is told, and the log says where
            log.error("a view of the desk failed", extra={"fields": fields_of(error)})  # noqa: TRY400
            words = "Something went wrong on the server. Its log says where."
            return False, Refused("fault", words, 500)


# --------------------------------------------------------------------------------------------------
# A campaign as several processes open it


@dataclass(frozen=True)
class Hosted:
    """A campaign of a server, as it is handed from process to process."""

    # The plan with its files, as they were when the server began
    inputs: CampaignInputs = field(repr=False)
    out: Path
    store: str | None = field(repr=False)  # Address of the store, if that is not in the folder
    keys: Keys = field(repr=False)
    moment: tuple[int, int]  # Of the clock that all processes of the server show
    loop_files: LoopFiles  # Where its loop says how it is, and is asked
    report: Report | None

    @classmethod
    def of(cls, service: Service, loop_files: LoopFiles, store: str | None) -> Hosted:
        """Return a campaign that is open."""
        assert isinstance(service.clock, CampaignClock)
        inputs, moment = replace(service.inputs), service.clock.moment  # without what was derived
        return cls(inputs, service.out, store, service.keys, moment, loop_files, service.report)

    def open(self, watcher: Watcher | None) -> Service:
        """Open it, with the loop in this process or in another one."""
        return open_service(
            self.inputs, self.out, self.keys, self.store, report=self.report, moment=self.moment,
            watcher=watcher,
        )  # fmt: skip


@contextmanager
def loop_folder() -> Iterator[Path]:
    """Make the folder of a server's loops, which nobody else may enter."""
    # The path of a socket has 100 characters at most.
    where = tempfile.gettempdir()
    where = where if len(where) < 60 else "/tmp"  # noqa: S108 - a new folder of its own in it
    with tempfile.TemporaryDirectory(
        prefix="goldspan-", dir=where, ignore_cleanup_errors=True
    ) as loop_files:
        yield Path(loop_files)


# --------------------------------------------------------------------------------------------------
# What runs in the processes


EVERY = 0.25
"""Seconds between two looks of the loop's process at what others have written."""


@dataclass(frozen=True)
class LoopPart:
    """The loop of a campaign."""

    hosted: Hosted

    def run(self, leaving: threading.Event) -> int:
        """Run the loop, and make the desk's views."""
        file = self.hosted.loop_files.file
        before = file.read()
        version = before.version + 1
        begun = replace(before, version=version, state="starting", computing="", looked=None)
        try:
            service = self.hosted.open(None)
            try:
                engine = service.loop
                assert engine is not None  # no watcher was given
                with service.ledger.steering():
                    engine.live = begun
                    engine.listeners.append(file.write)
                    desk = DeskServer(service.desk, self.hosted.loop_files.socket)
                    service.start(keep=False)
                    _follow(engine, service.ledger, leaving)
                    desk.close()
                    service.stop()
            finally:
                service.close()
        except Exception as error:  # noqa: BLE001 - the desk shows it, and it is tried again
            why, advice, said = explain(error)
            log.error("the loop ends: %s", said, extra={"fields": fields_of(error)})  # noqa: TRY400
            file.write(replace(begun, state="failed", error=why, advice=advice))
            return 1
        return 0 if leaving.is_set() else 1


def _follow(engine: Engine, ledger: SqlLedger, leaving: threading.Event) -> None:
    """Tell an engine what other processes have written, until its process is to leave."""
    seen, answered, decided = 0, 0, 0
    while not leaving.wait(EVERY) and not engine.wait(0):
        with suppress(StoreError):  # the engine says so itself
            n_events = ledger.n_events
            if n_events == seen:
                continue
            last_answer, n_gold = ledger.last_answer, ledger.count(GOLD)
            engine.notify(max(1, last_answer - answered))
            if n_gold != decided:
                engine.look_again()
            seen, answered, decided = n_events, last_answer, n_gold


@dataclass(frozen=True)
class WebPart:
    """One of several processes that answer requests."""

    campaigns: dict[str, Hosted]  # What is served, by name
    broken: dict[str, str]  # What could not be opened, by name, and why
    settings: ServerSettings  # The server's, without the secret of a campaign
    listed: tuple[Path, tuple[int, int]] | None  # The list of several campaigns
    listening: int  # Number of the socket, which all of them share
    metrics: int | None  # Port at which this process offers its metrics
    proxies: tuple[str, ...] = HERE  # Who is believed in X-Forwarded-For

    def run(self, leaving: threading.Event) -> int:
        """Serve."""
        try:
            # It may be told to leave while it opens what it serves.
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            threading.Thread(target=_pass_on, args=(leaving,), daemon=True).start()
            with ExitStack() as stack:
                opened = {
                    name: stack.enter_context(self._opened(one, name))
                    for name, one in self.campaigns.items()
                }
                found = [Listed(name, app) for name, app in opened.items()]
                app: Any = found[0].app
                if self.listed is not None:
                    found += [Listed(name, error=error) for name, error in self.broken.items()]
                    folder, moment = self.listed
                    ledger = stack.enter_context(open_list(folder))
                    app = create_list(list_context(ledger, self.settings, moment), found)
                if self.metrics is not None:
                    metrics = {one.name: one.context.metrics for one in found if one.app}
                    stack.enter_context(offer_metrics(metrics, self.metrics))
                serve(app, socket.socket(fileno=self.listening), self.proxies)
        except KeyboardInterrupt:
            return 0
        except GoldspanError as error:
            log.error("a web process ends: %s", error)  # noqa: TRY400
        return 1

    @contextmanager
    def _opened(self, one: Hosted, name: str) -> Iterator[FastAPI]:
        """Open a campaign and share the role of its server."""
        settings = replace(
            self.settings, keys=one.keys, prefix=f"{CAMPAIGNS}{name}" if name else ""
        )
        service = one.open(one.loop_files.watcher)
        try:
            database, address = service.ledger.database, settings.address()
            with serving(database, address, service.deployment, shared=True):
                yield create_app(service, settings)
        finally:
            service.close()


def _pass_on(leaving: threading.Event) -> None:
    """Tell a web server that it is to leave, in its own way."""
    leaving.wait()
    os.kill(os.getpid(), signal.SIGTERM)


def work(at_work: threading.Event, leaving: threading.Event) -> int:
    """Do the part that standard input tells, until SIGTERM; return the exit code."""
    try:
        part, log_format, log_level = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the server
    except (EOFError, pickle.UnpicklingError):  # the server has ended
        return 1
    open_log(log_format, log_level)
    signal.signal(signal.SIGTERM, lambda *_: leaving.set())
    at_work.set()
    code: int = part.run(leaving)
    return code


# --------------------------------------------------------------------------------------------------
# Starting processes, and starting them again


FIRST, MOST, STEADY = 1.0, 60.0, 120.0
"""Seconds until an ended process is started again: at first, at most, and after how long a life
they begin anew."""
STOPPING = 35.0
"""Seconds that a process gets to end."""
AGAIN = (
    "Answers are still taken and kept, but no round closes meanwhile. The server starts the "
    "process again. If this happens again, look in the log of `goldspan serve` for why it ended, "
    "and whether the machine ran out of memory."
)


class Child:
    """A process of the server that is started again when it ends."""

    def __init__(
        self, name: str, part: LoopPart | WebPart, *, log_format: Style = "text",
        log_level: str = "info", failed: Callable[[str], None] = lambda _: None,
        fds: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.name, self._begun = name, (part, log_format, log_level)
        self._failed, self._fds = failed, tuple(fds)
        self._halt, self._turn = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"goldspan {name}", daemon=True)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End it, and start it no more."""
        with self._turn:
            self._halt.set()
            process = self.process
        if process is not None:
            # What is at work ends in order; what still loads has nothing to end, and dies of it.
            process.terminate()
            try:
                process.wait(STOPPING)
            except subprocess.TimeoutExpired:
                log.warning("%s does not end and is killed; nothing is lost", self.name)
                process.kill()
        if self._thread.ident is not None:
            self._thread.join(STOPPING)

    def _run(self) -> None:
        wait = FIRST
        while True:
            begin = time.monotonic()
            how = self._live()
            if time.monotonic() - begin > STEADY:
                wait = FIRST
            # Whoever ends all processes of a service at once is about to end this one.
            if self._halt.wait(min(wait, FIRST) / 2):
                return
            said = f"{self.name} has ended ({how}) and is started again"
            log.error("%s in %g seconds", said, wait)
            self._failed(said)
            if self._halt.wait(wait):
                return
            wait = min(2 * wait, MOST)

    def _live(self) -> str:
        """Start it, unless it is to end, and wait for its end; return how it has ended."""
        with self._turn:
            self.process = None
            if self._halt.is_set():
                return "not started"
            try:
                process = self._start()
            except OSError as error:  # the machine has no memory or no process left: try again
                return f"it cannot be started: {error.strerror}"
            self.process = process
        self._send(process)
        return _how(process.wait())

    def _start(self) -> subprocess.Popen[bytes]:
        """Start it in a group of its own: Ctrl-C is for the server, which says what ends when."""
        code = "from goldspan.web.beginning import main; main()"
        words = [sys.executable, "-P", "-c", code, str(os.getpid())]
        where = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        return subprocess.Popen(  # noqa: S603 - its own words
            words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=where,
            pass_fds=self._fds, process_group=0,
        )  # fmt: skip

    def _send(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        try:
            with process.stdin as to:  # what it ends without reading fails in `close` too
                pickle.dump(self._begun, to, protocol=pickle.HIGHEST_PROTOCOL)
        except (OSError, MemoryError):  # it has ended already, or would wait for the rest for ever
            process.kill()


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


def loop_of(hosted: Hosted, *, log_format: Style = "text", log_level: str = "info") -> Child:
    """Return the process of a campaign's loop, not yet started."""
    file = hosted.loop_files.file

    def failed(said: str) -> None:
        """Show on the desk that it has ended, unless it has said why itself."""
        live = file.read()
        if live.state != "failed":
            live = replace(live, error=f"{said}.", advice=AGAIN)
        version, n_faults = live.version + 1, live.n_faults + 1
        file.write(replace(live, state="failed", version=version, n_faults=n_faults))

    return Child(
        f"the loop of {hosted.inputs.plan.name}", LoopPart(hosted), failed=failed,
        log_format=log_format, log_level=log_level,
    )  # fmt: skip
