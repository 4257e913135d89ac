"""The lattice of all paths through some items, and its steps by what they do to spans."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.spans.encoding import ENDED, STARTS

Floats = NDArray[np.float64]


class Chain(NamedTuple):
    """Scores of steps."""

    start: Floats  # [J], 0 where forbidden
    step: Floats  # [J, J], likewise
    end: Floats  # [J], likewise


class Lattice(NamedTuple):
    """All paths through some items."""

    offsets: NDArray[np.int64]  # [n_items + 1], from 0
    active: NDArray[np.bool_]  # [n_items]; of others nothing is known
    evidence: Floats  # [n_tokens, J], ln e_t
    forward: Floats  # [n_tokens, J], ln f_t
    backward: Floats  # [n_tokens, J], ln b_t
    log_z: Floats  # [n_items], -inf where there is no path
    step: Floats  # [J, J]
    log_start: Floats  # [J]
    log_step: Floats  # [J, J]
    log_end: Floats  # [J]
    once: bool = True  # Whether this is done once and not again and again


class Spans(NamedTuple):
    """The steps of a lattice by what they do to spans."""

    kind: NDArray[np.int16]  # [J], type of every tag, -1 for `O`
    begin: Floats  # [J], ln, of tags that start a span at an item's first token
    enter: Floats  # [J, J], ln, of steps that start a span
    stay: Floats  # [J, J], ln, of steps that go on with it
    leave: Floats  # [J, J], ln, of steps that end it
    end: Floats  # [J], ln, of the end of an item

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
