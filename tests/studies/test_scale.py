"""The study scale: what it measures, what it keeps, and what it reckons."""

from __future__ import annotations

import operator
import time

import numpy as np
import pytest

import goldspan
from benchmarks.children import Outcome, Work
from goldspan.errors import GoldspanError
from studies import run_study
from studies.scale import plan, points, study
from studies.scale.crowds import MANY, NINE, TAGGED, TWO, write_crowd
from studies.scale.plan import Constants, breaks, needs

FACTS = {
    "labels": 1e4, "workers": 50, "items": 2e3, "file_mb": 1.0, "read": 0.1, "read_cpu": 0.1,
    "read_mb": 9.0, "crowd_mb": 2.0, "seconds": 1.0, "cpu": 1.0, "step": 0.02, "step_cpu": 0.01,
    "added_mb": 5.0, "load": 0.5, "update": 0.001, "rows": 100, "evidence_mb": 1.0,
    "parameters_mb": 1.0, "result_mb": 2.0,
}  # fmt: skip


@pytest.mark.parametrize("kind", [TWO, NINE, TAGGED, MANY], ids=lambda kind: kind.name)
def test_a_crowd_has_the_size_and_the_tags_that_were_asked_for(kind, tmp_path):
    path = tmp_path / "crowd.parquet"
    write_crowd(kind, 20_000, path)
    crowd = goldspan.read_crowd(path)
    assert len(crowd.tagset.tags) == kind.n_tags
    assert crowd.is_classification != kind.is_tagged
    assert abs((crowd.latest.codes >= 0).sum() / 20_000 - 1) < 0.01
    assert abs(crowd.n_workers / kind.n_workers(20_000) - 1) < 0.1
    assert set(np.diff(crowd.by_item.bounds)) == {5}


@pytest.mark.parametrize(("kind", "method"), [(TWO, "ds"), (TAGGED, "bsc-seq")])
def test_an_aggregation_is_measured(kind, method, tmp_path):
    path = tmp_path / "crowd.parquet"
    write_crowd(kind, 20_000, path)
    facts = points.AGGREGATE.run(points.Job(path, method, 1), print)
    assert facts.keys() == FACTS.keys()
    crowd = goldspan.read_crowd(path)
    assert facts["labels"] == (crowd.latest.codes >= 0).sum()
    result = goldspan.aggregate(crowd, method, max_iter=2)
    assert facts["rows"] == len(result.memory.model.rows)
    assert facts["result_mb"] * 2**20 >= result.token_probs.nbytes
    assert 0 < facts["step_cpu"] <= facts["cpu"]
    assert 0 < facts["step"] <= facts["seconds"]


@pytest.mark.parametrize(("n", "limit"), [(10**14, 2.0), (10**8, 0.5)])  # refused, and used
def test_a_measurement_that_needs_too_much_memory_is_told_as_such(n, limit):
    takes = Work(np.ones, _slowly, operator.is_)
    found = study._direct(takes, 10, n, int(limit * 1e9))
    assert found.failed == f"it needs more than {limit} GB"
    assert found.facts == {}


def test_an_error_of_a_measurement_is_not_taken_for_a_lack_of_memory():
    with pytest.raises(GoldspanError, match="goes on with it"):
        study._direct(points.SERVE, "no number", 30, 2_000_000_000)


def test_a_pool_that_is_served_is_measured():
    facts = points.SERVE.run(200, print)
    assert {name for _, name, _ in study.POOL_ROWS} <= facts.keys()
    assert all(value >= 0 for value in facts.values())


def _slowly(given, _):
    """Take long enough to be looked at."""
    time.sleep(0.3)
    return given


@pytest.fixture
def played(monkeypatch):
    """Measurements that are made up; gives what was asked for."""
    asked = []

    def measured(_work, _little, much, *, memory):
        asked.append((much, memory))
        nothing = float("nan")
        if isinstance(much, points.Job):
            n = int(much.path.stem)
            if n == 10**7:
                return Outcome(nothing, nothing, None, None, finished=False, failed="too large")
            step = n * (2e-8 if n > 10**6 else 1e-8)
            return Outcome(1, 1, FACTS | {"labels": n, "step_cpu": step}, None, finished=True)
        if isinstance(much, tuple):
            times = {"threads": 0.01, "ray": 0.013, "threads_median": 0.02, "ray_median": 0.03}
            return Outcome(1, 1, times | {"load": 1.0}, None, finished=True)
        names = {name for _, name, _ in study.POOL_ROWS}
        return Outcome(1, 1, dict.fromkeys(names, 0.1), None, finished=True)

    monkeypatch.setattr(study, "measured", measured)
    monkeypatch.setattr(study, "_written", lambda _kind, _n, path: bool(path.write_text("x")))
    return asked


