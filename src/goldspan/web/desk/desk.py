"""The requester's desk, without HTTP: progress, workers, items, and what the requester decides.

Every method returns one of the typed views of `goldspan.web.desk.models`. What takes long is
computed by the loop's thread (`goldspan.web.engine`), and read here: a page of a pool of a million
items takes no longer than one of ten. Views that need its labels are made in the process that runs
it (`by_labels`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial, update_wrapper
from itertools import islice
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.aggregation import Consensus
from goldspan.aggregation.layered import Joint
from goldspan.campaign.auditing import DRAW, USUAL, draw
from goldspan.campaign.changes import VERSION, changes, pending, plan_in_force
from goldspan.campaign.clock import WallTimes
from goldspan.campaign.crowds import ENDED, HOUR
from goldspan.campaign.inputs import CampaignInputs
from goldspan.campaign.judging import DECISION
from goldspan.campaign.results import drawn_curve, last_warnings
from goldspan.crowd import Crowd
from goldspan.crowd.layers import asks_each, whole_ids
from goldspan.crowd.model import YES
from goldspan.crowd.questions import shown_span
from goldspan.errors import InputError
from goldspan.money import from_micro
from goldspan.spans.parts import part_span
from goldspan.store import SqlLedger, assignments
from goldspan.store.answers import Labels
from goldspan.store.facts import record, set_gold
from goldspan.store.journal import Entry
from goldspan.store.queries import Asked, Slot, read_records
from goldspan.web.desk import models as m
from goldspan.web.desk.audit import Checking
from goldspan.web.desk.downloads import Download, Downloads, Pseudonyms, Report, people_of
from goldspan.web.desk.models import FoundLabel, FoundSpan, FoundSpans, LabelChoice
from goldspan.web.engine import Engine, Watcher, end
from goldspan.web.errors import Refused
from goldspan.web.models import Given
from goldspan.web.people import BAR, DROP, GOLD, KEEP, TEST, People, decided_labels
from goldspan.web.settings import Keys, new_id
from goldspan.web.work import FLAG, Tasks, earned
from goldspan.workers import choose_gold_questions
from goldspan.workers.verdicts import UNCLEAR

# --------------------------------------------------------------------------------------------------
# Items of the desk: found by text or id, with filters, page by page.


FEW, MANY = 200, 10_000
"""Items that are looked up at first, and most at once."""
Place = tuple[int, int, str]
"""A span: start, end and type."""
LIKELY = 16
"""Least certain alternatives of an item that are named, with all that overlap them."""


class ItemSearch:
    """Searches items by text, id and state; safe to use from several threads."""

    def __init__(self, ledger: SqlLedger, tasks: Tasks) -> None:
        self._ledger, self._tasks, self._lock = ledger, tasks, threading.Lock()
        self._texts = pa.chunked_array([], pa.string())

    def rows(
        self, after: str, find: str, names: Collection[str] | None, state: str, limit: int
    ) -> list[Slot]:
        """Return the first matching items after another one."""
        ledger, word = self._ledger, find.casefold()
        position = ledger.position(after) if after else None
        begin = -1 if position is None else position
        if not word and names is None:
            return ledger.page(begin, state, limit)
        parts = _parts(self._candidates(begin, word, names), limit)
        rows = (row for part in parts for row in ledger.page(begin, state, len(part), part))
        return list(islice((row for row in rows if self._contains(row.item, word)), limit))

    def _candidates(
        self, begin: int, word: str, names: Collection[str] | None
    ) -> NDArray[np.int64]:
        """Return the numbers of the items after a position that may match, in order."""
        asked = self._ledger.asked()
        fits = asked.position > begin
        if names is not None:
            fits &= _mask(pc.is_in(asked.item, pa.array(sorted(names), pa.string())))
        if word:
            fits &= _mask(pc.match_substring(self._texts_of(asked), word))
        return asked.number[fits]

    def _texts_of(self, asked: Asked) -> pa.ChunkedArray:
        """Return id and text of the items; those that were asked about since are added."""
        with self._lock:
            new = asked.item.slice(len(self._texts)).to_pylist()
            if new:
                texts = [f"{item}\n{self._tasks.text(item)}".casefold() for item in new]
                more = pa.array(texts, pa.string())
                self._texts = pa.chunked_array([*self._texts.chunks, more])
            return self._texts.slice(0, len(asked))

    def _contains(self, item: str, word: str) -> bool:
        """Whether an item's id or text contains a word: both together may without either doing."""
        if not word or word in item.casefold():
            return True
        return word in self._tasks.text(item).casefold()


