"""From items and spans of characters to a crowd of tags: what the formats of tools share.

Offsets become code points as they are read; white space at the ends of a span does not count. When
everything is read, the text of every item is cut where a span begins or ends within a token
(`options.cut` is "split"). What the report counts as a label is the tag of one token; a span that
cannot be placed, or an annotation that is not an answer, counts as one label that was not placed.
An offset outside the text, or a place that does not read as the file says it does, is an error.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from goldspan.crowd.builder import NOTHING_MORE as NOTHING_MORE
from goldspan.crowd.builder import CrowdBuilder
from goldspan.crowd.builder import Facts as Facts
from goldspan.crowd.formats.char_spans import (
    MAX_MESSAGE,
    CharSpan,
    Cut,
    code_point,
    cut_at,
    cuts_word,
    inside_character,
    overlap_kind,
    reads_otherwise,
    same_words,
    split_overlaps,
    unit_hint,
)
from goldspan.crowd.formats.json_records import Record, collect, shown
from goldspan.crowd.labels import check_workers
from goldspan.crowd.layers import deal, part_id
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import AS_NAMED, Source
from goldspan.errors import Fault, FaultsError, FormatError
from goldspan.spans import Codec, Tagged, to_tokens
from goldspan.spans.corpus import SpanArray, write_codes
from goldspan.spans.encoding import get_encoding
from goldspan.spans.text import OFFSETS

GOLD = "gold"
GOLD_NAMES = frozenset({GOLD, "truth"})
"""Workers whose annotations are gold, in formats that have no other place for it."""
MAX_PLACES = 3
"""Places that a note names of what was not read."""

_UNITS = {"codepoint": "code points", "utf16": "UTF-16 units", "utf8": "bytes of UTF-8"}


@dataclass
class Labels:
    """What one worker, or the gold, says of one item: spans, or one tag for every token."""

    # Spans of code points of the item's text, or of its tokens if it has no text, in order of place
    spans: list[CharSpan] = field(default_factory=list)
    # Tokens without a label, as ranges
    skipped: list[tuple[int, int]] = field(default_factory=list)
    tags: list[str | None] | None = None


@dataclass
class Item:
    """One item, and all that was said of it."""

    id: str
    cut: Cut  # Its text and tokens
    record: Record  # Where it stands
    group: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)  # Other facts about it
    gold: tuple[Record, Labels] | None = None  # What is known, and where it stands
    answers: list[tuple[Record, Labels, Facts]] = field(default_factory=list)  # What workers said
    bounds: list[tuple[int, int]] = field(init=False)  # Where the tokens are
    starts: dict[int, int] = field(init=False)  # The token that begins at a place
    stops: dict[int, int] = field(init=False)  # The token that ends at a place
    whole: str | None = None  # The item of which it is a part, and which part: see `layers`
    part_name: str | None = None

    def __post_init__(self) -> None:
        self.retokenize(self.cut)

    def retokenize(self, cut: Cut) -> None:
        """Cut the item into other tokens."""
        self.cut = cut
        self.bounds = cut.bounds
        if cut.text is None:
            self.bounds = [(n, n + 1) for n in range(len(cut.tokens))]
        self.starts = {a: n for n, (a, _) in enumerate(self.bounds)}
        self.stops = {b: n for n, (_, b) in enumerate(self.bounds)}

    def part(self, number: int, dealt: Sequence[Mapping[int, int]], taken: Collection[str]) -> Item:
        """Return one of its parts, with the spans that were dealt onto it."""

        def own(labels: Labels, parts: Mapping[int, int]) -> Labels:
            spans = [span for n, span in enumerate(labels.spans) if parts[n] == number]
            return replace(labels, spans=spans)

        rows = iter(dealt)
        gold = self.gold and (self.gold[0], own(self.gold[1], next(rows)))
        answers = [
            (record, own(labels, next(rows)), facts) for record, labels, facts in self.answers
        ]
        name = part_id(self.id, str(number + 1), taken) if number else self.id
        return replace(
            self, id=name, gold=gold, answers=answers, whole=self.id, part_name=str(number + 1)
        )

    @property
    def labelled(self) -> list[tuple[Record, Labels]]:
        """The labels of the gold and of all answers, with their places."""
        known = [] if self.gold is None else [self.gold]
        return known + [(record, labels) for record, labels, _ in self.answers]


class SpanCrowd:
    """Collects items and their spans, then builds a crowd of tags.

    Spans that cannot be placed are listed, and the answers that have them are left out, unless
    these are most: then the file is refused. Tokens of a span that is left out have no label.
    `counted` says that offsets count code points already, whatever the options say.
    """

    def __init__(
        self,
        source: Source,
        format: str,  # noqa: A002
        options: ReadOptions,
        *,
        counted: bool = False,
    ) -> None:
        self.source = source
        self.options = replace(options, offsets="codepoint") if counted else options
        self.builder = CrowdBuilder(options, source.name, format)
        self.faults = self.builder.faults
        self.items: dict[str, Item] = {}
        self.workers: dict[str, None] = {}
        self.not_read: dict[str, list[str]] = {}
        self.unplaced: list[Fault] = []
        self._left_out: dict[tuple[str, str], list[CharSpan]] = {}
        # Other kinds of offsets under which no span cuts a word, and the first span that does now
        self._whole_words = [] if counted else [u for u in OFFSETS if u != options.offsets]
        self._cut_word, self._n_cut_words = Fault(""), 0
        self._n_differing = 0
        self._has_single = False
        self._trimmed: list[str] = []
        self._layer: tuple[str, str] | None = None

    def item(
        self,
        record: Record,
        cut: Cut,
        *,
        group: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        once: bool = False,
    ) -> Item:
        """Add the item that a record names, or find it if it is there already."""
        known = self.items.get(record.item)
        if known is None:
            found = Item(record.item, cut, record.place(), group, dict(attributes or {}))
            return self.items.setdefault(record.item, found)
        place = f"{known.record.file} line {known.record.line}"
        if once:
            message = f"the item id appears twice (first in {place}): ids must be unique"
            raise record.error(message, "duplicate-item")
        both = known.cut.text is not None and cut.text is not None
        mine, theirs = (known.cut.text, cut.text) if both else (known.cut.tokens, cut.tokens)
        if mine != theirs:
            message = f"not the text that this item has in {place}: {shown(theirs)} where that is "
            message += f"{shown(mine)}; give different texts different ids"
            raise record.error(message, "text")
        self._n_differing += bool(attributes) and dict(attributes or {}) != known.attributes
        return known

    def check_layer(self, layer: str, record: Record) -> None:
        """Reject a file whose spans are in another layer than those of the files before it."""
        # One annotator's chunks beside another's names are no answers to the same question
        known, file = self._layer = self._layer or (layer, record.file)
        if layer != known:
            message = (
                f"its spans are in the layer {layer!r}, those of {file} in {known!r}: name the "
            )
            message += f"one that is meant with columns={{'label': {known!r}}} "
            raise record.error(f"{message}(--columns label={known})", "layer")

    def place(self, item: Item, record: Record, spans: Sequence[CharSpan]) -> list[CharSpan]:
        """Turn spans into code points of the item's text; what cannot be placed is listed."""
        text, unit = item.cut.text, self.options.offsets
        if text is None:
            raise record.error("spans of characters need a text: give one, or count tokens", "text")
        found, faults = [], list[Fault]()
        starts, stops = item.starts, item.stops
        if self._whole_words and not text.isascii():
            self._judge_offsets(record, text, spans)
        for span in spans:
            kind, a, b, covers = span
            if not kind:
                self.leave_out(record, "a span without a label", "span without a label")
                continue
            is_whole = covers is None and unit == "codepoint" and a < b and a in starts
            # Most spans are whole tokens, whose offsets need not be counted.
            if is_whole and b in stops and not (text[a].isspace() or text[b - 1].isspace()):
                found.append(span)
                continue
            wrong = reads_otherwise(text, span, unit)
            if wrong:
                faults.append(record.fault(wrong, "text-mismatch"))
                continue
            with collect(faults):
                found += self._place_one(item, record, span)
        self.unplaced += [replace(fault, item=item.id) for fault in faults]
        return sorted(found, key=_place_of)

    def _judge_offsets(self, record: Record, text: str, spans: Sequence[CharSpan]) -> None:
        """Find out under which kinds of offsets spans cut words."""
        bare = [span for span in spans if span.covers is None]
        cut = [span for span in bare if cuts_word(text, span, self.options.offsets)]
        if cut and not self._n_cut_words:
            self._cut_word = record.fault(f"{cut[0]} begins or ends within a word", "offsets")
        self._n_cut_words += len(cut)
        self._whole_words = [
            unit
            for unit in self._whole_words
            if not any(cuts_word(text, span, unit) for span in bare)
        ]

    def place_tokens(
        self, item: Item, record: Record, cut: Cut, spans: Sequence[CharSpan]
    ) -> list[CharSpan]:
        """Turn spans that count tokens of a record into places of the item."""
        faults, n_tokens = [], len(cut.tokens)
        for span in spans:
            words = cut.tokens[span.start : span.end]
            if not span.start < span.end <= n_tokens:
                message = f"{span} is empty or outside the {n_tokens} tokens"
                faults.append(record.fault(message, "out-of-range"))
            elif span.covers is not None and not same_words(span.covers, " ".join(words)):
                message = f"{span} covers {shown(words)}, but its own text is {shown(span.covers)}"
                faults.append(record.fault(message, "text-mismatch", span.start))
        self.unplaced += [replace(fault, item=item.id) for fault in faults]
        spans = [] if faults else spans
        same = cut.tokens == item.cut.tokens
        bounds = item.bounds if same or cut.text is None else cut.bounds
        found = [CharSpan(k, bounds[a][0], bounds[b - 1][1]) for k, a, b, _ in spans]
        if not same:
            found = [one for span in found for one in self._fit(item, record, span, span)]
        return sorted(found, key=_place_of)

    def tokens_of(self, item: Item, spans: Sequence[CharSpan]) -> set[int]:
        """Return the tokens that spans touch, as the item is cut so far."""
        return {n for span in spans for n in range(*_touched(item.bounds, span))}

    def leave_unread(self, kind: str, record: Record, n: int = 1) -> None:
        """Count what goldspan does not read, such as relations, and remember the first places."""
        if not n:
            return
        where = f"item {record.item}" if record.item else f"{record.file} line {record.line}"
        self.not_read.setdefault(kind, []).extend(
            [f"{where}, worker {record.worker}" if record.worker else where] * n
        )

    def predicted(self, item: Item, record: Record, confidence: object) -> Record | None:
        """Return a record of what goldspan predicted as gold, or count that it is not read."""
        if not self.options.predicted:
            self.leave_unread("predictions", record)
            return None
        if confidence is not None:
            item.attributes["confidence"] = confidence
        return record.at(worker=GOLD)

    def leave_out(
        self,
        record: Record,
        message: str,
        reason: str,
        token: int = -1,
        pieces: Iterable[CharSpan] = (),
    ) -> None:
        """List a label that is not placed, and count it unless it is gold.

        The tokens of its `pieces`, in code points of the item's text, have no label.
        """
        self._list(record.fault(message[:MAX_MESSAGE], reason, token))
        self.leave_open(record, pieces)

    def leave_open(self, record: Record, pieces: Iterable[CharSpan]) -> None:
        """Give tokens of an item no label in what the record's worker says."""
        self._left_out.setdefault((record.item, _who(record.worker)), []).extend(pieces)

    def _list(self, fault: Fault) -> None:
        self.builder.warnings.append(fault)
        if fault.worker not in GOLD_NAMES:
            self.builder.reasons[fault.kind] = self.builder.reasons.get(fault.kind, 0) + 1

    def answer(
        self, item: Item, record: Record, labels: Labels, facts: Facts = NOTHING_MORE
    ) -> None:
        """Add what the record's worker says of an item."""
        self.workers[record.worker] = None
        item.answers.append((record.place(), labels, facts))

    def set_gold(self, item: Item, record: Record, labels: Labels) -> None:
        """Add what is known of an item."""
        if item.gold is not None and item.gold[1] != labels:
            message = "the gold differs from that of an earlier annotation of this item"
            raise record.at(worker=GOLD).error(message, "contradictory-gold")
        item.gold = item.gold or (record.at(worker=GOLD).place(), labels)

    def answer_or_gold(
        self, item: Item, record: Record, labels: Labels, facts: Facts = NOTHING_MORE
    ) -> None:
        """Add an answer, or the gold if the worker is called so, in formats with no other place."""
        if record.worker in GOLD_NAMES:
            self.set_gold(item, record, labels)
        else:
            self.answer(item, record, labels, facts)

    def single(self, item: Item, record: Record, label: str | None) -> Labels:
        """Make the labels of an item that is one token."""
        if len(item.cut.tokens) == 1:
            self._has_single = True
            return Labels(tags=[label])
        message = f"a single label for an item of {len(item.cut.tokens)} tokens"
        raise record.error(f"{message}: does the file mix spans and single labels?", "mixed")

    def choose(
        self,
        item: Item,
        record: Record,
        labels: Sequence[str],
        facts: Facts = NOTHING_MORE,
    ) -> None:
        """Add the labels that were chosen for an item."""
        self.answer_or_gold(item, record, self.single(item, record, self.chosen(labels)), facts)

    def chosen(self, labels: Sequence[str]) -> str:
        """Return the one label, or a name for several or none, which `read_labels` reads."""
        if len(labels) == 1:
            return labels[0]
        name = " | ".join(labels) or "(no choice)"
        self.builder.choices[name] = list(labels)
        return name

    def build(self) -> Crowd:
        """Make the crowd; single labels make its tags PLAIN."""
        self._keep_workers()
        self._let_wait()
        self._warn_of_offsets()
        notes = self.builder.notes
        if self._n_differing:
            message = f"{self._n_differing} records have other attributes than the first of their "
            notes.append(f"{message}item: the first are kept")
        for item in self.items.values():
            with collect(self.faults):
                self._settle(item)
        notes += unread_notes(self.not_read)
        if self._trimmed:
            message = "spans begin or end with white space, which does not count"
            notes.append(f"{len(self._trimmed)} {message} (first: {self._trimmed[0]})")
        said = [labels for item in self.items.values() for _, labels in item.labelled]
        if self._has_single and any(labels.tags is None for labels in said):
            message = "the file mixes spans and single labels: split it"
            self.faults.append(Fault(message, self.builder.source, kind="mixed"))
        if self.faults:
            strict = self.builder.warnings if self.options.strict else []
            raise FormatError([*self.faults, *strict])
        if self.source.data and not self.source.is_parquet:
            notes += self.source.text.notes
        listed = self._parted()
        known = [(item, item.gold[1]) for item in listed if item.gold is not None]
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

    def _parted(self) -> list[Item]:
        """Return the items, or their parts if spans overlap in any of them."""
        every, n_overlapping = list[list[Item]](), 0
        for item in self.items.values():
            said = [labels for _, labels in item.labelled]
            dealt = deal([[span[:3] for span in labels.spans] for labels in said])
            n_parts = 1 + max((part for own in dealt for part in own.values()), default=0)
            n_overlapping += n_parts > 1
            every.append([item.part(part, dealt, self.items) for part in range(n_parts)])
        if not n_overlapping:
            return [*self.items.values()]
        what = "item has" if n_overlapping == 1 else "items have"
        self.builder.notes.append(
            f"{n_overlapping} {what} spans that overlap: every one is kept, in several rows of tags"
        )
        return [part for item in every for part in item]

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
                whole=item.whole,
                part=item.part_name,
            )

    def _keep_workers(self) -> None:
        wanted = self.options.workers
        if wanted is None:
            return
        with collect(self.faults):
            check_workers(wanted, self.workers, self.builder.source)
        n_all = len(self.workers)
        self.workers = {name: None for name in self.workers if name in wanted}
        if len(self.workers) < n_all:
            self.builder.notes.append(f"{n_all - len(self.workers)} {AS_NAMED}")
        for item in self.items.values():
            item.answers = [row for row in item.answers if row[0].worker in self.workers]

    def _let_wait(self) -> None:
        """Leave out answers with a span that cannot be placed; if these are most, it is a fault."""
        waiting = {(fault.item, _who(fault.worker)) for fault in self.unplaced}
        listed = [(item, record) for item in self.items.values() for record, _ in item.labelled]
        n_waiting = sum((item.id, _who(record.worker)) in waiting for item, record in listed)
        if self.faults or 2 * n_waiting > len(listed):
            every = [*self.faults, *self.unplaced]
            self.faults[:] = sorted(every, key=lambda fault: (fault.file, fault.line))
            return
        for item in self.items.values() if waiting else ():
            if (item.id, GOLD) in waiting:
                item.gold = None
            item.answers = [a for a in item.answers if (item.id, a[0].worker) not in waiting]
        for fault in self.unplaced:
            message = f"{fault.message}; this answer is left out until it is fixed"
            self._list(replace(fault, message=message))

    def _warn_of_offsets(self) -> None:
        """Say that spans cut words, if they would not with offsets that count something else."""
        if self._n_cut_words and self._whole_words:
            unit = self._whole_words[0]
            message = (
                f"{self._cut_word.message}, as {self._n_cut_words} do in all, and none if offsets "
                f"count {_UNITS[unit]}: pass offsets={unit!r} (--offsets {unit})"
            )
            self.builder.warnings.append(replace(self._cut_word, message=message))

    def _place_one(self, item: Item, record: Record, span: CharSpan) -> list[CharSpan]:
        """Turn one span into code points, without white space at its ends."""
        text, unit = item.cut.text or "", self.options.offsets
        first, stop = (code_point(text, place, unit) for place in span[1:3])
        if first is None or stop is None or first >= stop:
            message = f"{span} {_misplaced(text, span, unit)}{unit_hint(text, span, unit)}"
            raise record.error(message[:MAX_MESSAGE], "out-of-range")
        a, b = first, stop
        while a < b and text[a].isspace():
            a += 1
        while a < b and text[b - 1].isspace():
            b -= 1
        if a == b:
            message = f"{span} {shown(text[first:stop])} covers no token: left out"
            self.leave_out(record, message, "covers no token")
            return []
        if (a, b) != (first, stop):
            self._trimmed.append(f"item {record.item}, worker {record.worker}: {span}")
        return self._fit(item, record, CharSpan(span.type, a, b), span)

    def _fit(self, item: Item, record: Record, span: CharSpan, given: CharSpan) -> list[CharSpan]:
        """Make a span one that the item can have: its tokens are cut, or it is snapped to them."""
        if span.start in item.starts and span.end in item.stops:
            return [span]
        text = item.cut.text or ""
        if self.options.cut != "split":
            return self._snap(item, record, span)
        for place, what in ((span.start, "begins"), (span.end, "ends")):
            known = item.starts if what == "begins" else item.stops
            inner = None if place in known else inside_character(text, place)
            if inner is not None:
                whole = text[slice(*inner)]
                points = " ".join(f"U+{ord(char):04X}" for char in whole)
                message = (
                    f"{given} {shown(text[span.start : span.end])} {what} within the character "
                    f"'{whole}' ({points})"
                )
                hint = unit_hint(text, given, self.options.offsets)
                hint = hint or ": correct it, or read spans as whole tokens with cut='expand' "
                hint += "" if "offsets=" in hint else "(--cut expand)"
                raise record.error(f"{message}{hint}"[:MAX_MESSAGE], "within-character")
        return [span]

    def _snap(self, item: Item, record: Record, span: CharSpan) -> list[CharSpan]:
        """Expand or contract a span to whole tokens, as `options.cut` says."""
        text, bounds = item.cut.text or "", item.bounds
        rule = "expand" if self.options.cut == "split" else self.options.cut
        try:
            to_tokens(text, [span[:3]], tokens=bounds, cut="error")
        except FaultsError as error:
            what = error.faults[0].message.split(": pass cut=")[0]
        if rule == "error":
            message = f"{what}: pass cut='split', 'expand' or 'contract'"
            raise record.error(message[:MAX_MESSAGE], "cut")
        try:
            found = to_tokens(text, [span[:3]], tokens=bounds, cut=rule)[0]
        except FaultsError as error:
            nothing = "covers no token" in what
            reason = "covers no token" if nothing else "holds no whole token"
            message = f"{error.faults[0].message}: left out"
            self.leave_out(record, message, reason, pieces=[span])
            return []
        verb = "expanded" if rule == "expand" else "contracted"
        message = f"{what}: {verb} to tokens [{found.start}, {found.end})"
        self.builder.warnings.append(record.fault(message[:MAX_MESSAGE], "cut", found.start))
        return [CharSpan(span.type, bounds[found.start][0], bounds[found.end - 1][1])]

    def _settle(self, item: Item) -> None:
        """Cut an item where its spans begin and end, and choose among spans that overlap."""
        dropped, said, is_whole = [], item.labelled, True
        starts, stops = item.starts, item.stops
        for record, labels in said:
            labels.spans, others = self._without_overlaps(record, labels.spans)
            dropped += [(record, *pair) for pair in others]
            for _, a, b, _ in labels.spans:
                is_whole &= a in starts and b in stops
        if not is_whole:
            if any(labels.tags is not None for _, labels in said):
                self._keep_tokens(item)
            else:
                self._cut_tokens(item, {span[1:3] for _, labels in said for span in labels.spans})
        for record, span, other in dropped:
            token = _touched(item.bounds, span)[0]
            message = f"{span} overlaps {other}, which stays"
            self.leave_out(record, message, overlap_kind(span, other), token, [span])
        for record, labels in said:
            gone = self._left_out.get((item.id, _who(record.worker)))
            if gone and labels.tags is None:
                tokens = self.tokens_of(item, gone) - self.tokens_of(item, labels.spans)
                labels.skipped += [(n, n + 1) for n in sorted(tokens)]

    def _keep_tokens(self, item: Item) -> None:
        """Expand spans to whole tokens, because tags count the tokens that the file gives."""
        for record, labels in item.labelled:
            snapped: list[CharSpan] = []
            for span in labels.spans:
                is_whole = span.start in item.starts and span.end in item.stops
                snapped += [span] if is_whole else self._snap(item, record, span)
            labels.spans, _ = self._without_overlaps(record, snapped)

    def _cut_tokens(self, item: Item, places: Collection[tuple[int, int]]) -> None:
        """Cut the tokens of an item where spans begin and end."""
        finer = cut_at(item.cut, places)
        if item.cut.is_given:
            self._list_cuts(item, finer)
        first = {a: n for n, (a, _) in enumerate(finer.bounds)}
        last = {b: n for n, (_, b) in enumerate(finer.bounds)}
        for _, labels in item.labelled:
            labels.skipped = [
                (first[item.bounds[a][0]], last[item.bounds[b - 1][1]] + 1)
                for a, b in labels.skipped
            ]
        item.retokenize(finer)

    def _list_cuts(self, item: Item, finer: Cut) -> None:
        """List the tokens of a file that are cut because spans begin or end in them."""
        starts = [a for a, _ in finer.bounds]
        for n, (a, b) in enumerate(item.cut.bounds):
            pieces = finer.tokens[bisect_left(starts, a) : bisect_left(starts, b)]
            if len(pieces) > 1:
                message = f"token {item.cut.tokens[n]!r} is cut where spans begin or end: "
                fault = item.record.fault((message + " | ".join(pieces))[:MAX_MESSAGE], "cut", n)
                self.builder.warnings.append(fault)

    def _without_overlaps(
        self, record: Record, spans: list[CharSpan]
    ) -> tuple[list[CharSpan], list[tuple[CharSpan, CharSpan]]]:
        in_order, end = sorted(spans, key=_start_of), 0
        for span in in_order:
            if span.start < end:
                break
            end = span.end
        else:
            return in_order, []
        if self.options.overlapping == "layers":
            return self._without_repeats(in_order)
        refuse = self.options.overlapping == "refuse"
        kept, dropped = split_overlaps(spans, "longest" if refuse else self.options.overlapping)
        if refuse and dropped:
            hint = "leave overlapping='refuse' out to keep both, or pass 'longest' or 'outermost'"
            faults = [(f"{one} overlaps {k}: {hint}", overlap_kind(one, k)) for one, k in dropped]
            raise FormatError([record.fault(*fault) for fault in faults])
        return kept, dropped

    def _without_repeats(
        self, spans: Sequence[CharSpan]
    ) -> tuple[list[CharSpan], list[tuple[CharSpan, CharSpan]]]:
        first: dict[tuple[str, int, int], CharSpan] = {}
        dropped = []
        for span in spans:
            known = first.setdefault((span.type, span.start, span.end), span)
            dropped += [(span, known)] if known is not span else []
        return [*first.values()], dropped

    def _tags(self, said: Sequence[tuple[Item, Labels]]) -> list[list[str | None]]:
        """One tag per token, for all labels at once."""
        rules = get_encoding(self.options.encoding or "BIO")
        spans = [
            (n, span.type, item.starts[span.start], item.stops[span.end] + 1)
            for n, (item, one) in enumerate(said)
            for span in one.spans
        ]
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


