"""The study people-models on tiny data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from goldspan.crowd import write_crowd
from goldspan.errors import InputError
from goldspan.spans import Tagged
from studies import run_study
from studies.people_models import (
    ALL,
    ALONE,
    MODEL,
    MODELS,
    PEOPLE,
    TEAMS,
    Bench,
    read_crowds,
    read_model,
)
from studies.purity.crowds import with_workers
from tiny_data import write_data

N_LABELLED = 20


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Tiny data, and a file in which a tagger labelled the first sentences."""
    folder = write_data(tmp_path_factory.mktemp("people-models"))
    crowd, others = read_crowds(folder)
    first = np.arange(crowd.n_items) < N_LABELLED
    crowd = with_workers(crowd, {"m": Bench(crowd, others).tagged}).select_items(first)
    facts = {"m": {"kind": "tagger", "family": "f"}}
    write_crowd(replace(crowd, worker_facts=facts), folder / MODELS)
    return folder


def test_its_tables_have_every_team_and_a_kept_run_is_not_done_again(data, tmp_path, monkeypatch):
    state = tmp_path / "runs.jsonl"
    found = run_study("people-models", data, quick=True, threads=1, state=state)
    teams, campaign = found.tables
    assert [row[0] for row in teams.rows] == [*TEAMS]
    assert all(0 <= row[2] <= 100 for row in teams.rows)
    assert {row[0] for row in teams.rows if row[5] is None} == {PEOPLE, ALL}
    shares = [row[2] for row in campaign.rows]
    assert shares == sorted(shares)
    assert shares[-1] <= 25 + 1e-6
    assert set(ALONE) < set(TEAMS)
    assert f"{N_LABELLED} sentences" in found.notes[1]

    def fail(*_):
        raise AssertionError

    monkeypatch.setattr(Bench, "play", fail)
    again = run_study("people-models", data, quick=True, threads=1, state=state)
    assert [table.rows for table in again.tables] == [table.rows for table in found.tables]
    options = {"quick": True, "threads": 1, "state": state}
    so_far = run_study("people-models", data, repeats=3, so_far=True, **options)
    assert so_far.tables == found.tables
    assert "the first 1 of 3 repeats" in so_far.notes[1]


def test_a_model_has_answered_what_its_file_says(data, tiny):
    crowd, others = read_crowds(data)
    kept, model, name = read_model(data, crowd, None)
    assert (kept.n_items, name) == (N_LABELLED, "m")
    bench = Bench(kept, others, model)
    tags = Bench(crowd, others).tagger.predict(kept.tokens_list)
    assert kept.tagset.decode_complete(Tagged(model.codes, kept.offsets)) == tags
    assert bench.answers(MODEL) is model
    with pytest.raises(InputError, match="goldspan label"):
        read_model(tiny, crowd, None)
