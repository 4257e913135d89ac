"""One pass and parts: as good as is promised, and the same wherever the work is done."""

from __future__ import annotations

import numpy as np
import pytest
from naive_greedy import best_of_all, matrix_of, random_items, value_of

from goldspan.errors import InputError
from goldspan.runners import Threads
from goldspan.selection import Cost, Features, StreamingCoverage
from goldspan.selection.coverage import cover_in_parts
from goldspan.selection.greedy import Spending, Wanted, cover
from goldspan.selection.schedule import get_selector

EPSILON = 0.1


def in_chunks(stream, pool, size):
    for first in range(0, pool.shape[0], size):
        stream.feed(pool[first : first + size])
    return stream.result()


@pytest.mark.parametrize("size", [1, 4, 12])
def test_one_pass_has_half_of_the_best_at_unit_costs(size):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        items, n = random_items(rng), int(rng.integers(1, 5))
        wanted = Wanted(1 + seed % 2, "capped", weights=rng.choice([0.2, 1.0, 3.0], 15))
        pool = matrix_of(items)
        stream = StreamingCoverage(
            Features.fit(pool), budget=n, w=wanted.w, weights=wanted.weights, epsilon=EPSILON
        )
        found = in_chunks(stream, pool, size)
        assert len(found.items) <= n
        assert found.value == pytest.approx(value_of(found.items, items, wanted))
        best = best_of_all(items, wanted, Spending(n))
        assert found.value >= best / (2 * (1 + EPSILON)) - 1e-9


@pytest.mark.parametrize("size", [1, 5])
def test_one_pass_has_a_third_of_the_best_with_tokens(size):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        texts = [
            [f"w{v}" for v in rng.choice(9, rng.integers(1, 4), replace=False)]
            + ["w0"] * int(rng.integers(0, 8))
            for _ in range(10)
        ]
        features = Features.fit(texts, templates=["lower"])
        stream = StreamingCoverage(features, budget="12tokens", epsilon=EPSILON)
        for first in range(0, len(texts), size):
            stream.feed(texts[first : first + size])
        found = stream.result()
        cost = np.array([len(text) for text in texts], float)
        assert found.cost == cost[list(found.items)].sum() <= 12
        best = best_of_all(features.transform(texts), Wanted(), Spending(10, cost, 12.0))
        assert found.value >= best / (3 * (1 + EPSILON)) - 1e-9


def test_the_memory_of_a_stream_does_not_grow_with_it():
    rng = np.random.default_rng(0)
    pool = matrix_of(random_items(rng, 3000, 200, 8))
    stream = StreamingCoverage(Features.fit(pool), budget=20)
    sieves = []
    for first in range(0, 3000, 100):
        stream.feed(pool[first : first + 100])
        sieves.append(stream.result().sieves)
    assert max(sieves) <= np.log(2 * 20) / np.log(1.1) + 2
    greedy = cover(Features.fit(pool).transform(pool), Wanted(), Spending(20), np.arange(3000))
    assert stream.result().value >= 0.8 * greedy.gain.sum()
    assert stream.result().seen == 3000


def test_a_single_item_may_be_the_best():
    texts = [["a"], [*"bcdefghij"]]
    stream = StreamingCoverage(Features.fit(texts, templates=["lower"]), budget="9tokens")
    stream.feed(texts)
    assert stream.result().item_ids == ("1",)


def test_a_stream_of_nothing_keeps_nothing():
    stream = StreamingCoverage(Features.fit([["a"]], templates=["lower"]), budget=3)
    stream.feed([])
    stream.feed([["unseen"]])
    assert stream.result().items == ()


def test_a_stream_may_cost_money():
    texts = [["a", "b"], ["c"], ["d", "e", "f"]]
    stream = StreamingCoverage(
        Features.fit(texts), budget="0.35money", costs=Cost(fixed="0.1", per_token="0.05")
    )
    stream.feed(texts)
    assert stream.result().cost <= 350_000


def test_an_ambiguous_budget_of_a_stream_is_refused():
    stream = StreamingCoverage(Features.fit([["a"]]), budget=3, costs=Cost(fixed=1))
    with pytest.raises(InputError, match="3 of what"):
        stream.feed([["a"]])


@pytest.mark.parametrize(
    "params", [{"budget": 3, "w": 0}, {"budget": 3, "epsilon": 0}, {"budget": 3, "weights": [-1.0]}]
)
def test_faulty_parameters_of_a_stream_are_refused(params):
    with pytest.raises(InputError):
        StreamingCoverage(Features.fit([["a"]], templates=["lower"]), **params)


def test_parts_are_picked_as_well_as_is_promised():
    for seed in range(15):
        rng = np.random.default_rng(seed)
        items, n = random_items(rng), int(rng.integers(1, 5))
        found = cover_in_parts(
            items, Wanted(), Spending(n), rng.permutation(12),
            np.array_split(rng.permutation(12), 3), Threads(1),
        )  # fmt: skip
        best = best_of_all(items, Wanted(), Spending(n))
        assert value_of(found.item, items, Wanted()) >= (1 - 1 / np.e) / 2 * best - 1e-9
        assert len(set(found.item.tolist())) == len(found.item) <= n


def test_one_part_is_plain_coverage():
    pool = matrix_of(random_items(np.random.default_rng(1), 80, 30, 6))
    plain = get_selector("coverage").select(pool, n=12)
    one = get_selector("coverage-parts", parts=1).select(pool, n=12)
    assert one.item.tolist() == plain.item.tolist()
    assert one.gain.tolist() == plain.gain.tolist()


def test_more_parts_than_items_are_no_trouble():
    found = get_selector("coverage-parts", parts=50, weights="none").select(np.eye(3))
    assert (len(found), found.stopped) in {(3, "exhausted"), (2, "saturated")}
