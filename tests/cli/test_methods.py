"""`goldspan methods`: every method with its parameters, as the library has them."""

from __future__ import annotations

import json

import pytest

import goldspan
from cli.test_cli import done, refused
from goldspan.aggregation import get_aggregator


def found(*words):
    return json.loads(done("methods", *words, "--json"))["methods"]


def test_all_methods_are_listed_with_what_they_do_and_how_they_are_called():
    every = found()
    names = {one["name"] for one in every}
    assert set(goldspan.aggregation.methods()) <= names
    assert {"mnlp", "clear_majority", "flip", "hmm"} <= names
    assert all(one["summary"] and one["name"] in one["use"] for one in every)
    text = done("methods")
    assert "\n  bsc-seq  " in text
    assert "\n  bsc-…+crf  " in text
    assert "bsc-seq+crf" not in text


@pytest.mark.parametrize("name", ["ds", "mv-token", "bsc-seq+crf", "glad", "multicrf"])
def test_the_parameters_are_those_of_the_method_with_their_defaults(name):
    (one,) = found(name)
    params = get_aggregator(name).get_params()
    shown = {each["name"]: each["default"] for each in one["parameters"]}
    assert shown == json.loads(json.dumps(params, default=str))


def test_a_parameter_is_told_with_its_bounds_and_meaning():
    text = done("methods", "dawid-skene")
    assert text.startswith("ds, a method of aggregation: ")
    assert "\nmax_iter = " in text
    assert "\n    Allowed: a whole number of at least 1.\n" in text


def test_what_must_be_given_is_marked():
    assert "p (required)" in done("methods", "misses")
    assert "It has no parameters." in done("methods", "perfect")


def test_a_name_of_two_families_shows_both():
    assert [one["kind"] for one in found("mace")] == ["method of aggregation", "simulated worker"]


@pytest.mark.parametrize("name", sorted({one["name"] for one in found()}))
def test_every_method_can_be_looked_up_and_its_parameters_are_explained(name):
    every = found(name)
    assert every
    assert all(one["help"] for each in every for one in each["parameters"])


def test_an_unknown_name_is_refused_with_the_nearest():
    assert "did you mean 'entropy'" in refused("methods", "entropi")
