"""`goldspan workers`: what it says, what it writes, what it refuses."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest

import goldspan
from goldspan.simulation import draw_truth, simulate_crowd

COMMAND = "workers"


@pytest.fixture(autouse=True)
def _files(tmp_path):
    """Answers, and the truth of some of them."""
    truth = draw_truth(60, ["no", "yes"], seed=1)
    crowd = simulate_crowd(truth, ["flip(0.1) x3", "bad=flip(0.8)", "con=spammer(constant)"])
    goldspan.crowd.write_crowd(crowd.with_gold(None), tmp_path / "answers.csv")
    rows = [f"{item},{tags[0]}" for item, tags in truth.tagged_by_id().items()][:19]
    (tmp_path / "truth.csv").write_text("item,label\n" + "\n".join(rows) + "\n", encoding="utf-8")


def test_verdicts_flags_and_team_are_printed(run):
    code, out, err = run("answers.csv", "--gold", "truth.csv", "--budget", 3)
    assert code == 0
    assert not err
    assert out.startswith("5 workers, judged by accuracy against gold; to be kept: above 75 %\n")
    lines = out.splitlines()
    assert "covers all" not in out
    assert next(line for line in lines if line.startswith("bad")).split()[1] == "drop"
    assert "keep 1, test more 3, drop 1" in lines
    assert any(line.startswith("  con  constant: 100 % of 60 answers say ") for line in lines)
    assert any(line.startswith("Team of 3 workers: ") for line in lines)


def test_the_answer_comes_before_the_table_and_lines_fit_a_terminal(run):
    _, out, _ = run("answers.csv", "--gold", "truth.csv", "--budget", 3, "--threshold", 0.95)
    lines = out.splitlines()
    starts = ("Guarantee", "worker ", "con ")
    places = [n for n, line in enumerate(lines) if line.startswith(starts)]
    assert [lines[n].split()[0] for n in places] == ["Guarantee:", "worker", "con"]
    table = lines[places[1] : lines.index("", places[1])]
    assert max(map(len, table)) <= 80
    means = [float(re.split(" {2,}", line)[2]) for line in table[1:6]]
    assert means == sorted(means, reverse=True)


def test_who_is_selected_against_the_verdict_is_counted(run):
    _, out, _ = run("answers.csv", "--gold", "truth.csv", "--budget", 3, "--threshold", 0.97)
    assert (
        "it was chosen by what its votes are worth together, not by the threshold of 97 %." in out
    )


def test_without_gold_the_crowd_judges_and_says_what_that_means(run):
    code, out, err = run("answers.csv", "--budget", 3)
    assert code == 0
    assert out.startswith("5 workers, judged by accuracy against the consensus of auto; ")
    assert not err


def test_the_table_and_the_picture_are_written(run, tmp_path):
    code, out, _ = run(
        *("answers.csv", "--gold", "truth.csv", "--budget", 3),
        *("-o", "workers.csv", "--plot", "workers.svg"),
    )
    assert code == 0
    assert "written: workers.csv\nwritten: workers.svg\n" in out
    with (tmp_path / "workers.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["worker"] for row in rows] == ["w1", "w2", "w3", "bad", "con"]
    assert [row["in_team"] for row in rows].count("True") == 3
    assert (tmp_path / "workers.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_no_name_of_a_worker_becomes_a_formula_in_the_table(run, tmp_path):
    answers = tmp_path / "answers.csv"
    answers.write_text(answers.read_text().replace(",con,", ",=con,"), encoding="utf-8")
    assert run("answers.csv", "--gold", "truth.csv", "-o", "workers.csv")[0] == 0
    with (tmp_path / "workers.csv").open(encoding="utf-8") as file:
        assert [row["worker"] for row in csv.DictReader(file)][-1] == "'=con"


def test_prices_come_from_a_table_too(run, tmp_path):
    names = ["w1", "w2", "w3", "bad", "con"]
    rows = "".join(f"{name},{0.01 * (n + 1):.2f}\n" for n, name in enumerate(names))
    (tmp_path / "prices.csv").write_text("worker,price\n" + rows, encoding="utf-8")
    code, out, _ = run("answers.csv", "--prices", "prices.csv", "--budget", "0.04", "--json")
    assert code == 0
    assert set(json.loads(out)["team"]["price"]) <= set("0.1234")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--budget", "1.5"], 2, "whole number"),
        (["--by", "gold", "--method", "ds"], 2, "--method is for judging by the crowd"),
        (["-o", "workers.txt"], 2, "must end in .csv"),
        (["--plot", "workers.gif"], 2, "must end in .svg"),
        (["--by", "gold"], 1, "the crowd has none"),
        (["--by", "vote"], 1, "choose from auto, gold, crowd, both"),
        (["--measure", "span_f1"], 1, "PLAIN"),
        (["--threshold", "2"], 1, "threshold lies between 0 and 1"),
        (["--method", "magic"], 1, "unknown method"),
        (["--prices", "free", "--budget", "1"], 1, "there is no such file"),
        (["-o", "answers.csv"], 1, "is an input too"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else None,
)
def test_what_makes_no_sense_is_refused(run, words, code, message):
    found, out, err = run("answers.csv", *words)
    assert found == code
    assert message in " ".join((out + err).replace("│", " ").split())


@pytest.mark.parametrize("budget", [0, 50])
def test_budgets_of_nothing_and_of_more_than_all_have_a_result(run, budget):
    code, out, _ = run("answers.csv", "--budget", budget)
    assert code == 0
    assert ("Nobody was chosen: the budget is 0." in out) == (budget == 0)
    assert ("covers all" in out) == (budget == 50)


def test_who_pastes_the_answers_of_a_model_is_flagged(run):
    team = {f"w{n}": "flip(0.1)" for n in range(5)}
    team |= {"gpt": "flip(0.3)", "eve": "copier(gpt, 0.9)"}
    crowd = simulate_crowd(draw_truth(200, 3, seed=1), team, seed=1).with_gold(None)
    is_model = np.array(crowd.worker_ids.to_pylist()) == "gpt"
    for name, which in (("people.csv", ~is_model), ("model.csv", is_model)):
        goldspan.crowd.write_crowd(crowd.select_workers(np.flatnonzero(which)), name)
    code, out, _ = run("people.csv", "--probe", "model.csv")
    assert code == 0
    assert "eve  Did eve use " in out
    code, out, _ = run("people.csv", "--probe", "model.csv", "--json")
    rows = {row["worker"]: row for row in json.loads(out)["workers"]}
    assert "gpt" not in rows
    assert "copies a model" in [flag["kind"] for flag in rows["eve"]["flags"]]
    code, _, err = run("people.csv", "--probe", "none.csv")
    assert (code, "none.csv: there is no such file" in err) == (1, True)


def test_workers_whom_nothing_tells_apart_share_a_row(run, tmp_path):
    rows = [f"q{n // 3},w{n},yes" for n in range(30)]
    (tmp_path / "one.csv").write_text("\n".join(["item,worker,label", *rows]), encoding="utf-8")
    out = run("one.csv")[1]
    (row,) = [line for line in out.splitlines() if " keep " in line]
    assert row.startswith("30 alike")
    assert "the same is expected of all, from 1 judged answer each" in out
