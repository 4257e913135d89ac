"""Verdicts: their rule, the forecast of questions against simulation, flags, refusals."""

from __future__ import annotations

import pytest
from scipy.stats import beta, betabinom

from goldspan.errors import InputError
from goldspan.workers import Reliability, judge_workers
from goldspan.workers.reliability import QualityFlag
from goldspan.workers.verdicts import (
    SETTLED,
    SIZES,
    default_threshold,
    p_settled,
    questions_to_settle,
)


@pytest.fixture
def tested() -> Reliability:
    names = ["good", "open", "bad", "new"]
    return Reliability.from_counts([38, 8, 12, 0], [40, 10, 30, 0], worker_ids=names, prior=(2, 1))


def test_a_verdict_follows_from_the_posterior(tested):
    found = judge_workers(tested, threshold=0.7, sure=0.95)
    assert [v.verdict for v in found] == ["keep", "test more", "drop", "test more"]
    for verdict, a, b in zip(found, tested.a, tested.b, strict=True):
        assert verdict.p_above == pytest.approx(beta.sf(0.7, a, b), abs=1e-9)
        assert (verdict.more == 0) == (verdict.verdict in {"keep", "drop"})


def test_surer_verdicts_leave_more_to_test(tested):
    loose = judge_workers(tested, threshold=0.7, sure=0.6)
    strict = judge_workers(tested, threshold=0.7, sure=0.9999999)
    assert [v.verdict for v in loose] == ["keep", "keep", "drop", "test more"]
    assert [v.verdict for v in strict] == ["test more", "test more", "test more", "test more"]


@pytest.mark.parametrize(("n_labels", "wanted"), [(2, 0.75), (4, 0.625)])
def test_the_threshold_is_halfway_between_chance_and_one(n_labels, wanted):
    assert default_threshold(Reliability.from_counts([1], [1], n_labels=n_labels)) == wanted


@pytest.mark.parametrize(("a", "b"), [(1, 1), (8, 3), (20.5, 9.3), (4, 4)])
@pytest.mark.parametrize("n", [1, 7, 40])
def test_the_forecast_is_that_of_all_outcomes_one_by_one(a, b, n):
    whole = 0.0
    for k in range(n + 1):
        p = beta.sf(0.75, a + k, b + n - k)
        if p >= 0.9 or p <= 0.1:
            whole += betabinom.pmf(k, n, a, b)
    assert p_settled(a, b, [n], 0.75, 0.9)[0] == pytest.approx(whole, abs=1e-9)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (7.0, 3.0)])
def test_the_forecast_is_the_smallest_size_that_settles_it(a, b):
    """With Beta(1, 1) one question settles it as likely as not, two do not, and ten do again."""
    settled = [
        sum(
            betabinom.pmf(k, n, a, b)
            for k in range(n + 1)
            if not 0.1 < beta.sf(0.75, a + k, b + n - k) < 0.9
        )
        for n in SIZES
    ]
    smallest = next(n for n, p in zip(SIZES, settled, strict=True) if p >= SETTLED)
    assert questions_to_settle(a, b, 0.75, 0.9) == smallest


def test_one_question_is_one_question():
    verdict = judge_workers(Reliability.from_counts([0], [0], prior=(1, 1)), threshold=0.75)[0]
    assert verdict.more == 1
    assert "about 1 more question would settle it" in verdict.why


def test_a_threshold_is_written_with_a_tenth_of_a_per_cent():
    verdict = judge_workers(Reliability.from_counts([9], [10], n_labels=4))[0]
    assert "more than 62.5 % right" in verdict.why


def test_what_a_thousand_questions_cannot_settle_has_no_number():
    one = Reliability.from_counts([3750], [5000], prior=(1, 1))
    verdict = judge_workers(one)[0]
    assert verdict.more is None
    assert "more than 1,000 more questions" in verdict.why


def test_a_sign_turns_keep_into_look_at_and_nothing_else(tested):
    flags = [QualityFlag(name, "copies", 0.9, 0.001, "copies.") for name in ("good", "open", "bad")]
    found = judge_workers(tested, threshold=0.7, sure=0.95, flags=flags)
    assert [v.verdict for v in found] == ["look at", "test more", "drop", "test more"]
    assert [len(v.flags) for v in found] == [1, 1, 1, 0]
    assert "; to look at: copies: copies." in found[0].why


def test_reasons_name_threshold_probability_and_unit(tested):
    why = [v.why for v in judge_workers(tested, threshold=0.7, sure=0.95)]
    assert why[0] == "more than 70.0 % right with probability over 0.999"
    assert why[2] == "more than 70.0 % right with probability 0.001 only"
    assert why[3].startswith("nothing judged yet: about ")
    spans = Reliability.from_counts([8], [10], measure="span_f1", n_labels=5)
    assert "an F1 of more than 60.0 %" in judge_workers(spans)[0].why
    assert "independent spans" in judge_workers(spans, threshold=0.75)[0].why


def test_a_verdict_is_plain_values(tested):
    import json

    flag = QualityFlag("good", "copies", 0.9, 0.001, "copies.", {"other": "bad", "equal": 7})
    row = judge_workers(tested, flags=[flag])[0].to_dict()
    assert json.loads(json.dumps(row)) == row
    assert row["flags"][0]["other"] == "bad"


@pytest.mark.parametrize("option", [{"threshold": 0.0}, {"threshold": 1.5}, {"sure": 0.5}])
def test_what_is_out_of_range_is_refused(tested, option):
    with pytest.raises(InputError, match="lies between"):
        judge_workers(tested, **option)
