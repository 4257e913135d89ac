"""Folders of brat: texts, annotations, one folder per annotator."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from goldspan.crowd.atomic import write_folder
from goldspan.crowd.formats.char_spans import CharSpan, code_point, cut_text, reads_otherwise
from goldspan.crowd.formats.json_records import Record, collect, shown, stem
from goldspan.crowd.formats.span_crowd import GOLD, Item, Labels, SpanCrowd, pieces_within
from goldspan.crowd.formats.span_exports import PREDICTED_BY, ItemRow, item_rows, reject_gold_worker
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source, counted
from goldspan.errors import Fault, FormatError, GoldspanError

# --------------------------------------------------------------------------------------------------
# The lines of brat's `.ann` files, and what their offsets count.


NOT_USED = {
    "R": "relations",
    "*": "relations",
    "E": "events",
    "A": "attributes",
    "M": "attributes",
    "N": "normalisations",
    "#": "notes",
}
"""What lines are that begin so; they are counted, but not used."""


def text_bound(
    crowd: SpanCrowd, record: Record, file: Source
) -> Iterator[tuple[Record, list[CharSpan]]]:
    """Yield the text-bound annotations of a file, each with its pieces; others are counted."""
    seen = set()
    lines = file.text.value.split("\n") if file.data.strip() else []
    for number, line in enumerate(lines, start=1):
        one = record._replace(line=number)
        mark, _, rest = line.partition("\t")
        if mark and mark[0] in NOT_USED:
            crowd.leave_unread(NOT_USED[mark[0]], one)
        elif line.strip():
            with collect(crowd.faults):
                if mark in seen:
                    raise one.error(f"id {mark[:20]!r} appears twice", "duplicate-id")
                seen.add(mark)
                yield one, _pieces(one, mark, rest)


def counted_text(
    file: Source, offsets: str, spans: Sequence[CharSpan]
) -> tuple[str, Sequence[int]]:
    """Return the text that offsets count, and where its characters are in the text as read."""
    # brat counts a byte order mark and carriage returns: where more spans cover what they say
    text = file.text.value
    raw = file.data.decode(file.text.encoding)
    if raw != text:
        wrong = [sum(bool(reads_otherwise(t, s, offsets)) for s in spans) for t in (text, raw)]
        if wrong[1] < wrong[0]:
            return raw, _places(raw)
    return text, range(len(text) + 1)


def _pieces(record: Record, mark: str, rest: str) -> list[CharSpan]:
    """The pieces of a text-bound annotation; what they cover is checked if it is one."""
    head, tab, covers = rest.partition("\t")
    kind, _, offsets = head.partition(" ")
    pieces = [piece.split(" ") for piece in offsets.split(";")]
    numbers = [n.isascii() and n.isdigit() and len(n) < 19 for piece in pieces for n in piece]
    if not mark.startswith("T") or not kind or not all(numbers) or any(len(p) != 2 for p in pieces):
        form = "T1<TAB>TYPE START END<TAB>TEXT"
        message = f"expected {form}, found {shown(mark + chr(9) + head)}"
        raise record.error(message, "line")
    text = covers if tab and len(pieces) == 1 else None
    return [CharSpan(kind, int(a), int(b), text) for a, b in pieces]


def _places(raw: str) -> list[int]:
    """Place of every character in the text without byte order mark and carriage returns."""
    places, n = [], 0
    for i, char in enumerate(raw):
        places.append(n)
        n += not ((char == "\ufeff" and i == 0) or raw[i : i + 2] == "\r\n")
    return [*places, n]


# --------------------------------------------------------------------------------------------------
# Crowds as brat's folders.


_UNSAFE = re.compile(r'^\.|^_|^$|[%/\\:*?"<>|\x00-\x1f\x7f]|[. ]$')
_LINE_ENDS = re.compile("[\n\r\0\ufeff]")
_MAX_GAP = 1000
_PREDICTED = f"_{PREDICTED_BY}"
"""The folder of documents that nobody confirmed as a whole; no worker's folder begins so."""


def fill(crowd: Crowd, folder: Path, predicted: Mapping[str, float] | None = None) -> None:
    """Write the texts, and for every worker the texts that were annotated with the annotations."""
    documents: dict[str, list[ItemRow]] = {}
    said: dict[str, dict[str, list[CharSpan]]] = {}  # By worker and item; the last answer counts
    for row in item_rows(crowd, predicted):
        documents.setdefault(row.id if row.group is None else row.group, []).append(row)
        if row.gold is not None:
            said.setdefault(GOLD, {})[row.id] = row.gold
        for _, worker, spans in row.answers:
            said.setdefault(worker, {})[row.id] = spans
    for name, rows in documents.items():
        lines = _on_lines(name, rows)
        text = "".join(f"{_text(row) if row else ''}\n" for row in lines)
        _save(folder / f"{safe(name)}.txt", text)
        for worker, own in said.items():
            if any(row.id in own for row in rows):
                notes = worker == GOLD and any(row.is_predicted for row in rows)
                place = folder / (_PREDICTED if notes else safe(worker)) / safe(name)
                _save(place.with_name(f"{place.name}.txt"), text)
                annotations = "".join(_annotations(lines, own, notes=notes))
                _save(place.with_name(f"{place.name}.ann"), annotations)


