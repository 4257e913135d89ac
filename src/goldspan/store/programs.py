"""What a campaign keeps of programs beside its log: uses of tokens, and messages that are sent.

A message follows from an entry of the log. `gather` makes it in the transaction that notes how far
the log was read, so that none is lost and none is made twice, whenever the process ends; whoever
answers or closes a round knows nothing of messages, and waits for none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, bindparam, func, select

from goldspan.protocols import Event
from goldspan.store.journal import Entry, read_json
from goldspan.store.schema import (
    answers,
    check_name,
    events,
    gathered,
    items,
    messages,
    token_uses,
    workers,
)

# --------------------------------------------------------------------------------------------------
# Tokens


def note_use(entry: Entry, token: str) -> None:
    """Keep that a token was used now."""
    check_name(token, "the id of a token")
    row = {"token": token, "time": entry.now}
    update = token_uses.update().where(token_uses.c.token == token)
    if not entry.connection.execute(update.values(time=entry.now)).rowcount:
        entry.connection.execute(token_uses.insert(), row)


def uses(connection: Connection) -> dict[str, int]:
    """Return when tokens were last used, by id, in milliseconds since 1970."""
    return {row.token: row.time for row in connection.execute(select(token_uses))}


# --------------------------------------------------------------------------------------------------
# Messages


WAITING, SENT, FAILED = "waiting", "sent", "failed"
AT_ONCE = 500
"""Entries of the log, and answers, that become messages in one transaction."""


@dataclass(frozen=True)
class Message:
    """A message to a program, with what became of it."""

    number: int
    name: str  # The same whenever it is sent: the program handles each once
    hook: str
    event: str  # What it is about
    body: str  # What is sent, in JSON
    state: str = WAITING  # "waiting", "sent" or "failed"
    tries: int = 0  # How often it was sent
    due: int = 0  # When it is sent next, in milliseconds by the campaign's clock
    made: int = 0  # When it was made, by the same clock
    changed: int = 0  # When that changed last
    status: int = 0  # What the program answered last, 0 if nothing
    why: str = ""  # Why it was not taken; "" if it was


@dataclass(frozen=True)
class CameIn:
    """An answer that counts, by the number of the entry of the log that holds it."""

    number: int
    item: str
    worker: str
    status: str
    time: int


def gather(
    entry: Entry,
    hook: str,
    event: str,  # What they are about
    read: Callable[[Connection, int], tuple[int, Iterable[tuple[str, str]]]],
) -> int:
    """Make the messages about what the log says since it was last read; count them."""
    # The first time there are none: what happened before a program was named is not told
    connection, mine = entry.connection, and_(gathered.c.hook == hook, gathered.c.event == event)
    last = connection.execute(select(gathered.c.number).where(mine)).scalar_one_or_none()
    if last is None:
        first = {"hook": hook, "event": event, "number": entry.n_events}
        connection.execute(gathered.insert(), first)
        return 0
    upto, found = read(connection, last)
    rows = list(found)
    number = connection.execute(select(func.max(messages.c.number))).scalar_one() or 0
    made = [
        {"number": number + n, "name": name, "hook": hook, "event": event, "body": body,
         "state": WAITING, "tries": 0, "due": entry.now, "made": entry.now,
         "changed": entry.now, "status": 0, "why": ""}
        for n, (name, body) in enumerate(rows, start=1)
    ]  # fmt: skip
    if made:
        connection.execute(messages.insert(), made)
    if upto != last:
        connection.execute(gathered.update().where(mine).values(number=upto))
    return len(made)


def records_since(
    connection: Connection, after: int, kind: str
) -> tuple[int, list[tuple[Event, str, dict[str, Any]]]]:
    """Return how far the log was read, and the entries after a number that keep a record of a kind.

    Each comes with the record's name and body.
    """
    last = connection.execute(select(func.max(events.c.number))).scalar_one() or 0
    query = (
        select(events)
        .where(events.c.number > after, events.c.number <= last, events.c.kind == "record")
        .order_by(events.c.number)
    )
    found = []
    for row in connection.execute(query):
        body = read_json(row.body)
        if body["kind"] == kind:
            one = Event(row.number, row.time, row.kind, body, row.hash)
            found.append((one, str(body["name"]), read_json(body["body"])))
    return int(last), found


def answers_since(
    connection: Connection, after: int, most: int = AT_ONCE
) -> tuple[int, list[CameIn]]:
    """Return how far the log was read, and the answers after a number that count, up to so many.

    Workers are named as in the tables: by pseudonym in a private campaign.
    """
    last = connection.execute(select(func.max(events.c.number))).scalar_one() or 0
    query = (
        select(events.c.number, events.c.body)
        .where(events.c.number > after, events.c.number <= last, events.c.kind == "submit")
        .order_by(events.c.number)
        .limit(most)
    )
    rows = connection.execute(query).all()
    numbers = {read_json(row.body)["number"]: row.number for row in rows}
    upto = rows[-1].number if len(rows) == most else last
    who = (
        select(
            answers.c.number, items.c.id.label("item"), workers.c.id.label("worker"),
            answers.c.status, answers.c.submitted,
        )
        .join(items, items.c.number == answers.c.item)
        .join(workers, workers.c.number == answers.c.worker)
        .where(
            answers.c.number.in_(bindparam("numbers", expanding=True)),
            answers.c.status.in_(["accepted", "late"]),
        )
        .order_by(answers.c.number)
    )  # fmt: skip
    found = connection.execute(who, {"numbers": list(numbers)}).all() if numbers else []
    came = [
        CameIn(numbers[row.number], row.item, row.worker, row.status, row.submitted)
        for row in found
    ]
    return int(upto), came


def due(connection: Connection, hook: str, now: int, most: int) -> list[Message]:
    """Return the messages to a program that are to be sent, those made first in front."""
    query = select(messages).where(
        messages.c.hook == hook, messages.c.state == WAITING, messages.c.due <= now
    )
    rows = connection.execute(query.order_by(messages.c.number).limit(most))
    return [Message(**row._mapping) for row in rows]  # noqa: SLF001 - SQLAlchemy's public name


def last_made(connection: Connection, hook: str, event: str) -> tuple[int | None, bool]:
    """Return when the last message about an event was made, and whether one is waiting."""
    mine = and_(messages.c.hook == hook, messages.c.event == event)
    last = connection.execute(select(func.max(messages.c.made)).where(mine)).scalar_one()
    waiting = select(messages.c.number).where(mine, messages.c.state == WAITING).limit(1)
    return last, connection.execute(waiting).first() is not None


def note_try(entry: Entry, number: int, state: str, next_due: int, status: int, why: str) -> None:
    """Keep what became of a try to send a message."""
    row = messages.update().where(messages.c.number == number, messages.c.state != SENT)
    entry.connection.execute(
        row.values(
            state=state, due=next_due, status=status, why=why, changed=entry.now,
            tries=messages.c.tries + 1,
        )
    )  # fmt: skip


def send_again(entry: Entry, number: int, hooks: Sequence[str]) -> bool:
    """Let a message to one of some programs, which was not taken, be sent now."""
    # False if there is none
    mine = messages.c.number == number, messages.c.hook.in_(hooks)
    row = messages.update().where(*mine, messages.c.state != SENT)
    values = {"state": WAITING, "due": entry.now, "made": entry.now, "changed": entry.now}
    return bool(entry.connection.execute(row.values(tries=0, **values)).rowcount)


def forget_others(entry: Entry, hooks: Sequence[str]) -> None:
    """Give up what waits for programs that are not among some, and forget what they were told."""
    # A program that is named again later is a new one
    left = and_(messages.c.state == WAITING, messages.c.hook.not_in(hooks))
    values = {"state": FAILED, "changed": entry.now, "why": "the plan no longer has this webhook"}
    entry.connection.execute(messages.update().where(left).values(**values))
    entry.connection.execute(gathered.delete().where(gathered.c.hook.not_in(hooks)))


def drop_sent(entry: Entry, before: int) -> None:
    """Delete messages that were sent or given up before a time."""
    old = and_(messages.c.state != WAITING, messages.c.changed < before)
    entry.connection.execute(messages.delete().where(old))


def last_messages(connection: Connection, most: int) -> list[Message]:
    """Return the last messages, the newest first."""
    query = select(messages).order_by(messages.c.number.desc()).limit(most)
    return [Message(**row._mapping) for row in connection.execute(query)]  # noqa: SLF001 - as above


def counts(connection: Connection) -> dict[tuple[str, str], int]:
    """Count the messages by program and state."""
    by = (messages.c.hook, messages.c.state)
    rows = connection.execute(select(*by, func.count().label("n")).group_by(*by))
    return {(row.hook, row.state): row.n for row in rows}
