"""The machine a second time: dense tables, plain NumPy, and a sum over all J^T truths of an item.

It follows docs/math.md, sections 3, 4 and 7, and shares no code with the engine: answers are lists,
tables have every cell, whether it occurs or not, and nothing is scaled.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise, product

import numpy as np
from scipy.special import digamma, gammaln, logsumexp

from goldspan.crowd import Crowd, CrowdBuilder, ReadOptions
from goldspan.spans import Codec, parse

MODELS = ("acc", "mace", "cv", "cm", "seq")


# Crowds


def crowd_of(codec: Codec, items, *, workers=None, tokens=None) -> Crowd:
    """Make a crowd of one mapping from worker numbers to codes (-1 skipped) per item."""
    n_workers = workers or 1 + max(max(item, default=0) for item in items)
    builder = CrowdBuilder(ReadOptions(encoding=codec.encoding))
    everything = list(codec.tags)
    place = builder.add_item("all tags", ["x"] * len(everything), gold=everything)
    for k in range(n_workers):
        builder.add_answer(place, f"w{k}", everything)
    for n, item in enumerate(items):
        length = len(tokens[n]) if tokens else len(next(iter(item.values())))
        words = tokens[n] if tokens else [f"t{i}" for i in range(length)]
        place = builder.add_item(f"s{n}", words)
        for k, codes in item.items():
            builder.add_answer(place, f"w{k}", [codec.tags[c] if c >= 0 else None for c in codes])
    crowd = builder.build().select_items(np.arange(1, len(items) + 1)).with_gold(None)
    assert crowd.tagset.tags == codec.tags
    return crowd


def random_items(rng, codec: Codec, *, n_items=3, n_workers=3, longest=4, skip=0.2, absent=0.2):
    """Draw answers without regard to what is legal; every item has at least one answer."""
    items = []
    for _ in range(n_items):
        length = int(rng.integers(1, longest + 1))
        truth = rng.integers(len(codec.tags), size=length)
        item = {}
        for k in range(n_workers):
            noise = rng.integers(len(codec.tags), size=length)
            codes = np.where(rng.random(length) < 0.7, truth, noise)
            codes[rng.random(length) < skip] = -1
            if rng.random() >= absent:
                item[k] = codes.tolist()
        item.setdefault(int(rng.integers(n_workers)), truth.tolist())
        items.append(dict(sorted(item.items())))
    return items


def legal_paths(codec: Codec, length: int, *, masked: bool = True) -> np.ndarray:
    """List all truths of an item, int [n_paths, length]; only well-formed ones if `masked`."""
    paths = np.array(list(product(range(len(codec.tags)), repeat=length)))
    if not masked or codec.rules.is_plain:
        return paths
    ok = codec.start_mask[paths[:, 0]] & codec.end_mask[paths[:, -1]]
    for t in range(1, length):
        ok &= codec.mask[paths[:, t - 1], paths[:, t]]
    return paths[ok]


# One item


@dataclass
class Enumerated:
    """All that can be said of an item's truth."""

    paths: np.ndarray
    log_p: np.ndarray
    log_z: float
    n_labels: int

    @property
    def p(self):
        return np.exp(self.log_p)

    @property
    def marginals(self):
        return np.stack([np.bincount(column, self.p, self.n_labels) for column in self.paths.T])

    @property
    def steps(self):
        """Expected number of every step, [J, J]."""
        found = np.zeros((self.n_labels, self.n_labels))
        for a, b in pairwise(range(self.paths.shape[1])):
            np.add.at(found, (self.paths[:, a], self.paths[:, b]), self.p)
        return found

    @property
    def entropy(self):
        return float(-(self.p * np.where(self.p > 0, self.log_p, 0)).sum())

    def spans(self, codec: Codec) -> dict[tuple[int, int, str], float]:
        """Return the posterior of every span, by reading the tags of every path."""
        found: dict[tuple[int, int, str], float] = {}
        for path, p in zip(self.paths.tolist(), self.p.tolist(), strict=True):
            for span in parse([codec.tags[c] for c in path], codec.encoding, "conlleval"):
                key = (span.start, span.end, span.type)
                found[key] = found.get(key, 0.0) + p
        return found

    def log_of(self, path) -> float:
        (found,) = np.flatnonzero((self.paths == np.asarray(path)).all(axis=1))
        return float(self.log_p[found])


def enumerate_item(evidence, log_start, log_step, log_end, paths) -> Enumerated:
    """Score all paths: evidence [T, J], log_start [J], log_step [J, J], log_end [J]."""
    score = log_start[paths[:, 0]] + log_end[paths[:, -1]]
    for t in range(paths.shape[1]):
        score = score + evidence[t, paths[:, t]]
        if t:
            score = score + log_step[paths[:, t - 1], paths[:, t]]
    log_z = float(logsumexp(score))
    return Enumerated(paths, score - log_z, log_z, len(log_start))


