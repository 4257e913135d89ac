"""What the vote of a team is expected to be worth, and that of the best 1, 2, … workers.

Of single labels a model forecasts it: by how workers share their mistakes on gold or, with less
gold than can tell, in public crowds. Of tagged text it is measured on held-out gold, or not told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.aggregate import Consensus
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.hiring.beta import Reliability
from goldspan.hiring.curve import Curve
from goldspan.hiring.difficulty import Difficulty, fit_difficulty
from goldspan.hiring.forecast import MOST_WORKERS, forecast_accuracy, read_sizes
from goldspan.hiring.held_out import SIZES, measure_votes
from goldspan.hiring.selection import read_prices, select_workers
from goldspan.hiring.team import Team
from goldspan.hiring.typical import typical_difficulty
from goldspan.hiring.verdicts import DROP, TEST, Verdict
from goldspan.money import MICRO

LEAST_ITEMS = 5
"""With fewer items with gold the crowd's result and public crowds tell how mistakes are shared."""


@dataclass(frozen=True, eq=False)
class Expected:
    """What votes are expected to be worth.

    Attributes:
        curve: Of the best 1, 2, … workers; None where nothing is known or nobody can be hired.
        team: Of the team, a point of the curve where the team is the best so many workers.
        notes: Why there is none, in sentences.
    """

    curve: Curve | None
    team: Curve | None
    notes: tuple[str, ...] = ()


def expect(
    crowd: Crowd,
    reliability: Reliability,
    team: Team,
    result: Consensus | None,
    *,
    prices: Any = None,
    random_state: int = 0,
) -> Expected:
    """Say what the votes of a team and of the best workers are expected to be worth.

    Args:
        crowd: What judged the workers.
        reliability: Of all of them.
        team: Chosen among them.
        result: The crowd's result where it judged.
        prices: As for `select_workers`.
        random_state: Seed of the team and of everything here.
    """
    best = select_workers(
        reliability, budget=min(len(reliability), MOST_WORKERS), score=team.score, strategy="top",
        random_state=random_state,
    )  # fmt: skip
    if not len(best):
        return Expected(None, None)
    costs = None if prices is None else read_prices(prices, reliability)
    if not crowd.is_classification:
        return _measured(crowd, reliability.measure, team, best, costs, random_state)
    # Nobody beyond the first of a team is forecast.
    wanted = np.union1d(best.index, team.index[:MOST_WORKERS])
    workers = reliability.worker_ids.take(pa.array(wanted))
    difficulty = _difficulty(crowd, result, workers, random_state)

    def forecast(one: Team, sizes: NDArray[np.int64]) -> Curve:
        return forecast_accuracy(
            one.tested, difficulty=difficulty, sizes=sizes, random_state=random_state,
            prices=None if costs is None else costs[one.index] / MICRO,
        )  # fmt: skip

    size = min(len(team), MOST_WORKERS)
    if size and is_best(team, best):
        curve = forecast(best, np.append(read_sizes(None, len(best)), size))
        return Expected(curve, curve.at(size))
    curve = forecast(best, read_sizes(None, len(best)))
    return Expected(curve, forecast(team, np.array([size])) if size else None)


def is_best(team: Team, best: Team) -> bool:
    """Whether a team is the best so many workers, and not, for example, the cheapest good ones."""
    n = min(len(team), len(best))
    return set(team.index[:n].tolist()) == set(best.index[:n].tolist())


def _difficulty(
    crowd: Crowd, result: Consensus | None, workers: pa.Array, random_state: int
) -> Difficulty:
    """Learn how workers share their mistakes, from gold or from the result."""
    answered, n_known = np.unique(crowd.latest.item), 0
    if crowd.gold is not None:
        n_known = int((crowd.gold[answered] >= 0).sum())
    if result is None or n_known >= LEAST_ITEMS:
        return fit_difficulty(crowd, workers=workers, random_state=random_state)
    return typical_difficulty(result, workers=workers, random_state=random_state)


def _measured(
    crowd: Crowd, measure: str, team: Team, best: Team, costs: NDArray[np.int64] | None, seed: int
) -> Expected:
    """Measure the votes on tagged text, and say why where that cannot be done."""
    try:
        curve = measure_votes(
            crowd, measure=measure, score=team.score, prices=costs,
            sizes=np.append(SIZES, max(1, len(team))), random_state=seed,
        )  # fmt: skip
    except InputError as error:
        return Expected(None, None, (f"no forecast: {error}",))
    if not len(team):
        return Expected(curve, None)
    if not is_best(team, best):
        note = "no forecast of this team: only that of the best workers was measured"
        return Expected(curve, None, (note,))
    if len(team) not in curve.sizes:
        note = f"no forecast of this team: half of the gold ranks no {len(team)} workers"
        return Expected(curve, None, (note,))
    return Expected(curve, curve.at(len(team)))


def contradiction(team: Team, verdicts: Iterable[Verdict], threshold: float) -> str:
    """Say how many of a team would be dropped or tested more, and why they are in it, "" for none.

    >>> from goldspan.hiring import judge_workers
    >>> tested = Reliability.from_counts([19, 18, 18], 20)
    >>> team = select_workers(tested, budget=3)
    >>> print(contradiction(team, judge_workers(tested, threshold=0.99), 0.99))
    Verdicts on the team: drop 3. It goes by what votes add to each other's,
    a verdict by the threshold of 99 % alone.
    """
    chosen = set(team.worker_ids.to_pylist())
    counts = Counter(v.verdict for v in verdicts if v.worker in chosen)
    parts = [f"{kind} {counts[kind]}" for kind in (DROP, TEST) if counts[kind]]
    if not parts:
        return ""
    return (
        f"Verdicts on the team: {', '.join(parts)}. It goes by what votes add to each other's,\n"
        f"a verdict by the threshold of {100 * threshold:g} % alone."
    )
