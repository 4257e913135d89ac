"""All that a campaign was, in plain values: what a report needs, from the ledger alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from karat.campaign.plan import Plan
from karat.crowd import Crowd
from karat.protocols import Ledger

VERSION = 1
"""Of the record's form."""


@dataclass(frozen=True)
class CampaignRecord:
    """A campaign, as its ledger tells it; made by `CampaignRecord.of`.

    Money is in millionths of the currency unit.

    Attributes:
        id: The campaign's id: its name, and a hash of the plan.
        plan: The plan, by section.
        versions: Versions of karat and of what its numbers depend on, at the start.
        rounds: One per round: items, answers, spent, score and its interval, the same on items
            drawn at random (`control`), against the truth of a simulation (`truth`), and more.
        picks: Per round how many items every rule picked.
        workers: By id answers, the last verdict with reliability and interval, and why the worker
            was barred, "" if not.
        forecasts: Per round the learning curve and where it leads.
        stop: The rule that stopped the campaign, why, and its facts; None while it runs.
        money: cap, reserved, spent; `everything`: what the whole pool costs with the most answers
            each; `saving`: the share of that which was not spent.
        counts: items, answers and control questions; items of the pool.
        version: Of this form.
    """

    id: str
    plan: Mapping[str, Any]
    versions: Mapping[str, str]
    rounds: tuple[Mapping[str, Any], ...]
    picks: Mapping[str, Mapping[str, int]]
    workers: Mapping[str, Mapping[str, Any]]
    forecasts: Mapping[str, Mapping[str, Any]]
    stop: Mapping[str, Any] | None
    money: Mapping[str, Any]
    counts: Mapping[str, int]
    version: int = VERSION

    @classmethod
    def of(cls, ledger: Ledger) -> CampaignRecord:
        """Read it from a ledger.

        Raises:
            KeyError: No campaign was ever run over it.
        """
        begun = ledger.records("plan")["plan"]
        stops, rounds = ledger.records("stop"), tuple(ledger.records("round").values())
        last = list(stops.values())[-1] if stops else None
        picks = ledger.records("picks")
        crowd, pool = ledger.crowd(), ledger.crowd("pool")
        plan = Plan.model_validate(begun["plan"])
        return cls(
            begun["id"],
            begun["plan"],
            begun["versions"],
            rounds,
            {name: dict(Counter(one["rules"])) for name, one in picks.items()},
            _workers(ledger, crowd),
            {name: one["facts"] for name, one in stops.items() if one["facts"]},
            last if last is not None and last["stop"] else None,
            _money(ledger, plan, pool),
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


def _money(ledger: Ledger, plan: Plan, pool: Crowd) -> dict[str, Any]:
    totals = ledger.totals()
    lengths = (pool.offsets[1:] - pool.offsets[:-1]).tolist()
    everything = plan.redundancy.max * sum(map(plan.cost, lengths))
    return {
        "currency": totals.currency,
        "cap": totals.cap,
        "reserved": totals.reserved,
        "spent": totals.spent,
        "everything": everything,
        "saving": 1 - totals.spent / everything,
    }


def _counts(ledger: Ledger, crowd: Crowd, pool: Crowd) -> dict[str, int]:
    rows = ledger.slots().to_pylist()
    control = {row["item"]: row["filled"] for row in rows if row["batch"] == "control"}
    items = sum(1 for row in rows if row["filled"] and row["batch"] != "control")
    return {
        "pool": pool.n_items,
        "items": items,
        "answers": len(crowd.latest),
        "control_items": len(control),
        "control_answers": sum(control.values()),
    }
