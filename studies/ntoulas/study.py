"""What both studies do: repeat, tell how far it is, and make the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from goldspan.campaign.model import CLASSIFIERS
from goldspan.errors import UnknownNameError
from studies.ntoulas.picture import draw
from studies.ntoulas.rounds import BATCH, Played, play_all, rounds_table
from studies.ntoulas.split import FOLDS, Split
from studies.ntoulas.tables import (
    Found,
    curves_table,
    differences_table,
    facts_table,
    measures_table,
)
from studies.ntoulas.trial import EVERYTHING, Rule, Training, Trial, run_trial
from studies.table import Study, Table, check_repeats

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
        fold: Sets a fold of ten aside, by its number.
        learners: Classifiers of the loop in rounds.
        rounds: Numbers of labels after which that is scored.
    """

    title: str
    draw: Callable[[int], Split]
    trainings: Sequence[Training]
    pairs: Sequence[tuple[Training, Training]]
    curves: Sequence[Rule]
    points: Sequence[int]
    notes: Sequence[str]
    fold: Callable[[int], Split]
    learners: Sequence[str]
    rounds: Sequence[int]


def chosen(
    methods: Sequence[str] | None, repeats: int | None, *, quick: bool
) -> tuple[tuple[str, ...], int]:
    """Return the classifiers and the number of repeats that were asked for.

    Raises:
        UnknownNameError: There is no such classifier.
        InputError: `repeats` is no positive number.
    """
    check_repeats(repeats)
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
    learners = [name for name in plan.learners if name in classifiers]
    trials: list[Trial] = []
    played: Played = {}
    for seed in range(repeats):
        split = plan.draw(seed)
        trials.append(run_trial(split, [*plan.trainings, *on_curves], classifiers, seed))
        play_all(played, split, learners, plan.rounds, seed)
        if progress:
            progress(seed + 1, repeats)
    found = Found(trials, classifiers, plan.trainings, plan.curves, plan.points)
    over = f"per cent, mean of {repeats} repeats"
    tables = [
        measures_table(found, f"As the paper's figures: {over}"),
        differences_table(found, plan.pairs, f"Differences on the same gold set: {over}"),
        facts_table(found, f"What was chosen: mean of {repeats} repeats"),
        curves_table(found, "Learning curves"),
        folds_table(plan, classifiers, min(repeats, FOLDS)),
        rounds_table(
            played,
            plan.rounds,
            f"The loop in rounds of {BATCH} labels, with and without what the model gets wrong: "
            f"F in {over}",
        ),
    ]
    return Study(plan.title, tables, tuple(plan.notes), picture=partial(draw, found))


def folds_table(plan: Plan, classifiers: Sequence[str], n_folds: int) -> Table:
    """Do the same in cross-validation: every item is in the gold of one fold of ten.

    Args:
        plan: What is compared.
        classifiers: By name.
        n_folds: So many of the ten folds are done.
    """
    n_pool = plan.fold(0).rows.shape[0]  # the smallest: the first folds have an item more
    trainings = [
        Training(one.rule, n_pool) if one.rule == EVERYTHING else one for one in plan.trainings
    ]
    trials = [run_trial(plan.fold(fold), trainings, classifiers, fold) for fold in range(n_folds)]
    found = Found(trials, classifiers, trainings, (), ())
    of = f"per cent, mean of {n_folds} folds" + ("" if n_folds == FOLDS else f" of {FOLDS}")
    return measures_table(found, f"The same in 10-fold cross-validation: {of}")
