"""Long tables: a row per item, worker and label."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.crowd import guessing
from goldspan.crowd.atomic import write_text
from goldspan.crowd.builder import CrowdBuilder, counted_answers
from goldspan.crowd.formats.columns import (
    OFFSETS,
    TEXT,
    UNKNOWN,
    are_offsets,
    as_strings,
    has_texts,
    json_text,
    numbered,
    numbers,
    read_json_text,
    read_offsets,
    texts_with_offsets,
    type_of,
)
from goldspan.crowd.grid import (
    Grid,
    any_formula,
    cell_text,
    first_line,
    guard,
    guess_delimiter,
    header_names,
    marked,
)
from goldspan.crowd.grouping import MAX_ATTEMPT, count_first, number_attempts
from goldspan.crowd.guessing import find_columns, open_table
from goldspan.crowd.labels import (
    guess_encoding,
    keep_workers,
    label_faults,
    missing_notes,
    read_labels,
    reject_unknown,
    settle,
    stripped_faults,
    with_gold_labels,
)
from goldspan.crowd.layers import as_single, ask_each, asks_each, sets_of, with_label_sets
from goldspan.crowd.model import ANSWER_COLUMNS, Answers, Crowd, known_texts, list_array
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import ImportReport, Source
from goldspan.errors import Fault, FormatError, InputError
from goldspan.spans import Codec

# --------------------------------------------------------------------------------------------------
# The rows of a long table: which column is what, and where every row stands.


MAX_POSITION = 100_000
"""Largest position of a token that is still believed."""
ROLES = {**guessing.ROLES, "item": (*guessing.ROLES["item"], "sentence")}
NUMBERS = ("position", "attempt", "time", *ANSWER_COLUMNS)
"""Roles whose cells are numbers."""


@dataclass(frozen=True)
class Rows:
    """The columns of a long table by role, with the place of every row."""

    name: str
    columns: dict[str, pa.Array]  # Arrow strings [n_rows]
    line: NDArray[np.int64] | range  # [n_rows], the line of every row
    is_tsv: bool = False  # Whether texts stand in it as JSON strings

    def __len__(self) -> int:
        return len(self.columns["item"])

    @property
    def is_gold(self) -> bool:
        """Whether nobody is named, so that the labels are the truth."""
        return "worker" not in self.columns


def rows_of(grid: Grid, found: Mapping[str, str], *, is_tsv: bool = False) -> Rows:
    """Take the columns that play a role out of a table."""

    def read_column(role: str, at: str) -> pa.Array:
        return (as_strings if role in NUMBERS else numbered)(grid.column(at), at, grid.name)

    with ThreadPoolExecutor(pa.cpu_count()) as pool:  # Arrow hashes without the interpreter lock
        columns = dict(zip(found, pool.map(read_column, found, found.values()), strict=True))
    return Rows(grid.name, columns, grid.line, is_tsv)


def find_roles(header: Sequence[str], file: str, options: ReadOptions) -> dict[str, str]:
    """Find the column of every role, by the user's name for it or by the usual ones."""
    _reject_spans(header, file, options)
    if is_label_studio(header) and "label" not in options.columns:
        raise label_studio_error(file)
    return find_columns(header, file, options, ROLES, needed=("item", "label"))


def has_roles(header: Collection[str], options: ReadOptions) -> bool:
    """Whether a header has columns for items, workers and labels by their usual names."""
    lower = {name.lower() for name in header}
    roles = {role for role, names in ROLES.items() if lower & {*names}} | {*options.columns}
    return roles >= {"item", "label"} and (bool(roles & {"worker", "gold"}) or "token" in roles)


def _reject_spans(header: Sequence[str], file: str, options: ReadOptions) -> None:
    """Reject a table of spans, of which single labels would be half the truth."""
    from goldspan.crowd.formats.span_table import is_span_table, span_columns

    found = span_columns(header, options.columns)
    if found is not None and is_span_table(header, options.columns):
        message = (
            f"columns {found[0]!r} and {found[1]!r} make this a table of spans, not of single "
            "labels: pass format='span-table'; if they are times, pass columns={'started': "
            f"{found[0]!r}, 'submitted': {found[1]!r}}}"
        )
        raise FormatError([Fault(message, file=file, line=1, kind="spans")])


