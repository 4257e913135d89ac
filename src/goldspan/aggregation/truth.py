"""What known items teach about the others: which spans are right, and which types are confused.

Known labels are clamped, and teach workers and text models. Answers alone cannot show a mistake
that the whole crowd makes; known items do. For half of them at a time everything is fitted as if
they were not known, so that it is seen what would have been written there. Then, l the log-odds
that a span is right and x what is known of it (`auto_spans`),

    logit P(right) = l + w x,    w normal with mean 0,

and the type of a span, t, is what the crowd reads as u with

    P(t | u, words) ∝ (P(u = t) + SMALL) exp(B[u*, t] + V[t] words),    B, V normal with mean 0,

u* the likeliest reading, `words` those of the span, around it and of its document. Either is used
only if cross-validation over the known items shows clearly that it helps, whole documents left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, hstack
from scipy.special import expit, log_softmax, softmax
from scipy.stats import wilcoxon

from goldspan.crowd import Crowd
from goldspan.spans import Tagged, find_spans
from goldspan.spans.notebook import counted

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PRECISIONS = (100.0, 30.0, 10.0, 3.0, 1.0)
"""Of the weights w, tried by cross-validation."""
TEXT_PRECISION = 3.0
"""Of B and V; 1 to 30 make the same F1 to .3."""
SMALL = 0.02
LEAST_SPANS = 20
"""True spans in known items from which anything is learned."""
LEVEL = 0.01
"""Of the tests that something helps."""
N_FOLDS = 10
CLEARLY = 3.0
"""Standard errors by which a change of the mean probability must help."""


@dataclass(frozen=True, eq=False)
class Seen:
    """Spans in known items, as if these were not known."""

    rows: Ints  # [n_spans, 4]: item, first token, one past the last, type
    odds: Floats  # [n_spans], log-odds that they are right
    features: Floats  # [n_spans, n_features]
    is_right: NDArray[np.bool_]  # [n_spans]
    group: Ints  # [n_spans], document
    n_true: int  # True spans of the known items


@dataclass(frozen=True, eq=False)
class Correction:
    """What is added to the log-odds of spans."""

    by_level: Floats  # [3], for a constant, the log-odds and spans that nobody gave
    weights: Floats | None  # [n_features], None where features do not help clearly
    moves_level: bool  # Whether the mean probability changes for the choice of spans, too
    sure: Floats  # [3 + n_features], for confidences

    def choose(self, odds: Floats, features: Floats, is_open: NDArray[np.bool_]) -> Floats:
        """Return the probabilities by which spans are chosen, float64 [n_spans]."""
        added = _level(odds, features) @ self.by_level if self.moves_level else 0.0
        if self.weights is not None:
            added = _design(odds, features) @ self.weights
        found = odds + added
        if not self.moves_level:
            found[is_open] += _shift(found[is_open], expit(odds[is_open]).sum())
        return np.asarray(expit(found))

    def confidence(self, odds: Floats, features: Floats) -> Floats:
        """Return how probably spans are right, float64 [n_spans]."""
        return np.asarray(expit(odds + _design(odds, features) @ self.sure))


def _level(odds: Floats, features: Floats) -> Floats:
    return np.column_stack([np.ones(len(odds)), odds, features[:, 0]])


def _design(odds: Floats, features: Floats) -> Floats:
    return np.column_stack([_level(odds, features), features[:, 1:]])


def _shift(odds: Floats, total: float) -> float:
    """Return what to add to log-odds so that the probabilities sum to a total."""
    low, high = -20.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if expit(odds + middle).sum() > total else (middle, high)
    return (low + high) / 2


def learn(seen: Seen) -> Correction | None:
    """Learn which spans are right; None if too little is known, or nothing helps.

    The first feature is whether nobody gave the span.
    """
    if seen.n_true < LEAST_SPANS:
        return None
    level, every = (make(seen.odds, seen.features) for make in (_level, _design))
    before = _by_group(seen, seen.odds)
    (plain, by_level), (full, by_all) = (_best(seen, design) for design in (level, every))
    helps = _is_clear(full - plain)
    kept = full if helps else plain
    gains = [(0.0, np.zeros(every.shape[1]))]
    padded = np.append(by_level, np.zeros(every.shape[1] - 3))
    gains += [((plain - before).sum(), padded), ((full - before).sum(), by_all)]
    moves = _ratio(kept - before) > CLEARLY
    sure = max(gains, key=lambda one: one[0])[1]
    if not (helps or moves or sure.any()):
        return None
    return Correction(by_level, by_all if helps else None, moves, sure)


def _best(seen: Seen, design: Floats) -> tuple[Floats, Floats]:
    """Return the log-likelihood per document with the best precision, left out, and the weights."""
    found = []
    for precision in PRECISIONS:
        odds = seen.odds.copy()
        for out in _folds(seen.group):
            own = _logistic(seen.odds[~out], design[~out], seen.is_right[~out], precision)
            odds[out] += design[out] @ own
        found.append((_by_group(seen, odds), precision))
    best, precision = max(found, key=lambda one: one[0].sum())
    return best, _logistic(seen.odds, design, seen.is_right, precision)


def _folds(group: Ints) -> Iterator[NDArray[np.bool_]]:
    """Leave out documents, a tenth of them at a time."""
    names = np.random.default_rng(0).permutation(np.unique(group))
    for n in range(min(N_FOLDS, len(names))):
        yield np.isin(group, names[n::N_FOLDS])


def _by_group(seen: Seen, odds: Floats) -> Floats:
    """Return the log-likelihood of every document, float64 [n_groups]."""
    likelihood = -np.logaddexp(0, np.where(seen.is_right, -odds, odds))
    return np.asarray(
        np.bincount(np.unique(seen.group, return_inverse=True)[1], likelihood), np.float64
    )


def _logistic(
    offset: Floats, design: Floats, is_right: NDArray[np.bool_], precision: float
) -> Floats:
    """Fit a logistic regression by Newton's method; the constant is free, but for a prior of 1."""
    penalty = np.full(design.shape[1], precision)
    penalty[0] = 0.3
    weights = np.zeros(design.shape[1])
    for _ in range(25):
        probs = expit(offset + design @ weights)
        slope = design.T @ (is_right - probs) - penalty * weights
        curve = (design * (probs * (1 - probs))[:, None]).T @ design + np.diag(penalty)
        step = np.linalg.solve(curve, slope)
        weights = weights + step * min(1.0, 3.0 / max(1e-9, float(np.abs(step).max())))
        if np.abs(step).max() < 1e-6:
            break
    return weights


