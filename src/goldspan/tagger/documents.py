"""What a word's document says of it: how it is written elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def in_document(
    name: str,
    offsets: NDArray[np.int64],
    group: NDArray[np.int64] | None,
    words: Sequence[str],
    code: NDArray[Any],
) -> pa.Array:
    """Say how a token's word is written elsewhere in its document.

    `doc_title`: whether it is capitalised somewhere that does not begin an item; `doc_lower`:
    whether it is written in small letters; `doc_kinds` holds both.

    Args:
        name: One of the three.
        offsets: int64 [n_items + 1].
        group: int64 [n_items], document of every item; None: every item is one.
        words: The distinct words.
        code: int [n_tokens], index into them.
    """
    lower, number = np.unique([word.lower() for word in words] or [""], return_inverse=True)
    titled = np.array([word[:1].isupper() for word in words] or [False])
    small = np.array([word.islower() for word in words] or [False])
    n_items = len(offsets) - 1
    item = np.repeat(np.arange(n_items), np.diff(offsets))
    document = np.arange(n_items) if group is None else group
    begins = np.zeros(len(code) + 1, np.bool_)
    begins[offsets[:-1]] = True
    pair = document[item] * len(lower) + number[code]
    _, place = np.unique(pair, return_inverse=True)
    n_pairs = int(place.max(initial=-1)) + 1
    title = np.bincount(place, titled[code] & ~begins[:-1], n_pairs)[place] > 0
    lowered = np.bincount(place, small[code], n_pairs)[place] > 0
    if name == "doc_title":
        return pa.array(np.where(title, "1", "0")).cast(pa.large_string())
    if name == "doc_lower":
        return pa.array(np.where(lowered, "1", "0")).cast(pa.large_string())
    both = np.char.add(np.where(title, "t", "-"), np.where(lowered, "l", "-"))
    return pa.array(both).cast(pa.large_string())
