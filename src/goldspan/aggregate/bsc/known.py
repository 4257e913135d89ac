"""Known truth, made ready to be clamped: legal, or refused with the item's name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan._kernel import kernel
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.spans import Tagged, find_spans, write_codes


def legal_known(known: NDArray[np.int16], crowd: Crowd) -> tuple[NDArray[np.int16], int]:
    """Make known truth legal.

    Items of which every tag is known are read as conlleval reads them and written well-formed (an
    I that opens a span becomes B). Items of which some tags are known are left as they are.

    Args:
        known: int16 [n_tokens], -1 unknown.
        crowd: The items.

    Returns:
        The truth, and how many tags changed.

    Raises:
        InputError: No legal sequence agrees with what is known of an item.
    """
    codec = crowd.tagset
    if codec.rules.is_plain:
        return known, 0
    unknown = np.concatenate([[0], np.cumsum(known < 0)])
    whole = unknown[crowd.offsets[1:]] == unknown[crowd.offsets[:-1]]
    every = np.repeat(whole, np.diff(crowd.offsets))
    written = write_codes(find_spans(Tagged(known, crowd.offsets), codec), crowd.offsets, codec)
    found = np.where(every, written, known).astype(np.int16)
    bad = _first_without_path(crowd.offsets, found, codec.start_mask, codec.mask, codec.end_mask)
    if bad >= 0:
        tags = [*codec.tags, "?"]
        own = known[crowd.offsets[bad] : crowd.offsets[bad + 1]].tolist()
        raise InputError(
            f"item {crowd.item_ids[int(bad)].as_py()}: no well-formed {codec.encoding} sequence "
            f"agrees with its known tags {' '.join(tags[code] for code in own[:50])}"
        )
    return found, int(np.count_nonzero(found != known))


@kernel
def _first_without_path(  # noqa: C901 - one loop for Numba
    offsets: NDArray[np.int64], gold: NDArray[np.int16], start: NDArray[np.bool_],
    step: NDArray[np.bool_], end: NDArray[np.bool_],
) -> int:  # fmt: skip
    """Give the first item without any legal path through its known tags, -1 if all have one."""
    n_labels = len(start)
    now, new = np.empty(n_labels, np.bool_), np.empty(n_labels, np.bool_)
    for n in range(len(offsets) - 1):
        if offsets[n] == offsets[n + 1]:
            continue
        now[:] = start
        for t in range(offsets[n], offsets[n + 1]):
            if t > offsets[n]:
                for j in range(n_labels):
                    new[j] = False
                    for i in range(n_labels):
                        if now[i] and step[i, j]:
                            new[j] = True
                            break
                now[:] = new
            if gold[t] >= 0:
                for j in range(n_labels):
                    now[j] = now[j] and j == gold[t]
        ok = False
        for j in range(n_labels):
            ok = ok or (now[j] and end[j])
        if not ok:
            return n
    return -1
