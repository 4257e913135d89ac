"""`goldspan run` on Ray."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time

import pytest

from campaign.tiny import plan_of, toml, write_files
from cluster.conftest import MARK, ROUNDS, left_over

RUN = [sys.executable, "-c", "from goldspan.cli import main; main()", "run", "campaign.toml"]


def files(folder):
    kinds = {".csv", ".json", ".jsonl"}
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.suffix in kinds}


def campaign(folder):
    folder.mkdir()
    write_files(folder)
    return planned(folder)


def planned(folder, **changes):
    plan = plan_of(aggregate={"method": "ds"}, stop={"most_rounds": 2}, **changes)
    (folder / "campaign.toml").write_text(toml(plan))
    return folder


def start(folder, *words):
    """Start `goldspan run` with a mark of its own, by which its processes are found."""
    mark = secrets.token_hex(8)
    run = subprocess.Popen(
        [*RUN, *words], cwd=folder, env=os.environ | {MARK: mark},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    return run, mark


def finished(folder, *words):
    run, mark = start(folder, *words)
    _, said = run.communicate(timeout=600)
    assert run.returncode == 0, said
    assert left_over(mark, 120) == []
    return files(folder / "out")


@pytest.mark.torture(
    "`goldspan run --runner ray` is killed while its cluster starts or works",
    "the cluster ends with it; the same command goes on, and the files are those of one thread",
)
def test_a_campaign_on_ray_that_is_killed_goes_on(tmp_path, tortured):
    folder, alone = campaign(tmp_path / "ray"), finished(campaign(tmp_path / "alone"))
    assert {"gold.csv", "bill.csv", "rounds.jsonl", "record.json"} <= alone.keys()
    for turn in range(max(1, ROUNDS)):
        run, mark = start(folder, "--runner", "ray")
        run.stderr.readline()  # the first round is picked
        while run.poll() is None and not left_over(mark, 0)[1:]:  # more than the command itself
            time.sleep(0.05)
        time.sleep(2 * turn)
        run.kill()
        run.communicate()
        assert left_over(mark, 120) == []
        tortured(int(run.returncode == -signal.SIGKILL))
    # The plan may say it, too, and since when does not matter
    assert finished(planned(folder, runner="ray")) == alone
