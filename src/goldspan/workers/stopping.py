"""When an item has answers enough: stopping rules, and what one more answer should gain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._arrays import draws, fixed
from goldspan._kernel import kernel
from goldspan.aggregation.consensus import Consensus
from goldspan.aggregation.families import Families
from goldspan.aggregation.votes import vote_counts
from goldspan.chains.sampling import fill_gains
from goldspan.crowd import Crowd
from goldspan.crowd.measures import label_counts
from goldspan.errors import InputError, UnknownNameError
from goldspan.params import Number, Whole, read_call, require
from goldspan.plugins import load
from goldspan.workers.beta import Reliability, expected_confusions
from goldspan.workers.selection import read_prices

# --------------------------------------------------------------------------------------------------
# What another answer is worth: how much surer it is expected to make an item's labels.


STRENGTH = 10.0
"""So many answers of the mean worker are added to every row of a worker's own."""
SAMPLE = 50
"""Tokens by which workers are ranked before every item looks at the best of them."""
_SMOOTH = 0.5
"""Pseudo-count of every label in the mean worker's rows; the right one has one more."""
_STEPS = 0.5, 1e-3
"""Pseudo-counts of steps between labels that the encoding allows, and of others."""
PATHS = 16
"""Answers that are drawn."""
_BLOCK = 1 << 20
"""Numbers that are in memory at once."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Habits:
    """What workers answer to every truth."""

    tables: Floats  # [n_workers, J, J]: chance of label c where the truth is j
    mean: Floats  # [J, J], the mean worker: what is expected of one who is not known
    shares: Floats  # [J], how frequent every label is: the posterior where nobody answered


def learn_habits(result: Consensus, *, memory: bool = False) -> Habits:
    """Learn from a result what its workers answer to every truth.

    With memory, tables are float64 [..., 2, J, J]: where the worker's own last label was outside of
    spans, and inside of one.
    """
    crowd, probs = result.crowd, result.token_probs
    n_labels, codes = probs.shape[1], crowd.latest.codes
    kept = codes >= 0
    worker, token = crowd.worker_of[kept].astype(np.int64), crowd.token_of[kept]
    shape: tuple[int, ...] = (crowd.n_workers, n_labels, n_labels)
    if memory:
        before = np.zeros(len(codes) + 1, np.bool_)
        before[1:] = kept & (codes != crowd.tagset.outside)
        before[crowd.latest.offset[:-1]] = False
        worker, shape = 2 * worker + before[:-1][kept], (crowd.n_workers, 2, n_labels, n_labels)
    n_tables = int(np.prod(shape[:-2]))
    counts = expected_confusions(worker, codes[kept], probs, token, n_tables).reshape(shape)
    mean = counts.sum(axis=0) + _SMOOTH + np.eye(n_labels)
    mean /= mean.sum(axis=-1, keepdims=True)
    tables = counts + STRENGTH * mean
    tables /= tables.sum(axis=-1, keepdims=True)
    shares = probs.sum(axis=0, dtype=np.float64) + 1.0
    return Habits(tables, mean, shares / shares.sum())


def one_coin(right: float, n_labels: int) -> Floats:
    """Return the table of a worker who is right with one chance, float64 [J, J].

    >>> one_coin(0.8, 3).round(3).tolist()[0]
    [0.8, 0.1, 0.1]
    """
    if n_labels == 1:
        return np.ones((1, 1))
    wrong = (1 - right) / (n_labels - 1)
    return np.full((n_labels, n_labels), wrong) + np.eye(n_labels) * (right - wrong)


def posterior_of(result: Consensus, habits: Habits) -> Floats:
    """Return the labels' probabilities, float64 [n_tokens, J]; shares where nobody answered."""
    probs = result.token_probs.astype(np.float64)
    total = probs.sum(axis=1, keepdims=True)
    known = total[:, 0] > 0
    probs[known] /= total[known]
    probs[~known] = habits.shares
    return probs


def token_gain(probs: Floats, tables: Floats) -> Floats:
    """Return the expected gain of one answer."""
    # probs float64 [n, J], posteriors; tables float64 [n, J, J]; returns float64 [n]
    joint = probs[:, :, None] * tables
    said = joint.sum(axis=1)
    hits = np.square(joint).sum(axis=1)
    after = np.divide(hits, said, out=np.zeros_like(said), where=said > 0).sum(axis=1)
    return np.asarray(np.maximum(after - np.square(probs).sum(axis=1), 0.0))


