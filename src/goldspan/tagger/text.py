"""Items of words, and what else is known of them: what taggers read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan._arrays import rows_of
from goldspan.errors import InputError

STRING = pa.large_string()


@dataclass(frozen=True, eq=False)
class Text:
    """Items of words, and what else is known of them.

    Attributes:
        words: Arrow string array [n_tokens].
        offsets: int64 [n_items + 1].
        group: int64 [n_items], document of every item; None: every item is a document.
        columns: Arrow string arrays [n_tokens] by name, such as part-of-speech tags.
    """

    words: pa.Array
    offsets: NDArray[np.int64]
    group: NDArray[np.int64] | None = None
    columns: Mapping[str, pa.Array] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        items: Sequence[Sequence[str]],
        groups: Sequence[str] | None = None,
        columns: Mapping[str, Sequence[Sequence[str]]] | None = None,
    ) -> Text:
        """Make it of lists of words, one list per item.

        Raises:
            InputError: A word is no string, or a column has another number of values.
        """
        lengths = np.fromiter(map(len, items), np.int64, count=len(items))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        words = _strings([word for item in items for word in item], "words")
        if words.null_count:
            raise InputError("words must be strings, and one of them is None")
        group = None if groups is None else _numbered(groups, len(items))
        more = {}
        for name, values in (columns or {}).items():
            flat = [value for item in values for value in item]
            if len(flat) != len(words):
                raise InputError(f"column {name}: {len(flat)} values for {len(words)} words")
            more[name] = _strings(flat, f"column {name}: values")
        return cls(words, offsets, group, more)

    @property
    def n_tokens(self) -> int:
        """Number of words."""
        return len(self.words)

    def select(self, items: NDArray[np.int64]) -> Text:
        """Return some items, in the order given."""
        bounds, flat = rows_of(self.offsets, items)
        rows = pa.array(flat)
        group = None if self.group is None else self.group[items]
        columns = {name: column.take(rows) for name, column in self.columns.items()}
        return Text(self.words.take(rows), bounds, group, columns)


def _strings(values: Sequence[str], what: str) -> pa.Array:
    try:
        return pa.array(values, STRING)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError) as error:
        raise InputError(f"{what} must be strings: {error}") from None


def _numbered(groups: Sequence[str], n_items: int) -> NDArray[np.int64]:
    if len(groups) != n_items:
        raise InputError(f"{len(groups)} groups for {n_items} items")
    names = pa.array(map(str, groups), STRING)
    return np.asarray(pc.rank(names, tiebreaker="dense"), np.int64) - 1


# --------------------------------------------------------------------------------------------------
# Words as pieces of an encoder's vocabulary, cut into windows that fit into it.
#
# A tokenizer of Hugging Face cuts a word into pieces; the encoder scores pieces, and the score of a
# word is that of its first one. An item is a window, and one that is too long several, which
# overlap: a word is scored in the window in which it has the most pieces on its shorter side.


MOST_PIECES = 24
"""Pieces of a word that are read; what follows of a longer one is passed over."""
OVERLAP = 4
"""A long item's windows overlap by a window's length divided by this."""
MARKS = ("[TITLE]", "[UPPER]", "[MIXED]")
"""Written before words with capitals for an encoder that reads small letters only."""
BLOCK = 4096
"""Words that are given to the tokenizer at once."""
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Window:
    """A stretch of pieces that the encoder reads at once."""

    ids: list[int]  # The pieces, with the special ones around them
    at: Ints  # int64 [n_scored], places of the first pieces of the words that are scored here
    size: Ints  # int64 [n_scored], numbers of their pieces
    token: Ints  # int64 [n_scored], numbers of these words in the text


class Pieces:
    """Cuts words into pieces and texts into windows."""

    def __init__(self, tokenizer: Any, size: int, *, case: bool, documents: bool) -> None:
        self._tokenizer, self._documents = tokenizer, documents
        self._before, self._after = _frame(tokenizer)
        self._room = size - len(self._before) - len(self._after)
        if self._room < 2 * MOST_PIECES:
            raise InputError(f"windows of {size} pieces are too short: allow at least 64")
        self._marks = tokenizer.convert_tokens_to_ids(list(MARKS)) if case else None
        separator = tokenizer.sep_token_id
        self._separator = [] if separator is None else [separator]
        unknown = tokenizer.unk_token_id
        self._unknown = (tokenizer.pad_token_id or 0) if unknown is None else unknown
        self._known: dict[str, list[int]] = {}

    def windows(self, text: Text) -> list[Window]:
        """Cut a text into windows in which every word is scored once."""
        words = text.words.to_pylist()
        self._learn(words)
        found: list[Window] = []
        for items in self._groups(text):
            found += self._of_items(text, words, items)
        return found

    def _groups(self, text: Text) -> Iterator[Sequence[int]]:
        """Yield the items that are read side by side: a document's, or each alone."""
        n_items = len(text.offsets) - 1
        if not self._documents or text.group is None:
            yield from ([n] for n in range(n_items))
            return
        order = np.argsort(text.group, kind="stable")
        cuts = np.flatnonzero(np.diff(text.group[order])) + 1
        yield from (part.tolist() for part in np.split(order, cuts))

    def _of_items(self, text: Text, words: list[str], items: Sequence[int]) -> Iterator[Window]:
        parts: list[list[int]] = []
        token: list[int] = []
        lead: list[int] = []  # pieces before a word's first: a mark, the end of the item before
        for n in items:
            for t in range(int(text.offsets[n]), int(text.offsets[n + 1])):
                mark, own = self._mark(words[t]), self._known[words[t]]
                starts = bool(parts) and t == text.offsets[n]
                before = (self._separator if starts else []) + mark
                parts.append(before + own)
                lead.append(len(before))
                token.append(t)
        if not parts:
            return
        ends = np.cumsum([len(part) for part in parts])
        begins = np.concatenate([[0], ends[:-1]])
        bounds = _stretches(begins, ends, self._room)
        # For every word the stretch in which it is farthest from an edge, int64 [n_words]
        # The beginning and the end of the text are no edges
        owner, best = np.zeros(len(ends), np.int64), np.full(len(ends), -1)
        for k, (a, b) in enumerate(bounds):
            left = begins[a:b] - begins[a] if a else np.full(b, ends[-1])
            right = ends[b - 1] - ends[a:b] if b < len(ends) else np.full(b - a, ends[-1])
            depth = np.minimum(left, right)
            better = depth > best[a:b]
            owner[a:b][better], best[a:b][better] = k, depth[better]
        shift = np.array(lead) + len(self._before)
        number = np.array(token)
        for k, (a, b) in enumerate(bounds):
            mine = np.arange(a, b)[owner[a:b] == k]
            ids = [piece for part in parts[a:b] for piece in part]
            at = begins[mine] - begins[a] + shift[mine]
            size = ends[mine] - begins[mine] - np.array(lead)[mine]
            yield Window([*self._before, *ids, *self._after], at, size, number[mine])

    def _learn(self, words: Sequence[str]) -> None:
        """Cut the words that are new; the space before them stands for a word's beginning."""
        new = [word for word in dict.fromkeys(words) if word not in self._known]
        for a in range(0, len(new), BLOCK):
            block = new[a : a + BLOCK]
            given = [f" {word}" for word in block]
            for word, ids in zip(
                block, self._tokenizer(given, add_special_tokens=False)["input_ids"], strict=True
            ):
                self._known[word] = list(ids[:MOST_PIECES]) or [self._unknown]

    def _mark(self, word: str) -> list[int]:
        if self._marks is None or word == word.lower():
            return []
        kind = 1 if word == word.upper() and len(word) > 1 else 0 if word[:1].isupper() else 2
        if kind == 0 and word[1:] != word[1:].lower():
            kind = 2
        return [self._marks[kind]]


