"""The layers of a task: the questions about an item that are answered together.

An answer is a mapping from the name of a layer to what was answered: spans (`{"start": 0, "end": 2,
"type": "PER"}`, in tokens; `from_char` and `to_char` where one begins or ends within a token), a
label, a list of labels, or None where a question was left out. The store keeps answers so, pages
send them so, and `crowds_of` makes a crowd of every layer.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd.io import read_crowd
from goldspan.crowd.layers import ask_each, units_of, whole_index
from goldspan.crowd.model import Crowd
from goldspan.errors import InputError
from goldspan.spans import Codec, Tagged
from goldspan.spans.encoding import PartSpan
from goldspan.spans.parts import check_cuts, write_parts

Answer = Mapping[str, Any]
"""What was answered, by the name of the layer."""
ENCODING = "BIO"
"""Of the tags of a layer of spans."""


@dataclass(frozen=True)
class Question:
    """A layer: one question about an item."""

    name: str
    kind: Literal["spans", "label", "labels"]  # "label": one of the names; "labels": any number
    names: tuple[str, ...]  # Types of spans, or labels; of an ordinal layer from least to most
    overlapping: bool = False  # Whether spans may overlap
    ordinal: bool = False  # Whether the labels are levels of a scale
    required: bool = True  # Whether a label must be chosen; spans may always be none

    def clean(self, given: Any, n_tokens: int, words: Sequence[str] | None = None) -> Any:
        """Return an answer in the form in which it is kept.

        Raises:
            InputError: It is none; the message says why.
        """
        if self.kind == "spans":
            return self._spans(given, n_tokens, words)
        chosen = [] if given is None else given if self.kind == "labels" else [given]
        if not isinstance(chosen, list):
            raise InputError(f"give a list of labels, not {given!r:.60}")
        self._check(chosen)
        if self.required and not chosen:
            raise InputError(f"choose one of {', '.join(self.names)}")
        if self.kind == "label":
            return given
        return [name for name in self.names if name in chosen]

    def _spans(self, given: Any, n_tokens: int, words: Sequence[str] | None) -> Any:
        if not isinstance(given, list):
            raise InputError(f"give a list of spans, not {given!r:.60}")
        spans = [span_of(one) for one in given]
        self._check([one.type for one in spans])
        for one in spans:
            write_parts([one], n_tokens, ENCODING)
        if words is not None:
            check_cuts(spans, words)
        if not self.overlapping:
            write_parts(spans, n_tokens, ENCODING)
        return self.of(set(spans))

    def _check(self, chosen: Iterable[Any]) -> None:
        for one in chosen:
            if not isinstance(one, str) or one not in self.names:
                raise InputError(f"{one!r:.60} is not one of {', '.join(self.names)}")

    def of(self, found: Collection[PartSpan]) -> Any:
        """Return what was found, as `units` gives it, in the form of an answer."""
        if self.kind == "spans":
            order = sorted(found, key=lambda one: (one.start, one.from_char, -one.end, one.type))
            return [shown_span(one) for one in order]
        chosen = [name for name in self.names if any(one.type == name for one in found)]
        return chosen if self.kind == "labels" else next(iter(chosen), None)

    @property
    def codec(self) -> Codec:
        """The tags of a flat crowd of the layer."""
        return Codec.from_types(self.names, ENCODING if self.kind == "spans" else "PLAIN")


@dataclass(frozen=True)
class Questions:
    """The layers of a task; a store keeps them in the place of tags and encoding."""

    each: tuple[Question, ...]
    encoding: ClassVar[str] = "layers"

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Questions:
        """Read what `tags` gives."""
        return cls(tuple(Question(**{**row, "names": tuple(row["names"])}) for row in rows))

    @property
    def tags(self) -> tuple[dict[str, Any], ...]:
        """Every layer as plain values."""
        return tuple({**asdict(one), "names": [*one.names]} for one in self.each)

    @property
    def index(self) -> tuple[dict[str, Any], ...]:
        """What the store asks whether something is in it."""
        return self.tags

    @property
    def types(self) -> tuple[str, ...]:
        """The names of the layers."""
        return tuple(one.name for one in self.each)

    @property
    def has_spans(self) -> bool:
        """Whether a layer has spans."""
        return any(one.kind == "spans" for one in self.each)

    def clean(
        self, given: Any, n_tokens: int, words: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Return an answer in the form in which it is kept, with every layer in their order.

        Raises:
            InputError: It is none; the message names the layer.
        """
        if not isinstance(given, Mapping):
            raise InputError(
                f"give an answer to each of {', '.join(self.types)}, not {given!r:.60}"
            )
        unknown = [name for name in given if name not in self.types]
        if unknown:
            raise InputError(f"{unknown[0]!r:.60} is not one of {', '.join(self.types)}")
        found = {}
        for one in self.each:
            try:
                found[one.name] = one.clean(given.get(one.name), n_tokens, words)
            except InputError as error:
                raise InputError(f"{one.name}: {error.message}") from None
        return found

    def majority(self, given: Sequence[Answer], *, complete: bool = False) -> dict[str, Any]:
        """Return what more than half of some answers have.

        Args:
            given: The answers.
            complete: Whether a label that is required is the most frequent one where none has that.
        """
        votes = Counter(unit for answer in given for unit in units(answer))
        found = {}
        for one in self.each:
            own = {unit.what: n for unit, n in votes.items() if unit.layer == one.name}
            most = [what for what, n in own.items() if 2 * n > len(given)]
            if complete and one.required and one.kind != "spans" and not most:
                # Of equals the first of the labels
                most = [max(own, key=lambda what: (own[what], -one.names.index(what.type)))]
            found[one.name] = one.of(most)
        return found


