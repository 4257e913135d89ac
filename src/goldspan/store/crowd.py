"""The answers of a store as a crowd, read once and added to."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, select

from goldspan.crowd import Answers, Crowd
from goldspan.crowd.gold import split_tokens
from goldspan.crowd.model import list_array
from goldspan.crowd.questions import AnsweredItem, Questions, crowds_of
from goldspan.spans import Codec
from goldspan.spans.parts import cuts_of, fit
from goldspan.store.facts import VERSION
from goldspan.store.journal import Database, canonical, read_json
from goldspan.store.people import SHOWN
from goldspan.store.pool import SOME, rows_of
from goldspan.store.schema import answers, campaign, gold, items, records, workers

# --------------------------------------------------------------------------------------------------
# Items and answers of a campaign as columns, and the `Crowd` that they make.


ITEM = tuple(items.c[name] for name in ("number", "id", "tokens", "extra"))
"""What is read of an item."""
ANSWER = tuple(
    answers.c[name]
    for name in ("number", "item", "worker", "labels", "started", "submitted", "cost")
)
"""What is read of an answer."""


@dataclass(frozen=True, eq=False)
class Items:
    """Items in the order of the pool."""

    number: NDArray[np.int64]  # Their numbers, ascending, int64 [n_items]
    table: pa.Table  # Arrow columns `id`, `tokens`, `group`, `text`, `token_start`
    attributes: NDArray[np.object_]  # A dictionary per item, object [n_items]

    @classmethod
    def of(cls, rows: Sequence[Any]) -> Items:
        """Take rows of `ITEM`, ascending by number."""
        tokens = [read_json(row.tokens) for row in rows]
        flat = pa.array(list(chain.from_iterable(tokens)), pa.string())
        extra = [read_json(row.extra) if row.extra else {} for row in rows]
        starts = [facts.get("token_start") for facts in extra]
        table = pa.table({
            "id": pa.array([row.id for row in rows], pa.string()),
            "tokens": list_array(flat, bounds_of([len(words) for words in tokens])),
            "group": pa.array([facts.get("group") for facts in extra], pa.string()),
            "text": pa.array([facts.get("text") for facts in extra], pa.string()),
            "token_start": pa.array(starts, pa.list_(pa.int32())),
        })  # fmt: skip
        facts = np.fromiter((each.get("attributes", {}) for each in extra), object, len(rows))
        return cls(np.array([row.number for row in rows], np.int64), table, facts)

    def joined(self, more: Items) -> Items:
        """Return these and others, in the order of the pool."""
        number = np.concatenate([self.number, more.number])
        order = np.argsort(number, kind="stable")
        table = pa.concat_tables([self.table, more.table]).combine_chunks()
        attributes = np.concatenate([self.attributes, more.attributes])
        return Items(number[order], table.take(pa.array(order)), attributes[order])

    def column(self, name: str) -> Any:
        """Return a column as one Arrow array."""
        return self.table[name].combine_chunks()


def tagset_of(tags: str, encoding: str) -> Codec | Questions:
    """Return what a campaign keeps answers by, from the columns of its table."""
    rows = read_json(tags)
    return Questions.of(rows) if encoding == Questions.encoding else Codec(tuple(rows), encoding)


WHO_ANSWERED = Codec(("answered",), "PLAIN")
"""Tags of the crowd of a task of several layers: who answered what; `layers_of` has the rest."""


@dataclass(frozen=True)
class Labels:
    """The label set of a campaign and the versions of it and of the guideline."""

    tagset: Codec | Questions
    after: NDArray[np.int64]  # The last answer before every version, int64 [n_versions]

    @classmethod
    def of(cls, connection: Connection) -> Labels:
        """Read what is in force."""
        row = connection.execute(_TAGS).one()
        found = connection.execute(_VERSIONS).scalars()
        after = np.array([read_json(words)["after"] for words in found], np.int64)
        return cls(tagset_of(row.tags, row.encoding), after)

    def continues(self, before: Labels) -> bool:
        """Return whether what was read before still has the same codes and versions."""
        n_before, n_now = len(before.after), len(self.after)
        return self.tagset.tags == before.tagset.tags and (n_before > 0) == (n_now > 0)

    def versions(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the version of answers by their numbers, -1 where there is none."""
        found = np.searchsorted(self.after, numbers, side="left")
        return np.where(found > 0, found, -1)


