"""New answers enter a result: the same bits where nothing is learned, few rounds elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.aggregation import get_aggregator
from goldspan.errors import NotFittedError
from goldspan.simulation import draw_truth, simulate_crowd

ANEW = ("mv-token", "mv-seq", "wawa", "zbs", "glad", "wmv-log")
FROM_WORKERS = ("ds", "one-coin", "ibcc", "mace", "bsc-cm", "bsc-seq")


@pytest.fixture(scope="module")
def rows():
    """Return the answers of a simulated crowd, the new ones (1 %) last."""
    truth = draw_truth(400, ["1", "2", "3"], seed=5)
    crowd = simulate_crowd(truth, ["flip(0.1) x6", "flip(0.3) x3"], seed=5)
    found = [
        {"task": row["item"], "worker": row["worker"], "label": row["label"]}
        for row in crowd.to_pandas().to_dict("records")
    ]
    order = np.random.default_rng(0).permutation(len(found))
    return [found[n] for n in order]


def before(rows):
    """Leave out the newest 1 % of the answers."""
    return rows[: -(len(rows) // 100)]


@pytest.mark.parametrize("method", ANEW)
def test_what_is_computed_anew_has_the_bits_of_a_fit(rows, method):
    full = get_aggregator(method).fit(rows).result_
    updated = get_aggregator(method).fit(before(rows)).update(rows).result_
    for name in ("codes", "token_probs", "confidence", "span_confidence"):
        np.testing.assert_array_equal(getattr(updated, name), getattr(full, name))
    assert updated.workers == full.workers
    assert (updated.trace, updated.notes) == (full.trace, full.notes)


@pytest.mark.parametrize("method", FROM_WORKERS)
def test_what_is_learned_of_workers_is_gone_on_from(rows, method):
    options = {"tol": 1e-7, "max_iter": 1000}
    full = get_aggregator(method, **options).fit(rows).result_
    one = get_aggregator(method, **options).fit(before(rows))
    updated = one.update(rows).result_
    assert updated.crowd == full.crowd
    assert updated.labels == full.labels
    np.testing.assert_allclose(updated.token_probs, full.token_probs, atol=0.01)
    assert updated.converged
    assert len(updated.trace) < len(full.trace)
    assert updated.trace[-1] == pytest.approx(full.trace[-1], rel=1e-5)


def test_new_items_and_workers_may_come(rows):
    new = [{"task": "new", "worker": who, "label": "2"} for who in ("w1", "w2", "nobody yet")]
    found = get_aggregator("ds").fit(before(rows)).update([*rows, *new]).result_
    assert found.labels[-1] == "2"
    assert "nobody yet" in found.workers["worker"].to_pylist()


def test_without_a_method_the_earlier_result_says_which(rows):
    first = goldspan.aggregate(before(rows), "ds", alpha0=2.0)
    updated = goldspan.aggregate(rows, start=first)
    assert (updated.method, updated.params["alpha0"]) == ("ds", 2.0)
    again = goldspan.aggregate(rows, "ds", alpha0=2.0, start=first)
    np.testing.assert_array_equal(updated.token_probs, again.token_probs)
    assert goldspan.aggregate(rows, start=first, tol=0.5).params["tol"] == 0.5


def test_a_crf_goes_on_from_its_weights(crowd):
    first = get_aggregator("crf-conc", templates=["word"]).fit(crowd)
    n_rounds = len(first.result_.trace)
    assert len(first.update(crowd).result_.trace) <= n_rounds


def test_there_must_be_a_result_to_update(rows):
    with pytest.raises(NotFittedError):
        get_aggregator("ds").update(rows)
