"""The worker models by name: a new one is one file and one line here."""

from __future__ import annotations

MODELS: dict[str, tuple[str, str]] = {
    "acc": ("goldspan.workermodels.acc:Accuracy", "one probability of being right per worker"),
    "mace": ("goldspan.workermodels.mace:Mace", "a worker knows, or gives a label by habit"),
    "cv": ("goldspan.workermodels.cv:ConfusionVector", "being right depends on the truth"),
    "cm": ("goldspan.workermodels.cm:ConfusionMatrix", "a confusion matrix per worker"),
    "seq": ("goldspan.workermodels.seq:Sequential", "a confusion matrix per label given before"),
}
