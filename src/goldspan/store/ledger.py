"""The ledger of a campaign: what was asked, answered and paid, in SQLite or PostgreSQL.

`create_ledger` and `open_ledger` make a `SqlLedger`, whose methods call the functions of this
package, each in one transaction.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import pyarrow as pa
from sqlalchemy import Connection, Engine, select
from sqlalchemy.exc import DatabaseError, OperationalError

from goldspan.crowd import Crowd
from goldspan.crowd.questions import Questions
from goldspan.errors import InputError
from goldspan.protocols import Event, Lease, PoolItem, Price, Receipt, Totals
from goldspan.spans import Codec
from goldspan.store import answers, assignments, erasing, facts, people, pool, queries, roles
from goldspan.store.answers import Labels
from goldspan.store.crowd import AnswerCache, tagset_of
from goldspan.store.engine import (
    WRITE,
    StoreError,
    connect,
    is_outside,
    is_sqlite,
    store_error,
    to_url,
)
from goldspan.store.facts import Bound
from goldspan.store.journal import AT_ONCE, Database, Entry, Held, first_entry
from goldspan.store.queries import AnswerRow, Asked, Order
from goldspan.store.schema import campaign, check_amount, check_name, make_tables
from goldspan.store.verify import check_facts, check_whole

Result = TypeVar("Result")
P = ParamSpec("P")


def _asks(
    query: Callable[Concatenate[Connection, P], Result],
) -> Callable[Concatenate[SqlLedger, P], Result]:
    """Make a query a method, which asks one state of the database."""

    @wraps(query)
    def method(self: SqlLedger, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        return self.database.query(query, *args, **kwargs)

    return method


class SqlLedger:
    """A campaign's ledger in SQLite or PostgreSQL; made by `open_ledger` and `create_ledger`.

    Every method that takes `now` (milliseconds since 1970) is one transaction: when it returns,
    what it did is on the disk; when it raises, nothing was changed. Threads may share a ledger,
    and processes may open the same one. Calls can be made again after an interruption: the same
    names and keys with the same content change nothing, whatever the time. Its time never
    goes back: an earlier `now` is taken for that of the last event. Money is in millionths of the
    currency unit; what is reserved and what is spent never exceed the cap together.

    Args:
        database: The open database.
    """

    def __init__(self, database: Database) -> None:
        self.database, self._opening, self._steers = database, "", False
        self._has_facts, self._checking = False, threading.Lock()
        self._order = Order(database)
        self._cache: AnswerCache | None = None
        self.labels_folder: Path | None = None  # Where labels that took long are kept

    number_of = _asks(facts.number_of)
    records = _asks(queries.read_records)
    page = _asks(queries.page)
    position = _asks(queries.position_of)
    about = _asks(erasing.about)
    forgotten = _asks(people.read_tombstones)
    own = _asks(queries.own)
    counted = _asks(queries.counted)
    is_sent = _asks(queries.is_sent)
    n_tokens = _asks(queries.n_tokens)
    n_coming = _asks(assignments.n_coming)
    last_batch = _asks(queries.last_batch)
    held = _asks(queries.held)
    skipped = _asks(queries.skipped)
    standing = _asks(queries.standing)
    is_barred = _asks(queries.is_barred)
    fact = _asks(queries.read_fact)
    last_time = _asks(queries.last_time)
    count = _asks(queries.count_records)
    n_slots = property(_asks(queries.n_slots))
    is_private = property(_asks(people.is_private))
    n_forgotten = property(_asks(people.n_forgotten))
    n_answers = property(_asks(queries.n_answers))
    last_answer = property(_asks(queries.last_answer))
    is_paused = property(_asks(queries.is_paused))

    @cached_property
    def name(self) -> str:
        """The campaign's name."""
        return str(self._facts["name"])

    @cached_property
    def tagset(self) -> Codec | Questions:
        """The campaign's tags and their encoding, or its layers."""
        return tagset_of(self._facts["tags"], self._facts["encoding"])

    def add_items(self, items: Iterable[PoolItem], now: int) -> int:
        """Add items to the pool, a block per transaction, and count the new ones.

        Raises:
            FaultsError: Items of a block are faulty, appear twice, or are there with other content;
                blocks before it are kept, and adding the same pool again goes on.
        """
        before = self.n_events
        added = sum(
            self.database.write(now, pool.add_block, block) for block in pool.in_blocks(items)
        )
        if self.n_events != before:  # what is known of items that were read may have grown
            self._cache = None
        return added

    def open_batch(self, name: str, items: Sequence[str], k: int, now: int) -> int:
        """Ask for k answers to every item, in this order of priority; return the batch's number."""
        return self.database.write(now, pool.open_batch, name, items, k)

    def adjust(self, wanted: Mapping[str, int], now: int) -> int:
        """Set how many answers items are to get; places in use stay. Count what changed."""
        return self.database.write(now, pool.adjust, wanted)

    def lease(
        self, worker: str, now: int, seconds: float, n: int = 1, items: Sequence[str] | None = None,
        *, price: Price | None = None,
    ) -> list[Lease]:  # fmt: skip
        """Assign items to a worker until n are held, as far as there are places and money.

        Reserved is what an item costs, or the worker's own `price`.
        """
        return self.database.write(now, assignments.lease, worker, seconds, n, items, price=price)

    def submit(
        self, key: str, worker: str, item: str, labels: Labels, now: int,
        *, cost: int | None = None,
    ) -> Receipt:  # fmt: skip
        """Take an answer, a label per token (None: skipped) or by layer, and pay if it counts.

        Paid is what was reserved, or `cost`: of that no more than the cap allows.

        Raises:
            FaultsError: The item is in no batch, or the labels do not fit it.
        """
        return self.database.write(
            now, answers.submit, key, worker, item, labels, self.tagset, cost
        )

    def change(self, key: str, worker: str, item: str, labels: Labels, now: int) -> Receipt:
        """Put another version of a worker's answer in the place of the one that counts.

        Raises:
            FaultsError: No answer of the worker counts, or the labels do not fit the item.
        """
        return self.database.write(now, answers.change, key, worker, item, labels, self.tagset)

    def release(self, worker: str, item: str, now: int, skip: str = "", *, cost: int = 0) -> bool:
        """End an assignment; with a reason to skip, the worker is not asked again.

        Args:
            worker: Who holds it.
            item: The item.
            now: Milliseconds since 1970.
            skip: Why there is no answer.
            cost: What is paid all the same, in millionths, as far as the cap allows.
        """
        check_amount(cost, "the cost of no answer")

        def act(entry: Entry) -> bool:
            is_done = assignments.release(entry, worker, item, skip)
            paid = min(cost, entry.balance.left)
            if is_done and paid:
                facts.charge(entry, f"missing:{worker}:{item}", paid)
            return is_done

        return self.database.write(now, act)

    def expire(self, now: int) -> int:
        """End the assignments whose time is over, and count them."""
        return self.database.write(now, assignments.expire_due)

    def bar(self, worker: str, now: int, *, barred: bool = True) -> None:
        """Assign nothing more to a worker and end the assignments, or assign again."""
        self.database.write(now, assignments.bar, worker, barred=barred)

    def pause(self, now: int, *, paused: bool = True) -> None:
        """Assign nothing, or again; answers are still taken."""
        self.database.write(now, facts.pause, paused=paused)

    def set_cap(self, cap: int, now: int) -> None:
        """Change what may be spent.

        Raises:
            InputError: More is reserved or spent already.
        """
        self.database.write(now, facts.set_cap, cap)

    def charge(self, name: str, amount: int, now: int) -> bool:
        """Pay something other than an answer, once per name; False if the money is short."""
        return self.database.write(now, facts.charge, name, amount)

    def set_gold(self, gold: Mapping[str, Labels], now: int, *, control: bool = False) -> None:
        """Keep known labels of items, and whether these are gold questions."""
        self.database.write(now, facts.set_gold, gold, self.tagset, control=control)

    def record(self, kind: str, name: str, body: Mapping[str, Any], now: int) -> None:
        """Keep a fact under a name: the version of a model, a verdict, a note."""
        self.database.write(now, facts.record, kind, name, body)

    def begin_version(self, about: Mapping[str, Any], tagset: Codec | Questions, now: int) -> int:
        """Begin a version of the label set and guideline, and return its number.

        Answers received from now on are of this version. The last version with the same `hash` in
        `about` and the same tags goes on.

        Raises:
            InputError: A tag that is in force is missing, or the encoding is another one.
        """
        number = self.database.write(now, facts.begin_version, about, tagset)
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
                facts.count(entry, bound)
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
        self.database.write(now, facts.count, Bound(kind, name, most, now))

    def revise(
        self, kind: str, name: str, change: Callable[[int | None], tuple[int, int]], now: int
    ) -> None:
        """Replace a number that limits something: see `goldspan.store.facts.revise`."""
        self.database.write(now, facts.revise, kind, name, change)

    def totals(self) -> Totals:
        """Return the money."""
        row = self._row()
        return Totals(row["currency"], row["cap"], row["reserved"], row["spent"])

    def slots(self) -> pa.Table:
        """Return item, batch, wanted, places, leased, filled of every item in a batch, in order."""
        return self._order.slots()

    def asked(self) -> Asked:
        """Return the items of all batches in order; they neither move nor go."""
        return self._order.asked()

    def crowd(self, which: str = "answered") -> Crowd:
        """Return the items ("answered", in a "batch", or the whole "pool"), answers and gold."""
        self.check_facts()
        if which == "answered":
            if self._cache is None:
                self._cache = AnswerCache(self.database)
            return self._cache.crowd()
        return self.database.query(queries.read_crowd, which)

    def layers(self, which: str = "answered") -> dict[str, Crowd]:
        """Return `crowd` by layer; its only name is "" where there is one question."""
        if not isinstance(self.tagset, Questions):
            return {"": self.crowd(which)}
        self.check_facts()
        return self.database.query(queries.read_layers, which)

    def pseudonyms(self) -> dict[str, str]:
        """Return the pseudonym of everybody who is known, by id; empty if it is not private."""
        with self.database.read() as connection:
            return {person: known for known, person in people.ids(connection).items()}

    def forget(
        self, who: str, now: int, *, dry: bool = False, unsettled: bool = False
    ) -> erasing.Forgotten:
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
        found = self.database.write(now, erasing.forget, who, dry=dry, unsettled=unsettled)
        if self.labels_folder is not None and not dry:
            shutil.rmtree(self.labels_folder, ignore_errors=True)
        return found

    def was_forgotten(self, who: str) -> bool:
        """Whether somebody with this id or pseudonym was forgotten, and has not come in since."""
        with self.database.read() as connection:
            known = people.find_person(connection, who)
            return known is None and people.find_tombstone(connection, who) is not None

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield the log after a number; entries that come meanwhile are among them."""
        size = 1  # the first entries hold the pool: who asks for one must not wait for a thousand
        while True:
            with self.database.read() as connection:
                page = queries.read_page(connection, after, size)
            yield from page
            if len(page) < size:
                return
            after, size = page[-1].number, min(2 * size, AT_ONCE)

    @property
    def n_events(self) -> int:
        """How many entries the log has: it grows with every change."""
        return int(self._row()["n_events"])

    @property
    def head(self) -> str:
        """Hash of the last entry of the log."""
        return str(self._row()["head"])

    def given(self, item: str | None = None) -> list[AnswerRow]:
        """Return all answers as rows, drafts among them; those to an item with their labels."""
        self.check_facts()
        return self.database.query(queries.given, item)

    def skipped_by(self, worker: str) -> set[str]:
        """Return the items that a worker gave no answer to, and is not asked about again."""
        return {row.item for row in self.skipped() if row.worker == worker}

    def verify(self) -> int:
        """Compare log and tables (see `goldspan.store.verify`), and count the events.

        Raises:
            StoreError: They differ, or the database is damaged; the message names the first rows.
        """
        return check_whole(self.database).n_events

    def check_facts(self) -> None:
        """Check once that answers and what belongs to them are those of the log.

        It is done before answers are read for the first time, which is when labels are made of
        them.

        Raises:
            StoreError: They are not.
        """
        with self._checking:
            if not self._has_facts:
                check_facts(self.database)
                self._has_facts = True

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep out others who would steer the campaign, for `with`; answers are still taken.

        At the first time the sums are checked, and everything if a process that had the campaign
        open did not end cleanly. Within `steering` nothing more is taken.

        Raises:
            StoreError: Another process steers it, or the database is damaged.
        """
        if self._steers:
            yield
            return
        with roles.alone(self.database):
            if not self._opening:
                self._has_facts = roles.check_start(self.database) or self._has_facts
                self._opening = roles.mark_opened(self.database)
            yield

    @contextmanager
    def steering(self) -> Iterator[None]:
        """Keep out others who would steer the campaign for as long as a process does, for `with`.

        Raises:
            StoreError: As for `alone`.
        """
        with self.alone():
            self._steers = True
            try:
                yield
            finally:
                self._steers = False

    def close(self) -> None:
        """Close the database."""
        if self._opening:
            roles.mark_closed(self.database, self._opening)
            self._opening = ""
        self.database.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        """Name the campaign and the database."""
        return f"SqlLedger({self.name!r}, {self.database.where!r})"

    @cached_property
    def _facts(self) -> Mapping[str, Any]:
        return self._row()

    def _row(self) -> Mapping[str, Any]:
        with self.database.read() as connection:
            row = connection.execute(select(campaign)).mappings().one_or_none()
        if row is None:
            raise StoreError(f"{self.database.where} holds no campaign: create one first")
        return dict(row)


