"""Posteriors of tokens, spans and sequences, and decoding for expected span F1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import expit, logit

from goldspan._arrays import count_in_rows
from goldspan._kernel import kernel
from goldspan.aggregation.bsc.evidence import Evidence, Tables
from goldspan.aggregation.bsc.kernels import label_step
from goldspan.aggregation.consensus import Consensus
from goldspan.aggregation.workers import worker_table
from goldspan.chains import posterior as chain
from goldspan.chains.posterior import Chain, Lattice, Spans
from goldspan.crowd import Crowd
from goldspan.protocols import Runner
from goldspan.spans import Codec, Tagged, find_spans
from goldspan.spans.corpus import SpanArray, write_codes

# --------------------------------------------------------------------------------------------------
# Decoding for span F1: the spans whose expected F1 is largest (minimum Bayes risk).


MAX_ROUNDS = 50
FEW_SPANS = 1000
"""Spans for which Python takes some milliseconds more than the kernel, which has to be compiled."""


def best_spans(
    item: NDArray[np.integer], begin: NDArray[np.integer], stop: NDArray[np.integer],
    mass: NDArray[np.float64],
) -> tuple[NDArray[np.bool_], float]:  # fmt: skip
    """Choose spans."""
    # item int [n_spans], sorted; begin int [n_spans]; stop int [n_spans]; mass float64 [n_spans]
    # returns bool [n_spans], the chosen ones, and the F1 to expect
    expected, f1 = float(mass.sum()), 0.0
    chosen = np.zeros(len(mass), np.bool_)
    order = np.lexsort((begin, stop, item))
    arrays = [np.ascontiguousarray(a[order], np.int64) for a in (item, begin, stop)]
    weights = mass[order]
    schedule = _schedule if len(mass) > FEW_SPANS else _schedule.py_func  # type: ignore[attr-defined]
    for _ in range(MAX_ROUNDS):
        picked = np.zeros(len(mass), np.bool_)
        schedule(*arrays, weights - f1 / 2, picked)
        total = picked.sum() + expected
        new = 2 * float(weights[picked].sum()) / total if total else 0.0
        if new <= f1 + 1e-12:
            break
        f1 = new
        chosen[order] = picked
    return chosen, f1


@kernel
def _schedule(
    item: NDArray[np.int64], begin: NDArray[np.int64], stop: NDArray[np.int64],
    gain: NDArray[np.float64], picked: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Pick spans of every item that do not overlap, with the largest sum of gains."""
    first, n_spans = 0, len(item)
    while first < n_spans:
        last = first
        while last < n_spans and item[last] == item[first]:
            last += 1
        best = np.zeros(last - first + 1)
        before = np.zeros(last - first, np.int64)
        for a in range(first, last):
            b = a
            while b > first and stop[b - 1] > begin[a]:
                b -= 1
            before[a - first] = b - first
            taken = best[b - first] + gain[a]
            best[a - first + 1] = max(best[a - first], taken)
        a = last
        while a > first:
            if best[a - first] > best[a - first - 1]:
                picked[a - 1] = True
                a = first + before[a - 1 - first]
            else:
                a -= 1
        first = last


# --------------------------------------------------------------------------------------------------
# The last pass: marginals, best path, span posteriors, and the decoded labels.