def _who(worker: str) -> str:
    return GOLD if not worker or worker in GOLD_NAMES else worker


_start_of, _place_of = itemgetter(1), itemgetter(1, 2)


def unread_notes(not_read: Mapping[str, Sequence[str]]) -> list[str]:
    """Return what was counted but not read, with the first places of each kind."""
    notes = []
    for kind, places in sorted(not_read.items()):
        first = list(dict.fromkeys(places))
        more = ["…"] if len(first) > MAX_PLACES else []
        notes.append(f"{len(places)} {kind} are not read ({'; '.join(first[:MAX_PLACES] + more)})")
    return notes


def pieces_within(bounds: Iterable[tuple[int, int]], first: int, last: int) -> list[CharSpan]:
    """Return what places of a document cover of a part of it, in characters of that part."""
    inner = [(max(a, first) - first, min(b, last) - first) for a, b in bounds]
    return [CharSpan("", a, b) for a, b in inner if a < b]


def _touched(bounds: Sequence[tuple[int, int]], span: CharSpan) -> tuple[int, int]:
    """Return the first token that a span touches, and one past the last."""
    first = bisect_left(bounds, span.start, key=lambda bound: bound[1] - 1)
    return first, bisect_left(bounds, span.end, key=lambda bound: bound[0])


def _misplaced(text: str, span: CharSpan, unit: str) -> str:
    if span.start >= span.end:
        return "is empty" if span.start == span.end else "is empty: it ends before it begins"
    n_units = {"utf16": len(text.encode("utf-16-le", "surrogatepass")) // 2,
               "utf8": len(text.encode("utf-8", "surrogatepass"))}.get(unit, len(text))  # fmt: skip
    if span.end > n_units:
        return f"is outside the text, which has {n_units} {_UNITS[unit]}"
    which = "begins" if code_point(text, span.start, unit) is None else "ends"
    return f"{which} within a character: do the offsets count {_UNITS[unit]}?"


def settle_attributes(rows: Sequence[Mapping[str, Any]], notes: list[str]) -> list[dict[str, Any]]:
    """Turn the values of an attribute into text if they are of several types."""
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
