"""Labels as numbers, and weighted means and medians of many small groups of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregate.numeric.running import running_sums
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.spans import Codec

SHOWN = 5
"""Bad labels that a message lists."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Numbers in groups: the answers of items.

    Attributes:
        group: int64 [n_numbers].
        number: float64 [n_numbers].
        n_groups: Number of groups; some may be empty.
    """

    group: NDArray[np.int64]
    number: NDArray[np.float64]
    n_groups: int

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
        """Give where numbers begin and end in the weight of their group, from 0 to 1.

        Args:
            weight: float64 [n_numbers], positive.

        Returns:
            Two arrays, float64 [n_numbers], in the order of `order`.
        """
        sorted_weight = weight[self.order]
        whole = self.total(weight)[self.group[self.order]]
        end = running_sums(sorted_weight, self.bounds) / whole
        return end - sorted_weight / whole, end


def label_numbers(codec: Codec, method: str) -> NDArray[np.float64]:
    """Read labels as numbers, float64 [n_labels].

    Raises:
        InputError: Some are no finite numbers.
    """
    numbers = np.array([_number(tag) for tag in codec.tags])
    bad = [repr(codec.tags[i]) for i in np.flatnonzero(~np.isfinite(numbers)).tolist()]
    if bad:
        more = f" and {len(bad) - SHOWN} more" if len(bad) > SHOWN else ""
        raise InputError(
            f"{method} needs labels that are finite numbers, such as 3 or -0.5; these are none: "
            f"{', '.join(bad[:SHOWN])}{more}"
        )
    return numbers


def check_single(crowd: Crowd, method: str) -> None:
    """Refuse tagged tokens.

    Raises:
        InputError: The crowd does not consist of single labels.
    """
    if not crowd.is_classification:
        raise InputError(f"{method} is for single labels that are numbers, not for tagged tokens")


def nearest_label(values: NDArray[np.float64], numbers: NDArray[np.float64]) -> NDArray[np.int16]:
    """Give the label nearest to each value, the smaller of two; -1 for NaN.

    Args:
        values: float64 [n_items].
        numbers: float64 [n_labels].

    Returns:
        int16 [n_items].
    """
    order = np.argsort(numbers, kind="stable")
    middles = (numbers[order][1:] + numbers[order][:-1]) / 2
    found = order[np.searchsorted(middles, np.nan_to_num(values), side="left")]
    return np.where(np.isnan(values), -1, found).astype(np.int16)


def weighted_mean(
    groups: Groups, weight: NDArray[np.float64], trim: float = 0.0
) -> NDArray[np.float64]:
    """Give the mean of every group without its outer parts, float64 [n_groups]; NaN if empty.

    Args:
        groups: The numbers.
        weight: float64 [n_numbers], positive.
        trim: Share of a group's weight that is cut off at either end, below 0.5; a number on the
            edge counts with the part that is left of it.
    """
    number = groups.number
    if trim > 0:
        start, end = groups.ranks(weight)
        left = np.minimum(end, 1 - trim) - np.maximum(start, trim)
        weight = np.empty_like(left)
        weight[groups.order] = np.maximum(left, 0)
    return divide(groups.total(weight * number), groups.total(weight))


def weighted_median(groups: Groups, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the lower median of every group, float64 [n_groups]; NaN if empty.

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


def divide(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide element by element; NaN where the whole is 0."""
    empty = np.full(len(whole), np.nan)
    return np.asarray(np.divide(part, whole, out=empty, where=whole > 0))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan
