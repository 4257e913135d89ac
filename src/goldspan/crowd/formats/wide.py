"""Wide tables: a row per token, a column per worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.crowd.atomic import write_text
from goldspan.crowd.builder import counted_answers
from goldspan.crowd.formats import long
from goldspan.crowd.formats.columns import (
    OFFSETS,
    TEXT,
    are_offsets,
    as_strings,
    has_texts,
    json_text,
    numbered,
    read_json_text,
    read_offsets,
    texts_with_offsets,
)
from goldspan.crowd.grid import Grid, cell_text, header_names
from goldspan.crowd.guessing import ROLES, check_named, find_columns, open_table
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

TOKEN = ("token", "word", "tokens", "words")
_WIDE = {
    "token": TOKEN,
    "gold": ROLES["gold"],
    "sent": ("sent", "sentence", "sentence_number"),
    "item": ROLES["item"],
    "doc": ROLES["doc"],
}
_SINGLE = {role: long.ROLES[role] for role in ("item", "text", "gold", "doc")}
"""Roles of a table of single labels, with a row per item."""


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

    def every(header: Sequence[str], _: ReadOptions) -> dict[str, str]:
        return {name: name for name in header}

    grid, _, options = open_table(source, options, every)
    others = options.workers or ()
    check_named(options.columns.values(), grid.header, grid.name)
    check_named(others, grid.header, grid.name, "worker column")
    has_tokens = "token" in options.columns or {*TOKEN} & {name.lower() for name in grid.header}
    if not has_tokens and (options.workers or "item" in options.columns):
        found = find_columns(grid.header, grid.name, options, _SINGLE, others=others)
        return _read_single(grid, found, options)
    needed = ("token",)
    found = find_columns(grid.header, grid.name, options, _WIDE, needed=needed, others=others)
    return _read(grid, found, options)


def _read_single(grid: Grid, found: Mapping[str, str], options: ReadOptions) -> Crowd:
    """Read a table with a row per item and a column of single labels per annotator."""
    workers = options.workers or [name for name in grid.header if name not in found.values()]
    if not workers:
        raise FormatError([Fault("no column of an annotator is left", grid.name, 1, kind="header")])
    cells = _filled([grid.column(name) for name in workers], grid.name)
    # An item that nobody labelled stays an item
    bare = np.setdiff1d(np.arange(grid.n_rows), cells.row)
    row, column = np.append(cells.row, bare), np.append(cells.column, np.zeros_like(bare))
    raw = np.append(cells.raw, np.full(len(bare), len(cells.words), np.int32))
    order = np.lexsort((column, row))
    row, column, raw = row[order], column[order], raw[order]
    columns = {
        role: numbered(grid.column(name).take(pa.array(row)), name, grid.name)
        for role, name in found.items()
    }
    if "item" not in found:
        columns["item"] = numbered(pa.array(row + 1), "item", grid.name)
    columns["worker"] = numbered(pa.array(workers, pa.string()).take(column), "worker", grid.name)
    columns["label"] = numbered(pa.array([*cells.words, ""]).take(raw), "label", grid.name)
    rows = long.Rows(grid.name, columns, np.asarray(grid.line)[row])
    unread = [name for name in grid.header if name not in {*found.values(), *workers}]
    notes = [f"columns that are not read: {', '.join(unread[:12])}"] if unread else []
    return long.read_rows(rows, replace(options, workers=None), (*grid.notes, *notes))


def _read(grid: Grid, found: Mapping[str, str], options: ReadOptions) -> Crowd:
    """Read a table with a row per token."""
    header = list(grid.header)
    strings = {role: as_strings(grid.column(name), name, grid.name) for role, name in found.items()}
    first = max(header.index(found[role]) for role in ("token", "gold") if role in found) + 1
    workers = header[first:] if options.workers is None else list(options.workers)
    starts = _item_starts(grid, strings)
    offsets = np.append(starts, grid.n_rows)
    ids, groups = _item_ids(strings, starts)
    check_unique(ids, np.asarray(grid.line)[starts].tolist(), grid.name)
    notes = [*grid.notes]
    if not workers and options.workers is None:
        last = "gold" if "gold" in found else "token"
        notes.append(
            f"no worker columns: those up to {last} describe the item; name others with workers=…"
        )
    # Columns behind the token that --workers does not name are neither workers nor attributes.
    others = [name for name in header[:first] if name not in {*found.values(), *workers}]
    attributes = {name: as_strings(grid.column(name), name, grid.name) for name in others}
    tokens = list_array(strings["token"], offsets)
    texts, token_start, shown = _texts(grid, attributes, starts, tokens)
    return crowd_of_tags(
        grid.name,
        "wide",
        options,
        notes,
        ids=ids,
        groups=groups,
        tokens=tokens,
        line=np.asarray(grid.line),
        gold=grid.column(found["gold"]) if "gold" in found else None,
        workers=workers,
        given=map(grid.column, workers),
        texts=texts,
        token_start=token_start,
        attributes=_attributes({n: a for n, a in attributes.items() if n not in shown}, offsets),
    )


_EMPTY = pa.array(["", "?"])


class _Filled(NamedTuple):
    """The cells of some columns that are neither empty nor `?`."""

    row: NDArray[np.int64]  # [n_found]
    column: NDArray[np.int64]  # [n_found], its place among the columns
    raw: NDArray[np.int32]  # [n_found], index in `words`
    words: list[str]


def _filled(columns: Iterable[Any], file: str) -> _Filled:
    words: dict[str, int] = {}
    found = []
    for n, column in enumerate(columns):
        cells = as_strings(column, "", file)
        rows = np.flatnonzero(pc.invert(pc.is_in(cells, _EMPTY)))
        cells = cells.take(pa.array(rows)).dictionary_encode()
        own = [words.setdefault(word, len(words)) for word in cells.dictionary.to_pylist()]
        raw = np.array(own, np.int32)[cells.indices.to_numpy()]
        found.append((rows, np.full(len(rows), n), raw))
    row, at, raw = (np.concatenate(each) for each in zip(*found, strict=True))
    return _Filled(row, at, raw, [*words])


def crowd_of_tags(
    file: str,
    format: str,  # noqa: A002
    options: ReadOptions,
    notes: Sequence[str],
    *,
    ids: pa.Array,
    groups: pa.Array | None,
    tokens: pa.ListArray,
    line: NDArray[np.int64],  # [n_tokens], of every token
    gold: Any,  # [n_tokens] tags, None if there is no column of it
    workers: Sequence[str],
    given: Iterable[Any],  # [n_tokens] tags of every worker, one at a time
    texts: pa.Array | None,
    token_start: NDArray[np.int32] | None,
    attributes: pa.Table | None = None,
) -> Crowd:
    """Make a crowd of columns with a tag per token."""
    offsets = tokens.offsets.to_numpy().astype(np.int64)
    item_of = np.repeat(np.arange(len(ids)), np.diff(offsets))
    no_gold = pa.nulls(len(item_of), pa.string())
    cells = _filled(chain([no_gold if gold is None else gold], given), file)
    labels = read_labels(cells.words, options)
    bad = np.flatnonzero(np.isin(cells.raw, list(labels.bad)))
    bad = bad[np.lexsort((cells.column[bad], cells.row[bad]))]
    names = ["gold", *workers]

    def places() -> Iterator[tuple[int, Fault]]:
        for i in bad.tolist():
            row, item = int(cells.row[i]), int(item_of[cells.row[i]])
            where = (file, int(line[row]), ids[item].as_py(), row - int(offsets[item]))
            yield int(cells.raw[i]), Fault("", *where, names[cells.column[i]])

    faults, _ = label_faults(labels, places(), options)
    reject_unknown(faults, options)
    known, answers = _answers(cells, labels.codes[cells.raw], len(workers), item_of, offsets)
    counts = np.bincount(answers.worker, minlength=len(workers))
    silent = [name for name, count in zip(workers, counts, strict=False) if not count]
    notes = [*notes, *labels.notes]
    if silent:
        notes.append(f"{len(silent)} workers answered nothing: {', '.join(silent[:10])}")
    n_each = np.bincount(cells.raw, minlength=len(cells.words))
    notes += missing_notes(cells.words, n_each, options)
    faults += stripped_faults(cells.words, file, options)
    report = ImportReport(file, format, faults=tuple(faults), notes=tuple(notes))
    crowd = Crowd(
        item_ids=ids,
        tokens=tokens,
        worker_ids=pa.array(workers, pa.string()),
        tagset=labels.tagset,
        answers=answers,
        groups=groups,
        gold=None if gold is None else known,
        texts=texts,
        token_start=token_start,
        attributes=attributes,
        import_report=counted_answers(report, answers, options),
    )
    return settle(crowd, options)


def _answers(
    cells: _Filled,
    codes: NDArray[np.int16],  # [n_found] tag codes, -1 for no label
    n_workers: int,
    item_of: NDArray[np.int64],
    offsets: NDArray[np.int64],
) -> tuple[NDArray[np.int16], Answers]:
    """Return the gold, the first of the columns, and the answers by item and worker."""
    gold = np.full(int(offsets[-1]), -1, np.int16)
    known = (codes >= 0) & (cells.column == 0)
    gold[cells.row[known]] = codes[known]
    theirs = (codes >= 0) & (cells.column > 0)
    row, codes = cells.row[theirs], codes[theirs]
    answer = item_of[row] * n_workers + cells.column[theirs] - 1
    answered = np.zeros((len(offsets) - 1) * n_workers, np.bool_)
    answered[answer] = True
    given = np.flatnonzero(answered)
    answer_item, answer_worker = np.divmod(given, max(1, n_workers))
    lengths = np.diff(offsets)[answer_item]
    offset = np.concatenate([[0], np.cumsum(lengths)])
    moved = np.zeros(len(answered), np.int64)  # from a token's row to its place in the answer
    moved[given] = offset[:-1] - offsets[answer_item]
    flat = np.full(int(offset[-1]), -1, np.int16)
    flat[moved[answer] + row] = codes
    attempt = np.zeros(len(answer_item), np.int16)
    return gold, Answers(
        answer_item.astype(np.int32), answer_worker.astype(np.int32), offset, flat, attempt
    )


def _item_starts(grid: Grid, strings: Mapping[str, pa.Array]) -> NDArray[np.int64]:
    """First row of every item: after a blank line, or where the item columns change."""
    empty = np.flatnonzero(pc.equal(strings["token"], ""))
    if len(empty):
        message = "the token is empty: remove the row, or write the token"
        lines = (int(grid.line[n]) for n in empty.tolist())
        faults = [Fault(message, grid.name, line, kind="empty-token") for line in lines]
        raise FormatError(faults)
    new = np.diff(grid.block, prepend=-1) != 0
    for role in {"item", "doc", "sent"} & {*strings}:
        cells = strings[role]
        new[1:] |= pc.not_equal(cells[1:], cells[:-1]).to_numpy(zero_copy_only=False)
    return np.flatnonzero(new)


def _item_ids(
    strings: Mapping[str, pa.Array], starts: NDArray[np.int64]
) -> tuple[pa.Array, pa.Array | None]:
    cells = {
        role: strings[role].take(starts) for role in ("item", "doc", "sent") if role in strings
    }
    groups = cells.get("doc")
    if "item" in cells:
        return cells["item"], groups
    if groups is None:
        numbers = pa.array(np.arange(1, len(starts) + 1)).cast(pa.string())
        return cells.get("sent", numbers), None
    if "sent" in cells:
        return pc.binary_join_element_wise(groups, cells["sent"], "-"), groups
    documents = groups.dictionary_encode().indices.to_numpy()
    order = np.argsort(documents, kind="stable")
    head = np.flatnonzero(np.diff(documents[order], prepend=-1))
    number = np.empty(len(starts), np.int64)
    number[order] = np.arange(len(starts)) - np.repeat(head, np.diff(np.append(head, len(starts))))
    names = pa.array(number + 1).cast(pa.string())
    return pc.binary_join_element_wise(groups, names, "-"), groups


def check_unique(ids: pa.Array, lines: Sequence[int], file: str) -> None:
    """Reject ids of items that come twice."""
    first: dict[str, int] = {}
    faults = []
    for name, line in zip(ids.to_pylist(), lines, strict=True):
        if (before := first.setdefault(name, line)) != line:
            message = f"the item id appears twice (first in line {before}): ids must be unique"
            faults.append(Fault(message, file, line, name, kind="duplicate-item"))
    if faults:
        raise FormatError(faults)


def _texts(
    grid: Grid,
    attributes: Mapping[str, pa.Array],
    starts: NDArray[np.int64],
    tokens: pa.ListArray,
) -> tuple[pa.Array | None, NDArray[np.int32] | None, set[str]]:
    """Read the texts and where the tokens begin, as goldspan writes them, and their columns."""
    if TEXT not in attributes:
        return None, None, set()
    cells = attributes[TEXT]
    texts = [read_json_text(cell) for cell in cells.take(starts).to_pylist()]
    n_texts = sum(text is not None for text in texts)
    if not n_texts or pc.sum(pc.not_equal(cells, "")).as_py() != n_texts:
        return None, None, set()
    found = pa.array(texts, pa.string())
    marks = attributes[OFFSETS].to_pylist() if OFFSETS in attributes else []
    if not are_offsets(iter(marks)):
        return found, None, {TEXT}
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
    return found, np.array(known, np.int32) if whole else None, {TEXT, OFFSETS}


def _attributes(columns: Mapping[str, pa.Array], offsets: NDArray[np.int64]) -> pa.Table | None:
    """Other columns: one string per item where it is the same on all tokens, else a list."""
    found: dict[str, Any] = {}
    for name, cells in columns.items():
        codes = cells.dictionary_encode().indices.to_numpy()
        constant = (codes == np.repeat(codes[offsets[:-1]], np.diff(offsets))).all()
        found[name] = cells.take(offsets[:-1]) if constant else list_array(cells, offsets)
    return pa.table(found) if found else None
