"""CRF-CONC, CRF-MA (Rodrigues et al. 2013) and MultiCRF (Dredze et al. 2009)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._lazy import lazy
from goldspan.aggregation.base import Aggregator, FitContext, as_crowd, check_words, text_of
from goldspan.aggregation.bsc.engine import RunContext
from goldspan.aggregation.bsc.evidence import Evidence, Tables
from goldspan.aggregation.bsc.posterior import Posterior, consensus_of, workers_of
from goldspan.aggregation.bsc.priors import Decoder
from goldspan.aggregation.consensus import Consensus, unanswered
from goldspan.aggregation.crf.rounds import (
    LATENT,
    NORMALISE,
    CrfInputs,
    Floats,
    Measure,
    Outcome,
    ReliabilityTrace,
    Scores,
    State,
    TokenTargets,
    Totals,
    TrainingSequences,
    carried,
    check_measure,
    draws,
    expectation,
    from_gamma,
    from_measure,
    log_likelihood,
    log_prior,
    measured,
    moved,
    prepare,
    responsibilities,
    run,
)
from goldspan.aggregation.dawid_skene import in_tags_of
from goldspan.aggregation.votes import TokenVote
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.params import MOST, Number, OneOf, Rounds, Seed, Whole, require
from goldspan.protocols import Runner, Serial
from goldspan.spans import Codec
from goldspan.tagger.base import FeatureTagger, transform
from goldspan.tagger.crf import CRF, Masks
from goldspan.tagger.features import read_templates
from goldspan.tagger.hmm import HMM
from goldspan.tagger.kernels import Weights

__getattr__, __dir__, __all__ = lazy(
    __name__, also=("CrfConc", "CrfGold", "CrfMa", "MultiCrf", "MultiCrfMax")
)

# --------------------------------------------------------------------------------------------------
# From a CRF's scores to a result: legal labels, marginals, spans with confidence, alternatives.


TOKENS_PER_SHARD = 20_000
MAX_SHARDS = 8


def posterior_of(
    scores: Scores,
    tokens: NDArray[np.int64],  # [n_items + 1]
    active: NDArray[np.bool_],  # [n_items]; the others are left open
    codec: Codec,
    runner: Runner,
    known: NDArray[np.int16] | None = None,  # [n_tokens], truth that is clamped, -1 unknown
) -> Posterior:
    """Make a posterior of scores."""
    table = _table(scores, tokens)
    end = (scores.end > 0).astype(np.float64)
    tables = Tables(table, np.exp(table), np.vstack([scores.start, scores.step]), end)
    n_tokens = len(table)
    gold = np.zeros(0, np.int16) if known is None or not (known >= 0).any() else known
    every = Evidence(
        tokens, np.arange(n_tokens + 1), np.arange(n_tokens, dtype=np.int32), active, gold,
        np.zeros((0, table.shape[1])),
    )  # fmt: skip
    return Posterior(_cut(every), tables, codec, runner)


def _table(scores: Scores, tokens: NDArray[np.int64]) -> Floats:
    """Return the log scores, largest 0; the last tag's weight stands at the last token."""
    # Single labels have no other place for it, and a constant per token changes nothing
    table = scores.unary.copy()
    last = tokens[1:][np.diff(tokens) > 0] - 1
    table[last] += np.log(np.where(scores.end > 0, scores.end, 1.0))
    if len(table):
        table -= table.max(axis=1, keepdims=True)
    return table


