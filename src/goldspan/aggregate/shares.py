"""Shares of votes: of answers that agree with a result, on items, on spans, and per worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.crowd import Crowd
from goldspan.crowd.measures import share, worker_rates
from goldspan.spans import Tagged, find_spans

if TYPE_CHECKING:
    from goldspan.aggregate.consensus import Consensus


def _answer_sums(crowd: Crowd, values: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Sum over the labels of every answer, int64 [n_answers]."""
    totals = np.concatenate([[0], np.cumsum(values)])
    return np.asarray(totals[crowd.latest.offset[1:]] - totals[crowd.latest.offset[:-1]])


def item_shares(
    crowd: Crowd, codes: NDArray[np.int16], weight: NDArray[np.float64] | None = None
) -> NDArray[np.float32]:
    """Share of the item's answers that agree with all of its tags, float32 [n_items].

    Args:
        crowd: Who answered what.
        codes: int16 [n_tokens], the result.
        weight: float64 [n_workers], not negative, what an answer counts; None: all the same.
    """
    given = crowd.latest.codes
    wrong = _answer_sums(crowd, (given >= 0) & (given != codes[crowd.token_of])) > 0
    counts = _answer_weights(crowd, weight)
    right = np.bincount(crowd.latest.item, ~wrong * counts, crowd.n_items)
    return _shares(right, np.bincount(crowd.latest.item, counts, crowd.n_items))


def span_shares(
    crowd: Crowd, codes: NDArray[np.int16], weight: NDArray[np.float64] | None = None
) -> NDArray[np.float32]:
    """Share of the item's answers with exactly this span, for the spans of `codes`.

    Args:
        crowd: Who answered what.
        codes: int16 [n_tokens], the result.
        weight: As for `item_shares`.
    """
    spans = find_spans(Tagged(codes, crowd.offsets), crowd.tagset)
    answers = crowd.latest
    given = find_spans(Tagged(answers.codes, answers.offset), crowd.tagset)
    shift = crowd.offsets[answers.item] - answers.offset[:-1]
    start, end = given.start + shift[given.item], given.end + shift[given.item]
    number = np.full(crowd.n_tokens, -1, np.int64)
    number[spans.start] = np.arange(len(spans))
    at = number[start]
    same = at >= 0
    same[same] = (spans.end[at[same]] == end[same]) & (spans.type[at[same]] == given.type[same])
    counts = _answer_weights(crowd, weight)
    votes = np.bincount(at[same], counts[given.item[same]], len(spans))
    return _shares(votes, np.bincount(answers.item, counts, crowd.n_items)[spans.item])


def agreement_table(result: Consensus) -> pa.Table:
    """Per worker: answers, labels, agreement with the result on tokens and on exact spans."""
    crowd, codes = result.crowd, result.codes
    given = crowd.latest.codes
    known = given >= 0
    workers = crowd.worker_of[known]
    n_labels = np.bincount(workers, minlength=crowd.n_workers)
    same = np.bincount(workers, (given == codes[crowd.token_of])[known], crowd.n_workers)
    n_answers = np.bincount(crowd.latest.worker, minlength=crowd.n_workers)
    columns = {
        "worker": crowd.worker_ids,
        "answers": pa.array(n_answers),
        "labels": pa.array(n_labels),
        "token_agreement": pa.array(share(same, n_labels)),
    }
    if not crowd.tagset.rules.is_plain:
        rates = worker_rates(crowd, codes)
        columns["span_agreement"] = pa.array(
            [r.f1 if r.n_true + r.n_predicted else float("nan") for r in rates]
        )
    return pa.table(columns)


def _answer_weights(crowd: Crowd, weight: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """What every answer counts, float64 [n_answers]."""
    answers = crowd.latest
    return np.ones(len(answers)) if weight is None else np.asarray(weight[answers.worker])


def _shares(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[np.float32]:
    """Divide; 0 where there is nothing."""
    found = np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
    return np.asarray(np.clip(found, 0, 1), np.float32)
