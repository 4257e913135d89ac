"""How far the certificate can be believed: audits of crowds whose gold is known.

Every crowd is aggregated without its gold. Then `goldspan.draw_audit`'s draw and the interval of
`goldspan.audit` are made a thousand times, the gold as the checker, and it is counted how often
the interval holds the true F1 or accuracy. Beside it stands the same interval from as many items
that are drawn evenly, without the confidences. A second count looks after every item and asks
whether the interval for that ever missed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan import aggregate
from goldspan._arrays import count_in_rows
from goldspan.auditing.intervals import Counts, Drawn, Floats, estimate
from goldspan.auditing.plan import Labelled
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.runners import Threads
from goldspan.spans import Tagged, find_spans
from goldspan.spans.scoring import right_spans
from studies import journal
from studies.purity.crowds import SIMULATED, SOURCES, Case, Shelf, all_cases, stripped, translated
from studies.table import Study, Table, check_repeats

SIZES = (20, 50, 100, 200)
"""Checked items."""
REPEATS = 1000
LOOKS, MOST = 50, 200
"""Audits that look after every item, and after how many they end."""
SPANS, LABELS = ("mv-token", "bsc-seq", "auto"), ("mv-token", "ds", "auto")
FIRST_LOOK = 10
PARTS = ("sources", "labels", "families")
Told = Callable[[int, int], None]


@dataclass(frozen=True)
class Run:
    """What came of a crowd's audits, by number of checked items."""

    items: int
    score: float
    coverage: Mapping[str, float]
    width: Mapping[str, float]
    evenly: Mapping[str, float]  # Width of the same interval from items drawn evenly
    at_all_looks: float  # Share of the audits in which no look missed


class RecordJournal(journal.Journal[Any]):
    """Runs that are records of plain values, all of one class."""

    label = "run"

    def __init__(self, path: Path | None, names: Mapping[str, str], kind: Any) -> None:
        self._kind = kind
        super().__init__(path, names)

    def plain(self, run: Any) -> dict[str, Any]:
        """Return a run as values that JSON can hold."""
        return asdict(run)

    def made(self, found: Mapping[str, Any]) -> Any:
        """Make a run of what a line holds."""
        return self._kind(**{one.name: found[one.name] for one in fields(self._kind)})


def study(
    data: Path,
    *,
    progress: Told | None = None,
    quick: bool = False,
    repeats: int | None = None,
    methods: tuple[str, ...] | None = None,
    state: str | Path | None = None,
    threads: int | None = None,
) -> Study:
    """Make the tables.

    Args:
        data: The folder of the crowds.
        progress: Told how many of all crowds and methods are over.
        quick: Whether it is only to be seen that the study runs.
        repeats: Audits of a crowd, 1,000 by default.
        methods: Only these.
        state: File of finished runs, to go on from after a break.
        threads: Processes side by side; as many as cores by default.

    Raises:
        InputError: There is none of the data.
    """
    check_repeats(repeats)
    times = repeats or (50 if quick else REPEATS)
    cases = [one for one in all_cases(data, repeats=1) if one.part in PARTS and one.is_there(data)]
    cases = [case for case in cases if case.seed == 0][: 3 if quick else None]
    work = [
        (case, method)
        for case in cases
        for method in (LABELS if case.is_label_set else SPANS)
        if (method in methods if methods else not quick or method != "auto")
    ]
    if all(case.source == SIMULATED for case, _ in work):
        raise InputError(f"{data}: there are no crowds in it")
    names = {_label(*one): f"audit {times} {Shelf(data).digest(one[0].source)}" for one in work}
    kept = RecordJournal(None if state is None else Path(state), names, Run)
    carry_out({(0, _label(*one)): partial(play, data, *one, times) for one in work}, kept, threads,
              progress)  # fmt: skip
    rows = [(case, method, kept.runs[0, _label(case, method)]) for case, method in work]
    return Study("How far the certificate can be believed", _tables(rows), NOTES)


NOTES = (
    (
        "Coverage: in how many audits the 95 % interval holds the F1 or accuracy of all items. "
        "Width: of the interval, beside that of the same interval from as many items drawn evenly "
        "and without confidences. Crowds with fewer items than are checked are left out."
    ),
    (
        f"At every look: audits that look after every item, from {FIRST_LOOK} to {MOST} or all "
        "but one of the items, and never miss."
    ),
    "Means weigh every source alike, the sets of single labels as one source, and the simulated.",
)


def carry_out(
    work: Mapping[journal.Key, Callable[[], Any]], kept: journal.Journal[Any],
    threads: int | None, progress: Told | None,
) -> None:  # fmt: skip
    """Do the runs that are not in the journal yet, in processes side by side."""
    left = {key: run for key, run in work.items() if key not in kept.runs}
    with ProcessPoolExecutor(Threads(threads).n_threads, get_context("spawn")) as pool:
        jobs = {pool.submit(run): key for key, run in left.items()}
        for n, job in enumerate(as_completed(jobs)):
            kept.add(jobs[job], job.result())
            if progress:
                progress(len(work) - len(left) + n + 1, len(work))


def _label(case: Case, method: str) -> str:
    return f"{case.name}: {method}"


