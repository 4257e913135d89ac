"""Tables of spans: one row per span, `item, text, start, end, label, worker`.

A row without start and end says that the worker found nothing in the item. The text may stand in
every row of an item or in one of them; without an item column, rows with the same text are one
item. What a span covers (`span_text`, `surface`, …) is compared with the text. A table with such
columns is never read as single labels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from goldspan.crowd import guessing
from goldspan.crowd.atomic import write_text
from goldspan.crowd.formats.char_spans import CharSpan, char_span, cut_text
from goldspan.crowd.formats.columns import as_strings
from goldspan.crowd.formats.json_records import Record, collect
from goldspan.crowd.formats.span_crowd import GOLD, Facts, Item, Labels, SpanCrowd
from goldspan.crowd.formats.span_exports import (
    ItemRow,
    SoftLabels,
    item_rows,
    reject_gold_worker,
    reject_single,
)
from goldspan.crowd.grid import csv_text, header_names
from goldspan.crowd.guessing import ROLES, open_table
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source, counted
from goldspan.errors import Fault, FormatError, InputError

STARTS = (
    *("start", "begin", "start_offset", "begin_offset", "startoffset", "start_char", "char_start"),
    *("start_index", "start_idx", "start_pos", "span_start", "offset_start", "start_position"),
)
ENDS = (
    *("end", "stop", "end_offset", "stop_offset", "endoffset", "end_char", "char_end"),
    *("end_index", "end_idx", "end_pos", "span_end", "offset_end", "end_position"),
)
_ROLES = {
    "start": STARTS,
    "end": ENDS,
    "label": (
        *("label", "tag", "entity_type", "entity_label", "span_label", "ner", "category", "class"),
        *("type", "entity", "annotation"),
    ),
    "worker": ROLES["worker"],
    "text": ("text", "sentence", "content", "document_text", "full_text", "sentence_text", "tweet"),
    "item": (
        *(name for name in ROLES["item"] if name != "id"),
        *("doc_id", "document_id", "docid", "doc", "document", "id"),
    ),
    "doc": ROLES["doc"],
    "covers": (
        *("span_text", "span", "covered", "covered_text", "surface", "surface_form", "mention"),
        *("selected_text", "entity_text", "substring", "quote"),
    ),
    "attempt": ROLES["attempt"],
}
_NEEDED = ("text", "start", "end", "label")
_ONE_OF = ("start", "end", "worker", "text")
"""Roles for which a table has one column: several usual names are rejected."""
_TIMES = {"start": "started", "end": "submitted"}
"""What such columns are in tables of single labels."""
_NO_LABEL = {"o", "none", "no", "no entity", "no span", "-"}
"""Labels that a row without start and end may have."""


def span_columns(header: Collection[str], columns: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the columns of start and end, None if there are not both."""
    taken = {name for role, name in columns.items() if role not in {"start", "end"}}
    lower = {name.strip().lower(): name for name in header if name not in taken}
    found = []
    for role, usual in (("start", STARTS), ("end", ENDS)):
        named = columns.get(role)
        guess = next((lower[name] for name in usual if name in lower), None)
        found.append(named if named in header else guess)
    return (found[0], found[1]) if found[0] and found[1] else None


def is_span_table(header: Collection[str], columns: Mapping[str, str]) -> bool:
    """Whether columns are those of a table of spans: start, end, and no row per token."""
    if span_columns(header, columns) is None:
        return False
    names = {name.strip().lower() for name in header}
    has_tokens = bool({"token", "word", "position"} & names) or "token" in columns
    return "start" in columns or not has_tokens or bool(names & {*_ROLES["text"]})


def has_spans(header: Sequence[str]) -> bool:
    """Return whether columns are those of a table of spans, and it is clear what each is."""
    options = ReadOptions()
    try:
        return is_span_table(header, {}) and bool(find_columns(header, "", options))
    except FormatError:
        return False


