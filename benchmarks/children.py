"""A piece of work in a fresh process: its seconds, its added peak memory, and how far it got.

Spawned, not forked, so that nothing is inherited. The work is first done on little data, so that
neither imports nor compilers count; then memory is given back, the kernel's high-water mark is
reset (Linux: /proc/self/clear_refs), and the real run is measured. A run over its time limit is
ended; what it told before is kept.
"""

from __future__ import annotations

import ctypes
import gc
import math
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

Tell = Callable[[Any], None]
LOOK = 0.05
"""Seconds between looks at the clock and at the memory of the process."""


@dataclass(frozen=True)
class Outcome:
    """What came of it.

    Attributes:
        seconds: Of the run; the time until the end of its limit, if it was ended.
        added_mb: Peak memory that the run added, MiB; NaN if it was ended.
        value: What `judge` gave, None if it was ended.
        told: What it told last, or None.
        finished: Whether it came to its end.
        failed: How it ended where its memory was limited and did not do; else "".
    """

    seconds: float
    added_mb: float
    value: Any
    told: Any
    finished: bool
    failed: str = ""


@dataclass(frozen=True)
class Work:
    """What to do; functions of modules, so that a spawned process finds them.

    Attributes:
        prepare: Makes the data; not measured.
        run: The work on the data; it may `tell` how far it is.
        judge: Makes the value to hand back of data and result; not measured.
    """

    prepare: Callable[[Any], Any]
    run: Callable[[Any, Tell], Any]
    judge: Callable[[Any, Any], Any]


def measured(
    work: Work, little: Any, much: Any, limit: float = 3600.0, *, memory: int | None = None
) -> Outcome:
    """Measure `run(prepare(much), tell)` in a process of its own.

    Args:
        work: What to do.
        little: Argument of `prepare` for the run that warms up.
        much: Argument of `prepare` for the run that counts.
        limit: Seconds that the run may take.
        memory: Bytes that may be resident in the process; what needs more, or is killed, has
            failed.

    Raises:
        ChildProcessError: The work raised an error, which the process has printed; or the process
            was killed though its memory was not limited.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(there, work, little, much, memory))
    process.start()
    there.close()
    try:
        return _heard(here, process, limit, memory)
    finally:
        if process.is_alive():
            process.kill()
        process.join()


def _heard(here: Any, process: Any, limit: float, memory: int | None) -> Outcome:
    """Hear what the process tells until it ends, or is ended."""
    nothing, told, end = float("nan"), None, math.inf
    while True:
        kind, value = _next(here, process, end, memory)
        if kind == "begin":
            end = time.perf_counter() + limit
        elif kind == "ran":
            end = math.inf
        elif kind == "told":
            told = value
        elif kind == "late":
            return Outcome(limit, nothing, None, told, finished=False)
        elif kind == "failed":
            return Outcome(nothing, nothing, None, told, finished=False, failed=value)
        elif kind == "end":
            process.join()
            seconds, added, found = value
            return Outcome(seconds, added, found, told, finished=True)


def _next(here: Any, process: Any, end: float, memory: int | None) -> tuple[str, Any]:
    """Wait for what the process tells next; or for the end of its time, memory or life."""
    is_told = False
    while not is_told:
        is_told = here.poll(LOOK)
        if time.perf_counter() > end:
            return "late", None
        if memory is not None and _status("VmHWM", process.pid) * 2**20 > memory:
            return "failed", _large(memory)
    try:
        kind, value = here.recv()
    except EOFError:
        return "failed", _death(process, memory)
    return kind, value


def _large(memory: int) -> str:
    return f"it needs more than {memory / 1e9:.1f} GB"


def _death(process: Any, memory: int | None) -> str:
    """Say how a process was killed, if that may be for its memory."""
    process.join()
    if process.exitcode >= 0:
        raise ChildProcessError("a measurement ended by the error above")
    words = f"it was ended by signal {-process.exitcode}"
    if memory is None:
        raise ChildProcessError(words)
    return words


def _child(there: Any, work: Work, little: Any, much: Any, memory: int | None) -> None:
    small = work.prepare(little)
    work.judge(small, work.run(small, lambda _: None))
    try:
        _measure(there, work, much)
    except MemoryError:  # the system did not even promise so much
        if memory is None:
            raise
        there.send(("failed", _large(memory)))


def _measure(there: Any, work: Work, much: Any) -> None:
    data = work.prepare(much)
    before = settled_memory()
    there.send(("begin", None))
    begin = time.perf_counter()
    result = work.run(data, lambda value: there.send(("told", value)))
    seconds = time.perf_counter() - begin
    added = max(0.0, peak_memory() - before)
    there.send(("ran", None))  # judging has no limit
    there.send(("end", (seconds, added, work.judge(data, result))))


def settled_memory() -> float:
    """Return memory back, reset the high-water mark, and give the resident memory in MiB."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status("VmRSS")


def peak_memory() -> float:
    """Return the high-water mark in MiB."""
    return _status("VmHWM")


def _status(name: str, process: int | str = "self") -> float:
    """Return a figure of a process in MiB; 0 of one that has ended."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    found = (int(line.split()[1]) for line in lines if line.startswith(name))
    return next(found, 0) / 1024
