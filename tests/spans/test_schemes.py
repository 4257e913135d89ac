"""SemEval-2013 task 9: every pairing tried, and no order that matters."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.spans import score
from goldspan.spans.scoring import SCHEMES, SchemeScore
from spans import oracle

COUNTS = ("correct", "incorrect", "partial", "missed", "spurious")


def _pairings(gold, found):
    """Give every way to pair spans that share a token."""
    if not gold:
        yield []
        return
    first, *rest = gold
    yield from _pairings(rest, found)
    for other in found:
        if min(first[2], other[2]) > max(first[1], other[1]):
            left = [span for span in found if span != other]
            for pairs in _pairings(rest, left):
                yield [(first, other), *pairs]


def _worth(pairs):
    """Order pairings: same bounds, then same type, then more pairs, then more shared tokens."""
    return (
        sum(a[1:] == b[1:] for a, b in pairs),
        sum(a[0] == b[0] for a, b in pairs),
        len(pairs),
        sum(min(a[2], b[2]) - max(a[1], b[1]) for a, b in pairs),
    )


def _brute_force(gold, found):
    """Count by definition over the best of all pairings: (scheme -> counts)."""
    pairs = max(_pairings(gold, found), key=_worth)
    bounds = [(a, b) for a, b in pairs if a[1:] == b[1:]]
    typed = [(a, b) for a, b in pairs if a[0] == b[0]]
    both = [pair for pair in bounds if pair in typed]
    n, missed, spurious = len(pairs), len(gold) - len(pairs), len(found) - len(pairs)
    return {
        "strict": (len(both), n - len(both), 0, missed, spurious),
        "exact": (len(bounds), n - len(bounds), 0, missed, spurious),
        "partial": (len(bounds), 0, n - len(bounds), missed, spurious),
        "type": (len(typed), n - len(typed), 0, missed, spurious),
    }


def _counts(schemes):
    return {name: tuple(getattr(s, count) for count in COUNTS) for name, s in schemes.items()}


def _score(gold, found, length):
    tags = [oracle.spell(spans, length, "BIO") for spans in (gold, found)]
    return score([tags[0]], [tags[1]])


@st.composite
def items(draw, length=9):
    """Draw the spans of one side over some tokens."""
    spans, place = [], draw(st.integers(0, 2))
    while place < length:
        end = min(length, place + draw(st.integers(1, 4)))
        spans.append((draw(st.sampled_from("XY")), place, end))
        place = end + draw(st.integers(0, 2))
    return spans


def test_counts_equal_those_of_the_best_of_all_pairings_on_every_short_item():
    every = list(oracle.layouts(3))
    corpus = list(product(every, repeat=2))
    for gold, found in corpus:
        assert _counts(_score(gold, found, 3).schemes) == _brute_force(gold, found), (gold, found)


@given(gold=items(), found=items())
def test_counts_equal_those_of_the_best_of_all_pairings(gold, found):
    assert _counts(_score(gold, found, 9).schemes) == _brute_force(gold, found)


@given(sides=st.lists(st.tuples(items(6), items(6)), max_size=5))
def test_a_corpus_counts_the_sum_of_its_items(sides):
    tags = [[oracle.spell(side, 6, "BIO") for side in pair] for pair in sides]
    whole = score([a for a, _ in tags], [b for _, b in tags]).schemes
    alone = [_brute_force(*pair) for pair in sides]
    for name in SCHEMES:
        expected = tuple(sum(counts[name][i] for counts in alone) for i in range(5))
        assert _counts(whole)[name] == expected


def test_spans_of_two_items_are_never_paired():
    result = score([["B-X"], ["O"]], [["O"], ["B-X"]])
    assert _counts(result.schemes)["partial"] == (0, 0, 0, 1, 1)


def test_partial_counts_a_half():
    partial = _score([("X", 0, 3), ("X", 4, 5)], [("Y", 1, 3)], 5).schemes["partial"]
    assert (partial.precision, partial.recall) == (0.5, 0.25)
    assert partial.f1 == pytest.approx(1 / 3)


def test_no_spans_make_rates_of_zero():
    empty = SchemeScore(0, 0, 0, 0, 0)
    assert (empty.precision, empty.recall, empty.f1) == (0.0, 0.0, 0.0)
    assert _counts(_score([], [], 3).schemes) == dict.fromkeys(SCHEMES, (0, 0, 0, 0, 0))


def test_to_dict_holds_counts_and_rates():
    told = SchemeScore(1, 2, 3, 4, 5).to_dict()
    assert list(told) == [*COUNTS, "precision", "recall", "f1"]
    assert told["precision"] == 2.5 / 11
    assert told["recall"] == 2.5 / 10


def test_spans_under_the_policy_are_those_that_are_paired():
    truth, found = [["B-X", "I-X", "I-X"]], [["B-X", "I-Y", "I-X"]]
    assert score(truth, found).schemes["partial"].spurious == 2
    assert score(truth, found, policy="strict").schemes["partial"].spurious == 0
