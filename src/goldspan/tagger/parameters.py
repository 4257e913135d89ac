"""Parameters of taggers and their weights."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError

# --------------------------------------------------------------------------------------------------
# Which numbers parameters may be: what is no number, or would leave the range of float64, raises.


MOST = 1e12
"""Of penalties, pseudo-counts and weights of items."""

FINITE = sys.float_info.max


def check_whole(name: str, value: Any, least: int, most: float = np.inf) -> None:
    """Reject what is no whole number from `least` to `most`; True and False are none.

    Raises:
        InputError: It is none.

    >>> check_whole("max_iter", 2.5, 1)
    Traceback (most recent call last):
    goldspan.errors.InputError: max_iter must be a whole number of at least 1, not 2.5
    """
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or not least <= value <= most:
        raise InputError(f"{name} must be a whole number {_range(least, most)}, not {value!r}")


def check_number(
    name: str, value: Any, least: float, most: float = FINITE, *, is_open: bool = False
) -> None:
    """Reject what is no finite number from `least` to `most`; True and False are none.

    Args:
        name: Of the parameter.
        value: What was given.
        least: The smallest number.
        most: The largest number.
        is_open: Whether it must lie above `least`.

    Raises:
        InputError: It is none.
    """
    numbers = int | float | np.integer | np.floating
    is_number = isinstance(value, numbers) and not isinstance(value, bool)
    if not is_number or not least <= value <= most or (is_open and value == least):
        allowed = _range(least, most, is_open=is_open)
        raise InputError(f"{name} must be a number {allowed}, not {value!r}")


def _range(least: float, most: float, *, is_open: bool = False) -> str:
    low = f"above {least:g}" if is_open else f"of at least {least:g}"
    return low if most >= FINITE else f"{low} and at most {most:g}"


# --------------------------------------------------------------------------------------------------
# The weights of a chain model, as one vector for the optimiser and as tables for the kernels.


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of features and of steps.

    Attributes:
        state: float64 [n_features, J].
        start: float64 [J], of the first tag.
        step: float64 [J, J], rows previous.
        end: float64 [J], of the last tag.
    """

    state: Floats
    start: Floats
    step: Floats
    end: Floats

    @classmethod
    def zeros(cls, n_features: int, n_labels: int) -> Weights:
        """Make weights of 0; all are views of one vector."""
        size = (n_features + n_labels + 2) * n_labels
        return cls.of_vector(np.zeros(size), n_features, n_labels)

    @classmethod
    def of_vector(cls, vector: Floats, n_features: int, n_labels: int) -> Weights:
        """See a vector as weights; nothing is copied."""
        ends = np.cumsum([n_features * n_labels, n_labels, n_labels**2, n_labels])
        state, start, step, end = np.split(vector, ends[:-1])
        return cls(
            state.reshape(n_features, n_labels), start, step.reshape(n_labels, n_labels), end
        )

    @property
    def vector(self) -> Floats:
        """All weights in one vector; a copy."""
        parts = (self.state, self.start, self.step, self.end)
        return np.concatenate([part.ravel() for part in parts])

    @property
    def n_labels(self) -> int:
        """Number of tags."""
        return len(self.start)
