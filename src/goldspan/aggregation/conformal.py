r"""Sets of alternatives that hold the truth with a chosen probability, whatever the model believes.

The unit is the written span: its set holds the span itself, other spans that overlap it (other
bounds, another type), "no span", and "another span" where even that is not improbable enough. The
truth of a written span is the true span that shares the most tokens with it, or that there is none.
Of single labels the unit is the item, of other plain labels the token.

Spans of one document are no independent evidence, so documents are what is exchangeable (items,
where there are no documents). Let s be 0 if a written span is right and else 1 − p(its truth), and
D the known documents with written spans. The threshold is the smallest λ with

    (1 + sum_d share of the spans of d with s > λ) / (D + 1) <= 1 − coverage,

and a set holds what has p >= 1 − λ. The set of a written span, drawn evenly from those of a new
document, then holds its truth with at least the probability `coverage`: hierarchical conformal
prediction (Lee, Barber and Willett 2023; Dunn, Wasserman and Ramdas 2023), which is conformal risk
control (Angelopoulos et al. 2024) of the share of spans whose set misses.

True spans that no written span overlaps are not covered by any set; their share among the true
spans of the known documents is told (`missed`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan._arrays import count_between, count_in_rows
from goldspan.aggregation.bsc.posterior import spans_at
from goldspan.errors import InputError
from goldspan.params import Number
from goldspan.spans import Codec, Tagged, find_spans
from goldspan.spans.corpus import SpanArray

if TYPE_CHECKING:
    from goldspan.aggregation.consensus import Consensus


Floats = NDArray[np.float64]
LEAST = 0.002
"""Spans of a smaller posterior are not listed: they are "another span"."""
NONE, OTHER = -1, -2


class Member(NamedTuple):
    """What the truth may be."""

    kind: str
    start: int | None  # First token in the item; None but for spans
    end: int | None  # One past the last
    type: str | None  # Of the span, or the label; None for "none" and "other"
    confidence: float  # Its probability, before the known labels were seen


@dataclass(frozen=True, eq=False)
class Options:
    """What the truth of every unit may be, and how probable that is; first what was written."""

    bounds: NDArray[np.int64]  # [n_units + 1]; options of unit n are bounds[n] to bounds[n + 1]
    start: NDArray[np.int64]  # [n_options], flat tokens; of "none", "other" those that were written
    end: NDArray[np.int64]  # [n_options]
    kind: NDArray[np.int64]  # [n_options], type or label; `NONE`, `OTHER`
    prob: Floats  # [n_options]

    @cached_property
    def unit(self) -> NDArray[np.int64]:
        """The unit of every option, int64 [n_options]."""
        return np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))

    @cached_property
    def scores(self) -> Floats:
        """How little every option conforms, float64 [n_options]: 0 for what was written."""
        found = 1 - self.prob
        found[self.bounds[:-1]] = 0.0
        return found


@dataclass(frozen=True, eq=False)
class ConformalSets:
    """A set of alternatives for every written span."""

    coverage: float  # The probability that was asked for
    threshold: float  # The λ of the module's text: options with a probability of at least 1 − λ
    n_documents: int  # Known documents that it was chosen on
    missed: float  # Share of their true spans that no written span overlaps; NaN without any
    unit: str  # "span", "item" or "token"
    options: Options  # All that the truth of every unit may be
    codec: Codec
    offsets: NDArray[np.int64]  # [n_items + 1], of the items' tokens

    def __len__(self) -> int:
        """Count the units."""
        return len(self.options.bounds) - 1

    @cached_property
    def chosen(self) -> NDArray[np.bool_]:
        """Which options are in their unit's set, bool [n_options]."""
        return np.asarray(self.options.scores <= self.threshold)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many options every set holds, int64 [n_units]."""
        return np.bincount(self.options.unit, self.chosen, len(self)).astype(np.int64)

    @property
    def mean_size(self) -> float:
        """Mean size of the sets, NaN without any."""
        return float(self.sizes.mean()) if len(self) else float("nan")

    def of(self, unit: int) -> list[Member]:
        """Return the set of a unit, by its place in `Consensus.spans` (items: in the crowd)."""
        # What was written comes first, then the likeliest
        options = self.options
        own = np.arange(options.bounds[unit], options.bounds[unit + 1])
        rest = own[1:][np.argsort(-options.prob[own[1:]], kind="stable")]
        return [self._member(int(n)) for n in [*own[:1], *rest] if self.chosen[n]]

    def holds(self, truth: NDArray[np.int16]) -> NDArray[np.bool_]:
        """Say which sets hold the truth, bool [n_units]."""
        # truth int16 [n_tokens]
        at = true_options(self.options, Tagged(truth, self.offsets), self.codec)
        return np.asarray(self.options.scores[at] <= self.threshold)

    @property
    def note(self) -> str:
        """Say in a sentence what the sets are."""
        what = {
            "span": "a written span of a new document",
            "item": "a new item",
            "token": "a token of a new document",
        }[self.unit]
        known = "documents" + (" (items where there are none)" if self.unit == "item" else "")
        text = (
            f"the set of {what} holds the truth with probability {self.coverage:g}, by "
            f"{self.n_documents} known {known}; mean size {self.mean_size:.2f}"
        )
        if self.unit == "span" and not np.isnan(self.missed):
            text += f"; {100 * self.missed:.1f} % of the true spans there touch no written span"
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return the main facts for JSON."""
        return {
            "coverage": self.coverage,
            "unit": self.unit,
            "threshold": self.threshold,
            "documents": self.n_documents,
            "mean_size": None if not len(self) else self.mean_size,
            "sizes": np.bincount(self.sizes).tolist(),
            "missed": None if np.isnan(self.missed) else self.missed,
        }

    def _member(self, n: int) -> Member:
        options, prob = self.options, float(self.options.prob[n])
        first = int(self.offsets[np.searchsorted(self.offsets, options.start[n], "right") - 1])
        kind = int(options.kind[n])
        if self.unit != "span":
            return Member("label", None, None, self.codec.tags[kind], prob)
        if kind < 0:
            return Member("none" if kind == NONE else "other", None, None, None, prob)
        start, end = int(options.start[n]) - first, int(options.end[n]) - first
        return Member("span", start, end, self.codec.types[kind], prob)


