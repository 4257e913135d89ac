"""Labels of tokens that an annotator has cut: a list of parts in place of the token's label.

A part is its first character within the token, and its label: with `["O", [[0, "B-FRUIT"], [5,
"O"]]]` the first five characters of the second token are a fruit.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from goldspan.errors import SpanError
from goldspan.spans.encoding import Encoding, PartSpan, Span
from goldspan.spans.parsing import parse_with_errors, write
from goldspan.spans.text import tokenize

Parts = Sequence[Any]
"""A label for every token, or a list of parts."""
Place = tuple[int, int]
"""A token, and a character in it."""
Cuts = Mapping[int, Collection[int]]
"""The places within tokens at which they are cut, by token."""


def cuts_of(labels: Iterable[Parts | None]) -> dict[int, set[int]]:
    """Return where tokens are cut in any of some answers to one item."""
    return cuts_at(place for one in labels for place in _flat(one or ())[1])


def check_cuts(spans: Iterable[PartSpan], words: Sequence[str]) -> None:
    """Raise a SpanError where a span begins or ends within a character."""
    for one in spans:
        for n, char in ((one.start, one.from_char), (one.end - 1, one.to_char)):
            word = words[n] if 0 <= n < len(words) else ""
            if word and char and char not in {a for a, _ in tokenize(word, "characters")}:
                raise SpanError(f"token {n} {word!r} cannot be cut at {char}")


def write_parts(
    spans: Iterable[PartSpan | Span], n_tokens: int, encoding: str | Encoding
) -> list[Any]:
    """Write spans as labels.

    Raises:
        SpanError: A span is empty, out of range, or overlaps another.
    """
    given = [PartSpan(*one) for one in spans]
    ends = [(one.end - 1, one.to_char or 0) for one in given]
    cuts = cuts_at([*((one.start, one.from_char) for one in given), *ends])
    begins = _begins(n_tokens, cuts)
    place = {begin: n for n, begin in enumerate([*begins, (n_tokens, 0)])}
    fine = []
    for kind, start, end, first, last in given:
        stop = (end - 1, last) if last else (end, 0)
        if (start, first) not in place or stop not in place:
            raise SpanError(f"span [{start}, {end}) is out of range: there are {n_tokens} tokens")
        fine.append(Span(kind, place[start, first], place[stop]))
    return nest(write(fine, len(begins), encoding), begins)


def nest(tags: Sequence[str | None], begins: Sequence[Place]) -> list[Any]:
    """Return labels of tokens from the tags of their parts and where these begin."""
    made: list[Any] = []
    for (n, char), tag in zip(begins, tags, strict=True):
        if n == len(made):
            made.append(tag)
        else:
            before = made[n] if isinstance(made[n], list) else [[0, made[n]]]
            made[n] = [*before, [char, tag]]
    return made


def places_in(starts: Sequence[int], fine: Iterable[int]) -> list[Place]:
    """Return of every part, by its first character in the text, the token and the place in it.

    >>> places_in([0, 4], [0, 4, 9])
    [(0, 0), (1, 0), (1, 5)]
    """
    found = [(bisect_right(starts, char) - 1, char) for char in fine]
    return [(n, char - starts[n]) for n, char in found]


def cuts_at(places: Iterable[Place]) -> dict[int, set[int]]:
    """Return the places that are within tokens."""
    found: dict[int, set[int]] = {}
    for n, char in places:
        if char:
            found.setdefault(n, set()).add(char)
    return found


def read_parts(labels: Parts, encoding: str | Encoding) -> list[PartSpan]:
    """Return the spans of labels; the inverse of `write_parts`."""
    tags, begins = _flat(labels)
    spans = parse_with_errors([tag or "O" for tag in tags], encoding)[0]
    return [part_span(span.type, begins[span.start], begins[span.end]) for span in spans]


def part_span(kind: str, first: Place, stop: Place) -> PartSpan:
    """Return the span from one place up to another."""
    if stop[1]:
        return PartSpan(kind, first[0], stop[0] + 1, *(first[1], stop[1]))
    return PartSpan(kind, first[0], stop[0], first[1])


def fit(labels: Parts, cuts: Cuts, encoding: str) -> list[str | None]:
    """Return a tag for every token and every part of it, where some are cut.

    A span that begins or ends where nothing is cut takes the whole part, unless that is taken.
    """
    tags, begins = _flat(labels)
    if not cuts and len(tags) == len(labels):
        return tags
    wanted = _begins(len(labels), cuts)
    spans: list[Span] = []
    for kind, a, b in parse_with_errors([tag or "O" for tag in tags], encoding)[0]:
        first, last = bisect_right(wanted, begins[a]) - 1, bisect_left(wanted, begins[b])
        if not spans or first >= spans[-1].end:
            spans.append(Span(kind, first, last))
    made = write(spans, len(wanted), encoding)
    return [None if labels[n] is None else tag for (n, _), tag in zip(wanted, made, strict=True)]


def _begins(n_tokens: int, cuts: Cuts) -> list[Place]:
    return [(n, char) for n in range(n_tokens) for char in (0, *sorted(cuts.get(n, ())))]


def _flat(labels: Parts) -> tuple[list[str | None], list[Place]]:
    """Return the tags of all parts, and where each begins, with the end."""
    tags, begins = [], []
    for n, label in enumerate(labels):
        for char, tag in label if isinstance(label, list) else [(0, label)]:
            tags.append(tag)
            begins.append((n, char))
    return tags, [*begins, (len(labels), 0)]
