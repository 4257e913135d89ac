"""The best legal sequence of tags under additive scores (Viterbi), for many items at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan.spans import Codec

_NEVER = np.iinfo(np.int64).min // 4


def best_legal(
    scores: NDArray[np.int64], offsets: NDArray[np.int64], codec: Codec
) -> NDArray[np.int16]:
    """Find for every item the legal tag sequence with the largest sum of scores.

    Items are worked on together, step by step; those that are over drop out.

    Args:
        scores: int64 [n_tokens, n_labels].
        offsets: int64 [n_items + 1].
        codec: The tag set; its transition, start and end masks are hard.

    Returns:
        int16 [n_tokens]; among equal sums the lowest last tag, then the lowest before it.
    """
    n_labels = len(codec.tags)
    codes = np.zeros(len(scores), np.int16)
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    order = order[lengths[order] > 0]
    if not len(order):
        return codes
    begin, length = offsets[:-1][order], lengths[order]
    steps = int(length[0])
    forbidden = np.where(codec.mask, 0, _NEVER)
    best = np.where(codec.start_mask, scores[begin], _NEVER)
    back = np.zeros((steps, len(order), n_labels), np.int16)
    final = np.empty((len(order), n_labels), np.int64)
    n_active = len(order)
    for t in range(1, steps + 1):
        still = int(np.searchsorted(-length, -t, side="left"))
        final[still:n_active] = best[still:n_active]
        n_active = still
        if not n_active:
            break
        through = best[:n_active, :, None] + forbidden
        back[t, :n_active] = through.argmax(axis=1)
        best = np.maximum(through.max(axis=1), _NEVER) + scores[begin[:n_active] + t]
    tag = np.where(codec.end_mask, final, _NEVER).argmax(axis=1)
    for t in range(steps - 1, -1, -1):
        active = int(np.searchsorted(-length, -t, side="left"))
        codes[begin[:active] + t] = tag[:active]
        if t:
            tag[:active] = back[t, np.arange(active), tag[:active]]
    return codes


def is_legal(
    codes: NDArray[np.int16], offsets: NDArray[np.int64], codec: Codec
) -> NDArray[np.bool_]:
    """Say for every item whether its tags are well-formed, bool [n_items]."""
    from goldspan.spans import Tagged, find_errors

    bad = np.zeros(len(offsets) - 1, np.bool_)
    found = find_errors(Tagged(codes, offsets), codec)
    bad[np.searchsorted(offsets, found.position, side="right") - 1] = True
    return ~bad
