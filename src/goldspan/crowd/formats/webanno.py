r"""WebAnno TSV 3.x, as WebAnno and INCEpTION export and import it: a token per row.

Offsets count UTF-16 units of the document, in which sentences follow each other with a line feed
between; the format begins a sentence with its first token, so white space before it is lost. Of
several layers that have annotations, `NamedEntity` is read, else the first. Spans across sentences,
or without a label, are left out and listed; a row or sentence that was cut off is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import quote, unquote

from goldspan.crowd.atomic import write_folder
from goldspan.crowd.formats.char_spans import CharSpan, cut_text, same_words
from goldspan.crowd.formats.json_records import Record, collect, one_of
from goldspan.crowd.formats.span_crowd import GOLD, Labels, SpanCrowd
from goldspan.crowd.formats.span_exports import (
    ItemRow,
    SoftLabels,
    item_rows,
    reject_gold_worker,
    reject_single,
)
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source, counted
from goldspan.errors import FormatError, GoldspanError, InputError

_FORMAT = "#FORMAT=WebAnno TSV 3."
_OLD = re.compile(r"^#id=.*\n#text=.*\n\d+(-\d+)?\s", re.MULTILINE)
_START = 10_000
"""Characters of a file within which its version is to be seen."""
REJECTED = "this is WebAnno TSV 1 or 2, which is not read: export as WebAnno TSV 3.3"
_ENTITY = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
_LINE_ENDS = {"\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", "\b": "\\b", "\\": "\\\\"}
_ESCAPED = {mark[1]: char for char, mark in _LINE_ENDS.items()}
_RESERVED = re.compile(r"->|[\\\[\]|_;\t\n*]")
_VALUE = re.compile(r"((?:\\->|\\.|[^\\\[\]|])*)(?:\[(\d{1,9})\])?", re.DOTALL)
_ID = re.compile(r"^#Sentence\.id=(.+)$", re.MULTILINE)
_ROW = re.compile(r"\d+-(\d+)(?:\.(\d+))?\t(\d{1,9})-(\d{1,9})\t")

# --------------------------------------------------------------------------------------------------
# Folders with a file per document and annotator, here and for UIMA CAS: `DOCUMENT/ANNOTATOR.ext`,
# the gold as `CURATION_USER`, as INCEpTION names what was curated. A document is a group of items,
# which are its sentences; items without a group are in the document `_`. The file of an annotator
# has the sentences that they answered, so that what nobody saw is not taken for "nothing there".
# What cannot stand in a file name is percent-encoded.


CURATED = "CURATION_USER"
"""Who annotated the gold, in files of INCEpTION."""
_NO_DOCUMENT = "_"
_INITIAL = "INITIAL_CAS"
"""What INCEpTION calls a document before anybody annotated it."""
_SHARED = "sentences of several documents have the same id: every id begins with its document"


class AnnotatedSentence(NamedTuple):
    """What one annotator, or the gold, says of a sentence."""

    row: ItemRow
    spans: list[CharSpan]  # Spans of characters of its text, in order
    sure: list[float] | None = None  # Their confidences, None if there are none


def write_documents(
    crowd: Crowd,
    path: Path,
    soft: SoftLabels | None,
    ending: str,
    save: Callable[[Path, list[AnnotatedSentence]], None],
) -> None:
    """Write a folder; `save` writes the sentences of one document and annotator to a file."""
    reject_single(crowd, "files of UIMA and WebAnno hold")
    reject_gold_worker(crowd)
    if CURATED in crowd.worker_ids.to_pylist():
        raise InputError(f"worker {CURATED!r} would be read as gold from this format: rename it")

    files: dict[tuple[str, str], dict[str, AnnotatedSentence]] = {}  # The last answers count
    for row in item_rows(crowd, soft=soft):
        document = _NO_DOCUMENT if row.group is None else row.group
        if row.gold is not None:
            said = AnnotatedSentence(row, row.gold, row.sure)
            files.setdefault((document, CURATED), {})[row.id] = said
        for _, worker, spans in row.answers:
            files.setdefault((document, worker), {})[row.id] = AnnotatedSentence(row, spans)

    def fill(folder: Path) -> None:
        for (document, name), sentences in files.items():
            place = folder / _safe(document) / f"{_safe(name)}{ending}"
            place.parent.mkdir(exist_ok=True)
            save(place, list(sentences.values()))

    write_folder(path, fill)


def _safe(name: str) -> str:
    """Return a name as a file can have it."""
    found = quote(name, safe=" @+,()'")
    return f"%2E{found[1:]}" if found.startswith(".") else found


class File(NamedTuple):
    """A file of a document and annotator."""

    source: Source
    document: str | None  # The document, None if the file names none
    worker: str  # The annotator, "gold" for what was curated

    def item_id(self, own: str | None, number: int, *, is_shared: bool) -> str:
        """Return the id of a sentence: its own or its number, with the document if need be."""
        named = own or str(number)
        return f"{self.document}-{named}" if self.document and (is_shared or not own) else named


def listed_files(source: Source, *endings: str) -> list[File]:
    """Return the files of a folder or an archive with one of some endings."""
    # A single file names no annotator: what it holds is gold
    if not source.is_folder:
        return [File(source, None, GOLD)]
    found = []
    for path, file in _flat(source):
        place = PurePosixPath(path)
        worker = unquote(place.stem)
        if file.suffix not in endings or worker == _INITIAL or place.name == "TypeSystem.xml":
            continue
        parents = [part for part in place.parts[:-1] if not part.endswith(".zip")]
        document = unquote(parents[-1]) if parents else worker
        is_gold = worker == CURATED or not parents
        document_or_none = None if document == _NO_DOCUMENT else document
        found.append(File(file, document_or_none, GOLD if is_gold else worker))
    return found


def _flat(source: Source, above: str = "") -> Iterator[tuple[str, Source]]:
    for path, file in source.sorted_files():
        if file.is_folder:
            yield from _flat(file, f"{above}{path}/")
        else:
            yield above + path, file


def share_ids(
    crowd: SpanCrowd, files: Sequence[File], ids_of: Callable[[File], Iterable[str]]
) -> bool:
    """Return whether sentences of several documents have the same id, and note it if so."""
    found: dict[str, str | None] = {}
    for file in files:
        for name in ids_of(file):
            if found.setdefault(name, file.document) != file.document:
                crowd.builder.notes.append(_SHARED)
                return True
    return False


# --------------------------------------------------------------------------------------------------
# WebAnno TSV.


def sniff(source: Source) -> bool:
    """Return whether a file, or the first .tsv of a folder, is WebAnno TSV, also 1 and 2."""
    files = listed_files(source, ".tsv")
    try:
        text = files[0].source.text.value if files else ""
    except GoldspanError:
        return False
    return text.startswith(_FORMAT) or is_old(text)


def is_old(text: str) -> bool:
    """Return whether a text is WebAnno TSV 1 or 2."""
    return _OLD.search(text, 0, _START) is not None


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read a file, a folder or an archive."""
    crowd = SpanCrowd(source, "webanno", options, counted=True)
    files = listed_files(source, ".tsv")
    is_shared = share_ids(crowd, files, _sentence_ids)
    # Tools leave out the layers in which an annotator did nothing
    is_elsewhere = "label" in options.columns and _has_layer(files, options.columns["label"])
    for file in counted(files, options.progress):
        with collect(crowd.faults):
            _read_file(crowd, file, is_shared=is_shared, is_elsewhere=is_elsewhere)
    return crowd.build()


