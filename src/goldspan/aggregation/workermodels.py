"""The worker models acc, mace, cv, cm and seq (Simpson and Gurevych 2019), from one statistic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from goldspan.errors import UnknownNameError

# --------------------------------------------------------------------------------------------------
# The compact table that every worker model works on: one row per pair that occurs.


Floats = NDArray[np.float64]
SPARSE = 1 << 16
"""Cells from which groups of rows are added up by a sparse matrix."""


class Block(NamedTuple):
    """Some workers that stand together: slices of workers, of rows and of groups."""

    worker: slice
    row: slice
    group: slice


@dataclass(frozen=True, eq=False)
class Rows:
    """What the rows of a table stand for."""

    worker: NDArray[np.int32]  # [n_rows]
    previous: NDArray[np.int16]  # [n_rows]
    label: NDArray[np.int16]  # [n_rows], the label that was given
    n_workers: int
    n_previous: int  # Number of previous labels, 1 without memory
    n_labels: int  # Number of labels, J

    @classmethod
    def of_keys(
        cls, keys: NDArray[np.int64], n_workers: int, n_previous: int, n_labels: int
    ) -> Rows:
        """Make the rows of some keys, in their order."""
        pair, label = np.divmod(keys, n_labels)
        worker, previous = np.divmod(pair, n_previous)
        kinds = worker.astype(np.int32), previous.astype(np.int16), label.astype(np.int16)
        return cls(*kinds, n_workers, n_previous, n_labels)

    def keys(self, worker: NDArray[Any] | None = None) -> NDArray[np.int64]:
        """Number worker, previous label and label together; workers may be numbered anew."""
        who = (self.worker if worker is None else worker).astype(np.int64)
        return np.asarray((who * self.n_previous + self.previous) * self.n_labels + self.label)

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.worker)

    @cached_property
    def group_start(self) -> NDArray[np.int64]:
        """First row of every group, int64 [n_groups]."""
        if not len(self):
            return np.zeros(0, np.int64)
        new = np.ones(len(self), np.bool_)
        new[1:] = (np.diff(self.worker) != 0) | (np.diff(self.previous) != 0)
        return np.flatnonzero(new).astype(np.int64)

    @cached_property
    def group(self) -> NDArray[np.int64]:
        """Group of every row, int64 [n_rows]."""
        sizes = np.diff(np.append(self.group_start, len(self)))
        return np.repeat(np.arange(len(sizes)), sizes)

    @cached_property
    def group_worker(self) -> NDArray[np.int32]:
        """Worker of every group, int32 [n_groups]."""
        return self.worker[self.group_start]

    @cached_property
    def group_previous(self) -> NDArray[np.int16]:
        """Previous label of every group, int16 [n_groups]."""
        return self.previous[self.group_start]

    def sum_groups(self, values: Floats) -> Floats:
        """Sum rows over groups: [n_rows, J] to [n_groups, J]."""
        if not len(self):
            return np.zeros((0, *values.shape[1:]))
        if values.size >= SPARSE:
            return np.asarray(self._by_group @ values)
        return np.asarray(np.add.reduceat(values, self.group_start, axis=0))

    @cached_property
    def _by_group(self) -> Any:
        """The matrix that adds rows up: for short groups several times as fast as `reduceat`."""
        from scipy.sparse import csr_array

        ends = np.append(self.group_start, len(self)).astype(np.int32)
        ones = (np.ones(len(self)), np.arange(len(self), dtype=np.int32), ends)
        return csr_array(ones, shape=(len(self.group_start), len(self)))

    def sum_workers(self, values: Floats) -> Floats:
        """Sum rows over workers: [n_rows, …] to [n_workers, …]."""
        out = np.zeros((self.n_workers, *values.shape[1:]))
        if len(self):
            first = np.flatnonzero(np.diff(self.worker, prepend=-1))
            out[self.worker[first]] = np.add.reduceat(values, first, axis=0)
        return out

    def at_label(self, values: Floats) -> Floats:
        """Pick of every row the column of its own label: [n_rows, J] to [n_rows]."""
        return np.asarray(values[np.arange(len(self)), self.label])

    def blocks(self, n_rows: int) -> Iterator[Block]:
        """Cut the workers into blocks of about so many rows; depends on the rows only."""
        edges = np.append(self.worker[n_rows::n_rows] + 1, self.n_workers)
        workers = np.unique(np.append(0, edges))
        at = np.searchsorted(self.worker, workers)
        groups = np.searchsorted(self.group_start, at)
        for cut in zip(pairwise(workers), pairwise(at), pairwise(groups), strict=True):
            yield Block(*(slice(int(first), int(end)) for first, end in cut))

    def of_block(self, block: Block) -> Rows:
        """Return the rows of a block of workers, who are numbered from 0 in it."""
        begin, end = block.worker.start, block.worker.stop
        own = (self.worker[block.row] - np.int32(begin), self.previous[block.row])
        return Rows(*own, self.label[block.row], end - begin, self.n_previous, self.n_labels)

    def of_worker(self, worker: int) -> slice:
        """Return the rows of a worker."""
        start, end = np.searchsorted(self.worker, [worker, worker + 1])
        return slice(int(start), int(end))


# --------------------------------------------------------------------------------------------------
# Dirichlet and Beta distributions: expected logarithms and divergences.


def expected_log(alpha: Floats, total: Floats) -> Floats:
    """Return E ln p for components `alpha` of Dirichlets whose parameters sum to `total`."""
    return np.asarray(digamma(alpha) - digamma(total))


def divergence(
    alpha: Floats, beta: Floats, alpha_total: Floats, beta_total: Floats, expected: Floats
) -> float:
    """Sum KL(Dir(alpha) || Dir(beta)) over many Dirichlets."""
    totals = gammaln(alpha_total) - gammaln(beta_total)
    # In place: tables of many workers are large.
    parts = np.asarray(gammaln(beta))
    parts -= gammaln(alpha)
    gained = alpha - beta
    gained *= expected
    parts += gained
    return float(totals.sum() + parts.sum())


# --------------------------------------------------------------------------------------------------
# What is believed of workers before they answer: pseudo-counts, the same two for every model.


LEAST = 0.1
"""Least pseudo-count of what the encoding allows: psi(1e-12) = -1e12 would veto it for ever."""
LEAST_FORBIDDEN = 1e-3


@dataclass(frozen=True, eq=False)
class Prior:
    """Pseudo-counts of a worker model."""

    off: float = 1.25  # alpha0, of every label for every truth; at least 0.1
    bonus: float | Floats = 18.75  # epsilon0, what the right label has beyond it
    mask: NDArray[np.bool_] | None = field(default=None, repr=False)  # [n_previous, J]
    forbidden: float = 0.1  # Pseudo-count where `mask` is False
    base: Floats | None = field(default=None, repr=False)  # [n_previous, J, J]
    history: Floats | None = field(default=None, repr=False)  # [n_rows, J]

    def of_block(self, block: Block) -> Prior:
        """Return the prior of a block of workers."""
        bonus, history = self.bonus, self.history
        if np.ndim(bonus):
            bonus = np.asarray(bonus)[block.worker]
        return replace(self, bonus=bonus, history=None if history is None else history[block.row])

    def right_bonus(self, n_workers: int) -> Floats:
        """Return the bonus of every worker, float64 [n_workers]."""
        return np.broadcast_to(np.asarray(self.bonus, np.float64), (n_workers,))

    def of_rows(self, rows: Rows) -> Floats:
        """Return the pseudo-counts of the rows, float64 [n_rows, J] by truth."""
        if self.base is not None:
            alpha = self.base[rows.previous, :, rows.label].copy()
        else:
            alpha = np.full((len(rows), rows.n_labels), float(self.off))
            bonus = self.right_bonus(rows.n_workers)[rows.worker]
            alpha[np.arange(len(rows)), rows.label] += bonus
            if self.mask is not None:
                alpha[~self.mask[rows.previous, rows.label]] = self.forbidden
        return np.asarray(alpha if self.history is None else alpha + self.history)

    def of_groups(self, rows: Rows) -> Floats:
        """Return the pseudo-counts summed over all labels, float64 [n_groups, J] by truth."""
        # Labels that never occur in a group count too, though they have no row
        if self.base is not None:
            total = self.base.sum(axis=2)[rows.group_previous]
        else:
            n = rows.n_labels
            allowed = np.ones((rows.n_previous, n), np.bool_) if self.mask is None else self.mask
            n_allowed = allowed.sum(axis=1)[:, None]
            off = n_allowed * self.off + (n - n_allowed) * self.forbidden
            # The bonus belongs to truth j only where label j is allowed after the previous one.
            bonus = self.right_bonus(rows.n_workers)[rows.group_worker]
            total = off[rows.group_previous] + bonus[:, None] * allowed[rows.group_previous]
        return np.asarray(total if self.history is None else total + rows.sum_groups(self.history))

    def right_and_wrong(self, n_workers: int, n_labels: int) -> tuple[Floats, float]:
        """Return the Beta prior of being right from the same two numbers (math.md, section 3)."""
        # returns float64 [n_workers]
        return self.off + self.right_bonus(n_workers), max(1, n_labels - 1) * self.off


# --------------------------------------------------------------------------------------------------
# What every worker model is: a pure function from expected counts to an expected log table.


P = TypeVar("P")


class WorkerModel(ABC, Generic[P]):
    """Base of the worker models; `P` is the model's posterior, a frozen bundle of arrays."""

    name: ClassVar[str]
    has_memory: ClassVar[bool] = False  # Whether the label before counts, so that rows hold it
    kind: ClassVar[type[Any]]  # The class of its posteriors, P
    axes: ClassVar[Mapping[str, str]]  # What the first axis of every array of a posterior is

    @abstractmethod
    def posterior(self, counts: Floats, rows: Rows, prior: Prior, last: P | None = None) -> P:
        """Update the parameters."""
        # counts float64 [n_rows, J], expected counts by truth

    @abstractmethod
    def log_table(self, posterior: P, rows: Rows) -> Floats:
        """Return E ln A, float64 [n_rows, J] by truth."""

    @abstractmethod
    def divergence(self, posterior: P, rows: Rows, prior: Prior, logs: Floats) -> float:
        """Return KL(posterior || prior), summed over workers."""

    def of_block(self, posterior: P, block: Block) -> P:
        """Return the posterior of a block of workers."""
        arrays = self.arrays(posterior)
        return self.restore({key: arrays[key][getattr(block, self.axes[key])] for key in arrays})

    def carry(
        self, posterior: P, old: Rows, new: Rows, worker: NDArray[np.int64], prior: Prior
    ) -> P | None:
        """Carry a posterior over to other rows, if counts alone do not say what it is."""
        # worker int64 [old.n_workers]
        del posterior, old, new, worker, prior
        return None

    @abstractmethod
    def mean(self, posterior: P, rows: Rows, prior: Prior, worker: int) -> Floats:
        """Return the expected A of a worker, float64 [n_previous, J, J]: previous, truth, given."""

    @abstractmethod
    def draw(
        self, prior: Prior, n_previous: int, n_labels: int, rng: np.random.Generator
    ) -> Floats:
        """Draw a worker from the prior, float64 [n_previous, J, J]: previous, truth, given."""
        # With memory, the Dirichlets of all previous labels are drawn; without it n_previous is 1

    def arrays(self, posterior: P) -> dict[str, Floats]:
        """Return the posterior as named arrays, for checkpoints."""
        return dict(vars(posterior))

    def restore(self, arrays: Mapping[str, Floats]) -> P:
        """Make a posterior of what `arrays` gave."""
        made: P = self.kind(**arrays)
        return made