def is_label_studio(header: Collection[str]) -> bool:
    """Return whether a header is that of Label Studio's CSV or TSV."""
    return {"annotation_id", "annotator", "lead_time"} <= {*header}


def label_studio_error(file: str) -> FormatError:
    """Make the error that rejects Label Studio's CSV or TSV, whose spans are JSON in a cell."""
    message = (
        "a table of Label Studio, whose cells may hold JSON: export JSON or JSON-MIN instead; a "
        "table of single choices is read with format='long', columns={'label': …} (--format long "
        "--columns label=NAME)"
    )
    return FormatError([Fault(message, file=file, line=1, kind="header")])


def integers(rows: Rows, role: str) -> NDArray[np.int64]:
    """A column of integers; empty cells are -1, an empty attempt the first."""
    blank = 0 if role == "attempt" else -1
    found = numbers(rows.columns[role], role, lambda i: place_of(rows, i), blank=blank)
    most = {"position": MAX_POSITION, "attempt": MAX_ATTEMPT}.get(role)
    if most is not None and (bad := np.flatnonzero((found < 0) | (found > most))).size:
        message = f"{role} must be a number from 0 to {most}"
        places = (place_of(rows, i) for i in bad.tolist())
        raise FormatError([replace(place, message=message, kind="number") for place in places])
    return found


def reject_empty(rows: Rows, roles: tuple[str, ...]) -> None:
    """Reject empty cells in some columns."""
    faults = []
    for role in roles:
        cells = rows.columns[role]
        words = cells.dictionary
        empty = pc.equal(words if role == "token" else pc.utf8_trim_whitespace(words), "")
        if not pc.any(empty).as_py():
            continue
        for i in np.flatnonzero(empty.take(cells.indices)).tolist():
            message = f"the {role} is empty: remove the row, or write the {role}"
            faults.append(Fault(message, rows.name, int(rows.line[i]), kind="empty-cell"))
    if faults:
        raise FormatError(faults)


def place_of(rows: Rows, i: int, token: int = -1) -> Fault:
    """Return a fault without a message that holds the place of a row."""
    item = rows.columns["item"][i].as_py()
    worker = "" if rows.is_gold else rows.columns["worker"][i].as_py()
    return Fault("", rows.name, int(rows.line[i]), item, token, worker)


# --------------------------------------------------------------------------------------------------
# Long tables of sequences: which token and which attempt every row is about.


@dataclass(frozen=True)
class Table:
    """A long table with ids instead of strings."""

    rows: Rows
    item: NDArray[np.int32]  # [n_rows], the items numbered in the order in which they come
    worker: NDArray[np.int32]  # [n_rows]
    codes: NDArray[np.int16]  # [n_rows], tag codes, -1 for no label
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
    """Where a worker shows all tokens of an item several times, start again each time."""
    # Without positions or attempts nothing else tells repeated answers from longer items
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
    """Number the answer that every row of a sequence belongs to, int16 [n_rows]."""
    if "attempt" in table.rows.columns:
        attempt = integers(table.rows, "attempt").astype(np.int16)
        _reject_twice(table, np.arange(len(attempt)), attempt, position)
        return attempt
    places = int(position.max()) + 1
    cell = table.item.astype(np.int64) * places + position
    _, compact = np.unique(cell, return_inverse=True)
    return number_attempts(compact.astype(np.int32), table.worker, options.repeated)


def shown_tokens(table: Table, position: NDArray[np.int64], offsets: NDArray[np.int64]) -> pa.Array:
    """Tokens of all items; every worker must have seen the same ones."""
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
    given: NDArray[np.bool_],  # [n_rows], whether a row holds an answer
    item: NDArray[np.int32],  # [n_answers], of the answers
    worker: NDArray[np.int32],  # [n_answers], of the answers
    options: ReadOptions,
) -> NDArray[np.int16]:
    """Number answers of one label, int16 [n_answers]."""
    if "attempt" in table.rows.columns:
        attempt = integers(table.rows, "attempt").astype(np.int16)[given]
        _reject_twice(table, np.flatnonzero(given), attempt, np.zeros(len(item), np.int64))
        return attempt
    return number_attempts(item, worker, options.repeated)


