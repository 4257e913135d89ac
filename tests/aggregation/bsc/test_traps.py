"""One test for every mistake that implementations of these models are known to make."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from aggregation.bsc import oracle
from goldspan.aggregation.bsc.posterior import best_spans
from goldspan.errors import InputError
from goldspan.spans import Codec

BIO = Codec.from_types(["X"], "BIO")
O, B, I = range(3)
every_model = pytest.mark.parametrize("model", oracle.MODELS)


@every_model
def test_a_label_that_nobody_ever_gave_is_not_vetoed(model):
    """With the least prior allowed, thirty against one still leaves every label possible."""
    codec = Codec.from_types(["a", "b", "c"], "PLAIN")
    crowd = oracle.crowd_of(codec, [{0: [0]}, {0: [1]}])
    result = goldspan.aggregate(crowd, f"bsc-{model}", alpha0=0.1, epsilon0=0.0)
    assert (result.token_probs > 1e-7).all()
    with pytest.raises(InputError, match=r"at least 0\.1"):
        goldspan.aggregate(crowd, f"bsc-{model}", alpha0=1e-12)


def test_among_equal_paths_the_lower_label_wins_in_every_order_of_workers():
    codec = Codec.from_types(["a", "b"], "PLAIN")
    for pair in ([0, 1], [1, 0]):
        crowd = oracle.crowd_of(codec, [{0: [pair[0]], 1: [pair[1]]}])
        for method in ("bsc-cm", "ibcc", "ds", "one-coin"):
            result = goldspan.aggregate(crowd, method)
            assert result.token_probs[0].tolist() == [0.5, 0.5]
            assert result.labels == ["a"]


# Decoding


def schedules(spans):
    """List all sets of spans that do not overlap."""
    if not spans:
        return [[]]
    first, *rest = spans
    found = schedules(rest)
    return found + [
        [first, *one]
        for one in found
        if all(s[0] != first[0] or s[2] <= first[1] or first[2] <= s[1] for s in one)
    ]


@pytest.mark.parametrize("seed", range(40))
def test_the_chosen_spans_have_the_largest_expected_f1_of_all_sets(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    item = np.sort(rng.integers(2, size=n))
    begin = rng.integers(5, size=n)
    stop = begin + rng.integers(1, 4, size=n)
    mass = rng.random(n) ** 2
    chosen, f1 = best_spans(item, begin, stop, mass)
    keys = [
        (int(i), int(a), int(b), k)
        for k, (i, a, b) in enumerate(zip(item, begin, stop, strict=True))
    ]

    def value(which):
        return 2 * sum(mass[k] for *_, k in which) / (len(which) + mass.sum())

    best = max(value(which) for which in schedules(keys))
    assert f1 == pytest.approx(best, abs=1e-9)
    picked = [key for key, one in zip(keys, chosen, strict=True) if one]
    assert sorted(picked) in [sorted(which) for which in schedules(keys)]
    assert value(picked) == pytest.approx(best, abs=1e-9)


def test_no_spans_to_choose_from_are_no_spans():
    empty = np.zeros(0, np.int64)
    chosen, f1 = best_spans(empty, empty, empty, np.zeros(0))
    assert len(chosen) == 0
    assert f1 == 0
