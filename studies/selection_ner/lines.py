"""What is compared: rules of selection, the budget each is given, and when it stops to be scored.

A line is a rule that spends its budget step by step. Rules that ask a model are given a new one
after every step; the others need stops only where they are scored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from goldspan.selection import Schedule
from goldspan.selection.registry import DEFAULT

RANDOM, SCHEDULE = "random", "default schedule"
"""The line that all others are compared with, and the one that our target is about."""


class Line(NamedTuple):
    """A rule with its budget.

    Attributes:
        label: What it is called.
        rule: As `goldspan select --by` reads it.
        limits: What is spent in all at every stop, rising.
        unit: "tokens" or "items".
        errors: Whether the rule is told, after every stop, which of the sentences that were bought
            a CRF gets wrong that was not trained on them.
    """

    label: str
    rule: str
    limits: tuple[int, ...]
    unit: str = "tokens"
    errors: bool = False

    @property
    def asks(self) -> bool:
        """Whether the rule, from some round on, asks a model."""
        return _asks(self.rule)


def _asks(rule: str) -> bool:
    return any(stage.needs_model for stage, _ in Schedule(text=rule).plan().stages)


RULES = {
    RANDOM: RANDOM,
    SCHEDULE: DEFAULT,
    "coverage": "coverage",
    "coverage-paper": "coverage-paper",
    "mnlp": "random, then mnlp",
}
"""The lines of the study."""
BY_COST = {
    ("all alike", "no"): "coverage-paper",
    ("all alike", "yes"): "coverage-paper(by_cost=True)",
    ("log df", "no"): "coverage(by_cost=False)",
    ("log df", "yes"): "coverage",
}
"""Coverage with one of its two changes, both and neither: what pairs weigh, gain per token."""
MIXED = "schedule, 30 % coverage"
BY_ERRORS: dict[str, tuple[str, bool, str]] = {
    "schedule, mnlp × errors": (DEFAULT, True, SCHEDULE),
    "schedule, mnlp × errors⁴": ("coverage, then mnlp(errors=4), 10% random", True, SCHEDULE),
    MIXED: ("coverage, then mnlp, 30% coverage, 10% random", False, SCHEDULE),
    "schedule, 30 % cover the errors": (
        "coverage, then mnlp, 30% coverage(errors_as=target), 10% random",
        True,
        MIXED,
    ),
    "coverage, errors weigh": ("coverage", True, "coverage"),
    "coverage near errors": ("coverage(errors_as=near)", True, "coverage"),
}
"""Rules, whether they are told what a CRF gets wrong, and the line that each is compared with."""
BY_ITEMS = (RANDOM, "coverage-paper", "coverage")
"""Rules that are also given a budget of sentences."""


@dataclass(frozen=True)
class Extent:
    """How much is done.

    Attributes:
        budgets: Tokens after which everything is scored.
        rounds: Tokens after which a rule that asks a model is given a new one, budgets among them.
        n_early: How many of the budgets suffice to see what weights and costs change.
        items: Budgets of sentences.
        repeats: How many seeds.
        test_items: About how many sentences of the test sets are used; None: all.
        n_errors: How many of the budgets are given to rules that are told what is wrong.
    """

    budgets: tuple[int, ...] = (2500, 5000, 10_000, 15_000, 22_000, 40_000)
    rounds: tuple[int, ...] = (*range(2500, 20_001, 2500), 22_000, 31_000, 40_000)
    n_early: int = 3
    items: tuple[int, ...] = (170, 340)
    repeats: int = 5
    test_items: int | None = None
    n_errors: int = 4

    def repeated(self, repeats: int) -> Extent:
        """Return the same with another number of seeds."""
        return replace(self, repeats=repeats)

    @property
    def early(self) -> tuple[int, ...]:
        """The first budgets.

        >>> Extent(n_early=2).early
        (2500, 5000)
        """
        return self.budgets[: self.n_early]

    @property
    def told(self) -> tuple[int, ...]:
        """Return the budgets of rules that are told what is wrong, behind the first round."""
        return self.budgets[1 : self.n_errors]

    @property
    def lines(self) -> list[Line]:
        """All lines, those of the main question first."""
        named = {rule: label for label, rule in RULES.items()}
        limits = (self.budgets, self.rounds)
        found = [Line(named[rule], rule, limits[_asks(rule)]) for rule in named]
        found += [Line(rule, rule, self.early) for rule in BY_COST.values() if rule not in named]
        rounds = tuple(limit for limit in self.rounds if limit <= max(self.told, default=0))
        found += [
            Line(label, rule, rounds, errors=told)
            for label, (rule, told, _) in BY_ERRORS.items()
            if rounds
        ]
        return found + [Line(f"{rule} by items", rule, self.items, "items") for rule in BY_ITEMS]


FULL = Extent()
_FIRST = (2500, 5000, 10_000)
QUICK = Extent(_FIRST, (*_FIRST[:2], 7500, _FIRST[2]), 2, (170,), repeats=2, test_items=1000)
