"""What a result is worth on some items: against the gold, and against the answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import Consensus
from goldspan.aggregation.plausibility import check_plausibility
from goldspan.aggregation.reliability import reliability
from goldspan.crowd import Crowd
from goldspan.spans import Tagged, find_spans
from goldspan.spans.confidence import LEAST_PROB
from goldspan.spans.corpus import SpanArray
from goldspan.spans.scoring import right_spans, score_codes
from studies.purity.crowds import translated

NAN = float("nan")


@dataclass(frozen=True)
class Scores:
    """A result on some items; NaN where something cannot be said.

    Attributes:
        score: Strict span F1, of single labels accuracy, in per cent.
        precision: Of spans, in per cent.
        recall: Of spans, in per cent.
        relaxed: Relaxed span F1, in per cent; see `relaxed_f1`.
        entropy: Mean of -ln P(gold tag) over tokens with gold and a result, in nats.
        ece: Expected calibration error over ten bins of equal width, of the written spans or of
            single labels.
        brier: Mean of (confidence - right)² over the same.
        overruled: Per cent of the tokens on which three or more workers all agree that have another
            tag.
        unsupported: Per cent of the spans that no worker gave.
        longest: Tokens of the longest span.
        longest_answer: Tokens of the longest span that a worker gave.
    """

    score: float
    precision: float
    recall: float
    relaxed: float
    entropy: float
    ece: float
    brier: float
    overruled: float
    unsupported: float
    longest: float
    longest_answer: float


def score_result(result: Consensus, crowd: Crowd, items: NDArray[np.bool_]) -> Scores:
    """Score a result on some items.

    Items without a known gold tag are left out, and so are spans that touch a token without one.

    Args:
        result: Of the crowd without gold; its tag set may be another.
        crowd: The crowd with gold.
        items: bool [n_items].
    """
    gold = crowd.gold_tagged.codes
    has_gold = np.zeros(crowd.n_items, np.bool_)
    item_of = np.repeat(np.arange(crowd.n_items), np.diff(crowd.offsets))
    has_gold[item_of[gold >= 0]] = True
    part = crowd.select_items(items & has_gold)
    chosen = (items & has_gold)[item_of]
    gold, codec = gold[chosen], crowd.tagset
    codes = translated(result.codes, result.tagset, codec)[chosen]
    signs = check_plausibility(part, codes)
    entropy = _entropy(result, codec.tags, chosen, gold, codes)
    overruled = 100 * signs.n_overruled / signs.n_unanimous if signs.n_unanimous else NAN
    if crowd.is_classification:
        is_right = (codes == gold)[gold >= 0]
        judged = gold[codes >= 0] >= 0
        confidence = result.token_confidence[chosen][codes >= 0][judged]
        sure = (codes == gold)[codes >= 0][judged]
        return Scores(
            100 * float(is_right.mean()) if len(is_right) else NAN, NAN, NAN, NAN, entropy,
            reliability(confidence, sure).ece, _brier(confidence, sure), overruled, NAN, NAN, NAN,
        )  # fmt: skip
    truth, found = Tagged(gold, part.offsets), Tagged(codes, part.offsets)
    rates = score_codes(truth, Tagged(np.where(gold < 0, -1, codes), part.offsets), codec)
    spans, true = find_spans(found, codec), find_spans(truth, codec)
    confidence = result.span_confidence[(items & has_gold)[result.span_array.item]]
    unknown = np.concatenate([[0], np.cumsum(gold < 0)])
    judged = unknown[spans.end] == unknown[spans.start]
    is_right = right_spans(true, spans, len(gold))[judged]
    return Scores(
        100 * rates.f1,
        100 * rates.precision,
        100 * rates.recall,
        100 * relaxed_f1(true, spans, len(gold)),
        entropy,
        reliability(confidence[judged], is_right).ece,
        _brier(confidence[judged], is_right),
        overruled,
        100 * signs.n_unsupported / signs.n_spans if signs.n_spans else NAN,
        float(signs.longest_span),
        float(signs.longest_answer),
    )


def relaxed_f1(gold: SpanArray, found: SpanArray, n_tokens: int) -> float:
    """Return the F1 of spans that counts what is covered (Simpson and Gurevych 2019).

    A found span counts by the share of its tokens that lie in true spans of its type, a true span
    by the share of its tokens that are found with its type.
    """
    parts = [_covered(found, gold, n_tokens), _covered(gold, found, n_tokens)]
    precision, recall = (float(part.mean()) if len(part) else 0.0 for part in parts)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _covered(spans: SpanArray, by: SpanArray, n_tokens: int) -> NDArray[np.float64]:
    """Return the share of every span that lies in others of its type, float64 [n_spans]."""
    shares = np.zeros(len(spans))
    for kind in np.unique(spans.type).tolist():
        edges = np.zeros(n_tokens + 1, np.int64)
        np.add.at(edges, by.start[by.type == kind], 1)
        np.subtract.at(edges, by.end[by.type == kind], 1)
        inside = np.concatenate([[0], np.cumsum(np.cumsum(edges[:-1]) > 0)])
        own = spans.type == kind
        n_inside = inside[spans.end[own]] - inside[spans.start[own]]
        shares[own] = n_inside / (spans.end[own] - spans.start[own])
    return shares


def _entropy(
    result: Consensus,
    tags: tuple[str, ...],
    chosen: NDArray[np.bool_],
    gold: NDArray[np.int16],
    codes: NDArray[np.int16],
) -> float:
    """Compute the cross-entropy; a gold tag that the method does not know has probability 0."""
    place = np.array([result.tagset.index.get(tag, -1) for tag in tags], np.int64)
    known = np.flatnonzero((gold >= 0) & (codes >= 0))
    if not len(known):
        return NAN
    column = place[gold[known]]
    rows = np.flatnonzero(chosen)[known]
    probs = result.token_probs[rows, column].astype(np.float64)
    probs[column < 0] = 0.0
    return float(-np.log(np.clip(probs, LEAST_PROB, 1)).mean())


def _brier(confidence: NDArray[np.float32], is_right: NDArray[np.bool_]) -> float:
    if not len(confidence):
        return NAN
    return float(np.mean((confidence.astype(np.float64) - is_right) ** 2))