def right_or_wrong(right: Floats) -> Floats:
    """Make confusion matrices of which all wrong labels are equally likely."""
    # right float64 [J]; returns float64 [1, J, J]
    n = len(right)
    table = np.repeat(((1 - right) / max(1, n - 1))[:, None], n, axis=1)
    np.fill_diagonal(table, right if n > 1 else 1.0)
    return table[None]


# --------------------------------------------------------------------------------------------------
# `cv`, the confusion vector: per worker and true label one probability of being right.


@dataclass(frozen=True, eq=False)
class Betas:
    """Posterior of being right, Beta(right, wrong)."""

    right: Floats  # [n_workers, J], or [n_workers, 1] for all labels together
    wrong: Floats

    @property
    def both(self) -> Floats:
        """Sum of the two parameters."""
        return self.right + self.wrong


class ConfusionVector(WorkerModel[Betas]):
    """One Beta per (worker, truth)."""

    name = "cv"
    kind = Betas
    axes: ClassVar[Mapping[str, str]] = {"right": "worker", "wrong": "worker"}

    def posterior(
        self, counts: Floats, rows: Rows, prior: Prior, last: Betas | None = None
    ) -> Betas:
        """Count right and wrong answers by truth."""
        del last
        counts = counts if prior.history is None else counts + prior.history
        every = rows.sum_workers(counts)
        hits = np.zeros_like(every)
        hits[rows.worker, rows.label] = rows.at_label(counts)
        hits, every = self._pool(hits), self._pool(every)
        right, wrong = prior.right_and_wrong(rows.n_workers, rows.n_labels)
        return Betas(right[:, None] + hits, np.maximum(every - hits, 0.0) + wrong)

    def log_table(self, posterior: Betas, rows: Rows) -> Floats:
        """Return E ln pi where label and truth agree, else E ln (1 - pi) - ln (J - 1)."""
        n = rows.n_labels
        if n == 1:
            return np.zeros((len(rows), 1))
        both = posterior.both
        hit = expected_log(posterior.right, both)
        miss = expected_log(posterior.wrong, both) - np.log(n - 1)
        shape = (rows.n_workers, n)
        table = np.broadcast_to(miss, shape)[rows.worker]
        table[np.arange(len(rows)), rows.label] = np.broadcast_to(hit, shape)[
            rows.worker, rows.label
        ]
        return table

    def divergence(self, posterior: Betas, rows: Rows, prior: Prior, logs: Floats) -> float:
        """Sum the divergences of all Betas."""
        del logs
        if rows.n_labels == 1:
            return 0.0
        zero = np.zeros((len(rows), rows.n_labels))
        before = self.posterior(zero, rows, prior)
        alpha = np.stack([posterior.right, posterior.wrong])
        beta = np.stack([before.right, before.wrong])
        expected = expected_log(alpha, posterior.both)
        return divergence(alpha, beta, posterior.both, before.both, expected)

    def mean(self, posterior: Betas, rows: Rows, prior: Prior, worker: int) -> Floats:
        """Return the expected confusion matrix."""
        del prior
        right = posterior.right[worker] / posterior.both[worker]
        return right_or_wrong(np.broadcast_to(right, (rows.n_labels,)))

    def draw(
        self, prior: Prior, n_previous: int, n_labels: int, rng: np.random.Generator
    ) -> Floats:
        """Draw a probability per truth."""
        del n_previous
        right, wrong = prior.right_and_wrong(1, n_labels)
        drawn = rng.beta(right[0], wrong, size=self._pool(np.zeros((1, n_labels))).shape[1])
        return right_or_wrong(np.broadcast_to(drawn, (n_labels,)))

    @staticmethod
    def _pool(values: Floats) -> Floats:
        """Keep the true labels apart."""
        return values


