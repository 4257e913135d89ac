"""The answers as evidence: tables of workers, answers laid out by token, patterns that repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan._arrays import count_in_rows, load_array, longest_first
from goldspan.aggregation.bsc.kernels import (
    count_plain,
    count_rows,
    fill_rows,
    find_patterns,
    lay_out_plain,
    pattern_logs,
    spread,
    weigh_labels,
)
from goldspan.aggregation.families import Families
from goldspan.aggregation.workermodels import Rows
from goldspan.crowd import Crowd
from goldspan.errors import InputError

# --------------------------------------------------------------------------------------------------
# Input and output of an E-step.

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tables:
    """What an E-step needs of the parameters."""

    log_table: Floats  # [n_rows + n_words, J], E ln A and E ln omega
    table: Floats
    truth: Floats  # [1 or J + 1, J], exp(E ln T), 0 where forbidden
    end: Floats  # [J]


@dataclass(frozen=True, eq=False)
class Sums:
    """The statistics of some items: what the updates need."""

    counts: Floats  # [n_rows + n_words, J]
    truth: Floats  # [1 or J + 1, J]
    log_z: float = 0.0  # Sum of ln Z
    posterior: Any = None

    def add(self, other: Sums) -> Sums:
        """Return the sum of these and other statistics."""
        counts, truth = self.counts + other.counts, self.truth + other.truth
        return Sums(counts, truth, self.log_z + other.log_z)


# --------------------------------------------------------------------------------------------------
# A crowd's answers by token: the rows of the labels that it got.


PREVIOUS = ("outside", "own")
"""What stands for a previous label that does not exist: `O`, or a state of its own."""
MAX_PLAIN = 20_000_000
"""Most pairs of worker and label for which a table of all of them is made."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Labels by token."""

    offsets: NDArray[np.int64]  # [n_items + 1], tokens of the items
    bounds: NDArray[np.int64]  # [n_tokens + 1]; token t got the labels row[bounds[t]:bounds[t + 1]]
    row: NDArray[np.int32]  # [n_labels], rows of the table, of a token in the order of workers
    active: NDArray[np.bool_]  # [n_items], whether anything is known of the item: an answer or gold
    gold: NDArray[np.int16]  # [n_tokens], known truth, -1 unknown; empty if nothing is known
    unary: NDArray[np.float64]  # [n_tokens, J], log evidence from elsewhere; empty if there is none
    weight: Floats = field(default_factory=lambda: np.zeros(0), kw_only=True)  # [n_labels]

    @property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return len(self.bounds) - 1

    def loaded(self) -> Evidence:
        """Return it as it is: it is in memory (see `Stored`)."""
        return self

    @cached_property
    def by_length(self) -> NDArray[np.int32]:
        """The active items that have tokens, the longest first."""
        return longest_first(np.diff(self.offsets) * self.active)

    def localise(self, tables: Tables) -> tuple[Tables, float]:
        """Return the tables that `row` refers to, and the logarithm taken out of them all."""
        return tables, 0.0

    def globalise(self, local: Floats, tables: Tables) -> Floats:  # noqa: ARG002
        """Return counts of the tables of `localise` as counts of the rows, here the same."""
        return local

    def items(self, first: int, last: int) -> Evidence:
        """Return a slice of items as views; offsets and bounds keep their origin."""
        origin = int(self.offsets[0])
        tokens = slice(int(self.offsets[first]) - origin, int(self.offsets[last]) - origin)
        bounds = self.bounds[tokens.start : tokens.stop + 1]
        entries = slice(int(bounds[0] - self.bounds[0]), int(bounds[-1] - self.bounds[0]))
        return Evidence(
            self.offsets[first : last + 1],
            bounds,
            self.row[entries],
            self.active[first:last],
            self.gold[tokens] if len(self.gold) else self.gold,
            self.unary[tokens] if len(self.unary) else self.unary,
            weight=self.weight[entries],
        )


