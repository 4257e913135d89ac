"""Which few workers to choose under a budget: Algorithm 1 of Li and Liu (2015), with prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.errors import InputError, UnknownNameError
from goldspan.money import from_micro, to_micro
from goldspan.workers.beta import Reliability
from goldspan.workers.teams import (
    LEAST_QUESTIONS,
    Choice,
    Grouping,
    affordable,
    best_prefix,
    estimate,
    greedy_team,
    in_order,
    rank,
    rank_with_families,
    score_interval,
    worker_scores,
)

if TYPE_CHECKING:
    from goldspan.aggregation.families import Families

# --------------------------------------------------------------------------------------------------
# The workers that were chosen, what they promise, and how sure that is.


SHOWN = 20
"""Workers that are printed by name."""


@dataclass(frozen=True, eq=False)
class WorkerSelection:
    """Workers who shall answer every item."""

    tested: Reliability  # The test results of the chosen workers, in order of rank
    index: NDArray[np.int64]  # Int64 [n_chosen], their places in the pool
    # Float64 [n_chosen], estimates of (L w - 1)²; see `goldspan.workers.selection`
    scores: NDArray[np.float64]
    # Float64 [n_sizes], F of the best team found with 1, 2, … workers: the first ones of the
    # ranking, or with prices the best that the budget pays. NaN where a worker drawn at random has
    # no score.
    curve: NDArray[np.float64]
    budget: int  # Workers per item, or millionths of money per item
    price: int | None  # What an item costs, in millionths; None without prices
    # F of this team by the largest F that any affordable set can have, at least: 1 where it is
    # proved to be the best, None where nothing is promised
    ratio: float | None
    score: str  # Name of the score
    below: str  # What happens to workers below chance: "drop" or "negative"
    strategy: str  # "selected", "top" or "random"
    why_nobody: str = ""  # Why the team is empty; "" where it is not
    notes: tuple[str, ...] = ()  # What else should be known, in sentences
    # Float64 [n_chosen], what an answer counts beside those of the worker's family in the team, 1 /
    # (1 + (n - 1) rho); None where nobody errs together
    share: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        """Count the chosen workers."""
        return len(self.index)

    @property
    def worker_ids(self) -> pa.Array:
        """Arrow string array [n_chosen], in order of rank."""
        return self.tested.worker_ids

    @property
    def effective(self) -> float:
        """As how many independent workers the team counts: the sum of `share`."""
        return float(len(self)) if self.share is None else float(self.share.sum())

    @property
    def value(self) -> float:
        """F of the team by its scores; 0 for an empty one."""
        return self._team_value(self.scores)

    def _team_value(self, scores: NDArray[np.float64]) -> float:
        counted = scores if self.share is None else self.share * scores
        return float(counted.sum() / np.sqrt(self.effective)) if len(self) else 0.0

    @property
    def expected(self) -> float:
        """F as the workers' posterior expects it, Σ E (L w - 1)² / √k; 0 for an empty team."""
        if not len(self):
            return 0.0
        tested, labels = self.tested, self.tested.n_labels
        squares = (labels * tested.mean - 1) ** 2 + labels**2 * _variance(tested)
        return self._team_value(squares)

    @property
    def weights(self) -> NDArray[np.float64]:
        """What the answers count in the vote, (L w - 1) u by the score's w, float64 [n_chosen].

        u is the `share`, 1 of who errs alone.
        """
        found = np.asarray(self.tested.n_labels * estimate(self.tested, self.score) - 1)
        return found if self.share is None else found * self.share

    @property
    def guarantee(self) -> str:
        """What is proved about this choice, in a sentence."""
        if not len(self):
            return "nobody was chosen"
        if self.ratio is None:
            return f"none: the team is {'the best by score' if self.strategy == 'top' else 'drawn'}"
        size = f"of at most {self.budget} worker{'' if self.budget == 1 else 's'}"
        limit = size if self.price is None else f"for at most {from_micro(self.budget)} per item"
        if self.ratio >= 1:
            return f"no other team {limit} is worth more"
        return f"worth at least {100 * self.ratio:.1f} % of the best team {limit}"

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The 95 % credible interval of the true F; (0, 0) for an empty team."""
        return score_interval(self.tested, self.share)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        more = {"value": self.value, "expected": self.expected, "interval": list(self.interval)}
        return self._facts("score", more)

    def _facts(self, scored: str, more: Mapping[str, Any]) -> dict[str, Any]:
        """Return what all selections tell, and more of one kind; `scored` names the scores."""
        rows = zip(
            self.worker_ids.to_pylist(), self.scores.tolist(), self.weights.tolist(),
            self.tested.mean.tolist(), self.tested.right.tolist(), self.tested.total.tolist(),
            strict=True,
        )  # fmt: skip
        names = ("worker", scored, "weight", "mean", "right", "total")
        return {
            "workers": [dict(zip(names, row, strict=True)) for row in rows],
            **more,
            "curve": self.curve.tolist(),
            "budget": self.budget if self.price is None else from_micro(self.budget),
            "price": None if self.price is None else from_micro(self.price),
            "guarantee": self.guarantee,
            "score": self.score,
            "below": self.below,
            "strategy": self.strategy,
            "why_nobody": self.why_nobody,
            "notes": list(self.notes),
        } | ({} if self.share is None else {"effective": self.effective})

    def __str__(self) -> str:
        """Return who was chosen, for the command line."""
        if not len(self):
            return "\n".join([f"Nobody was chosen: {self.why_nobody}.", *self.notes])
        ids = self.worker_ids[:SHOWN].to_pylist()
        more = f" and {len(self) - SHOWN} more" if len(self) > SHOWN else ""
        cost = "" if self.price is None else f", {from_micro(self.price)} per item"
        n = f"{len(self)} worker{'' if len(self) == 1 else 's'}"
        lines = [f"Team of {n}{cost}: {', '.join(ids)}{more}", self._worth()]
        if self.ratio is not None:
            lines.append(f"Guarantee: {self.guarantee}.")
        return "\n".join([*lines, *self.notes])

    def _worth(self) -> str:
        """Return a line on what the team is worth."""
        # By the posterior: of those who were chosen by their results some were lucky.
        whole = (self.tested.n_labels - 1) ** 2
        low, high = self.interval
        n, least, most = (f"{(value / whole) ** 2:.1f}" for value in (self.expected, low, high))
        return (
            f"Its joint vote is worth as much as that of {n} workers who are always right\n"
            f"(95 % interval: {least} … {most})."
        )


# --------------------------------------------------------------------------------------------------
# Worker selection: the workers whose weighted vote promises most (Li & Liu 2015, Algorithm 1).


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
    families: Families | Mapping[str, str] | None = None,
    random_state: int = 0,
) -> WorkerSelection:
    """Choose workers whose answers every item shall get.

    Args:
        reliability: What tests say about the workers.
        budget: Workers per item; with `prices` the money per item, in the unit of the prices.
        score: "posterior", "unbiased" (the paper's) or "plugin"; see `goldspan.workers.selection`.
        prices: Money per answer: one amount, by worker id, or one per worker; 0 is free. By
            default all cost alike.
        below: Workers below chance by their score: "drop" them, or keep them as "negative" (the
            paper): a weighted vote then counts their answers against what they say.
        strategy: "selected" (Algorithm 1), "top" (as many of the best as the budget allows), or
            "random" (as many as it allows, drawn from the whole pool).
        families: Workers who err together, such as `Consensus.families`: n of a family count as
            n / (1 + (n - 1) rho). "selected" weighs that, and "top" passes over who adds next to
            nothing to the better ones of a family. A mapping from worker ids to names takes them
            for copies, rho = 1. None: everybody errs alone.
        random_state: Seed of the draw, and of the order of workers with equal scores.

    Returns:
        The team, in order of rank; empty where nobody is informative, and it says why.

    Raises:
        InputError: The budget or a price is no number, or negative; prices or families do not fit
            the workers.
        UnknownNameError: Unknown score, rule or strategy.

    >>> tested = Reliability.from_counts([19, 18, 17, 11, 10], 20)
    >>> team = select_workers(tested, budget=4)
    >>> team.worker_ids.to_pylist()
    ['0', '1', '2']
    """
    for what, name, allowed in (("rule", below, BELOW), ("strategy", strategy, STRATEGIES)):
        if name not in allowed:
            raise UnknownNameError(what, name, allowed)
    costs = None if prices is None else read_prices(prices, reliability.worker_ids.to_pylist())
    limit = read_size(budget) if costs is None else to_micro(budget, "the budget")
    scores = worker_scores(reliability, score)
    drops = below == "drop" and strategy != "random"
    under = _below_chance(reliability, score) if drops else np.zeros(len(scores), np.bool_)
    kept = np.isfinite(scores) & ~under
    candidates = np.arange(len(scores)) if strategy == "random" else np.flatnonzero(kept)
    payable = None if costs is None else costs[candidates]
    rng = np.random.default_rng(random_state)
    among = grouping_of(families, reliability)
    own = among and among.take(candidates)
    choice = choose(strategy, scores[candidates], payable, limit, rng, own)
    index = candidates[choice.chosen]
    why = _why_nobody(reliability, scores, kept, index, limit, payable)
    if not why and strategy == "selected":
        why = why_uninformative(
            reliability.take(kept), scores[index], reliability.take(index), score, below
        )
    index = index[:0] if why else index
    return WorkerSelection(
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
        notes=(
            *_notes(scores, under, len(candidates), None if costs is not None else limit, score),
            *([] if among is None else _passed_over(scores, among, candidates, index)),
        ),
        share=None if among is None else among.take(index).shares(),
    )


def grouping_of(
    families: Families | Mapping[str, str] | None, reliability: Reliability
) -> Grouping | None:
    """Return the families of the workers of a pool; None where everybody errs alone."""
    if families is None:
        return None
    from goldspan.aggregation.families import Families, as_copies

    if isinstance(families, Mapping):
        found = as_copies(families, reliability.worker_ids)
    elif isinstance(families, Families):
        found = families.on(reliability.worker_ids)
    else:
        raise InputError(
            "families must be a mapping from worker ids to names of families, or Families, such as "
            f"a result has them (result.families), not {families!r}"
        )
    return Grouping(found.number, found.rho) if found else None


def _passed_over(
    scores: NDArray[np.float64],
    grouping: Grouping,
    candidates: NDArray[np.int64],
    index: NDArray[np.int64],
) -> list[str]:
    """Say how many better workers stayed out of a team for members of their families."""
    if not len(index):
        return []
    rest = np.setdiff1d(candidates, index)
    in_team = np.isin(grouping.number[rest], grouping.number[index])
    n = int((in_team & (scores[rest] >= scores[index].min())).sum())
    who = "worker as good errs" if n == 1 else "workers as good err"
    return [f"{n} {who} together with members of the team and would add too little."] if n else []


def choose(
    strategy: str,  # "selected", "top" or "random"
    scores: NDArray[np.float64],  # [n_candidates]
    prices: NDArray[np.int64] | None,  # [n_candidates], or None where all cost one of the budget
    limit: int,
    rng: np.random.Generator,  # For the draw and for equals
    grouping: Grouping | None = None,
) -> Choice:
    """Choose among candidates by a strategy."""
    n = len(scores)
    if grouping is not None and len(np.unique(grouping.number)) == n:
        grouping = None
    if strategy == "selected":
        if prices is None and grouping is None:
            return best_prefix(scores, min(limit, n), rng)
        return greedy_team(scores, prices, limit, grouping, rng)
    most = n if prices is not None else min(limit, n)
    if strategy == "random":
        order = rng.permutation(n)[:most]
    elif grouping is None:
        order = rank(scores, most, rng)
    else:
        order = rank_with_families(scores, most, grouping, rng)
    return in_order(order if prices is None else affordable(order, prices, limit), scores, grouping)


def read_size(budget: Any) -> int:
    """Take a number of workers."""
    whole = isinstance(budget, int | np.integer) and not isinstance(budget, bool)
    if not whole or budget < 0:
        raise InputError(
            f"the budget is a whole number of workers per item, 0 or more, not {budget!r}; "
            "money needs prices=…"
        )
    return int(budget)


def read_prices(
    prices: Mapping[str, Any] | Sequence[Any] | NDArray[Any] | Any, ids: Sequence[str]
) -> NDArray[np.int64]:
    """Return what an answer of every worker costs, in millionths, int64 [n_workers].

    >>> read_prices({"ann": "0.05", "bob": 0, "else": 1}, ["ann", "bob"]).tolist()
    [50000, 0]
    """
    if isinstance(prices, str | int | float | Decimal):
        return np.full(len(ids), to_micro(prices, "the price of an answer"), np.int64)
    if isinstance(prices, Mapping):
        missing = [name for name in ids if name not in prices]
        if missing:
            raise InputError(
                f"no price for {_some(missing)}; give a price for every worker who can be asked, "
                "or one for all"
            )
        listed = [prices[name] for name in ids]
    else:
        listed = prices.tolist() if isinstance(prices, np.ndarray) else list(prices)
    if len(listed) != len(ids):
        raise InputError(f"{len(listed)} prices for {len(ids)} workers")
    # A million workers have few different prices, and reading one is slow.
    named = dict(zip(listed, ids, strict=True))
    known = {price: to_micro(price, f"the price of {name}") for price, name in named.items()}
    found = [known[price] for price in listed]
    if sum(found) > np.iinfo(np.int64).max:
        raise InputError("all prices together are more money than can be counted")
    return np.array(found, np.int64)


def _some(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:5]))
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{len(names)} worker{'s' * (len(names) > 1)} ({shown}{more})"


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
    """Return why nobody could be chosen at all, "" where somebody was."""
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


def why_uninformative(
    candidates: Reliability, scores: NDArray[np.float64], team: Reliability, score: str, below: str
) -> str:
    """Return why the best selection is not worth its price, "" where it is."""
    if scores.sum() <= 0:
        return "nobody's score is above 0: all may be guessing"
    if score != "posterior":
        return ""
    above = candidates.p_above(candidates.chance)
    sure = float(np.maximum(above, 1 - above).max() if below == "negative" else above.max())
    if sure >= EVIDENCE or _informs(team, below) >= TEAM_EVIDENCE:
        return ""
    return (
        f"the surest worker is better than guessing with probability {sure:.2f} only, less than "
        f"{EVIDENCE}"
    )


def _informs(team: Reliability, below: str) -> float:
    """Return the probability that the gap Σ v (L w - 1) is above 0, by its first two moments."""
    from scipy.special import ndtr

    weight = team.n_labels * estimate(team, "posterior") - 1
    if below == "drop":
        weight = np.maximum(weight, 0)
    spread = team.n_labels * np.sqrt((weight**2 * _variance(team)).sum())
    gap = (weight * (team.n_labels * team.mean - 1)).sum()
    return float(ndtr(gap / spread)) if spread > 0 else 0.0


def _variance(team: Reliability) -> NDArray[np.float64]:
    """Return the variance of every worker's posterior."""
    return np.asarray(team.mean * (1 - team.mean) / (team.a + team.b + 1))


def _notes(
    scores: NDArray[np.float64],
    under: NDArray[np.bool_],
    n_candidates: int,
    size: int | None,
    score: str,
) -> tuple[str, ...]:
    """Return who was no candidate, and whether the budget was more than enough."""
    found = []
    if unknown := int(np.isnan(scores).sum()):
        seen = "fewer than two judged answers" if LEAST_QUESTIONS[score] else "no judged answer"
        found.append(f"{unknown} of {len(scores)} workers cannot be scored: {seen}.")
    if dropped := int((under & np.isfinite(scores)).sum()):
        found.append(
            f"Left out, as they were right less often than by guessing: {dropped} of {len(scores)}."
        )
    if size is not None and size > n_candidates:
        found.append(f"The budget of {size} covers all {n_candidates} candidates.")
    return tuple(found)
