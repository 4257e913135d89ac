"""Who wins a vote: the label with most votes, ties by a rule, whole items made well-formed."""

from __future__ import annotations

import hashlib
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregate.chain import best_legal, is_legal
from goldspan.crowd import Crowd
from goldspan.errors import InputError, UnknownNameError
from goldspan.spans import Codec

Ties = Literal["first", "random", "outside", "inside"]
TIES: tuple[str, ...] = get_args(Ties)


def check_choices(ties: Any, legal: Any, random_state: Any) -> None:
    """Refuse parameters of a vote that make no sense.

    Raises:
        InputError: One of them is wrong.
        UnknownNameError: There is no such tie rule.
    """
    if ties not in TIES:
        raise UnknownNameError("tie rule", ties, TIES)
    if not isinstance(legal, bool | np.bool_):
        raise InputError(f"legal must be True or False, not {legal!r}")
    if random_state is not None and not isinstance(random_state, int | np.integer):
        raise InputError(f"random_state must be a whole number or None, not {random_state!r}")


def winners(
    counts: NDArray[Any],
    voted: NDArray[np.bool_],
    crowd: Crowd,
    codec: Codec,
    rule: tuple[str, int | None],
    *,
    legal: bool = True,
) -> NDArray[np.int16]:
    """Take the label with most votes at every token, then make items legal if asked to.

    Legal means: the legal sequence with most votes in all; ties by the rule, as for a token.

    Args:
        counts: Whole numbers [n_tokens, n_labels]; negative votes are allowed.
        voted: bool [n_tokens], whether a token has a vote at all; it is `O` otherwise.
        crowd: The items.
        codec: The tags of the columns.
        rule: The tie rule and its seed.
        legal: Whether to make items well-formed.

    Returns:
        int16 [n_tokens].
    """
    order = preference(counts, crowd, codec, *rule)
    scores = counts * np.int64(order.max(initial=0) + 1) + order
    codes: NDArray[np.int16] = scores.argmax(axis=1).astype(np.int16)
    if codec.outside >= 0:
        codes[~voted] = codec.outside
    if not legal or codec.rules.is_plain:
        return codes
    bad = np.flatnonzero(~is_legal(codes, crowd.offsets, codec))
    return repair(codes, counts, order, bad, crowd.offsets, codec)


def preference(
    counts: NDArray[Any], crowd: Crowd, codec: Codec, ties: str, random_state: int | None
) -> NDArray[np.int64]:
    """Rank the labels of every token by the tie rule, the largest first.

    Returns:
        int64 [n_tokens, n_labels] in 0 … n_labels - 1.
    """
    n_labels = len(codec.tags)
    order = np.arange(n_labels - 1, -1, -1, dtype=np.int64)
    if ties == "inside" and codec.outside >= 0:
        order = np.where(np.arange(n_labels) == codec.outside, 0, order + 1)
    ranks = np.tile(order, (len(counts), 1))
    if ties == "random":
        most = counts.max(axis=1, keepdims=True)
        tied = np.flatnonzero((counts == most).sum(axis=1) > 1)
        items = np.unique(np.searchsorted(crowd.offsets, tied, side="right") - 1)
        for n in items.tolist():
            start, end = crowd.offsets[n], crowd.offsets[n + 1]
            rng = item_rng(random_state, "votes", crowd.item_ids[n].as_py())
            ranks[start:end] = rng.permuted(ranks[start:end], axis=1)
    return ranks


def repair(
    codes: NDArray[np.int16],
    first: NDArray[Any],
    second: NDArray[Any],
    items: NDArray[np.int64],
    offsets: NDArray[np.int64],
    codec: Codec,
) -> NDArray[np.int16]:
    """Give some items the legal sequence with the largest sum of `first`, then of `second`.

    Args:
        codes: int16 [n_tokens], what stands now.
        first: [n_tokens, n_labels], what counts first.
        second: [n_tokens, n_labels], what decides among equals; not negative.
        items: The items to mend.
        offsets: int64 [n_items + 1].
        codec: The tag set.
    """
    if not len(items):
        return codes
    lengths = np.diff(offsets)[items]
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    flat = np.repeat(offsets[items] - bounds[:-1], lengths) + np.arange(bounds[-1])
    weight = np.int64(lengths.max()) * np.int64(second.max(initial=0)) + 1
    scores = first[flat].astype(np.int64) * weight + second[flat]
    mended = codes.copy()
    mended[flat] = best_legal(scores, bounds, codec)
    return mended


def item_rng(seed: int | None, purpose: str, item_id: str) -> np.random.Generator:
    """Give a generator of an item's own, the same on every machine and for every order of items."""
    if seed is None:
        return np.random.default_rng()
    digest = hashlib.blake2b(f"{seed}\0{purpose}\0{item_id}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))