def reads_small_letters_only(tokenizer: Any) -> bool:
    """Return whether a tokenizer tells no capitals from small letters."""
    pair = tokenizer([" Rome", " rome"], add_special_tokens=False)["input_ids"]
    return list(pair[0]) == list(pair[1])


def _frame(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Return the special pieces that go before and after a text."""
    inner = list(tokenizer(" a", add_special_tokens=False)["input_ids"])
    whole = list(tokenizer(" a")["input_ids"])
    for n in range(len(whole) - len(inner) + 1):
        if whole[n : n + len(inner)] == inner:
            return whole[:n], whole[n + len(inner) :]
    return [], []


def _stretches(begins: Ints, ends: Ints, room: int) -> list[tuple[int, int]]:
    """Cut words into stretches of at most `room` pieces, which overlap."""
    n_words, a, found = len(ends), 0, []
    while True:
        b = int(np.searchsorted(ends, begins[a] + room, side="right"))
        found.append((a, b))
        if b == n_words:
            return found
        back = int(np.searchsorted(begins, ends[b - 1] - room // OVERLAP))
        a = min(max(a + 1, back), b)


def batches(windows: Sequence[Window], order: Ints, pieces: int) -> list[list[int]]:
    """Gather windows, in an order, into batches of at most so many pieces with their padding."""
    found: list[list[int]] = []
    longest = 0
    for n in order.tolist():
        longest = max(longest, len(windows[n].ids))
        if found and (len(found[-1]) + 1) * longest <= pieces:
            found[-1].append(n)
        else:
            found.append([n])
            longest = len(windows[n].ids)
    return found


def shuffled(windows: Sequence[Window], pieces: int, rng: np.random.Generator) -> list[list[int]]:
    """Deal windows into batches of similar length, in a random order."""
    size = np.array([len(window.ids) for window in windows])
    order = np.argsort(size + rng.uniform(0, 0.2 * size.mean(), len(size)), kind="stable")
    found = batches(windows, order, pieces)
    return [found[n] for n in rng.permutation(len(found))]


def by_length(windows: Sequence[Window], pieces: int) -> list[list[int]]:
    """Deal windows into batches of similar length."""
    size = np.array([len(window.ids) for window in windows], np.int64)
    return batches(windows, np.argsort(size, kind="stable"), pieces)
