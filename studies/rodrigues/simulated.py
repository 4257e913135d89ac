"""Studies 2 to 4: simulated workers label the training set of CoNLL-2003.

Rodrigues et al. 2013, section 4.1.

A CRF is trained on the truth once; every repeat disturbs it anew for every worker (studies 2 and
3), or flips labels anew (study 4). Test sets: testa with its document marks, which has the size of
the paper's, and testb.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from goldspan._arrays import keys_of
from goldspan.crowd import Crowd
from goldspan.protocols import Runner
from goldspan.simulation import TruthTagger, simulate_crowd
from goldspan.simulation.base import Draws
from studies.rodrigues.data import some_documents
from studies.rodrigues.experiment import Experiment
from studies.rodrigues.methods import TEMPLATES

TESTS = ("testa", "testb")
WORKER_C2 = 5.0
"""Penalty of the CRF that is disturbed, see `PENALTY`."""
PENALTY = (
    f"The CRF that is disturbed to make workers has the penalty c2 = {WORKER_C2:g}, that of the "
    "methods is their default. The paper gives no penalty; it calls its workers one good, two "
    "average and two bad. Under our default, 0.5, weights are so large that the noise hardly "
    "matters: on all sentences the workers reach F1 99.5, 97, 97, 92 and 92."
)
EVERYBODY = (
    "Where everybody labels everything, eq. 12 and eq. 15 are one, and that is the paper's method "
    'in this study: the row "crf-ma (eq. 15)". The row crf-ma is our default, a mean per label, '
    "made for crowds in which workers answer different items."
)


@dataclass(frozen=True, eq=False)
class Simulated(Experiment):
    """Workers who are simulated on the truth of `source`.

    Attributes:
        workers: In the words of `simulate_crowd`.
        is_repeated: Whether everybody labels everything; if not, every worker labels an equal part.
        tagger: The CRF that is disturbed; trained by `prepared`.
    """

    workers: tuple[str, ...]
    is_repeated: bool = True
    tagger: TruthTagger | None = None

    def inputs(self) -> str:
        """Name workers, allotment and penalty."""
        return f"{self.workers} {self.is_repeated} {WORKER_C2}"

    def prepared(self, runner: Runner) -> Self:
        """Train the CRF if workers need one."""
        if not any(worker.startswith("crf_noise") for worker in self.workers):
            return self
        params = {"templates": TEMPLATES, "c2": WORKER_C2, **self.effort.tagger}
        return replace(self, tagger=TruthTagger.train(self.source, runner=runner, **params))

    def draw(self, repeat: int) -> Crowd:
        """Simulate a crowd; the number of the repeat is the seed."""
        crowd = simulate_crowd(self.source, self.workers, seed=repeat, tagger=self.tagger)
        if self.is_repeated:
            return crowd
        of_item = equal_parts(crowd, len(self.workers), repeat)
        answers = crowd.answers
        return replace(crowd, answers=answers.take(of_item[answers.item] == answers.worker))


def equal_parts(crowd: Crowd, n_parts: int, seed: int) -> NDArray[np.int64]:
    """Split items at random into parts that differ by one item at most, int64 [n_items].

    >>> from goldspan.simulation import draw_truth
    >>> np.bincount(equal_parts(draw_truth(11), 5, seed=0)).tolist()
    [3, 2, 2, 2, 2]
    """
    n_items = crowd.n_items
    keys = keys_of(crowd.item_ids.to_pylist())
    order = np.argsort(Draws(seed, "parts", keys, np.arange(n_items + 1)).per_item("part"))
    part = np.empty(n_items, np.int64)
    part[order] = np.arange(n_items) * n_parts // n_items
    return part


def read_sets(
    data: Path, read: Callable[[Path, str], Crowd], n_sentences: int | None
) -> tuple[Crowd, dict[str, Crowd]]:
    """Read the training set, cut to some documents, and the test sets.

    Args:
        data: The folder with the data.
        read: Reads a part of CoNLL-2003.
        n_sentences: About how many sentences are kept of the training set; None keeps all.
    """
    train = some_documents(read(data, "train"), n_sentences)
    return train, {part: read(data, part) for part in TESTS}
