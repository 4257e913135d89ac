r"""Ordinal labels: how far every annotator follows the scale, how they shift it, and their noise.

Truth j and label c are places on a scale of J levels. Annotator k says c with probability

    A^k(j, c) = (1 - e) [Phi((c + 1/2 - m) / s) - Phi((c - 1/2 - m) / s)] + e / J,
    m = centre + g (j - centre) + b,

the first and the last level open outwards: a gain g (0: they do not look at the item, 1: they use
the whole scale), a shift b and a noise s. Crowds shrink scales to the middle, so that their mean
errs at both ends; the gain undoes it. (g, b, s) is one of a grid of points, whose shares in the
crowd are estimated, as are the shares of the levels. Variational EM in turn over the truth of items
and the points of annotators; the label is the median of the posterior, which has the smallest
expected absolute error. The model of a latent scale with thresholds is that of graded responses
(Samejima 1969); its annotators are those of Dawid-Skene with a table of three numbers.
"""

from __future__ import annotations

from itertools import product
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, logsumexp, ndtr

from goldspan.aggregation.weighted import (
    IteratedVote,
    TokenLabels,
    VoteInputs,
    WeightedScores,
    run_rounds,
)
from goldspan.crowd import Crowd
from goldspan.errors import InputError

Floats = NDArray[np.float64]
GAINS = (0.0, 0.25, 0.5, 0.75, 1.0)
SHIFTS = (-0.8, -0.4, 0.0, 0.4, 0.8)
NOISES = (0.5, 0.8, 1.2, 1.8, 2.6)
"""The grid; shifts and noises in fifths of the scale. Gains up to 1.2, and a scale in levels, make
mean absolute errors that differ by .04 on average over twelve crowds, in both directions."""
STRAY = 0.02
"""Share of labels that say nothing. With .1 the errors differ by .02."""


def read_levels(levels: Any) -> tuple[str, ...]:
    """Read levels from least to most, also as one string with commas (on the command line).

    >>> read_levels("low, middle, high")
    ('low', 'middle', 'high')
    """
    names = levels.split(",") if isinstance(levels, str) else levels
    try:
        found = tuple(str(name).strip() for name in names)
    except TypeError:
        found = ("",)
    if not all(found) or len(set(found)) < len(found):
        raise InputError(f"levels must be different labels from least to most, not {levels!r}")
    return found


