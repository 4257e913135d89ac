"""Votes weighted by agreement with their own result: `wawa` once, `zbs` again and again.

Both are as crowdsourcing platforms have them: a worker's skill is the share of his labels that
agree with the vote, and skills are the weights of the next vote. Skills are never negative, so that
a worker who is always wrong still counts a little for what he says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregate.base import as_crowd
from goldspan.aggregate.bsc.engine import Stopping
from goldspan.aggregate.consensus import Consensus
from goldspan.aggregate.weighted.ballots import in_grains
from goldspan.aggregate.weighted.base import Case, Weighing, WeightedVote
from goldspan.aggregate.weighted.judged import Judged, by_truth
from goldspan.aggregate.weighted.rounds import run_rounds
from goldspan.aggregate.winners import winners
from goldspan.errors import NotFittedError
from goldspan.tagger.parameters import check_number, check_whole


class _Skilled(WeightedVote):
    """What both share: a vote, and the share of labels that agree with it."""

    def _vote(self, case: Case, skill: NDArray[np.float64] | None) -> NDArray[np.int16]:
        """Vote with skills [n_workers], None: all the same; known truth in its place."""
        ballots, crowd = case.ballots, case.crowd
        votes = in_grains(ballots.sums(None if skill is None else skill[ballots.worker]))
        rule = (self.ties, self.random_state)
        codes = winners(votes, ballots.voted, crowd, crowd.tagset, rule, legal=self.legal)
        return codes if case.known is None else np.where(case.known >= 0, case.known, codes)

    def predict(self, crowd: Any, *, runner: Any = None) -> Consensus:
        """Vote on other items with the skills of the workers as `fit` left them.

        Args:
            crowd: Other items with their answers; workers are found by id, and those whom the fit
                did not see have no weight.
            runner: Where to work.

        Raises:
            NotFittedError: `fit` was not called.
            InputError: The crowd has no answer.
        """
        if "result_" not in vars(self):
            raise NotFittedError(f"{type(self).__name__}: call fit before predict")
        found = as_crowd(crowd)
        table = self.result_.workers
        skills = dict(
            zip(table.column("worker").to_pylist(), table.column("weight").to_pylist(), strict=True)
        )
        ids = found.worker_ids.to_pylist()
        new = sum(name not in skills for name in ids)
        vote = _WithSkills(ties=self.ties, legal=self.legal, random_state=self.random_state)
        vote.name, vote.skill = self.name, np.array([skills.get(name, 0.0) for name in ids])
        result = vote.fit(found, runner=runner).result_
        notes = (*result.notes, f"{new} workers whom the fit did not see have no weight")
        return replace(
            result,
            method=self.name,
            params=self.get_params(),
            stop_reason="predicted with fixed parameters",
            notes=notes if new else result.notes,
        )

    def _agreement(self, case: Case, codes: NDArray[np.int16]) -> NDArray[np.float64]:
        """Share of labels that agree, [n_workers], the past included; 0 without any."""
        judged: Judged = by_truth(case.crowd, codes, case.ballots) + case.past
        return np.nan_to_num(judged.share(), nan=0.0)


class _WithSkills(WeightedVote):
    """One vote with skills that are known, float64 [n_workers]."""

    skill: NDArray[np.float64]

    def __init__(self, *, ties: str, legal: bool, random_state: int | None) -> None:
        super().__init__(ties=ties, legal=legal, random_state=random_state, history=None)

    def _weigh(self, case: Case) -> Weighing:  # noqa: ARG002 - there is nothing to find
        return Weighing(self.skill)


class Wawa(_Skilled):
    r"""Worker agreement with the aggregate: a majority vote, skills by it, a weighted vote.

    Confidence is the share of weight at the token, no calibrated probability.

    Args:
        ties: As for `mv-token`.
        legal: Make the result well-formed: the legal sequence with the largest sum.
        random_state: Seed for ties="random".
        history: An earlier result of any method: its expected right labels of a worker count as
            that many more labels in his skill. Known truth stands in the first vote.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,a,x\n1,b,x\n1,c,y\n2,a,y\n2,c,x\n")
    >>> Wawa().fit_predict(crowd)
    [['x'], ['x']]
    """

    name = "wawa"

    def __init__(
        self,
        *,
        ties: str = "outside",
        legal: bool = True,
        random_state: int | None = 0,
        history: Consensus | None = None,
    ) -> None:
        super().__init__(ties=ties, legal=legal, random_state=random_state, history=history)
        self._check()

    def _weigh(self, case: Case) -> Weighing:
        return Weighing(self._agreement(case, self._vote(case, None)))


class ZeroBasedSkill(_Skilled):
    r"""Zero-based skill: all begin little better than chance, and votes and skills alternate.

    Every round takes a weighted vote and moves the skills towards their agreement with it,
    skill += rate (agreement - skill); the rate is halved every 20 rounds. The trace holds the mean
    square of agreement - skill, which the steps reduce while the vote stands.

    Confidence is the share of weight at the token, no calibrated probability.

    Args:
        rate: The first learning rate, in 0 … 1.
        tol: Largest difference of a skill from the agreement at which to stop.
        max_iter: Most rounds.
        ties: As for `mv-token`.
        legal: As for `Wawa`.
        random_state: Seed for ties="random".
        history: As for `Wawa`.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,a,x\n1,b,x\n1,c,y\n2,a,y\n2,c,x\n")
    >>> ZeroBasedSkill().fit(crowd).result_.converged
    True
    """

    name = "zbs"
    above_chance = 1e-5
    halved_after = 20

    def __init__(
        self,
        *,
        rate: float = 1.0,
        tol: float = 1e-5,
        max_iter: int = 100,
        ties: str = "outside",
        legal: bool = True,
        random_state: int | None = 0,
        history: Consensus | None = None,
    ) -> None:
        self.rate = rate
        self.tol = tol
        self.max_iter = max_iter
        super().__init__(ties=ties, legal=legal, random_state=random_state, history=history)
        self._check()

    def _check(self) -> None:
        super()._check()
        check_number("rate", self.rate, 0, 1, is_open=True)
        Stopping(self.tol, self.max_iter)
        check_whole("max_iter", self.max_iter, 1)

    def _weigh(self, case: Case) -> Weighing:
        chance = 1 / case.ballots.shape[2] + self.above_chance
        skill = np.nan_to_num(case.past.share(), nan=chance)

        def step(n: int) -> tuple[float, bool]:
            nonlocal skill
            rest = self._agreement(case, self._vote(case, skill)) - skill
            skill = skill + self.rate * 0.5 ** ((n + 1) // self.halved_after) * rest
            return float((rest**2).mean()), bool(np.abs(rest).max() <= self.tol)

        course = run_rounds(step, self.max_iter, case.given.progress)
        return Weighing(skill, course=course)
