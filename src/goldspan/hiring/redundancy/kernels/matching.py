"""Items choose workers, one after the other."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from goldspan._kernel import kernel


@kernel
def match(
    items: NDArray[Any],
    values: NDArray[Any],
    candidates: NDArray[Any],
    bounds: NDArray[Any],
    asked: NDArray[Any],
    left: NDArray[Any],
    chosen: NDArray[Any],
) -> None:
    """Let every item take the best candidate who has not answered it and has answers left.

    Of equal ones it takes the one with most answers left, then the first.

    Args:
        items: int64 [n], in the order in which they choose.
        values: float64 [n, n_candidates].
        candidates: int64 [n_candidates], workers.
        bounds: int64 [n_items + 1]; item i was answered by asked[bounds[i]:bounds[i + 1]].
        asked: int64 [n_answers], workers.
        left: int64 [n_workers], answers that may still be asked of them; counted down.
        chosen: int64 [n]; written: index among the candidates, -1 nobody.
    """
    for row in range(len(items)):
        best = -1
        for c in range(len(candidates)):
            worker = candidates[c]
            if left[worker] <= 0:
                continue
            if best >= 0:
                other = candidates[best]
                if values[row, c] < values[row, best]:
                    continue
                if values[row, c] == values[row, best] and left[worker] <= left[other]:
                    continue
            known = False
            for at in range(bounds[items[row]], bounds[items[row] + 1]):
                if asked[at] == worker:
                    known = True
                    break
            if not known:
                best = c
        chosen[row] = best
        if best >= 0:
            left[candidates[best]] -= 1
