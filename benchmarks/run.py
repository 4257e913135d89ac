"""Run the benchmarks and write benchmarks/RESULTS.md: `make bench`.

The file is written after every benchmark; one that fails is named in it, and the others go on.
What was measured on other days and machines, and what was tried, is in benchmarks/HISTORY.md.

With names of benchmarks as arguments only these are run and the table is printed, not written.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib
import os
import platform
import re
import sys
import traceback
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pairs import Row

HERE = Path(__file__).parent
BENCHMARKS = ("spans", "read", "start", "aggregate", "crf", "hiring", "select", "store")
TABLES = ("classification", "bench_server")
"""Modules whose `report()` is text: what they measure is no ratio."""
PEERS = (
    "numpy",
    "scipy",
    "numba",
    "pyarrow",
    "iobes",
    "seqeval",
    "crowd-kit",
    "pandas",
    "typer",
    "python-crfsuite",
    "sqlalchemy",
    "psycopg",
)


def main() -> int:
    """Run, print, write; exit 1 if a promise is not kept or a benchmark fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, *TABLES, []], help="only these")
    chosen = parser.parse_args().names or [*BENCHMARKS, *TABLES]
    sys.path.insert(0, str(HERE))
    about = "\n".join(["# Benchmarks", "", *_about(), ""])
    print(about, flush=True)
    sections, missed = "", []
    for name in chosen:
        began, load = dt.datetime.now(tz=dt.UTC), os.getloadavg()[0]
        section, own = _section(name, f"Began at {began:%H:%M} UTC, at a load of {load:.1f}.")
        print(section, flush=True)
        sections += f"\n{section}" if section else ""
        missed += own
        told = f"\nPromises that were not kept: {'; '.join(missed) or 'none'}.\n"
        if len(chosen) == len(BENCHMARKS) + len(TABLES):
            (HERE / "RESULTS.md").write_text(about + told + sections, encoding="utf-8")
    return 1 if missed else 0


def _section(name: str, when: str) -> tuple[str, list[str]]:
    """Run one benchmark: its part of the page, and the promises that it did not keep."""
    title = f"## {name}"
    try:
        module = importlib.import_module(name if name in TABLES else f"bench_{name}")
        title = f"## {(module.__doc__ or name).splitlines()[0]}"
        rows: list[Row] = [] if name in TABLES else module.run()
        if not rows and name not in TABLES:
            return "", []
        body = [module.report()] if name in TABLES else _table(rows)
    except Exception as error:  # noqa: BLE001 - an hour's other results are kept
        traceback.print_exc()
        return f"{title}\n\nFAILED: {type(error).__name__}: {error}\n", [f"{name} failed"]
    return "\n".join([title, "", when, "", *body, ""]), [row.name for row in rows if not row.ok]


def _about() -> list[str]:
    versions = ", ".join(map(_with_version, PEERS))
    today = dt.datetime.now(tz=dt.UTC).date()
    return [
        "Ours and the peer in turn on the same data in one process; the ratio is the median over",
        "the pairs of runs (peer's time / ours). Memory is the peak that each side adds in a",
        "process of its own. Absolute times are of a shared machine and mean little; ratios are",
        "to be quoted.",
        "",
        f"{today}, {_processor()}, {os.cpu_count()} cores, {platform.system()},",
        f"Python {platform.python_version()}, {versions}.",
    ]


def _processor() -> str:
    """Return the processor's name and family, where the system tells."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    facts = dict(re.split(r"\s*: ?", line, maxsplit=1) for line in lines if ":" in line)
    name = facts.get("model name", platform.machine())
    return name + "".join(
        f", {key} {facts[key]}" for key in ("cpu family", "model") if key in facts
    )


def _with_version(name: str) -> str:
    """Return a library's name and version; benchmarks that do not need it run without it."""
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"{name} (not installed)"


def _table(rows: list[Row]) -> list[str]:
    lines = [
        "| what (peer) | ours, s | peer, s | peer / ours | promised | kept | ours MiB | peer MiB |",
        "|---|---:|---:|---:|---|---|---:|---:|",
    ]
    lines += [
        f"| {r.name} | {r.ours:.4f} | {r.peer:.4f} | {r.ratio:.2f} | {r.wanted} | "
        f"{'yes' if r.ok else 'NO'} | {r.ours_mb:.0f} | {r.peer_mb:.0f} |"
        for r in rows
    ]
    return lines + [f"\n{row.name}: {row.note}." for row in rows if row.note]


if __name__ == "__main__":
    sys.exit(main())
