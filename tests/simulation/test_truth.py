"""Drawn truths, and the rates of workers against a truth."""

from __future__ import annotations

import math

import numpy as np
import pytest

import goldspan
from goldspan.errors import InputError
from goldspan.simulation import draw_truth, measure_workers, simulate_crowd
from goldspan.simulation.base import has_unknown
from simulation.scenes import truth_of


def test_labels_are_drawn_by_their_shares():
    truth = draw_truth(20_000, ["yes", "no", "maybe"], shares=[2, 1, 1], seed=5)
    names = truth.tagset.decode(truth.gold_tagged)
    found = [sum(one == [label] for one in names) / 20_000 for label in ("yes", "no", "maybe")]
    assert found == pytest.approx([0.5, 0.25, 0.25], abs=0.015)
    assert truth.tagset.tags == ("maybe", "no", "yes")


def test_all_labels_are_alike_by_default_and_numbered():
    truth = draw_truth(20_000, 12)
    assert sorted(truth.tagset.tags, key=int) == [str(n) for n in range(12)]
    assert np.bincount(truth.gold) / 20_000 == pytest.approx([1 / 12] * 12, abs=0.01)


def test_a_label_does_not_depend_on_the_number_of_items():
    few, many = draw_truth(10, 4, seed=2), draw_truth(100, 4, seed=2)
    assert many.gold[:10].tolist() == few.gold.tolist()
    assert draw_truth(100, 4, seed=3).gold.tolist() != many.gold.tolist()


def test_a_drawn_truth_is_a_crowd_of_single_labels_without_workers(tmp_path):
    truth = draw_truth(10)
    assert truth.is_classification
    assert (truth.n_workers, len(truth.answers)) == (0, 0)
    crowd = simulate_crowd(truth, ["flip(0.3) x2"])
    assert goldspan.write_crowd(crowd, tmp_path / "labels.csv") == []
    assert goldspan.read_crowd(tmp_path / "labels.csv") == crowd


def test_a_label_that_nobody_should_have_is_never_drawn():
    assert set(draw_truth(2000, 3, shares=[0, 1, 0]).gold.tolist()) == {1}
    assert draw_truth(0).n_items == 0


@pytest.mark.parametrize(
    ("args", "shares", "message"),
    [
        ((3, 0), None, "labels"),
        ((3, ["a", "a"]), None, "labels"),
        ((3, ["a", "?"]), None, r"'\?' cannot be the name of a label"),
        ((3, ["a", ""]), None, "'' cannot be the name of a label"),
        ((3, ["NA", "a"]), None, "'NA' cannot be the name of a label"),
        ((-1, 2), None, "items"),
        ((3, 2), [1, 2, 3], "2 numbers"),
        ((3, 2), [0, 0], "above 0"),
        ((3, 2), [1, -1], "at least 0"),
        ((3, 2), [1, math.inf], "at least 0"),
    ],
)
def test_what_cannot_be_drawn_is_refused(args, shares, message):
    with pytest.raises(InputError, match=message):
        draw_truth(*args, shares=shares)


def test_workers_are_measured_where_gold_and_label_are_known():
    text = (
        "item\ttoken\tgold\tann\tbob\tcid\n"
        "1\ta\tB-PER\tB-PER\t?\t?\n1\tb\tI-PER\tO\t?\t?\n1\tc\t?\tO\t?\t?\n\n"
        "2\td\tO\tO\tO\t?\n2\te\tB-LOC\tB-LOC\t?\t?\n"
    )
    crowd = goldspan.read_crowd(text.encode(), format="wide")
    assert has_unknown(crowd).tolist() == [True, False]
    ann, bob, cid = measure_workers(crowd)
    assert ann == ("ann", 2, 4, 0.75, 0.5)
    assert bob[:4] == ("bob", 1, 1, 1.0)
    assert math.isnan(bob.f1)
    assert cid[:3] == ("cid", 0, 0)
    assert math.isnan(cid.accuracy)


def test_the_rates_of_a_worker_are_those_of_a_score():
    truth = truth_of([["B-PER", "O", "B-LOC", "I-LOC"]] * 50)
    crowd = simulate_crowd(truth, ["flip(0.2)"])
    tags = [crowd.answers_of(n)["w1"] for n in range(50)]
    wanted = goldspan.score(truth.tagset.decode(truth.gold_tagged), tags)
    (found,) = measure_workers(crowd)
    assert (found.accuracy, found.f1) == (wanted.accuracy, wanted.f1)
