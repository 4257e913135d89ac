"""The ways to spend the money that the study compares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from studies.campaign_ner.play import Bench, Point, play_campaign, play_fixed, play_random

ALLOWED = 0.35
"""Our target: with this share of all answers a campaign comes close to the full crowd."""
ROUNDS = 5
"""Rounds of a campaign after the first one."""
FIXED = (1, 2, 3, 4, 5)
MOST = 8
"""Answers that the most popular sentences have: with so many for all, the crowd is complete."""
FULL = "all answers"
ADAPTIVE = "campaign, by gain per price"


@dataclass(frozen=True)
class Way:
    """One way.

    Attributes:
        label: Its name.
        k: Answers per sentence, of fixed redundancy; 0 for other ways.
        share: Of all answers, that it buys.
        rounds: Of a campaign, after the first one; 0 for other ways.
        alone: Whether one seed is enough.
    """

    label: str
    k: int = 0
    share: float = 1.0
    rounds: int = 0
    alone: bool = False

    @property
    def n_points(self) -> int:
        """How many points it gives."""
        return 1 + self.rounds

    def play(self, bench: Bench, seed: int) -> Iterator[Point]:
        """Spend the money, point by point."""
        if self.k:
            yield play_fixed(bench, seed, self.k)
        elif self.rounds:
            yield from play_campaign(bench, seed, self.rounds, self.share)
        else:
            yield play_random(bench, seed, self.share)


def fixed_label(k: int) -> str:
    """Name fixed redundancy."""
    return f"{k} of each sentence"


def random_label(share: float) -> str:
    """Name a random share."""
    return f"{share:.0%} at random"


def ways(*, quick: bool) -> tuple[Way, ...]:
    """List the ways.

    Args:
        quick: Whether it is only to be seen that the study runs.
    """
    fixed, rounds = ((1, 3), 2) if quick else (FIXED, ROUNDS)
    return (
        Way(FULL, k=MOST, alone=True),
        Way(ADAPTIVE, share=ALLOWED, rounds=rounds),
        Way(random_label(ALLOWED), share=ALLOWED),
        *(Way(fixed_label(k), k=k, alone=True) for k in fixed),
    )
