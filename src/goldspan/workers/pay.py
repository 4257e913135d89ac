"""What workers are paid: rates, bonuses, the bill, and its check against a cap."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._arrays import count_in_rows
from goldspan.crowd import Answers, Crowd
from goldspan.crowd.atomic import write_text
from goldspan.crowd.grid import sheet_text
from goldspan.errors import InputError, UnknownNameError
from goldspan.money import MICRO, from_micro, to_micro
from goldspan.workers.beta import Reliability
from goldspan.workers.reliability import measure_reliability

# --------------------------------------------------------------------------------------------------
# What work pays: per answer, per token, at least so much per minute, and a bonus for good work.


LEAST_JUDGED = 10
"""Answers that must be judged before a bonus is due: one lucky answer earns nothing."""
ROUNDING = 1e-9
"""Share of the judged answers by which counts may miss a mark: effective numbers are quotients."""
BONUS_HELP = "0.90:10% (percent of the pay) or 0.90:2.50 (an amount), :20 behind it for at least 20"


@dataclass(frozen=True)
class Bonus:
    """More pay for those who are right often enough."""

    accuracy: float  # Least share of judged answers that are right, 0 … 1
    amount: int = 0  # Millionths; 0 if it is a percentage
    percent: Decimal = Decimal(0)  # Of what the worker earned, floor included; 0 if it is an amount
    least: int = LEAST_JUDGED  # Answers that must be judged

    def __post_init__(self) -> None:
        if not 0 <= self.accuracy <= 1:
            raise InputError(f"the accuracy of a bonus must lie in 0 … 1, not {self.accuracy}")
        if self.least < 1:
            raise InputError(f"a bonus needs at least 1 judged answer, not {self.least}")

    @classmethod
    def parse(cls, text: str) -> Bonus:
        """Read a rule such as "0.90:10%", "0.90:2.50" or "0.90:10%:20".

        >>> Bonus.parse("0.90:10%:20")
        Bonus(accuracy=0.9, amount=0, percent=Decimal('10'), least=20)
        """
        parts = text.split(":")
        try:
            accuracy = float(parts[0])
            least = int(parts[2]) if len(parts) == 3 else LEAST_JUDGED
        except ValueError:
            accuracy, least = -1.0, 0
        if not 2 <= len(parts) <= 3 or not 0 <= accuracy <= 1 or least < 1:
            raise InputError(f"a bonus must look like {BONUS_HELP}, not {text!r}")
        if parts[1].strip().endswith("%"):
            return cls(accuracy, percent=to_percent(parts[1], "a bonus"), least=least)
        return cls(accuracy, amount=to_micro(parts[1], "a bonus"), least=least)

    def __str__(self) -> str:
        """Say the rule in words."""
        much = f"{self.percent.normalize():f} %" if self.percent else from_micro(self.amount)
        return f"{much} for {100 * self.accuracy:g} % right of at least {self.least} judged"

    def is_met(self, right: float, judged: float) -> bool:
        """Return whether so many of the judged answers are enough; exactly at the mark counts."""
        within = ROUNDING * judged
        return judged + within >= self.least and right + within >= self.accuracy * judged

    def due(self, earned: int) -> int:
        """Return the bonus on so much pay, in millionths; half a millionth is rounded up."""
        return self.amount + share_of(earned, self.percent)


@dataclass(frozen=True)
class PayPlan:
    """What is paid for what.

    Amounts may be given as "0.05", 0.05 or a `Decimal`, and are kept as `Decimal`.

    Attributes:
        per_answer: For every answer with at least one label.
        per_token: For every token that was given a label.
        per_minute_floor: Least pay per minute of known work.
        bonuses: Rules as `Bonus` or text ("0.90:10%"); of those that are met the largest is paid.
        fee: Of the platform, in percent of all pay: 20 or "20%".
        idle_minutes: The most that one answer counts as: nobody works on it for longer.
        round_to: Every worker's total is rounded up to a multiple of it, for example "0.01".
        currency: Its name, for print.

    Raises:
        InputError: An amount is negative, no number, or finer than a millionth.

    >>> print(PayPlan(per_answer="0.05", bonuses=["0.90:10%"], fee="20%", currency="USD"))
    0.05 USD per answer; bonus 10 % for 90 % right of at least 10 judged; fee 20 %
    """

    per_answer: Any = Decimal(0)
    per_token: Any = Decimal(0)
    per_minute_floor: Any = Decimal(0)
    bonuses: Sequence[Bonus | str] = ()
    fee: Any = Decimal(0)
    idle_minutes: Any = Decimal(10)
    round_to: Any = Decimal("0.000001")
    currency: str = ""

    def __post_init__(self) -> None:
        amounts = ("per_answer", "per_token", "per_minute_floor", "idle_minutes", "round_to")
        for name in amounts:
            exact = Decimal(to_micro(getattr(self, name), parameter=name)) / MICRO
            object.__setattr__(self, name, exact)
        for name in ("idle_minutes", "round_to"):
            if not getattr(self, name):
                raise InputError("must be above 0", parameter=name)
        object.__setattr__(self, "fee", to_percent(self.fee, "the fee"))
        if isinstance(self.bonuses, str | Bonus) or not isinstance(self.bonuses, Sequence):
            raise InputError(f"bonuses must be a list of rules such as {BONUS_HELP}")
        rules = [one if isinstance(one, Bonus) else Bonus.parse(str(one)) for one in self.bonuses]
        object.__setattr__(self, "bonuses", tuple(rules))

    @property
    def pays(self) -> bool:
        """Whether anything is paid for any work."""
        return bool(self.per_answer or self.per_token or self.per_minute_floor)

    def micro(self, name: str) -> int:
        """Return one of the amounts in millionths."""
        return int(getattr(self, name) * MICRO)

    def bonus(self, earned: int, right: float, judged: float) -> int:
        """Return the largest bonus that is due, in millionths; 0 if none is.

        `earned` is the pay with the floor, in millionths; `right` of `judged` answers are right.
        """
        met = [
            rule.due(earned)
            for rule in self.bonuses
            if isinstance(rule, Bonus) and rule.is_met(right, judged)
        ]
        return max(met, default=0)

    def __str__(self) -> str:
        """Say the plan in words."""
        names = {"per_answer": "per answer", "per_token": "per token"}
        names |= {"per_minute_floor": "per minute at least"}
        unit = f" {self.currency}" if self.currency else ""
        words = [
            f"{from_micro(self.micro(name))}{unit} {text}"
            for name, text in names.items()
            if getattr(self, name)
        ]
        words += [f"bonus {rule}" for rule in self.bonuses]
        words += [f"fee {self.fee.normalize():f} %"] if self.fee else []
        return "; ".join(words) or "nothing is paid"


def to_percent(value: Any, what: str = "a percentage") -> Decimal:
    """Read a percentage, 20 or "20%"."""
    try:
        found = Decimal("NaN" if isinstance(value, bool) else str(value).strip().rstrip("%"))
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite() or not 0 <= found <= 10_000:
        raise InputError(f"{what} must be a percentage of at least 0, such as 20%, not {value!r}")
    if 0 < found < 1 and not isinstance(value, Decimal) and "%" not in str(value):
        raise InputError(
            f"{what}, {value}, may be a share or a percentage: write {100 * found:f}% or {found:f}%"
        )
    return found


def share_of(micro: int, percent: Decimal) -> int:
    """Return so many percent of an amount in millionths, exactly, halves rounded up."""
    top, bottom = percent.as_integer_ratio()
    return (2 * micro * top + 100 * bottom) // (200 * bottom)


def read_plan(path: str | Path) -> PayPlan:
    """Read a plan from a TOML file: per_answer = "0.05", bonuses = ["0.90:10%"], fee = "20%"."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"), parse_float=Decimal)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from None
    names = [one.name for one in fields(PayPlan)]
    for name in content:
        if name not in names:
            raise UnknownNameError(f"part of a pay plan in {path}", name, names)
    try:
        return PayPlan(**content)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


