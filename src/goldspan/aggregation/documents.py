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

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from goldspan._arrays import count_between, count_in_rows
from goldspan.aggregation.base import has_words
from goldspan.aggregation.bsc.posterior import Marginals, Posterior, spans_at
from goldspan.aggregation.families import Families
from goldspan.aggregation.mixture import Mixture
from goldspan.crowd import Crowd
from goldspan.spans import Tagged, find_spans
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
    """Places that nobody marked, but that hold the words of a span of the same document."""

    codes: NDArray[np.int16]  # [n_tokens], their labels, -1 elsewhere
    probability: float  # That such a place holds the span
    n_places: int  # How many there are

    @property
    def note(self) -> str:
        """What to tell."""
        return (
            f"{self.n_places} places that nobody marked hold the words of a span found elsewhere "
            f"in the document: it was missed there with probability {self.probability:.2f}"
        )

    def beside(self, posterior: Posterior | Mixture) -> Mixture:
        """Return the posterior in which the places hold their spans with the probability."""
        before = posterior
        if isinstance(before, Posterior):
            alone = replace(before, span_scale=None)
            before = Mixture([alone], np.ones(1), before.codec, before.span_scale)
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
    """Places that hold the words of a span that was found elsewhere in the document."""

    spans: Ints  # int64 [n_places, 4]: item, first token and one past the last in the crowd, type
    kind: Ints  # int64 [n_places], what is found again
    marks: Ints  # int64 [n_places], workers who marked exactly the span
    others: Ints  # int64 [n_places], the most who marked any of its tokens
    answers: NDArray[np.float64]  # [n_places], workers who labelled its tokens, on average
    is_taken: NDArray[np.bool_]  # [n_places], whether it touches a span that was found
    mistake: NDArray[np.float64]  # [n_places]


def find_missed(
    crowd: Crowd,
    posterior: Posterior | Mixture,
    families: Families | None,  # Workers who err together, of whom one says how many miss a span
    last: Marginals | None = None,  # The posterior's marginals, where they are at hand
) -> Missed | None:
    """Find what all workers of an item missed."""
    if crowd.tagset.rules.is_plain or not has_words(crowd):
        return None
    last = last or posterior.marginals()
    parts = posterior.parts if isinstance(posterior, Mixture) else [posterior]
    known = _known(crowd, parts[0])  # what is marked there is no sign: annotators may never do so
    likely = (last.mass >= LIKELY) & ~known[last.item]
    item, base = last.item[likely], crowd.offsets[last.item[likely]]
    sure = spans_at(item, base + last.begin[likely], base + last.stop[likely], last.kind[likely])
    places = _places(families.thin(crowd) if families else crowd, sure)
    if places is None:
        return None
    weights = posterior.weights if isinstance(posterior, Mixture) else [1.0]
    untouched = count_between(~_unmarked(crowd, known), *places.spans[:, 1:3].T) == 0
    clear = (places.marks == places.others) & (places.answers >= 2)
    empty = clear & (places.marks == 0) & ~places.is_taken & untouched
    has_text = [all(len(shard.unary) for shard in part.shards) for part in parts]
    reads = [(weight, -n) for n, weight in enumerate(weights) if has_text[n]]
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
    array = spans_at(*ours.T)
    none = np.full(crowd.n_tokens, -1, np.int16)
    probs = np.zeros((0, 0), np.float32)
    found = np.empty(len(ours))
    _, found[order] = replace(posterior, shards=shards).confidences(
        none, array, crowd.offsets, probs
    )
    return found


def _known(crowd: Crowd, posterior: Posterior) -> NDArray[np.bool_]:
    """Return of which items something is known, bool [n_items]."""
    gold = [shard.gold for shard in posterior.shards]
    if not all(map(len, gold)):
        return np.zeros(crowd.n_items, np.bool_)
    return np.asarray(count_in_rows(np.concatenate(gold) >= 0, crowd.offsets) > 0)


