"""How many answers stopping rules save, simulated and on replayed real answers.

Fixed redundancy of k answers per item beside rules that stop item by item (MATH section 8): on
simulated workers, on crowds of single labels with seven answers per item or more, and on the NER
crowd of Rodrigues et al., sentence by sentence. Gold is only scored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from goldspan.crowd import Crowd, read_crowd
from goldspan.errors import InputError
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.workers import replay
from goldspan.workers.redundancy import Replay
from studies.redundancy_picture import Curve, draw
from studies.table import Study, Table

SETS = (
    "bluebirds", "dog", "ducks", "face_sentiment", "snow_rte", "snow_temp", "snow_wsd",
    "weather_tweets_amt",
)  # fmt: skip
METHOD = "ds"
THRESHOLDS = (0.8, 0.9, 0.95, 0.99)
SHOWN = 0.95
"""The threshold that is played with everything else."""
VOTES = "clear_majority(2)"
RULES = (*(f"confident({at})" for at in THRESHOLDS), VOTES, "clear_majority(3)")
FIXED = (3, 5, 7, 10, 20)
MOST = 20
"""Answers of an item at most, on real crowds."""
BEGIN = 2
"""Answers that every item begins with: one answer says nothing about workers."""
SIMULATED = ("one-coin", "ibcc", "ds")
SIMULATED_MOST = 15
SURE = "bsc-acc"
"""The method that all thresholds are shown of, for simulated workers."""
BETAS = ((4.0, 2.0), (2.3, 2.0))
"""Accuracies of the simulated workers; the second is Li and Liu's."""
REPEATS = 10
NER_MOST = 8
NOTES = (
    (
        "An answer more is bought of every item that is not finished, until all are; items begin "
        f"with {BEGIN} answers. Answers come in random order, the same for rules and for fixed "
        "redundancy; numbers are means over orders."
    ),
    "Finished right: of the items that the rule finished, the share that is right.",
    "By gain: the next answer is that of largest expected gain among those that there are.",
)

Told = Callable[[int, int], None]


@dataclass(frozen=True)
class Point:
    """What came of a rule: means over repeats."""

    per_item: float
    score: float
    right: float

    @classmethod
    def of(cls, runs: Sequence[Replay]) -> Point:
        """Average."""
        rows = [(run.per_item, 100 * run.score, 100 * run.finished_right) for run in runs]
        return cls(*(float(value) for value in np.mean(rows, axis=0)))

    @classmethod
    def of_fixed(cls, runs: Sequence[Replay], k: int) -> Point:
        """Average fixed redundancy of k answers."""
        stages = [run.fixed[k - 1] for run in runs]
        answers = float(np.mean([stage.per_item for stage in stages]))
        return cls(answers, 100 * float(np.mean([stage.score for stage in stages])), float("nan"))


def study(
    data: Path,
    *,
    progress: Told | None = None,
    quick: bool = False,
    repeats: int | None = None,
    threads: int | None = None,  # noqa: ARG001 - every run is short
) -> Study:
    """Make the tables.

    Args:
        data: The folder that holds `classification` and `ner_mturk`.
        progress: Told how many of all parts are over.
        quick: Whether it is only to be seen that the study runs.
        repeats: Orders of the answers, and simulated crowds; 10 by default.
        threads: Of no use here.
    """
    sets = _sets(data, quick=quick)
    times = repeats or (1 if quick else REPEATS)
    total, done = len(BETAS) + len(sets) + 1, 0
    tables, curves = [], []

    def part_is_over() -> None:
        nonlocal done
        done += 1
        if progress:
            progress(done, total)

    for a, b in BETAS:
        table, curve = _simulated(a, b, times, n_items=100 if quick else 1000)
        tables.append(table)
        curves.append(curve)
        part_is_over()
    points: dict[str, dict[str, Point]] = {}
    for name, crowd in sets.items():
        points[name] = _replayed(crowd, times)
        curves.append(_curve(name, points[name]))
        part_is_over()
    tables += _single_labels(points)
    table, curve = _sequences(read_crowd(data / "ner_mturk" / "crowd.tsv.gz"), 1 if quick else 3)
    part_is_over()
    return Study("How many to ask", [*tables, table], NOTES, lambda: draw([*curves, curve]))


def _sets(data: Path, *, quick: bool) -> dict[str, Crowd]:
    folder = data / "classification"
    for needed in (folder, data / "ner_mturk"):
        if not needed.is_dir():
            raise InputError(f"{needed} is not there: study redundancy needs it")
    found = {}
    for name in ("snow_temp", "snow_wsd") if quick else SETS:
        labels = next((folder / name).glob("labels.csv*"))
        found[name] = read_crowd(labels, gold=folder / name / "truth.csv")
    return found


