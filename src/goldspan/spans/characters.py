"""Between characters and tokens: offsets, and spans that cut a token."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from goldspan.errors import Fault, FaultsError, InputError, UnknownNameError
from goldspan.spans.span import Span
from goldspan.spans.tokenization import tokenize

Cut = Literal["expand", "contract", "error"]
CUTS: tuple[str, ...] = ("expand", "contract", "error")
OFFSETS: tuple[str, ...] = ("codepoint", "utf16", "utf8")

CharSpan = tuple[str, int, int]
"""Type, first character, one past the last character."""


def locate(text: str, tokens: Sequence[str]) -> list[tuple[int, int]]:
    """Find tokens in their text, one after the other.

    Raises:
        InputError: A token does not come next in the text.

    >>> locate("to be", ["to", "be"])
    [(0, 2), (3, 5)]
    """
    bounds: list[tuple[int, int]] = []
    place = 0
    for n, token in enumerate(tokens):
        start = text.find(token, place)
        if start < 0 or text[place:start].strip():
            seen = text[place : place + 20].strip()
            raise InputError(
                f"token {n} {token!r} does not come next in the text, which has {seen!r}"
            )
        place = start + len(token)
        bounds.append((start, place))
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
        tokens: Token strings in order, or their character bounds; by default `tokenize(text)`.
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

    Raises:
        FaultsError: A span lies outside the tokens or is empty.

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
