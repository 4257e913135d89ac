"""What a result is worth on some items: against the gold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import Consensus
from goldspan.aggregation.reliability import reliability
from goldspan.crowd import Crowd
from goldspan.spans import Tagged, find_spans
from goldspan.spans.scoring import right_spans, score_codes
from studies.purity.crowds import translated

NAN = float("nan")


@dataclass(frozen=True)
class Scores:
    """A result on some items; NaN where something cannot be said.

    Attributes:
        items: How many have gold.
        score: Strict span F1, of single labels accuracy, in per cent.
        precision: Of spans, in per cent.
        recall: Of spans, in per cent.
        ece: Expected calibration error over ten bins of equal width, of the written spans or of
            single labels.
    """

    items: int
    score: float
    precision: float
    recall: float
    ece: float


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
    scored = items & has_gold
    part, chosen, n_items = crowd.select_items(scored), scored[item_of], int(scored.sum())
    gold, codec = gold[chosen], crowd.tagset
    codes = translated(result.codes, result.tagset, codec)[chosen]
    if crowd.is_classification:
        is_right = (codes == gold)[gold >= 0]
        judged = (codes >= 0) & (gold >= 0)
        ece = reliability(result.token_confidence[chosen][judged], (codes == gold)[judged]).ece
        accuracy = 100 * float(is_right.mean()) if len(is_right) else NAN
        return Scores(n_items, accuracy, NAN, NAN, ece)
    truth, found = Tagged(gold, part.offsets), Tagged(codes, part.offsets)
    rates = score_codes(truth, Tagged(np.where(gold < 0, -1, codes), part.offsets), codec)
    spans, true = find_spans(found, codec), find_spans(truth, codec)
    confidence = result.span_confidence[scored[result.span_array.item]]
    unknown = np.concatenate([[0], np.cumsum(gold < 0)])
    judged = unknown[spans.end] == unknown[spans.start]
    ece = reliability(confidence[judged], right_spans(true, spans, len(gold))[judged]).ece
    return Scores(n_items, 100 * rates.f1, 100 * rates.precision, 100 * rates.recall, ece)
