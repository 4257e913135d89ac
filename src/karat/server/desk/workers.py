"""Everybody who works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from karat.campaign.judging import DECISION
from karat.money import from_micro
from karat.server.people import BAR

if TYPE_CHECKING:
    from karat.crowd import Crowd
    from karat.server.service import Service


def workers(service: Service) -> list[dict[str, Any]]:
    """Give everybody who works, those with most answers first."""
    live, standing = service.engine.live, service.ledger.standing()
    seconds = {} if live.crowd is None else median_seconds(live.crowd)
    barred, decided = service.ledger.records(BAR), _decisions(service)
    known = service.people.all()
    rows = []
    for name in {*standing, *known}:
        person = service.people[name]
        tests = person.right
        rows.append({
            "worker": name,
            "answers": person.counting,
            "drafts": person.drafts,
            "earned": from_micro(person.earned),
            "control": {
                "answered": len(tests),
                "right": sum(one.right for one in tests),
                "total": sum(one.total for one in tests),
            },
            "verdict": dict(live.workers.get(name, {})) or None,
            "barred": standing.get(name, False),
            "why": barred.get(name, {}).get("why", ""),
            "decided": decided.get(name, ""),
            "seconds": seconds.get(name),
        })  # fmt: skip
    return sorted(rows, key=lambda row: (-row["answers"], row["worker"]))


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
