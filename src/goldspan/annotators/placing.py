"""Placing what was said into a text: characters, quotes and numbered tokens become spans of tokens.

What cannot be placed is returned in words, to be counted and listed; it is never guessed at. The
tokens that it may be about are not "O": nobody knows what was said of them.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, NamedTuple

from goldspan.annotators.base import ItemAnswer, SoftSpan, without_overlaps
from goldspan.crowd.questions import shown_span
from goldspan.errors import InputError
from goldspan.protocols import PoolItem
from goldspan.spans import to_tokens
from goldspan.spans.encoding import PartSpan
from goldspan.spans.text import locate

_SHOWN = 60


def with_text(item: PoolItem) -> PoolItem:
    """Return an item that has a text and the places of its tokens in it."""
    if item.text is None:
        item = replace(item, text=" ".join(item.tokens), token_start=None)
    if item.token_start is not None:
        return item
    try:
        starts = tuple(start for start, _ in locate(item.text or "", item.tokens))
    except InputError:  # the tokens of a single label need not be in its text
        starts = None
    return replace(item, token_start=starts)


class Quoted(NamedTuple):
    """A span as it was said; what was not said is None."""

    label: str
    quote: str | None = None
    first: int | None = None  # Number of its first token
    last: int | None = None  # Number of its last token
    probability: float = 1.0  # How sure the annotator is


@dataclass
class Placed:
    """What was placed, and what could not be."""

    # Spans of tokens in order, none of which overlap unless they may
    spans: list[SoftSpan] = field(default_factory=list)
    unplaced: list[str] = field(default_factory=list)  # The others, in words
    unsure: set[int] = field(default_factory=set)  # Tokens that those may be about

    def lose(self, words: str, tokens: Iterable[int]) -> None:
        """Note what has no place, and the tokens that it may be about."""
        self.unplaced.append(words)
        self.unsure.update(tokens)

    def settle(self, *, overlapping: bool) -> Placed:
        """Return it without repeated spans, and with those that must not overlap as unplaced."""
        best: dict[tuple[str, int, int], SoftSpan] = {}
        for span in self.spans:
            same = best.get(span[:3])
            if same is None or same.probability < span.probability:
                best[span[:3]] = span
        kept = [*best.values()] if overlapping else without_overlaps(list(best.values()))
        gone = sorted({*best.values()} - {*kept}, key=lambda span: (span.start, span.end))
        for one in gone:
            words = f"{one.type} at tokens {one.start}-{one.end - 1} overlaps another"
            self.lose(words, range(one.start, one.end))
        marked = {n for one in kept if one.probability >= 0.5 for n in range(one.start, one.end)}
        return Placed(kept, self.unplaced, self.unsure - marked)

    @property
    def is_lost(self) -> bool:
        """Whether something was said and nothing of it has a place: that is not "nothing here"."""
        return bool(self.unplaced) and not self.spans

    def answer(self, item: PoolItem) -> ItemAnswer:
        """Return the answer that it is."""
        unplaced = tuple(self.unplaced)
        if self.is_lost:
            return ItemAnswer(item.id, missing="none of its spans can be placed", unplaced=unplaced)
        unsure = tuple(sorted(self.unsure))
        return ItemAnswer(item.id, spans=tuple(self.spans), unplaced=unplaced, unsure=unsure)

    @property
    def likely(self) -> list[dict[str, Any]]:
        """The spans that are no less likely than not, as answers by layer have them."""
        return [shown_span(PartSpan(*one[:3])) for one in self.spans if one.probability >= 0.5]


def place_characters(
    item: PoolItem, spans: Iterable[tuple[str, int, int, float]], names: Collection[str], *,
    overlapping: bool = False,
) -> Placed:  # fmt: skip
    """Place spans that were said in characters: type, start, end, probability.

    A span that cuts a token takes the whole of it.
    """
    item, found = with_text(item), Placed()
    text, bounds = item.text or "", _bounds(item)
    for label, start, end, probability in spans:
        try:
            (span,) = to_tokens(text, [(label, start, end)], tokens=bounds, cut="expand")
        except InputError as error:
            found.lose(str(error), range(len(bounds)))
            continue
        if label in names:
            found.spans.append(SoftSpan(*span, probability))
        else:
            found.lose(_unknown(label, text[start:end]), range(span.start, span.end))
    return found.settle(overlapping=overlapping)


def place_quoted(
    item: PoolItem, said: Sequence[Quoted], names: Collection[str], *, overlapping: bool = False
) -> Placed:
    """Place spans that were said by the numbers of their tokens, by their words, or both.

    Where numbers and words disagree, the words decide if the text has them; of several places the
    one that is nearest to the numbers. Without numbers the nth mention of the same words is their
    nth place in the text that is not within other words that were said; where spans may overlap
    also within others, if there is no such place. White space and, if need be, capitals, the
    spelling of accents and typographic signs are passed over.
    """
    item, found = placeable(item), Placed()
    bounds, free = _bounds(item), _Free(len(item.tokens), overlapping=overlapping)
    places: dict[int, tuple[int, int] | str] = {}
    # Longer words first: "York" is then not looked for within the "New York" that was said too.
    for n in sorted(range(len(said)), key=lambda n: -len(_squeezed(said[n].quote or ""))):
        one = said[n]
        if one.label not in names:
            places[n] = _unknown(one.label, one.quote or "")
        else:
            places[n] = _place(item, bounds, one, free)
    for n, one in enumerate(said):
        place = places[n]
        if isinstance(place, str):
            found.lose(place, _about(item, one))
        else:
            found.spans.append(SoftSpan(one.label, *place, one.probability))
    return found.settle(overlapping=overlapping)


class _Free:
    """The tokens that no quote has taken, and how often the same words were said."""

    def __init__(self, n_tokens: int, *, overlapping: bool) -> None:
        self._taken, self.mentions = bytearray(n_tokens), Counter[tuple[str, str]]()
        self.overlapping = overlapping

    def take(self, places: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
        """Take the first of some places that is free."""
        for start, end in places:
            if not any(self._taken[start:end]):
                self._taken[start:end] = b"\1" * (end - start)
                return start, end
        return None


def placeable(item: PoolItem) -> PoolItem:
    """Return an item in whose text the tokens are; where they are not in its own, they are it."""
    found = with_text(item)
    return found if found.token_start is not None else with_text(replace(item, text=None))


def _place(
    item: PoolItem, bounds: Sequence[tuple[int, int]], said: Quoted, free: _Free
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
    places = _places(item.text or "", bounds, quote)
    if not places:
        return f"{said.label} {quote!r:.{_SHOWN}} is not in the text"
    if first is not None:
        return min(places, key=lambda place: abs(place[0] - first))  # of equals the better
    words = said.label if free.overlapping else "", _squeezed(quote)
    free.mentions[words] += 1
    nth, place = free.mentions[words], free.take(places)
    if place is None and nth > (len(places) if free.overlapping else 1):
        n = max(len(places), nth - 1)
        had = "once" if n == 1 else f"{n} times"
        times = f"is said {nth} times, and the text has it {had}"
        return f"{said.label} {quote!r:.{_SHOWN}} {times}"
    return place or places[nth - 1]


def _about(item: PoolItem, said: Quoted) -> Collection[int]:
    """Return the tokens that have words or numbers of what has no place; where none has, all."""
    words = {_squeezed(word) for word in (said.quote or "").split()}
    found = {n for n, token in enumerate(item.tokens) if _squeezed(token) in words}
    if said.first is not None and said.last is not None:
        found |= {*range(max(said.first, 0), min(said.last + 1, len(item.tokens)))}
    return found or range(len(item.tokens))


def _places(text: str, bounds: Sequence[tuple[int, int]], quote: str) -> list[tuple[int, int]]:
    """Return the places of some words in a text as tokens; words are not found within others."""
    # Those that are whole tokens, but for punctuation, come before those that are parts of a token
    for read, flags in ((str, 0), (str, re.IGNORECASE), (plain, re.IGNORECASE)):
        words = [re.escape(word) for word in read(quote).split()]
        if not words:
            return []
        parts = [read(char) for char in text] if read is plain else text
        origin: Sequence[int] = range(len(text))
        if read is plain:
            origin = [n for n, part in enumerate(parts) for _ in part]
        found: dict[tuple[int, int], bool] = {}
        for match in re.finditer(r"\s*".join(words), "".join(parts), flags):
            a, b = origin[match.start()], origin[match.end() - 1] + 1
            first = bisect_right(bounds, a, key=itemgetter(1))
            last = bisect_left(bounds, b, key=itemgetter(0))
            if first >= last:  # between the tokens
                continue
            start, end = bounds[first][0], bounds[last - 1][1]
            if (a <= start or not _is_within(text, a)) and (b >= end or not _is_within(text, b)):
                rest = text[start:a] + text[b:end]
                found.setdefault((first, last), not any(map(_is_word, rest)))
        if found:
            return sorted(found, key=lambda place: (not found[place], place))
    return []


def _is_within(text: str, place: int) -> bool:
    """Whether a place in a text is between two letters, digits or marks of letters."""
    return 0 < place < len(text) and _is_word(text[place - 1]) and _is_word(text[place])


def _is_word(char: str) -> bool:
    """Whether a character is of a word: a letter, a digit, or a mark such as a vowel sign."""
    return unicodedata.category(char)[0] in "LMN"


def plain(words: str) -> str:
    """Return words in one spelling: accents apart from their letters, typewriter's signs.

    >>> plain("“½”")
    '"1⁄2"'
    """
    return unicodedata.normalize("NFKD", words.translate(_TYPED))


_TYPED = str.maketrans("‘’‚‛“”„‟‐‑‒–—−", "'" * 4 + '"' * 4 + "-" * 6)
"""Signs that models write as on a typewriter."""


def _bounds(item: PoolItem) -> list[tuple[int, int]]:
    starts = item.token_start or ()
    return [(a, a + len(token)) for a, token in zip(starts, item.tokens, strict=False)]


def _squeezed(words: str) -> str:
    return "".join(plain(words).split()).casefold()


def _unknown(label: str, words: str) -> str:
    of = f" of {words!r:.{_SHOWN}}" if words else ""
    return f"{label!r:.{_SHOWN}}{of} is not a label of the task"
