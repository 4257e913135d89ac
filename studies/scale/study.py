"""Study scale: time, memory and what breaks first as crowds, pools and clusters grow."""

from __future__ import annotations

import multiprocessing
import os
import platform
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.children import Outcome, Work, measured
from goldspan import __version__
from goldspan.errors import GoldspanError, InputError, UnknownNameError
from goldspan.runners.threads import usable_cores
from studies import journal
from studies.scale.crowds import FEW, MANY, NINE, TAGGED, TWO, Kind, write_crowd
from studies.scale.picture import draw
from studies.scale.plan import Constants, breaks, constants_table, plan_table
from studies.scale.points import AGGREGATE, BESIDE, MIB, SERVE, STEPS, Job
from studies.table import Study, Table

Told = Callable[[int, int], None]

VERSION = 2
"""Of what is measured; another one measures anew."""
SIZES, QUICK_SIZES = tuple(10**n for n in range(5, 9)), (10_000, 50_000)
RAY_SIZES, QUICK_RAY_SIZES = (10**5, 10**6, 10**7), (10_000,)
POOL, QUICK_POOL = 10**6, 1_000
MANY_SIZE, QUICK_MANY = 10**6, 20_000
WARM = 3_300_000
"""Labels of the crowd on which a process first loads all that it needs: also what serves many
answers alone."""
MEMORY, SPARED = 16e9, 2e9
"""Bytes that a measurement may use, and that it leaves to the machine."""
FLAT, BYTES, ROUND, PAGE = 1.5, 12.0, 20.0, 0.3
"""Our targets: growth of a step per label, bytes per answered token, seconds of the first round
and of a page."""
FROM = 10**6
"""Labels from which on a step is to take as long per label."""
SERIES: tuple[tuple[str, Kind], ...] = (
    ("ds", TWO), ("mace", TWO), ("ds", NINE), ("mace", NINE), ("bsc-seq", TAGGED),
    ("bsc-seq", FEW),
)  # fmt: skip
BY_PLAN = (("bsc-seq", TAGGED), ("bsc-seq", MANY))
"""The series that the plan reckons with; that of many tags is measured at one size."""
RAY, SERVED = "ray", "pool"
PARTS = ("ds", "mace", "bsc-seq", RAY, SERVED)
RAY_NAME, POOL_NAME = "ds on Ray beside threads", "a pool that is served"


def label_of(method: str, kind: Kind) -> str:
    """Name a series."""
    return f"{method}, {kind.name}"


@dataclass(frozen=True)
class Point:
    """A measurement.

    Attributes:
        facts: What was found, by name; empty if it failed.
        failed: How it failed, or "".
        memory: Bytes that it was allowed.
    """

    facts: Mapping[str, float]
    failed: str
    memory: float

    @classmethod
    def of(cls, outcome: Outcome, memory: float) -> Point:
        """Make one of what a process found."""
        return cls(outcome.value or {}, outcome.failed or "", memory)


class Journal(journal.Journal[Point]):
    """Points by size and series."""

    number, label = "size", "series"

    def plain(self, run: Point) -> dict[str, Any]:
        """Return a point as values that JSON can hold."""
        return {"facts": dict(run.facts), "failed": run.failed, "memory": run.memory}

    def made(self, found: Mapping[str, Any]) -> Point:
        """Make a point of what a line holds."""
        return Point(found["facts"], found["failed"], float(found["memory"]))


