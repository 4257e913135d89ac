"""What workers do: ask, answer, change, pass on, report; decided in one transaction each."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from hmac import digest
from typing import Any, TypeVar

from sqlalchemy import Connection

from goldspan._arrays import hash64
from goldspan.campaign.clock import wall_of
from goldspan.campaign.crowds import ENDED
from goldspan.campaign.inputs import CampaignInputs
from goldspan.campaign.judging import VERDICTS, TestScore, families_of, score_test
from goldspan.campaign.plan import Plan
from goldspan.campaign.suggestions import suggestion_for
from goldspan.crowd.questions import shown_span
from goldspan.errors import FaultsError, InputError
from goldspan.money import from_micro
from goldspan.protocols import Lease, Price, Receipt
from goldspan.spans.encoding import PartSpan
from goldspan.spans.parts import check_cuts, places_in, read_parts, write_parts
from goldspan.store import SqlLedger, answers, assignments, queries
from goldspan.store.answers import CHANGED, Labels
from goldspan.store.engine import BoundError
from goldspan.store.facts import (
    Bound,
    keep_suggestion,
    own_answers,
    read_suggestion,
    record,
)
from goldspan.store.journal import Entry
from goldspan.store.people import new_worker
from goldspan.store.queries import CountedAnswer, NewAnswer
from goldspan.web.errors import Refused
from goldspan.web.models import Given
from goldspan.web.people import BAR, GOLD, People, Person, decided_labels
from goldspan.web.settings import Keys, Signer

# --------------------------------------------------------------------------------------------------
# Tasks as pages show them, answers as pages send them


class Tasks:
    """Makes tasks of leases, and labels of answers.

    A task's id names the item and the worker, signed: a worker cannot ask for an item. Neither the
    items' ids, which may say too much, nor their places in the pool, which tell gold questions
    from others, can be read from it: the number is masked with a keyed hash that differs for every
    item and worker (as in synthetic initialization vectors, so that a task keeps its id).
    """

    def __init__(self, inputs: CampaignInputs, keys: Keys) -> None:
        self.inputs = inputs
        self._key = keys.of(f"task {inputs.key}")
        self._seal = Signer(self._key)

    def show(self, lease: Lease, *, practice: bool) -> dict[str, Any]:
        """Return what the page needs of a lease."""
        mark = self._mark_of(lease.item, lease.worker)
        number = self.inputs.pool.place[lease.item] ^ self._mask(mark)
        return {
            "id": self._seal.sign({"n": number, "m": mark, "w": lease.worker}),
            "kind": self.inputs.plan.kind,
            **self.shown(lease.item),
            "expires": lease.expires,
            "training": practice,
        }

    def item(self, worker: str, task: str) -> str:
        """Return the item of a worker's task."""
        facts = self._seal.read(task)
        if facts is None or facts.get("w") != worker or "m" not in facts:
            raise Refused("invalid", "This task is not one of yours: load the page again.", 422)
        number, mark = facts["n"] ^ self._mask(facts["m"]), facts["m"]
        # A pool that was put in another order since has another item in this place.
        item = str(self.inputs.ids[number]) if number < len(self.inputs.ids) else ""
        if mark != self._mark_of(item, worker):
            raise Refused("invalid", "The items changed meanwhile: load the page again.", 422)
        return item

    def labels(self, item: str, answer: Given) -> Labels:
        """Turn an answer into labels, one per token or its parts, or by layer."""
        task = self.inputs.plan.task
        if task.questions is not None:
            words = self.inputs.words[self.inputs.pool.place[item]]
            try:
                return task.questions.clean(answer, len(words), words)
            except InputError as error:
                raise Refused("invalid", f"The answer does not fit: {error}.", 422) from None
        if isinstance(answer, Mapping):
            raise Refused("invalid", "This campaign asks one question, not several layers.", 422)
        if self.inputs.plan.is_single:
            if not isinstance(answer, str) or answer not in task.labels:
                raise Refused("invalid", f"Choose one of {', '.join(task.labels)}.", 422)
            return [answer]
        if isinstance(answer, str):
            raise Refused("invalid", "This campaign asks for spans, not for one label.", 422)
        known, words = task.types, self.inputs.words[self.inputs.pool.place[item]]
        wrong = [span.type for span in answer if span.type not in known]
        if wrong:
            raise Refused("invalid", f"{wrong[0]!r} is not one of {', '.join(known)}.", 422)
        try:
            spans = [PartSpan(*span) for span in answer]
            check_cuts(spans, words)
            return write_parts(spans, len(words), self.inputs.codec.encoding)
        except InputError as error:
            raise Refused("invalid", f"The spans do not fit: {error}.", 422) from None

    def text(self, item: str) -> str:
        """Return an item's own text, or the cells of a row of a table that has no texts."""
        number, pool = self.inputs.pool.place[item], self.inputs.pool
        if pool.text is not None:
            return str(pool.given[number])
        cells = {name: values[number] for name, values in (pool.columns or {}).items()}
        plain = {name: getattr(cell, "as_py", lambda c=cell: c)() for name, cell in cells.items()}
        return "\n".join(f"{name}: {value}" for name, value in plain.items() if value is not None)

    def shown(self, item: str) -> dict[str, Any]:
        """Return an item as a page shows it: tokens, text, and where in it the tokens stand."""
        number, text = self.inputs.pool.place[item], self.text(item)
        if self.inputs.plan.is_single:
            return {"tokens": [], "text": text, "starts": None}
        words, starts = self.inputs.words[number], self.inputs.pool.starts_of(number)
        return {"tokens": list(words), "text": text, "starts": starts}

    def answer(self, labels: Labels) -> dict[str, Any]:
        """Return labels as pages have them: `spans`, a `label`, or `layers`."""
        if isinstance(labels, Mapping):
            names = self.inputs.plan.tagset.types  # the store has them by the alphabet
            return {"layers": {name: labels[name] for name in names if name in labels}}
        if self.inputs.plan.is_single:
            return {"label": labels[0]}
        tags = [label or "O" for label in labels]
        spans = read_parts(tags, self.inputs.codec.encoding)
        return {"spans": [shown_span(span) for span in spans]}

    def places(self, item: str, starts: Sequence[int]) -> list[tuple[int, int]]:
        """Return of every part of an item's tokens the token and the place in it."""
        return places_in(self.inputs.pool.starts_of(self.inputs.pool.place[item]), starts)

    def _mark_of(self, item: str, worker: str) -> str:
        name = f"item {item} {worker}"
        return digest(self._key, name.encode(), "sha256")[:12].hex()

    def _mask(self, mark: str) -> int:
        return int.from_bytes(digest(self._key, f"mask {mark}".encode(), "sha256")[:6])