def _ratio(gain: Floats) -> float:
    spread = float(gain.std()) * np.sqrt(len(gain))
    return float(gain.sum()) / spread if spread > 0 else 0.0


def _is_clear(gain: Floats) -> bool:
    """Return whether most documents gain: a few large gains do not count as much as many."""
    gain = gain[gain != 0]
    if len(gain) < 6 or gain.sum() <= 0:
        return False
    return bool(wilcoxon(gain, alternative="greater").pvalue <= LEVEL)


# --------------------------------------------------------------------------------------------------
# Types that the crowd confuses.


class Words:
    """Features of spans: their words, those around, and those of the document."""

    def __init__(self, crowd: Crowd) -> None:
        flat = pc.replace_substring_regex(pc.utf8_lower(crowd.tokens.flatten()), "[0-9]+", "0")
        coded = flat.dictionary_encode()
        self.code, self.n = coded.indices.to_numpy().astype(np.int64), len(coded.dictionary)
        self.offsets, group = crowd.offsets, crowd.document_of
        self.group = group
        row = np.repeat(group, np.diff(crowd.offsets))
        counts = csr_matrix((np.ones(len(row)), (row, self.code)), (group.max() + 1, self.n))
        n_with = np.asarray((counts > 0).sum(axis=0)).ravel()
        usual = (n_with > 2) & (n_with < 0.8 * counts.shape[0])
        weight = np.where(usual, np.log(counts.shape[0] / np.maximum(n_with, 1)), 0.0)
        tf = (counts > 0).multiply(weight).tocsr()
        norm = np.sqrt(np.asarray(tf.multiply(tf).sum(axis=1)).ravel())
        self.documents = csr_matrix(tf.multiply(1 / np.maximum(norm, 1e-9)[:, None]))

    def of(self, rows: Ints) -> csr_matrix:
        """Return the features of spans, [n_spans, n_features]."""
        item, begin, stop, _ = rows.T
        base = self.offsets[item]
        first, last = base + begin, base + stop
        n, length = len(rows), stop - begin
        inside = np.repeat(first, length) + np.arange(length.sum())
        inside -= np.repeat(np.cumsum(length) - length, length)
        bag = _one_hot(np.repeat(np.arange(n), length), self.code[inside], n, self.n)
        before = np.where(begin > 0, self.code[np.maximum(first - 1, 0)], self.n)
        after = np.where(
            last < self.offsets[item + 1], self.code[np.minimum(last, len(self.code) - 1)], self.n
        )
        every = np.arange(n)
        sizes = np.minimum(length, 5)
        return csr_matrix(
            hstack([
                bag, _one_hot(every, before, n, self.n + 1), _one_hot(every, after, n, self.n + 1),
                _one_hot(every, sizes, n, 6), self.documents[self.group[item]],
            ])
        )  # fmt: skip


