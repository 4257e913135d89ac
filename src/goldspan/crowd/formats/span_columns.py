"""Span JSONL in columns: the short way for files of which no line needs a second look.

Arrow reads such a file into columns, and spans are placed all at once. Where anything is unusual –
a field that is not named here, a span within a token, spans that overlap, a mistake – nothing is
read, and `span_jsonl` goes through the file record by record, decides, and words what is wrong.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from numpy.typing import NDArray

from goldspan.crowd.builder import CrowdBuilder
from goldspan.crowd.formats.char_spans import Cut
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Progress, Source
from goldspan.spans import Codec
from goldspan.spans.corpus import SpanArray, write_codes
from goldspan.spans.encoding import get_encoding

Indexes = NDArray[np.int64]

_SPAN = pa.struct(
    [("type", pa.string()), ("start", pa.int64()), ("end", pa.int64()), ("text", pa.string())]
)
_NUMBERS = ("attempt", "started", "submitted", "cost")
_ANSWER = [
    ("worker", pa.string()), ("spans", pa.list_(_SPAN)), *((name, pa.int64()) for name in _NUMBERS),
]  # fmt: skip
_SCHEMA = pa.schema(
    [
        *(("item", pa.string()), ("text", pa.string()), ("doc", pa.string())),
        *(("tokens", pa.list_(pa.string())), ("token_start", pa.list_(pa.int64()))),
        ("answers", pa.list_(pa.struct(_ANSWER))),
        *_ANSWER,
    ]
)
"""The fields of an item, or of one worker's answer to it. Arrow refuses others, values of other
types and a key that an object has twice."""
_NEED_CARE = ((b"null", re.compile(rb":\s*null")), (b"\\u", re.compile(rb"\\u[dD][89a-fA-F]")))
"""Fields that are there and say nothing, and what may be half of a surrogate pair."""
_BLOCK = 1 << 24
"""Bytes that are read at a time; longer lines are not read in columns."""
MOST_ATTEMPTS = 2**15 - 1


class NeedsCareError(Exception):
    """Something in the file is not usual."""


@dataclass(frozen=True, eq=False)
class Said:
    """Answers and their spans."""

    row: Indexes  # int64 [n_answers], row of the item, and line of the answer
    worker: pa.Array  # Who answered, [n_answers]
    numbers: list[pa.Array]  # Other facts about the answers, [n_answers] each
    answer: Indexes  # int64 [n_spans], answer of every span
    kind: pa.Array  # Types of the spans, [n_spans]
    start: Indexes  # int64 [n_spans], as the file counts
    end: Indexes  # int64 [n_spans]
    covers: pa.Array  # Text that a span is said to cover, null where nothing is said, [n_spans]


def read_rows(data: bytes) -> pa.Table:
    """Read lines into a table of one row per line."""
    how = pj.ParseOptions(explicit_schema=_SCHEMA, unexpected_field_behavior="error")
    _need(not any(word in data and pattern.search(data) for word, pattern in _NEED_CARE))
    try:
        blocks = pj.ReadOptions(use_threads=False, block_size=_BLOCK)
        rows = pj.read_json(io.BytesIO(data), read_options=blocks, parse_options=how)
    except (pa.ArrowException, UnicodeDecodeError):
        raise NeedsCareError from None
    n_lines = data.count(b"\n") + (not data.endswith(b"\n"))
    _need(n_lines == len(rows) > 0)  # else a line is blank, or holds two objects
    return rows.combine_chunks()


def answers_of(rows: pa.Table) -> Said:
    """Take the answers out of the rows: one in each, or a list."""
    listed, worker = _column(rows, "answers"), _column(rows, "worker")
    if listed.null_count == len(rows):
        row = np.arange(len(rows))
        fields = {name: _column(rows, name) for name, _ in _ANSWER}
    else:
        own = [_column(rows, name) for name, _ in _ANSWER]
        _need(listed.null_count == 0 and all(one.null_count == len(rows) for one in own))
        row, answers = _flat(listed)
        fields = dict(zip((name for name, _ in _ANSWER), answers.flatten(), strict=True))
    worker = fields["worker"]
    _need_names(worker)
    answer, spans = _flat(fields["spans"])
    kind, start, end, covers = spans.flatten()
    _need_names(kind)
    _need(start.null_count == end.null_count == 0)
    numbers = [fields[name] for name in _NUMBERS]
    for one, high in zip(numbers, (MOST_ATTEMPTS, *repeat(2**63 - 1, 3)), strict=True):
        least, most = pc.min_max(one).values()
        _need(not least.is_valid or 0 <= least.as_py() <= most.as_py() <= high)
    found = start.to_numpy(), end.to_numpy()
    _need(bool((found[0] >= 0).all() and (found[0] < found[1]).all()))
    return Said(row, worker, numbers, answer, kind, *found, covers)


def item_of_rows(rows: pa.Table) -> tuple[NDArray[np.int32], Indexes]:
    """Number the items in the order of the file."""
    # returns int32 [n_rows]
    names = _column(rows, "item")
    _need_names(names)
    item = names.dictionary_encode().indices.to_numpy()
    _, first = np.unique(item, return_index=True)
    if len(first) < len(rows):
        # Items of several lines: all of them have to show the same text, and no tokens.
        _need(_column(rows, "answers").null_count == len(rows))
        _need(_column(rows, "tokens").null_count == len(rows))
        text = _column(rows, "text")
        _need(text.null_count == 0)
        which = text.dictionary_encode().indices.to_numpy()
        _need(bool((which == which[first][item]).all()))
    return item, first


def places_of(
    said: Said, item: NDArray[np.int32], cuts: Sequence[Cut], unit: str
) -> tuple[Indexes, ...]:
    """Return first token and last token + 1 of every span, counted over all items from 0."""
    if unit == "token":
        _need(said.covers.null_count == len(said.covers))
        sizes = np.array([len(cut.tokens) for cut in cuts])
        base = np.concatenate([[0], np.cumsum(sizes)])
        own = item[said.row[said.answer]]
        _need(bool((said.end <= sizes[own]).all()))
        begin, stop = said.start + base[own], said.end + base[own]
    else:
        given = [cut for cut in cuts if cut.is_given]
        _need(unit == "char" and all(cut.text is not None for cut in cuts))
        _need(not any(token != token.strip() for cut in given for token in cut.tokens))
        begin, stop = _by_text(said, item, cuts)
    order = np.lexsort((begin, said.answer))
    same = said.answer[order][1:] == said.answer[order][:-1]
    _need(not (same & (stop[order][:-1] > begin[order][1:])).any())
    return begin, stop


def _by_text(said: Said, item: NDArray[np.int32], cuts: Sequence[Cut]) -> tuple[Indexes, ...]:
    """Find spans of code points: all texts are laid end to end, and looked up in one table."""
    lengths = np.array([len(cut.text or "") + 1 for cut in cuts])
    base = np.concatenate([[0], np.cumsum(lengths)])
    sizes = np.array([len(cut.bounds) for cut in cuts])
    shift = np.repeat(base[:-1], sizes)
    bounds = np.array([place for cut in cuts for pair in cut.bounds for place in pair], np.int64)
    starts, stops = np.append(bounds[::2] + shift, -1), np.append(bounds[1::2] + shift, -1)
    own = item[said.row[said.answer]]
    _need(bool((said.end < lengths[own]).all()))
    first, last = said.start + base[own], said.end + base[own]
    begin, stop = np.searchsorted(starts[:-1], first), np.searchsorted(stops[:-1], last)
    _need(bool((starts[begin] == first).all() and (stops[stop] == last).all()))
    for n in np.flatnonzero(said.covers.is_valid().to_numpy(zero_copy_only=False)).tolist():
        text = cuts[own[n]].text or ""
        _need(text[said.start[n] : said.end[n]] == said.covers[n].as_py())
    return begin, stop + 1


def build(
    source: Source, options: ReadOptions, said: Said, item: NDArray[np.int32],
    items: Sequence[dict[str, Any]], places: tuple[Indexes, ...], workers: Sequence[str],
    first_line: int,
) -> Crowd:  # fmt: skip
    """Make the crowd."""
    n_lines = first_line + int(said.row.max(initial=-1))
    told = Progress(options.progress, n_lines)
    builder = CrowdBuilder(options, source.name, "spans")
    builder.notes += source.text.notes
    for one in items:
        told.at(one["line"])
        builder.add_item(**one)
    for worker in (*workers, *said.worker.unique().to_pylist()):
        builder.add_worker(worker)
    sizes = np.array([len(one["tokens"]) for one in items])
    base = np.concatenate([[0], np.cumsum(sizes)])
    # Answers stand in the order of items; who answered an item twice did so in this order.
    own = item[said.row]
    order = np.argsort(own, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(sizes[own[order]])])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    which = rank[said.answer]
    shift = offsets[:-1][which] - base[:-1][own[said.answer]]
    start, end = places[0] + shift, places[1] + shift
    kinds, rules = said.kind.dictionary_encode(), get_encoding(options.encoding or "BIO")
    codec = Codec.from_types(kinds.dictionary.to_pylist(), rules)
    number = np.array([codec.types.index(kind) for kind in kinds.dictionary.to_pylist()], np.int16)
    spans = SpanArray(
        start, end, number[kinds.indices.to_numpy()] if len(start) else np.zeros(0, np.int16),
        which.astype(np.int32), np.zeros(len(start), np.int32),
    )  # fmt: skip
    turn = pa.array(order)
    builder.add_answers(
        own[order],
        said.worker.take(turn).to_pylist(),
        codec.tags,
        write_codes(spans, offsets, codec),
        lines=(said.row[order] + first_line).tolist(),
        numbers=[one.take(turn).to_pylist() for one in said.numbers],
    )
    crowd = builder.build()
    told.at(n_lines)
    return crowd


def _need(is_usual: bool) -> None:
    if not is_usual:
        raise NeedsCareError


def _need_names(names: pa.Array) -> None:
    _need(names.null_count == 0 and not pc.any(pc.equal(pc.binary_length(names), 0)).as_py())


def _column(rows: pa.Table, name: str) -> pa.Array:
    found = rows.column(name)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _flat(lists: pa.Array) -> tuple[Indexes, pa.Array]:
    """Return the row of every member of some lists, and the members; none may be null."""
    _need(lists.null_count == 0)
    members = lists.flatten()
    _need(members.null_count == 0)
    return np.repeat(np.arange(len(lists)), lists.value_lengths().to_numpy()), members