# --------------------------------------------------------------------------------------------------
# The next task: practice, test, gold questions among the others, the rest


FAILED_TEST = "right in the test"
"""How the record of who failed the test ends."""
TRIES = 5
"""Gold questions that are tried before one goes on without."""


class Asking:
    """Decides what a worker gets next."""

    def __init__(self, inputs: CampaignInputs, ledger: SqlLedger, people: People) -> None:
        self.inputs, self.ledger, self.people = inputs, ledger, people
        self.seconds = 60 * inputs.plan.page.lease_minutes
        self._ready = False
        self._families: dict[str, assignments.Family] = {}
        self._named: tuple[tuple[Any, int], dict[str, str]] = (None, -1), {}

    def next(self, worker: str, now: int, bound: Bound | None = None) -> Lease | None:
        """Hold a task for a worker: the one that is held already, or a new one.

        Before the practice and the test are done there is nothing else.
        """
        if not self.is_ready():
            self.people.look()
            return None
        got = self.ledger.transact(now, lambda entry: self.assign(entry, worker), bound)
        return got[0] if got else None

    def take(
        self, entry: Entry, key: str, worker: str, item: str, labels: Labels
    ) -> tuple[Receipt, NewAnswer | None]:
        """Keep an answer, and ask nothing more of a worker who fails the test with it."""
        last = self.people.catch_up(entry.connection).last
        own = self.inputs.plan.entry_of_person(worker)
        words = self.inputs.words[self.inputs.pool.place[item]]
        cost = None if own is None else own.tariff.cost(len(words))
        receipt = answers.submit(entry, key, worker, item, labels, self.ledger.tagset, cost)
        if receipt.repeated or receipt.status == "conflict":
            return receipt, None
        why = self._failure(worker, item, labels)
        if why and queries.read_fact(entry.connection, BAR, worker) is None:
            record(entry, BAR, worker, {"why": why})
            assignments.bar(entry, worker, barred=True)
        counts = int(receipt.counts)
        return receipt, NewAnswer(last + 1, item, worker, receipt.status, counts, receipt.cost)

    def assign(self, entry: Entry, worker: str) -> list[Lease]:
        """Return what a worker holds, or assign the next task."""
        seen = self.people.catch_up(entry.connection)
        idle, held = assignments.holding(entry, worker)
        if held:  # another request came first, perhaps in another process
            return held
        person, own = self.people[worker], self.inputs.plan.entry_of_person(worker)
        price = None
        if own is not None:
            if own.limit is not None and person.regular >= own.limit:
                return []
            price = Price(own.tariff.answer_micro, own.tariff.token_micro)
        if len(person.control) < self._due(worker, person.regular):
            questions = self._questions(entry.connection, worker, person)[:TRIES]
            if questions:
                idle = idle or new_worker(entry, worker)
                held = assignments.lease(
                    entry, worker, self.seconds, 1, questions, price=price, idle=idle
                )
            if held or len(person.control) < self._opening:
                return held
        family = self._family(entry.connection, worker, seen.n_judged)
        idle = idle or new_worker(entry, worker)
        held = assignments.lease(entry, worker, self.seconds, 1, None, family, price, idle)
        for lease in held:
            self._suggest(entry, worker, lease.item)
        return held

    def _suggest(self, entry: Entry, worker: str, item: str) -> None:
        """Decide what the worker sees of an item before the answer, and keep it."""
        if self.inputs.plan.page.suggest is None or item in self.inputs.control:
            return
        given = {one.worker: one.labels for one in own_answers(entry.connection, item)}
        one = suggestion_for(self.inputs.plan, item, worker, given)
        if one is not None:
            keep_suggestion(entry, one)

    def _family(self, connection: Connection, worker: str, n_judged: int) -> assignments.Family:
        """Return the worker's family: of the plan, or as last found and judged."""
        section = self.inputs.plan.aggregate
        n_judged = 0 if section.has_families else n_judged
        if (section.families, n_judged) != self._named[0]:
            judged = queries.read_records(connection, VERDICTS) if n_judged else {}
            names = families_of(self.inputs.plan, judged)
            self._named = (section.families, n_judged), names
        names = self._named[1]
        own = names.get(worker)
        if own is None:
            return assignments.NOBODY
        others = tuple(one for one, name in names.items() if name == own and one != worker)
        most = self.inputs.plan.redundancy.per_family
        most = 1 if most is None and section.has_families else most
        known = self._families.get(worker)
        if known is None or (known.others, known.most) != (others, most):
            known = self._families[worker] = assignments.Family(others, most)
        return known

    def is_ready(self) -> bool:
        """Whether the first round is open."""
        self._ready = self._ready or bool(self.ledger.records("picks"))
        return self._ready

    def is_at_an_end(self, worker: str) -> bool:
        """Whether a worker can get nothing more: the test is stuck, or all or their limit done."""
        own, control = self.inputs.plan.entry_of_person(worker), self.inputs.control
        with self.ledger.database.read() as connection:
            self.people.catch_up(connection)
            person = self.people[worker]
            if len(person.control) < self._opening:
                return not self._questions(connection, worker, person)
            passed = queries.passed(connection, worker) - control.keys()
        most = len(self.inputs.ids) - len(control) - len(passed)
        return person.regular >= min(most, own.limit if own and own.limit is not None else most)

    def is_practice(self, worker: str, item: str) -> bool:
        """Whether the right answer to an item is shown to the worker afterwards."""
        person, n = self.people[worker], self.inputs.plan.page.training
        if item not in self.inputs.control:
            return False
        if item in person.control:
            return person.control.index(item) < n
        return len(person.control) < n

    def _failure(self, worker: str, item: str, labels: Labels) -> str:
        """Return why a worker has failed the test with an answer that comes now, "" if not."""
        control, person = self.inputs.plan.control, self.people[worker]
        if control is None or not control.first or not control.least:
            return ""
        given = list(person.right)
        if item in self.inputs.control and item not in person.control:
            truth = self.inputs.control[item]
            given.append(score_test([truth], [labels], self.inputs.codec.encoding))
        start = self.inputs.plan.page.training
        test = given[start : start + control.first]
        found = TestScore(sum(one.right for one in test), sum(one.total for one in test))
        if len(test) < control.first or found.share >= control.least:
            return ""
        return f"{found.right} of {found.total} {FAILED_TEST}"

    def total(self, worker: str, regular: int) -> int:
        """Count a worker's answers after so many to other items, gold questions among them."""
        due = min(self._due(worker, regular), len(self.inputs.control))
        return regular + max(len(self.people[worker].control), due)

    @property
    def _opening(self) -> int:
        """Count the gold questions that come before everything else: practice and the test."""
        control = self.inputs.plan.control
        return 0 if control is None else self.inputs.plan.page.training + control.first

    def _due(self, worker: str, regular: int) -> int:
        """Count the gold questions due: after so many others, one in every stretch of 1 / share."""
        control = self.inputs.plan.control
        if control is None:
            return 0
        due = self._opening + self.people.tests(worker)
        others = round(1 / control.share) - 1 if control.share else None
        if others == 0:
            return due + regular + len(self.inputs.control)
        if others is not None:
            stretch, place = divmod(regular, others)
            drawn = hash64(f"{self.inputs.plan.seed}\0{worker}\0{stretch}") % others
            due += stretch + (place >= drawn)
        return due

    def _questions(self, connection: Connection, worker: str, person: Person) -> list[str]:
        """Order the gold questions that the worker has neither answered nor passed on."""
        seed = self.inputs.plan.seed
        seen = {*person.control, *queries.passed(connection, worker)}
        rest = [item for item in self.inputs.control if item not in seen]
        return sorted(rest, key=lambda item: hash64(f"{seed}\0{item}\0{worker}"))


