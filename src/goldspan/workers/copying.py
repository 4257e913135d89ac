"""Copies of another worker, or of a model: the same wrong answers far too often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.special import logsumexp, pdtrc

from goldspan._arrays import STEP, count_in_rows
from goldspan.crowd import Crowd
from goldspan.crowd.labels import joined, translate
from goldspan.errors import InputError
from goldspan.spans import Codec, Tagged, find_spans
from goldspan.workers.reliability import (
    CONSTANT,
    FlagContext,
    QualityFlag,
    at_least,
    beside_spread,
    percent,
)

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
    return Groups(of, size, item[first].astype(np.int64), sorted_key[first])


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


# --------------------------------------------------------------------------------------------------
# Which pairs of workers are looked at: they share answers that more of the others do not give.


LEAST_EQUAL = 5
"""Fewer equal wrong answers are not flagged."""
LEAST_WORKERS = 10
"""Of fewer workers a copy weighs too much in how far pairs lie apart."""
MANIFOLD = 2.0
"""Equal wrong answers are so many times the expected ones, at least."""
LEAST_SHARE = 0.25
"""Nor is a smaller share of the wrong answers of the one who has fewer."""


def _suspects(context: FlagContext, groups: Groups) -> Ints:
    """Return pairs of workers that share wrong answers, int64 [2, n_pairs]."""
    answers, n_workers = context.crowd.latest, context.crowd.n_workers
    wrong, order = _is_suspect(context, groups), np.argsort(answers.item, kind="stable")
    item, begin = answers.item[order], np.arange(len(answers))
    rows = [np.zeros((2, 0), np.int64)]
    for lag in range(1, len(answers)):
        begin = begin[begin + lag < len(item)]
        begin = begin[item[begin] == item[begin + lag]]
        if not len(begin):
            break
        one, other = order[begin], order[begin + lag]
        kept = wrong[one] | wrong[other]
        rows.append(np.stack([one[kept], other[kept]]))
    both = np.concatenate(rows, axis=1)
    who = answers.worker[both].astype(np.int64)
    keys, pair = np.unique(who.min(axis=0) * n_workers + who.max(axis=0), return_inverse=True)
    same = wrong[both[0]] & (groups.of[both[0]] == groups.of[both[1]])
    equal = np.bincount(pair, same, len(keys))
    flip = who[0] > who[1]
    left, right = (np.bincount(pair, wrong[np.where(flip == n, *both)], len(keys)) for n in (0, 1))
    expected = np.maximum(left, right) * same.sum() / max(1, wrong[both].sum() - same.sum())
    # Workers of one school share mistakes without copying
    distance = 2 * (np.sqrt(equal + 0.375) - np.sqrt(expected + 0.375))
    p_value = pdtrc(np.maximum(equal - 1, 0), expected)
    if len(np.unique(who)) >= LEAST_WORKERS:
        p_value = beside_spread(p_value, distance, expected >= 1)
    # Two who always say the same are alike without copying: that is another flag
    workers = np.stack(np.divmod(keys, n_workers))
    marked = equal >= np.maximum(LEAST_EQUAL, MANIFOLD * expected)
    marked &= equal >= LEAST_SHARE * np.minimum(left, right)
    marked &= ~one_note(context, groups)[workers].all(axis=0)
    return workers[:, marked & context.significant(p_value, _n_tests(context))[1]]


def _is_suspect(context: FlagContext, groups: Groups) -> Bools:
    """Return which answers more workers contradict than give, a pair aside, bool [n_answers]."""
    # Answers to texts that mark nothing are not: two who mark nothing are but lazy
    crowd, truth, answers = context.crowd, context.truth, context.crowd.latest
    n_answers = np.bincount(answers.item, minlength=crowd.n_items)[answers.item]
    found = n_answers > 2 * groups.size[groups.of] - 2
    known = count_in_rows(~truth.known, crowd.offsets) == 0
    if known.any():
        gold = sequence_keys(truth.gold, crowd.offsets)[answers.item]
        found = np.where(known[answers.item], groups.key[groups.of] != gold, found)
    if crowd.tagset.rules.is_plain:
        return found
    inside = (answers.codes >= 0) & (answers.codes != crowd.tagset.outside)
    return np.asarray(found & (count_in_rows(inside, answers.offset) > 0))


def _n_tests(context: FlagContext) -> int:
    return comb(int((context.n_answers >= LEAST_EQUAL).sum()), 2)


def one_note(context: FlagContext, groups: Groups) -> NDArray[np.bool_]:
    """Return who gives nearly always the same answer, bool [n_workers]."""
    worker = context.crowd.latest.worker
    key = np.unique(groups.key, return_inverse=True)[1][groups.of]
    width = int(key.max(initial=0)) + 1
    pairs, size = np.unique(worker * np.int64(width) + key, return_counts=True)
    most = np.zeros(context.crowd.n_workers, np.int64)
    np.maximum.at(most, pairs // width, size)
    return np.asarray(most >= CONSTANT * context.n_answers)


# --------------------------------------------------------------------------------------------------
# The odds of a copy: Dawid and Skene's model, where k and l err independently given the truth j,
# against the same model in which k repeats what l says with probability rho,
#
#     P(c_k, c_l | j) = A^l(j, c_l) ((1 - rho) A^k(j, c_k) + rho [c_k = c_l]).
#
# Both are fitted to all answers, so that whatever independent workers of any confusion matrices can
# do needs no copy. Single labels are the classes that they are; a span that anybody gave is right
# or not, and given or not.


LEAST_ANSWERS = 5
"""Of fewer answers to an item without a known label it cannot be said who of them err together."""
OTHER_UNITS = 1000
"""Labels or spans beside those of the pair, from which the others' confusion matrices are known."""
ROUNDS = 30
"""Most rounds of EM."""
POOLED = 2.0
"""Answers that the mean confusion matrix counts for in everybody's."""
SPLIT = 1.5
"""Where the odds that others agree with two wrong answers are so much higher, items are hard."""
SURE = 0.001
"""Chance of being wrong about who copied whom, or that the others are not more divided."""
SHOWN = 3
"""Items that a question names."""


