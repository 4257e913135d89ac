"""What every two workers of a crowd have in common: the labels and the spans that they share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd.model import Answers, Crowd
from goldspan.spans import SpanArray, Tagged, find_spans


@dataclass(frozen=True)
class TokenPairs:
    """Per pair of workers: names, shared labels, equal ones, and equal ones by chance."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    n: NDArray[np.int64]
    equal: NDArray[np.int64]
    chance: NDArray[np.float64]


def token_pairs(crowd: Crowd) -> TokenPairs:
    """Compare the labels of every two workers on the tokens that both labelled."""
    codes = crowd.latest.codes
    given = np.flatnonzero(codes >= 0)
    order = given[np.lexsort((crowd.worker_of[given], crowd.token_of[given]))]
    token, worker, code = crowd.token_of[order], crowd.worker_of[order], codes[order]
    n_labels, n_workers = len(crowd.tagset.tags), crowd.n_workers
    first, second = _lagged(token)
    key = worker[first].astype(np.int64) * n_workers + worker[second]
    pairs, pair = np.unique(key, return_inverse=True)
    n = np.bincount(pair, minlength=len(pairs))
    equal = np.bincount(pair, code[first] == code[second], len(pairs))
    margins = [
        np.bincount(pair * n_labels + code[side], minlength=len(pairs) * n_labels)
        for side in (first, second)
    ]
    product = (margins[0] * margins[1].astype(float)).reshape(len(pairs), n_labels).sum(axis=1)
    left, right = np.divmod(pairs, n_workers)
    return TokenPairs(left, right, n, equal.astype(np.int64), product / np.maximum(n, 1) ** 2)


@dataclass(frozen=True)
class SpanPairs:
    """Per pair of workers: names, equal spans, and spans of both sides in shared items."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    equal: NDArray[np.int64]
    total: NDArray[np.int64]


def span_pairs(crowd: Crowd, policy: str) -> SpanPairs:
    """Compare the spans of every two workers in the items that both answered.

    Spans that touch a token which the other one skipped are left out.
    """
    answers, n_workers = crowd.latest, crowd.n_workers
    spans = find_spans(Tagged(answers.codes, answers.offset), crowd.tagset, policy)
    size = np.bincount(spans.item, minlength=len(answers))
    order = np.lexsort((answers.worker, answers.item))
    first, second = _lagged(answers.item[order])
    first, second = order[first], order[second]
    key = answers.worker[first].astype(np.int64) * n_workers + answers.worker[second]
    pairs, pair = np.unique(key, return_inverse=True)
    total = np.bincount(
        pair,
        _comparable(spans, answers, size, first, second)
        + _comparable(spans, answers, size, second, first),
        len(pairs),
    ).astype(np.int64)

    shift = crowd.offsets[answers.item] - answers.offset[:-1]
    start, end = spans.start + shift[spans.item], spans.end + shift[spans.item]
    worker = answers.worker[spans.item]
    rows = np.lexsort((worker, spans.type, end, start))
    place = np.stack([start[rows], end[rows], spans.type[rows]])
    same = np.cumsum(np.any(np.diff(place, axis=1, prepend=-1), axis=0))
    a, b = _lagged(same)
    equal_key = worker[rows[a]].astype(np.int64) * n_workers + worker[rows[b]]
    equal = np.bincount(np.searchsorted(pairs, equal_key), minlength=len(pairs))
    left, right = np.divmod(pairs, n_workers)
    return SpanPairs(left, right, equal.astype(np.int64), total)


def _comparable(
    spans: SpanArray,
    answers: Answers,
    size: NDArray[np.int64],
    mine: NDArray[np.int64],
    theirs: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Count, per pair of answers, the spans of one that touch no token skipped by the other."""
    found = size[mine]
    skipped = np.concatenate([[0], np.cumsum(answers.codes < 0)])
    holey = skipped[answers.offset[1:]] > skipped[answers.offset[:-1]]
    which = np.flatnonzero(holey[theirs])
    if not len(which):
        return found
    own, other = mine[which], theirs[which]
    first = np.searchsorted(spans.item, own)
    count = size[own]
    pair = np.repeat(np.arange(len(which)), count)
    span = np.arange(int(count.sum())) + np.repeat(first - np.cumsum(count) + count, count)
    shift = answers.offset[other[pair]] - answers.offset[own[pair]]
    touched = skipped[spans.end[span] + shift] > skipped[spans.start[span] + shift]
    found[which] -= np.bincount(pair, touched, len(which)).astype(np.int64)
    return found


def _lagged(key: NDArray[np.generic]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All pairs of places with equal keys in a sorted array."""
    first: list[NDArray[np.int64]] = []
    second: list[NDArray[np.int64]] = []
    lag = 1
    alive = np.arange(len(key))
    while True:
        alive = alive[alive + lag < len(key)]
        alive = alive[key[alive] == key[alive + lag]]
        if not len(alive):
            break
        first.append(alive)
        second.append(alive + lag)
        lag += 1
    empty = np.zeros(0, np.int64)
    return np.concatenate([empty, *first]), np.concatenate([empty, *second])
