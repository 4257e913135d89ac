"""Cross-fitted text models, the CRF first, and how much workers' mistakes depend on each other."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._arrays import rows_of
from goldspan.aggregation.base import FitContext, check_words, text_of
from goldspan.aggregation.bsc.engine import EngineInputs, Fit, e_step
from goldspan.aggregation.bsc.evidence import Evidence, Sums, Tables, discounted
from goldspan.aggregation.bsc.posterior import Marginals, Posterior
from goldspan.aggregation.documents import Missed, find_missed
from goldspan.aggregation.mixture import Mixture
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.protocols import Runner, Serial
from goldspan.tagger.base import Tagger, potentials_of
from goldspan.tagger.crf import CRF, Masks, Point, Targets, go_on
from goldspan.tagger.features import FeatureMap, Features, Merged, Template, read_templates
from goldspan.tagger.kernels import Weights

# --------------------------------------------------------------------------------------------------
# How much workers share their mistakes, measured.


HIDDEN = 6.0
"""How many times larger the dependence is than what can be observed.

The truth is inferred from the same labels, which takes shared mistakes for the truth. On the NER
crowd of Rodrigues et al. 2013, 0.16 is observed against gold and 0.04 against the inferred labels,
and 0.25 was best on the val half; on the example crowd, whose workers are independent, it is 0.003.
"""
MOST = 0.5
CAUTION = 200.0
"""Pairs of labels that are believed to have been independent."""


def measure_dependence(crowd: Crowd, probs: NDArray[np.floating]) -> float:
    """Estimate the correlation of the workers' mistakes, 0 to `MOST`."""
    # probs float [n_tokens, J]
    return float(np.clip(HIDDEN * seen_dependence(crowd, probs), 0.0, MOST))


def seen_dependence(crowd: Crowd, probs: NDArray[np.floating]) -> float:
    """Return the correlation of the workers' mistakes against given labels."""
    # probs float [n_tokens, J]
    given = crowd.latest.codes
    token, worker = crowd.token_of, crowd.worker_of
    truth, weight = probs.argmax(axis=1), probs.max(axis=1).astype(np.float64)
    if not crowd.tagset.rules.is_plain:
        weight[truth == crowd.tagset.outside] = 0.0
    asked = np.flatnonzero(given >= 0)
    token, worker = token[asked], worker[asked]
    wrong = (given[asked] != truth[token]).astype(np.float64)
    kind = worker.astype(np.int64) * probs.shape[1] + truth[token]
    right_too = np.bincount(kind, weight[token])
    rate = ((np.bincount(kind, weight[token] * wrong) + 0.5) / (right_too + 1))[kind]
    scaled = (wrong - rate) / np.sqrt(rate * (1 - rate))
    size = len(probs)
    both = np.bincount(token, scaled, size) ** 2 - np.bincount(token, scaled**2, size)
    n = np.bincount(token, minlength=size)
    return float((weight @ both) / (weight @ (n * (n - 1.0)) + CAUTION))


# --------------------------------------------------------------------------------------------------
# Cross-fitted text models: documents are dealt into folds, each scored by a model of the others.


Floats = NDArray[np.float64]
FIRST_STEPS, NEXT_STEPS = 16, 6
"""Steps of L-BFGS in the first round and in later ones; without a scale it would take 30 and 12."""
LAST_STEPS, LAST_TOL = 100, 1e-3
"""Most steps of L-BFGS for the tagger that is kept, and the decrease at which it stops earlier."""
SHARPER, LOOSER = 2.0, 0.25
"""For that tagger labels are raised to a power and the penalty is smaller: it need not leave room
for other evidence. Chosen on CoNLL's testa (76.1 to 76.7 span F1)."""


