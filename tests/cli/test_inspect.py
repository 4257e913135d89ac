"""`goldspan inspect` on texts to label: what was found, and the next command."""

from __future__ import annotations

import json
import shlex

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

from goldspan.cli.files import inspect
from goldspan.errors import FormatError
from own_text import own_texts

TEXTS = own_texts(12)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    app.command()(inspect)

    def call(*words):
        app([*map(str, words)], standalone_mode=False)
        return capsys.readouterr().out

    return call


def write(path):
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"text": TEXTS}), path)
    elif path.suffix == "":
        path.mkdir()
        for n, text in enumerate(TEXTS):
            (path / f"{n}.txt").write_bytes(text.encode())
    else:
        lines = {
            ".txt": TEXTS,
            ".csv": ["text", *('"' + text.replace('"', '""') + '"' for text in TEXTS)],
            ".jsonl": [json.dumps({"text": text}) for text in TEXTS],
            ".json": [json.dumps([{"text": text} for text in TEXTS])],
        }[path.suffix]
        path.write_bytes("\n".join(lines).encode())


@pytest.mark.parametrize(
    "name", ["pool.txt", "pool.csv", "pool.jsonl", "pool.json", "pool.parquet", "my texts"]
)
def test_a_pool_is_recognised_with_the_next_command(name, run, tmp_path):
    write(tmp_path / name)
    facts = json.loads(run(name, "--json"))
    assert facts["format"] == "texts"
    assert (facts["items"], facts["cut"]) == (12, "fine")
    assert shlex.split(facts["next"])[:4] == ["goldspan", "init", name, "--labels"]
    assert f"next: {facts['next']}" in run(name)


def test_words_of_a_file_do_not_command_the_terminal(run, tmp_path):
    (tmp_path / "p.txt").write_bytes("a \x1b[31mred \x9b2J\n".encode())
    assert r"first item: 1: a \x1b[31mred \x9b2J" in run("p.txt")


def test_columns_that_are_named_go_into_the_next_command(run, tmp_path):
    (tmp_path / "p.csv").write_text("nr,satz,text\n1,eins,x\n")
    out = run("p.csv", "--text-column", "satz", "--id-column", "nr")
    assert "first item: 1: eins" in out
    assert "attributes: text\n" in out
    assert out.splitlines()[-1].endswith("--text-column satz")


def test_answers_are_a_crowd_whatever_else_their_table_holds(run, tmp_path):
    (tmp_path / "a.csv").write_text("id,text,annotator,label\n1,Rome,ann,x\n1,Rome,bob,y\n")
    out = run("a.csv")
    assert "workers: 2" in out
    assert "next: goldspan aggregate a.csv" in out


def test_a_text_file_that_is_a_table_is_refused(run, tmp_path):
    (tmp_path / "p.txt").write_text("id,text\n1,Rome is old\n2,It rains\n")
    with pytest.raises(FormatError, match="names columns"):
        run("p.txt")