def _on_lines(name: str, rows: Sequence[ItemRow]) -> list[ItemRow | None]:
    """Put items on the lines of a document that their ids name, else on the next ones."""
    lines: list[ItemRow | None] = []
    for row in rows:
        number = row.id.removeprefix(f"{name}-")
        line = int(number) if number.isascii() and number.isdigit() and len(number) < 9 else 0
        last = len(lines)
        if last < line <= last + _MAX_GAP and f"{name}-{line}" == row.id:
            lines += [None] * (line - 1 - last)
        lines.append(row)
    return lines


def _text(row: ItemRow) -> str:
    """Return an item's text on one line, of the same length."""
    return _LINE_ENDS.sub(" ", row.text.value)


def _annotations(
    lines: Sequence[ItemRow | None], said: Mapping[str, list[CharSpan]], *, notes: bool
) -> Iterator[str]:
    """Yield the lines of one annotator's file; notes say what nobody confirmed."""
    first = number = 0
    for row in lines:
        text = _text(row) if row else ""
        for span in said.get(row.id, []) if row else []:
            number += 1
            place = f"{first + span.start} {first + span.end}"
            kind = re.sub(r"\s", "_", span.type)
            yield f"T{number}\t{kind} {place}\t{text[span.start : span.end]}\n"
            if row and notes:
                yield f"#{number}\tAnnotatorNotes T{number}\t{_note(row)}\n"
        first += len(text) + 1


def _note(row: ItemRow) -> str:
    """Say of a span whether its item was confirmed, where others of the document were not."""
    if not row.is_predicted:
        return "confirmed"
    return "not confirmed" + ("" if row.score is None else f", confidence {row.score}")


def safe(name: str) -> str:
    """Return the name of a file or folder that is called so."""
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}" if found[0] else "%", name)


