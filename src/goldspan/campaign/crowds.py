"""The crowds that the loop asks: simulated, recorded, files, people in a browser."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goldspan._arrays import hash64
from goldspan.annotators.crowds import labels_by_item
from goldspan.campaign.clock import CampaignClock, open_clock
from goldspan.campaign.inputs import CampaignInputs, reject_other_labels
from goldspan.campaign.judging import (
    GAIN,
    VERDICTS,
    QualificationTest,
    families_of,
    kept,
    why_failed,
)
from goldspan.campaign.plan import NAMES, PEOPLE, key_of
from goldspan.campaign.protocols import (
    SOMEBODY,
    AnswerTaken,
    Offers,
    OnEvent,
    Waiting,
    WorkerDropped,
)
from goldspan.crowd import Crowd, read_crowd
from goldspan.crowd.atomic import write_text
from goldspan.crowd.labels import recode
from goldspan.crowd.questions import Questions, answers_of_labels
from goldspan.errors import Fault, FaultsError, InputError
from goldspan.protocols import Receipt
from goldspan.simulation import read_team, simulate_crowd
from goldspan.simulation.base import known_truth
from goldspan.simulation.crowd import BEGIN
from goldspan.spans import Codec
from goldspan.spans.parsing import parse_with_errors

if TYPE_CHECKING:
    from goldspan.store import SqlLedger

# --------------------------------------------------------------------------------------------------
# What a round still waits for, where people answer when they like.


Labels = Sequence[Any] | Mapping[str, Any]
"""A label per token, or what was answered by layer."""
HOUR = 3_600_000
"""Milliseconds."""
ENDED = "ended"
"""The kind and name of the record that ends a campaign from outside."""


def missing_answers(ledger: SqlLedger, items: Sequence[str]) -> dict[str, int]:
    """Count the answers that are missing, by item; items that have enough are left out."""
    asked, slots = set(items), ledger.slots()
    missing = pc.subtract(slots["wanted"], slots["filled"])
    places = pa.table({"item": slots["item"], "missing": missing})
    short = places.filter(pc.greater(places["missing"], 0))
    found = zip(short["item"].to_pylist(), short["missing"].to_pylist(), strict=True)
    return {item: n for item, n in found if item in asked}


def still_awaited(
    inputs: CampaignInputs, ledger: SqlLedger, missing: Mapping[str, int], now: int, where: str
) -> Waiting | None:
    """Return what is still awaited; nothing where the money or the time is used up."""
    totals, place = ledger.totals(), inputs.pool.place
    # What is reserved now pays for answers that are being given.
    left = totals.left + totals.reserved
    can_give = n_who_can(inputs, ledger) if inputs.plan.redundancy.by == GAIN else None
    payable = {
        item: n if can_give is None else min(n, can_give(item))
        for item, n in missing.items()
        if inputs.costs[place[item]] <= left
    }
    payable = {item: n for item, n in payable.items() if n}
    if not payable or is_over(inputs, ledger, now):
        return None
    return Waiting(sum(payable.values()), len(payable), where)


def people_awaited(
    inputs: CampaignInputs, ledger: SqlLedger, items: Sequence[str], now: int
) -> Waiting | None:
    """Return what people in a browser have still to answer, as `still_awaited`."""
    missing = missing_answers(ledger, items)
    where = "people answer in their browsers: goldspan serve"
    return still_awaited(inputs, ledger, missing, now, where)


def is_over(inputs: CampaignInputs, ledger: SqlLedger, now: int) -> bool:
    """Whether the time is used up, or somebody ended the campaign."""
    if ledger.records(ENDED):
        return True
    hours = inputs.plan.budget.hours
    if hours is None:
        return False
    return now - next(iter(ledger.events())).time >= hours * HOUR


# --------------------------------------------------------------------------------------------------
# Which answers could be bought, where rounds choose them by what they promise.


def offers_of_somebody(inputs: CampaignInputs, ledger: SqlLedger, items: Sequence[str]) -> Offers:
    """Return one answer about every item, of whoever comes, where anybody can come."""
    found, can_give = Offers(), n_who_can(inputs, ledger)
    for item in items:
        if can_give is None or can_give(item):
            found.add(item, SOMEBODY, int(inputs.costs[inputs.pool.place[item]]))
    return found


def n_who_can(inputs: CampaignInputs, ledger: SqlLedger) -> Callable[[str], int] | None:
    """Return how many people can still answer an item, by its id; None where anybody may come in.

    They are those whom the plan names, and those who came in beside them: who has answered or
    skipped an item, who is barred, and who has given as many answers as may be, cannot.
    """
    plan = inputs.plan
    people = [one for one in plan.workforce if one.kind == PEOPLE]
    others_come = any(NAMES not in one.options for one in people) and not plan.crowd.annotators
    if others_come or not plan.crowd.names:
        return None
    barred = set(ledger.records("bar")) - kept(ledger)
    machines = {one.id for one in plan.workforce if one.kind != PEOPLE}
    crowd = ledger.crowd()
    there = {*plan.crowd.names, *crowd.worker_ids.to_pylist()} - machines - barred
    given = labels_by_item(crowd)
    n_given = Counter(name for i, own in given.items() if i not in inputs.control for name in own)
    for name in [*there]:
        entry = plan.entry_of_person(name)
        if entry is not None and entry.limit is not None and n_given[name] >= entry.limit:
            there.remove(name)
    gone = {name: ledger.skipped_by(name) for name in there}
    return lambda item: sum(
        item not in gone[name] and name not in given.get(item, ()) for name in there
    )


def whom_to_ask(ledger: SqlLedger, wave: str) -> Mapping[str, tuple[str, ...]]:
    """Return whom the round of a wave chose to ask about its items, where it did choose."""
    picks = ledger.records("picks").get(wave.partition(".")[0], {})
    found: dict[str, tuple[str, ...]] = {}
    for chosen in (picks.get("models", {}), picks.get("whom", {})):
        for item, worker in chosen.items():
            found[item] = (*found.get(item, ()), worker)
    return found


# --------------------------------------------------------------------------------------------------
# Answers without a lease: sent to the ledger where they find a free place and the money for it.


TAKEN, FULL, MONEY, BARRED = "taken", "full", "money", "barred"
"""What became of an answer: it counts, or why it does not."""


class OpenPlaces:
    """What is free and what was answered, read once and kept while answers are sent."""

    def __init__(self, inputs: CampaignInputs, ledger: SqlLedger, on_event: OnEvent) -> None:
        self.inputs, self.ledger, self._left = inputs, ledger, ledger.totals().left
        self._on_event = on_event
        rows, crowd = ledger.slots().to_pylist(), ledger.crowd()
        self._free = {row["item"]: row["places"] - row["leased"] - row["filled"] for row in rows}
        self._given = labels_by_item(crowd)

    def given(self, item: str, worker: str) -> Any:
        """Return the answer that counts, None if there is none."""
        found = self._given.get(item, {}).get(worker)
        if found is None or not self.inputs.plan.task.layers:
            return found
        return next(one.labels for one in self.ledger.own(worker, [item]))

    def take(self, item: str, worker: str, labels: Labels, now: int) -> str:
        """Send an answer if it finds a place, and say what became of it."""
        if self._free[item] <= 0:
            return FULL
        if self.inputs.costs[self.inputs.pool.place[item]] > self._left:
            return MONEY
        receipt = self._send(item, worker, labels, now)
        if not receipt.counts:  # there were place and money
            return BARRED
        self._free[item] -= 1
        self._left -= receipt.cost
        self._given.setdefault(item, {})[worker] = list(labels)
        tell(receipt, self._on_event)
        return TAKEN

    def _send(self, item: str, worker: str, labels: Labels, now: int) -> Receipt:
        """Send it under the first key that no answer that does not count has used up."""
        for attempt in count():
            key = key_of(item, worker, attempt)
            receipt = self.ledger.submit(key, worker, item, labels, now)
            if receipt.status == "conflict":
                continue
            # A draft beside another of the worker is not kept: its key is as good as any.
            if receipt.counts or not receipt.repeated or not self.ledger.is_sent(key):
                return receipt
        raise AssertionError


# --------------------------------------------------------------------------------------------------
# A file of answers that came back: read as lines of JSON, and refused whole if any is faulty.


LONGEST = 400
"""Characters of a worker's name."""
_HALF = "; the file ends in this line: is it still being written? Run again when it is whole"


