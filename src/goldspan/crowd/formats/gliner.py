"""GLiNER: the JSON that it is fine-tuned on, items with their tokens and gold spans.

`ner` has spans as [first token, last token, label], `ner_labels` all labels of the crowd: without
them GLiNER asks for those of an item's own spans alone, and learns nothing from one without spans.
An item without gold is left out, because GLiNER would learn that there is nothing in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from goldspan.crowd.atomic import write_text
from goldspan.crowd.formats.char_spans import char_span, cut_text
from goldspan.crowd.formats.json_records import (
    Record,
    collect,
    first_objects,
    keys_of,
    read_records,
    shown,
)
from goldspan.crowd.formats.span_crowd import Labels, SpanCrowd
from goldspan.crowd.formats.span_exports import (
    SoftLabels,
    array_lines,
    beside,
    item_rows,
    reject_single,
)
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source

_KEYS = {
    *("tokenized_text", "ner", "item", "doc", "text", "token_start", "confidence", "scores"),
    *("attributes", "ner_labels"),
}


def sniff(source: Source) -> bool:
    """Return whether there are tokenized texts with lists of spans."""
    return any(
        isinstance(one.get("tokenized_text"), list) and isinstance(one.get("ner"), list)
        for one in first_objects(source)
    )


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read items with gold spans."""
    crowd = SpanCrowd(source, "gliner", options)
    for number, record in enumerate(read_records(source, crowd.faults, options.progress), start=1):
        with collect(crowd.faults):
            _read_item(crowd, record, number)
    return crowd.build()


def _read_item(crowd: SpanCrowd, record: Record, number: int) -> None:
    options = crowd.options
    name = record.name(*keys_of(options, "item", "item", "id"))
    record = record.at(item=name or str(number))
    tokens = record.required(record.strings("tokenized_text"), "tokenized_text")
    cut = cut_text(record, record.string("text"), tokens, record.items("token_start"))
    group = record.name(*keys_of(options, "doc", "doc"), may_be_empty=True)
    item = crowd.item(record, cut, group=group, attributes=record.others(_KEYS), once=True)
    crowd.leave_unread("confidences of items", record, record.find("confidence") is not None)
    crowd.leave_unread("scores of spans", record, len(record.items("scores") or []))
    if record.find("ner") is None:
        return
    spans = []
    for one in record.items("ner") or []:
        if not isinstance(one, list) or len(one) != 3 or type(one[1]) is not int:
            message = (
                f"a span must be a list of first token, last token and label, not {shown(one)}"
            )
            raise record.error(message, "span")
        spans.append(char_span(record, one[2], one[0], one[1] + 1))
    crowd.set_gold(item, record, Labels(crowd.place_tokens(item, record, cut, spans)))


def write(crowd: Crowd, path: Path, soft: SoftLabels | None = None) -> None:
    """Write a JSON array, an item per line."""
    reject_single(crowd, "GLiNER's files hold")
    _ = crowd.gold_tagged  # raises where there is none
    write_text(path, array_lines(_objects(crowd, soft)))


def _objects(crowd: Crowd, soft: SoftLabels | None) -> Iterator[dict[str, Any]]:
    for row in item_rows(crowd, soft=soft):
        if row.gold is None:
            continue
        first = {a: n for n, (a, _) in enumerate(row.text.bounds)}
        last = {b: n for n, (_, b) in enumerate(row.text.bounds)}
        one: dict[str, Any] = {
            "tokenized_text": crowd.tokens_list[row.number],
            "ner": [[first[one.start], last[one.end], one.type] for one in row.gold],
            "ner_labels": list(crowd.tagset.types),
            "item": row.id,
        }
        if row.group is not None:
            one["doc"] = row.group
        if row.text.is_own:
            one["text"] = row.text.value
            if crowd.token_start is not None:
                one["token_start"] = [start for start, _ in row.text.bounds]
        if soft is not None:
            one |= {"confidence": row.score, "scores": row.sure}
        yield one | beside(row.attributes, _KEYS)
