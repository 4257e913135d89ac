"""Whether the parameters of the engine's aggregators make sense."""

from __future__ import annotations

from typing import Any

import numpy as np

from karat.aggregate.bsc.engine import Stopping
from karat.aggregate.bsc.evidence import PREVIOUS
from karat.aggregate.bsc.priors import PRIORS, trusted_ids
from karat.errors import InputError, UnknownNameError
from karat.workermodels.prior import LEAST, LEAST_FORBIDDEN

DECODERS = ("mbr", "viterbi")
LEAST_VALUES = {
    "alpha0": LEAST, "epsilon0": 0.0, "forbidden": LEAST_FORBIDDEN, "truth_prior": 1e-3,
    "word_prior": 1e-3, "tol": 0.0, "c2": 0.0, "text_power": 0.0,
}  # fmt: skip
"""The least value of every parameter that is a number."""
MOST_VALUES = {"text_power": 100.0}
LARGEST = 1e12
"""Beyond it nothing is learned, and numbers overflow."""


def check(m: Any) -> None:
    """Refuse parameters of a method that make no sense.

    Raises:
        InputError: One of them is wrong; the message says what is allowed.
    """
    _check_names(m)
    _check_numbers(m)
    _check_counts(m)
    _check_prior(m)


def _check_names(m: Any) -> None:
    for what, name, allowed in (
        ("prior", m.prior, PRIORS),
        ("decoder", m.decode, DECODERS),
        ("previous label (at_start)", m.at_start, PREVIOUS),
        ("previous label (after_skip)", m.after_skip, PREVIOUS),
    ):
        if name not in allowed:
            raise UnknownNameError(what, name, allowed)


def _check_numbers(m: Any) -> None:
    for name, fewest in (("folds", 2), ("rounds", 1), ("min_count", 1)):
        number = getattr(m, name)
        if not _is_whole(number) or number < fewest:
            raise InputError(f"{name} must be a whole number of at least {fewest}, not {number!r}")
    for name, least in LEAST_VALUES.items():
        value = getattr(m, name)
        most = MOST_VALUES.get(name, LARGEST)
        if not _is_number(value) or not least <= value <= most:
            raise InputError(
                f"{name} must be a number of at least {least} and at most {most:g}, not {value!r}"
            )
    if m.dependence != "auto" and not (_is_number(m.dependence) and 0 <= m.dependence <= 1):
        raise InputError(f'dependence must be "auto" or between 0 and 1, not {m.dependence!r}')


def _check_counts(m: Any) -> None:
    Stopping(m.tol, m.max_iter)
    for name in ("max_iter", "n_starts"):
        if isinstance(getattr(m, name), bool):
            raise InputError(f"{name} must be a whole number, not {getattr(m, name)}")
    if not _is_whole(m.n_starts) or m.n_starts < 1:
        raise InputError(f"n_starts must be a whole number of at least 1, not {m.n_starts!r}")
    seed = m.random_state
    if seed is not None and (not isinstance(seed, int | np.integer) or seed < 0):
        raise InputError(f"random_state must be a whole number or None, not {seed!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    """Say whether a value is a whole number; True and False are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _check_prior(m: Any) -> None:
    if m.prior == "population" and m.worker_model not in {"cm", "seq"}:
        raise InputError(
            f"{m.name}: prior='population' needs confusion matrices: ds, ibcc, bsc-cm or bsc-seq"
        )
    if m.prior == "auto" and m.is_point:
        raise InputError(
            f"{m.name}: prior='auto' compares evidence bounds, and EM has none: "
            "use ibcc or a bsc method"
        )
    trusted_ids(m.trusted)
