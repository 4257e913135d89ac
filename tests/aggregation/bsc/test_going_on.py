"""Going on from an earlier result: hidden variables, fewer tags, other makes of input."""

from __future__ import annotations

import json

import pytest

import goldspan
from goldspan.aggregation import get_aggregator
from goldspan.errors import InputError


@pytest.mark.parametrize("method", ["bsc-seq", "mace"])
def test_a_batch_without_some_types_is_put_into_the_tags_of_the_fit(crowd, method):
    lines = b"item\ttoken\tana\tbo\nx\tRome\tB-LOC\tB-LOC\nx\twins\tO\tO\n"
    batch = goldspan.read_crowd(lines, format="wide")
    aggregator = get_aggregator(method).fit(crowd)
    assert aggregator.predict(batch).tags == [["B-LOC", "O"]]
    assert goldspan.aggregate(batch, method, history=aggregator.result_).tags == [["B-LOC", "O"]]
    assert goldspan.aggregate(batch, method, start=aggregator.result_).tags == [["B-LOC", "O"]]


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
