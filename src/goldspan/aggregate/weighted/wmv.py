"""Weighted majority votes by the workers' reliability (Li and Liu 2015; MATH section 8).

With L labels and a worker who is right with probability w, the weight of his vote is

    linear    nu = L w - 1
    log-odds  nu = ln((L - 1) w / (1 - w)),   w truncated to [truncation, 1 - truncation]

and the label of a token is argmax_l sum_k nu_k [label_k = l]. With log-odds this is the likeliest
label under one probability of being right per worker and equally likely labels, and softmax of the
sums is its posterior, in which a label that the crowd does not have counts with a sum of 0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregate.bsc.priors import trusted_ids
from goldspan.aggregate.consensus import Consensus
from goldspan.aggregate.weighted.ballots import Ballots
from goldspan.aggregate.weighted.base import Case, Weighing, WeightedVote, softmax
from goldspan.aggregate.weighted.judged import UNITS, Judged, by_result, by_truth, remembered
from goldspan.aggregate.weighted.reliabilities import given_shares
from goldspan.crowd import Crowd
from goldspan.errors import InputError, UnknownNameError
from goldspan.tagger.parameters import check_number, check_whole

BELOW = ("negative", "zero")


class LinearVote(WeightedVote):
    r"""Weighted majority vote with the weights L w - 1.

    A worker's w is, in this order: what `reliability` says; the share of right labels among known
    truth, if `fit` is given any; the expected share of right labels by the method `weights_from`.
    Shares are means of Beta(prior + right, prior + wrong).

    Confidence is the share of weight at the token, no calibrated probability.

    Args:
        reliability: w by worker: a `goldspan.hiring.Reliability` (its posterior means), or a
        mapping
            from ids to shares. Workers who are not in it have the mean of the prior.
        weights_from: The method that judges workers where there is nothing else to judge by.
        prior: Pseudo-counts of right and wrong labels. (0, 0) gives C / n as in the paper, and
            workers without a judged label no weight. On the command line "0,0".
        below: What becomes of workers below chance: "negative", their votes speak for the other
            labels, as in the paper, which is right for workers who mix labels up; or "zero", they
            have no say, which is safer where few labels were judged.
        only: Ids of the workers who vote, also as one string with commas; empty: everybody. Items
            that only others answered stay open. All labels serve to judge workers.
        unit: What a worker is judged by on tagged tokens: "token", his labels; "span", the F1 of
            his spans, with types + 1 for L.
        n_labels: L, the labels that a worker chooses from; None: that of a `Reliability`, else the
            labels of the crowd. Labels that the crowd does not have take part in the confidence.
        ties: As for `mv-token`.
        legal: Make the result well-formed: the legal sequence with the largest sum.
        random_state: Seed for ties="random".
        history: An earlier result of any method: its expected right labels of a worker count as
            that many more judged labels.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,a,x\n1,b,y\n1,c,y\n")
    >>> LinearVote(reliability={"a": 0.9, "b": 0.6, "c": 0.6}).fit_predict(crowd)
    [['x']]
    """

    name = "wmv-linear"

    def __init__(
        self,
        *,
        reliability: Any = None,
        weights_from: str = "one-coin",
        prior: tuple[float, float] | str = (1.0, 1.0),
        below: str = "negative",
        only: Collection[str] = (),
        unit: str = "token",
        n_labels: int | None = None,
        ties: str = "outside",
        legal: bool = True,
        random_state: int | None = 0,
        history: Consensus | None = None,
    ) -> None:
        self.reliability = reliability
        self.weights_from = weights_from
        self.prior = prior
        self.below = below
        self.only = only
        self.unit = unit
        self.n_labels = n_labels
        super().__init__(ties=ties, legal=legal, random_state=random_state, history=history)
        self._check()

    def _check(self) -> None:
        super()._check()
        for what, name, allowed in (("below", self.below, BELOW), ("unit", self.unit, UNITS)):
            if name not in allowed:
                raise UnknownNameError(what, name, allowed)
        read_pair(self.prior)
        trusted_ids(self.only)
        if self.n_labels is not None:
            check_whole("n_labels", self.n_labels, 2)
        source = self.weights_from
        if not isinstance(source, str) or source.startswith("wmv-"):
            raise InputError(f"weights_from must be the name of another method, not {source!r}")
        known = self.reliability is None or hasattr(self.reliability, "worker_ids")
        if not known and not isinstance(self.reliability, Mapping):
            raise InputError(
                "reliability must be a Reliability or a mapping from worker ids to shares, not "
                f"{self.reliability!r}"
            )

    def _voters(self, crowd: Crowd) -> NDArray[np.bool_] | None:
        names = trusted_ids(self.only)
        if not names:
            return None
        votes = np.zeros(crowd.n_workers, np.bool_)
        votes[[crowd.worker_index(name) for name in names]] = True
        return votes

    def _past(self, crowd: Crowd) -> Judged:
        return remembered(self.history, crowd, self.unit)

    def _weigh(self, case: Case) -> Weighing:
        right, source = self._right(case)
        n_own, n_labels = self._label_counts(case.crowd)
        weight = self._weights(right, n_labels)
        if self.below == "zero":
            weight = np.maximum(weight, 0)
        voters = self._voters(case.crowd)
        below = int((weight < 0).sum())
        notes = [f"weights from {source}"]
        if n_labels != n_own:
            notes.append(f"weights are for {n_labels} labels, but the crowd has {n_own}")
        notes += [f"{below} workers below chance speak for the other labels"] if below else []
        if voters is not None:
            weight = np.where(voters, weight, 0)
            notes.append(f"{int(voters.sum())} of {len(voters)} workers vote")
        found = Weighing(weight, n_absent=max(n_labels - n_own, 0), notes=tuple(notes))
        return self._with_posterior(case, found)

    def _with_posterior(self, case: Case, found: Weighing) -> Weighing:  # noqa: ARG002
        """Add the method's posterior; linear weights have none."""
        return found

    def _weights(self, right: NDArray[np.float64], n_labels: int) -> NDArray[np.float64]:
        """Turn w [n_workers], NaN unknown, into weights; those of the unknown are 0."""
        return np.nan_to_num(n_labels * right - 1, nan=0.0)

    def _label_counts(self, crowd: Crowd) -> tuple[int, int]:
        """Count the labels that the crowd has, and those that a worker chooses from, L."""
        measure = getattr(self.reliability, "measure", None)
        by_span = self.unit == "span" or measure == "span_f1"
        n_own = len(crowd.tagset.types) + 1 if by_span else len(crowd.tagset.tags)
        if self.n_labels is not None:
            return n_own, self.n_labels
        return n_own, getattr(self.reliability, "n_labels", max(n_own, 2))

    def _right(self, case: Case) -> tuple[NDArray[np.float64], str]:
        """Give w of every worker, NaN unknown, and where it is from."""
        crowd = case.crowd
        if self.reliability is not None:
            return given_shares(
                self.reliability, crowd, read_pair(self.prior)
            ), "the reliability given"
        if self.unit == "span" and crowd.tagset.rules.is_plain:
            raise InputError('unit="span" needs spans: labels without prefixes have none')
        if case.known is not None:
            everybody = Ballots.of(crowd)
            judged, source = by_truth(crowd, case.known, everybody, self.unit), "known truth"
        else:
            judged, source = by_result(self._judge(case), self.unit), self.weights_from
        if self.history is not None:
            source += " and an earlier result"
        return (judged + case.past).share(read_pair(self.prior)), source

    def _judge(self, case: Case) -> Consensus:
        """Aggregate with the method that judges workers."""
        from goldspan.aggregate import get_aggregator

        judge, given = get_aggregator(self.weights_from), case.given
        return judge.fit(case.crowd, runner=given.runner, progress=given.progress).result_


