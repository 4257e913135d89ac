"""Aggregation: Dawid–Skene against crowd-kit, BSC-seq against NumPy, growth, and the cold start."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from crowdkit.aggregation import DawidSkene
from threadpoolctl import threadpool_limits

import goldspan
import numpy_bsc
from children import Outcome, Tell, Work, measured, peak_memory, settled_memory
from goldspan.aggregation import get_aggregator
from goldspan.aggregation.bsc.engine import Fit, RunContext, Stopping
from goldspan.aggregation.bsc.engine import run as run_engine
from goldspan.crowd import Crowd, read_crowd
from goldspan.protocols import Runner, Serial
from goldspan.runners import Threads
from pairs import Row, compare
from simulated import Labels, single_labels, tagged_crowd

DATA = Path(os.environ.get("GOLDSPAN_DATA") or Path(__file__).parents[2] / "shared" / "data")
REAL = DATA / "ner_mturk" / "crowd_6056.tsv.gz"
WHOLE = DATA / "ner_mturk" / "crowd.tsv.gz"


class Shape(NamedTuple):
    """A crowd of single labels: every task has `per_task` answers, one label each."""

    n_tasks: int
    per_task: int
    n_workers: int
    n_classes: int

    def __str__(self) -> str:
        n_labels = self.n_tasks * self.per_task
        return (
            f"{n_labels:,} labels ({self.n_tasks:,} × {self.per_task} of {self.n_workers:,} "
            f"workers, {self.n_classes} classes)"
        )


USUAL = Shape(100_000, 5, 1_000, 4)
SHAPES = (
    USUAL,
    Shape(170_000, 3, 5_000, 9),
    Shape(50_000, 10, 200, 2),
    Shape(20_000, 25, 100, 2),
    USUAL._replace(n_tasks=1_000_000),
)
"""Half a million labels in four shapes, since the ratio depends on it; and ten times as many."""
TOL = 1e-5
"""crowd-kit stops when its bound grows by less than this per label."""
LIMIT = float(os.environ.get("GOLDSPAN_BENCH_LIMIT") or "1200")
"""Seconds that one run of the peer may take."""
GROWTH = (100_000, 1_000_000, 10_000_000)
BYTES = 12.0
LINEAR = 1.5
TEXT = 20.0
"""Seconds that `bsc-seq+crf` may take on crowd.tsv."""
COMPILING = 15.0
"""Seconds of compiling before the first result of `bsc-seq`."""


def run() -> list[Row]:
    """Run all of them."""
    rows = [row for shape in SHAPES for row in dawid_skene(shape)]
    rows += real_crowd() + with_text()
    rows += growth()
    return rows + cold_start()


# Dawid–Skene: from a DataFrame to a Series of labels.


def dawid_skene(shape: Shape) -> list[Row]:
    """Compare with crowd-kit; both sides in turn, every run in a fresh process.

    The target is for the usual shape alone; the others show how far the ratio depends on it.
    """
    is_usual = shape._replace(n_tasks=USUAL.n_tasks) == USUAL
    tol = our_tol(shape)
    little, much = (shape._replace(n_tasks=4_000), tol), (shape, tol)
    ours, two, peer = [], [], []
    for _ in range(3 if shape == USUAL else 1):
        ours.append(measured(OURS, little, much))
        two.append(measured(OURS_ON_TWO, little, much))
        peer.append(measured(PEER, little, much, LIMIT))
    mine, theirs = ours[0], peer[0]
    ratio = statistics.median(b.seconds / a.seconds for a, b in zip(ours, peer, strict=True))
    their_accuracy = theirs.value if theirs.finished else 0.0
    accuracy, fit = mine.value["accuracy"], mine.value["fit"]
    # Of a peer that was ended the peak is unknown; it is left out of the judgement.
    saves = not theirs.finished or mine.added_mb <= theirs.added_mb / 4
    whole = Row(
        f"ds, {shape}, DataFrame to Series (crowd-kit)",
        statistics.median(o.seconds for o in ours),
        statistics.median(o.seconds for o in peer),
        ratio,
        "≥ 60×, ≤ ¼ of the memory, accuracy not lower" if is_usual else "-",
        not is_usual or (ratio >= 60 and saves and accuracy >= their_accuracy),
        mine.added_mb,
        theirs.added_mb,
        _account(mine, theirs, tol),
    )
    if not is_usual:
        return [whole]
    seconds = statistics.median(o.seconds for o in two)
    on_two = Row(
        f"ds, {shape}, DataFrame to Series, 2 threads (crowd-kit, which has one)",
        seconds,
        whole.peer,
        statistics.median(b.seconds / a.seconds for a, b in zip(two, peer, strict=True)),
        "-",
        ok=True,
        ours_mb=two[0].added_mb,
        peer_mb=theirs.added_mb,
    )
    alone = Row(
        f"ds, {shape}, fit of a ready Crowd (crowd-kit from a DataFrame)",
        fit,
        whole.peer,
        whole.peer / fit,
        "-",
        ok=True,
        ours_mb=mine.value["fit_mb"],
        peer_mb=theirs.added_mb,
    )
    return [whole, on_two, alone]


def _account(mine: Outcome, theirs: Outcome, tol: float) -> str:
    value = mine.value
    steps, reached = theirs.told or (0, theirs.seconds)
    if theirs.finished:
        found = f"accuracy {value['accuracy']:.4f} against {theirs.value:.4f}"
        if 0 < theirs.value - value["accuracy"] < 1e-4:
            found += ", ours lower in a later digit"
    else:
        found = (
            f"accuracy {value['accuracy']:.4f}; crowd-kit was ended after {LIMIT:.0f} s without a "
            "result: the ratio is a lower bound, its memory unknown"
        )
    faster = (reached / max(1, steps)) / (value["fit"] / value["steps"])
    return (
        f"{found}; {value['steps']} against {steps} steps, each {faster:.0f}× as fast; ours reads "
        f"the DataFrame in {value['read']:.2f} s and fits in {value['fit']:.2f} s; crowd-kit stops "
        f"when its bound grows by less than {TOL:g} per label, ours by less than the same share "
        f"of labels (relative tol {tol:.1e})"
    )


def our_tol(shape: Shape) -> float:
    """Return the relative tolerance that is `TOL` per label in crowds of a shape."""
    made = _simulated(shape._replace(n_tasks=min(shape.n_tasks, 100_000)))
    objective = goldspan.aggregate(made.frame(), "ds", max_iter=5).trace[-1]
    return TOL / abs(objective / len(made.label))


def _simulated(shape: Shape) -> Labels:
    return single_labels(
        shape.n_tasks, shape.n_workers, per_task=shape.per_task, n_classes=shape.n_classes
    )


def _labels(size: tuple[Shape, float]) -> tuple[Any, Labels, float]:
    made = _simulated(size[0])
    return made.frame(), made, size[1]


def _ours(data: Any, _: Tell) -> Any:
    return get_aggregator("ds", tol=data[2], max_iter=1000).fit_predict(data[0])


def _ours_on_two(data: Any, _: Tell) -> Any:
    method = get_aggregator("ds", tol=data[2], max_iter=1000)
    return method.fit(data[0], runner=Threads(2)).labels_


def _judge_ours(data: Any, labels: Any) -> dict[str, float]:
    frame, made, tol = data
    begin = time.perf_counter()
    crowd = read_crowd(frame)
    read = time.perf_counter() - begin
    before = settled_memory()
    begin = time.perf_counter()
    result = goldspan.aggregate(crowd, "ds", tol=tol, max_iter=1000)
    fit = time.perf_counter() - begin
    return {
        "accuracy": made.accuracy(labels),
        "read": read,
        "fit": fit,
        "fit_mb": peak_memory() - before,
        "steps": len(result.trace),
    }


class Watched(DawidSkene):
    """crowd-kit's method, telling after every step how many there were and when."""

    tell: Tell = staticmethod(lambda _: None)
    begin = 0.0

    def _evidence_lower_bound(self, *args: Any) -> float:
        bound = super()._evidence_lower_bound(*args)
        self.tell((len(self.loss_history_) + 1, time.perf_counter() - self.begin))
        return bound


