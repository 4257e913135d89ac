"""`python -m studies` writes tables, picture and JSON, and refuses options that a study lacks."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from goldspan.errors import InputError, MissingExtraError, UnknownNameError
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


def test_so_far_makes_the_tables_of_what_is_finished(tiny, tmp_path):
    words = ("rodrigues-4", "--data", tiny, "--quick", "--state", tmp_path)
    _run(*words, "--repeats", 1, "--methods", "mv-token,crf-conc")
    _run(*words, "--repeats", 2, "--methods", "mv-token")
    kept = (tmp_path / "rodrigues-4.runs.jsonl").read_text()
    found = json.loads(_run(*words, "--so-far", "--json").output)
    assert re.fullmatch(r"SO FAR: 3 of \d\d runs are finished\.", found["notes"][1])
    rows = {row["method"]: row["repeats"] for row in found["tables"][0]["rows"]}
    assert rows == {"mv-token": 2, "crf-conc": 1}
    assert (tmp_path / "rodrigues-4.runs.jsonl").read_text() == kept


@pytest.mark.parametrize("name", [name for name in STUDIES if "so_far" in options_of(name)])
def test_so_far_of_a_study_without_a_finished_run_says_so(name, tiny, tmp_path):
    with pytest.raises(InputError, match=r"runs\.jsonl is not there: no run is finished"):
        _run(name, "--data", tiny, "--state", tmp_path, "--so-far")
    assert not list(tmp_path.iterdir())


def test_tables_so_far_are_those_of_studies_that_keep_runs():
    takers = {name for name in STUDIES if "so_far" in options_of(name)}
    assert {"rodrigues-6", "selection-ner", "purity"} < takers
    assert all("state" in options_of(name) for name in takers)


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


def test_json_has_tables_and_notes(tiny, tmp_path):
    words = ("--methods", "mv-seq", "--quick", "--json", "--state", tmp_path)
    found = json.loads(_run("rodrigues-5", "--data", tiny, *words).output)
    assert found["tables"][0]["rows"][0]["method"] == "mv-seq"
    assert found["notes"][0].startswith("QUICK")
    assert (tmp_path / "rodrigues-5.runs.jsonl").is_file()


def test_the_picture_goes_where_it_is_wished(tiny, tmp_path):
    picture = tmp_path / "crowd.png"
    _run("rodrigues-5", "--data", tiny, "--methods", "mv-seq", "--quick", "--plot", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["crowd.png"]


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


def test_a_picture_of_an_unknown_format_is_refused_before_the_work(tiny):
    with pytest.raises(UnknownNameError, match=r"\.gif"):
        _run("rodrigues-2", "--data", tiny, "--plot", "x.gif")


@pytest.mark.parametrize("option", ["--output", "--plot"])
def test_tables_and_pictures_need_a_file(tiny, tmp_path, monkeypatch, option):
    monkeypatch.chdir(tmp_path)
    result = _run("bsc", "--data", tiny, option, "-")
    assert result.exit_code == 2
    assert f"{option} cannot be standard output" in result.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("is_wished", [True, False])
def test_without_matplotlib_only_a_wished_picture_is_an_error(
    tiny, tmp_path, monkeypatch, is_wished
):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    words = ("rodrigues-5", "--data", tiny, "--methods", "mv-seq", "--quick")
    if is_wished:
        with pytest.raises(MissingExtraError, match="matplotlib"):
            _run(*words, "--plot", tmp_path / "crowd.svg")
        assert not list(tmp_path.iterdir())
    else:
        assert _run(*words, "-o", tmp_path / "crowd.md").exit_code == 0
        assert {path.name for path in tmp_path.iterdir()} == {"crowd.md", "crowd.runs.jsonl"}


def test_help_says_which_studies_take_an_option():
    import typer

    from studies import STUDIES, options_of
    from studies.__main__ import study

    params = typer.main.get_params_from_function(study)
    panels = {name: getattr(meta.default, "rich_help_panel", None) for name, meta in params.items()}
    panels.pop("plot")  # a picture is written by the command
    families = {name.split("-")[0] for name in STUDIES}
    for option, panel in panels.items():
        if panel:
            takers = {name.split("-")[0] for name in STUDIES if option in options_of(name)}
            assert takers == {word for word in families if word in panel}
    assert panels["quick"] != panels["sentences"]


def test_papers_are_named_by_authors_and_year(root):
    """No stranger knows a number that a paper has among ours."""
    pages = [*(root / "docs").glob("*.md"), root / "README.md", *(root / "studies").rglob("*.py")]
    assert [
        p.name
        for p in pages
        if re.search(r"\bpapers? 0\d\d\b", p.read_text("utf-8"), re.IGNORECASE)
    ] == []
    assert "Rodrigues et al. 2013: " in _run("--help").output