# --------------------------------------------------------------------------------------------------
# The bill: what every worker gets, and what all of it costs, to the millionth.


AMOUNTS = ("base", "top_up", "bonus", "rounding", "total")
MINUTE = 60_000
"""Milliseconds."""


@dataclass(frozen=True)
class BillLine:
    """What one worker gets; amounts in millionths."""

    worker: str
    answers: int
    tokens: int  # Tokens in them that were given a label
    timed: int  # Paid answers whose time is known
    milliseconds: int  # Their time, each at most `idle_minutes`
    right: float  # Right answers, as far as judged
    judged: float  # Judged answers; 0 where nothing is judged or no bonus is promised
    base: int  # For answers and tokens
    top_up: int  # What the minute floor adds
    bonus: int  # For good work
    rounding: int  # What rounding up adds

    @property
    def total(self) -> int:
        """What the worker gets."""
        return self.base + self.top_up + self.bonus + self.rounding


@dataclass(frozen=True)
class Bill:
    """What a crowd's work costs."""

    plan: PayPlan  # What pays how much
    # One for every worker with a paid answer, by their order in the crowd
    lines: tuple[BillLine, ...]
    notes: tuple[str, ...] = ()  # What was decided and what is not known, in sentences

    @property
    def pay(self) -> int:
        """What all workers get together, in millionths."""
        return sum(line.total for line in self.lines)

    @property
    def fee(self) -> int:
        """The platform's fee on it, in millionths."""
        return share_of(self.pay, self.plan.fee)

    @property
    def total(self) -> int:
        """Pay and fee, in millionths."""
        return self.pay + self.fee

    def to_arrow(self) -> pa.Table:
        """Return a row per worker: counts, minutes, and the amounts as decimals with six digits."""
        columns: dict[str, Any] = {
            "worker": pa.array([line.worker for line in self.lines], pa.string())
        }
        for name in ("answers", "tokens", "timed"):
            columns[name] = pa.array([getattr(line, name) for line in self.lines], pa.int64())
        minutes = [line.milliseconds / MINUTE for line in self.lines]
        columns["minutes"] = pa.array(minutes, pa.float64())
        for name in ("right", "judged"):
            columns[name] = pa.array([getattr(line, name) for line in self.lines], pa.float64())
        for name in AMOUNTS:
            exact = [Decimal(getattr(line, name)).scaleb(-6) for line in self.lines]
            columns[name] = pa.array(exact, pa.decimal128(38, 6))
        return pa.table(columns)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row per worker, amounts as text: "0.05"."""
        for line, row in zip(self.lines, self.to_arrow().to_pylist(), strict=True):
            row["minutes"] = round(row["minutes"], 3)
            yield {**row, **{name: from_micro(getattr(line, name)) for name in AMOUNTS}}

    def write(self, path: str | Path) -> None:
        """Write a row per worker as CSV; no name becomes a formula in a spreadsheet.

        Raises:
            InputError: The name does not end in .csv, or cannot be written.
        """
        if Path(path).suffix != ".csv":
            raise InputError(f"{path}: the name of a bill must end in .csv")
        columns = self.to_arrow().column_names
        write_text(path, [sheet_text(columns, self.rows(), written=["worker"])])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON; amounts as text."""
        return {
            "plan": str(self.plan),
            "currency": self.plan.currency,
            "workers": list(self.rows()),
            "pay": from_micro(self.pay),
            "fee": from_micro(self.fee),
            "total": from_micro(self.total),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        """Return what it comes to."""
        parts = {name: sum(getattr(line, name) for line in self.lines) for name in AMOUNTS[:-1]}
        words = {"base": "base", "top_up": "minute floor", "bonus": "bonuses"}
        words["rounding"] = "rounding up"
        shown = [f"{words[name]} {from_micro(value)}" for name, value in parts.items() if value]
        shown += [f"fee {from_micro(self.fee)}"] if self.fee else []
        unit = f" {self.plan.currency}" if self.plan.currency else ""
        some = f"{len(self.lines)} worker{'' if len(self.lines) == 1 else 's'}"
        text = f"{from_micro(self.total)}{unit} for {some}"
        return "\n".join([f"{text}: {' + '.join(shown) or 'nothing'}", *self.notes])


# --------------------------------------------------------------------------------------------------
# Making a bill: which answers are paid, what they took, and what the plan gives for them.


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
        UnknownNameError: Unknown rule.

    >>> import goldspan
    >>> from goldspan.workers import PayPlan
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,ann,x\n2,ann,y\n1,bob,x\n")
    >>> print(make_bill(crowd, PayPlan(per_answer="0.05", fee="20%", currency="USD")))
    0.18 USD for 2 workers: base 0.15 + fee 0.03
    """
    for value, known in ((attempts, ATTEMPTS), (recorded, RECORDED)):
        if value not in known:
            raise UnknownNameError("rule for a bill", value, known)
    judged = _judge(crowd, plan, reliability)
    crowd = crowd.whole_items
    answers = _paid(crowd, attempts)
    spent = _milliseconds(answers, plan)
    cost = None if recorded == "ignore" or answers.cost is None else answers.cost
    if recorded == "use" and cost is None:
        raise InputError("use needs answers with a cost: the crowd has none", parameter="recorded")
    if plan.per_minute_floor and not (spent >= 0).any():
        raise InputError(
            "needs to know when answers were started and submitted, and no answer has both: leave "
            "it out, or read the times (columns started, submitted)",
            parameter="per_minute_floor",
        )
    base = _base(answers, plan, cost if recorded == "use" else None)
    lines = _lines(crowd, plan, answers, spent, base, judged)
    notes = [*_notes(crowd, plan, answers, spent, attempts), *_compare(cost, base, recorded)]
    return Bill(plan, lines, tuple(notes))


def _paid(crowd: Crowd, attempts: str) -> Answers:
    """Return the answers that are paid."""
    answers = crowd.answers if attempts == "every" else crowd.latest
    found = answers.take(_labelled(answers) > 0) if len(answers) else answers
    if not len(found):
        raise InputError("the crowd has no answer: there is nothing to pay")
    return found


def _labelled(answers: Answers) -> NDArray[np.int64]:
    """Count the labelled tokens of every answer, int64 [n_answers]."""
    return count_in_rows(answers.codes >= 0, answers.offset)


def _milliseconds(answers: Answers, plan: PayPlan) -> NDArray[np.int64]:
    """Return the time of every answer, int64 [n_answers], −1 where it is not known."""
    if answers.started is None or answers.submitted is None:
        return np.full(len(answers), -1, np.int64)
    known = (answers.started >= 0) & (answers.submitted >= answers.started)
    longest = plan.micro("idle_minutes") * MINUTE // MICRO
    return np.where(known, np.minimum(answers.submitted - answers.started, longest), -1)


def _base(answers: Answers, plan: PayPlan, cost: NDArray[np.int64] | None) -> NDArray[np.object_]:
    """Return the pay of every answer in millionths, as Python integers, which never overflow."""
    found = _labelled(answers).astype(object) * plan.micro("per_token") + plan.micro("per_answer")
    if cost is not None:
        found = np.where(cost >= 0, cost.astype(object), found)
    return np.asarray(found, object)


def _judge(
    crowd: Crowd, plan: PayPlan, reliability: Reliability | None
) -> dict[str, tuple[float, float]]:
    """Return right and judged answers by worker; nothing where no bonus is promised."""
    if not plan.bonuses:
        return {}
    if reliability is None:
        if crowd.gold is None or not (crowd.gold >= 0).any():
            raise InputError(
                "a bonus needs to know who is right: give the known labels, or a reliability "
                "that was measured",
                hint="gold",
            )
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
    """Return what was decided and what is not known."""
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
    """Return how the recorded costs differ from the plan."""
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
            f"{from_micro(planned)}: recorded = use pays those"
        )
