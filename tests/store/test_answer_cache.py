"""Reading on from what was seen gives the crowd that reading everything gives."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from goldspan.protocols import PoolItem
from goldspan.spans import Codec
from goldspan.store import create_ledger, open_ledger, pool
from goldspan.store import crowd as cache
from goldspan.store.queries import read_crowd

TAGS = Codec.from_types(["PER", "LOC"], "BIO")
LABELS = ["B-PER", "B-LOC", "O", None]


def in_full(ledger):
    """Read everything anew."""
    with ledger.database.read() as connection:
        return read_crowd(connection)


def parts(crowd):
    """Return all columns of a crowd by name."""
    every = {name: getattr(crowd, name) for name in crowd.__dataclass_fields__}
    answers = every.pop("answers")
    return {**every, **{f"answers.{n}": getattr(answers, n) for n in answers.__dataclass_fields__}}


def assert_same(found, expected):
    """Compare every column: type, order and value."""
    found, expected = parts(found), parts(expected)
    for name, column in expected.items():
        if isinstance(column, np.ndarray):
            assert found[name].dtype == column.dtype, name
            assert found[name].tolist() == column.tolist(), name
            assert not found[name].flags.writeable
        elif isinstance(column, pa.Array | pa.Table):
            assert found[name].equals(column), name  # the types, too
        else:
            assert found[name] == column, name


def some_item(rng, n, kind):
    """Make an item; its kind says which facts all, some or no items have."""
    words = tuple(rng.choice(["Rome", "東京", "", "a\nb"]) or "x" for _ in range(rng.randint(1, 4)))
    has = {name: kind == "all" or (kind == "some" and rng.random() < 0.5) for name in "gtsa"}
    starts = tuple(sum(len(word) + 1 for word in words[:k]) for k in range(len(words)))
    text = " ".join(words) if has["t"] or has["s"] else None
    facts = {"length": len(words), rng.choice(["p", "q"]): rng.choice([None, 1.5, 2])}
    return PoolItem(
        f"i{n}",
        words,
        cost=10,
        group=rng.choice(["g", "h"]) if has["g"] else None,
        text=text,
        token_start=starts if has["s"] else None,
        attributes=facts if has["a"] else {},
    )


@pytest.fixture
def campaign(new_place):
    """Makes campaigns of 12 items in a seeded disorder."""
    made = []

    def make(seed, kind, place=None):
        rng = random.Random(seed)
        items = [some_item(rng, n, kind) for n in range(12)]
        ledger = create_ledger(
            place or new_place(), name="c", cap=10**6, currency="EUR", tagset=TAGS, now=0
        )
        ledger.add_items(items, now=0)
        lengths = {item.id: len(item.tokens) for item in items}
        ledger.open_batch("b", rng.sample(sorted(lengths), 12), k=3, now=1)
        made.append(ledger)
        return ledger, lengths, rng

    yield make
    for ledger in made:
        ledger.close()


def answer(ledger, lengths, rng, key):
    """Send an answer, often with a lease, now and then one that does not count."""
    worker, now = rng.choice("vwxyz"), 2 + key
    held = ledger.lease(worker, now, 60) if rng.random() < 0.5 else []
    item = held[0].item if held else rng.choice(sorted(lengths))
    labels = [rng.choice(LABELS) for _ in range(lengths[item])]
    if ledger.own(worker, [item]):
        ledger.change(f"again-{key}", worker, item, labels, now)
        return False
    return ledger.submit(f"key-{key}", worker, item, labels, now).counts


@pytest.mark.parametrize(("seed", "kind"), [(1, "all"), (2, "some")])
def test_every_look_gives_what_reading_everything_gives(campaign, monkeypatch, seed, kind):
    monkeypatch.setattr(cache, "PAGE", 3)
    monkeypatch.setattr(pool, "FEW", 2)
    ledger, lengths, rng = campaign(seed, kind)
    assert_same(ledger.crowd(), in_full(ledger))
    counted, key, sizes = [], 0, set()
    for n_new in (1, 0, 7, 12):
        for _ in range(n_new):
            counted.append(answer(ledger, lengths, rng, key))
            key += 1
        item = rng.choice(sorted(lengths))
        gold = [rng.choice(LABELS[:3]) for _ in range(lengths[item])]
        ledger.set_gold({item: gold}, 2 + key)
        assert_same(ledger.crowd(), in_full(ledger))
        sizes.add(len(ledger.crowd().answers))
    assert set(counted) == {True, False}
    assert max(sizes) == sum(counted)
    assert len(sizes) == 3
    given = {
        (row.item, row.worker): row.labels
        for item in lengths
        for row in ledger.given(item)
        if row.counts
    }
    crowd, words = ledger.crowd(), [*TAGS.tags, None]
    assert {
        (crowd.item_ids[i].as_py(), crowd.worker_ids[w].as_py()): [words[c] for c in codes]
        for i, w, codes in zip(
            crowd.answers.item.tolist(),
            crowd.answers.worker.tolist(),
            np.split(crowd.answers.codes, crowd.answers.offset[1:-1]),
            strict=True,
        )
    } == given


def test_an_answer_is_read_once(campaign, monkeypatch):
    ledger, lengths, _ = campaign(5, "no")
    read, real = [], cache.answers_of
    monkeypatch.setattr(cache, "answers_of", lambda r, t: (read.append(len(r)), real(r, t))[1])
    for key in range(6):
        ledger.submit(f"k{key}", "w", f"i{key}", ["O"] * lengths[f"i{key}"], 2 + key)
        ledger.crowd()
        ledger.crowd()
    assert sum(read) == 6


def test_what_was_given_stays_as_it_was(campaign):
    ledger, lengths, rng = campaign(6, "all")
    answer(ledger, lengths, rng, 0)
    before = ledger.crowd()
    copy = in_full(ledger)
    for key in range(1, 15):
        answer(ledger, lengths, rng, key)
    assert len(ledger.crowd().answers) > len(before.answers)
    assert_same(before, copy)


def test_threads_that_look_while_others_answer_see_whole_crowds(campaign, new_place):
    place = new_place()
    ledger, lengths, _ = campaign(7, "some", place)
    over = threading.Event()

    def look():
        seen = []
        while not over.is_set():
            crowd = ledger.crowd()
            seen.append(len(crowd.answers))
            assert len(crowd.answers.codes) == crowd.answers.offset[-1]
        return seen

    with open_ledger(place) as other, ThreadPoolExecutor(3) as pool:
        looks = [pool.submit(look) for _ in range(3)]
        try:
            for key, item in enumerate(sorted(lengths) * 2):
                who = f"w{key}"
                other.submit(f"k{key}", who, item, ["O"] * lengths[item], 2 + key)
        finally:
            over.set()
        for seen in (each.result() for each in looks):
            assert seen == sorted(seen)
    assert_same(ledger.crowd(), in_full(ledger))
    assert len(ledger.crowd().answers) == 24
