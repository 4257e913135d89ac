"""Crowds as texts with spans of characters: what the writers for annotation tools share."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd.formats.char_spans import CharSpan
from goldspan.crowd.formats.json_records import MAX_INTEGER
from goldspan.crowd.formats.span_crowd import GOLD, GOLD_NAMES
from goldspan.crowd.layers import by_whole
from goldspan.crowd.model import YES, Crowd, ItemText, View, item_texts
from goldspan.errors import InputError
from goldspan.spans import Codec, Span, Tagged, find_spans, tokenize
from goldspan.spans.corpus import write_codes

MAX_MOMENT = 253_402_300_799_999
"""The last millisecond of the year 9999."""
PREDICTED_BY = "goldspan"
"""Who annotated labels that nobody confirmed, in formats of other tools."""
PREDICTED = "predicted"
"""The field that marks such labels; it holds their confidence."""


@dataclass(frozen=True, eq=False)
class SpanRows:
    """Sequences of tags as spans."""

    spans: list[list[Span]]  # The spans of every sequence
    exact: NDArray[np.bool_]  # [n_sequences]
    skipped: list[list[tuple[int, int]]]  # Tokens without a tag, as ranges, of every sequence

    @classmethod
    def of(cls, tagged: Tagged, codec: Codec) -> SpanRows:
        """Read the spans of many sequences at once."""
        full = Codec.from_types(codec.types, codec.encoding)
        codes, offsets = np.asarray(code_table(codec, full)[tagged.codes]), tagged.offsets
        n_rows = len(offsets) - 1
        found = find_spans(Tagged(codes, offsets), full)
        exact = np.ones(n_rows, np.bool_)
        if codec.rules.is_plain:
            exact[:] = False
        else:
            wrong = np.flatnonzero((write_codes(found, offsets, full) != codes) & (codes >= 0))
            exact[np.searchsorted(offsets, wrong, side="right") - 1] = False
        spans: list[list[Span]] = [[] for _ in range(n_rows)]
        base = offsets[found.item]
        columns = (found.item, found.type, found.start - base, found.end - base)
        for row, kind, start, end in zip(*(column.tolist() for column in columns), strict=True):
            spans[row].append(Span(full.types[kind], start, end))
        return cls(spans, exact, _ranges(codes < 0, offsets))


def chars_of(text: ItemText, spans: Iterable[Span]) -> list[CharSpan]:
    """Turn spans of tokens into spans of characters of a text."""
    return [CharSpan(k, text.bounds[a][0], text.bounds[b - 1][1]) for k, a, b in spans]


@dataclass(frozen=True, eq=False)
class SoftLabels:
    """What a method says of a crowd's gold beyond the labels; see `Consensus.soft`."""

    token_probs: NDArray[np.float32] | None  # [n_tokens, n_labels]
    span_confidence: NDArray[np.float32]  # [n_spans], of the spans of the gold in order
    confidence: NDArray[np.float32] | None = None  # [n_items], that all labels of an item are right
    method: str = ""  # Name of the method or model; "" where not known

    def by_item(self, crowd: Crowd) -> list[list[float]]:
        """Return the confidences of the gold's spans of every item."""
        rows = gold_rows(crowd).spans
        if sum(map(len, rows)) != len(self.span_confidence):
            n = sum(map(len, rows))
            raise InputError(f"{len(self.span_confidence)} confidences for {n} spans of the gold")
        sure = iter(np.round(self.span_confidence.astype(np.float64), 4).tolist())
        return [[next(sure) for _ in row] for row in rows]

    def of_item(self, n: int) -> float | None:
        """Return the confidence of an item."""
        if self.confidence is None or not np.isfinite(self.confidence[n]):
            return None
        return round(float(self.confidence[n]), 4)

    def lost(self, crowd: Crowd) -> list[str]:
        """Name what a format without a place for confidences loses."""
        n, what = len(self.span_confidence), "label" if crowd.tagset.rules.is_plain else "span"
        return [f"the confidence of {n:,} {what}{'' if n == 1 else 's'}"] if n else []


class ItemRow(NamedTuple):
    """An item as a tool shows it."""

    number: int  # Of the item in the crowd, or of its first part
    id: str
    group: str | None
    text: ItemText
    # The text, and tokens and their places where these do not follow from it
    fields: dict[str, Any]
    attributes: dict[str, Any]  # As JSON values
    gold: list[CharSpan] | None  # What is known
    # Number, worker and spans of every answer, by attempt
    answers: list[tuple[int, str, list[CharSpan]]]
    is_predicted: bool = False  # Whether nobody confirmed what is known
    score: float | None = None  # The confidence of what is known; None where it has none
    sure: list[float] | None = None  # The confidence of every span of what is known

    @property
    def gold_by(self) -> str:
        """Who annotated what is known."""
        return PREDICTED_BY if self.is_predicted else GOLD

    @property
    def mark(self) -> dict[str, Any]:
        """The field that marks labels that nobody confirmed."""
        return {PREDICTED: self.score} if self.is_predicted else {}


