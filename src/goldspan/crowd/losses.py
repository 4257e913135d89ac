"""What a file does not give back: found by reading it again and comparing, not by rules.

`lost_in_file` reads what was written with the reader of its format and `differences` compares all
of it: every item, text, token, label and answer, however many there are. A difference is named
once, with a count and the first example. What is gained is not a loss where it follows from what is
there (the places of tokens in a text that is known); what was made up (a text of tokens with blanks
between) is named.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import eq
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._arrays import rows_of
from goldspan.crowd.formats.char_spans import CharSpan
from goldspan.crowd.formats.span_exports import SpanRows, chars_of
from goldspan.crowd.gold import attach_gold
from goldspan.crowd.grid import read_grid
from goldspan.crowd.layers import answer_sets, sets_of
from goldspan.crowd.model import Answers, Crowd, item_texts, known_texts
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.registry import get_format, get_writer
from goldspan.crowd.source import open_source
from goldspan.errors import GoldspanError
from goldspan.spans import Tagged
from goldspan.spans.notebook import counted

_MAX_SHOWN = 60


def losses(crowd: Crowd, format: str) -> list[str]:  # noqa: A002 - the word users know
    r"""Name what of a crowd a format cannot hold, by writing it to a temporary place.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"item,worker,label\n1,ann,x\n")
    >>> losses(crowd, "parquet")
    []
    """
    module = get_writer(format)
    with tempfile.TemporaryDirectory(prefix="goldspan-") as folder:
        path = Path(folder) / "crowd"
        module.write(crowd, path)
        return lost_in_file(crowd, path, module)


def lost_in_file(crowd: Crowd, path: Path, module: Any) -> list[str]:
    """Read a file that was written and name what of the crowd it does not give back."""
    if not hasattr(module, "read"):
        if hasattr(module, "cannot_hold"):
            return list(module.cannot_hold(crowd))
        return ["(unknown: goldspan has no reader for this format to compare with)"]

    def read(encoding: str | None) -> Crowd:
        found: Crowd = module.read(open_source(path), ReadOptions(encoding=encoding))
        return found

    return _compared(crowd, path, read)


def lost_in_gold(mine: Crowd, path: Path, name: str) -> list[str]:
    """Read a file of an aggregation and name what of the items and their labels it lacks."""
    # Spans are written as such: in which encoding they are read is up to the reader.
    options = ReadOptions(encoding=mine.tagset.encoding).with_labels(mine.tagset.tags)

    def read(encoding: str | None) -> Crowd:
        del encoding  # that of the labels is named above
        if name == "csv":
            bare = replace(mine, gold=None, texts=None, token_start=None)
            known = attach_gold(bare, path, options)
            return replace(known, texts=_text_column(path, known))
        module = get_format({"jsonl": "spans"}.get(name, name))
        found: Crowd = module.read(open_source(path), options)
        return replace(found, attributes=None, groups=None)

    return [one for one in _compared(mine, path, read) if not one.startswith(UNUSED)]


UNUSED = "tags that nobody used"
"""How the loss of tags begins that stand nowhere."""


def _text_column(path: Path, crowd: Crowd) -> pa.Array | None:
    """The column `text` of a table of single labels, in the order of the crowd's items."""
    grid = read_grid(open_source(path), ",")
    if "text" not in grid.header:
        return None
    rows = zip(grid.column("item").to_pylist(), grid.column("text").to_pylist(), strict=True)
    texts = dict(rows)
    return pa.array([texts.get(name) for name in crowd.item_ids.to_pylist()], pa.string())


def _compared(crowd: Crowd, path: Path, read: Callable[[str | None], Crowd]) -> list[str]:
    """Read, once more with the encoding named where it is not seen, and compare."""
    wanted = crowd.tagset.encoding
    why, back = "", None
    try:
        back = read(None)
    except GoldspanError as error:
        first = str(error).split("\n")[0]
        why = _short(first.removeprefix(str(path)).removeprefix(":").strip(), 200)
    named = []
    if back is None or back.tagset.encoding != wanted:
        try:
            again = read(wanted)
        except GoldspanError:
            again = None
        if again is not None and again.tagset.encoding == wanted:
            back = again
            named = [f"the encoding {wanted} (read it back with encoding={wanted!r})"]
    if back is None:
        return [f"everything: the file is rejected when it is read back ({why})"]
    found = differences(crowd, back)
    if back.tagset.encoding != wanted:
        named = [f"the encoding {wanted} ({back.tagset.encoding} comes back)"]
    return [*named, *found]


