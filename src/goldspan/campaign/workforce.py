"""The sources "mixed" and "web": models, functions and taggers that answer at once, and people.

In every wave annotators that answer at once are asked first, whoever costs least before the others;
people in the browser take the places that are left. Whom to ask about what is kept in the ledger
before anybody is asked, so that a campaign that was killed goes on with the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import finalize

import numpy as np
import pyarrow as pa

from goldspan._arrays import hash64
from goldspan.aggregation.machines import KINDS as MODELS
from goldspan.annotators.base import KINDS, AnnotationTask, Annotator, Estimate, open_annotator
from goldspan.annotators.labelling import answers_of_rows
from goldspan.annotators.python import Batched
from goldspan.campaign.clock import open_clock
from goldspan.campaign.crowds import (
    LEASE_SECONDS,
    AnsweringCrowd,
    is_over,
    offers_of_somebody,
    people_awaited,
    whom_to_ask,
)
from goldspan.campaign.plan import NAMES, PEOPLE
from goldspan.campaign.protocols import Offers
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.protocols import Price
from goldspan.simulation.crowd import BEGIN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from goldspan.annotators.base import ItemAnswer
    from goldspan.campaign.inputs import CampaignInputs
    from goldspan.campaign.protocols import OnEvent, Waiting
    from goldspan.protocols import PoolItem
    from goldspan.store import SqlLedger

ASKED = "asked"
"""Kind of the records of whom to ask about what, by wave."""
MODEL = "annotator"
"""Kind of the records of what annotators are: kind, family, model, hash of the prompt."""


def task_of(inputs: CampaignInputs, *, send_text: bool) -> AnnotationTask:
    """Return what the annotators of a campaign are asked."""
    items = {item.id: item for item in inputs.items() if item.id in inputs.control}
    replies, task = inputs.folder / inputs.plan.crowd.replies, inputs.plan.task
    of_layers = (f"{one.name}: {one.instructions}" for one in task.layers if one.instructions)
    return AnnotationTask(
        inputs.codec,
        "\n\n".join([inputs.guideline, *of_layers]),
        tuple((items[name], known) for name, known in inputs.control.items()),
        inputs.folder,
        replies if send_text or replies.is_dir() else None,
        send_text,
        answers=replies,
        allow_code=inputs.allow_code,
        questions=task.questions,
    )


class Expected(NamedTuple):
    """What an annotator would do and cost if it were asked about everything."""

    id: str  # Its name among the workers
    kind: str
    family: str  # Its family; "" for none
    estimate: Estimate  # Answers, tokens and money
    probe: bool = False  # Whether its answers count for nothing


def expected(inputs: CampaignInputs) -> list[Expected]:
    """Estimate what every annotator of the plan would cost; nothing is sent."""
    task = task_of(inputs, send_text=False)
    items = [item for item in inputs.items() if item.id not in inputs.control]
    found = []
    for entry in inputs.plan.workforce:
        if entry.kind in KINDS:
            with open_annotator(entry, task, load=False) as machine:
                estimate = machine.estimate(items[: entry.limit])
                one = Expected(entry.id, entry.kind, machine.family, estimate, entry.probe)
                found.append(one)
    return found


def dearest_first(inputs: CampaignInputs, items: Sequence[PoolItem]) -> NDArray[np.int64]:
    """Return the most that answers cost, millionths, int64 [n, n_items]: the n dearest workers."""
    # They are as many as an item can get answers, or all; limits of workers are not looked at
    task, most = task_of(inputs, send_text=False), inputs.plan.redundancy.max
    n_tokens = [len(item.tokens) for item in items]
    tariffs = Counter[Any]()
    rows: list[list[int]] = []
    for entry in inputs.plan.workforce:
        if entry.kind in KINDS and not entry.probe:
            with open_annotator(entry, task, load=False) as machine:
                rows.append([machine.most(item) for item in items])
        elif entry.kind == PEOPLE:  # without names there is no end of them
            tariffs[entry.tariff] += len(entry.options.get(NAMES, range(most)))
    for tariff, n in tariffs.items():
        rows += [[tariff.cost(n_of) for n_of in n_tokens]] * min(n, most)
    return -np.sort(-np.array(rows, np.int64).reshape(-1, len(items)), axis=0)


class Workforce(AnsweringCrowd):
    """Annotators that answer at once, and people in a browser if the plan has any."""

    def __init__(
        self, inputs: CampaignInputs, ledger: SqlLedger, now: Callable[[], int] | None = None, *,
        load: bool = True,  # Whether code and models are loaded at once, or by the first label
    ) -> None:  # fmt: skip
        super().__init__(inputs, ledger)
        self._clock, self._skipped = now, dict[str, set[str]]()
        self.has_people = inputs.plan.crowd.is_served
        self.machines, self.probes = dict[str, Annotator](), Probes(inputs, ledger)
        if inputs.plan.workforce:
            stack, task = ExitStack(), task_of(inputs, send_text=inputs.plan.crowd.send_text)
            finalize(self, stack.close)
            for entry in inputs.plan.workforce:
                if entry.kind in KINDS:
                    kept = self.probes.models if entry.probe else self.machines
                    opened = open_annotator(entry, task, load=load)
                    kept[entry.id] = stack.enter_context(opened)

    def now(self) -> int:
        """Return the campaign's time: without people it is that which the answers took."""
        if not self.has_people:
            return self._last if self._seconds else super().now()
        if self._clock is None:
            self._clock = open_clock(self.ledger)
        return self._clock()

    def collect(
        self, name: str, items: Sequence[str], on_event: OnEvent = lambda _: None
    ) -> Waiting | None:
        """Ask the annotators that answer at once, then say what people are waited for."""
        self._on_event = on_event
        if self.has_people:
            self.ledger.expire(self.now())
        if not (self.has_people and is_over(self.inputs, self.ledger, self.now())):
            # Probes first: what people see later cannot depend on it
            self.probes.ask(items, lambda: self._items, self.now())
            if self.machines:
                self._ask_machines(name, items)
        if not self.has_people:
            return None
        return people_awaited(self.inputs, self.ledger, items, self.now())

    def _ask_machines(self, name: str, items: Sequence[str]) -> None:
        """Ask in passes: what has no answer, and money that was reserved, is for the next one."""
        whom = whom_to_ask(self.ledger, name)
        before: Mapping[str, Sequence[str]] = {}
        for number in count(1):
            key = f"{name}.{number}"
            self._read()
            kept = self.ledger.records(ASKED).get(key)
            asks = self._choose(items, whom) if kept is None else kept["items"]
            if not asks or (kept is None and asks == before):  # nobody took them: no place, money
                return
            if kept is None:
                self._tell_models()
                body = {"items": asks, **({"begin": self.now()} if self._seconds else {})}
                self.ledger.record(ASKED, key, body, self.now())
            self._begin = self.ledger.records(ASKED)[key].get("begin", 0)
            # Who is done first comes first: the ledger's time never goes back
            took = {w: len(names) * self._seconds.get(w, 0.0) for w, names in asks.items()}
            for worker in sorted(asks, key=took.__getitem__):
                self._ask(worker, asks[worker])
            before = asks

    @cached_property
    def _seconds(self) -> dict[str, float]:
        """What an answer of each takes, if the plan says it of anybody: they work side by side."""
        known = {"simulated", "replay"}  # the others answer at once
        own = {w: x.options.seconds for w, x in self.machines.items() if x.entry.kind in known}
        if self.has_people or not any(own.values()):
            return {}
        usual = {w: seconds or self.inputs.plan.crowd.seconds for w, seconds in own.items()}
        return {**dict.fromkeys(self.machines, 0.0), **usual}

    @cached_property
    def _last(self) -> int:
        """When the last answer was given."""
        given = self.ledger.crowd().latest.submitted
        return BEGIN if given is None else int(given.max(initial=BEGIN))

    def _read(self) -> None:
        super()._read()
        self._skipped = {worker: self.ledger.skipped_by(worker) for worker in self.machines}

    def _tell_models(self) -> None:
        """Write into the log what the annotators are; a changed model or prompt is another line."""
        for worker, machine in self.machines.items():
            facts = {k: v for k, v in machine.facts().items() if k in {"model", "prompt"}}
            facts |= {"worker": worker, "kind": machine.entry.kind, "family": machine.family}
            name = f"{worker}:{hash64(repr(sorted(facts.items()))) % 16**8:08x}"
            if name not in self.ledger.records(MODEL):
                self.ledger.record(MODEL, name, facts, self.now())

    # Who is asked about what: the free places of the items, in their order, as far as there is
    # money for the most that the answers can cost.

    def _choose(
        self, items: Sequence[str], whom: Mapping[str, Sequence[str]]
    ) -> dict[str, list[str]]:
        """Choose items for every annotator."""
        rows = {row["item"]: row for row in self.ledger.slots().to_pylist()}
        left, asks = self.ledger.totals().left, dict[str, list[str]]()
        for item in items:
            row = rows[item]
            free = row["wanted"] - row["leased"] - row["filled"]
            for worker, cost in self._order(item, whom.get(item), asks) if free > 0 else ():
                if free > 0 and cost <= left and self._may(worker, asks.get(worker, ())):
                    asks.setdefault(worker, []).append(item)
                    free, left = free - 1, left - cost
        found = {}
        for worker in self.machines:
            if worker in asks:
                known = self._due(worker, len(asks[worker]))
                found[worker] = [*known, *asks[worker]]
        return found

    def _may(self, worker: str, more: Sequence[str]) -> bool:
        """Whether an annotator may give another answer besides some that are chosen."""
        limit = self.machines[worker].entry.limit
        return limit is None or len(self._asked.get(worker, ())) + len(more) < limit

    def offers(self, items: Sequence[str]) -> Offers:
        """Return the answers about items that can be bought now."""
        people = self.has_people
        found = offers_of_somebody(self.inputs, self.ledger, items) if people else Offers()
        if not self.machines:
            return found
        self._read()
        found.models.update(w for w, one in self.machines.items() if one.entry.kind in MODELS)
        found.seconds.update(dict.fromkeys(self.machines, 0.0) if people else self._seconds)
        for worker, machine in self.machines.items():
            limit = machine.entry.limit
            if limit is not None:
                found.room[worker] = limit - len(self._asked.get(worker, ()))
            for item in items if worker not in self._barred else ():
                if self._can(worker, item):
                    found.add(item, worker, self._most(worker, item))
        return found

    def _order(
        self, item: str, chosen: Sequence[str] | None, asks: Mapping[str, Sequence[str]]
    ) -> Iterator[tuple[str, int]]:
        """Yield who can be asked about an item, and the most that it costs: the cheapest first."""
        # Whom the round chose are asked alone: others lost the comparison
        if chosen is not None:
            for worker in chosen:
                if (
                    worker in self.machines
                    and worker not in self._barred
                    and self._can(worker, item)
                ):
                    yield worker, self._most(worker, item)
            return
        able = [
            worker
            for worker in self._shuffled(self.machines, lambda worker: f"{item}\0{worker}")
            if worker not in self._barred and self._can(worker, item)
        ]
        costs = {worker: self._most(worker, item) for worker in able}
        there = {self._families.get(w) for w, had in self._asked.items() if item in had} - {None}
        later = []
        rank: Mapping[str, float] = costs
        if self.inputs.plan.value.mistake_micro:
            # A first round is to learn who is worth it: it spends as much on everybody
            hour = self.inputs.plan.prices.hour_micro / 3600 / max(1, len(able))
            given = {w: 1 + len(self._asked.get(w, ())) + len(asks.get(w, ())) for w in able}
            rank = {w: n * (costs[w] + hour * self._seconds.get(w, 0.0)) for w, n in given.items()}
        for worker in sorted(able, key=rank.__getitem__):
            family = self._families.get(worker)
            if family is not None and family in there:
                later.append(worker)
                continue
            there.add(family)
            yield worker, costs[worker]
        for worker in later if not self.has_people else ():
            yield worker, costs[worker]

    def _due(self, worker: str, n: int) -> list[str]:
        """Return the gold questions that are due with n more answers."""
        # An annotator that is shown some of them as examples is asked none
        control, own = self.inputs.plan.control, self.machines[worker]
        if control is None or getattr(own.options, "examples", False):
            return []
        order = self._shuffled(self.inputs.control, lambda item: f"{item}\0{worker}")
        done = sum(item in self._asked.get(worker, ()) for item in order)
        n_regular = len(self._asked.get(worker, ())) - done + n
        due = control.first + int(control.share * n_regular) - done
        return [item for item in order if not self._had(worker, item)][: max(0, due)]

    def _can(self, worker: str, item: str) -> bool:
        """Whether an annotator can be asked about an item, and has not been."""
        return not self._had(worker, item) and self.machines[worker].knows(self._items[item])

    def _had(self, worker: str, item: str) -> bool:
        return item in self._asked.get(worker, ()) or item in self._skipped[worker]

    def _most(self, worker: str, item: str) -> int:
        return self.machines[worker].most(self._items[item])

    @cached_property
    def _items(self) -> dict[str, PoolItem]:
        return {item.id: item for item in self.inputs.items()}

    # Asking: the most that answers can cost is reserved, what they cost is paid.

    def _ask(self, worker: str, names: Sequence[str]) -> None:
        """Ask an annotator about items, as far as places and money are still there."""
        had = {item for item in names if self._had(worker, item)}
        open_ = [] if worker in self._barred else [item for item in names if item not in had]
        held = [item for item in open_ if self._hold(worker, item)]
        waiting, place = dict.fromkeys(held), {item: n for n, item in enumerate(names, 1)}
        try:
            for batch in self._batches(worker, [n for n in names if n in had or n in waiting], had):
                for answer in self.machines[worker].label([self._items[item] for item in batch]):
                    if answer.item in waiting:
                        self._keep(worker, answer, place[answer.item])
                        del waiting[answer.item]
        except InputError:
            if self.has_people:  # who may take the places until it works again
                for item in waiting:
                    self.ledger.release(worker, item, self.now())
            raise

    def _batches(
        self, worker: str, names: Sequence[str], had: Collection[str]
    ) -> Iterator[Sequence[str]]:
        """Yield what to work on at once: the same after a break, if answers depend on a batch."""
        machine = self.machines[worker]
        if not isinstance(machine, Batched):
            yield [item for item in names if item not in had]
            return
        for start in range(0, len(names), machine.batch):
            batch = names[start : start + machine.batch]
            if any(item not in had for item in batch):
                yield batch

    def _hold(self, worker: str, item: str) -> bool:
        price = Price(self._most(worker, item))
        return bool(self.ledger.lease(worker, self.now(), LEASE_SECONDS, 1, [item], price=price))

    def _keep(self, worker: str, answer: ItemAnswer, n: int) -> None:
        """Keep the n-th answer of a pass and pay for it; if there is none, give the place back."""
        item = answer.item
        labels = answer.labels(self.inputs.codec, len(self._items[item].tokens))
        if labels is None:
            why = answer.missing[:200]
            self.ledger.release(worker, item, self.now(), why, cost=answer.cost)
            self._skipped[worker].add(item)
            return
        given = self.now() if self.has_people else self._time_after(self._n_answers + 1)
        if self._seconds:
            done = self._begin + round(1000 * n * self._seconds[worker])
            self._last = given = max(self._last, done)
        self._submit(worker, item, labels, given, answer.cost)


