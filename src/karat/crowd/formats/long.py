"""Long tables: one row per answer, or per answered token.

`item, worker, label` is a crowd of single labels (PLAIN, one token per item). With a `token` or a
`position` column the rows of one item and worker are a sequence. Without a worker column the labels
are gold. CSV and TSV, Parquet, and DataFrames of any make.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from karat.crowd.atomic import write_text
from karat.crowd.grid import first_line, guess_delimiter, read_grid
from karat.crowd.labels import bad_label_faults, read_labels, settle
from karat.crowd.model import Answers, Crowd, list_array
from karat.crowd.options import ReadOptions
from karat.crowd.repeats import number_attempts
from karat.crowd.report import ImportReport
from karat.crowd.source import Source
from karat.errors import Fault, FormatError

SUMMARY = "one row per answer: item, worker, label (and token for sequences)"
SUFFIXES = (".csv", ".tsv", ".parquet")

ROLES: dict[str, tuple[str, ...]] = {
    "item": ("item", "task", "item_id", "task_id", "question", "question_id", "id", "sentence_id"),
    "worker": ("worker", "annotator", "worker_id", "workerid", "annotator_id", "user", "labeler"),
    "label": ("label", "tag", "answer", "response", "annotation", "category"),
    "token": ("token", "word"),
    "position": ("position", "token_index", "token_id", "index"),
    "gold": ("gold", "truth"),
    "doc": ("doc", "document", "group"),
    "attempt": ("attempt",),
    "started": ("started",),
    "submitted": ("submitted", "time", "timestamp"),
    "cost": ("cost",),
}


def sniff(source: Source) -> bool:
    """Say whether the header has an item and a label column, and no column of tokens alone."""
    if source.is_folder:
        return False
    if source.is_parquet:
        return True
    line = first_line(source)
    names = {name.strip().strip('"').lower() for name in line.split(guess_delimiter(line))}
    has = {role for role, known in ROLES.items() if names & set(known)}
    return {"item", "label"} <= has and ("worker" in has or "token" not in has)


@dataclass(frozen=True)
class _Rows:
    """The columns of a long table by role, with the place of every row."""

    name: str
    columns: dict[str, pa.Array]
    line: NDArray[np.int64]
    first_line: int

    def __len__(self) -> int:
        return len(self.columns["item"])

    @property
    def is_gold(self) -> bool:
        """Whether nobody is named, so that the labels are the truth."""
        return "worker" not in self.columns


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read a long table.

    Raises:
        FormatError: A column is missing, a cell that must not be is empty, the workers disagree
            on an item's tokens, or a label is no tag.
    """
    if source.is_parquet:
        import io

        import pyarrow.parquet as pq

        try:
            table = pq.read_table(io.BytesIO(source.data))
        except (pa.ArrowInvalid, OSError) as error:
            message = f"the Parquet file is damaged: {error}"
            raise FormatError([Fault(message, file=source.name, kind="parquet")]) from None
        return _read(_from_table(table, source.name, options), options, ())
    grid = read_grid(source, options.delimiter)
    found = _find_roles(grid.header, grid.name, options)
    columns = {role: grid.column(name).cast(pa.string()) for role, name in found.items()}
    rows = _Rows(grid.name, columns, grid.line, 2)
    return _read(rows, options, source.text.notes)


def read_frame(frame: Any, options: ReadOptions) -> Crowd:
    """Read a DataFrame of any make (pandas, Polars, Arrow, …) as a long table.

    Raises:
        FormatError: As `read`.
    """
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True).to_arrow()
    return _read(_from_table(table, "<DataFrame>", options), options, ())


def _from_table(table: pa.Table, name: str, options: ReadOptions) -> _Rows:
    found = _find_roles(tuple(table.column_names), name, options)
    columns = {}
    for role, column in found.items():
        values = table.column(column).combine_chunks()
        values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if pa.types.is_floating(values.type) and role in {"item", "worker", "label"}:
            whole = pc.all(pc.equal(pc.floor(values), values), skip_nulls=True).as_py()
            values = values.cast(pa.int64()) if whole else values
        columns[role] = pc.fill_null(values.cast(pa.string()), "")
    return _Rows(name, columns, np.arange(1, len(table) + 1), 1)


