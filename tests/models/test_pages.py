"""Pages whose examples need a large library: all their blocks, in order, in one folder.

`tests/test_docs.py` runs the other blocks of these pages where the library is not installed.
"""

from __future__ import annotations

import doctest
import importlib.util
import shutil
from pathlib import Path

import pytest

from test_docs import NEEDS, PAGES, ROOT, STEP, WRITTEN, read_values, succeed

pytestmark = [
    pytest.mark.models,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]
NEEDED = {page: set(NEEDS.findall(page.read_text("utf-8"))) for page in PAGES}
FORMATS = {"cassis", "cleanlab", "datasets", "spacy"}
"""Libraries of formats that pages show in use."""


def test_each_of_these_libraries_has_a_page_that_shows_it():
    assert set().union(*NEEDED.values()) >= FORMATS


@pytest.mark.parametrize(
    "page", [page for page, needed in NEEDED.items() if needed], ids=lambda page: page.name
)
def test_the_blocks_of_a_page_run_with_the_libraries_that_it_names(page, tmp_path, monkeypatch):
    for name in NEEDED[page]:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed: make test-models")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for language, title, body in STEP.findall(page.read_text("utf-8")):
        if title:
            compare_or_write(title, body)
        elif language == "console":
            for line in body.splitlines():
                if line.startswith("$ "):
                    succeed(line[2:], Path())
        elif language == "python":
            exec(compile(body, str(page), "exec"), names)
        elif language == "pycon":
            test = doctest.DocTestParser().get_doctest(body, names, page.name, str(page), 0)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
            assert runner.run(test, clear_globs=False).failed == 0, body
            names = test.globs


def compare_or_write(title: str, body: str) -> None:
    """Write a file that commands read, or compare one that they wrote."""
    path = Path(title.removesuffix(WRITTEN))
    if title.endswith(WRITTEN):
        assert read_values(path.name, path.read_text("utf-8")) == read_values(path.name, body), path
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body, encoding="utf-8")