def lay_out(
    crowd: Crowd,  # Items, workers and answers; of repeated answers the latest
    *,
    has_memory: bool,  # Whether rows hold the previous label
    start: str = "outside",  # "outside" or "own": the previous label at an item's first token
    skipped: str = "outside",  # "outside" or "own"
    words: NDArray[np.int32] | None = None,  # [n_tokens], word ids
    gold: NDArray[np.int16] | None = None,  # [n_tokens], known truth, -1 unknown
) -> tuple[Evidence, Rows]:
    """Number the rows of a crowd and sort its labels by token."""
    n_labels = len(crowd.tagset.tags)
    small = crowd.n_workers * n_labels <= MAX_PLAIN
    if not has_memory and small and words is None:
        bounds, row, rows = _without_memory(crowd)
    else:
        states = _previous_states(crowd, start, skipped) if has_memory else (0, 0, 1)
        bounds, row, rows = _by_worker(crowd, has_memory, states, words)
    n_words = 0 if words is None else np.diff(crowd.offsets)
    active = np.diff(bounds[crowd.offsets]) > n_words
    known = np.zeros(0, np.int16)
    if gold is not None and (gold >= 0).any():
        known = np.ascontiguousarray(gold, np.int16)
        active |= count_in_rows(known >= 0, crowd.offsets) > 0
    return Evidence(crowd.offsets, bounds, row, active, known, np.zeros((0, n_labels))), rows


def weighed(evidence: Evidence, rows: Rows, families: Families | None) -> Evidence:
    """Let members of a family who labelled the same token count as fewer."""
    if families is None:
        return evidence
    weight = np.ones(len(evidence.row))
    who = rows.worker, families.number, families.rho
    weigh_labels(evidence.bounds, evidence.row, *who, weight)
    if families.silent:
        said = evidence.row < len(rows)  # words have no family
        weight[said] = families.beside_silent(rows.worker[evidence.row[said]], weight[said])
    return replace(evidence, weight=weight)


def without_forbidden(
    evidence: Evidence, rows: Rows, mask: NDArray[np.bool_]
) -> tuple[Evidence, Rows]:
    """Leave out labels that the encoding forbids after the worker's label before."""
    # mask bool [n_previous, J]
    kept = mask[rows.previous, rows.label]
    n_words = max(0, int(evidence.row.max(initial=-1)) + 1 - len(rows))
    every = np.concatenate([kept, np.ones(n_words, np.bool_)])
    number = np.cumsum(every) - 1
    stays = every[evidence.row]
    before = np.concatenate([[0], np.cumsum(stays)])
    row = number[evidence.row[stays]].astype(np.int32)
    evidence = replace(evidence, bounds=before[evidence.bounds], row=row)
    own = rows.worker[kept], rows.previous[kept], rows.label[kept]
    return evidence, Rows(*own, rows.n_workers, rows.n_previous, rows.n_labels)


def _without_memory(crowd: Crowd) -> tuple[NDArray[np.int64], NDArray[np.int32], Rows]:
    """Number (worker, label) in the order of the answers: they need not be sorted by worker."""
    answers, n_labels = crowd.latest, len(crowd.tagset.tags)
    used = np.zeros(crowd.n_workers * n_labels, np.bool_)
    bounds = np.zeros(crowd.n_tokens + 1, np.int64)
    arrays = (answers.item, answers.worker, answers.offset, answers.codes, crowd.offsets)
    count_plain(*arrays, n_labels, used, bounds)
    np.cumsum(bounds, out=bounds)
    pairs = np.flatnonzero(used)
    number = np.full(len(used), -1, np.int32)
    number[pairs] = np.arange(len(pairs))
    row = np.empty(int(bounds[-1]), np.int32)
    lay_out_plain(*arrays, number, n_labels, bounds, row)
    return bounds, row, Rows.of_keys(pairs, crowd.n_workers, 1, n_labels)


