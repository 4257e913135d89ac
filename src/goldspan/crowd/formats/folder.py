"""One CoNLL file per worker and document: `answers/<worker>/<document>.txt`, gold beside them.

The worker is the name of the folder that a file is in, the document the file's stem. Files in a
folder named `gold` (or `truth`) are the reference: their tokens and sentences are the items, and
their tags the gold. Without gold the tokens that most workers show are the reference. White space
separates token and label (tabs, if there are some); a line that starts with a blank and holds one
word is a label without a token. What lies above `answers` and `gold` becomes the attribute `part`.

Answers whose tokens or sentences are not those of the reference are aligned (`crowd/alignment`);
the import report lists every fault, and what became of every label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd.alignment import FATES, FAULT_KINDS, AnswerToken, Fate, align, place
from goldspan.crowd.alignment import Fault as AlignmentFault
from goldspan.crowd.builder import CrowdBuilder
from goldspan.crowd.formats.folder_documents import (
    Document,
    answer_paths,
    find_documents,
    sentences_of,
    text_files,
    types_of_labels,
)
from goldspan.crowd.formats.folder_writing import write
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.progress import counted
from goldspan.crowd.source import Source
from goldspan.crowd.workers import check_workers
from goldspan.errors import Fault, FormatError

__all__ = ["SUFFIXES", "SUMMARY", "read", "sniff", "write"]

SUMMARY = "one CoNLL file per worker and document, gold beside them (a folder or a .zip)"
SUFFIXES = ("", ".zip")


def sniff(source: Source) -> bool:
    """Say whether this is a folder of files in folders, whose lines are a token and a label."""
    paths = text_files(source)
    if not paths or any(PurePosixPath(path).suffix == ".ann" for path in source.files or {}):
        return False
    nested = answer_paths(source)
    if not nested:
        return False
    first = (source.files or {})[nested[0]]
    try:
        lines = [line for line in first.text.value.split("\n", 30)[:30] if line.strip()]
    except FormatError:
        return False
    return bool(lines) and all(1 <= len(line.split()) <= 6 for line in lines)


@dataclass
class _Tally:
    """What all documents together give to the report."""

    n_files: int = 0
    n_aligned: int = 0
    n_unlabelled: int = 0
    n_labels: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read a folder of answers.

    Raises:
        FormatError: There is no answer file, a document is there twice, a label is no tag; or,
            with `strict`, an answer differs from its reference.
    """
    builder = CrowdBuilder(options, source.name, "folder")
    documents = find_documents(source)
    types = types_of_labels(documents)
    tally = _Tally()
    workers = sorted({worker for document in documents for worker in document.answers})
    check_workers(options.workers or (), workers, source.name)
    for worker in workers:
        if options.workers is None or worker in options.workers:
            builder.add_worker(worker)
    for document in counted(documents, options.progress):
        _read_document(document, options, builder, tally, types)
    builder.reasons |= dict(tally.reasons)
    unanswered = sum(not document.answers for document in documents)
    builder.notes.append(
        f"{len(documents)} documents, {tally.n_files} answer files, "
        f"{tally.n_aligned} of them with other tokens than the reference "
        f"(altered={options.altered})"
    )
    if unanswered:
        builder.notes.append(f"{unanswered} documents have gold but no answer")
    if tally.n_unlabelled:
        builder.notes.append(f"{tally.n_unlabelled} lines have no label")
    if unread := sorted(set(source.files or {}) - set(answer_paths(source))):
        shown = ", ".join(unread[:5]) + (" …" if len(unread) > 5 else "")
        builder.notes.append(f"{len(unread)} other files were not read: {shown}")
    return builder.build()