def _reject_twice(
    table: Table,
    rows: NDArray[np.int64],
    attempt: NDArray[np.int16],
    position: NDArray[np.int64],
) -> None:
    """Reject two labels for one item, worker, attempt and token."""
    keys = np.stack([table.item[rows], table.worker[rows], attempt, position])
    _, first, same = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    faults = []
    for i in np.flatnonzero(first[same.ravel()] != np.arange(len(rows))).tolist():
        line = int(table.rows.line[rows[first[same.ravel()[i]]]])
        message = (
            f"attempt {attempt[i]} appears twice (first in line {line}): give repeated answers "
            "different numbers"
        )
        place = place_of(table.rows, int(rows[i]), int(position[i]) if len(position) else -1)
        faults.append(replace(place, message=message, kind="duplicate-attempt"))
    if faults:
        raise FormatError(faults)


# --------------------------------------------------------------------------------------------------
# Long tables without workers: their labels are gold.


def read_gold(rows: Rows, options: ReadOptions, notes: tuple[str, ...]) -> Crowd:
    """Read a table of known labels as items with gold and no answers."""
    has_tokens, has_places = "token" in rows.columns, "position" in rows.columns
    reject_empty(rows, ("item", *(["token"] if has_tokens else [])))
    builder = CrowdBuilder(options, rows.name, "long")
    builder.in_cells = not has_tokens and not has_places
    builder.notes += [*notes, "no worker column: the labels are read as gold"]
    columns = {role: column.to_pylist() for role, column in rows.columns.items()}
    position = integers(rows, "position") if has_places else np.zeros(len(rows), np.int64)
    items: dict[str, list[int]] = {name: [] for name in columns["item"]}
    for i in np.argsort(position, kind="stable").tolist():
        items[columns["item"][i]].append(i)
    for name, places in items.items():
        builder.faults += _gold_faults(rows, name, position[places].tolist(), places)
        tokens = [columns["token"][i] for i in places] if has_tokens else [name] * len(places)
        if has_places and not has_tokens:
            tokens = [str(n) for n in range(len(places))]
        labels = [columns["label"][i] for i in places]
        builder.add_item(
            name,
            tokens,
            gold=[label if options.rename(label) is not None else None for label in labels],
            group=columns["doc"][places[0]] if "doc" in columns else None,
            text=(columns["text"][places[0]] or None) if "text" in columns else None,
            line=int(rows.line[places[0]]),
        )
    return builder.build(single=not has_tokens and not has_places)


def _gold_faults(rows: Rows, name: str, position: list[int], places: list[int]) -> Iterator[Fault]:
    if "position" in rows.columns:
        for n, (at, i) in enumerate(zip(position, places, strict=True)):
            if at - position[0] != n or position[0] > 1:
                message = f"position {at}: they must run from 0 or 1 without gaps or repeats"
                yield Fault(message, rows.name, int(rows.line[i]), name, kind="position")
                return
    elif "token" not in rows.columns and len(places) > 1:
        message = (
            "the item has several labels: if these are answers, name the worker column "
            "with columns={'worker': …} (--columns worker=NAME)"
        )
        yield Fault(message, rows.name, int(rows.line[places[1]]), name, kind="duplicate-item")


# --------------------------------------------------------------------------------------------------
# Reading long tables: from rows to items, workers and their answers.


