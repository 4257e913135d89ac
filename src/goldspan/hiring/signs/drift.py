"""Drift: a worker is right more seldom (or more often) from some point of the work on.

The course is the order of submission, where it is known, else the order in which the answers stand.
From every answer the share of others who were right on the same item is taken off, and the worker's
own mean on items with the same true label, so that hard items late in the work, or all of one label
together, are no drift. Sentences of one document are one answer, for they are not independent.
The largest partial sum of what is left, over its standard deviation and the root of the number of
answers, has Kolmogorov's distribution if nothing changes (the CUSUM test; Brown, Durbin and Evans
1975). Strength is the difference of the shares before and after the change, beyond what the items
explain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Answers
from goldspan.hiring.reliability import group_of
from goldspan.hiring.signs.base import Scene, Sign, percent


def drift(scene: Scene) -> list[Sign]:
    """Find the workers whose share right changes over the course of their work."""
    from scipy.special import kolmogorov

    work = _course(scene)
    bounds = np.searchsorted(work.worker, np.arange(scene.crowd.n_workers + 1))
    tested = np.flatnonzero(np.diff(bounds) >= scene.limits.least)
    parts = [slice(bounds[n], bounds[n + 1]) for n in tested.tolist()]
    changes = [_change(work.rest[part]) for part in parts]
    p_value = np.asarray(kolmogorov(np.array([height for _, height, _ in changes])), np.float64)
    corrected, passes = scene.significant(p_value, len(tested))
    found = []
    for n, part, change, p, is_found in zip(
        tested.tolist(), parts, changes, corrected.tolist(), passes.tolist(), strict=True
    ):
        share, (at, _, gap) = work.share[part], change
        # What is seen and what the items do not explain must both be a change, the same way.
        seen = float(share[at:].mean() - share[:at].mean())
        if is_found and min(abs(gap), seen * np.sign(gap)) >= scene.limits.drift:
            found.append(_sign(scene, n, share, change, p))
    return found


class _Course(NamedTuple):
    """Answers by worker and, within, in their order; texts of one document are one answer.

    Worker, share right, and the share less what the others had on the item.
    """

    worker: NDArray[np.int64]
    share: NDArray[np.float64]
    rest: NDArray[np.float64]


def _course(scene: Scene) -> _Course:
    crowd, answers, judged = scene.crowd, scene.crowd.latest, scene.judged
    kept = np.flatnonzero(judged.total > 0)
    share = judged.right[kept] / judged.total[kept]
    rest = share - _others(answers.item[kept], share, crowd.n_items)
    if crowd.is_classification:
        rest = _beside_label(scene, kept, rest)
    order = in_order(answers, kept)
    worker = answers.worker[kept][order].astype(np.int64)
    share, rest = share[order], rest[order]
    if crowd.groups is None:
        return _Course(worker, share, rest)
    group = group_of(crowd)[answers.item[kept][order]]
    key = worker * 2 * crowd.n_items + group
    first, which = np.unique(key, return_index=True, return_inverse=True)[1:]
    n = np.bincount(which)
    by_time = np.argsort(first)
    means = [np.bincount(which, values) / n for values in (share, rest)]
    return _Course(worker[first][by_time], means[0][by_time], means[1][by_time])


def in_order(answers: Answers, which: NDArray[np.int64]) -> NDArray[np.int64]:
    """Order some answers by worker, and a worker's by time; without times as they stand."""
    moment = np.zeros(len(answers), np.int64) if answers.submitted is None else answers.submitted
    return np.asarray(np.lexsort((which, moment[which], answers.worker[which])))


def _others(
    item: NDArray[np.int32], share: NDArray[np.float64], n_items: int
) -> NDArray[np.float64]:
    """Give the mean share right of the others on an item, of all answers where there are none."""
    total = np.bincount(item, share, n_items)[item] - share
    count = np.bincount(item, minlength=n_items)[item] - 1
    mean = float(share.mean()) if len(share) else 0.0
    return np.where(count > 0, total / np.maximum(count, 1), mean)


def _beside_label(
    scene: Scene, kept: NDArray[np.int64], rest: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Take off a worker's mean on items of the same true label, for they may stand together."""
    answers, codes = scene.crowd.latest, scene.truth.codes()
    width = len(scene.crowd.tagset.tags)
    cell = answers.worker[kept] * np.int64(width) + codes[answers.item[kept]]
    n = np.bincount(cell, minlength=scene.crowd.n_workers * width)
    return np.asarray(rest - (np.bincount(cell, rest, len(n)) / np.maximum(n, 1))[cell])


def _change(rest: NDArray[np.float64]) -> tuple[int, float, float]:
    """Find the likeliest change: answers before it, the height of the test, after less before."""
    sums = np.cumsum(rest - rest.mean())
    spread = rest.std() * np.sqrt(len(rest))
    at = int(np.abs(sums[:-1]).argmax()) + 1
    height = abs(sums[at - 1]) / spread if spread > 0 else 0.0
    return at, float(height), float(rest[at:].mean() - rest[:at].mean())


def _sign(
    scene: Scene,
    worker: int,
    share: NDArray[np.float64],
    change: tuple[int, float, float],
    p_value: float,
) -> Sign:
    at, height, gap = change
    before, after = float(share[:at].mean()), float(share[at:].mean())
    half = len(share) // 2
    first, second = float(share[:half].mean()), float(share[half:].mean())
    words = "right" if scene.crowd.is_classification else "of the labels right"
    unit = "answers" if scene.crowd.groups is None else "documents"
    return Sign(
        scene.name(worker),
        "drift",
        min(1.0, abs(gap)),
        float(p_value),
        f"{percent(first)} {words} in the first half, {percent(second)} in the second; "
        f"{percent(before)} in the first {at} {unit}, {percent(after)} in the last "
        f"{len(share) - at}",
        {"before": before, "after": after, "before_change": at, "gap": gap, "height": height},
    )