LEAST_MASS = 0.01
"""Spans below this posterior are not candidates for decoding."""
AT_ONCE = 8
"""Shards of which the last pass holds the marginals twice: as they come, and in the result."""
LOGIT_EDGE = 1e-4
"""Confidences nearer to 0 or 1 than this are taken as this where they are scaled."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SpanScale:
    """What confidences of spans are put through after a calibration.

    sigmoid(offset_type + slope logit(p) + length ln(tokens of the span) + weights_type · item).
    """

    offset: Floats  # [n_types]
    slope: float  # Of the logit, at least 0
    length: float  # What longer spans gain
    features: Floats  # [n_items, k], of every item
    weights: Floats  # [n_types, k], what spans of a type gain by them

    def apply(
        self,
        mass: Floats,  # [n_spans]
        item: NDArray[np.integer],  # [n_spans]
        kind: NDArray[np.integer],  # [n_spans], index of the type
        n_tokens: NDArray[np.integer],  # [n_spans], tokens of the span
    ) -> Floats:
        """Scale confidences."""
        given = self.slope * logit(np.clip(mass, LOGIT_EDGE, 1 - LOGIT_EDGE))
        more = self.length * np.log(n_tokens)
        more += (self.features[item] * self.weights[kind]).sum(axis=1)
        return np.asarray(expit(self.offset[kind] + given + more))


class Marginals(NamedTuple):
    """The last pass over the items."""

    codes: NDArray[np.int16]  # [n_tokens], the legal path of highest probability
    probs: NDArray[np.float32]  # [n_tokens, J]
    entropy: Floats  # [n_items], of the whole sequence, in nats
    item: NDArray[np.integer]  # [n_spans], item of every candidate span, sorted
    begin: NDArray[np.integer]  # [n_spans], first token in the item
    stop: NDArray[np.integer]  # [n_spans], one past the last
    kind: NDArray[np.integer]  # [n_spans], index of the type
    mass: Floats  # [n_spans], posterior that the truth holds exactly this span


class Alternative(NamedTuple):
    """A span that the truth may hold."""

    start: int  # First token in its item
    end: int  # One past the last
    type: str
    confidence: float  # Posterior that the truth holds exactly this span


@dataclass(frozen=True, eq=False)
class Steps:
    """The chain as arrays for the last pass; without a chain its rows are all the same."""

    start: Floats  # [J]
    step: Floats  # [J, J]
    end: Floats  # [J]
    path_start: Floats  # [J], ln, what a decoded path may begin with (-inf: not)
    path_step: Floats  # [J, J], ln, for decoded paths: always legal
    path_end: Floats  # [J], ln
    pairs: NDArray[np.uint8]  # [J + 1, J + 1]
    type_of: NDArray[np.int16]  # [J]
    is_plain: bool  # Whether labels are no spans, which are then not listed

    @classmethod
    def of(cls, tables: Tables, codec: Codec) -> Steps:
        """Take them from the tables of an E-step."""
        n_labels = tables.truth.shape[1]
        chained = len(tables.truth) > 1
        start = np.ascontiguousarray(tables.truth[0])
        step = tables.truth[1:] if chained else np.tile(start, (n_labels, 1))
        with np.errstate(divide="ignore"):
            return cls(
                start,
                np.ascontiguousarray(step),
                tables.end,
                np.where(codec.start_mask, np.log(start), -np.inf),
                np.where(codec.mask, np.log(step), -np.inf),
                np.where(codec.end_mask, np.log(tables.end), -np.inf),
                codec.pairs,
                codec.type_of,
                codec.rules.is_plain,
            )


@dataclass(frozen=True, eq=False)
class Posterior:
    """Evidence and tables of the last E-step."""

    shards: Sequence[Evidence]
    tables: Tables
    codec: Codec
    runner: Runner
    # What confidences of spans are put through after a calibration
    span_scale: SpanScale | None = None

    @cached_property
    def steps(self) -> Steps:
        """The chain."""
        return Steps.of(self.tables, self.codec)

    @cached_property
    def first_item(self) -> NDArray[np.int64]:
        """First item of every shard, and their number."""
        return np.cumsum([0, *(len(shard.active) for shard in self.shards)])

    def cooled(self, temperature: float) -> Posterior:
        """Return the posterior with all log-scores divided by a temperature: p ** (1 / T)."""
        if temperature == 1:
            return self
        logs, power = self.tables.log_table / temperature, 1 / temperature
        tables = Tables(logs, np.exp(logs), self.tables.truth**power, self.tables.end**power)
        shards = [replace(shard, unary=shard.unary / temperature) for shard in self.shards]
        return replace(self, shards=shards, tables=tables)

    def of_items(self, chosen: NDArray[np.bool_]) -> Posterior:
        """Return the posterior that takes all but the chosen items, bool [n_items], for unknown."""
        bounds = self.first_item
        shards = [
            replace(shard, active=shard.active & chosen[first:last])
            for shard, first, last in zip(self.shards, bounds[:-1], bounds[1:], strict=True)
        ]
        return replace(self, shards=shards)

    def marginals(self, least: float = LEAST_MASS) -> Marginals:
        """Do the last pass; spans with less than `least` posterior are left out."""
        params, sizes = (self.tables, self.steps, least), [one.n_tokens for one in self.shards]
        first = np.cumsum([0, *sizes])
        codes = np.empty(first[-1], np.int16)
        probs = np.empty((first[-1], len(self.steps.start)), np.float32)
        rest: list[tuple[NDArray[Any], ...]] = []
        for n in range(0, len(sizes), AT_ONCE):
            for part in self.runner.map(_marginals, self.shards[n : n + AT_ONCE], params):
                here = slice(first[len(rest)], first[len(rest) + 1])
                codes[here], probs[here] = part.codes, part.probs
                item = part.item + self.first_item[len(rest)]
                spans = (one.astype(np.int32) for one in (item, part.begin, part.stop, part.kind))
                rest.append((part.entropy, *spans, part.mass))
        return Marginals(codes, probs, *map(np.concatenate, zip(*rest, strict=True)))

    def confidences(
        self,
        codes: NDArray[np.int16],  # [n_tokens], one path per item; -1 in items to pass over
        spans: SpanArray,  # Spans in flat tokens, sorted by item
        offsets: NDArray[np.int64],  # [n_items + 1]
        probs: NDArray[np.float32],  # [n_tokens, J], the marginals; they suffice for single labels
    ) -> tuple[Floats, Floats]:
        """Return the probability of paths and of spans."""
        # returns float64 [n_items], P(path), and float64 [n_spans], P(span)
        if all(_is_single(shard, self.steps) for shard in self.shards):
            own = np.take_along_axis(probs, np.maximum(codes, 0)[:, None].astype(np.int64), 1)[:, 0]
            paths = np.where(codes >= 0, own, 0).astype(np.float64)
            return paths, paths[spans.item]
        base = offsets[spans.item]
        kind = spans.type.astype(np.int64)
        found = np.stack([spans.item, spans.start - base, spans.end - base, kind], axis=1)
        jobs = []
        for shard, first, last in zip(
            self.shards, self.first_item[:-1], self.first_item[1:], strict=True
        ):
            here = slice(*np.searchsorted(spans.item, [first, last]))
            part = found[here].astype(np.int64)
            part[:, 0] -= first
            jobs.append((shard, codes[offsets[first] : offsets[last]], part))
        parts = self.runner.map(_confidences, jobs, (self.tables, self.steps))
        masses = np.concatenate([p[1] for p in parts])
        paths = np.concatenate([p[0] for p in parts])
        return paths, scaled(masses, self.span_scale, spans)

    def alternatives(self, item: int, least: float = LEAST_MASS) -> list[Alternative]:
        """List the spans of an item with at least `least` posterior, the likeliest first."""
        where = int(np.searchsorted(self.first_item, item, side="right")) - 1
        at = item - int(self.first_item[where])
        part = _marginals(self.shards[where].items(at, at + 1), (self.tables, self.steps, least))
        mass, scale = part.mass, self.span_scale
        if scale is not None:
            lengths = part.stop - part.begin
            mass = scale.apply(mass, np.full(len(mass), item), part.kind, lengths)
        found = [
            Alternative(int(a), int(b), self.codec.types[k], float(p))
            for a, b, k, p in zip(part.begin, part.stop, part.kind, mass, strict=True)
        ]
        return sorted(found, key=lambda s: (-s.confidence, s.start, s.end, s.type))


def consensus_of(
    crowd: Crowd,
    posterior: Any,  # What is known of them: a `Posterior`, or a mixture of several
    *,
    decode: str,  # "viterbi", the likeliest path, or "mbr", the spans with the largest expected F1
    method: str,
    known: NDArray[np.int16] | None = None,  # [n_tokens]
    chosen: SpanArray | None = None,  # The spans to write, if they are known already
) -> Consensus:
    """Make a result of a posterior."""
    codec, offsets = crowd.tagset, crowd.offsets
    last: Marginals = posterior.marginals()
    path, probs, entropy = last.codes, last.probs, last.entropy.astype(np.float32)
    if chosen is None and decode == "mbr" and not codec.rules.is_plain:
        chosen = _chosen(last, offsets)
    del last  # most candidates of spans are not needed any more
    codes = path
    if chosen is not None:
        codes = np.where(path < 0, np.int16(-1), write_codes(chosen, offsets, codec))
    if chosen is not None and known is not None:
        lost = count_in_rows((known >= 0) & (codes != known), offsets) > 0
        codes = np.where(np.repeat(lost, np.diff(offsets)), path, codes)
    paths, masses = posterior.confidences(
        codes, find_spans(Tagged(codes, offsets), codec), offsets, probs
    )
    return Consensus(
        crowd=crowd,
        codes=codes,
        token_probs=probs,
        span_confidence=masses.astype(np.float32),
        confidence=paths.astype(np.float32),
        make_workers=workers_of,
        method=method,
        entropy=entropy,
        posterior=posterior,
    )


def workers_of(result: Consensus) -> pa.Table:
    """Make the table of workers of a result."""
    return worker_table(result.crowd, result.codes, result.token_probs)


def _chosen(found: Marginals, offsets: NDArray[np.int64]) -> SpanArray:
    chosen, _ = best_spans(found.item, found.begin, found.stop, found.mass)
    item = found.item[chosen]
    start = offsets[item] + found.begin[chosen]
    end = offsets[item] + found.stop[chosen]
    return spans_at(item, start, end, found.kind[chosen]).take(np.argsort(start))


def spans_at(
    item: NDArray[np.integer],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    kind: NDArray[np.integer],
) -> SpanArray:
    """Make spans, which are nobody's, of whole numbers of any size."""
    columns = (start, end, kind.astype(np.int16), item.astype(np.int32))
    return SpanArray(*columns, np.zeros(len(item), np.int32))


