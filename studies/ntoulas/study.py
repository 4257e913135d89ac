"""What both studies do: repeat, tell how far it is, and make the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from goldspan.campaign.model import CLASSIFIERS
from goldspan.errors import InputError, UnknownNameError
from studies.ntoulas.picture import draw
from studies.ntoulas.split import Split
from studies.ntoulas.tables import (
    Found,
    curves_table,
    differences_table,
    facts_table,
    measures_table,
)
from studies.ntoulas.trial import Rule, Training, run_trial
from studies.table import Study

Told = Callable[[int, int], None]
REPEATS, QUICK_REPEATS = 10, 2
ORDER = ("gaussian-nb", "naive-bayes", "logistic", "svm", "tree", "forest", "neighbours")
"""The paper's figures have "Naive Bayes" alone; the rest is the campaign's toolkit."""
QUICK_ORDER = ("gaussian-nb", "naive-bayes", "logistic")


@dataclass(frozen=True)
class Plan:
    """What a study compares.

    Attributes:
        title: Of the study.
        draw: Sets a gold set aside, by the number of the repeat.
        trainings: The training sets, everything first.
        pairs: The training sets that are compared in the same repeat.
        curves: The rules whose learning curves are drawn, random first.
        points: Numbers of labels on the curves.
        notes: What to know.
    """

    title: str
    draw: Callable[[int], Split]
    trainings: Sequence[Training]
    pairs: Sequence[tuple[Training, Training]]
    curves: Sequence[Rule]
    points: Sequence[int]
    notes: Sequence[str]


def chosen(
    methods: Sequence[str] | None, repeats: int | None, *, quick: bool
) -> tuple[tuple[str, ...], int]:
    """Return the classifiers and the number of repeats that were asked for.

    Raises:
        UnknownNameError: There is no such classifier.
        InputError: `repeats` is no positive number.
    """
    if repeats is not None and (not isinstance(repeats, int) or repeats < 1):
        raise InputError(f"repeats must be a whole number of at least 1, not {repeats!r}")
    names = tuple(methods or (QUICK_ORDER if quick else ORDER))
    for name in names:
        if name not in CLASSIFIERS:
            raise UnknownNameError("classifier", name, CLASSIFIERS)
    return names, repeats or (QUICK_REPEATS if quick else REPEATS)


def carry_out(plan: Plan, classifiers: Sequence[str], repeats: int, progress: Told | None) -> Study:
    """Run every repeat and make the tables.

    Args:
        plan: What is compared.
        classifiers: By name.
        repeats: How often.
        progress: Told how many repeats are over.
    """
    on_curves = [Training(rule, n) for rule in plan.curves for n in plan.points]
    trials = []
    for seed in range(repeats):
        split = plan.draw(seed)
        trials.append(run_trial(split, [*plan.trainings, *on_curves], classifiers, seed))
        if progress:
            progress(seed + 1, repeats)
    found = Found(trials, classifiers, plan.trainings, plan.curves, plan.points)
    over = f"per cent, mean of {repeats} repeats"
    tables = [
        measures_table(found, f"As the paper's figures: {over}"),
        differences_table(found, plan.pairs, f"Differences on the same gold set: {over}"),
        facts_table(found, f"What was chosen: mean of {repeats} repeats"),
        curves_table(found, "Learning curves"),
    ]
    return Study(plan.title, tables, tuple(plan.notes), picture=partial(draw, found))
