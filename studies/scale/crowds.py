"""Simulated crowds in files, of any size."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.simulated import TYPES, single_labels, tagged_crowd
from goldspan.crowd.formats.parquet import write as write_parquet

BLOCK = 1 << 20
"""Labels that are written at a time."""
MORE_TYPES = 20
"""Types of the larger tag set: 41 BIO tags."""


@dataclass(frozen=True)
class Kind:
    """A sort of crowd, of which there are all sizes.

    Attributes:
        name: In words.
        n_tags: Tags of the tag set.
        per_worker: Labels of a worker on average.
        most_workers: Workers there are at most, however many labels.
        is_tagged: Whether sentences are tagged; else items have one label.
    """

    name: str
    n_tags: int
    per_worker: int
    most_workers: int
    is_tagged: bool = False

    def n_workers(self, n_labels: int) -> int:
        """Return the number of workers of a crowd."""
        return int(np.clip(n_labels // self.per_worker, 50, self.most_workers))


TWO = Kind("single labels of 2 classes", 2, 100, 1_000_000)
NINE = Kind("single labels of 9 classes", 9, 100, 1_000_000)
TAGGED = Kind("sentences with 9 tags", 9, 1_000, 100_000, is_tagged=True)
FEW = Kind("sentences with 9 tags, 50 workers", 9, 1_000, 50, is_tagged=True)
MANY = Kind("sentences with 41 tags", 41, 1_000, 100_000, is_tagged=True)


def write_crowd(kind: Kind, n_labels: int, path: Path) -> None:
    """Write a crowd: tagged sentences in goldspan's Parquet, single labels as a long table."""
    n_workers = kind.n_workers(n_labels)
    if kind.is_tagged:
        types = TYPES if kind.n_tags == 9 else tuple(f"T{n}" for n in range(MORE_TYPES))
        write_parquet(tagged_crowd(n_labels, n_workers=n_workers, types=types), path)
        return
    made = single_labels(n_labels // 5, n_workers, n_classes=kind.n_tags)
    columns = {"task": made.task, "worker": made.worker, "label": made.label}
    schema = pa.schema([(name, pa.string()) for name in columns])
    with pq.ParquetWriter(path, schema, compression="zstd") as out:
        for first in range(0, len(made.task), BLOCK):
            part = {name: pa.array(one[first : first + BLOCK]) for name, one in columns.items()}
            out.write_table(pa.table({name: one.cast("string") for name, one in part.items()}))
