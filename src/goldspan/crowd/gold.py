"""Gold from a second file: attached by item id, or by order where ids say nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise, zip_longest
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan._arrays import rows_of
from goldspan.crowd.detection import guess_format, is_dataframe, read_table, rows_as_table
from goldspan.crowd.formats.columns import as_strings, frame_columns
from goldspan.crowd.grid import read_grid
from goldspan.crowd.labels import joined, recode, translate, with_gold_labels, with_notes
from goldspan.crowd.layers import (
    Unit,
    sets_of,
    units_of,
    whole_index,
    with_empty_parts,
    with_label_sets,
)
from goldspan.crowd.model import Crowd, item_texts, list_array
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.registry import get_format
from goldspan.crowd.source import Source, open_source
from goldspan.errors import Fault, FormatError, InputError
from goldspan.spans import Codec, Tagged
from goldspan.spans.corpus import SpanArray, write_codes
from goldspan.spans.encoding import Role

_ITEM = ("item", "task", "item_id", "task_id", "id", "question")
_LABEL = ("gold", "truth", "label", "answer", "tag")
"""A table of answers may have both `label` and `gold`: what is known is the latter."""


def attach_gold(crowd: Crowd, gold: Any, options: ReadOptions, *, refine: bool = False) -> Crowd:
    """Return the crowd with known tags from a second source."""
    if crowd.wholes is not None:
        return _from_sets(crowd, gold, options)
    if isinstance(gold, Mapping):
        if crowd.is_classification:
            table = _frame_columns(rows_as_table(_rows_of_mapping(gold)), options)
            return _from_columns(crowd, table, options, "<mapping>")
        return _from_labels(crowd, _tags_of_mapping(gold), options, "<mapping>")
    gold = gold.as_gold() if hasattr(type(gold), "as_gold") else rows_as_table(gold)
    plain = replace(options, columns={}, workers=(), strict=False, texts=None)
    if isinstance(gold, Crowd):
        return _from_crowd(crowd, gold, "<gold>", refine)
    if is_dataframe(gold):
        if crowd.is_classification:
            return _from_columns(crowd, _frame_columns(gold, options), options, "<DataFrame>")
        return _from_crowd(crowd, read_table(gold, plain), "<DataFrame>", refine)
    source = open_source(gold, options.text_encoding, options.max_decompressed)
    if crowd.is_classification and _is_table(source):
        return _from_columns(crowd, _read_columns(source, options), options, source.name)
    other = get_format(guess_format(source)).read(source, plain)
    return _from_crowd(crowd, other, source.name, refine)


def _from_sets(crowd: Crowd, gold: Any, options: ReadOptions) -> Crowd:
    """Attach the spans or labels of whole items to their parts."""
    plain = replace(options, several="labels")
    items = crowd.whole_items.unanswered(crowd.tagset)
    side = gold.as_gold() if hasattr(type(gold), "as_gold") else gold
    if isinstance(side, Crowd) and (side.wholes is not None or not crowd.is_classification):
        other = side
    elif crowd.is_classification:
        assert crowd.parts is not None
        items = replace(items, tagset=Codec(tuple(crowd.parts.unique().to_pylist()), "PLAIN"))
        if isinstance(gold, Mapping):
            gold = {
                item: own if isinstance(own, str | None) else json.dumps([*own])
                for item, own in gold.items()
            }
        other = attach_gold(items, gold, plain)
    else:
        source = open_source(gold, options.text_encoding, options.max_decompressed)
        plain = replace(options, columns={}, workers=(), strict=False, texts=None)
        other = get_format(guess_format(source)).read(source, plain)
    known = sets_of(other, chars=crowd.texts is not None)
    ids, _ = whole_index(crowd)
    hit = [name for name in ids if known.get(name) is not None]
    if not hit:
        message = f"none of its {len(known)} items is in the crowd (first: {next(iter(known))!r})"
        raise FormatError([Fault(message, file="<gold>", kind="gold")])
    if crowd.is_classification:
        found = with_label_sets(crowd, known)
    else:
        found = _placed(crowd, {name: known[name] or set() for name in hit})
    note = f"gold for {len(hit)} of {len(ids)} items; {len(known) - len(hit)} others in its file"
    return with_notes(found, [note])


def _placed(crowd: Crowd, known: Mapping[str, set[Unit]]) -> Crowd:
    """Put every gold span where the answers have it, else into the first part with room for it."""
    types = {kind for own in known.values() for kind, _, _ in own}
    tagset = joined(crowd.tagset, Codec.from_types(types, crowd.tagset.encoding))
    found, (ids, index) = recode(crowd, tagset), whole_index(crowd)
    chars = crowd.texts is not None
    given = Tagged(crowd.latest.codes, crowd.latest.offset)
    items = crowd.latest.item.astype(np.int64)
    said = units_of(crowd, given, items, chars=chars)
    at = {
        (int(index[n]), unit[1:]): n
        for n, units in zip(items.tolist(), said, strict=True)
        for unit in units
    }
    rows: dict[int, list[int]] = {}
    for n, whole in enumerate(index.tolist()):
        rows.setdefault(whole, []).append(n)
    texts = enumerate(item_texts(crowd))
    bounds = {n: text.bounds if chars else [(i, i + 1) for i in range(len(text.bounds))]
              for n, text in texts}  # fmt: skip
    faults, added, spans = [], list[int](), list[tuple[int, int, int, int]]()
    for whole, parts in rows.items():
        placed: list[tuple[int, Unit]] = []
        first = {a: n for n, (a, _) in enumerate(bounds[parts[0]])}
        last = {b: n + 1 for n, (_, b) in enumerate(bounds[parts[0]])}
        for unit in sorted(known.get(ids[whole], ()), key=lambda one: (one[1] - one[2], one)):
            kind, a, b = unit
            if a not in first or b not in last:
                message = f"gold span {kind} [{a}, {b}) begins or ends within a token: read gold "
                message += "and answers from one file, or cut the tokens there"
                faults.append(Fault(message, file="<gold>", item=ids[whole], kind="gold"))
                continue
            taken = {n for n, one in placed if a < one[2] and one[1] < b}
            free = [n for n in (at.get((whole, (a, b)), parts[0]), *parts) if n not in taken]
            if not free:  # nobody's answer overlaps as often
                free = [crowd.n_items + len(added)]
                parts.append(free[0])
                added.append(parts[0])
            placed.append((free[0], unit))
            spans.append((free[0], first[a], last[b], tagset.types.index(kind)))
    if faults:
        raise FormatError(faults)
    found = with_empty_parts(found, added) if added else found
    item, start, end, kinds = (np.array(own, np.int64) for own in zip(*sorted(spans), strict=True))
    start, end = start + found.offsets[item], end + found.offsets[item]
    none = np.zeros(len(start), np.int32)
    array = SpanArray(start, end, kinds.astype(np.int16), item.astype(np.int32), none)
    ids, index = whole_index(found)
    tokens = np.repeat([ids[n] in known for n in index.tolist()], np.diff(found.offsets))
    gold = np.full(found.n_tokens, -1, np.int16)
    gold[tokens] = write_codes(array, found.offsets, tagset)[tokens]
    return found.with_gold(gold)


def _rows_of_mapping(gold: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """Return single labels by item id, several in a list or set, as rows; None is not known."""
    each = {
        str(item): [given] if isinstance(given, str) or not isinstance(given, Iterable) else given
        for item, given in gold.items()
    }
    rows = [
        {"item": item, "label": label}
        for item, labels in each.items()
        for label in labels
        if label is not None
    ]
    if not rows:
        raise InputError("gold is a mapping without known labels: leave it out")
    return rows


def _tags_of_mapping(gold: Mapping[Any, Any]) -> dict[str, list[Any]]:
    """Return tags in order by item id; an item of which nothing is known (None) is left out."""
    known = {str(item): tags for item, tags in gold.items() if tags is not None}
    for item, tags in known.items():
        if isinstance(tags, str) or not isinstance(tags, Iterable):
            raise InputError(f"the tags of item {item!r} must be a list, not {tags!r}")
    return {item: list(tags) for item, tags in known.items()}


def _from_labels(
    crowd: Crowd,
    known: Mapping[str, Sequence[str | None]],  # Of an item: all its tags
    options: ReadOptions,
    name: str,
    line_of: Mapping[str, int] | None = None,
) -> Crowd:
    """Attach labels by item id."""
    ids = crowd.item_ids.to_pylist()
    hit = sum(key in known for key in ids)
    if not hit:
        message = (
            f"none of its {len(known)} items is in the crowd (first: {next(iter(known), '')!r})"
        )
        raise FormatError([Fault(message, file=name, kind="gold")])
    flat: list[str | None] = []
    for key, length in zip(ids, np.diff(crowd.offsets).tolist(), strict=True):
        tags = known.get(key, [None] * length)
        if len(tags) != length:
            raise InputError(f"gold of item {key!r} has {len(tags)} tags for {length} tokens")
        flat += tags
    lines = None if line_of is None else [line_of.get(key, 0) for key in ids]
    found = with_gold_labels(crowd, flat, options, name, lines)
    note = f"gold for {hit} of {len(ids)} items; {len(known) - hit} others in {name}"
    return with_notes(found, [note])


def _is_table(source: Source) -> bool:
    """Return whether a source is text in columns: no folder, no Parquet, no JSON."""
    if source.is_folder or source.is_parquet:
        return False
    return not source.text.value.lstrip().startswith(("{", "["))


_Columns = tuple[dict[str, list[str]], list[int]]
"""A table of single labels: its columns by name, and the line of every row."""


def _read_columns(source: Source, options: ReadOptions) -> _Columns:
    grid = read_grid(source, options.delimiter)
    return {name: grid.column(name).to_pylist() for name in grid.header}, [*map(int, grid.line)]


def _frame_columns(frame: Any, options: ReadOptions) -> _Columns:
    usual, named = {*_ITEM, *_LABEL}, set(options.columns.values())
    table = frame_columns(frame, lambda all_: [n for n in all_ if n.lower() in usual or n in named])
    columns = {
        name: as_strings(table.column(name), name, "<DataFrame>").to_pylist()
        for name in table.column_names
    }
    return columns, list(range(1, len(table) + 1))


def _from_columns(crowd: Crowd, table: _Columns, options: ReadOptions, name: str) -> Crowd:
    columns, lines = table
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
    line_of: dict[str, int] = {}
    faults = []
    for key, value, line in zip(columns[item], columns[label], lines, strict=True):
        line_of.setdefault(key, line)
        if known.setdefault(key, value) != value:
            message = f"gold {value!r} where an earlier row has {known[key]!r}"
            faults.append(Fault(message, name, line, key, kind="contradictory-gold"))
    if faults:
        raise FormatError(faults)
    tags = {key: [label] for key, label in known.items()}
    found = _from_labels(crowd, tags, options, name, line_of)
    if (found.gold_tagged.codes < 0).all():
        message = "no item of it has a label: nothing is known"
        raise FormatError([Fault(message, file=name, kind="gold")])
    return found


def _from_crowd(crowd: Crowd, other: Crowd, name: str, refine: bool) -> Crowd:
    """Attach by item id; where no id is known, by order if the tokens are the same."""
    if other.wholes is not None and not crowd.is_classification:
        return _from_sets(crowd, other, ReadOptions())
    if other.gold is None:
        message = f"no item of it has gold labels (read as {other.import_report.format})"
        raise FormatError([Fault(f"{message}: nothing is known", file=name, kind="gold")])
    if refine:
        crowd, other = with_same_tokens(crowd, other)
    there = pc.index_in(crowd.item_ids, value_set=other.item_ids)
    place = np.asarray(pc.fill_null(there, -1).to_numpy(), np.int64)
    if (place < 0).all():
        if other.tokens != crowd.tokens:
            message = "neither its item ids nor its tokens in order are those of the crowd"
            raise FormatError([Fault(message, file=name, kind="gold")])
        place = np.arange(crowd.n_items)
    hit = np.flatnonzero(place >= 0)
    place = place[hit]
    mine, theirs = crowd.tokens.take(pa.array(hit)), other.tokens.take(pa.array(place))
    if not mine.equals(theirs):
        ids = crowd.item_ids.take(pa.array(hit)).to_pylist()
        rows = zip(mine.to_pylist(), theirs.to_pylist(), ids, strict=True)
        raise FormatError([_difference(a, b, name, item) for a, b, item in rows if a != b])
    tagset = joined(crowd.tagset, other.tagset)
    codes = translate(other.gold_tagged.codes, other.tagset, tagset)
    gold = np.full(crowd.n_tokens, -1, np.int16)
    gold[rows_of(crowd.offsets, hit)[1]] = codes[rows_of(other.offsets, place)[1]]
    note = f"gold for {len(hit)} of {crowd.n_items} items from {name}"
    return with_notes(recode(crowd, tagset).with_gold(gold), [note])


def with_known_labels(crowd: Crowd) -> Crowd:
    """Return a crowd without gold that has one annotator with what that one says as gold."""
    if crowd.gold is not None or crowd.n_workers != 1:
        return crowd
    gold = np.full(crowd.n_tokens, -1, np.int16)
    gold[crowd.token_of] = crowd.latest.codes
    note = f"its only annotator, {crowd.worker_ids[0].as_py()}, says what is known of it"
    return with_notes(crowd.with_gold(gold), [note])


def _difference(mine: list[str], theirs: list[str], name: str, item: str) -> Fault:
    """Describe the first token in which the gold differs from the answers."""
    pairs = zip_longest(mine, theirs)
    token, (one, other) = next((n, pair) for n, pair in enumerate(pairs) if pair[0] != pair[1])
    have, has = ("nothing" if word is None else repr(word) for word in (one, other))
    message = f"the gold has {has} where the answers have {have}: both must show the same tokens"
    return Fault(message, name, 0, item, token, kind="tokens")


# --------------------------------------------------------------------------------------------------
# Two crowds of the same texts with other tokens: texts are cut where somebody's spans begin or end,
# so answers and gold that were read from two files may differ. Both are cut where either one is.


def with_same_tokens(left: Crowd, right: Crowd) -> tuple[Crowd, Crowd]:
    """Cut the tokens of two crowds alike where items of one id have the same characters."""
    place = {name: n for n, name in enumerate(right.item_ids.to_pylist())}
    mine: dict[int, set[int]] = {}
    theirs: dict[int, set[int]] = {}
    tokens, others = left.tokens_list, right.tokens_list
    for n, name in enumerate(left.item_ids.to_pylist()):
        at = place.get(name)
        if at is None or tokens[n] == others[at] or "".join(tokens[n]) != "".join(others[at]):
            continue
        mine[n] = theirs[at] = {*_ends(tokens[n]), *_ends(others[at])}
    return split_tokens(left, mine), split_tokens(right, theirs)


def _ends(tokens: Sequence[str]) -> Iterator[int]:
    """Where tokens end in their characters."""
    return accumulate(map(len, tokens))


def split_tokens(crowd: Crowd, points: Mapping[int, set[int]]) -> Crowd:
    """Cut the tokens of some items at places of their characters, those of all tokens on end."""
    if not points:
        return crowd
    full = Codec.from_types(crowd.tagset.types, crowd.tagset.encoding)
    if set(crowd.tagset.tags) <= set(full.tags):
        crowd = recode(crowd, full)
    starts = None if crowd.token_start is None else crowd.token_start.tolist()
    offsets = crowd.offsets.tolist()
    n_pieces = np.ones(crowd.n_tokens, np.int64)
    tokens: list[str] = []
    begins: list[int] = []
    for n, words in enumerate(crowd.tokens_list):
        at = points.get(n)
        if at is None:
            tokens += words
            begins += starts[offsets[n] : offsets[n + 1]] if starts else []
            continue
        for t, (word, end) in enumerate(zip(words, _ends(words), strict=True), start=offsets[n]):
            first = end - len(word)
            bounds = [0, *sorted(p - first for p in at if first < p < end), len(word)]
            n_pieces[t] = len(bounds) - 1
            tokens += [word[a:b] for a, b in pairwise(bounds)]
            begins += [starts[t] + a for a in bounds[:-1]] if starts else []
    ends = np.concatenate([[0], np.cumsum(n_pieces)])
    answers = crowd.answers
    pieces = n_pieces[rows_of(crowd.offsets, answers.item)[1]]
    answers = replace(
        answers,
        codes=_spread(answers.codes, pieces, crowd.tagset),
        offset=np.concatenate([[0], np.cumsum(pieces)])[answers.offset].astype(np.int64),
    )
    gold = None if crowd.gold is None else _spread(crowd.gold, n_pieces, crowd.tagset)
    return replace(
        crowd,
        tokens=list_array(pa.array(tokens, pa.string()), ends[crowd.offsets]),
        token_start=np.array(begins, np.int32) if starts else None,
        answers=answers,
        gold=gold,
    )


def _spread(
    codes: NDArray[np.int16], n_pieces: NDArray[np.int64], codec: Codec
) -> NDArray[np.int16]:
    """Return the tags of the pieces of tokens."""
    found = np.repeat(codes, n_pieces)
    if codec.rules.is_plain or (n_pieces == 1).all():
        return found
    ends = np.cumsum(n_pieces)
    first, last = np.zeros(len(found), np.bool_), np.zeros(len(found), np.bool_)
    first[ends - n_pieces], last[ends - 1] = True, True
    roles = np.append(codec.roles, Role.OUTSIDE)[found]
    role = roles.copy()
    spans = (roles != Role.OUTSIDE) & (found >= 0)
    opens, closes = (np.isin(roles, pair) for pair in _OPEN_CLOSE)
    role[spans & ~(opens & first) & ~(closes & last)] = Role.INSIDE
    role[spans & opens & first & ~(closes & last)] = Role.BEGIN
    role[spans & closes & last & ~(opens & first)] = Role.END
    kinds = np.append(codec.type_of, -1)[found]
    found[spans] = codec.code_of[role[spans], kinds[spans]]
    return found


_OPEN_CLOSE = ((Role.BEGIN, Role.SINGLE), (Role.END, Role.SINGLE))
