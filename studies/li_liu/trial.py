"""A trial of Li and Liu 2015: draw gold questions, choose teams, let them vote, score the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import aggregate
from goldspan.errors import InputError
from goldspan.workers import Reliability, select_workers
from goldspan.workers.teams import estimate, worker_scores
from studies.li_liu.pools import Pool

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Tested:
    """A trial's beginning.

    Attributes:
        rest: The items that are not gold questions, with their answers and gold.
        reliability: What the gold questions say, with the pool's own prior.
        seed: Of this trial.
    """

    rest: Pool
    reliability: Reliability
    seed: int

    def order_by_share(self) -> Indices:
        """Order workers by the share of right answers, untested ones last, ties by the seed."""
        noise = np.random.default_rng(self.seed).random(len(self.reliability))
        share = np.nan_to_num(self.reliability.share, nan=-1.0)
        return np.lexsort((noise, -share))


@dataclass(frozen=True)
class Way:
    """How a team is chosen.

    Attributes:
        name: As in the paper.
        choose: Gives the indices of the team within a budget.
        score: Name of the score and rule below chance of Algorithm 1; None where it is not used.
    """

    name: str
    choose: Callable[[Tested, int], Indices]
    score: tuple[str, str] | None = None

    def choose_own(self, tested: Tested, budget: int) -> Tested:
        """Choose for every item among the workers who answered it, and leave out other answers.

        Algorithm 1 takes the best prefix of each item's own workers.
        """
        crowd, rng = tested.rest.crowd, np.random.default_rng((tested.seed, 1))
        answers = crowd.latest
        worth = rng.random(len(answers))
        if self.score is not None:
            score, below = self.score
            reliability = tested.reliability
            scores = np.nan_to_num(worker_scores(reliability, score), nan=-np.inf)
            if below == "drop":
                scores[estimate(reliability, score) < reliability.chance] = -np.inf
            worth = scores[answers.worker]
        elif self.name == TOP.name:
            place = np.empty(len(tested.reliability))
            place[tested.order_by_share()] = np.arange(len(place))
            worth = -place[answers.worker]
        order = np.lexsort((rng.random(len(answers)), -worth, answers.item))
        order = order[np.isfinite(worth[order])]
        first = np.searchsorted(answers.item[order], np.arange(crowd.n_items))
        rank = np.arange(len(order)) - first[answers.item[order]]
        order, rank = order[rank < budget], rank[rank < budget]
        kept = np.zeros(len(answers), np.bool_)
        kept[order] = True
        if self.score is not None:
            values = np.full((crowd.n_items, budget), -np.inf)
            table = np.zeros(values.shape)
            table[answers.item[order], rank] = worth[order]
            values[answers.item[order], rank] = 0
            values += np.cumsum(table, axis=1) / np.sqrt(np.arange(1, budget + 1))
            kept[order] = rank <= values.argmax(axis=1)[answers.item[order]]
        part = replace(crowd, answers=answers.take(kept))
        return replace(tested, rest=replace(tested.rest, crowd=part))


def _by_score(score: str, below: str) -> Callable[[Tested, int], Indices]:
    def choose(tested: Tested, budget: int) -> Indices:
        team = select_workers(
            tested.reliability, budget=budget, score=score, below=below, random_state=tested.seed
        )
        return np.asarray(team.index, np.intp)

    return choose


def _top(tested: Tested, budget: int) -> Indices:
    return tested.order_by_share()[:budget]


def _random(tested: Tested, budget: int) -> Indices:
    rng = np.random.default_rng((tested.seed, 1))
    return rng.permutation(len(tested.reliability))[:budget]


TOP = Way("top K", _top)
RANDOM = Way("random K", _random)
SELECTED, PLUGIN, POSTERIOR, NEGATIVE = (
    Way(name, _by_score(*score), score)
    for name, score in (
        ("selected", ("unbiased", "negative")),
        ("plug-in", ("plugin", "negative")),
        ("posterior", ("posterior", "drop")),
        ("posterior, negative", ("posterior", "negative")),
    )
)


Combine = Callable[[Tested, Indices], NDArray[np.int16]]
"""Gives the labels of the items that are not gold questions, by a team's answers."""


