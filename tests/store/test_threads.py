"""Many threads and two open ledgers at once: never over k, never over the cap."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from goldspan.store import open_ledger
from goldspan.store.verify import faults_of


def work(ledger, worker):
    done = []
    while leases := ledger.lease(worker, now=5, seconds=60):
        for lease in leases:
            key = f"{worker}-{lease.item}"
            assert ledger.submit(key, worker, lease.item, ["yes"], now=6).status == "accepted"
            done.append(lease.item)
    return done


def test_eight_threads_never_exceed_the_places_or_the_money(new_place, new_ledger):
    place = new_place()
    first = new_ledger(6, cap=155, place=place)
    first.open_batch("b", [f"i{n}" for n in range(6)], k=3, now=1)
    with open_ledger(place) as second, ThreadPoolExecutor(8) as pool:
        both = [first, second] * 4
        done = list(pool.map(work, both, "stuvwxyz"))
    counts = Counter(item for items in done for item in items)
    assert max(counts.values()) <= 3
    assert sum(counts.values()) == 15
    assert (first.totals().spent, first.totals().reserved) == (150, 0)
    assert faults_of(first.database) == []
    first.verify()


def test_one_key_sent_by_eight_threads_at_once_gives_one_answer(new_ledger):
    ledger = new_ledger(1)
    ledger.open_batch("b", ["i0"], k=3, now=1)
    with ThreadPoolExecutor(8) as pool:
        receipts = list(
            pool.map(lambda _: ledger.submit("key", "w", "i0", ["yes"], now=2), range(8))
        )
    assert len(set(receipts)) == 1
    assert sum(not receipt.repeated for receipt in receipts) == 1
    assert ledger.totals().spent == 10
