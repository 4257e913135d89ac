"""Hiring: summing up what five million answers say about ten thousand workers, against pandas."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.special import betaincinv

from karat.crowd import Crowd
from karat.crowd.model import Answers, list_array
from karat.hiring import base_rates, measure_reliability
from karat.spans import Codec
from pairs import Row, compare
from simulated import Labels, single_labels

N_ITEMS, N_WORKERS, PER_ITEM, N_CLASSES = 1_000_000, 10_000, 5, 4
PROMISE = 3.0
"""Seconds."""


def run() -> list[Row]:
    """Run all of them."""
    return [reliability()]


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
    """Sum up with karat; what a crowd caches is not used."""
    crowd = made[0].with_gold(made[0].gold)
    return measure_reliability(crowd).to_arrow(), base_rates(crowd)


def peer(made: tuple[Crowd, pd.DataFrame]) -> Any:
    """Sum up with pandas, with the interval of a fixed prior."""
    frame = made[1]
    judged = frame.assign(right=frame["label"] == frame["gold"])
    found = judged.groupby("worker")["right"].agg(["size", "sum", "mean"])
    a, b = 1 + found["sum"], 1 + found["size"] - found["sum"]
    found["low"], found["high"] = betaincinv(a, b, 0.025), betaincinv(a, b, 0.975)
    rates = frame.groupby("worker")["label"].value_counts(normalize=True)
    return found, rates.unstack(fill_value=0)  # noqa: PD010 - pivot_table is slower
