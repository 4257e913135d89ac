"""The table of `make torture` counts what tests did, in all processes, and hides no failure."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from torture import BEGIN, END

TESTS = """
import pytest
from hypothesis import given, settings
from hypothesis.strategies import integers

kills = pytest.mark.torture("a server is killed", "nothing is lost")

@kills
@pytest.mark.parametrize("place", ["sqlite", "postgresql"])
def test_kill(place, tortured):
    for _ in range(20):
        tortured(2)

@kills
def test_once():
    pass

@pytest.mark.torture("damaged files are read", "one clear error")
@settings(max_examples=30, database=None)
@given(integers(0, 10**9))
def test_fuzz(number):
    assert number >= 0

@pytest.mark.torture("a clock jumps", "time goes on")
def test_clock(tortured):
    tortured(7)
    assert False

@pytest.mark.torture("PostgreSQL restarts", "the epoch holds")
def test_restart():
    pytest.skip("PostgreSQL is not installed")

def test_of_something_else():
    assert True
"""


@pytest.fixture
def table(root, tmp_path):
    """Runs tests with the plugin, and returns what stands in the page afterwards."""
    (tmp_path / "test_harm.py").write_text(TESTS)
    for name in ("conftest.py", "slow.txt"):
        (tmp_path / name).write_text((root / "tests" / name).read_text())
    page = tmp_path / "reliability.md"
    page.write_text(f"Before.\n{BEGIN}\nThe last run.\n{END}\nAfter.\n")
    # Loading the plugins that these tests do not use takes ten times as long as running them.
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

    def run(*words):
        found = tmp_path / "out" / "torture.md"
        done = subprocess.run(
            [
                sys.executable, "-m", "pytest", "-q", "-m", "torture", "-p", "no:cacheprovider",
                "-c", str(root / "pyproject.toml"), "--rootdir", str(tmp_path),
                "-o", f"pythonpath={root / 'tests'}", "--torture-table", str(found),
                "--torture-table", str(page), "-p", "xdist", *words, str(tmp_path),
            ],
            capture_output=True, text=True, check=False, cwd=tmp_path, env=env,
        )  # fmt: skip
        assert found.exists(), done.stdout + done.stderr
        return done.stdout, found.read_text(), page.read_text()

    return run


def test_the_table_has_a_row_for_every_kind_of_harm(table):
    said, found, page = table("-n", "2")
    assert "| a server is killed | 81 | nothing is lost | yes |" in found
    assert "| damaged files are read | 30 | one clear error | yes |" in found
    assert "| a clock jumps | 7 | time goes on | **no**: test_harm.py::test_clock |" in found
    assert (
        "| PostgreSQL restarts | 0 | the epoch holds | not run: PostgreSQL is not installed |"
    ) in found
    assert len(found.splitlines()) == 8
    assert f"Python {sys.version.split()[0]}" in found.splitlines()[0]
    assert "SQLite" in found.splitlines()[0]
    assert found in said
    assert page.startswith(f"Before.\n{BEGIN}\nRun on ")
    assert found in page
    assert "The last run." not in page
    assert page.endswith(f"{END}\nAfter.\n")


def test_a_test_that_ends_its_process_is_named(table, tmp_path):
    (tmp_path / "test_harm.py").write_text(
        "import os\nimport pytest\n\n"
        '@pytest.mark.torture("a server is killed", "nothing is lost")\n'
        "def test_harm():\n    os._exit(9)\n"
    )
    _, found, _ = table("-n", "1")
    assert "| none does | **no**: test_harm.py::test_harm |" in found
