"""How reliable each worker is: from known items, from the crowd, or from both, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan._arrays import count_in_rows
from goldspan.aggregation import Consensus
from goldspan.crowd import Crowd, ReadOptions
from goldspan.crowd.gold import attach_gold
from goldspan.crowd.labels import joined, recode, translate
from goldspan.crowd.measures import judged_spans
from goldspan.errors import InputError, UnknownNameError
from goldspan.spans.scoring import right_spans
from goldspan.workers.beta import Reliability

# --------------------------------------------------------------------------------------------------
# Gold that does not suit the answers: labels that nobody gave, items that nobody was shown.


Floats = NDArray[np.float64]

SHOWN = 5
"""Labels that a sentence names."""
LEAST = 10
"""So many answers are not all wrong by chance: the labels are written otherwise."""


def notes_on_gold(crowd: Crowd) -> tuple[str, ...]:
    """Return which known labels nobody gave, and which known items are not in the crowd."""
    # Of tags with spans it is the types that are compared: nobody need mark everything with them
    if crowd.gold is None or not (crowd.gold >= 0).any():
        return ()
    what, names, of = _vocabulary(crowd)
    given, known = np.unique(of[crowd.latest.codes]), of[crowd.gold]
    given = given[given >= 0]
    wanted = np.unique(known[known >= 0])
    unheard = np.setdiff1d(wanted, given)
    # Who marks nothing gives no type, of whatever name.
    if not len(unheard) or not len(given):
        return tuple(_unseen(crowd))
    there, answers = ([names[label] for label in labels] for labels in (unheard, given))
    item = np.repeat(np.arange(crowd.n_items), np.diff(crowd.offsets))
    where = np.unique(item[np.isin(known, unheard)])
    n_answers = int(np.isin(crowd.latest.item, where).sum())
    some = _listed(there, answers)
    if len(unheard) == len(wanted) and (n_answers >= LEAST or "did you mean" in some):
        raise InputError(
            f"the gold has the {_plural(what, wanted)} {some}, and the answers have "
            f"{_listed(answers, [])}: nobody gave what the gold has, so that every answer would be "
            "wrong; write both alike"
        )
    note = (
        f"nobody gave the {_plural(what, unheard)} {some} of the gold: {n_answers} answers to "
        f"{len(where)} {_plural('item', where)} with it are wrong, and guessing is taken to be "
        f"among {len(given)} + {len(unheard)} {what}s"
    )
    return (*_unseen(crowd), note)


def _plural(word: str, things: NDArray[np.int64]) -> str:
    """Write the word for one thing, or for several."""
    return word if len(things) == 1 else f"{word}s"


def _vocabulary(crowd: Crowd) -> tuple[str, list[str], NDArray[np.int64]]:
    """Return what is compared: its name, the words, and the word of every code, -1 none (last)."""
    codec = crowd.tagset
    if codec.rules.is_plain:
        return "label", list(codec.tags), np.append(np.arange(len(codec.tags)), -1)
    types = np.asarray(codec.type_of, np.int64)[: len(codec.tags)]
    return "type", list(codec.types), np.append(types, -1)


def _listed(labels: list[str], known: list[str]) -> str:
    """Write labels, each with the known one that differs in case or space alone."""
    alike = {_plain(label): label for label in known}
    words = [
        f"{label!r} (did you mean {alike[_plain(label)]!r}?)"
        if _plain(label) in alike
        else repr(label)
        for label in labels[:SHOWN]
    ]
    more = len(labels) - SHOWN
    return ", ".join(words) + (f" and {more} more" if more > 0 else "")


def _plain(label: str) -> str:
    return label.strip().casefold()


def _unseen(crowd: Crowd) -> list[str]:
    """Repeat what the reader said of the last file of gold, unless all of it was found."""
    notes = [note for note in crowd.import_report.notes if note.startswith("gold for ")]
    return [note for note in notes[-1:] if "; 0 others in " not in note]


# --------------------------------------------------------------------------------------------------
# What answers are judged by: known labels, a result's posterior, or known labels before it.


@dataclass(frozen=True, eq=False)
class Truth:
    """What is known of the truth of a crowd."""

    crowd: Crowd  # The crowd with what is known of it, its tags joined with those of the truth
    result: Consensus | None  # The consensus, or None
    notes: tuple[str, ...] = ()  # What of the gold does not suit the answers, in sentences

    @property
    def gold(self) -> NDArray[np.int16]:
        """Known tags, int16 [n_tokens], -1 unknown."""
        gold = self.crowd.gold
        return np.full(self.crowd.n_tokens, -1, np.int16) if gold is None else gold

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether a token has gold, bool [n_tokens]."""
        return np.asarray(self.gold >= 0)

    @property
    def source(self) -> str:
        """What judges: "gold", "crowd", or "both"."""
        if self.result is None:
            return "gold"
        known = self.known
        return "crowd" if not known.any() else "gold" if known.all() else "both"

    def codes(self) -> NDArray[np.int16]:
        """Return the gold and, in items without any, the labels of the result, int16 [n_tokens]."""
        if self.result is None:
            return self.gold
        found = translate(self.result.codes, self.result.tagset, self.crowd.tagset)
        return np.where(self.with_gold(), self.gold, found).astype(np.int16)

    def with_gold(self) -> NDArray[np.bool_]:
        """Whether a token belongs to an item with gold, bool [n_tokens]."""
        offsets = self.crowd.offsets
        return np.repeat(count_in_rows(self.known, offsets) > 0, np.diff(offsets))


