"""The study campaign-ner as a whole: its tables, its picture, and going on after a break."""

from __future__ import annotations

import json

import pytest

from goldspan.crowd import read_crowd
from studies import run_study
from studies.campaign_ner import experiment
from studies.campaign_ner.journal import Journal
from studies.campaign_ner.play import Bench, Point
from studies.campaign_ner.selecting import (
    QUICK,
    Selecting,
    Size,
    halves,
    plan_of,
    selection_table,
    selections,
)
from studies.campaign_ner.tables import Mean, answer_table
from studies.campaign_ner.ways import ADAPTIVE, ALLOWED, FULL, fixed_label, random_label, ways


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    return tmp_path_factory.mktemp("runs") / "runs.jsonl"


@pytest.fixture(scope="module")
def study(tiny, state):
    seen = []
    found = run_study(
        "campaign-ner", tiny, quick=True, threads=1, state=state,
        progress=lambda *done: seen.append(done),
    )  # fmt: skip
    total = sum(way.n_points for way in ways(quick=True))
    assert seen[-1] == (total, total)
    return found


def test_the_tables_hold_every_point_of_every_way(study):
    answer, points, told = study.tables
    assert [row[0] for row in answer.rows][-1].startswith("fixed redundancy")
    expected = [way.label for way in ways(quick=True)]
    assert list(dict.fromkeys(row[0] for row in points.rows)) == expected
    assert len(points.rows) == sum(way.n_points for way in ways(quick=True))
    shares = [row[2] for row in points.rows if row[0] == ADAPTIVE]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(100 * ALLOWED, abs=1.5)  # of 72 answers
    assert [row[0] for row in told.rows] == [one.label for one in selections(quick=True)]


def test_campaigns_differ_in_the_rule_alone_and_never_see_the_articles_they_are_scored_on(tiny):
    crowd = read_crowd(tiny / "ner_mturk" / "crowd.tsv.gz")
    pool, test = halves(crowd, QUICK)
    assert not {*pool.groups.to_pylist()} & {*test.groups.to_pylist()}
    assert pool.n_items + test.n_items == crowd.n_items
    plans = [plan_of(pool, way, 3) for way in selections(quick=True)]
    assert [plan.pop("select")["errors"] for plan in plans] == [False, True, True, False, True]
    assert all(plan == plans[0] for plan in plans)


def test_the_points_of_a_campaign_are_those_of_its_rounds(tiny):
    crowd = read_crowd(tiny / "ner_mturk" / "crowd.tsv.gz")
    way = Selecting("x", "random, then mnlp", errors=True, beside="", size=Size(24, 5, "2", 5))
    one, again = (list(way.play(Bench(crowd), 1)) for _ in range(2))
    assert one == again
    assert [point.answers for point in one] == sorted(point.answers for point in one)
    assert one[-1].money <= 2_000_000
    assert all(point.unasked < 12 for point in one)


def test_a_campaign_is_compared_with_another_seed_by_seed():
    size = Size()
    ways = [
        Selecting("a", "random", errors=False, beside="", size=size),
        Selecting("b", "random", errors=True, beside="a", size=size),
    ]
    runs = {
        (seed, label): (Point(9, 10**6, 0.1, 0), Point(9, 2 * 10**6, f1, 0))
        for label, row in {"a": (0.5, 0.6), "b": (0.52, 0.64)}.items()
        for seed, f1 in enumerate(row)
    }
    table = selection_table(runs, ways)
    one, other = table.rows
    assert len(one) == len(other) == len(table.columns)
    assert one[:2] == ("a", 2)
    assert one[2:7] == pytest.approx((10, 55, 9, 2, 55))
    assert one[7:] == ("", None, None, None)
    assert other[7] == "a"
    assert other[8:10] == pytest.approx((3, 1))


def test_a_run_that_is_kept_is_not_done_again(study, tiny, state, monkeypatch):
    def fail(*_):
        raise AssertionError

    monkeypatch.setattr(experiment.Way, "play", fail)
    again = run_study("campaign-ner", tiny, quick=True, threads=1, state=state)
    assert [table.rows for table in again.tables] == [table.rows for table in study.tables]
    options = {"quick": True, "threads": 1, "state": state}
    so_far = run_study("campaign-ner", tiny, repeats=3, so_far=True, **options)
    assert [table.rows for table in so_far.tables] == [table.rows for table in study.tables]
    assert "the first 1 of 3 repeats" in so_far.notes[1]


def test_the_journal_passes_over_what_is_cut_off_or_of_another_study(tmp_path):
    path = tmp_path / "runs.jsonl"
    points = [Point(3, 40, 0.5, 0), Point(5, 60, 0.625, 1)]
    Journal(path, {"a": "now"}).add((0, "a"), points)
    Journal(path, {"a": "before"}).add((1, "a"), points)
    path.write_text(path.read_text() + '{"of": "now", "se')
    kept = Journal(path, {"a": "now"})
    assert list(kept.runs) == [(0, "a")]
    assert kept.runs[0, "a"][1] == points[1]
    kept.add((2, "a"), points)
    assert json.loads(path.read_text().splitlines()[-1])["seed"] == 2
    assert list(Journal(path, {"a": "now"}).runs) == [(0, "a"), (2, "a")]


def _mean(answers, money, f1):
    return [Mean(answers, money, f1, f1, f1, 0.0, 1)]


def test_what_fixed_redundancy_gives_for_the_same_money_lies_between_its_points():
    found = {
        FULL: _mean(1, 1, 0.80),
        ADAPTIVE: _mean(0.5, 0.5, 0.78) + _mean(0.6, 0.75, 0.795),
        random_label(ALLOWED): _mean(0.6, 0.6, 0.7),
        fixed_label(3): _mean(0.5, 0.5, 0.7),
    }
    rows = {row[0]: row[1:] for row in answer_table(found).rows}
    assert rows[f"{ADAPTIVE}, at the end"] == pytest.approx((60, 75, 79.5, 0.5))
    share, money, f1, missed = rows["fixed redundancy for the money of the last round"]
    assert share is None
    assert (money, f1, missed) == pytest.approx((75, 75, -4))
