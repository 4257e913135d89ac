"""The methods of the engine, small crowds for them, and what two results have in common."""

from __future__ import annotations

import numpy as np
import pytest

from aggregation.bsc import oracle
from goldspan.aggregation import get_aggregator, methods
from goldspan.aggregation.dawid_skene import Variational
from goldspan.spans import Codec

BIO = Codec.from_types(["X", "Y"], "BIO")
PLAIN = Codec.from_types(["a", "b", "c"], "PLAIN")
# +crf has no bound that cannot fall, and rounds of its own: see test_crf_text.py
FITTED = [
    name
    for name in methods()
    if isinstance(get_aggregator(name), Variational) and not name.endswith(("crf", "encoder"))
]
every_method = pytest.mark.parametrize("method", FITTED)


def crowd_of(seed=0, *, codec=BIO, n_items=12, n_workers=5, longest=6, skip=0.2, n_words=5):
    """Draw a crowd whose tokens are a few words."""
    rng = np.random.default_rng(seed)
    items = oracle.random_items(
        rng, codec, n_items=n_items, n_workers=n_workers, longest=longest, skip=skip
    )
    tokens = [[f"w{rng.integers(n_words)}" for _ in next(iter(item.values()))] for item in items]
    return oracle.crowd_of(codec, items, workers=n_workers, tokens=tokens)


def identical(one, two):
    """Compare the bits of two results."""
    assert (one.trace, one.converged, one.stop_reason) == (
        two.trace,
        two.converged,
        two.stop_reason,
    )
    for name in ("codes", "token_probs", "confidence", "span_confidence", "entropy"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()
    for name in ("counts", "truth"):
        a, b = getattr(one.memory.sums, name), getattr(two.memory.sums, name)
        assert a.tobytes() == b.tobytes()
