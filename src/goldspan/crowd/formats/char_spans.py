"""Spans of characters: texts cut into tokens, and what the offsets of spans count.

A text is cut as its file says, or by a rule of `goldspan.spans.tokenize` (`options.tokens`), and
then also where spans begin or end within a token (`cut_at`), so that spans of tokens say exactly
what was selected. Offsets count what `options.offsets` says: code points, UTF-16 units or bytes. A
span may carry the text that it covers; if the text reads otherwise in that place, the offsets count
something else or the text was changed afterwards, and the message says which unit would fit.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from unicodedata import category

from goldspan.crowd.formats.json_records import Record, shown
from goldspan.errors import InputError
from goldspan.spans import tokenize
from goldspan.spans.text import OFFSETS, locate, token_bounds

MAX_MESSAGE = 300
"""Characters of a message that quotes the input."""

SPAN_KEYS = (
    ("type", "label", "tag", "annotation", "entity", "entityLabel", "displayName", "className",
     "name"),
    ("start", "start_offset", "startOffset", "begin", "offset", "startIdx", "from"),
    ("end", "end_offset", "endOffset", "finish", "stop", "endIdx", "to"),
)  # fmt: skip
"""How tools call the type, the start and the end of a span."""

_CODECS = {"utf16": ("utf-16-le", 2), "utf8": ("utf-8", 1)}


class CharSpan(NamedTuple):
    """A span of characters: as a file has it, perhaps with what it covers, or in code points."""

    type: str
    start: int
    end: int
    covers: str | None = None

    def __str__(self) -> str:
        """Return type and offsets, for messages."""
        return f"span {self.type[:60]} [{self.start}, {self.end})"


class Cut(NamedTuple):
    """How a text is cut into tokens."""

    tokens: list[str]
    text: str | None  # What they were cut from; None if the file has only tokens
    # First character of every token in the text and one past its last
    bounds: list[tuple[int, int]]
    keep_text: str | None  # The text, if it says more than the tokens
    starts: list[int] | None  # First characters, if they are worth keeping
    is_given: bool = True  # Whether the file says how the text is cut


def cut_text(
    record: Record,
    text: str | None,
    tokens: Sequence[str] | None = None,
    starts: Sequence[int] | None = None,
    *,
    rule: str = "fine",
) -> Cut:
    """Cut a text into tokens: those given, else by a rule of `goldspan.spans.tokenize`."""
    # A text that is nothing but the given tokens with blanks between is not kept
    if tokens is None:
        text = str(record.required(text, "text"))
        bounds = tokenize(text, rule)
        if not bounds:
            raise record.error("the text has no token: leave the item out", "empty-text")
        return _cut_into(text, bounds, is_given=False)
    listed = list(tokens)
    if not listed:
        raise record.error("an item without tokens: leave it out", "no-tokens")
    check_starts(record, listed, starts)
    if text is None:
        return Cut(listed, None, [], None, None)
    try:
        bounds = locate(text, listed) if starts is None else token_bounds(text, listed, starts)
    except InputError as error:
        raise record.error(str(error)[:MAX_MESSAGE], "tokens") from None
    if starts is not None:
        return Cut(listed, text, bounds, text, list(starts))
    return Cut(listed, text, bounds, None if text == " ".join(listed) else text, None)


def check_starts(record: Record, tokens: Sequence[str], starts: Sequence[Any] | None) -> None:
    """Reject places of tokens that are no numbers, or not as many as the tokens."""
    wrong = [n for n in starts or () if type(n) is not int or not 0 <= n < 2**31]
    if starts is not None and (wrong or len(starts) != len(tokens)):
        seen = shown(wrong[0]) if wrong else f"{len(starts)} numbers"
        message = f"token_start must be {len(tokens)} whole numbers, one per token, not {seen}"
        raise record.error(message)


def _cut_into(text: str, bounds: list[tuple[int, int]], *, is_given: bool) -> Cut:
    tokens, starts = [text[a:b] for a, b in bounds], [a for a, _ in bounds]
    return Cut(tokens, text, bounds, text, starts, is_given)


def cut_at(cut: Cut, places: Iterable[tuple[int, int]]) -> Cut:
    """Cut a text, which has to be known, also where spans begin and end."""
    text = cut.text or ""
    listed = set(places)
    firsts, lasts = {a for a, _ in listed}, {b for _, b in listed}
    missing = (firsts - {a for a, _ in cut.bounds}) | (lasts - {b for _, b in cut.bounds})
    if not missing:
        return cut
    pieces = list(cut.bounds)
    for a, b in _gaps(text, cut.bounds):
        if any(a <= place < b for place in firsts & missing) or any(
            a < place <= b for place in lasts & missing
        ):
            pieces.append((a, b))
    points = sorted(firsts | lasts)
    bounds = []
    for a, b in sorted(pieces):
        inner = points[bisect_right(points, a) : bisect_right(points, b - 1)]
        ends = [*inner, b]
        bounds += list(zip([a, *inner], ends, strict=True))
    return _cut_into(text, bounds, is_given=cut.is_given)


def _gaps(text: str, bounds: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Runs of characters that are neither white space nor part of a token."""
    place = 0
    for start, end in [*bounds, (len(text), len(text))]:
        while place < start:
            first = place
            while place < start and not text[place].isspace():
                place += 1
            if place > first:
                yield first, place
            place += 1
        place = end


