"""How far a campaign is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karat.campaign.awaiting import ENDED, HOUR
from karat.money import from_micro
from karat.server.desk.learning import learning
from karat.server.work import FLAG

if TYPE_CHECKING:
    from karat.server.service import Service

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
        **_state(service),
        "error": live.error,
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
    }  # fmt: skip


def _state(service: Service) -> dict[str, Any]:
    """Say what goes on; without a loop the ledger tells."""
    live, stops = service.engine.live, list(service.ledger.records("stop").values())
    state, why = live.state, "" if live.decision is None else live.decision.why
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
    return {"round": number, "spent": from_micro(one["spent"]), **facts}


def _items(service: Service) -> dict[str, int]:
    crowd = service.engine.live.crowd
    answered = 0 if crowd is None else crowd.n_items
    return {"pool": service.setting.pool.n_items, "picked": _picked(service), "answered": answered}


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


def _money(service: Service) -> dict[str, str]:
    totals = service.ledger.totals()
    amounts = {
        "cap": totals.cap, "reserved": totals.reserved, "spent": totals.spent, "left": totals.left,
    }  # fmt: skip
    return {"currency": totals.currency, **{k: from_micro(v) for k, v in amounts.items()}}


def _hours(service: Service) -> dict[str, float | None]:
    begin = next(iter(service.ledger.events())).time
    used, most = (service.clock() - begin) / HOUR, service.setting.plan.budget.hours
    return {"used": round(used, 3), "left": None if most is None else max(0.0, most - used)}