def _find_roles(header: tuple[str, ...], file: str, options: ReadOptions) -> dict[str, str]:
    found: dict[str, str] = {}
    lower = {name.lower(): name for name in reversed(header)}
    for role, names in ROLES.items():
        wanted = options.columns.get(role)
        if wanted is not None and wanted not in header:
            message = f"there is no column {wanted!r}: the header has {', '.join(header)}"
            raise FormatError([Fault(message, file=file, line=1, kind="header")])
        taken = set(found.values())
        guess = next((lower[n] for n in names if n in lower and lower[n] not in taken), None)
        if wanted or guess:
            found[role] = wanted or str(guess)
    absent = [role for role in ("item", "label") if role not in found]
    if absent:
        message = (
            f"no column for {' and '.join(absent)} (the header has {', '.join(header)}): "
            f"name it with columns={{{absent[0]!r}: …}} (--columns {absent[0]}=NAME)"
        )
        raise FormatError([Fault(message, file=file, line=1, kind="header")])
    return found


def _read(rows: _Rows, options: ReadOptions, notes: tuple[str, ...]) -> Crowd:
    if not len(rows):
        raise FormatError([Fault("the table has no row", file=rows.name, kind="empty")])
    if rows.is_gold:
        return _read_gold(rows, options, notes)
    _refuse_empty(rows, ("item", "worker"))
    item = rows.columns["item"].dictionary_encode()
    worker = rows.columns["worker"].dictionary_encode()
    label = rows.columns["label"].dictionary_encode()
    sequences = "token" in rows.columns or "position" in rows.columns
    labels = read_labels(label.dictionary.to_pylist(), options, single=not sequences)
    if labels.bad:
        raw = label.indices.to_numpy()
        hit = np.flatnonzero(np.isin(raw, list(labels.bad)))
        places = ((int(raw[i]), _place(rows, int(i))) for i in hit)
        raise FormatError(bad_label_faults(labels.bad, places))
    table = _Table(
        rows,
        item.indices.to_numpy().astype(np.int32),
        worker.indices.to_numpy().astype(np.int32),
        labels.codes[label.indices.to_numpy()],
        len(item.dictionary),
    )
    tokens, offsets, answers, reasons, faults = (
        _sequences(table, options) if sequences else _single(table, item.dictionary, options)
    )
    gold, tagset = None, labels.tagset
    crowd = Crowd(
        item_ids=item.dictionary.cast(pa.string()),
        tokens=list_array(tokens, offsets),
        worker_ids=worker.dictionary.cast(pa.string()),
        tagset=tagset,
        answers=answers,
        groups=_first_of(table, "doc"),
        gold=gold,
        import_report=_report(rows, answers, options, notes, reasons, faults),
    )
    if "gold" in rows.columns:
        crowd = _with_gold(crowd, table, options)
    return settle(crowd, options)


def _read_gold(rows: _Rows, options: ReadOptions, notes: tuple[str, ...]) -> Crowd:
    """Read a table of known labels as items with gold and no answers."""
    from karat.crowd.builder import CrowdBuilder

    _refuse_empty(rows, ("item",))
    builder = CrowdBuilder(options, rows.name, "long")
    builder.notes += [*notes, "no worker column: the labels are read as gold"]
    ids, labels = rows.columns["item"].to_pylist(), rows.columns["label"].to_pylist()
    words = rows.columns["token"].to_pylist() if "token" in rows.columns else None
    items: dict[str, list[int]] = {}
    for i, name in enumerate(ids):
        items.setdefault(name, []).append(i)
    for name, places in items.items():
        tokens = [words[i] for i in places] if words else [name] * len(places)
        gold = [options.rename(labels[i]) and labels[i] for i in places]
        line = int(rows.line[places[0]])
        if len(places) > 1 and words is None:
            message = "the item has several labels: if these are answers, name the worker column"
            message += " with columns={'worker': …} (--columns worker=NAME)"
            where = Fault(
                message, rows.name, int(rows.line[places[1]]), name, kind="duplicate-item"
            )
            builder.faults.append(where)
        builder.add_item(name, tokens, gold=gold, line=line)
    return builder.build(single=words is None)


@dataclass(frozen=True)
class _Table:
    rows: _Rows
    item: NDArray[np.int32]
    worker: NDArray[np.int32]
    codes: NDArray[np.int16]
    n_items: int


_Parts = tuple[pa.Array, NDArray[np.int64], Answers, dict[str, int], list[Fault]]


def _single(table: _Table, ids: pa.Array, options: ReadOptions) -> _Parts:
    """Answers of one label each; the item's one token is its id."""
    given = np.flatnonzero(table.codes >= 0)
    item, worker = table.item[given], table.worker[given]
    answers = Answers(
        item,
        worker,
        np.arange(len(given) + 1, dtype=np.int64),
        table.codes[given],
        _attempts(table, given, item, worker, options),
        **_extras(table.rows, given),
    )
    offsets = np.arange(table.n_items + 1, dtype=np.int64)
    return ids.cast(pa.string()), offsets, answers, {}, []


