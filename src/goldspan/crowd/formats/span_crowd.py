"""From items and spans of characters to a crowd of tags: what the formats of tools share.

Spans become spans of tokens under the rules of `goldspan.spans.to_tokens`, with `options.offsets`
and `options.cut`; every span that cut a token is listed. What the report counts as a label is the
tag of one token. A span that cannot be placed, or an annotation that is no answer, counts as one
label that was not placed:

* where spans of one answer overlap or are nested, the one of most tokens stays (of two that are
  as long, the first), the others are left out;
* a span that covers no token, or holds no whole one under cut="contract", is left out.

An offset outside the text, or a place that does not read as the file says it does, is an error.
Annotations of a worker called "gold" or "truth" are gold in formats with no other place for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from goldspan.crowd.builder import CrowdBuilder
from goldspan.crowd.formats.char_spans import (
    MAX_MESSAGE,
    CharSpan,
    Cut,
    reads_otherwise,
    same_words,
    split_overlaps,
    unit_hint,
)
from goldspan.crowd.formats.json_records import Record, shown
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source
from goldspan.errors import Fault, FaultsError, FormatError
from goldspan.spans import (
    Codec,
    Span,
    SpanArray,
    Tagged,
    get_encoding,
    to_chars,
    to_tokens,
    write_codes,
)

GOLD = "gold"
GOLD_NAMES = frozenset({GOLD, "truth"})
"""Workers whose annotations are gold, in formats that have no other place for it."""


@dataclass
class Labels:
    """What one worker, or the gold, says of one item: spans, or one tag for every token.

    Attributes:
        spans: Spans of tokens that do not overlap.
        skipped: Tokens without a label, as ranges.
        tags: Instead of spans.
    """

    spans: list[Span] = field(default_factory=list)
    skipped: list[tuple[int, int]] = field(default_factory=list)
    tags: list[str | None] | None = None


class Facts(NamedTuple):
    """What else is known of an answer; see `goldspan.crowd.Answers`."""

    attempt: int | None = None
    started: int | None = None
    submitted: int | None = None
    cost: int | None = None


NOTHING_MORE = Facts()


@dataclass
class Item:
    """One item, and all that was said of it."""

    id: str
    cut: Cut
    record: Record
    group: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    gold: Labels | None = None
    answers: list[tuple[Record, Labels, Facts]] = field(default_factory=list)

    @property
    def said(self) -> list[Labels]:
        """The labels of all answers, and of the gold."""
        known = [] if self.gold is None else [self.gold]
        return known + [labels for _, labels, _ in self.answers]


class SpanCrowd:
    """Collects items and their spans, then builds a crowd of tags.

    Args:
        source: What is read, for messages.
        format: Name of the format.
        options: How to read it.
    """

    def __init__(self, source: Source, format: str, options: ReadOptions) -> None:  # noqa: A002
        self.source = source
        self.options = options
        self.builder = CrowdBuilder(options, source.name, format)
        self.faults = self.builder.faults
        self.items: dict[str, Item] = {}
        self.workers: dict[str, None] = {}
        self._n_differing = 0
        self._has_single = False

    def item(
        self,
        record: Record,
        cut: Cut,
        *,
        group: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        once: bool = False,
    ) -> Item:
        """Add the item that a record names, or find it if it is there already.

        Raises:
            FormatError: It is there with another text or, where there is no text, other tokens;
                or `once` is set and it is there.
        """
        known = self.items.get(record.item)
        if known is None:
            found = Item(record.item, cut, record.place(), group, dict(attributes or {}))
            return self.items.setdefault(record.item, found)
        place = f"{known.record.file} line {known.record.line}"
        if once:
            message = f"the item id stands twice (first in {place}): ids must be unique"
            raise record.error(message, "duplicate-item")
        both = known.cut.text is not None and cut.text is not None
        mine, theirs = (known.cut.text, cut.text) if both else (known.cut.tokens, cut.tokens)
        if mine != theirs:
            message = f"not the text that this item has in {place}: {shown(theirs)} where that is "
            message += f"{shown(mine)}; give different texts different ids"
            raise record.error(message, "text")
        self._n_differing += bool(attributes) and dict(attributes or {}) != known.attributes
        return known

    def place(self, item: Item, record: Record, spans: Sequence[CharSpan]) -> list[Span]:
        """Turn spans of characters into spans of the item's tokens; what cannot be is listed.

        Raises:
            FormatError: An offset lies outside the text, or what it covers reads otherwise.
        """
        text, bounds, unit = item.cut.text, item.cut.bounds, self.options.offsets
        if text is None:
            raise record.error("spans of characters need a text: give one, or count tokens", "text")
        wrong = [message for span in spans if (message := reads_otherwise(text, span, unit))]
        if wrong:
            raise FormatError([record.fault(message, "text-mismatch") for message in wrong])
        try:
            plain = [span[:3] for span in spans]
            found = to_tokens(text, plain, tokens=bounds, cut="error", offsets=unit)
        except FaultsError:
            found = [placed for span in spans for placed in self._place_one(item, record, span)]
        return self.without_overlaps(record, found)

    def place_tokens(
        self, item: Item, record: Record, cut: Cut, spans: Sequence[CharSpan]
    ) -> list[Span]:
        """Check spans that count tokens; where the record cuts otherwise, go by characters.

        Raises:
            FormatError: A span lies outside the tokens or is empty, or covers another text.
        """
        faults, n_tokens = [], len(cut.tokens)
        for span in spans:
            words = cut.tokens[span.start : span.end]
            if not span.start < span.end <= n_tokens:
                message = f"{span} is empty or outside the {n_tokens} tokens"
                faults.append(record.fault(message, "out-of-range"))
            elif span.covers is not None and not same_words(span.covers, " ".join(words)):
                message = f"{span} covers {shown(words)}, but its own text is {shown(span.covers)}"
                faults.append(record.fault(message, "text-mismatch", span.start))
        if faults:
            raise FormatError(faults)
        found = [Span(span.type, span.start, span.end) for span in spans]
        if cut.tokens == item.cut.tokens or cut.text is None:
            return self.without_overlaps(record, found)
        by_chars = to_chars(cut.text, found, tokens=cut.bounds, offsets=self.options.offsets)
        return self.place(item, record, [CharSpan(*span) for span in by_chars])

    def without_overlaps(self, record: Record, spans: Sequence[Span]) -> list[Span]:
        """Keep the longer of spans that overlap; the others are listed."""
        if len(spans) < 2:
            return list(spans)
        kept, dropped = split_overlaps(spans)
        for span, other in dropped:
            message = f"{CharSpan(*span)} of tokens overlaps {CharSpan(*other)}, which stays"
            self.leave_out(record, message, "overlaps another span", span.start)
        return kept

    def leave_out(self, record: Record, message: str, reason: str, token: int = -1) -> None:
        """List a label that is not placed, and count it unless it is gold."""
        self.builder.warnings.append(record.fault(message[:MAX_MESSAGE], reason, token))
        if record.worker not in GOLD_NAMES:
            self.builder.reasons[reason] = self.builder.reasons.get(reason, 0) + 1

    def answer(
        self, item: Item, record: Record, labels: Labels, facts: Facts = NOTHING_MORE
    ) -> None:
        """Add what the record's worker says of an item."""
        self.workers[record.worker] = None
        item.answers.append((record.place(), labels, facts))

    def set_gold(self, item: Item, record: Record, labels: Labels) -> None:
        """Add what is known of an item.

        Raises:
            FormatError: Something else is known already.
        """
        if item.gold is not None and item.gold != labels:
            message = "the gold differs from that of an earlier annotation of this item"
            raise record.at(worker=GOLD).error(message, "contradictory-gold")
        item.gold = labels

    def answer_or_gold(
        self, item: Item, record: Record, labels: Labels, facts: Facts = NOTHING_MORE
    ) -> None:
        """Add an answer, or the gold if the worker is called so, in formats with no other place."""
        if record.worker in GOLD_NAMES:
            self.set_gold(item, record, labels)
        else:
            self.answer(item, record, labels, facts)

    def single(self, item: Item, record: Record, label: str | None) -> Labels:
        """Make the labels of an item that is one token.

        Raises:
            FormatError: The item has several tokens.
        """
        if len(item.cut.tokens) == 1:
            self._has_single = True
            return Labels(tags=[label])
        message = f"a single label for an item of {len(item.cut.tokens)} tokens"
        raise record.error(f"{message}: does the file mix spans and single labels?", "mixed")

    def build(self) -> Crowd:
        """Make the crowd; single labels make its tags PLAIN.

        Raises:
            FormatError: Something is wrong; every fault is listed.
        """
        self._keep_workers()
        notes = self.builder.notes
        if self._n_differing:
            message = f"{self._n_differing} records have other attributes than the first of their "
            notes.append(f"{message}item: the first are kept")
        said = [labels for item in self.items.values() for labels in item.said]
        if self._has_single and any(labels.tags is None for labels in said):
            message = "the file mixes spans and single labels: split it"
            self.faults.append(Fault(message, self.builder.source, kind="mixed"))
        if self.faults:
            strict = self.builder.warnings if self.options.strict else []
            raise FormatError([*self.faults, *strict])
        notes += () if self.source.is_folder else self.source.text.notes
        listed = list(self.items.values())
        known = [(item, item.gold) for item in listed if item.gold is not None]
        answers = [(item, labels) for item in listed for _, labels, _ in item.answers]
        tags = self._tags([*known, *answers])
        gold = {item.id: row for (item, _), row in zip(known, tags, strict=False)}
        self._add_items(listed, gold)
        for worker in self.workers:
            self.builder.add_worker(worker)
        rows = iter(tags[len(known) :])
        for n, item in enumerate(listed):
            for record, _, facts in item.answers:
                place: dict[str, Any] = {"line": record.line, "file": record.file}
                place |= facts._asdict()
                self.builder.add_answer(n, record.worker, next(rows), **place)
        return self.builder.build(single=self._has_single)

    def _add_items(self, items: Sequence[Item], gold: Mapping[str, list[str | None]]) -> None:
        rows = settle_attributes([item.attributes for item in items], self.builder.notes)
        for item, attributes in zip(items, rows, strict=True):
            self.builder.add_item(
                item.id,
                item.cut.tokens,
                group=item.group,
                text=item.cut.keep_text,
                token_start=item.cut.starts,
                gold=gold.get(item.id),
                attributes=attributes,
                line=item.record.line,
                file=item.record.file,
            )

    def _keep_workers(self) -> None:
        """Leave out workers whom the user did not name."""
        wanted = self.options.workers
        if wanted is None:
            return
        absent = [name for name in wanted if name not in self.workers]
        if absent:
            there = ", ".join(list(self.workers)[:20])
            message = f"there is no worker {absent[0]!r}: the workers are {there}"
            self.faults.append(Fault(message, self.builder.source, kind="worker"))
        n_all = len(self.workers)
        self.workers = {name: None for name in self.workers if name in wanted}
        if len(self.workers) < n_all:
            note = f"{n_all - len(self.workers)} workers left out, because others were named"
            self.builder.notes.append(note)
        for item in self.items.values():
            item.answers = [row for row in item.answers if row[0].worker in self.workers]

    def _place_one(self, item: Item, record: Record, span: CharSpan) -> list[Span]:
        """One span of an answer in which something is the matter."""
        text, bounds, options = item.cut.text or "", item.cut.bounds, self.options
        plain, unit = [span[:3]], options.offsets
        try:
            return to_tokens(text, plain, tokens=bounds, cut="error", offsets=unit)
        except FaultsError as error:
            fault = error.faults[0]
        message = fault.message[:MAX_MESSAGE]
        if fault.kind == "out-of-range" or options.cut == "error":
            raise record.error(f"{message}{unit_hint(text, span, unit)}", fault.kind)
        try:
            found = to_tokens(text, plain, tokens=bounds, cut=options.cut, offsets=unit)
        except FaultsError as error:
            nothing = "covers no token" in message
            reason = "covers no token" if nothing else "holds no whole token"
            self.leave_out(record, f"{error.faults[0].message}: left out", reason)
            return []
        verb = "expanded" if options.cut == "expand" else "contracted"
        message = message.split(": pass cut=")[0]
        message += f": {verb} to tokens [{found[0].start}, {found[0].end})"
        self.builder.warnings.append(record.fault(message, "cut", found[0].start))
        return found

    def _tags(self, said: Sequence[tuple[Item, Labels]]) -> list[list[str | None]]:
        """One tag per token, for all labels at once."""
        rules = get_encoding(self.options.encoding or "BIO")
        spans = [(n, *span) for n, (_, one) in enumerate(said) for span in one.spans]
        if spans and rules.is_plain:
            message = "spans cannot be read as PLAIN labels: name another encoding, or none"
            raise FormatError([Fault(message, self.builder.source, kind="encoding")])
        sizes = np.array([len(item.cut.tokens) for item, _ in said], np.int64)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        codec = Codec.from_types({span[1] for span in spans}, rules)
        place = {kind: i for i, kind in enumerate(codec.types)}
        which = np.array([span[0] for span in spans], np.int32)
        start = offsets[which] + np.array([span[2] for span in spans], np.int64)
        end = offsets[which] + np.array([span[3] for span in spans], np.int64)
        kind = np.array([place[span[1]] for span in spans], np.int16)
        found = SpanArray(start, end, kind, which, np.zeros(len(spans), np.int32))
        codes = np.full(int(offsets[-1]), -1, np.int16)
        if not rules.is_plain:
            codes = write_codes(found, offsets, codec)
        tags: list[list[str | None]] = [list(row) for row in codec.decode(Tagged(codes, offsets))]
        for n, (_, one) in enumerate(said):
            tags[n] = tags[n] if one.tags is None else one.tags
            for first, stop in one.skipped:
                tags[n][first:stop] = [None] * (stop - first)
        return tags


def settle_attributes(rows: Sequence[Mapping[str, Any]], notes: list[str]) -> list[dict[str, Any]]:
    """Turn the values of an attribute into text if they are of several types.

    Args:
        rows: The attributes of every item.
        notes: What was done is added here.
    """
    settled = [dict(row) for row in rows]
    for name in dict.fromkeys(name for row in rows for name in row):
        try:
            pa.array([row.get(name) for row in rows])
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            notes.append(f"attribute {name!r} mixes types or is too large: written as text")
            for row in settled:
                value = row.get(name)
                if value is not None and not isinstance(value, str):
                    row[name] = json.dumps(value, ensure_ascii=False)
    return settled