def item_rows(
    crowd: Crowd, predicted: Mapping[str, float] | None = None, soft: SoftLabels | None = None
) -> Iterator[ItemRow]:
    """Yield the items of a crowd with all that is said of them, in characters of their texts."""
    # `predicted` has the confidence of items whose gold nobody confirmed, `soft` that of its spans
    parts = _part_rows(crowd, predicted, soft)
    if crowd.wholes is None:
        yield from parts
        return
    attempts = crowd.answers.attempt.tolist()
    for whole, rows in by_whole(crowd, parts):
        named = rows if not crowd.is_classification else [
            (part, _with_label(row, part)) for part, row in rows
        ]  # fmt: skip
        yield _whole_row(whole, [row for _, row in named], attempts)


def _with_label(row: ItemRow, label: str) -> ItemRow:
    """Return a label in the place of yes, and nothing in the place of no."""
    sure = zip(row.gold or (), row.sure or (), strict=False)
    return row._replace(
        gold=None if row.gold is None else _named(row.gold, label),
        sure=None if row.sure is None else [p for span, p in sure if span.type == YES],
        answers=[(a, worker, _named(spans, label)) for a, worker, spans in row.answers],
    )


def _named(spans: Iterable[CharSpan], label: str) -> list[CharSpan]:
    return [span._replace(type=label) for span in spans if span.type == YES]


def labels_asked(crowd: Crowd) -> list[str]:
    """Return the labels among which annotators choose."""
    if crowd.parts is None:
        return list(crowd.tagset.tags)
    return list(crowd.parts.unique().to_pylist())


def _whole_row(whole: str, rows: Sequence[ItemRow], attempts: Sequence[int]) -> ItemRow:
    """Put the parts of an item together."""
    known = [row for row in rows if row.gold is not None]
    scores = [row.score for row in rows if row.score is not None]
    sure = [row.sure or [0.0] * len(row.gold or ()) for row in known]
    every = [(span, p) for row, own in zip(known, sure, strict=True)
             for span, p in zip(row.gold or (), own, strict=True)]  # fmt: skip
    most: dict[CharSpan, float] = {}
    for span, p in sorted(every, key=lambda pair: (pair[0][1], -pair[0][2], pair[0][0])):
        most[span] = max(p, most.get(span, 0.0))
    answers: dict[tuple[str, int], tuple[int, set[CharSpan]]] = {}
    for row in rows:
        for a, worker, spans in row.answers:
            answers.setdefault((worker, attempts[a]), (a, set()))[1].update(spans)
    return rows[0]._replace(
        id=whole,
        gold=[*most] if known else None,
        sure=[*most.values()] if known and known[0].sure is not None else None,
        is_predicted=any(row.is_predicted for row in rows),
        score=round(math.prod(scores), 4) if scores else None,
        answers=[
            (a, worker, sorted(spans, key=lambda span: (span[1], -span[2], span[0])))
            for (worker, _), (a, spans) in answers.items()
        ],
    )


def _part_rows(
    crowd: Crowd, predicted: Mapping[str, float] | None, soft: SoftLabels | None
) -> Iterator[ItemRow]:
    scores = predicted or {}
    sure = None if soft is None else soft.by_item(crowd)
    said, known = answer_rows(crowd), gold_rows(crowd)
    listed, attributes = all_answers(crowd), attribute_rows(crowd)
    ids, workers = crowd.item_ids.to_pylist(), crowd.worker_ids.to_pylist()
    groups = [None] * crowd.n_items if crowd.groups is None else crowd.groups.to_pylist()
    bounds = crowd.offsets.tolist()
    for n, text in enumerate(item_texts(crowd)):
        tokens, place = crowd.tokens_list[n], slice(bounds[n], bounds[n + 1])
        fields: dict[str, Any] = {"text": text.value}
        if not _follow(crowd, text, tokens):
            fields["tokens"] = tokens
            # A reader takes a text that is only the tokens with blanks between for one made up,
            # unless it says where they begin.
            if text.is_own and (crowd.token_start is not None or text.value == " ".join(tokens)):
                fields["token_start"] = [start for start, _ in text.bounds]
        is_known = crowd.gold is not None and bool((crowd.gold[place] >= 0).any())
        gold = chars_of(text, known.spans[n]) if is_known else None
        answers = [
            (a, workers[crowd.answers.worker[a]], chars_of(text, said.spans[a])) for a in listed[n]
        ]
        row = ItemRow(n, ids[n], groups[n], text, fields, attributes[n], gold, answers)
        if is_known and soft is not None and sure is not None:
            row = row._replace(sure=sure[n], score=soft.of_item(n))
        if is_known and row.id in scores:
            score = as_json(round(float(scores[row.id]), 4))
            row = row._replace(is_predicted=True, score=score)
        yield row


def all_answers(crowd: Crowd) -> list[list[int]]:
    """Return the answers of every item, every attempt of them, by attempt."""
    attempts = crowd.answers.attempt
    view = View.of(crowd.answers.item, crowd.n_items)
    rows = [view[n] for n in range(crowd.n_items)]
    return [row[np.argsort(attempts[row], kind="stable")].tolist() for row in rows]