def play(data: Path, case: Case, method: str, times: int) -> Run:
    """Aggregate a crowd, and audit the labels so many times."""
    crowd = Shelf(data).crowd(case)
    result = aggregate(stripped(crowd), method)
    whole = count_in_rows(crowd.gold_tagged.codes < 0, crowd.offsets) == 0
    labels = Labelled.of(result)
    kept = whole[np.flatnonzero(np.isin(crowd.item_ids, labels.crowd.item_ids))]
    confidence = labels.confidence[kept] if labels.confidence is not None else None
    labels = Labelled(labels.crowd.select_items(kept), confidence)
    right, true = _truth(labels.crowd, crowd)
    evenly = Labelled(labels.crowd, None)
    score = 2 * right.sum() / max(1.0, labels.written.sum() + true.sum())
    rng = np.random.default_rng(0)
    found: dict[str, dict[str, float]] = {"coverage": {}, "width": {}, "evenly": {}}
    n_items = labels.crowd.n_items
    for n in (n for n in SIZES if n < n_items):
        ends = [_audit(labels, labels.weights, right, true, n, rng) for _ in range(times)]
        plain = [_audit(evenly, np.ones(n_items), right, true, n, rng) for _ in range(times)]
        found["coverage"][str(n)] = float(np.mean([low <= score <= high for low, high in ends]))
        found["width"][str(n)] = float(np.mean(np.diff(ends)))
        found["evenly"][str(n)] = float(np.mean(np.diff(plain)))
    looks = [_never_missed(labels, right, true, score, rng) for _ in range(min(times, LOOKS))]
    return Run(n_items, score, **found, at_all_looks=float(np.mean(looks)))


def _truth(labels: Crowd, truth: Crowd) -> tuple[Any, Any]:
    """Return how many labels of every item are right, and how many are true."""
    place = {name: n for n, name in enumerate(truth.item_ids.to_pylist())}
    at = np.array([place[name] for name in labels.item_ids.to_pylist()])
    there = truth.select_items(at)
    if labels.is_classification:
        codes = translated(labels.gold_tagged.codes, labels.tagset, truth.tagset)
        return (codes == there.gold_tagged.codes).astype(float), np.ones(len(at))
    codes = translated(labels.gold_tagged.codes, labels.tagset, truth.tagset)
    mine = find_spans(Tagged(codes, labels.offsets), truth.tagset)
    gold = find_spans(Tagged(there.gold_tagged.codes, there.offsets), truth.tagset)
    hit = right_spans(gold, mine, labels.n_tokens)
    count = np.bincount
    return count(mine.item, hit, len(at)) * 1.0, count(gold.item, minlength=len(at)) * 1.0


def _audit(
    labels: Labelled, weights: Floats, right: Floats, true: Floats, n: int,
    rng: np.random.Generator,
) -> tuple[float, float]:  # fmt: skip
    order = np.argsort(rng.exponential(size=len(weights)) / weights)[:n]
    _, low, high = _estimate(labels, Drawn(order, weights), right, true)
    return low, high


def _estimate(
    labels: Labelled, drawn: Drawn, right: Floats, true: Floats, *, anytime: bool = False
) -> tuple[float, float, float]:
    order = drawn.order
    expected = labels.written * labels.share_right
    found = expected + labels.doubt / 2
    if labels.crowd.is_classification:
        found = np.ones(len(expected))
    counts = Counts(labels.written, expected, found, right[order], true[order])
    return estimate(drawn, counts, labels.doubt, anytime=anytime)


def _never_missed(
    labels: Labelled, right: Floats, true: Floats, score: float, rng: np.random.Generator
) -> bool:
    order: NDArray[np.int64] = np.argsort(rng.exponential(size=len(right)) / labels.weights)
    for n in range(FIRST_LOOK, min(MOST, len(order) - 1) + 1):
        drawn = Drawn(order[:n], labels.weights)
        _, low, high = _estimate(labels, drawn, right, true, anytime=True)
        if not low <= score <= high:
            return False
    return True


def _source(case: Case) -> str:
    if case.is_label_set:
        return "single labels"
    return next((name for name, files in SOURCES.items() if case.source in files), "simulated")


def _tables(rows: list[tuple[Case, str, Run]]) -> list[Table]:
    """Make the table of means, and that of all crowds."""
    means = []
    for n in map(str, SIZES):
        own = [(_source(case), run) for case, _, run in rows if n in run.coverage]
        if not own:
            continue
        covered = [run.coverage[n] for _, run in own]
        ratios = [run.width[n] / run.evenly[n] for _, run in own]
        by_source: dict[str, list[float]] = {}
        for (source, _), ratio in zip(own, ratios, strict=True):
            by_source.setdefault(source, []).append(ratio)
        ratio = float(np.mean([np.mean(one) for one in by_source.values()]))
        most = max(ratios)
        means.append((int(n), len(own), 100 * float(np.mean(covered)), 100 * min(covered),
                      100 * float(np.mean([one < 0.94 for one in covered])), 100 * ratio,
                      100 * most))  # fmt: skip
    looks = [run.at_all_looks for _, _, run in rows]
    each = [
        (case.name, method, run.items, 100 * run.score, *_cells(run.coverage, 100),
         *_cells(run.width, 100), 100 * run.at_all_looks)
        for case, method, run in rows
    ]  # fmt: skip
    heads = ("checked", "crowds and methods", "coverage, mean", "least", "below 94 %",
             "width, % of evenly drawn", "most")  # fmt: skip
    columns = ("crowd", "method", "items", "score", *(f"coverage {n}" for n in SIZES),
               *(f"width {n}" for n in SIZES), "at every look")  # fmt: skip
    once = (("mean", 100 * float(np.mean(looks))), ("least", 100 * min(looks)))
    one = dict.fromkeys((*heads, *columns, "%"), 1)
    return [
        Table("Coverage and width, in per cent", heads, tuple(means), one),
        Table("No look missed, in per cent of the audits", ("of crowds", "%"), once, one),
        Table("Every crowd, in per cent", columns, tuple(each), one),
    ]


def _cells(values: Mapping[str, float], scale: float) -> list[float | None]:
    return [scale * values[str(n)] if str(n) in values else None for n in SIZES]
