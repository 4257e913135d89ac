"""Simpson and Gurevych 2019 redone: five worker models in BSC, and rivals, on the NER crowd.

Every method runs with its defaults; gold is only scored. Two more rows per worker model show other
ways to a prior: by the evidence bound (`prior="auto"`, no gold), and by span F1 on the val half
(with gold; its test half is then what counts). What each worker model can see is shown on simulated
workers, in `studies.bsc_simulated`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import Consensus, aggregate
from goldspan.aggregation.bsc.priors import GRID
from goldspan.aggregation.calibration import calibrate
from goldspan.aggregation.reliability import (
    span_reliability,
    token_cross_entropy,
    token_reliability,
)
from goldspan.aggregation.workers import count_errors
from goldspan.crowd import Crowd, read_crowd
from goldspan.crowd.measures import worker_rates
from goldspan.errors import InputError, UnknownNameError
from goldspan.protocols import Runner
from goldspan.runners import Threads
from goldspan.spans import Tagged, find_errors, find_spans
from goldspan.spans.confidence import LEAST_PROB
from goldspan.spans.scoring import Score, score_codes
from studies import bsc_simulated
from studies.table import Study, Table

MODELS = ("acc", "mace", "cv", "cm", "seq")
OUTSIDE, INSIDE = "mv-token, ties to O", "mv-token, ties to spans"
RAW = ", raw"
VOTES: dict[str, dict[str, Any]] = {
    OUTSIDE: {"ties": "outside"},
    INSIDE: {"ties": "inside"},
    OUTSIDE + RAW: {"ties": "outside", "legal": False},
    INSIDE + RAW: {"ties": "inside", "legal": False},
}
"""The votes under both tie rules, made well-formed, and raw as papers have them."""
CRFS = ("crf-conc", "crf-ma", "multicrf", "multicrf-max")
METHODS = (
    "mv-token",
    "mv-seq",
    "mv-seg",
    "one-coin",
    "mace",
    "ds",
    "ibcc",
    *(f"bsc-{model}" for model in MODELS),
    *(f"bsc-{model}+words" for model in MODELS),
    *CRFS,
    *(f"bsc-{model}+crf" for model in MODELS),
    "auto",
)
QUICK_METHODS = tuple(m for m in METHODS if m not in CRFS and not m.endswith(("+crf", "auto")))
TUNED = ("bsc-cm", "bsc-seq", "bsc-cm+words", "bsc-seq+words")
"""Methods whose prior is also chosen by the evidence bound and on the val half."""
PAPER_FILE = "crowd_6056.tsv.gz"
"""The file, split and preparation that the paper's numbers are of."""
FILES = {
    PAPER_FILE: ("crowd_6056", "split"),
    "raw.zip": ("raw.zip, altered tokens missing", "part"),
    "crowd.tsv.gz": ("crowd.tsv.gz, sentences with altered tokens dropped", ""),
}
"""The crowd, three times: its name by file, and the column of an item's half."""
QUICK_SHARE = 10
"""The quick form takes one sentence of so many."""
REPEATS, QUICK_REPEATS = 10, 2
"""Simulated crowds of every habit."""
LEAST_SPANS = 50
"""Gold spans that a worker must have seen to be the best or the worst."""
ERRORS = {
    "early start": ("starts", -1), "late start": ("starts", 1), "early end": ("ends", -1),
    "late end": ("ends", 1), "split": ("splits", 0), "merged": ("merges", 0),
    "missed": ("misses", 0), "wrong type": ("types", 0), "invented": ("invents", 0),
}  # fmt: skip
"""Kinds of errors, with the sign of the shift."""
DEALS = 5
"""Deals of the documents into folds, over which bsc-seq+crf is averaged."""
PUBLISHED = {
    **dict.fromkeys(VOTES, 65.4),
    "mace": 70.0,
    "ds": 74.4,
    "bsc-cm+words": 75.8,
    "bsc-seq+words": 77.4,
}
"""Span F1 on the test half of the 6,056 sentences (Simpson and Gurevych 2019; their BSC has a model
of the text; which tie rule their vote has, and whether it is made well-formed, is not known)."""
PUBLISHED_NOTE = (
    "Published F1: test half of the 6,056 sentences, data of crowd_6056 (Simpson and Gurevych "
    "2019); their BSC has a model of the text, as +words has here; the tie rule of their vote, and "
    "whether it was made well-formed, is not known to us."
)
NOTES = (
    (
        "Span F1 by conlleval's reading; every output but the raw votes is well-formed (illegal "
        "counts tags)."
    ),
    (
        "Cross-entropy: mean of -ln P(gold tag) over tokens with gold and answers, nats; "
        f"probabilities below {LEAST_PROB} count as {LEAST_PROB}."
    ),
    (
        f"Best and worst worker: by F1 on that half, of those who saw at least {LEAST_SPANS} gold "
        "spans there, each on what they answered; gold chooses them."
    ),
    (
        "Errors: of all gold spans, how many were found with another start or end (both count), "
        "in parts, joined with another one, not at all, or with another type; invented ones "
        "overlap no gold span."
    ),
    "ECE: expected calibration error over ten bins of equal width, of tokens and of spans.",
    (
        "Seconds: aggregating, without reading; the first method also compiles its kernels "
        "where they are not in Numba's cache."
    ),
)
TUNED_NOTE = (
    "By ELBO: the prior with the largest evidence bound of a small grid; by val: the prior of "
    "that grid with the best span F1 on the val half, whose own F1 is therefore flattered."
)
CRF_NOTE = (
    "Items that nobody answered are open, and their spans missed, but with a CRF, which labels "
    "them by their words."
)
QUICK = (
    f"QUICK: every {QUICK_SHARE}th sentence of one file, few simulated crowds, no CRF. It shows "
    "that everything runs, and its numbers are not the study's."
)
COLUMNS = ("method", "half", "P", "R", "F1", "cross-entropy", "illegal", "seconds", "published F1")


