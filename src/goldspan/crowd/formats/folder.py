"""Folders with a file per worker and document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from goldspan.crowd.alignment import FAULT_KINDS, AnswerToken, Placement, align, place
from goldspan.crowd.alignment import Fault as AlignmentFault
from goldspan.crowd.atomic import write_folder
from goldspan.crowd.builder import CrowdBuilder
from goldspan.crowd.formats import webanno
from goldspan.crowd.grid import cell_text, is_comment
from goldspan.crowd.labels import check_workers
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.reference import sentences_of, vote_tokens
from goldspan.crowd.source import Source, counted, open_source
from goldspan.errors import Fault, FormatError, InputError

# --------------------------------------------------------------------------------------------------
# The files of a folder of answers: which are there, and the tokens and labels that they hold.


DOCSTART = "-DOCSTART-"
GOLD = {"gold", "truth"}
"""Folders that hold the reference."""
TAKES_TEXTS = True
"""Whether `ReadOptions.texts` may give the tokens."""

_ANSWERS = {"answers", "workers", "annotators"}
_READ = {".txt", ".conll", ".tsv", ".bio", ".iob", ""}


class TokenFile(NamedTuple):
    """One file of tokens and labels."""

    name: str
    lines: list[AnswerToken]


@dataclass
class Document:
    """The files of one document."""

    name: str  # Its name, the group of its items
    part: str  # What lies above, "" for nothing
    gold: TokenFile | None = None  # The reference file, None if there is none
    text: TokenFile | None = None  # A file of the tokens alone, None if there is none
    answers: dict[str, TokenFile] = field(default_factory=dict)  # One file per worker


def text_files(source: Source) -> list[str]:
    """Paths of the files that may hold tokens and labels."""
    return [p for p, _ in source.sorted_files() if PurePosixPath(p).suffix.lower() in _READ]


def answer_paths(source: Source) -> list[str]:
    """Paths of the files that lie in a folder of a worker or of the gold."""
    return [path for path in text_files(source) if len(PurePosixPath(path).parts) > 1]


def find_documents(source: Source) -> list[Document]:
    """Sort the files by document; documents in the order of their names."""
    found: dict[tuple[str, str], Document] = {}
    faults = []
    for path in answer_paths(source):
        parts = PurePosixPath(path).parts
        file = read_file((source.files or {})[path])
        name, holder = PurePosixPath(path).stem, parts[-2]
        above = parts[:-2]
        if above and above[-1].lower() in _ANSWERS:
            above = above[:-1]
        part = "/".join(above)
        document = found.setdefault((part, name), Document(name, part))
        if holder.lower() in GOLD:
            if document.gold is not None:
                message = f"document {name} has two gold files ({document.gold.name}): keep one"
                faults.append(Fault(message, file=file.name, kind="duplicate-file"))
            document.gold = file
        elif holder in document.answers:
            first = document.answers[holder].name
            message = f"the worker has two files for document {name} ({first}): keep one"
            faults.append(Fault(message, file=file.name, worker=holder, kind="duplicate-file"))
        else:
            document.answers[holder] = file
    if not found:
        message = "the folder holds no <worker>/<document>.txt: is the path right?"
        faults.append(Fault(message, file=source.name, kind="empty"))
    if faults:
        raise FormatError(faults)
    documents = sorted(found.values(), key=lambda d: (d.name, d.part))
    twice = {name for name, n in Counter(d.name for d in documents).items() if n > 1}
    for document in documents:
        if document.name in twice:
            document.name = f"{document.part}/{document.name}"
    return documents


def read_file(file: Source) -> TokenFile:
    """Read the lines of one file as tokens and labels."""
    if webanno.is_old(file.text.value):
        raise FormatError([Fault(webanno.REJECTED, file.name, 1, kind="header")])
    lines: list[AnswerToken] = []
    sentence, open_sentence = 0, False
    for number, line in enumerate(file.text.value.split("\n"), start=1):
        if not line or line.isspace():
            sentence += open_sentence
            open_sentence = False
        elif line[0] in "#-" and (is_comment(line) or line.startswith(DOCSTART)):
            continue
        else:
            lines.append(AnswerToken(*_split(line), number, sentence))
            open_sentence = True
    return TokenFile(file.name, lines)


def _split(line: str) -> tuple[str, str]:
    if "\t" in line:
        cells = [cell.strip() for cell in line.split("\t")]
        return cells[0], cells[-1]
    words = line.split()
    if len(words) == 1:
        return ("", words[0]) if line[0].isspace() else (words[0], "")
    return words[0], words[-1]


# --------------------------------------------------------------------------------------------------
# Writing folders of one file per worker and document.


_MAX_NAME = 200


def write(crowd: Crowd, path: Path) -> None:
    """Write `answers/<worker>/<document>.txt` and `gold/<document>.txt` into a new folder."""
    if bad := _bad_names(crowd):
        shown = ", ".join(repr(name) for name in bad[:10])
        raise InputError(
            f"cannot write {path}: {shown} cannot be the name of a file, as the ids of workers and "
            "documents must be: choose another format, such as parquet"
        )
    write_folder(path, lambda folder: _fill(crowd, folder))


def _fill(crowd: Crowd, folder: Path) -> None:
    """Write every document of a worker whole, so that each line finds its token again."""
    tags = [*map(_shown, crowd.tagset.tags), ""]
    workers, answers = crowd.worker_ids.to_pylist(), crowd.latest
    documents: dict[str, list[int]] = {}
    for n, name in enumerate(_document_names(crowd)):
        documents.setdefault(name, []).append(n)
    tokens = [[_shown(token) for token in row] for row in crowd.tokens_list]
    for name, items in documents.items():
        files: dict[str, dict[int, list[int]]] = {}
        for n in items:
            if crowd.gold is not None:
                codes = crowd.gold[crowd.offsets[n] : crowd.offsets[n + 1]].tolist()
                files.setdefault("gold", {})[n] = codes
            for a in crowd.by_item[n].tolist():
                codes = answers.codes[answers.offset[a] : answers.offset[a + 1]].tolist()
                files.setdefault(f"answers/{workers[answers.worker[a]]}", {})[n] = codes
        for holder, known in files.items():
            blocks = []
            for n in items:
                codes = known.get(n, [-1] * len(tokens[n]))
                rows = zip(tokens[n], codes, strict=True)
                blocks.append("".join(f"{token}\t{tags[code]}\n" for token, code in rows))
            target = folder / holder / f"{name}.txt"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("\n".join(blocks), encoding="utf-8")


def _document_names(crowd: Crowd) -> list[str]:
    groups = ["items"] * crowd.n_items if crowd.groups is None else crowd.groups.to_pylist()
    return [group or "" for group in groups]


def _bad_names(crowd: Crowd) -> list[str]:
    """Ids of workers and documents that cannot be names of folders and files."""
    used = crowd.worker_ids.take(pa.array(np.unique(crowd.latest.worker))).to_pylist()
    bad = {name for name in used if name.lower() in GOLD}
    for name in {*used, *_document_names(crowd)}:
        hidden = not name or name.startswith((".", "__MACOSX"))
        if hidden or set(name) & set("/\\\0\n\r") or len(name.encode()) > _MAX_NAME:
            bad.add(name)
    return sorted(bad)


def _shown(word: str) -> str:
    return cell_text(word).strip().removeprefix("\ufeff")


# --------------------------------------------------------------------------------------------------
# One CoNLL file per worker and document: `answers/<worker>/<document>.txt`, gold beside them.


def sniff(source: Source) -> bool:
    """Return whether this is a folder of files in folders, whose lines are a token and a label."""
    nested = answer_paths(source)
    if not nested or any(PurePosixPath(path).suffix == ".ann" for path in source.files or {}):
        return False
    first = (source.files or {})[nested[0]]
    try:
        lines = [line for line in first.text.value.split("\n", 30)[:30] if line.strip()]
    except FormatError:
        return False
    return bool(lines) and all(1 <= len(line.split()) <= 6 for line in lines)


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read a folder of answers."""
    builder = CrowdBuilder(options, source.name, "folder")
    documents = find_documents(source)
    if options.texts is not None:
        builder.notes += _add_texts(documents, options)
    # Types of the labels of all files: what may be glued onto tokens
    files = [file for d in documents for file in (d.gold, *d.answers.values()) if file is not None]
    labels = {line.label for file in files for line in file.lines}
    types = {label.partition("-")[2] or label for label in labels} - {"", "O"}
    unanswered = sum(not document.answers for document in documents)
    workers = sorted({worker for document in documents for worker in document.answers})
    check_workers(options.workers or (), workers, source.name)
    kept = [one for one in workers if options.workers is None or one in options.workers]
    for worker in kept:
        builder.add_worker(worker)
    for document in documents:
        document.answers = {one: file for one, file in document.answers.items() if one in kept}
    counts: Counter[str] = Counter()
    pairs = list(zip(documents, _references(documents, builder, types), strict=True))
    for document, reference in counted(pairs, options.progress):
        _read_document(document, reference, builder, counts, types)
    builder.notes.append(
        f"{len(documents)} documents, {counts['files']} answer files, "
        f"{counts['aligned']} of them with other tokens than the reference "
        f"(altered={options.altered})"
    )
    if counts["voted"]:
        builder.notes.append(
            f"the answers to {counts['voted']} documents differ in their tokens, and there is no "
            "gold and no text: what the text is was voted"
        )
    if unanswered:
        builder.notes.append(f"{unanswered} documents have gold but no answer")
    if counts["unlabelled"]:
        builder.notes.append(f"{counts['unlabelled']} lines have no label")
    if unread := sorted(set(source.files or {}) - set(answer_paths(source))):
        builder.notes.append(f"{len(unread)} other files were not read: {_first(unread)}")
    return builder.build()


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (" …" if len(names) > 5 else "")


