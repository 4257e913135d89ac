"""Crowds as brat's folders: what is written, and what gets lost."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from goldspan.crowd.formats.char_spans import CharSpan
from goldspan.crowd.formats.span_crowd import GOLD
from goldspan.crowd.formats.span_exports import ItemRow, item_rows
from goldspan.crowd.formats.span_losses import losses
from goldspan.crowd.model import Crowd
from goldspan.errors import InputError
from goldspan.spans import tokenize

_UNSAFE = re.compile(r'^\.|^_|^$|[%/\\:*?"<>|\x00-\x1f\x7f]|[. ]$')
_LINE_ENDS = re.compile("[\n\r\0\ufeff]")
_MAX_GAP = 1000


@dataclass
class _Folder:
    """One document: its items by line, and the spans that its annotators gave them."""

    name: str
    lines: dict[int, ItemRow] = field(default_factory=dict)

    def add(self, row: ItemRow) -> int:
        """Put an item on the line that its id names, else on the next one."""
        last = max(self.lines, default=0)
        number = row.id.removeprefix(f"{self.name}-")
        line = int(number) if number.isascii() and number.isdigit() and len(number) < 9 else 0
        if not last < line <= last + _MAX_GAP or f"{self.name}-{line}" != row.id:
            line = last + 1
        self.lines[line] = row
        return line

    @property
    def text(self) -> str:
        """The document."""
        rows = [self.lines.get(n) for n in range(1, max(self.lines) + 1)]
        return "".join(f"{shown_text(row) if row else ''}\n" for row in rows)

    def annotated(self, said: dict[str, list[CharSpan]]) -> str:
        """The annotations of one annotator, by item."""
        text, start = self.text, 0
        out: list[str] = []
        for line in range(1, max(self.lines) + 1):
            row = self.lines.get(line)
            for span in said.get(row.id, []) if row else []:
                a, b = start + span.start, start + span.end
                kind = re.sub(r"\s", "_", span.type)
                out.append(f"T{len(out) + 1}\t{kind} {a} {b}\t{text[a:b]}\n")
            start = text.index("\n", start) + 1
        return "".join(out)


def fill(crowd: Crowd, folder: Path) -> None:
    """Write the texts, and for every worker the texts that were annotated with the annotations.

    Raises:
        InputError: A name is too long for a file.
    """
    rows = list(item_rows(crowd))
    said = _by_worker(rows)
    for document in _folders(rows):
        ids = [row.id for row in document.lines.values()]
        _save(folder / f"{safe(document.name)}.txt", document.text)
        for worker, spans in said.items():
            if any(name in spans for name in ids):
                place = folder / safe(worker) / safe(document.name)
                _save(place.with_name(f"{place.name}.txt"), document.text)
                _save(place.with_name(f"{place.name}.ann"), document.annotated(spans))


def lost_in_folders(crowd: Crowd) -> list[str]:
    """Name what brat's folders cannot hold of this crowd."""
    lost = losses(crowd, {"groups"})
    rows = list(item_rows(crowd))
    if crowd.is_classification:
        lost.append("single labels (they become spans)")
    placed = crowd.token_start is not None and all(row.text.is_own for row in rows)
    if not placed or any(row.text.bounds != tokenize(row.text.value, "fine") for row in rows):
        lost.append("texts and tokens other than goldspan's tokenizer makes of a text")
    if any(shown_text(row) != row.text.value for row in rows):
        lost.append("line ends within texts (they become blanks)")
    folders = _folders(rows)
    expected = [
        (name, f"{f.name}-{n}") for f, name in ((f, f.name) for f in folders) for n in f.lines
    ]
    if expected != [(row.group, row.id) for row in rows]:
        lost.append("ids, documents and order of items (an item is called after document and line)")
    names = [*crowd.worker_ids.to_pylist(), *(folder.name for folder in folders)]
    if any(safe(name) != name for name in names):
        lost.append("names that cannot be names of files (written with %)")
    if any(re.search(r"\s", kind) for kind in crowd.tagset.types):
        lost.append("types with blanks (written with _)")
    said = _by_worker(rows).values()
    if not said:
        lost.append("a crowd without annotations (it is refused when it is read)")
    for folder in folders:
        ids = {row.id for row in folder.lines.values()}
        if any(0 < len(ids & spans.keys()) < len(ids) for spans in said):
            lost.append("that a worker (or the gold) labelled only a part of a document")
            break
    return lost


def shown_text(row: ItemRow) -> str:
    """Give the text of an item on one line, of the same length."""
    return _LINE_ENDS.sub(" ", row.text.value)


def safe(name: str) -> str:
    """Give the name of a file or folder that is called so.

    >>> safe("a/b")
    'a%2Fb'
    """
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