def item_gain(probs: Floats, offsets: NDArray[np.int64], table: Floats) -> Floats:
    """Return the expected gain of one worker's answer to every item, float64 [n_items]."""
    # probs float64 [n_tokens, J]; offsets int64 [n_items + 1]; table float64 [J, J] of the worker
    step = max(1, _BLOCK // probs.shape[1] ** 2)
    gains = [token_gain(probs[at : at + step], table) for at in range(0, len(probs), step)]
    sums = np.concatenate([[0.0], np.cumsum(np.concatenate([*gains, np.zeros(0)]))])
    return np.asarray(sums[offsets[1:]] - sums[offsets[:-1]])


def pair_gain(
    probs: Floats, offsets: NDArray[np.int64], tables: Floats,
    item: NDArray[np.int64], worker: NDArray[np.int64],
) -> Floats:  # fmt: skip
    """Return the expected gain of single pairs of item and worker, float64 [n_pairs]."""
    # probs float64 [n_tokens, J]; offsets int64 [n_items + 1]; tables float64 [n_workers, J, J]
    # item int64 [n_pairs]; worker int64 [n_pairs]
    found = np.zeros(len(item))
    lengths = offsets[item + 1] - offsets[item]
    ends = np.cumsum(lengths)
    width = max(1, _BLOCK // probs.shape[1] ** 2)
    start = 0
    while start < len(item):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + width, side="right")))
        size = lengths[start:stop]
        pair = np.repeat(np.arange(start, stop), size)
        within = np.arange(len(pair)) - np.repeat(np.cumsum(size) - size, size)
        gains = token_gain(probs[offsets[item[pair]] + within], tables[worker[pair]])
        found[start:stop] = np.bincount(pair - start, gains, stop - start)
        start = stop
    return found


def sequence_gain(
    result: Consensus, probs: Floats, tables: Floats,
    item: NDArray[np.int64], worker: NDArray[np.int64], seed: int,
) -> Floats:  # fmt: skip
    """Return the expected gain of single pairs where labels hang together, float64 [n_pairs].

    The posterior after an answer is that of a chain: a doubtful span is there or not as a whole.
    The expectation is a mean over answers that are drawn.
    """
    # probs float64 [n_tokens, J]; tables float64 [n_workers, 2, J, J], of habits with memory
    # item int64 [n_pairs]; worker int64 [n_pairs]
    offsets = result.crowd.offsets
    cell = np.arange(2 * int(np.diff(offsets).max(initial=0)) * PATHS, dtype=np.uint64)
    drawn = draws(seed, "answers", cell).reshape(-1, PATHS).T
    inside = np.arange(probs.shape[1]) != result.tagset.outside
    by_item, found, gains = (
        np.argsort(item, kind="stable"),
        np.empty(len(item)),
        np.empty(len(item)),
    )
    indexes = (fixed(one, np.int64) for one in (item[by_item], worker[by_item], offsets, inside))
    numbers = (fixed(one, np.float64) for one in (probs, _steps(result), tables, drawn))
    fill_gains(*indexes, *numbers, found)
    gains[by_item] = found
    return gains


def _steps(result: Consensus) -> Floats:
    """Count the steps between neighbouring labels of a result, float64 [J, J]."""
    codes, n_labels, at = (
        result.codes.astype(np.int64),
        len(result.tagset.tags),
        result.crowd.offsets,
    )
    both = (codes[:-1] >= 0) & (codes[1:] >= 0)
    both[at[(at > 0) & (at < len(codes))] - 1] = False
    cell = codes[:-1][both] * n_labels + codes[1:][both]
    counts = np.bincount(cell, minlength=n_labels**2).reshape(n_labels, n_labels)
    return np.asarray(counts + np.where(result.tagset.mask, *_STEPS), np.float64)


