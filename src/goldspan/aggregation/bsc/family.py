"""The BSC family: one estimator for every worker model, with or without memory, words and a CRF."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation.base import Aggregator, FitContext, as_crowd, legal_known
from goldspan.aggregation.bsc.engine import (
    EngineInputs,
    Fit,
    Model,
    RunContext,
    Stopping,
    Truth,
    Vocabulary,
    best_start,
    cut,
    from_votes,
    interrupted,
    is_interrupted,
    run,
    settle,
)
from goldspan.aggregation.bsc.evidence import (
    PREVIOUS,
    Sums,
    compress,
    lay_out,
    previous_mask,
    weighed,
    without_forbidden,
)
from goldspan.aggregation.bsc.posterior import Posterior, consensus_of
from goldspan.aggregation.bsc.priors import (
    GRID,
    HABITS,
    PRIORS,
    Decoder,
    Memory,
    best_of_grid,
    given_prior,
    population_prior,
    trusted_ids,
)
from goldspan.aggregation.consensus import Consensus
from goldspan.aggregation.documents import DOCUMENTS, Missed
from goldspan.aggregation.families import check_families, families_for
from goldspan.aggregation.mixture import Mixture
from goldspan.aggregation.workermodels import (
    LEAST,
    LEAST_FORBIDDEN,
    WorkerModel,
    get_worker_model,
)
from goldspan.crowd import Crowd
from goldspan.crowd.labels import recode, translate
from goldspan.errors import InputError, NotFittedError
from goldspan.params import MOST, Number, OneOf, Rounds, Seed, Tolerance, Whole
from goldspan.spans import Codec

if TYPE_CHECKING:
    from goldspan.aggregation.bsc.text import TextModel

# --------------------------------------------------------------------------------------------------
# What the engine's aggregators share: their parameters, and the way from a crowd to a result.


__all__ = ["GRID", "Variational"]  # the studies tune over the grid

TEXT_MODELS = ("crf", "encoder")
"""What follows the plus of a method with a cross-fitted text model."""
ZERO = "zero"
"""The value of `forbidden` with which labels that the encoding forbids do not count."""


def check_encoder_params(value: Any) -> None:
    """Reject what holds no parameters."""
    if value is not None and not isinstance(value, str | Mapping):
        raise InputError(f"encoder_params must be a mapping or a string, not {value!r}")


class Variational(Aggregator):
    """Base of the aggregators that run the engine; subclasses set the class attributes.

    Args:
        alpha0: Pseudo-count of every label for every truth (the `off` of `Prior`).
        epsilon0: Pseudo-count of the right label beyond it (the `bonus`).
        prior: "given" takes both as they are; "auto" the pair of a small grid with the largest
            evidence bound; "population" adds the mean worker's habits times `epsilon0`: for sparse
            workers and calibration; "votes" the same habits as the vote shares show them, before
            anything is fitted: where answers or items are few.
        forbidden: Pseudo-count of what the encoding forbids after the worker's previous label;
            "zero" as in Simpson and Gurevych (2019): no worker ever gives it, whatever the truth,
            so that one that was given says nothing of the truth or the worker.
        trusted: Ids of workers who are taken to be good from the start, also as one string with
            commas.
        history: An earlier result of the same method: what it learned of the workers counts as if
            they had given those answers here too.
        truth_prior: Pseudo-count of every step of the truth.
        at_start: Previous label at an item's first token: "outside" (`O`) or "own", a state apart.
        after_skip: Previous label after a token that the worker skipped: the same choice.
        word_prior: nu0 of the word model, for methods with +words.
        templates: Feature templates of methods with +crf: a named set, a TOML file, or a list.
        c2: Penalty of the CRF's squared weights.
        min_count: Features that occur less often are left out.
        vectors: Of methods with +crf: a model of Hugging Face or a folder with one, whose vectors
            of the words are features, too (needs the extra `encoder`).
        encoder: Of methods with +encoder: the model of Hugging Face, or the folder with one, that
            every fold fine-tunes (needs the extra `encoder`).
        encoder_params: Of methods with +encoder: other parameters of `Encoder`, as a mapping or in
            one string, "epochs=2, precision=bfloat16". Epochs (3) are those of the first round;
            every later one is one pass.
        folds: Into how many parts documents are dealt, each scored by a CRF that never saw it.
        rounds: How often workers and CRFs are updated in turn, at most.
        dependence: Of methods with +crf: how much workers share their mistakes, 0 to 1; n labels
            of a token count as n / (1 + (n - 1) dependence) beside the text. "auto" measures it.
        text_power: Of methods with +crf: power of the text's probability; above 1 since a CRF that
            learns from soft labels is less sure than it might be.
        documents: Of methods with +crf: "auto" looks for places that nobody marked and that hold
            the words of a span of the same document, as far as the answers say that such places
            were missed (`goldspan.aggregation.documents`); "none" does not.
        families: Workers who err together: n members of a family who labelled a token count as
            n / (1 + (n - 1) rho) workers. "auto" finds them by the answers; "none": everybody errs
            alone; or a mapping from worker ids to names of families, of which only rho is
            estimated.
        decode: "mbr", the spans with the largest expected F1, or "viterbi", the likeliest path.
        tol: Relative change of the objective at which to stop.
        max_iter: Most steps.
        n_starts: Starts from different points, of which the best objective counts; from an earlier
            result there is one.
        random_state: Seed of the starts beyond the first.
    """

    worker_model: ClassVar[str]
    is_chain: ClassVar[bool] = True
    is_point: ClassVar[bool] = False
    can_go_on = True
    text = ""

    alpha0: Annotated[float, Number(LEAST, MOST)] = 1.25
    epsilon0: Annotated[float, Number(0, MOST)] = 18.75
    prior: Annotated[str, OneOf(PRIORS)] = "given"
    forbidden: Annotated[float | str, Number(LEAST_FORBIDDEN, MOST), OneOf((ZERO,))] = 0.1
    trusted: Annotated[Sequence[str], trusted_ids] = ()
    history: Annotated[Consensus | None, _check_history] = None
    truth_prior: Annotated[float, Number(1e-3, MOST)] = 1.0
    at_start: Annotated[str, OneOf(PREVIOUS)] = "outside"
    after_skip: Annotated[str, OneOf(PREVIOUS)] = "own"
    word_prior: Annotated[float, Number(1e-3, MOST)] = 1.0
    templates: str | Sequence[str] = "default"
    c2: Annotated[float, Number(0, MOST)] = 4.0
    min_count: Annotated[int, Whole(1)] = 2
    vectors: str | None = None
    encoder: str | None = None
    encoder_params: Annotated[Any, check_encoder_params] = None
    folds: Annotated[int, Whole(2)] = 5
    rounds: Rounds = 6
    dependence: Annotated[float | str, Number(0, 1), OneOf(("auto",))] = "auto"
    text_power: Annotated[float, Number(0, 100)] = 1.3
    documents: Annotated[str, OneOf(DOCUMENTS)] = "auto"
    families: Annotated[Any, check_families] = "none"
    decode: Decoder = "mbr"
    tol: Tolerance = 1e-5
    max_iter: Rounds = 100
    n_starts: Annotated[int, Whole(1)] = 1
    random_state: Seed = 0

    def _check(self) -> None:
        """Reject parameters that make no sense, also those that do not suit the worker model."""
        super()._check()
        if self.prior in HABITS and self.worker_model not in {"cm", "seq"}:
            raise InputError(
                f"{self.name}: prior={self.prior!r} needs confusion matrices: ds, ibcc, bsc-cm or "
                "bsc-seq"
            )
        if self.prior == "auto" and self.is_point:
            raise InputError(
                f"{self.name}: prior='auto' compares evidence bounds, and EM has none: "
                "use ibcc or a bsc method"
            )
        if self.text == "encoder":
            from goldspan.aggregation.bsc.encoder import encoder_params
            from goldspan.tagger.network import check_installed

            try:
                encoder_params(self.encoder, self.encoder_params)
            except InputError as error:
                raise InputError(f"{self.name}: {error}") from None
            check_installed(purpose=f"the method {self.name}")

    def _worker_model(self) -> WorkerModel[Any]:
        return get_worker_model(self.worker_model)

    def predict(self, crowd: Any, *, runner: Any = None) -> Consensus:
        """Label new items of known workers, without learning from them.

        Everything is as the fit left it: the prior that it chose, trust, and the history.

        Args:
            crowd: Other items with the same tags; workers are found by id, unknown ones have the
                prior.
            runner: Where to work.

        Raises:
            NotFittedError: `fit` was not called.
            InputError: The tags differ.
        """
        if "result_" not in vars(self):
            raise NotFittedError(f"{type(self).__name__}: call fit before predict")
        self._check()
        given = FitContext(start=self.result_, runner=runner or FitContext().runner)
        inputs = self._prepare(as_crowd(crowd), given, fitted=self.result_)
        posterior, tables = settle(inputs.model, inputs.sums)
        if self.text in TEXT_MODELS:
            from goldspan.aggregation.bsc.text import with_tagger

            inputs = replace(inputs, dependence=self.result_.memory.dependence)
            shards, tables = with_tagger(inputs, tables, self.result_.tagger, self.text_power)
            inputs = replace(inputs, shards=shards)
        fit = Fit(
            inputs.sums,
            posterior,
            tables,
            (),
            converged=True,
            stop_reason="predicted with fixed parameters",
        )
        return self._result(inputs, fit, given)

    def fit_engine(self, crowd: Crowd, given: FitContext) -> tuple[EngineInputs, Fit]:
        """Fit without a CRF: the laid-out evidence, and where the engine stopped."""
        return self._fit(self._prepare(crowd, given), given)

    def _aggregate(self, crowd: Crowd, given: FitContext) -> Consensus:
        # Beside an encoder all else is quick, and the encoders' state is what is kept.
        own = replace(given, checkpoint=None) if self.text == "encoder" else given
        inputs, fit = self.fit_engine(crowd, own)
        if self.text not in TEXT_MODELS or is_interrupted(fit):
            return self._result(inputs, fit, given)
        from goldspan.aggregation.bsc.text import refine

        folds = self._text_model(inputs, given)
        inputs = self._with_dependence(inputs, fit, given)
        first = None if given.start else self._by_words(crowd, given)
        refined = refine(inputs, fit, first, folds, given)
        inputs = replace(inputs, shards=refined.shards)
        result = self._result(inputs, refined.fit, given, refined.missed)
        return replace(result, tagger=refined.tagger)

    def _text_model(self, inputs: EngineInputs, given: FitContext) -> TextModel:
        """Lay out the words for the text model."""
        from goldspan.aggregation.bsc.text import Folds, Settings

        active = np.concatenate([shard.active for shard in inputs.shards])
        settings = Settings.of(self)
        if self.text == "crf":
            return Folds(inputs.crowd, active, settings)
        from goldspan.aggregation.bsc.encoder import EncoderFolds

        own = self._context(inputs, given)
        return EncoderFolds(inputs.crowd, active, settings, own.checkpoint, own.fingerprint)

    def _by_words(self, crowd: Crowd, given: FitContext) -> Posterior:
        """Return what workers and single words say: the labels that the first CRFs learn.

        Those of workers with memory alone may call half of every text a span.
        """
        words = copy(self)
        words.text = "words"
        inputs, fit = words.fit_engine(crowd, FitContext(known=given.known, runner=given.runner))
        return Posterior(inputs.shards, fit.tables, inputs.crowd.tagset, given.runner)

    def _with_dependence(self, inputs: EngineInputs, fit: Fit, given: FitContext) -> EngineInputs:
        """Return how much workers share their mistakes, measured unless it is given."""
        if self.dependence != "auto":
            return replace(inputs, dependence=float(self.dependence))
        from goldspan.aggregation.bsc.text import measure_dependence

        posterior = Posterior(inputs.shards, fit.tables, inputs.crowd.tagset, given.runner)
        # Of a family, whose mistakes are discounted already, one member shows what all share.
        crowd = inputs.families.thin(inputs.crowd) if inputs.families else inputs.crowd
        found = measure_dependence(crowd, posterior.marginals(np.inf).probs)
        note = f"workers share their mistakes: dependence {found:.2f}, measured"
        return replace(inputs, dependence=found, notes=(*inputs.notes, note))

    def _fit(self, inputs: EngineInputs, given: FitContext) -> tuple[EngineInputs, Fit]:
        """Find the prior and fit; only the last run leaves a checkpoint, and Ctrl-C ends all."""
        stopping, context = Stopping(self.tol, self.max_iter), self._context(inputs, given)
        if self.prior == "auto":
            best = best_of_grid(
                inputs.model, inputs.shards, inputs.sums, stopping, given.runner, inputs.plain_bonus
            )
            fit, notes = best.fit, (*inputs.notes, best.note)
            inputs = replace(
                inputs, model=best.model, plain_bonus=best.bonus, sums=fit.sums, notes=notes
            )
            if is_interrupted(fit):
                return inputs, fit
        if self.prior == "votes":
            model = replace(inputs.model, prior=population_prior(inputs.model, inputs.sums))
            notes = (*inputs.notes, "prior: the habits of all workers by the vote shares")
            inputs = replace(inputs, model=model, notes=notes)
        has_more = self.prior == "population"
        fit = best_start(
            inputs.model, inputs.shards, inputs.sums, stopping,
            replace(context, checkpoint=None) if has_more else context,
            n_starts=1 if given.start else self.n_starts, random_state=self.random_state,
            worker_ids=inputs.crowd.worker_ids,
        )  # fmt: skip
        if not has_more or is_interrupted(fit):
            return inputs, fit
        model = replace(inputs.model, prior=population_prior(inputs.model, fit.sums))
        notes = (*inputs.notes, "prior: the habits of all workers together")
        try:
            last = run(model, inputs.shards, fit.sums, stopping, context)
        except KeyboardInterrupt:  # before the first step was done
            return inputs, interrupted(fit)
        return replace(inputs, model=model, notes=notes), last

    def _prepare(
        self, crowd: Crowd, given: FitContext, fitted: Consensus | None = None
    ) -> EngineInputs:
        """Lay out the evidence, make the model – or take that of a fit –, find where to begin."""
        workers = self._worker_model()
        history = fitted.params["history"] if fitted else self.history
        past = {
            name: self._past(result, name)
            for name, result in (("start", given.start), ("history", history))
            if result is not None
        }
        for memory in past.values():
            crowd, given = in_tags_of(memory.codec, crowd, given)
        known, noted = (None, []) if given.known is None else legal_known(given.known, crowd)
        notes = tuple(noted)
        words = self._vocabulary(crowd, past.get("start"))
        evidence, rows = lay_out(
            crowd,
            has_memory=workers.has_memory,
            start=self.at_start,
            skipped=self.after_skip,
            words=words.ids(crowd) if words else None,
            gold=known,
        )
        if self.forbidden == ZERO and workers.has_memory:
            n_labels, mask = len(evidence.row), previous_mask(crowd, rows.n_previous)
            evidence, rows = without_forbidden(evidence, rows, mask)
            left_out = n_labels - len(evidence.row)
            notes = (*notes, f"{left_out} labels that may not follow the one before do not count")
        for memory in past.values():
            memory.check(crowd, workers.name)
            evidence, rows = memory.join(evidence, rows, crowd)
        if fitted:
            remembered = past["start"].families
            families = families_for(remembered or "none", crowd)
        else:
            families = families_for(self.families, crowd, known)
        notes = (*notes, families.note) if families else notes
        evidence = weighed(evidence, rows, families)
        counts = {name: memory.counts(rows, crowd) for name, memory in past.items()}
        if fitted:
            bonus, truth = past["start"].plain_bonus, past["start"].model.truth
            prior = past["start"].prior(crowd, counts.get("history"))
        else:
            bonus, truth = float(self.epsilon0), self._truth(crowd.tagset)
            prior = given_prior(
                crowd, rows.n_previous, off=self.alpha0, bonus=bonus,
                forbidden=0.0 if self.forbidden == ZERO else float(self.forbidden),
                trusted=trusted_ids(self.trusted), history=counts.get("history"),
            )  # fmt: skip
        model = Model(workers, rows, prior, truth, words)
        shards = cut(evidence, model.n_entries)
        if "start" in past:
            memory = past["start"]
            every = np.concatenate([counts["start"], memory.words(model)])
            carried = memory.carried(rows, crowd, prior)
            sums = Sums(every, memory.sums.truth.copy(), posterior=carried)
        else:
            sums = from_votes(model, shards, given.runner)
        shards = compress(shards, len(rows))
        return EngineInputs(crowd, shards, model, bonus, sums, notes, families=families)

    def _vocabulary(self, crowd: Crowd, memory: Memory | None) -> Vocabulary | None:
        if self.text != "words":
            return None
        known = memory.model.words if memory else None
        return known or Vocabulary.of(crowd, self.word_prior)

    def _truth(self, codec: Codec) -> Truth:
        if self.is_chain:
            return Truth.chain(codec, self.truth_prior)
        return Truth.independent(len(codec.tags), self.truth_prior, is_point=self.is_point)

    def _past(self, result: Consensus, what: str) -> Memory:
        """Return what a result remembers, if it means the same by a previous label."""
        memory = _memory_of(result, what)
        for name in ("at_start", "after_skip") if memory.model.workers.has_memory else ():
            was, now = result.params.get(name), getattr(self, name)
            if was != now:
                raise InputError(
                    f"{what}: the earlier result has {name}={was!r}, this one {now!r}: they must "
                    "be the same"
                )
        was, now = result.params.get("forbidden"), self.forbidden
        if memory.model.workers.has_memory and (was == ZERO) != (now == ZERO):
            raise InputError(
                f"{what}: the earlier result has forbidden={was!r}, this one {now!r}: both must be "
                f"{ZERO!r}, or none"
            )
        return memory

    def _context(self, inputs: EngineInputs, given: FitContext) -> RunContext:
        fingerprint = ""
        if given.checkpoint is not None:
            trusted = trusted_ids(self.trusted)
            # What is found out of families shows in the evidence.
            params = {**self.get_params(), "history": None, "trusted": trusted, "families": None}
            fingerprint = inputs.fingerprint(self.name, params, is_warm=given.start is not None)
        return RunContext(given.runner, given.progress, given.checkpoint, fingerprint)

    def _result(
        self, inputs: EngineInputs, fit: Fit, given: FitContext, missed: Missed | None = None
    ) -> Consensus:
        crowd, codec = inputs.crowd, inputs.crowd.tagset
        posterior: Posterior | Mixture = Posterior(inputs.shards, fit.tables, codec, given.runner)
        notes = notes_on(inputs, is_learned=bool(fit.trace))
        if missed:
            posterior, notes = missed.beside(posterior), [*notes, missed.note]
        result = consensus_of(crowd, posterior, decode=self.decode, method=self.name)
        return replace(
            result,
            trace=fit.trace,
            converged=fit.converged,
            stop_reason=fit.stop_reason,
            notes=tuple(notes),
            families=inputs.families,
            memory=Memory(
                inputs.model,
                fit.sums,
                fit.posterior,
                crowd.worker_ids,
                codec,
                inputs.plain_bonus,
                inputs.dependence,
                inputs.families,
            ),
        )


def in_tags_of(codec: Codec, crowd: Crowd, given: FitContext) -> tuple[Crowd, FitContext]:
    """Put a crowd that lacks some tags of an earlier result into the tags of that result."""
    mine = crowd.tagset
    if mine == codec or mine.encoding != codec.encoding or not set(mine.tags) <= set(codec.tags):
        return crowd, given
    known = None if given.known is None else translate(given.known, mine, codec)
    return recode(crowd, codec), replace(given, known=known)


def _check_history(history: Any) -> None:
    _memory_of(history, "history")


def _memory_of(result: Consensus, what: str) -> Memory:
    memory = getattr(result, "memory", None)
    if not isinstance(memory, Memory):
        raise InputError(f"{what} must be a result of a Dawid-Skene or BSC method")
    return memory


# --------------------------------------------------------------------------------------------------
# Notes on a result: items without answers, and crowds in which workers cannot be compared.


MANY = 0.5
"""Share of tokens with a single label from which workers cannot be compared."""
BLOCK = 1 << 16
"""Labels that are counted at a time, about: the tokens of all take 8 bytes a label, four times."""


def notes_on(inputs: EngineInputs, *, is_learned: bool) -> list[str]:
    """Return the notes, those of the preparation first."""
    crowd = inputs.crowd
    asked = _asked(crowd)
    alone = _alone(inputs, asked) if is_learned else []
    return [*inputs.notes, *_unanswered(inputs, asked > 0), *alone]


def _asked(crowd: Crowd) -> NDArray[np.int32]:
    """Count the labels of every token, int32 [n_tokens]."""
    answers, found = crowd.latest, np.zeros(crowd.n_tokens, np.int32)
    n_labels = len(answers.codes)
    size = max(1, BLOCK * len(answers) // max(1, n_labels))
    for first in range(0, len(answers), size):
        offset = answers.offset[first : first + size + 1]
        item, codes = answers.item[first : first + size], answers.codes[offset[0] : offset[-1]]
        shift = crowd.offsets[item] - offset[:-1]
        token = np.repeat(shift, np.diff(offset)) + np.arange(offset[0], offset[-1])
        np.add.at(found, token[codes >= 0], np.int32(1))  # a plain 1 takes fifty times as long
    return found


def _unanswered(inputs: EngineInputs, asked: NDArray[Any]) -> list[str]:
    active = np.concatenate([shard.active for shard in inputs.shards])
    n_left = int(np.count_nonzero(~active))
    if n_left:
        return [f"{n_left} items without answers are left open"]
    if not any(len(shard.unary) for shard in inputs.shards):
        return []
    lengths = np.diff(inputs.crowd.offsets)
    item = np.repeat(np.arange(len(lengths)), lengths)
    n_alone = int(np.count_nonzero(lengths)) - len(np.unique(item[asked]))
    return [f"{n_alone} items without answers are labelled by their words alone"] if n_alone else []


def _alone(inputs: EngineInputs, asked: NDArray[Any]) -> list[str]:
    """Warn where most tokens have one label: there is nothing to learn of workers from."""
    has_truth = any((shard.gold >= 0).any() for shard in inputs.shards)
    n_asked = int(np.count_nonzero(asked))
    n_single = int(np.count_nonzero(asked == 1))
    if has_truth or not n_asked or n_single < MANY * n_asked:
        return []
    percent = 100 * n_single / n_asked
    seen = f"{percent:.0f} % of the labelled tokens have a single label"
    return [f"{seen}: workers can hardly be compared; use votes or crf-ma, or ask more workers"]


# --------------------------------------------------------------------------------------------------
# Bayesian sequence combination with each of the five worker models (Simpson & Gurevych 2019).


class BscAcc(Variational):
    """BSC with one probability of being right per worker."""

    name = "bsc-acc"
    worker_model = "acc"


class BscMace(Variational):
    """BSC with workers who know or guess by habit."""

    name = "bsc-mace"
    worker_model = "mace"


class BscCv(Variational):
    """BSC with a probability of being right per worker and label."""

    name = "bsc-cv"
    worker_model = "cv"


class BscCm(Variational):
    """BSC with a confusion matrix per worker."""

    name = "bsc-cm"
    worker_model = "cm"


class BscSeq(Variational):
    r"""BSC with a confusion matrix per worker and label given before.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"token\ta\tb\tc\nRome\tB-LOC\tB-LOC\tO\n", format="wide")
    >>> result = BscSeq().fit(crowd).result_
    >>> result.tags, result.converged
    ([['B-LOC']], True)
    """

    name = "bsc-seq"
    worker_model = "seq"
