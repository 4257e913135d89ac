"""A study: how often two methods disagree, on every crowd of single labels in the data folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

import goldspan
from goldspan.runners import Threads
from studies.table import Study, Table


def study(
    data: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
    threads: int | None = None,
) -> Study:
    """Make the table.

    Args:
        data: The folder of the data sets; `classification/NAME/labels.csv` in it are read.
        progress: Told how many crowds are done, and of how many.
        threads: How many threads; all cores by default.
    """
    paths = sorted((data / "classification").glob("*/labels.csv"))
    runner, rows = Threads(threads), []
    for done, path in enumerate(paths, start=1):
        crowd = goldspan.read_crowd(path)
        first = goldspan.aggregate(crowd, "mv-token", runner=runner).codes
        second = goldspan.aggregate(crowd, "ds", runner=runner).codes
        rows.append((path.parent.name, crowd.n_items, 100 * float(np.mean(first != second))))
        if progress:
            progress(done, len(paths))
    table = Table("Items with different labels, in per cent", ("set", "items", "differ"), (*rows,))
    return Study("Votes and Dawid-Skene", [table])
