"""A crowd in several Parquet files of one folder, each with all answers to its items.

Every partition is a crowd of its own, in goldspan's layout: part-00000.parquet, part-00001.parquet,
… They have the same tags; workers may answer in several. `goldspan.aggregation.partitions` works on
them without ever holding more than a few.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from goldspan.crowd.atomic import write_folder
from goldspan.crowd.formats.parquet import write
from goldspan.crowd.model import Crowd
from goldspan.errors import InputError
from goldspan.params import check_whole

PATTERN = "part-*.parquet"
MOST = 99_999


def is_partitioned(path: str | Path) -> bool:
    """Return whether a path is a folder of partitions."""
    return Path(path).is_dir() and any(Path(path).glob(PATTERN))


def partitions_of(path: str | Path) -> list[Path]:
    """List the partitions of a folder in their order."""
    found = sorted(Path(path).glob(PATTERN))
    for one in found:
        if not one.is_file():
            raise InputError(f"{one} is no file: partitions are files")
    if not found:
        raise InputError(
            f"{path}: there is no partition ({PATTERN}); `goldspan convert` makes them"
        )
    return found


def write_partitions(crowd: Crowd, path: str | Path, n: int) -> int:
    r"""Write a crowd as partitions of about equal work, items in their order.

    >>> import goldspan, tempfile
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,a,x\n2,a,y\n3,b,x\n")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_partitions(crowd, Path(folder, "answers"), 2)
    2
    """
    check_whole("partitions", n, 1, MOST)
    work = np.diff(crowd.offsets) + np.bincount(
        crowd.answers.item, np.diff(crowd.answers.offset), crowd.n_items
    )
    before = np.concatenate([[0], np.cumsum(work)])
    targets = before[-1] * np.arange(1, n) / n
    inner = np.searchsorted(before, targets)
    edges = np.unique(np.concatenate([[0], inner, [crowd.n_items]]).clip(0, crowd.n_items))

    def fill(folder: Path) -> None:
        for number, (first, last) in enumerate(pairwise(edges)):
            part = crowd.select_items(np.arange(first, last))
            there = np.bincount(part.answers.worker, minlength=crowd.n_workers) > 0
            place = {"partition": [number, len(edges) - 1]}  # so that a lost one is missed
            write(part.select_workers(there), folder / f"part-{number:05}.parquet", place)

    write_folder(path, fill)
    return len(edges) - 1
