"""Bayesian sequence combination (Simpson and Gurevych 2019): with or without words and a CRF."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation.base import FitContext
from goldspan.aggregation.bsc.engine import EngineInputs, Fit, Truth, Vocabulary, is_interrupted
from goldspan.aggregation.bsc.evidence import (
    PREVIOUS,
    Evidence,
    Tables,
    previous_mask,
    without_forbidden,
)
from goldspan.aggregation.bsc.posterior import Posterior
from goldspan.aggregation.bsc.priors import Decoder, Memory
from goldspan.aggregation.consensus import Consensus
from goldspan.aggregation.dawid_skene import Variational
from goldspan.aggregation.documents import DOCUMENTS
from goldspan.aggregation.workermodels import (
    LEAST,
    LEAST_FORBIDDEN,
    Accuracy,
    ConfusionMatrix,
    ConfusionVector,
    Mace,
    Rows,
    Sequential,
)
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.params import MOST, Number, OneOf, Rounds, Whole
from goldspan.spans import Codec

if TYPE_CHECKING:
    from goldspan.aggregation.bsc.text import TextModel


TEXT_MODELS = ("crf", "encoder")
"""What follows the plus of a method with a cross-fitted text model."""
ZERO = "zero"
"""The value of `forbidden` with which labels that the encoding forbids do not count."""


def check_encoder_params(value: Any) -> None:
    """Reject what holds no parameters."""
    if value is not None and not isinstance(value, str | Mapping):
        raise InputError(f"encoder_params must be a mapping or a string, not {value!r}")


class Bsc(Variational):
    """Base of Bayesian sequence combination: the truth is a chain, beside which words may count.

    Args:
        truth_prior: Pseudo-count of every step of the truth.
        forbidden: Pseudo-count of what the encoding forbids after the worker's previous label;
            "zero" as in Simpson and Gurevych (2019): no worker ever gives it, whatever the truth,
            so that one that was given says nothing of the truth or the worker.
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
        decode: "mbr", the spans with the largest expected F1, or "viterbi", the likeliest path.
    """

    alpha0: Annotated[float, Number(LEAST, MOST)] = 1.25
    epsilon0: Annotated[float, Number(0, MOST)] = 18.75
    truth_prior: Annotated[float, Number(1e-3, MOST)] = 1.0
    decode: Decoder = "mbr"
    forbidden: Annotated[float | str, Number(LEAST_FORBIDDEN, MOST), OneOf((ZERO,))] = 0.1
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

    def _check(self) -> None:
        """Reject parameters that make no sense, also those of an encoder."""
        super()._check()
        if self.text == "encoder":
            from goldspan.aggregation.bsc.encoder import encoder_params
            from goldspan.tagger.network import check_installed

            try:
                encoder_params(self.encoder, self.encoder_params)
            except InputError as error:
                raise InputError(f"{self.name}: {error}") from None
            check_installed(purpose=f"the method {self.name}")

    def _aggregate(self, crowd: Crowd, context: FitContext) -> Consensus:
        # Beside an encoder all else is quick, and the encoders' state is what is kept.
        own = replace(context, checkpoint=None) if self.text == "encoder" else context
        inputs, fit = self.fit_engine(crowd, own)
        if self.text not in TEXT_MODELS or is_interrupted(fit):
            return self._result(inputs, fit, context)
        from goldspan.aggregation.bsc.text import refine

        folds = self._text_model(inputs, context)
        inputs = self._with_dependence(inputs, fit, context)
        first = None if context.start else self._by_words(crowd, context)
        shards, fit, missed, tagger = refine(inputs, fit, first, folds, context)
        result = self._result(replace(inputs, shards=shards), fit, context, missed)
        return replace(result, tagger=tagger)

    def _text_model(self, inputs: EngineInputs, context: FitContext) -> TextModel:
        """Lay out the words for the text model."""
        from goldspan.aggregation.bsc.text import Folds, Settings

        active = np.concatenate([shard.active for shard in inputs.shards])
        settings = Settings.of(self)
        if self.text == "crf":
            return Folds(inputs.crowd, active, settings)
        from goldspan.aggregation.bsc.encoder import EncoderFolds

        own = self._context(inputs, context)
        return EncoderFolds(inputs.crowd, active, settings, own.checkpoint, own.fingerprint)

    def _by_words(self, crowd: Crowd, context: FitContext) -> Posterior:
        """Return what workers and single words say: the labels that the first CRFs learn."""
        # Those of workers with memory alone may call half of every text a span
        words = copy(self)
        words.text = "words"
        inputs, fit = words.fit_engine(
            crowd, FitContext(known=context.known, runner=context.runner)
        )
        return Posterior(inputs.shards, fit.tables, inputs.crowd.tagset, context.runner)

    def _with_dependence(self, inputs: EngineInputs, fit: Fit, context: FitContext) -> EngineInputs:
        """Return how much workers share their mistakes, measured unless it is given."""
        if self.dependence != "auto":
            return replace(inputs, dependence=float(self.dependence))
        from goldspan.aggregation.bsc.text import measure_dependence

        posterior = Posterior(inputs.shards, fit.tables, inputs.crowd.tagset, context.runner)
        # Of a family, whose mistakes are discounted already, one member shows what all share.
        crowd = inputs.families.thin(inputs.crowd) if inputs.families else inputs.crowd
        found = measure_dependence(crowd, posterior.marginals(np.inf).probs)
        note = f"workers share their mistakes: dependence {found:.2f}, measured"
        return replace(inputs, dependence=found, notes=(*inputs.notes, note))

    @property
    def forbidden_count(self) -> float:
        """Pseudo-count of what the encoding forbids after the label that a worker gave before."""
        return 0.0 if self.forbidden == ZERO else float(self.forbidden)

    def lay_out(
        self, crowd: Crowd, words: Vocabulary | None, known: NDArray[np.int16] | None
    ) -> tuple[Evidence, Rows, tuple[str, ...]]:
        """Lay out the answers as rows, without what never counts; also return notes."""
        evidence, rows, notes = super().lay_out(crowd, words, known)
        if self.forbidden == ZERO and self.worker_model.has_memory:
            n_labels, mask = len(evidence.row), previous_mask(crowd, rows.n_previous)
            evidence, rows = without_forbidden(evidence, rows, mask)
            left_out = n_labels - len(evidence.row)
            notes = (f"{left_out} labels that may not follow the one before do not count",)
        return evidence, rows, notes

    def _vocabulary(self, crowd: Crowd, memory: Memory | None) -> Vocabulary | None:
        if self.text != "words":
            return None
        known = memory.model.words if memory else None
        return known or Vocabulary.of(crowd, self.word_prior)

    def _truth(self, codec: Codec) -> Truth:
        return Truth.chain(codec, self.truth_prior)

    def _past(self, result: Consensus, what: str) -> Memory:
        """Return what a result remembers, if it means the same by a previous label."""
        memory = super()._past(result, what)
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

    def _beside_text(self, inputs: EngineInputs, tables: Tables) -> tuple[EngineInputs, Tables]:
        if self.text not in TEXT_MODELS:
            return inputs, tables
        from goldspan.aggregation.bsc.text import with_tagger

        inputs = replace(inputs, dependence=self.result_.memory.dependence)
        shards, tables = with_tagger(inputs, tables, self.result_.tagger, self.text_power)
        return replace(inputs, shards=shards), tables


# --------------------------------------------------------------------------------------------------
# One class per worker model.


class BscAcc(Bsc):
    """BSC with one probability of being right per worker."""

    name = "bsc-acc"
    worker_model = Accuracy


class BscMace(Bsc):
    """BSC with workers who know or guess by habit."""

    name = "bsc-mace"
    worker_model = Mace


class BscCv(Bsc):
    """BSC with a probability of being right per worker and label."""

    name = "bsc-cv"
    worker_model = ConfusionVector


class BscCm(Bsc):
    """BSC with a confusion matrix per worker."""

    name = "bsc-cm"
    worker_model = ConfusionMatrix


class BscSeq(Bsc):
    r"""BSC with a confusion matrix per worker and label given before.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"token\ta\tb\tc\nRome\tB-LOC\tB-LOC\tO\n", format="wide")
    >>> result = BscSeq().fit(crowd).result_
    >>> result.tags, result.converged
    ([['B-LOC']], True)
    """

    name = "bsc-seq"
    worker_model = Sequential
