"""Print how many lines and modules each package has, and tests; and how many words the docs have.

    python tools/lines.py          # as it is now, beside main
    python tools/lines.py v0.3.0   # beside another commit

The budget of lines per package is in tests/test_house.py.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PARTS = ("src", "tests", "docs", "README.md")
LAST = ("src", "tests", "words of docs")


def files_now() -> Iterator[tuple[str, str]]:
    """Yield the files that are there, by path."""
    for place in (ROOT / part for part in PARTS):
        for path in [place, *place.rglob("*")]:
            if path.suffix in {".py", ".md"}:
                yield str(path.relative_to(ROOT)), path.read_text("utf-8")


def files_at(commit: str) -> Iterator[tuple[str, str]]:
    """Yield the files of a commit, by path."""
    words = ["git", "archive", commit, *PARTS]
    packed = subprocess.run(words, cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for one in archive:
            file = archive.extractfile(one) if one.name.endswith((".py", ".md")) else None
            if file is not None:
                yield one.name, file.read().decode()


def counts(files: Iterable[tuple[str, str]]) -> dict[str, tuple[int, int]]:
    """Return lines and modules of each part; of docs words and pages."""
    found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for name, text in files:
        top, *inner = name.split("/")
        package = [inner[1] if len(inner) > 2 else "top level"] if top == "src" else []
        is_code = name.endswith(".py")
        for part in [top, *package] if is_code else ["words of docs"]:
            n, modules = found[part]
            found[part] = n + len(text.splitlines() if is_code else text.split()), modules + 1
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", nargs="?", default="main", help="what to compare with")
    commit = parser.parse_args().commit
    try:
        now, before = counts(files_now()), counts(files_at(commit))
    except subprocess.CalledProcessError as error:
        parser.error(f"no commit {commit!r}: {error.stderr.decode().strip()}")
    for name in [*sorted({*now, *before} - {*LAST}), *LAST]:
        (n, modules), (old, modules_before) = now[name], before[name]
        print(f"{name:14}{n:9,} ({n - old:+,}) in {modules} ({modules - modules_before:+})")