def scaled(mass: Floats, scale: SpanScale | None, spans: SpanArray) -> Floats:
    """Put the posteriors of spans through a scale, if there is one."""
    if scale is None:
        return mass
    return scale.apply(mass, spans.item, spans.type, spans.end - spans.start)


def _marginals(shard: Evidence, params: tuple[Tables, Steps, float]) -> Marginals:
    """Do the last pass over a shard."""
    tables, s, least = params
    local, _ = shard.localise(tables)
    if _is_single(shard, s):
        return _labels(shard, local, s.start)
    codes, entropy = np.empty(shard.n_tokens, np.int16), np.empty(len(shard.active))
    probs = np.empty((shard.n_tokens, len(s.start)), np.float32)
    found: list[NDArray[np.int64]] = [np.empty((0, 4), np.int64)]
    mass: list[Floats] = [np.empty(0)]
    offsets = shard.offsets - shard.offsets[0]
    for a, b in chain.blocks(offsets):
        lattice = _lattice(shard.items(a, b), local, s)
        here = slice(offsets[a], offsets[b])
        full, entropy[a:b] = chain.marginals(lattice)
        codes[here] = chain.best_codes(lattice, s.path_start, s.path_step, s.path_end)
        probs[here] = full
        if not s.is_plain and least <= 1:
            steps = Spans.of(lattice, s.pairs, s.type_of)
            spans, masses = chain.likely_spans(lattice, steps, full, least)
            spans[:, 0] += a
            found.append(spans)
            mass.append(masses)
    item, begin, stop, kind = np.concatenate(found).T
    return Marginals(codes, probs, entropy, item, begin, stop, kind, np.concatenate(mass))