def _read_document(
    document: Document,
    reference: list[list[AnswerToken]],
    builder: CrowdBuilder,
    counts: Counter[str],
    types: set[str],
) -> None:
    """Read what is said of a document; `counts` is what the report says of all of them."""
    options, items = builder.options, _add_items(document, reference, builder)
    sentences = [[line.token for line in sentence] for sentence in reference]
    flat = [token for sentence in sentences for token in sentence]
    offsets = np.concatenate([[0], np.cumsum([len(s) for s in sentences])]).astype(np.int64)
    bounds = list(zip(items, pairwise(offsets.tolist()), strict=True))
    differ = 0
    for worker, file in document.answers.items():
        lines = file.lines
        differ += [line.token for line in lines] != flat
        found = align(sentences, lines, types=types)
        labels = ["" if options.rename(line.label) is None else line.label for line in lines]
        placed = place(found, offsets, labels, options.altered)
        chosen = placed.source.tolist()
        for item, (a, b) in bounds:
            if all(line < 0 for line in chosen[a:b]):
                continue  # a sentence without a label is no answer
            tags = [lines[i].label if i >= 0 else None for i in chosen[a:b]]
            places = [lines[i].line if i >= 0 else 0 for i in chosen[a:b]]
            builder.add_answer(item, worker, tags, token_lines=places, file=file.name)
        builder.warnings += _faults(found.faults, builder, items, file.name, worker)
        lost = placed.reasons()
        counts["unlabelled"] += lost.pop(Placement.UNLABELLED.text, 0)
        for reason, n in lost.items():
            builder.reasons[reason] = builder.reasons.get(reason, 0) + n
    counts["files"] += len(document.answers)
    counts["aligned"] += differ
    counts["voted"] += document.gold is None and document.text is None and differ > 0


