"""Cutting a text into tokens: the smallest pieces that an annotator can select.

Rules, by name:

`fine`
    A token is a run of letters with their combining marks, a run of digits, or one extended
    grapheme cluster of anything else (Unicode Standard Annex 29). Letters of scripts that are
    written without spaces (Han, Kana, Bopomofo, Thai, Lao, Khmer, Burmese) and of Hangul are one
    cluster each. So every part of `Toyota's`, `Apple-Watch-Hülle`, `3M's`, `foo_bar` and
    `www.apple.com` can be selected.
`space`
    A token is what stands between white space.
`words`
    The rule of version 0.1: a run of letters and digits in which an apostrophe, a hyphen, a point
    or a comma between two of them stays. Campaigns and models that began with it keep it.

White space, control characters and invisible format characters belong to no token; they stay in the
text, between the tokens.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from goldspan.errors import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterator

_ASCII = re.compile(r"[A-Za-z]+|[0-9]+|[!-/:-@[-`{-~]")
_SPACE = re.compile(r"\S+")
_WITHOUT_SPACES = (
    "Han", "Hiragana", "Katakana", "Bopomofo", "Thai", "Lao", "Khmer", "Myanmar", "Hangul",
)  # fmt: skip


def tokenize(text: str, rule: str = "words") -> list[tuple[int, int]]:
    """Split a text into tokens.

    Args:
        text: The text.
        rule: "fine", "space" or "words"; see above.

    Returns:
        The bounds of every token in code points: first character, one past the last.

    Raises:
        UnknownNameError: There is no such rule.

    >>> text = "Ann's 1,000 km"
    >>> [text[a:b] for a, b in tokenize(text, "fine")]
    ['Ann', "'", 's', '1', ',', '000', 'km']
    >>> [text[a:b] for a, b in tokenize(text, "words")]
    ["Ann's", '1,000', 'km']
    """
    if rule not in RULES:
        raise UnknownNameError("rule for tokens", rule, RULES)
    return list(RULES[rule](text))


def _fine(text: str) -> Iterator[tuple[int, int]]:
    pattern: Any = _ASCII if text.isascii() else _fine_pattern()
    return (found.span() for found in pattern.finditer(text))


def _space(text: str) -> Iterator[tuple[int, int]]:
    return (found.span() for found in _SPACE.finditer(text))


@cache
def _fine_pattern() -> Any:
    r"""Compile the rule; `\X` is one extended grapheme cluster."""
    import regex  # takes a while to import, and ASCII texts do without

    alone = "".join(rf"\p{{scx={script}}}" for script in _WITHOUT_SPACES)
    letters = rf"(?:(?=[\p{{L}}--[{alone}]])\X)+"
    # A digit with a mark, such as the keycap 1️⃣, is a cluster of its own.
    digits = r"(?:(?=\p{Nd})\X(?<=\p{Nd}))+"
    # Signs such as U+0600 count as format characters, but are seen.
    other = r"(?![\s\p{Cc}[\p{Cf}--\p{GCB=Prepend}]])\X"
    return regex.compile(rf"{letters}|{digits}|{other}", regex.VERSION1)


def _words(text: str) -> Iterator[tuple[int, int]]:
    start, length = 0, len(text)
    while start < length:
        if text[start].isspace():
            start += 1
            continue
        end = start + 1
        if _is_word(text[start]) and not _stands_alone(text[start]):
            end = _word_end(text, end)
        else:
            while end < length and _combines(text[end - 1], text[end]):
                end += 1
        yield start, end
        start = end


def _is_word(char: str) -> bool:
    return char.isalnum() or unicodedata.category(char)[0] == "M" or char == "_"


def _stands_alone(char: str) -> bool:
    """Whether a letter is an ideograph or kana, which white space does not separate."""
    code = ord(char)
    return (
        0x3040 <= code <= 0x30FF
        or 0x3400 <= code <= 0x9FFF
        or 0xF900 <= code <= 0xFAFF
        or (0x20000 <= code <= 0x323AF)
    )


def _word_end(text: str, end: int) -> int:
    while end < len(text):
        char = text[end]
        if _is_word(char) and not _stands_alone(char):
            end += 1
            continue
        after = text[end + 1] if end + 1 < len(text) else " "
        joins = char in "'’-.,\u200d" and _is_word(after) and not _stands_alone(after)
        if joins and char in ".,":
            joins = (text[end - 1].isdigit() and after.isdigit()) or (
                char == "." and text[end - 1].isupper() and after.isupper()
            )
        if not joins:
            return end
        end += 2
    return end


def _combines(before: str, char: str) -> bool:
    """Whether a character belongs to the one before it: marks, joiners, emoji modifiers."""
    if unicodedata.category(char)[0] == "M" or char == "\u200d":
        return True
    if before == "\u200d":
        return not char.isspace()
    return 0x1F3FB <= ord(char) <= 0x1F3FF


RULES: dict[str, Callable[[str], Iterator[tuple[int, int]]]] = {
    "fine": _fine, "space": _space, "words": _words,
}  # fmt: skip
