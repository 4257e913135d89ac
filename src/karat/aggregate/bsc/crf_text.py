"""BSC with a CRF inside: the words speak for themselves (MATH section 6; our own).

    q(t) ~ p_theta(t | x) prod_k exp E ln A^k(t, c^k_{tau-1}, c^k_tau)

The CRF takes the place of the Dirichlet transitions. It is fitted to the soft labels q, and so
would only repeat them: it is therefore cross-fitted – documents are dealt into folds, and the
scores of a fold come from a CRF that never saw it (the weights of steps, some dozens of numbers,
are the folds' mean). Workers miss the same names, where the model takes them to be independent,
and would outvote the text: n labels of a token count as n / (1 + (n - 1) dependence). Workers,
CRFs and labels are updated in turn. There is no bound that cannot fall: it stops when the labels
stand still, or after some rounds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from karat.aggregate.base import Given
from karat.aggregate.bsc.engine import Fit, e_step
from karat.aggregate.bsc.evidence import Evidence
from karat.aggregate.bsc.patterns import discounted
from karat.aggregate.bsc.posterior import Posterior
from karat.aggregate.bsc.prepared import Prepared
from karat.aggregate.bsc.tables import Sums, Tables
from karat.crowd import Crowd
from karat.errors import InputError
from karat.protocols import Serial
from karat.tagger.base import potentials_of
from karat.tagger.crf import CRF
from karat.tagger.features import FeatureMap, Features, Text
from karat.tagger.templates import Template, read_templates
from karat.tagger.training import Masks, Targets, train
from karat.tagger.weights import Weights

Floats = NDArray[np.float64]
FIRST_STEPS, NEXT_STEPS, LAST_STEPS = 30, 12, 100
"""Steps of L-BFGS in the first round, in later ones, and for the tagger that is kept."""
INNER = 3
"""Updates of the workers for every update of the CRFs."""
STILL = 0.002
"""Mean change of a token's labels below which nothing moves any more."""


@dataclass(frozen=True)
class Settings:
    """How the CRFs are trained.

    Attributes:
        templates: What features there are.
        c2: Penalty of the squared weights.
        min_count: Rarer features are left out.
        folds: Number of folds.
        rounds: Most rounds.
        seed: Of the deal of documents.
    """

    templates: Sequence[Template]
    c2: float
    min_count: int
    folds: int
    rounds: int
    seed: int | None

    @classmethod
    def of(cls, method: Any) -> Settings:
        """Take them from an aggregator's parameters."""
        templates = read_templates(method.templates)
        m = method
        return cls(templates, m.c2, m.min_count, m.folds, m.rounds, m.random_state)


@dataclass(frozen=True, eq=False)
class Refined:
    """What comes out.

    Attributes:
        shards: The evidence with the CRFs' scores.
        fit: The last parameters.
        tagger: A CRF trained on all items.
    """

    shards: Sequence[Evidence]
    fit: Fit
    tagger: CRF


def refine(ready: Prepared, fit: Fit, settings: Settings, given: Given) -> Refined:
    """Go on from a fit without text.

    Raises:
        InputError: There is only one item.
    """
    crowd, codec = ready.crowd, ready.crowd.tagset
    masks = Masks.of(codec, hard=True)
    fold = deal(crowd, settings.folds, settings.seed)
    active = np.concatenate([shard.active for shard in ready.shards])
    text = text_of(crowd)
    numbers, features = FeatureMap.fit(text, settings.templates, min_count=settings.min_count)
    folds = [_Fold(features, fold, k, active, numbers.n_features) for k in range(settings.folds)]
    probs = Posterior(ready.shards, fit.tables, codec, given.runner).marginals(np.inf).probs
    weights: Sequence[Weights | None] = [None] * len(folds)
    sums, posterior = fit.sums, fit.posterior
    trace: list[float] = []
    answers = _discounted(ready)
    shards, tables, reason = answers, fit.tables, "rounds"
    begin = time.perf_counter()
    for done in range(1, settings.rounds + 1):
        steps = FIRST_STEPS if done == 1 else NEXT_STEPS
        jobs = [(one, probs, start) for one, start in zip(folds, weights, strict=True)]
        weights = given.runner.map(_train, jobs, (masks, settings.c2, steps, crowd.offsets))
        found = [one for one in weights if one is not None]
        unary, truth, end = _scores(folds, found, masks, crowd.n_tokens)
        shards = _with_unary(answers, unary)
        for _ in range(INNER):
            posterior, made, _ = ready.model.update(sums, posterior)
            tables = Tables(made.log_table, made.table, truth, end)
            sums = given.runner.map_reduce(e_step, shards, tables, Sums.add)
        new = Posterior(shards, tables, codec, given.runner).marginals(np.inf).probs
        moved = float(np.abs(new - probs).sum(axis=1).mean() / 2)
        probs = new
        trace.append(sums.log_z)
        if given.progress:
            pace = (time.perf_counter() - begin) / done
            given.progress(done, settings.rounds, trace[-1], pace * (settings.rounds - done))
        if moved < STILL:
            reason = "labels stand still"
            break
    tagger = _tagger(
        numbers,
        features,
        probs,
        active,
        masks,
        settings,
        given,
        codec,
        weights,
        text.group is not None,
    )
    last = Fit(sums, posterior, tables, tuple(trace), reason != "rounds", reason)
    return Refined(shards, last, tagger)


def with_tagger(ready: Prepared, tables: Tables, tagger: CRF) -> tuple[list[Evidence], Tables]:
    """Let a trained CRF speak for new items, which it never saw."""
    masks = Masks.of(ready.crowd.tagset, hard=True)
    found = tagger.log_potentials(text_of(ready.crowd))
    start, step, end = masks.exponentials(tagger.weights_)
    made = Tables(tables.log_table, tables.table, np.vstack([start, step]), end)
    return _with_unary(_discounted(ready), found.unary), made


