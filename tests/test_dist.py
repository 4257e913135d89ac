"""What is in the wheel and in the sdist of `make dist`, and what their metadata say."""

from __future__ import annotations

import os
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import Metadata

from goldspan import __version__
from goldspan.cli.init import EXAMPLE

pytestmark = [
    pytest.mark.wheel,
    pytest.mark.skipif("GOLDSPAN_DIST" not in os.environ, reason="`make dist` runs it"),
]
ROOT = Path(__file__).resolve().parents[1]
DIST = Path(os.environ.get("GOLDSPAN_DIST", "none"))
WHEEL, SDIST = (DIST / f"goldspan-{__version__}{end}" for end in ("-py3-none-any.whl", ".tar.gz"))
INFO = f"goldspan-{__version__}.dist-info"
UNWANTED = ("__pycache__", ".pyc", ".nbi", ".nbc", "/tests/", ".ipynb", ".sqlite", ".key", ".orig")
"""What no built file holds."""


def in_wheel() -> dict[str, bytes]:
    with zipfile.ZipFile(WHEEL) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def in_sdist() -> dict[str, bytes]:
    with tarfile.open(SDIST) as archive:
        files = [one for one in archive.getmembers() if one.isfile()]
        return {one.name.partition("/")[2]: archive.extractfile(one).read() for one in files}


def in_source() -> dict[str, bytes]:
    """Return the files of the package that are in the repository."""
    files = [one for one in (ROOT / "src").rglob("*") if one.is_file()]
    return {
        str(one.relative_to(ROOT / "src")): one.read_bytes()
        for one in files
        if "__pycache__" not in one.parts and not one.name.startswith(".")
    }


def test_there_is_one_wheel_for_all_and_one_sdist():
    assert sorted(one.name for one in DIST.iterdir()) == sorted([WHEEL.name, SDIST.name])


def test_the_wheel_is_the_package_with_its_example_and_nothing_else():
    there = in_wheel()
    own = {name: body for name, body in there.items() if not name.startswith(f"{INFO}/")}
    example = {f"goldspan/example/{name}": (ROOT / "examples" / name) for name in EXAMPLE}
    assert own == {**in_source(), **{name: path.read_bytes() for name, path in example.items()}}
    for kind in ("web/templates/", "web/static/", "report/templates/", "py.typed"):
        assert any(name.startswith(f"goldspan/{kind}") for name in own), kind


def test_the_sdist_has_what_the_wheel_is_made_of():
    there = in_sdist()
    for name, body in in_source().items():
        assert there[f"src/{name}"] == body
    for name in EXAMPLE:
        assert f"examples/{name}" in there
    tops = {name.partition("/")[0] for name in there}
    assert tops == {
        "src", "examples", "pyproject.toml", "constraints.txt", "README.md", "LICENSE",
        "CHANGELOG.md", "PKG-INFO", ".gitignore",
    }  # fmt: skip


@pytest.mark.parametrize("read", [in_wheel, in_sdist])
def test_nothing_that_was_left_over_is_in_it(read):
    found = [name for name in read() if any(one in f"/{name}" for one in UNWANTED)]
    assert found == []


@pytest.mark.parametrize(
    ("read", "file"),
    [(in_wheel, f"{INFO}/METADATA"), (in_sdist, "PKG-INFO")],
    ids=["wheel", "sdist"],
)
def test_the_metadata_say_what_the_project_says(read, file):
    found = Metadata.from_email(read()[file])  # rejects what is malformed
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert (found.name, str(found.version)) == ("goldspan", __version__)
    assert found.summary == project["description"]
    assert str(found.requires_python) == project["requires-python"]
    assert set(found.provides_extra) == set(project["optional-dependencies"])
    assert found.license_expression == project["license"]
    assert found.license_files == project["license-files"]
    assert found.description_content_type == "text/markdown"
    assert found.description.startswith("# goldspan")
    core = {str(one.name) for one in found.requires_dist if one.marker is None}
    assert len(core) == len(project["dependencies"])


def test_the_page_on_the_index_links_to_no_file_of_the_repository():
    """A relative link leads nowhere there."""
    import re

    text = Metadata.from_email(in_wheel()[f"{INFO}/METADATA"]).description
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert links
    assert [link for link in links if not link.startswith(("https://", "#"))] == []


def test_the_command_is_there():
    words = in_wheel()[f"{INFO}/entry_points.txt"].decode()
    assert "goldspan = goldspan.cli:main" in words
