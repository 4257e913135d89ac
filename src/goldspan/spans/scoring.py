"""Scores of spans: precision, recall, F1 with intervals, the SemEval schemes, two sides aligned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan._arrays import rows_of
from goldspan.errors import InputError
from goldspan.spans.codec import Codec, Tagged
from goldspan.spans.confidence import ConfidenceScore
from goldspan.spans.corpus import SpanArray, check_policy, find_spans
from goldspan.spans.encoding import get_encoding

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd


# --------------------------------------------------------------------------------------------------
# The four ways of counting of SemEval-2013 task 9: strict, exact, partial, type.


MEANING = {
    "strict": "boundaries and type agree",
    "exact": "boundaries agree",
    "partial": "boundaries agree, overlap: half",
    "type": "type agrees, with any overlap",
}
SCHEMES = tuple(MEANING)


@dataclass(frozen=True)
class SchemeScore:
    """Counts under one scheme and their rates."""

    correct: int  # Pairs that the scheme accepts
    incorrect: int  # Pairs that it refuses
    partial: int  # Pairs that it half accepts (scheme "partial": other bounds, any type)
    missed: int  # True spans without a pair
    spurious: int  # Predicted spans without a pair

    @property
    def precision(self) -> float:
        """(correct + partial / 2) / predicted spans."""
        return self._rate(self.spurious)

    @property
    def recall(self) -> float:
        """(correct + partial / 2) / true spans."""
        return self._rate(self.missed)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    def to_dict(self) -> dict[str, float]:
        """Return counts and rates for JSON."""
        names = ("correct", "incorrect", "partial", "missed", "spurious")
        rates = ("precision", "recall", "f1")
        return {name: getattr(self, name) for name in (*names, *rates)}

    def _rate(self, unpaired: int) -> float:
        total = self.correct + self.incorrect + self.partial + unpaired
        return (self.correct + self.partial / 2) / total if total else 0.0


def score_schemes(gold: SpanArray, found: SpanArray) -> dict[str, SchemeScore]:
    """Count the spans of one worker under all four schemes."""
    # Index of the true span with the bounds of each found span, -1 for none
    partner = np.searchsorted(gold.start, found.start)
    known = partner < len(gold)
    at = partner[known]
    known[known] = (gold.start[at] == found.start[known]) & (gold.end[at] == found.end[known])
    same_bounds = np.where(known, partner, -1)
    paired = np.flatnonzero(same_bounds >= 0)
    partner = same_bounds[paired]
    n_same_type = int((gold.type[partner] == found.type[paired]).sum())
    n_bounds = len(paired)

    rest_found = np.flatnonzero(same_bounds < 0)
    left = np.ones(len(gold), np.bool_)
    left[partner] = False
    rest_gold = np.flatnonzero(left)
    n_typed, n_untyped = _pair_overlaps(gold.take(rest_gold), found.take(rest_found))
    n_pairs = n_bounds + n_typed + n_untyped
    missed, spurious = len(gold) - n_pairs, len(found) - n_pairs
    overlaps = n_typed + n_untyped
    typed = n_same_type + n_typed
    return {
        "strict": SchemeScore(n_same_type, n_pairs - n_same_type, 0, missed, spurious),
        "exact": SchemeScore(n_bounds, overlaps, 0, missed, spurious),
        "partial": SchemeScore(n_bounds, 0, overlaps, missed, spurious),
        "type": SchemeScore(typed, n_pairs - typed, 0, missed, spurious),
    }


def _pair_overlaps(gold: SpanArray, found: SpanArray) -> tuple[int, int]:
    """Count the pairs of overlapping spans, (of one type, of two types)."""
    first = np.searchsorted(found.end, gold.start, side="right")
    stop = np.searchsorted(found.start, gold.end, side="left")
    typed = untyped = 0
    cluster: list[int] = []
    reach = 0
    for g in np.flatnonzero(stop > first).tolist():
        if cluster and first[g] >= reach:
            a, b = _best_pairing(gold, found, cluster, int(first[cluster[0]]), reach)
            typed, untyped = typed + a, untyped + b
            cluster = []
        cluster.append(g)
        reach = int(stop[g])
    if cluster:
        a, b = _best_pairing(gold, found, cluster, int(first[cluster[0]]), reach)
        typed, untyped = typed + a, untyped + b
    return typed, untyped


def _best_pairing(
    gold: SpanArray, found: SpanArray, cluster: list[int], first: int, stop: int
) -> tuple[int, int]:
    """Align the spans of one cluster; the value is (typed pairs, all pairs, shared tokens)."""
    if len(cluster) == 1 and stop - first == 1:
        same = gold.type[cluster[0]] == found.type[first]
        return (1, 0) if same else (0, 1)
    row = [(0, 0, 0)] * (stop - first + 1)
    for g in cluster:
        above, row = row, [(0, 0, 0)]
        for j, f in enumerate(range(first, stop)):
            shared = int(min(gold.end[g], found.end[f]) - max(gold.start[g], found.start[f]))
            best = max(above[j + 1], row[j])
            if shared > 0:
                same = int(gold.type[g] == found.type[f])
                typed, pairs, tokens = above[j]
                best = max(best, (typed + same, pairs + 1, tokens + shared))
            row.append(best)
    typed, pairs, _ = row[-1]
    return typed, pairs - typed


# --------------------------------------------------------------------------------------------------
# Two sides of a comparison, aligned by item id.


class _Side(NamedTuple):
    """One side of a comparison, as codes of its own tags."""

    place: dict[str, int]  # The number of every item by its id
    codes: NDArray[Any]  # [n_tokens], places in `tags`; -1 where a token has none
    offsets: NDArray[np.int64]  # [n_items + 1]
    tags: Sequence[str]

    @classmethod
    def of(cls, side: Any, other: Any) -> _Side:
        """Take the codes of a crowd as they are, and give lists of tags codes."""
        if hasattr(side, "item_ids"):
            codes, offsets = side.gold_tagged
            return cls(_places(side), codes, offsets, side.tagset.tags)
        place = _places(side if isinstance(side, dict) else other)
        rows = list(side.values()) if isinstance(side, dict) else side
        if len(place) != len(rows):
            raise InputError(f"{len(rows)} items on one side, {len(place)} on the other")
        tags = sorted(_distinct(rows), key=str)
        code: dict[str | None, int] = {tag: n for n, tag in enumerate(tags)}
        code[None] = -1
        codes = np.array([code[tag] for row in rows for tag in row], np.int64)
        return cls(place, codes, np.concatenate([[0], np.cumsum([*map(len, rows)])]), tags)

    def take(self, keys: Sequence[str]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the codes of some items in their order, and how many each has."""
        which = np.array([self.place[key] for key in keys], np.int64)
        bounds, index = rows_of(self.offsets, which)
        return self.codes[index], np.diff(bounds)

    def used(self, codes: NDArray[Any]) -> set[str]:
        """Return the tags of some codes."""
        return {self.tags[code] for code in np.unique(codes[codes >= 0]).tolist()}

    def translated(self, codes: NDArray[Any], codec: Codec) -> NDArray[np.int16]:
        """Return codes of another tag set; -1 for tags that are not in it."""
        table = np.array([*(codec.index.get(tag, -1) for tag in self.tags), -1], np.int16)
        return np.asarray(table[codes])


