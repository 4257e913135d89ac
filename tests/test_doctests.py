"""Every example in a docstring runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import goldspan
import studies

MODULES = [
    module.name
    for package in (goldspan, studies)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if "__main__" not in module.name
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name):
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.failed == 0


def test_the_public_functions_have_examples():
    finder = doctest.DocTestFinder(recurse=False)
    for name in ("aggregate", "agreement", "read_crowd", "score"):
        if name == "aggregate":
            value = importlib.import_module("goldspan.aggregation").aggregate
        else:
            value = getattr(goldspan, name)
        assert any(test.examples for test in finder.find(value, name, globs={})), name
