"""The campaign's loop beside the pages: a thread that runs it and keeps the consensus up to date.

Under `goldspan serve` the thread is in a process of its own (`goldspan.web.processes`), in a server
made in Python in the process of the pages.

The loop returns `Waiting` while people answer. Meanwhile the engine aggregates the answers now and
then for the desk, and runs the loop again when the round is complete or an assignment may have
expired. Everything that is shown is in one frozen `Live`, replaced as a whole.
"""

from __future__ import annotations

import json
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

from goldspan.aggregation import Consensus
from goldspan.campaign import Campaign
from goldspan.campaign.auditing import CHECK, DRAW
from goldspan.campaign.clock import WallTimes
from goldspan.campaign.crowds import ENDED
from goldspan.campaign.inputs import CampaignInputs
from goldspan.campaign.keeping import KeptLabels
from goldspan.campaign.outlook import ended, outlook
from goldspan.campaign.protocols import Decision, Stop, Waiting
from goldspan.crowd import Crowd
from goldspan.errors import FaultsError, GoldspanError, InputError
from goldspan.store import SqlLedger
from goldspan.store.engine import LostError, StoreError
from goldspan.store.roles import locked, shared
from goldspan.web.errors import Refused
from goldspan.web.logs import fields_of
from goldspan.web.people import BAR, GOLD
from goldspan.web.security.sessions import DAY
from goldspan.workers.stopping import answer_counts

log = logging.getLogger("goldspan.web.engine")
LOOK = 5.0
"""Seconds after which the loop looks again, for leases may have run out."""
LEAST, REST = 1.0, 2.0
"""Seconds between two looks at the labels, and how often as long as a look computes it rests."""
AFTER_ERROR = 15.0
ADVICE = (
    "Answers are still taken and kept, but no round closes and no worker is evaluated. Fix the "
    "problem above; the server tries again every {seconds} seconds."
)
REPORT = (
    "Answers are still taken and kept, but no round closes and no worker is evaluated. The server "
    "tries again every {seconds} seconds. If it persists, it is a bug in goldspan: the log of "
    "`goldspan serve` says where; please report it, and restart the server."
)
"""What to do about a failure that has a message for people, and about any other."""
CHOOSING = "The next texts are being chosen by the answers so far"
LOST = "This server ends. Use the one that has taken over."
SWITCH = 0.0005
"""Seconds after which Python lets another thread go on while the loop computes. By default it is
5 ms, and a request, which waits some ten times for the database, would wait for the loop as often.
Always on it would cost more than it gives: threads of requests would interrupt each other."""


@dataclass(frozen=True)
class Live:
    """What is known at a moment."""

    version: int = 0  # Grows with every change
    state: str = "starting"
    n_answers: int = 0  # Answers that count, which the rest is about
    n_labelled: int | None = None  # Items with such an answer, without gold questions
    crowd: Crowd | None = field(default=None, repr=False)
    # What they say, None without answers
    result: Consensus | None = field(default=None, repr=False)
    # The verdict on every worker: verdict, mean, low, high, judged, why
    workers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    # How right the labels are, see `goldspan.campaign.auditing.certificate`
    certificate: dict[str, Any] | None = None
    confidence: float | None = None  # Mean confidence of the labels
    waiting: Waiting | None = None  # Answers and items that the round waits for
    decision: Decision | None = None  # Why the campaign ended
    error: str = ""  # What failed, until the loop works again
    advice: str = ""  # What to do about it
    n_faults: int = 0
    # When the answers were last aggregated, by the monotonic clock, and the seconds that it took
    looked: tuple[float, float] | None = None
    computing: str = ""  # What is computed, in words; "" for nothing
    until: float | None = None  # When that is done, by the time that it took before

    def wait(self) -> str:
        """Return what is computed and how long it takes, in words; "" for nothing."""
        if not self.computing or self.state == "failed":
            is_opened = self.looked is not None or self.state not in {"starting", "waiting"}
            return "" if is_opened else "The campaign is being opened, which takes some seconds"
        if self.until is None:
            return f"{self.computing}: it may take a minute"
        left = self.until - time.time()
        much = f"{5 * max(1, round(left / 5))} seconds" if left < 58 else f"{left / 60:.0f} min"
        how_long = f"about {much} more" if left > 0 else "it takes longer than before"
        return f"{self.computing}: {how_long}"


