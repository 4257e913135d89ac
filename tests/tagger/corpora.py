"""Small training sets: the example crowd's gold, and random ones."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from goldspan.crowd import read_crowd

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "crowd.tsv"


@cache
def example():
    """Words, tags and documents of the example's gold."""
    crowd = read_crowd(EXAMPLE)
    tags = crowd.tagset.decode(crowd.gold_tagged)
    return crowd.tokens_list, tags, crowd.groups.to_pylist()


def random_items(n_items, seed=0, vocabulary=30):
    """Words whose tags depend on the word and on the tag before."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n_items):
        words = rng.integers(vocabulary, size=rng.integers(1, 9))
        tags, before = [], "O"
        for word in words:
            kind = "AB"[word % 2]
            if rng.random() < 0.15 + 0.6 * (word < 8):
                tag = f"I-{kind}" if before.endswith(kind) and rng.random() < 0.7 else f"B-{kind}"
            else:
                tag = "O"
            tags.append(tag)
            before = tag
        X.append([f"w{word}" for word in words])
        y.append(tags)
    return X, y
