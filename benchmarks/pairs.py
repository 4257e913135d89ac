"""Ours and the peer in turn: the ratio of every pair of runs, and each side's added peak memory.

Absolute times drift with the machine; the ratio of two runs made one after the other does not.
Memory is measured in a process of its own for each side: the peak of the run over the memory that
the process had before it, the data already loaded.
"""

from __future__ import annotations

import gc
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        name: What was done.
        ours: Median seconds of ours.
        peer: Median seconds of the peer.
        ratio: Median of peer / ours (how many times faster ours is).
        wanted: The promise, in words.
        ok: Whether it is kept.
        ours_mb: Peak memory that our side added, MiB.
        peer_mb: The same of the peer.
        note: Anything to say.
    """

    name: str
    ours: float
    peer: float
    ratio: float
    wanted: str
    ok: bool
    ours_mb: float
    peer_mb: float
    note: str = ""


def compare(
    name: str,
    prepare: Callable[[], Any],
    ours: Callable[[Any], Any],
    peer: Callable[[Any], Any],
    *,
    at_least: float = 0.0,
    at_most: float = 0.0,
    rounds: int = 5,
    scale: float = 1.0,
    note: str = "",
) -> Row:
    """Run both sides in turn.

    Args:
        name: What is done.
        prepare: Makes the data that both sides get; not timed.
        ours: Our side.
        peer: The other side.
        at_least: Promise: peer / ours is at least this.
        at_most: Promise: ours / peer is at most this.
        rounds: Counted rounds, after one that is not counted.
        scale: Factor for the peer's time, where it does a part of our work.
        note: Anything to say.
    """
    data = prepare()
    times: list[tuple[float, float]] = []
    for n in range(rounds + 1):
        pair = (_seconds(ours, data), _seconds(peer, data) * scale)
        if n:
            times.append(pair)
    ratio = statistics.median(b / a for a, b in times)
    wanted = f"≥ {at_least:g}×" if at_least else f"≤ {at_most:g}× the time" if at_most else "-"
    ok = (not at_least or ratio >= at_least) and (not at_most or 1 / ratio <= at_most)
    return Row(
        name,
        statistics.median(a for a, _ in times),
        statistics.median(b for _, b in times),
        ratio,
        wanted,
        ok,
        added_memory(prepare, ours),
        added_memory(prepare, peer),
        note,
    )


def added_memory(prepare: Callable[[], Any], run: Callable[[Any], Any]) -> float:
    """Peak memory in MiB that a run adds, in a fresh process."""
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=_measure, args=(queue, prepare, run))
    process.start()
    found: float = queue.get()
    process.join()
    return found


def _measure(queue: Any, prepare: Callable[[], Any], run: Callable[[Any], Any]) -> None:
    data = prepare()
    gc.collect()
    before = _resident()
    run(data)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    queue.put(max(0.0, peak - before))


def _resident() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def _seconds(run: Callable[[Any], Any], data: Any) -> float:
    gc.collect()
    start = time.perf_counter()
    run(data)
    return time.perf_counter() - start
