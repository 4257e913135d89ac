"""What the README and the docs show, runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.test_cli import Run, goldspan_run
from goldspan.crowd.registry import FORMATS, get_format

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "CONTRIBUTING.md"])
PLAIN = re.compile(r"goldspan [^|<>;&$`]*$")
"""A command that needs no shell."""
STEP = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)
WRITTEN = " (written)"
"""Ends the title of a block that shows what the commands before it wrote; others are input."""
NEEDS = re.compile(r"^<!-- needs: (\w+) -->\n\n```.*?^```$", re.MULTILINE | re.DOTALL)
"""A block that needs a large library: `tests/models/test_pages.py` runs pages with such blocks."""
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _without_large(page: Path) -> str:
    """Return the text of a page without the blocks that need a large library."""
    return NEEDS.sub("", page.read_text(encoding="utf-8"))


def _blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body in FENCE.findall(_without_large(page)) if kind == language]


def _commands(page: Path) -> list[str]:
    lines = [line for block in _blocks(page, "console") for line in block.splitlines()]
    return [line[2:] for line in lines if line.startswith("$ ")]


def _steps(page: Path) -> list[tuple[str, str]]:
    """Return the commands and the files of a page in their order: ("", command) or (name, text)."""
    found = []
    for language, title, body in STEP.findall(_without_large(page)):
        if title:
            found.append((title, body))
        elif language == "console":
            found += [("", line[2:]) for line in body.splitlines() if line.startswith("$ ")]
    return found


def read_values(name: str, text: str) -> object:
    """Return what a file says: JSON as values, however its lines are broken."""
    if not name.endswith((".json", ".jsonl")):
        return [line.rstrip() for line in text.strip().splitlines()]
    values, rest, decoder = [], text.strip(), json.JSONDecoder()
    while rest:
        value, end = decoder.raw_decode(rest)
        values.append(value)
        rest = rest[end:].lstrip()
    return values


def _contents(place: Path) -> dict[str, bytes]:
    """Return the content of a file, or of all files in a folder, by path."""
    files = [place] if place.is_file() else sorted(place.rglob("*"))
    return {str(path): path.read_bytes() for path in files if path.is_file()}


def succeed(line: str, folder: Path) -> None:
    """Run a command; `goldspan` without a pipe in this process, which saves the start of
    another."""
    run: Run | subprocess.CompletedProcess[str]
    if PLAIN.match(line):
        run = goldspan_run(*shlex.split(line)[1:], cwd=folder)
    else:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = {**os.environ, "PATH": path}
        run = subprocess.run(line, shell=True, cwd=folder, env=env, capture_output=True, text=True)
    assert run.returncode == 0, f"{line}\n{run.stdout}\n{run.stderr}"


class Pages:
    """Runs the commands of pages. Many show the same one: it is run once for what it reads.

    What it wrote is put where it is shown again. It reads what its words name, and what lies in the
    same folder, as the files of a plan do.
    """

    def __init__(self) -> None:
        self.wrote: dict[object, dict[str, bytes | None]] = {}

    def run(self, line: str) -> None:
        """Run a command in the working directory, or repeat what it wrote."""
        named = [Path(word) for word in shlex.split(line) if Path(word).exists()]
        read = {path.parent if len(path.parts) > 1 else path for path in named}
        asked = (line, *(pair for path in sorted(read) for pair in _contents(path).items()))
        if asked not in self.wrote:
            before = _contents(Path())
            succeed(line, Path())
            after = _contents(Path())
            self.wrote[asked] = {
                path: after.get(path)
                for path in before | after
                if before.get(path) != after.get(path)
            }
            return
        for path, content in self.wrote[asked].items():
            if content is None:
                Path(path).unlink()
            else:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                Path(path).write_bytes(content)


@pytest.fixture(scope="module")
def pages():
    """Pages of which each command runs once."""
    return Pages()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with the examples in it, as the working directory."""
    bytecode = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=bytecode)
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
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", [*filter(_commands, PAGES)], ids=lambda page: page.name)
def test_the_commands_of_a_page_run(page, pages):
    for name, text in _steps(page):
        if not name:
            pages.run(text)
        elif name.endswith(WRITTEN):
            path = name.removesuffix(WRITTEN)
            assert read_values(path, Path(path).read_text("utf-8")) == read_values(path, text), path
        else:
            assert not Path(name).exists()
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(text, encoding="utf-8")


def _pages_of_formats() -> dict[str, Path]:
    """Return the page of every format, by the table of formats."""
    table = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[a-z].*?) \| (.*?) \| .*? \|$", table, re.MULTILINE)
    found = {}
    for names, what in rows:
        for name in re.findall(r"`([a-z-]+)`", names):
            if link := re.search(r"\((format-[a-z-]+\.md)\)", what):
                found.setdefault(name, ROOT / "docs" / link[1])
    return found


