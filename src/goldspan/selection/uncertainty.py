"""Uncertainty of taggers and classifiers, committees, and density."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, rel_entr

from goldspan.chains.decoding import n_best_paths
from goldspan.errors import InputError
from goldspan.params import Number
from goldspan.selection.base import Picked, Selector, Task, error_rate
from goldspan.selection.features import Incidence
from goldspan.selection.greedy import BUDGET, EXHAUSTED, Spending, Wanted, cover
from goldspan.selection.pool import Pool
from goldspan.tagger import Text
from goldspan.tagger.base import Tagger

# --------------------------------------------------------------------------------------------------
# What models say of a pool: probabilities of labels, or of tag sequences.


Floats = NDArray[np.float64]
BLOCK_TOKENS = 50_000
"""Tokens that are tagged at once."""
BLOCK_ROWS = 2_000
"""Items that a classifier is asked about at once: some need a dense matrix of all their words."""


def class_probs(model: Any, pool: Pool, index: NDArray[np.int64]) -> Floats:
    """Return the probabilities of the labels of some items, float64 [len(index), n_labels]."""
    if hasattr(model, "predict_proba"):
        found = [model.predict_proba(pool.rows(block)) for block in row_blocks(index)]
        probs = np.concatenate([np.asarray(one, np.float64) for one in found])
        n_rows = len(index)
    elif isinstance(model, np.ndarray | list):
        every = np.asarray(model, np.float64)
        probs, n_rows = every, pool.n_items
    else:
        steps = getattr(model, "steps", None)  # of a pipeline
        name = type(steps[-1][1] if steps else model).__name__
        raise InputError(
            f"a model is a trained tagger, a classifier with predict_proba, or a matrix of "
            f"probabilities, not {name}"
        )
    if probs.ndim != 2 or len(probs) != n_rows or not probs.shape[1]:
        raise InputError(
            f"the probabilities must have {n_rows} rows, one per item, not shape {probs.shape}"
        )
    sums = probs.sum(axis=1)
    if not ((probs >= 0).all() and np.allclose(sums, 1, atol=1e-6)):
        raise InputError("the probabilities of an item must not be negative, and add up to 1")
    return probs if hasattr(model, "predict_proba") else probs[index]


def row_blocks(index: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Cut items into blocks that a classifier is asked about one after the other."""
    for at in range(0, max(len(index), 1), BLOCK_ROWS):
        yield index[at : at + BLOCK_ROWS]


def by_blocks(
    tagger: Tagger, pool: Pool, index: NDArray[np.int64], measure: Callable[[Text], Floats]
) -> Floats:
    """Measure some items with a tagger, block by block."""
    if pool.text is None:
        raise InputError("a tagger reads words, and this pool is a table of attributes")
    if tagger.documents_:
        return measure(pool.text)[index]
    text = replace(pool.text, group=None)
    number = np.cumsum(pool.n_tokens[index]) // BLOCK_TOKENS
    blocks = np.split(index, np.flatnonzero(np.diff(number)) + 1)
    found = [measure(text.select(block)) for block in blocks if len(block)]
    return np.concatenate(found) if found else np.zeros(0)


def path_log_probs(tagger: Tagger, text: Text, n: int) -> Floats:
    """Return ln P of the n best tag sequences of every item, float64 [n_items, n]; -inf for none.

    The logarithm is taken before it can underflow: a long sentence's best path is improbable.
    """
    p = tagger.log_potentials(text)
    offsets = (p.offsets - p.offsets[0]).tolist()
    found = np.full((len(offsets) - 1, n), -np.inf)
    for item in range(len(offsets) - 1):
        a, b = offsets[item], offsets[item + 1]
        paths, log_probs = np.empty((n, b - a), np.int16), np.empty(n)
        known = n_best_paths(p.unary[a:b], p.start, p.step, p.end, paths, log_probs)
        found[item, :known] = np.minimum(log_probs[:known], 0.0)
    return found


# --------------------------------------------------------------------------------------------------
# Rules that give every item a score: the batch from a ranking, dense or diverse if asked for.


_COVERS = 3
"""How often the pairs of a shortlist are covered before it is filled up by score."""


