"""The study forecast on tiny data."""

from __future__ import annotations

import pytest

from studies import forecast, run_study
from studies.forecast import CROWDS, Played, forecast_at


def test_campaigns_are_run_once_and_shown_by_crowd_and_moment(tiny, tmp_path, monkeypatch):
    state = tmp_path / "runs.jsonl"
    found = run_study("forecast", tiny, quick=True, threads=1, state=state)
    (table,) = found.tables
    assert {row[0] for row in table.rows} == {*CROWDS}
    assert all(row[2] == 1 for row in table.rows)
    assert "QUICK" in found.notes[0]
    monkeypatch.setattr(forecast, "play", lambda *_, **__: pytest.fail("played again"))
    again = run_study("forecast", tiny, quick=True, threads=1, state=state)
    assert again.tables == found.tables
    options = {"quick": True, "threads": 1, "state": state}
    so_far = run_study("forecast", tiny, repeats=3, so_far=True, **options)
    assert so_far.tables == found.tables
    assert so_far.notes[1].startswith("SO FAR: 3 of 9 runs are finished. ")


def test_a_forecast_is_held_against_what_was_spent_at_the_end():
    scores = [0.3 + 0.3 * (1 - n**-0.8) for n in range(1, 31)]
    rounds = [
        {"items": 50 * n, "pool": 2_000, "spent": 1_000 * n, "answers": 150 * n,
         "control": {"value": y, "low": y - 0.005, "high": y + 0.005, "n": 800}}
        for n, y in enumerate(scores, 1)
    ]  # fmt: skip
    target = 0.56
    end = next(n for n in range(2, 31) if min(scores[n - 2 : n]) - 0.005 >= target)
    run = Played(rounds[:end], "target")
    found = forecast_at(run, target, 0.5)
    assert found.asked == -(-end // 2)
    assert found.holds
    assert found.width < 1
    assert forecast_at(run, target, 0.0) is None  # after the first round nothing is known