def _has_layer(files: Sequence[File], wanted: str) -> bool:
    """Return whether a file has a layer, or a feature of one, of this name."""
    for file in files:
        with suppress(GoldspanError):
            header = _header(file.source.text.value.split("\n"))
            if any(
                one.has_spans and wanted in {one.layer, *one.features} for one in _used(header, [])
            ):
                return True
    return False


def _sentence_ids(file: File) -> Iterable[str]:
    try:
        return _ID.findall(file.source.text.value)
    except GoldspanError:
        return []  # it is told when the file is read


def layers(source: Source, options: ReadOptions) -> list[str]:  # noqa: ARG001
    """Return the layers of spans that have annotations."""
    found = dict.fromkeys(
        one.layer
        for file in listed_files(source, ".tsv")
        for lines in [file.source.text.value.split("\n")]
        for one in _used(_header(lines), [*_sentences(lines, Record({}, file.source.name))])
        if one.has_spans and one.n
    )
    return sorted(found, key=lambda name: name != _ENTITY)


class _Row(NamedTuple):
    """A row of a token, or of a part of one."""

    line: int  # Where it stands
    first: int  # Its first unit in the document
    last: int  # One past its last unit
    is_part: bool  # Whether it is part of a token
    token: str  # What it covers
    cells: list[str]  # One per column of the layers


