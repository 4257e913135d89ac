"""`goldspan tokens`: made, listed and revoked on the store, with no server running."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from cli.test_invite import auth, write_plan  # noqa: F401 - a fixture
from goldspan.cli import app
from goldspan.web import load_keys, open_service
from goldspan.web.errors import Refused


@pytest.fixture
def run(tmp_path):
    plan = write_plan(tmp_path)
    open_service(plan, tmp_path / "out", load_keys(tmp_path / "out")).close()

    def call(command, *words, place=plan):
        out = ["--out", str(tmp_path / "out")]
        return CliRunner().invoke(app, ["tokens", command, str(place), *words, *out])

    return call


def test_a_token_is_made_shown_once_listed_and_revoked(run, auth):  # noqa: F811
    done = run("add", "export", "--scopes", "results,progress", "--days", "7", "--json")
    made = json.loads(done.stdout)
    assert auth.tokens.read(made["token"]).scopes == ("progress", "results")
    (row,) = json.loads(run("list", "--json").stdout)["tokens"]
    assert row == {k: v for k, v in made.items() if k != "token"} | {"holds": True}
    words = run("list").stdout
    assert "export" in words
    assert made["token"] not in words
    assert run("revoke", made["id"]).stdout == f"{made['id']} is revoked\n"
    assert run("revoke", made["id"], "--json").exit_code == 0
    auth.tokens._notes.now("api-token-revoked")
    with pytest.raises(Refused):
        auth.tokens.read(made["token"])
    assert "revoked" in run("list").stdout


def test_without_json_the_token_is_in_a_line_of_its_own(run, auth):  # noqa: F811
    said = run("add", "dashboard", "--scopes", "progress").stdout.splitlines()
    assert said[0].startswith(said[-1].split("_")[1])
    assert auth.tokens.read(said[-1].strip()).name == "dashboard"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["export", "--scopes", "all"], "unknown scope 'all': choose from progress, results"),
        (["export", "--scopes", "progress", "--days", "0"], "valid for up to 366 days"),
        ([" ", "--scopes", "progress"], "a name must have"),
        (["export"], "Missing option '--scopes'"),
    ],
)
def test_a_token_that_cannot_be_is_not_made(run, words, told):
    done = run("add", *words)
    assert done.exit_code != 0
    assert told in done.output + str(done.exception)
    assert json.loads(run("list", "--json").stdout) == {"tokens": []}


def test_a_token_that_is_not_there_is_not_revoked(run):
    done = run("revoke", "nothing")
    assert "There is no token 'nothing'" in str(done.exception)


def test_a_campaign_that_was_not_served_has_no_tokens(tmp_path):
    write_plan(tmp_path)
    done = CliRunner().invoke(
        app, ["tokens", "list", str(tmp_path / "campaign.toml"), "--out", str(tmp_path / "no")]
    )
    assert "start `goldspan serve" in str(done.exception)