@dataclass(frozen=True)
class Source:
    """A crowd and its halves, and the published F1 that are of the same data."""

    name: str
    crowd: Crowd
    halves: dict[str, NDArray[np.bool_]]
    published: dict[str, float]

    def half(self, name: str, codes: NDArray[np.int16]) -> tuple[Tagged, Tagged]:
        """Return gold and labels of a half."""
        items, lengths = self.halves[name], np.diff(self.crowd.offsets)
        tokens = np.repeat(items, lengths)
        offsets = np.concatenate([[0], np.cumsum(lengths[items])])
        gold = self.crowd.gold_tagged.codes[tokens]
        return Tagged(gold, offsets), Tagged(codes[tokens], offsets)

    def score(self, name: str, codes: NDArray[np.int16]) -> Score:
        """Score the labels of a half."""
        return score_codes(*self.half(name, codes), self.crowd.tagset)


def study(
    data: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
    methods: tuple[str, ...] | None = None,
    tuned: tuple[str, ...] | None = None,
    deals: int | None = None,
    repeats: int | None = None,
    sources: tuple[str, ...] = (),
    quick: bool = False,
    threads: int | None = None,
) -> Study:
    """Make the tables.

    Args:
        data: The folder that holds `ner_mturk`.
        progress: Told how many of all runs are over.
        methods: Which methods.
        tuned: Of which of them the prior is chosen in two more ways.
        deals: Over how many deals of documents into folds bsc-seq+crf is averaged; 0 leaves it out.
        repeats: How many crowds are simulated of every habit; 0 leaves them out.
        sources: Files of the crowd that are read, such as "raw.zip"; all by default.
        quick: A tenth of one file's sentences, no CRF, few simulated crowds.
        threads: How many; all cores by default.
    """
    runner = Threads(threads)
    sources = sources or ((PAPER_FILE,) if quick else ())
    methods = methods or (QUICK_METHODS if quick else METHODS)
    tuned = (() if quick else TUNED) if tuned is None else tuned
    deals = (0 if quick else DEALS) if deals is None else deals
    repeats = (QUICK_REPEATS if quick else REPEATS) if repeats is None else repeats
    read = list(_sources(data, sources, quick=quick))
    total = len(list(_with_ties(methods))) * len(read)
    total += sum(len(tuned) * (len(GRID) + 1) for source in read if "val" in source.halves)
    told = _Told(progress, total + deals * len(read) + repeats * len(bsc_simulated.SCENES))
    tables: list[Table] = []
    for source in read:
        tables += _of_source(source, methods, tuned, runner, told)
        if deals:
            tables.append(_over_deals(source, deals, runner))
            told(deals)
    n_sentences = bsc_simulated.QUICK_SENTENCES if quick else bsc_simulated.SENTENCES
    if repeats:
        crowd = read[0].crowd
        tables += bsc_simulated.simulate(
            crowd, repeats, n_sentences, runner=runner, told=told, verdicts=not quick
        )
    notes = [*([QUICK] if quick else [PUBLISHED_NOTE]), *NOTES]
    notes += [TUNED_NOTE] if tuned else []
    has_crf = deals or any(m in CRFS or m.endswith(("+crf", "auto")) for m in methods)
    notes += [CRF_NOTE] if has_crf else []
    notes += bsc_simulated.NOTES if repeats else ()
    return Study("Worker models in Bayesian sequence combination", tables, notes)


