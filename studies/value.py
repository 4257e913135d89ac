"""One currency for money, time and mistakes: campaigns that decide by it beside fixed redundancy.

Simulated annotators, four fast and dear and eight slow and cheap, label single labels and the
sentences of a crowd. A campaign costs what was paid, its hours and its mistakes, each at its price;
the mistakes are counted by the gold, which no campaign looks at.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from goldspan.campaign import Campaign, read_inputs, read_plan
from goldspan.crowd import Crowd, read_crowd, write_crowd
from goldspan.errors import InputError
from goldspan.money import MICRO
from goldspan.simulation import draw_truth
from goldspan.simulation.crowd import BEGIN
from goldspan.spans import parse
from goldspan.store import create_ledger
from studies.table import Study, Table

N_ITEMS = 200
REPEATS = 20
FAST, SLOW = 4, 8
"""Annotators of a kind."""
SHAPES = {
    "single labels": ("ibcc", "flip(0.1)", "flip(0.2)"),
    "spans": (
        "bsc-seq+crf", "flip(0.02) + misses(0.1)", "flip(0.04) + misses(0.25) + wrong_type(0.1)",
    ),
}  # fmt: skip
"""Method, how fast annotators answer, and how slow ones do."""


@dataclass(frozen=True)
class Prices:
    """What an answer of a fast and a slow annotator costs and takes, an hour, and a mistake."""

    fast: tuple[float, float]  # Price and seconds
    slow: tuple[float, float]
    hour: float
    mistake: float

    def __str__(self) -> str:
        """Return them in words."""
        each = ", ".join(f"{price:g} in {s:g} s" for price, s in (self.fast, self.slow))
        return f"{each}; hour {self.hour:g}, mistake {self.mistake:g}"


PRICES = (
    Prices((0.1, 20), (0.02, 300), 5, 1),
    Prices((0.1, 20), (0.02, 300), 1, 0.5),
    Prices((0.04, 60), (0.02, 120), 20, 2),
)
FIXED: dict[str, dict[str, Any]] = {
    **{f"{k} of each": {"min": k, "max": k} for k in (1, 2, 3, 5)},
    "2 to 5, confident(0.95)": {"min": 2, "max": 5, "stop": "confident(0.95)"},
}
"""The five fixed settings; the cheapest are asked first, as in any campaign."""
ONE = "one currency"


def study(
    data: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
    quick: bool = False,
    repeats: int | None = None,
    threads: int | None = None,  # noqa: ARG001 - every run is short
) -> Study:
    """Make the table.

    Args:
        data: The folder that holds `ner_mturk`.
        progress: Told how many settings are over, of how many.
        quick: Whether it is only to be seen that the study runs.
        repeats: Seeds; 20 by default.
        threads: Of no use here.
    """
    file = data / "ner_mturk" / "crowd.tsv.gz"
    if not file.is_file():
        raise InputError(f"{file} is not there: study value needs it")
    news, seeds = read_crowd(file), range(1, 1 + (repeats or (1 if quick else REPEATS)))
    n, rows = 40 if quick else N_ITEMS, list[tuple[Any, ...]]()
    settings = [(shape, prices) for shape in SHAPES for prices in PRICES[: 1 if quick else None]]
    for done, (shape, prices) in enumerate(settings):
        ways = {way: _plan(shape, prices, way) for way in (ONE, *FIXED)}
        costs = {
            way: np.array([_play(plan, _truth(shape, news, n, s), prices, s) for s in seeds])
            for way, plan in ways.items()
        }
        best = min(FIXED, key=lambda way: costs[way][:, 3].mean())
        for way in (ONE, *sorted(FIXED, key=lambda way: costs[way][:, 3].mean())):
            saved = 100 * (1 - costs[ONE][:, 3] / costs[way][:, 3])
            ahead = () if way != best else (float(saved.mean()), float(_error(saved)))
            rows.append((shape, str(prices), way, *costs[way].mean(axis=0).tolist(), *ahead))
        if progress:
            progress(done + 1, len(settings))
    own = ("items", "prices", "setting", "money", "hours", "mistakes", "total")
    columns = (*own, f"{ONE} is cheaper by, %", "s.e.")
    caption = f"What {n} items cost in all, mean of {len(seeds)} seeds"
    full = tuple(row + (None,) * (len(columns) - len(row)) for row in rows)
    return Study("One currency", [Table(caption, columns, full)], ())


def _error(values: Any) -> float:
    return float(np.std(values, ddof=min(1, len(values) - 1)) / np.sqrt(len(values)))


def _truth(shape: str, news: Crowd, n: int, seed: int) -> Crowd:
    """Draw the items of a seed."""
    if shape != "spans":
        return draw_truth(n, ["x", "y", "z"], shares=[5, 3, 2], seed=seed)
    chosen = np.random.default_rng(seed).permutation(news.n_items)[:n]
    return news.select_items(np.isin(np.arange(news.n_items), chosen))


def _plan(shape: str, prices: Prices, way: str) -> dict[str, Any]:
    method, *answers = SHAPES[shape]
    workers = list(_workers(answers, prices))
    plan: dict[str, Any] = {
        "name": "value",
        "crowd": {"source": "mixed", "truth": "truth.tsv", "workers": workers},
        "budget": {"money": "100000"},
        "aggregate": {"method": method},
        "model": {"name": "none"},
        "judging": {"drop": False},
    }
    if way == ONE:
        return plan | {
            "redundancy": {"by": "gain", "min": 2, "max": len(workers)},
            "prices": {"hour": prices.hour},
            "value": {"mistake": prices.mistake},
            "select": {"by": "random", "first": 2 * len(workers)},
        }
    return plan | {"redundancy": FIXED[way], "select": {"by": "random", "batch": N_ITEMS}}


def _workers(answers: list[str], prices: Prices) -> Iterator[dict[str, Any]]:
    kinds = (("fast", FAST, prices.fast), ("slow", SLOW, prices.slow))
    for (name, n, (price, seconds)), answer in zip(kinds, answers, strict=True):
        for i in range(n):
            entry = {"id": f"{name}{i}", "kind": "simulated", "worker": answer}
            yield {**entry, "seconds": float(seconds), "prices": {"per_answer": price}}


def _play(
    plan: Mapping[str, Any], truth: Crowd, prices: Prices, seed: int
) -> tuple[float, float, float, float]:
    """Run a campaign; return money, hours, mistakes and what all of it costs."""
    tags, ids = truth.tagset, truth.item_ids.to_pylist()
    is_single = tags.encoding == "PLAIN"
    task = {"labels": [*tags.tags]} if is_single else {"types": [*tags.types]}
    crowd = dict(plan["crowd"])
    crowd["workers"] = [{**one, "seed": 1000 * seed + n} for n, one in enumerate(crowd["workers"])]
    file = "pool.csv" if is_single else "truth.tsv"
    whole = {**plan, "seed": seed, "task": task, "crowd": crowd, "pool": {"file": file}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_crowd(truth, folder / "truth.tsv")
        if is_single:
            rows = "".join(f"{one},text {one}\n" for one in ids)
            (folder / file).write_text(f"id,text\n{rows}")
        inputs = read_inputs(read_plan(whole), folder)
        ledger = create_ledger(
            folder / "campaign.sqlite", name="value", cap=inputs.plan.cap, currency="",
            tagset=inputs.codec, now=BEGIN,
        )  # fmt: skip
        campaign = Campaign(inputs, ledger)
        campaign.run()
        hours = [one["hours"] for one in ledger.records("round").values()][-1]
        money, result = ledger.totals().spent / MICRO, campaign.progress.result
        assert result is not None
        given = result.tagged_by_id()
        ledger.close()
    known = dict(zip(ids, tags.decode_complete(truth.gold_tagged), strict=True))
    wrong = sum(_mistakes(known[one], given.get(one), tags.encoding) for one in ids)
    return money, hours, wrong, money + hours * prices.hour + wrong * prices.mistake


def _mistakes(known: Sequence[str], given: Any, encoding: str) -> int:
    """Count wrong labels; a span of a wrong type or with wrong bounds counts once."""
    labels = [tag or "O" for tag in given or ["O"] * len(known)]
    if encoding == "PLAIN":
        return int(labels != [*known])
    right, found = ({*parse(one, encoding)} for one in (known, labels))
    return max(len(right), len(found)) - len(right & found)
