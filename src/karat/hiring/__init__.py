"""Whom to hire, how many to ask, and what it costs (Li and Liu 2015; MATH section 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat._lazy import lazy

if TYPE_CHECKING:
    from karat.hiring.beta import Reliability
    from karat.hiring.bill import Bill, BillLine
    from karat.hiring.billing import make_bill
    from karat.hiring.control import ControlSet, choose_control
    from karat.hiring.difficulty import Difficulty, fit_difficulty
    from karat.hiring.forecast import Forecast, forecast_accuracy
    from karat.hiring.forecast_check import ForecastCheck, check_forecast
    from karat.hiring.held_out import HeldOutCurve, measure_votes
    from karat.hiring.intervals import score_interval
    from karat.hiring.leaks import LeakReport, check_leaks
    from karat.hiring.pay import Bonus, PayPlan, read_plan
    from karat.hiring.planning import Passed, TestPlan, plan_test
    from karat.hiring.redundancy.asking import NextAnswers, next_answers
    from karat.hiring.redundancy.registry import get_rule
    from karat.hiring.redundancy.replay import Replay, replay
    from karat.hiring.redundancy.rules import ClearMajority, Confident, Fixed, Rule, StableAverage
    from karat.hiring.reliability import Confusion, base_rates, confusion, measure_reliability
    from karat.hiring.review import Review, review_workers
    from karat.hiring.scores import worker_scores
    from karat.hiring.selection import select_workers
    from karat.hiring.sequential import SequentialTest, plan_sequential
    from karat.hiring.signs.base import Sign, Thresholds
    from karat.hiring.signs.find import find_signs
    from karat.hiring.team import Team
    from karat.hiring.typical import typical_difficulty
    from karat.hiring.verdicts import Verdict, judge_workers

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
    "Bill": "karat.hiring.bill",
    "BillLine": "karat.hiring.bill",
    "Bonus": "karat.hiring.pay",
    "ClearMajority": "karat.hiring.redundancy.rules",
    "Confident": "karat.hiring.redundancy.rules",
    "Confusion": "karat.hiring.reliability",
    "ControlSet": "karat.hiring.control",
    "Difficulty": "karat.hiring.difficulty",
    "Fixed": "karat.hiring.redundancy.rules",
    "Forecast": "karat.hiring.forecast",
    "ForecastCheck": "karat.hiring.forecast_check",
    "HeldOutCurve": "karat.hiring.held_out",
    "LeakReport": "karat.hiring.leaks",
    "NextAnswers": "karat.hiring.redundancy.asking",
    "Passed": "karat.hiring.planning",
    "PayPlan": "karat.hiring.pay",
    "Reliability": "karat.hiring.beta",
    "Replay": "karat.hiring.redundancy.replay",
    "Review": "karat.hiring.review",
    "Rule": "karat.hiring.redundancy.rules",
    "SequentialTest": "karat.hiring.sequential",
    "Sign": "karat.hiring.signs.base",
    "StableAverage": "karat.hiring.redundancy.rules",
    "Team": "karat.hiring.team",
    "TestPlan": "karat.hiring.planning",
    "Thresholds": "karat.hiring.signs.base",
    "Verdict": "karat.hiring.verdicts",
    "base_rates": "karat.hiring.reliability",
    "check_forecast": "karat.hiring.forecast_check",
    "check_leaks": "karat.hiring.leaks",
    "choose_control": "karat.hiring.control",
    "confusion": "karat.hiring.reliability",
    "find_signs": "karat.hiring.signs.find",
    "fit_difficulty": "karat.hiring.difficulty",
    "forecast_accuracy": "karat.hiring.forecast",
    "get_rule": "karat.hiring.redundancy.registry",
    "judge_workers": "karat.hiring.verdicts",
    "make_bill": "karat.hiring.billing",
    "measure_reliability": "karat.hiring.reliability",
    "measure_votes": "karat.hiring.held_out",
    "next_answers": "karat.hiring.redundancy.asking",
    "plan_sequential": "karat.hiring.sequential",
    "plan_test": "karat.hiring.planning",
    "read_plan": "karat.hiring.pay",
    "replay": "karat.hiring.redundancy.replay",
    "review_workers": "karat.hiring.review",
    "score_interval": "karat.hiring.intervals",
    "select_workers": "karat.hiring.selection",
    "typical_difficulty": "karat.hiring.typical",
    "worker_scores": "karat.hiring.scores",
}

__getattr__ = lazy(__name__, _HOME)
