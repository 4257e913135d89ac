"""Gamma and alpha_u against published values, brute force, and what chance gives."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.crowd import read_crowd
from goldspan.crowd.unitizing import (
    Units,
    category_disagreement,
    disorder_cost,
    expected_disorder,
    unit_agreement,
)
from goldspan.errors import InputError

C, K = 0, 1


@st.composite
def units(draw, length=30, kinds=2):
    cuts = draw(st.lists(st.integers(0, length), max_size=8, unique=True).map(sorted))
    pairs = list(zip(cuts[::2], cuts[1::2], strict=False))
    return Units.of([(a, b, draw(st.integers(0, kinds - 1))) for a, b in pairs])


def rows_of(found):
    return list(zip(*(one.tolist() for one in found), strict=True))


def apart(u, v):
    (a, b, k), (c, d, m) = u, v
    return ((abs(a - c) + abs(b - d)) / (b - a + d - c)) ** 2 + (k != m)


@given(units(), units())
def test_the_cost_is_that_of_the_cheapest_of_all_alignments(one, other):
    mine, theirs = rows_of(one), rows_of(other)
    if len(mine) > len(theirs):
        mine, theirs = theirs, mine
    best = math.inf
    places = [*range(len(theirs)), *[None] * len(mine)]
    for chosen in set(permutations(places, len(mine))):
        pairs = [(u, theirs[n]) for u, n in zip(mine, chosen, strict=True) if n is not None]
        alone = len(mine) + len(theirs) - 2 * len(pairs)
        best = min(best, alone + sum(apart(u, v) for u, v in pairs))
    assert disorder_cost(one, other) == pytest.approx(best)


def test_alpha_u_is_that_of_the_published_example():
    """Krippendorff (2004, p. 254): 0.0144, 0.0532, 0.7286; 0, 0.0490, 1; together 0.8591."""
    one = Units.of([(75, 145, C), (220, 250, C), (30, 90, K), (150, 200, K)])
    other = Units.of([(70, 150, C), (205, 225, C), (250, 270, C), (30, 90, K), (150, 200, K)])
    c, k = (category_disagreement(one, other, 300, kind) for kind in (C, K))
    assert c == pytest.approx((0.0144, 0.0532), abs=1e-4)
    assert k == pytest.approx((0.0, 0.0490), abs=1e-4)
    assert 1 - c[0] / c[1] == pytest.approx(0.7286, abs=1e-4)
    assert 1 - (c[0] + k[0]) / (c[1] + k[1]) == pytest.approx(0.8591, abs=5e-4)


@given(units(), units())
def test_disagreement_is_that_of_its_definition(one, other):
    length, total = 30, 0.0
    for kind in (0, 1):
        sides = [[(a, b) for a, b, k in rows_of(x) if k == kind] for x in (one, other)]
        total = sum(
            (a - c) ** 2 + (b - d) ** 2
            for a, b in sides[0]
            for c, d in sides[1]
            if max(a, c) < min(b, d)
        )
        for side, rest in (sides, sides[::-1]):
            total += sum(
                (b - a) ** 2 for a, b in side if all(min(b, d) <= max(a, c) for c, d in rest)
            )
        observed, _ = category_disagreement(one, other, length, kind)
        assert observed == pytest.approx(total / length**2)


def random_crowd(n_documents, rng, copies=False):
    rows = []
    for d in range(n_documents):
        text = " ".join("abcdefghij"[n % 10] for n in range(60))
        said = {}
        for worker in ("ann", "bob"):
            starts = np.sort(rng.choice(20, 6, replace=False)) * 6
            kinds = rng.choice(["X", "Y"], 6)
            said[worker] = [
                [int(a), int(a) + 3, str(k)] for a, k in zip(starts, kinds, strict=True)
            ]
        if copies:
            said["bob"] = said["ann"]
        rows += [
            {"item": f"i{d}", "doc": f"d{d}", "text": text, "worker": w, "spans": s}
            for w, s in said.items()
        ]
    return read_crowd(rows, format="spans")


def test_copies_agree_and_chance_does_not():
    rng = np.random.default_rng(0)
    same = unit_agreement(random_crowd(5, rng, copies=True))
    assert (same.gamma, same.alpha_u) == (1.0, 1.0)
    assert same.gamma_interval == (1.0, 1.0)
    apart = unit_agreement(random_crowd(60, rng), n_samples=20)
    assert abs(apart.gamma) < 0.08
    assert abs(apart.alpha_u) < 0.1
    low, high = apart.gamma_interval
    assert low < 0.02 < high + 0.06
    assert high - low < 0.2


def test_pairs_and_documents_are_listed():
    rows = [
        {"item": n, "doc": "d" if n < 2 else "e", "text": "Ann sang in Rome", "answers": [
            {"worker": "ann", "spans": [[0, 3, "PER"]]},
            {"worker": "bob", "spans": [[0, 3, "PER"], [12, 16, "LOC"]] if n else []},
            *([{"worker": "cat", "spans": [[12, 16, "LOC"]]}] if n == 2 else [])]}
        for n in range(3)
    ]  # fmt: skip
    found = unit_agreement(read_crowd(rows, format="spans"), n_resamples=50)
    pairs = {(row["left"], row["right"]): row for row in found.pairs.to_pylist()}
    assert {names: row["documents"] for names, row in pairs.items()} == {
        ("ann", "bob"): 2, ("ann", "cat"): 1, ("bob", "cat"): 1,
    }  # fmt: skip
    assert pairs["ann", "bob"]["spans"] == 7
    assert pairs["ann", "cat"]["gamma"] < pairs["bob", "cat"]["gamma"]
    documents = {row["document"]: row for row in found.documents.to_pylist()}
    assert {name: row["annotators"] for name, row in documents.items()} == {"d": 2, "e": 3}
    assert found.to_dict()["pairs"][0]["left"] == "ann"
    assert "gamma of spans" in str(found)
    again = unit_agreement(read_crowd(rows, format="spans"), n_resamples=50)
    assert again.to_dict() == found.to_dict()


def test_where_there_is_nothing_to_compare_nothing_is_said():
    rows = [
        {"item": n, "text": "Ann sang", "worker": w, "spans": []}
        for n, w in ((1, "ann"), (1, "bob"), (2, "ann"))
    ]
    found = unit_agreement(read_crowd(rows, format="spans"))
    assert math.isnan(found.gamma)
    assert math.isnan(found.alpha_u)
    assert found.to_dict()["gamma"] is None
    assert found.pairs.num_rows == found.documents.num_rows == 1
    of_two = [{**row, "doc": f"d{row['item']}"} for row in (*rows, {**rows[1], "item": 2})]
    nowhere = unit_agreement(read_crowd(of_two, format="spans"))  # two documents, and no span
    assert all(map(math.isnan, (*nowhere.gamma_interval, *nowhere.alpha_u_interval)))
    assert "no two annotators of a document marked any" in str(nowhere)
    alone = unit_agreement(read_crowd(rows[2:], format="spans"))
    assert alone.pairs.num_rows == 0
    with pytest.raises(InputError, match="are for spans"):
        unit_agreement(read_crowd(b"item,worker,label\n1,a,x\n1,b,x\n"))


@given(units(), units(), st.integers(0, 9))
def test_chance_is_a_number_that_the_seed_gives(one, other, seed):
    first, again = (
        expected_disorder(one, other, 30, np.random.default_rng(seed), 5) for _ in range(2)
    )
    assert first == again
    assert 0 <= first <= 2
