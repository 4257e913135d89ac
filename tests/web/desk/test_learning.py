"""The learning curve of the desk: what rounds measured, and estimates in money to the cent."""

from __future__ import annotations

import pytest

from goldspan.web.desk import desk

SCORES = [(20, 0.70), (40, 0.80), (60, 0.84), (80, 0.86)]


def rounds():
    """Return the records of four rounds, the first without a score."""
    made = [
        {"items": items, "control": {"value": value, "low": value - 0.05, "high": value + 0.05}}
        for items, value in SCORES
    ]
    return [{"items": 5, "control": None, "score": None}, *({**one, "score": None} for one in made)]


@pytest.fixture
def stopped(fresh):
    """A campaign whose last round said what more would cost."""
    facts = {"next": {"items": 100, "score": 0.9, "low": 0.88, "high": 0.92, "cost": 1_985_246},
             "end": {"low": 1.0, "text": "between 4 and 6 more"}, "ask_again": None}  # fmt: skip
    fresh.ledger.record("stop", "r001", {"stop": False, "facts": facts}, fresh.clock())
    return fresh


def test_every_round_with_a_score_is_a_point(fresh):
    points = fresh.desk.learning(rounds()).points
    assert [(one.items, one.value) for one in points] == SCORES
    assert points[0].low == pytest.approx(0.65)


def test_the_curve_goes_through_its_interval_and_beyond_the_last_point(fresh, monkeypatch):
    curve = fresh.desk.learning(rounds()).curve
    assert curve["items"][0] == 20
    assert curve["items"][-1] > 80
    bounds = zip(curve["low"], curve["score"], curve["high"], strict=True)
    assert all(low <= score <= high for low, score, high in bounds)
    monkeypatch.setattr(desk, "drawn_curve", lambda *_: pytest.fail("computed again"))
    assert fresh.desk.learning(rounds()).curve == curve


def test_what_is_estimated_is_told_to_the_cent(stopped):
    forecast = stopped.desk.learning([]).forecast
    assert forecast["next"]["cost"] == "1.99"
    assert forecast["end"]["text"].endswith("between 4 and 6 more")
    assert "low" not in forecast["end"]  # which is in millionths


def test_before_the_first_round_there_is_nothing(fresh):
    found = fresh.desk.learning([])
    assert (found.points, found.curve, found.forecast) == ([], None, None)
