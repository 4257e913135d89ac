"""What all aggregators share: the habits of scikit-learn, and labels in the make of the answers."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.aggregation.consensus import Consensus
from goldspan.aggregation.families import names_nobody
from goldspan.crowd import Crowd, ReadOptions
from goldspan.crowd.detection import is_dataframe, rows_as_table
from goldspan.crowd.io import to_crowd
from goldspan.errors import FormatError, InputError, NotFittedError, UnavailableError
from goldspan.params import Estimator, result
from goldspan.protocols import Checkpoint, Progress, Runner, Serial


@dataclass(frozen=True, eq=False)
class FitContext:
    """What an aggregator is given beside the crowd."""

    known: NDArray[np.int16] | None = None  # [n_tokens], truth to learn from, -1 unknown; or None
    start: Consensus | None = None  # An earlier result to go on from, or None
    runner: Runner = field(default_factory=Serial)
    progress: Progress | None = None  # Who is told of every step, or None
    checkpoint: Checkpoint | None = None  # Where the state is kept, or None


class Aggregator(Estimator, ABC):
    """Base of the aggregators: keyword-only parameters, `fit`, `fit_predict`, `get_params`.

    A subclass sets `name`, the method's name in the registry, declares its parameters as fields
    (see `goldspan.params`), and implements `_aggregate`.

    Attributes:
        can_go_on: Whether the method learns from round to round, so that `fit(start=…)` and
            `update` begin where an earlier result ended.
        result_: The `Consensus`, after `fit`.
        labels_: The labels of `result_` as `fit_predict` returns them for a DataFrame; a list of
            labels where `fit` was given something else. For single labels.
        probas_: The probabilities of the labels, as `fit_predict_proba` returns them.
    """

    can_go_on: ClassVar[bool] = False
    result_: Consensus = result()
    labels_: Any = result()
    probas_: Any = result()
    _make: _Make = result()

    def __getattr__(self, name: str) -> Any:
        if name in ("result_", "labels_", "probas_"):
            if "result_" not in vars(self):
                raise NotFittedError(f"{type(self).__name__} has no result yet: call fit first")
            make: _Make = vars(self).get("_make") or _Make()
            return (make.labels if name == "labels_" else make.probabilities)(self.result_)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @abstractmethod
    def _aggregate(self, crowd: Crowd, given: FitContext) -> Consensus:
        """Compute the consensus of a crowd with at least one answer."""

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
            crowd: A `Crowd`, a DataFrame with columns task (or item), worker, label, or anything
                else that `read_crowd` reads.
            gold: Known labels to learn from, as for `aggregate`: they are taken as the truth and
                stand in the result. The crowd's own gold is never used to decide. Majority votes
                learn nothing from either. Tags that only known labels have join those of the
                result's crowd.
            start: An earlier result to go on from, for example before new answers came.
            runner: Where to work, for example `goldspan.runners.Threads(2)`; by default this
            thread.
            progress: Who is told of every step.
            checkpoint: Where the state is kept after every step, to resume from.

        Raises:
            InputError: The crowd has no answer, or does not suit the method; or a parameter that
                was set later makes no sense.
        """
        self._check()
        if runner is not None and not hasattr(runner, "map_reduce"):
            raise InputError(
                f"runner must be an object, for example goldspan.runners.Threads(2), not {runner!r}"
            )
        found = as_crowd(crowd)
        make = _Make.of(rows_as_table(crowd))
        known = None
        if gold is not None:
            from goldspan.crowd.gold import attach_gold
            from goldspan.crowd.labels import recode

            attached = attach_gold(found.with_gold(None), gold, ReadOptions())
            # Known truth may have tags that no answer has: its codes are those of the joined tags.
            known, found = attached.gold, recode(found, attached.tagset)
        if not len(found.latest):
            raise InputError("the crowd has no answer: there is nothing to aggregate")
        given = FitContext(known, start, runner or Serial(), progress, checkpoint)
        begin = time.perf_counter()
        result = self._aggregate(found, given)
        families = getattr(self, "families", "none")
        if names_nobody(families):
            note = f"{families}: the table of families names no family"
            result = replace(result, notes=(*result.notes, note))
        seconds = time.perf_counter() - begin
        self.result_ = replace(
            result, method=self.name, params=self.get_params(), seconds=seconds, known=known,
            notes=(*result.notes, *reading_notes(crowd, found)),
        )  # fmt: skip
        self._make = make
        return self

    def update(
        self,
        crowd: Any,
        gold: Any = None,
        *,
        runner: Runner | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Take new answers into the result: aggregate all answers, going on from `result_`.

        Methods that learn from round to round (`can_go_on`) begin with what they learned of the
        workers, found by id, or with the weights of their CRF, and need few rounds. Others compute
        the result anew, so that it has the same bits as after `fit`.

        Args:
            crowd: All answers, the earlier and the new ones; items and workers may be new too.
            gold: As for `fit`.
            runner: As for `fit`.
            progress: As for `fit`.

        Raises:
            NotFittedError: `fit` was not called.
            InputError: As `fit`; or the crowd lacks tags that the earlier result knows, and has
                others.

        >>> from goldspan.aggregation import get_aggregator
        >>> method = get_aggregator("ds")
        >>> rows = [{"task": n, "worker": w, "label": "xy"[n % 2]} for n in range(9) for w in "abc"]
        >>> found = method.fit(rows[:-1]).update(rows).result_
        >>> found.labels[-1], found.stop_reason
        ('x', 'tol')
        """
        start = self.result_ if self.can_go_on else None
        return self.fit(crowd, gold, start=start, runner=runner, progress=progress)

    def fit_predict(self, crowd: Any, gold: Any = None) -> Any:
        """Aggregate and return the labels.

        Args:
            crowd: As for `fit`.
            gold: As for `fit`.

        Returns:
            For a pandas DataFrame a pandas Series of labels indexed by task; for a DataFrame of
            another make one with columns task and label; for anything else the list of tags per
            item. Labels that are numbers or truth values in the DataFrame come back as such.

        Raises:
            InputError: As `fit`; or a DataFrame does not hold single labels.
        """
        result = self.fit(crowd, gold).result_
        return result.tags if self._make.frame is None else self.labels_

    def fit_predict_proba(self, crowd: Any, gold: Any = None) -> Any:
        """Aggregate single labels and return the probability of every label.

        Votes have shares of votes or of weight in their place, which are not calibrated.

        Args:
            crowd: As for `fit`.
            gold: As for `fit`.

        Returns:
            For a pandas DataFrame one indexed by task with a column for every label; for a
            DataFrame of another make one with a column task and a column for every label; for
            anything else an array, float64 [n_items, n_labels], labels in the order of the crowd's
            tags. Rows of items about which nothing is known are NaN.

        Raises:
            InputError: As `fit`; or the items are not single labels.
        """
        return self.fit(crowd, gold).probas_

    def predict_proba(self, crowd: Any) -> Any:
        """Return the probability of every label for other items of known workers.

        Nothing is learned from them; see `predict` of the method.

        Args:
            crowd: As for `fit`.

        Returns:
            As `fit_predict_proba`.

        Raises:
            NotFittedError: `fit` was not called.
            UnavailableError: The method learns nothing that holds for other items.
            InputError: The items are not single labels, or do not suit what was learned.
        """
        if not hasattr(self, "predict"):
            raise UnavailableError(
                f"{self.name} learns nothing that holds for other items: use fit_predict_proba"
            )
        result: Consensus = self.predict(crowd)
        return _Make.of(rows_as_table(crowd)).probabilities(result)


@dataclass(frozen=True)
class _Make:
    """In which form answers came, and so labels go back."""

    frame: Any = None  # The library of a DataFrame, as narwhals names it; None for anything else
    item: str = "task"  # Name of the column of items
    is_whole: bool = False  # Whether its ids are whole numbers

    @classmethod
    def of(cls, crowd: Any) -> _Make:
        """Look at what was given; a DataFrame that is no long table counts as anything else."""
        if not is_dataframe(crowd):
            return cls()
        import narwhals as nw

        from goldspan.crowd.formats.long import find_roles

        try:
            frame = nw.from_native(crowd, eager_only=True)
            item = find_roles(tuple(map(str, frame.columns)), "<DataFrame>", ReadOptions())["item"]
        except (FormatError, TypeError):
            return cls()
        return cls(frame.implementation, item, frame.schema[item].is_integer())

    def labels(self, result: Consensus) -> Any:
        """Return the labels of single labels."""
        if self.frame is None:
            return result.labels
        labels, crowd = result.label_array, result.crowd
        if not crowd.labels_are_text:
            labels = crowd.labels_of(result.codes)
        if not self.frame.is_pandas():
            return self._native({"task": self._tasks(result), "label": labels})
        from goldspan._notebook import data_frame

        series = data_frame(pa.table({"label": labels}))["label"]
        return series.set_axis(self._index(result))

    def probabilities(self, result: Consensus) -> Any:
        """Return the probabilities of single labels."""
        if not result.crowd.is_classification:
            raise UnavailableError(
                "probabilities of items are for crowds of single labels; tagged tokens have "
                "result_.token_probs"
            )
        probs = result.token_probs.astype(np.float64)
        probs[probs.sum(axis=1) == 0] = np.nan
        if self.frame is None:
            return probs
        labels = result.crowd.label_values
        order = sorted(range(len(labels)), key=labels.__getitem__)
        if not self.frame.is_pandas():
            columns = {str(labels[n]): pa.array(probs[:, n]) for n in order}
            return self._native({"task": self._tasks(result), **columns})
        import pandas as pd

        names = pd.Index([labels[n] for n in order], name="label")
        return pd.DataFrame(probs[:, order], self._index(result), names)

    def _tasks(self, result: Consensus) -> pa.Array:
        ids = result.crowd.item_ids
        return ids.cast(pa.int64()) if self.is_whole else ids

    def _index(self, result: Consensus) -> Any:
        import pandas as pd

        return pd.Index(self._tasks(result).to_pandas(), name=self.item)

    def _native(self, columns: dict[str, pa.Array]) -> Any:
        import narwhals as nw

        return nw.from_arrow(pa.table(columns), backend=self.frame).to_native()


def reading_notes(given: Any, crowd: Crowd) -> list[str]:
    """Say what reading decided and left out, where a caller gave no `Crowd` that tells it."""
    return [] if isinstance(given, Crowd) else crowd.import_report.unasked


def as_crowd(crowd: Any) -> Crowd:
    """Return a `Crowd` as it is and read anything else as one; messages name the argument."""
    return to_crowd(crowd, "crowd")
