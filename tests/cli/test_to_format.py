"""Labels in formats of other tools, in splits and as predictions; agreement on spans."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from cli.test_cli import goldspan_run
from goldspan.crowd import read_crowd
from goldspan.errors import UnavailableError

TAGS = "item\ttoken\tann\tbob\tcat\n" + "".join(
    f"{n}\tAnn\tB-PER\tB-PER\t{'B-PER' if n % 2 else 'O'}\n{n}\tsang\tO\tO\tO\n\n"
    for n in range(10)
)
WIDE = TAGS.replace("item\t", "sent\t")
LABELS = "task,worker,label\n" + "".join(
    f"{n},{worker},{'xy'[n % 2]}\n" for n in range(10) for worker in ("ann", "bob")
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tags.tsv").write_text(WIDE)
    (tmp_path / "labels.csv").write_text(LABELS)
    return tmp_path


def call(folder, *words, code=0):
    run = goldspan_run(*words, cwd=folder)
    assert run.returncode == code, run.stdout + run.stderr
    return run


def test_the_ending_or_the_option_names_the_format(folder):
    start = ("aggregate", "tags.tsv", "-m", "mv-token")
    call(folder, *start, "-o", "spans.csv")
    call(folder, *start, "-o", "arrays.npz")
    call(folder, *start, "-o", "set", "--to-format", "datasets")
    call(folder, *start, "-o", "gliner.json", "--to-format", "gliner")
    lines = (folder / "spans.csv").read_text().splitlines()
    assert lines[0] == "item,text,start,end,label,span_text,worker,confidence"
    assert lines[1].endswith(",0,3,PER,Ann,gold,0.6667")
    with np.load(folder / "arrays.npz") as found:
        assert found["pred_probs"].shape[1] == len(json.loads(bytes(found["about"]))["classes"])
    assert read_crowd(folder / "set").import_report.format == "datasets"
    assert json.loads((folder / "gliner.json").read_text())[0]["scores"] == [0.6667]
    shown = call(folder, *start, "-o", "-", "--to-format", "gliner").stdout
    assert shown == (folder / "gliner.json").read_text()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["-o", "x.csv", "--to-format", "glinet"], 1, "unknown output format 'glinet'"),
        (["-o", "x.csv", "--to-format", "mturk"], 1, "can only be read"),
        (["-o", "x.abc"], 1, "or pass --to-format"),
        (["-o", "x.spacy"], 1, "needs spacy, which is not installed"),
        (["-o", "x", "--to-format", "xmi"], 1, "needs dkpro-cassis, which is not installed"),
        (["-o", "-", "--to-format", "datasets"], 2, "datasets is a folder"),
        (["--split", "80,10,10"], 2, "--split writes a folder"),
        (["--split", "80,10", "-o", "x"], 1, "give three shares"),
        (["--split", "a,b,c", "-o", "x"], 2, "--split takes three numbers"),
        (["--split", "80,10,10", "-o", "."], 1, ". is a folder: remove it"),
        (["--split", "80,10,10", "-o", "x.conll.gz"], 2, "is the name of a file: leave .conll out"),
    ],
)
def test_what_cannot_be_is_refused(folder, words, code, message, monkeypatch):
    for name in ("spacy", "cassis"):
        monkeypatch.setitem(sys.modules, name, None)
    run = call(folder, "aggregate", "tags.tsv", "-m", "mv-token", *words, code=code)
    assert message in " ".join((run.stdout + run.stderr).replace("│", " ").split())
    assert sorted(path.name for path in folder.iterdir()) == ["labels.csv", "tags.tsv"]


def test_sets_have_no_place_in_formats_of_other_tools(folder):
    words = ("aggregate", "tags.tsv", "-m", "ds", "--calibrate", "tags.tsv", "--coverage", "0.9")
    run = call(folder, *words, "-o", "x.csv", code=1)
    assert "span-table has no place for the sets of --coverage" in run.stderr


def test_a_split_is_a_data_set_with_a_card(folder):
    said = call(
        folder, "aggregate", "labels.csv", "-m", "mv-token", "--split", "80,10,10", "-o", "set",
        "--seed", "3", "--json",
    )  # fmt: skip
    assert json.loads(said.stdout)["lost"] == []
    assert "(seed 3)" in (folder / "set" / "README.md").read_text()
    assert read_crowd(folder / "set").n_items == 10


def test_predictions_keep_the_confidences_of_a_file(folder):
    call(folder, "aggregate", "tags.tsv", "-m", "mv-token", "-o", "gold.jsonl")
    call(
        folder, "convert", "gold.jsonl", "--predicted", "--to-format", "label-studio",
        "-o", "tasks.json",
    )  # fmt: skip
    tasks = json.loads((folder / "tasks.json").read_text())
    (one,) = tasks[0]["predictions"]
    assert one["score"] == one["result"][0]["score"] == 0.6667
    assert tasks[0]["annotations"] == []
    with pytest.raises(UnavailableError):
        read_crowd(folder / "tasks.json", unlabelled="keep").tagged_by_id()
    run = call(folder, "convert", "gold.jsonl", "--to-format", "wide", "-o", "gold.tsv")
    assert "the confidence of 10 spans" in run.stderr
    call(folder, "convert", "gold.jsonl", "--to", "IOBES", "--to-format", "gliner", "-o", "g.json")
    assert json.loads((folder / "g.json").read_text())[0]["scores"] == [0.6667]
    run = call(
        folder, "convert", "gold.jsonl", "--predicted", "--to-format", "wide", "-o", "no.tsv",
        code=1,
    )  # fmt: skip
    assert "cannot mark what nobody confirmed" in run.stderr
