"""Everybody who works."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from goldspan.campaign.judging import DECISION
from goldspan.money import from_micro
from goldspan.server.desk.standing import brief, standing
from goldspan.server.people import BAR

if TYPE_CHECKING:
    from goldspan.crowd import Crowd
    from goldspan.server.service import Service


def workers(service: Service) -> list[dict[str, Any]]:
    """Give everybody who works, those with most answers first."""
    live, barred = service.engine.live, service.ledger.standing()
    seconds = {} if live.crowd is None else median_seconds(live.crowd)
    whys, decided = service.ledger.records(BAR), _decisions(service)
    rows = []
    for name in {*barred, *service.people.all()}:
        found = live.workers.get(name)
        is_barred, word = barred.get(name, False), decided.get(name, "")
        opinion = "" if found is None else found["opinion"]
        rows.append({
            "worker": name,
            **_did(service, name),
            "verdict": None if found is None else _told(found),
            "barred": is_barred,
            "why": whys.get(name, {}).get("why", ""),
            "decided": word,
            "standing": standing(barred=is_barred, decided=word, opinion=opinion),
            "seconds": seconds.get(name),
        })  # fmt: skip
    return sorted(rows, key=lambda row: (-row["answers"], row["worker"]))


def _did(service: Service, worker: str) -> dict[str, Any]:
    """Give what a worker has done and earned."""
    person = service.people[worker]
    return {
        "answers": person.counting,
        "drafts": person.drafts,
        "earned": from_micro(person.earned) if service.setting.plan.is_paid else None,
        "control": {
            "answered": len(person.right),
            "right": sum(one.right for one in person.right),
            "total": sum(one.total for one in person.right),
            "unit": "texts" if service.setting.plan.is_single else "marked words",
        },
    }


def _told(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verdict of the rules on a worker, and what may be said and what it rests on."""
    names = ("verdict", "by", "measure", "mean", "low", "high", "judged", "known")
    return {**{name: found[name] for name in names}, "why": brief(found)}


def median_seconds(crowd: Crowd) -> dict[str, float]:
    """Give the median time of an answer by worker, where leases tell when it began."""
    answers = crowd.latest
    if answers.started is None or answers.submitted is None:
        return {}
    took, known = (answers.submitted - answers.started) / 1000, answers.started >= 0
    names, found = crowd.worker_ids.to_pylist(), {}
    for n, name in enumerate(names):
        mine = took[known & (answers.worker == n)]
        if len(mine):
            found[name] = round(float(np.median(mine)), 1)
    return found


def _decisions(service: Service) -> dict[str, str]:
    """Give the requester's last decision on every worker."""
    rows = service.ledger.records(DECISION).values()
    return {row["worker"]: row["verdict"] for row in rows}
