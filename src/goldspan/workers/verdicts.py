"""Verdicts on workers: keep, drop, or test more; and what of their habits is told in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation.families import Families
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.spans import Tagged, find_spans
from goldspan.workers.beta import Reliability
from goldspan.workers.reliability import Judged, QualityFlag, design_effect, measure_reliability

# --------------------------------------------------------------------------------------------------
# Keep, drop, or test more: what the posterior says about every worker, and why.


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
    """What to do with a worker."""

    worker: str  # The id
    verdict: str  # "keep", "drop", "test more", or "look at": to keep, were there no flags
    mean: float  # Posterior mean of being right
    low: float  # Lower end of the 95 % credible interval
    high: float  # Upper end
    total: float  # Judged answers (effective ones for tags)
    p_above: float  # P(w > threshold)
    # Questions that would settle it as likely as not; 0 where it is settled, None for more than
    # 1,000
    more: int | None
    why: str  # A sentence
    flags: tuple[QualityFlag, ...] = ()  # Quality flags, the strongest first
    measure: str = "accuracy"  # What right is: the reliability's measure
    # Name of the family of workers with whom they err together; None: they err alone
    family: str | None = None
    effective: float = 1.0  # As how many independent workers that whole family counts
    together: str = ""  # The same in words; "" for who errs alone

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        found = {**self.__dict__, "flags": [flag.to_dict() for flag in self.flags]}
        if self.family is None:
            found = {k: v for k, v in found.items() if k not in {"family", "effective"}}
        del found["together"]
        return found


def default_threshold(reliability: Reliability) -> float:
    """Return the threshold halfway between guessing and being always right."""
    return (1 + reliability.chance) / 2


def judge_workers(
    reliability: Reliability,
    *,
    threshold: float | None = None,
    sure: float = 0.9,
    flags: Iterable[QualityFlag] = (),
    families: Families | None = None,
) -> list[Verdict]:
    """Say of every worker whether to keep, drop or test more.

    Args:
        reliability: What tests say.
        threshold: How often workers shall be right, between 0 and 1; by default halfway between
            chance, 1 / n_labels, and 1.
        sure: Probability that settles it, above 0.5.
        flags: Quality flags, from `find_quality_flags`.
        families: Workers who err together, such as `Consensus.families`: verdicts name them.

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
    by_worker: dict[str, list[QualityFlag]] = {}
    for flag in flags:
        by_worker.setdefault(flag.worker, []).append(flag)
    above, (low, high) = reliability.p_above(limit), reliability.interval()
    a, b, mean = reliability.a, reliability.b, reliability.mean
    grouping = None if families is None else families.on(reliability.worker_ids)
    names = {} if grouping is None else grouping.names()
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
        family, effective, together = names.get(worker), 1.0, ""
        if grouping is not None and family is not None:
            effective, together = float(grouping.effective[n]), _together(grouping, n, family)
            why += f"; {together}"
        found.append(
            Verdict(
                worker, kind, float(mean[n]), float(low[n]), float(high[n]), total, p,
                more, why, own, reliability.measure, family, effective, together,
            )
        )  # fmt: skip
    return found


