"""The default step "select": a rule or a schedule, as much as the money pays for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from goldspan.campaign.protocols import Picks, Trained
from goldspan.campaign.setting import Setting
from goldspan.select import read_selector
from goldspan.select.base import Cost
from goldspan.select.schedule import Schedule

POOL, MONEY = "pool", "money"
"""Why there are no more items."""


@dataclass(frozen=True)
class Picking:
    """Picks by the plan's schedule.

    A schedule is in its first stage until there is a model, whatever the round.
    """

    setting: Setting

    def pick(self, number: int, taken: Sequence[str], trained: Trained | None, left: int) -> Picks:
        """Pick as many items as the plan says, and the money pays for with the fewest answers."""
        plan, pool = self.setting.plan, self.setting.pool
        rule = read_selector(plan.select.by)
        if isinstance(rule, Schedule):
            rule.round = number - 1 if trained is not None else 0
        n = plan.select.batch
        n = plan.select.first or n if number == 1 else n
        closed = [*taken, *self.setting.control]
        if len(closed) == pool.n_items:
            return Picks((), (), POOL)
        found = rule.select(
            pool,
            labelled=closed,
            model=None if trained is None else trained.model,
            n=n,
            costs=self._costs(),
            random_state=plan.seed,
        )
        items, spent = [], 0
        for index in found.item.tolist():
            cost = int(self.setting.costs[index]) * plan.redundancy.min
            if spent + cost > left:
                break
            spent += cost
            items.append(self.setting.ids[index])
        stopped = "" if items else MONEY if len(found) else POOL
        return Picks(tuple(items), tuple(found.rule[: len(items)]), stopped)

    def _costs(self) -> Cost | None:
        """Give what the rules weigh gains against; where nobody is paid, items are alike."""
        if not self.setting.plan.is_paid:
            return None
        prices = self.setting.plan.prices
        per_token = prices.per_token if self.setting.pool.text is not None else 0
        fixed = prices.per_answer
        if not self.setting.plan.is_single:
            return Cost(fixed=fixed, per_token=per_token, answers=self.setting.plan.redundancy.min)
        return None
