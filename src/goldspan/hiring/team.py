"""The workers that were chosen, what they promise, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.hiring.beta import Reliability
from goldspan.hiring.scores import error_bound, estimate
from goldspan.money import from_micro

SHOWN = 20
"""Workers that are printed by name."""


@dataclass(frozen=True, eq=False)
class Team:
    """Workers who shall answer every item.

    Attributes:
        tested: The test results of the chosen workers, in order of rank.
        index: int64 [n_chosen], their places in the pool.
        scores: float64 [n_chosen], estimates of (L w - 1)²; see `goldspan.hiring.scores`.
        curve: float64 [n_sizes], F of the best team found with 1, 2, … workers: the first ones of
            the ranking, or with prices the best that the budget pays. NaN where a worker drawn at
            random has no score.
        budget: Workers per item, or millionths of money per item.
        price: What an item costs, in millionths; None without prices.
        ratio: F of this team by the largest F that any affordable set can have, at least: 1 where
            it is proved to be the best, None where nothing is promised.
        score: Name of the score.
        below: What happens to workers below chance: "drop" or "negative".
        strategy: "selected", "top" or "random".
        why_nobody: Why the team is empty; "" where it is not.
        notes: What else should be known, in sentences.
    """

    tested: Reliability
    index: NDArray[np.int64]
    scores: NDArray[np.float64]
    curve: NDArray[np.float64]
    budget: int
    price: int | None
    ratio: float | None
    score: str
    below: str
    strategy: str
    why_nobody: str = ""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Count the chosen workers."""
        return len(self.index)

    @property
    def worker_ids(self) -> pa.Array:
        """Arrow string array [n_chosen], in order of rank."""
        return self.tested.worker_ids

    @property
    def value(self) -> float:
        """F of the team by its scores; 0 for an empty one."""
        return float(self.scores.sum() / np.sqrt(len(self))) if len(self) else 0.0

    @property
    def expected(self) -> float:
        """F as the workers' posterior expects it, Σ E (L w - 1)² / √k; 0 for an empty team."""
        if not len(self):
            return 0.0
        tested, labels = self.tested, self.tested.n_labels
        spread = tested.mean * (1 - tested.mean) / (tested.a + tested.b + 1)
        squares = (labels * tested.mean - 1) ** 2 + labels**2 * spread
        return float(squares.sum() / np.sqrt(len(self)))

    @property
    def weights(self) -> NDArray[np.float64]:
        """What the answers count in the vote, L w - 1 by the score's w, float64 [n_chosen]."""
        return np.asarray(self.tested.n_labels * estimate(self.tested, self.score) - 1)

    @property
    def guarantee(self) -> str:
        """What is proved about this choice, in a sentence."""
        if not len(self):
            return "nobody was chosen"
        if self.ratio is None:
            return f"none: the team is {'the best by score' if self.strategy == 'top' else 'drawn'}"
        if self.ratio >= 1:
            return (
                f"no set of candidates within the budget has a larger F by the {self.score} score"
            )
        return (
            f"F is at least {100 * self.ratio:.2f} % of the largest that any set of candidates "
            f"within the budget has by the {self.score} score"
        )

    @cached_property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """Intervals of the true F at 95 %: "hoeffding", "bootstrap" and "posterior".

        The first two are for teams that were fixed before the test; of a team chosen by its results
        they hold too rarely (`goldspan.hiring.intervals`). They are NaN where a worker has fewer
        than two judged answers. All are (0, 0) for an empty team.
        """
        from goldspan.hiring.intervals import INTERVALS, score_interval

        return {name: score_interval(self.tested, kind=name) for name in INTERVALS}

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values, for JSON."""
        rows = zip(
            self.worker_ids.to_pylist(), self.scores.tolist(), self.weights.tolist(),
            self.tested.mean.tolist(), self.tested.right.tolist(), self.tested.total.tolist(),
            strict=True,
        )  # fmt: skip
        names = ("worker", "score", "weight", "mean", "right", "total")
        return {
            "workers": [dict(zip(names, row, strict=True)) for row in rows],
            "value": self.value,
            "expected": self.expected,
            "intervals": {name: list(pair) for name, pair in self.intervals.items()},
            "error_bound": error_bound(self.value, self.tested.n_labels),
            "curve": self.curve.tolist(),
            "budget": self.budget if self.price is None else from_micro(self.budget),
            "price": None if self.price is None else from_micro(self.price),
            "guarantee": self.guarantee,
            "score": self.score,
            "below": self.below,
            "strategy": self.strategy,
            "why_nobody": self.why_nobody,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        """Say who was chosen, for the command line."""
        if not len(self):
            return "\n".join([f"Nobody was chosen: {self.why_nobody}.", *self.notes])
        ids = self.worker_ids[:SHOWN].to_pylist()
        more = f" and {len(self) - SHOWN} more" if len(self) > SHOWN else ""
        cost = "" if self.price is None else f", {from_micro(self.price)} per item"
        # Who was chosen by results has lucky ones among them: see `goldspan.hiring.intervals`.
        low, high = self.intervals["posterior"]
        how = f"{self.strategy}, {self.score} score{cost}"
        lines = [
            f"{len(self)} worker{'' if len(self) == 1 else 's'} ({how}): {', '.join(ids)}{more}",
            (
                f"F = {self.value:.3f} by the score, {self.expected:.3f} by the posterior "
                f"(95 %: {low:.3f} … {high:.3f})"
            ),
            f"Guarantee: {self.guarantee}.",
        ]
        return "\n".join([*lines, *self.notes])