def answers_of(rows: Sequence[Any], labels: Labels) -> Answers:
    """Take rows of `ANSWER` in any order; items and workers stay numbers of the store."""
    # Many answers say the same: that nothing is marked, for example.
    distinct, tagset = {row.labels for row in rows}, labels.tagset
    known = {
        words: [0] if isinstance(tagset, Questions)
        else [tagset.index[label] for label in _first_parts(words)] for words in distinct
    }  # fmt: skip
    codes = [known[row.labels] for row in rows]
    return Answers(
        np.array([row.item for row in rows], np.int32),
        np.array([row.worker for row in rows], np.int32),
        bounds_of([len(one) for one in codes]),
        np.fromiter(chain.from_iterable(codes), np.int16),
        np.zeros(len(rows), np.int16),
        started=np.array([row.started for row in rows], np.int64),
        submitted=np.array([row.submitted for row in rows], np.int64),
        cost=np.array([row.cost for row in rows], np.int64),
        guideline=labels.versions(np.array([row.number for row in rows], np.int64)),
    )


Cut = dict[tuple[int, int], list[Any]]
"""Labels of answers that cut tokens, by the store's numbers of item and worker."""


def _first_parts(words: str) -> list[str | None]:
    found: list[Any] = read_json(words)
    if "[[" in words:
        found = [one[0][1] if isinstance(one, list) else one for one in found]
    return found


def cut_answers(rows: Sequence[Any], before: Cut | None = None) -> Cut:
    """Return the labels of answers that cut tokens; of versions the last one holds."""
    found = dict(before or {})
    for row in rows:
        if "[[" in row.labels:
            found[row.item, row.worker] = read_json(row.labels)
        elif found:
            found.pop((row.item, row.worker), None)
    return found


def crowd_of(
    connection: Connection, found: Items, given: Answers, tagset: Codec | Questions, cut: Cut
) -> Crowd:
    """Make a crowd, with the workers' ids and the gold as they are now."""
    if isinstance(tagset, Questions):  # every item has one place for an answer
        ids = list_array(found.column("id"), np.arange(len(found.number) + 1))
        table = found.table.select(["id", "group", "text"]).append_column("tokens", ids)
        none = pa.nulls(len(found.number), pa.list_(pa.int32()))
        found = replace(found, table=table.append_column("token_start", none))
        tagset, cut = WHO_ANSWERED, {}
    # The answers are to some of the items, by item and then as they came, with the store's numbers;
    # every answer's tokens are cut where one answer to the item, or its gold, cuts them.
    people, worker = np.unique(given.worker, return_inverse=True)
    if given.guideline is not None and (given.guideline < 0).all():
        given = replace(given, guideline=None)
    rows = connection.execute(select(workers.c.number, SHOWN.label("id")))
    known = {row.number: row.id for row in rows}
    item = np.searchsorted(found.number, given.item)
    tokens = found.column("tokens")
    known_gold, cut_gold = (
        (None, {}) if tagset is WHO_ANSWERED
        else _gold(connection, found.number, tokens.offsets.to_numpy(), tagset)
    )  # fmt: skip
    made = Crowd(
        item_ids=found.column("id"),
        tokens=tokens,
        worker_ids=pa.array([known[number] for number in people.tolist()], pa.string()),
        tagset=tagset,
        answers=replace(given, item=item.astype(np.int32), worker=worker.astype(np.int32)),
        groups=_words(found, "group"),
        gold=known_gold,
        texts=_words(found, "text"),
        token_start=_starts(found),
        attributes=_attributes(found.attributes),
    )
    if (not cut and not cut_gold) or made.token_start is None:
        return made
    items_at = {number: n for n, number in enumerate(found.number.tolist())}
    worker_at = {number: n for n, number in enumerate(people.tolist())}
    own = {
        (items_at[n], worker_at[who]): labels
        for (n, who), labels in cut.items()
        if n in items_at and who in worker_at
    }
    return _with_parts(made, own, cut_gold)


