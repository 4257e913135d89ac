r"""WebAnno TSV 3.x, as WebAnno and INCEpTION export and import it: a token per row.

A folder with `DOCUMENT/ANNOTATOR.tsv` (`documents.py`), or one file, whose spans are gold. goldspan
writes version 3.3: spans are named entities of DKPro Core (`NamedEntity|identifier|value`), an item
is a sentence with its id (`#Sentence.id=`). Offsets count UTF-16 units of the document, in which
sentences follow each other with a line feed between; the format begins a sentence with its first
token, so white space before it is lost. There is no place for confidences.

It reads spans of any layer: of several layers that have annotations, `NamedEntity`, else the first;
`columns={"label": "webanno.custom.Layer"}` names another, or a feature ("value" by default, else
the layer's first). Spans of sub-tokens are exact. Relations, chains and other layers are counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from goldspan.crowd.formats.char_spans import CharSpan, code_point, cut_text
from goldspan.crowd.formats.documents import File, Said, listed_files, write_documents
from goldspan.crowd.formats.json_records import Record, collect
from goldspan.crowd.formats.span_crowd import Labels, SpanCrowd
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.report import counted
from goldspan.crowd.source import Source
from goldspan.errors import GoldspanError, InputError

_FORMAT = "#FORMAT=WebAnno TSV 3."
_ENTITY = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
_LINE_ENDS = {"\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", "\b": "\\b", "\\": "\\\\"}
_ESCAPED = {mark[1]: char for char, mark in _LINE_ENDS.items()}
_RESERVED = re.compile(r"->|[\\\[\]|_;\t\n*]")
_VALUE = re.compile(r"((?:\\->|\\.|[^\\\[\]|])*)(?:\[(\d{1,9})\])?", re.DOTALL)
_ROW = re.compile(r"\d+-(\d+)(?:\.(\d+))?\t(\d{1,9})-(\d{1,9})\t")


def sniff(source: Source) -> bool:
    """Return whether a file, or the first .tsv of a folder, is WebAnno TSV 3."""
    files = listed_files(source, ".tsv")
    try:
        return bool(files) and files[0].source.text.value.startswith(_FORMAT)
    except GoldspanError:
        return False


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read a file, a folder or an archive."""
    crowd = SpanCrowd(source, "webanno", options)
    files = listed_files(source, ".tsv")
    for file in counted(files, options.progress):
        with collect(crowd.faults):
            _read_file(crowd, file)
    return crowd.build()


@dataclass
class _Sentence:
    """The rows of a sentence while it is read.

    Attributes:
        record: Where it begins.
        id: Its id, None if it has none.
        text: Its text.
        rows: First and last unit, whether it is part of a token, and the cells of every row.
    """

    record: Record
    id: str | None = None
    text: str | None = None
    rows: list[tuple[int, int, bool, list[str]]] = field(default_factory=list)


def _read_file(crowd: SpanCrowd, file: File) -> None:
    place = Record({}, file.source.name, 1, worker=file.worker)
    lines = file.source.text.value.split("\n")
    if not lines[0].startswith(_FORMAT):
        message = f"the first line is not {_FORMAT}3: is this WebAnno TSV?"
        raise place.error(message, "header")
    layers, column = [], 0
    for line in lines[1:]:
        if not line.startswith("#T_"):
            break
        kind, _, names = line.partition("=")
        layer, *features = names.split("|")
        layers.append((kind, layer, features or [""], column))
        column += len(features) or 1
    sentences = list(_sentences(lines, place))
    chosen = _chosen(crowd, layers, sentences, place)
    for number, one in enumerate(sentences, start=1):
        with collect(crowd.faults):
            _read_sentence(crowd, file, one, number, chosen)


def _sentences(lines: Sequence[str], place: Record) -> Iterator[_Sentence]:
    """The sentences of a file."""
    found: _Sentence | None = None
    for number, line in enumerate(lines, start=1):
        here = Record({}, place.file, number, worker=place.worker)
        key, is_said, value = line.partition("=")
        if is_said and key in {"#Text", "#Sentence.id"}:
            if found is None or found.rows:
                if found is not None:
                    yield found
                found = _Sentence(here)
            if key == "#Sentence.id":
                found.id = value
            else:
                text = _unescape_text(value)
                found.text = text if found.text is None else f"{found.text}\n{text}"
        elif row := _ROW.match(line):
            if found is None or found.text is None:
                raise here.error("a row before the text of its sentence (#Text=)", "line")
            cells = line[row.end() :].split("\t")
            found.rows.append((int(row[3]), int(row[4]), row[2] is not None, cells[1:]))
        elif line.strip() and not line.startswith("#"):
            raise here.error(f"not a row of a token: {line[:60]!r}", "line")
    if found is not None and found.rows:
        yield found