class Unit(NamedTuple):
    """One of the things that an answer says."""

    layer: str
    what: PartSpan  # Of a label: over the one token that there is


def units(answer: Answer) -> Iterator[Unit]:
    """Yield every span and every label of an answer."""
    for name, given in answer.items():
        for one in given if isinstance(given, list) else [given]:
            if one is not None:
                yield Unit(name, PartSpan(one, 0, 1) if isinstance(one, str) else span_of(one))


def span_of(given: Any) -> PartSpan:
    """Read a span of an answer.

    >>> span_of({"start": 0, "end": 2, "type": "PER", "to_char": 3})
    PartSpan(type='PER', start=0, end=2, from_char=0, to_char=3)
    """
    keys = {"type": str, "start": int, "end": int, "from_char": int, "to_char": int}
    facts = {name: one for name, one in given.items() if one is not None} if isinstance(
        given, Mapping
    ) else {}  # fmt: skip
    if not {"type", "start", "end"} <= facts.keys() or not all(
        type(one) is keys.get(name) for name, one in facts.items()
    ):
        raise InputError(f"a span has type, start and end (tokens), not {given!r:.80}")
    return PartSpan(**facts)


def longest(spans: Iterable[PartSpan]) -> list[PartSpan]:
    """Return spans without overlaps: of those that overlap the longest stays, of equals the first.

    >>> [one.type for one in longest([PartSpan("A", 0, 1), PartSpan("B", 0, 3)])]
    ['B']
    """
    kept: list[PartSpan] = []
    for one in sorted(spans, key=lambda one: (one.start - one.end, one.start, one.type)):
        if all(one.end <= other.start or other.end <= one.start for other in kept):
            kept.append(one)
    return sorted(kept, key=lambda one: one.start)


def shown_span(span: PartSpan) -> dict[str, Any]:
    """Return a span as pages and answers have it: the characters only where it cuts tokens."""
    first = {"from_char": span.from_char} if span.from_char else {}
    last = {"to_char": span.to_char} if span.to_char else {}
    return {"start": span.start, "end": span.end, "type": span.type, **first, **last}


# --------------------------------------------------------------------------------------------------
# A crowd of every layer.


@dataclass(frozen=True)
class AnsweredItem:
    """An item with the answers to it."""

    item: str
    tokens: Sequence[str]
    # By worker the answer, and what else is known: started, submitted, cost, guideline
    answers: Sequence[tuple[str, Answer, Mapping[str, int]]]
    group: str | None = None
    text: str | None = None
    token_start: Sequence[int] | None = None
    gold: Answer | None = None


def crowds_of(
    questions: Questions, items: Sequence[AnsweredItem], workers: Sequence[str]
) -> dict[str, Crowd]:
    """Make a crowd of every layer; all have the same workers, and the items in their order."""
    return {one.name: _crowd(one, items, workers) for one in questions.each}


