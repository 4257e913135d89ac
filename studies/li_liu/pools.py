"""The pools of Li and Liu 2015: real ones, and drawn ones, each with its hidden truth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Crowd, read_crowd
from goldspan.errors import InputError
from goldspan.simulation import draw_truth, simulate_crowd


@dataclass(frozen=True)
class Pool:
    """Workers who answered items whose truth is known.

    Attributes:
        name: In words.
        crowd: Their answers, with gold.
        n_gold: Items that are drawn as gold questions.
    """

    name: str
    crowd: Crowd
    n_gold: int

    @property
    def gold(self) -> NDArray[np.int16]:
        """The truth of every item, int16 [n_items]."""
        return self.crowd.gold_tagged.codes

    def share(self, which: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count how many gold questions every worker answered rightly, and how many in all.

        Args:
            which: Indices of the items that serve as gold questions.

        Returns:
            right and total, int64 [n_workers].
        """
        answers, n_workers = self.crowd.latest, self.crowd.n_workers
        is_gold = np.zeros(self.crowd.n_items, np.bool_)
        is_gold[which] = True
        judged = is_gold[answers.item]
        right = judged & (answers.codes == self.gold[answers.item])
        return (
            np.bincount(answers.worker[right], minlength=n_workers),
            np.bincount(answers.worker[judged], minlength=n_workers),
        )


def draw_pool(
    n_labels: int,
    *,
    n_workers: int = 31,
    n_items: int = 1000,
    beta: tuple[float, float] = (2.3, 2.0),
    n_gold: int = 10,
    seed: int = 0,
) -> Pool:
    """Draw a pool as the paper does: reliabilities from a Beta, items uniform, errors uniform.

    Args:
        n_labels: How many labels.
        n_workers: How many workers.
        n_items: How many items.
        beta: Of the workers' reliabilities.
        n_gold: Gold questions.
        seed: Of the draws.
    """
    truth = draw_truth(n_items, n_labels, seed=seed)
    shares = np.random.default_rng(seed).beta(*beta, n_workers)
    team = {f"w{k:02d}": f"flip({1 - share:.6f})" for k, share in enumerate(shares)}
    crowd = simulate_crowd(truth, team, seed=seed)
    name = (
        f"{n_workers} workers, {n_items} items, {n_labels} labels, Beta({beta[0]:g}, {beta[1]:g})"
    )
    return Pool(name, crowd, n_gold)


def read_pool(data: Path, name: str, n_gold: int) -> Pool:
    """Read a real pool; items without gold are left out.

    Args:
        data: The folder that holds `classification`.
        name: Of the data set.
        n_gold: Gold questions.

    Raises:
        InputError: The data are not there.
    """
    folder = data / "classification" / name
    if not folder.is_dir():
        raise InputError(f"{folder} is not there: study li-liu needs it")
    packed = folder / "labels.csv.gz"
    labels = packed if packed.is_file() else folder / "labels.csv"
    crowd = read_crowd(labels, gold=folder / "truth.csv")
    return Pool(name, crowd.select_items(crowd.gold_tagged.codes >= 0), n_gold)
