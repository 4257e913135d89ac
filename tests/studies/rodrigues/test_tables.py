"""Means, deviations, t-tests and orders in the tables, by hand."""

from __future__ import annotations

import pytest
from scipy.stats import ttest_rel

from studies.rodrigues.methods import Claim, Reliability, Run
from studies.rodrigues.tables import error_table, order_notes, score_tables, worker_table

F1 = {"mv-token": (0.5, 0.6, 0.8), "crf-ma": (0.7, 0.75, 0.8)}
CLAIM = Claim("crf-ma", ("mv-token",))
WORKERS = (Reliability("w1", 0.9, 0.8), Reliability("w2", 0.5, 0.8))


def _runs(f1=F1):
    return {
        (n, label): Run({"own items": (0.5, 0.5, value)}, WORKERS, 1.0)
        for label, values in f1.items()
        for n, value in enumerate(values)
    }


def test_a_table_has_mean_deviation_difference_and_p():
    (table,) = score_tables(_runs(), CLAIM, {("own items", "crf-ma"): 74.4})
    votes, ours = table.to_dict()["rows"]
    assert votes["F1"] == pytest.approx(100 * 1.9 / 3)
    assert votes["s.d. F1"] == pytest.approx(15.275252)
    assert votes["crf-ma ahead by"] == pytest.approx(100 * 0.35 / 3)
    assert votes["p"] == pytest.approx(ttest_rel(F1["crf-ma"], F1["mv-token"]).pvalue)
    assert votes["p, Holm"] == votes["p"]  # a single test
    assert ours["p"] is ours["p, Holm"] is None
    assert ours["published F1"] == 74.4
    assert f"{votes['p']:.1e}" in table.markdown()


def test_the_upper_bound_is_one_run_and_not_tested():
    (table,) = score_tables(_runs(F1 | {"crf-gold": (0.9, 0.9, 0.9)}), CLAIM)
    bound = table.to_dict()["rows"][-1]
    assert bound["F1"] == pytest.approx(90)
    assert bound["s.d. F1"] is bound["p"] is None
    assert "repeats" not in table.columns


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ((0.70, 0.72, 0.71), (0.60, 0.63, 0.61), "is above"),
        ((0.70, 0.75, 0.80), (0.50, 0.60, 0.80), "is not shown to be above"),  # p = 0.07
        ((0.60, 0.63, 0.61), (0.70, 0.72, 0.71), "is BELOW"),
        ((0.50, 0.60, 0.80), (0.70, 0.75, 0.80), "is not shown to be above"),
        ((0.50, 0.60, 0.80), (0.50, 0.60, 0.80), "is not shown to be above"),
    ],
)
def test_an_order_holds_by_the_test_over_repeats_and_not_by_a_gap(ours, theirs, verdict):
    note, _ = order_notes(_runs({"mv-token": theirs, "crf-ma": ours}), CLAIM)
    assert note.startswith("The paper's order on own items (paired t-test over 3 repeats): ")
    assert f": crf-ma {verdict} mv-token (" in note
    p = ttest_rel(ours, theirs).pvalue if ours != theirs else None
    assert (f"p = {p:.1e}" in note) if p else ("p =" not in note)


def test_verdicts_go_by_p_values_that_are_corrected_over_all_items_and_rivals():
    """Each of the four has p = 0.04, and all four together prove nothing."""
    ours = (0.70, 0.72, 0.71)
    theirs = (0.66, 0.655, 0.675)
    p = ttest_rel(ours, theirs).pvalue
    assert 0.025 < p < 0.05
    runs = {
        (n, label): Run({"own": (0.5, 0.5, f1[n]), "new": (0.5, 0.5, f1[n])}, WORKERS, 1.0)
        for label, f1 in {"crf-ma": ours, "a": theirs, "b": theirs, "beside": theirs}.items()
        for n in range(3)
    }
    claim = Claim("crf-ma", ("a", "b"))
    own, new, _ = order_notes(runs, claim)
    assert "is not shown to be above a (" in own
    assert "is not shown to be above a (" in new
    one, _ = order_notes(runs, Claim("crf-ma", ("a",)))[1:]
    assert "is not shown" in one  # two tests: 0.06 or more
    rows = {row["method"]: row for row in score_tables(runs, claim)[0].to_dict()["rows"]}
    assert rows["a"]["p, Holm"] == pytest.approx(4 * p)
    assert rows["beside"]["p"] == pytest.approx(p)
    assert rows["beside"]["p, Holm"] is None


@pytest.mark.parametrize(("f1", "verdict"), [(0.5, "is ahead of"), (0.9, "is NOT ahead of")])
def test_one_run_shows_gaps_and_no_verdict_of_a_test(f1, verdict):
    (note,) = order_notes(_runs({"mv-token": (f1,), "crf-ma": (0.7,)}), CLAIM)
    assert f"(one run, no test): crf-ma {verdict} mv-token" in note


def test_methods_with_other_numbers_of_repeats_are_compared_on_those_that_both_have():
    runs = _runs({"mv-token": (0.5, 0.6, 0.8), "ds": (0.4,), "crf-ma": (0.7, 0.75, 0.8, 0.1)})
    (table,) = score_tables(runs, Claim("crf-ma", ("mv-token", "ds")))
    rows = {row["method"]: row for row in table.to_dict()["rows"]}
    assert table.caption.endswith(", 1 to 4 repeats")
    assert [rows[name]["repeats"] for name in rows] == [3, 1, 4]
    assert rows["crf-ma"]["F1"] == pytest.approx(100 * 2.35 / 4)
    assert rows["mv-token"]["crf-ma ahead by"] == pytest.approx(100 * 0.35 / 3)
    assert rows["mv-token"]["p"] == pytest.approx(ttest_rel(F1["crf-ma"], F1["mv-token"]).pvalue)
    assert rows["ds"]["crf-ma ahead by"] == pytest.approx(30)
    assert rows["ds"]["p"] is rows["ds"]["s.d. F1"] is None
    note, _ = order_notes(runs, Claim("crf-ma", ("mv-token", "ds")))
    assert "(paired t-test over the repeats that both have): " in note
    assert "is ahead of ds (+30.00)" in note
    assert "is not shown to be above mv-token (+11.67, p" in note


def test_the_error_of_reliabilities_is_the_root_mean_square():
    table = error_table(_runs(), {"crf-ma": 8.61})
    label, error, mean, published = table.rows[1]
    assert label == "crf-ma"
    assert error == pytest.approx(100 * ((0.01 + 0.09) / 2) ** 0.5)
    assert mean == pytest.approx(10)
    assert published == 8.61


def test_workers_are_shown_as_they_are_and_as_they_are_judged():
    table = worker_table(_runs(), {"w2": "flip(0.3)", "w9": "nobody"})
    assert table.rows[0][0] == "flip(0.3)"
    assert table.rows[0][1:] == pytest.approx((50.0, 80.0, 80.0))
    assert table.rows[1] == ("nobody", None, None, None)
