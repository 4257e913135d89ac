"""What work pays: per answer, per token, at least so much per minute, and a bonus for good work.

Amounts are given as text, whole numbers or decimals ("0.05") and counted in whole millionths of the
currency's unit. Rounding happens in four places only, and is the same everywhere: what a minute
floor adds is rounded up to a whole millionth, for it is a minimum; a bonus and a fee in percent are
rounded to the nearest one, halves up; and a worker's total is rounded up to `round_to`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from goldspan.errors import InputError, UnknownNameError
from goldspan.money import MICRO, from_micro, to_micro

LEAST_JUDGED = 10
"""Answers that must be judged before a bonus is due: one lucky answer is no merit."""
ROUNDING = 1e-9
"""Share of the judged answers by which counts may miss a mark: effective numbers are quotients."""
BONUS_HELP = "0.90:10% (percent of the pay) or 0.90:2.50 (an amount), :20 behind it for at least 20"


@dataclass(frozen=True)
class Bonus:
    """More pay for those who are right often enough.

    Attributes:
        accuracy: Least share of judged answers that are right, 0 … 1.
        amount: Millionths; 0 if it is a percentage.
        percent: Of what the worker earned, floor included; 0 if it is an amount.
        least: Answers that must be judged.
    """

    accuracy: float
    amount: int = 0
    percent: Decimal = Decimal(0)
    least: int = LEAST_JUDGED

    def __post_init__(self) -> None:
        if not 0 <= self.accuracy <= 1:
            raise InputError(f"the accuracy of a bonus must lie in 0 … 1, not {self.accuracy}")
        if self.least < 1:
            raise InputError(f"a bonus needs at least 1 judged answer, not {self.least}")

    @classmethod
    def parse(cls, text: str) -> Bonus:
        """Read a rule such as "0.90:10%", "0.90:2.50" or "0.90:10%:20".

        Raises:
            InputError: It is written otherwise.

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
        """Say whether so many of the judged answers are enough; who is just at the mark has met it.

        >>> right, judged = 18 / 1.07, 20 / 1.07
        >>> right / judged >= 0.9, Bonus(0.9).is_met(right, judged)
        (False, True)
        """
        within = ROUNDING * judged
        return judged + within >= self.least and right + within >= self.accuracy * judged

    def due(self, earned: int) -> int:
        """Give the bonus on so much pay, in millionths; half a millionth is rounded up."""
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
            exact = Decimal(to_micro(getattr(self, name), name)) / MICRO
            object.__setattr__(self, name, exact)
        for name in ("idle_minutes", "round_to"):
            if not getattr(self, name):
                raise InputError(f"{name} must be above 0")
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
        """Give one of the amounts in millionths."""
        return to_micro(getattr(self, name), name)

    def bonus(self, earned: int, right: float, judged: float) -> int:
        """Give the largest bonus that is due, in millionths; 0 if none is.

        Args:
            earned: Pay with the floor, in millionths.
            right: Right answers.
            judged: Judged answers.
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
    """Read a percentage, 20 or "20%".

    Raises:
        InputError: It is no number of at least 0, or a bare one below 1, which may be a share.

    >>> to_percent("12.5%")
    Decimal('12.5')
    """
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
    """Give so many percent of an amount in millionths, exactly, halves rounded up.

    >>> share_of(50_000, Decimal("12.5")), share_of(1, Decimal(50))
    (6250, 1)
    """
    top, bottom = percent.as_integer_ratio()
    return (2 * micro * top + 100 * bottom) // (200 * bottom)


def read_plan(path: str | Path) -> PayPlan:
    """Read a plan from a TOML file: per_answer = "0.05", bonuses = ["0.90:10%"], fee = "20%".

    Raises:
        InputError: The file cannot be read, or an amount makes no sense.
        UnknownNameError: It holds something else.
    """
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