def _mask(found: Any) -> NDArray[np.bool_]:
    return np.asarray(found, np.bool_)


def _parts(numbers: NDArray[np.int64], limit: int) -> Iterator[list[int]]:
    """Cut numbers into growing parts: mostly the first one fills a page."""
    start, size = 0, max(limit, FEW)
    while start < len(numbers):
        yield numbers[start : start + size].tolist()
        start, size = start + size, min(2 * size, MANY)


def positions(result: Consensus | None, items: Sequence[str]) -> list[int | None]:
    """Return the positions of items in a result, None for those without an answer."""
    if result is None:
        return [None] * len(items)
    found = pc.index_in(pa.array(items, pa.string()), value_set=result.crowd.item_ids)
    return list(found.to_pylist())


def found_labels(result: Consensus | None, item: str, tasks: Tasks) -> m.Found | None:
    """Return the consensus on an item with its confidence; None without answers."""
    (n,) = positions(result, [item])
    if result is None or n is None:
        return None
    if result.crowd.is_classification and result.codes[n] < 0:  # nobody answered
        return None
    return found_at(result, n, tasks)


def found_at(result: Consensus, n: int, tasks: Tasks) -> m.Found:
    """Return the consensus on the item at a position of a result."""
    if not isinstance(result, Joint):
        return _found(result, [n], tasks)
    each = {}
    for name, one in result.layers.items():
        parts = np.flatnonzero(result.parts[name] == n).tolist()
        if (one.codes[one.crowd.offsets[parts]] >= 0).any():
            each[name] = _found(one, parts, tasks)
    return m.FoundLayers(confidence=round(float(result.confidence[n]), 4), layers=each)


def _found(result: Consensus, parts: Sequence[int], tasks: Tasks) -> m.FoundOne:
    """Return the consensus on the item whose parts are at positions of a result."""
    crowd, n = result.crowd, parts[0]
    confidence = round(float(np.prod(result.confidence[parts])), 4)
    bounds = [slice(*crowd.offsets[part : part + 2].tolist()) for part in parts]
    sure = np.min([result.token_confidence[place] for place in bounds], axis=0)
    tokens = [round(one, 3) for one in sure.tolist()]
    if asks_each(crowd):
        return _found_set(result, parts, confidence)
    if crowd.is_classification:
        probs = result.token_probs[n]
        order = np.argsort(-probs, kind="stable")[:LIKELY].tolist()
        choices = [
            LabelChoice(label=result.tagset.tags[code], confidence=round(float(probs[code]), 4))
            for code in order
        ]
        return FoundLabel(
            confidence=confidence, tokens=tokens, label=result.labels[n], alternatives=choices
        )
    found, spans, others = result.span_array, dict[Place, float](), dict[Place, float]()
    for part, place in zip(parts, bounds, strict=True):
        for i in np.flatnonzero(found.item == part).tolist():
            start, end = int(found.start[i]) - place.start, int(found.end[i]) - place.start
            where = start, end, result.tagset.types[found.type[i]]
            spans[where] = max(spans.get(where, 0), float(result.span_confidence[i]))
        every = [] if result.posterior is None else result.alternatives(part)
        unsure = sorted(every, key=lambda one: abs(one.confidence - 0.5))[:LIKELY]
        for one in every:
            if any(one.start < other.end and other.start < one.end for other in unsure):
                others[one[:3]] = max(others.get(one[:3], 0), one.confidence)
    # What annotators cut is shown within the tokens of the pool.
    places = [(at, 0) for at in range(len(tokens))]
    if crowd.token_start is not None:
        starts = crowd.token_start[bounds[0]].tolist()
        places = tasks.places(whole_ids(crowd)[n].as_py(), starts)
    least = [1.0] * (places[-1][0] + 1 if places else 0)
    for (at, _), one in zip(places, tokens, strict=True):
        least[at] = min(least[at], one)
    places.append((len(least), 0))

    def shown(every: Iterable[tuple[Place, float]]) -> list[FoundSpan]:
        return [
            FoundSpan(
                **shown_span(part_span(kind, places[start], places[stop])),
                confidence=round(float(sure), 4),
            )
            for (start, stop, kind), sure in every
        ]

    by_place = sorted(spans.items(), key=lambda one: (one[0][0], -one[0][1], one[0][2]))
    likeliest = sorted(others.items(), key=lambda one: -one[1])
    return FoundSpans(
        confidence=confidence, tokens=least, spans=shown(by_place), alternatives=shown(likeliest)
    )