class _Units(NamedTuple):
    """Labels, or spans that anybody gave, and the answers to them."""

    item: Ints  # [n_units]
    known: Ints  # [n_units], the true class, -1 unknown
    unit: Ints  # [n_answers]
    worker: Ints  # [n_answers]
    code: Ints  # [n_answers], the class given
    n_classes: int


def _units(context: FlagContext) -> _Units:
    crowd, gold = context.crowd, context.truth.gold
    answers, codec = crowd.latest, crowd.tagset
    if codec.rules.is_plain:
        given = np.flatnonzero(answers.codes >= 0)
        return _Units(
            np.repeat(np.arange(crowd.n_items), np.diff(crowd.offsets)), gold.astype(np.int64),
            crowd.token_of[given], crowd.worker_of[given].astype(np.int64),
            answers.codes[given].astype(np.int64), len(codec.tags),
        )  # fmt: skip
    marks = _marks(answers.codes, answers.offset, crowd.offsets[answers.item], codec)
    first = np.unique(marks.key, return_index=True)[1]
    item = answers.item[marks.owner[first]].astype(np.int64)
    spans = _Marks(np.arange(len(first)), marks.token[first], marks.key[first])
    beside = _beside(crowd, marks, spans, item)
    known = _known(crowd, codec, spans, item, gold)
    return _Units(item, known, beside.mark, beside.worker, beside.same.astype(np.int64), 2)


class _Fit(NamedTuple):
    total: float  # log-likelihood
    log_prob: Floats  # [n_units], its parts
    right: Floats  # [n_units, n_classes], the posterior
    others: Floats  # [n_units, n_classes], the log posterior without the pair, not normalised


