"""What an earlier fit knew, carried over to another crowd: by worker id, tag and word.

Used to start warm, to label new items of known workers, and to give workers a prior of their own
from their history.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.aggregate.bsc.engine import Model
from goldspan.aggregate.bsc.evidence import Evidence
from goldspan.aggregate.bsc.tables import Sums
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.spans import Codec
from goldspan.workermodels import Prior, Rows
from goldspan.workermodels.rows import Floats


@dataclass(frozen=True, eq=False)
class Memory:
    """The statistics of a fit, with the names that they belong to.

    Attributes:
        model: What was fitted.
        sums: The statistics that made its parameters.
        posterior: The workers' posterior.
        worker_ids: Arrow string array [n_workers].
        codec: The tag set.
        plain_bonus: epsilon0 of workers who are not trusted, also of unknown ones.
        dependence: How much workers share their mistakes, for methods with +crf.
    """

    model: Model
    sums: Sums
    posterior: Any
    worker_ids: pa.Array
    codec: Codec
    plain_bonus: float
    dependence: float = 0.0

    def check(self, crowd: Crowd, model: str) -> None:
        """Check that it fits a crowd, already in its tags, and a worker model.

        Raises:
            InputError: The tags or the worker model differ.
        """
        if (self.codec.tags, self.codec.encoding) != (crowd.tagset.tags, crowd.tagset.encoding):
            raise InputError(
                f"the earlier result has the tags {' '.join(self.codec.tags)}, this crowd "
                f"{' '.join(crowd.tagset.tags)}: it must not have others"
            )
        if self.model.workers.name != model:
            raise InputError(
                f"the earlier result has worker model {self.model.workers.name!r}, this one "
                f"{model!r}: they must be the same"
            )

    def join(self, evidence: Evidence, rows: Rows, crowd: Crowd) -> tuple[Evidence, Rows]:
        """Add the remembered rows of the crowd's workers to the crowd's own, numbered anew.

        Raises:
            InputError: Previous labels mean something else here.
        """
        if self.model.rows.n_previous != rows.n_previous:
            raise InputError(
                "the earlier result treats previous labels in another way (at_start, after_skip)"
            )
        remembered, _ = self._keys(crowd)
        own = _key(rows, rows.worker)
        every = np.union1d(own, remembered)
        words = np.arange(len(rows), max(len(rows), int(evidence.row.max(initial=-1)) + 1))
        moved = np.append(np.searchsorted(every, own), words + len(every) - len(rows))
        pair, label = np.divmod(every, rows.n_labels)
        who, previous = np.divmod(pair, rows.n_previous)
        joined = Rows(
            who.astype(np.int32), previous.astype(np.int16), label.astype(np.int16),
            rows.n_workers, rows.n_previous, rows.n_labels,
        )  # fmt: skip
        return replace(evidence, row=moved.astype(np.int32)[evidence.row]), joined

    def counts(self, rows: Rows, crowd: Crowd) -> Floats:
        """Give the remembered counts of rows, float64 [n_rows, J]; 0 for what is new."""
        remembered, kept = self._keys(crowd)
        counts = np.zeros((len(rows), rows.n_labels))
        place = np.searchsorted(_key(rows, rows.worker), remembered)
        counts[place] = self.sums.counts[: len(self.model.rows)][kept]
        return counts

    def prior(self, crowd: Crowd, history: Floats | None) -> Prior:
        """Give the prior of the fit for the workers of another crowd.

        Args:
            crowd: The crowd; workers are found by id, unknown ones have the plain bonus.
            history: float64 [n_rows, J], the fit's history for the rows of the other crowd.
        """
        old = self.model.prior
        bonus = old.bonus
        if np.ndim(bonus):
            here = self._places(crowd)
            kept, bonus = here >= 0, np.full(crowd.n_workers, self.plain_bonus)
            bonus[here[kept]] = old.right_bonus(len(here))[kept]
        return replace(old, bonus=bonus, history=history)

    def carried(self, rows: Rows, crowd: Crowd, prior: Prior) -> Any:
        """Give the workers' posterior on other rows, None where the counts say it."""
        workers = self.model.workers
        places = self._places(crowd)
        return workers.carry(self.posterior, self.model.rows, rows, places, prior)

    def _places(self, crowd: Crowd) -> NDArray[np.int64]:
        """Give every remembered worker's index in a crowd, -1 if it does not have him."""
        place = pc.fill_null(pc.index_in(self.worker_ids, value_set=crowd.worker_ids), -1)
        return np.asarray(place.to_numpy(zero_copy_only=False), np.int64)

    def _keys(self, crowd: Crowd) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Give the keys of the rows whose workers the crowd has, and which rows these are."""
        old = self.model.rows
        worker = self._places(crowd)[old.worker]
        kept = np.flatnonzero(worker >= 0)
        return _key(old, worker)[kept], kept

    def words(self, model: Model) -> Floats:
        """Give the remembered counts of a model's words, float64 [n_words, J]."""
        if model.words is None:
            return np.zeros((0, model.rows.n_labels))
        counts = np.zeros((len(model.words), model.rows.n_labels))
        if self.model.words is not None:
            place = pc.index_in(self.model.words.words, value_set=model.words.words)
            to = pc.fill_null(place, len(model.words) - 1).to_numpy(zero_copy_only=False)
            remembered = self.sums.counts[len(self.model.rows) :]
            np.add.at(counts, to, remembered[:-1])
            counts[-1] += remembered[-1]
        return counts


def _key(rows: Rows, worker: NDArray[Any]) -> NDArray[np.int64]:
    pair = worker.astype(np.int64) * rows.n_previous + rows.previous
    return np.asarray(pair * rows.n_labels + rows.label)