def sniff(source: Source) -> bool:
    """Return whether the header has an item and a label column."""
    if source.is_folder:
        return False
    if source.is_parquet:
        return True
    names = {name.lower() for name in header_names(source)}
    return all(names & {*ROLES[role]} for role in ("item", "label"))


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read a long table."""

    def find(header: Sequence[str], named: ReadOptions) -> dict[str, str]:
        return find_roles(header, source.name, named)

    grid, found, options = open_table(source, options, find)
    is_frame = source.table is not None and not source.is_parquet
    label_type = type_of(grid.column(found["label"]).type) if is_frame else "text"
    is_text = source.table is None and not source.is_parquet
    # What TSV cannot quote, stands in it as a JSON string.
    is_tsv = is_text and (options.delimiter or guess_delimiter(first_line(source))) == "\t"
    rows, notes = rows_of(grid, found, is_tsv=is_tsv), grid.notes
    del grid  # only the columns that are read stay in memory
    crowd = read_rows(rows, options, notes)
    pa.default_memory_pool().release_unused()  # the room of the columns
    return replace(crowd, label_type=label_type)


def read_rows(rows: Rows, options: ReadOptions, notes: tuple[str, ...]) -> Crowd:
    """Make items, workers and their answers of rows."""
    if "token" in rows.columns and (filled := _filled_down(rows.columns["item"])) is not None:
        rows = replace(rows, columns={**rows.columns, "item": filled})
        notes = (*notes, "rows without an item are of the item above")
    rows, others = _as_named(rows, options)
    notes = (*notes, *others)
    if rows.is_gold:
        return read_gold(rows, options, notes)
    reject_empty(rows, ("item", "worker", *(["token"] if "token" in rows.columns else [])))
    item, worker, label = (rows.columns[role] for role in ("item", "worker", "label"))
    sequences = "token" in rows.columns or "position" in rows.columns
    strings = label.dictionary.to_pylist()
    named = replace(options, encoding=_encoding(rows, strings, options, sequences))
    labels = read_labels(strings, named, cells=not sequences)
    # The numbers of words are in the order in which they come, as the counts are.
    n_each = pc.value_counts(label.indices).field("counts").to_numpy()
    notes = (*notes, *labels.notes, *missing_notes(strings, n_each, options))
    unknown, several = label_faults(labels, _places(rows, labels.wrong), options)
    reject_unknown(unknown, options)
    if several and options.strict:
        raise FormatError(several)
    table = Table(
        rows,
        item.indices.to_numpy(),
        worker.indices.to_numpy(),
        pa.array(labels.codes).take(label.indices).to_numpy(),
        len(item.dictionary),
    )
    tokens, offsets, answers = (
        _sequences(table, options) if sequences else _single(table, item.dictionary, options)
    )
    texts, said = _texts(table)
    notes = (*notes, *said)
    if "attempt" in rows.columns and options.repeated == "first":
        attempt = count_first(answers.item, answers.worker, answers.attempt)
        answers = replace(answers, attempt=attempt)
    faults = (*unknown, *several, *stripped_faults(strings, rows.name, options))
    reasons = Counter(fault.kind for fault in several)
    report = ImportReport(rows.name, "long", reasons=reasons, faults=faults, notes=notes)
    crowd = Crowd(
        item_ids=item.dictionary,
        tokens=list_array(tokens, offsets),
        worker_ids=worker.dictionary,
        tagset=labels.tagset,
        answers=answers,
        groups=_first_of(table, "doc"),
        texts=texts,
        token_start=None if texts is None else _starts(table, texts, tokens, offsets),
        import_report=counted_answers(report, answers, options),
    )
    if labels.members:
        asked = ask_each(crowd, labels.members)
        if "gold" in rows.columns:
            bare = crowd.unanswered(Codec((), "PLAIN"))
            known = _with_gold(bare, table, replace(options, several="labels"))
            asked = with_label_sets(asked, sets_of(known, chars=False))
        return keep_workers(asked, options)
    if "gold" in rows.columns:
        crowd = _with_gold(crowd, table, options)
    return keep_workers(settle(crowd, options), options)


def _as_named(rows: Rows, options: ReadOptions) -> tuple[Rows, list[str]]:
    """Leave out columns whose cells are not what their names say, with a note of each."""
    columns, notes = dict(rows.columns), []
    time = columns.pop("time", None)
    if time is not None and "submitted" not in columns:
        try:
            numbers(time, "submitted", lambda i: place_of(rows, i))
            columns["submitted"] = time
        except FormatError:
            notes.append("times that are neither ISO times nor whole numbers are not read")
    if not {"token", "position"} & {*options.columns} and "token" not in columns:
        pair = columns["item"].indices.to_numpy().astype(np.int64)
        if not rows.is_gold:
            pair = pair * len(columns["worker"].dictionary) + columns["worker"].indices.to_numpy()
        several = "position" in columns and pc.count_distinct(columns["position"]).as_py() > 1
        if several and len(np.unique(pair)) == len(rows):
            del columns["position"]
            note = "numbers of rows or questions are not read; if they are positions of tokens, "
            notes.append(f"{note}pass columns={{'position': …}} (--columns position=NAME)")
    return replace(rows, columns=columns), notes


def _filled_down(items: pa.Array) -> pa.Array | None:
    """Return the items where each is named in its first row only, else None."""
    codes, empty = items.indices.to_numpy(), pc.index(items.dictionary, "").as_py()
    named = codes != empty
    if empty < 0 or not named[0] or not 1 < named.sum() == len(items.dictionary) - 1:
        return None
    above = np.maximum.accumulate(np.where(named, np.arange(len(codes)), 0))
    return numbered(items.take(pa.array(above)), "item", "")


def _places(rows: Rows, bad: Collection[int]) -> Iterator[tuple[int, Fault]]:
    if bad:
        label = rows.columns["label"].indices.to_numpy()
        for i in np.flatnonzero(np.isin(label, list(bad))).tolist():
            yield int(label[i]), place_of(rows, i)


def _encoding(rows: Rows, labels: list[str], options: ReadOptions, sequences: bool) -> str:
    if options.encoding or not sequences:
        return options.encoding or "PLAIN"
    gold = rows.columns["gold"].dictionary.to_pylist() if "gold" in rows.columns else []
    names = (options.rename(label) for label in [*labels, *gold])
    return guess_encoding(name for name in names if name is not None)


_Parts = tuple[pa.Array, NDArray[np.int64], Answers]


def _single(table: Table, ids: pa.Array, options: ReadOptions) -> _Parts:
    """Answers of one label each; the item's one token is its id."""
    given = table.codes >= 0
    item, worker, codes = table.item, table.worker, table.codes
    if not given.all():
        item, worker, codes = item[given], worker[given], codes[given]
    answers = Answers(
        item,
        worker,
        np.arange(len(item) + 1, dtype=np.int64),
        codes,
        attempts(table, given, item, worker, options),
        **_extras(table.rows, given),
    )
    return ids, np.arange(table.n_items + 1, dtype=np.int64), answers


