"""What all rules of selection share: parameters, the task, and `select`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError, UnknownNameError
from goldspan.protocols import Runner, Serial
from goldspan.select.budget import Limits
from goldspan.select.features import Features
from goldspan.select.incidence import Incidence
from goldspan.select.known import Known
from goldspan.select.pool import Pool
from goldspan.select.seeds import as_seed, keys_of, order_of
from goldspan.select.selection import Picked, Selection


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

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """Numbers made of the ids, uint64 [n_items]; orders are made of them."""
        return keys_of(self._pool.item_ids)


@dataclass(frozen=True, eq=False)
class Task:
    """What a rule is to pick from.

    Attributes:
        pool: The items.
        described: Their attribute–value pairs, and keys made of their ids.
        known: What is labelled already, and where a model is wrong.
        limits: What may be spent.
        is_out: bool [n_items], items that cannot be picked: labelled, empty, or picked already.
        model: A tagger, a classifier, probabilities, a list of such, or None.
        runner: Where to work.
        seed: Of everything random.
        picked: int64 [n], items that other rules picked for the same batch.
    """

    pool: Pool
    described: Described
    known: Known
    limits: Limits
    is_out: NDArray[np.bool_]
    model: Any
    runner: Runner
    seed: int
    picked: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def ranks(self, use: str = "ties") -> NDArray[np.int64]:
        """Give the items in a random order, int64 [n_items]."""
        return order_of(self.described.keys, self.seed, use)


@dataclass(kw_only=True)
class Selector(ABC):
    """Base of the rules: keyword-only parameters, `select`, `get_params`.

    A rule is a dataclass whose fields are its parameters; it has a `name` and implements `_pick`.
    """

    name: ClassVar[str]
    needs_model: ClassVar[bool] = False

    @abstractmethod
    def _pick(self, task: Task) -> Picked:
        """Pick items of a task."""

    def check(self) -> None:  # noqa: B027 - a rule without bounds has nothing to check
        """Refuse parameters that make no sense; `select` calls it, for they may have changed.

        Raises:
            InputError: One of them makes none.
        """

    def pick(self, task: Task) -> Picked:
        """Pick items of a task that is set up; for rules that are made of others.

        Raises:
            InputError: A parameter makes no sense, or the rule needs a model.
        """
        for one in fields(self):
            value = getattr(self, one.name)
            if one.type == "bool" and not isinstance(value, bool):
                raise InputError(f"{one.name} must be True or False, not {value!r}")
        self.check()
        if self.needs_model and task.model is None:
            raise InputError(
                f"{self.name} looks at what a model is unsure of: give one (model=…, --model)"
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
        runner: Runner | None = None,
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
            runner: Where to work, for the rules that share work out.
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
        task = Task(
            items, Described(items, features), known, limits, is_out, model, runner or Serial(),
            seed,
        )  # fmt: skip
        found = self.pick(task)
        facts = {"pool": items.n_items, "labelled": known.count, **found.facts}
        return Selection(
            items, found.item, found.gain, limits.cost[found.item], limits.unit, found.rule,
            found.level, found.why, found.stopped, facts, seed,
        )  # fmt: skip

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn's
        """Give the parameters by name."""
        return {name: getattr(self, name) for name in self.parameter_names()}

    @classmethod
    def parameter_names(cls) -> list[str]:
        """List the parameters."""
        return [one.name for one in fields(cls)]

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name.

        Raises:
            UnknownNameError: There is no such parameter.
        """
        for name, value in params.items():
            if name not in self.parameter_names():
                raise UnknownNameError(f"parameter of {self.name}", name, self.parameter_names())
            setattr(self, name, value)
        return self
