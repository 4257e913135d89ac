"""The least certain places of a consensus, each in its sentence, with what every worker said there.

In a crowd of spans a place is a span of the result, or – where the method knows their posterior –
one that was rejected; with PLAIN labels it is a token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import Consensus
from goldspan.crowd import Crowd
from goldspan.crowd.model import ItemText, item_texts, known_texts
from goldspan.report.wording import shorten
from goldspan.spans import Span, Tagged, find_spans

MAX_PLACES = 20
MAX_RIVALS = 4
NOTABLE = 0.05
"""Rejected spans with a smaller posterior are not told."""
MAX_NAMES = 12
WINDOW = 25
"""Tokens shown before and after the place."""
MAX_CHARACTERS = 320
"""Of the words of the place; other spans are cut to 80."""
MOST_AROUND = 2_000
"""Characters before the place, and after it."""
_NONE, _SKIPPED = "no span here", "skipped"


@dataclass(frozen=True)
class GivenAnswer:
    """One answer and who gave it."""

    spans: tuple[tuple[str, str], ...]  # (type, words) of the spans
    note: str  # What stands in place of spans: "no span here" or "skipped"; else ""
    workers: tuple[str, ...]  # Ids, at most `MAX_NAMES`
    n_workers: int  # All who gave it
    is_result: bool  # Whether the result says the same
    is_gold: bool  # Whether the gold says the same


@dataclass(frozen=True)
class Place:
    """An uncertain place."""

    item: str
    group: str  # Its document, "" if unknown
    label: str  # Type of the span, or the label
    confidence: float  # Of this span or label; of a rejected span its posterior
    before: str  # Text before it, shortened
    words: str  # Its own text; "" where the token is no text of its own
    after: str  # Text after it, shortened
    answers: tuple[GivenAnswer, ...]  # What workers said, the most frequent first
    n_answers: int  # Workers who answered the item
    gold: tuple[tuple[str, str], ...] | None  # (type, words) of the gold here
    is_gold: bool  # Whether the result is the gold
    is_rejected: bool = False  # Whether the span is not in the result
    # Rejected spans that overlap it, the likeliest first: (type, words, posterior)
    rivals: tuple[tuple[str, str, float], ...] = ()


def uncertain_places(consensus: Consensus) -> list[Place]:
    """Return the places that are most probably wrong; what is certain is not among them."""
    if consensus.tagset.rules.is_plain:
        confidence = np.where(consensus.codes >= 0, consensus.token_confidence, 1.0)
        start = np.arange(len(confidence))
        end = start + 1
    else:
        confidence = consensus.span_confidence
        start, end = consensus.span_array.start, consensus.span_array.end
    chosen = [
        Candidate(int(start[i]), int(end[i]), "", float(confidence[i])) for i in _lowest(confidence)
    ]
    rejected = rejected_spans(consensus)
    heads = _apart(consensus, rejected)
    places = sorted([*chosen, *heads], key=lambda c: -c.wrong)[:MAX_PLACES]
    return [_place(consensus, place, rejected) for place in places]


class Candidate(NamedTuple):
    """A span that the truth may hold."""

    start: int  # First token, of all tokens of the crowd
    end: int  # One past the last
    type: str  # Its type, "" for what the result has there
    confidence: float

    @property
    def wrong(self) -> float:
        """Probability that it was a mistake to take it or, with a type, to reject it."""
        return self.confidence if self.type else 1 - self.confidence

    def overlaps(self, other: Candidate) -> bool:
        """Return whether they share a token."""
        return self.start < other.end and other.start < self.end


def rejected_spans(consensus: Consensus) -> list[Candidate]:
    """List the spans outside the result with a notable posterior; none for votes."""
    posterior = consensus.posterior
    if consensus.tagset.rules.is_plain or not hasattr(posterior, "marginals"):
        return []
    found, taken = posterior.marginals(NOTABLE), consensus.span_array
    base = consensus.crowd.offsets[found.item]
    start, end = base + found.begin, base + found.stop
    n_types, width = len(consensus.tagset.types), len(consensus.codes) + 1
    keys = (start * width + end) * n_types + found.kind
    known = (taken.start.astype(np.int64) * width + taken.end) * n_types + taken.type
    left = np.flatnonzero(~np.isin(keys, known) & (found.mass >= NOTABLE))
    order = left[np.lexsort((found.kind[left], end[left], start[left], -found.mass[left]))]
    types = consensus.tagset.types
    return [
        Candidate(int(start[i]), int(end[i]), types[found.kind[i]], float(found.mass[i]))
        for i in order.tolist()
    ]


def _apart(consensus: Consensus, rejected: list[Candidate]) -> list[Candidate]:
    """Return the likeliest rejected spans that overlap neither the result nor a likelier one."""
    spans = consensus.span_array
    covered = np.zeros(len(consensus.codes) + 1, np.int64)
    np.add.at(covered, spans.start, 1)
    np.add.at(covered, spans.end, -1)
    before = np.concatenate([[0], np.cumsum(np.cumsum(covered))])
    heads: list[Candidate] = []
    for one in rejected:
        free = before[one.end] == before[one.start]
        if free and not any(one.overlaps(head) for head in heads):
            heads.append(one)
            if len(heads) == MAX_PLACES:
                break
    return heads


def _lowest(confidence: NDArray[np.floating]) -> list[int]:
    """Indices of the smallest values below 1, equal ones in the order of the text."""
    open_ = np.flatnonzero(confidence < 0.9995)
    if len(open_) > MAX_PLACES:
        limit = np.partition(confidence[open_], MAX_PLACES - 1)[MAX_PLACES - 1]
        open_ = open_[confidence[open_] <= limit]
    order = np.argsort(confidence[open_], kind="stable")[:MAX_PLACES]
    return [int(i) for i in open_[order]]


def _place(consensus: Consensus, place: Candidate, rejected: list[Candidate]) -> Place:
    crowd = consensus.crowd
    n = int(np.searchsorted(crowd.offsets, place.start, side="right")) - 1
    base, stop = int(crowd.offsets[n]), int(crowd.offsets[n + 1])
    alone = crowd.select_items(np.array([n]))
    a, b = place.start - base, place.end - base
    item = crowd.item_ids[n].as_py()
    gold = None if crowd.gold is None else crowd.gold[base:stop]
    reading = _Reading(alone, next(item_texts(alone)), a, b)
    truth = None if gold is None or (gold[a:b] < 0).any() else reading.read(gold)
    result = reading.read(consensus.codes[base:stop])
    group = "" if crowd.groups is None else crowd.groups[n].as_py() or ""
    before, words, after = _context(reading)
    rivals = [one for one in rejected if one.overlaps(place) and one != place][:MAX_RIVALS]
    return Place(
        item=item,
        group=group,
        label=place.type or result[0][0].type,
        confidence=place.confidence,
        before=before,
        words=words,
        after=after,
        answers=_answers(crowd, n, reading, result, truth),
        n_answers=len(crowd.by_item[n]),
        gold=None if truth is None else reading.name(truth[0]),
        is_gold=truth == result,
        is_rejected=bool(place.type),
        rivals=tuple(
            (one.type, reading.words(one.start - base, one.end - base), one.confidence)
            for one in rivals
        ),
    )


Read = tuple[tuple[Span, ...], str]
"""What somebody says at a place: the spans that touch it, or the note that replaces them."""


@dataclass(frozen=True)
class _Reading:
    """Reads what a sequence of codes says about the tokens from `start` to `end` of an item."""

    crowd: Crowd  # The item alone
    text: ItemText
    start: int
    end: int

    def words(self, start: int, end: int, limit: int = 80) -> str:
        """Return the text of some tokens, shortened."""
        bounds = self.text.bounds
        return shorten(self.text.value[bounds[start][0] : bounds[end - 1][1]], limit)

    def read(self, codes: NDArray[np.int16]) -> Read:
        """Read int16 [n_tokens] codes of the item."""
        codec = self.crowd.tagset
        here = codes[self.start : self.end]
        if (here < 0).all():
            return (), _SKIPPED
        if codec.rules.is_plain:
            return (Span(codec.tags[int(here[0])], self.start, self.end),), ""
        found = find_spans(Tagged(codes, np.array([0, len(codes)])), codec)
        touching = np.flatnonzero((found.start < self.end) & (found.end > self.start))
        spans = tuple(
            Span(codec.types[found.type[i]], int(found.start[i]), int(found.end[i]))
            for i in touching.tolist()
        )
        return spans, "" if spans else _NONE

    def name(self, spans: tuple[Span, ...]) -> tuple[tuple[str, str], ...]:
        """Return types and words; a PLAIN label has no words."""
        plain = self.crowd.tagset.rules.is_plain
        return tuple((s.type, "" if plain else self.words(s.start, s.end)) for s in spans)


def _answers(
    crowd: Crowd, n: int, reading: _Reading, result: Read, truth: Read | None
) -> tuple[GivenAnswer, ...]:
    answers = crowd.latest
    by_answer: dict[Read, list[str]] = {}
    for a in crowd.by_item[n].tolist():
        codes = answers.codes[answers.offset[a] : answers.offset[a + 1]]
        worker = crowd.worker_ids[int(answers.worker[a])].as_py()
        by_answer.setdefault(reading.read(codes), []).append(worker)
    given = [
        GivenAnswer(
            spans=reading.name(said[0]),
            note=said[1],
            workers=tuple(sorted(workers)[:MAX_NAMES]),
            n_workers=len(workers),
            is_result=said == result,
            is_gold=said == truth,
        )
        for said, workers in by_answer.items()
    ]
    given.sort(key=_rank)
    return tuple(given)


def _rank(given: GivenAnswer) -> tuple[bool, int, bool, bool, tuple[tuple[str, str], ...]]:
    """Order answers: the most frequent first, the result and spans before nothing."""
    skipped, nothing = given.note == _SKIPPED, bool(given.note)
    return skipped, -given.n_workers, not given.is_result, nothing, given.spans


def _context(reading: _Reading) -> tuple[str, str, str]:
    """Return the text before the place, its own and the text after it, each shortened."""
    value, bounds = reading.text.value, reading.text.bounds
    start, end = reading.start, reading.end
    if reading.crowd.is_classification:
        return "", shorten(known_texts(reading.crowd)[0] or "", MAX_CHARACTERS), ""
    first, last = max(0, start - WINDOW), min(len(bounds), end + WINDOW)
    before = value[bounds[first][0] if first else 0 : bounds[start][0]]
    after = value[bounds[end - 1][1] : bounds[last - 1][1] if last < len(bounds) else None]
    before = f"… {before}" if first else before
    after = f"{after} …" if last < len(bounds) else after
    words = reading.words(start, end, MAX_CHARACTERS)
    return shorten(before, MOST_AROUND), words, shorten(after, MOST_AROUND)
