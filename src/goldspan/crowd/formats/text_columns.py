"""The text of an item, and where its tokens are in it, in columns of tokens (CoNLL, wide, long).

A text stands on one line as a JSON string, which holds every character as it is; where cells can be
quoted (CSV) it stands as it is. Offsets are `start:end`, the token's first code point and one past
its last, `_` where they are not known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from goldspan.crowd.grid import cell_text
from goldspan.crowd.model import Crowd, ItemText, item_texts
from goldspan.errors import InputError
from goldspan.spans.text import token_bounds

TEXT, OFFSETS = "text", "offsets"
"""Names of the two columns."""
UNKNOWN = "_"

_OFFSETS = re.compile(r"(\d{1,9}):(\d{1,9})")
_LINE_ENDS = re.compile("[\x7f-\x9f\u2028\u2029]")


def has_texts(crowd: Crowd) -> bool:
    """Return whether the text of any item is known."""
    return crowd.texts is not None and crowd.texts.null_count < crowd.n_items


def texts_with_offsets(crowd: Crowd) -> Iterator[tuple[str | None, list[str]]]:
    """Return the text of every item, None where it is not known, and the cells of offsets."""
    texts = [None] * crowd.n_items if crowd.texts is None else crowd.texts.to_pylist()
    for whole, tokens, own in zip(texts, crowd.tokens_list, item_texts(crowd), strict=True):
        there = whole is not None and _shown_as_they_are(own, tokens)
        yield whole, [f"{a}:{b}" if there else UNKNOWN for a, b in own.bounds]


def json_text(text: str) -> str:
    r"""Write a text as a JSON string without anything that any reader takes for a line end.

    >>> json_text("to\tbe")
    '"to\\tbe"'
    """
    written = json.dumps(text, ensure_ascii=False)
    return _LINE_ENDS.sub(lambda char: f"\\u{ord(char[0]):04x}", written)


def read_json_text(value: str) -> str | None:
    """Read a JSON string; None for anything else, such as the plain text of CoNLL-U."""
    try:
        found = json.loads(value) if value.startswith('"') else None
    except ValueError:
        return None
    return found if isinstance(found, str) else None


def are_offsets(cells: Iterator[str]) -> bool:
    """Return whether cells hold offsets alone, and at least one."""
    found = (_OFFSETS.fullmatch(cell) for cell in cells if cell != UNKNOWN)
    first = next(found, None)
    return first is not None and all(found)


def read_offsets(cells: Sequence[str], text: str, tokens: Sequence[str]) -> list[int] | None:
    """Read where tokens begin; None where the cells do not say.

    >>> read_offsets(["0:2", "3:5"], "to be", ["to", "be"])
    [0, 3]
    """
    if all(cell == UNKNOWN for cell in cells):
        return None
    starts = []
    for cell, token in zip(cells, tokens, strict=True):
        match = _OFFSETS.fullmatch(cell)
        if match is None or text[int(match[1]) : int(match[2])] != token:
            message = f"offsets {cell!r} are not those of token {token!r} in the text"
            raise InputError(f"{message}: correct them, or leave text and offsets out")
        starts.append(int(match[1]))
    token_bounds(text, tokens, starts)
    return starts


def _shown_as_they_are(own: ItemText, tokens: Sequence[str]) -> bool:
    """Return whether the tokens are in the text as cells show them."""
    pairs = zip(tokens, own.bounds, strict=True)
    return own.is_own and all(
        own.value[a:b] == token == cell_text(token).strip(" ") for token, (a, b) in pairs
    )
