"""The data model: items, workers, answers and gold as columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._arrays import rows_of
from goldspan.crowd.grouping import latest_answers, sorted_by
from goldspan.crowd.source import ImportReport
from goldspan.errors import InputError, UnavailableError
from goldspan.spans import Codec, Tagged, find_spans
from goldspan.spans.notebook import (
    MOST_ITEMS,
    Html,
    MarkedSpan,
    block,
    counted,
    data_frame,
    hue_of,
    marked,
    table,
)
from goldspan.spans.text import locate, token_bounds

if TYPE_CHECKING:
    import pandas as pd

Tagset = Codec
"""The tags of a crowd, their encoding and the pair table: a `goldspan.spans.Codec`."""


ANSWER_COLUMNS = ("started", "submitted", "cost", "guideline")
"""Optional columns of the answers: whole numbers, -1 where one is not known."""
NO, YES = "no", "yes"
"""Labels of the parts of an item with any number of labels."""


@dataclass(frozen=True, eq=False)
class Answers:
    """One row per (item, worker, attempt), the labels in one flat array.

    Takes 18 bytes per answer and 2 bytes per answered token, the optional columns aside.

    Attributes:
        item: int32 [n_answers], index of the item.
        worker: int32 [n_answers], index of the worker.
        offset: int64 [n_answers + 1]; answer a holds codes[offset[a]:offset[a + 1]], one code for
            every token of its item.
        codes: int16 [n_labels], tag codes; -1 where the worker skipped the token.
        attempt: int16 [n_answers], 0 for the first answer of a worker to an item, 1 for the next.
        started: int64 [n_answers], milliseconds since 1970 (UTC), or None.
        submitted: int64 [n_answers], milliseconds since 1970 (UTC), or None; -1 unknown.
        cost: int64 [n_answers], millionths of the currency unit, or None.
        guideline: int64 [n_answers], version of the label set and guideline in force when the
            answer was received, from 1; or None; -1 unknown.
    """

    item: NDArray[np.int32]
    worker: NDArray[np.int32]
    offset: NDArray[np.int64]
    codes: NDArray[np.int16]
    attempt: NDArray[np.int16]
    started: NDArray[np.int64] | None = None
    submitted: NDArray[np.int64] | None = None
    cost: NDArray[np.int64] | None = None
    guideline: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @classmethod
    def none(cls) -> Answers:
        """Return no answers."""
        index, codes = np.zeros(0, np.int32), np.zeros(0, np.int16)
        return cls(index, index, np.zeros(1, np.int64), codes, codes)

    def __len__(self) -> int:
        """Count the answers."""
        return len(self.item)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of every answer, int64 [n_answers]."""
        return np.diff(self.offset)

    @property
    def nbytes(self) -> int:
        """Memory of all columns, in bytes."""
        columns = (getattr(self, name) for name in self.__dataclass_fields__)
        return sum(column.nbytes for column in columns if column is not None)

    def take(self, which: NDArray[np.intp] | NDArray[np.bool_]) -> Answers:
        """Select answers, in the order given."""
        index = np.flatnonzero(which) if which.dtype == np.bool_ else which
        offset, source = rows_of(self.offset, index)
        optional = {name: getattr(self, name) for name in ANSWER_COLUMNS}
        return Answers(
            self.item[index],
            self.worker[index],
            offset,
            self.codes[source],
            self.attempt[index],
            **{name: None if one is None else one[index] for name, one in optional.items()},
        )


@dataclass(frozen=True, eq=False)
class View:
    """Answers grouped by item or by worker."""

    order: NDArray[np.int64]  # [n_answers]
    bounds: NDArray[np.int64]  # [n_groups + 1]; group g holds order[bounds[g]:bounds[g + 1]]

    @classmethod
    def of(cls, key: NDArray[np.int32], n_groups: int) -> View:
        """Group by an index."""
        return cls(*sorted_by(key, n_groups))

    def __getitem__(self, group: int) -> NDArray[np.int64]:
        """Return the answers of a group."""
        return self.order[self.bounds[group] : self.bounds[group + 1]]


