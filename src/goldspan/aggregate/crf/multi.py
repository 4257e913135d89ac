"""MultiCRF: every token has several labels, one of which is right (Dredze et al. 2009).

The candidates of a token are the labels that at least one worker gave, their priors the same at
the start (or, our own, the shares of votes). M: the CRF is trained on soft labels, all well-formed
sequences of candidates weighted by the product of their priors. E: prior ~ old prior x marginal of
the CRF. Who gave a label is not used (MATH section 5).

MultiCRF-MAX is trained on the likeliest sequence of candidates instead; in its first round, where
all are alike, on the soft labels, unless it begins with votes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from goldspan.aggregate.consensus import Consensus
from goldspan.aggregate.crf.family import CrfMethod
from goldspan.aggregate.crf.lessons import Floats, Lessons, Scores, Sums
from goldspan.aggregate.crf.readout import posterior_of
from goldspan.aggregate.crf.ready import Ready
from goldspan.aggregate.crf.rounds import State
from goldspan.errors import UnknownNameError

STARTS = ("uniform", "votes")
LEAST_PRIOR = 1e-12
"""Of a candidate."""


class MultiCrf(CrfMethod):
    r"""MultiCRF (Dredze, Talukdar and Crammer 2009).

    A token that nobody labelled may be anything; known truth is its token's only candidate. Items
    whose candidates make no well-formed sequence teach nothing, and are counted in the notes.

    Args:
        begin: Priors before the first round: "uniform", the paper's, or "votes", their shares.
        templates: Feature templates: a named set, a TOML file, or a list.
        c2: Penalty of the squared weights; the Gaussian prior has variance 1 / (2 c2).
        min_count: Features that occur less often are left out.
        max_iter: Most rounds.
        steps: Most steps of L-BFGS in a round.
        tol: Mean change of a token's priors over a round at which to stop.
        decode: "viterbi", the likeliest path, or "mbr", the spans with the largest expected F1.
        random_state: Unused here: nothing is drawn.
    """

    name = "multicrf"
    of_skipped = "name no candidate"
    is_max = False

    def __init__(
        self,
        *,
        begin: str = "uniform",
        templates: str | Sequence[str] = "default",
        c2: float = 0.5,
        min_count: int = 1,
        max_iter: int = 10,
        steps: int = 50,
        tol: float = 2e-3,
        decode: str = "viterbi",
        random_state: int | None = 0,
    ) -> None:
        self.begin = begin
        super().__init__(
            templates=templates,
            c2=c2,
            min_count=min_count,
            max_iter=max_iter,
            steps=steps,
            tol=tol,
            decode=decode,
            random_state=random_state,
        )

    def _begin(self, ready: Ready, state: State, start: Consensus | None) -> State:  # noqa: ARG002
        return replace(state, arrays={"prior": candidates(ready, self.begin)})

    def _round(self, ready: Ready, state: State) -> State:
        prior, moved = state.arrays["prior"], np.inf
        if state.weights is not None:
            new = updated(prior, self._marginals(ready, ready.scores(state.weights)))
            moved = float(np.abs(new - prior).sum(axis=1).mean() / 2)
            prior = new
        believed = self._scores(ready, prior)
        nothing = np.full(ready.crowd.n_tokens, -1, np.int16)
        lessons = Lessons.of_truth(nothing, ready.crowd.offsets)
        if self.is_max and (state.weights is not None or self.begin == "votes"):
            lessons = self._likeliest(ready, believed)
        sums = Sums.zeros(ready.crowd.offsets, ready.n_labels)
        weight = (ready.is_answered & self._is_possible(ready, believed)).astype(np.float64)
        lessons.add_filled(sums, weight, believed)
        targets = sums.targets(ready.features, ready.numbers.n_features)
        weights, found = ready.train(targets, state.weights, self.c2, self.steps)
        arrays = {"prior": prior, "moved": np.array(moved)}
        return State(weights, (*state.trace, -found.trace[-1]), arrays)

    def _reason_to_stop(self, state: State) -> str:
        return "priors stand still" if state.arrays["moved"] <= self.tol else ""

    def _check(self) -> None:
        super()._check()
        if self.begin not in STARTS:
            raise UnknownNameError("start (begin)", self.begin, STARTS)

    def _finish(self, result: Consensus, ready: Ready, state: State) -> Consensus:
        possible = self._is_possible(ready, self._scores(ready, state.arrays["prior"]))
        n_bad = int(np.count_nonzero(ready.is_answered & ~possible))
        note = f"{n_bad} items taught nothing: no well-formed sequence of their workers' labels"
        return replace(result, notes=(*result.notes, note)) if n_bad else result

    def _scores(self, ready: Ready, prior: Floats) -> Scores:
        """Take priors as the scores of a chain in which every legal step is as good."""
        with np.errstate(divide="ignore"):
            logs = np.log(prior)
        return replace(Scores.even(0, ready.masks), unary=logs)

    def _is_possible(self, ready: Ready, believed: Scores) -> Any:
        """Say which items have a well-formed sequence of candidates, bool [n_items]."""
        nothing = np.full(ready.crowd.n_tokens, -1, np.int16)
        masses = Lessons.of_truth(nothing, ready.crowd.offsets).log_masses(believed)
        return masses > -np.inf

    def _marginals(self, ready: Ready, scores: Scores) -> Floats:
        everything = np.ones(ready.crowd.n_items, np.bool_)
        args = (scores, ready.crowd.offsets, everything, ready.crowd.tagset, ready.runner)
        return posterior_of(*args).marginals(np.inf).probs.astype(np.float64)

    def _likeliest(self, ready: Ready, believed: Scores) -> Lessons:
        possible = self._is_possible(ready, believed)
        args = (ready.crowd.offsets, possible, ready.crowd.tagset, ready.runner)
        codes = posterior_of(believed, *args).marginals(np.inf).codes
        return Lessons.of_truth(codes, ready.crowd.offsets)


class MultiCrfMax(MultiCrf):
    """MultiCRF-MAX: trained on the likeliest sequence of candidates."""

    name = "multicrf-max"
    is_max = True


def candidates(ready: Ready, begin: str = "uniform") -> Floats:
    """Give every token's candidates the same prior or their shares, float64 [n_tokens, J]."""
    crowd, given = ready.crowd, ready.lessons.codes
    prior = np.zeros((crowd.n_tokens, ready.n_labels))
    said = given >= 0
    np.add.at(prior, (crowd.token_of[said], given[said]), 1.0)
    prior = np.minimum(prior, 1.0) if begin == "uniform" else prior
    prior[prior.sum(axis=1) == 0] = 1.0
    known = np.flatnonzero(ready.known >= 0)
    prior[known] = 0.0
    prior[known, ready.known[known]] = 1.0
    return np.asarray(prior / prior.sum(axis=1, keepdims=True))


def updated(prior: Floats, marginals: Floats) -> Floats:
    """Give old prior x marginal, normalised; no candidate is lost, however unlikely it gets."""
    new = np.where(prior > 0, np.maximum(prior * marginals, LEAST_PRIOR), 0.0)
    return np.asarray(new / new.sum(axis=1, keepdims=True))