def _sequences(table: Table, options: ReadOptions) -> _Parts:
    """Rows of one item, worker and attempt are one answer, in order of position."""
    rows, n = table.rows, len(table.rows)
    position = positions(table)
    attempt = row_attempts(table, position, options)
    order = np.lexsort((position, attempt, table.worker, table.item))
    item, worker, tries = table.item[order], table.worker[order], attempt[order]
    fresh = np.ones(n, np.bool_)
    fresh[1:] = (np.diff(item) != 0) | (np.diff(worker) != 0) | (np.diff(tries) != 0)
    head = np.flatnonzero(fresh)
    n_tokens = np.zeros(table.n_items, np.int64)
    np.maximum.at(n_tokens, item, position[order] + 1)
    offsets = np.concatenate([[0], np.cumsum(n_tokens)])
    tokens = shown_tokens(table, position, offsets)
    answer_item = item[head]
    lengths = n_tokens[answer_item]
    offset = np.concatenate([[0], np.cumsum(lengths)])
    codes = np.full(int(offset[-1]), -1, np.int16)
    answer = np.cumsum(fresh) - 1
    codes[offset[answer] + position[order]] = table.codes[order]
    by_first_row = np.argsort(np.minimum.reduceat(order, head), kind="stable")
    answers = Answers(
        answer_item, worker[head], offset, codes, tries[head], **_extras(rows, order[head])
    )
    return tokens, offsets, answers.take(by_first_row)


def _extras(
    rows: Rows, which: NDArray[np.int64] | NDArray[np.bool_]
) -> dict[str, NDArray[np.int64]]:
    names = [name for name in ANSWER_COLUMNS if name in rows.columns]
    if "guideline" in names:
        is_number = pc.match_substring_regex(rows.columns["guideline"], r"^\s*-?\d{0,18}\s*$")
        if not pc.all(is_number).as_py():
            names.remove("guideline")  # a text column of another tool
    return {name: integers(rows, name)[which] for name in names}


def _texts(table: Table) -> tuple[pa.Array | None, tuple[str, ...]]:
    """The text of every item, None where none is known, and what there is to note."""
    if "text" not in table.rows.columns:
        return None, ()
    cells = table.rows.columns["text"]
    words = cells.dictionary.to_pylist()
    if table.rows.is_tsv:
        words = _unquoted(words)
    codes = cells.indices.to_numpy()
    given = np.flatnonzero(np.array([bool(word) for word in words])[codes])
    if not len(given):
        return None, ()
    items = table.item[given]
    first = np.full(table.n_items, -1, np.int64)
    first[items[::-1]] = codes[given][::-1]
    n_clashes = len(np.unique(items[first[items] != codes[given]]))
    if n_clashes:
        return None, (f"column 'text' says different things of {n_clashes} items: it is not read",)
    texts = [None if code < 0 else words[code] for code in first.tolist()]
    return pa.array(texts, pa.string()), ()