class AnswerReader:
    """What answers to a campaign must be."""

    def __init__(
        self, key: str, tagset: Codec | Questions, words: Mapping[str, Sequence[str]]
    ) -> None:
        self.key, self.tagset, self.words = key, tagset, words

    def read(self, file: Path, data: bytes) -> list[dict[str, Any]]:
        """Return the answers of a file."""
        rows, faults = [], []
        lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = _parsed(line)
                message = self.fault(row)
            except InputError as error:
                # Only the last line has no end.
                row, message = {}, f"{error}{_HALF if number == len(lines) else ''}"
            rows.append(row)
            if message:
                faults.append(Fault(message, str(file), number))
        if faults:
            raise FaultsError(faults, "the answers are refused; nothing of the file was taken")
        return rows

    def fault(self, row: Any) -> str:
        """Return what is wrong with an answer, "" if nothing is."""
        if not isinstance(row, Mapping) or not {"campaign", "worker", "item", "labels"} <= set(row):
            return "an answer has campaign, worker, item and labels"
        if row["campaign"] != self.key:
            return f"of the campaign {row['campaign']!r}, and this is {self.key!r}"
        if not _is_name(row["worker"]):
            return f"a worker is text of 1 to {LONGEST} characters, not {row['worker']!r:.60}"
        item, labels = row["item"], row["labels"]
        if not isinstance(item, str) or item not in self.words:
            return f"item {item!r:.60} was not asked about"
        n = len(self.words[item])
        if isinstance(self.tagset, Questions):
            try:
                kept = self.tagset.clean(labels, n, self.words[item])
            except InputError as error:
                return f"item {item}: {error.message}"
            return "" if kept == labels else f"item {item}: write the answer as {json.dumps(kept)}"
        if not isinstance(labels, list) or len(labels) != n:
            return f"item {item}: needs a list of {n} labels, not {labels!r:.60}"
        known = self.tagset.index
        wrong = [one for one in labels if not isinstance(one, str | None) or one not in known]
        if wrong:
            return f"item {item}: label {wrong[0]!r:.60} is not in {', '.join(self.tagset.tags)}"
        return self._malformed(item, labels, self.tagset.encoding)

    def _malformed(self, item: str, labels: Sequence[str | None], encoding: str) -> str:
        """Return where the tags between skipped tokens are malformed, "" if they are not."""
        start = 0
        for end in [*(n for n, label in enumerate(labels) if label is None), len(labels)]:
            part = [str(label) for label in labels[start:end]]
            _, errors = parse_with_errors(part, encoding) if part else ([], [])
            for error in errors:
                # What belongs in the place of a skipped token is not known.
                closing = error.kind == "not-closed"
                before, after = error.index == 0 and start > 0, end < len(labels)
                if not ((after and error.next is None) if closing else before):
                    return f"item {item} token {start + error.index}: {error.message}"
            start = end + 1
        return ""