def best_first(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Order workers as they are shown: by the mean, equals by name."""
    return sorted(verdicts, key=lambda v: (-v.mean, v.worker))


def questions_to_settle(a: float, b: float, threshold: float, sure: float) -> int | None:
    """Return how many more questions would settle whether w is above the threshold."""
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
    """Return for every n the probability that n more answers settle it: beta-binomial forecast.

    Right answers k out of n have P(k) = C(n, k) B(a + k, b + n - k) / B(a, b); they settle it if
    the posterior Beta(a + k, b + n - k) is far enough on one side of the threshold: it moves up
    with k, so that few and many right answers do.
    """
    # returns float64 [n_sizes]
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
    """Return what is probable; by the crowd's labels it is agreement, and not called right."""
    share = f"{100 * limit:.1f} %"
    if source == "crowd":
        unit = "spans, by F1," if measure == "span_f1" else "labels"
        return f"agrees with more than {share} of the crowd's {unit}"
    by = "" if source == "gold" else " by gold and the crowd"
    if measure == "span_f1":
        return f"an F1 of more than {share}{by}"
    return f"more than {share} right{by}"


def _why(
    kind: str, p: float, what: str, more: int | None, flags: tuple[QualityFlag, ...], total: float,
    measure: str,
) -> str:  # fmt: skip
    if kind == DROP:
        return f"{what} with probability {_probability(p)} only"
    if kind == KEEP:
        return f"{what} with probability {_probability(p)}"
    if kind == LOOK:
        return f"{what} with probability {_probability(p)}; to look at: {flags[0]}"
    start = f"{what} with probability {p:.2f}" if total else "nothing judged yet"
    unit = QUESTIONS[measure] if more != 1 else QUESTIONS[measure].removesuffix("s")
    amount = "more than 1,000" if more is None else f"about {more}"
    return f"{start}: {amount} more {unit} would settle it as likely as not"


def _together(grouping: Families, worker: int, family: str) -> str:
    """Say with how many others a worker errs together, and what all of them count."""
    n = int(grouping.sizes[grouping.number[worker]])
    others = "another" if n == 2 else f"{n - 1} others"
    return (
        f"errs together with {others} of {family}, who count as {grouping.effective[worker]:.1f} "
        f"of {n} workers"
    )


def _probability(p: float) -> str:
    edge = "over 0.999" if p > 0.9995 else "under 0.001" if p < 0.0005 else ""
    return edge or f"{p:.3f}"


# --------------------------------------------------------------------------------------------------
# What may be said about a worker, and what it rests on: known labels, or the other annotators.


Floats = NDArray[np.float64]
GOLD, OTHERS = "gold", "others"
RELIABLE, DOUBTFUL = "reliable", "doubtful"
AGREES, DIFFERS, UNCLEAR = "agrees with the others", "differs from the others", "not clear yet"
"""Opinions. The first two need known labels."""
PRIOR = (2.0, 1.0)
"""Of w, for single labels: most annotators are better than chance."""
ROUNDS = 30
"""Of the EM; it settles in about ten."""
GRID = 201
"""Values of w at which the posterior is computed."""
LEAST_KNOWN = 5
"""Items with known labels from which on they settle anything: errors of an item go together."""
BLOCK = 100_000
"""Answers that are handled at once."""


@dataclass(frozen=True)
class Statement:
    """What may be said about a worker."""

    worker: str
    by: str  # "gold": the numbers rest on known labels alone
    measure: str  # "right": how often the worker is right
    mean: float  # Posterior mean of it
    low: float  # Lower end of the 95 % interval
    high: float
    judged: float  # Answers (of tags: effective spans or tokens) that it rests on
    known: float  # Of them, those with known labels
    items: int  # Items with known labels that the worker has answered
    p_above: float | None  # P(w > threshold); of an agreement None
    # Known labels that would settle whether w is above the threshold as likely as not
    more: int | None
    settled: bool  # Whether known labels alone settle it

    def opinion(self, verdict: str, sure: float) -> str:
        """Return in a word what is thought of the worker."""
        p = self.p_above
        if self.settled and p is not None:
            return RELIABLE if p > 0.5 else DOUBTFUL
        if self.by == OTHERS and p is None:
            return {KEEP: AGREES, DROP: DIFFERS}.get(verdict, UNCLEAR)
        if self.by == OTHERS and p is not None:
            return AGREES if p >= sure else DIFFERS if p <= 1 - sure else UNCLEAR
        return UNCLEAR

    def words(self, unit: str) -> str:
        """Return the statement as words."""
        if not self.by:
            return "nothing to compare with yet"
        low, high = round(100 * self.low), round(100 * self.high)
        if self.by == GOLD:
            items = "1 item" if self.items == 1 else f"{self.items:,} items"
            said = f"right in {100 * self.mean:.0f} % ({low}–{high} %) on {items} with known labels"
            return said if self.settled else f"{said}: too few to be sure"
        few = f"{self.known:.0f} known are too few" if self.known else "no known label"
        if self.measure == "right":
            return (
                f"by agreement with the others right in {low}–{high} %, if they err "
                f"independently; {few}"
            )
        return (
            f"agrees with each of the others in {100 * self.mean:.0f} % of the {unit} "
            f"({low}–{high} %); {few}"
        )


def state_workers(
    crowd: Crowd, *, threshold: float | None = None, sure: float = 0.9
) -> list[Statement]:
    """Say of every worker what the known labels and the other annotators show."""
    by_gold = _by_gold(crowd)
    limit = default_threshold(by_gold) if threshold is None else threshold
    above = by_gold.p_above(limit)
    gold = np.full(crowd.n_tokens, -1) if crowd.gold is None else crowd.gold
    is_known = np.append(gold >= 0, False)[crowd.offsets[:-1]]
    items = np.bincount(crowd.latest.worker, is_known[crowd.latest.item], crowd.n_workers)
    is_sure = (items > 0) & ((above >= sure) | (above <= 1 - sure))
    others = _single(crowd, limit) if crowd.is_classification else _tags(crowd)
    low, high = by_gold.interval()
    found = []
    for n, worker in enumerate(crowd.worker_ids.to_pylist()):
        known, n_items, is_enough = float(by_gold.total[n]), int(items[n]), items[n] >= LEAST_KNOWN
        is_settled = bool(is_sure[n] and is_enough)
        more = questions_to_settle(float(by_gold.a[n]), float(by_gold.b[n]), limit, sure)
        more = 0 if is_settled else more and max(more, LEAST_KNOWN - n_items)
        # Agreement is not accuracy: of tags, known labels go before it where there are any.
        if is_sure[n] or (known and others.measure == "agrees"):
            numbers = GOLD, "right", float(by_gold.mean[n]), float(low[n]), float(high[n]), known
            p: float | None = float(above[n])
        else:
            by = OTHERS if others.total[n] > 0 else ""
            mean, bounds = float(others.mean[n]), (float(others.low[n]), float(others.high[n]))
            numbers = by, others.measure, mean, *bounds, float(others.total[n])
            p = None if others.above is None else float(others.above[n])
        found.append(Statement(worker, *numbers, known, n_items, p, more, is_settled))
    return found


@dataclass(frozen=True, eq=False)
class _Compared:
    """Numbers per worker, float64 [n_workers] each, from the other annotators."""

    measure: str
    mean: Floats
    low: Floats
    high: Floats
    total: Floats
    above: Floats | None


def _by_gold(crowd: Crowd) -> Reliability:
    """Return what known labels alone say; a worker without any has the prior."""
    if crowd.gold is not None and (crowd.gold >= 0).any():
        answered = (crowd.gold >= 0)[crowd.token_of] & (crowd.latest.codes >= 0)
        if answered.any():
            return measure_reliability(crowd, prior=PRIOR)
    none = np.zeros(crowd.n_workers)
    tags = crowd.tagset
    n = len(tags.tags) if tags.rules.is_plain else len(tags.types) + 1
    return Reliability.from_counts(
        none, none, n_labels=max(2, n), worker_ids=crowd.worker_ids, prior=PRIOR
    )


# ---- single labels ----


def _single(crowd: Crowd, limit: float) -> _Compared:
    answers = crowd.latest
    kept = answers.codes >= 0
    item, worker = answers.item[kept], answers.worker[kept]
    code = answers.codes[kept].astype(np.int64)
    n, width = crowd.n_workers, max(2, len(crowd.tagset.tags))
    known = np.full(crowd.n_items, -1) if crowd.gold is None else crowd.gold
    alone = (np.bincount(item, minlength=crowd.n_items) == 1)[item] & (known[item] < 0)
    p = leave_one_out(item, worker, code, known, n, width)
    w, (a, b) = (np.arange(GRID) + 0.5) / GRID, PRIOR
    log_prob = np.tile((a - 1) * np.log(w) + (b - 1) * np.log(1 - w), (n, 1))
    for begin in range(0, len(worker), BLOCK // 10):
        some = slice(begin, begin + BLOCK // 10)
        chance = p[some, None] * w + (1 - p[some, None]) * (1 - w) / (width - 1)
        np.add.at(log_prob, worker[some], np.log(chance))
    found = np.exp(log_prob - log_prob.max(axis=1, keepdims=True))
    posterior = np.asarray(found / found.sum(axis=1, keepdims=True))
    grid = (np.arange(GRID) + 0.5) / GRID
    below = np.cumsum(posterior, axis=1)
    low, high = (grid[np.minimum((below < q).sum(axis=1), GRID - 1)] for q in (0.025, 0.975))
    total = np.bincount(worker, ~alone, n).astype(np.float64)
    above = posterior[:, grid > limit].sum(axis=1)
    return _Compared("right", posterior @ grid, low, high, total, above)


def leave_one_out(
    item: NDArray[np.integer], worker: NDArray[np.integer], code: NDArray[np.int64],
    known: NDArray[np.integer], n_workers: int, n_labels: int,
) -> Floats:  # fmt: skip
    """Return how likely every label given is true by the answers of the other workers."""
    # returns float64 [n_answers]; 1 or 0 where the label is known
    a, b = PRIOR
    given = np.bincount(worker, minlength=n_workers)
    right, is_known = known[item] == code, known[item] >= 0
    w = np.full(n_workers, a / (a + b))
    p = np.zeros(len(item))
    for _ in range(ROUNDS):
        weight = np.log(w) - np.log((1 - w) / (n_labels - 1))
        score = np.bincount(item * n_labels + code, weight[worker], len(known) * n_labels)
        score = score.reshape(-1, n_labels)
        for begin in range(0, len(item), BLOCK):
            some = slice(begin, begin + BLOCK)
            rows, own = score[item[some]], np.arange(len(item[some]))
            rows[own, code[some]] -= weight[worker[some]]  # all but the worker's own answer
            rows = np.exp(rows - rows.max(axis=1, keepdims=True))
            p[some] = rows[own, code[some]] / rows.sum(axis=1)
        p = np.where(is_known, right, p)
        if not len(p):
            return p
        correct = w[worker] * p
        wrong = (1 - w[worker]) * (1 - p) / (n_labels - 1)
        w = (a + np.bincount(worker, correct / (correct + wrong), n_workers)) / (a + b + given)
    return p


# ---- tags ----


def _tags(crowd: Crowd) -> _Compared:
    judged = _with_others(crowd)
    n, worker = crowd.n_workers, crowd.latest.worker
    right, total = (np.bincount(worker, part, n).astype(np.float64) for part in judged)
    effect = design_effect(crowd, judged)
    found = Reliability.from_counts(
        np.minimum(right, total) / effect, total / effect, worker_ids=crowd.worker_ids, prior=(1, 1)
    )
    low, high = found.interval()
    return _Compared("agrees", found.mean, low, high, found.total, None)


def _with_others(crowd: Crowd) -> Judged:
    """Compare every answer with each other answer to its item, and average over these."""
    answers = crowd.latest
    others = np.bincount(answers.item, minlength=crowd.n_items)[answers.item] - 1
    n = len(answers)
    if crowd.tagset.rules.is_plain:
        place = crowd.token_of
        given = np.flatnonzero(answers.codes >= 0)
        of = np.repeat(np.arange(n), answers.lengths)[given]
        keys = [place[given], answers.codes[given].astype(np.int64)]
        each = np.bincount(place[given], minlength=crowd.n_tokens)[place[given]] - 1
        right = np.bincount(of, _times(keys) - 1, n)
        total = np.bincount(of, each, n).astype(np.float64)
    else:
        found = find_spans(Tagged(answers.codes, answers.offset), crowd.tagset)
        of = found.item.astype(np.int64)
        begin = answers.offset[of]
        item, kind = answers.item[of].astype(np.int64), found.type.astype(np.int64)
        keys = [item, found.start - begin, found.end - begin, kind]
        right = np.bincount(of, _times(keys) - 1, n)
        own = np.bincount(of, minlength=n)
        whole = np.bincount(answers.item, own, crowd.n_items)[answers.item]
        total = (others * own + (whole - own)) / 2
    share = 1 / np.maximum(others, 1)
    return Judged(right * share, np.where(others > 0, total * share, 0.0))


def _times(keys: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return how often every combination of keys occurs, int64 [n]."""
    if not len(keys[0]):
        return np.zeros(0, np.int64)
    _, inverse, count = np.unique(np.stack(keys), axis=1, return_inverse=True, return_counts=True)
    return np.asarray(count[inverse.ravel()], np.int64)
