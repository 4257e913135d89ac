"""Paper 001 redone: five worker models in BSC, and their rivals, on the NER crowd of paper 000.

Every method runs with its defaults; gold is only scored. Two more rows per worker model show other
ways to a prior: by the evidence bound (`prior="auto"`, no gold), and by span F1 on the val half
(with gold; its test half is then what counts).
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
from goldspan.aggregation.calibration import calibrate, measure_calibration
from goldspan.crowd import Crowd, read_crowd
from goldspan.errors import InputError, UnknownNameError
from goldspan.runners import Threads
from goldspan.spans import Tagged, find_errors
from goldspan.spans.confidence import LEAST_PROB
from goldspan.spans.scoring import score_codes
from studies.table import Study, Table

MODELS = ("acc", "mace", "cv", "cm", "seq")
METHODS = (
    "mv-token",
    "one-coin",
    "mace",
    "ds",
    "ibcc",
    *(f"bsc-{model}" for model in MODELS),
    *(f"bsc-{model}+words" for model in MODELS),
    *(f"bsc-{model}+crf" for model in MODELS),
)
TUNED = ("bsc-cm", "bsc-seq", "bsc-cm+words", "bsc-seq+words")
"""Methods whose prior is also chosen by the evidence bound and on the val half."""
FILES = {
    "raw.zip": ("raw.zip, altered tokens missing", "part"),
    "crowd_6056.tsv.gz": ("crowd_6056", "split"),
    "crowd.tsv.gz": ("crowd.tsv.gz, sentences with altered tokens dropped", ""),
}
"""The crowd, three times: its name by file, and the column of an item's half."""
DEALS = 5
"""Deals of the documents into folds, over which bsc-seq+crf is averaged."""
PUBLISHED = {
    "mv-token": 65.4,
    "mace": 70.0,
    "ds": 74.4,
    "bsc-cm+words": 75.8,
    "bsc-seq+words": 77.4,
}
"""Span F1 on the test half of the 6,056 sentences (Simpson and Gurevych 2019; their BSC has a model
of the text)."""
NOTES = (
    "Span F1 by conlleval's reading; every output is well-formed (illegal counts tags).",
    (
        "Cross-entropy: mean of -ln P(gold tag) over tokens with gold and answers, nats; "
        f"probabilities below {LEAST_PROB} count as {LEAST_PROB}."
    ),
    (
        "Published F1: test half of the 6,056 sentences, data of crowd_6056 "
        "(Simpson and Gurevych 2019); their BSC has a model of the text, as +words has here."
    ),
    (
        "By ELBO: the prior with the largest evidence bound of a small grid; by val: the prior of "
        "that grid with the best span F1 on the val half, whose own F1 is therefore flattered."
    ),
    (
        "Items that nobody answered are open, and their spans missed, but with +crf, which labels "
        "them by their words."
    ),
    "ECE: expected calibration error over ten bins of equal width, of tokens and of spans.",
    (
        "Seconds: aggregating, without reading; the first method also compiles its kernels "
        "where they are not in Numba's cache."
    ),
)
COLUMNS = ("method", "half", "P", "R", "F1", "cross-entropy", "illegal", "seconds", "published F1")


@dataclass(frozen=True)
class Source:
    """A crowd and its halves."""

    name: str
    crowd: Crowd
    halves: dict[str, NDArray[np.bool_]]


def study(
    data: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
    methods: tuple[str, ...] = METHODS,
    tuned: tuple[str, ...] = TUNED,
    deals: int = DEALS,
    sources: tuple[str, ...] = (),
    threads: int | None = None,
) -> Study:
    """Make the tables.

    Args:
        data: The folder that holds `ner_mturk`.
        progress: Told how many of all runs are over.
        methods: Which methods.
        tuned: Of which of them the prior is chosen in two more ways.
        deals: Over how many deals of documents into folds bsc-seq+crf is averaged; 0 leaves it out.
        sources: Files of the crowd that are read, such as "raw.zip"; all by default.
        threads: How many; all cores by default.
    """
    runner = Threads(threads)
    read = list(_sources(data, sources))
    jobs = [(source, method) for source in read for method in methods]
    total = len(jobs) + sum(len(tuned) * (len(GRID) + 1) for s in read if "val" in s.halves)
    total += deals * len(read)
    rows: dict[str, list[tuple[Any, ...]]] = {source.name: [] for source in read}
    done = 0
    for source, method in jobs:
        result = aggregate(source.crowd, method, runner=runner)
        published = PUBLISHED.get(method)
        rows[source.name] += _rows(source, method, result, published)
        done += 1
        if progress:
            progress(done, total)
    for source in read:
        if "val" not in source.halves:
            continue
        for method in tuned:
            results = {"auto": aggregate(source.crowd, method, prior="auto", runner=runner)}
            for off, bonus in GRID:
                results[f"alpha0={off}, epsilon0={bonus}"] = aggregate(
                    source.crowd, method, alpha0=off, epsilon0=bonus, runner=runner
                )
            done += len(results)
            if progress:
                progress(done, total)
            auto = results.pop("auto")
            note = next(n for n in auto.notes if "evidence" in n).partition(": ")[2]
            rows[source.name] += _rows(source, f"{method} by ELBO ({note})", auto, None)
            best = max(results, key=lambda name: _f1(source, results[name], "val"))
            rows[source.name] += _rows(source, f"{method} by val ({best})", results[best], None)
    digits = {"cross-entropy": 3, "published F1": 1}
    tables = [Table(f"{name}", COLUMNS, tuple(found), digits) for name, found in rows.items()]
    tables += [_calibration(source, runner) for source in read if "val" in source.halves]
    for source in read if deals else ():
        tables.append(_over_deals(source, deals, runner))
        done += deals
        if progress:
            progress(done, total)
    return Study(
        "Worker models in Bayesian sequence combination",
        tables,
        NOTES,
    )