def sniff(source: Source) -> bool:
    """Return whether the header has the columns of a table of spans."""
    if source.is_folder or source.is_parquet:
        return False
    return is_span_table(header_names(source), {})


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read a table of spans."""

    def find(header: Sequence[str], _: ReadOptions) -> dict[str, str]:
        return find_columns(header, source.name, options)

    grid, roles, _ = open_table(source, options, find, is_exact=True)
    columns = {name: as_strings(grid.column(name), name, grid.name) for name in roles.values()}
    cells = zip(*(column.to_pylist() for column in columns.values()), strict=True)
    rows = [
        Record(dict(zip(columns, row, strict=True)), source.name, int(n))
        for row, n in zip(cells, grid.line, strict=True)
    ]
    crowd = SpanCrowd(source, "span-table", options)
    crowd.builder.notes += grid.notes
    reader = _Reader(crowd, roles)
    reader.check_items(rows)
    for row in rows:
        with collect(crowd.faults):
            reader.text(row)
    for row in counted(rows, options.progress):
        with collect(crowd.faults):
            reader.row(row)
    reader.give()
    if "worker" not in roles:
        crowd.builder.notes.append("no worker column: the spans are read as gold")
    return crowd.build()


def write(
    crowd: Crowd, path: Path, soft: SoftLabels | None = None, *, raw_csv: bool = False
) -> None:
    """Write CSV: a row per span of every answer and of the gold, a row without span for none."""
    reject_single(crowd, "a table of spans holds")
    reject_gold_worker(crowd)
    names = ["item", "doc", "text", "start", "end", "label", "span_text", "worker", "attempt"]
    unused = {"doc"} if crowd.groups is None else set()
    unused |= set() if crowd.answers.attempt.any() else {"attempt"}
    if soft is not None:
        names.append("confidence")
    rows = (cells for row in item_rows(crowd, soft=soft) for cells in _cells(crowd, row))
    names = [name for name in names if name not in unused]
    listed = ([cells.get(name, "") for name in names] for cells in rows)
    write_text(path, [csv_text(names, listed, raw=raw_csv)])


def _cells(crowd: Crowd, row: ItemRow) -> Iterator[dict[str, Any]]:
    """The rows of an item by column; the first has its text."""
    text = row.text.value
    item: dict[str, Any] = {"item": row.id, "doc": row.group or ""}
    said: list[tuple[str, int, list[CharSpan], list[float] | None]] = []
    if row.gold is not None:
        said.append((GOLD, 0, row.gold, row.sure))
    said += [
        (worker, int(crowd.answers.attempt[a]), spans, None) for a, worker, spans in row.answers
    ]
    first = {"text": text}
    for worker, attempt, spans, sure in said:
        by = {"worker": _name("worker", worker), "attempt": attempt}
        for n, span in enumerate(spans):
            place = {"start": span.start, "end": span.end, "label": _name("label", span.type)}
            score = {} if sure is None else {"confidence": sure[n]}
            yield item | first | by | place | {"span_text": text[span.start : span.end]} | score
            first = {}
        if not spans:
            yield item | first | by
            first = {}
    if not said:
        yield item | first


def _name(what: str, name: str) -> str:
    """Return a name; reject one that would be read as none."""
    if name.strip() in ReadOptions.missing:
        raise InputError(
            f"{what} {name!r} would be read as no {what} from a table of spans: rename it, or "
            "write another format, such as spans"
        )
    return name


def find_columns(header: Sequence[str], file: str, options: ReadOptions) -> dict[str, str]:
    """Find the column of every role, by the user's name for it or by the usual ones."""
    return guessing.find_columns(header, file, options, _ROLES, needed=_NEEDED, single=_ONE_OF)


