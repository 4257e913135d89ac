"""Crowds as texts with spans: what the writers for annotation tools share.

Tags become spans of tokens, tokens become places in a text, and `losses` names what does not come
back when the file is read again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from karat.crowd.formats.char_spans import token_bounds
from karat.crowd.formats.json_records import MAX_INTEGER
from karat.crowd.formats.span_crowd import GOLD
from karat.crowd.model import Crowd, View
from karat.errors import InputError
from karat.spans import Codec, Span, Tagged, find_spans, locate, write_codes

MAX_MOMENT = 253_402_300_799_999
"""The last millisecond of the year 9999."""


@dataclass(frozen=True, eq=False)
class SpanRows:
    """Sequences of tags as spans.

    Attributes:
        spans: The spans of every sequence.
        exact: bool [n_sequences], whether they say all that the tags say, but for what was skipped;
            not so for tags that break the rules of their encoding, and for PLAIN labels.
        skipped: Tokens without a tag, as ranges, of every sequence.
    """

    spans: list[list[Span]]
    exact: NDArray[np.bool_]
    skipped: list[list[tuple[int, int]]]

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


class ItemText(NamedTuple):
    """The text that a tool shows for an item.

    Attributes:
        value: The text.
        bounds: First character of every token and one past its last.
        is_own: Whether it is the item's text, and not its tokens with blanks between.
        is_sound: Whether its tokens are found in it again.
    """

    value: str
    bounds: list[tuple[int, int]]
    is_own: bool
    is_sound: bool

    def chars(self, span: Span) -> tuple[int, int]:
        """Give the first character of a span, and one past its last."""
        return self.bounds[span.start][0], self.bounds[span.end - 1][1]


def item_texts(crowd: Crowd) -> Iterator[ItemText]:
    """Give the text of every item: its own where its tokens are found in it, else joined tokens."""
    texts = [None] * crowd.n_items if crowd.texts is None else crowd.texts.to_pylist()
    offsets = crowd.offsets.tolist()
    for n, (tokens, text) in enumerate(zip(crowd.tokens_list, texts, strict=True)):
        if text is not None:
            try:
                if crowd.token_start is None:
                    bounds = locate(text, tokens)
                else:
                    starts = crowd.token_start[offsets[n] : offsets[n + 1]].tolist()
                    bounds = token_bounds(text, tokens, starts)
                yield ItemText(text, bounds, is_own=True, is_sound=True)
                continue
            except InputError:
                pass
        joined = " ".join(tokens)
        ends = np.cumsum([len(token) + 1 for token in tokens]).tolist()
        bounds = [(end - 1 - len(t), end - 1) for t, end in zip(tokens, ends, strict=True)]
        yield ItemText(joined, bounds, is_own=False, is_sound=_is_found(joined, tokens, bounds))


def all_answers(crowd: Crowd) -> list[list[int]]:
    """Give the answers of every item, every attempt of them, by attempt."""
    attempts = crowd.answers.attempt
    view = View.of(crowd.answers.item, crowd.n_items)
    rows = [view[n] for n in range(crowd.n_items)]
    return [row[np.argsort(attempts[row], kind="stable")].tolist() for row in rows]


def answer_rows(crowd: Crowd) -> SpanRows:
    """Give the spans of all answers."""
    return SpanRows.of(Tagged(crowd.answers.codes, crowd.answers.offset), crowd.tagset)


def gold_rows(crowd: Crowd) -> SpanRows:
    """Give the spans of the gold; all tokens are skipped where the crowd has none."""
    none = np.full(crowd.n_tokens, -1, np.int16)
    return SpanRows.of(
        Tagged(none if crowd.gold is None else crowd.gold, crowd.offsets), crowd.tagset
    )


def attribute_rows(crowd: Crowd) -> list[dict[str, Any]]:
    """Give the attributes of every item as JSON values."""
    if crowd.attributes is None:
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
    """Give the codes in one tag set of the tags of another, int16 [V + 1]; the last is no tag."""
    return np.array([*(target.index.get(tag, -1) for tag in source.tags), -1], np.int16)


def dump(value: Any) -> str:
    """Write a value as one line of JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def refuse_gold_worker(crowd: Crowd) -> None:
    """Refuse a worker whose name means gold where the file is read.

    Raises:
        InputError: There is one.
    """
    if GOLD in crowd.worker_ids.to_pylist():
        raise InputError(f"a worker is called {GOLD!r}, which this format reads as gold: rename it")


