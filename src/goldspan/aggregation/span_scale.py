"""How likely a written span is right: a logistic model of its confidence and of where it stands.

Workers share mistakes of certain types in certain sorts of text (teams in tables of results that
they call places), which no confidence shows. So the offset of a type may change with the form of
the item and of its document: their lengths, words with digits, words in capitals. Whether it does,
and how much of that is believed, is chosen by cross-validation by document among what is known.
Spans of one document go wrong together: each counts 1 / (1 + (n - 1) rho), with n the known spans
of its document and rho the correlation of their errors (docs/math.md, section 7).
"""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logit

from goldspan.aggregation.bsc.posterior import LOGIT_EDGE, SpanScale
from goldspan.crowd import Crowd
from goldspan.spans.corpus import SpanArray

Floats = NDArray[np.float64]
PENALTIES = (3.0, 10.0, 30.0, 100.0)
"""Precisions that are tried for what items and documents add."""
N_FOLDS = 5
LEAST_SPREAD = 1e-9
SURE = 1e-3
"""Least variance that an error is measured by."""


def fit_span_scale(
    mass: Floats, spans: SpanArray, right: NDArray[np.bool_], kept: NDArray[np.bool_], crowd: Crowd
) -> SpanScale:
    """Fit a scale by penalised likelihood, towards confidences as they are (Platt 1999)."""
    # mass float64 [n_spans]; right bool [n_spans], which of them are right
    # kept bool [n_spans], of which this is known
    n_types = len(crowd.tagset.types)
    document = documents_of(crowd)
    features = _standard(item_features(crowd, document), spans.item)
    types = np.eye(n_types)[spans.type]
    own = features[spans.item]
    alone = np.column_stack(
        [np.ones(len(mass)), logits(mass), np.log(spans.end - spans.start), types]
    )
    beside = [own, *(kind[:, None] * own for kind in types.T)]
    every = np.column_stack([alone, *beside])[kept]
    where, is_right = document[spans.item][kept], right[kept]
    width, n_more = alone.shape[1], every.shape[1] - alone.shape[1]
    plain = np.array([1.0, 4.0, 3.0, *[3.0] * n_types])
    tried = [np.concatenate([plain, np.full(n_more, one)]) for one in PENALTIES if n_more]
    tried = [plain, *tried]
    best = tried[_best(every, is_right, where, tried)]
    theta = np.zeros(every.shape[1])
    theta[: len(best)] = _fit_clustered(every[:, : len(best)], is_right, best, where)
    offset, slope, length, *of_types = theta[:width]
    shared, each = np.split(theta[width:], [features.shape[1]])
    weights = shared + each.reshape(n_types, features.shape[1])
    return SpanScale(offset + np.array(of_types), float(slope), float(length), features, weights)


def documents_of(crowd: Crowd) -> NDArray[np.int64]:
    """Return the number of every item's document; items are their own where there are none."""
    if crowd.groups is None:
        return np.arange(crowd.n_items)
    names = [
        ("item", n) if name is None else ("document", name)
        for n, name in enumerate(crowd.groups.to_pylist())
    ]
    place = {name: n for n, name in enumerate(dict.fromkeys(names))}
    return np.array([place[name] for name in names], np.int64)


def item_features(crowd: Crowd, document: NDArray[np.int64]) -> Floats:
    """Return the form of every item and of its document, float64 [n_items, 6].

    ln tokens, the share of tokens with a digit, the share in capitals; and their means over the
    items of the document.
    """
    words = crowd.tokens.flatten()
    bounds = crowd.offsets
    n_tokens = np.diff(bounds)
    capital = pc.and_(pc.utf8_is_upper(words), pc.greater(pc.utf8_length(words), 1))
    digit = pc.match_substring_regex(words, r"\p{Nd}")
    columns = [np.log(np.maximum(n_tokens, 1))]
    for there in (digit, capital):
        flags = there.to_numpy(zero_copy_only=False).astype(np.float64)
        total = np.concatenate([[0.0], np.cumsum(flags)])
        columns.append((total[bounds[1:]] - total[bounds[:-1]]) / np.maximum(n_tokens, 1))
    size = np.bincount(document)
    means = [(np.bincount(document, column) / size)[document] for column in columns]
    return np.stack([*columns, *means], axis=1)


