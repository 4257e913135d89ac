"""Texts: their tokens, and spans in characters and in tokens."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Literal

from goldspan.errors import Fault, FaultsError, InputError, UnknownNameError
from goldspan.spans.encoding import Span

# --------------------------------------------------------------------------------------------------
# Cutting a text into tokens: the smallest pieces that an annotator can select.


_ASCII = re.compile(r"[A-Za-z]+|[0-9]+|[!-/:-@[-`{-~]")
_SIGN = re.compile(r"[!-~]")
_SPACE = re.compile(r"\S+")
# A cluster that is seen. Signs such as U+0600 count as format characters, but are seen.
_SEEN = r"(?![\s\p{Cc}[\p{Cf}--\p{GCB=Prepend}]])\X"
_WITHOUT_SPACES = (
    "Han", "Hiragana", "Katakana", "Bopomofo", "Thai", "Lao", "Khmer", "Myanmar", "Hangul",
)  # fmt: skip


def tokenize(text: str, rule: str = "fine") -> list[tuple[int, int]]:
    """Split a text into tokens.

    Args:
        text: The text.
        rule: "fine", "space", "words" or "characters" (every grapheme cluster is a token).

    Returns:
        The bounds of every token in code points: first character, one past the last.

    Raises:
        UnknownNameError: There is no such rule.

    >>> text = "Ann's 1,000 km"
    >>> [text[a:b] for a, b in tokenize(text)]
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


def _characters(text: str) -> Iterator[tuple[int, int]]:
    pattern: Any = _SIGN if text.isascii() else _cluster_pattern()
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
    return regex.compile(rf"{letters}|{digits}|{_SEEN}", regex.VERSION1)


@cache
def _cluster_pattern() -> Any:
    import regex

    return regex.compile(_SEEN, regex.VERSION1)


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
    "fine": _fine, "space": _space, "words": _words, "characters": _characters,
}  # fmt: skip


# --------------------------------------------------------------------------------------------------
# Between characters and tokens: offsets, and spans that cut a token.


Cut = Literal["expand", "contract", "error"]
CUTS: tuple[str, ...] = ("expand", "contract", "error")
OFFSETS: tuple[str, ...] = ("codepoint", "utf16", "utf8")

CharSpan = tuple[str, int, int]
"""Type, first character, one past the last character."""


def locate(text: str, tokens: Sequence[str]) -> list[tuple[int, int]]:
    """Find tokens in their text, one after the other.

    Between tokens there may be what belongs to none: white space, control characters and invisible
    format characters.

    >>> locate("to be", ["to", "be"])
    [(0, 2), (3, 5)]
    """
    bounds: list[tuple[int, int]] = []
    place = 0
    for n, token in enumerate(tokens):
        start = text.find(token, place)
        if start < 0 or not _is_between(text[place:start]):
            seen = text[place : place + 20].strip()
            raise InputError(
                f"token {n} {token!r} does not come next in the text, which has {seen!r}"
            )
        place = start + len(token)
        bounds.append((start, place))
    return bounds


def token_bounds(text: str, tokens: Sequence[str], starts: Sequence[int]) -> list[tuple[int, int]]:
    """Return the bounds of tokens that begin at given places."""
    if len(starts) != len(tokens):
        raise InputError(f"{len(starts)} token starts for {len(tokens)} tokens")
    bounds = [(a, a + len(token)) for a, token in zip(starts, tokens, strict=True)]
    for n, (token, (a, b)) in enumerate(zip(tokens, bounds, strict=True)):
        if text[a:b] != token or a < 0:
            raise InputError(f"token {n} {token!r} is not what the text has at {a}: {text[a:b]!r}")
        if n and a < bounds[n - 1][1]:
            raise InputError(f"token {n} {token!r} begins within the one before it")
    return bounds


