"""Copies of another worker, or of a model: the same wrong answers far too often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan._arrays import STEP, count_in_rows
from goldspan.crowd import Answers, Crowd
from goldspan.crowd.labels import joined, translate
from goldspan.errors import InputError
from goldspan.spans import Codec, Tagged, find_spans
from goldspan.workers.reliability import FlagContext, QualityFlag, at_least, beside_spread, percent

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

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
    """Return every sequence a number that equal sequences share, uint64 [n]."""
    # A sum of SplitMix64 hashes of (place, code): two different ones are equal once in 2^64
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
    """Compare all pairs of answers to the same item."""
    # An answer is wrong that is not the gold
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
        """Whether an answer may be wrong for some pair, bool [n_answers]."""
        # Answers to texts that mark nothing are none: two who mark nothing are but lazy
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
    """Compare with a Poisson number, and with how far pairs of this crowd lie apart."""
    # Workers of one school share mistakes without copying
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


# --------------------------------------------------------------------------------------------------
# Pasted answers: somebody repeats a model's mistakes more often than anybody else would.
#
# A model that answers silently (its answers are kept and count for nothing) is a probe. Two who are
# right agree, so that agreement says nothing; the mistakes do. What the model says is `a`; whether
# it is right, r, is known, or inferred from the people without the one who is judged:
#
#     P(says a) = P(r) alpha_w + (1 - P(r)) beta,
#
# alpha_w how often they agree where the model is right, beta how often people fall for the same
# mistake: those who answered the item too, shrunken towards all of them, and more for who is often
# wrong. Judged are the places where known labels, or more of the others than not, contradict the
# model; their number that a worker shares is compared with a beta-binomial number.


PASTING = "copies a model"
"""Name of the flag."""
LEAST_SHARED = 5
"""Fewer mistakes in common are not flagged."""
LEAST_PASTED = 0.2
"""Nor is who, to judge by them, copied a smaller share of the answers."""
SPREAD = 0.03
"""People who copy nothing fall for a model's mistakes unequally: correlation within a person."""
ROUNDS = 30
"""Of the EM that says where the model is right."""
ITEM = 2.0
"""Answers that all people's share counts for, beside those to the item."""
RIGHT, FALLS, OWN = (8.0, 2.0), (1.0, 9.0), 5.0
"""Priors: of the model's being right, of the mean beta; answers that the means count for."""


class Shares(NamedTuple):
    """How many of a model's mistakes people share, [n_workers] each."""

    judged: Ints  # int64, places where the model is contradicted
    shared: Ints  # int64, those where the worker says the same
    expected: Floats  # float64, how many of them are to be expected of who does not copy
    known: Ints  # int64, those of `judged` that known labels contradict
    p_value: Floats  # float64, of so many by chance; 1 where nothing was judged

    @property
    def pasted(self) -> Floats:
        """Which share of the answers was copied, to judge by the mistakes, float64 [n_workers]."""
        rest = np.maximum(self.judged - self.expected, 1e-9)
        return np.where(self.judged > 0, np.clip((self.shared - self.expected) / rest, 0, 1), 0.0)


def pastes(context: FlagContext) -> list[QualityFlag]:
    """Find the people who repeat the mistakes of a model, one flag each: that of most of them."""
    if context.probes is None:
        return []
    found: dict[str, QualityFlag] = {}
    # Who always says the same agrees with a model that often says it: that is another flag.
    single = one_note(context, equal_answers(context.crowd))
    every = list(probed(context.crowd, context.probes, context.truth.gold))
    n_tests = sum(int((shares.judged >= LEAST_SHARED).sum()) for _, shares in every)
    for model, shares in every:
        corrected, passes = context.significant(shares.p_value, n_tests)
        marked = passes & (shares.shared >= LEAST_SHARED) & (shares.pasted >= LEAST_PASTED)
        marked &= ~single
        for n in np.flatnonzero(marked).tolist():
            flag = _flag(context, model, shares, n, float(corrected[n]))
            if flag.worker not in found or flag.strength > found[flag.worker].strength:
                found[flag.worker] = flag
    return list(found.values())


def _flag(context: FlagContext, model: str, shares: Shares, n: int, p_value: float) -> QualityFlag:
    judged, shared = int(shares.judged[n]), int(shares.shared[n])
    expected, known = float(shares.expected[n]), int(shares.known[n])
    what = "answers" if context.crowd.tagset.rules.is_plain else "spans"
    by = "known labels" if known == judged else "the other annotators"
    by = by if known in {0, judged} else f"known labels ({known}) or the other annotators"
    pasted = float(shares.pasted[n])
    return QualityFlag(
        context.name(n),
        PASTING,
        pasted,
        p_value,
        f"gives {shared} of the {judged} {what} of {model} that {by} contradict, where "
        f"{expected:.1f} were to be expected without copying: about {percent(pasted)} pasted",
        {
            "other": model, "equal": shared, "wrong": judged, "expected": expected,
            "known": known, "pasted": pasted,
        },
    )  # fmt: skip