def _labels(shard: Evidence, local: Tables, share: Floats) -> Marginals:
    """Do the last pass over single labels."""
    codes, entropy = np.empty(shard.n_tokens, np.int16), np.empty(len(shard.active))
    probs = np.empty((shard.n_tokens, len(share)), np.float32)
    known = (shard.offsets, shard.bounds, shard.row, shard.active, shard.gold, shard.unary)
    label_step(*known, local.table, local.log_table, share, codes, probs, entropy)
    none = np.empty(0, np.int64)
    return Marginals(codes, probs, entropy, none, none, none, none, np.empty(0))


def _lattice(part: Evidence, local: Tables, s: Steps) -> Lattice:
    """Return all paths through some items."""
    return chain.lattice_of(
        part.offsets, part.bounds, part.row, part.active, part.gold, part.unary, local.log_table,
        Chain(s.start, s.step, s.end),
    )  # fmt: skip


def _is_single(shard: Evidence, s: Steps) -> bool:
    """Return whether items are single labels, for which there is a short way."""
    alone = bool((np.diff(shard.offsets) == 1).all())
    return s.is_plain and alone and not len(shard.unary)


def _confidences(
    job: tuple[Evidence, NDArray[np.int16], NDArray[np.int64]], params: tuple[Tables, Steps]
) -> tuple[Floats, Floats]:
    (shard, codes, spans), (tables, s) = job, params
    local, _ = shard.localise(tables)
    paths, masses = np.zeros(len(shard.active)), np.zeros(len(spans))
    offsets = shard.offsets - shard.offsets[0]
    for a, b in chain.blocks(offsets):
        lattice = _lattice(shard.items(a, b), local, s)
        steps = Spans.of(lattice, s.pairs, s.type_of)
        here = slice(*np.searchsorted(spans[:, 0], [a, b]))
        own = spans[here] - np.array([a, 0, 0, 0], np.int64)
        path = codes[offsets[a] : offsets[b]]
        paths[a:b], masses[here] = chain.masses_of(lattice, steps, path, own)
    return paths, masses
