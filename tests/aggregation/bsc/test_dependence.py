"""Shared mistakes are measured, and labels of one token then count for fewer."""

from __future__ import annotations

import numpy as np
import pytest

from crowd_tables import crowd_of
from goldspan.aggregation import get_aggregator
from goldspan.aggregation.base import FitContext
from goldspan.aggregation.bsc.evidence import Tables, discounted, lay_out
from goldspan.aggregation.bsc.text import HIDDEN, MOST, measure_dependence
from goldspan.errors import InputError


def crowd_of_misses(share: float, seed: int = 0, n_items: int = 400, n_workers: int = 5):
    """Return workers who miss a third of the spans, the given share of the misses together."""
    rng = np.random.default_rng(seed)
    items = []
    for _ in range(n_items):
        together, common = rng.random() < share, rng.random() < 1 / 3
        missed = [common if together else rng.random() < 1 / 3 for _ in range(n_workers)]
        items.append({f"w{k}": ["O" if m else "B-X", "O"] for k, m in enumerate(missed)})
    return crowd_of(items, gold=[["B-X", "O"]] * n_items)


def truth_of(crowd):
    probs = np.zeros((crowd.n_tokens, len(crowd.tagset.tags)))
    probs[np.arange(crowd.n_tokens), crowd.gold] = 1.0
    return probs


def test_workers_on_their_own_show_no_dependence():
    crowd = crowd_of_misses(0.0)
    assert measure_dependence(crowd, truth_of(crowd)) < 0.06


def test_the_correlation_of_mistakes_is_found_when_the_truth_is_known():
    crowd = crowd_of_misses(0.06, n_items=4000)
    seen = measure_dependence(crowd, truth_of(crowd)) / HIDDEN
    assert seen == pytest.approx(0.06, abs=0.02)


def test_who_always_errs_together_is_as_dependent_as_can_be():
    crowd = crowd_of_misses(1.0)
    assert measure_dependence(crowd, truth_of(crowd)) == MOST


def test_one_answer_per_item_has_nothing_to_share():
    crowd = crowd_of_misses(1.0, n_workers=1)
    assert measure_dependence(crowd, truth_of(crowd)) == 0.0


@pytest.mark.parametrize("dependence", [0.0, 0.3, 1.0])
def test_n_labels_count_as_their_effective_number(dependence):
    crowd = crowd_of_misses(0.5, n_items=6, n_workers=3)
    inputs = get_aggregator("bsc-cm")._prepare(crowd, FitContext())
    n_rows, n_labels = len(inputs.model.rows), len(crowd.tagset.tags)
    logs = np.log(np.random.default_rng(1).dirichlet(np.ones(n_labels), n_rows))
    tables = Tables(logs, np.exp(logs), np.ones((n_labels + 1, n_labels)), np.ones(n_labels))
    (shard,) = inputs.shards
    local, _ = discounted(shard, n_rows, dependence).localise(tables)
    plain, _ = shard.localise(tables)
    np.testing.assert_allclose(
        local.log_table, plain.log_table / (1 + 2 * dependence), rtol=1e-12, atol=1e-12
    )


def test_items_of_single_tokens_are_discounted_too():
    crowd = crowd_of([{"w0": ["B-X"], "w1": ["B-X"]}] * 4)
    evidence, rows = lay_out(crowd, has_memory=False)
    np.testing.assert_allclose(discounted(evidence, len(rows), 0.5).discount, 2 / 3)


def test_what_was_measured_is_told_and_serves_predictions(crowd):
    method = get_aggregator("bsc-seq+crf", rounds=1).fit(crowd)
    assert any("dependence 0.0" in note for note in method.result_.notes)
    assert method.result_.memory.dependence < 0.1
    assert method.predict(crowd.select_items(np.arange(5))).memory.dependence == (
        method.result_.memory.dependence
    )


@pytest.mark.parametrize("value", [-0.1, 1.5, "much", True, float("nan")])
def test_a_dependence_that_makes_no_sense_is_refused(value):
    with pytest.raises(InputError, match="dependence"):
        get_aggregator("bsc-seq+crf", dependence=value)
