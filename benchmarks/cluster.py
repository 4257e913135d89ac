"""Ray beside threads on the same cores: `.venv-cluster/bin/python benchmarks/cluster.py [LABELS]`.

Steps of `ds` on single labels, in turn; the first run of each compiles, and does not count. Steps
are compared, since the cluster is started once and workers import once.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np
import pyarrow as pa

import goldspan
from goldspan.crowd.model import Answers, Crowd, list_array
from goldspan.runners import Ray, Threads
from goldspan.spans import Codec

EACH, WORKERS, STEPS, RUNS = 5, 50, 20, 5


def crowd_of(n_labels: int) -> Crowd:
    """Draw answers of workers who are right at seven items of ten."""
    n_items = n_labels // EACH
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=n_items)
    item = np.repeat(np.arange(n_items, dtype=np.int32), EACH)
    place = np.tile(np.arange(EACH), n_items)
    worker = ((item.astype(np.int64) * 7 + place * 11) % WORKERS).astype(np.int32)
    worker = worker[np.lexsort((worker, item))]
    wrong = rng.random(len(item)) < 0.3
    codes = np.where(wrong, 1 - truth[item], truth[item]).astype(np.int16)
    ids = pa.array(np.arange(n_items)).cast(pa.string())
    offsets = np.arange(len(item) + 1, dtype=np.int64)
    return Crowd(
        item_ids=ids,
        tokens=list_array(ids, np.arange(n_items + 1)),
        worker_ids=pa.array([f"w{k:02}" for k in range(WORKERS)]),
        tagset=Codec(("no", "yes"), "PLAIN"),
        answers=Answers(item, worker, offsets, codes, np.zeros(len(item), np.int16)),
    )


def steps_of(crowd: Crowd, runner: Ray | Threads) -> tuple[bytes, list[float]]:
    """Return the probabilities, and the seconds of every step."""
    marks: list[float] = []
    found = goldspan.aggregate(
        crowd, "ds", runner=runner, max_iter=STEPS, tol=0,
        progress=lambda *_: marks.append(time.perf_counter()),
    )  # fmt: skip
    return found.token_probs.tobytes(), np.diff(marks).tolist()


def main() -> None:
    """Measure, and print a line for each."""
    n_labels = int(sys.argv[1]) if len(sys.argv) > 1 else 10**6
    crowd, threads = crowd_of(n_labels), Threads(2)
    seconds: dict[str, list[float]] = {"threads": [], "ray": []}
    with Ray(n_workers=2, memory=2 * 10**9) as ray:
        steps_of(crowd, threads)
        steps_of(crowd, ray)
        for _ in range(RUNS):
            one, own = steps_of(crowd, threads)
            other, its = steps_of(crowd, ray)
            assert one == other, "the bits differ"
            seconds["threads"] += own
            seconds["ray"] += its
    print(f"{n_labels} labels, 2 cores, load {os.getloadavg()[0]:.1f}")
    for name, values in seconds.items():
        least, half = min(values), np.median(values)
        print(f"{name}: {least * 1e3:.1f} ms a step at least, median {half * 1e3:.1f}")


if __name__ == "__main__":
    main()
