"""Workers and their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import bindparam, exists, func, select

from goldspan.crowd.questions import Questions
from goldspan.errors import Fault, FaultsError, InputError
from goldspan.protocols import Receipt
from goldspan.spans import Codec
from goldspan.store.assignments import expire_due
from goldspan.store.engine import BoundError
from goldspan.store.journal import Entry, canonical
from goldspan.store.people import SHOWN, Worker, find_worker, known_by, worker_of
from goldspan.store.schema import (
    answers,
    check_amount,
    check_name,
    is_name,
    items,
    leases,
    skips,
    slots,
    workers,
)

# --------------------------------------------------------------------------------------------------
# Answers: one that counts per worker and item, never more than places, each key once.


Labels = Sequence[Any] | Mapping[str, Any]
"""A label, or parts, per token; or what was answered by layer."""
WHAT = "a worker's id"
OFTEN = "you have answered this item already"
PASSED = "you have passed this item on"
FULL = "enough others have answered this item meanwhile"
BROKE = "the budget is used up"
BARRED = "you are asked no more in this campaign"
OTHER = "another answer was sent under this key"
MOST_CHANGES = 20
"""Changes of one answer that are kept."""
CHANGED = "changed"
"""Status of an answer that took the place of an earlier one of the same worker."""
_KEPT = ["draft", "duplicate"]
"""Of answers that are kept and do not count."""


# Statements of the short transactions are built once.
_BEFORE = (
    select(answers, items.c.id.label("item_id"), SHOWN.label("worker_id"))
    .join(items, items.c.number == answers.c.item)
    .join(workers, workers.c.number == answers.c.worker)
    .where(answers.c.key == bindparam("sent"))
)
_ITEM = (
    select(
        items.c.number,
        items.c.cost,
        items.c.n_tokens,
        (slots.c.places - slots.c.leased - slots.c.filled).label("free"),
    )
    .join(slots)
    .where(items.c.id == bindparam("name"))
)
_MINE = (answers.c.item == bindparam("number")) & (answers.c.worker == bindparam("who"))
_LEASE = (leases.c.item == bindparam("number")) & (leases.c.worker == bindparam("who"))
_END = leases.delete().where(_LEASE)
_COUNTS = select(*(answers.c[name] for name in ("number", "cost", "started", "submitted"))).where(
    _MINE & (answers.c.counts == 1)
)
_OTHERS = select(answers.c.number).where(
    _MINE & answers.c.status.in_(bindparam("kinds", expanding=True))
)
_REPLACE = answers.update().where(answers.c.number == bindparam("before")).values(counts=0, cost=0)
_SKIPPED = select(skips.c.item).where(
    (skips.c.item == bindparam("number")) & (skips.c.worker == bindparam("who"))
)
_LAST = select(func.max(answers.c.number))
# What an answer is decided by, in one row: its lease, whether one counts already, the last number.
_STATE = select(
    *(select(leases.c[name]).where(_LEASE).scalar_subquery().label(name)
      for name in ("taken", "cost")),
    exists(_COUNTS).label("has_one"),
    func.coalesce(_LAST.scalar_subquery(), 0).label("last"),
)  # fmt: skip
_FILL = (
    slots.update()
    .where(slots.c.item == bindparam("number"))
    .values(filled=slots.c.filled + 1, leased=slots.c.leased - bindparam("held"))
)


class Sent(NamedTuple):
    """An answer as it was sent: labels in canonical JSON."""

    key: str
    worker: str
    item: str
    labels: str


def submit(
    entry: Entry, key: str, worker: str, item: str, labels: Labels, tagset: Codec | Questions,
    cost: int | None = None,
) -> Receipt:  # fmt: skip
    """Take an answer, and pay for it if it counts: what was reserved, or `cost`."""
    # Of the answers of a worker to an item that do not count, the first is kept
    if cost is not None:
        check_amount(cost, "the cost of an answer")
    key = _kept_key(entry, key, worker)
    sent = Sent(key, worker, item, canonical(plain_labels(labels)))
    before = _replay(entry, sent)
    if before is not None:
        return before
    named = {"name": item}
    row = entry.connection.execute(_ITEM, named).one_or_none() if is_name(item) else None
    if row is None:
        raise FaultsError([Fault("is in no batch: open one first", item=item)])
    check_labels(labels, row.n_tokens, item, worker, tagset)
    if expire_due(entry):  # places may have become free just now
        row = entry.connection.execute(_ITEM, named).one()
    return _decide(entry, sent, row, worker_of(entry, worker), cost)


def change(
    entry: Entry, key: str, worker: str, item: str, labels: Labels, tagset: Codec | Questions
) -> Receipt:
    """Put another version of an answer in the place of the one that counts; pay nothing more."""
    key = _kept_key(entry, key, worker)
    sent = Sent(key, worker, item, canonical(plain_labels(labels)))
    replayed = _replay(entry, sent)
    if replayed is not None:
        return replayed
    row = entry.connection.execute(_ITEM, {"name": item}).one_or_none() if is_name(item) else None
    person = find_worker(entry, worker)
    before = None
    if row is not None and person is not None:
        mine = {"number": row.number, "who": person.number}
        before = entry.connection.execute(_COUNTS, mine).one_or_none()
    if row is None or person is None or before is None:
        message = "has no answer of this worker that counts: submit one first"
        raise FaultsError([Fault(message, item=item, worker=worker)])
    check_labels(labels, row.n_tokens, item, worker, tagset)
    if len(entry.connection.execute(_OTHERS, {**mine, "kinds": [CHANGED]}).all()) >= MOST_CHANGES:
        raise BoundError(f"an answer can be changed {MOST_CHANGES} times", MOST_CHANGES)
    # The version that counts keeps the seconds of the first one: those are what was worked.
    started = before.started
    if started >= 0:
        started = max(0, entry.clock - (before.submitted - started))
    last = entry.connection.execute(_LAST).scalar_one()
    body = {"number": last + 1, "key": key, "item": row.number, "worker": person.number}
    body |= {"labels": sent.labels, "before": before.number, "cost": before.cost}
    entry.log("change", {**body, "started": started})
    return Receipt(key, CHANGED)


def plain_labels(labels: Labels) -> Any:
    """Return labels as they are kept: a list, or by layer."""
    return dict(labels) if isinstance(labels, Mapping) else list(labels)


def check_labels(
    labels: Labels, n_tokens: int, item: str, worker: str, tagset: Codec | Questions
) -> None:
    """Check that labels fit an item."""
    faults = []
    if isinstance(tagset, Questions):
        try:
            if tagset.clean(labels, n_tokens) == labels:
                return
            message = "must be an answer in the form of `Questions.clean`"
        except InputError as error:
            message = error.message
        raise FaultsError([Fault(message, item=item, worker=worker, kind="layers")])
    if isinstance(labels, str) or len(labels) != n_tokens:
        message = f"needs a list of {n_tokens} labels, one per token, not {labels!r}"
        faults.append(Fault(message, item=item, worker=worker, kind="length"))
    else:
        known = ", ".join(tagset.tags)
        every = [
            (n, part)
            for n, label in enumerate(labels)
            for part in ([one[1] for one in label] if isinstance(label, list) else [label])
        ]
        for n, label in every:
            if not isinstance(label, str | None) or label not in tagset.index:
                message = f"label {label!r} is not in the tag set: {known}"
                faults.append(Fault(message, item=item, token=n, worker=worker, kind="tag"))
    if faults:
        raise FaultsError(faults)


def put_answer(entry: Entry, body: Mapping[str, Any]) -> None:
    """Write an answer, end its lease and settle the money."""
    # `reserved` is there where the answer costs something else than was reserved for it
    item, worker, cost = body["item"], body["worker"], body["cost"]
    leased = body["status"] == "accepted"
    counts = leased or body["status"] == "late"
    row = {"submitted": entry.clock, "counts": int(counts)}
    kept = {name: value for name, value in body.items() if name != "reserved"}
    entry.connection.execute(answers.insert(), {**kept, **row})
    if leased:
        entry.connection.execute(_END, {"number": item, "who": worker})
        entry.balance.reserved -= body.get("reserved", cost)
    if counts:
        entry.balance.spent += cost
        entry.connection.execute(_FILL, {"number": item, "held": int(leased)})


def put_change(entry: Entry, body: Mapping[str, Any]) -> None:
    """Write another version of an answer; the places and the money stay what they are."""
    entry.connection.execute(_REPLACE, {"before": body["before"]})
    row = {name: value for name, value in body.items() if name != "before"}
    row |= {"status": CHANGED, "reason": "", "submitted": entry.clock, "counts": 1}
    entry.connection.execute(answers.insert(), row)


def _kept_key(entry: Entry, key: str, worker: str) -> str:
    """Return the key under which an answer is kept: a pseudonym in place of an id at its end."""
    check_name(key, "the key of an answer")
    if not entry.private or not key.endswith(f":{worker}"):
        return key
    return f"{key.removesuffix(worker)}{known_by(entry, check_name(worker, WHAT))}"


def _replay(entry: Entry, sent: Sent) -> Receipt | None:
    """Return the reply to a key that was sent before: the same, also if the answer was changed."""
    row = entry.connection.execute(_BEFORE, {"sent": sent.key}).one_or_none()
    if row is None:
        return None
    if (row.worker_id, row.item_id, row.labels) != sent[1:]:
        return Receipt(sent.key, "conflict", reason=OTHER)
    cost = 0
    if row.status in {"accepted", "late"}:
        mine = {"number": row.item, "who": row.worker}
        cost = entry.connection.execute(_COUNTS, mine).one().cost
    return Receipt(sent.key, row.status, cost, row.reason, repeated=True)


def _decide(entry: Entry, sent: Sent, item: Any, worker: Worker, price: int | None) -> Receipt:
    mine = {"number": item.number, "who": worker.number}
    state = entry.connection.execute(_STATE, mine).one()
    status, reason, reserved = "accepted", "", state.cost
    if state.has_one:
        status, reason = "duplicate", OFTEN
    elif reserved is None:
        status, reason = _without_lease(entry, item, worker, item.cost if price is None else price)
    cost = item.cost if reserved is None else reserved
    if price is not None:  # a model may have used more than was thought possible
        cost = min(price, (reserved or 0) + entry.balance.left)
    receipt = Receipt(sent.key, status, cost if not reason else 0, reason)
    if reason and entry.connection.execute(_OTHERS, {**mine, "kinds": _KEPT}).first() is not None:
        return Receipt(sent.key, status, 0, reason, repeated=True)
    body = {"number": state.last + 1, "key": sent.key, "item": item.number, "worker": worker.number}
    body |= {"labels": sent.labels, "status": status, "reason": reason, "cost": receipt.cost}
    body["started"] = -1 if reserved is None else state.taken
    is_other = status == "accepted" and reserved != cost
    entry.log("submit", body | ({"reserved": reserved} if is_other else {}))
    return receipt


def _without_lease(entry: Entry, item: Any, worker: Worker, cost: int) -> tuple[str, str]:
    if worker.barred:
        return "draft", BARRED
    mine = {"number": item.number, "who": worker.number}
    if entry.connection.execute(_SKIPPED, mine).first() is not None:
        return "draft", PASSED
    if item.free <= 0:
        return "draft", FULL
    return ("draft", BROKE) if cost > entry.balance.left else ("late", "")