def to_tokens(
    text: str,
    spans: Iterable[CharSpan],
    *,
    tokens: Sequence[str] | Sequence[tuple[int, int]] | None = None,
    cut: str = "error",
    offsets: str = "codepoint",
) -> list[Span]:
    """Turn character spans into token spans.

    Args:
        text: The text.
        spans: (type, first character, one past the last character).
        tokens: Token strings in order, or their character bounds; by default those of
            `tokenize(text)`, which are fine.
        cut: What to do with a span that cuts a token: "expand" takes the whole token, "contract"
            leaves it out, "error" refuses. White space at the ends of a span cuts nothing.
        offsets: What the offsets count: "codepoint" (Python), "utf16" (JavaScript, Java) or
            "utf8" (bytes).

    Returns:
        Token spans in the order given.

    Raises:
        FaultsError: A span lies outside the text, covers no token, or cuts one; all are listed.

    >>> to_tokens("Ann Lee sang", [("PER", 0, 7)])
    [Span(type='PER', start=0, end=2)]
    """
    if cut not in CUTS:
        raise UnknownNameError("rule for cut tokens", cut, CUTS)
    bounds = _bounds(text, tokens)
    faults: list[Fault] = []
    found: list[Span] = []
    place = _code_points(text, offsets)
    for kind, first, stop in spans:
        a, b = place.get(first, -1), place.get(stop, -1)
        if not 0 <= a < b:
            message = (
                f"span {kind} [{first}, {stop}) is empty, outside the text or within a character"
            )
            faults.append(Fault(message, kind="out-of-range"))
            continue
        result = _cover(bounds, a, b, text, cut)
        if isinstance(result, str):
            faults.append(
                Fault(f"span {kind} [{first}, {stop}) {text[a:b]!r} {result}", kind="cut")
            )
        else:
            found.append(Span(kind, *result))
    if faults:
        raise FaultsError(faults)
    return found


def to_chars(
    text: str,
    spans: Iterable[Span | CharSpan],
    *,
    tokens: Sequence[str] | Sequence[tuple[int, int]] | None = None,
    offsets: str = "codepoint",
) -> list[CharSpan]:
    """Turn token spans into character spans; the inverse of `to_tokens`.

    >>> to_chars("Ann Lee sang", [Span("PER", 0, 2)])
    [('PER', 0, 7)]
    """
    bounds = _bounds(text, tokens)
    outward = {point: unit for unit, point in _code_points(text, offsets).items()}
    faults: list[Fault] = []
    found: list[CharSpan] = []
    for kind, start, end in spans:
        if not 0 <= start < end <= len(bounds):
            message = f"span {kind} [{start}, {end}) is empty or outside the {len(bounds)} tokens"
            faults.append(Fault(message, kind="out-of-range"))
        else:
            found.append((kind, outward[bounds[start][0]], outward[bounds[end - 1][1]]))
    if faults:
        raise FaultsError(faults)
    return found


def _bounds(
    text: str, tokens: Sequence[str] | Sequence[tuple[int, int]] | None
) -> Sequence[tuple[int, int]]:
    if tokens is None:
        return tokenize(text)
    strings = [token for token in tokens if isinstance(token, str)]
    if len(strings) == len(tokens):
        return locate(text, strings)
    bounds = [token for token in tokens if not isinstance(token, str)]
    if strings or any(not 0 <= start <= end <= len(text) for start, end in bounds):
        raise InputError("tokens must be strings, or bounds within the text; not a mixture")
    return bounds


def _is_between(gap: str) -> bool:
    """Return whether characters may stand between two tokens."""
    return not gap.strip() or all(
        char.isspace() or unicodedata.category(char) in {"Cc", "Cf"} for char in gap
    )


def _code_points(text: str, offsets: str) -> dict[int, int]:
    """Code point of every offset that lies between two characters."""
    if offsets not in OFFSETS:
        raise UnknownNameError("kind of offsets", offsets, OFFSETS)
    if offsets == "codepoint":
        return {i: i for i in range(len(text) + 1)}
    table, unit = {0: 0}, 0
    for i, char in enumerate(text, start=1):
        if offsets == "utf16":
            unit += 2 if ord(char) > 0xFFFF else 1
        else:
            unit += len(char.encode("utf-8", "surrogatepass"))
        table[unit] = i
    return table


def _cover(
    bounds: Sequence[tuple[int, int]], a: int, b: int, text: str, cut: str
) -> tuple[int, int] | str:
    """Tokens of the characters [a, b), or why there are none."""
    while a < b and text[a].isspace():
        a += 1
    while b > a and text[b - 1].isspace():
        b -= 1
    touched = [i for i, (s, e) in enumerate(bounds) if s < b and e > a]
    whole = [i for i in touched if bounds[i][0] >= a and bounds[i][1] <= b]
    if not touched:
        return "covers no token"
    if len(whole) < len(touched) and cut == "error":
        halved = next(i for i in touched if i not in whole)
        return (
            f"cuts token {halved} {text[slice(*bounds[halved])]!r}: pass cut='expand' or 'contract'"
        )
    kept = whole if cut == "contract" else touched
    return (kept[0], kept[-1] + 1) if kept else "holds no whole token"