def answer_rows(crowd: Crowd) -> SpanRows:
    """Return the spans of all answers."""
    return SpanRows.of(Tagged(crowd.answers.codes, crowd.answers.offset), crowd.tagset)


def gold_rows(crowd: Crowd) -> SpanRows:
    """Return the spans of the gold; all tokens are skipped where the crowd has none."""
    none = np.full(crowd.n_tokens, -1, np.int16)
    return SpanRows.of(
        Tagged(none if crowd.gold is None else crowd.gold, crowd.offsets), crowd.tagset
    )


def attribute_rows(crowd: Crowd) -> list[dict[str, Any]]:
    """Return the attributes of every item as JSON values."""
    if crowd.attributes is None or not crowd.attributes.num_columns:
        return [{} for _ in range(crowd.n_items)]
    return [
        {name: as_json(value) for name, value in row.items()}
        for row in crowd.attributes.to_pylist()
    ]


def beside(attributes: dict[str, Any], taken: Collection[str]) -> dict[str, Any]:
    """Put attributes beside the fields of a format; those whose names are taken, in an object."""
    clash = {name: value for name, value in attributes.items() if name in taken}
    free = {name: value for name, value in attributes.items() if name not in taken}
    return {**free, "attributes": clash} if clash else free


def as_json(value: Any) -> Any:
    """Turn a value into one that JSON holds; dates and the like become text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= MAX_INTEGER else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [as_json(one) for one in value]
    if isinstance(value, dict):
        return {str(key): as_json(one) for key, one in value.items()}
    return str(value)


def code_table(source: Codec, target: Codec) -> NDArray[np.int16]:
    """Return the codes in one tag set of the tags of another, int16 [V + 1]; the last is -1."""
    return np.array([*(target.index.get(tag, -1) for tag in source.tags), -1], np.int16)


def dump(value: Any) -> str:
    """Write a value as one line of JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def array_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Write objects as a JSON array, one per line."""
    mark = "["
    for row in rows:
        yield f"{mark}\n{dump(row)}"
        mark = ","
    yield "[]\n" if mark == "[" else "\n]\n"


def submitted(crowd: Crowd, a: int) -> int:
    """Return when an answer was given, in milliseconds; -1 where no file of a tool can say it."""
    column = crowd.answers.submitted
    moment = -1 if column is None else int(column[a])
    return moment if 0 <= moment <= MAX_MOMENT else -1


def is_prediction(worker: str | None, record: Mapping[str, Any]) -> bool:
    """Return whether a record holds labels that goldspan wrote as predicted."""
    return worker == PREDICTED_BY and PREDICTED in record


def model_version(soft: SoftLabels | None) -> str:
    """Return how tools call what predicted: goldspan, and the method where it is known."""
    return f"{PREDICTED_BY} {soft.method}" if soft is not None and soft.method else PREDICTED_BY


def reject_single(crowd: Crowd, what: str) -> None:
    """Reject labels that are no spans: single ones, and PLAIN tags of tokens."""
    if crowd.tagset.rules.is_plain:
        kind = "single labels" if crowd.is_classification else "plain tags of tokens"
        raise InputError(f"{what} spans, and these are {kind}: write another format, such as long")


def reject_gold_worker(crowd: Crowd) -> None:
    """Reject a worker whose name means gold where the file is read."""
    named = sorted(GOLD_NAMES & set(crowd.worker_ids.to_pylist()))
    if named:
        raise InputError(f"worker {named[0]!r} would be read as gold from this format: rename it")


def _follow(crowd: Crowd, text: ItemText, tokens: list[str]) -> bool:
    """Whether the tokens follow from the text when it is read."""
    if crowd.is_classification:
        # Fields that name a token which the text does not have would be rejected.
        start, end = text.bounds[0]
        return not text.is_own or text.value[start:end] != tokens[0]
    return (
        text.is_own
        and crowd.token_start is not None
        and text.bounds == tokenize(text.value, "fine")
    )


def _ranges(flags: NDArray[np.bool_], offsets: NDArray[np.int64]) -> list[list[tuple[int, int]]]:
    """Runs of flagged tokens in every sequence."""
    first = np.zeros(len(flags) + 1, np.bool_)
    first[offsets] = True
    before = np.concatenate([[False], flags])[:-1]
    after = np.concatenate([flags, [False]])[1:]
    starts = np.flatnonzero(flags & (first[:-1] | ~before))
    stops = np.flatnonzero(flags & (first[1:] | ~after)) + 1
    where = np.searchsorted(offsets, starts, side="right") - 1
    rows: list[list[tuple[int, int]]] = [[] for _ in range(len(offsets) - 1)]
    for row, start, stop in zip(where.tolist(), starts.tolist(), stops.tolist(), strict=True):
        rows[row].append((start - int(offsets[row]), stop - int(offsets[row])))
    return rows
