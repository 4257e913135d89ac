"""Which items need another answer, from whom it is worth most, and which are finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.aggregate.consensus import Consensus
from goldspan.crowd import Crowd
from goldspan.crowd.gold import recode
from goldspan.errors import InputError
from goldspan.hiring.beta import Reliability
from goldspan.hiring.redundancy.gain import learn_habits, posterior_of
from goldspan.hiring.redundancy.matching import Match, match_workers
from goldspan.hiring.redundancy.pool import Pool, make_pool
from goldspan.hiring.redundancy.registry import get_rule
from goldspan.hiring.redundancy.rules import (
    Confident,
    Rule,
    answer_counts,
    check_whole,
    item_confidence,
)
from goldspan.money import MICRO

OPEN, BY_RULE, AT_MAXIMUM, NOBODY_LEFT = range(4)
"""States of an item: what `NextAnswers.status` holds."""
CONFIDENCE = 0.95
MAX_ANSWERS = 7


@dataclass(frozen=True, eq=False)
class NextAnswers:
    """What to ask next, whom, and what need not be asked any more.

    Attributes:
        crowd: The crowd.
        rule: The stopping rule.
        status: int8 [n_items]: `OPEN`, `BY_RULE`, `AT_MAXIMUM` or `NOBODY_LEFT`.
        answers: int64 [n_items], answers so far.
        confidence: float32 [n_items], of the least certain token or span.
        worker_ids: Arrow string array [n_pool], who can be asked.
        item: int64 [n], the items to ask about, the most promising first.
        worker: int64 [n], whom to ask, indices of `worker_ids`.
        gain: float64 [n], expected gain of the answer: how many more tokens of the item a label
            drawn from the posterior gets right (`goldspan.hiring.redundancy.gain`).
        price: int64 [n], millionths of the unit, or None.
    """

    crowd: Crowd
    rule: Rule
    status: NDArray[np.int8]
    answers: NDArray[np.int64]
    confidence: NDArray[np.float32]
    worker_ids: pa.Array
    item: NDArray[np.int64]
    worker: NDArray[np.int64]
    gain: NDArray[np.float64]
    price: NDArray[np.int64] | None

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
        """Give a row per answer to ask for, the most promising item first.

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
        """Give a row per finished item: item, answers, confidence, reason."""
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
        """Say how many are open and finished."""
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
    r"""Say which items need another answer, from whom it is worth most, and which are finished.

    Items are asked about in the order of the expected gain of the mean worker's answer. Every one
    takes the worker with the largest expected gain per money of those who have not answered it and
    may still be asked. Workers who tell next to nothing are not asked at any price.

    Args:
        crowd: The answers so far.
        consensus: What they say: a result for the same items.
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
        UnknownNameError: There is no such rule.

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
    check_whole(max_answers, "max_answers")
    check_whole(min_answers, "min_answers")
    if min_answers > max_answers:
        raise InputError(f"min_answers is {min_answers}, more than max_answers, {max_answers}")
    if n is not None:
        check_whole(n, "n", least=0)
    joined = _aligned(crowd, consensus)
    habits = learn_habits(consensus)
    pool = make_pool(
        joined, consensus.crowd, habits,
        workers=workers, prices=prices, per_worker_limit=per_worker_limit,
    )  # fmt: skip
    status = states(joined, consensus, stop, min_answers, max_answers)
    probs = posterior_of(consensus, habits)
    found = match_workers(
        joined, probs, habits, pool, status == OPEN, n=n, random_state=random_state
    )
    status[found.nobody] = NOBODY_LEFT
    return _answer(crowd, consensus, stop, status, pool, found)


def states(
    crowd: Crowd, result: Consensus | None, rule: Rule, min_answers: int, max_answers: int
) -> NDArray[np.int8]:
    """Say of every item whether it is open, finished by the rule, or at the maximum.

    Returns:
        int8 [n_items].
    """
    counts = answer_counts(crowd)
    status = np.where(counts >= max_answers, AT_MAXIMUM, OPEN).astype(np.int8)
    status[rule.finished(crowd, result) & (counts >= min_answers)] = BY_RULE
    return status


def _aligned(crowd: Crowd, result: Consensus) -> Crowd:
    """Give the crowd in the tags of a result for the same items."""
    if not crowd.item_ids.equals(result.crowd.item_ids) or crowd.n_tokens != len(result.codes):
        raise InputError("the result is of other items than the crowd: aggregate this crowd")
    mine, its = crowd.tagset, result.tagset
    if mine == its:
        return crowd
    if mine.encoding != its.encoding or not set(mine.tags) <= set(its.tags):
        raise InputError("the crowd has labels that the result lacks: aggregate this crowd")
    return recode(crowd, its)


def _answer(
    crowd: Crowd, result: Consensus, rule: Rule, status: NDArray[np.int8], pool: Pool, found: Match
) -> NextAnswers:
    return NextAnswers(
        crowd,
        rule,
        status,
        answer_counts(crowd),
        item_confidence(result),
        pool.worker_ids,
        found.item,
        found.worker,
        found.gain,
        None if pool.prices is None else pool.prices[found.worker],
    )
