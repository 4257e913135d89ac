"""Runs are done once, kept, and gone on with."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

import pytest

from goldspan.aggregation import registry
from goldspan.protocols import Serial
from goldspan.runners import Threads
from studies.rodrigues import experiment as module
from studies.rodrigues import methods
from studies.rodrigues.data import read_workers
from studies.rodrigues.experiment import carry_out, finished
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


@pytest.mark.parametrize("runner", [Serial(), Threads(2)], ids=["serial", "threads"])
@pytest.mark.usefixtures("calls")
def test_all_methods_of_a_repeat_learn_from_one_crowd_that_is_drawn_once(
    experiment, monkeypatch, runner
):
    drawn, draw = [], OnePerArticle.draw

    def counted(self, repeat):
        drawn.append(repeat)
        return draw(self, repeat)

    monkeypatch.setattr(OnePerArticle, "draw", counted)
    many = replace(experiment, methods=("crf-conc", "crf-ma", "ds"))
    carry_out(many, runner)
    assert sorted(drawn) == [0, 1, 2]


def test_kept_runs_are_not_done_again_and_are_the_same(experiment, calls, tmp_path):
    state = tmp_path / "runs.jsonl"
    first = carry_out(replace(experiment, repeats=2), Serial(), state)
    assert len(calls) == 3
    second = carry_out(experiment, Serial(), state)
    assert len(calls) == 4
    assert {key: second[key] for key in first} == first


def test_so_far_are_the_runs_that_are_kept_whatever_is_missing(experiment, calls, tmp_path):
    state = tmp_path / "runs.jsonl"
    done = carry_out(replace(experiment, repeats=2), Serial(), state)
    carry_out(replace(experiment, methods=("crf-conc",)), Serial(), state)
    before, n_calls = state.read_text(), len(calls)
    found = finished(replace(experiment, methods=("crf-conc", "ds", "crf-gold")), state)
    assert [key for key in found if key[1] == "crf-conc"] == [(n, "crf-conc") for n in range(3)]
    assert {key[1] for key in found} == {"crf-conc", "crf-gold"}
    assert found[2, "crf-gold"] is found[0, "crf-gold"]
    assert {key: found[key] for key in done} == done
    assert (state.read_text(), len(calls)) == (before, n_calls)


def test_what_a_kept_run_belongs_to_does_not_depend_on_other_code(experiment, monkeypatch):
    """Neither a method nor a module that the run does not use may change it; its own may."""
    before = experiment.fingerprint("crf-conc")
    monkeypatch.setitem(registry.METHODS, "new-method", ("nowhere:Nothing", "a new method"))
    monkeypatch.setitem(methods.VARIANTS, "new", ("crf-conc", {"c2": 9.0}))
    assert experiment.fingerprint("crf-conc") == before
    monkeypatch.setitem(methods.VARIANTS, "crf-conc", ("crf-conc", {"c2": 9.0}))
    assert experiment.fingerprint("crf-conc") != before


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


def test_a_line_that_was_cut_off_is_done_again(experiment, calls, tmp_path):
    state = tmp_path / "runs.jsonl"
    carry_out(experiment, Serial(), state)
    state.write_bytes(state.read_bytes()[:-9])
    carry_out(experiment, Serial(), state)
    assert len(calls) == 5
    carry_out(experiment, Serial(), state)
    assert len(calls) == 5


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
