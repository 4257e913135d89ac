"""Whether the parameters of the engine's aggregators make sense."""

from __future__ import annotations

from typing import Any

from goldspan.aggregate.bsc.engine import Stopping
from goldspan.aggregate.bsc.evidence import PREVIOUS
from goldspan.aggregate.bsc.priors import PRIORS, trusted_ids
from goldspan.errors import InputError, UnknownNameError
from goldspan.tagger.parameters import MOST, check_number, check_whole
from goldspan.workermodels.prior import LEAST, LEAST_FORBIDDEN

DECODERS = ("mbr", "viterbi")
LEAST_VALUES = {
    "alpha0": LEAST, "epsilon0": 0.0, "forbidden": LEAST_FORBIDDEN, "truth_prior": 1e-3,
    "word_prior": 1e-3, "tol": 0.0, "c2": 0.0, "text_power": 0.0,
}  # fmt: skip
"""The least value of every parameter that is a number."""
MOST_VALUES = {"text_power": 100.0}


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
        check_whole(name, getattr(m, name), fewest)
    for name, least in LEAST_VALUES.items():
        check_number(name, getattr(m, name), least, MOST_VALUES.get(name, MOST))
    if m.dependence != "auto":
        check_number('dependence, if it is not "auto",', m.dependence, 0, 1)


def _check_counts(m: Any) -> None:
    Stopping(m.tol, m.max_iter)
    for name in ("max_iter", "n_starts"):
        check_whole(name, getattr(m, name), 1)
    if m.random_state is not None:
        check_whole("random_state, if it is not None,", m.random_state, 0)


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