# --------------------------------------------------------------------------------------------------
# A worker's actions: next task, answer, change, skip, report


def earned(plan: Plan, worker: str, micro: int) -> str | None:
    """Return what a worker has earned, as decimal text; None where their answers are not paid."""
    prices = getattr(plan.entry_of_person(worker), "tariff", plan.prices)
    is_paid = plan.is_paid and (micro or prices.answer_micro or prices.token_micro)
    return from_micro(micro) if is_paid else None


FLAG = "flag"
"""Kind of the records of items that workers found faulty."""
POLL, REST = 10, 60
"""Seconds after which a page asks again, and after which it does where nothing is expected."""
RECENT = 200
"""Answers of a session that a worker can go back to."""
MANY = 5_000
"""Items that are counted as still to come; where there are more, a page does not say how many."""
MINUTE = 60_000
"""Milliseconds; as long a count of what is still to come is kept."""
_SAID = {
    "accepted": "",
    "late": "Your answer came late, and counts.",
    "draft": "Your answer is kept, but does not count: {reason}.",
    "duplicate": "Your answer is kept, but does not count: {reason}.",
    "changed": "Your answer was changed.",
}
_NOT_KEPT = (
    "Your answer does not count: {reason}. An earlier one that does not count is kept; this one is "
    "not kept."
)
_FAILED = (
    "Too few of your answers to the first texts were right, so there are no more tasks for you "
    "in this campaign."
)
_NO_MORE = "There are no more tasks for you in this campaign."
_LEFT_OUT = "All texts have their answers, or others are at work on the last ones."
_ENOUGH = (
    "You have reached the most that one person can send in a day ({most} requests). Come back "
    "tomorrow; nothing that you were told is kept is lost."
)
Completion = Callable[[str], dict[str, Any] | None]
Result = TypeVar("Result")


