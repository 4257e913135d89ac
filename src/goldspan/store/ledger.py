"""The store's face: a campaign's ledger in a database (the `Ledger` of `goldspan.protocols`)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sqlalchemy import select

from goldspan.crowd import Crowd
from goldspan.protocols import Event, Lease, PoolItem, Receipt, Totals
from goldspan.spans import Codec
from goldspan.store import answers, bounds, money, people, pool, reading, records
from goldspan.store import places as choosing
from goldspan.store import places as leases
from goldspan.store import places as paging
from goldspan.store import pool as batches
from goldspan.store import reading as watching
from goldspan.store.bounds import Bound
from goldspan.store.chain import read_json
from goldspan.store.crowd import Grown
from goldspan.store.engine import StoreError
from goldspan.store.journal import Database, Entry
from goldspan.store.places import Asked, Order, Slot
from goldspan.store.reading import Given, Own, Skipped
from goldspan.store.roles import alone, check_start, mark_closed, mark_opened
from goldspan.store.schema import campaign

if TYPE_CHECKING:
    import pyarrow as pa

Result = TypeVar("Result")


class SqlLedger:
    """A campaign's ledger in SQLite or PostgreSQL; made by `open_ledger` and `create_ledger`.

    Every method that takes `now` (milliseconds since 1970) is one transaction: when it returns,
    what it did is on the disk; when it raises, nothing was changed. Threads may share a ledger,
    and processes may open the same one. What the methods do is said in `goldspan.protocols.Ledger`.

    Args:
        database: The open database.
    """

    def __init__(self, database: Database) -> None:
        self.database, self._opening = database, ""
        self._has_facts, self._checking = False, threading.Lock()
        self._order = Order(database)

    @cached_property
    def name(self) -> str:
        """The campaign's name."""
        return str(self._facts["name"])

    @cached_property
    def tagset(self) -> Codec:
        """The campaign's tags and their encoding."""
        return Codec(tuple(read_json(self._facts["tags"])), self._facts["encoding"])

    def add_items(self, items: Iterable[PoolItem], now: int) -> int:
        """Add items to the pool, a block per transaction, and count the new ones.

        Raises:
            FaultsError: Items of a block are faulty, appear twice, or are there with other content;
                blocks before it are kept, and adding the same pool again goes on.
        """
        write = self.database.write
        blocks = pool.in_blocks(items)
        before = self.n_events
        added = sum(write(now, lambda e, b=block: pool.add_block(e, b)) for block in blocks)  # type: ignore[misc]
        if self.n_events != before:  # what is known of items that were read may have grown
            vars(self).pop("_grown", None)
        return added

    def open_batch(self, name: str, items: Sequence[str], k: int, now: int) -> int:
        """Open k places for every item, in this order of priority; give the batch's number."""
        return self.database.write(now, lambda e: batches.open_batch(e, name, items, k))

    def adjust(self, wanted: Mapping[str, int], now: int) -> int:
        """Set how many answers items are to get; places in use stay. Count what changed."""
        return self.database.write(now, lambda e: batches.adjust(e, wanted))

    def lease(
        self, worker: str, now: int, seconds: float, n: int = 1, items: Sequence[str] | None = None
    ) -> list[Lease]:
        """Hold n places for a worker, those that the worker holds already among them."""
        return self.database.write(now, lambda e: leases.lease(e, worker, seconds, n, items))

    def submit(
        self, key: str, worker: str, item: str, labels: Sequence[str | None], now: int
    ) -> Receipt:
        """Take an answer, one label per token (None: skipped), and pay for it if it counts.

        Raises:
            FaultsError: The item is in no batch, or the labels do not fit it.
        """
        tags = self.tagset
        return self.database.write(
            now, lambda e: answers.submit(e, key, worker, item, labels, tags)
        )

    def change(
        self, key: str, worker: str, item: str, labels: Sequence[str | None], now: int
    ) -> Receipt:
        """Put another version of a worker's answer in the place of the one that counts.

        Raises:
            FaultsError: No answer of the worker counts, or the labels do not fit the item.
        """
        tags = self.tagset
        return self.database.write(
            now, lambda e: answers.change(e, key, worker, item, labels, tags)
        )

    def release(self, worker: str, item: str, now: int, skip: str = "") -> bool:
        """Return a place back; with a reason to skip, the worker is not asked again."""
        return self.database.write(now, lambda e: leases.release(e, worker, item, skip))

    def expire(self, now: int) -> int:
        """Return back the places whose time is over; count them."""
        return self.database.write(now, leases.expire_due)

    def bar(self, worker: str, now: int, *, barred: bool = True) -> None:
        """Ask a worker nothing more and take back the leases, or ask again."""
        self.database.write(now, lambda e: people.bar(e, worker, barred=barred))

    def pause(self, now: int, *, paused: bool = True) -> None:
        """Hold no new places, or again; answers are still taken."""
        self.database.write(now, lambda e: people.pause(e, paused=paused))

    def set_cap(self, cap: int, now: int) -> None:
        """Change what may be spent.

        Raises:
            InputError: More is reserved or spent already.
        """
        self.database.write(now, lambda e: money.set_cap(e, cap))

    def charge(self, name: str, amount: int, now: int) -> bool:
        """Pay something other than an answer, once per name; False if the money is short."""
        return self.database.write(
            now, lambda e: money.charge(e, people.charge_name(e, name), amount)
        )

    def set_gold(
        self, gold: Mapping[str, Sequence[str | None]], now: int, *, control: bool = False
    ) -> None:
        """Keep known labels of items, and whether these are control questions."""
        tags = self.tagset
        self.database.write(now, lambda e: records.set_gold(e, gold, tags, control=control))

    def record(self, kind: str, name: str, body: Mapping[str, Any], now: int) -> None:
        """Keep a fact under a name: the version of a model, a verdict, a note."""
        self.database.write(now, lambda e: records.record(e, kind, name, body))

    def begin_version(self, facts: Mapping[str, Any], tagset: Codec, now: int) -> int:
        """Begin a version of the label set and guideline, and return its number.

        Answers received from now on are of this version. The last version with the same `hash` in
        `facts` and the same tags goes on.

        Raises:
            InputError: A tag that is in force is missing, or the encoding is another one.
        """
        number = self.database.write(now, lambda e: records.begin_version(e, facts, tagset))
        self.tagset = tagset
        return number

    def transact(
        self, now: int, work: Callable[[Entry], Result], bound: Bound | None = None
    ) -> Result:
        """Do several things in one transaction, deciding in it by what it sees.

        Args:
            now: Milliseconds since 1970.
            work: Does it with the functions of the store; it may be called again.
            bound: What is counted if `work` wrote anything.

        Raises:
            BoundError: It wrote, and the bound is reached; nothing was changed.
        """

        def act(entry: Entry) -> Result:
            before = entry.n_events
            result = work(entry)
            if bound is not None and entry.n_events > before:
                bounds.count(entry, bound)
            return result

        return self.database.write(now, act)

    def take(self, kind: str, name: str, most: int, now: int) -> None:
        """Count something that may be done so many times a day (UTC).

        Args:
            kind: What is counted.
            name: Whose it is.
            most: How often.
            now: What the wall clock shows, in milliseconds since 1970: see `Bound`.

        Raises:
            BoundError: It was done as often today.
        """
        self.database.write(now, lambda e: bounds.count(e, Bound(kind, name, most, now)))

    def records(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return all facts of a kind by name, in the order in which they came."""
        with self.database.read() as connection:
            return reading.read_records(connection, kind)

    def totals(self) -> Totals:
        """Return the money."""
        row = self._row()
        return Totals(row["currency"], row["cap"], row["reserved"], row["spent"])

    def slots(self) -> pa.Table:
        """Return item, batch, wanted, places, leased, filled of every item in a batch, in order."""
        return self._order.slots()

    def page(
        self,
        after: int = -1,
        state: str = "all",
        limit: int = 100,
        numbers: Sequence[int] | None = None,
    ) -> list[Slot]:
        """Return the next items of the batches behind a position: "open" ones, "done" ones, or all.

        Raises:
            UnknownNameError: There is no such state.
        """
        with self.database.read() as connection:
            return paging.page(connection, after, state, limit, numbers)

    def position(self, item: str) -> int | None:
        """Return where an item stands in the order of all batches, None if it is in none."""
        with self.database.read() as connection:
            return paging.position_of(connection, item)

    def asked(self) -> Asked:
        """Return the items of all batches in order; they neither move nor go."""
        return self._order.asked()

    @property
    def n_slots(self) -> int:
        """How many items are in a batch."""
        with self.database.read() as connection:
            return paging.n_slots(connection)

    def crowd(self, which: str = "answered") -> Crowd:
        """Return the items ("answered", in a "batch", or the whole "pool"), answers and gold."""
        self.check_facts()
        if which == "answered":
            return self._grown.crowd()
        with self.database.read() as connection:
            return reading.read_crowd(connection, which)

    @property
    def is_private(self) -> bool:
        """Whether the log and the tables name workers by pseudonym; see `goldspan.store.people`."""
        with self.database.read() as connection:
            return people.is_private(connection)

    def pseudonyms(self) -> dict[str, str]:
        """Return the pseudonym of everybody who is known, by id; empty if it is not private."""
        with self.database.read() as connection:
            return {person: known for known, person in people.ids(connection).items()}

    def about(self, who: str) -> dict[str, Any]:
        """Return all that is stored of a worker, as plain values.

        Args:
            who: An id, a pseudonym, or an id of a provider.

        Raises:
            InputError: Nobody is known by this name.
        """
        with self.database.read() as connection:
            return people.about(connection, who)

    def forget(
        self, who: str, now: int, *, dry: bool = False, unsettled: bool = False
    ) -> people.Forgotten:
        """Delete what is known of a worker, all or nothing; answers and payments stay.

        The same call again finds nothing to remove, and says so. The bytes are gone from a SQLite
        file when `goldspan.store.erasing.scrub` was called after it.

        Args:
            who: An id, a pseudonym, or an id of a provider.
            now: Milliseconds since 1970.
            dry: Whether nothing is to be changed.
            unsettled: Whether they are forgotten although a payment is under way.

        Raises:
            InputError: The campaign is not private, nobody is known by this name, or a payment is
                under way.
        """
        return self.database.write(
            now, lambda e: people.forget(e, who, dry=dry, unsettled=unsettled)
        )

    def forgotten(self) -> list[dict[str, Any]]:
        """Return the tombstones of who was forgotten, in their order: person, hash, salt, time."""
        with self.database.read() as connection:
            return people.graves(connection)

    def was_forgotten(self, who: str) -> bool:
        """Whether somebody with this id or pseudonym was forgotten, and has not come in since."""
        with self.database.read() as connection:
            known = people.find_person(connection, who)
            return known is None and people.buried(connection, who) is not None

    @property
    def n_forgotten(self) -> int:
        """How many people were forgotten; while it stays, what is known of workers holds."""
        with self.database.read() as connection:
            return people.n_forgotten(connection)

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield the log after a number; entries that come meanwhile are among them."""
        size = 1  # the first entries hold the pool: who asks for one must not wait for a thousand
        while True:
            with self.database.read() as connection:
                page = reading.read_page(connection, after, size)
            yield from page
            if len(page) < size:
                return
            after, size = page[-1].number, min(2 * size, reading.AT_ONCE)

    @property
    def n_events(self) -> int:
        """How many entries the log has: it grows with every change."""
        return int(self._row()["n_events"])

    @property
    def head(self) -> str:
        """Hash of the last entry of the log."""
        return str(self._row()["head"])

    @property
    def n_answers(self) -> int:
        """How many answers count."""
        with self.database.read() as connection:
            return watching.n_answers(connection)

    @property
    def last_answer(self) -> int:
        """Number of the last answer that counts: it grows whenever what counts changes."""
        with self.database.read() as connection:
            return watching.last_answer(connection)

    def own(self, worker: str, items: Sequence[str]) -> list[Own]:
        """Return a worker's answers to some items that count, in the order of their first version.

        Args:
            worker: The worker.
            items: Some hundred items at most.
        """
        with self.database.read() as connection:
            return watching.own(connection, worker, items)

    def is_sent(self, key: str) -> bool:
        """Whether an answer, or a change of one, is kept under a key."""
        with self.database.read() as connection:
            return watching.is_sent(connection, key)

    def n_left(self, worker: str, most: int) -> int:
        """Count the free places that a worker could take, control questions aside.

        Args:
            worker: The worker.
            most: Where counting ends.
        """
        with self.database.read() as connection:
            return choosing.n_left(connection, worker, most)

    def last_batch(self) -> tuple[str, int] | None:
        """Return the name of the batch that was opened last, and when; None before the first."""
        with self.database.read() as connection:
            return watching.last_batch(connection)

    def held(self, worker: str, now: int) -> list[Lease]:
        """Return the leases of a worker that hold, the oldest first."""
        with self.database.read() as connection:
            return watching.held(connection, worker, now)

    def given(self, item: str | None = None) -> list[Given]:
        """Return all answers as rows, drafts among them; those to an item with their labels."""
        self.check_facts()
        with self.database.read() as connection:
            return watching.given(connection, item)

    def skipped(self, item: str | None = None) -> list[Skipped]:
        """Return what workers passed, and why."""
        with self.database.read() as connection:
            return watching.skipped(connection, item)

    def standing(self) -> dict[str, bool]:
        """Return all workers by id, and whether they are asked nothing more."""
        with self.database.read() as connection:
            return watching.standing(connection)

    def is_barred(self, worker: str) -> bool:
        """Whether a worker is asked nothing more."""
        with self.database.read() as connection:
            return watching.is_barred(connection, worker)

    def fact(self, kind: str, name: str) -> dict[str, Any] | None:
        """Return one fact, None if there is none."""
        with self.database.read() as connection:
            return reading.read_fact(connection, kind, name)

    def last_time(self, kind: str) -> int | None:
        """Return when the last fact of a kind was kept, None if there is none."""
        with self.database.read() as connection:
            return reading.last_time(connection, kind)

    def count(self, kind: str) -> int:
        """Count the facts of a kind: they only grow, so that what was made of them may be kept."""
        with self.database.read() as connection:
            return reading.count_records(connection, kind)

    @property
    def is_paused(self) -> bool:
        """Whether the campaign holds no new places."""
        with self.database.read() as connection:
            return watching.is_paused(connection)

    def verify(self) -> int:
        """Compare log and tables (see `goldspan.store.verify`), and count the events.

        Raises:
            StoreError: They differ, or the database is damaged; the message names the first rows.
        """
        from goldspan.store.verify import check_whole

        return check_whole(self.database).n_events

    def check_facts(self) -> None:
        """Check once that answers and what belongs to them are those of the log.

        It is done before answers are read for the first time, which is when labels are made of
        them.

        Raises:
            StoreError: They are not.
        """
        from goldspan.store.verify import check_facts

        with self._checking:
            if not self._has_facts:
                check_facts(self.database)
                self._has_facts = True

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep out others who would steer the campaign, for `with`; answers are still taken.

        At the first time the sums are checked, and everything if a process that had the campaign
        open did not end cleanly.

        Raises:
            StoreError: Another process steers it, or the database is damaged.
        """
        with alone(self.database):
            if not self._opening:
                self._has_facts = check_start(self.database) or self._has_facts
                self._opening = mark_opened(self.database)
            yield

    def close(self) -> None:
        """Let go of the database."""
        if self._opening:
            mark_closed(self.database, self._opening)
            self._opening = ""
        self.database.engine.dispose()

    def __enter__(self) -> Self:
        """Return the ledger."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the database."""
        self.close()

    def __repr__(self) -> str:
        """Say whose ledger it is and where."""
        return f"SqlLedger({self.name!r}, {self.database.where!r})"

    @cached_property
    def _grown(self) -> Grown:
        return Grown(self.database)

    @cached_property
    def _facts(self) -> Mapping[str, Any]:
        return self._row()

    def _row(self) -> Mapping[str, Any]:
        with self.database.read() as connection:
            row = connection.execute(select(campaign)).mappings().one_or_none()
        if row is None:
            raise StoreError(f"{self.database.where} holds no campaign: create one first")
        return dict(row)
