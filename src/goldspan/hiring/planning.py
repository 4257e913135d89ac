"""How long a qualification test must be, before anybody is paid (MATH section 8).

Of n questions a worker who is right with chance w answers Bin(n, w) right. The test passes those
with at least c right answers. It must pass a bad worker with a chance of at most alpha and fail a
good one with a chance of at most beta:

    P(Bin(n, w_bad) ≥ c) ≤ alpha  and  P(Bin(n, w_good) < c) ≤ beta

The shortest such test is found by exact binomial sums, not by the normal approximation; a sum that
exceeds its bound by no more than rounding holds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from goldspan.errors import InputError
from goldspan.hiring.beta import read_pair
from goldspan.hiring.sequential import SequentialTest, holds, plan_sequential
from goldspan.money import to_micro

MOST = 1000
"""Longest test that is looked for: nobody answers more questions to get a job."""
STEP = 0.05
"""Between the workers of the operating characteristic."""


@dataclass(frozen=True)
class Passed:
    """Who passes a test, for a pool of workers whose chances follow a Beta.

    Attributes:
        share: P(pass), the share of candidates who pass.
        mean: Mean chance w of those who pass.
        good: P(w ≥ w_good | pass).
        bad: P(w ≤ w_bad | pass).
    """

    share: float
    mean: float
    good: float
    bad: float

    def __str__(self) -> str:
        """Say it in words."""
        return (
            f"{100 * self.share:.1f} % of the candidates pass and are right "
            f"{100 * self.mean:.1f} % of the time on average: {100 * self.good:.1f} % of them are "
            f"good, {100 * self.bad:.1f} % bad"
        )


@dataclass(frozen=True, eq=False)
class TestPlan:
    """A test that tells good workers from bad ones.

    Attributes:
        w_bad: Chance of a bad worker to be right.
        w_good: Chance of a good worker to be right.
        alpha: Largest chance allowed that a bad worker passes.
        beta: Largest chance allowed that a good worker fails.
        n: Questions.
        pass_mark: Right answers that pass, at least.
        p_bad_passes: The real chance that a bad worker passes.
        p_good_fails: The real chance that a good worker fails.
        sequential: The test that stops as soon as it knows enough.
    """

    w_bad: float
    w_good: float
    alpha: float
    beta: float
    n: int
    pass_mark: int
    p_bad_passes: float
    p_good_fails: float
    sequential: SequentialTest

    # Keeps pytest from taking a class called Test… for a test.
    __test__ = False

    def passes(self, w: ArrayLike) -> NDArray[np.float64]:
        """Give P(pass) of workers who are right with chance w, float64, of the shape of w."""
        from scipy.special import bdtrc

        return np.asarray(bdtrc(self.pass_mark - 1, self.n, np.asarray(w, np.float64)))

    def cost(self, price: Any, candidates: int = 1) -> int:
        """Give what the test costs, in millionths: n × price × candidates.

        Raises:
            InputError: The price is no amount, or there are fewer than 0 candidates.
        """
        return self.n * to_micro(price, "the price of a question") * check_candidates(candidates)

    def after_passing(self, prior: tuple[float, float] = (1.0, 1.0)) -> Passed:
        """Say how good those are who pass, for candidates with w ~ Beta(a, b).

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
        """Give the operating characteristic: w, passes, sequential_passes, sequential_questions.

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
        """Give everything as plain values, for JSON."""
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


def plan_test(
    w_bad: float,
    w_good: float,
    alpha: float = 0.05,
    beta: float = 0.1,
    *,
    most: int = MOST,
    longest: float = 1.25,
) -> TestPlan:
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

    >>> plan = plan_test(0.6, 0.8)
    >>> plan.n, plan.pass_mark, plan.sequential.n_max
    (45, 33, 55)
    """
    check_rates(w_bad, w_good, alpha, beta)
    if not isinstance(most, int | np.integer) or most < 1:
        raise InputError(f"most must be a whole number of at least 1, not {most!r}")
    if not 1 <= longest <= 10:
        raise InputError(f"longest must lie in 1 … 10, not {longest}")
    n, mark, p_bad, p_good = _shortest(w_bad, w_good, alpha, beta, int(most))
    sequential = plan_sequential(w_bad, w_good, alpha, beta, int(n * longest))
    return TestPlan(w_bad, w_good, alpha, beta, n, mark, p_bad, p_good, sequential)


def check_rates(w_bad: float, w_good: float, alpha: float, beta: float) -> None:
    """Refuse chances that no test can have.

    Raises:
        InputError: One lies outside its range, or the good worker is not the better one.
    """
    for name, w in (("w_bad", w_bad), ("w_good", w_good)):
        if not 0 <= w <= 1:
            raise InputError(f"{name} must be a chance in 0 … 1, such as 0.6, not {w}")
    for name, rate in (("alpha", alpha), ("beta", beta)):
        if not 0 < rate < 1:
            raise InputError(
                f"{name} must lie between 0 and 1, such as 0.05, not {rate}: "
                "no test of any length is never wrong"
            )
    if alpha + beta >= 1:
        raise InputError(
            f"alpha and beta must add up to less than 1, not {alpha + beta:g}: "
            "a coin without any question does as well"
        )
    if w_bad >= w_good:
        raise InputError(f"w_bad must be below w_good, but {w_bad} is not below {w_good}")


def check_candidates(candidates: int) -> int:
    """Take a number of candidates.

    Raises:
        InputError: It is no whole number of at least 0.
    """
    whole = isinstance(candidates, int | np.integer) and not isinstance(candidates, bool)
    if not whole or candidates < 0:
        raise InputError(f"candidates must be a whole number of at least 0, not {candidates!r}")
    return int(candidates)


def _shortest(
    w_bad: float, w_good: float, alpha: float, beta: float, most: int
) -> tuple[int, int, float, float]:
    """Find n, the pass mark, and the two real error rates.

    The smallest mark that keeps bad workers out is the best one for good workers; as n grows it
    never falls.
    """
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
        "let w_bad and w_good lie further apart, allow more errors, or raise `most`"
    )


def _roughly(w_bad: float, w_good: float, alpha: float, beta: float) -> int:
    """Give the length by the normal approximation, for messages."""
    from scipy.special import ndtri

    spread = [float(np.sqrt(w * (1 - w))) for w in (w_bad, w_good)]
    sum_of = -ndtri(alpha) * spread[0] - ndtri(beta) * spread[1]
    return max(1, int(np.ceil((sum_of / (w_good - w_bad)) ** 2)))
