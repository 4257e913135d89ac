"""What is known of tokens – a tag, some tags of which one is right, or nothing – as masks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError
from goldspan.spans import Codec

Known = str | Collection[str] | None
"""What is known of a token: its tag, some tags of which one is right, or nothing."""


def read_known(given: Any) -> list[list[Known]]:
    """Take what is known of every token of every item.

    Raises:
        InputError: An item is no list, or a token's entry is none of the three; it is named.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"expected a list of tag lists, one per item; got {given!r}")
    items = []
    for n, tags in enumerate(given):
        if isinstance(tags, str):
            raise InputError("expected a list of tag lists, one per item; got a string for an item")
        if not isinstance(tags, Iterable):
            raise InputError(f"item {n}: expected a list of tags, one per token; got {tags!r}")
        items.append(list(tags))
        for token, tag in enumerate(items[-1]):
            if not _is_known(tag):
                raise InputError(
                    f"item {n} token {token}: expected a tag, several tags of which one is right, "
                    f"or None; got {tag!r}"
                )
    return items


def _is_known(tag: Any) -> bool:
    if tag is None or isinstance(tag, str):
        return True
    return isinstance(tag, Collection) and all(isinstance(one, str) for one in tag)


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
