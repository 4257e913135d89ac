"""Coverage: 1,000 picks of 100,000 items against apricot-select; more picks, and a million items.

The peer (last release 2021) is not among our dependencies, so it may live in an environment of its
own: `GOLDSPAN_APRICOT=/path/to/its/python python benchmarks/run.py select`. Where it is nowhere,
only ours runs. Both sides get the same items and run in turn, in fresh processes that were warmed
up on little data; the peer is timed from its `fit` on. Seconds are the processor's, for both sides
run on one thread and the machine is shared. Ours needs lists of the items per value first:
they are counted where the peer stands beside it, and are made already in the other lines.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from children import Outcome, Work, measured
from goldspan.selection.features import Incidence
from goldspan.selection.greedy import Spending, Wanted, cover
from pairs import Row

N_VALUES, PER_ITEM, SEED, ROUNDS = 50_000, 40, 0, 3
FASTER, MEMORY, VALUE, GROWTH = 200, 1 / 3, 0.002, 3.0
"""Promises: times as fast, share of the memory, difference of f, seconds per pair."""
NAN = float("nan")

PEER = """
import ctypes, gc, json, sys, time
from pathlib import Path
import numpy as np
from scipy.sparse import csr_matrix
from apricot import MaxCoverageSelection

def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) / 1024

def select(path, n):
    with np.load(path) as file:
        shape = (len(file["bounds"]) - 1, int(file["n_values"]))
        ones = np.ones(len(file["ids"]), np.float64)
        rows = csr_matrix((ones, file["ids"], file["bounds"]), shape=shape)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before, begin = status("VmRSS"), time.process_time()
    model = MaxCoverageSelection(n, optimizer="lazy", threshold=1.0).fit(rows)
    seconds = time.process_time() - begin
    return {"seconds": seconds, "mb": status("VmHWM") - before, "picks": model.ranking.tolist()}

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

    def __str__(self) -> str:
        how = f", w = {self.w}" * (self.w > 1) + ", weighted, per cost" * self.weighted
        return f"{self.picks:,} of {self.n_items:,} items{how}"

    @property
    def n_pairs(self) -> int:
        """Items times their values."""
        return self.n_items * PER_ITEM


FIRST, MILLION = Case(100_000, 1_000), Case(1_000_000, 1_000)
ALONE = (
    Case(100_000, 10_000),
    Case(100_000, 10_000, w=3),
    Case(100_000, 1_000, weighted=True),
    Case(100_000, 10_000, weighted=True),
    Case(1_000_000, 10_000),
)


class Data(NamedTuple):
    """A case with its items.

    Attributes:
        items: The items.
        ranks: The permutation that decides ties.
        wanted: What is to be covered.
        spending: What may be spent.
    """

    items: Incidence
    ranks: NDArray[np.int64]
    wanted: Wanted
    spending: Spending


class Beside(NamedTuple):
    """A run of ours and one of the peer, one after the other.

    Attributes:
        ours: Our runs.
        peer: None without a peer.
    """

    ours: Outcome
    peer: Outcome | None


def run() -> list[Row]:
    """Run all of them."""
    return [against_peer(), *(alone(case) for case in ALONE), growth()]


def against_peer() -> Row:
    """Set up and pick, beside the peer's `fit`."""
    runs = first_runs()
    ours = [one.ours for one in runs]
    peers = [one.peer for one in runs if one.peer is not None]
    row = _row(f"coverage, {FIRST} (apricot-select, lazy)", ours, peers)
    if not peers:
        return row
    value, theirs = ours[0].value, peers[0].value
    kept = row.ratio >= FASTER and row.ours_mb <= MEMORY * row.peer_mb
    near = abs(value / theirs - 1) <= VALUE
    note = f"f is {value:,.0f} against {theirs:,.0f} ({100 * (value / theirs - 1):+.3f} %)"
    wanted = f"≥ {FASTER}×, ≤ ⅓ of the memory, f within {100 * VALUE:g} %"
    return Row(**{**row.__dict__, "wanted": wanted, "ok": kept and near, "note": note})