class Ordinal(IteratedVote):
    r"""Labels on a scale, by the gain, shift and noise of every annotator.

    The confidence of a label is its posterior. The result's `item_columns` hold `expected`, the
    mean place on the scale (0 is the least level), and `expected_error`, the expected absolute
    error of the label in levels; the column `weight` of its workers holds their expected gain.

    Args:
        levels: The labels from least to most; by default their order as numbers.
        tol: Change of the objective per answer at which to stop.

    >>> from goldspan import read_crowd
    >>> crowd = read_crowd(b"task,worker,label\n1,a,1\n1,b,2\n1,c,1\n2,a,2\n2,b,3\n2,c,2\n3,a,3\n")
    >>> Ordinal().fit(crowd).result_.labels
    ['1', '2', '3']
    """

    name = "ordinal"

    levels: Annotated[tuple[str, ...] | str, read_levels] = ()

    def _weigh(self, inputs: VoteInputs) -> WeightedScores:
        levels = read_levels(self.levels)
        place, labels = places_of(inputs.crowd, levels), inputs.token_labels
        n_levels = len(levels) or int(place.max()) + 1
        given = place[labels.label]
        tables, gain = _grid(n_levels)
        logs, shape = np.log(tables), (labels.shape[1], n_levels, n_levels)
        probs = _by_rank(labels, given, n_levels)
        points = np.full(len(tables), 1 / len(tables))  # shares of the grid's points in the crowd
        clamp = None if inputs.known is None else np.flatnonzero(inputs.known >= 0)
        before, workers = -np.inf, np.zeros((shape[0], len(tables)))

        def step(n: int) -> tuple[float, bool]:  # noqa: ARG001 - every round is alike
            nonlocal probs, points, workers, before
            if clamp is not None and inputs.known is not None:
                probs[clamp] = np.eye(n_levels)[place[inputs.known[clamp]]]
            counts = np.zeros(shape)
            weight = labels.shared(probs[labels.token].T)
            np.add.at(counts.transpose(0, 2, 1), (labels.worker, given), np.transpose(weight))
            odds = np.tensordot(counts, logs, ([1, 2], [1, 2])) + np.log(points)
            workers = np.exp(odds - logsumexp(odds, axis=1, keepdims=True))
            points = (workers.sum(axis=0) + 1 / len(points)) / (shape[0] + 1)
            shares = probs[labels.voted].sum(axis=0) + n_levels
            said = np.tensordot(workers, logs, (1, 0))[labels.worker, :, given]
            scores = np.tile(np.log(shares / shares.sum()), (labels.shape[0], 1))
            for level in range(n_levels):
                scores[:, level] += labels.per_token(said[:, level])
            mass = logsumexp(scores, axis=1, keepdims=True)
            probs = np.exp(scores - mass)
            spread = workers * (np.log(np.maximum(workers, 1e-300)) - np.log(points))
            objective = float(mass[labels.voted].sum() - spread.sum())
            is_last = abs(objective - before) <= self.tol * max(1, len(labels))
            before = objective
            return objective, is_last

        rounds = run_rounds(step, self.max_iter, inputs.context.progress)
        if clamp is not None and inputs.known is not None:
            probs[clamp] = np.eye(n_levels)[place[inputs.known[clamp]]]
        scale = np.arange(n_levels)
        middle = np.minimum((probs.cumsum(axis=1) < 0.5).sum(axis=1), n_levels - 1)
        error = (probs * np.abs(scale - middle[:, None])).sum(axis=1)
        columns = {"expected": probs @ scale, "expected_error": error}
        return WeightedScores(
            workers @ gain,
            np.eye(n_levels)[middle][:, place],
            probs[:, place],
            is_posterior=True,
            entropy=np.where(labels.voted, entr(probs).sum(axis=1), 0),
            rounds=rounds,
            item_columns={
                name: np.where(labels.voted, np.round(values, 6), np.nan)
                for name, values in columns.items()
            },
        )


def places_of(crowd: Crowd, levels: tuple[str, ...] = ()) -> NDArray[np.int64]:
    """Return the place on the scale of every label of a crowd, int64 [n_labels].

    Raises:
        InputError: The items are not single labels, or no order of the labels is known.
    """
    tags = crowd.tagset.tags
    if not crowd.is_classification:
        raise InputError("ordinal is for single labels: these items have spans")
    if levels:
        missing = [tag for tag in tags if tag not in levels]
        if missing:
            raise InputError(f"the label {missing[0]!r} is none of levels: {', '.join(levels)}")
        return np.array([levels.index(tag) for tag in tags], np.int64)
    try:
        numbers = np.array([float(tag) for tag in tags])
    except ValueError:
        raise InputError(
            f"the order of the labels {', '.join(tags[:5])} is not known: name them from least to "
            "most, levels='low, middle, high' (--param levels=low,middle,high)"
        ) from None
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)


def _grid(n_levels: int) -> tuple[Floats, Floats]:
    """Return the tables of the grid's points, [n_points, truth, label], and their gains."""
    level, centre, unit = np.arange(n_levels), (n_levels - 1) / 2, max(1, n_levels - 1) / 5
    tables, gains = [], []
    for gain, shift, noise in product(GAINS, SHIFTS, NOISES):
        mean = centre + gain * (level - centre) + shift * unit
        below = ndtr((level[1:] - 0.5 - mean[:, None]) / (noise * unit))
        ends = np.zeros((n_levels, 1))
        whole = np.diff(np.hstack([ends, below, ends + 1]), axis=1)
        tables.append((1 - STRAY) * whole + STRAY / n_levels)
        gains.append(gain)
    return np.array(tables), np.array(gains)


def _by_rank(labels: TokenLabels, given: NDArray[np.int64], n_levels: int) -> Floats:
    """Begin with the items in the order of their means, dealt evenly onto the levels."""
    count = np.maximum(labels.per_token(None), 1e-9)
    mean = labels.per_token(given.astype(np.float64)) / count
    rank = np.empty(len(mean), np.int64)
    rank[np.argsort(mean, kind="stable")] = np.arange(len(mean))
    level = rank * n_levels // max(1, len(mean))
    return np.asarray(0.9 * np.eye(n_levels)[level] + 0.1 / n_levels)
