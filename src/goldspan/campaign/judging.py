"""Verdicts on workers after a round: who answers no more."""

from __future__ import annotations

from typing import Any

from goldspan.aggregate import Consensus
from goldspan.campaign.plan import Plan
from goldspan.crowd import Crowd
from goldspan.hiring import judge_workers, measure_reliability
from goldspan.hiring.verdicts import DROP, state_workers
from goldspan.protocols import Ledger

DECISION = "decision"
"""Kind of the records of what the requester decided about a worker."""


def kept(ledger: Ledger) -> set[str]:
    """Give the workers of whom the requester last said that they go on: no rule bars them."""
    last = {row["worker"]: row["verdict"] for row in ledger.records(DECISION).values()}
    return {worker for worker, verdict in last.items() if verdict != DROP}


def judge(plan: Plan, crowd: Crowd, result: Consensus, barred: set[str], n_workers: int) -> Any:
    """Judge all workers by the control questions and by the crowd.

    Args:
        plan: The plan.
        crowd: All answers; its gold is that of the control questions.
        result: Of the same crowd.
        barred: Workers who are asked nothing more already.
        n_workers: Workers in all; at least as many as an item may need are kept.

    Returns:
        Plain values: `workers`, each with the `verdict` of the rules and why, and what may be said
        of them and what it rests on (`goldspan.hiring.verdicts`): `by`, `measure`, `mean` with
        its interval, `judged`, `known`, `opinion`, `said`, how many `more` known labels would
        settle it; and `drop`, those who go now, the worst first.
    """
    gold = crowd if crowd.gold is not None and (crowd.gold >= 0).any() else None
    known = crowd.with_gold(None) if gold is None else crowd
    reliability = measure_reliability(known, gold=gold, result=result)
    rules = plan.judging
    found = judge_workers(reliability, threshold=rules.threshold, sure=rules.sure)
    stated = state_workers(known, threshold=rules.threshold, sure=rules.sure)
    unit = "texts" if plan.is_single else "spans"
    rows = {
        one.worker: {
            "verdict": one.verdict, "why": one.why, "by": said.by, "measure": said.measure,
            "mean": round(said.mean, 6), "low": round(said.low, 6), "high": round(said.high, 6),
            "judged": round(said.judged, 3), "known": round(said.known, 3), "more": said.more,
            "opinion": said.opinion(one.verdict, rules.sure), "said": said.words(unit),
        }
        for one, said in zip(found, stated, strict=True)
    }  # fmt: skip
    worst = sorted(found, key=lambda one: (one.mean, one.worker))
    failed = [
        one.worker
        for one in worst
        if one.verdict == DROP and one.total >= rules.answers and one.worker not in barred
    ]
    room = max(0, n_workers - len(barred) - plan.redundancy.max)
    return {"workers": rows, "drop": failed[:room] if rules.drop else []}