def alone(case: Case) -> Row:
    """Pick."""
    runs = [_ours(case) for _ in range(ROUNDS)]
    return _row(f"coverage, {case}", runs, [])


def growth() -> Row:
    """Ten times as many items: seconds per pair, against the smaller pool's."""
    small = [one.ours for one in first_runs()]
    large = [_ours(MILLION) for _ in range(ROUNDS)]
    times = MILLION.n_pairs / FIRST.n_pairs
    ratio = _seconds(small) * times / _seconds(large)
    return Row(
        f"coverage, {MILLION} (ours on 100,000 items, times ten)",
        _seconds(large),
        _seconds(small) * times,
        ratio,
        f"≤ {GROWTH:g}× per pair",
        1 / ratio <= GROWTH,
        _memory(large),
        _memory(small) * times,
        f"{1e9 * _seconds(large) / MILLION.n_pairs:.0f} ns per pair, on the smaller pool "
        f"{1e9 * _seconds(small) / FIRST.n_pairs:.0f}",
    )


@cache
def first_runs() -> list[Beside]:
    """Run the first case on both sides, in turn."""
    return [Beside(_ours(FIRST), peer(FIRST)) for _ in range(ROUNDS)]


def _ours(case: Case) -> Outcome:
    found = measured(Work(prepare, pick, judge), _little(case), case)
    seconds, value = found.value
    return replace(found, seconds=seconds, value=value)


def _little(case: Case) -> Case:
    return case._replace(n_items=1_000, picks=5)


def _row(name: str, ours: list[Outcome], peers: list[Outcome]) -> Row:
    ratios = [b.seconds / a.seconds for a, b in zip(ours, peers, strict=False)]
    ratio = statistics.median(ratios) if ratios else NAN
    seconds, memory = (_seconds(ours), _seconds(peers)), (_memory(ours), _memory(peers))
    return Row(name, *seconds, ratio, "-", ok=True, ours_mb=memory[0], peer_mb=memory[1])


def _seconds(runs: list[Outcome]) -> float:
    return statistics.median(one.seconds for one in runs) if runs else NAN


def _memory(runs: list[Outcome]) -> float:
    return statistics.median(one.added_mb for one in runs) if runs else NAN


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
    rng = np.random.default_rng(SEED + 1)
    weights = np.log(np.maximum(1.0, items.counts)) if case.weighted else None
    costs = rng.integers(5, 60, case.n_items).astype(float) if case.weighted else None
    spending = Spending(case.picks, shares=costs)
    return Data(items, rng.permutation(case.n_items), Wanted(case.w, weights=weights), spending)


def pick(data: Data, _: Any) -> tuple[float, float]:
    """Pick; gives the processor's seconds and f."""
    begin = time.process_time()
    found = cover(data.items, data.wanted, data.spending, data.ranks)
    return time.process_time() - begin, data.wanted.value(found.counts)


def judge(_: Data, found: tuple[float, float]) -> tuple[float, float]:
    """Hand both back."""
    return found


def peer(case: Case) -> Outcome | None:
    """Let the peer pick the same number from the same items."""
    python = os.environ.get("GOLDSPAN_APRICOT") or sys.executable
    if subprocess.run(
        [python, "-c", "import apricot"], capture_output=True, check=False
    ).returncode:
        return None
    one = {**os.environ, "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        words = [python, "-c", PEER, *_saved(case, Path(folder)), str(case.picks)]
        found = json.loads(
            subprocess.run(words, stdout=subprocess.PIPE, env=one, check=True).stdout
        )
    counts = draw(case.n_items).take(np.array(found["picks"])).counts
    value = float((counts > 0).sum())
    return Outcome(found["seconds"], found["mb"], value, None, finished=True)


def _saved(case: Case, folder: Path) -> Iterator[str]:
    for n_items in (1_000, case.n_items):
        items, path = draw(n_items), folder / f"{n_items}.npz"
        np.savez(path, bounds=items.bounds, ids=items.ids, n_values=N_VALUES)
        yield str(path)
