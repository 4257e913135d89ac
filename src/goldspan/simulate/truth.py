"""The truth that workers answer to: known at every token, or drawn for single labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.crowd import Answers, Crowd, read_crowd
from goldspan.crowd.model import list_array
from goldspan.crowd.options import MISSING
from goldspan.errors import InputError
from goldspan.simulate.draws import Draws, Floats, keys_of
from goldspan.spans import Codec


def known_truth(truth: Any) -> Crowd:
    """Take a crowd, or read one, whose gold is known at every token.

    Raises:
        InputError: It has no gold, or not everywhere; the first such item is named.
    """
    crowd = truth if isinstance(truth, Crowd) else read_crowd(truth)
    open_items = np.flatnonzero(has_unknown(crowd))
    if len(open_items):
        name = crowd.item_ids[int(open_items[0])].as_py()
        raise InputError(
            f"{len(open_items)} of {crowd.n_items} items have tokens without gold (first: {name}): "
            "leave them out with crowd.select_items(~has_unknown(crowd))"
        )
    return crowd


def has_unknown(crowd: Crowd) -> NDArray[np.bool_]:
    """Say which items have a token without gold, bool [n_items].

    Raises:
        InputError: The crowd has no gold at all.
    """
    unknown = np.concatenate([[0], np.cumsum(crowd.gold_tagged.codes < 0)])
    return np.asarray(unknown[crowd.offsets[1:]] > unknown[crowd.offsets[:-1]])


def draw_truth(
    n_items: int,
    labels: int | Sequence[str] = 2,
    *,
    shares: Sequence[float] | None = None,
    seed: int = 0,
) -> Crowd:
    """Draw the truth of items of single labels.

    Args:
        n_items: How many; they are called q1, q2, ….
        labels: How many labels, then called 0, 1, …; or their names.
        shares: How frequent every label is, in any unit; all alike by default.
        seed: Of the draws. An item's label does not depend on the number of items.

    Returns:
        A crowd with gold and without workers.

    Raises:
        InputError: No label, a name twice or one that files read as no label, or shares that are
            none.

    >>> draw_truth(4, ["no", "yes"], seed=3).tagged_by_id()
    {'q1': ['yes'], 'q2': ['yes'], 'q3': ['no'], 'q4': ['yes']}
    """
    names = [str(n) for n in range(labels)] if isinstance(labels, int) else list(labels)
    if not names or len(set(names)) < len(names):
        raise InputError(f"labels must be a number of at least 1, or different names, not {labels}")
    unreadable = [name for name in names if name.strip() in MISSING]
    if unreadable:
        raise InputError(
            f"labels: {unreadable[0]!r} cannot be the name of a label: in files it means that "
            "there is none"
        )
    if n_items < 0:
        raise InputError(f"the number of items must be at least 0, not {n_items}")
    limits = np.cumsum(_checked_shares(shares, len(names)))
    codec = Codec.from_types(names, "PLAIN")
    ids = [f"q{n + 1}" for n in range(n_items)]
    offsets = np.arange(n_items + 1)
    uniform = Draws(seed, "truth", keys_of(ids), offsets).per_item("label")
    # The last limit may fall short of 1 by rounding.
    drawn = np.minimum(np.searchsorted(limits, uniform, side="right"), len(names) - 1)
    code_of = np.array([codec.index[name] for name in names], np.int16)
    return Crowd(
        item_ids=pa.array(ids, pa.string()),
        tokens=list_array(pa.array(ids, pa.string()), offsets),
        worker_ids=pa.array([], pa.string()),
        tagset=codec,
        answers=no_answers(),
        gold=code_of[drawn],
    )


def no_answers() -> Answers:
    """Give an empty table of answers."""
    none = np.zeros(0, np.int32)
    codes = np.zeros(0, np.int16)
    return Answers(none, none, np.zeros(1, np.int64), codes, codes)


def _checked_shares(shares: Sequence[float] | None, n_labels: int) -> Floats:
    given = np.ones(n_labels) if shares is None else np.asarray(shares, np.float64)
    if given.shape != (n_labels,):
        raise InputError(f"shares must be {n_labels} numbers, one per label, not {len(given)}")
    if not np.isfinite(given).all() or (given < 0).any() or given.sum() == 0:
        raise InputError(f"shares must be numbers of at least 0, and one above 0, not {shares}")
    return np.asarray(given / given.sum())