@dataclass(frozen=True)
class Settings:
    """How the CRFs are trained."""

    templates: Sequence[Template]  # What features there are
    c2: float  # Penalty of the squared weights
    min_count: int  # Rarer features are left out
    folds: int
    rounds: int
    power: float  # Of the text beside the workers
    seed: int | None
    documents: str  # "auto": words of a span may be one elsewhere in the document; or "none"
    vectors: str | None = None  # A frozen encoder whose vectors of words are features, too
    encoder: str | None = None  # The encoder that is fine-tuned in the place of a CRF
    encoder_params: Any = None

    @classmethod
    def of(cls, m: Any) -> Settings:
        """Take them from an aggregator's parameters."""
        templates = read_templates(m.templates)
        numbers = (m.c2, m.min_count, m.folds, m.rounds, m.text_power, m.random_state)
        return cls(templates, *numbers, m.documents, m.vectors, m.encoder, m.encoder_params)


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of the text model."""

    unary: Floats  # [n_tokens, J], log scores
    truth: Floats  # [J + 1, J], exp of the scores of the first tag and of every step
    end: Floats  # [J], exp of the scores of the last tag


@dataclass(frozen=True, eq=False)
class TextScores:
    """What cross-fitted CRFs say of all tokens, before it is raised to a power."""

    unary: Floats  # [n_tokens, J], log scores
    weights: Weights  # Those of first labels, steps and last labels
    masks: Masks

    def raised(self, power: float) -> Scores:
        """Raise all of it to a power."""
        weights = self.weights
        ends = (power * w for w in (weights.start, weights.step, weights.end))
        start, step, end = self.masks.exponentials(Weights(weights.state, *ends))
        return Scores(power * self.unary, np.vstack([start, step]), end)


@dataclass(frozen=True, eq=False)
class SoftLabels:
    """What the items are believed to be: the marginals of a posterior chain.

    A CRF needs the expected steps, too: taking neighbours as independent tells it that a long span
    of which one is not sure begins and ends at every token, and it then marks whole documents.
    """

    probs: NDArray[np.float32]  # [n_tokens, J]
    steps: Floats  # [n_folds, J, J], expected steps between labels, summed over a fold's items


class TextModel(ABC):
    """What says of the words of a crowd which tags they have, cross-fitted.

    Documents are dealt into folds. A subclass fits a model on the soft labels of all other folds
    (`train`), and its log-potentials for the items of the fold are what it says (`scores`).
    """

    name: ClassVar[str]  # What stands behind the plus in the name of a method
    is_slow: ClassVar[bool] = False  # Whether `train` itself tells of its progress

    def __init__(self, crowd: Crowd, active: NDArray[np.bool_], settings: Settings) -> None:
        check_words(crowd)
        self.fold = deal(crowd, settings.folds, settings.seed, active)
        self.n_folds = int(self.fold.max()) + 1
        self.text = text_of(crowd)
        self.settings, self.crowd, self.active = settings, crowd, active
        self.masks = Masks.of(crowd.tagset, hard=True)

    @abstractmethod
    def train(
        self, labels: SoftLabels, before: Sequence[Any | None], context: FitContext
    ) -> list[Any]:
        """Train the model of every fold on the soft labels of the others."""

    @abstractmethod
    def scores(self, learned: Sequence[Any], labels: SoftLabels) -> TextScores:
        """Score all tokens, each by the model that never saw it."""

    @abstractmethod
    def tagger(self, labels: SoftLabels, learned: Sequence[Any], context: FitContext) -> Tagger:
        """Train the tagger that the user keeps on all items."""

    @abstractmethod
    def untrained(self, learned: Sequence[Any]) -> Tagger:
        """Return a tagger of what the folds have learned, after Ctrl-C."""

    def soft_labels(
        self, posterior: Posterior | Mixture, last: Marginals | None = None
    ) -> SoftLabels:
        """Return what the items are believed to be: marginals of tokens, and steps by fold."""
        if isinstance(posterior, Mixture):
            first, *others = posterior.parts
            parts = [self.soft_labels(first, last), *map(self.soft_labels, others)]
            weighted = list(zip(posterior.weights, parts, strict=True))
            probs = sum((np.float32(w) * part.probs for w, part in weighted), np.float32(0))
            return SoftLabels(np.asarray(probs), sum(w * part.steps for w, part in weighted))
        shards, tables, runner = posterior.shards, posterior.tables, posterior.runner
        probs = (last or posterior.marginals(np.inf)).probs
        steps = np.stack(
            [
                runner.map_reduce(e_step, self._of_fold(shards, k), tables, Sums.add).truth[1:]
                for k in range(self.n_folds)
            ]
        )
        return SoftLabels(probs, steps)

    def _of_fold(self, shards: Sequence[Evidence], k: int) -> list[Evidence]:
        """Return the evidence with only the items of a fold that teach."""
        found, first = [], 0
        for shard in shards:
            last = first + len(shard.active)
            own = self.active[first:last] & (self.fold[first:last] == k)
            found.append(replace(shard, active=own))
            first = last
        return found


class Folds(TextModel):
    """The cross-fitted CRFs: the features of a crowd's words, dealt into folds."""

    name = "crf"

    def __init__(self, crowd: Crowd, active: NDArray[np.bool_], settings: Settings) -> None:
        super().__init__(crowd, active, settings)
        self.numbers, self.features = FeatureMap.fit(
            self.text, settings.templates, min_count=settings.min_count, vectors=settings.vectors
        )
        size = self.numbers.n_features
        self.parts = [_Part(self.features, self.fold, k, active, size) for k in range(self.n_folds)]

    def train(
        self, labels: SoftLabels, before: Sequence[FoldCRF | None], context: FitContext
    ) -> list[FoldCRF]:
        """Train the CRF of every fold: many steps at first, fewer from the weights that were."""
        others = labels.steps.sum(axis=0) - labels.steps
        jobs = list(zip(self.parts, before, others, strict=True))
        return context.runner.map(_train, jobs, (self, labels.probs))

    def scores(self, learned: Sequence[FoldCRF], labels: SoftLabels) -> TextScores:
        """Score all tokens; steps have the mean weights of the folds, by the tokens they score."""
        # The weights of steps are right beside the words' weights that they were learned with
        del labels
        unary = np.empty((self.crowd.n_tokens, len(self.masks.start)))
        for part, own in zip(self.parts, learned, strict=True):
            unary[part.own_tokens] = potentials_of(part.own, own.weights, self.masks).unary
        sizes = [len(part.own_tokens) for part in self.parts]
        return TextScores(unary, _mean(learned, sizes), self.masks)

    def tagger(self, labels: SoftLabels, learned: Sequence[FoldCRF], context: FitContext) -> CRF:
        """Train the CRF that the user keeps on all items, from the mean of the folds'."""
        start, crf = self.untrained(learned), self.untrained(learned)
        items = np.flatnonzero(self.active)
        every = self.features.select(items)
        probs = self.probs_of(items, labels.probs)
        targets = Targets.of_marginals(
            every, self.numbers.n_features, probs, labels.steps.sum(axis=0), np.ones(len(items))
        )
        return crf.fit_targets(every, targets, start=start, runner=context.runner)

    def untrained(self, learned: Sequence[FoldCRF]) -> CRF:
        """Return a CRF with the mean weights of the folds."""
        settings, codec = self.settings, self.crowd.tagset
        crf = CRF(
            templates=[str(t) for t in settings.templates], encoding=codec.encoding,
            c2=LOOSER * settings.c2, min_count=settings.min_count, vectors=settings.vectors,
            max_iter=LAST_STEPS, tol=LAST_TOL,
        )  # fmt: skip
        crf.codec_, crf.features_, crf.documents_ = codec, self.numbers, self.text.group is not None
        crf.weights_, crf.trace_ = _mean(learned), ()
        crf.converged_, crf.stop_reason_ = False, "interrupted"
        return crf

    def probs_of(self, items: NDArray[np.int64], probs: NDArray[np.float32]) -> Floats:
        """Return the marginals of the tokens of some items, float64."""
        return probs[rows_of(self.features.offsets, items)[1]].astype(np.float64)


