"""The worker models acc, mace, cv, cm and seq run forwards (paper 001; MATH sections 3 and 11).

The worker's table A[previous, truth, given] is drawn from the prior of the model, the same prior
that BSC has by default; then every label is drawn from its row. At an item's start the previous
label is `O`, in PLAIN labels a state of its own, as BSC has it too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from goldspan.errors import InputError
from goldspan.simulate.base import Assignment, Codes, Scene, SimulatedWorker
from goldspan.simulate.draws import Draws, Floats
from goldspan.simulate.kernels.labels import draw_labels
from goldspan.spans import Codec
from goldspan.workermodels import Prior, get_worker_model


@dataclass(frozen=True)
class ModelWorker(SimulatedWorker):
    """Answers by a worker model.

    Attributes:
        diagonal: Pseudo-count of the right label; at least `off`.
        off: Pseudo-count of every other label.
        table: float64 [n_previous, J, J] by previous label, truth, label given, in place of a
            drawn one; not in text. Without memory n_previous is 1; with memory it is J, or J + 1
            in PLAIN, where the last stands for the item's start.
    """

    diagonal: float = 20.0
    off: float = 1.25
    table: Floats | None = field(default=None, kw_only=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        self.check_number("off", least=0.1, most=np.inf)
        self.check_number("diagonal", least=self.off, most=np.inf)

    def prepare(self, scene: Scene) -> None:
        """Refuse a table of another shape, or one that is no distribution."""
        if self.table is None:
            return
        table, shape = np.asarray(self.table), self._shape(scene.codec)
        if table.shape != shape:
            raise InputError(f"{self.name}: the table must have shape {shape}, not {table.shape}")
        if (table < 0).any() or not np.allclose(table.sum(axis=2), 1):
            raise InputError(f"{self.name}: the table's last axis must hold probabilities")

    def answer(self, work: Assignment) -> Codes:
        """Draw a label for every token."""
        codec = work.scene.codec
        table = self.confusion(codec, work.draws)
        cumulative = np.ascontiguousarray(np.cumsum(table, axis=2), np.float64)
        codes = np.empty(len(work.truth), np.int16)
        begin = _begin(codec) if len(table) > 1 else 0
        uniform = work.draws.per_token("label")
        draw_labels(work.offsets, work.truth, uniform, cumulative, begin, codes)
        return codes

    def confusion(self, codec: Codec, draws: Draws) -> Floats:
        """Give the worker's table, float64 [n_previous, J, J] by previous, truth, given."""
        if self.table is not None:
            return np.asarray(self.table, np.float64)
        n_previous, n_labels, _ = self._shape(codec)
        model, rng = get_worker_model(self.name), draws.generator("table")
        return model.draw(self._prior(codec), n_previous, n_labels, rng)

    def _prior(self, codec: Codec) -> Prior:
        del codec
        return Prior(self.off, self.diagonal - self.off)

    def __str__(self) -> str:
        """Write it as it is read, unless it has a table."""
        return super().__str__() if self.table is None else f"{self.name} with a given table"

    def _shape(self, codec: Codec) -> tuple[int, int, int]:
        n_labels = len(codec.tags)
        memory = get_worker_model(self.name).has_memory
        n_previous = max(n_labels, _begin(codec) + 1) if memory else 1
        return n_previous, n_labels, n_labels


def _begin(codec: Codec) -> int:
    """Give the state before an item: `O`, or one of its own where there is no `O`."""
    return codec.outside if codec.outside >= 0 else len(codec.tags)


class Acc(ModelWorker):
    """One probability of being right."""

    name = "acc"


class Mace(ModelWorker):
    """Knows, or gives a label by habit."""

    name = "mace"


class Cv(ModelWorker):
    """A probability of being right for every truth."""

    name = "cv"


class Cm(ModelWorker):
    """A confusion matrix."""

    name = "cm"


@dataclass(frozen=True)
class Seq(ModelWorker):
    """A confusion matrix for every label given before.

    Attributes:
        forbidden: Pseudo-count of labels that the encoding forbids after the previous one.
    """

    forbidden: float = 0.1
    name = "seq"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_number("forbidden", least=0.001, most=np.inf)

    def _prior(self, codec: Codec) -> Prior:
        mask = None if codec.rules.is_plain else codec.mask
        return Prior(self.off, self.diagonal - self.off, mask, self.forbidden)
