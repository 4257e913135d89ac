"""Rename by a table: words in files, and files and folders, in one pass that does nothing else.

    python tools/rename.py tools/names.toml            # rename
    python tools/rename.py tools/names.toml --check    # list what would change, and what is left

The table holds `words` (old = new, applied longest first, case by case), `keep` (strings in which
nothing is renamed) and `skip` (paths that are left alone, as globs). Files that git does not track
are left alone. Lines that become longer than the limit are broken where that is safe (docstrings,
comments, Markdown); the rest is left to `ruff format` and, at last, to a person.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from pathlib import Path

LIMITS = {".py": 100, ".md": 120}


def main() -> int:
    """Rename, or say what would be renamed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("table", type=Path)
    parser.add_argument("--check", action="store_true", help="change nothing")
    asked = parser.parse_args()
    table = tomllib.loads(asked.table.read_text("utf-8"))
    words: dict[str, str] = table["words"]
    pattern = re.compile("|".join(
        [f"(?:{re.escape(kept)})" for kept in sorted(table.get("keep", []), key=len, reverse=True)]
        + [f"({'|'.join(re.escape(old) for old in sorted(words, key=len, reverse=True))})"]
    ))  # fmt: skip

    def renamed(text: str) -> str:
        return pattern.sub(lambda found: words[found[1]] if found[1] else found[0], text)

    for path in tracked(table.get("skip", []), asked.table):
        data = path.read_bytes()
        if b"\0" in data:
            continue
        text = data.decode("utf-8")
        new = renamed(text)
        if new != text:
            if asked.check:
                pairs = zip(text.splitlines(), new.splitlines(), strict=True)
                print(f"{path}: {sum(a != b for a, b in pairs)} lines")
            else:
                path.write_bytes(refitted(text, new, path.suffix).encode("utf-8"))
        if renamed(str(path)) != str(path):
            print(f"{path} -> {renamed(str(path))}")
            if not asked.check:
                target = Path(renamed(str(path)))
                target.parent.mkdir(parents=True, exist_ok=True)
                subprocess.run(["git", "mv", str(path), str(target)], check=True)
    return 0


def tracked(skip: list[str], table: Path) -> list[Path]:
    """Return the files that git tracks, without those that are left alone."""
    listed = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True).stdout
    paths = [Path(name) for name in listed.decode().split("\0") if name]
    own = {Path(__file__).resolve(), table.resolve()}
    return [
        path for path in paths
        if path.resolve() not in own and not any(path.match(glob) for glob in skip)
    ]  # fmt: skip


def refitted(old: str, new: str, suffix: str) -> str:
    """Break the lines that the renaming made too long: their last words go to the next line."""
    limit = LIMITS.get(suffix)
    if limit is None:
        return new
    before, lines = old.split("\n"), new.split("\n")
    # Only what became too long by the renaming is touched; `before` goes along line by line.
    prose, inside, fence, i = [], False, False, 0
    for line in lines:
        marks = line.count('"""')
        fence ^= line.lstrip().startswith("```")
        free = suffix == ".md" and not fence and not line.lstrip().startswith(("|", "#", "```"))
        prose.append(
            free or (suffix == ".py" and (inside or marks > 0 or line.lstrip().startswith("# ")))
        )
        inside ^= marks % 2 == 1
    while i < len(lines):
        line = lines[i]
        if len(line) > limit and prose[i] and (before[i] is None or len(before[i]) <= limit):
            indent = line[: len(line) - len(line.lstrip())]
            mark = re.match(r"(# |[*-] |\d+\. )?", line.lstrip())[0]  # type: ignore[index]
            hang = indent + ("# " if mark == "# " else " " * len(mark))
            cut = line.rfind(" ", 0, limit + 1)
            tail = line[cut + 1 :]
            if cut <= len(indent) + len(mark) or line.count("`", 0, cut) % 2 or ">>>" in line:
                i += 1
                continue
            lines[i] = line[:cut]
            follows = lines[i + 1] if i + 1 < len(lines) else ""
            joins = (
                follows.startswith(hang)
                and follows[len(hang) :][:1].strip() not in ("", "*", "-", ">", "|", "#")
                and not follows.lstrip().startswith(('"""', ">>>", "```"))
                and prose[i + 1]
                and not re.match(r"\s*\w+(\.\w+)*( \(.*\))?:( |$)", follows)
            )
            if joins:
                lines[i + 1] = f"{hang}{tail} {follows[len(hang) :]}"
            else:
                lines.insert(i + 1, hang + tail)
                before.insert(i + 1, None)  # type: ignore[arg-type]
                prose.insert(i + 1, prose[i])
        i += 1
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