def probed(crowd: Crowd, probes: Crowd, gold: NDArray[np.int16]) -> Iterator[tuple[str, Shares]]:
    """Yield every model of `probes` and how much of its mistakes the workers of a crowd share."""
    # gold int16 [n_truths, n_tokens]
    codec = joined(crowd.tagset, probes.tagset)
    answers = crowd.latest
    people = _marks(
        translate(answers.codes, crowd.tagset, codec), answers.offset,
        crowd.offsets[answers.item], codec,
    )  # fmt: skip
    known = [translate(row, crowd.tagset, codec) for row in gold]
    place = pc.fill_null(pc.index_in(probes.item_ids, value_set=crowd.item_ids), -1)
    item_of = np.asarray(place.to_numpy(zero_copy_only=False), np.int64)
    _check_lengths(crowd, probes, item_of)
    given = probes.latest
    for n, name in enumerate(probes.worker_ids.to_pylist()):
        own = given.take((given.worker == n) & (item_of[given.item] >= 0))
        item = item_of[own.item]
        codes = translate(own.codes, probes.tagset, codec)
        marks = _marks(codes, own.offset, crowd.offsets[item], codec)
        yield name, _shares(crowd, codec, people, marks, item[marks.owner], known)


def _check_lengths(crowd: Crowd, probes: Crowd, item_of: Ints) -> None:
    there = np.flatnonzero(item_of >= 0)
    mine, theirs = np.diff(crowd.offsets)[item_of[there]], np.diff(probes.offsets)[there]
    other = np.flatnonzero(mine != theirs)
    if len(other):
        name = probes.item_ids[int(there[other[0]])].as_py()
        raise InputError(
            f"item {name} has {mine[other[0]]} tokens, and {theirs[other[0]]} where models "
            "answered it"
        )


class _Marks(NamedTuple):
    """What answers say, mark by mark: spans, or the label of every token, [n_marks] each."""

    owner: Ints
    token: Ints  # int64, the first token, among all of the crowd
    key: Ints  # int64, the same for equal marks


def _marks(codes: NDArray[np.int16], offset: Ints, begin: Ints, codec: Codec) -> _Marks:
    """Return the marks of answers; `begin` is where their items begin among the crowd's tokens."""
    shift = begin - offset[:-1]
    if codec.rules.is_plain:
        owner = np.repeat(np.arange(len(begin)), np.diff(offset))
        given = np.flatnonzero(codes >= 0)
        token = given + shift[owner[given]]
        key = np.asarray(token * len(codec.tags) + codes[given], np.int64)
        return _Marks(owner[given], token, key)
    found = find_spans(Tagged(codes, offset), codec)
    owner = found.item.astype(np.int64)
    token = found.start + shift[owner]
    longest = np.int64(2**20)
    key = (token * longest + found.end - found.start) * len(codec.types) + found.type
    return _Marks(owner, np.asarray(token, np.int64), np.asarray(key, np.int64))


class _Beside(NamedTuple):
    """Marks of the model beside people who answered the same, [n_pairs] each."""

    mark: Ints
    worker: Ints
    same: Bools  # bool, whether they say so too


def _beside(crowd: Crowd, people: _Marks, marks: _Marks, item: Ints) -> _Beside:
    answers, view = crowd.latest, crowd.by_item
    n = np.diff(view.bounds)[item]
    mark = np.repeat(np.arange(len(item)), n)
    rank = np.arange(len(mark)) - np.repeat(np.cumsum(n) - n, n)
    answer = view.order[view.bounds[:-1][item[mark]] + rank]
    at = answers.offset[answer] + marks.token[mark] - crowd.offsets[item[mark]]
    seen = answers.codes[at] >= 0  # what was skipped says nothing
    mark, answer = mark[seen], answer[seen]
    n_answers = np.int64(max(1, len(answers)))
    place = np.unique(np.concatenate([people.key, marks.key]), return_inverse=True)[1]
    theirs = place[: len(people.key)] * n_answers + people.owner
    mine = place[len(people.key) :][mark] * n_answers + answer
    return _Beside(mark, answers.worker[answer].astype(np.int64), np.isin(mine, theirs))