def conformal_sets(
    result: Consensus,
    truth: NDArray[np.int16],  # [n_tokens], codes of the result's tags, -1 where unknown
    coverage: float,  # Between 0 and 1
    foreign: NDArray[np.bool_] | None = None,  # [n_tokens]
) -> ConformalSets:
    """Choose sets of alternatives by known documents."""
    # The confidences are taken as they come: they must not have been fitted to the known labels
    if not Number(above=0, below=1).allows(coverage):
        raise InputError(f"coverage is a number between 0 and 1, not {coverage!r}")
    crowd, codec, plain = result.crowd, result.tagset, result.tagset.rules.is_plain
    options = label_options(result) if plain else span_options(result)
    written = options.start[options.bounds[:-1]]
    item = np.searchsorted(crowd.offsets, written, side="right") - 1
    strange = np.zeros(len(truth), np.bool_) if foreign is None else foreign
    is_known = (truth >= 0) | strange
    whole = count_in_rows(~is_known & (result.codes >= 0), crowd.offsets) == 0
    whole &= count_in_rows(is_known, crowd.offsets) > 0
    document = crowd.document_of
    judged = whole[item]
    at = true_options(options, Tagged(truth, crowd.offsets), codec)
    first = options.bounds[:-1]
    is_strange = count_between(strange, options.start[first], options.end[first]) > 0
    other = np.full(len(first), np.inf) if plain else options.scores[options.bounds[1:] - 1]
    scores = np.where(is_strange, other, options.scores[at])[judged]
    threshold, n_documents = choose_threshold(scores, document[item][judged], coverage)
    if threshold == np.inf:
        raise InputError(
            f"no sets reach a coverage of {coverage:g}: too many known labels are tags that the "
            "result lacks"
        )
    unit = "item" if crowd.is_classification else "token" if plain else "span"
    missed = float("nan") if plain else _missed(result, truth, whole)
    return ConformalSets(
        coverage, threshold, n_documents, missed, unit, options, codec, crowd.offsets
    )


def choose_threshold(
    scores: Floats, document: NDArray[np.integer], coverage: float
) -> tuple[float, int]:
    """Return the smallest threshold that covers, and the number of documents."""
    # scores float64 [n_units]; document int [n_units]
    place = np.unique(document, return_inverse=True)[1].ravel()
    sizes = np.bincount(place)
    n_documents, risk = len(sizes), 1 - coverage
    room = risk * (n_documents + 1) - 1
    if room < -1e-9:
        least = int(np.ceil(1 / risk - 1 - 1e-9))
        found = "1 known document" if n_documents == 1 else f"{n_documents} known documents"
        raise InputError(
            f"{found} with labels in the result: too few for a coverage of {coverage:g}, which "
            f"takes {least}"
        )
    order = np.argsort(scores, kind="stable")
    weights = (1 / sizes[place])[order]
    above = weights.sum() - np.cumsum(weights)  # what is above every score, if no other equals it
    tried = np.concatenate([[0.0], scores[order]])
    missing = np.concatenate([[(weights * (scores[order] > 0)).sum()], above])
    last = np.append(tried[1:] != tried[:-1], True)  # of equal scores the last one counts
    fits = last & (missing <= room + 1e-9)
    return float(tried[np.argmax(fits)]), n_documents