def _peer(data: Any, tell: Tell) -> Any:
    model = Watched(n_iter=1000, tol=TOL)
    model.tell, model.begin = tell, time.perf_counter()
    return model.fit_predict(data[0])


def _judge_peer(data: Any, labels: Any) -> float:
    return data[1].accuracy(labels)


OURS = Work(_labels, _ours, _judge_ours)
OURS_ON_TWO = Work(_labels, _ours_on_two, _judge_ours)
PEER = Work(_labels, _peer, _judge_peer)


# BSC-seq on the real crowd: the iterations against NumPy's.


def real_crowd() -> list[Row]:
    """Compare with `numpy_bsc`, both for as many steps as the default needs; if the data exist."""
    if not REAL.exists():
        print(f"left out: BSC-seq on the real crowd (no file {REAL})")
        return []
    steps = len(_real()[0].trace)
    rows = []
    # Small matrix products are slower on several threads: the peer gets the better of both.
    with threadpool_limits(1):
        for runner, promise in ((Serial(), 2.0), (Threads(2), 4.0)):
            name = "1 thread" if promise == 2.0 else "2 threads"
            rows.append(
                compare(
                    f"bsc-seq, {steps} steps on crowd_6056, {name} (NumPy)",
                    _real,
                    lambda data, runner=runner: _steps(data, runner, steps),
                    lambda data: numpy_bsc.run(data[1], tol=0, max_iter=steps),
                    at_least=promise,
                    rounds=9,
                )
            )
        rows.append(
            compare(
                f"bsc-seq, {steps} steps on crowd_6056, 1 thread (NumPy and scipy.sparse)",
                _real,
                lambda data: _steps(data, Serial(), steps),
                lambda data: numpy_bsc.run(data[2], tol=0, max_iter=steps),
                rounds=9,
            )
        )
        rows.append(
            compare(
                "bsc-seq, all of aggregate() on crowd_6056 (layout and steps in NumPy)",
                _real,
                lambda data: goldspan.aggregate(data[0].crowd, "bsc-seq"),
                lambda data: numpy_bsc.run(numpy_bsc.prepare(data[0].crowd)),
                note="ours also decodes and gives confidences, the peer does not",
            )
        )
    return rows