def _sequences(table: _Table, options: ReadOptions) -> _Parts:
    """Rows of one item, worker and attempt are one answer, in order of position."""
    rows, n = table.rows, len(table.rows)
    position = _position(table)
    attempt = _row_attempts(table, position, options)
    order = np.lexsort((position, attempt, table.worker, table.item))
    item, worker, tries = table.item[order], table.worker[order], attempt[order]
    fresh = np.ones(n, np.bool_)
    fresh[1:] = (np.diff(item) != 0) | (np.diff(worker) != 0) | (np.diff(tries) != 0)
    head = np.flatnonzero(fresh)
    n_tokens = np.zeros(table.n_items, np.int64)
    np.maximum.at(n_tokens, item, position[order] + 1)
    offsets = np.concatenate([[0], np.cumsum(n_tokens)])
    tokens = _tokens(table, position, offsets)
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


def _position(table: _Table) -> NDArray[np.int64]:
    """Place of every row in its item: the `position` column, or the order of the rows."""
    rows = table.rows
    if "position" in rows.columns:
        found = _integers(rows, "position")
        if (found < 0).any():
            bad = np.flatnonzero(found < 0)
            faults = [replace(_place(rows, int(i)), message="no position") for i in bad]
            raise FormatError(faults)
        lowest = int(found.min())
        return found - (1 if lowest == 1 else 0)
    tries = (
        _integers(rows, "attempt") if "attempt" in rows.columns else np.zeros(len(rows), np.int64)
    )
    order = np.lexsort((np.arange(len(rows)), tries, table.worker, table.item))
    keys = np.stack([table.item[order], table.worker[order], tries[order]])
    fresh = np.ones(len(rows), np.bool_)
    fresh[1:] = (np.diff(keys, axis=1) != 0).any(axis=0)
    head = np.flatnonzero(fresh)
    rank = np.arange(len(rows)) - np.repeat(head, np.diff(np.append(head, len(rows))))
    position = np.empty(len(rows), np.int64)
    position[order] = rank
    return position


def _row_attempts(
    table: _Table, position: NDArray[np.int64], options: ReadOptions
) -> NDArray[np.int16]:
    if "attempt" in table.rows.columns:
        return _integers(table.rows, "attempt").astype(np.int16)
    places = int(position.max()) + 1
    cell = table.item.astype(np.int64) * places + position
    _, compact = np.unique(cell, return_inverse=True)
    return number_attempts(compact.astype(np.int32), table.worker, options.repeated)


def _tokens(table: _Table, position: NDArray[np.int64], offsets: NDArray[np.int64]) -> pa.Array:
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
    words = rows.columns["token"].dictionary_encode()
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
        faults.append(replace(_place(rows, i, int(position[i])), message=message, kind="tokens"))
    for place in np.flatnonzero(found < 0).tolist():
        n = int(np.searchsorted(offsets, place, side="right")) - 1
        name = rows.columns["item"].dictionary_encode().dictionary[n].as_py()
        message = "no row shows this token"
        faults.append(Fault(message, rows.name, 0, name, place - int(offsets[n]), kind="tokens"))
    if faults:
        raise FormatError(faults)
    return words.dictionary.take(pa.array(found)).cast(pa.string())


def _attempts(
    table: _Table,
    given: NDArray[np.int64],
    item: NDArray[np.int32],
    worker: NDArray[np.int32],
    options: ReadOptions,
) -> NDArray[np.int16]:
    if "attempt" in table.rows.columns:
        return _integers(table.rows, "attempt").astype(np.int16)[given]
    return number_attempts(item, worker, options.repeated)


