"""Wide tables: a row per token, a column per worker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.crowd.atomic import write_text
from goldspan.crowd.formats.columns import (
    OFFSETS,
    TEXT,
    are_offsets,
    as_strings,
    frame_columns,
    has_texts,
    json_text,
    read_json_text,
    read_offsets,
    texts_with_offsets,
)
from goldspan.crowd.formats.long import check_named, named_grid, read_wide
from goldspan.crowd.grid import Grid, cell_text, header_names
from goldspan.crowd.labels import (
    label_faults,
    missing_notes,
    read_labels,
    reject_unknown,
    settle,
    stripped_faults,
)
from goldspan.crowd.model import Answers, Crowd, list_array
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import ImportReport, Source
from goldspan.errors import Fault, FormatError, InputError

# --------------------------------------------------------------------------------------------------
# Which columns of a wide table describe the item, and which are workers.


TOKEN = ("token", "word", "tokens", "words")
_ITEM = ("item", "id", "item_id", "sentence_id", "sent_id", "task")
_DOC = ("doc", "document", "doc_id", "group")
_SENT = ("sent", "sentence", "sentence_number")
_GOLD = ("gold", "truth", "true")


@dataclass(frozen=True)
class Columns:
    """Places of the columns in the header; None for those that are not there."""

    token: int
    gold: int | None
    item: int | None
    doc: int | None
    sent: int | None
    attributes: tuple[int, ...]
    workers: tuple[int, ...]


def find_columns(grid: Grid, options: ReadOptions) -> Columns:
    """Find the columns by the user's names for them or by the usual ones."""

    def fault(message: str) -> FormatError:
        return FormatError([Fault(message, file=grid.name, line=1, kind="header")])

    def find(role: str, names: tuple[str, ...]) -> int | None:
        if role in options.columns:
            return grid.header.index(options.columns[role])
        lower = [name.lower() for name in grid.header]
        return next((lower.index(name) for name in names if name in lower), None)

    check_named(options.columns.values(), grid.header, grid.name)
    token = find("token", TOKEN)
    if token is None:
        raise fault(
            f"no token column in the header ({', '.join(grid.header[:8])} …): "
            "name it with columns={'token': …} (--columns token=NAME)"
        )
    gold = find("gold", _GOLD)
    first = max(token, gold if gold is not None else 0) + 1
    workers = tuple(range(first, len(grid.header)))
    if options.workers is not None:
        for name in options.workers:
            if name not in grid.header:
                raise fault(f"there is no worker column {name!r}")
        workers = tuple(grid.header.index(name) for name in options.workers)
    found = (find("item", _ITEM), find("doc", _DOC), find("sent", _SENT))
    item, doc, sent = (None if c in workers else c for c in found)
    used = {token, gold, item, doc, sent, *workers}
    # Columns behind the token that --workers does not name are neither workers nor attributes.
    attributes = tuple(c for c in range(first) if c not in used)
    return Columns(token, gold, item, doc, sent, attributes, workers)


# --------------------------------------------------------------------------------------------------
# Writing wide tables.


def write(crowd: Crowd, path: Path, *, text: bool = True) -> None:
    """Write a wide table with columns doc, sent (or item), attributes, token, gold, workers."""
    write_text(path, _lines(crowd if text else replace(crowd, texts=None, token_start=None)))


def _lines(crowd: Crowd) -> Iterator[str]:
    """One block of lines per item."""
    words = np.array([*map(cell_text, crowd.tagset.tags), "?"], object)
    _, values = _id_columns(crowd)
    extra, shows = _attributes_of(crowd).values(), _shows_text(crowd)
    shown = texts_with_offsets(crowd) if shows else repeat((None, []), crowd.n_items)
    yield "\t".join(map(cell_text, _header(crowd))) + "\n"
    answers, tokens = crowd.latest, crowd.tokens_list
    for n, (name, (whole, offsets)) in enumerate(zip(values, shown, strict=True)):
        size = len(tokens[n])
        columns: list[list[str]] = [[cell_text(part)] * size for part in name]
        columns += [_cells(column[n], size) for column in extra]
        if shows:
            # On the first row alone: a long text would stand there as often as it has tokens.
            said = "" if whole is None else json_text(whole)
            columns += [[said, *[""] * (size - 1)], offsets]
        columns.append([cell_text(token) for token in tokens[n]])
        if crowd.gold is not None:
            columns.append(words[crowd.gold[crowd.offsets[n] : crowd.offsets[n + 1]]].tolist())
        given = {int(answers.worker[a]): int(answers.offset[a]) for a in crowd.by_item[n]}
        for worker in range(crowd.n_workers):
            start = given.get(worker)
            codes = slice(start, (start or 0) + size)
            columns.append(["?"] * size if start is None else words[answers.codes[codes]].tolist())
        rows = zip(*columns, strict=True)
        yield ("\n" if n else "") + "".join("\t".join(row) + "\n" for row in rows)


