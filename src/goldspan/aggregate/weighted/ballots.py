"""The labels that count in a vote, one row each, and their sums over tokens and workers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Crowd

GRAINS = 1 << 24
"""In the largest sum of weights: what differs by less than a grain is a tie."""


@dataclass(frozen=True, eq=False)
class Ballots:
    """Who gave which label to which token.

    Attributes:
        token: int64 [n_ballots], flat token of the crowd.
        worker: int32 [n_ballots].
        label: int16 [n_ballots], code.
        shape: n_tokens, n_workers, n_labels.
    """

    token: NDArray[np.int64]
    worker: NDArray[np.int32]
    label: NDArray[np.int16]
    shape: tuple[int, int, int]

    @classmethod
    def of(cls, crowd: Crowd, voters: NDArray[np.bool_] | None = None) -> Ballots:
        """Take the labels of a crowd's latest answers, of some workers only if asked to.

        Args:
            crowd: The crowd.
            voters: bool [n_workers], who votes; None: everybody.
        """
        codes, worker = crowd.latest.codes, crowd.worker_of
        counts = codes >= 0
        if voters is not None:
            counts &= voters[worker]
        shape = crowd.n_tokens, crowd.n_workers, len(crowd.tagset.tags)
        if counts.all():
            return cls(crowd.token_of, worker, codes, shape)
        return cls(crowd.token_of[counts], worker[counts], codes[counts], shape)

    def __len__(self) -> int:
        """Count the labels."""
        return len(self.token)

    @cached_property
    def voted(self) -> NDArray[np.bool_]:
        """Whether a token has a label, bool [n_tokens]."""
        return self.per_token(None) > 0

    @cached_property
    def cell(self) -> NDArray[np.int64]:
        """Place of every label in a flat table [n_tokens, n_labels], int64 [n_ballots]."""
        return self.token * self.shape[2] + self.label

    def sums(self, weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Sum weights per token and label, float64 [n_tokens, n_labels].

        Args:
            weight: float64 [n_ballots]; None: 1 each.
        """
        n_tokens, _, n_labels = self.shape
        found = np.bincount(self.cell, weight, n_tokens * n_labels)
        return found.reshape(n_tokens, n_labels).astype(np.float64, copy=False)

    def per_token(self, values: NDArray[Any] | None) -> NDArray[np.float64]:
        """Sum over the labels of every token, float64 [n_tokens]; None: count them."""
        return np.bincount(self.token, values, self.shape[0]).astype(np.float64, copy=False)

    def per_worker(self, values: NDArray[Any] | None) -> NDArray[np.float64]:
        """Sum over the labels of every worker, float64 [n_workers]; None: count them."""
        return np.bincount(self.worker, values, self.shape[1]).astype(np.float64, copy=False)

    def agree(self, codes: NDArray[np.int16]) -> NDArray[np.bool_]:
        """Say whether labels equal those of tokens, bool [n_ballots]."""
        return np.asarray(self.label == codes[self.token])


def in_grains(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Round scores to whole multiples of a small part of the largest, int64, same shape.

    Sums of the same weights in another order differ in their last bits: as whole numbers they are
    equal, so that a tie is a tie, and sums along a sequence are exact.
    """
    most = np.abs(scores).max(initial=0.0)
    return np.rint(scores * (GRAINS / most if most > 0 else 0.0)).astype(np.int64)
