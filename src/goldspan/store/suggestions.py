"""What annotators were shown beside an item before they answered, kept once and for good.

A row says what was suggested to one worker for one item and whether it was shown: whoever opens the
item again, also after a crash, sees the same. Names of rows are the store's numbers of item and
worker, so that a private campaign names nobody in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, select

from goldspan.protocols import Suggestion
from goldspan.store.facts import record
from goldspan.store.journal import Entry, read_json
from goldspan.store.people import SHOWN, SUGGESTED, is_worker, worker_of
from goldspan.store.schema import answers, items, records, workers

_ITEM = select(items.c.number).where(items.c.id == bindparam("wanted"))
_WORKER = select(workers.c.number).where(is_worker())
_ROW = select(records.c.body).where(
    (records.c.kind == SUGGESTED) & (records.c.name == bindparam("known"))
)
_GIVEN = (
    select(SHOWN.label("id"), answers.c.worker, answers.c.labels)
    .join(workers, workers.c.number == answers.c.worker)
    .where((answers.c.item == bindparam("number")) & (answers.c.counts == 1))
    .order_by(answers.c.number)
)
_THERE = select(records.c.name, records.c.body).where(
    (records.c.kind == SUGGESTED) & records.c.name.in_(bindparam("names", expanding=True))
)


class OwnAnswer(NamedTuple):
    """An answer that was given without seeing a suggestion."""

    worker: str
    labels: Sequence[str | None]  # One per token; None where it was skipped


def keep_suggestion(entry: Entry, one: Suggestion) -> Suggestion:
    """Keep what a worker is shown, unless that is decided already; return what holds."""
    number = entry.connection.execute(_ITEM, {"wanted": one.item}).scalar_one()
    name = f"{number}:{worker_of(entry, one.worker).number}"
    there = entry.connection.execute(_ROW, {"known": name}).scalar_one_or_none()
    if there is not None:
        return _suggestion(read_json(there))._replace(worker=one.worker)
    body = one._asdict() | {"labels": None if one.labels is None else list(one.labels)}
    record(entry, SUGGESTED, name, body)
    return one


def read_suggestion(connection: Connection, worker: str, item: str) -> Suggestion | None:
    """Return what was decided on for a worker and an item, None if nothing was."""
    number = connection.execute(_ITEM, {"wanted": item}).scalar_one_or_none()
    person = connection.execute(_WORKER, {"name": worker}).scalar_one_or_none()
    row = connection.execute(_ROW, {"known": f"{number}:{person}"}).scalar_one_or_none()
    return None if row is None else _suggestion(read_json(row))._replace(worker=worker)


def own_answers(connection: Connection, item: str) -> list[OwnAnswer]:
    """Return the answers to an item that count, but those that were given with a suggestion."""
    number = connection.execute(_ITEM, {"wanted": item}).scalar_one()
    rows = connection.execute(_GIVEN, {"number": number}).all()
    names = [f"{number}:{row.worker}" for row in rows]
    found = connection.execute(_THERE, {"names": names}).all() if names else []
    seen = {row.name for row in found if read_json(row.body)["shown"]}
    pairs = zip(rows, names, strict=True)
    return [OwnAnswer(row.id, read_json(row.labels)) for row, name in pairs if name not in seen]


def _suggestion(body: dict[str, Any]) -> Suggestion:
    return Suggestion(**body)
