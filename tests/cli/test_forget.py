"""`goldspan forget`: people go, labels and the bill stay; also beside a server that runs."""

from __future__ import annotations

import csv
import json

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from goldspan.cli import app
from goldspan.store import open_ledger
from goldspan.web import Auth, ServerSettings, create_app
from web.desks import as_json
from web.serving import KEYS, Clock, answer, key, open_round, serve

NAMES = ("ann@example.org", "bob")
ANN, BOB = NAMES


@pytest.fixture
def run(tmp_path):
    """Run a command on the campaign of the folder."""

    def call(name, *words, stdin=None):
        plan = [str(tmp_path / "campaign.toml")] if name != "restore" else []
        out = ["--out", str(tmp_path / "out")] if plan else []
        return CliRunner().invoke(app, [name, *plan, *words, *out], input=stdin)

    return call


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def service(tmp_path, clock, monkeypatch):
    """A campaign in which Ann and Bob have answered, flagged an item and hold another."""
    monkeypatch.setattr("goldspan.campaign.clock.wall_clock", clock)
    service = serve(tmp_path, clock=clock)
    open_round(service)
    Auth.of(service.ledger, service.inputs.key, ServerSettings(KEYS, clock=clock)).links.make(
        NAMES, 30
    )
    for who in NAMES:
        for _ in range(5):
            assert answer(service, who)
        task = service.work.next(who)["task"]["id"]
        service.work.flag(who, task, key(), f"odd, says {who}", f"I, {who}, live there")
        assert service.work.next(who)["state"] == "task"
    service.engine.look()
    service._export(service.campaign)
    yield service
    service.close()


def stored(folder):
    files = [path for path in folder.glob("campaign.sqlite*") if path.is_file()]
    return b"".join(path.read_bytes() for path in files)


def test_a_person_is_forgotten_and_the_outputs_keep_pseudonyms(run, service, tmp_path):
    out = tmp_path / "out"
    known, before = service.ledger.pseudonyms()[ANN], service.ledger.totals().spent
    service.ledger.labels_folder.mkdir(exist_ok=True)
    (service.ledger.labels_folder / "kept").write_text(f"{ANN} and {BOB} err together")
    assert ANN.encode() not in (out / "record.json").read_bytes()
    assert ANN in (out / "bill.csv").read_text()
    told = run("forget", ANN, "--dry-run")
    assert told.exit_code == 0
    assert "would be forgotten" in told.stdout
    assert str(service.ledger.labels_folder) not in told.stdout.replace("\n", "")
    assert ANN in service.ledger.pseudonyms()
    asked = run("forget", ANN, stdin="n\n")
    assert asked.exit_code == 1
    assert ANN in service.ledger.pseudonyms()
    found = json.loads(run("forget", ANN, "--yes", "--json").stdout)["people"][0]
    assert (found["pseudonym"], found["again"], found["files"]) == (known, False, [])
    assert found["kept"]["answers"] == 5
    assert found["erased"]
    assert ANN.encode() not in stored(out)
    assert ANN.encode() not in b"".join(p.read_bytes() for p in out.rglob("*") if p.is_file())
    with (out / "bill.csv").open(newline="") as file:
        rows = {row[0]: row for row in csv.reader(file)}
    assert known in rows
    assert BOB in rows
    assert service.ledger.totals().spent == before
    again = run("forget", ANN, "--yes")
    assert "was forgotten before" in again.stdout
    with open_ledger(out / "campaign.sqlite") as ledger:
        assert ledger.verify() == ledger.n_events


def test_all_about_a_person_is_shown_and_unknown_ones_are_refused(run, service):
    found = json.loads(run("forget", ANN, "--show").stdout)
    assert (found["id"], len(found["answers"]), len(found["held"])) == (ANN, 5, 1)
    assert f"I, {ANN}, live there" in [row["body"].get("note") for row in found["notes"]]
    assert BOB not in json.dumps(found)
    before = service.ledger.n_events
    refused = run("forget", "carol", "--yes")
    assert refused.exit_code == 1
    assert "nobody is known" in str(refused.exception)
    assert run("forget").exit_code == 2
    assert run("forget", ANN, "--expired").exit_code == 2
    assert service.ledger.n_events == before


