"""The method for single labels that nobody has to think about: a mixture, judged by hidden answers.

Nine methods of three kinds (votes, one accuracy per worker, confusion matrices) are fitted on the
crowd, and again with some answers hidden. What counts of each is how probable it makes the hidden
answers (`goldspan.aggregation.judge`), less its drift: the divergence of its shares of labels from
those of the answers, for methods that run away give some labels up. The result is the mixture

    p(j) = sum_m w_m q_m(j)^(1/T_mi) / Z,    w_m ~ exp(score_m / PATIENCE),

in which a method that is a little worse keeps nearly the weight of the best: scores find disasters
and do not order good methods finely. The temperature T_mi of a method on item i is the judge's, but
at least 1 + (n_i - 1) rho_m, the design effect of n_i answers whose errors are correlated. Where
few labels could be hidden, votes have the weight that the scores do not earn.

Workers who err together (`goldspan.aggregation.families`) count as fewer in all methods, and their
answers are hidden together. A large family may be those who know more than the others, whom no
pairwise agreement tells from those who err together: families that are neither copies nor give half
of the answers to their items are believed only if all candidates, fitted without them too, predict
the hidden answers clearly worse so (`goldspan.aggregation.families.Families.opinions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from goldspan.aggregation.base import FitContext
from goldspan.aggregation.families import Families
from goldspan.aggregation.judge import (
    DOUBT,
    Candidate,
    Choice,
    Judge,
    Judged,
    error_of_mean,
    hold_out,
    how_sure,
)
from goldspan.aggregation.machines import likelihoods_beside, mean_power, with_models
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
CORRELATED = 0.05
"""Least correlation of the errors of two workers on an item: items are not equally hard."""
PATIENCE = 0.04
"""Nats per hidden label by which a method is behind when its weight is 1/e of the best one's."""
MOST_CELLS = 10_000_000
"""Cells of the workers' confusion matrices beyond which candidates with such are left out: labels
are so many then that nobody gave most of them."""
HABIT = 10.0
"""Labels of a worker beside which the population's confusion matrix counts half."""


@dataclass(frozen=True, eq=False)
class AutoLabels:
    """What `combine_labels` found."""

    probs: Floats  # [n_items, J], probabilities of the labels; 0 where nothing is known
    candidates: list[Candidate]  # The methods, the heaviest first
    reasons: tuple[str, ...]  # How sure the choice is, and what was left out, in sentences
    is_bold: bool = False  # Whether the first of two opinions of who errs together was believed
    models_power: float = 0.0  # Power of what models say beside people; 0 without models

    @property
    def certainty(self) -> str:
        """How sure the choice is, in a sentence."""
        return self.reasons[0]


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
    n_labels, why = len(crowd.tagset.tags), _nothing_to_hide(crowd, opinions[0])
    if why:
        token_labels = TokenLabels.of(crowd, families=opinions[-1])
        lone = Candidate(VOTES, 0.0, 1.0, 1.0)
        probs = _clamped(_shares_of_votes(token_labels), token_labels.per_token(None), context)
        power = mean_power([], np.zeros(0, np.int32)) if models else 0.0
        return AutoLabels(
            with_models(probs, models, power),
            [lone],
            (f"{why}, so that nothing can be predicted: votes decide",),
            models_power=power,
        )
    specs, reasons = _specs(crowd.n_workers, n_labels)
    known = {one.name: one for one in choice.candidates} if choice else {}
    if choice and {spec.label for spec in specs} == set(known):
        table, is_bold = [known[spec.label] for spec in specs], choice.is_bold
        reasons = list(choice.reasons) or [""]
        believed = opinions[0 if is_bold else -1]
        whole = [_fit(spec, crowd, context, believed) for spec in specs]
        power = choice.models_power
    else:
        tried = [
            _tried(crowd, context, specs, random_state, one, opinions[0], models)
            for one in opinions
        ]
        is_bold = len(tried) > 1 and (tried[0].merits.max() >= tried[-1].merits.max() + PATIENCE)
        best = tried[0 if is_bold else -1]
        table, certainty = best.table(specs)
        whole, believed = best.whole, best.families
        power = best.power([one.weight for one in table]) if models else 0.0
        reasons.insert(0, certainty)
    token_labels = TokenLabels.of(crowd, families=believed)
    answers_of = token_labels.per_token(None)
    mixed = np.zeros_like(whole[0])
    for spec, probs, one in zip(specs, whole, table, strict=True):
        excess = max(_correlation(token_labels, probs), CORRELATED) if spec.is_posterior else 0.0
        effect = 1 + np.maximum(answers_of - 1, 0) * excess
        mixed += one.weight * _cooled(probs, np.maximum(one.temperature, effect))
    table.sort(key=lambda one: -one.weight)
    probs = with_models(_clamped(mixed, answers_of, context), models, power)
    return AutoLabels(probs, table, tuple(reasons), is_bold, power)


