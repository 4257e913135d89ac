"""Gold from a second file: attached by item id, or by order where ids say nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd.labels import joined, listed_bad_labels, read_labels
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source, open_source
from goldspan.errors import Fault, FormatError
from goldspan.spans import Codec

_ITEM = ("item", "task", "item_id", "task_id", "id", "question")
_LABEL = ("label", "gold", "truth", "answer", "tag")


def attach_gold(crowd: Crowd, gold: Any, options: ReadOptions, *, refine: bool = False) -> Crowd:
    """Return the crowd known tags from a second source.

    Args:
        crowd: The crowd.
        gold: A file with columns item and label (single labels), a file of any format that
            holds gold with tokens (CoNLL, wide, …), a DataFrame or list of dicts, a `Crowd`, or
            a `Consensus`.
        options: As for the answers.
        refine: Whether tokens may be cut where the gold cuts the same text; otherwise the tokens
            stay as they are, as whatever is known of them by number needs.

    Raises:
        FormatError: Nothing of it fits, or an item has other tokens there.
    """
    from goldspan.crowd.io import get_format, guess_format, is_dataframe, rows_as_table

    gold = gold.as_gold() if hasattr(type(gold), "as_gold") else rows_as_table(gold)
    if isinstance(gold, Crowd):
        return _from_crowd(crowd, gold, "<gold>", refine)
    plain = replace(options, columns={}, workers=(), strict=False)
    if is_dataframe(gold):
        from goldspan.crowd.formats.tables import read_table

        if not crowd.is_classification:
            return _from_crowd(crowd, read_table(gold, plain), "<DataFrame>", refine)
        return _from_columns(crowd, _frame_columns(gold, options), "<DataFrame>", options)
    source = open_source(gold, options.text_encoding, options.max_decompressed)
    if crowd.is_classification and not source.is_folder:
        return _from_columns(crowd, _read_columns(source, options), source.name, options)
    other = get_format(guess_format(source)).read(source, plain)
    return _from_crowd(crowd, other, source.name, refine)


def with_gold_labels(
    crowd: Crowd,
    labels: Sequence[str | None],
    options: ReadOptions,
    name: str,
    lines: Sequence[int] | None = None,
) -> Crowd:
    """Return the crowd known tags from strings, one per token; None where unknown.

    Args:
        crowd: The crowd.
        labels: [n_tokens].
        options: How labels are read.
        name: Where they are from, for messages.
        lines: Line of every label in the file, 0 unknown, if they are from one.

    Raises:
        FormatError: A string is no tag of the crowd's encoding.
    """
    distinct = [label for label in dict.fromkeys(labels) if label is not None]
    read = read_labels(
        distinct, replace(options, encoding=options.encoding or crowd.tagset.encoding)
    )
    place: dict[str | None, int] = {label: i for i, label in enumerate(distinct)}
    where = []
    if read.bad:
        ids = crowd.item_ids.to_pylist()
        for token, label in enumerate(labels):
            if place.get(label, -1) in read.bad:
                n = int(np.searchsorted(crowd.offsets, token, side="right")) - 1
                line, at = lines[token] if lines else 0, token - int(crowd.offsets[n])
                at = -1 if crowd.is_classification else at
                where.append((place[label], Fault("", name, line, ids[n], at, "gold")))
    crowd = _with_faults(crowd, listed_bad_labels(read.bad, where, options))
    table = np.append(read.codes, np.int16(-1))
    codes = table[[place.get(label, -1) for label in labels]].astype(np.int16)
    tagset = joined(crowd.tagset, read.tagset)
    return recode(crowd, tagset).with_gold(translate(codes, read.tagset, tagset))


def recode(crowd: Crowd, tagset: Codec) -> Crowd:
    """Return the same crowd with a larger tag set."""
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


@dataclass(frozen=True)
class _Columns:
    """A table of single labels: its columns by name, and the line of every row."""

    columns: dict[str, list[str]]
    lines: list[int]


def _read_columns(source: Source, options: ReadOptions) -> _Columns:
    from goldspan.crowd.grid import read_grid

    grid = read_grid(source, options.delimiter)
    columns = {name: grid.column(name).to_pylist() for name in grid.header}
    return _Columns(columns, grid.line.tolist())


def _frame_columns(frame: Any, options: ReadOptions) -> _Columns:
    from goldspan.crowd.formats.columns import as_strings, frame_columns

    usual, named = {*_ITEM, *_LABEL}, set(options.columns.values())
    table = frame_columns(frame, lambda all_: [n for n in all_ if n.lower() in usual or n in named])
    columns = {
        name: as_strings(table.column(name), name, "<DataFrame>").to_pylist()
        for name in table.column_names
    }
    return _Columns(columns, list(range(1, len(table) + 1)))


def _from_columns(crowd: Crowd, table: _Columns, name: str, options: ReadOptions) -> Crowd:
    columns = table.columns
    lower = {column.lower(): column for column in reversed(list(columns))}

    def find(role: str, usual: tuple[str, ...]) -> str | None:
        named = options.columns.get(role)
        if named in columns:
            return named
        return next((lower[n] for n in usual if n in lower), None)

    item, label = find("item", _ITEM), find("gold", ()) or find("label", _LABEL)
    if item is None or label is None:
        message = f"gold needs columns item (or task) and label; the file has {', '.join(columns)}"
        raise FormatError([Fault(message, file=name, line=1, kind="header")])
    known: dict[str, str] = {}
    at: dict[str, int] = {}
    faults = []
    for key, value, line in zip(columns[item], columns[label], table.lines, strict=True):
        if known.setdefault(key, value) != value:
            message = f"gold {value!r} where an earlier row has {known[key]!r}"
            faults.append(Fault(message, name, line, key, kind="contradictory-gold"))
        at.setdefault(key, line)
    if faults:
        raise FormatError(faults)
    ids = crowd.item_ids.to_pylist()
    hit = sum(key in known for key in ids)
    if not hit:
        message = (
            f"none of its {len(known)} items is in the crowd (first: {next(iter(known), '')!r})"
        )
        raise FormatError([Fault(message, file=name, kind="gold")])
    lines = [at.get(key, 0) for key in ids]
    found = with_gold_labels(crowd, [known.get(key) for key in ids], options, name, lines)
    return _noted(found, f"gold for {hit} of {len(ids)} items; {len(known) - hit} others in {name}")


def _from_crowd(crowd: Crowd, other: Crowd, name: str, refine: bool) -> Crowd:
    """Attach by item id; where no id is known, by order if the tokens are the same."""
    if other.gold is None:
        message = f"there is no gold in it: it was read as {other.import_report.format}, {other!r}"
        raise FormatError([Fault(message, file=name, kind="gold")])
    if refine:
        from goldspan.crowd.refine import with_same_tokens

        crowd, other = with_same_tokens(crowd, other)
    if crowd.item_ids.equals(other.item_ids) and crowd.tokens.equals(other.tokens):
        return _whole(crowd, other, name)
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
            faults.append(_difference(tokens[n], their_tokens[at], name, key))
            continue
        gold[crowd.offsets[n] : crowd.offsets[n + 1]] = codes[
            source.offsets[at] : source.offsets[at + 1]
        ]
    if faults:
        raise FormatError(faults)
    hit = sum(key in place for key in mine)
    return _noted(crowd.with_gold(gold), f"gold for {hit} of {len(mine)} items from {name}")


def _whole(crowd: Crowd, other: Crowd, name: str) -> Crowd:
    """Attach the gold of the same items, without a look at each: a campaign does it every round."""
    tagset = joined(crowd.tagset, other.tagset)
    gold = translate(other.gold_tagged.codes, other.tagset, tagset)
    n = crowd.n_items
    return _noted(recode(crowd, tagset).with_gold(gold), f"gold for {n} of {n} items from {name}")


def _difference(mine: list[str], theirs: list[str], name: str, item: str) -> Fault:
    """Describe the first token in which the gold differs from the answers."""
    pairs = zip_longest(mine, theirs)
    token, (one, other) = next((n, pair) for n, pair in enumerate(pairs) if pair[0] != pair[1])
    have, has = ("nothing" if word is None else repr(word) for word in (one, other))
    message = f"the gold has {has} where the answers have {have}: both must show the same tokens"
    return Fault(message, name, 0, item, token, kind="tokens")


def _with_faults(crowd: Crowd, faults: list[Fault]) -> Crowd:
    if not faults:
        return crowd
    report = crowd.import_report
    return replace(crowd, import_report=replace(report, faults=(*report.faults, *faults)))


def _noted(crowd: Crowd, note: str) -> Crowd:
    report = crowd.import_report
    return replace(crowd, import_report=replace(report, notes=(*report.notes, note)))
