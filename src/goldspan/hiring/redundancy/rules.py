"""When an item has answers enough: by the posterior, by votes, by the mean, or by number.

The plain rules are paper 003's (section 2, "Human Labeling"): ask on "until the average is stable
or a clear majority emerges". A posterior also weighs who answered, and mostly needs fewer answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregate.consensus import Consensus
from goldspan.aggregate.votes import vote_counts
from goldspan.crowd import Crowd
from goldspan.errors import InputError, UnknownNameError
from goldspan.hiring.redundancy.averages import mean_moves

UNITS = ("parts", "item")
ROUNDING = 1e-9
"""A mean that moves by 0.5 and this much more has moved by 0.5."""


class Rule(ABC):
    """A stopping rule; a subclass sets `name` and `reason` and says which items are finished.

    Attributes:
        name: Its name in the registry.
        reason: Why an item is finished, in a word or two.
        needs_result: Whether it looks at a result; rules on votes do without.
    """

    name: ClassVar[str]
    reason: ClassVar[str]
    needs_result: ClassVar[bool] = False

    @abstractmethod
    def finished(self, crowd: Crowd, result: Consensus | None = None) -> NDArray[np.bool_]:
        """Say which items have answers enough.

        Args:
            crowd: The answers so far.
            result: What they say, for the same items and tags; for rules that need it.

        Returns:
            bool [n_items]; an item without an answer is never finished.
        """


@dataclass(frozen=True)
class Confident(Rule):
    """The posterior of the item's labels has reached a threshold.

    Args:
        at: The threshold, above 0 and below 1.
        unit: "parts": every token and every span of the item must reach it; "item": all labels
            together must, which long items hardly ever do. For single labels they are the same.

    Raises:
        InputError: The threshold lies elsewhere.
        UnknownNameError: There is no such unit.
    """

    at: float = 0.95
    unit: str = "parts"

    name: ClassVar[str] = "confident"
    reason: ClassVar[str] = "confident"
    needs_result: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (_is_number(self.at) and 0 < self.at < 1):
            raise InputError(f"the confidence to stop at must lie between 0 and 1, not {self.at!r}")
        if self.unit not in UNITS:
            raise UnknownNameError("unit of confidence", self.unit, UNITS)

    def finished(self, crowd: Crowd, result: Consensus | None = None) -> NDArray[np.bool_]:
        """Say which items have reached the threshold.

        Raises:
            InputError: There is no result, or it holds shares of votes.
        """
        if result is None or result.entropy is None:
            by = "no result" if result is None else f"{result.method}, which gives shares of votes"
            raise InputError(
                f"confident needs probabilities, but has {by}: use ibcc, ds, one-coin or a bsc "
                "method, or the rule clear_majority"
            )
        known = item_confidence(result) if self.unit == "parts" else result.confidence
        return np.asarray((known >= self.at) & _answered(crowd))


@dataclass(frozen=True)
class ClearMajority(Rule):
    """At every token the first label is so many votes ahead of the second.

    Args:
        ahead: By how many votes.
        least: Fewest answers of an item.

    Raises:
        InputError: They are no whole numbers of at least 1.
    """

    ahead: int = 2
    least: int = 3

    name: ClassVar[str] = "clear_majority"
    reason: ClassVar[str] = "clear majority"

    def __post_init__(self) -> None:
        check_whole(self.ahead, "ahead")
        check_whole(self.least, "least")

    def finished(self, crowd: Crowd, result: Consensus | None = None) -> NDArray[np.bool_]:  # noqa: ARG002
        """Say which items have a clear majority."""
        votes = vote_counts(crowd)
        if votes.shape[1] > 1:
            top = np.partition(votes, -2, axis=1)[:, -2:]
            lead = top[:, 1] - top[:, 0]
        else:
            lead = votes[:, 0]
        closest = per_item(np.minimum, lead, crowd.offsets, np.iinfo(lead.dtype).max)
        return np.asarray((closest >= self.ahead) & (answer_counts(crowd) >= self.least))


@dataclass(frozen=True)
class StableAverage(Rule):
    """The mean of the item's numbers hardly moves any more: for numeric and ordinal labels.

    The n-th answer x moves the mean by |x - mean| / n. So the rule ends by itself after about
    (range of the numbers) / tolerance answers. One answer that is close to the mean by chance is no
    proof: `last` asks for two such answers, which did better than one in trials.

    Args:
        tolerance: How much an answer may move the mean, in the unit of the labels.
        least: Fewest answers of an item.
        last: How many of the last answers must each move it by no more.

    Raises:
        InputError: The tolerance is negative, or a count is no whole number of at least 1.
    """

    tolerance: float
    least: int = 3
    last: int = 2

    name: ClassVar[str] = "stable_average"
    reason: ClassVar[str] = "stable average"

    def __post_init__(self) -> None:
        if not (_is_number(self.tolerance) and 0 <= self.tolerance < np.inf):
            raise InputError(f"tolerance must be a number of at least 0, not {self.tolerance!r}")
        check_whole(self.least, "least")
        check_whole(self.last, "last")

    def finished(self, crowd: Crowd, result: Consensus | None = None) -> NDArray[np.bool_]:  # noqa: ARG002
        """Say which items have a stable average.

        Raises:
            InputError: The items are not single labels, or a label is no number.
        """
        counts = answer_counts(crowd)
        enough = counts >= max(self.least, self.last + 1)  # the first answer moves nothing
        return np.asarray(enough & (mean_moves(crowd, self.last) <= self.tolerance + ROUNDING))


@dataclass(frozen=True)
class Fixed(Rule):
    """A fixed number of answers.

    Raises:
        InputError: It is no whole number of at least 1.
    """

    k: int = 5

    name: ClassVar[str] = "fixed"
    reason: ClassVar[str] = "answers enough"

    def __post_init__(self) -> None:
        check_whole(self.k, "k")

    def finished(self, crowd: Crowd, result: Consensus | None = None) -> NDArray[np.bool_]:  # noqa: ARG002
        """Say which items have that many answers."""
        return np.asarray(answer_counts(crowd) >= self.k)


def item_confidence(result: Consensus) -> NDArray[np.float32]:
    """Give the confidence of the least certain token or span of every item, float32 [n_items].

    1 for items without tokens.
    """
    offsets = result.crowd.offsets
    least = per_item(np.minimum, result.token_confidence, offsets, 1.0)
    if not result.tagset.rules.is_plain:
        np.minimum.at(least, result.span_array.item, result.span_confidence)
    return np.asarray(least, np.float32)


def answer_counts(crowd: Crowd) -> NDArray[np.int64]:
    """Count the answers of every item that count, int64 [n_items]."""
    return np.diff(crowd.by_item.bounds)


def per_item(
    combine: np.ufunc, values: NDArray[Any], offsets: NDArray[np.int64], empty: Any
) -> NDArray[Any]:
    """Combine the values of every item's tokens; `empty` where an item has no token.

    >>> per_item(np.minimum, np.array([3, 1, 2]), np.array([0, 2, 2, 3]), 9).tolist()
    [1, 9, 2]
    """
    found = np.full(len(offsets) - 1, empty, values.dtype)
    filled = np.diff(offsets) > 0
    if filled.any():
        found[filled] = combine.reduceat(values, offsets[:-1][filled])
    return found


def check_whole(value: object, what: str, least: int = 1) -> None:
    """Refuse what is no whole number of at least `least`.

    Raises:
        InputError: It is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{what} must be a whole number of at least {least}, not {value!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _answered(crowd: Crowd) -> NDArray[np.bool_]:
    return answer_counts(crowd) > 0
