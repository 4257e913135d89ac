"""Answers at base rate: the labels do not depend on the truth, whatever their shares.

How much of the truth's entropy a worker's labels tell (the uncertainty coefficient I / H) is put
beside what the median worker's tell. The G statistic 2 n I (nats) of a worker whose labels tell a
share u of the entropy H is about noncentral chi-square with noncentrality 2 n u H; the sign is a G
far below that of a fifth of the median's u. So nobody is suspected for having few labels, or items
with one and the same truth. The truth is the gold or, where it is not known, the label of most
others: the worker's own does not count. Strength is 1 - u / median u.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.hiring.reliability import design_effect
from goldspan.hiring.signs.base import Scene, Sign
from goldspan.hiring.signs.equal import others_choice


def base_rate(scene: Scene) -> list[Sign]:
    """Find the workers whose labels tell next to nothing about the truth."""
    from scipy.special import chndtr

    told = _information(scene)
    able = (told.n >= scene.limits.least) & (told.entropy > 0)
    if able.sum() < 3:
        return []
    median = float(np.median(told.share[able]))
    if median <= 0:
        return []
    # Somebody who gave one label alone is a case for `constant`.
    tested = able & (told.freedom > 0)
    least = 2 * told.n_effective * scene.limits.information * median * told.entropy
    p_value = np.ones(len(tested))
    p_value[tested] = chndtr(told.g[tested], told.freedom[tested], least[tested])
    corrected, passes = scene.significant(p_value, int(tested.sum()))
    return [
        Sign(
            scene.name(n),
            "base rate",
            float(np.clip(1 - told.share[n] / median, 0, 1)),
            float(corrected[n]),
            f"{told.n[n]} labels tell {100 * max(0.0, told.share[n]):.1f} % of the truth, the "
            f"median worker's {100 * median:.0f} %: they hardly depend on the item",
            {"told": float(told.share[n]), "median": median, "labels": int(told.n[n])},
        )
        for n in np.flatnonzero(tested & passes).tolist()
    ]


class _Told(NamedTuple):
    """Per worker: labels, effective labels, G, its freedom, the truth's entropy, I / H."""

    n: NDArray[np.int64]
    n_effective: NDArray[np.float64]
    g: NDArray[np.float64]
    freedom: NDArray[np.int64]
    entropy: NDArray[np.float64]
    share: NDArray[np.float64]


def _information(scene: Scene) -> _Told:
    joint = _joint(scene)
    n = joint.sum(axis=(1, 2))
    whole = np.maximum(n, 1)[:, None, None]
    rows, columns = joint.sum(axis=2), joint.sum(axis=1)
    expected = rows[:, :, None] * columns[:, None, :] / whole
    seen = joint > 0
    terms = joint * np.log(np.where(seen, joint, 1) / np.where(seen, expected, 1))
    entropy = _entropy(rows)
    freedom = np.maximum((rows > 0).sum(axis=1) - 1, 0) * np.maximum(
        (columns > 0).sum(axis=1) - 1, 0
    )
    effect = np.ones(len(n))
    if not scene.crowd.is_classification:
        effect = design_effect(scene.crowd, scene.judged)
    g = 2 * terms.sum(axis=(1, 2)) / effect
    # G exceeds 2 n I by its degrees of freedom on average.
    bits = (g - freedom) * effect / np.maximum(2 * n, 1)
    share = np.where(entropy > 0, bits / np.where(entropy > 0, entropy, 1), 0)
    return _Told(n, n / effect, g, freedom, entropy, share)


def _joint(scene: Scene) -> NDArray[np.int64]:
    """Count truth and label given, [n_workers, n_labels, n_labels]."""
    crowd = scene.crowd
    codes, width = crowd.latest.codes, len(crowd.tagset.tags)
    truth = true_labels(scene)
    used = (truth >= 0) & (codes >= 0)
    cell = (crowd.worker_of[used] * np.int64(width) + truth[used]) * width + codes[used]
    counts = np.bincount(cell, minlength=crowd.n_workers * width**2)
    return np.asarray(counts.reshape(-1, width, width), np.int64)


def true_labels(scene: Scene) -> NDArray[np.int64]:
    """Give the truth beside every label of `crowd.latest`, int64 [n_labels], -1 unknown."""
    crowd = scene.crowd
    token, codes, width = crowd.token_of, crowd.latest.codes, len(crowd.tagset.tags)
    label = token * width + codes
    given = codes >= 0
    size = np.bincount(label[given], minlength=crowd.n_tokens * width)
    table = size.reshape(-1, width)
    best = np.full((crowd.n_tokens, 3), -1, np.int64)
    top = np.argsort(-table, axis=1, kind="stable")[:, :3]
    best[:, : top.shape[1]] = np.arange(crowd.n_tokens)[:, None] * width + top
    chosen = others_choice(token, np.where(given, label, -2), size, best)
    others = np.where(chosen >= 0, chosen % width, -1)
    if not scene.truth.known.any():
        return others
    gold = scene.truth.gold[0].astype(np.int64)[token]
    return np.where(gold >= 0, gold, others)


def _entropy(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Entropy in nats, [n_workers]."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return np.asarray(-(shares * np.log(np.where(shares > 0, shares, 1))).sum(axis=1))
