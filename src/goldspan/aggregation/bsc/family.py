"""The BSC family: one estimator for every worker model, with or without memory, words and a CRF."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation.base import Aggregator, Given, as_crowd
from goldspan.aggregation.bsc.attempts import (
    Prepared,
    best_start,
    interrupted,
    is_interrupted,
    notes_on,
)
from goldspan.aggregation.bsc.engine import (
    Fit,
    Model,
    Stopping,
    Surroundings,
    Truth,
    Vocabulary,
    cut,
    from_votes,
    run,
    settle,
)
from goldspan.aggregation.bsc.evidence import Sums, compress, lay_out
from goldspan.aggregation.bsc.posterior import Posterior, decode_spans, spans_of
from goldspan.aggregation.bsc.priors import (
    GRID,
    Memory,
    best_of_grid,
    check,
    given_prior,
    population_prior,
    trusted_ids,
)
from goldspan.aggregation.consensus import Consensus
from goldspan.aggregation.legal import legal_known
from goldspan.aggregation.workermodels import WorkerModel, get_worker_model
from goldspan.aggregation.workers import worker_table
from goldspan.crowd import Crowd
from goldspan.crowd.labels import recode, translate
from goldspan.errors import InputError, NotFittedError
from goldspan.spans import Codec

# --------------------------------------------------------------------------------------------------
# What the engine's aggregators share: their parameters, and the way from a crowd to a result.


__all__ = ["GRID", "Variational"]  # the studies tune over the grid


class Variational(Aggregator):
    """Base of the aggregators that run the engine; subclasses set the class attributes.

    Args:
        alpha0: Pseudo-count of every label for every truth (the `off` of `Prior`).
        epsilon0: Pseudo-count of the right label beyond it (the `bonus`).
        prior: "given" takes both as they are; "auto" the pair of a small grid with the largest
            evidence bound; "population" adds the mean worker's habits times `epsilon0`: for sparse
            workers and calibration, not for F1.
        forbidden: Pseudo-count of what the encoding forbids after the previous label.
        trusted: Ids of workers who are believed to be good from the start, also as one string with
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
        folds: Into how many parts documents are dealt, each scored by a CRF that never saw it.
        rounds: How often workers and CRFs are updated in turn, at most.
        dependence: Of methods with +crf: how much workers share their mistakes, 0 to 1; n labels
            of a token count as n / (1 + (n - 1) dependence) beside the text. "auto" measures it.
        text_power: Of methods with +crf: power of the text's probability; above 1 since a CRF that
            learns from soft labels is less sure than it might be.
        decode: "mbr", the spans with the largest expected F1, or "viterbi", the likeliest path.
        tol: Relative change of the objective at which to stop.
        max_iter: Most steps.
        n_starts: Starts from different points, of which the best objective counts.
        random_state: Seed of the starts beyond the first.
    """

    worker_model: ClassVar[str]
    is_chain: ClassVar[bool] = True
    is_point: ClassVar[bool] = False
    text: str = ""

    def __init__(
        self,
        *,
        alpha0: float = 1.25,
        epsilon0: float = 18.75,
        prior: str = "given",
        forbidden: float = 0.1,
        trusted: Sequence[str] = (),
        history: Consensus | None = None,
        truth_prior: float = 1.0,
        at_start: str = "outside",
        after_skip: str = "own",
        word_prior: float = 1.0,
        templates: str | Sequence[str] = "default",
        c2: float = 4.0,
        min_count: int = 2,
        folds: int = 5,
        rounds: int = 6,
        dependence: float | str = "auto",
        text_power: float = 1.3,
        decode: str = "mbr",
        tol: float = 1e-5,
        max_iter: int = 100,
        n_starts: int = 1,
        random_state: int | None = 0,
    ) -> None:
        self.alpha0 = alpha0
        self.epsilon0 = epsilon0
        self.prior = prior
        self.forbidden = forbidden
        self.trusted = trusted
        self.history = history
        self.truth_prior = truth_prior
        self.at_start = at_start
        self.after_skip = after_skip
        self.word_prior = word_prior
        self.templates = templates
        self.c2 = c2
        self.min_count = min_count
        self.folds = folds
        self.rounds = rounds
        self.dependence = dependence
        self.text_power = text_power
        self.decode = decode
        self.tol = tol
        self.max_iter = max_iter
        self.n_starts = n_starts
        self.random_state = random_state
        self._check()

    def _check(self) -> None:
        """Reject parameters that make no sense."""
        check(self)
        if self.history is not None:
            _memory_of(self.history, "history")

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
        given = Given(start=self.result_, runner=runner or Given().runner)
        ready = self._prepare(as_crowd(crowd), given, fitted=self.result_)
        posterior, tables = settle(ready.model, ready.sums)
        if self.text == "crf":
            from goldspan.aggregation.bsc.text import with_tagger

            ready = replace(ready, dependence=self.result_.memory.dependence)
            shards, tables = with_tagger(ready, tables, self.result_.tagger, self.text_power)
            ready = replace(ready, shards=shards)
        fit = Fit(
            ready.sums,
            posterior,
            tables,
            (),
            converged=True,
            stop_reason="predicted with fixed parameters",
        )
        return self._result(ready, fit, given)

    def _aggregate(self, crowd: Crowd, given: Given) -> Consensus:
        ready, fit = self._fit(self._prepare(crowd, given), given)
        if self.text != "crf" or is_interrupted(fit):
            return self._result(ready, fit, given)
        from goldspan.aggregation.bsc.text import Settings, refine

        ready = self._with_dependence(ready, fit, given)
        refined = refine(ready, fit, Settings.of(self), given)
        ready = replace(ready, shards=refined.shards)
        return replace(self._result(ready, refined.fit, given), tagger=refined.tagger)

    def _with_dependence(self, ready: Prepared, fit: Fit, given: Given) -> Prepared:
        """Return how much workers share their mistakes, measured unless it is given."""
        if self.dependence != "auto":
            return replace(ready, dependence=float(self.dependence))
        from goldspan.aggregation.bsc.text import measure_dependence

        posterior = Posterior(ready.shards, fit.tables, ready.crowd.tagset, given.runner)
        found = measure_dependence(ready.crowd, posterior.marginals(np.inf).probs)
        note = f"workers share their mistakes: dependence {found:.2f}, measured"
        return replace(ready, dependence=found, notes=(*ready.notes, note))

    def _fit(self, ready: Prepared, given: Given) -> tuple[Prepared, Fit]:
        """Find the prior and fit; only the last run leaves a checkpoint, and Ctrl-C ends all."""
        stopping, around = Stopping(self.tol, self.max_iter), self._around(ready, given)
        if self.prior == "auto":
            best = best_of_grid(
                ready.model, ready.shards, ready.sums, stopping, given.runner, ready.plain_bonus
            )
            fit, notes = best.fit, (*ready.notes, best.note)
            ready = replace(
                ready, model=best.model, plain_bonus=best.bonus, sums=fit.sums, notes=notes
            )
            if is_interrupted(fit):
                return ready, fit
        has_more = self.prior == "population"
        fit = best_start(
            ready.model, ready.shards, ready.sums, stopping,
            replace(around, checkpoint=None) if has_more else around,
            n_starts=self.n_starts, random_state=self.random_state,
        )  # fmt: skip
        if not has_more or is_interrupted(fit):
            return ready, fit
        model = replace(ready.model, prior=population_prior(ready.model, fit.sums))
        notes = (*ready.notes, "prior: the habits of all workers together")
        try:
            last = run(model, ready.shards, fit.sums, stopping, around)
        except KeyboardInterrupt:  # before the first step was done
            return ready, interrupted(fit)
        return replace(ready, model=model, notes=notes), last

    def _prepare(self, crowd: Crowd, given: Given, fitted: Consensus | None = None) -> Prepared:
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
        known, notes = _known(crowd, given)
        words = self._vocabulary(crowd, past.get("start"))
        evidence, rows = lay_out(
            crowd,
            has_memory=workers.has_memory,
            start=self.at_start,
            skipped=self.after_skip,
            words=words.ids(crowd) if words else None,
            gold=known,
        )
        for memory in past.values():
            memory.check(crowd, workers.name)
            evidence, rows = memory.join(evidence, rows, crowd)
        counts = {name: memory.counts(rows, crowd) for name, memory in past.items()}
        if fitted:
            bonus, truth = past["start"].plain_bonus, past["start"].model.truth
            prior = past["start"].prior(crowd, counts.get("history"))
        else:
            bonus, truth = float(self.epsilon0), self._truth(crowd.tagset)
            prior = given_prior(
                crowd, rows.n_previous, off=self.alpha0, bonus=bonus, forbidden=self.forbidden,
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
        shards = [compress(shard, len(rows)) for shard in shards]
        return Prepared(crowd, shards, model, bonus, sums, notes)

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
        return memory

    def _around(self, ready: Prepared, given: Given) -> Surroundings:
        fingerprint = ""
        if given.checkpoint is not None:
            trusted = trusted_ids(self.trusted)
            params = {**self.get_params(), "history": None, "trusted": trusted}
            fingerprint = ready.fingerprint(self.name, params, is_warm=given.start is not None)
        return Surroundings(given.runner, given.progress, given.checkpoint, fingerprint)

    def _result(self, ready: Prepared, fit: Fit, given: Given) -> Consensus:
        crowd, codec = ready.crowd, ready.crowd.tagset
        posterior = Posterior(ready.shards, fit.tables, codec, given.runner)
        last = posterior.marginals()
        codes = last.codes
        if self.decode == "mbr" and not codec.rules.is_plain:
            codes = decode_spans(last, crowd.offsets, codec)
        spans = spans_of(codes, crowd.offsets, codec)
        paths, masses = posterior.confidences(codes, spans, crowd.offsets, last.probs)
        notes = notes_on(ready, is_learned=bool(fit.trace))
        return Consensus(
            crowd=crowd,
            codes=codes,
            token_probs=last.probs,
            span_confidence=masses.astype(np.float32),
            confidence=paths.astype(np.float32),
            make_workers=_workers,
            method=self.name,
            trace=fit.trace,
            converged=fit.converged,
            stop_reason=fit.stop_reason,
            notes=tuple(notes),
            entropy=last.entropy.astype(np.float32),
            posterior=posterior,
            memory=Memory(
                ready.model,
                fit.sums,
                fit.posterior,
                crowd.worker_ids,
                codec,
                ready.plain_bonus,
                ready.dependence,
            ),
        )


def _workers(result: Consensus) -> Any:
    return worker_table(result.crowd, result.codes, result.token_probs)


def in_tags_of(codec: Codec, crowd: Crowd, given: Given) -> tuple[Crowd, Given]:
    """Put a crowd that lacks some tags of an earlier result into the tags of that result."""
    mine = crowd.tagset
    if mine == codec or mine.encoding != codec.encoding or not set(mine.tags) <= set(codec.tags):
        return crowd, given
    known = None if given.known is None else translate(given.known, mine, codec)
    return recode(crowd, codec), replace(given, known=known)


def _known(crowd: Crowd, given: Given) -> tuple[NDArray[np.int16] | None, tuple[str, ...]]:
    """Make known truth legal, and say how much of it there is."""
    if given.known is None:
        return None, ()
    known, changed = legal_known(given.known, crowd)
    notes = [f"{int((known >= 0).sum())} tokens of known truth"]
    notes += [f"{changed} known tags made well-formed"] if changed else []
    return known, tuple(notes)


def _memory_of(result: Consensus, what: str) -> Memory:
    memory = getattr(result, "memory", None)
    if not isinstance(memory, Memory):
        raise InputError(f"{what} must be a result of a Dawid-Skene or BSC method")
    return memory


# --------------------------------------------------------------------------------------------------
# Bayesian sequence combination with each of the five worker models (MATH section 4; paper 001).


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
