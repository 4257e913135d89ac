"""The tables: what is aimed at, scores by crowd and method, and one table for every other part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from studies.purity.crowds import (
    LOOKED_AT,
    NER,
    PEOPLE,
    PICO,
    RARE,
    SIZES_TIMED,
    SOURCES,
    SPAN_FILES,
    SPLIT,
)
from studies.purity.runs import AUTO, VOTES, Run, Runs, Work, label_of
from studies.purity.scoring import NAN
from studies.registry import PARTS
from studies.table import Table

Rows = list[tuple[Any, ...]]
N_SPREAD = 4
"""Seeds over which the spread is taken."""
MANY = 150
"""Items of a crowd on which no method may lose to votes."""
HALF_OF = {SPAN_FILES[SPLIT]: "test"}
"""Crowds of which one half is scored."""


COPIED = ("crowd", "F1", "cost")
FAMILY = (
    "crowd", "crowds", "% with somebody wrongly in a family", "% with all its members found",
    "accuracy or F1",
)  # fmt: skip
TEAM = ("crowd", "draws", "mean", "least", "most", "above people, mean", "worst draw")
TIMED = ("crowd", "seconds", "MB")
SEEN = ("crowds", "looked at")


@dataclass(frozen=True)
class Line:
    """A crowd with the runs of every method, in the order of the seeds."""

    crowd: str
    runs: dict[str, list[Run]]

    def values(self, method: str, measure: str = "score") -> list[float]:
        """Return a measure of every seed."""
        half = HALF_OF.get(self.crowd, "all")
        parts = [run.parts.get(half) or run.parts.get("all") for run in self.runs.get(method, [])]
        return [float(getattr(part, measure)) for part in parts if part]

    def score(self, method: str) -> float:
        """Return the mean score of the seeds."""
        return _mean(self.values(method))

    @property
    def n_items(self) -> int:
        """How many items are scored."""
        return int(_most([0, *(n for name in self.runs for n in self.values(name, "items"))]))

    @property
    def vote(self) -> float:
        """The score of the better vote."""
        return _most(self.score(name) for name in VOTES)

    @property
    def best_fixed(self) -> str:
        """The fixed method with the highest score, "" if there is none."""
        known = [(self.score(name), name) for name in self.runs if name != AUTO]
        return max((one for one in known if not isnan(one[0])), default=(NAN, ""))[1]

    def regret(self, method: str) -> float:
        """Return the score of the best method minus that of one."""
        return _most(self.score(name) for name in self.runs) - self.score(method)

    @property
    def spread(self) -> float:
        """The largest minus the smallest score of `auto`, over the first seeds."""
        scores = self.values(AUTO)[:N_SPREAD]
        return max(scores) - min(scores) if len(scores) > 1 else NAN

    @property
    def n_warned(self) -> int:
        """Of how many seeds `auto` warned."""
        return sum(bool(run.cautions) for run in self.runs.get(AUTO, []))


def all_tables(work: Work, runs: Runs) -> list[Table]:
    """Return the tables of the parts of which there are runs."""
    of = {part: lines_of(work, runs, part) for part in PARTS}
    rare = [line for line in of["labels"] if line.crowd == RARE]
    labels = [line for line in of["labels"] if line.crowd != RARE]
    copies, families = copy_rows(of["copies"]), family_rows(of["families"])
    teams, times = team_rows(of["models"]), time_rows(of["speed"])
    aims = [
        *source_aims(of["sources"]), *label_aims(labels, rare),
        *other_aims(copies, families, teams, times),
    ]  # fmt: skip
    tables = [
        Table("What is aimed at", ("of auto", "aim", "measured"), _cells(aims)),
        score_table("Span F1 by source and crowd", of["sources"]),
        auto_table(of["sources"]),
        score_table("Single labels: accuracy, %", labels),
        score_table(
            "One label in 20 items, four of eight workers never give it: accuracy, %", rare
        ),
        Table("The worker with most answers entered again: F1 of auto", COPIED, _cells(copies)),
        Table("Simulated families, labels by auto", FAMILY, _cells(families)),
        Table("Two people per article of crowd.tsv, labels by auto: F1", TEAM, _cells(teams)),
        Table("Time and memory of auto, two threads", TIMED, _cells(times), {"MB": 0}),
        score_table("Subsamples, small crowds, simulated crowds: F1", of["cuts"]),
        Table("What was looked at while methods were built", SEEN, tuple(LOOKED_AT.items())),
    ]
    return [table for table in tables if table.rows]


def lines_of(work: Work, runs: Runs, part: str) -> list[Line]:
    """Gather the runs of a part by crowd."""
    found: dict[str, Line] = {}
    for case, methods in work:
        if case.part == part:
            line = found.setdefault(case.name, Line(case.name, {}))
            for method in methods:
                line.runs.setdefault(method, []).append(runs[case.seed, label_of(case, method)])
    return list(found.values())


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


def mean_by_source(lines: Sequence[Line], values: Sequence[float]) -> float:
    """Average over the crowds of a source, then over the sources; other crowds are one each."""
    source_of = {name: source for source, files in SOURCES.items() for name in files.values()}
    by_source: dict[str, list[float]] = {}
    for line, value in zip(lines, values, strict=True):
        by_source.setdefault(source_of.get(line.crowd, line.crowd), []).append(value)
    return float(np.mean([np.mean(one) for one in by_source.values()]))


def score_table(caption: str, lines: Sequence[Line]) -> Table:
    """Return the scores, a row per crowd and a column per method, and below them what counts."""
    methods = tuple(dict.fromkeys(name for line in lines for name in line.runs))
    rows: list[tuple[Any, ...]] = [
        (_name(line), line.n_items, *map(line.score, methods)) for line in lines
    ]
    if len(lines) > 1:
        scores = [[line.score(name) for line in lines] for name in methods]
        regrets = [[line.regret(name) for line in lines] for name in methods]
        rows += [
            ("mean", None, *(mean_by_source(lines, one) for one in scores)),
            ("mean regret", None, *(mean_by_source(lines, one) for one in regrets)),
            ("worst regret", None, *map(_most, regrets)),
            *((f"below the better vote by more than {margin:g}", None,
               *(_n_below(lines, name, margin) for name in methods)) for margin in (1, 0.5)),
        ]  # fmt: skip
    return Table(caption, ("crowd", "items", *methods), _cells(rows), dict.fromkeys(methods, 1))


def auto_table(lines: Sequence[Line]) -> Table:
    """Return what `auto` does on every crowd beside the votes and the best fixed method."""
    rows = [
        (
            _name(line), line.vote, line.best_fixed, line.score(line.best_fixed), line.score(AUTO),
            line.regret(AUTO), line.score(AUTO) - line.vote, line.spread,
            _mean(line.values(AUTO, "ece")), f"{line.n_warned} of {len(line.runs[AUTO])}",
            _mean([run.seconds for run in line.runs[AUTO]]),
        )
        for line in lines
        if AUTO in line.runs
    ]  # fmt: skip
    columns = (
        "crowd", "better vote", "best fixed method", "its F1", "auto", "regret", "over the vote",
        "spread", "ECE", "seeds with a warning", "seconds",
    )  # fmt: skip
    return Table(
        "auto by crowd", columns, _cells(rows), {"ECE": 3, **dict.fromkeys(columns[1:8], 1)}
    )


Aim = tuple[str, str, float]
"""What is aimed at, the aim, and what is measured."""


def source_aims(lines: Sequence[Line]) -> list[Aim]:
    """Return the aims on the span crowds."""
    lines = [line for line in lines if AUTO in line.runs]
    if not lines:
        return []
    fixed = dict.fromkeys(name for line in lines for name in line.runs if name != AUTO)
    means = [mean_by_source(lines, [line.score(name) for line in lines]) for name in (AUTO, *fixed)]
    regrets = [line.regret(AUTO) for line in lines]
    ece = [_mean(line.values(AUTO, "ece")) for line in lines]
    n_silent = sum(
        error > 0.2 and line.n_warned < len(line.runs[AUTO])
        for error, line in zip(ece, lines, strict=True)
    )
    found: list[Aim] = [
        ("mean regret", "≤ 1", mean_by_source(lines, regrets)),
        ("worst regret", "≤ 3", _most(regrets)),
        (f"largest spread over {N_SPREAD} seeds", "≤ 2", _most(line.spread for line in lines)),
        ("crowds below the better vote by more than 1", "0", _n_below(lines, AUTO, 1)),
        ("crowds below the better vote by more than 0.5", "≤ 1", _n_below(lines, AUTO, 0.5)),
        ("mean F1 above that of the best fixed method", "≥ 1", means[0] - _most(means[1:])),
        ("mean span ECE", "≤ 0.12", mean_by_source(lines, ece)),
        ("crowds with a span ECE above 0.2 and seeds without a warning", "0", float(n_silent)),
    ]
    aims = {SPAN_FILES[SPLIT]: 80.4, SPAN_FILES[NER]: 83.7, SPAN_FILES[PICO]: 60.5}
    return found + [
        (f"F1 on {_name(line)}", f"≥ {aims[line.crowd]}", line.score(AUTO))
        for line in lines
        if line.crowd in aims
    ]


def label_aims(labels: Sequence[Line], rare: Sequence[Line]) -> list[Aim]:
    """Return the aims on single labels."""
    aims = (("accuracy, mean of the label sets", 82.9, labels), (f"accuracy, {RARE}", 97.6, rare))
    return [
        (what, f"≥ {aim}", _mean(line.score(AUTO) for line in lines))
        for what, aim, lines in aims
        if any(AUTO in line.runs for line in lines)
    ]


def other_aims(copies: Rows, families: Rows, teams: Rows, times: Rows) -> list[Aim]:
    """Return the aims on copies, families, undeclared models and time, of the rows of each."""
    found: list[Aim] = []
    if copies:
        found.append(("largest cost of copies, F1", "≤ 0.5", _most(row[-1] for row in copies)))
    if families:
        false = _mean(row[2] for row in families if "independent" in row[0])
        found.append(("independent crowds with a family, %", "≤ 5", false))
    for name, _, _, _, _, mean, worst in teams:
        if name != PEOPLE:
            found += [(f"above people, mean: {name}", "> 0", mean)]
            found += [(f"above people, worst draw: {name}", "≥ -0.5", worst)]
    aims = dict(zip(SIZES_TIMED, ("≤ 75", "≤ 8"), strict=True))
    return found + [(f"seconds, {name}", aims[name], seconds) for name, seconds, _ in times]


def copy_rows(lines: Sequence[Line]) -> Rows:
    """Return F1 with copies, and how much more it is without."""
    alone = {line.crowd: line.score(AUTO) for line in lines}
    cost = {name: alone.get(name.partition(", ")[0], NAN) - score for name, score in alone.items()}
    return [(name, alone[name], cost[name] if ", " in name else NAN) for name in alone]


def family_rows(lines: Sequence[Line]) -> Rows:
    """Return the shares of crowds with a false family, and with all members of the true one."""
    rows: Rows = []
    for line in lines:
        size = 0 if "independent" in line.crowd else int(line.crowd.split()[1])
        true = {f"family{n + 1}" for n in range(size)}
        own = [run.families for run in line.runs[AUTO]]
        is_false = [bool(one.keys() - true) for one in own]
        is_whole = [len({one.get(name, name) for name in true}) == 1 for one in own if true]
        shares = (100 * _mean(map(float, one)) for one in (is_false, is_whole))
        rows.append((line.crowd, len(own), *shares, line.score(AUTO)))
    return rows


def team_rows(lines: Sequence[Line]) -> Rows:
    """Return F1 of every team over the draws, and how far it is above people alone."""
    people = next((line.values(AUTO) for line in lines if line.crowd == PEOPLE), [])
    rows: Rows = []
    for line in lines:
        own = line.values(AUTO)
        gaps = [a - b for a, b in zip(own, people, strict=False) if line.crowd != PEOPLE]
        measures = (_mean(own), _least(own), _most(own), _mean(gaps), _least(gaps))
        rows.append((line.crowd, len(own), *measures))
    return rows


def time_rows(lines: Sequence[Line]) -> Rows:
    """Return seconds and memory."""
    return [
        (line.crowd, _mean(run.seconds for run in runs), _most(run.megabytes for run in runs))
        for line in lines
        for runs in [line.runs[AUTO]]
    ]


def _name(line: Line) -> str:
    half = HALF_OF.get(line.crowd)
    return f"{line.crowd}, {half} half" if half else line.crowd


def _n_below(lines: Sequence[Line], method: str, margin: float) -> int:
    """Count the crowds of many items on which a method is below the better vote by a margin."""
    large = [line for line in lines if line.n_items >= MANY]
    return sum(line.score(method) < line.vote - margin for line in large)


def _mean(values: Iterable[float]) -> float:
    known = [value for value in values if not isnan(value)]
    return float(np.mean(known)) if known else NAN


def _most(values: Iterable[float]) -> float:
    return max((value for value in values if not isnan(value)), default=NAN)


def _least(values: Iterable[float]) -> float:
    return -_most(-value for value in values)


def _cells(rows: Iterable[Sequence[Any]]) -> tuple[tuple[Any, ...], ...]:
    """Leave cells without a value empty."""
    return tuple(
        tuple(None if isinstance(one, float) and isnan(one) else one for one in row) for row in rows
    )