# --------------------------------------------------------------------------------------------------
# `acc`, accuracy: per worker one probability of being right, whatever the truth.


class Accuracy(ConfusionVector):
    """One Beta per worker."""

    name = "acc"

    @staticmethod
    def _pool(values: Floats) -> Floats:
        """Take all true labels together."""
        return np.asarray(values.sum(axis=1, keepdims=True))


# --------------------------------------------------------------------------------------------------
# `cm`, the confusion matrix: one Dirichlet over the labels given per worker and true label.


@dataclass(frozen=True, eq=False)
class RowDirichlets:
    """Posterior of a Dirichlet per group and truth."""

    alpha: Floats  # [n_rows, J], parameters of the labels that occur
    total: Floats  # [n_groups, J], sum over all labels


class ConfusionMatrix(WorkerModel[RowDirichlets]):
    """One Dirichlet per (worker, truth); with memory per (worker, previous label, truth)."""

    name = "cm"
    kind = RowDirichlets
    axes: ClassVar[Mapping[str, str]] = {"alpha": "row", "total": "group"}

    def posterior(
        self, counts: Floats, rows: Rows, prior: Prior, last: RowDirichlets | None = None
    ) -> RowDirichlets:
        """Add the counts to the prior's."""
        del last
        return RowDirichlets(
            prior.of_rows(rows) + counts, prior.of_groups(rows) + rows.sum_groups(counts)
        )

    def log_table(self, posterior: RowDirichlets, rows: Rows) -> Floats:
        """Return psi(alpha) - psi(total)."""
        logs = np.asarray(digamma(posterior.alpha))
        logs -= digamma(posterior.total)[rows.group]
        return logs

    def divergence(self, posterior: RowDirichlets, rows: Rows, prior: Prior, logs: Floats) -> float:
        """Sum the divergences of all Dirichlets; labels without a row agree with the prior."""
        return divergence(
            posterior.alpha, prior.of_rows(rows), posterior.total, prior.of_groups(rows), logs
        )

    def mean(self, posterior: RowDirichlets, rows: Rows, prior: Prior, worker: int) -> Floats:
        """Return alpha / total; the prior's share where the worker gave nothing."""
        every = _all_rows(rows.n_previous, rows.n_labels)
        bonus = prior.right_bonus(rows.n_workers)[worker]
        alone = Prior(prior.off, float(bonus), prior.mask, prior.forbidden, prior.base)
        table = np.empty((rows.n_previous, rows.n_labels, rows.n_labels))
        table[every.previous, :, every.label] = alone.of_rows(every)
        own = rows.of_worker(worker)
        table[rows.previous[own], :, rows.label[own]] = posterior.alpha[own]
        return np.asarray(table / table.sum(axis=2, keepdims=True))

    def draw(
        self, prior: Prior, n_previous: int, n_labels: int, rng: np.random.Generator
    ) -> Floats:
        """Draw every row of the confusion matrices from its Dirichlet."""
        every = _all_rows(n_previous, n_labels)
        alpha = np.empty((n_previous, n_labels, n_labels))
        alpha[every.previous, :, every.label] = prior.of_rows(every)
        drawn = rng.standard_gamma(alpha)
        return np.asarray(drawn / drawn.sum(axis=2, keepdims=True))


