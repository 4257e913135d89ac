"""Reading long tables: from rows to items, workers and their answers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.crowd.formats.long.columns import (
    as_strings,
    frame_columns,
    numbered,
    parquet_table,
    type_of,
)
from goldspan.crowd.formats.long.gold import read_gold
from goldspan.crowd.formats.long.places import (
    Table,
    attempts,
    positions,
    row_attempts,
    shown_tokens,
)
from goldspan.crowd.formats.long.rows import (
    NUMBERS,
    ROLES,
    Rows,
    find_roles,
    integers,
    place_of,
    refuse_empty,
    rows_of_table,
)
from goldspan.crowd.formats.text_columns import (
    UNKNOWN,
    are_offsets,
    read_json_text,
    read_offsets,
)
from goldspan.crowd.grid import first_line, guess_delimiter, header_names, read_grid
from goldspan.crowd.labels import (
    guess_encoding,
    listed_bad_labels,
    missing_notes,
    read_labels,
    settle,
    stripped_faults,
)
from goldspan.crowd.model import Answers, Crowd, list_array
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.repeats import count_first
from goldspan.crowd.report import ImportReport
from goldspan.crowd.source import Source
from goldspan.crowd.workers import keep_workers
from goldspan.errors import Fault, FormatError, InputError


def sniff(source: Source) -> bool:
    """Say whether the header has an item and a label column."""
    if source.is_folder:
        return False
    if source.is_parquet:
        return True
    names = {name.lower() for name in header_names(source)}
    has = {role for role, known in ROLES.items() if names & set(known)}
    return {"item", "label"} <= has


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read a long table.

    Raises:
        FormatError: A column is missing, a cell that must not be is empty, the workers disagree
            on an item's tokens, or a label is no tag.
    """
    if source.is_parquet:
        table = parquet_table(source)
        found = find_roles(tuple(table.column_names), source.name, options)
        return _read(rows_of_table(table, source.name, found), options, ())
    grid = read_grid(source, options.delimiter)
    found = find_roles(grid.header, grid.name, options)
    columns = {
        role: (as_strings if role in NUMBERS else numbered)(grid.column(at), at, grid.name)
        for role, at in found.items()
    }
    # What TSV cannot quote, stands in it as a JSON string.
    is_tsv = (options.delimiter or guess_delimiter(first_line(source))) == "\t"
    rows = Rows(grid.name, columns, grid.line, is_tsv=is_tsv)
    return _read(rows, options, (*source.text.notes, *grid.notes))


def read_frame(frame: Any, options: ReadOptions) -> Crowd:
    """Read a DataFrame of any make (pandas, Polars, Arrow, …) as a long table.

    Raises:
        FormatError: As `read`.
    """
    name = "<DataFrame>"
    found: dict[str, str] = {}

    def choose(header: tuple[str, ...]) -> Iterable[str]:
        found.update(find_roles(header, name, options))
        return found.values()

    table = frame_columns(frame, choose)
    label_type = type_of(table.column(found["label"]).type)
    rows = rows_of_table(table, name, found)
    del table  # only the columns that are read stay in memory
    crowd = _read(rows, options, ())
    pa.default_memory_pool().release_unused()  # the room of the columns
    return replace(crowd, label_type=label_type)