def differences(crowd: Crowd, back: Crowd) -> list[str]:
    """Name what of a crowd is not in another that was read from its file."""
    # The encodings of the two are not compared; tags are, by name
    if crowd.wholes is not None or back.wholes is not None:
        return list(_differing_sets(crowd, back))
    compared = _Compared(crowd, back)
    return [
        *compared.items(),
        *compared.tokens(),
        *compared.texts(),
        *compared.groups(),
        *compared.attributes(),
        *compared.tags(),
        *compared.gold(),
        *compared.workers(),
        *compared.answers(),
    ]


def _differing_sets(crowd: Crowd, back: Crowd) -> Iterator[str]:
    """Compare crowds of which one has items in parts: the items, and what was said of them."""
    if back.wholes is None and crowd.wholes is not None:
        ids, there = crowd.item_ids.to_pylist(), set(back.item_ids.to_pylist())
        more = [one for one in ids if one in there and one not in set(crowd.wholes.to_pylist())]
        if more:  # it has a row of tags per item
            why = "labels" if crowd.is_classification else "spans, which overlap"
            what = f"that {counted(len(more), 'item')} are parts of others, for their {why}"
            yield f"{what}: {_one(more[0])} is new"
            yield from differences(replace(crowd, wholes=None, parts=None), back)
            return
    compared = _Compared(crowd.whole_items, back.whole_items)
    for of in ("items", "texts", "groups", "attributes", "workers"):
        yield from getattr(compared, of)()
    chars = crowd.texts is not None and back.texts is not None
    ids, there = (side.item_ids.to_pylist() for side in (compared.mine, compared.back))
    names = {ids[n]: there[m] for n, m in compared.pairs}
    ours, theirs = (answer_sets(side, chars=chars) for side in (crowd, back))
    if wrong := [k for k, own in ours.items() if theirs.get((names.get(k[0], ""), *k[1:])) != own]:
        item, worker, _ = wrong[0]
        yield f"{counted(len(wrong), 'answer')}: item {_one(item)}, worker {_one(worker)}"
    if crowd.gold is None:
        return
    known = {} if back.gold is None else sets_of(back, chars=chars)
    mine = sets_of(crowd, chars=chars)
    if gone := [name for name, own in mine.items() if known.get(names.get(name, "")) != own]:
        yield f"the gold of {counted(len(gone), 'item')}: item {_one(gone[0])}"


