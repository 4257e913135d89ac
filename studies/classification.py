"""The Dawid-Skene family on crowds of single labels, beside votes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from goldspan.aggregation import aggregate
from goldspan.crowd import read_crowd
from goldspan.errors import InputError
from goldspan.runners import Threads
from studies.table import Study, Table

METHODS = ("mv-token", "one-coin", "mace", "ibcc", "ds")
DEFAULT = "ds"
"""The method that was named as the default before the table was made."""


def study(
    data: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
    methods: tuple[str, ...] = METHODS,
    threads: int | None = None,
) -> Study:
    """Make the table of accuracies.

    Args:
        data: The folder that holds `classification`.
        progress: Told how many of all runs are over.
        methods: Which methods.
        threads: How many; all cores by default.
    """
    folder = data / "classification"
    if not folder.is_dir():
        raise InputError(f"{folder} is not there: study classification needs it")
    runner, sets = Threads(threads), sorted(path for path in folder.iterdir() if path.is_dir())
    shares: dict[str, list[float]] = {method: [] for method in methods}
    for done, path in enumerate(sets):
        labels = next(path.glob("labels.csv*"))
        crowd = read_crowd(labels, gold=path / "truth.csv")
        gold = crowd.gold_tagged.codes
        for method in methods:
            codes = aggregate(crowd, method, runner=runner).codes
            known = gold >= 0
            shares[method].append(100 * float((codes == gold)[known].mean()))
        if progress:
            progress(done + 1, len(sets))
    rows: list[tuple[Any, ...]] = [
        (path.name, *(shares[method][i] for method in methods)) for i, path in enumerate(sets)
    ]
    rows.append(("mean", *(float(np.mean(shares[method])) for method in methods)))
    table = Table("Accuracy in per cent, defaults", ("set", *methods), tuple(rows))
    note = f"{DEFAULT} with its defaults is our default for single labels."
    return Study("Single labels", [table], (note,))
