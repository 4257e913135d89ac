"""The lines of brat's `.ann` files, and what their offsets count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from goldspan.crowd.formats.char_spans import CharSpan, reads_otherwise
from goldspan.crowd.formats.json_records import Record, collect, shown
from goldspan.crowd.source import Source
from goldspan.errors import Fault

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
    """Give the text-bound annotations of a file, each with its pieces.

    Args:
        record: Names the file and the worker.
        file: The file, which may be empty.
        faults: Lines that cannot be read are added here.
        not_used: The places of all other lines are added here, by their kind.
    """
    seen = set()
    lines = file.text.value.split("\n") if file.data.strip() else []
    for number, line in enumerate(lines, start=1):
        one = replace(record, line=number)
        mark, _, rest = line.partition("\t")
        if mark and mark[0] in NOT_USED:
            places = not_used.setdefault(NOT_USED[mark[0]], [])
            places.append(f"{mark[:20]} in {file.name} line {number}")
        elif line.strip():
            with collect(faults):
                if mark in seen:
                    raise one.error(f"id {mark[:20]!r} stands twice", "duplicate-id")
                seen.add(mark)
                yield one, _pieces(one, mark, rest)


def counted_text(
    file: Source, offsets: str, spans: Sequence[CharSpan]
) -> tuple[str, Sequence[int]]:
    """Give the text that offsets count, and where each of its characters is in the text as read.

    Reading takes away a byte order mark and carriage returns; brat counts them. Of the two texts
    the one is right in which more of the spans cover what they say.
    """
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