@dataclass(frozen=True)
class Entry:
    """A line of the paper's figures: a way to choose, and how the team's answers are combined.

    Attributes:
        way: How the team is chosen.
        combine: How the team's answers are combined.
        label: Its name.
    """

    way: Way
    combine: Combine
    label: str


def begin(pool: Pool, seed: int, n_gold: int | None = None) -> Tested:
    """Draw the gold questions of a trial.

    Args:
        pool: The pool.
        seed: Of the draw.
        n_gold: How many, by default the pool's number.

    Raises:
        InputError: No item would be left.
    """
    n_items = pool.crowd.n_items
    order = np.random.default_rng((seed, 0)).permutation(n_items)
    n_gold = pool.n_gold if n_gold is None else n_gold
    if n_gold >= n_items:
        raise InputError(f"{n_gold} gold questions leave none of the {n_items} items")
    control = order[:n_gold]
    rest = np.ones(n_items, np.bool_)
    rest[control] = False
    right, total = pool.share(control)
    ids, n_labels = pool.crowd.worker_ids, len(pool.crowd.tagset.tags)
    tested = Reliability.from_counts(right, total, n_labels=n_labels, worker_ids=ids)
    return Tested(replace(pool, crowd=pool.crowd.select_items(rest)), tested, seed)


def vote(
    method: str, *, is_posterior: bool = False
) -> Callable[[Tested, Indices], NDArray[np.int16]]:
    """Combine by a weighted vote, with the weights that the gold questions give.

    Args:
        method: "wmv-linear", "wmv-log", or "mv-token" for equal weights.
        is_posterior: Weigh by the posterior mean in place of C / n.
    """

    def combine(tested: Tested, team: Indices) -> NDArray[np.int16]:
        crowd = tested.rest.crowd.select_workers(team)
        if method == "mv-token":
            return aggregate(crowd, method, ties="random", random_state=tested.seed).codes
        known = tested.reliability.take(team)
        share = known.mean if is_posterior else np.nan_to_num(known.share, nan=known.chance)
        names = known.worker_ids.to_pylist()
        weights = dict(zip(names, share.tolist(), strict=True))
        return aggregate(crowd, method, reliability=weights, below="negative").codes

    return combine


def em(method: str) -> Combine:
    """Combine by EM, which learns the workers anew from the team's answers alone.

    Smoothed lightly, as the paper's is hardly smoothed at all.
    """

    def combine(tested: Tested, team: Indices) -> NDArray[np.int16]:
        return aggregate(
            tested.rest.crowd.select_workers(team), method, alpha0=0.1, epsilon0=0.0
        ).codes

    return combine


def accuracy(tested: Tested, codes: NDArray[np.int16]) -> float:
    """Return the share of right labels; items without an answer of the team count as wrong."""
    return float((codes == tested.rest.gold).mean())


VOTES: tuple[Entry, ...] = (
    Entry(TOP, vote("mv-token"), "votes, top K"),
    Entry(TOP, vote("wmv-linear"), "WMV-lin top K"),
    Entry(RANDOM, vote("wmv-linear"), "WMV-lin random K"),
    Entry(SELECTED, vote("wmv-linear"), "WMV-lin selected"),
    Entry(PLUGIN, vote("wmv-linear"), "WMV-lin plug-in"),
    Entry(SELECTED, vote("wmv-log"), "WMV-log selected"),
    Entry(POSTERIOR, vote("wmv-linear", is_posterior=True), "WMV-lin posterior (ours)"),
    Entry(NEGATIVE, vote("wmv-linear", is_posterior=True), "WMV-lin posterior, negative"),
)
"""The lines that need no learning from the answers."""

LEARNED: tuple[Entry, ...] = tuple(
    Entry(way, em(method), f"{name} {way.name}")
    for method, name in (("one-coin", "EM one-coin"), ("ds", "EM full"))
    for way in (TOP, RANDOM, SELECTED)
)
"""The lines with EM."""
