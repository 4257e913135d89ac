"""Agreement of workers, on tokens and on spans; scores of one side against another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._arrays import count_between, count_in_rows, plain
from goldspan.crowd.gold import with_known_labels, with_same_tokens
from goldspan.crowd.io import read_layers, to_crowd
from goldspan.crowd.layers import ByLayer, Layers, asks_each, masi_alpha, score_sets
from goldspan.crowd.model import Answers, Crowd
from goldspan.errors import InputError
from goldspan.spans import Tagged, find_spans
from goldspan.spans import score as score_tags
from goldspan.spans.corpus import SpanArray
from goldspan.spans.scoring import Rates, Score, right_spans

if TYPE_CHECKING:
    import pandas as pd


class Pairs(NamedTuple):
    """Pairs of workers who share tokens or items, and how often they agree."""

    left: NDArray[np.int64]  # [n_pairs]
    right: NDArray[np.int64]  # [n_pairs]
    total: NDArray[np.int64]  # Shared labels, or spans of both sides in shared items, [n_pairs]
    equal: NDArray[np.int64]  # How many of these are equal, [n_pairs]


def token_pairs(crowd: Crowd) -> tuple[Pairs, NDArray[np.float64]]:
    """Compare the labels of every two workers on the tokens that both labelled."""
    # The pairs, and which share of labels is equal by chance, float64 [n_pairs]
    codes = crowd.latest.codes
    given = np.flatnonzero(codes >= 0)
    order = given[np.lexsort((crowd.worker_of[given], crowd.token_of[given]))]
    token, worker, code = crowd.token_of[order], crowd.worker_of[order], codes[order]
    n_labels, n_workers = len(crowd.tagset.tags), crowd.n_workers
    first, second = _lagged(token)
    key = worker[first].astype(np.int64) * n_workers + worker[second]
    pairs, pair = np.unique(key, return_inverse=True)
    n = np.bincount(pair, minlength=len(pairs))
    equal = np.bincount(pair, code[first] == code[second], len(pairs))
    margins = [
        np.bincount(pair * n_labels + code[side], minlength=len(pairs) * n_labels)
        for side in (first, second)
    ]
    product = (margins[0] * margins[1].astype(float)).reshape(len(pairs), n_labels).sum(axis=1)
    left, right = np.divmod(pairs, n_workers)
    return Pairs(left, right, n, equal.astype(np.int64)), product / np.maximum(n, 1) ** 2


def span_pairs(crowd: Crowd, policy: str) -> Pairs:
    """Compare the spans of every two workers in the items that both answered."""
    # Spans that touch a token which the other one skipped are left out
    answers, n_workers = crowd.latest, crowd.n_workers
    spans = find_spans(Tagged(answers.codes, answers.offset), crowd.tagset, policy)
    size = np.bincount(spans.item, minlength=len(answers))
    order = np.lexsort((answers.worker, answers.item))
    first, second = _lagged(answers.item[order])
    first, second = order[first], order[second]
    key = answers.worker[first].astype(np.int64) * n_workers + answers.worker[second]
    pairs, pair = np.unique(key, return_inverse=True)
    total = np.bincount(
        pair,
        _comparable(spans, answers, size, first, second)
        + _comparable(spans, answers, size, second, first),
        len(pairs),
    ).astype(np.int64)

    shift = crowd.offsets[answers.item] - answers.offset[:-1]
    start, end = spans.start + shift[spans.item], spans.end + shift[spans.item]
    worker = answers.worker[spans.item]
    rows = np.lexsort((worker, spans.type, end, start))
    place = np.stack([start[rows], end[rows], spans.type[rows]])
    same = np.cumsum(np.any(np.diff(place, axis=1, prepend=-1), axis=0))
    a, b = _lagged(same)
    equal_key = worker[rows[a]].astype(np.int64) * n_workers + worker[rows[b]]
    equal = np.bincount(np.searchsorted(pairs, equal_key), minlength=len(pairs))
    left, right = np.divmod(pairs, n_workers)
    return Pairs(left, right, total, 2 * equal.astype(np.int64))


def _comparable(
    spans: SpanArray,
    answers: Answers,
    size: NDArray[np.int64],
    mine: NDArray[np.int64],
    theirs: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Count, per pair of answers, the spans of one that touch no token skipped by the other."""
    found = size[mine]
    is_skipped = answers.codes < 0
    holey = count_in_rows(is_skipped, answers.offset) > 0
    which = np.flatnonzero(holey[theirs])
    if not len(which):
        return found
    own, other = mine[which], theirs[which]
    first = np.searchsorted(spans.item, own)
    count = size[own]
    pair = np.repeat(np.arange(len(which)), count)
    span = np.arange(int(count.sum())) + np.repeat(first - np.cumsum(count) + count, count)
    shift = answers.offset[other[pair]] - answers.offset[own[pair]]
    touched = count_between(is_skipped, spans.start[span] + shift, spans.end[span] + shift) > 0
    found[which] -= np.bincount(pair, touched, len(which)).astype(np.int64)
    return found


