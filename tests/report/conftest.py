"""Crowds, results and a reader of HTML for the tests of the report."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

import goldspan
from goldspan.crowd import CrowdBuilder

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """An HTML page: its elements, its visible text, and what is wrong with its tags."""

    def __init__(self, html):
        super().__init__()
        self.faults, self.open, self.elements, self.words, self.cells = [], [], [], [], []
        self.feed(html)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.cells.append([])
        if tag in {"td", "th"}:
            self.cells[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            self.faults.append(f"</{tag}> closes {self.open[-1:]} at {self.getpos()}")
            return
        self.open.pop()
        self.words.append(" ")

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.words.append(data)
        if {"td", "th"} & set(self.open):
            self.cells[-1][-1] += data

    @property
    def text(self):
        return " ".join("".join(self.words).split())

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]

    def row(self, head):
        """Return the cells of the row whose first cell starts with some words."""
        return next(cells for cells in self.cells if cells and cells[0].strip().startswith(head))


@pytest.fixture(scope="session")
def page():
    return Page


@pytest.fixture(scope="session")
def crowd(root):
    return goldspan.read_crowd(root / "examples" / "crowd.tsv", format="wide")


@pytest.fixture(scope="session")
def consensus(crowd):
    return goldspan.aggregate(crowd, "mv-token")


@pytest.fixture(scope="session")
def model(crowd):
    return goldspan.aggregate(crowd, "bsc-seq")


@pytest.fixture(scope="session")
def agreement(crowd):
    return goldspan.agreement(crowd)


@pytest.fixture(scope="session")
def score(crowd, consensus):
    return goldspan.score(crowd, consensus)


@pytest.fixture
def labels():
    """Single labels of four workers; q3 has no answer, dan gave none."""
    builder = CrowdBuilder()
    votes = {"q1": "xxx", "q2": "xxy", "q3": ""}
    for name, given in votes.items():
        item = builder.add_item(name, [name])
        for worker, label in zip(("ann", "bob", "cem"), given, strict=False):
            builder.add_answer(item, worker, [label])
    builder.add_worker("dan")
    return builder.build(single=True)


def build(items, *, gold=None):
    """Make a crowd of {item: (tokens, {worker: tags})}."""
    builder = CrowdBuilder()
    for name, (tokens, answers) in items.items():
        item = builder.add_item(name, tokens, gold=None if gold is None else gold[name])
        for worker, tags in answers.items():
            builder.add_answer(item, worker, tags)
    return builder.build()


@pytest.fixture(scope="session", name="build")
def _build():
    return build
