"""Spans of a whole corpus at once: one gather in the pair table, no loop over tokens.

All functions take codes as int16 [n_tokens], or [n_tokens, n_workers] with one column per worker,
-1 where a token has no label. A token without a label is a boundary: no span reaches over it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import Fault, FaultsError, InputError, SpanError, UnknownNameError
from goldspan.spans.codec import Codec, Tagged
from goldspan.spans.encoding import (
    BAD_OPEN,
    ENDED,
    FAULT_KINDS,
    FAULTS,
    LINKED,
    NOT_CLOSED,
    STARTS,
    TYPE_CHANGE,
    Role,
)

Policy = Literal["conlleval", "strict", "boundaries", "raise"]
POLICIES: tuple[str, ...] = get_args(Policy)
_AT_LAST = ENDED | NOT_CLOSED
_BLOCK = 1 << 16


def check_policy(policy: str) -> str:
    """Return the policy if there is one of that name."""
    if policy not in POLICIES:
        raise UnknownNameError("policy", policy, POLICIES)
    return policy


@dataclass(frozen=True, eq=False)
class SpanArray:
    """Spans of a corpus as parallel arrays [n_spans], sorted by worker, then by place."""

    start: NDArray[np.int64]  # First token, counted through the whole corpus
    end: NDArray[np.int64]  # One past the last token
    type: NDArray[np.int16]  # Index into `Codec.types`
    item: NDArray[np.int32]  # The item that the span is in
    worker: NDArray[np.int32]  # The column; 0 for one-dimensional codes

    def __len__(self) -> int:
        """Count the spans."""
        return len(self.start)

    def take(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> SpanArray:
        """Select spans by a mask or by their indices."""
        return SpanArray(*(getattr(self, one.name)[which] for one in fields(self)))


def token_flags(tagged: Tagged, codec: Codec) -> NDArray[np.uint8]:
    """Say for every token whether a span starts or ends there and which rule it breaks."""
    codes, offsets = _checked(tagged, codec)
    pairs = codec.pairs
    width = pairs.shape[0]
    # Row numbers of the pair table fit in uint8 for up to 15 tags and in uint16 for up to 255:
    # narrow indices make the gather twice as fast.
    narrow = np.uint8 if width <= 16 else np.uint16 if width <= 256 else np.int32
    states = np.empty(codes.shape, narrow)
    np.add(codes, 1, out=states, casting="unsafe")
    before = np.zeros_like(states)
    before[1:] = states[:-1]
    lengths = np.diff(offsets)
    first = offsets[:-1][lengths > 0]
    last = offsets[1:][lengths > 0] - 1
    before[first] = 0
    before *= narrow(width)
    before += states
    # Look up every index, in blocks: the indices, widened to 8 bytes, should stay in cache
    table = pairs.ravel()
    found = np.empty(before.size, np.uint8)
    flat = before.ravel()
    for start in range(0, before.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        np.take(table, flat[block], out=found[block], mode="clip")
    flags = found.reshape(before.shape)
    # What concerns the previous token moves there; at an item's first token these bits are 0,
    # because its predecessor is the boundary.
    back = flags & _AT_LAST
    flags ^= back
    flags[:-1] |= back[1:]
    flags[last] |= pairs[states[last], 0] & _AT_LAST
    return flags


def find_spans(tagged: Tagged, codec: Codec, policy: str = "conlleval") -> SpanArray:
    """Read all spans of a corpus.

    Args:
        tagged: Codes and offsets.
        codec: The tag set.
        policy: How malformed tags are read: "conlleval" (a new span on a change of type, at a
            begin or single tag, after an end or single tag or `O`), "strict" (only well-formed
            spans count), "boundaries" (begin and end tags decide, types inside are ignored;
            without an end tag a span is what conlleval reads from a begin tag on), "raise".

    Returns:
        The spans, by worker and place.

    Raises:
        FaultsError: With policy "raise", every fault of the corpus.
    """
    check_policy(policy)
    flags = token_flags(tagged, codec)
    if policy == "boundaries" and codec.rules.begin_always and not codec.rules.is_plain:
        return _runs(tagged, codec, flags)
    worker, start = _places(flags & STARTS)
    _, last = _places(flags & ENDED)
    kind = codec.type_of[_at(tagged.codes, start, worker)]
    spans = SpanArray(start, last + 1, kind, _items(start, tagged.offsets), worker)
    if policy == "raise":
        faults = find_errors(tagged, codec)
        if len(faults):
            raise FaultsError(faults.describe(tagged, codec))
    if policy == "strict":
        return spans.take(_well_formed(spans, flags, codec))
    return spans


@dataclass(frozen=True, eq=False)
class ErrorArray:
    """Faults of a corpus against the rules of its encoding, as parallel arrays [n_faults]."""

    position: NDArray[np.int64]  # The token at fault, counted through the whole corpus
    kind: NDArray[np.uint8]  # One bit of `FAULT_KINDS`
    worker: NDArray[np.int32]  # The column; 0 for one-dimensional codes

    def __len__(self) -> int:
        """Count the faults."""
        return len(self.position)

    def describe(self, tagged: Tagged, codec: Codec) -> list[Fault]:
        """Put every fault into words."""
        item = _items(self.position, tagged.offsets)
        columns = tagged.codes.ndim == 2
        out = []
        for place, bit, n, column in zip(self.position, self.kind, item, self.worker, strict=True):
            codes = tagged.codes[:, column] if columns else tagged.codes
            start, stop = tagged.offsets[n], tagged.offsets[n + 1]
            before = (
                codec.tags[codes[place - 1]] if place > start and codes[place - 1] >= 0 else None
            )
            after = (
                codec.tags[codes[place + 1]] if place + 1 < stop and codes[place + 1] >= 0 else None
            )
            kind = FAULT_KINDS[int(bit)]
            message = fault_message(kind, before, codec.tags[codes[place]], after, codec)
            worker = str(column) if columns else ""
            out.append(
                Fault(message, item=str(n), token=int(place - start), worker=worker, kind=kind)
            )
        return out


def find_errors(tagged: Tagged, codec: Codec) -> ErrorArray:
    """Find every place where a corpus breaks the rules of its encoding.

    One fault is told once: in IOBES, `B-X O` is one span that is not closed, and `B-X I-Y` is one
    change of type.
    """
    flags = token_flags(tagged, codec) & FAULTS
    worker, position = _places(flags)
    bits = _at(flags, position, worker)
    kinds = np.array(sorted(FAULT_KINDS), np.uint8)
    hit = (bits[:, None] & kinds[None, :]) > 0
    row, column = np.nonzero(hit)
    return ErrorArray(position[row], kinds[column], worker[row])


def fault_message(
    kind: str, before: str | None, current: str, after: str | None, codec: Codec
) -> str:
    """Return in a sentence what is wrong with a tag between its neighbours."""
    was = before or "the beginning"
    name = codec.encoding
    if kind == "no-begin":
        return f"{current} follows {was}: in {name} a span must open with its begin tag"
    if kind == "type-change":
        return f"{current} follows {was}: the type changes within a span"
    if kind == "not-closed":
        return f"{current} is followed by {after or 'the end'}: in {name} a span must be closed"
    return f"{current} follows {was}: in {name} B- is used only between touching spans of one type"


def write_codes(spans: SpanArray, offsets: NDArray[np.int64], codec: Codec) -> NDArray[np.int16]:
    """Write spans as codes; the inverse of `find_spans` on well-formed tags."""
    # offsets int64 [n_items + 1]
    # returns int16 [n_tokens]
    n_tokens = int(offsets[-1])
    order = np.argsort(spans.start, kind="stable")
    start, end, kind = spans.start[order], spans.end[order], spans.type[order]
    _check_spans(start, end, offsets, codec)
    # Whether a span of the same type, in the same item, ends where this one starts
    touches = np.zeros(len(start), np.bool_)
    touches[1:] = (start[1:] == end[:-1]) & (kind[1:] == kind[:-1])
    role = np.where(
        (touches & ~np.isin(start, offsets)) | codec.rules.begin_always, Role.BEGIN, Role.INSIDE
    )
    codes = np.full(n_tokens, codec.outside, np.int16)
    length = end - start
    inside = np.repeat(start - np.concatenate([[0], np.cumsum(length)[:-1]]), length)
    inside += np.arange(len(inside))
    codes[inside] = codec.code_of[Role.INSIDE, np.repeat(kind, length)]
    if codec.rules.has_end:
        codes[end - 1] = codec.code_of[Role.END, kind]
        role = np.where(length == 1, Role.SINGLE, role)
    if codec.rules.is_plain:
        role = np.full_like(role, Role.SINGLE)
    codes[start] = codec.code_of[role, kind]
    if (codes < 0).any():
        place = int(np.flatnonzero(codes < 0)[0])
        raise SpanError(f"the tag set has no tag for token {place}: pass a complete tag set")
    return codes


def _checked(tagged: Tagged, codec: Codec) -> Tagged:
    codes, offsets = np.asarray(tagged.codes), np.asarray(tagged.offsets)
    if codes.ndim not in {1, 2} or not np.issubdtype(codes.dtype, np.integer):
        raise InputError(f"codes must be integers [tokens] or [tokens, workers], not {codes.shape}")
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(codes):
        raise InputError("offsets must run from 0 to the number of tokens")
    if (np.diff(offsets) < 0).any():
        raise InputError("offsets must not fall")
    if codes.size and (codes.min() < -1 or codes.max() >= len(codec.tags)):
        raise InputError(f"codes must lie in -1 … {len(codec.tags) - 1}, the codes of the tag set")
    if codes.itemsize == 1:  # the code after the last one must fit too
        codes = codes.astype(np.int16)
    return Tagged(codes, offsets)


def _places(flags: NDArray[np.integer]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Worker and token of everything that is not 0, sorted by worker and then by token."""
    # Searching booleans is four times as fast as searching bytes.
    hit = flags > 0
    if hit.ndim == 1:
        position = np.flatnonzero(hit)
        return np.zeros(len(position), np.int32), position
    worker, position = np.nonzero(hit.T)
    return worker.astype(np.int32), position


