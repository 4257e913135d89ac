"""What the CRFs that learn from many annotators share, and their result."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation.base import Aggregator, FitContext, as_crowd
from goldspan.aggregation.bsc.engine import RunContext
from goldspan.aggregation.bsc.evidence import Evidence, Tables
from goldspan.aggregation.bsc.family import in_tags_of
from goldspan.aggregation.bsc.posterior import Posterior, consensus_of
from goldspan.aggregation.bsc.priors import Decoder
from goldspan.aggregation.consensus import Consensus
from goldspan.aggregation.crf.rounds import CrfInputs, Outcome, State, moved, prepare, run
from goldspan.aggregation.crf.sequences import Floats, Scores
from goldspan.aggregation.legal import check_words, text_of
from goldspan.crowd import Crowd
from goldspan.errors import InputError, NotFittedError
from goldspan.params import MOST, Number, Rounds, Seed, Whole
from goldspan.protocols import Runner, Serial
from goldspan.spans import Codec
from goldspan.tagger.base import FeatureTagger, transform
from goldspan.tagger.crf import CRF, Masks
from goldspan.tagger.features import read_templates
from goldspan.tagger.hmm import HMM

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
    """Return the log scores, largest 0; the last tag's weight stands at the last token.

    Single labels have no other place for it, and a constant per token changes nothing.
    """
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

    A subclass implements `_begin` and `_round`; the parameters are those of `CrfConc`.
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
        if "result_" not in vars(self):
            raise NotFittedError(f"{type(self).__name__}: call fit before predict")
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

    def _aggregate(self, crowd: Crowd, given: FitContext) -> Consensus:
        inputs = prepare(crowd, given, self.templates, self.min_count)
        warm = None
        if given.start is not None:
            warm = inputs.carried(_tagger_of(given.start, type(self._untrained(inputs))))
        begin = self._begin(inputs, State(weights=warm), given.start)
        name = ""
        if given.checkpoint is not None:
            name = inputs.fingerprint(self.name, self._lasting_params(), begin)
        context = RunContext(given.runner, given.progress, given.checkpoint, name)
        outcome = run(
            begin, lambda state: self._round(inputs, state), self._reason_to_stop, self.max_iter,
            context,
        )  # fmt: skip
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
        notes, n_alone = list(inputs.notes), int(np.count_nonzero(~inputs.is_answered))
        if inputs.sequences.n_skipped and self.of_skipped:
            notes.append(f"{inputs.sequences.n_skipped} skipped tokens {self.of_skipped}")
        if n_alone:
            notes.append(f"{n_alone} items without answers are labelled by their words alone")
        result = replace(
            result,
            trace=state.trace,
            converged=outcome.converged,
            stop_reason=outcome.reason,
            notes=tuple(notes),
            tagger=self._tagger(inputs, outcome),
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

    def _tagger(self, inputs: CrfInputs, outcome: Outcome) -> CRF | HMM:
        state, tagger = outcome.state, self._untrained(inputs)
        assert state.weights is not None
        tagger.weights_ = state.weights
        tagger.documents_ = inputs.text.group is not None
        tagger.trace_ = tuple(-value for value in state.trace)
        tagger.converged_, tagger.stop_reason_ = outcome.converged, outcome.reason
        return tagger


def _tagger_of(start: Consensus, kind: type[CRF | HMM]) -> CRF | HMM:
    if isinstance(start.tagger, kind):
        return start.tagger
    if kind is HMM:
        raise InputError("start must be a result with an HMM: of crf-ma with model='hmm'")
    raise InputError(
        "start must be a result with a CRF: of crf-conc, crf-ma, multicrf, multicrf-max or a "
        "bsc method with +crf"
    )
