"""Random numbers by address: every number is a hash of what it is for, and of nothing else.

A number is a function of (seed, worker id, what it decides, item id, place of the token), mixed as
in SplitMix64 (Steele, Lea and Flood 2014). So an answer is the same on any number of threads, in
any order of the items and for any subset of them, and hashing a corpus is a few array operations
where a generator per item would be a loop in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from goldspan.tagger.features import hash64

Keys = NDArray[np.uint64]
Floats = NDArray[np.float64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def keys_of(names: Sequence[str]) -> Keys:
    """Give the key of every name, uint64 [n]."""
    return np.fromiter(map(hash64, names), np.uint64, count=len(names))


@dataclass(frozen=True, eq=False)
class Draws:
    """The random numbers of one worker on some items.

    Attributes:
        seed: Of the whole crowd.
        name: Whose numbers these are: the worker's id, and the part of the worker.
        item_keys: uint64 [n_items], from `keys_of`.
        offsets: int64 [n_items + 1], tokens of the items.
    """

    seed: int
    name: str
    item_keys: Keys
    offsets: NDArray[np.int64]

    def within(self, part: str) -> Draws:
        """Give the numbers of a part of the worker, independent of all others."""
        return replace(self, name=f"{self.name}\0{part}")

    def per_item(self, use: str) -> Floats:
        """Give a number in [0, 1) for every item, float64 [n_items]."""
        return _unit(_mix(self._keys(use) + _STEP))

    def per_token(self, use: str) -> Floats:
        """Give a number in [0, 1) for every token, float64 [n_tokens]."""
        lengths = np.diff(self.offsets)
        place = np.arange(self.offsets[-1]) - np.repeat(self.offsets[:-1], lengths)
        steps = (place + 2).astype(np.uint64) * _STEP  # step 1 is the item's own number
        return _unit(_mix(np.repeat(self._keys(use), lengths) + steps))

    def generator(self, use: str) -> np.random.Generator:
        """Give a generator for what concerns the worker and no single item."""
        text = f"{self.seed}\0{self.name}\0{use}"
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))

    def _keys(self, use: str) -> Keys:
        own = np.uint64(hash64(f"{self.seed}\0{self.name}\0{use}"))
        return _mix(self.item_keys ^ own)


def _mix(keys: Keys) -> Keys:
    """Scatter every bit over all bits: the finalizer of SplitMix64."""
    keys = (keys ^ (keys >> np.uint64(30))) * _FIRST
    keys = (keys ^ (keys >> np.uint64(27))) * _SECOND
    return np.asarray(keys ^ (keys >> np.uint64(31)))


def _unit(keys: Keys) -> Floats:
    """Make numbers in [0, 1) of the upper 53 bits."""
    return np.asarray((keys >> np.uint64(11)) * 2.0**-53)
