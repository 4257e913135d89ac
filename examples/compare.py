#!/usr/bin/env python3
"""Compare the campaign of campaign.toml with a fixed number of answers per item.

Without seeds it reads the campaign that `goldspan run` left in a folder; with seeds it runs
the campaign with every seed, and prints means. Fixed redundancy asks no gold questions, drops no
worker and trains nothing: it is the usual way to buy labels. Both sides are aggregated by
the same method, and by majority vote.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from goldspan.campaign import Campaign, CampaignRecord, read_inputs, read_plan
from goldspan.campaign.plan import Plan
from goldspan.money import from_micro, to_micro
from goldspan.simulation.crowd import BEGIN
from goldspan.store import create_ledger

HERE = Path(__file__).resolve().parent
FIXED = (3, 5)
"""Answers about every item."""


class Line(NamedTuple):
    """What one way of asking gave.

    Attributes:
        answers: That were paid.
        money: In millionths.
        f1: Of the labels against the hidden gold.
    """

    answers: int
    money: int
    f1: float

    @classmethod
    def of(cls, record: dict[str, object]) -> Line:
        """Read it from a campaign's record."""
        counts, money, rounds = record["counts"], record["money"], record["rounds"]
        return cls(counts["answers"], money["spent"], rounds[-1]["truth"]["labels"])  # type: ignore[index]


def fixed(plan: Plan, k: int, method: str) -> Plan:
    """Ask k times about everything, in one round."""
    words = plan.model_dump()
    words.update(control=None, judging={"drop": False}, model={"name": "none"}, stop={})
    words["redundancy"] = {"min": k, "max": k, "stop": f"fixed({k})"}
    words["budget"]["money"] = 1000
    words["select"] = {"by": "random", "batch": 100_000}
    words["aggregate"] = {"method": method}
    return Plan.model_validate(words)


def run(plan: Plan) -> Line:
    """Run a campaign in a folder that is thrown away."""
    inputs = read_inputs(plan, HERE)
    cap = to_micro(plan.budget.money)
    with (
        tempfile.TemporaryDirectory() as folder,
        create_ledger(
            Path(folder) / "campaign.sqlite", name=plan.name, cap=cap,
            currency=plan.prices.currency, tagset=inputs.codec, now=BEGIN,
        ) as ledger,
    ):  # fmt: skip
        Campaign(inputs, ledger).run()
        return Line.of(CampaignRecord.of(ledger).to_dict())


def rows(plan: Plan) -> Iterator[tuple[str, Line]]:
    """Give what fixed redundancy brings, by name."""
    for k in FIXED:
        yield f"{k} answers each", run(fixed(plan, k, plan.method))
        yield f"{k} answers each, majority vote", run(fixed(plan, k, "mv-token"))


def every(plan: Plan, seeds: Sequence[int]) -> dict[str, list[Line]]:
    """Give the lines of every seed by name, the campaign's first."""
    found: dict[str, list[Line]] = {}
    for seed in seeds:
        seeded = plan.model_copy(update={"seed": seed})
        for name, line in [("the campaign", run(seeded)), *rows(seeded)]:
            found.setdefault(name, []).append(line)
    return found


def show(name: str, lines: Sequence[Line]) -> None:
    """Print a row: the means, and of several seeds the lowest and the highest F1."""
    answers, money, f1 = (mean(values) for values in zip(*lines, strict=True))
    shown = f"{name:32}{answers:8.0f}{float(from_micro(round(money))):9.2f}{100 * f1:8.1f}"
    low, high = (100 * end(line.f1 for line in lines) for end in (min, max))
    print(shown + f"  ({low:.1f} to {high:.1f})" * (len(lines) > 1), flush=True)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", help="what `goldspan run` wrote")
    parser.add_argument("--seeds", type=int, nargs="+", default=[], help="run anew with these")
    options = parser.parse_args()
    plan = read_plan(str(HERE / "campaign.toml"))
    print(f"{'':32}{'answers':>8}{plan.prices.currency:>9}{'F1':>8}", flush=True)
    if options.folder:
        record = json.loads((Path(options.folder) / "record.json").read_text(encoding="utf-8"))
        show("the campaign", [Line.of(record)])
        for name, line in rows(plan):
            show(name, [line])
    else:
        for name, lines in every(plan, options.seeds or [plan.seed]).items():
            show(name, lines)


if __name__ == "__main__":
    main()