def _shares(
    crowd: Crowd, codec: Codec, people: _Marks, marks: _Marks, item: Ints,
    gold: list[NDArray[np.int16]],
) -> Shares:  # fmt: skip
    n = crowd.n_workers
    pairs = _beside(crowd, people, marks, item)
    is_right = _known(crowd, codec, marks, item, gold)
    inferred = _infer(pairs, is_right, n)
    same = pairs.same.astype(np.float64)
    # The others of the same mark.
    n_same = np.bincount(pairs.mark, same, len(item))[pairs.mark] - same
    n_rest = np.bincount(pairs.mark, minlength=len(item))[pairs.mark] - 1
    known = is_right[pairs.mark]
    wrong = np.where(known >= 0, known == 0, 2 * n_same < n_rest)
    beta = (n_same + ITEM * inferred.beta[pairs.worker]) / (n_rest + ITEM)
    # Who is often wrong where the model is right is often wrong where it is not.
    habit = np.maximum(1.0, (1 - inferred.alpha) / max(1 - inferred.mean, 1e-6))
    beta = np.minimum(beta * habit[pairs.worker], 0.95)
    chance = inferred.right * inferred.alpha[pairs.worker] + (1 - inferred.right) * beta

    def count(weight: NDArray[np.generic]) -> Floats:
        found = np.bincount(pairs.worker[wrong], weight[wrong].astype(np.float64), n)
        return found.astype(np.float64)

    judged, shared = count(np.ones(len(wrong))), count(same)
    expected, known_wrong = count(chance), count(known == 0)
    p_value = _p_of_shared(judged, shared, expected, count(chance * (1 - chance)))
    return Shares(
        judged.astype(np.int64), shared.astype(np.int64), expected,
        known_wrong.astype(np.int64), p_value,
    )  # fmt: skip


def _known(
    crowd: Crowd, codec: Codec, marks: _Marks, item: Ints, gold: list[NDArray[np.int16]]
) -> Ints:
    """Return 1 for marks that are right, 0 for wrong ones, -1 where that is not known."""
    found = np.full(len(item), -1, np.int64)
    if not gold:
        return found
    complete = count_in_rows(gold[0] < 0, crowd.offsets) == 0
    there = gold[0][marks.token] >= 0 if codec.rules.is_plain else complete[item]
    found[there] = 0
    for row in gold:
        truth = _marks(row, crowd.offsets, crowd.offsets[:-1], codec)
        found[there & np.isin(marks.key, truth.key)] = 1
    return found


@dataclass(frozen=True)
class _Inferred:
    """Where the model is right, as far as people tell."""

    right: Floats  # [n_pairs], that the mark is right, without the pair's own worker
    alpha: Floats  # [n_workers], how often a worker agrees where the model is right
    mean: float
    beta: Floats  # [n_workers], how often the others agree where it is wrong


def _infer(pairs: _Beside, known: Ints, n_workers: int) -> _Inferred:
    """Say by EM where the model is right; everybody has an alpha and a beta of their own."""
    # So whoever agrees with the model in any case has no say in whether it is right
    from scipy.special import expit

    same, mark, worker = pairs.same.astype(np.float64), pairs.mark, pairs.worker
    share, mean = 0.8, 0.8
    alpha, beta = np.full(n_workers, mean), np.full(n_workers, 0.1)
    for _ in range(ROUNDS):
        high, low = (np.clip(one, 0.02, 0.98)[worker] for one in (alpha, beta))
        told = same * np.log(high / low) + (1 - same) * np.log((1 - high) / (1 - low))
        odds = np.log(share / (1 - share)) + np.bincount(mark, told, len(known))
        right = np.where(known >= 0, known, expit(odds))
        share = (right.sum() + RIGHT[0]) / (len(right) + sum(RIGHT))
        of_pair = right[mark]
        hits, n_right = _sums(worker, of_pair, same, n_workers)
        mean = (hits.sum() + OWN * 0.8) / (n_right.sum() + OWN)
        alpha = (hits + OWN * mean) / (n_right + OWN)
        falls, n_wrong = _sums(worker, 1 - of_pair, same, n_workers)
        others = falls.sum() - falls + FALLS[0], n_wrong.sum() - n_wrong + sum(FALLS)
        usual = np.minimum(others[0] / others[1], 0.9 * mean)
        beta = np.minimum((falls + OWN * usual) / (n_wrong + OWN), alpha)
    without = np.where(known[mark] >= 0, known[mark], expit(odds[mark] - told))
    return _Inferred(without, alpha, float(mean), usual)


def _sums(worker: Ints, weight: Floats, same: Floats, n: int) -> tuple[Floats, Floats]:
    """Return the weight of what workers said as the model did, and of all that they said."""
    return (
        np.bincount(worker, weight * same, n).astype(np.float64),
        np.bincount(worker, weight, n).astype(np.float64),
    )


def _p_of_shared(judged: Floats, shared: Floats, expected: Floats, variance: Floats) -> Floats:
    """Compare with a beta-binomial number, and with how far these people lie apart."""
    from scipy.stats import betabinom

    some = judged > 0
    mean = np.clip(np.where(some, expected / np.maximum(judged, 1), 0.5), 1e-3, 1 - 1e-3)
    size = 1 / SPREAD - 1
    tail = betabinom.sf(shared - 1, judged.astype(np.int64), mean * size, (1 - mean) * size)
    p_value = np.where(some & (shared > 0), tail, 1.0)
    usual = some & (variance >= 0.5)
    distance = np.zeros(len(judged))
    distance[some] = (shared - expected)[some] / np.sqrt(
        variance[some] * (1 + np.maximum(judged[some] - 1, 0) * SPREAD)
    )
    return beside_spread(p_value, distance, usual)
