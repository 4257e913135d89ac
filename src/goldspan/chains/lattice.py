"""The lattice of all paths through some items, and its steps by what they do to spans."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.spans.encoding import ENDED, STARTS

Floats = NDArray[np.float64]


class Chain(NamedTuple):
    """Scores of steps.

    Attributes:
        start: float64 [J], 0 where forbidden.
        step: float64 [J, J], likewise.
        end: float64 [J], likewise.
    """

    start: Floats
    step: Floats
    end: Floats


class Lattice(NamedTuple):
    """All paths through some items.

    Attributes:
        offsets: int64 [n_items + 1], from 0.
        active: bool [n_items]; of others nothing is known.
        evidence: float64 [n_tokens, J], ln e_t.
        forward: float64 [n_tokens, J], ln f_t.
        backward: float64 [n_tokens, J], ln b_t.
        log_z: float64 [n_items], -inf where there is no path.
        step: float64 [J, J].
        log_start: float64 [J].
        log_step: float64 [J, J].
        log_end: float64 [J].
        once: Whether this is done once and not again and again: NumPy then does few tokens.
    """

    offsets: NDArray[np.int64]
    active: NDArray[np.bool_]
    evidence: Floats
    forward: Floats
    backward: Floats
    log_z: Floats
    step: Floats
    log_start: Floats
    log_step: Floats
    log_end: Floats
    once: bool = True


class Spans(NamedTuple):
    """The steps of a lattice by what they do to spans.

    Attributes:
        kind: int16 [J], type of every tag, -1 for `O`.
        begin: float64 [J], ln, of tags that start a span at an item's first token.
        enter: float64 [J, J], ln, of steps that start a span.
        stay: float64 [J, J], ln, of steps that go on with it.
        leave: float64 [J, J], ln, of steps that end it.
        end: float64 [J], ln, of the end of an item.
    """

    kind: NDArray[np.int16]
    begin: Floats
    enter: Floats
    stay: Floats
    leave: Floats
    end: Floats

    @classmethod
    def of(cls, lattice: Lattice, pairs: NDArray[np.uint8], kind: NDArray[np.int16]) -> Spans:
        """Sort the steps of a lattice by the pair table, uint8 [J + 1, J + 1]."""
        starts, ends = (pairs & STARTS) > 0, (pairs & ENDED) > 0
        goes_on = ~starts[1:, 1:] & (kind[:, None] == kind)
        return cls(
            kind,
            np.where(starts[0, 1:], lattice.log_start, -np.inf),
            np.where(starts[1:, 1:], lattice.log_step, -np.inf),
            np.where(goes_on, lattice.log_step, -np.inf),
            np.where(ends[1:, 1:], lattice.log_step, -np.inf),
            lattice.log_end,
        )
