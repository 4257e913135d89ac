"""Studies 5 and 6: the real crowd, and one answer per article of it.

Rodrigues et al. 2013, section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from goldspan._arrays import keys_of
from goldspan.crowd import Crowd
from goldspan.simulation.base import Draws
from studies.rodrigues.data import (
    read_entities,
    read_workers,
    some_documents,
)
from studies.rodrigues.experiment import Experiment
from studies.rodrigues.simulated import TESTS


@dataclass(frozen=True, eq=False)
class Everybody(Experiment):
    """The real crowd as it is."""

    def draw(self, repeat: int) -> Crowd:  # noqa: ARG002
        """Return the crowd."""
        return self.source


@dataclass(frozen=True, eq=False)
class OnePerArticle(Experiment):
    """The real crowd, of whom one worker per article is drawn from those who labelled it."""

    def draw(self, repeat: int) -> Crowd:
        """Draw the workers; the number of the repeat is the seed."""
        return one_per_article(self.source, repeat)


def one_per_article(crowd: Crowd, seed: int) -> Crowd:
    """Keep the answers of one worker per article, drawn from those who labelled some of it."""
    answers = crowd.latest
    names, article = np.unique(
        np.asarray(_articles(crowd), object).astype(str), return_inverse=True
    )
    pairs = np.unique(np.stack([article[answers.item], answers.worker], axis=1), axis=0)
    first, count = np.unique(pairs[:, 0], return_index=True, return_counts=True)[1:]
    present = pairs[first, 0]
    keys = keys_of(names[present].tolist())
    drawn = Draws(seed, "article", keys, np.arange(len(keys) + 1)).per_item("worker")
    chosen = np.full(len(names), -1, np.int64)
    chosen[present] = pairs[first + np.floor(drawn * count).astype(np.int64), 1]
    kept = chosen[article[answers.item]] == answers.worker
    return replace(crowd, answers=answers.take(kept))


def _articles(crowd: Crowd) -> list[str]:
    """Return the article of every item; an item without one is its own."""
    named = crowd.item_ids if crowd.groups is None else crowd.groups
    return list(named.to_pylist())


def read_crowd_and_tests(data: Path, n_sentences: int | None) -> tuple[Crowd, dict[str, Crowd]]:
    """Read the real crowd, cut to some articles, and the test sets."""
    crowd = some_documents(read_workers(data), n_sentences)
    return crowd, {part: read_entities(data, part) for part in TESTS}
