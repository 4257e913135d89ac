"""The picture of verdicts: who is drawn where, and in what words."""

from __future__ import annotations

import numpy as np
import pytest

from goldspan.errors import InputError
from goldspan.report.workers import MOST_IN_TEAM as MAX_WORKERS
from goldspan.report.workers import ranked, verdicts_figure
from goldspan.workers import Reliability, judge_workers
from goldspan.workers.reliability import QualityFlag
from goldspan.workers.verdicts import best_first


@pytest.fixture
def verdicts():
    names = ["good", "$open$", "bad", "odd"]
    tested = Reliability.from_counts(
        [38, 8, 12, 39], [40, 10, 30, 40], worker_ids=names, prior=(1, 1)
    )
    return judge_workers(tested, flags=[QualityFlag("odd", "copies", 1.0, 0.0, "copies")])


def test_workers_stand_by_rank_with_their_intervals(verdicts):
    axes = verdicts_figure(verdicts, 0.75).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "odd",
        "good",
        "$open$",
        "bad",
    ]
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert sorted(legend) == ["drop", "keep", "look at", "test more"]


def test_of_many_workers_those_on_top_of_the_table_are_drawn():
    names = [f"w{n:03}" for n in range(200)]
    right, total = np.append(np.arange(199), 3), np.append(np.full(199, 200), 3)
    tested = Reliability.from_counts(right, total, worker_ids=names, prior=(1, 1))
    verdicts = judge_workers(tested)
    shown = ranked(verdicts)
    assert [v.worker for v in shown] == [v.worker for v in best_first(verdicts)][:MAX_WORKERS]
    assert shown[0].worker == "w198"
    means = [v.mean for v in shown]
    assert means == sorted(means, reverse=True)
    title = verdicts_figure(verdicts, 0.75).axes[0].texts[0].get_text()
    assert title == "first 40 of 200 workers: how often right, %"


def test_the_picture_of_spans_shows_their_f1():
    tested = Reliability.from_counts([8], [10], measure="span_f1", n_labels=5)
    axes = verdicts_figure(judge_workers(tested), 0.6).axes[0]
    assert axes.texts[0].get_text() == "1 worker: span F1, %"
    assert axes.get_xlabel().startswith("span F1, %")


def test_nobody_cannot_be_drawn():
    with pytest.raises(InputError, match="no worker"):
        verdicts_figure([], 0.75)
