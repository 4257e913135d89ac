"""Every path of a small chain, by hand: what the kernels must agree with."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np

from goldspan.spans import Codec, Tagged, find_spans
from goldspan.tagger.decoding import Potentials


def log_scores(potentials):
    """All paths of the single item with their log scores, -inf for the impossible ones."""
    p = potentials
    length, n_labels = p.unary.shape
    paths = list(product(range(n_labels), repeat=length))
    scores = []
    for path in paths:
        score = p.start[path[0]] + p.end[path[-1]]
        score += sum(p.unary[t, j] for t, j in enumerate(path))
        score += sum(p.step[i, j] for i, j in pairwise(path))
        scores.append(score)
    return paths, np.array(scores)


def distribution(potentials):
    """All possible paths of the single item, their probabilities, and ln Z."""
    paths, scores = log_scores(potentials)
    log_z = np.logaddexp.reduce(scores)
    probs = np.exp(scores - log_z)
    kept = [n for n in range(len(paths)) if np.isfinite(scores[n])]
    return [paths[n] for n in kept], probs[kept], float(log_z)


def span_mass(paths, probs, codec):
    """Posterior of every span, by parsing every path."""
    mass = {}
    for path, p in zip(paths, probs, strict=True):
        spans = find_spans(Tagged(np.array(path, np.int16), np.array([0, len(path)])), codec)
        for key in zip(spans.start.tolist(), spans.end.tolist(), spans.type.tolist(), strict=True):
            mass[key] = mass.get(key, 0.0) + p
    return mass


def random_potentials(rng, codec, length, *, hard, scale=1.5):
    n = len(codec.tags)
    parts = [rng.normal(0, scale, shape) for shape in ((length, n), n, (n, n), n)]
    if hard:
        parts[1][~codec.start_mask] = -np.inf
        parts[2][~codec.mask] = -np.inf
        parts[3][~codec.end_mask] = -np.inf
    return Potentials(*parts, np.array([0, length]))


def codecs():
    return [
        Codec.from_types(["A", "B"], "BIO"),
        Codec.from_types(["A", "B"], "IOB"),
        Codec.from_types(["A"], "IOBES"),
        Codec.from_types(["x", "y", "z"], "PLAIN"),
    ]