def study(
    data: Path | None = None,  # noqa: ARG001 - all is simulated
    *,
    progress: Told | None = None,
    methods: tuple[str, ...] = PARTS,
    labels: int | None = None,
    quick: bool = False,
    state: str | Path | None = None,
    threads: int | None = None,
) -> Study:
    """Make the tables.

    Args:
        data: Not needed.
        progress: Told how many of all measurements are over.
        methods: Parts of the study: ds, mace, bsc-seq, ray, pool.
        labels: Size of the largest crowd; 10⁸ by default.
        quick: Whether it is only to be seen that the study runs.
        state: File of finished measurements, to go on from after a break.
        threads: How many; None is all cores.

    Raises:
        UnknownNameError: There is no such part.
        InputError: No size is as small as `labels`.
    """
    for name in methods:
        if name not in PARTS:
            raise UnknownNameError("part of the study", name, PARTS)
    sizes = [n for n in (QUICK_SIZES if quick else SIZES) if labels is None or n <= labels]
    if not sizes:
        raise InputError(f"labels must be at least {min(QUICK_SIZES if quick else SIZES)}")
    n_threads, memory = threads or usable_cores(), min(MEMORY, _free() - SPARED)
    facts = f"{VERSION} {__version__} {_machine()} threads {n_threads} quick {quick}"
    series = [(method, kind) for method, kind in SERIES if method in methods]
    many = QUICK_MANY if quick else MANY_SIZE
    more = [BY_PLAN[1]] if "bsc-seq" in methods and max(sizes) >= many else []
    names = [*(label_of(*one) for one in (*series, *more)), RAY_NAME, POOL_NAME]
    path = None if state is None else Path(state)
    book = Journal(path, {name: f"{name} {facts}" for name in names})
    work = list(_crowd_work(series, sizes, n_threads))
    work += _crowd_work(more, [many], n_threads)
    has_ray = RAY in methods and find_spec("ray") is not None
    if has_ray:
        for n in QUICK_RAY_SIZES if quick else RAY_SIZES:
            if labels is None or n <= labels:
                work.append(((n, RAY_NAME), partial(_beside, n, n_threads)))
    if SERVED in methods:
        n = QUICK_POOL if quick else POOL
        work.append(((n, POOL_NAME), partial(_direct, SERVE, 100, n)))
    _carry_out(book, work, int(memory), progress)
    runs = {key: book.runs[key] for key, _ in work}
    known = [found for one in BY_PLAN if (found := _constants(runs, *one))]
    tables = [
        *(_growth(runs, label_of(*one)) for one in series),
        *([_memory(runs)] if series else []),
        *([_ray(runs)] if has_ray else []),
        *([_pool(runs)] if SERVED in methods else []),
        *([constants_table(known), plan_table(known)] if known else []),
    ]
    notes = list(_notes(runs, n_threads, memory, known, quick=quick))
    if RAY in methods and not has_ray:
        notes.append("Left out: Ray beside threads, since Ray is not installed here.")
    return Study("How it grows", tables, notes, partial(draw, _curves(runs)))


# --------------------------------------------------------------------------------------------------
# The measurements: every one in a process of its own, with a limit to its memory.

Key = journal.Key
Measure = Callable[[int], Point]


def _crowd_work(
    series: Iterable[tuple[str, Kind]], sizes: Iterable[int], threads: int
) -> Iterator[tuple[Key, Measure]]:
    """List the aggregations, those on the same file after each other."""
    every = list(series)
    for n in sizes:
        for kind in dict.fromkeys(kind for _, kind in every):
            for method in (method for method, own in every if own == kind):
                yield (n, label_of(method, kind)), partial(_aggregated, kind, n, method, threads)


def _aggregated(kind: Kind, n: int, method: str, threads: int, memory: int) -> Point:
    """Write a crowd, and measure its aggregation."""
    with tempfile.TemporaryDirectory(prefix="goldspan-scale-") as name:
        sizes = (min(n, WARM), n)
        jobs = [Job(Path(name, f"{size}.parquet"), method, threads) for size in sizes]
        for size, job in zip(sizes, jobs, strict=True):
            if not job.path.exists() and not _written(kind, size, job.path):
                return Point({}, f"a crowd of {size:,} labels could not be written", memory)
        return _direct(AGGREGATE, jobs[0], jobs[1], memory)


def _written(kind: Kind, n: int, path: Path) -> bool:
    """Write a crowd in a process of its own, whose memory is free again afterwards."""
    own = multiprocessing.get_context("spawn").Process(target=write_crowd, args=(kind, n, path))
    own.start()
    own.join()
    return own.exitcode == 0


def _beside(n: int, threads: int, memory: int) -> Point:
    """Measure Ray beside threads; the limit would be that of every process of the cluster."""
    return replace(_direct(BESIDE, (10_000, 1), (n, threads), None), memory=float(memory))


def _direct(work: Work, little: Any, much: Any, memory: int | None) -> Point:
    """Measure; only what failed for its memory is kept as failed."""
    try:
        return Point.of(measured(work, little, much, memory=memory), memory or 0.0)
    except ChildProcessError as error:
        raise GoldspanError(f"{error}; the same command goes on with it") from None