# --------------------------------------------------------------------------------------------------
# Creating the ledger of a new campaign, and opening one that exists.


def create_ledger(
    place: str | Path, *, name: str, cap: int, currency: str, tagset: Codec | Questions, now: int,
    private: bool = False,
) -> SqlLedger:  # fmt: skip
    """Create the ledger of a new campaign; the same call again opens it.

    Args:
        place: Path of a SQLite file, or an address "postgresql://…" of an empty database.
        name: The campaign's name.
        cap: What may be spent, in millionths of the currency unit. In a campaign that is there it
            stays what it is: `set_cap` changes it.
        currency: Its unit.
        tagset: The tags and their encoding, or the layers.
        now: Milliseconds since 1970.
        private: Whether the log and the tables name workers by random pseudonyms, and what is
            known of them can be deleted; a campaign that is there stays what it is.

    Raises:
        InputError: Another campaign is there, or an argument is out of range.
        StoreError: The database cannot be opened or written.

    >>> import tempfile
    >>> from goldspan.protocols import PoolItem
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = create_ledger(
    ...     f"{folder.name}/c.db", name="c", cap=100, currency="EUR",
    ...     tagset=Codec.from_types(["yes", "no"], "PLAIN"), now=0)
    >>> ledger.add_items([PoolItem("i1", ("fine?",), cost=60)], now=1)
    1
    >>> batch = ledger.open_batch("first", ["i1"], k=2, now=2)
    >>> [lease.item for lease in ledger.lease("w1", now=3, seconds=60)]
    ['i1']
    >>> ledger.submit("key", "w1", "i1", ["yes"], now=4).status
    'accepted'
    >>> ledger.totals().left, ledger.lease("w2", now=5, seconds=60)
    (40, [])
    >>> ledger.close(); folder.cleanup()
    """
    check_name(name, "a campaign's name")
    body = {"name": name, "currency": currency, "cap": check_amount(cap, "the cap")}
    body |= {"tags": list(tagset.tags), "encoding": tagset.encoding}
    body |= {"private": 1} if private else {}
    database = _database(place, new=True)
    try:
        _found(database, body, tagset, now)
    except BaseException:
        database.engine.dispose()
        raise
    return SqlLedger(database)


