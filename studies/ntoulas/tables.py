"""The tables of both studies: means over repeats with standard errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from studies.ntoulas.scores import mean_and_error
from studies.ntoulas.trial import Rule, Training, Trial
from studies.table import Table

MEASURES = {"precision": "precision", "recall": "recall = TPR", "f": "F", "fpr": "FPR"}
"""Headings by field of `Scores`; recall and the true-positive rate are the same thing."""
_HEADS = tuple(head for name in MEASURES.values() for head in (name, f"s.e. of {name.split()[0]}"))
COUNTS = ("labels", "answers")
"""Facts that are whole numbers in every repeat, or nearly."""


@dataclass(frozen=True)
class Found:
    """All repeats of a study.

    Attributes:
        trials: One per repeat.
        classifiers: Their names.
        trainings: The training sets that the paper compares, and ours.
        curves: The rules whose learning curves are drawn.
        points: Numbers of labels on the curves.
    """

    trials: Sequence[Trial]
    classifiers: Sequence[str]
    trainings: Sequence[Training]
    curves: Sequence[Rule]
    points: Sequence[int]

    def values(self, classifier: str, training: Training, measure: str = "f") -> list[float]:
        """Return a measure of every repeat; nothing if a repeat has no such training set."""
        found = [trial.scores.get((classifier, training)) for trial in self.trials]
        return [] if None in found else [getattr(one, measure) for one in found]

    def curve(self, classifier: str, rule: Rule) -> list[tuple[int, float, float]]:
        """Return the points of a learning curve: labels, mean F, standard error (0 of one)."""
        found = []
        for n in self.points:
            values = self.values(classifier, Training(rule, n))
            if values:
                mean, error = mean_and_error(values)
                found.append((n, mean, error or 0.0))
        return found


def measures_table(found: Found, caption: str) -> Table:
    """Return every measure of the paper's figures by classifier and training set."""
    rows = []
    for classifier in found.classifiers:
        for training in found.trainings:
            values = (found.values(classifier, training, measure) for measure in MEASURES)
            rows.append((classifier, training.name, *_means(values)))
    return Table(caption, ("classifier", "training set", *_HEADS), tuple(rows))


def differences_table(
    found: Found, pairs: Sequence[tuple[Training, Training]], caption: str
) -> Table:
    """Return the mean difference between two training sets in the same repeat, on the same gold."""
    rows = []
    for classifier in found.classifiers:
        for one, other in pairs:
            values = (
                np.subtract(
                    found.values(classifier, one, measure), found.values(classifier, other, measure)
                ).tolist()
                for measure in MEASURES
            )
            rows.append((classifier, f"{one.name} − {other.name}", *_means(values)))
    return Table(caption, ("classifier", "difference", *_HEADS), tuple(rows))


def facts_table(found: Found, caption: str) -> Table:
    """Return what the training sets are made of."""
    names = list(found.trials[0].facts[found.trainings[0]])
    rows = []
    for training in found.trainings:
        cells = [
            float(np.mean([trial.facts[training][name] for trial in found.trials]))
            for name in names
        ]
        rows.append((training.name, *cells))
    digits = {name: 0 if name in COUNTS else 1 for name in names}
    return Table(caption, ("training set", *names), tuple(rows), digits)


def curves_table(found: Found, title: str) -> Table:
    """Return mean F by the number of labels."""
    rows, most = [], 0.0
    for classifier in found.classifiers:
        for rule in found.curves:
            points = {n: (mean, error) for n, mean, error in found.curve(classifier, rule)}
            most = max([most, *(error for _, error in points.values())])
            cells = (points[n][0] if n in points else None for n in found.points)
            rows.append((classifier, rule.name, *cells))
    heads = tuple(f"{n:,}" for n in found.points)
    caption = f"{title}: F by the number of labels (s.e. at most {most:.2f})"
    return Table(caption, ("classifier", "rule", *heads), tuple(rows), dict.fromkeys(heads, 1))


def _means(values: Iterable[Sequence[float]]) -> list[float | None]:
    return [cell for one in values for cell in mean_and_error(one)]