class FoldCRF(NamedTuple):
    """The CRF of a fold."""

    weights: Weights
    point: Point  # Where its search stopped


class _Part:
    """The features of a fold's own items, and merged those of all others, which train its CRF."""

    def __init__(
        self, features: Features, fold: NDArray[np.int64], k: int, active: NDArray[np.bool_],
        n_features: int,
    ) -> None:  # fmt: skip
        own = np.flatnonzero(fold == k)
        self.own, self.own_tokens = features.select(own), rows_of(features.offsets, own)[1]
        self.items = np.flatnonzero((fold != k) & active)
        self.merged = Merged.of(features.select(self.items), n_features)


def _train(
    job: tuple[_Part, FoldCRF | None, Floats], params: tuple[Folds, NDArray[np.float32]]
) -> FoldCRF:
    (part, before, steps), (folds, probs) = job, params
    merged, own = part.merged, folds.probs_of(part.items, probs)
    targets = Targets.of_merged(merged, own, steps, np.ones(len(part.items)))
    point = go_on(
        merged, targets, folds.masks, before.point if before else None, c2=folds.settings.c2,
        runner=Serial(), steps=NEXT_STEPS if before else FIRST_STEPS,
    )  # fmt: skip
    return FoldCRF(merged.split(point.weights, own.shape[1]), point)


