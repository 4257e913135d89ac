"""What a file does not give back: found by reading it again and comparing, not by rules.

`lost_in_file` reads what was written with the reader of its format and `differences` compares all
of it: every item, text, token, label and answer, however many there are. A difference is named
once, with a count and the first example. What is gained is not a loss where it follows from what is
there (the places of tokens in a text that is known); what was made up (a text of tokens with blanks
between) is named.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.crowd.formats.char_spans import CharSpan
from goldspan.crowd.formats.span_exports import SpanRows, chars_of
from goldspan.crowd.gold import attach_gold
from goldspan.crowd.grid import read_grid
from goldspan.crowd.model import Crowd, item_texts, known_texts
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.registry import get_format, get_writer
from goldspan.crowd.source import open_source
from goldspan.errors import GoldspanError
from goldspan.spans import Codec, Tagged

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
    compared = _Compared.of(crowd, back)
    return [
        *compared.items(),
        *compared.tokens(),
        *compared.texts(),
        *compared.facts(),
        *compared.tags(),
        *compared.gold(),
        *compared.workers(),
        *compared.answers(),
    ]


@dataclass(frozen=True, eq=False)
class _Compared:
    """Two crowds, and which items of them are the same."""

    mine: Crowd  # What was written
    back: Crowd  # What was read
    pairs: NDArray[np.int64]  # [n_pairs, 2], indices of items that are the same
    same: NDArray[np.bool_]  # [n_pairs], whether their tokens have the same number

    @classmethod
    def of(cls, mine: Crowd, back: Crowd) -> _Compared:
        pairs = np.array(_pairs(mine, back), np.int64).reshape(-1, 2)
        sizes = np.diff(mine.offsets)[pairs[:, 0]], np.diff(back.offsets)[pairs[:, 1]]
        return cls(mine, back, pairs, sizes[0] == sizes[1])

    def items(self) -> list[str]:
        mine, back = self.mine.item_ids.to_pylist(), self.back.item_ids.to_pylist()
        if mine == back:
            return []
        lost = []
        gone = sorted({*range(len(mine))} - {*self.pairs[:, 0].tolist()})
        if gone:
            lost.append(f"{_count(gone, 'item')}: {_one(mine[gone[0]])} is missing")
        more = sorted({*range(len(back))} - {*self.pairs[:, 1].tolist()})
        if more:
            lost.append(f"{_count(more, 'item')} that are none: {_one(back[more[0]])} is new")
        pairs = [(mine[n], back[m]) for n, m in self.pairs.tolist()]
        renamed = [(one, other) for one, other in pairs if one != other]
        if renamed:
            lost.append(f"ids of {_count(renamed, 'item')}: {_becomes(*renamed[0])}")
        if (np.diff(self.pairs[:, 1]) < 0).any():
            lost.append("the order of items")
        return lost

    def tokens(self) -> list[str]:
        mine, back = self.mine.tokens, self.back.tokens
        both_single = self.mine.is_classification and self.back.is_classification
        if mine.equals(back) or both_single:  # of single labels the text counts
            return []
        one, other = self.mine.tokens_list, self.back.tokens_list
        wrong = [(n, m) for n, m in self.pairs.tolist() if one[n] != other[m]]
        if not wrong:
            return []
        n, m = wrong[0]
        place = _first_difference(one[n], other[m])
        words = [_one(row[place]) if place < len(row) else "nothing" for row in (one[n], other[m])]
        what = f"{self._item(n)}, token {place}, {words[0]} comes back as {words[1]}"
        return [f"tokens of {_count(wrong, 'item')}: {what}"]

    def texts(self) -> list[str]:
        lost = []
        mine, back = known_texts(self.mine), known_texts(self.back)
        single = self.mine.is_classification and self.back.is_classification
        if single:
            # The text of a single label may come back as its token, and the other way round.
            mine = _or_token(mine, self.mine)
            back = _or_token(back, self.back)
        pairs = self.pairs.tolist()
        gone = [n for n, m in pairs if mine[n] is not None and back[m] is None]
        if gone:
            lost.append(f"the text of {_count(gone, 'item')}: {self._item(gone[0])}")
        changed = [
            (n, m) for n, m in pairs if None not in {mine[n], back[m]} and mine[n] != back[m]
        ]
        if changed:
            n, m = changed[0]
            place = _first_difference(str(mine[n]), str(back[m]))
            what = f"{self._item(n)} differs at character {place}"
            lost.append(f"the text of {_count(changed, 'item')}: {what}")
        made = [n for n, m in pairs if mine[n] is None and back[m] is not None]
        if made:
            what = "the tokens with blanks between stand for it"
            lost.append(f"that the text of {_count(made, 'item')} is not known ({what})")
        if _is_empty(self.mine.texts) and self.back.texts is None and not single:
            lost.append("a column of texts without a value")
        return lost + self._starts(kept=not changed)

    def _starts(self, *, kept: bool) -> list[str]:
        """Character offsets of tokens; those that follow from a text are not a loss."""
        mine, back = self.mine.token_start, self.back.token_start
        if mine is None:
            return []
        if back is None:
            if self.mine.is_classification and not mine.any():
                return []
            return [f"the character offsets of {_count(self.pairs, 'item')}"]
        wrong = []
        for (n, m), same in zip(self.pairs.tolist(), self.same.tolist(), strict=True):
            one = mine[self.mine.offsets[n] : self.mine.offsets[n + 1]]
            other = back[self.back.offsets[m] : self.back.offsets[m + 1]]
            if same and not np.array_equal(one, other):
                wrong.append(n)
        if not wrong or not kept:
            return []
        return [f"the character offsets of {_count(wrong, 'item')}: {self._item(wrong[0])}"]

    def facts(self) -> list[str]:
        mine, back = self.mine.groups, self.back.groups
        lost = self._changed("the documents", _listed(mine, self.mine), _listed(back, self.back))
        if not lost and _is_empty(mine) and back is None:
            lost.append("a column of documents without a value")
        return lost + self._attributes()

    def _attributes(self) -> list[str]:
        mine, back = self.mine.attributes, self.back.attributes
        if mine is None:
            names = [] if back is None else back.column_names
            return [f"that there is no attribute {_one(names[0])}"] if names else []
        there = set() if back is None else set(back.column_names)
        gone = [name for name in mine.column_names if name not in there]
        lost = [f"attribute {_one(name)} of {_count(self.pairs, 'item')}" for name in gone]
        if not mine.num_columns and back is None:
            lost.append("a table of attributes without a column")
        for name in mine.column_names:
            if name in gone or back is None:
                continue
            one, other = mine.column(name).to_pylist(), back.column(name).to_pylist()
            lost += self._changed(f"attribute {_one(name)}", one, other)
        more = sorted(there - set(mine.column_names))
        return [*lost, *(f"that there is no attribute {_one(name)}" for name in more)]

    def _changed(self, name: str, one: Sequence[Any], other: Sequence[Any]) -> list[str]:
        wrong = [(n, m) for n, m in self.pairs.tolist() if one[n] != other[m]]
        if not wrong:
            return []
        n, m = wrong[0]
        what = f"{self._item(n)}, {_becomes(one[n], other[m])}"
        return [f"{name} of {_count(wrong, 'item')}: {what}"]

    def tags(self) -> list[str]:
        mine, back = set(self.mine.tagset.tags), set(self.back.tagset.tags)
        gold = np.zeros(0, np.int16) if self.mine.gold is None else self.mine.gold
        codes = np.unique(np.concatenate([self.mine.answers.codes, gold]))
        used = {self.mine.tagset.tags[code] for code in codes[codes >= 0].tolist()}
        lost = []
        if gone := sorted(mine - back - used):
            lost.append(f"{UNUSED}: {', '.join(map(_one, gone[:5]))}")
        if more := sorted(back - mine):
            lost.append(f"that there are no tags {', '.join(map(_one, more[:5]))}")
        return lost

    def gold(self) -> list[str]:
        mine, back = self.mine.gold, self.back.gold
        if mine is None:
            known = back is not None and (back >= 0).any()
            return ["that there is no gold"] if known else []
        if back is None and (mine < 0).all():
            return ["a column of gold without a tag"]
        given = np.full(self.back.n_tokens, -1, np.int16) if back is None else back
        one, other = Tagged(mine, self.mine.offsets), Tagged(given, self.back.offsets)
        pairs = zip(self.pairs.tolist(), self.same.tolist(), strict=True)
        rows = [(n, m, n, m, same) for (n, m), same in pairs]
        wrong = self._labels(one, other, rows)
        if not wrong:
            return []
        n, what = wrong[0]
        return [f"the gold of {_count(wrong, 'item')}: {self._item(n)}, {what}"]

    def workers(self) -> list[str]:
        mine, back = self.mine.worker_ids.to_pylist(), self.back.worker_ids.to_pylist()
        lost = []
        there, ours = set(back), set(mine)
        if gone := [name for name in mine if name not in there]:
            lost.append(f"{_count(gone, 'worker')}: {_one(gone[0])} is missing")
        if more := [name for name in back if name not in ours]:
            lost.append(f"that there is no worker {_one(more[0])}")
        known, found = self.mine.known_facts, self.back.known_facts
        if bare := [name for name, facts in known.items() if found.get(name) != facts]:
            what = ", ".join(known[bare[0]])
            lost.append(f"facts about {_count(bare, 'worker')}: {what} of {_one(bare[0])}")
        return lost

    def answers(self) -> list[str]:
        mine, back = self.mine, self.back
        ours, theirs = _by_key(mine, None), _by_key(back, self)
        lost = []
        gone = [key for key in ours if key not in theirs]
        again = [key for key in gone if key[2] and (key[0], key[1], 0) in theirs]
        first = [key for key in gone if not (key[2] and (key[0], key[1], 0) in theirs)]
        names = mine.worker_ids.to_pylist()
        if again:
            lost.append(f"{_count(again, 'repeated answer')} (the one that counts is there)")
        silent = [k for k in first if (self._codes(mine, ours[k]) < 0).all()]
        if silent and len(silent) == len(first):
            what = f"{self._item(silent[0][0])}, worker {_one(names[silent[0][1]])}"
            lost.append(f"{_count(silent, 'answer')} in which every token was skipped: {what}")
        elif first:
            what = f"{self._item(first[0][0])}, worker {_one(names[first[0][1]])}"
            lost.append(f"{_count(first, 'answer')}: {what} is missing")
        if more := [key for key in theirs if key not in ours and key[1] >= 0]:
            what = f"{self._item(more[0][0])}, worker {_one(names[more[0][1]])}"
            lost.append(f"that {_count(more, 'answer')} of those that come back are none: {what}")
        both = [(key, ours[key], theirs[key]) for key in ours if key in theirs]
        return lost + self._answers(both, names, counted=not again)

    def _answers(
        self, both: list[tuple[_Key, int, int]], names: list[str], *, counted: bool
    ) -> list[str]:
        """Labels, numbers and times of answers that are in both."""
        mine, back = self.mine.answers, self.back.answers
        one, other = Tagged(mine.codes, mine.offset), Tagged(back.codes, back.offset)
        pair = {n: (m, bool(s)) for (n, m), s in zip(self.pairs.tolist(), self.same, strict=True)}
        rows = [(key[0], pair[key[0]][0], a, b, pair[key[0]][1]) for key, a, b in both]
        wrong = self._labels(one, other, rows)
        lost, at = [], {a: key for key, a, _ in both}
        skipped = [row for row in wrong if row[1].startswith(_SKIPPED)]
        others = [row for row in wrong if not row[1].startswith(_SKIPPED)]
        for listed, title in ((skipped, "skipped tokens of"), (others, "labels of")):
            if listed:
                a, what = listed[0]
                where = f"{self._item(at[a][0])}, worker {_one(names[at[a][1]])}, {what}"
                lost.append(f"{title} {_count(listed, 'answer')}: {where}")
        ours, theirs = [a for _, a, _ in both], [b for _, _, b in both]
        if counted and (mine.attempt[ours] != back.attempt[theirs]).any():
            lost.append("the numbers of repeated answers")
        for name, what in _TIMES.items():
            column, found = getattr(mine, name), getattr(back, name)
            if column is None:
                if found is not None and (found[theirs] >= 0).any():
                    lost.append(f"that nothing is known of {what.format(_count(theirs, 'answer'))}")
                continue
            given = np.full(len(back), -1, np.int64) if found is None else found
            differ = np.flatnonzero(column[ours] != given[theirs]).tolist()
            if differ:
                known = [i for i in differ if given[theirs[i]] >= 0]
                how = "" if not known else " (other values come back)"
                lost.append(what.format(_count(differ, "answer")) + how)
            elif found is None and not (column >= 0).any():
                lost.append(f"a column {name!r} without a value")
        return lost

    def _labels(
        self, one: Tagged, other: Tagged, rows: Sequence[tuple[int, int, int, int, bool]]
    ) -> list[tuple[int, str]]:
        """Compare sequences of labels; items of other tokens by the characters of their spans."""
        words = [*self.mine.tagset.tags, None]
        table = _translation(self.back.tagset, self.mine.tagset)
        wrong: list[tuple[int, str]] = []
        spans: _CharSpans | None = None
        for n, m, a, b, same in rows:
            codes = one.codes[one.offsets[a] : one.offsets[a + 1]]
            seen = other.codes[other.offsets[b] : other.offsets[b + 1]]
            if not same:
                spans = spans or _CharSpans(self.mine, self.back, one, other)
                if what := spans.difference(n, m, a, b):
                    wrong.append((a, what))
                continue
            differ = np.flatnonzero(codes != table[seen])
            if not len(differ):
                continue
            token = int(differ[0])
            if (codes[differ] < 0).all():
                theirs = self.back.tagset.tags[seen[token]]
                wrong.append((a, f"{_SKIPPED}{token} comes back as {_one(theirs)}"))
                continue
            theirs = "no label" if seen[token] < 0 else _one(self.back.tagset.tags[seen[token]])
            shown = "no label" if codes[token] < 0 else _one(words[codes[token]])
            wrong.append((a, f"token {token}, {shown} comes back as {theirs}"))
        return wrong

    @staticmethod
    def _codes(crowd: Crowd, a: int) -> NDArray[np.int16]:
        return crowd.answers.codes[crowd.answers.offset[a] : crowd.answers.offset[a + 1]]

    def _item(self, n: int) -> str:
        return f"item {_one(self.mine.item_ids[n].as_py())}"


_Key = tuple[int, int, int]
"""Item, worker, and how many of the worker's answers to the item come after."""
_SKIPPED = "skipped token "
_TIMES = {
    "started": "the starting times of {}",
    "submitted": "the submission times of {}",
    "cost": "the costs of {}",
    "guideline": "the guideline versions of {}",
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
    if ours == theirs:
        return [(n, n) for n in range(len(ours))]
    place = {name: m for m, name in enumerate(theirs)}
    if set(theirs) <= set(ours):
        return [(n, place[name]) for n, name in enumerate(ours) if name in place]
    tokens = back.tokens_list
    if len(ours) == len(theirs) and [*map(len, mine.tokens_list)] == [*map(len, tokens)]:
        rows = list(zip(mine.tokens_list, tokens, strict=True))
        if sum(one == other for one, other in rows) * 2 >= len(rows):
            return [(n, n) for n in range(len(ours))]
    waiting: dict[tuple[str, ...], deque[int]] = defaultdict(deque)
    for m, row in enumerate(tokens):
        waiting[tuple(row)].append(m)
    found = []
    for n, row in enumerate(mine.tokens_list):
        if queue := waiting[tuple(row)]:
            found.append((n, queue.popleft()))
    if not found and len(ours) == len(theirs):
        return [(n, n) for n in range(len(ours))]
    return found


def _by_key(crowd: Crowd, compared: _Compared | None) -> dict[_Key, int]:
    """The answers of a crowd by item, worker and what comes after, in terms of ours."""
    answers = crowd.answers
    items: list[int] = list(range(crowd.n_items))
    workers: list[int] = list(range(crowd.n_workers))
    if compared is not None:
        ours = {m: n for n, m in compared.pairs.tolist()}
        items = [ours.get(m, -1) for m in items]
        place = {name: w for w, name in enumerate(compared.mine.worker_ids.to_pylist())}
        workers = [place.get(name, -1) for name in crowd.worker_ids.to_pylist()]
    seen: dict[tuple[int, int], int] = defaultdict(int)
    found: dict[_Key, int] = {}
    order = np.argsort(-answers.attempt.astype(np.int64), kind="stable").tolist()
    who, what = answers.worker.tolist(), answers.item.tolist()
    for a in order:
        item, worker = items[what[a]], workers[who[a]]
        if item < 0 or worker < 0:
            continue
        found[item, worker, seen[item, worker]] = a
        seen[item, worker] += 1
    return dict(sorted(found.items()))


def _translation(source: Codec, target: Codec) -> NDArray[np.int16]:
    """Codes of one tag set in another, int16 [V + 1]; tags that it lacks are of no code there."""
    none = len(target.tags)
    return np.array([*(target.index.get(tag, none) for tag in source.tags), -1], np.int16)


def _or_token(texts: Sequence[str | None], crowd: Crowd) -> list[str | None]:
    rows = zip(texts, crowd.tokens.flatten().to_pylist(), strict=True)
    return [token if text is None else text for text, token in rows]


def _first_difference(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def _listed(column: pa.Array | None, crowd: Crowd) -> list[Any]:
    return [None] * crowd.n_items if column is None else column.to_pylist()


def _is_empty(column: pa.Array | None) -> bool:
    return column is not None and column.null_count == len(column)


def _count(rows: Any, what: str) -> str:
    return f"{len(rows):,} {what}{'' if len(rows) == 1 else 's'}"


def _becomes(one: object, other: object) -> str:
    shown = ["nothing" if value is None else _one(value) for value in (one, other)]
    return f"{shown[0]} comes back as {shown[1]}"


def _one(value: object) -> str:
    return _short(repr(value), _MAX_SHOWN)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
