"""Campaigns of several layers: nested spans, a scale and any number of labels."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from campaign.tiny import ends_with_the_same_log, ledger_of, plan_of
from goldspan import read_layers, score
from goldspan.campaign import Campaign, read_inputs, read_plan
from goldspan.campaign.judging import AskingByGain, gold_free_warnings, score_test
from goldspan.campaign.results import CampaignRecord, write_exports
from goldspan.crowd.questions import (
    AnsweredItem,
    Question,
    Questions,
    answers_of_labels,
    crowds_of,
)
from goldspan.errors import FaultsError, InputError
from goldspan.store import open_ledger
from goldspan.store.verify import verify
from goldspan.workers.stopping import item_gain, learn_habits, posterior_of

LAYERS = [
    {"name": "places", "kind": "spans", "types": ["ORG", "LOC"], "overlapping": True},
    {"name": "mood", "kind": "label", "labels": ["bad", "fair", "good"], "ordinal": True},
    {"name": "topics", "kind": "labels", "labels": ["art", "law", "sport"], "required": False},
]


def write_items(folder, n=16):
    """Write a pool of sentences with nested names, and their gold in all layers."""
    pool, gold = [], []
    for i in range(n):
        text = f"The University of New York praised Kiel {i} ."
        spans = [("ORG", 4, 26), ("LOC", 18, 26), ("LOC", 35, 39)][: 3 - (i % 2)]
        mood, topics = ["bad", "fair", "good"][i % 3], [["art", "law"], [], ["sport"]][i % 3]
        known = [{"type": kind, "start": a, "end": b} for kind, a, b in spans]
        layers = {"places": known, "mood": [mood], "topics": topics}
        pool.append(json.dumps({"id": f"d{i}", "text": text}))
        gold.append(json.dumps({"item": f"d{i}", "text": text, "layers": layers}))
    (folder / "pool.jsonl").write_text("\n".join(pool) + "\n")
    (folder / "gold.jsonl").write_text("\n".join(gold) + "\n")


def layered(**sections):
    """Return a plan of several layers with a method that is quick for all of them."""
    own = {
        "task": {"labels": [], "layers": LAYERS},
        "crowd": {"truth": "gold.jsonl", "workers": ["flip(0.05) x4", "flip(0.7)"]},
        "select": {"by": "random", "batch": 8},
        "aggregate": {"method": "ibcc"},
        "model": {"name": "hmm"},
    }
    return plan_of({**own, **sections})


def inputs_of(folder, **sections):
    write_items(folder)
    return read_inputs(read_plan(layered(**sections)), folder)


def run(folder, **sections):
    inputs = inputs_of(folder, **sections)
    campaign = Campaign(inputs, ledger_of(inputs, folder / "c.db"))
    campaign.run()
    return campaign


def test_a_campaign_labels_all_layers_and_leaves_out_who_guesses(tmp_path):
    campaign = run(tmp_path, control={"n": 2, "gold": "gold.jsonl"})
    files = [one.name for one in write_exports(campaign, tmp_path / "out")]
    assert files[:3] == ["layers.jsonl", "tagger.goldspan", "bill.csv"]
    found = read_layers(tmp_path / "out" / "layers.jsonl")
    truth = read_layers(tmp_path / "gold.jsonl", [one["name"] for one in LAYERS])
    assert {name: score(truth[name], found[name]).f1 > 0.9 for name in found} == dict.fromkeys(
        ("places", "mood", "topics"), True
    )
    assert set(campaign.ledger.records("bar")) == {"w5"}
    record = CampaignRecord.of(campaign.ledger, campaign.progress.result)
    said = record.workers["w1"]["said"]
    assert all(f"{one['name']}: " in said for one in LAYERS)
    assert record.measure == "F1"
    assert record.money["fixed"] == record.counts["items"] * 4 * 50_000


def test_answers_are_kept_by_layer_and_the_store_can_be_verified(tmp_path):
    campaign = run(tmp_path)
    (row, *_) = campaign.ledger.given("d0")
    assert list(row.labels) == ["mood", "places", "topics"]  # as canonical JSON has keys
    assert all(set(span) == {"start", "end", "type"} for span in row.labels["places"])
    crowds = campaign.ledger.layers()
    assert crowds["places"].wholes is not None
    assert {len(one.worker_ids) for one in crowds.values()} == {5}
    assert verify(campaign.ledger.database).is_whole
    assert open_ledger(tmp_path / "c.db").tagset == campaign.inputs.plan.tagset


def test_a_run_that_is_broken_off_goes_on_to_the_same_log(tmp_path):
    ends_with_the_same_log(tmp_path, inputs_of(tmp_path), step=29)


def test_an_item_is_open_while_a_layer_that_counts_is(tmp_path):
    campaign = run(tmp_path, redundancy={"min": 2, "max": 2})
    aggregate, result = campaign.steps.aggregate, campaign.progress.result
    items = campaign.progress.crowd.item_ids.to_pylist()
    limits = campaign.inputs.plan.redundancy.model_copy(update={"max": 4})

    def opened(*weights):
        layers = tuple(
            one.model_copy(update={"weight": weight})
            for one, weight in zip(campaign.inputs.plan.task.layers, weights, strict=True)
        )
        task = campaign.inputs.plan.task.model_copy(update={"layers": layers})
        plan = campaign.inputs.plan.model_copy(update={"task": task, "redundancy": limits})
        return set(replace(aggregate, plan=plan).open_items(campaign.progress.crowd, result, items))

    alone = [opened(1, 0, 0), opened(0, 1, 0), opened(0, 0, 1)]
    assert opened(1, 1, 1) == set.union(*alone)
    assert len({frozenset(one) for one in alone}) > 1


def test_rounds_by_gain_add_up_the_layers_by_weight(tmp_path):
    campaign = run(tmp_path, redundancy={"by": "gain", "min": 2, "max": 4})
    assert any(one.get("more") for one in campaign.ledger.records("picks").values())
    inputs, result, crowd = campaign.inputs, campaign.progress.result, campaign.progress.crowd
    asked = []

    class Everybody:
        def offers(self, items):
            asked.extend(items)
            return campaign.steps.label.offers(items)

    AskingByGain(inputs, campaign.ledger).ask(crowd, result, Everybody(), 10**9)
    sums = np.zeros(crowd.n_items)
    place = {name: n for n, name in enumerate(crowd.item_ids.to_pylist())}
    for one in result.layers.values():
        habits = learn_habits(one)
        gains = item_gain(posterior_of(one, habits), one.crowd.offsets, habits.mean)
        ids = one.crowd.item_ids if one.crowd.wholes is None else one.crowd.wholes
        for name, gain in zip(ids.to_pylist(), gains.tolist(), strict=True):
            sums[place[name]] += gain
    told = np.diff(crowd.by_item.bounds)
    best = [n for n in np.argsort(-sums, kind="stable").tolist() if told[n] < 4]
    assert asked == [crowd.item_ids[n].as_py() for n in best]


def test_the_confidence_of_an_item_is_that_all_its_layers_are_right(tmp_path):
    result = run(tmp_path).progress.result
    for n, name in enumerate(result.crowd.item_ids.to_pylist()):
        each = 1.0
        for one in result.layers.values():
            ids = one.crowd.item_ids if one.crowd.wholes is None else one.crowd.wholes
            own = [
                float(p) for i, p in zip(ids.to_pylist(), one.confidence, strict=True) if i == name
            ]
            each *= float(np.prod(own))
        assert result.confidence[n] == pytest.approx(each, abs=1e-6)


def test_answers_come_back_in_files(tmp_path):
    crowd = {"source": "files", "truth": None, "workers": []}
    inputs = inputs_of(tmp_path, crowd=crowd, control=None)
    ledger = ledger_of(inputs, tmp_path / "c.db")
    waiting = Campaign(inputs, ledger).run()
    lines = (tmp_path / "tasks" / "tasks-r001.1.jsonl").read_text().splitlines()
    tasks = [json.loads(line) for line in lines]
    assert [one["name"] for one in tasks[0]["layers"]] == ["places", "mood", "topics"]
    answer = {"places": [{"start": 3, "end": 5, "type": "LOC"}], "mood": "good", "topics": []}
    rows = [
        {"campaign": task["campaign"], "worker": who, "item": task["item"], "labels": answer}
        for task in tasks
        for who in ("ann", "bob")
    ]
    path = tmp_path / "answers" / "a.jsonl"
    path.write_text(json.dumps({**rows[0], "labels": {**answer, "mood": "awful"}}) + "\n")
    with pytest.raises(FaultsError, match="mood: 'awful' is not one of bad, fair, good"):
        Campaign(inputs, ledger).run()
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    after = Campaign(inputs, ledger).run()
    assert after.answers != waiting.answers
    assert len(ledger.crowd().latest) == 16


def test_a_question_that_may_be_left_out_can_have_no_answer_at_all(tmp_path):
    crowd = {"source": "files", "truth": None, "workers": []}
    inputs = inputs_of(
        tmp_path,
        task={
            "labels": [],
            "layers": [*LAYERS[:2], {**LAYERS[1], "name": "tone", "required": False}],
        },
        crowd=crowd,
    )
    ledger = ledger_of(inputs, tmp_path / "c.db")
    Campaign(inputs, ledger).run()
    for who in ("ann", "bob"):
        for item in ledger.slots()["item"].to_pylist():
            labels = {"places": [], "mood": "bad", "tone": None}
            ledger.submit(f"{who}{item}", who, item, labels, 10**12)
    campaign = Campaign(inputs, ledger)
    campaign.run()
    assert set(campaign.progress.result.layers) == {"places", "mood"}
    assert campaign.progress.labelled.labels[0] == ["O"] * 9


def test_of_any_number_of_labels_alone_no_model_is_tried_and_items_are_counted(tmp_path):
    campaign = run(tmp_path, task={"labels": [], "layers": LAYERS[2:]}, model={"name": "auto"})
    counts = [one["items"] for one in campaign.ledger.records("round").values()]
    assert counts == [8, 16]


def test_known_labels_are_not_held_against_the_answers(tmp_path):
    crowd = {"source": "files", "truth": None, "workers": []}
    inputs = inputs_of(tmp_path, crowd=crowd, control={"n": 2, "gold": "gold.jsonl"})
    ledger = ledger_of(inputs, tmp_path / "c.db")
    campaign = Campaign(inputs, ledger)
    campaign.run()
    short = {"places": [{"start": 1, "end": 2, "type": "ORG"}], "mood": "bad", "topics": []}
    for who in ("ann", "bob"):
        for item in ledger.slots()["item"].to_pylist():
            ledger.submit(f"{who}{item}", who, item, short, 10**12)
    said = gold_free_warnings(campaign.progress.result, None)
    assert [line for line in said if "longest span" in line] == []


def test_a_test_counts_spans_and_labels_of_all_layers():
    span = {"start": 0, "end": 2, "type": "LOC"}
    truth = {"places": [span], "mood": "bad", "topics": ["art", "law"]}
    given = {"places": [{**span, "end": 1}], "mood": "bad", "topics": ["art"]}
    assert score_test([truth], [truth]) == (4, 4)
    assert score_test([truth], [given]) == (2, 5)
    assert score_test([truth], [[]]) == (0, 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": ["a", "b"]}, "belong into"),
        ({"layers": [LAYERS[0], {**LAYERS[0], "name": "b"}]}, "one layer of spans at most"),
        ({"layers": [LAYERS[1], LAYERS[1]]}, "a name appears twice"),
        ({"layers": [{**LAYERS[1], "overlapping": True}]}, "mood: overlapping belongs to spans"),
        ({"layers": [{**LAYERS[2], "ordinal": True}]}, "topics: ordinal belongs to"),
        ({"layers": [{**LAYERS[0], "labels": ["x"]}]}, "nothing else to choose from"),
        ({"layers": [{**LAYERS[1], "labels": ["x"]}]}, "at least two labels"),
        (
            {"layers": [{**LAYERS[1], "labels": ["x", "y "]}]},
            "begins or ends with a blank in 'x', 'y '",
        ),
        ({"layers": [{**LAYERS[1], "weight": 0.0}]}, "weight is 0 everywhere"),
        ({"layers": [{**LAYERS[1], "weight": -1.0}]}, "weight: must be at least 0"),
        ({"layers": [{**LAYERS[1], "weight": float("inf")}]}, "weight: Input should be a finite"),
        ({"layers": [{**LAYERS[1], "kind": "score"}]}, "kind: must be 'spans', 'label' or"),
    ],
)
def test_what_contradicts_itself_is_refused(change, message):
    plan = layered()
    plan["task"] = {**plan["task"], **change}
    with pytest.raises(FaultsError, match=message):
        read_plan(plan)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([{**LAYERS[0], "types": ["ORG", "LOC", "PER"]}, *LAYERS[1:]], "began, .* not: places"),
        (LAYERS[:2], "these do not: topics"),
        ([*LAYERS, {**LAYERS[1], "name": "tone"}], r"layers\.tone was not set and is {"),
        (LAYERS[::-1], r"\(order\) was \['places', 'mood', 'topics'\] and is \['topics'"),
        ([*LAYERS[:2], {**LAYERS[2], "weight": 0.5}], r"topics\.weight was 1\.0 and is 0\.5 "),
    ],
)
def test_layers_stay_as_they_began_and_it_is_told_which_do_not(tmp_path, layers, message):
    crowd = {"source": "files", "truth": None, "workers": []}

    def go(each):
        inputs = inputs_of(tmp_path, crowd=crowd, task={"labels": [], "layers": each})
        Campaign(inputs, ledger_of(inputs, tmp_path / "c.db")).run()

    go(LAYERS)
    with pytest.raises(InputError, match=message):
        go(layers)


def test_faults_of_an_answer_name_the_layer():
    asked = Questions((Question("mood", "label", ("bad", "good")), Question("x", "labels", ("a",))))
    for given, message in (
        ({"mood": "odd", "x": ["a"]}, "mood: 'odd' is not one of bad, good"),
        ({"x": ["a"]}, "mood: choose one of bad, good"),
        ({"mood": "bad", "x": []}, "x: choose one of a"),
        ({"mood": "bad", "x": ["a"], "y": 1}, "'y' is not one of mood, x"),
    ):
        with pytest.raises(ValueError, match=message):
            asked.clean(given, 1)
    places = Questions((Question("places", "spans", ("LOC",)),))
    for span in ({"start": 0, "end": 9, "type": "LOC"}, {"start": 0}, {"start": 1.5}):
        with pytest.raises(ValueError, match=r"places: .*span"):
            places.clean({"places": [span]}, 1)


def test_gold_questions_are_items_of_which_all_layers_are_known(tmp_path):
    write_items(tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "gold.jsonl").read_text().splitlines()]
    for row in rows[3:]:
        del row["layers"]["mood"]
    (tmp_path / "some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    plan = layered(control={"n": 3, "gold": "some.jsonl"})
    assert sorted(read_inputs(read_plan(plan), tmp_path).control) == ["d0", "d1", "d2"]
    plan["control"]["n"] = 4
    with pytest.raises(FaultsError, match=r"holds labels of 3 items, and control\.n is 4"):
        read_inputs(read_plan(plan), tmp_path)


def test_known_labels_may_be_one_each_and_null_is_not_known(tmp_path):
    write_items(tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "gold.jsonl").read_text().splitlines()]
    for n, row in enumerate(rows):
        row["layers"]["topics"] = ["art"] if n < 3 else None
    (tmp_path / "some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    inputs = read_inputs(read_plan(layered(control={"n": 3, "gold": "some.jsonl"})), tmp_path)
    topics = {name: answer["topics"] for name, answer in inputs.control.items()}
    assert topics == {"d0": ["art"], "d1": ["art"], "d2": ["art"]}


def test_a_span_that_two_parts_have_is_in_the_answer_once():
    question = Questions((Question("places", "spans", ("ORG", "LOC"), overlapping=True),))
    span = {"start": 0, "end": 2, "type": "ORG"}
    inner = {"start": 1, "end": 2, "type": "LOC"}
    item = AnsweredItem("i", ("New", "York"), [("a", {"places": [span, inner]}, {})])
    crowd = crowds_of(question, [item], ["a"])["places"]
    codes = np.tile([crowd.tagset.index["B-ORG"], crowd.tagset.index["I-ORG"]], 2).astype(np.int16)
    found = answers_of_labels({"places": crowd}, {"places": codes}, lambda _: (item.tokens, [0, 4]))
    assert found == {"i": {"places": [span]}}