def open_ledger(place: str | Path) -> SqlLedger:
    """Open the ledger of a campaign.

    Args:
        place: Path of a SQLite file, or an address "postgresql://…".

    Raises:
        InputError: There is no campaign.
        StoreError: A newer goldspan made it, or it cannot be read.
    """
    database = _database(place, new=False)
    ledger = SqlLedger(database)
    try:
        _ = ledger.name
    except BaseException:
        ledger.close()
        raise
    return ledger


def where_of(place: str | Path) -> str:
    """Name a place in messages, without its password."""
    url = to_url(place)
    return str(url.database) if url.get_backend_name() == "sqlite" else url.render_as_string()


def _database(place: str | Path, *, new: bool) -> Database:
    url, where = to_url(place), where_of(place)
    if url.get_backend_name() == "sqlite" and not new and not Path(str(url.database)).is_file():
        raise InputError(f"there is no campaign at {where}: create one first")
    held = Held()
    engine = connect(url, held.sign)
    try:
        _make_tables(engine, where)
    except BaseException:
        engine.dispose()
        raise
    return Database(engine, where, held)


def _make_tables(engine: Engine, where: str) -> None:
    try:
        make_tables(engine, where)
    except OperationalError as error:
        raise store_error(error, where) from None
    except DatabaseError as error:
        if is_sqlite(engine) and is_outside(error):
            raise store_error(error, f"{where} is not a campaign's database") from None
        why = str(error.orig).strip().splitlines()[0]
        raise StoreError(f"{where} is not a campaign's database: {why}") from None


