"""A run learns, and is scored on its own and on unseen items."""

from __future__ import annotations

import pytest

import goldspan
from studies.rodrigues.data import read_entities, read_phrases, read_workers
from studies.rodrigues.methods import OWN, QUICK, learn
from studies.rodrigues.simulated import Simulated


@pytest.fixture(scope="module")
def sets(tiny):
    return read_workers(tiny), {"testb": read_entities(tiny, "testb")}


@pytest.mark.parametrize("label", ["mv-token", "bsc-seq+crf", "crf-conc", "crf-ma (eq. 15)"])
def test_a_method_learns_what_most_workers_know(sets, label):
    run = learn(*sets[:1], label, sets[1], QUICK)
    assert run.scores.keys() == {OWN, "testb"}
    assert run.scores["testb"][2] > 0.8
    assert run.seconds > 0


def test_workers_are_judged_by_gold_and_by_labels(sets):
    crowd = sets[0]
    found = {one.worker: one for one in learn(crowd, "mv-token", {}, QUICK).workers}
    rates = goldspan.simulation.measure_workers(crowd)
    assert {one.worker: one.f1 for one in rates} == {w: one.true for w, one in found.items()}
    other = goldspan.simulation.measure_workers(goldspan.aggregate(crowd, "mv-token").as_gold())
    assert {one.worker: one.f1 for one in other} == {w: one.estimated for w, one in found.items()}


@pytest.mark.parametrize("label", ["mv-seq", "crf-ma", "bsc-seq+crf", "crf-gold"])
def test_phrases_in_two_labels_are_learned_by_taggers_that_know_three(tiny, label):
    train, test = (read_phrases(tiny, part) for part in ("train", "testa"))
    crowd = Simulated("test", train, {}, (), 1, QUICK, ("flip(0.02)", "flip(0.1)")).draw(0)
    assert learn(crowd, label, {"testa": test}, QUICK).scores["testa"][2] > 0.8


def test_ctrl_c_gives_no_run(sets):
    def hear(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(sets[0], "crf-conc", {}, QUICK, hear)
    with pytest.raises(KeyboardInterrupt):
        learn(sets[0], "mv-token", {}, QUICK, hear)