def _read(rows: Rows, options: ReadOptions, notes: tuple[str, ...]) -> Crowd:
    if not len(rows):
        raise FormatError([Fault("the table has no row", file=rows.name, kind="empty")])
    if rows.is_gold:
        return read_gold(rows, options, notes)
    refuse_empty(rows, ("item", "worker", *(["token"] if "token" in rows.columns else [])))
    item, worker, label = (rows.columns[role] for role in ("item", "worker", "label"))
    sequences = "token" in rows.columns or "position" in rows.columns
    strings = label.dictionary.to_pylist()
    named = replace(options, encoding=_encoding(rows, strings, options, sequences))
    labels = read_labels(strings, named)
    # The numbers of words are in the order in which they come, as the counts are.
    n_each = pc.value_counts(label.indices).field("counts").to_numpy()
    notes = (*notes, *missing_notes(strings, n_each, options))
    unknown = listed_bad_labels(labels.bad, _places(rows, labels.bad), options)
    table = Table(
        rows,
        item.indices.to_numpy(),
        worker.indices.to_numpy(),
        pa.array(labels.codes).take(label.indices).to_numpy(),
        len(item.dictionary),
    )
    tokens, offsets, answers, reasons, faults = (
        _sequences(table, options) if sequences else _single(table, item.dictionary, options)
    )
    texts, said = _texts(table)
    notes = (*notes, *said)
    if "attempt" in rows.columns and options.repeated == "first":
        attempt = count_first(answers.item, answers.worker, answers.attempt)
        answers = replace(answers, attempt=attempt)
    crowd = Crowd(
        item_ids=item.dictionary,
        tokens=list_array(tokens, offsets),
        worker_ids=worker.dictionary,
        tagset=labels.tagset,
        answers=answers,
        groups=_first_of(table, "doc"),
        texts=texts,
        token_start=None if texts is None else _starts(table, texts, tokens, offsets),
        import_report=_report(
            rows,
            answers,
            options,
            notes,
            reasons,
            [*unknown, *faults, *stripped_faults(strings, rows.name, options)],
        ),
    )
    if "gold" in rows.columns:
        crowd = _with_gold(crowd, table, options)
    return keep_workers(settle(crowd, options), options)


def _places(rows: Rows, bad: Collection[int]) -> Iterator[tuple[int, Fault]]:
    """Every place of some labels, given by number."""
    if bad:
        label = rows.columns["label"].indices.to_numpy()
        for i in np.flatnonzero(np.isin(label, list(bad))).tolist():
            yield int(label[i]), place_of(rows, i)


def _encoding(rows: Rows, labels: list[str], options: ReadOptions, sequences: bool) -> str:
    """The encoding that answers and gold show together."""
    if options.encoding or not sequences:
        return options.encoding or "PLAIN"
    gold = rows.columns["gold"].dictionary.to_pylist() if "gold" in rows.columns else []
    names = (options.rename(label) for label in [*labels, *gold])
    return guess_encoding(name for name in names if name is not None)


_Parts = tuple[pa.Array, NDArray[np.int64], Answers, dict[str, int], list[Fault]]


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
    return ids, np.arange(table.n_items + 1, dtype=np.int64), answers, {}, []


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
    return tokens, offsets, answers.take(by_first_row), {}, []


def _extras(
    rows: Rows, which: NDArray[np.int64] | NDArray[np.bool_]
) -> dict[str, NDArray[np.int64]]:
    names = ("started", "submitted", "cost")
    return {name: integers(rows, name)[which] for name in names if name in rows.columns}


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
    """Return the texts of a TSV: JSON strings, or cells of a program that quotes as in CSV.

    Quotes that only some cells have are part of the texts, unless one is doubled within them.
    """
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
    """Where the tokens begin in the texts, if the table says so of all of them.

    Raises:
        FormatError: The text does not have a token there.
    """
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
    """The first row's cell of every item."""
    if role not in table.rows.columns:
        return None
    _, first = np.unique(table.item, return_index=True)
    return table.rows.columns[role].take(pa.array(first)).dictionary_decode()


def _with_gold(crowd: Crowd, table: Table, options: ReadOptions) -> Crowd:
    """Take gold from a column; its cells must agree wherever one token has several rows."""
    from goldspan.crowd.gold import with_gold_labels

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


def _report(
    rows: Rows,
    answers: Answers,
    options: ReadOptions,
    notes: tuple[str, ...],
    reasons: dict[str, int],
    faults: list[Fault],
) -> ImportReport:
    placed = int((answers.codes >= 0).sum())
    repeats = int((answers.attempt > 0).sum())
    listed = [*notes]
    if repeats:
        listed.append(f"{repeats} repeated answers: all kept, the {options.repeated} one counts")
    total = placed + sum(reasons.values())
    return ImportReport(rows.name, "long", total, placed, reasons, tuple(faults), tuple(listed))
