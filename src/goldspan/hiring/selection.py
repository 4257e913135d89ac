"""Whom to hire: the team whose weighted vote promises most (Li and Liu 2015, Algorithm 1).

Sort the scores of the candidates decreasingly; F_k is the sum of the first k divided by √k; take
the first k* = smallest argmax of F_k, k ≤ min(budget, candidates). The best k workers are the best
set of size k, so the result is the best of all sets within the budget. F_k has several peaks: all
k are looked at. Workers with different prices are chosen by `goldspan.hiring.priced`.

Where we depart: the score is the posterior one by default; workers below chance are left out
unless `below="negative"`; and nobody is chosen when nobody is informative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError, UnknownNameError
from goldspan.hiring.beta import Reliability
from goldspan.hiring.priced import affordable, best_within
from goldspan.hiring.ranking import Choice, best_prefix, in_order, rank
from goldspan.hiring.scores import LEAST_QUESTIONS, estimate, worker_scores
from goldspan.hiring.team import Team
from goldspan.money import from_micro, to_micro

BELOW = ("drop", "negative")
STRATEGIES = ("selected", "top", "random")
EVIDENCE = 0.9
"""A posterior team needs one worker who is better than chance with this probability,"""
TEAM_EVIDENCE = 0.999
"""or a vote that tells the truth from chance with this one: many short tests tell it together."""


def select_workers(
    reliability: Reliability,
    *,
    budget: Any,
    score: str = "posterior",
    prices: Mapping[str, Any] | Sequence[Any] | NDArray[Any] | None = None,
    below: str = "drop",
    strategy: str = "selected",
    random_state: int = 0,
) -> Team:
    """Choose workers whose answers every item shall get.

    Args:
        reliability: What tests say about the workers.
        budget: Workers per item; with `prices` the money per item, in the unit of the prices.
        score: "posterior", "unbiased" (the paper's) or "plugin"; see `goldspan.hiring.scores`.
        prices: Money per answer: one amount, by worker id, or one per worker; 0 is free. By
            default all cost alike.
        below: Workers below chance by their score: "drop" them, or keep them as "negative" (the
            paper): a weighted vote then counts their answers against what they say.
        strategy: "selected" (Algorithm 1), "top" (as many of the best as the budget allows), or
            "random" (as many as it allows, drawn from the whole pool).
        random_state: Seed of the draw, and of the order of workers with equal scores.

    Returns:
        The team, in order of rank; empty where nobody is informative, and it says why.

    Raises:
        InputError: The budget or a price is no number, or negative; prices do not fit the workers.
        UnknownNameError: There is no such score, rule or strategy.

    >>> tested = Reliability.from_counts([19, 18, 17, 11, 10], 20)
    >>> team = select_workers(tested, budget=4)
    >>> team.worker_ids.to_pylist()
    ['0', '1', '2']
    """
    for what, name, allowed in (("rule", below, BELOW), ("strategy", strategy, STRATEGIES)):
        if name not in allowed:
            raise UnknownNameError(what, name, allowed)
    costs = None if prices is None else read_prices(prices, reliability)
    limit = read_size(budget) if costs is None else to_micro(budget, "the budget")
    scores = worker_scores(reliability, score)
    drops = below == "drop" and strategy != "random"
    under = _below_chance(reliability, score) if drops else np.zeros(len(scores), np.bool_)
    kept = np.isfinite(scores) & ~under
    candidates = np.arange(len(scores)) if strategy == "random" else np.flatnonzero(kept)
    payable = None if costs is None else costs[candidates]
    rng = np.random.default_rng(random_state)
    choice = choose(strategy, scores[candidates], payable, limit, rng)
    index = candidates[choice.chosen]
    why, team = (
        _why_nobody(reliability, scores, kept, index, limit, payable),
        reliability.take(index),
    )
    if not why and strategy == "selected":
        why = _why_uninformative(reliability.take(kept), scores[index], team, score, below)
    index = index[:0] if why else index
    return Team(
        tested=reliability.take(index),
        index=index,
        scores=scores[index],
        curve=choice.curve,
        budget=limit,
        price=None if costs is None else int(costs[index].sum()),
        ratio=choice.ratio,
        score=score,
        below=below,
        strategy=strategy,
        why_nobody=why,
        notes=_notes(scores, under, len(candidates), None if costs is not None else limit, score),
    )


def choose(
    strategy: str,
    scores: NDArray[np.float64],
    prices: NDArray[np.int64] | None,
    limit: int,
    rng: np.random.Generator,
) -> Choice:
    """Choose among candidates by a strategy.

    Args:
        strategy: "selected", "top" or "random".
        scores: float64 [n_candidates].
        prices: int64 [n_candidates], or None where all cost one of the budget.
        limit: The budget.
        rng: For the draw and for equals.
    """
    n = len(scores)
    if strategy == "selected":
        if prices is None:
            return best_prefix(scores, min(limit, n), rng)
        return best_within(scores, prices, limit, rng)
    most = n if prices is not None else min(limit, n)
    order = rng.permutation(n)[:most] if strategy == "random" else rank(scores, most, rng)
    return in_order(order if prices is None else affordable(order, prices, limit), scores)


def read_size(budget: Any) -> int:
    """Take a number of workers.

    Raises:
        InputError: It is no whole number, or negative.
    """
    whole = isinstance(budget, int | np.integer) and not isinstance(budget, bool)
    if not whole or budget < 0:
        raise InputError(
            f"the budget is a whole number of workers per item, 0 or more, not {budget!r}; "
            "money needs prices=…"
        )
    return int(budget)


def read_prices(
    prices: Mapping[str, Any] | Sequence[Any] | NDArray[Any], reliability: Reliability
) -> NDArray[np.int64]:
    """Give what an answer of every worker costs, in millionths, int64 [n_workers].

    Raises:
        InputError: A worker has no price, or it is no amount of money.
    """
    if isinstance(prices, Mapping):
        ids = reliability.worker_ids.to_pylist()
        missing = [name for name in ids if name not in prices]
        if missing:
            more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            raise InputError(f"no price for worker {', '.join(missing[:5])}{more}")
        listed = [prices[name] for name in ids]
    elif isinstance(prices, str | int | float | Decimal):
        listed = [prices] * len(reliability)
    else:
        listed = prices.tolist() if isinstance(prices, np.ndarray) else list(prices)
    if len(listed) != len(reliability):
        raise InputError(f"{len(listed)} prices for {len(reliability)} workers")
    # A million workers have few different prices, and reading one is slow.
    known = {price: to_micro(price, "a price") for price in set(listed)}
    found = [known[price] for price in listed]
    if sum(found) > np.iinfo(np.int64).max:
        raise InputError("all prices together are more money than can be counted")
    return np.array(found, np.int64)


def _below_chance(reliability: Reliability, score: str) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        return np.asarray(estimate(reliability, score) < reliability.chance)


def _why_nobody(
    reliability: Reliability,
    scores: NDArray[np.float64],
    kept: NDArray[np.bool_],
    index: NDArray[np.int64],
    limit: int,
    payable: NDArray[np.int64] | None,
) -> str:
    """Say why nobody could be chosen at all, "" where somebody was."""
    if len(index):
        return ""
    if not len(reliability):
        return "the pool is empty"
    if not np.isfinite(scores).any():
        return "no worker has enough judged answers to be scored"
    if not kept.any():
        return "every worker who can be scored is below chance"
    if payable is not None and limit < payable.min():
        cheapest = from_micro(int(payable.min()))
        return f"the budget is {from_micro(limit)} and the cheapest candidate costs {cheapest}"
    return "the budget is 0" if not limit else "nobody's score is above 0: all may be guessing"


def _why_uninformative(
    candidates: Reliability, scores: NDArray[np.float64], team: Reliability, score: str, below: str
) -> str:
    """Say why the best team is not worth hiring, "" where it is."""
    if scores.sum() <= 0:
        return "nobody's score is above 0: all may be guessing"
    if score != "posterior":
        return ""
    above = candidates.p_above(candidates.chance)
    sure = float(np.maximum(above, 1 - above).max() if below == "negative" else above.max())
    if sure >= EVIDENCE or _informs(team, below) >= TEAM_EVIDENCE:
        return ""
    return f"the surest worker is no guesser with probability {sure:.2f} only, less than {EVIDENCE}"


def _informs(team: Reliability, below: str) -> float:
    """Give the probability that the gap Σ v (L w - 1) is above 0, by its first two moments."""
    from scipy.special import ndtr

    weight = team.n_labels * estimate(team, "posterior") - 1
    if below == "drop":
        weight = np.maximum(weight, 0)
    spread = team.n_labels * np.sqrt((weight**2 * _variance(team)).sum())
    gap = (weight * (team.n_labels * team.mean - 1)).sum()
    return float(ndtr(gap / spread)) if spread > 0 else 0.0


def _variance(team: Reliability) -> NDArray[np.float64]:
    """Give the variance of every worker's posterior."""
    return np.asarray(team.mean * (1 - team.mean) / (team.a + team.b + 1))


def _notes(
    scores: NDArray[np.float64],
    under: NDArray[np.bool_],
    n_candidates: int,
    size: int | None,
    score: str,
) -> tuple[str, ...]:
    """Tell who was no candidate, and whether the budget was more than enough."""
    found = []
    if unknown := int(np.isnan(scores).sum()):
        needed = "two judged answers" if LEAST_QUESTIONS[score] else "any judged answer"
        found.append(f"{unknown} of {len(scores)} workers cannot be scored: not {needed}.")
    if dropped := int((under & np.isfinite(scores)).sum()):
        found.append(
            f"Left out, for they were right less often than guessers: {dropped} of {len(scores)}."
        )
    if size is not None and size > n_candidates:
        found.append(f"The budget of {size} covers all {n_candidates} candidates.")
    return tuple(found)
