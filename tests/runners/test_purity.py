"""What is mapped over shards is pure, and its result has the same bits wherever it runs.

`Apart` plays other machines: every call gets frozen copies of shard and parameters, and so does
every merge; calls end in any order.
"""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.aggregation import calibrate, crf, get_aggregator
from goldspan.aggregation.bsc import engine
from goldspan.aggregation.registry import METHODS, TEXTS
from goldspan.runners import Threads
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.tagger import CRF, HMM
from goldspan.tagger import crf as crf_module
from runners.apart import Apart, frozen
from tagger.corpora import example


@pytest.fixture
def many_shards(monkeypatch):
    monkeypatch.setattr(engine, "ENTRIES_PER_SHARD", 50)
    monkeypatch.setattr(crf, "TOKENS_PER_SHARD", 50)
    monkeypatch.setattr(crf_module, "ENTRIES_PER_SHARD", 500)


@pytest.fixture(scope="module")
def spans(root):
    return goldspan.read_crowd(root / "examples" / "crowd.tsv")


@pytest.fixture(scope="module")
def labels():
    truth = draw_truth(60, labels=3, seed=1)
    return simulate_crowd(truth, ["flip(0.2) x4", "spammer(constant)"], per_item=3, seed=2)


def numbers(result):
    """The arrays of a result, its trace, and what is worked out of its posterior later."""
    names = ("codes", "token_probs", "span_confidence", "confidence", "entropy", "trace")
    return [np.asarray(getattr(result, name)) for name in names]


def same(found, other):
    return all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in zip(found, other, strict=True)
    )


LAST_PASS = {"_marginals", "_confidences"}
ENGINE = LAST_PASS | {"e_step", "vote_shard", "add"}
TRAINING = {"expect", "_gradient"}
MAPPED = {
    "ds": ENGINE,
    "bsc-mace": ENGINE,
    "bsc-seq+words": ENGINE,
    "bsc-seq+crf": ENGINE | TRAINING | {"_train"},
    "crf-ma": LAST_PASS | TRAINING,
    "multicrf": LAST_PASS | TRAINING,
}
"""What some methods map: that it is all of it is checked, lest a test looks at nothing."""
FEW = {
    "auto": {"text": "none"},
    "glad": {"max_iter": 3},
    "mace": {"max_iter": 3, "n_starts": 2},
    "crf-ma": {"max_iter": 2, "steps": 5},
    "multicrf": {"max_iter": 2, "steps": 5},
    "multicrf-max": {"max_iter": 2, "steps": 5},
    "crf-conc": {"steps": 5},
}
CLASSES = {"glad"}
"""Methods for single labels alone."""
EVERY = [*METHODS, *(f"bsc-seq+{text}" for text in TEXTS if text != "encoder"), "bsc-mace+words"]
EVERY.remove("ordinal")  # of labels on a scale alone, in one thread
"""Text models do not know which worker model is beside them; torch has threads of its own."""


def few_steps(method):
    if method.endswith("+crf"):
        return {"rounds": 2, "folds": 2, "max_iter": 3}
    return FEW.get(method, {"max_iter": 4} if method.startswith("bsc-") or method == "ds" else {})


@pytest.mark.parametrize("method", EVERY)
@pytest.mark.usefixtures("many_shards")
def test_every_method_gives_the_bits_of_one_thread(method, spans, labels):
    crowd = labels if method in CLASSES else spans
    if method == "auto":  # which fits every candidate on several parts
        crowd = spans.select_items(np.arange(12))
    params = few_steps(method)
    wanted = numbers(goldspan.aggregate(crowd, method, **params))
    runner = Apart(len(method))
    found = goldspan.aggregate(crowd, method, runner=runner, **params)
    assert same(wanted, numbers(found))
    assert set(runner.n_calls) == MAPPED.get(method, set(runner.n_calls))
    assert same(wanted, numbers(goldspan.aggregate(crowd, method, runner=Threads(3), **params)))


@pytest.mark.parametrize("method", ["bsc-seq", "mv-token"])
@pytest.mark.usefixtures("many_shards")
def test_what_is_made_of_a_result_has_the_same_bits(method, spans):
    params = few_steps(method)
    results = [
        goldspan.aggregate(spans, method, runner=runner, **params)
        for runner in (Threads(1), Apart(3))
    ]
    known = spans.select_items(np.arange(0, spans.n_items, 3))
    one, other = (numbers(calibrate(result, known)) for result in results)
    assert same(one, other)
    if method != "mv-token":
        one, other = (result.alternatives(spans.item_ids[0].as_py()) for result in results)
        assert one == other


@pytest.mark.usefixtures("many_shards")
def test_new_items_are_labelled_with_the_same_bits(spans):
    fitted = get_aggregator("bsc-seq", max_iter=3).fit(spans)
    one, other = (numbers(fitted.predict(spans, runner=runner)) for runner in (None, Apart(4)))
    assert same(one, other)


@pytest.mark.parametrize("tagger", [CRF(max_iter=5), HMM(max_iter=3)], ids=["crf", "hmm"])
@pytest.mark.usefixtures("many_shards")
def test_taggers_have_the_same_bits(tagger):
    words, tags, _ = example()
    partly = [[tag if n % 3 else None for n, tag in enumerate(item)] for item in tags]
    runner = Apart(5)
    found = tagger.fit(words, partly, runner=runner)
    assert runner.n_calls["expect"] > 1
    weights, labels = found.weights_.vector, found.predict(words)
    assert frozen(found).predict(words) == labels
    for n_threads in (1, 2, 3):
        other = tagger.fit(words, partly, runner=Threads(n_threads))
        assert weights.tobytes() == other.weights_.vector.tobytes()


TEAM = (
    *("flip(0.3) x2", "seq", "acc", "spammer(constant)", "copier(w1, 0.5)", "ana=invents(0.1)"),
    *("drift(flip(0.05), flip(0.4))", "flip(0.1) + misses(0.3) + merges(0.4) + early(0.2)"),
    *("crf_noise(0.1) x2",),
)


def test_a_simulated_crowd_is_the_same(spans):
    runner = Apart(7)
    heard = []
    one = simulate_crowd(spans, TEAM, per_item=3, seed=7)
    other = simulate_crowd(
        spans, TEAM, per_item=3, seed=7, runner=runner, progress=lambda *step: heard.append(step)
    )
    assert runner.n_calls["_answer"] == one.n_workers == 11
    assert heard
    assert one.answers.codes.tobytes() == other.answers.codes.tobytes()
    assert one.answers.worker.tobytes() == other.answers.worker.tobytes()


def test_agreement_writes_into_no_array_of_a_crowd(spans):
    one, other = (goldspan.agreement(crowd) for crowd in (spans, frozen(spans)))
    assert repr(one) == repr(other)
    assert one.workers.equals(other.workers)
