"""Building a crowd piece by piece, for readers of formats that come as objects."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from goldspan.crowd.grouping import MAX_ATTEMPT, count_first, number_attempts
from goldspan.crowd.labels import (
    label_faults,
    read_labels,
    settle,
    stripped_faults,
)
from goldspan.crowd.model import ANSWER_COLUMNS, Answers, Crowd, list_array
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import ImportReport
from goldspan.errors import Fault, FormatError, InputError

# --------------------------------------------------------------------------------------------------
# What a builder collects, an item and an answer, and what is wrong with each by itself.


_UNITS = {
    "attempt": "the number of the answer",
    "started": "milliseconds since 1970",
    "submitted": "milliseconds since 1970",
    "cost": "millionths of the currency unit",
    "guideline": "the version of the guideline",
}
_MAX_START = 2**31 - 1


class Item(NamedTuple):
    """One item, as it was given, and where it stands."""

    id: str
    tokens: list[str]
    group: str | None
    text: str | None
    token_start: Sequence[int] | None
    attributes: Mapping[str, Any]
    file: str
    line: int
    token_lines: Sequence[int] | None
    whole: str | None = None
    part: str | None = None

    def fault(self, message: str, kind: str, token: int = -1, worker: str = "") -> Fault:
        """Return a fault at this item, or at one of its tokens."""
        line = self.token_lines[token] if self.token_lines and token >= 0 else self.line
        return Fault(message, self.file, line, self.id, token, worker, kind)


class Facts(NamedTuple):
    """What else is known of an answer; see `goldspan.crowd.Answers`."""

    attempt: int | None = None
    started: int | None = None
    submitted: int | None = None
    cost: int | None = None
    guideline: int | None = None


NOTHING_MORE = Facts()


class Answer(NamedTuple):
    """One answer but for its tags, as it was given, and where it stands."""

    item: int
    worker: int
    facts: Facts
    file: str
    line: int
    token_lines: Sequence[int] | None


def item_faults(item: Item) -> list[Fault]:
    """What is wrong with an item by itself, gold aside."""
    faults = []
    if not item.tokens:
        message = "an item without tokens: leave it out, or give it a text"
        faults.append(item.fault(message, "no-tokens"))
    if not all(item.tokens):
        message = "the token is empty: a token has one character at least; leave it out"
        empty = (n for n, token in enumerate(item.tokens) if not token)
        faults += [item.fault(message, "empty-token", n) for n in empty]
    words = {"item id": item.id, "group": item.group, "text": item.text}
    faults += [item.fault(message, kind) for kind, message in string_faults(words)]
    if not _is_whole("".join(item.tokens)):
        for n, token in enumerate(item.tokens):
            wrong = string_faults({"token": token})
            faults += [item.fault(message, kind, n) for kind, message in wrong]
    return faults + _start_faults(item)


def _start_faults(item: Item) -> list[Fault]:
    starts, n_tokens = item.token_start, len(item.tokens)
    if starts is None:
        return []
    if len(starts) != n_tokens:
        message = f"token_start has {len(starts)} numbers for {n_tokens} tokens: give one per token"
        return [item.fault(message, "length")]
    rule = f"token_start must be a number from 0 to {_MAX_START}"
    wrong = (n for n, start in enumerate(starts) if not 0 <= start <= _MAX_START)
    return [item.fault(f"{rule}, not {starts[n]}", "out-of-range", n) for n in wrong]


def number_faults(facts: Facts) -> list[tuple[str, str]]:
    """Kind and message of every number that does not fit in 64 bits."""
    return [
        (
            "out-of-range",
            f"{name} ({_UNITS[name]}) must be a number from {-(2**63)} to {2**63 - 1}, not {value}",
        )
        for name, value in facts._asdict().items()
        if value is not None and not -(2**63) <= value < 2**63
    ]


def string_faults(words: Mapping[str, str | None]) -> list[tuple[str, str]]:
    """Kind and message of every string that cannot be written as UTF-8."""
    return [
        ("half-character", f"the {name} {half_character(word)}")
        for name, word in words.items()
        if word is not None and not _is_whole(word)
    ]


def half_character(word: str) -> str:
    """Say that a string cannot be written as UTF-8."""
    return (
        f"{word!r} holds half of a surrogate pair, which no file can hold: it was cut within a "
        "character"
    )


def _is_whole(word: str) -> bool:
    """Whether a string holds whole characters only, no half of a surrogate pair."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def counted_answers(report: ImportReport, answers: Answers, options: ReadOptions) -> ImportReport:
    """Return a report with the labels of the answers counted, and repeated answers noted."""
    placed, repeats = int((answers.codes >= 0).sum()), int((answers.attempt > 0).sum())
    note = f"{repeats} repeated answers: all kept, the {options.repeated} one counts"
    return replace(
        report,
        n_labels=placed + sum(report.reasons.values()),
        n_placed=placed,
        notes=(*report.notes, note) if repeats else report.notes,
    )


