"""`spammer(kind)`: a worker who never looks at the item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from goldspan.errors import InputError, UnknownNameError
from goldspan.simulate.base import Assignment, Codes, Scene, SimulatedWorker

KINDS = ("constant", "frequent", "random")


@dataclass(frozen=True)
class Spammer(SimulatedWorker):
    """Answers without looking.

    Attributes:
        kind: "constant" (one label everywhere), "frequent" (everywhere the label that is the
            truth most often: in tags `O`) or "random" (any label, each alike, token by token).
        label: Of a constant spammer; drawn for the worker by default.
    """

    kind: str = "random"
    label: str | None = None
    name = "spammer"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownNameError("kind of spammer", self.kind, KINDS)
        if self.label is not None and self.kind != "constant":
            raise InputError(f"spammer: only a constant one has a label, not a {self.kind} one")

    def prepare(self, scene: Scene) -> None:
        """Refuse a label that is not in the tag set."""
        if self.label is not None and self.label not in scene.codec.tags:
            raise UnknownNameError("label of a spammer", self.label, scene.codec.tags)

    def answer(self, work: Assignment) -> Codes:
        """Give labels."""
        n_labels, n_tokens = len(work.scene.codec.tags), len(work.truth)
        if self.kind == "random":
            return np.floor(work.draws.per_token("label") * n_labels).astype(np.int16)
        return np.full(n_tokens, self._label(work), np.int16)

    def _label(self, work: Assignment) -> int:
        scene = work.scene
        if self.kind == "frequent":
            return int(scene.counts.argmax())
        if self.label is not None:
            return scene.codec.tags.index(self.label)
        return int(work.draws.generator("label").integers(len(scene.codec.tags)))