def _all_rows(n_previous: int, n_labels: int) -> Rows:
    """Return all rows of a single worker."""
    return Rows.of_keys(np.arange(n_previous * n_labels), 1, n_previous, n_labels)


# --------------------------------------------------------------------------------------------------
# Point estimates in place of distributions: what EM (Dawid and Skene 1979) updates.


class PointConfusionMatrix(ConfusionMatrix):
    """Confusion matrices as shares of smoothed counts."""

    name = "cm-point"

    def log_table(self, posterior: RowDirichlets, rows: Rows) -> Floats:
        """Return ln(alpha / total)."""
        shares = posterior.total[rows.group]
        np.divide(posterior.alpha, shares, out=shares)
        return np.log(shares, out=shares)

    def divergence(self, posterior: RowDirichlets, rows: Rows, prior: Prior, logs: Floats) -> float:
        """Return minus the log density of the prior, without what does not change."""
        before = prior.of_rows(rows)
        unseen = prior.of_groups(rows) - rows.sum_groups(before)
        before *= logs
        return float((unseen * np.log(posterior.total)).sum() - before.sum())


class PointAccuracy(Accuracy):
    """One probability of being right per worker, as a share of smoothed counts."""

    name = "acc-point"

    def log_table(self, posterior: Betas, rows: Rows) -> Floats:
        """Return ln pi where label and truth agree, else ln((1 - pi) / (J - 1))."""
        n = rows.n_labels
        if n == 1:
            return np.zeros((len(rows), 1))
        miss = np.log(posterior.wrong / posterior.both / (n - 1))[rows.worker]
        table = np.repeat(miss, n, axis=1)
        hit = np.log(posterior.right / posterior.both)[rows.worker, 0]
        table[np.arange(len(rows)), rows.label] = hit
        return table

    def divergence(self, posterior: Betas, rows: Rows, prior: Prior, logs: Floats) -> float:
        """Return minus the log density of the prior, without what does not change."""
        right, wrong = prior.right_and_wrong(rows.n_workers, rows.n_labels)
        hit = np.log(posterior.right / posterior.both)
        miss = np.log(posterior.wrong / posterior.both)
        past = 0.0 if prior.history is None else float((prior.history * logs).sum())
        return -float((right[:, None] * hit + wrong * miss).sum()) - past