@dataclass(frozen=True, eq=False)
class Crowd:
    """Items, the workers who answered them, and their answers; frozen and columnar.

    Made by `goldspan.read_crowd` or a `CrowdBuilder`.

    Attributes:
        item_ids: Arrow string array [n_items].
        tokens: Arrow list<string> array [n_items].
        worker_ids: Arrow string array [n_workers].
        tagset: The tags, their encoding and the pair table.
        answers: The answers, every attempt of them.
        groups: Arrow string array [n_items], the document of every item, or None.
        gold: int16 [n_tokens], known tags, -1 unknown; or None.
        texts: Arrow string array [n_items], the text that the tokens were cut from, or None.
        token_start: int32 [n_tokens], first character of every token in its text, or None.
        attributes: Arrow table of other columns of the items, or None.
        import_report: What the reader found.
        label_type: What single labels were in the DataFrame that they came from: "text", "int",
            "float" or "bool"; inside they are text. `==` ignores it.
        worker_facts: Facts about workers by their ids, such as {"gpt-a": {"family": "gpt", "kind":
            "llm"}}; of most workers there are none.
        wholes: Arrow string array [n_items], the item of which an item is a part, or None: spans
            that overlap, and labels of which any number may hold, are dealt onto parts, see
            `goldspan.crowd.layers`.
        parts: Arrow string array [n_items], which part it is: "1" for the outermost spans, or the
            label that is asked about; or None.
    """

    item_ids: pa.Array
    tokens: pa.ListArray
    worker_ids: pa.Array
    tagset: Codec
    answers: Answers
    groups: pa.Array | None = None
    gold: NDArray[np.int16] | None = None
    texts: pa.Array | None = None
    token_start: NDArray[np.int32] | None = None
    attributes: pa.Table | None = None
    import_report: ImportReport = field(default_factory=ImportReport)
    label_type: str = "text"
    worker_facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    wholes: pa.Array | None = None
    parts: pa.Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "gold", read_only(self.gold))
        object.__setattr__(self, "token_start", read_only(self.token_start))

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.item_ids)

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return len(self.worker_ids)

    @property
    def n_tokens(self) -> int:
        """Number of tokens of all items."""
        return int(self.offsets[-1])

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Bounds of the items in flat token arrays, int64 [n_items + 1]."""
        offsets = self.tokens.offsets.to_numpy().astype(np.int64)
        return np.asarray(offsets - offsets[0])

    @property
    def is_classification(self) -> bool:
        """Whether items are single labels: PLAIN tags on one token each."""
        return self.tagset.rules.is_plain and self.n_tokens == self.n_items

    @cached_property
    def latest(self) -> Answers:
        """The answers that count: of every worker's answers to an item, the last attempt."""
        answers = self.answers
        if not len(answers) or not answers.attempt.any():
            return answers
        return answers.take(latest_answers(answers.item, answers.worker, answers.attempt))

    @cached_property
    def by_item(self) -> View:
        """The latest answers grouped by item."""
        return View.of(self.latest.item, self.n_items)

    @cached_property
    def by_worker(self) -> View:
        """The latest answers grouped by worker."""
        return View.of(self.latest.worker, self.n_workers)

    @cached_property
    def token_of(self) -> NDArray[np.int64]:
        """The flat token of every label of `latest.codes`, int64 [n_labels]."""
        return rows_of(self.offsets, self.latest.item)[1]

    @cached_property
    def worker_of(self) -> NDArray[np.int32]:
        """The worker of every label of `latest.codes`, int32 [n_labels]."""
        return np.repeat(self.latest.worker, self.latest.lengths)

    @property
    def documents(self) -> pa.Array | None:
        """The document of every item, Arrow string array [n_items]: parts of an item are one."""
        return self.wholes if self.groups is None else self.groups

    @property
    def item_names(self) -> dict[str, pa.Array]:
        """What items belong to, by the name of the column in a file: doc, whole and part."""
        columns = {"doc": self.groups, "whole": self.wholes, "part": self.parts}
        return {name: column for name, column in columns.items() if column is not None}

    @cached_property
    def document_of(self) -> NDArray[np.int64]:
        """The number of every item's document, int64 [n_items]; an item without one is its own."""
        own, documents = np.arange(self.n_items), self.documents
        if documents is None:
            return own
        index = documents.dictionary_encode().indices.fill_null(-1).to_numpy().astype(np.int64)
        return np.unique(np.where(index < 0, self.n_items + own, index), return_inverse=True)[1]

    @property
    def gold_tagged(self) -> Tagged:
        """The gold as codes and offsets.

        Raises:
            UnavailableError: The crowd has no gold.
        """
        if self.gold is None:
            raise UnavailableError(
                "this crowd has no gold: read it with the known labels or a `gold` column",
                hint="gold",
            )
        return Tagged(self.gold, self.offsets)

    @cached_property
    def tokens_list(self) -> list[list[str]]:
        """The tokens as lists of strings."""
        return list(self.tokens.to_pylist())

    @cached_property
    def label_values(self) -> list[Any]:
        """The tags in the order of their codes, as `label_type` says: 3 where they came as numbers.

        They stay text if one of them is not of that type, for example by renaming.
        """
        try:
            return [_READ[self.label_type](tag) for tag in self.tagset.tags]
        except (KeyError, ValueError):
            return list(self.tagset.tags)

    @property
    def labels_are_text(self) -> bool:
        """Whether `label_values` are the tags themselves."""
        return self.label_values == list(self.tagset.tags)

    def labels_of(self, codes: NDArray[np.int16]) -> pa.Array:
        """Return the labels of codes as an Arrow array of `label_values`; null for -1."""
        try:
            values = pa.array([*self.label_values, None])
        except OverflowError:  # beyond 64 bits with a sign
            values = pa.array([*self.label_values, None], pa.uint64())
        return values.take(pa.array(np.where(codes < 0, len(values) - 1, codes)))

    def item_index(self, item_id: str) -> int:
        """Find an item by its id.

        Raises:
            InputError: There is no such item.
        """
        return _find(self._item_place, item_id, "item")

    def worker_index(self, worker_id: str) -> int:
        """Find a worker by id.

        Raises:
            InputError: There is no such worker.
        """
        return _find(self._worker_place, worker_id, "worker")

    def answers_of(self, item: str | int) -> dict[str, list[str | None]]:
        """Return the tags of an item by worker id, None where a token was skipped."""
        index = item if isinstance(item, int) else self.item_index(item)
        words = [*self.tagset.tags, None]
        found: dict[str, list[str | None]] = {}
        for a in self.by_item[index].tolist():
            start, end = self.latest.offset[a], self.latest.offset[a + 1]
            worker = self.worker_ids[int(self.latest.worker[a])].as_py()
            found[worker] = [words[code] for code in self.latest.codes[start:end]]
        return found

    @property
    def known_facts(self) -> dict[str, dict[str, str]]:
        """The facts about the workers who are here, by their ids; those without facts are not."""
        if not self.worker_facts:
            return {}
        facts = {name: self.worker_facts.get(name) for name in self.worker_ids.to_pylist()}
        return {name: dict(one) for name, one in facts.items() if one}

    def tagged_by_id(self) -> dict[str, list[str | None]]:
        """Return the gold tags by item id, None where unknown, for `goldspan.score`."""
        tags = self.tagset.decode(self.gold_tagged)
        return dict(zip(self.item_ids.to_pylist(), tags, strict=True))

    @cached_property
    def whole_of(self) -> NDArray[np.int64]:
        """Of which whole item every item is a part, int64 [n_items]."""
        if self.wholes is None:
            return np.arange(self.n_items)
        return np.asarray(self.wholes.dictionary_encode().indices, np.int64)

    @cached_property
    def whole_items(self) -> Crowd:
        """Of every item with parts the first, under the item's id: for counts and texts."""
        if self.wholes is None:
            return self
        found = self.select_items(np.sort(np.unique(self.whole_of, return_index=True)[1]))
        return replace(found, item_ids=found.wholes, wholes=None, parts=None)

    @property
    def items_counted(self) -> str:
        """How many items there are, in words, and in how many parts."""
        whole = counted(self.whole_items.n_items, "item")
        return whole if self.wholes is None else f"{whole} in {counted(self.n_items, 'part')}"

    def with_gold(self, gold: NDArray[np.int16] | None) -> Crowd:
        """Return the same crowd with other gold codes, int16 [n_tokens]."""
        if gold is not None and gold.shape != (self.n_tokens,):
            raise InputError(f"gold must have {self.n_tokens} codes, not {gold.shape}")
        return replace(self, gold=gold)

    def select_items(self, which: NDArray[np.intp] | NDArray[np.bool_]) -> Crowd:
        """Return the crowd of some items, in the order given; all workers stay."""
        index = np.flatnonzero(which) if which.dtype == np.bool_ else np.asarray(which)
        new = np.full(self.n_items, -1, np.int32)
        new[index] = np.arange(len(index))
        answers = self.answers.take(new[self.answers.item] >= 0)
        answers = replace(answers, item=new[answers.item])
        flat = rows_of(self.offsets, index)[1]
        rows = pa.array(index)
        return replace(
            self,
            item_ids=self.item_ids.take(rows),
            tokens=self.tokens.take(rows),
            answers=answers,
            groups=None if self.groups is None else self.groups.take(rows),
            gold=None if self.gold is None else self.gold[flat],
            texts=None if self.texts is None else self.texts.take(rows),
            token_start=None if self.token_start is None else self.token_start[flat],
            attributes=None if self.attributes is None else self.attributes.take(rows),
            wholes=None if self.wholes is None else self.wholes.take(rows),
            parts=None if self.parts is None else self.parts.take(rows),
        )

    def unanswered(self, tagset: Codec, words: pa.Array | None = None) -> Crowd:
        """Return the items alone, with other tags; of given words each is an item's only token."""
        whole = {} if words is None else {
            "tokens": list_array(words, range(self.n_items + 1)), "token_start": None
        }  # fmt: skip
        return replace(
            self,
            worker_ids=pa.array([], pa.string()),
            tagset=tagset,
            answers=Answers.none(),
            gold=None,
            worker_facts={},
            **whole,
        )

    def select_workers(self, which: NDArray[np.intp] | NDArray[np.bool_]) -> Crowd:
        """Return the crowd of some workers, in the order given; all items stay."""
        index = np.flatnonzero(which) if which.dtype == np.bool_ else np.asarray(which)
        new = np.full(self.n_workers, -1, np.int32)
        new[index] = np.arange(len(index))
        answers = self.answers.take(new[self.answers.worker] >= 0)
        answers = replace(answers, worker=new[answers.worker])
        return replace(self, worker_ids=self.worker_ids.take(pa.array(index)), answers=answers)

    def __eq__(self, other: object) -> bool:
        """Compare the content: ids, tokens, gold, texts, attributes, tags and every answer.

        The order of items counts; the order of workers, of answers and of tag codes does not.
        """
        if not isinstance(other, Crowd):
            return NotImplemented
        return self.content() == other.content()

    __hash__ = None  # type: ignore[assignment]

    def content(self) -> dict[str, Any]:
        """Return everything that makes two crowds equal, in plain Python objects."""
        words = [*self.tagset.tags, None]
        workers, a = self.worker_ids.to_pylist(), self.answers
        answers = {}
        for i in range(len(a)):
            key = (int(a.item[i]), workers[a.worker[i]], int(a.attempt[i]))
            extra = tuple(
                None if column is None else int(column[i])
                for column in (getattr(a, name) for name in ANSWER_COLUMNS)
            )
            codes = a.codes[a.offset[i] : a.offset[i + 1]].tolist()
            answers[key] = (tuple(words[code] for code in codes), extra)
        start = self.token_start
        return {
            "items": self.item_ids.to_pylist(),
            "tokens": self.tokens.to_pylist(),
            "groups": None if self.groups is None else self.groups.to_pylist(),
            "gold": None if self.gold is None else [words[code] for code in self.gold.tolist()],
            "texts": None if self.texts is None else self.texts.to_pylist(),
            "token_start": None if start is None else start.tolist(),
            "attributes": None if self.attributes is None else self.attributes.to_pydict(),
            "parts": None
            if self.wholes is None or self.parts is None
            else [*zip(self.wholes.to_pylist(), self.parts.to_pylist(), strict=True)],
            "workers": sorted(workers),
            "worker_facts": self.known_facts,
            "tags": (sorted(self.tagset.tags), self.tagset.encoding),
            "answers": answers,
        }

    def to_arrow(self) -> pa.Table:
        """Return the answers as a long table, which `read_crowd` reads.

        One row per answered item for single labels, otherwise per answered token; every attempt is
        there. The columns are item, doc, worker, position and token (not for single labels), label
        (null where the worker skipped the token), gold, attempt, started, submitted, cost and
        guideline, as far as they are known. A crowd without answers becomes the table of its gold:
        no worker, `label` is the known label.
        """
        a, has_answers = self.answers, len(self.answers) > 0
        if has_answers:
            answer = np.repeat(np.arange(len(a)), a.lengths)
            position = np.arange(len(a.codes)) - np.repeat(a.offset[:-1], a.lengths)
            item, codes = a.item[answer], a.codes
        else:
            item = np.repeat(np.arange(self.n_items), np.diff(self.offsets))
            position = np.arange(self.n_tokens) - self.offsets[item]
            codes = np.full(self.n_tokens, -1, np.int16) if self.gold is None else self.gold
        token = self.offsets[item] + position
        columns: dict[str, Any] = {"item": self.item_ids.take(pa.array(item))}
        if self.groups is not None:
            columns["doc"] = self.groups.take(pa.array(item))
        if has_answers:
            columns["worker"] = self.worker_ids.take(pa.array(a.worker[answer]))
        if not self.is_classification:
            columns["position"] = pa.array(position)
            columns["token"] = self.tokens.flatten().take(pa.array(token))
        columns["label"] = self.labels_of(codes)
        if has_answers and self.gold is not None:
            columns["gold"] = self.labels_of(self.gold[token])
        if has_answers and a.attempt.any():
            columns["attempt"] = pa.array(a.attempt[answer])
        for name in ANSWER_COLUMNS if has_answers else ():
            if (column := getattr(a, name)) is not None:
                columns[name] = pa.array(column[answer], mask=column[answer] < 0)
        return pa.table(columns)

    def to_pandas(self) -> pd.DataFrame:
        """Return the answers as a pandas DataFrame in the long format; see `to_arrow`.

        Raises:
            MissingExtraError: pandas is not installed.

        >>> import goldspan
        >>> answers = [{"task": "q1", "worker": "ann", "label": 1}]
        >>> goldspan.read_crowd(answers).to_pandas().to_dict("records")
        [{'item': 'q1', 'worker': 'ann', 'label': 1}]
        """
        return data_frame(self.to_arrow())

    def _repr_html_(self) -> str:
        # A crowd as HTML: its facts, and the first items with their answers and gold
        first = self.select_items(first_items(self))
        whole, answers = first.whole_items, first.latest
        gold = np.full(first.n_tokens, -1, np.int16) if first.gold is None else first.gold
        columns: dict[str, list[Any]] = {"item": whole.item_ids.to_pylist()}
        if first.is_classification:
            if whole.texts is not None:
                columns["text"] = [Html(marked(text or "", [])) for text in whole.texts.to_pylist()]
            votes = (one.most_common() for one in _counts(first, answers.item, answers.codes))
            columns["answers"] = [", ".join(f"{name} ×{n}" for name, n in own) for own in votes]
            if first.gold is not None:
                known = _counts(first, np.arange(first.n_items), gold)
                columns["gold"] = [", ".join(map(str, own)) or None for own in known]
        else:
            columns["text"] = marked_texts(first, gold)
            columns["answers"] = np.diff(whole.by_item.bounds).tolist()
        facts = [self.items_counted, counted(self.n_workers, "worker")]
        facts.append(counted(len(self.whole_items.answers), "answer"))
        facts.append(f"{self.tagset.encoding}: {', '.join(self.tagset.types[:20])}")
        facts.append("gold" if self.gold is not None else "no gold")
        rows = zip(*columns.values(), strict=True)
        n_items = self.whole_items.n_items
        return block("Crowd", facts, table(list(columns), rows, n_items, "items"))

    def __repr__(self) -> str:
        """Return how much of everything there is."""
        whole = self.whole_items
        parts = "" if self.wholes is None else f" in {self.n_items} parts"
        return (
            f"Crowd({whole.n_items} items{parts}, {whole.n_tokens} tokens, "
            f"{self.n_workers} workers, {len(whole.answers)} answers, "
            f"{self.tagset.encoding} {list(self.tagset.types)}, "
            f"{'gold' if self.gold is not None else 'no gold'})"
        )

    @cached_property
    def _item_place(self) -> Mapping[str, int]:
        return {name: i for i, name in enumerate(self.item_ids.to_pylist())}

    @cached_property
    def _worker_place(self) -> Mapping[str, int]:
        return {name: i for i, name in enumerate(self.worker_ids.to_pylist())}


