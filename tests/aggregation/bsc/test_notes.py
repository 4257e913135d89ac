"""A result says which items nobody answered, and when workers cannot be compared."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from crowd_tables import crowd_of
from goldspan.aggregation import get_aggregator

APART = [{f"w{n % 2}": ["B-X", "O"]} for n in range(6)]
TOGETHER = [{"w0": ["B-X", "O"], "w1": ["B-X", "O"]} for _ in range(6)]


@pytest.mark.parametrize("method", ["bsc-seq", "ds", "bsc-cm"])
def test_workers_without_common_items_cannot_be_compared_and_it_is_said(method):
    notes = goldspan.aggregate(crowd_of(APART), method).notes
    assert any(
        note.startswith("100 % of the labelled tokens have a single label") for note in notes
    )


@pytest.mark.parametrize("method", ["bsc-seq", "ds", "bsc-cm"])
def test_nothing_is_said_where_workers_share_items(method):
    assert not goldspan.aggregate(crowd_of(TOGETHER), method).notes


def test_known_truth_is_something_to_compare_with():
    crowd = crowd_of(APART, gold=[["B-X", "O"]] * 6)
    result = get_aggregator("bsc-seq").fit(crowd, gold=crowd).result_
    assert not any("single label" in note for note in result.notes)


def test_predictions_say_nothing_about_learning():
    method = get_aggregator("bsc-seq").fit(crowd_of(TOGETHER))
    assert not method.predict(crowd_of(APART)).notes


def test_items_without_answers_are_counted(crowd):
    two = goldspan.crowd.Crowd(
        crowd.item_ids, crowd.tokens, crowd.worker_ids, crowd.tagset,
        crowd.answers.take(crowd.answers.item >= np.int64(2)), groups=crowd.groups,
    )  # fmt: skip
    assert "2 items without answers are left open" in goldspan.aggregate(two, "bsc-seq").notes
