"""Questions that a row of tags cannot answer: spans that overlap, and any number of labels.

Both become a crowd that is flat. An item with overlapping spans has several parts, all with its
tokens: every part holds spans that do not overlap, the outermost in the first. An item with any
number of labels has one part per label, whose answer is yes or no. Every method, score and kernel
works on parts as on other items; `Crowd.wholes` names the item of every part, and what is shown to
people and written to files is put together again. `Layers` holds several questions about the same
items, a crowd each.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._arrays import rows_of
from goldspan.crowd.model import NO, YES, Answers, Crowd, item_texts, list_array
from goldspan.errors import InputError, UnknownNameError
from goldspan.spans import Codec, Tagged, find_spans
from goldspan.spans.notebook import counted
from goldspan.spans.scoring import MIN_RESAMPLES, Rates, Score, WrongSpan

if TYPE_CHECKING:
    import pandas as pd

ALIKE = 0.5
"""Intersection over union from which on two spans are taken for one with other ends."""

Unit = tuple[str, int, int]
"""A span: type, start and end; or a label with two zeros."""
T = TypeVar("T")


def deal(answers: Sequence[Sequence[Unit]]) -> list[dict[int, int]]:
    """Deal the spans of all answers to an item onto parts, so that in no answer a part overlaps.

    What several people gave, or gave with other ends or another type, is in the same part in all
    answers, also where one of them left out the span around it: spans are grouped by their places,
    unless somebody gave both, and of groups that overlap the longer is further out.

    Args:
        answers: The spans of every answer, (type, start, end) each.

    Returns:
        For every answer the part, from 0, of each of its spans by their order.

    >>> deal([[("X", 0, 5), ("Y", 1, 2)], [("Y", 1, 2)], [("X", 0, 4)]])
    [{0: 0, 1: 1}, {0: 1}, {0: 0}]
    """
    alone = [_stacked(spans) or {} for spans in answers]
    n_parts = 1 + max((part for own in alone for part in own.values()), default=0)
    if n_parts == 1:
        return alone
    sets, level = [set(spans) for spans in answers], dict[Unit, int]()
    each = [*set().union(*sets)]
    for rows in _clusters(each):
        near = {each[n] for n in rows}
        level |= _levels([near & own for own in sets])
    return [
        _stacked(spans, n_parts, level) or own for spans, own in zip(answers, alone, strict=True)
    ]


def _clusters(spans: Sequence[Unit]) -> list[list[int]]:
    """Group spans by their order: those of different groups do not overlap."""
    found: list[list[int]] = []
    last = 0
    for n in sorted(range(len(spans)), key=lambda n: spans[n][1:]):
        if not found or spans[n][1] >= last:
            found.append([])
        found[-1].append(n)
        last = max(last, spans[n][2])
    return found


def _levels(answers: Sequence[set[Unit]]) -> dict[Unit, int]:
    """Return how far inside every span is: variants of one, none of them in one answer, alike."""
    given = Counter(unit for own in answers for unit in own)
    groups: list[list[Unit]] = []
    for unit in sorted(given, key=lambda one: (-given[one], one[1] - one[2], one)):
        holding = [own for own in answers if unit in own]
        fit = [
            group
            for group in groups
            if _alike(group[0], unit) >= ALIKE and not any(own & {*group} for own in holding)
        ]
        if fit:
            max(fit, key=lambda group: _alike(group[0], unit)).append(unit)
        else:
            groups.append([unit])
    groups.sort(key=lambda group: (group[0][1] - group[0][2], group[0]))
    parts = _stacked([group[0] for group in groups]) or {}
    return {unit: parts[n] for n, group in enumerate(groups) for unit in group}


def _stacked(
    spans: Sequence[Unit], n_parts: int | None = None, level: Mapping[Unit, int] | None = None
) -> dict[int, int] | None:
    """Deal spans onto parts, the longest first, each near its level; None if one finds no place."""
    found: dict[int, int] = {}
    for rows in _clusters(spans):
        for n in sorted(rows, key=lambda n: (spans[n][1] - spans[n][2], n)):
            _, a, b = spans[n]
            used = {found[m] for m in rows if m in found and spans[m][1] < b and a < spans[m][2]}
            wanted = 0 if level is None else level[spans[n]]
            free = {*range(n_parts or len(used) + 1)} - used
            if not free:
                return None
            found[n] = min(free, key=lambda part: (abs(part - wanted), part))
    return dict(sorted(found.items()))


def _alike(one: Unit, other: Unit) -> float:
    shared = min(one[2], other[2]) - max(one[1], other[1])
    whole = max(one[2], other[2]) - min(one[1], other[1])
    return max(0, shared) / whole if whole else 0.0


def part_id(item: str, part: str, taken: Collection[str] = ()) -> str:
    """Name a part of an item after it.

    >>> part_id("s1", "2"), part_id("s1", "2", taken={"s1 (2)"})
    ('s1 (2)', 's1 (2)′')
    """
    name = f"{item} ({part})"
    while name in taken:
        name += "′"
    return name


def ask_each(crowd: Crowd, members: Sequence[Collection[str]], more: Sequence[str] = ()) -> Crowd:
    r"""Make a yes-or-no question of every label, from single labels that stand for several.

    Args:
        crowd: A crowd of single labels.
        members: For every tag of the crowd the labels that it stands for; none: no label holds.
        more: Labels that nobody chose, which are asked about too.

    >>> from goldspan import read_crowd
    >>> crowd = read_crowd(b"item,worker,label\n1,ann,x+y\n1,bob,y\n", format="long")
    >>> asked = ask_each(crowd, [tag.split("+") for tag in crowd.tagset.tags])
    >>> asked.item_ids.to_pylist(), asked.answers_of("1 (x)")
    (['1 (x)', '1 (y)'], {'ann': ['yes'], 'bob': ['no']})
    """
    labels = [*dict.fromkeys([*(label for own in members for label in own), *more])]
    n, size = len(labels), crowd.n_items
    table = np.array([[label in own for label in labels] for own in members], np.int16)
    table = np.vstack([table.reshape(len(members), n), np.full((1, n), -1, np.int16)])
    every, which = np.repeat(np.arange(size), n), np.tile(np.arange(n), size)
    wide = crowd.select_items(every)
    ids, taken = crowd.item_ids.to_pylist(), set(crowd.item_ids.to_pylist())
    names = [part_id(item, label, taken) for item in ids for label in labels]
    given = crowd.answers
    columns = {
        name: np.repeat(column, n)
        for name in ("worker", "attempt", "started", "submitted", "cost", "guideline")
        if (column := getattr(given, name)) is not None
    }
    item = np.repeat(given.item.astype(np.int64) * n, n) + np.tile(np.arange(n), len(given))
    answers = Answers(
        item=item.astype(np.int32),
        offset=np.arange(len(item) + 1),
        codes=table[given.codes].ravel(),
        **columns,
    )
    return replace(
        wide,
        item_ids=pa.array(names, pa.string()),
        answers=answers,
        tagset=Codec((NO, YES), "PLAIN"),
        gold=None if crowd.gold is None else table[crowd.gold].ravel(),
        wholes=crowd.item_ids.take(pa.array(every)),
        parts=pa.array(labels, pa.string()).take(pa.array(which)),
        label_type="text",
    )


def as_single(crowd: Crowd) -> Crowd:
    """Undo `ask_each`: single labels, each a JSON list of the labels that hold."""
    ids, index = whole_index(crowd)
    assert crowd.parts is not None
    yes, names = crowd.tagset.index[YES], crowd.parts.to_pylist()
    given = crowd.answers
    key = np.stack([index[given.item], given.worker, given.attempt.astype(np.int64)])
    keys, first, group = np.unique(key, axis=1, return_index=True, return_inverse=True)
    is_known = np.zeros(len(ids), np.bool_)
    if crowd.gold is not None:
        is_known[index[crowd.gold >= 0]] = True
    said: list[list[str]] = [[] for _ in range(keys.shape[1] + len(ids))]
    rows = np.flatnonzero(given.codes == yes)
    for g, n in zip(group.ravel()[rows].tolist(), given.item[rows].tolist(), strict=True):
        said[g].append(names[n])
    for n in [] if crowd.gold is None else np.flatnonzero(crowd.gold == yes).tolist():
        said[keys.shape[1] + index[n]].append(names[n])
    texts = [json.dumps(own, ensure_ascii=False) for own in said]
    tags = tuple(dict.fromkeys(texts))
    place = {tag: code for code, tag in enumerate(tags)}
    codes = np.array([place[text] for text in texts], np.int16)
    answers = given.take(np.sort(first))
    order = np.argsort(first, kind="stable")
    answers = replace(
        answers, item=keys[0][order].astype(np.int32), codes=codes[: keys.shape[1]][order]
    )
    gold = np.where(is_known, codes[keys.shape[1] :], np.int16(-1))
    return replace(
        crowd.whole_items,
        answers=answers,
        tagset=Codec(tags, "PLAIN"),
        gold=None if crowd.gold is None else gold,
    )


def with_label_sets(crowd: Crowd, known: Mapping[str, set[Unit] | None]) -> Crowd:
    """Return a crowd of any number of labels with the labels that are known to hold as gold."""
    assert crowd.parts is not None
    asked = set(crowd.parts.unique().to_pylist())
    more = sorted({label for own in known.values() for label, _, _ in own or ()} - asked)
    if more:  # labels that nobody chose
        flat = as_single(crowd)
        crowd = ask_each(flat, [json.loads(tag) for tag in flat.tagset.tags], more)
    return known_labels(crowd, known)


def known_labels(crowd: Crowd, known: Mapping[str, set[Unit] | None]) -> Crowd:
    """Return a crowd of any number of labels, of which all are asked about, with known ones."""
    assert crowd.parts is not None
    ids, index = whole_index(crowd)
    no, yes = (crowd.tagset.index[label] for label in (NO, YES))
    codes = [
        -1 if (own := known.get(ids[n])) is None else yes if (label, 0, 0) in own else no
        for n, label in zip(index.tolist(), crowd.parts.to_pylist(), strict=True)
    ]
    return crowd.with_gold(np.array(codes, np.int16))


def with_empty_parts(crowd: Crowd, items: Sequence[int]) -> Crowd:
    """Add a part to items in which every answer says that there is nothing; `items` may repeat."""
    n, numbers = crowd.n_items, Counter[str]()
    if crowd.wholes is None:
        first = pa.array(["1"] * n, pa.string())
        crowd = replace(crowd, wholes=crowd.item_ids, parts=first)
    assert crowd.wholes is not None
    assert crowd.parts is not None
    numbers.update(crowd.wholes.to_pylist())
    more = crowd.select_items(np.array(items, np.int64))
    names, taken = [], set(crowd.item_ids.to_pylist())
    for whole in (more.wholes or pa.array([])).to_pylist():
        numbers[whole] += 1
        names.append((part_id(whole, str(numbers[whole]), taken), str(numbers[whole])))
    given, added = crowd.answers, more.answers
    both: dict[str, Any] = {
        one.name: None if getattr(given, one.name) is None
        else np.concatenate([getattr(given, one.name), getattr(added, one.name)])
        for one in fields(given)
    }  # fmt: skip
    both["item"] = np.concatenate([given.item, added.item + np.int32(n)])
    both["offset"] = np.concatenate([given.offset, given.offset[-1] + added.offset[1:]])
    nothing = np.where(added.codes < 0, np.int16(-1), np.int16(crowd.tagset.outside))
    both["codes"] = np.concatenate([given.codes, nothing])
    columns: dict[str, Any] = {
        name: None if getattr(crowd, name) is None
        else pa.concat_arrays([getattr(crowd, name), getattr(more, name)])
        for name in ("tokens", "groups", "texts", "wholes")
    }  # fmt: skip
    ids, parts = (pa.array(column, pa.string()) for column in zip(*names, strict=True))
    tables = [one.attributes for one in (crowd, more) if one.attributes is not None]
    starts = [one.token_start for one in (crowd, more) if one.token_start is not None]
    return replace(
        crowd,
        item_ids=pa.concat_arrays([crowd.item_ids, ids]),
        parts=pa.concat_arrays([crowd.parts, parts]),
        answers=replace(given, **both),
        attributes=pa.concat_tables(tables) if tables else None,
        token_start=np.concatenate(starts) if starts else None,
        gold=None,
        **columns,
    )


def whole_index(crowd: Crowd) -> tuple[list[str], NDArray[np.int64]]:
    """Return the ids of whole items, and of which of them every item of the crowd is a part."""
    ids = crowd.item_ids if crowd.wholes is None else crowd.wholes.unique()
    return ids.to_pylist(), crowd.whole_of


def whole_ids(crowd: Crowd) -> pa.Array:
    """Return the id of the item that every item of the crowd is, or is a part of."""
    return crowd.item_ids if crowd.wholes is None else crowd.wholes


def require_flat(crowd: Crowd, what: str) -> None:
    """Raise an error, with what helps, for items with parts, with which something is not possible.

    Raises:
        InputError: Items have parts.
    """
    if crowd.wholes is None:
        return
    if crowd.is_classification:
        raise InputError(
            f"{what} is not possible where items have any number of labels: read the file with "
            "--several leave-out (several='leave-out'), which leaves out answers of several"
        )
    raise InputError(
        f"{what} is not possible with spans that overlap: read the file with --overlapping longest "
        "or outermost (overlapping='longest'), which keeps one of them at each place"
    )


def of_wholes(crowd: Crowd, how: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
    """Combine values [n_items], of the parts of every item, to [n_wholes]; flat crowds keep them.

    >>> from goldspan import read_crowd
    >>> of_wholes(read_crowd([{"item": "1", "label": "x"}]), np.minimum, np.array([3]))
    array([3])
    """
    if crowd.wholes is None:
        return values
    index = whole_index(crowd)[1]
    order = np.argsort(index, kind="stable")
    first = np.searchsorted(index[order], np.arange(index.max(initial=-1) + 1))
    return np.asarray(how.reduceat(values[order], first))


def joined_parts(crowd: Crowd) -> tuple[Crowd, NDArray[np.int64]]:
    """Return whole items with the tokens of all parts on end, and which token of the crowd each is.

    The answers have the labels of the first part alone: they say who answered.
    """
    index = whole_index(crowd)[1]
    order = np.argsort(index, kind="stable")
    n_tokens = np.bincount(index, np.diff(crowd.offsets)).astype(np.int64)
    tokens = rows_of(crowd.offsets, order)[1]
    words = crowd.tokens.flatten().take(pa.array(tokens))
    bounds = np.concatenate([[0], np.cumsum(n_tokens)])
    return replace(crowd.whole_items, tokens=list_array(words, bounds)), tokens


def by_whole(crowd: Crowd, rows: Iterable[T]) -> Iterator[tuple[str, list[tuple[str, T]]]]:
    """Group rows, one per item of a crowd, by whole items: the name of every part, and its row."""
    assert crowd.wholes is not None
    assert crowd.parts is not None
    every: dict[str, list[tuple[str, T]]] = {}
    columns = crowd.wholes.to_pylist(), crowd.parts.to_pylist(), rows
    for whole, part, row in zip(*columns, strict=True):
        every.setdefault(whole, []).append((part, row))
    yield from every.items()


def asks_each(crowd: Crowd) -> bool:
    """Whether items have any number of labels."""
    return crowd.wholes is not None and crowd.is_classification


# --------------------------------------------------------------------------------------------------
# Sets of spans or labels compared.


def sets_of(crowd: Crowd, *, chars: bool, letters: bool = False) -> dict[str, set[Unit] | None]:
    """Return the known spans or labels of every item; None where nothing is known."""
    ids, index = whole_index(crowd)
    found: dict[str, set[Unit] | None] = dict.fromkeys(ids)
    gold = crowd.gold_tagged
    n_known = np.diff(np.concatenate([[0], np.cumsum(gold.codes >= 0)])[gold.offsets])
    rows = np.arange(crowd.n_items)
    every = units_of(crowd, gold, rows, chars=chars, letters=letters)
    for n, units in zip(rows.tolist(), every, strict=True):
        if n_known[n]:
            found[ids[index[n]]] = (found[ids[index[n]]] or set()) | units
    return found


def answer_sets(crowd: Crowd, *, chars: bool) -> dict[tuple[str, str, int], set[Unit]]:
    """Return the spans or labels of every answer, by item, worker and attempt."""
    ids, index = whole_index(crowd)
    answers, workers = crowd.answers, crowd.worker_ids.to_pylist()
    found: dict[tuple[str, str, int], set[Unit]] = {}
    columns = index[answers.item], answers.worker, answers.attempt
    rows = zip(*(column.tolist() for column in columns), strict=True)
    tagged = Tagged(answers.codes, answers.offset)
    every = units_of(crowd, tagged, answers.item.astype(np.int64), chars=chars)
    for (item, worker, attempt), units in zip(rows, every, strict=True):
        found.setdefault((ids[item], workers[worker], attempt), set()).update(units)
    return found


def units_of(
    crowd: Crowd, tagged: Tagged, items: NDArray[np.int64], *, chars: bool, letters: bool = False
) -> list[set[Unit]]:
    """Return the spans, or the label, of every sequence; `items` says to which item each is.

    Spans count tokens, characters of the text, or letters: what the tokens have, blanks aside.
    """
    found: list[set[Unit]] = [set() for _ in items]
    if crowd.is_classification:
        names = None if crowd.parts is None else crowd.parts.to_pylist()
        for n, code in enumerate(tagged.codes.tolist()):
            tag = crowd.tagset.tags[code] if code >= 0 else NO
            if names is None and code >= 0:
                found[n].add((tag, 0, 0))
            elif names is not None and tag == YES:
                found[n].add((names[items[n]], 0, 0))
        return found
    spans = find_spans(tagged, crowd.tagset)
    base = tagged.offsets[spans.item]
    columns = spans.item, spans.start - base, spans.end - base, spans.type
    bounds = [text.bounds for text in item_texts(crowd)] if chars else []
    if letters:
        sizes = [[len("".join(word.split())) for word in row] for row in crowd.tokens_list]
        bounds = [[*pairwise(accumulate(row, initial=0))] for row in sizes]
    for n, a, b, kind in zip(*(column.tolist() for column in columns), strict=True):
        own = bounds[items[n]] if bounds else None
        place = (a, b) if own is None else (own[a][0], own[b - 1][1])
        found[n].add((crowd.tagset.types[kind], *place))
    return found


def score_sets(
    truth: Crowd, predicted: Crowd, *, bootstrap: int = 0, level: float = 0.95,
    random_state: int | np.random.Generator | None = 0, wrong: bool = False,
) -> Score:  # fmt: skip
    """Compare sets of spans or labels, exactly; spans that overlap each count.

    Spans are compared by characters where both sides have texts, else by tokens; where these differ
    by what they hold without blanks. Items are matched by order where no id is shared and the
    texts are the same. `accuracy` is the
    share of items whose set is right as a whole, `jaccard` the mean share of what both sides have
    in common; of spans `nested` has the rates of the outermost and of the innermost alone. The
    items of `wrong` are the whole items of the truth, its places characters or tokens as compared.
    """
    chars = truth.texts is not None and predicted.texts is not None
    words = [side.whole_items.tokens for side in (truth, predicted)]
    letters = not chars and not words[0].equals(words[1])
    mine, theirs = (sets_of(side, chars=chars, letters=letters) for side in (predicted, truth))
    if not mine.keys() & theirs.keys():
        one, other = (["".join(row) for row in side.to_pylist()] for side in words)
        mine = dict(zip(theirs, mine.values(), strict=True)) if one == other else mine
    shared = [name for name, known in theirs.items() if known is not None and name in mine]
    if not shared:
        raise InputError("no item with known labels is on both sides")
    left = [theirs[name] or set() for name in shared]
    right = [mine[name] or set() for name in shared]
    kinds = sorted({unit[0] for own in (*left, *right) for unit in own})
    types = {kind: _rates(*([{u for u in own if u[0] == kind} for own in side]
                            for side in (left, right))) for kind in kinds}  # fmt: skip
    counts = np.array([[len(a & b), len(a) + len(b)] for a, b in zip(left, right, strict=True)])
    columns = np.array([rates[:3] for rates in types.values()]) if types else np.zeros((1, 3))
    nested = {}
    if not predicted.is_classification:
        for name, sign in (("outermost", -1), ("innermost", 1)):
            nested[name] = _rates(*([_alone(own, sign) for own in side] for side in (left, right)))
    union = np.array([len(a | b) for a, b in zip(left, right, strict=True)])
    return Score(
        micro=_rates(left, right),
        macro=tuple(columns.mean(axis=0).tolist()),
        types=types,
        accuracy=float(np.mean([a == b for a, b in zip(left, right, strict=True)])),
        n_items=len(shared),
        n_tokens=0,
        policy="conlleval",
        encoding="sets of " + ("labels" if predicted.is_classification else "spans"),
        interval=_interval(counts, bootstrap, level, random_state) if bootstrap else None,
        level=level,
        wrong=_wrong(theirs, mine) if wrong else (),
        nested=nested,
        jaccard=float(np.where(union, counts[:, 0] / np.maximum(union, 1), 1.0).mean()),
    )


def _wrong(
    truth: Mapping[str, set[Unit] | None], predicted: Mapping[str, set[Unit] | None]
) -> tuple[WrongSpan, ...]:
    found = []
    for n, (name, own) in enumerate(truth.items()):
        if own is None or name not in predicted:
            continue
        other = predicted[name] or set()
        sides = {"missed": own - other, "spurious": other - own}
        rows = [WrongSpan(n, side, *one) for side, units in sides.items() for one in units]
        found += sorted(rows, key=lambda one: (one.start, one.end, one.side, one.type))
    return tuple(found)


def _rates(truth: Sequence[set[Unit]], predicted: Sequence[set[Unit]]) -> Rates:
    both = sum(len(a & b) for a, b in zip(truth, predicted, strict=True))
    return Rates.of(both, sum(map(len, predicted)), sum(map(len, truth)))


def _alone(spans: Collection[Unit], sign: int) -> set[Unit]:
    """Return the spans that overlap none that is longer (sign -1), or none that is shorter (1)."""
    kept: list[Unit] = []
    for one in sorted(spans, key=lambda unit: (sign * (unit[2] - unit[1]), unit[1], unit[0])):
        if all(one[2] <= other[1] or other[2] <= one[1] for other in kept):
            kept.append(one)
    return set(kept)


def _interval(counts: NDArray[np.int64], n: int, level: float, seed: Any) -> tuple[float, float]:
    """Percentile interval of F1 under resampling of items; counts [n_items, 2]: right, all."""
    if n < MIN_RESAMPLES:
        raise InputError(f"must be 0 or at least {MIN_RESAMPLES}, not {n}", parameter="bootstrap")
    rng = np.random.default_rng(seed)
    drawn = counts[rng.integers(len(counts), size=(n, len(counts)))].sum(axis=1)
    values = 2 * drawn[:, 0] / np.maximum(drawn[:, 1], 1)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def masi_alpha(crowd: Crowd) -> float:
    """Compute Krippendorff's alpha of sets with the MASI distance (Passonneau 2006).

    The distance of two sets is 1 - J m: J their Jaccard index, and m 1 for equal sets, 2/3 if one
    holds the other, 1/3 if they share something, 0 if nothing.
    """
    answers, whole = crowd.latest, whole_index(crowd)[1]
    key = whole[answers.item] * crowd.n_workers + answers.worker
    _, first, answer = np.unique(key, return_index=True, return_inverse=True)
    row, unit = _unit_numbers(crowd)
    given = np.unique(np.stack([answer[row], unit]), axis=1)
    bounds = np.searchsorted(given[0], np.arange(len(first) + 1)).tolist()
    every = given[1].tobytes()
    number: dict[bytes, int] = {}
    sets = np.array(
        [number.setdefault(every[8 * a : 8 * b], len(number)) for a, b in pairwise(bounds)]
    )
    units = [np.frombuffer(one, np.int64) for one in number]
    item = whole[answers.item[first]]
    shared = np.bincount(item)[item] > 1
    cells, count = np.unique(np.stack([item[shared], sets[shared]]), axis=1, return_counts=True)
    total = np.bincount(cells[0], count)
    n = int(total.sum())
    if not n:
        return float("nan")
    observed = _spread([units[one] for one in cells[1].tolist()], count, cells[0])
    kinds, where = np.unique(cells[1], return_inverse=True)
    alone = np.zeros(len(kinds), np.int64)
    own = [units[one] for one in kinds.tolist()]
    expected = _spread(own, np.bincount(where, count), alone)[0] / (n - 1)
    return float(1 - (observed / np.maximum(total - 1, 1)).sum() / expected) if expected else 1.0


def _unit_numbers(crowd: Crowd) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the latest answer and the number of every span or label that was given."""
    answers = crowd.latest
    if crowd.is_classification:
        if crowd.parts is None:
            row = np.flatnonzero(answers.codes >= 0)
            return row, answers.codes[row].astype(np.int64)
        row = np.flatnonzero(answers.codes == crowd.tagset.index[YES])
        part = crowd.parts.dictionary_encode().indices.to_numpy().astype(np.int64)
        return row, part[answers.item[row]]
    spans = find_spans(Tagged(answers.codes, answers.offset), crowd.tagset)
    base = answers.offset[spans.item]
    places = np.stack([spans.start - base, spans.end - base, spans.type])
    return spans.item.astype(np.int64), np.unique(places, axis=1, return_inverse=True)[
        1
    ].ravel().astype(np.int64)


