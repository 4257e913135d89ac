"""How far a campaign is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from goldspan.campaign.awaiting import ENDED, HOUR
from goldspan.campaign.changing import changes, pending, plan_in_force
from goldspan.money import from_micro
from goldspan.server.desk.learning import learning
from goldspan.server.work import FLAG

if TYPE_CHECKING:
    from goldspan.server.service import Service

FACTS = ("items", "answers", "hours", "score", "control", "model", "stable")
"""What is shown of a round."""


def overview(service: Service) -> dict[str, Any]:
    """Say how far it is."""
    live, plan, ledger = service.engine.live, service.setting.plan, service.ledger
    rounds = list(ledger.records("round").values())
    return {
        "campaign": service.setting.key,
        "title": plan.page.title or plan.name,
        "kind": "single" if plan.is_single else "spans",
        "version": live.version,
        **state_of(service),
        **trouble_of(service),
        "waiting": None if live.waiting is None else {
            "answers": live.waiting.answers, "items": live.waiting.items,
        },
        "items": _items(service),
        "answers": _answers(service),
        "money": _money(service),
        "hours": _hours(service),
        "rounds": [_round(number, one) for number, one in enumerate(rounds, 1)],
        "learning": learning(service, rounds),
        "flags": ledger.count(FLAG),
        "plan": _plan(service),
    }  # fmt: skip


def _plan(service: Service) -> dict[str, Any]:
    """Return the limits in force, what changed in the plan, and what waits for the next start."""
    limits = _in_force(service)
    return {
        "budget": limits["budget"], "stop": limits["stop"],
        "changes": changes(service.ledger), "pending": pending(service.setting, service.ledger),
    }  # fmt: skip


def _in_force(service: Service) -> dict[str, Any]:
    """Return the plan by which the campaign runs: before it begins, that of the file."""
    if service.ledger.count("plan"):
        return plan_in_force(service.ledger)
    return service.setting.plan.model_dump(mode="json")


def trouble_of(service: Service) -> dict[str, str]:
    """Return what stops the loop and what to do about it; beside a server its file tells."""
    live, trouble = service.engine.live, service.engine.trouble
    if live.state == "starting" and trouble is not None:
        return trouble.read()
    return {"error": live.error, "advice": live.advice}


def state_of(service: Service) -> dict[str, str]:
    """Say what goes on, and why it ended; without a loop the ledger tells."""
    live, stops = service.engine.live, list(service.ledger.records("stop").values())
    state, why = live.state, "" if live.decision is None else live.decision.why
    if trouble_of(service)["error"]:
        return {"state": "failed", "why": ""}
    if state == "starting" and stops and stops[-1]["stop"]:
        state, why = "ended", stops[-1]["why"]
    elif state == "starting" and service.ledger.count("picks"):
        state = "waiting"
    if state != "ended" and service.ledger.count(ENDED):
        state, why = "ending", "the requester ended it"
    elif state in {"starting", "waiting", "working"} and service.ledger.is_paused:
        state = "paused"
    return {"state": state, "why": why}


def _round(number: int, one: dict[str, Any]) -> dict[str, Any]:
    facts = {name: one.get(name) for name in FACTS}
    spent = None if one["cap"] is None else from_micro(one["spent"])
    return {"round": number, "spent": spent, **facts}


def _items(service: Service) -> dict[str, int]:
    """Count the items that are to be labelled: control questions are none of them."""
    pool = service.setting.pool.n_items - len(service.setting.control)
    return {"pool": pool, "picked": _picked(service), "answered": _answered(service)}


def _answered(service: Service) -> int:
    """Count the items with answers; where no loop looks at them, the places tell."""
    crowd = service.engine.live.crowd
    if crowd is None:
        slots = service.ledger.slots()
        items = slots.filter(pc.greater(slots["filled"], 0))["item"]
    else:
        items = crowd.item_ids
    known = pc.is_in(items, value_set=pa.array(list(service.setting.control), pa.string()))
    return len(items) - int(pc.sum(known).as_py() or 0)


def _picked(service: Service) -> int:
    """Count the items of all rounds; the lists are long, and read once a round."""
    kept: tuple[int, int] | None = service.__dict__.get("_picked")
    if kept is None or kept[0] != service.ledger.count("picks"):
        picks = service.ledger.records("picks").values()
        kept = len(picks), sum(len(one["items"]) for one in picks)
        service.__dict__["_picked"] = kept
    return kept[1]


def _answers(service: Service) -> dict[str, int]:
    people = service.people.all().values()
    return {
        "counting": sum(person.counting for person in people),
        "control": sum(len(person.control) for person in people),
        "drafts": sum(person.drafts for person in people),
        "workers": sum(person.counting > 0 for person in people),
    }


def _money(service: Service) -> dict[str, str] | None:
    """Give the money; bonuses are spent too, and stand with neither labels nor control.

    None where nobody is paid.
    """
    if not service.setting.plan.is_paid:
        return None
    totals, control = service.ledger.totals(), _paid_for_control(service)
    earned = sum(person.earned for person in service.people.all().values())
    amounts = {
        "cap": totals.cap, "reserved": totals.reserved, "spent": totals.spent, "left": totals.left,
        "labels": max(0, earned - control), "control": control,
    }  # fmt: skip
    return {"currency": totals.currency, **{k: from_micro(v) for k, v in amounts.items()}}


def _paid_for_control(service: Service) -> int:
    """Give what answers to control questions cost, in millionths; their batch is the first."""
    setting = service.setting
    rows = service.ledger.page(limit=len(setting.control)) if setting.control else []
    return sum(
        row.filled * int(setting.costs[setting.pool.place[row.item]])
        for row in rows
        if row.item in setting.control
    )


def _hours(service: Service) -> dict[str, float | None]:
    begin = next(iter(service.ledger.events())).time
    used, most = (service.clock() - begin) / HOUR, _in_force(service)["budget"]["hours"]
    return {"used": round(used, 3), "left": None if most is None else max(0.0, most - used)}
