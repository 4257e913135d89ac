"""What the columns of a table are, by their names and by what is in them.

People's tables of answers have a row per answer (who, about what, which label) or a row per item
with a column per annotator, under any names or none. A column of labels differs between the
annotators of an item; one that is the same for all of them describes the item, and one that is the
same for all items of an annotator describes the annotator.
"""

from __future__ import annotations

import csv
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, pairwise

import numpy as np
import pyarrow as pa

from goldspan.crowd.formats.columns import as_strings, frame_columns, parquet_table, spell_labels
from goldspan.crowd.grid import (
    Grid,
    csv_rows,
    delimiter_of,
    exact_grid,
    has_row_names,
    header_names,
    is_marked,
    numbered_grid,
    read_grid,
    reject_twice,
    unguard,
)
from goldspan.crowd.options import MISSING, ReadOptions
from goldspan.crowd.source import Source
from goldspan.errors import Fault, FormatError

# --------------------------------------------------------------------------------------------------
# Columns by their usual names, and tables with the columns that play a role.


ROLES: dict[str, tuple[str, ...]] = {
    "item": (
        *("item", "item_id", "task", "task_id", "question", "question_id", "text_id"),
        *("example_id", "sentence_id", "sent_id", "id", "guid", "sentence #"),
    ),
    "worker": (
        *("worker", "annotator", "worker_id", "workerid", "annotator_id", "annotator_name"),
        *("coder", "labeler", "labeller", "rater", "user", "username", "user_id", "completed_by"),
    ),
    "label": ("label", "tag", "answer", "response", "annotation", "category"),
    "token": ("token", "word"),
    "position": ("position", "token_index", "token_id", "index"),
    "gold": ("gold", "truth", "true", "gold_tags"),
    "doc": ("doc", "document", "group", "doc_id", "document_id"),
    "attempt": ("attempt",),
    "started": ("started",),
    "submitted": ("submitted",),
    "time": ("time", "timestamp"),
    "cost": ("cost",),
    "guideline": ("guideline",),
    "text": ("text", "data"),
    "offsets": ("offsets",),
}
"""The usual names of columns in any case, the likelier ones first; some tables have more."""
Roles = Mapping[str, tuple[str, ...]]


def check_named(
    names: Iterable[str], header: Collection[str], file: str, what: str = "column"
) -> None:
    """Reject columns that were named and are not there."""
    absent = [name for name in names if name not in header]
    if absent:
        there = f"the header has {', '.join(header)}"
        messages = (f"there is no {what} {name!r}: {there}" for name in absent)
        raise FormatError([Fault(message, file, 1, kind="header") for message in messages])


def find_columns(
    header: Sequence[str],
    file: str,
    options: ReadOptions,
    usual: Roles,
    *,
    needed: Collection[str] = (),
    single: Collection[str] = (),  # Roles of which several columns of usual names are rejected
    others: Collection[str] = (),  # Columns that play no role
) -> dict[str, str]:
    """Find the column of every role, by the user's name for it or by the usual ones."""
    named = {role: name for role, name in options.columns.items() if role in usual}
    check_named(named.values(), header, file)
    lower = {name.strip().lower(): name for name in reversed(header)}
    found, messages = dict[str, str](), []
    for role, known in usual.items():
        taken = {*found.values(), *options.columns.values(), *others}
        if role == "text":  # it may be what names the item
            taken.discard(options.columns.get("item", ""))
        there = [lower[name] for name in known if name in lower and lower[name] not in taken]
        if role in named:
            found[role] = named[role]
        elif there:
            found[role] = there[0]
            if role in single and len(there) > 1:
                messages.append(f"which column is the {role}: {', '.join(there)}? {_name_it(role)}")
    absent = [role for role in needed if role not in found]
    if absent:
        names = f"{' and '.join(absent)} (the header has {', '.join(header)})"
        messages.append(f"no column for {names}: {_name_it(absent[0])}")
    if messages:
        raise FormatError([Fault(message, file, 1, kind="header") for message in messages])
    return found


def _name_it(role: str) -> str:
    return f"name it with columns={{{role!r}: …}} (--columns {role}=NAME)"


