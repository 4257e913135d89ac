"""Dawid and Skene's family, and what all methods of the engine share (docs/math.md, section 4).

Every token is an item of its own with the same shares of labels. For single labels this is the
family as it is known; on tagged tokens labels come out well-formed, but workers' labels count as
independent of their neighbours. BSC (`bsc/family.py`) adds the chain, and a model of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

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
    Evidence,
    Sums,
    Tables,
    compress,
    lay_out,
    weighed,
)
from goldspan.aggregation.bsc.posterior import Posterior, consensus_of
from goldspan.aggregation.bsc.priors import (
    POPULATION,
    PRIORS,
    Decoder,
    Memory,
    best_of_grid,
    given_prior,
    population_prior,
    trusted_ids,
)
from goldspan.aggregation.consensus import Consensus, unanswered
from goldspan.aggregation.documents import Missed
from goldspan.aggregation.families import check_families, families_for
from goldspan.aggregation.mixture import Mixture
from goldspan.aggregation.workermodels import (
    LEAST,
    ConfusionMatrix,
    Mace,
    PointAccuracy,
    PointConfusionMatrix,
    Rows,
    WorkerModel,
)
from goldspan.crowd import Crowd
from goldspan.crowd.labels import recode, translate
from goldspan.errors import InputError
from goldspan.params import MOST, Number, OneOf, Rounds, Seed, Tolerance, Whole
from goldspan.spans import Codec


class Variational(Aggregator):
    """Base of the methods of the engine: Dawid and Skene's model, to which BSC adds a chain.

    A subclass names its worker model. Every token is an item of its own with the same shares of
    labels.

    Args:
        alpha0: Pseudo-count of every label for every truth (the `off` of `Prior`).
        epsilon0: Pseudo-count of the right label beyond it (the `bonus`).
        prior: "given" takes both as they are; "auto" the pair of a small grid with the largest
            evidence bound; "population" adds the mean worker's habits times `epsilon0`: for sparse
            workers and calibration; "votes" the same habits as the vote shares show them, before
            anything is fitted: where answers or items are few.
        trusted: Ids of workers who are taken to be good from the start, also as one string with
            commas.
        history: An earlier result of the same method: what it learned of the workers counts as if
            they had given those answers here too.
        truth_prior: Pseudo-count of every label in the shares of the truth; ten keep the shares
            from running away where workers gave little (chosen on simulated sparse crowds).
        families: Workers who err together: n members of a family who labelled a token count as
            n / (1 + (n - 1) rho) workers. "auto" finds them by the answers; "none": everybody errs
            alone; or a mapping from worker ids to names of families, of which only rho is
            estimated.
        decode: "viterbi", the likeliest well-formed labels, or "mbr", the spans of largest
            expected F1.
        tol: Relative change of the objective at which to stop.
        max_iter: Most steps.
        n_starts: Starts from different points, of which the best objective counts; from an earlier
            result there is one.
        random_state: Seed of the starts beyond the first.
    """

    worker_model: ClassVar[type[WorkerModel[Any]]]
    is_point: ClassVar[bool] = False
    can_go_on = True
    text = ""
    at_start = "outside"
    after_skip = "own"

    alpha0: Annotated[float, Number(LEAST, MOST)] = 1.0
    epsilon0: Annotated[float, Number(0, MOST)] = 1.0
    prior: Annotated[str, OneOf(PRIORS)] = "given"
    trusted: Annotated[Sequence[str], trusted_ids] = ()
    history: Annotated[Consensus | None, _memory_of] = None
    truth_prior: Annotated[float, Number(1e-3, MOST)] = 10.0
    families: Annotated[Any, check_families] = "none"
    decode: Decoder = "viterbi"
    tol: Tolerance = 1e-5
    max_iter: Rounds = 100
    n_starts: Annotated[int, Whole(1)] = 1
    random_state: Seed = 0

    def _check(self) -> None:
        """Reject parameters that make no sense, also those that do not suit the worker model."""
        super()._check()
        if self.prior in POPULATION and not issubclass(self.worker_model, ConfusionMatrix):
            raise InputError(
                f"{self.name}: prior={self.prior!r} needs confusion matrices: ds, ibcc, bsc-cm or "
                "bsc-seq"
            )
        if self.prior == "auto" and self.is_point:
            raise InputError(
                f"{self.name}: prior='auto' compares evidence bounds, and EM has none: "
                "use ibcc or a bsc method"
            )

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
        self._check()
        context = FitContext(start=self.result_, runner=runner or FitContext().runner)
        inputs = self._prepare(as_crowd(crowd), context, fitted=self.result_)
        posterior, tables = settle(inputs.model, inputs.sums)
        inputs, tables = self._beside_text(inputs, tables)
        fit = Fit(
            inputs.sums,
            posterior,
            tables,
            (),
            converged=True,
            stop_reason="predicted with fixed parameters",
        )
        return self._result(inputs, fit, context)

    def fit_engine(self, crowd: Crowd, context: FitContext) -> tuple[EngineInputs, Fit]:
        """Fit without a CRF: the laid-out evidence, and where the engine stopped."""
        return self._fit(self._prepare(crowd, context), context)

    def _aggregate(self, crowd: Crowd, context: FitContext) -> Consensus:
        inputs, fit = self.fit_engine(crowd, context)
        return self._result(inputs, fit, context)

    # ----------------------------------------------------------------------------------------------
    # What BSC does in another way.

    @property
    def forbidden_count(self) -> float:
        """Pseudo-count of what the encoding forbids after the label that a worker gave before."""
        return 0.1

    def lay_out(
        self, crowd: Crowd, words: Vocabulary | None, known: NDArray[np.int16] | None
    ) -> tuple[Evidence, Rows, tuple[str, ...]]:
        """Lay out the answers as rows; also return notes."""
        evidence, rows = lay_out(
            crowd,
            has_memory=self.worker_model.has_memory,
            start=self.at_start,
            skipped=self.after_skip,
            words=words.ids(crowd) if words else None,
            gold=known,
        )
        return evidence, rows, ()

    def _vocabulary(self, crowd: Crowd, memory: Memory | None) -> Vocabulary | None:
        """Return the words of methods that learn from them."""
        del crowd, memory
        return None

    def _truth(self, codec: Codec) -> Truth:
        return Truth.independent(len(codec.tags), self.truth_prior, is_point=self.is_point)

    def _past(self, result: Consensus, what: str) -> Memory:
        return _memory_of(result, what)

    def _beside_text(self, inputs: EngineInputs, tables: Tables) -> tuple[EngineInputs, Tables]:
        """Add what a text model says of new items, in `predict`."""
        return inputs, tables

    # ----------------------------------------------------------------------------------------------
    # From a crowd to a result.

    def _fit(self, inputs: EngineInputs, context: FitContext) -> tuple[EngineInputs, Fit]:
        """Find the prior and fit; only the last run leaves a checkpoint, and Ctrl-C ends all."""
        stopping, run_context = Stopping(self.tol, self.max_iter), self._context(inputs, context)
        if self.prior == "auto":
            best = best_of_grid(
                inputs.model,
                inputs.shards,
                inputs.sums,
                stopping,
                context.runner,
                inputs.plain_bonus,
            )
            chosen = f"alpha0={best.off}, epsilon0={best.bonus}"
            fit, notes = best.fit, (*inputs.notes, f"prior chosen by the evidence bound: {chosen}")
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
            replace(run_context, checkpoint=None) if has_more else run_context,
            n_starts=1 if context.start else self.n_starts, random_state=self.random_state,
            worker_ids=inputs.crowd.worker_ids,
        )  # fmt: skip
        if not has_more or is_interrupted(fit):
            return inputs, fit
        model = replace(inputs.model, prior=population_prior(inputs.model, fit.sums))
        notes = (*inputs.notes, "prior: the habits of all workers together")
        try:
            last = run(model, inputs.shards, fit.sums, stopping, run_context)
        except KeyboardInterrupt:  # before the first step was done
            return inputs, interrupted(fit)
        return replace(inputs, model=model, notes=notes), last

    def _prepare(
        self, crowd: Crowd, context: FitContext, fitted: Consensus | None = None
    ) -> EngineInputs:
        """Lay out the evidence, make the model – or take that of a fit –, find where to begin."""
        workers = self.worker_model()
        history = fitted.params["history"] if fitted else self.history
        past = {
            name: self._past(result, name)
            for name, result in (("start", context.start), ("history", history))
            if result is not None
        }
        for memory in past.values():
            crowd, context = in_tags_of(memory.codec, crowd, context)
        known, noted = (None, []) if context.known is None else legal_known(context.known, crowd)
        words = self._vocabulary(crowd, past.get("start"))
        evidence, rows, left_out = self.lay_out(crowd, words, known)
        notes = (*noted, *left_out)
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
                forbidden=self.forbidden_count,
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
            sums = from_votes(model, shards, context.runner)
        shards = compress(shards, len(rows))
        return EngineInputs(crowd, shards, model, bonus, sums, notes, families=families)

    def _context(self, inputs: EngineInputs, context: FitContext) -> RunContext:
        fingerprint = ""
        if context.checkpoint is not None:
            trusted = trusted_ids(self.trusted)
            # What is found out of families shows in the evidence.
            params = {**self.get_params(), "history": None, "trusted": trusted, "families": None}
            fingerprint = inputs.fingerprint(self.name, params, is_warm=context.start is not None)
        return RunContext(context.runner, context.progress, context.checkpoint, fingerprint)

    def _result(
        self, inputs: EngineInputs, fit: Fit, context: FitContext, missed: Missed | None = None
    ) -> Consensus:
        crowd, codec = inputs.crowd, inputs.crowd.tagset
        posterior: Posterior | Mixture = Posterior(inputs.shards, fit.tables, codec, context.runner)
        asked = _asked(crowd)
        alone = _alone(inputs, asked) if fit.trace else []
        notes = [*inputs.notes, *_unanswered(inputs, asked > 0), *alone]
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


def in_tags_of(codec: Codec, crowd: Crowd, context: FitContext) -> tuple[Crowd, FitContext]:
    """Put a crowd that lacks some tags of an earlier result into the tags of that result."""
    mine = crowd.tagset
    if mine == codec or mine.encoding != codec.encoding or not set(mine.tags) <= set(codec.tags):
        return crowd, context
    known = None if context.known is None else translate(context.known, mine, codec)
    return recode(crowd, codec), replace(context, known=known)


def _memory_of(result: Consensus, what: str = "history") -> Memory:
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
        return unanswered(n_left, "left open")
    if not any(len(shard.unary) for shard in inputs.shards):
        return []
    lengths = np.diff(inputs.crowd.offsets)
    item = np.repeat(np.arange(len(lengths)), lengths)
    n_alone = int(np.count_nonzero(lengths)) - len(np.unique(item[asked]))
    return unanswered(n_alone, "labelled by their words alone")


def _alone(inputs: EngineInputs, asked: NDArray[Any]) -> list[str]:
    """Warn where most tokens have one label: there is nothing to learn of workers from."""
    has_truth = any((shard.gold >= 0).any() for shard in inputs.shards)
    n_asked, n_single = int(np.count_nonzero(asked)), int(np.count_nonzero(asked == 1))
    if has_truth or not n_asked or n_single < MANY * n_asked:
        return []
    seen = f"{100 * n_single / n_asked:.0f} % of the labelled tokens have a single label"
    return [f"{seen}: workers can hardly be compared; use votes or crf-ma, or ask more workers"]


# --------------------------------------------------------------------------------------------------
# The methods without a chain: Dawid and Skene (1979), one coin, IBCC, MACE.


class DawidSkene(Variational):
    r"""Dawid and Skene (1979): EM over confusion matrices with smoothed counts.

    The counts are smoothed by `alpha0` for every label and `epsilon0` more for the right one:
    without, sparse workers make it worse than a majority vote.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,a,x\n1,b,x\n1,c,y\n2,a,y\n2,b,y\n")
    >>> DawidSkene().fit_predict(crowd)
    [['x'], ['y']]
    """

    name = "ds"
    worker_model = PointConfusionMatrix
    is_point = True


class OneCoin(Variational):
    """EM over one probability of being right per worker."""

    name = "one-coin"
    worker_model = PointAccuracy
    is_point = True


class Ibcc(Variational):
    """Independent Bayesian classifier combination (Kim and Ghahramani 2012), variational."""

    name = "ibcc"
    worker_model = ConfusionMatrix


class MaceTokens(Variational):
    """MACE (Hovy et al. 2013), variational: workers know, or give a label by habit.

    Like the original it starts from several points (`n_starts`) and keeps the best objective.
    """

    name = "mace"
    worker_model = Mace
    n_starts: Annotated[int, Whole(1)] = 5