def find_truth(crowd: Crowd, gold: Any, result: Consensus | None) -> Truth:
    """Put together what is known."""
    if result is not None:
        _check_same(crowd, result)
        crowd = recode(crowd, joined(crowd.tagset, result.tagset))
    if gold is not None:
        crowd = attach_gold(crowd.with_gold(None), gold, ReadOptions())
    truth = Truth(crowd, result, notes_on_gold(crowd))
    if result is None and not truth.known.any():
        raise InputError(
            "there is nothing to judge the workers by: give known labels (gold=), or a result of "
            "the crowd (result=goldspan.aggregate(crowd, …))"
        )
    return truth


def _check_same(crowd: Crowd, result: Any) -> None:
    if not isinstance(result, Consensus):
        kind = type(result).__name__
        raise InputError(f"result must be a Consensus of goldspan.aggregate(…), not {kind}")
    other = result.crowd
    if other.n_tokens != crowd.n_tokens:
        raise InputError(f"the result is of another crowd: it is of {other!r}, this is {crowd!r}")
    if not other.item_ids.equals(crowd.item_ids):
        raise InputError("the result is of another crowd: its items are not those of this one")


# --------------------------------------------------------------------------------------------------
# Every answer against the truth: how much of it is right, of how much that could be judged.


MEASURES = ("accuracy", "token_accuracy", "span_f1")


class Judged(NamedTuple):
    """What is right, per answer in the order of `crowd.latest`."""

    right: NDArray[np.float64]  # [n_answers]
    total: NDArray[np.float64]  # [n_answers], 0 where nothing could be judged


def choose_measure(crowd: Crowd, measure: str) -> str:
    """Return the measure that "auto" stands for, and refuse one that does not suit the crowd."""
    if measure not in {"auto", *MEASURES}:
        raise UnknownNameError("measure of reliability", measure, ("auto", *MEASURES))
    plain, single = crowd.tagset.rules.is_plain, crowd.is_classification
    if measure == "auto":
        return "accuracy" if single else "token_accuracy" if plain else "span_f1"
    if measure == "accuracy" and not single:
        raise InputError("accuracy is of single labels: for tagged tokens take token_accuracy")
    if measure == "span_f1" and plain:
        raise InputError("span_f1 needs tags with spans, and this crowd has PLAIN labels")
    return measure