class _Told:
    """Counts what is over."""

    def __init__(self, progress: Callable[[int, int], None] | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def __call__(self, n: int = 1) -> None:
        self.done += n
        if self.progress:
            self.progress(self.done, self.total)


def _of_source(
    source: Source, methods: tuple[str, ...], tuned: tuple[str, ...], runner: Runner, told: _Told
) -> list[Table]:
    """Make the tables of a crowd: scores, types, errors, and confidences where there are halves."""
    results: dict[str, Consensus] = {}
    for method in _with_ties(methods):
        results[method] = _run(source.crowd, method, runner)
        told()
    rows = [row for pair in results.items() for row in _rows(source, *pair)]
    for method in tuned if "val" in source.halves else ():
        rows += _tuned(source, method, runner)
        told(len(GRID) + 1)
    n_columns = len(COLUMNS) if source.published else len(COLUMNS) - 1
    cells = tuple(row[:n_columns] for row in rows)
    digits = {"cross-entropy": 3, "published F1": 1}
    tables = [Table(source.name, COLUMNS[:n_columns], cells, digits)]
    tables += _workers(source), _by_type(source, results), _by_error(source, results)
    return [*tables, _calibration(source, runner)] if "val" in source.halves else tables


def _with_ties(methods: tuple[str, ...]) -> Iterator[str]:
    """Put the votes under both tie rules, well-formed and raw, in the place of `mv-token`."""
    for method in methods:
        yield from VOTES if method == "mv-token" else (method,)


def _run(crowd: Crowd, method: str, runner: Runner) -> Consensus:
    if method in VOTES:
        return aggregate(crowd, "mv-token", **VOTES[method], runner=runner)
    return aggregate(crowd, method, runner=runner)


def _tuned(source: Source, method: str, runner: Runner) -> list[tuple[Any, ...]]:
    """Return the rows of a method whose prior is chosen by the evidence bound, and by val."""
    results = {
        f"alpha0={off}, epsilon0={bonus}": aggregate(
            source.crowd, method, alpha0=off, epsilon0=bonus, runner=runner
        )
        for off, bonus in GRID
    }
    auto = aggregate(source.crowd, method, prior="auto", runner=runner)
    note = next(n for n in auto.notes if "evidence" in n).partition(": ")[2]
    best = max(results, key=lambda name: source.score("val", results[name].codes).f1)
    return [
        *_rows(source, f"{method} by ELBO ({note})", auto),
        *_rows(source, f"{method} by val ({best})", results[best]),
    ]


def _sources(data: Path, wanted: tuple[str, ...], *, quick: bool) -> Iterator[Source]:
    folder = data / "ner_mturk"
    if not folder.is_dir():
        raise InputError(f"{folder} is not there: study bsc needs the NER crowd")
    for file in wanted:
        if file not in FILES:
            raise UnknownNameError("source", file, FILES)
    for file, (name, column) in FILES.items():
        if wanted and file not in wanted:
            continue
        crowd = read_crowd(folder / file)
        if quick:
            crowd = crowd.select_items(np.arange(0, crowd.n_items, QUICK_SHARE))
        halves = {}
        if column and crowd.attributes is not None:
            part = np.array(crowd.attributes.column(column).to_pylist())
            halves = {half: part == half for half in ("val", "test")}
        every = np.ones(crowd.n_items, np.bool_)
        published = PUBLISHED if file == PAPER_FILE and not quick else {}
        yield Source(name, crowd, {**halves, "all": every}, published)


def _calibration(source: Source, runner: Runner) -> Table:
    """Fit temperatures on the val half and measure confidences on the test half."""
    val = np.repeat(source.halves["val"], np.diff(source.crowd.offsets))
    gold = source.crowd.gold_tagged.codes
    known = np.where(val, gold, np.int16(-1))
    in_test = np.repeat(source.halves["test"], np.diff(source.crowd.offsets))
    test = np.where(in_test, gold, np.int16(-1))
    rows: list[tuple[Any, ...]] = []
    for method in ("ds", "bsc-seq", "bsc-seq+words"):
        plain = aggregate(source.crowd, method, runner=runner)
        for name, result in ((method, plain), (f"{method}, calibrated", calibrate(plain, known))):
            temperature = result.params.get("temperature", 1.0)
            eces = (token_reliability(result, test).ece, span_reliability(result, test).ece)
            rows.append((name, temperature, token_cross_entropy(result, test), *eces))
    columns = ("method", "temperature", "cross-entropy", "token ECE", "span ECE")
    digits = dict.fromkeys(columns[2:], 3)
    caption = f"{source.name}: confidence on the test half, calibrated on the val half"
    return Table(caption, columns, tuple(rows), digits)


def _over_deals(source: Source, deals: int, runner: Runner) -> Table:
    """Average bsc-seq+crf over deals of the documents into folds."""
    every: dict[str, list[tuple[Any, ...]]] = {half: [] for half in source.halves}
    for seed in range(deals):
        result = aggregate(source.crowd, "bsc-seq+crf", random_state=seed, runner=runner)
        for row in _rows(source, "", result):
            every[row[1]].append(row)
    rows = []
    for half, found in every.items():
        f1 = [row[COLUMNS.index("F1")] for row in found]
        entropy = float(np.mean([row[COLUMNS.index("cross-entropy")] for row in found]))
        illegal = max(row[COLUMNS.index("illegal")] for row in found)
        rows.append((half, float(np.mean(f1)), min(f1), max(f1), entropy, illegal))
    columns = ("half", "F1, mean", "least", "most", "cross-entropy", "illegal")
    caption = f"{source.name}: bsc-seq+crf, {deals} deals of the documents into folds"
    return Table(caption, columns, tuple(rows), {"cross-entropy": 3})


def _rows(source: Source, method: str, result: Consensus) -> list[tuple[Any, ...]]:
    rows = []
    crowd = source.crowd
    for half in source.halves:
        gold, found = source.half(half, result.codes)
        tokens = np.repeat(source.halves[half], np.diff(crowd.offsets))
        known = np.flatnonzero((gold.codes >= 0) & (found.codes >= 0))
        probs = result.token_probs[tokens][known, gold.codes[known]].astype(np.float64)
        entropy = float(-np.log(np.maximum(probs, LEAST_PROB)).mean())
        illegal = len(find_errors(found, crowd.tagset))
        rates = source.score(half, result.codes)
        shares = (100 * rates.precision, 100 * rates.recall, 100 * rates.f1)
        shown = source.published.get(method) if half == "test" else None
        rows.append((method, half, *shares, entropy, illegal, result.seconds, shown))
    return rows


# --------------------------------------------------------------------------------------------------
# The best and the worst worker, and the methods by type of span and by kind of error.


def _workers(source: Source) -> Table:
    rows: list[tuple[Any, ...]] = []
    for half, items in source.halves.items():
        crowd = source.crowd.select_items(items)
        rates, n_answers = (
            worker_rates(crowd, crowd.gold_tagged.codes),
            np.diff(crowd.by_worker.bounds),
        )
        seen = [n for n, one in enumerate(rates) if one.n_true >= LEAST_SPANS]
        ranked = sorted(seen, key=lambda n: rates[n].f1)
        names = crowd.worker_ids.to_pylist()
        for words, n in (("best", ranked[-1]), ("worst", ranked[0])) if ranked else ():
            one = rates[n]
            shares = (100 * one.precision, 100 * one.recall, 100 * one.f1)
            rows.append((f"{words}: {names[n]}", half, int(n_answers[n]), one.n_true, *shares))
    columns = ("worker", "sentences of", "sentences", "gold spans", "P", "R", "F1")
    return Table(f"{source.name}: the best and the worst worker", columns, tuple(rows))


def _main_half(source: Source) -> str:
    return "test" if "test" in source.halves else "all"


def _by_type(source: Source, results: dict[str, Consensus]) -> Table:
    half, types = _main_half(source), source.crowd.tagset.types
    rows = []
    for method, result in results.items():
        score = source.score(half, result.codes)
        rows.append((method, *(100 * score.types[kind].f1 for kind in types)))
    caption = f"{source.name}: span F1 by type, {half}"
    return Table(caption, ("method", *types), tuple(rows), dict.fromkeys(types, 1))


def _by_error(source: Source, results: dict[str, Consensus]) -> Table:
    half, codec, n_gold = _main_half(source), source.crowd.tagset, 0
    rows = []
    for method, result in results.items():
        gold, found = (find_spans(one, codec) for one in source.half(half, result.codes))
        n_gold, counts = len(gold), dict.fromkeys(ERRORS, 0)
        for (kind, _, shift, _), count in count_errors(gold, found).items():
            name = next(n for n, of in ERRORS.items() if of == (kind, int(np.sign(shift))))
            counts[name] += count
        rows.append((method, *counts.values()))
    caption = f"{source.name}: errors by kind, {half}, {n_gold} gold spans"
    return Table(caption, ("method", *ERRORS), tuple(rows))
