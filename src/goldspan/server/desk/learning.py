"""The learning curve as a page draws it: what was measured, the curve with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from goldspan.campaign.record import drawn_curve
from goldspan.money import from_micro

if TYPE_CHECKING:
    from goldspan.server.service import Service


def learning(service: Service, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Give points, curve, target and forecast, worked out once per round.

    Args:
        service: The campaign.
        rounds: The records of its rounds.
    """
    kept: tuple[int, Any] | None = service.__dict__.get("_learning")
    if kept is None or kept[0] != len(rounds):
        kept = len(rounds), drawn_curve(service.setting.plan, rounds) if rounds else None
        service.__dict__["_learning"] = kept
    return {
        "points": [_point(one) for one in rounds if one["control"] or one["score"]],
        "curve": kept[1],
        "target": service.setting.plan.stop.target,
        "forecast": _forecast(service),
    }


def _point(one: dict[str, Any]) -> dict[str, Any]:
    """Give a round's score, on items drawn at random where there are any."""
    score = one["control"] or one["score"]
    return {"items": one["items"], **{name: score[name] for name in ("value", "low", "high")}}


def _forecast(service: Service) -> dict[str, Any] | None:
    """Give where the curve leads, as the last round saw it, with money as decimal text.

    Where nobody is paid the cost is None, and `answers` tell what it takes.
    """
    stops = [one["facts"] for one in service.ledger.records("stop").values() if one["facts"]]
    if not stops:
        return None
    found = {name: stops[-1].get(name) for name in ("next", "to_target", "ask_again")}
    paid = service.setting.plan.is_paid
    return {
        name: facts and {**facts, "cost": _money(facts.get("cost")) if paid else None}
        for name, facts in found.items()
    }


def _money(cost: float | None) -> str | None:
    """Write what is only estimated, to the cent."""
    return None if cost is None else from_micro(round(round(cost), -4))
