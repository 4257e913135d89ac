"""Weighted majority votes against dense sums and enumeration, and what their parameters do."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import goldspan
from aggregation.bsc import oracle
from aggregation.weighted import dense
from goldspan.aggregation import get_aggregator
from goldspan.aggregation.weighted import TokenLabels, in_grains
from goldspan.errors import InputError, UnknownNameError
from goldspan.spans import Codec, validate
from goldspan.workers import Reliability

BOTH = pytest.mark.parametrize("method", ["wmv-linear", "wmv-log"])
BIO = Codec.from_types(["X"], "BIO")


def named(shares):
    return {f"w{k}": share for k, share in enumerate(shares)}


def weights_of(result):
    return result.workers.column("weight").to_numpy()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_labels", [2, 3, 5])
def test_linear_weights_are_those_of_the_paper_and_the_largest_sum_wins(seed, n_labels):
    labels, _ = dense.draw(seed, n_labels=n_labels)
    shares = np.random.default_rng(seed).uniform(0.05, 0.95, size=labels.shape[1])
    result = goldspan.aggregate(
        dense.crowd_of(labels, n_labels), "wmv-linear", reliability=named(shares)
    )
    np.testing.assert_allclose(weights_of(result), n_labels * shares - 1, rtol=0, atol=1e-12)
    sums = dense.weighted_sums(labels, n_labels * shares - 1, n_labels)
    np.testing.assert_array_equal(result.codes, sums.argmax(axis=1))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_labels", [2, 4])
def test_log_odds_give_the_posterior_of_workers_with_one_probability_of_being_right(seed, n_labels):
    labels, _ = dense.draw(seed, n_labels=n_labels)
    shares = np.random.default_rng(seed).uniform(0.1, 0.9, size=labels.shape[1])
    result = goldspan.aggregate(
        dense.crowd_of(labels, n_labels), "wmv-log", reliability=named(shares)
    )
    for row, probs in zip(labels, result.token_probs, strict=True):
        joint = np.ones(n_labels)
        for truth, k in itertools.product(range(n_labels), np.flatnonzero(row >= 0)):
            hit = row[k] == truth
            joint[truth] *= shares[k] if hit else (1 - shares[k]) / (n_labels - 1)
        np.testing.assert_allclose(probs, joint / joint.sum(), rtol=0, atol=1e-6)
        assert probs.argmax() == joint.argmax()


def test_sums_over_ballots_equal_dense_sums():
    labels, _ = dense.draw(3)
    weight = np.random.default_rng(0).normal(size=labels.shape[1])
    token_labels = TokenLabels.of(dense.crowd_of(labels))
    found = token_labels.sums(weight[token_labels.worker])
    np.testing.assert_allclose(found, dense.weighted_sums(labels, weight), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(token_labels.per_worker(None), (labels >= 0).sum(axis=0))


@BOTH
def test_sums_of_the_same_weights_in_another_order_are_a_tie(method):
    crowd = goldspan.read_crowd(b"task,worker,label\n1,a,y\n1,b,y\n1,c,y\n1,d,x\n1,e,x\n1,f,x\n")
    shares = dict(zip("abcdef", [0.7, 0.6, 0.9, 0.9, 0.7, 0.6], strict=True))
    assert goldspan.aggregate(crowd, method, reliability=shares).labels == ["x"]
    sums = in_grains(np.array([[0.1 + 0.2, 0.3]]))
    assert sums[0, 0] == sums[0, 1]


@BOTH
@pytest.mark.parametrize("seed", range(6))
def test_on_tagged_tokens_the_legal_sequence_with_the_largest_sum_wins(method, seed):
    rng = np.random.default_rng(seed)
    (item,) = oracle.random_items(rng, BIO, n_items=1, n_workers=4, longest=4)
    shares = rng.uniform(0.2, 0.95, size=4)
    crowd = oracle.crowd_of(BIO, [item], workers=4)
    result = goldspan.aggregate(crowd, method, reliability=named(shares))
    weight = weights_of(result)

    def total(codes):
        return sum(weight[k] for k, row in item.items() for t, c in enumerate(row) if c == codes[t])

    length = len(next(iter(item.values())))
    legal = [
        codes
        for codes in itertools.product(range(3), repeat=length)
        if not validate([BIO.tags[c] for c in codes], "BIO")
    ]
    assert tuple(result.codes) in legal
    assert total(result.codes) == pytest.approx(max(total(codes) for codes in legal), abs=1e-6)


def test_weights_from_known_truth_are_right_labels_over_judged_labels():
    labels, truth = dense.draw(1, n_items=60)
    labels[:, 6] = -1
    labels[50:, 6] = 0  # this worker saw no known item
    crowd, known = dense.crowd_of(labels), np.arange(50)
    gold = dense.gold_of(crowd, truth, known)
    given = labels[known] >= 0
    right = ((labels[known] == truth[known, None]) & given).sum(axis=0)
    n = given.sum(axis=0)
    plain = get_aggregator("wmv-linear", prior=(0, 0)).fit(crowd, gold).result_
    np.testing.assert_allclose(weights_of(plain)[:6], 3 * right[:6] / n[:6] - 1, atol=1e-12)
    assert weights_of(plain)[6] == 0
    smooth = get_aggregator("wmv-log", prior=(2, 1)).fit(crowd, gold).result_
    w = np.clip((right + 2) / (n + 3), 0.05, 0.95)
    np.testing.assert_allclose(weights_of(smooth), np.log(2 * w / (1 - w)), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(plain.codes[known], truth[known])


@pytest.mark.parametrize("source", ["mv-token", "one-coin"])
def test_weights_from_a_method_are_its_expected_right_labels(source):
    labels, _ = dense.draw(2)
    crowd = dense.crowd_of(labels)
    probs = goldspan.aggregate(crowd, source).token_probs
    result = goldspan.aggregate(crowd, "wmv-linear", weights_from=source, prior=(0, 0))
    for k, weight in enumerate(weights_of(result)):
        there = np.flatnonzero(labels[:, k] >= 0)
        assert weight == pytest.approx(3 * probs[there, labels[there, k]].mean() - 1, abs=1e-6)


def test_truncation_bounds_what_an_infallible_worker_counts():
    crowd = goldspan.read_crowd(b"task,worker,label\n1,a,x\n1,b,y\n1,c,y\n1,d,z\n")
    shares = {"a": 1.0, "b": 0.0, "c": 0.5, "d": 0.5}
    for t in (0.05, 0.2):
        result = goldspan.aggregate(crowd, "wmv-log", reliability=shares, truncation=t)
        top = np.log(2 * (1 - t) / t)
        assert weights_of(result)[:2] == pytest.approx([top, np.log(2 * t / (1 - t))], abs=1e-12)


@BOTH
def test_a_worker_below_chance_speaks_for_the_other_label_or_has_no_say(method):
    crowd = goldspan.read_crowd(b"task,worker,label\n1,a,x\n1,b,y\n")
    shares = {"a": 0.1, "b": 0.6}
    assert goldspan.aggregate(crowd, method, reliability=shares).labels == ["y"]
    lone = goldspan.read_crowd(b"task,worker,label\n1,a,x\n2,b,y\n")
    assert goldspan.aggregate(lone, method, reliability=shares).labels == ["y", "y"]
    zero = goldspan.aggregate(crowd, method, reliability=shares, below="zero")
    assert weights_of(zero)[0] == 0


def test_the_share_of_weight_spreads_a_negative_weight_over_the_other_labels():
    crowd = goldspan.read_crowd(b"task,worker,label\n1,a,x\n1,b,y\n2,a,z\n")
    result = goldspan.aggregate(crowd, "wmv-linear", reliability={"a": 0.2, "b": 0.6})
    # L = 3: a counts -0.4 and b 0.8; against x means 0.4 for y and for z.
    np.testing.assert_allclose(result.token_probs[0], [0, 1.2 / 1.6, 0.4 / 1.6], atol=1e-6)
    np.testing.assert_allclose(result.token_probs[1], [0.5, 0.5, 0], atol=1e-6)


def test_only_a_team_votes_and_items_of_others_stay_open():
    text = b"task,worker,label\n1,a,x\n1,b,y\n1,c,y\n2,b,y\n3,a,y\n3,c,x\n"
    crowd = goldspan.read_crowd(text)
    result = goldspan.aggregate(crowd, "wmv-linear", only="a,", reliability={"a": 0.9})
    assert result.labels == ["x", None, "y"]
    assert weights_of(result).tolist() == [pytest.approx(0.8), 0, 0]
    assert goldspan.aggregate(crowd, "wmv-log", only=["a"], reliability={"a": 0.9}).labels == [
        "x", None, "y",
    ]  # fmt: skip
    with pytest.raises(InputError, match="there is no worker 'zoe'"):
        goldspan.aggregate(crowd, "wmv-linear", only=["zoe"])


def test_a_reliability_of_the_hiring_room_gives_its_posterior_means():
    tested = Reliability.from_counts(
        [9, 2], [10, 4], n_labels=3, worker_ids=["w0", "w1"], prior=(3, 1)
    )
    crowd = dense.crowd_of(dense.draw(0, n_workers=3)[0])
    result = goldspan.aggregate(crowd, "wmv-linear", reliability=tested)
    means = np.array([12 / 14, 5 / 8, 3 / 4])  # the last is unknown: the mean of the prior
    np.testing.assert_allclose(weights_of(result), 3 * means - 1, rtol=0, atol=1e-12)


def test_by_spans_a_worker_counts_by_his_f1():
    tags = ["B-X", "I-X", "O", "B-X"]
    builder = goldspan.crowd.CrowdBuilder()
    item = builder.add_item("s", ["a", "b", "c", "d"], gold=tags)
    builder.add_answer(item, "ana", tags)
    builder.add_answer(item, "ben", ["B-X", "I-X", "B-X", "O"])
    crowd = builder.build()
    result = get_aggregator("wmv-linear", unit="span", prior=(0, 0)).fit(crowd, crowd).result_
    # F1 of 1 and 1/2; two "labels": X or nothing.
    assert weights_of(result).tolist() == pytest.approx([1, 0])
    with pytest.raises(InputError, match="needs spans"):
        goldspan.aggregate(dense.crowd_of(dense.draw(0)[0]), "wmv-log", unit="span")


def test_an_earlier_result_counts_as_that_many_judged_labels():
    labels, truth = dense.draw(5, n_items=80)
    first, second = dense.crowd_of(labels[:40]), dense.crowd_of(labels[40:])
    past = get_aggregator("mv-token").fit(first, dense.gold_of(first, truth[:40], range(40)))
    vote = get_aggregator("wmv-linear", prior=(0, 0), history=past.result_)
    found = vote.fit(second, dense.gold_of(second, truth[40:], range(40))).result_
    both = dense.crowd_of(labels)
    whole = get_aggregator("wmv-linear", prior=(0, 0))
    whole.fit(both, dense.gold_of(both, truth, range(80)))
    np.testing.assert_allclose(weights_of(found), weights_of(whole.result_), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"below": "chance"}, "below"),
        ({"unit": "item"}, "unit"),
        ({"n_labels": 1}, "n_labels must be a whole number of at least 2"),
        ({"prior": (-1, 1)}, "prior must be a pair"),
        ({"prior": "pool"}, "prior must be a pair"),
        ({"truncation": 0.5}, "truncation"),
        ({"weights_from": "wmv-linear"}, "another method"),
        ({"reliability": [0.5]}, "mapping"),
        ({"ties": "last"}, "value of ties"),
        ({"history": 3}, "history must be a Consensus"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(wrong, message):
    with pytest.raises((InputError, UnknownNameError), match=message):
        get_aggregator("wmv-log", **wrong)


def test_a_share_beyond_one_is_refused_with_the_worker():
    crowd = dense.crowd_of(dense.draw(0)[0])
    with pytest.raises(InputError, match=r"worker w1 has 1\.5"):
        goldspan.aggregate(crowd, "wmv-linear", reliability={"w0": 0.5, "w1": 1.5})


def test_the_summary_of_a_result_can_be_written_as_json():
    import json

    crowd = dense.crowd_of(dense.draw(0)[0])
    result = goldspan.aggregate(crowd, "wmv-linear", reliability={"w0": 0.5})
    assert json.loads(json.dumps(result.summary()))["params"]["reliability"] == "dict of 1"


@pytest.mark.realdata
def test_ten_questions_weigh_the_workers_of_bluebirds_as_in_the_paper(data):
    folder = data / "classification" / "bluebirds"
    crowd = goldspan.read_crowd(folder / "labels.csv", gold=folder / "truth.csv")
    shares = []
    for seed in range(30):
        asked = np.random.default_rng(seed).choice(crowd.n_items, 10, replace=False)
        gold = dense.gold_of(crowd, crowd.gold, asked)
        codes = get_aggregator("wmv-linear", prior=(0, 0)).fit(crowd, gold).result_.codes
        rest = np.setdiff1d(np.arange(crowd.n_items), asked)
        shares.append((codes[rest] == crowd.gold[rest]).mean())
    assert 0.81 < np.mean(shares) < 0.85
    assert (goldspan.aggregate(crowd, "mv-token").codes == crowd.gold).mean() < 0.77