def span_options(result: Consensus) -> Options:
    """Return what the truth of every written span may be."""
    spans, outside = result.span_array, result.tagset.outside
    candidates, mass = _candidates(result)
    none = result.token_probs[:, outside].astype(np.float64)
    rows: list[tuple[int, int, int, float]] = []
    bounds = [0]
    first = np.searchsorted(candidates.item, spans.item, side="left").tolist()
    last = np.searchsorted(candidates.item, spans.item, side="right").tolist()
    columns = (spans.start, spans.end, spans.type, result.span_confidence)
    every = [c.tolist() for c in (candidates.start, candidates.end, candidates.type, mass)]
    for n, (start, end, kind, sure) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        own = [(start, end, kind)]
        probs = []
        for a, b, k, p in zip(*(column[first[n] : last[n]] for column in every), strict=True):
            if a < end and b > start and (a, b, k) != own[0]:
                own.append((a, b, k))
                probs.append(p)
        # Marginal probabilities bound that of no span at all from above.
        probs.append(float(none[start:end].min()))
        probs.append(max(1 - sure - sum(probs), LEAST))
        own += [(start, end, NONE), (start, end, OTHER)]
        scale = (1 - sure) / sum(probs)
        rows += [(*o, p) for o, p in zip(own, [sure, *(scale * p for p in probs)], strict=True)]
        bounds.append(len(rows))
    table = np.array(rows, np.float64).reshape(-1, 4)
    first_token, end_token, kinds = table[:, :3].astype(np.int64).T
    probs_of = table[:, 3].copy()
    return Options(np.array(bounds, np.int64), first_token, end_token, kinds, probs_of)


def label_options(result: Consensus) -> Options:
    """Return what the labels of every unit may be; tokens without a label are no units."""
    token = np.flatnonzero(result.codes >= 0)
    n_labels = len(result.tagset.tags)
    is_other = np.arange(n_labels)[None] != result.codes[token][:, None]
    others = np.argsort(is_other, axis=1, kind="stable")
    probs = np.take_along_axis(result.token_probs[token].astype(np.float64), others, axis=1)
    start = np.repeat(token, n_labels)
    bounds = np.arange(len(token) + 1) * n_labels
    return Options(bounds, start, start + 1, others.ravel().astype(np.int64), probs.ravel())


def true_options(options: Options, truth: Tagged, codec: Codec) -> NDArray[np.int64]:
    """Return which option is the truth of every unit, int64 [n_units], index of an option."""
    # truth int16 [n_tokens], codes and offsets
    first, unit = options.bounds[:-1], options.unit
    if codec.rules.is_plain:
        return first + _first_where(options.kind == truth.codes[options.start], options)
    start, end, kind = _closest(options.start[first], options.end[first], truth, codec)[:, unit]
    same = (options.start == start) & (options.end == end) & (options.kind == kind)
    same = np.where(kind < 0, options.kind == NONE, same)
    any_same = np.bincount(unit, same, len(first)) > 0
    return first + _first_where(np.where(any_same[unit], same, options.kind == OTHER), options)


def _first_where(flags: NDArray[np.bool_], options: Options) -> NDArray[np.int64]:
    """Return the place of the first flag of every unit in its options; 0 if there is none."""
    found = np.zeros(len(options.bounds) - 1, np.int64)
    at = np.flatnonzero(flags)[::-1]
    found[options.unit[at]] = at - options.bounds[options.unit[at]]
    return found


def _closest(
    start: NDArray[np.int64], end: NDArray[np.int64], truth: Tagged, codec: Codec
) -> NDArray[np.int64]:
    """Return the true span that shares the most tokens with every span: start, end, type or -1."""
    # Of several that share as many the first counts
    every = find_spans(truth, codec)
    first = np.searchsorted(every.end, start, side="right")
    last = np.searchsorted(every.start, end, side="left")
    found = np.full((3, len(start)), -1, np.int64)
    for n in np.flatnonzero(last > first).tolist():
        here = slice(first[n], last[n])
        shared = np.minimum(every.end[here], end[n]) - np.maximum(every.start[here], start[n])
        best = first[n] + int(np.argmax(shared))
        found[:, n] = every.start[best], every.end[best], every.type[best]
    return found


def _candidates(result: Consensus) -> tuple[SpanArray, Floats]:
    """Return the spans that the truth may hold, by item, and their probabilities."""
    crowd = result.crowd
    if result.posterior is not None:
        last = result.posterior.marginals(LEAST)
        base = crowd.offsets[last.item]
        order = np.lexsort((last.begin, last.item))
        spans = spans_at(last.item, base + last.begin, base + last.stop, last.kind)
        return spans.take(order), last.mass[order]
    answers = crowd.latest
    given = find_spans(Tagged(answers.codes, answers.offset), crowd.tagset)
    shift = (crowd.offsets[answers.item] - answers.offset[:-1])[given.item]
    rows = np.stack(
        [answers.item[given.item], given.start + shift, given.end + shift, given.type], axis=1
    )
    kinds, counts = np.unique(rows, axis=0, return_counts=True)
    item, start, end, kind = kinds.astype(np.int64).T
    share = counts / np.bincount(answers.item, minlength=crowd.n_items)[item]
    return spans_at(item, start, end, kind), share


def _missed(result: Consensus, truth: NDArray[np.int16], whole: NDArray[np.bool_]) -> float:
    """Return the share of the true spans of known items that no written span overlaps."""
    true = find_spans(Tagged(truth, result.crowd.offsets), result.tagset)
    true = true.take(whole[true.item])
    spans = result.span_array
    first = np.searchsorted(spans.end, true.start, side="right")
    last = np.searchsorted(spans.start, true.end, side="left")
    return float((first == last).mean()) if len(true) else float("nan")
