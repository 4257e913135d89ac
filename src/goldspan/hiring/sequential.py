"""A test that stops as soon as it knows enough: Wald's sequential probability ratio test.

After m questions with r right answers the log-likelihood ratio of good against bad is

    r ln(w_good / w_bad) + (m − r) ln((1 − w_good) / (1 − w_bad))

A worker passes at ln((1 − beta) / alpha) or more and fails at ln(beta / (1 − alpha)) or less
(Wald 1945). Those limits hold the error rates only nearly, and the test may go on for ever. Ours
ends at n_max questions with a pass mark, its error rates are sums over all courses of the test
(over questions asked and right answers), and the limits are moved apart until both rates hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from goldspan.errors import InputError

WIDEN = 1.05
"""By so much the limits are moved apart in one step."""
NEARLY = 1e-9
"""A chance of 0 or 1 counts as so far from it in the likelihood ratio, which would be infinite."""
ROUNDING = 1e-12
"""Share of an allowed error rate by which a sum of chances may exceed it: .2 ** 2 is above .04."""
GRID = 41
"""Workers between bad and good among whom the one with the longest test is looked for."""

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SequentialTest:
    """When a worker passes, when he fails, and when to ask him one question more.

    Attributes:
        w_bad: Chance of a bad worker to be right.
        w_good: Chance of a good worker to be right.
        pass_at: int64 [n_max], right answers that pass after 1, 2, … questions; more than were
            asked where nobody can pass yet.
        fail_at: int64 [n_max], right answers that fail, at most; −1 where nobody can fail yet.
    """

    w_bad: float
    w_good: float
    pass_at: Counts
    fail_at: Counts

    @property
    def n_max(self) -> int:
        """The most questions that anybody is asked."""
        return len(self.pass_at)

    @property
    def p_bad_passes(self) -> float:
        """The exact chance that a bad worker passes."""
        return float(self._ends[0][0])

    @property
    def p_good_fails(self) -> float:
        """The exact chance that a good worker fails."""
        return float(1 - self._ends[0][1])

    @cached_property
    def worst(self) -> tuple[float, float]:
        """The chance between w_bad and w_good with the longest test, and its expected questions."""
        w = np.linspace(self.w_bad, self.w_good, GRID)
        expected = self.expected(w)
        return float(w[expected.argmax()]), float(expected.max())

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        return self._walk(np.array([self.w_bad, self.w_good]))

    def passes(self, w: ArrayLike) -> Floats:
        """Give P(pass) of workers who are right with chance w, float64 [n] for n chances."""
        return self._walk(np.atleast_1d(np.asarray(w, np.float64)))[0]

    def expected(self, w: ArrayLike) -> Floats:
        """Give how many questions such workers are asked on average, float64 [n]."""
        return self._walk(np.atleast_1d(np.asarray(w, np.float64)))[1]

    def decide(self, right: int, asked: int) -> str:
        """Say what comes next: "pass", "fail" or "go on".

        The error rates hold for a test that is looked at after every question and ends at the
        first pass or fail.

        Args:
            right: Right answers so far.
            asked: Questions asked so far, at most `n_max`.

        Raises:
            InputError: 0 ≤ right ≤ asked ≤ n_max does not hold.
        """
        if not 0 <= right <= asked <= self.n_max:
            raise InputError(
                f"0 ≤ right ≤ asked ≤ {self.n_max} must hold, but right is {right} and asked "
                f"{asked}: this test ends after {self.n_max} questions at the latest"
            )
        if asked and right >= self.pass_at[asked - 1]:
            return "pass"
        return "fail" if asked and right <= self.fail_at[asked - 1] else "go on"

    def table(self) -> pa.Table:
        """Give the limits: asked, pass_at, fail_at; empty where there is none yet."""
        asked = np.arange(1, self.n_max + 1)
        return pa.table(
            {
                "asked": pa.array(asked),
                "pass_at": pa.array(self.pass_at, mask=self.pass_at > asked),
                "fail_at": pa.array(self.fail_at, mask=self.fail_at < 0),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values, for JSON."""
        bad, good = self._ends[1].tolist()
        return {
            "n_max": self.n_max,
            "p_bad_passes": self.p_bad_passes,
            "p_good_fails": self.p_good_fails,
            "expected_bad": bad,
            "expected_good": good,
            "worst_w": self.worst[0],
            "expected_worst": self.worst[1],
            "limits": self.table().to_pylist(),
        }

    def __str__(self) -> str:
        """Say it in words."""
        bad, good = self._ends[1]
        w, longest = self.worst
        return (
            f"asked one by one: {bad:.1f} questions on average for a bad worker, {good:.1f} for a "
            f"good one, {longest:.1f} for one who is right {100 * w:.3g} % of the time, never more "
            f"than {self.n_max};\n  a bad worker passes with a chance of "
            f"{100 * self.p_bad_passes:.1f} %, a good one fails with one of "
            f"{100 * self.p_good_fails:.1f} %"
        )

    def _walk(self, w: Floats) -> tuple[Floats, Floats]:
        """Sum over all courses: P(pass) and expected questions of every w, float64 [n] each."""
        if not ((w >= 0) & (w <= 1)).all():
            raise InputError("w must be chances in 0 … 1")
        course = _Course(w, self.n_max)
        passed, questions = np.zeros(len(w)), np.zeros(len(w))
        for top, bottom in zip(self.pass_at.tolist(), self.fail_at.tolist(), strict=True):
            questions += course.undecided.sum(1)
            passed += course.ask(top, bottom)[0]
        return passed, questions


