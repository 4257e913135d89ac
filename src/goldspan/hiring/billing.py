"""Making a bill: which answers are paid, what they took, and what the plan gives for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Answers, Crowd
from goldspan.errors import InputError, UnknownNameError
from goldspan.hiring.beta import Reliability
from goldspan.hiring.bill import MINUTE, Bill, BillLine
from goldspan.hiring.pay import PayPlan
from goldspan.money import MICRO, from_micro

ATTEMPTS = ("every", "latest")
"""Which of a worker's several answers to an item are paid."""
RECORDED = ("compare", "use", "ignore")
"""What becomes of costs that the answers come with."""


def make_bill(
    crowd: Crowd,
    plan: PayPlan,
    *,
    reliability: Reliability | None = None,
    attempts: str = "every",
    recorded: str = "compare",
) -> Bill:
    r"""Make the bill of a crowd's answers.

    Every submitted answer is paid, repeated ones too: the work was done. An answer without any
    label is not paid.

    Args:
        crowd: The answers; times in `started` and `submitted`, costs in `cost` where there are any.
        plan: What pays how much.
        reliability: Who deserves a bonus; by default measured against the crowd's gold.
        attempts: "every", or "latest": of several answers to an item only the last.
        recorded: Costs that answers come with are compared with the plan ("compare"), paid in place
            of the plan's base ("use"), or ignored ("ignore").

    Raises:
        InputError: There is no answer, a floor but no time, a bonus but nothing to judge by, or
            "use" without recorded costs.
        UnknownNameError: There is no such rule.

    >>> import goldspan
    >>> from goldspan.hiring import PayPlan
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,ann,x\n2,ann,y\n1,bob,x\n")
    >>> print(make_bill(crowd, PayPlan(per_answer="0.05", fee="20%", currency="USD")))
    0.18 USD for 2 workers: base 0.15 + fee 0.03
    """
    for value, known in ((attempts, ATTEMPTS), (recorded, RECORDED)):
        if value not in known:
            raise UnknownNameError("rule for a bill", value, known)
    answers = _paid(crowd, attempts)
    spent = _milliseconds(answers, plan)
    cost = None if recorded == "ignore" or answers.cost is None else answers.cost
    if recorded == "use" and cost is None:
        raise InputError('recorded="use" needs answers with a cost: the crowd has none')
    if plan.per_minute_floor and not (spent >= 0).any():
        raise InputError(
            "a pay per minute needs to know when answers were started and submitted, and no answer "
            "has both: leave out per_minute_floor, or read the times (columns started, submitted)"
        )
    base = _base(answers, plan, cost if recorded == "use" else None)
    lines = _lines(crowd, plan, answers, spent, base, _judge(crowd, plan, reliability))
    notes = [*_notes(crowd, plan, answers, spent, attempts), *_compare(cost, base, recorded)]
    return Bill(plan, lines, tuple(notes))


def _paid(crowd: Crowd, attempts: str) -> Answers:
    """Give the answers that are paid."""
    answers = crowd.answers if attempts == "every" else crowd.latest
    found = answers.take(_labelled(answers) > 0) if len(answers) else answers
    if not len(found):
        raise InputError("the crowd has no answer: there is nothing to pay")
    return found


def _labelled(answers: Answers) -> NDArray[np.int64]:
    """Count the labelled tokens of every answer, int64 [n_answers]."""
    return np.add.reduceat((answers.codes >= 0).astype(np.int64), answers.offset[:-1])


def _milliseconds(answers: Answers, plan: PayPlan) -> NDArray[np.int64]:
    """Give the time of every answer, int64 [n_answers], −1 where it is not known."""
    if answers.started is None or answers.submitted is None:
        return np.full(len(answers), -1, np.int64)
    known = (answers.started >= 0) & (answers.submitted >= answers.started)
    longest = plan.micro("idle_minutes") * MINUTE // MICRO
    return np.where(known, np.minimum(answers.submitted - answers.started, longest), -1)


def _base(answers: Answers, plan: PayPlan, cost: NDArray[np.int64] | None) -> NDArray[np.object_]:
    """Give the pay of every answer in millionths, as Python integers, which never overflow."""
    found = _labelled(answers).astype(object) * plan.micro("per_token") + plan.micro("per_answer")
    if cost is not None:
        found = np.where(cost >= 0, cost.astype(object), found)
    return np.asarray(found, object)


