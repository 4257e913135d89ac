"""spaCy's DocBin (`.spacy`): what `spacy train` reads; an item is a Doc. Needs the extra `spacy`.

The gold is in `doc.ents` (single labels: in `doc.cats`) and in the span group "sc", every
annotator's spans in the group "annotator:ID"; the item's id, document, attributes and tokens are in
`doc.user_data["goldspan"]`. White space that is not a single blank becomes tokens of its own, as
spaCy cuts it. An annotator's last answer counts. Tokens whose entity annotation is missing have no
label.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from goldspan.crowd.atomic import new_file
from goldspan.crowd.formats.char_spans import CharSpan, Cut, cut_text, split_overlaps, whole_text
from goldspan.crowd.formats.json_records import Record, collect, one_of, only_one
from goldspan.crowd.formats.span_crowd import GOLD, Item, Labels, SpanCrowd
from goldspan.crowd.formats.span_exports import ItemRow, SoftLabels, item_rows
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source, counted
from goldspan.errors import Fault, FormatError, InputError, MissingExtraError

GROUP = "sc"
"""The span group of the gold: the default of spaCy's span categoriser."""
SPANS, CATS = "spans", "cats"
"""What the entities with everybody's spans, and the categories, are called as questions."""
ANNOTATOR = "annotator:"
"""How the names of annotators' span groups, and of their labels in the user data, begin."""
_OURS = "goldspan"
_ROUNDED = 0.01
"""By how much the sum of rounded probabilities may differ from 1."""
_PEEK = 64
"""Bytes of a DocBin that its first keys fit in."""