def _whole(tag: str) -> int:
    """Read a whole number that is written as Python writes it."""
    if str(int(tag)) != tag:
        raise ValueError(tag)
    return int(tag)


_READ: Mapping[str, Any] = {
    "int": _whole,
    "float": float,
    "bool": {"true": True, "false": False}.__getitem__,
}
"""How labels are read that were no text in a DataFrame."""


def read_only(array: Any) -> Any:
    """Return a view that cannot be written to; the array itself is left as it is."""
    if array is None:
        return None
    view = array.view()
    view.flags.writeable = False
    return view


def list_array(values: pa.Array, offsets: NDArray[np.int64] | Sequence[int]) -> pa.ListArray:
    """Cut a flat Arrow array into a list array."""
    bounds = pa.array(np.asarray(offsets), pa.int32())
    return pa.ListArray.from_arrays(bounds, values)


def _find(place: Mapping[str, int], name: str, what: str) -> int:
    if name not in place:
        raise InputError(
            f"there is no {what} {name!r} among the {len(place)} {what}s of this crowd"
        )
    return place[name]


# --------------------------------------------------------------------------------------------------
# The texts of items, as tools and notebooks show them.


class ItemText(NamedTuple):
    """The text that a tool shows for an item."""

    value: str
    bounds: list[tuple[int, int]]  # First character of every token and one past its last
    is_own: bool  # Whether it is the item's text, and not its tokens with blanks between