def campaign_in(line: bytes) -> str | None:
    """Return the id of the campaign in a line of tasks or answers, None if there is none."""
    try:
        row = _parsed(line)
    except InputError:
        return None
    found = row.get("campaign") if isinstance(row, Mapping) else None
    return found if isinstance(found, str) else None


def _parsed(line: bytes) -> Any:
    """Read a line."""
    try:
        return json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"it is not valid JSON: {error}") from None


def _is_name(word: Any) -> bool:
    """Whether any database can keep it: text without NUL and halves of characters."""
    if not isinstance(word, str) or not 0 < len(word) <= LONGEST or "\0" in word:
        return False
    return not any("\ud800" <= char <= "\udfff" for char in word)


# --------------------------------------------------------------------------------------------------
# Crowds that answer at once, on a clock of their own. Another source of answers that are not waited
# for is a subclass here and a line in `SOURCES` (`campaign/loop.py`).


LEASE_SECONDS = 1e8
"""Longer than any campaign: what a kill leaves reserved is taken up again."""


def tell(receipt: Receipt, on_event: OnEvent) -> None:
    """Tell of an answer that counts, once."""
    if receipt.counts and not receipt.repeated:
        on_event(AnswerTaken(receipt.cost))


class AnsweringCrowd:
    """Workers who answer as soon as they are asked: one by one, an open place at a time.

    A subclass says who can be asked about an item, and what a worker answers; both must follow from
    the plan and its files alone, as a campaign that was interrupted asks again.
    """

    def __init__(self, inputs: CampaignInputs, ledger: SqlLedger) -> None:
        self.inputs, self.ledger = inputs, ledger
        self._n_answers = ledger.n_answers
        self._asked: dict[str, set[str]] = {}
        self._barred: set[str] = set()
        self._families: Mapping[str, str] = {}
        self._on_event: OnEvent = lambda _: None

    def workers_for(self, item: str) -> Collection[str]:
        """Return the workers who can be asked about an item."""
        raise NotImplementedError

    def answer(self, worker: str, item: str) -> Labels:
        """Return a worker's labels of an item, None at tokens that are skipped; or by layer."""
        raise NotImplementedError

    def prepare(self, worker: str) -> None:
        """Do what comes before a worker is asked about an item: nothing, if not overridden."""

    def now(self) -> int:
        """Return the time that the answers took so far."""
        return self._time_after(self._n_answers)

    def collect(
        self, name: str, items: Sequence[str], on_event: OnEvent = lambda _: None
    ) -> Waiting | None:
        """Fill the open places, item by item, as far as there is anybody to ask."""
        self._on_event = on_event
        self._read()
        rows, whom = self.ledger.slots().to_pylist(), whom_to_ask(self.ledger, name)
        missing = {row["item"]: row["wanted"] - row["filled"] for row in rows}
        for item in items:
            if item not in whom:
                self._fill(item, missing[item])
            elif missing[item] > 0:  # others lost the comparison: the next round chooses again
                for worker in whom[item]:
                    self._got(worker, item)
        return None

    def offers(self, items: Sequence[str]) -> Offers:
        """Return the answers about items that can be bought now."""
        self._read()
        found = Offers()
        for item in items:
            price = int(self.inputs.costs[self.inputs.pool.place[item]])
            for worker in self.workers_for(item):
                if worker not in self._barred and item not in self._asked.get(worker, ()):
                    found.add(item, worker, price)
        return found

    def _fill(self, item: str, n: int) -> None:
        """Ask n workers, two of a family only where nobody else is left."""
        order = self._shuffled(self.workers_for(item), lambda worker: f"{item}\0{worker}")
        family_of = self._families.get
        there = {family_of(worker) for worker in order if item in self._asked.get(worker, ())}
        later = []
        for worker in order:
            if n <= 0:
                return
            family = family_of(worker)
            if family is not None and family in there:
                later.append(worker)
            elif self._got(worker, item):
                n -= 1
                there.add(family)
        for worker in later:
            if n <= 0:
                return
            n -= self._got(worker, item)

    def _got(self, worker: str, item: str) -> bool:
        """Ask a worker who has not been asked about the item, and may be; whether he answered."""
        if worker in self._barred or item in self._asked.get(worker, ()):
            return False
        self.prepare(worker)
        return worker not in self._barred and self.ask(worker, item)

    def ask(self, worker: str, item: str) -> bool:
        """Get one answer; False where there is no place or no money for it."""
        if not self.ledger.lease(worker, self.now(), LEASE_SECONDS, 1, [item]):
            return False
        given = self._time_after(self._n_answers + 1)
        return self._submit(worker, item, self.answer(worker, item), given).counts

    def _submit(
        self, worker: str, item: str, labels: Labels, given: int,
        cost: int | None = None,
    ) -> Receipt:  # fmt: skip
        """Hand in an answer."""
        key = key_of(item, worker)
        receipt = self.ledger.submit(key, worker, item, labels, given, cost=cost)
        self._asked.setdefault(worker, set()).add(item)
        self._n_answers += not receipt.repeated
        tell(receipt, self._on_event)
        return receipt

    def _read(self) -> None:
        """Read from the ledger who has answered what, and who is asked nothing more."""
        crowd = self.ledger.crowd()
        names, people = crowd.item_ids.to_pylist(), crowd.worker_ids.to_pylist()
        answers, self._asked = crowd.latest, {}
        for item, worker in zip(answers.item.tolist(), answers.worker.tolist(), strict=True):
            self._asked.setdefault(people[worker], set()).add(names[item])
        self._n_answers = len(answers)
        self._barred = set(self.ledger.records("bar"))
        self._families = families_of(self.inputs.plan, self.ledger.records(VERDICTS))

    def _shuffled(self, names: Collection[str], words: Callable[[str], str]) -> list[str]:
        """Return names in an order that the seed and the words about each of them decide."""
        seed = self.inputs.plan.seed
        return sorted(names, key=lambda name: hash64(f"{seed}\0{words(name)}"))

    def _time_after(self, n_answers: int) -> int:
        """Return the time in milliseconds since 1970 when so many answers are given."""
        return BEGIN + round(1000 * self.inputs.plan.crowd.seconds * n_answers)