def _id_columns(crowd: Crowd) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The columns that name an item: doc and sent where the id is made of them."""
    ids = crowd.item_ids.to_pylist()
    if crowd.groups is None:
        return ("item",), [(name,) for name in ids]
    groups = [group or "" for group in crowd.groups.to_pylist()]
    both: list[tuple[str, ...]] = list(zip(groups, ids, strict=True))
    if all(name.startswith(f"{doc}-") for doc, name in both):
        return ("doc", "sent"), [(doc, name[len(doc) + 1 :]) for doc, name in both]
    return ("doc", "item"), both


def _header(crowd: Crowd) -> tuple[str, ...]:
    gold = () if crowd.gold is None else ("gold",)
    head, workers = _id_columns(crowd)[0], crowd.worker_ids.to_pylist()
    text = (TEXT, OFFSETS) if _shows_text(crowd) else ()
    return (*head, *_attributes_of(crowd), *text, "token", *gold, *workers)


def _shows_text(crowd: Crowd) -> bool:
    taken = {*_attributes_of(crowd), *crowd.worker_ids.to_pylist()}
    return has_texts(crowd) and not taken & {TEXT, OFFSETS}


def _attributes_of(crowd: Crowd) -> dict[str, list[Any]]:
    return {} if crowd.attributes is None else crowd.attributes.to_pydict()


def _cells(value: object, size: int) -> list[str]:
    """What the rows of an item show of an attribute."""
    if isinstance(value, list) and len(value) == size:
        return [_cell(one) for one in value]
    return [_cell(value)] * size


def _cell(value: object) -> str:
    return "" if value is None else cell_text(str(value))


# --------------------------------------------------------------------------------------------------
# Wide tables: one row per token, one column per worker (`?` where a worker gave no label).


def sniff(source: Source) -> bool:
    """Return whether there is a header with a token column and, behind it, at least two more."""
    if source.is_folder:
        return False
    names = [name.lower() for name in header_names(source)]
    tokens = [i for i, name in enumerate(names) if name in TOKEN]
    # A column of that name is not a worker: this is a long table, or CoNLL columns with a header.
    tagged = {"label", "tag", "ner", "pos"} & set(names)
    return bool(tokens) and not tagged and len(names) > tokens[0] + 1


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read a wide table; a DataFrame without an item column is one item."""
    is_table = source.table is not None
    grid, options = (_grid_of(source), options) if is_table else named_grid(source, options)
    notes = () if is_table else source.text.notes
    source.release_text()
    has_tokens = "token" in options.columns or {*TOKEN} & {name.lower() for name in grid.header}
    if not has_tokens and (options.workers or "item" in options.columns):
        return read_wide(grid, options, notes)
    return _read(grid, options, notes)


def _grid_of(source: Source) -> Grid:
    table, name = frame_columns(source.table, lambda header: header), source.name
    cells = [as_strings(table.column(one), one, name).to_pylist() for one in table.column_names]
    if not len(table):
        raise FormatError([Fault("the table has no row", file=name, kind="empty")])
    return Grid(
        name,
        tuple(table.column_names),
        pa.array([cell for row in zip(*cells, strict=True) for cell in row], pa.string()),
        np.arange(1, len(table) + 1),
        np.zeros(len(table), np.int64),
    )


