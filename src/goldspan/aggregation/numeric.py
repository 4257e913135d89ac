"""Labels that are numbers: mean and median, plain and with the precision of each worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan._kernel import kernel
from goldspan.aggregation.base import Aggregator, FitContext
from goldspan.aggregation.consensus import Consensus
from goldspan.aggregation.weighted import AT_ONCE, Ballots, RoundTrace, run_rounds, unused_notes
from goldspan.crowd import Crowd
from goldspan.crowd.measures import share
from goldspan.errors import InputError
from goldspan.params import Number, OneOf, Rounds, Tolerance
from goldspan.spans import Codec

# --------------------------------------------------------------------------------------------------
# Running sums within groups, each from nothing: no group's numbers touch those of another.


@kernel
def running_sums(values: NDArray[np.float64], bounds: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum up every group from its first number on."""
    # values float64 [n_numbers], group after group; bounds int64 [n_groups + 1]
    # returns float64 [n_numbers]
    found = np.empty(len(values))
    for group in range(len(bounds) - 1):
        total = 0.0
        for at in range(bounds[group], bounds[group + 1]):
            total += values[at]
            found[at] = total
    return found


# --------------------------------------------------------------------------------------------------
# Labels as numbers, and weighted means and medians of many small groups of them.


SHOWN = 5
"""Bad labels that a message lists."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Numbers in groups: the answers of items."""

    group: NDArray[np.int64]  # [n_numbers]
    number: NDArray[np.float64]  # [n_numbers]
    n_groups: int  # Number of groups; some may be empty

    def total(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum values over every group, float64 [n_groups]."""
        return np.bincount(self.group, values, self.n_groups).astype(np.float64, copy=False)

    @cached_property
    def size(self) -> NDArray[np.int64]:
        """Numbers of every group, int64 [n_groups]."""
        return np.bincount(self.group, minlength=self.n_groups).astype(np.int64, copy=False)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """The numbers sorted by group, then by size, int64 [n_numbers]."""
        return np.lexsort((self.number, self.group)).astype(np.int64, copy=False)

    @cached_property
    def bounds(self) -> NDArray[np.int64]:
        """Where groups begin in `order`, and the end of the last, int64 [n_groups + 1]."""
        return np.concatenate([[0], np.cumsum(self.size)])

    def ranks(self, weight: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return where numbers begin and end in the weight of their group, from 0 to 1."""
        # weight float64 [n_numbers], positive
        sorted_weight = weight[self.order]
        whole = self.total(weight)[self.group[self.order]]
        end = running_sums(sorted_weight, self.bounds) / whole
        return end - sorted_weight / whole, end


def label_numbers(codec: Codec, method: str) -> NDArray[np.float64]:
    """Read labels as numbers, float64 [n_labels]."""
    numbers = np.array([_number(tag) for tag in codec.tags])
    bad = [repr(codec.tags[i]) for i in np.flatnonzero(~np.isfinite(numbers)).tolist()]
    if bad:
        more = f" and {len(bad) - SHOWN} more" if len(bad) > SHOWN else ""
        raise InputError(
            f"{method} needs labels that are finite numbers, such as 3 or -0.5; these are not: "
            f"{', '.join(bad[:SHOWN])}{more}"
        )
    return numbers


def check_single(crowd: Crowd, method: str) -> None:
    """Reject tagged tokens."""
    if not crowd.is_classification:
        raise InputError(f"{method} is for single labels that are numbers, not for tagged tokens")


def nearest_label(values: NDArray[np.float64], numbers: NDArray[np.float64]) -> NDArray[np.int16]:
    """Return the label nearest to each value, the smaller of two; -1 for NaN."""
    # values float64 [n_items]; numbers float64 [n_labels]; returns int16 [n_items]
    order = np.argsort(numbers, kind="stable")
    middles = (numbers[order][1:] + numbers[order][:-1]) / 2
    found = order[np.searchsorted(middles, np.nan_to_num(values), side="left")]
    return np.where(np.isnan(values), -1, found).astype(np.int16)


def weighted_mean(
    groups: Groups, weight: NDArray[np.float64], trim: float = 0.0
) -> NDArray[np.float64]:
    """Return the mean of every group without its outer parts, float64 [n_groups]; NaN if empty."""
    # weight float64 [n_numbers], positive
    number = groups.number
    if trim > 0:
        start, end = groups.ranks(weight)
        left = np.minimum(end, 1 - trim) - np.maximum(start, trim)
        weight = np.empty_like(left)
        weight[groups.order] = np.maximum(left, 0)
    return share(groups.total(weight * number), groups.total(weight))


def weighted_median(groups: Groups, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lower median of every group, float64 [n_groups]; NaN if empty.

    The smallest number up to which half of the weight lies: always one of the numbers.
    """
    _, end = groups.ranks(weight)
    reached = end >= 0.5 - 1e-12
    at = np.flatnonzero(reached)
    owner = groups.group[groups.order][at]
    first = at[np.unique(owner, return_index=True)[1]]
    found = np.full(groups.n_groups, np.nan)
    found[groups.group[groups.order][first]] = groups.number[groups.order][first]
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


# --------------------------------------------------------------------------------------------------
# How precise workers are with numbers, by the distances of their answers from the values.


SHRINKAGE = 2.0
"""Answers that the pool's variance counts as in a worker's."""


@dataclass(frozen=True, eq=False)
class Answers:
    """The numbers that were answered."""

    ballots: Ballots  # Who gave which label to which item
    groups: Groups  # The same as numbers by item
    known: NDArray[np.float64]  # [n_items], known values, NaN unknown
    # Sums of squared errors and counts of an earlier result, float64 [2, n_workers]
    past: NDArray[np.float64]

    def errors(self, values: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return distances from the values, [n_answers], and which of them say something.

        A lone answer is its item's value: its distance says nothing, unless the truth is known.
        """
        token = self.ballots.token
        tells = (self.groups.size > 1) | ~np.isnan(self.known)
        return self.groups.number - values[token], tells[token]


def lay_out(
    crowd: Crowd, numbers: NDArray[np.float64], known: NDArray[np.int16] | None,
    history: Consensus | None,
) -> Answers:  # fmt: skip
    """Read answers, known truth and an earlier result as numbers."""
    ballots = Ballots.of(crowd)
    groups = Groups(ballots.token, numbers[ballots.label], crowd.n_items)
    truth = np.full(crowd.n_items, np.nan)
    if known is not None:
        truth[known >= 0] = numbers[known[known >= 0]]
    past = np.zeros((2, crowd.n_workers))
    if history is not None:
        squares, counts = error_sums(history, np.square)
        place = pc.index_in(crowd.worker_ids, value_set=history.crowd.worker_ids)
        index = pc.fill_null(place, -1).to_numpy(zero_copy_only=False)
        past = np.where(index >= 0, np.stack([squares, counts])[:, index], 0.0)
    return Answers(ballots, groups, truth, past)


def precision(
    answers: Answers, weight: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the workers' weights, 1 / variance, scaled to a mean of 1, float64 [n_workers]."""
    ballots = answers.ballots
    error, tells = answers.errors(values)
    own = weight[ballots.worker]
    part = np.where(np.isnan(answers.known)[ballots.token], own, 0)  # none in a known value
    rest = 1 - part / answers.groups.total(own)[ballots.token]
    square = np.divide(error**2, rest, out=np.zeros(len(error)), where=tells & (rest > 0))
    squares = ballots.per_worker(square) + answers.past[0]
    counts = ballots.per_worker(tells) + answers.past[1]
    if squares.sum() <= 0:
        return np.ones(len(counts))
    pool = squares.sum() / counts.sum()
    found = (counts + SHRINKAGE) / (squares + SHRINKAGE * pool)
    return np.asarray(found / found.mean())


def error_sums(result: Consensus, of: Callable[[Any], Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sum a function of the distances over every worker; also count them, [n_workers] each."""
    crowd, values = result.crowd, result.values
    assert values is not None
    ballots = Ballots.of(crowd)
    number = label_numbers(crowd.tagset, result.method)[ballots.label]
    tells = (ballots.per_token(None) > 1)[ballots.token]
    found = np.where(tells, of(number - values[ballots.token]), 0.0)
    return ballots.per_worker(found), ballots.per_worker(tells)


# --------------------------------------------------------------------------------------------------
# Numbers from a crowd: the mean or the median of an item's answers.


WEIGHTS = ("equal", "agreement")


def _check_history(history: Any) -> None:
    if getattr(history, "values", None) is None:
        raise InputError(f"history must be a result of mean or median, not {history!r}")


class _Numeric(Aggregator):
    """What mean and median share."""

    weights: Annotated[str, OneOf(WEIGHTS)] = "equal"
    tolerance: Annotated[float | None, Number(0)] = None
    tol: Tolerance = 1e-6
    max_iter: Rounds = 100
    history: Annotated[Consensus | None, _check_history] = None

    def _middle(self, groups: Groups, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the middle of every group, NaN if empty."""
        raise NotImplementedError  # pragma: no cover

    def _aggregate(self, crowd: Crowd, given: FitContext) -> Consensus:
        check_single(crowd, self.name)
        numbers = label_numbers(crowd.tagset, self.name)
        answers = lay_out(crowd, numbers, given.known, self.history)
        weight, values, rounds = self._weigh(answers, given)
        notes = [f"weights: {self.weights}"]
        if given.known is not None:
            notes.append(f"{int((given.known >= 0).sum())} known values")
        if self.history is not None and self.weights == "equal":
            notes.append("equal weights make no use of an earlier result")
        notes += unused_notes(self.name, given)
        n_open = int(np.isnan(values).sum())
        notes += [f"{n_open} items without answers are left open"] if n_open else []
        found = _result(answers, crowd, numbers, weight, values, self.tolerance)
        return replace(
            found, trace=rounds.trace, converged=rounds.converged,
            stop_reason=rounds.stop_reason, notes=tuple(notes),
        )  # fmt: skip

    def _weigh(
        self, answers: Answers, given: FitContext
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], RoundTrace]:
        """Return weights [n_workers], values [n_items], and how the rounds went."""
        weight = np.ones(answers.ballots.shape[1])
        values = self._values(answers, weight)
        if self.weights == "equal":
            return weight, values, AT_ONCE
        scale = max(float(np.nanstd(values)) if np.isfinite(values).any() else 0.0, 1e-300)

        def step(n: int) -> tuple[float, bool]:  # noqa: ARG001 - every round is alike
            nonlocal weight, values
            weight, before = precision(answers, weight, values), values
            values = self._values(answers, weight)
            change = np.nan_to_num(values - before)
            moved = float(np.sqrt((change**2).mean())) / scale
            return moved, moved <= self.tol

        rounds = run_rounds(step, self.max_iter, given.progress)
        return weight, values, rounds

    def _values(self, answers: Answers, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        found = self._middle(answers.groups, weight[answers.ballots.worker])
        return np.where(np.isnan(answers.known), found, answers.known)


class Mean(_Numeric):
    r"""The mean of an item's answers, for labels that are numbers.

    `values` of the result holds the means; its label is the nearest number that is a label, the
    smaller of two. `item_columns` also has `spread`, the standard deviation of the item's answers
    from the value (n - 1; NaN for a lone answer): over the root of their number it is the standard
    error of a mean with equal weights. The confidence of an item is the share of its weight within
    `tolerance` of the value. Known truth stands as it is.

    Args:
        weights: "equal", or "agreement": by the workers' precision.
        trim: Share of an item's weight that is cut off at either end before the mean.
        tolerance: Largest distance that counts as agreement in the confidence; None: the root mean
            square of the distances of all answers.
        tol: Of weights="agreement": change of the values at which to stop, in standard deviations.
        max_iter: Most rounds.
        history: An earlier result of `mean` or `median`: its distances count as that many more
            answers of a worker. Equal weights have no use for it.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,a,3\n1,b,4\n1,c,8\n2,a,1\n")
    >>> found = Mean().fit(crowd).result_
    >>> found.values.tolist(), found.labels
    ([5.0, 1.0], ['4', '1'])
    """

    name = "mean"

    trim: Annotated[float, Number(0, 0.49)] = 0.0

    def _middle(self, groups: Groups, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        return weighted_mean(groups, weight, self.trim)


class Median(_Numeric):
    r"""The lower weighted median of an item's answers, for labels that are numbers.

    It is always one of the answers, so that it suits ordinal labels too. The rest is as for `Mean`.

    Args:
        weights: As for `Mean`.
        tolerance: As for `Mean`.
        tol: As for `Mean`.
        max_iter: As for `Mean`.
        history: As for `Mean`.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,a,3\n1,b,4\n1,c,8\n2,a,1\n")
    >>> Median().fit_predict(crowd)
    [['4'], ['1']]
    """

    name = "median"

    def _middle(self, groups: Groups, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        return weighted_median(groups, weight)


def _result(
    answers: Answers, crowd: Crowd, numbers: NDArray[np.float64], weight: NDArray[np.float64],
    values: NDArray[np.float64], tolerance: float | None,
) -> Consensus:  # fmt: skip
    """Put labels, shares and spreads together."""
    ballots, groups = answers.ballots, answers.groups
    own = weight[ballots.worker]
    error, tells = answers.errors(values)
    if tolerance is None:
        tolerance = float(np.sqrt((error[tells] ** 2).mean())) if tells.any() else 0.0
    whole, n = groups.total(own), groups.size.astype(np.float64)
    near = np.abs(error) <= tolerance * (1 + 1e-9)
    confidence = np.nan_to_num(share(groups.total(own * near), whole))
    confidence[~np.isnan(answers.known)] = 1
    spread = np.sqrt(share(groups.total(own * error**2), whole) * share(n, n - 1))
    codes = nearest_label(values, numbers)
    shares = ballots.sums(own)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    shares[~np.isnan(answers.known)] = 0
    known = np.flatnonzero(~np.isnan(answers.known))
    shares[known, codes[known]] = 1
    given = shares[np.arange(len(codes)), codes]
    return Consensus(
        crowd=crowd,
        codes=codes,
        token_probs=shares.astype(np.float32),
        span_confidence=given[codes >= 0].astype(np.float32),
        confidence=np.clip(confidence, 0, 1).astype(np.float32),
        make_workers=partial(_workers, weight=weight),
        method="",
        item_columns={"value": values, "spread": spread},
    )


def _workers(result: Consensus, weight: NDArray[np.float64]) -> Any:
    """Per worker: answers, labels, bias and root mean square error against the values, weight.

    Lone answers are left out of bias and error.
    """
    crowd = result.crowd
    total, counts = error_sums(result, np.asarray)
    squares, _ = error_sums(result, np.square)
    labels = Ballots.of(crowd).per_worker(None).astype(np.int64)
    return pa.table(
        {
            "worker": crowd.worker_ids,
            "answers": pa.array(np.bincount(crowd.latest.worker, minlength=crowd.n_workers)),
            "labels": pa.array(labels),
            "bias": pa.array(share(total, counts)),
            "rmse": pa.array(np.sqrt(share(squares, counts))),
            "weight": pa.array(weight),
        }
    )
