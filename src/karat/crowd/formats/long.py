"""Long tables: one row per answer, or per answered token.

`item, worker, label` is a crowd of single labels (PLAIN, one token per item). With a `token` or a
`position` column the rows of one item and worker are a sequence. Without a worker column the labels
are gold. CSV and TSV, Parquet, and DataFrames of any make.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from karat.crowd.atomic import write_text
from karat.crowd.formats.long_columns import as_strings, frame_columns, numbers
from karat.crowd.grid import cell_text, first_line, guess_delimiter, lost_cells, read_grid
from karat.crowd.labels import (
    bad_label_faults,
    guess_encoding,
    lost_labels,
    read_labels,
    settle,
)
from karat.crowd.model import Answers, Crowd, list_array
from karat.crowd.options import ReadOptions
from karat.crowd.repeats import MAX_ATTEMPT, count_first, number_attempts
from karat.crowd.report import ImportReport
from karat.crowd.source import Source
from karat.crowd.workers import keep_workers
from karat.errors import Fault, FormatError

SUMMARY = "one row per answer: item, worker, label (and token for sequences)"
SUFFIXES = (".csv", ".tsv", ".parquet")

MAX_POSITION = 100_000
"""Largest position of a token that is still believed."""
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
    """Say whether the header has an item and a label column."""
    if source.is_folder:
        return False
    if source.is_parquet:
        return True
    line = first_line(source)
    names = {name.strip().strip('"').lower() for name in line.split(guess_delimiter(line))}
    has = {role for role, known in ROLES.items() if names & set(known)}
    return {"item", "label"} <= has


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
        found = _find_roles(tuple(table.column_names), source.name, options)
        return _read(_from_table(table, source.name, found), options, ())
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
    name = "<DataFrame>"
    found: dict[str, str] = {}

    def choose(header: tuple[str, ...]) -> Iterable[str]:
        found.update(_find_roles(header, name, options))
        return found.values()

    table = frame_columns(frame, choose)
    return _read(_from_table(table, name, found), options, ())


def _from_table(table: pa.Table, name: str, found: dict[str, str]) -> _Rows:
    columns = {role: as_strings(table.column(at), at, name) for role, at in found.items()}
    return _Rows(name, columns, np.arange(1, len(table) + 1), 1)


def _find_roles(header: tuple[str, ...], file: str, options: ReadOptions) -> dict[str, str]:
    found: dict[str, str] = {}
    lower = {name.lower(): name for name in reversed(header)}
    for role, names in ROLES.items():
        wanted = options.columns.get(role)
        if wanted is not None and wanted not in header:
            message = f"there is no column {wanted!r}: the header has {', '.join(header)}"
            raise FormatError([Fault(message, file=file, line=1, kind="header")])
        taken = set(found.values()) | set(options.columns.values())
        guess = next((lower[n] for n in names if n in lower and lower[n] not in taken), None)
        if wanted or guess:
            found[role] = wanted or str(guess)
    twice = sorted({name for name in found.values() if header.count(name) > 1})
    if twice:
        message = f"columns {', '.join(map(repr, twice))} stand twice in the header"
        raise FormatError([Fault(message, file=file, line=1, kind="header")])
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
    _refuse_empty(rows, ("item", "worker", *(["token"] if "token" in rows.columns else [])))
    item = rows.columns["item"].dictionary_encode()
    worker = rows.columns["worker"].dictionary_encode()
    label = rows.columns["label"].dictionary_encode()
    sequences = "token" in rows.columns or "position" in rows.columns
    strings = label.dictionary.to_pylist()
    named = replace(options, encoding=_encoding(rows, strings, options, sequences))
    labels = read_labels(strings, named)
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
    if "attempt" in rows.columns and options.repeated == "first":
        attempt = count_first(answers.item, answers.worker, answers.attempt)
        answers = replace(answers, attempt=attempt)
    crowd = Crowd(
        item_ids=item.dictionary.cast(pa.string()),
        tokens=list_array(tokens, offsets),
        worker_ids=worker.dictionary.cast(pa.string()),
        tagset=labels.tagset,
        answers=answers,
        groups=_first_of(table, "doc"),
        import_report=_report(rows, answers, options, notes, reasons, faults),
    )
    if "gold" in rows.columns:
        crowd = _with_gold(crowd, table, options)
    return keep_workers(settle(crowd, options), options)


def _encoding(rows: _Rows, labels: list[str], options: ReadOptions, sequences: bool) -> str:
    """The encoding that answers and gold show together."""
    if options.encoding or not sequences:
        return options.encoding or "PLAIN"
    gold = pc.unique(rows.columns["gold"]).to_pylist() if "gold" in rows.columns else []
    names = (options.rename(label) for label in [*labels, *gold])
    return guess_encoding(name for name in names if name is not None)


def _read_gold(rows: _Rows, options: ReadOptions, notes: tuple[str, ...]) -> Crowd:
    """Read a table of known labels as items with gold and no answers."""
    from karat.crowd.builder import CrowdBuilder

    has_tokens, has_places = "token" in rows.columns, "position" in rows.columns
    _refuse_empty(rows, ("item", *(["token"] if has_tokens else [])))
    builder = CrowdBuilder(options, rows.name, "long")
    builder.notes += [*notes, "no worker column: the labels are read as gold"]
    columns = {role: column.to_pylist() for role, column in rows.columns.items()}
    position = _integers(rows, "position") if has_places else np.zeros(len(rows), np.int64)
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
            line=int(rows.line[places[0]]),
        )
    return builder.build(single=not has_tokens and not has_places)


def _gold_faults(rows: _Rows, name: str, position: list[int], places: list[int]) -> Iterator[Fault]:
    """What is wrong with the rows of one item in a table of gold."""
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
        lowest = int(found.min())
        return found - (1 if lowest == 1 else 0)
    counted = "attempt" in rows.columns
    tries = _integers(rows, "attempt") if counted else np.zeros(len(rows), np.int64)
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
    table: _Table, order: NDArray[np.int64], head: NDArray[np.int64], rank: NDArray[np.int64]
) -> None:
    """Where a worker shows all tokens of an item several times, start again each time.

    Without positions or attempts nothing else tells repeated answers from longer items. What the
    shortest answer to an item shows is taken for its tokens.
    """
    words = table.rows.columns["token"].dictionary_encode().indices.to_numpy()[order]
    size = np.diff(np.append(head, len(order)))
    item = table.item[order[head]]
    least = np.full(table.n_items, len(order), np.int64)
    np.minimum.at(least, item, size)
    for g in np.flatnonzero((size > least[item]) & (size % least[item] == 0)).tolist():
        rows, n = slice(head[g], head[g] + size[g]), int(least[item[g]])
        shown = words[rows].reshape(-1, n)
        if (shown == shown[0]).all():
            rank[rows] %= n


def _row_attempts(
    table: _Table, position: NDArray[np.int64], options: ReadOptions
) -> NDArray[np.int16]:
    if "attempt" in table.rows.columns:
        attempt = _integers(table.rows, "attempt").astype(np.int16)
        _refuse_twice(table, np.arange(len(attempt)), attempt, position)
        return attempt
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
        attempt = _integers(table.rows, "attempt").astype(np.int16)[given]
        _refuse_twice(table, given, attempt, np.zeros(len(given), np.int64))
        return attempt
    return number_attempts(item, worker, options.repeated)


def _refuse_twice(
    table: _Table,
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
        place = _place(table.rows, int(rows[i]), int(position[i]) if len(position) else -1)
        faults.append(replace(place, message=message, kind="duplicate-attempt"))
    if faults:
        raise FormatError(faults)


def _extras(rows: _Rows, which: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    names = ("started", "submitted", "cost")
    return {name: _integers(rows, name)[which] for name in names if name in rows.columns}


def _integers(rows: _Rows, role: str) -> NDArray[np.int64]:
    """A column of integers; empty cells are -1, an empty attempt the first.

    Raises:
        FormatError: A cell is no integer; ISO times are read as milliseconds.
    """
    blank = 0 if role == "attempt" else -1
    found = numbers(rows.columns[role], role, lambda i: _place(rows, i), blank=blank)
    most = {"position": MAX_POSITION, "attempt": MAX_ATTEMPT}.get(role)
    if most is not None and (bad := np.flatnonzero((found < 0) | (found > most))).size:
        message = f"{role} must be a number from 0 to {most}"
        places = (_place(rows, i) for i in bad.tolist())
        raise FormatError([replace(place, message=message, kind="number") for place in places])
    return found


def _refuse_empty(rows: _Rows, roles: tuple[str, ...]) -> None:
    faults = []
    for role in roles:
        cells = rows.columns[role]
        empty = pc.equal(cells if role == "token" else pc.utf8_trim_whitespace(cells), "")
        for i in np.flatnonzero(empty.to_numpy(zero_copy_only=False)).tolist():
            message = f"the {role} is empty: remove the row, or write the {role}"
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
            place = _place(table.rows, i, token)
            faults.append(replace(place, message=message, kind="contradictory-gold"))
        raise FormatError(faults)
    return with_gold_labels(
        crowd, [words[c] if c >= 0 else None for c in first.tolist()], options, table.rows.name
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
    answers, single = crowd.answers, crowd.is_classification
    names = [*crowd.item_ids.to_pylist(), *crowd.worker_ids.to_pylist()]
    tokens = pc.unique(crowd.tokens.flatten()).to_pylist()
    groups = [] if crowd.groups is None else crowd.groups.to_pylist()
    losses = {
        "items without answers": len(np.unique(answers.item)) < crowd.n_items,
        "workers without answers": len(np.unique(answers.worker)) < crowd.n_workers,
        "the text between tokens": crowd.texts is not None,
        "attributes of items": crowd.attributes is not None,
        "items without a document (its name becomes empty)": None in groups,
        "the tokens (an item's id takes their place)": (
            single and crowd.tokens.flatten() != crowd.item_ids
        ),
        "answers in which every token was skipped": single and (answers.codes < 0).any(),
        "empty ids and tokens (they are refused when they are read)": (
            "" in tokens or not all(name.strip() for name in names)
        ),
    }
    lost = [text for text, is_lost in losses.items() if is_lost]
    lost += lost_cells([*names, *tokens, *filter(None, groups), *crowd.tagset.tags])
    return lost + lost_labels(crowd, single=single)


def _lines(crowd: Crowd, mark: str) -> Iterator[str]:
    """One chunk of lines per answer, the answers in the order of their items."""
    import csv
    import io

    answers, sequences = crowd.answers, not crowd.is_classification
    tags = [*map(cell_text, crowd.tagset.tags), ""]
    times = [n for n in ("started", "submitted", "cost") if getattr(answers, n) is not None]
    heads = {
        "item": True,
        "doc": crowd.groups is not None,
        "worker": True,
        "position": sequences,
        "token": sequences,
        "label": True,
        "gold": crowd.gold is not None,
        "attempt": bool(answers.attempt.any()),
    }
    # TSV is never quoted, so that a token may be a quote.
    quotes: Any = {"quoting": csv.QUOTE_NONE, "quotechar": None} if mark == "\t" else {}
    buffer = io.StringIO()
    out = csv.writer(buffer, delimiter=mark, lineterminator="\n", **quotes)
    out.writerow([*(name for name, there in heads.items() if there), *times])
    ids, workers = _words(crowd.item_ids), _words(crowd.worker_ids)
    groups = _words(crowd.groups) if crowd.groups is not None else ids
    gold = np.full(crowd.n_tokens, -1, np.int16) if crowd.gold is None else crowd.gold
    for a in np.argsort(answers.item, kind="stable").tolist():
        n, start = int(answers.item[a]), int(answers.offset[a])
        extra = [int(getattr(answers, name)[a]) for name in times]
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
            }
            out.writerow([*(row[name] for name, there in heads.items() if there), *extra])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _words(values: pa.Array) -> list[str]:
    return [cell_text(word or "") for word in values.to_pylist()]