# Distributions


def kl_dirichlet(alpha, beta) -> float:
    """KL(Dir(alpha) || Dir(beta)) of complete vectors along the last axis, summed over the rest."""
    total = alpha.sum(axis=-1, keepdims=True)
    parts = gammaln(beta) - gammaln(alpha) + (alpha - beta) * (digamma(alpha) - digamma(total))
    ends = gammaln(alpha.sum(axis=-1)) - gammaln(beta.sum(axis=-1))
    return float(parts.sum() + ends.sum())


def expected_log(alpha):
    """E ln p of complete Dirichlets along the last axis."""
    return digamma(alpha) - digamma(alpha.sum(axis=-1, keepdims=True))


# Worker models, dense: counts and tables are [K, previous, truth, given]


class DenseDirichlet:
    """cm and seq."""

    def __init__(self, off, bonus, allowed, forbidden):
        n_previous, n = allowed.shape
        self.prior = np.full((n_previous, n, n), float(off)) + bonus * np.eye(n)
        self.prior = np.where(allowed[:, None, :], self.prior, forbidden)

    def update(self, counts, _last):
        alpha = self.prior + counts
        prior = np.broadcast_to(self.prior, alpha.shape)
        return alpha, expected_log(alpha), kl_dirichlet(alpha, prior)


class DenseBeta:
    """acc (pooled) and cv."""

    def __init__(self, off, bonus, n, *, pooled):
        self.right, self.wrong = off + bonus, max(1, n - 1) * off
        self.pooled = pooled

    def update(self, counts, _last):
        n = counts.shape[-1]
        own = counts.sum(axis=1)
        hits = own[:, np.arange(n), np.arange(n)]
        misses = own.sum(axis=2) - hits
        if self.pooled:
            hits, misses = hits.sum(axis=1, keepdims=True), misses.sum(axis=1, keepdims=True)
        alpha = np.stack([self.right + hits, self.wrong + misses], axis=-1)
        prior = np.broadcast_to([self.right, self.wrong], alpha.shape)
        logs = np.broadcast_to(expected_log(alpha), (len(counts), n, 2))
        table = np.repeat(logs[:, :, 1:] - np.log(n - 1), n, axis=2)
        table[:, np.arange(n), np.arange(n)] = logs[:, :, 0]
        return alpha, table[:, None], kl_dirichlet(alpha, prior)


class DenseMace:
    """mace: the latent variable is whether the worker knew."""

    def __init__(self, off, bonus, n):
        self.off, self.n = off, n
        self.knows = np.array([off + bonus, max(1, n - 1) * off])

    def hats(self, alpha, n_workers):
        knows, habit = (
            alpha
            if alpha is not None
            else (np.tile(self.knows, (n_workers, 1)), np.full((n_workers, self.n), self.off))
        )
        return np.exp(expected_log(knows)), np.exp(expected_log(habit))

    def update(self, counts, last):
        own, n = counts.sum(axis=1), self.n
        knows, habit = self.hats(last, len(counts))
        kappa = knows[:, :1] / (knows[:, :1] + knows[:, 1:] * habit)
        knew = own[:, np.arange(n), np.arange(n)] * kappa
        guessed = own.sum(axis=1) - knew
        alpha = np.stack([knew.sum(axis=1), guessed.sum(axis=1)], axis=-1) + self.knows
        habits = self.off + guessed
        apart = kl_dirichlet(alpha, np.broadcast_to(self.knows, alpha.shape))
        apart += kl_dirichlet(habits, np.full_like(habits, self.off))
        knows, habit = self.hats((alpha, habits), len(counts))
        table = knows[:, :1, None] * np.eye(n) + (knows[:, 1:] * habit)[:, None, :]
        return (alpha, habits), np.log(table)[:, None], apart


# The whole run