def _unquoted(words: list[str]) -> list[str]:
    """Return the texts of a TSV: JSON strings, or cells of a program that quotes as in CSV."""
    # Quotes that only some cells have are part of the texts, unless one is doubled within them
    read = [read_json_text(word) if word else word for word in words]
    known = [text for text in read if text is not None]
    if len(known) == len(words):
        return known
    quoted = [_QUOTED.fullmatch(word) is not None for word in words]
    is_all = all(one or not word.startswith('"') for one, word in zip(quoted, words, strict=True))
    if not is_all or not any('""' in word[1:-1] for word in words if word.startswith('"')):
        return words
    return [
        word[1:-1].replace('""', '"') if one else word
        for one, word in zip(quoted, words, strict=True)
    ]


_QUOTED = re.compile(r'"(?:[^"]|"")*"')


def _starts(
    table: Table, texts: pa.Array, tokens: pa.Array, offsets: NDArray[np.int64]
) -> NDArray[np.int32] | None:
    """Where the tokens begin in the texts, if the table says so of all of them."""
    cells = table.rows.columns.get("offsets")
    if cells is None or not are_offsets(iter(cells.dictionary.to_pylist())):
        return None
    marks = np.full(int(offsets[-1]), UNKNOWN, object)
    place = positions(table)
    words = np.array(cells.dictionary.to_pylist(), object)
    marks[offsets[table.item] + place] = words[cells.indices.to_numpy()]
    found: list[int] = []
    flat, bounds = tokens.to_pylist(), offsets.tolist()
    for n, text in enumerate(texts.to_pylist()):
        part = slice(bounds[n], bounds[n + 1])
        try:
            row = None if text is None else read_offsets(marks[part].tolist(), text, flat[part])
        except InputError as error:
            i = int(np.flatnonzero(table.item == n)[0])
            raise FormatError(
                [replace(place_of(table.rows, i), message=str(error), kind="offsets")]
            ) from None
        found += row or []
    return np.array(found, np.int32) if len(found) == len(flat) else None


def _first_of(table: Table, role: str) -> pa.Array | None:
    if role not in table.rows.columns:
        return None
    _, first = np.unique(table.item, return_index=True)
    return table.rows.columns[role].take(pa.array(first)).dictionary_decode()


def _with_gold(crowd: Crowd, table: Table, options: ReadOptions) -> Crowd:
    """Take gold from a column; its cells must agree wherever one token has several rows."""
    cells = table.rows.columns["gold"]
    position = np.zeros(len(table.rows), np.int64)
    if not crowd.is_classification:
        position = positions(table)
    flat = crowd.offsets[table.item] + position
    first = np.full(crowd.n_tokens, -1, np.int64)
    codes = cells.indices.to_numpy()
    words = cells.dictionary.to_pylist()
    given = np.array([options.rename(word) is not None for word in words])[codes]
    first[flat[given][::-1]] = codes[given][::-1]
    clash = np.flatnonzero(given & (first[flat] != codes))
    if len(clash):
        faults = []
        for i in clash.tolist():
            other = words[first[flat[i]]]
            message = f"gold {words[codes[i]]!r} where an earlier row has {other!r}"
            token = -1 if crowd.is_classification else int(position[i])
            place = place_of(table.rows, i, token)
            faults.append(replace(place, message=message, kind="contradictory-gold"))
        raise FormatError(faults)
    return with_gold_labels(
        crowd, [words[c] if c >= 0 else None for c in first.tolist()], options, table.rows.name
    )


# --------------------------------------------------------------------------------------------------
# Writing long tables.


