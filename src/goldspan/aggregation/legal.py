"""Legal tag sequences: winners of votes, label repair, and known truth that is clamped."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Annotated, Any, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._arrays import count_between, count_in_rows, rows_of
from goldspan.aggregation.consensus import Consensus
from goldspan.chains.decoding import best_paths_of_votes, first_without_path
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.params import OneOf
from goldspan.spans import Codec, Tagged, find_errors, find_spans
from goldspan.spans.corpus import write_codes
from goldspan.tagger.features import Text

# --------------------------------------------------------------------------------------------------
# The words of a crowd, as taggers read them.


def text_of(crowd: Crowd) -> Text:
    """Return the words of a crowd with their documents."""
    group = None
    if crowd.groups is not None:
        names = np.asarray(crowd.groups.to_pylist(), object).astype(str)
        group = np.unique(names, return_inverse=True)[1].astype(np.int64)
    words = crowd.tokens.flatten().cast(pa.large_string())
    return Text(words, crowd.offsets, group)


def has_words(crowd: Crowd) -> bool:
    """Return whether items have words; single labels may have none but the items' names."""
    words = crowd.tokens.flatten().cast(pa.string())
    return not (crowd.is_classification and words.equals(crowd.item_ids.cast(pa.string())))


def check_words(crowd: Crowd) -> None:
    """Reject a crowd of single labels without text, whose only words are the items' names."""
    if not has_words(crowd):
        raise InputError(
            "a CRF learns from words, and these single labels have none but their items' names: "
            "use ds, ibcc or mace"
        )


# --------------------------------------------------------------------------------------------------
# Who wins a vote: the label with most votes, ties by a rule, whole items made well-formed.


def is_legal(
    codes: NDArray[np.int16], offsets: NDArray[np.int64], codec: Codec
) -> NDArray[np.bool_]:
    """Return for every item whether its tags are well-formed, bool [n_items]."""
    bad = np.zeros(len(offsets) - 1, np.bool_)
    found = find_errors(Tagged(codes, offsets), codec)
    bad[np.searchsorted(offsets, found.position, side="right") - 1] = True
    return ~bad


Ties = Literal["first", "random", "outside", "inside"]
TIES: tuple[str, ...] = get_args(Ties)
TieRule = Annotated[str, OneOf(TIES)]


def winners(
    counts: NDArray[Any],  # Whole numbers [n_tokens, n_labels]; negative votes are allowed
    voted: NDArray[np.bool_],  # [n_tokens], whether a token has a vote at all; it is `O` otherwise
    crowd: Crowd,
    codec: Codec,
    rule: tuple[str, int | None],  # The tie rule and its seed
    *,
    legal: bool = True,  # Whether to make items well-formed
) -> NDArray[np.int16]:
    """Take the label with most votes at every token, then make items legal if asked to.

    Legal means: the legal sequence with most votes in all; ties by the rule, as for a token.
    """
    # returns int16 [n_tokens]
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
    """Rank the labels of every token by the tie rule, the largest first."""
    # returns int64 [n_tokens, n_labels] in 0 … n_labels - 1
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
    codes: NDArray[np.int16],  # [n_tokens], the present tags
    first: NDArray[Any],  # [n_tokens, n_labels], what counts first
    second: NDArray[Any],  # [n_tokens, n_labels], what decides among equals; not negative
    items: NDArray[np.int64],
    offsets: NDArray[np.int64],  # [n_items + 1]
    codec: Codec,
) -> NDArray[np.int16]:
    """Return some items the legal sequence with the largest sum of `first`, then of `second`."""
    if not len(items):
        return codes
    bounds, flat = rows_of(offsets, items)
    weight = np.int64(np.diff(bounds).max()) * np.int64(second.max(initial=0)) + 1
    scores = first[flat].astype(np.int64) * weight + second[flat]
    repaired = codes.copy()
    repaired[flat] = best_paths_of_votes(scores, bounds, codec)
    return repaired