def _found_set(result: Consensus, parts: Sequence[int], confidence: float) -> m.FoundSet:
    """Return the consensus on an item with any number of labels, each of them a part."""
    names, yes = result.crowd.parts, result.tagset.index[YES]
    assert names is not None
    choices = [
        LabelChoice(label=names[n].as_py(), confidence=round(float(result.token_probs[n, yes]), 4))
        for n in parts
    ]
    return m.FoundSet(
        confidence=confidence,
        labels=[names[n].as_py() for n in parts if result.codes[n] == yes],
        alternatives=sorted(choices, key=lambda one: -one.confidence),
    )


def _unsure(result: Consensus | None, n: int | None) -> str | None:
    """Return the least certain of several layers of an item, None where all are certain."""
    sure = result.sure if isinstance(result, Joint) and n is not None else {}
    doubts = {name: one[n] for name, one in sure.items() if one[n] < 1}
    return min(doubts, key=doubts.__getitem__, default=None)


# --------------------------------------------------------------------------------------------------
# The desk.


STATES = ("all", "open", "done", "flagged", "gold")
MOST = 200
"""Most items of a page."""
ROWS = 50
"""Answers, skips and reports each that a page about an item shows."""
UNITS = {"spans": "marked words", "single": "texts", "layers": "labels"}
"""What is counted in answers to gold questions, by the kind of the task."""
BRIEF = 160
"""Characters of an item in a list."""
VERDICTS = (KEEP, DROP, TEST)
QUESTIONS = 5
"""Gold questions that "test" asks in addition."""
ENDING, OVER = "ending", "ended"
DECIDED = "This item has been decided meanwhile. Reload the page for the items that are left."


def _no_such_item(item: str) -> Refused:
    return Refused("unknown", f"There is no item {item!r} in the pool.", 404)


P = ParamSpec("P")
View = TypeVar("View")


def by_labels(
    make: Callable[Concatenate[Desk, P], View],
) -> Callable[Concatenate[Desk, P], View]:
    """Let a method that needs the loop's answers and labels run in the loop's process.

    Whatever reads `engine.live.crowd`, `.result` or `.workers` is marked by it.
    """

    def act(desk: Desk, /, *args: P.args, **kwargs: P.kwargs) -> View:
        ask = desk.engine.ask
        if ask is None:
            return make(desk, *args, **kwargs)
        made: View = ask(make.__name__, args, kwargs)
        return made

    update_wrapper(act, make)
    return act


