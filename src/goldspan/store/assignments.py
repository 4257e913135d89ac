"""Assignments: which items a worker gets next, and for how long (table `leases`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    case,
    exists,
    func,
    literal_column,
    or_,
    select,
    text,
    union_all,
)

from goldspan.errors import InputError
from goldspan.protocols import Lease, Price
from goldspan.store.journal import Entry, read_json
from goldspan.store.people import Worker, find_worker, is_worker, keep_reason, new_worker, worker_of
from goldspan.store.pool import FEW, look_back, numbers_of
from goldspan.store.schema import (
    FREE,
    Whole,
    answers,
    check_amount,
    gold,
    items,
    leases,
    people,
    skips,
    slots,
    workers,
)

# --------------------------------------------------------------------------------------------------
# Which items a worker gets next: the first free places in the order of batches and priorities.


WINDOW = 32
"""Places looked at in one query."""
MOST_PASSED = 64
"""Items that cost more than what is left, or that others of the family have answered, and that are
passed before the search is given up."""


_HAD = or_(
    *(
        exists().where(and_(table.c.item == slots.c.item, table.c.worker == bindparam("who")))
        for table in (answers, leases, skips)
    )
)
_KNOWN = exists().where(and_(gold.c.item == slots.c.item, gold.c.control == literal_column("1")))
# Free places: has the worker `who` had the item, is it a control one?
_FREE_PLACES = (
    select(
        slots.c.item,
        slots.c.position,
        items.c.cost,
        items.c.n_tokens,
        _HAD.label("had"),
        _KNOWN.label("control"),
    )
    .join(items, items.c.number == slots.c.item)
    .where(text(FREE))
)
_THESE = _FREE_PLACES.where(slots.c.item.in_(bindparam("numbers", expanding=True)))
_WINDOW = (
    _FREE_PLACES.where(slots.c.position >= bindparam("start"))
    .order_by(slots.c.position)
    .limit(bindparam("size"))
)
_LOOKS = select(workers.c.number, workers.c.cursor).where(is_worker()).cte("looks")
_WHO = select(_LOOKS.c.number).scalar_subquery()
_START = func.coalesce(select(_LOOKS.c.cursor).scalar_subquery(), 0)
_CONTROL = select(gold.c.item).where(gold.c.control == literal_column("1"))
# Gold questions, and what the worker has had: looked up, since there is much more that he has not.
_NOT_HIS = union_all(
    *(select(table.c.item).where(table.c.worker == _WHO) for table in (answers, leases, skips)),
    _CONTROL,
)
_HOLDS = (leases.c.worker == _WHO) & (leases.c.expires > bindparam("now"))
_ABOUT = select(
    _START.label("start"),
    select(func.count())
    .where((slots.c.position >= _START) & text(FREE), slots.c.item.in_(_NOT_HIS))
    .scalar_subquery()
    .label("not_his"),
    select(func.count())
    .where(_HOLDS, leases.c.item.not_in(_CONTROL))
    .scalar_subquery()
    .label("held"),
    select(func.count()).select_from(slots).scalar_subquery().label("n_slots"),
)
_OPEN = (slots.c.position >= bindparam("start")) & text(FREE)
_N_OPEN = select(func.count()).select_from(
    select(slots.c.position).where(_OPEN).limit(bindparam("size")).subquery()
)


# What other members of a worker's family have answered or hold.


HOUR = 3_600_000
"""Milliseconds."""
LATEST = 200
"""Answers by which it is known who is at work."""
AHEAD = (WINDOW, 2_000)
"""Free places looked at for one that none of the family has answered; more if there is none."""


@dataclass
class Family:
    """A worker's family, as far as it matters for what he gets next.

    A copy of an answer costs money and adds nothing: of the items with free places he gets one that
    no other member has answered or holds, if there is any.
    """

    others: tuple[str, ...]  # Ids of its other members
    # Members whose answers an item takes, as long as anybody else at work could answer it
    most: int | None = None
    ahead: int = -1  # Where in the order of items it is looked first


NOBODY = Family(())


def _cost_of(item: Any, price: Price | None) -> int:
    """Return what an answer costs: what the item does, or the worker's own price."""
    return int(item.cost) if price is None else price.answer + price.token * item.n_tokens