def inside_character(text: str, place: int) -> tuple[int, int] | None:
    """Return the bounds of the character, as readers see it, that a place would cut in two.

    Such a character is an extended grapheme cluster: a letter with its combining marks, an emoji
    with its modifiers, a flag. Format characters that join it, such as a zero-width non-joiner, are
    not seen: a place before or after them cuts nothing.

    >>> inside_character("cafe\u0301!", 4), inside_character("cafe\u0301!", 5)
    ((3, 5), None)
    """
    if place <= 0 or place >= len(text) or (text[place].isascii() and text[place - 1].isascii()):
        return None
    import regex  # takes a while to import, and ASCII texts do without

    # A cluster does not reach over a line feed, nor over a space before it.
    start = max(text.rfind("\n", 0, place), text.rfind(" ", 0, place - 1), 0)
    for found in regex.compile(r"\X").finditer(text, start):
        a, b = found.span()
        if a < place < b:
            seen = [
                any(category(char) != "Cf" for char in part)
                for part in (text[a:place], text[place:b])
            ]
            return (a, b) if all(seen) else None
        if a >= place:
            break
    return None


def cut_fields(record: Record, text: str, *, single: bool = False, rule: str = "fine") -> Cut:
    """Cut a text by the fields `tokens` and `token_start`, if a tool has kept them."""
    tokens, starts = record.find("tokens"), record.find("token_start")
    if not (isinstance(tokens, list) and tokens and all(isinstance(t, str) and t for t in tokens)):
        return whole_text(text) if single else cut_text(record, text, rule=rule)
    if not (isinstance(starts, list) and all(type(n) is int and 0 <= n < 2**31 for n in starts)):
        starts = None
    return cut_text(record, text, tokens, starts)


def whole_text(text: str) -> Cut:
    """Take a text as one token: an item that gets a single label."""
    return Cut([text], text, [(0, len(text))], None, None)


def char_span(
    record: Record, kind: object, start: object, end: object, covers: Any = None
) -> CharSpan:
    """Make a span of three values, whatever they are."""
    if not isinstance(kind, str) or not kind:
        raise record.error(f"a span has {shown(kind)} for its type: it must be a name", "span")
    for what, offset in (("start", start), ("end", end)):
        if type(offset) is not int or offset < 0:
            message = f"{what} must be a whole number from 0 on, not {shown(offset)}"
            raise record.error(f"span {kind[:60]}: {message}", "span")
    assert type(start) is int
    assert type(end) is int
    return CharSpan(kind, start, end, covers if isinstance(covers, str) else None)


def is_span(value: object) -> bool:
    """Return whether a value may be a span, see `read_span`."""
    if isinstance(value, list):
        return [type(one) for one in value[:3]] in ([int, int, str], [str, int, int])
    return isinstance(value, CharSpan) or (
        isinstance(value, dict) and any(key in value for key in SPAN_KEYS[1])
    )


def read_span(record: Record, value: object) -> CharSpan:
    """Read a span: an object with type, start and end (or length), or a list that begins so."""
    if isinstance(value, list) and len(value) >= 3:
        typed_first = isinstance(value[0], str)
        kind, start, end = value[:3] if typed_first else (value[2], value[0], value[1])
        return char_span(record, kind, start, end)
    if isinstance(value, dict):
        kind, start, end = value.get("type"), value.get("start"), value.get("end")
        if type(kind) is str and kind and type(start) is type(end) is int and min(start, end) >= 0:
            covers = value.get("text")  # as nearly all are
            return CharSpan(kind, start, end, covers if isinstance(covers, str) else None)
        one = record.inner(value, "a span")
        kind = one.required(one.find(*SPAN_KEYS[0]), "type", "label")
        start = one.required(one.find(*SPAN_KEYS[1]), "start")
        end, length = one.find(*SPAN_KEYS[2]), one.find("length")
        if end is None and type(start) is type(length) is int:
            end = start + length
        end = one.required(end, "end")
        return char_span(record, kind, start, end, one.find("text", "span"))
    message = f"a span must be an object, or a list of start, end and type, not {shown(value)}"
    raise record.error(message, "span")


