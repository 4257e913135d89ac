"""`goldspan audit draw` and `goldspan audit report`: from labels to a certificate."""

from __future__ import annotations

import json

import pytest

import goldspan
from auditing.making import lines, span_labels, spans

COMMAND = "audit"


@pytest.fixture
def labels(tmp_path):
    """Labels as gold.jsonl, and the truth."""
    crowd, truth = span_labels(80)
    rows = zip(crowd.item_ids.to_pylist(), crowd.tokens_list, crowd.tagged_by_id().values(),
               crowd.attributes["confidence"].to_pylist(), strict=True)  # fmt: skip
    kept = [
        {"item": item, "tokens": tokens, "gold": spans([tag[2:] for tag in tags]), "confidence": p}
        for item, tokens, tags, p in rows
    ]
    (tmp_path / "gold.jsonl").write_bytes(lines(kept))
    return truth


def fill(path, truth):
    """Fill a file for whoever checks."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    found = [{**row, "gold": spans([tag[2:] for tag in truth[row["item"]]])} for row in rows]
    path.write_bytes(lines(found))


def test_from_labels_to_the_certificate_and_on(run, labels, tmp_path):
    code, out, _ = run("draw", "gold.jsonl", "-n", 30, "-o", "one.jsonl")
    assert code == 0
    assert out.startswith("30 items to check of 80\nwritten: one.jsonl\nwritten: gold.audit.json,")
    fill(tmp_path / "one.jsonl", labels)
    code, out, _ = run("report", "gold.jsonl", "one.jsonl", "--html", "page.html", "--width", 0.05)
    assert code == 0
    assert out.startswith("30 checked items of 80; 95% intervals\nF1 ")
    assert "an interval 5 points wide takes about " in out
    assert max(map(len, out.splitlines())) <= 80
    page = (tmp_path / "page.html").read_text()
    assert all(
        words in page for words in ("<svg", "Seed</dt><dd>0</dd>", "Items without a mistake")
    )
    assert "<script" not in page
    code, out, _ = run("draw", "gold.jsonl", "-n", 45, "-o", "two.jsonl", "--json")
    assert (json.loads(out)["items"], json.loads(out)["first"]) == (15, 30)
    fill(tmp_path / "two.jsonl", labels)
    both = (tmp_path / "one.jsonl").read_bytes() + (tmp_path / "two.jsonl").read_bytes()
    (tmp_path / "both.jsonl").write_bytes(both)
    narrow = json.loads(run("report", "gold.jsonl", "one.jsonl", "two.jsonl", "--json")[1])
    wide = json.loads(run("report", "gold.jsonl", "both.jsonl", "--anytime", "--json")[1])
    assert narrow["checked"] == wide["checked"] == 45
    assert wide["f1"]["low"] < narrow["f1"]["low"]
    plan = goldspan.auditing.AuditPlan.load("gold.audit.json")
    assert narrow["f1"] == goldspan.audit("gold.jsonl", "both.jsonl", plan).estimate._asdict()


@pytest.mark.usefixtures("labels")
def test_a_plan_goes_on_only_with_its_own_labels_seed_and_more_items(run, tmp_path):
    assert run("draw", "gold.jsonl", "-n", 30, "-o", "a.jsonl")[0] == 0
    plan = (tmp_path / "gold.audit.json").read_bytes()
    for words, why in (
        (("-n", 20), "-n counts its 30 items too (for 20 more pass -n 50)"),
        (("-n", 40, "--seed", 1), "it is another draw, of seed 0"),
    ):
        code, _, err = run("draw", "gold.jsonl", *words, "-o", "b.jsonl")
        assert code == 1
        assert why in err
    first = (tmp_path / "a.jsonl").read_bytes()
    code, out, _ = run("draw", "gold.jsonl", "-n", 30, "-o", "b.jsonl")
    assert code == 0
    assert out.startswith("30 items to check of 80, the same as before: a larger -n goes on")
    assert (tmp_path / "b.jsonl").read_bytes() == first
    text = (tmp_path / "gold.jsonl").read_text().replace('"PER"', '"LOC"', 1)
    (tmp_path / "gold.jsonl").write_text(text)
    code, _, err = run("draw", "gold.jsonl", "-n", 40, "-o", "c.jsonl")
    assert code == 1
    assert "gold.jsonl has changed since the draw" in err
    assert (tmp_path / "gold.audit.json").read_bytes() == plan
    assert not (tmp_path / "c.jsonl").exists()
    assert run("draw", "gold.jsonl", "-n", 40, "-o", "c.jsonl", "--overwrite")[0] == 0


@pytest.mark.usefixtures("labels")
@pytest.mark.parametrize(
    ("words", "code", "match"),
    [
        (
            ("draw", "gold.jsonl", "-n", 9, "-o", "x.jsonl"),
            1,
            "-n must be a whole number of at least 10, not 9",
        ),
        (("draw", "gold.jsonl", "-o", "x.conll"), 1, "cannot hold items without labels"),
        (("draw", "gold.jsonl", "-o", "-"), 2, "cannot be standard output"),
        (("draw", "gold.jsonl", "-o", "x.jsonl", "--plan", "gold.jsonl"), 1, "is an input too"),
        (("draw", "none.jsonl", "-o", "x.jsonl"), 1, "there is no such file"),
        (("report", "gold.jsonl", "gold.jsonl"), 1, "begin with goldspan audit draw gold.jsonl"),
        (("report", "gold.jsonl", "gold.jsonl", "--plan", "gold.jsonl"), 1, "not a plan"),
        (("report", "gold.jsonl", "gold.jsonl", "--html", "x.pdf"), 2, "must end in .html"),
        (("report", "gold.jsonl", "none.jsonl"), 1, "there is no such file"),
    ],
)
def test_what_cannot_be_done_is_refused_and_leaves_nothing_behind(
    run, tmp_path, words, code, match
):
    before = sorted(tmp_path.iterdir())
    found, out, err = run(*words)
    assert (found, out) == (code, "")
    assert match in err
    assert sorted(tmp_path.iterdir()) == before