def _unmarked(crowd: Crowd, known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which tokens nobody marked, in items of which nothing is known, bool [n_tokens]."""
    codes = crowd.latest.codes
    marked = (codes >= 0) & (codes != crowd.tagset.outside)
    found = np.bincount(crowd.token_of[marked], minlength=crowd.n_tokens) == 0
    return np.asarray(found & np.repeat(~known, np.diff(crowd.offsets)))


def _chao(marks: Ints, answers: NDArray[np.float64], mistake: NDArray[np.float64]) -> float:
    """Return how many were missed by all, by how many were marked by one and by two."""
    once, twice = (marks == 1).sum() - mistake.sum(), (marks == 2).sum()
    m = float(answers.mean())
    return float((m - 1) / m * once * (once - 1) / (2 * (twice + 1))) if once > 1 else 0.0


def _places(crowd: Crowd, found: SpanArray) -> _Places | None:
    """List the places where the words of a found span stand again."""
    rows = _again(crowd, found)
    if not len(rows):
        return None
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
    most, is_again = np.zeros(len(rows), np.int64), np.diff(before) > 0
    for k in range(int(length.max())):
        own = length > k
        most[own] = np.maximum(most[own], n_inside[start[own] + k])
        is_again[start[own] + k] = True
    marks, mistake = _marks(crowd, rows, ~is_again & (n_given >= 2))
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
    both = np.concatenate([ours, theirs]).astype(np.int64)
    sizes = both.max(axis=0) + 1
    every, number = np.unique(np.ravel_multi_index(both.T, sizes), return_inverse=True)
    first, length, kind = np.unravel_index(every, sizes)
    counts = np.bincount(number[len(ours) :], minlength=len(every))
    # By length and type, those that one worker gave where nothing was found.
    form = length * sizes[2] + kind
    alone = (counts == 1) & elsewhere[first]
    rate = np.bincount(form[alone], minlength=sizes[1] * sizes[2]) / max(1, elsewhere.sum())
    place = number[: len(ours)]
    return counts[place].astype(np.int64), rate[form[place]]


def _again(crowd: Crowd, found: SpanArray) -> Ints:
    """List the places of the words of found spans, and of their first or last word alone."""
    # returns int64 [n_places, 5]
    words = np.asarray(crowd.tokens.flatten().dictionary_encode().indices).astype(np.int64)
    n_words = int(words.max(initial=0)) + 1
    document = crowd.document_of
    item = np.repeat(np.arange(crowd.n_items), np.diff(crowd.offsets))
    known = _parts(found)
    # Words one after the other: what is known, and what stands in the text, has a number for its
    # document and its first words; who has no known one drops out.
    ours, at, theirs = document[item[known[:, 0]]], np.arange(crowd.n_tokens), document[item]
    rows = [np.zeros((0, 4), np.int64)]
    for length in range(1, LONGEST + 1):
        longer = known[:, 1] >= length
        known, ours = known[longer], ours[longer]
        if not len(known):
            break
        ends = crowd.offsets[1:][item[at]]
        at, theirs = at[at + length <= ends], theirs[at + length <= ends]
        begun, ours = np.unique(
            ours * n_words + words[known[:, 0] + length - 1], return_inverse=True
        )
        key = theirs * n_words + words[at + length - 1]
        theirs = np.minimum(np.searchsorted(begun, key), len(begun) - 1)
        at, theirs = at[begun[theirs] == key], theirs[begun[theirs] == key]
        whole = known[:, 1] == length
        rows.append(_pairs(ours[whole], known[whole, 2:], length, theirs, at))
    every = np.concatenate(rows)
    return np.column_stack([item[every[:, 0]], every])


def _parts(found: SpanArray) -> Ints:
    """List what is looked for, int64 [n, 5]: first token, length, type, kind, begin of the span."""
    length = found.end - found.start
    parts = []
    for kind, least, start, size in (
        (WHOLE, 1, found.start, length),
        (FIRST, 2, found.start, np.ones_like(length)),
        (LAST, 2, found.end - 1, np.ones_like(length)),
    ):
        own = (length >= least) & (length <= LONGEST)
        columns = (start, size, found.type, np.full(len(length), kind), found.start)
        parts.append(np.column_stack([column[own] for column in columns]))
    return np.concatenate(parts).astype(np.int64)


def _pairs(ours: Ints, known: Ints, length: int, theirs: Ints, at: Ints) -> Ints:
    """Pair words that are known with the places where they stand."""
    # ours int64 [n_known], the number of known words; known int64 [n_known, 3]
    # theirs int64 [n_places]; at int64 [n_places], first token of the place
    # returns int64 [n_pairs, 4]
    every = np.unique(np.column_stack([ours, known]), axis=0)
    _, first, size = np.unique(every[:, :3], axis=0, return_index=True, return_counts=True)
    words, kind = every[first, 0], every[first, 2]
    # The part of a span counts where the whole span was not found by itself.
    form = words * (int(every[:, 1].max(initial=0)) + 1) + every[first, 1]
    counts = (kind == WHOLE) | ~np.isin(form, form[kind == WHOLE])
    words, first, size = words[counts], first[counts], size[counts]
    begin, stop = np.searchsorted(words, theirs), np.searchsorted(words, theirs, side="right")
    place = np.repeat(np.arange(len(at)), stop - begin)
    within = np.arange(len(place)) - np.repeat(
        np.cumsum(stop - begin) - (stop - begin), stop - begin
    )
    row = begin[place] + within
    # Words that were found but once stand again at other places only.
    again = (size[row] > 1) | (every[first[row], 3] != at[place])
    row, place = first[row[again]], place[again]
    return np.column_stack([at[place], at[place] + length, every[row, 1:3]])


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
    array = spans_at(*spans[np.argsort(spans[:, 1])].T)
    codes = write_codes(array, crowd.offsets, crowd.tagset)
    return np.where(codes == crowd.tagset.outside, -1, codes).astype(np.int16)
