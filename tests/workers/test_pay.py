"""What work pays."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from goldspan.errors import InputError, UnknownNameError
from goldspan.workers import PayPlan
from goldspan.workers.pay import Bonus, read_plan, share_of, to_percent


def test_amounts_may_be_text_numbers_or_decimals_and_stay_exact():
    for amount in ("0.05", 0.05, Decimal("0.05")):
        plan = PayPlan(per_answer=amount)
        assert plan.per_answer == Decimal("0.05")
        assert plan.micro("per_answer") == 50_000


def test_a_plan_can_be_changed_without_changing_the_rest():
    plan = PayPlan("0.05", "0.001", "0.15", ["0.9:10%"], "20%", currency="USD")
    changed = replace(plan, per_answer="0.06")
    assert changed.micro("per_answer") == 60_000
    assert replace(changed, per_answer=0.05) == plan


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("0.90:10%", Bonus(0.9, percent=Decimal(10))),
        ("0.9:2.50", Bonus(0.9, amount=2_500_000)),
        ("1:12.5 %:25", Bonus(1.0, percent=Decimal("12.5"), least=25)),
        ("0:1:1", Bonus(0.0, amount=1_000_000, least=1)),
    ],
)
def test_bonus_rules_are_read(text, rule):
    assert Bonus.parse(text) == rule


@pytest.mark.parametrize(
    "text", ["", "0.9", "90%:1", "1.5:10%", "0.9:x", "0.9:-1", "0.9:1:0", "0.9:1:2:3", "nan:1"]
)
def test_what_is_no_bonus_rule_is_refused(text):
    with pytest.raises(InputError, match="bonus"):
        Bonus.parse(text)


def test_of_several_bonuses_the_largest_that_is_due_is_paid():
    plan = PayPlan("1", bonuses=["0.8:10%", "0.9:25%", "0.8:2:20"])
    assert plan.bonus(8_000_000, 8, 10) == 800_000
    assert plan.bonus(8_000_000, 9, 10) == 2_000_000
    assert plan.bonus(4_000_000, 18, 20) == 2_000_000
    assert plan.bonus(8_000_000, 7, 10) == 0


def test_a_bonus_waits_for_enough_judged_answers():
    plan = PayPlan("1", bonuses=["0.9:10%"])
    assert plan.bonus(1_000_000, 9, 9) == 0
    assert plan.bonus(1_000_000, 9, 10) == 100_000
    assert plan.bonus(1_000_000, 0, 0) == 0


@example(right=18, wrong=2, effect=1.07)
@given(right=st.integers(1, 10_000), wrong=st.integers(0, 100), effect=st.floats(1, 50))
def test_whoever_is_just_at_the_mark_gets_the_bonus_whatever_the_design_effect(
    right, wrong, effect
):
    judged = right + wrong
    whole = judged / effect * effect  # of which least is judged, but for rounding
    rule = Bonus(right / judged, amount=1, least=judged)
    assert rule.is_met(right / effect * effect, whole)
    assert not rule.is_met(right / effect * effect - 0.01, whole)
    assert not rule.is_met(whole, whole - 0.01)


@given(
    micro=st.integers(0, 10**18),
    percent=st.decimals(0, 1000, allow_nan=False, allow_infinity=False, places=4),
)
@example(micro=1, percent=Decimal(50))
def test_a_share_is_exact_and_halves_are_rounded_up(micro, percent):
    exact = Fraction(micro) * Fraction(percent) / 100
    found = share_of(micro, percent)
    assert -Fraction(1, 2) < found - exact <= Fraction(1, 2)


def test_percentages_are_read_with_or_without_their_sign():
    assert to_percent("20%") == to_percent(20) == to_percent(" 20 % ") == Decimal(20)
    for wrong in ("-1%", "nan", "x", "", True, "1e9"):
        with pytest.raises(InputError, match="must be a percentage"):
            to_percent(wrong)


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({"per_answer": -1}, "per_answer must lie in 0"),
        ({"per_token": float("nan")}, "per_token must be a number"),
        ({"per_answer": "0.0000001"}, "per_answer must be a whole number of millionths"),
        ({"idle_minutes": 0}, "idle_minutes must be above 0"),
        ({"round_to": 0}, "round_to must be above 0"),
        ({"fee": "-3%"}, "the fee must be a percentage"),
        ({"fee": 0.2}, "may be a share or a percentage"),
        ({"bonuses": "0.9:10%"}, "bonuses must be a list"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(words, match):
    with pytest.raises(InputError, match=match):
        PayPlan(**words)


@pytest.mark.parametrize("words", [{"accuracy": 1.1}, {"accuracy": 0.9, "least": 0}])
def test_a_rule_that_makes_no_sense_is_refused(words):
    with pytest.raises(InputError, match="bonus"):
        Bonus(**words)


def test_a_plan_says_itself_in_words():
    plan = PayPlan("0.05", "0.001", "0.15", ["0.9:2:20"], "20%", currency="EUR")
    assert str(plan) == (
        "0.05 EUR per answer; 0.001 EUR per token; 0.15 EUR per minute at least; "
        "bonus 2.00 for 90 % right of at least 20 judged; fee 20 %"
    )
    assert str(PayPlan()) == "nothing is paid"


def test_a_plan_is_read_from_a_file(tmp_path):
    path = tmp_path / "pay.toml"
    path.write_text('per_answer = 0.05\nbonuses = ["0.9:10%"]\nfee = "20%"\nround_to = "0.01"\n')
    assert read_plan(path) == PayPlan("0.05", bonuses=["0.9:10%"], fee=20, round_to="0.01")


@pytest.mark.parametrize(
    ("content", "error", "match"),
    [
        ("per_answer = -1\n", InputError, "pay.toml: per_answer must lie in 0"),
        ("per_anwser = 1\n", UnknownNameError, "did you mean 'per_answer'"),
        ("per_answer = \n", InputError, "pay.toml: "),
        (None, InputError, "cannot read"),
    ],
)
def test_a_file_that_holds_no_plan_is_refused(tmp_path, content, error, match):
    path = tmp_path / "pay.toml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(error, match=match):
        read_plan(path)
