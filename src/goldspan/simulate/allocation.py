"""Who answers what: every item exactly k different workers, the workloads as wished.

Worker i shall answer the share pi_i = min(1, c w_i) of all items, with c such that the shares sum
up to k. Every item draws its k workers by systematic sampling in a random order of the workers
(Madow 1949; Hartley and Rao 1962): of any k different ones, and worker i with probability exactly
pi_i. Items draw for themselves, by the hash of their id, so that other items do not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError, UnknownNameError
from goldspan.simulate.draws import Draws, Floats, Keys

Workload = str | Mapping[str, float] | Sequence[float]
WORKLOADS = ("equal", "zipf")
_SURE = 1 - 1e-9
_BLOCK = 1 << 20
"""Numbers of (item, worker) that are in memory at once."""


def allocate(
    item_keys: Keys, workers: Sequence[str], per_item: int, workload: Workload, seed: int
) -> NDArray[np.bool_]:
    """Choose the workers of every item.

    Args:
        item_keys: uint64 [n_items].
        workers: Ids.
        per_item: k, how many workers every item has.
        workload: "equal", "zipf" (the r-th worker wants 1/r of the first one's work), or weights by
            worker id or in the order of the workers.
        seed: Of the draws.

    Returns:
        bool [n_items, n_workers], k in every row.

    Raises:
        InputError: There are not k workers, or the weights are none.
        UnknownNameError: There is no such workload.
    """
    weights = weights_of(workload, workers)
    n_able = int((weights > 0).sum())
    if isinstance(per_item, bool) or not 1 <= per_item <= n_able:
        raise InputError(
            f"per_item must lie in 1 … {n_able}, the number of workers who want work, not "
            f"{per_item}: every item is answered by that many different workers"
        )
    wanted = shares(weights, per_item)
    size = max(1, _BLOCK // len(workers))
    blocks = [item_keys[a : a + size] for a in range(0, len(item_keys), size)]
    chosen = [_choose(keys, workers, wanted, seed) for keys in blocks]
    return np.concatenate([np.zeros((0, len(workers)), np.bool_), *chosen])


def weights_of(workload: Workload, workers: Sequence[str]) -> Floats:
    """Give how much work every worker wants, float64 [n_workers], in any unit.

    Raises:
        InputError: The weights do not fit the workers, or are none.
        UnknownNameError: There is no such workload or worker.
    """
    if isinstance(workload, str):
        if workload not in WORKLOADS:
            raise UnknownNameError("workload", workload, WORKLOADS, "or give weights")
        rank = np.arange(1, len(workers) + 1)
        return np.ones(len(workers)) if workload == "equal" else 1 / rank
    if isinstance(workload, Mapping):
        for name in workload:
            if name not in workers:
                raise UnknownNameError("worker in workload", name, workers)
        workload = [workload.get(name, 1.0) for name in workers]
    weights = np.asarray(workload, np.float64)
    if weights.shape != (len(workers),):
        raise InputError(f"workload must be {len(workers)} numbers, one per worker")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InputError(f"workload must be numbers of at least 0, not {workload}")
    if not weights.any():
        raise InputError("every workload is 0: at least one worker must want work")
    return weights


def shares(weights: Floats, per_item: int) -> Floats:
    """Give the share of items that every worker answers, float64 [n_workers], summing up to k.

    Who would have to answer more than all items answers all, and leaves the rest to the others.

    >>> shares(np.array([6.0, 1.0, 1.0]), 2).tolist()
    [1.0, 0.5, 0.5]
    """
    found = np.zeros(len(weights))
    open_ = weights > 0
    left = float(per_item)
    while open_.any():
        found[open_] = left * weights[open_] / weights[open_].sum()
        full = open_ & (found >= _SURE)
        if not full.any():
            break
        found[full] = 1.0
        left -= full.sum()
        open_ &= ~full
    return found


def _choose(
    item_keys: Keys, workers: Sequence[str], wanted: Floats, seed: int
) -> NDArray[np.bool_]:
    """Choose for a block of items."""
    n_items = len(item_keys)
    single = np.arange(n_items + 1)
    chosen = np.repeat((wanted == 1.0)[None], n_items, axis=0)
    drawn = np.flatnonzero((wanted > 0) & (wanted < 1.0))
    if not len(drawn):
        return chosen
    k = round(float(wanted[drawn].sum()))
    of_worker = [
        Draws(seed, workers[w], item_keys, single).per_item("turn") for w in drawn.tolist()
    ]
    order = np.argsort(np.stack(of_worker, axis=1), axis=1, kind="stable")
    reach = np.minimum(np.cumsum(wanted[drawn][order], axis=1), k)
    reach[:, -1] = k
    start = Draws(seed, "", item_keys, single).per_item("start")[:, None]
    passed = np.ceil(reach - start)
    hit = np.diff(passed, axis=1, prepend=0.0) > 0
    rows = np.broadcast_to(np.arange(n_items)[:, None], order.shape)
    chosen[rows[hit], drawn[order[hit]]] = True
    return chosen
