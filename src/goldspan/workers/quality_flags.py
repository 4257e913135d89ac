"""Quality flags: constant answers, copying, drift, too fast, answers at base rate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import Consensus, aggregate
from goldspan.crowd import Answers, Crowd
from goldspan.errors import InputError, UnknownNameError
from goldspan.workers.reliability import (
    Judged,
    Truth,
    design_effect,
    find_truth,
    group_of,
    judge_answers,
)

# --------------------------------------------------------------------------------------------------
# A quality flag, and the context in which all flags are looked for.


@dataclass(frozen=True)
class QualityFlag:
    """Something in a worker's answers that good work seldom shows.

    Attributes:
        worker: Id of the worker.
        kind: Name of the sign in `goldspan.workers.quality_flags.SIGNS`.
        strength: How marked it is, 0 to 1; every kind says what of.
        p_value: How probable it is that any worker without it would show so much: times the
            number of workers (or pairs) that were tested (Bonferroni), at most 1.
        evidence: A sentence.
        numbers: What the sentence is made of.
    """

    worker: str
    kind: str
    strength: float
    p_value: float
    evidence: str
    numbers: Mapping[str, float | str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return kind and evidence."""
        return f"{self.kind}: {self.evidence}"


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """From where on something is a sign.

    Attributes:
        alpha: Chance that a crowd without it shows a sign of one kind at all.
        least: Fewest answers of a worker that are tested.
        constant: Share of equal answers, at least.
        departs: Departs from them less than this share of how often the others do.
        information: Labels tell less than this share of what the median worker's tell.
        copies: Equal wrong answers, as a multiple of those expected.
        fast: Median time, as a share of the median worker's.
        drift: Difference of shares right before and after a change, at least.
    """

    alpha: float = 0.05
    least: int = 20
    constant: float = 0.95
    departs: float = 0.25
    information: float = 0.2
    copies: float = 2.0
    fast: float = 1 / 3
    drift: float = 0.1

    def __post_init__(self) -> None:
        for name in ("alpha", "constant", "departs", "information", "fast", "drift"):
            if not 0 < getattr(self, name) < 1:
                raise InputError(f"{name} lies between 0 and 1, not {getattr(self, name)}")
        if self.least < 2 or self.copies < 1:
            raise InputError("least is at least 2 answers, and copies at least 1 times")