def _by_worker(
    crowd: Crowd, has_memory: bool, states: tuple[int, int, int], words: NDArray[np.int32] | None
) -> tuple[NDArray[np.int64], NDArray[np.int32], Rows]:
    """Number (worker, previous label, label) worker by worker, with scratch for one of them."""
    answers, view, n_labels = crowd.latest, crowd.by_worker, len(crowd.tagset.tags)
    begin, after, n_previous = states
    bounds = np.zeros(crowd.n_tokens + 1, np.int64)
    arrays = (view.order, view.bounds, answers.item, answers.offset, answers.codes, crowd.offsets)
    n_rows = count_rows(*arrays, has_memory, begin, after, n_previous, n_labels, bounds)
    if n_rows >= np.iinfo(np.int32).max:  # pragma: no cover - needs 2e9 distinct rows
        raise InputError(f"{n_rows} pairs of worker and label are too many")
    if words is not None:
        bounds[1:] += 1
    np.cumsum(bounds, out=bounds)
    row = np.empty(int(bounds[-1]), np.int32)
    place = bounds[:-1].copy()
    worker = np.empty(n_rows, np.int32)
    previous, label = np.empty(n_rows, np.int16), np.empty(n_rows, np.int16)
    fill_rows(
        *arrays, has_memory, begin, after, n_previous, n_labels, place, row, worker, previous, label
    )
    if words is not None:
        row[place] = n_rows + words
    return bounds, row, Rows(worker, previous, label, crowd.n_workers, n_previous, n_labels)


def previous_mask(crowd: Crowd, n_previous: int) -> NDArray[np.bool_]:
    """Return which label may follow which previous one, bool [n_previous, J]."""
    # States of their own (item start, after a skip) allow what may begin an item
    codec = crowd.tagset
    if n_previous == 1:
        return np.ones((1, len(codec.tags)), np.bool_)
    own = np.tile(codec.start_mask, (n_previous - len(codec.tags), 1))
    return np.vstack([codec.mask, own])


def _previous_states(crowd: Crowd, start: str, skipped: str) -> tuple[int, int, int]:
    """Return the state at an item's start, the state after a skip, and the number of states."""
    states, outside = len(crowd.tagset.tags), crowd.tagset.outside
    found = []
    for rule in (start, skipped):
        is_own = rule != "outside" or outside < 0
        found.append(states if is_own else outside)
        states += is_own
    return found[0], found[1], states


# --------------------------------------------------------------------------------------------------
# Evidence with one product per pattern: the same labels of the same workers.


@dataclass(frozen=True, eq=False)
class Patterned(Evidence):
    """Evidence whose rows are patterns, then words."""

    pattern_bounds: NDArray[np.int32]  # [n_patterns + 1]
    pattern_row: NDArray[np.int32]
    pattern_weight: Floats  # float64, what each of them counts; empty: 1
    n_tokens_of: NDArray[np.int32]  # [n_patterns], active tokens of every pattern
    n_worker_rows: int  # Number of workers' rows of the model
    discount: Floats  # [n_patterns], power of the workers' evidence; empty: 1

    def localise(self, tables: Tables) -> tuple[Tables, float]:
        """Return the tables of the patterns and words, and the logarithm taken out."""
        n_patterns, n_labels = len(self.n_tokens_of), tables.log_table.shape[1]
        words = tables.log_table[self.n_worker_rows :]
        logs = np.empty((n_patterns + len(words), n_labels))
        shift = np.empty(n_patterns)
        own = self.pattern_bounds, self.pattern_row, self.pattern_weight
        pattern_logs(*own, tables.log_table, logs, shift)
        if len(self.discount):
            logs[:n_patterns] *= self.discount[:, None]
            shift *= self.discount
        logs[n_patterns:] = words
        local = Tables(logs, np.exp(logs), tables.truth, tables.end)
        return local, float(shift @ self.n_tokens_of)

    def globalise(self, local: Floats, tables: Tables) -> Floats:
        """Return the counts of the rows: patterns are spread over theirs, words stay."""
        counts = np.zeros_like(tables.table)
        spread(self.pattern_bounds, self.pattern_row, local, counts)
        counts[self.n_worker_rows :] += local[len(self.n_tokens_of) :]
        return counts

    def items(self, first: int, last: int) -> Patterned:
        """Return a slice of items as views; patterns stay."""
        part = super().items(first, last)
        own = {one.name: getattr(part, one.name) for one in fields(Evidence)}
        return replace(self, **own)


