"""The page on these methods, read by somebody who has imported nothing yet."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys


def test_the_python_of_the_page_runs_in_a_fresh_process(root, tmp_path):
    page = (root / "docs" / "crowd-crfs.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    shutil.copytree(root / "examples", tmp_path / "examples")
    words = [sys.executable, "-W", "error", "-c", "\n".join(blocks)]
    run = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "ner.goldspan").exists()
    assert run.stdout.splitlines()[-1] == "100.0"  # CRF-GOLD, scored on what it learned from
