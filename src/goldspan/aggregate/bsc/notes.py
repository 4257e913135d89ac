"""What to tell of a result: items without answers, and crowds in which nobody can be compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregate.bsc.prepared import Prepared

MANY = 0.5
"""Share of tokens with a single label from which workers cannot be compared."""


def notes_on(ready: Prepared, *, is_learned: bool) -> list[str]:
    """Give the notes, those of the preparation first.

    Args:
        ready: The crowd and its evidence.
        is_learned: Whether anything was learned of workers from these answers.
    """
    crowd = ready.crowd
    asked = np.bincount(crowd.token_of[crowd.latest.codes >= 0], minlength=crowd.n_tokens)
    alone = _alone(ready, asked) if is_learned else []
    return [*ready.notes, *_unanswered(ready, asked > 0), *alone]


def _unanswered(ready: Prepared, asked: NDArray[Any]) -> list[str]:
    active = np.concatenate([shard.active for shard in ready.shards])
    n_left = int(np.count_nonzero(~active))
    if n_left:
        return [f"{n_left} items without answers are left open"]
    if not any(len(shard.unary) for shard in ready.shards):
        return []
    lengths = np.diff(ready.crowd.offsets)
    item = np.repeat(np.arange(len(lengths)), lengths)
    n_alone = int(np.count_nonzero(lengths)) - len(np.unique(item[asked]))
    return [f"{n_alone} items without answers are labelled by their words alone"] if n_alone else []


def _alone(ready: Prepared, asked: NDArray[Any]) -> list[str]:
    """Warn where most tokens have one label: there is nothing to learn of workers from."""
    has_truth = any((shard.gold >= 0).any() for shard in ready.shards)
    n_asked = int(np.count_nonzero(asked))
    n_single = int(np.count_nonzero(asked == 1))
    if has_truth or not n_asked or n_single < MANY * n_asked:
        return []
    percent = 100 * n_single / n_asked
    seen = f"{percent:.0f} % of the labelled tokens have a single label"
    return [f"{seen}: workers can hardly be compared; use votes or crf-ma, or ask more workers"]
