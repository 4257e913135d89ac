"""One trial of paper 002: draw control questions, choose teams, let them vote, score the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import aggregate
from goldspan.errors import InputError
from goldspan.workers import Reliability, select_workers
from studies.li_liu.pools import Pool

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Tested:
    """A trial's beginning.

    Attributes:
        rest: The items that are not control questions, with their answers and gold.
        reliability: What the control questions say, with the pool's own prior.
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
    """

    name: str
    choose: Callable[[Tested, int], Indices]


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
SELECTED = Way("selected", _by_score("unbiased", "negative"))
PLUGIN = Way("plug-in", _by_score("plugin", "negative"))
POSTERIOR = Way("posterior", _by_score("posterior", "drop"))
NEGATIVE = Way("posterior, negative", _by_score("posterior", "negative"))


Combine = Callable[[Tested, Indices], NDArray[np.int16]]
"""Gives the labels of the items that are not control questions, by a team's answers."""


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


def begin(pool: Pool, seed: int, n_control: int | None = None) -> Tested:
    """Draw the control questions of a trial.

    Args:
        pool: The pool.
        seed: Of the draw.
        n_control: How many, by default the pool's number.

    Raises:
        InputError: No item would be left.
    """
    n_items = pool.crowd.n_items
    order = np.random.default_rng((seed, 0)).permutation(n_items)
    n_control = pool.n_control if n_control is None else n_control
    if n_control >= n_items:
        raise InputError(f"{n_control} control questions leave none of the {n_items} items")
    control = order[:n_control]
    rest = np.ones(n_items, np.bool_)
    rest[control] = False
    right, total = pool.share(control)
    ids, n_labels = pool.crowd.worker_ids, len(pool.crowd.tagset.tags)
    tested = Reliability.from_counts(right, total, n_labels=n_labels, worker_ids=ids)
    return Tested(replace(pool, crowd=pool.crowd.select_items(rest)), tested, seed)


def vote(
    method: str, *, is_posterior: bool = False
) -> Callable[[Tested, Indices], NDArray[np.int16]]:
    """Combine by a weighted vote, with the weights that the control questions give.

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
