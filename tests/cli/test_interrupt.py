"""Ctrl-C before there is a result, as a signal to a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "crowd.tsv"
WAITING = """
import sys, time
from pathlib import Path
from goldspan.cli import main
from goldspan.cli.options import Reading

def read(self, *rest):
    Path("reading").touch()
    time.sleep(60)

Reading.read = read
main()
"""
"""`goldspan`, which says that it begins to read, and never comes to an end of it."""


@pytest.mark.parametrize(
    "words",
    [
        ["aggregate", EXAMPLE, "-m", "bsc-seq", "-o", "gold.conll"],
        ["train", EXAMPLE, "-o", "ner.goldspan"],
    ],
)
def test_ctrl_c_before_a_result_says_that_nothing_is_left(tmp_path, words):
    run = subprocess.Popen(
        [sys.executable, "-c", WAITING, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    for _ in range(600):
        if (tmp_path / "reading").exists() or run.poll() is not None:
            break
        time.sleep(0.05)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=30)
    assert run.returncode == 130, err
    assert err == "goldspan: interrupted; nothing half-written is left behind\n"
    assert out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["reading"]
