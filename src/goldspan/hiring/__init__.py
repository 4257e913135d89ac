"""Whom to hire, how many to ask, and what it costs (Li and Liu 2015; MATH section 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.hiring.beta import Reliability
    from goldspan.hiring.bill import Bill, BillLine
    from goldspan.hiring.billing import make_bill
    from goldspan.hiring.control import ControlSet, choose_control
    from goldspan.hiring.difficulty import Difficulty, fit_difficulty
    from goldspan.hiring.forecast import Forecast, forecast_accuracy
    from goldspan.hiring.forecast_check import ForecastCheck, check_forecast
    from goldspan.hiring.held_out import HeldOutCurve, measure_votes
    from goldspan.hiring.intervals import score_interval
    from goldspan.hiring.leaks import LeakReport, check_leaks
    from goldspan.hiring.pay import Bonus, PayPlan, read_plan
    from goldspan.hiring.planning import Passed, TestPlan, plan_test
    from goldspan.hiring.redundancy.asking import NextAnswers, next_answers
    from goldspan.hiring.redundancy.registry import get_rule
    from goldspan.hiring.redundancy.replay import Replay, replay
    from goldspan.hiring.redundancy.rules import (
        ClearMajority,
        Confident,
        Fixed,
        Rule,
        StableAverage,
    )
    from goldspan.hiring.reliability import Confusion, base_rates, confusion, measure_reliability
    from goldspan.hiring.review import Review, review_workers
    from goldspan.hiring.scores import worker_scores
    from goldspan.hiring.selection import select_workers
    from goldspan.hiring.sequential import SequentialTest, plan_sequential
    from goldspan.hiring.signs.base import Sign, Thresholds
    from goldspan.hiring.signs.find import find_signs
    from goldspan.hiring.team import Team
    from goldspan.hiring.typical import typical_difficulty
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
    "Bill": "goldspan.hiring.bill",
    "BillLine": "goldspan.hiring.bill",
    "Bonus": "goldspan.hiring.pay",
    "ClearMajority": "goldspan.hiring.redundancy.rules",
    "Confident": "goldspan.hiring.redundancy.rules",
    "Confusion": "goldspan.hiring.reliability",
    "ControlSet": "goldspan.hiring.control",
    "Difficulty": "goldspan.hiring.difficulty",
    "Fixed": "goldspan.hiring.redundancy.rules",
    "Forecast": "goldspan.hiring.forecast",
    "ForecastCheck": "goldspan.hiring.forecast_check",
    "HeldOutCurve": "goldspan.hiring.held_out",
    "LeakReport": "goldspan.hiring.leaks",
    "NextAnswers": "goldspan.hiring.redundancy.asking",
    "Passed": "goldspan.hiring.planning",
    "PayPlan": "goldspan.hiring.pay",
    "Reliability": "goldspan.hiring.beta",
    "Replay": "goldspan.hiring.redundancy.replay",
    "Review": "goldspan.hiring.review",
    "Rule": "goldspan.hiring.redundancy.rules",
    "SequentialTest": "goldspan.hiring.sequential",
    "Sign": "goldspan.hiring.signs.base",
    "StableAverage": "goldspan.hiring.redundancy.rules",
    "Team": "goldspan.hiring.team",
    "TestPlan": "goldspan.hiring.planning",
    "Thresholds": "goldspan.hiring.signs.base",
    "Verdict": "goldspan.hiring.verdicts",
    "base_rates": "goldspan.hiring.reliability",
    "check_forecast": "goldspan.hiring.forecast_check",
    "check_leaks": "goldspan.hiring.leaks",
    "choose_control": "goldspan.hiring.control",
    "confusion": "goldspan.hiring.reliability",
    "find_signs": "goldspan.hiring.signs.find",
    "fit_difficulty": "goldspan.hiring.difficulty",
    "forecast_accuracy": "goldspan.hiring.forecast",
    "get_rule": "goldspan.hiring.redundancy.registry",
    "judge_workers": "goldspan.hiring.verdicts",
    "make_bill": "goldspan.hiring.billing",
    "measure_reliability": "goldspan.hiring.reliability",
    "measure_votes": "goldspan.hiring.held_out",
    "next_answers": "goldspan.hiring.redundancy.asking",
    "plan_sequential": "goldspan.hiring.sequential",
    "plan_test": "goldspan.hiring.planning",
    "read_plan": "goldspan.hiring.pay",
    "replay": "goldspan.hiring.redundancy.replay",
    "review_workers": "goldspan.hiring.review",
    "score_interval": "goldspan.hiring.intervals",
    "select_workers": "goldspan.hiring.selection",
    "typical_difficulty": "goldspan.hiring.typical",
    "worker_scores": "goldspan.hiring.scores",
}

__getattr__ = lazy(__name__, _HOME)