def _places(side: Any) -> dict[str, int]:
    ids = side.item_ids.to_pylist() if hasattr(side, "item_ids") else side
    return {key: n for n, key in enumerate(ids)}


def item_keys(side: Any, other: Any) -> list[str]:
    """Return the ids of a side's items in their order; a plain list has those of the other."""
    return list(_places(side if hasattr(side, "item_ids") or isinstance(side, dict) else other))


def align_by_id(truth: Any, predicted: Any, encoding: str | None) -> tuple[Tagged, Tagged, Codec]:
    """Bring two crowds, consensus results or mappings from item id to tags into one order."""
    # Only items on both sides are compared, and of these only tokens whose truth is known
    left, right = _Side.of(truth, predicted), _Side.of(predicted, truth)
    names = {side.tagset.encoding for side in (truth, predicted) if hasattr(side, "tagset")}
    if encoding is None and len(names) > 1:
        raise InputError(
            f"one side is {' and the other '.join(sorted(names))}: convert one of them first "
            "(goldspan convert), or pass encoding=… for both"
        )
    shared = [key for key in left.place if key in right.place]
    if not shared:
        raise InputError(
            f"no item is on both sides: one has ids like {next(iter(left.place), '')!r}, "
            f"the other like {next(iter(right.place), '')!r}"
        )
    (gold, lengths), (found, others) = left.take(shared), right.take(shared)
    if not np.array_equal(lengths, others):
        n = int(np.flatnonzero(lengths != others)[0])
        raise InputError(
            f"item {shared[n]}: {lengths[n]} tokens on one side, {others[n]} on the other"
        )
    found = np.where(gold < 0, -1, found)
    rules = get_encoding(encoding or (names.pop() if names else "BIO"))
    codec = Codec.from_tags(left.used(gold) | right.used(found), rules)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return (
        Tagged(left.translated(gold, codec), offsets),
        Tagged(right.translated(found, codec), offsets),
        codec,
    )


