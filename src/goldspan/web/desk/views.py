"""What the requester's desk shows: overview, learning curve, workers, agreement, doubtful items."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.campaign.changes import VERSION, changes, pending, plan_in_force
from goldspan.campaign.clock import WallTimes
from goldspan.campaign.crowds import ENDED, HOUR
from goldspan.campaign.judging import DECISION
from goldspan.campaign.results import drawn_curve
from goldspan.errors import InputError
from goldspan.money import from_micro
from goldspan.web.ending import end
from goldspan.web.errors import Refused
from goldspan.web.people import BAR, DROP, GOLD, KEEP, TEST
from goldspan.web.security.secret import new_id
from goldspan.web.work import FLAG
from goldspan.workers.verdicts import UNCLEAR

if TYPE_CHECKING:
    from goldspan.aggregation import Consensus
    from goldspan.crowd import Crowd
    from goldspan.spans import Span
    from goldspan.store.places import Asked, Slot
    from goldspan.web.service import Service


# --------------------------------------------------------------------------------------------------
# Where a worker stands, in a word: the requester's decision, else what the answers show.


def standing(*, barred: bool, decided: str, opinion: str) -> str:
    """Return in a word where a worker stands.

    Args:
        barred: Whether the worker is asked nothing more.
        decided: The requester's last decision, "" for none.
        opinion: What is thought of the worker, see `goldspan.workers.verdicts`; "" for nothing.

    >>> standing(barred=True, decided="drop", opinion="reliable")
    'dropped'
    >>> standing(barred=False, decided="", opinion="agrees with the others")
    'agrees with the others'
    """
    if barred:
        return "dropped" if decided == DROP else "asked no more"
    said = {KEEP: "kept", TEST: "tested more"}.get(decided)
    return said or opinion or UNCLEAR


def brief(found: Mapping[str, Any]) -> str:
    """Return what may be said of a worker, and how many gold questions would settle it.

    Args:
        found: As `goldspan.campaign.judging.judge` gives it.

    >>> brief({"said": "right in 93 % (85–98 %) by known labels", "more": 0})
    'right in 93 % (85–98 %) by known labels'
    >>> brief({"said": "nothing to compare with yet", "more": None})
    'nothing to compare with yet; more than 1,000 gold questions would settle it'
    """
    if found["more"] == 0:
        return str(found["said"])
    amount = "more than 1,000" if found["more"] is None else f"about {found['more']}"
    questions = "question" if found["more"] == 1 else "questions"
    return f"{found['said']}; {amount} gold {questions} would settle it"


# --------------------------------------------------------------------------------------------------
# The learning curve as a page draws it: what was measured, the curve with its interval.


def learning(service: Service, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return points, curve, target and forecast, worked out once per round.

    Args:
        service: The campaign.
        rounds: The records of its rounds.
    """
    kept: tuple[int, Any] | None = service.__dict__.get("_learning")
    if kept is None or kept[0] != len(rounds):
        kept = len(rounds), drawn_curve(service.inputs.plan, rounds) if rounds else None
        service.__dict__["_learning"] = kept
    return {
        "points": [_point(one) for one in rounds if one["control"] or one["score"]],
        "curve": kept[1],
        "target": service.inputs.plan.stop.target,
        "forecast": _forecast(service),
    }


def _point(one: dict[str, Any]) -> dict[str, Any]:
    """Return a round's score, on items drawn at random where there are any."""
    score = one["control"] or one["score"]
    return {"items": one["items"], **{name: score[name] for name in ("value", "low", "high")}}


def _forecast(service: Service) -> dict[str, Any] | None:
    """Return where the curve leads, as the last round saw it, with money as decimal text.

    Where nobody is paid the cost is None, and `answers` tell what it takes.
    """
    stops = [one["facts"] for one in service.ledger.records("stop").values() if one["facts"]]
    if not stops:
        return None
    found = {name: stops[-1].get(name) for name in ("next", "to_target", "ask_again")}
    paid = service.inputs.plan.is_paid
    return {
        name: facts and {**facts, "cost": _money(facts.get("cost")) if paid else None}
        for name, facts in found.items()
    }


