"""The pair table: one byte for every two neighbouring tags, and everything follows from it.

V tags plus one boundary state give a (V+1) x (V+1) table of bits (MATH section 1). Row and column
0 are the boundary: before the first token, after the last, and a token that nobody labelled
(code -1); code v has row and column v + 1. So `table[previous + 1, current + 1]` holds, for codes
as they are stored, whether a span starts at the current token, whether one ended before it, and
which rule of the encoding the two tags break. The parser, the error list, the converter's check,
the transition mask and the scorer all read this table.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan.spans.encoding import Encoding, Role

STARTS = 1
ENDED = 2
NO_BEGIN = 4
TYPE_CHANGE = 8
NOT_CLOSED = 16
NEEDLESS_BEGIN = 32
LINKED = 64

BAD_OPEN = NO_BEGIN | TYPE_CHANGE | NEEDLESS_BEGIN
FAULTS = BAD_OPEN | NOT_CLOSED
"""The bits that are faults; a pair has at most one of them, so that no fault is told twice."""

FAULT_KINDS: dict[int, str] = {
    NO_BEGIN: "no-begin",
    TYPE_CHANGE: "type-change",
    NOT_CLOSED: "not-closed",
    NEEDLESS_BEGIN: "needless-begin",
}


def pair_table(
    roles: NDArray[np.int8], types: NDArray[np.int16], encoding: Encoding
) -> NDArray[np.uint8]:
    """Build the table of an encoding and a set of tags.

    Args:
        roles: int8 [V], the `Role` of every tag.
        types: int16 [V], the index of every tag's type; -1 for `O`.
        encoding: The encoding that the tags are written in.

    Returns:
        uint8 [V+1, V+1]: bits for (previous, current), 0 being the boundary. A span starts on a
        change of type, at a begin or single tag, and after an end or single tag or `O`: the
        reading of conlleval, without the Perl script's merging of `B E B E` and `S S`.
        `LINKED` says that two tags continue one span when only begin and end tags count (the
        `boundaries` policy).
    """
    role = np.concatenate([[Role.OUTSIDE], roles]).astype(np.int8)
    kind = np.concatenate([[-1], types]).astype(np.int16)
    before, now = role[:, None], role[None, :]
    same = kind[:, None] == kind[None, :]
    was_out, is_out = before == Role.OUTSIDE, now == Role.OUTSIDE

    opens = (now == Role.BEGIN) | (now == Role.SINGLE)
    closed = (before == Role.END) | (before == Role.SINGLE)
    starts = ~is_out & (was_out | ~same | opens | closed)
    ended = ~was_out & (is_out | starts)

    unfinished = (before == Role.BEGIN) | (before == Role.INSIDE)
    continues = (now == Role.INSIDE) | (now == Role.END)
    bad_open = starts & continues & encoding.begin_always
    type_change = bad_open & unfinished
    no_begin = bad_open & ~unfinished
    not_closed = ended & unfinished & ~type_change & encoding.has_end
    touching = ~was_out & same
    needless = (now == Role.BEGIN) & ~touching & (not encoding.begin_always)
    linked = unfinished & continues & (same | encoding.has_end)

    table = np.zeros(starts.shape, np.uint8)
    for bit, where in (
        (STARTS, starts),
        (ENDED, ended),
        (NO_BEGIN, no_begin),
        (TYPE_CHANGE, type_change),
        (NOT_CLOSED, not_closed),
        (NEEDLESS_BEGIN, needless),
        (LINKED, linked),
    ):
        table[where] |= bit
    table.flags.writeable = False
    return table
