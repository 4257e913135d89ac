"""Whether what labels are made of is what the log says: the check before labels are used.

A process that opens a campaign and reads its answers would turn a changed row into gold. Before the
first reading the log is hashed, and every row that an entry carries as it is – items, workers,
answers, gold, charges, records, notes, what the campaign is – is compared with its entry by a hash.
What notes say is compared with their seals: requests of payments are among them. Places, leases and
sums are left to `goldspan.store.verify`, which replays the log and takes some ten times as long.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, select

from goldspan.store.chain import canonical
from goldspan.store.journal import Database
from goldspan.store.people import unsealed
from goldspan.store.schema import answers, campaign, charges, gold, items, notes, records, workers
from goldspan.store.verify import AT_ONCE, Chain, check_whole, damaged, log_rows

_WITHOUT = frozenset({
    "adjust", "bar", "batch", "free", "lease", "pause",
})  # fmt: skip
"""Kinds of entries that carry no such row."""
_ANSWER = ("key", "item", "worker", "labels", "status", "reason", "started", "submitted")
_NOTE = ("kind", "person", "seal", "time")
_COLUMNS = {
    "items": [items.c[n] for n in ("number", "id", "cost", "n_tokens", "tokens", "extra")],
    "workers": [workers.c.number, workers.c.id],
    "answers": [answers.c[n] for n in ("number", *_ANSWER, "counts", "cost")],
    "gold": [gold.c[n] for n in ("item", "labels", "control", "time")],
    "charges": [charges.c[n] for n in ("number", "name", "amount", "time")],
    "records": [records.c[n] for n in ("number", "kind", "name", "body", "time")],
    "notes": [notes.c[n] for n in ("number", *_NOTE, "name", "body", "salt")],
}
"""What is compared of each table: its key, then what the entries carry."""


def check_facts(database: Database) -> None:
    """Refuse a database in which answers, or what belongs to them, are not those of the log.

    Raises:
        StoreError: They are not; or the database cannot be read.
    """
    with database.read() as connection:
        why = _differs(connection)
    if why is None:  # entries of a kind that is not known here
        check_whole(database)
    elif why:
        raise damaged(database.where, why)


def _differs(connection: Connection) -> str | None:
    """Return the first difference, "" if there is none, None if the log must be replayed."""
    chain, facts = Chain(), _Facts()
    for row in log_rows(connection):
        fault = chain.follow(row)
        if fault:
            return fault
        if row.kind not in _WITHOUT and not facts.take(row.kind, json.loads(row.body), row.time):
            return None
    return chain.end(connection) or facts.settings(connection) or facts.difference(connection)


class _Facts:
    """The hash of every row that the log carries, by the row's key."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[int, int]] = {name: {} for name in _COLUMNS}
        self._numbers: dict[str, int] = {}
        self._extra: dict[int, int] = {}
        self._paid: dict[int, tuple[int, int]] = {}
        self._owned: dict[str, list[int]] = {}
        self._campaign: dict[str, Any] = {}

    def take(self, kind: str, body: Mapping[str, Any], time: int) -> bool:
        """Take an entry; return whether its kind is known."""
        if kind in {"worker", "charge", "record"}:
            names = [column.name for column in _COLUMNS[f"{kind}s"][1:]]
            row = {**body, "time": time}
            self.rows[f"{kind}s"][body["number"]] = hash(tuple(row[name] for name in names))
            return True
        act = _TAKES.get(kind)
        if act is not None:
            act(self, body, time)
        return act is not None

    def submit(self, body: Mapping[str, Any], time: int) -> None:
        """Take an answer."""
        counts = int(body["status"] in {"accepted", "late"})
        self._answer({**body, "submitted": time}, counts)

    def change(self, body: Mapping[str, Any], time: int) -> None:
        """Take another version of an answer."""
        self._paid[body["before"]] = (0, 0)
        self._answer({**body, "status": "changed", "reason": "", "submitted": time}, 1)

    def items(self, body: Mapping[str, Any], _: int) -> None:
        """Take items of the pool."""
        for number, row in enumerate(body["items"], start=body["first"]):
            self._item(number, row)

    def details(self, body: Mapping[str, Any], _: int) -> None:
        """Take what is known of items since."""
        self._extra |= {self._numbers[one["id"]]: hash(one["extra"]) for one in body["items"]}

    def gold(self, body: Mapping[str, Any], time: int) -> None:
        """Take known labels."""
        self.rows["gold"] |= {number: hash((*said, time)) for number, *said in body["items"]}

    def begin(self, body: Mapping[str, Any], _: int) -> None:
        """Take what the campaign is."""
        said = {name: body[name] for name in ("name", "currency", "encoding", "cap")}
        self._campaign = {**said, "tags": canonical(body["tags"])}
        self._campaign["private"] = int(body.get("private", 0))

    def cap(self, body: Mapping[str, Any], _: int) -> None:
        """Take what may be spent."""
        self._campaign["cap"] = body["cap"]

    def note(self, body: Mapping[str, Any], time: int) -> None:
        """Take a note, of which the log has the seal."""
        self._note({**body, "time": time, "name": None, "body": None})

    def forget(self, body: Mapping[str, Any], _: int) -> None:
        """Take what stays of somebody's notes."""
        for number in self._owned.pop(body["person"], []):
            del self.rows["notes"][number]
        for row in body["notes"]:
            self._note({**row, "person": body["person"], "seal": ""})

    def snapshot(self, body: Mapping[str, Any], _: int) -> None:
        """Take rows of a table."""
        for row in body["rows"]:
            self._stored(body["table"], row)

    def _item(self, number: int, row: Mapping[str, Any]) -> None:
        words = tuple(row[name] for name in ("id", "cost", "n_tokens", "tokens"))
        self.rows["items"][number] = hash(words)
        self._numbers[row["id"]] = number
        self._extra[number] = hash(row["extra"])

    def _note(self, row: Mapping[str, Any]) -> None:
        self.rows["notes"][row["number"]] = hash(tuple(row[n] for n in (*_NOTE, "name", "body")))
        self._owned.setdefault(row["person"], []).append(row["number"])

    def _stored(self, table: str, row: Mapping[str, Any]) -> None:
        """Take a row of a snapshot, which holds all columns."""
        if table == "answers":
            self._answer(row, row["counts"])
        elif table == "items":
            self._item(row["number"], row)
        elif table in _COLUMNS:
            key, *names = [column.name for column in _COLUMNS[table]]
            self.rows[table][row[key]] = hash(tuple(row[name] for name in names))

    def settings(self, connection: Connection) -> str:
        """Compare what the campaign is, its tags and its cap."""
        row = connection.execute(select(campaign)).mappings().one()
        for name, value in self._campaign.items():
            if row[name] != value:
                return f"campaign, {name}: {row[name]}; the log says {value}"
        return ""

    def difference(self, connection: Connection) -> str:
        """Compare the tables with what was taken; return the first difference, "" if none."""
        for table, columns in _COLUMNS.items():
            query = select(*columns).execution_options(yield_per=AT_ONCE)
            with connection.execute(query) as rows:
                why = self._difference(table, rows)
            if why:
                return why
        changed = unsealed(connection)
        return f"notes, number {changed[0]}: it is not what the log has sealed" if changed else ""

    def _difference(self, table: str, rows: Iterable[Any]) -> str:
        wanted, seen = self.rows[table], 0
        for key, *rest in rows:
            name = f"{table}, {_COLUMNS[table][0].name} {key}"
            if key not in wanted:
                return f"{name}: this row is not in the log"
            seen += 1
            if not self._is_same(table, key, rest):
                return f"{name}: the row is not what the log says"
        missing = len(wanted) - seen
        return f"{table}: {missing} rows of the log are missing" if missing else ""

    def _is_same(self, table: str, key: int, row: list[Any]) -> bool:
        if table == "answers":
            if self._paid[key] != tuple(row[-2:]):
                return False
            row = row[:-2]
        elif table == "items":
            if self._extra[key] != hash(row[-1]):
                return False
            row = row[:-1]
        elif table == "notes":
            row, salt = row[:-1], row[-1]
            if salt is not None:  # what it says is not in the log: its seal is compared
                row[-2:] = None, None
        return hash(tuple(row)) == self.rows[table][key]

    def _answer(self, row: Mapping[str, Any], counts: int) -> None:
        self.rows["answers"][row["number"]] = hash(tuple(row[name] for name in _ANSWER))
        self._paid[row["number"]] = (counts, row["cost"])


_TAKES: dict[str, Callable[[_Facts, Mapping[str, Any], int], None]] = {
    "submit": _Facts.submit, "change": _Facts.change, "items": _Facts.items,
    "details": _Facts.details, "gold": _Facts.gold, "create": _Facts.begin, "begin": _Facts.begin,
    "cap": _Facts.cap, "note": _Facts.note, "forget": _Facts.forget, "snapshot": _Facts.snapshot,
}  # fmt: skip
"""What is done with entries that carry rows in a way of their own."""
