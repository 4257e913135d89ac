"""The log: a chain that shows every change, and from which the state comes back."""

from __future__ import annotations

from hashlib import sha256

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError

from goldspan.errors import UnknownNameError
from goldspan.protocols import PoolItem
from goldspan.spans import Codec
from goldspan.store import queries
from goldspan.store.journal import EFFECTS, canonical, effect_of
from goldspan.store.verify import verify


@pytest.fixture
def busy(ledger):
    """A ledger in which everything has happened."""
    ledger.open_batch("b", ["i0", "i1", "i2"], k=2, now=1)
    ledger.lease("w", 2, 1, n=3)
    ledger.submit("a", "w", "i0", ["yes"], 3)
    ledger.change("a2", "w", "i0", ["no"], 4)
    ledger.release("w", "i1", 4, skip="too hard")
    ledger.submit("b", "v", "i2", [None], 2000)
    ledger.adjust({"i0": 1, "i2": 3}, 2001)
    ledger.submit("c", "v", "i0", ["no"], 2002)
    ledger.lease("u", 2003, 9)
    ledger.bar("u", 2004)
    ledger.lease("x", 2004, 9)
    ledger.pause(2005)
    ledger.set_cap(2000, 2006)
    ledger.charge("fee", 7, 2007)
    ledger.set_gold({"i3": ["no"]}, 2008, control=True)
    ledger.record("note", "n", {"a": 1.5}, 2009)
    ledger.add_items([PoolItem("i0", ("t",), cost=10, text="t")], 2010)
    more = Codec.from_types([*ledger.tagset.types, "unsure"], "PLAIN")
    assert ledger.begin_version({"hash": "a"}, ledger.tagset, 2011) == 1
    assert ledger.begin_version({"hash": "b"}, more, 2012) == 2
    ledger.submit("d", "y", "i2", ["unsure"], 2013)
    return ledger


def test_every_kind_of_event_can_happen_and_has_an_effect(busy):
    # What a private campaign's log holds besides: tests/store/test_people.py.
    private = {"forget", "note"}
    assert {event.kind for event in busy.events()} == set(EFFECTS) - private
    with pytest.raises(UnknownNameError, match="a newer goldspan"):
        effect_of("party")


def test_replaying_the_log_gives_the_same_tables(busy):
    found = verify(busy.database)
    assert found.is_whole
    assert all(n for name, n in found.n_rows.items() if name not in {"notes", "tombstones"})


def test_events_can_be_read_after_a_number(busy, monkeypatch):
    monkeypatch.setattr("goldspan.store.ledger.AT_ONCE", 3)
    everything = list(busy.events())
    assert [event.number for event in everything] == list(range(1, busy.verify() + 1))
    assert list(busy.events(after=5)) == everything[5:]


def test_the_chain_is_what_its_definition_says(busy):
    first, *_ = busy.events()
    created = '{"cap":1000,"currency":"EUR","encoding":"PLAIN","name":"c","tags":["no","yes"]}'
    assert canonical(first.body) == created
    head = ""
    for event in busy.events():
        words = f'{head}\n[{event.number},{event.time},"{event.kind}",{canonical(event.body)}]'
        head = sha256(words.encode()).hexdigest()
        assert event.hash == head


@pytest.mark.parametrize("act", ["UPDATE events SET time = 1", "DELETE FROM events"])
def test_the_database_itself_lets_the_log_only_grow(busy, act):
    with pytest.raises(DatabaseError, match="only grows"), busy.database.engine.begin() as c:
        c.execute(text(act))


def test_the_first_entry_is_read_without_those_after_it(busy, monkeypatch):
    asked = []
    read_page = queries.read_page
    monkeypatch.setattr(queries, "read_page", lambda *a: asked.append(a[2]) or read_page(*a))
    assert next(iter(busy.events())).kind == "create"
    assert asked == [1]