# --------------------------------------------------------------------------------------------------
# The source "simulated": workers of `goldspan.simulation`, with gold questions among the others.


class Simulated(AnsweringCrowd):
    """Simulated workers."""

    @cached_property
    def workers(self) -> list[str]:
        """Their names, in the order of the plan."""
        return list(read_team(list(self.inputs.plan.crowd.workers)))

    def workers_for(self, item: str) -> Collection[str]:
        """Return all workers: everybody can be asked about everything."""
        del item
        return self.workers

    def answer(self, worker: str, item: str) -> Labels:
        """Return what the worker answers, drawn once for the whole campaign."""
        if self.inputs.truths:
            return self._by_layer[worker][item]
        place = self._place[item] * len(self.workers) + self._number[worker]
        answers = self._crowd.answers
        codes = answers.codes[answers.offset[place] : answers.offset[place + 1]]
        tags = [*self._crowd.tagset.tags, None]
        return [tags[code] for code in codes.tolist()]

    def prepare(self, worker: str) -> None:
        """Ask the gold questions that are due, and send away who fails the first ones."""
        control = self.inputs.plan.control
        if control is None:
            return
        order = self._shuffled(self.inputs.control, lambda item: f"{item}\0{worker}")
        while True:
            asked = self._asked.get(worker, set())
            done = [item for item in order if item in asked]
            regular = len(asked) - len(done)
            if control.first and len(done) >= control.first:
                self._qualify(worker, done[: control.first])
            due = control.first + int(control.share * regular)
            rest = [item for item in order if item not in asked]
            if worker in self._barred or len(done) >= due or not rest:
                return
            if not self.ask(worker, rest[0]):
                return

    def _qualify(self, worker: str, items: Sequence[str]) -> None:
        """Bar a worker who failed the test; asked again, it changes nothing."""
        control, answers = self.inputs.control, [self.answer(worker, item) for item in items]
        least = 0.0 if self.inputs.plan.control is None else self.inputs.plan.control.least
        why = why_failed([control[item] for item in items], answers, least)
        if not why:
            return
        self.ledger.record("bar", worker, {"why": why}, self.now())
        self.ledger.bar(worker, self.now())
        self._barred.add(worker)
        self._on_event(WorkerDropped(worker, why))

    @cached_property
    def _crowd(self) -> Crowd:
        """What everybody would answer to everything, by item and then by worker."""
        assert self.inputs.truth is not None  # the plan was checked
        team = read_team(list(self.inputs.plan.crowd.workers))
        made = simulate_crowd(self.inputs.truth, team, seed=self.inputs.plan.seed)
        assert np.array_equal(made.answers.worker[: len(self.workers)], range(len(self.workers)))
        return made

    @cached_property
    def _by_layer(self) -> dict[str, dict[str, Labels]]:
        """What everybody would answer to everything, where there are several layers."""
        asked, pool, words = self.inputs.plan.task.questions, self.inputs.pool, self.inputs.words
        team = read_team(list(self.inputs.plan.crowd.workers))
        made = {
            name: simulate_crowd(known_truth(one), team, seed=self.inputs.plan.seed)
            for name, one in self.inputs.truths.items()
        }
        found: dict[str, dict[str, Labels]] = {}
        for n, worker in enumerate(self.workers):
            own = {name: one.answers.take(one.answers.worker == n) for name, one in made.items()}
            answers = answers_of_labels(
                made,
                {name: one.codes for name, one in own.items()},
                lambda item: self.inputs.tokens_of(pool.place[item]),
            )
            assert asked is not None
            found[worker] = {
                item: asked.clean(one, len(words[pool.place[item]]))
                for item, one in answers.items()
            }
        return found

    @cached_property
    def _place(self) -> Mapping[str, int]:
        return {name: n for n, name in enumerate(self.inputs.ids)}

    @cached_property
    def _number(self) -> Mapping[str, int]:
        return {name: n for n, name in enumerate(self.workers)}


