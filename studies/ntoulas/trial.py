"""One repeat: every rule chooses, every classifier learns from what was chosen and is scored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from goldspan.selection import Features, Pool
from goldspan.selection.schedule import read_selector
from studies.ntoulas.learners import learn_and_label
from studies.ntoulas.scores import Scores
from studies.ntoulas.split import Indices, Split


@dataclass(frozen=True)
class Rule:
    """A rule of selection.

    Attributes:
        name: In the tables.
        written: As `goldspan select --by` reads it.
        features: Makes the attribute–value pairs of a pool; None: they are not looked at, or
            goldspan's defaults.
    """

    name: str
    written: str
    features: Callable[[Pool], Features] | None = None

    def order(self, pool: Pool, seed: int) -> Indices:
        """Return all items that it picks, the first picked first; every prefix is a selection."""
        features = self.features(pool) if self.features else None
        found = read_selector(self.written).select(pool, features=features, random_state=seed)
        return np.asarray(found.item, np.int64)


RANDOM = Rule("random", "random")
EVERYTHING = Rule("all", "random")


@dataclass(frozen=True)
class Training:
    """A training set: the first items of a rule.

    Attributes:
        rule: What chooses.
        n: How many items; a rule that picks fewer has no such training set.
    """

    rule: Rule
    n: int

    @property
    def name(self) -> str:
        """The rule and the number, as the tables have it."""
        return f"{self.rule.name} {self.n:,}"


@dataclass(frozen=True)
class Trial:
    """What a repeat gave.

    Attributes:
        scores: By classifier and training set.
        facts: What every training set is made of.
    """

    scores: Mapping[tuple[str, Training], Scores]
    facts: Mapping[Training, Mapping[str, float]]


def run_trial(
    split: Split, trainings: Iterable[Training], classifiers: Sequence[str], seed: int
) -> Trial:
    """Choose, learn and score.

    Args:
        split: The pool and the gold set.
        trainings: The training sets; what stands there twice is done once.
        classifiers: Names in the campaign's toolkit.
        seed: Of the rules' ties and draws and of the classifiers.
    """
    asked = list(dict.fromkeys(trainings))
    orders = {rule: rule.order(split.pool, seed) for rule in {one.rule for one in asked}}
    scores: dict[tuple[str, Training], Scores] = {}
    facts: dict[Training, Mapping[str, float]] = {}
    for training in asked:
        items = orders[training.rule][: training.n]
        if len(items) < training.n:
            continue
        labels = split.buy(items)
        facts[training] = split.describe(items, labels)
        for name in classifiers:
            found = learn_and_label(name, split.rows[items], labels, split.gold_rows, seed)
            scores[name, training] = Scores.of(split.gold, found)
    return Trial(scores, facts)
