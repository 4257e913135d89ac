"""`goldspan run` on every database: killed anywhere, it loses nothing and ends with the same
bytes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import inspect, select

from campaign.tiny import plan_of, toml, write_files
from goldspan.cli import main
from goldspan.store import open_ledger
from goldspan.store.engine import connect, to_url
from goldspan.store.schema import campaign
from goldspan.store.verify import faults_of

KILLS = int(os.environ.get("GOLDSPAN_TORTURE") or "4")
SERVER = Path(__file__).with_name("dying_runs.py")
RESULTS = ("gold.csv", "bill.csv", "rounds.jsonl", "record.json")
WORK = {
    "control": {"n": 4, "gold": "truth.csv", "share": 0.2, "first": 1, "least": 0.5},
    "crowd": {"workers": ["flip(0.2) x4", "flip(0.9)"]},
    "redundancy": {"stop": "clear_majority(ahead=2, least=2)"},
    "aggregate": {"method": "mv-token"},
    "model": {"name": "none"},
    "judging": {"answers": 4, "sure": 0.8},
    "prices": {"per_answer": "0.07"},
    "budget": {"money": "3.10"},
}


@pytest.fixture
def plan(tmp_path):
    """The path of a plan whose money runs out."""
    write_files(tmp_path)
    path = tmp_path / "campaign.toml"
    path.write_text(toml(plan_of(WORK)))
    return path


@pytest.fixture
def dying():
    """Runs `goldspan` until its n-th statement; gives the return code."""
    words = [sys.executable, str(SERVER)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, **pipes) as server:

        def run(n, *goldspan):
            server.stdin.write(
                json.dumps({"n": n, "words": [str(word) for word in goldspan]}) + "\n"
            )
            server.stdin.flush()
            return int(server.stdout.readline())

        yield run
        server.stdin.close()


def url(place):
    return place if "://" in place else f"sqlite:///{place}"


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["goldspan", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code or 0


def results(out):
    return {name: (out / name).read_bytes() for name in RESULTS}


def is_empty(place):
    engine = connect(to_url(place))
    try:
        if not inspect(engine).has_table("campaign"):
            return True
        with engine.connect() as connection:
            return connection.execute(select(campaign)).one_or_none() is None
    finally:
        engine.dispose()


def check(place, before):
    """Check that the database is whole, and that nothing was lost; give its answers."""
    if not before and is_empty(place):  # killed before there was anything
        return {}
    with open_ledger(place) as ledger:
        assert faults_of(ledger.database) == []
        ledger.verify()
        totals = ledger.totals()
        assert totals.reserved + totals.spent <= totals.cap == 3_100_000
        submits = [event.body for event in ledger.events() if event.kind == "submit"]
    answers = {one["key"]: (one["labels"], one["cost"]) for one in submits}
    assert before.items() <= answers.items()
    assert len(answers) == len(submits)
    assert totals.spent == sum(cost for _, cost in answers.values())
    return answers


@pytest.mark.torture(
    "`goldspan run` is killed", "no answer is lost; the end is the same to the byte"
)
def test_killed_at_any_statement_it_loses_nothing_and_ends_with_the_same_bytes(
    plan, tmp_path, new_place, dying, tortured
):
    rng, left, place, answers = random.Random(KILLS), KILLS, new_place(), {}
    assert dying(0, "run", plan, "--out", tmp_path / "whole") == 0
    expected, out = results(tmp_path / "whole"), tmp_path / "killed"
    assert b"money" in expected["record.json"]
    while left:
        code = dying(rng.randrange(1, 500), "run", plan, "--out", out, "--store", url(place))
        assert code in {0, -9}
        answers = check(place, answers) if code else {}
        tortured(int(code != 0))
        left -= code != 0
        if code == 0:
            assert results(out) == expected
            place, out = new_place(), tmp_path / f"killed{left}"
    assert dying(10**9, "run", plan, "--out", out, "--store", url(place)) == 0
    assert results(out) == expected


def test_a_second_run_is_refused_while_the_first_is_at_work(
    plan, tmp_path, new_place, monkeypatch, capsys
):
    monkeypatch.setattr("goldspan.store.roles.PATIENCE", 0.1)
    place, words = new_place(), ("run", plan, "--out", tmp_path / "out", "--store")
    assert run(monkeypatch, *words, url(place)) == 0
    with open_ledger(place) as ledger:
        n = ledger.verify()
        with ledger.alone():
            assert run(monkeypatch, *words, url(place)) == 1
        assert "another `goldspan run` is at work on this campaign" in capsys.readouterr().err
        assert run(monkeypatch, *words, url(place)) == 0
        assert ledger.verify() == n


@pytest.mark.torture("two processes run one campaign at once", "each answer is paid once")
@pytest.mark.skipif(KILLS < 50, reason="two real processes take long: `make torture` starts them")
def test_two_at_once_pay_once(plan, tmp_path, new_place, monkeypatch):
    place, whole = new_place(), tmp_path / "whole"
    assert run(monkeypatch, "run", plan, "--out", whole) == 0
    words = [sys.executable, "-c", "from goldspan.cli import main; main()", "run", str(plan)]
    words += ["--store", url(place), "--out"]
    both = [
        subprocess.Popen([*words, str(tmp_path / name)], stderr=subprocess.PIPE, text=True)
        for name in "ab"
    ]
    told = [each.communicate()[1] for each in both]
    assert 0 in {each.returncode for each in both}
    for each, text, name in zip(both, told, "ab", strict=True):
        if each.returncode:
            assert "another `goldspan run` is at work on this campaign" in text
        else:
            assert results(tmp_path / name) == results(whole)
