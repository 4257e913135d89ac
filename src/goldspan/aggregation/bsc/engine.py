"""The engine of Bayesian sequence combination: prior of the truth, word model, variational rounds.

An E-step is one forward-backward pass over the truth of every item (`goldspan.chains`), with the
expected logarithms of all parameters in the place of probabilities:

    f_1(j) ~ exp(E ln T_start,j + ll_1(j)),   f_t(j) ~ exp(ll_t(j)) sum_i f_{t-1}(i) exp(E ln T_ij),
    ll_t(j) = sum_k E ln A^k(j, previous label of k, label of k)

(Simpson & Gurevych 2019; docs/math.md, section 4.)
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from goldspan.aggregation.bsc.evidence import (
    Evidence,
    Stored,
    Sums,
    Tables,
)
from goldspan.aggregation.bsc.kernels import token_step, vote_step
from goldspan.aggregation.families import Families
from goldspan.aggregation.workermodels import Block, Prior, Rows, WorkerModel
from goldspan.chains.forward_backward import expect_items, expect_lanes
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.protocols import Checkpoint, Progress, Runner, Serial, here
from goldspan.spans import Codec

# --------------------------------------------------------------------------------------------------
# The prior of the truth: Dirichlets over its first label and over its steps.


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Truth:
    """Dirichlets over labels, in a table of rows of which some cells do not exist."""

    allowed: NDArray[np.bool_]  # [n_rows, J]
    end: Floats  # [J], 1 where an item may end, else 0
    prior: float = 1.0  # Pseudo-count of every allowed cell
    is_point: bool = False  # Whether to use shares in place of expected logarithms (EM)

    @classmethod
    def chain(cls, codec: Codec, prior: float = 1.0) -> Truth:
        """Make the chain of a tag set; PLAIN allows every step."""
        allowed = np.vstack([codec.start_mask, codec.mask])
        return cls(allowed, codec.end_mask.astype(np.float64), prior)

    @classmethod
    def independent(cls, n_labels: int, prior: float = 1.0, *, is_point: bool = False) -> Truth:
        """Make one distribution for all tokens."""
        allowed = np.ones((1, n_labels), np.bool_)
        return cls(allowed, np.ones(n_labels), prior, is_point)

    @property
    def is_chain(self) -> bool:
        """Whether the label before counts."""
        return len(self.allowed) > 1

    def log_table(self, counts: Floats) -> Floats:
        """Return E ln T after some counts, float64 [n_rows, J]; -inf where nothing is allowed."""
        alpha = np.where(self.allowed, self.prior + counts, 1.0)
        total = (alpha * self.allowed).sum(axis=1, keepdims=True)
        logs = np.log(alpha / total) if self.is_point else digamma(alpha) - digamma(total)
        return np.where(self.allowed, logs, -np.inf)

    def divergence(self, counts: Floats) -> float:
        """Return KL(posterior || prior); for points minus the log density, without constants."""
        ok = self.allowed
        alpha = np.where(ok, self.prior + counts, 1.0)
        logs = np.where(ok, self.log_table(counts), 0.0)
        if self.is_point:
            return float(-(self.prior * logs).sum())
        total, before = (alpha * ok).sum(axis=1), self.prior * ok.sum(axis=1)
        parts = gammaln(self.prior) - gammaln(alpha) + (alpha - self.prior) * logs
        return float((gammaln(total) - gammaln(before)).sum() + (parts * ok).sum())


# --------------------------------------------------------------------------------------------------
# Word naive Bayes: every true label has a Dirichlet over the word types (docs/math.md, section 6).


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The word types of a corpus."""

    words: pa.Array
    prior: float  # nu0, pseudo-count of every type for every label

    @classmethod
    def of(cls, crowd: Crowd, prior: float) -> Vocabulary:
        """Collect the types of a crowd's tokens."""
        return cls(pc.unique(_flat(crowd)).sort(), prior)

    def __len__(self) -> int:
        """Count the types, and one for all words that are not among them."""
        return len(self.words) + 1

    def ids(self, crowd: Crowd) -> NDArray[np.int32]:
        """Return the word of every token, int32 [n_tokens]; unknown words share the last id."""
        found = pc.index_in(_flat(crowd), value_set=self.words)
        return np.asarray(pc.fill_null(found, len(self.words)).to_numpy(), np.int32)

    def log_table(self, counts: Floats) -> Floats:
        """Return E ln omega, float64 [n_words, J]."""
        alpha = self.prior + counts
        return np.asarray(digamma(alpha) - digamma(alpha.sum(axis=0)))

    def divergence(self, counts: Floats) -> float:
        """Return KL(posterior || prior)."""
        alpha, before = self.prior + counts, self.prior * len(self)
        parts = gammaln(self.prior) - gammaln(alpha) + counts * self.log_table(counts)
        totals = gammaln(alpha.sum(axis=0)) - gammaln(before)
        return float(totals.sum() + parts.sum())


