"""Random numbers that belong to ids: the order of items and workers in the input does not matter.

A stream of random numbers gives the first item the first number, so that a file whose rows are
shuffled is judged by other hidden answers. Here a number is a function of a seed and of ids alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Keys = NDArray[np.uint64]

STEP = np.uint64(0x9E3779B97F4A7C15)
"""What SplitMix64 adds from one number to the next."""


def hash64(text: str) -> int:
    """Hash a string into 64 bits, the same in every process and on every machine."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def keys_of(ids: Sequence[str] | pa.Array) -> Keys:
    """Return the hash of every id, uint64 [n].

    >>> keys_of(["a", "b", "a"]).tolist()
    [3405396810240292928, 8453121595177857668, 3405396810240292928]
    """
    names = ids.to_pylist() if isinstance(ids, pa.Array) else ids
    return np.fromiter(map(hash64, names), np.uint64, count=len(names))


def draws(seed: object, purpose: str, *keys: Keys) -> NDArray[np.float64]:
    """Draw numbers from [0, 1), each a function of seed, purpose and its keys.

    >>> one = keys_of(["x", "y"])
    >>> both = draws(0, "pair", one, one[::-1])
    >>> bool((both == draws(0, "pair", one[::-1], one)[::-1]).all()), bool(both[0] == both[1])
    (True, False)
    """
    # keys uint64 [n] each, of ids; their order counts
    state = keys_of([f"{seed} {purpose}"])
    for key in keys:
        state = scattered((state ^ key) + STEP)
    return unit(state)


def scattered(keys: Keys) -> Keys:
    """Scatter every bit over all bits, one to one: the last step of SplitMix64.

    By Steele, Lea and Flood (2014).
    """
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(keys ^ (keys >> np.uint64(31)))


def unit(keys: Keys) -> NDArray[np.float64]:
    """Make numbers in [0, 1) of the upper 53 bits."""
    return np.asarray((keys >> np.uint64(11)) * 2.0**-53)
