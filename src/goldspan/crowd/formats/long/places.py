"""Long tables of sequences: which token and which attempt every row is about."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.crowd.formats.long.rows import Rows, integers, place_of
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.repeats import number_attempts
from goldspan.errors import Fault, FormatError


@dataclass(frozen=True)
class Table:
    """A long table with ids instead of strings.

    Attributes:
        rows: The columns.
        item: int32 [n_rows], the items numbered in the order in which they come.
        worker: int32 [n_rows].
        codes: int16 [n_rows], tag codes, -1 for no label.
        n_items: Number of items.
    """

    rows: Rows
    item: NDArray[np.int32]
    worker: NDArray[np.int32]
    codes: NDArray[np.int16]
    n_items: int


def positions(table: Table) -> NDArray[np.int64]:
    """Place of every row in its item: the `position` column, or the order of the rows."""
    rows = table.rows
    if "position" in rows.columns:
        found = integers(rows, "position")
        lowest = int(found.min())
        return found - (1 if lowest == 1 else 0)
    counted = "attempt" in rows.columns
    tries = integers(rows, "attempt") if counted else np.zeros(len(rows), np.int64)
    order = np.lexsort((np.arange(len(rows)), tries, table.worker, table.item))
    keys = np.stack([table.item[order], table.worker[order], tries[order]])
    fresh = np.ones(len(rows), np.bool_)
    fresh[1:] = (np.diff(keys, axis=1) != 0).any(axis=0)
    head = np.flatnonzero(fresh)
    rank = np.arange(len(rows)) - np.repeat(head, np.diff(np.append(head, len(rows))))
    if "token" in rows.columns and not counted:
        _fold_repeats(table, order, head, rank)
    position = np.empty(len(rows), np.int64)
    position[order] = rank
    return position


def _fold_repeats(
    table: Table, order: NDArray[np.int64], head: NDArray[np.int64], rank: NDArray[np.int64]
) -> None:
    """Where a worker shows all tokens of an item several times, start again each time.

    Without positions or attempts nothing else tells repeated answers from longer items. What the
    shortest answer to an item shows is taken for its tokens.
    """
    words = table.rows.columns["token"].indices.to_numpy()[order]
    size = np.diff(np.append(head, len(order)))
    item = table.item[order[head]]
    least = np.full(table.n_items, len(order), np.int64)
    np.minimum.at(least, item, size)
    for g in np.flatnonzero((size > least[item]) & (size % least[item] == 0)).tolist():
        rows, n = slice(head[g], head[g] + size[g]), int(least[item[g]])
        shown = words[rows].reshape(-1, n)
        if (shown == shown[0]).all():
            rank[rows] %= n


def row_attempts(
    table: Table, position: NDArray[np.int64], options: ReadOptions
) -> NDArray[np.int16]:
    """Number the answer that every row of a sequence belongs to, int16 [n_rows].

    Raises:
        FormatError: A worker has two labels for one token in one attempt.
    """
    if "attempt" in table.rows.columns:
        attempt = integers(table.rows, "attempt").astype(np.int16)
        _refuse_twice(table, np.arange(len(attempt)), attempt, position)
        return attempt
    places = int(position.max()) + 1
    cell = table.item.astype(np.int64) * places + position
    _, compact = np.unique(cell, return_inverse=True)
    return number_attempts(compact.astype(np.int32), table.worker, options.repeated)


def shown_tokens(table: Table, position: NDArray[np.int64], offsets: NDArray[np.int64]) -> pa.Array:
    """Tokens of all items; every worker must have seen the same ones.

    Raises:
        FormatError: Two workers have different tokens at one place, or a place has none.
    """
    rows = table.rows
    flat = offsets[table.item] + position
    n_tokens = int(offsets[-1])
    if "token" not in rows.columns:
        return pa.array(
            [str(i) for i in (np.arange(n_tokens) - np.repeat(offsets[:-1], np.diff(offsets)))]
        )
    words = rows.columns["token"]
    codes = words.indices.to_numpy()
    found = np.full(n_tokens, -1, np.int64)
    found[flat[::-1]] = codes[::-1]
    clash = np.flatnonzero(found[flat] != codes)
    faults = []
    for i in clash.tolist():
        other = words.dictionary[int(found[flat[i]])].as_py()
        message = (
            f"token {rows.columns['token'][i].as_py()!r} where another row has {other!r}: the rows "
            "of an item must show the same tokens; with one file per worker use format 'folder', "
            "which aligns them"
        )
        faults.append(replace(place_of(rows, i, int(position[i])), message=message, kind="tokens"))
    for place in np.flatnonzero(found < 0).tolist():
        n = int(np.searchsorted(offsets, place, side="right")) - 1
        name = rows.columns["item"].dictionary[n].as_py()
        message = "no row shows this token"
        faults.append(Fault(message, rows.name, 0, name, place - int(offsets[n]), kind="tokens"))
    if faults:
        raise FormatError(faults)
    return words.dictionary.take(pa.array(found))


def attempts(
    table: Table,
    given: NDArray[np.bool_],
    item: NDArray[np.int32],
    worker: NDArray[np.int32],
    options: ReadOptions,
) -> NDArray[np.int16]:
    """Number answers of one label, int16 [n_answers].

    Args:
        table: The rows.
        given: bool [n_rows], whether a row holds an answer.
        item: int32 [n_answers], of the answers.
        worker: int32 [n_answers], of the answers.
        options: `repeated` is used.

    Raises:
        FormatError: A worker has two answers with one number.
    """
    if "attempt" in table.rows.columns:
        attempt = integers(table.rows, "attempt").astype(np.int16)[given]
        _refuse_twice(table, np.flatnonzero(given), attempt, np.zeros(len(item), np.int64))
        return attempt
    return number_attempts(item, worker, options.repeated)


def _refuse_twice(
    table: Table,
    rows: NDArray[np.int64],
    attempt: NDArray[np.int16],
    position: NDArray[np.int64],
) -> None:
    """Refuse two labels for one item, worker, attempt and token."""
    keys = np.stack([table.item[rows], table.worker[rows], attempt, position])
    _, first, same = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    faults = []
    for i in np.flatnonzero(first[same.ravel()] != np.arange(len(rows))).tolist():
        line = int(table.rows.line[rows[first[same.ravel()[i]]]])
        message = f"attempt {attempt[i]} stands twice (first in line {line}): number repeats anew"
        place = place_of(table.rows, int(rows[i]), int(position[i]) if len(position) else -1)
        faults.append(replace(place, message=message, kind="duplicate-attempt"))
    if faults:
        raise FormatError(faults)
