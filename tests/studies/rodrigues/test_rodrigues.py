"""Every study of Rodrigues et al. runs on tiny data."""

from __future__ import annotations

import math

import pytest

from goldspan.report import save_figure
from studies import run_study

FEW = {
    "rodrigues-2": ("mv-seg (in or out)", "hmm-ma (eq. 15)", "crf-ma (eq. 15)", "crf-gold"),
    "rodrigues-3": ("crf-conc", "crf-ma (c2 = 0.5)"),
    "rodrigues-4": ("mv-token", "multicrf-max", "crf-ma (eq. 15)"),
    "rodrigues-5": ("mv-seg (in or out)", "ds", "crf-ma", "bsc-seq+crf"),
    "rodrigues-6": ("crf-conc", "crf-ma", "bsc-seq"),
}


@pytest.mark.parametrize("name", FEW)
def test_a_study_makes_tables_notes_and_a_picture(name, tiny, tmp_path):
    told = []
    study = run_study(
        name, tiny, methods=FEW[name], quick=True, progress=lambda *counts: told.append(counts)
    )
    for table in study.tables[:3]:
        rows = table.to_dict()["rows"]
        assert [row["method"] for row in rows] == list(FEW[name])
        assert all(0 <= row["F1"] <= 100 and math.isfinite(row["P"]) for row in rows)
        assert ("p" in table.columns) == (name != "rodrigues-5")
    assert study.notes[0].startswith("QUICK")
    assert not any("The paper's order" in note for note in study.notes)  # a part proves nothing
    assert told[-1][0] == told[-1][1]
    save_figure(study.picture(), tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").stat().st_size > 1000


@pytest.mark.parametrize("part", [{"quick": True}, {"sentences": 24}])
def test_nothing_published_stands_beside_results_on_a_part_of_the_data(tiny, part):
    every, some = (
        run_study("rodrigues-5", tiny, methods=("mv-token", "crf-ma"), **own) for own in ({}, part)
    )
    assert any("74.4" in table.markdown() for table in every.tables)
    assert any("8.61" in table.markdown() for table in every.tables)
    on_testb = next(table for table in every.tables if "testb" in table.caption)
    assert "published F1" not in on_testb.columns  # 62.6 is not known to be of testb
    for table in some.tables:
        assert not any("published" in column for column in table.columns)
        assert "8.61" not in table.markdown()


@pytest.mark.realdata
def test_the_paper_s_order_holds_on_part_of_the_real_crowd(data):
    methods = ("mv-token", "crf-conc", "crf-ma")
    study = run_study("rodrigues-5", data, methods=methods, sentences=500)
    notes = [note for note in study.notes if "order" in note]
    assert len(notes) == 3
    assert all("is ahead of" in note and "NOT" not in note for note in notes)
