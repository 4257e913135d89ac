"""`goldspan train encoder` and `goldspan tag` with its folder."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from goldspan.cli.models import tag, train
from goldspan.cli.models import tagger as tagger_app
from goldspan.errors import GoldspanError
from tagger.tiny_encoder import write_tiny

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "crowd.tsv"
needs_torch = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "transformers")),
    reason="torch and transformers are not installed",
)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
app = typer.Typer(pretty_exceptions_enable=False)
app.command()(tag)
app.add_typer(train, name="train")
app.add_typer(tagger_app, name="tagger")
GOLD = "Rome\tB-LOC\nwins\tO\n\nKim\tB-PER\nLee\tI-PER\nwins\tO\n\n" * 8


def call(*words):
    found = CliRunner().invoke(app, [str(word) for word in words])
    if isinstance(found.exception, GoldspanError):
        return 1, str(found.exception)
    return found.exit_code, found.output


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    (folder / "gold.conll").write_text(GOLD)
    (folder / "text.txt").write_text("Kim wins\n\nLee goes to Rome\n")
    return folder


@pytest.fixture(scope="module")
def trained(place):
    write_tiny(place / "tiny")
    code, out = call(
        "train", "encoder", place / "gold.conll", "-o", place / "ner", "-m", place / "tiny",
        "--param", "epochs=2", "--param", "held_out=0", "--json",
    )  # fmt: skip
    assert code == 0, out
    return place / "ner", json.loads(out)


@needs_torch
def test_a_folder_is_written_that_tags(place, trained):
    folder, facts = trained
    assert facts["model"] == "encoder"
    assert facts["epochs"] == 2
    assert {"config.json", "goldspan.json", "model.safetensors"} <= {
        p.name for p in folder.iterdir()
    }
    code, out = call("tag", folder, place / "text.txt", "--to-format", "jsonl")
    assert code == 0
    rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert [len(row["token_tags"]) for row in rows] == [2, 4]
    assert all(0 <= span["confidence"] <= 1 for row in rows for span in row["gold"])


@needs_torch
@pytest.mark.usefixtures("trained")
def test_a_crowd_teaches_by_the_probabilities_of_a_method(place, tmp_path):
    code, out = call(
        "train", "encoder", EXAMPLE, "-o", tmp_path / "ner", "-m", place / "tiny", "--method", "ds",
        "--param", "epochs=1", "--param", "held_out=0.2", "--checkpoint", tmp_path / "state",
    )  # fmt: skip
    assert code == 0, out
    assert "held out" in out
    assert (tmp_path / "state").is_file()


@needs_torch
@pytest.mark.usefixtures("trained")
def test_an_older_folder_is_replaced_when_asked(place):
    words = ["train", "encoder", place / "gold.conll", "-o", place / "ner", "-m", place / "tiny",
             "--param", "epochs=1", "--param", "held_out=0"]  # fmt: skip
    code, out = call(*words)
    assert code == 1
    assert "is a folder" in out
    assert call(*words, "--overwrite")[0] == 0


@needs_torch
def test_inspect_has_nothing_to_show(trained):
    code, out = call("tagger", "inspect", trained[0])
    assert code == 1
    assert "an encoder has no weights of features" in out


def test_without_the_extra_it_says_how_to_get_it(place, monkeypatch):
    monkeypatch.setattr("goldspan.tagger.network.find_spec", lambda _: None)
    code, out = call("train", "encoder", place / "gold.conll", "-o", place / "new", "-m", "bert")
    assert code == 1
    assert "goldspan's extra 'encoder'" in out


def test_other_taggers_are_not_exported(place, tmp_path):
    assert call("train", "hmm", place / "gold.conll", "-o", tmp_path / "m.goldspan")[0] == 0
    code, out = call("tagger", "export", tmp_path / "m.goldspan", "-o", tmp_path / "onnx")
    assert code == 1
    assert "is of the model hmm: only encoders are exported" in out
    assert not (tmp_path / "onnx").exists()


def test_a_folder_that_is_no_tagger_is_named(place):
    code, out = call("tag", place, place / "text.txt")
    assert code == 1
    assert "it is a folder without goldspan.json" in out
