"""Every method on every crowd, each run kept when it is over."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from functools import cache
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa

from goldspan import __version__
from goldspan.aggregation import aggregate, methods
from goldspan.errors import GoldspanError, InputError, UnknownNameError
from goldspan.protocols import Runner
from goldspan.runners import Threads
from studies import journal
from studies.purity.crowds import Case, Shelf, parts_of, stripped
from studies.purity.scoring import NAN, Scores, score_result

VERSION = 2
Told = Callable[[int, int], None]
AUTO = "auto"
OUTSIDE, INSIDE = "mv-token (ties outside)", "mv-token (ties inside)"
VOTES = (OUTSIDE, INSIDE, "mv-token")
"""The votes that no method may lose to: of spans two, of single labels one."""
PARAMS: dict[str, tuple[str, dict[str, Any]]] = {
    OUTSIDE: ("mv-token", {"ties": "outside"}),
    INSIDE: ("mv-token", {"ties": "inside"}),
}
"""Methods with parameters of their own; all others run with their defaults."""
SPANS = (
    OUTSIDE, INSIDE, "ds", "mace", "bsc-mace", "bsc-cm", "bsc-seq", "bsc-cm+words",
    "bsc-seq+words", "bsc-mace+crf", "bsc-cm+crf", "bsc-seq+crf",
)  # fmt: skip
"""The fixed methods on spans."""
LABELS = ("mv-token", "wawa", "zbs", "wmv-log", "glad", "one-coin", "mace", "ds", "ibcc")
"""The fixed methods on single labels."""
TIMED_THREADS = 2
"""Of the part `speed`, however many threads the study has."""


@dataclass(frozen=True)
class Run:
    """What came of a method on a crowd.

    Attributes:
        parts: Scores by half: "all", and "val" and "test" where the file has halves.
        seconds: Of the method, without reading.
        megabytes: Peak memory that it added, NaN where the system does not tell.
        cautions: What the method warned of.
        families: By worker the name of the family; who errs alone is not in it.
        error: Why it gave no result; "" if it did.
    """

    parts: Mapping[str, Scores]
    seconds: float
    megabytes: float
    cautions: tuple[str, ...] = ()
    families: Mapping[str, str] = field(default_factory=dict)
    error: str = ""


Runs = Mapping[tuple[int, str], Run]
Work = Sequence[tuple[Case, Sequence[str]]]
"""Crowds, and the methods on each."""


class Journal(journal.Journal[Run]):
    """Runs by seed and by crowd and method."""

    label = "run"

    def plain(self, run: Run) -> dict[str, Any]:
        """Return the run as values that JSON can hold."""
        return asdict(run)

    def made(self, found: Mapping[str, Any]) -> Run:
        """Make a run of what a line holds."""
        parts = {name: Scores(**scores) for name, scores in found["parts"].items()}
        return Run(**{name: found[name] for name in asdict(Run({}, 0, 0))} | {"parts": parts})


def label_of(case: Case, method: str) -> str:
    """Name a run of any seed."""
    return f"{case.name}: {method}"


def methods_of(case: Case, chosen: Sequence[str] | None, *, quick: bool) -> list[str]:
    """List the methods that run on a crowd.

    Args:
        case: The crowd.
        chosen: Only these; None for all of the study.
        quick: Whether only the fast ones are in question.

    Raises:
        UnknownNameError: One that was chosen is no method.
    """
    own: Sequence[str] = LABELS if case.is_label_set else SPANS
    if quick:
        own = [name for name in own if not name.endswith("+crf")]
    if chosen is None:
        return [AUTO] if case.only_auto else [*own, AUTO]
    known = {*SPANS, *LABELS, *methods()}
    for name in chosen:
        if name not in known:
            raise UnknownNameError("method", name, sorted(known))
    if case.only_auto:
        return [AUTO] if AUTO in chosen else []
    others = set(SPANS if case.is_label_set else LABELS).difference(own)
    return [name for name in chosen if name not in others]


def carry_out(
    data: Path,
    work: Work,
    n_at_once: int = 1,
    state: Path | None = None,
    told: Told | None = None,
) -> Runs:
    """Do all runs that are not in the journal yet.

    Args:
        data: The data folder.
        work: Crowds, and the methods on each.
        n_at_once: How many runs go on side by side, in processes of one thread each. Those of the
            part `speed` come last, each alone, with as many threads as `TIMED_THREADS`.
        state: The file in which finished runs are kept, or None.
        told: Told how many runs are over, of how many.

    Returns:
        The runs by seed and label.

    Raises:
        InputError: The file of runs cannot be read or written.
    """
    shelf = Shelf(data)
    kept = _journal(shelf, work, state)
    jobs = [(case, method) for case, chosen in work for method in chosen]
    total = len(jobs)
    left = {(case.seed, label_of(case, method)): (case, method) for case, method in jobs}
    left = {key: job for key, job in left.items() if key not in kept.runs}

    def keep(key: journal.Key, run: Run) -> None:
        kept.add(key, run)
        del left[key]
        if told:
            told(total - len(left), total)

    alone = {key: job for key, job in left.items() if n_at_once == 1 or job[0].part == "speed"}
    beside = {key: job for key, job in left.items() if key not in alone}
    if beside:
        context = get_context("spawn")
        with ProcessPoolExecutor(n_at_once, context, _end_with_parent) as pool:
            futures = {pool.submit(_run, data, *job): key for key, job in beside.items()}
            try:
                for future in as_completed(futures):
                    keep(futures[future], future.result())
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    for key, (case, method) in alone.items():
        runner = Threads(TIMED_THREADS if case.part == "speed" else 1)
        keep(key, run_method(shelf.crowd(case), method, runner, params_of(case, method)))
    return kept.runs


_shelf = cache(Shelf)
"""Of a process: the data folder with the file that was read last."""


def _run(data: Path, case: Case, method: str) -> Run:
    return run_method(_shelf(data).crowd(case), method, Threads(1), params_of(case, method))


def _end_with_parent() -> None:
    """End this process when the one that started it is killed."""

    def wait() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=wait, daemon=True).start()


def finished(data: Path, work: Work, state: Path | None) -> tuple[Work, str]:
    """Return the crowds on which all methods are finished, and a note that says how many.

    Raises:
        InputError: None, or the file cannot be read.
    """
    kept = _journal(Shelf(data), work, state).runs
    whole = [
        (case, chosen)
        for case, chosen in work
        if all((case.seed, label_of(case, method)) in kept for method in chosen)
    ]
    told = f"on {len(whole)} of {len(work)} crowds, each seed counted, all methods are finished"
    if not whole:
        raise InputError(f"{told}: without --so-far the study goes on with them")
    return whole, f"SO FAR: {told}, and the tables are of these."


def _journal(shelf: Shelf, work: Work, state: Path | None) -> Journal:
    """Return the runs that are kept of these data and methods."""
    digests = {source: shelf.digest(source) for source in {case.source for case, _ in work}}
    names = {
        label_of(case, method): _name(digests[case.source], case, method)
        for case, chosen in work
        for method in chosen
    }
    return Journal(state, names)


def params_of(case: Case, method: str) -> Mapping[str, Any]:
    """Return what the case asks of a method: of `auto` a seed, and what models are declared."""
    return {"random_state": case.seed, **case.params} if method == AUTO else {}


def run_method(
    crowd: Any, method: str, runner: Runner, params: Mapping[str, Any] | None = None
) -> Run:
    """Strip the gold, aggregate, and score all items and the halves."""
    name, own = PARAMS.get(method, (method, {}))
    seen = stripped(crowd)
    memory = _Peak()
    try:
        result = aggregate(seen, name, runner=runner, **own, **(params or {}))
    except GoldspanError as error:
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        return Run({}, NAN, NAN, error=text)
    added = memory.added()
    parts = {half: score_result(result, crowd, items) for half, items in parts_of(crowd).items()}
    families = {}
    if result.families is not None:
        table = result.workers
        pairs = zip(*(table.column(one).to_pylist() for one in ("worker", "family")), strict=True)
        families = {worker: family for worker, family in pairs if family is not None}
    return Run(parts, result.seconds, added, tuple(result.cautions), families)


def _name(digest: str, case: Case, method: str) -> str:
    """Name the data, the crowd made of it and the method: what a kept run belongs to."""
    parts = repr([VERSION, __version__, digest, case.name, PARAMS.get(method, method), case.params])
    return hashlib.blake2b(parts.encode(), digest_size=16).hexdigest()


class _Peak:
    """The memory that this process adds from now on, by the kernel's high-water mark (Linux)."""

    def __init__(self) -> None:
        gc.collect()
        pa.default_memory_pool().release_unused()
        try:
            ctypes.CDLL(None).malloc_trim(0)
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
            self._before = self._read("VmRSS")
        except (OSError, AttributeError, TypeError, ValueError):
            self._before = NAN

    def added(self) -> float:
        """Return MiB above the memory at the beginning."""
        return self._read("VmHWM") - self._before if self._before == self._before else NAN

    @staticmethod
    def _read(key: str) -> float:
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith(f"{key}:"):
                return float(line.split()[1]) / 1024
        return NAN