def _lagged(key: NDArray[np.generic]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All pairs of places with equal keys in a sorted array."""
    first: list[NDArray[np.int64]] = []
    second: list[NDArray[np.int64]] = []
    lag = 1
    alive = np.arange(len(key))
    while True:
        alive = alive[alive + lag < len(key)]
        alive = alive[key[alive] == key[alive + lag]]
        if not len(alive):
            break
        first.append(alive)
        second.append(alive + lag)
        lag += 1
    empty = np.zeros(0, np.int64)
    return np.concatenate([empty, *first]), np.concatenate([empty, *second])


# --------------------------------------------------------------------------------------------------
# How well the workers of a crowd agree: with each other, and with the gold if there is some.


_SCORES = ("worker_f1", "worker_accuracy", "worker_agreement")
"""Names of quartiles that are shares, printed in percent."""


class Quartiles(NamedTuple):
    """Five numbers and the mean of a distribution."""

    minimum: float
    first: float
    median: float
    third: float
    maximum: float
    mean: float

    @classmethod
    def of(cls, values: NDArray[Any]) -> Quartiles:
        """Compute them; NaN for no value."""
        if not len(values):
            return cls._make([float("nan")] * 6)
        numbers = np.percentile(values, [0, 25, 50, 75, 100]).tolist()
        return cls._make([*numbers, float(np.mean(values))])


@dataclass(frozen=True)
class Agreement:
    """What `agreement` found.

    Attributes:
        alpha: Krippendorff's alpha for nominal labels, over tokens with two labels or more.
        fleiss_kappa: Fleiss' kappa; tokens may have different numbers of labels.
        cohen_kappa: Cohen's kappa, mean over pairs of workers with shared tokens.
        observed: Share of equal labels among all pairs of labels of a token.
        pairwise_span_f1: Exact span F1 between two workers, mean over pairs with shared items;
            None for PLAIN labels.
        workers: Arrow table: worker, answers, groups, labels, token_accuracy and span_f1 against
            gold (null without gold), f1_others (the pooled span F1, for PLAIN labels the share of
            equal labels, against all others).
        quartiles: Of "answers_per_worker", "answers_per_item", "workers_per_group" (if there
            are groups), and "worker_f1" (against gold, else against the others); for PLAIN labels
            "worker_accuracy" (with gold) or "worker_agreement" (the share of equal labels,
            against the others) in its place.
        policy: How malformed tags were read.
        n_pairs: Pairs of workers that share tokens.
        pairs: Every two workers who share labels (of spans: items), by their rows in `workers`, and
            how many labels, or spans, are equal; a `Pairs`.
        masi_alpha: Where items have parts: Krippendorff's alpha of sets of spans or labels with the
            MASI distance; else None. The other measures then are of the parts.
    """

    alpha: float
    fleiss_kappa: float
    cohen_kappa: float
    observed: float
    pairwise_span_f1: float | None
    workers: pa.Table
    quartiles: Mapping[str, Quartiles]
    policy: str
    n_pairs: int
    pairs: Pairs = field(repr=False, compare=False)
    masi_alpha: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; what is not defined is None."""
        names = ("alpha", "fleiss_kappa", "cohen_kappa", "observed", "pairwise_span_f1")
        found = {name: getattr(self, name) for name in (*names, "n_pairs", "policy")}
        found |= {} if self.masi_alpha is None else {"masi_alpha": self.masi_alpha}
        found["quartiles"] = {name: row._asdict() for name, row in self.quartiles.items()}
        return dict(plain(found | {"workers": self.workers.to_pylist()}))

    def to_pandas(self) -> pd.DataFrame:
        """Return the table of workers as a pandas DataFrame, one row per worker."""
        from goldspan.spans.notebook import data_frame

        return data_frame(self.workers)

    def _repr_html_(self) -> str:
        from goldspan.spans.notebook import MOST_ITEMS, block, table

        measures = {
            "Krippendorff's alpha": self.alpha,
            "Fleiss' kappa": self.fleiss_kappa,
            "Cohen's kappa (mean)": self.cohen_kappa,
            "equal labels": self.observed,
            "pairwise span F1": self.pairwise_span_f1,
            "alpha of sets (MASI)": self.masi_alpha,
        }
        facts = [
            f"{name} {value:.3f}"
            for name, value in measures.items()
            if value is not None and not np.isnan(value)
        ]
        head, n_workers = self.workers.column_names, len(self.workers)
        rows = self.workers.slice(0, MOST_ITEMS).to_pylist()
        cells = [[str(row.pop("worker")), *row.values()] for row in rows]
        return block("Agreement", facts, table(head, cells, n_workers, "workers"))

    def __str__(self) -> str:
        """Print the measures and the quartiles."""
        f1 = self.pairwise_span_f1
        lines = [
            f"policy {self.policy}, {self.n_pairs} pairs of workers"
            + ("" if self.n_pairs else ": nobody shares a token, agreement is not defined"),
            f"Krippendorff alpha  {self.alpha:.4f}",
            f"Fleiss kappa        {self.fleiss_kappa:.4f}",
            f"Cohen kappa (mean)  {self.cohen_kappa:.4f}",
            f"equal labels        {100 * self.observed:.2f} %",
        ]
        if f1 is not None:
            lines.append(f"span F1 (pairwise)  {100 * f1:.2f}")
        if self.masi_alpha is not None:
            lines.append(f"sets' alpha (MASI)  {self.masi_alpha:.4f}  (of items; above: of parts)")
        lines.append(f"{'':<20}{'min':>9}{'q1':>9}{'median':>9}{'q3':>9}{'max':>9}{'mean':>9}")
        for name, row in self.quartiles.items():
            scale = 100 if name in _SCORES else 1
            cells = "".join(f"{scale * value:9.2f}" for value in row)
            lines.append(f"{name.replace('_', ' '):<20}{cells}")
        return "\n".join(lines)


def agreement(crowd: Any, *, policy: str = "conlleval", **reading: Any) -> Agreement:
    r"""Measure how well the workers agree.

    Args:
        crowd: A `Crowd`, or anything that `read_crowd` reads: a path, bytes, an open file, a
            DataFrame, a list of dicts; or a `Consensus`, which is compared with the workers as if
            it were gold. The answers that count are used.
        policy: How malformed tags are read as spans.
        reading: How to read `crowd` if it is not one yet, as for `read_crowd`; `gold` may be given
            with a `Crowd` too.

    Returns:
        The measures; of `Layers` a dict of them by layer.

    Raises:
        InputError: Nobody answered anything, or `crowd` cannot be read.

    >>> round(agreement(b"task,worker,label\n1,a,x\n1,b,x\n2,a,y\n2,b,x\n").alpha, 3)
    0.0
    """
    if isinstance(crowd, Layers):
        every: Any = {name: agreement(one, policy=policy, **reading) for name, one in crowd.items()}
        return every  # type: ignore[no-any-return]
    crowd = to_crowd(crowd, "crowd", **reading)
    if not len(crowd.latest):
        raise InputError("the crowd has no answer: there is nothing to compare")
    counts = label_counts(crowd)
    counts = counts[counts.sum(axis=1) > 1]
    pairs, chance = token_pairs(crowd)
    spans = None if crowd.tagset.rules.is_plain else span_pairs(crowd, policy)
    others = _against_others(crowd, pairs if spans is None else spans)
    workers = _worker_table(crowd, others, policy)
    return Agreement(
        alpha=_alpha(counts),
        fleiss_kappa=_fleiss(counts),
        cohen_kappa=_cohen(pairs, chance),
        observed=_observed(counts),
        pairwise_span_f1=None if spans is None else _mean_f1(spans),
        workers=workers,
        quartiles=_quartiles(crowd, workers),
        policy=policy,
        n_pairs=len(pairs.total),
        pairs=pairs if spans is None else spans,
        masi_alpha=None if crowd.wholes is None else masi_alpha(crowd),
    )


def judged_spans(
    crowd: Crowd, truth: NDArray[np.int16], policy: str = "conlleval"
) -> tuple[SpanArray, SpanArray]:
    """Return the true and the given spans of all answers, where truth and answer are known."""
    # truth int16 [n_tokens], -1 where unknown
    answers, theirs = crowd.latest, truth[crowd.token_of]
    true, given = (
        find_spans(Tagged(codes, answers.offset), crowd.tagset, policy)
        for codes in (theirs, answers.codes)
    )
    return _untouched(true, answers.codes < 0), _untouched(given, theirs < 0)


def worker_rates(crowd: Crowd, truth: NDArray[np.int16], policy: str = "conlleval") -> list[Rates]:
    """Score every worker's spans against some truth, on what the worker answered."""
    # truth int16 [n_tokens], -1 where unknown
    gold, found = judged_spans(crowd, truth, policy)
    by, n_workers = crowd.latest.worker, crowd.n_workers
    right = right_spans(gold, found, len(crowd.latest.codes))
    n_right = np.bincount(by[found.item], right, n_workers).astype(int)
    n_found = np.bincount(by[found.item], minlength=n_workers)
    n_true = np.bincount(by[gold.item], minlength=n_workers)
    return [Rates.of(*row) for row in zip(n_right, n_found, n_true, strict=True)]


def worker_f1(
    crowd: Crowd, truth: NDArray[np.int16], policy: str = "conlleval"
) -> NDArray[np.float64]:
    """Return the F1 of `worker_rates`, float64 [n_workers]; NaN where there is no span."""
    rates = worker_rates(crowd, truth, policy)
    return np.array([r.f1 if r.n_true + r.n_predicted else np.nan for r in rates])


def token_accuracy(crowd: Crowd, truth: NDArray[np.int16]) -> NDArray[np.float64]:
    """Share of a worker's labels that are right, float64 [n_workers]; NaN without any."""
    theirs, given = truth[crowd.token_of], crowd.latest.codes
    known = (theirs >= 0) & (given >= 0)
    workers = crowd.worker_of[known]
    total = np.bincount(workers, minlength=crowd.n_workers)
    same = np.bincount(workers, (theirs == given)[known], crowd.n_workers)
    return share(same, total)


def share(part: NDArray[Any], total: NDArray[Any]) -> NDArray[np.float64]:
    """Divide element by element; NaN where the total is 0."""
    empty = np.full(len(total), np.nan)
    return np.asarray(np.divide(part, total, out=empty, where=total > 0))


def _untouched(spans: SpanArray, unknown: NDArray[np.bool_]) -> SpanArray:
    """Return the spans that touch no token marked as unknown."""
    return spans.take(count_between(unknown, spans.start, spans.end) == 0)


def label_counts(crowd: Crowd, weight: NDArray[np.float64] | None = None) -> NDArray[Any]:
    """Count the labels of every token, [n_tokens, n_labels]: int64, or float64 with weights."""
    # weight float64 [n_labels_given]
    n_labels, codes = len(crowd.tagset.tags), crowd.latest.codes
    given = codes >= 0
    cell = crowd.token_of[given] * n_labels + codes[given]
    own = None if weight is None else weight[given]
    return np.bincount(cell, own, crowd.n_tokens * n_labels).reshape(crowd.n_tokens, n_labels)


def _alpha(counts: NDArray[np.int64]) -> float:
    """Krippendorff's alpha, nominal: 1 - observed / expected disagreement."""
    size = counts.sum(axis=1)
    disagreeing = (size**2 - (counts**2).sum(axis=1)) / (size - 1)
    total = counts.sum(axis=0).astype(float)
    n = total.sum()
    expected = (n**2 - (total**2).sum()) / (n - 1)
    return float(1 - disagreeing.sum() / expected) if expected else float("nan")


def _fleiss(counts: NDArray[np.int64]) -> float:
    if not len(counts):
        return float("nan")
    size = counts.sum(axis=1)
    agreeing = ((counts**2).sum(axis=1) - size) / (size * (size - 1))
    chance = float(((counts.sum(axis=0) / counts.sum()) ** 2).sum())
    return float((agreeing.mean() - chance) / (1 - chance)) if chance < 1 else float("nan")


def _observed(counts: NDArray[np.int64]) -> float:
    size = counts.sum(axis=1)
    pairs = (size * (size - 1)).sum()
    return float(((counts**2).sum(axis=1) - size).sum() / pairs) if pairs else float("nan")


def _cohen(pairs: Pairs, chance: NDArray[np.float64]) -> float:
    """Mean of kappa over pairs; a pair that always uses one label has none."""
    useful = chance < 1
    if not useful.any():
        return float("nan")
    observed = pairs.equal[useful] / pairs.total[useful]
    return float(((observed - chance[useful]) / (1 - chance[useful])).mean())


def _mean_f1(pairs: Pairs) -> float:
    some = pairs.total > 0
    return float((pairs.equal[some] / pairs.total[some]).mean()) if some.any() else float("nan")


def _against_others(crowd: Crowd, pairs: Pairs) -> NDArray[np.float64]:
    """Pooled F1 (PLAIN: share of equal labels) of every worker against all others."""
    total, equal = (
        sum(np.bincount(side, value, crowd.n_workers) for side in (pairs.left, pairs.right))
        for value in (pairs.total, pairs.equal)
    )
    return share(np.asarray(equal), np.asarray(total))


def _worker_table(crowd: Crowd, others: NDArray[np.float64], policy: str) -> pa.Table:
    whole, n_workers = crowd.whole_items, crowd.n_workers
    known = whole.latest.codes >= 0
    columns: dict[str, Any] = {
        "worker": crowd.worker_ids,
        "answers": pa.array(np.bincount(whole.latest.worker, minlength=n_workers)),
        "labels": pa.array(np.bincount(whole.worker_of[known], minlength=n_workers)),
    }
    if crowd.groups is not None:
        columns["groups"] = pa.array(np.bincount(_worked_on(crowd)[0], minlength=n_workers))
    if crowd.gold is not None:
        columns["token_accuracy"] = _nullable(token_accuracy(crowd, crowd.gold))
        if not crowd.tagset.rules.is_plain:
            columns["span_f1"] = _nullable(worker_f1(crowd, crowd.gold, policy))
    columns["f1_others"] = _nullable(others)
    return pa.table(columns)


def _worked_on(crowd: Crowd) -> NDArray[np.int64]:
    """The distinct pairs of worker and group, [2, n_pairs]; items without a group are left out."""
    assert crowd.groups is not None
    index = crowd.groups.dictionary_encode().indices.fill_null(-1).to_numpy().astype(np.int64)
    pairs = np.stack([crowd.latest.worker, index[crowd.latest.item]])
    return np.unique(pairs[:, pairs[1] >= 0], axis=1)


def _nullable(values: NDArray[np.float64]) -> pa.Array:
    return pa.array(values, mask=np.isnan(values))


def _quartiles(crowd: Crowd, workers: pa.Table) -> dict[str, Quartiles]:
    whole = crowd.whole_items
    found = {
        "answers_per_worker": Quartiles.of(workers.column("answers").to_numpy()),
        "answers_per_item": Quartiles.of(np.bincount(whole.latest.item, minlength=whole.n_items)),
    }
    if crowd.groups is not None:
        n_groups = len(crowd.groups.drop_null().unique())
        found["workers_per_group"] = Quartiles.of(
            np.bincount(_worked_on(crowd)[1], minlength=n_groups)
        )
    name, column = _score_of(crowd)
    found[name] = Quartiles.of(workers.column(column).drop_null().to_numpy())
    return found


def _score_of(crowd: Crowd) -> tuple[str, str]:
    """What the quartiles of the workers' scores are called, and the column that they are of."""
    if crowd.tagset.rules.is_plain:
        known = crowd.gold is not None
        return ("worker_accuracy", "token_accuracy") if known else ("worker_agreement", "f1_others")
    return "worker_f1", "f1_others" if crowd.gold is None else "span_f1"


# --------------------------------------------------------------------------------------------------
# Two sides compared: scores.


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
    **reading: Any,
) -> Score:
    r"""Compare predicted spans, or single labels, with the true ones.

    Either side may be a `Crowd` (its gold), a `Consensus` (its labels), anything that `read_crowd`
    reads and that holds known labels (a path, bytes, an open file, a DataFrame or list of dicts
    with a row per label), a pandas Series of labels by item as `fit_predict` returns it, a mapping
    from item ids to labels or to lists of tags, or a list of lists of tags.

    Items are matched by their ids; by order where no id is on both sides and the tokens are the
    same. Items on one side alone are left out.

    Args:
        truth: What is true.
        predicted: What is compared with it. Of a `Consensus` the confidences are measured, too
            (`Score.confidence`), unless its tokens had to be cut.
        encoding: Of the tags of both sides; by default that of the sides, of lists "BIO".
        policy: How malformed tags are read on both sides: "conlleval", "strict", "boundaries",
            "raise"; see `goldspan.spans.find_spans`.
        bootstrap: Number of resamples of items for the interval of F1, at least 100; 0 for none.
        level: Of that interval.
        random_state: Seed or generator of the resampling.
        wrong: List every wrong span in the result.
        reading: Options of `read_crowd` for the sides that are read.

    Returns:
        The score. Where a side is `Layers`, or what `aggregate` made of some, the other may be a
        file of several layers too, and this is a dict with the score of every layer of both.

    Raises:
        InputError: A side cannot be read or has no known labels (the message names it), nothing
            matches, or `bootstrap` is too small.
        FaultsError: A tag does not belong to the encoding.

    >>> result = score([["B-PER", "I-PER", "O"]], [["B-PER", "O", "O"]])
    >>> result.f1, result.schemes["partial"].f1, result.policy
    (0.0, 0.5, 'conlleval')
    >>> truth = [{"item": "q1", "label": "yes"}, {"item": "q2", "label": "no"}]
    >>> score(truth, b"item,label\nq1,yes\nq2,yes\n").accuracy
    0.5
    """
    if encoding is not None:
        reading["encoding"] = encoding
    how: dict[str, Any] = {"bootstrap": bootstrap, "level": level, "wrong": wrong}
    how["random_state"] = random_state
    if isinstance(truth, ByLayer) or isinstance(predicted, ByLayer):
        every: Any = _score_layers(truth, predicted, reading, {**how, "policy": policy})
        return every  # type: ignore[no-any-return]
    left, right = _side(truth, "truth", reading), _side(predicted, "predicted", reading)
    if isinstance(left, Crowd) and isinstance(right, Crowd):
        if left.wholes is not None or right.wholes is not None:
            scored = score_sets(left, right, **how)
            if not hasattr(predicted, "measure_confidence") or not asks_each(predicted.crowd):
                return scored
            return replace(scored, confidence=predicted.measure_confidence(left))
        right, left = aligned_sides(right, left)
    scored = score_tags(
        left,
        right,
        encoding=encoding,
        policy=policy,
        **how,
    )
    if not hasattr(predicted, "measure_confidence"):
        return scored
    own: Crowd = predicted.crowd
    if right.n_tokens != own.n_tokens:  # other tokens: there are no confidences of these
        return scored
    if isinstance(left, Crowd) and not right.item_ids.equals(own.item_ids):
        left = replace(left, item_ids=own.item_ids)
    return replace(scored, confidence=predicted.measure_confidence(left, encoding))