class Work:
    """What workers do; every method gives the body of the answer to a page."""

    def __init__(
        self,
        inputs: CampaignInputs,
        ledger: SqlLedger,
        people: People,
        keys: Keys,
        clock: Callable[[], int],
        is_over: Callable[[], bool],
        took: Callable[[], None],
        completion: Completion = lambda _: None,
        live: Callable[[], Any] = lambda: None,
    ) -> None:
        self.inputs, self.ledger, self.people = inputs, ledger, people
        self.clock, self.is_over, self.took, self.completion = clock, is_over, took, completion
        self.live = live
        self.asking, self.tasks = Asking(inputs, ledger, people), Tasks(inputs, keys)
        self._counted: dict[str, tuple[int, int, int]] = {}
        self._outcomes, self._outcomes_lock = Counter[str](), threading.Lock()

    def outcomes(self) -> dict[str, int]:
        """Count the answers that were taken by this process, by what became of them."""
        with self._outcomes_lock:
            return dict(self._outcomes)

    def next(self, worker: str) -> dict[str, Any]:
        """Return the next task, or say why there is none."""
        lease = None if self.is_over() else self._next(worker)
        if lease is not None:
            practice = self.asking.is_practice(worker, lease.item)
            task = self.tasks.show(lease, practice=practice)
            task |= self._suggestion(worker, lease.item)
            # The page compares it with the date of the replies.
            task["expires"] += wall_of(self.clock)() - self.clock()
            return {"state": "task", "task": task, "me": self._me(worker)}
        known = self._counted.get(worker)
        if known is not None and known[2] > self.people[worker].regular - known[1]:
            del self._counted[worker]  # others were faster than it was counted on
        return {**self._without_task(worker), "me": self._me(worker)}

    def submit(self, worker: str, task: str, key: str, answer: Given) -> dict[str, Any]:
        """Take an answer; the same key again gives the same reply and changes nothing."""
        item = self.tasks.item(worker, task)
        labels = self.tasks.labels(item, answer)
        name = _key(worker, key)
        receipt, came = self._write(
            worker, lambda entry: self.asking.take(entry, name, worker, item, labels)
        )
        if receipt.status in {"conflict", CHANGED}:
            raise Refused("conflict", "Another answer was sent under this key.", 409)
        if came is not None:
            self.people.took(came, labels)
            self._count(receipt.status)
            self.took()
        said = _SAID[receipt.status]
        if receipt.reason and came is None and not self.ledger.is_sent(name):
            said = _NOT_KEPT
        return {
            "status": receipt.status,
            "message": said.format(reason=receipt.reason),
            "paid": earned(self.inputs.plan, worker, receipt.cost),
            "feedback": self._feedback(worker, item, labels),
        }

    def given(self, worker: str, since: int) -> dict[str, Any]:
        """Return the answers that a worker has given since they logged in, the last one first."""
        self.people.look()
        ids, recent = self.inputs.ids, self.people[worker].given[-RECENT:]
        found = self.ledger.own(worker, [str(ids[place]) for place in recent])
        with self.ledger.database.read() as connection:
            why_closed = self._closing(connection, worker, since, is_over=self.is_over())
        rows = [
            {"task": self._shown(worker, one.item)["id"], "open": not why_closed(one)}
            for one in reversed(found)
            if one.first >= since
        ]
        return {"answers": rows}

    def recall(self, worker: str, task: str, since: int) -> dict[str, Any]:
        """Return a task that a worker has answered, the answer, and why it is closed, if it is."""
        self.people.look()
        item, is_over = self.tasks.item(worker, task), self.is_over()
        with self.ledger.database.read() as connection:
            own = self._own(connection, worker, item)
            why = self._closing(connection, worker, since, is_over=is_over)(own)
        answer = self.tasks.answer(own.labels)
        return {"task": self._shown(worker, own.item), "open": not why, "why": why, **answer}

    def change(self, worker: str, task: str, key: str, answer: Given, since: int) -> dict[str, Any]:
        """Put another version of an answer in the place of the one that counts.

        The same key again gives the same reply and changes nothing.
        """
        item, name = self.tasks.item(worker, task), _key(worker, key)
        labels = self.tasks.labels(item, answer)
        self.people.look()
        tags, is_over = self.ledger.tagset, self.is_over()

        def act(entry: Entry) -> Receipt:
            # Looked at where it is changed: a round may close between two transactions.
            if not queries.is_sent(entry.connection, name):
                own = self._own(entry.connection, worker, item)
                why = self._closing(entry.connection, worker, since, is_over=is_over)(own)
                if why:
                    raise Refused("closed", f"{why} Your answer stays as you gave it.", 409)
            return answers.change(entry, name, worker, item, labels, tags)

        receipt = self._write(worker, act)
        if receipt.status != CHANGED:  # the key is that of another answer, or of a first version
            raise Refused("conflict", "Another answer was sent under this key.", 409)
        if not receipt.repeated:
            self._count(receipt.status)
            self.took()
        said = _SAID[receipt.status].format(reason=receipt.reason)
        return {"status": receipt.status, "message": said}

    def skip(self, worker: str, task: str, reason: str) -> dict[str, Any]:
        """Return a task back for good."""
        item = self.tasks.item(worker, task)
        self._write(worker, lambda entry: _pass(entry, worker, item, reason))
        return {"status": "skipped"}

    def flag(self, worker: str, task: str, key: str, reason: str, note: str) -> dict[str, Any]:
        """Keep that something is wrong with an item, and give it back for good.

        One report of a worker on an item is kept, the first.
        """
        sent, item = _key(worker, key), self.tasks.item(worker, task)
        facts = {"item": item, "worker": worker, "reason": reason, "note": note, "sent": sent}
        name = blake2b(f"{item}\0{worker}".encode(), digest_size=16).hexdigest()

        def act(entry: Entry) -> None:
            there = queries.read_fact(entry.connection, FLAG, name)
            if there is None:
                record(entry, FLAG, name, facts)
            elif there["sent"] == sent and there != facts:
                raise Refused("conflict", "Something else was sent under this key.", 409)
            _pass(entry, worker, item, reason)

        self._write(worker, act)
        return {"status": "flagged"}

    def release(self, worker: str, task: str) -> dict[str, Any]:
        """Return a task back for others."""
        item = self.tasks.item(worker, task)
        self._write(worker, lambda entry: assignments.release(entry, worker, item, ""))
        return {"status": "released"}

    def me(self, worker: str) -> dict[str, Any]:
        """Return what the worker has done, may still get, and has earned."""
        self.people.look()
        return self._me(worker)

    def _me(self, worker: str) -> dict[str, Any]:
        """Return the same without reading on."""
        person = self.people[worker]
        return {
            "done": person.counting,
            "total": self._total(worker, person),
            "earned": earned(self.inputs.plan, worker, person.earned),
            "currency": self.inputs.plan.prices.currency,
            "drafts": person.drafts,
        }

    def _count(self, outcome: str) -> None:
        with self._outcomes_lock:
            self._outcomes[outcome] += 1

    def _next(self, worker: str) -> Lease | None:
        try:
            return self.asking.next(worker, self.clock(), self._bound(worker))
        except BoundError as error:
            raise _enough(error) from None

    def _write(self, worker: str, act: Callable[[Entry], Result]) -> Result:
        """Do what a worker wants in one transaction, within what they may do in a day."""
        try:
            return self.ledger.transact(self.clock(), act, self._bound(worker))
        except BoundError as error:
            raise _enough(error) from None
        except FaultsError as error:
            raise Refused("invalid", f"The answer does not fit: {error}", 422) from None

    def _bound(self, worker: str) -> Bound:
        return Bound("writes", worker, self.inputs.daily_writes, wall_of(self.clock)())

    def _suggestion(self, worker: str, item: str) -> dict[str, Any]:
        """Return what is shown of an item before the answer; nothing if the item is blind."""
        if self.inputs.plan.page.suggest is None:
            return {}
        with self.ledger.database.read() as connection:
            one = read_suggestion(connection, worker, item)
        if one is None or not one.shown or one.labels is None:
            return {}
        found = self.tasks.answer(one.labels)
        return {} if found.get("label", "") is None else {"suggestion": found}

    def _own(self, connection: Connection, worker: str, item: str) -> CountedAnswer:
        found = queries.own(connection, worker, [item])
        if not found:
            raise Refused("unknown", "You have given no answer to this text that counts.", 404)
        return found[0]

    def _shown(self, worker: str, item: str) -> dict[str, Any]:
        """Return an item that was answered as the page shows tasks."""
        was = Lease(item, worker, (), taken=0, expires=0, cost=0)
        return self.tasks.show(was, practice=self.asking.is_practice(worker, item))

    def _closing(
        self, connection: Connection, worker: str, since: int, *, is_over: bool
    ) -> Callable[[CountedAnswer], str]:
        """Return what says why an answer can no longer be changed, "" if it can."""
        # When it came decides, not its item: gold questions, always open, close with the others.
        ended = is_over or queries.count_records(connection, ENDED) > 0
        barred = queries.is_barred(connection, worker)
        batch, opened = queries.last_batch(connection) or ("", 0)
        is_done = queries.read_fact(connection, "round", batch) is not None
        decided = decided_labels(queries.read_records(connection, GOLD))

        def why(own: CountedAnswer) -> str:
            if ended:
                return "The campaign has ended."
            if barred:
                return _NO_MORE
            if own.first < since:
                return "You gave this answer before you opened your link this time."
            if self.asking.is_practice(worker, own.item):
                return "This was practice, and you have seen the right answer."
            if own.item in decided:
                return "The requester has decided on this text."
            if is_done or own.first < opened:
                return "This text has all the answers that it needs."
            return ""

        return why

    def _total(self, worker: str, person: Person) -> int | None:
        """Count a worker's answers and what they may still get; None where nobody can know."""
        # Gold questions are counted before they come: the sum must not tell which they are.
        plan = self.inputs.plan
        if plan.redundancy.min != plan.redundancy.max or not self.asking.is_ready():
            return None
        now, known = self.clock(), self._counted.get(worker)
        if known is None or now - known[0] > MINUTE or person.regular < known[1]:
            known = now, person.regular, self._left(worker)
            self._counted[worker] = known
        left = known[2] - (person.regular - known[1])
        if known[2] >= MANY or left < 0:
            return None
        return self.asking.total(worker, person.regular + left)

    def _left(self, worker: str) -> int:
        """Count the items that a worker may still get: free, held, and not yet asked about."""
        plan = self.inputs.plan
        # When it ends, nobody knows then.
        endless = bool(plan.is_paid or plan.budget.hours is not None or plan.stop.rules)
        n_items = len(self.inputs.ids)
        return self.ledger.n_coming(worker, self.clock(), MANY, n_items, endless=endless)

    def _feedback(self, worker: str, item: str, labels: Labels) -> dict[str, Any] | None:
        if not self.asking.is_practice(worker, item):
            return None
        truth = self.inputs.control[item]
        return {"right": truth == labels, **self.tasks.answer(truth)}

    def _without_task(self, worker: str) -> dict[str, Any]:
        barred = self.people.why_barred(worker)
        if barred is not None:
            return self._done(worker, _FAILED if FAILED_TEST in barred else _NO_MORE)
        if self.is_over() or self.ledger.count(ENDED):
            thanks = self.inputs.plan.page.finished
            return self._done(worker, f"The campaign has ended. {thanks}".strip())
        if self.asking.is_at_an_end(worker):
            return self._done(worker, _NO_MORE)
        n = self.inputs.plan.redundancy
        if n.by == "rule" and n.min == n.max and not self._left(worker):
            return {**self._done(worker, _LEFT_OUT), "seconds": REST}  # one may be given back
        if self.ledger.is_paused:
            message = "The campaign is paused. You can stay on this page."
            return {"state": "paused", "seconds": POLL, "message": message}
        live = self.live()
        why = live.wait() if live and live.state in {"starting", "working"} else ""
        message = (
            f"{why or 'There is nothing to do at the moment'}. The page checks again by itself."
        )
        return {"state": "wait", "seconds": POLL, "message": message}

    def _done(self, worker: str, message: str) -> dict[str, Any]:
        """Tell a worker that there is nothing more, and what they have done."""
        me = self.me(worker)
        answers = "1 answer that counts" if me["done"] == 1 else f"{me['done']} answers that count"
        paid = f"You have given {answers}."
        if me["earned"] is not None:
            paid = f"For {answers} you get {me['earned']} {me['currency']}".strip() + "."
        said = f"{message} {paid}" if me["done"] else message
        return {"state": "done", "message": said, "completion": self.completion(worker)}


def _pass(entry: Entry, worker: str, item: str, reason: str) -> None:
    """Give an item back for good, also after its time is over."""
    why = reason.strip() or "no reason given"
    if not assignments.release(entry, worker, item, why):
        assignments.lease(entry, worker, 60, 1, [item])
        assignments.release(entry, worker, item, why)


def _enough(error: BoundError) -> Refused:
    """Word a bound that is reached for the worker."""
    if error.seconds:
        return Refused("daily", _ENOUGH.format(most=error.most), 429, retry=error.seconds)
    words = f"You have changed this answer {error.most} times: it stays as you last gave it."
    return Refused("closed", words, 409)


def _key(worker: str, key: str) -> str:
    """Return the key under which an answer is kept: nobody can take another's."""
    return f"web:{key}:{worker}"
