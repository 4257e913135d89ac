"""Quality flags: constant answers, copying, pasting, drift, too fast, answers at base rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import Consensus, aggregate
from goldspan.crowd import Answers, Crowd
from goldspan.errors import UnknownNameError
from goldspan.workers.copying import PASTING, copies, pastes
from goldspan.workers.reliability import (
    CONSTANT,
    LEAST_TESTED,
    FlagContext,
    QualityFlag,
    at_least,
    at_most,
    design_effect,
    find_truth,
    percent,
)

# --------------------------------------------------------------------------------------------------
# Constant answers: nearly always the same, where the others' answers differ.


DEPARTS = 0.25
"""Who is constant departs from it less than this share of how often the others do."""


def constant(context: FlagContext) -> list[QualityFlag]:
    """Find the workers who give nearly always the same answer."""
    label, words = summaries(context.crowd)
    own, others, compared = _shares(context.crowd, label, len(words))
    usual = own.argmax(axis=1)
    row = np.arange(len(usual))
    share = own[row, usual] / np.maximum(compared, 1)
    rate = np.clip(others[row, usual] / np.maximum(compared, 1), 0, 1)
    departs = compared - own[row, usual]
    p_value = at_most(departs, compared, DEPARTS * (1 - rate))
    tested = compared >= LEAST_TESTED
    corrected, passes = context.significant(p_value, int(tested.sum()))
    found = tested & passes & (share >= CONSTANT)
    return [
        QualityFlag(
            context.name(n),
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
    """Count a worker's answers by label, and the shares of these labels in the others' answers."""
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


# --------------------------------------------------------------------------------------------------
# Answers at base rate: the labels do not depend on the truth, whatever their shares.


INFORMATION = 0.2
"""Labels tell less than this share of what the median worker's tell."""


def base_rate(context: FlagContext) -> list[QualityFlag]:
    """Find the workers whose labels tell next to nothing about the truth."""
    from scipy.special import chndtr

    told = _information(context)
    able = (told.n >= LEAST_TESTED) & (told.entropy > 0)
    if able.sum() < 3:
        return []
    median = float(np.median(told.share[able]))
    if median <= 0:
        return []
    # Somebody who gave one label alone is a case for `constant`.
    tested = able & (told.freedom > 0)
    least = 2 * told.n_effective * INFORMATION * median * told.entropy
    p_value = np.ones(len(tested))
    p_value[tested] = chndtr(told.g[tested], told.freedom[tested], least[tested])
    corrected, passes = context.significant(p_value, int(tested.sum()))
    return [
        QualityFlag(
            context.name(n),
            "base rate",
            float(np.clip(1 - told.share[n] / median, 0, 1)),
            float(corrected[n]),
            f"{told.n[n]} labels hardly depend on the item: they reveal "
            f"{100 * max(0.0, told.share[n]):.1f} % of the true label, the median worker's "
            f"{100 * median:.0f} %",
            {"told": float(told.share[n]), "median": median, "labels": int(told.n[n])},
        )
        for n in np.flatnonzero(tested & passes).tolist()
    ]


class _Information(NamedTuple):
    """Per worker: labels, effective labels, G, its freedom, the truth's entropy, I / H."""

    n: NDArray[np.int64]
    n_effective: NDArray[np.float64]
    g: NDArray[np.float64]
    freedom: NDArray[np.int64]
    entropy: NDArray[np.float64]
    share: NDArray[np.float64]


def _information(context: FlagContext) -> _Information:
    # Count truth and label given, [n_workers, n_labels, n_labels]
    crowd = context.crowd
    codes, width = crowd.latest.codes, len(crowd.tagset.tags)
    truth = true_labels(context)
    used = (truth >= 0) & (codes >= 0)
    cell = (crowd.worker_of[used] * np.int64(width) + truth[used]) * width + codes[used]
    counts = np.bincount(cell, minlength=crowd.n_workers * width**2)
    joint = np.asarray(counts.reshape(-1, width, width), np.int64)
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
    if not context.crowd.is_classification:
        effect = design_effect(context.crowd, context.judged)
    g = 2 * terms.sum(axis=(1, 2)) / effect
    # G exceeds 2 n I by its degrees of freedom on average.
    bits = (g - freedom) * effect / np.maximum(2 * n, 1)
    share = np.where(entropy > 0, bits / np.where(entropy > 0, entropy, 1), 0)
    return _Information(n, n / effect, g, freedom, entropy, share)


def true_labels(context: FlagContext) -> NDArray[np.int64]:
    """Return the truth beside every label of `crowd.latest`, int64 [n_labels], -1 unknown."""
    crowd = context.crowd
    token, codes, width = crowd.token_of, crowd.latest.codes, len(crowd.tagset.tags)
    given = codes >= 0
    size = np.bincount((token * width + codes)[given], minlength=crowd.n_tokens * width)
    votes = size.reshape(-1, width)[token]
    votes[given, codes[given]] -= 1  # what is left out is one's own label
    most = votes.max(axis=1, initial=0)
    is_clear = (most > 0) & ((votes == most[:, None]).sum(axis=1) == 1)
    others = np.where(is_clear, votes.argmax(axis=1), -1)
    gold = context.truth.gold.astype(np.int64)[token]
    return np.where(gold >= 0, gold, others)