def _score_layers(truth: Any, predicted: Any, reading: Any, how: dict[str, Any]) -> Any:
    """Score every layer that is on both sides."""
    left, right = (
        side if isinstance(side, ByLayer) else read_layers(side, **reading)
        for side in (truth, predicted)
    )
    shared = [name for name in left if name in right]
    if not shared:
        raise InputError(
            f"no layer is on both sides: truth has {', '.join(left)}, predicted {', '.join(right)}"
        )
    return {name: score(left[name], right[name], **how) for name in shared}


def aligned_sides(predicted: Crowd, truth: Crowd) -> tuple[Crowd, Crowd]:
    """Return two crowds whose golds can be compared by item id and token."""
    # Where no id is shared and the characters are the same, the ids of the truth are for both
    if set(predicted.item_ids.to_pylist()) & set(truth.item_ids.to_pylist()):
        return with_same_tokens(predicted, truth)
    if [*map("".join, predicted.tokens_list)] == [*map("".join, truth.tokens_list)]:
        return with_same_tokens(replace(predicted, item_ids=truth.item_ids), truth)
    raise InputError(
        f"no item id is on both sides ({predicted.item_ids[0].as_py()!r} …, "
        f"{truth.item_ids[0].as_py()!r} …), and the texts differ too: are these the same texts?"
    )


