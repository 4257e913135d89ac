"""What the engine's aggregators share: their parameters, and the way from a crowd to a result."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from karat.aggregate.base import Aggregator, Given
from karat.aggregate.bsc.engine import (
    Fit,
    Model,
    Stopping,
    Sums,
    Surroundings,
    cut,
    from_votes,
    run,
    settle,
)
from karat.aggregate.bsc.evidence import Evidence, lay_out, previous_mask
from karat.aggregate.bsc.known import legal_known
from karat.aggregate.bsc.memory import Memory
from karat.aggregate.bsc.posterior import Posterior, decode_spans, spans_of
from karat.aggregate.bsc.truth import Truth
from karat.aggregate.bsc.words import Vocabulary
from karat.aggregate.consensus import Consensus
from karat.aggregate.workers import worker_table
from karat.crowd import Crowd
from karat.errors import InputError, NotFittedError, UnknownNameError
from karat.spans import Codec
from karat.workermodels import Prior, Rows, WorkerModel, get_worker_model
from karat.workermodels.rows import Floats

DECODERS = ("mbr", "viterbi")
PRIORS = ("given", "auto", "population")
GRID = tuple((off, bonus) for off in (0.1, 0.3, 1.25, 3.0) for bonus in (1.0, 5.0, 18.75, 50.0))
"""alpha0 and epsilon0 that `prior="auto"` tries."""
TRUST = 100.0
"""More right answers that a trusted worker is believed to have given."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A crowd made ready for the engine.

    Attributes:
        crowd: The crowd.
        shards: Its evidence.
        model: What stays fixed.
        sums: The statistics to begin with.
        notes: What to tell.
    """

    crowd: Crowd
    shards: Sequence[Evidence]
    model: Model
    sums: Sums
    notes: tuple[str, ...]


class Variational(Aggregator):
    """Base of the aggregators that run the engine; subclasses set the class attributes.

    Args:
        alpha0: Pseudo-count of every label for every truth (the `off` of `Prior`).
        epsilon0: Pseudo-count of the right label beyond it (the `bonus`).
        prior: "given" takes both as they are; "auto" the pair of a small grid with the largest
            evidence bound; "population" adds the mean worker's habits times `epsilon0`: for sparse
            workers and calibration, not for F1.
        forbidden: Pseudo-count of what the encoding forbids after the previous label.
        trusted: Ids of workers who are believed to be good from the start.
        history: An earlier result of the same method: what it learned of the workers counts as if
            they had given those answers here too.
        truth_prior: Pseudo-count of every step of the truth.
        start: Previous label at an item's first token: "outside" (`O`) or "own", a state apart.
        skipped: Previous label after a token that the worker skipped: the same choice.
        word_prior: nu0 of the word model, for methods with +words.
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
        start: str = "outside",
        skipped: str = "own",
        word_prior: float = 1.0,
        decode: str = "mbr",
        tol: float = 1e-5,
        max_iter: int = 100,
        n_starts: int = 1,
        random_state: int | None = 0,
    ) -> None:
        if prior not in PRIORS:
            raise UnknownNameError("prior", prior, PRIORS)
        if decode not in DECODERS:
            raise UnknownNameError("decoder", decode, DECODERS)
        self.alpha0 = alpha0
        self.epsilon0 = epsilon0
        self.prior = prior
        self.forbidden = forbidden
        self.trusted = trusted.split(",") if isinstance(trusted, str) else trusted
        self.history = history
        self.truth_prior = truth_prior
        self.start = start
        self.skipped = skipped
        self.word_prior = word_prior
        self.decode = decode
        self.tol = tol
        self.max_iter = max_iter
        self.n_starts = n_starts
        self.random_state = random_state
        Prior(alpha0, epsilon0, None, forbidden)
        Stopping(tol, max_iter)
        for name, value in (("truth_prior", truth_prior), ("word_prior", word_prior)):
            if not isinstance(value, float | int) or not 1e-3 <= value < np.inf:
                raise InputError(f"{name} must be a number of at least 0.001, not {value!r}")
        if not isinstance(n_starts, int) or n_starts < 1:
            raise InputError(f"n_starts must be a whole number of at least 1, not {n_starts!r}")

    def _worker_model(self) -> WorkerModel[Any]:
        return get_worker_model(self.worker_model)

    def predict(self, crowd: Crowd, *, runner: Any = None) -> Consensus:
        """Label new items of known workers, without learning from them.

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
        given = Given(start=self.result_, runner=runner or Given().runner)
        ready = self._prepare(crowd, given)
        posterior, tables = settle(ready.model, ready.sums)
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
        ready = self._prepare(crowd, given)
        stopping = Stopping(self.tol, self.max_iter)
        if self.prior == "auto":
            ready = self._best_prior(ready, stopping, given)
        fit = self._best_start(ready, stopping, given)
        if self.prior == "population":
            ready = self._with_population(ready, fit)
            fit = run(ready.model, ready.shards, fit.sums, stopping, self._around(ready, given))
        return self._result(ready, fit, given)

    def _prepare(self, crowd: Crowd, given: Given) -> Prepared:
        """Lay out the evidence, make the model, and find where to begin."""
        workers = self._worker_model()
        past = {
            name: _memory_of(result, name)
            for name, result in (("start", given.start), ("history", self.history))
            if result is not None
        }
        known, notes = _known(crowd, given)
        words = self._vocabulary(crowd, past.get("start"))
        evidence, rows = lay_out(
            crowd,
            has_memory=workers.has_memory,
            start=self.start,
            skipped=self.skipped,
            words=words.ids(crowd) if words else None,
            gold=known,
        )
        for memory in past.values():
            memory.check(crowd, workers.name)
            evidence, rows = memory.join(evidence, rows, crowd)
        counts = {name: memory.counts(rows, crowd) for name, memory in past.items()}
        prior = self._prior(crowd, rows, counts.get("history"))
        model = Model(workers, rows, prior, self._truth(crowd.tagset), words)
        shards = cut(evidence, model.n_entries)
        if "start" in past:
            memory = past["start"]
            every = np.concatenate([counts["start"], memory.words(model)])
            sums = Sums(every, memory.sums.truth.copy())
        else:
            sums = from_votes(model, shards, given.runner)
        return Prepared(crowd, shards, model, sums, notes)

    def _vocabulary(self, crowd: Crowd, memory: Memory | None) -> Vocabulary | None:
        if self.text != "words":
            return None
        known = memory.model.words if memory else None
        return known or Vocabulary.of(crowd, self.word_prior)

    def _truth(self, codec: Codec) -> Truth:
        if self.is_chain:
            return Truth.chain(codec, self.truth_prior)
        return Truth.independent(len(codec.tags), self.truth_prior, is_point=self.is_point)

    def _prior(self, crowd: Crowd, rows: Rows, history: Floats | None) -> Prior:
        mask = None
        if rows.n_previous > 1 and not crowd.tagset.rules.is_plain:
            mask = previous_mask(crowd, rows.n_previous)
        bonus: float | Floats = self.epsilon0
        if len(self.trusted):
            bonus = np.full(crowd.n_workers, float(self.epsilon0))
            for name in self.trusted:
                bonus[crowd.worker_index(name)] += TRUST
        return Prior(self.alpha0, bonus, mask, self.forbidden, None, history)

    def _best_prior(self, ready: Prepared, stopping: Stopping, given: Given) -> Prepared:
        """Try the grid, each from where the last stopped, and keep the largest evidence bound."""
        best, found = -np.inf, ready
        sums = ready.sums
        around = Surroundings(given.runner)
        quick = Stopping(max(stopping.tol, 1e-4), min(stopping.max_iter, 20))
        for off, bonus in GRID:
            extra = np.asarray(ready.model.prior.bonus) - self.epsilon0
            prior = replace(ready.model.prior, off=off, bonus=bonus + extra)
            model = replace(ready.model, prior=prior)
            fit = run(model, ready.shards, sums, quick, around)
            sums = fit.sums
            if fit.trace[-1] > best:
                best = fit.trace[-1]
                note = f"prior chosen by the evidence bound: alpha0={off}, epsilon0={bonus}"
                found = replace(ready, model=model, sums=sums, notes=(*ready.notes, note))
        return found

    def _best_start(self, ready: Prepared, stopping: Stopping, given: Given) -> Fit:
        """Run from votes, and from as many other points as asked for; keep the best objective."""
        best = run(ready.model, ready.shards, ready.sums, stopping, self._around(ready, given))
        rng = np.random.default_rng(self.random_state)
        for _ in range(1, self.n_starts):
            sums = ready.sums.copy()
            # Every row of every worker is believed or doubted anew: the starts really differ.
            n = len(ready.model.rows)
            sums.counts[:n] *= rng.gamma(0.3, 1 / 0.3, size=(n, 1))
            fit = run(ready.model, ready.shards, sums, stopping, Surroundings(given.runner))
            if fit.trace[-1] > best.trace[-1]:
                best = fit
        return best

    def _with_population(self, ready: Prepared, fit: Fit) -> Prepared:
        """Put the mean worker's habits in place of the flat prior."""
        rows, old = ready.model.rows, ready.model.prior
        base = np.zeros((rows.n_previous, rows.n_labels, rows.n_labels))
        by_label = base.transpose(0, 2, 1)  # a view: previous, given, truth
        np.add.at(by_label, (rows.previous, rows.label), fit.sums.counts[: len(rows)])
        base += 0.1
        base *= np.mean(old.bonus) / base.sum(axis=2, keepdims=True)
        prior = replace(old, base=np.maximum(base, 0.1))
        note = "prior: the habits of all workers together"
        model = replace(ready.model, prior=prior)
        return replace(ready, model=model, notes=(*ready.notes, note))

    def _around(self, ready: Prepared, given: Given) -> Surroundings:
        fingerprint = ""
        if given.checkpoint is not None:
            fingerprint = _fingerprint(ready, repr(self))
        return Surroundings(given.runner, given.progress, given.checkpoint, fingerprint)

    def _result(self, ready: Prepared, fit: Fit, given: Given) -> Consensus:
        crowd, codec = ready.crowd, ready.crowd.tagset
        posterior = Posterior(ready.shards, fit.tables, codec, given.runner)
        last = posterior.marginals()
        codes = last.codes
        if self.decode == "mbr" and not codec.rules.is_plain:
            codes = decode_spans(last, crowd.offsets, codec)
        spans = spans_of(codes, crowd.offsets, codec)
        paths, masses = posterior.confidences(codes, spans, crowd.offsets)
        notes = list(ready.notes)
        n_open = int(np.count_nonzero(~_active(ready.shards)))
        if n_open:
            notes.append(f"{n_open} items without answers are left open")
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
            memory=Memory(ready.model, fit.sums, fit.posterior, crowd.worker_ids, codec),
        )


def _workers(result: Consensus) -> Any:
    return worker_table(result.crowd, result.codes, result.token_probs)


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


def _active(shards: Sequence[Evidence]) -> NDArray[np.bool_]:
    return np.concatenate([shard.active for shard in shards])


def _fingerprint(ready: Prepared, params: str) -> str:
    """Name a run by its answers and its parameters."""
    digest = hashlib.blake2b(params.encode(), digest_size=16)
    for shard in ready.shards:
        for array in (shard.offsets, shard.bounds, shard.row, shard.gold):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