class _Compared:
    """Two crowds, one that was written and one that was read, and which items are the same."""

    def __init__(self, mine: Crowd, back: Crowd) -> None:
        self.mine, self.back = mine, back
        self.pairs = _pairs(mine, back)
        self.is_single = mine.is_classification and back.is_classification
        none = len(mine.tagset.tags)  # a tag that the other tag set lacks
        codes = [mine.tagset.index.get(tag, none) for tag in back.tagset.tags]
        self.code_of = np.array([*codes, -1], np.int16)

    def items(self) -> Iterator[str]:
        mine, back = self.mine.item_ids.to_pylist(), self.back.item_ids.to_pylist()
        ours, theirs = {n for n, _ in self.pairs}, {m for _, m in self.pairs}
        if gone := [name for n, name in enumerate(mine) if n not in ours]:
            yield f"{counted(len(gone), 'item')}: {_one(gone[0])} is missing"
        if more := [name for m, name in enumerate(back) if m not in theirs]:
            yield f"{counted(len(more), 'item')} that are none: {_one(more[0])} is new"
        if renamed := [(mine[n], back[m]) for n, m in self.pairs if mine[n] != back[m]]:
            yield f"ids of {counted(len(renamed), 'item')}: {_becomes(*renamed[0])}"
        if any(a > b for (_, a), (_, b) in pairwise(self.pairs)):
            yield "the order of items"

    def tokens(self) -> Iterator[str]:
        if not self.is_single and not self.mine.tokens.equals(self.back.tokens):
            both = self.mine.tokens_list, self.back.tokens_list
            yield from self._changed("tokens", *both, _other_token)

    def texts(self) -> Iterator[str]:
        mine, back = known_texts(self.mine), known_texts(self.back)
        if self.is_single:
            # The text of a single label may come back as its token, and the other way round.
            mine, back = _or_token(mine, self.mine), _or_token(back, self.back)
        if gone := [n for n, m in self.pairs if mine[n] is not None and back[m] is None]:
            yield f"the text of {counted(len(gone), 'item')}: {self._item(gone[0])}"
        known = [(n, m) for n, m in self.pairs if mine[n] is not None and back[m] is not None]
        if changed := [(n, m) for n, m in known if mine[n] != back[m]]:
            n, m = changed[0]
            place = _first_difference(str(mine[n]), str(back[m]))
            what = f"{self._item(n)} differs at character {place}"
            yield f"the text of {counted(len(changed), 'item')}: {what}"
        if made := [n for n, m in self.pairs if mine[n] is None and back[m] is not None]:
            what = "the tokens with blanks between stand for it"
            yield f"that the text of {counted(len(made), 'item')} is not known ({what})"
        if _is_empty(self.mine.texts) and self.back.texts is None and not self.is_single:
            yield "a column of texts without a value"
        if self.mine.token_start is not None:
            yield from self._starts(self.mine.token_start, kept=not changed)

    def _starts(self, mine: NDArray[np.int32], *, kept: bool) -> Iterator[str]:
        """Character offsets of tokens; those that follow from a text are not a loss."""
        back = self.back.token_start
        if back is None:
            if mine.any() or not self.mine.is_classification:
                yield f"the character offsets of {counted(len(self.pairs), 'item')}"
            return
        wrong = []
        for n, m in self.pairs if kept else ():
            one = mine[self.mine.offsets[n] : self.mine.offsets[n + 1]]
            other = back[self.back.offsets[m] : self.back.offsets[m + 1]]
            if len(one) == len(other) and (one != other).any():
                wrong.append(n)
        if wrong:
            yield f"the character offsets of {counted(len(wrong), 'item')}: {self._item(wrong[0])}"

    def groups(self) -> Iterator[str]:
        mine, back = self.mine.groups, self.back.groups
        both = _listed(mine, self.mine), _listed(back, self.back)
        yield from self._changed("the documents", *both, _becomes)
        if _is_empty(mine) and back is None:
            yield "a column of documents without a value"

    def attributes(self) -> Iterator[str]:
        mine, back = self.mine.attributes, self.back.attributes
        ours: dict[str, list[Any]] = {} if mine is None else mine.to_pydict()
        theirs: dict[str, list[Any]] = {} if back is None else back.to_pydict()
        if mine is not None and not ours and back is None:
            yield "a table of attributes without a column"
        for name, values in ours.items():
            if name in theirs:
                yield from self._changed(f"attribute {_one(name)}", values, theirs[name], _becomes)
            else:
                yield f"attribute {_one(name)} of {counted(len(self.pairs), 'item')}"
        for name in (name for name in theirs if name not in ours):
            yield f"that there is no attribute {_one(name)}"

    def _changed(
        self, name: str, one: Sequence[Any], other: Sequence[Any], how: Callable[[Any, Any], str]
    ) -> Iterator[str]:
        """Name the items whose values differ, and how those of the first one do."""
        if wrong := [(n, m) for n, m in self.pairs if one[n] != other[m]]:
            n, m = wrong[0]
            what = f"{self._item(n)}, {how(one[n], other[m])}"
            yield f"{name} of {counted(len(wrong), 'item')}: {what}"

    def tags(self) -> Iterator[str]:
        mine, back = set(self.mine.tagset.tags), set(self.back.tagset.tags)
        gold = np.zeros(0, np.int16) if self.mine.gold is None else self.mine.gold
        codes = np.unique(np.concatenate([self.mine.answers.codes, gold]))
        used = {self.mine.tagset.tags[code] for code in codes[codes >= 0].tolist()}
        if gone := sorted(mine - back - used):
            yield f"{UNUSED}: {', '.join(map(_one, gone[:5]))}"
        if more := sorted(back - mine):
            yield f"that there are no tags {', '.join(map(_one, more[:5]))}"

    def gold(self) -> Iterator[str]:
        mine, back = self.mine.gold, self.back.gold
        if mine is None:
            if back is not None and (back >= 0).any():
                yield "that there is no gold"
            return
        if back is None and (mine < 0).all():
            yield "a column of gold without a tag"
        given = np.full(self.back.n_tokens, -1, np.int16) if back is None else back
        one, other = Tagged(mine, self.mine.offsets), Tagged(given, self.back.offsets)
        if wrong := self._labels(one, other, [(n, m, n, m) for n, m in self.pairs]):
            n, what = wrong[0]
            yield f"the gold of {counted(len(wrong), 'item')}: {self._item(n)}, {what}"

    def workers(self) -> Iterator[str]:
        mine, back = self.mine.worker_ids.to_pylist(), self.back.worker_ids.to_pylist()
        there, ours = set(back), set(mine)
        if gone := [name for name in mine if name not in there]:
            yield f"{counted(len(gone), 'worker')}: {_one(gone[0])} is missing"
        if more := [name for name in back if name not in ours]:
            yield f"that there is no worker {_one(more[0])}"
        known, found = self.mine.known_facts, self.back.known_facts
        if bare := [name for name, facts in known.items() if found.get(name) != facts]:
            what = ", ".join(known[bare[0]])
            yield f"facts about {counted(len(bare), 'worker')}: {what} of {_one(bare[0])}"

    def answers(self) -> Iterator[str]:
        mine, back = self.mine.answers, self.back.answers
        worker_of = {name: w for w, name in enumerate(self.mine.worker_ids.to_pylist())}
        workers = [worker_of.get(name, -1) for name in self.back.worker_ids.to_pylist()]
        item_of = {m: n for n, m in self.pairs}
        items = [item_of.get(m, -1) for m in range(self.back.n_items)]
        ours = _by_key(mine, range(self.mine.n_items), range(self.mine.n_workers))
        theirs = _by_key(back, items, workers)
        gone = [key for key in ours if key not in theirs]
        again = {key for key in gone if key[2] and (*key[:2], 0) in theirs}
        if again:
            yield f"{counted(len(again), 'repeated answer')} (the one that counts is there)"
        if first := [key for key in gone if key not in again]:
            given = rows_of(mine.offset, np.array([ours[key] for key in first]))[1]
            skipped = (mine.codes[given] < 0).all()
            what, end = (
                (" in which every token was skipped", "") if skipped else ("", " is missing")
            )
            yield f"{counted(len(first), 'answer')}{what}: {self._where(first[0])}{end}"
        if more := [key for key in theirs if key not in ours]:
            what = self._where(more[0])
            yield f"that {counted(len(more), 'answer')} of those that come back are none: {what}"
        both = [key for key in ours if key in theirs]
        here, there = ([side[key] for key in both] for side in (ours, theirs))
        yield from self._answered(both, here, there)
        if not again and (mine.attempt[here] != back.attempt[there]).any():
            yield "the numbers of repeated answers"
        for name, what in _TIMES.items():
            column, found = getattr(mine, name), getattr(back, name)
            given = np.full(len(there), -1) if found is None else found[there]
            differ = np.flatnonzero(given >= 0 if column is None else column[here] != given)
            count = counted(len(differ), "answer")
            if column is None and len(differ):
                yield f"that nothing is known of {what} {count}"
            elif len(differ):
                how = " (other values come back)" if (given[differ] >= 0).any() else ""
                yield f"{what} {count}{how}"
            elif found is None and column is not None and not (column >= 0).any():
                yield f"a column {name!r} without a value"

    def _answered(self, keys: list[_Key], here: list[int], there: list[int]) -> Iterator[str]:
        """Name the answers with other labels, those first in which tokens were skipped."""
        mine, back = self.mine.answers, self.back.answers
        item_of = dict(self.pairs)
        rows = [(n, item_of[n], a, b) for (n, _, _), a, b in zip(keys, here, there, strict=True)]
        one, other = Tagged(mine.codes, mine.offset), Tagged(back.codes, back.offset)
        wrong, key_of = self._labels(one, other, rows), dict(zip(here, keys, strict=True))
        for is_skipped, title in ((True, "skipped tokens of"), (False, "labels of")):
            if listed := [row for row in wrong if row[1].startswith(_SKIPPED) == is_skipped]:
                a, what = listed[0]
                yield f"{title} {counted(len(listed), 'answer')}: {self._where(key_of[a])}, {what}"

    def _labels(
        self, one: Tagged, other: Tagged, rows: Sequence[tuple[int, int, int, int]]
    ) -> list[tuple[int, str]]:
        """Compare sequences of labels; items of other tokens by the characters of their spans."""
        # rows: item here, item there, sequence here, sequence there
        mine, back = ([*crowd.tagset.tags, None] for crowd in (self.mine, self.back))
        wrong: list[tuple[int, str]] = []
        spans: _CharSpans | None = None
        for n, m, a, b in rows:
            codes = one.codes[one.offsets[a] : one.offsets[a + 1]]
            seen = other.codes[other.offsets[b] : other.offsets[b + 1]]
            if len(codes) != len(seen):
                spans = spans or _CharSpans(self.mine, self.back, one, other)
                if what := spans.difference(n, m, a, b):
                    wrong.append((a, what))
                continue
            differ = np.flatnonzero(codes != self.code_of[seen])
            if len(differ):
                token = int(differ[0])
                ours, theirs = (
                    "no label" if tag is None else _one(tag)
                    for tag in (mine[codes[token]], back[seen[token]])
                )
                is_skipped = (codes[differ] < 0).all()
                start = f"{_SKIPPED}{token}" if is_skipped else f"token {token}, {ours}"
                wrong.append((a, f"{start} comes back as {theirs}"))
        return wrong

    def _item(self, n: int) -> str:
        return f"item {_one(self.mine.item_ids[n].as_py())}"

    def _where(self, key: _Key) -> str:
        return f"{self._item(key[0])}, worker {_one(self.mine.worker_ids[key[1]].as_py())}"


