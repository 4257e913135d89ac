"""What is measured, each in a process of its own: an aggregation, Ray beside threads, a pool."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import goldspan
from benchmarks.children import Work, peak_memory, settled_memory
from benchmarks.simulated import write_campaign
from goldspan.aggregation import Consensus
from goldspan.runners import Ray, Threads

STEPS, RAY_RUNS, PAIRS, BATCH = 5, 3, 50, 1_000
MIB = 2.0**20
Facts = dict[str, float]


def _as_it_is(given: Any) -> Any:
    return given


def _first(_: Any, found: Any) -> Any:
    return found


def _now() -> NDArray[np.float64]:
    """Return seconds by the clock, and those that this process computed, on all cores."""
    return np.array([time.perf_counter(), time.process_time()])


# --------------------------------------------------------------------------------------------------
# From a Parquet file to labels.


class Job(NamedTuple):
    """An aggregation: file, method, threads."""

    path: Path
    method: str
    threads: int


def _aggregate(job: Job, _: Any) -> Facts:
    """Read and aggregate; memory is what is beyond that of before."""
    before, begin = settled_memory(), _now()
    crowd = goldspan.read_crowd(job.path)
    read, read_mb = _now() - begin, peak_memory() - before
    crowd_mb = settled_memory() - before
    marks, before, begin = [], settled_memory(), _now()
    result = goldspan.aggregate(
        crowd, job.method, max_iter=STEPS, tol=0, runner=Threads(job.threads),
        progress=lambda *_: marks.append(_now()),
    )  # fmt: skip
    whole, added = _now() - begin, peak_memory() - before
    steps, n_labels = np.diff(marks, axis=0), int((crowd.latest.codes >= 0).sum())
    return {
        "labels": n_labels,
        "workers": crowd.n_workers,
        "items": crowd.n_items,
        "file_mb": job.path.stat().st_size / MIB,
        "read": read[0],
        "read_cpu": read[1],
        "read_mb": read_mb,
        "crowd_mb": crowd_mb,
        "seconds": whole[0],
        "cpu": whole[1],
        "step": steps[:, 0].min(),
        "step_cpu": steps[:, 1].min(),
        "added_mb": added,
        "load": os.getloadavg()[0],
        **_fixed(result),
    }


def _fixed(result: Consensus) -> Facts:
    """Return what parameters and result take, and how long an update of the parameters takes."""
    tables, memory = result.posterior.tables, result.memory
    rows, posterior = memory.model.rows, memory.posterior
    own: list[Any] = [tables.table, tables.log_table, memory.sums.counts]
    own += [*vars(posterior).values(), rows.worker, rows.label]
    kept: list[Any] = [result.codes, result.token_probs, result.span_confidence]
    kept += [result.confidence, result.entropy]
    evidence = [getattr(s, one.name) for s in result.posterior.shards for one in fields(s)]
    updates = [_seconds(lambda: memory.model.update(memory.sums, posterior)) for _ in range(STEPS)]
    return {
        "update": min(one[1] for one in updates),  # as the steps, of which the fastest counts
        "rows": len(rows),
        "evidence_mb": sum(getattr(one, "nbytes", 0) for one in evidence) / MIB,
        "parameters_mb": sum(one.nbytes for one in own) / MIB,
        "result_mb": sum(one.nbytes for one in kept) / MIB,
    }


AGGREGATE = Work(_as_it_is, _aggregate, _first)


# --------------------------------------------------------------------------------------------------
# Ray beside threads: steps of `ds`, in turn.


def _beside(given: tuple[int, int], _: Any) -> Facts:
    from benchmarks.cluster import crowd_of, steps_of

    n_labels, threads = given
    crowd, here = crowd_of(n_labels), Threads(threads)
    found: dict[str, list[float]] = {"threads": [], "ray": []}
    with Ray(n_workers=threads, memory=2 * 10**9) as there:
        for turn in range(RAY_RUNS + 1):
            one, own = steps_of(crowd, here)
            other, its = steps_of(crowd, there)
            if one != other:
                raise AssertionError("Ray and threads give other bits")
            if turn:  # the first run compiles and imports
                found["threads"] += own
                found["ray"] += its
    facts: Facts = {"load": os.getloadavg()[0]}
    for name, steps in found.items():
        facts |= {name: min(steps), f"{name}_median": float(np.median(steps))}
    return facts


BESIDE = Work(_as_it_is, _beside, _first)


# --------------------------------------------------------------------------------------------------
# A pool that is served: opened for the first time, a round picked, the desk's pages.


def _serve(n_items: int, _: Any) -> Facts:
    from goldspan.web import open_service
    from goldspan.web.engine import Engine
    from goldspan.web.settings import Keys

    with tempfile.TemporaryDirectory(prefix="goldspan-scale-") as name:
        folder = Path(name)
        plan = write_campaign(folder, n_items, min(n_items, BATCH))
        before, marks = settled_memory(), [_now()]
        service = open_service(plan, folder / "out", Keys(bytes(range(32))))
        marks.append(_now())
        service.begin()
        marks.append(_now())
        service.campaign.run()
        marks.append(_now())
        facts: Facts = {
            "open_mb": peak_memory() - before,
            "held_mb": settled_memory() - before,
        }
        for act, both in zip(("opened", "begun", "picked"), np.diff(marks, axis=0), strict=True):
            facts |= _both(act, both)
        assert isinstance(service.engine, Engine)  # the loop is in this process
        service.engine.look()
        desk = service.desk
        pages: dict[str, Callable[[], Any]] = {
            "overview": desk.overview,
            "items": desk.items,
            "workers": desk.workers,
            "flagged": partial(desk.items, state="flagged"),
            "search": partial(desk.items, find="Rome"),
        }
        for page, show in pages.items():
            facts |= _both(f"first_{page}", _seconds(show))
            facts |= _both(page, np.median([_seconds(show) for _ in range(7)], axis=0))
        names = iter(range(10**9))

        def pair() -> None:
            n = next(names)
            task = service.work.next(f"w{n % 50}")["task"]
            service.work.submit(f"w{n % 50}", task["id"], f"key-{n:08d}", [])

        facts |= _both("pair", np.median([_seconds(pair) for _ in range(PAIRS)], axis=0))
        facts |= {"load": os.getloadavg()[0]}
        service.close()
    return facts


def _seconds(act: Callable[[], Any]) -> NDArray[np.float64]:
    begin = _now()
    act()
    return _now() - begin


def _both(name: str, seconds: NDArray[np.float64]) -> Facts:
    return {name: float(seconds[0]), f"{name}_cpu": float(seconds[1])}


SERVE = Work(_as_it_is, _serve, _first)
