"""Drawing labels one after the other, each given the one before."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan._kernel import kernel


@kernel
def draw_labels(
    offsets: NDArray[np.int64],
    truth: NDArray[np.int16],
    uniform: NDArray[np.float64],
    cumulative: NDArray[np.float64],
    begin: int,
    codes: NDArray[np.int16],
) -> None:
    """Draw a label for every token by the inverse of its distribution.

    Args:
        offsets: int64 [n_items + 1].
        truth: int16 [n_tokens].
        uniform: float64 [n_tokens] in [0, 1).
        cumulative: float64 [n_previous, J, J], P(label <= i) by previous label and truth.
        begin: The previous label at an item's start; 0 without memory.
        codes: int16 [n_tokens], written.
    """
    n_previous, _, n_labels = cumulative.shape
    for item in range(len(offsets) - 1):
        previous = begin
        for token in range(offsets[item], offsets[item + 1]):
            row = cumulative[previous, truth[token]]
            given = 0
            while given < n_labels - 1 and uniform[token] >= row[given]:
                given += 1
            codes[token] = given
            if n_previous > 1:
                previous = given
