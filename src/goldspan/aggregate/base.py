"""What all aggregators share: scikit-learn's habits, and DataFrames at the door."""

from __future__ import annotations

import inspect
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.aggregate.consensus import Consensus
from goldspan.crowd import Crowd, ReadOptions
from goldspan.errors import InputError, NotFittedError
from goldspan.protocols import Checkpoint, Progress, Runner, Serial


@dataclass(frozen=True, eq=False)
class Given:
    """What an aggregator is given beside the crowd.

    Attributes:
        known: int16 [n_tokens], truth to learn from, -1 unknown; or None.
        start: An earlier result to go on from, or None.
        runner: Where to work.
        progress: Who is told of every step, or None.
        checkpoint: Where the state is kept, or None.
    """

    known: NDArray[np.int16] | None = None
    start: Consensus | None = None
    runner: Runner = field(default_factory=Serial)
    progress: Progress | None = None
    checkpoint: Checkpoint | None = None


class Aggregator(ABC):
    """Base of the aggregators: keyword-only parameters, `fit`, `fit_predict`, `get_params`.

    A subclass sets `name`, takes its parameters as keyword-only arguments of `__init__`, stores
    them under the same names, and implements `_aggregate`.

    Attributes:
        name: The method's name in the registry.
        result_: The `Consensus`, after `fit`.
    """

    name: str
    result_: Consensus

    def __getattr__(self, name: str) -> Any:
        if name == "result_":
            raise NotFittedError(f"{type(self).__name__} has no result yet: call fit first")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @abstractmethod
    def _aggregate(self, crowd: Crowd, given: Given) -> Consensus:
        """Compute the consensus of a crowd with at least one answer."""

    def _check(self) -> None:  # noqa: B027 - a method without bounds has nothing to check
        """Refuse parameters that make no sense; `fit` calls it, for they may have changed."""

    def fit(
        self,
        crowd: Any,
        gold: Any = None,
        *,
        start: Consensus | None = None,
        runner: Runner | None = None,
        progress: Progress | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        """Aggregate a crowd; the result is `result_`.

        Args:
            crowd: A `Crowd`, or a DataFrame with columns task (or item), worker, label.
            gold: Known labels to learn from, as for `read_crowd`: they are taken as the truth and
                stand in the result. The crowd's own gold is never used to decide. Majority votes
                learn nothing from either. Tags that only known labels have join those of the
                result's crowd.
            start: An earlier result to go on from, for example before new answers came.
            runner: Where to work, for example `goldspan.compute.Threads(2)`; by default this
            thread.
            progress: Who is told of every step.
            checkpoint: Where the state is kept after every step, to resume from.

        Raises:
            InputError: The crowd has no answer, or does not suit the method; or a parameter that
                was set later makes no sense.
        """
        self._check()
        found = as_crowd(crowd)
        known = None
        if gold is not None:
            from goldspan.crowd.gold import attach_gold, recode

            attached = attach_gold(found.with_gold(None), gold, ReadOptions())
            # Known truth may have tags that no answer has: its codes are those of the joined tags.
            known, found = attached.gold, recode(found, attached.tagset)
        if not len(found.latest):
            raise InputError("the crowd has no answer: there is nothing to aggregate")
        given = Given(known, start, runner or Serial(), progress, checkpoint)
        begin = time.perf_counter()
        result = self._aggregate(found, given)
        seconds = time.perf_counter() - begin
        self.result_ = replace(result, method=self.name, params=self.get_params(), seconds=seconds)
        return self

    def fit_predict(self, crowd: Any, gold: Any = None) -> Any:
        """Aggregate and give the labels.

        Args:
            crowd: A DataFrame with columns task (or item), worker, label; or a `Crowd`.
            gold: As for `fit`.

        Returns:
            For a pandas DataFrame a pandas Series of labels indexed by task; for a DataFrame of
            another make one with columns task and label; for a `Crowd` the list of tags per item.
        """
        result = self.fit(crowd, gold).result_
        if isinstance(crowd, Crowd):
            return result.tags
        tasks, labels = result.crowd.item_ids, result.label_array
        import narwhals as nw

        frame = nw.from_native(crowd, eager_only=True)
        column = next(c for c in ("task", "item") if c in frame.columns)
        if frame.schema[column].is_integer():
            tasks = tasks.cast(pa.int64())
        if frame.implementation.is_pandas():
            import pandas as pd

            index = pd.Index(tasks.to_pandas(), name=column)
            return pd.Series(labels.to_pandas().array, index=index, name="label")
        table = pa.table({"task": tasks, "label": labels})
        return nw.from_arrow(table, backend=frame.implementation).to_native()

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn's
        """Give the parameters by name."""
        return {name: getattr(self, name) for name in self.parameter_names()}

    @classmethod
    def parameter_names(cls) -> list[str]:
        """List the parameters."""
        names = inspect.signature(cls.__init__).parameters
        return [name for name, p in names.items() if p.kind is inspect.Parameter.KEYWORD_ONLY]

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name.

        Raises:
            InputError: There is no such parameter.
        """
        known = self.parameter_names()
        for name, value in params.items():
            if name not in known:
                raise InputError(
                    f"{self.name} has no parameter {name!r}: it has {', '.join(known)}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """Show the parameters that differ from their defaults."""
        defaults = inspect.signature(type(self).__init__).parameters
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value != defaults[name].default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def as_crowd(crowd: Any) -> Crowd:
    """Take a `Crowd` as it is and read anything else as one."""
    if isinstance(crowd, Crowd):
        return crowd
    from goldspan.crowd import read_crowd

    return read_crowd(crowd)