def losses(crowd: Crowd, holds: Collection[str]) -> list[str]:
    """Name what of a crowd does not come back from a text with spans.

    Args:
        crowd: The crowd.
        holds: What the format has a place for: "groups", "attributes", "tokens", "silence" (an
            answer without a label, for items with a single label), "attempts", "started",
            "submitted".
    """
    lost = [*_lost_tags(crowd, holds), *_lost_gold(crowd)]
    lost += [*_lost_answers(crowd, holds), *_lost_texts(crowd, holds)]
    if not crowd.n_items:
        lost.append("a crowd without items (it is refused when it is read)")
    if crowd.groups is not None and "groups" not in holds:
        lost.append("the documents of items")
    if crowd.groups is not None and crowd.groups.null_count == crowd.n_items:
        lost.append("a column of documents without a value")
    if crowd.attributes is not None:
        if "attributes" not in holds or not crowd.attributes.num_columns:
            lost.append("attributes of items")
        elif attribute_rows(crowd) != crowd.attributes.to_pylist():
            lost.append("attributes that JSON has no value for (dates become text, infinity null)")
    return lost


def _lost_tags(crowd: Crowd, holds: Collection[str]) -> Iterator[str]:
    codec, said, known = crowd.tagset, answer_rows(crowd), gold_rows(crowd)
    used = {span.type for row in [*said.spans, *known.spans] for span in row}
    if not codec.rules.is_plain:
        if codec.encoding != "BIO":
            yield f"the encoding {codec.encoding} (read it back with encoding={codec.encoding!r})"
        n_bad = int((~said.exact).sum() + (~known.exact).sum())
        if n_bad:
            yield f"{n_bad} sequences of tags that break the rules of {codec.encoding}"
    elif not crowd.is_classification:
        yield "single labels of items of several tokens (they become spans)"
    elif not used:
        yield "the encoding (there is no label that shows it)"
    if set(codec.tags) != set(Codec.from_types(used, codec.encoding).tags):
        yield "tags that nobody used"
    if any(said.skipped) and not (crowd.is_classification and "silence" in holds):
        yield "tokens that a worker skipped"


def _lost_gold(crowd: Crowd) -> Iterator[str]:
    if crowd.gold is None:
        return
    sizes = np.diff(crowd.offsets).tolist()
    unknown = zip(gold_rows(crowd).skipped, sizes, strict=True)
    if any(row and row != [(0, n)] for row, n in unknown):
        yield "gold that is known for a part of an item only"
    if (crowd.gold < 0).all():
        yield "a gold column without a tag"


def _lost_answers(crowd: Crowd, holds: Collection[str]) -> Iterator[str]:
    answers = crowd.answers
    if len(np.unique(answers.worker)) < crowd.n_workers:
        yield "workers without answers"
    if answers.attempt.any() and not ("attempts" in holds and _are_counted(crowd)):
        yield "the numbers of repeated answers" if "attempts" in holds else "repeated answers"
    for name in ("started", "submitted", "cost"):
        column = getattr(answers, name)
        if column is None:
            continue
        if name not in holds:
            yield {"cost": "costs of answers"}.get(name, f"when answers were {name}")
        elif (column < 0).all():
            yield f"a column {name!r} without a value"
        elif (column > MAX_MOMENT).any():
            yield "times beyond the year 9999"
    if "started" in holds and answers.started is not None:
        ends = answers.submitted
        if ends is None or ((answers.started >= 0) & (ends < 0)).any():
            yield "when answers were started of which it is not known when they were submitted"


def _lost_texts(crowd: Crowd, holds: Collection[str]) -> Iterator[str]:
    shown = list(item_texts(crowd))
    texts = [None] * crowd.n_items if crowd.texts is None else crowd.texts.to_pylist()
    if any(text is not None and not one.is_own for text, one in zip(texts, shown, strict=True)):
        yield "texts in which the tokens are not found"
    if not all(one.is_sound for one in shown):
        yield "tokens that begin or end with white space"
    if "tokens" not in holds:
        return
    if crowd.token_start is not None:
        if not all(one.is_own for one in shown):
            yield "places of tokens in texts that are not known"
    elif any(t == " ".join(w) for t, w in zip(texts, crowd.tokens_list, strict=True)):
        yield "texts that are only the tokens with blanks between"
    if crowd.texts is not None and crowd.texts.null_count == crowd.n_items:
        yield "a column of texts without a value"


def _are_counted(crowd: Crowd) -> bool:
    """Whether the attempts of every worker and item run from 0 without a gap."""
    answers = crowd.answers
    order = np.lexsort((answers.attempt, answers.worker, answers.item))
    item, worker = answers.item[order], answers.worker[order]
    same = (item[1:] == item[:-1]) & (worker[1:] == worker[:-1])
    attempt = answers.attempt[order].astype(np.int64)
    expected = np.zeros_like(attempt)
    expected[1:] = np.where(same, attempt[:-1] + 1, 0)
    return bool((attempt == expected).all())


def _is_found(text: str, tokens: list[str], bounds: list[tuple[int, int]]) -> bool:
    try:
        return locate(text, tokens) == bounds and bool(text.strip())
    except InputError:
        return False


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
