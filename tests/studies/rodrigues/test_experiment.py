"""Runs are done once, kept, and gone on with."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

import pytest

from goldspan.protocols import Serial
from goldspan.runners import Threads
from studies.rodrigues import experiment as module
from studies.rodrigues.data import read_workers
from studies.rodrigues.experiment import carry_out
from studies.rodrigues.methods import QUICK, Reliability, Run
from studies.rodrigues.real import OnePerArticle


@pytest.fixture
def calls(monkeypatch):
    """Runs that were done, in place of learning."""
    done = []

    def learn(_crowd, label, _tests, _effort, listen):
        listen()
        f1 = len(done) / 7
        done.append(label)
        return Run({"own": (0.1, 0.2, f1)}, (Reliability("a", 0.5, 1 / 3),), 0.25)

    monkeypatch.setattr(module, "learn", learn)
    return done


@pytest.fixture
def experiment(tiny):
    return OnePerArticle("test", read_workers(tiny), {}, ("crf-conc", "crf-gold"), 3, QUICK)


def test_every_method_runs_in_every_repeat_and_the_upper_bound_once(experiment, calls):
    told = []
    runs = carry_out(experiment, Serial(), told=lambda *counts: told.append(counts))
    assert sorted(calls) == ["crf-conc"] * 3 + ["crf-gold"]
    assert len(runs) == 6
    assert runs[0, "crf-gold"] is runs[2, "crf-gold"]
    assert told == [(n, 4) for n in range(5)]


def test_kept_runs_are_not_done_again_and_are_the_same(experiment, calls, tmp_path):
    state = tmp_path / "runs.jsonl"
    first = carry_out(replace(experiment, repeats=2), Serial(), state)
    assert len(calls) == 3
    second = carry_out(experiment, Serial(), state)
    assert len(calls) == 4
    assert {key: second[key] for key in first} == first


@pytest.mark.parametrize(
    "change", [{"effort": replace(QUICK, crf={"max_iter": 3})}, {"study": "other"}]
)
def test_runs_of_other_parameters_are_passed_over(experiment, calls, tmp_path, change):
    state = tmp_path / "runs.jsonl"
    carry_out(experiment, Serial(), state)
    carry_out(replace(experiment, **change), Serial(), state)
    assert len(calls) == 8
    carry_out(experiment, Serial(), state)
    assert len(calls) == 8


@pytest.mark.parametrize("n_threads", [1, 2])
def test_ctrl_c_keeps_what_is_finished_and_ends_the_runs_of_all_threads(
    experiment, calls, monkeypatch, tmp_path, n_threads
):
    learn = module.learn

    def long(crowd, label, tests, effort, listen):
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):
                time.sleep(0.01)
                listen()
        return learn(crowd, label, tests, effort, listen)

    monkeypatch.setattr(module, "learn", long)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        carry_out(experiment, Threads(n_threads), tmp_path / "runs.jsonl")
    assert signal.getsignal(signal.SIGINT) is before
    assert 2 <= len(calls) <= 3  # a second thread may have been on its way
    n_kept = len((tmp_path / "runs.jsonl").read_text().splitlines())
    assert n_kept == len(calls)
    monkeypatch.setattr(module, "learn", learn)
    carry_out(experiment, Serial(), tmp_path / "runs.jsonl")
    assert len(calls) == 4