def _entropy(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Entropy in nats, [n_workers]."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return np.asarray(-(shares * np.log(np.where(shares > 0, shares, 1))).sum(axis=1))


# --------------------------------------------------------------------------------------------------
# Too fast: half of the answers took less than a third of the median worker's time per token.


FAST = 1 / 3
"""Median time, as a share of the median worker's."""


def fast(context: FlagContext) -> list[QualityFlag]:
    """Find the workers who are too fast; none where times are not known."""
    seconds, worker = seconds_per_token(context.crowd)
    n = np.bincount(worker, minlength=context.crowd.n_workers)
    tested = n >= LEAST_TESTED
    if tested.sum() < 3:
        return []
    order = np.lexsort((seconds, worker))
    begin = np.concatenate([[0], np.cumsum(n)])[:-1]
    medians = np.full(len(n), np.nan)
    medians[tested] = seconds[order][(begin + n // 2)[tested]]
    usual = float(np.nanmedian(medians))
    below = np.bincount(worker, seconds < FAST * usual, len(n)).astype(np.int64)
    corrected, passes = context.significant(at_least(below, n, 0.5), int(tested.sum()))
    what = "an answer" if context.crowd.is_classification else "a token"
    return [
        QualityFlag(
            context.name(w),
            "too fast",
            float(np.clip(1 - medians[w] / usual, 0, 1)),
            float(corrected[w]),
            f"{medians[w]:.2g} s for {what} in the median, the median worker {usual:.2g} s"
            f"{_quality(context, w)}",
            {"seconds": float(medians[w]), "median": usual, "answers": int(n[w])},
        )
        for w in np.flatnonzero(tested & passes).tolist()
    ]


def seconds_per_token(crowd: Crowd) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Return the time of every answer whose times are known, and its worker."""
    answers = crowd.latest
    if answers.started is None or answers.submitted is None:
        return np.zeros(0), np.zeros(0, np.int32)
    known = (answers.started >= 0) & (answers.submitted >= answers.started) & (answers.lengths > 0)
    spent = (answers.submitted - answers.started)[known] / 1000
    return np.asarray(spent / answers.lengths[known]), answers.worker[known]


def _quality(context: FlagContext, worker: int) -> str:
    own = context.crowd.latest.worker == worker
    right, total = context.judged.right, context.judged.total
    if not total[own].sum() or not total[~own].sum():
        return ""
    shares = right[own].sum() / total[own].sum(), right[~own].sum() / total[~own].sum()
    return f"; {percent(shares[0])} of the labels right, the others {percent(shares[1])}"


# --------------------------------------------------------------------------------------------------
# Drift: a worker is right more seldom (or more often) from some point of the work on.


DRIFT = 0.1
"""Difference of the shares right before and after a change, at least."""


def drift(context: FlagContext) -> list[QualityFlag]:
    """Find the workers whose share right changes over the course of their work."""
    from scipy.special import kolmogorov

    work = _course(context)
    bounds = np.searchsorted(work.worker, np.arange(context.crowd.n_workers + 1))
    tested = np.flatnonzero(np.diff(bounds) >= LEAST_TESTED)
    parts = [slice(bounds[n], bounds[n + 1]) for n in tested.tolist()]
    changes = [_change(work.rest[part]) for part in parts]
    p_value = np.asarray(kolmogorov(np.array([height for _, height, _ in changes])), np.float64)
    corrected, passes = context.significant(p_value, len(tested))
    found = []
    for n, part, change, p, is_found in zip(
        tested.tolist(), parts, changes, corrected.tolist(), passes.tolist(), strict=True
    ):
        share, (at, _, gap) = work.share[part], change
        # What is seen and what the items do not explain must both be a change, the same way.
        seen = float(share[at:].mean() - share[:at].mean())
        if is_found and min(abs(gap), seen * np.sign(gap)) >= DRIFT:
            found.append(_flag(context, n, share, change, p))
    return found


class _History(NamedTuple):
    """Answers by worker and, within, in their order; texts of one document are one answer."""

    worker: NDArray[np.int64]
    share: NDArray[np.float64]  # right
    rest: NDArray[np.float64]  # the same, less what the others had on the item


def _course(context: FlagContext) -> _History:
    crowd, answers, judged = context.crowd, context.crowd.latest, context.judged
    kept = np.flatnonzero(judged.total > 0)
    share = judged.right[kept] / judged.total[kept]
    # The mean share right of the others on an item, of all answers where there are none
    item = answers.item[kept]
    total = np.bincount(item, share, crowd.n_items)[item] - share
    count = np.bincount(item, minlength=crowd.n_items)[item] - 1
    mean = float(share.mean()) if len(share) else 0.0
    rest = share - np.where(count > 0, total / np.maximum(count, 1), mean)
    if crowd.is_classification:
        rest = _beside_label(context, kept, rest)
    order = in_order(answers, kept)
    worker = answers.worker[kept][order].astype(np.int64)
    share, rest = share[order], rest[order]
    if crowd.groups is None:
        return _History(worker, share, rest)
    group = crowd.document_of[answers.item[kept][order]]
    key = worker * 2 * crowd.n_items + group
    first, which = np.unique(key, return_index=True, return_inverse=True)[1:]
    n = np.bincount(which)
    by_time = np.argsort(first)
    means = [np.bincount(which, values) / n for values in (share, rest)]
    return _History(worker[first][by_time], means[0][by_time], means[1][by_time])


def in_order(answers: Answers, which: NDArray[np.int64]) -> NDArray[np.int64]:
    """Order some answers by worker, and a worker's by time; without times as they stand."""
    moment = np.zeros(len(answers), np.int64) if answers.submitted is None else answers.submitted
    return np.asarray(np.lexsort((which, moment[which], answers.worker[which])))


def _beside_label(
    context: FlagContext, kept: NDArray[np.int64], rest: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Take off a worker's mean on items of the same true label, for they may stand together."""
    answers, codes = context.crowd.latest, context.truth.codes()
    width = len(context.crowd.tagset.tags)
    cell = answers.worker[kept] * np.int64(width) + codes[answers.item[kept]]
    n = np.bincount(cell, minlength=context.crowd.n_workers * width)
    return np.asarray(rest - (np.bincount(cell, rest, len(n)) / np.maximum(n, 1))[cell])


def _change(rest: NDArray[np.float64]) -> tuple[int, float, float]:
    """Find the likeliest change: answers before it, the height of the test, after less before."""
    sums = np.cumsum(rest - rest.mean())
    spread = rest.std() * np.sqrt(len(rest))
    at = int(np.abs(sums[:-1]).argmax()) + 1
    height = abs(sums[at - 1]) / spread if spread > 0 else 0.0
    return at, float(height), float(rest[at:].mean() - rest[:at].mean())


def _flag(
    context: FlagContext,
    worker: int,
    share: NDArray[np.float64],
    change: tuple[int, float, float],
    p_value: float,
) -> QualityFlag:
    at, height, gap = change
    before, after = float(share[:at].mean()), float(share[at:].mean())
    half = len(share) // 2
    first, second = float(share[:half].mean()), float(share[half:].mean())
    words = "right" if context.crowd.is_classification else "of the labels right"
    unit = "answers" if context.crowd.groups is None else "documents"
    return QualityFlag(
        context.name(worker),
        "drift",
        min(1.0, abs(gap)),
        float(p_value),
        f"{percent(first)} {words} in the first half, {percent(second)} in the second; "
        f"{percent(before)} in the first {at} {unit}, {percent(after)} in the last "
        f"{len(share) - at}",
        {"before": before, "after": after, "before_change": at, "gap": gap, "height": height},
    )


# --------------------------------------------------------------------------------------------------
# All quality flags of a crowd at once. A new one is a function and a line here.


FLAGS: dict[str, Callable[[FlagContext], list[QualityFlag]]] = {
    "constant": constant,
    "base rate": base_rate,
    "copies": copies,
    PASTING: pastes,
    "too fast": fast,
    "drift": drift,
}


def find_quality_flags(
    crowd: Crowd,
    *,
    gold: Any = None,
    result: Consensus | None = None,
    kinds: str | Iterable[str] | None = None,
    probes: Crowd | None = None,
) -> list[QualityFlag]:
    r"""Look for quality flags; each comes with its evidence.

    A flag is a reason to review, not a proof: the chance that a crowd of good workers shows one of
    a kind at all is `thresholds.alpha`, as far as its test holds.

    Args:
        crowd: The crowd; the answers that count are used.
        gold: Known labels as for `measure_reliability`; by default the crowd's own.
        result: A result of the crowd, which says what is right where there is no gold; by default
            that of `ds`.
        kinds: Which flags, by name, or one of them; all by default.
        probes: Answers of models to the same items, who are no workers of the crowd: who repeats
            their mistakes copies them.

    Returns:
        The flags, the strongest first.

    Raises:
        UnknownNameError: Unknown flag.
        InputError: The gold or the result does not suit the crowd.

    >>> import goldspan
    >>> truth = goldspan.simulation.draw_truth(200, seed=1)
    >>> crowd = goldspan.simulation.simulate_crowd(truth, ["flip(0.2) x4", "eve=spammer(constant)"])
    >>> [flag.worker for flag in find_quality_flags(crowd, kinds=["constant"])]
    ['eve']
    """
    names = list(FLAGS) if kinds is None else [kinds] if isinstance(kinds, str) else list(kinds)
    for name in names:
        if name not in FLAGS:
            raise UnknownNameError("quality flag", name, FLAGS)
    if not len(crowd.latest):
        return []
    known = result or aggregate(crowd, "ds")
    context = FlagContext(find_truth(crowd, gold, known), probes)
    found: list[QualityFlag] = []
    for name in names:
        found += FLAGS[name](context)
    return sorted(found, key=lambda flag: (-flag.strength, flag.p_value, flag.worker))
