"""All about the workers of a crowd at once: how good, what to do with them, whom to hire."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from goldspan.aggregate import aggregate
from goldspan.crowd import Crowd
from goldspan.errors import InputError, UnknownNameError
from goldspan.hiring.beta import Reliability
from goldspan.hiring.curve import Curve
from goldspan.hiring.expected import contradiction, expect
from goldspan.hiring.reliability import measure_reliability
from goldspan.hiring.selection import read_prices, select_workers
from goldspan.hiring.signs import find_signs
from goldspan.hiring.team import Team
from goldspan.hiring.truth import find_truth
from goldspan.hiring.verdicts import Verdict, default_threshold, judge_workers
from goldspan.money import MICRO
from goldspan.protocols import Progress, Runner

SOURCES = ("auto", "gold", "crowd", "both")
LITTLE = 10
"""With fewer answers to gold of the median worker the crowd judges the other answers."""

Prices = Mapping[str, Any] | Sequence[Any] | str | float | None


@dataclass(frozen=True, eq=False)
class Review:
    """What is known about the workers of a crowd, and what to do.

    Attributes:
        reliability: How often they are right.
        verdicts: One per worker, in the order of the crowd's workers.
        threshold: That they were judged by.
        team: The best team within the budget.
        forecast: The accuracy of votes of the best 1, 2, … workers: the cost curve. Of single
            labels a model's, of tagged text measured on gold; None where there is neither, or
            nobody can be hired.
        team_forecast: The same of the whole team alone: a point of the curve where the team is the
            best so many workers.
        method: What aggregated the answers, None where gold alone judges.
        notes: What else should be known, in sentences.
    """

    reliability: Reliability
    verdicts: tuple[Verdict, ...]
    threshold: float
    team: Team
    forecast: Curve | None
    team_forecast: Curve | None
    method: str | None
    notes: tuple[str, ...]

    @property
    def contradiction(self) -> str:
        """How many of the team would be dropped or tested more, and why they are in it; or ""."""
        return contradiction(self.team, self.verdicts, self.threshold)

    def to_arrow(self) -> pa.Table:
        """Give a row per worker: verdict, mean, interval, judged answers, team, why, signs."""
        chosen = set(self.team.worker_ids.to_pylist())
        rows = [
            {
                "worker": v.worker,
                "verdict": v.verdict,
                "mean": v.mean,
                "low": v.low,
                "high": v.high,
                "judged": v.total,
                "p_above": v.p_above,
                "more": v.more,
                "in_team": v.worker in chosen,
                "why": v.why,
                "signs": "; ".join(map(str, v.signs)),
            }
            for v in self.verdicts
        ]
        return pa.Table.from_pylist(rows, schema=_SCHEMA)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values, for JSON."""
        known = self.reliability
        return {
            "measure": known.measure,
            "source": known.source,
            "method": self.method,
            "prior": list(known.prior),
            "chance": known.chance,
            "threshold": self.threshold,
            "workers": [verdict.to_dict() for verdict in self.verdicts],
            "team": self.team.to_dict(),
            "contradiction": self.contradiction,
            "expected": None if self.team_forecast is None else self.team_forecast.to_dict(),
            "curve": None if self.forecast is None else self.forecast.to_dict(),
            "notes": list(self.notes),
        }


_SCHEMA = pa.schema(
    {
        "worker": pa.string(),
        "verdict": pa.string(),
        "mean": pa.float64(),
        "low": pa.float64(),
        "high": pa.float64(),
        "judged": pa.float64(),
        "p_above": pa.float64(),
        "more": pa.int64(),
        "in_team": pa.bool_(),
        "why": pa.string(),
        "signs": pa.string(),
    }
)


