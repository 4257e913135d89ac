"""The corpus of the span benchmarks: 1,000,000 tokens, 9 BIO tags, about 68,000 sentences."""

from __future__ import annotations

from functools import cache

import numpy as np

from goldspan.spans import Codec, Tagged
from simulated import MEAN_LENGTH, TYPES

N_TOKENS = 1_000_000


@cache
def corpus(noise: float = 0.0, seed: int = 0) -> tuple[Codec, Tagged, list[list[str]]]:
    """Make tags like those of news text: one token in six is in a span.

    Args:
        noise: Share of tokens whose tag is replaced by a random one.
        seed: Of everything; the sentences and the clean tags are the same for every noise.
    """
    rng = np.random.default_rng(seed)
    codec = Codec.from_types(TYPES)
    lengths = rng.poisson(MEAN_LENGTH - 3, 2 * N_TOKENS // 10) + 3
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    last = int(np.searchsorted(offsets, N_TOKENS))
    offsets = np.append(offsets[:last], N_TOKENS)
    codes = np.zeros(N_TOKENS, np.int16)
    starts = np.flatnonzero(rng.random(N_TOKENS) < 0.11)
    inside = rng.random(N_TOKENS) < 0.4
    kinds = rng.integers(len(TYPES), size=N_TOKENS)
    begin = codec.code_of[1]
    follow = codec.code_of[2]
    codes[starts] = begin[kinds[starts]]
    nxt = starts[(starts + 1 < N_TOKENS) & inside[starts]] + 1
    free = nxt[(codes[nxt] == 0) & ~np.isin(nxt, offsets)]
    codes[free] = follow[kinds[free - 1]]
    flips = rng.random(N_TOKENS) < noise
    codes[flips] = rng.integers(len(codec.tags), size=int(flips.sum()))
    tagged = Tagged(codes, offsets)
    return codec, tagged, codec.decode(tagged)
