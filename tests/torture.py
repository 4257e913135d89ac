"""The table of `make torture`: what was done to goldspan, how often, and whether it held.

A test counts in by one line, a marker that names what is done and what must hold:

    @pytest.mark.torture("a served campaign is killed", "no acknowledged answer is lost or doubled")

`make torture` runs the tests that have it, and no others. The examples of a property test are
counted by themselves; a test that does its harm in a loop says how often, with the fixture
`tortured`:

    def test_…(tortured):
        …
        tortured(len(kills))

Rows with the same words are added up, over files, parameters and the processes of pytest-xdist.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import goldspan

BEGIN, END = "<!-- torture: begin -->", "<!-- torture: end -->"
"""What stands around the table in a page that holds more."""
FUZZED = pytest.mark.torture(
    "damaged and made-up files are read", "each is read, or refused in one clear error"
)
DAMAGED = pytest.mark.torture(
    "models and checkpoints are cut or changed", "it is noticed, or does no harm"
)
"""Kinds that several files have."""
COUNT = pytest.StashKey[list[int]]()


@dataclass
class Row:
    """One kind of harm.

    Attributes:
        times: How often it was done.
        held: Tests that passed.
        failed: The names of those that failed.
        skipped: The reasons of those that could not be run.
    """

    times: int = 0
    held: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: set[str] = field(default_factory=set)

    def outcome(self) -> str:
        """Return what became of it, in words."""
        words = [f"**no**: {', '.join(self.failed)}"] if self.failed else []
        words += ["yes"] if self.held and not self.failed else []
        words += [f"not run: {'; '.join(sorted(self.skipped))}"] if self.skipped else []
        return ", in part ".join(words)


class TortureTable:
    """Collects the reports of tests, and writes the table when all have run.

    Args:
        files: Where it is written; in a file that has the two marks, between them.
    """

    def __init__(self, files: list[Path]) -> None:
        self._files, self._begin = files, time.monotonic()
        self._rows: dict[tuple[str, str], Row] = {}
        self._broken_off = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test."""
        told: dict[str, Any] = dict(report.user_properties)
        if "torture" not in told and not report.failed:
            return
        # A test that ended its process of pytest-xdist is reported without its marker.
        what, holds = told.get("torture", ("a test fails, or ends its process", "none does"))
        row = self._rows.setdefault((what, holds), Row())
        if report.when == "call" and not report.skipped:
            row.times += told.get("times", 1)
            row.held += report.passed
        if report.failed:
            row.failed.append(report.nodeid.rpartition("/")[2])
        if report.skipped:
            row.skipped.add(_reason(report))

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        """Print the table, and write it; into a page with the two marks only of a whole run."""
        self._broken_off = exitstatus not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}
        table = self.table()
        terminalreporter.section("torture")
        terminalreporter.write_line(table)
        for file in self._files:
            if self._broken_off and file.exists() and BEGIN in file.read_text(encoding="utf-8"):
                terminalreporter.write_line(f"not written to {file}: the run was broken off")
                continue
            write_table(file, table)
            terminalreporter.write_line(f"written to {file}")

    def table(self) -> str:
        """Return the table in Markdown, with the day and the machine."""
        minutes = max(round((time.monotonic() - self._begin) / 60), 1)
        run = (
            f"Run on {time.strftime('%Y-%m-%d', time.gmtime())}, {minutes} minutes, "
            f"goldspan {goldspan.__version__}: {machine()}."
        )
        lines = [
            f"**Broken off, so not whole.** {run}" if self._broken_off else run,
            "",
            "| what was done | how often | what must hold | held |",
            "|---|---:|---|---|",
        ]
        lines += [
            f"| {what} | {row.times:,} | {holds} | {row.outcome()} |"
            for (what, holds), row in sorted(self._rows.items())
        ]
        return "\n".join(lines)


def begin(item: pytest.Item) -> None:
    """Note what a test does, before it is set up: it counts in though it fails or is skipped."""
    marker = item.get_closest_marker("torture")
    if marker is not None:
        if len(marker.args) != 2 or not all(isinstance(word, str) for word in marker.args):
            raise pytest.UsageError(f"{item.nodeid}: torture(what is done, what must hold)")
        item.user_properties.append(("torture", list(marker.args)))


def count(item: pytest.Item) -> Generator[None, Any, Any]:
    """Run a test, and note how often it did what it does: the examples of a property test."""
    counts = item.stash.setdefault(COUNT, [])
    known = getattr(getattr(item, "obj", None), "hypothesis", None)
    if known is None:
        try:
            return (yield)
        finally:
            item.user_properties.append(("times", sum(counts) if counts else 1))
    inner, n = known.inner_test, 0

    def counted(*args: Any, **given: Any) -> Any:
        nonlocal n
        n += 1
        return inner(*args, **given)

    known.inner_test = counted
    try:
        return (yield)
    finally:
        known.inner_test = inner
        item.user_properties.append(("times", n))


def write_table(file: Path, table: str) -> None:
    """Write the table to a file, or into it between the two marks."""
    if file.exists() and BEGIN in (page := file.read_text(encoding="utf-8")):
        block = f"{BEGIN}\n{table}\n{END}"
        page = re.sub(
            f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: block, page, flags=re.DOTALL
        )
    else:
        file.parent.mkdir(parents=True, exist_ok=True)
        page = f"{table}\n"
    file.write_text(page, encoding="utf-8")


def machine() -> str:
    """Return the machine and the versions that matter, in words."""
    words = [f"{os.cpu_count()} cores"]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        n_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        words.append(f"{n_bytes / 2**30:.0f} GB of memory")
    words += [
        f"{platform.system()} {platform.machine()}",
        f"Python {platform.python_version()}",
        f"SQLite {sqlite3.sqlite_version}",
    ]
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    postgres = str(debian[-1]) if debian else shutil.which("postgres")
    if postgres is None:
        return ", ".join([*words, "no PostgreSQL"])
    said = subprocess.run([postgres, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"\d+(\.\d+)*", said.stdout)
    return ", ".join([*words, f"PostgreSQL {found[0] if found else 'of an unknown version'}"])


def _reason(report: pytest.TestReport) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return str(reason).removeprefix("Skipped: ")