class _PairModel:
    """Answers of a pair of workers and of others to the same units, and its two models."""

    def __init__(self, units: _Units, pair: Ints, apart: Ints) -> None:
        kept = ~np.isin(units.worker, apart)
        n_answers = np.bincount(units.unit[kept], minlength=len(units.item))
        able = (units.known >= 0) | (n_answers >= LEAST_ANSWERS)
        code = np.full((2, len(able)), -1)
        for own, worker in zip(code, pair, strict=True):
            mine = units.worker == worker
            own[units.unit[mine]] = units.code[mine]
        both = able & (code >= 0).all(axis=0)
        rest = np.flatnonzero(able & ~both)
        chosen = np.sort(np.append(np.flatnonzero(both), rest[:: 1 + len(rest) // OTHER_UNITS]))
        kept &= np.isin(units.unit, chosen)
        people, self.worker = np.unique(units.worker[kept], return_inverse=True)
        self.unit, self.label = np.searchsorted(chosen, units.unit[kept]), units.code[kept]
        self.pair, self.code = np.searchsorted(people, pair), code[:, chosen]
        self.both, self.item = both[chosen], units.item[chosen]
        self.width, self.n_workers = units.n_classes, len(people)
        self.same = self.both & (self.code[0] == self.code[1])
        self.is_other = ~np.isin(self.worker, self.pair)
        known = units.known[chosen, None]
        self.shut = np.where((known >= 0) & (known != np.arange(self.width)), -np.inf, 0.0)

    def compare(self) -> tuple[_Fit, _Fit]:
        """Return the best fits without and with a copy, from several starts."""
        starts = [self.votes(np.ones(len(self.unit))), self.votes(self.is_other)]
        copied = max((self.fit(start, 0.5) for start in starts), key=attrgetter("total"))
        alone = [self.fit(start, 0.0) for start in (*starts, copied.right)]
        return max(alone, key=attrgetter("total")), copied

    def votes(self, weight: NDArray[Any]) -> Floats:
        """Return the shares of the answers, float64 [n_units, n_classes]."""
        cell, shut = self.unit * self.width + self.label, self.shut
        counts = (np.bincount(cell, weight, shut.size) + 0.1).reshape(shut.shape) * np.exp(shut)
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))

    def fit(self, right: Floats, rho: float, rounds: int = ROUNDS) -> _Fit:
        """Fit the model from a posterior, without a copy if rho is 0."""
        last, copied = -np.inf, rho * self.same
        for _ in range(rounds):
            weight = 1 - copied[self.unit] * (self.worker == self.pair[0])
            table = self.tables(right, weight)
            log_table = np.log(table)[:, self.worker, self.label]
            share = np.log((right.sum(axis=0) + 0.5) / (len(right) + 0.5 * self.width))
            others, ours = (
                np.stack([np.bincount(self.unit, part * row, len(right)) for row in log_table], 1)
                for part in (self.is_other, ~self.is_other)
            )
            others = others + share + self.shut
            total = others + ours
            if rho:
                rho = (copied.sum() + 0.5) / (self.both.sum() + 1)
                own = table[:, self.pair[0], self.code[0]].T
                mixed = (1 - rho) * own + rho * self.same[:, None]
                total += np.where(self.both[:, None], np.log(mixed / own), 0)
            log_prob = logsumexp(total, axis=1)
            right = np.exp(total - log_prob[:, None])
            if rho:
                copied = self.same * (right * rho / mixed).sum(axis=1)
            if log_prob.sum() - last < 1e-3:
                break
            last = log_prob.sum()
        return _Fit(float(log_prob.sum()), log_prob, right, np.asarray(others))

    def tables(self, right: Floats, weight: Floats) -> Floats:
        """Return confusion matrices, float64 [n_classes (true), n_workers, n_classes]."""
        cell, n = self.worker * self.width + self.label, self.n_workers * self.width
        counts = np.stack([np.bincount(cell, weight * row[self.unit], n) for row in right.T])
        counts = counts.reshape(self.width, self.n_workers, self.width)
        pool = counts.sum(axis=1) + 0.5
        counts += POOLED * (pool / pool.sum(axis=1, keepdims=True))[:, None]
        return np.asarray(counts / counts.sum(axis=2, keepdims=True))


class _Pair(NamedTuple):
    """Two workers, and what they did to what both answered."""

    workers: Ints  # [2]
    n_items: int  # that both answered
    items: Ints  # [n_equal], where both give the same wrong answer
    n_known: int  # of these, by known labels
    wrong: Ints  # [2], answers of either
    expected: float  # equal wrong answers, were the two independent
    log_odds: float  # of a copy
    is_hard: bool  # the others are divided where these two agree against them

    @property
    def stands(self) -> bool:
        """Whether enough mistakes are shared, and not for the items' being hard."""
        share = (len(self.items) - self.expected) / max(self.wrong.min() - self.expected, 1.0)
        return len(self.items) >= LEAST_EQUAL and share >= LEAST_SHARE and not self.is_hard


def _weigh(units: _Units, group: Ints, workers: Ints, apart: Ints) -> _Pair | None:
    """Weigh whether one of two workers copies the other; the workers of `apart` are left out."""
    model = _PairModel(units, workers, apart)
    if not model.both.any():
        return None
    alone, copied = model.compare()
    # Labels of one document are not independent: a design effect (Kish 1965)
    gain = copied.log_prob - alone.log_prob
    rest = gain - gain.mean()
    by_group = np.bincount(np.unique(group[model.item], return_inverse=True)[1], rest)
    effect = max(1.0, float((by_group**2).sum() / max((rest**2).sum(), 1e-9)))
    true = copied.others.argmax(axis=1)
    judged = model.both & (true == copied.right.argmax(axis=1))  # else it hangs on the pair
    wrong = judged & (model.code != true)
    equal = wrong[0] & model.same
    counts = np.zeros((2, model.width, model.width))
    for table, code in zip(counts, model.code, strict=True):
        np.add.at(table, (true[judged], code[judged]), 1)
    both = counts.prod(axis=0) * (1 - np.eye(model.width))
    return _Pair(
        workers, len(np.unique(model.item[judged])), model.item[equal],
        int(np.isneginf(model.shut[equal]).any(axis=1).sum()), wrong.sum(axis=1),
        float((both.sum(axis=1) / np.maximum(counts[0].sum(axis=1), 1)).sum()),
        float(gain.sum()) / effect, _is_hard(model, true, equal),
    )  # fmt: skip


def _is_hard(model: _PairModel, true: Ints, equal: Bools) -> bool:
    """Say whether others give a pair's wrong answers more often there than they usually do."""
    table = model.tables(np.eye(model.width)[true], np.ones(len(model.unit)))
    where = np.flatnonzero(model.is_other & equal[model.unit])
    theirs = model.code[0, unit := model.unit[where]]
    usual = table[true[unit], model.worker[where], theirs].sum()
    n, total = (model.label[where] == theirs).sum(), len(where)
    return bool(n * (total - usual) > SPLIT * usual * (total - n) and pdtrc(n - 1, usual) < SURE)


def copies(context: FlagContext) -> list[QualityFlag]:
    """Find the workers who share wrong answers with another one, one flag each."""
    pairs = _suspects(context, equal_answers(context.crowd))
    if not pairs.size:
        return []
    strongest: dict[int, QualityFlag] = {}
    units, group, copied = _units(context), context.crowd.document_of, np.zeros(0, np.int64)

    def weigh(workers: Ints) -> _Pair | None:
        # Whoever looks like a copy of these two would confirm what they say
        linked = pairs[:, np.isin(pairs, workers).any(axis=0)]
        return _weigh(units, group, workers, np.setdiff1d(np.append(linked, copied), workers))

    first = [pair for workers in pairs.T if (pair := weigh(workers)) is not None]
    for one in sorted(first, key=lambda pair: -pair.log_odds):
        # What a copy says counts once when the next pair is weighed
        pair = weigh(one.workers) if len(copied) else one
        if pair is None or not pair.stands:
            continue
        chance = max(np.exp(-max(pair.log_odds, 0.0)), pdtrc(len(pair.items) - 1, pair.expected))
        corrected, passes = context.significant(chance, _n_tests(context))
        if passes:
            copied = np.append(copied, pair.workers[1])
            for side, words in _direction(context, pair):
                flag = _copy_flag(context, pair, side, words, float(corrected))
                strongest.setdefault(int(pair.workers[side]), flag)
    return list(strongest.values())


def _direction(context: FlagContext, pair: _Pair) -> list[tuple[int, str]]:
    """Return who copied whom: the side of the pair, and words; both sides if times do not tell."""
    answers = context.crowd.latest
    if answers.submitted is not None:
        moment = np.full((2, context.crowd.n_items), -1)
        for own, worker in zip(moment, pair.workers, strict=True):
            mine = answers.worker == worker
            own[answers.item[mine]] = answers.submitted[mine]
        times = moment[:, np.unique(pair.items)]
        gap = (times >= 0).all(axis=0) * (times[0] - times[1])
        counts = np.array([(gap > 0).sum(), (gap < 0).sum()])
        for side in np.flatnonzero(at_least(counts, counts.sum(), 0.5) < SURE).tolist():
            share = percent(counts[side] / counts.sum())
            name, other = map(context.name, pair.workers[[side, 1 - side]].tolist())
            return [(side, f" {name} answered after {other} in {share} of them.")]
    return [(0, ""), (1, "")]


def _copy_flag(
    context: FlagContext, pair: _Pair, side: int, words: str, p_value: float
) -> QualityFlag:
    worker, other = map(context.name, pair.workers[[side, 1 - side]].tolist())
    equal, wrong = len(pair.items), int(pair.wrong[side])
    same = "gave the same wrong label"
    if not context.crowd.tagset.rules.is_plain:
        same = "left out the same span, or gave the same wrong one,"
    right = "" if pair.n_known == equal else " Or are these two right, and the others wrong?"
    return QualityFlag(
        worker,
        "copies",
        equal / max(1, wrong),
        p_value,
        f"Did {worker} and {other} work together? On {pair.n_items} shared items they {same} "
        f"{equal} times; independent workers with as many mistakes would do so about "
        f"{pair.expected:.0f} times.{words} Compare {_some_items(context, pair.items)}.{right}",
        {"other": other, "equal": equal, "wrong": wrong, "expected": pair.expected},
    )


def _some_items(context: FlagContext, items: Ints) -> str:
    """Name the first of some items."""
    first = np.unique(items)[:SHOWN]
    names = [str(context.crowd.item_ids[n].as_py()) for n in first.tolist()]
    return f"item{'s' if len(names) > 1 else ''} {', '.join(names)}"


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
# mistake: those who answered the item too, more for who is often wrong. Judged are the places where
# known labels, or more of the others than not, contradict the model, by a beta-binomial number.


PASTING = "copies a model"
"""Name of the flag."""
LEAST_PASTED = 0.2
"""Nor is who, to judge by them, copied a smaller share of the answers."""
SPREAD = 0.03
"""People who copy nothing fall for a model's mistakes unequally: correlation within a person."""
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
    items: list[Ints]  # where the shared mistakes are

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
    n_tests = sum(int((shares.judged >= LEAST_EQUAL).sum()) for _, shares in every)
    for model, shares in every:
        corrected, passes = context.significant(shares.p_value, n_tests)
        marked = passes & (shares.shared >= LEAST_EQUAL) & (shares.pasted >= LEAST_PASTED)
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
        f"Did {context.name(n)} use {model}? They gave {shared} of the {judged} {what} of {model} "
        f"that {by} contradict; people who did not would give about {expected:.0f}. If so, about "
        f"{percent(pasted)} is pasted. Compare {_some_items(context, shares.items[n])}.",
        {
            "other": model, "equal": shared, "wrong": judged, "expected": expected,
            "known": known, "pasted": pasted,
        },
    )  # fmt: skip


