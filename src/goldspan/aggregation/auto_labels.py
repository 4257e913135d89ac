"""The method for single labels that nobody has to think about: a mixture, judged by hidden answers.

Nine methods of three kinds (votes, one accuracy per worker, confusion matrices) are fitted on the
crowd, and again with some answers hidden. What counts of each is how probable it makes the hidden
answers (`goldspan.aggregation.judge`), less its drift: the divergence of its shares of labels from
those of the answers, for methods that run away give some labels up. The result is the mixture

    p(j) = sum_m w_m q_m(j)^(1/T_mi) / Z,    w_m ~ exp(-(u* - u_m) / (e_m + TELLING |l*|)),

u_m the mean log-probability of the hidden answers less what drift costs, l* that of the best
method, and e_m the standard error of the difference. The temperature T_mi of a method on item i is
the judge's, but at least 1 + (n_i - 1) CORRELATED, the design effect of n_i answers whose errors
are correlated. Where few labels could be hidden, votes have the weight that the others do not earn.

Workers who err together (`goldspan.aggregation.families`) count as fewer in all methods, and their
answers are hidden together. A large family may be those who know more than the others, whom no
pairwise agreement tells from those who err together: families that are neither copies nor give
half of the answers to their items are believed only if the best method predicts the hidden answers
clearly better with them than without (`goldspan.aggregation.families.Families.opinions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import ndtr

from goldspan.aggregation.base import FitContext
from goldspan.aggregation.families import Families
from goldspan.aggregation.judge import (
    DOUBT,
    LEAST_PROB,
    LOOK_AT,
    TELLING,
    Candidate,
    Choice,
    Judge,
    choice_words,
    error_of_mean,
    hold_out,
    weigh,
)
from goldspan.aggregation.machines import beside_labels, evidence, likelihoods_beside, mean_power
from goldspan.aggregation.weighted import TokenLabels, softmax
from goldspan.crowd import Crowd

Floats = NDArray[np.float64]
VOTES = "votes"
SMOOTHING = 0.5
"""Votes shared among all labels of an item, beside those that were given."""
SHARE = 0.2
"""Of the answers, about, that a fold hides."""
FOLDS = 2
MOST_FOLDS = 6
ENOUGH = 2_000
"""Hidden labels beyond which there are no more folds than `FOLDS`."""
DRIFT = 0.7
"""What a nat of drift costs per hidden label. More protects real crowds, in which methods give rare
labels up, and costs accuracy where workers really leave a label out; 0.5 to 2 do about as well."""
CERTAIN = 1.0
"""Standard errors by which a method predicts better than all that drift less, when half of that is
forgiven: true shares may differ from those of the answers. 0 to 2 do about as well."""
CORRELATED = 0.1
"""Correlation of the errors of two workers on an item, for items are not equally hard. 0 to 0.2
give as many right labels, and an estimate from the answers does no better."""
MOST_CELLS = 10_000_000
"""Cells of the workers' confusion matrices beyond which candidates with such are left out: labels
are so many then that nobody gave most of them."""


@dataclass(frozen=True, eq=False)
class AutoLabels:
    """What `combine_labels` found."""

    probs: Floats  # [n_items, J], probabilities of the labels; 0 where nothing is known
    candidates: list[Candidate]  # The methods, the heaviest first
    reasons: tuple[str, ...]  # What was tried, where to look, and what was left out, in sentences
    is_bold: bool = False  # Whether the first of two opinions of who errs together was believed
    models_power: float = 0.0  # Power of what models say beside people; 0 without models


def combine_labels(
    crowd: Crowd,  # A crowd of single labels with at least one answer; its gold is not looked at
    context: FitContext,  # Known truth is clamped; the runner is used
    random_state: int,  # Seed of the answers that are hidden
    opinions: Sequence[Families | None] = (None,),  # Workers who err together
    choice: Choice | None = None,  # An earlier one
    models: Crowd | None = None,  # Answers of models, which are not in the crowd
) -> AutoLabels:
    r"""Combine methods for single labels by how well they predict hidden answers.

    Where every item has one answer nothing can be hidden, and votes decide alone: no method could
    know better.

    >>> from goldspan import read_crowd
    >>> crowd = read_crowd(b"task,worker,label\n1,a,x\n1,b,x\n1,c,y\n2,a,y\n2,b,y\n2,c,x\n")
    >>> combine_labels(crowd, FitContext(), 0).probs.argmax(axis=1).tolist()
    [0, 1]
    """
    specs, left_out = _specs(crowd.n_workers, len(crowd.tagset.tags))
    judged = {one.name: one for one in choice.candidates} if choice else {}
    if choice and {spec.label for spec in specs} == set(judged):
        is_bold, power = choice.is_bold, choice.models_power
        believed = opinions[0 if is_bold else -1]
        whole = [_fit(spec, crowd, context, believed) for spec in specs]
        table = [judged[spec.label] for spec in specs]
    elif cuts := _hide(crowd, random_state, opinions[0]):
        tried = [_judge(crowd, context, specs, cuts, one) for one in opinions]
        is_bold = len(tried) > 1 and tried[0].is_clearly_better(tried[-1])
        best = tried[0 if is_bold else -1]
        believed, whole, table = best.families, best.whole, best.table
        power = best.power(models, cuts) if models else 0.0
    else:
        is_bold, believed, specs, left_out = False, opinions[-1], specs[:1], []
        whole = [_fit(specs[0], crowd, context, believed)]
        table = [Candidate(VOTES, 0.0, 1.0, 1.0)]
        power = mean_power([], np.zeros(0, np.int32)) if models else 0.0
    answers_of = TokenLabels.of(crowd, families=believed).per_token(None)
    effect = 1 + CORRELATED * np.maximum(answers_of - 1, 0)
    mixed = np.zeros_like(whole[0])
    for spec, probs, one in zip(specs, whole, table, strict=True):
        heat = np.maximum(one.temperature, effect * spec.is_posterior)
        mixed += one.weight * softmax(np.log(np.maximum(probs, LEAST_PROB)) / heat[:, None])
    mixed[answers_of == 0] = 0
    known = np.full(len(mixed), -1) if context.known is None else context.known
    mixed[known >= 0] = np.eye(mixed.shape[1])[known[known >= 0]]
    open_ = np.flatnonzero((answers_of > 0) & (known < 0))
    reasons = [_words(crowd, table, whole, mixed, open_), *left_out]
    table = sorted(table, key=lambda one: -one.weight)
    if models:
        mixed = beside_labels(mixed, evidence(models, mixed), power)
    return AutoLabels(mixed, table, tuple(reasons), is_bold, power)


def _words(
    crowd: Crowd, table: list[Candidate], whole: list[Floats], probs: Floats,
    items: NDArray[np.intp],  # Those that were decided
) -> str:  # fmt: skip
    """Say what was tried, and name the least certain of the items on which methods disagree."""
    if len(crowd.tagset.tags) == 1:
        return "there is one label only"
    if len(table) == 1:
        return "no item has answers of two workers who err independently: votes decide"
    labels = np.array([one[items].argmax(axis=1) for one in whole])
    contested = items[(labels != labels[0]).any(axis=0)]
    first = contested[np.argsort(probs[contested].max(axis=1), kind="stable")[:LOOK_AT]]
    names = crowd.item_ids.take(pa.array(first)).to_pylist()
    tried = sorted(table, key=lambda one: -one.weight)
    return choice_words(tried, 1 - len(contested) / max(1, len(items)), names)


# --------------------------------------------------------------------------------------------------
# The candidates: three by votes, three by one accuracy per worker, three by confusion matrices.


@dataclass(frozen=True)
class _Spec:
    """A candidate: what it is called, the method, its parameters, and what it gives."""

    label: str
    method: str
    params: dict[str, Any]
    is_posterior: bool = True


def _specs(n_workers: int, n_labels: int) -> tuple[list[_Spec], list[str]]:
    """Return the candidates, and what is said of those that were left out."""
    weak = max(0.1, 1 / n_labels)
    specs = [
        _Spec(VOTES, "", {}, is_posterior=False),
        _Spec("wawa", "wawa", {}, is_posterior=False),
        _Spec("zbs", "zbs", {}, is_posterior=False),
        _Spec("wmv-log", "wmv-log", {}),
        _Spec("one-coin", "one-coin", {}),
        _Spec("glad", "glad", {"max_iter": 30}),
        _Spec("ds", "ds", {}),
        _Spec(f"ds, alpha0={weak:.2g}", "ds", {"alpha0": weak}),
        _Spec("mace", "mace", {"n_starts": 1}),
    ]
    if n_workers * n_labels**2 <= MOST_CELLS:
        return specs, []
    why = f"{n_workers} workers with {n_labels} labels have too many habits to be learned"
    return [one for one in specs if one.method != "ds"], [f"ds was left out: {why}"]


def _fit(spec: _Spec, crowd: Crowd, context: FitContext, families: Families | None) -> Floats:
    """Return a candidate's probabilities, float64 [n_items, J]; shares of votes are smoothed."""
    token_labels = TokenLabels.of(crowd, families=families)
    counts = token_labels.per_token(None)[:, None]
    sums = token_labels.sums()
    if spec.method:
        from goldspan.aggregation import get_aggregator

        aggregator = get_aggregator(spec.method, families=families or "none", **spec.params)
        fresh = FitContext(known=context.known, runner=context.runner)
        found = aggregator._aggregate(crowd, fresh)  # noqa: SLF001 - known truth is in codes
        probs = found.token_probs.astype(np.float64)
        if spec.is_posterior:
            return probs
        sums = counts * probs
    return np.asarray((sums + SMOOTHING / sums.shape[1]) / (counts + SMOOTHING))


