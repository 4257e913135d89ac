"""Worker quality: reliability, verdicts, quality flags, selection, gold questions, pay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.workers.beta import Reliability
    from goldspan.workers.difficulty import Difficulty, fit_difficulty, typical_difficulty
    from goldspan.workers.flag_context import QualityFlag, Thresholds
    from goldspan.workers.forecast import Forecast, ForecastCheck, check_forecast, forecast_accuracy
    from goldspan.workers.gold_questions import (
        GoldQuestions,
        LeakReport,
        check_leaks,
        choose_gold_questions,
    )
    from goldspan.workers.pay import Bill, BillLine, Bonus, PayPlan, make_bill, read_plan
    from goldspan.workers.qualification import (
        Passed,
        QualificationPlan,
        SequentialTest,
        plan_qualification,
        plan_sequential_test,
    )
    from goldspan.workers.quality_flags import find_quality_flags
    from goldspan.workers.redundancy import NextAnswers, Replay, next_answers, replay
    from goldspan.workers.reliability import Confusion, base_rates, confusion, measure_reliability
    from goldspan.workers.review import HeldOutCurve, Review, measure_votes, review_workers
    from goldspan.workers.scores import score_interval, worker_scores
    from goldspan.workers.selection import WorkerSelection, select_workers
    from goldspan.workers.stopping import (
        ClearMajority,
        Confident,
        Fixed,
        Rule,
        StableAverage,
        get_rule,
    )
    from goldspan.workers.verdicts import Verdict, judge_workers

__all__ = [
    "Bill",
    "BillLine",
    "Bonus",
    "ClearMajority",
    "Confident",
    "Confusion",
    "Difficulty",
    "Fixed",
    "Forecast",
    "ForecastCheck",
    "GoldQuestions",
    "HeldOutCurve",
    "LeakReport",
    "NextAnswers",
    "Passed",
    "PayPlan",
    "QualificationPlan",
    "QualityFlag",
    "Reliability",
    "Replay",
    "Review",
    "Rule",
    "SequentialTest",
    "StableAverage",
    "Thresholds",
    "Verdict",
    "WorkerSelection",
    "base_rates",
    "check_forecast",
    "check_leaks",
    "choose_gold_questions",
    "confusion",
    "find_quality_flags",
    "fit_difficulty",
    "forecast_accuracy",
    "get_rule",
    "judge_workers",
    "make_bill",
    "measure_reliability",
    "measure_votes",
    "next_answers",
    "plan_qualification",
    "plan_sequential_test",
    "read_plan",
    "replay",
    "review_workers",
    "score_interval",
    "select_workers",
    "typical_difficulty",
    "worker_scores",
]

_HOME = {
    "Bill": "goldspan.workers.pay",
    "BillLine": "goldspan.workers.pay",
    "Bonus": "goldspan.workers.pay",
    "ClearMajority": "goldspan.workers.stopping",
    "Confident": "goldspan.workers.stopping",
    "Confusion": "goldspan.workers.reliability",
    "GoldQuestions": "goldspan.workers.gold_questions",
    "Difficulty": "goldspan.workers.difficulty",
    "Fixed": "goldspan.workers.stopping",
    "Forecast": "goldspan.workers.forecast",
    "ForecastCheck": "goldspan.workers.forecast",
    "HeldOutCurve": "goldspan.workers.review",
    "LeakReport": "goldspan.workers.gold_questions",
    "NextAnswers": "goldspan.workers.redundancy",
    "Passed": "goldspan.workers.qualification",
    "PayPlan": "goldspan.workers.pay",
    "Reliability": "goldspan.workers.beta",
    "Replay": "goldspan.workers.redundancy",
    "Review": "goldspan.workers.review",
    "Rule": "goldspan.workers.stopping",
    "SequentialTest": "goldspan.workers.qualification",
    "QualityFlag": "goldspan.workers.flag_context",
    "StableAverage": "goldspan.workers.stopping",
    "WorkerSelection": "goldspan.workers.selection",
    "QualificationPlan": "goldspan.workers.qualification",
    "Thresholds": "goldspan.workers.flag_context",
    "Verdict": "goldspan.workers.verdicts",
    "base_rates": "goldspan.workers.reliability",
    "check_forecast": "goldspan.workers.forecast",
    "check_leaks": "goldspan.workers.gold_questions",
    "choose_gold_questions": "goldspan.workers.gold_questions",
    "confusion": "goldspan.workers.reliability",
    "find_quality_flags": "goldspan.workers.quality_flags",
    "fit_difficulty": "goldspan.workers.difficulty",
    "forecast_accuracy": "goldspan.workers.forecast",
    "get_rule": "goldspan.workers.stopping",
    "judge_workers": "goldspan.workers.verdicts",
    "make_bill": "goldspan.workers.pay",
    "measure_reliability": "goldspan.workers.reliability",
    "measure_votes": "goldspan.workers.review",
    "next_answers": "goldspan.workers.redundancy",
    "plan_sequential_test": "goldspan.workers.qualification",
    "plan_qualification": "goldspan.workers.qualification",
    "read_plan": "goldspan.workers.pay",
    "replay": "goldspan.workers.redundancy",
    "review_workers": "goldspan.workers.review",
    "score_interval": "goldspan.workers.scores",
    "select_workers": "goldspan.workers.selection",
    "typical_difficulty": "goldspan.workers.difficulty",
    "worker_scores": "goldspan.workers.scores",
}

__getattr__ = lazy(__name__, _HOME)
