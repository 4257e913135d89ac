"""Control questions: how many of them were answered right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Given = Sequence[Sequence[str | None]]


class Tested(NamedTuple):
    """What a worker did in a test."""

    right: int
    total: int

    @property
    def share(self) -> float:
        """Share that is right; 1 where nothing counts."""
        return self.right / self.total if self.total else 1.0


def tested(truth: Given, given: Given) -> Tested:
    """Count right labels: all single labels, and tokens at which either side has a span.

    Args:
        truth: Known labels of the items.
        given: A worker's.

    >>> tested([["O", "B-PER"]], [["O", "O"]])
    Tested(right=0, total=1)
    """
    pairs = [pair for a, b in zip(truth, given, strict=True) for pair in zip(a, b, strict=True)]
    counting = [(a, b) for a, b in pairs if (a, b) != ("O", "O")]
    return Tested(sum(a == b for a, b in counting), len(counting))


def failure(truth: Given, given: Given, least: float) -> str:
    """Return why a test is failed, "" if it is passed.

    Args:
        truth: Known labels of the items.
        given: A worker's.
        least: Share that must be right.
    """
    found = tested(truth, given)
    return "" if found.share >= least else f"{found.right} of {found.total} right in the test"
