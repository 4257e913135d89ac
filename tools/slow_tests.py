"""Write tests/slow.txt, the tests that `make test` leaves to `make test-slow`, from measured times.

    python -m pytest -n 3 -m "not wheel and not cluster" --junitxml out/tests.xml
    python tools/slow_tests.py out/tests.xml >tests/slow.txt

A case that takes half a second or more is slow; a file is, as a whole, if one of its cases takes
most of its time: the first test pays for a fixture of all.
"""

from __future__ import annotations

import argparse
import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path

MOST = 0.7


def slow_tests(times: dict[str, dict[str, float]], seconds: float) -> list[str]:
    """Return the slow files and cases, in order, from the seconds of each case of each file."""
    found = []
    for file, cases in sorted(times.items()):
        slow = {case: took for case, took in cases.items() if took >= seconds}
        if slow and max(slow.values()) >= MOST * sum(cases.values()):
            found.append(file)
        else:
            found += [f"{file}::{case}" for case in sorted(slow)]
    return found


def _times(report: Path) -> dict[str, dict[str, float]]:
    """Read a JUnit report of pytest."""
    times: dict[str, dict[str, float]] = defaultdict(dict)
    for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314 - our own report
        file = case.get("classname", "").replace(".", "/") + ".py"
        times[file][case.get("name", "")] = float(case.get("time", 0))
    return times


def main() -> None:
    """Print the list."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("report", type=Path, help="JUnit report of a run of all tests")
    parser.add_argument("--seconds", type=float, default=0.5, help="what is slow")
    words = parser.parse_args()
    print(*slow_tests(_times(words.report), words.seconds), sep="\n")


if __name__ == "__main__":
    main()
