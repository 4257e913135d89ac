"""What every worker gets."""

from __future__ import annotations

import csv
from decimal import Decimal

import pytest

import goldspan
from crowd_tables import crowd_of
from goldspan.crowd import CrowdBuilder, ReadOptions
from goldspan.errors import InputError, UnknownNameError
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.workers import PayPlan, Reliability, make_bill

MINUTE = 60_000


def single(*rows, gold="x"):
    """Make a crowd of single labels of rows item, worker, label, and columns of times and cost."""
    builder = CrowdBuilder(ReadOptions(encoding="PLAIN"))
    items = {}
    for item, worker, label, columns in rows:
        if item not in items:
            items[item] = builder.add_item(item, [item], gold=[gold])
        builder.add_answer(items[item], worker, [label], **columns)
    return builder.build()


def took(minutes, **columns):
    return {"started": 1_000_000, "submitted": 1_000_000 + int(minutes * MINUTE), **columns}


def test_answers_and_tokens_are_paid():
    crowd = crowd_of([{"a": ["B-X", "O", None], "b": ["O", "O", "O"]}, {"a": ["O", "O"]}])
    bill = make_bill(crowd, PayPlan("0.05", "0.01"))
    a, b = bill.lines
    assert (a.worker, a.answers, a.tokens, a.base, a.total) == ("a", 2, 4, 140_000, 140_000)
    assert (b.worker, b.answers, b.tokens, b.total) == ("b", 1, 3, 80_000)
    assert bill.total == bill.pay == 220_000


def test_the_bill_is_the_same_as_adding_answer_by_answer():
    crowd = simulate_crowd(draw_truth(60, 3, seed=1), ["flip(0.2) x7"], per_item=4, seed=2)
    bill = make_bill(crowd, PayPlan("0.0333", bonuses=["0.8:7.7%"], fee="13%", round_to="0.01"))
    gold = crowd.tagged_by_id()
    pay = Decimal(0)
    for k, worker in enumerate(crowd.worker_ids.to_pylist()):
        mine = [i for i in range(60) if worker in crowd.answers_of(i)]
        right = sum(crowd.answers_of(i)[worker] == gold[f"q{i + 1}"] for i in mine)
        earned = len(mine) * Decimal("0.0333")
        if right / len(mine) >= 0.8:
            extra = earned * Decimal("0.077")
            earned += extra.quantize(Decimal("0.000001"), "ROUND_HALF_UP")
        earned = earned.quantize(Decimal("0.01"), "ROUND_UP")
        assert Decimal(bill.lines[k].total) / 10**6 == earned
        pay += earned
    assert {line.bonus > 0 for line in bill.lines} == {True, False}
    fee = (pay * Decimal("0.13")).quantize(Decimal("0.000001"), "ROUND_HALF_UP")
    assert Decimal(bill.total) / 10**6 == pay + fee


def test_the_floor_is_topped_up_and_never_takes_away():
    crowd = single(("1", "slow", "x", took(3)), ("1", "fast", "x", took(0.1)))
    slow, fast = make_bill(crowd, PayPlan("0.1", per_minute_floor="0.15")).lines
    assert (slow.milliseconds, slow.top_up, slow.total) == (3 * MINUTE, 350_000, 450_000)
    assert (fast.top_up, fast.total) == (0, 100_000)


def test_a_floor_is_rounded_up_to_the_millionth():
    crowd = single(("1", "a", "x", {"started": 0, "submitted": 1}))
    (line,) = make_bill(crowd, PayPlan(per_minute_floor="0.05")).lines
    assert line.top_up == 1  # 5/6 of a millionth


def test_nobody_works_longer_than_the_idle_cap():
    crowd = single(("1", "a", "x", took(500)), ("2", "a", "x", took(1)))
    bill = make_bill(crowd, PayPlan(per_minute_floor="1", idle_minutes=5))
    assert bill.lines[0].milliseconds == 6 * MINUTE
    assert "1 answers took 5 minutes or more" in str(bill)


def test_unknown_times_are_left_out_of_the_floor_and_said():
    backwards = {"started": 2 * MINUTE, "submitted": MINUTE}
    crowd = single(("1", "a", "x", took(1)), ("2", "a", "x", {}), ("3", "a", "x", backwards))
    bill = make_bill(crowd, PayPlan("0.1", per_minute_floor="0.3"))
    (line,) = bill.lines
    assert (line.answers, line.timed, line.top_up) == (3, 1, 200_000)
    assert "2 of 3 answers have no known time" in str(bill)


def test_a_floor_without_any_time_is_refused():
    crowd = single(("1", "a", "x", {"submitted": 5}))
    with pytest.raises(InputError, match="needs to know when answers were started"):
        make_bill(crowd, PayPlan(per_minute_floor="0.3"))


def test_a_bonus_goes_to_those_who_are_right_by_the_gold():
    rows = [
        (str(i), w, "x" if i < good else "y", {})
        for w, good in (("a", 9), ("b", 8))
        for i in range(10)
    ]
    bill = make_bill(single(*rows), PayPlan("1", bonuses=["0.9:10%"]))
    a, b = bill.lines
    assert (a.right, a.judged, a.bonus, a.total) == (9, 10, 1_000_000, 11_000_000)
    assert (b.right, b.bonus) == (8, 0)


