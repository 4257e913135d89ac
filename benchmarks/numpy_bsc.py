"""BSC-seq in NumPy, without a compiler: the peer of our kernels, and an oracle for their tests.

The model of goldspan's `bsc-seq` with its defaults (MATH section 4), written as a good user of
NumPy would write it. Nothing is shared with `goldspan.aggregate`: tables are dense, [worker,
previous label, label given, truth], and priors, divergences and the layout are made anew from
`Crowd.latest`.

Sentences are sorted by length and their tokens packed by step, so that one step of
forward–backward is a matrix product over a block of neighbouring rows, for all sentences that are
long enough. Evidence and counts are gathers and `np.bincount`, one truth at a time: `np.add.at`
takes five times as long on the real crowd, `np.add.reduceat` over rows twice. With
`prepare(crowd, sparse=True)` both are products with one scipy.sparse matrix, which is faster still
and no longer NumPy alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import digamma, gammaln

from goldspan.crowd import Crowd

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ALPHA0 = 1.25
EPSILON0 = 18.75
FORBIDDEN = 0.1
TRUTH_PRIOR = 1.0


@dataclass(frozen=True, eq=False)
class Task:
    """A crowd as the reference needs it.

    Attributes:
        steps: Blocks of packed tokens, one for every step of the longest sentence.
        packed: int64 [n_tokens], the flat token of every packed one.
        last: int64 [n_sentences], the packed last token of every sentence.
        token: int64 [n_labels], the packed token of every label, sorted.
        cell: int64 [n_labels], the cell of (worker, previous, given).
        incidence: Sparse [n_tokens, n_cells], how often a token got what a cell stands for; or
            None.
        prior: float64 [n_workers, n_previous, J given, J truth].
        allowed: bool [J + 1, J], steps of the truth; the first row is the start.
        may_end: bool [J].
        votes: float64 [n_tokens, J], shares of votes, packed.
    """

    steps: list[slice]
    packed: Ints
    last: Ints
    token: Ints
    cell: Ints
    incidence: csr_array | None
    prior: Floats
    allowed: NDArray[np.bool_]
    may_end: NDArray[np.bool_]
    votes: Floats


@dataclass(frozen=True, eq=False)
class Estimate:
    """Where the reference stopped.

    Attributes:
        trace: The ELBO after every E-step.
        packed_marginals: float64 [n_tokens, J], q(t), packed.
        counts: float64 [n_workers, n_previous, J given, J truth], of the last E-step.
        truth_counts: float64 [J + 1, J], of the last E-step.
        task: What was worked on.
    """

    trace: list[float]
    packed_marginals: Floats
    counts: Floats
    truth_counts: Floats
    task: Task

    @property
    def marginals(self) -> Floats:
        """q(t) in the crowd's order, float64 [n_tokens_of_crowd, J]; NaN where nobody answered."""
        n_tokens = int(self.task.packed.max()) + 1
        found = np.full((n_tokens, self.packed_marginals.shape[1]), np.nan)
        found[self.task.packed] = self.packed_marginals
        return found


def prepare(crowd: Crowd, *, sparse: bool = False) -> Task:
    """Lay out a crowd of tagged sentences with an `O`; items without a label are left out."""
    codec, answers = crowd.tagset, crowd.latest
    n_labels, n_previous = len(codec.tags), len(codec.tags) + 1
    given = answers.codes >= 0
    code = answers.codes.astype(np.int64)
    # The label given before: O at the start of an item, a state of its own after a skipped token.
    previous = np.empty_like(code)
    previous[1:] = np.where(given[:-1], code[:-1], n_labels)
    previous[answers.offset[:-1][answers.lengths > 0]] = codec.outside
    token = crowd.token_of[given]
    row = (crowd.worker_of[given] * n_previous + previous[given]) * n_labels + code[given]

    has_labels = np.bincount(token, minlength=crowd.n_tokens) > 0
    item_of = np.repeat(np.arange(crowd.n_items), np.diff(crowd.offsets))
    active = np.bincount(item_of[has_labels], minlength=crowd.n_items) > 0
    packed, steps, last = _pack(crowd.offsets[:-1][active], np.diff(crowd.offsets)[active])

    place = np.full(crowd.n_tokens, -1)
    place[packed] = np.arange(len(packed))
    at = place[token]
    order = np.argsort(at, kind="stable")
    n_cells = crowd.n_workers * n_previous * n_labels
    ones = np.ones(len(at))
    incidence = csr_array((ones, (at, row)), shape=(len(packed), n_cells)) if sparse else None

    votes = np.bincount(at * n_labels + code[given], minlength=len(packed) * n_labels)
    votes = votes.reshape(-1, n_labels)
    total = votes.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, votes / np.maximum(total, 1), 1 / n_labels)

    after = np.vstack([codec.mask, codec.start_mask])
    prior = ALPHA0 + EPSILON0 * np.eye(n_labels)
    prior = np.where(after[:, :, None], prior, FORBIDDEN)
    return Task(
        steps,
        packed,
        last,
        at[order],
        row[order],
        incidence,
        np.broadcast_to(prior, (crowd.n_workers, *prior.shape)),
        np.vstack([codec.start_mask, codec.mask]),
        codec.end_mask,
        shares,
    )


