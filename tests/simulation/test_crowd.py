"""Simulated crowds: the same answers whatever else is there, exactly k per item, any labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import goldspan
from crowd_strategies import crowds
from goldspan.errors import InputError
from goldspan.simulation import (
    Habit,
    SimulatedWorker,
    draw_truth,
    measure_workers,
    parse_worker,
    simulate_crowd,
)
from goldspan.spans import Tagged, find_errors, find_spans
from simulation.scenes import random_truth, truth_of

TEAM = (
    *("flip(0.3) x2", "seq", "acc", "spammer(constant)", "copier(w1, 0.5)", "ana=invents(0.1)"),
    *("drift(flip(0.05), flip(0.4))", "flip(0.1) + misses(0.3) + merges(0.4) + early(0.2)"),
)


def answers_by_id(crowd):
    items, workers = crowd.item_ids.to_pylist(), crowd.worker_ids.to_pylist()
    a = crowd.answers
    return {
        (items[a.item[n]], workers[a.worker[n]]): a.codes[a.offset[n] : a.offset[n + 1]].tolist()
        for n in range(len(a))
    }


@given(st.permutations(range(20)), st.integers(1, 20), st.integers(0, 3))
def test_the_order_and_the_number_of_items_do_not_matter(order, n_kept, seed):
    truth = random_truth(1, n_items=20, length=4)
    every = answers_by_id(simulate_crowd(truth, TEAM, per_item=4, seed=seed))
    some = truth.select_items(np.array(order[:n_kept]))
    kept = answers_by_id(simulate_crowd(some, TEAM, per_item=4, seed=seed))
    names = set(some.item_ids.to_pylist())
    assert kept == {key: codes for key, codes in every.items() if key[0] in names}


def test_other_workers_do_not_matter():
    truth = random_truth()
    both = answers_by_id(simulate_crowd(truth, {"a": "flip(0.3)", "b": "cm"}))
    alone = answers_by_id(simulate_crowd(truth, {"b": "cm"}))
    assert alone == {key: codes for key, codes in both.items() if key[1] == "b"}


def test_another_seed_gives_other_answers_and_other_workers():
    truth = random_truth()
    first, second = (simulate_crowd(truth, TEAM, per_item=3, seed=seed) for seed in (1, 2))
    assert (first.answers.worker != second.answers.worker).any()
    assert answers_by_id(first) != answers_by_id(second)
    again = simulate_crowd(truth, TEAM, per_item=3, seed=np.int64(1))
    assert answers_by_id(again) == answers_by_id(first)


def test_workers_alike_err_independently():
    truth = random_truth(n_items=3000)
    crowd = simulate_crowd(truth, ["flip(0.3) x2"])
    wrong = [crowd.answers.codes[crowd.worker_of == w] != truth.gold for w in (0, 1)]
    both = (wrong[0] & wrong[1]).mean()
    assert both == pytest.approx(0.09, abs=4.5 * np.sqrt(0.09 * 0.91 / truth.n_tokens))


def test_every_item_has_exactly_k_answers_of_different_workers():
    truth = random_truth()
    crowd = simulate_crowd(truth, TEAM, per_item=4, workload={"w1": 20, "ana": 0.1})
    assert np.bincount(crowd.answers.item).tolist() == [4] * truth.n_items
    pairs = set(zip(crowd.answers.item.tolist(), crowd.answers.worker.tolist(), strict=True))
    assert len(pairs) == len(crowd.answers)
    counts = np.bincount(crowd.answers.worker, minlength=crowd.n_workers)
    assert counts[0] == truth.n_items
    assert counts[crowd.worker_index("ana")] < 0.2 * truth.n_items


def test_all_workers_answer_everything_by_default():
    truth = random_truth()
    crowd = simulate_crowd(truth, TEAM)
    assert len(crowd.answers) == truth.n_items * crowd.n_workers
    pairs = list(zip(crowd.answers.item.tolist(), crowd.answers.worker.tolist(), strict=True))
    assert pairs == sorted(pairs)


def test_the_truth_stays_as_it_was():
    truth = random_truth()
    crowd = simulate_crowd(truth, TEAM)
    for name in ("item_ids", "tokens", "tagset", "groups", "attributes"):
        assert getattr(crowd, name) == getattr(truth, name)
    np.testing.assert_array_equal(crowd.gold, truth.gold)
    assert crowd.import_report.adds_up
    assert "ana: invents(0.1)" in crowd.import_report.notes


def test_the_answers_of_a_crowd_that_serves_as_truth_are_replaced(root):
    truth = goldspan.read_crowd(root / "examples" / "crowd.tsv")
    crowd = simulate_crowd(truth, ["perfect"])
    assert crowd.worker_ids.to_pylist() == ["w1"]
    np.testing.assert_array_equal(crowd.answers.codes, truth.gold)


@given(crowds(), st.integers(0, 3))
def test_any_crowd_with_gold_can_be_simulated_on(truth, seed):
    assume(len(truth.tagset.tags) > 1)
    gold = np.zeros(truth.n_tokens, np.int16) if truth.gold is None else truth.gold
    truth = truth.with_gold(np.maximum(gold, 0))
    crowd = simulate_crowd(truth, ["flip(0.5)", "seq", "mace", "spammer(frequent)"], seed=seed)
    assert len(crowd.answers) == 4 * truth.n_items
    np.testing.assert_array_equal(crowd.gold, truth.gold)
    assert crowd.answers.codes.min(initial=0) >= 0
    assert crowd.answers.codes.max(initial=0) < len(truth.tagset.tags)
    assert crowd.answers.lengths.tolist() == np.repeat(np.diff(truth.offsets), 4).tolist()


def test_items_without_tokens_and_truths_without_items_are_fine():
    for items in ([], [[]], [[], ["O"], []]):
        crowd = simulate_crowd(truth_of(items), TEAM, per_item=2, legal=True, times=True)
        assert len(crowd.answers) == 2 * len(items)
        assert len(measure_workers(crowd)) == crowd.n_workers


def test_single_labels_are_simulated():
    truth = draw_truth(4000, 4, seed=3)
    crowd = simulate_crowd(truth, ["flip(0.3) x5"], per_item=3)
    assert crowd.is_classification
    for rates in measure_workers(crowd):
        assert rates.accuracy == pytest.approx(0.7, abs=0.05)
    voted = goldspan.aggregate(crowd, "mv-token")
    assert (voted.codes == truth.gold).mean() > 0.8


def test_answers_stay_malformed_unless_they_are_to_be_legal():
    truth = random_truth()
    raw = simulate_crowd(truth, ["flip(0.5)"])
    mended = simulate_crowd(truth, ["flip(0.5)"], legal=True)
    left, right = (Tagged(crowd.answers.codes, crowd.answers.offset) for crowd in (raw, mended))
    assert len(find_errors(left, truth.tagset))
    assert not len(find_errors(right, truth.tagset))
    read, kept = find_spans(left, truth.tagset), find_spans(right, truth.tagset)
    for name in ("start", "end", "type"):
        np.testing.assert_array_equal(getattr(read, name), getattr(kept, name))


@dataclass(frozen=True)
class Skips(Habit):
    name = "skips"

    def change(self, codes, work):
        return np.where(work.draws.per_token("whether") < 0.3, -1, codes)


@dataclass(frozen=True)
class Short(SimulatedWorker):
    name = "short"

    def answer(self, work):
        return work.truth[1:]


@pytest.mark.parametrize("legal", [False, True])
def test_a_worker_of_ones_own_may_skip_tokens(legal):
    truth = random_truth()
    crowd = simulate_crowd(truth, [Skips(base=parse_worker("flip(0.5)"))], legal=legal)
    share = (crowd.answers.codes < 0).mean()
    assert share == pytest.approx(0.3, abs=4.5 * np.sqrt(0.21 / truth.n_tokens))
    assert crowd.import_report.n_labels == (crowd.answers.codes >= 0).sum()


def test_a_worker_of_ones_own_who_forgets_tokens_is_refused():
    with pytest.raises(InputError, match="worker w1 gave labels of shape"):
        simulate_crowd(random_truth(), [Short()])


def test_times_are_given_on_demand_and_lie_within_a_week():
    truth = random_truth()
    assert simulate_crowd(truth, TEAM).answers.submitted is None
    submitted = simulate_crowd(truth, TEAM, times=True).answers.submitted
    assert submitted.min() >= 1_577_836_800_000
    assert submitted.max() < 1_577_836_800_000 + 7 * 24 * 3_600_000


def test_known_workers_are_found_again_from_what_they_gave():
    """The loop closes: BSC finds who is good, and finds the truth better than votes."""
    truth = draw_truth(1500, 3, seed=1)
    crowd = simulate_crowd(truth, ["flip(0.1) x2", "flip(0.5) x3"], seed=1)
    result = goldspan.aggregate(crowd, "one-coin")
    right = dict(zip(*(result.workers[c].to_pylist() for c in ("worker", "accuracy")), strict=True))
    assert [right[f"w{n}"] for n in (1, 2)] == pytest.approx([0.9] * 2, abs=0.05)
    assert [right[f"w{n}"] for n in (3, 4, 5)] == pytest.approx([0.5] * 3, abs=0.06)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 1.5}, "whole number"),
        ({"per_item": 3}, "per_item must lie in"),
        ({"workload": "zipf"}, "needs per_item"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        simulate_crowd(random_truth(n_items=2), ["flip(0.1) x2"], **options)


def test_a_truth_that_is_not_known_everywhere_is_refused_with_the_first_item():
    truth = truth_of([["O"], ["O", "B-PER"], ["O"]])
    gold = truth.gold.copy()
    gold[2] = -1
    with pytest.raises(InputError, match=r"1 of 3 items .* \(first: s1\)"):
        simulate_crowd(truth.with_gold(gold), ["perfect"])
    with pytest.raises(InputError, match="no gold"):
        simulate_crowd(truth.with_gold(None), ["perfect"])
