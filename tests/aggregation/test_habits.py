"""Habits of workers with spans: found, counted, and said in words."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.aggregation.workers import habits


def crowd_of(truth, given):
    """Make a crowd of one worker, and the codes of the truth, from tags with blanks."""
    lines = ["item\ttoken\tgold\tw"]
    for n, (left, right) in enumerate(zip(truth, given, strict=True)):
        pairs = zip(left.split(), right.split(), strict=True)
        lines += [f"s{n}\tx\t{a}\t{b}" for a, b in pairs]
        lines.append("")
    crowd = goldspan.read_crowd("\n".join(lines).encode(), format="wide")
    return crowd, crowd.gold_tagged.codes


def found(truth, given, times=4):
    crowd, codes = crowd_of([truth] * times, [given] * times)
    return [str(habit) for habit in habits(crowd, codes, 0)]


@pytest.mark.parametrize(
    ("truth", "given", "words"),
    [
        ("O O B-PER I-PER O", "O B-PER I-PER I-PER O", "opens spans one token early"),
        ("O B-PER I-PER I-PER O", "O O O B-PER O", "opens spans 2 tokens late"),
        ("O B-PER I-PER O O", "O B-PER O O O", "closes spans one token early"),
        ("O B-PER O O O", "O B-PER I-PER I-PER O", "closes spans 2 tokens late"),
        ("O B-PER O O", "O O O O", "misses"),
        ("O B-PER O B-LOC", "O B-LOC O B-LOC", "calls them LOC"),
        ("O B-PER I-PER O", "O B-PER B-PER O", "splits"),
    ],
)
def test_a_habit_is_said_in_words_with_its_share(truth, given, words):
    assert f"{words} in 100 % of PER" in found(truth, given)


def test_spans_that_are_not_there_are_a_habit_too():
    assert found("O O O", "O B-PER O") == ["marks PER where there is none (100 % of its spans)"]


def test_neighbours_made_one_are_merged():
    assert found("B-PER B-PER O", "B-PER I-PER O") == ["merges neighbours in 100 % of PER"]


def test_a_perfect_worker_has_no_habit():
    assert found("O B-PER I-PER B-LOC", "O B-PER I-PER B-LOC") == []


def test_what_happens_twice_is_no_habit():
    assert found("O B-PER", "O O", times=2) == []


def test_a_span_beside_a_skipped_token_does_not_count():
    assert found("O B-PER I-PER O", "O B-PER ? O") == []
    assert found("O B-PER I-PER O", "? O B-PER O") == []


def test_open_items_of_the_result_do_not_count():
    crowd, codes = crowd_of(["O B-PER"] * 4, ["O O"] * 4)
    assert habits(crowd, np.full_like(codes, -1), 0) == []


def test_the_example_shows_what_its_workers_were_made_to_do(crowd):
    result = goldspan.aggregate(crowd, "bsc-seq")
    assert any("one token early" in str(habit) for habit in result.habits("chi"))
    assert any("one token late" in str(habit) for habit in result.habits("fay"))
    assert all("one token" not in str(habit) for habit in result.habits("ana"))
