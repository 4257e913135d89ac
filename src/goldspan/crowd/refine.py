"""Two crowds of the same texts, cut into tokens differently: both are cut where either one is.

Texts are cut where somebody's spans begin or end, so that answers and gold read from two files may
have other tokens. Every span stays what it was.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.crowd.gold import recode
from goldspan.crowd.model import Crowd, list_array
from goldspan.spans import Codec, Role


def with_same_tokens(left: Crowd, right: Crowd) -> tuple[Crowd, Crowd]:
    """Cut the tokens of two crowds alike where items of one id have one text and other tokens.

    Items whose texts or places of tokens are not known stay as they are.
    """
    if left.token_start is None or right.token_start is None:
        return left, right
    if left.texts is None or right.texts is None:
        return left, right
    place = {name: n for n, name in enumerate(right.item_ids.to_pylist())}
    mine: dict[int, list[int]] = {}
    theirs: dict[int, list[int]] = {}
    texts, others = left.texts.to_pylist(), right.texts.to_pylist()
    for n, name in enumerate(left.item_ids.to_pylist()):
        at = place.get(name)
        if at is None or texts[n] is None or texts[n] != others[at]:
            continue
        if left.tokens_list[n] != right.tokens_list[at]:
            points = _points(left, n) | _points(right, at)
            mine[n] = theirs[at] = sorted(points)
    return split_tokens(left, mine), split_tokens(right, theirs)


def split_tokens(crowd: Crowd, points: dict[int, list[int]]) -> Crowd:
    """Cut tokens of some items at places of their texts.

    Args:
        crowd: A crowd with texts and places of tokens.
        points: Code points by item, sorted; those that are not within a token cut nothing.
    """
    if not points or crowd.token_start is None:
        return crowd
    crowd = recode(crowd, _complete(crowd.tagset))
    assert crowd.token_start is not None
    starts = crowd.token_start.tolist()
    words = crowd.tokens.flatten().to_pylist()
    offsets = crowd.offsets.tolist()
    n_pieces = np.ones(crowd.n_tokens, np.int64)
    tokens: list[str] = []
    begins: list[int] = []
    for n in range(crowd.n_items):
        for t in range(offsets[n], offsets[n + 1]):
            a, word = starts[t], words[t]
            inner = [p for p in points.get(n, ()) if a < p < a + len(word)]
            bounds = [a, *inner, a + len(word)]
            n_pieces[t] = len(bounds) - 1
            tokens += [word[b - a : e - a] for b, e in pairwise(bounds)]
            begins += bounds[:-1]
    ends = np.concatenate([[0], np.cumsum(n_pieces)])
    answers = crowd.answers
    flat = np.repeat(crowd.offsets[answers.item] - answers.offset[:-1], answers.lengths)
    token_of = flat + np.arange(len(answers.codes))
    pieces = n_pieces[token_of]
    lengths = np.add.reduceat(pieces, answers.offset[:-1]) if len(answers) else pieces[:0]
    answers = replace(
        answers,
        codes=_spread(answers.codes, pieces, crowd.tagset),
        offset=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
    )
    gold = None if crowd.gold is None else _spread(crowd.gold, n_pieces, crowd.tagset)
    return replace(
        crowd,
        tokens=list_array(pa.array(tokens, pa.string()), ends[crowd.offsets]),
        token_start=np.array(begins, np.int32),
        answers=answers,
        gold=gold,
    )


def _points(crowd: Crowd, n: int) -> set[int]:
    """Where the tokens of an item begin and end."""
    assert crowd.token_start is not None
    first, last = crowd.offsets[n], crowd.offsets[n + 1]
    starts = crowd.token_start[first:last].tolist()
    ends = (a + len(word) for a, word in zip(starts, crowd.tokens_list[n], strict=True))
    return {*starts, *ends}


def _complete(codec: Codec) -> Codec:
    """Return all tags of the types of a tag set."""
    full = Codec.from_types(codec.types, codec.encoding)
    return full if set(codec.tags) <= set(full.tags) else codec


def _spread(
    codes: NDArray[np.int16], n_pieces: NDArray[np.int64], codec: Codec
) -> NDArray[np.int16]:
    """Return the pieces of tokens their tags."""
    found = np.repeat(codes, n_pieces)
    if codec.rules.is_plain or (n_pieces == 1).all():
        return found
    ends = np.cumsum(n_pieces)
    first, last = np.zeros(len(found), np.bool_), np.zeros(len(found), np.bool_)
    first[ends - n_pieces], last[ends - 1] = True, True
    roles = np.append(codec.roles, Role.OUTSIDE)[found]
    role = roles.copy()
    spans = (roles != Role.OUTSIDE) & (found >= 0)
    opens, closes = (np.isin(roles, pair) for pair in _OPEN_CLOSE)
    role[spans & ~(opens & first) & ~(closes & last)] = Role.INSIDE
    role[spans & opens & first & ~(closes & last)] = Role.BEGIN
    role[spans & closes & last & ~(opens & first)] = Role.END
    kinds = np.append(codec.type_of, -1)[found]
    found[spans] = codec.code_of[role[spans], kinds[spans]]
    return found


_OPEN_CLOSE = ((Role.BEGIN, Role.SINGLE), (Role.END, Role.SINGLE))
