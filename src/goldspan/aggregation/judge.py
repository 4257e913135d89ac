"""Which method to believe, without any gold: predict answers that were hidden.

One worker's answer is hidden on a share of the items, every candidate is fitted on the rest, and is
judged by how probable it makes the hidden labels:

    p(c) = sum_j q(j) A^k(j, c),

q the candidate's probabilities of the true label and A^k the confusion matrix of the hidden worker
k, learned from his other answers under the same candidate and smoothed towards the population's.
A method that runs away from its workers predicts them badly, and so does one that is too sure.
Weights of several candidates are those of the mixture that makes the hidden labels likeliest
(stacking of predictive distributions, Yao et al. 2018; docs/math.md, section 12).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Crowd
from goldspan.crowd.model import Answers

Floats = NDArray[np.float64]
POPULATION = 10.0
"""Labels of a worker beside which the population's confusion matrix counts half."""
TEMPERATURES = (0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6)
"""Tried on every candidate: steps of a factor sqrt(2)."""
ROUNDS = 500
LEAST_WEIGHT = 0.01
"""Candidates with less weight in the mixture are left out."""


def hold_out(
    crowd: Crowd, *, share: float = 0.15, family: NDArray[np.int64] | None = None, seed: int = 0
) -> tuple[Crowd, Answers]:
    """Hide some answers: at most one worker's (with all of his family) on an item.

    Items with a single worker or family keep it: nothing would be left to predict from.

    Args:
        crowd: The answers; of repeated ones the latest counts.
        share: Of all answers, about, that are hidden.
        family: int64 [n_workers], number of every worker's family; by default each is his own.
        seed: Of the choice.

    Returns:
        The crowd without the hidden answers, and these.
    """
    answers = crowd.latest
    rng = np.random.default_rng(seed)
    kin = np.arange(crowd.n_workers) if family is None else family
    n_kin = int(kin.max(initial=0)) + 1
    group, place = np.unique(
        answers.item.astype(np.int64) * n_kin + kin[answers.worker], return_inverse=True
    )
    item = group // n_kin
    n_groups = np.bincount(item, minlength=crowd.n_items)
    # One group of every chosen item: the one with the smallest of random numbers.
    order = np.lexsort((rng.random(len(group)), item))
    first = np.ones(len(order), np.bool_)
    first[1:] = item[order][1:] != item[order][:-1]
    chosen = (rng.random(crowd.n_items) < share * n_groups) & (n_groups >= 2)
    is_hidden = np.zeros(len(group), np.bool_)
    is_hidden[order[first]] = True
    hidden = (is_hidden & chosen[item])[place.ravel()]
    return replace(crowd, answers=answers.take(~hidden)), answers.take(hidden)


@dataclass(frozen=True, eq=False)
class Judged:
    """What the hidden answers say of a candidate.

    Attributes:
        score: Mean log-probability of a hidden label at the best temperature, in nats.
        temperature: Under which the hidden labels are likeliest; above 1 the candidate was too
            sure.
        likelihood: float64 [n_hidden], of every hidden label at that temperature.
    """

    score: float
    temperature: float
    likelihood: Floats


@dataclass(frozen=True)
class Candidate:
    """A row of the table that says what was chosen and why.

    Attributes:
        name: Of the method.
        score: Mean log-probability of a hidden label, in nats, less what the method's drift costs;
            NaN where nothing could be hidden.
        temperature: By which it was too sure; its log-probabilities are divided by it.
        weight: Its share of the mixture.
    """

    name: str
    score: float
    temperature: float
    weight: float


class Judge:
    """Scores candidates by hidden answers.

    Args:
        crowd: The crowd without the hidden answers.
        hidden: The hidden answers.
    """

    def __init__(self, crowd: Crowd, hidden: Answers) -> None:
        base = crowd.offsets[hidden.item] - hidden.offset[:-1]
        token = np.repeat(base, hidden.lengths) + np.arange(hidden.offset[-1])
        given = hidden.codes >= 0
        self.token, self.label = token[given], hidden.codes[given].astype(np.int64)
        self.worker = np.repeat(hidden.worker, hidden.lengths)[given].astype(np.int64)
        self.crowd = crowd

    def __len__(self) -> int:
        """Count the hidden labels."""
        return len(self.token)

    def judge(self, probs: NDArray[Any]) -> Judged:
        """Score a candidate.

        Args:
            probs: float [n_tokens, J], its probabilities of the labels, from the other answers.
        """
        matrices = self._matrices(probs)[self.worker, :, self.label]
        logs = np.log(np.maximum(probs[self.token].astype(np.float64), 1e-12))
        best: Judged | None = None
        for temperature in TEMPERATURES:
            cooled = np.exp(logs / temperature)
            cooled /= cooled.sum(axis=1, keepdims=True)
            likelihood = (cooled * matrices).sum(axis=1)
            score = float(np.log(likelihood).mean()) if len(likelihood) else 0.0
            if best is None or score > best.score:
                best = Judged(score, temperature, likelihood)
        assert best is not None
        return best

    def _matrices(self, probs: NDArray[Any]) -> Floats:
        """Return P(given c | true j) of the workers, float64 [n_workers, J, J]."""
        answers, n_labels = self.crowd.latest, probs.shape[1]
        given = answers.codes >= 0
        token, worker = self.crowd.token_of[given], self.crowd.worker_of[given].astype(np.int64)
        cell = worker * n_labels + answers.codes[given]
        size = self.crowd.n_workers * n_labels
        counts = np.empty((self.crowd.n_workers, n_labels, n_labels))
        for j in range(n_labels):
            found = np.bincount(cell, probs[token, j], size)
            counts[:, j] = found.reshape(-1, n_labels)
        habits = counts.sum(axis=0) + 0.1
        habits /= habits.sum(axis=1, keepdims=True)
        counts += POPULATION * habits
        return counts / counts.sum(axis=2, keepdims=True)


def stack(likelihoods: list[Floats]) -> Floats:
    """Return the weights of the mixture under which the hidden labels are likeliest.

    Args:
        likelihoods: float64 [n_hidden] of every candidate.

    Returns:
        float64 [n_candidates], at least 0, sum 1; equal weights where nothing was hidden.

    >>> stack([np.array([0.9, 0.8]), np.array([0.1, 0.3])]).round(2).tolist()
    [1.0, 0.0]
    """
    every = np.array(likelihoods)
    weights = np.full(len(every), 1 / len(every))
    if every.shape[1] == 0:
        return weights
    for _ in range(ROUNDS):
        shares = weights[:, None] * every
        weights = (shares / shares.sum(axis=0)).mean(axis=1)
    weights = np.where(weights < LEAST_WEIGHT, 0.0, weights)
    return np.asarray(weights / weights.sum())
