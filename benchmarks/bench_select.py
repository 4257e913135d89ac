"""Coverage: 1,000 and 10,000 picks of 100,000 and 1,000,000 items, and apricot-select's 1,000.

The peer (last release 2021) is not among our dependencies, so it runs in an environment of its own:
`python benchmarks/bench_select.py --peer /path/to/its/python`; without it only ours runs. Both
sides get the same items; ours is timed after the lists of items per value are made (set-up, a line
of its own), the peer from its `fit` on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from children import Work, measured
from karat.select.greedy import Purse, Wanted, cover
from karat.select.incidence import Incidence

N_VALUES, PER_ITEM, SEED = 50_000, 40, 0

PEER = """
import json, resource, sys, time
import numpy as np
from scipy.sparse import csr_matrix
from apricot import MaxCoverageSelection

def select(path, n):
    with np.load(path) as file:
        shape = (len(file["bounds"]) - 1, int(file["n_values"]))
        ones = np.ones(len(file["ids"]), np.float64)
        rows = csr_matrix((ones, file["ids"], file["bounds"]), shape=shape)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    begin = time.perf_counter()
    model = MaxCoverageSelection(n, optimizer="lazy", threshold=1.0).fit(rows)
    seconds = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "mb": after - before, "picks": model.ranking.tolist()}

select(sys.argv[1], 5)
print(json.dumps(select(sys.argv[2], int(sys.argv[3]))))
"""
"""What the peer's Python runs: once on little, to compile, then on the data."""


class Case(NamedTuple):
    """What is asked.

    Attributes:
        n_items: Items of the pool.
        picks: How many are picked.
        w: How often every value is to be covered.
        weighted: By logarithm of df and per cost, instead of alike.
    """

    n_items: int
    picks: int
    w: int = 1
    weighted: bool = False


CASES = (
    Case(100_000, 1_000),
    Case(100_000, 10_000),
    Case(100_000, 10_000, w=3),
    Case(100_000, 1_000, weighted=True),
    Case(100_000, 10_000, weighted=True),
    Case(1_000_000, 1_000),
    Case(1_000_000, 10_000),
)


class Data(NamedTuple):
    """A case with its items.

    Attributes:
        case: What is asked.
        items: The items, lists per value made.
        ranks: The permutation that decides ties.
        wanted: What is to be covered.
        purse: What may be spent.
    """

    case: Case
    items: Incidence
    ranks: NDArray[np.int64]
    wanted: Wanted
    purse: Purse


def draw(n_items: int) -> Incidence:
    """Draw items of 40 values each, frequent ones and rare ones (Zipf, exponent 0.8)."""
    rng = np.random.default_rng(SEED)
    shares = np.cumsum(1 / np.arange(1, N_VALUES + 1) ** 0.8)
    ids = np.empty(n_items * PER_ITEM, np.int32)
    for first in range(0, len(ids), 4_000_000):  # in parts, for memory
        part = rng.random(min(4_000_000, len(ids) - first)) * shares[-1]
        ids[first : first + len(part)] = np.searchsorted(shares, part)
    return Incidence.of(np.arange(0, len(ids) + 1, PER_ITEM), ids, N_VALUES)


def prepare(case: Case) -> Data:
    """Make the items and what is asked."""
    items = draw(case.n_items)
    _ = items.by_value
    rng = np.random.default_rng(SEED + 1)
    weights = np.log(np.maximum(1.0, items.counts)) if case.weighted else None
    costs = rng.integers(5, 60, case.n_items).astype(float) if case.weighted else None
    purse = Purse(case.picks, shares=costs)
    return Data(case, items, rng.permutation(case.n_items), Wanted(case.w, weights=weights), purse)


def pick(data: Data, _: Any) -> float:
    """Pick; gives f."""
    found = cover(data.items, data.wanted, data.purse, data.ranks)
    return data.wanted.value(found.counts)


def judge(_: Data, value: float) -> float:
    """Hand f back."""
    return value


def set_up() -> float:
    """Time the lists of items per value for 4 million pairs, in seconds."""
    _ = draw(1_000).by_value
    items = draw(100_000)
    begin = time.perf_counter()
    _ = items.by_value
    return time.perf_counter() - begin


def peer(python: str, case: Case) -> dict[str, float]:
    """Let the peer pick the same number from the same items."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for n_items in (1_000, case.n_items):
            items = draw(n_items)
            paths.append(str(Path(folder) / f"{n_items}.npz"))
            np.savez(paths[-1], bounds=items.bounds, ids=items.ids, n_values=N_VALUES)
        words = [python, "-c", PEER, *paths, str(case.picks)]
        run = subprocess.run(words, capture_output=True, text=True, check=True)
    found = json.loads(run.stdout)
    picks = np.array(found.pop("picks"))
    counts = draw(case.n_items).take(picks).counts
    return {**found, "value": float((counts > 0).sum())}


def main() -> int:
    """Run all cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="a Python that has apricot-select")
    parser.add_argument("--small", action="store_true", help="leave out a million items")
    chosen = parser.parse_args()
    print(f"lists of items per value, 4.0M pairs: {set_up():.3f} s\n")
    print("| items | picks | w | weighted | seconds | added MiB | f |")
    print("|---:|---:|---:|---|---:|---:|---:|")
    for case in CASES:
        if chosen.small and case.n_items > 100_000:
            continue
        little = case._replace(n_items=1_000, picks=5)
        found = measured(Work(prepare, pick, judge), little, case)
        print(
            f"| {case.n_items:,} | {case.picks:,} | {case.w} | {'yes' if case.weighted else 'no'} "
            f"| {found.seconds:.3f} | {found.added_mb:.0f} | {found.value:,.0f} |",
            flush=True,
        )
    if chosen.peer:
        found_by_peer = peer(chosen.peer, CASES[0])
        print(
            f"\napricot-select, case 1: {found_by_peer['seconds']:.1f} s, "
            f"{found_by_peer['mb']:.0f} MiB, f {found_by_peer['value']:,.0f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
