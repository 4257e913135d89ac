"""`goldspan invite`: made, shown and revoked on the store, with no server running."""

from __future__ import annotations

import json
import re
from email import message_from_string
from email.policy import default

import pytest
from typer.testing import CliRunner

from campaign.tiny import plan_of, toml, write_files
from goldspan.cli import app
from goldspan.web import Auth, ServerSettings, load_keys, open_service
from goldspan.web.errors import Refused

WEB = {"source": "web", "truth": None, "workers": None}


def write_plan(folder):
    """Write a plan for workers in browsers, and give its path."""
    write_files(folder)
    made = plan_of({"crowd": WEB})
    made["crowd"] = {"source": "web"}
    path = folder / "campaign.toml"
    path.write_text(toml(made))
    return path


@pytest.fixture
def run(tmp_path):
    plan = write_plan(tmp_path)
    open_service(plan, tmp_path / "out", load_keys(tmp_path / "out")).close()

    def call(*words):
        out = ["--out", str(tmp_path / "out")]
        return CliRunner().invoke(app, ["invite", str(plan), *out, *words])

    return call


@pytest.fixture
def auth(tmp_path):
    """Give the auth of a server over the same store."""
    keys = load_keys(tmp_path / "out")
    service = open_service(tmp_path / "campaign.toml", tmp_path / "out", keys)
    yield Auth.of(service.ledger, service.inputs.key, ServerSettings(keys))
    service.close()


def test_links_are_made_shown_and_revoked(run, auth):
    made = json.loads(run("--workers", 'ann,"Lee, Bob"', "--days", "2", "--json").stdout)["made"]
    assert [one["worker"] for one in made] == ["ann", "Lee, Bob"]
    tokens = [one["url"].removeprefix("http://127.0.0.1:8080/w/") for one in made]
    links = [auth.links.read(token) for token in tokens]
    assert [link.worker for link in links] == ["ann", "Lee, Bob"]
    assert links[0].expires - links[0].issued == 2 * 86_400_000

    assert run("--revoke", made[0]["id"]).stdout == f"{made[0]['id']} is revoked\n"
    with pytest.raises(Refused, match="was revoked"):
        auth.links._notes.now("link-revoked")
        auth.links.read(tokens[0])
    assert auth.links.read(tokens[1])

    shown = run("--list").stdout
    assert [line.split()[0] for line in shown.splitlines()] == ["worker", "ann", "Lee,"]
    assert "revoked" in shown.splitlines()[1]
    assert not any(token in shown for token in tokens)


def test_links_lead_to_where_the_server_is(run, auth):
    assert "\thttp://127.0.0.1:8080/w/" in run("--workers", "ann").stdout
    auth.links.move("https://labels.example.org")
    assert "\thttps://labels.example.org/w/" in run("--workers", "ann").stdout
    other = run("--workers", "ann", "--public-url", "https://b.example.org").stdout
    assert "\thttps://b.example.org/w/" in other


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "give --workers, --revoke or --list"),
        (["--workers", "ann,ann"], "appears twice"),
        (["--workers", "ann", "--days", "0"], "up to 366 days"),
        (["--workers", "ann", "--public-url", "labels"], "not the address of a server"),
        (["--revoke", "x"], "no link 'x'"),
    ],
)
def test_what_makes_no_sense_is_refused(run, words, told):
    result = run(*words)
    assert result.exit_code != 0
    assert told in result.output + str(result.exception)


@pytest.mark.parametrize(
    "words", [["--workers", "ann"], ["--list"], ["--workers", "ann", "--mail", "m"]]
)
def test_no_campaign_is_made_by_a_mistyped_place(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    plan = write_plan(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for where in (["--out", "nowhere"], ["--out", "x", "--store", "sqlite:///gone.sqlite"]):
        result = CliRunner().invoke(app, ["invite", str(plan), *words, *where])
        assert result.exit_code != 0
        told = [str(result.exception), *getattr(result.exception, "__notes__", ())]
        assert f"start `goldspan serve {plan}` first" in "\n".join(told)
        assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_without_the_servers_secret_makes_no_links_by_another(run, tmp_path):
    store = tmp_path / "out" / "campaign.sqlite"
    result = run("--workers", "ann", "--out", str(tmp_path), "--store", str(store))
    assert result.exit_code != 0
    assert "holds no server.key" in str(result.exception)
    assert not (tmp_path / "server.key").exists()


def test_a_message_per_worker_is_written_with_a_link_that_holds(run, auth, tmp_path):
    team, folder = tmp_path / "team.csv", tmp_path / "letters"
    team.write_text("ann,ann@example.org\nbob,bob@example.org\n")
    shown = run("--addresses", str(team), "--mail", str(folder)).stdout
    assert "/w/" not in shown
    texts = [path.read_bytes().decode() for path in sorted(folder.iterdir())]
    assert "To: ann@example.org" in texts[0]
    mails = [message_from_string(text, policy=default).get_content() for text in texts]
    tokens = [re.search(r"/w/(\S+)", mail)[1] for mail in mails]
    assert [auth.links.read(token).worker for token in tokens] == ["ann", "bob"]


def test_no_link_is_made_where_no_message_can_be_written(run, auth, tmp_path):
    (tmp_path / "file").write_text("")
    result = run("--workers", "ann", "--mail", str(tmp_path / "file" / "letters"))
    assert result.exit_code != 0
    assert auth.links.all() == []


def test_reviewers_have_links_of_their_own(run, auth):
    (made,) = json.loads(run("--reviewers", "rita", "--days", "2", "--json").stdout)["reviewers"]
    token = made["url"].removeprefix("http://127.0.0.1:8080/r/")
    assert auth.reviewers.read(token).scopes == ("review",)
    listed = json.loads(run("--list", "--json").stdout)["reviewers"]
    assert listed == [{name: value for name, value in made.items() if name != "url"}]
    assert "rita" in run("--list").stdout
    assert run("--revoke", made["id"]).stdout == f"{made['id']} is revoked\n"
    assert run("--reviewers", "rita").stdout.startswith("rita\thttp")
