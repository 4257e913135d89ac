"""Copies: two workers give the same wrong answers far more often than anybody else would."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan._arrays import count_in_rows
from goldspan._draws import STEP
from goldspan.crowd import Answers, Crowd
from goldspan.workers.flag_context import FlagContext, QualityFlag, at_least, beside_spread, percent

# --------------------------------------------------------------------------------------------------
# Equal answers to the same item.


_MIX = np.uint64(0xBF58476D1CE4E5B9)


class Groups(NamedTuple):
    """Answers to an item that are equal in every label."""

    of: NDArray[np.int64]  # [n_answers], the group of every answer of `crowd.latest`
    size: NDArray[np.int64]  # [n_groups], answers in it
    item: NDArray[np.int64]  # [n_groups]
    key: NDArray[np.uint64]  # [n_groups], the same for equal labels, whatever the item
    best: NDArray[np.int64]  # [n_items, 3], the three largest groups of every item, -1 for none


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
        mixed = ((place << 16) + codes + 2).astype(np.uint64) * STEP
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


# --------------------------------------------------------------------------------------------------
# Pairs of answers to the same item of which one is wrong: what copies are looked for in.


BLOCK = 1_000_000
"""Pairs of answers that are looked at at a time."""


class WrongRows(NamedTuple):
    """Pairs of answers of which the first is wrong, [n_rows] each."""

    one: NDArray[np.int32]  # int32, the worker of the wrong answer
    other: NDArray[np.int32]  # int32, the other worker
    equal: NDArray[np.bool_]  # bool, whether the answers are equal
    # int32, how many of the remaining answers to the item are equal to the wrong one
    shared: NDArray[np.int32]
    n_rest: NDArray[np.int32]  # int32, how many remain
    # int8, 1 where the wrong answer is the later one, -1 the other, 0 unknown
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
        return np.asarray(count_in_rows(~self.context.truth.known, self.context.crowd.offsets) == 0)

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
        return count_in_rows(inside, answers.offset) > 0


# --------------------------------------------------------------------------------------------------
# Which pairs of workers share more of them than is to be expected, and who copied whom.


LEAST_EQUAL = 5
"""Fewer equal wrong answers are not flagged."""
LEAST_SHARE = 0.25
"""Nor is a smaller share of what one or the other, or both, answered wrongly."""
WEIGHT = 1.0
"""Answers that the crowd's mean chance counts for, beside the remaining answers to an item."""
DENSE = 2000
"""Of so many workers every pair has a cell; of more the pairs are sorted."""
SURE = 0.01
"""Chance of being wrong about who copied whom."""


def copies(context: FlagContext) -> list[QualityFlag]:
    """Find the workers who share wrong answers with another one, one flag each."""
    groups = equal_answers(context.crowd)
    pairs = _pairs(wrong_rows(context, groups), context.crowd.n_workers)
    if pairs is None:
        return []
    corrected, passes = context.significant(pairs.p_value, _n_tests(context))
    # Two who always say the same are alike without copying: that is another flag.
    single = one_note(context, groups)
    least = context.limits.copies * pairs.expected.max(axis=0)
    marked = pairs.equal >= np.maximum(LEAST_EQUAL, least)
    marked &= pairs.equal >= LEAST_SHARE * (pairs.wrong.sum(axis=0) - pairs.equal)
    marked &= ~single[pairs.workers].all(axis=0)
    found = np.flatnonzero(passes & marked)
    strongest: dict[int, QualityFlag] = {}
    for n in found[np.argsort(corrected[found], kind="stable")].tolist():
        for side, words in _direction(context, pairs, n):
            worker = int(pairs.workers[side, n])
            if worker not in strongest:
                strongest[worker] = _copy_flag(context, pairs, n, side, words, float(corrected[n]))
    return list(strongest.values())


class _Pairs(NamedTuple):
    """Pairs of workers, and their wrong answers in shared items."""

    workers: NDArray[np.int64]  # [2, n_pairs]
    equal: NDArray[np.float64]  # [n_pairs], equal wrong answers
    wrong: NDArray[np.float64]  # [2, n_pairs], wrong answers of either
    expected: NDArray[np.float64]  # [2, n_pairs], how many of them the other was to give too
    later: NDArray[np.float64]  # [2, n_pairs]
    p_value: NDArray[np.float64]  # [n_pairs], for the larger of the two expected numbers


def _n_tests(context: FlagContext) -> int:
    able = int((context.n_answers >= LEAST_EQUAL).sum())
    return able * (able - 1) // 2


def one_note(context: FlagContext, groups: Groups) -> NDArray[np.bool_]:
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
    from scipy.special import pdtrc

    p_value = np.where(equal > 0, pdtrc(np.maximum(equal - 1, 0), expected), 1.0)
    distance = 2 * (np.sqrt(equal + 0.375) - np.sqrt(expected + 0.375))
    return beside_spread(p_value, distance, expected >= 1)


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


def _copy_flag(
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
