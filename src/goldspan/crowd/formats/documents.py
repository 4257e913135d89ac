"""Folders with a file per document and annotator: what WebAnno TSV and UIMA CAS share.

`DOCUMENT/ANNOTATOR.ext`, the gold as `CURATION_USER`, as INCEpTION names what was curated. A
document is a group of items, which are its sentences; items without a group are in the document
`_`. The file of an annotator has the sentences that they answered, so that what nobody saw is not
taken for "nothing there". What cannot stand in a file name is percent-encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import quote, unquote

from goldspan.crowd.atomic import write_folder
from goldspan.crowd.formats.char_spans import CharSpan
from goldspan.crowd.formats.span_crowd import GOLD, SpanCrowd
from goldspan.crowd.formats.span_exports import (
    ItemRow,
    SoftLabels,
    item_rows,
    reject_gold_worker,
    reject_single,
)
from goldspan.crowd.model import Crowd
from goldspan.crowd.source import Source
from goldspan.errors import InputError

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

    def fill(folder: Path) -> None:
        for document, worker, said in _by_file(crowd, soft):
            name = CURATED if worker == GOLD else worker
            place = folder / _safe(document) / f"{_safe(name)}{ending}"
            try:
                place.parent.mkdir(exist_ok=True)
                save(place, said)
            except OSError as error:
                message = f"cannot write {place.name}: {error.strerror or error}"
                raise InputError(message) from None

    write_folder(path, fill)


def _by_file(
    crowd: Crowd, soft: SoftLabels | None
) -> Iterator[tuple[str, str, list[AnnotatedSentence]]]:
    """The sentences of every document and annotator; of an annotator's answers the last ones."""
    files: dict[tuple[str, str], dict[str, AnnotatedSentence]] = {}
    for row in item_rows(crowd, soft=soft):
        document = _NO_DOCUMENT if row.group is None else row.group
        if row.gold is not None:
            files.setdefault((document, GOLD), {})[row.id] = AnnotatedSentence(
                row, row.gold, row.sure
            )
        for _, worker, spans in row.answers:
            files.setdefault((document, worker), {})[row.id] = AnnotatedSentence(row, spans)
    for (document, worker), said in files.items():
        yield document, worker, list(said.values())


def _safe(name: str) -> str:
    """Return a name as a file can have it.

    >>> _safe("a/b"), _safe("..")
    ('a%2Fb', '%2E.')
    """
    found = quote(name, safe=" @+,()'")
    return f"%2E{found[1:]}" if found.startswith(".") else found


class File(NamedTuple):
    """A file of a document and annotator."""

    source: Source
    document: str | None  # The document, None if the file names none
    worker: str  # The annotator, "gold" for what was curated


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