@dataclass
class _Sentence:
    """The rows of a sentence while it is read."""

    record: Record  # Where it begins
    id: str | None = None  # Its id, None if it has none
    text: str | None = None
    rows: list[_Row] = field(default_factory=list)
    # First and last unit of every span, by its label, None if it has none, and its number
    spans: dict[tuple[str | None, str], tuple[int, int]] = field(default_factory=dict)
    left_out: list[tuple[int, int]] = field(default_factory=list)  # The same of what is left out


def _read_file(crowd: SpanCrowd, file: File, *, is_shared: bool, is_elsewhere: bool) -> None:
    place = Record({}, file.source.name, 1, worker=file.worker)
    lines = file.source.text.value.split("\n")
    if is_old(file.source.text.value):
        raise place.at(worker="").error(REJECTED, "header")
    if not lines[0].startswith(_FORMAT):
        message = f"the first line is not {_FORMAT}3: is this WebAnno TSV?"
        raise place.error(message, "header")
    header = _header(lines)
    n_columns = sum(len(features) for _, _, features, _ in header)
    sentences = list(_sentences(lines, place))
    column = _chosen(crowd, _used(header, sentences), place, is_elsewhere=is_elsewhere)
    first_lines: dict[str, int] = {}
    whole = []
    for number, one in enumerate(sentences, start=1):
        with collect(crowd.faults):
            name = file.item_id(one.id, number, is_shared=is_shared)
            one.record = one.record.at(item=name)
            first = first_lines.setdefault(name, one.record.line)
            if first < one.record.line:
                message = f"the sentence id appears twice in this file (first in line {first})"
                raise one.record.error(f"{message}: ids must be unique", "duplicate-item")
            _check_cells(one, n_columns)
            _find_spans(one, column)
            whole += [one] if one.rows else []
    _leave_out_across(crowd, sentences)
    for one in whole:
        with collect(crowd.faults):
            _read_sentence(crowd, file, one)


_Header = list[tuple[str, str, list[str], int]]
"""Of every layer its kind, name, features and first column."""


def _header(lines: Sequence[str]) -> _Header:
    found: _Header = []
    n_columns = 0
    for line in lines[1:]:
        if not line.startswith("#T_"):
            break
        kind, _, names = line.partition("=")
        layer, *features = names.split("|")
        found.append((kind, layer, features or [""], n_columns))
        n_columns += len(features) or 1
    return found


class _Layer(NamedTuple):
    """A layer of a file."""

    layer: str
    features: list[str]
    first: int  # Its first column
    n: int  # Rows with an annotation of it
    has_spans: bool  # Whether it is of spans, not of relations or slots


def _used(header: _Header, sentences: Sequence[_Sentence]) -> list[_Layer]:
    found = []
    for kind, layer, features, first in header:
        cells = [
            row.cells[first] for one in sentences for row in one.rows if len(row.cells) > first
        ]
        n = sum(cell not in {"", "_"} for cell in cells)
        spans = kind == "#T_SP" and not features[0].startswith("ROLE_")
        found.append(_Layer(layer, features, first, n, spans))
    return found


def _sentences(lines: Sequence[str], place: Record) -> Iterator[_Sentence]:
    found: _Sentence | None = None
    is_after_blank = False
    for number, line in enumerate(lines, start=1):
        here = Record({}, place.file, number, worker=place.worker)
        key, is_said, value = line.partition("=")
        if is_said and key in {"#Text", "#Sentence.id"}:
            if found and (found.rows or (is_after_blank and found.text is not None)):
                yield found
                found = None
            found = found or _Sentence(here)
            if key == "#Sentence.id":
                found.id = value
            else:
                text = _unescape_text(value)
                found.text = text if found.text is None else f"{found.text}\n{text}"
        elif row := _ROW.match(line):
            if found is None or found.text is None:
                raise here.error("a row before the text of its sentence (#Text=)", "line")
            token, *cells = line[row.end() :].removesuffix("\t").split("\t")
            units = int(row[3]), int(row[4])
            found.rows.append(_Row(number, *units, row[2] is not None, token, cells))
        elif line.strip() and not line.startswith("#"):
            raise here.error(f"not a row of a token: {line[:60]!r}", "line")
        is_after_blank = not line.strip()
    if found:
        yield found


def _check_cells(one: _Sentence, n_columns: int) -> None:
    text = (one.text or "").strip()
    if text and not one.rows:
        message = f"the sentence {text[:60]!r} has no rows of tokens: was the file cut off?"
        raise one.record.error(message, "cells")
    faults = [
        one.record._replace(line=row.line).fault(
            f"a row of {len(row.cells)} cells after its token {row.token[:60]!r}, where the layers "
            f"(#T_) have {n_columns} columns: was the file cut off?",
            "cells",
        )
        for row in one.rows
        if len(row.cells) < n_columns
    ]
    if faults:
        raise FormatError(faults)


