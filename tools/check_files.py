"""Check text files before a commit.

    python tools/check_files.py FILE…      # print every fault; exit code 1 if there is one

The checks: no blanks at the end of a line, one newline at the end of the file, no marks of an
unfinished merge, TOML, YAML and JSON that can be parsed, no file above one megabyte.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import yaml

LIMIT = 1_000_000
MERGE_MARK = re.compile(r"(<{7}|>{7}|\|{7}) |={7}$")
PARSERS = {".toml": tomllib.loads, ".json": json.loads}


class _Loader(yaml.SafeLoader):
    """Read YAML with the tags of MkDocs and the like, whose values are not looked at."""


_Loader.add_multi_constructor("", lambda *_: None)


def faults(path: Path) -> Iterator[str]:
    """Yield what is wrong with a file, as `path:line: fault`."""
    data = path.read_bytes()
    if len(data) > LIMIT:
        yield f"{path}: {len(data):,} bytes; at most {LIMIT:,} are allowed"
    text = data.decode("utf-8")
    for number, line in enumerate(text.split("\n"), start=1):
        if line != line.rstrip(" \t\r"):
            yield f"{path}:{number}: blanks at the end of the line"
        if MERGE_MARK.match(line):
            yield f"{path}:{number}: a mark of an unfinished merge"
    if text and (not text.endswith("\n") or text.endswith("\n\n")):
        yield f"{path}: the file must end with exactly one newline"
    try:
        if path.suffix in {".yml", ".yaml"}:
            yaml.load(text, _Loader)  # noqa: S506 - a safe loader, which ignores tags
        elif path.suffix in PARSERS:
            PARSERS[path.suffix](text)
    except (ValueError, yaml.YAMLError) as error:
        yield f"{path}: {error}"


def main(paths: list[str]) -> int:
    """Print the faults of some files."""
    found = [fault for path in paths for fault in faults(Path(path))]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
