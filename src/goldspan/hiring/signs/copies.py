"""Copies: two workers give the same wrong answers far more often than anybody else would.

Right answers are alike without copying, so that only wrong ones count: not the gold or, where it is
not known, not what most others say (of the two neither has a vote). For a wrong answer of one the
chance that the other gives it too is its share among the remaining answers to the item – hard items
have wrong answers that many give – times how often the other repeats wrong answers of third workers
beyond such shares. The number of equal wrong answers is compared with the sum of these chances as a
Poisson number, wider where the crowd's pairs of workers lie further apart. Answers to texts are
compared as a whole, those that mark nothing left out.
Who copied whom is said only where times tell. Copies of a worker who is always right leave no
trace, and workers who share a misconception may look like copies. Strength is the share of the
worker's own wrong answers, to items that both answered, that are equal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.hiring.signs.base import Scene, Sign, at_least, percent
from goldspan.hiring.signs.equal import Groups, equal_answers
from goldspan.hiring.signs.wrong import WrongRows, wrong_rows

LEAST_EQUAL = 5
"""Fewer equal wrong answers are no sign."""
LEAST_SHARE = 0.25
"""Nor is a smaller share of what one or the other, or both, answered wrongly."""
LEAST_PAIRS = 20
"""Of fewer pairs the spread is not known."""
WEIGHT = 1.0
"""Answers that the crowd's mean chance counts for, beside the remaining answers to an item."""
DENSE = 2000
"""Of so many workers every pair has a cell; of more the pairs are sorted."""
SURE = 0.01
"""Chance of being wrong about who copied whom."""


def copies(scene: Scene) -> list[Sign]:
    """Find the workers who share wrong answers with another one, one sign each."""
    groups = equal_answers(scene.crowd)
    pairs = _pairs(wrong_rows(scene, groups), scene.crowd.n_workers)
    if pairs is None:
        return []
    corrected, passes = scene.significant(pairs.p_value, _n_tests(scene))
    # Two who always say the same are alike without copying: that is another sign.
    one_note = _one_note(scene, groups)
    least = scene.limits.copies * pairs.expected.max(axis=0)
    marked = pairs.equal >= np.maximum(LEAST_EQUAL, least)
    marked &= pairs.equal >= LEAST_SHARE * (pairs.wrong.sum(axis=0) - pairs.equal)
    marked &= ~one_note[pairs.workers].all(axis=0)
    found = np.flatnonzero(passes & marked)
    strongest: dict[int, Sign] = {}
    for n in found[np.argsort(corrected[found], kind="stable")].tolist():
        for side, words in _direction(scene, pairs, n):
            worker = int(pairs.workers[side, n])
            if worker not in strongest:
                strongest[worker] = _sign(scene, pairs, n, side, words, float(corrected[n]))
    return list(strongest.values())


class _Pairs(NamedTuple):
    """Pairs of workers, and their wrong answers in shared items.

    Attributes:
        workers: int64 [2, n_pairs].
        equal: float64 [n_pairs], equal wrong answers.
        wrong: float64 [2, n_pairs], wrong answers of either.
        expected: float64 [2, n_pairs], how many of them the other was to give too.
        later: float64 [2, n_pairs], equal wrong answers that the one gave after the other.
        p_value: float64 [n_pairs], for the larger of the two expected numbers.
    """

    workers: NDArray[np.int64]
    equal: NDArray[np.float64]
    wrong: NDArray[np.float64]
    expected: NDArray[np.float64]
    later: NDArray[np.float64]
    p_value: NDArray[np.float64]


def _n_tests(scene: Scene) -> int:
    able = int((scene.n_answers >= LEAST_EQUAL).sum())
    return able * (able - 1) // 2