@dataclass(frozen=True, eq=False)
class FlagContext:
    """What signs are looked for in.

    Attributes:
        truth: The crowd, its gold, and a result for where there is no gold.
        limits: From where on something is a sign.
    """

    truth: Truth
    limits: Thresholds

    @property
    def crowd(self) -> Crowd:
        """The crowd."""
        return self.truth.crowd

    @cached_property
    def judged(self) -> Judged:
        """Every answer's labels by gold, else by the result."""
        measure = "accuracy" if self.crowd.is_classification else "token_accuracy"
        return judge_answers(self.truth, measure)

    @cached_property
    def n_answers(self) -> NDArray[np.int64]:
        """Answers of every worker, int64 [n_workers]."""
        return np.bincount(self.crowd.latest.worker, minlength=self.crowd.n_workers)

    def name(self, worker: int) -> str:
        """Return a worker's id."""
        return str(self.crowd.worker_ids[worker].as_py())

    def significant(
        self, p_value: NDArray[np.float64], n_tests: int
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Correct p-values for the number of tests, and say which pass."""
        corrected = np.minimum(p_value * max(1, n_tests), 1.0)
        return corrected, np.asarray(corrected < self.limits.alpha)


def at_least(
    count: NDArray[Any], total: NDArray[Any], rate: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """Return P(X >= count) of X ~ Binomial(total, rate), element by element."""
    from scipy.special import betainc

    hits, rest = np.asarray(count, np.float64), np.asarray(total - count + 1, np.float64)
    return np.where(hits > 0, betainc(np.maximum(hits, 1), rest, rate), 1.0)


def at_most(
    count: NDArray[Any], total: NDArray[Any], rate: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """Return P(X <= count) of X ~ Binomial(total, rate), element by element."""
    return at_least(total - count, total, 1 - rate)


def percent(value: float) -> str:
    """Write a share in whole per cent, or in tenths near 100.

    >>> percent(0.61), percent(0.996)
    ('61 %', '99.6 %')
    """
    return f"{100 * value:.1f} %" if 0.99 < value < 1 else f"{100 * value:.0f} %"


# --------------------------------------------------------------------------------------------------
# Constant answers: nearly always the same, where the others' answers differ.


def constant(context: FlagContext) -> list[QualityFlag]:
    """Find the workers who give nearly always the same answer."""
    label, words = summaries(context.crowd)
    own, others, compared = _shares(context.crowd, label, len(words))
    usual = own.argmax(axis=1)
    row = np.arange(len(usual))
    share = own[row, usual] / np.maximum(compared, 1)
    rate = np.clip(others[row, usual] / np.maximum(compared, 1), 0, 1)
    departs = compared - own[row, usual]
    p_value = at_most(departs, compared, context.limits.departs * (1 - rate))
    tested = compared >= context.limits.least
    corrected, passes = context.significant(p_value, int(tested.sum()))
    found = tested & passes & (share >= context.limits.constant)
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


# --------------------------------------------------------------------------------------------------
# Equal answers to the same item, and what the others say, the worker's own answer left out.


_STEP, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


class Groups(NamedTuple):
    """Answers to an item that are equal in every label.

    Attributes:
        of: int64 [n_answers], the group of every answer of `crowd.latest`.
        size: int64 [n_groups], answers in it.
        item: int64 [n_groups].
        key: uint64 [n_groups], the same for equal labels, whatever the item.
        best: int64 [n_items, 3], the three largest groups of every item, -1 for none.
    """

    of: NDArray[np.int64]
    size: NDArray[np.int64]
    item: NDArray[np.int64]
    key: NDArray[np.uint64]
    best: NDArray[np.int64]


def equal_answers(crowd: Crowd) -> Groups:
    """Group the answers that count by item and labels."""
    answers = crowd.latest
    key = sequence_keys(answers.codes, answers.offset)
    order = np.lexsort((key, answers.item))
    item, sorted_key = answers.item[order], key[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (item[1:] != item[:-1]) | (sorted_key[1:] != sorted_key[:-1])
    of = np.empty(len(order), np.int64)
    of[order] = np.cumsum(fresh) - 1
    size = np.bincount(of, minlength=int(fresh.sum()))
    first = np.flatnonzero(fresh)
    items = item[first].astype(np.int64)
    return Groups(of, size, items, sorted_key[first], _largest(items, size, crowd.n_items))


def sequence_keys(codes: NDArray[np.int16], offset: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return every sequence a number that equal sequences share, uint64 [n].

    A sum of SplitMix64 hashes of (place, code): two different ones are equal once in 2^64.
    """
    place = np.arange(len(codes)) - np.repeat(offset[:-1], np.diff(offset))
    with np.errstate(over="ignore"):
        mixed = ((place << 16) + codes + 2).astype(np.uint64) * _STEP
        mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX
        mixed ^= mixed >> np.uint64(27)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
        return np.asarray(sums[offset[1:]] - sums[offset[:-1]])


def _largest(items: NDArray[np.int64], size: NDArray[np.int64], n_items: int) -> NDArray[np.int64]:
    order = np.lexsort((-size, items))
    begin = np.searchsorted(items[order], np.arange(n_items + 1))
    best = np.full((n_items, 3), -1, np.int64)
    for rank in range(3):
        there = begin[:-1] + rank < begin[1:]
        best[there, rank] = order[begin[:-1][there] + rank]
    return best


def others_choice(
    item: NDArray[np.int64], group: NDArray[np.int64], size: NDArray[np.int64],
    best: NDArray[np.int64],
) -> NDArray[np.int64]:  # fmt: skip
    """Return which group most others are in, [n]; -1 on ties or if nobody is there.

    What is left out is one answer of `group`, so that the choice does not depend on it.

    Args:
        item: int64 [n].
        group: int64 [n], the group of the answer that is left out.
        size: int64 [n_groups].
        best: int64 [n_items, 3].
    """
    rows = best[item]
    sizes = np.where(rows >= 0, size[rows], 0) - (rows == group[:, None])
    top = sizes.argmax(axis=1)
    at = np.arange(len(rows))
    most = sizes[at, top]
    alone = (sizes == most[:, None]).sum(axis=1) == 1
    return np.where(alone & (most > 0), rows[at, top], -1)


# --------------------------------------------------------------------------------------------------
# Answers at base rate: the labels do not depend on the truth, whatever their shares.


def base_rate(context: FlagContext) -> list[QualityFlag]:
    """Find the workers whose labels tell next to nothing about the truth."""
    from scipy.special import chndtr

    told = _information(context)
    able = (told.n >= context.limits.least) & (told.entropy > 0)
    if able.sum() < 3:
        return []
    median = float(np.median(told.share[able]))
    if median <= 0:
        return []
    # Somebody who gave one label alone is a case for `constant`.
    tested = able & (told.freedom > 0)
    least = 2 * told.n_effective * context.limits.information * median * told.entropy
    p_value = np.ones(len(tested))
    p_value[tested] = chndtr(told.g[tested], told.freedom[tested], least[tested])
    corrected, passes = context.significant(p_value, int(tested.sum()))
    return [
        QualityFlag(
            context.name(n),
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


def _information(context: FlagContext) -> _Told:
    joint = _joint(context)
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
    return _Told(n, n / effect, g, freedom, entropy, share)


def _joint(context: FlagContext) -> NDArray[np.int64]:
    """Count truth and label given, [n_workers, n_labels, n_labels]."""
    crowd = context.crowd
    codes, width = crowd.latest.codes, len(crowd.tagset.tags)
    truth = true_labels(context)
    used = (truth >= 0) & (codes >= 0)
    cell = (crowd.worker_of[used] * np.int64(width) + truth[used]) * width + codes[used]
    counts = np.bincount(cell, minlength=crowd.n_workers * width**2)
    return np.asarray(counts.reshape(-1, width, width), np.int64)


def true_labels(context: FlagContext) -> NDArray[np.int64]:
    """Return the truth beside every label of `crowd.latest`, int64 [n_labels], -1 unknown."""
    crowd = context.crowd
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
    if not context.truth.known.any():
        return others
    gold = context.truth.gold[0].astype(np.int64)[token]
    return np.where(gold >= 0, gold, others)


def _entropy(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Entropy in nats, [n_workers]."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return np.asarray(-(shares * np.log(np.where(shares > 0, shares, 1))).sum(axis=1))


# --------------------------------------------------------------------------------------------------
# Pairs of answers to the same item of which one is wrong: what copies are looked for in.


BLOCK = 1_000_000
"""Pairs of answers that are looked at at a time."""


class WrongRows(NamedTuple):
    """Pairs of answers of which the first is wrong, [n_rows] each.

    Attributes:
        one: int32, the worker of the wrong answer.
        other: int32, the other worker.
        equal: bool, whether the answers are equal.
        shared: int32, how many of the remaining answers to the item are equal to the wrong one.
        n_rest: int32, how many remain.
        later: int8, 1 where the wrong answer is the later one, -1 the other, 0 unknown.
    """

    one: NDArray[np.int32]
    other: NDArray[np.int32]
    equal: NDArray[np.bool_]
    shared: NDArray[np.int32]
    n_rest: NDArray[np.int32]
    later: NDArray[np.int8]


def wrong_rows(context: FlagContext, groups: Groups) -> WrongRows:
    """Compare all pairs of answers to the same item.

    An answer is wrong that is not the gold; without gold, one that another answer outnumbers among
    those of third workers.
    """
    judge = _Judge(context, groups)
    blocks = [judge.rows(*block) for block in _blocks(judge.answers, judge.suspect)]
    none = np.zeros(0, np.int32)
    empty = WrongRows(none, none, none.astype(np.bool_), none, none, none.astype(np.int8))
    return WrongRows(*map(np.concatenate, zip(empty, *blocks, strict=True)))


def _blocks(
    answers: Answers, suspect: NDArray[np.bool_]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Go through the ordered pairs of answers to an item of which the first is suspect."""
    order = np.argsort(answers.item, kind="stable")
    item, alive, lag = answers.item[order], np.arange(len(answers)), 1
    while len(alive):
        alive = alive[alive + lag < len(item)]
        alive = alive[item[alive] == item[alive + lag]]
        for begin in range(0, len(alive), BLOCK):
            part = alive[begin : begin + BLOCK]
            first, second = order[part], order[part + lag]
            for one, other in ((first, second), (second, first)):
                kept = suspect[one]
                yield one[kept], other[kept]
        lag += 1


@dataclass(frozen=True, eq=False)
class _Judge:
    """What is needed to say of a pair of answers whether the first is wrong."""

    context: FlagContext
    groups: Groups

    @property
    def answers(self) -> Answers:
        return self.context.crowd.latest

    @cached_property
    def n_answers(self) -> NDArray[np.int64]:
        """Answers to every item."""
        return np.bincount(self.answers.item, minlength=self.context.crowd.n_items)

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Whether an item has gold at every token."""
        unknown = np.concatenate([[0], np.cumsum(~self.context.truth.known)])
        return np.asarray(np.diff(unknown[self.context.crowd.offsets]) == 0)

    @cached_property
    def suspect(self) -> NDArray[np.bool_]:
        """Whether an answer may be wrong for some pair, bool [n_answers].

        Answers to texts that mark nothing are none: two who mark nothing are but lazy.
        """
        groups, item = self.groups, self.answers.item
        size = groups.size[groups.of]
        most = self._most_of_others(groups.of, item, np.full(len(item), -2))
        found = most > size - 2
        if self.known.any():
            gold = sequence_keys(self.context.truth.gold[0], self.context.crowd.offsets)
            found = np.where(self.known[item], groups.key[groups.of] != gold[item], found)
        return np.asarray(found & self._marks())

    def rows(self, one: NDArray[np.int64], other: NDArray[np.int64]) -> WrongRows:
        """Keep the pairs whose first answer is wrong."""
        answers, groups = self.answers, self.groups
        item, mine, theirs = answers.item[one], groups.of[one], groups.of[other]
        rest = groups.size[mine] - 1 - (mine == theirs)
        wrong = self.known[item]
        wrong[~wrong] = (
            self._most_of_others(mine[~wrong], item[~wrong], theirs[~wrong]) > rest[~wrong]
        )
        one, other, item = one[wrong], other[wrong], item[wrong]
        return WrongRows(
            answers.worker[one],
            answers.worker[other],
            (mine == theirs)[wrong],
            rest[wrong].astype(np.int32),
            (self.n_answers[item] - 2).astype(np.int32),
            self._later(one, other),
        )

    def _most_of_others(
        self, mine: NDArray[np.int64], item: NDArray[np.int32], theirs: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the size of the largest other group, one answer of `theirs` left out."""
        most = np.full(len(mine), -1, np.int64)
        for rank in range(3):
            group = self.groups.best[item, rank]
            size = np.where(group >= 0, self.groups.size[group], 0) - (group == theirs)
            most = np.maximum(most, np.where(group == mine, -1, size))
        return most

    def _later(self, one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int8]:
        if self.answers.submitted is None:
            return np.zeros(len(one), np.int8)
        mine, theirs = self.answers.submitted[one], self.answers.submitted[other]
        return np.where((mine >= 0) & (theirs >= 0), np.sign(mine - theirs), 0).astype(np.int8)

    def _marks(self) -> NDArray[np.bool_]:
        answers, codec = self.answers, self.context.crowd.tagset
        if codec.rules.is_plain:
            return np.ones(len(answers), np.bool_)
        inside = (answers.codes >= 0) & (answers.codes != codec.outside)
        before = np.concatenate([[0], np.cumsum(inside)])
        return np.asarray(before[answers.offset[1:]] > before[answers.offset[:-1]])


# --------------------------------------------------------------------------------------------------
# Too fast: half of the answers took less than a third of the median worker's time per token.


def fast(context: FlagContext) -> list[QualityFlag]:
    """Find the workers who are too fast; none where times are not known."""
    seconds, worker = seconds_per_token(context.crowd)
    n = np.bincount(worker, minlength=context.crowd.n_workers)
    tested = n >= context.limits.least
    if tested.sum() < 3:
        return []
    order = np.lexsort((seconds, worker))
    begin = np.concatenate([[0], np.cumsum(n)])[:-1]
    medians = np.full(len(n), np.nan)
    medians[tested] = seconds[order][(begin + n // 2)[tested]]
    usual = float(np.nanmedian(medians))
    below = np.bincount(worker, seconds < context.limits.fast * usual, len(n)).astype(np.int64)
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


def drift(context: FlagContext) -> list[QualityFlag]:
    """Find the workers whose share right changes over the course of their work."""
    from scipy.special import kolmogorov

    work = _course(context)
    bounds = np.searchsorted(work.worker, np.arange(context.crowd.n_workers + 1))
    tested = np.flatnonzero(np.diff(bounds) >= context.limits.least)
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
        if is_found and min(abs(gap), seen * np.sign(gap)) >= context.limits.drift:
            found.append(_sign(context, n, share, change, p))
    return found


class _History(NamedTuple):
    """Answers by worker and, within, in their order; texts of one document are one answer.

    Worker, share right, and the share less what the others had on the item.
    """

    worker: NDArray[np.int64]
    share: NDArray[np.float64]
    rest: NDArray[np.float64]


def _course(context: FlagContext) -> _History:
    crowd, answers, judged = context.crowd, context.crowd.latest, context.judged
    kept = np.flatnonzero(judged.total > 0)
    share = judged.right[kept] / judged.total[kept]
    rest = share - _others(answers.item[kept], share, crowd.n_items)
    if crowd.is_classification:
        rest = _beside_label(context, kept, rest)
    order = in_order(answers, kept)
    worker = answers.worker[kept][order].astype(np.int64)
    share, rest = share[order], rest[order]
    if crowd.groups is None:
        return _History(worker, share, rest)
    group = group_of(crowd)[answers.item[kept][order]]
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


def _others(
    item: NDArray[np.int32], share: NDArray[np.float64], n_items: int
) -> NDArray[np.float64]:
    """Return the mean share right of the others on an item, of all answers where there are none."""
    total = np.bincount(item, share, n_items)[item] - share
    count = np.bincount(item, minlength=n_items)[item] - 1
    mean = float(share.mean()) if len(share) else 0.0
    return np.where(count > 0, total / np.maximum(count, 1), mean)


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


def _sign(
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
# Copies: two workers give the same wrong answers far more often than anybody else would.


LEAST_EQUAL = 5
"""Fewer equal wrong answers are not flagged."""
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


def copies(context: FlagContext) -> list[QualityFlag]:
    """Find the workers who share wrong answers with another one, one sign each."""
    groups = equal_answers(context.crowd)
    pairs = _pairs(wrong_rows(context, groups), context.crowd.n_workers)
    if pairs is None:
        return []
    corrected, passes = context.significant(pairs.p_value, _n_tests(context))
    # Two who always say the same are alike without copying: that is another sign.
    one_note = _one_note(context, groups)
    least = context.limits.copies * pairs.expected.max(axis=0)
    marked = pairs.equal >= np.maximum(LEAST_EQUAL, least)
    marked &= pairs.equal >= LEAST_SHARE * (pairs.wrong.sum(axis=0) - pairs.equal)
    marked &= ~one_note[pairs.workers].all(axis=0)
    found = np.flatnonzero(passes & marked)
    strongest: dict[int, QualityFlag] = {}
    for n in found[np.argsort(corrected[found], kind="stable")].tolist():
        for side, words in _direction(context, pairs, n):
            worker = int(pairs.workers[side, n])
            if worker not in strongest:
                strongest[worker] = _copy_sign(context, pairs, n, side, words, float(corrected[n]))
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


def _n_tests(context: FlagContext) -> int:
    able = int((context.n_answers >= LEAST_EQUAL).sum())
    return able * (able - 1) // 2


def _one_note(context: FlagContext, groups: Groups) -> NDArray[np.bool_]:
    """Return who gives nearly always the same answer, bool [n_workers]."""
    worker = context.crowd.latest.worker
    key = np.unique(groups.key, return_inverse=True)[1][groups.of]
    width = int(key.max(initial=0)) + 1
    pairs, size = np.unique(worker * np.int64(width) + key, return_counts=True)
    most = np.zeros(context.crowd.n_workers, np.int64)
    np.maximum.at(most, pairs // width, size)
    return np.asarray(most >= context.limits.constant * context.n_answers)


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


def _direction(context: FlagContext, pairs: _Pairs, n: int) -> list[tuple[int, str]]:
    """Return who copied whom: the side of the pair, and words; both sides if times do not tell."""
    counts = pairs.later[:, n]
    tail = at_least(counts, counts.sum(), 0.5)
    for side in (0, 1):
        if counts.sum() and tail[side] < SURE:
            share, other = percent(counts[side] / counts.sum()), pairs.workers[1 - side, n]
            return [(side, f", {share} of them after {context.name(other)}")]
    words = "; who copied whom is not known"
    return [(0, words), (1, words)]


def _copy_sign(
    context: FlagContext, pairs: _Pairs, n: int, side: int, words: str, p_value: float
) -> QualityFlag:
    worker, other = (context.name(pairs.workers[at, n]) for at in (side, 1 - side))
    equal, wrong = int(pairs.equal[n]), int(pairs.wrong[side, n])
    expected = float(pairs.expected[side, n])
    what = "" if context.crowd.tagset.rules.is_plain else " that mark something"
    return QualityFlag(
        worker,
        "copies",
        equal / max(1, wrong),
        p_value,
        f"{equal} of the {wrong} wrong answers of {worker}{what} to shared items are "
        f"those of {other}, where {expected:.1f} were to be expected{words}",
        {"other": other, "equal": equal, "wrong": wrong, "expected": expected},
    )


# --------------------------------------------------------------------------------------------------
# The signs by name. A new one is a function and one line here.


SIGNS: dict[str, tuple[str, str]] = {
    "constant": ("goldspan.workers.quality_flags:constant", "nearly always the same answer"),
    "base rate": ("goldspan.workers.quality_flags:base_rate", "labels do not depend on the item"),
    "copies": ("goldspan.workers.quality_flags:copies", "another worker's wrong answers"),
    "too fast": ("goldspan.workers.quality_flags:fast", "a third of the usual time"),
    "drift": ("goldspan.workers.quality_flags:drift", "right more seldom, or more often, later on"),
}


# --------------------------------------------------------------------------------------------------
# All quality flags of a crowd at once.


def find_quality_flags(
    crowd: Crowd,
    *,
    gold: Any = None,
    result: Consensus | None = None,
    kinds: str | Iterable[str] | None = None,
    thresholds: Thresholds | None = None,
) -> list[QualityFlag]:
    r"""Look for quality flags; each comes with its evidence.

    A flag is a reason to review, not a proof: the chance that a crowd of good workers shows one of
    a kind at all is `thresholds.alpha`, as far as its test holds.

    Args:
        crowd: The crowd; the answers that count are used.
        gold: Known labels as for `measure_reliability`; by default the crowd's own.
        result: A result of the crowd, which says what is right where there is no gold; by default
            that of `ds`.
        kinds: Which signs, by name, or one of them; all by default.
        thresholds: From where on something is a sign.

    Returns:
        The signs, the strongest first.

    Raises:
        UnknownNameError: Unknown flag.
        InputError: The gold or the result does not suit the crowd.

    >>> import goldspan
    >>> truth = goldspan.simulation.draw_truth(200, seed=1)
    >>> crowd = goldspan.simulation.simulate_crowd(truth, ["flip(0.2) x4", "eve=spammer(constant)"])
    >>> [sign.worker for sign in find_quality_flags(crowd, kinds=["constant"])]
    ['eve']
    """
    names = list(SIGNS) if kinds is None else [kinds] if isinstance(kinds, str) else list(kinds)
    for name in names:
        if name not in SIGNS:
            raise UnknownNameError("sign", name, SIGNS)
    if not len(crowd.latest):
        return []
    known = result or aggregate(crowd, "ds")
    context = FlagContext(find_truth(crowd, gold, known), thresholds or Thresholds())
    found: list[QualityFlag] = []
    for name in names:
        module, _, function = SIGNS[name][0].partition(":")
        found += getattr(import_module(module), function)(context)
    return sorted(found, key=lambda sign: (-sign.strength, sign.p_value, sign.worker))


__all__ = ["QualityFlag", "Thresholds", "find_quality_flags"]
