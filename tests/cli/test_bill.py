"""`goldspan bill`: what it says, what it writes, what it refuses."""

from __future__ import annotations

import json

import pytest

ANSWERS = """task,worker,label,gold,started,submitted,cost
1,ann,x,x,1000,61000,50000
2,ann,y,y,61000,181000,50000
1,bob,x,x,1000,31000,50000
2,bob,y,y,31000,40000,60000
3,bob,x,y,,50000,
"""


COMMAND = "bill"


@pytest.fixture(autouse=True)
def _files(tmp_path):
    (tmp_path / "answers.csv").write_text(ANSWERS)
    (tmp_path / "nothing.csv").write_text("task,worker,label\n1,ann,x\n")


def test_the_bill_is_shown_and_written(run, tmp_path):
    code, out, err = run(
        *("answers.csv", "--per-answer", "0.05", "--per-minute-floor", "0.15"),
        *("--bonus", "0.6:10%:1", "--fee", "20%", "--round-to", "0.01", "--currency", "USD"),
        *("-o", "bill.csv"),
    )
    assert code == 0
    assert "0.804 USD for 2 workers: base 0.25 + minute floor 0.35 + bonuses 0.06" in out
    assert "ann           2       2      3.0  0.10   0.35  0.045   0.50" in out
    assert "1 of 5 answers have no known time" in err
    rows = (tmp_path / "bill.csv").read_text().splitlines()
    assert rows[1] == "ann,2,2,2,3.0,2.0,2.0,0.10,0.35,0.045,0.005,0.50"


def test_options_go_before_the_plan_of_a_file(run, tmp_path):
    (tmp_path / "pay.toml").write_text('per_answer = "0.05"\nfee = 20\n')
    _, out, _ = run("answers.csv", "--plan", "pay.toml", "--recorded", "ignore", "--json")
    assert json.loads(out)["total"] == "0.30"
    _, out, _ = run("answers.csv", "--plan", "pay.toml", "--per-answer", "0.10", "--json")
    assert (json.loads(out)["pay"], json.loads(out)["fee"]) == ("0.50", "0.10")


def test_nothing_can_be_paid_if_that_is_said(run):
    code, out, _ = run("answers.csv", "--per-answer", "0", "--recorded", "ignore")
    assert code == 0
    assert out.startswith("nothing is paid\n")
    assert "0.00 for 2 workers: nothing" in out


@pytest.mark.parametrize("fee", ["20", "0.2%", "0", "1"])
def test_a_fee_that_can_be_but_one_thing_is_taken(run, fee):
    found = json.loads(run("answers.csv", "--per-answer", "1", "--fee", fee, "--json")[1])
    assert float(found["fee"]) == pytest.approx(float(fee.rstrip("%")) / 100 * 5)


def test_recorded_costs_can_be_paid(run):
    code, out, err = run("answers.csv", "--recorded", "use")
    assert code == 0
    assert out.startswith("costs as recorded\n")
    assert "0.21 for 2 workers" in out
    assert "1 answers have no recorded cost" in err


def test_a_second_file_of_gold_decides_on_bonuses(run, tmp_path):
    (tmp_path / "gold.csv").write_text("task,label\n1,y\n2,y\n")
    words = ["answers.csv", "--per-answer", "1", "--bonus", "0.9:1:1", "--json"]
    assert json.loads(run(*words)[1])["workers"][0]["bonus"] == "1.00"
    assert json.loads(run(*words, "--gold", "gold.csv")[1])["workers"][0]["bonus"] == "0.00"


def test_only_the_best_paid_are_shown_of_many(run, tmp_path):
    rows = "".join(f"{i},w{i},x\n" for i in range(30))
    (tmp_path / "many.csv").write_text("task,worker,label\n" + rows)
    _, out, _ = run("many.csv", "--per-answer", "1")
    assert "… and 10 more: -o bill.csv has them all" in out


@pytest.mark.parametrize(
    ("words", "code", "match"),
    [
        (["answers.csv"], 2, "say what is paid"),
        (["answers.csv", "--per-answer", "-1"], 1, "--per-answer must lie in 0"),
        (["answers.csv", "--per-answer", "nan"], 1, "--per-answer must be a number"),
        (["answers.csv", "--per-answer", "1", "--attempts", "no"], 1, "choose from every, latest"),
        (["answers.csv", "--per-answer", "1", "--fee", "0.2"], 1, "write 20.0% or 0.2%"),
        (["answers.csv", "--per-answer", "1", "--round-to", "0"], 1, "--round-to must be above 0"),
        (
            ["nothing.csv", "--per-answer", "1", "--bonus", "0.9:1"],
            1,
            "give the known labels, or a reliability that was measured (see --gold)",
        ),
        (["nothing.csv", "--per-minute-floor", "1"], 1, "--per-minute-floor needs to know when"),
        (["nothing.csv", "--recorded", "use"], 1, "--recorded use needs answers with a cost"),
        (["answers.csv", "--fee", "20%"], 2, "say what is paid"),
        (["answers.csv", "--plan", "none.toml"], 1, "cannot read none.toml"),
        (["answers.csv", "--per-answer", "1", "-o", "answers.csv"], 1, "is an input too"),
        (["answers.csv", "--per-answer", "1", "-o", "bill.txt"], 1, "must end in .csv"),
        (["none.csv", "--per-answer", "1"], 1, "No such file"),
    ],
)
def test_what_cannot_be_billed_is_refused(run, words, code, match):
    found, out, err = run(*words)
    assert (found, out) == (code, "")
    assert match in err
