"""The linear-chain CRF: objective, L-BFGS, early stopping, weights."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from goldspan._arrays import longest_first
from goldspan.chains.decoding import first_without_path
from goldspan.errors import InputError
from goldspan.params import MOST, Number, Rounds, Whole, require
from goldspan.protocols import Progress, Runner, Serial
from goldspan.tagger.base import FeatureTagger, carry, potentials_of, score_tags, transform
from goldspan.tagger.decoding import best_path
from goldspan.tagger.features import Columns, Features, Merged
from goldspan.tagger.kernels import (
    Floats,
    Weights,
    add_multiple,
    combine,
    dense_counts,
    dot,
    expected_lanes,
    expected_step,
    gradient_step,
    products,
    take_step,
    target_step,
)
from goldspan.tagger.targets import Clamp, Masks, Targets

# --------------------------------------------------------------------------------------------------
# Limited-memory BFGS, written for weights by the million: every vector is touched few times.


Function = Callable[[Floats], tuple[float, Floats]]
DECREASE, CURVATURE = 1e-4, 0.9
MAX_TRIALS = 20
MEMORY = 6
"""Steps that are remembered."""
EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where the search stopped."""

    x: Floats  # [n], the best point
    gradient: Floats  # float64, there; after `train` that of the merged weights
    trace: tuple[float, ...]  # The objective before the first step and after every step
    converged: bool  # Whether it converged
    stop_reason: str
    n_evaluations: int  # How often the objective was computed


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during the search, after its first step."""

    def __init__(self, found: Minimum) -> None:
        super().__init__()
        self.found = found


def minimise(  # noqa: C901 - one search
    objective: Function,
    start: Floats,
    *,
    known: tuple[float, Floats] | None = None,
    scale: Floats | None = None,
    max_iter: int = 200,
    tol: float = 1e-5,
    callback: Callable[[int, float, Floats], str | None] | None = None,
) -> Minimum:
    """Minimise a smooth function."""
    # start float64 [n]; `known`: the objective and its gradient there, else they are computed
    # scale float64 [n], larger than 0: the search goes by coordinates that are this many times as
    # large. With the square root of the second derivatives, all of them become 1. By default 1
    scale = np.ones_like(start) if scale is None else scale
    x, n_evaluations = start.copy(), int(known is None)
    value, gradient = known or objective(x)
    trace, past = [value], _Past(gradient, scale)
    direction, at = np.empty_like(start), np.empty_like(start)
    if not np.isfinite([value, past.square, scale.max(initial=1.0)]).all():
        raise InputError(
            "training: the objective is not finite at the start: values of features, weights "
            "of items or the weights to begin with are too large"
        )

    def minimum(reason: str) -> Minimum:
        return Minimum(x, past.gradient, tuple(trace), reason == "tol", reason, n_evaluations)

    try:
        for iteration in range(1, max_iter + 1):
            slope = past.direction(direction)
            if not slope < 0:  # the memory is of no use any more
                past.forget()
                slope = past.direction(direction)
                if slope == 0:
                    return minimum("tol")
            first = 1.0 if past.pairs else min(1.0, 1.0 / np.sqrt(-slope))
            found = _line_search(objective, x, trace[-1], slope, direction, first, at)
            n_evaluations += found.n_evaluations
            if found.length == 0:  # at the optimum only the last digits move
                promised = -slope * first / max(1.0, abs(trace[-1]))
                return minimum("tol" if promised <= max(tol, EPSILON) else "line search")
            step = past.go(x, direction, found.length, found.gradient)
            trace.append(found.value)
            past.remember(step)
            stop = callback(iteration, trace[-1], x) if callback else None
            if stop:
                return minimum(stop)
            least = tol * max(1.0, abs(trace[-1]))
            if len(trace) > 10 and trace[-11] - trace[-1] <= least:  # over the last ten steps
                return minimum("tol")
    except KeyboardInterrupt:
        if len(trace) == 1:
            raise
        raise Interrupted(minimum("interrupted")) from None
    return minimum("max_iter")


class _Past:
    """The last steps, how each changed the gradient, and the inner products of all these vectors.

    The direction of L-BFGS is a weighted sum of them, whose weights the products alone decide
    (Chen et al. 2014): every vector is read once for the products and once for the sum,
    where the usual two loops read and write the direction after every vector.
    All are kept in the scaled coordinates of `minimise`.
    """

    def __init__(self, gradient: Floats, scale: Floats) -> None:
        self._scale, self._places = scale, MEMORY + 1  # one place for the step that comes next
        self._gradient = 2 * self._places
        self._table = np.empty((2 * self._places + 1, len(gradient)))
        first = np.divide(gradient, scale, out=self._table[self._gradient])
        self._product = np.zeros((len(self._table), len(self._table)))
        self.square = self._product[self._gradient, self._gradient] = dot(first, first)
        self.pairs: list[int] = []

    @property
    def gradient(self) -> Floats:
        """The gradient at the last point, float64 [n]; a copy."""
        return np.asarray(self._table[self._gradient] * self._scale)

    def forget(self) -> None:
        """Keep the gradient alone."""
        self.pairs.clear()

    def direction(self, out: Floats) -> float:
        """Set `out` to the direction to go, float64 [n]; return the slope along it."""
        rows, kept = self._rows(), len(self.pairs)
        product = self._product[np.ix_(rows, rows)]  # of steps, then changes, then the gradient
        weight, alpha = np.zeros(len(rows)), np.zeros(kept)
        weight[-1] = -1.0
        for n in reversed(range(kept)):
            alpha[n] = product[n] @ weight / product[n, kept + n]
            weight[kept + n] -= alpha[n]
        if kept:
            last = 2 * kept - 1
            weight *= product[kept - 1, last] / product[last, last]
        for n in range(kept):
            weight[n] += alpha[n] - product[kept + n] @ weight / product[n, kept + n]
        return float(combine(self._table, rows, weight, self._scale, out))

    def go(self, x: Floats, direction: Floats, length: float, gradient: Floats) -> int:
        """Add a step to x, float64 [n]; return the place where it is noted."""
        step = next(place for place in range(self._places) if place not in self.pairs)
        there = self._gradient, step, step + self._places
        curvature = take_step(x, self._scale, self._table, *there, direction, length, gradient)
        if curvature > 1e-300:
            self.pairs = [*self.pairs, step][-MEMORY:]
        return step

    def remember(self, step: int) -> None:
        """Compute the products of what a step has changed."""
        three = np.array([step, step + self._places, self._gradient])
        rows = self._rows()
        found = np.empty((len(rows), 3))
        products(self._table, rows, three, found)
        self._product[np.ix_(rows, three)] = found
        self._product[np.ix_(three, rows)] = found.T

    def _rows(self) -> NDArray[np.int64]:
        """Return the rows of the table that count, the gradient's last."""
        return np.array([*self.pairs, *(p + self._places for p in self.pairs), self._gradient])


