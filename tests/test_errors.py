"""Errors name parameters by a field, so that each caller says them in its own words."""

from __future__ import annotations

import pickle

import pytest

from goldspan.errors import Fault, FormatError, InputError, UnknownNameError

HINT = InputError("not UTF-8: name its encoding", hint="text_encoding")


def test_an_error_names_its_parameter_and_the_command_line_its_option():
    about = InputError("must be below 1, not 2", parameter="alpha")
    assert str(about) == about.worded({}) == "alpha must be below 1, not 2"
    assert about.worded({"alpha": "--alpha"}) == "--alpha must be below 1, not 2"
    assert str(HINT) == "not UTF-8: name its encoding (see text_encoding)"
    assert HINT.worded({"text_encoding": "-e"}) == "not UTF-8: name its encoding (see -e)"
    assert HINT.worded({}) == HINT.message == "not UTF-8: name its encoding"


@pytest.mark.parametrize("error", [HINT, FormatError([Fault("bad", "a.csv", 3)], hint="cut")])
def test_the_fields_survive_a_trip_between_processes(error):
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert (again.message, again.hint) == (error.message, error.hint)


@pytest.mark.parametrize(
    "error",
    [
        InputError("must be below 1", parameter="alpha"),
        UnknownNameError("policy", "perl", ["conlleval"], "see the docs"),
        FormatError([Fault("bad", "a.csv", 3)], hint="cut"),
    ],
)
def test_what_an_error_is_about_is_a_field_that_comes_first(error):
    before = str(error)
    error.where = "truth"
    assert str(error) == f"truth: {before}"
    assert error.worded({"alpha": "--alpha"}).startswith("truth: ")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), type(again)) == (str(error), type(error))


def test_an_encoding_that_must_be_named_is_asked_for_by_its_option(tmp_path, capsys, monkeypatch):
    from goldspan.cli import main

    path = tmp_path / "a.csv"
    path.write_bytes(b"task,worker,label\n1,ann,\x81\n")
    monkeypatch.setattr("sys.argv", ["goldspan", "next", str(path)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    assert "name its encoding (see --text-encoding)" in capsys.readouterr().err
