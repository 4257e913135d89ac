"""All that a campaign was, in plain values: what a report needs, from the ledger alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from goldspan.campaign.awaiting import HOUR
from goldspan.campaign.changing import changes, plan_in_force
from goldspan.campaign.covered import coverage_of
from goldspan.campaign.plan import Plan
from goldspan.campaign.stopping import NEXT, curve_of
from goldspan.crowd import Crowd
from goldspan.protocols import Ledger

VERSION = 3
"""Of the record's form."""
POINTS = 200
"""At most so many moments of the spending are told."""
STEPS = 41
"""Points of the learning curve."""


@dataclass(frozen=True)
class CampaignRecord:
    """A campaign, as its ledger tells it; made by `CampaignRecord.of`.

    Money is in millionths of the currency unit.

    Attributes:
        id: The campaign's id: its name, and a hash of the plan.
        plan: The plan in force, by section: the first one with what changed since.
        changes: What changed in the plan while it ran, a line per key, in order.
        versions: Versions of goldspan and of what its numbers depend on, at the start.
        rounds: One per round: items, answers, spent, score and its interval, the same on items
            drawn at random (`control`), against the truth of a simulation (`truth`), and more.
        picks: Per round how many items every rule picked.
        workers: By id answers, the last verdict with reliability and interval, and why the worker
            was barred, "" if not.
        forecasts: Per round the learning curve and where it leads.
        curve: The last learning curve with its 95 % band, to be drawn: `items`, `score`, `low`,
            `high`, a list each; None while there are too few points.
        spending: The course of the money: hours since the beginning, answers and what was paid
            for them; at most 200 moments, none where nobody is paid.
        redundancy: How many picked items have 0, 1, … answers, control questions aside.
        coverage: Of the pool after every round, see `goldspan.campaign.covered`; None where it is
            not known.
        stop: The rule that stopped the campaign, why, and its facts; None while it runs.
        money: cap, reserved, spent; `fixed`: what the labelled items had cost with the most answers
            each; `saving`: the share of that which was not spent, below 0 if more was;
            `everything`: what the whole pool costs with the most answers each. None where nobody
            is paid.
        counts: items, answers and control questions; items of the pool; `awaited`: answers that
            are still to come to what was picked.
        version: Of this form.
    """

    id: str
    plan: Mapping[str, Any]
    changes: tuple[str, ...]
    versions: Mapping[str, str]
    rounds: tuple[Mapping[str, Any], ...]
    picks: Mapping[str, Mapping[str, int]]
    workers: Mapping[str, Mapping[str, Any]]
    forecasts: Mapping[str, Mapping[str, Any]]
    curve: Mapping[str, Any] | None
    spending: tuple[Mapping[str, Any], ...]
    redundancy: tuple[int, ...]
    coverage: Mapping[str, Any] | None
    stop: Mapping[str, Any] | None
    money: Mapping[str, Any] | None
    counts: Mapping[str, int]
    version: int = VERSION

    @classmethod
    def of(cls, ledger: Ledger) -> CampaignRecord:
        """Read it from a ledger.

        Raises:
            KeyError: No campaign was ever run over it.
        """
        begun = ledger.records("plan")["plan"]
        in_force = plan_in_force(ledger)
        stops, rounds = ledger.records("stop"), tuple(ledger.records("round").values())
        last = list(stops.values())[-1] if stops else None
        picks = ledger.records("picks")
        crowd, pool = ledger.crowd(), ledger.crowd("pool")
        plan = Plan.model_validate(in_force)
        return cls(
            begun["id"],
            in_force,
            tuple(changes(ledger)),
            begun["versions"],
            rounds,
            {name: dict(Counter(one["rules"])) for name, one in picks.items()},
            _workers(ledger, crowd),
            {name: one["facts"] for name, one in stops.items() if one["facts"]},
            drawn_curve(plan, rounds),
            _spending(ledger, crowd) if plan.is_paid else (),
            _redundancy(ledger),
            coverage_of(pool, [one["items"] for one in picks.values() if one["items"]]),
            last if last is not None and last["stop"] else None,
            _money(ledger, plan, pool) if plan.is_paid else None,
            _counts(ledger, crowd, pool),
        )

    def to_dict(self) -> dict[str, Any]:
        """Give plain values, for JSON."""
        return asdict(self)


