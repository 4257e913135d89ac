"""Hiring: five million answers summed up, against pandas; a million workers ranked and selected."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import betaincinv

from goldspan.crowd import Crowd
from goldspan.crowd.model import Answers, list_array
from goldspan.spans import Codec
from goldspan.workers import Reliability, measure_reliability, select_workers
from pairs import Row, compare
from simulated import Labels, single_labels

N_ITEMS, N_WORKERS, PER_ITEM, N_CLASSES = 1_000_000, 10_000, 5, 4
N_POOL, BUDGET = 1_000_000, 1000
PROMISE, SELECTED = 3.0, 2.0
"""Seconds."""


def run() -> list[Row]:
    """Run all of them."""
    return [reliability(), selection()]


def reliability() -> Row:
    """Answers, right ones, their share, its interval and base rates of every worker."""
    row = compare(
        f"reliability of {N_WORKERS:,} workers, {N_ITEMS * PER_ITEM:,} answers (pandas groupby)",
        data,
        ours,
        peer,
        rounds=3,
        note=f"promised: under {PROMISE:g} s; ours also fits the pool's prior",
    )
    return Row(**{**row.__dict__, "wanted": f"< {PROMISE:g} s", "ok": row.ours < PROMISE})


def selection() -> Row:
    """Read the test results of a million workers, rank them, and choose a team."""
    row = compare(
        f"{N_POOL:,} tested workers ranked and selected (NumPy by hand, sorting alone)",
        results,
        selected,
        sorted_by_hand,
        rounds=5,
        note=f"promised: under {SELECTED:g} s, with the pool's prior and everybody's score",
    )
    return Row(**{**row.__dict__, "wanted": f"< {SELECTED:g} s", "ok": row.ours < SELECTED})


@cache
def results() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw right answers and questions of a million workers."""
    rng = np.random.default_rng(1)
    asked = rng.choice([2, 5, 20, 60], N_POOL)
    return rng.binomial(asked, rng.beta(2.3, 2, N_POOL)), asked


def selected(made: tuple[NDArray[np.int64], NDArray[np.int64]]) -> Any:
    """Choose with goldspan, from the counts."""
    return select_workers(Reliability.from_counts(*made), budget=BUDGET)


def sorted_by_hand(made: tuple[NDArray[np.int64], NDArray[np.int64]]) -> Any:
    """Score, sort and take the best prefix, without checks, prior, ties or names."""
    right, asked = made
    score = (2 * (right + 1) / (asked + 2) - 1) ** 2
    order = np.argsort(-score)[:BUDGET]
    value = np.cumsum(score[order]) / np.sqrt(np.arange(1, BUDGET + 1))
    return order[: int(value.argmax()) + 1]


@cache
def data() -> tuple[Crowd, pd.DataFrame]:
    """Make the same answers as a crowd and as a DataFrame whose ids are numbers already."""
    made = single_labels(N_ITEMS, N_WORKERS, per_task=PER_ITEM, n_classes=N_CLASSES)
    frame = pd.DataFrame(
        {
            "item": made.task,
            "worker": made.worker,
            "label": made.label,
            "gold": made.truth[made.task],
        }
    )
    return _crowd(made), frame


def _crowd(made: Labels) -> Crowd:
    n = len(made.label)
    ids = pa.array(np.arange(N_ITEMS)).cast(pa.string())
    answers = Answers(
        made.task.astype(np.int32),
        made.worker.astype(np.int32),
        np.arange(n + 1),
        made.label.astype(np.int16),
        np.zeros(n, np.int16),
    )
    return Crowd(
        item_ids=ids,
        tokens=list_array(ids, np.arange(N_ITEMS + 1)),
        worker_ids=pa.array(np.arange(N_WORKERS)).cast(pa.string()),
        tagset=Codec.from_types([str(n) for n in range(N_CLASSES)], "PLAIN"),
        answers=answers,
        gold=made.truth.astype(np.int16),
    )


def ours(made: tuple[Crowd, pd.DataFrame]) -> Any:
    """Sum up with goldspan; what a crowd caches is not used."""
    crowd = made[0].with_gold(made[0].gold)
    cell = crowd.worker_of.astype(np.int64) * N_CLASSES + crowd.latest.codes
    counts = np.bincount(cell, minlength=N_WORKERS * N_CLASSES).reshape(-1, N_CLASSES)
    return measure_reliability(crowd).to_arrow(), counts / counts.sum(axis=1, keepdims=True)


def peer(made: tuple[Crowd, pd.DataFrame]) -> Any:
    """Sum up with pandas, with the interval of a fixed prior."""
    frame = made[1]
    judged = frame.assign(right=frame["label"] == frame["gold"])
    found = judged.groupby("worker")["right"].agg(["size", "sum", "mean"])
    a, b = 1 + found["sum"], 1 + found["size"] - found["sum"]
    found["low"], found["high"] = betaincinv(a, b, 0.025), betaincinv(a, b, 0.975)
    rates = frame.groupby("worker")["label"].value_counts(normalize=True)
    return found, rates.unstack(fill_value=0)  # noqa: PD010 - pivot_table is slower
