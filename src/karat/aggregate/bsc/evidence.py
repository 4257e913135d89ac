"""A crowd's answers as the engine reads them: for every token the rows of the labels it got.

Each answered token becomes one int32, the row of (worker, previous label, label) in the compact
table of `karat.workermodels.rows`; together with the bounds of the tokens that is all an E-step
needs: 4 bytes per answered token and 8 per token.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from karat.aggregate.bsc.kernels.layout import count_rows, fill_rows
from karat.crowd import Crowd
from karat.errors import InputError, UnknownNameError
from karat.workermodels import Rows

PREVIOUS = ("outside", "own")
"""What stands for a previous label that does not exist: `O`, or a state of its own."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Labels by token.

    Attributes:
        offsets: int64 [n_items + 1], tokens of the items.
        bounds: int64 [n_tokens + 1]; token t got the labels row[bounds[t]:bounds[t + 1]].
        row: int32 [n_labels], rows of the table, of a token in the order of workers.
        active: bool [n_items], whether anything is known of the item: an answer or gold.
        gold: int16 [n_tokens], known truth, -1 unknown; empty if nothing is known.
        unary: float64 [n_tokens, J], log evidence from elsewhere; empty if there is none.
    """

    offsets: NDArray[np.int64]
    bounds: NDArray[np.int64]
    row: NDArray[np.int32]
    active: NDArray[np.bool_]
    gold: NDArray[np.int16]
    unary: NDArray[np.float64]

    @property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return len(self.bounds) - 1

    def items(self, first: int, last: int) -> Evidence:
        """Give a slice of items as views; offsets and bounds keep their origin."""
        origin = int(self.offsets[0])
        tokens = slice(int(self.offsets[first]) - origin, int(self.offsets[last]) - origin)
        bounds = self.bounds[tokens.start : tokens.stop + 1]
        return Evidence(
            self.offsets[first : last + 1],
            bounds,
            self.row[bounds[0] - self.bounds[0] : bounds[-1] - self.bounds[0]],
            self.active[first:last],
            self.gold[tokens] if len(self.gold) else self.gold,
            self.unary[tokens] if len(self.unary) else self.unary,
        )


def lay_out(
    crowd: Crowd,
    *,
    has_memory: bool,
    start: str = "outside",
    skipped: str = "outside",
    words: NDArray[np.int32] | None = None,
    gold: NDArray[np.int16] | None = None,
    unary: NDArray[np.float64] | None = None,
) -> tuple[Evidence, Rows]:
    """Number the rows of a crowd and sort its labels by token.

    Args:
        crowd: Items, workers and answers; of repeated answers the latest.
        has_memory: Whether rows hold the previous label.
        start: "outside" or "own": the previous label at an item's first token.
        skipped: "outside" or "own": the previous label after a token that the worker skipped.
        words: int32 [n_tokens], word ids; they become rows of their own after the workers' rows,
            one more entry for every token. None without text.
        gold: int16 [n_tokens], known truth, -1 unknown.
        unary: float64 [n_tokens, J], log evidence from elsewhere.

    Raises:
        UnknownNameError: `start` or `skipped` is neither "outside" nor "own".
    """
    for what, value in (("start", start), ("skipped", skipped)):
        if value not in PREVIOUS:
            raise UnknownNameError(f"previous label ({what})", value, PREVIOUS)
    answers, view, n_labels = crowd.latest, crowd.by_worker, len(crowd.tagset.tags)
    begin, after, n_previous = _previous_states(crowd, has_memory, start, skipped)
    per_token = np.zeros(crowd.n_tokens + 1, np.int64)
    arrays = (view.order, view.bounds, answers.item, answers.offset, answers.codes, crowd.offsets)
    n_rows = count_rows(*arrays, has_memory, begin, after, n_previous, n_labels, per_token)
    if n_rows >= np.iinfo(np.int32).max:  # pragma: no cover - needs 2e9 distinct rows
        raise InputError(f"{n_rows} pairs of worker and label are too many")
    if words is not None:
        per_token[1:] += 1
    bounds = np.cumsum(per_token)
    row = np.empty(int(bounds[-1]), np.int32)
    place = bounds[:-1].copy()
    worker = np.empty(n_rows, np.int32)
    previous, label = np.empty(n_rows, np.int16), np.empty(n_rows, np.int16)
    fill_rows(
        *arrays, has_memory, begin, after, n_previous, n_labels, place, row, worker, previous, label
    )
    if words is not None:
        row[place] = n_rows + words
    active = np.diff(view_bounds(crowd)) > 0
    known = np.zeros(0, np.int16)
    if gold is not None and (gold >= 0).any():
        known = np.ascontiguousarray(gold, np.int16)
        active |= _any_by_item(known >= 0, crowd.offsets)
    extra = np.zeros((0, n_labels)) if unary is None else np.ascontiguousarray(unary, np.float64)
    rows = Rows(worker, previous, label, crowd.n_workers, n_previous, n_labels)
    return Evidence(crowd.offsets, bounds, row, active, known, extra), rows


def previous_mask(crowd: Crowd, n_previous: int) -> NDArray[np.bool_]:
    """Say which label may follow which previous one, bool [n_previous, J].

    States of their own (item start, after a skip) allow what may begin an item.
    """
    codec = crowd.tagset
    if n_previous == 1:
        return np.ones((1, len(codec.tags)), np.bool_)
    own = np.tile(codec.start_mask, (n_previous - len(codec.tags), 1))
    return np.vstack([codec.mask, own])


def view_bounds(crowd: Crowd) -> NDArray[np.int64]:
    """Count given labels up to every item, int64 [n_items + 1]; skipped tokens do not count."""
    answers = crowd.latest
    given = (
        np.add.reduceat(np.append(answers.codes >= 0, False).astype(np.int64), answers.offset[:-1])
        if len(answers)
        else np.zeros(0, np.int64)
    )
    given[answers.lengths == 0] = 0
    counts = np.bincount(answers.item, given, crowd.n_items).astype(np.int64)
    return np.concatenate([[0], np.cumsum(counts)])


def _previous_states(
    crowd: Crowd, has_memory: bool, start: str, skipped: str
) -> tuple[int, int, int]:
    """Give the state at an item's start, the state after a skip, and the number of states."""
    if not has_memory:
        return 0, 0, 1
    n_labels, outside = len(crowd.tagset.tags), crowd.tagset.outside
    states = n_labels
    found = []
    for rule in (start, skipped):
        if rule == "outside" and outside >= 0:
            found.append(outside)
        else:
            found.append(states)
            states += 1
    return found[0], found[1], states


def _any_by_item(flags: NDArray[np.bool_], offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    totals = np.concatenate([[0], np.cumsum(flags)])
    return np.asarray(totals[offsets[1:]] > totals[offsets[:-1]])