def with_text() -> list[Row]:
    """Time `bsc-seq+crf` on all of crowd.tsv with two threads, if the data exist.

    Of four runs the first is left out, which may compile.
    """
    if not WHOLE.exists():
        print(f"left out: bsc-seq+crf on the real crowd (no file {WHOLE})")
        return []
    crowd, seconds = read_crowd(WHOLE), []
    for _ in range(4):
        begin = time.perf_counter()
        goldspan.aggregate(crowd, "bsc-seq+crf", runner=Threads(2))
        seconds.append(time.perf_counter() - begin)
    ours = statistics.median(seconds[1:])
    return [
        Row(
            "bsc-seq+crf, all of aggregate() on crowd.tsv.gz, 2 threads",
            ours,
            float("nan"),
            float("nan"),
            f"≤ {TEXT:g} s",
            ok=ours <= TEXT,
            ours_mb=float("nan"),
            peer_mb=float("nan"),
            note=f"three runs, {min(seconds[1:]):.1f} to {max(seconds[1:]):.1f} s",
        )
    ]


@cache
def _real() -> tuple[Any, numpy_bsc.Task, numpy_bsc.Task]:
    """Return a result, which holds the layout for our engine, and the peer's two layouts."""
    crowd = read_crowd(REAL)
    result = goldspan.aggregate(crowd, "bsc-seq")
    return result, numpy_bsc.prepare(crowd), numpy_bsc.prepare(crowd, sparse=True)


def _steps(data: Any, runner: Runner, steps: int) -> Any:
    shards, memory = data[0].posterior.shards, data[0].memory
    stopping = Stopping(0.0, steps)
    return run_engine(memory.model, shards, memory.sums, stopping, RunContext(runner))


# Growth: the same work per label, however many there are.


