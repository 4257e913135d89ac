"""How far pairs of workers agree beyond chance, with standard errors over blocks of items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan._draws import draws, keys_of
from goldspan.aggregation.kernels import count_agreements, list_pairs, scatter_of_blocks
from goldspan.crowd import Crowd

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BLOCK = 100
"""Tokens: longer items are cut into blocks of this size for standard errors."""
LEAST_BLOCKS = 5
"""Pairs with fewer blocks in common say nothing."""
MOST_RECORDS = 20_000_000
"""Pairs of answers to the same item that are looked at; of larger crowds some items do."""
MOST_LABELS = 64
"""Labels of which agreement by chance is reckoned: rarer ones hardly agree by chance."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of workers and how far they agree."""

    left: Ints  # int64 [n_pairs], the first worker
    right: Ints  # int64 [n_pairs], the second one
    agreement: Floats  # [n_pairs]
    blocks: Floats  # [n_pairs], blocks of tokens in common
    variance: Floats  # [n_pairs], of the agreement, times the blocks
    draw: Floats  # [n_pairs], random numbers of the workers' ids, which decide among equals

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.left)

    def take(self, which: NDArray[Any]) -> Pairs:
        """Return some of the pairs."""
        return Pairs(*(getattr(self, name)[which] for name in self.__dataclass_fields__))


def pair_agreements(crowd: Crowd, known: NDArray[np.int16] | None = None) -> Pairs:
    """Measure the agreement of all pairs of workers with enough in common.

    Spans count by their types, whether a token begins one or not.
    """
    # known int16 [n_tokens]
    answers, n_workers = crowd.latest, crowd.n_workers
    kinds = _kinds(crowd)
    codes = np.where(answers.codes < 0, -1, kinds[answers.codes])
    item, worker, offset = answers.item.astype(np.int64), answers.worker, answers.offset
    if known is not None:
        truth = np.where(known < 0, -1, kinds[known])
        codes = np.where(truth[crowd.token_of] < 0, -1, codes)
        codes = np.concatenate([codes, truth])
        item = np.concatenate([item, np.arange(crowd.n_items)])
        worker = np.concatenate([worker, np.full(crowd.n_items, n_workers)])
        offset = np.concatenate([offset, offset[-1] + crowd.offsets[1:]])
        n_workers += 1
    order = np.argsort(item, kind="stable")
    bounds = np.searchsorted(item[order], np.arange(crowd.n_items + 1))
    per_item, every = np.diff(bounds), np.arange(crowd.n_items)
    step = 1 + int((per_item * (per_item - 1.0)).sum() / 2) // MOST_RECORDS
    seen = np.argsort(draws(0, "item", keys_of(crowd.item_ids)))[::step] if step > 1 else every
    arrays = (order, bounds, np.sort(seen), worker.astype(np.int64), np.diff(crowd.offsets))
    n_records = int((per_item * (per_item - 1) // 2)[seen].sum())
    pair = np.empty(n_records, np.int64)
    both = np.empty((n_records, 2), np.int64)
    blocks = np.empty(n_records, np.int64)
    list_pairs(*arrays, n_workers, BLOCK, pair, both, blocks)
    names, number = _numbered(pair, blocks, n_workers)
    shape = (len(names), min(int(kinds.max(initial=0)) + 1, MOST_LABELS))
    counts, agreed = np.zeros((*shape, 2)), np.zeros((len(names), 2))
    count_agreements(number, both, offset, codes, counts, agreed)
    total = np.maximum(agreed[:, 1], 1)
    shares = counts / total[:, None, None]
    own = (shares**2).sum(axis=1)
    chance = (shares[:, :, 0] * shares[:, :, 1]).sum(axis=1)
    spread = 1 - own
    scale = np.sqrt(spread[:, 0] * spread[:, 1])
    usable = scale > 0
    agreement = np.divide(
        agreed[:, 0] / total - chance, scale, out=np.zeros(shape[0]), where=usable
    )
    sums = np.zeros((len(names), 2))
    scatter_of_blocks(
        number, both, offset, codes, BLOCK, shares, own, chance, np.where(usable, scale, 1.0),
        np.where(spread > 0, spread, 1.0), agreed[:, 0] / total, agreement, sums,
    )  # fmt: skip
    n = np.maximum(sums[:, 1], 2)
    variance = sums[:, 0] / total**2 * n * n / (n - 1)
    left, right = np.divmod(names, n_workers)
    keys = np.append(keys_of(crowd.worker_ids), np.uint64(0))  # the truth has no id
    low, high = np.minimum(keys[left], keys[right]), np.maximum(keys[left], keys[right])
    found = Pairs(left, right, agreement, sums[:, 1], variance, draws(0, "pair", low, high))
    return found.take(usable & (sums[:, 1] >= LEAST_BLOCKS))


def _kinds(crowd: Crowd) -> Ints:
    """Number what labels mean, the most frequent first: types of spans, or plain labels."""
    codec, given = crowd.tagset, crowd.latest.codes
    kinds = (
        np.arange(len(codec.tags)) if codec.rules.is_plain else codec.type_of.astype(np.int64) + 1
    )
    often = np.bincount(kinds[given[given >= 0]], minlength=int(kinds.max(initial=0)) + 1)
    rank = np.empty(len(often), np.int64)
    rank[np.argsort(-often, kind="stable")] = np.arange(len(often))
    return np.asarray(rank[kinds], np.int64)


def _numbered(pair: Ints, blocks: Ints, n_workers: int) -> tuple[Ints, Ints]:
    """Return the pairs with enough in common, and every record's index among them, -1 without."""
    if n_workers * n_workers <= max(4 * len(pair), 1 << 22):
        total = np.bincount(pair, blocks, n_workers * n_workers)
        names = np.flatnonzero(total >= LEAST_BLOCKS)
        place = np.full(len(total), -1)
        place[names] = np.arange(len(names))
        return names, place[pair]
    every, inverse = np.unique(pair, return_inverse=True)
    kept = np.bincount(inverse, blocks, len(every)) >= LEAST_BLOCKS
    place = np.where(kept, np.cumsum(kept) - 1, -1)
    return every[kept], place[inverse]
