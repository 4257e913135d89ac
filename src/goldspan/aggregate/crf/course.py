"""What CRF-MA believed of the workers on its way, and with what belief it may begin."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.aggregate.crf.lessons import Floats
from goldspan.aggregate.crf.mixture import from_measure
from goldspan.crowd import Crowd


@dataclass(frozen=True, eq=False)
class Course:
    """What CRF-MA believed of the workers, round by round; `Consensus.memory`.

    Attributes:
        worker_ids: Arrow string array [n_workers].
        begin: float64 [n_workers], reliabilities before the first round.
        gamma: float64 [n_rounds, n_workers], the weights of workers that taught a round's CRF.
        pi: float64 [n_rounds, n_workers], reliabilities after it.
        expectation: float64 [n_rounds], eq. 11 after it, log-priors added.
        objective: float64 [n_rounds], eq. 9 and log-priors.
    """

    worker_ids: pa.Array
    begin: Floats
    gamma: Floats
    pi: Floats
    expectation: Floats
    objective: Floats


def draws(ids: Sequence[str], seed: int | None) -> Floats:
    """Draw a number in (0, 1) for every worker, by id: the order of workers does not matter."""
    own = np.random.SeedSequence().entropy if seed is None else seed
    digests = [hashlib.blake2b(f"{own} crf-ma {name}".encode(), digest_size=8) for name in ids]
    return np.array([(int.from_bytes(d.digest(), "big") + 1) / 2**64 for d in digests])


def carried(course: Course, crowd: Crowd, kept: NDArray[np.bool_]) -> Floats:
    """Take over the reliabilities of an earlier result; new workers have the mean one."""
    old = dict(zip(course.worker_ids.to_pylist(), course.pi[-1].tolist(), strict=True))
    found = [old.get(name, np.nan) for name in crowd.worker_ids.to_pylist()]
    return from_measure(np.array(found), 1.0, np.ones(len(found)), 0.0, kept)