# --------------------------------------------------------------------------------------------------
# The source "replay": a recorded crowd answers again, each worker as then.


class Replayed(AnsweringCrowd):
    """A recorded crowd; `crowd.answers` of the plan is the record."""

    def __init__(self, inputs: CampaignInputs, ledger: SqlLedger) -> None:
        super().__init__(inputs, ledger)
        record = read_record(inputs)
        self._answers = labels_by_item(record)
        families, there = inputs.plan.aggregate.families, set(record.worker_ids.to_pylist())
        unknown = [w for w in families if w not in there] if isinstance(families, Mapping) else []
        if unknown:
            shown = ", ".join(map(repr, unknown[:8]))
            raise InputError(f"aggregate.families: no worker {shown} in the recorded crowd")

    def workers_for(self, item: str) -> Collection[str]:
        """Return who answered the item then."""
        return self._answers.get(item, {})

    def answer(self, worker: str, item: str) -> list[str | None]:
        """Return what the worker answered then."""
        return self._answers[item][worker]


def read_record(inputs: CampaignInputs) -> Crowd:
    """Read the recorded answers of a plan, in the tags of its task."""
    # Items that the pool lacks are passed over
    plan = inputs.plan
    assert plan.crowd.answers is not None  # the plan was checked
    path, key = inputs.folder / plan.crowd.answers, f"crowd.answers: {plan.crowd.answers}"
    # Single labels have no encoding that could be named.
    try:
        found = read_crowd(path, encoding=None if plan.is_single else plan.task.encoding)
    except InputError as error:
        raise InputError(error.message) from None
    reject_other_labels(inputs, found, key)
    places, shared = inputs.pool.place, 0
    for name, words in zip(found.item_ids.to_pylist(), found.tokens_list, strict=True):
        if name not in places:
            continue
        shared += 1
        if len(words) != len(inputs.words[places[name]]):
            own = len(inputs.words[places[name]])
            raise InputError(f"{key}: item {name} has {len(words)} tokens, and {own} in the pool")
    if not shared or not len(found.latest):
        raise InputError(f"{key} has no answer to an item of the pool: do the ids agree?")
    return recode(found, inputs.codec)


