"""What votes on tagged text are worth, measured on gold by which nobody was ranked.

An F1 of spans is no chance of being right, and no model of this package says how spans that several
workers miss go together: there is no forecast. Where there is gold it is halved at random, by
documents or, where there are none, by items. One half ranks the workers, the best 1, 2, … of them
vote on the other half, and the vote is scored there; then the other way round, for several
halvings. Items that none of these workers answered count as they are, with nothing found.

Counts of a halving are added up over both halves. The interval is that of the bootstrap: documents
and halvings are drawn again, with replacement.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from goldspan.aggregate import aggregate
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.hiring.beta import LEVEL, Reliability
from goldspan.hiring.curve import Curve
from goldspan.hiring.reliability import group_of, measure_reliability
from goldspan.hiring.selection import select_workers
from goldspan.spans import Tagged, find_spans
from goldspan.spans.scoring import right_spans

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
        """Give the same curve of one size."""
        place = self.sizes == size
        return replace(super().at(size), answers=self.answers[place])

    def columns(self) -> dict[str, list[str]]:
        """Show how many answers an item really has."""
        answers = [f"{one:.2f}" for one in self.answers]
        return {**super().columns(), "answers per item": answers}

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values, for JSON."""
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
    random_state: int = 0,
) -> HeldOutCurve:
    r"""Measure the weighted vote of the best 1, 2, … workers on gold by which they were not ranked.

    Args:
        crowd: Tagged text with gold.
        measure: As for `measure_reliability`.
        score: What ranks the workers, as for `select_workers`.
        sizes: Team sizes; larger ones than every half can rank are left out. By default 1, 2, 3
            and so on, the larger the fewer.
        prices: int64 [n_workers], millionths of money per answer; they are paid for the answers
            that there are.
        halvings: How often the gold is halved.
        level: Of the interval.
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
        for half in _halve(known, group, n_groups, measure, score, rng)
    ]  # fmt: skip
    most = min(len(half.ranked) for half in halves)
    asked = SIZES if sizes is None else np.unique(np.asarray(sizes, np.int64))
    chosen = asked[asked <= most].astype(np.int64)
    if not len(chosen):
        raise InputError(f"half of the gold ranks {most} workers only: their vote has no measure")
    kind = halves[0].ranked.measure
    counts = np.array([[_count(h, size, n_groups, kind) for size in chosen] for h in halves])
    counts = counts.reshape(halvings, 2, *counts.shape[1:]).sum(axis=1)
    low, high = _bootstrap(counts, level, rng)
    answers, paid = _answers(halves, chosen, prices)
    cost = chosen if prices is None else np.rint(paid).astype(np.int64)
    return HeldOutCurve(
        chosen, _rate(counts.sum(axis=(0, 3))), low, high, level, cost, prices is not None,
        answers, kind, n_groups, "items" if crowd.groups is None else "documents",
    )  # fmt: skip


def _with_gold(crowd: Crowd) -> tuple[Crowd, NDArray[np.int64], int]:
    """Give the items with gold, the document of each, int64 [n_items], and how many there are."""
    codes = np.full(crowd.n_tokens, -1) if crowd.gold is None else crowd.gold
    known = np.concatenate([[0], np.cumsum(codes >= 0)])[crowd.offsets]
    kept = np.diff(known) > 0
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
    rng: np.random.Generator,
) -> tuple[Half, Half]:  # fmt: skip
    """Draw two halves; each has the workers whom the other one ranks."""
    first = np.isin(group, rng.permutation(n_groups)[: n_groups // 2])
    seed, found = int(rng.integers(2**31)), []
    for test in (first, ~first):
        tested = measure_reliability(crowd.select_items(test), measure=measure)
        team = select_workers(
            tested, budget=len(tested), score=score, strategy="top", random_state=seed
        )
        found.append(Half(crowd.select_items(~test), group[~test], team.tested))
    return found[0], found[1]


def _count(half: Half, size: int, n_groups: int, measure: str) -> NDArray[np.float64]:
    """Let the first workers vote, and count: float64 [2, n_groups], what is right of how much."""
    crowd = half.crowd
    result = aggregate(
        crowd.with_gold(None), "wmv-linear", reliability=half.ranked,
        unit="span" if measure == "span_f1" else "token",
        only=half.ranked.worker_ids[:size].to_pylist(),
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
    """Give right by whole, [..., 2] to [...]; 0 where there is nothing."""
    return np.asarray(counts[..., 0] / np.maximum(counts[..., 1], 1e-9))


def _bootstrap(
    counts: NDArray[np.float64], level: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the percentile interval; counts are float64 [halvings, n_sizes, 2, n_groups]."""
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