class Ranked(Selector):
    """Base of rules with a score per item; the highest scores are picked.

    Args:
        by_cost: Divide scores by costs.
        density: Multiply scores by this power of an item's mean similarity to the pool (Settles
            and Craven 2008, "information density"); 0: do not.
        errors: Where errors are known, multiply scores by this power of an item's relative error
            rate (`error_rate`), so that what is like the items that a model got wrong comes first;
            0: do not.
        top: More than 1: the batch is chosen by coverage within the best ones, `top` times as many
            as it holds, so that it does not hold the same thing many times.
    """

    by_cost: bool = False
    density: Annotated[float, Number(0, 100)] = 0.0
    errors: Annotated[float, Number(0, 100)] = 1.0
    top: Annotated[float, Number(1, 1e6)] = 1.0

    @property
    def heeds_errors(self) -> bool:
        """Whether what a model got wrong changes what it picks."""
        return self.needs_errors or self.errors > 0

    @abstractmethod
    def _scores(self, task: Task, index: NDArray[np.int64]) -> Floats:
        """Return the scores of some items, not negative."""

    def _pick(self, task: Task) -> Picked:
        index = np.flatnonzero(~task.is_out)
        scores = np.zeros(task.pool.n_items)
        if len(index):
            scores[index] = self._scores(task, index)
        if not np.isfinite(scores).all():
            bad = task.pool.item_ids[int(np.flatnonzero(~np.isfinite(scores))[0])].as_py()
            raise InputError(f"{self.name}: the score of item {bad} is not a finite number")
        if self.density:
            scores *= similarity(task.described.items) ** self.density
        if self.errors and task.known.errors is not None:
            scores *= error_rate(task) ** self.errors
        spending, keys = task.limits.spending, scores
        if self.by_cost and spending.shares is not None:
            keys = scores / spending.shares
        ranks = task.ranks()
        ranks = ranks[~task.is_out[ranks]]
        order = ranks[np.argsort(-keys[ranks], kind="stable")]
        n_diverse = 0
        if self.top > 1:
            first = diverse(task.described.items, order, spending, self.top, task.ranks())
            order, n_diverse = np.concatenate([first, order[~np.isin(order, first)]]), len(first)
        taken = fill(order, spending)
        why = tuple(f"{self.name} {score:.4g}" for score in scores[taken].tolist())
        stopped = EXHAUSTED if len(taken) == len(order) else BUDGET
        facts: dict[str, Any] = {"diverse": n_diverse} if self.top > 1 else {}
        level = np.zeros(len(taken), np.int64)
        rule = (self.name,) * len(taken)
        return Picked(taken, scores[taken], level, rule, why, stopped, facts)


def fill(order: NDArray[np.int64], spending: Spending) -> NDArray[np.int64]:
    """Take items in order while the budget lasts, leaving out what does not fit."""
    if spending.spend is None:
        return order[: spending.most]
    spend = spending.spend[order].tolist()
    least, left = min(spend, default=0.0), spending.budget * (1 + 1e-12)
    kept: list[int] = []
    for n, price in enumerate(spend):
        if len(kept) == spending.most or left < least:
            break
        if price <= left:
            left -= price
            kept.append(n)
    return order[np.array(kept, np.intp)]


def diverse(
    items: Incidence,  # Which item has which values
    order: NDArray[np.int64],  # [n], items, the best first
    spending: Spending,  # What may be spent
    top: float,  # The shortlist is so many times as much as the budget holds
    ranks: NDArray[np.int64],  # [n_items], the permutation that decides ties
) -> NDArray[np.int64]:
    """Choose a batch by coverage from the best of a ranking."""
    wide = Spending(
        int(min(len(order), np.ceil(top * spending.most))), spending.spend, top * spending.budget
    )
    out = np.ones(items.n_items, np.bool_)
    out[fill(order, wide)] = False
    return cover(items, Wanted(w=_COVERS), spending, ranks, out).item


def similarity(items: Incidence) -> Floats:
    """Return every item's mean cosine with all items of the pool, float64 [n_items].

    >>> similarity(Incidence.of_sets([{0}, {0}, {1}])).round(3).tolist()
    [0.667, 0.667, 0.333]
    """
    norm = np.sqrt(np.maximum(1, np.diff(items.bounds)))
    each = np.repeat(1 / norm, np.diff(items.bounds))
    middle = np.bincount(items.ids, weights=each, minlength=items.n_values) / max(1, items.n_items)
    return items.sums(middle) / norm


# --------------------------------------------------------------------------------------------------
# Density: items that stand for many others, without any model; and items like those of errors.


class Density(Ranked):
    """Mean cosine of an item's attribute–value pairs with those of all items.

    As a factor on a model's uncertainty it is the parameter `density` of the other rules:
    `mnlp(density=1)`.

    >>> Density().select([["a", "b"], ["a", "b", "c"], ["x"]], n=2).item.tolist()
    [0, 1]
    """

    name = "density"

    def _scores(self, task: Task, index: NDArray[np.int64]) -> Floats:
        return np.asarray(similarity(task.described.items)[index])


