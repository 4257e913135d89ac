"""Reliabilities that are given: workers found by id, unknown ones with the mean of the prior."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.crowd import Crowd
from goldspan.errors import InputError


def given_shares(reliability: Any, crowd: Crowd, prior: tuple[float, float]) -> NDArray[np.float64]:
    """Give the probability of being right of every worker of a crowd.

    Args:
        reliability: With `worker_ids`, `mean` and `prior`, such as `goldspan.hiring.Reliability`;
        or
            a mapping from ids to shares.
        crowd: The crowd.
        prior: Pseudo-counts; their mean is for workers who are not in a mapping.

    Returns:
        float64 [n_workers]; NaN for unknown workers if the prior is (0, 0).

    Raises:
        InputError: A share does not lie in 0 … 1.
    """
    if isinstance(reliability, Mapping):
        ids = pa.array([str(name) for name in reliability], pa.string())
        shares = np.array(list(reliability.values()), np.float64)
    else:
        ids, shares, prior = reliability.worker_ids, reliability.mean, reliability.prior
    bad = np.flatnonzero(~((shares >= 0) & (shares <= 1)))
    if len(bad):
        at = int(bad[0])
        raise InputError(
            f"reliability: worker {ids[at].as_py()} has {shares[at]}; a share lies in 0 … 1"
        )
    place = pc.fill_null(pc.index_in(crowd.worker_ids, value_set=ids), len(shares))
    weight = prior[0] + prior[1]
    unknown = prior[0] / weight if weight > 0 else np.nan
    found = np.append(shares, unknown)[place.to_numpy(zero_copy_only=False)]
    return np.asarray(found, np.float64)