def _one_hot(row: Ints, column: Ints, n_rows: int, n_columns: int) -> csr_matrix:
    return csr_matrix((np.ones(len(row)), (row, column)), (n_rows, n_columns))


@dataclass(frozen=True, eq=False)
class Places:
    """Spans without their types."""

    rows: Ints  # [n_places, 4], the type is that of some span there
    of: Ints  # [n_spans], the place of every span
    shares: Floats  # [n_places, n_types], probability of every type there, right or not

    @classmethod
    def find(cls, rows: Ints, probs: Floats, n_types: int) -> Places:
        """Group spans."""
        _, first, of = np.unique(rows[:, :3], axis=0, return_index=True, return_inverse=True)
        of = of.reshape(-1)
        shares = np.zeros((len(first), n_types))
        np.add.at(shares, (of, rows[:, 3]), probs)
        return cls(rows[first], of, shares)

    @property
    def offset(self) -> Floats:
        """Log of the shares of the types, float64 [n_places, n_types]."""
        total = np.maximum(self.shares.sum(axis=1, keepdims=True), 1e-12)
        return np.asarray(np.log(self.shares / total + SMALL))


@dataclass(frozen=True, eq=False)
class Retyper:
    """Which type a span has that the crowd reads as another."""

    words: Words
    columns: Ints  # Features that known spans have
    weights: Floats  # [n_columns, n_types]
    confusions: Floats  # [n_types, n_types]: read as, true
    seen: Counter[tuple[int, int, bool]]  # Changes in known items: from, to, whether right

    def types(self, places: Places) -> Floats:
        """Return the probabilities of types, float64 [n_places, n_types]."""
        features = self.words.of(places.rows)[:, self.columns]
        return _types(places.offset, features, self.weights, self.confusions)

    def apply(
        self, rows: Ints, probs: Floats, sure: Floats, is_open: NDArray[np.bool_]
    ) -> tuple[Ints, Floats, Floats]:
        """Return the spans of open items with other types, their probabilities and confidences."""
        rows, probs, sure = rows.copy(), probs.copy(), sure.copy()
        which = np.flatnonzero(is_open)
        places = Places.find(rows[which], probs[which], self.weights.shape[1])
        total, share = np.minimum(places.shares.sum(axis=1), 1.0), self.types(places)
        all_sure = np.minimum(np.bincount(places.of, sure[which], len(share)), 1.0)
        rank = np.argsort(-share, axis=1, kind="stable")
        order = np.lexsort((-probs[which], places.of))
        own = places.of[order]
        nth = np.arange(len(own)) - np.searchsorted(own, own)
        kind = rank[own, nth]
        rows[which[order], 3] = kind
        probs[which[order]] = share[own, kind] * total[own]
        sure[which[order]] = share[own, kind] * all_sure[own]
        return rows, probs, sure

    def notes(self, types: Sequence[str], old: Ints, new: Ints, probs: Floats) -> list[str]:
        """Say which types of likely spans changed most, and how many such changes were right."""
        changed = (old != new) & (probs > 0.5)
        pairs = Counter(zip(old[changed].tolist(), new[changed].tolist(), strict=True))
        found = []
        for (one, other), n in pairs.most_common(3):
            right, wrong = self.seen[one, other, True], self.seen[one, other, False]
            how = f"{right} of {right + wrong} such changes in these, left out in turn, are right"
            found.append(
                f"{counted(n, 'span')} that the crowd reads as {types[one]}: taken for "
                f"{types[other]} after known items ("
                f"{how if right + wrong else 'none of these would change so'})"
            )
        return found


