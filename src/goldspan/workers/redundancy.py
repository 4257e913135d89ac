"""Adaptive redundancy: which answers to ask for next, and the replay of a recorded crowd."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._arrays import keys_of, scattered
from goldspan._kernel import kernel
from goldspan.aggregation import aggregate, get_aggregator
from goldspan.aggregation.consensus import Consensus
from goldspan.aggregation.families import Families, check_families, families_for
from goldspan.crowd import Answers, Crowd, ReadOptions
from goldspan.crowd.gold import attach_gold
from goldspan.crowd.labels import recode
from goldspan.crowd.layers import joined_parts, of_wholes, require_flat
from goldspan.errors import InputError, UnknownNameError
from goldspan.money import MICRO
from goldspan.params import Whole, require
from goldspan.spans import Tagged
from goldspan.spans.scoring import score_codes
from goldspan.workers.beta import Reliability
from goldspan.workers.stopping import (
    Confident,
    Floats,
    Habits,
    Pool,
    Rule,
    answer_counts,
    get_rule,
    independent_answers,
    item_confidence,
    item_gain,
    learn_habits,
    make_pool,
    pair_gain,
    per_item,
    posterior_of,
    worth,
)

# --------------------------------------------------------------------------------------------------
# Items choose workers, one after the other.


@kernel
def match(  # noqa: C901 - one loop for Numba
    items: NDArray[Any],  # int64 [n], in the order in which they choose
    values: NDArray[Any],  # float64 [n, n_candidates]
    candidates: NDArray[Any],  # int64 [n_candidates], workers
    bounds: NDArray[Any],  # int64 [n_items + 1]
    asked: NDArray[Any],  # int64 [n_answers], workers
    left: NDArray[Any],  # int64 [n_workers], answers that may still be asked of them; counted down
    chosen: NDArray[Any],  # int64 [n]; written: index among the candidates, -1 nobody
) -> None:
    """Let every item take the best candidate who has not answered it and has answers left."""
    # Whose value is below 0 is not taken
    for row in range(len(items)):
        best = -1
        for c in range(len(candidates)):
            worker = candidates[c]
            if left[worker] <= 0 or values[row, c] < 0:
                continue
            if best >= 0:
                other = candidates[best]
                if values[row, c] < values[row, best]:
                    continue
                if values[row, c] == values[row, best] and left[worker] <= left[other]:
                    continue
            known = False
            for at in range(bounds[items[row]], bounds[items[row] + 1]):
                if asked[at] == worker:
                    known = True
                    break
            if not known:
                best = c
        chosen[row] = best
        if best >= 0:
            left[candidates[best]] -= 1


# --------------------------------------------------------------------------------------------------
# Who is asked about which item: the most promising items first, each its best worker per money.


CANDIDATES = 16
"""So many workers an item looks at closely; more if they may all have answered it."""
IDLE = 0.1
"""Who is worth less than this share of the mean worker tells next to nothing: not asked. Nor is who
would add less to the effective number of their family's answers to the item."""
_BLOCK = 4096
_FREE = 1e-9
"""What costs nothing counts as this part of a millionth, so that the better of two ranks first."""
_NO_GAIN = 1e-12
"""Added to every gain: where nothing is to be gained, the cheapest is still the best."""


@dataclass(frozen=True, eq=False)
class Match:
    """Items and the workers to ask about them."""

    item: NDArray[np.int64]  # [n], in order of what they promise
    worker: NDArray[np.int64]  # [n], indices of the pool
    gain: Floats  # [n], expected
    nobody: NDArray[np.bool_]  # [n_items]


