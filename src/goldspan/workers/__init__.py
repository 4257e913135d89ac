"""Worker quality: reliability, verdicts, quality flags, selection, gold questions, pay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.workers.beta import Reliability
    from goldspan.workers.difficulty import fit_difficulty, typical_difficulty
    from goldspan.workers.forecast import check_forecast, forecast_accuracy
    from goldspan.workers.gain import select_by_gain
    from goldspan.workers.gold_questions import check_leaks, choose_gold_questions
    from goldspan.workers.pay import PayPlan, make_bill
    from goldspan.workers.qualification import plan_qualification
    from goldspan.workers.quality_flags import find_quality_flags
    from goldspan.workers.redundancy import next_answers, replay
    from goldspan.workers.reliability import measure_reliability
    from goldspan.workers.review import measure_votes, review_workers
    from goldspan.workers.selection import select_workers
    from goldspan.workers.stopping import Rule
    from goldspan.workers.verdicts import judge_workers

__all__ = [
    "PayPlan",
    "Reliability",
    "Rule",
    "check_forecast",
    "check_leaks",
    "choose_gold_questions",
    "find_quality_flags",
    "fit_difficulty",
    "forecast_accuracy",
    "judge_workers",
    "make_bill",
    "measure_reliability",
    "measure_votes",
    "next_answers",
    "plan_qualification",
    "replay",
    "review_workers",
    "select_by_gain",
    "select_workers",
    "typical_difficulty",
]

_HOME = {
    "PayPlan": "goldspan.workers.pay",
    "Reliability": "goldspan.workers.beta",
    "Rule": "goldspan.workers.stopping",
    "check_forecast": "goldspan.workers.forecast",
    "check_leaks": "goldspan.workers.gold_questions",
    "choose_gold_questions": "goldspan.workers.gold_questions",
    "find_quality_flags": "goldspan.workers.quality_flags",
    "fit_difficulty": "goldspan.workers.difficulty",
    "forecast_accuracy": "goldspan.workers.forecast",
    "judge_workers": "goldspan.workers.verdicts",
    "make_bill": "goldspan.workers.pay",
    "measure_reliability": "goldspan.workers.reliability",
    "measure_votes": "goldspan.workers.review",
    "next_answers": "goldspan.workers.redundancy",
    "plan_qualification": "goldspan.workers.qualification",
    "replay": "goldspan.workers.redundancy",
    "review_workers": "goldspan.workers.review",
    "select_by_gain": "goldspan.workers.gain",
    "select_workers": "goldspan.workers.selection",
    "typical_difficulty": "goldspan.workers.difficulty",
}

__getattr__ = lazy(__name__, _HOME)
