"""Time: the campaign's clock, by which everything lasts, and the wall clock, which people read.

The wall clock of a machine may be wrong at boot and jump while a campaign runs. So nothing waits or
ends by it, but by the campaign's clock: the time of the last event in the log when a process opened
the campaign, and what a monotone clock has counted since. It never goes back and never jumps. What
it leaves out is time in which nobody ran the campaign: of that only `DOWNTIME` is counted, for
nobody can tell a long stop from a clock that was set meanwhile.

The order of events is that of their numbers. By how much the wall clock is ahead of the campaign's
is a record (`CLOCK`), written whenever it has changed, so that times can be shown as people read
them (`WallTimes`).
"""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from goldspan.errors import InputError

if TYPE_CHECKING:
    from goldspan.crowd import Crowd
    from goldspan.store import SqlLedger

log = logging.getLogger("goldspan.campaign.clock")
CLOCK = "clock"
"""Kind of the records that say what the wall clock showed at a time of the campaign's clock."""
STEP = 1_000
"""Milliseconds: a smaller change between the two clocks is not noted."""
DOWNTIME = 60_000
"""Milliseconds between the last event and the opening that count at most."""
BEAT = 900_000
"""Milliseconds without an event after which one is written: a kill takes away no more of them."""
EVERY = 1.0
"""Seconds between two looks at the wall clock."""
OTHERS = 10
"""Looks between two at what commands beside the server have kept."""


def wall_clock() -> int:
    """Return what the machine's clock shows, in milliseconds since 1970."""
    return max(0, time.time_ns() // 1_000_000)


def monotone_clock() -> int:
    """Return milliseconds since some moment, which no setting of the clock changes."""
    return time.monotonic_ns() // 1_000_000


def wall_of(clock: Callable[[], int]) -> Callable[[], int]:
    """Return the wall clock beside a clock; a plain function is its own."""
    return clock.wall if isinstance(clock, CampaignClock) else clock


class CampaignClock:
    """The clock of a campaign, from the moment at which this process opened it.

    >>> from types import SimpleNamespace
    >>> ledger = SimpleNamespace(
    ...     n_events=1, events=lambda after: iter([SimpleNamespace(time=1_000)]),
    ...     records=lambda kind: {})
    >>> clock = CampaignClock(ledger, wall=lambda: 10**12, monotone=lambda: 5)
    >>> clock(), clock.wall()
    (61000, 1000000000000)
    """

    def __init__(
        self,
        ledger: SqlLedger,
        downtime: int | None = DOWNTIME,
        wall: Callable[[], int] = wall_clock,
        monotone: Callable[[], int] = monotone_clock,
        moment: tuple[int, int] | None = None,
    ) -> None:
        self._ledger, self.wall, self._monotone = ledger, wall, monotone
        last, self._ahead = self._last(), 0
        self.read_notes()
        gone = max(0, wall() - (last + self._ahead))
        begin = last + (gone if downtime is None else min(gone, downtime))
        self.moment = moment or (begin, monotone())
        """The campaign's time when it was opened, and what the monotone clock showed then."""

    def __call__(self) -> int:
        """Return the campaign's time, in milliseconds: that of 1970 on, if no clock was wrong."""
        begin, start = self.moment
        return begin + self._monotone() - start

    def read_notes(self) -> None:
        """Read what was kept last, perhaps by another process that had another idea of the time."""
        noted = list(self._ledger.records(CLOCK).values())
        if noted:
            self._ahead = int(noted[-1]["wall"] - noted[-1]["time"])

    def note(self, idle: int | None = None) -> None:
        """Keep how far the wall clock is ahead, if that has changed."""
        now = self()
        wall = self.wall()
        is_same = abs(wall - now - self._ahead) < STEP
        if is_same and (idle is None or now - self._last() < idle):
            return
        body = {"time": now, "wall": wall}
        name = f"{len(self._ledger.records(CLOCK)) + 1:06d}"
        with suppress(InputError):  # another process was quicker: what it noted is as good
            self._ledger.record(CLOCK, name, body, now)
        self._ahead = wall - now

    def _last(self) -> int:
        """Return the time of the last event."""
        return next(iter(self._ledger.events(self._ledger.n_events - 1))).time


def open_clock(ledger: SqlLedger, downtime: int | None = DOWNTIME) -> CampaignClock:
    """Open the clock of a campaign, and keep how far the wall clock is ahead of it."""
    clock = CampaignClock(ledger, downtime)
    clock.note(BEAT)
    return clock


class Keeper:
    """A thread of the server that keeps how far the wall clock is ahead."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock, self._halt = clock, threading.Event()
        self._thread = threading.Thread(target=self._run, name="goldspan-clock", daemon=True)

    def start(self) -> None:
        """Begin; the first look is taken now."""
        if isinstance(self._clock, CampaignClock):
            self._note(BEAT)
            self._thread.start()

    def stop(self) -> None:
        """End, and keep how long the campaign was open."""
        was_halted = self._halt.is_set()
        self._halt.set()
        if not was_halted and self._thread.ident is not None:  # it was started
            self._thread.join(30)
            self._note(STEP)

    def _run(self) -> None:
        n = 0
        while not self._halt.wait(EVERY):
            n += 1
            self._note(BEAT if n % 60 == 0 else None, others=n % OTHERS == 0)

    def _note(self, idle: int | None, *, others: bool = True) -> None:
        assert isinstance(self._clock, CampaignClock)
        try:
            if others:
                self._clock.read_notes()
            self._clock.note(idle)
        except Exception as error:  # noqa: BLE001 - the store cannot be written now: tried again
            log.debug("the clock is not kept: %s", error)


class WallTimes:
    """What the wall clock showed at times of a campaign's clock."""

    def __init__(self, ledger: SqlLedger) -> None:
        notes = list(ledger.records(CLOCK).values())
        self._since = list(accumulate((note["time"] for note in notes), max))
        self._ahead = [0, *(note["wall"] - note["time"] for note in notes)]

    def __call__(self, moment: int) -> int:
        """Return the wall clock's time at a time of the campaign's."""
        return moment + int(self._ahead[bisect_right(self._since, moment)])

    def crowd(self, crowd: Crowd) -> Crowd:
        """Return answers with the times that people read; how long each took stays what it was."""
        answers = crowd.answers
        if not self._since or answers.submitted is None:
            return crowd
        ahead = np.array(self._ahead, np.int64)
        more = ahead[np.searchsorted(self._since, answers.submitted, side="right")]
        more[answers.submitted < 0] = 0
        started = answers.started
        if started is not None:
            started = np.where(started < 0, started, np.maximum(started + more, 0))
        made = replace(answers, submitted=answers.submitted + more, started=started)
        return replace(crowd, answers=made)
