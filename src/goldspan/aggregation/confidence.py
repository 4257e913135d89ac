"""How far the confidences of a result can be believed, against a truth matched by item."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan._arrays import count_between, rows_of
from goldspan.crowd import Crowd
from goldspan.crowd.labels import joined, translate
from goldspan.spans import Tagged, find_spans
from goldspan.spans.confidence import ConfidenceScore, score_confidence
from goldspan.spans.scoring import align_by_id, item_keys, right_spans


def measure_confidence(
    crowd: Crowd,  # With the labels of the result as its gold
    token_probs: NDArray[np.float32] | None,  # [n_tokens, J]
    token_confidence: NDArray[np.float32],  # [n_tokens], used for plain labels only
    span_confidence: NDArray[np.float32],  # [n_spans]
    truth: Any,  # What `goldspan.spans.score` takes as the truth
    encoding: str | None,
) -> ConfidenceScore:
    """Measure confidences; see `ConfidenceScore`.

    Only items on both sides count, and spans whose truth is known throughout. Crowds of plain
    labels have no spans: there the labels count.
    """
    codes = crowd.gold_tagged.codes
    gold, _, codec = align_by_id(truth, crowd, encoding)
    place = {key: n for n, key in enumerate(crowd.item_ids.to_pylist())}
    which = np.array([place[key] for key in item_keys(truth, crowd) if key in place], np.int64)
    every = joined(crowd.tagset, codec)
    true = np.full(crowd.n_tokens, -1, np.int16)
    true[rows_of(crowd.offsets, which)[1]] = translate(gold.codes, codec, every)
    written = translate(codes, crowd.tagset, every)
    known = np.flatnonzero((true >= 0) & (written >= 0))
    right = (true == written)[known]
    if token_probs is None:
        probs, tokens_right = np.zeros(0), right[:0]
    else:
        mine = np.array([crowd.tagset.index.get(tag, -1) for tag in every.tags], np.int64)
        own = mine[true[known]]
        probs = np.where(own >= 0, token_probs[known, np.maximum(own, 0)], 0.0)
        tokens_right = right
    if every.rules.is_plain:
        sure = token_confidence[known]
        return score_confidence("label", sure, right, probs, tokens_right, len(every.tags))
    spans = find_spans(Tagged(written, crowd.offsets), every)
    there = find_spans(Tagged(true, crowd.offsets), every)
    kept = count_between(true < 0, spans.start, spans.end) == 0
    is_right = right_spans(there, spans, len(true))[kept]
    sure = span_confidence[kept]
    return score_confidence("span", sure, is_right, probs, tokens_right, len(every.tags))
