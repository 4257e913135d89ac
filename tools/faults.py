"""Put the faults of tools/faults.toml into a copy of the checkout; print which test catches each.

    python tools/faults.py [--list] [ID ...]

A fault is caught if a test fails that passes without it. The test that caught it last time runs
first, then its other tests until one fails. The exit code is 1 if a fault survives or cannot be
applied. The copy has no real data, and is removed at the end, after Ctrl-C too.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


def copied(folder: Path) -> None:
    """Copy what git tracks, and new files that it does not ignore."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.strip("\0").split("\0"):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def first_failure(folder: Path, tests: str) -> str:
    """Return the first test that fails, "" if none does."""
    there = {**os.environ, "PYTHONPATH": str(folder / "src"), "GOLDSPAN_DATA": ""}
    words = ["-m", "pytest", "-x", "-q", "-rfE", "--color=no", "-p", "no:cacheprovider", tests]
    ran = subprocess.run(
        [sys.executable, *words], cwd=folder, env=there, capture_output=True, text=True, check=False
    )
    found = FAILED.search(ran.stdout)
    return found[1] if ran.returncode == 1 and found else ""


def outcome(fault: dict[str, Any], folder: Path) -> tuple[bool, str]:
    """Return whether a fault is caught, and by what."""
    source = folder / fault["file"]
    text = source.read_text(encoding="utf-8") if source.is_file() else ""
    if text.count(fault["old"]) != 1:
        return False, f"NOT APPLIED: {text.count(fault['old'])} times in {fault['file']}"
    try:
        source.write_text(text.replace(fault["old"], fault["new"]), encoding="utf-8")
        places = filter(None, [fault["caught_by"], *fault["tests"]])
        test = next(filter(None, (first_failure(folder, one) for one in places)), "")
    finally:
        source.write_text(text, encoding="utf-8")
    if test and first_failure(folder, test):
        return False, f"NOT JUDGED: without the fault it fails too, {test}"
    return bool(test), f"caught by {test}" if test else "SURVIVED"


def main() -> int:
    """Apply the faults that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("ids", nargs="*", metavar="ID", help="faults, all by default")
    parser.add_argument("--list", action="store_true", help="print the faults, run nothing")
    words = parser.parse_args()
    faults = tomllib.loads((ROOT / "tools/faults.toml").read_text(encoding="utf-8"))["fault"]
    faults = [one for one in faults if not words.ids or one["id"] in words.ids]
    if len(faults) < len(words.ids):
        parser.error("no such fault: --list prints them")
    if words.list:
        print(*(f"{one['id']} | {one['file']} | {one['caught_by']}" for one in faults), sep="\n")
        return 0
    n_caught = 0
    with tempfile.TemporaryDirectory() as name:
        copied(Path(name))
        for fault in faults:
            is_caught, what = outcome(fault, Path(name))
            n_caught += is_caught
            print(f"{fault['id']} | {what}", flush=True)
    print(f"{n_caught} of {len(faults)} faults are caught")
    return int(n_caught < len(faults))


if __name__ == "__main__":
    sys.exit(main())
