"""Habits in the report: told for models, in the order of the workers' table."""

from __future__ import annotations

from goldspan.report.sections import render
from goldspan.report.workers import worker_habits, worker_table


def test_the_report_says_what_workers_do_with_spans(model, page):
    found = dict(worker_habits(model, worker_table(model, None)))
    assert any("one token early" in habit for habit in found["chi"])
    assert "opens spans one token early" in page(render(model)).text


def test_votes_and_single_labels_have_no_habits_in_the_report(consensus):
    assert worker_habits(consensus, worker_table(consensus, None)) == []