# --------------------------------------------------------------------------------------------------
# Evidence for and against a candidate.

_Cut = tuple[Crowd, Judge]
"""The answers that are shown, and the judge who knows the others."""


def _hide(crowd: Crowd, seed: int, families: Families | None) -> list[_Cut]:
    """Hide some answers, several times; none where nothing could be compared."""
    cuts: list[_Cut] = []
    if len(crowd.tagset.tags) < 2:
        return cuts
    family = families.number if families else None
    for fold in range(MOST_FOLDS):
        rest, hidden = hold_out(crowd, share=SHARE, family=family, seed=seed + fold)
        judge = Judge(rest, hidden)
        cuts += [(rest, judge)] if len(judge) else []
        if fold + 1 >= FOLDS and sum(len(judge) for _, judge in cuts) >= ENOUGH:
            break
    return cuts


@dataclass(frozen=True, eq=False)
class _Judged:
    """All candidates under one opinion of who errs together."""

    families: Families | None
    whole: list[Floats]  # The candidates' probabilities from all answers
    shown: list[list[Floats]]  # And from those that are shown, cut by cut
    table: list[Candidate]
    items: NDArray[np.int32]  # [n_hidden], the item of every hidden label
    best: Floats  # [n_hidden], log-probability under the best candidate less what its drift costs

    def is_clearly_better(self, other: _Judged) -> bool:
        """Return whether the best candidate predicts hidden answers clearly better."""
        ahead = self.best - other.best
        place = np.unique(self.items, return_inverse=True)[1]
        return bool(ahead.mean() >= error_of_mean(ahead, place) - TELLING * other.best.mean())

    def power(self, models: Crowd, cuts: list[_Cut]) -> float:
        """Return the power of the models' evidence with which hidden answers are likeliest."""
        weights = np.array([one.weight for one in self.table])
        every = [
            likelihoods_beside(np.tensordot(weights, own, axes=1), models, judge)
            for own, (_, judge) in zip(self.shown, cuts, strict=True)
        ]
        return mean_power([*np.concatenate(every, axis=1)], self.items)


