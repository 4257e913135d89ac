"""The ways to spend the money that the study compares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from studies.campaign_ner.play import (
    AUTO,
    Bench,
    Point,
    play_fixed,
    play_policy,
    play_random,
)
from studies.campaign_ner.policy import CROWD, DEPENDENCE, Policy

ALLOWED = 0.6
"""Our target: with this share of all answers the loop comes close to the full crowd."""
SHARES = (0.2, 0.3, 0.4, 0.5, ALLOWED)
"""Of all answers, that adaptive ways have bought after their rounds."""
FIXED = (1, 2, 3, 4, 5)
MOST = 8
"""Answers that the most popular sentences have: with so many for all, the crowd is complete."""
FULL, ALL = "all answers", "all answers, dependence given"
ADAPTIVE = "adaptive"
ALONE = "the same share at random, dependence measured"


@dataclass(frozen=True)
class Way:
    """One way.

    Attributes:
        label: Its name.
        k: Answers per sentence, of fixed redundancy; 0 for other ways.
        policy: How an adaptive way asks on.
        shares: Of all answers, that it buys.
        dependence: How much workers share their mistakes, or "auto" to measure it.
        alone: Whether one seed is enough.
    """

    label: str
    k: int = 0
    policy: Policy | None = None
    shares: tuple[float, ...] = ()
    dependence: float | str = DEPENDENCE
    alone: bool = False

    @property
    def n_points(self) -> int:
        """How many points it gives at most: what the first answers exceed is no round."""
        return 1 if self.k else len(self.shares) + (self.policy is not None)

    def play(self, bench: Bench, seed: int) -> Iterator[Point]:
        """Spend the money, point by point."""
        if self.k:
            yield play_fixed(bench, seed, self.k, self.dependence)
        elif self.policy is not None:
            yield from play_policy(bench, self.policy, seed, self.shares, self.dependence)
        else:
            for share in self.shares:
                yield play_random(bench, seed, share, self.dependence)


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
    fixed = (1, 3) if quick else FIXED
    shares = (ALLOWED,) if quick else (0.4, ALLOWED)
    rounds = (0.4, ALLOWED) if quick else SHARES
    loops = {
        ADAPTIVE: Policy(),
        "adaptive, one answer of each at least": Policy(least=1),
        "adaptive, any worker": Policy(who="any"),
        "adaptive, asking by the crowd alone": Policy(by=CROWD),
    }
    return (
        Way(FULL, k=MOST, dependence=AUTO, alone=True),
        *(Way(random_label(s), shares=(s,)) for s in shares),
        Way(ADAPTIVE, policy=loops.pop(ADAPTIVE), shares=rounds),
        *(Way(fixed_label(k), k=k, alone=True) for k in fixed),
        Way(ALONE, shares=(ALLOWED,), dependence=AUTO, alone=True),
        Way(ALL, k=MOST, alone=True),
        *(Way(name, policy=one, shares=rounds, alone=True) for name, one in loops.items()),
    )
