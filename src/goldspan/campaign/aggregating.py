"""The default step "aggregate": a method of goldspan, and a rule that says which items go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from goldspan.aggregate import Consensus, get_aggregator
from goldspan.campaign.plan import Plan
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.hiring import next_answers
from goldspan.hiring.asking import OPEN, states
from goldspan.hiring.stopping import get_rule


@dataclass(frozen=True)
class Aggregating:
    """Aggregates by the plan's method; known labels count as the truth."""

    plan: Plan

    def labels(self, crowd: Crowd) -> Consensus:
        """Aggregate.

        Raises:
            InputError: There is no answer.
        """
        aggregator = get_aggregator(self.plan.method, **self.plan.aggregate.params)
        known = None if crowd.gold is None or not (crowd.gold >= 0).any() else crowd
        return aggregator.fit(crowd.with_gold(None), known).result_

    def open_items(self, crowd: Crowd, result: Consensus, items: Sequence[str]) -> list[str]:
        """Name the items whose answers are too few by the rule, in the order given."""
        limits = self.plan.redundancy
        status = states(crowd, result, get_rule(limits.stop), limits.min, limits.max)
        names = crowd.item_ids.to_pylist()
        open_ = {name for name, state in zip(names, status.tolist(), strict=True) if state == OPEN}
        return [name for name in items if name in open_]


class Asking(NamedTuple):
    """What more answers to the most doubtful items are worth.

    Attributes:
        answers: How many there can be, at most as many as were asked for.
        right: Tokens that they are expected to set right, if labels are drawn by their
            probabilities.
    """

    answers: int
    right: float


def value_of_asking(plan: Plan, crowd: Crowd, result: Consensus, n: int) -> Asking | None:
    """Say what n more answers to the most doubtful items are worth.

    None for methods whose shares are no probabilities.
    """
    if result.entropy is None or not crowd.n_tokens:
        return None
    try:
        found = next_answers(
            crowd, result, rule=plan.redundancy.stop, max_answers=plan.redundancy.max + 1, n=n
        )
    except InputError:  # a rule for numbers on labels that are none
        return None
    return Asking(len(found.gain), float(found.gain.sum()))


def right_share(result: Consensus) -> float | None:
    """Give the expected share of right tokens, if labels are drawn by their probabilities.

    None for methods whose shares are no probabilities.
    """
    if result.entropy is None or not len(result.codes):
        return None
    return float((result.token_probs.astype(np.float64) ** 2).sum(axis=1).mean())