def layers_of(
    connection: Connection, found: Items, rows: Sequence[Any], labels: Labels
) -> dict[str, Crowd]:
    """Make a crowd of every layer of items, from rows of `ANSWER` by item, as they came."""
    assert isinstance(labels.tagset, Questions)
    query = select(workers.c.number, SHOWN.label("id"))
    names = {row.number: row.id for row in connection.execute(query)}
    versions = labels.versions(np.array([row.number for row in rows], np.int64)).tolist()
    given: dict[int, list[tuple[str, Any, dict[str, int]]]] = {}
    for row, version in zip(rows, versions, strict=True):
        facts = {"submitted": row.submitted, "cost": row.cost}
        facts |= {"started": row.started} if row.started >= 0 else {}
        facts |= {"guideline": version} if version > 0 else {}
        given.setdefault(row.item, []).append((names[row.worker], read_json(row.labels), facts))
    known = {row.item: read_json(row.labels) for row in connection.execute(select(gold))}
    items_of = [
        AnsweredItem(
            one["id"], one["tokens"], given.get(number, ()), one["group"], one["text"],
            one["token_start"], known.get(number) or None,
        )
        for number, one in zip(found.number.tolist(), found.table.to_pylist(), strict=True)
    ]  # fmt: skip
    people = dict.fromkeys(name for own in given.values() for name, _, _ in own)
    return crowds_of(labels.tagset, items_of, sorted(people))


def _with_parts(crowd: Crowd, own: Cut, gold: dict[int, list[Any]]) -> Crowd:
    """Cut the tokens of a crowd as answers and gold do that are in it by their first parts."""
    by_item: dict[int, list[list[Any]]] = {n: [labels] for n, labels in gold.items()}
    for (n, _), labels in own.items():
        by_item.setdefault(n, []).append(labels)
    cuts = {n: cuts_of(every) for n, every in by_item.items()}
    points: dict[int, set[int]] = {}
    for n, each in cuts.items():
        before = [0, *accumulate(map(len, crowd.tokens_list[n]))]
        points[n] = {before[token] + char for token, chars in each.items() for char in chars}
    made, index = split_tokens(crowd, points), crowd.tagset.index
    answers, codes = made.answers, made.answers.codes.copy()
    known = None if made.gold is None else made.gold.copy()
    for at in np.flatnonzero(np.isin(answers.item, list(cuts))).tolist():
        n = int(answers.item[at])
        given = own.get((n, int(answers.worker[at])))
        if given is not None:
            tags = fit(given, cuts[n], crowd.tagset.encoding)
            codes[answers.offset[at] : answers.offset[at + 1]] = [index[tag] for tag in tags]
    for n, labels in gold.items():
        tags = fit(labels, cuts[n], crowd.tagset.encoding)
        if known is not None:
            known[made.offsets[n] : made.offsets[n + 1]] = [index[tag] for tag in tags]
    return replace(made, answers=replace(answers, codes=codes), gold=known)


def token_starts(connection: Connection, ids: Sequence[str]) -> dict[str, list[int]]:
    """Return the first characters of the tokens of items, as they were before anybody cut them."""
    rows = connection.execute(select(items.c.id, items.c.extra).where(items.c.id.in_(list(ids))))
    return {row.id: read_json(row.extra).get("token_start") or [] for row in rows if row.extra}


def bounds_of(lengths: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where parts of these lengths begin and end, int64 [n + 1].

    >>> bounds_of([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.asarray(lengths, np.int64))])


def _gold(
    connection: Connection, number: NDArray[np.int64], bounds: NDArray[Any], tagset: Codec
) -> tuple[NDArray[np.int16] | None, dict[int, list[Any]]]:
    """Return the known codes, of cut tokens those of their first parts, and labels that cut."""
    rows = ((row.item, read_json(row.labels)) for row in connection.execute(select(gold)))
    known = {item: labels for item, labels in rows if any(labels)}  # others were taken back
    places = np.flatnonzero(np.isin(number, np.array(list(known), np.int64))).tolist()
    if not places:
        return None, {}
    codes, cut = np.full(bounds[-1], -1, np.int16), {}
    for place in places:
        labels = known[int(number[place])]
        if any(isinstance(label, list) for label in labels):
            cut[place] = labels
            labels = [label[0][1] if isinstance(label, list) else label for label in labels]
        codes[bounds[place] : bounds[place] + len(labels)] = [tagset.index[one] for one in labels]
    return codes, cut


def _words(found: Items, name: str) -> pa.Array | None:
    column = found.column(name)
    return None if column.null_count == len(column) else column


