"""Where data come from: a path, a folder, an archive, bytes or standard input.

Also how far a reader is, and what it found.
"""

from __future__ import annotations

import io
import lzma
import os
import struct
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, TextIO, TypeVar

from goldspan.archives import MAX_DEPTH, Allowance, gunzip, members, read_member
from goldspan.errors import Fault, FormatError, GoldspanError, InputError

_DAMAGED = (
    *(zipfile.BadZipFile, lzma.LZMAError, zlib.error, struct.error),
    *(EOFError, LookupError, OSError, ValueError),
)
"""What the standard library raises on damaged archives."""

_GZIP, _ZIP, _PARQUET = b"\x1f\x8b", b"PK\x03\x04", b"PAR1"

_EXCEL = (
    "an Excel workbook",
    "save the sheet as CSV (in Excel: File, Save As, CSV UTF-8) and read that",
)
_SHEET = (
    "an OpenDocument spreadsheet",
    "save the sheet as CSV (in LibreOffice: File, Save As, Text CSV, UTF-8) and read that",
)
_NUMBERS = ("an Apple Numbers or Pages document", "export it as CSV or plain text and read that")
_WORD = ("a Word document", "save it as plain text (.txt, UTF-8) and read that")
_SLIDES = ("a PowerPoint presentation", "goldspan reads text: save the text as .txt and read that")
_PLAIN_TEXT = "save it as plain text (.txt, UTF-8) and read that"
_NO_TEXT = "goldspan reads text and labels only"
_UNPACK = "unpack it and read what is in it"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"{\\rtf", "a rich-text (RTF) document", _PLAIN_TEXT),
    (b"\x89PNG\r\n\x1a\n", "a picture (PNG)", _NO_TEXT),
    (b"\xff\xd8\xff", "a picture (JPEG)", _NO_TEXT),
    (b"GIF87a", "a picture (GIF)", _NO_TEXT),
    (b"GIF89a", "a picture (GIF)", _NO_TEXT),
    (b"II*\x00", "a picture (TIFF)", _NO_TEXT),
    (b"MM\x00*", "a picture (TIFF)", _NO_TEXT),
    (b"ID3\x03", "an audio file (MP3)", _NO_TEXT),
    (b"ID3\x04", "an audio file (MP3)", _NO_TEXT),
    (b"fLaC\x00", "an audio file (FLAC)", _NO_TEXT),
    (b"OggS\x00", "an audio file (Ogg)", _NO_TEXT),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", _UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (b"\xfd7zXZ\x00", "a file packed with xz", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "a file packed with zstd", _UNPACK),
    (b"SQLite format 3\x00", "an SQLite database", "export the table as CSV and read that"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", "save the table as Parquet or CSV and read that"),
    (
        b"ARROW1\x00\x00",
        "an Arrow (Feather) file",
        "save the table as Parquet, or load it and pass the DataFrame",
    ),
    (
        b"\xff\xff\xff\xff",
        "an Arrow stream, as Hugging Face datasets save it",
        "pass the Dataset itself, or save it with to_parquet()",
    ),
)
"""First bytes of files that hold no table and no text, what they are, and what to do."""
_OFFICE_PARTS = {
    "xl/workbook.xml": _EXCEL,
    "xl/workbook.bin": _EXCEL,
    "word/document.xml": _WORD,
    "ppt/presentation.xml": _SLIDES,
    "Index/Document.iwa": _NUMBERS,
}
_MIMETYPES = {
    b"application/vnd.oasis.opendocument.spreadsheet": _SHEET,
    b"application/vnd.oasis.opendocument.text": ("an OpenDocument text", _PLAIN_TEXT),
    b"application/vnd.oasis.opendocument": ("an OpenDocument file", _PLAIN_TEXT),
    b"application/epub+zip": ("an e-book (EPUB)", _PLAIN_TEXT),
}
"""The first member of such an archive, which is not compressed."""


