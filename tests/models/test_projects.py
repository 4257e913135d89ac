"""Folders that other libraries train on. With spaCy installed it trains on one, for a few steps."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import goldspan
from goldspan.aggregation.splits import write_project
from goldspan.cli.models import train
from goldspan.errors import GoldspanError, InputError, MissingExtraError, UnknownNameError

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "crowd.tsv"
LABELS = b"item,worker,label,text\n" + b"".join(
    b"%d,%s,%s,%s today\n" % (n, worker, label, text)
    for n in range(20)
    for worker in (b"ann", b"bob")
    for label, text in [((b"wet", b"It rains") if n % 2 else (b"dry", b"The sun shines"))]
)
TYPES = {"LOC", "MISC", "ORG", "PER"}
needs_spacy = pytest.mark.skipif(
    importlib.util.find_spec("spacy") is None, reason="spaCy is not installed: make test-models"
)
pytestmark = [
    pytest.mark.models,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]
app = typer.Typer(pretty_exceptions_enable=False)
app.add_typer(train, name="train")


def call(*words):
    found = CliRunner().invoke(app, [str(word) for word in words])
    if isinstance(found.exception, GoldspanError):
        return 1, str(found.exception)
    return found.exit_code, " ".join(found.output.replace("│", " ").split())


@pytest.fixture(scope="module")
def gold():
    return goldspan.aggregate(EXAMPLE, "mv-token").as_gold()


@pytest.fixture(scope="module")
def labels():
    return goldspan.aggregate(LABELS, "ds").as_gold()


def learn(folder, steps):
    """Train as the README says, for few steps."""
    words = ["train", "config.cfg", "--output", "model", "--training.max_steps", str(steps)]
    more = ["--training.eval_frequency", str(steps)]
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "spacy", *words, *more], cwd=folder, text=True,
        capture_output=True, check=False,
    )  # fmt: skip


@needs_spacy
def test_spacy_trains_a_pipeline_on_the_folder_that_the_command_writes(tmp_path):
    import spacy

    folder = tmp_path / "ner"
    code, out = call(
        "train",
        "project",
        EXAMPLE,
        "--for",
        "spacy",
        "-o",
        folder,
        "--method",
        "mv-token",
        "--json",
    )
    assert code == 0, out
    counts = json.loads(out)
    ran = learn(folder, 6)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    model = spacy.load(folder / "model" / "model-last")
    assert model.pipe_names == ["tok2vec", "ner"]
    assert set(model.get_pipe("ner").labels) == TYPES
    assert "ents_f" in model.meta["performance"]  # it was scored on dev
    taught = goldspan.read_crowd(folder / "train.spacy")
    dev = goldspan.read_crowd(folder / "dev.spacy")
    assert (taught.n_items, dev.n_items) == (counts["train"], counts["dev"])


@needs_spacy
def test_spacy_trains_on_single_labels(labels, tmp_path):
    import spacy

    assert write_project(labels, tmp_path / "rain", "spacy")["train"] == 18
    ran = learn(tmp_path / "rain", 4)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    model = spacy.load(tmp_path / "rain" / "model" / "model-last")
    assert set(model("It rains today").cats) == {"wet", "dry"}


@needs_spacy
def test_a_language_that_spacy_lacks_is_named(gold, tmp_path):
    with pytest.raises(InputError, match="no language 'klingon'"):
        write_project(gold, tmp_path / "x", "spacy", language="klingon")
    assert not (tmp_path / "x").exists()


def test_gliners_data_have_all_labels_beside_every_item_and_no_document_in_both(gold, tmp_path):
    counts = write_project(gold, tmp_path / "x", "gliner")
    parts = {
        name: json.loads((tmp_path / "x" / f"{name}.json").read_text("utf-8"))
        for name in ("train", "dev")
    }
    assert {name: len(rows) for name, rows in parts.items()} == {
        name: counts[name] for name in parts
    }
    rows = [row for part in parts.values() for row in part]
    assert len(rows) == gold.n_items
    assert any(not row["ner"] for row in rows)
    assert all(row["ner_labels"] == sorted(TYPES) for row in rows)
    documents = [{row["doc"] for row in part} for part in parts.values()]
    assert not documents[0] & documents[1]


def test_held_out_items_may_be_given(gold, tmp_path):
    some = gold.select_items(np.arange(5))
    counts = write_project(gold, tmp_path / "x", "gliner", dev=some)
    assert counts == {"train": gold.n_items, "dev": 5, "left_out": 0}


def test_what_cannot_be_written_is_told(gold, labels, tmp_path):
    with pytest.raises(UnknownNameError, match="project"):
        write_project(gold, tmp_path / "x", "flair")
    with pytest.raises(InputError, match="no item has a known tag"):
        write_project(gold.with_gold(None), tmp_path / "x", "gliner")
    with pytest.raises(InputError, match="single labels"):
        write_project(labels, tmp_path / "x", "gliner")
    assert not (tmp_path / "x").exists()


def test_without_spacy_it_says_how_to_get_it(gold, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    monkeypatch.setitem(sys.modules, "spacy.cli.init_config", None)
    with pytest.raises(MissingExtraError, match="extra 'spacy'"):
        write_project(gold, tmp_path / "x", "spacy")