def test_a_measured_reliability_says_who_deserves_a_bonus():
    crowd = single(("1", "a", "x", {}), ("1", "b", "x", {}), ("1", "c", "x", {}), gold=None)
    tested = Reliability.from_counts([5, 20], [20, 20], worker_ids=["a", "b"])
    bill = make_bill(crowd, PayPlan("1", bonuses=["0.9:0.5"]), reliability=tested)
    assert [line.bonus for line in bill.lines] == [0, 500_000, 0]
    with pytest.raises(InputError, match="a bonus needs to know who is right"):
        make_bill(crowd, PayPlan("1", bonuses=["0.9:0.5"]))


def test_every_attempt_is_paid_unless_only_the_latest_is():
    crowd = single(("1", "a", "x", {}), ("1", "a", "y", {}), ("2", "a", "x", {}))
    every = make_bill(crowd, PayPlan("1"))
    latest = make_bill(crowd, PayPlan("1"), attempts="latest")
    assert (every.total, latest.total) == (3_000_000, 2_000_000)
    assert "1 repeated answers are paid too" in str(every)
    assert "1 repeated answers are not paid" in str(latest)


def test_an_answer_without_a_label_is_not_paid():
    crowd = crowd_of([{"a": ["O", "O"], "b": [None, None]}])
    bill = make_bill(crowd, PayPlan("1"))
    assert [line.worker for line in bill.lines] == ["a"]
    assert "1 answers without any label are not paid" in str(bill)


def test_recorded_costs_are_compared_used_or_ignored():
    crowd = single(
        ("1", "a", "x", {"cost": 70_000}), ("1", "b", "x", {"cost": 50_000}), ("2", "b", "x", {})
    )
    plan = PayPlan("0.05")
    compared = make_bill(crowd, plan)
    assert compared.total == 150_000
    assert "come with costs of 0.12, by the plan they are 0.10" in str(compared)
    used = make_bill(crowd, plan, recorded="use")
    assert [line.base for line in used.lines] == [70_000, 100_000]
    assert "1 answers have no recorded cost" in str(used)
    assert make_bill(crowd, plan, recorded="ignore").notes == ()
    with pytest.raises(InputError, match="recorded use needs answers with a cost"):
        make_bill(single(("1", "a", "x", {})), plan, recorded="use")


def test_sums_stay_exact_far_beyond_64_bits():
    crowd = single(*((str(i), "a", "x", {}) for i in range(50)))
    plan = PayPlan(per_answer=10**12, fee="0.01%")
    bill = make_bill(crowd, plan)
    assert bill.pay == 50 * 10**18
    assert bill.fee == 5 * 10**15
    assert bill.to_arrow().column("total")[0].as_py() == 50 * 10**12


def test_the_columns_add_up_to_the_total(tmp_path):
    crowd = simulate_crowd(draw_truth(30, 2, seed=1), ["flip(0.1) x4"], per_item=2, seed=1)
    bill = make_bill(crowd, PayPlan("0.013", bonuses=["0.5:3.3%:1"], round_to="0.05"))
    bill.write(tmp_path / "bill.csv")
    with (tmp_path / "bill.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4
    for row in rows:
        parts = sum(Decimal(row[name]) for name in ("base", "top_up", "bonus", "rounding"))
        assert parts == Decimal(row["total"])
        assert Decimal(row["total"]) % Decimal("0.05") == 0
    facts = bill.to_dict()
    assert Decimal(facts["pay"]) == sum(Decimal(row["total"]) for row in rows)
    with pytest.raises(InputError, match=r"must end in \.csv"):
        bill.write(tmp_path / "bill.txt")


FORMULAS = ['=HYPERLINK("http://x")', "+1+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\uff1d1", "\n=1"]

HARMLESS = ["ann", "a=b", "a\r=1", "a,=1"]


def test_no_name_of_a_worker_becomes_a_formula_in_a_spreadsheet(tmp_path):
    crowd = single(*(("1", name, "x", {}) for name in [*FORMULAS, *HARMLESS]))
    make_bill(crowd, PayPlan("0.013")).write(tmp_path / "bill.csv")
    with (tmp_path / "bill.csv").open(newline="") as file:
        names = [row["worker"] for row in csv.DictReader(file)]
    assert sorted(names) == sorted([*(f"'{name}" for name in FORMULAS), *HARMLESS])


def test_a_bill_without_answers_is_refused():
    with pytest.raises(InputError, match="there is nothing to pay"):
        make_bill(draw_truth(3, 2), PayPlan("1"))
    with pytest.raises(InputError, match="there is nothing to pay"):
        make_bill(crowd_of([{"a": [None]}]), PayPlan("1"))


@pytest.mark.parametrize("words", [{"attempts": "first"}, {"recorded": "no"}])
def test_unknown_rules_are_refused(words):
    crowd = goldspan.read_crowd(b"task,worker,label\n1,a,x\n")
    with pytest.raises(UnknownNameError, match="choose from"):
        make_bill(crowd, PayPlan("1"), **words)