# --------------------------------------------------------------------------------------------------
# The source "files": tasks go out in files, answers come back in files.


TEST = "test"
"""The batch of a test that comes first."""
_WHY = {
    "conflict": "by workers who had answered the item otherwise before",
    FULL: "to items that have enough: they count if a place opens",
    MONEY: "that the money does not reach",
    BARRED: "by workers who are asked no more",
}


class Files:
    """Workers who are reached through files."""

    def __init__(self, inputs: CampaignInputs, ledger: SqlLedger) -> None:
        self.inputs, self.ledger = inputs, ledger
        self.admission, self._told = QualificationTest(inputs, ledger), Counter[str]()
        self._read: dict[str, list[dict[str, Any]]] = {}
        self.out = inputs.folder / inputs.plan.crowd.out
        self.back = inputs.folder / inputs.plan.crowd.back
        for folder in (self.out, self.back):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"cannot make {folder}: {error.strerror}") from None

    def now(self) -> int:
        """Return the campaign's time."""
        return self._clock()

    def collect(
        self, name: str, items: Sequence[str], on_event: OnEvent = lambda _: None
    ) -> Waiting | None:
        """Read what has come back, write the tasks that are left, say what is missing."""
        path = self.out / f"tasks-{name}.jsonl"
        if self.admission.items:
            self._write(self.out / f"{TEST}.jsonl", TEST, dict.fromkeys(self.admission.items, 1))
        is_there = self._is_there(path)
        # Take what has come back: answers to the test first, then those of who has taken it
        self._told.clear()
        self.admission.judge(self.now())
        test = set(self.admission.items)
        rows = self._rows()
        self._take([row for row in rows if row["item"] in test], on_event)
        self.admission.judge(self.now())
        self._take([row for row in rows if row["item"] not in test], on_event)
        missing = missing_answers(self.ledger, items)
        if missing and not is_there:
            self._write(path, name, self._needed(missing))
        where = f"tasks are in {path}; put answers into {self.back}{self._test()}"
        # How many answers came that do not count, and why
        told = [f"{self._told[why]} {words}" for why, words in _WHY.items() if self._told[why]]
        where += f" (not counted: {', '.join(told)})" if told else ""
        return still_awaited(self.inputs, self.ledger, missing, self.now(), where)

    def offers(self, items: Sequence[str]) -> Offers:
        """Return the answers about items that can be bought now."""
        return offers_of_somebody(self.inputs, self.ledger, items)

    def _write(self, path: Path, name: str, needed: Mapping[str, int]) -> None:
        """Write tasks, unless they are there."""
        if self._is_there(path):
            return
        try:
            write_text(path, list(self._tasks(name, needed)))
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror}") from None

    def _is_there(self, path: Path) -> bool:
        """Whether tasks are written."""
        try:
            with path.open("rb") as file:
                line = file.readline()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from None
        seen = campaign_in(line)
        if seen != self._id:
            whose = "no tasks" if seen is None else f"tasks of the campaign {seen!r}"
            raise InputError(
                f"{path} holds {whose}, and this is {self._id!r}: move what is in {self.out} and "
                f"{self.back} elsewhere; campaigns side by side need folders of their own, by "
                "crowd.out and crowd.back of their plans"
            )
        return True

    def _needed(self, missing: Mapping[str, int]) -> dict[str, int]:
        """Return the items of a batch and the gold questions among them, with their answers."""
        control = list(self.inputs.control)[len(self.admission.items) :]
        share = 0.0 if self.inputs.plan.control is None else self.inputs.plan.control.share
        n = min(len(control), -(-round(1000 * share * len(missing)) // 1000))
        # Batches take turns, so that a worker of several batches sees different questions.
        turn = len(list(self.out.glob("tasks-*.jsonl")))
        mixed = [control[(turn * n + i) % len(control)] for i in range(n)]
        return {**dict.fromkeys(mixed, max(missing.values(), default=1)), **missing}

    def _tasks(self, name: str, needed: Mapping[str, int]) -> Iterator[str]:
        for item in sorted(needed, key=lambda item: self._place[item]):
            task = {"campaign": self._id, "batch": name, "item": item, "answers": needed[item]}
            yield json.dumps({**task, **self._content(item)}, ensure_ascii=False) + "\n"

    def _content(self, item: str) -> dict[str, Any]:
        n, pool, asked = self._place[item], self.inputs.pool, self.inputs.plan.task.questions
        layers: dict[str, Any] = {} if asked is None else {"layers": list(asked.tags)}
        if not self.inputs.plan.is_single:
            facts = {"tokens": pool.words(n), "text": pool.given[n]}
            return {**facts, "token_start": pool.starts_of(n), **layers}
        single: dict[str, Any] = layers or {"labels": list(self.inputs.codec.tags)}
        if pool.text is None:
            return single | {"attributes": pool.cells(n)}
        return single | {"text": pool.given[n]}

    def _take(self, rows: Sequence[Mapping[str, Any]], on_event: OnEvent) -> None:
        """Take the answers that find a place, in their order; count those that do not."""
        places, barred = OpenPlaces(self.inputs, self.ledger, on_event), self._barred()
        for row in rows:
            item, worker, labels = row["item"], row["worker"], row["labels"]
            before = places.given(item, worker)
            if before is not None:
                self._told["conflict"] += before != labels
            elif worker in barred:
                self._told[BARRED] += 1
            elif self.admission.waits(worker, item):
                self._told["waiting"] += 1
            else:
                self._told[places.take(item, worker, labels, self.now())] += 1

    def _barred(self) -> set[str]:
        return set(self.ledger.records("bar")) - kept(self.ledger)

    def _rows(self) -> list[dict[str, Any]]:
        """Return the answers of all files, by their names, each once."""
        read = [self._open(path) for path in sorted(self.back.glob("*.jsonl"))]
        unique = {_whole(row): row for rows in read for row in rows}
        return list(unique.values())

    def _open(self, path: Path) -> list[dict[str, Any]]:
        """Return the answers of a file."""
        try:
            data = path.read_bytes()
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from None
        digest = blake2b(data, digest_size=12).hexdigest()
        if digest not in self._read:
            asked = self.ledger.slots()["item"].to_pylist()
            words = {item: self.inputs.words[self._place[item]] for item in asked}
            reader = AnswerReader(self._id, self.inputs.plan.tagset, words)
            self._read[digest] = reader.read(path, data)
        return self._read[digest]

    def _test(self) -> str:
        """Return where the test is, and how many answers wait for it."""
        if not self.admission.items:
            return ""
        n = self._told["waiting"]
        wait = f", and {n} answers wait for it" if n else ""
        return f"; every worker takes the test first: {self.out / TEST}.jsonl{wait}"

    @cached_property
    def _clock(self) -> CampaignClock:
        """The campaign's clock: days between two runs count, as nobody holds a lease."""
        return open_clock(self.ledger, downtime=None)

    @cached_property
    def _id(self) -> str:
        """The id that the campaign began with: some of a plan may change, the id does not."""
        return str(self.ledger.records("plan")["plan"]["id"])

    @property
    def _place(self) -> Mapping[str, int]:
        return self.inputs.pool.place


def _whole(row: Mapping[str, Any]) -> str:
    """Return what makes two answers the same."""
    return json.dumps([row["item"], row["worker"], row["labels"]])