def run(task: Task, *, tol: float = 1e-5, max_iter: int = 100) -> Estimate:
    """Alternate updates and E-steps until the relative change of the ELBO is at most `tol`."""
    counts, truth_counts = _from_votes(task)
    trace: list[float] = []
    while True:
        table, apart = _expected_log(task.prior + counts, task.prior, axis=2)
        alpha = np.where(task.allowed, TRUTH_PRIOR + truth_counts, 0.0)
        steps, apart_truth = _expected_log(alpha, TRUTH_PRIOR * task.allowed, axis=1)
        log_z, marginals, truth_counts = _forward_backward(
            task, _evidence(task, table), np.exp(steps)
        )
        counts = _count(task, marginals)
        trace.append(log_z - apart - apart_truth)
        done = len(trace) > 1 and abs(trace[-1] - trace[-2]) <= tol * abs(trace[-2])
        if done or len(trace) == max_iter:
            return Estimate(trace, marginals, counts, truth_counts, task)


def _pack(first: Ints, lengths: Ints) -> tuple[Ints, list[slice], Ints]:
    """Order tokens by step: the first of all sentences, the longest first, the second, …."""
    order = np.argsort(-lengths, kind="stable")
    first, lengths = first[order], lengths[order]
    n_active = np.searchsorted(-lengths, -np.arange(1, lengths[0] + 1), side="right")
    bounds = np.concatenate([[0], np.cumsum(n_active)])
    packed = np.concatenate([first[:n] + t for t, n in enumerate(n_active)])
    steps = [slice(int(a), int(b)) for a, b in pairwise(bounds)]
    return packed, steps, bounds[lengths - 1] + np.arange(len(lengths))


def _from_votes(task: Task) -> tuple[Floats, Floats]:
    """Count as if the shares of votes were the marginals and neighbours independent."""
    votes, n_labels = task.votes, task.votes.shape[1]
    truth_counts = np.zeros((n_labels + 1, n_labels))
    truth_counts[0] = votes[task.steps[0]].sum(axis=0)
    for before, now in pairwise(task.steps):
        left = votes[before][: _width(now)]
        truth_counts[1:] += left.T @ votes[now]
    return _count(task, votes), truth_counts * task.allowed


def _expected_log(alpha: Floats, prior: Floats, axis: int) -> tuple[Floats, float]:
    """Return E ln p under Dirichlets along an axis, and their divergence from the prior.

    Components with parameter 0 do not exist: -inf, and they add nothing.
    """
    total, before = alpha.sum(axis=axis, keepdims=True), prior.sum(axis=axis, keepdims=True)
    exists = alpha > 0
    logs = np.full(alpha.shape, -np.inf)
    np.subtract(digamma(alpha), digamma(total), out=logs, where=exists)
    # What agrees with its prior adds nothing: most cells of most workers.
    moved = exists & (alpha != prior)
    a, b = alpha[moved], prior[moved]
    parts = gammaln(b) - gammaln(a) + (a - b) * logs[moved]
    return logs, float((gammaln(total) - gammaln(before)).sum() + parts.sum())


def _evidence(task: Task, table: Floats) -> Floats:
    """Sum the expected logarithms of a token's labels, float64 [J, n_tokens]."""
    n_tokens, cells = len(task.packed), table.reshape(-1, table.shape[-1])
    if task.incidence is not None:
        return np.asarray((task.incidence @ cells).T)
    columns = np.ascontiguousarray(cells.T)
    return np.stack(
        [np.bincount(task.token, column.take(task.cell), n_tokens) for column in columns]
    )


def _count(task: Task, marginals: Floats) -> Floats:
    """Add the marginals of all labels to their cells, [n_workers, n_previous, J given, J truth]."""
    shape = task.prior.shape
    if task.incidence is not None:
        return np.asarray(task.incidence.T @ marginals).reshape(shape)
    n_cells, columns = int(np.prod(shape[:3])), np.ascontiguousarray(marginals.T)
    sums = [np.bincount(task.cell, column.take(task.token), n_cells) for column in columns]
    return np.stack(sums, axis=1).reshape(shape)


def _forward_backward(task: Task, evidence: Floats, truth: Floats) -> tuple[float, Floats, Floats]:
    """Return ln Z, the marginals [n_tokens, J] and the expected steps."""
    steps, start, step = task.steps, truth[0], truth[1:]
    most = evidence.max(axis=0)
    local = np.ascontiguousarray(np.exp(evidence - most).T)
    local[task.last] *= task.may_end
    forward, scale = np.empty_like(local), np.empty(len(local))
    came = start
    for t, block in enumerate(steps):
        here = np.multiply(local[block], came, out=forward[block])
        # einsum: np.sum over a short last axis takes four times as long
        np.einsum("tj->t", here, out=scale[block])
        here *= (1 / scale[block])[:, None]
        if t + 1 < len(steps):
            came = here[: _width(steps[t + 1])] @ step
    local *= (1 / scale)[:, None]
    # backward is 1 at the last token of every sentence; what the others get comes from their right
    backward, back_step = np.ones_like(local), np.ascontiguousarray(step.T)
    counts = np.zeros_like(truth)
    for before, now in zip(steps[-2::-1], steps[:0:-1], strict=True):
        right = local[now]
        right *= backward[now]
        np.matmul(right, back_step, out=backward[before][: _width(now)])
        counts[1:] += forward[before][: _width(now)].T @ right
    marginals = np.multiply(forward, backward, out=backward)
    marginals *= (1 / np.einsum("tj->t", marginals))[:, None]
    counts[0] = marginals[steps[0]].sum(axis=0)
    counts[1:] *= step
    return float(np.log(scale).sum() + most.sum()), marginals, counts


def _width(block: slice) -> int:
    return int(block.stop - block.start)
