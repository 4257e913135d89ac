"""The store: leases and answers on SQLite and PostgreSQL, a pool of a million items, its import.

The peer is the bare database, as fast as it can be asked to keep the same rows safely: sqlite3 with
WAL and `synchronous=FULL`, psycopg with the server's defaults, one transaction per lease and per
answer, without constraints, money, log or checks. Both sides wait for the same disk, in turn.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from children import Tell, Work, measured
from goldspan.protocols import PoolItem
from goldspan.spans import Codec
from goldspan.store import SqlLedger, create_ledger
from pairs import Row
from postgres import server

TAGS = Codec.from_types(["PER", "LOC"], "BIO")
TOKENS = ("Ann", "saw", "the", "boats", "of", "Port", "Ellery", "leave", "early", ".")
LABELS = ["B-PER", "O", "O", "O", "O", "B-LOC", "I-LOC", "O", "O", "O"]
SMALL, MILLION, PAIRS, ROUNDS, K, SECONDS = 2_000, 1_000_000, 500, 5, 3, 600.0
N_WORKERS, CAP, COST = 200, 10**15, 40_000
P99 = 0.016
"""Seconds; what docs/storage.md says of a lease, and of an answer, while the cores are busy."""
NAN = float("nan")
Pair = Callable[[int], Any]
"""Hold a place and answer, for the n-th time."""


def run() -> list[Row]:
    """Run all of them; PostgreSQL where it is installed."""
    with tempfile.TemporaryDirectory() as folder, server() as socket:
        rows = [_pairs("SQLite", *_sqlite(Path(folder)))]
        if socket is None:
            print("PostgreSQL is not installed: its line is left out", file=sys.stderr)
        else:
            rows.append(_pairs("PostgreSQL", *_postgres(socket)))
    return [*rows, *_million()]


def _pairs(name: str, ours: Pair, peer: Pair) -> Row:
    """Time blocks of pairs in turn, after one that is not counted."""
    counts = iter(range(10**9))
    times = []
    for _ in range(ROUNDS + 1):
        block = [next(counts) for _ in range(PAIRS)]
        times.append(tuple(_seconds(side, block) for side in (ours, peer)))
    mine, theirs = (statistics.median(side) / PAIRS for side in zip(*times[1:], strict=True))
    return Row(
        f"a lease and its answer, {name} (bare transactions)",
        mine,
        theirs,
        statistics.median(b / a for a, b in times[1:]),
        "-",
        ok=True,
        ours_mb=NAN,
        peer_mb=NAN,
        note=f"{1 / mine:,.0f} pairs a second against {1 / theirs:,.0f}",
    )


def _seconds(pair: Pair, block: list[int]) -> float:
    begin = time.perf_counter()
    for n in block:
        pair(n)
    return time.perf_counter() - begin


def _sqlite(folder: Path) -> tuple[Pair, Pair]:
    bare = _bare(folder / "bare.sqlite")
    bare.execute("CREATE TABLE leases (worker, item, until)")
    bare.execute("CREATE TABLE answers (name PRIMARY KEY, worker, item, labels)")

    def keep(n: int) -> None:
        _, worker, item = _names(n)
        bare.execute("INSERT INTO leases VALUES (?, ?, ?)", (worker, item, n))
        bare.execute("INSERT INTO answers VALUES (?, ?, ?, ?)", (n, worker, item, str(LABELS)))

    return _ours(_small(str(folder / "ours.sqlite"))), keep


def _bare(path: Path) -> sqlite3.Connection:
    """Open a database that commits every statement, as safely as ours does."""
    found = sqlite3.connect(path, isolation_level=None)
    found.execute("PRAGMA journal_mode=WAL")
    found.execute("PRAGMA synchronous=FULL")
    return found


def _postgres(socket: str) -> tuple[Pair, Pair]:
    import psycopg

    bare = psycopg.connect(host=socket, user="goldspan", dbname="postgres", autocommit=True)
    bare.execute("CREATE SCHEMA bare")
    bare.execute("CREATE TABLE bare.leases (worker text, item text, until bigint)")
    columns = "name bigint PRIMARY KEY, worker text, item text, labels text"
    bare.execute(f"CREATE TABLE bare.answers ({columns})")

    def keep(n: int) -> None:
        _, worker, item = _names(n)
        bare.execute("INSERT INTO bare.leases VALUES (%s, %s, %s)", (worker, item, n))
        row = (n, worker, item, str(LABELS))
        bare.execute("INSERT INTO bare.answers VALUES (%s, %s, %s, %s)", row)

    return _ours(_small(f"postgresql+psycopg://goldspan@/postgres?host={quote(socket)}")), keep


def _names(n: int) -> tuple[str, str, str]:
    return f"key-{n}", f"w{n % N_WORKERS}", f"i{n // K}"


def _small(place: str) -> SqlLedger:
    ledger = _ledger(place)
    ledger.add_items(_items(SMALL), 1)
    ledger.open_batch("b", [item.id for item in _items(SMALL)], K, 2)
    return ledger


def _ledger(place: str) -> SqlLedger:
    return create_ledger(place, name="bench", cap=CAP, currency="EUR", tagset=TAGS, now=0)


def _items(n: int) -> Iterator[PoolItem]:
    return (PoolItem(f"i{k}", TOKENS, COST) for k in range(n))


def _ours(ledger: SqlLedger) -> Pair:
    def pair(n: int) -> tuple[float, float]:
        key, worker, _ = _names(n)
        begin = time.perf_counter()
        (lease,) = ledger.lease(worker, 10 + n, SECONDS)
        middle = time.perf_counter()
        receipt = ledger.submit(key, worker, lease.item, LABELS, 10 + n)
        assert receipt.status == "accepted", receipt
        return middle - begin, time.perf_counter() - middle

    return pair


class Pool(NamedTuple):
    """An empty place for so many items."""

    folder: tempfile.TemporaryDirectory[str]
    n_items: int

    @property
    def place(self) -> str:
        """Path of the database."""
        return str(Path(self.folder.name) / "pool.sqlite")


def _million() -> list[Row]:
    """Import a million items on both sides, and lease and answer among them."""
    work = Work(_empty, _import, _lease_and_answer)
    found = measured(work, 1_000, MILLION)
    bare = measured(Work(_empty, _import_bare, _clean), 1_000, MILLION)
    lease, answer = found.value
    imported = Row(
        f"add {MILLION:,} items of {len(TOKENS)} tokens, SQLite (bare rows, as many a transaction)",
        found.seconds,
        bare.seconds,
        bare.seconds / found.seconds,
        "-",
        ok=True,
        ours_mb=found.added_mb,
        peer_mb=bare.added_mb,
        note="one run; ours also checks every item, writes it into the log and hashes it",
    )
    asked = Row(
        f"a lease among {MILLION:,} items, SQLite: 99 of 100 take less",
        lease["p99"],
        NAN,
        NAN,
        f"< {1000 * P99:g} ms, an answer too",
        lease["p99"] < P99 and answer["p99"] < P99,
        NAN,
        NAN,
        f"half take less than {1000 * lease['p50']:.1f} ms; an answer: 99 of 100 less than "
        f"{1000 * answer['p99']:.1f} ms, half less than {1000 * answer['p50']:.1f} ms; "
        f"{N_WORKERS} workers, {K} places an item, {lease['n']} pairs",
    )
    return [imported, asked]


def _empty(n_items: int) -> Pool:
    return Pool(tempfile.TemporaryDirectory(prefix="goldspan-bench-"), n_items)


def _import(pool: Pool, _: Tell) -> None:
    with _ledger(pool.place) as ledger:  # type: ignore[attr-defined]
        ledger.add_items(_items(pool.n_items), 1)


def _import_bare(pool: Pool, _: Tell) -> None:
    bare = _bare(Path(pool.place))
    bare.execute("CREATE TABLE items (id PRIMARY KEY, tokens, cost)")
    rows = ((item.id, json.dumps(item.tokens), item.cost) for item in _items(pool.n_items))
    for _ in range(0, pool.n_items, 5_000):
        bare.execute("BEGIN")
        block = [row for _, row in zip(range(5_000), rows, strict=False)]
        bare.executemany("INSERT INTO items VALUES (?, ?, ?)", block)
        bare.execute("COMMIT")
    bare.close()


def _clean(pool: Pool, _: None) -> None:
    pool.folder.cleanup()


def _lease_and_answer(pool: Pool, _: None) -> tuple[dict[str, float], dict[str, float]]:
    """Open all as one batch, then time 3,000 pairs."""
    with _ledger(pool.place) as ledger:  # type: ignore[attr-defined]
        ledger.open_batch("b", [item.id for item in _items(pool.n_items)], K, 2)
        pair = _ours(ledger)
        n_pairs = min(3_000, pool.n_items)
        times = np.array([pair(n) for n in range(n_pairs + 100)])[100:]
    pool.folder.cleanup()
    halves, tails = np.quantile(times, [0.5, 0.99], axis=0)
    return tuple(
        {"n": n_pairs, "p50": float(half), "p99": float(tail)}
        for half, tail in zip(halves, tails, strict=True)
    )
