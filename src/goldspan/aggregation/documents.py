"""The same words in the same document: spans that every worker passed over.

Whoever reads fast misses names, and what all workers of an item missed no model of single workers
can find. But the words of a span that was found once in a document mostly mean the same wherever
they stand in it (one sense per discourse: Gale, Church and Yarowsky 1992). Whether that holds for
the spans of this crowd, and how much was missed, is told by the answers without any gold. Of the
places where the words of a found span stand again, f1 were marked by exactly one worker – beyond
those that would be by mistake, as often as other places are – and f2 by exactly two, and nobody
marked anything at n0. By Chao's lower bound (1987),

    f0 = (m - 1) / m  f1 (f1 - 1) / (2 (f2 + 1))

of the spans were missed by all m workers, so that a place that nobody marked holds one with
probability p = f0 / n0, at most 1. Words that are no name at another place ("May", "Bank") make
n0 large and p small; workers who hardly miss anything make f1 small against f2, and p small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan._arrays import count_between, count_in_rows
from goldspan.aggregation.bsc.posterior import Posterior, decode_spans, spans_of
from goldspan.aggregation.families import Families
from goldspan.aggregation.legal import has_words
from goldspan.aggregation.mixture import Mixture
from goldspan.crowd import Crowd
from goldspan.spans import Codec, Tagged, find_spans
from goldspan.spans.corpus import SpanArray, write_codes

Ints = NDArray[np.int64]
DOCUMENTS = ("auto", "none")
"""Whether to look for what was missed."""
LIKELY = 0.5
"""Confidence from which on a span counts as found, and share of missed spans that is believed."""
LONGEST = 8
"""Words of a span that are looked for elsewhere."""
MOST = 0.98
"""Probability of a missed span, at most."""
WHOLE, FIRST, LAST = range(3)
"""What is found again: all words of a span, or its first or last word alone."""


@dataclass(frozen=True, eq=False)
class Missed:
    """Places that nobody marked, but that hold the words of a span of the same document.

    Attributes:
        codes: int16 [n_tokens], their labels, -1 elsewhere.
        probability: That such a place holds the span.
        n_places: How many there are.
    """

    codes: NDArray[np.int16]
    probability: float
    n_places: int

    @property
    def note(self) -> str:
        """What to tell."""
        return (
            f"{self.n_places} places that nobody marked hold the words of a span found elsewhere "
            f"in the document: it was missed there with probability {self.probability:.2f}"
        )

    def beside(self, posterior: Posterior | Mixture) -> Mixture:
        """Return the posterior in which the places hold their spans with the probability."""
        before = posterior if isinstance(posterior, Mixture) else Mixture.of(posterior)
        parts = [each for part in before.parts for each in (part, self._there(part))]
        share = np.array([1 - self.probability, self.probability])
        weights = (before.weights[:, None] * share).ravel()
        return replace(before, parts=parts, weights=weights)

    def _there(self, posterior: Posterior) -> Posterior:
        """Return the posterior if the places hold their spans."""
        found, first = [], 0
        for shard in posterior.shards:
            own = self.codes[first : first + shard.n_tokens]
            known = np.where(shard.gold >= 0, shard.gold, own) if len(shard.gold) else own
            found.append(replace(shard, gold=known))
            first += shard.n_tokens
        return replace(posterior, shards=found)


@dataclass(frozen=True, eq=False)
class _Places:
    """Places that hold the words of a span that was found elsewhere in the document.

    Attributes:
        spans: int64 [n_places, 4]: item, first token and one past the last in the crowd, type.
        kind: int64 [n_places], what is found again.
        marks: int64 [n_places], workers who marked exactly the span.
        others: int64 [n_places], the most who marked any of its tokens.
        answers: float64 [n_places], workers who labelled its tokens, on average.
        is_taken: bool [n_places], whether it touches a span that was found.
        mistake: float64 [n_places], how often one worker marks so many tokens where nothing was
            found, and no words of anything that was.
    """

    spans: Ints
    kind: Ints
    marks: Ints
    others: Ints
    answers: NDArray[np.float64]
    is_taken: NDArray[np.bool_]
    mistake: NDArray[np.float64]


def find_missed(
    crowd: Crowd, posterior: Posterior | Mixture, families: Families | None
) -> Missed | None:
    """Find what all workers of an item missed.

    Args:
        crowd: The answers.
        posterior: Of the labels. Its part with the largest weight that knows the words says what
            they make of places that nobody marked; without one only whole spans are looked for.
        families: Workers who err together, of whom one says how many miss a span; None: nobody.

    Returns:
        None if nothing was.
    """
    if crowd.tagset.rules.is_plain or not has_words(crowd):
        return None
    last = posterior.marginals()
    spans = spans_of(decode_spans(last, crowd.offsets, crowd.tagset), crowd.offsets, crowd.tagset)
    _, confidence = posterior.confidences(last.codes, spans, crowd.offsets, last.probs)
    sure = spans.take(np.asarray(confidence >= LIKELY))
    places = _places(families.thin(crowd) if families else crowd, sure)
    if places is None:
        return None
    parts = posterior.parts if isinstance(posterior, Mixture) else [posterior]
    weights = posterior.weights if isinstance(posterior, Mixture) else [1.0]
    untouched = count_between(~_unmarked(crowd, parts), *places.spans[:, 1:3].T) == 0
    clear = (places.marks == places.others) & (places.answers >= 2)
    empty = clear & (places.marks == 0) & ~places.is_taken & untouched
    reads = [(weight, -n) for n, weight in enumerate(weights) if _knows_words(parts[n])]
    by_words = _by_words(parts[-max(reads)[1]], crowd, places.spans[empty]) if reads else None
    probability = np.zeros(len(empty))
    for kind in np.unique(places.spans[empty, 3]):
        own = (places.spans[:, 3] == kind) & (places.kind == WHOLE)
        here = own & empty
        if not here.any():
            continue
        told = own & clear
        f0 = _chao(places.marks[told], places.answers[told], places.mistake[told])
        missed = min(1.0, f0 / here.sum())
        probability[here] = missed
        if by_words is None:
            continue
        text = np.zeros(len(empty))
        text[empty] = by_words
        for part in (FIRST, LAST):
            of_part = (places.spans[:, 3] == kind) & (places.kind == part) & empty
            if of_part.any() and text[here].any():
                ratio = text[of_part].mean() / text[here].mean()
                probability[of_part] = missed * min(1.0, ratio)
    chosen = probability >= LIKELY
    if not chosen.any():
        return None
    kept = _apart(places.spans[chosen])
    return Missed(_codes(crowd, kept), float(min(MOST, probability[chosen].mean())), len(kept))


def _knows_words(posterior: Posterior) -> bool:
    """Return whether a text model has a say."""
    return all(len(shard.unary) for shard in posterior.shards)


def _by_words(posterior: Posterior, crowd: Crowd, spans: Ints) -> NDArray[np.float64]:
    """Return the probability of spans if nobody had labelled their tokens."""
    inside = np.zeros(crowd.n_tokens, np.bool_)
    for start, end in spans[:, 1:3].tolist():
        inside[start:end] = True
    shards, first = [], 0
    for shard in posterior.shards:
        local, _ = shard.localise(posterior.tables)
        unary, at = shard.unary.copy(), shard.bounds - shard.bounds[0]
        for token in np.flatnonzero(inside[first : first + shard.n_tokens]).tolist():
            unary[token] -= local.log_table[shard.row[at[token] : at[token + 1]]].sum(axis=0)
        shards.append(replace(shard, unary=unary))
        first += shard.n_tokens
    order = np.lexsort((spans[:, 1], spans[:, 0]))
    ours = spans[order]
    array = SpanArray(
        ours[:, 1],
        ours[:, 2],
        ours[:, 3].astype(np.int16),
        ours[:, 0].astype(np.int32),
        np.zeros(len(ours), np.int32),
    )
    none = np.full(crowd.n_tokens, -1, np.int16)
    probs = np.zeros((0, 0), np.float32)
    found = np.empty(len(ours))
    _, found[order] = replace(posterior, shards=shards).confidences(
        none, array, crowd.offsets, probs
    )
    return found


def _unmarked(crowd: Crowd, parts: Sequence[Posterior]) -> NDArray[np.bool_]:
    """Return which tokens nobody marked, in items of which nothing is known, bool [n_tokens]."""
    codes = crowd.latest.codes
    marked = (codes >= 0) & (codes != crowd.tagset.outside)
    found = np.bincount(crowd.token_of[marked], minlength=crowd.n_tokens) == 0
    gold = [shard.gold for shard in parts[0].shards]
    if all(map(len, gold)):
        known = count_in_rows(np.concatenate(gold) >= 0, crowd.offsets)
        found &= np.repeat(known == 0, np.diff(crowd.offsets))
    return np.asarray(found)


def _chao(marks: Ints, answers: NDArray[np.float64], mistake: NDArray[np.float64]) -> float:
    """Return how many were missed by all, by how many were marked by one and by two."""
    once, twice = (marks == 1).sum() - mistake.sum(), (marks == 2).sum()
    m = float(answers.mean())
    return float((m - 1) / m * once * (once - 1) / (2 * (twice + 1))) if once > 1 else 0.0


def _places(crowd: Crowd, found: SpanArray) -> _Places | None:
    """List the places where the words of a found span stand again."""
    spans = list(_again(crowd, found))
    if not spans:
        return None
    rows = np.array(spans, np.int64)
    start, end = rows[:, 1], rows[:, 2]
    answers = crowd.latest
    given = answers.codes >= 0
    token = crowd.token_of
    inside = given & (answers.codes != crowd.tagset.outside)
    n_given = np.bincount(token[given], minlength=crowd.n_tokens)
    n_inside = np.bincount(token[inside], minlength=crowd.n_tokens)
    taken = np.zeros(crowd.n_tokens + 1, np.int64)
    np.add.at(taken, found.start, 1)
    np.add.at(taken, found.end, -1)
    before = np.concatenate([[0], np.cumsum(np.cumsum(taken[:-1]) > 0)])
    length = end - start
    sums = np.concatenate([[0], np.cumsum(n_given)])
    most = np.zeros(len(rows), np.int64)
    for k in range(int(length.max())):
        own = length > k
        most[own] = np.maximum(most[own], n_inside[start[own] + k])
    is_taken = np.diff(before) > 0
    for k in range(int(length.max())):
        is_taken[(start + k)[length > k]] = True
    marks, mistake = _marks(crowd, rows, ~is_taken & (n_given >= 2))
    return _Places(
        rows[:, :4], rows[:, 4], marks, most,
        (sums[end] - sums[start]) / length, before[end] > before[start], mistake,
    )  # fmt: skip


def _marks(
    crowd: Crowd, rows: Ints, elsewhere: NDArray[np.bool_]
) -> tuple[Ints, NDArray[np.float64]]:
    """Count the workers who gave exactly these spans; and how often one does so elsewhere."""
    answers = crowd.latest
    given = find_spans(Tagged(answers.codes, answers.offset), crowd.tagset)
    start = given.start + (crowd.offsets[answers.item] - answers.offset[:-1])[given.item]
    theirs = np.column_stack([start, given.end - given.start, given.type])
    ours = np.column_stack([rows[:, 1], rows[:, 2] - rows[:, 1], rows[:, 3]])
    every, number = np.unique(np.concatenate([ours, theirs]), axis=0, return_inverse=True)
    number = number.ravel()
    counts = np.bincount(number[len(ours) :], minlength=len(every))
    # By length and type, those that one worker gave where nothing was found.
    forms, form = np.unique(every[:, 1:], axis=0, return_inverse=True)
    alone = (counts == 1) & elsewhere[every[:, 0]]
    rate = np.bincount(form.ravel()[alone], minlength=len(forms)) / max(1, elsewhere.sum())
    place = number[: len(ours)]
    return counts[place].astype(np.int64), rate[form.ravel()[place]]


Known = dict[tuple[int, tuple[int, ...]], dict[tuple[int, int], set[int]]]
"""By document and words: by type and kind, where they begin."""


def _known(found: SpanArray, words: NDArray[Any], document: NDArray[Any]) -> Known:
    """Collect the words of the spans that were found."""
    known: Known = {}
    columns = (found.start, found.end, found.type, found.item)
    for start, end, kind, item in zip(*(one.tolist() for one in columns), strict=True):
        if end - start > LONGEST:
            continue
        own = tuple(words[start:end].tolist())
        parts = [(own, WHOLE)] + ([(own[:1], FIRST), (own[-1:], LAST)] if len(own) > 1 else [])
        for part, what in parts:
            by_type = known.setdefault((int(document[item]), part), {})
            by_type.setdefault((kind, what), set()).add(start)
    return known


def _again(crowd: Crowd, found: SpanArray) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield item, first token, one past the last, type and kind of every place."""
    words = np.asarray(crowd.tokens.flatten().dictionary_encode().indices)
    # An item without a document is one of its own.
    names = crowd.item_ids if crowd.groups is None else pc.coalesce(crowd.groups, crowd.item_ids)
    document = np.asarray(names.dictionary_encode().indices)
    known = _known(found, words, document)
    longest: dict[tuple[int, int], int] = {}
    for doc, part in known:
        longest[doc, part[0]] = max(longest.get((doc, part[0]), 0), len(part))
    # Most tokens begin nothing that is known: only the others are looked at one by one.
    item_of = np.repeat(np.arange(crowd.n_items), np.diff(crowd.offsets))
    vocabulary = int(words.max(initial=0)) + 1
    begins = np.array([doc * vocabulary + word for doc, word in longest], np.int64)
    starts = np.isin(document[item_of].astype(np.int64) * vocabulary + words, begins)
    for first in np.flatnonzero(starts).tolist():
        item = int(item_of[first])
        doc, end = int(document[item]), int(crowd.offsets[item + 1])
        own = words[first : min(end, first + LONGEST)].tolist()
        for length in range(1, min(longest[doc, own[0]], len(own)) + 1):
            by_type = known.get((doc, tuple(own[:length])), {})
            for (kind, what), where in by_type.items():
                # The part of a span counts where the whole span was not found by itself.
                if (what == WHOLE or (kind, WHOLE) not in by_type) and (
                    len(where) > 1 or first not in where
                ):
                    yield item, first, first + length, kind, what


def _apart(spans: Ints) -> Ints:
    """Return spans that do not overlap, the longest first."""
    length = spans[:, 2] - spans[:, 1]
    order = np.lexsort((spans[:, 3], spans[:, 1], -length))
    taken: set[int] = set()
    kept = []
    for row in order.tolist():
        tokens = range(int(spans[row, 1]), int(spans[row, 2]))
        if taken.isdisjoint(tokens):
            taken.update(tokens)
            kept.append(row)
    return np.asarray(spans[np.sort(kept)])


def _codes(crowd: Crowd, spans: Ints) -> NDArray[np.int16]:
    """Return the labels of spans, -1 elsewhere."""
    codec: Codec = crowd.tagset
    order = np.argsort(spans[:, 1])
    item, start, end, kind = spans[order].T
    array = SpanArray(
        start, end, kind.astype(np.int16), item.astype(np.int32), np.zeros(len(start), np.int32)
    )
    codes = write_codes(array, crowd.offsets, codec)
    return np.where(codes == codec.outside, -1, codes).astype(np.int16)
