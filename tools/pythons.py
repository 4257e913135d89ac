"""Whether the wheel and each extra can be installed on other Pythons, asked of pip's dry run.

Nothing is installed, and no other Python is needed: pip looks for wheels that fit
(`--python-version`, `--only-binary=:all:`). It reads markers such as `python_version < "3.13"` as
those of the Python that runs it, so that this says what can be found, not that it works.

    python tools/pythons.py out/dist/goldspan-0.2.0-py3-none-any.whl
    python tools/pythons.py WHEEL --python 3.14 --extra core --extra server
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.12", "3.13", "3.14")
CORE = "core"


def main() -> None:
    """Ask about every pair, and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", action="append", help="such as 3.14; several times")
    parser.add_argument("--extra", action="append", help=f"an extra, or {CORE}; several times")
    parser.add_argument("--pinned", action="store_true", help="take constraints.txt")
    given = parser.parse_args()
    failed = 0
    for python in given.python or PYTHONS:
        for extra in given.extra or [CORE, *extras()]:
            found, said = ask(given.wheel, python, extra, pinned=given.pinned)
            print(f"{python}  {extra:<12}  {said}", flush=True)
            failed += not found
    sys.exit(failed > 0)


def extras() -> list[str]:
    """Return the extras of the project."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return list(project["optional-dependencies"])


def ask(wheel: Path, python: str, extra: str, *, pinned: bool) -> tuple[bool, str]:
    """Return whether pip finds everything for a Python, and what it would install or lacks."""
    what = str(wheel) if extra == CORE else f"{wheel}[{extra}]"
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = [
            sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            "--dry-run", "--ignore-installed", "--only-binary=:all:", "--python-version", python,
            "--target", folder, "--report", str(report), what,
        ]  # fmt: skip
        words += ["--constraint", str(ROOT / "constraints.txt")] if pinned else []
        run = subprocess.run(words, capture_output=True, text=True, check=False)
        if run.returncode:
            lines = [line for line in run.stderr.splitlines() if line.startswith("ERROR")]
            return False, "; ".join(lines) or run.stderr.strip()
        n = len(json.loads(report.read_text("utf-8"))["install"])
    return True, f"{n} packages"


if __name__ == "__main__":
    main()
