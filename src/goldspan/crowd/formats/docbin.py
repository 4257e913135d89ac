"""spaCy's DocBin (`.spacy`): what `spacy train` reads; an item is a Doc. Needs the extra `spacy`.

The gold is in `doc.ents` (single labels: in `doc.cats`), and in the span group "sc", the key that
spaCy's span categoriser uses; every annotator's spans are in the span group "annotator:ID". Where a
method gave confidences, the group "sc" has them as `attrs["scores"]`, one per span, as spaCy's own
span categoriser does, and `doc.cats` holds the probability of every label. The item's id, document
and attributes, and where its own tokens are, are in `doc.user_data["goldspan"]`.

A Doc's text is the item's text, code point for code point: white space that is not a single blank
becomes tokens of its own, as spaCy cuts it. An annotator's last answer counts. Of DocBins that
others wrote, `doc.ents` is gold, or the group "sc" where there are no entities; other span groups
are annotators' if they are named like that, and else not read.
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
from goldspan.crowd.formats.char_spans import CharSpan, Cut, cut_text, whole_text
from goldspan.crowd.formats.json_records import Record, collect
from goldspan.crowd.formats.span_crowd import Item, Labels, SpanCrowd
from goldspan.crowd.formats.span_exports import ItemRow, SoftLabels, item_rows
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.report import counted
from goldspan.crowd.source import Source
from goldspan.errors import Fault, FormatError, InputError, MissingExtraError

GROUP = "sc"
"""The span group of the gold: the default of spaCy's span categoriser."""
ANNOTATOR = "annotator:"
"""How the names of annotators' span groups, and of their labels in the user data, begin."""
_OURS = "goldspan"
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
    spacy = _spacy()
    vocab = spacy.blank("xx").vocab
    try:
        docs = list(spacy.tokens.DocBin().from_bytes(source.data).get_docs(vocab))
    except Exception as error:  # noqa: BLE001 - whatever its packers raise
        message = f"not a DocBin that spaCy reads ({type(error).__name__}: {error})"[:300]
        raise FormatError([Fault(message, file=source.name, kind="docbin")]) from None
    crowd = SpanCrowd(replace(source, data=b""), "docbin", options)  # its bytes are no text
    single = any(doc.cats for doc in docs) and not any(_has_spans(doc) for doc in docs)
    for number, doc in enumerate(counted(docs, options.progress), start=1):
        about = doc.user_data.get(_OURS)
        # What were lists comes back as tuples.
        known: dict[str, Any] = json.loads(json.dumps(about)) if isinstance(about, dict) else {}
        record = Record(known, source.name, number, str(known.get("item", number)))
        with collect(crowd.faults):
            _read_doc(crowd, record, doc, single=single)
    return crowd.build()


def _has_spans(doc: Any) -> bool:
    return bool(doc.has_annotation("ENT_IOB") or any(True for _ in doc.spans))


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
    if doc.has_annotation("ENT_IOB"):
        _add(crowd, record, item, doc.ents)
    elif GROUP in groups:
        _add(crowd, record, item, groups[GROUP])
    for name, group in groups.items():
        if name.startswith(ANNOTATOR):
            by = record.at(worker=name.removeprefix(ANNOTATOR))
            crowd.answer(item, by, Labels(crowd.place(item, by, _spans(group))))
        elif name != GROUP:
            crowd.leave_unread(f"spans of the group {name[:60]!r}", record, len(group))


def _add(crowd: SpanCrowd, record: Record, item: Item, spans: Any) -> None:
    crowd.set_gold(item, record, Labels(crowd.place(item, record, _spans(spans))))


def _spans(spans: Any) -> list[CharSpan]:
    return [CharSpan(span.label_, span.start_char, span.end_char) for span in spans]


def _read_cats(crowd: SpanCrowd, record: Record, item: Item, doc: Any) -> None:
    """Read the likeliest category as gold, and annotators' labels."""
    if doc.cats:
        best = max(doc.cats, key=lambda name: doc.cats[name])
        crowd.set_gold(item, record, crowd.single(item, record, best))
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
    for n, row in enumerate(item_rows(crowd, soft=soft)):
        docs.add(_doc(spacy, vocab, crowd, row, n, soft))
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
            doc.set_ents(made(row.gold), default="outside")
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
