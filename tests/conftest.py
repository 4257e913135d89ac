"""What all tests share: the real data, if they are there, hypothesis profiles, and Ctrl-C."""

from __future__ import annotations

import copy
import gc
import os
import signal
from collections.abc import Callable, Generator
from functools import cache
from pathlib import Path

import pytest
import typer.main
import typer.testing
from coverage import Coverage
from hypothesis import HealthCheck, settings

import torture

ROOT = Path(__file__).resolve().parents[1]
SLOW = Path(__file__).with_name("slow.txt")
"""Files and cases that `make test-slow` runs; `tools/slow_tests.py` writes the list."""
DATA = Path(os.environ.get("GOLDSPAN_DATA") or ROOT.parent / "shared" / "data")

_slow = [HealthCheck.too_slow]
settings.register_profile("ci", deadline=None, derandomize=True, suppress_health_check=_slow)
# `make test` takes this one.
settings.register_profile("quick", settings.get_profile("ci"), max_examples=25)
settings.register_profile("torture", deadline=None, max_examples=5000, suppress_health_check=_slow)
settings.load_profile("ci")

# A shell's background jobs ignore Ctrl-C, and so would the programs that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the files for the table of `make torture`."""
    words = "write the table of tests marked `torture` to a file, or between its two marks"
    parser.addoption(
        "--torture-table", action="append", default=[], type=Path, metavar="FILE", help=words
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collect the table, in the process that hears of all tests."""
    files = config.getoption("--torture-table")
    if files and not hasattr(config, "workerinput"):
        config.pluginmanager.register(torture.TortureTable(files))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector off what collecting the tests makes, which stays until the end.

    To look through it all takes 0.4 s, and would be done again and again.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note what a test does to goldspan."""
    torture.begin(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Count how often a test does it."""
    if item.get_closest_marker("torture") is None:
        return (yield)
    return (yield from torture.count(item))


@pytest.fixture
def tortured(request: pytest.FixtureRequest) -> Callable[[int], None]:
    """Counts how often a test marked `torture` has done what it does: `tortured(n)`."""
    return request.node.stash.setdefault(torture.COUNT, []).append


TIERS = {"web": {"browser", "start"}, "db": {"schemas", "own_postgres"}}
"""Fixtures whose tests are not for `make test`, by the target that runs them: a browser, servers
as processes; PostgreSQL. Their slow tests belong to it too."""


def _tier(item: pytest.Item, slow: set[str]) -> str | None:
    """Return the marker of the target that runs a test; None for `make test`."""
    case = getattr(item, "callspec", None)
    if case and "postgresql" in case.id.split("-"):
        return "db"
    fixtures = {*getattr(item, "fixturenames", ())} - {*(case.params if case else ())}
    file = item.nodeid.partition("::")[0]
    for tier, theirs in TIERS.items():
        if fixtures & theirs:
            return tier
    is_slow = file.startswith("tests/studies/") or not slow.isdisjoint({item.nodeid, file})
    return "slow" if is_slow else None


@pytest.hookimpl(tryfirst=True)  # before `-m "not slow"` is looked at
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests by tier; skip those that need the real data where there are none."""
    slow = set(SLOW.read_text(encoding="utf-8").splitlines())
    for item in items:
        if tier := _tier(item, slow):
            item.add_marker(tier)
    if DATA.is_dir():
        return
    reason = f"the real data are not at {DATA}; set GOLDSPAN_DATA to their folder"
    for item in items:
        if item.get_closest_marker("realdata"):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, bool | None, bool | None]:
    """Measure no coverage in tests of numbers or pages, whose lines tests of their own cover."""
    quiet = item.get_closest_marker("realdata") or item.get_closest_marker("uncounted")
    coverage = Coverage.current() if quiet else None
    if coverage is None:
        return (yield)
    coverage.stop()
    try:
        return (yield)
    finally:
        coverage.start()


@pytest.fixture(scope="session", autouse=True)
def _commands_are_built_once() -> Generator[None]:
    """Build the tree of commands once for all calls in this process: a tenth of a second each.

    Every call gets a copy of its root, which showing its help changes.
    """
    built = cache(typer.main.get_command)
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((typer.main, "get_command"), (typer.testing, "_get_command")):
            patch.setattr(module, name, lambda app: copy.copy(built(app)))
        yield


@pytest.fixture(scope="session")
def data() -> Path:
    """Folder of the real data sets; only tests marked `realdata` may use it."""
    return DATA


@pytest.fixture(scope="session")
def root() -> Path:
    """Folder of the checkout."""
    return ROOT