def _found(
    database: Database, body: dict[str, object], tagset: Codec | Questions, now: int
) -> None:
    """Write the first event, or check that it says the same."""
    try:
        with database.engine.connect() as plain:
            connection = plain.execution_options(**WRITE)
            with connection.begin():
                if not (connection.execute(select(campaign.c.id)).first() is not None):
                    entry = first_entry(connection, now)
                    entry.log("create", body)
                    entry.close()
                    return
    except DatabaseError as error:
        if not is_outside(error):
            raise
        raise store_error(error, database.where) from None
    ledger = SqlLedger(database)
    first = next(ledger.events()).body
    # The cap is one of those that were set since; a campaign stays private or not; labels may be
    # added.
    fixed = [name for name in body if name not in {"cap", "private", "tags"}]
    other = [name for name in fixed if body[name] != first[name]]
    if other:
        told = ", ".join(f"{name} {first[name]!r}, not {body[name]!r}" for name in other)
        raise InputError(
            f"{database.where} holds the campaign {first['name']!r} with other settings ({told}): "
            "take them back, or give another place (on the command line --out or --store)"
        )
    lost = [tag for tag in ledger.tagset.tags if tag not in tagset.index]
    begun = ledger.tagset
    if lost and isinstance(begun, Questions) and isinstance(tagset, Questions):
        told = ", ".join(one.name for one in begun.each if one not in tagset.each)
        raise InputError(
            f"{database.where} holds the campaign {first['name']!r} with other layers: they stay "
            f"as they began, and these do not: {told}. Put them back; for another task give "
            "another place (on the command line --out or --store)"
        )
    if lost:
        gone = ", ".join(label for label in ledger.tagset.types if label not in tagset.types)
        raise InputError(
            f"{database.where} holds the campaign {first['name']!r} with other settings: labels "
            f"are missing now ({gone}). Labels can be added while a campaign runs, but not removed "
            "or renamed: put them back (the guideline may tell annotators not to use them), and "
            "rename labels when the export is read (`--label OLD=NEW`); for another task give "
            "another place (on the command line --out or --store)"
        )
