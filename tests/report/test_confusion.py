"""Confusions in numbers: counts, the frequent mistakes, and who is unlike the others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import goldspan
from goldspan.errors import InputError
from goldspan.report.heat import Confusions, confusions, mistakes, unlike_the_others


def test_the_counts_are_the_expected_ones(model):
    crowd, probs = model.crowd, model.token_probs
    counts = np.zeros((probs.shape[1], probs.shape[1]))
    for item in range(crowd.n_items):
        base = crowd.offsets[item]
        for tags in crowd.answers_of(crowd.item_ids[item].as_py()).values():
            for t, tag in enumerate(tags):
                if tag in crowd.tagset.tags:
                    counts[:, crowd.tagset.tags.index(tag)] += probs[base + t]
    kinds = np.array([tag[2:] or "no span" for tag in crowd.tagset.tags])
    found = confusions(model)
    expected = [
        [
            counts[np.ix_([k == t for k in kinds], [k == g for k in kinds])].sum()
            for g in found.labels
        ]
        for t in found.labels
    ]
    assert found.labels == ("LOC", "MISC", "ORG", "PER", "no span")
    assert found.counts == pytest.approx(np.array(expected), rel=1e-5)


def test_the_workers_together_are_all(model):
    ids = model.crowd.worker_ids.to_pylist()
    together = sum(confusions(model, worker).counts for worker in ids)
    assert confusions(model).counts == pytest.approx(together)


def test_rows_sum_to_one_or_are_empty():
    found = Confusions(("a", "b"), np.array([[1.0, 3.0], [0.0, 0.0]]))
    assert found.rates.tolist() == [[0.25, 0.75], [0, 0]]


@given(st.integers(1, 12), st.integers(1, 14), st.integers(0, 9))
def test_folding_keeps_what_is_there(n, most, seed):
    counts = np.random.default_rng(seed).integers(0, 9, (n, n)).astype(float)
    found = Confusions(tuple(f"l{i}" for i in range(n)), counts).fold(most)
    assert len(found.labels) == min(n, most)
    assert found.counts.sum() == counts.sum()
    assert found.n_merged == (n - most + 1 if n > most else 0)
    if found.n_merged:
        kept = [int(label[1:]) for label in found.labels[:-1]]
        seen = counts.sum(axis=0) + counts.sum(axis=1)
        assert found.labels[-1] == f"{found.n_merged} others"
        assert found.counts[:-1, :-1].tolist() == counts[np.ix_(kept, kept)].tolist()
        assert min(seen[kept], default=0) >= max(np.delete(seen, kept)) or not kept


def test_mistakes_come_the_most_frequent_first_and_rare_ones_not():
    counts = np.array([[90.0, 2, 8], [5, 20, 0.4], [0, 0, 1]])
    found = mistakes(Confusions(("a", "b", "c"), counts))
    assert [(one.truth, one.given, one.count) for one in found] == [
        ("a", "c", 8),
        ("b", "a", 5),
        ("a", "b", 2),
    ]
    assert found[0].share == pytest.approx(0.08)


def test_the_spammer_is_most_unlike_the_others(model):
    ids = model.crowd.worker_ids.to_pylist()
    assert unlike_the_others(model, ids)[0] == "gus"
    assert len(unlike_the_others(model, ids)) == 6
    assert unlike_the_others(model, ids, 2) == unlike_the_others(model, ids[::-1], 2)


def test_workers_without_labels_are_not_compared(labels):
    result = goldspan.aggregate(labels, "ds")
    assert set(unlike_the_others(result, ["ann", "bob", "cem", "dan"])) == {"ann", "bob", "cem"}


def test_an_unknown_worker_is_refused(model):
    with pytest.raises(InputError):
        confusions(model, "nobody")
