"""Numbers from a crowd: the mean or the median of an item's answers.

With weights="agreement" workers count by their precision, and values and weights alternate; see
`goldspan.aggregate.numeric.precision`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.aggregate.base import Aggregator, Given
from goldspan.aggregate.bsc.engine import Stopping
from goldspan.aggregate.consensus import Consensus
from goldspan.aggregate.numeric.numbers import (
    Groups,
    check_single,
    divide,
    label_numbers,
    nearest_label,
    weighted_mean,
    weighted_median,
)
from goldspan.aggregate.numeric.precision import Answers, error_sums, lay_out, precision
from goldspan.aggregate.weighted.ballots import Ballots
from goldspan.aggregate.weighted.base import unused_notes
from goldspan.aggregate.weighted.rounds import AT_ONCE, Course, run_rounds
from goldspan.crowd import Crowd
from goldspan.errors import InputError, UnknownNameError
from goldspan.tagger.parameters import check_number, check_whole

WEIGHTS = ("equal", "agreement")


class _Numeric(Aggregator):
    """What mean and median share."""

    weights: str
    tolerance: float | None
    tol: float
    max_iter: int
    history: Consensus | None

    def _check(self) -> None:
        """Refuse parameters that make no sense."""
        if self.weights not in WEIGHTS:
            raise UnknownNameError("weights", self.weights, WEIGHTS)
        if self.tolerance is not None:
            check_number("tolerance, if it is not None,", self.tolerance, 0)
        Stopping(self.tol, self.max_iter)
        check_whole("max_iter", self.max_iter, 1)
        if self.history is not None and getattr(self.history, "values", None) is None:
            raise InputError(f"{self.name}: history must be a result of mean or median")

    def _middle(self, groups: Groups, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the middle of every group, NaN if empty."""
        raise NotImplementedError  # pragma: no cover

    def _aggregate(self, crowd: Crowd, given: Given) -> Consensus:
        check_single(crowd, self.name)
        numbers = label_numbers(crowd.tagset, self.name)
        answers = lay_out(crowd, numbers, given.known, self.history)
        weight, values, course = self._weigh(answers, given)
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
            found, trace=course.trace, converged=course.converged,
            stop_reason=course.stop_reason, notes=tuple(notes),
        )  # fmt: skip

    def _weigh(
        self, answers: Answers, given: Given
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], Course]:
        """Give weights [n_workers], values [n_items], and how the rounds went."""
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

        course = run_rounds(step, self.max_iter, given.progress)
        return weight, values, course

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

    def __init__(
        self,
        *,
        weights: str = "equal",
        trim: float = 0.0,
        tolerance: float | None = None,
        tol: float = 1e-6,
        max_iter: int = 100,
        history: Consensus | None = None,
    ) -> None:
        self.weights = weights
        self.trim = trim
        self.tolerance = tolerance
        self.tol = tol
        self.max_iter = max_iter
        self.history = history
        self._check()

    def _check(self) -> None:
        super()._check()
        check_number("trim", self.trim, 0, 0.49)

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

    def __init__(
        self,
        *,
        weights: str = "equal",
        tolerance: float | None = None,
        tol: float = 1e-6,
        max_iter: int = 100,
        history: Consensus | None = None,
    ) -> None:
        self.weights = weights
        self.tolerance = tolerance
        self.tol = tol
        self.max_iter = max_iter
        self.history = history
        self._check()

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
    confidence = np.nan_to_num(divide(groups.total(own * near), whole))
    confidence[~np.isnan(answers.known)] = 1
    spread = np.sqrt(divide(groups.total(own * error**2), whole) * divide(n, n - 1))
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
            "bias": pa.array(divide(total, counts)),
            "rmse": pa.array(np.sqrt(divide(squares, counts))),
            "weight": pa.array(weight),
        }
    )
