"""Keep, drop, or test more: what the posterior says about every worker, and why.

A worker is kept whose chance w of being right is above a threshold with a probability of at least
`sure`, dropped if it is below the threshold with that probability, and tested further otherwise.
How many more questions that takes is a forecast from the posterior itself: the smallest number
after which the matter would be settled, one way or the other, as likely as not (the median: near
the threshold the mean has no bound). Signs of careless work are shown beside; a worker who would be
kept and shows one is to be looked at first, for the posterior takes the answers as the worker's own
and of one quality throughout.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from karat.errors import InputError
from karat.hiring.beta import Reliability
from karat.hiring.signs import Sign
from karat.hiring.signs.base import percent

KEEP, DROP, TEST, LOOK = "keep", "drop", "test more", "look at"
SETTLED = 0.5
"""With this probability the questions that are forecast settle the matter: the median number."""
SIZES = (
    *(*range(1, 11), 12, 14, 16, 18, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90, 100),
    *(120, 140, 160, 180, 200, 250, 300, 350, 400, 450, 500, 600, 700, 800, 900, 1000),
)
"""Numbers of questions that are forecast."""
QUESTIONS = {
    "accuracy": "questions",
    "token_accuracy": "independent tokens",
    "span_f1": "independent spans",
}


@dataclass(frozen=True)
class Verdict:
    """What to do with a worker.

    Attributes:
        worker: The id.
        verdict: "keep", "drop", "test more", or "look at": to keep, were there no signs.
        mean: Posterior mean of being right.
        low: Lower end of the 95 % credible interval.
        high: Upper end.
        total: Judged answers (effective ones for tags).
        p_above: P(w > threshold).
        more: Questions that would settle it as likely as not; 0 where it is settled, None for
            more than 1,000.
        why: A sentence.
        signs: Signs of careless work, the strongest first.
    """

    worker: str
    verdict: str
    mean: float
    low: float
    high: float
    total: float
    p_above: float
    more: int | None
    why: str
    signs: tuple[Sign, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give plain values, for JSON."""
        signs = [
            {
                "kind": sign.kind,
                "strength": sign.strength,
                "p_value": sign.p_value,
                "evidence": sign.evidence,
                **sign.numbers,
            }
            for sign in self.signs
        ]
        return {**self.__dict__, "signs": signs}


def default_threshold(reliability: Reliability) -> float:
    """Give the threshold halfway between guessing and being always right.

    >>> default_threshold(Reliability.from_counts([9], [10], n_labels=2))
    0.75
    """
    return (1 + reliability.chance) / 2


def judge_workers(
    reliability: Reliability,
    *,
    threshold: float | None = None,
    sure: float = 0.9,
    signs: Iterable[Sign] = (),
) -> list[Verdict]:
    """Say of every worker whether to keep, drop or test more.

    Args:
        reliability: What tests say.
        threshold: How often workers shall be right, between 0 and 1; by default halfway between
            chance, 1 / n_labels, and 1.
        sure: Probability that settles it, above 0.5.
        signs: Signs of careless work, from `find_signs`.

    Returns:
        Verdicts in the order of the workers.

    Raises:
        InputError: threshold or sure is out of its range.

    >>> tested = Reliability.from_counts([19, 8, 3], [20, 10, 20], prior=(1, 1))
    >>> [(v.verdict, v.more) for v in judge_workers(tested)]
    [('keep', 0), ('test more', 45), ('drop', 0)]
    """
    limit = default_threshold(reliability) if threshold is None else threshold
    if not 0 < limit < 1:
        raise InputError(f"threshold lies between 0 and 1, not {limit}")
    if not 0.5 < sure < 1:
        raise InputError(f"sure lies between 0.5 and 1, not {sure}")
    by_worker: dict[str, list[Sign]] = {}
    for sign in signs:
        by_worker.setdefault(sign.worker, []).append(sign)
    above, (low, high) = reliability.p_above(limit), reliability.interval()
    found = []
    for n, worker in enumerate(reliability.worker_ids.to_pylist()):
        own, p = tuple(by_worker.get(worker, ())), float(above[n])
        kind = KEEP if p >= sure else DROP if p <= 1 - sure else TEST
        more: int | None = 0
        if kind == TEST:
            more = questions_to_settle(
                float(reliability.a[n]), float(reliability.b[n]), limit, sure
            )
        kind = LOOK if kind == KEEP and own else kind
        total = float(reliability.total[n])
        why = _why(kind, p, limit, more, own, total, reliability.measure)
        found.append(
            Verdict(
                worker, kind, float(reliability.mean[n]), float(low[n]), float(high[n]), total, p,
                more, why, own,
            )
        )  # fmt: skip
    return found


def questions_to_settle(a: float, b: float, threshold: float, sure: float) -> int | None:
    """Say how many more questions would settle whether w is above the threshold.

    Args:
        a: First parameter of the posterior.
        b: Second parameter.
        threshold: Of w.
        sure: Probability that settles it.

    Returns:
        The smallest of `SIZES` after which P(w > threshold) is at least `sure`, or at most
        1 - sure, with probability `SETTLED`; None where 1,000 are too few.
    """
    # Posteriors of a large pool differ by little: a tenth of an answer changes no forecast.
    key = (round(a, 1) or 0.1, round(b, 1) or 0.1)
    at = bisect_left(SIZES, SETTLED, key=lambda n: p_settled(*key, n, threshold, sure))
    return SIZES[at] if at < len(SIZES) else None


@lru_cache(maxsize=100_000)
def p_settled(a: float, b: float, n: int, threshold: float, sure: float) -> float:
    """Give the probability that n more answers settle it: the beta-binomial forecast.

    Right answers k out of n have P(k) = C(n, k) B(a + k, b + n - k) / B(a, b); they settle it if
    the posterior Beta(a + k, b + n - k) is far enough on one side of the threshold.
    """
    from scipy.special import betaincc, betaln, gammaln

    k = np.arange(n + 1)
    above = betaincc(a + k, b + n - k, threshold)
    settled = (above >= sure) | (above <= 1 - sure)
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    log_prob = ways + betaln(a + k, b + n - k) - betaln(a, b)
    return float(np.exp(log_prob)[settled].sum())


def _why(
    kind: str, p: float, limit: float, more: int | None, signs: tuple[Sign, ...], total: float,
    measure: str,
) -> str:  # fmt: skip
    what = f"more than {percent(limit)} right"
    if measure == "span_f1":
        what = f"an F1 of more than {percent(limit)}"
    if kind == DROP:
        return f"{what} with probability {_probability(p)} only"
    if kind == KEEP:
        return f"{what} with probability {_probability(p)}"
    if kind == LOOK:
        return (
            f"{what} with probability {_probability(p)}, but {signs[0].kind}: {signs[0].evidence}"
        )
    start = f"{what} with probability {p:.2f}" if total else "nothing judged yet"
    amount = "more than 1,000" if more is None else f"about {more}"
    return f"{start}: {amount} more {QUESTIONS[measure]} would settle it as likely as not"


def _probability(p: float) -> str:
    edge = "over 0.999" if p > 0.9995 else "under 0.001" if p < 0.0005 else ""
    return edge or f"{p:.3f}"