def _money(cost: float | None) -> str | None:
    """Write what is only estimated, to the cent."""
    return None if cost is None else from_micro(round(round(cost), -4))


# --------------------------------------------------------------------------------------------------
# How far a campaign is.


FACTS = ("items", "answers", "hours", "score", "control", "model", "stable")
"""What is shown of a round."""


def overview(service: Service) -> dict[str, Any]:
    """Return how far it is."""
    live, plan, ledger = service.engine.live, service.inputs.plan, service.ledger
    rounds = list(ledger.records("round").values())
    return {
        "campaign": service.inputs.key,
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
        "money": _money_spent(service),
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
        "guideline": service.ledger.count(VERSION),
        "changes": changes(service.ledger), "pending": pending(service.inputs, service.ledger),
    }  # fmt: skip


def _in_force(service: Service) -> dict[str, Any]:
    """Return the plan by which the campaign runs: before it begins, that of the file."""
    if service.ledger.count("plan"):
        return plan_in_force(service.ledger)
    return service.inputs.plan.model_dump(mode="json")


def trouble_of(service: Service) -> dict[str, str]:
    """Return what stops the loop and what to do about it; beside a server its file tells."""
    live, trouble = service.engine.live, service.engine.trouble
    if live.state == "starting" and trouble is not None:
        return trouble.read()
    return {"error": live.error, "advice": live.advice}


def state_of(service: Service) -> dict[str, str]:
    """Return what goes on, and why it ended; without a loop the ledger tells."""
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
    pool = service.inputs.pool.n_items - len(service.inputs.control)
    return {"pool": pool, "picked": _picked(service), "answered": _answered(service)}


def _answered(service: Service) -> int:
    """Count the items with answers; where no loop looks at them, the places tell."""
    crowd = service.engine.live.crowd
    if crowd is None:
        slots = service.ledger.slots()
        items = slots.filter(pc.greater(slots["filled"], 0))["item"]
    else:
        items = crowd.item_ids
    known = pc.is_in(items, value_set=pa.array(list(service.inputs.control), pa.string()))
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


def _money_spent(service: Service) -> dict[str, str] | None:
    """Return the money; bonuses are spent too, and stand with neither labels nor control.

    None where nobody is paid.
    """
    if not service.inputs.plan.is_paid:
        return None
    totals, control = service.ledger.totals(), _paid_for_control(service)
    earned = sum(person.earned for person in service.people.all().values())
    amounts = {
        "cap": totals.cap, "reserved": totals.reserved, "spent": totals.spent, "left": totals.left,
        "labels": max(0, earned - control), "control": control,
    }  # fmt: skip
    return {"currency": totals.currency, **{k: from_micro(v) for k, v in amounts.items()}}


def _paid_for_control(service: Service) -> int:
    """Return what answers to control questions cost, in millionths; their batch is the first."""
    inputs = service.inputs
    rows = service.ledger.page(limit=len(inputs.control)) if inputs.control else []
    return sum(
        row.filled * int(inputs.costs[inputs.pool.place[row.item]])
        for row in rows
        if row.item in inputs.control
    )


def _hours(service: Service) -> dict[str, float | None]:
    begin = next(iter(service.ledger.events())).time
    used, most = (service.clock() - begin) / HOUR, _in_force(service)["budget"]["hours"]
    return {"used": round(used, 3), "left": None if most is None else max(0.0, most - used)}


# --------------------------------------------------------------------------------------------------
# Everybody who works.


def workers(service: Service) -> list[dict[str, Any]]:
    """Return everybody who works, those with most answers first."""
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
    """Return what a worker has done and earned."""
    person = service.people[worker]
    return {
        "answers": person.counting,
        "drafts": person.drafts,
        "earned": from_micro(person.earned) if service.inputs.plan.is_paid else None,
        "control": {
            "answered": len(person.right),
            "right": sum(one.right for one in person.right),
            "total": sum(one.total for one in person.right),
            "unit": "texts" if service.inputs.plan.is_single else "marked words",
        },
    }


