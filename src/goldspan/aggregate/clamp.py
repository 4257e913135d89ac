"""Known truth in the result of a vote: it stands as it is, and what is around it still fits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregate.chain import is_legal
from goldspan.aggregate.consensus import Consensus
from goldspan.aggregate.winners import repair
from goldspan.crowd import Crowd
from goldspan.spans import Tagged, find_spans


def read_known(
    known: NDArray[np.int16] | None, crowd: Crowd, *, legal: bool
) -> tuple[NDArray[np.int16] | None, list[str]]:
    """Make known truth well-formed if asked to, and say how much of it there is.

    Raises:
        InputError: No legal sequence agrees with what is known of an item.
    """
    if known is None or not (known >= 0).any():
        return None, []
    from goldspan.aggregate.bsc.known import legal_known

    found, changed = legal_known(known, crowd) if legal else (known, 0)
    notes = [f"{int((found >= 0).sum())} tokens of known truth"]
    notes += [f"{changed} known tags made well-formed"] if changed else []
    return found, notes


def with_known(
    codes: NDArray[np.int16],
    known: NDArray[np.int16],
    votes: NDArray[Any],
    crowd: Crowd,
    *,
    legal: bool,
) -> NDArray[np.int16]:
    """Put known labels in place, and mend items that are no longer well-formed.

    A mended item keeps every known tag, then as many of the others as it can, then has most votes.

    Args:
        codes: int16 [n_tokens], what was decided.
        known: int16 [n_tokens], -1 unknown.
        votes: Whole numbers [n_tokens, n_labels].
        crowd: The items.
        legal: Whether items shall be well-formed.
    """
    codec, offsets = crowd.tagset, crowd.offsets
    found = np.where(known >= 0, known, codes).astype(np.int16)
    if not legal or codec.rules.is_plain:
        return found
    bad = np.flatnonzero(~is_legal(found, offsets, codec))
    kept = np.zeros(votes.shape, np.int64)
    most = int(np.diff(offsets).max()) + 1  # one known tag outweighs all others of an item
    kept[np.arange(len(found)), found] = np.where(known >= 0, most, 1)
    return repair(found, kept, votes - votes.min(initial=0), bad, offsets, codec)


def leave_open(
    codes: NDArray[np.int16],
    asked: NDArray[np.bool_],
    known: NDArray[np.int16] | None,
    crowd: Crowd,
) -> tuple[NDArray[np.int16], int]:
    """Open the items that nobody answered and of which nothing is known; also count them.

    Args:
        codes: int16 [n_tokens].
        asked: bool [n_items], whether anybody answered.
        known: int16 [n_tokens], -1 unknown; or None.
        crowd: The items.
    """
    stays = asked if known is None else asked | (tokens_known(known, crowd) > 0)
    kept = np.repeat(stays, np.diff(crowd.offsets))
    return np.where(kept, codes, np.int16(-1)), int((~stays).sum())


def sure_of(result: Consensus, known: NDArray[np.int16]) -> Consensus:
    """Give known labels, spans of known tokens, and items known as a whole a confidence of 1."""
    crowd, there = result.crowd, np.flatnonzero(known >= 0)
    probs = result.token_probs.copy()
    probs[there] = 0
    probs[there, known[there]] = 1
    spans = find_spans(Tagged(result.codes, crowd.offsets), crowd.tagset)
    before = np.concatenate([[0], np.cumsum(known >= 0)])
    inside = before[spans.end] - before[spans.start] == spans.end - spans.start
    whole = tokens_known(known, crowd) == np.diff(crowd.offsets)
    return replace(
        result,
        token_probs=probs,
        span_confidence=np.where(inside, np.float32(1), result.span_confidence),
        confidence=np.where(whole, np.float32(1), result.confidence),
    )


def tokens_known(known: NDArray[np.int16], crowd: Crowd) -> NDArray[np.int64]:
    """Count the known tokens of every item, int64 [n_items]."""
    before = np.concatenate([[0], np.cumsum(known >= 0)])
    return np.asarray(before[crowd.offsets[1:]] - before[crowd.offsets[:-1]])
