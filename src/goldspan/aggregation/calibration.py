"""Calibration of confidences: measured, and corrected by a temperature where gold allows.

Workers share mistakes, but models take their answers as independent given the truth, so that
posteriors are too sure. Raising all evidence to the power 1 / temperature discounts what is said
again and again; the temperature is the one under which known labels are likeliest (docs/math.md,
section 7).
What is left in the confidences of spans goes through a fitted sigmoid. The labels stay as they are:
only confidences move.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation.bsc.evidence import Tables
from goldspan.aggregation.bsc.posterior import LOGIT_EDGE, Posterior, scaled
from goldspan.aggregation.consensus import Consensus
from goldspan.aggregation.mixture import Mixture
from goldspan.aggregation.reliability import (
    LEAST_PROB,
    judged_spans,
    span_reliability,
    token_cross_entropy,
    token_reliability,
)
from goldspan.crowd import ReadOptions
from goldspan.crowd.gold import attach_gold
from goldspan.errors import InputError

MAX_TEMPERATURE = 20.0
FEW = 100
FEW_SPANS = 50
"""Fewer known tokens are too few to fit a temperature, fewer known spans for the sigmoid."""


@dataclass(frozen=True)
class Calibration:
    """How well calibrated confidences are, against gold.

    Attributes:
        cross_entropy: Mean of -ln P(gold tag) in nats.
        token_error: Expected calibration error of tokens: the mean distance of confidence and
            accuracy over ten bins of equal width, weighted by their size.
        span_error: The same of spans, NaN without spans.
        n_tokens: Tokens with gold and a label.
        n_spans: Spans of the result in items whose gold is known throughout.
    """

    cross_entropy: float
    token_error: float
    span_error: float
    n_tokens: int
    n_spans: int


def measure_calibration(
    result: Consensus, gold: NDArray[np.int16], items: NDArray[np.bool_] | None = None
) -> Calibration:
    """Measure how well calibrated the confidences of a result are.

    Args:
        result: The result.
        gold: int16 [n_tokens], -1 unknown.
        items: bool [n_items], which items to look at; all by default.

    Raises:
        InputError: No token has both gold and a label.
    """
    offsets = result.crowd.offsets
    chosen = np.ones(len(offsets) - 1, np.bool_) if items is None else items
    truth = np.where(np.repeat(chosen, np.diff(offsets)), gold, np.int16(-1)).astype(np.int16)
    tokens, spans = token_reliability(result, truth), span_reliability(result, truth)
    if not tokens.n:
        raise InputError("no token has both gold and a label: calibration cannot be measured")
    cross_entropy = token_cross_entropy(result, truth)
    return Calibration(cross_entropy, tokens.ece, spans.ece, tokens.n, spans.n)


def calibrate(result: Consensus, gold: Any) -> Consensus:
    """Fit a temperature on known labels and return the result with calibrated confidences.

    Args:
        result: Of a Dawid-Skene or BSC method; the known labels must not have been given to `fit`.
        gold: int16 codes [n_tokens] with -1 for unknown, or anything that `read_crowd` takes as
            gold.

    Returns:
        The same labels; token probabilities, span and item confidences and entropies under the
        temperature, which stands in `params` and in the notes.

    Raises:
        InputError: The method has no posterior, or fewer than 100 tokens are known.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd("examples/crowd.tsv")
    >>> result = calibrate(goldspan.aggregate(crowd, "bsc-seq"), crowd)
    >>> result.params["temperature"] > 1
    True
    """
    from scipy.optimize import minimize_scalar

    if not isinstance(result.posterior, Posterior | Mixture):
        raise InputError(
            f"{result.method} has no posterior: use auto, ds, ibcc, mace or a bsc method"
        )
    if "temperature" in result.params:
        raise InputError("this result is calibrated already: calibrate the one that fit gave")
    codes = _codes(result, gold)
    known = np.flatnonzero((codes >= 0) & (result.codes >= 0))
    if len(known) < FEW:
        raise InputError(
            f"only {len(known)} tokens have known labels: a temperature needs at least {FEW}"
        )

    def loss(log_temperature: float) -> float:
        cooled = _cooled(result.posterior, float(np.exp(log_temperature)))
        probs = cooled.marginals(least=np.inf).probs[known, codes[known]]
        return float(-np.log(np.maximum(probs.astype(np.float64), LEAST_PROB)).mean())

    bounds = (-np.log(MAX_TEMPERATURE), np.log(MAX_TEMPERATURE))
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 0.02})
    cooled = at_temperature(result, float(np.exp(found.x)))
    right, kept = judged_spans(result, codes)
    note = f"confidence calibrated on {len(known)} known tokens"
    if kept.sum() >= FEW_SPANS:
        scale = _fit_sigmoid(cooled.span_confidence[kept].astype(np.float64), right[kept])
        masses = scaled(cooled.span_confidence.astype(np.float64), scale)
        cooled = replace(
            cooled,
            span_confidence=masses.astype(np.float32),
            posterior=replace(cooled.posterior, span_scale=scale),
        )
        note += f" and {int(kept.sum())} spans"
    return replace(cooled, notes=(*cooled.notes, note))


def at_temperature(result: Consensus, temperature: float) -> Consensus:
    """Return a result with the confidences of a temperature; 1 changes nothing.

    Raises:
        InputError: The temperature is no positive number, or the method has no posterior.
    """
    if not isinstance(result.posterior, Posterior | Mixture):
        raise InputError(
            f"{result.method} has no posterior: use auto, ds, ibcc, mace or a bsc method"
        )
    if not 0 < temperature < np.inf:
        raise InputError(f"a temperature is a positive number, not {temperature}")
    cooled = with_confidences_of(result, _cooled(result.posterior, temperature))
    return replace(
        cooled,
        params={**result.params, "temperature": temperature},
        notes=(*result.notes, f"confidence at temperature {temperature:.2f}"),
    )


def with_confidences_of(result: Consensus, posterior: Posterior | Mixture) -> Consensus:
    """Return the same labels with the probabilities and confidences of another posterior."""
    last = posterior.marginals(least=np.inf)
    offsets = result.crowd.offsets
    paths, masses = posterior.confidences(result.codes, result.span_array, offsets, last.probs)
    return replace(
        result,
        token_probs=last.probs,
        span_confidence=masses.astype(np.float32),
        confidence=paths.astype(np.float32),
        entropy=last.entropy.astype(np.float32),
        posterior=posterior,
    )


def _fit_sigmoid(mass: NDArray[np.float64], right: NDArray[np.bool_]) -> tuple[float, float]:
    """Fit sigmoid(a + b logit(p)) by likelihood, b not below 0 (Platt 1999)."""
    from scipy.optimize import minimize
    from scipy.special import log_expit, logit

    x = logit(np.clip(mass, LOGIT_EDGE, 1 - LOGIT_EDGE))
    sign = np.where(right, 1.0, -1.0)

    def loss(params: NDArray[np.float64]) -> float:
        return float(-log_expit(sign * (params[0] + params[1] * x)).mean())

    found = minimize(loss, np.array([0.0, 1.0]), bounds=[(-20, 20), (0, 10)], method="L-BFGS-B")
    return float(found.x[0]), float(found.x[1])


def _cooled(posterior: Posterior | Mixture, temperature: float) -> Posterior | Mixture:
    """Return a posterior with the workers' evidence, or all of a mixture's, at a temperature."""
    if isinstance(posterior, Mixture):
        return posterior.cooled(temperature)
    old = posterior.tables
    logs = old.log_table / temperature
    return replace(posterior, tables=Tables(logs, np.exp(logs), old.truth, old.end))


def _codes(result: Consensus, gold: Any) -> NDArray[np.int16]:
    if isinstance(gold, np.ndarray):
        if gold.shape != result.codes.shape or not np.issubdtype(gold.dtype, np.integer):
            raise InputError(f"gold must be {len(result.codes)} whole numbers, codes of tags")
        if gold.size and not -1 <= gold.min() <= gold.max() < len(result.tagset.tags):
            raise InputError(f"codes must lie in -1 … {len(result.tagset.tags) - 1}")
        return gold.astype(np.int16)
    attached = attach_gold(result.crowd.with_gold(None), gold, ReadOptions())
    if attached.tagset.tags == result.tagset.tags:
        return attached.gold_tagged.codes
    # Gold may bring tags that no worker gave: what the result cannot say counts as unknown.
    place = np.array([result.tagset.index.get(tag, -1) for tag in attached.tagset.tags], np.int16)
    codes = attached.gold_tagged.codes
    return np.where(codes >= 0, place[codes], np.int16(-1)).astype(np.int16)
