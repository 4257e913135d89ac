"""One way to spend money on a crowd's real answers: fixed redundancy, at random, or adaptively."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import Consensus, aggregate
from goldspan.crowd import Crowd
from goldspan.money import to_micro
from goldspan.protocols import Runner, Serial
from goldspan.workers.redundancy import RevealedAnswers, score_of
from goldspan.workers.stopping import Floats
from studies.campaign_ner.policy import LABELS, Ints, Policy

PER_ANSWER, PER_TOKEN = "0.02", "0.002"
"""What an answer costs, as in the campaign of the examples."""
QUARTER = 4
"""One item out of so many is asked about first by a policy without a least number."""
FIRST_ANSWERS = 2
"""So many answers it gets."""
AUTO = "auto"
"""The dependence is measured, as the method does by default."""


@dataclass(frozen=True)
class Point:
    """How good the labels were at a moment.

    Attributes:
        answers: Answers bought.
        money: What they cost, millionths.
        f1: Span F1 of the labels of all items, 0 to 1.
        unasked: Items without an answer, which the text alone labels.
        gain: What the last answer that was asked for had promised; None where nothing was.
    """

    answers: int
    money: int
    f1: float
    unasked: int
    gain: float | None = None


@dataclass(frozen=True, eq=False)
class Bench:
    """The crowd that is replayed.

    Attributes:
        crowd: All its answers; its gold is scored and never asked.
        rounds: Rounds of the text model at most; None leaves the method's default.
        runner: Where the labels are made.
    """

    crowd: Crowd
    rounds: int | None = None
    runner: Runner = field(default_factory=Serial)

    @cached_property
    def prices(self) -> Ints:
        """What every answer costs, int64 [n_answers], millionths."""
        tokens = np.diff(self.crowd.offsets)[self.crowd.latest.item]
        return np.asarray(to_micro(PER_ANSWER) + to_micro(PER_TOKEN) * tokens, np.int64)

    def revealed(self, seed: int) -> RevealedAnswers:
        """Wind the answers up in a random order."""
        return RevealedAnswers.of(self.crowd, "random", seed)

    def labels(self, revealed: RevealedAnswers, dependence: float | str) -> Consensus:
        """Label all items by the answers so far."""
        more: dict[str, Any] = {} if self.rounds is None else {"rounds": self.rounds}
        return aggregate(
            revealed.so_far(), LABELS, runner=self.runner, dependence=dependence, **more
        )

    def point(
        self, revealed: RevealedAnswers, labels: Consensus, gain: float | None = None
    ) -> Point:
        """Score the labels."""
        bought = revealed.asked >= 0
        told = np.bincount(revealed.answers.item[bought], minlength=self.crowd.n_items)
        money, unasked = int(self.prices[bought].sum()), int((told == 0).sum())
        return Point(int(bought.sum()), money, score_of(labels), unasked, gain)


def play_fixed(bench: Bench, seed: int, k: int, dependence: float | str) -> Point:
    """Buy the first k answers of every item."""
    revealed = bench.revealed(seed)
    revealed.ask(k)
    return bench.point(revealed, bench.labels(revealed, dependence))


def play_random(bench: Bench, seed: int, share: float, dependence: float | str) -> Point:
    """Buy a share of all answers at random."""
    revealed = bench.revealed(seed)
    n = len(revealed.asked)
    chosen = np.random.default_rng(seed).permutation(n)[: int(share * n)]
    revealed.asked[chosen] = 0
    return bench.point(revealed, bench.labels(revealed, dependence))


def play_policy(
    bench: Bench, policy: Policy, seed: int, shares: tuple[float, ...], dependence: float | str
) -> Iterator[Point]:
    """Buy answers in rounds, each where the labels so far promise most.

    Args:
        bench: The crowd.
        policy: How it asks on.
        seed: Of the order among equals, and of the first answers.
        shares: Of all answers, that are bought by the end of every round.
        dependence: How much workers share their mistakes.

    Yields:
        A point when it begins, and one after every round.
    """
    revealed = bench.revealed(seed)
    begin(revealed, policy.least, seed)
    labels = bench.labels(revealed, dependence)
    yield bench.point(revealed, labels)
    for share in shares:
        missing = int(share * len(revealed.asked)) - int((revealed.asked >= 0).sum())
        if missing <= 0:
            continue
        gain = ask(revealed, *policy.promises(labels, revealed, bench.prices), missing)
        labels = bench.labels(revealed, dependence)
        yield bench.point(revealed, labels, gain)


def begin(revealed: RevealedAnswers, least: int, seed: int) -> None:
    """Ask the first questions, of which nothing is known yet."""
    if least:
        revealed.ask(least)
        return
    n_items = revealed.crowd.n_items
    some = np.zeros(n_items, np.bool_)
    some[np.random.default_rng(seed).permutation(n_items)[: -(-n_items // QUARTER)]] = True
    first = some[revealed.answers.item] & (revealed.rank < FIRST_ANSWERS)
    revealed.asked[first] = revealed.rank[first]


def ask(revealed: RevealedAnswers, rest: Ints, promised: Floats, n: int) -> float | None:
    """Reveal the n answers that promise most, one of an item; give what the last one promised.

    Args:
        revealed: The answers.
        rest: int64 [n_rest], those that are not asked for yet.
        promised: float64 [n_rest].
        n: How many at most.
    """
    order = np.lexsort((revealed.rank[rest], -promised))
    first = _first_of_each(revealed.answers.item[rest[order]])
    chosen = order[first][:n]
    revealed.asked[rest[chosen]] = revealed.asked.max() + 1
    return float(promised[chosen[-1]]) if len(chosen) else None


def _first_of_each(item: NDArray[np.int32]) -> Ints:
    """Return the first place of every item, in order of place."""
    return np.sort(np.unique(item, return_index=True)[1])
