"""Papers are cited with the year of the one list of references, docs/references.md."""

from __future__ import annotations

import re

import pytest

NAME = r"[A-Z][a-z]+(?:-[A-Z][a-z]+)?"
CITED = re.compile(
    rf"\b(?P<first>{NAME})(?:,? (?P<others>et al\.)|,? (?:and|&) (?P<second>{NAME})"
    rf"|, {NAME} and (?P<third>{NAME})),? ?\(?(?P<year>(?:19|20)\d\d)\b"
)
LISTED = re.compile(r"^\* \*\*(?P<first>.*?) (?P<year>\d{4})\.\*\*", re.MULTILINE)
BEGINS = ("README.md", "CHANGELOG.md", "docs", "src", "studies", "benchmarks", "examples")


@pytest.fixture(scope="module")
def listed(root):
    """First author's name and year of every entry."""
    text = (root / "docs" / "references.md").read_text("utf-8")
    return {(found["first"].split()[0], found["year"]) for found in LISTED.finditer(text)}


def _texts(root):
    for begin in BEGINS:
        path = root / begin
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.suffix in {".md", ".py"}:
                yield file, file.read_text("utf-8")


def test_every_paper_that_is_cited_is_in_the_list_with_its_year(root, listed):
    assert len(listed) > 25
    cited, missing = 0, []
    for file, text in _texts(root):
        for found in CITED.finditer(" ".join(text.split())):
            cited += 1
            if (found["first"], found["year"]) not in listed:
                missing.append(f"{file.relative_to(root)}: {found[0]}")
    assert cited > 60
    assert missing == []


def test_a_wrong_year_is_found(listed):
    found = CITED.search("as in Simpson and Gurevych (2018)")
    assert (found["first"], found["year"]) not in listed
    assert CITED.search("Rodrigues, Pereira and Ribeiro (2013)")["first"] == "Rodrigues"