def _at(
    table: NDArray[np.generic], position: NDArray[np.int64], worker: NDArray[np.int32]
) -> NDArray[np.int16]:
    found = table[position] if table.ndim == 1 else table[position, worker]
    return np.asarray(found)


def _items(position: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """Item of every token; items without tokens are passed over."""
    n_items = len(offsets) - 1
    if 16 * len(position) < n_items:
        return (np.searchsorted(offsets, position, side="right") - 1).astype(np.int32)
    return np.repeat(np.arange(n_items, dtype=np.int32), np.diff(offsets))[position]


def _well_formed(spans: SpanArray, flags: NDArray[np.uint8], codec: Codec) -> NDArray[np.bool_]:
    opened = _at(flags, spans.start, spans.worker) & BAD_OPEN
    closed = _at(flags, spans.end - 1, spans.worker) & NOT_CLOSED
    good = np.asarray((opened == 0) & (closed == 0))
    if codec.rules.has_end:
        inner = np.flatnonzero(spans.end < len(flags))
        following = _at(flags, spans.end[inner], spans.worker[inner])
        good[inner[(following & TYPE_CHANGE) > 0]] = False
    return good


def _runs(tagged: Tagged, codec: Codec, flags: NDArray[np.uint8]) -> SpanArray:
    """Spans under the policy `boundaries`: runs of linked tags that open with a begin tag."""
    linked = flags & LINKED
    worker, start = _places((linked == 0).astype(np.uint8))
    end = np.empty_like(start)
    end[:-1] = start[1:]
    end[-1:] = len(flags)
    wraps = np.flatnonzero(worker[1:] != worker[:-1])
    end[wraps] = len(flags)
    first, last = _at(tagged.codes, start, worker), _at(tagged.codes, end - 1, worker)
    opens = (Role.BEGIN, Role.SINGLE)
    keep = (first >= 0) & np.isin(codec.roles[first], opens)
    if codec.rules.has_end:
        keep &= np.isin(codec.roles[last], (Role.END, Role.SINGLE))
    start, end, worker, first = start[keep], end[keep], worker[keep], first[keep]
    return SpanArray(start, end, codec.type_of[first], _items(start, tagged.offsets), worker)


def _check_spans(
    start: NDArray[np.int64], end: NDArray[np.int64], offsets: NDArray[np.int64], codec: Codec
) -> None:
    n_tokens = int(offsets[-1])
    faults = [(end <= start, "is empty"), ((start < 0) | (end > n_tokens), "is out of range")]
    overlap = np.zeros(len(start), np.bool_)
    overlap[1:] = start[1:] < end[:-1]
    faults.append((overlap, "overlaps the span before it"))
    inner = np.clip(start, 0, max(n_tokens - 1, 0))
    beyond = end > offsets[_items(inner, offsets) + 1] if n_tokens else np.ones_like(overlap)
    faults.append((beyond, "is out of range: it leaves its item"))
    if codec.rules.is_plain:
        faults.append((end - start != 1, "has more than one token: PLAIN labels single tokens"))
    for bad, why in faults:
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise SpanError(f"span [{start[i]}, {end[i]}) {why}")
    if codec.rules.is_plain and len(start) != n_tokens:
        raise SpanError(f"PLAIN labels every token: {len(start)} labels for {n_tokens} tokens")
