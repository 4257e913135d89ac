"""Instructions for workers: a little Markdown, read into blocks that a template sets.

Headings, paragraphs, lists, quotes, **bold**, *italic*, `code`. A quote is an example, in which
`[Ann](PER) sang` shows a labelled span. Nothing becomes HTML here: what is not understood stays
text, and the template escapes all of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from goldspan.errors import InputError

LISTS = {"list", "numbers"}
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(.*)")
# The lengths keep the search for an end that is not there short.
_INLINE = re.compile(
    r"\*\*(?P<bold>[^*]{1,1000})\*\*"
    r"|(?<![\w*])\*(?P<italic>[^\s*](?:[^*]{0,1000}[^\s*])?)\*(?![\w*])"
    r"|`(?P<code>[^`]{1,1000})`"
    r"|\[(?P<text>[^\[\]]{1,1000})\]\((?P<target>[^()\s]{1,1000})\)"
)


@dataclass(frozen=True)
class Piece:
    """Words of one style.

    Attributes:
        kind: "text", "bold", "italic", "code", "link" or "span".
        text: The words.
        target: Address of a link, type of a span.
    """

    kind: str
    text: str
    target: str = ""


@dataclass(frozen=True)
class Block:
    """A heading, a paragraph, a list or an example.

    Attributes:
        kind: "heading", "paragraph", "list", "numbers" or "example".
        lines: Its lines, or the items of the list; each a sequence of pieces.
    """

    kind: str
    lines: tuple[tuple[Piece, ...], ...]


def load_instructions(folder: Path, given: str | None) -> str:
    """Give the text, or that of the Markdown file beside the plan.

    Raises:
        InputError: The file cannot be read.
    """
    if given is None or "\n" in given or not given.endswith(".md"):
        return given or ""
    try:
        return (folder / given).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"page.instructions: cannot read {given}: {error}") from None


def read_instructions(text: str, types: Sequence[str] = ()) -> tuple[Block, ...]:
    r"""Read instructions.

    Args:
        text: In Markdown.
        types: Types of spans and labels that examples may show.

    >>> [block.kind for block in read_instructions("# Names\n\n> [Ann](PER) sang", ["PER"])]
    ['heading', 'example']
    """
    blocks = []
    for kind, lines in _grouped(text.splitlines()):
        blocks.append(Block(kind, tuple(_pieces(line, types) for line in lines)))
    return tuple(blocks)


def plain_words(text: str) -> str:
    r"""Give instructions without marks, for a letter: what stands in brackets keeps its kind.

    >>> print(plain_words("# Names\n\nMark **all**.\n\n> [Ann](PER) sang"))
    Names
    <BLANKLINE>
    Mark all.
    <BLANKLINE>
        Ann (PER) sang
    """
    targets = [found["target"] for found in _INLINE.finditer(text) if found["target"]]
    blocks = read_instructions(text, targets)
    return "\n\n".join("\n".join(_plain_lines(block)) for block in blocks)


def _plain_lines(block: Block) -> list[str]:
    marks = {"list": "- ", "example": "    "}
    words = [
        "".join(f"{it.text} ({it.target})" if it.target else it.text for it in line)
        for line in block.lines
    ]
    if block.kind == "numbers":
        return [f"{number}. {line}" for number, line in enumerate(words, start=1)]
    return [marks.get(block.kind, "") + line for line in words]


def _grouped(lines: Sequence[str]) -> list[tuple[str, list[str]]]:
    blocks: list[tuple[str, list[str]]] = []
    fresh = True
    for line in lines:
        if not line.strip():
            fresh = True
            continue
        kind, words = _kind(line)
        last, before = blocks[-1] if blocks else ("", [])
        if kind == "paragraph" and not fresh and last not in {"", "heading"}:
            before[-1] += f" {words}"
        elif kind == last and (kind in LISTS or (kind == "example" and not fresh)):
            before.append(words)
        else:
            blocks.append((kind, [words]))
        fresh = False
    return blocks


def _kind(line: str) -> tuple[str, str]:
    words = line.strip()
    if words.startswith("#"):
        return "heading", words.lstrip("#").strip()
    if words.startswith(">"):
        return "example", words[1:].strip()
    item = _ITEM.fullmatch(line)
    if item:
        return ("numbers" if words[0].isdigit() else "list"), item[1]
    return "paragraph", words


def _pieces(line: str, types: Sequence[str]) -> tuple[Piece, ...]:
    pieces, end = [], 0
    for found in _INLINE.finditer(line):
        pieces += [Piece("text", line[end : found.start()]), _piece(found, types)]
        end = found.end()
    pieces.append(Piece("text", line[end:]))
    return tuple(piece for piece in pieces if piece.text)


def _piece(found: re.Match[str], types: Sequence[str]) -> Piece:
    for kind in ("bold", "italic", "code"):
        if found[kind]:
            return Piece(kind, found[kind])
    if found["target"] in types:
        return Piece("span", found["text"], found["target"])
    if found["target"].startswith(("https://", "http://")):
        return Piece("link", found["text"], found["target"])
    return Piece("text", found[0])
