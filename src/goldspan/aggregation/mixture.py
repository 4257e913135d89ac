"""The posterior of several methods together: a mixture, with the interface of `Posterior`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation.bsc.evidence import Evidence, Tables
from goldspan.aggregation.bsc.posterior import (
    LEAST_MASS,
    Alternative,
    Marginals,
    Posterior,
    SpanScale,
    scaled,
)
from goldspan.crowd import Crowd
from goldspan.protocols import Runner
from goldspan.spans import Codec
from goldspan.spans.corpus import SpanArray

Floats = NDArray[np.float64]
CERTAIN = 0.98
"""Probability of a label that a vote gave, where a vote is part of a mixture."""
LEAST_PROB = 1e-12
HALF = 0.5
"""Share of the weight that the parts must have that label what nobody answered."""
RARE = 0.2
"""A span is a candidate if some part gives it this share of the least posterior asked for."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Several posteriors of the same items, each right with a probability."""

    parts: Sequence[Posterior]
    weights: Floats  # [n_parts], sum 1
    codec: Codec
    span_scale: SpanScale | None = None

    @cached_property
    def shares(self) -> Floats:
        """Weights of the parts on every item, among those that know it, float64 [n_parts, n_items].

        What nobody answered only parts that read the words know: if they have less than half of the
        weight, nothing is known of it.
        """
        there = np.stack(
            [np.concatenate([shard.active for shard in part.shards]) for part in self.parts]
        )
        own = self.weights[:, None] * there
        total = own.sum(axis=0)
        enough = total >= HALF * self.weights.sum()
        some = np.divide(own, total, out=np.zeros_like(own), where=enough)
        return np.where(there.all(axis=0), self.weights[:, None], some)

    def cooled(self, temperature: float) -> Mixture:
        """Return the mixture of the parts at a temperature."""
        return replace(self, parts=[part.cooled(temperature) for part in self.parts])

    def of_items(self, chosen: NDArray[np.bool_]) -> Mixture:
        """Return the mixture that takes all but the chosen items, bool [n_items], for unknown."""
        return replace(self, parts=[part.of_items(chosen) for part in self.parts])

    def marginals(self, least: float = LEAST_MASS) -> Marginals:
        """Do the last pass; the path is that of the part with the largest weight."""
        # The entropy is the mean of the parts' entropies
        found = [part.marginals(least if least > 1 else RARE * least) for part in self.parts]
        order = np.argsort(-self.weights, kind="stable").tolist()
        probs = np.zeros_like(found[0].probs)
        entropy = np.zeros_like(found[0].entropy)
        lengths = np.concatenate([np.diff(shard.offsets) for shard in self.parts[0].shards])
        known = np.full(len(probs), -1, np.int16)
        for n in order:
            mine = np.repeat(self.shares[n] > 0, lengths) & (known < 0)
            known = np.where(mine, found[n].codes, known)
        for share, one in zip(self.shares, found, strict=True):
            probs += np.repeat(share, lengths).astype(np.float32)[:, None] * one.probs
            entropy += share * one.entropy
        if self.codec.rules.is_plain:
            known = np.where(known >= 0, probs.argmax(axis=1), -1).astype(np.int16)
        keys = np.concatenate([np.stack(one[3:7], axis=1) for one in found])
        share = np.concatenate(
            [own[one.item] * one.mass for own, one in zip(self.shares, found, strict=True)]
        )
        spans, place = np.unique(keys, axis=0, return_inverse=True)
        mass = np.bincount(place.ravel(), share, len(spans)).astype(np.float64)
        kept = mass >= least
        item, begin, stop, kind = spans[kept].T
        return Marginals(known, probs, entropy, item, begin, stop, kind, mass[kept])

    def confidences(
        self,
        codes: NDArray[np.int16],
        spans: SpanArray,
        offsets: NDArray[np.int64],
        probs: NDArray[np.float32],
    ) -> tuple[Floats, Floats]:
        """Return the probability of paths and of spans; arguments as for `Posterior`."""
        paths, masses = np.zeros(len(offsets) - 1), np.zeros(len(spans))
        for share, part in zip(self.shares, self.parts, strict=True):
            path, mass = part.confidences(codes, spans, offsets, probs)
            paths += share * path
            masses += share[spans.item] * mass
        return paths, scaled(masses, self.span_scale, spans)

    @cached_property
    def _listed(self) -> dict[tuple[int, float], list[Alternative]]:
        """Alternatives that were asked for: they take long, and are kept with the labels."""
        return {}

    def alternatives(self, item: int, least: float = LEAST_MASS) -> list[Alternative]:
        """List the spans of an item with at least `least` posterior, the likeliest first."""
        if (item, least) in self._listed:
            return self._listed[item, least]
        total: dict[tuple[int, int, str], float] = {}
        for weight, part in zip(self.shares[:, item], self.parts, strict=True):
            for one in part.alternatives(item, RARE * least):
                key = one[:3]
                total[key] = total.get(key, 0.0) + weight * one.confidence
        keys, mass = list(total), np.array(list(total.values()))
        if self.span_scale is not None and keys:
            kind = np.array([self.codec.types.index(key[2]) for key in keys])
            n_tokens = np.array([key[1] - key[0] for key in keys])
            mass = self.span_scale.apply(mass, np.full(len(keys), item), kind, n_tokens)
        both = zip(keys, mass.tolist(), strict=True)
        kept = [Alternative(*key, p) for key, p in both if p >= least]
        kept.sort(key=lambda s: (-s.confidence, s.start, s.end, s.type))
        return self._listed.setdefault((item, least), kept)


def posterior_of_labels(
    crowd: Crowd, codes: NDArray[np.int16], runner: Runner, known: NDArray[np.int16] | None = None
) -> Posterior:
    """Return labels as a posterior that believes each with `CERTAIN`, in legal sequences."""
    # codes int16 [n_tokens], -1 where nothing is known; known int16 [n_tokens]
    n_labels = len(crowd.tagset.tags)
    table = np.full((n_labels, n_labels), (1 - CERTAIN) / max(1, n_labels - 1))
    np.fill_diagonal(table, CERTAIN)
    return _of_table(crowd, table, codes, runner, known)


def posterior_of_probs(crowd: Crowd, probs: Floats, runner: Runner) -> Posterior:
    """Return probabilities of single labels as a posterior."""
    # probs float64 [n_items, J]
    known = probs.sum(axis=1) > 0
    rows = np.where(known, np.cumsum(known) - 1, -1).astype(np.int64)
    return _of_table(crowd, np.maximum(probs[known], LEAST_PROB), rows, runner)


def _of_table(
    crowd: Crowd, table: Floats, rows: NDArray[np.integer], runner: Runner,
    gold: NDArray[np.int16] | None = None,
) -> Posterior:  # fmt: skip
    """Return the posterior of tokens whose evidence is a row of a table each, -1 for none."""
    codec, n_labels = crowd.tagset, len(crowd.tagset.tags)
    known = rows >= 0
    bounds = np.concatenate([[0], np.cumsum(known)])
    at = bounds[crowd.offsets]
    evidence = Evidence(
        crowd.offsets, bounds, rows[known].astype(np.int32), at[1:] > at[:-1],
        np.zeros(0, np.int16) if gold is None else gold, np.zeros((0, n_labels)),
    )  # fmt: skip
    truth = np.vstack([codec.start_mask, codec.mask]).astype(np.float64)
    tables = Tables(np.log(table), table, truth, codec.end_mask.astype(np.float64))
    return Posterior([evidence], tables, codec, runner)
