"""The review of a whole crowd: who is kept, what that saves, and what the labels lose by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from goldspan._arrays import count_in_rows
from goldspan.aggregation import Consensus, aggregate, get_aggregator
from goldspan.aggregation.families import Families, check_families, families_for
from goldspan.aggregation.registry import DEFAULT
from goldspan.crowd import Crowd
from goldspan.errors import InputError, UnknownNameError
from goldspan.money import MICRO
from goldspan.protocols import Progress, Runner
from goldspan.spans import Tagged, find_spans
from goldspan.spans.scoring import right_spans
from goldspan.workers.beta import LEVEL, Reliability
from goldspan.workers.difficulty import Difficulty, fit_difficulty, typical_difficulty
from goldspan.workers.forecast import MOST_WORKERS, Curve, forecast_accuracy, read_sizes
from goldspan.workers.gain import select_by_gain
from goldspan.workers.quality_flags import find_quality_flags
from goldspan.workers.reliability import find_truth, group_of, measure_reliability
from goldspan.workers.selection import WorkerSelection, read_prices, select_workers
from goldspan.workers.verdicts import DROP, TEST, Verdict, default_threshold, judge_workers

# --------------------------------------------------------------------------------------------------
# What votes on tagged text are worth, measured on gold by which nobody was ranked.


HALVINGS = 5
LEAST_GROUPS = 6
"""Documents with gold that can be halved: three are the least to rank workers by."""
SIZES = np.array([1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 30, 40, 50, 70, 100, 150, 200])
"""Sizes that are measured by default."""
RESAMPLES = 1000


@dataclass(frozen=True, eq=False)
class HeldOutCurve(Curve):
    """Scores of votes on held-out gold; `accuracy` holds the F1 of spans where that is the measure.

    Attributes:
        answers: float64 [n_sizes], how many answers of these workers an item has.
        measure: "span_f1" or "token_accuracy".
        n_groups: Documents with gold, or items where there are no documents.
        unit: "documents" or "items".
    """

    answers: NDArray[np.float64]
    measure: str
    n_groups: int
    unit: str

    @property
    def label(self) -> str:
        """What it rests on, in a sentence."""
        gold = f"held-out gold of {self.n_groups} {self.unit}"
        what = "span F1" if self.measure == "span_f1" else "token accuracy"
        return f"{what} measured on {gold}, not a model"

    @property
    def quantity(self) -> str:
        """The F1 of spans, or the share of tokens."""
        return "F1" if self.measure == "span_f1" else "accuracy"

    @property
    def model_based(self) -> bool:
        """It was measured."""
        return False

    def at(self, size: int) -> HeldOutCurve:
        """Return the same curve of one size."""
        place = self.sizes == size
        return replace(super().at(size), answers=self.answers[place])

    def columns(self) -> dict[str, list[str]]:
        """Show how many answers an item really has."""
        answers = [f"{one:.2f}" for one in self.answers]
        return {**super().columns(), "answers per item": answers}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        more = {"measure": self.measure, "answers_per_item": self.answers.tolist()}
        return {**super().to_dict(), **more, "n_groups": self.n_groups, "unit": self.unit}


class Half(NamedTuple):
    """Items to vote on, and workers in the order in which the other items rank them."""

    crowd: Crowd
    group: NDArray[np.int64]
    ranked: Reliability


def measure_votes(
    crowd: Crowd,
    *,
    measure: str = "auto",
    score: str = "posterior",
    sizes: ArrayLike | None = None,
    prices: NDArray[np.int64] | None = None,
    halvings: int = HALVINGS,
    level: float = LEVEL,
    families: Families | None = None,
    random_state: int = 0,
) -> HeldOutCurve:
    r"""Measure the weighted vote of the best 1, 2, … workers on gold by which they were not ranked.

    Args:
        crowd: Tagged text with gold.
        measure: As for `measure_reliability`.
        score: What ranks the workers, as for `select_workers`.
        sizes: Numbers of workers; larger ones than every half can rank are left out. By default
            1, 2, 3 and so on, the larger the fewer.
        prices: int64 [n_workers], millionths of money per answer; they are paid for the answers
            that there are.
        halvings: How often the gold is halved.
        level: Of the interval.
        families: Workers who err together, as for `select_workers`; the vote heeds it.
        random_state: Seed of halvings and bootstrap.

    Raises:
        InputError: Items are single labels, there is too little gold to halve, or halves rank too
            few workers.

    >>> import goldspan
    >>> rows = [f"{doc}\t{word}\tB-X\tB-X\tO\n\n" for doc in "abcdef" for word in "uv"]
    >>> text = "doc\ttoken\tgold\tann\tbob\n" + "".join(rows)
    >>> measure_votes(goldspan.read_crowd(text.encode())).accuracy.tolist()
    [1.0]
    """
    if crowd.is_classification:
        raise InputError("votes on single labels are forecast: see forecast_accuracy")
    known, group, n_groups = _with_gold(crowd)
    rng = np.random.default_rng(random_state)
    halves = [
        half for _ in range(halvings)
        for half in _halve(known, group, n_groups, measure, score, families, rng)
    ]  # fmt: skip
    most = min(len(half.ranked) for half in halves)
    asked = SIZES if sizes is None else np.unique(np.asarray(sizes, np.int64))
    chosen = asked[asked <= most].astype(np.int64)
    if not len(chosen):
        raise InputError(f"half of the gold ranks {most} workers only: their vote has no measure")
    kind = halves[0].ranked.measure
    counts = np.array(
        [[_count(h, size, n_groups, kind, families) for size in chosen] for h in halves]
    )
    counts = counts.reshape(halvings, 2, *counts.shape[1:]).sum(axis=1)
    low, high = _bootstrap(counts, level, rng)
    answers, paid = _answers(halves, chosen, prices)
    cost = chosen if prices is None else np.rint(paid).astype(np.int64)
    return HeldOutCurve(
        chosen, _rate(counts.sum(axis=(0, 3))), low, high, level, cost, prices is not None,
        answers, kind, n_groups, "items" if crowd.groups is None else "documents",
    )  # fmt: skip


def _with_gold(crowd: Crowd) -> tuple[Crowd, NDArray[np.int64], int]:
    """Return the items with gold, the document of each, int64 [n_items], and how many there are."""
    codes = np.full(crowd.n_tokens, -1) if crowd.gold is None else crowd.gold
    kept = count_in_rows(codes >= 0, crowd.offsets) > 0
    names, group = np.unique(group_of(crowd)[kept], return_inverse=True)
    if len(names) < LEAST_GROUPS:
        unit = "items" if crowd.groups is None else "documents"
        raise InputError(
            f"a vote on tagged text can only be measured, and that takes gold of {LEAST_GROUPS} "
            f"{unit}: there are {len(names)}"
        )
    return crowd.select_items(kept), group.astype(np.int64), len(names)


def _halve(
    crowd: Crowd, group: NDArray[np.int64], n_groups: int, measure: str, score: str,
    families: Families | None, rng: np.random.Generator,
) -> tuple[Half, Half]:  # fmt: skip
    """Draw two halves; each has the workers whom the other one ranks."""
    first = np.isin(group, rng.permutation(n_groups)[: n_groups // 2])
    seed, found = int(rng.integers(2**31)), []
    for test in (first, ~first):
        tested = measure_reliability(crowd.select_items(test), measure=measure)
        team = select_workers(
            tested, budget=len(tested), score=score, strategy="top", families=families,
            random_state=seed,
        )  # fmt: skip
        found.append(Half(crowd.select_items(~test), group[~test], team.tested))
    return found[0], found[1]


def _count(
    half: Half, size: int, n_groups: int, measure: str, families: Families | None
) -> NDArray[np.float64]:
    """Let the first workers vote, and count: float64 [2, n_groups], what is right of how much."""
    crowd = half.crowd
    result = aggregate(
        crowd.with_gold(None), "wmv-linear", reliability=half.ranked,
        unit="span" if measure == "span_f1" else "token",
        only=half.ranked.worker_ids[:size].to_pylist(), families=families or "none",
    )  # fmt: skip
    true = crowd.gold_tagged
    found = np.where(true.codes >= 0, result.codes, -1).astype(np.int16)
    if measure == "token_accuracy":
        group = np.repeat(half.group, np.diff(crowd.offsets))
        right, whole = (true.codes >= 0) & (found == true.codes), true.codes >= 0
        return np.stack([np.bincount(group, part, n_groups) for part in (right, whole)])
    gold = find_spans(true, crowd.tagset)
    spans = find_spans(Tagged(found, crowd.offsets), crowd.tagset)
    right = right_spans(gold, spans, crowd.n_tokens)
    both = np.concatenate([half.group[gold.item], half.group[spans.item]])
    n_right = np.bincount(half.group[spans.item], right, n_groups)
    return np.stack([n_right, np.bincount(both, minlength=n_groups) / 2])


def _rate(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return right by whole, [..., 2] to [...]; 0 where there is nothing."""
    return np.asarray(counts[..., 0] / np.maximum(counts[..., 1], 1e-9))