class TroubleFile:
    """What stops the loop, in a small file for commands beside the server.

    It is written once with room to spare and then overwritten in place, which also works on a full
    disk and without the database. The server holds a lock on it, which ends with its process: what
    a server that was killed has left is not believed.
    """

    SIZE = 4_096

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None
        self._is_closed = False

    def write(self, error: str = "", advice: str = "") -> None:
        """Replace the content; without arguments nothing is wrong."""
        if self._is_closed:
            return
        room = self.SIZE // 8  # a character may take six bytes in JSON
        words = json.dumps({"error": error[:room], "advice": advice[: room // 2]})
        try:
            if self._file is None:
                self._file = self.path.open("r+b" if self.path.exists() else "w+b", buffering=0)
                if sys.platform != "win32":  # there, others could not read a locked file
                    locked(self._file)
            self._file.seek(0)
            self._file.write(words.encode().ljust(self.SIZE) + b"\n")
        except OSError as failed:
            log.warning("cannot write %s: %s", self.path, failed.strerror)
        except ValueError:  # it was closed meanwhile
            return

    def read(self) -> dict[str, str]:
        """Return `error` and `advice`, "" where nothing is wrong or no server runs."""
        try:
            with self.path.open("rb") as file:
                is_left = self._file is None and shared(file)  # nobody holds it
                found = {} if is_left else json.loads(file.read())
        except (OSError, ValueError):
            found = {}
        return {name: str(found.get(name, "")) for name in ("error", "advice")}

    def remove(self) -> None:
        """Remove the file when the server ends."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Write nothing more: another server may have taken over."""
        self._is_closed = True
        if self._file is not None:
            self._file.close()
            self._file = None


class Engine:
    """Runs a campaign in a thread of its own."""

    ask: None = None
    """The desk computes here: see `goldspan.web.processes.Watcher.ask`."""

    def __init__(
        self, campaign: Campaign, ended: Callable[[Campaign], None] = lambda _: None,
        trouble: TroubleFile | None = None,
    ) -> None:  # fmt: skip
        self.campaign, self._tell_end, self.trouble = campaign, ended, trouble
        self.live = Live()
        self.listeners: list[Callable[[Live], None]] = []
        """Who is told of every change, in any thread."""
        self._changed = threading.Condition()
        self._halt = False
        self._n_new = 0
        self._thread = threading.Thread(target=self._run, name="goldspan-engine", daemon=True)
        self._next_look, self._stale, self._n_gold = 0.0, False, 0
        self._n_forgotten = self._n_audited = 0
        self._seconds = 0.0  # That the loop computed, at most

    def start(self) -> None:
        """Begin."""
        if self.trouble is not None:
            self.trouble.write()
        self._thread.start()

    def stop(self, seconds: float = 30.0) -> None:
        """End after what is being computed; nothing is lost."""
        with self._changed:
            self._halt = True
            self._changed.notify_all()
        if self._thread.ident is not None:  # it was started
            self._thread.join(seconds)
            if self.trouble is not None:
                self.trouble.remove()

    def abandon(self) -> None:
        """End without a word to files and database: another process steers or serves now."""
        with self._changed:
            self._halt, trouble, self.trouble = True, self.trouble, None
            if trouble is not None:
                trouble.close()
            self._changed.notify_all()

    def notify(self, n: int = 1) -> None:
        """Hear that answers came, or that the requester changed something."""
        with self._changed:
            self._n_new += n
            self._changed.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait until it has ended, or for so long; return whether it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def look_again(self) -> None:
        """Hear that what is known has changed though no answer came: gold, for example."""
        with self._changed:
            self._stale = True
            self._next_look = 0.0
        self.notify()

    def is_over(self) -> bool:
        """Whether the campaign has ended."""
        return self.live.state == "ended"

    def wait_for(self, version: int, seconds: float) -> Live:
        """Wait until there is something newer than a version, or the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._halt or self.live.version > version, seconds)
            return self.live

    def _run(self) -> None:
        while not self._halt:
            begin = time.monotonic()
            self._compute(CHOOSING, self._seconds, state="working")
            try:
                with _giving_way():
                    found = self.campaign.run()
                self._seconds = max(self._seconds, time.monotonic() - begin)
                if isinstance(found, Decision):
                    self._end(found)
                    log.info("the campaign has ended: %s", found.why)
                    self._stay(found)
                    return
                self._publish(state="waiting", waiting=found)
                self._watch(found)
            except LostError as error:
                self._publish(state="failed", error=str(error), advice=LOST)
                return
            except Exception as error:  # noqa: BLE001 - the pages must go on, and the requester must see it
                self._fail(error)

    def _watch(self, found: Waiting) -> None:
        """Look at the labels until the loop can go on."""
        begin, first = time.monotonic(), self._n_new
        while not self._halt:
            n_new = self._n_new - first
            if n_new >= max(1, found.answers) or (n_new and time.monotonic() - begin >= LOOK):
                return
            if time.monotonic() - begin >= 6 * LOOK:
                return
            self.look()
            self._work_again()  # the loop and the look
            with self._changed:
                seen = self._n_new
                self._changed.wait_for(partial(self._is_newer, seen), LEAST)

    def _is_newer(self, seen: int) -> bool:
        return self._halt or self._n_new > seen

    def look(self) -> Live:
        """Aggregate what there is, unless it was done a moment ago."""
        if time.monotonic() < self._next_look:
            return self.live
        start, begin = time.monotonic(), time.thread_time()  # a busy machine: slow, not dear
        with _giving_way():
            progress, live = self.campaign.progress, self.live
            stale = self._forget_if_stale()
            with progress.frozen():
                crowd = progress.crowd
                # An answer that was changed makes another crowd of as many answers.
                lacks = live.result is None and len(crowd.latest) > 0
                if stale or crowd is not live.crowd or lacks:
                    what = f"The labels of {len(crowd.latest):,} answers are being computed"
                    kept = KeptLabels(self.campaign.ledger.labels_folder, crowd)
                    self._compute(what, live.result.seconds if live.result else kept.seconds())
                    self._refresh(crowd, progress.result)
                elif self._is_audited():
                    self._publish(certificate=self.campaign.certificate())
        self._keep(looked=(time.monotonic(), time.monotonic() - start))
        self._next_look = time.monotonic() + max(LEAST, REST * (time.thread_time() - begin))
        return self.live

    def _forget_if_stale(self) -> bool:
        """Forget what was learned if gold was decided since; return whether it was."""
        with self._changed:
            stale, self._stale = self._stale, False
        n_gold = len(self.campaign.ledger.records(GOLD))  # another process may have written some
        is_new, self._n_gold = n_gold != self._n_gold, n_gold
        n_forgotten = self.campaign.ledger.n_forgotten
        if n_forgotten != self._n_forgotten:  # names that are shown have changed
            self._n_forgotten, stale = n_forgotten, True
        if is_new:  # the decision is kept before the gold is: what was read may lack it
            self._stale = True
        if stale or is_new:
            self.campaign.progress.forget()
        return stale or is_new

    def _is_audited(self) -> bool:
        """Whether something was drawn or checked since the last look."""
        ledger, before = self.campaign.ledger, self._n_audited
        self._n_audited = ledger.count(DRAW) + ledger.count(CHECK)
        return self._n_audited != before

    def _refresh(self, crowd: Crowd, result: Consensus | None) -> None:
        workers: Mapping[str, Mapping[str, Any]] = {}
        if result is not None:
            barred = set(self.campaign.ledger.records(BAR))
            workers = self.campaign.progress.verdicts(barred, crowd.n_workers)["workers"]
        answered = crowd.item_ids.filter(pa.array(answer_counts(crowd) > 0))
        control = pa.array(list(self.campaign.inputs.control), pa.string())
        n_control = int(pc.sum(pc.is_in(answered, value_set=control)).as_py() or 0)
        self._publish(
            n_answers=len(crowd.latest), n_labelled=len(answered) - n_control, crowd=crowd,
            result=result, workers=workers, certificate=self.campaign.certificate(),
            confidence=None if result is None else result.mean_confidence,
        )  # fmt: skip
        self._is_audited()

    def _end(self, decision: Decision) -> None:
        progress = self.campaign.progress
        with progress.frozen():
            self._refresh(progress.crowd, progress.result)
            self._tell_end(self.campaign)
        self._work_again()
        self._publish(state="ended", decision=decision, waiting=None)

    def _stay(self, decision: Decision) -> None:
        """Take into the files what comes after the end: decisions, and answers to open tasks."""
        seen = self._n_new
        while not self._halt:
            with self._changed:
                wait = LEAST if self._stale else AFTER_ERROR
                self._changed.wait_for(partial(self._is_newer, seen), wait)
                seen = self._n_new
            news = self._forget_if_stale(), self._is_audited()
            if any(news) or self.campaign.progress.crowd is not self.live.crowd:
                begin = time.thread_time()
                self._end(decision)
                rest = max(LEAST, REST * (time.thread_time() - begin))
                with self._changed:  # several decisions in a row are taken together
                    self._changed.wait_for(lambda: self._halt, rest)

    def _fail(self, error: Exception) -> None:
        """Say what stops the loop wherever somebody may look, and wait before the next attempt."""
        why, advice, said = explain(error)
        if why != self.live.error:  # every attempt may fail alike: said once
            fields = {"fields": fields_of(error)}
            log.error("the campaign is blocked: %s. %s", said, advice, extra=fields)
        n_faults = self.live.n_faults + 1
        self._publish(state="failed", error=why, advice=advice, n_faults=n_faults)
        self._stale, self._next_look = True, 0.0  # what was half done is done anew
        if self.trouble is not None:
            self.trouble.write(why, advice)
        with self._changed:
            self._changed.wait_for(lambda: self._halt, AFTER_ERROR)

    def _work_again(self) -> None:
        """Take back what was said of a failure."""
        if not self.live.error:
            return
        log.info("the campaign continues")
        if self.trouble is not None:
            self.trouble.write()
        self._publish(error="", advice="")

    def _compute(self, what: str, seconds: float, **changes: Any) -> None:
        """Tell what is about to be computed, and how long it took before."""
        until = time.time() + seconds if seconds > 1 else None
        self._publish(computing=what, until=until, **changes)

    def _publish(self, **changes: Any) -> None:
        """Tell what has changed; what was computed is done."""
        self._keep(version=self.live.version + 1, **{"computing": "", **changes})

    def _keep(self, **changes: Any) -> None:
        with self._changed:
            self.live = replace(self.live, **changes)
            self._changed.notify_all()
            for tell in self.listeners:
                tell(self.live)


def explain(error: Exception) -> tuple[str, str, str]:
    """Return what stops the loop, what to do about it, and what the log may say of it."""
    expected = isinstance(error, GoldspanError)
    why = str(error) if expected else f"{type(error).__name__}: {error}"
    advice = (ADVICE if expected else REPORT).format(seconds=round(AFTER_ERROR))
    # Other messages may name workers, or hold what they wrote: the desk shows them.
    names_files = isinstance(error, InputError | StoreError)
    is_safe = names_files and not isinstance(error, FaultsError)
    return why, advice, why if is_safe else f"{type(error).__name__}, see the desk"


@contextmanager
def _giving_way() -> Iterator[None]:
    """Let requests go on at once while the loop computes."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


# --------------------------------------------------------------------------------------------------
# How the loop is, in a file


class LiveFile:
    """How a loop in another process is: all of `Live` but answers, labels and verdicts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: tuple[tuple[int, int, int], Live] = (0, 0, 0), Live()

    def write(self, live: Live) -> None:
        """Replace the content."""
        kept = asdict(replace(live, crowd=None, result=None, workers={}))
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
                words = self._path.read_text(encoding="utf-8")
                kept = json.loads(words)
                for name, kind in (("waiting", Waiting), ("decision", Decision)):
                    kept[name] = kept[name] and kind(**kept[name])
                live = Live(**{**kept, "looked": kept["looked"] and tuple(kept["looked"])})
                self._read = mark, live
        except (OSError, ValueError):
            return self._read[1]
        return live


# --------------------------------------------------------------------------------------------------
# What the processes of the pages know of the loop, and ask it


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

    def ask(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Let the loop's process make a view of the desk."""
        try:
            with self._connected() as connection:
                connection.send((name, tuple(args), kwargs))
                if not connection.poll(PATIENCE):
                    raise _SLOW
                is_made, found = connection.recv()
        except (OSError, EOFError):
            raise _AWAY from None
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
class LoopFiles:
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


# --------------------------------------------------------------------------------------------------
# The requester ends a campaign: the round closes with what there is, and that was the last one.


RULE = "requester"


@dataclass(frozen=True)
class Ending:
    """The plan's stopping rules, and the requester before them."""

    rules: Stop
    plan: Any
    ledger: SqlLedger  # Where the requester's word is kept

    def decide(self, rounds: Sequence[Mapping[str, Any]]) -> Decision:
        """Decide after a round."""
        said = self.ledger.records(ENDED)
        if said:
            return ended(RULE, "the requester ended it", outlook(self.plan, rounds))
        return self.rules.decide(rounds)


def end(ledger: SqlLedger, now: int) -> None:
    """Keep that the requester ends the campaign; said again, it changes nothing."""
    if not ledger.records(ENDED):
        ledger.record(ENDED, ENDED, {"by": RULE}, now)


def is_expired(inputs: CampaignInputs, ledger: SqlLedger, now: int) -> bool:
    """Whether the plan's `privacy.keep_days` since the end are over, by the wall clock's `now`."""
    days = inputs.plan.privacy.keep_days
    if days is None:
        raise InputError(
            "the plan does not say for how long people are kept: set keep_days in its section "
            "[privacy], for example keep_days = 90; nothing was changed"
        )
    stops = list(ledger.records("stop").values())
    end = ledger.last_time("stop") if stops and stops[-1]["stop"] else None
    return end is not None and now >= WallTimes(ledger)(end) + round(days * DAY)
