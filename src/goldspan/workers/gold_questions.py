"""Gold questions: which items to ask with a known answer, and whether the answers leak."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._arrays import count_in_rows, rows_of
from goldspan.aggregation import Consensus, aggregate
from goldspan.aggregation.base import has_words
from goldspan.aggregation.consensus import without_answers
from goldspan.aggregation.votes import TokenVote
from goldspan.crowd import Answers, Crowd, write_crowd
from goldspan.crowd.atomic import write_text
from goldspan.crowd.grid import csv_text
from goldspan.crowd.io import write_unlabelled
from goldspan.crowd.layers import require_flat
from goldspan.errors import InputError, UnknownNameError
from goldspan.params import Whole, require
from goldspan.spans import find_spans
from goldspan.spans.notebook import counted

# --------------------------------------------------------------------------------------------------
# Taking items evenly: over strata, over documents, and a share of hard ones.


class Draw:
    """Takes items one by one, those of documents with few questions first."""

    def __init__(
        self, group: NDArray[np.int64], rank: NDArray[np.int64], eligible: NDArray[np.int64]
    ) -> None:
        self.rank, self.group = rank, np.unique(group, return_inverse=True)[1]
        self.times = np.zeros(len(group), np.int64)
        self.is_free = np.zeros(len(group), np.bool_)
        self.is_free[eligible] = True

    def free(self, wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the items that are wanted and not taken yet."""
        found: NDArray[np.int64] = np.flatnonzero(wanted & self.is_free)
        return found

    def elsewhere(self, pool: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what the pool has from documents without a question; if none, any such items."""
        fresh: NDArray[np.int64] = pool[self.times[self.group[pool]] == 0]
        if len(fresh):
            return fresh
        others = self.free(np.asarray(self.times[self.group] == 0))
        return others if len(others) else pool

    def take(self, pool: NDArray[np.int64]) -> int:
        """Take the next item of a pool."""
        busy = self.times[self.group[pool]]
        item = int(pool[np.lexsort((self.rank[pool], busy))[0]])
        self.is_free[item] = False
        self.times[self.group[item]] += 1
        return item


def pick(
    draw: Draw, stratum: NDArray[np.int64], is_hard: NDArray[np.bool_], n: int, hard: float
) -> list[int]:
    """Take n items: the strata in turn, the most frequent first, each its hard items first."""
    # stratum int64 [n_items]; is_hard bool [n_items]
    sizes = np.bincount(stratum[draw.is_free])
    n_hard = np.bincount(stratum[draw.is_free & is_hard], minlength=len(sizes))
    turns = places(sizes, n)
    quota = np.bincount(turns, minlength=len(sizes))
    owed = hard_quotas(quota, n_hard, sizes - n_hard, int(np.floor(hard * n + 0.5)))
    picked: list[int] = []
    for s in turns:
        pool = draw.free(stratum == s)
        if len(picked) == n - 1 and len(set(draw.group[picked].tolist())) == 1:
            pool = draw.elsewhere(pool)
        fitting = pool[is_hard[pool] == (owed[s] > 0)]
        picked.append(draw.take(fitting if len(fitting) else pool))
        owed[s] -= 1
    return picked


def places(sizes: NDArray[np.int64], n: int) -> list[int]:
    """Return which stratum comes next, n times: in turn, as long as it has items."""
    found: list[int] = []
    left = sizes.copy()
    turns = np.argsort(-sizes, kind="stable").tolist()
    while len(found) < n:
        for s in turns:
            if left[s] and len(found) < n:
                left[s] -= 1
                found.append(s)
    return found


def hard_quotas(
    quota: NDArray[np.int64], n_hard: NDArray[np.int64], n_easy: NDArray[np.int64], total: int
) -> NDArray[np.int64]:
    """Return how many hard items every stratum gives, int64 [n_strata].

    All give the same share, as far as they have so many. A stratum with too few others gives more.
    """
    given = np.maximum(quota - n_easy, 0)
    most = np.minimum(quota, n_hard)
    while given.sum() < total and (given < most).any():
        share = np.where(given < most, given / np.maximum(quota, 1), np.inf)
        given[share.argmin()] += 1
    return np.asarray(given)


# --------------------------------------------------------------------------------------------------
# Choosing gold questions: items whose truth is known, hidden among the others or asked first.


BY = ("auto", "information")
"""Spread over the labels or types of spans, or chosen for what they teach."""
SHORT = 50
"""Tokens as which a shorter document counts: a single doubt in few words is not all there is."""
TO_CHECK = "to check"
"""Stands for a label that is not known yet."""
NO_SPANS = "no spans"
"""Items in which there is nothing to find."""
TOP = 3
"""Hard is at most every third of the items with gold: the hardest, and not agreed on by all."""
DIGITS = 6
"""Of hardness, which comes from single precision: what differs further behind is equally hard."""
MOST = 0.5
"""Gold is doubtful where more than this share of the answers agree on something else."""


@dataclass(frozen=True, eq=False)
class GoldQuestions:
    """Gold questions, and why each was taken."""

    crowd: Crowd  # The crowd that they were chosen from
    item: NDArray[np.int64]  # Int64 [n], indexes of the items
    stratum: tuple[str, ...]  # The label or type of span that each stands for
    # Float64 [n], 1 − the confidence that the answers give; NaN without answers
    hardness: NDArray[np.float64]
    is_hard: NDArray[np.bool_]  # Bool [n], whether it was taken as a hard one
    # Bool [n], whether more than half agree on something else than the gold
    is_doubtful: NDArray[np.bool_]
    notes: tuple[str, ...] = ()  # What could not be had as asked, in sentences

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
            words = f"{name}: {known}"
            if name != TO_CHECK:
                words = f"{name}, {'hard' if hard else 'not hard'}: {known}"
            found.append(words + ("; most answers contradict its gold: check it" * bool(doubtful)))
        return found

    def questions(self) -> Crowd:
        """Return the items with their gold, without answers."""
        return without_answers(self.crowd.select_items(self.item))

    def write(self, path: str | Path, *, raw_csv: bool = False) -> list[str]:
        """Write the questions with their gold, to be read with `gold=`.

        Items to have checked are written without, as by `AuditPlan.write`.

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
        if self.stratum[:1] == (TO_CHECK,):
            nothing = replace(self.questions(), gold=None, attributes=None)
            write_unlabelled(nothing, path, raw_csv=raw_csv)
            return []
        single = self.crowd.is_classification
        if single != (Path(path).suffix == ".csv"):
            rule = "single labels as .csv" if single else "tagged tokens as .tsv or .jsonl"
            raise InputError(f"{path}: write gold questions that are {rule}")
        if not single:
            return write_crowd(self.questions(), path)
        # The stratum of a single label is its gold.
        rows = zip(self.item_ids, self.stratum, self.reasons(), strict=True)
        write_text(path, [csv_text(["item", "label", "reason"], rows, raw=raw_csv)])
        return []

    def to_arrow(self) -> pa.Table:
        """Return a row per question: item, group (if any), stratum, hardness, is_hard, reason."""
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
        """Return everything as plain values, for JSON."""
        return {"questions": self.to_arrow().to_pylist(), "notes": list(self.notes)}

    def __str__(self) -> str:
        """Return what they are."""
        if self.stratum[:1] == (TO_CHECK,):
            return f"{counted(len(self), 'item')} to have checked, the most doubtful texts first"
        counts = ", ".join(f"{name} {n}" for name, n in Counter(self.stratum).items())
        words = f"{len(self)} gold questions: {counts}; {int(self.is_hard.sum())} hard"
        doubtful = int(self.is_doubtful.sum())
        words += f"; {doubtful} whose gold most answers contradict: check them" if doubtful else ""
        return "\n".join([words, *self.notes])


def choose_gold_questions(
    crowd: Crowd,
    n: int,
    *,
    by: str = "auto",
    hard: float = 0.3,
    result: Consensus | None = None,
    random_state: int = 0,
) -> GoldQuestions:
    r"""Choose gold questions among the items whose gold is known at every token.

    Or, by="information", documents to have checked that teach most of what the crowd confuses:
    those with most doubt per token, until there are n items without gold.

    Every label, or type of span, gets the same number as far as there are so many; an item with
    several types stands for the rarest. Within a label, items of documents that have few questions
    so far come first, then chance decides. The order of the items in the crowd does not matter.

    Args:
        crowd: A crowd with gold.
        n: How many.
        by: "auto": spread over the labels, or the types of spans; or "information".
        hard: Share of hard ones, 0 … 1. The hardest third of the items with gold is hard, as far
            as their answers differ; the seed decides which of equally hard items belong to it.
        result: What says how hard items are, by its confidence; by default the token vote, for
            spans by="information" `bsc-seq+crf`.
        random_state: Seed.

    Raises:
        InputError: The gold is missing, there are too few items with gold, or those are all from
            one document of several.
        UnknownNameError: Unknown `by`.

    >>> import goldspan
    >>> rows = [f"{i},w,no,{'no' if i < 8 else 'yes'}" for i in range(10)]
    >>> crowd = goldspan.read_crowd("\n".join(["task,worker,label,gold", *rows]).encode())
    >>> sorted(choose_gold_questions(crowd, 4, hard=0).stratum)
    ['no', 'no', 'yes', 'yes']
    """
    require("n", n, Whole(1))
    require("random_state", random_state, Whole(0))
    if not 0 <= hard <= 1:
        raise InputError(f"hard must be a share in 0 … 1, not {hard}")
    seen = crowd if result is None else result.crowd
    same = seen.item_ids.equals(crowd.item_ids) and np.array_equal(seen.offsets, crowd.offsets)
    if not same:
        raise InputError("the result is of another crowd: its items are not those of this one")
    require_flat(crowd, "choosing gold questions")
    if by not in BY:
        raise UnknownNameError("way to spread gold questions", by, BY)
    if by == "information":
        return _informative(crowd, n, result)
    eligible = _known_items(crowd, n)
    names, stratum = _strata(crowd, eligible)
    group = crowd.document_of
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
    return GoldQuestions(
        crowd, chosen, tuple(names[stratum[i]] for i in picked), hardness[chosen],
        is_hard[chosen], doubtful[chosen], tuple(notes if missing > 0 else []),
    )  # fmt: skip


def _informative(crowd: Crowd, n: int, result: Consensus | None) -> GoldQuestions:
    """Choose whole documents by doubt per token; of the last one the first items."""
    if result is None:
        plain = crowd.is_classification or not has_words(crowd)
        result = TokenVote().fit(crowd).result_ if plain else aggregate(crowd, "bsc-seq+crf")
    doubt = -np.log(np.clip(result.confidence.astype(np.float64), 1e-6, 1))
    if result.posterior is not None and not crowd.is_classification:
        spans = result.posterior.marginals()
        doubt = np.bincount(spans.item, spans.mass * (1 - spans.mass), crowd.n_items)
    gold = np.full(crowd.n_tokens, -1) if crowd.gold is None else crowd.gold
    known = count_in_rows(gold >= 0, crowd.offsets) > 0
    open_items = np.flatnonzero(~known & (np.diff(crowd.by_item.bounds) > 0))
    if len(open_items) < n:
        raise InputError(
            f"{n} items are asked for, but {len(open_items)} are answered without gold"
        )
    _, group = np.unique(crowd.document_of[open_items], return_inverse=True)
    tokens = np.bincount(group, np.diff(crowd.offsets)[open_items])
    per_token = np.bincount(group, doubt[open_items]) / np.maximum(tokens, SHORT)
    chosen = open_items[np.argsort(-per_token[group], kind="stable")][:n]
    none = np.zeros(n, np.bool_)
    return GoldQuestions(crowd, chosen, (TO_CHECK,) * n, 1 - np.exp(-doubt[chosen]), none, none)


def _known_items(crowd: Crowd, n: int) -> NDArray[np.int64]:
    """Return the items whose gold is known at every token."""
    found = np.flatnonzero(count_in_rows(crowd.gold_tagged.codes < 0, crowd.offsets) == 0)
    if len(found) < n:
        raise InputError(
            f"{n} gold questions are asked for, but only {len(found)} of {crowd.n_items} items "
            "have gold at every token: label more of them, or ask for fewer"
        )
    return found


def _strata(crowd: Crowd, eligible: NDArray[np.int64]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of the strata, and every item's stratum, int64 [n_items], −1 for none."""
    stratum = np.full(crowd.n_items, -1)
    if crowd.is_classification:
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


def _check_groups(
    crowd: Crowd, eligible: NDArray[np.int64], group: NDArray[np.int64], n: int
) -> None:
    if n > 1 and len(np.unique(group)) > 1 and len(np.unique(group[eligible])) == 1:
        assert crowd.groups is not None
        raise InputError(
            f"all {len(eligible)} items with gold are from document "
            f"{crowd.groups[int(eligible[0])].as_py()!r}: gold questions from one document test "
            "who knows it; get gold for items of another one"
        )


def _hardness(
    crowd: Crowd, result: Consensus | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return 1 − confidence, NaN where nobody answered, and whether most contradict gold."""
    if result is None:
        return np.full(crowd.n_items, np.nan), np.zeros(crowd.n_items, np.bool_)
    answered = np.diff(result.crowd.by_item.bounds) > 0
    said = np.array([*result.tagset.tags, None])[result.codes]
    known = np.array([*crowd.tagset.tags, None])[crowd.gold_tagged.codes]
    contradicted = count_in_rows(said != known, crowd.offsets) > 0
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


# --------------------------------------------------------------------------------------------------
# Whether gold questions have leaked: how often each was shown, and who suddenly knows them.


MOST_SHOWN = 100
"""Answers after which a gold question is retired."""
LEVEL = 0.05
"""Chance of a false sign of a leak, over all questions together (Bonferroni)."""

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LeakReport:
    """How worn every gold question is; n questions."""

    item_ids: tuple[str, ...]  # Their ids
    shown: Counts  # Int64 [n], answers to it, every attempt
    seen_by: Counts  # Int64 [n], different workers
    repeats: Counts  # Int64 [n], answers by workers who had answered it before
    n_workers: int  # Workers who answered anything
    # Float64 [n], share right among the workers who saw it first; NaN without two different times
    early: Floats
    late: Floats  # Float64 [n], share right among those who saw it last; NaN likewise
    p_value: Floats  # Float64 [n], chance that late is better than early by so much; NaN likewise
    most_shown: int = MOST_SHOWN  # Answers after which a question is retired

    @property
    def seen_share(self) -> Floats:
        """Share of the workers who saw it, float64 [n]."""
        return np.asarray(self.seen_by / max(self.n_workers, 1))

    @property
    def is_worn(self) -> NDArray[np.bool_]:
        """Whether it was shown too often, bool [n]."""
        return np.asarray(self.shown >= self.most_shown)

    @property
    def is_suspect(self) -> NDArray[np.bool_]:
        """Whether late workers are so much better that it looks like a leak, bool [n]."""
        tested = max(int(np.isfinite(self.p_value).sum()), 1)
        return np.asarray(np.nan_to_num(self.p_value, nan=1.0) <= LEVEL / tested)

    @property
    def retire(self) -> list[str]:
        """The questions to replace, by id."""
        out = self.is_worn | self.is_suspect
        return [name for name, gone in zip(self.item_ids, out, strict=True) if gone]

    def reasons(self) -> list[str]:
        """Say of every question what is wrong with it; "" if nothing is."""
        found = []
        for i, (worn, suspect) in enumerate(zip(self.is_worn, self.is_suspect, strict=True)):
            words = [f"shown {self.shown[i]} times, the cap is {self.most_shown}"] * bool(worn)
            if suspect:
                words.append(
                    f"late workers are right {100 * self.late[i]:.0f} % of the time, early ones "
                    f"{100 * self.early[i]:.0f} % (p = {self.p_value[i]:.1g})"
                )
            found.append("; ".join(words))
        return found

    def to_arrow(self) -> pa.Table:
        """Return a row per question: item, shown, seen_by, seen_share, repeats, …, reason."""
        columns: dict[str, Any] = {
            "item": pa.array(self.item_ids, pa.string()),
            "shown": pa.array(self.shown),
            "seen_by": pa.array(self.seen_by),
            "seen_share": pa.array(self.seen_share),
            "repeats": pa.array(self.repeats),
        }
        for name in ("early", "late", "p_value"):
            values = getattr(self, name)
            columns[name] = pa.array(values, mask=np.isnan(values))
        columns["retire"] = pa.array(self.is_worn | self.is_suspect)
        columns["reason"] = pa.array(self.reasons(), pa.string())
        return pa.table(columns)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return {
            "workers": self.n_workers,
            "most_shown": self.most_shown,
            "retire": self.retire,
            "questions": self.to_arrow().to_pylist(),
        }

    def __str__(self) -> str:
        """Return which questions to replace, and why."""
        most = int(self.shown.max(initial=0))
        head = (
            f"{len(self.item_ids)} gold questions, shown up to {most} times to "
            f"{self.n_workers} workers; {int(self.repeats.sum())} answers by workers who had "
            "answered the question before"
        )
        lines = [head]
        unknown = int(np.isnan(self.p_value).sum())
        if unknown:
            which = "" if unknown == len(self.p_value) else f" for {unknown} of the questions"
            lines.append(
                f"no times, or all the same: whether late workers are better is unknown{which}"
            )
        lines += [
            f"retire {name}: {why}"
            for name, why in zip(self.item_ids, self.reasons(), strict=True)
            if why
        ]
        return "\n".join(lines if self.retire else [*lines, "none needs to be retired"])


def check_leaks(
    crowd: Crowd,
    control: GoldQuestions | Iterable[str] | None = None,
    *,
    most_shown: int = MOST_SHOWN,
) -> LeakReport:
    r"""See how worn gold questions are.

    An answer is right if all its labels are the gold's; skipped tokens are wrong. Answers without a
    time of submission are left out of the comparison of early and late; without two different times
    there is none, and `early`, `late` and `p_value` are NaN.

    Args:
        crowd: The answers so far, with the gold of the gold questions.
        control: The questions, chosen or by id; by default all items with gold at every token.
        most_shown: Answers after which a question is retired, at least 1.

    Raises:
        InputError: A question is no item of the crowd or has no gold, there is none, or the
            numbers make no sense.

    >>> import goldspan
    >>> rows = "".join(f"q,w{i},{'no' if i < 6 else 'yes'},yes,{i}\n" for i in range(12))
    >>> crowd = goldspan.read_crowd(("task,worker,label,gold,submitted\n" + rows).encode())
    >>> print(check_leaks(crowd).reasons()[0])
    late workers are right 100 % of the time, early ones 0 % (p = 0.001)
    """
    if isinstance(most_shown, bool) or most_shown < 1:
        raise InputError(f"most_shown must be at least 1, not {most_shown}")
    items = _control_items(crowd, control)
    place = np.full(crowd.n_items, -1)
    place[items] = np.arange(len(items))
    answers = crowd.answers.take(place[crowd.answers.item] >= 0)
    which, size = place[answers.item], len(items)
    shown = np.bincount(which, minlength=size)
    is_first = _first_answers(answers)
    seen_by = np.bincount(which[is_first], minlength=size)
    trend = _trends(crowd, answers.take(is_first), which[is_first], size)
    names = tuple(crowd.item_ids.take(pa.array(items)).to_pylist())
    n_workers = len(np.unique(crowd.answers.worker))
    return LeakReport(names, shown, seen_by, shown - seen_by, n_workers, *trend, int(most_shown))


def _control_items(crowd: Crowd, control: GoldQuestions | Iterable[str] | None) -> Counts:
    """Return the gold questions as indexes of items."""
    known = count_in_rows(crowd.gold_tagged.codes < 0, crowd.offsets) == 0
    if control is None:
        found = np.flatnonzero(known)
    else:
        names = control.item_ids if isinstance(control, GoldQuestions) else list(control)
        found = np.array([crowd.item_index(name) for name in dict.fromkeys(names)], np.int64)
        without = [crowd.item_ids[int(i)].as_py() for i in found if not known[i]]
        if without:
            raise InputError(
                f"{len(without)} gold questions have tokens without gold (first: "
                f"{without[0]}): read the crowd with their gold"
            )
    if not len(found):
        raise InputError("no gold question: no item has gold at every token")
    return found


def _first_answers(answers: Answers) -> NDArray[np.bool_]:
    """Return which answers are the first of their worker to their item, bool [n_answers]."""
    # Time decides where it is known, for attempts may be numbered so that the first one counts
    when = np.zeros(len(answers)) if answers.submitted is None else answers.submitted
    order = np.lexsort((answers.attempt, when, answers.worker, answers.item))
    item, worker = answers.item[order], answers.worker[order]
    same = (item[1:] == item[:-1]) & (worker[1:] == worker[:-1])
    is_first = np.ones(len(answers), np.bool_)
    is_first[order[1:][same]] = False
    return is_first


def _trends(
    crowd: Crowd, answers: Answers, which: Counts, size: int
) -> tuple[Floats, Floats, Floats]:
    """Return the share right early and late, and the p-value, float64 [size] each."""
    early, late, p_value = np.full((3, size), np.nan)
    if answers.submitted is None:
        return early, late, p_value
    is_wrong = answers.codes != crowd.gold_tagged.codes[rows_of(crowd.offsets, answers.item)[1]]
    right = count_in_rows(is_wrong, answers.offset) == 0
    order = np.lexsort((answers.submitted, which))
    order = order[answers.submitted[order] >= 0]
    bounds = np.searchsorted(which[order], np.arange(size + 1))
    for i in range(size):
        course = order[bounds[i] : bounds[i + 1]]
        at = middle(answers.submitted[course])
        if at:
            first, last = right[course[:at]], right[course[at:]]
            early[i], late[i] = first.mean(), last.mean()
            counts = int(first.sum()), len(first), int(last.sum()), len(last)
            p_value[i] = later_is_better(*counts)
    return early, late, p_value


def middle(times: Counts) -> int:
    """Return how many of the first times are early: what is equal is not parted; 0 if all are."""
    # times int64 [n], sorted
    edges = np.flatnonzero(np.diff(times)) + 1
    return int(edges[np.abs(2 * edges - len(times)).argmin()]) if len(edges) else 0


def later_is_better(early: int, n_early: int, late: int, n_late: int) -> float:
    """Return Fisher's one-sided p-value: P(so many or more right among the late | right in all)."""
    from scipy.stats import hypergeom

    return float(hypergeom.sf(late - 1, n_early + n_late, early + late, n_late))