def fit_logistic(
    x: Floats, right: NDArray[np.bool_], precision: Floats, weights: Floats | None = None
) -> Floats:
    """Fit a logistic regression with normal priors: at 1 for the second column, else at 0.

    The second column's weight, a logit's, is not below 0.
    """
    # x float64 [n, k]; right bool [n]; precision float64 [k], of the priors; weights float64 [n]
    from scipy.optimize import minimize

    sign = np.where(right, 1.0, -1.0)
    counts = np.ones(len(right)) if weights is None else weights
    centre = np.zeros(x.shape[1])
    centre[1] = 1

    def loss(theta: Floats) -> tuple[float, Floats]:
        away, margin = theta - centre, sign * (x @ theta)
        slope = -(x.T @ (counts * sign * expit(-margin))) + precision * away
        return float(-counts @ log_expit(margin) + (precision * away**2).sum() / 2), slope

    bounds = [(0, None) if k == 1 else (None, None) for k in range(x.shape[1])]
    found = minimize(loss, centre, jac=True, bounds=bounds, method="L-BFGS-B")
    return np.asarray(found.x)


def logits(mass: Floats) -> Floats:
    """Return the logits of confidences that are neither 0 nor 1."""
    return np.asarray(logit(np.clip(mass, LOGIT_EDGE, 1 - LOGIT_EDGE)))


def _best(
    x: Floats, right: NDArray[np.bool_], document: NDArray[np.int64], tried: list[Floats]
) -> int:
    """Return which precisions predict left-out documents best; each is for the first columns.

    The first stays where no other is better by more than one standard error over documents.
    """
    names, place = np.unique(document, return_inverse=True)
    if len(names) < 2 * N_FOLDS or len(tried) == 1:
        return 0
    fold = (np.random.default_rng(0).permutation(len(names)) % N_FOLDS)[place.ravel()]
    sign = np.where(right, 1.0, -1.0)
    losses = np.zeros((len(tried), len(names)))
    for m, precision in enumerate(tried):
        own, each = x[:, : len(precision)], np.zeros(len(x))
        for n in range(N_FOLDS):
            rest = fold != n
            theta = _fit_clustered(own[rest], right[rest], precision, document[rest])
            each[~rest] = -log_expit(sign[~rest] * (own[~rest] @ theta))
        losses[m] = np.bincount(place.ravel(), each)
    best = int(losses.sum(axis=1).argmin())
    gain = losses[0] - losses[best]
    return best if gain.sum() > np.sqrt((gain**2).sum()) else 0


def _fit_clustered(
    x: Floats, right: NDArray[np.bool_], precision: Floats, document: NDArray[np.int64]
) -> Floats:
    """Fit, and fit again with the weights of spans whose errors go together in documents."""
    theta = fit_logistic(x, right, precision)
    sure = expit(x @ theta)
    error = (right - sure) / np.sqrt(np.maximum(sure * (1 - sure), SURE))
    place = np.unique(document, return_inverse=True)[1].ravel()
    size = np.bincount(place)
    pairs = (np.bincount(place, error) ** 2 - np.bincount(place, error**2)).sum()
    most = float((size * (size - 1)).sum()) * float((error**2).mean())
    rho = min(1.0, max(0.0, pairs / most)) if most else 0.0
    weights = 1 / (1 + (size[place] - 1) * rho)
    return fit_logistic(x, right, precision, weights / weights.mean())


def _standard(features: Floats, item: NDArray[np.integer]) -> Floats:
    """Give features mean 0 and spread 1 over the written spans; drop those that say nothing."""
    own = features[item]
    spread = own.std(axis=0)
    # Without documents of several items the means are what the items say.
    new = [
        k
        for k in range(features.shape[1])
        if spread[k] > LEAST_SPREAD
        and not any(np.array_equal(features[:, k], features[:, j]) for j in range(k))
    ]
    return np.asarray((features[:, new] - own[:, new].mean(axis=0)) / spread[new])
