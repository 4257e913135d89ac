"""Evidence with one product per pattern: the same labels of the same workers.

In most crowds the same few people read a document, and most of its tokens are `O` to all of them:
on the NER crowd 405,000 labels make 78,000 in distinct patterns. To the kernels a pattern is the
one row of its tokens; what an E-step adds to patterns is spread over the workers' rows at its end.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregate.bsc.evidence import Evidence
from goldspan.aggregate.bsc.kernels.patterns import find_patterns, pattern_logs, spread
from goldspan.aggregate.bsc.tables import Sums, Tables

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Patterned(Evidence):
    """Evidence whose rows are patterns, then words.

    Attributes:
        pattern_bounds: int64 [n_patterns + 1]; pattern p stands for the workers' rows
            pattern_row[pattern_bounds[p]:pattern_bounds[p + 1]].
        pattern_row: int32.
        n_tokens_of: float64 [n_patterns], active tokens of every pattern.
        n_worker_rows: Number of workers' rows of the model.
        discount: float64 [n_patterns], power of the workers' evidence; empty: 1.
    """

    pattern_bounds: NDArray[np.int64]
    pattern_row: NDArray[np.int32]
    n_tokens_of: Floats
    n_worker_rows: int
    discount: Floats

    def localise(self, tables: Tables) -> tuple[Tables, float]:
        """Give the tables of the patterns and words, and the logarithm taken out of the former."""
        n_patterns, n_labels = len(self.n_tokens_of), tables.log_table.shape[1]
        words = tables.log_table[self.n_worker_rows :]
        logs = np.empty((n_patterns + len(words), n_labels))
        shift = np.empty(n_patterns)
        pattern_logs(self.pattern_bounds, self.pattern_row, tables.log_table, logs, shift)
        if len(self.discount):
            logs[:n_patterns] *= self.discount[:, None]
            shift *= self.discount
        logs[n_patterns:] = words
        local = Tables(logs, np.exp(logs), tables.truth, tables.end)
        return local, float(shift @ self.n_tokens_of)

    def globalise(self, local: Floats, sums: Sums) -> None:
        """Add the counts of patterns and words to those of the rows."""
        n_patterns = len(self.n_tokens_of)
        spread(self.pattern_bounds, self.pattern_row, local, sums.counts)
        sums.counts[self.n_worker_rows :] += local[n_patterns:]

    def items(self, first: int, last: int) -> Patterned:
        """Give a slice of items as views; patterns stay."""
        part = super().items(first, last)
        own = {field.name: getattr(part, field.name) for field in fields(Evidence)}
        return replace(self, **own)


def compress(shard: Evidence, n_worker_rows: int) -> Evidence:
    """Put patterns in the place of rows; items that are single tokens, which share little, stay.

    Args:
        shard: Some items.
        n_worker_rows: Number of workers' rows; later rows are words.
    """
    if shard.n_tokens <= len(shard.active):
        return shard
    return _patterned(shard, n_worker_rows)


def discounted(shard: Evidence, n_worker_rows: int, dependence: float) -> Patterned:
    """Count n labels of a token as n / (1 + (n - 1) dependence) independent ones.

    That is the effective size of a sample whose members are correlated (Kish 1965): workers miss
    the same names.

    Args:
        shard: Some items.
        n_worker_rows: Number of workers' rows; later rows are words.
        dependence: Correlation of their mistakes, 0 to 1.
    """
    found = shard if isinstance(shard, Patterned) else _patterned(shard, n_worker_rows)
    n_labels = np.diff(found.pattern_bounds)
    return replace(found, discount=1 / (1 + np.maximum(n_labels - 1, 0) * dependence))


def _patterned(shard: Evidence, n_worker_rows: int) -> Patterned:
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
    width = 1 + has_words
    tokens = np.repeat(shard.active, np.diff(shard.offsets))
    return Patterned(
        offsets=shard.offsets,
        bounds=np.arange(n_tokens + 1) * width,
        row=own,
        active=shard.active,
        gold=shard.gold,
        unary=shard.unary,
        pattern_bounds=bounds,
        pattern_row=shard.row[place],
        n_tokens_of=np.bincount(pattern[tokens], minlength=n_patterns).astype(np.float64),
        n_worker_rows=n_worker_rows,
        discount=np.zeros(0),
    )
