"""Folders of brat: texts, annotations, one folder per annotator."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path, PurePosixPath

from goldspan.crowd.atomic import write_folder
from goldspan.crowd.formats.char_spans import CharSpan, code_point, cut_text, reads_otherwise
from goldspan.crowd.formats.json_records import Record, collect, shown, stem
from goldspan.crowd.formats.span_crowd import GOLD, Item, Labels, SpanCrowd
from goldspan.crowd.formats.span_exports import PREDICTED_BY, ItemRow, item_rows, reject_gold_worker
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source, counted
from goldspan.errors import Fault, FormatError, GoldspanError, InputError

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
    record: Record, file: Source, faults: list[Fault], not_used: dict[str, list[str]]
) -> Iterator[tuple[Record, list[CharSpan]]]:
    """Yield the text-bound annotations of a file, each with its pieces."""
    seen = set()
    lines = file.text.value.split("\n") if file.data.strip() else []
    for number, line in enumerate(lines, start=1):
        one = record._replace(line=number)
        mark, _, rest = line.partition("\t")
        if mark and mark[0] in NOT_USED:
            places = not_used.setdefault(NOT_USED[mark[0]], [])
            places.append(f"{mark[:20]} in {file.name} line {number}")
        elif line.strip():
            with collect(faults):
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


@dataclass
class _Folder:
    """One document: its items by line, and the spans that its annotators gave them."""

    name: str
    lines: dict[int, ItemRow] = field(default_factory=dict)

    def add(self, row: ItemRow) -> None:
        """Put an item on the line that its id names, else on the next one."""
        last = max(self.lines, default=0)
        number = row.id.removeprefix(f"{self.name}-")
        line = int(number) if number.isascii() and number.isdigit() and len(number) < 9 else 0
        if not last < line <= last + _MAX_GAP or f"{self.name}-{line}" != row.id:
            line = last + 1
        self.lines[line] = row

    @property
    def text(self) -> str:
        rows = [self.lines.get(n) for n in range(1, max(self.lines) + 1)]
        # Every text on one line, of the same length.
        return "".join(f"{_LINE_ENDS.sub(' ', row.text.value) if row else ''}\n" for row in rows)

    @property
    def is_predicted(self) -> bool:
        """Whether nobody confirmed what is known of some item."""
        return any(row.is_predicted for row in self.lines.values())

    def annotated(self, said: dict[str, list[CharSpan]], *, notes: bool = False) -> str:
        """The annotations of one annotator, by item; notes say what nobody confirmed."""
        text, start, n = self.text, 0, 0
        out: list[str] = []
        for line in range(1, max(self.lines) + 1):
            row = self.lines.get(line)
            for span in said.get(row.id, []) if row else []:
                a, b = start + span.start, start + span.end
                kind = re.sub(r"\s", "_", span.type)
                n += 1
                out.append(f"T{n}\t{kind} {a} {b}\t{text[a:b]}\n")
                if row and notes:
                    out.append(f"#{n}\tAnnotatorNotes T{n}\t{_note(row)}\n")
            start = text.index("\n", start) + 1
        return "".join(out)


def _note(row: ItemRow) -> str:
    """What is told of a span of an item of which some labels were confirmed, or none."""
    if not row.is_predicted:
        return "confirmed"
    return "not confirmed" + ("" if row.score is None else f", confidence {row.score}")


def fill(crowd: Crowd, folder: Path, predicted: Mapping[str, float] | None = None) -> None:
    """Write the texts, and for every worker the texts that were annotated with the annotations."""
    rows = list(item_rows(crowd, predicted))
    said = _by_worker(rows)
    for document in _folders(rows):
        ids = [row.id for row in document.lines.values()]
        _save(folder / f"{safe(document.name)}.txt", document.text)
        for worker, spans in said.items():
            if any(name in spans for name in ids):
                notes = worker == GOLD and document.is_predicted
                place = folder / (_PREDICTED if notes else safe(worker)) / safe(document.name)
                _save(place.with_name(f"{place.name}.txt"), document.text)
                _save(place.with_name(f"{place.name}.ann"), document.annotated(spans, notes=notes))


def safe(name: str) -> str:
    """Return the name of a file or folder that is called so."""
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}" if found[0] else "%", name)


def _folders(rows: list[ItemRow]) -> list[_Folder]:
    """The documents in the order in which they are read; an item without one is its own."""
    found: dict[str, _Folder] = {}
    for row in rows:
        name = row.id if row.group is None else row.group
        found.setdefault(name, _Folder(name)).add(row)
    return [found[name] for name in sorted(found)]


def _by_worker(rows: list[ItemRow]) -> dict[str, dict[str, list[CharSpan]]]:
    """The spans that count of every worker and of the gold, by item."""
    said: dict[str, dict[str, list[CharSpan]]] = {}
    for row in rows:
        if row.gold is not None:
            said.setdefault(GOLD, {})[row.id] = row.gold
        for _, worker, spans in row.answers:
            # In the order of attempts: the last counts.
            said.setdefault(worker, {})[row.id] = spans
    return said


def _save(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
    except OSError as error:
        raise InputError(f"cannot write {path.name}: {error.strerror or error}") from None


# --------------------------------------------------------------------------------------------------
# brat: folders of `<document>.txt` with `<document>.ann` for every annotator. Documents with labels
# of goldspan that nobody confirmed are in the folder `_goldspan`, each span with a note.


_MAX_PLACES = 5


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
    reader = _Reader(crowd, options.offsets)
    files = source.files or {}
    annotated = [path for path in sorted(files) if files[path].suffix == ".ann"]
    if not annotated:
        message = "no .ann file in the folder: is this brat's?"
        raise FormatError([Fault(message, source.name, kind="empty")])
    for path in sorted(files, key=lambda path: (PurePosixPath(path).stem, path)):
        if files[path].suffix == ".txt":
            with collect(crowd.faults):
                reader.document(path, files[path])
    nested = any("/" in path for path in annotated)
    for path in counted(annotated, options.progress):
        if nested and "/" not in path and not files[path].data.strip():
            reader.n_empty += 1
            continue
        with collect(crowd.faults):
            reader.annotations(path, files)
    crowd.builder.notes += reader.notes()
    return crowd.build()


def write(crowd: Crowd, path: Path, predicted: Mapping[str, float] | None = None) -> None:
    """Write a folder of texts, and one folder per worker of texts and annotations."""
    reject_gold_worker(crowd)
    write_folder(path, lambda folder: fill(crowd, folder, predicted))


@dataclass
class _Document:
    """A text, where its lines begin, and its items by line, counted from 0."""

    name: str
    file: Source
    text: str
    starts: list[int]
    items: dict[int, Item]


@dataclass
class _Reader:
    """Reads documents and then their annotations into a crowd."""

    crowd: SpanCrowd
    offsets: str
    documents: dict[str, _Document] = field(default_factory=dict)
    not_used: dict[str, list[str]] = field(default_factory=dict)
    n_empty: int = 0

    def document(self, path: str, file: Source) -> None:
        name, text = PurePosixPath(path).stem, file.text.value
        known = self.documents.get(name)
        if known is not None:
            if known.text != text:
                message = f"not the text that {known.file.name} has: annotators must share a text"
                raise FormatError([Fault(message, file.name, kind="text")])
            return
        lines = text.split("\n")
        starts = [0]
        for line in lines[:-1]:
            starts.append(starts[-1] + len(line) + 1)
        found = _Document(name, file, text, starts, {})
        self.documents[name] = found
        for number, line in enumerate(lines):
            if line.strip():
                record = Record({}, file.name, number + 1, f"{name}-{number + 1}")
                found.items[number] = self.crowd.item(
                    record, cut_text(record, line, rule=self.crowd.options.tokens), group=name
                )

    def annotations(self, path: str, files: dict[str, Source]) -> None:
        place, file = PurePosixPath(path), files[path]
        beside = [place.with_suffix(".txt"), place.parent.parent / f"{place.stem}.txt"]
        if not any(str(candidate) in files for candidate in beside):
            message = f"no text for it: {beside[0]} is neither beside it nor in the folder above"
            raise FormatError([Fault(message, file.name, kind="no-text")])
        document = self.documents.get(place.stem)
        if document is None:
            return
        folder = place.parent.name or stem(self.crowd.builder.source.rstrip("/"))
        record = Record({}, file.name, worker=folder)
        if folder == _PREDICTED:
            if not self.crowd.options.predicted:
                self.crowd.leave_unread("predictions", record.at(item=document.name))
                return
            record = record.at(worker=GOLD)
        spans: dict[int, list[CharSpan]] = {number: [] for number in document.items}
        listed = list(text_bound(record, file, self.crowd.faults, self.not_used))
        for one, span in self._in_place(document, listed):
            with collect(self.crowd.faults):
                number = bisect_right(document.starts, span.start) - 1
                first = document.starts[number]
                one = one.at(item=document.items[number].id)  # noqa: PLW2901
                inner = span._replace(start=span.start - first, end=span.end - first, covers=None)
                spans[number] += self.crowd.place(document.items[number], one, [inner])
        for number, item in document.items.items():
            found = sorted(spans[number], key=lambda span: (span.start, span.end))
            self.crowd.answer_or_gold(item, record.at(item=item.id), Labels(found))

    def notes(self) -> Iterator[str]:
        for kind, places in self.not_used.items():
            first = "; ".join(places[:_MAX_PLACES])
            more = "; …" if len(places) > _MAX_PLACES else ""
            yield f"{len(places)} {kind} are not used: {first}{more}"
        if self.n_empty:
            yield f"{self.n_empty} empty .ann files in the top folder are not answers"

    def _in_place(
        self, document: _Document, listed: list[tuple[Record, list[CharSpan]]]
    ) -> Iterator[tuple[Record, CharSpan]]:
        """Spans of one piece within one line, in code points of the text as it is read."""
        everything = [piece for _, pieces in listed for piece in pieces]
        text, places = counted_text(document.file, self.offsets, everything)
        for one, pieces in listed:
            near = bisect_right(document.starts, pieces[0].start) - 1
            lines = [number for number in document.items if number <= near]
            one = one.at(item=document.items[lines[-1]].id) if lines else one  # noqa: PLW2901
            with collect(self.crowd.unplaced):
                listed_bounds = [self._bounds(one, text, piece) for piece in pieces]
                bounds = [(places[a], places[b]) for a, b in listed_bounds]
                gaps = (document.text[b:a] for (_, b), (a, _) in pairwise(bounds))
                if not any(gap.strip() for gap in gaps):
                    bounds = [(bounds[0][0], bounds[-1][1])]
                a, b = bounds[0]
                while a < b and document.text[a].isspace():
                    a += 1
                while a < b and document.text[b - 1].isspace():
                    b -= 1
                number = bisect_right(document.starts, a) - 1
                there = document.items.get(number)
                if there is not None:
                    one = one.at(item=there.id)  # noqa: PLW2901
                if len(bounds) > 1:
                    message = f"{pieces[0]} has {len(pieces)} pieces: left out"
                    self._leave_out(document, one, bounds, message, "of several pieces")
                elif there is None or a == b:
                    message = f"{pieces[0]} covers no token: left out"
                    self.crowd.leave_out(one, message, "covers no token")
                elif "\n" in document.text[a:b]:
                    message = f"{pieces[0]} crosses a line end: left out"
                    self._leave_out(document, one, bounds, message, "crosses a line end")
                else:
                    yield one, CharSpan(pieces[0].type, a, b)

    def _leave_out(
        self,
        document: _Document,
        one: Record,
        bounds: list[tuple[int, int]],
        message: str,
        why: str,
    ) -> None:
        """Leave out a span of several items or pieces, whose tokens have no label then."""
        self.crowd.leave_out(one, message, why)
        for number, item in document.items.items():
            first = document.starts[number]
            last = first + len(item.cut.text or "")
            inner = [(max(a, first) - first, min(b, last) - first) for a, b in bounds]
            pieces = [CharSpan("", a, b) for a, b in inner if a < b]
            self.crowd.leave_open(one.at(item=item.id), pieces)

    def _bounds(self, one: Record, text: str, span: CharSpan) -> tuple[int, int]:
        """First code point of a span and one past its last."""
        message = reads_otherwise(text, span, self.offsets)
        if message:
            raise one.error(message, "text-mismatch")
        a, b = (code_point(text, offset, self.offsets) for offset in span[1:3])
        if a is None or b is None or a >= b:
            message = f"{span} is empty, outside the text or within a character"
            raise one.error(message, "out-of-range")
        return a, b
