"""Count the functions and files of the package through which three journeys pass.

    python tools/journeys.py            # a table
    python tools/journeys.py --json     # the same, with the files in the order of their first call
    python tools/journeys.py --files b  # the files of one journey with their functions

The journeys are
(a) `goldspan aggregate crowd.tsv --method bsc-seq+crf -o gold.conll` on the example;
(b) one posted answer: the request that posts it, the store, a step of the loop, the gold on disk;
(c) `goldspan run campaign.toml` on the example, from the plan to bill and report.

`sys.setprofile` (and `threading.setprofile`) sees every call of a Python function; a function
counts once, however often it is called, and only if its source is in `src/goldspan`. Functions with
a name count, and lambdas; the bodies of modules and classes run when something is imported and do
not count, nor do comprehensions. Compiled kernels are not seen: what calls them is. Each journey
runs in a process of its own, once before it is counted, so that nothing is counted that only
happens the first time (kernels are compiled then).
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path
from typing import Any

import golden

PACKAGE = golden.ROOT / "src" / "goldspan"
EXAMPLES = golden.ROOT / "examples"
NOT_FUNCTIONS = {"<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
JOURNEYS = {
    "a": "aggregate crowd.tsv --method bsc-seq+crf -o gold.conll",
    "b": "one posted answer → store → loop → gold",
    "c": "run campaign.toml → bill and report",
}


class Count:
    """The functions that were called, by file, both in the order of their first call."""

    def __init__(self) -> None:
        self.seen: dict[str, dict[str, None]] = {}
        self._codes: set[Any] = set()
        self._prefix = f"{PACKAGE}/"

    def __call__(self, frame: Any, event: str, _: Any) -> None:
        """Take note of a call; the interpreter calls this."""
        code = frame.f_code
        if event != "call" or code in self._codes:
            return
        self._codes.add(code)
        is_ours = code.co_filename.startswith(self._prefix)
        if is_ours and code.co_name not in NOT_FUNCTIONS and not _is_class_body(code):
            file = code.co_filename.removeprefix(self._prefix)
            self.seen.setdefault(file, {})[f"{code.co_firstlineno} {code.co_qualname}"] = None

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what is called within, in threads that begin there too."""
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


def _is_class_body(code: Any) -> bool:
    return "__qualname__" in code.co_names and "__module__" in code.co_names


def example(folder: Path) -> Path:
    """Copy the example's files into a folder."""
    shutil.copytree(EXAMPLES, folder)
    return folder


def aggregate(folder: Path) -> Callable[[], None]:
    """Prepare journey (a)."""
    there = example(folder)
    return lambda: command(there, "aggregate crowd.tsv --method bsc-seq+crf -o gold.conll")


def run(folder: Path) -> Callable[[], None]:
    """Prepare journey (c)."""
    there = example(folder)
    return lambda: command(there, "run campaign.toml --out out")


def command(folder: Path, words: str) -> None:
    """Run a command in a folder."""
    with chdir(folder):
        code, _, told = golden.run_command(words.split())
    if code:
        raise SystemExit(f"goldspan {words}: {told}")


def answer(folder: Path, stack: ExitStack) -> Callable[[], None]:
    """Prepare journey (b): a served campaign whose only round waits for one answer."""
    golden.write_weather(folder, web=True)
    plan = folder / "campaign.toml"
    plan.write_text(golden.WEATHER_PLAN + ONE_ANSWER, "utf-8")
    clock = [golden.NOW * 1000]
    stack.enter_context(golden.at_time(golden.NOW))
    service, app = stack.enter_context(golden.served(plan, folder / "out", lambda: clock[0]))
    browser = golden.browser_of(folder, app, "ann")
    golden.run_loop(service)
    task = golden.next_task(browser)

    def post() -> None:
        clock[0] += 4_000
        golden.post_answer(browser, task)
        golden.run_loop(service)
        golden.write_gold(service, folder / "out")
        if not (folder / "out" / "gold.csv").is_file():
            raise SystemExit("no gold was written")

    return post


ONE_ANSWER = """\
[select]
by = "random"
batch = 1
[redundancy]
min = 1
max = 1
[stop]
most_rounds = 1
[crowd]
source = "web"
"""


def journey(name: str) -> dict[str, list[str]]:
    """Make a journey twice, and return the functions by file of the second time."""
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        prepare = {"a": aggregate, "b": lambda to: answer(to, stack), "c": run}[name]
        prepare(Path(place) / "first")()
        count, counted = Count(), prepare(Path(place) / "counted")
        with count.counting():
            counted()
        return {file: list(names) for file, names in count.seen.items()}


def main() -> int:
    """Print the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--files", choices=JOURNEYS, help="the files of one journey")
    parser.add_argument("--one", choices=JOURNEYS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(journey(asked.one)))
        return 0
    found = {name: apart(name) for name in ([asked.files] if asked.files else JOURNEYS)}
    if asked.files:
        for file, names in found[asked.files].items():
            print(f"{file} ({len(names)})", *names, sep="\n    ")
    elif asked.json:
        print(json.dumps({
            name: {"journey": JOURNEYS[name], "functions": functions(files),
                   "files": len(files), "path": files}
            for name, files in found.items()
        }, indent=1))  # fmt: skip
    else:
        print(f"{'functions':>9} {'files':>5}  journey")
        for name, files in found.items():
            print(f"{functions(files):>9,} {len(files):>5}  ({name}) {JOURNEYS[name]}")
    return 0


def functions(files: dict[str, list[str]]) -> int:
    """Return the number of functions in some files."""
    return sum(map(len, files.values()))


def apart(name: str) -> dict[str, list[str]]:
    """Make a journey in a process of its own."""
    words = [sys.executable, __file__, "--one", name]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True)
    return dict(json.loads(done.stdout))


if __name__ == "__main__":
    sys.exit(main())
