"""CoNLL columns: one token per line, a blank line between items, the tag in one column.

A crowd read from it has gold and no answers. `gold.conll` as goldspan writes it has token, offsets,
tag and, if there is one, confidence, separated by tabs:

    # id = D1
    # text = "I love Toyota's  cars."
    I	0:1	O	0.9871
    love	2:6	O	0.9990

The tag is the last column that is neither a number nor an offset, as most readers of such files
expect. A line is a comment if it starts with `# ` and is no row: `# id X` and `# id = X` name the
item. A line `-DOCSTART-` begins a document, unless it stands in an item that has a name or other
tokens, and so does `#begin document`: below it the spans of CoNLL-2012 stand in brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd.atomic import write_text
from goldspan.crowd.builder import CrowdBuilder
from goldspan.crowd.formats.columns import (
    are_offsets,
    has_texts,
    json_text,
    read_json_text,
    read_offsets,
    texts_with_offsets,
)
from goldspan.crowd.grid import MAX_CELL, cell_text, is_comment
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source
from goldspan.errors import Fault, FormatError, InputError

_DOCSTART, _BEGIN, _END = "-DOCSTART-", "#begin document", "#end document"
_ID = re.compile(r"#\s+(?:id|sent_id|item)(?:\s*=(.*)|\s+([^=\s]\S*)(?:\s.*)?)")
_TEXT = re.compile(r"# \s*text\s*=(.*)")
"""Comments that name an item, and that hold its text."""
_WORD_2012, _SPAN_2012, _LEAST_2012 = 3, 10, 12
"""Columns of the word and of the spans in CoNLL-2012, and how many it has at least."""
_BRACKETS = re.compile(r"(?:\((\w[^*()]*))?\*?(\)?)")
_N_CONLLU = 10
_NUMBER = re.compile(r"\d+(?:[-.]\d+)?")
"""The first cell of a row of CoNLL-U: the number of a word, of several, or of one left out."""


def sniff(source: Source) -> bool:
    """Return whether the first lines are a token and a tag each."""
    if source.is_folder or source.is_parquet:
        return False
    lines = [line for line in source.text.value.split("\n", 50)[:50] if line.strip()]
    if lines and lines[0].startswith(_BEGIN):
        return True
    rows = [_cells(line) for line in lines if not _is_comment(line, lines)]
    if _are_2012(rows):
        return False  # not without its first line: its last column is no tag
    widths = {len(row) for row in rows if row[0] != _DOCSTART}
    is_even = len(widths) == 1 and widths.pop() >= 2 and lines[0][0] not in "{["
    return is_even and (source.suffix in _ENDINGS or _has_signs(lines, rows))


_ENDINGS = {".conll", ".conllu", ".bio", ".iob", ".iob2", ".bioes", ".iobes", ".bilou"}
_TAG = re.compile(r"O|[BIESLUMW]-\S+|\S+[-_][BIESLU]|[BI]")


def _has_signs(lines: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether some cells are tags: a column of them, or what else only such files have."""
    signs = (_DOCSTART, "# id =", "# id ", "# text =", "# sent_id =")
    if any(line.startswith(signs) for line in lines):
        return True
    names = {cell.lower() for cell in rows[0]} if rows else set()
    if {"token", "word"} & names and {"tag", "label", "gold", "ner", "pos"} & names:
        return True
    rows = rows[1:] if len(rows) > 1 else rows  # the first may be a header
    columns = zip(*(row for row in rows if row[0] != _DOCSTART), strict=True)
    tagged = ([_TAG.fullmatch(cell) is not None for cell in cells] for cells in columns)
    return any(2 * sum(tags) > len(tags) for tags in tagged)


