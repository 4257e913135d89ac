"""What a stopping rule would have saved: real answers are revealed one by one, as if asked anew.

Every item begins with its first answer(s). In every round the crowd so far is aggregated, and each
item that is not finished gets one more of its real answers. Beside it stands fixed redundancy: the
first k answers of every item, in the same order, for k = 1, 2, ….
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregate import aggregate
from goldspan.aggregate.consensus import Consensus
from goldspan.crowd import Crowd, ReadOptions
from goldspan.crowd.gold import attach_gold
from goldspan.errors import InputError, UnknownNameError
from goldspan.hiring.redundancy.asking import BY_RULE, MAX_ANSWERS, NOBODY_LEFT, OPEN, states
from goldspan.hiring.redundancy.gain import learn_habits, pair_gain, posterior_of
from goldspan.hiring.redundancy.registry import get_rule
from goldspan.hiring.redundancy.rules import Rule, check_whole, per_item
from goldspan.hiring.redundancy.tape import ORDERS, Tape
from goldspan.spans import Tagged, score_codes

CHOICES = ("queue", "gain")
Method = str | Callable[[Crowd], Consensus]


@dataclass(frozen=True)
class Stage:
    """How far it was at a moment.

    Attributes:
        n_answers: Answers used so far.
        per_item: The same per item.
        n_open: Items that needed another answer.
        score: Accuracy of the labels so far (tagged tokens: span F1), NaN without gold.
    """

    n_answers: int
    per_item: float
    n_open: int
    score: float


@dataclass(frozen=True, eq=False)
class Replay:
    """What came of a replay.

    Attributes:
        rule: The stopping rule.
        result: The labels at the end; its crowd holds the answers used.
        status: int8 [n_items], why it was finished: the states of `NextAnswers`.
        answers: int64 [n_items], answers used.
        rounds: After every round; the last is the end.
        fixed: Fixed redundancy of 1, 2, … answers.
        finished_right: Of the items with gold that the rule finished, the share whose labels are
            all right: a rule at .95 should not be far below; NaN without any.
    """

    rule: Rule
    result: Consensus = field(repr=False)
    status: NDArray[np.int8] = field(repr=False)
    answers: NDArray[np.int64] = field(repr=False)
    rounds: tuple[Stage, ...] = field(repr=False)
    fixed: tuple[Stage, ...] = field(repr=False)
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
        """Give the answers used as a share of those of k-fold redundancy.

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
    with_fixed: bool = True,
    progress: Callable[[int], None] | None = None,
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
        with_fixed: Whether to play fixed redundancy as well.
        progress: Told the number of open items after every round.

    Returns:
        Answers used and accuracy, round by round, and those of fixed redundancy.

    Raises:
        InputError: The crowd has no answer or no times, or a number makes no sense.
        UnknownNameError: There is no such rule, order, choice or method.

    >>> import goldspan
    >>> rows = "".join(f"q{i},{w},{'yn'[i % 2]}\n" for i in range(8) for w in "abcde")
    >>> crowd = goldspan.read_crowd(("task,worker,label\n" + rows).encode())
    >>> found = replay(crowd, rule="clear_majority(2, least=2)", max_answers=5)
    >>> found.per_item, found.share_of(5)
    (2.0, 0.4)
    """
    stop = get_rule(rule)
    _check(max_answers, min_answers, order, choose)
    if gold is not None:
        crowd = attach_gold(crowd.with_gold(None), gold, ReadOptions(), refine=True)
    tape = Tape.of(crowd, order, random_state)
    tape.ask(min(min_answers, max_answers))
    rounds = []
    while True:
        result = _aggregate(tape.so_far(), method)
        status = states(result.crowd, result, stop, min_answers, max_answers)
        status[(status == OPEN) & ~tape.has_more()] = NOBODY_LEFT
        is_open = status == OPEN
        rounds.append(_stage(result, int(is_open.sum())))
        if progress:
            progress(rounds[-1].n_open)
        if not is_open.any():
            break
        tape.ask_more(is_open, _gains(result, tape) if choose == "gain" else None)
    return Replay(
        stop,
        result,
        status,
        np.diff(result.crowd.by_item.bounds),
        tuple(rounds),
        _fixed(crowd, method, order, random_state, max_answers) if with_fixed else (),
        _finished_right(result, status),
    )


def _check(max_answers: int, min_answers: int, order: str, choose: str) -> None:
    check_whole(max_answers, "max_answers")
    check_whole(min_answers, "min_answers")
    if order not in ORDERS:
        raise UnknownNameError("order", order, ORDERS)
    if choose not in CHOICES:
        raise UnknownNameError("choice", choose, CHOICES)


def _aggregate(crowd: Crowd, method: Method) -> Consensus:
    return aggregate(crowd, method) if isinstance(method, str) else method(crowd)


def _gains(result: Consensus, tape: Tape) -> NDArray[np.float64]:
    """Give the expected gain of every answer that is not revealed, float64 [n_answers]."""
    habits = learn_habits(result)
    rest = np.flatnonzero(tape.asked < 0)
    gains = np.zeros(len(tape.asked))
    gains[rest] = pair_gain(
        posterior_of(result, habits), result.crowd.offsets, habits.tables,
        tape.answers.item[rest].astype(np.int64), tape.answers.worker[rest].astype(np.int64),
    )  # fmt: skip
    return gains


def _fixed(
    crowd: Crowd, method: Method, order: str, seed: int, max_answers: int
) -> tuple[Stage, ...]:
    stages = []
    for k in range(1, max_answers + 1):
        tape = Tape.of(crowd, order, seed)
        tape.ask(k)
        stages.append(_stage(_aggregate(tape.so_far(), method), 0))
    return tuple(stages)


def _stage(result: Consensus, n_open: int) -> Stage:
    n_answers = len(result.crowd.latest)
    return Stage(n_answers, n_answers / result.crowd.n_items, n_open, score_of(result))


def score_of(result: Consensus) -> float:
    """Give the accuracy of single labels, or span F1 of tagged tokens; NaN without gold."""
    gold = result.crowd.gold
    if gold is None or not (gold >= 0).any():
        return float("nan")
    if result.tagset.rules.is_plain:
        return float((result.codes == gold)[gold >= 0].mean())
    return score_codes(Tagged(gold, result.crowd.offsets), result.tagged, result.tagset).f1


def right_items(result: Consensus) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Say which items are right at every token, and of which all gold is known; bool [n_items]."""
    gold, offsets = result.crowd.gold, result.crowd.offsets
    if gold is None:
        none = np.zeros(len(offsets) - 1, np.bool_)
        return none, none
    right = per_item(np.logical_and, result.codes == gold, offsets, empty=True)
    return right, per_item(np.logical_and, gold >= 0, offsets, empty=False)


def _finished_right(result: Consensus, status: NDArray[np.int8]) -> float:
    """Give the share of right items among those with gold that the rule finished."""
    right, known = right_items(result)
    kept = (status == BY_RULE) & known
    return float(right[kept].mean()) if kept.any() else float("nan")
