"""The tables of the study, from its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from studies.campaign_ner.journal import Runs
from studies.campaign_ner.play import Point
from studies.campaign_ner.ways import ADAPTIVE, ALLOWED, FULL, MOST, fixed_label, random_label
from studies.table import Table

MARGIN = 0.01
"""F1 by which a campaign may stay below the full crowd."""


@dataclass(frozen=True)
class Mean:
    """A point of a way, averaged over its seeds.

    Attributes:
        answers: Share of all answers.
        money: Share of the money that all answers cost.
        f1: Span F1.
        least: Of any seed.
        most: Of any seed.
        unasked: Items without an answer.
        n: Seeds.
    """

    answers: float
    money: float
    f1: float
    least: float
    most: float
    unasked: float
    n: int

    @classmethod
    def of(cls, points: Sequence[Point], full: Point) -> Mean:
        """Average."""
        f1 = [point.f1 for point in points]
        return cls(
            float(np.mean([point.answers for point in points])) / full.answers,
            float(np.mean([point.money for point in points])) / full.money,
            float(np.mean(f1)),
            min(f1),
            max(f1),
            float(np.mean([point.unasked for point in points])),
            len(points),
        )


def means(runs: Runs) -> dict[str, list[Mean]]:
    """Return the points of every way, averaged over its seeds."""
    full = runs[0, FULL][0]
    found = {}
    for label in dict.fromkeys(label for _, label in runs):
        own = [points for (_, name), points in runs.items() if name == label]
        found[label] = [Mean.of(stage, full) for stage in zip(*own, strict=True)]
    return found


def answer_table(found: dict[str, list[Mean]]) -> Table:
    """Return whether a campaign comes close enough, and what else the money would have bought."""
    target = found[FULL][0].f1 - MARGIN
    rows: list[tuple[object, ...]] = [(FULL, 100.0, 100.0, 100 * found[FULL][0].f1, None)]
    loop = found[ADAPTIVE]
    first = next((mean for mean in loop if mean.f1 >= target), None)
    if first is not None and first is not loop[-1]:
        rows.append(_answer_row(f"{ADAPTIVE}, where it first is close enough", first, target))
    rows.append(_answer_row(f"{ADAPTIVE}, at the end", loop[-1], target))
    rows.append(_answer_row(random_label(ALLOWED), found[random_label(ALLOWED)][0], target))
    money = loop[-1].money
    fixed = _at_money(fixed_line(found), money)
    if fixed is not None:
        missed = 100 * (fixed - target)
        rows.append(
            (
                "fixed redundancy for the money of the last round",
                None,
                100 * money,
                100 * fixed,
                missed,
            )
        )
    caption = (
        f"Our target: the full crowd less one point, {100 * target:.2f}, with {ALLOWED:.0%} of the "
        "answers"
    )
    columns = ("what is bought", "% of answers", "% of money", "F1", "above the full crowd less 1")
    return Table(caption, columns, tuple(rows), {"% of answers": 1, "% of money": 1})


def _answer_row(name: str, mean: Mean, target: float) -> tuple[object, ...]:
    shares = (100 * mean.answers, 100 * mean.money)
    return (name, *shares, 100 * mean.f1, 100 * (mean.f1 - target))


def point_table(found: dict[str, list[Mean]]) -> Table:
    """List every point of every way."""
    rows: list[tuple[object, ...]] = []
    for label, stages in found.items():
        for mean in stages:
            shares = (100 * mean.answers, 100 * mean.money)
            scores = [100 * value for value in (mean.f1, mean.least, mean.most)]
            rows.append((label, mean.n, *shares, *scores, mean.unasked))
    columns = (
        "way", "seeds", "% of answers", "% of money", "F1, mean", "least", "most",
        "sentences without an answer",
    )  # fmt: skip
    digits: dict[str, int | str] = {
        "% of answers": 1, "% of money": 1, "sentences without an answer": 0,
    }  # fmt: skip
    return Table("Every point, all sentences scored", columns, tuple(rows), digits)


def fixed_line(found: dict[str, list[Mean]]) -> list[Mean]:
    """Return fixed redundancy by number of answers, all of them at the end."""
    labels = [*(fixed_label(k) for k in range(1, MOST)), FULL]
    return [found[label][0] for label in labels if label in found]


def _at_money(line: Sequence[Mean], money: float) -> float | None:
    """Return the F1 between two points of a line, None outside of it."""
    if not line or not line[0].money <= money <= line[-1].money:
        return None
    return float(np.interp(money, [mean.money for mean in line], [mean.f1 for mean in line]))