def item_texts(crowd: Crowd) -> Iterator[ItemText]:
    """Return the text of every item: its own, code point for code point, else its tokens joined.

    Where the tokens of a sequence are not found in its text, spans have no place in it: then the
    tokens joined by blanks stand for it. The text of a single label is always its own.
    """
    texts = [None] * crowd.n_items if crowd.texts is None else crowd.texts.to_pylist()
    offsets, single = crowd.offsets.tolist(), crowd.is_classification
    for n, (tokens, text) in enumerate(zip(crowd.tokens_list, texts, strict=True)):
        if text is not None:
            try:
                if crowd.token_start is None:
                    bounds = locate(text, tokens)
                else:
                    starts = crowd.token_start[offsets[n] : offsets[n + 1]].tolist()
                    bounds = token_bounds(text, tokens, starts)
                yield ItemText(text, bounds, is_own=True)
                continue
            except InputError:
                if single:
                    yield ItemText(text, [(0, len(text))], is_own=True)
                    continue
        joined = " ".join(tokens)
        ends = np.cumsum([len(token) + 1 for token in tokens]).tolist()
        bounds = [(end - 1 - len(t), end - 1) for t, end in zip(tokens, ends, strict=True)]
        yield ItemText(joined, bounds, is_own=False)


def columns_of_items(crowd: Crowd, texts: Sequence[str | None]) -> dict[str, pa.Array]:
    """Return what formats with a row per item share: tokens, and what is known beside them."""
    columns = {} if crowd.groups is None else {"doc": crowd.groups}
    if any(text is not None for text in texts):
        columns["text"] = pa.array(texts, pa.string())
    columns["tokens"] = list_array(crowd.tokens.flatten(), crowd.offsets)
    if crowd.token_start is not None:
        columns["token_start"] = list_array(pa.array(crowd.token_start), crowd.offsets)
    return columns


