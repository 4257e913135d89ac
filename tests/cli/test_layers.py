"""`--layer` of aggregate, score and agreement: one question of a file, several, or all."""

from __future__ import annotations

import json
from pathlib import Path

ROWS = [("ann", 3, "glad"), ("bob", 3, "glad"), ("eve", 4, "sad")]


def export():
    """Return two tasks of Label Studio with regions and a choice each."""
    annotations = [
        {"completed_by": {"email": worker}, "result": [
            {"type": "labels", "from_name": "ner", "to_name": "text",
             "value": {"start": 0, "end": end, "labels": ["PER"]}},
            {"type": "choices", "from_name": "mood", "to_name": "text",
             "value": {"choices": [mood]}}]}
        for worker, end, mood in ROWS
    ]  # fmt: skip
    tasks = [{"id": n, "data": {"text": "Ann sang"}, "annotations": annotations} for n in (1, 2)]
    return json.dumps(tasks)


def test_commands_take_one_layer_several_and_all(run, tmp_path):
    Path(tmp_path / "a.json").write_text(export(), "utf-8")
    assert "--layer all" in run("aggregate", "a.json", "-m", "mv-token")[1]
    code, one, _ = run("aggregate", "a.json", "-m", "mv-token", "--layer", "mood", "-o", "m.csv")
    assert code == 0
    assert "2 items, 2 tokens, 6 answers of 3 workers (" in one
    words = ("aggregate", "a.json", "-m", "mv-token", "--layer", "all")
    code, every, _ = run(*words, "-o", "gold.jsonl")
    assert code == 0
    assert "layer ner:" in every
    assert "layer mood:" in every
    assert every.endswith("written: gold.jsonl\n")
    facts = json.loads(run(*words, "--json")[1])
    assert facts["layers"]["ner"]["result"]["spans"] == 2
    scored = json.loads(run("score", "gold.jsonl", "gold.jsonl", "--layer", "all", "--json")[1])
    assert scored["layers"]["mood"]["accuracy"] == 1.0
    code, _, err = run("convert", "gold.jsonl", "-o", "gold.parquet")
    assert code == 0
    assert "confidence" not in err
    assert "accuracy" in run("score", "gold.jsonl", "gold.jsonl", "--layer", "mood")[1]
    measured = run("agreement", "a.json", "--layer", "ner", "--layer", "mood")[1]
    assert measured.count("Krippendorff") == 2
    scale = run(*words, "--ordinal", "mood", "--json")[1]
    assert json.loads(scale)["layers"]["mood"]["result"]["method"] == "mv-token"


def test_what_is_for_one_layer_and_unknown_names_are_refused(run, tmp_path):
    Path(tmp_path / "a.json").write_text(export(), "utf-8")
    code, _, message = run("agreement", "a.json", "--layer", "sent")
    assert code == 1
    assert "unknown layer 'sent': choose from ner, mood" in message
    for words, option in (
        (("aggregate", "a.json", "--report", "r.html"), "--report"),
        (("agreement", "a.json", "--units"), "--units"),
        (("score", "a.json", "a.json", "--wrong"), "--wrong"),
    ):
        code, _, message = run(*words, "--layer", "all")
        assert code == 2
        assert f"{option} is for one layer: name it with --layer NAME" in " ".join(message.split())
    code, _, message = run("aggregate", "a.json", "--layer", "all", "-o", "gold.csv")
    assert code == 1
    assert "gold.csv: labels of several layers are written as .jsonl" in message


def test_columns_of_a_table_are_its_layers(run, tmp_path):
    rows = "item,worker,mood,topic,comment\n1,ann,glad,art,so\n1,bob,glad,law,no\n2,bob,sad,art,\n"
    Path(tmp_path / "t.csv").write_text(rows, "utf-8")
    for names in (["nope"], ["mood", "nope"]):
        words = [word for name in names for word in ("--layer", name)]
        code, _, message = run("agreement", "t.csv", *words)
        assert code == 1
        assert "unknown layer 'nope': choose from mood, topic" in message
    code, every, _ = run("aggregate", "t.csv", "-m", "mv-token", "--layer", "all")
    assert code == 0
    assert "one column is read as the question: name others with --layer NAME" in every