def _told(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verdict of the rules on a worker, and what may be said and what it rests on."""
    names = ("verdict", "by", "measure", "mean", "low", "high", "judged", "known")
    return {**{name: found[name] for name in names}, "why": brief(found)}


def median_seconds(crowd: Crowd) -> dict[str, float]:
    """Return the median time of an answer by worker, where leases tell when it began."""
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
    """Return the requester's last decision on every worker."""
    rows = service.ledger.records(DECISION).values()
    return {row["worker"]: row["verdict"] for row in rows}


# --------------------------------------------------------------------------------------------------
# How well the workers agree, worked out once for every state of the answers.


def agreement(service: Service) -> dict[str, Any]:
    """Return Krippendorff's alpha and more; null where there is too little."""
    crowd = service.engine.live.crowd
    if crowd is None or not crowd.n_items:
        return {"n_answers": 0, "measures": None}
    kept: tuple[Any, Any] | None = service.__dict__.get("_agreement")
    if kept is None or kept[0] is not crowd:
        kept = crowd, _measure(crowd)
        service.__dict__["_agreement"] = kept
    return {"n_answers": len(crowd.latest), "measures": kept[1]}


def _measure(crowd: Any) -> Any:
    from goldspan.crowd import agreement as measure

    try:
        return measure(crowd).to_dict()
    except InputError:
        return None


# --------------------------------------------------------------------------------------------------
# The items that were asked about, a page at a time, and all that is known of one.


STATES = ("all", "open", "done", "flagged", "gold")
MOST = 200
ROWS = 50
"""Answers, skips and reports each that a page about an item shows."""
BRIEF = 160
"""Characters of an item in a list."""
LIKELY = 8
"""Labels, or spans, that an item's alternatives name at most."""


def page(service: Service, after: str, find: str, state: str, limit: int) -> dict[str, Any]:
    """Return a page of the items.

    Args:
        service: The campaign.
        after: The id of the last item of the page before; "" for the first page.
        find: Only items whose words or id hold this, whatever the case.
        state: Only those that are "open", "done", "flagged" or "gold".
        limit: Most items of the page.

    Raises:
        Refused: There is no such state.
    """
    if state not in STATES:
        raise Refused("invalid", f"{state!r} is none of {', '.join(STATES)}.", 422)
    flagged, decided = flags(service), set(gold(service))
    names = {"flagged": set(flagged), "gold": decided}.get(state)
    limit = min(limit, MOST)
    places = state if state in {"open", "done"} else "all"
    rows = service.desk.finder.rows(after, find, names, places, limit + 1)
    made = _Rows(service, flagged, decided)
    found = made.brief(rows[:limit])
    return {"items": found, "more": len(rows) > limit, "total": service.ledger.n_slots}


def one(service: Service, item: str, page: int = 1) -> dict[str, Any]:
    """Return all that is known of an item, of what people did a page at a time.

    Args:
        service: The campaign.
        item: The item.
        page: Which page of its answers, skips and reports; the first is 1.

    Raises:
        Refused: There is no such item.
    """
    number_of(service, item)
    inputs, live = service.inputs, service.engine.live
    single = inputs.plan.is_single
    answers, skipped = service.ledger.given(item), service.ledger.skipped(item)
    wall, reports = WallTimes(service.ledger), flags(service).get(item, [])
    longest = max(len(answers), len(skipped), len(reports), 1)
    shown = slice((page - 1) * ROWS, page * ROWS)
    return {
        "item": item,
        "kind": "single" if single else "spans",
        **service.work.tasks.shown(item),
        "control": item in inputs.control,
        "gold": shown_labels(service, gold(service).get(item)),
        "known": shown_labels(service, inputs.control.get(item)),
        "answers": [
            {
                "worker": row.worker,
                "status": "replaced" if row.is_replaced else row.status, "counts": row.counts,
                "paid": from_micro(row.cost) if service.inputs.plan.is_paid else None,
                "submitted": wall(row.submitted),
                "seconds": None if row.started < 0 else (row.submitted - row.started) / 1000,
                "labels": shown_labels(service, row.labels),
            }
            for row in answers[shown]
        ],
        "found": found_labels(live.result, item),
        "skipped": [
            {"worker": row.worker, "reason": row.reason} for row in skipped[shown]
        ],
        "flags": reports[shown],
        "n_answers": len(answers), "n_skipped": len(skipped), "n_flags": len(reports),
        "page": page, "pages": -(-longest // ROWS),
    }  # fmt: skip


def number_of(service: Service, item: str) -> int:
    """Return the number of an item in the pool.

    Raises:
        Refused: There is no such item.
    """
    number = service.inputs.pool.place.get(item)
    if number is None:
        raise Refused("unknown", f"There is no item {item!r} in the pool.", 404)
    return number


def flags(service: Service) -> dict[str, list[dict[str, str]]]:
    """Return what workers said is wrong, by item."""
    found: dict[str, list[dict[str, str]]] = {}
    for row in service.ledger.records(FLAG).values():
        said = {name: row[name] for name in ("worker", "reason", "note")}
        found.setdefault(row["item"], []).append(said)
    return found


def gold(service: Service) -> dict[str, list[str]]:
    """Return the labels that the requester decided, by item, the last decision of each."""
    return {row["item"]: row["labels"] for row in service.ledger.records(GOLD).values()}


def shown_labels(service: Service, labels: Any) -> Any:
    """Return labels as a page shows them: spans, or one label; None where there are none."""
    if labels is None:
        return None
    if service.inputs.plan.is_single:
        return labels[0]
    return service.work.tasks.spans([label or "O" for label in labels])


def found_labels(result: Consensus | None, item: str) -> dict[str, Any] | None:
    """Return what the answers say together: labels with their confidence, and alternatives."""
    (n,) = places(result, [item])
    if result is None or n is None:
        return None
    if result.crowd.is_classification and result.codes[n] < 0:  # nobody answered
        return None
    return found_at(result, n)


def found_at(result: Consensus, n: int) -> dict[str, Any]:
    """Return what the answers to an item of a result say together."""
    made: dict[str, Any] = {"confidence": round(float(result.confidence[n]), 4)}
    begin, end = result.crowd.offsets[n : n + 2].tolist()
    made["tokens"] = [round(one, 3) for one in result.token_confidence[begin:end].tolist()]
    if result.crowd.is_classification:
        probs = result.token_probs[n]
        order = np.argsort(-probs, kind="stable")[:LIKELY].tolist()
        made["label"] = result.labels[n]
        made["alternatives"] = [
            {"label": result.tagset.tags[code], "confidence": round(float(probs[code]), 4)}
            for code in order
        ]
        return made
    mine = np.flatnonzero(result.span_array.item == n).tolist()
    rows = result.spans.take(pa.array(mine, pa.int64())).to_pylist()
    names = ("start", "end", "type", "confidence")
    made["spans"] = [{name: _plain(row[name]) for name in names} for row in rows]
    made["alternatives"] = []
    if result.posterior is not None:
        found = result.alternatives(result.crowd.item_ids[n].as_py())
        made["alternatives"] = [
            {name: _plain(getattr(s, name)) for name in names} for s in found[:LIKELY]
        ]
    return made


def places(result: Consensus | None, items: Sequence[str]) -> list[int | None]:
    """Return the numbers of items in a result, None for those without an answer."""
    if result is None:
        return [None] * len(items)
    found = pc.index_in(pa.array(items, pa.string()), value_set=result.crowd.item_ids)
    return list(found.to_pylist())


def _plain(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


@dataclass(frozen=True)
class _Rows:
    """Makes the rows of a page."""

    service: Service
    flagged: dict[str, list[dict[str, str]]]
    decided: set[str]

    def brief(self, slots: Sequence[Slot]) -> list[dict[str, Any]]:
        """Return items in short."""
        result = self.service.engine.live.result
        numbers = places(result, [slot.item for slot in slots])
        sure = [None if result is None or n is None else result.confidence[n] for n in numbers]
        return [self._brief(slot, one) for slot, one in zip(slots, sure, strict=True)]

    def _brief(self, slot: Slot, sure: float | None) -> dict[str, Any]:
        item = slot.item
        text = self.service.work.tasks.text(item)
        return {
            "item": item,
            "text": text if len(text) <= BRIEF else f"{text[:BRIEF]}…",
            "batch": slot.batch,
            "wanted": slot.wanted,
            "answers": slot.filled,
            "leased": slot.leased,
            "state": "done" if slot.filled >= slot.wanted else "open",
            "confidence": None if sure is None else round(float(sure), 4),
            "control": item in self.service.inputs.control,
            "flags": len(self.flagged.get(item, ())),
            "gold": item in self.decided,
        }


# --------------------------------------------------------------------------------------------------
# The items whose labels are least certain: what a requester's minute is worth most on.


def doubts(service: Service, limit: int) -> list[dict[str, Any]]:
    """Return the least certain items, those decided and control questions aside."""
    result = service.engine.live.result
    if result is None:
        return []
    settled = {*gold(service), *service.inputs.control}
    bounds = result.crowd.by_item.bounds
    counts = bounds[1:] - bounds[:-1]
    found: list[dict[str, Any]] = []
    for n in np.argsort(result.confidence, kind="stable").tolist():
        if len(found) == min(limit, MOST):
            break
        item = result.crowd.item_ids[n].as_py()
        if item in settled:
            continue
        found.append({
            "item": item,
            **service.work.tasks.shown(item),
            "found": found_at(result, n),
            "answers": int(counts[n]),
        })  # fmt: skip
    return found


# --------------------------------------------------------------------------------------------------
# Finding items among those that were asked about: by their words, by their names, by their state.


FEW, MANY = 200, 10_000
"""Items that are looked up at first, and most at once."""


class Finder:
    """Finds items; safe to use from several threads.

    Args:
        service: The campaign.
    """

    def __init__(self, service: Service) -> None:
        self.service, self._lock = service, threading.Lock()
        self._words = pa.chunked_array([], pa.string())

    def rows(
        self, after: str, find: str, names: Collection[str] | None, state: str, limit: int
    ) -> list[Slot]:
        """Return the first items behind another that fit.

        Args:
            after: Id of the other; "", or the id of none: all items.
            find: What their ids or texts hold, whatever the case; "" for all.
            names: Only these; None for all.
            state: "all", "open" or "done".
            limit: Most items.
        """
        ledger, word = self.service.ledger, find.casefold()
        behind = ledger.position(after) if after else None
        begin = -1 if behind is None else behind
        if not word and names is None:
            return ledger.page(begin, state, limit)
        parts = _parts(self._fitting(begin, word, names), limit)
        rows = (row for part in parts for row in ledger.page(begin, state, len(part), part))
        return list(islice((row for row in rows if self._holds(row.item, word)), limit))

    def _fitting(self, begin: int, word: str, names: Collection[str] | None) -> NDArray[np.int64]:
        """Return the numbers of the items behind a position that may fit, in order."""
        asked = self.service.ledger.asked()
        fits = asked.position > begin
        if names is not None:
            fits &= _mask(pc.is_in(asked.item, pa.array(sorted(names), pa.string())))
        if word:
            fits &= _mask(pc.match_substring(self._words_of(asked), word))
        return asked.number[fits]

    def _words_of(self, asked: Asked) -> pa.ChunkedArray:
        """Return the words of items: those that were asked about since are read."""
        with self._lock:
            new = asked.item.slice(len(self._words)).to_pylist()
            if new:
                words = pa.array([self._words_in(item) for item in new], pa.string())
                self._words = pa.chunked_array([*self._words.chunks, words])
            return self._words.slice(0, len(asked))

    def _words_in(self, item: str) -> str:
        """Return all that an item may be found by."""
        return f"{item}\n{self.service.work.tasks.text(item)}".casefold()

    def _holds(self, item: str, word: str) -> bool:
        """Whether an item's id or its whole text holds a word."""
        if not word or word in item.casefold():
            return True
        return word in self.service.work.tasks.text(item).casefold()


def _mask(found: Any) -> NDArray[np.bool_]:
    """Take a column of truth values."""
    return np.asarray(found, np.bool_)


def _parts(numbers: NDArray[np.int64], limit: int) -> Iterator[list[int]]:
    """Cut numbers into parts that grow: mostly the first one fills a page."""
    start, size = 0, max(limit, FEW)
    while start < len(numbers):
        yield numbers[start : start + size].tolist()
        start, size = start + size, min(2 * size, MANY)


# --------------------------------------------------------------------------------------------------
# What the requester decides; every decision is kept in the log before it acts.


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
    if item in service.inputs.control:
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
    if verdict == TEST and not service.inputs.control:
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