# --------------------------------------------------------------------------------------------------
# How good predicted spans are: exact counts, their rates, and an interval by resampling items.


MOST_TYPES = 20
"""Types that a notebook shows."""
MIN_RESAMPLES = 100
"""Fewest resamples that an interval is computed from."""


class Rates(NamedTuple):
    """Precision, recall and F1 of some counts; 0 where a denominator is 0."""

    precision: float  # Right spans among the predicted
    recall: float  # Right spans among the true
    f1: float
    n_right: int  # Predicted spans that are exactly right
    n_predicted: int
    n_true: int

    @classmethod
    def of(cls, n_right: int, n_predicted: int, n_true: int) -> Rates:
        """Compute the rates of three counts."""
        n_right, n_predicted, n_true = int(n_right), int(n_predicted), int(n_true)
        precision = n_right / n_predicted if n_predicted else 0.0
        recall = n_right / n_true if n_true else 0.0
        f1 = 2 * n_right / (n_predicted + n_true) if n_predicted + n_true else 0.0
        return cls(precision, recall, f1, n_right, n_predicted, n_true)


class WrongSpan(NamedTuple):
    """A span that is only in one of the two sides."""

    item: int
    side: str  # "missed" (true but not predicted) or "spurious" (predicted but not true)
    type: str
    start: int  # First token in its item
    end: int  # One past its last token


