"""Decoding of log potentials: tags, marginals, spans with their posteriors, n-best lists.

A tagger computes one log score per token and tag, and scores of steps; all else follows from the
chain (`goldspan.chains`), whatever the scores come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan._arrays import fixed
from goldspan.chains import posterior as chain
from goldspan.chains.decoding import best_paths, n_best_paths
from goldspan.chains.posterior import Chain, Spans
from goldspan.errors import InputError
from goldspan.params import Whole, require
from goldspan.spans import Codec, Tagged, find_spans
from goldspan.spans.corpus import SpanArray
from goldspan.tagger.targets import Known, allowed_tags, read_known

Floats = NDArray[np.float64]


class Potentials(NamedTuple):
    """Log scores of a chain; -inf where something is forbidden."""

    unary: Floats  # [n_tokens, J]
    start: Floats  # [J]
    step: Floats  # [J, J], rows previous
    end: Floats  # [J]
    offsets: NDArray[np.int64]  # [n_items + 1]


@dataclass(frozen=True, eq=False)
class Tagging:
    """A tagged text."""

    codes: NDArray[np.int16]  # [n_tokens], the best path
    probs: Floats  # [n_tokens, J], marginals
    entropy: Floats  # [n_items], of the sequence, in nats
    spans: SpanArray  # The candidate spans, those with at least the posterior asked for
    mass: Floats  # [n_spans], their posteriors
    offsets: NDArray[np.int64]  # [n_items + 1]

    @property
    def tagged(self) -> Tagged:
        """The best path as codes and offsets."""
        return Tagged(self.codes, self.offsets)


def best_path(potentials: Potentials, codec: Codec) -> Tagged:
    """Return the best path only: the same as that of `decode`, in a fraction of the time."""
    p = potentials
    codes = np.empty(len(p.unary), np.int16)
    offsets = p.offsets - p.offsets[0]
    item = best_paths(fixed(offsets, np.int64), *(fixed(part, np.float64) for part in p[:4]), codes)
    if item >= 0:
        raise InputError(_no_path(item, codec))
    return Tagged(codes, offsets)


def decode(potentials: Potentials, codec: Codec, *, least: float = 0.01) -> Tagging:
    """Decode: best path, marginals, entropy and span posteriors."""
    p, scores = potentials, potentials.unary
    n_items = len(p.offsets) - 1
    offsets = p.offsets - p.offsets[0]
    codes, probs = np.empty(len(scores), np.int16), np.empty(scores.shape)
    entropy, steps = np.empty(n_items), Chain(*(np.exp(x) for x in (p.start, p.step, p.end)))
    found, mass = [np.empty((0, 4), np.int64)], [np.empty(0)]
    for a, b in chain.blocks(offsets):
        here = slice(offsets[a], offsets[b])
        lattice = chain.lattice_of(
            offsets[a : b + 1], np.zeros(len(scores[here]) + 1, np.int64), np.zeros(0, np.int32),
            np.ones(b - a, np.bool_), np.zeros(0, np.int16), scores[here],
            np.zeros((0, scores.shape[1])), steps,
        )  # fmt: skip
        lost = np.flatnonzero((lattice.log_z == -np.inf) & (np.diff(lattice.offsets) > 0))
        if len(lost):
            raise InputError(_no_path(a + int(lost[0]), codec))
        probs[here], entropy[a:b] = chain.marginals(lattice)
        codes[here] = chain.best_codes(lattice, p.start, p.step, p.end)
        if not codec.rules.is_plain and np.isfinite(least):
            to_spans = Spans.of(lattice, codec.pairs, codec.type_of)
            spans, masses = chain.likely_spans(lattice, to_spans, probs[here], least)
            spans[:, 0] += a
            found.append(spans)
            mass.append(masses)
    item, begin, stop, kind = np.concatenate(found).T
    array = SpanArray(
        offsets[item] + begin,
        offsets[item] + stop,
        kind.astype(np.int16),
        item.astype(np.int32),
        np.zeros(len(item), np.int32),
    )
    return Tagging(codes, probs, entropy, array, np.concatenate(mass), offsets)


def constrain(
    potentials: Potentials, codec: Codec, forced: Sequence[Sequence[Known]] | None
) -> Potentials:
    """Rule out the tags that known ones exclude."""
    if forced is None:
        return potentials
    known = read_known(forced)
    lengths = np.array([len(item) for item in known], np.int64)
    if not np.array_equal(lengths, np.diff(potentials.offsets)):
        raise InputError("forced: give one tag or None for every token of every item")
    unary = np.where(allowed_tags(known, codec), potentials.unary, -np.inf)
    return potentials._replace(unary=unary)


def n_best(potentials: Potentials, codec: Codec, n: int) -> list[list[tuple[list[str], float]]]:
    """Return the n best tag sequences of every item with their probabilities, the best first."""
    # Items with fewer than n possible sequences have shorter lists
    require("n", n, Whole(1))
    p = potentials
    every = []
    for item, (a, b) in enumerate(pairwise((p.offsets - p.offsets[0]).tolist())):
        paths = np.empty((n, b - a), np.int16)
        log_probs = np.empty(n)
        found = n_best_paths(p.unary[a:b], p.start, p.step, p.end, paths, log_probs)
        if not found:
            raise InputError(_no_path(item, codec))
        tags = codec.decode_complete(Tagged(paths[:found].ravel(), np.arange(found + 1) * (b - a)))
        every.append(list(zip(tags, np.exp(log_probs[:found]).tolist(), strict=True)))
    return every


def _no_path(item: int, codec: Codec) -> str:
    return f"item {item}: no {codec.encoding} sequence agrees with its forced tags"


def spans_with_confidence(tagging: Tagging, codec: Codec) -> tuple[SpanArray, Floats]:
    """Return the spans of the best path with their posteriors (those below the listed: 0)."""
    spans = find_spans(tagging.tagged, codec)
    key = {
        (int(a), int(b), int(t)): float(m)
        for a, b, t, m in zip(
            tagging.spans.start, tagging.spans.end, tagging.spans.type, tagging.mass, strict=True
        )
    }
    rows = zip(spans.start.tolist(), spans.end.tolist(), spans.type.tolist(), strict=True)
    return spans, np.array([key.get(row, 0.0) for row in rows])