@dataclass
class DenseBsc:
    """BSC by enumeration.

    Args:
        codec: The tags.
        items: Answers as for `crowd_of`.
        n_workers: K.
        model: Name of the worker model.
        strict: Whether labels that the encoding forbids after the one before do not count.
        gold: Per item a list of codes, -1 unknown; or None.
        words: Per item word numbers, or None; `n_words` types, the last of them for unknown words.
    """

    codec: Codec
    items: list
    n_workers: int
    model: str
    off: float = 1.25
    bonus: float = 18.75
    forbidden: float = 0.1
    truth_prior: float = 1.0
    at_start: str = "outside"
    after_skip: str = "own"
    strict: bool = False
    gold: list | None = None
    words: list | None = None
    n_words: int = 0
    word_prior: float = 1.0
    chain: bool = True
    trace: list = field(default_factory=list)

    def __post_init__(self):
        n = self.n = len(self.codec.tags)
        outside = -1 if self.codec.rules.is_plain else self.codec.tags.index("O")
        states = n
        self.first, self.later = 0, 0
        if self.model == "seq":
            for name, rule in (("first", self.at_start), ("later", self.after_skip)):
                if rule == "outside" and outside >= 0:
                    setattr(self, name, outside)
                else:
                    setattr(self, name, states)
                    states += 1
        self.n_previous = states if self.model == "seq" else 1
        allowed = np.ones((self.n_previous, n), bool)
        if self.model == "seq" and not self.codec.rules.is_plain:
            allowed[:n] = self.codec.mask
            allowed[n:] = self.codec.start_mask
        self.may_follow = allowed
        if self.model in {"cm", "seq"}:
            self.workers = DenseDirichlet(self.off, self.bonus, allowed, self.forbidden)
        elif self.model == "mace":
            self.workers = DenseMace(self.off, self.bonus, n)
        else:
            self.workers = DenseBeta(self.off, self.bonus, n, pooled=self.model == "acc")
        self.allowed = np.vstack([self.codec.start_mask, self.codec.mask])
        if not self.chain:
            self.allowed = np.ones((1, n), bool)
        self.lengths = [len(next(iter(item.values()))) for item in self.items]

    def labels_of(self, n):
        """Give (token, worker, previous state, label) of every given label of an item."""
        for k, codes in self.items[n].items():
            previous = self.first
            for t, code in enumerate(codes):
                if code < 0:
                    previous = self.later if self.model == "seq" else 0
                    continue
                if not self.strict or self.may_follow[previous, code]:
                    yield t, k, previous if self.model == "seq" else 0, code
                previous = code

    def statistics(self, marginals, steps):
        """Return the counts of workers, truth and words."""
        counts = np.zeros((self.n_workers, self.n_previous, self.n, self.n))
        truth = np.zeros_like(self.allowed, float)
        words = np.zeros((self.n, self.n_words))
        for n, r in enumerate(marginals):
            for t, k, previous, code in self.labels_of(n):
                counts[k, previous, :, code] += r[t]
            if self.chain:
                truth[0] += r[0]
                truth[1:] += steps[n]
            else:
                truth[0] += r.sum(axis=0)
            if self.words:
                for t, word in enumerate(self.words[n]):
                    words[:, word] += r[t]
        return counts, truth * self.allowed, words

    def begin(self):
        """Start from the shares of votes, neighbours independent."""
        marginals, steps = [], []
        for n, length in enumerate(self.lengths):
            r = np.zeros((length, self.n))
            for t, _, _, code in self.labels_of(n):
                r[t, code] += 1
            total = r.sum(axis=1, keepdims=True)
            r = np.where(total > 0, r / np.maximum(total, 1), 1 / self.n)
            if self.gold:
                for t, code in enumerate(self.gold[n]):
                    if code >= 0:
                        r[t] = np.eye(self.n)[code]
            marginals.append(r)
            steps.append(sum((np.outer(a, b) for a, b in pairwise(r)), np.zeros((self.n, self.n))))
        return self.statistics(marginals, steps)

    def run(self, n_steps):
        """Do some steps; gives the enumerated items of the last."""
        counts, truth, words = self.begin()
        alpha = None
        for _ in range(n_steps):
            alpha, table, apart = self.workers.update(counts, alpha)
            log_truth = np.full(self.allowed.shape, -np.inf)
            for row, ok in enumerate(self.allowed):
                gamma = self.truth_prior + truth[row, ok]
                log_truth[row, ok] = expected_log(gamma)
                apart += kl_dirichlet(gamma, np.full_like(gamma, self.truth_prior))
            log_words = np.zeros((self.n, self.n_words))
            if self.words:
                omega = self.word_prior + words
                log_words = expected_log(omega)
                apart += kl_dirichlet(omega, np.full_like(omega, self.word_prior))
            found = [self.item(n, table, log_truth, log_words) for n in range(len(self.items))]
            self.trace.append(sum(one.log_z for one in found) - apart)
            self.alpha, self.counts = alpha, counts
            counts, truth, words = self.statistics(
                [one.marginals for one in found], [one.steps for one in found]
            )
        return found

    def item(self, n, table, log_truth, log_words):
        """Enumerate an item."""
        evidence = np.zeros((self.lengths[n], self.n))
        for t, k, previous, code in self.labels_of(n):
            evidence[t] += table[k, previous, :, code]
        if self.words:
            for t, word in enumerate(self.words[n]):
                evidence[t] += log_words[:, word]
        if self.gold:
            for t, code in enumerate(self.gold[n]):
                if code >= 0:
                    evidence[t, np.arange(self.n) != code] = -np.inf
        paths = legal_paths(self.codec, self.lengths[n], masked=self.chain)
        if self.chain:
            end = np.where(self.codec.end_mask, 0.0, -np.inf)
            return enumerate_item(evidence, log_truth[0], log_truth[1:], end, paths)
        same = np.tile(log_truth[0], (self.n, 1))
        return enumerate_item(evidence, log_truth[0], same, np.zeros(self.n), paths)
