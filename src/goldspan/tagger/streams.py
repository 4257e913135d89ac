"""Tagging texts that need not fit in memory: read item by item, tagged in blocks, written as lines.

Three formats: plain text (a line is an item, tokenized by `goldspan.spans.tokenize`, a blank
line ends a document), CoNLL (a token per line in the first column, in CoNLL-U in the second; a
blank line ends an item, `-DOCSTART-` begins a document, `# text = …` is an item's text) and JSON
lines (an object with `tokens` or `text`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TextIO

from goldspan.errors import Fault, FormatError, InputError, UnknownNameError
from goldspan.spans import tokenize
from goldspan.spans.text import RULES, locate
from goldspan.tagger.base import Tagger
from goldspan.tagger.decoding import Tagging, spans_with_confidence
from goldspan.tagger.features import Text

BLOCK_TOKENS = 20_000
"""Tokens that are tagged at once; a document is kept together up to ten times as many."""
MAX_LINE = 1 << 20
"""Longer lines of plain text are cut at white space; longer tokens and objects are refused."""
_CONLLU = 10
"""Columns of CoNLL-U, whose first one numbers the words."""
_NUMBER = re.compile(r"\d+(?:[-.]\d+)?")
LEAST = 1e-3
"""Spans with a smaller posterior have a confidence of 0."""


@dataclass(frozen=True)
class Item:
    """An item as it was read."""

    words: list[str]
    name: str  # Its id, or the number of its line
    document: int = 0
    text: str = ""  # What the tokens were cut from; "" for tokens
    # Character bounds of the tokens in the text; empty for tokens
    bounds: list[tuple[int, int]] = field(default_factory=list)
    fields: dict[str, Any] = field(default_factory=dict)  # The other fields of a JSON object


@dataclass(frozen=True)
class Labelled:
    """An item with its tags."""

    item: Item
    tags: list[str]  # One per token
    confidence: list[float]  # Posterior of every tag
    # Type, first token, one past the last token and posterior of every span
    spans: list[tuple[str, int, int, float]]


def read_items(
    file: TextIO,
    format: str,  # noqa: A002 - users' word
    name: str,
    tokens: str = "fine",
) -> Iterator[Item]:
    """Read items one after the other."""
    if format not in READERS:
        raise UnknownNameError("format of texts", format, READERS)
    if tokens not in RULES:
        raise UnknownNameError("rule for tokens", tokens, RULES)
    with _told(name):
        yield from READERS[format](file, name, tokens)


def label(tagger: Tagger, items: Iterable[Item]) -> Iterator[Labelled]:
    """Tag items block by block; no more than a block is in memory."""
    for block in blocks(items, whole=tagger.documents_):
        documents = [str(item.document) for item in block] if tagger.documents_ else None
        found = tagger.tag(Text.of([item.words for item in block], documents), least=LEAST)
        yield from _labelled(tagger, block, found)


def blocks(items: Iterable[Item], *, whole: bool, size: int = BLOCK_TOKENS) -> Iterator[list[Item]]:
    """Gather items into blocks of at least `size` tokens."""
    block: list[Item] = []
    n_tokens = 0
    for item in items:
        within = whole and block and block[-1].document == item.document
        if n_tokens >= (10 * size if within else size):
            yield block
            block, n_tokens = [], 0
        block.append(item)
        n_tokens += len(item.words)
    if block:
        yield block


def conll_lines(labelled: Iterable[Labelled]) -> Iterator[str]:
    """Yield token, tag and confidence per line, a chunk per item."""
    for n, one in enumerate(labelled):
        words = (" ".join(word.split()) or "?" for word in one.item.words)
        rows = zip(words, one.tags, one.confidence, strict=True)
        lines = "".join(f"{word}\t{tag}\t{p:.4f}\n" for word, tag, p in rows)
        yield f"{'' if n == 0 else chr(10)}# id = {' '.join(one.item.name.split())}\n{lines}"


def json_lines(labelled: Iterable[Labelled]) -> Iterator[str]:
    """Return an object per line: item, tokens, token_tags, spans as `gold`; other fields stay."""
    # Spans are those of a consensus
    for one in labelled:
        text, bounds = one.item.text, one.item.bounds
        facts: dict[str, Any] = {"item": one.item.name}
        if text and bounds:
            facts |= {"text": text, "token_start": [a for a, _ in bounds], "unit": "char"}
        spans = []
        for kind, start, end, p in one.spans:
            span: dict[str, Any] = {"type": kind, "start": start, "end": end}
            if text and bounds:
                a, b = bounds[start][0], bounds[end - 1][1]
                span |= {"start": a, "end": b, "text": text[a:b]}
                span |= {"start_token": start, "end_token": end}
            spans.append(span | {"confidence": round(p, 6)})
        found = {"tokens": one.item.words, "token_tags": one.tags, "gold": spans}
        yield json.dumps({**one.item.fields, **facts, **found}, ensure_ascii=False) + "\n"


def _labelled(tagger: Tagger, block: list[Item], found: Tagging) -> Iterator[Labelled]:
    tags = tagger.codec_.decode_complete(found.tagged)
    confidence = found.probs[range(len(found.codes)), found.codes]
    spans, mass = spans_with_confidence(found, tagger.codec_)
    at, offsets = 0, found.offsets.tolist()
    for n, item in enumerate(block):
        own = []
        while at < len(spans) and spans.item[at] == n:
            place = int(spans.start[at]) - offsets[n], int(spans.end[at]) - offsets[n]
            own.append((tagger.codec_.types[spans.type[at]], *place, float(mass[at])))
            at += 1
        yield Labelled(item, tags[n], confidence[offsets[n] : offsets[n + 1]].tolist(), own)


def _read_text(file: TextIO, name: str, rule: str) -> Iterator[Item]:
    del name
    document, number, rest = 0, 1, ""
    while chunk := file.readline(MAX_LINE):
        text, rest = rest + chunk, ""
        whole = text.endswith("\n")
        if not whole and len(chunk) == MAX_LINE:
            cut = max(text.rfind(" "), text.rfind("\t")) + 1 or len(text)
            text, rest = text[:cut], text[cut:]
        item = _of_text(text.removesuffix("\n"), rule, str(number), document)
        if item.words:
            yield item
        document += not text.strip()
        number += whole
    if rest.strip():
        yield _of_text(rest, rule, str(number), document)


def _of_text(text: str, rule: str, name: str, document: int, **more: Any) -> Item:
    bounds = tokenize(text, rule)
    return Item([text[a:b] for a, b in bounds], name, document, text, bounds, **more)


def _read_conll(file: TextIO, name: str, rule: str) -> Iterator[Item]:
    del rule  # the tokens are given
    words: list[str] = []
    document, item_id, n_items, has_documents, text = 0, "", 0, False, ""
    for number, line in _lines(file, name):
        if line.startswith("# ") and "\t" not in line:
            key, _, value = line[2:].partition("=")
            item_id = value.strip() if key.strip() in {"id", "sent_id", "item"} else item_id
            text = _own_text(value.strip()) if key.strip() == "text" else text
            continue
        cells = line.split("\t") if "\t" in line else line.split()
        if cells and cells[0] == "-DOCSTART-" and not words:
            document, has_documents = document + 1, True
            continue
        if number == 1 and len(cells) > 1 and cells[0].lower() in {"token", "word"}:
            continue
        if cells and cells[0].strip():
            words += _word_in(cells)
        elif any(cell.strip() for cell in cells):
            raise FormatError([Fault("the first column is empty", name, number)])
        elif words:
            n_items += 1
            place = document if has_documents else n_items
            yield _of_words(words, item_id or str(n_items), place, text)
            words, item_id, text = [], "", ""
    if words:
        n_items += 1
        place = document if has_documents else n_items
        yield _of_words(words, item_id or str(n_items), place, text)


def _word_in(cells: list[str]) -> list[str]:
    """Return the word of a line; none for ranges and empty nodes of CoNLL-U."""
    if len(cells) == _CONLLU and _NUMBER.fullmatch(cells[0]):
        return [cells[1].strip()] if cells[0].isdecimal() else []
    return [cells[0].strip()]


def _own_text(value: str) -> str:
    """Return the text of a comment `# text = …`: a JSON string, or as it is (CoNLL-U)."""
    with suppress(ValueError):
        found = json.loads(value)
        return found if isinstance(found, str) else value
    return value


def _of_words(words: list[str], name: str, document: int, text: str) -> Item:
    with suppress(InputError):  # not the text of these words
        if text:
            return Item(words, name, document, text, locate(text, words))
    return Item(words, name, document)


def _read_jsonl(file: TextIO, name: str, rule: str) -> Iterator[Item]:
    for number, line in _lines(file, name, most=64 * MAX_LINE):
        if not line.strip():
            continue
        try:
            fields = json.loads(line, parse_constant=lambda _: None, parse_float=finite)
        except (ValueError, RecursionError) as error:
            raise FormatError([Fault(f"this is not JSON: {error}", name, number)]) from None
        if not isinstance(fields, dict):
            raise FormatError([Fault("a line must hold an object", name, number)])
        item_id = str(fields.pop("item", fields.get("id", number)))
        words, text = fields.get("tokens"), fields.pop("text", None)
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            more = {} if text is None else {"text": text}
            yield Item(words, item_id, number, fields={**fields, **more})
        elif words is None and isinstance(text, str):
            yield _of_text(text, rule, item_id, number, fields=fields)
        else:
            message = "it needs `tokens`, a list of strings, or `text`, a string"
            raise FormatError([Fault(message, name, number)])


def finite(digits: str) -> float | None:
    """Read a number; infinity, as NaN before, is null: JSON has neither."""
    value = float(digits)
    return value if math.isfinite(value) else None


def _lines(file: TextIO, name: str, most: int = MAX_LINE) -> Iterator[tuple[int, str]]:
    number = 0
    while line := file.readline(most + 1):
        number += 1
        if len(line) > most:
            message = f"the line has more than {most} characters: this is another format"
            raise FormatError([Fault(message, name, number)])
        yield number, line.rstrip("\n")


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Turn what open files raise into errors that name the file."""
    import zlib

    try:
        yield
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not UTF-8: {error.reason} (convert it first)") from None
    except (EOFError, zlib.error) as error:
        raise InputError(f"{name} is damaged: {error}") from None
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror or error}") from None


READERS: dict[str, Callable[[TextIO, str, str], Iterator[Item]]] = {
    "text": _read_text,
    "conll": _read_conll,
    "jsonl": _read_jsonl,
}
"""The formats by name."""
