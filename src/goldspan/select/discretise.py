"""Numbers become values: a bin rule is fitted on the pool, kept, and applied to new items.

Paper 003 rounds "to the nearest tens-digit (e.g. 12 was rounded to 10, 27 to 30)"; it leaves halves
open, and they go up here.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError, UnknownNameError

Floats = NDArray[np.float64]
_LOWEST = 1100.0
"""Added to exponents, so that those of tiny numbers are positive too."""


class Discretiser(ABC):
    """A rule that puts numbers into bins."""

    name: ClassVar[str]

    def fitted(self, numbers: Floats) -> Discretiser:  # noqa: ARG002 - most need not look
        """Give the rule as it is for the pool's numbers, float64 [n], none of them missing."""
        return self

    @abstractmethod
    def bins(self, numbers: Floats) -> Floats:
        """Give the bin of every number as a number, float64 [n]."""

    @abstractmethod
    def word(self, code: float) -> str:
        """Say what a bin holds."""

    @abstractmethod
    def __str__(self) -> str:
        """Write the rule as it is read."""


@dataclass(frozen=True)
class Nearest(Discretiser):
    """To the nearest multiple of a step, halves up.

    >>> Nearest(10).bins(np.array([12.0, 27.0, 25.0, -5.0])).tolist()
    [1.0, 3.0, 3.0, 0.0]
    """

    name: ClassVar[str] = "nearest"
    step: float = 10.0

    def __post_init__(self) -> None:
        if not 0 < self.step < math.inf:
            raise InputError(f"nearest: the step must be a positive number, not {self.step!r}")

    def bins(self, numbers: Floats) -> Floats:
        """Give the multiples."""
        return np.asarray(np.floor(numbers / self.step + 0.5) + 0.0)  # + 0.0 makes -0.0 zero

    def word(self, code: float) -> str:
        """Give the rounded number."""
        return f"{code * self.step:g}"

    def __str__(self) -> str:
        """Write the rule."""
        return f"nearest({self.step:g})"


@dataclass(frozen=True)
class Quantile(Discretiser):
    """Bins with about equally many items of the pool.

    >>> Quantile(2).fitted(np.array([1.0, 2.0, 3.0, 4.0])).bins(np.array([1.0, 9.0])).tolist()
    [0.0, 1.0]
    """

    name: ClassVar[str] = "quantile"
    n_bins: int = 10
    edges: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.n_bins, bool) or not isinstance(self.n_bins, int) or self.n_bins < 2:
            raise InputError(f"quantile: there must be at least 2 bins, not {self.n_bins!r}")

    def fitted(self, numbers: Floats) -> Quantile:
        """Put the edges between the pool's numbers; equal edges are one."""
        if not len(numbers):
            return self
        inner = np.arange(1, self.n_bins) / self.n_bins
        found = np.unique(np.quantile(numbers, inner, method="linear"))
        return Quantile(self.n_bins, tuple(found.tolist()))

    def bins(self, numbers: Floats) -> Floats:
        """Count the edges that do not lie above each number."""
        return np.searchsorted(np.array(self.edges), numbers, side="right").astype(np.float64)

    def word(self, code: float) -> str:
        """Give the two edges."""
        edges = [-math.inf, *self.edges, math.inf]
        return f"{edges[int(code)]:g}…{edges[int(code) + 1]:g}"

    def __str__(self) -> str:
        """Write the rule."""
        return f"quantile({self.n_bins})"


@dataclass(frozen=True)
class Log2(Discretiser):
    """Powers of 2: [1, 2), [2, 4), [4, 8), …; 0 is a bin of its own, negative numbers mirror them.

    >>> [Log2().word(code) for code in Log2().bins(np.array([0.0, 5.0, -1.0]))]
    ['0', '4', '-1']
    """

    name: ClassVar[str] = "log2"

    def bins(self, numbers: Floats) -> Floats:
        """Give the sign and the exponent in one number."""
        _, exponent = np.frexp(numbers)
        return np.where(numbers == 0, 0.0, np.sign(numbers) * (exponent - 1 + _LOWEST))

    def word(self, code: float) -> str:
        """Give the bin's number that is nearest to 0."""
        return "0" if code == 0 else f"{math.copysign(2.0 ** (abs(code) - _LOWEST), code):g}"

    def __str__(self) -> str:
        """Write the rule."""
        return "log2"


@dataclass(frozen=True)
class Categorical(Discretiser):
    """Every number is a value of its own."""

    name: ClassVar[str] = "categorical"

    def bins(self, numbers: Floats) -> Floats:
        """Give the numbers."""
        return numbers + 0.0

    def word(self, code: float) -> str:
        """Give the number."""
        return f"{code:g}"

    def __str__(self) -> str:
        """Write the rule."""
        return "categorical"


DISCRETISERS: dict[str, type[Discretiser]] = {
    one.name: one for one in (Nearest, Quantile, Log2, Categorical)
}
"""The rules by name."""

_TAKES = {"quantile": "a whole number of bins", "log2": "no number", "categorical": "no number"}
_WRITTEN = re.compile(r"^\s*(?P<name>[\w-]+)\s*(\(\s*(?P<number>[^()]+?)\s*\))?\s*$")


def read_discretiser(text: Any) -> Discretiser:
    """Read a rule: `nearest(10)`, `quantile(10)`, `log2` or `categorical`.

    Raises:
        UnknownNameError: There is no such rule.
        InputError: Its number is none, or it takes none.

    >>> read_discretiser("nearest(5)")
    Nearest(step=5.0)
    """
    if isinstance(text, Discretiser):
        return text
    found = _WRITTEN.match(str(text))
    if not found:
        raise InputError(f"discretiser {text!r} must look like nearest(10), quantile(10) or log2")
    if found["name"] not in DISCRETISERS:
        raise UnknownNameError("discretiser", found["name"], DISCRETISERS)
    kind = DISCRETISERS[found["name"]]
    if found["number"] is None:
        return kind()
    try:
        number = float(found["number"])
    except ValueError:
        raise InputError(f"discretiser {text!r}: {found['number']!r} is no number") from None
    if kind is Nearest:
        return Nearest(number)
    if kind is Quantile and number.is_integer():
        return Quantile(int(number))
    raise InputError(f"discretiser {text!r}: {kind.name} takes {_TAKES[kind.name]}")
