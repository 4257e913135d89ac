"""Partitions give the labels of the whole crowd, with the same bits on any runner."""

from __future__ import annotations

import gc
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import goldspan
from goldspan._arrays import load_array
from goldspan.aggregation import get_aggregator, partitions
from goldspan.aggregation.partitions import aggregate_partitions
from goldspan.cli import app
from goldspan.crowd.formats.parquet import is_partitioned, partitions_of, write, write_partitions
from goldspan.errors import FormatError, InputError
from goldspan.runners import FileCheckpoint, Threads
from goldspan.simulation import draw_truth, simulate_crowd
from runners.apart import Apart


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


@pytest.mark.parametrize("n", [1, 5, 400])
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


def test_every_runner_gives_the_same_bits(folder, tmp_path):
    for name, runner in (("one", None), ("two", Threads(2)), ("apart", Apart(1))):
        aggregate_partitions(folder, tmp_path / name, "bsc-seq", max_iter=5, runner=runner)
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
    aggregate_partitions(folder, tmp_path / "whole", "bsc-seq", checkpoint=keep)  # any name
    assert heard[0] == 3
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_a_changed_partition_is_another_run(crowd, folder, tmp_path):
    keep = FileCheckpoint(tmp_path / "run.ckpt")
    aggregate_partitions(folder, tmp_path / "out", "ds", checkpoint=keep)
    small = crowd.select_items(np.arange(20))
    path = partitions_of(folder)[0]
    write(small, path, {"partition": [0, 5]})
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
    said = f"690 answers of 5 partitions: {best.name} predicts hidden answers best (loss "
    assert f"{said}{-best.score:.4f})" in found.notes[0]
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


def test_what_belongs_to_the_reader_or_the_plain_command_is_refused(folder, tmp_path):
    """Ignored, these options would give other labels without a word."""
    for wrong in (
        ["--repeated", "first"],
        ["--workers", "A1,A2"],
        ["--label", "PER=ORG"],
        ["--rename-worker", "A1=B"],
        ["--format", "conll"],
        ["--to-format", "csv"],
        ["--split", "80,10,10"],
        ["--coverage", "0.9"],
        ["--no-text"],
        ["--policy", "strict"],
        ["--raw-csv"],
    ):
        words = ["aggregate", str(folder), "-m", "ds", "-o", str(tmp_path / "x"), *wrong]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 2, (wrong, done.output)
        assert wrong[0] in done.output
    done = CliRunner().invoke(app, ["aggregate", str(folder), "-o", str(tmp_path / "x.conll")])
    assert done.exit_code == 2
    assert not list(tmp_path.glob("x*"))


def test_an_item_in_two_partitions_is_an_error(crowd, tmp_path):
    for name, items in {"part-1": range(60), "part-2": range(59, 100), "part-3": [120]}.items():
        some = crowd.select_items(np.array(items))
        (tmp_path / "a").mkdir(exist_ok=True)
        goldspan.write_crowd(some, tmp_path / "a" / f"{name}.parquet")
    item = crowd.item_ids[59].as_py()
    with pytest.raises(InputError, match=f"part-1.*part-2.*have the same item, {item}:"):
        aggregate_partitions(tmp_path / "a", tmp_path / "out", "ds")
    goldspan.write_crowd(crowd.select_items(np.arange(60, 100)), tmp_path / "a" / "part-4.parquet")
    (tmp_path / "a" / "part-2.parquet").unlink()
    assert aggregate_partitions(tmp_path / "a", tmp_path / "out", "ds").n_items == 101