def _chosen(
    crowd: SpanCrowd,
    layers: Sequence[tuple[str, str, list[str], int]],
    sentences: Sequence[_Sentence],
    place: Record,
) -> int | None:
    """Choose the column of the labels; the others are counted. None if there is none."""
    wanted = crowd.options.columns.get("label")
    used = []
    for kind, layer, features, first in layers:
        cells = [
            cells[first] for one in sentences for _, _, _, cells in one.rows if len(cells) > first
        ]
        n = sum(cell not in {"", "_"} for cell in cells)
        spans = kind == "#T_SP" and not features[0].startswith("ROLE_")
        used.append((layer, features, first, n, spans))
    named = [row for row in used if wanted in {row[0], *row[1]} and row[4]]
    if wanted is not None and not named and layers:
        there = ", ".join(f"{layer} ({', '.join(features)})" for _, layer, features, _ in layers)
        raise place.error(f"no layer or feature {wanted!r}: there are {there}", "layer")
    candidates = named or [row for row in used if row[4] and row[3]]
    candidates = sorted(candidates, key=lambda row: row[0] != _ENTITY)
    best = candidates[0] if candidates else None
    for layer, _, _, n, _ in used:
        if n and (best is None or layer != best[0]):
            crowd.leave_unread(f"annotations of the layer {layer[-60:]!r}", place, n)
    if best is None:
        return None
    features = best[1]
    name = wanted if wanted in features else "value" if "value" in features else features[0]
    return best[2] + features.index(name)


def _read_sentence(
    crowd: SpanCrowd, file: File, one: _Sentence, number: int, column: int | None
) -> None:
    text, base = one.text or "", one.rows[0][0]
    name = one.id or (f"{file.document}-{number}" if file.document else str(number))
    record = one.record.at(item=name)

    def place(unit: int) -> int:
        found = code_point(text, unit - base, "utf16") if unit >= base else None
        if found is None:
            message = f"offset {unit} is outside the sentence's text or within a character"
            raise record.error(message, "out-of-range")
        return found

    bounds = [(place(a), place(b)) for a, b, is_part, _ in one.rows if not is_part]
    tokens, starts = [text[a:b] for a, b in bounds], [a for a, _ in bounds]
    if bounds and text[bounds[-1][1] :].strip():
        crowd.leave_unread("ends of sentences behind the last row (is the file cut off?)", record)
    item = crowd.item(record, cut_text(record, text, tokens, starts), group=file.document)
    spans: dict[tuple[str, str], list[int]] = {}
    for n, (first, last, _, cells) in enumerate(one.rows):
        cell = cells[column] if column is not None and len(cells) > column else "_"
        for label, mark in _values(cell, record):
            found = spans.setdefault((label, mark or f"row {n}"), [place(first), place(last)])
            found[1] = max(found[1], place(last))
    listed = [CharSpan(label, a, b) for (label, _), (a, b) in spans.items()]
    by = record.at(worker=file.worker)
    # The offsets are code points by now, whatever `offsets` says of other formats.
    labels = Labels(sorted(listed, key=lambda span: (span.start, span.end)))
    crowd.answer_or_gold(item, by, labels)


def _values(cell: str, record: Record) -> Iterator[tuple[str, str]]:
    """The labels of a cell, each with its number, "" if it has none."""
    if cell in {"", "_"}:
        return
    at = 0
    while at <= len(cell):
        found = _VALUE.match(cell, at)
        assert found is not None
        end = found.end()
        if (end < len(cell) and cell[end] != "|") or not found[1]:
            raise record.error(f"not the label of a span: {cell[:60]!r}", "label")
        if found[1] != "*":  # a span without a label
            yield _unescape(found[1]), found[2] or ""
        at = end + 1


def write(crowd: Crowd, path: Path) -> None:
    """Write a folder with a file per document and annotator."""
    write_documents(crowd, path, None, ".tsv", _save)


def _save(path: Path, said: list[Said]) -> None:
    lines = [f"{_FORMAT}3", f"#T_SP={_ENTITY}|identifier|value", "", ""]
    offset = number = 0
    for n, one in enumerate(said, start=1):
        bounds = one.row.text.bounds
        if any(mark in one.row.id for mark in "\r\n"):
            raise InputError(f"item {one.row.id!r}: a sentence's id is one line in WebAnno TSV")
        text = one.row.text.value[bounds[0][0] :]
        lines += [f"#Sentence.id={one.row.id}", f"#Text={_escape_text(text)}"]
        cells: dict[int, tuple[str, str]] = {}
        for span in one.spans:
            covered = [i for i, (a, b) in enumerate(bounds) if span.start <= a and b <= span.end]
            number += 1
            mark = f"[{number}]" if len(covered) > 1 else ""
            cells |= dict.fromkeys(covered, (f"*{mark}", f"{_escape(span.type)}{mark}"))
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
    r"""Write a text on one line.

    >>> _escape_text("a\tb")
    'a\\tb'
    """
    return "".join(_LINE_ENDS.get(char, f"\\{char}" if char < " " else char) for char in text)


def _unescape_text(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPED.get(found[1], found[1]), text, flags=re.DOTALL)


def _escape(label: str) -> str:
    r"""Write a label.

    >>> _escape("A_B->C")
    'A\\_B\\->C'
    """
    special = {"\t": "\\t", "\n": "\\n"}
    return _RESERVED.sub(lambda found: special.get(found[0], f"\\{found[0]}"), label)


def _unescape(label: str) -> str:
    marks = {"t": "\t", "n": "\n"}
    return re.sub(r"\\(->|.)", lambda found: marks.get(found[1], found[1]), label, flags=re.DOTALL)
