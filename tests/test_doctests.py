"""Every example in a docstring runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import goldspan
import studies

PARTS = [
    module.name
    for package in (goldspan, studies)
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    if "__main__" not in module.name
]


def modules(part: str) -> Iterator[str]:
    """A module, or a package with all that is in it."""
    yield part
    path = getattr(importlib.import_module(part), "__path__", [])
    for module in pkgutil.walk_packages(path, f"{part}."):
        if "__main__" not in module.name:
            yield module.name


@pytest.mark.parametrize("part", PARTS)
def test_the_examples_of_a_part_run(part):
    failed = [
        name
        for name in modules(part)
        if doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).failed
    ]
    assert failed == []  # the examples themselves are in what was printed


def test_the_public_functions_have_examples():
    finder = doctest.DocTestFinder(recurse=False)
    for name in ("aggregate", "agreement", "read_crowd", "score"):
        if name == "aggregate":
            value = importlib.import_module("goldspan.aggregation").aggregate
        else:
            value = getattr(goldspan, name)
        assert any(test.examples for test in finder.find(value, name, globs={})), name