def _flat(crowd: Crowd) -> pa.Array:
    return crowd.tokens.flatten().cast(pa.large_string())


# --------------------------------------------------------------------------------------------------
# Variational Bayes (or EM) over shards of items: E-step, updates, evidence bound.


ENTRIES_PER_SHARD = 1 << 15
MAX_SHARDS, MAX_SINGLE = 4096, 32
"""Most shards: of sequences, whose own tables should stay in the caches, and of single labels."""
LARGE = BLOCK = 1 << 22
"""Cells of a table from which it is updated in blocks, two at least, and of a block, at most.

In smaller blocks the same takes more time: memory comes and goes in small pages then.
"""
SETTLE = 20
POSTERIOR = "posterior/"
INTERRUPTED = "interrupted"
"""The engine's `stop_reason` after Ctrl-C."""


@dataclass(frozen=True, eq=False)
class Model:
    """What stays fixed while the engine runs."""

    workers: WorkerModel[Any]
    rows: Rows  # What its rows stand for
    prior: Prior
    truth: Truth
    words: Vocabulary | None = None  # The vocabulary, or None without text

    @property
    def n_entries(self) -> int:
        """Rows of the table: the workers' and the words'."""
        return len(self.rows) + (len(self.words) if self.words else 0)

    def no_sums(self) -> Sums:
        """Return statistics of nothing."""
        n_labels = self.rows.n_labels
        return Sums(np.zeros((self.n_entries, n_labels)), np.zeros_like(self.truth.allowed, float))

    def update(
        self, sums: Sums, last: Any, runner: Runner | None = None
    ) -> tuple[Any, Tables, float]:
        """Return the workers' posterior, the tables of the next E-step, and the divergence."""
        # A large table is updated in blocks of workers, always the same ones
        if sums.truth.shape != self.truth.allowed.shape:
            raise InputError(
                "the earlier result is of a method with a chain and this one has none, or the "
                "other way round: start from a result of the same method"
            )
        n = len(self.rows)
        if n * self.rows.n_labels >= LARGE:
            posterior, tables, apart = self._by_blocks(sums, last, runner)
        else:
            posterior = sums.posterior
            if posterior is None:
                posterior = self.workers.posterior(sums.counts[:n], self.rows, self.prior, last)
            tables = self.tables(posterior, sums)
            logs = tables.log_table[:n]
            apart = self.workers.divergence(posterior, self.rows, self.prior, logs)
        apart += self.truth.divergence(sums.truth)
        if self.words:
            apart += self.words.divergence(sums.counts[n:])
        return posterior, tables, apart

    def tables(self, posterior: Any, sums: Sums) -> Tables:
        """Return the tables of the E-step that belong to a posterior and its statistics."""
        logs = self.workers.log_table(posterior, self.rows)
        if self.words:
            words = self.words.log_table(sums.counts[len(self.rows) :])
            logs = np.concatenate([logs, words])
        logs = np.ascontiguousarray(logs)
        return Tables(logs, np.exp(logs), self._truth(sums), self.truth.end)

    def _by_blocks(self, sums: Sums, last: Any, runner: Runner | None) -> tuple[Any, Tables, float]:
        """Return the workers' posterior, the tables, and the workers' divergence."""
        at_hand, known = here(runner or Serial()), sums.posterior
        n_blocks = -(-len(self.rows) * self.rows.n_labels // BLOCK)
        blocks = self.rows.blocks(-(-len(self.rows) // (n_blocks + n_blocks % 2)))
        shards = [_Shard(self, block, sums.counts[block.row], last, known) for block in blocks]
        made = at_hand.map(_update_block, shards, None)
        columns = {name: [one.arrays.pop(name) for one in made] for name in list(made[0].arrays)}
        if self.words:
            words = self.words.log_table(sums.counts[len(self.rows) :])
            columns[_LOGS].append(words)
            columns[_TABLE].append(np.exp(words))
        whole = dict(zip(columns, at_hand.map(_drained, list(columns.values()), None), strict=True))
        tables = Tables(whole.pop(_LOGS), whole.pop(_TABLE), self._truth(sums), self.truth.end)
        posterior = self.workers.restore(whole) if known is None else known
        return posterior, tables, sum(one.apart for one in made)

    def _truth(self, sums: Sums) -> Floats:
        return np.asarray(np.exp(self.truth.log_table(sums.truth)))


@dataclass(frozen=True, eq=False)
class _Shard:
    """A block of workers to update: the whole model, and what is known of the block."""

    model: Model
    block: Block
    counts: Floats
    last: Any
    known: Any


_LOGS, _TABLE = "log_table", "table"


@dataclass(frozen=True, eq=False)
class _Made:
    """What a block was updated to: its tables and its posterior by name, and the divergence."""

    arrays: dict[str, Floats]
    apart: float


def _update_block(shard: _Shard, _: None) -> _Made:
    """Update a block of workers."""
    model, workers, block = shard.model, shard.model.workers, shard.block
    rows, prior = model.rows.of_block(block), model.prior.of_block(block)
    arrays: dict[str, Floats] = {}
    if shard.known is None:
        last = None if shard.last is None else workers.of_block(shard.last, block)
        posterior = workers.posterior(shard.counts, rows, prior, last)
        arrays |= workers.arrays(posterior)
    else:
        posterior = workers.of_block(shard.known, block)
    logs = np.ascontiguousarray(workers.log_table(posterior, rows))
    arrays |= {_LOGS: logs, _TABLE: np.exp(logs)}
    return _Made(arrays, workers.divergence(posterior, rows, prior, logs))


def _drained(parts: list[Floats], _: None) -> Floats:
    """Return parts of a table as one, and empty the list, as tables are large."""
    whole = np.concatenate(parts)
    parts.clear()
    return whole


@dataclass(frozen=True, eq=False)
class Fit:
    """Where the engine stopped."""

    sums: Sums  # The statistics of the last E-step but one, which made the parameters
    posterior: Any
    source: Tables | Model  # The tables of the last E-step, or the model that makes them
    trace: tuple[float, ...]  # The objective after every step
    converged: bool  # Whether it converged
    stop_reason: str  # Why it stopped

    @cached_property
    def tables(self) -> Tables:
        """The tables of the last E-step."""
        if isinstance(self.source, Tables):
            return self.source
        return self.source.tables(self.posterior, self.sums)


@dataclass(frozen=True)
class Stopping:
    """When to stop."""

    tol: float = 1e-5  # Relative change of the objective below which it has converged
    max_iter: int = 100


@dataclass(frozen=True, eq=False)
class RunContext:
    """Where a run works, who is told of every step, and where its state is kept."""

    runner: Runner = field(default_factory=Serial)
    progress: Progress | None = None
    checkpoint: Checkpoint | None = None
    fingerprint: str = ""


def cut(evidence: Evidence, n_rows: int) -> list[Evidence]:
    """Cut items into shards of about equal work; depends on the input only."""
    # Every shard fills a table of its own, so that large tables get few shards
    n_entries = len(evidence.row)
    n_items = len(evidence.active)
    wanted = n_entries // max(ENTRIES_PER_SHARD, 2 * n_rows)
    most = MAX_SINGLE if evidence.n_tokens <= n_items else MAX_SHARDS
    n_shards = int(np.clip(wanted, 1, min(most, max(1, n_items))))
    if n_shards == 1 and n_entries > 4 * ENTRIES_PER_SHARD and n_items > 1:
        n_shards = 2
    work = evidence.bounds[evidence.offsets] + evidence.offsets
    targets = work[0] + (work[-1] - work[0]) * np.arange(1, n_shards) // n_shards
    edges = np.unique(np.concatenate([[0], np.searchsorted(work, targets), [n_items]]))
    return [evidence.items(int(a), int(b)) for a, b in pairwise(edges)]


def e_step(shard: Evidence | Stored, tables: Tables) -> Sums:
    """Do the E-step for a shard: the statistics that are expected under the tables."""
    shard = shard.loaded()
    local, log_scale = shard.localise(tables)
    counts, truth = np.zeros_like(local.table), np.zeros_like(tables.truth)
    if len(local.truth) == 1:
        arrays = (shard.offsets, shard.bounds, shard.row, shard.active, shard.gold, shard.unary)
        both = (local.table, local.log_table)
        log_z = float(token_step(*arrays, *both, local.truth[0], counts, truth[0]))
    else:
        log_z = _chain_step(shard, local, counts, truth)
    return Sums(shard.globalise(counts, tables), truth, log_z + log_scale)


def _chain_step(shard: Evidence, local: Tables, counts: Floats, truth: Floats) -> float:
    """Do most items side by side, and what is left one by one; return ln Z."""
    known = (shard.offsets, shard.bounds, shard.row)
    chain = (local.truth[0], local.truth[1:], local.end)
    out = (counts, truth[0], truth[1:])
    left = np.zeros(len(shard.active), np.bool_)
    log_z = expect_lanes(
        shard.by_length, *known, shard.gold, shard.unary, local.table, *chain, *out, left
    )
    rest, bad = 0.0, -1
    if left.any():
        both = (local.table, local.log_table)
        rest, bad = expect_items(*known, left, shard.gold, shard.unary, *both, *chain, *out)
    if bad >= 0:
        raise InputError("no legal sequence of tags agrees with the known truth of an item")
    return float(log_z + rest)


def from_votes(model: Model, shards: Sequence[Evidence], runner: Runner) -> Sums:
    """Return the statistics of vote shares, known truth in their place."""
    sums = runner.map_reduce(vote_shard, shards, model, Sums.add)
    return replace(sums, truth=sums.truth * model.truth.allowed)


def vote_shard(shard: Evidence, model: Model) -> Sums:
    """Count the vote shares of a shard, known truth in their place."""
    sums = model.no_sums()
    steps = sums.truth[1:] if model.truth.is_chain else np.zeros((0, 0))
    vote_step(
        shard.offsets, shard.bounds, shard.row, shard.active, shard.gold, shard.weight,
        model.rows.label, sums.counts, sums.truth[0], steps,
    )  # fmt: skip
    return sums


def run(
    model: Model, shards: Sequence[Evidence], sums: Sums, stopping: Stopping, context: RunContext
) -> Fit:
    """Alternate updates and E-steps until the objective changes little."""
    sums, trace, posterior = _resume(model, sums, context)
    begin, reason, done = time.perf_counter(), "max_iter", len(trace)
    last: tuple[Sums, Any] | None = None  # without its tables: those of many workers are large
    try:
        while last is None or len(trace) < stopping.max_iter:
            posterior, new, objective = _step(model, shards, sums, posterior, context.runner)
            trace.append(objective)
            last = sums, posterior
            if not np.isfinite(trace[-1]):
                raise InputError("the objective is not finite: are the priors far too large?")
            if context.progress:
                pace = (time.perf_counter() - begin) / (len(trace) - done)
                left = pace * max(0, stopping.max_iter - len(trace))
                context.progress(len(trace), stopping.max_iter, trace[-1], left)
            if len(trace) > 1 and abs(trace[-1] - trace[-2]) <= stopping.tol * abs(trace[-2]):
                reason = "tol"
                break
            sums = new
            if len(trace) < stopping.max_iter:  # else a resumed run would do a step too many
                _keep(model, sums, trace, posterior, context)
    except KeyboardInterrupt:
        if last is None:
            raise
        reason = INTERRUPTED
    return Fit(*last, model, tuple(trace), reason == "tol", reason)


def _step(
    model: Model, shards: Sequence[Evidence], sums: Sums, last: Any, runner: Runner
) -> tuple[Any, Sums, float]:
    """Return the workers' posterior, the statistics that it expects, and the objective."""
    posterior, tables, apart = model.update(sums, last, runner)
    new = runner.map_reduce(e_step, shards, tables, Sums.add)
    return posterior, new, new.log_z - apart


def settle(model: Model, sums: Sums) -> tuple[Any, Tables]:
    """Return the parameters that belong to some statistics."""
    posterior = None
    for _ in range(SETTLE):
        posterior, tables, _ = model.update(sums, posterior)
    return posterior, tables


def _resume(model: Model, sums: Sums, context: RunContext) -> tuple[Sums, list[float], Any]:
    state = context.checkpoint.load(context.fingerprint) if context.checkpoint else None
    if state is None:
        return sums, [], None
    posterior = model.workers.restore(
        {key[len(POSTERIOR) :]: state[key] for key in state if key.startswith(POSTERIOR)}
    )
    resumed = Sums(np.array(state["counts"]), np.array(state["truth"]))
    return resumed, [float(value) for value in state["trace"]], posterior


def _keep(
    model: Model, sums: Sums, trace: list[float], posterior: Any, context: RunContext
) -> None:
    if context.checkpoint:
        state = {"counts": sums.counts, "truth": sums.truth, "trace": np.array(trace)}
        arrays = model.workers.arrays(posterior)
        state |= {POSTERIOR + name: value for name, value in arrays.items()}
        context.checkpoint.save(context.fingerprint, state)


# --------------------------------------------------------------------------------------------------
# A crowd prepared for the engine, and the name of a run on it.


@dataclass(frozen=True, eq=False)
class EngineInputs:
    """A crowd prepared for the engine."""

    crowd: Crowd
    shards: Sequence[Evidence]
    model: Model  # What stays fixed
    plain_bonus: float  # epsilon0 of workers who are not trusted
    sums: Sums  # The statistics to begin with
    notes: tuple[str, ...]
    dependence: float = 0.0  # How much workers share their mistakes, for methods with +crf
    families: Families | None = None  # Workers who err together; None: everybody errs alone

    def fingerprint(self, method: str, params: Mapping[str, Any], *, is_warm: bool) -> str:
        """Name a run by its answers, tags and parameters, and by what it begins with."""
        parts: list[Any] = [
            getattr(shard, field.name)
            for shard in self.shards
            for field in fields(shard)
            if field.name != "folder"  # of stored evidence, whose digest says what it is
        ]
        rows, prior = self.model.rows, self.model.prior
        parts += [rows.worker, rows.previous, rows.label, prior.bonus]
        parts += [] if prior.history is None else [prior.history]
        parts += [self.sums.counts, self.sums.truth] if is_warm else []
        return fingerprint_of(method, params, self.crowd.tagset, parts)


def fingerprint_of(
    method: str, params: Mapping[str, Any], codec: Codec, parts: Iterable[Any]
) -> str:
    """Name a run by its method, parameters and tags, and by arrays of what it works on."""
    named = (method, sorted(params.items()), codec.encoding, codec.tags)
    digest = hashlib.blake2b(repr(named).encode(), digest_size=16)
    for part in parts:
        array = np.ascontiguousarray(part)
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


# --------------------------------------------------------------------------------------------------
# Several runs of the engine, one after the other, of which one counts; Ctrl-C ends them all.


def is_interrupted(fit: Fit) -> bool:
    """Return whether Ctrl-C ended a run, so that no other may begin."""
    return fit.stop_reason == INTERRUPTED


def interrupted(fit: Fit) -> Fit:
    """Return a fit as what is left after Ctrl-C: more was to come."""
    return replace(fit, converged=False, stop_reason=INTERRUPTED)


def attempt(best: Fit | None, again: Callable[[], Fit]) -> Fit:
    """Run after an earlier run, which is what is left if Ctrl-C comes before the first step."""
    try:
        return again()
    except KeyboardInterrupt:
        if best is None:
            raise
        return interrupted(best)


def best_start(
    model: Model,  # As for `run`, like the rest
    shards: Sequence[Evidence],
    sums: Sums,  # The statistics to begin with
    stopping: Stopping,
    context: RunContext,  # Runner; and progress and checkpoint, which are for the first run only
    *,
    n_starts: int,
    random_state: int | None,  # Seed of the starts beyond the first
    worker_ids: pa.Array,  # Arrow string array [n_workers]: their order does not matter
) -> Fit:
    """Run from some statistics, and from as many other points as asked for."""
    best = run(model, shards, sums, stopping, context)
    rng = np.random.default_rng(random_state)

    @cache
    def order() -> NDArray[np.int64]:
        # Workers are drawn in the order of their ids: that in which they came does not matter.
        names = np.asarray(worker_ids.to_pylist(), object).astype(str)
        rank = np.argsort(np.argsort(names))
        return np.argsort(rank[model.rows.worker], kind="stable")

    def other() -> Sums:
        # Every row of every worker is weighted anew: the starts really differ.
        counts = sums.counts.copy()
        counts[order()] *= rng.gamma(0.3, 1 / 0.3, size=(len(order()), 1))
        return Sums(counts, sums.truth)

    def again() -> Fit:  # no name for what it begins with, which is large: the run lets go of it
        return run(model, shards, other(), stopping, RunContext(context.runner))

    for _ in range(1, n_starts):
        if not is_interrupted(best):
            fit = attempt(best, again)
            best = fit if fit.trace[-1] > best.trace[-1] else best
            best = interrupted(best) if is_interrupted(fit) else best
    return best
