"""`goldspan payments`: requests are written, shown and sent, and repeating one changes nothing."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from cli.test_invite import write_plan
from goldspan.campaign import read_inputs, read_plan
from goldspan.campaign.clock import wall_clock
from goldspan.cli import app
from goldspan.web import load_keys, open_service
from goldspan.web.opening import open_store
from web.providers.fake_prolific import STUDY, FakeProlific, ident
from web.serving import Clock

ANN, BOB = ident(1), ident(2)
WORK = ident(101)


@pytest.fixture
def fake(monkeypatch):
    made = FakeProlific(Clock())
    monkeypatch.setenv("GOLDSPAN_PROLIFIC_TOKEN", "t")
    place = "goldspan.web.providers.prolific.Api"
    monkeypatch.setattr(place, lambda _: made.api())
    return made


@pytest.fixture
def run(tmp_path, fake):
    plan = write_plan(tmp_path)
    options = f'study = "{STUDY}"\ncode = "DONE1"\n'
    plan.write_text(
        f'{plan.read_text()}[provider]\nname = "prolific"\n[provider.options]\n{options}'
    )
    fake.add(ANN, WORK, "AWAITING REVIEW")
    service = open_service(plan, tmp_path / "out", load_keys(tmp_path / "out"))
    service.ledger.record("submission", WORK, {"worker": ANN}, service.clock())
    service.close()

    def call(*words):
        out = ["--out", str(tmp_path / "out")]
        return CliRunner().invoke(app, ["payments", str(plan), *out, *words])

    return call


def opened(folder):
    """Return the store of the campaign."""
    inputs = read_inputs(read_plan(folder / "campaign.toml"), folder)
    return open_store(inputs, folder / "out", None, wall_clock())


def test_letters_are_written_once_sent_once_and_shown(run, fake):
    assert run().stdout == "no payment requests\n"
    words = ("--approve", "all", "--bonus", f"{ANN}=1.5", "--reason", "week 1")
    for _ in range(2):
        assert len(json.loads(run(*words, "--json").stdout)["letters"]) == 2
    assert run("--send").stdout == "done: 2\n"
    assert run("--send").stdout == "done: 0\n"
    assert fake.cents_of(WORK) == [150]
    assert fake.submissions[WORK]["status"] == "APPROVED"
    shown = run("--list").stdout.splitlines()
    assert [line.split()[:2] for line in shown[1:]] == [["sent", "approve"], ["sent", "bonus"]]


def test_a_reason_pays_a_worker_once_who_came_with_two_submissions(run, fake, tmp_path):
    words = ("--bonus", f"{ANN}=1.5", "--reason", "week 1")
    run(*words)
    fake.add(ANN, ident(102))
    with opened(tmp_path) as ledger:
        ledger.record("submission", ident(102), {"worker": ANN}, wall_clock())
    assert len(json.loads(run(*words, "--json").stdout)["letters"]) == 1
    run("--send")
    assert fake.cents_of(WORK) == [150]
    assert fake.cents_of(ident(102)) == []
    with opened(tmp_path) as ledger:
        assert ledger.totals().spent == 1_500_000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--bonus", f"{BOB}=1", "--reason", "x"), "did not come from Prolific"),
        (("--bonus", f"{ANN}=1"), "--reason"),
        (("--bonus", f"{ANN}=-1", "--reason", "x"), "must lie in"),
        (("--reject", ANN, "--reason", "bad"), "100 characters"),
        (("--reject", ANN, "--reason", "x" * 100, "--category", "UGLY"), "LOW_EFFORT"),
        (("--retry", "none"), "no request"),
    ],
)
def test_what_cannot_be_written_is_refused_with_the_reason(run, words, message):
    result = run(*words)
    assert result.exit_code != 0
    assert message in f"{result.output} {result.exception}"
    assert run().stdout == "no payment requests\n"


def test_nothing_is_earned_beyond_the_reward_before_there_are_answers(run):
    assert json.loads(run("--earned", "--json").stdout)["written"] == []


@pytest.mark.usefixtures("run")
def test_a_plan_with_a_faulty_provider_is_refused_by_its_check(tmp_path):
    plan = tmp_path / "campaign.toml"
    assert CliRunner().invoke(app, ["plan", "check", str(plan)]).exit_code == 0
    plan.write_text(plan.read_text().replace('code = "DONE1"', "code = 1"))
    result = CliRunner().invoke(app, ["plan", "check", str(plan)])
    assert "provider.options.code" in str(result.exception)