# --------------------------------------------------------------------------------------------------
# `mace`: a worker either knows the answer and gives it, or gives a label by habit.


@dataclass(frozen=True, eq=False)
class KnowsOrGuesses:
    """Posterior of knowing and of the habit."""

    knows: Floats  # [n_workers], Beta parameter of knowing
    guesses: Floats  # [n_workers], Beta parameter of not knowing
    habit: Floats  # [n_rows], Dirichlet parameters of labels that occur
    habit_total: Floats  # [n_workers], sum over all labels


class Mace(WorkerModel[KnowsOrGuesses]):
    """Knowing or guessing by habit."""

    name = "mace"
    kind = KnowsOrGuesses
    axes: ClassVar[Mapping[str, str]] = {
        "knows": "worker", "guesses": "worker", "habit": "row", "habit_total": "worker",
    }  # fmt: skip

    def posterior(
        self, counts: Floats, rows: Rows, prior: Prior, last: KnowsOrGuesses | None = None
    ) -> KnowsOrGuesses:
        """Split what is right into known and guessed, then count both."""
        if prior.history is not None:
            counts = counts + prior.history
        before = self._before(rows, prior)
        known, guess = self._hats(last or before, rows)
        knew = rows.at_label(counts) * (known / (known + guess))  # kappa, that it was known
        guessed = counts.sum(axis=1) - knew
        knows, guesses, habit, total = vars(before).values()
        by_worker = rows.sum_workers(guessed)
        return KnowsOrGuesses(
            knows + rows.sum_workers(knew), guesses + by_worker, habit + guessed, total + by_worker
        )

    def log_table(self, posterior: KnowsOrGuesses, rows: Rows) -> Floats:
        """Return ln(pi^ [i = j] + nu^ xi^_i)."""
        knows, guess = self._hats(posterior, rows)
        table = np.repeat(np.log(guess)[:, None], rows.n_labels, axis=1)
        table[np.arange(len(rows)), rows.label] = np.log(knows + guess)
        return table

    def divergence(
        self, posterior: KnowsOrGuesses, rows: Rows, prior: Prior, logs: Floats
    ) -> float:
        """Add the divergences of knowing and of the habits."""
        # A history is evidence whose truth is given
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
        past = 0.0 if prior.history is None else float((prior.history * logs).sum())
        return knowing + habits - past

    def mean(self, posterior: KnowsOrGuesses, rows: Rows, prior: Prior, worker: int) -> Floats:
        """Return the expected confusion matrix, knowing and habit independent."""
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
        here = old.keys(worker[old.worker])[own]
        found.habit[np.searchsorted(new.keys(), here)] = posterior.habit[own]
        return found

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
        """Return pi^ and nu^ xi^_i of every row."""
        both = posterior.knows + posterior.guesses
        knows = np.exp(expected_log(posterior.knows, both))[rows.worker]
        guesses = expected_log(posterior.guesses, both)[rows.worker]
        habit = expected_log(posterior.habit, posterior.habit_total[rows.worker])
        return knows, np.exp(guesses + habit)


def _mixture(knows: float, habit: Floats) -> Floats:
    n = len(habit)
    return np.asarray(knows * np.eye(n) + (1 - knows) * np.tile(habit, (n, 1)))[None]


# --------------------------------------------------------------------------------------------------
# `seq`, the sequential worker: what is given depends on the truth and on the label given before.


class Sequential(ConfusionMatrix):
    """`cm` with memory."""

    name = "seq"
    has_memory = True


# --------------------------------------------------------------------------------------------------
# The worker models by name: a new one is a class, and one line here.


MODELS: dict[str, type[WorkerModel[Any]]] = {
    one.name: one for one in (Accuracy, Mace, ConfusionVector, ConfusionMatrix, Sequential)
}


def get_worker_model(name: str) -> WorkerModel[Any]:
    """Return a worker model by its name."""
    if name not in MODELS:
        raise UnknownNameError("worker model", name, MODELS)
    return MODELS[name]()
