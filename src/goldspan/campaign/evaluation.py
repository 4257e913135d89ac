"""The default step "evaluate": cross-validation, a test file, or the items drawn at random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from goldspan.campaign.models import cross_predict
from goldspan.campaign.protocols import Evaluation, Labelled, Labels, Measure, Model
from goldspan.campaign.setting import Setting
from goldspan.spans import score

LEAST_CONTROL = 8
"""Fewer items that were drawn at random measure nothing."""
RESAMPLES = 200
Z = 1.959963984540054
"""Of a 95 % interval."""


@dataclass(frozen=True)
class Evaluating:
    """Measures as the plan says."""

    setting: Setting

    def measure(self, model: Model, labelled: Labelled) -> Evaluation:
        """Measure a model."""
        by = self.setting.plan.evaluate.by
        if by == "test":
            return self._test(model, labelled)
        return self._slice(model, labelled) if by == "slice" else self._cross(model, labelled)

    def _test(self, model: Model, labelled: Labelled) -> Evaluation:
        trained = model.train(labelled.items, labelled.labels)
        if trained is None or self.setting.test is None:
            return Evaluation()
        pool, truth = self.setting.test
        found = self._score(truth, trained.predict(pool, np.arange(pool.n_items)))
        return Evaluation(found, found)

    def _slice(self, model: Model, labelled: Labelled) -> Evaluation:
        out = labelled.is_random
        rest = np.flatnonzero(~out)
        trained = model.train(labelled.items[rest], [labelled.labels[n] for n in rest.tolist()])
        if trained is None or int(out.sum()) < LEAST_CONTROL:
            return Evaluation()
        truth = [labelled.labels[n] for n in np.flatnonzero(out).tolist()]
        found = self._score(truth, trained.predict(self.setting.pool, labelled.items[out]))
        return Evaluation(found, found)

    def _cross(self, model: Model, labelled: Labelled) -> Evaluation:
        folds = self.setting.plan.evaluate.folds
        found = cross_predict(model, self.setting.pool, labelled.items, labelled.labels, folds)
        known = [n for n, labels in enumerate(found) if labels is not None]
        drawn = [n for n in known if labelled.is_random[n]]
        parts = [known, drawn if len(drawn) >= LEAST_CONTROL else []]
        measures = [
            self._score([labelled.labels[n] for n in part], [found[n] or [] for n in part])
            if part
            else None
            for part in parts
        ]
        return Evaluation(*measures)

    def _score(self, truth: Labels, found: Labels) -> Measure:
        return measured(truth, found, self.setting.codec.encoding, self.setting.plan.seed)


def measured(truth: Labels, found: Labels, encoding: str, seed: int = 0) -> Measure:
    """Compare labels: F1 of spans with a bootstrap interval by item; accuracy of single labels.

    The interval of an accuracy is Wilson's (1927).

    >>> measured([["a"], ["b"]], [["a"], ["a"]], "PLAIN").value
    0.5
    """
    if encoding == "PLAIN":
        right = sum(list(a) == list(b) for a, b in zip(truth, found, strict=True))
        return Measure(right / len(truth), *wilson(right, len(truth)), len(truth))
    got = score(truth, found, encoding=encoding, bootstrap=RESAMPLES, random_state=seed)
    low, high = got.interval or (0.0, 1.0)
    return Measure(got.f1, low, high, len(truth))


def wilson(right: int, total: int) -> tuple[float, float]:
    """Give Wilson's 95 % interval of a share.

    >>> [round(end, 3) for end in wilson(8, 10)]
    [0.49, 0.943]
    """
    share, more = right / total, Z * Z / total
    middle = (share + more / 2) / (1 + more)
    half = Z * math.sqrt(share * (1 - share) / total + more / (4 * total)) / (1 + more)
    return max(0.0, middle - half), min(1.0, middle + half)


def kappa(first: Sequence[str], second: Sequence[str]) -> float:
    """Give Cohen's kappa of two lists of labels; 1 where chance alone explains all.

    >>> kappa(["a", "b", "a"], ["a", "b", "a"]), kappa(["a", "b"], ["b", "a"])
    (1.0, -1.0)
    """
    n = len(first)
    same = sum(a == b for a, b in zip(first, second, strict=True)) / n
    labels = sorted({*first, *second})  # in a fixed order, for the sum's last bits
    by_chance = sum(first.count(one) * second.count(one) for one in labels) / n**2
    return 1.0 if by_chance >= 1 else (same - by_chance) / (1 - by_chance)
