"""Spans of characters: texts cut into tokens, and offsets turned into places of tokens.

A text is cut as its file says, or by `goldspan.spans.tokenize`. Offsets count what
`options.offsets`
says: code points, UTF-16 units or bytes. A span may carry the text that it covers; if the text
reads otherwise in that place, the offsets count something else or the text was changed afterwards,
and the message says which unit would fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from goldspan.crowd.formats.json_records import Record, shown
from goldspan.errors import InputError
from goldspan.spans import Span, locate, tokenize
from goldspan.spans.characters import OFFSETS

MAX_MESSAGE = 300
"""Characters of a message that quotes the input."""

_CODECS = {"utf16": ("utf-16-le", 2), "utf8": ("utf-8", 1)}


class CharSpan(NamedTuple):
    """A span as a file has it: two offsets, and perhaps what they cover."""

    type: str
    start: int
    end: int
    covers: str | None = None

    def __str__(self) -> str:
        """Give type and offsets, for messages."""
        return f"span {self.type[:60]} [{self.start}, {self.end})"


class Cut(NamedTuple):
    """How a text is cut into tokens.

    Attributes:
        tokens: The tokens.
        text: What they were cut from; None if the file has only tokens.
        bounds: First character of every token in the text and one past its last.
        keep_text: The text, if it says more than the tokens.
        starts: First characters, if they are worth keeping.
    """

    tokens: list[str]
    text: str | None
    bounds: list[tuple[int, int]]
    keep_text: str | None
    starts: list[int] | None


def cut_text(
    record: Record,
    text: str | None,
    tokens: Sequence[str] | None = None,
    starts: Sequence[int] | None = None,
) -> Cut:
    """Cut a text into tokens: those given, else those of goldspan's tokenizer.

    A text that is nothing but the given tokens with blanks between is not kept: tools that show
    text get it for crowds of which only the tokens are known.

    Args:
        record: Where the text stands, for messages.
        text: The text, None if there is none.
        tokens: The tokens, None if there are none.
        starts: First character of every token; searched in order where not given.

    Raises:
        FormatError: There is nothing to cut, or the tokens do not come from the text.
    """
    if tokens is None:
        text = str(record.required(text, "text"))
        bounds = tokenize(text)
        if not bounds:
            raise record.error("the text has no token: leave the item out", "empty-text")
        return Cut([text[a:b] for a, b in bounds], text, bounds, text, [a for a, _ in bounds])
    listed = list(tokens)
    if not listed:
        raise record.error("an item without tokens: leave it out", "no-tokens")
    if text is None:
        return Cut(listed, None, [], None, None)
    if starts is not None:
        return Cut(listed, text, _bounds_at(record, text, listed, starts), text, list(starts))
    try:
        bounds = locate(text, listed)
    except InputError as error:
        raise record.error(str(error)[:MAX_MESSAGE], "tokens") from None
    return Cut(listed, text, bounds, None if text == " ".join(listed) else text, None)


def cut_fields(record: Record, text: str, *, single: bool = False) -> Cut:
    """Cut a text by the fields `tokens` and `token_start`, if a tool has kept them.

    Args:
        record: What may have these fields.
        text: The text.
        single: Whether the item gets a single label; then it is one token if they are not there.

    Raises:
        FormatError: The tokens do not come from the text.
    """
    tokens, starts = record.find("tokens"), record.find("token_start")
    if not (isinstance(tokens, list) and tokens and all(isinstance(t, str) and t for t in tokens)):
        return whole_text(text) if single else cut_text(record, text)
    if not (isinstance(starts, list) and all(type(n) is int and 0 <= n < 2**31 for n in starts)):
        starts = None
    return cut_text(record, text, tokens, starts)


def whole_text(text: str) -> Cut:
    """Take a text as one token: an item that gets a single label."""
    return Cut([text], text, [(0, len(text))], None, None)


def token_bounds(text: str, tokens: Sequence[str], starts: Sequence[int]) -> list[tuple[int, int]]:
    """Give the bounds of tokens that begin at given places.

    Raises:
        InputError: The text reads otherwise there, or a token begins within the one before.

    >>> token_bounds("to be", ["to", "be"], [0, 3])
    [(0, 2), (3, 5)]
    """
    if len(starts) != len(tokens):
        raise InputError(f"{len(starts)} token starts for {len(tokens)} tokens")
    bounds = [(a, a + len(token)) for a, token in zip(starts, tokens, strict=True)]
    for n, (token, (a, b)) in enumerate(zip(tokens, bounds, strict=True)):
        if text[a:b] != token or a < 0:
            raise InputError(f"token {n} {token!r} is not what the text has at {a}: {text[a:b]!r}")
        if n and a < bounds[n - 1][1]:
            raise InputError(f"token {n} {token!r} begins within the one before it")
    return bounds


def char_span(
    record: Record, kind: object, start: object, end: object, covers: Any = None
) -> CharSpan:
    """Make a span of three values, whatever they are.

    Raises:
        FormatError: The type is no name, or an offset is no whole number from 0 on.
    """
    if not isinstance(kind, str) or not kind:
        raise record.error(f"a span has {shown(kind)} for its type: it must be a name", "span")
    for what, offset in (("start", start), ("end", end)):
        if type(offset) is not int or offset < 0:
            message = f"{what} must be a whole number from 0 on, not {shown(offset)}"
            raise record.error(f"span {kind[:60]}: {message}", "span")
    assert type(start) is int
    assert type(end) is int
    return CharSpan(kind, start, end, covers if isinstance(covers, str) else None)


def read_span(record: Record, value: object) -> CharSpan:
    """Read a span: an object with type, start and end, or a list of start, end and type.

    Raises:
        FormatError: It is neither.
    """
    if isinstance(value, list) and len(value) == 3:
        typed_first = isinstance(value[0], str)
        kind, start, end = value if typed_first else (value[2], value[0], value[1])
        return char_span(record, kind, start, end)
    if isinstance(value, dict):
        one = record.inner(value, "a span")
        kind = one.required(one.find("type", "label", "tag"), "type", "label")
        start = one.required(one.find("start", "start_offset"), "start")
        end = one.required(one.find("end", "end_offset"), "end")
        return char_span(record, kind, start, end, one.find("text"))
    message = f"a span must be an object, or a list of start, end and type, not {shown(value)}"
    raise record.error(message, "span")


def covered(text: str, start: int, end: int, offsets: str) -> str:
    """Give the text between two offsets.

    >>> covered("a😀b", 3, 4, "utf16")
    'b'
    """
    if offsets not in _CODECS:
        return text[start:end]
    codec, width = _CODECS[offsets]
    return text.encode(codec)[width * start : width * end].decode(codec, "replace")


def code_point(text: str, offset: int, offsets: str) -> int | None:
    """Give the code point at an offset; None if it lies outside the text or within a character.

    >>> code_point("a😀b", 3, "utf16")
    2
    """
    if offsets not in _CODECS:
        return offset if offset <= len(text) else None
    codec, width = _CODECS[offsets]
    data = text.encode(codec)
    try:
        return len(data[: width * offset].decode(codec)) if width * offset <= len(data) else None
    except UnicodeDecodeError:
        return None


def reads_otherwise(text: str, span: CharSpan, offsets: str) -> str:
    """Say how the text differs from what a span says it covers; "" if it does not.

    White space does not count, because tools change it.
    """
    if span.covers is None:
        return ""
    seen = covered(text, span.start, span.end, offsets)
    if same_words(seen, span.covers):
        return ""
    message = f"{span} covers {shown(seen)} in the text, but its own text is {shown(span.covers)}"
    return message + unit_hint(text, span, offsets)


def unit_hint(text: str, span: CharSpan, offsets: str) -> str:
    """Name the kinds of offsets under which a span would cover what it says."""
    if span.covers is None:
        return ""
    fits = [
        unit
        for unit in OFFSETS
        if unit != offsets and same_words(covered(text, span.start, span.end, unit), span.covers)
    ]
    return f"; with offsets={fits[0]!r} it fits: pass that" if fits else ""


def same_words(left: str, right: str) -> bool:
    """Say whether two texts are the same but for white space and for how line ends are written."""
    return "".join(left.replace("\\n", " ").split()) == "".join(right.replace("\\n", " ").split())


def split_overlaps(spans: Sequence[Span]) -> tuple[list[Span], list[tuple[Span, Span]]]:
    """Keep the longer of spans that overlap, of two that are as long the first.

    Returns:
        The spans that stay, in order of place, and the others, each with one that it overlaps.

    >>> split_overlaps([Span("LOC", 0, 1), Span("ORG", 0, 2)])[0]
    [Span(type='ORG', start=0, end=2)]
    """
    owner: dict[int, Span] = {}
    kept: list[Span] = []
    dropped: list[tuple[Span, Span]] = []
    for span in sorted(spans, key=lambda span: (span.start - span.end, span.start)):
        other = next((owner[token] for token in span.tokens if token in owner), None)
        if other is None:
            kept.append(span)
            owner.update(dict.fromkeys(span.tokens, span))
        else:
            dropped.append((span, other))
    kept.sort(key=lambda span: span.start)
    return kept, sorted(dropped, key=lambda pair: pair[0].start)


def _bounds_at(
    record: Record, text: str, tokens: Sequence[str], starts: Sequence[int]
) -> list[tuple[int, int]]:
    try:
        return token_bounds(text, tokens, starts)
    except InputError as error:
        raise record.error(str(error)[:MAX_MESSAGE], "tokens") from None
