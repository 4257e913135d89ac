"""The review of a whole crowd: how good everybody is, whom to keep, whom to select."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from goldspan._arrays import count_in_rows
from goldspan.aggregation import aggregate, get_aggregator
from goldspan.aggregation.families import Families, check_families, families_for
from goldspan.aggregation.registry import DEFAULT
from goldspan.crowd import Crowd
from goldspan.crowd.layers import of_wholes
from goldspan.errors import InputError, UnknownNameError
from goldspan.money import MICRO
from goldspan.protocols import Progress, Runner
from goldspan.workers.beta import Reliability
from goldspan.workers.gain import select_by_gain
from goldspan.workers.quality_flags import find_quality_flags
from goldspan.workers.reliability import find_truth, measure_reliability
from goldspan.workers.selection import WorkerSelection, read_prices, select_workers
from goldspan.workers.verdicts import DROP, TEST, Verdict, default_threshold, judge_workers

# --------------------------------------------------------------------------------------------------
# All about the workers of a crowd at once: how good, what to do with them, whom to select.


SOURCES = ("auto", "gold", "crowd", "both")
LITTLE = 10
"""With fewer answers to gold of the median worker the crowd judges the other answers."""

Prices = Mapping[str, Any] | Sequence[Any] | str | float | None


@dataclass(frozen=True, eq=False)
class Review:
    """What is known about the workers of a crowd, and what to do."""

    reliability: Reliability  # How often they are right
    verdicts: tuple[Verdict, ...]  # One per worker, in the order of the crowd's workers
    threshold: float  # That they were judged by
    team: WorkerSelection  # The best team within the budget
    method: str | None  # What aggregated the answers, None where gold alone judges
    notes: tuple[str, ...]  # What else should be known, in sentences
    families: Families | None = None  # Workers who err together; None where everybody errs alone

    @property
    def contradiction(self) -> str:
        """How many of the team would be dropped or tested more, and why they are in it; or ""."""
        chosen = set(self.team.worker_ids.to_pylist())
        counts = Counter(v.verdict for v in self.verdicts if v.worker in chosen)
        parts = [f"{kind} {counts[kind]}" for kind in (DROP, TEST) if counts[kind]]
        if not parts:
            return ""
        return (
            f"The team includes workers with another verdict than keep ({', '.join(parts)}):\n"
            f"it was chosen by what its votes are worth together, not by the threshold of "
            f"{100 * self.threshold:.4g} %."
        )

    def to_arrow(self) -> pa.Table:
        """Return a row per worker: verdict, mean, interval, judged answers, team, why, flags.

        Also `family`, null of who errs alone, and `effective`: as how many independent workers the
        whole family counts.
        """
        chosen = set(self.team.worker_ids.to_pylist())
        rows = [
            {
                **vars(v), "judged": v.total, "in_team": v.worker in chosen,
                "flags": "; ".join(map(str, v.flags)),
            }
            for v in self.verdicts
        ]  # fmt: skip
        return pa.Table.from_pylist(rows, schema=_SCHEMA)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
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
        "flags": pa.string(),
        "family": pa.string(),
        "effective": pa.float64(),
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
    families: Any = "auto",
    probes: Crowd | None = None,
    random_state: int = 0,
    runner: Runner | None = None,
    progress: Progress | None = None,
    step: Callable[[str], None] | None = None,
) -> Review:
    r"""Judge all workers, and choose the best team.

    Args:
        crowd: The crowd.
        gold: Known labels as for `measure_reliability`; by default the crowd's own.
        source: What judges: "gold", "crowd" (a method's result), "both" (gold where there is
            some), or "auto": gold, helped by the crowd where the median worker answered fewer than
            10 items with gold.
        method: How the crowd judges; by default "auto".
        measure: As for `measure_reliability`.
        budget: Workers per item, with prices money per item; by default as much as all cost.
        prices: Money per answer: one amount for all, or as for `select_workers`.
        score: As for `select_workers`, or "gain": confusion matrices, as `select_by_gain` does.
        threshold: As for `judge_workers`.
        sure: As for `judge_workers`.
        families: Workers who err together: "auto" finds them by the answers, "none" does not look
            for any; or a file or mapping as for `goldspan.aggregation`. A family counts as fewer
            where the crowd judges, and in the team.
        probes: Answers of models to the same items, which count for nothing else: who repeats
            their mistakes has a quality flag.
        random_state: Seed of everything random.
        runner: Where the method works.
        progress: Who is told of its steps.
        step: Called with the name of every step as it begins.

    Raises:
        InputError: There is no answer, nothing to judge by, or an option is out of its range.
        UnknownNameError: Unknown source, method, measure or score.

    >>> import goldspan
    >>> truth = goldspan.simulation.draw_truth(60, seed=1)
    >>> annotators = ["flip(0.1) x3", "eve=flip(0.45)"]
    >>> crowd = goldspan.simulation.simulate_crowd(truth, annotators, seed=1)
    >>> found = review_workers(crowd, budget=3)
    >>> {v.worker: v.verdict for v in found.verdicts}
    {'w1': 'keep', 'w2': 'keep', 'w3': 'keep', 'eve': 'drop'}
    """
    tell = step or (lambda _: None)
    _check(crowd, source, method)
    check_families(families)
    if gold is not None:
        crowd = find_truth(crowd, gold, None).crowd
    notes: list[str] = []
    chosen, result = _source(crowd, source, notes), None
    grouping, heeds = None, False
    if chosen != "gold":
        name = method or DEFAULT
        tell(f"aggregating with {name}")
        known = crowd if chosen == "both" else None
        heeds = "families" in get_aggregator(name).parameter_names()
        more: dict[str, Any] = {"families": families} if heeds else {}
        result = aggregate(crowd, name, gold=known, runner=runner, progress=progress, **more)
        grouping = result.families
    elif method is not None:
        notes.append(f"gold alone judges: the method {method} was not used")
    if result is None or not heeds:
        grouping = families_for(families, crowd, None if chosen == "crowd" else crowd.gold)
    notes += [grouping.note] if grouping else []
    judged_by = crowd.with_gold(None) if chosen == "crowd" else crowd
    notes += find_truth(judged_by, None, result).notes
    tell("judging the workers")
    reliability = measure_reliability(judged_by, result=result, measure=measure)
    flags = find_quality_flags(judged_by, result=result, probes=probes)
    limit = default_threshold(reliability) if threshold is None else threshold
    verdicts = judge_workers(
        reliability, threshold=limit, sure=sure, flags=flags, families=grouping
    )
    tell("choosing a team")
    listed = _listed(prices, reliability)
    if score == "gain":
        team: WorkerSelection = select_by_gain(
            judged_by, result=result, prices=listed, families=grouping, random_state=random_state,
            budget=_whole(reliability, listed) if budget is None else budget,
        )  # fmt: skip
    else:
        team = _team(reliability, budget, listed, score, grouping, random_state)
    by = None if result is None else result.method
    return Review(reliability, tuple(verdicts), limit, team, by, tuple(notes), grouping)


def _check(crowd: Crowd, source: str, method: str | None) -> None:
    if source not in SOURCES:
        raise UnknownNameError("source of reliability", source, SOURCES)
    if source == "gold" and method is not None:
        raise InputError(f'gold alone judges by source="gold": leave out the method {method!r}')
    if not len(crowd.latest):
        raise InputError("the crowd has no answer: there is nothing to judge")


def _source(crowd: Crowd, source: str, notes: list[str]) -> str:
    """Return what judges: "gold", "crowd" or "both"."""
    known = np.zeros(crowd.n_tokens, np.bool_) if crowd.gold is None else crowd.gold >= 0
    if source != "auto":
        if source != "crowd" and not known.any():
            raise InputError(
                f'source "{source}" needs known labels, and the crowd has none: give its gold'
            )
        return source
    if not known.any():
        return "crowd"
    items = of_wholes(crowd, np.logical_or, count_in_rows(known, crowd.offsets) > 0)
    answers = crowd.whole_items.latest
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
    """Return one amount to every worker, and leave other prices as they are."""
    if isinstance(prices, str | int | float):
        return [prices] * len(reliability)
    return prices


def _team(
    reliability: Reliability, budget: Any, prices: Any, score: str, grouping: Families | None,
    random_state: int,
) -> WorkerSelection:  # fmt: skip
    if budget is None and prices is not None:
        budget = _whole(reliability, prices)
    elif budget is None:  # nobody set one: as many as can be chosen, and no word of a budget
        everybody = select_workers(
            reliability, budget=len(reliability), score=score, strategy="top", families=grouping,
            random_state=random_state,
        )  # fmt: skip
        budget = len(everybody)
    return select_workers(
        reliability, budget=budget, score=score, prices=prices, families=grouping,
        random_state=random_state,
    )  # fmt: skip


def _whole(reliability: Reliability, prices: Any) -> Any:
    """Return the budget that pays everybody."""
    if prices is None:
        return len(reliability)
    total = int(read_prices(prices, reliability.worker_ids.to_pylist()).sum())
    return f"{total // MICRO}.{total % MICRO:06d}"