def _save(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


# --------------------------------------------------------------------------------------------------
# brat: folders of `<document>.txt` with `<document>.ann` for every annotator. Documents with labels
# of goldspan that nobody confirmed are in the folder `_goldspan`, each span with a note.


def sniff(source: Source) -> bool:
    """Return whether there are `.ann` files, and the first non-empty one has brat's lines."""
    for _, file in source.sorted_files():
        if file.suffix == ".ann" and file.data.strip():
            try:
                line = file.text.value.lstrip().split("\n", 1)[0]
            except GoldspanError:
                return False
            return "\t" in line and (line[0] == "T" or line[0] in NOT_USED)
    return any(file.suffix == ".ann" for _, file in source.sorted_files())


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read a folder or a zip archive."""
    crowd = SpanCrowd(source, "brat", options, counted=True)
    files = source.files or {}
    annotated = [path for path in sorted(files) if files[path].suffix == ".ann"]
    if not annotated:
        message = "no .ann file in the folder: is this brat's?"
        raise FormatError([Fault(message, source.name, kind="empty")])
    documents: dict[str, _Document] = {}
    for path in sorted(files, key=lambda path: (PurePosixPath(path).stem, path)):
        if files[path].suffix == ".txt":
            with collect(crowd.faults):
                _read_document(crowd, documents, PurePosixPath(path).stem, files[path])
    nested, n_empty = any("/" in path for path in annotated), 0
    for path in counted(annotated, options.progress):
        if nested and "/" not in path and not files[path].data.strip():
            n_empty += 1
            continue
        with collect(crowd.faults):
            _read_annotations(crowd, documents, PurePosixPath(path), files, options.offsets)
    if n_empty:
        note = f"{n_empty} empty .ann files in the top folder are not answers"
        crowd.builder.notes.append(note)
    return crowd.build()


def write(crowd: Crowd, path: Path, predicted: Mapping[str, float] | None = None) -> None:
    """Write a folder of texts, and one folder per worker of texts and annotations."""
    reject_gold_worker(crowd)
    write_folder(path, lambda folder: fill(crowd, folder, predicted))


class _Document(NamedTuple):
    """A text, where its lines begin, and its items by line, counted from 0."""

    file: Source
    text: str
    starts: list[int]
    items: dict[int, Item]

    def line_of(self, place: int) -> int:
        """Return the line that a character stands on."""
        return bisect_right(self.starts, place) - 1


def _read_document(
    crowd: SpanCrowd, documents: dict[str, _Document], name: str, file: Source
) -> None:
    text, known = file.text.value, documents.get(name)
    if known is not None:
        if known.text != text:
            message = f"not the text that {known.file.name} has: annotators must share a text"
            raise FormatError([Fault(message, file.name, kind="text")])
        return
    lines = text.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines[:-1])]
    items = documents.setdefault(name, _Document(file, text, starts, {})).items
    for number, line in enumerate(lines):
        if line.strip():
            record = Record({}, file.name, number + 1, f"{name}-{number + 1}")
            cut = cut_text(record, line, rule=crowd.options.tokens)
            items[number] = crowd.item(record, cut, group=name)


def _read_annotations(
    crowd: SpanCrowd,
    documents: Mapping[str, _Document],
    path: PurePosixPath,
    files: Mapping[str, Source],
    offsets: str,
) -> None:
    """Read what one annotator says of a document."""
    file = files[str(path)]
    beside = [path.with_suffix(".txt"), path.parent.parent / f"{path.stem}.txt"]
    if not any(str(candidate) in files for candidate in beside):
        message = f"no text for it: {beside[0]} is neither beside it nor in the folder above"
        raise FormatError([Fault(message, file.name, kind="no-text")])
    document = documents.get(path.stem)
    if document is None:
        return
    folder = path.parent.name or stem(crowd.builder.source.rstrip("/"))
    record = Record({}, file.name, worker=folder)
    if folder == _PREDICTED:
        if not crowd.options.predicted:
            crowd.leave_unread("predictions", record.at(item=path.stem))
            return
        record = record.at(worker=GOLD)
    listed = list(text_bound(crowd, record, file))
    everything = [piece for _, pieces in listed for piece in pieces]
    text, places = counted_text(document.file, offsets, everything)
    spans: dict[int, list[CharSpan]] = {number: [] for number in document.items}
    for one, pieces in listed:
        near = document.line_of(pieces[0].start)
        lines = [number for number in document.items if number <= near]
        one = one.at(item=document.items[lines[-1]].id) if lines else one  # noqa: PLW2901
        with collect(crowd.unplaced):
            bounds = [_bounds(one, text, piece, offsets) for piece in pieces]
            bounds = [(places[a], places[b]) for a, b in bounds]
            placed = _in_line(crowd, document, one, pieces, bounds)
            if placed is not None:
                number, span = placed
                item = document.items[number]
                spans[number] += crowd.place(item, one.at(item=item.id), [span])
    for number, item in document.items.items():
        found = sorted(spans[number], key=lambda span: (span.start, span.end))
        crowd.answer_or_gold(item, record.at(item=item.id), Labels(found))


def _bounds(one: Record, text: str, span: CharSpan, offsets: str) -> tuple[int, int]:
    """Return the first code point of a span and one past its last."""
    message = reads_otherwise(text, span, offsets)
    if message:
        raise one.error(message, "text-mismatch")
    a, b = (code_point(text, offset, offsets) for offset in span[1:3])
    if a is None or b is None or a >= b:
        message = f"{span} is empty, outside the text or within a character"
        raise one.error(message, "out-of-range")
    return a, b


def _in_line(
    crowd: SpanCrowd,
    document: _Document,
    one: Record,
    pieces: Sequence[CharSpan],
    bounds: list[tuple[int, int]],
) -> tuple[int, CharSpan] | None:
    """Return the line of a span and its place there; what is no span of one line is left out."""
    gaps = (document.text[b:a] for (_, b), (a, _) in pairwise(bounds))
    if not any(gap.strip() for gap in gaps):
        bounds = [(bounds[0][0], bounds[-1][1])]
    a, b = bounds[0]
    while a < b and document.text[a].isspace():
        a += 1
    while a < b and document.text[b - 1].isspace():
        b -= 1
    number = document.line_of(a)
    item, whole = document.items.get(number), pieces[0]
    one = one if item is None else one.at(item=item.id)
    if len(bounds) > 1:
        message, why = f"{whole} has {len(pieces)} pieces", "of several pieces"
    elif item is None or a == b:
        message, why, bounds = f"{whole} covers no token", "covers no token", []
    elif "\n" in document.text[a:b]:
        message, why = f"{whole} crosses a line end", "crosses a line end"
    else:
        first = document.starts[number]
        return number, CharSpan(whole.type, a - first, b - first)
    crowd.leave_out(one, f"{message}: left out", why)
    for number, other in document.items.items():  # its tokens have no label then
        first = document.starts[number]
        last = first + len(other.cut.text or "")
        crowd.leave_open(one.at(item=other.id), pieces_within(bounds, first, last))
    return None
