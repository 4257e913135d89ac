"""brat: folders of `<document>.txt` with `<document>.ann` for every annotator.

    alice/doc7.txt  alice/doc7.ann          or  doc7.txt  alice/doc7.ann  bob/doc7.ann

The worker is the folder that the `.ann` file is in, with the text beside it or in the folder above;
in a flat folder the one worker is called like the folder (a zip: like its file). The annotations
of "gold" are gold. Every line of a text that is not blank is an item: line 3 of doc7 is doc7-3, its
group is doc7. An `.ann` file is an answer to all lines of its document, also an empty one, but for
empty ones in the top folder where others are in folders below: brat puts one beside every text.

Only text-bound annotations of one piece are used, `T1<TAB>PER 0 7<TAB>Ann Lee`. Those of several
pieces or lines are listed, and counted as one label each that was not placed. Relations, events,
attributes, normalisations and notes are counted in the notes of the report, with the first places.
Where a text has a byte order mark or Windows line ends, brat counts them; whether the offsets do is
told by the text that every annotation carries. If the document reads otherwise, that is an error.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from goldspan.crowd.atomic import write_folder
from goldspan.crowd.formats.brat_folders import fill
from goldspan.crowd.formats.brat_lines import NOT_USED, counted_text, text_bound
from goldspan.crowd.formats.char_spans import (
    CharSpan,
    code_point,
    cut_text,
    reads_otherwise,
)
from goldspan.crowd.formats.json_records import Record, collect, stem
from goldspan.crowd.formats.span_crowd import Item, Labels, SpanCrowd
from goldspan.crowd.formats.span_exports import refuse_gold_worker
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.progress import counted
from goldspan.crowd.source import Source
from goldspan.errors import Fault, FormatError, GoldspanError

SUMMARY = "brat's folders of .txt and .ann files, one folder per annotator"
SUFFIXES = ("", ".zip")

_MAX_PLACES = 5


def sniff(source: Source) -> bool:
    """Say whether there are `.ann` files, the first of which that is not empty has brat's lines."""
    for _, file in source.sorted_files():
        if file.suffix == ".ann" and file.data.strip():
            try:
                line = file.text.value.lstrip().split("\n", 1)[0]
            except GoldspanError:
                return False
            return "\t" in line and (line[0] == "T" or line[0] in NOT_USED)
    return any(file.suffix == ".ann" for _, file in source.sorted_files())


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read a folder or a zip archive.

    Raises:
        FormatError: There is no `.ann` file, or one without its text; a line is not brat's; an
            offset lies outside the text, or the text reads otherwise there; annotators have
            different texts of one document.
    """
    crowd = SpanCrowd(source, "brat", replace(options, offsets="codepoint"))
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


def write(crowd: Crowd, path: Path) -> None:
    """Write a folder of texts, and one folder per worker of texts and annotations.

    Raises:
        InputError: The folder exists already, or a worker is called "gold".
    """
    refuse_gold_worker(crowd)
    write_folder(path, lambda folder: fill(crowd, folder))


@dataclass
class _Document:
    """A text, where its lines begin, and its items by line, counted from 0."""

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
        """Read a text: one item per line."""
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
        found = _Document(file, text, starts, {})
        self.documents[name] = found
        for number, line in enumerate(lines):
            if line.strip():
                record = Record({}, file.name, number + 1, f"{name}-{number + 1}")
                found.items[number] = self.crowd.item(
                    record, cut_text(record, line, rule=self.crowd.options.tokens), group=name
                )

    def annotations(self, path: str, files: dict[str, Source]) -> None:
        """Read one worker's annotations of one document."""
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
        """Say what was not used."""
        for kind, places in self.not_used.items():
            first = "; ".join(places[:_MAX_PLACES])
            more = "; …" if len(places) > _MAX_PLACES else ""
            yield f"{len(places)} {kind} are not used: {first}{more}"
        if self.n_empty:
            yield f"{self.n_empty} empty .ann files in the top folder are no answers"

    def _in_place(
        self, document: _Document, listed: list[tuple[Record, list[CharSpan]]]
    ) -> Iterator[tuple[Record, CharSpan]]:
        """Spans of one piece within one line, in code points of the text as it is read."""
        everything = [piece for _, pieces in listed for piece in pieces]
        text, places = counted_text(document.file, self.offsets, everything)
        for one, pieces in listed:
            with collect(self.crowd.faults):
                bounds = [self._bounds(one, text, piece) for piece in pieces]
                a, b = places[bounds[0][0]], places[bounds[0][1]]
                while a < b and document.text[a].isspace():
                    a += 1
                while a < b and document.text[b - 1].isspace():
                    b -= 1
                number = bisect_right(document.starts, a) - 1
                there = document.items.get(number)
                if there is not None:
                    one = one.at(item=there.id)  # noqa: PLW2901
                if len(pieces) > 1:
                    message = f"{pieces[0]} has {len(pieces)} pieces: left out"
                    self.crowd.leave_out(one, message, "of several pieces")
                elif there is None or a == b:
                    message = f"{pieces[0]} covers no token: left out"
                    self.crowd.leave_out(one, message, "covers no token")
                elif "\n" in document.text[a:b]:
                    message = f"{pieces[0]} crosses a line end: left out"
                    self.crowd.leave_out(one, message, "crosses a line end")
                else:
                    yield one, CharSpan(pieces[0].type, a, b)

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
