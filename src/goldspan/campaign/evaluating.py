"""The default step "evaluate": cross-validation, a test file, or the items drawn at random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from goldspan.campaign.curve import Z
from goldspan.campaign.inputs import CampaignInputs
from goldspan.campaign.model import cross_predict
from goldspan.campaign.protocols import Evaluation, Labelled, Labels, Measure, Model
from goldspan.spans import score

LEAST_CONTROL = 8
"""Fewer items that were drawn at random measure nothing."""
RESAMPLES = 200


@dataclass(frozen=True)
class Evaluating:
    """Measures as the plan says."""

    inputs: CampaignInputs

    def measure(self, model: Model, labelled: Labelled) -> Evaluation:
        """Measure a model, and find the items that it gets wrong if the plan wants them."""
        by = self.inputs.plan.evaluate.by
        if by == "cv":
            return self._cross(model, labelled)
        found = self._test(model, labelled) if by == "test" else self._slice(model, labelled)
        if not self.inputs.plan.select.errors:
            return found
        return replace(found, wrong=self._wrong(model, labelled, is_slice=by == "slice"))

    def _wrong(self, model: Model, labelled: Labelled, *, is_slice: bool) -> list[bool | None]:
        """Find the wrong items by cross-validation; a slice that measures is left out."""
        out = labelled.is_random & is_slice
        seen = np.flatnonzero(~out).tolist()
        labels, folds = [labelled.labels[n] for n in seen], self.inputs.plan.evaluate.folds
        guesses = cross_predict(model, self.inputs.pool, labelled.items[seen], labels, folds)
        found: list[bool | None] = [None] * len(out)
        for n, guess, label in zip(seen, guesses, labels, strict=True):
            found[n] = differs(guess, label)
        return found

    def _test(self, model: Model, labelled: Labelled) -> Evaluation:
        trained = model.train(labelled.items, labelled.labels)
        if trained is None or self.inputs.test is None:
            return Evaluation()
        pool, truth = self.inputs.test
        found = self._score(truth, trained.predict(pool, np.arange(pool.n_items)))
        return Evaluation(found, found)

    def _slice(self, model: Model, labelled: Labelled) -> Evaluation:
        out = labelled.is_random
        rest = np.flatnonzero(~out)
        trained = model.train(labelled.items[rest], [labelled.labels[n] for n in rest.tolist()])
        if trained is None or int(out.sum()) < LEAST_CONTROL:
            return Evaluation()
        truth = [labelled.labels[n] for n in np.flatnonzero(out).tolist()]
        found = self._score(truth, trained.predict(self.inputs.pool, labelled.items[out]))
        return Evaluation(found, found)

    def _cross(self, model: Model, labelled: Labelled) -> Evaluation:
        folds = self.inputs.plan.evaluate.folds
        found = cross_predict(model, self.inputs.pool, labelled.items, labelled.labels, folds)
        known = [n for n, labels in enumerate(found) if labels is not None]
        drawn = [n for n in known if labelled.is_random[n]]
        parts = [known, drawn if len(drawn) >= LEAST_CONTROL else []]
        measures = [
            self._score([labelled.labels[n] for n in part], [found[n] or [] for n in part])
            if part
            else None
            for part in parts
        ]
        wrong = [differs(guess, own) for guess, own in zip(found, labelled.labels, strict=True)]
        return Evaluation(measures[0], measures[1], wrong)

    def _score(self, truth: Labels, found: Labels) -> Measure:
        return measured(truth, found, self.inputs.codec.encoding, self.inputs.plan.seed)


def differs(guess: Sequence[str] | None, label: Sequence[str]) -> bool | None:
    """Return whether a guess is wrong; None where there is none."""
    return None if guess is None else list(guess) != list(label)


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
    """Return Wilson's 95 % interval of a share.

    >>> [round(end, 3) for end in wilson(8, 10)]
    [0.49, 0.943]
    """
    share, more = right / total, Z * Z / total
    middle = (share + more / 2) / (1 + more)
    half = Z * math.sqrt(share * (1 - share) / total + more / (4 * total)) / (1 + more)
    return max(0.0, middle - half), min(1.0, middle + half)


def kappa(first: Sequence[str], second: Sequence[str]) -> float:
    """Return Cohen's kappa of two lists of labels; 1 where chance alone explains all.

    >>> kappa(["a", "b", "a"], ["a", "b", "a"]), kappa(["a", "b"], ["b", "a"])
    (1.0, -1.0)
    """
    n = len(first)
    same = sum(a == b for a, b in zip(first, second, strict=True)) / n
    labels = sorted({*first, *second})  # in a fixed order, for the sum's last bits
    by_chance = sum(first.count(one) * second.count(one) for one in labels) / n**2
    return 1.0 if by_chance >= 1 else (same - by_chance) / (1 - by_chance)
