"""The campaign's loop beside the pages: a thread that runs it, and keeps what is known up to date.

The loop gives `Waiting` while people answer. Meanwhile the engine aggregates now and then what has
come, for the desk, and runs the loop again when the round's places are filled or a lease may have
run out. All that is shown is in one frozen `Live`, replaced as a whole.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from goldspan.aggregate import Consensus
from goldspan.campaign import Campaign, Decision, Waiting
from goldspan.campaign.judging import judge
from goldspan.crowd import Crowd
from goldspan.errors import GoldspanError
from goldspan.server.people import BAR, GOLD

log = logging.getLogger("goldspan.server.engine")
LOOK = 5.0
"""Seconds after which the loop looks again, for leases may have run out."""
LEAST, REST = 1.0, 2.0
"""Seconds between two looks at the labels, and how often as long as a look computes it rests."""
AFTER_ERROR = 15.0
SWITCH = 0.0005
"""Seconds after which Python lets another thread go on while the loop computes. By default it is
5 ms, and a request, which waits some ten times for the database, would wait for the loop as often.
Always on it would cost more than it gives: threads of requests would interrupt each other."""


@dataclass(frozen=True)
class Live:
    """What is known at a moment.

    Attributes:
        version: Grows with every change.
        state: "starting", "working" (the loop computes), "waiting" (for answers), "ended" or
            "failed" (it is tried again).
        n_answers: Answers that count, which the rest is about.
        crowd: These answers.
        result: What they say, None without answers.
        workers: The verdict on every worker: verdict, mean, low, high, judged, why.
        waiting: Answers and items that the round waits for.
        decision: Why the campaign ended.
        error: What failed.
    """

    version: int = 0
    state: str = "starting"
    n_answers: int = 0
    crowd: Crowd | None = field(default=None, repr=False)
    result: Consensus | None = field(default=None, repr=False)
    workers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    waiting: Waiting | None = None
    decision: Decision | None = None
    error: str = ""


class Engine:
    """Runs a campaign in a thread of its own.

    Args:
        campaign: The campaign.
        ended: Who is told when it ends, in the same thread: writes the files, for example.
    """

    def __init__(
        self, campaign: Campaign, ended: Callable[[Campaign], None] = lambda _: None
    ) -> None:
        self.campaign, self._tell_end = campaign, ended
        self.live = Live()
        self._changed = threading.Condition()
        self._halt = False
        self._n_new = 0
        self._thread = threading.Thread(target=self._run, name="goldspan-engine", daemon=True)
        self._next_look, self._stale, self._n_gold = 0.0, False, 0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, seconds: float = 30.0) -> None:
        """End after what is being computed; nothing is lost."""
        with self._changed:
            self._halt = True
            self._changed.notify_all()
        if self._thread.ident is not None:  # it was started
            self._thread.join(seconds)

    def notify(self) -> None:
        """Hear that an answer came, or that the requester changed something."""
        with self._changed:
            self._n_new += 1
            self._changed.notify_all()

    def look_again(self) -> None:
        """Hear that what is known has changed though no answer came: gold, for example."""
        with self._changed:
            self._stale = True
            self._next_look = 0.0
        self.notify()

    def look(self) -> Live:
        """Look at the labels now, where no loop runs."""
        self._look()
        return self.live

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
            self._publish(state="working", error="")
            try:
                with _giving_way():
                    found = self.campaign.run()
                if isinstance(found, Decision):
                    self._end(found)
                    self._stay(found)
                    return
                self._publish(state="waiting", waiting=found)
                self._watch(found)
            except GoldspanError as error:
                self._fail(str(error))
            except Exception as error:  # the pages must go on, and the requester must see it
                log.exception("the campaign's loop failed")
                self._fail(f"{type(error).__name__}: {error}")

    def _watch(self, found: Waiting) -> None:
        """Look at the labels until the loop can go on."""
        begin, first = time.monotonic(), self._n_new
        while not self._halt:
            n_new = self._n_new - first
            if n_new >= found.answers or (n_new and time.monotonic() - begin >= LOOK):
                return
            if time.monotonic() - begin >= 6 * LOOK:
                return
            self._look()
            with self._changed:
                seen = self._n_new
                self._changed.wait_for(partial(self._is_newer, seen), LEAST)

    def _is_newer(self, seen: int) -> bool:
        return self._halt or self._n_new > seen

    def _look(self) -> None:
        """Aggregate what there is, unless it was done a moment ago."""
        if time.monotonic() < self._next_look:
            return
        begin = time.thread_time()  # a busy machine makes a look slow, and not dear
        with _giving_way():
            self._compute()
        self._next_look = time.monotonic() + max(LEAST, REST * (time.thread_time() - begin))

    def _compute(self) -> None:
        progress, live = self.campaign.progress, self.live
        with self._changed:
            stale, self._stale = self._stale, False
        n_gold = len(self.campaign.ledger.records(GOLD))  # another process may have written some
        if n_gold != self._n_gold:
            # A decision is written down before it acts: the look after this one sees that it has.
            stale = self._stale = True
        self._n_gold = n_gold
        if stale:
            progress.forget()
        with progress.still():
            crowd = progress.crowd
            # An answer that was changed makes another crowd of as many answers.
            if stale or crowd is not live.crowd or live.result is None:
                self._refresh(crowd, progress.result)

    def _refresh(self, crowd: Crowd, result: Consensus | None) -> None:
        workers: Mapping[str, Mapping[str, Any]] = {}
        if result is not None:
            barred = set(self.campaign.ledger.records(BAR))
            plan = self.campaign.setting.plan
            workers = judge(plan, crowd, result, barred, crowd.n_workers)["workers"]
        self._publish(n_answers=len(crowd.latest), crowd=crowd, result=result, workers=workers)

    def _end(self, decision: Decision) -> None:
        progress = self.campaign.progress
        with progress.still():
            self._refresh(progress.crowd, progress.result)
            self._tell_end(self.campaign)
        self._publish(state="ended", decision=decision, waiting=None)

    def _stay(self, decision: Decision) -> None:
        """Take into the files what comes after the end: answers of who held a place then."""
        while not self._halt:
            with self._changed:
                seen = self._n_new
                self._changed.wait_for(partial(self._is_newer, seen), AFTER_ERROR)
            if self.campaign.progress.crowd is not self.live.crowd:
                self._end(decision)

    def _fail(self, why: str) -> None:
        self._publish(state="failed", error=why)
        with self._changed:
            self._changed.wait_for(lambda: self._halt, AFTER_ERROR)

    def _publish(self, **changes: Any) -> None:
        with self._changed:
            self.live = replace(self.live, version=self.live.version + 1, **changes)
            self._changed.notify_all()


@contextmanager
def _giving_way() -> Iterator[None]:
    """Let requests go on at once while the loop computes."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
