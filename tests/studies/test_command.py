"""`python -m studies` writes tables, picture and JSON, and refuses options that a study lacks."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from goldspan.errors import InputError
from studies import STUDIES, options_of
from studies.__main__ import app
from studies.registry import LONG, names_by_length


def _run(*words):
    result = CliRunner().invoke(app, list(map(str, words)))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_tables_picture_and_state_stand_beside_the_output(tiny, tmp_path):
    output = tmp_path / "names.md"
    words = ("--quick", "--repeats", 2, "--methods", "mv-token,crf-conc", "-o", output)
    result = _run("rodrigues-4", "--data", tiny, *words)
    assert result.exit_code == 0
    assert output.read_text() in result.output
    assert (tmp_path / "names.svg").read_text().startswith("<?xml")
    assert len((tmp_path / "names.runs.jsonl").read_text().splitlines()) == 4


def test_a_study_that_is_killed_goes_on_by_the_same_command(tiny, tmp_path, root):
    """SIGKILL after a finished run: the rest is done, and the tables are those of one go."""
    methods = ("--methods", "mv-token,crf-conc")
    words = ["rodrigues-4", "--data", tiny, "--quick", "--repeats", 3, *methods, "--overwrite"]
    output, kept = tmp_path / "names.md", tmp_path / "names.runs.jsonl"
    command = [sys.executable, "-m", "studies", *map(str, words), "-o", str(output)]
    with subprocess.Popen(
        command, cwd=root, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    ) as run:
        while run.poll() is None and not (kept.exists() and kept.read_text().endswith("\n")):
            time.sleep(0.01)
        run.kill()
    before = kept.read_text()
    whole = before[: before.rfind("\n") + 1]
    assert whole
    assert not output.exists() or before.count("\n") == 6  # else it was over before the kill
    assert _run(*words, "-o", output).exit_code == 0
    assert kept.read_text().startswith(whole)
    assert len(kept.read_text().splitlines()) - 6 in {0, 1}  # a line that the kill cut off
    _run(*words, "-o", tmp_path / "one_go.md")
    tables = [text.read_text().split("**Seconds")[0] for text in (output, tmp_path / "one_go.md")]
    assert tables[0] == tables[1]


@pytest.mark.parametrize("name", [name for name in STUDIES if "so_far" in options_of(name)])
def test_so_far_of_a_study_without_a_finished_run_says_so(name, tiny, tmp_path):
    with pytest.raises(InputError, match=r"runs\.jsonl is not there: no run is finished"):
        _run(name, "--data", tiny, "--state", tmp_path, "--so-far")
    assert not list(tmp_path.iterdir())


def test_names_are_those_of_all_studies_the_long_ones_last():
    names = _run("--names").output.split()
    assert sorted(names) == sorted(STUDIES)
    assert names[-len(LONG) :] == list(LONG)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("chosen", [None, ["bsc", "purity"]])
def test_make_study_does_all_studies_or_those_that_are_named(tmp_path, root, chosen):
    """With an interpreter in place of the real one that tells its words, but for the names."""
    told, python = tmp_path / "told.txt", tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(
        f'#!/bin/sh\ncase "$*" in *--names*) exec {sys.executable} "$@";; esac\n'
        f'echo "$3" >>{told}\n'
    )
    python.chmod(0o755)
    ready = tmp_path / "ready"  # newer than what it is made of
    ready.touch()
    words = [f"BIN={python.parent}", f"STAMP={ready}", f"OUT={tmp_path}", "DATA=none"]
    words += [] if chosen is None else [f"NAME={' '.join(chosen)}"]
    done = subprocess.run(
        ["make", "study", *words], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert told.read_text().split() == (chosen or names_by_length())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("bsc", "--plot", "x.svg"), "bsc has no picture"),
        (("scale", "--repeats", "3"), "no option 'repeats'"),
        (("bsc", "--part", "labels"), "no option 'parts'"),
        (("bsc", "--state", "."), "keeps no finished runs"),
        (("bsc", "--so-far"), "has no tables of a part of its runs"),
        (("rodrigues-6", "--so-far"), "needs the finished runs: name their folder"),
        (("rodrigues-5", "--repeats", "3"), "no option 'repeats'"),
        (("rodrigues-2", "--state", "nowhere"), "is no folder"),
        (("rodrigues-2", "-o", "a.svg", "--plot", "a.svg"), "two outputs"),
    ],
)
def test_options_that_a_study_lacks_are_refused(words, message, tiny):
    with pytest.raises(InputError, match=message):
        _run(words[0], "--data", tiny, *words[1:])


def test_papers_are_named_by_authors_and_year(root):
    """No stranger knows a number that a paper has among ours."""
    pages = [*(root / "docs").glob("*.md"), root / "README.md", *(root / "studies").rglob("*.py")]
    assert [
        p.name
        for p in pages
        if re.search(r"\bpapers? 0\d\d\b", p.read_text("utf-8"), re.IGNORECASE)
    ] == []
    assert "Rodrigues et al. 2013: " in _run("--help").output