def compress(shards: Sequence[Evidence], n_worker_rows: int) -> list[Evidence]:
    """Put patterns in the place of rows; items that are single tokens, which share little, stay.

    They do not where labels have weights, which are those of patterns.
    """
    # Where every token has one row, its pattern, the bounds of all shards are the same.
    bounds = np.arange(max((shard.n_tokens for shard in shards), default=0) + 1)
    return [
        shard
        if shard.n_tokens <= len(shard.active) and not len(shard.weight)
        else _patterned(shard, n_worker_rows, bounds)
        for shard in shards
    ]


def discounted(shard: Evidence, n_worker_rows: int, dependence: float) -> Patterned:
    """Count n labels of a token as n / (1 + (n - 1) dependence) independent ones."""
    # That is the effective size of a sample whose members are correlated (Kish 1965)
    found = shard
    if not isinstance(found, Patterned):
        found = _patterned(shard, n_worker_rows, np.arange(shard.n_tokens + 1))
    sizes = np.diff(found.pattern_bounds)
    n_labels = sizes.astype(np.float64)
    if len(found.pattern_weight):
        n_labels[:] = np.bincount(
            np.repeat(np.arange(len(sizes)), sizes), found.pattern_weight, len(sizes)
        )
    return replace(found, discount=1 / (1 + np.maximum(n_labels - 1, 0) * dependence))


def _patterned(shard: Evidence, n_worker_rows: int, every: NDArray[np.int64]) -> Patterned:
    """Find the patterns of a shard; `every` counts at least its tokens, int64."""
    n_tokens = shard.n_tokens
    pattern, example = np.empty(n_tokens, np.int32), np.empty(n_tokens, np.int32)
    n_patterns = find_patterns(shard.bounds, shard.row, n_worker_rows, pattern, example)
    begin = (shard.bounds[:-1] - shard.bounds[0])[example[:n_patterns]]
    stop = (shard.bounds[1:] - shard.bounds[0])[example[:n_patterns]]
    has_words = bool(len(shard.row)) and int(shard.row.max()) >= n_worker_rows
    sizes = stop - begin - has_words
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    place = np.repeat(begin - bounds[:-1], sizes) + np.arange(bounds[-1])
    own = pattern
    if has_words:
        words = shard.row[shard.bounds[1:] - shard.bounds[0] - 1] - n_worker_rows + n_patterns
        own = np.stack([pattern, words], axis=1).astype(np.int32).ravel()
    tokens = np.repeat(shard.active, np.diff(shard.offsets))
    return Patterned(
        offsets=shard.offsets,
        bounds=every[: n_tokens + 1] * 2 if has_words else every[: n_tokens + 1],
        row=own,
        active=shard.active,
        gold=shard.gold,
        unary=shard.unary,
        pattern_bounds=bounds.astype(np.int32),
        pattern_row=shard.row[place],
        pattern_weight=shard.weight[place] if len(shard.weight) else shard.weight,
        n_tokens_of=np.bincount(pattern[tokens], minlength=n_patterns).astype(np.int32),
        n_worker_rows=n_worker_rows,
        discount=np.zeros(0),
    )


# --------------------------------------------------------------------------------------------------
# Evidence in files, for what does not fit into memory.


NUMBER = "n_worker_rows"
"""The field of patterns that is a number."""


@dataclass(frozen=True, eq=False)
class Stored:
    """Evidence in a folder, mapped into memory where it is worked on."""

    folder: str  # The folder, which all machines see
    digest: str  # Of what it was made of

    def loaded(self) -> Evidence:
        """Map the arrays: what is used of them is read."""
        arrays = {path.stem: load_array(path) for path in sorted(Path(self.folder).glob("*.npy"))}
        if NUMBER not in arrays:
            return Evidence(**arrays)
        n_rows = int(arrays.pop(NUMBER))
        return Patterned(n_worker_rows=n_rows, **arrays)


def store(evidence: Evidence, folder: Path) -> None:
    """Write evidence into a new folder."""
    folder.mkdir()
    for one in fields(evidence):
        np.save(folder / f"{one.name}.npy", np.asarray(getattr(evidence, one.name)))