def _judge(
    crowd: Crowd, plan: PayPlan, reliability: Reliability | None
) -> dict[str, tuple[float, float]]:
    """Give right and judged answers by worker; nothing where no bonus is promised."""
    if not plan.bonuses:
        return {}
    if reliability is None:
        if crowd.gold is None or not (crowd.gold >= 0).any():
            raise InputError(
                "a bonus needs to know who is right: read the crowd with gold, or pass "
                "reliability=goldspan.hiring.measure_reliability(crowd, result=…)"
            )
        from goldspan.hiring.reliability import measure_reliability

        reliability = measure_reliability(crowd)
    counts = zip(reliability.right.tolist(), reliability.total.tolist(), strict=True)
    return dict(zip(reliability.worker_ids.to_pylist(), counts, strict=True))


def _lines(
    crowd: Crowd,
    plan: PayPlan,
    answers: Answers,
    spent: NDArray[np.int64],
    base: NDArray[np.object_],
    judged: dict[str, tuple[float, float]],
) -> tuple[BillLine, ...]:
    is_timed = spent >= 0
    one = np.ones(len(answers), np.int64)
    columns = [one, _labelled(answers), is_timed * one, np.where(is_timed, spent, 0)]
    sums = [_sums(crowd, answers, column) for column in columns]
    pay = _sums(crowd, answers, base)
    timed_pay = _sums(crowd, answers, np.where(is_timed, base, 0))
    floor, step = plan.micro("per_minute_floor"), plan.micro("round_to")
    found = []
    for k, worker in enumerate(crowd.worker_ids.to_pylist()):
        if not sums[0][k]:
            continue
        n_answers, n_tokens, n_timed, milliseconds = (int(column[k]) for column in sums)
        least = -(-floor * milliseconds // MINUTE)
        top_up = max(0, least - timed_pay[k])
        right, total = judged.get(worker, (0.0, 0.0))
        bonus = plan.bonus(pay[k] + top_up, right, total)
        rounding = -(pay[k] + top_up + bonus) % step
        found.append(
            BillLine(
                worker, n_answers, n_tokens, n_timed, milliseconds, right, total,
                int(pay[k]), top_up, bonus, rounding,
            )
        )  # fmt: skip
    return tuple(found)


def _sums(crowd: Crowd, answers: Answers, values: NDArray[Any]) -> list[int]:
    """Add up by worker."""
    found = np.zeros(crowd.n_workers, values.dtype)
    np.add.at(found, answers.worker, values)
    return list(found.tolist())


def _notes(
    crowd: Crowd, plan: PayPlan, answers: Answers, spent: NDArray[np.int64], attempts: str
) -> Iterator[str]:
    """Say what was decided and what is not known."""
    of = len(crowd.answers if attempts == "every" else crowd.latest)
    if of > len(answers):
        yield f"{of - len(answers)} answers without any label are not paid"
    repeats = len(crowd.answers) - len(crowd.latest)
    if repeats:
        yield f"{repeats} repeated answers are {'paid too' if attempts == 'every' else 'not paid'}"
    unknown = int((spent < 0).sum())
    if unknown and plan.per_minute_floor:
        yield f"{unknown} of {len(answers)} answers have no known time: the floor leaves them out"
    longest = plan.micro("idle_minutes") * MINUTE // MICRO
    idle = int((spent == longest).sum())
    if idle and plan.per_minute_floor:
        yield f"{idle} answers took {plan.idle_minutes:f} minutes or more and count as that long"


def _compare(
    cost: NDArray[np.int64] | None, base: NDArray[np.object_], recorded: str
) -> Iterator[str]:
    """Say how the recorded costs differ from the plan."""
    if cost is None:
        return
    known = cost >= 0
    if recorded == "use":
        if not known.all():
            yield f"{int((~known).sum())} answers have no recorded cost and are paid by the plan"
        return
    there, planned = (sum(values[known].tolist()) for values in (cost, base))
    if there != planned:
        yield (
            f"the answers come with costs of {from_micro(there)}, by the plan they are "
            f'{from_micro(planned)}: pass recorded="use" to pay those'
        )