def open_table(
    source: Source,
    options: ReadOptions,
    find: Callable[[Sequence[str], ReadOptions], dict[str, str]],
    *,
    is_exact: bool = False,
) -> tuple[Grid, dict[str, str], ReadOptions]:
    """Open a table of any make, and find the columns of its roles; the others may not be read.

    With `is_exact` the cells of a file are exactly those that it has, line ends included.
    """
    if not (source.is_parquet or source.table is not None):
        notes = source.text.notes  # the text may be gone afterwards
        if is_exact:
            grid = exact_grid(source, options.delimiter)
        else:
            grid, options = _named_grid(source, options)
        found = find(grid.header, options)
        notes = (*notes, *grid.notes, *_unread(grid.header, found))
        return replace(grid, notes=notes), found, options
    found, header = dict[str, str](), list[str]()

    def choose(names: Sequence[str]) -> list[str]:
        header.extend(names)
        found.update(find(names, options))
        reject_twice(found.values(), names, source.name)
        return list(dict.fromkeys(found.values()))

    table = parquet_table(source) if source.is_parquet else source.table
    if isinstance(table, pa.Table):
        table = spell_labels(table, source.name).select(choose(table.column_names))
    else:
        table = frame_columns(table, choose)
    if not len(table):
        raise FormatError([Fault("the table has no row", file=source.name, kind="empty")])
    lines, block = range(1, len(table) + 1), np.broadcast_to(np.int64(0), len(table))
    return Grid(source.name, table, lines, block, _unread(header, found)), found, options


def _unread(header: Sequence[str], found: Mapping[str, str]) -> tuple[str, ...]:
    others = [name or "''" for name in header if name not in found.values()]
    return (f"columns that are not read: {', '.join(others[:12])}",) if others else ()


def _named_grid(source: Source, options: ReadOptions) -> tuple[Grid, ReadOptions]:
    """Read a delimited table, of which columns may be named by their numbers."""
    header = header_names(source)
    numbers = {name for name in options.columns.values() if name.isdigit() and name not in header}
    table = peek(source, options.delimiter) if numbers else None
    if table is not None and not table.has_header:
        return numbered_grid(source, options.delimiter), options
    grid = read_grid(source, options.delimiter)
    named = {
        role: grid.header[int(name) - 1]
        if name in numbers and 0 < int(name) <= len(grid.header)
        else name
        for role, name in options.columns.items()
    }
    return grid, replace(options, columns=named)


# --------------------------------------------------------------------------------------------------
# What is looked at of a table whose names say nothing.


