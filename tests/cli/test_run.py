"""`goldspan run` and `goldspan plan check`: a process that may be killed at any moment."""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from campaign.tiny import plan_of, toml, write_files
from goldspan.cli import app
from goldspan.cli.options import Place

GOLDSPAN = [sys.executable, "-c", "from goldspan.cli import main; main()"]
KILLS = int(os.environ.get("GOLDSPAN_TORTURE") or "2")
RESULTS = ("gold.csv", "bill.csv", "rounds.jsonl", "record.json", "report.html")
WORK = {
    "control": {"n": 4, "gold": "truth.csv", "share": 0.2},
    "crowd": {"workers": ["flip(0.2) x4", "flip(0.9)"]},
    "redundancy": {"stop": "clear_majority(ahead=2, least=2)"},
    "aggregate": {"method": "mv-token"},
    "model": {"name": "none"},
}
"""A plan that needs little but the ledger: starting up would take longer than all the work."""


@pytest.fixture
def plan(tmp_path):
    """The path of a plan with its files."""
    write_files(tmp_path)
    path = tmp_path / "campaign.toml"
    changes = {
        "control": {"n": 4, "gold": "truth.csv", "share": 0.2},
        "crowd": {"workers": ["flip(0.2) x4", "flip(0.9)"]},
        "judging": {"answers": 4, "sure": 0.8},
    }
    path.write_text(toml(plan_of(changes)))
    return path


def results(out):
    return {name: (out / name).read_bytes() for name in RESULTS}


def run_and_kill(plan, out, delay, rng):
    """Run, kill it so many seconds after it began to work; give its return code."""
    words = [*GOLDSPAN, "run", str(plan), "--out", str(out)]
    # Other hash seeds: nothing may depend on the order of a set.
    env = {**os.environ, "PYTHONHASHSEED": str(rng.randrange(1000))}
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=env) as run:
        run.stderr.readline()
        try:
            run.wait(delay)
        except subprocess.TimeoutExpired:
            run.kill()
    return run.returncode


@pytest.mark.torture(
    "`goldspan run` is killed", "no answer is lost; the end is the same to the byte"
)
def test_killed_at_random_moments_it_ends_with_the_same_bytes(plan, tmp_path, tortured):
    rng = random.Random(KILLS)
    plan.write_text(toml({**plan_of(WORK), "judging": {"answers": 4, "sure": 0.8}}))
    begin = time.monotonic()
    CliRunner().invoke(app, ["run", str(plan), "--out", str(tmp_path / "whole")])
    seconds = time.monotonic() - begin
    whole, left, out = results(tmp_path / "whole"), KILLS, tmp_path / "killed"
    while left:
        code = run_and_kill(plan, out, rng.uniform(0, seconds / 2), rng)
        assert code in {0, -signal.SIGKILL}
        left -= code != 0
        tortured(int(code != 0))
        if code == 0:
            assert results(out) == whole
            out = tmp_path / f"killed{left}"
    assert run_and_kill(plan, out, None, rng) == 0
    assert results(out) == whole


def test_run_says_what_was_labelled_paid_and_saved(plan, tmp_path):
    out = tmp_path / "out"
    run = CliRunner().invoke(app, ["run", str(plan), "--out", str(out)])
    assert run.exit_code == 0, run.output
    for words in (
        "labelled: 16 of 20 items",
        "of 8.00 spent",
        "% of the 3.20 that these items cost",
        "stopped: no item",
    ):
        assert words in run.stdout
    assert "accuracy of the labels against the hidden gold" in run.stdout
    assert "round 1: 10 items" in run.stderr
    again = CliRunner().invoke(app, ["run", str(plan), "--out", str(out), "--json"])
    found = json.loads(again.stdout)
    assert (
        found["money"]["spent"] == json.loads((out / "record.json").read_text())["money"]["spent"]
    )
    assert again.stderr == ""


def test_run_tells_warnings_about_the_labels(plan, tmp_path, monkeypatch):
    sentence = "12.0% of the spans were given by no annotator"
    monkeypatch.setattr("goldspan.campaign.loop.gold_free_warnings", lambda *_: [sentence])
    plan.write_text(toml(plan_of({**WORK, "stop": {"most_rounds": 1}})))
    words = ["run", str(plan), "--out", str(tmp_path / "out")]
    said = CliRunner().invoke(app, words)
    assert f"\nwarning: {sentence}\n" in said.stdout
    assert "of them to gold questions" in said.stdout
    assert json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)["warnings"] == [sentence]


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(plan, tmp_path):
    words = [*GOLDSPAN, "run", str(plan), "--out", str(tmp_path / "out")]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as child:
        line = child.stderr.readline()
        child.send_signal(signal.SIGINT)
        rest = child.stderr.read()
    assert line == "round 1: 10 items to label\n"
    assert child.returncode == 130
    assert "the same command goes on where it was" in rest
    assert "Traceback" not in rest


def test_a_campaign_with_files_ends_well_and_says_what_it_waits_for(plan, tmp_path):
    made = plan_of(model={"name": "none"})
    made["crowd"] = {"source": "files"}
    plan.write_text(toml(made))
    out, store = str(tmp_path / "my out"), f"sqlite:///{tmp_path / 'my.sqlite'}"
    words = ["run", str(plan), "--out", out, "--store", store]
    run = CliRunner().invoke(app, words)
    assert run.exit_code == 0, run.output
    assert f"then run again: {shlex.join(['goldspan', *words])}\n" in run.stdout
    assert "waiting for 20 answers to 10 items: tasks are in" in run.stdout
    assert (tmp_path / "tasks" / "tasks-r001.1.jsonl").exists()


def test_the_command_that_goes_on_tells_no_password():
    told = Place("p.toml", "out", "postgresql://ann:secret@host/name").command(["run", "p.toml"])
    assert told.startswith("goldspan run p.toml --out out --store")
    assert "secret" not in told


def test_a_faulty_plan_spends_nothing(plan, tmp_path):
    plan.write_text(toml(plan_of(seed=-1, stop={"target": 2})))
    run = CliRunner().invoke(app, ["run", str(plan), "--out", str(tmp_path / "out")])
    assert run.exit_code == 1
    assert "seed: must be at least 0" in str(run.exception)
    assert "stop.target: must be at most 1" in str(run.exception)
    assert not (tmp_path / "out").exists()


def test_plan_check_says_what_a_plan_will_do(plan):
    run = CliRunner().invoke(app, ["plan", "check", str(plan)])
    assert run.exit_code == 0, run.output
    assert "the minimum" in run.stdout
    found = json.loads(CliRunner().invoke(app, ["plan", "check", str(plan), "--json"]).stdout)
    assert (found["items"], found["cheapest"], found["dearest"]) == (16, 1_600_000, 3_200_000)
