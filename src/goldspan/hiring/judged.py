"""Every answer against the truth: how much of it is right, of how much that could be judged."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Crowd
from goldspan.errors import InputError, UnknownNameError
from goldspan.hiring.truth import Truth
from goldspan.spans import SpanArray, Tagged, find_spans
from goldspan.spans.scoring import right_spans

MEASURES = ("accuracy", "token_accuracy", "span_f1")


class Judged(NamedTuple):
    """What is right, per answer in the order of `crowd.latest`.

    Attributes:
        right: float64 [n_answers].
        total: float64 [n_answers], 0 where nothing could be judged.
    """

    right: NDArray[np.float64]
    total: NDArray[np.float64]


def choose_measure(crowd: Crowd, measure: str) -> str:
    """Give the measure that "auto" stands for, and refuse one that does not suit the crowd.

    Raises:
        UnknownNameError: There is no such measure.
        InputError: It does not suit the crowd.
    """
    if measure not in {"auto", *MEASURES}:
        raise UnknownNameError("measure of reliability", measure, ("auto", *MEASURES))
    plain, single = crowd.tagset.rules.is_plain, crowd.is_classification
    if measure == "auto":
        return "accuracy" if single else "token_accuracy" if plain else "span_f1"
    if measure == "accuracy" and not single:
        raise InputError("accuracy is of single labels: for tagged tokens take token_accuracy")
    if measure == "span_f1" and plain:
        raise InputError("span_f1 needs tags with spans, and this crowd has PLAIN labels")
    return measure


def judge_answers(truth: Truth, measure: str, policy: str = "conlleval") -> Judged:
    """Judge every answer.

    Args:
        truth: What is known.
        measure: One of `MEASURES`. Of spans, right are TP, and the total is TP + (FP + FN) / 2, so
            that the share is the F1. Spans of a result count with their confidence; a span that
            the result does not have counts as wrong.
        policy: How malformed tags are read as spans.
    """
    return _spans(truth, policy) if measure == "span_f1" else _labels(truth)


def _labels(truth: Truth) -> Judged:
    right, known = label_probs(truth)
    crowd, answers = truth.crowd, truth.crowd.latest
    if crowd.is_classification:  # an answer is one label
        return Judged(right, known.astype(np.float64))
    answer = np.repeat(np.arange(len(answers)), answers.lengths)
    n = len(answers)
    return Judged(
        np.bincount(answer, right, n).astype(np.float64),
        np.bincount(answer, known, n).astype(np.float64),
    )


def label_probs(truth: Truth) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Give P(truth = label given) of every label of `crowd.latest`, and whether it is known.

    Returns:
        float64 [n_labels], 0 where unknown; bool [n_labels].
    """
    crowd = truth.crowd
    codes, token = crowd.latest.codes, crowd.token_of
    given, right = codes >= 0, np.zeros(len(codes))
    for row in truth.gold:
        right[(row[token] == codes) & given] = 1.0
    judged = truth.known[token] & given
    result = truth.result
    if result is None or judged.all():
        return right, judged
    width = len(result.tagset.tags)
    column = np.array([result.tagset.index.get(tag, width) for tag in crowd.tagset.tags], np.int64)
    rest = given & ~judged & (result.codes >= 0)[token]
    place = column[codes[rest]]
    probs = result.token_probs[token[rest], np.minimum(place, width - 1)]
    right[rest] = np.where(place < width, probs, 0)
    return right, judged | rest


def _spans(truth: Truth, policy: str) -> Judged:
    crowd, answers = truth.crowd, truth.crowd.latest
    theirs, n = truth.codes()[crowd.token_of], len(answers)
    gold = find_spans(Tagged(theirs, answers.offset), crowd.tagset, policy)
    found = find_spans(Tagged(answers.codes, answers.offset), crowd.tagset, policy)
    gold, found = _untouched(gold, answers.codes < 0), _untouched(found, theirs < 0)
    true = _confidence(truth)[crowd.token_of[gold.start]]
    # A pair of equal spans is found from either side.
    is_found = right_spans(found, gold, len(theirs))
    n_right = np.bincount(gold.item, true * is_found, n)
    n_given = np.bincount(found.item, minlength=n)
    n_true = np.bincount(gold.item, true, n)
    return Judged(n_right.astype(np.float64), np.asarray((n_given + n_true) / 2, np.float64))


def _untouched(spans: SpanArray, unknown: NDArray[np.bool_]) -> SpanArray:
    before = np.concatenate([[0], np.cumsum(unknown)])
    return spans.take(before[spans.end] == before[spans.start])


def _confidence(truth: Truth) -> NDArray[np.float64]:
    """That a span which begins at a token is true, float64 [n_tokens]: 1 for gold."""
    found = np.ones(truth.crowd.n_tokens)
    if truth.result is not None:
        found[truth.result.span_array.start] = truth.result.span_confidence
        found[truth.with_gold()] = 1.0
    return found
