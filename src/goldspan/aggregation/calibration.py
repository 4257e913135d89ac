"""Calibration of confidences: measured, and corrected by a temperature where gold allows.

Workers share mistakes, but models take their answers as independent given the truth, so that
posteriors are too sure. Raising all evidence to the power 1 / temperature discounts what is said
again and again; the temperature is the one under which known labels are likeliest (docs/math.md,
section 7).
What is left in the confidences of spans goes through a fitted sigmoid. The labels stay as they are:
only confidences move.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logit

from goldspan._arrays import count_in_rows
from goldspan.aggregation.bsc.evidence import Tables
from goldspan.aggregation.bsc.posterior import LOGIT_EDGE, Posterior, SpanScale, scaled
from goldspan.aggregation.consensus import Consensus
from goldspan.aggregation.mixture import Mixture
from goldspan.aggregation.reliability import judged_spans
from goldspan.crowd import Crowd, ReadOptions
from goldspan.crowd.gold import attach_gold
from goldspan.errors import InputError
from goldspan.spans.confidence import LEAST_PROB
from goldspan.spans.corpus import SpanArray

Floats = NDArray[np.float64]
MAX_TEMPERATURE = 20.0
PRIOR = 4.0
"""Precision of the normal prior of ln temperature, at 0: few known labels do not move it far."""
FEW = 100
FEW_SPANS = 50
"""Fewer known tokens are too few to fit a temperature, fewer known spans for the sigmoid."""


def calibrate(result: Consensus, gold: Any, *, coverage: float | None = None) -> Consensus:
    """Fit confidences to known labels; the labels of the result stay as they are.

    Probabilities of tokens get a temperature; confidences of spans a sigmoid with an offset per
    type that may change with the form of the item and its document (docs/math.md, section 7).
    Votes have no posterior: their shares are raised to a power and smoothed.

    Args:
        result: Of any method. Labels that were known to `fit` are passed over: the
            result repeats them, so that they say nothing of its confidences.
        gold: int16 codes [n_tokens] with -1 for unknown, or anything that `read_crowd` takes as
            gold.
        coverage: Between 0 and 1: also make a set of alternatives for every written span that
            holds the truth with this probability (`Consensus.sets`; see
            `goldspan.aggregation.conformal`).

    Returns:
        The same labels; token probabilities, span and item confidences and entropies calibrated.
        The temperature stands in `params` and in the notes.

    Raises:
        InputError: The result is calibrated already, fewer than 100 tokens (items of
            single labels) are known that `fit` did not know, or too few documents are known for
            `coverage`.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd("examples/crowd.tsv")
    >>> result = calibrate(goldspan.aggregate(crowd, "bsc-seq"), crowd, coverage=0.9)
    >>> result.params["temperature"] > 1, result.sets.coverage
    (True, 0.9)
    """
    if "temperature" in result.params:
        raise InputError("this result is calibrated already: calibrate the one that fit gave")
    codes, foreign = _codes(result, gold)
    codes, n_given = _not_given(result, codes)
    known = np.flatnonzero((codes >= 0) & (result.codes >= 0))
    what = "items" if result.crowd.is_classification else "tokens"
    left_out = f" ({n_given} that fit was given are passed over)" if n_given else ""
    if len(known) < FEW:
        raise InputError(
            f"only {len(known)} {what} have known labels{left_out}: calibrating needs at least "
            f"{FEW}"
        )
    sets = None
    if coverage is not None:
        from goldspan.aggregation.conformal import conformal_sets

        # By the confidences as they came: those that the known labels have made would be surer of
        # the known documents than of others.
        sets = conformal_sets(result, codes, coverage, foreign)
    has_posterior = isinstance(result.posterior, Posterior | Mixture)
    cooled = (_cool if has_posterior else _cool_shares)(result, codes, known)
    right, kept = judged_spans(result, codes, foreign)
    spans, is_plain = result.span_array, result.tagset.rules.is_plain
    note = f"confidence calibrated on {len(known)} known {what}"
    if is_plain:
        # The confidence of a label that stands alone is that of its token.
        cooled = replace(cooled, span_confidence=cooled.token_confidence[spans.start])
    elif kept.sum() >= FEW_SPANS:
        mass = cooled.span_confidence.astype(np.float64)
        mass = mass if has_posterior else _inner(mass)
        scale = fit_span_scale(mass, spans, right, kept, result.crowd)
        masses = scaled(mass, scale, spans).astype(np.float32)
        cooled = replace(cooled, span_confidence=masses)
        if has_posterior:
            cooled = replace(cooled, posterior=replace(cooled.posterior, span_scale=scale))
        note += f" and {int(kept.sum())} spans"
    notes = [note + left_out] if sets is None else [note + left_out, sets.note]
    return replace(cooled, notes=(*cooled.notes, *notes), sets=sets)


def _cool(result: Consensus, codes: NDArray[np.int16], known: NDArray[np.int64]) -> Consensus:
    """Give a posterior the temperature under which the known labels are likeliest."""
    from scipy.optimize import minimize_scalar

    item = np.searchsorted(result.crowd.offsets, known, side="right") - 1
    there = np.zeros(result.crowd.n_items, np.bool_)
    there[item] = True
    own = result.posterior.of_items(there)

    def loss(log_temperature: float) -> float:
        cooled = _cooled(own, float(np.exp(log_temperature)))
        probs = cooled.marginals(least=np.inf).probs[known, codes[known]]
        fit = -np.log(np.maximum(probs.astype(np.float64), LEAST_PROB)).sum()
        return float(fit + PRIOR * log_temperature**2 / 2) / len(known)

    bounds = (-np.log(MAX_TEMPERATURE), np.log(MAX_TEMPERATURE))
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 0.02})
    return at_temperature(result, float(np.exp(found.x)))


def _cool_shares(
    result: Consensus, codes: NDArray[np.int16], known: NDArray[np.int64]
) -> Consensus:
    """Raise shares of votes to a power and mix them with even ones, and scale items' confidences.

    The item's confidence goes through a sigmoid where enough items are known throughout.
    """
    from scipy.optimize import minimize

    shares = result.token_probs.astype(np.float64)

    def spread(values: Floats, theta: Floats) -> Floats:
        raised = values ** np.exp(-theta[0])
        total = raised.sum(axis=1, keepdims=True)
        even = expit(theta[1])
        mixed = (1 - even) * raised / np.maximum(total, LEAST_PROB) + even / values.shape[1]
        return np.asarray(np.where(total > 0, mixed, 0.0))

    own, place = shares[known], codes[known].astype(np.int64)

    def loss(theta: Floats) -> float:
        probs = spread(own, theta)[np.arange(len(own)), place]
        fit = -np.log(np.maximum(probs, LEAST_PROB)).sum()
        return float(fit + PRIOR * theta[0] ** 2 / 2) / len(own)

    widest = np.log(MAX_TEMPERATURE)
    bounds = [(-widest, widest), (-12, 4)]
    found = minimize(loss, np.array([0.0, -3.0]), bounds=bounds, method="L-BFGS-B")
    probs = spread(shares, found.x)
    confidence = result.confidence.astype(np.float64)
    if result.crowd.is_classification:
        confidence = probs[np.arange(len(probs)), np.maximum(result.codes, 0)]
        confidence = np.where(result.codes >= 0, confidence, 0)
    else:
        judged, right = (
            count_in_rows(lacking, result.crowd.offsets) == 0
            for lacking in ((codes < 0) | (result.codes < 0), codes != result.codes)
        )
        if judged.sum() >= FEW_SPANS:
            x = np.stack([np.ones(len(confidence)), logits(_inner(confidence))], axis=1)
            theta = fit_logistic(x[judged], right[judged], np.array([0.1, 1.0]))
            answered = np.diff(result.crowd.by_item.bounds) > 0
            confidence = np.where(answered, expit(x @ theta), 0)
    temperature = float(np.exp(found.x[0]))
    return replace(
        result,
        token_probs=probs.astype(np.float32),
        confidence=confidence.astype(np.float32),
        params={**result.params, "temperature": temperature},
        notes=(*result.notes, f"shares of votes at temperature {temperature:.2f}"),
    )


def at_temperature(result: Consensus, temperature: float) -> Consensus:
    """Return a result with the confidences of a temperature; 1 changes nothing."""
    if not isinstance(result.posterior, Posterior | Mixture):
        raise InputError(
            f"{result.method} has no posterior: use auto, ds, ibcc, mace or a bsc method"
        )
    if not 0 < temperature < np.inf:
        raise InputError(f"a temperature is a positive number, not {temperature}")
    cooled = _cooled(result.posterior, temperature)
    last = cooled.marginals(least=np.inf)
    offsets = result.crowd.offsets
    paths, masses = cooled.confidences(result.codes, result.span_array, offsets, last.probs)
    return replace(
        result,
        token_probs=last.probs,
        span_confidence=masses.astype(np.float32),
        confidence=paths.astype(np.float32),
        entropy=last.entropy.astype(np.float32),
        posterior=cooled,
        params={**result.params, "temperature": temperature},
        notes=(*result.notes, f"confidence at temperature {temperature:.2f}"),
    )


def _inner(shares: Floats) -> Floats:
    """Draw shares of votes away from 0 and 1, where their logits end."""
    return 0.02 + 0.96 * shares


def _cooled(posterior: Posterior | Mixture, temperature: float) -> Posterior | Mixture:
    """Return a posterior with the workers' evidence, or all of a mixture's, at a temperature."""
    if isinstance(posterior, Mixture):
        return posterior.cooled(temperature)
    old = posterior.tables
    logs = old.log_table / temperature
    return replace(posterior, tables=Tables(logs, np.exp(logs), old.truth, old.end))


def _not_given(result: Consensus, codes: NDArray[np.int16]) -> tuple[NDArray[np.int16], int]:
    """Return the known labels without those that `fit` was given, and the number of these."""
    if result.known is None:
        return codes, 0
    given = (result.known >= 0) & (codes >= 0)
    if given.any() and not (codes[~given] >= 0).any():
        raise InputError(
            "fit was given all these known labels and repeats them: calibrate with labels that it "
            "does not know"
        )
    return np.where(given, np.int16(-1), codes).astype(np.int16), int(given.sum())


def _codes(result: Consensus, gold: Any) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
    """Return known labels as codes of the result, and where they are tags that it cannot say."""
    # The latter are -1 in the codes
    nowhere = np.zeros(len(result.codes), np.bool_)
    if isinstance(gold, np.ndarray):
        if gold.shape != result.codes.shape or not np.issubdtype(gold.dtype, np.integer):
            raise InputError(f"gold must be {len(result.codes)} whole numbers, codes of tags")
        if gold.size and not -1 <= gold.min() <= gold.max() < len(result.tagset.tags):
            raise InputError(f"codes must lie in -1 … {len(result.tagset.tags) - 1}")
        return gold.astype(np.int16), nowhere
    if gold is None:
        raise InputError("calibrate needs known labels: a crowd with gold, a file, or codes")
    attached = attach_gold(result.crowd.with_gold(None), gold, ReadOptions())
    codes = attached.gold_tagged.codes
    if attached.tagset.tags == result.tagset.tags:
        return codes, nowhere
    place = np.array([result.tagset.index.get(tag, -1) for tag in attached.tagset.tags], np.int16)
    found = np.where(codes >= 0, place[codes], np.int16(-1)).astype(np.int16)
    return found, (codes >= 0) & (found < 0)


# --------------------------------------------------------------------------------------------------
# How likely a written span is right: a logistic model of its confidence and of where it stands.


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
    document = crowd.document_of
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


def item_features(crowd: Crowd, document: NDArray[np.int64]) -> Floats:
    """Return the form of every item and of its document, float64 [n_items, 6]."""
    # ln tokens, the share of tokens with a digit, the share in capitals
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
    """Fit a logistic regression with normal priors: at 1 for the second column, else at 0."""
    # The second column's weight, a logit's, is not below 0
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
    """Return which precisions predict left-out documents best; each is for the first columns."""
    # The first stays where no other is better by more than one standard error over documents
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
