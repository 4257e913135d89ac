"""Tables of many workers are updated in blocks: the same tables as in one, on any runner."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from aggregation.bsc.fitted import crowd_of, every_method
from goldspan.aggregation import workermodels
from goldspan.aggregation.bsc import engine
from goldspan.aggregation.workermodels import Prior, Rows, get_worker_model
from goldspan.protocols import Serial
from goldspan.runners import Threads
from runners.apart import Apart


@pytest.fixture
def in_blocks(monkeypatch):
    """Update in blocks of about four rows, and do not add up in another way."""
    monkeypatch.setattr(engine, "LARGE", 0)
    monkeypatch.setattr(engine, "BLOCK", 20)


def bits(result):
    names = ("codes", "token_probs", "confidence", "span_confidence", "entropy", "trace")
    return [np.asarray(getattr(result, name)).tobytes() for name in names]


@every_method
def test_the_bits_are_the_same_on_any_number_of_threads(in_blocks, method):  # noqa: ARG001
    crowd = crowd_of(3, n_items=30, n_workers=17)
    wanted = goldspan.aggregate(crowd, method, max_iter=4)
    for runner in (Serial(), Threads(2), Threads(5), Apart(seed=1)):
        assert bits(goldspan.aggregate(crowd, method, max_iter=4, runner=runner)) == bits(wanted)


@every_method
def test_a_step_is_that_of_one_block(monkeypatch, method):
    crowd = crowd_of(4, n_items=30, n_workers=17)
    whole = goldspan.aggregate(crowd, method, max_iter=4)
    monkeypatch.setattr(engine, "LARGE", 0)
    monkeypatch.setattr(engine, "BLOCK", 20)
    blocks = goldspan.aggregate(crowd, method, max_iter=4)
    assert blocks.token_probs.tobytes() == whole.token_probs.tobytes()
    np.testing.assert_allclose(blocks.trace, whole.trace, rtol=1e-12)


def random_rows(rng, n_workers=23, n_previous=3, n_labels=4):
    """Draw rows; some workers have none, also the first and the last one."""
    here = rng.random((n_workers, n_previous, n_labels)) < 0.4
    here[[0, 7, 8, n_workers - 1]] = False
    worker, previous, label = np.nonzero(here)
    return Rows(
        worker.astype(np.int32), previous.astype(np.int16), label.astype(np.int16),
        n_workers, n_previous, n_labels,
    )  # fmt: skip


@pytest.mark.parametrize("n_rows", [1, 5, 40, 1000])
def test_blocks_hold_all_workers_once_in_their_order(n_rows):
    rows = random_rows(np.random.default_rng(5))
    blocks = list(rows.blocks(n_rows))
    for name, n in (("worker", 23), ("row", len(rows)), ("group", len(rows.group_start))):
        cuts = [getattr(block, name) for block in blocks]
        assert [cut.start for cut in cuts] == [0, *[cut.stop for cut in cuts[:-1]]]
        assert cuts[-1].stop == n
    own = [rows.of_block(block) for block in blocks]
    for block, part in zip(blocks, own, strict=True):
        np.testing.assert_array_equal(part.worker + block.worker.start, rows.worker[block.row])
        assert len(part.group_start) == block.group.stop - block.group.start
    assert len(blocks) == 1 or max(map(len, own)) < n_rows + 12 + n_rows


@pytest.mark.parametrize("name", ["acc", "cv", "cm", "seq", "mace"])
@pytest.mark.parametrize("is_first", [True, False])
def test_every_worker_model_can_be_cut(name, is_first):
    rng, model = np.random.default_rng(6), get_worker_model(name)
    rows = random_rows(rng, n_previous=3 if model.has_memory else 1)
    prior = Prior(bonus=rng.random(23) * 5, history=rng.random((len(rows), 4)))
    counts = rng.random((len(rows), 4)) * 3
    last = None if is_first else model.posterior(counts, rows, prior)
    whole = model.posterior(counts, rows, prior, last)
    assert set(model.arrays(whole)) == set(model.axes)
    for block in rows.blocks(10):
        own = None if last is None else model.of_block(last, block)
        part = model.posterior(counts[block.row], rows.of_block(block), prior.of_block(block), own)
        for key, values in model.arrays(model.of_block(whole, block)).items():
            np.testing.assert_array_equal(model.arrays(part)[key], values)


def test_groups_of_large_tables_are_added_up_alike(monkeypatch):
    rng = np.random.default_rng(7)
    rows = random_rows(rng)
    values = rng.random((len(rows), 4))
    wanted = rows.sum_groups(values)
    monkeypatch.setattr(workermodels, "SPARSE", 0)
    np.testing.assert_allclose(rows.sum_groups(values), wanted, rtol=1e-15)
