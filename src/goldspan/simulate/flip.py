"""`flip(p)`: with probability p a token gets a different label, each of the others alike.

Paper 000 (section 4.1.2) flips the labels of noun phrase chunking, of which there are two, in or
out of a phrase: p = 0.7 is worse than chance there. A tag set in BIO has a third, `B-NP`, which a
truth in I and O never uses: `labels="used"` flips among the labels that occur in the truth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from goldspan.errors import InputError, UnknownNameError
from goldspan.simulate.base import Assignment, Codes, Habit, Scene

LABELS = ("all", "used")


@dataclass(frozen=True)
class Flip(Habit):
    """Flips labels of single tokens, whatever stands around them.

    Attributes:
        p: Probability of a different label.
        labels: "all" labels of the tag set, or those that are "used" in the truth.
    """

    p: float
    labels: str = "all"
    name = "flip"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_number("p")
        if self.labels not in LABELS:
            raise UnknownNameError("value of labels in flip", self.labels, LABELS)

    def prepare(self, scene: Scene) -> None:
        """Refuse a truth that has only one label."""
        super().prepare(scene)
        if self.p > 0 and len(scene.codes) and len(self._among(scene)) < 2:
            raise InputError("flip: there is only one label, and no different one to flip to")

    def change(self, codes: Codes, work: Assignment) -> Codes:
        """Flip labels; one that is not among those to flip to may become any of them."""
        among = self._among(work.scene)
        place = np.searchsorted(among, codes)
        known = among[np.minimum(place, len(among) - 1)] == codes
        n_others = len(among) - known
        step = np.floor(work.draws.per_token("which") * n_others).astype(np.int64)
        other = among[(place + 1 + step) % len(among)]
        return np.where(work.draws.per_token("whether") < self.p, other, codes)

    def _among(self, scene: Scene) -> Codes:
        n_labels = len(scene.codec.tags)
        every = np.arange(n_labels) if self.labels == "all" else np.flatnonzero(scene.counts)
        return every.astype(np.int16)
