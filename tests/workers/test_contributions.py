"""What every worker brought to a result, as its posterior expects it."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.workers.contributions import contributions

TEAM = {"ann": "flip(0.1)", "ben": "flip(0.1)", "cat": "flip(0.25)", "eve": "flip(0.66)"}


def alone(crowd):
    return {name: [name] for name in crowd.worker_ids.to_pylist()}


@pytest.fixture(scope="module")
def labels():
    crowd = simulate_crowd(draw_truth(400, 3, seed=1), TEAM, per_item=3, seed=1)
    return goldspan.aggregate(crowd, "ds")


def test_who_is_right_brings_more_than_who_guesses(labels):
    found = contributions(labels, alone(labels.crowd))
    assert found["ann"].lost > found["cat"].lost > found["eve"].lost
    for name, one in found.items():
        own = labels.crowd.answers.worker == labels.crowd.worker_index(name)
        truth = labels.crowd.gold[labels.crowd.answers.item[own]]
        right = int((labels.crowd.answers.codes[own] == truth).sum())
        assert one.answers == one.marked == own.sum()
        assert one.right == pytest.approx(right, abs=0.08 * own.sum())


def test_without_anybody_all_but_guessing_is_lost(labels):
    found = contributions(labels, {"all": list(TEAM), "none": ["somebody else"]})
    assert found["none"].to_dict() == {
        "answers": 0, "marked": 0, "right": 0.0, "lost": 0.0, "more": 0.0, "items": 0, "buys": None,
    }  # fmt: skip
    assert found["all"].lost > 0.4
    assert found["all"].items < 400  # all four answered nothing, but sure items need nobody


def test_what_money_buys_grows_with_it_and_ends_with_the_items(labels):
    prices = (10_000, 100_000, 2_000_000, 1)
    some, few, part, every = (
        contributions(labels, {"ann": ["ann"]}, {"ann": price})["ann"] for price in prices
    )
    assert part.buys < few.buys < some.buys <= every.buys
    assert part.buys <= 0.5 * part.more * 50
    assert every.buys <= every.items


def test_one_of_two_copies_brings_little_and_both_bring_much():
    team = {**TEAM, "one": "flip(0.1)", "two": "copier(one, 1.0)"}
    del team["eve"], team["cat"]
    crowd = simulate_crowd(draw_truth(300, 3, seed=2), team, seed=2)
    grouping = {"one": "gpt", "two": "gpt"}
    result = goldspan.aggregate(crowd, "ds", families=grouping)
    found = contributions(result, {**alone(crowd), "both": ["one", "two"]})
    assert found["one"].lost < 0.2 * max(found["both"].lost, found["ann"].lost)


def test_taking_out_of_the_posterior_is_near_to_fitting_again(root):
    crowd = goldspan.read_crowd(root / "examples" / "crowd.tsv", format="wide")
    result = goldspan.aggregate(crowd, "bsc-seq")
    found = contributions(result, alone(crowd))
    names = crowd.worker_ids.to_pylist()
    f1 = goldspan.score(crowd, result).f1
    truly = []
    for n in range(len(names)):
        rest = crowd.select_workers(np.flatnonzero(np.arange(len(names)) != n))
        truly.append(f1 - goldspan.score(rest, goldspan.aggregate(rest, "bsc-seq")).f1)
    lost = np.array([found[name].lost for name in names])
    assert names[int(lost.argmax())] == names[int(np.argmax(truly))]
    assert np.abs(lost - truly).mean() < 0.05
    marked = {name: found[name].marked for name in names}
    assert marked["gus"] > 400 > found["gus"].right * 10


def test_votes_are_no_probabilities():
    crowd = simulate_crowd(draw_truth(20, seed=1), ["flip(0.1) x3"], seed=1)
    assert contributions(goldspan.aggregate(crowd, "mv-token"), alone(crowd)) is None
