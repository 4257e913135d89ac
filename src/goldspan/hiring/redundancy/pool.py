"""Who can be asked, at what price, how often, and what they are expected to answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.hiring.beta import Reliability
from goldspan.hiring.redundancy.gain import Floats, Habits, one_coin
from goldspan.hiring.redundancy.rules import check_whole
from goldspan.money import to_micro

ANY_NUMBER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Pool:
    """Workers who can be asked.

    Attributes:
        worker_ids: Arrow string array [n].
        tables: float64 [n, J, J], what each is expected to answer; the mean worker's table for
            those who are not known.
        place: int64 [n_workers of the crowd], index among the pool, -1 who is not in it.
        prices: int64 [n], millionths of the unit, or None.
        left: int64 [n], answers that may be asked of each.
    """

    worker_ids: pa.Array
    tables: Floats
    place: NDArray[np.int64]
    prices: NDArray[np.int64] | None
    left: NDArray[np.int64]

    def __len__(self) -> int:
        """Count the workers."""
        return len(self.worker_ids)


def make_pool(
    crowd: Crowd,
    known: Crowd,
    habits: Habits,
    *,
    workers: Sequence[str] | Reliability | None = None,
    prices: Mapping[str, Any] | Any = None,
    per_worker_limit: int | None = None,
) -> Pool:
    """Put together who can be asked.

    Args:
        crowd: Who answered so far.
        known: The crowd that the habits were learned from.
        habits: Of its workers.
        workers: Ids, also of newcomers; or test results, whose workers are asked and taken to be
            right as often as they were; by default the crowd's workers.
        prices: Money per answer by worker id, or one amount for all, or None.
        per_worker_limit: Most answers that may be asked of one worker.

    Raises:
        InputError: Nobody can be asked, an id occurs twice, prices do not fit the workers, or the
            limit is no whole number.
    """
    ids = _ids(crowd, workers)
    place = {name: i for i, name in enumerate(ids)}
    if per_worker_limit is not None:
        check_whole(per_worker_limit, "per_worker_limit")
    tables = np.repeat(habits.mean[None], len(ids), axis=0)
    learned = [place.get(name, -1) for name in known.worker_ids.to_pylist()]
    for source, target in enumerate(learned):
        if target >= 0:
            tables[target] = habits.tables[source]
    if isinstance(workers, Reliability):
        for i, chance in enumerate(workers.mean.tolist()):
            tables[i] = one_coin(chance, len(habits.shares))
    limit = ANY_NUMBER if per_worker_limit is None else per_worker_limit
    return Pool(
        pa.array(ids, pa.string()),
        tables,
        np.array([place.get(name, -1) for name in crowd.worker_ids.to_pylist()], np.int64),
        None if prices is None else read_prices(prices, ids),
        np.full(len(ids), limit, np.int64),
    )


def read_prices(prices: Mapping[str, Any] | Any, ids: Sequence[str]) -> NDArray[np.int64]:
    """Give the price of every worker in millionths, int64 [n].

    Args:
        prices: Money per answer by worker id, or one amount for all. Other workers may have a
            price too: one table serves several crowds.
        ids: The workers.

    Raises:
        InputError: A price is no amount of at least 0, or is missing.

    >>> read_prices({"ann": "0.05", "bob": 0, "else": 1}, ["ann", "bob"]).tolist()
    [50000, 0]
    """
    if not isinstance(prices, Mapping):
        return np.full(len(ids), to_micro(prices, "the price of an answer"), np.int64)
    missing = [name for name in ids if name not in prices]
    if missing:
        raise InputError(
            f"no price for {_some(missing)}; give a price for every worker who can be asked, or "
            "one for all"
        )
    return np.array([to_micro(prices[name], f"the price of {name}") for name in ids], np.int64)


def _ids(crowd: Crowd, workers: Sequence[str] | Reliability | None) -> list[str]:
    if workers is None:
        return list(crowd.worker_ids.to_pylist())
    if isinstance(workers, Reliability):
        return list(workers.worker_ids.to_pylist())
    ids = [workers] if isinstance(workers, str) else [str(name) for name in workers]
    if not ids:
        raise InputError("workers: there is nobody who can be asked")
    if len(set(ids)) < len(ids):
        twice = sorted({name for name in ids if ids.count(name) > 1})
        raise InputError(f"workers: {', '.join(twice[:5])} stands there more than once")
    return ids


def _some(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:5]))
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{len(names)} worker{'s' * (len(names) > 1)} ({shown}{more})"