_KIN: BindParameter[Any] = bindparam("kin", expanding=True)
_N_KIN = (
    select(func.count())
    .where((answers.c.item == slots.c.item) & (answers.c.counts == 1) & answers.c.worker.in_(_KIN))
    .scalar_subquery()
    + select(func.count())
    .where((leases.c.item == slots.c.item) & leases.c.worker.in_(_KIN))
    .scalar_subquery()
)
_MEMBERS = select(workers.c.number, workers.c.cursor).where(
    workers.c.id.in_(bindparam("others", expanding=True))
    | workers.c.id.in_(
        select(people.c.pseudonym).where(people.c.id.in_(bindparam("ids", expanding=True)))
    )
)
_NEXT_PLACES = (
    select(slots.c.item, slots.c.position)
    .where(text(FREE), slots.c.position >= bindparam("start"))
    .order_by(slots.c.position)
    .limit(bindparam("look"))
    .subquery()
)
_END = select(func.max(_NEXT_PLACES.c.position), func.count()).select_from(_NEXT_PLACES)
# What an answer costs: what the item does, or the worker's own price, if that is not below 0.
_COST = case(
    (bindparam("each", type_=Whole) < 0, items.c.cost),
    else_=bindparam("each", type_=Whole) + bindparam("token", type_=Whole) * items.c.n_tokens,
)
_FOUND_AHEAD = (
    _FREE_PLACES.with_only_columns(slots.c.item, slots.c.position, items.c.cost, items.c.n_tokens)
    .join(_NEXT_PLACES, _NEXT_PLACES.c.item == slots.c.item)
    .where(~_HAD, ~_KNOWN, bindparam("fewer") > _N_KIN, bindparam("left") >= _COST)
    .order_by(slots.c.position)
    .limit(bindparam("size"))
)
_WINDOW_OF_KIN = _WINDOW.add_columns(_N_KIN.label("n_kin"))
_LAST_ANSWERS = (
    select(answers.c.worker, answers.c.submitted)
    .order_by(answers.c.number.desc())
    .limit(LATEST)
    .subquery()
)
_AT_WORK = (
    select(workers.c.number)
    .where(workers.c.barred == 0)
    .where(
        workers.c.number.in_(
            select(_LAST_ANSWERS.c.worker).where(_LAST_ANSWERS.c.submitted >= bindparam("since"))
        )
        | workers.c.number.in_(select(leases.c.worker))
    )
)
_HAVE_HAD = union_all(
    *(
        select(table.c.worker).where(table.c.item == bindparam("number"))
        for table in (answers, leases, skips)
    )
)


