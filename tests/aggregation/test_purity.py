"""What is mapped over shards is pure, and its result has the same bits on any number of threads.

`Copies` plays another process: every call gets pickled copies of shard and parameters, and so does
every merge. Nothing may be written into them, and nothing that is written into an original counts.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

import goldspan
from goldspan.aggregation.bsc import engine
from goldspan.aggregation.crf import family
from goldspan.protocols import Serial, merge_in_order
from goldspan.runners import Threads
from goldspan.tagger import CRF, HMM
from goldspan.tagger import crf as crf_module
from tagger.corpora import example


def arrays_in(value, path=()):
    """Yield the arrays of nested data with the way to them."""
    if isinstance(value, np.ndarray):
        yield path, value
        return
    inside = []
    if is_dataclass(value):
        inside = [(field.name, getattr(value, field.name)) for field in fields(value)]
    elif isinstance(value, Mapping):
        inside = value.items()
    elif isinstance(value, list | tuple):
        inside = enumerate(value)
    elif type(value).__module__.startswith("goldspan"):
        inside = vars(value).items()
    for name, one in inside:
        yield from arrays_in(one, (*path, name))


class Copies(Serial):
    """A runner that calls functions on copies, and checks that they write into none of them."""

    def __init__(self):
        self.n_calls = {}

    def map(self, fn, shards, params):
        return [self.call(fn, shard, params) for shard in shards]

    def map_reduce(self, fn, shards, params, merge):
        found = (self.call(fn, shard, params) for shard in shards)
        return merge_in_order(found, lambda left, right: self.call(merge, left, right))

    def call(self, fn, *given):
        self.n_calls[fn.__name__] = self.n_calls.get(fn.__name__, 0) + 1
        own = pickle.loads(pickle.dumps(given))
        before = {path: array.copy() for path, array in arrays_in(own)}
        found = fn(*own)
        after = dict(arrays_in(own))
        for path, array in before.items():
            assert array.tobytes() == after[path].tobytes(), (fn, path)
        return pickle.loads(pickle.dumps(found))


@pytest.fixture
def many_shards(monkeypatch):
    monkeypatch.setattr(engine, "ENTRIES_PER_SHARD", 50)
    monkeypatch.setattr(family, "TOKENS_PER_SHARD", 50)
    monkeypatch.setattr(crf_module, "ENTRIES_PER_SHARD", 500)


def numbers(result):
    """The arrays of a result, and its trace."""
    names = ("codes", "token_probs", "span_confidence", "confidence", "entropy", "trace")
    return [np.asarray(getattr(result, name)) for name in names]


LAST_PASS = {"_marginals", "_confidences"}
ENGINE = LAST_PASS | {"e_step", "_vote_step", "add"}
TRAINING = {"expect", "_gradient"}
METHODS = {
    "ds": ENGINE,
    "bsc-mace": ENGINE,
    "bsc-seq+words": ENGINE,
    "bsc-seq+crf": ENGINE | TRAINING | {"_train"},
    "crf-ma": LAST_PASS | TRAINING,
    "multicrf": LAST_PASS | TRAINING,
}
FEW = {
    "bsc-seq+crf": {"rounds": 2, "folds": 2, "max_iter": 3},
    "crf-ma": {"max_iter": 2, "steps": 5},
    "multicrf": {"max_iter": 2, "steps": 5},
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.usefixtures("many_shards")
def test_aggregation_is_the_same_on_copies_and_on_any_number_of_threads(method, root):
    crowd = goldspan.read_crowd(root / "examples" / "crowd.tsv")
    runner, params = Copies(), FEW.get(method, {"max_iter": 4})
    found = numbers(goldspan.aggregate(crowd, method, runner=runner, **params))
    assert set(runner.n_calls) == METHODS[method]
    assert runner.n_calls["_marginals"] > 1
    for n_threads in (1, 2, 3):
        other = goldspan.aggregate(crowd, method, runner=Threads(n_threads), **params)
        for mine, theirs in zip(found, numbers(other), strict=True):
            assert mine.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("tagger", [CRF(max_iter=5), HMM(max_iter=3)], ids=["crf", "hmm"])
@pytest.mark.usefixtures("many_shards")
def test_taggers_are_the_same_on_copies_and_on_any_number_of_threads(tagger):
    words, tags, _ = example()
    partly = [[tag if n % 3 else None for n, tag in enumerate(item)] for item in tags]
    runner = Copies()
    found = tagger.fit(words, partly, runner=runner).weights_.vector
    assert runner.n_calls["expect"] > 1
    for n_threads in (1, 2, 3):
        other = tagger.fit(words, partly, runner=Threads(n_threads)).weights_.vector
        assert found.tobytes() == other.tobytes()
