"""Partitions give the labels of the whole crowd, with the same bits on any runner."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import goldspan
from goldspan.aggregation import get_aggregator, partitions
from goldspan.aggregation.partitions import aggregate_partitions
from goldspan.cli import app
from goldspan.crowd.partitions import is_partitioned, partitions_of, write_partitions
from goldspan.errors import FormatError, InputError
from goldspan.runners import FileCheckpoint, Threads
from goldspan.simulation import draw_truth, simulate_crowd
from runners.apart import Apart


@pytest.fixture(scope="module")
def crowd(root):
    return goldspan.read_crowd(root / "examples" / "crowd.tsv")


@pytest.fixture
def folder(crowd, tmp_path):
    write_partitions(crowd, tmp_path / "answers", 5)
    return tmp_path / "answers"


def labels(folder):
    tables = [pq.read_table(path) for path in sorted(folder.iterdir())]
    items = [item for table in tables for item in table["item"].to_pylist()]
    tags = [one for table in tables for one in table["tags"].to_pylist()]
    probs = [table["probs"].combine_chunks().flatten().flatten().to_numpy() for table in tables]
    return items, tags, np.concatenate(probs)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("n", [1, 2, 5, 150, 400])
def test_partitions_hold_every_item_once_with_all_its_answers(crowd, tmp_path, n):
    written = write_partitions(crowd, tmp_path / "a", n)
    assert written == n if n < 10 else 100 < written <= crowd.n_items
    parts = [goldspan.read_crowd(path) for path in partitions_of(tmp_path / "a")]
    assert [one for part in parts for one in part.item_ids.to_pylist()] == (
        crowd.item_ids.to_pylist()
    )
    assert sum(len(part.answers) for part in parts) == len(crowd.answers)
    for part in parts:
        assert part.tagset == crowd.tagset
        for item in part.item_ids.to_pylist():
            assert part.answers_of(item) == crowd.answers_of(item)


@pytest.mark.parametrize("method", ["ds", "one-coin", "ibcc", "mace", "bsc-cv", "bsc-seq"])
def test_the_labels_are_those_of_the_whole(crowd, folder, tmp_path, method):
    params = {"n_starts": 2} if method == "mace" else {}
    whole = goldspan.aggregate(crowd.with_gold(None), method, max_iter=20, **params)
    found = aggregate_partitions(folder, tmp_path / "out", method, max_iter=20, **params)
    items, tags, probs = labels(tmp_path / "out")
    assert items == crowd.item_ids.to_pylist()
    assert tags == whole.tags
    np.testing.assert_allclose(probs, whole.token_probs.ravel(), atol=1e-6)
    np.testing.assert_allclose(found.trace, whole.trace, rtol=1e-12)
    assert found.confidence == pytest.approx(whole.confidence.mean(), rel=1e-6)
    assert (found.n_items, found.n_answers, found.n_workers) == (150, 690, 7)
    assert (found.n_partitions, found.n_open) == (5, 0)


@pytest.mark.parametrize("method", ["ds", "bsc-seq"])
def test_every_runner_gives_the_same_bits(folder, tmp_path, method):
    for name, runner in (("one", None), ("two", Threads(2)), ("apart", Apart(1))):
        aggregate_partitions(folder, tmp_path / name, method, max_iter=5, runner=runner)
    assert contents(tmp_path / "one") == contents(tmp_path / "two") == contents(tmp_path / "apart")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"answers", "one", "two", "apart"}


def test_single_labels_of_workers_who_are_not_everywhere(tmp_path):
    truth = draw_truth(300, labels=4, seed=1)
    crowd = simulate_crowd(truth, ["flip(0.2) x40"], per_item=3, seed=2).with_gold(None)
    write_partitions(crowd, tmp_path / "answers", 8)
    aggregate_partitions(tmp_path / "answers", tmp_path / "out", "ds")
    whole = goldspan.aggregate(crowd, "ds")
    items, _, probs = labels(tmp_path / "out")
    assert items == crowd.item_ids.to_pylist()
    np.testing.assert_allclose(probs, whole.token_probs.ravel(), atol=1e-6)
    again = goldspan.read_crowd(tmp_path / "out" / "part-00000.parquet")
    assert again.gold is not None


def test_a_run_goes_on_from_its_checkpoint(folder, tmp_path):
    keep, heard = FileCheckpoint(tmp_path / "run.ckpt"), []

    def stop(done, *_):
        if done == 3:
            raise SystemExit

    with pytest.raises(SystemExit):
        aggregate_partitions(folder, tmp_path / "out", "bsc-seq", progress=stop, checkpoint=keep)
    assert {path.name for path in tmp_path.iterdir()} == {"answers", "run.ckpt"}
    aggregate_partitions(
        folder, tmp_path / "out", "bsc-seq", checkpoint=keep,
        progress=lambda done, *_: heard.append(done),
    )  # fmt: skip
    aggregate_partitions(folder, tmp_path / "whole", "bsc-seq")
    assert heard[0] == 3
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_a_changed_partition_is_another_run(crowd, folder, tmp_path):
    keep = FileCheckpoint(tmp_path / "run.ckpt")
    aggregate_partitions(folder, tmp_path / "out", "ds", checkpoint=keep)
    small = crowd.select_items(np.arange(40))
    path = partitions_of(folder)[0]
    path.unlink()
    goldspan.write_crowd(small, path)
    with pytest.raises(InputError, match="another run"):
        aggregate_partitions(folder, tmp_path / "other", "ds", checkpoint=keep)


@pytest.mark.parametrize(
    ("method", "params", "why"),
    [
        ("auto", {"text": "auto"}, "takes share and random_state, not text"),
        ("mv-token", {}, "does not work on partitions"),
        ("bsc-seq+crf", {}, "does not work on partitions"),
        ("bsc-seq+words", {}, "does not work on partitions"),
        ("ds", {"families": "auto"}, "families does not work"),
        ("bsc-seq", {"forbidden": "zero"}, "forbidden"),
    ],
)
def test_what_does_not_work_on_partitions_is_said(folder, tmp_path, method, params, why):
    with pytest.raises(InputError, match=why):
        aggregate_partitions(folder, tmp_path / "out", method, **params)
    assert {path.name for path in tmp_path.iterdir()} == {"answers"}


def test_auto_runs_the_method_that_predicts_hidden_answers_best(folder, crowd, tmp_path):
    found = aggregate_partitions(folder, tmp_path / "out", "auto")
    bare = get_aggregator("auto", text="none", documents="none", families="none")
    tried = bare.fit(crowd.with_gold(None)).result_.candidates
    best = max((one for one in tried if "votes" not in one.name), key=lambda one: one.score)
    assert found.method == best.name
    assert f"690 answers of 5 partitions: {best.name} predicts hidden ones best" in found.notes[0]
    aggregate_partitions(folder, tmp_path / "named", best.name)
    assert contents(tmp_path / "out") == contents(tmp_path / "named")


def test_auto_judges_single_labels_by_a_part_of_them(tmp_path, monkeypatch):
    truth = draw_truth(300, ["a", "b", "c"], seed=1)
    crowd = simulate_crowd(truth, ["flip(0.2) x5", "flip(0.6) x3"], per_item=4, seed=2)
    write_partitions(crowd, tmp_path / "answers", 12)
    monkeypatch.setattr(partitions, "SAMPLE", 400)
    found = aggregate_partitions(tmp_path / "answers", tmp_path / "out", "auto")
    n = int(found.notes[0].split()[3])
    assert 400 <= n < 500
    assert found.notes[0].startswith(f"auto judged by {n} answers of 8 partitions: ")
    assert found.method in {"ds", "one-coin", "mace"}
    assert (found.n_items, found.n_answers) == (300, 1200)


def test_other_folders_and_files_are_refused(folder, tmp_path):
    with pytest.raises(InputError, match="there is no part"):
        aggregate_partitions(tmp_path, tmp_path / "out")
    with pytest.raises(InputError, match="exists already"):
        aggregate_partitions(folder, folder)
    with pytest.raises(InputError, match="cannot write"):
        aggregate_partitions(folder, tmp_path / "none" / "out")
    goldspan.write_crowd(
        goldspan.read_crowd(b"task,worker,label\n1,a,x\n"), folder / "part-9.parquet"
    )
    with pytest.raises(InputError, match="different tags"):
        aggregate_partitions(folder, tmp_path / "out")
    (folder / "part-9.parquet").write_bytes(b"PAR1")
    with pytest.raises(FormatError, match="layout"):
        aggregate_partitions(folder, tmp_path / "out")


def test_the_commands_write_and_aggregate_partitions(root, tmp_path):
    call = CliRunner().invoke
    source, folder, out = root / "examples" / "crowd.tsv", tmp_path / "answers", tmp_path / "out"
    done = call(app, ["convert", str(source), "--partitions", "3", "-o", str(folder)])
    assert done.exit_code == 0, done.output
    assert is_partitioned(folder)
    assert "3 partitions" in done.output
    done = call(app, ["aggregate", str(folder), "-m", "ds", "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "150 items in 3 partitions, 690 answers of 7 workers" in done.output
    assert len(labels(out)[0]) == 150
    for wrong in (["--gold", str(source)], ["--tagger", str(tmp_path / "t.goldspan")]):
        words = ["aggregate", str(folder), "-m", "bsc-seq+crf", "-o", str(tmp_path / "x"), *wrong]
        assert call(app, words).exit_code == 2
    assert call(app, ["aggregate", str(folder), "-m", "ds"]).exit_code == 2
    assert call(app, ["convert", str(source), "--partitions", "3"]).exit_code == 2
