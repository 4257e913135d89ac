"""Ctrl-C while `goldspan train` runs, as a signal to a process of its own."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from goldspan.crowd import read_crowd
from goldspan.tagger import load_tagger

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "crowd.tsv"
SLOW = """
import sys, time
from pathlib import Path
from goldspan.cli import main
from goldspan.cli.output import Steps

def heard(self, done, *rest):
    if done >= 5:
        Path(sys.argv[-1] + ".steps").touch()
        time.sleep(0.5)

Steps.round = heard
main()
"""
"""`goldspan`, whose training is slow from the fifth step on and says that it is there."""


def interrupted(*words):
    words = ["train", str(EXAMPLE), *map(str, words)]
    run = subprocess.Popen(
        [sys.executable, "-c", SLOW, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(1200):
        if Path(words[-1] + ".steps").exists() or run.poll() is not None:
            break
        time.sleep(0.1)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    return run.returncode, out, err


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_writes_what_is_trained_so_far(tmp_path, threads):
    path = tmp_path / "ner.goldspan"
    code, out, err = interrupted("--threads", threads, "-o", path)
    assert code == 130, err
    assert re.search(r"interrupted after \d steps; their result was written", err)
    assert "stopped by: interrupted" in out
    crowd = read_crowd(EXAMPLE)
    truth = crowd.tagset.decode(crowd.gold_tagged)
    assert load_tagger(path).score(crowd.tokens_list, truth) > 0.3
