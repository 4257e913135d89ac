"""`goldspan desk`: seen and decided on the store, with no server running."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from goldspan.cli import app
from goldspan.web import load_keys, open_service
from web.desks import as_json
from web.serving import answer, open_round, plan_file


@pytest.fixture(scope="module", params=[False, True], ids=["single", "spans"])
def store(request, tmp_path_factory):
    """A folder with a campaign that three people have answered."""
    folder = tmp_path_factory.mktemp("store")
    plan_file(folder, spans=request.param)
    with _closing(folder) as service:
        open_round(service)
        for _ in range(5):
            for worker in ("ann", "bob", "cat"):
                answer(service, worker)
    return folder


def _closing(folder):
    from contextlib import closing

    return closing(
        open_service(folder / "campaign.toml", folder / "out", load_keys(folder / "out"))
    )


@pytest.fixture
def run(store):
    def call(command, *words, code=0):
        where = ["--out", str(store / "out")]
        plan = str(store / "campaign.toml")
        found = CliRunner().invoke(app, ["desk", command, plan, *words, *where])
        assert found.exit_code == code, found.output
        return found.stdout

    return call


@pytest.mark.parametrize(
    ("command", "says"),
    [("overview", "answers: 15, "), ("workers", "ann"), ("agreement", "alpha"),
     ("uncertain", "certain"), ("items", "control"), ("export", "bill.csv")],
)  # fmt: skip
def test_what_is_seen_at_the_desk_is_said(run, command, says):
    assert says in run(command)
    json.loads(run(command, "--json"))


def test_the_overview_is_that_of_the_server(run, store):
    told = json.loads(run("overview", "--json"))
    with _closing(store) as service:
        service.engine.look()
        shown = json.loads(json.dumps(as_json(service.desk.overview())))
    assert told["items"]["answered"] > 0
    for one in (told, shown):
        del one["version"], one["hours"]
    assert told == shown


def test_no_campaign_is_made_by_a_mistyped_place(store, tmp_path):
    for where in ([], ["--store", str(tmp_path / "gone.sqlite")]):
        words = ["overview", str(store / "campaign.toml"), "--out", str(tmp_path / "none"), *where]
        found = CliRunner().invoke(app, ["desk", *words])
        assert found.exit_code != 0
        said = [str(found.exception), *getattr(found.exception, "__notes__", [])]
        assert any("start `goldspan serve" in text for text in said)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_texts_is_told_as_such(tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("It rains in Rome.\n")
    found = CliRunner().invoke(app, ["desk", "overview", str(texts), "--out", str(tmp_path)])
    assert f"{texts} is not a plan. To label its texts, write one" in str(found.exception)


def test_labels_that_went_from_a_campaign_are_refused_with_what_a_command_can_do(store, tmp_path):
    words = (store / "campaign.toml").read_text()
    for name in ("pool.jsonl", "truth.csv", "gold.conll"):
        if (store / name).exists():
            text = (store / name).read_text()
            (tmp_path / name).write_text(text.replace("sun", "snow").replace("LOC", "PER"))
    more = words.replace('"sun"]', '"snow"]').replace('["LOC"]', '["PER"]')
    assert more != words
    (tmp_path / "campaign.toml").write_text(more)
    place = ["--out", str(store / "out")]
    found = CliRunner().invoke(app, ["desk", "overview", str(tmp_path / "campaign.toml"), *place])
    assert found.exit_code != 0
    assert "put them back" in str(found.exception)
    assert "--out or --store" in str(found.exception)


def test_an_item_is_shown_with_its_answers_and_decided(run):
    one = json.loads(run("uncertain", "--limit", "1", "--json"))[0]
    words = run("item", one["item"])
    assert one["text"] in words
    assert "the answers say: " in words
    found = one["found"]
    say = ["--label", found["label"]] if "label" in found else ["--span", "0:1:LOC"]
    assert "is gold" in run("gold", one["item"], *say)
    assert "gold: " in run("item", one["item"])
    assert run("gold", one["item"], "--undo") == f"{one['item']} is not gold any more\n"
    assert "gold: " not in run("item", one["item"])
    run("gold", one["item"], "--undo", code=1)
    run("gold", one["item"], *say)


def test_a_worker_is_judged(run):
    assert run("judge", "cat", "drop", "--reason", "guesses") == "cat gets no more tasks\n"
    cat = next(row for row in json.loads(run("workers", "--json")) if row["worker"] == "cat")
    assert (cat["barred"], cat["decided"]) == (True, "drop")
    assert run("judge", "cat", "keep") == "cat is kept, whatever the rules decide\n"


def test_a_campaign_is_paused_and_resumed(run):
    assert run("pause") == "paused\n"
    assert json.loads(run("overview", "--json"))["state"] == "paused"
    assert run("resume") == "going on\n"


def test_a_stop_is_asked_about_first(run):
    run("stop", code=1)
    assert json.loads(run("overview", "--json"))["state"] == "waiting"


def test_a_file_is_written_with_pseudonyms(run, tmp_path):
    path = tmp_path / "record.json"
    assert run("export", "record.json", "-o", str(path)) == f"written: {path}\n"
    assert all(name.startswith("p-") for name in json.loads(path.read_text())["workers"])


def test_a_dash_writes_the_file_to_standard_output(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert json.loads(run("export", "record.json", "-o", "-"))["workers"]
    assert not list(tmp_path.iterdir())
    run("export", "record.json", "-o", "-", "--json", code=2)


@pytest.mark.parametrize(
    "words", [[], ["--label", "x", "--nothing"], ["--label", "x", "--undo"], ["--span", "0:PER"]]
)
def test_gold_is_one_of_four(run, words):
    run("gold", "d1", *words, code=2)