@dataclass(frozen=True)
class Score:
    """The result of `score`: the same counts read in several ways.

    Attributes:
        micro: Rates over all spans; `precision`, `recall` and `f1` are short for its fields.
        macro: Mean of the types' precision, recall and F1 (over types that occur).
        types: Rates of every type.
        accuracy: Share of tokens with the same tag, among those that have both tags.
        n_items: Items compared.
        n_tokens: Tokens that have both tags.
        policy: How malformed tags were read.
        encoding: Of both sides.
        interval: Bootstrap interval of the micro F1 by item, None if not asked for.
        level: Of that interval.
        wrong: Every span that is wrong, empty if not asked for.
        sides: The true and the predicted spans, for `schemes`.
        confidence: Where the predicted side is a `Consensus`: how far its confidences can be
            believed.
        nested: Where spans may overlap: the rates of the outermost and of the innermost alone.
        jaccard: Of sets of spans or labels: the mean share that both sides have in common, while
            `accuracy` is the share of items whose set is right as a whole.
    """

    micro: Rates
    macro: tuple[float, float, float]
    types: Mapping[str, Rates]
    accuracy: float
    n_items: int
    n_tokens: int
    policy: str
    encoding: str
    interval: tuple[float, float] | None = None
    level: float = 0.95
    wrong: tuple[WrongSpan, ...] = field(default=(), repr=False)
    sides: tuple[SpanArray, SpanArray] | None = field(default=None, repr=False, compare=False)
    confidence: ConfidenceScore | None = None
    nested: Mapping[str, Rates] = field(default_factory=dict)
    jaccard: float | None = None

    @cached_property
    def schemes(self) -> Mapping[str, SchemeScore]:
        """Counts in the sense of SemEval-2013 task 9: "strict", "exact", "partial", "type".

        Computed at first use. They need overlapping spans to be paired; see `score_schemes`.
        """
        return score_schemes(*self.sides) if self.sides else {}

    @property
    def precision(self) -> float:
        """Micro precision, 0 to 1."""
        return self.micro.precision

    @property
    def recall(self) -> float:
        """Micro recall, 0 to 1."""
        return self.micro.recall

    @property
    def f1(self) -> float:
        """Micro F1, 0 to 1."""
        return self.micro.f1

    def to_pandas(self) -> pd.DataFrame:
        """Return the rates as a pandas DataFrame: one row per type, then micro and macro.

        The columns are type, precision, recall, f1, n_right, n_predicted, n_true; the macro means
        have no counts.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        import pyarrow as pa

        from goldspan.spans.notebook import data_frame

        head, rows = self._rows()
        columns = [list(column) for column in zip(*rows, strict=True)]
        return data_frame(pa.table(dict(zip(head, columns, strict=True))))

    def _repr_html_(self) -> str:
        """Show the rates in a notebook."""
        from goldspan.spans.notebook import block, counted, table

        facts = [f"F1 {self.f1:.3f}"]
        if self.interval:
            low, high = self.interval
            facts.append(f"{100 * self.level:g} % interval {low:.3f} to {high:.3f}")
        facts += [
            counted(self.n_items, "item"),
            f"policy {self.policy}",
            f"encoding {self.encoding}",
        ]
        facts.append(f"{self._accuracy_of} {self.accuracy:.3f}")
        head, rows = self._rows()
        if len(rows) > MOST_TYPES:
            facts.append(f"the {MOST_TYPES} most frequent of {len(self.types)} types")
            often = sorted(rows[:-2], key=lambda row: -row[-1])[:MOST_TYPES]
            rows = [row for row in rows if row in often or row in rows[-2:]]
        return block("Score", facts, table(head, rows, len(rows), "types", most=len(rows)))

    def _rows(self) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return the names of the columns, and a row per type, for micro and for macro."""
        rows = [(name, *rates) for name, rates in [*self.types.items(), ("micro", self.micro)]]
        return ["type", *Rates._fields], [*rows, ("macro", *self.macro, None, None, None)]

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and lists, for JSON."""
        return {
            "policy": self.policy,
            "encoding": self.encoding,
            "micro": self.micro._asdict(),
            "macro": dict(zip(("precision", "recall", "f1"), self.macro, strict=True)),
            "types": {kind: rates._asdict() for kind, rates in self.types.items()},
            "schemes": {name: scheme.to_dict() for name, scheme in self.schemes.items()},
            "accuracy": self.accuracy,
            "n_items": self.n_items,
            "n_tokens": self.n_tokens,
            "interval": list(self.interval) if self.interval else None,
            "level": self.level,
            "wrong": [span._asdict() for span in self.wrong],
            **({"confidence": self.confidence.to_dict()} if self.confidence else {}),
            **({"nested": {k: r._asdict() for k, r in self.nested.items()}} if self.nested else {}),
            **({} if self.jaccard is None else {"jaccard": self.jaccard}),
        }

    @property
    def _accuracy_of(self) -> str:
        return "token accuracy" if self.jaccard is None else "items right as a whole"

    def __str__(self) -> str:
        """Print a table in per cent, with the policy and the encoding above it."""
        read = f"encoding {self.encoding}, malformed tags read by policy {self.policy}"
        head = f"{self.n_items} items, {read if self.jaccard is None else self.encoding}"
        lines = [head, f"{'':<12}{'precision':>10}{'recall':>10}{'F1':>10}{'true':>8}{'found':>8}"]
        rows = [*self.types.items(), ("micro", self.micro), *self.nested.items()]
        for name, r in rows:
            numbers = f"{100 * r.precision:10.2f}{100 * r.recall:10.2f}{100 * r.f1:10.2f}"
            lines.append(f"{name:<12}{numbers}{r.n_true:8d}{r.n_predicted:8d}")
        lines.append(f"{'macro':<12}" + "".join(f"{100 * value:10.2f}" for value in self.macro))
        if self.schemes:
            lines.append("micro averages by the schemes of SemEval-2013:")
        for name, scheme in self.schemes.items():
            numbers = f"{100 * scheme.precision:10.2f}{100 * scheme.recall:10.2f}"
            lines.append(f"{'  ' + name:<12}{numbers}{100 * scheme.f1:10.2f}  {MEANING[name]}")
        right = f"{self._accuracy_of} {100 * self.accuracy:.2f}"
        if self.jaccard is None:
            lines.append(f"{right} over {self.n_tokens} tokens")
        else:
            lines.append(f"{right} %, mean Jaccard index {100 * self.jaccard:.2f}")
        if self.interval:
            low, high = self.interval
            name = f"F1 {100 * self.level:g} % interval by item"
            lines.append(f"{name}: {100 * low:.2f} to {100 * high:.2f}")
        if self.confidence and self.confidence.n:
            lines.append(str(self.confidence))
        return "\n".join(lines)


def score(
    truth: Any,
    predicted: Any,
    *,
    encoding: str | None = None,
    policy: str = "conlleval",
    bootstrap: int = 0,
    level: float = 0.95,
    random_state: int | np.random.Generator | None = 0,
    wrong: bool = False,
) -> Score:
    """Compare predicted spans with true ones.

    Args:
        truth: Lists of tags, one list per item; or a `Crowd` or `Consensus` (its gold or its
            labels), which are aligned by item id.
        predicted: The same. Of a `Consensus` the confidences are measured, too.
        encoding: Of both sides; by default "BIO", or that of the crowd.
        policy: How malformed tags are read on both sides: "conlleval", "strict", "boundaries",
            "raise"; see `find_spans`.
        bootstrap: Number of resamples of items for the interval of F1, at least 100; 0 for none.
        level: Of that interval.
        random_state: Seed or generator of the resampling.
        wrong: List every wrong span in the result.

    Raises:
        InputError: The two sides have different items or lengths; `bootstrap` is too small.
        FaultsError: A tag does not belong to the encoding.

    >>> result = score([["B-PER", "I-PER", "O"]], [["B-PER", "O", "O"]])
    >>> result.f1, result.schemes["partial"].f1, result.policy
    (0.0, 0.5, 'conlleval')
    """
    measure = getattr(predicted, "measure_confidence", None)
    truth, predicted = (
        side.as_gold() if hasattr(type(side), "as_gold") else side for side in (truth, predicted)
    )
    left_out = ""
    if any(hasattr(side, "item_ids") or isinstance(side, dict) for side in (truth, predicted)):
        gold, found, codec = align_by_id(truth, predicted, encoding)
        if codec.rules.is_plain and len(gold.codes) >= len(gold.offsets):
            left_out = "O"  # of tokens; of items it may be a label as any other
    else:
        gold_tags, found_tags = _same_shape(truth, predicted)
        rules = get_encoding(encoding or "BIO")
        codec = Codec.from_tags(_distinct(gold_tags) | _distinct(found_tags), rules)
        gold, found = codec.encode(gold_tags), codec.encode(found_tags)
    scored = score_codes(
        gold,
        found,
        codec,
        policy=policy,
        bootstrap=bootstrap,
        level=level,
        random_state=random_state,
        wrong=wrong,
        left_out=left_out,
    )
    return replace(scored, confidence=measure(truth, encoding)) if measure else scored


def score_codes(
    truth: Tagged,
    predicted: Tagged,
    codec: Codec,
    *,
    policy: str = "conlleval",
    bootstrap: int = 0,
    level: float = 0.95,
    random_state: int | np.random.Generator | None = 0,
    wrong: bool = False,
    left_out: str = "",  # A type that is not counted: a label that says that nothing is there
) -> Score:
    """Do what `score` does on codes: int16 [n_tokens] on each side with the same offsets."""
    check_policy(policy)
    if bootstrap and bootstrap < MIN_RESAMPLES:
        allowed = f"must be 0 or at least {MIN_RESAMPLES}, not {bootstrap}"
        raise InputError(f"{allowed}: an interval of fewer means nothing", parameter="bootstrap")
    if len(truth.codes) != len(predicted.codes):
        sides = f"{len(truth.codes)} tokens on one side, {len(predicted.codes)} on the other"
        raise InputError(sides)
    if not np.array_equal(truth.offsets, predicted.offsets):
        raise InputError("the two sides have different items: their offsets differ")
    gold, found = (find_spans(side, codec, policy) for side in (truth, predicted))
    if left_out in codec.types:
        gold, found = (one.take(one.type != codec.types.index(left_out)) for one in (gold, found))
    right = right_spans(gold, found, len(truth.codes))
    both = (truth.codes >= 0) & (predicted.codes >= 0)
    n_tokens = int(both.sum())
    same = int((both & (truth.codes == predicted.codes)).sum())
    types = _by_type(gold, found, right, codec)
    types.pop(left_out, None)
    seen = [r for r in types.values() if r.n_true + r.n_predicted]
    columns = np.array([r[:3] for r in seen]) if seen else np.zeros((1, 3))
    interval = None
    if bootstrap:
        n_items = len(truth.offsets) - 1
        interval = bootstrap_f1(gold, found, right, n_items, bootstrap, level, random_state)
    return Score(
        micro=Rates.of(int(right.sum()), len(found), len(gold)),
        macro=tuple(columns.mean(axis=0).tolist()),
        types=types,
        accuracy=same / n_tokens if n_tokens else 0.0,
        n_items=len(truth.offsets) - 1,
        n_tokens=n_tokens,
        policy=policy,
        encoding=codec.encoding,
        interval=interval,
        level=level,
        wrong=_wrong(gold, found, right, truth, codec) if wrong else (),
        sides=(gold, found),
    )


def right_spans(gold: SpanArray, found: SpanArray, n_tokens: int) -> NDArray[np.bool_]:
    """Say for every found span whether it is exactly one of the true ones."""
    # Both sides come from `find_spans`, so that at most one span starts at a token of a worker
    # returns bool [len(found)]
    width = int(max(gold.worker.max(initial=0), found.worker.max(initial=0))) + 1
    end_at = np.full(n_tokens * width, -1, np.int32)
    type_at = np.full(n_tokens * width, -1, np.int16)
    place = gold.start * width + gold.worker
    end_at[place], type_at[place] = gold.end, gold.type
    place = found.start * width + found.worker
    return np.asarray((end_at[place] == found.end) & (type_at[place] == found.type))


def bootstrap_f1(
    gold: SpanArray,
    found: SpanArray,
    right: NDArray[np.bool_],
    n_items: int,
    n_resamples: int,
    level: float,
    random_state: int | np.random.Generator | None,
) -> tuple[float, float]:
    """Percentile interval of the micro F1 under resampling of items."""
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, not {level}")
    rng = np.random.default_rng(random_state)
    counts = np.stack(
        [
            np.bincount(found.item, right, n_items),
            np.bincount(found.item, minlength=n_items) + np.bincount(gold.item, minlength=n_items),
        ]
    )
    values = np.empty(n_resamples)
    for i in range(n_resamples):
        weights = np.bincount(rng.integers(n_items, size=n_items), minlength=n_items)
        n_right, n_all = counts @ weights
        values[i] = 2 * n_right / n_all if n_all else 0.0
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(values, [tail, 100 - tail])
    return float(low), float(high)


def _by_type(
    gold: SpanArray, found: SpanArray, right: NDArray[np.bool_], codec: Codec
) -> dict[str, Rates]:
    n_types = len(codec.types)
    n_right = np.bincount(found.type, right, n_types).astype(int)
    n_found = np.bincount(found.type, minlength=n_types)
    n_true = np.bincount(gold.type, minlength=n_types)
    rows = zip(codec.types, n_right, n_found, n_true, strict=True)
    return {kind: Rates.of(a, b, c) for kind, a, b, c in rows}


def _wrong(
    gold: SpanArray, found: SpanArray, right: NDArray[np.bool_], truth: Tagged, codec: Codec
) -> tuple[WrongSpan, ...]:
    missed = gold.take(~right_spans(found, gold, len(truth.codes)))
    spurious = found.take(~right)
    out = []
    for side, spans in (("missed", missed), ("spurious", spurious)):
        base = truth.offsets[spans.item]
        columns = (spans.item, spans.type, spans.start - base, spans.end - base)
        for item, kind, start, end in zip(*(c.tolist() for c in columns), strict=True):
            out.append(WrongSpan(item, side, codec.types[kind], start, end))
    return tuple(sorted(out, key=lambda w: (w.item, w.start, w.end, w.side)))


def _distinct(sequences: Sequence[Sequence[str]]) -> set[str]:
    tags: set[str] = set()
    tags.update(*sequences)
    tags.discard(None)
    return tags


def _same_shape(
    truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]]:
    for side in (truth, predicted):
        if isinstance(side, str) or (len(side) and isinstance(side[0], str)):
            raise InputError("expected lists of tags, one list per item; got a single list")
    if len(truth) != len(predicted):
        raise InputError(f"{len(truth)} items on one side, {len(predicted)} on the other")
    for n, (left, right) in enumerate(zip(truth, predicted, strict=True)):
        if len(left) != len(right):
            raise InputError(f"item {n}: {len(left)} tags on one side, {len(right)} on the other")
    return truth, predicted