def _nothing_to_hide(crowd: Crowd, families: Families | None) -> str:
    """Return why no answer can be hidden, "" if some can."""
    if len(crowd.tagset.tags) < 2:
        return "There is one label only"
    token_labels = TokenLabels.of(crowd)
    if token_labels.per_token(None).max(initial=0) < 2:
        return "No item has two answers"
    if families:
        size = len(families.rho)
        own = np.unique(token_labels.token * size + families.number[token_labels.worker]) // size
        if np.bincount(own).max() < 2:
            return "No item has answers of two workers who err independently"
    return ""


@dataclass(frozen=True, eq=False)
class _Tried:
    """All candidates under one opinion of who errs together."""

    families: Families | None
    whole: list[Floats]  # The candidates' probabilities from all answers
    judged: list[list[Judged]]  # What the hidden answers say of each, fold by fold
    scores: Floats  # [n_candidates], mean log-probability of the hidden labels
    merits: Floats  # [n_candidates], the means over the folds less what drift costs
    items: NDArray[np.int32]  # [n_hidden], the item of every hidden label
    beside: list[list[Floats]]  # Of every candidate, fold by fold, float64 [n_powers, n_hidden]

    def power(self, weights: Sequence[float]) -> float:
        """Return the power of the models' evidence, by the candidates' weights."""
        if not len(self.items):
            return mean_power([], self.items)
        every = np.stack([np.concatenate(own, axis=1) for own in self.beside])
        return mean_power([*np.tensordot(np.array(weights), every, axes=1)], self.items)

    def table(self, specs: list[_Spec]) -> tuple[list[Candidate], str]:
        """Return what the hidden answers say of every candidate, and how sure that is."""
        trust = len(self.items) / (len(self.items) + DOUBT)
        weights = np.exp((self.merits - self.merits.max()) / PATIENCE)
        weights *= trust / weights.sum()
        weights[0] += 1 - trust
        heat = [
            float(np.exp(np.mean([np.log(one.temperature) for one in found] or [0.0])))
            for found in self.judged
        ]
        table = [
            Candidate(spec.label, float(score), temperature, float(weight))
            for spec, score, temperature, weight in zip(
                specs, self.scores, heat, weights, strict=True
            )
        ]
        order = np.argsort(-weights, kind="stable").tolist()
        return table, _certainty(specs, self.judged, order, self.items)


def _tried(
    crowd: Crowd, context: FitContext, specs: list[_Spec], seed: int, families: Families | None,
    hidden_together: Families | None, models: Crowd | None,
) -> _Tried:  # fmt: skip
    """Fit and judge all candidates."""
    token_labels = TokenLabels.of(crowd, families=families)
    whole = [_fit(spec, crowd, context, families) for spec in specs]
    judged, items, beside = _judge(crowd, context, specs, seed, families, hidden_together, models)
    counts = np.maximum(token_labels.per_token(None), 1)[:, None]
    reference = _balance(token_labels.sums() / counts)
    logs = [
        np.log(np.concatenate([np.ones(0), *(one.likelihood for one in found)])) for found in judged
    ]
    scores = [float(one.mean()) if len(one) else 0.0 for one in logs]
    drift = np.array([_divergence(_balance(probs), reference) for probs in whole])
    merits = np.array([np.mean([one.score for one in found] or [0.0]) for found in judged])
    merits -= DRIFT * drift * _unexcused(np.array(logs), drift, items)
    return _Tried(families, whole, judged, np.array(scores), merits, items, beside)


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
    if not spec.method:
        return _shares_of_votes(token_labels)
    from goldspan.aggregation import get_aggregator

    aggregator = get_aggregator(spec.method, families=families or "none", **spec.params)
    fresh = FitContext(known=context.known, runner=context.runner)
    found = aggregator._aggregate(crowd, fresh)  # noqa: SLF001 - known truth is already in codes
    probs = found.token_probs.astype(np.float64)
    if spec.is_posterior:
        return probs
    counts = token_labels.per_token(None)[:, None]
    return np.asarray((counts * probs + SMOOTHING / probs.shape[1]) / (counts + SMOOTHING))


