"""Workers who err on the same items: drawing their abilities and the items' difficulty.

Independent mistakes cancel out in a vote; shared ones do not. Worker k is right on item i, whose
true label is c, with the log-odds

    ability_k + twist_kc - difficulty_i,
    ability_k ~ N(m, s_ability²), twist_kc ~ N(mean_c, s_twist²), difficulty_i ~ N(0, s_item²),

a Rasch model whose workers know some labels better than others (Rasch 1960, "Probabilistic Models
for Some Intelligence and Attainment Tests"). Some items mislead: workers take another label for the
true one and give it with the chance above; items whose gold is wrong look so. The spreads have
half-normal priors, the means normal ones, the share of misleading items a Beta one. Everything is
drawn by Gibbs and Metropolis steps, a whole block of independent parameters at once, by shifts of
workers against items, along which answers tell nothing, and by stretching the items' difficulty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SPREAD = {"ability": 1.5, "twist": 1.0, "difficulty": 1.5}
"""Scales of the half-normal priors of the spreads, in log-odds."""
MEAN_ABILITY, MEAN_TWIST = 3.0, 1.5
"""Standard deviations of the normal priors of the means."""
MISLEADING = (1.0, 19.0)
"""Beta prior of the share of items that mislead."""
INFORMATION = 0.18
"""Of an answer about its log-odds, about: sets the size of the steps."""


@dataclass(frozen=True, eq=False)
class JudgedAnswers:
    """Answers to items with gold.

    Attributes:
        worker: int64 [n_answers].
        item: int64 [n_answers].
        right: bool [n_answers].
        label: int64 [n_items], the true labels.
        n_workers: Number of workers, those without any answer among them.
        n_labels: Number of labels.
    """

    worker: NDArray[np.int64]
    item: NDArray[np.int64]
    right: NDArray[np.bool_]
    label: NDArray[np.int64]
    n_workers: int
    n_labels: int


class Block:
    """Parameters of one kind, which are independent given all others."""

    def __init__(self, kind: str, group: NDArray[np.int64], size: int, sign: int) -> None:
        self.group, self.sign, self.scale = group, sign, SPREAD[kind]
        self.value, self.mean, self.spread = np.zeros(size), np.zeros(size), self.scale / 2
        self.count = np.bincount(group, minlength=size)

    def log_prior(self, step: NDArray[np.float64] | float = 0.0) -> NDArray[np.float64]:
        """Give the log density of every parameter, moved by a step, less a constant."""
        away = self.value + step - self.mean
        return np.asarray(-(away**2) / (2 * self.spread**2))

    def draw_spread(self, rng: np.random.Generator) -> None:
        """Draw the spread given the parameters, by a step on its logarithm."""
        n, squares = len(self.value), float(((self.value - self.mean) ** 2).sum())

        def log_density(spread: float) -> float:
            prior = -(spread**2) / (2 * self.scale**2)
            return float(prior - (n - 1) * np.log(spread) - squares / (2 * spread**2))

        other = self.spread * np.exp(rng.normal(scale=0.5 / np.sqrt(0.3 + n / 10)))
        if np.log(rng.random()) < log_density(other) - log_density(self.spread):
            self.spread = float(other)


class Sampler:
    """A Markov chain over all parameters of the model; `sweep` moves every one of them."""

    def __init__(self, answers: JudgedAnswers, rng: np.random.Generator) -> None:
        self.answers, self.rng = answers, rng
        n_labels, n_workers = answers.n_labels, answers.n_workers
        true = answers.label[answers.item]
        cell = answers.worker * n_labels + true
        self.ability = Block("ability", answers.worker, n_workers, 1)
        self.twist = Block("twist", cell, n_workers * n_labels, 1)
        self.difficulty = Block("difficulty", answers.item, len(answers.label), -1)
        self.ability.value[:] = 1.0
        self.log_odds = np.ones(len(answers.right))
        self.misleading = MISLEADING[0] / sum(MISLEADING)
        self.misled = np.zeros(len(answers.label), np.bool_)
        self._against = np.where(answers.right, -1.0, 1.0)
        self._likelihood = self._log_likelihood(self.log_odds, self.misled)

    def sweep(self) -> None:
        """Move every parameter."""
        for _ in range(2):
            for block in (self.ability, self.difficulty, self.twist):
                self._move(block)
        self._stretch()
        self._shift()
        self._shift_by_label()
        self._draw_means()
        self._turn(fresh=False)
        self._turn(fresh=True)
        self._draw_misleading()
        for block in (self.ability, self.difficulty, self.twist):
            block.draw_spread(self.rng)

    @property
    def label_means(self) -> NDArray[np.float64]:
        """Mean twist of every label, float64 [n_labels]."""
        return self.twist.mean[: self.answers.n_labels]

    def _log_likelihood(
        self, log_odds: NDArray[np.float64], misled: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Give the log-likelihood of every answer, float64 [n_answers].

        Where an item misleads, another label is given with the chance of the right one, and the
        right one as often as any wrong one else.
        """
        # Quicker than log1p, which is more exact only where this is nearly 0.
        found = -np.log(1 + np.exp(self._against * log_odds))
        which = np.flatnonzero(misled[self.answers.item])
        chance = 1 / (1 + np.exp(log_odds[which])) / (self.answers.n_labels - 1)
        seen = np.where(self.answers.right[which], chance, 1 - chance)
        found[which] = np.log(np.maximum(seen, 1e-12))
        return np.asarray(found)

    def _move(self, block: Block) -> None:
        """Propose a step for every parameter of a block, and take each or leave it."""
        n = len(block.value)
        width = 1.7 / np.sqrt(1 / block.spread**2 + INFORMATION * block.count)
        step = width * self.rng.standard_normal(n)
        moved = self.log_odds + block.sign * step[block.group]
        likelihood = self._log_likelihood(moved, self.misled)
        gain = np.bincount(block.group, likelihood - self._likelihood, n)
        odds = gain + block.log_prior(step) - block.log_prior()
        taken = np.log(self.rng.random(n)) < odds
        block.value += np.where(taken, step, 0.0)
        self._accept(taken[block.group], moved, likelihood)

    def _stretch(self) -> None:
        """Move the spread of the items and their difficulty in proportion.

        Where an item has few answers, its difficulty follows the spread and holds it fast: the
        spread moves only in company. Moves of both kinds are used in turn (Yu and Meng 2011, "To
        Center or Not to Center").
        """
        block = self.difficulty
        width = 1.7 / np.sqrt(1 + INFORMATION * len(self.answers.right))
        by = np.exp(self.rng.normal(scale=width))
        step = block.value * (by - 1)
        moved = self.log_odds - step[block.group]
        likelihood = self._log_likelihood(moved, self.misled)
        prior = (block.spread**2 - (block.spread * by) ** 2) / (2 * block.scale**2)
        odds = (likelihood - self._likelihood).sum() + prior + np.log(by)
        if np.log(self.rng.random()) < odds:
            block.value += step
            block.spread = float(block.spread * by)
            self.log_odds, self._likelihood = moved, likelihood

    def _shift(self) -> None:
        """Move all workers and all items together: no answer becomes likelier."""
        by = float(self.rng.normal(scale=0.3))
        blocks = (self.ability, self.difficulty)
        odds = sum(float((block.log_prior(by) - block.log_prior()).sum()) for block in blocks)
        if np.log(self.rng.random()) < odds:
            for block in blocks:
                block.value += by

    def _shift_by_label(self) -> None:
        """Move all twists for a label, their mean, and the items of that label together."""
        label, n_labels = self.answers.label, self.answers.n_labels
        by = self.rng.normal(scale=0.3, size=n_labels)
        items = self.difficulty.log_prior(by[label]) - self.difficulty.log_prior()
        means = self.label_means**2 - (self.label_means + by) ** 2
        odds = np.bincount(label, items, n_labels) + means / (2 * MEAN_TWIST**2)
        by = np.where(np.log(self.rng.random(n_labels)) < odds, by, 0.0)
        self.twist.value += np.tile(by, self.answers.n_workers)
        self.twist.mean = self.twist.mean + np.tile(by, self.answers.n_workers)
        self.difficulty.value += by[label]

    def _draw_means(self) -> None:
        """Draw the means of abilities and of twists given those."""
        workers = self.answers.n_workers
        twists = self.twist.value.reshape(workers, -1).sum(axis=0)
        ability = _normal_mean(self.ability.value.sum(), workers, self.ability.spread, MEAN_ABILITY)
        twist = _normal_mean(twists, workers, self.twist.spread, MEAN_TWIST)
        self.ability.mean = np.full(workers, self.rng.normal(*ability))
        self.twist.mean = np.tile(self.rng.normal(*twist), workers)

    def _turn(self, *, fresh: bool) -> None:
        """Propose for every item that it misleads if it did not, and the other way round.

        Args:
            fresh: Propose a new difficulty from its prior with it: what an item is taken for
                fixes its difficulty, and would keep it from ever turning.
        """
        item, block, n = self.answers.item, self.difficulty, len(self.misled)
        step = block.spread * self.rng.standard_normal(n) - block.value if fresh else np.zeros(n)
        moved, other = self.log_odds - step[item], ~self.misled
        likelihood = self._log_likelihood(moved, other)
        prior = np.log(self.misleading / (1 - self.misleading))
        gain = np.bincount(item, likelihood - self._likelihood, n)
        taken = np.log(self.rng.random(n)) < gain + np.where(other, prior, -prior)
        self.misled = np.where(taken, other, self.misled)
        block.value += np.where(taken, step, 0.0)
        self._accept(taken[item], moved, likelihood)

    def _draw_misleading(self) -> None:
        """Draw the share of items that mislead, given those that do."""
        a, b = MISLEADING[0] + self.misled.sum(), MISLEADING[1] + (~self.misled).sum()
        self.misleading = float(np.clip(self.rng.beta(a, b), 1e-9, 1 - 1e-9))

    def _accept(
        self,
        changed: NDArray[np.bool_],
        log_odds: NDArray[np.float64],
        likelihood: NDArray[np.float64],
    ) -> None:
        self.log_odds = np.where(changed, log_odds, self.log_odds)
        self._likelihood = np.where(changed, likelihood, self._likelihood)


def _normal_mean(
    total: NDArray[np.float64], n: int, spread: float, prior: float
) -> tuple[NDArray[np.float64], float]:
    """Give the posterior mean and standard deviation of a mean with the prior N(0, prior²)."""
    precision = n / spread**2 + 1 / prior**2
    return total / spread**2 / precision, float(1 / np.sqrt(precision))