def test_every_format_has_a_page_that_says_what_is_read_written_and_lost():
    found = _pages_of_formats()
    assert found.keys() == FORMATS.keys()
    for name, page in found.items():
        titles = " ".join(re.findall(r"^## (.*)$", page.read_text("utf-8"), re.MULTILINE))
        for word in ("read", "written", "lost"):
            assert word in titles, f"{name}: {word}"


LOST = {
    "the starting times": "starting", "the submission times": "submission", "the costs": "costs",
    "attribute": "attributes", "repeated answer": "earlier answers", "ids of": "ids of items",
    "the text of": "texts", "the character offsets": "places", "the documents": "documents",
    "the numbers of repeated": "numbers of repeated answers", "workers:": "annotators",
    "answers:": "answers",
}  # fmt: skip
"""What a loss is called on the pages."""


@pytest.mark.parametrize("name", [name for name in FORMATS if hasattr(get_format(name), "write")])
def test_what_a_format_is_known_to_lose_is_on_its_page(name):
    frozen = ROOT / "tests" / "golden" / f"format-everything-{name}.json"
    if not frozen.exists():
        # The library is not where goldens are made, or the goldens' spans have no place in it
        assert FORMATS[name].extra or name in {"lewidi", "mace"}
        return
    page = _pages_of_formats()[name].read_text("utf-8")
    said = " ".join(page.casefold().partition("lost\n")[2].split())
    for loss in json.loads(frozen.read_text("utf-8"))["json"]["lost"]:
        words = [word for start, word in LOST.items() if start in loss]
        assert words, loss
        assert any(word in said for word in words), loss


def test_the_notebook_prints_what_it_holds(tmp_path):
    words = [sys.executable, str(ROOT / "tools" / "notebook.py")]
    run = subprocess.run(
        [*words, str(ROOT / "docs" / "tutorial.ipynb")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


def test_a_notebook_is_shown_with_what_its_cells_gave():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import notebook
    finally:
        sys.path.pop(0)
    cells = [
        {"cell_type": "markdown", "source": ["## A title"]},
        {"cell_type": "code", "source": ["a = 6\n", "print('six')\n", "a * 7"]},
    ]
    made = notebook.run({"cells": cells})
    shown = notebook.to_markdown(made)
    assert shown == (
        "## A title\n\n```py\na = 6\nprint('six')\na * 7\n```\n\n"
        "```text\nsix\n```\n\n```text\n42\n```"
    )
    with pytest.raises(ZeroDivisionError):
        notebook.run({"cells": [{"cell_type": "code", "source": ["1 / 0"]}]})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_links_of_a_page_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target and not target.startswith("api/"):  # made when the site is built
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("name", ["architecture.md", "extending.md", "contributing.md"])
def test_the_files_that_a_page_names_are_there(name):
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    prose = FENCE.sub("", page)
    named = re.findall(r"`((?:[a-z_.]+/)+(?:[a-z_0-9]+\.(?:py|md|toml))?)`", prose)
    assert len(named) > 5
    for path in named:
        assert any((ROOT / base / path).exists() for base in ("src/goldspan", ".")), path


def test_a_confidence_is_computed_where_the_architecture_says():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for file, name in re.findall(r"^\d\. `([\w/]+\.py)`, `([\w.]+)`", page, re.MULTILINE):
        code = (ROOT / "src" / "goldspan" / file).read_text(encoding="utf-8")
        assert re.search(rf"\b(?:def|class) {name.partition('.')[0]}\b", code), name
        assert name.rpartition(".")[2] in code, name


def test_the_words_that_people_search_for_are_on_the_first_page():
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8").casefold()
    for word in (
        "active learning", "inter-annotator agreement", "truth inference", "dawid–skene",
        "quality control", "tokenization", "progress", "hugging face", "spacy",
    ):  # fmt: skip
        assert word in page, word


def test_the_python_example_of_the_readme_is_ten_lines_at_most():
    (block,) = _blocks(ROOT / "README.md", "python")
    assert len([line for line in block.splitlines() if line.strip()]) <= 10


def test_the_python_example_of_the_readme_prints_what_stands_there(tmp_path):
    shown = _blocks(ROOT / "README.md", "text")[0].split()
    code = _blocks(ROOT / "README.md", "python")[0].replace("gold.jsonl", f"{tmp_path}/gold.jsonl")
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    for word, found in zip(shown, run.stdout.split(), strict=True):
        is_number = re.fullmatch(r"0\.\d+", word)
        assert float(found) == pytest.approx(float(word), abs=1e-3) if is_number else found == word


def test_the_documentation_builds(tmp_path):
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    run = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "index.html").exists()
    reference = (tmp_path / "api" / "goldspan.aggregation" / "index.html").read_text("utf-8")
    assert 'id="aggregatorfit"' in reference  # a public method, from its docstring
    listed = (tmp_path / "llms.txt").read_text("utf-8")
    pages = re.findall(r"[\w-]+\.md$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert [one for one in pages if f"({one.removesuffix('.md')}/): " not in listed] == ["index.md"]
    assert (
        "- [Pay and bills](pay/): What does every annotator get, and what does the whole" in listed
    )
