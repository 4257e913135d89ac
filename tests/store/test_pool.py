"""The pool: items come in blocks, once each, and come back as they were."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goldspan.crowd import CrowdBuilder
from goldspan.errors import FaultsError
from goldspan.protocols import PoolItem
from goldspan.store import pool

ITEM = PoolItem(
    "s1",
    ("Añn", 'sa"ng\0'),
    cost=7,
    group="d1",
    text="Añn sang",
    token_start=(0, 4),
    attributes={"source": "web", "year": 1999},
)


def pool_items(crowd, cost):
    """Yield the items of a crowd, without answers and gold, as a pool."""
    costs = [cost] * crowd.n_items if isinstance(cost, int) else cost
    names = crowd.item_ids.to_pylist()
    starts, bounds = crowd.token_start, crowd.offsets.tolist()
    for n, (name, amount) in enumerate(zip(names, costs, strict=True)):
        place = slice(bounds[n], bounds[n + 1])
        yield PoolItem(
            name,
            tuple(crowd.tokens[n].as_py()),
            amount,
            group=None if crowd.groups is None else crowd.groups[n].as_py(),
            text=None if crowd.texts is None else crowd.texts[n].as_py(),
            token_start=None if starts is None else tuple(starts[place].tolist()),
            attributes={}
            if crowd.attributes is None
            else crowd.attributes.slice(n, 1).to_pylist()[0],
        )


def test_an_item_comes_back_with_all_that_is_known_of_it(new_ledger):
    ledger = new_ledger()
    ledger.add_items([ITEM], 1)
    (back,) = pool_items(ledger.crowd("pool"), cost=7)
    assert back == ITEM


def test_the_items_of_a_crowd_make_the_pool_of_the_same_crowd(new_ledger):
    builder = CrowdBuilder()
    for n in range(3):
        builder.add_item(f"s{n}", ["a"] * (n + 1), group=f"d{n}", attributes={"n": n})
    crowd = builder.build()
    ledger = new_ledger()
    assert ledger.add_items(pool_items(crowd, [1, 2, 3]), 1) == 3
    back = ledger.crowd("pool")
    assert back.content()["items"] == crowd.content()["items"]
    assert back.content()["tokens"] == crowd.content()["tokens"]
    assert back.content()["groups"] == crowd.content()["groups"]
    assert back.content()["attributes"] == crowd.content()["attributes"]
    ledger.open_batch("b", ["s2"], 1, 2)
    assert ledger.crowd("batch").item_ids.to_pylist() == ["s2"]
    assert [lease.cost for lease in ledger.lease("w", 3, 9)] == [3]


def test_adding_the_pool_again_adds_nothing_and_goes_on_after_a_break(new_ledger):
    ledger = new_ledger(3)
    n_events = ledger.verify()
    again = [PoolItem(f"i{k}", ("t",), cost=10) for k in range(5)]
    assert ledger.add_items(again[:3], 1) == 0
    assert ledger.verify() == n_events
    assert ledger.add_items(again, 1) == 2


def test_a_pool_is_added_in_blocks():
    items = (PoolItem(f"i{k}", ("t",)) for k in range(12))
    assert [len(block) for block in pool.in_blocks(items, 5)] == [5, 5, 2]


@pytest.mark.parametrize(
    "other", [replace(ITEM, cost=8), replace(ITEM, tokens=("a", "b")), replace(ITEM, attributes={})]
)
def test_an_id_that_stands_twice_with_other_content_is_refused(new_ledger, other):
    ledger = new_ledger()
    with pytest.raises(FaultsError, match="item s1: the id appears twice"):
        ledger.add_items([ITEM, other], 1)
    ledger.add_items([ITEM], 1)
    with pytest.raises(FaultsError, match="item s1: is in the store with other content"):
        ledger.add_items([other], 1)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (replace(ITEM, tokens=(), token_start=None), "an item without tokens"),
        (replace(ITEM, tokens=("a", "")), "token 1: the token is empty"),
        (replace(ITEM, id=""), "must be text of 1"),
        (replace(ITEM, id="a\0"), "holds NUL"),
        (replace(ITEM, id="\ud800"), "half of a surrogate"),
        (replace(ITEM, cost=-1), "must be whole millionths"),
        (replace(ITEM, cost=0.5), "must be whole millionths"),
        (replace(ITEM, cost=2**63), "must be whole millionths"),
        (replace(ITEM, token_start=(0,)), "token_start has 1 numbers"),
        (replace(ITEM, attributes={"x": float("nan")}), "what JSON can hold"),
    ],
)
def test_an_item_at_fault_is_refused_with_its_block(new_ledger, item, message):
    ledger = new_ledger()
    with pytest.raises(ValueError, match=message):
        ledger.add_items([PoolItem("good", ("t",)), item], 1)
    assert ledger.crowd("pool").n_items == 0


def test_what_the_store_lacks_of_an_item_is_added_and_the_log_says_so(new_ledger):
    ledger = new_ledger()
    bare = PoolItem(ITEM.id, ITEM.tokens, cost=ITEM.cost, group="4")
    ledger.add_items([bare], 1)
    ledger.open_batch("b", [ITEM.id], 1, 1)
    ledger.lease("w", 2, 9)
    ledger.submit("k", "w", ITEM.id, [None, None], 3)
    assert ledger.crowd().texts is None
    assert ledger.add_items([ITEM], 4) == 0
    assert list(pool_items(ledger.crowd(), cost=7)) == [ITEM]
    assert [event.kind for event in ledger.events()][-1] == "details"
    n_events = ledger.verify()
    assert ledger.add_items([ITEM], 5) == 0
    assert ledger.verify() == n_events


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (replace(ITEM, text="Ann sang "), "text"),
        (replace(ITEM, token_start=(0, 5)), "places of tokens"),
        (replace(ITEM, text=None), "text"),
    ],
)
def test_a_text_that_the_store_has_stays_as_it_is(new_ledger, other, what):
    ledger = new_ledger()
    ledger.add_items([ITEM], 1)
    with pytest.raises(FaultsError, match=f"other content .*{what}"):
        ledger.add_items([other], 2)


def test_attributes_of_several_sorts_come_back_as_strings(new_ledger):
    ledger = new_ledger()
    values = [1, "a", True, None]
    ledger.add_items(
        [PoolItem(f"x{n}", ("t",), attributes={"v": value}) for n, value in enumerate(values)], 1
    )
    found = ledger.crowd("pool").attributes.column("v").to_pylist()
    assert found == ["1", "a", "true", None]