class _Reader:
    """Reads the rows of a table into a crowd."""

    def __init__(self, crowd: SpanCrowd, roles: Mapping[str, str]) -> None:
        self.crowd, self.roles = crowd, roles
        self.options = crowd.options
        self.texts: dict[str, Record] = {}
        self.ids: dict[str, str] = {}
        self.said: dict[tuple[str, str, str], tuple[Record, Item, list[CharSpan]]] = {}

    def cell(self, row: Record, role: str) -> str:
        """Return a cell; "" where the table has no such column or says that there is no value."""
        if role not in self.roles:  # a column may have no name: "" is not that of no role
            return ""
        value = str(row.value.get(self.roles[role], ""))
        if role == "text":
            return value
        return "" if value.strip() in self.options.missing else value.strip()

    def item_of(self, row: Record) -> str:
        if "item" in self.roles:
            value = str(row.value.get(self.roles["item"], ""))
            if not value.strip():
                raise row.error("the item is empty: write its id in every row", "empty-cell")
            return value
        text = self.cell(row, "text")
        if not text.strip():
            message = "the text is empty: without an item column every row needs its text"
            raise row.error(message, "empty-cell")
        return self.ids.setdefault(text, str(len(self.ids) + 1))

    def check_items(self, rows: Sequence[Record]) -> None:
        """Reject ids that are those of spans, not of items."""
        column = self.roles.get("item", "")
        if column.strip().lower() != "id" or "item" in self.options.columns:
            return
        ids = {str(row.value.get(column, "")) for row in rows}
        texts = [text for row in rows if (text := self.cell(row, "text")).strip()]
        if len(ids) == len(rows) and len(set(texts)) < len(texts):
            message = (
                f"every row has an {column!r} of its own, but texts come several times: is it the "
                "id of the span? Name the column of the item with columns={'item': …} (--columns "
                f"item=NAME), or pass columns={{'item': {self.roles['text']!r}}}"
            )
            raise FormatError([Fault(message, file=rows[0].file, line=1, kind="item")])

    def text(self, row: Record) -> None:
        name = self.item_of(row)
        text = self.cell(row, "text")
        if not text:
            return
        row = row.at(item=name)
        known = self.texts.setdefault(name, row)
        if self.cell(known, "text") != text:
            message = f"not the text that this item has in line {known.line}"
            hint = "give different texts different ids, or name the column of the item with "
            raise row.error(f"{message}: {hint}columns={{'item': …}} (--columns item=NAME)", "text")

    def row(self, row: Record) -> None:
        name = self.item_of(row)
        row = row.at(item=name)
        if name not in self.texts:
            message = "no row of this item has its text: write the text in one of them"
            raise row.error(message, "text")
        text = self.cell(self.texts[name], "text")
        item = self.crowd.items.get(name)
        if item is None:
            cut = cut_text(row, text, rule=self.options.tokens)
            group = self.cell(row, "doc") or None if "doc" in self.roles else None
            item = self.crowd.item(row, cut, group=group)
        worker = self.cell(row, "worker") if "worker" in self.roles else GOLD
        span = self.span(row)
        if not worker:
            if span is None:
                return  # an item, and nobody's answer
            message = self.absent(row, "worker", "the worker is empty: who selected this span?")
            raise row.error(message, "empty-cell")
        if "worker" in self.roles:
            worker = str(row.value[self.roles["worker"]])
        row = row.at(worker=worker)
        key = (name, worker, self.cell(row, "attempt"))
        found = self.said.setdefault(key, (row, item, []))
        if span is not None:
            found[2].extend(self.crowd.place(item, row, [span]))

    def span(self, row: Record) -> CharSpan | None:
        places = [self.cell(row, role) for role in ("start", "end")]
        label = str(row.value[self.roles["label"]])
        bare = self.cell(row, "label")
        if not any(places):
            if bare and bare.lower() not in _NO_LABEL:
                message = f"label {bare[:60]!r} without start and end: where is the span?"
                raise row.error(message, "span")
            return None
        if not bare:
            message = self.absent(row, "label", "a span without a label: write one")
            raise row.error(message, "span")
        start, end = self.number(row, "start", places[0]), self.number(row, "end", places[1])
        covers = self.cell(row, "covers") if "covers" in self.roles else None
        return char_span(row, label, start, end, covers or None)

    def absent(self, row: Record, role: str, message: str) -> str:
        """Say that a cell of a span is empty, or has a word that means so."""
        value = str(row.value[self.roles[role]])
        if not value.strip():
            return message
        hint = f"if it is a {role}, pass missing=… (--missing) without it"
        return f"{value!r} means no {role}: {hint}"

    def number(self, row: Record, role: str, cell: str) -> int:
        whole = cell.partition(".")[0] if cell.endswith((".0", ".00")) else cell
        if whole.isascii() and whole.isdigit() and len(whole) < 10:
            return int(whole)
        column = self.roles[role]
        message = (
            f"{role} must be a whole number from 0 on, not {cell[:60]!r}; if column {column!r} is "
            f"a time, pass columns={{{_TIMES[role]!r}: {column!r}}} (--columns "
            f"{_TIMES[role]}={column}), else name the right one with columns={{{role!r}: …}}"
        )
        raise row.error(message, "span")

    def give(self) -> None:
        """Add what every worker selected in every item."""
        for (_, _, attempt), (row, item, spans) in self.said.items():
            with collect(self.crowd.faults):
                if attempt and not (attempt.isascii() and attempt.isdigit() and len(attempt) < 6):
                    raise row.error(f"attempt {attempt[:60]!r} is not a whole number", "number")
                labels = Labels(sorted(spans, key=lambda span: (span.start, span.end)))
                facts = Facts(attempt=int(attempt) if attempt else None)
                if "worker" in self.roles:
                    self.crowd.answer_or_gold(item, row, labels, facts)
                else:
                    self.crowd.set_gold(item, row, labels)
