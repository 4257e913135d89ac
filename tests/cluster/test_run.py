"""`goldspan run` with the plan's key `runner`, and runs that lose processes, with 1, 2 and 4."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys

import numpy as np
import pytest

import goldspan
from campaign.tiny import write_files
from cluster import work
from cluster.conftest import MARK, SMALL, left_over
from cluster.test_ray import _many_shards, bits  # noqa: F401 - a fixture
from goldspan.aggregation.partitions import aggregate_partitions
from goldspan.crowd.partitions import write_partitions
from goldspan.runners import Ray

PLAN = """\
name = "weather"
seed = 3
{runner}
[task]
labels = ["rain", "sun"]
[pool]
file = "pool.jsonl"
[crowd]
source = "simulated"
truth = "truth.csv"
workers = ["flip(0.1) x5"]
[redundancy]
min = 2
max = 4
[prices]
per_answer = "0.05"
[budget]
money = "4"
[select]
by = "random"
batch = 10
[model]
name = "naive-bayes"
[aggregate]
method = "ds"
"""
COMMAND = [sys.executable, "-c", "from goldspan.cli import main; main()", "run", "campaign.toml"]


@pytest.mark.usefixtures("ray")
def test_a_campaign_has_the_same_files_with_ray_and_with_one_thread(tmp_path):
    found = {}
    for name, line in (("one", ""), ("ray", 'runner = "ray"')):
        folder, mark = tmp_path / name, secrets.token_hex(8)
        folder.mkdir()
        write_files(folder)
        (folder / "campaign.toml").write_text(PLAN.format(runner=line))
        done = subprocess.run(
            COMMAND, cwd=folder, capture_output=True, text=True, timeout=600,
            env=os.environ | {MARK: mark},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert left_over(mark, 120) == []
        files = [one for one in (folder / "out").iterdir() if one.suffix in {".csv", ".jsonl"}]
        found[name] = {one.name: one.read_bytes() for one in files}
    assert found["one"]
    assert found["ray"] == found["one"]


@pytest.mark.torture(
    "a local Ray cluster of 1, 2 or 4 processes loses one of them in a step of every run",
    "the result has the bits of one thread",
)
@pytest.mark.parametrize("n_workers", [1, 2, 4])
@pytest.mark.usefixtures("ray")
def test_runs_that_lose_processes_have_the_bits_of_one_thread(root, tmp_path, tortured, n_workers):
    crowd = goldspan.read_crowd(root / "examples" / "crowd.tsv")
    methods = {"ds": {}, "mace": {"max_iter": 4}, "bsc-seq": {"max_iter": 3}}
    wanted = {name: bits(goldspan.aggregate(crowd, name, **methods[name])) for name in methods}
    write_partitions(crowd, tmp_path / "answers", 6)
    aggregate_partitions(tmp_path / "answers", tmp_path / "one", "ds", max_iter=4)
    rng = np.random.default_rng(n_workers)
    with Ray(n_workers=n_workers, memory=SMALL) as runner:
        for name, params in methods.items():
            at, killed = int(rng.integers(1, 4)), []

            def kill(done, *_, at=at, killed=killed):
                if done == at and not killed:
                    killed.append(runner.map(work.process, [0], None)[0])
                    os.kill(killed[0], signal.SIGKILL)

            found = goldspan.aggregate(crowd, name, runner=runner, progress=kill, **params)
            assert killed
            assert bits(found) == wanted[name]
            tortured(1)
        aggregate_partitions(
            tmp_path / "answers", tmp_path / "many", "ds", max_iter=4, runner=runner
        )
    for path in (tmp_path / "one").iterdir():
        assert (tmp_path / "many" / path.name).read_bytes() == path.read_bytes()
    assert left_over() == []