def plan_sequential(
    w_bad: float, w_good: float, alpha: float, beta: float, n_max: int
) -> SequentialTest:
    """Find a sequential test of at most n_max questions whose exact error rates hold.

    They hold but for rounding. The narrowest limits are taken that need no more than n_max
    questions; then the fewest questions at which some final pass mark holds both rates.

    Args:
        w_bad: Chance of a bad worker to be right.
        w_good: Chance of a good worker to be right, above w_bad.
        alpha: Largest chance that a bad worker passes.
        beta: Largest chance that a good worker fails.
        n_max: Most questions, at least as many as the fixed test needs.

    >>> test = plan_sequential(0.6, 0.8, 0.05, 0.1, 56)
    >>> test.n_max, test.expected([0.6, 0.8]).round(1).tolist()
    (55, [21.7, 28.2])
    >>> test.decide(9, 9), test.decide(14, 14), test.decide(3, 9)
    ('go on', 'pass', 'fail')
    """
    scale, found = 1.0, None
    while found is None:
        lines = _lines(w_bad, w_good, alpha, beta, scale, n_max)
        found = _cut(w_bad, w_good, alpha, beta, *lines)
        # In the end nothing is decided before the last question: then it is the fixed test.
        scale *= WIDEN
    n, mark = found
    left = n - np.arange(1, n + 1)
    # Whoever has the final mark already has passed; who can no longer reach it has failed.
    pass_at = np.minimum(np.maximum(lines[0][:n], 0), mark)
    fail_at = np.maximum(np.maximum(lines[1][:n], -1), mark - 1 - left)
    return SequentialTest(w_bad, w_good, pass_at, fail_at)


def holds(chance: ArrayLike, rate: float) -> NDArray[np.bool_]:
    """Say whether chances of an error are at most the rate allowed, but for rounding.

    >>> 0.2**2 <= 0.04, bool(holds(0.2**2, 0.04)), bool(holds(0.041, 0.04))
    (False, True, False)
    """
    return np.asarray(np.asarray(chance) <= rate * (1 + ROUNDING))


def _lines(
    w_bad: float, w_good: float, alpha: float, beta: float, scale: float, n_max: int
) -> tuple[Counts, Counts]:
    """Give the right answers at which the ratio reaches its limits, int64 [n_max] each."""
    bad, good = (min(max(w, NEARLY), 1 - NEARLY) for w in (w_bad, w_good))
    up, down = math.log(good / bad), math.log((1 - good) / (1 - bad))
    asked = np.arange(1, n_max + 1)
    upper, lower = scale * math.log((1 - beta) / alpha), scale * math.log(beta / (1 - alpha))
    top = np.ceil((upper - asked * down) / (up - down) - NEARLY).astype(np.int64)
    bottom = np.floor((lower - asked * down) / (up - down) + NEARLY).astype(np.int64)
    return top, bottom


def _cut(
    w_bad: float, w_good: float, alpha: float, beta: float, top: Counts, bottom: Counts
) -> tuple[int, int] | None:
    """Find the fewest questions after which a pass mark holds both rates, and that mark."""
    course = _Course(np.array([w_bad, w_good]), len(top))
    passed, failed = np.zeros(2), np.zeros(2)
    for n, (high, low) in enumerate(zip(top.tolist(), bottom.tolist(), strict=True), 1):
        more = course.ask(high, low)
        passed, failed = passed + more[0], failed + more[1]
        # Who is undecided may pass from any mark on; the smallest that alpha allows is best.
        bad, good = course.undecided
        tail = passed[0] + np.append(bad[::-1].cumsum()[::-1], 0.0)
        marks = np.flatnonzero(holds(tail, alpha))
        if len(marks) and holds(failed[1] + good[: marks[0]].sum(), beta):
            return n, course.low + int(marks[0])
    return None


class _Course:
    """The course of a test: the chance of so many right answers and no decision so far.

    Only the band between the limits is kept: whatever lies outside has passed or failed.
    """

    def __init__(self, w: Floats, n_max: int) -> None:
        self.w = w[:, None]
        self.chance = np.zeros((len(w), n_max + 2))
        self.chance[:, 0] = 1.0
        self.low, self.high = 0, 0

    @property
    def undecided(self) -> Floats:
        """The chance of low, low + 1, …, high right answers, float64 [n, high − low + 1]."""
        return np.asarray(self.chance[:, self.low : self.high + 1])

    def ask(self, top: int, bottom: int) -> tuple[Floats, Floats]:
        """Ask one question more.

        Args:
            top: Right answers that pass.
            bottom: Right answers that fail, at most.

        Returns:
            Who passes and who fails now, float64 [n] each.
        """
        first = self.low
        band = self.chance[:, first : self.high + 2]
        band[:, 1:] = band[:, 1:] * (1 - self.w) + band[:, :-1] * self.w
        band[:, :1] *= 1 - self.w
        up, down = max(top - first, 0), max(bottom + 1 - first, 0)
        passed, failed = band[:, up:].sum(1), band[:, :down].sum(1)
        band[:, up:] = 0.0
        band[:, :down] = 0.0
        self.low = max(first, bottom + 1)
        self.high = max(min(self.high + 1, top - 1), self.low)
        return passed, failed