_Key = tuple[int, int, int]
"""Item, worker, and how many of the worker's answers to the item come after."""
_SKIPPED = "skipped token "
_TIMES = {
    "started": "the starting times of",
    "submitted": "the submission times of",
    "cost": "the costs of",
    "guideline": "the guideline versions of",
}


class _CharSpans:
    """Spans of two crowds in characters, for items that are cut into other tokens."""

    def __init__(self, mine: Crowd, back: Crowd, one: Tagged, other: Tagged) -> None:
        self.texts = [list(item_texts(crowd)) for crowd in (mine, back)]
        self.rows = [SpanRows.of(one, mine.tagset), SpanRows.of(other, back.tagset)]

    def difference(self, n: int, m: int, a: int, b: int) -> str:
        mine = chars_of(self.texts[0][n], self.rows[0].spans[a])
        back = chars_of(self.texts[1][m], self.rows[1].spans[b])
        if set(mine) == set(back):
            return ""
        gone: list[CharSpan] = [span for span in mine if span not in back]
        if gone:
            return f"characters {gone[0].start} to {gone[0].end} ({gone[0].type})"
        more = next(span for span in back if span not in mine)
        return f"characters {more.start} to {more.end} come back as {more.type}"


def _pairs(mine: Crowd, back: Crowd) -> list[tuple[int, int]]:
    """Match the items by id; where ids are new, by their tokens in order."""
    ours, theirs = mine.item_ids.to_pylist(), back.item_ids.to_pylist()
    in_order = [(n, n) for n in range(len(ours))]
    if ours == theirs:
        return in_order
    place = {name: m for m, name in enumerate(theirs)}
    if set(theirs) <= set(ours):
        return [(n, place[name]) for n, name in enumerate(ours) if name in place]
    both = mine.tokens_list, back.tokens_list
    same_sizes = [*map(len, both[0])] == [*map(len, both[1])]
    if same_sizes and 2 * sum(map(eq, *both)) >= len(ours):
        return in_order
    waiting: dict[tuple[str, ...], deque[int]] = defaultdict(deque)
    for m, row in enumerate(both[1]):
        waiting[tuple(row)].append(m)
    found = [
        (n, queue.popleft()) for n, row in enumerate(both[0]) if (queue := waiting[tuple(row)])
    ]
    return in_order if not found and len(ours) == len(theirs) else found