def _carry_out(
    book: Journal, work: Iterable[tuple[Key, Measure]], memory: int, told: Told | None
) -> None:
    """Measure what is not kept yet, and what failed with less memory than there is now."""
    every = list(work)
    for done, (key, measure) in enumerate(every, start=1):
        kept = book.runs.get(key)
        if kept is None or (kept.failed and kept.memory < memory):
            book.add(key, measure(memory))
        if told:
            told(done, len(every))


def _free() -> float:
    """Return the bytes of memory that other programs leave."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable"):
            return float(line.split()[1]) * 1024
    raise InputError("study scale reads /proc/meminfo: it needs Linux")


def _machine() -> str:
    return f"{platform.machine()} {os.cpu_count()} cores"


# --------------------------------------------------------------------------------------------------
# The tables.


def _own(runs: Mapping[Key, Point], name: str) -> dict[int, Point]:
    return {size: point for (size, label), point in sorted(runs.items()) if label == name}


def _ns(point: Point) -> float:
    """Return nanoseconds of a core per label and step."""
    return 1e9 * point.facts["step_cpu"] / point.facts["labels"]


def _bytes(point: Point) -> float:
    """Return what is added to memory beyond parameters and result, bytes per label."""
    facts = point.facts
    rest = facts["added_mb"] - facts["parameters_mb"] - facts["result_mb"]
    return rest * MIB / facts["labels"]


def _growth(runs: Mapping[Key, Point], name: str) -> Table:
    """Show a series."""
    columns = (
        "labels", "workers", "file, MB", "read, s", "read, CPU s", "aggregate, s",
        "aggregate, CPU s", "a step, s", "CPU ns per label and step", "load", "failed",
    )  # fmt: skip
    rows: list[tuple[Any, ...]] = []
    for size, point in _own(runs, name).items():
        facts = point.facts
        if point.failed:
            rows.append((size, *[None] * 9, point.failed))
            continue
        names = ("file_mb", "read", "read_cpu", "seconds", "cpu", "step")
        rows.append((
            int(facts["labels"]), int(facts["workers"]), *(facts[one] for one in names),
            _ns(point), facts["load"], None,
        ))  # fmt: skip
    digits: dict[str, int | str] = {"file, MB": 1, "a step, s": 4, "load": 1, columns[8]: 1}
    return Table(f"Time: {name}", columns, tuple(rows), digits)


def _memory(runs: Mapping[Key, Point]) -> Table:
    """Show the memory of all series."""
    columns = (
        "series", "labels", "reading, peak, MB", "the crowd, MB", "aggregate, peak, MB",
        "of it parameters, MB", "of it result, MB", "rest, bytes per label",
    )  # fmt: skip
    rows = []
    for name in dict.fromkeys(label_of(*one) for one in (*SERIES, BY_PLAN[1])):
        for point in _own(runs, name).values():
            facts = point.facts
            if point.failed:
                continue
            sizes = ("read_mb", "crowd_mb", "added_mb", "parameters_mb", "result_mb")
            rows.append((name, int(facts["labels"]), *(facts[one] for one in sizes), _bytes(point)))
    digits: dict[str, int | str] = dict.fromkeys(columns[2:7], 0)
    return Table("Memory: what reading and aggregating add to the process", columns, tuple(rows),
                 digits | {columns[7]: 1})  # fmt: skip


def _ray(runs: Mapping[Key, Point]) -> Table:
    """Show Ray beside threads."""
    columns = (
        "labels", "threads, least, ms", "threads, median, ms", "Ray, least, ms", "Ray, median, ms",
        "ratio of the least", "Ray takes longer by, ms", "load", "failed",
    )  # fmt: skip
    rows: list[tuple[Any, ...]] = []
    for size, point in _own(runs, RAY_NAME).items():
        facts = point.facts
        if point.failed:
            rows.append((size, *[None] * 7, point.failed))
            continue
        times = [1e3 * facts[one] for one in ("threads", "threads_median", "ray", "ray_median")]
        rows.append((
            size, *times, facts["ray"] / facts["threads"], times[2] - times[0], facts["load"], None,
        ))  # fmt: skip
    digits = dict.fromkeys(columns, 1)
    return Table("Ray beside threads: a step of ds", columns, tuple(rows), digits)


POOL_ROWS = (
    ("the plan and its pool are read, the store is made, s", "opened", 1.0),
    ("the pool is put into the store, s", "begun", 1.0),
    ("the first round is picked, s", "picked", 1.0),
    ("peak of memory until then, MB", "open_mb", 1.0),
    ("memory that stays, MB", "held_mb", 1.0),
    ("the desk's overview, ms", "overview", 1e3),
    ("the desk's items, ms", "items", 1e3),
    ("the desk's items, flagged, ms", "flagged", 1e3),
    ("the desk's items with a word, ms", "search", 1e3),
    ("the desk's workers, ms", "workers", 1e3),
    ("next and an answer, without HTTP, ms", "pair", 1e3),
)


def _pool(runs: Mapping[Key, Point]) -> Table:
    """Show a pool that is served."""
    rows: list[tuple[Any, ...]] = []
    for size, point in _own(runs, POOL_NAME).items():
        if point.failed:
            rows.append((size, point.failed, None, None, None))
        for what, name, factor in POOL_ROWS if not point.failed else ():
            found = (point.facts.get(one) for one in (name, f"{name}_cpu", f"first_{name}"))
            rows.append((size, what, *(None if one is None else one * factor for one in found)))
    columns = ("items", "what", "measured", "CPU", "by the clock, the first time")
    return Table("A pool that is served", columns, tuple(rows), dict.fromkeys(columns[2:], 1))


def _constants(runs: Mapping[Key, Point], method: str, kind: Kind) -> Constants | None:
    """Return the constants of the largest crowd of a series that was measured."""
    done = [point for point in _own(runs, label_of(method, kind)).values() if not point.failed]
    if not done:
        return None
    facts = done[-1].facts
    return Constants(
        kind.n_tags, facts["labels"],
        max(0.0, facts["step_cpu"] - facts["update"]) / facts["labels"],  # a step has both
        facts["update"] / facts["rows"] / kind.n_tags, facts["rows"] / facts["workers"],
        facts["evidence_mb"] * MIB / facts["labels"],
    )  # fmt: skip


def _notes(
    runs: Mapping[Key, Point], threads: int, memory: float, known: Iterable[Constants],
    *, quick: bool,
) -> Iterator[str]:  # fmt: skip
    """Say what was measured, and which of our targets it meets."""
    if quick:
        yield "QUICK: small sizes. It shows that the study runs, no result."
    yield (
        f"{_machine()}, {threads} thread{'s' * (threads > 1)}. Every measurement has a process of "
        f"its own, which may use {memory / 1e9:.1f} GB (beyond it fails, and the table says so) "
        f"and has worked on a smaller crowd before. Of {STEPS} steps the fastest is shown. CPU "
        "seconds are those that the process itself computed; seconds by the clock depend on what "
        "else the machine did (its load stands beside them). Memory is resident, without what the "
        "process had before; MB are 2²⁰ bytes."
    )
    for method, kind in SERIES:
        own = _own(runs, label_of(method, kind))
        done = {size: point for size, point in own.items() if not point.failed}
        large = [_ns(point) for size, point in done.items() if size >= FROM]
        if len(large) > 1:
            grows = max(large[1:]) / large[0]
            yield (
                f"{label_of(method, kind)}: a step takes {large[0]:.1f} CPU ns per label at "
                f"{FROM:,} labels, and at most {max(large[1:]):.1f} beyond, {grows:.2f}x (our "
                f"target: {FLAT:g}x)."
            )
    for name in (label_of("bsc-seq", kind) for kind in (FEW, TAGGED)):
        tagged = [point for point in _own(runs, name).values() if not point.failed]
        if tagged:
            last = tagged[-1]
            yield (
                f"{name}: {_bytes(last):.1f} bytes per answered token beside parameters and "
                f"result on {int(last.facts['labels']):,} answered tokens (our target: {BYTES:g})."
            )
    for one in known:
        words = breaks(one)
        found = "; then ".join(words) if words else "nothing that is reckoned here"
        yield f"With {one.n_tags} tags, what breaks first: {found}."


def _curves(runs: Mapping[Key, Point]) -> dict[str, list[tuple[float, float, float]]]:
    """Return labels, ns per label and step, and bytes per label, by series."""
    return {
        name: [
            (one.facts["labels"], _ns(one), _bytes(one))
            for one in _own(runs, name).values()
            if not one.failed
        ]
        for name in (label_of(*one) for one in SERIES)
    }
