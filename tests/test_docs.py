"""What the README and the docs show, runs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.test_cli import Run, goldspan_run

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "CONTRIBUTING.md"])
PLAIN = re.compile(r"goldspan [^|<>;&$`]*$")
"""A command that needs no shell."""
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _blocks(page: Path, language: str) -> list[str]:
    return [
        body for kind, body in FENCE.findall(page.read_text(encoding="utf-8")) if kind == language
    ]


def _commands(page: Path) -> list[str]:
    lines = [line for block in _blocks(page, "console") for line in block.splitlines()]
    return [line[2:] for line in lines if line.startswith("$ ")]


def _alike() -> list[list[Path]]:
    """Return the pages with commands, those together that begin with the same one."""
    found: dict[str, list[Path]] = {}
    for page in PAGES:
        for first in _commands(page)[:1]:
            found.setdefault(first, []).append(page)
    return list(found.values())


def _run(courses: list[list[str]], folder: Path, tmp_path_factory) -> None:
    """Run courses of commands from one state of a folder; what they begin with alike, once."""
    later: dict[str, list[list[str]]] = {}
    for line, *rest in filter(None, courses):
        later.setdefault(line, []).append(rest)
    for line, rests in later.items():
        own = tmp_path_factory.mktemp("course")
        shutil.copytree(folder, own, dirs_exist_ok=True)
        run = _do(line, own)
        assert run.returncode == 0, f"{line}\n{run.stdout}\n{run.stderr}"
        _run(rests, own, tmp_path_factory)


def _do(line: str, folder: Path) -> Run | subprocess.CompletedProcess[str]:
    """Run a command; `goldspan` without a pipe in this process, which saves the start of
    another."""
    if PLAIN.match(line):
        return goldspan_run(*shlex.split(line)[1:], cwd=folder)
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(line, shell=True, cwd=folder, env=env, capture_output=True, text=True)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with the examples in it, as the working directory."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.uncounted
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page, folder):
    names: dict[str, object] = {}
    for block in _blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)
    assert folder.exists()


@pytest.mark.uncounted
@pytest.mark.parametrize("pages", _alike(), ids=lambda pages: "+".join(p.name for p in pages))
def test_the_commands_of_a_page_run(pages, folder, tmp_path_factory):
    _run([_commands(page) for page in pages], folder, tmp_path_factory)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_links_of_a_page_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_python_example_of_the_readme_is_ten_lines_at_most():
    (block,) = _blocks(ROOT / "README.md", "python")
    assert len([line for line in block.splitlines() if line.strip()]) <= 10


def test_the_documentation_builds(tmp_path):
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    run = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "index.html").exists()