def match_workers(
    crowd: Crowd, probs: Floats, habits: Habits, pool: Pool, is_open: NDArray[np.bool_],
    *, n: int | None = None, random_state: int = 0,
) -> Match:  # fmt: skip
    """Choose the workers who are asked about the most promising open items."""
    # probs float64 [n_tokens, J], posteriors; is_open bool [n_items]
    rng = np.random.default_rng(random_state)
    ranked = _ranked(habits, probs, crowd, pool, is_open, rng)
    by_item = crowd.by_item
    asked = pool.place[crowd.latest.worker[by_item.order]]
    useful = np.isin(asked, ranked)
    answered = np.bincount(crowd.latest.item[by_item.order][useful], minlength=crowd.n_items)
    grouping = FamilyAnswers.of(crowd, pool.grouping)
    if grouping is not None:
        items = crowd.latest.item[by_item.order][useful]
        answered = answered + grouping.n_idle(
            pool.family[ranked], pool.family[asked[useful]], items
        )
    nobody = is_open & (answered >= len(ranked))
    queue = _most_promising(probs, crowd.offsets, habits, is_open & ~nobody, rng)
    found = []
    left, wanted = pool.left.copy(), len(queue) if n is None else n
    while len(queue) and wanted > 0:
        available = ranked[left[ranked] > 0]
        candidates = available[: max(CANDIDATES, int(answered.max()) + 1)]
        block = queue[: min(_BLOCK, wanted)]
        state = (by_item.bounds, asked, left)
        chosen, gain = _choose(block, probs, crowd.offsets, pool, candidates, state, grouping)
        got = chosen >= 0
        found.append((block[got], candidates[chosen[got]], gain[got]))
        wanted -= int(got.sum())
        # Who found none of some candidates looks at the next ones; of all, there is none today.
        rest = block[~got] if len(candidates) < len(available) else block[:0]
        queue = np.concatenate([rest, queue[len(block) :]])
    none = np.zeros(0, np.int64)
    item, worker, gains = zip(*found, strict=True) if found else ((none,), (none,), (none,))
    chances = np.concatenate(gains).astype(np.float64)
    return Match(np.concatenate(item), np.concatenate(worker), chances, nobody)


def _most_promising(
    probs: Floats, offsets: NDArray[np.int64], habits: Habits, is_open: NDArray[np.bool_],
    rng: np.random.Generator,
) -> NDArray[np.int64]:  # fmt: skip
    """Sort the open items by what an answer of the mean worker would tell about them."""
    items = np.flatnonzero(is_open)
    # Rounded, so that what is equal but for the last bits is a tie, and the seed decides.
    gain = np.round(item_gain(probs, offsets, habits.mean)[items], 9)
    return np.asarray(items[np.lexsort((rng.random(len(items)), -gain))])


def _ranked(
    habits: Habits, probs: Floats, crowd: Crowd, pool: Pool, is_open: NDArray[np.bool_],
    rng: np.random.Generator,
) -> NDArray[np.int64]:  # fmt: skip
    """Sort the workers of the pool by worth per money; who tells next to nothing is left out."""
    tokens = np.flatnonzero(np.repeat(is_open, np.diff(crowd.offsets)))
    asked_about = probs[rng.permutation(tokens)] if len(tokens) else probs[:0]
    every = Habits(np.concatenate([pool.tables, habits.mean[None]]), habits.mean, habits.shares)
    found = worth(every, asked_about)
    own, mean = found[:-1], found[-1]
    value = _value(own, pool.prices)
    order = np.lexsort((rng.random(len(own)), -np.round(value / value.max(), 9)))
    return np.asarray(order[own[order] >= IDLE * mean])


def _choose(
    block: NDArray[np.int64], probs: Floats, offsets: NDArray[np.int64], pool: Pool,
    candidates: NDArray[np.int64],
    state: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    grouping: FamilyAnswers | None,
) -> tuple[NDArray[np.int64], Floats]:  # fmt: skip
    """Let a block of items choose; gives the places among the candidates, -1 nobody, and gains."""
    chosen = np.full(len(block), -1, np.int64)
    if not len(candidates):
        return chosen, np.zeros(len(block))
    item, worker = np.repeat(block, len(candidates)), np.tile(candidates, len(block))
    gain = pair_gain(probs, offsets, pool.tables, item, worker).reshape(-1, len(candidates))
    prices = None if pool.prices is None else pool.prices[candidates]
    value = _value(gain, prices)
    if grouping is not None:
        added = grouping.added(item, pool.family[worker]).reshape(gain.shape)
        gain = gain * added
        value = np.where(added < IDLE, -1.0, _value(gain, prices))
    match(block, value, candidates, *state, chosen)
    return chosen, gain[np.arange(len(block)), np.maximum(chosen, 0)]


