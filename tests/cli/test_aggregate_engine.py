"""`goldspan aggregate` with the methods that iterate: progress, checkpoints, known truth,
workers."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time

import pytest

import goldspan
from cli.test_cli import EXAMPLE, goldspan_run


def test_bsc_writes_gold_and_says_how_it_went(tmp_path):
    run = goldspan_run("aggregate", EXAMPLE, "-m", "bsc-seq", "-o", tmp_path / "gold.conll")
    assert run.returncode == 0
    assert "converged after" in run.stdout
    assert len((tmp_path / "gold.conll").read_text(encoding="utf-8")) > 1000


def test_the_workers_are_written_as_a_table_and_with_their_habits(tmp_path):
    for name in ("w.csv", "w.jsonl"):
        run = goldspan_run(
            "aggregate", EXAMPLE, "-m", "bsc-seq", "--workers-table", tmp_path / name, "--json"
        )
        assert run.returncode == 0
    with (tmp_path / "w.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["worker"] for row in rows] == ["ana", "bo", "chi", "dov", "eli", "fay", "gus"]
    lines = (tmp_path / "w.jsonl").read_text(encoding="utf-8").splitlines()
    habits = {row["worker"]: row["habits"] for row in map(json.loads, lines)}
    assert any("early" in habit for habit in habits["chi"])


def test_no_name_of_a_worker_becomes_a_formula_in_their_table(tmp_path):
    (tmp_path / "answers.csv").write_text("item,worker,label\n1,=1+1,x\n1,b,x\n", encoding="utf-8")
    table = tmp_path / "w.csv"
    run = goldspan_run("aggregate", tmp_path / "answers.csv", "-m", "ds", "--workers-table", table)
    assert run.returncode == 0, run.stderr
    with table.open(encoding="utf-8", newline="") as file:
        assert [row["worker"] for row in csv.DictReader(file)] == ["'=1+1", "b"]


def test_known_truth_is_learned_from(tmp_path):
    crowd = goldspan.read_crowd(EXAMPLE)
    known = tmp_path / "known.conll"
    goldspan.aggregate(crowd, "mv-token").write(known)
    run = goldspan_run("aggregate", EXAMPLE, "-m", "bsc-seq", "--known", known, "--json")
    facts = json.loads(run.stdout)["result"]
    assert any("known truth" in note for note in facts["notes"])


@pytest.mark.parametrize("name", ["gold.xyz", "gold", "gold.docx"])
def test_an_ending_that_says_nothing_is_refused_before_any_work(tmp_path, name):
    run = goldspan_run("aggregate", tmp_path / "none.tsv", "-o", tmp_path / name)
    assert run.returncode == 1
    assert ".conll" in run.stderr


def test_a_checkpoint_is_resumed_and_a_foreign_one_refused(tmp_path):
    state = tmp_path / "state.npz"
    words = ("aggregate", EXAMPLE, "--checkpoint", state, "--json")
    first = json.loads(goldspan_run(*words, "-m", "bsc-seq").stdout)["result"]
    again = json.loads(goldspan_run(*words, "-m", "bsc-seq").stdout)["result"]
    assert again["objective"] == first["objective"]
    run = goldspan_run(*words, "-m", "bsc-cm")
    assert run.returncode == 1
    assert "another run" in run.stderr
    state.write_bytes(state.read_bytes()[:100])
    run = goldspan_run(*words, "-m", "bsc-seq")
    assert run.returncode == 1
    assert "damaged" in run.stderr


def test_ctrl_c_leaves_the_result_of_the_last_round(tmp_path):
    words = ["aggregate", str(EXAMPLE), "-m", "bsc-seq", "--param", "tol=0", "--param"]
    words += ["max_iter=10000000", "-o", str(tmp_path / "gold.conll"), "--checkpoint"]
    words += [str(tmp_path / "state.npz")]
    run = subprocess.Popen(
        [sys.executable, "-m", "goldspan", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(1200):
        if (tmp_path / "state.npz").exists() or run.poll() is not None:
            break
        time.sleep(0.1)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    assert "interrupted after" in err
    assert (tmp_path / "gold.conll").exists()


def test_confidences_are_calibrated_on_known_truth():
    run = goldspan_run("aggregate", EXAMPLE, "-m", "bsc-seq", "--calibrate", EXAMPLE, "--json")
    facts = json.loads(run.stdout)["result"]
    assert any("calibrated on" in note for note in facts["notes"])
    run = goldspan_run("aggregate", EXAMPLE, "-m", "mv-token", "--calibrate", EXAMPLE)
    assert run.returncode == 0, run.stderr
    assert "calibrated on" in run.stdout


def test_sets_of_alternatives_are_told_and_written(tmp_path):
    gold = tmp_path / "gold.jsonl"
    sure = ("--calibrate", EXAMPLE, "--coverage", "0.9")
    run = goldspan_run("aggregate", EXAMPLE, "-m", "ds", *sure, "-o", gold, "--json")
    facts = json.loads(run.stdout)
    assert facts["result"]["sets"]["coverage"] == 0.9
    assert facts["result"]["sets"]["documents"] == 20
    assert facts["score"]["confidence"]["constant"]["auroc"] == 0.5
    rows = [json.loads(line) for line in gold.read_text(encoding="utf-8").splitlines()]
    assert all(span["set"][0]["type"] == span["type"] for row in rows for span in row["gold"])
    run = goldspan_run("aggregate", EXAMPLE, "-m", "ds", *sure)
    assert "holds the truth with probability 0.9" in run.stdout
    assert "no sets of alternatives written: pass -o gold.jsonl" in run.stdout
    for more, why in (
        (("--coverage", "0.9"), "--calibrate"),
        ((*sure[:3], "2"), "between 0 and 1"),
    ):
        run = goldspan_run("aggregate", EXAMPLE, "-m", "ds", *more)
        assert run.returncode == 2
        assert why in run.stderr


@pytest.mark.parametrize("option", ["--known", "--calibrate", "--gold"])
def test_no_output_overwrites_what_was_given(tmp_path, option):
    known = tmp_path / "known.conll"
    goldspan.aggregate(goldspan.read_crowd(EXAMPLE), "mv-token").write(known)
    before = known.read_bytes()
    for name in ("-o", "--report", "--workers-table", "--checkpoint"):
        run = goldspan_run("aggregate", EXAMPLE, "-m", "bsc-seq", option, known, name, known)
        assert run.returncode == 1, name
    assert known.read_bytes() == before


def test_two_outputs_of_one_name_and_two_writers_to_stdout_are_refused(tmp_path):
    same = tmp_path / "same.conll"
    run = goldspan_run("aggregate", EXAMPLE, "-m", "ds", "-o", same, "--report", same)
    assert (run.returncode, same.exists()) == (1, False)
    assert goldspan_run("aggregate", EXAMPLE, "-o", "-", "--json").returncode == 2


def test_a_missing_file_of_truth_is_refused_before_any_work(tmp_path):
    run = goldspan_run("aggregate", EXAMPLE, "-m", "ds", "--calibrate", tmp_path / "none.conll")
    assert run.returncode == 1
    assert "no such file" in run.stderr


def test_votes_put_known_truth_in_place_and_say_how_much_of_it_there_is(tmp_path):
    run = goldspan_run(
        "aggregate", EXAMPLE, "-m", "mv-token", "--known", EXAMPLE, "-o", tmp_path / "votes.conll"
    )
    assert "tokens of known truth" in run.stdout


@pytest.mark.parametrize("param", ["alpha0=true", "max_iter=true", "n_starts=true", "tol=true"])
def test_true_is_no_number(param):
    run = goldspan_run("aggregate", EXAMPLE, "-m", "bsc-seq", "--param", param)
    assert run.returncode == 1
    assert param.partition("=")[0] in run.stderr
