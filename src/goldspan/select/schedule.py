"""Schedules: which rule in which round, and a share of every batch for others.

`coverage, then mnlp, 10% random`: a first round by coverage; from the second on by MNLP; of every
batch a tenth is drawn at random, before the rest, so that it is a fair sample of what is left. A
rule may last several rounds: `coverage for 2 rounds, then mnlp`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from goldspan.errors import InputError
from goldspan.select.base import Selector, Task
from goldspan.select.budget import Limits
from goldspan.select.greedy import BUDGET, EXHAUSTED
from goldspan.select.parsing import clauses, read_rule
from goldspan.select.registry import DEFAULT
from goldspan.select.selection import Picked
from goldspan.tagger.parameters import check_whole

_SHARE = re.compile(r"^(?P<percent>\d+(\.\d+)?)\s*%\s*(?P<rule>.+)$")
_ROUNDS = re.compile(r"^(?P<rule>.+?)\s+for\s+(?P<n>\d+)\s+rounds?$")
_HINT = 'it must look like "coverage, then mnlp, 10% random"'


class Plan(NamedTuple):
    """A schedule as it was read.

    Attributes:
        stages: Rules with the number of rounds that each lasts, the last one for ever.
        shares: Parts of every batch, 0 to 1, and the rules that pick them.
    """

    stages: tuple[tuple[Selector, int], ...]
    shares: tuple[tuple[float, Selector], ...]

    def rule(self, number: int) -> Selector:
        """Give the rule of a round, counted from 0."""
        for rule, rounds in self.stages[:-1]:
            if number < rounds:
                return rule
            number -= rounds
        return self.stages[-1][0]


@dataclass(kw_only=True)
class Schedule(Selector):
    """Rules one after the other over the rounds, and shares of every batch.

    Args:
        text: The schedule.
        round: The round, counted from 0; None: the first without a model, with one the first
            after the first rule.

    >>> [part.name for part, _ in Schedule().plan().stages]
    ['coverage', 'mnlp']
    """

    name: ClassVar[str] = "schedule"
    text: str = DEFAULT
    round: int | None = None

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
                shares.append((_percent(share["percent"], clause), read_rule(share["rule"])))
                continue
            then, _, rest = clause.partition(" ")
            if (then == "then") != bool(stages) or (shares and not stages) or not clause:
                raise InputError(f"schedule {self.text!r}: clause {n + 1}, {clause!r}: {_HINT}")
            stages.append(_stage(rest if stages else clause))
        if not stages or sum(part for part, _ in shares) >= 1:
            raise InputError(
                f"schedule {self.text!r}: some rule must be left a share of the batch; {_HINT}"
            )
        return Plan(tuple(stages), tuple(shares))

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        if self.round is not None:
            check_whole("round", self.round, 0)

    def _pick(self, task: Task) -> Picked:
        plan = self.plan()
        number = self.round
        if number is None:
            number = 0 if task.model is None else plan.stages[0][1]
        found: list[Picked] = []
        rest = task
        for part, rule in plan.shares:
            found.append(rule.pick(_share_of(task, rest, part)))
            rest = _without(rest, found[-1])
        found.append(plan.rule(number).pick(rest))
        facts: dict[str, Any] = {"round": number}
        for one in reversed(found):
            facts |= one.facts
        return _joined(found, task, facts)


def _percent(text: str, clause: str) -> float:
    share = float(text) / 100
    if not 0 < share < 1:
        raise InputError(f"{clause!r}: a share lies above 0 % and below 100 %")
    return share


def _stage(text: str) -> tuple[Selector, int]:
    found = _ROUNDS.match(text.strip())
    if not found:
        return read_rule(text), 1
    if int(found["n"]) < 1:
        raise InputError(f"{text!r}: a rule lasts at least one round")
    return read_rule(found["rule"]), int(found["n"])


def _share_of(whole: Task, rest: Task, part: float) -> Task:
    """Give a rule its part of the batch: of the number of items and of the budget."""
    purse = whole.limits.purse
    # A whole item at least: the control slice must not vanish from small batches.
    most = min(max(1, round(part * purse.most)), rest.limits.purse.most)
    own = replace(purse, most=most, budget=part * purse.budget)
    return _with_purse(rest, own)


def _without(task: Task, picked: Picked) -> Task:
    purse, out = task.limits.purse, task.is_out.copy()
    out[picked.item] = True
    spent = 0.0 if purse.spend is None else float(purse.spend[picked.item].sum())
    left = replace(purse, most=purse.most - len(picked.item), budget=purse.budget - spent)
    together = np.concatenate([task.picked, picked.item])
    return replace(_with_purse(task, left), is_out=out, picked=together)


def _with_purse(task: Task, purse: Any) -> Task:
    limits = task.limits
    return replace(task, limits=Limits(purse, limits.cost, limits.unit, limits.spent_in))


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
