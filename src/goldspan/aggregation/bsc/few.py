"""What the kernels of the layout and of votes compute, for few labels, in NumPy.

Nothing need be compiled for them, which takes longer than all of their work.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation.workermodels import Rows
from goldspan.crowd import Crowd

Floats = NDArray[np.float64]
Indexes = NDArray[np.int64]

FEW_LABELS = 1 << 15
"""Labels for which NumPy takes some milliseconds more than the kernels."""


def rows_by_worker(
    crowd: Crowd, has_memory: bool, states: tuple[int, int, int], words: NDArray[np.int32] | None
) -> tuple[Indexes, NDArray[np.int32], Rows]:
    """Number (worker, previous label, label) and sort them by token, as `count_rows` and the next.

    Where:
        states: The state at an item's start, that after a skip, and the number of states.
        words: int32 [n_tokens], words to put after a token's labels; or None.
    """
    answers, view, n_labels = crowd.latest, crowd.by_worker, len(crowd.tagset.tags)
    begin, after, n_previous = states
    lengths = np.diff(answers.offset)[view.order]
    ends = np.cumsum(lengths)
    place = np.arange(ends[-1] if len(ends) else 0)
    codes = answers.codes[place + np.repeat(answers.offset[view.order] - ends + lengths, lengths)]
    firsts = crowd.offsets[answers.item[view.order]] - ends + lengths
    token = place + np.repeat(firsts, lengths)
    worker = np.repeat(np.repeat(np.arange(crowd.n_workers), np.diff(view.bounds)), lengths)
    codes = codes.astype(np.int64)
    before = np.concatenate([[begin], codes[:-1]])[: len(codes)]
    previous = np.where(before < 0, after, before if has_memory else begin)
    previous[(ends - lengths)[lengths > 0]] = begin
    given = codes >= 0
    pairs, number = np.unique(
        ((worker * n_previous + previous) * n_labels + codes)[given], return_inverse=True
    )
    own = token[given]
    counts = np.bincount(own, minlength=crowd.n_tokens) + (words is not None)
    bounds = np.concatenate([[0], np.cumsum(counts)])
    order = np.argsort(own, kind="stable")
    row = np.empty(int(bounds[-1]), np.int32)
    is_label = np.ones(len(row), np.bool_)
    if words is not None:
        is_label[bounds[1:] - 1] = False
        row[bounds[1:] - 1] = len(pairs) + words
    row[is_label] = number[order]
    who, rest = np.divmod(pairs, n_previous * n_labels)
    state, label = np.divmod(rest, n_labels)
    shape = (crowd.n_workers, n_previous, n_labels)
    kinds = who.astype(np.int32), state.astype(np.int16), label.astype(np.int16)
    return bounds, row, Rows(*kinds, *shape)


def patterns(
    bounds: Indexes, row: NDArray[np.int32], n_rows: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Number the distinct lists of rows, as `find_patterns`."""
    # returns int32 [n_tokens]
    before = np.concatenate([[0], np.cumsum(row < n_rows)])
    base = bounds - bounds[0]
    stop = base[:-1] + np.diff(before[base])
    seen: dict[bytes, int] = {}
    found = [
        seen.setdefault(row[a:b].tobytes(), len(seen))
        for a, b in zip(base[:-1].tolist(), stop.tolist(), strict=True)
    ]
    pattern = np.array(found, np.int32)
    return pattern, np.unique(pattern, return_index=True)[1].astype(np.int32)


def add_votes(
    offsets: Indexes, bounds: Indexes, row: NDArray[np.int32], active: NDArray[np.bool_],
    gold: NDArray[np.int16], weight: Floats, label: NDArray[np.int16], counts: Floats,
    start_counts: Floats, step_counts: Floats,
) -> None:  # fmt: skip
    """Add the vote shares of some items to the statistics; the arguments are `vote_step`'s."""
    n_tokens, n_labels = len(bounds) - 1, counts.shape[1]
    token = np.repeat(np.arange(n_tokens), np.diff(bounds))
    votes = np.flatnonzero(row < len(label))
    share, total = np.zeros((n_tokens, n_labels)), np.zeros(n_tokens)
    given = weight[votes] if len(weight) else np.ones(len(votes))
    np.add.at(share, (token[votes], label[row[votes]]), given)
    np.add.at(total, token[votes], given)
    has_votes = total > 0
    share[has_votes] /= total[has_votes, None]
    share[~has_votes] = 1.0 / n_labels
    known = np.flatnonzero(gold >= 0)
    share[known] = 0.0
    share[known, gold[known]] = 1.0
    lengths = np.diff(offsets)
    is_active = np.repeat(active, lengths)
    used = is_active[token]
    np.add.at(counts, row[used], share[token[used]])
    is_first = np.zeros(n_tokens, np.bool_)
    is_first[(offsets[:-1] - offsets[0])[lengths > 0]] = True
    if not len(step_counts):
        start_counts += share[is_active].sum(axis=0)
        return
    start_counts += share[is_active & is_first].sum(axis=0)
    later = np.flatnonzero(is_active & ~is_first)
    step_counts += share[later - 1].T @ share[later]