class _Kin:
    """The members of a family who are in the store, and who else is at work."""

    def __init__(self, entry: Entry, worker: Worker, family: Family, price: Price | None) -> None:
        self.entry, self.worker, self.family, self.price = entry, worker, family, price
        self.numbers: list[int] = []
        self.start = worker.cursor
        if family.others:
            names = list(family.others)
            rows = entry.connection.execute(_MEMBERS, {"others": names, "ids": names}).all()
            self.numbers = [row.number for row in rows if row.number != worker.number]
            # What is free before a member's cursor is what he has had.
            self.start = max([worker.cursor, *(row.cursor for row in rows)])

    def __bool__(self) -> bool:
        """Whether another member has come."""
        return bool(self.numbers)

    def may_take(self, item: int, n_kin: int) -> bool:
        """Whether an item may get his answer beside those of n others of the family."""
        most = self.family.most
        return most is None or n_kin < most or not self._others - self._have_had(item)

    def find(self, n: int) -> list[Choice]:
        """Choose items that none, or fewer than `most`, of the others has answered or holds."""
        ahead, look = self.family.ahead, self._look
        begin = self.worker.cursor
        start = self.start if ahead < 0 else max(ahead, begin)
        found, self.family.ahead = look(start, n, 1)
        if not found and self.family.ahead < 0 and start > begin:  # places that came free again
            found, self.family.ahead = look(begin, n, 1)
        if not found and self.family.most is not None and self.family.most > 1:
            found, _ = look(begin, n, self.family.most)
        return found

    def _look(self, start: int, n: int, fewer: int) -> tuple[list[Choice], int]:
        """Look at some places, and say where to look next time, -1 at the end of all."""
        own = {"who": self.worker.number, "kin": self.numbers, "fewer": fewer, "size": n}
        each, token = self.price or (-1, 0)
        own |= {"each": each, "token": token}
        left, run = self.entry.balance.left, self.entry.connection.execute
        for size in AHEAD:
            where = {"start": start, "look": size}
            rows = run(_FOUND_AHEAD, {**where, **own, "left": left}).all()
            if rows:
                found = []
                for row in rows:
                    cost = _cost_of(row, self.price)
                    if cost <= left:
                        found.append(Choice(row.item, cost))
                        left -= cost
                return found, rows[-1].position
            last, seen = run(_END, where).one()
            if seen < size:
                return [], -1
            start = last + 1
        return [], start

    @cached_property
    def _others(self) -> set[int]:
        """Who else is at work: gave one of the last answers, within an hour, or holds an item."""
        since = {"since": self.entry.clock - HOUR}
        there = set(self.entry.connection.execute(_AT_WORK, since).scalars())
        return there - {*self.numbers, self.worker.number}

    def _have_had(self, item: int) -> set[int]:
        return set(self.entry.connection.execute(_HAVE_HAD, {"number": item}).scalars())


class Choice(NamedTuple):
    """An item to assign, and what it costs."""

    item: int
    cost: int


class Choices(NamedTuple):
    """The items found, and where the worker looks next time."""

    found: list[Choice]
    cursor: int


def next_items(
    entry: Entry, worker: Worker, n: int, family: Family = NOBODY,
    price: Price | None = None,
) -> Choices:  # fmt: skip
    """Choose the next n items for a worker, as far as there are and the money suffices."""
    kin = _Kin(entry, worker, family, price)
    if kin and (ahead := kin.find(n)):
        return Choices(ahead, worker.cursor)
    found: list[Choice] = []
    start, left, passed, cursor = worker.cursor, entry.balance.left, 0, -1
    while len(found) < n and passed < MOST_PASSED:
        window = {"who": worker.number, "start": start, "size": WINDOW}
        if kin:
            rows = entry.connection.execute(_WINDOW_OF_KIN, {**window, "kin": kin.numbers}).all()
        else:
            rows = entry.connection.execute(_WINDOW, window).all()
        for row in rows:
            if len(found) == n:
                break
            start = row.position + 1
            if row.had or row.control:
                continue
            cost = _cost_of(row, price)
            if cost > left or (kin and not kin.may_take(row.item, row.n_kin)):
                passed += 1
                # The place stays in front of the worker for when there is money, or nobody else.
                cursor = row.position if cursor < 0 else cursor
                continue
            found.append(Choice(row.item, cost))
            left -= cost
        if len(rows) < WINDOW:
            break
    return Choices(found, start if cursor < 0 else cursor)


def n_coming(
    connection: Connection, worker: str, now: int, most: int, n_items: int, *, endless: bool
) -> int:
    """Count the items that a worker holds or may still get (`most` of these), no gold questions."""
    about = connection.execute(_ABOUT, {"name": worker, "now": now}).one()
    later = n_items - int(about.n_slots)
    if later and endless:
        return most
    size = {"start": about.start, "size": most + about.not_his}
    n_free = int(connection.execute(_N_OPEN, size).scalar_one()) - int(about.not_his)
    return int(about.held) + later + n_free


# --------------------------------------------------------------------------------------------------
# Assignments: an item held for a worker until a time, with the money for its answer.


MOST_AT_ONCE = 1_000


