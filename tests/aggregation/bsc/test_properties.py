"""What must not change a result: orders, names, threads, shards, a second run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import goldspan
from aggregation.bsc.fitted import crowd_of, every_method, identical
from goldspan.aggregation.bsc import engine
from goldspan.crowd import Answers
from goldspan.runners import Threads


def fit(crowd, method, **options):
    return goldspan.aggregate(crowd, method, max_iter=8, tol=0, n_starts=1, **options)


def same(one, two):
    """Compare two results."""
    np.testing.assert_allclose(one.trace, two.trace, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(one.codes, two.codes)
    for name, atol in (("token_probs", 2e-7), ("confidence", 2e-7), ("entropy", 1e-6)):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=0, atol=atol)


@every_method
def test_of_repeated_answers_only_the_last_counts(method):
    crowd = crowd_of()
    a = crowd.answers
    codes = np.random.default_rng(4).integers(0, 5, size=len(a.codes)).astype(np.int16)
    doubled = Answers(
        np.concatenate([a.item, a.item]), np.concatenate([a.worker, a.worker]),
        np.concatenate([a.offset, a.offset[1:] + a.offset[-1]]), np.concatenate([codes, a.codes]),
        np.concatenate([a.attempt, a.attempt + 1]),
    )  # fmt: skip
    identical(fit(crowd, method), fit(replace(crowd, answers=doubled), method))


@every_method
def test_items_and_workers_without_answers_change_nothing(method):
    crowd = crowd_of()
    more = replace(
        crowd,
        item_ids=pa.concat_arrays([crowd.item_ids, pa.array(["empty"])]),
        tokens=pa.concat_arrays([crowd.tokens, pa.array([["w0", "w1"]])]),
        worker_ids=pa.concat_arrays([crowd.worker_ids, pa.array(["idle"])]),
    )
    if method.endswith("+words"):  # known words without an answer are not evidence of truth
        assert len(set(more.tokens.flatten().to_pylist())) == 5
    one, two = fit(crowd, method), fit(more, method)
    np.testing.assert_allclose(np.diff(one.trace), np.diff(two.trace), rtol=0, atol=1e-9)
    np.testing.assert_allclose(one.token_probs, two.token_probs[:-2], rtol=0, atol=2e-7)
    assert two.codes[-2:].tolist() == [-1, -1]
    assert not two.token_probs[-2:].any()
    assert two.tags[-1] == [None, None]
    assert two.confidence[-1] == 0
    assert any("1 item without answers" in note for note in two.notes)


@every_method
def test_threads_and_shards_of_any_number_give_the_same_bits(method, monkeypatch):
    """Shards are cut by the input; threads only change who works on which."""
    crowd = crowd_of(5, n_items=60)
    whole = fit(crowd, method)
    monkeypatch.setattr(engine, "ENTRIES_PER_SHARD", 1)
    monkeypatch.setattr(
        engine, "cut", lambda e, _: [e.items(a, min(a + 7, 60)) for a in range(0, 60, 7)]
    )
    from goldspan.aggregation import dawid_skene

    monkeypatch.setattr(dawid_skene, "cut", engine.cut)
    one = fit(crowd, method)
    assert len(one.posterior.shards) == 9
    same(whole, one)
    for n_threads in (1, 2, 3):
        two = fit(crowd, method, runner=Threads(n_threads))
        identical(one, two)
        assert two.posterior.alternatives(59) == one.posterior.alternatives(59)
    for item in (0, 6, 7, 59):
        mine = {a[:3]: a.confidence for a in one.posterior.alternatives(item)}
        wanted = {a[:3]: a.confidence for a in whole.posterior.alternatives(item)}
        assert mine == pytest.approx(wanted, abs=1e-9)
