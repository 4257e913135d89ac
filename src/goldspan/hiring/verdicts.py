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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError
from goldspan.hiring.beta import Reliability
from goldspan.hiring.signs import Sign

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
        measure: What right is: the reliability's measure.
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
    measure: str = "accuracy"

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
    a, b, mean = reliability.a, reliability.b, reliability.mean
    found = []
    for n, worker in enumerate(reliability.worker_ids.to_pylist()):
        own, p = tuple(by_worker.get(worker, ())), float(above[n])
        kind = KEEP if p >= sure else DROP if p <= 1 - sure else TEST
        more: int | None = 0
        if kind == TEST:
            more = questions_to_settle(float(a[n]), float(b[n]), limit, sure)
        kind = LOOK if kind == KEEP and own else kind
        total = float(reliability.total[n])
        what = _what(limit, reliability.measure, reliability.source)
        why = _why(kind, p, what, more, own, total, reliability.measure)
        found.append(
            Verdict(
                worker, kind, float(mean[n]), float(low[n]), float(high[n]), total, p,
                more, why, own, reliability.measure,
            )
        )  # fmt: skip
    return found


def best_first(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Order workers as they are shown: by the mean, equals by name.

    >>> tested = Reliability.from_counts([3, 19, 18], 20, prior=(1, 1))
    >>> [verdict.worker for verdict in best_first(judge_workers(tested))]
    ['1', '2', '0']
    """
    return sorted(verdicts, key=lambda v: (-v.mean, v.worker))


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
    return _smallest_size(round(a, 1) or 0.1, round(b, 1) or 0.1, threshold, sure)


@lru_cache(maxsize=100_000)
def _smallest_size(a: float, b: float, threshold: float, sure: float) -> int | None:
    # More questions may settle less, for the right answers that they need are whole numbers: so
    # all sizes are looked at.
    enough = np.flatnonzero(p_settled(a, b, SIZES, threshold, sure) >= SETTLED)
    return SIZES[enough[0]] if len(enough) else None


def p_settled(
    a: float, b: float, sizes: Sequence[int], threshold: float, sure: float
) -> NDArray[np.float64]:
    """Give the probability that n more answers settle it, for every n: the beta-binomial forecast.

    Right answers k out of n have P(k) = C(n, k) B(a + k, b + n - k) / B(a, b); they settle it if
    the posterior Beta(a + k, b + n - k) is far enough on one side of the threshold: it moves up
    with k, so that few and many right answers do.

    Args:
        a: First parameter of the posterior.
        b: Second parameter.
        sizes: Numbers n of answers, each at least 1.
        threshold: Of w.
        sure: Probability that settles it.

    Returns:
        float64 [n_sizes].

    >>> p_settled(1, 1, [1, 10], 0.75, 0.9).round(3).tolist()
    [0.5, 0.636]
    """
    from scipy.special import betaln, gammaln

    n = np.asarray(sizes, np.int64)
    low, high = (_first_above(a, b, n, threshold, p) for p in (np.nextafter(1 - sure, 1), sure))
    begin = np.concatenate([[0], np.cumsum(n + 1)])
    of = np.repeat(n, n + 1)
    k = np.arange(begin[-1]) - np.repeat(begin[:-1], n + 1)
    whole = np.arange(n.max() + 1)
    # log k!, log Gamma(a + k) and log Gamma(b + k) once for every k.
    ways, right, wrong = gammaln(whole + 1), gammaln(a + whole), gammaln(b + whole)
    log_prob = ways[of] - ways[k] - ways[of - k] + right[k] + wrong[of - k]
    log_prob -= gammaln(a + b + whole)[of] + betaln(a, b)
    settled = (k < np.repeat(low, n + 1)) | (k >= np.repeat(high, n + 1))
    return np.asarray(np.add.reduceat(np.where(settled, np.exp(log_prob), 0), begin[:-1]))


def _first_above(
    a: float, b: float, n: NDArray[np.int64], threshold: float, p: float
) -> NDArray[np.int64]:
    """Find the fewest right answers with P(w > threshold) >= p; n + 1 where not all suffice."""
    from scipy.special import betaincc

    low, high = np.zeros_like(n), n + 1
    while (low < high).any():
        k = np.minimum((low + high) // 2, n)
        is_above = betaincc(a + k, b + n - k, threshold) >= p
        open_ = low < high
        high = np.where(open_ & is_above, k, high)
        low = np.where(open_ & ~is_above, k + 1, low)
    return np.asarray(low)


def _what(limit: float, measure: str, source: str) -> str:
    """Say what is probable; by the crowd's labels it is agreement, and not called right."""
    share = f"{100 * limit:.1f} %"
    if source == "crowd":
        unit = "spans, by F1," if measure == "span_f1" else "labels"
        return f"agrees with more than {share} of the crowd's {unit}"
    by = "" if source == "gold" else " by gold and the crowd"
    if measure == "span_f1":
        return f"an F1 of more than {share}{by}"
    return f"more than {share} right{by}"


def _why(
    kind: str, p: float, what: str, more: int | None, signs: tuple[Sign, ...], total: float,
    measure: str,
) -> str:  # fmt: skip
    if kind == DROP:
        return f"{what} with probability {_probability(p)} only"
    if kind == KEEP:
        return f"{what} with probability {_probability(p)}"
    if kind == LOOK:
        return (
            f"{what} with probability {_probability(p)}, but {signs[0].kind}: {signs[0].evidence}"
        )
    start = f"{what} with probability {p:.2f}" if total else "nothing judged yet"
    unit = QUESTIONS[measure] if more != 1 else QUESTIONS[measure].removesuffix("s")
    amount = "more than 1,000" if more is None else f"about {more}"
    return f"{start}: {amount} more {unit} would settle it as likely as not"


def _probability(p: float) -> str:
    edge = "over 0.999" if p > 0.9995 else "under 0.001" if p < 0.0005 else ""
    return edge or f"{p:.3f}"
