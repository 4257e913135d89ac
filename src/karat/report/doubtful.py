"""The most doubtful places of a consensus, each in its sentence, with what every worker said there.

In a crowd of spans a place is a span of the result; with PLAIN labels it is a token.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from karat.aggregate import Consensus
from karat.crowd import Crowd
from karat.report.wording import shorten
from karat.spans import Span, Tagged, find_spans

MAX_PLACES = 20
MAX_NAMES = 12
WINDOW = 25
"""Tokens shown before and after the place."""
MAX_CHARACTERS = 320
"""Of the words of the place; single tokens and other spans are cut to 80."""
_NONE, _SKIPPED = "no span here", "skipped"


@dataclass(frozen=True)
class Given:
    """One answer and who gave it.

    Attributes:
        spans: (type, words) of the spans; for PLAIN labels one (label, "").
        note: What stands in place of spans: "no span here" or "skipped"; else "".
        workers: Ids, at most `MAX_NAMES`.
        n_workers: All who gave it.
        is_result: Whether the result says the same.
        is_gold: Whether the gold says the same.
    """

    spans: tuple[tuple[str, str], ...]
    note: str
    workers: tuple[str, ...]
    n_workers: int
    is_result: bool
    is_gold: bool


@dataclass(frozen=True)
class Place:
    """A doubtful place.

    Attributes:
        item: Id of the item.
        group: Its document, "" if unknown.
        label: Type of the span, or the label.
        confidence: Of the result here.
        before: Words before it, shortened.
        words: Its own words; "" where the token is no text of its own.
        after: Words after it, shortened.
        answers: What workers said, the most frequent first.
        n_answers: Workers who answered the item.
        gold: (type, words) of the gold here; None without gold or where it is unknown.
        is_gold: Whether the result is the gold.
    """

    item: str
    group: str
    label: str
    confidence: float
    before: str
    words: str
    after: str
    answers: tuple[Given, ...]
    n_answers: int
    gold: tuple[tuple[str, str], ...] | None
    is_gold: bool


def doubtful_places(consensus: Consensus) -> list[Place]:
    """Give the places with the lowest confidence; what is certain is not among them."""
    if consensus.tagset.rules.is_plain:
        confidence = np.where(consensus.codes >= 0, consensus.token_confidence, 1.0)
        start = np.arange(len(confidence))
        end = start + 1
    else:
        confidence = consensus.span_confidence
        start, end = consensus.span_array.start, consensus.span_array.end
    return [
        _place(consensus, int(start[i]), int(end[i]), float(confidence[i]))
        for i in _lowest(confidence)
    ]


def _lowest(confidence: NDArray[np.floating]) -> list[int]:
    """Indices of the smallest values below 1, equal ones in the order of the text."""
    open_ = np.flatnonzero(confidence < 0.9995)
    if len(open_) > MAX_PLACES:
        limit = np.partition(confidence[open_], MAX_PLACES - 1)[MAX_PLACES - 1]
        open_ = open_[confidence[open_] <= limit]
    order = np.argsort(confidence[open_], kind="stable")[:MAX_PLACES]
    return [int(i) for i in open_[order]]


def _place(consensus: Consensus, start: int, end: int, confidence: float) -> Place:
    crowd = consensus.crowd
    n = int(np.searchsorted(crowd.offsets, start, side="right")) - 1
    base, stop = int(crowd.offsets[n]), int(crowd.offsets[n + 1])
    tokens: list[str] = crowd.tokens[n].as_py()
    a, b = start - base, end - base
    item = crowd.item_ids[n].as_py()
    gold = None if crowd.gold is None else crowd.gold[base:stop]
    reading = _Reading(crowd, tokens, a, b)
    truth = None if gold is None or (gold[a:b] < 0).any() else reading.read(gold)
    result = reading.read(consensus.codes[base:stop])
    group = "" if crowd.groups is None else crowd.groups[n].as_py() or ""
    before, words, after = _context(crowd, n, tokens, a, b)
    return Place(
        item=item,
        group=group,
        label=result[0][0].type,
        confidence=confidence,
        before=before,
        words=words,
        after=after,
        answers=_answers(crowd, n, reading, result, truth),
        n_answers=len(crowd.by_item[n]),
        gold=None if truth is None else reading.name(truth[0]),
        is_gold=truth == result,
    )


Read = tuple[tuple[Span, ...], str]
"""What somebody says at a place: the spans that touch it, or the note that replaces them."""


@dataclass(frozen=True)
class _Reading:
    """Reads what a sequence of codes says about the tokens from `start` to `end` of an item."""

    crowd: Crowd
    tokens: list[str]
    start: int
    end: int

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
        """Give types and words; a PLAIN label has no words."""
        plain = self.crowd.tagset.rules.is_plain
        return tuple(
            (s.type, "" if plain else shorten(_joined(self.tokens[s.start : s.end]))) for s in spans
        )


def _answers(
    crowd: Crowd, n: int, reading: _Reading, result: Read, truth: Read | None
) -> tuple[Given, ...]:
    answers = crowd.latest
    by_answer: dict[Read, list[str]] = {}
    for a in crowd.by_item[n].tolist():
        codes = answers.codes[answers.offset[a] : answers.offset[a + 1]]
        worker = crowd.worker_ids[int(answers.worker[a])].as_py()
        by_answer.setdefault(reading.read(codes), []).append(worker)
    given = [
        Given(
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


def _rank(given: Given) -> tuple[bool, int, bool, bool, tuple[tuple[str, str], ...]]:
    """Order answers: the most frequent first, the result and spans before nothing."""
    skipped, nothing = given.note == _SKIPPED, bool(given.note)
    return skipped, -given.n_workers, not given.is_result, nothing, given.spans


def _context(crowd: Crowd, n: int, tokens: list[str], start: int, end: int) -> tuple[str, str, str]:
    text = None if crowd.texts is None else crowd.texts[n].as_py()
    item = crowd.item_ids[n].as_py()
    if crowd.is_classification and (text or tokens[0] == item):
        return "", shorten(text or "", MAX_CHARACTERS), ""
    before = _joined(tokens[max(0, start - WINDOW) : start])
    after = _joined(tokens[end : end + WINDOW])
    first = "… " if start > WINDOW else ""
    last = " …" if end + WINDOW < len(tokens) else ""
    words = shorten(_joined(tokens[start:end]), MAX_CHARACTERS)
    return first + before, words, after + last


def _joined(tokens: list[str]) -> str:
    return " ".join(shorten(token) for token in tokens)
