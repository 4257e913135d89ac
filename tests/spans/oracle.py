"""A second reading of tags in plain Python, from the definitions and not from goldspan's tables.

Every function here is slow, knows nothing of the pair table, and shares no code with
`goldspan.spans`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

ENCODINGS = ("IOB", "BIO", "IOBES", "BILOU", "BMEWO", "PLAIN")
LETTERS = {  # begin, inside, end, single
    "IOB": "BI",
    "BIO": "BI",
    "IOBES": "BIES",
    "BILOU": "BILU",
    "BMEWO": "BMEW",
}
POLICIES = ("conlleval", "strict", "boundaries")

Found = list[tuple[str, int, int]]


def alphabet(encoding: str, types: tuple[str, ...] = ("X", "Y")) -> tuple[str, ...]:
    """List all tags of some types; PLAIN gets a label that is called `O`."""
    if encoding == "PLAIN":
        return ("O", *types)
    return ("O", *(f"{letter}-{kind}" for kind in types for letter in LETTERS[encoding]))


@cache
def sequences(encoding: str, longest: int) -> list[tuple[str, ...]]:
    """List all tag sequences over two types, legal or not, up to a length."""
    tags = alphabet(encoding)
    return [row for n in range(longest + 1) for row in product(tags, repeat=n)]


def layouts(length: int, types: tuple[str, ...] = ("X", "Y"), start: int = 0) -> Iterator[Found]:
    """Yield every way to place spans that do not overlap."""
    if start == length:
        yield []
        return
    for rest in layouts(length, types, start + 1):
        yield rest
    for end in range(start + 1, length + 1):
        for rest in layouts(length, types, end):
            for kind in types:
                yield [(kind, start, end), *rest]


def spell(spans: Found, length: int, encoding: str) -> list[str]:
    """Write spans tag by tag, as Lester 2020, section 2, describes the encodings."""
    tags = ["O"] * length
    for kind, start, end in spans:
        letters = LETTERS[encoding]
        for i in range(start, end):
            tags[i] = f"{letters[1]}-{kind}"
        if encoding == "IOB":
            touched = any(k == kind and e == start for k, _, e in spans)
            tags[start] = f"{'B' if touched else 'I'}-{kind}"
            continue
        tags[start] = f"B-{kind}"
        if len(letters) == 4:
            tags[end - 1] = f"{letters[2]}-{kind}"
            if end - start == 1:
                tags[start] = f"{letters[3]}-{kind}"
    return tags


@cache
def well_formed(encoding: str, longest: int) -> dict[tuple[str, ...], Found]:
    """Map every well-formed sequence over two types, up to a length, to its spans."""
    if encoding == "PLAIN":
        every = sequences(encoding, longest)
        return {tags: [(tag, i, i + 1) for i, tag in enumerate(tags)] for tags in every}
    written = {}
    for length in range(longest + 1):
        for spans in layouts(length):
            written[tuple(spell(spans, length, encoding))] = spans
    return written


def meaning(tag: str, encoding: str) -> tuple[str, str]:
    """Return what a well-written tag does ("O", "B", "I", "E", "S") and its type."""
    if tag == "O":
        return ("O", "")
    letter, kind = tag.split("-", 1)
    return ("BIES"[LETTERS[encoding].index(letter)], kind)


def conlleval(tags: tuple[str, ...] | list[str], encoding: str) -> Found:
    """Walk along: a new span on another type, at B or S, and after E, S or O."""
    if encoding == "PLAIN":
        return [(tag, i, i + 1) for i, tag in enumerate(tags)]
    spans: Found = []
    for i, tag in enumerate(tags):
        role, kind = meaning(tag, encoding)
        if role == "O":
            continue
        before, was = meaning(tags[i - 1], encoding) if i else ("O", "")
        if role in "BS" or before in "ESO" or kind != was:
            spans.append((kind, i, i + 1))
        else:
            spans[-1] = (kind, spans[-1][1], i + 1)
    return spans


def strict(tags: tuple[str, ...] | list[str], encoding: str) -> Found:
    """Try every stretch: does it read as one whole span, and could it be no longer?"""
    if encoding == "PLAIN":
        return conlleval(tags, encoding)
    read = [("O", ""), *(meaning(tag, encoding) for tag in tags), ("O", "")]
    spans: Found = []
    for start in range(1, len(tags) + 1):
        for end in range(start + 1, len(tags) + 2):
            roles = "".join(role for role, _ in read[start:end])
            kinds = {kind for _, kind in read[start:end]}
            if len(kinds) == 1 and _whole(roles, kinds.pop(), read[start - 1], read[end], encoding):
                spans.append((read[start][1], start - 1, end - 1))
    return spans


def _whole(
    roles: str, kind: str, before: tuple[str, str], after: tuple[str, str], encoding: str
) -> bool:
    inner = roles[1:]
    if encoding in {"IOB", "BIO"}:
        stops = after != ("I", kind)
        touches = before[1] == kind and before[0] != "O"
        opens = "B" if encoding == "BIO" or touches else "I"
        return stops and roles[0] == opens and set(inner) <= {"I"}
    return roles == "S" or (roles[0] == "B" and roles[-1] == "E" and set(inner[:-1]) <= {"I"})


def boundaries(tags: tuple[str, ...] | list[str], encoding: str) -> Found:
    """From a begin tag over tags inside, whatever their type, to the end tag (Lester, Table 1).

    Without end tags a span is a begin tag and what continues its type. In IOB and PLAIN begin
    tags do not decide, so the reading is that of conlleval.
    """
    if encoding in {"IOB", "PLAIN"}:
        return conlleval(tags, encoding)
    read = [meaning(tag, encoding) for tag in tags]
    spans: Found = []
    for start, (role, kind) in enumerate(read):
        if role == "S":
            spans.append((kind, start, start + 1))
        if role != "B":
            continue
        end = start + 1
        if encoding == "BIO":
            while end < len(read) and read[end] == ("I", kind):
                end += 1
            spans.append((kind, start, end))
            continue
        while end < len(read) and read[end][0] == "I":
            end += 1
        if end < len(read) and read[end][0] == "E":
            spans.append((kind, start, end + 1))
    return spans


READINGS = {"conlleval": conlleval, "strict": strict, "boundaries": boundaries}


def faults(tags: tuple[str, ...] | list[str], encoding: str) -> list[tuple[int, str]]:
    """List (token, kind) of everything that breaks a rule: per token, how it opens, then closes."""
    if encoding == "PLAIN":
        return []
    read = [("O", ""), *(meaning(tag, encoding) for tag in tags), ("O", "")]
    found = []
    for i in range(1, len(tags) + 1):
        (before, was), (role, kind), (after, _) = read[i - 1 : i + 2]
        if encoding == "IOB":
            if role == "B" and not (before != "O" and was == kind):
                found.append((i - 1, "needless-begin"))
            continue
        if role in "IE" and before in "ESO":
            found.append((i - 1, "no-begin"))
        elif role in "IE" and was != kind:
            found.append((i - 1, "type-change"))
        if encoding != "BIO" and role in "BI" and after in "OBS":
            found.append((i - 1, "not-closed"))
    return found


def split_at_gaps(tags: list[str | None]) -> list[tuple[int, list[str]]]:
    """Cut a row of tags where nobody labelled a token: (first token, tags) of every piece."""
    pieces: list[tuple[int, list[str]]] = []
    for i, tag in enumerate(tags):
        if tag is None:
            continue
        if i and tags[i - 1] is not None:
            pieces[-1][1].append(tag)
        else:
            pieces.append((i, [tag]))
    return pieces
