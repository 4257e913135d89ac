"""Which of the candidates of `auto` for spans to believe: answers are hidden, and predicted.

Where one cut hides few labels inside of spans there are several; what all cuts say together decides
the weights of the candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation.auto_candidates import (
    BESIDE_TEXT,
    ENOUGH,
    VOTES,
    Beside,
    Case,
    Learned,
    Steps,
    mean_settings,
    probs_of,
)
from goldspan.aggregation.bsc.family import TEXT_MODELS
from goldspan.aggregation.bsc.posterior import Posterior
from goldspan.aggregation.judge import (
    DOUBT,
    Candidate,
    Choice,
    Judge,
    Judged,
    error_of_mean,
    hold_out,
    how_sure,
    weigh,
)
from goldspan.aggregation.machines import ids_of, judged_power
from goldspan.aggregation.mixture import Mixture
from goldspan.crowd import Crowd

MOST_CUTS = 5
"""How often answers are hidden at most, where one cut hides fewer labels than `ENOUGH`."""
ANCHOR = "votes, ties inside"
"""The result where nothing can be judged by. Workers miss spans more often than they invent some,
so a span that one of two workers gave is rather right than not."""
UNSEEN = 2.0
"""Temperature where no answer can be hidden: workers share mistakes there as elsewhere, where the
hidden answers ask for 1.4 to 2.8."""
SETTLED = 0.002
"""Share of its loss by which a candidate must gain for another round."""


def choose(
    case: Case, share: float, rounds: int, seed: int, progress: Steps
) -> tuple[Choice, Learned | None]:
    """Judge all candidates by hidden answers."""
    n_cuts = _n_cuts(case.crowd, share)
    every = [_cut(case, share, rounds, seed + n, progress) for n in range(n_cuts)]
    cuts = [cut for cut in every if len(cut.items)] or every  # where nothing is hidden: nothing
    names = [name for name in cuts[0].judged if all(name in cut.judged for cut in cuts)]
    merged = {name: _joined([cut.judged[name] for cut in cuts]) for name in names}
    items = np.concatenate([cut.items for cut in cuts])
    weights = weigh([merged[name].likelihood for name in names], items, _prior(names))
    if len(items):
        weights = _anchored(names, weights, sum(cut.n_marked for cut in cuts))
    candidates = [
        Candidate(name, one.score, one.temperature if len(items) else UNSEEN, float(weight))
        for name, one, weight in zip(names, merged.values(), weights, strict=True)
    ]
    candidates.sort(key=lambda one: (-one.weight, -one.score))
    last = cuts[-1]
    settings = {
        name: (
            mean_settings([cut.beside[name].teaching for cut in cuts]),
            mean_settings([cut.beside[name].settings for cut in cuts]),
        )
        for name in last.beside
    }
    reasons = tuple(_reasons(case.crowd, candidates, merged, items))
    n_answers = len(case.crowd.latest)
    power = float(np.mean([cut.models_power for cut in cuts]))
    choice = Choice(
        tuple(candidates), n_answers, reasons, settings, last.best, models_power=power,
        models=ids_of(case.others),
    )  # fmt: skip
    return choice, last.learned


def _n_cuts(crowd: Crowd, share: float) -> int:
    """Return how often answers are hidden: small crowds need more hidden labels to judge by."""
    codes = crowd.latest.codes
    inside = (codes >= 0) & (codes != crowd.tagset.outside)
    hidden = share * max(1, int(inside.sum()))
    return int(np.clip(np.ceil(ENOUGH / hidden), 1, MOST_CUTS))


@dataclass(frozen=True, eq=False)
class _Cut:
    """What came of one choice of hidden answers."""

    judged: dict[str, Judged]
    items: NDArray[np.int32]  # [n_hidden], the item of every hidden label
    n_marked: int  # How many of them are of tokens that anybody marked
    beside: Mapping[str, Beside] = field(default_factory=dict)  # The worker models beside the text
    best: str = ""
    learned: Learned | None = None
    models_power: float = 0.0  # Power of what models say


def _cut(case: Case, share: float, rounds: int, seed: int, progress: Steps) -> _Cut:
    """Hide some answers, and judge all candidates by them."""
    family = case.families.number if case.families else None
    shown, hidden = hold_out(case.crowd, share=share, family=family, seed=seed)
    case, judge = replace(case, crowd=shown), Judge(shown, hidden)
    fits = {name: case.fit(name) for name in case.models}
    posteriors = {name: fit.posterior for name, fit in fits.items()} | case.votes()
    judged = {name: judge.judge(probs_of(post)) for name, post in posteriors.items()}
    cut = _Cut(judged, judge.item, judge.n_marked)
    best = max((n for n in fits if fits[n].is_chain), key=lambda name: judged[name].score)
    progress.tell(judged[best].score)
    folds = case.folds
    if folds is None:
        return _with_models(cut, case, fits[best].posterior, judge)
    chains = [name for name in fits if fits[name].is_chain]
    alone = np.array([float(name == best) for name in chains])  # where nothing is hidden
    shares = weigh([judged[n].likelihood for n in chains], judge.item, alone)
    # Of one model that sees spans everywhere all CRFs would learn to.
    mixed = Mixture([fits[name].posterior for name in chains], shares, shown.tagset)
    labels = folds.soft_labels(mixed)
    beside = {name: Beside.of(fits[name]) for name in BESIDE_TEXT}
    learned: Learned | None = None
    last = -np.inf
    for _ in range(rounds):
        learned = case.learn(folds, labels, learned)
        text, runner = learned.text, case.context.runner
        beside = {name: one.fitted(text, judge, runner) for name, one in beside.items()}
        found = {
            case.beside_name(name): judge.judge(probs_of(one.posterior))
            for name, one in beside.items()
        }
        best = max(beside, key=lambda name: found[case.beside_name(name)].score)
        score = found[case.beside_name(best)].score
        progress.tell(score)
        if score <= last:
            break
        has_settled, last = score - last < SETTLED * -score, score
        labels = folds.soft_labels(case.completed(beside[best].lesson))
        judged |= found
        cut = replace(cut, judged=judged, beside=dict(beside), best=best, learned=learned)
        if has_settled:
            break
    return _with_models(cut, case, cut.beside[cut.best].posterior, judge)


def _with_models(cut: _Cut, case: Case, posterior: Posterior, judge: Judge) -> _Cut:
    """Judge what the answers of models are worth beside the best candidate."""
    if case.others is None:
        return cut
    return replace(cut, models_power=judged_power(posterior, case.others, judge))


# --------------------------------------------------------------------------------------------------
# What all cuts say together.


def _joined(every: Sequence[Judged]) -> Judged:
    """Return what several choices of hidden answers say of a candidate together."""
    likelihood = np.concatenate([one.likelihood for one in every])
    temperature = float(np.exp(np.mean([np.log(one.temperature) for one in every])))
    score = float(np.log(likelihood).mean()) if len(likelihood) else 0.0
    return Judged(score, temperature, likelihood)


def _prior(names: Sequence[str]) -> NDArray[np.float64]:
    """Return the weights of the candidates before any answer was hidden."""
    # With a single answer per item workers cannot be compared
    beside_text = [(f"bsc-mace+{text}", f"bsc-cm+{text}") for text in TEXT_MODELS]
    for group in (*beside_text, (*VOTES, "bsc-mace")):
        if set(group) <= set(names):
            return np.array([float(name in group) for name in names]) / len(group)
    return np.full(len(names), 1 / len(names))


def _anchored(
    names: Sequence[str], weights: NDArray[np.float64], n_marked: int
) -> NDArray[np.float64]:
    """Give the anchor the weight that a judge of so few labels has not earned.

    >>> _anchored([ANCHOR, "ds"], np.array([0.2, 0.8]), 50).tolist()
    [0.6, 0.4]
    """
    trust = n_marked / (n_marked + DOUBT)
    anchor = np.array([float(name == ANCHOR) for name in names])
    return np.asarray((1 - trust) * anchor + trust * weights)


def _reasons(
    crowd: Crowd,
    candidates: Sequence[Candidate],
    merged: Mapping[str, Judged],
    items: NDArray[np.int32],
) -> list[str]:
    """Say how much better than votes the best of the others predicts."""
    if not len(items):
        who = "two workers"
        if (np.diff(crowd.by_item.bounds) > 1).any():  # all of one family
            who = "two workers who err independently"
        return [f"no item has answers of {who}: nothing could be judged, a prior decided"]
    first = next(one.name for one in candidates if one.name not in VOTES)
    votes = max(VOTES, key=lambda name: merged[name].score)
    ahead = np.log(merged[first].likelihood) - np.log(merged[votes].likelihood)
    found, place = np.unique(items, return_inverse=True)
    error = error_of_mean(ahead, place.ravel())
    return [how_sure(first, float(ahead.mean()), error, len(items), len(found))]