def _read(grid: Grid, options: ReadOptions, notes_before: tuple[str, ...]) -> Crowd:
    columns = find_columns(grid, options)
    _check_tokens(grid, columns.token)
    starts = _item_starts(grid, columns)
    ids, groups = _item_ids(grid, columns, starts)
    _check_unique(grid, ids, starts)
    offsets = np.append(starts, grid.n_rows)
    item_of = np.repeat(np.arange(len(starts)), np.diff(offsets))

    rows, place, raw, strings = _labels(grid, columns)
    labels = read_labels(strings, options)
    bad = _bad_places(grid, columns, labels.bad, raw, rows, place, ids, offsets)
    faults, _ = label_faults(labels, bad, options)
    reject_unknown(faults, options)
    codes = labels.codes[raw]
    gold, answers = _answers(columns, rows, place, codes, item_of, offsets)

    workers = [grid.header[c] for c in columns.workers]
    silent = [
        workers[w] for w in np.flatnonzero(np.bincount(answers.worker, minlength=len(workers)) == 0)
    ]
    notes = [*notes_before, *grid.notes, *labels.notes]
    if not workers and options.workers is None:
        last = "token" if columns.gold is None else "gold"
        notes.append(
            f"no worker columns: those up to {last} describe the item; name others with workers=…"
        )
    if silent:
        notes.append(f"{len(silent)} workers answered nothing: {', '.join(silent[:10])}")
    notes += missing_notes(strings, np.bincount(raw, minlength=len(strings)), options)
    n_placed = int((answers.codes >= 0).sum())
    faults += stripped_faults(strings, grid.name, options)
    report = ImportReport(grid.name, "wide", n_placed, n_placed, {}, tuple(faults), tuple(notes))
    tokens = grid.at(np.arange(grid.n_rows), columns.token).cast(pa.string())
    texts, token_start, shown = _texts(grid, columns, starts, list_array(tokens, offsets))
    columns = replace(columns, attributes=tuple(c for c in columns.attributes if c not in shown))
    crowd = Crowd(
        item_ids=ids,
        tokens=list_array(tokens, offsets),
        worker_ids=pa.array(workers, pa.string()),
        tagset=labels.tagset,
        answers=answers,
        groups=groups,
        gold=gold,
        texts=texts,
        token_start=token_start,
        attributes=_attributes(grid, columns, starts, offsets),
        import_report=report,
    )
    return settle(crowd, options)


def _check_tokens(grid: Grid, token: int) -> None:
    empty = np.flatnonzero(grid.lengths(token) == 0)
    if len(empty):
        message = "the token is empty: remove the row, or write the token"
        faults = [
            Fault(message, file=grid.name, line=line, kind="empty-token")
            for line in grid.line[empty].tolist()
        ]
        raise FormatError(faults)


def _item_starts(grid: Grid, columns: Columns) -> NDArray[np.int64]:
    """First row of every item: after a blank line, or where the item columns change."""
    new = np.diff(grid.block, prepend=-1) != 0
    for column in (columns.item, columns.doc, columns.sent):
        if column is not None:
            cells = grid.at(np.arange(grid.n_rows), column)
            new[1:] |= pc.not_equal(cells[1:], cells[:-1]).to_numpy(zero_copy_only=False)
    return np.flatnonzero(new)


def _item_ids(
    grid: Grid, columns: Columns, starts: NDArray[np.int64]
) -> tuple[pa.Array, pa.Array | None]:
    def cells(column: int) -> pa.Array:
        return grid.at(starts, column).cast(pa.string())

    groups = None if columns.doc is None else cells(columns.doc)
    if columns.item is not None:
        return cells(columns.item), groups
    if groups is None:
        if columns.sent is not None:
            return cells(columns.sent), None
        return pa.array([str(n + 1) for n in range(len(starts))], pa.string()), None
    if columns.sent is not None:
        return pc.binary_join_element_wise(groups, cells(columns.sent), "-"), groups
    documents = groups.dictionary_encode().indices.to_numpy()
    order = np.argsort(documents, kind="stable")
    head = np.flatnonzero(np.diff(documents[order], prepend=-1))
    number = np.empty(len(starts), np.int64)
    number[order] = np.arange(len(starts)) - np.repeat(head, np.diff(np.append(head, len(starts))))
    names = pa.array(number + 1).cast(pa.string())
    return pc.binary_join_element_wise(groups, names, "-"), groups


def _check_unique(grid: Grid, ids: pa.Array, starts: NDArray[np.int64]) -> None:
    first: dict[str, int] = {}
    faults = []
    for name, line in zip(ids.to_pylist(), grid.line[starts].tolist(), strict=True):
        if (before := first.setdefault(name, line)) != line:
            message = f"the item id appears twice (first in line {before}): ids must be unique"
            faults.append(Fault(message, grid.name, line, name, kind="duplicate-item"))
    if faults:
        raise FormatError(faults)


def _labels(
    grid: Grid, columns: Columns
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], list[str]]:
    """Find all label cells that are not `?` or empty."""
    gold = -1 if columns.gold is None else columns.gold
    wanted = np.array([gold, *columns.workers], np.int64)
    rows, place = grid.filled("?", wanted[wanted >= 0])
    if columns.gold is None:
        place += 1
    cells = grid.at(rows, wanted[place]).dictionary_encode()
    strings = cells.dictionary.to_pylist()
    return rows, place, cells.indices.to_numpy(zero_copy_only=False), strings