@dataclass(frozen=True, eq=False)
class FamilyAnswers:
    """How many members of every family answered every item."""

    grouping: Families
    key: NDArray[np.int64]  # [n_cells], item * n_families + family, increasing
    count: NDArray[np.int64]  # [n_cells], how many
    n_items: int

    @classmethod
    def of(cls, crowd: Crowd, grouping: Families | None) -> FamilyAnswers | None:
        """Count; None where everybody errs alone."""
        if grouping is None:
            return None
        answers, n_families = crowd.latest, np.int64(len(grouping.rho))
        key, count = np.unique(
            answers.item * n_families + grouping.number[answers.worker], return_counts=True
        )
        return cls(grouping, key, count, crowd.n_items)

    def added(self, item: NDArray[np.int64], family: NDArray[np.int64]) -> Floats:
        """Return what one more answer adds to the family's effective number, float64 [n_pairs]."""
        if not len(self.key):
            return np.ones(len(item))
        key = item * np.int64(len(self.grouping.rho)) + family
        place = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
        n = np.where(self.key[place] == key, self.count[place], 0)
        return self.grouping.effective_of(n + 1, family) - self.grouping.effective_of(n, family)

    def n_idle(
        self, ranked: NDArray[np.int64], asked: NDArray[np.int64], item: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """Count the workers whom items pass over for their families, int64 [n_items]."""
        # ranked int64 [n_ranked]; asked int64 [n_answers]
        # item int32 [n_answers], what they answered
        n_families = len(self.grouping.rho)
        where, family = np.divmod(self.key, n_families)
        done = np.bincount(
            np.searchsorted(self.key, item * np.int64(n_families) + asked), minlength=len(self.key)
        )
        rest = np.bincount(ranked, minlength=n_families)[family] - done
        idle = self.added(where, family) < IDLE
        return np.bincount(where, rest * idle, self.n_items).astype(np.int64)


def _value(gain: Floats, prices: NDArray[np.int64] | None) -> Floats:
    """Return gain per money."""
    if prices is None:
        return gain + _NO_GAIN
    return np.asarray((gain + _NO_GAIN) / np.maximum(prices, _FREE))


# --------------------------------------------------------------------------------------------------
# Which items need another answer, from whom it is worth most, and which are finished.


OPEN, BY_RULE, AT_MAXIMUM, NOBODY_LEFT = range(4)
"""States of an item: what `NextAnswers.status` holds."""
CONFIDENCE = 0.95
MAX_ANSWERS = 7


@dataclass(frozen=True, eq=False)
class NextAnswers:
    """What to ask next, whom, and what need not be asked any more."""

    crowd: Crowd  # The crowd
    rule: Rule  # The stopping rule
    status: NDArray[np.int8]  # Int8 [n_items]: `OPEN`, `BY_RULE`, `AT_MAXIMUM` or `NOBODY_LEFT`
    answers: NDArray[np.int64]  # Int64 [n_items], answers so far
    confidence: NDArray[np.float32]  # Float32 [n_items], of the least certain token or span
    worker_ids: pa.Array  # Arrow string array [n_pool], who can be asked
    item: NDArray[np.int64]  # Int64 [n], the items to ask about, the most promising first
    worker: NDArray[np.int64]  # Int64 [n], whom to ask, indices of `worker_ids`
    # Float64 [n], expected gain of the answer: how many more tokens of the item a label drawn from
    # the posterior gets right (`goldspan.workers.stopping`)
    gain: NDArray[np.float64]
    price: NDArray[np.int64] | None  # Int64 [n], millionths of the unit, or None

    def __len__(self) -> int:
        """Count the answers to ask for."""
        return len(self.item)

    @property
    def is_finished(self) -> NDArray[np.bool_]:
        """Which items are not asked about any more, bool [n_items]."""
        return np.asarray(self.status != OPEN)

    @property
    def cost(self) -> int | None:
        """What the answers cost in all, millionths of the unit; None without prices."""
        return None if self.price is None else int(self.price.sum())

    @cached_property
    def reasons(self) -> list[str]:
        """Why an item is finished, by status."""
        return ["open", self.rule.reason, "at the maximum of answers", "nobody left to ask"]

    def counts(self) -> dict[str, int]:
        """Count the items by reason; "open" are those that need an answer."""
        found = np.bincount(self.status, minlength=len(self.reasons)).tolist()
        return dict(zip(self.reasons, found, strict=True))

    def to_arrow(self) -> pa.Table:
        """Return a row per answer to ask for, the most promising item first.

        Columns: item, answers, confidence, worker, gain, price and gain_per_price, which is
        infinite for what is free; both are null without prices.
        """
        price = np.zeros(len(self)) if self.price is None else self.price / MICRO
        with np.errstate(divide="ignore", invalid="ignore"):
            per_price = np.where(price > 0, self.gain / price, np.inf)
        unknown = np.full(len(self), self.price is None)
        return pa.table(
            {
                "item": self.crowd.item_ids.take(pa.array(self.item)),
                "answers": pa.array(self.answers[self.item]),
                "confidence": pa.array(self.confidence[self.item]),
                "worker": self.worker_ids.take(pa.array(self.worker)),
                "gain": pa.array(self.gain),
                "price": pa.array(price, mask=unknown),
                "gain_per_price": pa.array(per_price, mask=unknown),
            }
        )

    def finished(self) -> pa.Table:
        """Return a row per finished item: item, answers, confidence, reason."""
        items = np.flatnonzero(self.is_finished)
        words = pa.array(self.reasons, pa.string())
        return pa.table(
            {
                "item": self.crowd.item_ids.take(pa.array(items)),
                "answers": pa.array(self.answers[items]),
                "confidence": pa.array(self.confidence[items]),
                "reason": words.take(pa.array(self.status[items])),
            }
        )

    def __repr__(self) -> str:
        """Return how many are open and finished."""
        finished = int(self.is_finished.sum())
        return f"NextAnswers({len(self)} to ask, {finished} of {self.crowd.n_items} finished)"


def next_answers(
    crowd: Crowd,
    consensus: Consensus,
    *,
    confidence: float = CONFIDENCE,
    max_answers: int = MAX_ANSWERS,
    min_answers: int = 1,
    rule: str | Rule | None = None,
    prices: Mapping[str, Any] | Any = None,
    workers: Sequence[str] | Reliability | None = None,
    per_worker_limit: int | None = None,
    n: int | None = None,
    random_state: int = 0,
) -> NextAnswers:
    r"""Return which items need another answer, from whom it is worth most, and which are finished.

    Items are asked about in the order of the expected gain of the mean worker's answer. Every one
    takes the worker with the largest expected gain per money of those who have not answered it and
    may still be asked. Workers who tell next to nothing are not asked at any price.

    Families of the result, whose members err together, count as fewer answers everywhere: by the
    rule, at the maximum, and in what another answer of a member gains beside the others'. Who would
    add next to nothing to them is not asked about the item.

    Args:
        crowd: The answers so far.
        consensus: What they say: a result for the same items; with families where workers may err
            together, for example by `aggregate(crowd, "ds", families="auto")`.
        confidence: Posterior at which an item is finished: the rule "confident(.95)".
        max_answers: An item that has so many is finished, whatever is known of it.
        min_answers: An item with fewer is not finished by the rule.
        rule: Another rule in its place: "clear_majority(2)", "stable_average(.5)", "fixed(5)", or
            a `Rule`.
        prices: Money per answer by worker id, or one amount for all; 0 is free.
        workers: Who can be asked: ids, also of newcomers, of whom the mean worker's answers are
            expected; or test results, which then say what to expect of them; by default the
            crowd's workers.
        per_worker_limit: Most answers that are asked of one worker now; items that come away empty
            stay open. Without, the best worker may be asked about everything.
        n: Most items to ask about; all open ones by default.
        random_state: Seed of the order among equals.

    Raises:
        InputError: The result is of other items, a number makes no sense, or prices or workers do
            not fit.
        UnknownNameError: Unknown rule.

    >>> import goldspan
    >>> rows = "".join(f"q{i},{w},{'yn'[i % 2]}\n" for i in range(8) for w in "abc")
    >>> crowd = goldspan.read_crowd(("task,worker,label\n" + rows + "x,a,y\nx,b,n\n").encode())
    >>> found = next_answers(crowd, goldspan.aggregate(crowd, "one-coin"))
    >>> found.to_arrow().select(["item", "worker"]).to_pylist()
    [{'item': 'x', 'worker': 'c'}]
    >>> found.counts()["confident"]
    8
    """
    stop = Confident(confidence) if rule is None else get_rule(rule)
    require("max_answers", max_answers, Whole(1))
    require("min_answers", min_answers, Whole(1))
    if min_answers > max_answers:
        raise InputError(f"min_answers is {min_answers}, more than max_answers, {max_answers}")
    if n is not None:
        require("n", n, Whole(0))
    joined = _aligned(crowd, consensus)
    habits = learn_habits(consensus)
    pool = make_pool(
        joined, consensus.crowd, habits,
        workers=workers, prices=prices, per_worker_limit=per_worker_limit,
        families=consensus.families,
    )  # fmt: skip
    status = states(joined, consensus, stop, min_answers, max_answers)
    is_open = of_wholes(joined, np.logical_or, status == OPEN)
    status = np.where(is_open, OPEN, of_wholes(joined, np.maximum, status)).astype(np.int8)
    whole, tokens = (joined, slice(None)) if joined.wholes is None else joined_parts(joined)
    probs = posterior_of(consensus, habits)[tokens]
    found = match_workers(whole, probs, habits, pool, is_open, n=n, random_state=random_state)
    status[found.nobody] = NOBODY_LEFT
    return NextAnswers(
        crowd.whole_items,
        stop,
        status,
        answer_counts(crowd.whole_items),
        of_wholes(crowd, np.minimum, item_confidence(consensus)),
        pool.worker_ids,
        found.item,
        found.worker,
        found.gain,
        None if pool.prices is None else pool.prices[found.worker],
    )


def states(
    crowd: Crowd, result: Consensus | None, rule: Rule, min_answers: int, max_answers: int
) -> NDArray[np.int8]:
    """Say of every item whether it is open, finished by the rule, or at the maximum."""
    # returns int8 [n_items]
    counts = independent_answers(crowd, result)
    status = np.where(counts >= max_answers, AT_MAXIMUM, OPEN).astype(np.int8)
    status[rule.finished(crowd, result) & (counts >= min_answers)] = BY_RULE
    return status


def _aligned(crowd: Crowd, result: Consensus) -> Crowd:
    """Return the crowd in the tags of a result for the same items."""
    if not crowd.item_ids.equals(result.crowd.item_ids) or crowd.n_tokens != len(result.codes):
        raise InputError("the result is of other items than the crowd: aggregate this crowd")
    mine, its = crowd.tagset, result.tagset
    if mine == its:
        return crowd
    if mine.encoding != its.encoding or not set(mine.tags) <= set(its.tags):
        raise InputError("the crowd has labels that the result lacks: aggregate this crowd")
    return recode(crowd, its)


# --------------------------------------------------------------------------------------------------
# A crowd's recorded answers: which of them are revealed so far, and which comes next.


ORDERS = ("random", "time", "given")


@dataclass(eq=False)
class RevealedAnswers:
    """The answers of a crowd, and which of them are revealed, in which order."""

    crowd: Crowd
    answers: Answers  # Its answers that count
    rank: NDArray[np.int64]  # [n_answers], place of an answer among those of its item
    asked: NDArray[np.int64]  # [n_answers], when it was revealed; -1 not yet

    @classmethod
    def of(cls, crowd: Crowd, order: str, seed: int) -> RevealedAnswers:
        """Wind a crowd's answers up in an order of `ORDERS`."""
        answers = crowd.latest
        if not len(answers):
            raise InputError("the crowd has no answer: there is nothing to replay")
        sorted_ = crowd.by_item.order
        if order == "random":
            sorted_ = np.lexsort((_keys_of_answers(crowd, answers, seed), answers.item))
        elif order == "time":
            when = answers.submitted
            if when is None or (when < 0).any():
                raise InputError("order: not all answers have a time; use random or given")
            sorted_ = np.lexsort((when, answers.item))
        rank = np.empty(len(answers), np.int64)
        starts = crowd.by_item.bounds[:-1]
        rank[sorted_] = np.arange(len(answers)) - starts[answers.item[sorted_]]
        # Without times, so that rules see the answers in the order in which they are revealed.
        plain = replace(
            answers, attempt=np.zeros_like(answers.attempt), started=None, submitted=None
        )
        return cls(crowd, plain, rank, np.full(len(answers), -1, np.int64))

    def ask(self, k: int) -> None:
        """Reveal the first k answers of every item."""
        first = self.rank < k
        self.asked[first] = self.rank[first]

    def ask_more(self, is_open: NDArray[np.bool_], gains: NDArray[np.float64] | None) -> None:
        """Reveal one more answer of every open item: the next, or that of largest gain."""
        rest = np.flatnonzero((self.asked < 0) & is_open[self.answers.item])
        wish = self.rank[rest] if gains is None else -gains[rest]
        rest = rest[np.lexsort((self.rank[rest], wish, self.answers.item[rest]))]
        items = self.answers.item[rest]
        chosen = rest[np.concatenate([[True], items[1:] != items[:-1]])] if len(rest) else rest
        self.asked[chosen] = self.asked.max() + 1

    def has_more(self) -> NDArray[np.bool_]:
        """Return which items have answers that are not revealed, bool [n_items]."""
        found = np.zeros(self.crowd.n_items, np.bool_)
        found[self.answers.item[self.asked < 0]] = True
        return found

    def so_far(self) -> Crowd:
        """Return the crowd with the answers revealed, in the order in which they were."""
        order = np.argsort(self.asked, kind="stable")
        shown = order[self.asked[order] >= 0]
        return replace(self.crowd, answers=self.answers.take(shown))


def _keys_of_answers(crowd: Crowd, answers: Answers, seed: int) -> NDArray[np.uint64]:
    """Hash the seed, item id and worker id of every answer, uint64 [n_answers]."""
    # So an order by it does not depend on how the answers are sorted, nor on which others there are
    items = keys_of([f"{seed}\0{name}" for name in crowd.item_ids.to_pylist()])
    workers = keys_of(crowd.worker_ids)
    return scattered(items[answers.item] ^ workers[answers.worker])


# --------------------------------------------------------------------------------------------------
# What a stopping rule would have saved: recorded answers are revealed one by one.


CHOICES = ("queue", "gain")
Method = str | Callable[[Crowd], Consensus]


@dataclass(frozen=True)
class Stage:
    """How far it was at a moment."""

    n_answers: int  # Answers used so far
    per_item: float  # The same per item
    n_open: int  # Items that needed another answer
    score: float  # Accuracy of the labels so far (tagged tokens: span F1), NaN without gold


@dataclass(frozen=True, eq=False)
class Replay:
    """What came of a replay."""

    rule: Rule  # The stopping rule
    result: Consensus = field(repr=False)  # The labels at the end; its crowd holds the answers used
    # Int8 [n_items], why it was finished: the states of `NextAnswers`
    status: NDArray[np.int8] = field(repr=False)
    answers: NDArray[np.int64] = field(repr=False)  # Int64 [n_items], answers used
    rounds: tuple[Stage, ...] = field(repr=False)  # After every round; the last is the end
    fixed: tuple[Stage, ...] = field(repr=False)  # Fixed redundancy of 1, 2, … answers
    # Of the items with gold that the rule finished, the share whose labels are all right: a rule at
    # .95 should not be far below; NaN without any
    finished_right: float = float("nan")

    @property
    def n_answers(self) -> int:
        """Answers used."""
        return self.rounds[-1].n_answers

    @property
    def per_item(self) -> float:
        """Answers used per item."""
        return self.rounds[-1].per_item

    @property
    def score(self) -> float:
        """Accuracy at the end (tagged tokens: span F1), NaN without gold."""
        return self.rounds[-1].score

    def share_of(self, k: int) -> float:
        """Return the answers used as a share of those of k-fold redundancy.

        Raises:
            InputError: That was not played.
        """
        if not 1 <= k <= len(self.fixed):
            raise InputError(f"fixed redundancy was played for 1 … {len(self.fixed)}, not {k}")
        return self.n_answers / self.fixed[k - 1].n_answers


def replay(
    crowd: Crowd,
    *,
    method: Method = "ds",
    rule: str | Rule = "confident(0.95)",
    max_answers: int = MAX_ANSWERS,
    min_answers: int = 1,
    order: str = "random",
    choose: str = "queue",
    random_state: int = 0,
    gold: Any = None,
    families: Any = "auto",
    with_fixed: bool = True,
) -> Replay:
    r"""Play a stopping rule on the answers that a crowd really gave.

    An item that later answers elsewhere make less certain is asked about again: workers turn out
    to be worse than they seemed.

    Args:
        crowd: The answers; the more per item, the more there is to save.
        method: How to aggregate: a name, or a function from a `Crowd` to a `Consensus`, for
            example one that calibrates it.
        rule: The stopping rule, as for `next_answers`.
        max_answers: Most answers of an item.
        min_answers: Answers that every item begins with, if it has so many.
        order: In which order an item's answers come: "random", "time" (needs times), or "given" (as
            they stand in the crowd).
        choose: Whose answer comes next: "queue" by the order, "gain" that with the largest expected
            gain of those that the item really has.
        random_state: Seed of the order, which is by a hash of the seed and the ids of item and
            worker: however the answers are sorted, and whichever others there are.
        gold: Known labels, only to score: as for `read_crowd`; by default the crowd's own.
        families: Parameter of the method where it has one: workers who err together, by default
            found by the answers so far; they count as fewer answers.
        with_fixed: Whether to play fixed redundancy as well.

    Returns:
        Answers used and accuracy, round by round, and those of fixed redundancy.

    Raises:
        InputError: The crowd has no answer or no times, or a number makes no sense.
        UnknownNameError: Unknown rule, order, choice or method.

    >>> import goldspan
    >>> rows = "".join(f"q{i},{w},{'yn'[i % 2]}\n" for i in range(8) for w in "abcde")
    >>> crowd = goldspan.read_crowd(("task,worker,label\n" + rows).encode())
    >>> found = replay(crowd, rule="clear_majority(2, least=2)", max_answers=5)
    >>> found.per_item, found.share_of(5)
    (2.0, 0.4)
    """
    stop = get_rule(rule)
    require("max_answers", max_answers, Whole(1))
    require("min_answers", min_answers, Whole(1))
    for what, name, known in (("order", order, ORDERS), ("choice", choose, CHOICES)):
        if name not in known:
            raise UnknownNameError(what, name, known)
    require_flat(crowd, "a replay")
    if gold is not None:
        crowd = attach_gold(crowd.with_gold(None), gold, ReadOptions(), refine=True)
    method = _heeding(method, families, crowd)
    revealed = RevealedAnswers.of(crowd, order, random_state)
    revealed.ask(min(min_answers, max_answers))
    rounds = []
    while True:
        result = _aggregate(revealed.so_far(), method)
        status = states(result.crowd, result, stop, min_answers, max_answers)
        status[(status == OPEN) & ~revealed.has_more()] = NOBODY_LEFT
        is_open = status == OPEN
        rounds.append(_stage(result, int(is_open.sum())))
        if not is_open.any():
            break
        revealed.ask_more(is_open, _gains(result, revealed) if choose == "gain" else None)
    return Replay(
        stop,
        result,
        status,
        answer_counts(result.crowd),
        tuple(rounds),
        _fixed(crowd, method, order, random_state, max_answers) if with_fixed else (),
        _finished_right(result, status),
    )


def _heeding(method: Method, families: Any, crowd: Crowd) -> Method:
    """Return a method that heeds families; given ones are measured by all answers."""
    check_families(families)
    if not isinstance(method, str):
        return method
    if "families" not in get_aggregator(method).parameter_names():
        return method
    grouping = families if families == "auto" else families_for(families, crowd) or "none"
    return lambda some: aggregate(some, method, families=grouping)


def _aggregate(crowd: Crowd, method: Method) -> Consensus:
    return aggregate(crowd, method) if isinstance(method, str) else method(crowd)


def _gains(result: Consensus, revealed: RevealedAnswers) -> NDArray[np.float64]:
    """Return the expected gain of every answer that is not revealed, float64 [n_answers]."""
    habits = learn_habits(result)
    rest = np.flatnonzero(revealed.asked < 0)
    gains = np.zeros(len(revealed.asked))
    item, worker = (
        one[rest].astype(np.int64) for one in (revealed.answers.item, revealed.answers.worker)
    )
    gains[rest] = pair_gain(
        posterior_of(result, habits), result.crowd.offsets, habits.tables, item, worker
    )
    if (grouping := FamilyAnswers.of(result.crowd, result.families)) is not None:
        gains[rest] *= grouping.added(item, grouping.grouping.number[worker])
    return gains


def _fixed(
    crowd: Crowd, method: Method, order: str, seed: int, max_answers: int
) -> tuple[Stage, ...]:
    stages = []
    for k in range(1, max_answers + 1):
        revealed = RevealedAnswers.of(crowd, order, seed)
        revealed.ask(k)
        stages.append(_stage(_aggregate(revealed.so_far(), method), 0))
    return tuple(stages)


def _stage(result: Consensus, n_open: int) -> Stage:
    n_answers = len(result.crowd.latest)
    return Stage(n_answers, n_answers / result.crowd.n_items, n_open, score_of(result))


def score_of(result: Consensus) -> float:
    """Return the accuracy of single labels, or span F1 of tagged tokens; NaN without gold."""
    gold = result.crowd.gold
    if gold is None or not (gold >= 0).any():
        return float("nan")
    if result.tagset.rules.is_plain:
        return float((result.codes == gold)[gold >= 0].mean())
    return score_codes(Tagged(gold, result.crowd.offsets), result.tagged, result.tagset).f1


def right_items(result: Consensus) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which whole items are right at every token and fully known; bool [n_wholes]."""
    gold, offsets = result.crowd.gold, result.crowd.offsets
    if gold is None:
        none = np.zeros(result.crowd.whole_items.n_items, np.bool_)
        return none, none
    right = per_item(np.logical_and, result.codes == gold, offsets, empty=True)
    known = per_item(np.logical_and, gold >= 0, offsets, empty=False)
    of = partial(of_wholes, result.crowd, np.logical_and)
    return of(right), of(known)


def _finished_right(result: Consensus, status: NDArray[np.int8]) -> float:
    """Return the share of right items among those with gold that the rule finished."""
    right, known = right_items(result)
    kept = (status == BY_RULE) & known
    return float(right[kept].mean()) if kept.any() else float("nan")