def described(one: Expected, unit: str, amount: Callable[[int], Any]) -> str:
    """Return what an annotator would do and cost, in words."""
    estimate = one.estimate
    kin = f", family {one.family}" if one.family else ""
    kin += ", a probe" if one.probe else ""
    words = f"worker {one.id} ({one.kind}{kin}): up to {estimate.answers} answers"
    if one.kind == "llm":
        words += (
            f", about {estimate.input_tokens} tokens sent and {estimate.output_tokens} received"
        )
    if not estimate.most_micro:
        return f"{words}, at no price"
    most = f"{amount(estimate.most_micro)}{unit}"
    if estimate.expected_micro == estimate.most_micro:
        return f"{words}, for {most}"
    return f"{words}, for about {amount(estimate.expected_micro)}{unit}, {most} at most"


# --------------------------------------------------------------------------------------------------
# Probes: models that label silently, by whose mistakes people who paste them are found.
#
# What a probe answers is kept in records of the ledger. It takes no place, counts for no label and
# no number of answers; what it costs is paid out of the budget like anything else.

PROBED = "probed"
"""Kind of the records of what probes answered."""
AT_ONCE = 200
"""Items of a record."""


class Probes:
    """The probes of a plan, asked about the items of a round before anybody else."""

    def __init__(self, inputs: CampaignInputs, ledger: SqlLedger) -> None:
        self.inputs, self.ledger = inputs, ledger
        self.models: dict[str, Annotator] = {}
        self._seen: dict[str, list[str]] | None = None

    def ask(
        self, items: Sequence[str], pool: Callable[[], Mapping[str, PoolItem]], now: int
    ) -> None:
        """Ask about items that were not asked about, gold questions before them, and pay."""
        # Asked again after a break, nothing is paid twice
        if not self.models:
            return
        if self._seen is None:
            self._seen = self._settled(now)
        for name, model in self.models.items():
            seen = self._seen.setdefault(name, [])
            known = set(seen)
            control = () if getattr(model.options, "examples", False) else self.inputs.control
            wanted = [item for item in dict.fromkeys((*control, *items)) if item not in known]
            limit = model.entry.limit
            while part := wanted[: AT_ONCE if limit is None else min(AT_ONCE, limit - len(seen))]:
                part = self._payable(model, [pool()[item] for item in part])
                if not part:
                    return
                self._keep(name, model, part, now)
                seen += [item.id for item in part]
                wanted = wanted[len(part) :]

    def _payable(self, model: Annotator, items: Sequence[PoolItem]) -> list[PoolItem]:
        """Return as many items as there is money for the most that they can cost."""
        left, found = self.ledger.totals().left, []
        for item in items:
            left -= model.most(item)
            if left < 0:
                break
            found.append(item)
        return found

    def _keep(self, name: str, model: Annotator, items: Sequence[PoolItem], now: int) -> None:
        labels: dict[str, list[str | None] | None] = {}
        cost = 0
        for answer, item in zip(model.label(items), items, strict=True):
            labels[item.id] = answer.labels(self.inputs.codec, len(item.tokens))
            cost += answer.cost
        facts = {k: v for k, v in model.facts().items() if k in {"model", "prompt"}}
        body: dict[str, Any] = {
            "probe": name,
            "kind": model.entry.kind,
            "family": model.family,
            **facts,
        }
        body |= {"labels": labels, "cost": min(cost, self.ledger.totals().left)}
        n = sum(one["probe"] == name for one in self.ledger.records(PROBED).values())
        key = f"{name}:{n + 1}"
        self.ledger.record(PROBED, key, body, now)
        self._pay(key, body["cost"], now)

    def _pay(self, key: str, cost: int, now: int) -> None:
        """Pay what a record cost, once."""
        if cost:
            self.ledger.charge(f"probe:{key}", cost, now)

    def _settled(self, now: int) -> dict[str, list[str]]:
        """Read what was asked, and pay what a break kept from being paid."""
        seen: dict[str, list[str]] = {}
        last: dict[str, tuple[str, int]] = {}
        for key, one in self.ledger.records(PROBED).items():
            seen.setdefault(one["probe"], []).extend(one["labels"])
            last[one["probe"]] = key, one["cost"]
        for key, cost in last.values():
            self._pay(key, cost, now)
        return seen


def probes_of(ledger: SqlLedger, crowd: Crowd) -> Crowd | None:
    """Return the answers of probes to the items of a crowd, as a crowd; None without any."""
    rows = list(ledger.records(PROBED).values())
    if not rows:
        return None
    place = {name: n for n, name in enumerate(crowd.item_ids.to_pylist())}
    names = list(dict.fromkeys(row["probe"] for row in rows))
    found: list[tuple[int, int, list[Any], int]] = [
        (place[item], names.index(row["probe"]), labels, 0)
        for row in rows
        for item, labels in row["labels"].items()
        if item in place and labels is not None
    ]
    found.sort(key=lambda one: one[:2])
    answers = answers_of_rows(found, crowd.tagset, has_cost=False)
    return Crowd(
        item_ids=crowd.item_ids,
        tokens=crowd.tokens,
        worker_ids=pa.array(names, pa.string()),
        tagset=crowd.tagset,
        answers=answers,
    )
