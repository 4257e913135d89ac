"""How often something may be done on one day: counted in the store, whatever process asks.

The counts are beside the log: they bound what a worker, or somebody with a link only, can make the
log grow by, so that they must not be in it. A log that is replayed begins to count anew, and the
counts of past days are deleted. Who is counted stands there as a hash; as ids can be guessed, it is
that of the pseudonym where somebody has one, and forgetting somebody deletes their counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Connection, bindparam, case, not_, select

from goldspan.errors import InputError
from goldspan.store.schema import usage

if TYPE_CHECKING:
    from goldspan.store.journal import Entry

DAY = 86_400_000
"""Milliseconds; days are those of UTC."""

_MINE = (usage.c.kind == bindparam("what")) & (usage.c.name == bindparam("who"))
_FIND = select(usage.c.n).where(_MINE & (usage.c.day == bindparam("today")))
_IS_TODAY = usage.c.day == bindparam("today")
_COUNT = (
    usage.update()
    .where(_MINE & not_(_IS_TODAY & (usage.c.n >= bindparam("most"))))
    .values(day=bindparam("today"), n=case((_IS_TODAY, usage.c.n + 1), else_=1))
)
_FORGET = usage.delete().where(usage.c.day < bindparam("today"))


class BoundError(InputError):
    """Something was done as often as it may be; nothing was changed.

    Attributes:
        most: How often it may be.
        seconds: When it may be done again, 0 if never.
    """

    def __init__(self, message: str, most: int, seconds: int = 0) -> None:
        self.most, self.seconds = most, seconds
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by the arguments."""
        return type(self), (str(self), self.most, self.seconds)


class Bound(NamedTuple):
    """How often something may be done on one day.

    Attributes:
        kind: What is counted: "writes", "joins", …
        name: Whose it is.
        most: How often.
        now: What the wall clock shows, in milliseconds since 1970: days are those that people
            have, and the campaign's clock leaves out most of the time in which nobody serves. By
            default the time of the transaction.
    """

    kind: str
    name: str
    most: int
    now: int | None = None


def count(entry: Entry, bound: Bound) -> None:
    """Count one more today.

    Raises:
        BoundError: It was done as often as it may be on one day.
    """
    from goldspan.store.people import pseudonym_of

    today, into = divmod(entry.now if bound.now is None else bound.now, DAY)
    known = pseudonym_of(entry.connection, bound.name) if entry.private else bound.name
    who = {"what": bound.kind, "who": _hash(known)}
    mine = {**who, "today": today}
    if entry.connection.execute(_COUNT, {**mine, "most": bound.most}).rowcount:
        return
    so_many = entry.connection.execute(_FIND, mine).scalar_one_or_none() or 0
    if so_many >= bound.most:
        message = f"{bound.kind}: {bound.most} a day are allowed, and were made"
        raise BoundError(message, bound.most, -(-(DAY - into) // 1000))
    entry.connection.execute(_FORGET, {"today": today})
    facts = {"kind": bound.kind, "name": who["who"], "day": today, "n": 1}
    entry.connection.execute(usage.insert(), facts)


def forget(connection: Connection, names: Iterable[str]) -> None:
    """Delete what is counted of somebody."""
    hashes = [_hash(name) for name in names]
    connection.execute(usage.delete().where(usage.c.name.in_(hashes)))


def _hash(name: str) -> str:
    return blake2b(name.encode(), digest_size=12).hexdigest()