def _starts(found: Items) -> NDArray[np.int32] | None:
    column = found.column("token_start")
    if not len(column) or column.null_count:
        return None
    return np.asarray(column.flatten().to_numpy())


def _attributes(facts: NDArray[np.object_]) -> pa.Table | None:
    names = list(dict.fromkeys(chain.from_iterable(facts)))
    columns = {name: _cells([each.get(name) for each in facts]) for name in names}
    return pa.table(columns) if names else None


def _cells(values: list[Any]) -> pa.Array:
    """Take the values of one attribute; as strings where they are of several sorts."""
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        words = [v if isinstance(v, str | None) else canonical(v) for v in values]
        return pa.array(words, pa.string())


# --------------------------------------------------------------------------------------------------
# The answers that count, read once: a look at a campaign reads only what came since the last one.


PAGE = 5_000
"""Answers that are read at once."""
_NEW = (
    select(*ANSWER)
    .where((answers.c.counts == 1) & (answers.c.number > bindparam("after")))
    .order_by(answers.c.number)
    .limit(bindparam("size"))
)
_TAGS = select(campaign.c.tags, campaign.c.encoding)
_VERSIONS = select(records.c.body).where(records.c.kind == VERSION).order_by(records.c.number)
_ITEMS = select(*ITEM).where(items.c.number.in_(SOME)).order_by(items.c.number)


@dataclass(frozen=True, eq=False)
class Seen:
    """What was read so far; the crowd of a look shares these columns."""

    last: int  # Number of the last answer
    labels: Labels = field(repr=False)  # The label set and its versions
    items: Items = field(repr=False)  # Those that have an answer
    # By item, then as they came, with the store's numbers of items and workers
    answers: Answers = field(repr=False)
    cut: Cut = field(repr=False)  # Answers that cut tokens


class AnswerCache:
    """Return the answered items with their answers, again and again; threads may share it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._lock = threading.Lock()
        self._seen: Seen | None = None

    def crowd(self) -> Crowd:
        """Return the crowd as it is now."""
        # The lock comes first: a connection that is older than what was seen would lack workers.
        with self._lock, self.database.read() as connection:
            labels = Labels.of(connection)
            if self._seen is None or not labels.continues(self._seen.labels):
                self._seen = Seen(0, labels, Items.of([]), answers_of([], labels), {})
            self._seen = seen = _read_on(connection, self._seen, labels)
            return crowd_of(connection, seen.items, seen.answers, labels.tagset, seen.cut)


def _read_on(connection: Connection, seen: Seen, labels: Labels) -> Seen:
    """Read what came since."""
    last, parts, cut = seen.last, [seen.answers], seen.cut
    for rows in _pages(connection, seen.last):
        parts.append(answers_of(rows, labels))
        cut = cut_answers(rows, cut)
        last = rows[-1].number
    if len(parts) == 1:
        return replace(seen, labels=labels)
    given = _joined(parts)
    new = np.setdiff1d(given.item, seen.items.number).tolist()
    rows = list(rows_of(connection, _ITEMS, new))
    found = seen.items.joined(Items.of(rows)) if rows else seen.items
    return Seen(last, labels, found, given.take(_last_versions(given)), cut)


def _last_versions(given: Answers) -> NDArray[np.intp]:
    """Return where the last version of every answer is, by item and then as they came."""
    order: NDArray[np.intp] = np.argsort(given.item, kind="stable")
    pair = (given.item.astype(np.int64) << 32 | given.worker)[order]
    # Of every pair the last one in this order: unique gives the first, so it is read backwards.
    _, backwards = np.unique(pair[::-1], return_index=True)
    if len(backwards) == len(pair):
        return order
    kept: NDArray[np.intp] = order[np.sort(len(pair) - 1 - backwards)]
    return kept


def _pages(connection: Connection, after: int) -> Iterator[Sequence[Any]]:
    while rows := connection.execute(_NEW, {"after": after, "size": PAGE}).all():
        yield rows
        if len(rows) < PAGE:
            return
        after = rows[-1].number


def _joined(parts: Sequence[Answers]) -> Answers:
    names = ("item", "worker", "codes", "attempt", "started", "submitted", "cost", "guideline")
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return Answers(offset=bounds_of(np.concatenate([part.lengths for part in parts])), **columns)
