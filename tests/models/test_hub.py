"""Data sets on the Hub: a stand-in on this machine, and the library that talks to it."""

from __future__ import annotations

import json
import sys

import pytest

import goldspan
from cli.test_cli import done, goldspan_run, refused
from crowd_tables import assert_same
from examples.hub_server import HubServer
from goldspan.aggregation.hub import push
from goldspan.aggregation.written import read_confidences
from goldspan.crowd.hub import parse
from goldspan.errors import InputError, MissingExtraError

LABELS = b"item,worker,label,text\n1,ann,x,one\n2,ann,y,two\n1,bob,y,one\n3,bob,x,three\n"
SPANS = "\n".join(
    json.dumps({"item": item, "text": text, "answers": answers})
    for item, text, answers in [
        ("1", "Ann sang in Rome", [
            {"worker": "ann", "spans": [[0, 3, "PER"], [12, 16, "LOC"]], "cost": 50_000},
            {"worker": "bob", "spans": [[0, 3, "PER"]], "submitted": 1_700_000_000_000}]),
        ("2", "It rained", [{"worker": "bob", "spans": []}]),
    ]
)  # fmt: skip
PLACE = "hf://datasets/you/names"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    pytest.importorskip("huggingface_hub", reason="not installed: make test-models")
    (tmp_path / "crowd.jsonl").write_text(SPANS)
    (tmp_path / "labels.csv").write_bytes(LABELS)
    with HubServer(tmp_path / "hub").running() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "none"))
        monkeypatch.setenv("HF_TOKEN", "secret-token")
        monkeypatch.chdir(tmp_path)
        yield server


@pytest.mark.models
@pytest.mark.parametrize("source", ["crowd.jsonl", "labels.csv"])
def test_answers_gold_and_confidences_come_back_as_they_were(hub, source):
    done("aggregate", source, "--method", "mv-token", "-o", "gold.jsonl")
    (hub.folder.parent / "about.md").write_text("## Certificate\n\nAccuracy 90 %.\n")
    words = ("--gold", "gold.jsonl", "--card", "about.md", "--send", "--json")
    made = json.loads(done("convert", source, PLACE, *words))
    assert made["sent"] == f"{hub.url}/datasets/you/names"
    assert made["lost"] == []
    assert goldspan.read_crowd(PLACE) == goldspan.read_crowd(source, gold="gold.jsonl")
    assert_same(goldspan.read_crowd(f"{PLACE}/gold"), goldspan.read_crowd("gold.jsonl"))
    mine, theirs = (
        read_confidences(place, goldspan.read_crowd(place)).span_confidence.round(3).tolist()
        for place in ("gold.jsonl", f"{PLACE}/gold")
    )
    assert mine == theirs
    card = (hub.folder / "you" / "names" / "README.md").read_text()
    assert "data_files: gold/train.parquet" in card
    assert "mean confidence" in card
    assert card.endswith("Accuracy 90 %.\n")
    assert ("pay is 0.05 in all" in card) == (source == "crowd.jsonl")
    assert "answers_per_item" in done("inspect", PLACE, "--json")
    assert "100.00" in goldspan_run("score", f"{PLACE}/gold", "gold.jsonl").stdout


@pytest.mark.models
def test_datasets_finds_both_configurations(hub):
    datasets = pytest.importorskip("datasets")
    consensus = goldspan.aggregate("crowd.jsonl", "mv-token")
    push(consensus, PLACE, send=True)
    parts = {
        name: datasets.load_dataset(
            str(hub.folder / "you" / "names"), name, cache_dir=str(hub.folder.parent / "cache")
        )["train"]
        for name in ("gold", "answers")
    }
    tags = list(consensus.tagset.tags)
    assert parts["gold"].features["ner_tags"].feature.names == tags
    assert parts["gold"]["confidence"][:] == pytest.approx(consensus.confidence.tolist())
    assert parts["answers"].features["labels"].feature.names == tags
    assert parts["answers"]["worker"][:] == [None, None, "ann", "bob", "bob"]


@pytest.mark.models
def test_nothing_is_sent_without_the_word(hub):
    said = done("convert", "crowd.jsonl", PLACE)
    assert "(private): 2 items, 3 answers" in said
    assert "answers/train.parquet" in said
    assert "ids of annotators: ann, bob" in said
    assert f"not sent to {hub.url}: --send" in said
    assert hub.calls == []


@pytest.mark.models
def test_another_commit_takes_the_place_of_the_files(hub):
    consensus = goldspan.aggregate("crowd.jsonl", "mv-token")
    assert push(consensus, PLACE, send=True)["sent"]
    assert "method `mv-token`" in (hub.folder / "you" / "names" / "README.md").read_text()
    assert goldspan.read_crowd(PLACE) == consensus.as_gold()
    assert "private already" in refused("convert", "labels.csv", PLACE, "--send", "--public")
    done("convert", "labels.csv", PLACE, "--send")
    assert goldspan.read_crowd(PLACE).is_classification
    with pytest.raises(InputError, match="name one of its files of data: answers/train"):
        goldspan.read_crowd(f"{PLACE}/gold")


@pytest.mark.models
@pytest.mark.usefixtures("hub")
def test_what_goes_wrong_is_said_without_the_token(monkeypatch):
    words = ("convert", "crowd.jsonl", "--send")
    assert "may not do this" in refused(*words, "hf://datasets/somebody/names")
    with pytest.raises(InputError, match="there is no such data set") as error:
        goldspan.read_crowd("hf://datasets/you/nothing")
    assert "secret-token" not in str(error.value)
    assert "written as a whole" in refused(*words, f"{PLACE}/gold")
    assert "goldspan convert FILE hf://" in refused("aggregate", "crowd.jsonl", "-o", PLACE)
    assert goldspan_run("convert", "crowd.jsonl", "x.jsonl").returncode == 2
    assert goldspan_run("convert", "crowd.jsonl", "--send").returncode == 2
    done(*words, PLACE)
    monkeypatch.delenv("HF_TOKEN")
    assert "asks for a token" in refused(*words, PLACE)
    with pytest.raises(InputError, match="asks for a token"):
        goldspan.read_crowd(PLACE)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(InputError, match=r"127\.0\.0\.1:9 cannot be reached"):
        goldspan.read_crowd(PLACE)


def test_the_library_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match="'hub'"):
        goldspan.read_crowd(PLACE)


@pytest.mark.parametrize("address", ["hf://you/names", "hf://datasets/you", "hf://datasets/a b/c"])
def test_an_address_names_owner_and_data_set(address):
    with pytest.raises(InputError, match="hf://datasets/OWNER/NAME"):
        parse(address)
