"""What `auto` tries on spans, and how that is fitted: votes, worker models alone and beside CRFs.

A `Case` is a crowd with all that its methods are fitted with. They are fitted to the answers that
are shown and judged by the hidden ones (`auto_judging`); those that were chosen are fitted again
with all answers (`fit_chosen`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import get_aggregator
from goldspan.aggregation.base import FitContext
from goldspan.aggregation.bsc.engine import EngineInputs
from goldspan.aggregation.bsc.evidence import Sums
from goldspan.aggregation.bsc.posterior import Posterior
from goldspan.aggregation.bsc.text import (
    INNER,
    STILL,
    SoftLabels,
    TextModel,
    TextScores,
    beside_text,
)
from goldspan.aggregation.dawid_skene import Variational
from goldspan.aggregation.documents import Missed, find_missed
from goldspan.aggregation.families import Families
from goldspan.aggregation.judge import Choice, Judge, Settings, weigh
from goldspan.aggregation.machines import ids_of
from goldspan.aggregation.mixture import Mixture, posterior_of_labels
from goldspan.aggregation.votes import TokenVote
from goldspan.crowd import Crowd
from goldspan.protocols import Runner

VOTES = {"votes, ties outside": "outside", "votes, ties inside": "inside"}
MODELS = ("mace", "ds", "bsc-mace", "bsc-cm", "bsc-seq", "bsc-cm+words", "bsc-seq+words")
BY_VOTES = frozenset({"bsc-cm", "bsc-seq", "bsc-cm+words", "bsc-seq+words"})
"""Whose workers begin with the habits that the vote shares show, where items have several answers:
few answers cannot say who misses how much, and two fixed numbers say that hardly anybody does."""
BESIDE_TEXT = ("bsc-mace", "bsc-cm", "bsc-seq")
"""Whose worker models are tried beside the CRF."""
POWERS = (0.5, 0.7, 1.0, 1.4)
"""Of the text, tried by the hidden answers."""
LEAST_TEACHING = 1.0
"""Least power of the text in labels that teach the next CRF: below, the CRFs learn from ever softer
labels and begin to see spans everywhere."""
DEPENDENCES = (0.1, 0.3)
ALIKE = 0.01
"""Share of the best one's loss within which settings predict about as well. The sharper ones then
teach: a CRF that learns from soft labels is less sure than it might be."""
ENOUGH = 500
"""Hidden labels inside of spans that judge well enough."""
LAST = 2
"""Updates of the workers at the settings of the result, after those at which CRFs learn."""


@dataclass(frozen=True, eq=False)
class Case:
    """A crowd, what is known of it, and the methods that suit it."""

    crowd: Crowd
    context: FitContext  # Known truth, legal, and where to work
    families: Families | None  # Workers who err together; None: everybody errs alone
    folds: TextModel | None  # Features of the words; None without text
    models: Sequence[str]  # The methods of the engine that are tried
    looks_for_missed: bool  # Whether spans are looked for that all workers of an item missed
    others: Crowd | None = None  # Answers of models, which teach nobody (`machines`)

    def suits(self, choice: Choice) -> bool:
        """Return whether all that was chosen can be fitted."""
        known = {*VOTES, *self.models}
        if self.folds is not None:
            known |= {self.beside_name(name) for name in choice.beside_text}
        names = {one.name for one in choice.chosen}
        return bool(names) and names <= known and choice.models == ids_of(self.others)

    def beside_name(self, name: str) -> str:
        """Return the name of a worker model beside the text model."""
        return f"{name}+{self.folds.name if self.folds else 'crf'}"

    def fit(self, name: str) -> Fit:
        """Fit a method of the engine with its defaults, but for the prior of `BY_VOTES`."""
        method = get_aggregator(name, families=self.families or "none")
        assert isinstance(method, Variational)
        if name in BY_VOTES and (np.diff(self.crowd.by_item.bounds) > 1).any():
            method.set_params(prior="votes")
        runner = self.context.runner
        own = FitContext(known=self.context.known, runner=runner)
        inputs, fit = method.fit_engine(self.crowd, own)
        posterior = Posterior(inputs.shards, fit.tables, inputs.crowd.tagset, runner)
        return Fit(inputs, fit.sums, fit.posterior, posterior)

    def votes(self) -> dict[str, Posterior]:
        """Return the votes by name."""
        found, known = {}, self.context.known
        for name, ties in VOTES.items():
            codes = (
                TokenVote(ties=ties, families=self.families or "none").fit(self.crowd).result_.codes
            )
            if known is not None:
                codes = np.where(known >= 0, known, codes)
            found[name] = posterior_of_labels(self.crowd, codes, self.context.runner, known)
        return found

    def learn(self, folds: TextModel, labels: SoftLabels, before: Learned | None = None) -> Learned:
        """Train CRFs by labels, or go on with training."""
        last: Sequence[Any | None] = before.models if before else [None] * folds.n_folds
        found = folds.train(labels, last, replace(self.context, progress=None))
        return Learned(found, folds.scores(found, labels))

    def missed(self, posterior: Posterior | Mixture) -> Missed | None:
        """Return what all workers of an item missed, if it is looked for."""
        return find_missed(self.crowd, posterior, self.families) if self.looks_for_missed else None

    def completed(self, posterior: Posterior) -> Posterior | Mixture:
        """Return a posterior with what all workers of an item missed."""
        missed = self.missed(posterior)
        return missed.beside(posterior) if missed else posterior


@dataclass(frozen=True, eq=False)
class Fit:
    """A method of the engine, fitted."""

    inputs: EngineInputs  # The crowd and its evidence
    sums: Sums  # The statistics of the last step
    memory: Any
    posterior: Posterior

    @property
    def is_chain(self) -> bool:
        """Whether the truth is a chain, which a CRF can learn from."""
        return self.inputs.model.truth.is_chain


@dataclass(frozen=True, eq=False)
class Beside:
    """A worker model beside a CRF."""

    inputs: EngineInputs  # The crowd and its evidence
    sums: Sums  # The statistics of the last step
    memory: Any
    # Power of the text and dependence of the workers, for labels that teach a CRF
    teaching: Settings = (1.0, 0.1)
    settings: Settings = (1.0, 0.1)  # The same for the labels of the result
    lesson: Any = None  # Posterior of the labels that teach a CRF, None before the first update
    posterior: Any = None

    @classmethod
    def of(cls, fit: Fit, *settings: Settings) -> Beside:
        """Begin with a fit without text, and with settings or the defaults."""
        return cls(fit.inputs, fit.sums, fit.memory, *settings)

    def updated(self, text: TextScores, runner: Runner) -> Beside:
        """Update workers and labels beside what the text says."""
        taught = self.stepped(self.teaching, text, runner, INNER)
        own = taught
        if self.settings != self.teaching:
            own = taught.stepped(self.settings, text, runner, LAST)
        return replace(taught, lesson=taught.posterior, posterior=own.posterior)

    def fitted(self, text: TextScores, judge: Judge, runner: Runner) -> Beside:
        """Choose the settings by the hidden answers, then update."""
        # Hidden answers hardly tell them apart
        if not len(judge):
            return self.updated(text, runner)
        tried = [(power, dependence) for power in POWERS for dependence in DEPENDENCES]
        found = [
            judge.judge(probs_of(self.stepped(settings, text, runner, 1).posterior))
            for settings in tried
        ]
        weights = weigh([one.likelihood for one in found], judge.item, np.ones(len(tried)))
        sharp = _sharpest(tried, [one.score for one in found])
        both = [mean_settings(tried, weights), sharp]
        settings = mean_settings(both, np.array([ENOUGH, judge.n_inside]))
        return replace(self, teaching=sharp, settings=settings).updated(text, runner)

    def stepped(self, settings: Settings, text: TextScores, runner: Runner, updates: int) -> Beside:
        """Update workers and labels so often beside the text at some settings."""
        power, dependence = settings
        inputs = replace(self.inputs, dependence=dependence)
        scores = text.raised(power)
        found = beside_text(inputs, self.sums, self.memory, scores, runner, updates)
        posterior = Posterior(found.shards, found.tables, inputs.crowd.tagset, runner)
        return replace(self, sums=found.sums, memory=found.posterior, posterior=posterior)


@dataclass(frozen=True, eq=False)
class Learned:
    """Cross-fitted text models."""

    models: Sequence[Any]
    text: TextScores  # What they say of the items


def _sharpest(tried: Sequence[Settings], scores: Sequence[float]) -> Settings:
    """Return the sharpest settings that predict about as well as the best, and may teach.

    >>> _sharpest([(0.5, 0.1), (1.0, 0.1), (1.4, 0.1)], [-0.100, -0.1009, -0.102])
    (1.0, 0.1)
    """
    may = [n for n, (power, _) in enumerate(tried) if power >= LEAST_TEACHING]
    alike = [n for n in may if scores[n] >= (1 + ALIKE) * max(scores)]
    return max(tried[n] for n in alike) if alike else tried[max(may, key=lambda n: scores[n])]


def mean_settings(
    settings: Sequence[Settings], weights: NDArray[np.float64] | None = None
) -> Settings:
    """Return the geometric mean of powers, and the mean of dependences."""
    powers, dependences = np.array(settings, np.float64).T
    power = np.exp(np.average(np.log(powers), weights=weights))
    return float(power), float(np.average(dependences, weights=weights))


def probs_of(posterior: Posterior) -> NDArray[np.float32]:
    """Return the probabilities of the labels, float32 [n_tokens, J]."""
    return posterior.marginals(np.inf).probs


# --------------------------------------------------------------------------------------------------
# The result: what was chosen, fitted with all answers.


def fit_chosen(
    case: Case, choice: Choice, learned: Learned | None, rounds: int, progress: Steps
) -> dict[str, Posterior]:
    """Fit the candidates that are part of the result with all answers."""
    names = {one.name for one in choice.chosen}
    beside_text = [name for name in BESIDE_TEXT if case.beside_name(name) in names]
    if beside_text:
        beside_text = sorted({*beside_text, choice.teacher})
    fits = {name: case.fit(name) for name in case.models if name in {*names, *beside_text}}
    found = {name: fit.posterior for name, fit in fits.items()}
    found |= {name: one for name, one in case.votes().items() if name in names}
    folds, runner = case.folds, case.context.runner
    if not beside_text or folds is None:
        return found
    if learned is None:
        learned = case.learn(folds, folds.soft_labels(fits[choice.teacher].posterior))
    beside = {name: Beside.of(fits[name], *choice.beside_text[name]) for name in beside_text}
    before: NDArray[np.float32] | None = None
    for number in range(rounds):
        beside = {name: one.updated(learned.text, runner) for name, one in beside.items()}
        progress.tell(progress.scores[-1])
        labels = folds.soft_labels(case.completed(beside[choice.teacher].lesson))
        moved = np.inf if before is None else np.abs(labels.probs - before).sum(axis=1).mean()
        if moved / 2 < STILL or number == rounds - 1:
            break
        before = labels.probs
        learned = case.learn(folds, labels, learned)
    return found | {case.beside_name(name): one.posterior for name, one in beside.items()}


class Steps:
    """Tells of every step."""

    def __init__(self, context: FitContext, total: int) -> None:
        self.context, self.total, self.scores = context, total, [0.0]
        self.begin = time.perf_counter()

    def tell(self, score: float) -> None:
        """Tell that a step is done."""
        self.scores.append(score)
        done = min(len(self.scores) - 1, self.total)
        if self.context.progress:
            left = (self.total / done - 1) * (time.perf_counter() - self.begin)
            self.context.progress(done, self.total, score, left)