def write(crowd: Crowd, path: Path, *, text: bool = True, raw_csv: bool = False) -> None:
    """Write a long CSV (TSV for `.tsv`): every answer's every token on a row."""
    if not len(crowd.answers):
        raise InputError(
            "a long table has a row per answer, and the crowd has none: write another format, such "
            "as conll or spans, which hold gold alone"
        )
    if asks_each(crowd):
        crowd = as_single(crowd)
    mark = "\t" if path.suffixes[:1] == [".tsv"] or path.suffix == ".tsv" else ","
    is_guarded = mark == "," and not raw_csv and _needs_guard(crowd)
    write_text(path, _lines(crowd, mark, text=text, is_guarded=is_guarded))


def _needs_guard(crowd: Crowd) -> bool:
    return any_formula(
        crowd.item_ids.to_pylist(),
        crowd.worker_ids.to_pylist(),
        [] if crowd.groups is None else crowd.groups.to_pylist(),
        crowd.tagset.tags,
        set(chain.from_iterable(crowd.tokens_list)),
        known_texts(crowd),
    )


def _lines(crowd: Crowd, mark: str, *, text: bool, is_guarded: bool) -> Iterator[str]:
    """One chunk of lines per answer, the answers in the order of their items."""
    answers, sequences = crowd.answers, not crowd.is_classification
    tags, texts = [*map(cell_text, crowd.tagset.tags), ""], known_texts(crowd)
    times = [n for n in ANSWER_COLUMNS if getattr(answers, n) is not None]
    names = _columns(crowd, texts if text else [])
    # TSV is never quoted, so that a token may be a quote.
    quotes: Any = {"quoting": csv.QUOTE_NONE, "quotechar": None} if mark == "\t" else {}
    if mark != "\t" and any("\r" in one for one in texts if one):
        quotes["quoting"] = csv.QUOTE_ALL  # else one that stands alone is not
    buffer = io.StringIO()
    out = csv.writer(buffer, delimiter=mark, lineterminator="\n", **quotes)
    # The text comes last, so that people see the other columns.
    first, last = [name for name in names if name != TEXT], [TEXT] if TEXT in names else []
    out.writerow([*first, *times, *last])
    if is_guarded:
        head = marked(buffer.getvalue())
        buffer.seek(0)
        buffer.truncate()
        buffer.write(head)
    shown = [cells for _, cells in texts_with_offsets(crowd)] if OFFSETS in names else []
    seen: set[int] = set()
    ids, workers = _words(crowd.item_ids), _words(crowd.worker_ids)
    groups = _words(crowd.groups) if crowd.groups is not None else ids
    gold = np.full(crowd.n_tokens, -1, np.int16) if crowd.gold is None else crowd.gold
    for a in np.argsort(answers.item, kind="stable").tolist():
        n, start = int(answers.item[a]), int(answers.offset[a])
        extra = [int(getattr(answers, name)[a]) for name in times]
        whole, places = texts[n], shown[n] if shown else []
        said = "" if whole is None else json_text(whole) if mark == "\t" else whole
        for place, token in enumerate(crowd.tokens_list[n]):
            row = {
                "item": ids[n],
                "doc": groups[n],
                "worker": workers[answers.worker[a]],
                "position": place,
                "token": cell_text(token),
                "label": tags[answers.codes[start + place]],
                "gold": tags[gold[crowd.offsets[n] + place]],
                "attempt": answers.attempt[a],
                OFFSETS: places[place] if places else "",
            }
            # A long text would stand there as often as the item has tokens and answers.
            row[TEXT] = said if not sequences or (n not in seen and not place) else ""
            cells = [*(row[name] for name in first), *extra, *(row[name] for name in last)]
            out.writerow([guard(cell) for cell in cells] if is_guarded else cells)
        seen.add(n)
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _columns(crowd: Crowd, texts: Sequence[str | None]) -> list[str]:
    """Name the columns; `texts` are those of the items, none if they are not written."""
    sequences = not crowd.is_classification
    heads = {
        "item": True,
        "doc": crowd.groups is not None,
        "worker": True,
        "position": sequences,
        "token": sequences,
        "label": True,
        "gold": crowd.gold is not None,
        "attempt": bool(crowd.answers.attempt.any()),
        OFFSETS: sequences and len(texts) > 0 and has_texts(crowd),
        TEXT: any(one is not None for one in texts),
    }
    return [name for name, there in heads.items() if there]


def _words(values: pa.Array) -> list[str]:
    return [cell_text(word or "") for word in values.to_pylist()]