def _bootstrap(
    counts: NDArray[np.float64], level: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the percentile interval; counts are float64 [halvings, n_sizes, 2, n_groups]."""
    n_halvings, _, _, n_groups = counts.shape
    weight = rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups), RESAMPLES)
    halving = rng.integers(n_halvings, size=RESAMPLES)
    values = np.stack([_rate(counts[h] @ w) for h, w in zip(halving, weight, strict=True)])
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def _answers(
    halves: list[Half], sizes: NDArray[np.int64], prices: NDArray[np.int64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count the answers per item of the first workers, and what they cost: [n_sizes] each."""
    answers, paid, n_items = np.zeros(len(sizes)), np.zeros(len(sizes)), 0
    for half in halves:
        crowd = half.crowd
        per_worker = np.bincount(crowd.latest.worker, minlength=crowd.n_workers)
        order = [crowd.worker_index(name) for name in half.ranked.worker_ids.to_pylist()]
        costs = per_worker if prices is None else per_worker * prices
        answers += np.cumsum(per_worker[order])[sizes - 1]
        paid += np.cumsum(costs[order])[sizes - 1]
        n_items += crowd.n_items
    return answers / n_items, paid / n_items


# --------------------------------------------------------------------------------------------------
# What the vote of a team is expected to be worth, and that of the best 1, 2, … workers.


LEAST_ITEMS = 5
"""With fewer items with gold the crowd's result and public crowds tell how mistakes are shared."""


@dataclass(frozen=True, eq=False)
class Expected:
    """What votes are expected to be worth."""

    curve: Curve | None  # Of the best 1, 2, … workers
    # Of the team, a point of the curve where the team is the best so many workers
    team: Curve | None
    notes: tuple[str, ...] = ()  # Why there is none, in sentences


def expect(
    crowd: Crowd,
    reliability: Reliability,
    team: WorkerSelection,
    result: Consensus | None,
    *,
    prices: Any = None,
    families: Families | None = None,
    random_state: int = 0,
) -> Expected:
    """Return what the votes of a team and of the best workers are expected to be worth."""
    score = "posterior" if team.score == "gain" else team.score
    best = select_workers(
        reliability, budget=min(len(reliability), MOST_WORKERS), score=score, strategy="top",
        families=families, random_state=random_state,
    )  # fmt: skip
    if not len(best):
        return Expected(None, None)
    costs = None if prices is None else read_prices(prices, reliability)
    if not crowd.is_classification:
        return _measured(crowd, reliability.measure, team, best, costs, families, random_state)
    # Nobody beyond the first of a team is forecast.
    wanted = np.union1d(best.index, team.index[:MOST_WORKERS])
    workers = reliability.worker_ids.take(pa.array(wanted))
    difficulty = _difficulty(crowd, result, workers, random_state)

    def forecast(one: WorkerSelection, sizes: NDArray[np.int64]) -> Curve:
        return forecast_accuracy(
            one.tested, difficulty=difficulty, sizes=sizes, random_state=random_state,
            prices=None if costs is None else costs[one.index] / MICRO, families=families,
        )  # fmt: skip

    size = min(len(team), MOST_WORKERS)
    if size and is_best(team, best):
        curve = forecast(best, np.append(read_sizes(None, len(best)), size))
        return Expected(curve, curve.at(size))
    curve = forecast(best, read_sizes(None, len(best)))
    return Expected(curve, forecast(team, np.array([size])) if size else None)


def is_best(team: WorkerSelection, best: WorkerSelection) -> bool:
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
    crowd: Crowd,
    measure: str,
    team: WorkerSelection,
    best: WorkerSelection,
    costs: NDArray[np.int64] | None,
    families: Families | None,
    seed: int,
) -> Expected:
    """Measure the votes on tagged text, and say why where that cannot be done."""
    try:
        curve = measure_votes(
            crowd, measure=measure, score=best.score, prices=costs,
            sizes=np.append(SIZES, max(1, len(team))), families=families, random_state=seed,
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


def contradiction(team: WorkerSelection, verdicts: Iterable[Verdict], threshold: float) -> str:
    """Return how many of a team would be dropped or tested, and why they are in it ("" for none).

    >>> from goldspan.workers import judge_workers
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


# --------------------------------------------------------------------------------------------------
# All about the workers of a crowd at once: how good, what to do with them, whom to select.


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
            nobody can be selected.
        team_forecast: The same of the whole team alone: a point of the curve where the team is the
            best so many workers.
        method: What aggregated the answers, None where gold alone judges.
        notes: What else should be known, in sentences.
        families: Workers who err together; None where everybody errs alone.
    """

    reliability: Reliability
    verdicts: tuple[Verdict, ...]
    threshold: float
    team: WorkerSelection
    forecast: Curve | None
    team_forecast: Curve | None
    method: str | None
    notes: tuple[str, ...]
    families: Families | None = None

    @property
    def contradiction(self) -> str:
        """How many of the team would be dropped or tested more, and why they are in it; or ""."""
        return contradiction(self.team, self.verdicts, self.threshold)

    def to_arrow(self) -> pa.Table:
        """Return a row per worker: verdict, mean, interval, judged answers, team, why, signs.

        Also `family`, null of who errs alone, and `effective`: as how many independent workers the
        whole family counts.
        """
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
                "family": v.family,
                "effective": v.effective,
            }
            for v in self.verdicts
        ]
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
    r"""Judge all workers, choose the best team, and forecast its accuracy.

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
            where the crowd judges, in the team and in forecasts.
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
        truth = find_truth(crowd, gold, None)
        crowd = truth.crowd.with_gold(truth.gold[0])
    notes: list[str] = []
    chosen, result = _source(crowd, source, notes), None
    kin, heeds = None, False
    if chosen != "gold":
        name = method or DEFAULT
        tell(f"aggregating with {name}")
        known = crowd if chosen == "both" else None
        heeds = "families" in get_aggregator(name).parameter_names()
        more: dict[str, Any] = {"families": families} if heeds else {}
        result = aggregate(crowd, name, gold=known, runner=runner, progress=progress, **more)
        kin = result.families
    elif method is not None:
        notes.append(f"gold alone judges: the method {method} was not used")
    if result is None or not heeds:
        kin = families_for(families, crowd, None if chosen == "crowd" else crowd.gold)
    notes += [kin.note] if kin else []
    judged_by = crowd.with_gold(None) if chosen == "crowd" else crowd
    notes += find_truth(judged_by, None, result).notes
    tell("judging the workers")
    reliability = measure_reliability(judged_by, result=result, measure=measure)
    signs = find_quality_flags(judged_by, result=result, probes=probes)
    limit = default_threshold(reliability) if threshold is None else threshold
    verdicts = judge_workers(reliability, threshold=limit, sure=sure, signs=signs, families=kin)
    tell("choosing a team")
    listed = _listed(prices, reliability)
    if score == "gain":
        team: WorkerSelection = select_by_gain(
            judged_by, result=result, prices=listed, families=kin, random_state=random_state,
            budget=_whole(reliability, listed) if budget is None else budget,
        )  # fmt: skip
    else:
        team = _team(reliability, budget, listed, score, kin, random_state)
    tell("forecasting its accuracy")
    expected = expect(
        judged_by, reliability, team, result, prices=listed, families=kin,
        random_state=random_state,
    )  # fmt: skip
    return Review(
        reliability, tuple(verdicts), limit, team, expected.curve, expected.team,
        None if result is None else result.method, (*notes, *expected.notes), kin,
    )  # fmt: skip


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
    items = count_in_rows(known, crowd.offsets) > 0
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
    """Return one amount to every worker, and leave other prices as they are."""
    if isinstance(prices, str | int | float):
        return [prices] * len(reliability)
    return prices


def _team(
    reliability: Reliability, budget: Any, prices: Any, score: str, kin: Families | None,
    random_state: int,
) -> WorkerSelection:  # fmt: skip
    if budget is None and prices is not None:
        budget = _whole(reliability, prices)
    elif budget is None:  # nobody set one: as many as can be chosen, and no word of a budget
        everybody = select_workers(
            reliability, budget=len(reliability), score=score, strategy="top", families=kin,
            random_state=random_state,
        )  # fmt: skip
        budget = len(everybody)
    return select_workers(
        reliability, budget=budget, score=score, prices=prices, families=kin,
        random_state=random_state,
    )  # fmt: skip


def _whole(reliability: Reliability, prices: Any) -> Any:
    """Return the budget that pays everybody."""
    if prices is None:
        return len(reliability)
    total = int(read_prices(prices, reliability).sum())
    return f"{total // MICRO}.{total % MICRO:06d}"
