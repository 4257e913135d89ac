"""Families of workers, and what the answers of their members count.

n members whose mistakes correlate by rho count as n / (1 + (n - 1) rho) independent workers (Kish
1965).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.crowd import Crowd

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
COPIES = 0.8
"""Workers whose mistakes correlate so much are copies, and not those who know more than others."""
WEAK = 0.4
"""Found families of single labels that share less are not heeded: six of them count as two."""
SEEN = 0.005
"""Least rho that is not shown as 0.00."""
SAID = 8
"""Most families, and members of each, that a note lists."""


@dataclass(frozen=True, eq=False)
class Families:
    """Which workers err together, and how much.

    >>> import goldspan
    >>> rows = [{"item": n, "worker": w, "label": "xy"[n % 2]} for n in range(9) for w in "abc"]
    >>> crowd = goldspan.read_crowd(rows)
    >>> from goldspan.aggregation.families import given_families
    >>> families = given_families(crowd, {"a": "one", "b": "one"})
    >>> families.names(), families.number.tolist()
    ({'a': 'one', 'b': 'one'}, [0, 0, 1])
    >>> families.answer_weights(crowd)[:3].tolist()
    [0.5, 0.5, 1.0]
    """

    number: Ints  # int64 [n_workers]
    rho: Floats  # [n_families], correlation of the members' mistakes, 0 to 1; 0 of who is alone
    worker_ids: pa.Array  # Arrow string array [n_workers]
    # Names of families that were given, by number
    given: Mapping[int, str] = field(default_factory=dict)
    assumed: frozenset[int] = frozenset()  # Numbers of families whose rho could not be estimated
    # Numbers of families with one member more, whose labels are not among the answers
    silent: frozenset[int] = frozenset()

    @cached_property
    def sizes(self) -> Ints:
        """Count the members of every family, int64 [n_families]."""
        return np.bincount(self.number, minlength=len(self.rho))

    def __bool__(self) -> bool:
        """Return whether any family has two members or more."""
        return bool((self.sizes > 1).any()) or bool(self.silent)

    def names(self) -> dict[str, str]:
        """Return the name of the family of every worker who has one, by worker id."""
        # Found ones are called "family 1" and so on; `families=` of the aggregators takes it
        found = np.flatnonzero(self.sizes > 1).tolist()
        called = {n: self.given.get(n, f"family {i + 1}") for i, n in enumerate(found)}
        pairs = zip(self.worker_ids.to_pylist(), self.number.tolist(), strict=True)
        return {worker: called[n] for worker, n in pairs if n in called}

    def on(self, worker_ids: pa.Array) -> Families:
        """Return the same families among other workers, found by id; newcomers err alone."""
        place = pc.fill_null(pc.index_in(worker_ids, value_set=self.worker_ids), -1)
        known = np.asarray(place.to_numpy(zero_copy_only=False), np.int64)
        number = np.where(known < 0, -1, self.number[known])
        return self.renumbered(number, worker_ids)

    def renumbered(self, number: Ints, worker_ids: pa.Array) -> Families:
        """Return the families of workers by their numbers here."""
        # number int64 [n_workers]
        alone = len(self.rho) + np.arange(len(number))
        kept, first, place = np.unique(
            np.where(number < 0, alone, number), return_index=True, return_inverse=True
        )
        order = np.argsort(first, kind="stable")  # in the order of the first members
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        rho = np.append(self.rho, np.zeros(len(number)))[kept[order]]
        old = kept[order].tolist()
        given = {n: self.given[k] for n, k in enumerate(old) if k in self.given}
        assumed, silent = (
            frozenset(n for n, k in enumerate(old) if k in which)
            for which in (self.assumed, self.silent)
        )
        return Families(rank[place.ravel()], rho, worker_ids, given, assumed, silent)

    def with_shown(self, worker_ids: pa.Array, by: int | None, rho: float) -> Families:
        """Return these families and, as workers of their own, those who were shown suggestions."""
        # They are of the family of whose suggestion it was, and its rho is the mean over all pairs
        n_new = len(worker_ids) - len(self.number)
        own = len(self.rho) if by is None else int(self.number[by])
        n = 0 if by is None else int(self.sizes[own])
        pairs, more = n * (n - 1) / 2, n_new * n + n_new * (n_new - 1) / 2
        found = self.rho if by is not None else np.append(self.rho, rho)
        found = found.astype(np.float64, copy=True)
        if more:
            found[own] = (pairs * found[own] + more * rho) / (pairs + more)
        number = np.append(self.number, np.full(n_new, own))
        silent = self.silent | ({own} if by is None else frozenset())
        assumed = self.assumed - {own}
        made = Families(number, found, worker_ids, self.given, assumed, silent)
        return made.renumbered(number, worker_ids)

    @cached_property
    def effective(self) -> Floats:
        """What every worker's whole family counts, n / (1 + (n - 1) rho), float64 [n_workers]."""
        return self.effective_of(self.sizes, np.arange(len(self.rho)))[self.number]

    def effective_of(self, size: NDArray[Any], family: NDArray[Any]) -> Floats:
        """Return what some members of families count together, n / (1 + (n - 1) rho)."""
        # size int64 [n], members; family int64 [n], their family
        return np.asarray(size / (1 + np.maximum(size - 1, 0) * self.rho[family]), np.float64)

    def answer_counts(self, crowd: Crowd) -> Floats:
        """Return how many independent answers the items have, float64 [n_items]."""
        families, answers = self.on(crowd.worker_ids), crowd.latest
        return np.bincount(
            answers.item, families.weights(answers.item, answers.worker), crowd.n_items
        ).astype(np.float64)

    def answer_weights(self, crowd: Crowd) -> Floats:
        """Return what every latest answer counts, 1 / (1 + (n - 1) rho), float64 [n_answers]."""
        answers = crowd.latest
        return self.weights(answers.item, answers.worker)

    def label_weights(self, crowd: Crowd) -> Floats:
        """Return the same of every label of the latest answers, float64 [n_labels]."""
        # n members labelled the token: an answer may skip some
        given = crowd.latest.codes >= 0
        found = np.zeros(len(given))
        found[given] = self.weights(crowd.token_of[given], crowd.worker_of[given])
        return found

    def weights(self, place: NDArray[Any], worker: NDArray[Any]) -> Floats:
        """Return what every label counts beside those of its family in the same place."""
        # place int64 [n], the item or token; worker int64 [n]; returns float64 [n]
        own = self.number[worker]
        found = np.ones(len(worker))
        related = np.flatnonzero(self.sizes[own] > 1)
        key = place[related] * np.int64(len(self.rho)) + own[related]
        _, inverse, n = np.unique(key, return_inverse=True, return_counts=True)
        found[related] = 1 / (1 + (n[inverse] - 1) * self.rho[own[related]])
        return self.beside_silent(worker, found)

    def beside_silent(self, worker: NDArray[Any], weight: Floats) -> Floats:
        """Return what labels count beside one more, silent member of their family."""
        # worker int64 [n]; weight float64 [n]
        if not self.silent:
            return weight
        own = self.number[worker]
        rho = np.where(np.isin(own, list(self.silent)), self.rho[own], 0.0)
        return np.asarray(weight / (1 + rho * weight), np.float64)

    def opinions(self, crowd: Crowd) -> list[Families | None]:
        """Return what may be believed of families that were found, the boldest first."""
        # Weak ones are left out: they count nearly as many as they are, and are easily mistaken
        answers, size = crowd.latest, len(self.rho)
        key = answers.item * np.int64(size) + self.number[answers.worker]
        cells, n_own = np.unique(key, return_counts=True)
        item, own = np.divmod(cells, size)
        n_all = np.bincount(answers.item, minlength=crowd.n_items)[item]
        share = np.bincount(own, n_own, size) / np.maximum(np.bincount(own, n_all, size), 1)
        found = ~np.isin(np.arange(size), list(self.given))  # those that are known stay
        weak = found & (self.rho < WEAK)
        doubtful = found & (weak | ((self.rho < COPIES) & (share < 0.5)))
        bold, sure = (
            self.renumbered(np.where(left_out[self.number], -1, self.number), self.worker_ids)
            for left_out in (weak, doubtful)
        )
        if (bold.number == sure.number).all():
            return [bold or None]
        return [bold, sure or None]

    def thin(self, crowd: Crowd) -> Crowd:
        """Return the crowd with one answer per item and family: that of the first member."""
        answers = crowd.latest
        key = answers.item * np.int64(len(self.rho)) + self.number[answers.worker]
        first = np.unique(key, return_index=True)[1]
        if len(first) == len(answers):
            return crowd
        return replace(crowd, answers=answers.take(np.sort(first)))

    @property
    def note(self) -> str:
        """Say who they are, and what follows."""
        fewer, in_full = self._listed(is_telling=True), self._listed(is_telling=False)
        said = [f"workers who err together count as fewer: {fewer}"] if fewer else []
        said += [f"families who err independently count in full: {in_full}"] if in_full else []
        return "; ".join(said)

    def _listed(self, *, is_telling: bool) -> str:
        """List those families whose rho is seen, or those of whom it is not."""
        members: dict[str, list[str]] = {}
        for worker, name in self.names().items():
            members.setdefault(name, []).append(worker)
        said = []
        numbers = np.flatnonzero(self.sizes > 1).tolist()
        for number, ids in zip(numbers, members.values(), strict=True):
            rho = float(self.rho[number])
            if (rho >= SEEN) == is_telling:
                how = f"rho {rho:.2f}{', assumed' if number in self.assumed else ''}"
                said.append(f"{', '.join(ids[:SAID])}{' …' if len(ids) > SAID else ''} ({how})")
        more = f"; and {len(said) - SAID} more families" if len(said) > SAID else ""
        return "; ".join(said[:SAID]) + more