def _sources(data: Path, wanted: tuple[str, ...]) -> Iterator[Source]:
    folder = data / "ner_mturk"
    if not folder.is_dir():
        raise InputError(f"{folder} is not there: study bsc needs the NER crowd of paper 000")
    for file in wanted:
        if file not in FILES:
            raise UnknownNameError("source", file, FILES)
    for file, (name, column) in FILES.items():
        if wanted and file not in wanted:
            continue
        crowd = read_crowd(folder / file)
        halves = {}
        if column and crowd.attributes is not None:
            part = np.array(crowd.attributes.column(column).to_pylist())
            halves = {half: part == half for half in ("val", "test")}
        yield Source(name, crowd, {**halves, "all": np.ones(crowd.n_items, np.bool_)})


def _calibration(source: Source, runner: Threads) -> Table:
    """Fit temperatures on the val half and measure confidences on the test half."""
    val = np.repeat(source.halves["val"], np.diff(source.crowd.offsets))
    gold = source.crowd.gold_tagged.codes
    known = np.where(val, gold, np.int16(-1))
    rows: list[tuple[Any, ...]] = []
    for method in ("ds", "bsc-seq", "bsc-seq+words"):
        plain = aggregate(source.crowd, method, runner=runner)
        for name, result in ((method, plain), (f"{method}, calibrated", calibrate(plain, known))):
            found = measure_calibration(result, gold, source.halves["test"])
            temperature = result.params.get("temperature", 1.0)
            rows.append(
                (name, temperature, found.cross_entropy, found.token_error, found.span_error)
            )
    columns = ("method", "temperature", "cross-entropy", "token ECE", "span ECE")
    digits = dict.fromkeys(columns[2:], 3)
    caption = f"{source.name}: confidence on the test half, calibrated on the val half"
    return Table(caption, columns, tuple(rows), digits)


def _over_deals(source: Source, deals: int, runner: Threads) -> Table:
    """Average bsc-seq+crf over deals of the documents into folds."""
    every: dict[str, list[tuple[Any, ...]]] = {half: [] for half in source.halves}
    for seed in range(deals):
        result = aggregate(source.crowd, "bsc-seq+crf", random_state=seed, runner=runner)
        for row in _rows(source, "", result, None):
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


def _rows(
    source: Source, method: str, result: Consensus, published: float | None
) -> list[tuple[Any, ...]]:
    rows = []
    crowd = source.crowd
    for half, items in source.halves.items():
        tokens = np.repeat(items, np.diff(crowd.offsets))
        offsets = np.concatenate([[0], np.cumsum(np.diff(crowd.offsets)[items])])
        gold, codes = crowd.gold_tagged.codes[tokens], result.codes[tokens]
        rates = score_codes(Tagged(gold, offsets), Tagged(codes, offsets), crowd.tagset)
        known = np.flatnonzero((gold >= 0) & (codes >= 0))
        probs = result.token_probs[tokens][known, gold[known]].astype(np.float64)
        entropy = float(-np.log(np.maximum(probs, LEAST_PROB)).mean())
        illegal = len(find_errors(Tagged(codes, offsets), crowd.tagset))
        shares = (100 * rates.precision, 100 * rates.recall, 100 * rates.f1)
        shown = published if half == "test" else None
        rows.append((method, half, *shares, entropy, illegal, result.seconds, shown))
    return rows


def _f1(source: Source, result: Consensus, half: str) -> float:
    row = next(row for row in _rows(source, "", result, None) if row[1] == half)
    return float(row[COLUMNS.index("F1")])
