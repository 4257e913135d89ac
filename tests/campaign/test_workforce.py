"""The source "mixed": several kinds of workers in one plan, each with a price of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from campaign.tiny import (
    SPANS,
    Break,
    Breaking,
    campaign_of,
    ends_with_the_same_log,
    inputs_of,
    ledger_of,
    plan_of,
    toml,
    write_files,
    write_spans,
)
from cli.test_cli import goldspan_run
from examples.model_server import ModelServer, capitals
from goldspan.annotators.python import PythonCallable
from goldspan.campaign import Campaign, CampaignRecord, read_plan
from goldspan.campaign.summary import describe_plan
from goldspan.errors import FaultsError
from goldspan.store import open_ledger
from goldspan.store.verify import faults_of

ANN = {"id": "ann", "kind": "simulated", "worker": "flip(0.1)"}
BEN = {"id": "ben", "kind": "simulated", "worker": "flip(0.2)"}
RULES = {
    "id": "rules", "kind": "python", "call": "campaign.rules:weather",
    "prices": {"per_answer": "0.001"},
}  # fmt: skip
MODEL = {
    "id": "small", "kind": "llm", "base_url": "http://127.0.0.1:1/v1", "model": "small-1",
    "prices": {"per_thousand_input": "0.0002", "per_thousand_output": "0.0008"},
}  # fmt: skip
TEAM = [ANN, BEN, RULES]


def crowd(*entries, **more):
    """The crowd of a plan."""
    return {"source": "mixed", "truth": "truth.csv", "workers": list(entries), **more}


@pytest.fixture
def folder(tmp_path):
    write_files(tmp_path)
    return tmp_path


def answered(ledger):
    found = ledger.crowd()
    return {name: set(found.answers_of(name)) for name in found.item_ids.to_pylist()}


def small(folder, place=None, entries=TEAM, **sections):
    sections = {"redundancy": {"max": 3}, **sections}
    return campaign_of(folder, place, crowd=crowd(*entries), **sections)


# --------------------------------------------------------------------------------------------------
# The plan.


def test_the_source_of_entries_is_mixed_by_itself():
    plan = read_plan(plan_of(crowd={**crowd(*TEAM), "source": "mixed"}, redundancy={"max": 3}))
    made = plan_of(crowd=crowd(*TEAM), redundancy={"max": 3})
    del made["crowd"]["source"]
    assert read_plan(made) == plan
    assert [entry.id for entry in plan.workforce] == ["ann", "ben", "rules"]
    assert [entry.tariff.answer_micro for entry in plan.workforce] == [50_000, 50_000, 1_000]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (crowd(), "crowd.workers: is missing"),
        (crowd(*TEAM, source="web"), "leave it out"),
        (crowd(*TEAM, {**RULES}), "the id 'rules' appears twice"),
        (crowd(*TEAM, {"id": "x", "kind": "oracle"}), "unknown kind of worker 'oracle'"),
        (crowd(*TEAM, {"id": "x", "kind": "files"}), 'asked by source = "files"'),
        (crowd(*TEAM, {**RULES, "id": "x", "limit": -1}), "limit must be a number of answers"),
        (crowd(*TEAM, {**RULES, "id": "x", "prices": {"per_hour": 1}}), "unknown price"),
        (crowd(*TEAM, {**ANN, "id": "x", "speed": 3}), "unknown key of kind 'simulated'"),
        (crowd(*TEAM, MODEL), "crowd.send_text: worker small would send the texts"),
        (crowd(ANN, BEN), "there are 2: set overlap = 2 or less"),
        (crowd(*TEAM, {"kind": "people", "names": []}), "names must be a list of names"),
        (crowd(*TEAM, {"kind": "people", "team": 1}), "unknown key 'team' of kind 'people'"),
        (crowd(*TEAM, "flip(0.1)"), "or tables"),
        (crowd(*TEAM, {"id": "x"}), "an entry needs a kind"),
        (crowd(*TEAM, {"id": "x", "kind": ["llm"]}), "an entry needs a kind"),
        (crowd(*TEAM, {"kind": "people", "names": 3}), "names must be a list of names"),
        (crowd(*TEAM, {**RULES, "id": "x", "prices": 3}), "prices must be a table"),
        (crowd(*TEAM, annotators=["eve"]), "crowd.annotators: belongs"),
    ],
)
def test_what_makes_no_sense_is_refused(given, message):
    with pytest.raises(FaultsError) as caught:
        read_plan(plan_of(crowd=given, redundancy={"max": 3}))
    assert message in str(caught.value)


def test_families_of_entries_are_those_of_the_plan():
    two = [{**MODEL, "id": "strict"}, {**MODEL, "id": "loose"}]
    kin = [{**ANN, "family": "house"}, {**BEN, "family": "house"}, {**RULES, "family": "alone"}]
    made = {"crowd": crowd(*kin, *two, send_text=True), "aggregate": {"method": "ds"}}
    found = read_plan(plan_of(**made)).aggregate.families
    assert found == {"ann": "house", "ben": "house", "strict": "small-1", "loose": "small-1"}
    made["aggregate"]["families"] = {"ben": "street"}
    assert read_plan(plan_of(**made)).aggregate.families["ben"] == "street"


def test_tokens_and_money_are_told_before_anything_is_sent(folder):
    inputs = inputs_of(
        folder, crowd=crowd(*TEAM, {**MODEL, "limit": 10}, send_text=True), redundancy={"max": 3}
    )
    lines = describe_plan(inputs)
    assert "worker rules (python): up to 20 answers, for 0.02" in lines
    (line,) = [line for line in lines if line.startswith("worker small (llm, family small-1)")]
    assert "up to 10 answers, about " in line
    assert "tokens sent and" in line
    assert line.endswith(" at most")
    assert "send_text: texts are sent; replies are kept in replies/" in lines
    assert not (folder / "replies").exists()


# --------------------------------------------------------------------------------------------------
# The campaign.


def test_simulated_people_and_a_function_label_a_pool(folder):
    campaign = small(folder)
    assert campaign.run().rule == "pool"
    found = answered(campaign.ledger)
    assert len(found) == 20
    assert all("rules" in workers and len(workers) >= 2 for workers in found.values())
    crowd_ = campaign.ledger.crowd().latest
    ids = campaign.ledger.crowd().worker_ids.to_pylist()
    paid = {ids[w]: c for w, c in zip(crowd_.worker.tolist(), crowd_.cost.tolist(), strict=True)}
    assert paid == {"ann": 50_000, "ben": 50_000, "rules": 1_000}
    totals = campaign.ledger.totals()
    assert (totals.reserved, totals.spent) == (0, sum(crowd_.cost.tolist()))
    campaign.ledger.verify()
    assert faults_of(campaign.ledger.database) == []


def test_no_answer_frees_the_place_for_others(folder):
    shy = {**RULES, "call": "campaign.rules:every_second"}
    campaign = small(folder, entries=[ANN, BEN, shy], redundancy={"max": 2})
    campaign.run()
    found = answered(campaign.ledger)
    assert all(len(workers) == 2 for workers in found.values())
    assert sum("rules" in workers for workers in found.values()) == 10
    assert len(campaign.ledger.skipped_by("rules")) == 10


def test_a_limit_holds(folder):
    campaign = small(folder, entries=[ANN, BEN, {**RULES, "limit": 7}])
    campaign.run()
    assert sum("rules" in workers for workers in answered(campaign.ledger).values()) == 7


def test_gold_questions_are_asked_of_annotators_too(folder):
    control = {"n": 4, "gold": "truth.csv", "share": 0.2}
    campaign = small(folder, control=control)
    campaign.run()
    found = answered(campaign.ledger)
    assert sum("rules" in found.get(item, ()) for item in campaign.inputs.control) == 3


def test_the_cap_holds_and_the_round_ends_with_what_there_is(folder):
    campaign = small(folder, budget={"money": "0.41"})
    assert campaign.run().stop
    totals = campaign.ledger.totals()
    assert totals.reserved == 0
    assert totals.spent <= totals.cap


BATCHED = {
    "redundancy": {"max": 3}, "model": {"name": "none"}, "evaluate": None,
    "select": {"by": "random", "batch": 8, "first": 6}, "stop": {"most_rounds": 2},
}  # fmt: skip


def test_broken_off_at_any_call_it_ends_with_the_same_log(folder):
    shy = {**RULES, "call": "campaign.rules:every_second"}
    control = {"n": 4, "gold": "truth.csv", "share": 0.2}
    inputs = inputs_of(folder, crowd=crowd(ANN, BEN, shy), control=control, **BATCHED)
    ends_with_the_same_log(folder, inputs, 11)


def test_a_function_sees_the_same_batches_after_a_break(folder):
    placed = {**RULES, "call": "campaign.rules:by_place", "batch": 4}
    ends_with_the_same_log(folder, inputs_of(folder, crowd=crowd(ANN, BEN, placed), **BATCHED), 7)


def test_the_saving_is_told_by_the_prices_of_the_workers(folder):
    dear = {**ANN, "prices": {"per_answer": "0.5"}}
    people = {"id": "house", "kind": "people", "names": ["eve", "kim"],
              "prices": {"per_answer": "0.2"}}  # fmt: skip
    campaign = small(folder, entries=[dear, BEN, RULES], redundancy={"max": 2})
    campaign.run()
    record = CampaignRecord.of(campaign.ledger)
    n = record.counts["items"]
    assert record.money["fixed"] == n * (50_000 + 1_000)  # the two who cost least
    assert record.money["everything"] == 20 * 51_000
    assert record.money["saving"] == 1 - record.money["spent"] / record.money["fixed"]
    mixed = small(folder, folder / "page.sqlite", entries=[dear, RULES, people])
    mixed.begin()
    assert CampaignRecord.of(mixed.ledger).money["everything"] == 20 * (1_000 + 2 * 200_000)


KILLED = """
import os, signal, sys
from pathlib import Path
from campaign.test_workforce import *
folder, n = Path(sys.argv[1]), int(sys.argv[2])
inputs = inputs_of(folder, crowd=crowd(ANN, BEN, DRAWN), **BATCHED)
ledger = ledger_of(inputs, folder / "killed.sqlite")
submit, left = ledger.submit, [n]
def killing(key, worker, *args, **more):
    left[0] -= worker == "rules"
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return submit(key, worker, *args, **more)
ledger.submit = killing
Campaign(inputs, ledger).run()
"""
DRAWN = {**RULES, "call": "campaign.rules:drawn", "batch": 4}


def test_what_a_function_answered_before_a_kill_is_not_computed_again(folder, monkeypatch):
    n = 4
    monkeypatch.setenv("DRAWN", str(folder / "drawn.txt"))
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(folder), str(n)], check=False, capture_output=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    inputs = inputs_of(folder, crowd=crowd(ANN, BEN, DRAWN), **BATCHED)
    with open_ledger(folder / "killed.sqlite") as ledger:
        assert sum(row.worker == "rules" for row in ledger.given()) == n - 1
        Campaign(inputs, ledger).run()
        asked = (folder / "drawn.txt").read_text().split()
        assert len(asked) == len(set(asked)) == 14
        assert sum(row.worker == "rules" for row in ledger.given()) == 14


def test_a_function_that_was_changed_is_asked_anew(folder, monkeypatch):
    monkeypatch.setenv("DRAWN", str(folder / "drawn.txt"))
    inputs = inputs_of(folder, crowd=crowd(ANN, BEN, DRAWN), **BATCHED)
    for name, version in (("one", "1"), ("same", "1"), ("other", "2")):
        monkeypatch.setattr(PythonCallable, "version", lambda _, version=version: version)
        with ledger_of(inputs, folder / f"{name}.sqlite") as ledger:
            Campaign(inputs, ledger).run()
    asked = (folder / "drawn.txt").read_text().split()
    assert len(asked) == 2 * 14


# --------------------------------------------------------------------------------------------------
# People beside them.


EVE = {"id": "house", "kind": "people", "names": ["eve"], "prices": {"per_answer": "0.2"}}
ALL = {"id": "anybody", "kind": "people", "limit": 5}


def test_people_take_the_places_that_are_left(folder):
    inputs = inputs_of(folder, crowd=crowd(RULES, EVE, ALL), redundancy={"min": 2, "max": 2})
    assert inputs.plan.crowd.names == ("eve",)
    campaign = Campaign(inputs, ledger_of(inputs, folder / "c.sqlite"))
    waiting = campaign.run()
    assert (waiting.answers, waiting.items) == (10, 10)
    assert "goldspan serve" in waiting.where
    assert all(workers == {"rules"} for workers in answered(campaign.ledger).values())
    n_events = campaign.ledger.n_events
    assert campaign.run().answers == 10  # nothing is asked twice
    assert campaign.ledger.n_events == n_events


def test_people_have_the_price_of_their_entry():
    plan = read_plan(plan_of(crowd=crowd(RULES, EVE, ALL), redundancy={"max": 3}))
    assert plan.entry_of_person("eve").tariff.answer_micro == 200_000
    assert plan.entry_of_person("fay").tariff.answer_micro == 50_000
    assert plan.entry_of_person("fay").limit == 5


def test_it_runs_from_the_command_line(folder):
    made = plan_of(crowd={"truth": "truth.csv"}, redundancy={"max": 3})
    del made["crowd"]["workers"], made["crowd"]["source"]
    entries = "\n".join(
        "[[crowd.workers]]\n"
        + "\n".join(f"{k} = {json.dumps(v)}" for k, v in one.items() if k != "prices")
        + ('\nprices = { per_answer = "0.001" }' if "prices" in one else "")
        for one in TEAM
    )
    (folder / "plan.toml").write_text(f"{toml(made)}\n{entries}\n")
    (folder / "own_rules.py").write_text((Path(__file__).parent / "rules.py").read_text())
    (folder / "plan.toml").write_text(
        (folder / "plan.toml").read_text().replace("campaign.rules:", "own_rules:")
    )
    check = goldspan_run("plan", "check", "plan.toml", "--json", cwd=folder)
    assert [one["most_micro"] for one in json.loads(check.stdout)["workers"]][-1] == 20_000
    words = ("run", "plan.toml", "--out", "out", "--allow-code", "./own_rules.py")
    said = goldspan_run(*words, cwd=folder)
    assert said.returncode == 0, said.stderr
    assert "labelled: 20 of 20 items" in said.stdout
    bill = (folder / "out" / "bill.csv").read_text()
    assert "rules" in bill
    first = {path.name: path.read_bytes() for path in (folder / "out").glob("*.csv")}
    assert goldspan_run(*words, cwd=folder).returncode == 0
    assert {path.name: path.read_bytes() for path in (folder / "out").glob("*.csv")} == first


# --------------------------------------------------------------------------------------------------
# A language model among them, at a server that speaks its protocol.


def capitals_of(question, _labels):
    return capitals(question, ["LOC"])


@pytest.fixture
def places(tmp_path):
    """A plan about places with a model, and the server that it asks."""
    write_spans(tmp_path, 8)
    with ModelServer(capitals_of).running() as server:
        model = {**MODEL, "base_url": server.url, "concurrency": 1}
        sections = {
            **SPANS, "select": {"by": "random", "batch": 8}, "redundancy": {"min": 2, "max": 2},
            "crowd": {**crowd(ANN, model), "truth": "gold.conll", "send_text": True},
            "model": {"name": "none"},
        }  # fmt: skip
        yield tmp_path, server, sections


def test_what_has_no_place_is_kept_without_a_label_and_nothing_placed_is_no_answer(places):
    folder, _, sections = places
    ghost = {"first": 70, "last": 70, "text": "Oz", "label": "LOC"}

    def reply(question, _labels):
        found = capitals_of(question, _labels)
        kept = [one for one in found["spans"] if one["text"] in {"Rome", "Kiel"}]
        return {**found, "spans": [*kept, ghost]}

    with ModelServer(reply).running() as server:
        people = [sections["crowd"]["workers"][0]]
        entry = {**sections["crowd"]["workers"][1], "base_url": server.url}
        sections["crowd"]["workers"] = [*people, entry]
        campaign = campaign_of(folder, **sections)
        campaign.run()
    found = campaign.ledger.counted()
    mine = [labels for (_, who), labels in found.items() if who == "small"]
    assert mine == [[None, None, "B-LOC", None]] * 4
    gone = {one.item for one in campaign.ledger.skipped() if one.worker == "small"}
    assert len(gone) == 4
    assert {item for item, who in found if who == "small"}.isdisjoint(gone)


def test_what_a_model_used_is_paid_and_the_rest_is_free_again(places):
    folder, server, sections = places
    campaign = campaign_of(folder, **sections)
    assert campaign.run().rule == "pool"
    totals = campaign.ledger.totals()
    n_calls = len(server.calls)
    assert (n_calls, totals.reserved) == (8, 0)
    found = campaign.ledger.crowd()
    paid = [row.cost for row in campaign.ledger.given() if row.worker == "small"]
    assert len(paid) == 8
    assert totals.spent == 8 * 50_000 + sum(paid)
    most = [event.body["leases"][0][1] for event in campaign.ledger.events()
            if event.kind == "lease"]  # fmt: skip
    assert all(0 < one < max(most) for one in paid)
    assert "small" in found.worker_ids.to_pylist()
    every = campaign.ledger.records("annotator").values()
    (kept,) = [one for one in every if one["worker"] == "small"]
    assert kept["model"] == "small-1"
    assert kept["prompt"]


def test_a_kill_amid_paid_calls_pays_nothing_twice_and_loses_nothing(places):
    folder, server, sections = places
    whole = campaign_of(folder, folder / "whole.sqlite", **sections)
    whole.run()
    head = whole.ledger.head
    for path in sorted((folder / "replies").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    inputs = whole.inputs
    for n in (9, 14, 17, 20):
        server.calls.clear()
        place = folder / f"{n}.sqlite"
        with ledger_of(inputs, place) as ledger, pytest.raises(Break):
            Campaign(inputs, Breaking(ledger, n, after=False)).run()
        with open_ledger(place) as again:
            Campaign(inputs, again).run()
            assert again.head == head
        assert len(server.calls) == (8 if n == 9 else 0)


def test_a_reply_that_cannot_be_read_is_paid_and_frees_the_place(places):
    folder, server, sections = places
    server.answer = lambda *_: "this is no JSON"
    campaign = campaign_of(folder, **sections)
    campaign.run()
    assert {frozenset(w) for w in answered(campaign.ledger).values()} == {frozenset({"ann"})}
    totals = campaign.ledger.totals()
    assert totals.reserved == 0
    assert totals.spent > 8 * 50_000
    campaign.ledger.verify()


# --------------------------------------------------------------------------------------------------
# Tasks of several layers.


SIGN = {
    "name": "words", "kind": "spans", "types": ["SIGN"], "instructions": "Mark what says so.",
}  # fmt: skip
SKY = {"name": "sky", "kind": "label", "labels": ["rain", "sun"]}
OF_LAYERS = {
    "task": {"layers": [SIGN, SKY], "labels": []}, "model": {"name": "none"}, "evaluate": None,
    "stop": {"most_rounds": 2}, "redundancy": {"max": 2},
}  # fmt: skip
TWO = [{**RULES, "id": name, "call": "campaign.rules:by_layer"} for name in ("one", "two")]


def test_functions_and_a_model_answer_several_layers(folder):
    rows = [json.loads(line) for line in (folder / "pool.jsonl").read_text().splitlines()]
    gold = [
        {"item": row["id"], "text": row["text"], "layers": {"words": [], "sky": ["sun"]}}
        for row in rows
    ]
    (folder / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in gold))

    def reply(question, _labels):
        first = question["tokens"][0].removeprefix("0:")
        span = {"first": 0, "last": 0, "text": first, "label": "SIGN"}
        return {"item": question["item"], "layers": {"words": [span], "sky": "rain"}}

    with ModelServer(reply).running() as server:
        entries = [*TWO, {**MODEL, "base_url": server.url, "examples": 1}]
        made = {"control": {"n": 2, "gold": "gold.jsonl"}, "redundancy": {"min": 3, "max": 3}}
        made |= {"crowd": crowd(*entries, truth=None, send_text=True)}
        campaign = campaign_of(folder, **{**OF_LAYERS, **made})
        campaign.run()
        system, _, example = (one["content"] for one in server.calls[0]["messages"][:3])
    found = campaign.ledger.counted()
    sign = [{"start": 0, "end": 1, "type": "SIGN"}]
    assert {by for _, by in found} == {"one", "two", "small"}
    assert all(one["words"] == sign for one in found.values())
    assert {one["sky"] for (_, by), one in found.items() if by == "small"} == {"rain"}
    assert {one["sky"] for (_, by), one in found.items() if by == "one"} == {"rain", "sun"}
    assert "words: Mark what says so." in system
    assert json.loads(example)["layers"] == {"words": [], "sky": "sun"}
    assert faults_of(campaign.ledger.database) == []


def test_several_layers_broken_off_end_with_the_same_log(folder):
    ends_with_the_same_log(
        folder, inputs_of(folder, **OF_LAYERS, crowd=crowd(*TWO, truth=None)), 17
    )


def test_who_answers_one_question_is_refused_for_several():
    probe = {**TWO[0], "id": "p", "probe": True}
    with pytest.raises(FaultsError) as caught:
        read_plan(plan_of(**OF_LAYERS, crowd=crowd(*TWO, ANN, probe)))
    said = "crowd.workers: worker {}: the task has several questions, and {}"
    assert said.format("ann", "the kind 'simulated' answers one") in str(caught.value)
    assert said.format("p", "a probe finds who pastes answers to one") in str(caught.value)
