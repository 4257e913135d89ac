"""Gold from a second file: attached by item id, or by order where ids say nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat.crowd.labels import joined, read_labels
from karat.crowd.model import Crowd
from karat.crowd.options import ReadOptions
from karat.crowd.source import Source, open_source
from karat.errors import Fault, FormatError
from karat.spans import Codec

_ITEM = ("item", "task", "item_id", "task_id", "id", "question")
_LABEL = ("label", "gold", "truth", "answer", "tag")


def attach_gold(crowd: Crowd, gold: Any, options: ReadOptions) -> Crowd:
    """Give the crowd known tags from a second source.

    Args:
        crowd: The crowd.
        gold: A file with columns item and label (single labels), a file of any format that
            holds gold with tokens (CoNLL, wide, …), a DataFrame, or a `Crowd`.
        options: As for the answers.

    Raises:
        FormatError: Nothing of it fits, or an item has other tokens there.
    """
    from karat.crowd.io import _is_dataframe, get_format, guess_format

    if isinstance(gold, Crowd):
        return _from_crowd(crowd, gold, "<gold>")
    if _is_dataframe(gold):
        import narwhals as nw

        table = nw.from_native(gold, eager_only=True).to_arrow().to_pydict()
        columns = {name: ["" if v is None else str(v) for v in vs] for name, vs in table.items()}
        return _from_columns(crowd, columns, "<DataFrame>", options)
    source = open_source(gold)
    if crowd.is_classification and not source.is_folder:
        return _from_columns(crowd, _read_columns(source, options), source.name, options)
    plain = replace(options, columns={}, workers=(), strict=False)
    other = get_format(guess_format(source)).read(source, plain)
    return _from_crowd(crowd, other, source.name)


def with_gold_labels(crowd: Crowd, labels: Sequence[str], options: ReadOptions, name: str) -> Crowd:
    """Give the crowd known tags from strings, one per token; "" where unknown.

    Raises:
        FormatError: A string is no tag of the crowd's encoding.
    """
    distinct = list(dict.fromkeys(labels))
    read = read_labels(
        distinct, replace(options, encoding=options.encoding or crowd.tagset.encoding)
    )
    if read.bad:
        raise FormatError([Fault(why, file=name, worker="gold") for why in read.bad.values()])
    place = {label: i for i, label in enumerate(distinct)}
    codes = read.codes[[place[label] for label in labels]].astype(np.int16)
    tagset = joined(crowd.tagset, read.tagset)
    return recode(crowd, tagset).with_gold(translate(codes, read.tagset, tagset))


def recode(crowd: Crowd, tagset: Codec) -> Crowd:
    """Give the same crowd with a larger tag set."""
    if tagset == crowd.tagset:
        return crowd
    codes = translate(crowd.answers.codes, crowd.tagset, tagset)
    gold = None if crowd.gold is None else translate(crowd.gold, crowd.tagset, tagset)
    answers = replace(crowd.answers, codes=codes)
    return replace(crowd, tagset=tagset, answers=answers, gold=gold)


def translate(codes: NDArray[np.int16], source: Codec, target: Codec) -> NDArray[np.int16]:
    """Turn codes of one tag set into codes of another that holds its tags."""
    table = np.array([*(target.index[tag] for tag in source.tags), -1], np.int16)
    return np.asarray(table[codes])


def _read_columns(source: Source, options: ReadOptions) -> dict[str, list[str]]:
    from karat.crowd.grid import read_grid

    grid = read_grid(source, options.delimiter)
    return {name: grid.column(name).to_pylist() for name in grid.header}


def _from_columns(
    crowd: Crowd, columns: dict[str, list[str]], name: str, options: ReadOptions
) -> Crowd:
    lower = {column.lower(): column for column in reversed(list(columns))}
    item = next((lower[n] for n in _ITEM if n in lower), None)
    label = next((lower[n] for n in _LABEL if n in lower), None)
    if item is None or label is None:
        message = f"gold needs columns item (or task) and label; the file has {', '.join(columns)}"
        raise FormatError([Fault(message, file=name, line=1, kind="header")])
    known: dict[str, str] = {}
    faults = []
    for n, (key, value) in enumerate(zip(columns[item], columns[label], strict=True), start=2):
        if known.setdefault(key, value) != value:
            message = f"gold {value!r} where an earlier row has {known[key]!r}"
            faults.append(Fault(message, file=name, line=n, item=key, kind="contradictory-gold"))
    if faults:
        raise FormatError(faults)
    ids = crowd.item_ids.to_pylist()
    hit = sum(key in known for key in ids)
    if not hit:
        message = (
            f"none of its {len(known)} items is in the crowd (first: {next(iter(known), '')!r})"
        )
        raise FormatError([Fault(message, file=name, kind="gold")])
    found = with_gold_labels(crowd, [known.get(key, "") for key in ids], options, name)
    return _noted(found, f"gold for {hit} of {len(ids)} items; {len(known) - hit} others in {name}")


def _from_crowd(crowd: Crowd, other: Crowd, name: str) -> Crowd:
    """Attach by item id; where no id is known, by order if the tokens are the same."""
    source = other.gold_tagged
    mine, theirs = crowd.item_ids.to_pylist(), other.item_ids.to_pylist()
    place = {key: n for n, key in enumerate(theirs)}
    if not set(mine) & set(theirs):
        if other.tokens != crowd.tokens:
            message = "neither its item ids nor its tokens in order are those of the crowd"
            raise FormatError([Fault(message, file=name, kind="gold")])
        place = {key: n for n, key in enumerate(mine)}
    tagset = joined(crowd.tagset, other.tagset)
    crowd = recode(crowd, tagset)
    codes = translate(source.codes, other.tagset, tagset)
    gold = np.full(crowd.n_tokens, -1, np.int16)
    faults = []
    tokens, their_tokens = crowd.tokens_list, other.tokens_list
    for n, key in enumerate(mine):
        at = place.get(key)
        if at is None:
            continue
        if tokens[n] != their_tokens[at]:
            message = f"the gold has {len(their_tokens[at])} other tokens than the answers"
            faults.append(Fault(message, file=name, item=key, kind="tokens"))
            continue
        gold[crowd.offsets[n] : crowd.offsets[n + 1]] = codes[
            source.offsets[at] : source.offsets[at + 1]
        ]
    if faults:
        raise FormatError(faults)
    hit = sum(key in place for key in mine)
    return _noted(crowd.with_gold(gold), f"gold for {hit} of {len(mine)} items from {name}")


def _noted(crowd: Crowd, note: str) -> Crowd:
    report = crowd.import_report
    return replace(crowd, import_report=replace(report, notes=(*report.notes, note)))
