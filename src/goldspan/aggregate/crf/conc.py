"""CRF-CONC and CRF-GOLD: a CRF trained on everybody's answers, and one on the truth (paper 000)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from goldspan.aggregate.consensus import Consensus
from goldspan.aggregate.crf.family import CrfMethod
from goldspan.aggregate.crf.lessons import Floats
from goldspan.aggregate.crf.ready import Ready
from goldspan.aggregate.crf.rounds import State
from goldspan.errors import InputError


class CrfConc(CrfMethod):
    r"""CRF-CONC: all workers' sequences side by side with weight 1.

    A round is some steps of L-BFGS; with skipped tokens it also fills them in anew. An item whose
    truth is known counts as often as it was answered, but with its truth.

    Args:
        templates: Feature templates: a named set, a TOML file, or a list.
        c2: Penalty of the squared weights; the Gaussian prior has variance 1 / (2 c2).
        min_count: Features that occur less often are left out.
        max_iter: Most rounds.
        steps: Most steps of L-BFGS in a round.
        tol: Relative change of the objective over a round at which to stop.
        decode: "viterbi", the likeliest path, or "mbr", the spans with the largest expected F1.
        random_state: Unused here: nothing is drawn.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"token\ta\tb\nRome\tB-LOC\tB-LOC\nwins\tO\tO\n", format="wide")
    >>> CrfConc().fit_predict(crowd)
    [['B-LOC', 'O']]
    """

    name = "crf-conc"

    def _begin(self, ready: Ready, state: State, start: Consensus | None) -> State:  # noqa: ARG002
        return state

    def _weights(self, ready: Ready) -> tuple[Floats, Floats]:
        """Give the weight of every answer, and of every item with known truth."""
        n_answers = np.diff(ready.crowd.by_item.bounds).astype(np.float64)
        return np.ones(len(ready.lessons.item)), np.maximum(n_answers, 1.0)

    def _round(self, ready: Ready, state: State) -> State:
        targets = ready.targets(*self._weights(ready), ready.scores(state.weights))
        weights, found = ready.train(targets, state.weights, self.c2, self.steps)
        return replace(state, weights=weights, trace=(*state.trace, -found.trace[-1]))


class CrfGold(CrfConc):
    """CRF-GOLD: a CRF trained on the truth, the upper bound of paper 000; for studies only.

    It needs `fit(crowd, gold=…)`. Answers teach nothing, and the labels are the CRF's own, also
    where the truth is known.
    """

    name = "crf-gold"
    is_clamped = False
    of_skipped = ""  # of workers, whose answers it does not use

    def _begin(self, ready: Ready, state: State, start: Consensus | None) -> State:  # noqa: ARG002
        if not ready.truth.n_given.any():
            raise InputError("crf-gold learns from known truth: call fit(crowd, gold=…)")
        return state

    def _weights(self, ready: Ready) -> tuple[Floats, Floats]:
        return np.zeros(len(ready.lessons.item)), np.ones(ready.crowd.n_items)