@dataclass(frozen=True, eq=False)
class _Found:
    length: float
    value: float
    gradient: Floats
    n_evaluations: int


def _line_search(
    objective: Function,
    x: Floats,
    value: float,
    slope: float,
    direction: Floats,
    length: float,
    at: Floats,
) -> _Found:
    """Find a step that decreases enough and flattens enough, by bracketing and cubic steps."""
    # `at` is room for the points that are tried
    low, low_value, low_slope = 0.0, value, slope
    high: float = np.inf
    best: Any = _Found(0.0, value, direction, 0)
    for trial in range(1, MAX_TRIALS + 1):
        add_multiple(x, length, direction, at)
        new, gradient = objective(at)
        steep = dot(gradient, direction) if np.isfinite(new) else np.inf
        enough = np.isfinite(new) and new <= value + DECREASE * length * slope
        if enough and abs(steep) <= -CURVATURE * slope:
            return _Found(length, new, gradient, trial)
        if enough and new < best.value:
            best = _Found(length, new, gradient.copy(), trial)
        if not enough or new >= low_value:
            high = length
        elif steep >= 0:
            high, low, low_value, low_slope = low, length, new, steep
        else:
            low, low_value, low_slope = length, new, steep
        if np.isinf(high):
            length *= 2.0
            continue
        guess = _parabola(low, low_value, low_slope, length, new) if length != low else np.nan
        width = high - low
        inner, outer = sorted((low + 0.1 * width, low + 0.9 * width))
        length = float(guess) if inner <= guess <= outer else (low + high) / 2
    return _Found(best.length, best.value, best.gradient, MAX_TRIALS)


def _parabola(low: float, low_value: float, low_slope: float, at: float, value: float) -> float:
    """Return the minimum of the parabola through a point with its slope and another point."""
    width = at - low
    bend = value - low_value - low_slope * width
    return low - low_slope * width**2 / (2 * bend) if bend > 0 else float("nan")