def test_what_is_finished_is_kept_and_what_failed_for_memory_is_tried_with_more(
    played, tmp_path, monkeypatch
):
    monkeypatch.setattr(study, "_free", lambda: 8e9)
    state = tmp_path / "runs.jsonl"
    found = run_study("scale", methods=("ds", "bsc-seq"), state=state, threads=1)
    n = len(played)
    assert n == 4 * 4 + 1
    again = run_study("scale", methods=("ds", "bsc-seq"), state=state, threads=1)
    assert len(played) == n
    assert again.tables == found.tables
    monkeypatch.setattr(study, "_free", lambda: 12e9)
    run_study("scale", methods=("ds", "bsc-seq"), state=state, threads=1)
    assert [job.path.stem for job, _ in played[n:]] == [str(10**7)] * 4
    assert {memory for _, memory in played[n:]} == {10_000_000_000}


def test_the_tables_hold_every_series_and_say_what_failed(played):  # noqa: ARG001
    found = run_study("scale", methods=("ds", "mace", "bsc-seq", "pool"))
    text = found.markdown()
    assert text.count("**Time: ") == 6
    assert text.count("too large") == 6
    row = next(line for line in text.splitlines() if line.startswith("| 100000000 |"))
    assert "| 20.0 |" in row
    assert "10.0 CPU ns per label at 1,000,000 labels, and at most 20.0 beyond, 2.00x" in text
    assert "A pool that is served" in text
    assert "With 41 tags, what breaks first" in text
    assert found.picture().axes[0].get_xscale() == "log"


def test_ray_is_left_out_and_this_is_said_where_it_is_not_installed(played, monkeypatch):
    monkeypatch.setattr(study, "find_spec", lambda _: None)
    found = run_study("scale", methods=("ray",))
    assert not played
    assert "Left out: Ray" in found.markdown()
    monkeypatch.setattr(study, "find_spec", lambda _: "found")
    (table,) = run_study("scale", methods=("ray",)).tables
    assert table.rows[0][5] == pytest.approx(1.3)


def test_bytes_are_what_is_added_beside_parameters_and_result():
    point = study.Point(FACTS, "", 1e9)
    assert study._bytes(point) == pytest.approx(2 * 2**20 / 1e4)


def test_the_constants_tell_the_e_step_from_the_update():
    point = study.Point(FACTS | {"step_cpu": 0.05, "update": 0.02}, "", 1e9)
    found = study._constants(
        {(10_000, study.label_of("bsc-seq", TAGGED)): point}, "bsc-seq", TAGGED
    )
    assert found.seconds == pytest.approx(0.03 / 1e4)
    assert found.update == pytest.approx(0.02 / 100 / 9)
    assert (found.rows, found.held) == (2, pytest.approx(2**20 / 1e4))


def test_the_plan_multiplies_what_was_measured():
    known = Constants(n_tags=9, labels=1e8, seconds=4e-8, update=1e-8, rows=50, held=10)
    one, four = needs(known, 1), needs(known, 4)
    table = 50 * 1e6 * 9 * 8
    assert one.table == table
    assert one.compute == pytest.approx(1e9 * 4e-8 / plan.CORES)
    assert four.compute == pytest.approx(one.compute / 4)
    assert one.update == four.update == pytest.approx(50 * 1e6 * 9 * 1e-8)
    assert (one.sent, one.shuffled) == (0, 0)
    assert four.sent == 3 * 3 * table
    assert four.network == pytest.approx(four.sent / 1.25e9)
    assert four.evidence == 1e10 / 4
    assert four.tables == one.tables == 34 * table
    assert four.step == four.compute + four.update + four.network


def test_what_breaks_first_is_named_first_and_nothing_where_nothing_breaks():
    heavy = Constants(n_tags=41, labels=1e6, seconds=1e-7, update=1e-8, rows=3_000, held=10)
    words = breaks(heavy)
    assert words[0].startswith("the tables of the workers")
    assert any("int32" in one for one in words)
    light = Constants(n_tags=2, labels=1e6, seconds=1e-4, update=1e-9, rows=2, held=10)
    assert breaks(light) == []
