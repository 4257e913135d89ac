"""Choosing control questions: items whose truth is known, hidden among the others or asked first.

Three things make a bad set. If most questions have the most frequent label, whoever always gives it
passes; so every label, or type of span, gets the same share, and so do items without spans. If all
are easy, they do not tell good workers from very good ones; so a share are hard. If all are from
one document, they test whether somebody knows that document; so they are from many.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.aggregate.votes import TokenVote
from goldspan.crowd import Crowd, write_crowd
from goldspan.crowd.atomic import write_text
from goldspan.crowd.cells import csv_text
from goldspan.errors import InputError, UnknownNameError
from goldspan.hiring.spreading import Draw, pick
from goldspan.spans import find_spans

if TYPE_CHECKING:
    from goldspan.aggregate import Consensus

BY = ("auto", "label", "type")
"""What control questions are spread over."""
NO_SPANS = "no spans"
"""Items in which there is nothing to find."""
TOP = 3
"""Hard is at most every third of the items with gold: the hardest, and not agreed on by all."""
DIGITS = 6
"""Of hardness, which comes from single precision: what differs further behind is equally hard."""
MOST = 0.5
"""Gold is doubtful where more than this share of the answers agree on something else."""


@dataclass(frozen=True, eq=False)
class ControlSet:
    """Control questions, and why each was taken.

    Attributes:
        crowd: The crowd that they were chosen from.
        item: int64 [n], indexes of the items.
        stratum: The label or type of span that each stands for.
        hardness: float64 [n], 1 − the confidence that the answers give; NaN without answers.
        is_hard: bool [n], whether it was taken as a hard one.
        is_doubtful: bool [n], whether more than half agree on something else than the gold.
        notes: What could not be had as asked, in sentences.
    """

    crowd: Crowd
    item: NDArray[np.int64]
    stratum: tuple[str, ...]
    hardness: NDArray[np.float64]
    is_hard: NDArray[np.bool_]
    is_doubtful: NDArray[np.bool_]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Count the questions."""
        return len(self.item)

    @property
    def item_ids(self) -> list[str]:
        """The ids of the questions."""
        return list(self.crowd.item_ids.take(pa.array(self.item)).to_pylist())

    def reasons(self) -> list[str]:
        """Say of every question why it was taken, and what to look at."""
        found = []
        for name, value, hard, doubtful in zip(
            self.stratum, self.hardness, self.is_hard, self.is_doubtful, strict=True
        ):
            known = "nobody answered it yet" if math.isnan(value) else f"hardness {value:.2f}"
            words = f"{name}, {'hard' if hard else 'not hard'}: {known}"
            found.append(words + ("; most answers contradict its gold: check it" * bool(doubtful)))
        return found

    def questions(self) -> Crowd:
        """Give the items with their gold, without answers."""
        chosen = self.crowd.select_items(self.item)
        return Crowd(
            chosen.item_ids, chosen.tokens, pa.array([], pa.string()), chosen.tagset,
            chosen.answers.take(np.zeros(0, np.intp)), groups=chosen.groups, gold=chosen.gold,
            texts=chosen.texts, token_start=chosen.token_start, attributes=chosen.attributes,
        )  # fmt: skip

    def write(self, path: str | Path, *, raw_csv: bool = False) -> list[str]:
        """Write the questions with their gold, to be read with `gold=`.

        Args:
            path: Single labels go into a table item, label, reason (.csv), tagged tokens into a
                file of any format that holds gold (.tsv, .jsonl, .conll, .parquet).
            raw_csv: Whether cells of CSV stay as they are, also those that a spreadsheet may take
                for formulas.

        Returns:
            What the format cannot hold, in words.

        Raises:
            InputError: The path cannot be written, or the format does not suit.
        """
        single = self.crowd.is_classification
        if single != (Path(path).suffix == ".csv"):
            rule = "single labels as .csv" if single else "tagged tokens as .tsv or .jsonl"
            raise InputError(f"{path}: write control questions that are {rule}")
        if not single:
            return write_crowd(self.questions(), path)
        # The stratum of a single label is its gold.
        rows = zip(self.item_ids, self.stratum, self.reasons(), strict=True)
        write_text(path, [csv_text(["item", "label", "reason"], rows, raw=raw_csv)])
        return []

    def to_arrow(self) -> pa.Table:
        """Give a row per question: item, group (if any), stratum, hardness, is_hard, reason."""
        rows = pa.array(self.item)
        columns = {"item": self.crowd.item_ids.take(rows)}
        if self.crowd.groups is not None:
            columns["group"] = self.crowd.groups.take(rows)
        columns["stratum"] = pa.array(self.stratum, pa.string())
        columns["hardness"] = pa.array(self.hardness, mask=np.isnan(self.hardness))
        columns["is_hard"] = pa.array(self.is_hard)
        columns["reason"] = pa.array(self.reasons(), pa.string())
        return pa.table(columns)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values, for JSON."""
        return {"questions": self.to_arrow().to_pylist(), "notes": list(self.notes)}

    def __str__(self) -> str:
        """Say what they are."""
        counts = ", ".join(f"{name} {n}" for name, n in Counter(self.stratum).items())
        words = f"{len(self)} control questions: {counts}; {int(self.is_hard.sum())} hard"
        doubtful = int(self.is_doubtful.sum())
        words += f"; {doubtful} whose gold most answers contradict: check them" if doubtful else ""
        return "\n".join([words, *self.notes])


def choose_control(
    crowd: Crowd,
    n: int,
    *,
    by: str = "auto",
    hard: float = 0.3,
    result: Consensus | None = None,
    random_state: int = 0,
) -> ControlSet:
    r"""Choose control questions among the items whose gold is known at every token.

    Every label, or type of span, gets the same number as far as there are so many; an item with
    several types stands for the rarest. Within a label, items of documents that have few questions
    so far come first, then chance decides. The order of the items in the crowd does not matter.

    Args:
        crowd: A crowd with gold.
        n: How many.
        by: "label" (single labels), "type" (of spans), or "auto": what the crowd has.
        hard: Share of hard ones, 0 … 1. The hardest third of the items with gold is hard, as far
            as their answers differ; the seed decides which of equally hard items belong to it.
        result: What says how hard items are, by its confidence; by default the token vote.
        random_state: Seed.

    Raises:
        InputError: The gold is missing, there are too few items with gold, or those are all from
            one document of several.
        UnknownNameError: There is no such `by`.

    >>> import goldspan
    >>> rows = [f"{i},w,no,{'no' if i < 8 else 'yes'}" for i in range(10)]
    >>> crowd = goldspan.read_crowd("\n".join(["task,worker,label,gold", *rows]).encode())
    >>> sorted(choose_control(crowd, 4, hard=0).stratum)
    ['no', 'no', 'yes', 'yes']
    """
    _check(n, hard, random_state)
    seen = crowd if result is None else result.crowd
    same = seen.item_ids.equals(crowd.item_ids) and np.array_equal(seen.offsets, crowd.offsets)
    if not same:
        raise InputError("the result is of another crowd: its items are not those of this one")
    eligible = _known_items(crowd, n)
    names, stratum = _strata(crowd, eligible, by)
    group = _groups(crowd)
    _check_groups(crowd, eligible, group, n)
    if result is None and len(crowd.latest):
        result = TokenVote().fit(crowd).result_
    hardness, doubtful = _hardness(crowd, result)
    rank = _random_rank(crowd, random_state)
    is_hard = _hardest(hardness, rank, eligible)
    draw = Draw(group, rank, eligible)
    picked = pick(draw, stratum, is_hard, n, hard)
    chosen = np.array(picked, np.int64)
    missing = math.floor(hard * n + 0.5) - int(is_hard[chosen].sum())
    notes = [f"hard questions missing: {missing}, for too few hard items have gold"]
    return ControlSet(
        crowd, chosen, tuple(names[stratum[i]] for i in picked), hardness[chosen],
        is_hard[chosen], doubtful[chosen], tuple(notes if missing > 0 else []),
    )  # fmt: skip


def _check(n: int, hard: float, random_state: int) -> None:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InputError(f"n must be a whole number of questions, at least 1, not {n!r}")
    if not 0 <= hard <= 1:
        raise InputError(f"hard must be a share in 0 … 1, not {hard}")
    if not isinstance(random_state, int | np.integer) or random_state < 0:
        raise InputError(f"random_state must be a whole number of at least 0, not {random_state!r}")


def _known_items(crowd: Crowd, n: int) -> NDArray[np.int64]:
    """Give the items whose gold is known at every token."""
    unknown = np.concatenate([[0], np.cumsum(crowd.gold_tagged.codes < 0)])
    found = np.flatnonzero(np.diff(unknown[crowd.offsets]) == 0)
    if len(found) < n:
        raise InputError(
            f"{n} control questions are asked for, but only {len(found)} of {crowd.n_items} items "
            "have gold at every token: label more of them, or ask for fewer"
        )
    return found


def _strata(
    crowd: Crowd, eligible: NDArray[np.int64], by: str
) -> tuple[list[str], NDArray[np.int64]]:
    """Give the names of the strata, and the stratum of every item, int64 [n_items], −1 for none."""
    if by not in BY:
        raise UnknownNameError("way to spread control questions", by, BY)
    single = crowd.is_classification
    if by == ("type" if single else "label"):
        raise InputError(
            f"by={by!r} does not suit these items, which are "
            f"{'single labels: use by=' if single else 'tagged tokens: use by='}"
            f"{'label' if single else 'type'!r}"
        )
    stratum = np.full(crowd.n_items, -1)
    if single:
        stratum[eligible] = crowd.gold_tagged.codes[eligible]
        return list(crowd.tagset.tags), stratum
    spans, types = find_spans(crowd.gold_tagged, crowd.tagset), crowd.tagset.types
    pairs = np.unique(np.stack([spans.item, spans.type]).astype(np.int64), axis=1)
    pairs = pairs[:, np.isin(pairs[0], eligible)]
    frequent = np.bincount(pairs[1], minlength=len(types))
    stratum[eligible] = len(types)
    # The rarest type is written last, over the others.
    for item, kind in pairs[:, np.argsort(-frequent[pairs[1]], kind="stable")].T:
        stratum[item] = kind
    return [*types, NO_SPANS], stratum


def _groups(crowd: Crowd) -> NDArray[np.int64]:
    """Number the documents, int64 [n_items]; an item without one is a document of its own."""
    own = np.arange(crowd.n_items)
    if crowd.groups is None:
        return own
    index = crowd.groups.dictionary_encode().indices.fill_null(-1).to_numpy().astype(np.int64)
    return np.where(index < 0, crowd.n_items + own, index)


def _check_groups(
    crowd: Crowd, eligible: NDArray[np.int64], group: NDArray[np.int64], n: int
) -> None:
    if n > 1 and len(np.unique(group)) > 1 and len(np.unique(group[eligible])) == 1:
        assert crowd.groups is not None
        raise InputError(
            f"all {len(eligible)} items with gold are from document "
            f"{crowd.groups[int(eligible[0])].as_py()!r}: control questions from one document test "
            "who knows it; get gold for items of another one"
        )


def _hardness(
    crowd: Crowd, result: Consensus | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Give 1 − confidence, NaN where nobody answered, and whether most answers contradict gold."""
    if result is None:
        return np.full(crowd.n_items, np.nan), np.zeros(crowd.n_items, np.bool_)
    answered = np.diff(result.crowd.by_item.bounds) > 0
    said = np.array([*result.tagset.tags, "?"])[result.codes]
    known = np.array([*crowd.tagset.tags, "?"])[crowd.gold_tagged.codes]
    differences = np.concatenate([[0], np.cumsum(said != known)])
    contradicted = np.diff(differences[crowd.offsets]) > 0
    hardness = np.where(answered, 1 - result.confidence.astype(np.float64), np.nan)
    return hardness, contradicted & (hardness < MOST)


def _hardest(
    hardness: NDArray[np.float64], rank: NDArray[np.int64], eligible: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Mark the hardest third of the eligible items, bool [n_items]; of equals the first by rank."""
    known = np.nan_to_num(hardness).round(DIGITS)
    order = eligible[np.lexsort((rank[eligible], -known[eligible]))]
    found = np.zeros(len(hardness), np.bool_)
    found[order[: len(order) // TOP]] = True
    return found & (known > 0)


def _random_rank(crowd: Crowd, random_state: int) -> NDArray[np.int64]:
    """Draw an order of the items by their ids: it is the same however the crowd is sorted."""
    by_id = np.argsort(np.array(crowd.item_ids.to_pylist(), object), kind="stable")
    rank = np.empty(crowd.n_items, np.int64)
    rank[by_id] = np.random.default_rng(random_state).permutation(crowd.n_items)
    return rank
