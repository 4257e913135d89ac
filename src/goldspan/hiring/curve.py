"""What accuracy votes of the first 1, 2, … workers have: forecast or measured, and at what cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError
from goldspan.money import from_micro


class Reach(NamedTuple):
    """What it takes to reach a target; size and cost are None where it is out of reach."""

    size: int | None
    cost: int | None
    reason: str


@dataclass(frozen=True, eq=False)
class Curve:
    """Accuracy of votes of teams of growing size; a subclass says where it is from.

    Attributes:
        sizes: int64 [n_sizes], how many of the first workers vote.
        accuracy: float64 [n_sizes], the mean.
        low: float64 [n_sizes], lower end of the interval.
        high: float64 [n_sizes], its upper end.
        level: Of that interval.
        cost: int64 [n_sizes], millionths of money per item, or workers without prices.
        in_money: Whether cost is money.
    """

    sizes: NDArray[np.int64]
    accuracy: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    level: float
    cost: NDArray[np.int64]
    in_money: bool

    @property
    def label(self) -> str:
        """What it rests on, in a sentence."""
        raise NotImplementedError  # pragma: no cover

    @property
    def model_based(self) -> bool:
        """Whether it follows from a model, and was not measured."""
        raise NotImplementedError  # pragma: no cover

    @property
    def quantity(self) -> str:
        """What `accuracy` is, in a word."""
        return "accuracy"

    def at(self, size: int) -> Self:
        """Give the same curve of one size.

        Raises:
            InputError: It is none of the sizes.
        """
        place = np.flatnonzero(self.sizes == size)
        if not len(place):
            raise InputError(f"there is no size {size}: choose from {self.sizes.tolist()}")
        return replace(
            self, sizes=self.sizes[place], accuracy=self.accuracy[place], low=self.low[place],
            high=self.high[place], cost=self.cost[place],
        )  # fmt: skip

    def cost_to(self, target: float, *, surely: bool = False) -> Reach:
        """Find the smallest team that reaches an accuracy.

        Args:
            target: Accuracy, between 0 and 1.
            surely: Its low end must reach the target, not just its mean.

        Raises:
            InputError: The target does not lie between 0 and 1.
        """
        if not 0 < target <= 1:
            raise InputError(f"a target is an accuracy between 0 and 1, not {target}")
        reached = np.flatnonzero((self.low if surely else self.accuracy) >= target)
        if len(reached):
            first = int(reached[0])
            return Reach(int(self.sizes[first]), int(self.cost[first]), "")
        best = int(np.argmax(self.low if surely else self.accuracy))
        size = int(self.sizes[best])
        shown = f"{self.accuracy[best]:.3f} ({self.low[best]:.3f} … {self.high[best]:.3f})"
        workers = f"{size} worker{'' if size == 1 else 's'}"
        return Reach(None, None, f"not reachable: the best is {shown} with {workers}")

    def costs(self) -> list[Any]:
        """Give the cost of every size: money as text, else numbers of workers."""
        values = self.cost.tolist()
        return [from_micro(cost) for cost in values] if self.in_money else values

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values, for JSON."""
        return {
            "model_based": self.model_based,
            "label": self.label,
            "sizes": self.sizes.tolist(),
            "cost": self.costs(),
            "accuracy": self.accuracy.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "level": self.level,
        }

    def columns(self) -> dict[str, list[str]]:
        """Give what a table shows beside size and accuracy: names and a cell per size."""
        return {"cost": [str(cost) for cost in self.costs()]} if self.in_money else {}

    def __str__(self) -> str:
        """Show a row per size, for the command line."""
        more = self.columns()
        widths = [max(map(len, [name, *cells])) for name, cells in more.items()]
        head = "".join(f"  {name:>{w}}" for name, w in zip(more, widths, strict=True))
        lines = [self.label, f"workers{head}  {self.quantity:>8}  {100 * self.level:g} % interval"]
        for n, size in enumerate(self.sizes.tolist()):
            cells = zip(more.values(), widths, strict=True)
            middle = "".join(f"  {column[n]:>{w}}" for column, w in cells)
            interval = f"{self.low[n]:.3f} … {self.high[n]:.3f}"
            lines.append(f"{size:7}{middle}  {self.accuracy[n]:8.3f}  {interval}")
        return "\n".join(lines)