def _one_note(scene: Scene, groups: Groups) -> NDArray[np.bool_]:
    """Say who gives nearly always the same answer, bool [n_workers]."""
    worker = scene.crowd.latest.worker
    key = np.unique(groups.key, return_inverse=True)[1][groups.of]
    width = int(key.max(initial=0)) + 1
    pairs, size = np.unique(worker * np.int64(width) + key, return_counts=True)
    most = np.zeros(scene.crowd.n_workers, np.int64)
    np.maximum.at(most, pairs // width, size)
    return np.asarray(most >= scene.limits.constant * scene.n_answers)


def _pairs(rows: WrongRows, n_workers: int) -> _Pairs | None:
    if not rows.equal.any():
        return None
    mean = float(rows.equal.mean())
    chance = (rows.shared + WEIGHT * mean) / (rows.n_rest + WEIGHT)
    forth = rows.one < rows.other
    keys, pair = _number(
        np.where(forth, rows.one, rows.other), np.where(forth, rows.other, rows.one)
    )

    def sums(which: NDArray[np.bool_], weight: NDArray[Any]) -> NDArray[np.float64]:
        return np.bincount(pair[which], weight[which], keys.shape[1]).astype(np.float64)

    # Equal wrong answers are found from either side.
    equal, every = sums(forth, rows.equal), np.ones(len(pair))
    repeated = np.bincount(rows.other, rows.equal, n_workers)
    expected = np.bincount(rows.other, chance, n_workers)
    rates = []
    for which, who in ((forth, keys[1]), (~forth, keys[0])):
        own = sums(which, chance)
        # How often the other repeats wrong answers of third workers, beside what is expected.
        habit = (repeated[who] - equal + 1) / (np.maximum(expected[who] - own, 0) + 1)
        rates.append(own * habit)
    later = rows.equal & (rows.later > 0)
    return _Pairs(
        keys, equal,
        wrong=np.stack([sums(forth, every), sums(~forth, every)]),
        expected=np.stack(rates),
        later=np.stack([sums(forth, later), sums(~forth, later)]),
        p_value=_p_value(equal, np.maximum(*rates)),
    )  # fmt: skip


def _number(
    left: NDArray[np.int32], right: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the pairs of workers: the workers of every pair, [2, n], and the pair of every row."""
    width = int(right.max()) + 1
    key = left * np.int64(width) + right
    if width > DENSE:
        keys, pair = np.unique(key, return_inverse=True)
        return np.stack(np.divmod(keys, width)), pair
    seen = np.zeros(width**2, np.bool_)
    seen[key] = True
    keys = np.flatnonzero(seen)
    place = np.zeros(width**2, np.int64)
    place[keys] = np.arange(len(keys))
    return np.stack(np.divmod(keys, width)), place[key]


def _p_value(equal: NDArray[np.float64], expected: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compare with a Poisson number, and with how far pairs of this crowd lie apart.

    Workers of one school share mistakes without copying. Twice the root of a Poisson number and
    3/8 has a standard deviation of one (Anscombe 1948); if the middle half of all pairs spreads
    wider than that, so does the scale (Efron 2004: an empirical null).
    """
    from scipy.special import ndtr, pdtrc

    p_value = np.where(equal > 0, pdtrc(np.maximum(equal - 1, 0), expected), 1.0)
    distance = 2 * (np.sqrt(equal + 0.375) - np.sqrt(expected + 0.375))
    usual = distance[expected >= 1]
    if len(usual) < LEAST_PAIRS:
        return np.asarray(p_value)
    low, high = np.percentile(usual, [25, 75])
    scale = max(1.0, float(high - low) / 1.349)
    return np.where(scale > 1, np.maximum(p_value, ndtr(-distance / scale)), p_value)


def _direction(scene: Scene, pairs: _Pairs, n: int) -> list[tuple[int, str]]:
    """Say who copied whom: the side of the pair, and words; both sides if times do not tell."""
    counts = pairs.later[:, n]
    tail = at_least(counts, counts.sum(), 0.5)
    for side in (0, 1):
        if counts.sum() and tail[side] < SURE:
            share, other = percent(counts[side] / counts.sum()), pairs.workers[1 - side, n]
            return [(side, f", {share} of them after {scene.name(other)}")]
    words = "; who copied whom is not known"
    return [(0, words), (1, words)]


def _sign(scene: Scene, pairs: _Pairs, n: int, side: int, words: str, p_value: float) -> Sign:
    worker, other = (scene.name(pairs.workers[at, n]) for at in (side, 1 - side))
    equal, wrong = int(pairs.equal[n]), int(pairs.wrong[side, n])
    expected = float(pairs.expected[side, n])
    what = "" if scene.crowd.tagset.rules.is_plain else " that mark something"
    return Sign(
        worker,
        "copies",
        equal / max(1, wrong),
        p_value,
        f"{equal} of the {wrong} wrong answers of {worker}{what} to shared items are "
        f"those of {other}, where {expected:.1f} were to be expected{words}",
        {"other": other, "equal": equal, "wrong": wrong, "expected": expected},
    )