def sniff(source: Source) -> bool:
    """Return whether the bytes are a packed DocBin."""
    if source.is_folder or source.data[:1] != b"\x78":
        return False
    try:
        head = zlib.decompressobj().decompress(source.data[:4096], _PEEK)
    except zlib.error:
        return False
    return b"version" in head and b"attrs" in head


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read the Docs as items."""
    docs = _docs(source)
    # Its bytes are no text
    crowd = SpanCrowd(replace(source, data=b""), "docbin", options, counted=True)
    names, wanted = _names(docs), options.columns.get("label")
    if wanted is not None:
        only_one(Record({}, source.name), names, f"no spans or categories {wanted!r}", wanted)
    elif len(names) > 1:
        crowd.builder.notes.append(one_of(names))
    single = (wanted or (names or [SPANS])[0]) == CATS
    empty = []
    for number, doc in enumerate(counted(docs, options.progress), start=1):
        about = doc.user_data.get(_OURS)
        # What were lists comes back as tuples.
        known: dict[str, Any] = json.loads(json.dumps(about)) if isinstance(about, dict) else {}
        record = Record(known, source.name, number, str(known.get("item", number)))
        if not known and not doc.text.strip():
            empty.append(record.item)
            continue
        with collect(crowd.faults):
            _read_doc(crowd, record, doc, single=single)
    if empty:
        crowd.builder.notes.append(f"{len(empty)} empty Docs are left out (first: item {empty[0]})")
    return crowd.build()


def layers(source: Source, options: ReadOptions) -> list[str]:  # noqa: ARG001
    """Return what the Docs have: "spans" (entities, everybody's spans), "cats", other groups."""
    return _names(_docs(source))


def _docs(source: Source) -> list[Any]:
    spacy = _spacy()
    vocab = spacy.blank("xx").vocab
    try:
        return list(spacy.tokens.DocBin().from_bytes(source.data).get_docs(vocab))
    except Exception as error:  # noqa: BLE001 - whatever its packers raise
        message = f"not a DocBin that spaCy reads ({type(error).__name__}: {error})"[:300]
        raise FormatError([Fault(message, file=source.name, kind="docbin")]) from None


def _names(docs: Sequence[Any]) -> list[str]:
    groups = dict.fromkeys(name for doc in docs for name in doc.spans)
    others = [name for name in groups if name != GROUP and not name.startswith(ANNOTATOR)]
    has_spans = len(others) < len(groups) or any(doc.has_annotation("ENT_IOB") for doc in docs)
    has_cats = any(doc.cats for doc in docs)
    return [SPANS] * has_spans + [CATS] * has_cats + others


def _read_doc(crowd: SpanCrowd, record: Record, doc: Any, *, single: bool) -> None:
    item = crowd.item(
        record,
        _cut(record, doc, single=single),
        group=record.string("doc"),
        attributes=record.find("attributes"),
        once=True,
    )
    if single:
        _read_cats(crowd, record, item, doc)
        return
    groups = dict(doc.spans.items())
    wanted = crowd.options.columns.get("label", SPANS)
    if wanted != SPANS:
        crowd.set_gold(
            item, record, Labels(crowd.place(item, record, _spans(record, groups[wanted])))
        )
        return
    if doc.has_annotation("ENT_IOB"):
        known = Labels(crowd.place(item, record, _spans(record, doc.ents)), _missing(item, doc))
        crowd.set_gold(item, record, known)
        named = set(_spans(record, doc.ents))
        others = [one for one in _spans(record, groups.get(GROUP, ())) if one not in named]
        crowd.leave_unread(f"spans of the group {GROUP!r} beside doc.ents", record, len(others))
    elif GROUP in groups:
        crowd.set_gold(
            item, record, Labels(crowd.place(item, record, _spans(record, groups[GROUP])))
        )
    crowd.leave_unread("categories (doc.cats) beside spans", record, len(doc.cats))
    for name, group in groups.items():
        crowd.leave_unread("confidences of spans", record, len(group.attrs.get("scores", ())))
        if name.startswith(ANNOTATOR):
            by = record.at(worker=name.removeprefix(ANNOTATOR))
            crowd.answer(item, by, Labels(crowd.place(item, by, _spans(by, group))))
        elif name != GROUP:
            crowd.leave_unread(f"spans of the group {name[:60]!r}", record, len(group))


def _spans(record: Record, spans: Any) -> list[CharSpan]:
    found = [CharSpan(span.label_, span.start_char, span.end_char) for span in spans]
    faults = [
        record.fault(f"the span [{a}, {b}) has no label: give it one, or remove it", "span")
        for label, a, b, _ in found
        if not label
    ]
    if faults:
        raise FormatError(faults)
    return found


def _missing(item: Item, doc: Any) -> list[tuple[int, int]]:
    """The item's tokens of which spaCy does not know whether they are in an entity."""
    unknown = {token.idx + n for token in doc if not token.ent_iob for n in range(len(token))}
    return [(n, n + 1) for n, (start, _) in enumerate(item.bounds) if start in unknown]


def _read_cats(crowd: SpanCrowd, record: Record, item: Item, doc: Any) -> None:
    """Read the category that holds as gold, and annotators' labels."""
    # The categories above 0.5, or else the likeliest of probabilities that sum to 1
    held = [name for name, score in doc.cats.items() if score > 0.5]
    if not held and doc.cats and abs(sum(doc.cats.values()) - 1) < _ROUNDED:
        top = max(doc.cats.values())
        held = [name for name, score in doc.cats.items() if score == top]
    if len(held) == 1 or (held and record.value):
        crowd.set_gold(item, record, crowd.single(item, record, held[0]))
    elif held:
        message = f"categories {', '.join(map(repr, held))} hold, and an item has one label: none"
        crowd.leave_out(record.at(worker=GOLD), f"{message} is taken", "several categories")
    elif doc.cats:
        crowd.leave_unread("sets of categories of which none is above 0.5", record)
    soft = [score for score in doc.cats.values() if score not in {0, 1}]
    crowd.leave_unread("probabilities of categories", record, len(soft))
    labels: Mapping[str, str] = record.find("labels") or {}
    for worker, label in labels.items():
        by = record.at(worker=str(worker))
        crowd.answer(item, by, crowd.single(item, by, str(label)))


def _cut(record: Record, doc: Any, *, single: bool) -> Cut:
    """The tokens of an item: those that goldspan kept, else spaCy's without white space."""
    if single:
        return whole_text(doc.text)
    starts, tokens = record.items("token_start"), record.strings("tokens")
    if tokens is not None:
        return cut_text(record, doc.text, tokens, starts)
    words = [(token.text, token.idx) for token in doc if not token.is_space]
    return cut_text(record, doc.text, [word for word, _ in words], [start for _, start in words])


# --------------------------------------------------------------------------------------------------
# Writing.


def write(crowd: Crowd, path: Path, soft: SoftLabels | None = None) -> None:
    """Write a Doc per item."""
    if crowd.tagset.rules.is_plain and not crowd.is_classification:
        raise InputError("plain tags of tokens are not spans: write conll, or another format")
    spacy = _spacy()
    vocab = spacy.blank("xx").vocab
    docs = spacy.tokens.DocBin(attrs=["ORTH", "SPACY", "ENT_IOB", "ENT_TYPE"], store_user_data=True)
    for row in item_rows(crowd, soft=soft):
        docs.add(_doc(spacy, vocab, crowd, row, row.number, soft))
    with new_file(path) as temporary:
        temporary.write_bytes(docs.to_bytes())


def _doc(
    spacy: Any, vocab: Any, crowd: Crowd, row: ItemRow, n: int, soft: SoftLabels | None
) -> Any:
    words, spaces, places = cut_for_spacy(row.text.value, row.text.bounds)
    doc = spacy.tokens.Doc(vocab, words=words, spaces=spaces)
    about: dict[str, Any] = {"item": row.id}
    if row.group is not None:
        about["doc"] = row.group
    if row.attributes:
        about["attributes"] = row.attributes
    if crowd.is_classification:
        if row.gold is not None:
            doc.cats = _cats(crowd, row.gold[0].type, n, soft)
        about["labels"] = {worker: spans[0].type for _, worker, spans in row.answers if spans}
    else:
        about["tokens"] = crowd.tokens_list[n]
        if row.text.is_own:
            about["token_start"] = [start for start, _ in row.text.bounds]
        first = {a: i for i, (a, _) in enumerate(places)}
        last = {b: i + 1 for i, (_, b) in enumerate(places)}

        def made(spans: Sequence[CharSpan]) -> list[Any]:
            return [
                spacy.tokens.Span(doc, first[one.start], last[one.end], label=one.type)
                for one in spans
            ]

        if row.gold is None:
            doc.set_ents([], missing=[doc[:]])
        else:
            codes = crowd.gold_tagged.codes[crowd.offsets[n] : crowd.offsets[n + 1]]
            skipped = [
                doc[first[a] : last[b]]
                for (a, b), code in zip(row.text.bounds, codes.tolist(), strict=True)
                if code < 0
            ]
            doc.set_ents(made(split_overlaps(row.gold)[0]), missing=skipped, default="outside")
            attrs = {} if row.sure is None else {"scores": row.sure}
            doc.spans[GROUP] = spacy.tokens.SpanGroup(
                doc, name=GROUP, spans=made(row.gold), attrs=attrs
            )
        for _, worker, spans in row.answers:  # a later answer takes the place of an earlier one
            doc.spans[ANNOTATOR + worker] = made(spans)
    doc.user_data[_OURS] = about
    return doc


def _cats(crowd: Crowd, label: str, n: int, soft: SoftLabels | None) -> dict[str, float]:
    if soft is None or soft.token_probs is None:
        return {tag: float(tag == label) for tag in crowd.tagset.tags}
    probs = np.round(soft.token_probs[n].astype(np.float64), 6).tolist()
    return dict(zip(crowd.tagset.tags, probs, strict=True))


def cut_for_spacy(
    text: str, bounds: Sequence[tuple[int, int]]
) -> tuple[list[str], list[bool], list[tuple[int, int]]]:
    """Cut a text as spaCy's Doc needs it: words, whether a blank follows each, and their places.

    >>> cut_for_spacy(" Ann  sang", [(1, 4), (6, 10)])[:2]
    ([' ', 'Ann', ' ', 'sang'], [False, True, False, False])
    """
    pieces = list(_pieces(text, bounds))
    words = [text[a:b] for a, b in pieces]
    stops = [b for _, b in pieces]
    starts = [a for a, _ in pieces[1:]] + [len(text)]
    return words, [b > a for a, b in zip(stops, starts, strict=True)], pieces


def _pieces(text: str, bounds: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The words and what lies between them, but for a single blank after a word."""
    place = 0
    for start, end in [*bounds, (len(text), len(text))]:
        gap = place + (place > 0 and text.startswith(" ", place) and place < start)
        if gap < start:
            yield gap, start
        if start < end:
            yield start, end
        place = end


def check() -> None:
    """Raise `MissingExtraError` if spaCy is not installed."""
    _spacy()


def _spacy() -> Any:
    try:
        import spacy
        import spacy.tokens
    except ImportError:
        raise MissingExtraError("spacy", "spacy", "a DocBin") from None
    return spacy