def probed(crowd: Crowd, probes: Crowd, gold: NDArray[np.int16]) -> Iterator[tuple[str, Shares]]:
    """Yield every model of `probes` and how much of its mistakes the workers of a crowd share."""
    # gold int16 [n_tokens]
    codec = joined(crowd.tagset, probes.tagset)
    answers = crowd.latest
    people = _marks(
        translate(answers.codes, crowd.tagset, codec), answers.offset,
        crowd.offsets[answers.item], codec,
    )  # fmt: skip
    known = translate(gold, crowd.tagset, codec)
    place = pc.fill_null(pc.index_in(probes.item_ids, value_set=crowd.item_ids), -1)
    item_of = np.asarray(place.to_numpy(zero_copy_only=False), np.int64)
    there = np.flatnonzero(item_of >= 0)
    mine, theirs = np.diff(crowd.offsets)[item_of[there]], np.diff(probes.offsets)[there]
    other = np.flatnonzero(mine != theirs)
    if len(other):
        name = probes.item_ids[int(there[other[0]])].as_py()
        raise InputError(
            f"item {name} has {mine[other[0]]} tokens, and {theirs[other[0]]} where models "
            "answered it"
        )
    given = probes.latest
    for n, name in enumerate(probes.worker_ids.to_pylist()):
        own = given.take((given.worker == n) & (item_of[given.item] >= 0))
        item = item_of[own.item]
        codes = translate(own.codes, probes.tagset, codec)
        marks = _marks(codes, own.offset, crowd.offsets[item], codec)
        yield name, _shares(crowd, codec, people, marks, item[marks.owner], known)


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
    crowd: Crowd, codec: Codec, people: _Marks, marks: _Marks, item: Ints, gold: NDArray[np.int16]
) -> Shares:
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
    beta = beta * habit[pairs.worker]
    if codec.rules.is_plain:  # of two labels there is but one mistake
        beta = np.maximum(beta, (1 - inferred.alpha[pairs.worker]) / max(len(codec.tags) - 1, 1))
    beta = np.minimum(beta, 0.95)
    chance = inferred.right * inferred.alpha[pairs.worker] + (1 - inferred.right) * beta

    def count(weight: NDArray[np.generic]) -> Floats:
        found = np.bincount(pairs.worker[wrong], weight[wrong].astype(np.float64), n)
        return found.astype(np.float64)

    judged, shared = count(np.ones(len(wrong))), count(same)
    expected, known_wrong = count(chance), count(known == 0)
    p_value = _p_of_shared(judged, shared, expected, count(chance * (1 - chance)))
    both = wrong & pairs.same
    return Shares(
        judged.astype(np.int64), shared.astype(np.int64), expected,
        known_wrong.astype(np.int64), p_value,
        [item[pairs.mark[both & (pairs.worker == worker)]] for worker in range(n)],
    )  # fmt: skip


def _known(crowd: Crowd, codec: Codec, marks: _Marks, item: Ints, gold: NDArray[np.int16]) -> Ints:
    """Return 1 for marks that are right, 0 for wrong ones, -1 where that is not known."""
    found = np.full(len(item), -1, np.int64)
    complete = count_in_rows(gold < 0, crowd.offsets) == 0
    there = gold[marks.token] >= 0 if codec.rules.is_plain else complete[item]
    truth = _marks(gold, crowd.offsets, crowd.offsets[:-1], codec)
    found[there] = np.isin(marks.key[there], truth.key)
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
