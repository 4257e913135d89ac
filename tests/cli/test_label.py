"""`goldspan label`: models label a file without a campaign; a kill loses and repeats nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import goldspan
from cli.test_cli import done, goldspan_run, refused
from examples.model_server import ModelServer, capitals
from goldspan.money import from_micro

TEXTS = "Ann Lee sang in Rome.\nIt rained.\nBob came.\nNobody saw Eve.\n"


def said(question, _labels):
    return capitals(question, ["PER"])


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    (tmp_path / "news.txt").write_text(TEXTS)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def server():
    with ModelServer(said).running() as one:
        yield one


def model(server, *more):
    """Return a command line that asks the server."""
    return [
        "label", "news.txt", "--labels", "PER,LOC", "-w", "llm", "--set", f"base_url={server.url}",
        "--set", "model=small", "--set", "concurrency=1",
        "--set", "prices.per_thousand_output=0.01", *more,
    ]  # fmt: skip


def test_a_file_becomes_a_crowd_with_family_and_kind(server):
    done(*model(server, "--send-text", "-o", "out.jsonl", "--set", "id=m", "--set", "family=f"))
    crowd = goldspan.read_crowd("out.jsonl")
    assert crowd.answers_of("1") == {"m": ["B-PER", "I-PER", "O", "O", "B-PER", "O"]}
    assert crowd.answers_of("2") == {"m": ["B-PER", "O", "O"]}
    assert crowd.worker_facts == {"m": {"kind": "llm", "family": "f"}}
    assert crowd.texts.to_pylist()[0] == "Ann Lee sang in Rome."
    assert crowd.answers.cost.tolist() == [10 * n for n in [t for _, _, t in server.bills]]


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "tsv", "csv", "json"])
def test_the_output_is_a_crowd_of_any_format(server, ending):
    run = goldspan_run(*model(server, "--send-text", "-o", f"out.{ending}"))
    assert run.returncode == 0, run.stderr
    crowd = goldspan.read_crowd(f"out.{ending}")
    assert crowd.answers_of(0)["llm"][:2] == ["B-PER", "I-PER"]
    kept = ending in {"jsonl", "parquet"}
    assert (crowd.worker_facts != {}) == kept
    assert ("facts about 1 worker: kind, family of 'llm'" in run.stderr) == (not kept)


def test_nothing_is_sent_without_the_option_and_a_dry_run_says_what_it_costs(server):
    assert "--send-text" in refused(*model(server, "-o", "out.jsonl"))
    facts = json.loads(done(*model(server, "--send-text", "--dry-run", "--json")))
    (worker,) = facts["workers"]
    assert (worker["answers"], worker["cached"], facts["items"]) == (4, 0, 4)
    assert 0 < worker["expected_micro"] < worker["most_micro"] == 4 * 2 * 1000 * 10
    assert "nothing was sent" in done(*model(server, "--dry-run"))
    assert "more than --max-cost 0.05" in refused(
        *model(server, "--send-text", "--max-cost", "0.05", "-o", "out.jsonl")
    )
    assert server.calls == []
    assert not Path("out.jsonl").exists()


def test_a_second_run_asks_nothing_and_writes_the_same_bytes(server):
    done(*model(server, "--send-text", "-o", "a.jsonl", "--details", "a-said.jsonl"))
    said_again = json.loads(
        done(*model(server, "--send-text", "-o", "b.jsonl", "--details", "b-said.jsonl", "--json"))
    )
    assert len(server.bills) == 4
    assert Path("a.jsonl").read_bytes() == Path("b.jsonl").read_bytes()
    assert Path("a-said.jsonl").read_bytes() == Path("b-said.jsonl").read_bytes()
    (worker,) = said_again["workers"]
    assert (worker["stored_before"], worker["paid_before_micro"]) == (4, worker["cost_micro"])
    assert (worker["log"]["sent"], worker["log"]["retried"]) == (0, 0)
    told = done(*model(server, "--send-text", "-o", "c.jsonl"))
    before = f"4 from stored replies (paid before: {from_micro(worker['cost_micro'])})"
    assert f"llm: 0 calls sent, 0 of them again; {before}\n" in told
    Path("news.txt").write_text(TEXTS + TEXTS)
    told = done(*model(server, "--send-text", "-o", "d.jsonl"))
    assert f"{before}, 4 share the reply to an equal text" in told
    told = done(*model(server, "--dry-run", "--set", "prompt=Anew."))
    assert "llm: 4 of the 4 that are stored share the reply to an equal text" in told
    row = json.loads(Path("a-said.jsonl").read_text().splitlines()[0])
    assert row["spans"][0] == {"type": "PER", "start": 0, "end": 2, "probability": 1.0}
    done(*model(server, "--dry-run"))


def test_a_long_list_of_missing_answers_says_how_many_more_there_are():
    Path("news.txt").write_text("".join(f"Ann sang {n} times.\n" for n in range(7)))
    with ModelServer(said, ["prose"] * 7).running() as server:
        text = done(*model(server, "--send-text", "-o", "out.jsonl", "--set", "attempts=1"))
    assert text.count("llm: no answer to item") == 5
    assert "llm: and 2 more; --details FILE has all of them" in text


def test_missing_answers_are_listed_and_not_in_the_file():
    with ModelServer(said, ["prose", "refusal", "hallucinated", "model"]).running() as server:
        text = done(*model(server, "--send-text", "-o", "out.jsonl", "--set", "attempts=1"))
        assert "llm: no answer to item 1: invalid: it is not JSON (after 1 calls)" in text
        assert "llm: no answer to item 2: refused" in text
        assert "llm: left out of item 3: PER 'Zaphod Beeblebrox' is not in the text" in text
        assert "the model changed without notice: the endpoint replied as stand-in-1" in text
        crowd = goldspan.read_crowd("out.jsonl")
        assert [crowd.answers_of(n) == {} for n in range(4)] == [True, True, False, False]
        again = ["--send-text", "--set", "attempts=1", "-o", "again.jsonl"]
        done(*model(server, *again))
        assert len(server.bills) == 4
        assert Path("again.jsonl").read_bytes() == Path("out.jsonl").read_bytes()
        told = done(*model(server, *again, "--retry-missing", "--overwrite"))
        assert "llm: 2 calls sent, 2 of them again; 2 from stored replies" in told
        assert len(server.bills) == 6
        assert all(goldspan.read_crowd("again.jsonl").answers_of(n) for n in range(4))


def test_answers_of_people_stay_beside_those_of_a_model(server):
    Path("people.csv").write_text(
        "item,worker,position,token,label\n1,ann,0,Bob,B-PER\n1,ann,1,came,O\n"
        "1,bo,0,Bob,O\n1,bo,1,came,O\n2,ann,0,Rome,B-LOC\n"
    )
    words = ["label", "people.csv", *model(server)[4:]]
    done(*words, "--send-text", "-o", "mixed.jsonl")
    crowd = goldspan.read_crowd("mixed.jsonl")
    assert crowd.answers_of(0) == {"ann": ["B-PER", "O"], "bo": ["O", "O"], "llm": ["B-PER", "O"]}
    assert crowd.answers_of(1) == {"ann": ["B-LOC"], "llm": ["B-PER"]}
    more = ["label", "mixed.jsonl", "-w", "python:goldspan.annotators.python:nothing"]
    done(*more, "-o", "three.jsonl")
    assert len(goldspan.read_crowd("three.jsonl").answers_of(0)) == 4
    n = len(server.calls)
    other = ["--send-text", "--set", "prompt=Another.", "-o", "no.jsonl"]
    assert "there is a worker 'llm' already" in refused(
        "label", "mixed.jsonl", *model(server)[4:], *other
    )
    assert len(server.calls) == n  # it is said before anything is paid


def test_the_cap_holds_for_what_is_asked_again():
    with ModelServer(said, ["prose"]).running() as server:
        first = model(server, "--send-text", "--set", "attempts=1", "-o", "out.jsonl")
        done(*first)
        n = len(server.calls)
        again = [*first, "--overwrite", "--retry-missing", "--max-cost", "0.001"]
        assert "nothing was sent" in refused(*again)
        assert len(server.calls) == n
        facts = json.loads(done(*again[:-2], "--dry-run", "--json"))
        assert facts["workers"][0]["answers"] - facts["workers"][0]["cached"] == 1


def test_a_cap_without_prices_is_refused_for_a_model_elsewhere():
    words = ["label", "news.txt", "--labels", "PER", "-w", "llm", "--set", "model=m"]
    words += ["--set", "base_url=http://192.0.2.1/v1", "--dry-run", "--max-cost", "1"]
    assert "worker llm has no prices, so --max-cost cannot hold" in refused(*words)
    done(*words, "--set", "prices.per_thousand_output=0.001")


def test_single_labels():
    Path("mails.csv").write_text("id,text,sender\na,Hello there,ann@x.org\nb,Buy,bob@x.org\n")
    with ModelServer(capitals).running() as server:
        words = ["label", "mails.csv", "--kind", "single", "--labels", "ham,spam"]
        done(*words, *model(server)[4:], "--send-text", "-o", "out.jsonl")
        crowd = goldspan.read_crowd("out.jsonl")
        assert crowd.is_classification
        assert [crowd.answers_of(n)["llm"] for n in range(2)] == [["spam"], ["spam"]]
        assert "x.org" not in json.dumps(server.calls)  # only the text is sent


def test_examples_are_shown_and_not_asked_about(server):
    Path("known.conll").write_text("It O\nrained O\n. O\n\nEve B-PER\nleft O\n")
    words = ["label", "news.txt", *model(server)[4:], "--examples", "known.conll"]
    text = done(*words, "--set", "examples=2", "--send-text", "-o", "out.jsonl")
    assert "not asked about: 1 item of --examples" in text
    run = goldspan_run(*words, "--dry-run")
    assert "no model is shown any of --examples" in run.stderr
    assert len(server.calls) == 3
    assert [one["role"] for one in server.calls[0]["messages"]].count("assistant") == 2
    assert '"rained"' not in server.calls[0]["messages"][-1]["content"]


def test_several_workers_of_a_file_label_side_by_side(server):
    Path("team.toml").write_text(
        f"""