def judge_answers(truth: Truth, measure: str) -> Judged:
    """Judge every answer."""
    return _spans(truth) if measure == "span_f1" else _labels(truth)


def _labels(truth: Truth) -> Judged:
    right, known = label_probs(truth)
    crowd, answers = truth.crowd, truth.crowd.latest
    if crowd.is_classification:  # an answer is one label
        return Judged(right, known.astype(np.float64))
    answer = np.repeat(np.arange(len(answers)), answers.lengths)
    n = len(answers)
    return Judged(
        np.bincount(answer, right, n).astype(np.float64),
        np.bincount(answer, known, n).astype(np.float64),
    )


def label_probs(truth: Truth) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return P(truth = label given) of every label of `crowd.latest`, and whether it is known."""
    # returns float64 [n_labels], 0 where unknown; bool [n_labels]
    crowd = truth.crowd
    codes, token = crowd.latest.codes, crowd.token_of
    given = codes >= 0
    judged = truth.known[token] & given
    right = np.where(judged & (truth.gold[token] == codes), 1.0, 0.0)
    result = truth.result
    if result is None or judged.all():
        return right, judged
    width = len(result.tagset.tags)
    column = np.array([result.tagset.index.get(tag, width) for tag in crowd.tagset.tags], np.int64)
    rest = given & ~judged & (result.codes >= 0)[token]
    place = column[codes[rest]]
    probs = result.token_probs[token[rest], np.minimum(place, width - 1)]
    right[rest] = np.where(place < width, probs, 0)
    return right, judged | rest


def _spans(truth: Truth) -> Judged:
    crowd, n = truth.crowd, len(truth.crowd.latest)
    gold, found = judged_spans(crowd, truth.codes())
    true = _confidence(truth)[crowd.token_of[gold.start]]
    # A pair of equal spans is found from either side.
    is_found = right_spans(found, gold, len(crowd.latest.codes))
    n_right = np.bincount(gold.item, true * is_found, n)
    n_given = np.bincount(found.item, minlength=n)
    n_true = np.bincount(gold.item, true, n)
    return Judged(n_right.astype(np.float64), np.asarray((n_given + n_true) / 2, np.float64))


def _confidence(truth: Truth) -> NDArray[np.float64]:
    """That a span which begins at a token is true, float64 [n_tokens]: 1 for gold."""
    found = np.ones(truth.crowd.n_tokens)
    if truth.result is not None:
        found[truth.result.span_array.start] = truth.result.span_confidence
        found[truth.with_gold()] = 1.0
    return found


# --------------------------------------------------------------------------------------------------
# How often every worker is right, from gold questions, from the crowd alone, or from both.


def measure_reliability(
    crowd: Crowd,
    gold: Any = None,
    result: Consensus | None = None,
    *,
    measure: str = "auto",
    prior: str | tuple[float, float] = "pool",
) -> Reliability:
    r"""Measure how often every worker is right.

    By gold an answer is right or wrong. By a result it is right with the probability that the
    result gives to it: expected right answers are the sum of P(truth = label given). The worker's
    own answer is part of that result, so that workers with few colleagues per item look better than
    they are, under votes most of all: prefer `ds` or a `bsc` method, and gold to either. With both,
    gold judges the items that have it and the result all others.

    Args:
        crowd: The crowd; the answers that count are used.
        gold: Known labels: a file or DataFrame with columns item and label, a file with tags, a
            `Crowd` with gold, or a mapping from item id to label (or to the item's tags). By
            default the crowd's own gold.
        result: A result of `goldspan.aggregate` of this crowd.
        measure: "accuracy" (single labels), "token_accuracy", or "span_f1": right are TP, judged
            are TP + (FP + FN) / 2 (Goutte and Gaussier 2005, whose F1 is Beta(TP, (FP + FN) / 2)
            but for a smaller variance). "auto" is accuracy for single labels, span_f1 for tags,
            token_accuracy for PLAIN tags of tokens.
        prior: Beta(a, b) as a pair, or "pool": see `Reliability`.

    Returns:
        Counts of all workers in the order of `crowd.worker_ids`. Of tags they are effective
        numbers: divided by the design effect. Items with any number of labels count once, right by
        the share of the labels. Workers without a judged answer have 0 of 0.

    Raises:
        InputError: There is neither gold nor a result; no worker answered an item with gold; or
            the measure, the gold or the result does not suit the crowd.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,ann,x\n1,bob,y\n2,ann,y\n2,bob,y\n")
    >>> found = measure_reliability(crowd, {"1": "x", "2": "y"}, prior=(1, 1))
    >>> found.to_arrow().column("mean").to_pylist()
    [0.75, 0.5]
    """
    truth = find_truth(crowd, gold, result)
    chosen = choose_measure(truth.crowd, measure)
    judged = judge_answers(truth, chosen)
    if not judged.total.any() and result is None:
        raise InputError("no worker answered an item with gold: there is nothing to judge")
    right, total = _per_worker(truth.crowd, judged)
    if not truth.crowd.is_classification:
        effect = design_effect(truth.crowd, judged)
        right, total = right / effect, total / effect
    elif truth.crowd.wholes is not None:  # the labels of an item hang together: one answer
        n_parts = truth.crowd.n_items / truth.crowd.whole_items.n_items
        right, total = right / n_parts, total / n_parts
    return Reliability.from_counts(
        np.minimum(right, total),  # sums of float32 may exceed the whole by a little
        total,
        n_labels=_n_labels(truth.crowd, chosen),
        worker_ids=crowd.worker_ids,
        prior=prior,
        measure=chosen,
        source=truth.source,
    )


def design_effect(crowd: Crowd, judged: Judged) -> NDArray[np.float64]:
    """Say by how much fewer independent questions would tell the same, float64 [n_workers], >= 1.

    The variance of a ratio of sums over clusters (Kish 1965) is put beside that of independent
    answers, over all workers with two clusters or more; that gives rho.
    """
    right, total, worker = _per_cluster(crowd, judged)
    n = crowd.n_workers
    whole = np.bincount(worker, total, n)
    share = np.bincount(worker, right, n) / np.maximum(whole, 1e-300)
    size = np.bincount(worker, total**2, n) / np.maximum(whole, 1e-300)
    clusters = np.bincount(worker, minlength=n)
    spread = np.bincount(worker, (right - share[worker] * total) ** 2, n)
    used = clusters > 1
    correction = clusters[used] / (clusters[used] - 1)
    alone = (whole * share * (1 - share))[used]
    excess, room = (spread[used] * correction - alone).sum(), (alone * (size[used] - 1)).sum()
    rho = float(np.clip(excess / room, 0, 1)) if room > 0 else 0.0
    return np.asarray(1 + np.maximum(size - 1, 0) * rho)


def _per_cluster(
    crowd: Crowd, judged: Judged
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Sum up by worker and document: right, total, worker of every such cluster."""
    worker, group = crowd.latest.worker.astype(np.int64), crowd.document_of[crowd.latest.item]
    kept = judged.total > 0
    key = worker[kept] * 2 * crowd.n_items + group[kept]
    keys, cluster = np.unique(key, return_inverse=True)
    right = np.bincount(cluster, judged.right[kept], len(keys)).astype(np.float64)
    total = np.bincount(cluster, judged.total[kept], len(keys)).astype(np.float64)
    return right, total, keys // max(1, 2 * crowd.n_items)


def _per_worker(crowd: Crowd, judged: Judged) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    worker, n = crowd.latest.worker, crowd.n_workers
    return (
        np.bincount(worker, judged.right, n).astype(np.float64),
        np.bincount(worker, judged.total, n).astype(np.float64),
    )


def _n_labels(crowd: Crowd, measure: str) -> int:
    n = len(crowd.tagset.types) + 1 if measure == "span_f1" else len(crowd.tagset.tags)
    return max(2, n)


# --------------------------------------------------------------------------------------------------
# A quality flag, its thresholds, and the context in which flags are looked for.


@dataclass(frozen=True)
class QualityFlag:
    """Something in a worker's answers that good work seldom shows."""

    worker: str  # Id of the worker
    kind: str  # Name of the flag in `goldspan.workers.quality_flags.FLAGS`
    strength: float  # How marked it is, 0 to 1; every kind says what of
    # How probable it is that any worker without it would show so much: times the number of workers
    # (or pairs) that were tested (Bonferroni), at most 1
    p_value: float
    evidence: str  # A sentence
    numbers: Mapping[str, float | str] = field(default_factory=dict)  # What the sentence is made of

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; the worker is left out."""
        facts = {"kind": self.kind, "strength": self.strength, "p_value": self.p_value}
        return {**facts, "evidence": self.evidence, **self.numbers}

    def __str__(self) -> str:
        """Return kind and evidence; a question stands alone."""
        is_question = self.evidence.startswith("Did ")
        return self.evidence if is_question else f"{self.kind}: {self.evidence}"


ALPHA = 0.05
"""Chance that a crowd without it shows a flag of one kind at all."""
LEAST_TESTED = 20
"""Fewest answers of a worker that are tested."""
CONSTANT = 0.95
"""Share of equal answers, at least, of who always says the same."""


@dataclass(frozen=True, eq=False)
class FlagContext:
    """What flags are looked for in."""

    truth: Truth  # The crowd, its gold, and a result for where there is no gold
    # Answers of models to the same items that count for nothing else, or None
    probes: Crowd | None = None

    @property
    def crowd(self) -> Crowd:
        """The crowd."""
        return self.truth.crowd

    @cached_property
    def judged(self) -> Judged:
        """Every answer's labels by gold, else by the result."""
        measure = "accuracy" if self.crowd.is_classification else "token_accuracy"
        return judge_answers(self.truth, measure)

    @cached_property
    def n_answers(self) -> NDArray[np.int64]:
        """Answers of every worker, int64 [n_workers]."""
        return np.bincount(self.crowd.latest.worker, minlength=self.crowd.n_workers)

    def name(self, worker: int) -> str:
        """Return a worker's id."""
        return str(self.crowd.worker_ids[worker].as_py())

    def significant(
        self, p_value: NDArray[np.float64], n_tests: int
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Correct p-values for the number of tests, and say which pass."""
        corrected = np.minimum(p_value * max(1, n_tests), 1.0)
        return corrected, np.asarray(corrected < ALPHA)


def at_least(
    count: NDArray[Any], total: NDArray[Any], rate: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """Return P(X >= count) of X ~ Binomial(total, rate), element by element."""
    from scipy.special import betainc

    hits, rest = np.asarray(count, np.float64), np.asarray(total - count + 1, np.float64)
    return np.where(hits > 0, betainc(np.maximum(hits, 1), rest, rate), 1.0)


def at_most(
    count: NDArray[Any], total: NDArray[Any], rate: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """Return P(X <= count) of X ~ Binomial(total, rate), element by element."""
    return at_least(total - count, total, 1 - rate)


LEAST_USUAL = 20
"""Of fewer pairs or people it is not known how far they lie apart."""


def beside_spread(p_value: Floats, distance: Floats, usual: NDArray[np.bool_]) -> Floats:
    """Raise p-values where the whole crowd lies further apart than chance alone would have it."""
    # p_value float64 [n], by chance alone; distance float64 [n]; usual bool [n]
    if usual.sum() < LEAST_USUAL:
        return p_value
    from scipy.special import ndtr

    low, high = np.percentile(distance[usual], [25, 75])
    scale = float(high - low) / 1.349
    return np.maximum(p_value, ndtr(-distance / scale)) if scale > 1 else p_value


def percent(value: float) -> str:
    """Write a share in whole per cent, or in tenths near 100."""
    return f"{100 * value:.1f} %" if 0.99 < value < 1 else f"{100 * value:.0f} %"
