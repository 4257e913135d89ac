"""spaCy's training data as JSON: lists of a text and its entities or categories; gold only.

Also the file of the NER annotators for spaCy (`classes` and `annotations`), objects with a text and
`cats`, and the training JSON of spaCy 2 (`paragraphs`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from goldspan.crowd.formats.assignments import Assignment, read_assignments
from goldspan.crowd.formats.char_spans import CharSpan, cut_text
from goldspan.crowd.formats.json_records import Record, collect, keys_of, read_values, shown
from goldspan.crowd.formats.span_crowd import GOLD, Labels, SpanCrowd
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source
from goldspan.errors import Fault, GoldspanError

_LABELS = ("entities", "cats", "spans")
_UNREAD = ("links", "relations", "heads", "deps", "tags")


def sniff(source: Source) -> bool:
    """Return whether there are pairs of a text and its labels."""
    if source.is_folder or not source.data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"[", b"{")):
        return False
    try:
        values = list(islice(read_values(source, []), 5))
    except GoldspanError:
        return False
    return any(True for value, file, line in values for _ in _texts(value, file, line))


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read texts with gold labels."""
    crowd = SpanCrowd(source, "spacy-json", options)
    records: list[Record] = []
    for value, file, line in read_values(source, crowd.faults):
        found = list(_texts(value, file, line))
        if not found and value is not None:
            message = f"expected a list of a text and its labels, found {shown(value)}"
            crowd.faults.append(Fault(message, file, line, kind="not-a-pair"))
        records += found
    wanted = options.columns.get("label")
    has = {key for one in records for key in _LABELS if one.value["labels"].get(key)}
    key = wanted or next((one for one in ("entities", "spans", "cats") if one in has), "entities")
    names = {name for one in records for name in _cats(one)}
    rows = []
    for number, record in enumerate(records, start=1):
        with collect(crowd.faults):
            name = record.name(*keys_of(options, "item", "id", "item")) or str(number)
            known = record.at(item=name, worker=GOLD)
            if "sentence" in record.value:
                _read_sentence(crowd, known)
            else:
                rows.append(_row(crowd, known, key, names))
    return read_assignments(crowd, rows, single=key == "cats")


def _texts(value: Any, file: str, line: int) -> Iterator[Record]:
    """Yield the texts that a value holds, with their labels."""
    if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str):
        if isinstance(value[1], dict) and any(key in value[1] for key in _LABELS):
            yield Record({"text": value[0], "labels": value[1]}, file, line)
    elif isinstance(value, dict) and isinstance(value.get("paragraphs"), list):
        for one in Record(value, file, line).inners("paragraphs"):
            sentences = one.inners("sentences")
            for sentence in sentences:
                yield one._replace(value={"sentence": sentence.inners("tokens"), "labels": {}})
    elif isinstance(value, dict) and isinstance(value.get("annotations"), list):
        for pair in value["annotations"]:
            yield from _texts(pair, file, line) if isinstance(pair, list) else ()
    elif isinstance(value, dict) and isinstance(value.get("cats"), dict) and "text" in value:
        yield Record({**value, "labels": {key: value.get(key) for key in _LABELS}}, file, line)


def _cats(record: Record) -> dict[str, float]:
    """Return the categories of a text with their values."""
    found = record.value["labels"].get("cats")
    if not isinstance(found, dict | None) or not all(
        isinstance(one, int | float) for one in (found or {}).values()
    ):
        raise record.error(f"cats must hold a number for every category, not {shown(found)}")
    return found or {}


def _row(crowd: SpanCrowd, record: Record, key: str, names: set[str]) -> Assignment:
    text = str(record.required(record.text("text"), "text"))
    labels = record.inner(record.value["labels"], "the labels")
    for other, found in labels.value.items():
        if other != key and found and other in (*_LABELS, *_UNREAD):
            crowd.leave_unread(other, record, len(found) if isinstance(found, dict | list) else 1)
    listed = labels.find(key)
    if key == "cats":
        listed = [name for name, value in _cats(record).items() if value >= 0.5]
        if not listed and len(names) == 1 and _cats(record):
            listed = [f"not {next(iter(names))}"]
    elif isinstance(listed, dict):  # groups of spans, by their names
        if len(listed) > 1:
            message = f"several groups of spans ({', '.join(listed)}): leave one in the file"
            raise record.error(message, "groups")
        listed = next(iter(listed.values()), [])
    elif listed is None and (key in labels.value or key == "entities"):
        raise record.error(f"{key} must be a list of spans, not {shown(listed)}")
    elif listed is None:
        return Assignment(record.at(worker=""), text, once=True)
    return Assignment(record, text, {key: listed}, once=True)


def _read_sentence(crowd: SpanCrowd, record: Record) -> None:
    """Read the tokens of a sentence with their BILUO tags."""
    rows: list[Record] = record.value["sentence"]
    tokens = [str(one.required(one.string("orth"), "orth")) for one in rows]
    spans: list[CharSpan] = []
    for n, one in enumerate(rows):
        mark, _, kind = (one.string("ner") or "O").partition("-")
        if mark in {"B", "U"}:
            spans.append(CharSpan(kind, n, n + 1))
        elif mark in {"I", "L"} and spans and spans[-1].end == n and spans[-1].type == kind:
            spans[-1] = spans[-1]._replace(end=n + 1)
        elif mark not in {"O", ""}:
            raise record.error(f"{one.string('ner')!r} does not follow from the tag before it")
    cut = cut_text(record, None, tokens)
    item = crowd.item(record, cut, once=True)
    crowd.set_gold(item, record, Labels(crowd.place_tokens(item, record, cut, spans)))