# --------------------------------------------------------------------------------------------------
# The builder.


@dataclass
class CrowdBuilder:
    """Collects items, gold and answers, then makes a `Crowd` of them.

    Faults are collected with their place and raised together by `build`. What is at fault is left
    out, or stays in until then, so that later calls may name it.

    Args:
        options: How labels are read.
        source: Name of the file or folder, for messages.
        format: Name of the format.

    >>> builder = CrowdBuilder()
    >>> item = builder.add_item("s1", ["Ann", "sang"], gold=["B-PER", "O"])
    >>> builder.add_answer(item, "w1", ["B-PER", "O"])
    >>> builder.build()
    Crowd(1 items, 2 tokens, 1 workers, 1 answers, BIO ['PER'], gold)
    """

    options: ReadOptions = field(default_factory=ReadOptions)
    source: str = ""
    format: str = ""

    def __post_init__(self) -> None:
        self.faults: list[Fault] = []
        self.warnings: list[Fault] = []
        self.notes: list[str] = []
        self.reasons: dict[str, int] = {}
        self._labels: dict[str, int] = {}
        self._items: list[Item] = []
        self._places: dict[str, int] = {}
        self._workers: dict[str, int] = {}
        self._whole: set[str] = set()
        self._answers: list[Answer] = []
        self._codes = array("i")
        self._gold = array("i")
        self._has_gold = False
        self.in_cells = False  # Whether single labels stand in cells, which may list several
        self.choices: dict[str, list[str]] = {}  # What stands for several labels, or for none
        self.lists_labels = False  # Whether the file itself says that any number of labels holds

    def add_item(
        self,
        item_id: str,
        tokens: Sequence[str],
        *,
        group: str | None = None,
        text: str | None = None,
        token_start: Sequence[int] | None = None,
        gold: Sequence[str | None] | None = None,
        attributes: Mapping[str, Any] | None = None,
        line: int = 0,
        token_lines: Sequence[int] | None = None,
        file: str = "",
        whole: str | None = None,
        part: str | None = None,
    ) -> int:
        """Add an item and give its index.

        Args:
            item_id: Its id.
            tokens: Its tokens, at least one, none of them empty.
            group: The document that it is part of.
            text: The text that the tokens were cut from.
            token_start: First character of every token in the text, one per token.
            gold: Known tags, one per token; None where unknown.
            attributes: Other facts about the item.
            line: Where it stands, for messages.
            token_lines: Where each of its tokens stands, if on lines of their own.
            file: Where it stands, if not in `source`.
            whole: The item of which it is a part, see `goldspan.crowd.layers`.
            part: Which part it is.
        """
        known = (group, text, token_start, attributes or {})
        at = (file or self.source, line, token_lines)
        item = Item(item_id, list(tokens), *known, *at, whole, part)
        if item_id in self._places:
            self.faults.append(item.fault("the item id appears twice", "duplicate-item"))
            return self._places[item_id]
        self.faults += item_faults(item)
        if gold is not None and len(gold) != len(tokens):
            message = f"{len(gold)} gold tags for {len(tokens)} tokens"
            self.faults.append(item.fault(message, "length"))
            gold = None
        self._has_gold |= gold is not None
        self._gold.extend(self._code(gold if gold is not None else [None] * len(tokens)))
        self._places[item_id] = len(self._items)
        self._items.append(item)
        return len(self._items) - 1

    def item_place(self, item_id: str) -> int | None:
        """Return the index of an item that was added, None if it was not."""
        return self._places.get(item_id)

    def id_of(self, item: int) -> str:
        """Return the id of an item that was added."""
        return self._items[item].id

    def add_worker(self, worker: str) -> int:
        """Name a worker, who may turn out to have no answer, and give the index."""
        return self._workers.setdefault(worker, len(self._workers))

    def add_answer(
        self,
        item: int,
        worker: str,
        tags: Sequence[str | None],
        *,
        attempt: int | None = None,
        started: int | None = None,
        submitted: int | None = None,
        cost: int | None = None,
        guideline: int | None = None,
        line: int = 0,
        token_lines: Sequence[int] | None = None,
        file: str = "",
    ) -> None:
        """Add one worker's tags for an item.

        Args:
            item: Index from `add_item`.
            worker: Id of the worker.
            tags: One per token; None where the worker skipped the token.
            attempt: Number of the answer; by default repeats are numbered in order.
            started: Milliseconds since 1970, a number of 64 bits.
            submitted: Milliseconds since 1970, a number of 64 bits.
            cost: Millionths of the currency unit, a number of 64 bits.
            guideline: Version of the label set and guideline, a number of 64 bits.
            line: Where it stands, for messages.
            token_lines: Where each of its tags stands, if on lines of their own.
            file: Where it stands, if not in `source`.
        """
        known = self._items[item]
        facts = Facts(attempt, started, submitted, cost, guideline)
        wrong = [] if worker in self._whole else string_faults({"worker id": worker})
        if facts != NOTHING_MORE:
            wrong += number_faults(facts)
        if len(tags) != len(known.tokens):
            wrong.append(("length", f"{len(tags)} labels for {len(known.tokens)} tokens"))
        for kind, message in wrong:
            where = (file or self.source, line, known.id, -1, worker, kind)
            self.faults.append(Fault(message, *where))
        if wrong:
            return
        self._whole.add(worker)
        number = self.add_worker(worker)
        self._answers.append(Answer(item, number, facts, file or self.source, line, token_lines))
        self._codes.extend(self._code(tags))

    def build(self, *, single: bool = False) -> Crowd:
        """Make the crowd.

        Args:
            single: Whether items are single labels, which makes the tags PLAIN.

        Raises:
            FormatError: Something is wrong; every fault is listed.
        """
        if not self._items and not self.faults:
            message = "the file holds no item: is the path right?"
            self.faults.append(Fault(message, file=self.source, kind="empty"))
        cells = self.in_cells and single
        if self.lists_labels and self.options.several == "auto":
            self.options = replace(self.options, several="labels")
        chosen = self.choices if single else {}
        labels = read_labels(
            list(self._labels), self.options, single=single, cells=cells, choices=chosen
        )
        if labels.wrong:
            unknown, several = label_faults(labels, self._wrong_places(labels.wrong), self.options)
            self.warnings += several
            (self.faults if self.options.rejects_unknown else self.warnings).extend(unknown)
            self._leave_out(labels.several, several)
        self.notes += labels.notes
        self.warnings += stripped_faults(self._labels, self.source, self.options)
        answers = self._build_answers(np.append(labels.codes, np.int16(-1)))
        if self.faults or (self.options.strict and self.warnings):
            raise FormatError([*self.faults, *(self.warnings if self.options.strict else [])])
        offsets = self._item_offsets()
        flat = [token for item in self._items for token in item.tokens]
        gold = np.append(labels.codes, np.int16(-1))[np.array(self._gold, np.int64)]
        report = ImportReport(
            self.source,
            self.format,
            reasons=dict(self.reasons),
            faults=tuple(self.warnings),
            notes=tuple(self.notes),
        )
        crowd = Crowd(
            item_ids=pa.array([item.id for item in self._items], pa.string()),
            tokens=list_array(pa.array(flat, pa.string()), offsets),
            worker_ids=pa.array(list(self._workers), pa.string()),
            tagset=labels.tagset,
            answers=answers,
            groups=self._optional("group"),
            gold=gold if self._has_gold else None,
            texts=self._optional("text"),
            token_start=self._token_start(),
            attributes=self._attributes(),
            wholes=self._optional("whole"),
            parts=self._optional("part"),
            import_report=counted_answers(report, answers, self.options),
        )
        return settle(crowd, self.options, labels.members)

    def _leave_out(self, several: Collection[int], faults: Sequence[Fault]) -> None:
        """Leave out answers of several choices."""
        for fault in faults:
            if fault.worker != "gold":
                self.reasons[fault.kind] = self.reasons.get(fault.kind, 0) + 1
        if not several:
            return
        kept = [code not in several for code in self._codes]
        self._answers = list(compress(self._answers, kept))
        self._codes = array("i", compress(self._codes, kept))

    def _code(self, tags: Iterable[str | None]) -> list[int]:
        table = self._labels
        return [-1 if tag is None else table.setdefault(tag, len(table)) for tag in tags]

    def _item_offsets(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        lengths = np.array([len(item.tokens) for item in self._items], np.int64)
        return np.concatenate([[0], np.cumsum(lengths)])

    def _build_answers(self, table: np.ndarray[Any, np.dtype[np.int16]]) -> Answers:
        rows = self._answers
        item = np.array([row.item for row in rows], np.int32)
        worker = np.array([row.worker for row in rows], np.int32)
        lengths = np.diff(self._item_offsets())[item] if len(item) else np.zeros(0, np.int64)
        if any(row.facts.attempt is not None for row in rows):
            numbers = np.array([row.facts.attempt or 0 for row in rows], np.int64)
            self._check_attempts(item, worker, numbers)
            attempt = numbers.astype(np.int16)
            if self.options.repeated == "first":
                attempt = count_first(item, worker, attempt)
        else:
            attempt = number_attempts(item, worker, self.options.repeated)
        offset = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        codes = table[np.array(self._codes, np.int64)]
        optional = {name: self._column(name) for name in ANSWER_COLUMNS}
        return Answers(item, worker, offset, codes, attempt, **optional)

    def _check_attempts(self, item: Any, worker: Any, attempt: Any) -> None:
        keys = list(zip(item.tolist(), worker.tolist(), attempt.tolist(), strict=True))
        seen: set[tuple[int, int, int]] = set()
        for key, row in zip(keys, self._answers, strict=True):
            if key in seen or not 0 <= key[2] <= MAX_ATTEMPT:
                message = f"attempt {key[2]} appears twice: give repeated answers different numbers"
                if key not in seen:
                    message = f"attempt must be a number from 0 to {MAX_ATTEMPT}, not {key[2]}"
                who, name = list(self._workers)[key[1]], self._items[key[0]].id
                where = (row.file, row.line, name, -1, who, "duplicate-attempt")
                self.faults.append(Fault(message, *where))
            seen.add(key)

    def _column(self, name: str) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        values = [getattr(row.facts, name) for row in self._answers]
        if all(value is None for value in values):
            return None
        return np.array([-1 if value is None else value for value in values], np.int64)

    def _optional(self, name: str) -> pa.Array | None:
        values = [getattr(item, name) for item in self._items]
        return None if all(value is None for value in values) else pa.array(values, pa.string())

    def _token_start(self) -> np.ndarray[Any, np.dtype[np.int32]] | None:
        starts = [item.token_start for item in self._items if item.token_start is not None]
        if len(starts) < len(self._items) or not starts:
            return None
        return np.array([place for start in starts for place in start], np.int32)

    def _attributes(self) -> pa.Table | None:
        names = list(dict.fromkeys(name for item in self._items for name in item.attributes))
        if not names:
            return None
        columns = {name: [item.attributes.get(name) for item in self._items] for name in names}
        try:
            return pa.table(columns)
        except UnicodeEncodeError as error:
            message = f"{self.source}: an item attribute {half_character(error.object)}"
            raise InputError(message) from None
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise InputError(
                f"{self.source}: a column of item attributes mixes types, or holds numbers that "
                f"are too large: {error}"
            ) from None

    def _wrong_places(self, wrong: Collection[int]) -> Iterable[tuple[int, Fault]]:
        offsets = self._item_offsets()
        for n, item in enumerate(self._items):
            for token, code in enumerate(self._gold[offsets[n] : offsets[n + 1]]):
                if code in wrong:
                    yield code, item.fault("", "", token, "gold")
        names, at = list(self._workers), 0
        for row in self._answers:
            item = self._items[row.item]
            for token in range(len(item.tokens)):
                code = self._codes[at + token]
                if code in wrong:
                    line = row.token_lines[token] if row.token_lines else row.line
                    yield code, Fault("", row.file, line, item.id, token, names[row.worker])
            at += len(item.tokens)