class LogOddsVote(LinearVote):
    r"""Weighted majority vote with log-odds, ln((L - 1) w / (1 - w)).

    Confidence is the posterior under one probability w of being right per worker, where wrong
    labels and true labels are equally likely; of spans and of tagged items shares of weight.

    Args:
        truncation: w is kept in truncation … 1 - truncation: no test of ten questions makes a
            worker infallible.
        reliability: As for `LinearVote`.
        weights_from: As for `LinearVote`.
        prior: As for `LinearVote`.
        below: As for `LinearVote`.
        only: As for `LinearVote`.
        unit: As for `LinearVote`.
        n_labels: As for `LinearVote`.
        ties: As for `mv-token`.
        legal: As for `LinearVote`.
        random_state: Seed for ties="random".
        history: As for `LinearVote`.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,a,x\n1,b,y\n1,c,y\n")
    >>> vote = LogOddsVote(reliability={"a": 0.9, "b": 0.6, "c": 0.6}).fit(crowd).result_
    >>> vote.labels, round(float(vote.confidence[0]), 3)
    (['x'], 0.8)
    """

    name = "wmv-log"

    def __init__(
        self,
        *,
        truncation: float = 0.05,
        reliability: Any = None,
        weights_from: str = "one-coin",
        prior: tuple[float, float] | str = (1.0, 1.0),
        below: str = "negative",
        only: Collection[str] = (),
        unit: str = "token",
        n_labels: int | None = None,
        ties: str = "outside",
        legal: bool = True,
        random_state: int | None = 0,
        history: Consensus | None = None,
    ) -> None:
        self.truncation = truncation
        super().__init__(
            reliability=reliability, weights_from=weights_from, prior=prior, below=below,
            only=only, unit=unit, n_labels=n_labels, ties=ties, legal=legal,
            random_state=random_state, history=history,
        )  # fmt: skip

    def _check(self) -> None:
        super()._check()
        check_number("truncation", self.truncation, 1e-9, 0.49)

    def _weights(self, right: NDArray[np.float64], n_labels: int) -> NDArray[np.float64]:
        kept = np.clip(right, self.truncation, 1 - self.truncation)
        return np.nan_to_num(np.log((n_labels - 1) * kept / (1 - kept)), nan=0.0)

    def _with_posterior(self, case: Case, found: Weighing) -> Weighing:
        scores = case.ballots.sums(found.weight[case.ballots.worker])
        probs = softmax(scores, found.n_absent)
        return replace(found, scores=scores, probs=probs, is_posterior=True)


def read_pair(prior: Any) -> tuple[float, float]:
    """Read pseudo-counts, given as a pair or as one string with a comma (on the command line).

    Raises:
        InputError: It is neither, or a number is negative or not finite.

    >>> read_pair((1, 1)), read_pair("0, 0.5")
    ((1.0, 1.0), (0.0, 0.5))
    """
    try:
        a, b = (float(x) for x in (prior.split(",") if isinstance(prior, str) else prior))
    except (TypeError, ValueError):
        a = b = np.nan
    if not (0 <= a < np.inf and 0 <= b < np.inf):
        raise InputError(f"prior must be a pair of numbers of at least 0, not {prior!r}")
    return a, b