def covered(text: str, start: int, end: int, offsets: str) -> str:
    """Return the text between two offsets."""
    if offsets not in _CODECS:
        return text[start:end]
    codec, width = _CODECS[offsets]
    return text.encode(codec, "surrogatepass")[width * start : width * end].decode(codec, "replace")


def code_point(text: str, offset: int, offsets: str) -> int | None:
    """Return the code point at an offset; None outside the text or within a character."""
    if offsets not in _CODECS:
        return offset if offset <= len(text) else None
    codec, width = _CODECS[offsets]
    data = text.encode(codec, "surrogatepass")
    try:
        return len(data[: width * offset].decode(codec)) if width * offset <= len(data) else None
    except UnicodeDecodeError:
        return None


def cuts_word(text: str, span: CharSpan, offsets: str) -> bool:
    """Return whether a span has an end within a word, or no place at all."""
    places = [code_point(text, place, offsets) for place in span[1:3]]
    # A slice of two letters or digits
    return any(p is None or (p > 0 and len(text[p - 1 : p + 1]) == 2
                             and text[p - 1 : p + 1].isalnum()) for p in places)  # fmt: skip


def reads_otherwise(text: str, span: CharSpan, offsets: str) -> str:
    """Return how the text differs from what a span says it covers; "" if it does not."""
    # White space does not count, because tools change it
    if span.covers is None:
        return ""
    seen = covered(text, span.start, span.end, offsets)
    if same_words(seen, span.covers):
        return ""
    message = f"{span} covers {shown(seen)} in the text, but its own text is {shown(span.covers)}"
    return message + unit_hint(text, span, offsets)


def unit_hint(text: str, span: CharSpan, offsets: str) -> str:
    """Name the kind of offsets under which a span covers what it says, or at least whole words."""
    here = [code_point(text, place, offsets) for place in span[1:3]]
    if span.covers is None and None not in here:
        return ""
    for unit in OFFSETS:
        places = [code_point(text, place, unit) for place in span[1:3]]
        seen = covered(text, span.start, span.end, unit)
        fits = (
            not cuts_word(text, span, unit)
            if span.covers is None
            else same_words(seen, span.covers)
        )
        if places != here and fits:
            return f"; with offsets={unit!r} it fits: pass that (--offsets {unit})"
    return ""


def same_words(left: str, right: str) -> bool:
    """Return whether two texts differ only in white space and line ends."""
    return "".join(left.replace("\\n", " ").split()) == "".join(right.replace("\\n", " ").split())


def overlap_kind(span: CharSpan, other: CharSpan) -> str:
    """Name how two spans of one answer share characters, for the import report."""
    if span[1:3] == other[1:3]:
        return "span given twice" if span.type == other.type else "several labels of a span"
    inner = other.start <= span.start and span.end <= other.end
    outer = span.start <= other.start and other.end <= span.end
    return "nested span" if inner or outer else "overlapping span"


def split_overlaps(
    spans: Collection[CharSpan], rule: str = "longest"
) -> tuple[list[CharSpan], list[tuple[CharSpan, CharSpan]]]:
    """Choose among spans that overlap."""
    kept: list[CharSpan] = []
    dropped: list[tuple[CharSpan, CharSpan]] = []
    for group in _touching(spans):
        chosen: list[CharSpan] = []
        for span in sorted(group, key=_BY_RULE[rule]):
            other = next((k for k in chosen if k.start < span.end and span.start < k.end), None)
            if other is None:
                chosen.append(span)
            else:
                dropped.append((span, other))
        kept += sorted(chosen, key=lambda span: span.start)
    return kept, sorted(dropped, key=lambda pair: pair[0].start)


_BY_RULE: dict[str, Callable[[CharSpan], tuple[int, int]]] = {
    "longest": lambda span: (span.start - span.end, span.start),
    "outermost": lambda span: (span.start, span.start - span.end),
}


def _touching(spans: Collection[CharSpan]) -> Iterator[list[CharSpan]]:
    """Groups of spans that overlap, directly or by way of others, in order of place."""
    group: list[CharSpan] = []
    end = 0
    for span in sorted(spans, key=lambda span: span.start):
        if group and span.start >= end:
            yield group
            group = []
        end = max(end, span.end) if group else span.end
        group.append(span)
    if group:
        yield group
