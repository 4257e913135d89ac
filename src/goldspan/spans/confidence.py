"""How far confidences can be believed: each beside what a constant confidence would have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from goldspan._arrays import plain

N_BINS = 10
LEAST_PROB = 1e-12
"""A probability of 0 for the truth counts as this: one such token is not the end of a mean."""
LEAST_DOUBT = 1e-6
"""The log-loss takes no confidence for nearer to 0 or 1: float32 holds no more near 1."""
LEAST_SURE = 0.2
"""Share of the spans that are the least sure ones."""
NAMES = {
    "ece": "calibration error (ECE)",
    "least_sure_ece": "ECE, least confident fifth",
    "brier": "Brier score",
    "log_loss": "log-loss",
    "auroc": "right from wrong (AUROC)",
    "cross_entropy": "cross-entropy per token",
}


@dataclass(frozen=True)
class ConfidenceScore:
    """Confidences of written spans against the truth; NaN where nothing can be said.

    Where there are no spans, single labels count instead.
    """

    unit: str  # "span" or "label"
    n: int  # How many were compared
    right: float  # Share of them that is right (a span: bounds and type)
    mean: float
    ece: float  # Expected calibration error
    least_sure_ece: float  # The same of the fifth with the smallest confidences
    brier: float  # Mean of (confidence − right)²
    log_loss: float  # Mean of −ln of the confidence if right, of 1 minus it if wrong, in nats
    auroc: float  # Probability that a right one has a larger confidence than a wrong one
    n_tokens: int  # Tokens with truth and a label
    cross_entropy: float  # Their mean −ln P(true tag), in nats
    # The same measures of a constant confidence that knows the truth's own share `right`
    constant: Mapping[str, float] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, None for NaN."""
        return dict(plain(asdict(self)))

    def __str__(self) -> str:
        """Print a table: the measures, and those of a constant confidence."""
        summary = f"mean {self.mean:.3f}, share right {self.right:.3f}"
        lines = [
            f"confidence of {self.n} {self.unit}s: {summary}",
            f'"constant": the same measures if every {self.unit} had confidence {self.right:.3f}',
            f"{'':<30}{'measured':>10}{'constant':>10}",
        ]
        for name, text in NAMES.items():
            if name == "cross_entropy" and not self.n_tokens:
                continue
            lines.append(f"{text:<30}{getattr(self, name):10.4f}{self.constant[name]:10.4f}")
        return "\n".join(lines)


def score_confidence(
    unit: str,  # "span" or "label"
    confidence: ArrayLike,  # float [n], of the written spans or labels
    is_right: ArrayLike,  # bool [n]
    true_probs: ArrayLike,  # float [n_tokens], probability of the true tag
    written_right: ArrayLike,  # bool [n_tokens], whether the written tag is the true one
    n_labels: int,  # Number of tags: a constant confidence spreads the rest over the others
) -> ConfidenceScore:
    """Measure confidences."""
    sure, right = np.asarray(confidence, np.float64), np.asarray(is_right, np.float64)
    share = float(right.mean()) if len(right) else float("nan")
    tokens = np.asarray(true_probs, np.float64)
    n_least = int(np.ceil(LEAST_SURE * len(sure)))
    least = np.argsort(sure, kind="stable")[:n_least]
    accuracy = _mean(np.asarray(written_right, np.float64))
    steady = np.full(len(sure), share)

    def measures(confidence: NDArray[np.float64]) -> dict[str, float]:
        return {
            "ece": calibration_error(confidence, right),
            "least_sure_ece": calibration_error(confidence[least], right[least]),
            "brier": _mean((confidence - right) ** 2),
            "log_loss": log_loss(confidence, right),
            "auroc": auroc(confidence, right),
        }

    constant = {**measures(steady), "cross_entropy": _spread_entropy(accuracy, n_labels)}
    return ConfidenceScore(
        unit=unit,
        n=len(sure),
        right=share,
        mean=_mean(sure),
        **measures(sure),
        n_tokens=len(tokens),
        cross_entropy=_mean(-np.log(np.clip(tokens, LEAST_PROB, 1))),
        constant=constant,
    )


def bins_of(confidence: NDArray[np.float64], n_bins: int = N_BINS) -> NDArray[np.int64]:
    """Return the bin of equal width of every confidence; a bin holds its upper edge."""
    # Rounded, so that what is 0.9 as float32 falls where 0.9 does.
    places = np.ceil(np.round(np.round(confidence, 6) * n_bins, 6)).astype(np.int64) - 1
    return np.clip(places, 0, n_bins - 1)


def calibration_error(confidence: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """Return the expected calibration error over `N_BINS` bins; NaN without any."""
    if not len(confidence):
        return float("nan")
    gaps = np.bincount(bins_of(confidence), np.round(confidence, 6) - right, N_BINS)
    return float(np.abs(gaps).sum() / len(confidence))


def log_loss(confidence: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """Return the mean −ln of the probability of what is so, in nats; NaN without any."""
    sure = np.clip(confidence, LEAST_DOUBT, 1 - LEAST_DOUBT)
    return _mean(-(right * np.log(sure) + (1 - right) * np.log1p(-sure)))


def auroc(confidence: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """Return the area under the ROC curve, ties half; NaN if all are right or all wrong."""
    from scipy.stats import rankdata

    n_right = int(right.sum())
    n_wrong = len(right) - n_right
    if not n_right or not n_wrong:
        return float("nan")
    total = float(rankdata(confidence)[right > 0].sum())
    return (total - n_right * (n_right + 1) / 2) / (n_right * n_wrong)


def _spread_entropy(accuracy: float, n_labels: int) -> float:
    """Return the cross-entropy if every written tag has `accuracy`, the others the rest alike."""
    if np.isnan(accuracy):
        return float("nan")
    rest = np.clip((1 - accuracy) / max(1, n_labels - 1), LEAST_PROB, 1)
    own = np.clip(accuracy, LEAST_PROB, 1)
    return float(-accuracy * np.log(own) - (1 - accuracy) * np.log(rest))


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else float("nan")