def _spread(
    sets: Sequence[NDArray[np.int64]], count: NDArray[Any], group: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Sum the distances of all pairs of answers of every group; no set is twice in a group."""
    from scipy.sparse import csr_array

    size = np.array([len(own) for own in sets])
    bounds = np.concatenate([[0], np.cumsum(size)])
    flat = np.concatenate([np.zeros(0, np.int64), *sets])
    key = np.stack([np.repeat(group, size), flat])
    column = np.unique(key, axis=1, return_inverse=True)[1].ravel()
    holds = csr_array((np.ones(len(flat)), column, bounds), (len(sets), len(flat) + 1))
    found = np.bincount(group, count) ** 2 - np.bincount(group, count**2)
    for start in range(0, len(sets), _BLOCK):
        both = (holds[start : start + _BLOCK] @ holds.T).tocoo()
        a, b = both.row + start, both.col
        kind = np.where(both.data == np.minimum(size[a], size[b]), 2 / 3, 1 / 3)
        alike = kind * both.data / (size[a] + size[b] - both.data) * count[a] * count[b]
        found = found - np.bincount(group[a], np.where(a == b, 0, alike), len(found))
    return np.asarray(found, np.float64)


_BLOCK = 1000
"""Sets that are compared with all others at a time."""


# --------------------------------------------------------------------------------------------------
# Several questions about the same items.


@dataclass(frozen=True, eq=False, repr=False)
class ByLayer(Mapping[str, T]):
    """A frozen mapping from the names of layers, of which some have labels on a scale."""

    each: Mapping[str, T]
    ordinal: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.ordinal:
            if name not in self.each:
                raise UnknownNameError("layer", name, self.each)

    def __getitem__(self, name: str) -> T:
        """Return what a layer has."""
        if name not in self.each:
            raise KeyError(str(UnknownNameError("layer", name, self.each)))
        return self.each[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.each)

    def __len__(self) -> int:
        return len(self.each)


class Layers(ByLayer[Crowd]):
    r"""Answers to several questions about the same items: a mapping from question to crowd.

    `aggregate`, `score` and `agreement` take it and answer with a mapping; all else takes one of
    its crowds. `ordinal` names the questions whose labels are levels of a scale.

    >>> import goldspan
    >>> table = b"item,worker,mood,topic\n1,ann,glad,art\n1,bob,glad,law\n"
    >>> goldspan.read_layers(table, ["mood", "topic"])
    Layers(mood, topic: 1 item, 2 workers)
    """

    def __repr__(self) -> str:
        """Return the questions, and how many items and workers there are in all."""
        items = {name for crowd in self.values() for name in whole_index(crowd)[0]}
        workers = {name for crowd in self.values() for name in crowd.worker_ids.to_pylist()}
        size = f"{counted(len(items), 'item')}, {counted(len(workers), 'worker')}"
        return f"Layers({', '.join(self)}: {size})"

    def to_pandas(self) -> pd.DataFrame:
        """Return the tables of all crowds (`Crowd.to_pandas`) as one, with a column `layer`."""
        return stacked({name: crowd.to_pandas() for name, crowd in self.items()})


def stacked(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Put DataFrames below each other, with their names as the first column, `layer`."""
    import pandas as pd

    found = pd.concat(tables, names=["layer"]).reset_index(level="layer")
    return found.reset_index(drop=True)