def _by_key(answers: Answers, items: Sequence[int], workers: Sequence[int]) -> dict[_Key, int]:
    """Number answers by item, worker and what comes after, as we number these; -1 is none."""
    seen: Counter[tuple[int, int]] = Counter()
    found: dict[_Key, int] = {}
    who, what = answers.worker.tolist(), answers.item.tolist()
    for a in np.argsort(-answers.attempt.astype(np.int64), kind="stable").tolist():
        item, worker = items[what[a]], workers[who[a]]
        if item >= 0 and worker >= 0:
            found[item, worker, seen[item, worker]] = a
            seen[item, worker] += 1
    return dict(sorted(found.items()))


def _or_token(texts: Sequence[str | None], crowd: Crowd) -> list[str | None]:
    rows = zip(texts, crowd.tokens.flatten().to_pylist(), strict=True)
    return [token if text is None else text for text, token in rows]


def _first_difference(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def _listed(column: pa.Array | None, crowd: Crowd) -> list[Any]:
    return [None] * crowd.n_items if column is None else column.to_pylist()


def _other_token(one: Sequence[str], other: Sequence[str]) -> str:
    """Say which is the first token that differs, and how."""
    place = _first_difference(one, other)
    words = [row[place] if place < len(row) else None for row in (one, other)]
    return f"token {place}, {_becomes(*words)}"


def _is_empty(column: pa.Array | None) -> bool:
    return column is not None and column.null_count == len(column)


def _becomes(one: object, other: object) -> str:
    shown = ["nothing" if value is None else _one(value) for value in (one, other)]
    return f"{shown[0]} comes back as {shown[1]}"


def _one(value: object) -> str:
    return _short(repr(value), _MAX_SHOWN)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
