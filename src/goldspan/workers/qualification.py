"""Qualification tests: of fixed length, and the sequential test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from goldspan.errors import InputError
from goldspan.money import to_micro
from goldspan.params import Whole, require
from goldspan.workers.beta import read_pair

# --------------------------------------------------------------------------------------------------
# A test that stops as soon as it knows enough: Wald's sequential probability ratio test.


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
    """When a worker passes or fails, and when to ask one question more."""

    w_bad: float  # Chance of a bad worker to be right
    w_good: float  # Chance of a good worker to be right
    pass_at: Counts  # int64 [n_max], right answers that pass after 1, 2, … questions
    fail_at: Counts  # int64 [n_max], right answers that fail, at most; −1 where nobody can fail yet

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
        """Return P(pass) of workers who are right with chance w, float64 [n] for n chances."""
        return self._walk(np.atleast_1d(np.asarray(w, np.float64)))[0]

    def expected(self, w: ArrayLike) -> Floats:
        """Return how many questions such workers are asked on average, float64 [n]."""
        return self._walk(np.atleast_1d(np.asarray(w, np.float64)))[1]

    def decide(self, right: int, asked: int) -> str:
        """Return what comes next: "pass", "fail" or "go on"."""
        if not 0 <= right <= asked <= self.n_max:
            raise InputError(
                f"0 ≤ right ≤ asked ≤ {self.n_max} must hold, but right is {right} and asked "
                f"{asked}: this test ends after {self.n_max} questions at the latest"
            )
        if asked and right >= self.pass_at[asked - 1]:
            return "pass"
        return "fail" if asked and right <= self.fail_at[asked - 1] else "go on"

    def table(self) -> pa.Table:
        """Return the limits: asked, pass_at, fail_at; empty where there is none yet."""
        asked = np.arange(1, self.n_max + 1)
        return pa.table(
            {
                "asked": pa.array(asked),
                "pass_at": pa.array(self.pass_at, mask=self.pass_at > asked),
                "fail_at": pa.array(self.fail_at, mask=self.fail_at < 0),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
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
        course = _Walk(w, self.n_max)
        passed, questions = np.zeros(len(w)), np.zeros(len(w))
        for top, bottom in zip(self.pass_at.tolist(), self.fail_at.tolist(), strict=True):
            questions += course.undecided.sum(1)
            passed += course.ask(top, bottom)[0]
        return passed, questions


def plan_sequential_test(
    w_bad: float, w_good: float, alpha: float, beta: float, n_max: int
) -> SequentialTest:
    """Find a sequential test of at most n_max questions whose exact error rates hold.

    They hold but for rounding. The narrowest limits are taken that need no more than n_max
    questions; then the fewest questions at which some final pass mark holds both rates.
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
    """Return whether chances of an error are at most the rate allowed, but for rounding.

    >>> 0.2**2 <= 0.04, bool(holds(0.2**2, 0.04)), bool(holds(0.041, 0.04))
    (False, True, False)
    """
    return np.asarray(np.asarray(chance) <= rate * (1 + ROUNDING))


def _lines(
    w_bad: float, w_good: float, alpha: float, beta: float, scale: float, n_max: int
) -> tuple[Counts, Counts]:
    """Return the right answers at which the ratio reaches its limits, int64 [n_max] each."""
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
    course = _Walk(np.array([w_bad, w_good]), len(top))
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


