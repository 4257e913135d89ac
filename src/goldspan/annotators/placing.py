"""Placing what was said into a text: characters, quotes and numbered tokens become spans of tokens.

What cannot be placed is returned in words, to be counted and listed; it is never guessed at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from goldspan.annotators.base import SoftSpan, without_overlaps
from goldspan.errors import InputError
from goldspan.protocols import PoolItem
from goldspan.spans import to_tokens
from goldspan.spans.text import locate

_SHOWN = 60


def with_text(item: PoolItem) -> PoolItem:
    """Return an item that has a text and the places of its tokens in it.

    >>> with_text(PoolItem("1", ("Ann", "sang"))).text
    'Ann sang'
    """
    if item.text is None:
        item = replace(item, text=" ".join(item.tokens), token_start=None)
    if item.token_start is not None:
        return item
    try:
        starts = tuple(start for start, _ in locate(item.text or "", item.tokens))
    except InputError:  # the tokens of a single label need not be in its text
        starts = None
    return replace(item, token_start=starts)


class Said(NamedTuple):
    """A span as it was said; what was not said is None.

    Attributes:
        label: Its type.
        quote: The words of the span.
        first: Number of its first token.
        last: Number of its last token.
        probability: How sure the annotator is.
    """

    label: str
    quote: str | None = None
    first: int | None = None
    last: int | None = None
    probability: float = 1.0


@dataclass
class Placed:
    """What was placed, and what could not be.

    Attributes:
        spans: Spans of tokens in order, none of which overlap.
        unplaced: The others, in words.
    """

    spans: list[SoftSpan] = field(default_factory=list)
    unplaced: list[str] = field(default_factory=list)

    def settle(self) -> Placed:
        """Return it without repeated spans, and with those that overlap among the unplaced."""
        best: dict[tuple[str, int, int], SoftSpan] = {}
        for span in self.spans:
            same = best.get(span[:3])
            if same is None or same.probability < span.probability:
                best[span[:3]] = span
        kept = without_overlaps(list(best.values()))
        gone = sorted({*best.values()} - {*kept}, key=lambda span: (span.start, span.end))
        words = [f"{one.type} at tokens {one.start}-{one.end - 1} overlaps another" for one in gone]
        return Placed(kept, [*self.unplaced, *words])


def place_characters(
    item: PoolItem, spans: Iterable[tuple[str, int, int, float]], names: Collection[str]
) -> Placed:
    """Place spans that were said in characters: type, start, end, probability.

    A span that cuts a token takes the whole of it.

    Args:
        item: The item.
        spans: What was said.
        names: The types that there are.

    >>> place_characters(PoolItem("1", ("Ann", "sang")), [("PER", 0, 2, 0.9)], ["PER"]).spans
    [SoftSpan(type='PER', start=0, end=1, probability=0.9)]
    """
    item, found = with_text(item), Placed()
    text, bounds = item.text or "", _bounds(item)
    for label, start, end, probability in spans:
        if label not in names:
            found.unplaced.append(_unknown(label, text[max(start, 0) : max(end, 0)]))
            continue
        try:
            (span,) = to_tokens(text, [(label, start, end)], tokens=bounds, cut="expand")
        except InputError as error:
            found.unplaced.append(str(error))
        else:
            found.spans.append(SoftSpan(*span, probability))
    return found.settle()


def place_said(item: PoolItem, said: Sequence[Said], names: Collection[str]) -> Placed:
    """Place spans that were said by the numbers of their tokens, by their words, or both.

    Where numbers and words disagree, the words decide if the text has them; of several places the
    one that is nearest to the numbers. Without numbers the nth mention of the same words is their
    nth place in the text. White space and, if need be, capitals are passed over.

    Args:
        item: The item.
        said: What was said, in its order.
        names: The types that there are.

    >>> item = PoolItem("1", ("Ann", "met", "Ann"))
    >>> place_said(item, [Said("PER", "Ann"), Said("PER", "ann"), Said("PER", "Bob")], ["PER"])
    ... # doctest: +NORMALIZE_WHITESPACE
    Placed(spans=[SoftSpan(type='PER', start=0, end=1, probability=1.0),
                  SoftSpan(type='PER', start=2, end=3, probability=1.0)],
           unplaced=["PER 'Bob' is not in the text"])
    """
    item, found, mentions = with_text(item), Placed(), Counter[str]()
    bounds = _bounds(item)
    for one in said:
        if one.label not in names:
            found.unplaced.append(_unknown(one.label, one.quote or ""))
            continue
        place = _place(item, bounds, one, mentions)
        if isinstance(place, str):
            found.unplaced.append(place)
        else:
            found.spans.append(SoftSpan(one.label, *place, one.probability))
    return found.settle()


def _place(
    item: PoolItem, bounds: Sequence[tuple[int, int]], said: Said, mentions: Counter[str]
) -> tuple[int, int] | str:
    """Return the first token and one past the last, or why there are none."""
    first, last, quote = said.first, said.last, said.quote
    numbers = None
    if first is not None and last is not None and 0 <= first <= last < len(item.tokens):
        numbers = (first, last + 1)
    if quote is None:
        return numbers or f"{said.label} at tokens {first}-{last}: there are {len(item.tokens)}"
    if numbers and _squeezed("".join(item.tokens[slice(*numbers)])) == _squeezed(quote):
        return numbers
    text = item.text or ""
    places = _places(text, bounds, quote)
    if not places:
        return f"{said.label} {quote!r:.{_SHOWN}} is not in the text"
    if first is not None:
        return min(places, key=lambda place: (abs(place[0] - first), place))
    key = f"{said.label}\0{_squeezed(quote)}"
    mentions[key] += 1
    if mentions[key] > len(places):
        times = f"{mentions[key]} times, and the text has it {len(places)} times"
        return f"{said.label} {quote!r:.{_SHOWN}} is said {times}"
    return places[mentions[key] - 1]


def _places(text: str, bounds: Sequence[tuple[int, int]], quote: str) -> list[tuple[int, int]]:
    """Return the places of some words in a text as tokens; words are not found within others."""
    words = [re.escape(word) for word in quote.split()]
    if not words:
        return []
    starts, ends = {a for a, _ in bounds}, {b for _, b in bounds}
    for flags in (0, re.IGNORECASE):
        found = []
        for match in re.finditer(r"\s*".join(words), text, flags):
            a, b = match.span()
            begins = a in starts or not _is_within(text, a)
            if begins and (b in ends or not _is_within(text, b)):
                touched = [n for n, (start, end) in enumerate(bounds) if start < b and end > a]
                found.append((touched[0], touched[-1] + 1))
        if found:
            return found
    return []


def _is_within(text: str, place: int) -> bool:
    """Whether a place in a text is between two letters or digits."""
    return 0 < place < len(text) and text[place - 1].isalnum() and text[place].isalnum()


def _bounds(item: PoolItem) -> list[tuple[int, int]]:
    starts = item.token_start or ()
    return [(a, a + len(token)) for a, token in zip(starts, item.tokens, strict=False)]


def _squeezed(words: str) -> str:
    return "".join(words.split()).casefold()


def _unknown(label: str, words: str) -> str:
    of = f" of {words!r:.{_SHOWN}}" if words else ""
    return f"{label!r:.{_SHOWN}}{of} is not a label of the task"