def _simulated(a: float, b: float, times: int, n_items: int) -> tuple[Table, Curve]:
    """Play on workers whose accuracies are drawn from Beta(a, b)."""
    crowds = [_draw(a, b, n_items, seed) for seed in range(times)]
    plays = [(method, SHOWN) for method in SIMULATED] + [(SURE, at) for at in THRESHOLDS]
    runs = {play: _stopped(crowds, *play) for play in plays}
    rows: list[tuple[Any, ...]] = []
    for (method, at), found in runs.items():
        point, played = Point.of(found), runs[method, SHOWN]
        five, seven, most = (Point.of_fixed(played, k) for k in (5, 7, SIMULATED_MOST))
        shares = (point.per_item, 100 * point.per_item / seven.per_item, point.score, point.right)
        rows.append((method, at, *shares, five.score, seven.score, most.score))
    best = [runs[SURE, at] for at in THRESHOLDS]
    fixed = [Point.of_fixed(runs[SURE, SHOWN], k) for k in range(2, SIMULATED_MOST + 1)]
    name = f"simulated, Beta({a:g}, {b:g})"
    curve = Curve(name, _line(fixed), _line([Point.of(found) for found in best]), [])
    columns = (
        "method", "stop at", "answers per item", "% of 7 answers", "accuracy", "finished right",
        "5 answers", "7 answers", f"{SIMULATED_MOST} answers",
    )  # fmt: skip
    caption = (
        f"Simulated: {n_items} items, 4 labels, 31 workers with accuracies of Beta({a:g}, {b:g}), "
        f"at most {SIMULATED_MOST} answers; mean of {times} crowds"
    )
    return Table(caption, columns, tuple(rows), {"% of 7 answers": 1, "stop at": "g"}), curve


def _stopped(crowds: Sequence[Crowd], method: str, at: float) -> list[Replay]:
    return [
        replay(
            crowd, method=method, rule=f"confident({at})", max_answers=SIMULATED_MOST,
            min_answers=BEGIN, random_state=seed, with_fixed=at == SHOWN,
        )
        for seed, crowd in enumerate(crowds)
    ]  # fmt: skip


def _draw(a: float, b: float, n_items: int, seed: int) -> Crowd:
    accuracy = np.random.default_rng(seed).beta(a, b, 31).tolist()
    team = [f"flip({1 - w:.6f})" for w in accuracy]
    return simulate_crowd(draw_truth(n_items, 4, seed=seed), team, seed=seed)


def _replayed(crowd: Crowd, times: int) -> dict[str, Point]:
    """Play all rules on a crowd of single labels."""
    most = min(MOST, int(np.diff(crowd.by_item.bounds).max()))

    def play(rule: str, **more: Any) -> list[Replay]:
        options = {"method": METHOD, "with_fixed": False, **more}
        return [
            replay(
                crowd, rule=rule, max_answers=most, min_answers=BEGIN, random_state=seed, **options
            )
            for seed in range(times)
        ]

    first = play(RULES[0], with_fixed=True)
    found = {f"{k} answers": Point.of_fixed(first, k) for k in FIXED if k <= most}
    found |= {f"all, at most {MOST}": Point.of_fixed(first, most), RULES[0]: Point.of(first)}
    found |= {rule: Point.of(play(rule)) for rule in RULES[1:]}
    sure = f"confident({SHOWN})"
    found[f"{sure}, by gain"] = Point.of(play(sure, choose="gain"))
    found[f"{VOTES}, votes alone"] = Point.of(play(VOTES, method="mv-token"))
    return found


def _single_labels(points: dict[str, dict[str, Point]]) -> list[Table]:
    """Make a table of answers, one of accuracies and one of what was finished right."""
    rules = list(dict.fromkeys(rule for found in points.values() for rule in found))
    named = {
        "per_item": "answers per item", "score": "accuracy in per cent",
        "right": "finished right, per cent",
    }  # fmt: skip
    tables = []
    for field, name in named.items():
        rows: list[tuple[Any, ...]] = []
        for rule in rules:
            values = [
                getattr(found[rule], field) if rule in found else None for found in points.values()
            ]
            shown = [None if value is None or np.isnan(value) else value for value in values]
            mean = None if None in shown else float(np.mean(np.array(shown, np.float64)))
            if any(value is not None for value in shown):
                rows.append((rule, *shown, mean))
        digits = dict.fromkeys((*points, "mean"), 2 if field == "per_item" else 1)
        caption = f"Real crowds of single labels, {METHOD}: {name}"
        tables.append(Table(caption, ("rule", *points, "mean"), tuple(rows), digits))
    return tables


def _sequences(crowd: Crowd, times: int) -> tuple[Table, Curve]:
    """Play on tagged sentences."""
    rows, found = [], {}
    for rule in (*RULES[:4], f"confident({SHOWN}, unit=item)", "clear_majority(1, least=2)", VOTES):
        runs = [
            replay(
                crowd, method="bsc-seq", rule=rule, max_answers=NER_MOST, min_answers=BEGIN,
                random_state=seed, with_fixed=rule == RULES[0],
            )
            for seed in range(times)
        ]  # fmt: skip
        if rule == RULES[0]:
            for k in range(2, NER_MOST + 1):
                found[f"{k} answers"] = Point.of_fixed(runs, k)
        found[rule] = Point.of(runs)
    for rule, point in found.items():
        right = None if np.isnan(point.right) else point.right
        rows.append((rule, point.per_item, point.score, right))
    columns = ("rule", "answers per sentence", "span F1", "finished right")
    caption = "The NER crowd, bsc-seq, one sentence after the other"
    table = Table(caption, columns, tuple(rows))
    return table, _curve("NER crowd (span F1)", found)


def _curve(name: str, points: dict[str, Point]) -> Curve:
    fixed = [point for rule, point in points.items() if rule[0].isdigit() or rule.startswith("all")]
    sure = [points[f"confident({at})"] for at in THRESHOLDS]
    votes = [point for rule, point in points.items() if rule == VOTES]
    return Curve(name, _line(fixed), _line(sure), _line(votes))


def _line(points: Sequence[Point]) -> list[tuple[float, float]]:
    return [(point.per_item, point.score) for point in points]