def _workers(ledger: Ledger, crowd: Crowd) -> dict[str, dict[str, Any]]:
    judged = list(ledger.records("verdicts").values())
    verdicts, barred = (judged[-1]["workers"] if judged else {}), ledger.records("bar")
    sizes = (crowd.by_worker.bounds[1:] - crowd.by_worker.bounds[:-1]).tolist()
    answers = dict(zip(crowd.worker_ids.to_pylist(), sizes, strict=True))
    return {
        worker: {
            "answers": answers.get(worker, 0),
            **verdicts.get(worker, {}),
            "barred": barred.get(worker, {}).get("why", ""),
        }
        for worker in sorted({*answers, *barred})
    }


def drawn_curve(plan: Plan, rounds: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Give the learning curve from its first point on to the end of what is forecast."""
    found = curve_of(plan, rounds)
    if found is None:
        return None
    first = min(one["items"] for one in rounds if one["control"] is not None)
    items = np.linspace(first, max(found.last + NEXT, 1.5 * found.last), STEPS).round(2).tolist()
    bounds = [found.interval(n) for n in items]
    return {
        "items": items,
        "score": [found.at(n) for n in items],
        "low": [low for low, _ in bounds],
        "high": [high for _, high in bounds],
    }


def _spending(ledger: Ledger, crowd: Crowd) -> tuple[dict[str, Any], ...]:
    answers = crowd.latest
    if answers.submitted is None or answers.cost is None or not len(answers):
        return ()
    begin = next(iter(ledger.events())).time
    order = np.argsort(answers.submitted, kind="stable")
    hours = (answers.submitted[order] - begin) / HOUR
    spent = np.cumsum(answers.cost[order])
    shown = np.unique(np.linspace(0, len(order) - 1, POINTS).round().astype(int)).tolist()
    return tuple(
        {"hours": round(float(hours[n]), 6), "answers": n + 1, "spent": int(spent[n])}
        for n in shown
    )


def _redundancy(ledger: Ledger) -> tuple[int, ...]:
    rows = ledger.slots().to_pylist()
    filled = [row["filled"] for row in rows if row["batch"] != "control"]
    return tuple(np.bincount(np.array(filled, np.int64)).tolist())


def _money(ledger: Ledger, plan: Plan, pool: Crowd) -> dict[str, Any]:
    totals, most = ledger.totals(), plan.redundancy.max
    lengths = (pool.offsets[1:] - pool.offsets[:-1]).tolist()
    costs = dict(zip(pool.item_ids.to_pylist(), map(plan.cost, lengths), strict=True))
    # An item that still waits for its first answers is not labelled.
    labelled = [
        row["item"]
        for row in ledger.slots().to_pylist()
        if row["batch"] != "control" and 0 < row["filled"] >= row["wanted"]
    ]
    fixed = most * sum(costs[item] for item in labelled)
    return {
        "currency": totals.currency,
        "cap": totals.cap,
        "reserved": totals.reserved,
        "spent": totals.spent,
        "fixed": fixed,
        "saving": 1 - totals.spent / fixed if fixed else 0.0,
        "everything": most * sum(costs.values()),
    }


def _counts(ledger: Ledger, crowd: Crowd, pool: Crowd) -> dict[str, int]:
    rows = ledger.slots().to_pylist()
    control = {row["item"]: row["filled"] for row in rows if row["batch"] == "control"}
    own = [row for row in rows if row["batch"] != "control"]
    items = sum(1 for row in own if row["filled"])
    return {
        "pool": pool.n_items,
        "items": items,
        "answers": len(crowd.latest),
        "awaited": sum(max(0, row["wanted"] - row["filled"]) for row in own),
        "control_items": len(control),
        "control_answers": sum(control.values()),
    }