def _cut(evidence: Evidence) -> list[Evidence]:
    """Cut items into shards of about equal numbers of tokens; depends on the input only."""
    tokens, n_items = evidence.offsets, len(evidence.active)
    n_shards = int(np.clip(tokens[-1] // TOKENS_PER_SHARD, 1, MAX_SHARDS))
    edges = np.searchsorted(tokens, tokens[-1] * np.arange(1, n_shards) // n_shards)
    edges = np.unique(np.concatenate([[0], edges, [n_items]]))
    return [evidence.items(int(a), int(b)) for a, b in pairwise(edges)]


# --------------------------------------------------------------------------------------------------
# The base class: parameters, rounds, and the way from a crowd to a result.


class CrfMethod(Aggregator):
    """Base of the CRF aggregators.

    A subclass implements `_begin` and `_round`.

    Args:
        templates: Feature templates: a named set, a TOML file, or a list.
        c2: Penalty of the squared weights; the Gaussian prior has variance 1 / (2 c2).
        min_count: Features that occur less often are left out.
        max_iter: Most rounds.
        steps: Most steps of L-BFGS in a round.
        tol: Relative change of the objective over a round at which to stop.
        decode: "viterbi", the likeliest path, or "mbr", the spans with the largest expected F1.
        random_state: Unused here: nothing is drawn.
    """

    can_go_on = True
    is_clamped = True
    """Whether known truth is put in the place of the CRF's labels."""

    of_skipped = "filled in by the CRF"
    """The note on skipped tokens; "" for none."""

    templates: str | Sequence[str] = "default"
    c2: Annotated[float, Number(0, MOST)] = 0.5
    min_count: Annotated[int, Whole(1)] = 1
    max_iter: Rounds = 10
    steps: Annotated[int, Whole(1)] = 50
    tol: Annotated[float, Number(0)] = 1e-3
    decode: Decoder = "viterbi"
    random_state: Seed = 0

    @abstractmethod
    def _begin(self, inputs: CrfInputs, state: State, start: Consensus | None) -> State:
        """Return the state before the first round; the weights of a warm start are set."""

    @abstractmethod
    def _round(self, inputs: CrfInputs, state: State) -> State:
        """Return the state after another round."""

    def _reason_to_stop(self, state: State) -> str:
        return "tol" if moved(state.trace) <= self.tol else ""

    def _finish(self, result: Consensus, inputs: CrfInputs, state: State) -> Consensus:  # noqa: ARG002
        """Add to a result what only this method knows."""
        return result

    def predict(self, crowd: Any, *, runner: Runner | None = None) -> Consensus:
        """Label other items with the CRF; they need no answers, and theirs are not used."""
        self._check()
        tagger: FeatureTagger = self.result_.tagger
        found, _ = in_tags_of(tagger.codec_, as_crowd(crowd), FitContext())
        if found.tagset != tagger.codec_:
            raise InputError(
                f"the tagger has the tags {' '.join(tagger.codec_.tags)}, this crowd "
                f"{' '.join(found.tagset.tags)}: it must not have others"
            )
        check_words(found)
        masks = Masks.of(tagger.codec_, hard=True)
        features = transform(tagger.features_, text_of(found))
        scores = Scores.of(features, tagger.weights_, masks)
        active = np.diff(found.offsets) > 0
        args = (scores, found.offsets, active, found.tagset, runner or Serial())
        result = consensus_of(found, posterior_of(*args), decode=self.decode, method=self.name)
        reason = "predicted with fixed parameters"
        return replace(result, params=self.get_params(), stop_reason=reason, tagger=tagger)

    def _aggregate(self, crowd: Crowd, context: FitContext) -> Consensus:
        inputs = prepare(crowd, context, self.templates, self.min_count)
        warm = None
        if context.start is not None:
            warm = inputs.carried(_tagger_of(context.start, type(self._untrained(inputs))))
        begin = self._begin(inputs, State(weights=warm), context.start)
        name = ""
        if context.checkpoint is not None:
            name = inputs.fingerprint(self.name, self._lasting_params(), begin)
        run_context = RunContext(context.runner, context.progress, context.checkpoint, name)
        one_round = partial(self._round, inputs)
        outcome = run(begin, one_round, self._reason_to_stop, self.max_iter, run_context)
        return self._result(inputs, outcome)

    def _lasting_params(self) -> dict[str, Any]:
        """Return the parameters with a `repr` that another process has too."""
        return self.get_params()

    def _result(self, inputs: CrfInputs, outcome: Outcome) -> Consensus:
        crowd, state = inputs.crowd, outcome.state
        scores = inputs.scores(state.weights)
        known = inputs.known if self.is_clamped else None
        every = np.ones(crowd.n_items, np.bool_)  # words are evidence without answers, too
        args = (scores, crowd.offsets, every, crowd.tagset, inputs.runner, known)
        result = consensus_of(crowd, posterior_of(*args), decode=self.decode, method=self.name)
        tagger = self._untrained(inputs)
        assert state.weights is not None
        tagger.weights_ = state.weights
        tagger.documents_ = inputs.text.group is not None
        tagger.trace_ = tuple(-value for value in state.trace)
        tagger.converged_, tagger.stop_reason_ = outcome.converged, outcome.reason
        notes, n_alone = list(inputs.notes), int(np.count_nonzero(~inputs.is_answered))
        if inputs.sequences.n_skipped and self.of_skipped:
            notes.append(f"{inputs.sequences.n_skipped} skipped tokens {self.of_skipped}")
        notes += unanswered(n_alone, "labelled by their words alone")
        result = replace(
            result,
            trace=state.trace,
            converged=outcome.converged,
            stop_reason=outcome.reason,
            notes=tuple(notes),
            tagger=tagger,
        )
        return self._finish(result, inputs, state)

    def _untrained(self, inputs: CrfInputs) -> CRF | HMM:
        """Return a tagger with tags and features that has learned nothing yet."""
        tagger = CRF(
            templates=[str(t) for t in read_templates(self.templates)],
            encoding=inputs.crowd.tagset.encoding,
            c2=self.c2, min_count=self.min_count, max_iter=self.steps,
        )  # fmt: skip
        tagger.codec_, tagger.features_ = inputs.crowd.tagset, inputs.numbers
        return tagger


def _tagger_of(start: Consensus, kind: type[CRF | HMM]) -> CRF | HMM:
    if isinstance(start.tagger, kind):
        return start.tagger
    wanted = "an HMM: of crf-ma with model='hmm'"
    if kind is CRF:
        wanted = "a CRF: of crf-conc, crf-ma, multicrf, multicrf-max or a bsc method with +crf"
    raise InputError(f"start must be a result with {wanted}")


# --------------------------------------------------------------------------------------------------
# CRF-CONC and CRF-GOLD: a CRF trained on all answers, and one trained on the truth.


class CrfConc(CrfMethod):
    r"""CRF-CONC: all workers' sequences side by side with weight 1.

    A round is some steps of L-BFGS; with skipped tokens it also fills them in again. An item whose
    truth is known counts as often as it was answered, but with its truth.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"token\ta\tb\nRome\tB-LOC\tB-LOC\nwins\tO\tO\n", format="wide")
    >>> CrfConc().fit_predict(crowd)
    [['B-LOC', 'O']]
    """

    name = "crf-conc"

    def _begin(self, inputs: CrfInputs, state: State, start: Consensus | None) -> State:  # noqa: ARG002
        return state

    def _weights(self, inputs: CrfInputs) -> tuple[Floats, Floats]:
        """Return the weight of every answer, and of every item with known truth."""
        n_answers = np.diff(inputs.crowd.by_item.bounds).astype(np.float64)
        return np.ones(len(inputs.sequences.item)), np.maximum(n_answers, 1.0)

    def _round(self, inputs: CrfInputs, state: State) -> State:
        targets = inputs.targets(*self._weights(inputs), inputs.scores(state.weights))
        weights, found = inputs.train(targets, state.weights, self.c2, self.steps)
        return replace(state, weights=weights, trace=(*state.trace, -found.trace[-1]))


class CrfGold(CrfConc):
    """CRF-GOLD: a CRF trained on the truth, the upper bound of Rodrigues et al. 2013; for studies.

    It needs `fit(crowd, gold=…)`. Answers are not used, and the labels are the CRF's own, also
    where the truth is known.
    """

    name = "crf-gold"
    is_clamped = False
    of_skipped = ""  # of workers, whose answers it does not use

    def _begin(self, inputs: CrfInputs, state: State, start: Consensus | None) -> State:  # noqa: ARG002
        if not inputs.truth.n_given.any():
            raise InputError("crf-gold learns from known truth: call fit(crowd, gold=…)")
        return state

    def _weights(self, inputs: CrfInputs) -> tuple[Floats, Floats]:
        return np.zeros(len(inputs.sequences.item)), np.ones(inputs.crowd.n_items)


# --------------------------------------------------------------------------------------------------
# CRF-MA: a CRF and the reliability of workers, learned together (docs/math.md, section 5).


STARTS = ("votes", "random")
MODELS = ("crf", "hmm")


class CrfMa(CrfMethod):
    r"""CRF-MA (Rodrigues, Pereira and Ribeiro 2013).

    Args:
        normalise: How support is compared between workers who answered different items: "token",
            "ratio" or "none", which `latent="bernoulli"` has not; see `log_weights` in `rounds`.
        tau: How sharp "token" is, at most 1000.
        reliability: "f1" of spans (of PLAIN tags the accuracy), without true spans that touch a
            token which the worker skipped, and given spans that touch a token whose truth is
            unknown; "accuracy" of tokens; a function of crowd and codes that gives a number per
            worker; or "posterior": the exact M-step.
        power: Of the measure: 1 is eq. 18, 2 the paper's experiments; at most 100.
        alpha: Of the Dirichlet prior: a number from 1 to 1e12, or one by worker id (others 1). A
            worker has alpha - 1 pseudo-counts; all measures together, as shares, count 1. With
            `latent="bernoulli"` of the prior Beta(alpha, 1), and each measure counts 1.
        strength: What the pseudo-counts are multiplied by, at most 1e12.
        min_answers: Workers with fewer answers are left out.
        begin: "votes": reliabilities against the majority vote; or "random".
        model: "crf", or "hmm", a hidden Markov model in its place (section 5 of the paper) with the
            defaults of `goldspan.tagger.HMM`. Its M-step counts; c2 and steps have no part in it.
            It takes features as independent: few templates, such as "hmm", suit it.
        latent: "multinomial": one worker is right, the others answer at random (eq. 6); or
            "bernoulli": each is right, or answers at random, on their own (section 3.3). Exact EM
            of either is `normalise="ratio"` with `reliability="posterior"`. How random answers are
            modelled then decides who is right: against even chances over all tags nearly everyone.
        c2: Penalty of the squared weights; the Gaussian prior has variance 1 / (2 c2). The weights
            of all workers sum up to 1, so that an item counts less than in a CRF's training; with
            `latent="bernoulli"` it counts as often as it is believed, and a penalty as strong per
            item is as many times larger.
        tol: Relative change of the expectation, or largest change of a reliability over the mean
            one, at which to stop.
        random_state: Seed of `begin="random"`.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"token\ta\tb\nRome\tB-LOC\tB-LOC\nwins\tO\tO\n", format="wide")
    >>> CrfMa(c2=0.1).fit_predict(crowd)
    [['B-LOC', 'O']]
    """

    name = "crf-ma"

    normalise: Annotated[str, OneOf(NORMALISE)] = "token"
    tau: Annotated[float, Number(0, 1e3)] = 1.0
    reliability: Annotated[str | Measure, check_measure] = "f1"
    power: Annotated[float, Number(0, 100)] = 2.0
    alpha: Annotated[float | Mapping[str, float], _check_alpha] = 1.0
    strength: Annotated[float, Number(0, MOST)] = 1.0
    min_answers: Annotated[int, Whole(1)] = 1
    begin: Annotated[str, OneOf(STARTS)] = "votes"
    model: Annotated[str, OneOf(MODELS)] = "crf"
    latent: Annotated[str, OneOf(LATENT)] = "multinomial"
    c2: Annotated[float, Number(0, MOST)] = 0.1

    def _check(self) -> None:
        super()._check()
        if self.latent == "bernoulli" and self.normalise == "none":
            raise InputError(
                f"{self.name}: latent='bernoulli' needs normalise='token' or 'ratio': there "
                "random answers do not cancel"
            )

    def _begin(self, inputs: CrfInputs, state: State, start: Consensus | None) -> State:
        crowd = inputs.crowd
        kept = self._n_given(inputs) > 0
        if not kept.any():
            raise InputError(f"no worker has {self.min_answers} answers: lower min_answers")
        if (
            start is not None
            and isinstance(start.memory, ReliabilityTrace)
            and start.params.get("latent", LATENT[0]) == self.latent  # not on another scale
        ):
            pi = carried(start.memory, crowd, kept, self.latent)
        elif self.begin == "random":
            drawn = draws(crowd.worker_ids.to_pylist(), self.random_state)
            pi = from_gamma(drawn, np.ones(len(drawn)), kept, self.latent)
        else:
            codes = TokenVote().fit(crowd).result_.codes
            codes = np.where(inputs.known >= 0, inputs.known, codes)
            pi = self._from_truth(crowd, codes, kept)
        return replace(state, arrays={"pi": pi[None]})

    def _round(self, inputs: CrfInputs, state: State) -> State:
        crowd, scores = inputs.crowd, inputs.scores(state.weights)
        pi = state.arrays["pi"][-1]
        gamma = pi  # before there is a CRF, nothing else is known of the workers
        if state.weights is not None:
            totals = self._totals(inputs, scores)
            gamma = responsibilities(pi, totals, self.normalise, self.tau, self.latent)
        targets = inputs.targets(gamma[crowd.latest.worker], np.ones(crowd.n_items), scores)
        if self.model == "crf":
            weights = inputs.train(targets, state.weights, self.c2, self.steps)[0]
        else:
            weights = self._untrained(inputs).fit_targets(inputs.features, targets).weights_
        scores = inputs.scores(weights)
        pi = self._reliabilities(inputs, gamma, scores)
        found = self._judged(inputs, weights, scores, gamma, pi)
        old = state.arrays
        arrays = {"pi": np.vstack([old["pi"], pi])}
        for name, value in (("gamma", gamma[None]), *found.items()):
            arrays[name] = np.concatenate([old[name], value]) if name in old else value
        return State(weights, (*state.trace, float(found["expectation"][0])), arrays)

    def _untrained(self, inputs: CrfInputs) -> CRF | HMM:
        if self.model == "crf":
            return super()._untrained(inputs)
        templates = [str(t) for t in read_templates(self.templates)]
        codec = inputs.crowd.tagset
        tagger = HMM(templates=templates, encoding=codec.encoding, min_count=self.min_count)
        tagger.codec_, tagger.features_ = codec, inputs.numbers
        return tagger

    def _judged(
        self, inputs: CrfInputs, weights: Weights, scores: Scores, gamma: Floats, pi: Floats
    ) -> dict[str, Floats]:
        """Return the expectation and the objective, log-priors and known truth included."""
        totals = self._totals(inputs, scores)
        apart = log_prior(pi, self._alpha(inputs.crowd), totals.kept, self.latent)
        if self.model == "crf":
            apart -= self.c2 * float(weights.vector @ weights.vector)
        is_known = inputs.truth.n_given > 0
        apart += float(inputs.truth.log_probs(scores)[is_known].sum())
        return {
            "expectation": np.array([expectation(gamma, pi, totals, self.latent) + apart]),
            "objective": np.array([log_likelihood(pi, totals, self.latent) + apart]),
        }

    def _reliabilities(self, inputs: CrfInputs, gamma: Floats, scores: Scores) -> Floats:
        """Update pi (eq. 17 and 18)."""
        crowd, kept = inputs.crowd, self._n_given(inputs) > 0
        if self.reliability == "posterior":
            return from_gamma(gamma, self._alpha(crowd), kept, self.latent)
        args = (crowd.offsets, inputs.is_answered, crowd.tagset, inputs.runner, inputs.known)
        codes = posterior_of(scores, *args).marginals(np.inf).codes
        return self._from_truth(crowd, codes, kept)

    def _from_truth(
        self, crowd: Crowd, codes: NDArray[np.int16], kept: NDArray[np.bool_]
    ) -> Floats:
        found = measured(crowd, codes, self.reliability)
        return from_measure(found, self.power, self._alpha(crowd), kept, self.latent)

    def _n_given(self, inputs: CrfInputs) -> NDArray[np.int64]:
        """Count labels, int64 [n_workers]; 0 for workers who are left out."""
        worker, n_workers = inputs.crowd.latest.worker, inputs.crowd.n_workers
        given = inputs.sequences.n_given
        n_answers = np.bincount(worker, given > 0, n_workers)
        labels = np.bincount(worker, given, n_workers).astype(np.int64)
        return np.where(n_answers >= self.min_answers, labels, 0)

    def _totals(self, inputs: CrfInputs, scores: Scores) -> Totals:
        logs = np.where(inputs.sequences.n_given > 0, inputs.sequences.log_probs(scores), 0.0)
        total = np.bincount(inputs.crowd.latest.worker, logs, inputs.crowd.n_workers)
        return Totals(total.astype(np.float64), self._n_given(inputs), inputs.n_labels)

    def _alpha(self, crowd: Crowd) -> Floats:
        """Return the prior's parameters, float64 [n_workers]; `strength` is in them."""
        alpha = np.ones(crowd.n_workers)
        if isinstance(self.alpha, Mapping):
            ids = crowd.worker_ids.to_pylist()
            unknown = sorted(set(self.alpha) - set(ids))
            if unknown:
                raise InputError(f"alpha: there is no worker {', '.join(map(repr, unknown))}")
            alpha[:] = [float(self.alpha.get(name, 1.0)) for name in ids]
        else:
            alpha[:] = self.alpha
        return np.asarray(1 + self.strength * (alpha - 1))

    def _reason_to_stop(self, state: State) -> str:
        before, now = state.arrays["pi"][-2:]
        if len(state.trace) > 1 and np.abs(now - before).max() <= self.tol * now[now > 0].mean():
            return "reliabilities have converged"
        return "expectation has converged" if moved(state.trace) <= self.tol else ""

    def _finish(self, result: Consensus, inputs: CrfInputs, state: State) -> Consensus:
        begin, *pi = state.arrays["pi"]
        own = {name: state.arrays[name] for name in ("gamma", "expectation", "objective")}
        trace = ReliabilityTrace(inputs.crowd.worker_ids, begin, pi=np.array(pi), **own)
        notes = [f"normalise: {self.normalise}", *result.notes]
        left_out = int(np.count_nonzero(self._n_given(inputs) == 0))
        notes += [f"{left_out} workers are left out: too few answers"] if left_out else []
        return replace(result, memory=trace, make_workers=_workers, notes=tuple(notes))

    def _lasting_params(self) -> dict[str, Any]:
        params = self.get_params()
        if callable(self.reliability):
            params["reliability"] = getattr(self.reliability, "__qualname__", "")
        if isinstance(self.alpha, Mapping):
            params["alpha"] = sorted(self.alpha.items())
        return params


def _check_alpha(alpha: Any) -> None:
    if not isinstance(alpha, Mapping) and (isinstance(alpha, str) or hasattr(alpha, "__iter__")):
        raise InputError(
            f"alpha must be a number for all workers, or a mapping from worker ids to numbers, "
            f'such as {{"ana": 2.0}}, not {alpha!r}: a list does not say whose number is whose'
        )
    given = alpha if isinstance(alpha, Mapping) else {"": alpha}
    for worker, value in given.items():
        require(f"alpha of worker {worker}" if worker else "alpha", value, Number(1, MOST))


def _workers(result: Consensus) -> pa.Table:
    """Add to the table of workers their reliability and weight in the last round."""
    trace: ReliabilityTrace = result.memory
    table = workers_of(result).append_column("reliability", pa.array(trace.pi[-1]))
    return table.append_column("gamma", pa.array(trace.gamma[-1]))


# --------------------------------------------------------------------------------------------------
# MultiCRF: every token has several labels, one of which is right (Dredze et al. 2009).


MULTI_STARTS = ("votes", "uniform")
LEAST_PRIOR = 1e-12
"""Of a candidate."""


class MultiCrf(CrfMethod):
    r"""MultiCRF (Dredze, Talukdar and Crammer 2009).

    A token that nobody labelled may be anything; known truth is its token's only candidate. Items
    whose candidates make no well-formed sequence are not trained on; the notes count them.

    Args:
        begin: Priors before the first round: "votes", the same for every worker's label, so that a
            candidate begins with its share of the votes; or "uniform", the same for every distinct
            label, however many gave it.
        tol: Mean change of a token's priors over a round at which to stop.
    """

    name = "multicrf"
    of_skipped = "name no candidate"
    is_max = False

    begin: Annotated[str, OneOf(MULTI_STARTS)] = "votes"
    tol: Annotated[float, Number(0)] = 2e-3

    def _begin(self, inputs: CrfInputs, state: State, start: Consensus | None) -> State:  # noqa: ARG002
        return replace(state, arrays={"prior": candidates(inputs, self.begin)})

    def _round(self, inputs: CrfInputs, state: State) -> State:
        prior, moved = state.arrays["prior"], np.inf
        if state.weights is not None:
            new = updated(prior, self._marginals(inputs, inputs.scores(state.weights)))
            moved = float(np.abs(new - prior).sum(axis=1).mean() / 2)
            prior = new
        believed = self._scores(inputs, prior)
        sequences = TrainingSequences.of_nothing(inputs.crowd.offsets)
        if self.is_max and (state.weights is not None or self.begin == "votes"):
            sequences = self._likeliest(inputs, believed)
        sums = TokenTargets.zeros(inputs.crowd.offsets, inputs.n_labels)
        weight = (inputs.is_answered & self._is_possible(inputs, believed)).astype(np.float64)
        sequences.add_filled(sums, weight, believed)
        targets = sums.targets(inputs.features, inputs.numbers.n_features)
        weights, found = inputs.train(targets, state.weights, self.c2, self.steps)
        arrays = {"prior": prior, "moved": np.array(moved)}
        return State(weights, (*state.trace, -found.trace[-1]), arrays)

    def _reason_to_stop(self, state: State) -> str:
        return "priors have converged" if state.arrays["moved"] <= self.tol else ""

    def _finish(self, result: Consensus, inputs: CrfInputs, state: State) -> Consensus:
        possible = self._is_possible(inputs, self._scores(inputs, state.arrays["prior"]))
        n_bad = int(np.count_nonzero(inputs.is_answered & ~possible))
        note = "items were not trained on: no well-formed sequence of their workers' labels"
        return replace(result, notes=(*result.notes, f"{n_bad} {note}")) if n_bad else result

    def _scores(self, inputs: CrfInputs, prior: Floats) -> Scores:
        """Take priors as the scores of a chain in which every legal step is as good."""
        with np.errstate(divide="ignore"):
            logs = np.log(prior)
        return replace(Scores.even(0, inputs.masks), unary=logs)

    def _is_possible(self, inputs: CrfInputs, believed: Scores) -> Any:
        """Return which items have a well-formed sequence of candidates, bool [n_items]."""
        return TrainingSequences.of_nothing(inputs.crowd.offsets).log_masses(believed) > -np.inf

    def _marginals(self, inputs: CrfInputs, scores: Scores) -> Floats:
        everything = np.ones(inputs.crowd.n_items, np.bool_)
        args = (scores, inputs.crowd.offsets, everything, inputs.crowd.tagset, inputs.runner)
        return posterior_of(*args).marginals(np.inf).probs.astype(np.float64)

    def _likeliest(self, inputs: CrfInputs, believed: Scores) -> TrainingSequences:
        possible = self._is_possible(inputs, believed)
        args = (inputs.crowd.offsets, possible, inputs.crowd.tagset, inputs.runner)
        codes = posterior_of(believed, *args).marginals(np.inf).codes
        return TrainingSequences.of_truth(codes, inputs.crowd.offsets)


class MultiCrfMax(MultiCrf):
    """MultiCRF-MAX: trained on the likeliest sequence of candidates."""

    name = "multicrf-max"
    is_max = True


def candidates(inputs: CrfInputs, begin: str = "votes") -> Floats:
    """Return priors of every token's candidates, float64 [n_tokens, J]; `begin` as for MultiCRF."""
    crowd, given = inputs.crowd, inputs.sequences.codes
    prior = np.zeros((crowd.n_tokens, inputs.n_labels))
    said = given >= 0
    np.add.at(prior, (crowd.token_of[said], given[said]), 1.0)
    prior = np.minimum(prior, 1.0) if begin == "uniform" else prior
    prior[prior.sum(axis=1) == 0] = 1.0
    known = np.flatnonzero(inputs.known >= 0)
    prior[known] = 0.0
    prior[known, inputs.known[known]] = 1.0
    return np.asarray(prior / prior.sum(axis=1, keepdims=True))


def updated(prior: Floats, marginals: Floats) -> Floats:
    """Return old prior x marginal, normalised; no candidate is lost, however unlikely it gets."""
    new = np.where(prior > 0, np.maximum(prior * marginals, LEAST_PRIOR), 0.0)
    return np.asarray(new / new.sum(axis=1, keepdims=True))