def worth(habits: Habits, probs: Floats) -> Floats:
    """Rank workers for items alike: the gain of every worker on the mean of given posteriors."""
    # probs float64 [n, J]; returns float64 [n_workers]
    sample = probs[:: max(1, len(probs) // SAMPLE)][:SAMPLE]
    found = np.zeros(len(habits.tables))
    for one in sample:
        found += token_gain(np.broadcast_to(one, (len(found), len(one))), habits.tables)
    return found / max(1, len(sample))


# --------------------------------------------------------------------------------------------------
# Labels that are numbers, and how far each answer moved the mean of its item.


def mean_moves(crowd: Crowd, last: int = 1) -> NDArray[np.float64]:
    r"""Return the largest move of the mean by any of an item's last answers.

    Answers count in the order of their times where all have one, else in the order in which they
    stand.
    """
    # returns float64 [n_items]
    # The numbers answered and their items, by item and within it in order of time
    if not crowd.is_classification:
        raise InputError("stable_average is for single labels that are numbers")
    answers = crowd.latest
    when = answers.submitted
    if when is None or (when < 0).any():
        order = crowd.by_item.order
    else:
        order = np.lexsort((when, answers.item))
    order = order[answers.codes[order] >= 0]
    values, item = _numbers(crowd)[answers.codes[order]], answers.item[order]
    bounds = np.searchsorted(item, np.arange(crowd.n_items + 1))
    counts = np.diff(bounds)
    place = np.arange(len(values)) - np.repeat(bounds[:-1], counts)
    means = _running_sums(values, bounds) / (place + 1)
    moves = np.abs(np.diff(means, prepend=0.0))
    found = np.where(counts > last, 0.0, np.inf)
    kept = (place >= np.repeat(counts - last, counts)) & (place > 0)
    np.maximum.at(found, item[kept], moves[kept])
    return found


@kernel
def _running_sums(values: NDArray[np.float64], bounds: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum up every group from its first number on: no group's rounding depends on another."""
    found = np.empty(len(values))
    for group in range(len(bounds) - 1):
        total = 0.0
        for at in range(bounds[group], bounds[group + 1]):
            total += values[at]
            found[at] = total
    return found


def _numbers(crowd: Crowd) -> NDArray[np.float64]:
    """Return the number that every tag stands for, float64 [n_labels]."""
    found = []
    for tag in crowd.tagset.tags:
        try:
            found.append(float(tag))
        except ValueError:
            found.append(np.nan)
    values = np.array(found)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise InputError(
            f"stable_average needs labels that are numbers, but there is "
            f"{crowd.tagset.tags[bad[0]]!r}: rename labels to numbers when reading, or use "
            "clear_majority"
        )
    return values


# --------------------------------------------------------------------------------------------------
# When an item has answers enough: by the posterior, by votes, by the mean, or by number.


UNITS = ("parts", "item")
ROUNDING = 1e-9
"""A mean that moves by 0.5 and this much more has moved by 0.5."""


class Rule(ABC):
    """A stopping rule; a subclass sets `name` and `reason` and says which items are finished.

    Attributes:
        name: Its name in the registry.
        reason: Why an item is finished, in a word or two.
    """

    name: ClassVar[str]
    reason: ClassVar[str]

    @abstractmethod
    def finished(self, crowd: Crowd, result: Consensus | None = None) -> NDArray[np.bool_]:
        """Return which items have answers enough.

        Args:
            crowd: The answers so far.
            result: What they say, for the same items and tags; for rules that need it.

        Returns:
            bool [n_items]; an item without an answer is never finished.
        """


@dataclass(frozen=True)
class Confident(Rule):
    """The posterior of the item's labels has reached a threshold.

    Args:
        at: The threshold, above 0 and below 1.
        unit: "parts": every token and every span of the item must reach it; "item": all labels
            together must, which long items hardly ever do. For single labels they are the same.

    Raises:
        InputError: The threshold lies elsewhere.
        UnknownNameError: Unknown unit.
    """

    at: float = 0.95
    unit: str = "parts"

    name: ClassVar[str] = "confident"
    reason: ClassVar[str] = "confident"

    def __post_init__(self) -> None:
        require("the confidence to stop at", self.at, Number(above=0, below=1))
        if self.unit not in UNITS:
            raise UnknownNameError("unit of confidence", self.unit, UNITS)

    def finished(self, crowd: Crowd, result: Consensus | None = None) -> NDArray[np.bool_]:
        """Return which items have reached the threshold."""
        if result is None or result.entropy is None:
            by = "no result" if result is None else f"{result.method}, which gives shares of votes"
            raise InputError(
                f"confident needs probabilities, but has {by}: use ibcc, ds, one-coin or a bsc "
                "method, or the rule clear_majority"
            )
        known = item_confidence(result) if self.unit == "parts" else result.confidence
        return np.asarray((known >= self.at) & (answer_counts(crowd) > 0))


@dataclass(frozen=True)
class ClearMajority(Rule):
    """At every token the first label is so many votes ahead of the second.

    Members of a family of the result, who err together, have fewer votes.

    Args:
        ahead: By how many votes.
        least: Fewest answers of an item.

    Raises:
        InputError: They are no whole numbers of at least 1.
    """

    ahead: int = 2
    least: int = 3

    name: ClassVar[str] = "clear_majority"
    reason: ClassVar[str] = "clear majority"

    def __post_init__(self) -> None:
        require("ahead", self.ahead, Whole(1))
        require("least", self.least, Whole(1))

    def finished(self, crowd: Crowd, result: Consensus | None = None) -> NDArray[np.bool_]:
        """Return which items have a clear majority."""
        grouping = _families(result)
        votes: NDArray[Any] = (
            vote_counts(crowd)
            if grouping is None
            else label_counts(crowd, grouping.on(crowd.worker_ids).label_weights(crowd))
        )
        if votes.shape[1] > 1:
            top = np.partition(votes, -2, axis=1)[:, -2:]
            lead = (top[:, 1] - top[:, 0]).astype(np.float64)
        else:
            lead = votes[:, 0].astype(np.float64)
        closest = per_item(np.minimum, lead, crowd.offsets, np.inf)
        counts = independent_answers(crowd, result)
        return np.asarray((closest >= self.ahead - ROUNDING) & (counts >= self.least))


@dataclass(frozen=True)
class StableAverage(Rule):
    """The mean of the item's numbers hardly moves any more: for numeric and ordinal labels.

    The n-th answer x moves the mean by |x - mean| / n. So the rule ends by itself after about
    (range of the numbers) / tolerance answers. One answer that is close to the mean by chance is no
    proof: `last` asks for two such answers, which did better than one in trials.

    Args:
        tolerance: How much an answer may move the mean, in the unit of the labels.
        least: Fewest answers of an item.
        last: How many of the last answers must each move it by no more.

    Raises:
        InputError: The tolerance is negative, or a count is no whole number of at least 1.
    """

    tolerance: float
    least: int = 3
    last: int = 2

    name: ClassVar[str] = "stable_average"
    reason: ClassVar[str] = "stable average"

    def __post_init__(self) -> None:
        require("tolerance", self.tolerance, Number(0))
        require("least", self.least, Whole(1))
        require("last", self.last, Whole(1))

    def finished(self, crowd: Crowd, result: Consensus | None = None) -> NDArray[np.bool_]:
        """Return which items have a stable average; of a family one answer counts."""
        grouping = _families(result)
        crowd = crowd if grouping is None else grouping.on(crowd.worker_ids).thin(crowd)
        counts = answer_counts(crowd)
        enough = counts >= max(self.least, self.last + 1)  # the first answer moves nothing
        return np.asarray(enough & (mean_moves(crowd, self.last) <= self.tolerance + ROUNDING))


@dataclass(frozen=True)
class Fixed(Rule):
    """A fixed number of answers.

    Args:
        k: The number.

    Raises:
        InputError: It is no whole number of at least 1.
    """

    k: int = 5

    name: ClassVar[str] = "fixed"
    reason: ClassVar[str] = "answers enough"

    def __post_init__(self) -> None:
        require("k", self.k, Whole(1))

    def finished(self, crowd: Crowd, result: Consensus | None = None) -> NDArray[np.bool_]:
        """Return which items have that many answers; a family counts as fewer."""
        return np.asarray(independent_answers(crowd, result) >= self.k)


def item_confidence(result: Consensus) -> NDArray[np.float32]:
    """Return the confidence of the least certain token or span of every item, float32 [n_items].

    1 for items without tokens.
    """
    offsets = result.crowd.offsets
    least = per_item(np.minimum, result.token_confidence, offsets, 1.0)
    if not result.tagset.rules.is_plain:
        np.minimum.at(least, result.span_array.item, result.span_confidence)
    return np.asarray(least, np.float32)


def answer_counts(crowd: Crowd) -> NDArray[np.int64]:
    """Count the answers of every item that count, int64 [n_items]."""
    return np.diff(crowd.by_item.bounds)


def independent_answers(crowd: Crowd, result: Consensus | None) -> Floats:
    """Count the answers of every item, [n_items]: n of a family as n / (1 + (n - 1) rho)."""
    grouping = _families(result)
    if grouping is None:
        return answer_counts(crowd).astype(np.float64)
    return grouping.answer_counts(crowd) + ROUNDING  # sums of thirds


def _families(result: Consensus | None) -> Families | None:
    return None if result is None else result.families


def per_item(
    combine: np.ufunc, values: NDArray[Any], offsets: NDArray[np.int64], empty: Any
) -> NDArray[Any]:
    """Combine the values of every item's tokens; `empty` where an item has no token."""
    found = np.full(len(offsets) - 1, empty, values.dtype)
    filled = np.diff(offsets) > 0
    if filled.any():
        found[filled] = combine.reduceat(values, offsets[:-1][filled])
    return found


# --------------------------------------------------------------------------------------------------
# Who can be asked, at what price, how often, and what they are expected to answer.


ANY_NUMBER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Pool:
    """Workers who can be asked."""

    worker_ids: pa.Array  # Arrow string array [n]
    tables: Floats  # [n, J, J], what each is expected to answer
    place: NDArray[np.int64]  # [n_workers of the crowd], index among the pool, -1 who is not in it
    prices: NDArray[np.int64] | None  # [n], millionths of the unit, or None
    left: NDArray[np.int64]  # [n], answers that may be asked of each
    grouping: Families | None = (
        None  # Families of the crowd's workers, and after them those of the pool
    )

    def __len__(self) -> int:
        """Count the workers."""
        return len(self.worker_ids)

    @property
    def family(self) -> NDArray[np.int64]:
        """Number of every worker's family, int64 [n]; there must be some."""
        assert self.grouping is not None
        return self.grouping.number[-len(self) :]


def make_pool(
    crowd: Crowd,  # Who answered so far
    known: Crowd,  # The crowd that the habits were learned from
    habits: Habits,
    *,
    workers: Sequence[str] | Reliability | None = None,  # Ids, also of newcomers
    prices: Mapping[str, Any] | Any = None,
    per_worker_limit: int | None = None,  # Most answers that may be asked of one worker
    families: Families | None = None,  # Workers who err together
) -> Pool:
    """Put together who can be asked."""
    ids = _ids(crowd, workers)
    place = {name: i for i, name in enumerate(ids)}
    if per_worker_limit is not None:
        require("per_worker_limit", per_worker_limit, Whole(1))
    tables = np.repeat(habits.mean[None], len(ids), axis=0)
    learned = [place.get(name, -1) for name in known.worker_ids.to_pylist()]
    for source, target in enumerate(learned):
        if target >= 0:
            tables[target] = habits.tables[source]
    if isinstance(workers, Reliability):
        for i, chance in enumerate(workers.mean.tolist()):
            tables[i] = one_coin(chance, len(habits.shares))
    limit = ANY_NUMBER if per_worker_limit is None else per_worker_limit
    every = pa.array([*crowd.worker_ids.to_pylist(), *ids], pa.string())
    grouping = None if families is None else families.on(every)
    return Pool(
        pa.array(ids, pa.string()),
        tables,
        np.array([place.get(name, -1) for name in crowd.worker_ids.to_pylist()], np.int64),
        None if prices is None else read_prices(prices, ids),
        np.full(len(ids), limit, np.int64),
        grouping,
    )


def _ids(crowd: Crowd, workers: Sequence[str] | Reliability | None) -> list[str]:
    if workers is None:
        return list(crowd.worker_ids.to_pylist())
    if isinstance(workers, Reliability):
        return list(workers.worker_ids.to_pylist())
    ids = [workers] if isinstance(workers, str) else [str(name) for name in workers]
    if not ids:
        raise InputError("workers: there is nobody who can be asked")
    if len(set(ids)) < len(ids):
        twice = sorted({name for name in ids if ids.count(name) > 1})
        raise InputError(f"workers: {', '.join(twice[:5])} appears more than once")
    return ids


# --------------------------------------------------------------------------------------------------
# The stopping rules by name. A new one is one class and one line here.


_HERE = "goldspan.workers.stopping"

RULES: dict[str, tuple[str, str]] = {
    "confident": (f"{_HERE}:Confident", "the posterior has reached a threshold"),
    "clear_majority": (f"{_HERE}:ClearMajority", "the first label leads by enough votes"),
    "stable_average": (f"{_HERE}:StableAverage", "the mean of numbers hardly moves any more"),
    "fixed": (f"{_HERE}:Fixed", "a fixed number of answers"),
}
_HINT = "it must look like confident(0.95) or clear_majority(ahead=2, least=3)"


def get_rule(rule: str | Rule) -> Rule:
    """Read a stopping rule; one that is a rule already is given back."""
    if not isinstance(rule, str):
        return rule
    name, args, named = read_call(rule, _HINT)
    if name not in RULES:
        raise UnknownNameError("stopping rule", name, RULES)
    kind: type[Rule] = load(RULES[name][0])
    known = [one.name for one in fields(kind)]  # type: ignore[arg-type]
    given = dict(zip(known, args, strict=False))
    if len(args) > len(known) or set(named) - set(known) or set(named) & set(given):
        raise InputError(f"rule {rule!r}: {name} takes {', '.join(known)}")
    try:
        return kind(**given, **named)
    except TypeError:  # one that has no default is missing
        raise InputError(f"rule {rule!r}: {name} takes {', '.join(known)}") from None