class _Walk:
    """A running test: the chance of so many right answers and no decision so far.

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
        """Ask one question more."""
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


# --------------------------------------------------------------------------------------------------
# How long a qualification test must be, before anybody is paid (docs/math.md, section 8).


MOST = 1000
"""Longest test that is looked for: nobody answers more questions to get a job."""
STEP = 0.05
"""Between the workers of the operating characteristic."""


@dataclass(frozen=True)
class Passed:
    """Who passes a test, for a pool of workers whose chances follow a Beta."""

    share: float  # P(pass), the share of candidates who pass
    mean: float  # Mean chance w of those who pass
    good: float  # P(w ≥ w_good | pass)
    bad: float  # P(w ≤ w_bad | pass)

    def __str__(self) -> str:
        """Say it in words."""
        return (
            f"{100 * self.share:.1f} % of the candidates pass and are right "
            f"{100 * self.mean:.1f} % of the time on average: {100 * self.good:.1f} % of them are "
            f"good, {100 * self.bad:.1f} % bad"
        )


@dataclass(frozen=True, eq=False)
class QualificationPlan:
    """A test that tells good workers from bad ones."""

    w_bad: float  # Chance of a bad worker to be right
    w_good: float  # Chance of a good worker to be right
    alpha: float  # Largest chance allowed that a bad worker passes
    beta: float  # Largest chance allowed that a good worker fails
    n: int  # Questions
    pass_mark: int  # Right answers that pass, at least
    p_bad_passes: float  # The real chance that a bad worker passes
    p_good_fails: float  # The real chance that a good worker fails
    sequential: SequentialTest  # The test that stops as soon as it knows enough

    # Keeps pytest from taking a class called Test… for a test.
    __test__ = False

    def passes(self, w: ArrayLike) -> NDArray[np.float64]:
        """Return P(pass) of workers who are right with chance w, float64, of the shape of w."""
        from scipy.special import bdtrc

        return np.asarray(bdtrc(self.pass_mark - 1, self.n, np.asarray(w, np.float64)))

    def cost(self, price: Any, candidates: int = 1) -> int:
        """Return what the test costs, in millionths: n × price × candidates."""
        require("candidates", candidates, Whole(0))
        return self.n * to_micro(price, "the price of a question") * candidates

    def after_passing(self, prior: tuple[float, float] = (1.0, 1.0)) -> Passed:
        """Return how good those are who pass, for candidates with w ~ Beta(a, b).

        Args:
            prior: a and b, for example the `prior` of a measured `Reliability`.

        Raises:
            InputError: The prior is no pair of positive numbers.
        """
        from scipy.special import betainc, betaln, gammaln

        a, b = read_pair(prior)
        right = np.arange(self.pass_mark, self.n + 1)
        wrong = self.n - right
        ways = gammaln(self.n + 1) - gammaln(right + 1) - gammaln(wrong + 1)
        chance = np.exp(ways + betaln(a + right, b + wrong) - betaln(a, b))
        share = float(chance.sum())
        weight = chance / share
        below = {w: betainc(a + right, b + wrong, w) for w in (self.w_bad, self.w_good)}
        return Passed(
            share,
            float(weight @ ((a + right) / (a + b + self.n))),
            float(1 - weight @ below[self.w_good]),
            float(weight @ below[self.w_bad]),
        )

    def curve(self) -> pa.Table:
        """Return the operating characteristic: w, passes, sequential_passes, sequential_questions.

        One row for every w from 0 to 1 in steps of 0.05, and for w_bad and w_good.
        """
        grid = np.arange(round(1 / STEP) + 1) / round(1 / STEP)
        w = np.unique(np.append(grid, [self.w_bad, self.w_good]))
        columns = {
            "w": w,
            "passes": self.passes(w),
            "sequential_passes": self.sequential.passes(w),
            "sequential_questions": self.sequential.expected(w),
        }
        return pa.table({name: pa.array(value) for name, value in columns.items()})

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        names = ["w_bad", "w_good", "alpha", "beta", "n", "pass_mark"]
        names += ["p_bad_passes", "p_good_fails"]
        found = {name: getattr(self, name) for name in names}
        return {**found, "sequential": self.sequential.to_dict(), "curve": self.curve().to_pylist()}

    def __str__(self) -> str:
        """Say the plan in words."""
        return (
            f"{self.n} questions, pass with {self.pass_mark} or more right answers\n"
            f"a worker who is right {100 * self.w_bad:g} % of the time passes with a chance of "
            f"{100 * self.p_bad_passes:.1f} % (at most {100 * self.alpha:g} %)\n"
            f"a worker who is right {100 * self.w_good:g} % of the time fails with a chance of "
            f"{100 * self.p_good_fails:.1f} % (at most {100 * self.beta:g} %)\n"
            f"{self.sequential}"
        )


def plan_qualification(
    w_bad: float,
    w_good: float,
    alpha: float = 0.05,
    beta: float = 0.1,
    *,
    most: int = MOST,
    longest: float = 1.25,
) -> QualificationPlan:
    """Find the shortest test that tells good workers from bad ones.

    A longer test is not always better: where the pass mark must go up by one, good workers fail
    more often. Plan again when the length changes.

    Args:
        w_bad: Chance of a bad worker to be right: for a guesser 1 / number of labels.
        w_good: Chance of a good worker to be right, above w_bad.
        alpha: Largest chance that a bad worker passes, between 0 and 1.
        beta: Largest chance that a good worker fails, between 0 and 1.
        most: Questions that a test may have.
        longest: How much longer than this test the sequential one may become, at least 1.

    Raises:
        InputError: The chances make no sense, or the test would need more than `most` questions;
            the message says how many.

    >>> plan = plan_qualification(0.6, 0.8)
    >>> plan.n, plan.pass_mark, plan.sequential.n_max
    (45, 33, 55)
    """
    check_rates(w_bad, w_good, alpha, beta)
    require("most", most, Whole(1))
    if not 1 <= longest <= 10:
        raise InputError(f"longest must lie in 1 … 10, not {longest}")
    n, mark, p_bad, p_good = _shortest(w_bad, w_good, alpha, beta, int(most))
    sequential = plan_sequential_test(w_bad, w_good, alpha, beta, int(n * longest))
    return QualificationPlan(w_bad, w_good, alpha, beta, n, mark, p_bad, p_good, sequential)


def check_rates(w_bad: float, w_good: float, alpha: float, beta: float) -> None:
    """Reject chances that no test can have."""
    for name, w in (("w_bad", w_bad), ("w_good", w_good)):
        if not 0 <= w <= 1:
            raise InputError(f"must be a chance in 0 … 1, such as 0.6, not {w}", parameter=name)
    for name, rate in (("alpha", alpha), ("beta", beta)):
        if not 0 < rate < 1:
            raise InputError(
                f"must lie between 0 and 1, such as 0.05, not {rate}: "
                "no test of any length is never wrong",
                parameter=name,
            )
    if alpha + beta >= 1:
        raise InputError(
            f"alpha and beta must add up to less than 1, not {alpha + beta:g}: "
            "a coin without any question does as well"
        )
    if w_bad >= w_good:
        raise InputError(
            f"must be below the share of good workers, but {w_bad} is not below {w_good}",
            parameter="w_bad",
        )


def _shortest(
    w_bad: float, w_good: float, alpha: float, beta: float, most: int
) -> tuple[int, int, float, float]:
    """Find n, the pass mark, and the two real error rates."""
    # The smallest mark that keeps bad workers out is the best one for good workers
    from scipy.special import bdtr, bdtrc

    mark = 1
    for n in range(1, most + 1):
        while not holds(bdtrc(mark - 1, n, w_bad), alpha):
            mark += 1
        if mark <= n and holds(bdtr(mark - 1, n, w_good), beta):
            return n, mark, float(bdtrc(mark - 1, n, w_bad)), float(bdtr(mark - 1, n, w_good))
    raise InputError(
        f"telling {w_good:g} from {w_bad:g} at error rates {alpha:g} and {beta:g} takes about "
        f"{_roughly(w_bad, w_good, alpha, beta):,} questions, and at most {most:,} are allowed: "
        "tell apart workers who differ more, allow more errors, or a longer test",
        hint="most",
    )


def _roughly(w_bad: float, w_good: float, alpha: float, beta: float) -> int:
    """Return the length by the normal approximation, for messages."""
    from scipy.special import ndtri

    spread = [float(np.sqrt(w * (1 - w))) for w in (w_bad, w_good)]
    sum_of = -ndtri(alpha) * spread[0] - ndtri(beta) * spread[1]
    return max(1, int(np.ceil((sum_of / (w_good - w_bad)) ** 2)))