@pytest.mark.parametrize("n", [1, 2, 7])
def test_hashes_are_compared_over_the_whole_range(n, tmp_path):
    """The smallest and the largest hash, and those where ranges meet."""
    keys = np.unique(np.concatenate([
        np.array([0, 1, 2**63, 2**64 - 1], np.uint64),
        np.array([2**64 * k // n for k in range(n)], np.uint64),
    ]))  # fmt: skip
    for key in keys:
        parts = []
        for k in range(n):
            part = partitions._Part(tmp_path / f"p{k}", tmp_path / f"{k}.raw", tmp_path, "")
            own = [key] if k in {0, n - 1} else []
            np.save(part.scratch.with_suffix(".ids.npy"), np.array(own, np.uint64))
            parts.append(part)
        edges = [2**64 * k // n for k in range(n + 1)]
        pairs = [partitions._in_two((a, b), tuple(parts)) for a, b in pairwise(edges)]
        found = [pair for pair in pairs if pair]
        assert len(found) == (n > 1), key
        if found:
            assert set(found[0]) == {parts[0].path, parts[-1].path}


def test_a_missing_partition_is_named(folder, crowd, tmp_path):
    partitions_of(folder)[-1].unlink()
    with pytest.raises(InputError, match="of 5 partitions 1 are missing: 5"):
        aggregate_partitions(folder, tmp_path / "out")
    goldspan.write_crowd(crowd.select_items(np.arange(2)), folder / "part-9.parquet")
    with pytest.raises(InputError, match="not written together"):
        aggregate_partitions(folder, tmp_path / "out")


def test_families_that_the_crowd_tells_are_not_passed_over(crowd, tmp_path):
    facts = {name: {"family": "gpt"} for name in crowd.worker_ids.to_pylist()[:3]}
    write_partitions(replace(crowd, worker_facts=facts), tmp_path / "answers", 3)
    for method in ("ds", "auto"):
        with pytest.raises(InputError, match=r"err together.*--families none"):
            aggregate_partitions(tmp_path / "answers", tmp_path / "out", method)
        aggregate_partitions(tmp_path / "answers", tmp_path / method, method, families="none")


def test_a_folder_that_is_in_the_way_or_worked_in_is_left_alone(folder, tmp_path):
    other = tmp_path / ".out.work"
    other.mkdir()
    (other / "notes.txt").write_text("x")
    with pytest.raises(InputError, match="in the way"):
        aggregate_partitions(folder, tmp_path / "out")
    assert (other / "notes.txt").read_text() == "x"
    (other / "notes.txt").unlink()
    (other / partitions.MARK).touch()
    (other / "part-0").mkdir()  # of a run that was killed

    def again(*_):
        with pytest.raises(InputError, match="another run writes"):
            aggregate_partitions(folder, tmp_path / "out")

    aggregate_partitions(folder, tmp_path / "out", progress=again)
    assert {path.name for path in tmp_path.iterdir()} == {"answers", "out"}


@pytest.mark.parametrize("error", [OSError("8 requested and 1 written"), OSError(28, "No space")])
def test_a_full_disk_is_said(folder, tmp_path, monkeypatch, error):
    def full(*_):
        raise error

    monkeypatch.setattr(partitions, "store", full)
    with pytest.raises(InputError, match="make room on the disk; nothing was changed"):
        aggregate_partitions(folder, tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"answers"}


def test_labels_are_not_aggregated_again(folder, tmp_path):
    aggregate_partitions(folder, tmp_path / "labels")
    with pytest.raises(FormatError, match="holds labels that were aggregated, not answers"):
        aggregate_partitions(tmp_path / "labels", tmp_path / "again")


def test_other_commands_say_what_reads_a_folder_of_partitions(folder):
    with pytest.raises(FormatError, match="only `goldspan aggregate` reads it as a whole"):
        goldspan.read_crowd(folder)
    (folder / "part-00009.parquet").mkdir()
    with pytest.raises(InputError, match="is no file"):
        partitions_of(folder)


def test_threads_at_different_depths_load_arrays_at_the_same_time(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(5))

    def load(depth):
        if depth:
            return load(depth - 1)
        return [load_array(tmp_path / "a.npy").sum() for _ in range(100)]

    def give_way(*_):
        time.sleep(1e-6)

    usual = gc.get_threshold()
    gc.callbacks.append(give_way)  # Python code in the middle of the parser lets others in
    gc.set_threshold(20)
    try:
        with ThreadPoolExecutor(4) as pool:
            every = list(pool.map(load, [0, 40, 90, 150]))
    finally:
        gc.set_threshold(*usual)
        gc.callbacks.remove(give_way)
    assert all(sums == [10] * 100 for sums in every)