def _extras(rows: _Rows, which: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    names = ("started", "submitted", "cost")
    return {name: _integers(rows, name)[which] for name in names if name in rows.columns}


def _integers(rows: _Rows, role: str) -> NDArray[np.int64]:
    """A column of integers; empty cells are -1.

    Raises:
        FormatError: A cell is no integer; ISO times are read as milliseconds.
    """
    cells = rows.columns[role]
    blank = pc.equal(cells, "")
    filled = pc.if_else(blank, "-1", cells)
    try:
        return np.asarray(pc.cast(filled, pa.int64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        pass
    try:
        times = pc.cast(pc.if_else(blank, "1970-01-01", cells), pa.timestamp("ms"))
        values = times.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return np.where(blank.to_numpy(zero_copy_only=False), -1, values)
    except pa.ArrowInvalid as error:
        message = f"column {role!r} must hold whole numbers{'' if role == 'cost' else ' or times'}"
        fault = Fault(f"{message}: {error}", file=rows.name, kind="number")
        raise FormatError([fault]) from None


def _refuse_empty(rows: _Rows, roles: tuple[str, ...]) -> None:
    faults = []
    for role in roles:
        empty = pc.equal(pc.utf8_trim_whitespace(rows.columns[role]), "")
        for i in np.flatnonzero(empty.to_numpy(zero_copy_only=False)).tolist():
            message = f"the {role} is empty"
            faults.append(Fault(message, rows.name, int(rows.line[i]), kind="empty-cell"))
    if faults:
        raise FormatError(faults)


def _place(rows: _Rows, i: int, token: int = -1) -> Fault:
    item, worker = rows.columns["item"][i].as_py(), rows.columns["worker"][i].as_py()
    return Fault("", rows.name, int(rows.line[i]), item, token, worker)


def _first_of(table: _Table, role: str) -> pa.Array | None:
    """The first row's cell of every item."""
    if role not in table.rows.columns:
        return None
    _, first = np.unique(table.item, return_index=True)
    return table.rows.columns[role].take(pa.array(first))


def _with_gold(crowd: Crowd, table: _Table, options: ReadOptions) -> Crowd:
    """Take gold from a column; its cells must agree wherever one token has several rows."""
    from karat.crowd.gold import with_gold_labels

    cells = table.rows.columns["gold"].dictionary_encode()
    position = np.zeros(len(table.rows), np.int64)
    if not crowd.is_classification:
        position = _position(table)
    flat = crowd.offsets[table.item] + position
    first = np.full(crowd.n_tokens, -1, np.int64)
    codes = cells.indices.to_numpy()
    first[flat[::-1]] = codes[::-1]
    clash = np.flatnonzero(first[flat] != codes)
    if len(clash):
        message = "the gold differs between rows of one item"
        raise FormatError(
            [replace(_place(table.rows, int(i)), message=message, kind="gold") for i in clash]
        )
    words = [*cells.dictionary.to_pylist(), ""]
    return with_gold_labels(
        crowd, [words[code] for code in first.tolist()], options, table.rows.name
    )


def _report(
    rows: _Rows,
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


def write(crowd: Crowd, path: Path) -> None:
    """Write a long CSV (TSV for `.tsv`): every answer's every token on a row."""
    mark = "\t" if path.suffixes[:1] == [".tsv"] or path.suffix == ".tsv" else ","
    write_text(path, _lines(crowd, mark))


def cannot_hold(crowd: Crowd) -> list[str]:
    """Name what a long table cannot hold of this crowd."""
    lost = []
    answered = np.zeros(crowd.n_items, np.bool_)
    answered[crowd.answers.item] = True
    if not answered.all():
        lost.append("items without answers")
    if len(np.unique(crowd.answers.worker)) < crowd.n_workers:
        lost.append("workers without answers")
    if crowd.texts is not None:
        lost.append("the text between tokens")
    if crowd.attributes is not None:
        lost.append("attributes of items")
    if crowd.is_classification and crowd.tokens.flatten() != crowd.item_ids:
        lost.append("the tokens (an item's id takes their place)")
    return lost


def _lines(crowd: Crowd, mark: str) -> Iterator[str]:
    import csv
    import io

    answers, sequences = crowd.answers, not crowd.is_classification
    words = [*crowd.tagset.tags, ""]
    repeats = bool(answers.attempt.any())
    times = [n for n in ("started", "submitted", "cost") if getattr(answers, n) is not None]
    head = ["item", *(["doc"] if crowd.groups is not None else []), "worker"]
    head += [*(["position", "token"] if sequences else []), "label"]
    head += [
        *(["gold"] if crowd.gold is not None else []),
        *(["attempt"] if repeats else []),
        *times,
    ]
    buffer = io.StringIO()
    out = csv.writer(buffer, delimiter=mark, lineterminator="\n")
    out.writerow(head)
    ids, workers = crowd.item_ids.to_pylist(), crowd.worker_ids.to_pylist()
    groups = crowd.groups.to_pylist() if crowd.groups is not None else None
    for a in range(len(answers)):
        n, start = int(answers.item[a]), int(answers.offset[a])
        base = int(crowd.offsets[n])
        extra = [int(getattr(answers, name)[a]) for name in times]
        for place, token in enumerate(crowd.tokens_list[n]):
            row = [ids[n], *([groups[n]] if groups else []), workers[answers.worker[a]]]
            row += [str(place), token] if sequences else []
            row.append(words[answers.codes[start + place]])
            row += [words[crowd.gold[base + place]]] if crowd.gold is not None else []
            row += [str(answers.attempt[a])] if repeats else []
            out.writerow([*row, *extra])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()