def _judge(
    crowd: Crowd, context: FitContext, specs: list[_Spec], cuts: list[_Cut],
    families: Families | None,
) -> _Judged:  # fmt: skip
    """Fit all candidates to all answers and to those that are shown, and weigh them."""
    whole = [_fit(spec, crowd, context, families) for spec in specs]
    shown = [[_fit(spec, rest, context, families) for spec in specs] for rest, _ in cuts]
    found = [[judge.judge(q) for q in own] for (_, judge), own in zip(cuts, shown, strict=True)]
    likelihood = np.concatenate([[one.likelihood for one in own] for own in found], axis=1)
    heat = np.exp(np.log([[one.temperature for one in own] for own in found]).mean(axis=0))
    items, logs = np.concatenate([judge.item for _, judge in cuts]), np.log(likelihood)
    token_labels = TokenLabels.of(crowd, families=families)
    counts = np.maximum(token_labels.per_token(None), 1)[:, None]
    shares, reference = _balances(whole), _balances([token_labels.sums() / counts])
    drift = (shares * np.log(shares / reference)).sum(axis=1)
    cost = DRIFT * drift * _unexcused(logs, drift, items)
    votes = np.eye(len(specs))[0]
    weights = len(items) * weigh(list(likelihood), items, votes, cost) + DOUBT * votes
    weights /= len(items) + DOUBT
    scores = logs.mean(axis=1)
    numbers = zip(scores.tolist(), heat.tolist(), weights.tolist(), strict=True)
    table = [Candidate(spec.label, *own) for spec, own in zip(specs, numbers, strict=True)]
    best = int((scores - cost).argmax())
    return _Judged(families, whole, shown, table, items, logs[best] - cost[best])


def _balances(whole: list[Floats]) -> Floats:
    """Return the shares of the labels, of which each counts one item more, float64 [n, J]."""
    shares = np.array([probs.sum(axis=0) + 1 for probs in whole])
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _unexcused(logs: Floats, drift: Floats, items: NDArray[np.int32]) -> Floats:
    """Return which share of every candidate's drift counts, float64 [n_candidates]."""
    # logs float64 [n_candidates, n_hidden]; drift float64 [n_candidates]; items int32 [n_hidden]
    found, means = np.ones(len(drift)), logs.sum(axis=1) / max(len(items), 1)
    place = np.unique(items, return_inverse=True)[1].ravel()
    for m in range(len(drift)):
        less = np.flatnonzero(drift < drift[m])
        if len(less):
            ahead = logs[m] - logs[less[means[less].argmax()]]
            error = error_of_mean(ahead, place)
            found[m] = ndtr(CERTAIN - ahead.mean() / error) if error > 0 else 1.0
    return found
