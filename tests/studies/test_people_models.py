"""The study people-models on tiny data."""

from __future__ import annotations

from studies import run_study
from studies.people_models import ALONE, TEAMS, Bench, read_crowds


def test_its_tables_have_every_team_and_a_kept_run_is_not_done_again(tiny, tmp_path, monkeypatch):
    state = tmp_path / "runs.jsonl"
    found = run_study("people-models", tiny, quick=True, threads=1, state=state)
    *teams, campaign = found.tables
    assert [[row[0] for row in table.rows] for table in teams] == [[*TEAMS], [*TEAMS]]
    for table in teams:
        assert all(0 <= row[2] <= 100 for row in table.rows)
        assert {row[0] for row in table.rows if row[5] is None} == {"two people", "all people"}
    shares = [row[2] for row in campaign.rows]
    assert shares == sorted(shares)
    assert shares[-1] <= 25 + 1e-6
    assert set(ALONE) < set(TEAMS)

    def fail(*_):
        raise AssertionError

    monkeypatch.setattr(Bench, "play", fail)
    again = run_study("people-models", tiny, quick=True, threads=1, state=state)
    assert [table.rows for table in again.tables] == [table.rows for table in found.tables]
    options = {"quick": True, "threads": 1, "state": state}
    so_far = run_study("people-models", tiny, repeats=3, so_far=True, **options)
    assert so_far.tables == found.tables
    assert "the first 1 of 3 repeats" in so_far.notes[1]


def test_machines_learn_from_sentences_that_the_crowd_has_not(tiny):
    crowd, others = read_crowds(tiny)
    bench = Bench(crowd, others, "bsc-seq")
    assert len(bench.taggers) == 3
    assert all(len(one.codes) == crowd.n_tokens for one in bench.machines.values())
