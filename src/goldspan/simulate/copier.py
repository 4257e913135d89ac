"""`copier(ID)`: a worker who copies another's answers, mistakes and all.

Copied is what the other answers, or would answer: an item may be given to the copier alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from goldspan.errors import InputError, UnknownNameError
from goldspan.simulate.base import Assignment, Codes, Habit, Scene, SimulatedWorker


@dataclass(frozen=True)
class Copier(Habit):
    """Copies some items from another worker and answers the others as the base does.

    Attributes:
        source: Id of the other worker.
        p: Probability of copying an item.
    """

    source: str
    p: float = 1.0
    name = "copier"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_number("p")

    def prepare(self, scene: Scene) -> None:
        """Refuse a source that is not there, and workers who copy in a circle."""
        super().prepare(scene)
        if self.source not in scene.workers:
            raise UnknownNameError("worker to copy from", self.source, scene.workers)
        if self.source in _copied_by(scene.workers[self.source], scene.workers):
            raise InputError(f"copier: worker {self.source!r} copies in a circle: break it")

    def change(self, codes: Codes, work: Assignment) -> Codes:
        """Put the other's answers in the place of some items."""
        scene = work.scene
        other = scene.workers[self.source].answer(scene.assign(self.source, work.items))
        copies = np.repeat(work.draws.per_item("whether") < self.p, work.lengths)
        return np.where(copies, other, codes)


def _copied_by(worker: SimulatedWorker, workers: Mapping[str, SimulatedWorker]) -> set[str]:
    """Give the ids of all whom a worker copies from, also through others."""
    found: set[str] = set()
    waiting = [worker]
    while waiting:
        one = waiting.pop()
        waiting += one.parts()
        if isinstance(one, Copier) and one.source not in found and one.source in workers:
            found.add(one.source)
            waiting.append(workers[one.source])
    return found
