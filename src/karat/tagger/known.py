"""What is known of tokens – a tag, some tags of which one is right, or nothing – as masks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from karat.errors import InputError
from karat.spans import Codec

Known = str | Collection[str] | None
"""What is known of a token: its tag, some tags of which one is right, or nothing."""


def is_partial(items: Sequence[Sequence[Known]]) -> bool:
    """Say whether something is not known."""
    return any(not isinstance(tag, str) for tag in chain.from_iterable(items))


def is_unknown(item: Sequence[Known]) -> bool:
    """Say whether nothing is known of an item, which has tokens.

    >>> is_unknown([None, None]), is_unknown([None, "O"]), is_unknown([])
    (True, False, False)
    """
    return len(item) > 0 and all(tag is None for tag in item)


def named_tags(items: Sequence[Sequence[Known]]) -> Iterator[str]:
    """Give all tags that are named."""
    for known in chain.from_iterable(items):
        if isinstance(known, str):
            yield known
        elif known is not None:
            yield from known


def allowed_tags(items: Sequence[Sequence[Known]], codec: Codec) -> NDArray[np.bool_]:
    """Give the tags that tokens may have, bool [n_tokens, J].

    Raises:
        InputError: A tag is unknown, or a token has no tag left.
    """
    single = [[tag if isinstance(tag, str) else None for tag in item] for item in items]
    codes = codec.encode(single).codes
    allowed = np.ones((len(codes), len(codec.tags)), np.bool_)
    known = np.flatnonzero(codes >= 0)
    allowed[known] = False
    allowed[known, codes[known]] = True
    token = 0
    for item in items:
        for tag in item:
            if tag is not None and not isinstance(tag, str):
                own = codec.encode([list(tag)]).codes
                if not len(own):
                    raise InputError(f"token {token} may have no tag at all")
                allowed[token] = False
                allowed[token, own] = True
            token += 1
    return allowed
