"""The method that a user need not think about: candidates, a judge without gold, and a mixture.

Single labels are the matter of `auto_labels`.

For spans:

1. Workers who err together are found (`families`), and some answers are hidden (`judge`). Votes,
   Dawid-Skene's family and BSC with every worker model, with and without words, are fitted on the
   rest and judged by the hidden answers.
2. A cross-fitted CRF learns from the labels of the best of them, and is worth as much beside the
   workers as the hidden answers say: for every worker model the power of the text and the
   dependence of the workers are means of those tried, weighted by how well they predict the hidden
   answers. Its labels teach the next CRF, as long as the hidden answers are predicted better.
3. All are fitted again with all answers. The labels are those of their mixture, weighted by how
   well they predict, with the largest expected F1; the confidences are those of the mixture at the
   temperatures that make the hidden answers likeliest.

Nothing else is tuned: what is learned about a crowd is learned from its answers (docs/math.md,
sections 12 and 13).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import get_aggregator
from goldspan.aggregation.auto_labels import combine_labels
from goldspan.aggregation.base import Aggregator, FitContext
from goldspan.aggregation.bsc.engine import EngineInputs
from goldspan.aggregation.bsc.evidence import Sums
from goldspan.aggregation.bsc.family import Variational
from goldspan.aggregation.bsc.posterior import Posterior, consensus_of
from goldspan.aggregation.bsc.text import (
    FIRST_STEPS,
    INNER,
    NEXT_STEPS,
    STILL,
    Folds,
    Settings,
    SoftLabels,
    TextScores,
    beside_text,
)
from goldspan.aggregation.calibration import with_confidences_of
from goldspan.aggregation.consensus import Consensus
from goldspan.aggregation.documents import DOCUMENTS, Missed, find_missed
from goldspan.aggregation.families import Families, check_families, families_for
from goldspan.aggregation.judge import (
    DOUBT,
    Candidate,
    Choice,
    Judge,
    Judged,
    error_of_mean,
    hold_out,
    how_sure,
    weigh,
)
from goldspan.aggregation.legal import has_words, legal_known, tokens_known
from goldspan.aggregation.mixture import Mixture, posterior_of_labels, posterior_of_probs
from goldspan.aggregation.votes import TokenVote
from goldspan.crowd import Crowd
from goldspan.params import MOST, Number, OneOf, Rounds, Seed, Whole, result
from goldspan.tagger.features import read_templates
from goldspan.tagger.parameters import Weights

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
"""Hidden labels inside of spans that judge well enough; smaller crowds are cut several times."""
MOST_CUTS = 5
ANCHOR = "votes, ties inside"
"""The result where nothing can be judged by. Workers miss spans more often than they invent some,
so a span that one of two workers gave is rather right than not."""
LAST = 2
"""Updates of the workers at the settings of the result, after those at which CRFs learn."""
UNSEEN = 2.0
"""Temperature where no answer can be hidden: workers share mistakes there as elsewhere, where the
hidden answers ask for 1.4 to 2.8."""
SETTLED = 0.002
"""Share of its loss by which a candidate must gain for another round."""
TEXTS = ("auto", "none")
OVERLAP = 0.1
"""Share of the items with answers of two workers below which a warning is due."""


class Auto(Aggregator):
    """The mixture of all methods that predicts hidden answers best.

    `update` and `start=` fit the methods that were chosen before and judge none, as long as the
    answers have not grown or shrunk by a quarter since all were judged.

    For single labels only `families` and `random_state` have an effect: their words are not read,
    there are no CRFs, and a fifth of the answers is hidden.

    Args:
        text: "auto" uses the words of the items where there are any; "none" the answers only.
        families: Workers who err together count as fewer. "auto" finds them by the answers, "none"
            does not look for any; or a CSV file with columns worker and family, or a mapping from
            worker ids to names.
        documents: "auto": places that nobody marked and that hold the words of a span of the same
            document are spans too, as far as the answers say that such places were missed; "none".
        share: Of the answers that is hidden to judge the candidates.
        templates: Feature templates of the CRF: a named set, a TOML file, or a list.
        c2: Penalty of the CRF's squared weights.
        min_count: Features that occur less often are left out.
        folds: Into how many parts documents are dealt, each scored by a CRF that never saw it.
        rounds: How often workers and CRFs are updated in turn, at most, before and after the
            hidden answers are shown.
        random_state: Seed of the choice of hidden answers and of the deal.

    >>> import goldspan
    >>> result = goldspan.aggregate("examples/crowd.tsv", "auto")
    >>> result.candidates[0].weight > 0
    True
    """

    name = "auto"
    can_go_on: ClassVar[bool] = True
    _choice: Choice | None = result()

    text: Annotated[str, OneOf(TEXTS)] = "auto"
    families: Annotated[Any, check_families] = "auto"
    documents: Annotated[str, OneOf(DOCUMENTS)] = "auto"
    share: Annotated[float, Number(0.01, 0.5)] = 0.15
    templates: str | Sequence[str] = "default"
    c2: Annotated[float, Number(0, MOST)] = 4.0
    min_count: Annotated[int, Whole(1)] = 2
    folds: Annotated[int, Whole(2)] = 5
    rounds: Rounds = 6
    random_state: Seed = 0

    def fit_chosen(self, crowd: Any, choice: Choice, gold: Any = None) -> Self:
        """Aggregate by methods that were chosen before, whatever the crowd has become.

        Where the choice does not suit the crowd – a CRF was chosen, and there are no words – all
        methods are judged.

        Args:
            crowd: As for `fit`.
            choice: `result_.memory` of an earlier fit.
            gold: As for `fit`.
        """
        self._choice = choice
        try:
            return self.fit(crowd, gold)
        finally:
            del self._choice

    def _aggregate(self, crowd: Crowd, given: FitContext) -> Consensus:
        choice, said = self._begun(crowd, given)
        found = (self._labels if crowd.is_classification else self._spans)(crowd, given, choice)
        notes = [*_known(given), *found.memory.reasons, *said]
        if given.checkpoint is not None:
            notes.append("auto makes no use of a checkpoint")
        if choice is not None and found.memory is choice:
            n_new = len(crowd.latest) - choice.n_answers
            now = f"; now there are {len(crowd.latest)}" if n_new else ""
            notes.append(f"judged when there were {choice.n_answers} answers{now}")
        elif choice is not None:
            notes.append("judged and fitted from the beginning: the earlier choice does not suit")
        kin = [found.families.note] if found.families else []
        is_found = self.families == "auto"  # of given families nobody need be warned
        notes += [*([] if is_found else kin), *found.notes]
        return replace(
            found,
            candidates=found.memory.candidates,
            stop_reason="candidates averaged",
            notes=(*notes, *_unanswered(crowd, found.codes, given)),
            cautions=(*(kin if is_found else []), *_overlap(crowd)),
        )

    def _begun(self, crowd: Crowd, given: FitContext) -> tuple[Choice | None, list[str]]:
        """Return the choice to go on from, if it holds, and what is to be said of it."""
        fixed = vars(self).get("_choice")
        if fixed is not None or given.start is None:
            return fixed, []
        choice, n_answers = given.start.memory, len(crowd.latest)
        if not isinstance(choice, Choice):
            why = f"fitted from the beginning: the earlier result is of {given.start.method}"
            return None, [why]
        if not choice.holds(n_answers):
            grown = f"{choice.n_answers} answers have become {n_answers}"
            return None, [f"judged and fitted from the beginning: {grown}"]
        return choice, []

    def _labels(self, crowd: Crowd, given: FitContext, choice: Choice | None) -> Consensus:
        """Aggregate single labels, without their words."""
        kin = families_for(self.families, crowd, given.known)
        kins = kin.opinions(crowd) if kin and self.families == "auto" else [kin]
        found = combine_labels(crowd, given, self.random_state or 0, kins, choice)
        posterior = posterior_of_probs(crowd, found.probs, given.runner)
        result = consensus_of(crowd, posterior, decode="viterbi", method=self.name)
        made = Choice(
            tuple(found.candidates), len(crowd.latest), found.reasons, is_bold=found.is_bold
        )
        is_same = choice is not None and made.candidates == choice.candidates
        kin = kins[0 if found.is_bold else -1]
        return replace(
            result,
            memory=choice if is_same else made,
            families=kin,
        )

    def _spans(self, crowd: Crowd, given: FitContext, choice: Choice | None) -> Consensus:
        """Aggregate tagged tokens."""
        if given.known is not None:
            given = replace(given, known=legal_known(given.known, crowd)[0])
        kin = families_for(self.families, crowd, given.known)
        folds = self._folds(crowd)
        learned: _Learned | None = None
        if choice is not None and self._suits(choice, folds):
            progress = _Steps(given, 1 + self.rounds)
            progress.tell(max(one.score for one in choice.chosen))
        else:
            progress = _Steps(given, 2 * (1 + self.rounds))
            choice, learned = self._choose(crowd, given, kin, folds, progress)
        parts = self._fitted(crowd, given, kin, choice, learned, folds, progress)
        chosen = choice.chosen
        shares = np.array([one.weight for one in chosen])
        sure = Mixture([parts[one.name] for one in chosen], shares, crowd.tagset)
        missed = self._missed(crowd, sure, kin)
        sure = missed.beside(sure) if missed else sure
        result = consensus_of(crowd, sure, decode="mbr", method=self.name, known=given.known)
        if any(one.temperature != 1 for one in chosen):
            cooled = [parts[one.name].cooled(one.temperature) for one in chosen]
            cool = Mixture(cooled, shares, crowd.tagset)
            result = with_confidences_of(result, missed.beside(cool) if missed else cool)
        return replace(
            result,
            trace=tuple(progress.scores[1:]),
            memory=choice,
            notes=(missed.note,) if missed else (),
            families=kin,
        )

    def _choose(
        self,
        crowd: Crowd,
        given: FitContext,
        kin: Families | None,
        folds: Folds | None,
        progress: _Steps,
    ) -> tuple[Choice, _Learned | None]:
        """Judge all candidates by hidden answers."""
        n_cuts = self._n_cuts(crowd)
        every = [self._cut(crowd, given, n, kin, folds, progress) for n in range(n_cuts)]
        cuts = [cut for cut in every if len(cut.items)] or every  # where nothing is hidden: nothing
        names = [name for name in cuts[0].judged if all(name in cut.judged for cut in cuts)]
        merged = {name: _joined([cut.judged[name] for cut in cuts]) for name in names}
        items = np.concatenate([cut.items for cut in cuts])
        weights = weigh([merged[name].likelihood for name in names], items, _prior(names))
        if len(items):
            weights = _anchored(names, weights, sum(cut.n_marked for cut in cuts))
        candidates = [
            Candidate(name, one.score, one.temperature if len(items) else UNSEEN, float(weight))
            for name, one, weight in zip(names, merged.values(), weights, strict=True)
        ]
        candidates.sort(key=lambda one: (-one.weight, -one.score))
        last = cuts[-1]
        choice = Choice(
            tuple(candidates),
            len(crowd.latest),
            tuple(_reasons(crowd, candidates, merged, items)),
            {
                name: (
                    _mean_settings([cut.beside[name].teaching for cut in cuts]),
                    _mean_settings([cut.beside[name].settings for cut in cuts]),
                )
                for name in last.beside
            },
            last.best,
        )
        return choice, last.learned

    def _suits(self, choice: Choice, folds: Folds | None) -> bool:
        """Return whether all that was chosen can be fitted."""
        known = {*VOTES, *self._models()}
        if folds is not None:
            known |= {f"{name}+crf" for name in choice.beside_text}
        names = {one.name for one in choice.chosen}
        return bool(names) and names <= known

    def _missed(
        self, crowd: Crowd, posterior: Posterior | Mixture, kin: Families | None
    ) -> Missed | None:
        """Return what all workers of an item missed, if it is looked for."""
        if "none" in (self.documents, self.text):
            return None
        return find_missed(crowd, posterior, kin)

    def _completed(
        self, crowd: Crowd, posterior: Posterior, kin: Families | None
    ) -> Posterior | Mixture:
        """Return a posterior with what all workers of an item missed."""
        missed = self._missed(crowd, posterior, kin)
        return missed.beside(posterior) if missed else posterior

    def _models(self) -> list[str]:
        """Return the methods of the engine that are tried."""
        return [name for name in MODELS if self.text == "auto" or "+words" not in name]

    def _n_cuts(self, crowd: Crowd) -> int:
        """Return how often answers are hidden: small crowds need more hidden labels to judge by."""
        codes = crowd.latest.codes
        inside = (codes >= 0) & (codes != crowd.tagset.outside)
        hidden = self.share * max(1, int(inside.sum()))
        return int(np.clip(np.ceil(ENOUGH / hidden), 1, MOST_CUTS))

    def _folds(self, crowd: Crowd) -> Folds | None:
        """Return the features of the words, None where there are none to learn from."""
        active = np.diff(crowd.by_item.bounds) > 0
        if self.text == "none" or not has_words(crowd) or active.sum() < 2:
            return None
        templates = read_templates(self.templates)
        settings = Settings(
            templates, self.c2, self.min_count, self.folds, self.rounds, 1.0, self.random_state,
            self.documents,
        )  # fmt: skip
        return Folds(crowd, active, settings)

    def _cut(
        self,
        crowd: Crowd,
        given: FitContext,
        number: int,
        kin: Families | None,
        folds: Folds | None,
        progress: _Steps,
    ) -> _Cut:
        """Hide some answers, and judge all candidates by them."""
        seed = number if self.random_state is None else self.random_state + number
        family = kin.number if kin else None
        shown, hidden = hold_out(crowd, share=self.share, family=family, seed=seed)
        judge = Judge(shown, hidden)
        fits = {name: _Fit.of(name, shown, given, kin) for name in self._models()}
        posteriors = {name: fit.posterior for name, fit in fits.items()}
        posteriors |= _votes(shown, given, kin)
        judged = {name: judge.judge(_probs(post)) for name, post in posteriors.items()}
        cut = _Cut(judged, judge.item, judge.n_marked)
        best = max((n for n in fits if fits[n].is_chain), key=lambda name: judged[name].score)
        progress.tell(judged[best].score)
        if folds is None:
            return cut
        labels = folds.soft_labels(fits[best].posterior)
        beside = {name: _Beside.of(fits[name]) for name in BESIDE_TEXT}
        weights: Sequence[Weights | None] = [None] * len(folds.parts)
        last = -np.inf
        for number_of_round in range(self.rounds):
            steps = NEXT_STEPS if number_of_round else FIRST_STEPS
            learned = _Learned.by(folds, labels, weights, steps, given)
            weights, text = learned.weights, learned.text
            beside = {name: one.fitted(text, judge, given) for name, one in beside.items()}
            found = {f"{name}+crf": judge.judge(_probs(b.posterior)) for name, b in beside.items()}
            best = max(beside, key=lambda name: found[f"{name}+crf"].score)
            score = found[f"{best}+crf"].score
            progress.tell(score)
            if score <= last:
                break
            has_settled, last = score - last < SETTLED * -score, score
            lesson = self._completed(shown, beside[best].lesson, kin)
            labels = folds.soft_labels(lesson)
            judged |= found
            cut = replace(cut, judged=judged, beside=dict(beside), best=best, learned=learned)
            if has_settled:
                break
        return cut

    def _fitted(
        self,
        crowd: Crowd,
        given: FitContext,
        kin: Families | None,
        choice: Choice,
        learned: _Learned | None,
        folds: Folds | None,
        progress: _Steps,
    ) -> dict[str, Posterior]:
        """Fit the candidates that are part of the result with all answers."""
        names = {one.name for one in choice.chosen}
        beside_text = [name for name in BESIDE_TEXT if f"{name}+crf" in names]
        if beside_text:
            beside_text = sorted({*beside_text, choice.teacher})
        fits = {
            n: _Fit.of(n, crowd, given, kin) for n in self._models() if n in {*names, *beside_text}
        }
        found = {name: fit.posterior for name, fit in fits.items()}
        found |= {name: one for name, one in _votes(crowd, given, kin).items() if name in names}
        if not beside_text or folds is None:
            return found
        if learned is None:
            labels = folds.soft_labels(fits[choice.teacher].posterior)
            learned = _Learned.by(folds, labels, [None] * len(folds.parts), FIRST_STEPS, given)
        beside = {n: _Beside.of(fits[n], *choice.beside_text[n]) for n in beside_text}
        before: NDArray[np.float32] | None = None
        for number in range(self.rounds):
            beside = {name: one.updated(learned.text, given) for name, one in beside.items()}
            progress.tell(progress.scores[-1])
            lesson = self._completed(crowd, beside[choice.teacher].lesson, kin)
            labels = folds.soft_labels(lesson)
            moved = np.inf if before is None else np.abs(labels.probs - before).sum(axis=1).mean()
            if moved / 2 < STILL or number == self.rounds - 1:
                break
            before = labels.probs
            learned = _Learned.by(folds, labels, learned.weights, NEXT_STEPS, given)
        return found | {f"{name}+crf": one.posterior for name, one in beside.items()}


# --------------------------------------------------------------------------------------------------
# The candidates: votes, worker models alone, and worker models beside the text.


@dataclass(frozen=True, eq=False)
class _Fit:
    """A method of the engine, fitted.

    Attributes:
        inputs: The crowd and its evidence.
        sums: The statistics of the last step.
        memory: The workers' posterior.
        posterior: Of the labels.
    """

    inputs: EngineInputs
    sums: Sums
    memory: Any
    posterior: Posterior

    @classmethod
    def of(cls, name: str, crowd: Crowd, given: FitContext, kin: Families | None) -> _Fit:
        """Fit a method with its defaults, but for the prior of `BY_VOTES`."""
        method = get_aggregator(name, families=kin or "none")
        assert isinstance(method, Variational)
        if name in BY_VOTES and (np.diff(crowd.by_item.bounds) > 1).any():
            method.set_params(prior="votes")
        own = FitContext(known=given.known, runner=given.runner)
        inputs, fit = method.fit_engine(crowd, own)
        posterior = Posterior(inputs.shards, fit.tables, inputs.crowd.tagset, given.runner)
        return cls(inputs, fit.sums, fit.posterior, posterior)

    @property
    def is_chain(self) -> bool:
        """Whether the truth is a chain, which a CRF can learn from."""
        return self.inputs.model.truth.is_chain


@dataclass(frozen=True, eq=False)
class _Beside:
    """A worker model beside a CRF.

    Attributes:
        inputs: The crowd and its evidence.
        sums: The statistics of the last step.
        memory: The workers' posterior.
        teaching: Power of the text and dependence of the workers, for labels that teach a CRF.
        settings: The same for the labels of the result.
        lesson: Posterior of the labels that teach a CRF, None before the first update.
        posterior: Of the labels.
    """

    inputs: EngineInputs
    sums: Sums
    memory: Any
    teaching: tuple[float, float] = (1.0, 0.1)
    settings: tuple[float, float] = (1.0, 0.1)
    lesson: Any = None
    posterior: Any = None

    @classmethod
    def of(cls, fit: _Fit, *settings: tuple[float, float]) -> _Beside:
        """Begin with a fit without text, and with settings or the defaults."""
        return cls(fit.inputs, fit.sums, fit.memory, *settings)

    def updated(self, text: TextScores, given: FitContext) -> _Beside:
        """Update workers and labels beside what the text says."""
        taught = self.stepped(self.teaching, text, given, INNER)
        own = taught
        if self.settings != self.teaching:
            own = taught.stepped(self.settings, text, given, LAST)
        return replace(taught, lesson=taught.posterior, posterior=own.posterior)

    def fitted(self, text: TextScores, judge: Judge, given: FitContext) -> _Beside:
        """Choose the settings by the hidden answers, then update.

        Hidden answers hardly tell them apart. A CRF is taught by the sharpest that predict about as
        well as the best. So is the result where many labels inside of spans were hidden; the fewer
        there are, the nearer it is to the mean of all that were tried, weighted like candidates.
        """
        if not len(judge):
            return self.updated(text, given)
        tried = [(power, dependence) for power in POWERS for dependence in DEPENDENCES]
        found = [
            judge.judge(_probs(self.stepped(settings, text, given, 1).posterior))
            for settings in tried
        ]
        weights = weigh([one.likelihood for one in found], judge.item, np.ones(len(tried)))
        sharp = _sharpest(tried, [one.score for one in found])
        both = [_mean_settings(tried, weights), sharp]
        settings = _mean_settings(both, np.array([ENOUGH, judge.n_inside]))
        return replace(self, teaching=sharp, settings=settings).updated(text, given)

    def stepped(
        self, settings: tuple[float, float], text: TextScores, given: FitContext, updates: int
    ) -> _Beside:
        """Update workers and labels so often beside the text at some settings."""
        power, dependence = settings
        inputs = replace(self.inputs, dependence=dependence)
        scores = text.raised(power)
        found = beside_text(inputs, self.sums, self.memory, scores, given.runner, updates)
        posterior = Posterior(found.shards, found.tables, inputs.crowd.tagset, given.runner)
        return replace(self, sums=found.sums, memory=found.posterior, posterior=posterior)


@dataclass(frozen=True, eq=False)
class _Cut:
    """What came of one choice of hidden answers.

    Attributes:
        judged: The candidates by name.
        items: int32 [n_hidden], the item of every hidden label.
        n_marked: How many of them are of tokens that anybody marked.
        beside: The worker models beside the text; none without text.
        best: The best of them.
        learned: The CRFs.
    """

    judged: dict[str, Judged]
    items: NDArray[np.int32]
    n_marked: int
    beside: Mapping[str, _Beside] = field(default_factory=dict)
    best: str = ""
    learned: _Learned | None = None


@dataclass(frozen=True, eq=False)
class _Learned:
    """Cross-fitted CRFs.

    Attributes:
        weights: Of every fold's CRF.
        text: What they say of the items.
    """

    weights: Sequence[Weights]
    text: TextScores

    @classmethod
    def by(
        cls,
        folds: Folds,
        labels: SoftLabels,
        weights: Sequence[Weights | None],
        steps: int,
        given: FitContext,
    ) -> _Learned:
        """Go on with training."""
        found = folds.train(labels, weights, steps, given.runner)
        return cls(found, folds.scores(found))


def _votes(crowd: Crowd, given: FitContext, kin: Families | None) -> dict[str, Posterior]:
    """Return the votes by name."""
    found = {}
    for name, ties in VOTES.items():
        codes = TokenVote(ties=ties, families=kin or "none").fit(crowd).result_.codes
        if given.known is not None:
            codes = np.where(given.known >= 0, given.known, codes)
        found[name] = posterior_of_labels(crowd, codes, given.runner, given.known)
    return found


def _sharpest(tried: Sequence[tuple[float, float]], scores: Sequence[float]) -> tuple[float, float]:
    """Return the sharpest settings that predict about as well as the best, and may teach.

    >>> _sharpest([(0.5, 0.1), (1.0, 0.1), (1.4, 0.1)], [-0.100, -0.1009, -0.102])
    (1.0, 0.1)
    """
    may = [n for n, (power, _) in enumerate(tried) if power >= LEAST_TEACHING]
    alike = [n for n in may if scores[n] >= (1 + ALIKE) * max(scores)]
    return max(tried[n] for n in alike) if alike else tried[max(may, key=lambda n: scores[n])]


def _mean_settings(
    settings: Sequence[tuple[float, float]], weights: NDArray[np.float64] | None = None
) -> tuple[float, float]:
    """Return the geometric mean of powers, and the mean of dependences."""
    powers, dependences = np.array(settings, np.float64).T
    power = np.exp(np.average(np.log(powers), weights=weights))
    return float(power), float(np.average(dependences, weights=weights))


def _probs(posterior: Posterior) -> NDArray[np.float32]:
    return posterior.marginals(np.inf).probs


def _joined(every: Sequence[Judged]) -> Judged:
    """Return what several choices of hidden answers say of a candidate together."""
    likelihood = np.concatenate([one.likelihood for one in every])
    temperature = float(np.exp(np.mean([np.log(one.temperature) for one in every])))
    score = float(np.log(likelihood).mean()) if len(likelihood) else 0.0
    return Judged(score, temperature, likelihood)


def _prior(names: Sequence[str]) -> NDArray[np.float64]:
    """Return the weights of the candidates before any answer was hidden.

    With a single answer per item workers cannot be compared: models that believe that a worker is
    mostly right stay near the answers, and the words say where they are wrong.
    """
    for group in (("bsc-mace+crf", "bsc-cm+crf"), (*VOTES, "bsc-mace")):
        if set(group) <= set(names):
            return np.array([float(name in group) for name in names]) / len(group)
    return np.full(len(names), 1 / len(names))


def _anchored(
    names: Sequence[str], weights: NDArray[np.float64], n_marked: int
) -> NDArray[np.float64]:
    """Give the anchor the weight that a judge of so few labels has not earned.

    >>> _anchored([ANCHOR, "ds"], np.array([0.2, 0.8]), 50).tolist()
    [0.6, 0.4]
    """
    trust = n_marked / (n_marked + DOUBT)
    anchor = np.array([float(name == ANCHOR) for name in names])
    return np.asarray((1 - trust) * anchor + trust * weights)


def _known(given: FitContext) -> list[str]:
    """Say how much known truth there is."""
    n_known = 0 if given.known is None else int((given.known >= 0).sum())
    return [f"{n_known} tokens of known truth"] if n_known else []


def _reasons(
    crowd: Crowd,
    candidates: Sequence[Candidate],
    merged: Mapping[str, Judged],
    items: NDArray[np.int32],
) -> list[str]:
    """Say how much better than votes the best of the others predicts."""
    if not len(items):
        who = "two workers"
        if (np.diff(crowd.by_item.bounds) > 1).any():  # all of one family
            who = "two workers who err independently"
        return [f"no item has answers of {who}: nothing could be judged, a prior decided"]
    first = next(one.name for one in candidates if one.name not in VOTES)
    votes = max(VOTES, key=lambda name: merged[name].score)
    ahead = np.log(merged[first].likelihood) - np.log(merged[votes].likelihood)
    place = np.unique(items, return_inverse=True)[1].ravel()
    return [how_sure(first, float(ahead.mean()), error_of_mean(ahead, place), len(items))]


def _unanswered(crowd: Crowd, codes: NDArray[np.int16], given: FitContext) -> list[str]:
    """Say what became of the items that nobody answered and of which nothing is known."""
    is_alone = (np.diff(crowd.by_item.bounds) == 0) & (np.diff(crowd.offsets) > 0)
    if given.known is not None:
        is_alone &= tokens_known(given.known, crowd) == 0
    is_open = np.ones(crowd.n_items, np.bool_)
    is_open[np.repeat(np.arange(crowd.n_items), np.diff(crowd.offsets))[codes >= 0]] = False
    n_open, n_by_words = int((is_alone & is_open).sum()), int((is_alone & ~is_open).sum())
    said = [f"{n_open} items without answers are left open"] if n_open else []
    if n_by_words:
        said.append(f"{n_by_words} items without answers are labelled by their words alone")
    return said


def _overlap(crowd: Crowd) -> list[str]:
    """Warn where hardly any item has answers of two workers."""
    n_answers = np.diff(crowd.by_item.bounds)
    n_items, n_shared = int((n_answers > 0).sum()), int((n_answers > 1).sum())
    if n_shared >= OVERLAP * n_items:
        return []
    few = f"{n_shared} of {n_items} items have answers of two workers"
    return [f"{few}: which method and whom to believe rests on these; have more answered twice"]


class _Steps:
    """Tells of every step."""

    def __init__(self, given: FitContext, total: int) -> None:
        self.given, self.total, self.scores = given, total, [0.0]
        self.begin = time.perf_counter()

    def tell(self, score: float) -> None:
        """Tell that a step is done."""
        self.scores.append(score)
        done = min(len(self.scores) - 1, self.total)
        if self.given.progress:
            left = (self.total / done - 1) * (time.perf_counter() - self.begin)
            self.given.progress(done, self.total, score, left)
