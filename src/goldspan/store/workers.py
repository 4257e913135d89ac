"""Workers as the store knows them: a number, where they look next, and whether they are asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import func, select

from goldspan.store.names import check_name
from goldspan.store.people import SHOWN, is_worker, known_by
from goldspan.store.schema import workers

if TYPE_CHECKING:
    from goldspan.store.journal import Entry


_FIND = select(workers.c.number, SHOWN, workers.c.cursor, workers.c.barred).where(is_worker())


class Worker(NamedTuple):
    """A worker's row."""

    number: int
    id: str
    cursor: int
    barred: int


def worker_of(entry: Entry, name: str) -> Worker:
    """Give a worker's row; one who is new gets it now.

    Raises:
        InputError: The name cannot be one.
        ForgottenError: It is that of somebody who was forgotten.
    """
    found = find_worker(entry, name)
    if found is None:
        known = known_by(entry, check_name(name, "a worker's id"))
        last = entry.connection.execute(select(func.max(workers.c.number))).scalar_one() or 0
        entry.log("worker", {"number": last + 1, "id": known})
        found = Worker(last + 1, name, 0, 0)
    return found


def find_worker(entry: Entry, name: str) -> Worker | None:
    """Give a worker's row, None if there is none."""
    known = {"name": check_name(name, "a worker's id")}
    row = entry.connection.execute(_FIND, known).one_or_none()
    return None if row is None else Worker(*row)


def put_worker(entry: Entry, body: Mapping[str, Any]) -> None:
    """Write the row of a new worker."""
    entry.connection.execute(workers.insert(), {**body, "cursor": 0, "barred": 0})


def bar(entry: Entry, name: str, *, barred: bool) -> None:
    """Ask a worker nothing more and take back the leases, or ask again."""
    from goldspan.store.leases import OF_WORKER, free_leases

    worker = worker_of(entry, name)
    if worker.barred == int(barred):
        return
    entry.log("bar", {"worker": worker.number, "barred": int(barred)})
    if barred:
        free_leases(entry, OF_WORKER, {"who": worker.number}, "barred")


def put_barred(entry: Entry, body: Mapping[str, Any]) -> None:
    """Set whether a worker is asked."""
    row = workers.update().where(workers.c.number == body["worker"])
    entry.connection.execute(row.values(barred=body["barred"]))


def pause(entry: Entry, *, paused: bool) -> None:
    """Hold no new places, or again."""
    if entry.paused != int(paused):
        entry.log("pause", {"paused": int(paused)})


def put_paused(entry: Entry, body: Mapping[str, Any]) -> None:
    """Set whether the campaign pauses."""
    entry.paused = body["paused"]
