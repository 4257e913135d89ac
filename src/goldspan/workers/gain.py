"""Which few workers to choose by what their answers tell: confusion matrices and families.

Li and Liu (2015) choose by how often a worker is right, and leave EM and more complex models to
future work. Here the value of a team S is the expected posterior of the truth by its answers,

    V(S) = E p(t | answers of S),   p(t | a) ∝ p(t) Π_{k in S} π_k(t, a_k)^{u_k},

where π_k is the worker's confusion matrix and u = 1 / (1 + (n - 1) rho) of n members of a family
who labelled the token. The worker with the largest gain is added again and again.

The expectation is over the tokens that the workers did label, so that it counts what a team leaves
open. With a result of the crowd the answers are the given ones, and the truth is as likely as the
result says; by gold alone answers are drawn from the matrices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan._arrays import Keys, draws, keys_of
from goldspan.aggregation import Consensus
from goldspan.crowd import Crowd
from goldspan.errors import UnknownNameError
from goldspan.money import from_micro, to_micro
from goldspan.workers.beta import Reliability, expected_confusions
from goldspan.workers.reliability import Truth, find_truth, measure_reliability
from goldspan.workers.selection import (
    WorkerSelection,
    grouping_of,
    read_prices,
    read_size,
    why_uninformative,
)
from goldspan.workers.teams import Grouping

if TYPE_CHECKING:
    from goldspan.aggregation.families import Families

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# --------------------------------------------------------------------------------------------------
# Confusion matrices from few answers: a worker's counts, their accuracy, and the pool's habits.


STRENGTHS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 1000.0)
"""Answers that the prior of a row may count as; the answers of all workers decide."""
HALVINGS = 50
"""Steps in which the tilt of a matrix is found."""


def mean_confusions(counts: Floats) -> Floats:
    r"""Estimate the confusion matrices of all workers together.

    The prior of a row is what all workers make of that label, tilted so that the worker is right
    as often as the Beta posterior says. It counts as many answers as makes the counts most likely:
    where workers of the same accuracy err alike, the matrices are those of a one-coin model.
    """
    # counts float64 [n_workers, n_labels, n_labels]
    # returns float64 [n_workers, n_labels, n_labels], rows sum to 1
    from scipy.special import gammaln

    n_labels = counts.shape[1]
    right, total = np.trace(counts, axis1=1, axis2=2), counts.sum(axis=(1, 2))
    tested = Reliability.from_counts(np.minimum(right, total), total, n_labels=n_labels)
    base = _tilted(counts, tested.mean)
    rows = counts.sum(axis=2)
    found, best = base, -np.inf
    for strength in STRENGTHS:
        prior = strength * base
        height = (gammaln(prior + counts) - gammaln(prior)).sum() + (
            gammaln(strength) - gammaln(strength + rows)
        ).sum()
        if height > best:
            best, found = height, (prior + counts) / (strength + rows)[:, :, None]
    return found


def _tilted(counts: Floats, mean: Floats) -> Floats:
    """Return the pool's matrix with other odds of being right for every worker."""
    n_labels = counts.shape[1]
    pool = counts.sum(axis=0) + np.eye(n_labels) + 1 / n_labels
    pool /= pool.sum(axis=1, keepdims=True)
    share = counts.sum(axis=(0, 2)) + 1
    share, diagonal = share / share.sum(), np.diag(pool)
    low, high = np.full(len(mean), -30.0), np.full(len(mean), 30.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        odds = np.exp(middle)[:, None] * diagonal
        is_low = (odds / (odds + 1 - diagonal)) @ share < mean
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    odds = np.exp(low)[:, None] * diagonal
    right = (odds / (odds + 1 - diagonal))[:, :, None]
    others = pool * (1 - np.eye(n_labels)) / (1 - diagonal)[:, None]
    return np.asarray(right * np.eye(n_labels) + (1 - right) * others)


# --------------------------------------------------------------------------------------------------
# What every worker would add to a team.


@dataclass(frozen=True, eq=False)
class Answered:
    """Labels that workers gave, or may give, and how likely every truth is."""

    token: Ints  # int64 [n_answers]
    worker: Ints  # int64 [n_answers]
    code: Ints  # int64 [n_answers], the label given
    target: Floats  # [n_tokens, n_labels], how likely each label is to be the truth
    prior: Floats  # [n_labels], the same before any answer
    n_workers: int


class _Search:
    """A team that grows, and what everybody outside would add to it."""

    def __init__(self, answered: Answered, means: Floats, grouping: Grouping | None) -> None:
        self.answered, n = answered, answered.n_workers
        self.evidence = np.log(means)[answered.worker, :, answered.code]
        self.grouping = grouping
        if grouping is not None:  # labels of a family's members for the same token share a cell
            key = answered.token * np.int64(len(grouping.rho)) + grouping.number[answered.worker]
            cells, self.cell = np.unique(key, return_inverse=True)
            self.rho = grouping.rho[cells % len(grouping.rho)]
            self.n_in, self.total = np.zeros(len(cells)), np.zeros((len(cells), len(means[0])))
        self.state = np.tile(np.log(answered.prior), (len(answered.target), 1))
        self.now = _posterior(self.state, answered.target)
        self.outside = np.ones(n, np.bool_)
        self.gain = np.zeros(len(self.evidence))
        self._look(np.arange(len(self.evidence)))

    @property
    def gains(self) -> Floats:
        """What every worker would add to V, float64 [n_workers]; -inf for members."""
        found = np.bincount(self.answered.worker, self.gain, self.answered.n_workers)
        return np.where(self.outside, found / max(1, len(self.now)), -np.inf)

    @property
    def accuracy(self) -> float:
        """How often the team's most likely label is expected to be right."""
        if not len(self.now):
            return 0.0
        best = self.state.argmax(axis=1)[:, None]
        return float(np.take_along_axis(self.answered.target, best, axis=1).mean())

    def add(self, worker: int) -> None:
        """Let a worker join."""
        own = np.flatnonzero(self.answered.worker == worker)
        token = self.answered.token[own]
        self.state[token] += self._change(own)
        if self.grouping is not None:
            self.total[self.cell[own]] += self.evidence[own]
            self.n_in[self.cell[own]] += 1
        self.now[token] = _posterior(self.state[token], self.answered.target[token])
        self.outside[worker] = False
        touched = np.zeros(len(self.now), np.bool_)
        touched[token] = True
        self._look(
            np.flatnonzero(touched[self.answered.token] & self.outside[self.answered.worker])
        )

    def _look(self, which: Ints) -> None:
        """Find what some answers would add."""
        token = self.answered.token[which]
        new = self.state[token] + self._change(which)
        self.gain[which] = _posterior(new, self.answered.target[token]) - self.now[token]

    def _change(self, which: Ints) -> Floats:
        """Return what answers change of the log posterior beside those of their families."""
        if self.grouping is None:
            return self.evidence[which]
        cell = self.cell[which]
        n, rho, total = self.n_in[cell], self.rho[cell], self.total[cell]
        before, after = (1 / (1 + np.maximum(size - 1, 0) * rho) for size in (n, n + 1))
        return np.asarray(after[:, None] * (total + self.evidence[which]) - before[:, None] * total)


def _posterior(state: Floats, target: Floats) -> Floats:
    """Return Σ_t target p(t) of rows of unnormalised log posteriors."""
    odds = np.exp(state - state.max(axis=1, keepdims=True))
    return np.asarray((target * odds).sum(axis=1) / odds.sum(axis=1))


@dataclass(frozen=True, eq=False)
class JoinOrder:
    """Workers in the order in which they joined."""

    order: Ints  # int64 [n_joined]
    gains: Floats  # [n_joined], what they added to V
    accuracy: Floats  # [n_joined + 1], expected of nobody, of the first, of the first two, …


TIED = 1e-6
"""Gains that differ by no more than this share are equal: sums in another order are not the same.

Who of them joins is drawn by id."""


def grow(
    answered: Answered, means: Floats, candidates: Ints, costs: Ints, limit: int,
    grouping: Grouping | None = None, *, per_cost: bool = False, luck: Floats | None = None,
) -> JoinOrder:  # fmt: skip
    """Add the worker with the largest gain again and again, of equals the luckiest."""
    # means float64 [n_workers, n_labels, n_labels]; costs int64 [n_workers]
    # luck float64 [n_workers]
    search = _Search(answered, means, grouping)
    chance = np.arange(answered.n_workers, dtype=np.float64) if luck is None else luck
    able = np.zeros(answered.n_workers, np.bool_)
    able[candidates] = True
    order: list[int] = []
    gains: list[float] = []
    accuracy = [search.accuracy]
    while True:
        able &= search.outside & (costs <= limit)
        if not able.any():
            break
        found = search.gains
        worth = found / np.maximum(costs, 1) if per_cost else found
        most = worth[able].max()
        is_best = able & (worth >= most - TIED * abs(most))
        best = int(np.argmin(np.where(is_best, chance, np.inf)))
        search.add(best)
        limit -= int(costs[best])
        order.append(best)
        gains.append(float(found[best]))
        accuracy.append(search.accuracy)
    return JoinOrder(np.array(order, np.int64), np.array(gains), np.array(accuracy))


# --------------------------------------------------------------------------------------------------
# The answers by which gains are measured: given ones beside a result, or drawn ones.


LEAST_TOKENS = 2000
"""Answers are drawn again until there are so many tokens."""
MOST_TOKENS = 50_000
"""Tokens that are looked at; of larger crowds so many are drawn."""
FOLDS = 10
"""Parts of the gold on which the result is compared with the tests."""
SIGN_LEVEL = 0.2
"""A result is left aside if tests tell the gold better by a sign test at this level.

A wrong result misleads every choice, and passing over a right one costs little."""


@dataclass(frozen=True, eq=False)
class _Labels:
    """All labels given, and what is known of the truth, in the codes of the joined tags."""

    truth: Truth
    token: Ints
    worker: Ints
    code: Ints
    known: Floats
    probs: Floats | None

    @property
    def n_workers(self) -> int:
        return self.truth.crowd.n_workers

    def counts(self, soft: Floats) -> Floats:
        """Count truth by label given, float64 [n_workers, n_labels, n_labels]."""
        return expected_confusions(self.worker, self.code, soft, self.token, self.n_workers)


def _labels(truth: Truth) -> _Labels:
    crowd = truth.crowd
    given = crowd.latest.codes >= 0
    n_labels = max(2, len(crowd.tagset.tags))
    known = np.zeros((crowd.n_tokens, n_labels))
    there = np.flatnonzero(truth.known)
    known[there, truth.gold[there]] = 1
    probs = None
    if truth.result is not None:
        result, width = truth.result, len(truth.result.tagset.tags)
        probs = np.zeros((crowd.n_tokens, n_labels))
        column = [crowd.tagset.index[tag] for tag in result.tagset.tags]
        probs[:, column] = result.token_probs[:, :width]
        probs[result.codes < 0] = 0
        probs = np.where(known.any(axis=1, keepdims=True), known, probs)
    return _Labels(
        truth, crowd.token_of[given].astype(np.int64), crowd.worker_of[given].astype(np.int64),
        crowd.latest.codes[given].astype(np.int64), known, probs,
    )  # fmt: skip


def _worse_than_tests(labels: _Labels) -> bool:
    """Whether tests tell the gold better than the result's matrices do, by a sign test."""
    from scipy.special import bdtrc

    assert labels.probs is not None
    crowd = labels.truth.crowd
    is_known = np.asarray(labels.known.any(axis=1), np.bool_)
    if not is_known.any():
        return False
    # Documents, or items without one, in the order of numbers that belong to their ids.
    named = crowd.item_ids if crowd.groups is None else pc.coalesce(crowd.groups, crowd.item_ids)
    group = np.repeat(keys_of(named), np.diff(crowd.offsets))
    groups, place = np.unique(group[is_known], return_inverse=True)
    fold_of = np.full(crowd.n_tokens, -1)
    fold_of[is_known] = place % min(FOLDS, len(groups))
    rest = np.where(is_known[:, None], 0.0, labels.probs)
    hits = [_predicts_gold(labels, labels.counts(rest), is_known)]
    tests = np.zeros(crowd.n_tokens, np.bool_)
    for fold in range(int(fold_of.max()) + 1):
        others = np.where((fold_of == fold)[:, None], 0.0, labels.known)
        tests |= _predicts_gold(labels, labels.counts(others), fold_of == fold)
    hits.append(tests)
    by_crowd, by_tests = (np.bincount(place, one[is_known], len(groups)) for one in hits)
    more, less = int((by_tests > by_crowd).sum()), int((by_tests < by_crowd).sum())
    return more > less and float(bdtrc(more - 1, more + less, 0.5)) <= SIGN_LEVEL


def _predicts_gold(labels: _Labels, counts: Floats, which: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether all answers, by such matrices, tell the known label of tokens: bool [n_tokens]."""
    share = counts.sum(axis=(0, 2)) + 1
    state = np.tile(np.log(share / share.sum()), (len(which), 1))
    own = np.flatnonzero(which[labels.token])
    evidence = np.log(mean_confusions(counts))[labels.worker[own], :, labels.code[own]]
    np.add.at(state, labels.token[own], evidence)
    return which & (np.take_along_axis(labels.known, state.argmax(axis=1)[:, None], 1)[:, 0] > 0)


def _answers_as_given(labels: _Labels, chance: _Chance) -> Answered:
    """Take the answers as given, and the truth by the result."""
    assert labels.probs is not None
    there = np.zeros(len(labels.probs), np.bool_)
    there[labels.token] = True
    token, worker, code, kept = _some(labels, there & labels.probs.any(axis=1), chance)
    target = labels.probs[kept]
    target = target / target.sum(axis=1, keepdims=True)
    prior = target.mean(axis=0) + 1e-6
    return Answered(token, worker, code, target, prior / prior.sum(), labels.n_workers)


def _drawn_answers(
    labels: _Labels, means: Floats, grouping: Grouping | None, chance: _Chance
) -> Answered:
    """Draw truths, and answers to them for every place where a worker did answer."""
    # Members of a family take their luck from it with probability sqrt(rho)
    there = np.zeros(len(labels.known), np.bool_)
    there[labels.token] = True
    token, worker, _, kept = _some(labels, there, chance)
    n_kept, times = len(kept), max(1, -(-LEAST_TOKENS // max(1, len(kept))))
    rounds = np.arange(times)
    own, turn = np.tile(kept[token], times), rounds.repeat(len(token))
    worker = np.tile(worker, times)
    token = (token + n_kept * rounds[:, None]).ravel()
    share = labels.known.sum(axis=0) + 1
    prior = share / share.sum()
    drawn = chance.of("truth", np.tile(kept, times), rounds.repeat(n_kept))
    truth = np.minimum(np.searchsorted(np.cumsum(prior), drawn, side="right"), len(prior) - 1)
    luck = chance.of("answer", own, turn, chance.worker[worker])
    if grouping is not None:
        chance_alike = chance.of("alike", own, turn, chance.worker[worker])
        common = chance.of("family", own, turn, chance.families(grouping)[worker])
        luck = np.where(chance_alike < np.sqrt(grouping.rho[grouping.number[worker]]), common, luck)
    edges = np.cumsum(means, axis=2)[worker, truth[token], :-1]
    code = (luck[:, None] > edges).sum(axis=1)
    return Answered(token, worker, code, np.eye(len(prior))[truth], prior, labels.n_workers)


def _some(
    labels: _Labels, which: NDArray[np.bool_], chance: _Chance
) -> tuple[Ints, Ints, Ints, Ints]:
    """Take the answers to some tokens, at most `MOST_TOKENS`, and renumber these."""
    kept = np.flatnonzero(which)
    if len(kept) > MOST_TOKENS:
        kept = np.sort(kept[np.argsort(chance.of("token", kept, 0))[:MOST_TOKENS]])
    place = np.full(len(which), -1, np.int64)
    place[kept] = np.arange(len(kept))
    own = place[labels.token] >= 0
    return place[labels.token[own]], labels.worker[own], labels.code[own], kept


@dataclass(frozen=True, eq=False)
class _Chance:
    """Random numbers that belong to ids, so that the order of rows in the input does not matter."""

    seed: int
    item: Keys  # uint64 [n_tokens], the number of every token's item
    place: Keys  # uint64 [n_tokens], the token's place in it
    worker: Keys  # uint64 [n_workers]

    @classmethod
    def on(cls, crowd: Crowd, seed: int) -> _Chance:
        lengths = np.diff(crowd.offsets)
        place = np.arange(crowd.n_tokens) - np.repeat(crowd.offsets[:-1], lengths)
        item = np.repeat(keys_of(crowd.item_ids), lengths)
        return cls(seed, item, place.astype(np.uint64), keys_of(crowd.worker_ids))

    def of(self, purpose: str, token: Ints, turn: Ints | int, *more: Keys) -> Floats:
        """Draw a number per token and turn, and whatever else it belongs to."""
        turns = np.broadcast_to(np.asarray(turn, np.uint64), token.shape)
        return draws(self.seed, purpose, self.item[token], self.place[token], turns, *more)

    def of_workers(self, purpose: str) -> Floats:
        """Draw a number per worker."""
        return draws(self.seed, purpose, self.worker)

    def families(self, grouping: Grouping) -> Keys:
        """Return a number for the family of every worker, uint64 [n_workers]."""
        least = np.full(len(grouping.rho), np.iinfo(np.uint64).max, np.uint64)
        np.minimum.at(least, grouping.number, self.worker)
        return least[grouping.number]


# --------------------------------------------------------------------------------------------------
# The team.


LOSS = 0.01
"""Share of what the best team within the budget adds to the right labels that may be lost."""


@dataclass(frozen=True, eq=False)
class GainSelection(WorkerSelection):
    """Workers who were chosen by what they add to the posterior.

    The attributes are those of `WorkerSelection`, but `scores` are what a worker added to the
    expected posterior of the truth on joining, and `curve` is how often the vote of the first 1, 2,
    … workers is expected to be right, as far as the budget goes.
    """

    # Int64 [n_ranked], all workers that the budget allows, in the order of joining
    ranked: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    # "answers" (given ones, beside the crowd's result) or "tests" (drawn ones)
    evidence: str = "tests"

    @property
    def value(self) -> float:
        """What the team adds to the expected posterior of the truth."""
        return float(self.scores.sum())

    @property
    def accuracy(self) -> float:
        """How often the vote of the team is expected to be right; NaN for an empty one."""
        return float(self.curve[len(self) - 1]) if len(self) else float("nan")

    @property
    def weights(self) -> Floats:
        """What the answers would count in a linear vote, float64 [n_chosen]: L w - 1, times u."""
        found = np.asarray(self.tested.n_labels * self.tested.mean - 1)
        return found if self.share is None else found * self.share

    @property
    def guarantee(self) -> str:
        """What is proved about this choice, in a sentence."""
        if not len(self):
            return "nobody was chosen"
        return "none: workers were added one by one"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        accuracy = self.accuracy if len(self) else None
        more = {"value": self.value, "accuracy": accuracy, "evidence": self.evidence}
        return self._facts("gain", more)

    def _worth(self) -> str:
        """Return a line on what the team is worth."""
        by = "the crowd's answers" if self.evidence == "answers" else "tests"
        return (
            f"Expected by {by}: {100 * self.accuracy:.1f} % of its labels are right, of the best "
            f"team of up to {len(self.curve)} {100 * float(self.curve.max()):.1f} %"
        )


def select_by_gain(
    crowd: Crowd,
    gold: Any = None,
    *,
    result: Consensus | None = None,
    budget: Any,
    prices: Mapping[str, Any] | Sequence[Any] | NDArray[Any] | None = None,
    strategy: str = "selected",
    families: Families | Mapping[str, str] | None = None,
    random_state: int = 0,
) -> GainSelection:
    r"""Choose workers by what their answers are expected to tell, with confusion matrices.

    Without a result the matrices come from the gold, and answers are drawn from them for the places
    where a worker did answer. With a result they come from gold and result together, and the
    answers are those that were given: who can be dropped without a loss of this result. A result
    that tells the gold worse than the tested workers do (sign test, level 0.2) is left aside, and
    a note says so. Tokens count as independent of their neighbours.

    Args:
        crowd: The crowd.
        gold: Known labels as for `measure_reliability`; by default the crowd's own.
        result: A result of `goldspan.aggregate` of this crowd, such as of `ds` or a `bsc` method.
        budget: Workers per item; with `prices` the money per item, in the unit of the prices.
        prices: As for `select_workers`.
        strategy: "selected" (the first in the order of gain whose vote is expected to lose at most
            a hundredth of what the best team within the budget adds), or "top" (as many as the
            budget allows).
        families: Workers who err together, as for `select_workers`.
        random_state: Seed of everything drawn: functions of it and of the ids of items and
            workers, so that the order of rows does not matter.

    Returns:
        The team, in the order in which workers joined; empty where nobody is informative.

    Raises:
        InputError: There is neither gold nor a result, or they, the budget, prices or families do
            not suit the crowd.
        UnknownNameError: Unknown strategy.

    >>> import goldspan
    >>> from goldspan.simulation import draw_truth, simulate_crowd
    >>> crowd = simulate_crowd(draw_truth(60, seed=1), ["flip(0.1) x3", "eve=flip(0.5)"], seed=1)
    >>> team = select_by_gain(crowd, budget=4)
    >>> "eve" in team.worker_ids.to_pylist()
    False
    """
    if strategy not in ("selected", "top"):
        raise UnknownNameError("strategy", strategy, ("selected", "top"))
    labels = _labels(find_truth(crowd, gold, result))
    reliability = measure_reliability(crowd, gold, result)
    prices_known = (
        None if prices is None else read_prices(prices, reliability.worker_ids.to_pylist())
    )
    limit = read_size(budget) if prices_known is None else to_micro(budget, "the budget")
    costs = np.ones(len(reliability), np.int64) if prices_known is None else prices_known
    grouping, chance = (
        grouping_of(families, reliability),
        _Chance.on(labels.truth.crowd, random_state),
    )
    notes: list[str] = []
    is_given = labels.probs is not None
    if is_given and _worse_than_tests(labels):
        is_given = False
        notes.append(
            "The tested workers tell the gold better than the result does: the team was chosen by "
            "tests alone."
        )
        reliability = measure_reliability(crowd, gold)
    counts = labels.counts(labels.probs if is_given and labels.probs is not None else labels.known)
    means, judged = mean_confusions(counts), counts.sum(axis=(1, 2))
    if unknown := int((judged == 0).sum()):
        notes.append(f"{unknown} of {len(judged)} workers cannot be chosen: no judged answer.")
    answered = (
        _answers_as_given(labels, chance)
        if is_given
        else _drawn_answers(labels, means, grouping, chance)
    )
    grown = _order(answered, means, judged, costs, limit, grouping, chance)
    size = len(grown.order)
    if strategy == "selected" and size:
        best = grown.accuracy.max()
        size = int(np.argmax(grown.accuracy >= best - LOSS * (best - grown.accuracy[0])))
    why = _why_nobody(grown, reliability, judged, costs, limit, size, strategy, is_given=is_given)
    index = grown.order[: 0 if why else size]
    return GainSelection(
        tested=reliability.take(index), index=index, scores=grown.gains[: len(index)],
        curve=grown.accuracy[1:], budget=limit,
        price=None if prices_known is None else int(costs[index].sum()),
        ratio=None,
        score="gain", below="negative", strategy=strategy, why_nobody=why, notes=tuple(notes),
        share=None if grouping is None else grouping.take(index).shares(),
        ranked=grown.order, evidence="answers" if is_given else "tests",
    )  # fmt: skip


def _order(
    answered: Answered, means: Floats, judged: Floats, costs: Ints, limit: int,
    grouping: Grouping | None, chance: _Chance,
) -> JoinOrder:  # fmt: skip
    """Let workers join by gain, for money also by gain for it."""
    candidates = np.flatnonzero(judged > 0)
    luck = chance.of_workers("tie")
    found = grow(answered, means, candidates, costs, limit, grouping, luck=luck)
    if len(np.unique(costs)) > 1:
        other = grow(answered, means, candidates, costs, limit, grouping, per_cost=True, luck=luck)
        if other.gains.sum() > found.gains.sum():
            return other
    return found


def _why_nobody(
    grown: JoinOrder, reliability: Reliability, judged: Floats, costs: Ints, limit: int, size: int,
    strategy: str, *, is_given: bool,
) -> str:  # fmt: skip
    """Return why nobody is chosen, "" where somebody is."""
    if not len(judged):
        return "the pool is empty"
    if not (judged > 0).any():
        return "no worker has a judged answer"
    if not len(grown.order):
        cheapest = int(costs[judged > 0].min())
        return (
            "the budget is 0"
            if not limit
            else (
                f"the budget is {from_micro(limit)} and the cheapest candidate costs "
                f"{from_micro(cheapest)}"
            )
        )
    if strategy != "selected":
        return ""
    if not size or grown.gains[:size].sum() <= 0:
        return "no team is expected to be right more often than who knows no answer"
    if is_given:
        return ""
    team = reliability.take(grown.order[:size])
    tested = reliability.take(np.flatnonzero(reliability.total > 0))
    return why_uninformative(tested, grown.gains[:size], team, "posterior", "negative")