def _read_document(
    document: Document,
    options: ReadOptions,
    builder: CrowdBuilder,
    tally: _Tally,
    types: set[str],
) -> None:
    answers = {
        worker: file.lines
        for worker, file in document.answers.items()
        if options.workers is None or worker in options.workers
    }
    reference = _reference(document, answers, builder)
    items = _add_items(document, reference, builder)
    sentences = [[line.token for line in sentence] for sentence in reference]
    flat = [token for sentence in sentences for token in sentence]
    offsets = np.concatenate([[0], np.cumsum([len(s) for s in sentences])]).astype(np.int64)
    for worker, lines in answers.items():
        tally.n_files += 1
        tally.n_aligned += [line.token for line in lines] != flat
        found = align(sentences, lines, types=types)
        labels = ["" if options.rename(line.label) is None else line.label for line in lines]
        placed = place(found, offsets, labels, options.altered)  # type: ignore[arg-type]
        _add_answers(document, worker, lines, placed.source, items, offsets, builder)
        file = document.answers[worker].name
        builder.warnings += _faults(found.faults, builder, items, file, worker)
        tally.n_unlabelled += int(np.count_nonzero(placed.fate == Fate.UNLABELLED))
        lost = placed.reasons()
        lost.pop(FATES[Fate.UNLABELLED], None)
        tally.reasons.update(lost)


def _reference(
    document: Document, answers: dict[str, list[AnswerToken]], builder: CrowdBuilder
) -> list[list[AnswerToken]]:
    """The gold's sentences; without gold those that most workers show."""
    if document.gold is not None:
        lines = document.gold.lines
        empty = [line for line in lines if not line.token]
        for line in empty:
            message = "the gold has a label without a token"
            builder.faults.append(Fault(message, document.gold.name, line.line, kind="empty-token"))
        return sentences_of([line for line in lines if line.token])
    shown = {
        worker: tuple(
            tuple(t.token for t in s) for s in sentences_of([x for x in lines if x.token])
        )
        for worker, lines in answers.items()
    }
    if not shown:
        return []
    most, _ = Counter(shown.values()).most_common(1)[0]
    worker = next(w for w, tokens in shown.items() if tokens == most)
    bare = [line._replace(label="") for line in answers[worker] if line.token]
    return sentences_of(bare)


def _add_items(
    document: Document, reference: list[list[AnswerToken]], builder: CrowdBuilder
) -> list[int]:
    items = []
    for n, sentence in enumerate(reference, start=1):
        gold = None
        if document.gold is not None:
            gold = [builder.options.rename(t.label) and t.label for t in sentence]
        items.append(
            builder.add_item(
                f"{document.name}-{n}",
                [line.token for line in sentence],
                group=document.name,
                gold=gold,
                attributes={"part": document.part} if document.part else None,
                line=sentence[0].line,
                token_lines=[line.line for line in sentence],
                file=document.gold.name if document.gold else "",
            )
        )
    return items


def _add_answers(
    document: Document,
    worker: str,
    lines: list[AnswerToken],
    source: NDArray[np.int32],
    items: list[int],
    offsets: NDArray[np.int64],
    builder: CrowdBuilder,
) -> None:
    """Cut a document's labels into answers to its sentences; a sentence without any is none."""
    chosen = source.tolist()
    for item, a, b in zip(items, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        if all(line < 0 for line in chosen[a:b]):
            continue
        tags = [lines[i].label if i >= 0 else None for i in chosen[a:b]]
        places = [lines[i].line if i >= 0 else 0 for i in chosen[a:b]]
        file = document.answers[worker].name
        builder.add_answer(item, worker, tags, token_lines=places, file=file)


def _faults(
    faults: tuple[AlignmentFault, ...],
    builder: CrowdBuilder,
    items: list[int],
    file: str,
    worker: str,
) -> Iterator[Fault]:
    for fault in faults:
        kind, line, sentence, position, token, label, reference = fault
        what = FAULT_KINDS[kind].removesuffix(".")
        shown = f"seen {token!r} {label}" if token or label else ""
        there = f"the reference has {reference!r}" if reference else ""
        detail = "; ".join(part for part in (shown, there) if part)
        message = f"{what[0].lower()}{what[1:]} ({detail})"
        item = builder.id_of(items[sentence]) if sentence >= 0 else ""
        yield Fault(message, file, line, item, position, worker, kind)
