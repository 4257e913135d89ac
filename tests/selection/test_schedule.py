"""Schedules: how they are written, who picks when, and the control slice."""

from __future__ import annotations

import numpy as np
import pytest

from goldspan.errors import InputError, UnknownNameError
from goldspan.selection import Schedule, Selector, select_items, selectors
from goldspan.selection.schedule import get_selector, read_selector

WORDS = [f"w{letter}" for letter in "abcdefghijk"]
TEXTS = [f"{WORDS[n % 11]} {WORDS[n % 7]} {WORDS[n % 5]}" for n in range(60)]
PROBS = np.random.default_rng(0).dirichlet([1, 1], 60)


def test_the_first_round_is_by_coverage_and_the_next_by_the_model():
    first = select_items(TEXTS, n=20)
    assert first.counts() == {"random": 2, "coverage": 18}
    later = select_items(TEXTS, n=20, model=PROBS, labelled=first.item)
    assert later.counts() == {"random": 2, "mnlp": 18}
    assert not set(first.item.tolist()) & set(later.item.tolist())
    assert later.facts["round"] == 1


def test_the_control_slice_is_marked_and_drawn_from_all_items():
    found = select_items(TEXTS, n=20, model=PROBS)
    assert found.is_control.sum() == 2
    assert [rule == "random" for rule in found.rule] == found.is_control.tolist()
    alone = select_items(TEXTS, "random", n=2)
    assert found.item[found.is_control].tolist() == alone.item.tolist()


def test_shares_of_a_budget_are_kept():
    found = select_items(TEXTS, "density, 25% random", budget="60tokens")
    spent = np.array([3 if control else 0 for control in found.is_control])
    assert spent.sum() == 15
    assert found.total_cost == 60


def test_shares_of_the_number_are_kept_beside_a_large_budget():
    found = select_items(TEXTS, n=10, budget="9999tokens")
    assert found.counts() == {"random": 1, "coverage": 9}


def test_coverage_counts_what_was_drawn_for_the_same_batch():
    table = np.array([[1.0], [2.0]])
    found = select_items(table, "coverage-paper, 50% random", n=2)
    assert found.rule == ("random", "coverage-paper")
    same = select_items(np.array([[1.0], [1.0]]), "coverage-paper, 50% random", n=2)
    assert (same.rule, same.stopped) == (("random",), "saturated")


def test_a_small_batch_still_has_a_control_item():
    assert select_items(TEXTS, n=3).is_control.sum() == 1


def test_rules_last_as_many_rounds_as_is_said():
    plan = Schedule(text="coverage for 2 rounds, then density, then random").plan()
    assert [plan.rule(n).name for n in range(5)] == [
        "coverage", "coverage", "density", "random", "random",
    ]  # fmt: skip
    found = Schedule(text="density, then random", round=1).select(TEXTS, n=2)
    assert found.rule == ("random", "random")


def test_rules_in_text_have_parameters():
    rule = read_selector("coverage(w=2, weights=none, order='capped')")
    assert (rule.w, rule.weights, rule.order) == (2, "none", "capped")
    plan = read_selector("coverage(w=2, order=capped), then mnlp(top=3), 5.5 % random").plan()
    assert plan.stages[1][0].top == 3
    assert plan.shares[0][0] == pytest.approx(0.055)


@pytest.mark.parametrize(
    "text",
    [
        *("", ",", "coverage,", "then mnlp", "coverage, mnlp", "coverage then mnlp", "10% random"),
        *("coverage, 0% random", "coverage, 100% random", "coverage, 60% random, 40% density"),
        *("10% random, coverage", "coverage(w=2", "coverage(2)", "coverage(w=2) x", "coverage)"),
        *("coverage for 0 rounds, then mnlp", "coverage(**x)", "coverage, then", "mnlp(top=0.1)"),
        *("coverage(w=(1, 2)", "coverage, % random", "coverage, then 10% random"),
    ],
)
def test_what_is_no_schedule_is_refused(text):
    with pytest.raises(InputError):
        read_selector(text).select(TEXTS, n=2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("coverge", "did you mean 'coverage'"),
        ("coverage(v=2)", "parameter of coverage 'v'"),
        ("coverage, then mlnp", "did you mean 'mnlp'"),
        ("coverage, then mnlp, 10% rndom", "did you mean 'random'"),
    ],
)
def test_unknown_words_are_named_with_the_known_ones(text, words):
    with pytest.raises(UnknownNameError, match=words):
        read_selector(text)


def test_a_rule_without_parameters_says_so():
    with pytest.raises(InputError, match="random has no parameters"):
        read_selector("random(x=1)")


def test_a_rule_that_needs_a_model_says_so():
    with pytest.raises(InputError, match="mnlp looks at what a model is unsure of"):
        select_items(TEXTS, "mnlp, 10% random", n=5)


def test_a_rule_that_needs_errors_says_so():
    with pytest.raises(InputError, match="near-errors looks for what is like items that a model"):
        select_items(TEXTS, "near-errors", n=5)


@pytest.mark.parametrize("name", selectors())
def test_every_rule_has_parameters_that_can_be_read_and_set(name):
    rule = get_selector(name)
    assert isinstance(rule, Selector)
    assert type(rule)(**rule.get_params()) == rule
    assert rule.set_params(**rule.get_params()) is rule
    with pytest.raises(UnknownNameError if rule.get_params() else InputError, match="nothing"):
        rule.set_params(nothing=1)


@pytest.mark.parametrize("name", [n for n in selectors() if n != "span-change"])
def test_every_rule_gives_the_same_items_for_the_same_seed(name):
    model = [PROBS, PROBS[::-1]] if name in {"vote", "committee-kl"} else PROBS
    given = {"errors": {}} if name == "near-errors" else {}
    one, two = (
        select_items(TEXTS, name, model=model, n=9, random_state=5, **given) for _ in range(2)
    )
    assert one.item.tolist() == two.item.tolist()
    assert len(one) == 9 or one.stopped == "saturated"
    assert len(one.why) == len(one.rule) == len(one.cost) == len(one)


@pytest.mark.parametrize("seed", [1.5, "x", True])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InputError, match="random_state"):
        select_items(TEXTS, "random", random_state=seed)


def test_a_generator_may_be_the_seed():
    found = [
        select_items(TEXTS, "random", n=5, random_state=np.random.default_rng(3)).item.tolist()
        for _ in range(2)
    ]
    assert found[0] == found[1]
    assert select_items(TEXTS, "random", n=5, random_state=None).seed >= 0


def test_random_goes_on_where_it_stopped():
    whole = select_items(TEXTS, "random", n=10).item.tolist()
    first = select_items(TEXTS, "random", n=4)
    rest = select_items(TEXTS, "random", n=6, labelled=first.item)
    assert first.item.tolist() + rest.item.tolist() == whole