@dataclass
class Sentence:
    """One item of a CoNLL file."""

    rows: list[list[str]]  # Cells of every token
    lines: list[int]  # Line of every token in the file
    item_id: str = ""  # Its id, "" if none was given
    n_document: int = 0  # How many `-DOCSTART-` lines stood before it
    text: str | None = None  # What `# text =` says of it, None if nothing did


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read tokens and tags as items with gold."""
    header, sentences = read_sentences(source)
    if not sentences:
        raise FormatError([Fault("the file holds no item", file=source.name, kind="empty")])
    builder = CrowdBuilder(options, source.name, "conll")
    builder.notes += source.text.notes
    if header is None and _is_conllu(sentences):
        _check_named(source, sentences, options)
        # Leave out rows of CoNLL-U that are not a word; returns a note of how many there were
        n_left = 0
        for sentence in sentences:
            is_word = [row[0].isdigit() for row in sentence.rows]
            n_left += is_word.count(False)
            sentence.rows = list(compress(sentence.rows, is_word))
            sentence.lines = list(compress(sentence.lines, is_word))
        sentences[:] = [sentence for sentence in sentences if sentence.rows]
        what = "rows of several words (as 1-2) or of words left out (as 1.1) are not read"
        builder.notes += [f"{n_left} {what}"] if n_left else []
    if header is None and _are_2012(row for sentence in sentences for row in sentence.rows):
        for sentence in sentences:
            sentence.rows = [*_rows_2012(sentence.rows)]
    _check(source, header, sentences)
    token, tag = _find_columns(source, header, sentences, options)
    builder.notes += _other_tags(sentences, token, tag)
    offsets = _offsets_column(sentences, token, tag)
    documents = any(sentence.n_document for sentence in sentences)
    for n, sentence in enumerate(sentences, start=1):
        tags = [options.rename(row[tag]) for row in sentence.rows]
        group = f"{sentence.n_document}" if documents else None
        words = [row[token] for row in sentence.rows]
        builder.add_item(
            sentence.item_id or str(n),
            words,
            text=sentence.text,
            token_start=_starts(source, sentence, words, offsets, builder.faults),
            gold=[
                row[tag] if t is not None else None
                for row, t in zip(sentence.rows, tags, strict=True)
            ],
            group=group,
            line=sentence.lines[0],
            token_lines=sentence.lines,
        )
    return builder.build()


def write(crowd: Crowd, path: Path, *, text: bool = True) -> None:
    """Write tokens and gold, and the items' texts where they are known."""
    tags = crowd.tagset.decode(crowd.gold_tagged)
    write_text(path, conll_lines(crowd, tags, text=text))


def conll_lines(
    crowd: Crowd,
    tags: list[list[str | None]],
    confidence: NDArray[np.float32] | None = None,  # [n_tokens], a last column if given
    *,
    text: bool = True,
) -> Iterator[str]:
    """Write the lines of a `gold.conll`, one chunk per item."""
    ids, tokens = crowd.item_ids.to_pylist(), crowd.tokens_list
    bounds, shows = crowd.offsets.tolist(), text and has_texts(crowd)
    shown = texts_with_offsets(crowd) if shows else repeat((None, []), crowd.n_items)
    rows = zip(ids, tokens, tags, shown, strict=True)
    for n, (name, words, given, (whole, offsets)) in enumerate(rows):
        columns = [
            [_clean(word) for word in words],
            ["?" if tag is None else _clean(tag) for tag in given],
        ]
        if shows:
            columns.insert(1, offsets)
        if confidence is not None:
            columns.append([f"{p:.4f}" for p in confidence[bounds[n] : bounds[n + 1]].tolist()])
        lines = "".join("\t".join(row) + "\n" for row in zip(*columns, strict=True))
        said = "" if whole is None else f"# text = {json_text(whole)}\n"
        yield f"{'' if n == 0 else chr(10)}# id = {_clean(name)}\n{said}{lines}"