class Desk:
    """What the requester sees and does."""

    def __init__(
        self,
        inputs: CampaignInputs,
        ledger: SqlLedger,
        people: People,
        engine: Engine | Watcher,
        tasks: Tasks,
        clock: Callable[[], int],
        keys: Keys,
        report: Report | None = None,
    ) -> None:
        self.inputs, self.ledger, self.people, self.engine = inputs, ledger, people, engine
        self.tasks, self.clock = tasks, clock
        self.search = ItemSearch(ledger, tasks)
        self.checking = Checking(ledger, engine, tasks, clock)
        known = partial(people_of, ledger) if ledger.is_private else None
        self.names = Pseudonyms(keys, inputs.key, known)
        self.downloads = Downloads(inputs, ledger, engine, self.names, clock, report)
        # Computed once per round, once per round, and once per crowd.
        self._curve: tuple[int, Any] = (0, None)
        self._n_picked = (0, 0)
        self._agreement: tuple[Crowd | None, dict[str, Any]] = (None, {})

    def mark(self) -> tuple[int, int]:
        """Return what grows with every change of what the desk shows."""
        return self.engine.live.version, self.ledger.n_events

    # ----------------------------------------------------------------------------------------------
    # Progress of the campaign

    def overview(self) -> m.Overview:
        """Return the progress: state, money, time, rounds, learning curve, plan."""
        live, plan = self.engine.live, self.inputs.plan
        rounds = list(self.ledger.records("round").values())
        trouble = self._trouble()
        state, why = self._state()
        return m.Overview(
            campaign=self.inputs.key,
            title=plan.page.title or plan.name,
            kind=plan.kind,
            version=live.version,
            state=state,  # type: ignore[arg-type]
            why=why,
            error=trouble["error"],
            advice=trouble["advice"],
            waiting=None if live.waiting is None else m.Awaited(
                answers=live.waiting.answers, items=live.waiting.items
            ),
            items=self.item_counts(),
            answers=self.answer_counts(),
            money=self.money(),
            hours=self._hours(),
            rounds=[_round(number, one) for number, one in enumerate(rounds, 1)],
            certificate=live.certificate,
            confidence=live.confidence,
            learning=self.learning(rounds),
            flags=self.ledger.count(FLAG),
            warnings=last_warnings(rounds),
            plan=self._plan(),
        )  # fmt: skip

    def learning(self, rounds: Sequence[Mapping[str, Any]]) -> m.Learning:
        """Return points, curve, target and forecast."""
        if self._curve[0] != len(rounds):
            drawn = drawn_curve(self.inputs.plan, rounds) if rounds else None
            self._curve = len(rounds), drawn
        return m.Learning(
            points=[_point(one) for one in rounds if one["control"] or one["score"]],
            curve=self._curve[1] if rounds else None,
            target=self.inputs.plan.stop.target,
            forecast=self._forecast(),
        )

    def item_counts(self) -> m.ItemCounts:
        """Count the items to label, without gold questions."""
        pool = self.inputs.pool.n_items - len(self.inputs.control)
        return m.ItemCounts(pool=pool, picked=self._picked(), answered=self._answered())

    def answer_counts(self) -> m.AnswerCounts:
        """Count the answers."""
        people = self.people.all().values()
        return m.AnswerCounts(
            counting=sum(person.counting for person in people),
            control=sum(len(person.control) for person in people),
            drafts=sum(person.drafts for person in people),
            workers=sum(person.counting > 0 for person in people),
        )

    def money(self) -> m.Money | None:
        """Return the money; None where nobody is paid.

        Bonuses and checks are part of what is spent, but neither of `labels` nor of `control`.
        """
        if not self.inputs.plan.is_paid:
            return None
        totals, control = self.ledger.totals(), self._paid_for_control()
        earned = sum(person.earned for person in self.people.all().values())
        amounts = {
            "cap": totals.cap, "reserved": totals.reserved, "spent": totals.spent,
            "left": totals.left, "labels": max(0, earned - control), "control": control,
        }  # fmt: skip
        texts = {name: from_micro(micro) for name, micro in amounts.items()}
        return m.Money(currency=totals.currency, **texts)

    def _state(self) -> tuple[str, str]:
        """Return the state, and why the campaign ended; without a loop the ledger tells."""
        live, stops = self.engine.live, list(self.ledger.records("stop").values())
        state, why = live.state, "" if live.decision is None else live.decision.why
        if self._trouble()["error"]:
            return "failed", ""
        if state == "starting" and stops and stops[-1]["stop"]:
            state, why = "ended", stops[-1]["why"]
        elif state == "starting" and self.ledger.count("picks"):
            state = "waiting"
        if live.waiting is not None and not live.waiting.answers:
            why = "it waits for checks"
        if state != "ended" and self.ledger.count(ENDED):
            state, why = "ending", "the requester ended it"
        elif state in {"starting", "waiting", "working"} and self.ledger.is_paused:
            state = "paused"
        return state, why

    def _trouble(self) -> dict[str, str]:
        """Return what stops the loop and what to do; beside a server its file tells."""
        live, trouble = self.engine.live, self.engine.trouble
        if live.state == "starting" and trouble is not None:
            return trouble.read()
        return {"error": live.error, "advice": live.advice}

    def _plan(self) -> m.PlanNow:
        limits = self._in_force()
        return m.PlanNow(
            budget=limits["budget"],
            stop=limits["stop"],
            guideline=self.ledger.count(VERSION),
            changes=changes(self.ledger),
            pending=pending(self.inputs, self.ledger),
        )

    def _in_force(self) -> dict[str, Any]:
        """Return the plan by which the campaign runs: before it begins, that of the file."""
        if self.ledger.count("plan"):
            return plan_in_force(self.ledger)
        return self.inputs.plan.model_dump(mode="json")

    def _forecast(self) -> dict[str, dict[str, Any] | None] | None:
        """Return where the curve leads, as the last round saw it; without costs in unpaid work."""
        stops = [one["facts"] for one in self.ledger.records("stop").values() if one["facts"]]
        if not stops:
            return None
        found = {name: stops[-1].get(name) for name in ("next", "end", "ask_again")}
        paid, end = self.inputs.plan.is_paid, found["end"]
        found["end"] = end and {"text": end["text"]}
        return {
            name: facts and {**facts, "cost": _to_cents(facts.get("cost")) if paid else None}
            for name, facts in found.items()
        }

    def _answered(self) -> int:
        """Count the items with an answer, without gold questions."""
        known = self.engine.live.n_labelled
        if known is not None:
            return known
        slots = self.ledger.slots()
        items = slots.filter(pc.greater(slots["filled"], 0))["item"]
        control = pa.array(list(self.inputs.control), pa.string())
        return len(items) - int(pc.sum(pc.is_in(items, value_set=control)).as_py() or 0)

    def _picked(self) -> int:
        """Count the items of all rounds; the lists are long, and read once per round."""
        if self._n_picked[0] != self.ledger.count("picks"):
            picks = self.ledger.records("picks").values()
            self._n_picked = len(picks), sum(len(one["items"]) for one in picks)
        return self._n_picked[1]

    def _paid_for_control(self) -> int:
        """Return what answers to gold questions cost, in millionths; they are the first batch."""
        inputs = self.inputs
        rows = self.ledger.page(limit=len(inputs.control)) if inputs.control else []
        return sum(
            row.filled * int(inputs.costs[inputs.pool.place[row.item]])
            for row in rows
            if row.item in inputs.control
        )

    def _hours(self) -> m.Hours:
        begin = next(iter(self.ledger.events())).time
        used, most = (self.clock() - begin) / HOUR, self._in_force()["budget"]["hours"]
        return m.Hours(used=round(used, 3), left=None if most is None else max(0.0, most - used))

    # ----------------------------------------------------------------------------------------------
    # Workers, and how well they agree

    @by_labels
    def workers(self) -> list[m.Worker]:
        """Return every worker: answers, money, verdict; those with most answers first."""
        live, plan, barred = self.engine.live, self.inputs.plan, self.ledger.standing()
        seconds = {} if live.crowd is None else median_seconds(live.crowd)
        whys = self.ledger.records(BAR)
        decisions = self.ledger.records(DECISION).values()
        decided = {row["worker"]: row["verdict"] for row in decisions}
        rows = []
        for name in {*barred, *self.people.all()}:
            person, found = self.people[name], live.workers.get(name)
            by_hand, is_barred = decided.get(name, ""), barred.get(name, False)
            opinion = "" if found is None else found["opinion"]
            row = m.Worker(
                worker=name,
                answers=person.counting,
                drafts=person.drafts,
                earned=earned(plan, name, person.earned),
                control=m.Control(
                    answered=len(person.right),
                    right=sum(one.right for one in person.right),
                    total=sum(one.total for one in person.right),
                    unit=UNITS[plan.kind],
                ),
                verdict=None if found is None else _verdict(found),
                barred=is_barred,
                why=whys.get(name, {}).get("why", ""),
                decided=by_hand,
                standing=standing(barred=is_barred, decided=by_hand, opinion=opinion),
                seconds=seconds.get(name),
            )
            rows.append(row)
        return sorted(rows, key=lambda row: (-row.answers, row.worker))

    @by_labels
    def agreement(self) -> m.Agreement:
        """Return Krippendorff's alpha and more; no measures where there are too few answers."""
        crowd, result = self.engine.live.crowd, self.engine.live.result
        if crowd is None or not len(crowd.latest):
            return m.Agreement(n_answers=0, measures=None)
        if self._agreement[0] is not crowd:
            found: dict[str, Any] = {"measures": None}
            if isinstance(result, Joint):
                found["layers"] = {n: _measure(one.crowd) for n, one in result.layers.items()}
            else:
                found["measures"] = _measure(crowd)
            self._agreement = crowd, found
        return m.Agreement(n_answers=len(crowd.latest), **self._agreement[1])

    # ----------------------------------------------------------------------------------------------
    # Items

    @by_labels
    def items(
        self, after: str = "", find: str = "", state: str = "all", limit: int = 50
    ) -> m.ItemPage:
        """Return a page of the items that were asked about, in their order."""
        if state not in STATES:
            raise Refused("invalid", f"{state!r} is not one of {', '.join(STATES)}.", 422)
        flags, decided = self._flags(), self.gold_labels()
        names = list(flags) if state == "flagged" else list(decided) if state == "gold" else None
        limit = min(limit, MOST)
        places = state if state in {"open", "done"} else "all"
        slots = self.search.rows(after, find, names, places, limit + 1)
        shown = slots[:limit]
        result = self.engine.live.result
        numbers = positions(result, [slot.item for slot in shown])
        rows = [
            self._row(
                slot, None if result is None or n is None else float(result.confidence[n]),
                unsure=_unsure(result, n),
                n_flags=len(flags.get(slot.item, ())), is_gold=slot.item in decided,
            )
            for slot, n in zip(shown, numbers, strict=True)
        ]  # fmt: skip
        return m.ItemPage(items=rows, more=len(slots) > limit, total=self.ledger.n_slots)

    def _row(
        self, slot: Slot, confidence: float | None, *, unsure: str | None, n_flags: int,
        is_gold: bool,
    ) -> m.ItemRow:  # fmt: skip
        text = self.tasks.text(slot.item)
        return m.ItemRow(
            item=slot.item,
            text=text if len(text) <= BRIEF else f"{text[:BRIEF]}…",
            batch=slot.batch,
            wanted=slot.wanted,
            answers=slot.filled,
            leased=slot.leased,
            state="done" if slot.filled >= slot.wanted else "open",
            confidence=None if confidence is None else round(confidence, 4),
            unsure=unsure,
            control=slot.item in self.inputs.control,
            flags=n_flags,
            gold=is_gold,
        )

    @by_labels
    def item(self, item: str, page: int = 1) -> m.Item:
        """Return all that is known of an item."""
        self.check_item(item)
        inputs, paid = self.inputs, self.inputs.plan.is_paid
        answers, skipped = self.ledger.given(item), self.ledger.skipped(item)
        wall, reports = WallTimes(self.ledger), self._flags().get(item, [])
        longest = max(len(answers), len(skipped), len(reports), 1)
        part = slice((page - 1) * ROWS, page * ROWS)
        return m.Item(
            item=item,
            kind=inputs.plan.kind,
            **self.tasks.shown(item),
            control=item in inputs.control,
            gold=self._labels(self.gold_labels().get(item)),
            known=self._labels(inputs.control.get(item)),
            answers=[
                m.Answered(
                    worker=row.worker,
                    status="replaced" if row.is_replaced else row.status,
                    counts=row.counts,
                    paid=from_micro(row.cost) if paid else None,
                    submitted=wall(row.submitted),
                    seconds=None if row.started < 0 else (row.submitted - row.started) / 1000,
                    labels=self._labels(row.labels),
                )
                for row in answers[part]
            ],
            found=found_labels(self.engine.live.result, item, self.tasks),
            skipped=[m.Skip(worker=row.worker, reason=row.reason) for row in skipped[part]],
            flags=reports[part],
            n_answers=len(answers),
            n_skipped=len(skipped),
            n_flags=len(reports),
            page=page,
            pages=-(-longest // ROWS),
        )

    def names_taken(self) -> set[str]:
        """Return the ids and pseudonyms of everybody at work, and the names of the plan."""
        plan, known = self.inputs.plan, self.ledger.pseudonyms()
        planned = (*plan.crowd.names, *(one.id for one in plan.workforce))
        return {*planned, *self.ledger.standing(), *known, *known.values()}

    def check_item(self, item: str) -> None:
        """Raise `Refused` if there is no such item."""
        if item not in self.inputs.pool.place:
            raise _no_such_item(item)

    def check_reviewable(self, item: str) -> None:
        """Raise `Refused` if a reviewer may not see an item.

        Reviewers see items that somebody has answered and that nobody has decided. Gold questions
        and items without answers are refused in the words of `check_item`, so that nobody finds
        them by trying.
        """
        self.check_item(item)
        if item in self.inputs.control or not self.ledger.given(item):
            raise _no_such_item(item)
        if item in self.gold_labels():
            raise Refused("conflict", DECIDED, 409)

    @by_labels
    def uncertain(self, limit: int = 20, by: str = "confidence") -> list[m.UncertainItem]:
        """Return uncertain items, or by "information" what teaches most; nothing that is known.

        Of several layers what is least certain comes first either way.
        """
        result = self.engine.live.result
        if result is None:
            return []
        settled = {*self.gold_labels(), *self.inputs.control}
        crowd, counts = result.crowd, np.diff(result.crowd.by_item.bounds)
        order = np.argsort(result.confidence, kind="stable")
        if by == "information" and counts.any() and not isinstance(result, Joint):
            n, bare = int((counts > 0).sum()), crowd.with_gold(None)
            order = choose_gold_questions(bare, n, by=by, result=result).item
        ids = crowd.item_ids.to_pylist()
        return [
            m.UncertainItem(
                item=ids[n], **self.tasks.shown(ids[n]), found=found_at(result, n, self.tasks),
                answers=int(counts[n]),
            )
            for n in [n for n in order.tolist() if ids[n] not in settled][: min(limit, MOST)]
        ]  # fmt: skip

    def gold_labels(self) -> dict[str, list[str]]:
        """Return the labels that the requester decided, by item: the last decision of each."""
        return decided_labels(self.ledger.records(GOLD))

    def _flags(self) -> dict[str, list[m.Flag]]:
        found: dict[str, list[m.Flag]] = {}
        for row in self.ledger.records(FLAG).values():
            flag = m.Flag(worker=row["worker"], reason=row["reason"], note=row["note"])
            found.setdefault(row["item"], []).append(flag)
        return found

    def _labels(self, labels: Any) -> Any:
        """Return labels as a page shows them: spans, a label, or by layer; None for none."""
        if labels is None:
            return None
        return next(iter(self.tasks.answer(labels).values()))

    # ----------------------------------------------------------------------------------------------
    # Decisions: each is in the log before it takes effect

    def adjudicate(
        self,
        item: str,
        answer: Given,
        *,
        by: str = "",  # Who decides, for the log; "" for the requester
        key: str = "",  # Of the request: the same decision again under the same key is kept once
        reviews: bool = False,  # Whether who decides may only review
    ) -> m.Gold:
        """Decide an item's labels: they are gold from now on."""
        if reviews and self.ledger.records(GOLD).get(key, {}).get("item") != item:  # not sent again
            self.check_reviewable(item)
        self.check_item(item)
        if item in self.inputs.control:
            words = "The labels of a gold question are those of the plan's file."
            raise Refused("invalid", words, 422)
        labels = self.tasks.labels(item, answer)
        body = {"item": item, "labels": labels, **({"by": by} if by else {})}

        def act(entry: Entry) -> Any:
            rows = read_records(entry.connection, GOLD)
            if reviews and key not in rows and item in decided_labels(rows):
                raise Refused("conflict", DECIDED, 409)
            _keep(entry, GOLD, key, body)
            # Sent again, it may come after somebody else's decision, which stands.
            last = decided_labels({**rows, key: body}).get(item)
            known = last or nothing_known(labels)
            set_gold(entry, {item: known}, self.ledger.tagset, control=False)
            return last

        last = self.ledger.transact(self.clock(), act)
        self.engine.look_again()
        return m.Gold(item=item, gold=self._labels(last))

    def retract(self, item: str, *, by: str = "", reviews: bool = False) -> m.Gold:
        """Take the last decision about an item back: the one before it, if any, holds again.

        Who only reviews takes back their own alone.
        """

        def act(entry: Entry) -> Any:
            made: list[dict[str, Any]] = []  # Decisions that were not taken back
            for row in read_records(entry.connection, GOLD).values():
                if row["item"] == item and row["labels"] is None:
                    made = []
                elif row["item"] == item:
                    made = made[:-1] if "undone_by" in row else [*made, row]
            if not made or (reviews and made[-1].get("by") != by):
                raise Refused("unknown", f"You have no decision about {item!r}.", 404)
            none = {"item": item, "labels": None, "by": by}
            body = {**made[-2], "undone_by": by} if len(made) > 1 else none
            record(entry, GOLD, new_id(), body)
            known = {item: body["labels"] or nothing_known(made[-1]["labels"])}
            set_gold(entry, known, self.ledger.tagset, control=False)
            return body["labels"]

        last = self.ledger.transact(self.clock(), act)
        self.engine.look_again()
        return m.Gold(item=item, gold=self._labels(last))

    def judge(
        self, worker: str, verdict: str, why: str = "", *, by: str = "", key: str = ""
    ) -> m.Decided:
        """Keep a worker, drop them, or ask them more gold questions; see `adjudicate`."""
        if verdict not in VERDICTS:
            raise Refused("invalid", f"{verdict!r} is not one of {', '.join(VERDICTS)}.", 422)
        if worker not in self.ledger.standing():
            raise Refused("unknown", f"There is no worker {worker!r} here yet.", 404)
        if verdict == TEST and not self.inputs.control:
            raise Refused("invalid", "The plan has no gold questions to ask.", 422)
        now, questions = self.clock(), QUESTIONS if verdict == TEST else 0
        decided = m.Decided(worker=worker, verdict=verdict, why=why, questions=questions)
        body = {**decided.to_dict(), **({"by": by} if by else {})}

        def act(entry: Entry) -> None:
            _keep(entry, DECISION, key, body)
            # Sent again, it may come after another decision, which stands.
            rows = read_records(entry.connection, DECISION).values()
            last = [row["verdict"] for row in rows if row["worker"] == worker][-1]
            assignments.bar(entry, worker, barred=last == DROP)

        self.ledger.transact(now, act)
        self.engine.notify()
        return decided

    @by_labels
    def draw_audit(self, n: int = USUAL) -> m.AuditNow:
        """Draw items of the labels as they are now, for people to check."""
        result, now = self.engine.live.result, self.clock()
        if result is None:
            raise Refused("unknown", "There are no labels yet.", 404)
        if self.inputs.plan.task.layers:
            raise Refused("invalid", "An audit is of one question, not of several layers.", 422)
        body = draw(result, self.inputs.control, n, self.inputs.plan.seed, now)
        self.ledger.record(DRAW, new_id(), body, now)
        self.engine.notify()
        return self.checking.progress()

    def pause(self, *, paused: bool = True) -> m.Paused:
        """Assign no new tasks, or assign them again; answers are taken all the time."""
        self._check_goes_on("be paused" if paused else "be resumed", {ENDING, OVER})
        self.ledger.pause(self.clock(), paused=paused)
        self.engine.notify()
        return m.Paused(paused=paused)

    def stop(self) -> m.Ended:
        """End the campaign; nobody gets a new task from now on."""
        self._check_goes_on("be stopped", {OVER})
        self.ledger.pause(self.clock(), paused=True)
        end(self.ledger, self.clock())
        self.engine.notify()
        return m.Ended(ended=True)

    def _check_goes_on(self, what: str, over: set[str]) -> None:
        state, why = self._state()
        if state in over:
            is_over = "has ended" if state == OVER else "is ending"
            raise Refused("gone", f"The campaign {is_over} ({why}): it cannot {what}.", 410)

    # ----------------------------------------------------------------------------------------------
    # Downloads

    def exports(self) -> list[m.Export]:
        """Return the files that can be downloaded."""
        return self.downloads.listed()

    @by_labels
    def export(
        self, name: str, *, names: bool = False, money: bool = True, by: str = ""
    ) -> Download:
        """Make a file; see `Downloads.make`."""
        return self.downloads.make(name, names=names, money=money, by=by)

    @by_labels
    def export_partitions(self, folder: Path, n: int, *, names: bool = False, by: str = "") -> int:
        """Write all answers as files of a new folder, and count them; names as for `export`."""
        return self.downloads.make_partitions(folder, n, names=names, by=by)


# --------------------------------------------------------------------------------------------------
# Parts of the views and decisions


def nothing_known(labels: Labels) -> Labels:
    """Return what takes known labels back."""
    return {} if isinstance(labels, Mapping) else [None] * len(labels)


def _keep(entry: Entry, kind: str, key: str, body: Mapping[str, Any]) -> None:
    """Keep a decision under its request's key, if any."""
    try:
        record(entry, kind, key or new_id(), body)
    except InputError:
        if not key:
            raise
        words = "Something else was decided under this Idempotency-Key before."
        raise Refused("conflict", words, 409) from None


def standing(*, barred: bool, decided: str, opinion: str) -> str:
    """Return a worker's standing in a word."""
    if barred:
        return "dropped" if decided == DROP else "asked no more"
    said = {KEEP: "kept", TEST: "tested more"}.get(decided)
    return said or opinion or UNCLEAR


def brief(found: Mapping[str, Any]) -> str:
    """Return what is known of a worker's quality, and how many gold questions would settle it."""
    if found["more"] == 0:
        return str(found["said"])
    amount = "more than 1,000" if found["more"] is None else f"about {found['more']}"
    questions = "question" if found["more"] == 1 else "questions"
    return f"{found['said']}; {amount} gold {questions} would settle it"


def median_seconds(crowd: Crowd) -> dict[str, float]:
    """Return each worker's median time per answer, where it is known when the answer began."""
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


def _verdict(found: Mapping[str, Any]) -> m.Verdict:
    facts = {name: found[name] for name in m.Verdict.model_fields if name != "why"}
    return m.Verdict(**facts, why=brief(found))


def _round(number: int, one: Mapping[str, Any]) -> m.Round:
    facts = {name: one.get(name) for name in m.Round.model_fields if name not in {"round", "spent"}}
    spent = None if one["cap"] is None else from_micro(one["spent"])
    return m.Round(round=number, spent=spent, **facts)  # type: ignore[arg-type]


def _point(one: Mapping[str, Any]) -> m.Point:
    """Return a round's score, on randomly drawn items where there are any."""
    score = one["control"] or one["score"]
    return m.Point(items=one["items"], value=score["value"], low=score["low"], high=score["high"])


def _measure(crowd: Crowd) -> dict[str, Any] | None:
    from goldspan.crowd import agreement as measure

    try:
        return measure(crowd).to_dict()
    except InputError:
        return None


def _to_cents(micro: float | None) -> str | None:
    """Write an estimated amount in millionths, rounded to the cent."""
    return None if micro is None else from_micro(round(round(micro), -4))
