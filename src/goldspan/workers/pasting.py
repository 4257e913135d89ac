"""Pasted answers: somebody repeats a model's mistakes more often than anybody else would.

A model that answers silently – its answers are kept and count for nothing – is a probe. Two who are
right agree, so that agreement says nothing; the mistakes do. What the model said is `a`; whether it
is right, r, is known, or inferred from the people without the one who is judged:

    P(says a) = P(r) alpha_w + (1 - P(r)) beta,

alpha_w how often he agrees where the model is right, beta how often people fall for the same
mistake: those who answered the item too, shrunken towards all of them, and more for who is often
wrong. Judged are the places where known labels, or more of the others than not, contradict the
model; their number that he shares is compared with a beta-binomial number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan._arrays import count_in_rows
from goldspan.crowd import Crowd
from goldspan.crowd.labels import joined, translate
from goldspan.errors import InputError
from goldspan.spans import Codec, Tagged, find_spans
from goldspan.workers.copying import equal_answers, one_note
from goldspan.workers.flag_context import FlagContext, QualityFlag, beside_spread, percent

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
PASTING = "copies a model"
"""Name of the flag."""
LEAST_SHARED = 5
"""Fewer mistakes in common are not flagged."""
LEAST_SHARE = 0.2
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
        marked = passes & (shares.shared >= LEAST_SHARED) & (shares.pasted >= LEAST_SHARE)
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


class _Pairs(NamedTuple):
    """Marks of the model beside people who answered the same, [n_pairs] each."""

    mark: Ints
    worker: Ints
    same: Bools  # bool, whether he says so too


def _pairs(crowd: Crowd, people: _Marks, marks: _Marks, item: Ints) -> _Pairs:
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
    return _Pairs(mark, answers.worker[answer].astype(np.int64), np.isin(mine, theirs))


def _shares(
    crowd: Crowd, codec: Codec, people: _Marks, marks: _Marks, item: Ints,
    gold: list[NDArray[np.int16]],
) -> Shares:  # fmt: skip
    n = crowd.n_workers
    pairs = _pairs(crowd, people, marks, item)
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
    p_value = _p_value(judged, shared, expected, count(chance * (1 - chance)))
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


def _infer(pairs: _Pairs, known: Ints, n_workers: int) -> _Inferred:
    """Say by EM where the model is right; everybody has an alpha and a beta of their own.

    So whoever agrees with the model in any case has no say in whether it is right.
    """
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


def _p_value(judged: Floats, shared: Floats, expected: Floats, variance: Floats) -> Floats:
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
