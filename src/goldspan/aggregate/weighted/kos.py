"""Karger, Oh and Shah (2011): messages between items and workers, as in belief propagation.

With A_ij = 1 if worker j gave item i one of two labels, -1 if the other, messages run

    x_(i to j) = sum over j' != j of A_ij' y_(j' to i)
    y_(j to i) = sum over i' != i of A_i'j x_(i' to j)

from y drawn from N(1, 1), and the label is the sign of sum_j A_ij y_(j to i). Messages are scaled
to a root mean square of 1 in every round, which changes no sign and lets nothing overflow. More
than two labels are told apart one against the rest; then workers who never give a rare label look
right about it, and `one-coin` or `ds` suit better.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregate.bsc.engine import Stopping
from goldspan.aggregate.consensus import Consensus
from goldspan.aggregate.weighted.ballots import Ballots
from goldspan.aggregate.weighted.base import Case, Weighing, WeightedVote
from goldspan.aggregate.weighted.rounds import run_rounds
from goldspan.tagger.parameters import check_whole


class Kos(WeightedVote):
    r"""KOS: iterative message passing between items and workers.

    The score of a label is the weight for it less the weight against it, as a share of all weight
    at the token; the confidence is the share for it, no calibrated probability. Where nobody has a
    weight (workers with one answer each), votes decide. Known items send their label in place of
    their message; a worker's judged labels of an earlier result count as that many known items.
    The trace holds the root mean square change of the workers' messages.

    Args:
        tol: Change of the messages at which to stop.
        max_iter: Most rounds.
        ties: As for `mv-token`.
        legal: Make the result well-formed: the legal sequence with the largest sum.
        random_state: Seed of the first messages, and for ties="random".
        history: An earlier result of any method.

    >>> from goldspan import read_crowd
    >>> crowd = read_crowd(b"task,worker,label\n1,a,x\n1,b,x\n1,c,y\n2,a,y\n2,b,y\n2,c,x\n")
    >>> Kos().fit_predict(crowd)
    [['x'], ['y']]
    """

    name = "kos"

    def __init__(
        self,
        *,
        tol: float = 1e-5,
        max_iter: int = 100,
        ties: str = "outside",
        legal: bool = True,
        random_state: int | None = 0,
        history: Consensus | None = None,
    ) -> None:
        self.tol = tol
        self.max_iter = max_iter
        super().__init__(ties=ties, legal=legal, random_state=random_state, history=history)
        self._check()

    def _check(self) -> None:
        super()._check()
        Stopping(self.tol, self.max_iter)
        check_whole("max_iter", self.max_iter, 1)

    def _weigh(self, case: Case) -> Weighing:
        ballots, n_labels = case.ballots, case.ballots.shape[2]
        rng = np.random.default_rng(self.random_state)
        # With two labels both polls are the same, but for the sign.
        signs = _signs(ballots, np.arange(1 if n_labels == 2 else n_labels))
        pull = _pull_of_known(case, signs)
        messages = np.tile(rng.normal(1, 1, len(ballots)), (len(signs), 1))
        extra = 2 * case.past.right - case.past.total

        def step(n: int) -> tuple[float, bool]:  # noqa: ARG001 - every round is alike
            nonlocal messages
            new = _round(ballots, signs, messages, pull, extra)
            change = float(np.sqrt(((new - messages) ** 2).mean())) if new.size else 0.0
            messages = new
            return change, change <= self.tol

        course = run_rounds(step, self.max_iter, case.given.progress)
        scores = _scores(ballots, signs, messages)
        share = (1 + scores) / 2
        whole = share.sum(axis=1, keepdims=True)
        even = np.full_like(share, 1 / n_labels)  # where all weight speaks against every label
        probs = np.divide(share, whole, out=even, where=whole > 0)
        labels = np.maximum(ballots.per_worker(None), 1)
        weight = np.asarray(ballots.per_worker(messages.mean(axis=0)) / labels)
        return Weighing(weight, scores, probs, course=course)


def _signs(ballots: Ballots, polls: NDArray[np.int64]) -> NDArray[np.float64]:
    """Say for every poll on a label who gave it (1) and who did not (-1), [n_polls, n_ballots]."""
    return np.where(ballots.label == polls[:, None], 1.0, -1.0)


def _pull_of_known(case: Case, signs: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Give the messages of known tokens, 1 or -1, NaN for others, [n_polls, n_ballots]."""
    if case.known is None:
        return None
    truth = case.known[case.ballots.token]
    found = np.where(truth == np.arange(len(signs))[:, None], 1.0, -1.0)
    found[:, truth < 0] = np.nan
    return found


def _round(
    ballots: Ballots, signs: NDArray[np.float64], messages: NDArray[np.float64],
    pull: NDArray[np.float64] | None, extra: NDArray[np.float64],
) -> NDArray[np.float64]:  # fmt: skip
    """Send messages to the workers and back, [n_polls, n_ballots]."""
    new = np.empty_like(messages)
    for poll, sign in enumerate(signs):
        sent = sign * messages[poll]
        to_worker = _scaled(ballots.per_token(sent)[ballots.token] - sent)
        if pull is not None:
            to_worker = np.where(np.isnan(pull[poll]), to_worker, pull[poll])
        sent = sign * to_worker
        new[poll] = _scaled((ballots.per_worker(sent) + extra)[ballots.worker] - sent)
    return new


def _scaled(messages: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give messages a root mean square of 1."""
    size = np.sqrt((messages**2).mean()) if len(messages) else 0.0
    return messages / size if size > 0 else messages


def _scores(
    ballots: Ballots, signs: NDArray[np.float64], messages: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Give the share of weight for a label less that against it, [n_tokens, n_labels]."""
    found = np.zeros((len(signs), ballots.shape[0]))
    for poll, sign in enumerate(signs):
        whole = ballots.per_token(np.abs(messages[poll]))
        there = whole > 1e-12
        np.divide(ballots.per_token(sign * messages[poll]), whole, out=found[poll], where=there)
        if not there.all():
            votes = ballots.per_token(sign) / np.maximum(ballots.per_token(None), 1)
            found[poll][~there] = votes[~there]
    is_mirrored = len(found) < ballots.shape[2]
    return np.stack([found[0], -found[0]], axis=1) if is_mirrored else found.T