def read_sentences(source: Source) -> tuple[list[str] | None, list[Sentence]]:
    """Cut a file into sentences."""
    header: list[str] | None = None
    sentences: list[Sentence] = []
    current = Sentence([], [])
    n_document, name = 0, ""
    text: str | None = None
    lines = source.text.value.split("\n")
    first_rows = [line for line in lines[:_MANY] if line.strip()]
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith(_END):
            if current.rows:
                sentences.append(current)
                current, name, text = Sentence([], []), "", None
            continue
        if line[0] == "#" and _is_comment(line, first_rows):
            named, told = _ID.fullmatch(line.strip()), _TEXT.fullmatch(line)
            name = (named[1] or named[2] or "").strip() if named else name
            text = read_json_text(told[1].strip()) if told else text
            continue
        cells = _cells(line)
        if header is None and not (sentences or current.rows or name) and _is_header(cells):
            header = cells
        elif (cells[0] == _DOCSTART or line.startswith(_BEGIN)) and not (current.rows or name):
            n_document += 1
        else:
            current.rows.append(cells)
            current.lines.append(number)
            current.item_id, current.n_document = name, n_document
            current.text = text
    if current.rows:
        sentences.append(current)
    return header, sentences


def _is_header(cells: Sequence[str]) -> bool:
    """Whether a line names columns; `Word O` is a token and its tag."""
    return (
        len(cells) > 1
        and cells[0].lower() in {"token", "word", "tokens", "doc", "item", "id"}
        and any(cell.lower() in {"token", "word"} for cell in cells)
        and cells[-1] != "O"
        and cells[-1][1:2] != "-"
    )


_MANY = 50
"""Lines that are looked at to know how a row is written."""


def _is_comment(line: str, lines: Sequence[str]) -> bool:
    """Whether a line that begins with `#` is no row: it is not written as the other lines are."""
    if line.startswith((_BEGIN, _END)):
        return line.startswith(_END)
    row, cells = next((one for one in lines if one[0] != "#"), ""), _cells(line)
    names, is_tag = _ID.fullmatch(line.strip()), _TAG.fullmatch(cells[-1])
    is_alike = len(cells) == len(_cells(row)) and ("\t" in line) == ("\t" in row)
    if "\t" in line:
        may_be = bool(row) and line[1:2].isspace()
        return may_be and not (is_alike and (is_tag or not names))
    return bool(is_comment(line) or names) and not (is_alike and is_tag and "=" not in cells)


def _are_2012(rows: Iterable[Sequence[str]]) -> bool:
    """Whether these are rows of CoNLL-2012, with spans in brackets."""
    return all(
        len(row) >= _LEAST_2012
        and row[1].isdigit()
        and row[2].isdigit()
        and _BRACKETS.fullmatch(row[_SPAN_2012])
        for row in rows
    )