def _crowd(question: Question, items: Sequence[AnsweredItem], workers: Sequence[str]) -> Crowd:
    rows = [_row(question, one) for one in items]
    tags = question.codec.tags
    if question.kind == "labels":  # single labels that stand for several
        said = (one for row in rows for one in (*row["answers"], row.get("gold")) if one)
        tags = (json.dumps(question.names), "[]", *(one["label"] for one in said))
        tags = tuple(dict.fromkeys(tags))  # the first has all labels, in the plan's order
    header = {"goldspan": 1, "workers": [*workers], "encoding": question.codec.encoding}
    data = "".join(json.dumps(row) + "\n" for row in (header | {"tags": tags}, *rows)).encode()
    crowd = read_crowd(data, format="spans", several="leave-out")
    if question.kind != "labels":
        return crowd
    return ask_each(crowd, [json.loads(tag) for tag in crowd.tagset.tags])


def _row(question: Question, one: AnsweredItem) -> dict[str, Any]:
    text = " ".join(one.tokens) if one.text is None else one.text
    row: dict[str, Any] = {"item": one.item, "text": text, "unit": "char", "tokens": [text or "-"]}
    row |= {} if one.group is None else {"doc": one.group}
    if question.kind == "spans":
        starts = one.token_start
        if starts is None:
            starts, at = [], 0
            for token in one.tokens:
                starts.append(at)
                at += len(token) + 1
        row |= {"tokens": [*one.tokens], "token_start": [*starts]}
    elif not text:
        row.pop("text")

    def said(answer: Answer) -> dict[str, Any] | None:
        given = answer.get(question.name)
        if question.kind != "spans":
            given = json.dumps(given) if question.kind == "labels" else given
            return None if given is None else {"label": given}
        return {"spans": list(_places(given or (), one.tokens, row["token_start"]))}

    found = [(worker, said(answer), facts) for worker, answer, facts in one.answers]
    row["answers"] = [{"worker": w, **own, **facts} for w, own, facts in found if own is not None]
    known = None if one.gold is None else said(one.gold)
    return row if known is None else row | {"gold": known}


def _places(
    spans: Iterable[Any], tokens: Sequence[str], starts: Sequence[int]
) -> Iterator[tuple[int, int, str]]:
    """Yield the characters of spans, and their types."""
    for one in map(span_of, spans):
        end = starts[one.end - 1]
        last = len(tokens[one.end - 1]) if one.to_char is None else one.to_char
        yield starts[one.start] + one.from_char, end + last, one.type


def answers_of_labels(
    crowds: Mapping[str, Crowd],
    codes: Mapping[str, NDArray[np.int16]],
    tokens_of: Callable[[str], tuple[Sequence[str], Sequence[int]]],
) -> dict[str, dict[str, Any]]:
    """Return answers by item from the labels of every layer: the inverse of `crowds_of`.

    Args:
        crowds: By layer its crowd.
        codes: By layer the labels of the crowd, int16 [n_tokens]; -1 where they are not known.
        tokens_of: Gives the tokens of an item and their first characters in its text.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, crowd in crowds.items():
        ids, index = whole_index(crowd)
        tagged, bounds = Tagged(codes[name], crowd.offsets), crowd.offsets.tolist()
        every = units_of(crowd, tagged, np.arange(crowd.n_items), chars=True)
        for n, own in enumerate(every):
            if (tagged.codes[bounds[n] : bounds[n + 1]] < 0).all():
                continue
            item = ids[index[n]]
            answer = found.setdefault(item, {})
            if not crowd.is_classification:
                tokens, starts = tokens_of(item)
                spans = answer.setdefault(name, [])
                placed = (shown_span(_placed(*one, tokens, starts)) for one in own)
                spans += [one for one in placed if one not in spans]  # of another part
                spans.sort(key=lambda one: (one["start"], -one["end"], one["type"]))
            elif crowd.parts is None:
                answer[name] = next(iter(own))[0]
            else:
                answer[name] = answer.get(name, []) + [label for label, _, _ in own]
    return found


def _placed(
    kind: str, first: int, end: int, tokens: Sequence[str], starts: Sequence[int]
) -> PartSpan:
    """Return a span of characters as one of tokens."""
    a, b = bisect_right(starts, first) - 1, bisect_right(starts, end - 1) - 1
    last = end - starts[b]
    return PartSpan(kind, a, b + 1, first - starts[a], last if last < len(tokens[b]) else None)
