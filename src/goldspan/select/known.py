"""What is known already: the labelled items (paper 003's D_l) and the model's errors (its D_e)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.errors import InputError
from goldspan.select.features import Features
from goldspan.select.incidence import Incidence
from goldspan.select.pool import Pool


@dataclass(frozen=True, eq=False)
class Known:
    """The labelled items, and where a model is wrong.

    Attributes:
        is_labelled: bool [n_items], of the pool.
        others: Labelled items outside the pool, or None.
        errors: By id of a labelled item the share of it that a model got wrong, 0 to 1; None if
            it is not known.
    """

    is_labelled: NDArray[np.bool_]
    others: Pool | None = None
    errors: Mapping[str, float] | None = None

    @classmethod
    def of(cls, pool: Pool, labelled: Any = None, errors: Any = None) -> Known:
        """Take what is known.

        Args:
            pool: The pool.
            labelled: None; ids, indexes or bools of items of the pool; or labelled items of any
                make that a pool can be, which may lie outside it.
            errors: None; by id the share of the item that is wrong; or the ids of the items that
                are wrong, the other labelled ones being right. From held-out predictions: on
                what a model was trained on it errs too rarely.

        Raises:
            InputError: An item is not in the pool, has other words there, or is not labelled.
        """
        marked, others = _labelled(pool, labelled)
        if errors is None:
            return cls(marked, others)
        names = set(pool.item_ids.filter(pa.array(marked)).to_pylist())
        names |= set() if others is None else set(others.item_ids.to_pylist())
        return cls(marked, others, _errors(errors, names))

    @property
    def count(self) -> int:
        """Number of labelled items."""
        return int(self.is_labelled.sum()) + (0 if self.others is None else self.others.n_items)

    def rows(self, pool: Pool, items: Incidence, features: Features) -> tuple[list[str], Incidence]:
        """Give the ids of the labelled items and their attribute values."""
        own = items.take(self.is_labelled)
        names = pool.item_ids.filter(pa.array(self.is_labelled)).to_pylist()
        if self.others is None:
            return names, own
        more = features.transform(self.others)
        bounds = np.concatenate([own.bounds, own.nnz + more.bounds[1:]])
        joined = Incidence(bounds, np.concatenate([own.ids, more.ids]), items.n_values)
        return [*names, *self.others.item_ids.to_pylist()], joined

    def error_rates(
        self, names: list[str], rows: Incidence, strength: float
    ) -> tuple[NDArray[np.float64], float]:
        """Give the smoothed error rate of every value, and that of all items.

        rate_v = (errors among items with v + strength * mean) / (items with v + strength).

        Args:
            names: Ids of the labelled items.
            rows: Their attribute values.
            strength: How many items with the mean error rate every value begins with.
        """
        wrong = np.array([(self.errors or {}).get(name, 0.0) for name in names])
        mean = float(wrong.mean()) if len(wrong) else 0.0
        times = np.diff(rows.bounds)
        total = np.bincount(rows.ids, weights=np.repeat(wrong, times), minlength=rows.n_values)
        return (total + strength * mean) / (rows.counts + strength), mean


def _labelled(pool: Pool, labelled: Any) -> tuple[NDArray[np.bool_], Pool | None]:
    marked = np.zeros(pool.n_items, np.bool_)
    if labelled is None or (isinstance(labelled, Sequence | set) and not len(labelled)):
        return marked, None
    chosen: Any = list(labelled) if isinstance(labelled, Sequence | set) else labelled
    if isinstance(chosen, list) and all(isinstance(one, str) for one in chosen):
        return _marked(pool, chosen), None
    if isinstance(chosen, list) and not isinstance(chosen[0], Sequence):
        chosen = np.asarray(chosen)
    if isinstance(chosen, np.ndarray) and chosen.ndim == 1:
        return _by_index(pool, chosen), None
    return _by_content(pool, Pool.of(labelled))


def _marked(pool: Pool, names: list[str]) -> NDArray[np.bool_]:
    lost = [name for name in names if name not in pool.place]
    if lost:
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        raise InputError(f"labelled item {lost[0]!r}{more} is not in the pool: ids must agree")
    marked = np.zeros(pool.n_items, np.bool_)
    marked[[pool.place[name] for name in names]] = True
    return marked


def _by_index(pool: Pool, chosen: NDArray[Any]) -> NDArray[np.bool_]:
    if chosen.dtype.kind in "UO":
        return _marked(pool, [str(name) for name in chosen.tolist()])
    if chosen.dtype == np.bool_ and len(chosen) == pool.n_items:
        return chosen.copy()
    inside = chosen.dtype.kind in "iu" and bool(((chosen >= 0) & (chosen < pool.n_items)).all())
    if not inside:
        raise InputError(
            f"labelled must be ids, indexes in 0 … {pool.n_items - 1}, or {pool.n_items} bools"
        )
    marked = np.zeros(pool.n_items, np.bool_)
    marked[chosen] = True
    return marked


def _by_content(pool: Pool, labelled: Pool) -> tuple[NDArray[np.bool_], Pool | None]:
    """Find labelled items in the pool by id; a name for other words would be taken for them."""
    marked, outside = np.zeros(pool.n_items, np.bool_), np.zeros(labelled.n_items, np.bool_)
    for n, name in enumerate(labelled.item_ids.to_pylist()):
        at = pool.place.get(name)
        if at is None:
            outside[n] = True
        elif pool.words(at) != labelled.words(n):
            raise InputError(
                f"item {name} has other words in the pool than among the labelled items: the same "
                "id must mean the same item (ids that are line numbers do not)"
            )
        else:
            marked[at] = True
    return marked, labelled.part(np.flatnonzero(outside)) if outside.any() else None


def _errors(errors: Any, labelled: set[str]) -> dict[str, float]:
    if isinstance(errors, Mapping):
        found = {str(name): errors[name] for name in errors}
    elif isinstance(errors, Sequence | set | np.ndarray) and not isinstance(errors, str):
        found = {str(name): 1.0 for name in errors}
    else:
        raise InputError("errors must be ids, or shares by id")
    for name, share in found.items():
        if not isinstance(share, int | float | np.number):
            raise InputError(f"errors: item {name}: a share must be a number, not {share!r}")
        if not 0 <= share <= 1:
            raise InputError(f"errors: item {name}: a share lies in 0 … 1, not {share}")
        if name not in labelled:
            raise InputError(
                f"errors: item {name} is not labelled: only what is known can be wrong"
            )
    return {name: float(share) for name, share in found.items()}