# Statements of the short transactions are built once.
_DUE = leases.c.expires <= bindparam("now")
_OF_WORKER = leases.c.worker == bindparam("who")
_OF_ITEM = _OF_WORKER & (leases.c.item == bindparam("number"))
_USE = slots.update().where(slots.c.item == bindparam("number"))
_USE = _USE.values(leased=slots.c.leased + 1)
_MOVE = workers.update().where(workers.c.number == bindparam("who"))
_MOVE = _MOVE.values(cursor=bindparam("to"))
_HELD = (
    select(items.c.id, items.c.tokens, leases.c.taken, leases.c.expires, leases.c.cost)
    .join(items, items.c.number == leases.c.item)
    .join(slots, slots.c.item == leases.c.item)
    .where(_OF_WORKER)
    .order_by(slots.c.position)
)
_HELD_OF = _HELD.where(leases.c.item.in_(bindparam("numbers", expanding=True)))


def _which(condition: ColumnElement[bool]) -> Select[Any]:
    columns = (leases.c.item, leases.c.worker, leases.c.cost)
    return select(*columns).where(condition).order_by(leases.c.item, leases.c.worker)


DUE, OF_WORKER, OF_ITEM = _which(_DUE), _which(_OF_WORKER), _which(_OF_ITEM)


def lease(
    entry: Entry,
    name: str,
    seconds: float,
    n: int,
    names: Sequence[str] | None,
    family: Family = NOBODY,
    price: Price | None = None,
    idle: Worker | None = None,
) -> list[Lease]:
    """Assign items to a worker until n are held, as far as there are places and money."""
    # Reserved is what an item costs, or the worker's own price
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MOST_AT_ONCE:
        raise InputError(f"n must be a whole number from 1 to {MOST_AT_ONCE}, not {n!r}")
    if not 0 < seconds <= 10**9:
        raise InputError(f"seconds must be a positive number up to a billion, not {seconds!r}")
    if names is not None and len(names) > FEW:
        raise InputError(f"{len(names)} items are too many for one call: name {FEW} at most")
    for amount in price or ():
        check_amount(amount, "a price")
    expire_due(entry)
    worker = idle or find_worker(entry, name)
    only = None if names is None else _in_order(entry, names)
    held = [] if worker is None or idle else _held(entry, worker, only)
    worker = worker or new_worker(entry, name)
    missing = n - len(held)
    if missing > 0 and not worker.barred and not entry.paused:
        _take(entry, worker, missing, seconds, only, family, price)
        held = _held(entry, worker, only)
    return held[:n]


def holding(entry: Entry, name: str) -> tuple[Worker | None, list[Lease]]:
    """Return a worker's row, if there is one, and the assignments in their order."""
    expire_due(entry)
    worker = find_worker(entry, name)
    return worker, [] if worker is None else _held(entry, worker, None)


def put_leases(entry: Entry, body: Mapping[str, Any]) -> None:
    """Write new assignments, reserve their money, and move the worker's cursor."""
    worker, taken = body["worker"], body["leases"]
    times = {"worker": worker, "taken": entry.clock, "expires": body["expires"]}
    if taken:
        rows = [{"item": item, "cost": cost, **times} for item, cost in taken]
        entry.connection.execute(leases.insert(), rows)
        entry.connection.execute(_USE, [{"number": item} for item, _ in taken])
        entry.balance.reserved += sum(cost for _, cost in taken)
    entry.connection.execute(_MOVE, {"who": worker, "to": body["cursor"]})


def expire_due(entry: Entry) -> int:
    """End the assignments whose time is over, and count them."""
    # The caller's clock counts: an event of another process whose clock is ahead ends nothing
    if entry.expired:
        return 0
    entry.expired = True
    return free_leases(entry, DUE, {"now": entry.now}, "expired")