def review_workers(
    crowd: Crowd,
    gold: Any = None,
    *,
    source: str = "auto",
    method: str | None = None,
    measure: str = "auto",
    budget: Any = None,
    prices: Prices = None,
    score: str = "posterior",
    threshold: float | None = None,
    sure: float = 0.9,
    random_state: int = 0,
    runner: Runner | None = None,
    progress: Progress | None = None,
    step: Callable[[str], None] | None = None,
) -> Review:
    r"""Judge all workers, choose the best team, and forecast its accuracy.

    Args:
        crowd: The crowd.
        gold: Known labels as for `measure_reliability`; by default the crowd's own.
        source: What judges: "gold", "crowd" (a method's result), "both" (gold where there is
            some), or "auto": gold, helped by the crowd where the median worker answered fewer than
            10 items with gold.
        method: How the crowd judges; by default `ds`, for tags `bsc-seq`.
        measure: As for `measure_reliability`.
        budget: Workers per item, with prices money per item; by default as much as all cost.
        prices: Money per answer: one amount for all, or as for `select_workers`.
        score: As for `select_workers`.
        threshold: As for `judge_workers`.
        sure: As for `judge_workers`.
        random_state: Seed of everything random.
        runner: Where the method works.
        progress: Who is told of its steps.
        step: Called with the name of every step as it begins.

    Raises:
        InputError: There is no answer, nothing to judge by, or an option is out of its range.
        UnknownNameError: There is no such source, method, measure or score.

    >>> import goldspan
    >>> truth = goldspan.simulate.draw_truth(60, seed=1)
    >>> crowd = goldspan.simulate.simulate_crowd(truth, ["flip(0.1) x3", "eve=flip(0.45)"], seed=1)
    >>> found = review_workers(crowd, budget=3)
    >>> {v.worker: v.verdict for v in found.verdicts}
    {'w1': 'keep', 'w2': 'keep', 'w3': 'keep', 'eve': 'drop'}
    """
    tell = step or (lambda _: None)
    _check(crowd, source, method)
    if gold is not None:
        truth = find_truth(crowd, gold, None)
        crowd = truth.crowd.with_gold(truth.gold[0])
    notes: list[str] = []
    chosen, result = _source(crowd, source, notes), None
    if chosen != "gold":
        name = method or ("ds" if crowd.is_classification else "bsc-seq")
        tell(f"aggregating with {name}")
        known = crowd if chosen == "both" else None
        result = aggregate(crowd, name, gold=known, runner=runner, progress=progress)
    elif method is not None:
        notes.append(f"gold alone judges: the method {method} was not used")
    judged_by = crowd.with_gold(None) if chosen == "crowd" else crowd
    notes += find_truth(judged_by, None, result).notes
    tell("judging the workers")
    reliability = measure_reliability(judged_by, result=result, measure=measure)
    signs = find_signs(judged_by, result=result)
    limit = default_threshold(reliability) if threshold is None else threshold
    verdicts = judge_workers(reliability, threshold=limit, sure=sure, signs=signs)
    tell("choosing a team")
    listed = _listed(prices, reliability)
    team = _team(reliability, budget, listed, score, random_state)
    tell("forecasting its accuracy")
    expected = expect(
        judged_by, reliability, team, result, prices=listed, random_state=random_state
    )
    return Review(
        reliability, tuple(verdicts), limit, team, expected.curve, expected.team,
        None if result is None else result.method, (*notes, *expected.notes),
    )  # fmt: skip


def _check(crowd: Crowd, source: str, method: str | None) -> None:
    if source not in SOURCES:
        raise UnknownNameError("source of reliability", source, SOURCES)
    if source == "gold" and method is not None:
        raise InputError(f'gold alone judges by source="gold": leave out the method {method!r}')
    if not len(crowd.latest):
        raise InputError("the crowd has no answer: there is nothing to judge")


def _source(crowd: Crowd, source: str, notes: list[str]) -> str:
    """Say what judges: "gold", "crowd" or "both"."""
    known = np.zeros(crowd.n_tokens, np.bool_) if crowd.gold is None else crowd.gold >= 0
    if source != "auto":
        if source != "crowd" and not known.any():
            raise InputError(
                f'source "{source}" needs known labels, and the crowd has none: give its gold'
            )
        return source
    if not known.any():
        return "crowd"
    items = np.diff(np.concatenate([[0], np.cumsum(known)])[crowd.offsets]) > 0
    answers = crowd.latest
    per_worker = np.bincount(answers.worker, items[answers.item], crowd.n_workers)
    working = np.bincount(answers.worker, minlength=crowd.n_workers) > 0
    median = float(np.median(per_worker[working]))
    if median >= LITTLE:
        return "gold"
    notes.append(
        f"the median worker answered {median:g} items with gold, fewer than {LITTLE}: the crowd "
        "judges the other answers"
    )
    return "both"


def _listed(prices: Prices, reliability: Reliability) -> Any:
    """Give one amount to every worker, and leave other prices as they are."""
    if isinstance(prices, str | int | float):
        return [prices] * len(reliability)
    return prices


def _team(
    reliability: Reliability, budget: Any, prices: Any, score: str, random_state: int
) -> Team:
    if budget is None and prices is not None:
        total = int(read_prices(prices, reliability).sum())
        budget = f"{total // MICRO}.{total % MICRO:06d}"
    elif budget is None:  # nobody set one: as many as can be chosen, and no word of a budget
        everybody = select_workers(
            reliability, budget=len(reliability), score=score, strategy="top",
            random_state=random_state,
        )  # fmt: skip
        budget = len(everybody)
    return select_workers(
        reliability, budget=budget, score=score, prices=prices, random_state=random_state
    )