@dataclass(frozen=True)
class Source:
    """Something to read: bytes with a name, or a folder of such."""

    name: str  # For messages
    data: bytes = field(default=b"", repr=False)  # The bytes, decompressed; empty for a folder
    # The files of a folder or of a zip archive by relative path; None for a single file
    files: dict[str, Source] | None = field(default=None, repr=False)
    text_encoding: str | None = None  # The encoding of the text, if it was named
    # Most bytes that what is in it may decompress to, if it was named
    max_decompressed: int | str | None = None
    # What came as an object, a DataFrame of any make or an Arrow table; also the rows of a Parquet
    # file that were decoded already
    table: Any = field(default=None, repr=False, compare=False)

    @property
    def is_folder(self) -> bool:
        """Whether there are several files."""
        return self.files is not None

    @property
    def suffix(self) -> str:
        """The ending of the name without `.gz`, in lower case: ".tsv"."""
        path = Path(self.name)
        return (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower()

    @property
    def is_parquet(self) -> bool:
        """Whether the bytes are a Parquet file."""
        return self.data[:4] == _PARQUET

    @cached_property
    def text(self) -> Text:
        """The bytes as text.

        Raises:
            FormatError: The file is empty, holds NUL bytes, or is in no encoding or in two; or
                this is a folder.
        """
        if self.is_folder:
            message = "this is a folder or an archive of files; this format is a single file"
            raise FormatError([Fault(message, file=self.name, kind="folder")])
        return decode(self.data, self.name, self.text_encoding)

    @cached_property
    def exact_text(self) -> Text:
        """The bytes as text whose line ends are as they are in the file; raises as `text`."""
        text = self.text
        if b"\r" not in self.data:
            return text
        return decode(self.data, self.name, self.text_encoding, keep_line_ends=True)

    def release_text(self) -> None:
        """Free the decoded text, of which a reader needs no more: it is decoded again if asked."""
        for name in ("text", "exact_text"):
            vars(self).pop(name, None)

    @property
    def utf8(self) -> bytes:
        """The text in UTF-8, which may be the very bytes; raises as `text`."""
        is_as_it_was = self.text.encoding == "utf-8" and not self.text.notes
        return self.data if is_as_it_was else self.text.data

    def stream(self) -> TextIO:
        """Open the text, to be read line by line without another copy of it; raises as `text`."""
        return io.TextIOWrapper(io.BytesIO(self.utf8), "utf-8", "surrogatepass", newline="\n")

    def sorted_files(self) -> Iterator[tuple[str, Source]]:
        """Yield the files of a folder in the order of their paths."""
        yield from sorted((self.files or {}).items())


@dataclass(frozen=True)
class Text:
    """Decoded text."""

    # The text, without a byte order mark, and with line feeds only but for `Source.exact_text`
    value: str = field(repr=False)
    encoding: str = "utf-8"  # What the bytes were in: "utf-8", "utf-16" or "cp1252"
    notes: tuple[str, ...] = ()  # What was changed on the way

    @cached_property
    def data(self) -> bytes:
        """The text in UTF-8."""
        return self.value.encode("utf-8", "surrogatepass")


def open_source(
    source: Any, text_encoding: str | None = None, max_decompressed: int | str | None = None
) -> Source:
    """Open a path, an address hf://…, "-" (standard input), bytes or a binary file."""
    if isinstance(source, Source):
        return source
    opened = _open(source, Source("", b"", None, text_encoding, max_decompressed))
    if not opened.is_folder:
        reject_document(opened.name, opened.data)
    return opened


def document_kind(data: bytes) -> tuple[str, str] | None:
    """Return what a file is that holds no readable table or text, and what to do with it.

    Recognised by content, whatever the name says: Excel (.xlsx, .xlsb, .xls), OpenDocument, Word,
    PDF and other office documents, pictures, audio, video, and archives that are not unpacked here.

    >>> document_kind(b"%PDF-1.7 ...")[0]
    'a PDF document'
    """
    head = data[:1024]
    if head[:4] == _ZIP:
        return _office_kind(data)
    if head[:8] == _OLE:
        return _ole_kind(data)
    if b"%PDF-" in head.lstrip()[:8]:
        message = "copy or extract its text into a .txt file (UTF-8) and read that"
        return "a PDF document", message
    if head[:4] == b"RIFF" and head[8:12] in {b"WEBP", b"WAVE", b"AVI "}:
        return {b"WEBP": "a picture (WebP)", b"WAVE": "an audio file (WAV)"}.get(
            head[8:12], "a video"
        ), _NO_TEXT
    if head[:2] == b"\0\0" and head[4:8] == b"ftyp":
        return "a video, audio or picture file (MP4, HEIC)", _NO_TEXT
    if head[:3] == b"BZh" and head[4:10] == b"1AY&SY":
        return "a file packed with bzip2", _UNPACK
    return _by_magic(head)


def _by_magic(head: bytes) -> tuple[str, str] | None:
    """What a file is by bytes at fixed places."""
    if head[257:262] == b"ustar":
        return "a tar archive", _UNPACK
    if not head.isascii() or b"\0" in head or head.startswith(b"{"):  # else it may be text
        for magic, what, remedy in _MAGIC:
            if head.startswith(magic):
                return what, remedy
    return None


def reject_document(name: str, data: bytes) -> None:
    """Reject files that hold no readable table or text; see `document_kind`."""
    found = document_kind(data)
    if found is not None:
        message = f"this is {found[0]}, which goldspan does not read: {found[1]}"
        raise FormatError([Fault(message, file=name, kind="document")])


def _office_kind(data: bytes) -> tuple[str, str] | None:
    """What a zip archive is that is one document."""
    if data[30:38] == b"mimetype":
        return next((kind for mime, kind in _MIMETYPES.items() if data[38:].startswith(mime)), None)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
    except (*_DAMAGED, RuntimeError):
        return None
    return next((kind for part, kind in _OFFICE_PARTS.items() if part in names), None)


def _ole_kind(data: bytes) -> tuple[str, str]:
    """What a file of Office 97 is, by the names in its directory, whose entries are 128 bytes."""
    names = {
        data[at : at + 64].partition(b"\0\0\0")[0].replace(b"\0", b"")
        for at in range(512, len(data), 128)
    }
    kinds = {
        b"Workbook": _EXCEL,
        b"Book": _EXCEL,
        b"WordDocument": _WORD,
        b"PowerPoint Document": _SLIDES,
    }
    what = "an Office document that is protected with a password, or of an old format"
    unknown = (what, "open it and save it as CSV or as plain text (UTF-8), and read that")
    return next((kind for name, kind in kinds.items() if name in names), unknown)


def _open(source: Any, how: Source) -> Source:
    # `how` holds the options of `open_source`, and nothing yet
    if isinstance(source, bytes | bytearray | memoryview):
        return _from_bytes("<bytes>", bytes(source), how)
    if hasattr(source, "read"):
        data = source.read()
        name = str(getattr(source, "name", "<stream>"))
        if isinstance(data, str):
            data = data.encode("utf-8", "surrogatepass")
            how = replace(how, text_encoding="utf-8")
        return _from_bytes(name, data, how)
    if str(source) == "-":
        stdin: BinaryIO = sys.stdin.buffer
        return _from_bytes("<stdin>", stdin.read(), how)
    if not isinstance(source, str | os.PathLike):
        kind = type(source).__name__
        raise InputError(f"cannot read a {kind}: pass a path, bytes, an open file or a DataFrame")
    if not str(source):
        raise InputError("the path is empty: name a file, a folder, or - for standard input")
    if str(source).startswith("hf://"):
        from goldspan.crowd.hub import fetch

        name, path = fetch(str(source))
        return replace(_open_path(path, how), name=name)
    return _open_path(Path(source), how)


def decode(
    data: bytes, name: str, encoding: str | None = None, *, keep_line_ends: bool = False
) -> Text:
    """Turn bytes into text with line feeds, or say why not; see `Source.text`."""
    reject_document(name, data)
    if not data.strip(b"\xef\xbb\xbf\r\n\t "):
        raise FormatError([Fault("the file is empty: is the path right?", file=name, kind="empty")])
    notes = []
    value, found = _decode(data, name, encoding)
    if value.startswith("﻿"):
        value = value[1:]
        notes.append("byte order mark removed")
    if "\0" in value:
        line = value.count("\n", 0, value.index("\0")) + 1
        message = "a NUL byte: this is not a text file, or it is damaged"
        raise FormatError([Fault(message, file=name, line=line, kind="nul")])
    if "\r" in value and not keep_line_ends:
        value = value.replace("\r\n", "\n").replace("\r", "\n")
        notes.append("line ends replaced (they were not line feeds)")
    if found != "utf-8":
        notes.append(f"text is in {found}, not UTF-8")
    return Text(value, found, tuple(notes))


def _decode(data: bytes, name: str, encoding: str | None) -> tuple[str, str]:
    if encoding:
        try:
            value = data.decode(encoding)
            value.encode("utf-8")
        except (ValueError, LookupError) as error:
            message = f"cannot be read as {encoding}: {error}"
            raise FormatError([Fault(message, file=name, kind="text-encoding")]) from None
        return value, encoding
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        try:
            return data.decode("utf-16"), "utf-16"
        except UnicodeDecodeError as error:
            message = f"damaged UTF-16: {error.reason}"
            raise FormatError([Fault(message, file=name, kind="text-encoding")]) from None
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return _decode_legacy(data, name), "cp1252"


def _decode_legacy(data: bytes, name: str) -> str:
    """Read cp1252, unless some lines are UTF-8 beyond ASCII: then two encodings are mixed."""
    utf8: list[int] = []
    other: list[int] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.isascii():
            try:
                line.decode("utf-8")
                utf8.append(number)
            except UnicodeDecodeError:
                other.append(number)
    try:
        value = data.decode("cp1252")
    except UnicodeDecodeError:
        value = ""
    if utf8 or not value:
        message = (
            f"the line is not UTF-8, but line {utf8[0]} is: two encodings are mixed; rewrite the "
            "file in one"
            if utf8
            else "the line is neither UTF-8 nor cp1252: name its encoding"
        )
        faults = [Fault(message, file=name, line=n, kind="text-encoding") for n in other]
        raise FormatError(faults, hint="" if utf8 else "text_encoding")
    return value


def _open_path(path: Path, how: Source) -> Source:
    try:
        if path.is_dir():
            return replace(how, name=str(path), files=_folder(path, how))
        return _from_bytes(str(path), path.read_bytes(), how)
    except (OSError, ValueError) as error:
        if isinstance(error, GoldspanError):
            raise
        why = getattr(error, "strerror", None) or error
        hint = "is the path right?"
        if "\n" in str(path):
            hint = "a string is a path; pass the text itself as bytes (text.encode())"
        name = str(getattr(error, "filename", None) or path)
        name = name if len(name) <= 200 else f"{name[:100]} … {name[-50:]}"
        raise InputError(f"{name}: {why}: {hint}") from None


def _from_bytes(
    name: str, data: bytes, how: Source, allowance: Allowance | None = None, depth: int = 0
) -> Source:
    """Decompress what is compressed, and open what is in an archive."""
    if allowance is None:
        allowance = Allowance(len(data), how.max_decompressed)
    if data[:2] == _GZIP:
        data = _gunzip(name, data, allowance)
    if data[:4] == _ZIP and document_kind(data) is None:
        if depth == MAX_DEPTH:
            message = f"archives are nested deeper than {MAX_DEPTH}: unpack it and pass the folder"
            raise FormatError([Fault(message, file=name, kind="zip")])
        return replace(how, name=name, files=_unzip(name, data, how, allowance, depth + 1))
    return replace(how, name=name, data=data)


def _gunzip(name: str, data: bytes, allowance: Allowance) -> bytes:
    try:
        return gunzip(data, allowance)
    except InputError as error:
        fault = Fault(error.message, file=name, kind="too-large")
        raise FormatError([fault], hint=error.hint) from None
    except _DAMAGED as error:
        message = f"the gzip file is truncated or damaged ({error}): fetch or write it again"
        raise FormatError([Fault(message, file=name, kind="gzip")]) from None


def _unzip(
    name: str, data: bytes, how: Source, allowance: Allowance, depth: int
) -> dict[str, Source]:
    found = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for path, info in members(archive).items():
                if not _hidden(path):
                    content = read_member(archive, info, allowance)
                    found[path] = _from_bytes(f"{name}/{path}", content, how, allowance, depth)
    except FormatError:
        raise
    except InputError as error:
        fault = Fault(error.message, file=name, kind="zip")
        raise FormatError([fault], hint=error.hint) from None
    except (RuntimeError, *_DAMAGED) as error:
        what = f"is truncated or damaged ({error}): fetch or write it again"
        if isinstance(error, RuntimeError):  # a password, or a method that cannot be bounded
            what = f"cannot be unpacked ({error}): unpack it and pass the folder"
        raise FormatError([Fault(f"the zip archive {what}", name, kind="zip")]) from None
    return found


def _folder(path: Path, how: Source) -> dict[str, Source]:
    paths = {file.relative_to(path).as_posix(): file for file in sorted(path.rglob("*"))}
    files = {name: file for name, file in paths.items() if file.is_file() and not _hidden(name)}
    allowance = Allowance(sum(file.stat().st_size for file in files.values()), how.max_decompressed)
    return {
        name: _from_bytes(str(file), file.read_bytes(), how, allowance)
        for name, file in files.items()
    }


def _hidden(path: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in path.split("/"))


# --------------------------------------------------------------------------------------------------
# How far a reader is, told to whoever asked, at most about a hundred times.


T = TypeVar("T")
Tell = Callable[[int, int], Any]

_TIMES = 100


class Progress:
    """Tells (done, total) when another hundredth is done."""

    def __init__(self, tell: Tell | None, total: int) -> None:
        self._tell, self._total, self._last = tell, total, 0
        self._step = max(1, total // _TIMES)

    def at(self, done: int) -> None:
        """Say how much is done; more than the total counts as the total."""
        done = min(done, self._total)
        new = done - self._last
        if self._tell and (new >= self._step or (new and done == self._total)):
            self._last = done
            self._tell(done, self._total)


def counted(things: Collection[T], tell: Tell | None) -> Iterator[T]:
    """Yield things one by one, and tell how many of them are dealt with."""
    progress = Progress(tell, len(things))
    for n, thing in enumerate(things, start=1):
        yield thing
        progress.at(n)


# --------------------------------------------------------------------------------------------------
# What a reader found: the import report, which always adds up.


MAX_SHOWN = 240
"""Characters of a fault in the printed report."""
AS_NAMED = "workers left out, because others were named"
"""What is said, after their number, of workers that the caller did not name."""


@dataclass(frozen=True)
class ImportReport:
    """What was read, what was decided, and what could not be used."""

    source: str = ""  # Name of the file or folder
    format: str = ""
    n_labels: int = 0  # Labels that workers gave, in all files
    n_placed: int = 0  # Labels that are in the crowd
    # Why the other labels are not, with counts; with `n_placed` they add up to `n_labels`
    reasons: Mapping[str, int] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()  # Every fault with its place
    notes: tuple[str, ...] = ()  # Decisions of the reader in sentences
    columns: Mapping[str, str] = field(default_factory=dict)  # Those of texts, by their roles

    @property
    def adds_up(self) -> bool:
        """Whether every label is either placed or accounted for."""
        return self.n_placed + sum(self.reasons.values()) == self.n_labels

    @property
    def kinds(self) -> dict[str, int]:
        """Number of faults of every kind, the most frequent first."""
        return dict(Counter(fault.kind for fault in self.faults).most_common())

    @property
    def remarks(self) -> list[str]:
        """What was decided and what could not be used, a sentence each; empty if all was read."""
        lines = [*self.notes, *(f"{n} not placed: {reason}" for reason, n in self.reasons.items())]
        for kind, n in self.kinds.items():
            first = str(next(fault for fault in self.faults if fault.kind == kind))
            shown = first if len(first) <= MAX_SHOWN else f"{first[: MAX_SHOWN - 1]}…"
            lines.append(f"{n} fault{'s' if n > 1 else ''} of kind {kind}, the first: {shown}")
        return lines

    @property
    def unasked(self) -> list[str]:
        """The remarks without what the caller asked for."""
        return [remark for remark in self.remarks if not remark.endswith(AS_NAMED)]

    def to_dict(self, max_faults: int | None = None) -> dict[str, Any]:
        """Return plain dictionaries and lists, for JSON."""
        return {
            "source": self.source,
            "format": self.format,
            "labels": self.n_labels,
            "placed": self.n_placed,
            "not_placed": dict(self.reasons),
            "adds_up": self.adds_up,
            "fault_kinds": self.kinds,
            "faults": [str(fault) for fault in self.faults[:max_faults]],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        """Print the report in a few lines; of every kind of fault the number and the first."""
        head = f"{self.source or 'crowd'}: read as format {self.format or 'unknown'}"
        remarks, n_notes = self.remarks, len(self.notes)
        placed = "all" if self.n_placed == self.n_labels else self.n_placed
        counts = f"{self.n_labels} labels, {placed} of them placed on tokens"
        return "\n  ".join([head, *remarks[:n_notes], counts, *remarks[n_notes:]])