def known_texts(crowd: Crowd) -> list[str | None]:
    """Return the text of every item where it is known."""
    # The one token of a single label is its text, unless it is only the item's id
    texts = [None] * crowd.n_items if crowd.texts is None else crowd.texts.to_pylist()
    if not crowd.is_classification:
        return texts
    ids = crowd.item_ids.to_pylist()
    rows = zip(texts, crowd.tokens.flatten().to_pylist(), ids, strict=True)
    return [token if text is None and token != name else text for text, token, name in rows]


# --------------------------------------------------------------------------------------------------
# A crowd in a notebook: its facts and its first items, with spans marked.


def first_items(crowd: Crowd) -> NDArray[np.intp]:
    """Return the items that a notebook shows, with all their parts."""
    return np.flatnonzero(crowd.whole_of < MOST_ITEMS)


def marked_texts(
    crowd: Crowd, codes: NDArray[np.int16], confidence: Sequence[float] | None = None
) -> list[Html]:
    """Return the text of every whole item with the spans of some tags marked, by part."""
    # codes int16 [n_tokens], their tags; confidence [n_spans]
    spans = find_spans(Tagged(codes, crowd.offsets), crowd.tagset)
    bounds = np.searchsorted(spans.item, np.arange(crowd.n_items + 1)).tolist()
    start = (spans.start - crowd.offsets[spans.item]).tolist()
    end = (spans.end - crowd.offsets[spans.item]).tolist()
    kinds, whole, shown = spans.type.tolist(), crowd.whole_of.tolist(), dict[int, str]()
    for n, text in enumerate(item_texts(crowd)):
        found = [
            MarkedSpan(
                text.bounds[start[i]][0],
                text.bounds[end[i] - 1][1],
                crowd.tagset.types[kinds[i]],
                hue_of(kinds[i]),
                None if confidence is None else float(confidence[i]),
            )
            for i in range(bounds[n], bounds[n + 1])
        ]
        before = shown.get(whole[n], "")
        if found or not before:
            shown[whole[n]] = (before if "<mark" in before else "") + marked(text.value, found)
    return [*map(Html, shown.values())]


def _counts(crowd: Crowd, items: NDArray[Any], codes: NDArray[np.int16]) -> list[Counter[Any]]:
    """Count the labels of every whole item, from those of items or of their parts."""
    found = [Counter[Any]() for _ in range(crowd.whole_items.n_items)]
    parts = None if crowd.parts is None else crowd.parts.to_pylist()
    for n, label in zip(items.tolist(), crowd.labels_of(codes).to_pylist(), strict=True):
        name = label if parts is None else parts[n] if label == YES else None
        if name is not None:
            found[crowd.whole_of[n]][name] += 1
    return found
