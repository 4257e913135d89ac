"""`goldspan next`: what it says, what it writes, what it refuses."""

from __future__ import annotations

import json

import pytest

COMMAND = "next"


@pytest.fixture
def labels(tmp_path):
    """A crowd of single labels: 16 clear items, one item in doubt, one with a single answer."""
    rows = [f"q{i},{w},{'yn'[i % 2]}" for i in range(16) for w in "abc"]
    rows += ["doubt,a,y", "doubt,b,n", "few,c,y"]
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(["task,worker,label", *rows]) + "\n")
    return path


def test_it_says_what_is_finished_and_what_to_ask_next(run, labels):
    code, out, _ = run(labels, "--prices", "0.05")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "16 of 18 items are finished:"
    assert lines[1].split() == ["confident", "16"]
    assert "2 need another answer" in lines
    assert "2 answers to ask for, which cost 0.10 (largest average gain first):" in lines
    assert [line.split()[0] for line in lines[-2:]] == ["doubt", "few"]
    assert lines[-2].split()[3] == "c"


def test_the_list_alone_goes_to_standard_output(run, labels):
    code, out, err = run(labels, "-o", "-", "-n", 1)
    assert code == 0
    assert [line.split(",")[0] for line in out.splitlines()] == ["item", "doubt"]
    assert "16 of 18 items are finished" in err


def test_gold_tells_how_much_of_the_finished_is_right(run, labels, tmp_path):
    gold = [f"q{i},{'yn'[i % 2] if i else 'n'}" for i in range(16)]
    (tmp_path / "gold.csv").write_text("\n".join(["task,label", *gold]) + "\n")
    out = run(labels, "--gold", "gold.csv")[1]
    assert "93.8 % of the finished items with gold labels agree with them" in out


def test_newcomers_can_be_asked_and_limits_hold(run, labels):
    found = json.loads(run(labels, "--ask", "new,other", "--per-worker", 1, "--json")[1])
    assert sorted(row["worker"] for row in found["next"]) == ["new", "other"]


def test_when_everybody_answered_nobody_is_left_to_ask(run, labels):
    out = run(labels, "--rule", "fixed(5)", "--ask", "a,b,c")[1]
    assert "16 of 18 items are finished" in out
    assert "nobody left to ask  16" in out


def test_plain_rules_run_on_votes(run, labels):
    words = ["--method", "mv-token", "--rule", "clear_majority(3)"]
    assert "clear majority  16" in run(labels, *words)[1]


def test_known_truth_is_learned_from(run, labels, tmp_path):
    (tmp_path / "known.csv").write_text("task,label\ndoubt,y\n")
    found = json.loads(run(labels, "--known", "known.csv", "--json")[1])
    assert [row["item"] for row in found["next"]] == ["few"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--confidence", "1.5"], 1, "above 0 and below 1"),
        (["--rule", "sure(3)"], 1, "unknown stopping rule 'sure'"),
        (["--method", "mv-token"], 1, "shares of votes"),
        (["--prices", "-1"], 1, "must lie in 0"),
        (["--prices", "none.csv"], 1, "--prices none.csv: there is no such file"),
        (["--prices", "cheap"], 1, "--prices cheap: there is no such file"),
        (["--prices", "0.05.1"], 1, "--prices must be a number such as 0.05"),
        (["--min", "9"], 2, "--min 9 is more than --max 7"),
        (["--rule", "fixed(3)", "--confidence", "0.95"], 2, "is the rule"),
        (["--rule", "fixed(9)", "--max", "5"], 2, "needs 9 answers of an item, and --max 5"),
        (["-n", "-1"], 2, "-n"),
        (["-o", "next.xls"], 2, ".csv"),
        (["-o", "-", "--json"], 2, "choose one"),
        (["-o", "labels.csv"], 1, "is an input too"),
        (["--known", "none.csv"], 1, "no such file"),
    ],
)
def test_what_cannot_be_done_is_refused(run, labels, words, code, message):
    found, out, err = run(labels.name, *words)
    assert (found, out) == (code, "")
    assert message in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("worker,cents\na,1\n", "columns worker and price"),
        ("", "columns worker and price"),
        (
            "worker,price\na,1\na,2\n",
            "prices.csv line 3, worker a: the worker has a price already, 1",
        ),
        ("worker,price\na\n", "prices.csv line 2, worker a: 1 cells for 2 columns"),
        (
            "worker,price\na,1\nb,1\nc,dear\n",
            "prices.csv line 4, worker c: a price must be a number",
        ),
        ("worker,price\n\na,1\nb,1\nzoe,2\n", "no price for 1 worker ('c')"),
    ],
)
def test_a_table_of_prices_must_be_whole(run, labels, tmp_path, text, message):
    (tmp_path / "prices.csv").write_text(text)
    code, _, err = run(labels, "--prices", "prices.csv")
    assert code == 1
    assert message in err


def test_all_faults_of_a_table_of_prices_are_listed_at_once(run, labels, tmp_path):
    (tmp_path / "prices.csv").write_text("worker,price\na,\nb,-1\nc,nan\nd,1,2\na,3\n")
    code, _, err = run(labels, "--prices", "prices.csv")
    assert code == 1
    assert [line.partition(": ")[0] for line in err.removeprefix("goldspan: ").splitlines()] == [
        f"prices.csv line {n}, worker {worker}" for n, worker in enumerate("abcda", start=2)
    ]


def test_a_table_may_price_workers_of_other_crowds(run, labels, tmp_path):
    (tmp_path / "prices.csv").write_text("worker,price\na,1\nb,1\nc,1\nzoe,2\n")
    found = json.loads(run(labels, "--prices", "prices.csv", "--json")[1])
    assert found["cost"] == "2.00"


def test_a_fixed_number_of_answers_is_the_most_too(run, labels):
    found = json.loads(run(labels, "--rule", "fixed(9)", "--json")[1])
    assert found["status"]["at the maximum of answers"] == 0
    people = [f"q{i},{w},y" for i in range(2) for w in "abcdefgh"]
    labels.write_text("\n".join(["task,worker,label", *people]) + "\n")
    found = json.loads(run(labels, "--rule", "fixed(9)", "--ask", "new", "--json")[1])
    assert (found["status"]["open"], found["to_ask"]) == (2, 2)
