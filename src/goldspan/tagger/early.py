"""Early stopping on a held-out set, and progress: called by the optimiser after every step."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from goldspan.protocols import Progress
from goldspan.tagger.base import potentials_of, score_tags, transform
from goldspan.tagger.chain import best_path
from goldspan.tagger.training import Masks
from goldspan.tagger.weights import Weights

if TYPE_CHECKING:
    from goldspan.tagger.crf import CRF

EVERY = 10
"""Steps between two looks at the held-out set."""


class Watch:
    """Keeps the weights that did best on the held-out set.

    Args:
        crf: Whose training this is; its tags and features must be known.
        validation: Items and tags, or None.
        progress: Who is told of every step.
    """

    def __init__(
        self, crf: CRF, validation: tuple[Any, Any] | None, progress: Progress | None
    ) -> None:
        self._crf, self._progress = crf, progress
        self._began = time.monotonic()
        self._items = None if validation is None else transform(crf.features_, validation[0])
        self._truth = None if validation is None else validation[1]
        self._best: Weights | None = None
        self._best_score, self._rounds_without = -1.0, 0

    def __call__(self, step: int, value: float, weights_of: Callable[[], Weights]) -> str | None:
        """Hear of a step; give "validation" to stop."""
        if self._progress:
            seconds = (time.monotonic() - self._began) / step
            most = self._crf.max_iter
            self._progress(step, most, value, seconds * (most - step))
        if self._items is None or step % EVERY:
            return None
        weights = weights_of()
        score = self._score(weights)
        if score > self._best_score:
            self._best_score, self._rounds_without = score, 0
            self._best = weights
            return None
        self._rounds_without += 1
        return "validation" if self._rounds_without >= self._crf.patience else None

    def better_than(self, weights: Weights) -> Weights | None:
        """Give the best weights seen if they do better on the held-out set than these."""
        if self._best is None or self._score(weights) >= self._best_score:
            return None
        return self._best

    def _score(self, weights: Weights) -> float:
        assert self._items is not None
        crf = self._crf
        potentials = potentials_of(self._items, weights, Masks.of(crf.codec_, hard=crf.hard))
        return score_tags(self._truth, best_path(potentials, crf.codec_), crf.codec_)