def test_a_running_server_ends_the_session_and_forgets(run, service, clock):
    settings = ServerSettings(KEYS, clock=clock)
    auth = Auth.of(service.ledger, service.inputs.key, settings)
    ((_, old),) = auth.links.make([ANN], 30)
    url = "http://127.0.0.1:8080"
    browser = TestClient(create_app(service, settings), base_url=url, follow_redirects=False)
    assert browser.get(f"/w/{old}").status_code == 303
    assert browser.get("/api/work/me").json()["done"] == 5
    assert run("forget", ANN, "--yes").exit_code == 0
    clock.pass_seconds(2)  # what every request asks for is a second old at most
    service.people._looked -= 2
    assert browser.get("/api/work/me").status_code == 401
    assert browser.get(f"/w/{old}").status_code == 403
    service.engine.look_again()
    service.engine.look()
    assert ANN not in service.people.all()
    assert ANN not in {row["worker"] for row in as_json(service.desk.workers())}
    assert ANN not in service.engine.live.crowd.worker_ids.to_pylist()
    # By a new link they are a new person.
    ((_, new),) = auth.links.make([ANN], 30)
    assert browser.get(f"/w/{new}").status_code == 303
    assert browser.get("/api/work/me").json()["done"] == 0
    assert answer(service, ANN)
    assert len(service.ledger.standing()) == 3


def test_downloads_and_reports_have_the_stores_pseudonyms_unless_names_are_asked_for(
    service, tmp_path
):
    known = service.ledger.pseudonyms()
    record = json.loads(service.desk.export("record.json").content)
    assert set(record["workers"]) == set(known.values())
    named = json.loads(service.desk.export("record.json", names=True).content)
    assert set(named["workers"]) == set(known)
    words = ["report", str(tmp_path / "out"), "--json"]
    assert set(json.loads(CliRunner().invoke(app, words).stdout)["workers"]) == set(known.values())
    shown = json.loads(CliRunner().invoke(app, [*words, "--names"]).stdout)
    assert set(shown["workers"]) == set(known)


def test_people_are_kept_as_long_as_the_plan_says(run, service, clock, tmp_path):
    refused = run("forget", "--expired", "--yes")
    assert refused.exit_code == 1
    assert "[privacy]" in str(refused.exception)
    plan = tmp_path / "campaign.toml"
    plan.write_text(plan.read_text() + "\n[privacy]\nkeep_days = 30\n")
    assert "nobody is to be forgotten yet" in run("forget", "--expired", "--yes").stdout
    service.desk.stop()
    service.campaign.run()
    clock.pass_seconds(29 * 86_400)
    assert "nobody is to be forgotten yet" in run("forget", "--expired", "--yes").stdout
    assert set(service.ledger.pseudonyms()) == set(NAMES)
    clock.pass_seconds(86_401)
    assert run("forget", "--expired", "--yes").exit_code == 0
    assert service.ledger.pseudonyms() == {}
    assert len(service.ledger.crowd().latest) == 10


def test_a_backup_that_takes_the_place_of_the_store_is_opened_without_them(run, service, tmp_path):
    out = tmp_path / "out"
    copied = CliRunner().invoke(app, ["backup", str(out), str(tmp_path / "old.sqlite")])
    assert copied.exit_code == 0
    assert run("forget", ANN, "--yes").exit_code == 0
    service.close()
    again = run("restore", str(tmp_path / "old.sqlite"), str(tmp_path / "again"), "--forgotten",
                str(out / "campaign.sqlite.forgotten"))  # fmt: skip
    assert "forgotten in it: 1" in again.stdout
    assert ANN.encode() not in stored(tmp_path / "again")
    for path in out.glob("campaign.sqlite*"):
        if path.suffix != ".forgotten":
            path.unlink()
    (tmp_path / "old.sqlite").rename(out / "campaign.sqlite")  # by hand, without `restore`
    assert run("forget", BOB, "--dry-run").exit_code == 0
    assert ANN.encode() not in stored(out)
