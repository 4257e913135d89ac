"""`--families` of `goldspan aggregate`, `workers` and `next`."""

from __future__ import annotations

import json

import pytest


@pytest.fixture(autouse=True)
def _files(tmp_path):
    """Sixteen clear items, and one that a and b, who are one, answered alike."""
    rows = [f"q{i},{w},{'yn'[i % 2]}" for i in range(16) for w in "abcd"]
    rows += ["doubt,a,y", "doubt,b,y", "doubt,c,n"]
    (tmp_path / "labels.csv").write_text("\n".join(["task,worker,label", *rows]) + "\n")
    (tmp_path / "kin.csv").write_text("worker,family\na,one\nb,one\n")
    (tmp_path / "other.csv").write_text("worker,family\neve,one\n")


def test_next_asks_no_member_of_a_family_that_answered(run):
    code, out, _ = run("next", "labels.csv", "--families", "kin.csv", "--json", "--ask", "b,d")
    assert code == 0
    found = json.loads(out)
    assert found["families"] == {"a": "one", "b": "one"}
    assert [(row["item"], row["worker"]) for row in found["next"]] == [("doubt", "d")]
    code, out, _ = run("next", "labels.csv", "--families", "kin.csv")
    assert "a, b (rho" in out
    code, out, _ = run("next", "labels.csv", "--families", "none", "--json")
    assert "families" not in json.loads(out)


def test_workers_name_the_family(run):
    code, out, _ = run("workers", "labels.csv", "--families", "kin.csv", "--json", "-o", "w.csv")
    assert code == 0
    rows = {row["worker"]: row for row in json.loads(out)["workers"]}
    assert rows["a"]["family"] == "one"
    assert 1 <= rows["a"]["effective"] < 2
    assert "family" not in rows["c"]


def test_aggregate_takes_a_table_and_says_what_is_wrong(run, tmp_path):
    code, out, _ = run("aggregate", "labels.csv", "--families", "kin.csv", "--json")
    assert code == 0
    assert "err together" in out
    out_table = "--workers-table", "w.csv"
    code, _, _ = run("aggregate", "labels.csv", "-m", "ds", "--families", "kin.csv", *out_table)
    assert code == 0
    assert (tmp_path / "w.csv").read_text().splitlines()[0].endswith("family,effective")
    (tmp_path / "none.csv").write_text("worker,family\n")
    code, out, _ = run("aggregate", "labels.csv", "--families", "none.csv")
    assert code == 0
    assert "none.csv: the table of families names no family" in out
    code, out, _ = run("aggregate", "labels.csv", "--families", "kin.csv", "--json")
    assert set(json.loads(out)["result"]["families"]) == {"a", "b"}
    for words, message in (
        (("--families", "other.csv"), "no worker 'eve' among the 4 workers"),
        (("--families", "absent.csv"), "there is no such file"),
        (("--families", "none", "--param", "families=auto"), "leave one out"),
        (("--families", "auto", "-m", "crf-ma"), "methods that know families"),
    ):
        code, _, err = run("aggregate", "labels.csv", *words)
        assert code in {1, 2}
        assert message in " ".join(err.split())


def test_families_of_the_file_of_answers_are_heeded(run, tmp_path):
    facts = '"worker_facts": {"a": {"family": "gpt"}, "b": {"family": "gpt"}}'
    lines = [f'{{"goldspan": 1, "encoding": "BIO", "types": ["PER"], {facts}}}']
    for n in range(12):
        spans = '[{"start": 0, "end": 1, "type": "PER"}]' if n % 2 else "[]"
        given = ", ".join(f'{{"worker": "{w}", "spans": {spans}}}' for w in "abc")
        lines.append(f'{{"item": "{n}", "tokens": ["Ann", "sang"], "answers": [{given}]}}')
    (tmp_path / "said.jsonl").write_text("\n".join(lines) + "\n")
    code, out, _ = run("aggregate", "said.jsonl", "-m", "ds", "--json")
    assert code == 0
    assert set(json.loads(out)["result"]["families"]) == {"a", "b"}
    code, out, _ = run("aggregate", "said.jsonl", "-m", "ds", "--families", "none", "--json")
    assert "families" not in json.loads(out)["result"]
