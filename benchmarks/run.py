"""Run the benchmarks and write benchmarks/RESULTS.md: `make bench`.

With names of benchmarks as arguments only these are run and the table is printed, not written.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib
import os
import platform
import sys
from importlib.metadata import version
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
    """Run, print, write; exit 1 if a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, *TABLES, []], help="only these")
    chosen = parser.parse_args().names or [*BENCHMARKS, *TABLES]
    sys.path.insert(0, str(HERE))
    lines = ["# Benchmarks", "", *_about(), ""]
    kept = True
    for name in chosen:
        module = importlib.import_module(name if name in TABLES else f"bench_{name}")
        if name in TABLES:
            body = [module.report()]
        else:
            rows: list[Row] = module.run()
            kept &= all(row.ok for row in rows)
            body = _table(rows) if rows else []
        if body:
            lines += [f"## {(module.__doc__ or name).splitlines()[0]}", "", *body, ""]
    text = "\n".join(lines)
    print(text)
    if len(chosen) == len(BENCHMARKS) + len(TABLES):
        (HERE / "RESULTS.md").write_text(text, encoding="utf-8")
    return 0 if kept else 1


def _about() -> list[str]:
    versions = ", ".join(f"{name} {version(name)}" for name in PEERS)
    today = dt.datetime.now(tz=dt.UTC).date()
    return [
        "Ours and the peer in turn on the same data in one process; the ratio is the median over",
        "the pairs of runs (peer's time / ours). Memory is the peak that each side adds in a",
        "process of its own. Absolute times are of a shared machine and mean little; ratios are",
        "to be quoted.",
        "",
        f"{today}, {platform.machine()}, {os.cpu_count()} cores, {platform.system()},",
        f"Python {platform.python_version()}, {versions}.",
    ]


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
