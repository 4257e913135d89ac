"""How good a worker is against an estimated truth (paper 000, section 3.1: F1, or any loss)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregate.crf.lessons import Floats
from goldspan.crowd import Crowd
from goldspan.crowd.measures import token_accuracy, worker_rates
from goldspan.errors import InputError, UnknownNameError

Measure = Callable[[Crowd, NDArray[np.int16]], Any]
MEASURES = ("f1", "accuracy", "posterior")


def measured(crowd: Crowd, codes: NDArray[np.int16], measure: str | Measure) -> Floats:
    """Measure all workers, float64 [n_workers]; NaN where nothing can be said.

    Args:
        crowd: Who gave what.
        codes: int16 [n_tokens], the truth, -1 open.
        measure: "accuracy" of tokens, a function of crowd and codes, or else F1 of spans – of
            PLAIN tags, which have none, the accuracy.
    """
    if not isinstance(measure, str):
        return _checked(measure(crowd, codes), crowd.n_workers)
    if measure == "accuracy" or crowd.tagset.rules.is_plain:
        return token_accuracy(crowd, codes)
    rates = worker_rates(crowd, codes)
    return np.array([r.f1 if r.n_true + r.n_predicted else np.nan for r in rates])


def check_measure(measure: Any) -> None:
    """Refuse what is no measure.

    Raises:
        UnknownNameError: There is none of this name.
        InputError: It is neither a name nor a function.
    """
    if isinstance(measure, str):
        if measure not in MEASURES:
            raise UnknownNameError("reliability measure", measure, (*MEASURES, "a function"))
    elif not callable(measure):
        raise InputError(f"reliability must be a name or a function, not {measure!r}")


def _checked(values: Any, n_workers: int) -> Floats:
    """Take what a function measured.

    Raises:
        InputError: It is not a number of at least 0, or NaN, for every worker.
    """
    found = np.asarray(values, np.float64)
    if found.shape != (n_workers,) or (found < 0).any() or np.isinf(found).any():
        raise InputError(
            f"reliability: the function must give {n_workers} finite numbers of at least 0 "
            "(NaN where it cannot tell), one per worker"
        )
    return found