def _rows_2012(rows: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Yield the word and the tag of every row of CoNLL-2012."""
    inside = ""
    for row in rows:
        match = _BRACKETS.fullmatch(row[_SPAN_2012])
        opened, closed = match.groups() if match else ("", "")
        tag = f"B-{opened}" if opened else f"I-{inside}" if inside else "O"
        inside = "" if closed else opened or inside
        yield [row[_WORD_2012], tag]


def _cells(line: str) -> list[str]:
    """Split at tabs if there are some, else at white space."""
    return [cell.strip(" ") for cell in line.split("\t")] if "\t" in line else line.split()


def _check(source: Source, header: list[str] | None, sentences: list[Sentence]) -> None:
    faults = []
    width = len(header) if header else (len(sentences[0].rows[0]) if sentences else 0)
    for sentence in sentences:
        for cells, line in zip(sentence.rows, sentence.lines, strict=True):
            if len(cells) != width:
                message = f"{len(cells)} columns where the file has {width}"
                faults.append(Fault(message, source.name, line, kind="ragged-row"))
            elif not all(cells):
                faults.append(Fault("a cell is empty", source.name, line, kind="empty-cell"))
            elif max(map(len, cells)) > MAX_CELL:
                message = f"a cell longer than {MAX_CELL} characters: this is not a token or tag"
                faults.append(Fault(message, source.name, line, kind="long-cell"))
    if width < 2 and sentences:
        message = "one column only: a CoNLL file has a token and a tag on each line"
        faults = [Fault(message, file=source.name, line=sentences[0].lines[0], kind="columns")]
    if faults:
        raise FormatError(faults)


def _is_conllu(sentences: list[Sentence]) -> bool:
    """Return whether these are the rows of CoNLL-U."""
    return all(
        len(row) == _N_CONLLU and _NUMBER.fullmatch(row[0])
        for sentence in sentences
        for row in sentence.rows
    )


def _check_named(source: Source, sentences: list[Sentence], options: ReadOptions) -> None:
    """Raise `FormatError` unless the user says which columns of CoNLL-U are meant."""
    if "token" in options.columns and options.columns.keys() & {"tag", "label", "gold"}:
        return
    message = (
        "this is CoNLL-U, which has ten columns, the first with the numbers of words: name those "
        "of the token and its tag, for example the word and its part of speech, with "
        "columns={'token': '2', 'tag': '4'} (--columns token=2 --columns tag=4)"
    )
    raise FormatError([Fault(message, source.name, sentences[0].lines[0], kind="columns")])


def _find_columns(
    source: Source, header: list[str] | None, sentences: list[Sentence], options: ReadOptions
) -> tuple[int, int]:
    first = sentences[0].rows[0]
    names = [name.lower() for name in header] if header else []
    token = next((i for i, name in enumerate(names) if name in {"token", "word"}), 0)
    tag = len(first) - 1
    while tag > token + 1 and _all_numbers(sentences, tag):
        tag -= 1
    for i, name in enumerate(names):
        if name in {"gold", "tag", "label"}:
            tag = i
    found = {"token": token, "tag": tag}
    for role, wanted in options.columns.items():
        known = "tag" if role in {"tag", "label", "gold"} else role
        found[known] = _column(source, header, len(first), str(wanted))
    return found["token"], found["tag"]


def _other_tags(sentences: list[Sentence], token: int, tag: int) -> list[str]:
    """Say that columns with the tags of the one that is read are not read."""
    columns = [{*column} for column in zip(*(r for s in sentences for r in s.rows), strict=True)]
    own = {one for one in columns[tag] - {"O"} if _TAG.fullmatch(one)}
    alike = [n + 1 for n, one in enumerate(columns) if n not in {token, tag} and own & one]
    note = (
        f"columns with the same tags that are not read: {', '.join(map(str, alike))}; if each is "
        "an annotator's, put tabs between columns and a line with their names first (token, ann, "
        "bob, …), and read that with format='wide' (--format wide)"
    )
    return [note] if alike else []


def _column(source: Source, header: list[str] | None, width: int, wanted: str) -> int:
    if header and wanted in header:
        return header.index(wanted)
    if wanted.lstrip("-").isdigit():
        number = int(wanted)
        place = number - 1 if number > 0 else width + number
        if 0 <= place < width:
            return place
    has = ", ".join(header) if header else f"1 to {width}"
    raise InputError(f"{source.name}: there is no column {wanted!r}: the file has {has}")


def _offsets_column(sentences: list[Sentence], token: int, tag: int) -> int | None:
    """Find the column of offsets, which only items with a text have."""
    known = [sentence for sentence in sentences if sentence.text is not None]
    for column in range(len(sentences[0].rows[0])):
        cells = (row[column] for sentence in known for row in sentence.rows)
        if column not in {token, tag} and are_offsets(cells):
            return column
    return None


def _starts(
    source: Source,
    sentence: Sentence,
    words: Sequence[str],
    column: int | None,
    faults: list[Fault],
) -> list[int] | None:
    """Read where the tokens of an item begin; offsets that its text contradicts are faults."""
    if column is None or sentence.text is None:
        return None
    try:
        return read_offsets([row[column] for row in sentence.rows], sentence.text, words)
    except InputError as error:
        place = (source.name, sentence.lines[0], sentence.item_id)
        faults.append(Fault(str(error), *place, kind="offsets"))
        return None


def _all_numbers(sentences: list[Sentence], column: int) -> bool:
    return all(
        cell.replace(".", "", 1).replace("e-", "", 1).isdigit()
        for sentence in sentences[:50]
        for cell in (row[column] for row in sentence.rows)
    )


def _clean(text: str) -> str:
    """Tabs, line ends and blanks at the ends cannot stand in a cell, and none is empty."""
    return cell_text(text).strip(" ") or "?"