def _types(offset: Floats, features: csr_matrix, weights: Floats, confusions: Floats) -> Floats:
    odds = offset + features @ weights + confusions[offset.argmax(axis=1)]
    return np.asarray(softmax(odds, axis=1))


def learn_types(crowd: Crowd, seen: Seen, probs: Floats, known: Tagged) -> Retyper | None:
    """Learn which types are confused; None if it does not help."""
    n_types = len(crowd.tagset.types)
    if n_types < 2 or seen.n_true < LEAST_SPANS:
        return None
    spans = find_spans(known, crowd.tagset)
    base = crowd.offsets[spans.item]
    places = zip(
        spans.item.tolist(), (spans.start - base).tolist(), (spans.end - base).tolist(), strict=True
    )
    true = dict(zip(places, spans.type.tolist(), strict=True))
    every = Places.find(seen.rows, probs, n_types)
    kind = np.array([true.get((i, a, b), -1) for i, a, b, _ in every.rows.tolist()])
    kept = np.flatnonzero((kind >= 0) & (every.shares.sum(axis=1) > SMALL))
    if len(kept) < LEAST_SPANS:
        return None
    rows, kind, offset = every.rows[kept], kind[kept], every.offset[kept]
    words = Words(crowd)
    features = words.of(rows)
    group = words.group[rows[:, 0]]
    columns = np.unique(features.indices).astype(np.int64)
    features = features[:, columns]
    after = np.zeros(offset.shape)
    for out in _folds(group):
        weights, confusions = _fit_types(offset[~out], features[~out], kind[~out])
        after[out] = _types(offset[out], features[out], weights, confusions)
    at = np.arange(len(kind))
    gain = np.log(np.maximum(after[at, kind], 1e-12)) - log_softmax(offset, axis=1)[at, kind]
    if gain.sum() <= 0:
        return None
    before, new = offset.argmax(axis=1), after.argmax(axis=1)
    changes = zip(before.tolist(), new.tolist(), (new == kind).tolist(), strict=True)
    seen_changes = Counter(one for one in changes if one[0] != one[1])
    return Retyper(words, columns, *_fit_types(offset, features, kind), seen_changes)


def _fit_types(offset: Floats, features: csr_matrix, kind: Ints) -> tuple[Floats, Floats]:
    """Fit the model of types."""
    (n, n_types), n_columns = offset.shape, features.shape[1]
    top, at, shape = offset.argmax(axis=1), np.arange(n), (n_columns, n_types)

    def loss(theta: Floats) -> tuple[float, Floats]:
        weights = theta[: n_columns * n_types].reshape(shape)
        confusions = theta[n_columns * n_types :].reshape(n_types, n_types)
        logs = log_softmax(offset + features @ weights + confusions[top], axis=1)
        slope = np.exp(logs)
        slope[at, kind] -= 1
        by_type = np.zeros((n_types, n_types))
        np.add.at(by_type, top, slope)
        gradient = np.concatenate([(features.T @ slope).ravel(), by_type.ravel()])
        total = TEXT_PRECISION * (theta @ theta) / 2 - logs[at, kind].sum()
        return float(total), gradient + TEXT_PRECISION * theta

    begin = np.zeros(n_types * (n_columns + n_types))
    best = minimize(loss, begin, jac=True, method="L-BFGS-B", options={"maxiter": 100}).x
    return best[: n_columns * n_types].reshape(shape), best[n_columns * n_types :].reshape(
        n_types, n_types
    )
