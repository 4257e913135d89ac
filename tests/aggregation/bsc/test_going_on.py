"""Going on from an earlier result: hidden variables, fewer tags, other makes of input."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import goldspan
from goldspan.aggregation import calibrate, get_aggregator
from goldspan.errors import InputError

METHODS = ["mace", "bsc-mace", "bsc-seq", "bsc-cv", "ibcc", "ds"]


@pytest.fixture(scope="module")
def crowd(root):
    return goldspan.read_crowd(root / "examples" / "crowd.tsv")


@pytest.mark.parametrize("method", METHODS)
def test_what_was_fitted_is_predicted_again(crowd, method):
    aggregator = get_aggregator(method).fit(crowd)
    again = aggregator.predict(crowd)
    np.testing.assert_allclose(again.token_probs, aggregator.result_.token_probs, atol=1e-6)
    np.testing.assert_array_equal(again.codes, aggregator.result_.codes)


@pytest.mark.parametrize("method", METHODS)
def test_a_warm_start_goes_on_where_the_last_run_stopped(crowd, method):
    first = goldspan.aggregate(crowd, method)
    second = goldspan.aggregate(crowd, method, start=first)
    assert len(second.trace) <= 3
    assert second.trace[0] == pytest.approx(first.trace[-1], rel=1e-6)


@pytest.mark.parametrize("method", ["bsc-seq", "mace"])
def test_a_batch_without_some_types_is_put_into_the_tags_of_the_fit(crowd, method):
    lines = b"item\ttoken\tana\tbo\nx\tRome\tB-LOC\tB-LOC\nx\twins\tO\tO\n"
    batch = goldspan.read_crowd(lines, format="wide")
    aggregator = get_aggregator(method).fit(crowd)
    assert aggregator.predict(batch).tags == [["B-LOC", "O"]]
    assert goldspan.aggregate(batch, method, history=aggregator.result_).tags == [["B-LOC", "O"]]
    assert goldspan.aggregate(batch, method, start=aggregator.result_).tags == [["B-LOC", "O"]]


def test_a_result_is_calibrated_once(crowd):
    result = calibrate(goldspan.aggregate(crowd, "bsc-seq"), crowd)
    with pytest.raises(InputError, match="already"):
        calibrate(result, crowd)


@pytest.mark.parametrize("prior", ["population", "votes"])
@pytest.mark.parametrize("method", ["one-coin", "mace", "bsc-acc", "bsc-mace", "bsc-cv"])
def test_habits_of_the_population_need_confusion_matrices(method, prior):
    with pytest.raises(InputError, match=f"prior='{prior}' needs confusion matrices"):
        get_aggregator(method, prior=prior)


@pytest.mark.parametrize("method", ["ds", "one-coin"])
def test_em_has_no_evidence_bound_to_choose_a_prior_by(method):
    with pytest.raises(InputError, match="evidence bound"):
        get_aggregator(method, prior="auto")


def test_indexes_beyond_the_crowd_are_refused(crowd):
    result = goldspan.aggregate(crowd, "bsc-seq")
    for call in (result.alternatives, result.confusion, result.habits):
        for index in (-1, 10_000):
            with pytest.raises(InputError, match="there is no"):
                call(index)


def test_a_summary_with_a_history_is_json(crowd):
    first = goldspan.aggregate(crowd, "ds")
    json.dumps(goldspan.aggregate(crowd, "ds", history=first).summary())


def test_integer_tasks_stay_integers_in_every_make_of_frame():
    columns = {"task": [5, 5, 7], "worker": ["a", "b", "a"], "label": ["x", "x", "y"]}
    labels = get_aggregator("ds").fit_predict(pl.DataFrame(columns))
    assert labels["task"].to_list() == [5, 7]
