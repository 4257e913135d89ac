"""Which items need another answer, from whom, and which are finished."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import goldspan
from goldspan.errors import InputError
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.workers import Reliability, next_answers
from goldspan.workers import redundancy as matching
from goldspan.workers.redundancy import AT_MAXIMUM, BY_RULE, NOBODY_LEFT, OPEN
from goldspan.workers.stopping import learn_habits, posterior_of, token_gain

TEAM = ["a=flip(0.05)", "b=flip(0.15)", "c=flip(0.2)", "d=flip(0.3)", "e=flip(0.35)"]


@pytest.fixture(scope="module")
def crowd():
    whole = simulate_crowd(draw_truth(120, 3, seed=2), TEAM, seed=2)
    rng = np.random.default_rng(0)
    kept = rng.random(len(whole.answers)) < np.linspace(0.1, 1, 120)[whole.answers.item]
    return replace(whole, answers=whole.answers.take(kept))


@pytest.fixture(scope="module")
def result(crowd):
    return goldspan.aggregate(crowd, "ds")


def values(crowd, result, prices=None):
    """Compute gain and value of every open pair from the definition, [n_items, n_workers]."""
    habits = learn_habits(result)
    probs = posterior_of(result, habits)
    gain = np.array([[token_gain(p[None], t)[0] for t in habits.tables] for p in probs])
    value = gain / (np.ones(gain.shape[1]) if prices is None else np.array(prices))
    gain[crowd.latest.item, crowd.latest.worker] = -1
    value[crowd.latest.item, crowd.latest.worker] = -1
    return gain, value


def test_every_open_item_takes_the_worker_of_largest_gain_who_has_not_answered_it(crowd, result):
    found = next_answers(crowd, result, max_answers=5)
    gain, value = values(crowd, result)
    assert len(found) == found.counts()["open"] > 20
    assert found.worker.tolist() == value.argmax(axis=1)[found.item].tolist()
    assert found.gain == pytest.approx(gain.max(axis=1)[found.item], abs=1e-9)


def test_with_prices_it_is_the_worker_of_largest_gain_per_money(crowd, result):
    prices = {"a": 5, "b": "0.9", "c": 1, "d": "0.25", "e": "0.2"}
    found = next_answers(crowd, result, prices=prices, max_answers=5)
    _, value = values(crowd, result, [5, 0.9, 1, 0.25, 0.2])
    assert found.worker.tolist() == value.argmax(axis=1)[found.item].tolist()
    table = found.to_arrow()
    per_price = np.array(table["gain"]) / np.array(table["price"])
    assert np.array(table["gain_per_price"]) == pytest.approx(per_price)
    paid = [prices[name] for name in table["worker"].to_pylist()]
    assert found.cost == sum(round(float(x) * 1e6) for x in paid)


def test_items_come_in_the_order_of_the_mean_workers_gain(crowd, result):
    found = next_answers(crowd, result, max_answers=5)
    habits = learn_habits(result)
    gains = token_gain(posterior_of(result, habits), habits.mean)
    assert (np.diff(gains[found.item]) <= 1e-9).all()
    first = next_answers(crowd, result, max_answers=5, n=7)
    assert first.item.tolist() == found.item[:7].tolist()
    assert first.counts()["open"] == found.counts()["open"]


def test_items_are_finished_for_a_reason(crowd, result):
    found = next_answers(crowd, result, confidence=0.9, max_answers=4, min_answers=2)
    n = np.diff(crowd.by_item.bounds)
    confident = (result.confidence >= 0.9) & (n >= 2)
    assert ((found.status == BY_RULE) == confident).all()
    assert ((found.status == AT_MAXIMUM) == (~confident & (n >= 4))).all()
    assert ((found.status == OPEN) == (~confident & (n < 4))).all()
    rows = found.finished()
    assert set(rows["reason"].to_pylist()) == {"confident", "at the maximum of answers"}
    assert len(rows) + found.counts()["open"] == crowd.n_items


def test_an_item_that_everybody_answered_has_nobody_left(crowd, result):
    found = next_answers(crowd, result, rule="fixed(9)", max_answers=9)
    assert next_answers(crowd, result, rule="fixed(9)", max_answers=9, n=1).counts() == (
        found.counts()
    )
    n = np.diff(crowd.by_item.bounds)
    assert ((found.status == NOBODY_LEFT) == (n == 5)).all()
    assert (n == 5).any()
    assert set(found.item) == set(np.flatnonzero(n < 5))


def test_no_worker_is_asked_more_often_than_the_limit(crowd, result):
    found = next_answers(crowd, result, max_answers=5, per_worker_limit=3)
    assert np.bincount(found.worker).tolist() == [3] * 5
    assert len(set(found.item)) == 15
    assert found.counts()["open"] == next_answers(crowd, result, max_answers=5).counts()["open"]


@pytest.mark.parametrize("block", [1, 7, 4096])
@pytest.mark.parametrize("candidates", [1, 16])
def test_limits_and_blocks_change_no_choice(monkeypatch, crowd, result, block, candidates):
    _, value = values(crowd, result)
    left, expected = [9] * 5, []
    for item in next_answers(crowd, result, max_answers=5).item.tolist():
        order = [k for k in np.argsort(-value[item]) if left[k] and value[item, k] >= 0]
        if order:
            left[order[0]] -= 1
            expected.append((item, int(order[0])))
    monkeypatch.setattr(matching, "_BLOCK", block)
    found = next_answers(crowd, result, max_answers=5, per_worker_limit=9)
    assert sorted(zip(found.item.tolist(), found.worker.tolist(), strict=True)) == sorted(expected)
    monkeypatch.setattr(matching, "CANDIDATES", candidates)
    again = next_answers(crowd, result, max_answers=5, per_worker_limit=9)
    assert np.bincount(again.worker).max() <= 9
    pairs = set(zip(crowd.latest.item.tolist(), crowd.latest.worker.tolist(), strict=True))
    assert not pairs & set(zip(again.item.tolist(), again.worker.tolist(), strict=True))
    assert len(again) == len(set(again.item.tolist())) == len(found)


def test_who_is_free_ranks_first_and_the_better_of_two_free_ones_before(crowd, result):
    found = next_answers(crowd, result, prices={"a": 1, "b": 0, "c": 0, "d": 1, "e": 1})
    gain, _ = values(crowd, result)
    best = np.where(gain[:, 1] >= gain[:, 2], 1, 2)
    has_free = gain[found.item][:, 1:3].max(axis=1) > 0
    assert has_free.sum() > 5
    assert found.worker[has_free].tolist() == best[found.item][has_free].tolist()
    assert np.isinf(found.to_arrow()["gain_per_price"].to_numpy()[has_free]).all()


def test_a_spammer_is_not_asked_at_any_price():
    team = ["a=flip(0.1)", "b=flip(0.1)", "c=flip(0.1)", "s=spammer(constant, label=0)"]
    whole = simulate_crowd(draw_truth(300, 2, seed=1), team, seed=1)
    rng = np.random.default_rng(1)
    crowd = replace(whole, answers=whole.answers.take(rng.random(len(whole.answers)) < 0.5))
    result = goldspan.aggregate(crowd, "ds")
    found = next_answers(crowd, result, prices={"a": 1, "b": 1, "c": 1, "s": 0})
    assert len(found) > 20
    assert "s" not in found.to_arrow()["worker"].to_pylist()


def test_newcomers_are_expected_to_be_like_the_mean_worker(crowd, result):
    found = next_answers(crowd, result, workers=["new", "a"], max_answers=5)
    names = found.to_arrow()["worker"].to_pylist()
    answered = {i for i, k in zip(crowd.latest.item, crowd.latest.worker, strict=True) if k == 0}
    assert [name == "new" for name in names] == [i in answered for i in found.item.tolist()]
    habits = learn_habits(result)
    mean = token_gain(posterior_of(result, habits), habits.mean)
    is_new = np.array(names) == "new"
    assert found.gain[is_new] == pytest.approx(mean[found.item[is_new]], abs=1e-9)


def test_tests_say_what_to_expect_of_workers(crowd, result):
    tested = Reliability.from_counts([10, 99], 100, n_labels=3, worker_ids=["a", "new"])
    names = next_answers(crowd, result, workers=tested).to_arrow()["worker"].to_pylist()
    assert set(names) == {"new"}


def test_an_item_without_answers_is_open_and_has_the_shares_as_its_posterior(crowd):
    fresh = replace(crowd, answers=crowd.answers.take(crowd.answers.item != 7))
    result = goldspan.aggregate(fresh, "ds")
    found = next_answers(fresh, result)
    row = next(row for row in found.to_arrow().to_pylist() if row["item"] == "q8")
    assert row["answers"] == 0
    assert row["gain"] > 0.2


def test_equal_items_are_ordered_by_the_seed_and_equal_workers_share_the_work(crowd, result):
    fresh = replace(crowd, answers=crowd.answers.take(crowd.answers.item < 60))
    result = goldspan.aggregate(fresh, "ds")
    ids = [f"n{i}" for i in range(6)]
    one, two, other = (
        next_answers(fresh, result, workers=ids, n=60, per_worker_limit=40, random_state=seed)
        for seed in (3, 3, 4)
    )
    assert one.item.tolist() == two.item.tolist() != other.item.tolist()
    assert one.worker.tolist() == two.worker.tolist()
    assert np.bincount(one.worker).tolist() == [10] * 6


def test_sequences_gain_over_all_their_tokens(root):
    crowd = goldspan.read_crowd(root / "examples" / "crowd.tsv")
    result = goldspan.aggregate(crowd, "bsc-seq")
    found = next_answers(crowd, result, n=5)
    habits = learn_habits(result)
    probs = posterior_of(result, habits)
    for item, worker, gain in zip(found.item, found.worker, found.gain, strict=True):
        part = probs[crowd.offsets[item] : crowd.offsets[item + 1]]
        assert gain == pytest.approx(token_gain(part, habits.tables[worker]).sum(), abs=1e-9)


def test_plain_rules_work_on_votes(crowd):
    votes = goldspan.aggregate(crowd, "mv-token")
    found = next_answers(crowd, votes, rule="clear_majority(2)")
    assert found.counts()["clear majority"] > 20
    assert "clear majority" in found.finished()["reason"].to_pylist()


def test_answers_that_came_after_the_result_count(crowd, result):
    asked = next_answers(crowd, result, max_answers=5)
    item, worker = int(asked.item[0]), int(asked.worker[0])
    old = crowd.answers
    more = replace(
        old,
        item=np.append(old.item, np.int32(item)),
        worker=np.append(old.worker, np.int32(worker)),
        offset=np.append(old.offset, old.offset[-1] + 1),
        codes=np.append(old.codes, np.int16(0)),
        attempt=np.append(old.attempt, np.int16(0)),
    )
    found = next_answers(replace(crowd, answers=more), result, max_answers=5)
    place = found.item.tolist().index(item)
    assert found.worker[place] != worker
    assert found.answers[item] == asked.answers[item] + 1


def test_known_labels_that_nobody_gave_are_no_hindrance(crowd):
    known = b"task,label\nq1,9\nq2,1\n"
    result = goldspan.aggregate(crowd, "ds", gold=known)
    assert "9" in result.tagset.tags
    assert (
        next_answers(crowd, result).to_arrow().equals(next_answers(result.crowd, result).to_arrow())
    )


def test_a_result_of_other_items_or_labels_is_refused(crowd, result):
    with pytest.raises(InputError, match="other items"):
        next_answers(crowd.select_items(np.arange(5)), result)
    other = goldspan.read_crowd(b"task,worker,label\nq1,a,yes\n")
    single = crowd.select_items(np.array([0]))
    renamed = replace(single, item_ids=pa.array(["q1"]))
    with pytest.raises(InputError, match="labels that the result lacks"):
        next_answers(renamed, goldspan.aggregate(other, "ds"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 1.0}, "above 0 and below 1"),
        ({"max_answers": 0}, "max_answers must be"),
        ({"min_answers": 8}, "min_answers is 8, more than max_answers, 7"),
        ({"n": -1}, "n must be"),
        ({"per_worker_limit": 0}, "per_worker_limit must be"),
        ({"workers": []}, "nobody who can be asked"),
        ({"workers": ["x", "y", "x"]}, "x appears more than once"),
        ({"prices": -1}, "the price of an answer must lie in 0"),
        ({"prices": "dear"}, "must be a number such as 0.05"),
        ({"prices": {**dict.fromkeys("abcd", 1), "zoe": 1}}, "no price for 1 worker .'e'.; give"),
        ({"prices": {**dict.fromkeys("abcd", 1), "e": -2}}, "the price of e must lie"),
    ],
)
def test_what_makes_no_sense_is_refused(crowd, result, options, message):
    with pytest.raises(InputError, match=message):
        next_answers(crowd, result, **options)


def test_a_finished_crowd_needs_no_answer():
    whole = simulate_crowd(draw_truth(20, 2, seed=1), ["flip(0.05) x7"], seed=1)
    found = next_answers(whole, goldspan.aggregate(whole, "ds"), prices=1)
    assert (len(found), found.cost, found.counts()["open"]) == (0, 0, 0)
    assert found.to_arrow().num_rows == 0
    assert found.is_finished.all()
    assert repr(found) == "NextAnswers(0 to ask, 20 of 20 finished)"
