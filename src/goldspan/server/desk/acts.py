"""What the requester decides; every decision is kept in the log before it acts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from goldspan.campaign.judging import DECISION
from goldspan.server.desk.items import number_of, shown_labels
from goldspan.server.desk.overview import state_of
from goldspan.server.ending import end
from goldspan.server.errors import Refused
from goldspan.server.people import DROP, GOLD, KEEP, TEST
from goldspan.server.security.tokens import new_id

if TYPE_CHECKING:
    from goldspan.server.service import Service
    from goldspan.spans import Span

VERDICTS = (KEEP, DROP, TEST)
QUESTIONS = 5
"""Control questions that "test" asks more."""
ENDING, OVER = "ending", "ended"


def adjudicate(service: Service, item: str, answer: Sequence[Span] | str) -> dict[str, Any]:
    """Keep the labels of an item as gold.

    Raises:
        Refused: There is no such item, it is a control question, or the labels do not fit it.
    """
    number_of(service, item)
    if item in service.setting.control:
        raise Refused("invalid", "The labels of a control question stand in the plan's file.", 422)
    labels = service.work.tasks.labels(item, answer)
    now, ledger = service.clock(), service.ledger
    ledger.record(GOLD, new_id(), {"item": item, "labels": labels}, now)
    ledger.set_gold({item: labels}, now)
    service.engine.look_again()
    return {"item": item, "gold": shown_labels(service, labels)}


def judge(service: Service, worker: str, verdict: str, why: str) -> dict[str, Any]:
    """Keep, drop or test a worker.

    Raises:
        Refused: There is no such worker or verdict, or there are no control questions.
    """
    if verdict not in VERDICTS:
        raise Refused("invalid", f"{verdict!r} is none of {', '.join(VERDICTS)}.", 422)
    if worker not in service.ledger.standing():
        raise Refused("unknown", f"There is no worker {worker!r} here yet.", 404)
    if verdict == TEST and not service.setting.control:
        raise Refused("invalid", "The plan has no control questions to ask.", 422)
    now, ledger = service.clock(), service.ledger
    body: dict[str, Any] = {"worker": worker, "verdict": verdict, "why": why}
    body["questions"] = QUESTIONS if verdict == TEST else 0
    ledger.record(DECISION, new_id(), body, now)
    ledger.bar(worker, now, barred=verdict == DROP)
    service.engine.notify()
    return body


def pause(service: Service, *, paused: bool) -> dict[str, Any]:
    """Hand out no new tasks, or again.

    Raises:
        Refused: The campaign ends, or has ended.
    """
    _check_goes_on(service, "be paused" if paused else "be resumed", {ENDING, OVER})
    service.ledger.pause(service.clock(), paused=paused)
    service.engine.notify()
    return {"paused": paused}


def stop(service: Service) -> dict[str, Any]:
    """End the campaign; until its loop has done so, nobody gets a new task.

    Raises:
        Refused: It has ended.
    """
    _check_goes_on(service, "be stopped", {OVER})
    service.ledger.pause(service.clock(), paused=True)
    end(service.ledger, service.clock())
    service.engine.notify()
    return {"ended": True}


def _check_goes_on(service: Service, what: str, over: set[str]) -> None:
    found = state_of(service)
    if found["state"] in over:
        is_over = "has ended" if found["state"] == OVER else "is ending"
        raise Refused("gone", f"The campaign {is_over} ({found['why']}): it cannot {what}.", 410)