class NearErrors(Ranked):
    """Relative error rate of an item's attribute–value pairs, see `error_rate`.

    It takes "more data similar to the ones that the ML model misclassified" (Ntoulas et al., 2).
    Where nothing is wrong, all items are alike, and the seed decides.

    >>> texts = ["a b", "a c", "d e", "d f"]
    >>> NearErrors().select(texts, labelled=[0, 2], errors=["0"], n=1).item.tolist()
    [1]
    """

    name = "near-errors"
    needs_errors = True
    errors: Annotated[float, Number(0, 100)] = 0.0

    def _scores(self, task: Task, index: NDArray[np.int64]) -> Floats:
        return error_rate(task)[index]


# --------------------------------------------------------------------------------------------------
# Uncertainty: items whose label or tags a model is least sure of.


class Uncertainty(Ranked):
    """Base of the rules that ask one model."""

    needs_model: ClassVar[bool] = True

    @abstractmethod
    def _of_labels(self, probs: Floats) -> Floats:
        """Return the scores of items, float64 [n], from probabilities, float64 [n, n_labels]."""

    @abstractmethod
    def _of_sequences(self, tagger: Tagger, text: Text) -> Floats:
        """Return the scores of items from a tagger, float64 [n_items]."""

    def _scores(self, task: Task, index: NDArray[np.int64]) -> Floats:
        if isinstance(task.model, list | tuple) and any(
            isinstance(one, Tagger) or hasattr(one, "predict_proba") for one in task.model
        ):
            raise InputError(f"{self.name} asks one model: for several take vote or committee-kl")
        if isinstance(task.model, Tagger):
            return by_blocks(
                task.model, task.pool, index, lambda text: self._of_sequences(task.model, text)
            )
        return self._of_labels(class_probs(task.model, task.pool, index))


class LeastConfidence(Uncertainty):
    """1 - P(best): how likely the best label, or the best tag sequence, is wrong.

    >>> probs = np.array([[0.9, 0.1], [0.6, 0.4]])
    >>> LeastConfidence().select(["a", "b"], model=probs, n=1).item.tolist()
    [1]
    """

    name = "least-confidence"

    def _of_labels(self, probs: Floats) -> Floats:
        return np.asarray(1 - probs.max(axis=1))

    def _of_sequences(self, tagger: Tagger, text: Text) -> Floats:
        return np.asarray(-np.expm1(path_log_probs(tagger, text, 1)[:, 0]))


class Margin(Uncertainty):
    """1 - (P(best) - P(second)): how close the runner-up is."""

    name = "margin"

    def _of_labels(self, probs: Floats) -> Floats:
        best = np.sort(probs, axis=1)[:, ::-1]
        second = best[:, 1] if best.shape[1] > 1 else 0.0
        return np.asarray(1 - (best[:, 0] - second))

    def _of_sequences(self, tagger: Tagger, text: Text) -> Floats:
        best = np.exp(path_log_probs(tagger, text, 2))
        return np.asarray(1 - (best[:, 0] - best[:, 1]))


class Entropy(Uncertainty):
    """Entropy in nats: of the label, or of the whole tag sequence, which grows with its length."""

    name = "entropy"

    def _of_labels(self, probs: Floats) -> Floats:
        return np.asarray(entr(probs).sum(axis=1))

    def _of_sequences(self, tagger: Tagger, text: Text) -> Floats:
        return np.asarray(np.maximum(0.0, tagger.tag(text, least=np.inf).entropy))


class Mnlp(Uncertainty):
    """Mean over tokens of -ln P(best path): what is unsure, whatever its length.

    The maximum normalised log-probability of Shen et al. (2018), with the sign turned.
    """

    name = "mnlp"

    def _of_labels(self, probs: Floats) -> Floats:
        return np.asarray(-np.log(probs.max(axis=1)))

    def _of_sequences(self, tagger: Tagger, text: Text) -> Floats:
        lengths = np.maximum(1, np.diff(text.offsets))
        return np.asarray(-path_log_probs(tagger, text, 1)[:, 0] / lengths)


class TokenEntropy(Entropy):
    """Mean over tokens of the entropy of a token's tag, in nats."""

    name = "token-entropy"

    def _of_sequences(self, tagger: Tagger, text: Text) -> Floats:
        found = tagger.tag(text, least=np.inf)
        return token_means(entr(np.clip(found.probs, 0, 1)).sum(axis=1), found.offsets)