def growth() -> list[Row]:
    """Measure BSC-seq on ever more answered tokens; the peer is our best so far, scaled.

    Small crowds pay for their parameters, which do not grow: the smallest is not the best.
    """
    rows: list[Row] = []
    base = float("inf")
    for n in GROWTH:
        found = measured(GROW, GROWTH[0] // 10, n).value
        base = min(base, found["ns"])
        linear = base / found["ns"]
        name = f"bsc-seq, {found['labels']:,} answered tokens"
        rows.append(
            Row(
                f"{name}, a step (the best so far, scaled)",
                found["ns"] * found["labels"] / 1e9,
                base * found["labels"] / 1e9,
                linear,
                f"linear within {LINEAR:g}×",
                linear >= 1 / LINEAR,
                found["steps_mb"],
                0.0,
                f"{found['ns']:.0f} ns per answered token and step",
            )
        )
        rows.append(
            Row(
                f"{name}, memory of aggregate() in 3 steps",
                found["seconds"],
                float("nan"),
                float("nan"),
                f"≤ {BYTES:g} bytes per answered token",
                found["bytes"] <= BYTES or n < GROWTH[-1],
                found["added_mb"],
                float("nan"),
                f"{found['bytes']:.1f} bytes per answered token beside parameters and result "
                f"({found['result_mb']:.0f} MiB), {found['step_bytes']:.1f} while it iterates "
                f"(judged on the largest crowd)",
            )
        )
    return rows


def _grown(n_labels: int) -> Crowd:
    return tagged_crowd(n_labels)


def _aggregate(crowd: Crowd, _: Tell) -> Any:
    # The first touch of what a crowd caches belongs to the run.
    before = settled_memory()
    begin = time.perf_counter()
    result = goldspan.aggregate(crowd, "bsc-seq", max_iter=3)
    return result, time.perf_counter() - begin, peak_memory() - before


def _judge_growth(crowd: Crowd, found: Any) -> dict[str, float]:
    result, seconds, added = found
    n_labels = int((crowd.latest.codes >= 0).sum())
    shards, memory = result.posterior.shards, result.memory
    tables = result.posterior.tables
    kept = (result.codes, result.token_probs, result.span_confidence, result.confidence)
    parameters = (tables.table, tables.log_table, memory.sums.counts, memory.posterior.alpha)
    fixed = sum(array.nbytes for array in (*kept, result.entropy, *parameters)) / 2**20
    stopping, context = Stopping(0.0, 3), RunContext(Serial())
    before = settled_memory()
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        fit: Fit = run_engine(memory.model, shards, memory.sums, stopping, context)
        times.append(time.perf_counter() - begin)
    steps_mb = peak_memory() - before
    evidence = sum(s.row.nbytes + s.bounds.nbytes for s in shards) / 2**20
    return {
        "labels": n_labels,
        "seconds": seconds,
        "added_mb": added,
        "result_mb": fixed,
        "bytes": (added - fixed) * 2**20 / n_labels,
        "step_bytes": (evidence + steps_mb) * 2**20 / n_labels,
        "steps_mb": steps_mb,
        "ns": min(times) / len(fit.trace) / n_labels * 1e9,
    }


GROW = Work(_grown, _aggregate, _judge_growth)


# Cold start: kernels compiled, and read from the cache.

EXAMPLE = Path(__file__).parents[1] / "examples" / "crowd.tsv"


def cold_start() -> list[Row]:
    """Time the whole command with a filled cache and with an empty one."""
    rows = []
    for method, promise in (("ds", 0.0), ("bsc-seq", COMPILING)):
        with tempfile.TemporaryDirectory() as folder:
            empty = _command(method, folder)
            filled = statistics.median(_command(method, folder) for _ in range(3))
        rows.append(
            Row(
                f"goldspan aggregate -m {method}, kernels cached (not yet cached)",
                filled,
                empty,
                empty / filled,
                f"≤ {promise:g} s of compiling" if promise else "-",
                ok=not promise or empty - filled <= promise,
                ours_mb=0,
                peer_mb=0,
                note=f"compiling takes {empty - filled:.1f} s",
            )
        )
    return rows


def _command(method: str, cache_folder: str) -> float:
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "goldspan", "aggregate", str(EXAMPLE), "-m", method],
        check=True,
        capture_output=True,
        env={**os.environ, "NUMBA_CACHE_DIR": cache_folder},
    )
    return time.perf_counter() - begin