def deal(
    crowd: Crowd, folds: int, seed: int | None, active: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Deal documents into folds of about equal number; a single document by its items."""
    # active bool [n_items]; returns int64 [n_items], the fold of every item
    document = _ranks(crowd.item_ids if crowd.documents is None else crowd.documents)
    teaches = np.ones(crowd.n_items, np.bool_) if active is None else active
    if len(np.unique(document[teaches])) < 2:
        document = _ranks(crowd.item_ids)
    teachers = np.unique(document[teaches])
    if len(teachers) < 2:
        raise InputError(
            "a CRF inside needs two items with answers at least: one to learn from, one to label"
        )
    place = np.full(int(document.max()) + 1, -1)
    place[teachers] = np.random.default_rng(seed).permutation(len(teachers))
    others = np.flatnonzero(place < 0)
    place[others] = len(teachers) + np.arange(len(others))
    return np.asarray(place[document] % min(folds, len(teachers)), np.int64)


def _ranks(names: pa.Array) -> NDArray[np.int64]:
    """Number names in their order, whatever the order of the items."""
    words = np.asarray(names.to_pylist(), object).astype(str)
    return np.unique(words, return_inverse=True)[1].ravel()


def _mean(learned: Sequence[FoldCRF], sizes: Sequence[int] | None = None) -> Weights:
    names = ("state", "start", "step", "end")
    every = ([getattr(one.weights, name) for one in learned] for name in names)
    return Weights(*(np.average(values, axis=0, weights=sizes) for values in every))


# --------------------------------------------------------------------------------------------------
# BSC with a CRF as text model (docs/math.md, section 6; our own method).


INNER = 3
"""Updates of the workers for every update of the CRFs."""
STILL = 0.002
"""Mean change of a token's probabilities below which it has converged."""


@dataclass(frozen=True, eq=False)
class Round:
    """Where a round ended."""

    learned: Sequence[Any]
    text: TextScores
    beside: Beside
    labels: SoftLabels
    missed: Missed | None
    moved: float  # Mean change of a token's probabilities


def rounds(
    inputs: EngineInputs, fit: Fit, first: Posterior | None, folds: TextModel, context: FitContext
) -> Iterator[Round]:
    """Go on from a fit without text, text models and workers in turn, until labels stay."""
    codec, runner = inputs.crowd.tagset, context.runner
    labels = folds.soft_labels(first or Posterior(inputs.shards, fit.tables, codec, runner))
    learned: Sequence[Any] = [None] * folds.n_folds
    beside = Beside(_discounted(inputs), fit.sums, fit.posterior, fit.tables)
    for _ in range(folds.settings.rounds):
        learned = folds.train(labels, learned, context)
        text = folds.scores(learned, labels)
        scores = text.raised(folds.settings.power)
        beside = beside_text(inputs, beside.sums, beside.posterior, scores, runner)
        now, missed, marginals = Posterior(beside.shards, beside.tables, codec, runner), None, None
        if folds.settings.documents == "auto":
            marginals = now.marginals()
            missed = find_missed(inputs.crowd, now, inputs.families, marginals)
        before = labels.probs
        labels = folds.soft_labels(missed.beside(now) if missed else now, marginals)
        moved = float(np.abs(labels.probs - before).sum(axis=1).mean() / 2)
        yield Round(learned, text, beside, labels, missed, moved)
        if moved < STILL:
            break


def refine(
    inputs: EngineInputs, fit: Fit, first: Posterior | None, folds: TextModel, context: FitContext
) -> tuple[Sequence[Evidence], Fit, Missed | None, Tagger]:
    """Go on from a fit without text; Ctrl-C after the first round returns what there is."""
    # returns the evidence with the text's scores, the fit, what all missed, and a tagger
    codec, runner, n_rounds = inputs.crowd.tagset, context.runner, folds.settings.rounds
    trace: list[float] = []
    begin = time.perf_counter()
    try:
        for last in rounds(inputs, fit, first, folds, context):
            trace.append(last.beside.sums.log_z)
            if context.progress and not folds.is_slow:
                left = (n_rounds / len(trace) - 1) * (time.perf_counter() - begin)
                context.progress(len(trace), n_rounds, trace[-1], left)
        reason = "labels have converged" if last.moved < STILL else "rounds"
        shards, _, _, tables = last.beside
        logs = SHARPER * tables.log_table
        raised = Tables(logs, np.exp(logs), tables.truth**SHARPER, tables.end**SHARPER)
        shards = [replace(shard, unary=SHARPER * shard.unary) for shard in shards]
        sharp = Posterior(shards, raised, codec, runner)
        sure = folds.soft_labels(last.missed.beside(sharp) if last.missed else sharp)
        tagger = folds.tagger(sure, last.learned, context)
    except KeyboardInterrupt:
        if not trace:
            raise
        reason, tagger = "interrupted", folds.untrained(last.learned)
    converged = reason == "labels have converged"
    shards, sums, posterior, tables = last.beside
    found = Fit(sums, posterior, tables, tuple(trace), converged, reason)
    return shards, found, last.missed, tagger


class Beside(NamedTuple):
    """Workers and labels after some updates beside the text."""

    shards: list[Evidence]
    sums: Sums
    posterior: Any
    tables: Tables


def beside_text(
    inputs: EngineInputs, sums: Sums, posterior: Any, scores: Scores, runner: Runner
) -> Beside:
    """Update the workers and the labels a few times beside what the text says."""
    shards = _with_unary(_discounted(inputs), scores.unary)
    for _ in range(INNER):
        posterior, made, _ = inputs.model.update(sums, posterior, runner)
        tables = replace(made, truth=scores.truth, end=scores.end)
        sums = runner.map_reduce(e_step, shards, tables, Sums.add)
    return Beside(shards, sums, posterior, tables)


def with_tagger(
    inputs: EngineInputs, tables: Tables, tagger: Tagger, power: float
) -> tuple[list[Evidence], Tables]:
    """Add the scores of a trained tagger to new items, which it never saw."""
    found = tagger.log_potentials(text_of(inputs.crowd))
    start, step, end = (np.exp(power * part) for part in (found.start, found.step, found.end))
    unary = power * found.unary
    return _with_unary(_discounted(inputs), unary), replace(
        tables, truth=np.vstack([start, step]), end=end
    )


def _discounted(inputs: EngineInputs) -> list[Evidence]:
    n_rows = len(inputs.model.rows)
    return [discounted(shard, n_rows, inputs.dependence) for shard in inputs.shards]


def _with_unary(shards: Sequence[Evidence], unary: Floats) -> list[Evidence]:
    """Add the text scores; they are evidence also for items that nobody answered."""
    found, token = [], 0
    for shard in shards:
        own = unary[token : token + shard.n_tokens]
        found.append(replace(shard, unary=own, active=np.ones_like(shard.active)))
        token += shard.n_tokens
    return found
