"""What may be spent, in items, tokens or money, and what every item costs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError
from goldspan.money import MICRO, to_micro
from goldspan.select.greedy import Purse
from goldspan.select.pool import Pool
from goldspan.tagger.parameters import check_whole

MOST = 10**9
"""The largest amount of money: a float64 counts that many millionths exactly."""
UNITS = ("items", "tokens", "money")
_WRITTEN = re.compile(r"^\s*(?P<number>[\d_]*\.?\d+)\s*(?P<unit>[a-z]*)\s*$")
_HINT = 'it must look like 100, "100items", "5000tokens" or "12.50money"'


@dataclass(frozen=True)
class Cost:
    """What an item costs: answers * (fixed + per_token * tokens).

    Attributes:
        fixed: Money per answer, a number or text such as "0.05".
        per_token: Money per answer and token.
        answers: Planned answers per item.

    >>> Cost(fixed="0.05", per_token="0.01", answers=3).micro(Pool.of(["Rome is old"]))
    array([240000])
    """

    fixed: Any = 0
    per_token: Any = 0
    answers: int = 1

    def __post_init__(self) -> None:
        check_whole("answers", self.answers, 1, 10**6)
        if not to_micro(self.fixed, "fixed", MOST) + to_micro(self.per_token, "per_token", MOST):
            raise InputError("an item must cost something: give fixed, per_token or both")

    def micro(self, pool: Pool) -> NDArray[np.int64]:
        """Give what every item costs in millionths of the currency's unit, int64 [n_items].

        Raises:
            InputError: There is a price per token, and the items are rows of a table; or an item
                costs more than a budget can be.
        """
        fixed = to_micro(self.fixed, "fixed", MOST)
        each = to_micro(self.per_token, "per_token", MOST)
        tokens = pool.n_tokens if each else np.zeros(pool.n_items, np.int64)
        if self.answers * (fixed + each * int(tokens.max(initial=0))) > MOST * MICRO:
            raise InputError(f"an item costs more than {MOST:,}: are these prices right?")
        return np.asarray(self.answers * (fixed + each * tokens), np.int64)


@dataclass(frozen=True)
class Budget:
    """An amount and its unit: "items", "tokens", "money", or "" for the unit of the costs."""

    amount: Decimal
    unit: str = ""

    @classmethod
    def parse(cls, budget: Any) -> Budget:
        """Read a budget: a number, or text such as "5000tokens".

        Raises:
            InputError: It is neither, not positive, or its unit is unknown.

        >>> Budget.parse("5000tokens")
        Budget(amount=Decimal('5000'), unit='tokens')
        """
        if isinstance(budget, Budget):
            return budget
        found = _WRITTEN.match(str(budget).lower()) if not isinstance(budget, bool) else None
        unit = found["unit"] if found else ""
        unit = {"item": "items", "token": "tokens"}.get(unit, unit)
        try:
            amount = Decimal(found["number"] if found else str(budget))
        except InvalidOperation:
            raise InputError(f"budget {budget!r}: {_HINT}") from None
        if unit not in {*UNITS, ""} or isinstance(budget, bool):
            raise InputError(f"budget {budget!r}: {_HINT}")
        if not (amount.is_finite() and amount > 0):
            raise InputError(f"a budget must be positive, not {budget}")
        if unit in {"items", "tokens"} and amount != amount.to_integral_value():
            raise InputError(f"a budget in {unit} is a whole number, not {amount}")
        return cls(amount, unit)


@dataclass(frozen=True, eq=False)
class Limits:
    """What the items of a pool cost, and what may be spent.

    Attributes:
        purse: Limits in arrays; its `shares` are the costs that gains are divided by.
        cost: [n_items], int64 or float64.
        unit: Of `cost`: "items", "tokens", "micro" (millionths of money) or "cost".
        spent_in: Unit of the budget: "items", "tokens", "micro" or "cost".
    """

    purse: Purse
    cost: NDArray[Any]
    unit: str
    spent_in: str

    @classmethod
    def of(cls, pool: Pool, budget: Any, n: int | None, costs: Any) -> Limits:
        """Work out what may be spent.

        Args:
            pool: The items.
            budget: None, a number or text as for `Budget.parse`. A number alone is in the unit
                of the costs if these are numbers, otherwise it counts items.
            n: Most items, or None.
            costs: None: one each, or with a budget of tokens their tokens; a `Cost`; or a
                positive number per item.

        Raises:
            InputError: Costs and budget do not fit each other or the pool.
        """
        given = None if budget is None else Budget.parse(budget)
        if n is not None:
            check_whole("n", n, 0)
        cost, unit = _costs(pool, costs, given)
        most = pool.n_items if n is None else min(n, pool.n_items)
        spend, limit, spent_in = None, np.inf, "items"
        if given is not None:
            named = given.unit or ("items" if costs is None else unit)
            if named == "items":
                most = min(most, int(_whole(given.amount)))
            else:
                spend, limit, spent_in = _spending(pool, given, named, cost, unit)
        shares = None if unit == "items" else np.maximum(cost, 1e-300).astype(np.float64)
        return cls(Purse(most, spend, limit, shares), cost, unit, spent_in)


def _costs(pool: Pool, costs: Any, budget: Budget | None) -> tuple[NDArray[Any], str]:
    if costs is None:
        if budget is not None and budget.unit == "money":
            raise InputError('a budget of money needs costs, such as Cost(fixed="0.05")')
        if budget is not None and budget.unit == "tokens":
            return np.maximum(pool.n_tokens, 1), "tokens"
        return np.ones(pool.n_items, np.int64), "items"
    if isinstance(costs, Cost):
        if budget is not None and not budget.unit:
            raise InputError(
                f'{budget.amount} of what? With a Cost the budget is "{budget.amount}money", '
                f'"{budget.amount}items" or "{budget.amount}tokens"'
            )
        return np.maximum(costs.micro(pool), 1), "micro"
    if budget is not None and budget.unit == "money":
        raise InputError("these costs are plain numbers: give the budget as a plain number too")
    try:
        numbers = np.asarray(costs)
        fits = numbers.shape == (pool.n_items,) and numbers.dtype.kind in "iuf"
    except ValueError:
        fits = False
    if not fits:
        raise InputError(f"costs must be a Cost, or {pool.n_items} numbers, one per item")
    bad = np.flatnonzero(~(np.isfinite(numbers) & (numbers > 0)))
    if len(bad):
        name = pool.item_ids[int(bad[0])].as_py()
        raise InputError(f"a cost must be a positive number, and item {name} has {costs[bad[0]]}")
    return numbers.astype(np.float64 if numbers.dtype.kind == "f" else np.int64), "cost"


def _spending(
    pool: Pool, budget: Budget, named: str, cost: NDArray[Any], unit: str
) -> tuple[NDArray[np.float64], float, str]:
    if named == "tokens":
        return pool.n_tokens.astype(np.float64), float(budget.amount), "tokens"
    limit = budget.amount
    if named == "money":
        limit = Decimal(to_micro(budget.amount, "a budget", MOST))
    return cost.astype(np.float64), float(limit), unit


def _whole(amount: Decimal) -> Decimal:
    if amount != amount.to_integral_value():
        raise InputError(f"a budget in items is a whole number, not {amount}")
    return amount
