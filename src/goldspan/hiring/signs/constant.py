"""Constant answers: nearly always the same, where the others' answers differ.

An answer to a text is summed up by what it marks: nothing, one type, or several. Labels may be
rare, and careful workers rarer still with them: a worker is suspect who departs from the usual
answer less than a quarter as often as the others do on the same items. The test is binomial: would
somebody who departs so often depart as seldom as the worker did? Strength is the share of equal
answers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Crowd
from goldspan.hiring.signs.base import Scene, Sign, at_most, percent


def constant(scene: Scene) -> list[Sign]:
    """Find the workers who give nearly always the same answer."""
    label, words = summaries(scene.crowd)
    own, others, compared = _shares(scene.crowd, label, len(words))
    usual = own.argmax(axis=1)
    row = np.arange(len(usual))
    share = own[row, usual] / np.maximum(compared, 1)
    rate = np.clip(others[row, usual] / np.maximum(compared, 1), 0, 1)
    departs = compared - own[row, usual]
    p_value = at_most(departs, compared, scene.limits.departs * (1 - rate))
    tested = compared >= scene.limits.least
    corrected, passes = scene.significant(p_value, int(tested.sum()))
    found = tested & passes & (share >= scene.limits.constant)
    return [
        Sign(
            scene.name(n),
            "constant",
            float(share[n]),
            float(corrected[n]),
            f"{percent(share[n])} of {compared[n]} answers {words[usual[n]]}, of the others' "
            f"answers to the same items {percent(rate[n])}",
            {"share": float(share[n]), "others": float(rate[n]), "answers": int(compared[n])},
        )
        for n in np.flatnonzero(found).tolist()
    ]


def summaries(crowd: Crowd) -> tuple[NDArray[np.int64], list[str]]:
    """Sum up every answer in one label: int64 [n_answers], -1 for none, and what labels say."""
    answers, codec = crowd.latest, crowd.tagset
    if crowd.is_classification:
        return answers.codes.astype(np.int64), [f"say {tag}" for tag in codec.tags]
    if codec.rules.is_plain:
        kind, words = np.arange(len(codec.tags)), [f"say only {tag}" for tag in codec.tags]
    else:
        kind = np.where(codec.type_of < 0, -1, codec.type_of)[: len(codec.tags)].astype(np.int64)
        words = [f"mark only {name}" for name in codec.types]
    width = len(words)
    given = np.where(answers.codes >= 0, kind[answers.codes], -1)
    answer = np.repeat(np.arange(len(answers)), answers.lengths)
    seen = np.bincount(
        answer[given >= 0] * width + given[given >= 0], minlength=len(answers) * width
    )
    marks = seen.reshape(-1, width) > 0
    n_kinds = marks.sum(axis=1)
    label = np.where(n_kinds == 1, marks.argmax(axis=1), np.where(n_kinds == 0, width, -1))
    return label, [*words, "mark nothing"]


def _shares(
    crowd: Crowd, label: NDArray[np.int64], width: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Count a worker's answers by label, and the shares of these labels in the others' answers.

    Returns:
        Own counts and the sums of the others' shares, [n_workers, width]; answers to items that
        others answered too, [n_workers].
    """
    item, worker = crowd.latest.item, crowd.latest.worker.astype(np.int64)
    n, known = crowd.n_workers, label >= 0
    per_item = np.bincount(item, minlength=crowd.n_items)
    counts = np.bincount(item[known] * width + label[known], minlength=crowd.n_items * width)
    counts = counts.reshape(-1, width)
    rest = per_item[item] - 1
    used = rest > 0
    own = np.bincount(
        worker[known & used] * width + label[known & used], minlength=n * width
    ).reshape(n, width)
    others = np.stack(
        [
            np.bincount(worker[used], (counts[item, c] - (label == c))[used] / rest[used], n)
            for c in range(width)
        ],
        axis=1,
    )
    return (
        own.astype(np.int64),
        others.astype(np.float64),
        np.bincount(worker[used], minlength=n).astype(np.int64),
    )
