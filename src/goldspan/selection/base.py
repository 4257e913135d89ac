"""What a selection rule is, the budget it works under, and what it returns."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._arrays import STEP, hash64
from goldspan.errors import InputError
from goldspan.money import MICRO, to_micro
from goldspan.params import Estimator, Whole, require
from goldspan.selection.features import Features, Incidence
from goldspan.selection.greedy import Spending
from goldspan.selection.pool import Pool

# --------------------------------------------------------------------------------------------------
# The permutation that decides ties: by a hash of the seed and the item's id.


def as_seed(random_state: int | np.random.Generator | None) -> int:
    """Take a seed, or draw one."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise InputError(
            f"random_state must be a whole number, a Generator or None, not {random_state!r}"
        )
    return int(random_state)


def order_of(keys: NDArray[np.uint64], seed: int, use: str) -> NDArray[np.int64]:
    """Return items in a random order, int64 [n_items]; of ties the first comes first."""
    # keys uint64 [n_items]
    mixed = (keys ^ np.uint64(hash64(f"{seed}\0{use}"))) * STEP
    mixed = (mixed ^ (mixed >> np.uint64(31))) * STEP
    return np.argsort(mixed ^ (mixed >> np.uint64(29)), kind="stable")


# --------------------------------------------------------------------------------------------------
# What may be spent, in items, tokens or money, and what every item costs.


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
        require("answers", self.answers, Whole(1, 10**6))
        if not to_micro(self.fixed, "fixed", MOST) + to_micro(self.per_token, "per_token", MOST):
            raise InputError("an item must cost something: give fixed, per_token or both")

    def micro(self, pool: Pool) -> NDArray[np.int64]:
        """Return what every item costs in millionths of the currency's unit, int64 [n_items].

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
    """What the items of a pool cost, and what may be spent."""

    spending: Spending  # Limits in arrays; its `shares` are the costs that gains are divided by
    cost: NDArray[Any]  # [n_items], int64 or float64
    unit: str  # Of `cost`: "items", "tokens", "micro" (millionths of money) or "cost"
    spent_in: str  # Unit of the budget: "items", "tokens", "micro" or "cost"

    @classmethod
    def of(cls, pool: Pool, budget: Any, n: int | None, costs: Any) -> Limits:
        """Work out what may be spent."""
        given = None if budget is None else Budget.parse(budget)
        if n is not None:
            require("n", n, Whole(0))
        cost, unit = _costs(pool, costs, given)
        most = pool.n_items if n is None else min(n, pool.n_items)
        spend, limit, spent_in = None, np.inf, "items"
        if given is not None:
            named = given.unit or ("items" if costs is None else unit)
            if named == "items":
                whole = Budget.parse(f"{given.amount:f}items")
                most = min(most, int(whole.amount))
            elif named == "tokens":
                spend, spent_in = pool.n_tokens.astype(np.float64), "tokens"
                limit = float(given.amount)
            else:
                spend, spent_in = cost.astype(np.float64), unit
                is_money = named == "money"
                limit = float(
                    to_micro(given.amount, "a budget", MOST) if is_money else given.amount
                )
        shares = None if unit == "items" else np.maximum(cost, 1e-300).astype(np.float64)
        return cls(Spending(most, spend, limit, shares), cost, unit, spent_in)


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


# --------------------------------------------------------------------------------------------------
# What was selected: items in the order of picking, and why each.


CONTROL = "random"
"""The rule whose picks are a random sample: the control slice."""


@dataclass(frozen=True, eq=False)
class Picked:
    """What a rule picked, in order."""

    item: NDArray[np.int64]  # [n_picks], indexes in the pool
    gain: NDArray[np.float64]  # [n_picks], what each was picked for
    # [n_picks], the cover that was being finished; 0 for rules without levels
    level: NDArray[np.int64] = field(repr=False)
    rule: tuple[str, ...] = field(repr=False)  # The name of the rule that picked each
    why: tuple[str, ...] = field(repr=False)  # A few words per pick
    stopped: str  # "budget": nothing more fits; "saturated" or "exhausted"
    facts: dict[str, Any] = field(default_factory=dict)  # Numbers about the whole


@dataclass(frozen=True, eq=False, kw_only=True)
class Selection(Picked):
    """Items to label, the first picked first."""

    pool: Pool = field(repr=False)  # What they were chosen from
    cost: NDArray[Any]  # [n_picks], int64 or float64
    unit: str  # Of the cost: "items", "tokens", "micro" (millionths of money) or "cost"
    seed: int = 0

    def __len__(self) -> int:
        """Count the picks."""
        return len(self.item)

    @property
    def item_ids(self) -> list[str]:
        """The ids of the items."""
        return list(self.pool.item_ids.take(pa.array(self.item)).to_pylist())

    @property
    def is_control(self) -> NDArray[np.bool_]:
        """Which picks were drawn at random, bool [n_picks]: gold that no rule has bent."""
        return np.array([rule == CONTROL for rule in self.rule], np.bool_)

    @property
    def total_cost(self) -> int | float:
        """What all of them cost, in `unit`."""
        if self.cost.dtype.kind == "f":
            return math.fsum(self.cost.tolist())
        return int(self.cost.sum())

    @property
    def n_tokens(self) -> int:
        """Tokens of all of them; 0 for rows of a table."""
        return 0 if self.pool.text is None else int(self.pool.n_tokens[self.item].sum())

    def counts(self) -> dict[str, int]:
        """Count the picks of every rule."""
        return dict(Counter(self.rule))

    def to_arrow(self) -> pa.Table:
        """Return a row per pick: item, rule, level, gain, cost, why, is_control."""
        return pa.table(
            {
                "item": self.pool.item_ids.take(pa.array(self.item)),
                "rule": pa.array(self.rule, pa.string()),
                "level": pa.array(self.level),
                "gain": pa.array(self.gain),
                "cost": pa.array(self.cost),
                "why": pa.array(self.why, pa.string()),
                "is_control": pa.array(self.is_control),
            }
        )


# --------------------------------------------------------------------------------------------------
# What is known already: the labelled items (D_l of Ntoulas et al.) and the model's errors (D_e).


@dataclass(frozen=True, eq=False)
class Known:
    """The labelled items, and where a model is wrong."""

    is_labelled: NDArray[np.bool_]  # [n_items], of the pool
    others: Pool | None = None  # Labelled items outside the pool, or None
    errors: Mapping[str, float | None] | None = None

    @classmethod
    def of(cls, pool: Pool, labelled: Any = None, errors: Any = None) -> Known:
        """Take what is known."""
        marked, others = _labelled(pool, labelled)
        if errors is None:
            return cls(marked, others)
        names = set(pool.item_ids.filter(pa.array(marked)).to_pylist())
        names |= set() if others is None else set(others.item_ids.to_pylist())
        return cls(marked, others, _errors(errors, names))

    @property
    def count(self) -> int:
        """Number of labelled items."""
        return int(self.is_labelled.sum()) + (0 if self.others is None else self.others.n_items)

    def rows(self, pool: Pool, items: Incidence, features: Features) -> tuple[list[str], Incidence]:
        """Return the ids of the labelled items and their attribute values."""
        own = items.take(self.is_labelled)
        names = pool.item_ids.filter(pa.array(self.is_labelled)).to_pylist()
        if self.others is None:
            return names, own
        more = features.transform(self.others)
        bounds = np.concatenate([own.bounds, own.nnz + more.bounds[1:]])
        joined = Incidence(bounds, np.concatenate([own.ids, more.ids]), items.n_values)
        return [*names, *self.others.item_ids.to_pylist()], joined

    def error_rates(
        self, names: list[str], rows: Incidence, strength: float
    ) -> tuple[NDArray[np.float64], float]:
        """Return the smoothed error rate of every value, and that of all items."""
        found = [(self.errors or {}).get(name, 0.0) for name in names]
        known = np.array([n for n, share in enumerate(found) if share is not None], np.intp)
        wrong = np.array([share for share in found if share is not None], np.float64)
        rows = rows.take(known)
        mean = float(wrong.mean()) if len(wrong) else 0.0
        times = np.diff(rows.bounds)
        total = np.bincount(rows.ids, weights=np.repeat(wrong, times), minlength=rows.n_values)
        return (total + strength * mean) / (rows.counts + strength), mean


def _labelled(pool: Pool, labelled: Any) -> tuple[NDArray[np.bool_], Pool | None]:
    chosen: Any = list(labelled) if isinstance(labelled, Sequence | set) else labelled
    if chosen is None or (isinstance(chosen, list) and not chosen):
        return np.zeros(pool.n_items, np.bool_), None
    if isinstance(chosen, list) and all(isinstance(one, str) for one in chosen):
        chosen = np.array(chosen, object)
    elif isinstance(chosen, list) and not isinstance(chosen[0], Sequence):
        chosen = np.asarray(chosen)
    if isinstance(chosen, np.ndarray) and chosen.ndim == 1:
        return _marked(pool, chosen), None
    return _by_content(pool, Pool.of(labelled))


def _marked(pool: Pool, chosen: NDArray[Any]) -> NDArray[np.bool_]:
    """Mark the items of ids, indexes or a mask."""
    if chosen.dtype == np.bool_ and len(chosen) == pool.n_items:
        return chosen.copy()
    if chosen.dtype.kind in "UO":
        names = [str(name) for name in chosen.tolist()]
        lost = [name for name in names if name not in pool.place]
        if lost:
            more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
            raise InputError(f"labelled item {lost[0]!r}{more} is not in the pool: ids must agree")
        chosen = np.array([pool.place[name] for name in names], np.intp)
    inside = chosen.dtype.kind in "iu" and bool(((chosen >= 0) & (chosen < pool.n_items)).all())
    if not inside:
        raise InputError(
            f"labelled must be ids, indexes in 0 … {pool.n_items - 1}, or {pool.n_items} bools"
        )
    marked = np.zeros(pool.n_items, np.bool_)
    marked[chosen] = True
    return marked


def _by_content(pool: Pool, labelled: Pool) -> tuple[NDArray[np.bool_], Pool | None]:
    """Find labelled items in the pool by id; a name for other words would be taken for them."""
    marked, outside = np.zeros(pool.n_items, np.bool_), np.zeros(labelled.n_items, np.bool_)
    for n, name in enumerate(labelled.item_ids.to_pylist()):
        at = pool.place.get(name)
        if at is None:
            outside[n] = True
        elif pool.words(at) != labelled.words(n):
            raise InputError(
                f"item {name} has other words in the pool than among the labelled items: the same "
                "id must mean the same item (ids that are line numbers do not)"
            )
        else:
            marked[at] = True
    return marked, labelled.part(np.flatnonzero(outside)) if outside.any() else None


def _errors(errors: Any, labelled: set[str]) -> dict[str, float | None]:
    if isinstance(errors, Mapping):
        found = {str(name): errors[name] for name in errors}
    elif isinstance(errors, Sequence | set | np.ndarray) and not isinstance(errors, str):
        found = {str(name): 1.0 for name in errors}
    else:
        raise InputError("errors must be ids, or shares by id")
    for name, share in found.items():
        if not isinstance(share, int | float | np.number | None):
            raise InputError(f"errors: item {name}: a share must be a number, not {share!r}")
        if share is not None and not 0 <= share <= 1:
            raise InputError(f"errors: item {name}: a share lies in 0 … 1, not {share}")
        if name not in labelled:
            raise InputError(
                f"errors: item {name} is not labelled: only what is known can be wrong"
            )
    return {name: None if share is None else float(share) for name, share in found.items()}


# --------------------------------------------------------------------------------------------------
# What all rules of selection share: parameters, the task, and `select`.


class Described:
    """What rules ask about a pool, found when one first does."""

    def __init__(self, pool: Pool, features: Features | None) -> None:
        self._pool, self._features = pool, features

    @cached_property
    def features(self) -> Features:
        """What the values are."""
        return Features.fit(self._pool) if self._features is None else self._features

    @cached_property
    def items(self) -> Incidence:
        """Which item has which values."""
        return self.features.transform(self._pool)


@dataclass(frozen=True, eq=False)
class Task:
    """What a rule is to pick from."""

    pool: Pool
    described: Described  # The items' attribute–value pairs
    known: Known  # What is labelled already, and where a model is wrong
    limits: Limits  # What may be spent
    is_out: NDArray[np.bool_]  # [n_items], what cannot be picked: labelled, empty, picked already
    model: Any  # A tagger, a classifier, probabilities, a list of such, or None
    seed: int  # Of everything random
    # Items that other rules picked for the same batch
    picked: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def ranks(self, use: str = "ties") -> NDArray[np.int64]:
        """Return the items in a random order, int64 [n_items]."""
        return order_of(self.pool.keys, self.seed, use)


SMOOTHING = 5.0
"""Items with the mean error rate that every pair's error rate begins with."""