def item_rng(seed: int | None, purpose: str, item_id: str) -> np.random.Generator:
    """Return a generator of an item's own, the same on every machine and in any order."""
    if seed is None:
        return np.random.default_rng()
    digest = hashlib.blake2b(f"{seed}\0{purpose}\0{item_id}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))


# --------------------------------------------------------------------------------------------------
# Known truth to be clamped: made legal, or rejected with the item's name.


def legal_known(known: NDArray[np.int16], crowd: Crowd) -> tuple[NDArray[np.int16], list[str]]:
    """Make known truth legal.

    Items of which every tag is known are read as conlleval reads them and written well-formed (an
    I that opens a span becomes B). Items of which some tags are known are left as they are.
    """
    # known int16 [n_tokens], -1 unknown
    codec = crowd.tagset
    if codec.rules.is_plain:
        return known, _notes(known, 0)
    whole = count_in_rows(known < 0, crowd.offsets) == 0
    every = np.repeat(whole, np.diff(crowd.offsets))
    written = write_codes(find_spans(Tagged(known, crowd.offsets), codec), crowd.offsets, codec)
    found = np.where(every, written, known).astype(np.int16)
    allowed = (found < 0)[:, None] | (found[:, None] == np.arange(len(codec.tags)))
    every = np.ones(crowd.n_items, np.bool_)
    masks = (codec.start_mask, codec.mask, codec.end_mask)
    bad = first_without_path(crowd.offsets, every, allowed, *masks)
    if bad >= 0:
        tags = [*codec.tags, "?"]
        own = known[crowd.offsets[bad] : crowd.offsets[bad + 1]].tolist()
        raise InputError(
            f"item {crowd.item_ids[int(bad)].as_py()}: no well-formed {codec.encoding} sequence "
            f"agrees with its known tags {' '.join(tags[code] for code in own[:50])}"
        )
    return found, _notes(found, int(np.count_nonzero(found != known)))


def _notes(known: NDArray[np.int16], changed: int) -> list[str]:
    notes = [f"{int((known >= 0).sum())} tokens of known truth"]
    return [*notes, f"{changed} known tags made well-formed"] if changed else notes


# --------------------------------------------------------------------------------------------------
# Known truth in the result of a vote: it is kept, and the labels around it stay well-formed.


def read_known(
    known: NDArray[np.int16] | None, crowd: Crowd, *, legal: bool
) -> tuple[NDArray[np.int16] | None, list[str]]:
    """Make known truth well-formed if asked to, and note how much of it there is."""
    if known is None or not (known >= 0).any():
        return None, []
    return legal_known(known, crowd) if legal else (known, _notes(known, 0))


def with_known(
    codes: NDArray[np.int16],  # [n_tokens], what was decided
    known: NDArray[np.int16],  # [n_tokens], -1 unknown
    votes: NDArray[Any],  # Whole numbers [n_tokens, n_labels]
    crowd: Crowd,
    *,
    legal: bool,  # Whether items shall be well-formed
) -> NDArray[np.int16]:
    """Put known labels in place, and repair items that are no longer well-formed.

    A repaired item keeps every known tag, then as many of the others as it can, then most votes.
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
    codes: NDArray[np.int16],  # [n_tokens]
    asked: NDArray[np.bool_],  # [n_items], whether anybody answered
    known: NDArray[np.int16] | None,  # [n_tokens], -1 unknown; or None
    crowd: Crowd,
) -> tuple[NDArray[np.int16], int]:
    """Open the items that nobody answered and of which nothing is known; also count them."""
    stays = asked if known is None else asked | (count_in_rows(known >= 0, crowd.offsets) > 0)
    kept = np.repeat(stays, np.diff(crowd.offsets))
    return np.where(kept, codes, np.int16(-1)), int((~stays).sum())


def sure_of(result: Consensus, known: NDArray[np.int16]) -> Consensus:
    """Return known labels, spans of known tokens, and items known as a whole a confidence of 1."""
    crowd, there = result.crowd, np.flatnonzero(known >= 0)
    probs = result.token_probs.copy()
    probs[there] = 0
    probs[there, known[there]] = 1
    spans = find_spans(Tagged(result.codes, crowd.offsets), crowd.tagset)
    inside = count_between(known < 0, spans.start, spans.end) == 0
    whole = count_in_rows(known < 0, crowd.offsets) == 0
    return replace(
        result,
        token_probs=probs,
        span_confidence=np.where(inside, np.float32(1), result.span_confidence),
        confidence=np.where(whole, np.float32(1), result.confidence),
    )