# --------------------------------------------------------------------------------------------------
# The objective of a chain model and its gradient (docs/math.md, section 5).


ENTRIES_PER_SHARD = 1 << 18
MAX_SHARDS = 8
ALL = np.zeros((0, 0), np.bool_)
"""Nothing is forbidden."""


class Part(NamedTuple):
    """A shard of items and the passes over them, each with its weights and allowed tags."""

    features: Features
    passes: tuple[Clamp, ...]  # Whose `allowed` is empty where all tags are
    by_length: NDArray[np.int32]  # [n_items], items that have tokens, the longest first


def cut(features: Features, passes: Sequence[Clamp]) -> list[Part]:
    """Cut items into shards of about equal work; depends on the input only."""
    n_items = len(features.offsets) - 1
    n_shards = min(_n_shards(features), max(1, n_items))
    work = features.bounds[features.offsets - features.offsets[0]] - features.bounds[0]
    edges = np.searchsorted(work, work[-1] * np.arange(1, n_shards) // n_shards)
    edges = np.unique(np.concatenate([[0], edges, [n_items]]))
    parts = []
    for a, b in pairwise(edges.tolist()):
        tokens = slice(*(features.offsets[[a, b]] - features.offsets[0]))
        own = (Clamp(one.allowed[tokens], one.weight[a:b]) for one in passes)
        kept = tuple(one for one in own if one.weight.any())
        by_length = longest_first(np.diff(features.offsets[a : b + 1]))
        parts.append(Part(features.items(a, b).compact(), kept, by_length))
    return parts


class Expected(NamedTuple):
    """What a shard of items expects."""

    log_z: float  # The weighted sum of ln Z over items and passes
    share: Floats  # [n_tokens, J], of the tokens
    chain: Floats  # [J + J * J + J], of first tags, steps and last tags
    dense: Floats  # [D, J], of the dense features


def expect(part: Part, params: tuple[Floats, ...]) -> Expected:
    """Do the forward-backward of some items."""
    state, start, step, end = params
    f, n_labels = part.features, len(start)
    share = np.zeros((f.n_tokens, n_labels))
    counts = Weights.zeros(0, n_labels)
    log_z = 0.0
    words = (f.offsets, f.bounds, f.ids, f.values, f.dense_scores(state))
    chain, out = (state, start, step, end), (share, counts.start, counts.step, counts.end)
    for allowed, weight in part.passes:
        rest = weight
        if not len(allowed):
            order, left = part.by_length[weight[part.by_length] != 0], np.zeros(len(weight), bool)
            log_z += expected_lanes(order, *words, weight, *chain, *out, left)
            rest = np.where(left, weight, 0.0)
        if rest.any():
            log_z += expected_step(*words, rest, allowed, *chain, *out)
    dense = np.zeros((f.n_dense, n_labels))
    if f.n_dense:
        dense_counts(f.vectors, f.rows, share, dense)
    return Expected(log_z, share, counts.vector, dense)


@dataclass(frozen=True, eq=False)
class _Slice:
    """A shard of features, from the first to the one before the last."""

    columns: Columns
    root: Floats
    target: Floats
    first: int
    last: int


class Objective:
    """Computes -L(w) and its gradient for the merged weights."""

    def __init__(
        self, merged: Merged, targets: Targets, masks: Masks, c2: float, runner: Runner, bias: bool
    ) -> None:
        self._shape = len(merged.root), targets.counts.n_labels
        self._root, self._masks, self._n_dense = merged.root, masks, merged.features.n_dense
        self._c2, self._runner, self._bias = c2, runner, bias
        known = [Clamp(one.allowed, -one.weight) for one in targets.clamps]
        self._parts = cut(merged.features, [Clamp(ALL, targets.weight), *known])
        self.target = targets.counts.vector
        with np.errstate(over="ignore", invalid="ignore"):  # the search refuses what is not finite
            self.scale = _scale(merged, targets, c2)
        state = Weights.of_vector(self.target, *self._shape).state
        self._chain_target = self.target[state.size :]
        self._slices = [
            _Slice(merged.columns.between(a, b), merged.root[a:b], state[a:b], a, b)
            for a, b in merged.columns.cut(_n_shards(merged.features))
        ]
        self._gradient, self._state = np.empty_like(self.target), np.empty_like(state)

    def __call__(self, vector: Floats) -> tuple[float, Floats]:
        """Return value and gradient at a point; the gradient is overwritten by the next call."""
        weights = Weights.of_vector(vector, *self._shape)
        state = np.multiply(weights.state, self._root[:, None], out=self._state)
        params = (state, *self._masks.exponentials(weights))
        found = self._runner.map(expect, self._parts, params)
        share = np.concatenate([one.share for one in found])
        rows = self._runner.map(_gradient, self._slices, (share, weights.state, self._c2))
        value = sum(one.log_z for one in found) + sum(terms for terms, _ in rows)
        for one, (_, row) in zip(self._slices, rows, strict=True):
            out = Weights.of_vector(self._gradient, *self._shape).state
            out[one.first : one.last] = row
        if self._n_dense:  # their columns are empty: the rows have the penalty and the targets
            out = Weights.of_vector(self._gradient, *self._shape).state[-self._n_dense :]
            out += sum(one.dense for one in found)
        return value + self._of_chain(vector, found), self._gradient

    def _of_chain(self, vector: Floats, found: Sequence[Expected]) -> float:
        """Write the gradient of the weights of steps; return their terms."""
        n_state = self._shape[0] * self._shape[1]
        own, out = vector[n_state:], self._gradient[n_state:]
        out[:] = sum(one.chain for one in found)
        out += 2.0 * self._c2 * own - self._chain_target
        if not self._bias:
            ends = Weights.of_vector(out, 0, self._shape[1])
            ends.start[:] = 0.0
            ends.end[:] = 0.0
        return float(self._c2 * dot(own, own) - dot(self._chain_target, own))


def _gradient(one: _Slice, params: tuple[Floats, Floats, float]) -> tuple[float, Floats]:
    share, weights, c2 = params
    out = np.empty_like(one.target)
    own = weights[one.first : one.last]
    terms = gradient_step(*one.columns, one.root, share, one.target, own, c2, out)
    return float(terms), out


LEAST_VARIANCE = 0.003
"""Of a tag among the tokens of a feature; between .001 and .01 it made no difference."""


def _scale(merged: Merged, targets: Targets, c2: float) -> Floats:
    """Return the fourth root of the second derivatives of the objective, about, float64 [n]."""
    features, counts = merged.features, targets.counts
    known = targets.weight - sum(one.weight for one in targets.clamps)  # of items known as a whole
    weight, known = (np.repeat(w, np.diff(features.offsets)) for w in (targets.weight, known))
    one = weight.sum() / max(1, np.count_nonzero(weight)) or 1.0  # the weight of one token more
    tags = counts.start + counts.step.sum(axis=0) + one
    shares = tags / tags.sum()
    scale = Weights.of_vector(counts.vector, len(merged.root), len(tags))

    size = n_known = _sizes(merged, weight, 2)
    if targets.clamps or len(features.values) or features.n_dense:
        n_known = _sizes(merged, known, 1)
        n_sparse = len(merged.root) - features.n_dense
        n_positive = n_sparse if features.values.min(initial=0) >= 0 else 0
        n_known[n_positive:] = scale.state[n_positive:] = 0.0
    p, root = scale.state, merged.root[:, None]
    p /= root
    p += one * shares
    p /= n_known + one
    p *= 1.0 - p
    np.maximum(p, LEAST_VARIANCE, out=p)
    p *= size * root**2
    for part, prior in (
        (scale.start, shares), (scale.step, np.outer(shares, shares)), (scale.end, shares)
    ):  # fmt: skip
        p = (part + one * prior) / (known.sum() + one)
        part[:] = one + weight.sum() * p * (1.0 - p)
    found = scale.vector
    found += 2.0 * c2
    found[found <= 0] = 1.0
    return np.asarray(np.sqrt(np.sqrt(found, out=found), out=found))


def _sizes(merged: Merged, weight: Floats, power: int) -> Floats:
    """Sum a power of the features' values over their tokens, float64 [n_groups, 1]."""
    # Dense features have theirs for squares only
    # weight float64 [n_tokens]
    features = merged.features
    values = features.values**power
    if len(values):  # what does not count may be anything, infinite squares too
        values[np.repeat(weight == 0, np.diff(features.bounds))] = 0.0
    sizes = np.zeros((len(merged.root), 1))
    target_step(features.bounds, features.ids, values, weight[:, None], sizes)
    if features.n_dense and power == 2:
        rows = np.bincount(features.rows, weight, len(features.vectors))
        squares = np.einsum("r,rd,rd->d", rows, features.vectors, features.vectors)
        sizes[-features.n_dense :, 0] = squares
    return sizes


def _n_shards(features: Features) -> int:
    return int(np.clip(len(features.ids) // ENTRIES_PER_SHARD, 1, MAX_SHARDS))


# --------------------------------------------------------------------------------------------------
# Training a linear-chain CRF on hard, soft or partial targets (docs/math.md, section 5).


__all__ = ["Clamp", "Masks", "Targets", "check_paths", "train"]

Callback = Callable[[int, float, Callable[[], Weights]], str | None]
"""Called after every step: its number, the objective, and a function that returns the weights."""


def train(
    features: Features,
    targets: Targets,
    masks: Masks,
    *,
    c2: float,
    runner: Runner,
    start: Weights | None = None,
    max_iter: int = 200,
    tol: float = 1e-5,
    callback: Callback | None = None,
    bias: bool = True,
) -> tuple[Weights, Minimum]:
    """Find the weights of largest penalised likelihood."""
    require("c2", c2, Number(0, MOST))
    check_paths(features, targets, masks)
    merged = Merged.of(features, len(targets.counts.state))
    n_labels = targets.counts.n_labels
    if n_labels == 1:  # there is nothing to learn
        nothing = Weights.zeros(*targets.counts.state.shape)
        zeros = nothing.vector
        return nothing, Minimum(zeros, zeros, (0.0,), True, "tol", 0)  # noqa: FBT003
    first = Weights.zeros(len(merged.root), n_labels)
    begin = first.vector if start is None else merged.join(start)
    if not bias:
        ends = Weights.of_vector(begin, len(merged.root), n_labels)
        ends.start[:] = ends.end[:] = 0.0

    def expand(vector: Floats) -> Weights:
        return merged.split(vector, n_labels)

    def report(step: int, value: float, vector: Floats) -> str | None:
        return callback(step, value, lambda: expand(vector)) if callback else None

    objective = Objective(merged, targets.merged(merged), masks, c2, runner, bias)
    try:
        found = minimise(
            objective, begin, scale=objective.scale, max_iter=max_iter, tol=tol, callback=report
        )
    except Interrupted as stop:
        weights = expand(stop.found.x)
        raise Interrupted(replace(stop.found, x=weights.vector)) from None
    weights = expand(found.x)
    return weights, replace(found, x=weights.vector)


class Point(NamedTuple):
    """Where the search of a CRF stopped, to go on from with other targets."""

    weights: Floats  # [n], of the merged features
    value: float  # -L(w) there, without what the targets add
    gradient: Floats  # [n], likewise


def go_on(
    merged: Merged, targets: Targets, masks: Masks, before: Point | None,
    *, c2: float, runner: Runner, steps: int,
) -> Point:  # fmt: skip
    """Do some steps from where an earlier search stopped: -L(w) is linear in the targets."""
    objective = Objective(merged, targets, masks, c2, runner, bias=True)
    target, known = objective.target, None
    begin = np.zeros_like(target) if before is None else before.weights
    if before is not None:
        known = before.value - dot(target, begin), before.gradient - target
    found = minimise(objective, begin, known=known, scale=objective.scale, max_iter=steps, tol=0.0)
    return Point(found.x, found.trace[-1] + dot(target, found.x), found.gradient + target)


def check_paths(features: Features, targets: Targets, masks: Masks) -> None:
    """Check that some possible sequence agrees with what is known of every item."""
    for clamp in targets.clamps:
        chain = (masks.start, masks.step, masks.end)
        item = first_without_path(features.offsets, clamp.weight, clamp.allowed, *chain)
        if item >= 0:
            raise InputError(
                f"item {item}: no possible sequence agrees with the tags that are known of it: "
                "make them well-formed, or allow any sequence with hard=False"
            )


# --------------------------------------------------------------------------------------------------
# Early stopping on a held-out set, and progress: called by the optimiser after every step.


EVERY = 10
"""Steps between two scores on the held-out set."""


class EarlyStopping:
    """Keeps the weights that did best on the held-out set."""

    def __init__(
        self, crf: CRF, validation: tuple[Any, Any] | None, progress: Progress | None
    ) -> None:
        self._crf, self._progress = crf, progress
        self._began = time.monotonic()
        self._items = None if validation is None else transform(crf.features_, validation[0])
        self._truth = None if validation is None else validation[1]
        self._best: Weights | None = None
        self._best_score, self._rounds_without = -1.0, 0

    def __call__(self, step: int, value: float, weights_of: Callable[[], Weights]) -> str | None:
        """Score the weights after every tenth step; return "validation" to stop."""
        if self._progress:
            seconds = (time.monotonic() - self._began) / step
            most = self._crf.max_iter
            self._progress(step, most, value, seconds * (most - step))
        if self._items is None or step % EVERY:
            return None
        weights = weights_of()
        score = self._score(weights)
        if score > self._best_score:
            self._best_score, self._rounds_without = score, 0
            self._best = weights
            return None
        self._rounds_without += 1
        return "validation" if self._rounds_without >= self._crf.patience else None

    def better_than(self, weights: Weights) -> Weights | None:
        """Return the best weights seen if they do better on the held-out set than these."""
        if self._best is None or self._score(weights) >= self._best_score:
            return None
        return self._best

    def _score(self, weights: Weights) -> float:
        assert self._items is not None
        crf = self._crf
        potentials = potentials_of(self._items, weights, Masks.of(crf.codec_, hard=crf.hard))
        return score_tags(self._truth, best_path(potentials, crf.codec_), crf.codec_)


# --------------------------------------------------------------------------------------------------
# The linear-chain conditional random field (Lafferty et al. 2001).


class CRF(FeatureTagger):
    r"""A linear-chain CRF.

    Args:
        templates: A named set ("default", "rodrigues"), a TOML file, or a list of templates; unused
            for dictionaries of features.
        encoding: Of the tags: BIO, IOBES, … or PLAIN.
        c2: Penalty of the squared weights, at most 1e12; the Gaussian prior has variance
            1 / (2 c2).
        bias: Whether the first and the last tag have weights of their own.
        max_iter: Most steps of L-BFGS.
        tol: Relative decrease of the objective over ten steps at which to stop.
        patience: With a validation set: rounds of ten steps without a better F1 before it stops.
        vectors: A model of Hugging Face or a folder with one, whose vectors of the words are
            features beside the templates' (`goldspan.tagger.network`); it does not learn. Needs the
            extra `encoder`, now and whenever the tagger is used.

    Attributes:
        trace_: Minus the penalised log-likelihood after every step.
        converged_: Whether it converged.
        stop_reason_: Why training stopped: "tol", "max_iter", "validation", "line search", or
            "interrupted".
        n_repaired_: Malformed training tags that were made well-formed (with `hard`).

    >>> tagger = CRF().fit([["Rome", "wins"], ["Kim", "Lee", "wins"]],
    ...                    [["B-LOC", "O"], ["B-PER", "I-PER", "O"]])
    >>> tagger.predict([["Rome", "wins"]])
    [['B-LOC', 'O']]
    """

    name = "crf"

    c2: Annotated[float, Number(0, MOST)] = 0.5
    bias: bool = True
    max_iter: Rounds = 200
    tol: Annotated[float, Number(0)] = 1e-5
    patience: Annotated[int, Whole(1)] = 3
    vectors: str | None = None

    def _vectors(self) -> str | None:
        return self.vectors

    def fit_targets(
        self,
        features: Features,
        targets: Targets,
        *,
        start: CRF | None = None,
        validation: tuple[Any, Any] | None = None,
        runner: Runner | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Train on soft targets; `codec_` and `features_` must be set. For other methods."""
        self._check()
        begin = None
        if start is not None:
            known = (start.weights_, start.features_, start.codec_)
            begin = carry(*known, self.features_, self.codec_)
        stopping = EarlyStopping(self, validation, progress)
        try:
            weights, found = train(
                features,
                targets,
                Masks.of(self.codec_, hard=self.hard),
                c2=self.c2,
                runner=runner or Serial(),
                start=begin,
                max_iter=self.max_iter,
                tol=self.tol,
                callback=stopping,
                bias=self.bias,
            )
        except Interrupted as stop:
            shape = self.features_.n_features, len(self.codec_.tags)
            self._keep(Weights.of_vector(stop.found.x, *shape), stop.found)
            raise
        self._keep(stopping.better_than(weights) or weights, found)
        return self

    def _keep(self, weights: Weights, found: Minimum) -> None:
        self.weights_ = weights
        self.trace_ = found.trace
        self.converged_ = found.converged
        self.stop_reason_ = found.stop_reason
