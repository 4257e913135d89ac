"""How far a campaign is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karat.campaign.web import HOUR
from karat.money import from_micro
from karat.server.work import FLAG

if TYPE_CHECKING:
    from karat.server.service import Service

FACTS = (
    "round", "items", "answers", "spent", "hours", "score", "control", "model", "stable",
    "ask_again",
)  # fmt: skip
"""What is shown of a round."""


def overview(service: Service) -> dict[str, Any]:
    """Say how far it is."""
    live, plan, ledger = service.engine.live, service.setting.plan, service.ledger
    paused = ledger.is_paused
    state = "paused" if paused and live.state in {"waiting", "working"} else live.state
    decision = live.decision
    return {
        "campaign": service.setting.key,
        "title": plan.page.title or plan.name,
        "kind": "single" if plan.is_single else "spans",
        "version": live.version,
        "state": state,
        "why": "" if decision is None else decision.why,
        "error": live.error,
        "waiting": None if live.waiting is None else {
            "answers": live.waiting.answers, "items": live.waiting.items,
        },
        "items": _items(service),
        "answers": _answers(service),
        "money": _money(service),
        "hours": _hours(service),
        "rounds": [{name: one.get(name) for name in FACTS} for one in _rounds(service)],
        "forecast": _forecast(service),
        "flags": len(ledger.records(FLAG)),
    }  # fmt: skip


def _items(service: Service) -> dict[str, int]:
    picked = [name for one in service.ledger.records("picks").values() for name in one["items"]]
    crowd = service.engine.live.crowd
    answered = 0 if crowd is None else crowd.n_items
    return {"pool": service.setting.pool.n_items, "picked": len(picked), "answered": answered}


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


def _rounds(service: Service) -> list[dict[str, Any]]:
    return list(service.ledger.records("round").values())


def _forecast(service: Service) -> dict[str, Any] | None:
    """Give where the learning curve leads, as the last round saw it."""
    stops = [one["facts"] for one in service.ledger.records("stop").values() if one["facts"]]
    return stops[-1] if stops else None
