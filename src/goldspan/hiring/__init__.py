"""Whom to hire, how many to ask, and what it costs (Li and Liu 2015; MATH section 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.hiring.asking import NextAnswers, Replay, next_answers, replay
    from goldspan.hiring.beta import Reliability
    from goldspan.hiring.forecast import (
        Difficulty,
        Forecast,
        ForecastCheck,
        check_forecast,
        fit_difficulty,
        forecast_accuracy,
        typical_difficulty,
    )
    from goldspan.hiring.gold_questions import ControlSet, LeakReport, check_leaks, choose_control
    from goldspan.hiring.pay import Bill, BillLine, Bonus, PayPlan, make_bill, read_plan
    from goldspan.hiring.qualification import (
        Passed,
        SequentialTest,
        TestPlan,
        plan_sequential,
        plan_test,
    )
    from goldspan.hiring.reliability import Confusion, base_rates, confusion, measure_reliability
    from goldspan.hiring.review import HeldOutCurve, Review, measure_votes, review_workers
    from goldspan.hiring.selection import Team, score_interval, select_workers, worker_scores
    from goldspan.hiring.signs import Sign, Thresholds, find_signs
    from goldspan.hiring.stopping import (
        ClearMajority,
        Confident,
        Fixed,
        Rule,
        StableAverage,
        get_rule,
    )
    from goldspan.hiring.verdicts import Verdict, judge_workers

__all__ = [
    "Bill",
    "BillLine",
    "Bonus",
    "ClearMajority",
    "Confident",
    "Confusion",
    "ControlSet",
    "Difficulty",
    "Fixed",
    "Forecast",
    "ForecastCheck",
    "HeldOutCurve",
    "LeakReport",
    "NextAnswers",
    "Passed",
    "PayPlan",
    "Reliability",
    "Replay",
    "Review",
    "Rule",
    "SequentialTest",
    "Sign",
    "StableAverage",
    "Team",
    "TestPlan",
    "Thresholds",
    "Verdict",
    "base_rates",
    "check_forecast",
    "check_leaks",
    "choose_control",
    "confusion",
    "find_signs",
    "fit_difficulty",
    "forecast_accuracy",
    "get_rule",
    "judge_workers",
    "make_bill",
    "measure_reliability",
    "measure_votes",
    "next_answers",
    "plan_sequential",
    "plan_test",
    "read_plan",
    "replay",
    "review_workers",
    "score_interval",
    "select_workers",
    "typical_difficulty",
    "worker_scores",
]

_HOME = {
    "Bill": "goldspan.hiring.pay",
    "BillLine": "goldspan.hiring.pay",
    "Bonus": "goldspan.hiring.pay",
    "ClearMajority": "goldspan.hiring.stopping",
    "Confident": "goldspan.hiring.stopping",
    "Confusion": "goldspan.hiring.reliability",
    "ControlSet": "goldspan.hiring.gold_questions",
    "Difficulty": "goldspan.hiring.forecast",
    "Fixed": "goldspan.hiring.stopping",
    "Forecast": "goldspan.hiring.forecast",
    "ForecastCheck": "goldspan.hiring.forecast",
    "HeldOutCurve": "goldspan.hiring.review",
    "LeakReport": "goldspan.hiring.gold_questions",
    "NextAnswers": "goldspan.hiring.asking",
    "Passed": "goldspan.hiring.qualification",
    "PayPlan": "goldspan.hiring.pay",
    "Reliability": "goldspan.hiring.beta",
    "Replay": "goldspan.hiring.asking",
    "Review": "goldspan.hiring.review",
    "Rule": "goldspan.hiring.stopping",
    "SequentialTest": "goldspan.hiring.qualification",
    "Sign": "goldspan.hiring.signs",
    "StableAverage": "goldspan.hiring.stopping",
    "Team": "goldspan.hiring.selection",
    "TestPlan": "goldspan.hiring.qualification",
    "Thresholds": "goldspan.hiring.signs",
    "Verdict": "goldspan.hiring.verdicts",
    "base_rates": "goldspan.hiring.reliability",
    "check_forecast": "goldspan.hiring.forecast",
    "check_leaks": "goldspan.hiring.gold_questions",
    "choose_control": "goldspan.hiring.gold_questions",
    "confusion": "goldspan.hiring.reliability",
    "find_signs": "goldspan.hiring.signs",
    "fit_difficulty": "goldspan.hiring.forecast",
    "forecast_accuracy": "goldspan.hiring.forecast",
    "get_rule": "goldspan.hiring.stopping",
    "judge_workers": "goldspan.hiring.verdicts",
    "make_bill": "goldspan.hiring.pay",
    "measure_reliability": "goldspan.hiring.reliability",
    "measure_votes": "goldspan.hiring.review",
    "next_answers": "goldspan.hiring.asking",
    "plan_sequential": "goldspan.hiring.qualification",
    "plan_test": "goldspan.hiring.qualification",
    "read_plan": "goldspan.hiring.pay",
    "replay": "goldspan.hiring.asking",
    "review_workers": "goldspan.hiring.review",
    "score_interval": "goldspan.hiring.selection",
    "select_workers": "goldspan.hiring.selection",
    "typical_difficulty": "goldspan.hiring.forecast",
    "worker_scores": "goldspan.hiring.selection",
}

__getattr__ = lazy(__name__, _HOME)
