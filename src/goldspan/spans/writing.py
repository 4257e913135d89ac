"""Writing the spans of one sequence as tags, and rewriting tags (paper 004, section 4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any

from goldspan.errors import FaultsError, InputError, SpanError
from goldspan.spans.encoding import Encoding, Role, get_encoding
from goldspan.spans.reading import as_faults, listed, parse_with_errors
from goldspan.spans.span import Span


def write(
    spans: Iterable[Span | tuple[str, int, int]], length: int, encoding: str | Encoding = "BIO"
) -> list[str]:
    """Write spans as tags.

    Args:
        spans: Spans in any order; no span at all is fine.
        length: Number of tokens.
        encoding: The encoding to write.

    Raises:
        SpanError: A span is empty, out of range, or overlaps another.

    >>> write([Span("PER", 1, 3)], 4, "IOBES")
    ['O', 'B-PER', 'E-PER', 'O']
    """
    rules = get_encoding(encoding)
    ordered = _checked([Span(*span) for span in spans], length)
    if rules.is_plain:
        return _write_plain(ordered, length)
    letters = {role: letter for letter, role in rules.prefixes.items()}
    begin, inside = letters[Role.BEGIN], letters[Role.INSIDE]
    last, single = letters.get(Role.END, inside), letters.get(Role.SINGLE)
    tags = ["O"] * length
    before = Span("", -1, -1)
    for span in ordered:
        kind, start, end = span
        touches = start == before.end and kind == before.type
        first = begin if rules.begin_always or touches else inside
        if end - start == 1:
            tags[start] = f"{single or first}-{kind}"
        else:
            middle = [f"{inside}-{kind}"] * (end - start - 2)
            tags[start:end] = [f"{first}-{kind}", *middle, f"{last}-{kind}"]
        before = span
    return tags


def convert(tags: Sequence[str], source: str | Encoding, target: str | Encoding) -> list[str]:
    """Rewrite tags in another encoding.

    Raises:
        FaultsError: The tags are malformed; the exception holds every fault, because gold labels
            can be mended by people and should not be guessed (paper 004, section 4.2).
        InputError: One of the two is PLAIN, whose labels are no spans.

    >>> convert(["I-ORG", "I-ORG", "B-ORG"], "IOB", "BIO")
    ['B-ORG', 'I-ORG', 'B-ORG']
    """
    rules, wanted = get_encoding(source), get_encoding(target)
    if rules.is_plain != wanted.is_plain:
        raise InputError("PLAIN labels hold no spans: they cannot be converted to another encoding")
    tags = listed(tags)
    spans, errors = parse_with_errors(tags, rules)
    if errors:
        raise FaultsError(as_faults(errors))
    return write(spans, len(tags), wanted)


def _checked(spans: list[Span], length: int) -> list[Span]:
    """Sort spans and refuse those that cannot be written."""
    if length < 0:
        raise SpanError(f"a sequence cannot have {length} tokens")
    for kind, start, end in spans:
        if not isinstance(kind, str) or not kind:
            raise SpanError("a span has no type")
        edges: tuple[Any, ...] = (start, end)
        if not all(isinstance(edge, Integral) for edge in edges):
            raise SpanError("the start and the end of a span must be whole numbers")
        if end <= start:
            raise SpanError(f"span [{start}, {end}) is empty")
        if start < 0 or end > length:
            raise SpanError(f"span [{start}, {end}) is out of range: there are {length} tokens")
    ordered = sorted(spans, key=lambda span: span.start)
    for left, right in pairwise(ordered):
        if right.start < left.end:
            first, second = f"[{left.start}, {left.end})", f"[{right.start}, {right.end})"
            raise SpanError(f"span {second} overlaps span {first}")
    return ordered


def _write_plain(spans: list[Span], length: int) -> list[str]:
    if any(end - start != 1 for _, start, end in spans):
        raise SpanError("a span has more than one token: PLAIN labels single tokens")
    if len(spans) != length:
        raise SpanError(f"PLAIN labels every token: {len(spans)} labels for {length} tokens")
    return [span.type for span in spans]
