r"""What may be said about a worker, and what it rests on: known labels, or the other annotators.

Only known labels (gold questions, the requester's reviews) show that a worker is *right*. Without
them there is agreement, which says less: the consensus was made with the worker's own answers, it
is uncertain itself, and annotators who make the same mistakes agree with each other.

Single labels. The chance w of being right has the likelihood, for every answer,

    P(answer | w) = w p + (1 - w) (1 - p) / (L - 1)

where p is the probability that the label given is true by the *other* annotators' answers alone
(leave-one-out: the worker's own answer has no part in it), and L the number of labels. Where the
label is known, p is 1 or 0. An answer that the others say little about (p near 1 / L) tells little
about w, and one that nobody else has labelled tells nothing, so that the interval is as wide as the
uncertainty of the consensus makes it. The p come from one-coin workers (Dawid and Skene 1979 with
one parameter each), whose w are refitted by EM with the same likelihood. The prior of w is
Beta(2, 1). The interval holds if annotators err independently of each other; nothing in the answers
can tell whether they do, so it is stated as agreement and never as reliability.

Tags. The agreement with every other annotator of the same item – F1 of spans, or the share of equal
tokens – is averaged over these annotators; its interval takes the design effect into account (see
`goldspan.hiring.reliability`). It says nothing about the truth and is not turned into it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Crowd
from goldspan.hiring.beta import Reliability
from goldspan.hiring.judged import Judged
from goldspan.hiring.reliability import design_effect, measure_reliability
from goldspan.hiring.verdicts import DROP, KEEP, default_threshold, questions_to_settle
from goldspan.spans import Tagged, find_spans

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
BLOCK = 100_000
"""Answers that are handled at once."""


@dataclass(frozen=True)
class Statement:
    """What may be said about a worker.

    Attributes:
        worker: The id.
        by: "gold": the numbers rest on known labels alone; "others": on the other annotators' (for
            single labels with the known ones among them); "": nobody can say anything yet.
        measure: "right": how often the worker is right; "agrees": how often the worker agrees with
            another annotator.
        mean: Posterior mean of it.
        low: Lower end of the 95 % interval.
        high: Upper end.
        judged: Answers (of tags: effective spans or tokens) that it rests on.
        known: Of them, those with known labels.
        p_above: P(w > threshold); of an agreement None.
        more: Known labels that would settle whether w is above the threshold as likely as not; 0 if
            they do already, None for more than 1,000.
        settled: Whether known labels alone settle it.
    """

    worker: str
    by: str
    measure: str
    mean: float
    low: float
    high: float
    judged: float
    known: float
    p_above: float | None
    more: int | None
    settled: bool

    def opinion(self, verdict: str, sure: float) -> str:
        """Return in a word what is thought of the worker.

        Args:
            verdict: The verdict of the rules, for agreement that is no accuracy.
            sure: As for `state_workers`.

        >>> found = Statement("w", "others", "right", 0.95, 0.8, 1, 15, 0, 0.999, 20, False)
        >>> found.opinion("keep", 0.9)
        'agrees with the others'
        """
        p = self.p_above
        if self.settled and p is not None:
            return RELIABLE if p > 0.5 else DOUBTFUL
        if self.by == OTHERS and p is None:
            return {KEEP: AGREES, DROP: DIFFERS}.get(verdict, UNCLEAR)
        if self.by == OTHERS and p is not None:
            return AGREES if p >= sure else DIFFERS if p <= 1 - sure else UNCLEAR
        return UNCLEAR

    def words(self, unit: str) -> str:
        """Return the statement as words.

        Args:
            unit: What is compared, in the plural: "texts", "spans".

        >>> found = Statement("w", "others", "right", 0.95, 0.8, 1, 15, 0, 0.999, 20, False)
        >>> print(found.words("texts"))
        by agreement with the others right in 80–100 %, if they err independently; no known label
        """
        if not self.by:
            return "nothing to compare with yet"
        low, high = round(100 * self.low), round(100 * self.high)
        if self.by == GOLD:
            said = f"right in {100 * self.mean:.0f} % ({low}–{high} %) by known labels"
            return said if self.settled else f"{said}: too few of them to be sure"
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
    r"""Say of every worker what the known labels and the other annotators show.

    Args:
        crowd: The crowd; its gold holds the known labels, if there are any.
        threshold: How often workers shall be right, between 0 and 1; by default halfway between
            chance and 1.
        sure: Probability that settles it, above 0.5.

    Returns:
        Statements in the order of the workers.

    >>> import goldspan
    >>> rows = [f"{n},{who},{'xy'[n % 2]}" for n in range(15) for who in ("ann", "bob", "cat")]
    >>> crowd = goldspan.read_crowd("\n".join(["task,worker,label", *rows]).encode())
    >>> one = state_workers(crowd)[0]
    >>> one.by, one.settled, round(one.low, 2), round(one.high, 2)
    ('others', False, 0.8, 1.0)
    """
    by_gold = _by_gold(crowd)
    limit = default_threshold(by_gold) if threshold is None else threshold
    above = by_gold.p_above(limit)
    settled = (by_gold.total > 0) & ((above >= sure) | (above <= 1 - sure))
    others = _single(crowd, limit) if crowd.is_classification else _tags(crowd)
    low, high = by_gold.interval()
    found = []
    for n, worker in enumerate(crowd.worker_ids.to_pylist()):
        known, is_settled = float(by_gold.total[n]), bool(settled[n])
        a, b = float(by_gold.a[n]), float(by_gold.b[n])
        more = 0 if is_settled else questions_to_settle(a, b, limit, sure)
        # Agreement is not accuracy: of tags, known labels go before it where there are any.
        if is_settled or (known and others.measure == "agrees"):
            numbers = GOLD, "right", float(by_gold.mean[n]), float(low[n]), float(high[n]), known
            p: float | None = float(above[n])
        else:
            by = OTHERS if others.total[n] > 0 else ""
            mean, bounds = float(others.mean[n]), (float(others.low[n]), float(others.high[n]))
            numbers = by, others.measure, mean, *bounds, float(others.total[n])
            p = None if others.above is None else float(others.above[n])
        found.append(Statement(worker, *numbers, known, p, more, is_settled))
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
    posterior = accuracy_posterior(worker, p, n, width)
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
    """Return how likely every label given is true by the answers of the other workers.

    Args:
        item: Item of every answer, int [n_answers].
        worker: Worker of every answer, int [n_answers].
        code: Label of every answer, int64 [n_answers].
        known: Known label of every item, -1 where it is not known, int [n_items].
        n_workers: Number of workers.
        n_labels: Number of labels, at least 2.

    Returns:
        float64 [n_answers]; 1 or 0 where the label is known.
    """
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


def accuracy_posterior(
    worker: NDArray[np.integer], p: Floats, n_workers: int, n_labels: int
) -> Floats:
    """Return the posterior of every worker's chance of being right at the points of the grid.

    Args:
        worker: Worker of every answer, int [n_answers].
        p: How likely the label given is true, by others, float64 [n_answers].
        n_workers: Number of workers.
        n_labels: Number of labels, at least 2.

    Returns:
        float64 [n_workers, GRID], rows that sum to 1.
    """
    w, (a, b) = (np.arange(GRID) + 0.5) / GRID, PRIOR
    log_prob = np.tile((a - 1) * np.log(w) + (b - 1) * np.log(1 - w), (n_workers, 1))
    for begin in range(0, len(worker), BLOCK // 10):
        some = slice(begin, begin + BLOCK // 10)
        chance = p[some, None] * w + (1 - p[some, None]) * (1 - w) / (n_labels - 1)
        np.add.at(log_prob, worker[some], np.log(chance))
    found = np.exp(log_prob - log_prob.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True))


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
    """Compare every answer with each other answer to its item, and average over these.

    Of spans, right are the equal ones and judged half of both answers' spans, so that the share is
    the F1; of plain tags they are tokens.
    """
    answers = crowd.latest
    others = np.bincount(answers.item, minlength=crowd.n_items)[answers.item] - 1
    n = len(answers)
    if crowd.tagset.rules.is_plain:
        token = np.repeat(crowd.offsets[answers.item] - answers.offset[:-1], answers.lengths)
        place = token + np.arange(len(answers.codes))
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