MAX_PEEK = 4_000_000
"""Characters of a table that are looked at."""
MAX_ROWS = 50_000
"""The same in rows."""
TEXTS = (
    *("text", "sentence", "content", "body", "message", "utterance", "paragraph", "snippet"),
    *("review", "tweet", "comment"),
)
"""Usual names of columns of texts, in any case."""
ANSWERS = (
    "of a row per answer name those of the item, the worker and the label (--columns item=… "
    "--columns worker=… --columns label=…), of a column per annotator that of the item (--format "
    "wide --columns item=…); a table with a row per annotator must be transposed"
)
"""What to do with a table of answers whose columns say nothing."""
_WORKERS = {
    *("worker", "annotator", "rater", "coder", "labeler", "labeller", "judge", "turker", "expert"),
    *("crowdworker", "contributor", "evaluator", "assessor", "grader", "voter", "tagger", "by"),
}
_PERHAPS_WORKERS = {
    *("user", "username", "participant", "respondent", "subject", "reviewer", "reader", "student"),
    *("teacher", "physician", "doctor", "radiologist", "linguist", "volunteer", "player", "anon"),
}
"""Names that are those of annotators only where several of them are asked about one item."""
_LABELS = {
    *("label", "tag", "answer", "response", "annotation", "category", "class", "sentiment"),
    *("stance", "rating", "judgment", "judgement", "judgments", "choice", "verdict", "emotion"),
    *("polarity", "toxic", "toxicity", "offensive", "hate", "relevance", "intent", "topic"),
    *("decision", "grade", "vote", "opinion", "result", "value", "score", "labels", "type"),
}
_GOLD = {"gold", "golden", "truth", "true", "reference", "correct", "consensus", "final"}
_NEVER_LABELS = {
    *("confidence", "certainty", "trust", "time", "duration", "seconds", "date", "comments"),
    *("note", "notes", "reward", "bonus", "status", "started", "submitted", "created", "updated"),
    *("timestamp", "batch", "round", "index", "position", "order", "attempt", "link", "url", "ip"),
    *("country", "city", "region", "age", "gender", "language", "channel", "split", "source"),
    *("reason", "explanation", "tainted", "missed", "golden", "cost", "guideline", "offsets"),
    *("conf", "mean", "sd", "median", "average"),
}
_NEVER_ITEMS = _NEVER_LABELS - {"link", "url", "index", "position"}
_NO_LABELS = _NEVER_LABELS | {*TEXTS}
_IDS = {"id", "ids", "name", "no", "nr", "number", "code", "key", "uid", "index", "hash"}
_ITEMS = {
    *("id", "ids", "uid", "index", "key", "item", "task", "url", "link", "image", "file", "unit"),
    *("doc", "document", "sample", "example", "instance", "question", "pair", "hit", "record"),
}
_OF_IDS = {*TEXTS, *_ITEMS, "q", "t", "s", "p", "sent", "row", "img", "case"}
_VALUE_OF_WORKER = re.compile(
    r"(?:worker|annotator|rater|coder|user|judge|turker|ann|w)[-_ ]?\d+|A[0-9A-Z]{11,13}",
    re.IGNORECASE,
)
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*|\d{1,2}:\d{2}.*")
_FRACTION = re.compile(r"[+-]?\d*[.,]\d+(?:e[+-]?\d+)?", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_LIST = re.compile(r"\s*\[.*\]\s*", re.DOTALL)
_NO = {"0", "1", "true", "false", "yes", "no", "y", "n"}


@dataclass(frozen=True)
class Guess:
    """A reading of a table."""

    format: str  # "long", "wide" for a column per annotator, or "mace" for nothing else
    columns: Mapping[str, str]  # Column of every role: its name, or its number without a header
    workers: tuple[str, ...] = ()  # The annotators' columns of a wide table
    is_sure: bool = True  # Whether a table such as this is nothing else

    @property
    def words(self) -> str:
        """The options of the command line that say the same."""
        words = ["--format", self.format]
        for role, name in self.columns.items():
            words += ["--columns", f"{role}={name}"]
        return shlex.join(
            [*words, *(["--workers", ",".join(self.workers)] if self.workers else [])]
        )

    @property
    def said(self) -> str:
        """The reading in words."""
        parts = [f"{role}={name}" for role, name in self.columns.items()]
        if self.format == "mace":
            return "read as MACE's matrix by its look: a line per item, a column per annotator"
        if self.workers:
            shown = ", ".join(self.workers[:5]) + (", …" if len(self.workers) > 5 else "")
            parts.append(f"an annotator per column ({shown})")
        return f"read as answers by the look of its columns: {', '.join(parts)}"

    def options(self, given: ReadOptions) -> ReadOptions:
        """Return the options that read a table so."""
        columns = {**self.columns, **given.columns}
        workers = given.workers if given.workers or not self.workers else self.workers
        return replace(given, columns=columns, workers=workers)


@dataclass(frozen=True)
class Column:
    """A column of a table, or of its first rows."""

    name: str
    cells: Sequence[str]

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of the name in lower case, without those for an id."""
        found = [word.lower() for word in _WORD.findall(self.name)]
        return tuple([word for word in found if word not in _IDS] or found)

    @cached_property
    def values(self) -> frozenset[str]:
        """The distinct values that are not missing."""
        return frozenset(self.cells) - {*MISSING}

    @cached_property
    def n_filled(self) -> int:
        """Number of cells that are not missing."""
        return sum(cell in self.values for cell in self.cells)

    @cached_property
    def is_text(self) -> bool:
        """Whether the cells are texts by their look: several words, seldom twice."""
        words = sum(len(value.split()) for value in self.values)
        return bool(self.values) and words >= 3 * len(self.values) and len(self.values) > 1

    @cached_property
    def is_id(self) -> bool:
        """Whether the name is that of items."""
        found = [word.lower() for word in _WORD.findall(self.name)]
        return bool(found) and (found[-1] in _ITEMS or found[-1].removesuffix("id") in _OF_IDS)

    @cached_property
    def is_categorical(self) -> bool:
        """Whether the cells could be labels: short, few, and no times or fractions."""
        values = self.values
        if not values or len(values) > min(60, max(8, self.n_filled // 2)):
            return False
        if any(len(value) > 60 or len(value.split()) > 5 for value in values):
            return False
        return not (self.is_measured or _all(self, _DATE))

    @cached_property
    def is_measured(self) -> bool:
        """Whether the cells are numbers with fractions, of which few come twice."""
        is_fraction = _all(self, _FRACTION) and len(self.values) > 1
        return is_fraction and 2 * len(self.values) > min(self.n_filled, 20)

    @property
    def is_never_label(self) -> bool:
        """Whether the name is that of a fact about an answer, such as its time or a comment."""
        return self.is_called(_NEVER_LABELS)

    def is_called(self, names: Iterable[str]) -> bool:
        """Whether the last word of the name, or all of it, is one of some."""
        return bool(self.words) and (self.words[-1] in names or " ".join(self.words) in names)


@dataclass(frozen=True)
class Table:
    """The first rows of a table by column."""

    columns: tuple[Column, ...]
    has_header: bool = True

    @property
    def n_rows(self) -> int:
        """Number of rows that were looked at."""
        return len(self.columns[0].cells) if self.columns else 0

    @cached_property
    def text(self) -> Column | None:
        """The column of texts: by its name, else the only one that looks like it."""
        named = [one for one in self.columns if one.name.lower() in TEXTS]
        named = [one for one in named if one.is_text] or named
        looks = [one for one in self.columns if one.is_text]
        return named[0] if named else looks[0] if len(looks) == 1 else None

    @cached_property
    def label(self) -> str | None:
        """The name of the only column that is called one of labels and has some several times."""
        found = [one for one in self.columns if one.is_called(_LABELS | _GOLD - {"reference"})]
        found = [one for one in found if one.is_categorical and len(one.values) < one.n_filled]
        return found[0].name if len(found) == 1 else None


def label_columns(table: Table, named: Mapping[str, str]) -> list[str]:
    """Return the columns that may hold labels, without those `named` as something else."""
    others = _NO_LABELS | _WORKERS | _PERHAPS_WORKERS | _GOLD
    known = (one for one in table.columns if one.is_categorical and one.name not in named.values())
    return [one.name for one in known if not (one.is_id or one.is_called(others))]


def peek(source: Source, delimiter: str | None = None) -> Table | None:
    """Return the first rows of a delimited table; None where rows differ in their widths."""
    mark, value = delimiter or delimiter_of(source), source.exact_text.value
    is_cut = len(value) > MAX_PEEK
    quoting = csv.QUOTE_MINIMAL if mark != "\t" or '"' in value[:MAX_PEEK] else csv.QUOTE_NONE
    rows: list[list[str]] = []
    try:
        for _, _, row in islice(csv_rows(value[:MAX_PEEK], source.name, mark, quoting), MAX_ROWS):
            if any(row) and not (len(row) == 1 and row[0].startswith("# ")):
                rows.append(row)
    except FormatError:
        if not is_cut:
            return None
    rows = rows[:-1] if is_cut else rows
    width = len(rows[0]) if rows else 0
    if rows and has_row_names(source, mark):
        rows[0], width = ["", *rows[0]], width + 1
    if width < 2 or len(rows) < 2 or any(len(row) != width for row in rows):
        return None
    if mark == "," and is_marked(value):
        rows = [[unguard(cell) for cell in row] for row in rows]
    head, body = [cell.strip() for cell in rows[0]], [[c.strip() for c in r] for r in rows[1:]]
    there = has_header(head, body)
    names = head if there else [str(n) for n in range(1, width + 1)]
    cells = zip(*(body if there else [head, *body]), strict=True)
    return Table(tuple(map(Column, names, cells)), there)


def table_of(table: pa.Table, name: str) -> Table:
    """Return the first rows of an Arrow table, without columns of lists and of bytes."""
    found = []
    for field in table.schema:
        if not (pa.types.is_nested(field.type) or pa.types.is_binary(field.type)):
            cells = as_strings(table.column(field.name).slice(0, MAX_ROWS), field.name, name)
            found.append(Column(field.name, [cell.strip() for cell in cells.to_pylist()]))
    return Table(tuple(found))


def has_header(head: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns: its cells are no values of theirs."""
    named = [cell for cell in head if cell]
    again = [bool(cell) and any(row[n] == cell for row in body) for n, cell in enumerate(head)]
    known = {*TEXTS, *_WORKERS, *_PERHAPS_WORKERS, *_LABELS, *_GOLD, "item", "id", "token", "word"}
    is_new = not any(again) or any(cell.lower() in known for cell in head)
    return is_new and len(set(named)) == len(named)


def guesses(table: Table, named: Mapping[str, str] | None = None) -> list[Guess]:
    """Return the readings of a table as answers, the likeliest first, with `named` columns."""
    named = named or {}
    workers = [one for one in table.columns if one.name == named.get("worker")]
    ways = (
        _long(table, workers or _called_workers(table), named),
        _wide(table),
        _long(table, _asked(table), named),
    )
    each = ([guess for guess in way if _agrees(guess, named)] for way in ways)
    return next(filter(None, each), [])


def _agrees(guess: Guess, named: Mapping[str, str]) -> bool:
    return all(guess.columns.get(role, name) == name for role, name in named.items())


# --------------------------------------------------------------------------------------------------
# A row per answer.


def _called_workers(table: Table) -> list[Column]:
    """Return the columns of annotators by their names, or by names such as `worker7` in them."""
    return (
        [one for one in table.columns if one.is_called(_WORKERS)]
        or [one for one in table.columns if not one.is_id and _all(one, _VALUE_OF_WORKER)]
        or [one for one in table.columns if one.is_called(_PERHAPS_WORKERS)]
    )


def _asked(table: Table) -> list[Column]:
    """Return the columns that could be annotators by their values alone: few, each many times."""
    return [
        one
        for one in table.columns
        if 2 <= len(one.values) <= table.n_rows // 3
        and one.is_categorical
        and not (one.is_id or one.is_called(_NO_LABELS | _LABELS))
    ]


def _long(table: Table, workers: Sequence[Column], named: Mapping[str, str]) -> Iterator[Guess]:
    """Yield readings with a column of annotators, one of items and one of labels."""
    known = {one.name: one for one in table.columns if one.name}
    for worker in workers:
        is_called = worker.is_called(_WORKERS) or _all(worker, _VALUE_OF_WORKER)
        is_called = is_called or worker.name == named.get("worker")
        is_sure = is_called or worker.is_called(_PERHAPS_WORKERS)
        item = known.get(named.get("item", "")) or _item_for(table, worker, is_named=is_called)
        if item is None or not (is_called or item.is_id or item is table.text):
            continue
        label = known.get(named.get("label", ""))
        labels = _labels_for(table, worker, item) if label is None else [label]
        for label in labels:
            columns = {"item": item.name, "worker": worker.name, "label": label.name}
            used = {item.name, worker.name, label.name}
            gold = _gold_for(table, label, used)
            if gold is not None:
                columns["gold"] = gold.name
            text = table.text
            if text is not None and text.name not in used and _depends(text, item):
                columns["text"] = text.name
            is_clear = is_called or (is_sure and label.is_called(_LABELS))
            yield Guess("long", columns, is_sure=is_clear and len(labels) == 1)
        if labels:
            return


def _item_for(table: Table, worker: Column, *, is_named: bool) -> Column | None:
    """Return the column of the items: where several annotators share its values."""
    shared: list[tuple[int, Column]] = []
    for one in table.columns:
        if one is worker or one.is_called(_NEVER_ITEMS) or one.is_measured or _all(one, _DATE):
            continue
        if not is_named and table.text is not None and not _depends(table.text, one):
            continue  # each row has a text of its own: authors, not annotators
        pairs = set(zip(one.cells, worker.cells, strict=True))
        by = defaultdict(set)
        for value, who in pairs:
            by[value].add(who)
        if len(pairs) >= 0.8 * table.n_rows and any(len(who) > 1 for who in by.values()):
            shared.append((len(one.values), one))
    if shared:
        best = max(shared, key=lambda pair: _rank(pair[0], pair[1], table))[1]
        # An id of something larger, such as a document, is not that of the items
        text = next((one for n, one in shared if one is table.text and n > len(best.values)), None)
        return text or best
    if not is_named:
        return None
    ids = [one for one in table.columns if one is not worker and one.is_id]
    return next((one for one in ids if len(one.values) == table.n_rows), table.text)


def _rank(n_values: int, one: Column, table: Table) -> tuple[bool, bool, bool, int]:
    """Ids go before texts before what merely repeats; of these, what tells most items apart."""
    is_label = one.is_called(_LABELS | _GOLD)
    return one.is_id, one is table.text or one.is_text, not is_label, n_values


def _labels_for(table: Table, worker: Column, item: Column) -> list[Column]:
    """Return the columns that could be the labels, those of the best evidence alone."""
    ranked: dict[tuple[bool, bool], list[Column]] = defaultdict(list)
    for one in table.columns:
        if one is worker or one is item or one is table.text or one.is_called(_NO_LABELS):
            continue
        if set(one.words) & _GOLD or not one.values or one.is_measured:
            continue
        is_named = one.is_called(_LABELS)
        if not is_named and (not one.is_categorical or one.is_id):
            continue
        varies = not _depends(one, item) and not _depends(one, worker)
        if varies or is_named or table.n_rows < 20:
            ranked[is_named, varies].append(one)
    for key in ((True, True), (True, False), (False, True), (False, False)):
        if ranked[key]:
            return ranked[key]
    return []


def _depends(one: Column, on: Column) -> bool:
    """Whether a column has one value for every value of another that comes several times."""
    first: dict[str, str] = {}
    repeats = False
    for value, key in zip(one.cells, on.cells, strict=True):
        known = first.setdefault(key, value)
        if known != value and value not in MISSING and known not in MISSING:
            return False
        repeats = repeats or key in first
    return repeats


def _gold_for(table: Table, label: Column, used: set[str]) -> Column | None:
    """Return the column with the known labels: called so, with values that are labels."""
    for one in table.columns:
        if one.name in used or not set(one.words) & _GOLD or not one.values:
            continue
        if one.values <= label.values or (one.values & label.values and not one.values <= _NO):
            return one
    return None


def _all(one: Column, pattern: re.Pattern[str]) -> bool:
    return bool(one.values) and all(pattern.fullmatch(value) for value in one.values)


# --------------------------------------------------------------------------------------------------
# A column per annotator.


def _wide(table: Table) -> Iterator[Guess]:
    """Yield the reading with a row per item and a column of labels per annotator."""
    if not table.has_header:
        yield from _matrix(table)
        return
    text = table.text
    others = [one for one in table.columns if one is not text and one.values and one.name]
    stems = _numbered(others)
    ids = [one for one in others if one.is_id and one not in stems]
    item = next((one for one in ids if len(one.values) == table.n_rows), text)
    is_told = item is not None
    if item is None and others and len(others[0].values) == table.n_rows > 2:
        never = _NEVER_ITEMS | _WORKERS | _PERHAPS_WORKERS
        is_other = others[0].is_called(never) or others[0].is_measured or _all(others[0], _DATE)
        item = None if is_other else others[0]  # words, or short texts, under any name
    rest = [one for one in others if one is not item and not set(one.words) & _GOLD]
    rest = [one for one in rest if not one.is_called(_NEVER_LABELS)]
    workers = stems or (rest if all(one.is_categorical for one in rest) else [])
    vocabulary = _common(workers)
    if not vocabulary:
        return
    names = tuple(one.name for one in workers)
    if not stems and {value.lower() for value in vocabulary} <= _NO:
        return  # answers to several questions, or several labels of each text
    if not stems and item is None:
        is_whole = len(workers) == len(others)
        if is_whole and not any(one.is_called({"token", "word"}) for one in workers):
            yield Guess("wide", {}, names, is_sure=False)
        return
    columns = {} if item is None else {"item": item.name}
    if text is not None and text is not item:
        columns["text"] = text.name
    used = {*columns.values(), *(one.name for one in workers)}
    both = Column("", [cell for one in workers for cell in one.cells])
    gold = _gold_for(table, both, used)
    if gold is not None:
        columns["gold"] = gold.name
    is_sure = bool(stems) or (text is None and is_told) or gold is not None
    yield Guess("wide", columns, names, is_sure)


def _matrix(table: Table) -> Iterator[Guess]:
    """Yield the reading without a header: perhaps ids, then columns that have labels in common."""
    first, *others = table.columns
    is_named = len(first.values) == table.n_rows
    is_named &= not any(first.values & one.values for one in others)
    workers = others if is_named else list(table.columns)
    labels, n_labels = _common(workers), sum(one.n_filled for one in workers)
    repeated = any(len(one.values) < one.n_filled for one in workers)
    if not (repeated and labels and len(labels) * 3 <= n_labels):
        return
    if not all(one.is_categorical for one in workers):
        return
    # Numbers in every cell may be measurements, and two columns something else than annotators
    is_sure = any(any(map(str.isalpha, value)) for value in labels)
    is_sure |= any(one.n_filled < table.n_rows for one in workers)
    is_sure &= len(workers) > 2 and _agree(workers)
    if is_named:
        names = tuple(one.name for one in workers)
        yield Guess("wide", {"item": first.name}, names, is_sure)
    else:
        yield Guess("mace", {}, is_sure=is_sure)


def _agree(columns: Sequence[Column]) -> bool:
    """Whether neighbours have the same label more often than by chance: a kappa of at least 0.2."""
    whole = zip(*(one.cells for one in columns), strict=True)
    rows = [[cell for cell in row if cell not in MISSING] for row in whole]
    same = [a == b for row in rows for a, b in pairwise(row)]
    counts = Counter(cell for row in rows for cell in row)
    chance = sum(n * n for n in counts.values()) / counts.total() ** 2
    return bool(same) and sum(same) / len(same) - chance >= 0.2 * (1 - chance)


def _common(columns: Sequence[Column]) -> set[str]:
    """Return the labels of columns if they are few and each column shares its own with others."""
    found: set[str] = set().union(*(one.values for one in columns))
    shared = all(
        any(one.values & other.values for other in columns if other is not one) for one in columns
    )
    is_small = len(found) <= max(20, sum(one.n_filled for one in columns) // 4)
    return found if len(columns) > 1 and shared and is_small else set()


def _numbered(columns: Sequence[Column]) -> list[Column]:
    """Return the columns that share a word such as "label" or "rater" and differ in the rest."""
    groups: dict[str, list[Column]] = defaultdict(list)
    for one in columns:
        words = [word for word in one.words if word in _WORKERS | _LABELS | {"ann", "a", "w", "r"}]
        if len(one.words) > 1 and words and not set(one.words) & (_GOLD | _NEVER_LABELS):
            groups[words[0]].append(one)
    best = max(groups.values(), key=len, default=[])
    return best if len(best) > 1 and all(one.is_categorical for one in best) else []


# --------------------------------------------------------------------------------------------------
# What stands in for a sign that a table is one of answers, and what must not be read.


def reject_lists(table: Table, file: str, named: Mapping[str, str]) -> None:
    """Reject a table whose cells are written lists, such as of tokens with tags or of spans."""
    for one in table.columns:
        cells = (cell for cell in dict.fromkeys(one.cells) if cell in one.values)
        lists = [cell for cell in cells if _LIST.fullmatch(cell)]
        may_choose = one.is_called(_LABELS - {"labels"} | {"set"}) or one.name in named.values()
        if lists and len(lists) == len(one.values) and not may_choose:
            message = (
                f"the cells of column {one.name!r} are lists, such as {lists[0][:40]}, which a CSV "
                "table cannot hold: write the data as Parquet or as JSON lines, with real lists"
            )
            raise FormatError([Fault(message, file=file, line=1, kind="lists")])
