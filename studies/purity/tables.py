"""The tables: means over crowds, every crowd, and what was looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from studies.purity.crowds import LOOKED_AT, SIMULATED, Case
from studies.purity.runs import VOTES, Runs, Work, label_of
from studies.purity.scoring import NAN, Scores
from studies.table import Table

MEASURES = tuple(field.name for field in fields(Scores))
LARGEST = ("longest", "longest_answer")
"""Of several seeds the largest counts, not the mean."""
COLUMNS = {
    "score": "score",
    "precision": "P",
    "recall": "R",
    "relaxed": "relaxed F1",
    "entropy": "cross-entropy",
    "ece": "ECE",
    "brier": "Brier",
    "overruled": "overruled",
    "unsupported": "unsupported",
    "longest": "longest",
    "longest_answer": "of answers",
}
OF_LABELS = ("score", "entropy", "ece", "brier", "overruled")
DIGITS: dict[str, int | str] = {
    "cross-entropy": 3, "ECE": 3, "Brier": 3, "longest": 0, "of answers": 0, "MB": 0,
    "seconds": 1, "mean rank": 2, "overruled": 2,
}  # fmt: skip


@dataclass(frozen=True)
class Line:
    """A method on a crowd, averaged over the seeds.

    Attributes:
        crowd: Name of the crowd.
        half: Of its items.
        method: Name of the method.
        n_seeds: How many.
        values: The measures by name; NaN where no seed has one.
        scores: The score of every seed.
        seconds: Mean.
        megabytes: The largest.
        over_votes: Score minus that of the better vote, NaN without votes.
        worst_seed: The least such difference of a seed.
    """

    crowd: str
    half: str
    method: str
    n_seeds: int
    values: dict[str, float]
    scores: dict[int, float]
    seconds: float
    megabytes: float
    over_votes: float = NAN
    worst_seed: float = NAN


def mean_tables(work: Work, runs: Runs) -> list[Table]:
    """Return means and mean ranks over crowds: on halves nobody looked at, and on all items."""
    groups: dict[str, tuple[Callable[[Case], bool], bool]] = {
        "Span crowds as they are, the halves that were not looked at": (_is_real_span, True),
        "Span crowds as they are, all items": (_is_real_span, False),
        "Subsamples, small crowds and copies, the halves that were not looked at": (_is_cut, True),
        "Subsamples, small crowds and copies, all items": (_is_cut, False),
        "Single labels": (lambda c: c.is_label_set and c.source != SIMULATED, False),
        "Simulated spans": (lambda c: not c.is_label_set and c.source == SIMULATED, False),
        "Simulated single labels": (lambda c: c.is_label_set and c.source == SIMULATED, False),
    }
    tables = []
    for caption, (belongs, is_unseen) in groups.items():
        chosen = [(case, methods) for case, methods in work if belongs(case)]
        lines = [line for block in _blocks(chosen, runs) for line in block]
        unseen = {case.name: LOOKED_AT[case.folder].unseen for case, _ in chosen}
        wanted = [l for l in lines if l.half == (unseen[l.crowd] if is_unseen else "all")]
        if wanted:
            is_labels = chosen[0][0].is_label_set
            tables.append(_mean_table(f"{caption}: means", wanted, is_labels=is_labels))
            tables.append(_score_table(f"{caption}: scores", wanted))
    return tables


def crowd_tables(work: Work, runs: Runs) -> list[Table]:
    """Return a table for every crowd: methods by halves."""
    tables = []
    for name in dict.fromkeys(case.name for case, _ in work):
        own = [(case, methods) for case, methods in work if case.name == name]
        case = own[0][0]
        seen = LOOKED_AT[case.folder].half
        names = OF_LABELS if case.is_label_set else MEASURES
        rows: list[tuple[Any, ...]] = []
        n_seeds = 0
        for block in _blocks(own, runs):
            for line in block:
                n_seeds = max(n_seeds, line.n_seeds)
                half = f"{line.half}, looked at" if line.half == seen != "all" else line.half
                rows.append(
                    (
                        line.method, half, *(_cell(line.values[one]) for one in names),
                        _cell(line.over_votes), _cell(line.worst_seed), _cell(line.seconds),
                        _cell(line.megabytes),
                    )
                )  # fmt: skip
        if rows:
            heads = (
                "method", "half", *(COLUMNS[one] for one in names), "over votes", "worst seed",
                "seconds", "MB",
            )  # fmt: skip
            caption = f"{name}, mean of {n_seeds} seeds" if n_seeds > 1 else name
            tables.append(Table(caption, heads, tuple(rows), DIGITS))
    return tables


def seen_table() -> Table:
    """Return what was looked at while methods were built."""
    rows = tuple(
        (folder, seen, unseen or "none", what) for folder, (seen, unseen, what) in LOOKED_AT.items()
    )
    columns = ("crowds", "looked at", "not looked at", "which items were looked at")
    return Table("What was looked at while the methods were built", columns, rows)


def trouble(work: Work, runs: Runs) -> list[str]:
    """Name the runs without a result, with the reason."""
    found: dict[str, int] = {}
    for case, methods in work:
        for method in methods:
            error = runs[case.seed, label_of(case, method)].error
            if error:
                text = f"{method} on {case.name}: {error}"
                found[text] = found.get(text, 0) + 1
    return [f"No result: {text}" + f" ({n} seeds)" * (n > 1) for text, n in found.items()]


def _is_real_span(case: Case) -> bool:
    return case.is_whole and not case.is_label_set


def _is_cut(case: Case) -> bool:
    return not case.is_whole and case.source != SIMULATED


def _blocks(work: Work, runs: Runs) -> list[list[Line]]:
    """Average over seeds: a block of lines, one per method, for every crowd and half."""
    seeds: dict[tuple[str, str], dict[str, list[int]]] = {}
    for case, methods in work:
        for method in methods:
            run = runs[case.seed, label_of(case, method)]
            for half in run.parts:
                block = seeds.setdefault((case.name, half), {})
                block.setdefault(method, []).append(case.seed)
    case_of = {case.name: case for case, _ in work}
    found = []
    for (name, half), methods_seeds in seeds.items():
        lines = []
        for method, numbers in methods_seeds.items():
            own = {seed: runs[seed, label_of(case_of[name], method)] for seed in numbers}
            parts = [run.parts[half] for run in own.values()]
            values = {
                one: _mean([getattr(part, one) for part in parts], largest=one in LARGEST)
                for one in MEASURES
            }
            scores = {seed: run.parts[half].score for seed, run in own.items()}
            lines.append(
                Line(
                    name, half, method, len(numbers), values, scores,
                    _mean([run.seconds for run in own.values()]),
                    _mean([run.megabytes for run in own.values()], largest=True),
                )
            )  # fmt: skip
        found.append(_beside_votes(lines))
    return found


def _beside_votes(lines: list[Line]) -> list[Line]:
    """Fill in how far every method is above the better vote."""
    votes = [line for line in lines if line.method in VOTES]
    if not votes:
        return lines
    best = max(votes, key=lambda line: line.values["score"])
    made = []
    for line in lines:
        shared = line.scores.keys() & best.scores.keys()
        gaps = [line.scores[seed] - best.scores[seed] for seed in sorted(shared)]
        worst = float(np.min(gaps)) if len(gaps) > 1 else NAN
        made.append(Line(**{**vars(line), "over_votes": _mean(gaps), "worst_seed": worst}))
    return made


def _mean_table(caption: str, lines: list[Line], *, is_labels: bool) -> Table:
    """Average over crowds, which count alike; rank among the methods that ran on a crowd."""
    from scipy.stats import rankdata

    crowds = list(dict.fromkeys(line.crowd for line in lines))
    ranks: dict[str, list[float]] = {}
    for crowd in crowds:
        own = [line for line in lines if line.crowd == crowd]
        scores = np.round([line.values["score"] for line in own], 6)
        for line, rank in zip(own, rankdata(-scores), strict=True):
            ranks.setdefault(line.method, []).append(float(rank))
    names = OF_LABELS if is_labels else tuple(one for one in MEASURES if one not in LARGEST)
    rows: list[tuple[Any, ...]] = []
    for method, places in ranks.items():
        own = [line for line in lines if line.method == method]
        is_complete = len(own) == len(crowds)
        means = [_mean([line.values[one] for line in own]) if is_complete else NAN for one in names]
        over = [line.over_votes for line in own]
        runaway = sum(line.values["longest"] > line.values["longest_answer"] for line in own)
        rows.append(
            (
                method, len(own), float(np.mean(places)), *map(_cell, means),
                _cell(_mean(over) if is_complete else NAN), _cell(_least(over)),
                *(() if is_labels else (runaway,)),
                _cell(_mean([line.seconds for line in own]) if is_complete else NAN),
                _cell(_mean([line.megabytes for line in own], largest=True)),
            )
        )  # fmt: skip
    rows.sort(key=lambda row: row[2])
    heads = (
        "method", "crowds", "mean rank", *(COLUMNS[one] for one in names), "over votes",
        "worst crowd", *(() if is_labels else ("with too long spans",)), "seconds", "MB",
    )  # fmt: skip
    return Table(f"{caption} over {len(crowds)} crowds", heads, tuple(rows), DIGITS)


def _score_table(caption: str, lines: list[Line]) -> Table:
    """Return the scores: a row per crowd, a column per method."""
    methods = tuple(dict.fromkeys(line.method for line in lines))
    of: dict[str, dict[str, float | None]] = {}
    for line in lines:
        of.setdefault(line.crowd, {})[line.method] = _cell(line.values["score"])
    rows = tuple((name, *(found.get(one) for one in methods)) for name, found in of.items())
    return Table(caption, ("crowd", *methods), rows, dict.fromkeys(methods, 1))


def _mean(values: Sequence[float], *, largest: bool = False) -> float:
    known = [value for value in values if not np.isnan(value)]
    if not known:
        return NAN
    return float(max(known) if largest else np.mean(known))


def _least(values: Sequence[float]) -> float:
    return -_mean([-value for value in values], largest=True)


def _cell(value: float) -> float | None:
    return None if np.isnan(value) else value
