"""LeWiDi: the JSON of the shared tasks on learning with disagreements; labels, in and out.

One object has the items by their ids; each has its `text`, its `annotations` as "0,1,1" and its
`annotators` as "Ann1,Ann2,Ann3" (in the third edition an object of labels by annotator, who may
give several: "0,1").
`soft_label` and `hard_label` follow from them, so that they are not read beside them: the hard
label is the majority, and no gold. Where the annotations are withheld it is read as gold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from goldspan.crowd.atomic import write_text
from goldspan.crowd.formats.assignments import Assignment, read_assignments
from goldspan.crowd.formats.json_records import (
    Record,
    collect,
    first_objects,
    keys_of,
    read_records,
    shown,
)
from goldspan.crowd.formats.span_crowd import SpanCrowd
from goldspan.crowd.formats.span_exports import SoftLabels, beside, dump, item_rows
from goldspan.crowd.layers import asks_each
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source
from goldspan.errors import InputError

_SIGNS = {"hard_label", "soft_label", "number of annotations", "annotation task"}
_GOLD = "gold"
"""Goldspan's own field: what is known, where `hard_label` is the majority elsewhere."""
_TAKEN = {
    *("text", "annotations", "annotators", "number of annotators", "attributes", "tokens"),
    *("token_start", _GOLD, *_SIGNS - {"annotation task"}),
}


def sniff(source: Source) -> bool:
    """Return whether there is an object of items with annotations and annotators."""
    return any(_is_ours(one) for record in first_objects(source) for one in _members(record))


def _members(one: Mapping[str, Any]) -> list[Any]:
    """Return the items of an object; it may be one itself, in a list or on a line of its own."""
    return [one] if "annotations" in one or "text" in one else list(one.values())[:20]


def _is_ours(one: Any) -> bool:
    return isinstance(one, dict) and "annotations" in one and bool(one.keys() & _SIGNS)


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read everybody's labels, or the hard labels where they are withheld."""
    crowd = SpanCrowd(source, "lewidi", options)
    rows: list[Assignment] = []
    for number, record in enumerate(read_records(source, crowd.faults)):
        if _members(record.value) == [record.value]:
            key = keys_of(options, "item", "id", "item_id")
            inner = {record.name(*key) or str(number): record.value}
        else:
            inner = record.value
        for name, value in inner.items():
            with collect(crowd.faults):
                rows += _rows_of(record.at(item=name).inner(value, "each item"), crowd)
    if n_hard := len({row.record.item for row in rows if _has_hard(row)}):
        message = f"{n_hard} hard labels are the majority of the annotations: not read as gold"
        crowd.builder.notes.append(f"{message} (--columns gold=hard_label reads them so)")
    return read_assignments(crowd, rows, single=True)


def _rows_of(record: Record, crowd: SpanCrowd) -> Iterator[Assignment]:
    """Yield an item with what is known of it, and everybody's labels."""
    options = crowd.options
    text = record.find(*keys_of(options, "text", "text"))
    if isinstance(text, dict):  # a pair, such as context and response
        text = "\n".join(f"{key}: {value}" for key, value in text.items())
    text = Record({"text": text}, *record[1:]).text("text") or record.item
    pairs = _pairs(record)
    keys = keys_of(options, "gold", _GOLD, *(() if pairs else ("hard_label",)))
    gold = record.find(*keys)
    known = {} if gold is None or gold == "" else {"": crowd.chosen(_labels(record, gold))}
    item = Assignment(record, text, attributes=record.others(_TAKEN))
    yield item._replace(gold=known, once=True)
    for who, labels in pairs:
        yield item._replace(record=record.at(worker=who), answers={"": labels})


def _has_hard(row: Assignment) -> bool:
    """Whether an item has a hard label beside its annotations, which is not read."""
    return bool(row.answers) and row.record.find("hard_label") is not None


def _pairs(record: Record) -> list[tuple[str, list[str]]]:
    """Return annotators and labels of an item."""
    given, named = record.find("annotations"), record.string("annotators")
    if isinstance(given, dict):
        return [(who, _labels(record, label)) for who, label in given.items()]
    labels = given.split(",") if isinstance(given, str) else given
    if labels is None or labels in ([], [""]):
        return []
    workers = [f"Ann{n + 1}" for n in range(len(labels))] if named is None else named.split(",")
    if not isinstance(labels, list) or len(labels) != len(workers):
        message = f"{shown(given)} are not as many annotations as annotators ({shown(named)})"
        raise record.error(message, "annotations")
    pairs = zip(workers, labels, strict=True)
    return [(who.strip(), _labels(record, label)) for who, label in pairs]


def _labels(record: Record, given: object) -> list[str]:
    """Return what is chosen: one label, several with commas between, or a list."""
    if isinstance(given, list):
        return [_word(record, one) for one in given]
    word = _word(record, given)
    chosen = [one.strip() for one in word.split(",") if one.strip()]
    return chosen if len(chosen) > 1 else [word] if word else []


def _word(record: Record, label: object) -> str:
    if not isinstance(label, str | int | float) or isinstance(label, bool):
        raise record.error(f"a label must be a string or a number, not {shown(label)}", "label")
    return str(label).strip()


def write(crowd: Crowd, path: Path, soft: SoftLabels | None = None) -> None:
    """Write everybody's last labels, the shares or probabilities of labels, and the gold."""
    if not crowd.is_classification or asks_each(crowd):
        raise InputError("LeWiDi's JSON holds single labels: write another format, such as spans")
    for name in (*crowd.worker_ids.to_pylist(), *crowd.tagset.tags):
        if "," in name or name != name.strip():
            raise InputError(f"{name!r} cannot stand in LeWiDi's lists: rename it, without a comma")
    write_text(path, _lines(crowd, soft))


def _lines(crowd: Crowd, soft: SoftLabels | None) -> Iterator[str]:
    labels = crowd.tagset.tags
    yield "{"
    for n, row in enumerate(item_rows(crowd)):
        said = [(who, spans[0].type) for _, who, spans in row.answers if spans]
        votes = Counter(label for _, label in said)
        shares = {name: round(votes[name] / len(said), 4) if said else 0.0 for name in labels}
        if soft is not None and soft.token_probs is not None:
            probs = soft.token_probs[n].tolist()
            shares = {name: round(p, 4) for name, p in zip(labels, probs, strict=False)}
        known = row.gold[0].type if row.gold else None
        line = {
            **row.fields,
            "number of annotations": len(said),
            "annotations": ",".join(label for _, label in said),
            "annotators": ",".join(who for who, _ in said),
            "hard_label": known or (votes.most_common(1)[0][0] if votes else None),
            "soft_label": shares,
            **beside(row.attributes, _TAKEN),
        }
        if known is not None:
            line[_GOLD] = known
        yield f"{',' if n else ''}\n{dump(row.id)}: {dump(line)}"
    yield "\n}\n"
