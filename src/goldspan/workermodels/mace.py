"""`mace`: a worker either knows the answer and gives it, or gives a label by habit.

    A[j, i] = pi [i = j] + (1 - pi) xi_i,   pi ~ Beta,  xi ~ Dir(alpha0)

(Hovy et al. 2013; paper 001). The paper prints xi_j in both branches, which does not normalise: it
is xi_i, the label given. Whether the worker knew is a hidden variable of its own; summed out, the
evidence is ln(pi^ [i = j] + nu^ xi^_i) with the hats exp E ln – averaging the logarithms instead
would break the evidence bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldspan.workermodels.base import WorkerModel
from goldspan.workermodels.dirichlet import divergence, expected_log
from goldspan.workermodels.prior import Prior
from goldspan.workermodels.rows import Floats, Rows


@dataclass(frozen=True, eq=False)
class KnowsOrGuesses:
    """Posterior of knowing and of the habit.

    Attributes:
        knows: float64 [n_workers], Beta parameter of knowing.
        guesses: float64 [n_workers], Beta parameter of not knowing.
        habit: float64 [n_rows], Dirichlet parameters of labels that occur.
        habit_total: float64 [n_workers], sum over all labels.
    """

    knows: Floats
    guesses: Floats
    habit: Floats
    habit_total: Floats


class Mace(WorkerModel[KnowsOrGuesses]):
    """Knowing or guessing by habit."""

    name = "mace"

    def posterior(
        self, counts: Floats, rows: Rows, prior: Prior, last: KnowsOrGuesses | None = None
    ) -> KnowsOrGuesses:
        """Split what is right into known and guessed, then count both."""
        if prior.history is not None:
            counts = counts + prior.history
        right = rows.at_label(counts)
        knew = right * self._knew(last or self._before(rows, prior), rows)
        guessed = counts.sum(axis=1) - knew
        knows, guesses, habit, total = vars(self._before(rows, prior)).values()
        by_worker = rows.sum_workers(guessed)
        return KnowsOrGuesses(
            knows + rows.sum_workers(knew), guesses + by_worker, habit + guessed, total + by_worker
        )

    def log_table(self, posterior: KnowsOrGuesses, rows: Rows) -> Floats:
        """Give ln(pi^ [i = j] + nu^ xi^_i)."""
        knows, guess = self._hats(posterior, rows)
        table = np.repeat(np.log(guess)[:, None], rows.n_labels, axis=1)
        table[np.arange(len(rows)), rows.label] = np.log(knows + guess)
        return table

    def divergence(self, posterior: KnowsOrGuesses, rows: Rows, prior: Prior) -> float:
        """Add the divergences of knowing and of the habits.

        A history is evidence whose truth is given: what it says of who knew is summed out anew
        under every posterior, so its part of the bound is subtracted here.
        """
        before = self._before(rows, prior)
        both = posterior.knows + posterior.guesses
        alpha = np.stack([posterior.knows, posterior.guesses])
        beta = np.stack([before.knows, before.guesses])
        knowing = divergence(
            alpha, beta, both, before.knows + before.guesses, expected_log(alpha, both)
        )
        expected = expected_log(posterior.habit, posterior.habit_total[rows.worker])
        habits = divergence(
            posterior.habit, before.habit, posterior.habit_total, before.habit_total, expected
        )
        if prior.history is None:
            return knowing + habits
        past = float((prior.history * self.log_table(posterior, rows)).sum())
        return knowing + habits - past

    def mean(self, posterior: KnowsOrGuesses, rows: Rows, prior: Prior, worker: int) -> Floats:
        """Give the expected confusion matrix, knowing and habit independent."""
        habit = np.full(rows.n_labels, float(prior.off))
        own = rows.of_worker(worker)
        habit[rows.label[own]] = posterior.habit[own]
        knows = posterior.knows[worker] / (posterior.knows[worker] + posterior.guesses[worker])
        return _mixture(knows, habit / habit.sum())

    def carry(
        self,
        posterior: KnowsOrGuesses,
        old: Rows,
        new: Rows,
        worker: NDArray[np.int64],
        prior: Prior,
    ) -> KnowsOrGuesses:
        """Carry a posterior over: who knew how often is not in the counts."""
        found = self._before(new, prior)
        kept = worker >= 0
        for name in ("knows", "guesses", "habit_total"):
            getattr(found, name)[worker[kept]] = getattr(posterior, name)[kept]
        own = kept[old.worker]
        keys = new.worker.astype(np.int64) * new.n_labels + new.label
        here = worker[old.worker[own]] * new.n_labels + old.label[own]
        found.habit[np.searchsorted(keys, here)] = posterior.habit[own]
        return found

    def restore(self, arrays: Mapping[str, Floats]) -> KnowsOrGuesses:
        """Make a posterior of its arrays."""
        return KnowsOrGuesses(**arrays)

    def draw(
        self, prior: Prior, n_previous: int, n_labels: int, rng: np.random.Generator
    ) -> Floats:
        """Draw the probability of knowing and the habit."""
        del n_previous
        right, wrong = prior.right_and_wrong(1, n_labels)
        habit = rng.dirichlet(np.full(n_labels, prior.off))
        return _mixture(float(rng.beta(right[0], wrong)), habit)

    @staticmethod
    def _before(rows: Rows, prior: Prior) -> KnowsOrGuesses:
        right, wrong = prior.right_and_wrong(rows.n_workers, rows.n_labels)
        return KnowsOrGuesses(
            right.copy(),
            np.full(rows.n_workers, wrong),
            np.full(len(rows), float(prior.off)),
            np.full(rows.n_workers, prior.off * rows.n_labels),
        )

    @staticmethod
    def _hats(posterior: KnowsOrGuesses, rows: Rows) -> tuple[Floats, Floats]:
        """Give pi^ and nu^ xi^_i of every row."""
        both = posterior.knows + posterior.guesses
        knows = np.exp(expected_log(posterior.knows, both))[rows.worker]
        guesses = expected_log(posterior.guesses, both)[rows.worker]
        habit = expected_log(posterior.habit, posterior.habit_total[rows.worker])
        return knows, np.exp(guesses + habit)

    def _knew(self, posterior: KnowsOrGuesses, rows: Rows) -> Floats:
        """Give kappa, the probability that a right answer was known."""
        knows, guess = self._hats(posterior, rows)
        return knows / (knows + guess)


def _mixture(knows: float, habit: Floats) -> Floats:
    n = len(habit)
    return np.asarray(knows * np.eye(n) + (1 - knows) * np.tile(habit, (n, 1)))[None]
