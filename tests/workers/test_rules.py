"""When an item has answers enough."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import goldspan
from goldspan.errors import InputError, UnknownNameError
from goldspan.workers.stopping import (
    RULES,
    ClearMajority,
    Confident,
    Fixed,
    StableAverage,
    get_rule,
    item_confidence,
    mean_moves,
    per_item,
)


def labels(*rows, times=None):
    """Make a crowd of single labels: one list of answers per item, of the workers a, b, c, …."""
    head = "task,worker,label" + (",submitted" if times else "")
    lines = [head]
    for i, row in enumerate(rows):
        for k, label in enumerate(row):
            when = f",{times[i][k]}" if times else ""
            lines.append(f"q{i},{chr(97 + k)},{label}{when}")
    return goldspan.read_crowd("\n".join(lines).encode())


def slow_moves(values, last):
    """Compute the largest move of the mean by the last answers, one by one."""
    if len(values) <= last:
        return np.inf
    means = [np.mean(values[: n + 1]) for n in range(len(values))]
    return max(abs(means[n] - means[n - 1]) for n in range(len(values) - last, len(values)))


def test_an_item_is_confident_from_the_threshold_on():
    crowd = labels("xxxx", "yyyy", "xy", "xxy")
    result = goldspan.aggregate(crowd, "ds")
    at = float(result.confidence[3])
    assert Confident(at - 1e-6).finished(crowd, result)[3]
    assert not Confident(at + 1e-6).finished(crowd, result)[3]


def test_an_item_without_an_answer_is_never_confident():
    crowd = labels("xx", "yy")
    crowd = replace(crowd, answers=crowd.answers.take(crowd.answers.item == 0))
    result = goldspan.aggregate(crowd, "ds")
    assert Confident(1e-6).finished(crowd, result).tolist() == [True, False]


def test_votes_give_shares_and_are_refused_with_what_to_use():
    crowd = labels("xx")
    with pytest.raises(InputError, match="mv-token, which gives shares of votes: use ibcc"):
        Confident().finished(crowd, goldspan.aggregate(crowd, "mv-token"))
    with pytest.raises(InputError, match="no result"):
        Confident().finished(crowd)


def test_a_sequence_is_confident_by_its_least_certain_token_and_span(root):
    result = goldspan.aggregate(goldspan.read_crowd(root / "examples" / "crowd.tsv"), "bsc-seq")
    offsets, spans = result.crowd.offsets, result.span_array
    least = item_confidence(result)
    for n in range(result.crowd.n_items):
        parts = result.token_confidence[offsets[n] : offsets[n + 1]].tolist()
        parts += result.span_confidence[spans.item == n].tolist()
        assert least[n] == min(parts)
    parts = Confident(0.95).finished(result.crowd, result)
    whole = Confident(0.95, unit="item").finished(result.crowd, result)
    assert whole.sum() < parts.sum()


def test_a_majority_is_clear_when_it_is_so_many_votes_ahead_and_so_many_answered():
    crowd = labels("xxyx", "xxyy", "xxx", "xx", "xyz", "xxyyxx")
    assert ClearMajority(2, least=3).finished(crowd).tolist() == [1, 0, 1, 0, 0, 1]
    assert ClearMajority(2, least=2).finished(crowd).tolist() == [1, 0, 1, 1, 0, 1]
    assert ClearMajority(3, least=1).finished(crowd).tolist() == [0, 0, 1, 0, 0, 0]


def test_a_majority_of_the_only_label_there_is_counts_its_votes():
    crowd = labels("xxx", "x")
    assert ClearMajority(2, least=1).finished(crowd).tolist() == [True, False]


def test_a_sequence_needs_a_clear_majority_at_every_token():
    table = b"token\ta\tb\tc\nRome\tB-X\tB-X\tB-X\nis\tO\tO\tB-X\n\nOslo\tB-X\tB-X\tO\n"
    crowd = goldspan.read_crowd(table, format="wide")
    assert ClearMajority(1).finished(crowd).tolist() == [True, True]
    assert ClearMajority(2).finished(crowd).tolist() == [False, False]
    assert ClearMajority(3).finished(crowd).tolist() == [False, False]


@pytest.mark.parametrize("last", [1, 2, 3])
def test_the_moves_of_the_mean_are_those_computed_one_by_one(last):
    rng = np.random.default_rng(last)
    rows = [rng.integers(-3, 9, rng.integers(1, 8)).tolist() for _ in range(30)]
    rows[0] = list(range(10))
    found = mean_moves(labels(*rows), last)
    assert found == pytest.approx([slow_moves(row, last) for row in rows], abs=1e-9)


def test_a_huge_number_moves_the_mean_of_its_own_item_only():
    rows = [[1, 5, 9], [3, 7, 1], [0.1, 0.2, 0.3]]
    found = mean_moves(labels(*rows[:1], ["1e17", 1], *rows[1:]))
    assert np.delete(found, 1).tolist() == mean_moves(labels(*rows)).tolist()
    assert StableAverage(0.5).finished(labels(["1e17", 1], *rows)).tolist() == [0, 0, 0, 1]


def test_an_average_is_stable_when_the_last_answer_moves_it_by_no_more_than_the_tolerance():
    crowd = labels([4, 4, 4], [1, 5, 3], [1, 1, 7], [2, 2], [1, 2, 1.5, 9])
    assert StableAverage(0.5, last=1).finished(crowd).tolist() == [1, 1, 0, 0, 0]
    assert StableAverage(2, last=1).finished(crowd).tolist() == [1, 1, 1, 0, 1]
    assert StableAverage(0.5).finished(crowd).tolist() == [1, 0, 0, 0, 0]
    assert StableAverage(9, least=4).finished(crowd).tolist() == [0, 0, 0, 0, 1]


def test_answers_move_the_mean_in_the_order_of_their_times():
    early, late = "2026-01-01T00:00:0{}Z", "2026-01-02T00:00:0{}Z"
    times = [[late.format(1), early.format(1), early.format(2)]]
    crowd = labels([9, 1, 1], times=times)
    assert crowd.answers.submitted is not None
    assert mean_moves(crowd).tolist() == pytest.approx([8 / 3])
    assert mean_moves(labels([9, 1, 1])).tolist() == pytest.approx([4 / 3])


def test_an_average_of_words_is_refused():
    with pytest.raises(InputError, match=r"'good'.*clear_majority"):
        StableAverage(1).finished(labels(["1", "good"]))
    table = b"token\ta\nRome\tB-X\nis\tO\n"
    with pytest.raises(InputError, match="single labels"):
        StableAverage(1).finished(goldspan.read_crowd(table, format="wide"))


def test_a_fixed_number_counts_answers():
    assert Fixed(2).finished(labels("x", "xy", "xyz")).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("confident", Confident(0.95)),
        ("confident(.9)", Confident(0.9)),
        (" confident(at=.9, unit=item) ", Confident(0.9, "item")),
        ("clear_majority(3, least=4)", ClearMajority(3, 4)),
        ("stable_average(0.5, 4, last=1)", StableAverage(0.5, 4, 1)),
        ("fixed(7)", Fixed(7)),
    ],
)
def test_rules_are_read_from_text(text, rule):
    assert get_rule(text) == rule
    assert get_rule(rule) is rule


@pytest.mark.parametrize(
    "text",
    [
        "confident(.9, item, 3)", "confident(unti=item)", "confident(.9, at=.8)", "fixed(",
        "stable_average", "3", "confident(1 + 1)", "a.b(3)", "", "confident(**x)",
        "fixed(k=5, k=6)",
    ],
)  # fmt: skip
def test_what_is_no_rule_is_refused(text):
    with pytest.raises(InputError, match="rule"):
        get_rule(text)


def test_an_unknown_rule_is_refused_with_the_names():
    with pytest.raises(UnknownNameError, match=r"clear_majority.*did you mean"):
        get_rule("clear_majorty(2)")


@pytest.mark.parametrize(
    "text",
    [
        "confident(0)", "confident(1)", "confident(nan)", "confident(True)", "fixed(0)",
        "fixed(2.5)", "clear_majority(0)", "clear_majority(2, 0)", "stable_average(-1)",
        "stable_average(inf)", "stable_average(1e999)", "stable_average(1, last=0)",
    ],
)  # fmt: skip
def test_arguments_that_make_no_sense_are_refused(text):
    with pytest.raises(InputError, match="must"):
        get_rule(text)


def test_an_unknown_unit_of_confidence_is_refused():
    with pytest.raises(UnknownNameError, match="parts, item"):
        Confident(0.9, unit="tokens")


def test_every_rule_has_its_name_in_the_registry():
    args = {"stable_average": "(1)"}
    assert [get_rule(name + args.get(name, "")).name for name in RULES] == list(RULES)


def test_values_are_combined_per_item_also_where_items_are_empty():
    offsets = np.array([0, 0, 2, 2, 3, 3])
    assert per_item(np.minimum, np.array([3, 1, 2]), offsets, 9).tolist() == [9, 1, 9, 2, 9]