def error_rate(task: Task, strength: float = SMOOTHING) -> NDArray[np.float64]:
    """Return how much likelier than on average a model errs on each item, float64 [n_items]."""
    items = task.described.items
    names, rows = task.known.rows(task.pool, items, task.described.features)
    rate, mean = task.known.error_rates(names, rows, strength)
    if not mean:
        return np.ones(items.n_items)
    times = np.diff(items.bounds)
    return np.where(times > 0, items.sums(rate / mean) / np.maximum(1, times), 1.0)


class Selector(Estimator, ABC):
    """Base of the selection rules: `select`, and parameters as fields (see `goldspan.params`).

    A subclass has a `name` and implements `_pick`.
    """

    needs_model: ClassVar[bool] = False
    needs_errors: ClassVar[bool] = False

    @property
    def heeds_errors(self) -> bool:
        """Whether what a model got wrong changes what it picks, as far as is known."""
        return True

    @abstractmethod
    def _pick(self, task: Task) -> Picked:
        """Pick items of a task."""

    def pick(self, task: Task) -> Picked:
        """Pick items of a task that is set up; for rules that are made of others.

        Raises:
            InputError: A parameter makes no sense, or the rule needs a model or its errors.
        """
        self._check()
        if self.needs_model and task.model is None:
            raise InputError(
                f"{self.name} looks at what a model is unsure of: give one (model=…, --model)"
            )
        if self.needs_errors and task.known.errors is None:
            raise InputError(
                f"{self.name} looks for what is like items that a model got wrong: say which "
                "(errors=…, --errors; in a campaign select.errors = true)"
            )
        return self._pick(task)

    def select(
        self,
        pool: Any,
        *,
        labelled: Any = None,
        errors: Any = None,
        model: Any = None,
        budget: Any = None,
        n: int | None = None,
        costs: Any = None,
        features: Features | None = None,
        random_state: int | np.random.Generator | None = 0,
    ) -> Selection:
        """Choose items to label.

        Args:
            pool: Items, as for `Pool.of`: a `Crowd`, texts, a DataFrame, a matrix.
            labelled: Items that are labelled already, as for `Known.of`: they are not picked, and
                coverage counts them.
            errors: Where a model is wrong, as for `Known.of`.
            model: A trained tagger; a classifier with `predict_proba`; its probabilities, float64
                [n_items, n_labels]; or a list of these, a committee.
            budget: As for `Budget.parse`: 100, "5000tokens", "12.50money".
            n: Most items.
            costs: None, a `Cost`, or a positive number per item.
            features: The attribute–value pairs; fitted on the pool with defaults if None.
            random_state: Seed of everything random, ties too.

        Raises:
            InputError: The pool, the budget, what is known, the model or a parameter makes no
                sense.
        """
        items, seed = Pool.of(pool), as_seed(random_state)
        known = Known.of(items, labelled, errors)
        limits = Limits.of(items, budget, n, costs)
        is_out = known.is_labelled.copy()
        if items.text is not None:
            is_out |= items.n_tokens == 0
        described = Described(items, features)
        task = Task(items, described, known, limits, is_out, model, seed)
        found = self.pick(task)
        facts = {"pool": items.n_items, "labelled": known.count, **found.facts}
        picked = {**vars(found), "facts": facts}
        cost = limits.cost[found.item]
        return Selection(**picked, pool=items, cost=cost, unit=limits.unit, seed=seed)

    def __eq__(self, other: object) -> bool:
        """Compare the parameters of two rules of the same kind."""
        return (
            isinstance(other, Selector)
            and type(self) is type(other)
            and self.get_params() == other.get_params()
        )

    def __hash__(self) -> int:
        """Hash the kind alone, for parameters can be set."""
        return hash(type(self))
