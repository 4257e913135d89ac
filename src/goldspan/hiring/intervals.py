"""How sure F of a team is: three intervals for F(S) = |S|^(-1/2) Σ_{i in S} (L w_i - 1)².

* "hoeffding": F̂ ± √(Σ R_i² ln(2/δ) / (2k)), R_i the width of what the unbiased score can be. It
  holds for every team that was fixed before the test, and is very wide.
* "bootstrap": F̂ ± the size of the errors that F̂ makes where the tests are drawn again, from
  C_i ~ Binomial(n_i, w̃_i). For teams fixed before the test it held in 93 to 98 of 100 cases at
  95 %, with pools of 3 to 31 workers, 2 to 4 labels and 2 to 60 questions.
* "posterior": quantiles of F where the w_i are drawn from their Beta posteriors.

A team that was chosen for its results has a too high F̂ (the winner's curse): 15 of 100 workers with
Beta(4, 2), tested by 10 questions, have 3.30 by the unbiased scores and 2.05 in truth, and the
bootstrap interval at 95 % never holds. The posterior one holds in 76 to 89 of 100 such cases: what
it does not know is how well the pool's prior was learnt.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError, UnknownNameError
from goldspan.hiring.beta import LEVEL, Reliability
from goldspan.hiring.scores import score_ranges, worker_scores

INTERVALS = ("hoeffding", "bootstrap", "posterior")
DRAWS = 2000
MANY = 1000
"""Workers beyond which a sum over them is taken as normal."""

Draws = NDArray[np.float64]


def score_interval(
    tested: Reliability,
    *,
    kind: str = "bootstrap",
    level: float = LEVEL,
    draws: int = DRAWS,
    random_state: int = 0,
) -> tuple[float, float]:
    """Give an interval of F for a team.

    Args:
        tested: The test results of the team.
        kind: "hoeffding", "bootstrap" or "posterior".
        level: How often it should hold, between 0 and 1.
        draws: Of the bootstrap and the posterior.
        random_state: Seed of them.

    Returns:
        Low and high; never below 0, where F cannot be. NaN where the kind needs two judged
        answers of everybody and somebody has fewer; (0, 0) for no team.

    Raises:
        InputError: The level does not lie between 0 and 1.
        UnknownNameError: There is no such interval.

    >>> team = Reliability.from_counts([18, 17, 15], 20)
    >>> [round(end, 2) for end in score_interval(team, kind="hoeffding")]
    [0.0, 2.18]
    """
    if kind not in INTERVALS:
        raise UnknownNameError("interval", kind, INTERVALS)
    if not 0 < level < 1:
        raise InputError(f"a level lies between 0 and 1, not {level}")
    if not len(tested):
        return 0.0, 0.0
    if kind != "posterior" and (tested.total < 2).any():
        return float("nan"), float("nan")
    rng = np.random.default_rng(random_state)
    if kind == "posterior":
        values = _drawn_values(tested, draws, rng)
        low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2]).tolist()
        return float(low), float(high)
    value = float(worker_scores(tested, "unbiased").sum() / np.sqrt(len(tested)))
    if kind == "hoeffding":
        half = hoeffding_width(tested, level)
    else:
        half = float(np.quantile(np.abs(_drawn_errors(tested, draws, rng)), level))
    return max(0.0, value - half), max(0.0, value + half)


def hoeffding_width(tested: Reliability, level: float = LEVEL) -> float:
    """Give half the width of Hoeffding's interval: √(Σ R_i² ln(2/δ) / (2k)), δ = 1 - level."""
    squares = float((score_ranges(tested) ** 2).sum())
    return float(np.sqrt(squares * np.log(2 / (1 - level)) / (2 * len(tested))))


def _drawn_values(tested: Reliability, draws: int, rng: np.random.Generator) -> Draws:
    """Draw F from the posterior, float64 [draws]."""

    def draw(some: Reliability) -> NDArray[np.float64]:
        chance = rng.beta(some.a, some.b, (draws, len(some)))
        return np.asarray((some.n_labels * chance - 1) ** 2)

    return np.asarray(_sums(tested, draw, draws, rng) / np.sqrt(len(tested)))


def _drawn_errors(tested: Reliability, draws: int, rng: np.random.Generator) -> Draws:
    """Draw what F̂ of a test like this one misses F by, float64 [draws].

    A worker with all answers right would be drawn all right again, without any error: his chance
    is taken as (C + 1) / (n + 2).
    """

    def draw(some: Reliability) -> NDArray[np.float64]:
        labels, n = some.n_labels, np.rint(some.total)
        chance = (some.right + 1) / (some.total + 2)
        share = rng.binomial(n.astype(np.int64), chance, (draws, len(some))) / n
        drawn = (labels * share - 1) ** 2 - labels**2 * share * (1 - share) / (n - 1)
        return np.asarray(drawn - (labels * chance - 1) ** 2)

    return np.asarray(_sums(tested, draw, draws, rng) / np.sqrt(len(tested)))


def _sums(
    tested: Reliability,
    draw: Callable[[Reliability], NDArray[np.float64]],
    draws: int,
    rng: np.random.Generator,
) -> Draws:
    """Add up what is drawn for every worker, float64 [draws].

    Workers with equal results have equal distributions: the sum over many of them is normal, and
    its mean and variance come from one worker's draws.
    """
    if len(tested) <= MANY:
        return np.asarray(draw(tested).sum(axis=1))
    few, _, times = tested.distinct()
    mean = variance = 0.0
    for start in range(0, len(times), MANY):
        some = np.arange(start, min(start + MANY, len(times)))
        drawn, weight = draw(few.take(some)), times[some]
        mean += float(drawn.mean(axis=0) @ weight)
        variance += float(drawn.var(axis=0) @ weight)
    return np.asarray(mean + np.sqrt(variance) * rng.standard_normal(draws))