[[crowd.workers]]
kind = "people"
id = "people"

[[crowd.workers]]
id = "strict"
kind = "llm"
base_url = "{server.url}"
model = "small"
prompt = "Be strict."

[[crowd.workers]]
id = "lenient"
kind = "llm"
base_url = "{server.url}"
model = "small"
limit = 2

[[crowd.workers]]
kind = "python"
call = "goldspan.annotators.python:nothing"
"""
    )
    words = ["label", "news.txt", "--labels", "PER", "-w", "team.toml"]
    own = "goldspan.annotators.python"
    assert f"add --allow-code {own}" in refused(*words, "--send-text")
    words += ["--allow-code", own]
    done(*words, "--send-text", "-o", "out.jsonl")
    crowd = goldspan.read_crowd("out.jsonl")
    assert [len(crowd.answers_of(n)) for n in range(4)] == [3, 3, 2, 2]
    assert crowd.worker_facts["strict"] == crowd.worker_facts["lenient"]
    assert "--set is for one --worker" in goldspan_run(*words, "--set", "x=1").stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-w", "llm"], "kind 'llm' needs base_url"),
        (["-w", "oracle"], "unknown kind of worker 'oracle'"),
        (["-w", "none.toml"], "none.toml: there is no such file"),
        (["-w", "empty.toml"], "it must hold tables [[workers]]"),
        (["-w", "python:no_such_thing:f", "--labels", "A"], "cannot import no_such_thing"),
        (["-w", "python:json:loads"], "which labels are there? Name them"),
        (["-w", "python:json:loads", "--labels", "A", "--examples", "crowd.csv"], "not known"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_done(words, message):
    Path("empty.toml").write_text("x = 1\n")
    Path("crowd.csv").write_text("item,worker,label\n1,ann,A\n")
    assert message in refused("label", "news.txt", *words, "-o", "out.jsonl")
    assert not Path("out.jsonl").exists()
    assert not Path("goldspan-replies").exists()


def test_a_function_of_the_users_own_folder_is_called():
    Path("house_rules.py").write_text(
        "def label(items):\n"
        "    return [[(0, 3, 'PER')] if 'Bob' in one.text else [] for one in items]\n"
    )
    done("label", "news.txt", "--labels", "PER", "-w", "python:house_rules:label", "-o", "o.jsonl")
    crowd = goldspan.read_crowd("o.jsonl")
    assert [sum(tag != "O" for tag in crowd.answers_of(n)["python"]) for n in range(4)] == [
        0, 0, 1, 0,
    ]  # fmt: skip


# Kills, as signals to a process of its own.


def started(server, *more):
    words = [sys.executable, "-m", "goldspan", *model(server, "--send-text", *more)]
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
    )  # fmt: skip


def wait_for_calls(server, n, run):
    """Wait until so many calls have come."""
    while len(server.calls) < n:
        assert run.poll() is None, run.communicate()
        try:
            run.wait(0.02)
        except subprocess.TimeoutExpired:
            continue


@pytest.mark.parametrize("remembers", [True, False], ids=["by-key", "without-keys"])
def test_a_kill_in_the_middle_of_a_call_loses_nothing_and_pays_nothing_twice(remembers):
    done_before = 2

    def slow(question, labels):
        if len(server.calls) == done_before + 1:
            server.gate.clear()  # this call is billed, and its reply does not leave
        return said(question, labels)

    with ModelServer(slow, remembers=remembers).running() as server:
        run = started(server, "-o", "out.jsonl")
        wait_for_calls(server, done_before + 1, run)
        run.send_signal(signal.SIGKILL)
        run.communicate()
        assert not Path("out.jsonl").exists()
        server.gate.set()
        text = done(*model(server, "--send-text", "-o", "out.jsonl"))
        assert "1 call had been cut off and may have been paid without a reply" in text
        names = [headers["idempotency-key"] for headers in map(_lower, server.headers)]
        # The replies that came are not asked for again; the call that was cut off is sent again
        # under its own name, which an endpoint that knows such names does not bill again.
        assert sorted(Counter(names).values()) == [1, 1, 1, 2]
        assert names[done_before] == names[done_before + 1]
        assert len(server.bills) == (4 if remembers else 5)
    with ModelServer(said).running() as other:
        Path("goldspan-replies").rename("old-replies")
        done(*model(other, "--send-text", "-o", "whole.jsonl"))
    assert Path("whole.jsonl").read_bytes() == Path("out.jsonl").read_bytes()


def _lower(headers):
    return {key.lower(): value for key, value in headers.items()}


def test_ctrl_c_waits_for_calls_that_were_sent_and_keeps_their_replies(server):
    Path("news.txt").write_text("".join(f"Number {n}\n" for n in range(200)))
    server.gate.clear()
    run = started(server, "-o", "out.jsonl")
    wait_for_calls(server, 1, run)
    run.send_signal(signal.SIGINT)
    server.gate.set()
    out, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    assert "interrupted" in err
    assert out == ""
    n = len(server.bills)
    assert 1 <= n < 200
    done(*model(server, "--send-text", "-o", "out.jsonl", "--limit", f"{n + 3}"))
    assert len(server.bills) == n + 3


def test_two_processes_at_once_pay_once(server):
    server.gate.clear()
    runs = [started(server, "-o", f"{n}.jsonl") for n in range(2)]
    wait_for_calls(server, 1, runs[0])
    server.gate.set()
    for run in runs:
        _, err = run.communicate(timeout=120)
        assert run.returncode == 0, err
    assert len(server.bills) == 4
    assert Path("0.jsonl").read_bytes() == Path("1.jsonl").read_bytes()