# --------------------------------------------------------------------------------------------------
# The tokens of a document: those of its gold, of a text without labels, or of a vote.


def _references(
    documents: list[Document], builder: CrowdBuilder, types: set[str]
) -> list[list[list[AnswerToken]]]:
    unknown = [d for d in documents if d.gold is None and d.text is None]
    voted = vote_tokens([[file.lines for file in d.answers.values()] for d in unknown], types)
    sentences = iter(voted)
    found = []
    for document in documents:
        if document.gold is not None:
            found.append(_gold_sentences(document, document.gold, builder))
        elif document.text is not None:
            found.append(sentences_of(document.text.lines))
        else:
            tokens = enumerate(next(sentences))
            found.append([[AnswerToken(word, "", 0, n) for word in one] for n, one in tokens])
    return found


def _gold_sentences(
    document: Document, gold: TokenFile, builder: CrowdBuilder
) -> list[list[AnswerToken]]:
    """The gold's sentences, which must be those of the text if there is one."""
    for line in gold.lines:
        if not line.token:
            message = "the gold has a label without a token"
            builder.faults.append(Fault(message, gold.name, line.line, kind="empty-token"))
    found = sentences_of([line for line in gold.lines if line.token])
    if document.text is not None:
        other = sentences_of(document.text.lines)
        pairs = zip_longest(*(_with_ends(one) for one in (found, other)), fillvalue=("", 0))
        for (mine, at), (theirs, _) in pairs:
            if mine != theirs:
                message = (
                    f"the gold has {mine or 'nothing more'!r} where {document.text.name} has "
                    f"{theirs or 'nothing more'!r}: both must show the same tokens and sentences"
                )
                builder.faults.append(Fault(message, gold.name, at, kind="tokens"))
                break
    return found