def _discounted(ready: Prepared) -> list[Evidence]:
    n_rows = len(ready.model.rows)
    return [discounted(shard, n_rows, ready.dependence) for shard in ready.shards]


def deal(crowd: Crowd, folds: int, seed: int | None) -> NDArray[np.int64]:
    """Deal documents into folds of about equal number; a single document by its items.

    Raises:
        InputError: There is only one item.
    """
    names = crowd.item_ids if crowd.groups is None else crowd.groups
    _, document = np.unique(np.asarray(names.to_pylist(), object).astype(str), return_inverse=True)
    if not document.max():
        document = np.arange(crowd.n_items)
    n_documents = int(document.max()) + 1
    if n_documents < 2:
        raise InputError("a CRF needs two items at least: one to learn from, one to label")
    place = np.random.default_rng(seed).permutation(n_documents)
    return np.asarray(place[document] % min(folds, n_documents), np.int64)


def text_of(crowd: Crowd) -> Text:
    """Give the words of a crowd with their documents."""
    group = None
    if crowd.groups is not None:
        names = np.asarray(crowd.groups.to_pylist(), object).astype(str)
        group = np.unique(names, return_inverse=True)[1].astype(np.int64)
    words = crowd.tokens.flatten().cast(pa.large_string())
    return Text(words, crowd.offsets, group)


class _Fold:
    """The features of a fold's own items, and of all others, which train its CRF."""

    def __init__(
        self, features: Features, fold: NDArray[np.int64], k: int, active: Any, n_features: int
    ) -> None:
        self.own_items = np.flatnonzero(fold == k)
        self.items = np.flatnonzero((fold != k) & active)
        self.own_tokens = _tokens(self.own_items, features.offsets)
        self.own, self.others = features.select(self.own_items), features.select(self.items)
        self.n_features = n_features


def _train(
    job: tuple[_Fold, NDArray[np.float32], Weights | None],
    params: tuple[Masks, float, int, NDArray[np.int64]],
) -> Weights:
    (fold, probs, start), (masks, c2, steps, offsets) = job, params
    targets = _targets(fold.others, fold.items, fold.n_features, probs, offsets, masks)
    weights, _ = train(
        fold.others, targets, masks, c2=c2, runner=Serial(), start=start, max_iter=steps, tol=0.0
    )
    return weights


def _targets(
    features: Features,
    items: NDArray[np.int64],
    n_features: int,
    probs: NDArray[np.float32],
    offsets: NDArray[np.int64],
    masks: Masks,
) -> Targets:
    """Take marginals as soft targets; steps between neighbours as independent, made legal."""
    own = probs[_tokens(items, offsets)].astype(np.float64)
    first = np.zeros(len(own) + 1, np.bool_)
    first[features.offsets[:-1]] = True
    inside = np.flatnonzero(~first[1 : len(own)])
    before, now = own[inside], own[inside + 1]
    lost = before @ (1 - masks.step)  # what the encoding forbids is taken out of every pair
    kept = np.maximum(1 - (lost * now).sum(axis=1, keepdims=True), 1e-6)
    steps = (before / kept).T @ now * masks.step
    return Targets.of_marginals(features, n_features, own, steps, np.ones(len(items)))


def _tokens(items: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    lengths = np.diff(offsets)[items]
    ends = np.cumsum(lengths)
    return np.repeat(offsets[items] - ends + lengths, lengths) + np.arange(lengths.sum())


def _scores(
    folds: Sequence[_Fold], weights: Sequence[Weights], masks: Masks, n_tokens: int
) -> tuple[Floats, Floats, Floats]:
    """Give the scores of all tokens, and the steps: exp of the mean weights of the folds."""
    unary = np.empty((n_tokens, weights[0].n_labels))
    for fold, own in zip(folds, weights, strict=True):
        found = potentials_of(fold.own, own, masks)
        unary[fold.own_tokens] = found.unary
    mean = Weights(
        weights[0].state[:0], *(np.mean([getattr(w, name) for w in weights], axis=0)
        for name in ("start", "step", "end")),
    )  # fmt: skip
    start, step, end = masks.exponentials(mean)
    return unary, np.vstack([start, step]), end


def _with_unary(shards: Sequence[Evidence], unary: Floats) -> list[Evidence]:
    """Add the words' scores; they also speak for items that nobody answered."""
    found, token = [], 0
    for shard in shards:
        every = np.ones_like(shard.active)
        own = unary[token : token + shard.n_tokens]
        found.append(replace(shard, unary=own, active=every))
        token += shard.n_tokens
    return found


def _tagger(
    numbers: FeatureMap, features: Features, probs: NDArray[np.float32], active: NDArray[np.bool_],
    masks: Masks, settings: Settings, given: Given, codec: Any, weights: Sequence[Any],
    given_documents: bool,
) -> CRF:  # fmt: skip
    """Train the CRF that the user keeps, on all items."""
    items = np.flatnonzero(active)
    every = features.select(items)
    crf = CRF(
        templates=[str(t) for t in settings.templates], encoding=codec.encoding, c2=settings.c2,
        min_count=settings.min_count, max_iter=LAST_STEPS,
    )  # fmt: skip
    crf.codec_, crf.features_ = codec, numbers
    crf.documents_ = given_documents
    offsets = features.offsets
    targets = _targets(every, items, numbers.n_features, probs, offsets, masks)
    start = CRF()
    start.codec_, start.features_ = codec, numbers
    mean = np.mean([one.vector for one in weights], axis=0)
    start.weights_ = Weights.of_vector(mean, numbers.n_features, len(codec.tags))
    return crf.fit_targets(every, targets, start=start, runner=given.runner)