def _side(data: Any, argument: str, reading: Mapping[str, Any]) -> Any:
    """Return tags as they are, and anything else as a crowd with gold."""
    if isinstance(data, Mapping) and data and not any(map(_is_tags, data.values())):
        data = [{"task": str(item), "label": label} for item, label in data.items()]
    is_rows = isinstance(data, list | tuple) and any(isinstance(row, Mapping) for row in data)
    if isinstance(data, Mapping) or (isinstance(data, list | tuple) and not is_rows):
        listed = data.values() if isinstance(data, Mapping) else data
        wrong = [row for row in listed if not _is_tags(row)]
        if wrong:
            raise InputError(
                f"{argument}: {wrong[0]!r} is not a list of tags: give every item a list of tags, "
                "or single labels as a mapping from item ids to labels or rows with item and label"
            )
        return data
    if isinstance(data, Crowd) or hasattr(type(data), "as_gold"):
        crowd = to_crowd(data, argument)
    else:
        crowd = to_crowd(_table_of(data), argument, **reading)
    crowd = with_known_labels(crowd)
    if crowd.gold is None:
        raise InputError(
            f"{argument}: there are no known labels in it (it was read as "
            f"{crowd.import_report.format}): answers are to be aggregated first"
        )
    return crowd


def labels_of(data: Any, argument: str, **reading: Any) -> Crowd:
    """Return what `score` takes, but for lists of tags, as a crowd with gold."""
    side = _side(data, argument, {**reading, "predicted": True})
    if not isinstance(side, Crowd):
        raise InputError(f"{argument}: lists of tags have no item ids: pass a Crowd or a file")
    return side


def _is_tags(value: Any) -> bool:
    """Return whether a value is the tags of an item, and no single label."""
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping)


def _table_of(data: Any) -> Any:
    """Return a pandas Series of labels by item as a DataFrame; anything else as it is."""
    kind = type(data)
    if hasattr(kind, "columns") or not hasattr(kind, "rename_axis"):
        return data
    return data.rename("label").rename_axis("task").reset_index()