def _with_ends(sentences: list[list[AnswerToken]]) -> Iterator[tuple[str, int]]:
    """Yield the tokens of sentences with their lines, and the ends of sentences."""
    for sentence in sentences:
        yield from ((line.token, line.line) for line in sentence)
        yield "(end of sentence)", sentence[-1].line + 1


def _add_texts(documents: list[Document], options: ReadOptions) -> list[str]:
    """Give documents the texts of their names; says which have none, and which are of none."""
    source = open_source(options.texts, options.text_encoding, options.max_decompressed)
    if not source.is_folder:
        raise InputError(
            f"must be a folder or a .zip with a file per document, and {source.name} is one file",
            parameter="texts",
        )
    paths = text_files(source)
    named: dict[str, list[str]] = {}
    for path in paths:
        bare = PurePosixPath(path).with_suffix("")
        for name in {str(bare), f"/{bare.name}"}:
            named.setdefault(name, []).append(path)
    used, faults = set(), []
    for document in documents:
        whole = str(PurePosixPath(document.part, PurePosixPath(document.name).name))
        found = named.get(whole) or named.get(f"/{document.name}", [])
        if len(found) > 1:
            both = " and ".join(found[:2])
            message = f"document {document.name} has several texts ({both}): keep one"
            faults.append(Fault(message, file=source.name, kind="duplicate-file"))
        elif found:
            used.add(found[0])
            document.text = read_file((source.files or {})[found[0]])
            faults += _text_faults(document.text)
    if faults:
        raise FormatError(faults)
    without = [document.name for document in documents if document.text is None]
    notes = [f"texts of {len(documents) - len(without)} documents from {source.name}"]
    if without:
        notes.append(f"{len(without)} documents have no text there: {_first(without)}")
    if others := sorted(set(paths) - used):
        notes.append(f"{len(others)} texts are of no document: {_first(others)}")
    return notes


def _text_faults(text: TokenFile) -> Iterator[Fault]:
    """What keeps a file from being a text: the first line that is not one token."""
    rule = "a text has one token per line, without labels, and a blank line between sentences"
    wrong = next((line for line in text.lines if line.label or not line.token), None)
    if wrong is not None:
        shown = f"{wrong.token} {wrong.label}".strip()
        message = f"{rule}; running text is not read (the line has {shown!r} or more)"
        yield Fault(message, text.name, wrong.line, kind="text")
    elif not text.lines:
        yield Fault(f"the file holds no token: {rule}", text.name, kind="empty")


def _add_items(
    document: Document, reference: list[list[AnswerToken]], builder: CrowdBuilder
) -> list[int]:
    items = []
    known = document.gold or document.text
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
                file=known.name if known else "",
            )
        )
    return items


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