def _shares_of_votes(token_labels: TokenLabels) -> Floats:
    votes = token_labels.sums() + SMOOTHING / token_labels.shape[2]
    return np.asarray(votes / votes.sum(axis=1, keepdims=True))


# --------------------------------------------------------------------------------------------------
# Evidence for and against a candidate.


def _judge(
    crowd: Crowd, context: FitContext, specs: list[_Spec], seed: int, families: Families | None,
    hidden_together: Families | None, models: Crowd | None,
) -> tuple[list[list[Judged]], NDArray[np.int32], list[list[Floats]]]:  # fmt: skip
    """Judge every candidate on every fold, also beside models; and return the hidden items."""
    found: list[list[Judged]] = [[] for _ in specs]
    beside: list[list[Floats]] = [[] for _ in specs]
    items: list[NDArray[np.int32]] = []
    family = hidden_together.number if hidden_together else None
    for fold in range(MOST_FOLDS):
        rest, hidden = hold_out(crowd, share=SHARE, family=family, seed=seed + fold)
        judge = Judge(rest, hidden)
        items.append(judge.item)
        for own, added, spec in zip(found, beside, specs, strict=True):
            if len(judge):
                probs = _fit(spec, rest, context, families)
                own.append(judge.judge(probs))
                if models is not None:
                    added.append(likelihoods_beside(probs, models, judge))
        if fold + 1 >= FOLDS and sum(map(len, items)) >= ENOUGH:
            break
    return found, np.concatenate(items), beside


def _balance(probs: Floats) -> Floats:
    """Return the shares of the labels, of which each counts one item more."""
    shares = probs.sum(axis=0) + 1
    return np.asarray(shares / shares.sum())


def _divergence(shares: Floats, reference: Floats) -> float:
    return float((shares * np.log(shares / reference)).sum())


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


def _correlation(token_labels: TokenLabels, probs: Floats) -> float:
    """Return the correlation of being right between two workers on the same item."""
    # Right is the label that the candidate finds likeliest
    _, n_workers, n_labels = token_labels.shape
    truth = probs.argmax(axis=1)[token_labels.token]
    right = (token_labels.label == truth).astype(np.float64)
    cell = token_labels.worker.astype(np.int64) * n_labels + truth
    hits, counts = (np.bincount(cell, x, n_workers * n_labels) for x in (right, None))
    every = np.bincount(truth, right, n_labels) + 0.5
    habit = np.tile(every / (np.bincount(truth, minlength=n_labels) + 1), n_workers)
    expected = ((hits + HABIT * habit) / (counts + HABIT))[cell]
    rest, variance = right - expected, expected * (1 - expected)
    pairs = token_labels.per_token(rest) ** 2 - token_labels.per_token(rest**2)
    most = token_labels.per_token(np.sqrt(variance)) ** 2 - token_labels.per_token(variance)
    return float(pairs.sum() / most.sum()) if most.sum() > 0 else 0.0


# --------------------------------------------------------------------------------------------------
# The result.


def _cooled(probs: Floats, temperature: Floats) -> Floats:
    """Divide log-probabilities by temperatures [n_items] and normalise."""
    return softmax(np.log(np.maximum(probs, 1e-12)) / temperature[:, None])


def _clamped(probs: Floats, answers_of: Floats, context: FitContext) -> Floats:
    """Know nothing of items without answers, and be sure of what is known."""
    found = np.where(answers_of[:, None] > 0, probs, 0.0)
    if context.known is not None:
        there = np.flatnonzero(context.known >= 0)
        found[there] = 0
        found[there, context.known[there]] = 1
    return found


def _certainty(
    specs: list[_Spec], judged: list[list[Judged]], order: list[int], items: NDArray[np.int32]
) -> str:
    """Say by how much the heaviest candidate predicts better than votes."""
    first = order[0]
    if specs[first].label == VOTES:
        first = order[1]
    if not len(items):
        return "No answer could be hidden: votes decide"
    likelihood = [np.concatenate([one.likelihood for one in judged[m]]) for m in (first, 0)]
    ahead = np.log(likelihood[0]) - np.log(likelihood[1])
    found, place = np.unique(items, return_inverse=True)
    error = error_of_mean(ahead, place.ravel())
    return how_sure(specs[first].label, float(ahead.mean()), error, len(items), len(found))
