"""The panels of Li and Liu's figures: one quantity is varied, every line is tried many times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldspan.protocols import Runner
from studies.li_liu.pools import Pool
from studies.li_liu.trial import Entry, Indices, Tested, accuracy, begin

Told = Callable[[int, int], None]


@dataclass(frozen=True)
class Case:
    """A place on a panel's axis: the gold questions are drawn, the budget is set."""

    tested: Tested
    budget: int


@dataclass(frozen=True)
class Panel:
    """What is varied, and which lines are drawn.

    Attributes:
        title: In words.
        axis: What is varied.
        places: Its values.
        entries: The lines.
        cases: Gives the cases of a trial, one for every place, by the trial's seed.
        is_own: Whether a team is chosen for every item, among the workers who answered it; its
            size is then the mean number of answers.
    """

    title: str
    axis: str
    places: tuple[float, ...]
    entries: tuple[Entry, ...]
    cases: Callable[[int], list[Case]]
    is_own: bool = False


@dataclass(frozen=True)
class Curves:
    """What a panel's trials gave.

    Attributes:
        panel: The panel.
        accuracy: float64 [n_trials, n_entries, n_places], share of right labels.
        size: float64 [n_trials, n_entries, n_places], workers in the team.
    """

    panel: Panel
    accuracy: NDArray[np.float64]
    size: NDArray[np.float64]

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean accuracy, [n_entries, n_places]."""
        return np.asarray(self.accuracy.mean(axis=0))

    @property
    def error(self) -> NDArray[np.float64]:
        """Standard error of the mean, [n_entries, n_places]; 0 for a single trial."""
        n = len(self.accuracy)
        if n < 2:
            return np.zeros(self.accuracy.shape[1:])
        return np.asarray(self.accuracy.std(axis=0, ddof=1) / np.sqrt(n))

    def row(self, label: str) -> int:
        """Return the number of a line."""
        return [entry.label for entry in self.panel.entries].index(label)


def by_budget(
    title: str, draw: Callable[[int], Pool], entries: Sequence[Entry], budgets: Sequence[int],
    *, is_own: bool = False,
) -> Panel:  # fmt: skip
    """Vary the budget.

    Args:
        title: Of the panel.
        draw: Gives the pool of a trial by its seed.
        entries: The lines.
        budgets: Workers per item.
        is_own: Whether every item has a team of its own, of the workers who answered it.
    """

    def cases(seed: int) -> list[Case]:
        tested = begin(draw(seed), seed)
        return [Case(tested, budget) for budget in budgets]

    return Panel(title, "budget: workers per item", tuple(budgets), tuple(entries), cases, is_own)


def by_gold(
    title: str,
    draw: Callable[[int], Pool],
    entries: Sequence[Entry],
    numbers: Sequence[int],
    budget: int,
) -> Panel:
    """Vary the number of gold questions."""

    def cases(seed: int) -> list[Case]:
        pool = draw(seed)
        return [Case(begin(pool, seed, number), budget) for number in numbers]

    return Panel(title, "gold questions", tuple(numbers), tuple(entries), cases)


def by_prior(
    title: str,
    draw: Callable[[int, float], Pool],
    entries: Sequence[Entry],
    values: Sequence[float],
    budget: int,
) -> Panel:
    """Vary the parameter a of the workers' Beta(a, 2)."""

    def cases(seed: int) -> list[Case]:
        return [Case(begin(draw(seed, a), seed), budget) for a in values]

    return Panel(title, "a of the workers' Beta(a, 2)", tuple(values), tuple(entries), cases)


def carry_out(panel: Panel, n_trials: int, runner: Runner, told: Callable[[], None]) -> Curves:
    """Do the trials of a panel.

    Args:
        panel: Which.
        n_trials: How many.
        runner: Where.
        told: Told of every trial that is over.
    """

    def one(seed: int, _: None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        found = _trial(panel, seed)
        told()
        return found

    results = runner.map(one, range(n_trials), None)
    right, sizes = zip(*results, strict=True)
    return Curves(panel, np.stack(right), np.stack(sizes))


def _trial(panel: Panel, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    shape = (len(panel.entries), len(panel.places))
    right, sizes = np.zeros(shape), np.zeros(shape)
    for place, case in enumerate(panel.cases(seed)):
        teams = {entry.way.name: _chosen(panel, entry, case) for entry in panel.entries}
        for line, entry in enumerate(panel.entries):
            tested, team, sizes[line, place] = teams[entry.way.name]
            if len(team):
                right[line, place] = accuracy(tested, entry.combine(tested, team))
            else:
                right[line, place] = case.tested.reliability.chance
    return right, sizes


def _chosen(panel: Panel, entry: Entry, case: Case) -> tuple[Tested, Indices, float]:
    """Return the trial with the answers that count, the workers, and how many an item has."""
    if not panel.is_own:
        team = entry.way.choose(case.tested, case.budget)
        return case.tested, team, len(team)
    tested = entry.way.choose_own(case.tested, case.budget)
    crowd = tested.rest.crowd
    return tested, np.arange(crowd.n_workers), len(crowd.latest) / crowd.n_items