def _find_spans(one: _Sentence, column: int | None) -> None:
    for n, row in enumerate(one.rows):
        cell = "_" if column is None else row.cells[column]
        for label, mark in _values(cell, one.record._replace(line=row.line)):
            key = label, mark or f"row {n}"
            first, last = one.spans.get(key, (row.first, row.last))
            one.spans[key] = first, max(last, row.last)


def _leave_out_across(crowd: SpanCrowd, sentences: Sequence[_Sentence]) -> None:
    """Leave out spans that end with the last row of a sentence and go on in the next one."""
    across: list[tuple[_Sentence, tuple[str | None, str]]] = []
    begun: set[tuple[str | None, str]] = set()
    for one, after in pairwise(sentences):
        going_on = {
            key
            for key in one.spans.keys() & after.spans.keys()
            if key[1].isdigit()
            and one.spans[key][1] == max(row.last for row in one.rows)
            and after.spans[key][0] == after.rows[0].first
        }
        for label, mark in sorted(going_on - begun, key=str):
            message = f"span {label or 'without a label'} [{mark}] goes on in the next sentence"
            crowd.leave_out(one.record, f"{message}: left out", "span across sentences")
        across += [(part, key) for key in going_on for part in (one, after)]
        begun = going_on
    for part, key in across:
        if key in part.spans:
            part.left_out.append(part.spans.pop(key))


def _chosen(
    crowd: SpanCrowd, used: Sequence[_Layer], place: Record, *, is_elsewhere: bool
) -> int | None:
    """Choose the column of the labels; the others are counted. None if there is none."""
    wanted = crowd.options.columns.get("label")
    named = [one for one in used if wanted in {one.layer, *one.features} and one.has_spans]
    if wanted is not None and not named and used and not is_elsewhere:
        there = ", ".join(f"{one.layer} ({', '.join(one.features)})" for one in used)
        raise place.error(f"no layer or feature {wanted!r}: there are {there}", "layer")
    candidates = [one for one in used if one.has_spans and one.n] if wanted is None else named
    candidates = sorted(candidates, key=lambda one: one.layer != _ENTITY)
    names = [one.layer for one in candidates]
    if len(names) > 1 and wanted is None and (note := one_of(names)) not in crowd.builder.notes:
        crowd.builder.notes.append(note)
    best = candidates[0] if candidates else None
    for one in used:
        if one.n and (best is None or one.layer != best.layer):
            crowd.leave_unread(f"annotations of the layer {one.layer[-60:]!r}", place, one.n)
    if best is None:
        return None
    if not named:
        crowd.check_layer(best.layer, place)
    features = best.features
    name = wanted if wanted in features else "value" if "value" in features else features[0]
    return best.first + features.index(name)


def _read_sentence(crowd: SpanCrowd, file: File, one: _Sentence) -> None:
    text, base = one.text or "", _base(one)
    points = {base + unit: n for n, unit in enumerate(_units(text))}
    for row in one.rows:
        _check_place(one, row, text, base, points)
    bounds = [(points[row.first], points[row.last]) for row in one.rows if not row.is_part]
    tokens, starts = [text[a:b] for a, b in bounds], [a for a, _ in bounds]
    if bounds and text[bounds[-1][1] :].strip():
        what = "ends of sentences behind the last row (is the file cut off?)"
        crowd.leave_unread(what, one.record)
    cut = cut_text(one.record, text, tokens, starts)
    item = crowd.item(one.record, cut, group=file.document)
    spans = [
        CharSpan(label or "", points[first], points[last])
        for (label, _), (first, last) in one.spans.items()
    ]
    gone = [CharSpan("", points[first], points[last]) for first, last in one.left_out]
    crowd.leave_open(one.record, gone)
    placed = crowd.place(item, one.record, spans)
    crowd.answer_or_gold(item, one.record, Labels(placed))