def _answers(
    columns: Columns,
    rows: NDArray[np.int64],
    place: NDArray[np.int64],
    codes: NDArray[np.int16],
    item_of: NDArray[np.int64],
    offsets: NDArray[np.int64],
) -> tuple[NDArray[np.int16] | None, Answers]:
    gold, theirs = None, codes >= 0
    if columns.gold is not None:
        gold = np.full(int(offsets[-1]), -1, np.int16)
        known = theirs & (place == 0)
        gold[rows[known]] = codes[known]
        theirs &= place > 0
    if not theirs.all():
        rows, place, codes = rows[theirs], place[theirs], codes[theirs]
    n_workers = max(1, len(columns.workers))
    answer = item_of[rows] * n_workers + place - 1
    answered = np.zeros((len(offsets) - 1) * n_workers, np.bool_)
    answered[answer] = True
    given = np.flatnonzero(answered)
    answer_item, answer_worker = np.divmod(given, n_workers)
    lengths = np.diff(offsets)[answer_item]
    offset = np.concatenate([[0], np.cumsum(lengths)])
    moved = np.zeros(len(answered), np.int64)  # from a token's row to its place in the answer
    moved[given] = offset[:-1] - offsets[answer_item]
    flat = np.full(int(offset[-1]), -1, np.int16)
    flat[moved[answer] + rows] = codes
    attempt = np.zeros(len(answer_item), np.int16)
    answers = Answers(
        answer_item.astype(np.int32), answer_worker.astype(np.int32), offset, flat, attempt
    )
    return gold, answers


def _texts(
    grid: Grid, columns: Columns, starts: NDArray[np.int64], tokens: pa.ListArray
) -> tuple[pa.Array | None, NDArray[np.int32] | None, set[int]]:
    """Read the texts and where the tokens begin, as goldspan writes them, and their columns."""
    place = {grid.header[c]: c for c in columns.attributes}
    if TEXT not in place:
        return None, None, set()
    cells = grid.at(np.arange(grid.n_rows), place[TEXT])
    given = cells.take(pa.array(starts)).to_pylist()
    texts = [read_json_text(cell) for cell in given]
    n_filled = grid.n_rows - pc.sum(pc.equal(cells, "")).as_py()
    n_texts = sum(text is not None for text in texts)
    if not n_texts or n_filled != n_texts:
        return None, None, set()
    found, shown = pa.array(texts, pa.string()), {place[TEXT]}
    at = place.get(OFFSETS)
    marks = [] if at is None else grid.at(np.arange(grid.n_rows), at).to_pylist()
    if not marks or not are_offsets(iter(marks)):
        return found, None, shown
    begin: list[list[int] | None] = []
    bounds = [*starts.tolist(), grid.n_rows]
    for n, (text, words) in enumerate(zip(texts, tokens.to_pylist(), strict=True)):
        row = marks[bounds[n] : bounds[n + 1]]
        try:
            begin.append(None if text is None else read_offsets(row, text, words))
        except InputError as error:
            line = int(grid.line[bounds[n]])
            fault = Fault(str(error), file=grid.name, line=line, kind="offsets")
            raise FormatError([fault]) from None
    known = [start for row in begin if row is not None for start in row]
    whole = len(known) == grid.n_rows
    return found, np.array(known, np.int32) if whole else None, {*shown, place[OFFSETS]}


def _attributes(
    grid: Grid, columns: Columns, starts: NDArray[np.int64], offsets: NDArray[np.int64]
) -> pa.Table | None:
    """Other columns: one string per item where it is the same on all tokens, else a list."""
    found: dict[str, Any] = {}
    for column in columns.attributes:
        cells = grid.at(np.arange(grid.n_rows), column).cast(pa.string())
        codes = cells.dictionary_encode().indices.to_numpy()
        first = np.repeat(codes[starts], np.diff(offsets))
        constant = bool((codes == first).all())
        name = grid.header[column]
        found[name] = cells.take(pa.array(starts)) if constant else list_array(cells, offsets)
    return pa.table(found) if found else None


def _bad_places(
    grid: Grid,
    columns: Columns,
    bad: dict[int, str],
    raw: NDArray[np.int32],
    rows: NDArray[np.int64],
    place: NDArray[np.int64],
    ids: pa.Array,
    offsets: NDArray[np.int64],
) -> Iterator[tuple[int, Fault]]:
    for i in np.flatnonzero(np.isin(raw, list(bad))).tolist():
        row, column = int(rows[i]), int(place[i])
        item = int(np.searchsorted(offsets, row, side="right")) - 1
        who = "gold" if column == 0 else grid.header[columns.workers[column - 1]]
        name, token = ids[item].as_py(), row - int(offsets[item])
        yield int(raw[i]), Fault("", grid.name, int(grid.line[row]), name, token, who)
