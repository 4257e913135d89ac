"""The files of a folder of answers: which are there, and the tokens and labels that they hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple

from goldspan.crowd.alignment import AnswerToken
from goldspan.crowd.grid import is_comment
from goldspan.crowd.source import Source
from goldspan.errors import Fault, FormatError

DOCSTART = "-DOCSTART-"
GOLD = {"gold", "truth"}
"""Folders that hold the reference."""

_ANSWERS = {"answers", "workers", "annotators"}
_READ = {".txt", ".conll", ".tsv", ".bio", ".iob", ""}


class TokenFile(NamedTuple):
    """One file of tokens and labels."""

    name: str
    lines: list[AnswerToken]


@dataclass
class Document:
    """The files of one document.

    Attributes:
        name: Its name, the group of its items.
        part: What lies above, "" for nothing.
        gold: The reference file, None if there is none.
        answers: One file per worker.
    """

    name: str
    part: str
    gold: TokenFile | None = None
    answers: dict[str, TokenFile] = field(default_factory=dict)


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


def types_of_labels(documents: list[Document]) -> set[str]:
    """Types of the labels of all files: what may be glued onto tokens."""
    files = [file for d in documents for file in (d.gold, *d.answers.values()) if file is not None]
    labels = {line.label for file in files for line in file.lines}
    return {label.partition("-")[2] or label for label in labels} - {"", "O"}


def read_file(file: Source) -> TokenFile:
    """Read the lines of one file as tokens and labels."""
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


def sentences_of(lines: list[AnswerToken]) -> list[list[AnswerToken]]:
    """Cut lines where their sentences end."""
    found: list[list[AnswerToken]] = []
    for line in lines:
        if not found or found[-1][0].sentence != line.sentence:
            found.append([])
        found[-1].append(line)
    return found


def _split(line: str) -> tuple[str, str]:
    if "\t" in line:
        cells = [cell.strip() for cell in line.split("\t")]
        return cells[0], cells[-1]
    words = line.split()
    if len(words) == 1:
        return ("", words[0]) if line[0].isspace() else (words[0], "")
    return words[0], words[-1]
