"""Who is asked about which item: the most promising items first, each its best worker per money.

A million items and ten thousand workers make too many pairs to look at. Workers are ranked by their
worth on a sample of the open items; every item then looks closely at the best of them only. One
item takes one worker, and nobody is asked twice about an item.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Crowd
from goldspan.hiring.redundancy.gain import Floats, Habits, item_gain, pair_gain, worth
from goldspan.hiring.redundancy.pool import Pool

CANDIDATES = 16
"""So many workers an item looks at closely; more if they may all have answered it."""
IDLE = 0.1
"""Who is worth less than this share of the mean worker tells next to nothing: not asked."""
_BLOCK = 4096
_FREE = 1e-9
"""What costs nothing counts as this part of a millionth, so that the better of two ranks first."""
_NO_GAIN = 1e-12
"""Added to every gain: where nothing is to be gained, the cheapest is still the best."""


@dataclass(frozen=True, eq=False)
class Match:
    """Items and the workers to ask about them.

    Attributes:
        item: int64 [n], in order of what they promise.
        worker: int64 [n], indices of the pool.
        gain: float64 [n], expected.
        nobody: bool [n_items], open items that everybody who tells something has answered.
    """

    item: NDArray[np.int64]
    worker: NDArray[np.int64]
    gain: Floats
    nobody: NDArray[np.bool_]


def match_workers(
    crowd: Crowd, probs: Floats, habits: Habits, pool: Pool, is_open: NDArray[np.bool_],
    *, n: int | None = None, random_state: int = 0,
) -> Match:  # fmt: skip
    """Choose for the most promising open items whom to ask.

    Args:
        crowd: Who answered what so far.
        probs: float64 [n_tokens, J], posteriors.
        habits: Of the workers; the mean one ranks the items.
        pool: Who can be asked.
        is_open: bool [n_items].
        n: Most items to ask about; all by default.
        random_state: Seed of the order among equals.
    """
    rng = np.random.default_rng(random_state)
    ranked = _ranked(habits, probs, crowd, pool, is_open, rng)
    by_item = crowd.by_item
    asked = pool.place[crowd.latest.worker[by_item.order]]
    useful = np.isin(asked, ranked)
    answered = np.bincount(crowd.latest.item[by_item.order][useful], minlength=crowd.n_items)
    nobody = is_open & (answered >= len(ranked))
    queue = _most_promising(probs, crowd.offsets, habits, is_open & ~nobody, rng)
    found = []
    left, wanted = pool.left.copy(), len(queue) if n is None else n
    while len(queue) and wanted > 0:
        available = ranked[left[ranked] > 0]
        candidates = available[: max(CANDIDATES, int(answered.max()) + 1)]
        block = queue[: min(_BLOCK, wanted)]
        state = (by_item.bounds, asked, left)
        chosen, gain = _choose(block, probs, crowd.offsets, pool, candidates, state)
        got = chosen >= 0
        found.append((block[got], candidates[chosen[got]], gain[got]))
        wanted -= int(got.sum())
        # Who found none of some candidates looks at the next ones; of all, there is none today.
        rest = block[~got] if len(candidates) < len(available) else block[:0]
        queue = np.concatenate([rest, queue[len(block) :]])
    none = np.zeros(0, np.int64)
    item, worker, gains = zip(*found, strict=True) if found else ((none,), (none,), (none,))
    chances = np.concatenate(gains).astype(np.float64)
    return Match(np.concatenate(item), np.concatenate(worker), chances, nobody)


def _most_promising(
    probs: Floats, offsets: NDArray[np.int64], habits: Habits, is_open: NDArray[np.bool_],
    rng: np.random.Generator,
) -> NDArray[np.int64]:  # fmt: skip
    """Sort the open items by what an answer of the mean worker would tell about them."""
    items = np.flatnonzero(is_open)
    # Rounded, so that what is equal but for the last bits is a tie, and the seed decides.
    gain = np.round(item_gain(probs, offsets, habits.mean)[items], 9)
    return np.asarray(items[np.lexsort((rng.random(len(items)), -gain))])


def _ranked(
    habits: Habits, probs: Floats, crowd: Crowd, pool: Pool, is_open: NDArray[np.bool_],
    rng: np.random.Generator,
) -> NDArray[np.int64]:  # fmt: skip
    """Sort the workers of the pool by worth per money; who tells next to nothing is left out."""
    tokens = np.flatnonzero(np.repeat(is_open, np.diff(crowd.offsets)))
    asked_about = probs[rng.permutation(tokens)] if len(tokens) else probs[:0]
    every = Habits(np.concatenate([pool.tables, habits.mean[None]]), habits.mean, habits.shares)
    found = worth(every, asked_about)
    own, mean = found[:-1], found[-1]
    value = _value(own, pool.prices)
    order = np.lexsort((rng.random(len(own)), -np.round(value / value.max(), 9)))
    return np.asarray(order[own[order] >= IDLE * mean])


def _choose(
    block: NDArray[np.int64], probs: Floats, offsets: NDArray[np.int64], pool: Pool,
    candidates: NDArray[np.int64],
    state: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
) -> tuple[NDArray[np.int64], Floats]:  # fmt: skip
    """Let a block of items choose; gives the places among the candidates, -1 nobody, and gains."""
    from goldspan.hiring.redundancy.kernels.matching import match

    chosen = np.full(len(block), -1, np.int64)
    if not len(candidates):
        return chosen, np.zeros(len(block))
    item, worker = np.repeat(block, len(candidates)), np.tile(candidates, len(block))
    gain = pair_gain(probs, offsets, pool.tables, item, worker).reshape(-1, len(candidates))
    prices = None if pool.prices is None else pool.prices[candidates]
    match(block, _value(gain, prices), candidates, *state, chosen)
    return chosen, gain[np.arange(len(block)), np.maximum(chosen, 0)]


def _value(gain: Floats, prices: NDArray[np.int64] | None) -> Floats:
    """Give gain per money."""
    if prices is None:
        return gain + _NO_GAIN
    return np.asarray((gain + _NO_GAIN) / np.maximum(prices, _FREE))
