"""The best workers first, and how many of them: Algorithm 1 of Li and Liu (2015)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldspan.hiring.scores import team_values


@dataclass(frozen=True, eq=False)
class Choice:
    """Workers chosen among candidates.

    Attributes:
        chosen: int64 [n_chosen], positions among the candidates, best first.
        curve: float64 [n_sizes], F of the best team found with 1, 2, … workers.
        ratio: F of the chosen ones by the largest F that any affordable set can have, at least:
            1 where the choice is proved to be best, None where nothing is promised.
    """

    chosen: NDArray[np.int64]
    curve: NDArray[np.float64]
    ratio: float | None = 1.0


def rank(scores: NDArray[np.float64], most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Give the positions of the `most` largest scores, decreasing; `rng` decides among equals.

    >>> rank(np.array([1.0, 3.0, 2.0]), 2, np.random.default_rng(0)).tolist()
    [1, 2]
    """
    chance = rng.random(len(scores))
    if most <= 0:
        return np.zeros(0, np.int64)
    among = np.arange(len(scores))
    if most < len(scores):
        # Only those that reach the last place's score need sorting; equals of it stay among them.
        among = np.flatnonzero(scores >= np.partition(scores, len(scores) - most)[-most])
    order = np.lexsort((chance[among], -scores[among]))
    return among[order[:most]]


def best_prefix(scores: NDArray[np.float64], most: int, rng: np.random.Generator) -> Choice:
    """Choose the set of at most `most` workers with the largest F; the smaller of equals.

    Args:
        scores: float64 [n_candidates], no NaN.
        most: The budget B.
        rng: Decides the order of equal scores.

    >>> choice = best_prefix(np.array([0.1, 4.0, 3.5]), 3, np.random.default_rng(0))
    >>> choice.chosen.tolist(), choice.curve.round(3).tolist()
    ([1, 2], [4.0, 5.303, 4.388])
    """
    ranked = rank(scores, most, rng)
    curve = team_values(scores[ranked])
    size = int(np.argmax(curve)) + 1 if len(curve) else 0
    return Choice(ranked[:size], curve)


def in_order(order: NDArray[np.int64], scores: NDArray[np.float64]) -> Choice:
    """Take all of an order, nothing promised."""
    return Choice(order, team_values(scores[order]), ratio=None)