def _check_place(
    one: _Sentence, row: _Row, text: str, base: int, points: Mapping[int, int]
) -> None:
    """Raise `FormatError` if the text has no place at a row's offsets, or other characters."""
    record = one.record._replace(line=row.line)
    for unit in (row.first, row.last):
        if unit not in points:
            message = f"offset {unit} is outside the sentence's text or within a character"
            raise record.error(message, "out-of-range")
    seen = text[points[row.first] : points[row.last]]
    if _is_token(row, seen):
        return
    message = f"the token at {row.first}-{row.last} is {row.token[:60]!r}, but the sentence's text "
    message += f"has {seen[:60]!r} there"
    if _is_token(row, text[row.first - base : row.last - base]):
        message += "; it fits if offsets count code points: in WebAnno TSV they count UTF-16 units"
    raise record.error(message, "text-mismatch")


def _base(one: _Sentence) -> int:
    """Return where a sentence's text begins in the document; white space may come before tokens."""
    text, first = one.text or "", one.rows[0]
    if text.startswith((first.token, _unescape_text(first.token))):
        return first.first
    return first.first - len(text) + len(text.lstrip())


def _is_token(row: _Row, seen: str) -> bool:
    """Return whether a row's token is what a text has; not all tools escape tokens."""
    return same_words(seen, row.token) or same_words(seen, _unescape_text(row.token))


def _values(cell: str, record: Record) -> Iterator[tuple[str | None, str]]:
    """The labels of a cell (None: a span without one), each with its number, "" if it has none."""
    if cell in {"", "_"}:
        return
    at = 0
    while at <= len(cell):
        found = _VALUE.match(cell, at)
        assert found is not None
        end = found.end()
        if (end < len(cell) and cell[end] != "|") or not found[1]:
            raise record.error(f"not the label of a span: {cell[:60]!r}", "label")
        yield None if found[1] == "*" else _unescape(found[1]), found[2] or ""
        at = end + 1


def write(crowd: Crowd, path: Path) -> None:
    """Write a folder with a file per document and annotator."""
    write_documents(crowd, path, None, ".tsv", _save)


def _save(path: Path, said: list[AnnotatedSentence]) -> None:
    lines = [f"{_FORMAT}3", f"#T_SP={_ENTITY}|identifier|value", "", ""]
    offset = number = 0
    for n, one in enumerate(said, start=1):
        bounds = one.row.text.bounds
        if any(mark in one.row.id for mark in "\r\n"):
            raise InputError(f"item {one.row.id!r}: a sentence's id is one line in WebAnno TSV")
        text = one.row.text.value[bounds[0][0] :]
        lines += [f"#Sentence.id={one.row.id}", f"#Text={_escape_text(text)}"]
        covering: dict[int, list[tuple[CharSpan, list[int]]]] = {}
        for span in one.spans:
            covered = [i for i, (a, b) in enumerate(bounds) if span.start <= a and b <= span.end]
            for i in covered:
                covering.setdefault(i, []).append((span, covered))
        numbers = {span: number + n for n, span in enumerate(one.spans, start=1)}
        number += len(one.spans)
        cells = {}
        for i, own in covering.items():
            marks = [
                f"[{numbers[span]}]" if len(own) > 1 or len(covered) > 1 else ""
                for span, covered in own
            ]
            labels = [f"{_escape(span.type)}{m}" for (span, _), m in zip(own, marks, strict=True)]
            cells[i] = "|".join(f"*{mark}" for mark in marks), "|".join(labels)
        units = _units(text)
        for i, (a, b) in enumerate(bounds):
            first, last = (offset + units[place - bounds[0][0]] for place in (a, b))
            token = _escape_text(one.row.text.value[a:b])
            values = "\t".join(cells.get(i, ("_", "_")))
            lines.append(f"{n}-{i + 1}\t{first}-{last}\t{token}\t{values}\t")
        lines.append("")
        offset += units[-1] + 1
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def _units(text: str) -> list[int]:
    """The UTF-16 units before every character, and of the whole text."""
    found = [0]
    for char in text:
        found.append(found[-1] + 1 + (ord(char) > 0xFFFF))
    return found


def _escape_text(text: str) -> str:
    """Write a text on one line."""
    return "".join(_LINE_ENDS.get(char, f"\\{char}" if char < " " else char) for char in text)


def _unescape_text(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPED.get(found[1], found[1]), text, flags=re.DOTALL)


def _escape(label: str) -> str:
    """Write a label."""
    special = {"\t": "\\t", "\n": "\\n"}
    return _RESERVED.sub(lambda found: special.get(found[0], f"\\{found[0]}"), label)


def _unescape(label: str) -> str:
    marks = {"t": "\t", "n": "\n"}
    return re.sub(r"\\(->|.)", lambda found: marks.get(found[1], found[1]), label, flags=re.DOTALL)