def release(entry: Entry, name: str, item: str, skip: str) -> bool:
    """End an assignment; with a reason to skip, the worker is not asked again."""
    (number,) = numbers_of(entry, [item]).values()
    worker = find_worker(entry, name)
    if worker is None:
        return False
    mine = {"who": worker.number, "number": number}
    return free_leases(entry, OF_ITEM, mine, "skipped" if skip else "released", skip) > 0


def free_leases(
    entry: Entry, which: Select[Any], values: Mapping[str, int], why: str, skip: str = ""
) -> int:
    """End some assignments, and count them."""
    rows = [list(row) for row in entry.connection.execute(which, values)]
    if rows:
        told = keep_reason(entry, rows, skip)
        entry.log("free", {"why": why, "leases": rows, "skip": told})
    return len(rows)


def put_free(entry: Entry, body: Mapping[str, Any]) -> None:
    """Delete assignments, release their money, and let all workers look at the places again."""
    rows = [{"number": item, "who": worker} for item, worker, _ in body["leases"]]
    match = (leases.c.item == bindparam("number")) & (leases.c.worker == bindparam("who"))
    entry.connection.execute(leases.delete().where(match), rows)
    busy = slots.c.leased + slots.c.filled - 1
    places = case((busy > slots.c.wanted, busy), else_=slots.c.wanted)
    freed = slots.update().where(slots.c.item == bindparam("number"))
    freed = freed.values(leased=slots.c.leased - 1, places=places)
    entry.connection.execute(freed, [{"number": row["number"]} for row in rows])
    entry.balance.reserved -= sum(cost for *_, cost in body["leases"])
    if body["skip"]:
        skipped = [{"item": row["number"], "worker": row["who"]} for row in rows]
        told = {"time": entry.clock, "reason": body["skip"]}
        entry.connection.execute(skips.insert(), [{**row, **told} for row in skipped])
    look_back(entry, sorted({row["number"] for row in rows}))


def _in_order(entry: Entry, names: Sequence[str]) -> list[int]:
    found = numbers_of(entry, names)
    return [found[name] for name in dict.fromkeys(names)]


def _take(
    entry: Entry, worker: Worker, n: int, seconds: float, only: list[int] | None, family: Family,
    price: Price | None,
) -> None:  # fmt: skip
    cursor = worker.cursor
    found: list[Choice]
    if only is None:
        found, cursor = next_items(entry, worker, n, family, price)
    else:
        # Choose among given items, in their order
        free = entry.connection.execute(_THESE, {"who": worker.number, "numbers": only})
        rows = {row.item: row for row in free}
        found = []
        left = entry.balance.left
        for number in only:
            row = rows.get(number)
            if row is None or row.had or len(found) == n:
                continue
            cost = _cost_of(row, price)
            if cost <= left:
                found.append(Choice(row.item, cost))
                left -= cost
    if found or cursor != worker.cursor:
        expires = entry.clock + max(1, round(seconds * 1000))
        body = {"worker": worker.number, "cursor": cursor, "expires": expires}
        entry.log("lease", {**body, "leases": [list(choice) for choice in found]})


def _held(entry: Entry, worker: Worker, only: list[int] | None) -> list[Lease]:
    """Return the assignments of a worker in the order in which items are assigned."""
    query, values = (_HELD, {}) if only is None else (_HELD_OF, {"numbers": only})
    return [
        Lease(row.id, worker.id, tuple(read_json(row.tokens)), row.taken, row.expires, row.cost)
        for row in entry.connection.execute(query, {"who": worker.number, **values})
    ]


def bar(entry: Entry, name: str, *, barred: bool) -> None:
    """Assign nothing more to a worker and end the assignments, or assign again."""
    worker = worker_of(entry, name)
    if worker.barred == int(barred):
        return
    entry.log("bar", {"worker": worker.number, "barred": int(barred)})
    if barred:
        free_leases(entry, OF_WORKER, {"who": worker.number}, "barred")


def put_barred(entry: Entry, body: Mapping[str, Any]) -> None:
    """Set whether a worker is barred."""
    row = workers.update().where(workers.c.number == body["worker"])
    entry.connection.execute(row.values(barred=body["barred"]))
