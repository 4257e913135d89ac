"""Worker quality: reliability, verdicts, quality flags, selection, gold questions, pay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.workers.beta import Reliability as Reliability
    from goldspan.workers.gain import select_by_gain as select_by_gain
    from goldspan.workers.gold_questions import check_leaks as check_leaks
    from goldspan.workers.gold_questions import choose_gold_questions as choose_gold_questions
    from goldspan.workers.pay import PayPlan as PayPlan
    from goldspan.workers.pay import make_bill as make_bill
    from goldspan.workers.qualification import plan_qualification as plan_qualification
    from goldspan.workers.quality_flags import find_quality_flags as find_quality_flags
    from goldspan.workers.redundancy import next_answers as next_answers
    from goldspan.workers.redundancy import replay as replay
    from goldspan.workers.reliability import measure_reliability as measure_reliability
    from goldspan.workers.review import review_workers as review_workers
    from goldspan.workers.selection import select_workers as select_workers
    from goldspan.workers.stopping import Rule as Rule
    from goldspan.workers.verdicts import judge_workers as judge_workers

__getattr__, __dir__, __all__ = lazy(__name__)
