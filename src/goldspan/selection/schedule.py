"""Selection rules by name, schedules of them, and the random slice of every batch."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from goldspan.errors import InputError, UnknownNameError
from goldspan.params import Whole, check_names, read_call
from goldspan.plugins import load, plugins
from goldspan.selection.base import CONTROL, Picked, Selector, Task
from goldspan.selection.greedy import BUDGET, EXHAUSTED
from goldspan.selection.registry import DEFAULT, SELECTORS

# --------------------------------------------------------------------------------------------------
# Rules in text: `mnlp`, `coverage(w=2, weights=none)`, or a schedule of several.


_HINT = "it must look like mnlp or coverage(w=2, weights=none)"


def get_selector(name: str, **params: Any) -> Selector:
    """Make a rule by its name."""
    place = SELECTORS[name][0] if name in SELECTORS else plugins("goldspan.selectors").get(name)
    if place is None:
        raise UnknownNameError("rule", name, [*SELECTORS, *plugins("goldspan.selectors")])
    kind: type[Selector] = load(place)
    check_names(name, params, kind.parameter_names())
    return kind(**params)


def read_selector(text: Any) -> Selector:
    """Read a rule or a schedule."""
    if isinstance(text, Selector):
        return text
    if len(clauses(str(text))) == 1:
        return read_rule(str(text))
    made = Schedule(text=str(text))
    made.plan()
    return made


def read_rule(text: str) -> Selector:
    """Read a single rule."""
    name, placed, named = read_call(text, _HINT)
    if placed:
        raise InputError(f"rule {text.strip()!r}: {_HINT}; parameters have names")
    return get_selector(name, **named)


def clauses(text: str) -> list[str]:
    """Cut a text at its commas, but not within brackets."""
    found, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return [one.strip() for one in found]


# --------------------------------------------------------------------------------------------------
# Random items: what every rule must beat, and the control slice of a batch.


class Random(Selector):
    """Items in a random order that the seed and their ids decide.

    It stops at the first item that does not fit into the budget: going on with smaller ones would
    prefer short items. Drawing again with the same seed goes on in the same order.

    >>> len(Random().select(["a b", "c", "d e f", "g"], n=2))
    2
    """

    name = CONTROL

    @property
    def heeds_errors(self) -> bool:
        """Whether what a model got wrong changes what it picks: it does not."""
        return False

    def _pick(self, task: Task) -> Picked:
        spending = task.limits.spending
        order = task.ranks("random")
        order = order[~task.is_out[order]]
        taken = order[: spending.most]
        if spending.spend is not None:
            fitting = np.cumsum(spending.spend[taken]) <= spending.budget * (1 + 1e-12)
            taken = taken[fitting]
        n = len(taken)
        stopped = EXHAUSTED if n == len(order) else BUDGET
        return Picked(
            taken, np.zeros(n), np.zeros(n, np.int64), (self.name,) * n, ("drawn",) * n, stopped
        )


# --------------------------------------------------------------------------------------------------
# Schedules: which rule in which round, and a share of every batch for others.


_SHARE = re.compile(r"^(?P<percent>\d+(\.\d+)?)\s*%\s*(?P<rule>.+)$")
_ROUNDS = re.compile(r"^(?P<rule>.+?)\s+for\s+(?P<n>\d+)\s+rounds?$")
_SCHEDULE_HINT = 'it must look like "coverage, then mnlp, 10% random"'


class Plan(NamedTuple):
    """A schedule as it was read."""

    # Rules with the number of rounds that each lasts, the last one for ever
    stages: tuple[tuple[Selector, int], ...]
    # Parts of every batch, 0 to 1, and the rules that pick them
    shares: tuple[tuple[float, Selector], ...]

    def rule(self, number: int) -> Selector:
        """Return the rule of a round, counted from 0."""
        for rule, rounds in self.stages[:-1]:
            if number < rounds:
                return rule
            number -= rounds
        return self.stages[-1][0]


class Schedule(Selector):
    """Rules one after the other over the rounds, and shares of every batch.

    Args:
        text: The schedule.
        round: The round, counted from 0; None: the first without a model, with one the first
            after the first rule.

    >>> [part.name for part, _ in Schedule().plan().stages]
    ['coverage', 'mnlp']
    """

    name = "schedule"
    text: str = DEFAULT
    round: Annotated[int | None, Whole(0)] = None

    def plan(self) -> Plan:
        """Read the schedule.

        Raises:
            InputError: It is not written like one.
            UnknownNameError: There is no such rule.
        """
        stages: list[tuple[Selector, int]] = []
        shares: list[tuple[float, Selector]] = []
        for n, clause in enumerate(clauses(self.text)):
            share = _SHARE.match(clause)
            if share:
                part = float(share["percent"]) / 100
                if not 0 < part < 1:
                    raise InputError(f"{clause!r}: a share lies above 0 % and below 100 %")
                shares.append((part, read_rule(share["rule"])))
                continue
            then, _, rest = clause.partition(" ")
            if (then == "then") != bool(stages) or (shares and not stages) or not clause:
                raise InputError(
                    f"schedule {self.text!r}: clause {n + 1}, {clause!r}: {_SCHEDULE_HINT}"
                )
            stages.append(_stage(rest if stages else clause))
        if not stages or sum(part for part, _ in shares) >= 1:
            raise InputError(
                f"schedule {self.text!r}: some rule must be left a share of the batch; "
                f"{_SCHEDULE_HINT}"
            )
        return Plan(tuple(stages), tuple(shares))

    @property
    def heeds_errors(self) -> bool:
        """Whether what a model got wrong changes what it picks after the first round."""
        stages, shares = self.plan()
        is_over = len(stages) > 1 and stages[0][1] == 1  # when the first errors are known
        rules = [rule for rule, _ in stages[is_over:]] + [rule for _, rule in shares]
        return any(rule.heeds_errors for rule in rules)

    def _pick(self, task: Task) -> Picked:
        plan = self.plan()
        number = self.round
        if number is None:
            number = 0 if task.model is None else plan.stages[0][1]
        found: list[Picked] = []
        rest = task
        for part, rule in plan.shares:
            # A rule its part of the batch: of the number of items and of the budget
            spending = task.limits.spending
            # A whole item at least: the control slice must not vanish from small batches.
            most = min(max(1, round(part * spending.most)), rest.limits.spending.most)
            own = replace(spending, most=most, budget=part * spending.budget)
            found.append(rule.pick(replace(rest, limits=replace(rest.limits, spending=own))))
            rest = _without(rest, found[-1])
        found.append(plan.rule(number).pick(rest))
        facts: dict[str, Any] = {"round": number}
        for one in reversed(found):
            facts |= one.facts
        return _joined(found, task, facts)


def _stage(text: str) -> tuple[Selector, int]:
    found = _ROUNDS.match(text.strip())
    if not found:
        return read_rule(text), 1
    if int(found["n"]) < 1:
        raise InputError(f"{text!r}: a rule lasts at least one round")
    return read_rule(found["rule"]), int(found["n"])


def _without(task: Task, picked: Picked) -> Task:
    spending, out = task.limits.spending, task.is_out.copy()
    out[picked.item] = True
    spent = 0.0 if spending.spend is None else float(spending.spend[picked.item].sum())
    left = replace(spending, most=spending.most - len(picked.item), budget=spending.budget - spent)
    together = np.concatenate([task.picked, picked.item])
    limits = replace(task.limits, spending=left)
    return replace(task, limits=limits, is_out=out, picked=together)


def _joined(found: list[Picked], task: Task, facts: dict[str, Any]) -> Picked:
    item = np.concatenate([one.item for one in found])
    stopped = found[-1].stopped
    if stopped == EXHAUSTED and len(item) < int((~task.is_out).sum()):
        stopped = BUDGET
    return Picked(
        item,
        np.concatenate([one.gain for one in found]),
        np.concatenate([one.level for one in found]),
        tuple(rule for one in found for rule in one.rule),
        tuple(why for one in found for why in one.why),
        stopped,
        facts,
    )
