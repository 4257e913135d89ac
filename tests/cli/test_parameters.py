"""Parameters of methods on the command line: read, refused where twice or of other methods."""

from __future__ import annotations

import pytest
import typer

from cli.test_cli import EXAMPLE, goldspan_run
from goldspan.cli.answers import method_params
from goldspan.errors import InputError, UnknownNameError


def params_of(method, *param, ties=None, raw=False, seed=None):
    return method_params(method, list(param), ties=ties, raw=raw, seed=seed)


def test_parameters_are_numbers_words_and_strings():
    words = ["tol=1e-3", "max_iter=20", "a=TRUE", "b=none", "c=x=y"]
    wanted = {"tol": 1e-3, "max_iter": 20, "a": True, "b": None, "c": "x=y"}
    assert params_of("bsc-seq", *words) == wanted


def test_options_of_their_own_are_parameters_too():
    found = params_of("mv-token", ties="inside", raw=True, seed=0)
    assert found == {"ties": "inside", "legal": False, "random_state": 0}


@pytest.mark.parametrize(
    ("param", "own", "message"),
    [
        (["tol=1", "tol=2"], {}, "tol is given twice, '1' and '2'"),
        (["random_state=1"], {"seed": 2}, "--seed and --param random_state"),
        (["ties=first"], {"ties": "first"}, "--ties and --param ties"),
        (["legal=true"], {"raw": True}, "--raw and --param legal"),
    ],
)
def test_a_parameter_given_twice_is_refused(param, own, message):
    with pytest.raises(typer.BadParameter, match=message):
        params_of("mv-token", *param, **own)


@pytest.mark.parametrize(("own", "option"), [({"raw": True}, "--raw"), ({"ties": "x"}, "--ties")])
def test_options_of_votes_are_refused_elsewhere_in_the_words_of_the_user(own, option):
    with pytest.raises(InputError, match=f"{option} is for votes such as mv-token, not for ds"):
        params_of("ds", **own)


def test_an_unknown_method_is_named_first():
    with pytest.raises(UnknownNameError, match="mv-token"):
        params_of("mv-tokn", raw=True)


@pytest.mark.parametrize("option", ["--tagger", "--report", "--workers-table", "--checkpoint"])
def test_only_labels_go_to_standard_output(tmp_path, option):
    run = goldspan_run("aggregate", EXAMPLE, "-m", "crf-ma", option, "-", cwd=tmp_path)
    assert run.returncode == 2
    assert f"{option} cannot be standard output" in run.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words", [["-m", "bsc-seq+crf", "--param", "rounds=1"], ["-m", "ds", "--param", "max_iter=2"]]
)
def test_rounds_that_are_used_up_are_no_convergence(words):
    run = goldspan_run("aggregate", EXAMPLE, *words)
    assert run.returncode == 0
    assert "not converged: most rounds reached after" in run.stdout
