"""Habits about spans do what they say: hand-made spans at p = 1, rates and properties below."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.errors import InputError, UnknownNameError
from goldspan.simulation import draw_truth
from goldspan.spans import Span, Tagged, find_errors, find_spans, parse, write
from simulation.scenes import answer, tags_of, truth_of

HABITS = ("early", "late", "merges", "splits", "misses", "invents", "wrong_type")


@pytest.mark.parametrize(
    ("worker", "truth", "wanted"),
    [
        ("early(1)", "O O B-PER I-PER O", "O B-PER I-PER I-PER O"),
        ("early(1)", "B-PER O", "B-PER O"),  # at the item's start there is no room
        ("early(1)", "B-LOC B-PER O", "B-LOC B-PER O"),  # nor after another span
        ("early(1) + early(1)", "O O O B-PER", "O B-PER I-PER I-PER"),
        ("late(1)", "O B-PER O O", "O B-PER I-PER O"),
        ("late(1)", "O B-PER", "O B-PER"),
        ("late(1)", "B-PER B-LOC O", "B-PER B-LOC I-LOC"),
        ("late(1)", "B-PER O B-PER", "B-PER I-PER B-PER"),
        ("early(1) + late(1)", "O B-PER O", "B-PER I-PER I-PER"),
        ("early(1, tokens=3)", "O O B-PER O O B-LOC", "B-PER I-PER I-PER B-LOC I-LOC I-LOC"),
        ("early(1, 2)", "O O O O B-PER", "O O B-PER I-PER I-PER"),
        ("late(1, tokens=3)", "B-PER O O B-LOC O O", "B-PER I-PER I-PER B-LOC I-LOC I-LOC"),
        ("late(1, 2)", "B-PER I-PER O O O", "B-PER I-PER I-PER I-PER O"),
        ("splits(1)", "B-PER I-PER O B-LOC", "B-PER B-PER O B-LOC"),
        ("splits(1) + splits(1)", "B-PER I-PER I-PER", "B-PER B-PER B-PER"),
        ("splits(1) + merges(1, gap=0)", "B-PER I-PER I-PER O", "B-PER I-PER I-PER O"),
        ("merges(1)", "B-PER O B-LOC O O B-ORG", "B-PER I-PER I-PER O O B-ORG"),
        ("merges(1, gap=0)", "B-PER O B-LOC B-ORG", "B-PER O B-LOC I-LOC"),
        ("merges(1, gap=2)", "B-PER O B-LOC O O B-ORG", "B-PER I-PER I-PER I-PER I-PER I-PER"),
        ("misses(1)", "B-PER O B-LOC", "O O O"),
        ("misses(1, type=LOC)", "B-PER O B-LOC", "B-PER O O"),
        ("invents(1, type=ORG)", "O B-PER O", "B-ORG B-PER B-ORG"),
        ("wrong_type(1, type=ORG, to=LOC)", "B-ORG I-ORG B-PER", "B-LOC I-LOC B-PER"),
        ("wrong_type(1, to=LOC)", "B-ORG I-ORG B-PER", "B-LOC I-LOC B-LOC"),
        ("late(0)", "O I-PER", "O B-PER"),  # habits write what they read, well-formed
    ],
)
def test_a_habit_at_p_1_does_this(worker, truth, wanted):
    assert tags_of(truth, worker) == wanted


@pytest.mark.parametrize("encoding", ["IOB", "IOBES", "BILOU", "BMEWO"])
def test_habits_write_every_encoding(encoding):
    tags = write([Span("PER", 1, 3), Span("LOC", 4, 5)], 6, encoding)
    found = tags_of(" ".join(tags), "late(1)", encoding=encoding).split()
    assert parse(found, encoding) == [Span("PER", 1, 4), Span("LOC", 4, 6)]


def test_no_habit_reaches_over_the_bounds_of_an_item():
    truth = truth_of([["O", "B-PER"], ["B-PER", "O"], [], ["B-PER"]])
    assert answer(truth, "late(1) + early(1) + merges(1)").tolist() == (
        truth.tagset.encode([["B-PER", "I-PER"], ["B-PER", "I-PER"], ["B-PER"]]).codes.tolist()
    )


@pytest.mark.parametrize("habit", HABITS)
def test_a_habit_with_p_0_changes_nothing(habit):
    items = [["O", "B-PER", "I-PER", "B-LOC", "O", "B-PER"]] * 20
    truth = truth_of(items)
    np.testing.assert_array_equal(answer(truth, f"{habit}(0)"), truth.gold)


@pytest.mark.parametrize("habit", HABITS)
def test_a_habit_shows_at_its_share_of_places(habit):
    """In this item merges and splits can show once, invents at five tokens, others at each span."""
    n = 4000
    item = ["O", "O", "B-PER", "O", "B-LOC", "O", "O", "O", "B-PER", "I-PER"]
    truth = truth_of([item] * n)
    codes = answer(truth, f"{habit}(0.3)").reshape(n, 10)
    tags = np.array(truth.tagset.tags)[codes]
    places = {
        "early": tags[:, 1] == "B-PER",
        "late": tags[:, 5] == "I-LOC",
        "merges": tags[:, 4] == "I-PER",
        "splits": tags[:, 9] == "B-PER",
        "misses": tags[:, 2] == "O",
        "invents": tags[:, 0] != "O",
        "wrong_type": tags[:, 4] != "B-LOC",
    }
    assert abs(places[habit].mean() - 0.3) < 4.5 * np.sqrt(0.21 / n)


@given(
    st.lists(st.lists(st.sampled_from(["O", "O", "B-A", "I-A", "B-B"]), max_size=9), max_size=4),
    st.integers(1, 4),
    st.sampled_from(["BIO", "IOB", "IOBES"]),
)
def test_shifts_of_several_tokens_are_one_token_done_again(items, n, encoding):
    written = [write(parse(tags, "BIO"), len(tags), encoding) for tags in items]
    truth = truth_of(written, types=["A", "B"], encoding=encoding)
    for habit in ("early", "late"):
        once = " + ".join([f"{habit}(1)"] * n)
        assert answer(truth, f"{habit}(1, {n})").tolist() == answer(truth, once).tolist()


@given(
    st.lists(st.lists(st.sampled_from(["O", "B-A", "I-A"]), max_size=9), max_size=4),
    st.integers(0, 5),
)
def test_every_long_span_is_cut_in_two_that_together_are_it(items, seed):
    truth = truth_of(items, types=["A"])
    codes = answer(truth, "splits(1)", seed=seed)
    before = find_spans(truth.gold_tagged, truth.tagset)
    after = find_spans(Tagged(codes, truth.offsets), truth.tagset)
    found = list(zip(after.start.tolist(), after.end.tolist(), strict=True))
    for start, end in zip(before.start.tolist(), before.end.tolist(), strict=True):
        parts = [part for part in found if start <= part[0] < end]
        assert len(parts) == (1 if end - start == 1 else 2)
        assert (parts[0][0], parts[-1][1]) == (start, end)
        assert all(a[1] == b[0] for a, b in pairwise(parts))


def test_where_a_span_is_cut_is_even():
    truth = truth_of([["B-PER", "I-PER", "I-PER", "I-PER"]] * 6000)
    tags = answer(truth, "splits(1)").reshape(-1, 4)
    cuts = (tags[:, 1:] == tags[0, 0]).mean(axis=0)
    np.testing.assert_allclose(cuts, 1 / 3, atol=0.03)


def test_wrong_and_invented_types_are_even():
    truth = truth_of([["B-PER", "O"]] * 6000)
    for worker, place, n_types in (("wrong_type(1)", 0, 2), ("invents(1)", 1, 3)):
        found = answer(truth, worker).reshape(-1, 2)[:, place]
        counts = Counter(found.tolist())
        assert len(counts) == n_types
        assert all(abs(c / 6000 - 1 / n_types) < 0.03 for c in counts.values())
        assert truth.gold[0] not in counts or worker != "wrong_type(1)"


def test_the_same_habit_twice_shows_independently():
    truth = truth_of([["O", "O", "O", "B-PER"]] * 5000)
    found = answer(truth, "early(0.5) + early(0.5)").reshape(-1, 4)
    lengths = (found != 0).sum(axis=1)
    np.testing.assert_allclose(np.bincount(lengths)[1:] / 5000, [0.25, 0.5, 0.25], atol=0.03)


def test_a_habit_leaves_the_answers_of_its_base_as_they_are_elsewhere():
    truth = truth_of([["O", "B-PER", "O", "O", "B-LOC", "I-LOC"]] * 200)
    alone = answer(truth, "wrong_type(0.5)").reshape(-1, 6)
    both = answer(truth, "wrong_type(0.5) + misses(0.3, type=PER)").reshape(-1, 6)
    kept = both != 0
    np.testing.assert_array_equal(both[kept], alone[kept])
    assert kept.sum() < (alone != 0).sum()


@given(
    st.lists(st.lists(st.sampled_from(["O", "B-A", "I-A", "B-B"]), max_size=9), max_size=5),
    st.sampled_from(HABITS),
    st.floats(0, 1),
    st.integers(0, 5),
)
def test_what_a_habit_writes_is_well_formed_and_related_to_the_truth(items, habit, p, seed):
    truth = truth_of(items, types=["A", "B"])
    codes = answer(truth, f"{habit}({p})", seed=seed)
    tagged = Tagged(codes, truth.offsets)
    assert not len(find_errors(tagged, truth.tagset))
    before = find_spans(truth.gold_tagged, truth.tagset)
    after = find_spans(tagged, truth.tagset)
    if habit in {"early", "late", "wrong_type"}:
        assert len(after) == len(before)
    if habit in {"misses", "merges"}:
        assert len(after) <= len(before)
    if habit == "splits":
        assert len(before) <= len(after) <= 2 * len(before)
        assert (codes != 0).tolist() == (answer(truth, f"{habit}(0)", seed=seed) != 0).tolist()
    if habit == "early":
        assert set((before.start - after.start).tolist()) <= {0, 1}
        assert after.end.tolist() == before.end.tolist()
    if habit == "late":
        assert set((after.end - before.end).tolist()) <= {0, 1}
        assert after.start.tolist() == before.start.tolist()
    if habit == "wrong_type":
        assert after.start.tolist() == before.start.tolist()


def test_habits_refuse_what_holds_no_spans_and_types_that_are_not_there():
    with pytest.raises(InputError, match="PLAIN"):
        answer(draw_truth(3), "late(1)")
    with pytest.raises(InputError, match="PLAIN"):
        answer(draw_truth(3), "drift(perfect, misses(1))")
    for worker in ("misses(1, type=XX)", "wrong_type(1, to=XX)", "invents(1, XX)"):
        with pytest.raises(UnknownNameError, match="PER"):
            tags_of("O", worker)
    with pytest.raises(InputError, match="only one type"):
        tags_of("O", "wrong_type(1)", types=["PER"])