class SpanChange(Uncertainty):
    """How many spans an annotator is expected to change, per cost by default.

    With y drawn from the model, the expected number of spans that are in one of y and the best
    path and not in the other: the sum of 1 - P(span) over the best path's spans and of P(span)
    over all others. What goldspan's taggers are scored by is spans, so this is the expected change
    of Settles and Craven's (2008) "expected model change" where it counts; spans below 0.001 are
    left out.
    """

    name = "span-change"
    by_cost: bool = True

    def _of_labels(self, probs: Floats) -> Floats:  # noqa: ARG002 - refused whatever they are
        raise InputError("span-change counts spans: it needs a tagger (mnlp and margin do not)")

    def _of_sequences(self, tagger: Tagger, text: Text) -> Floats:
        from goldspan.tagger.decoding import spans_with_confidence

        if tagger.codec_.rules.is_plain:
            raise InputError("span-change counts spans, and PLAIN tags have none: use mnlp")
        found = tagger.tag(text, least=1e-3)
        best, mass = spans_with_confidence(found, tagger.codec_)
        n_items = len(text.offsets) - 1
        every = np.bincount(found.spans.item, weights=found.mass, minlength=n_items)
        return np.asarray(
            np.maximum(0.0, every + np.bincount(best.item, 1 - 2 * mass, minlength=n_items))
        )


def token_means(values: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Return the mean of every item's tokens, float64 [n_items]; 0 for items without tokens."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    lengths = np.diff(offsets)
    return np.asarray(np.diff(sums[offsets]) / np.maximum(1, lengths))


# --------------------------------------------------------------------------------------------------
# Query by committee: items about which several models disagree.


class Committee(Ranked):
    """Base of the rules that ask several models."""

    needs_model: ClassVar[bool] = True

    @abstractmethod
    def _disagreement(self, probs: Floats) -> Floats:
        """Return it from probabilities."""
        # probs float64 [n_models, n, n_labels]; returns float64 [n], not negative

    def _scores(self, task: Task, index: NDArray[np.int64]) -> Floats:
        models = _models(task.model, self.name)
        if isinstance(models[0], Tagger):
            # One that looks at whole documents, if any does: the text is then not cut
            widest = next((one for one in models if one.documents_), models[0])
            return by_blocks(widest, task.pool, index, lambda text: self._of_text(models, text))
        every = [class_probs(model, task.pool, index) for model in models]
        names = [
            list(getattr(model, "classes_", range(probs.shape[1])))
            for model, probs in zip(models, every, strict=True)
        ]
        return self._disagreement(_aligned(every, names))

    def _of_text(self, taggers: list[Tagger], text: Text) -> Floats:
        alone = replace(text, group=None)
        found = [one.tag(text if one.documents_ else alone, least=np.inf) for one in taggers]
        probs = _aligned([one.probs for one in found], [list(t.codec_.tags) for t in taggers])
        return token_means(self._disagreement(probs), found[0].offsets)


class Vote(Committee):
    """Entropy of the models' votes, in nats.

    >>> sure, other = np.array([[0.9, 0.1], [0.8, 0.2]]), np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> Vote().select(["a", "b"], model=[sure, other], n=1).item.tolist()
    [1]
    """

    name = "vote"

    def _disagreement(self, probs: Floats) -> Floats:
        # Entropy of the shares of votes; a model votes for its likeliest label.
        n_labels = probs.shape[2]
        votes = np.eye(n_labels)[probs.argmax(axis=2)]
        return np.asarray(entr(votes.mean(axis=0)).sum(axis=1))


class CommitteeKl(Committee):
    """Mean KL divergence of the models from their average, in nats (McCallum and Nigam 1998)."""

    name = "committee-kl"

    def _disagreement(self, probs: Floats) -> Floats:
        found = rel_entr(probs, probs.mean(axis=0)).sum(axis=2).mean(axis=0)
        return np.asarray(np.maximum(0.0, found))


def _models(given: Any, name: str) -> list[Any]:
    models = list(given) if isinstance(given, list | tuple) else []
    if isinstance(given, np.ndarray) and given.ndim == 3:
        models = list(given)
    if len(models) < 2:
        raise InputError(f"{name} needs a committee: a list of at least two models")
    if len({isinstance(model, Tagger) for model in models}) > 1:
        raise InputError(f"{name}: a committee is of taggers or of classifiers, not of both")
    return models


def _aligned(every: list[Floats], names: list[list[Any]]) -> Floats:
    """Return the probabilities of all models for the labels that any of them knows."""
    labels = list(dict.fromkeys(label for own in names for label in own))
    found = np.zeros((len(every), len(every[0]), len(labels)))
    for m, (probs, own) in enumerate(zip(every, names, strict=True)):
        found[m][:, [labels.index(label) for label in own]] = probs
    return found
