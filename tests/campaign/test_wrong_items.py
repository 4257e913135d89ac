"""`select.errors`: what the model gets wrong, found out of fold, kept, and what is picked by it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from campaign.tiny import (
    SPANS,
    campaign_of,
    inputs_of,
    ledger_of,
    plan_of,
    toml,
    write_files,
    write_spans,
)
from goldspan.campaign import Campaign, CampaignRecord, Steps, read_plan, write_exports
from goldspan.campaign.model import make_model
from goldspan.campaign.outlook import Evaluating
from goldspan.campaign.protocols import Evaluation, Labelled
from goldspan.campaign.summary import plan_warnings
from goldspan.cli import app
from goldspan.errors import FaultsError
from goldspan.selection import Pool, select_items
from goldspan.selection.schedule import read_selector

BY = "coverage, then margin(errors=2), 20% random"
TOLD = {
    "select": {"by": BY, "errors": True, "batch": 7},
    "crowd": {"workers": ["flip(0.35) x5"]},
    "evaluate": {"folds": 3},
}


@pytest.fixture
def folder(tmp_path):
    write_files(tmp_path, 28)
    return tmp_path


def by_hand(campaign, folds):
    """Return the wrong and the right items, every fold labelled by what the others teach."""
    known, pool = campaign.progress.labelled, campaign.inputs.pool
    found = {"right": [], "wrong": []}
    for fold in range(folds):
        mine = [n for n in range(len(known.items)) if n % folds == fold]
        rest = [n for n in range(len(known.items)) if n % folds != fold]
        model = make_model("naive-bayes", {}, pool, 3, None, single=True)
        trained = model.train(known.items[rest], [known.labels[n] for n in rest])
        guesses = trained.predict(pool, known.items[mine])
        for n, guess in zip(mine, guesses, strict=True):
            is_wrong = guess != list(known.labels[n])
            name = campaign.inputs.ids[int(known.items[n])]
            found["wrong" if is_wrong else "right"].append(name)
    return {key: sorted(names) for key, names in found.items()}


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory):
    """A campaign that ran through, and by round what is wrong by hand, what is kept, the model."""
    folder, rounds = tmp_path_factory.mktemp("told"), []
    write_files(folder, 28)

    def look(event):
        if type(event).__name__ == "RoundEnded":
            kept = campaign.ledger.records("errors")[f"r{event.round:03d}"]
            rounds.append((by_hand(campaign, 3), kept, campaign.progress.trained.model))

    campaign = campaign_of(folder, **TOLD)
    campaign.on_event = look
    campaign.run()
    return campaign, rounds


def test_wrong_is_what_other_folds_label_otherwise_than_the_crowd(looked_at):
    campaign, rounds = looked_at
    seen = [by_hand for by_hand, _, _ in rounds]
    assert len(seen) == 5  # the last asks doubtful items again
    kept = [{key: sorted(names) for key, names in one.items()} for _, one, _ in rounds]
    assert kept == seen
    assert any(one["wrong"] for one in seen)
    facts = CampaignRecord.of(campaign.ledger).rounds
    assert [one["wrong"]["items"] for one in facts] == [len(one["wrong"]) for one in seen]
    assert [one["wrong"]["of"] for one in facts] == [7, 14, 21, 28, 28]


def test_the_next_items_are_those_that_the_rule_picks_by_the_kept_errors(looked_at):
    campaign, rounds = looked_at
    picks, pool = list(campaign.ledger.records("picks").values()), Pool.of(campaign.inputs.pool)
    differ = 0
    for number in (2, 3):
        taken = [item for one in picks[: number - 1] for item in one["items"]]
        _, wrong, model = rounds[number - 2]
        shares = {**dict.fromkeys(wrong["right"], 0), **dict.fromkeys(wrong["wrong"], 1)}
        given = {"labelled": taken, "model": model, "n": 7, "random_state": 3}
        found = select_items(pool, BY, **given, errors=shares)
        assert found.item_ids == list(picks[number - 1]["items"])
        differ += select_items(pool, BY, **given).item_ids != found.item_ids
    assert differ


def test_gold_has_no_say(folder):
    answers = ["task,worker,label"]
    whole = campaign_of(folder, folder / "whole.sqlite", crowd=TOLD["crowd"])
    whole.run()
    crowd = whole.progress.crowd
    for name in crowd.item_ids.to_pylist():
        answers += [f"{name},{who},{tags[0]}" for who, tags in crowd.answers_of(name).items()]
    (folder / "answers.csv").write_text("\n".join(answers) + "\n")
    lines = (folder / "truth.csv").read_text().splitlines()
    turned = [
        line.replace("rain", "x").replace("sun", "rain").replace("x", "sun") for line in lines
    ]
    (folder / "turned.csv").write_text("\n".join(turned) + "\n")
    found = []
    for file in ("truth.csv", "turned.csv"):
        replay = {"source": "replay", "answers": "answers.csv", "workers": [], "truth": file}
        campaign = campaign_of(folder, folder / f"{file}.sqlite", **{**TOLD, "crowd": replay})
        campaign.run()
        records = campaign.ledger.records
        found.append((records("errors"), records("picks")))
    assert found[0] == found[1]


class Kill(BaseException):
    """Ends the process at a record."""


def test_killed_at_any_record_it_picks_the_same_and_ends_with_the_same_bytes(looked_at, tmp_path):
    def files(campaign, out):
        return {path.name: path.read_bytes() for path in write_exports(campaign, tmp_path / out)}

    whole, _ = looked_at
    inputs = whole.inputs
    ledger = ledger_of(inputs, tmp_path / "killed.sqlite")
    record, killed = ledger.record, set()

    def breaking(kind, name, *rest):
        is_new = kind in {"errors", "picks", "round", "stop"} and (kind, name) not in killed
        killed.add((kind, name))
        if is_new and len(killed) % 2:
            raise Kill
        record(kind, name, *rest)
        if is_new:
            raise Kill

    ledger.record = breaking
    while True:
        campaign = Campaign(inputs, ledger)
        try:
            campaign.run()
            break
        except Kill:
            continue
    assert len(killed) > 15
    assert files(campaign, "killed") == files(whole, "whole")


def test_without_the_key_nothing_is_kept_and_the_plan_has_its_old_hash(folder):
    plain, off = inputs_of(folder), inputs_of(folder, select={"errors": False})
    assert plain.key == off.key != inputs_of(folder, select={"errors": True}).key
    assert "errors" not in plain.plan.model_dump()["select"]
    campaign = campaign_of(folder)
    campaign.run()
    assert not campaign.ledger.records("errors")
    assert "wrong" not in CampaignRecord.of(campaign.ledger).rounds[0]


def test_spans_of_a_slice_are_not_looked_at_and_of_other_items_they_are(tmp_path):
    write_spans(tmp_path, 24)
    made = {
        **SPANS, "evaluate": {"by": "slice", "folds": 4},
        "select": {"by": "coverage, then mnlp, 50% random", "errors": True, "batch": 18},
    }  # fmt: skip
    campaign = campaign_of(tmp_path, **made)
    campaign.run()
    progress = campaign.progress
    for kept in campaign.ledger.records("errors").values():
        looked = {*kept["right"], *kept["wrong"]}
        assert looked
        assert not looked & progress.drawn
    assert looked == {campaign.inputs.ids[n] for n in progress.labelled.items} - progress.drawn


@pytest.mark.parametrize("by", ["cv", "test", "slice"])
def test_every_way_to_evaluate_names_the_wrong_items(folder, by):
    (folder / "test.jsonl").write_text('{"text": "wet and wet", "label": "rain"}\n')
    evaluate = {"by": by, "folds": 2, **({"file": "test.jsonl"} if by == "test" else {})}
    inputs = inputs_of(folder, evaluate=evaluate, select={"by": "random", "errors": True})
    items, labels = np.arange(20), [["rain" if n % 2 else "sun"] for n in range(20)]
    drawn = np.arange(20) % 4 == 0

    class First:
        """Labels everything as the first item that it learned from."""

        def train(self, _, learned):
            self.label = learned[0]
            return self

        def predict(self, _, asked):
            return [list(self.label)] * len(asked)

    found = Evaluating(inputs).measure(First(), Labelled(items, labels, drawn))
    seen = [n for n in range(20) if by != "slice" or not drawn[n]]
    expected = [None] * 20
    for fold in range(2):
        mine, rest = ([n for k, n in enumerate(seen) if (k % 2 == fold) == own] for own in (1, 0))
        for n in mine:
            expected[n] = labels[n] != labels[rest[0]]
    assert list(found.wrong) == expected


def test_a_step_of_ones_own_that_does_not_say_what_is_wrong_is_no_fault(folder):
    class Silent:
        def measure(self, *_):
            return Evaluation()

    inputs = inputs_of(folder, **TOLD)
    ledger = ledger_of(inputs, folder / "campaign.sqlite")
    campaign = Campaign(inputs, ledger, Steps.of(inputs, ledger, evaluate=Silent()))
    assert campaign.run().rule == "pool"
    assert ledger.records("errors")["r001"] == {"right": [], "wrong": []}


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"select": {"by": "random, then near-errors"}}, "near-errors needs to know what the mod"),
        ({"select": {"errors": True}, "model": {"name": "none"}}, "select.errors: there is no mo"),
        ({"select": {"errors": 1}}, "select.errors: must be true or false"),
    ],
)
def test_plans_that_make_no_sense_are_refused(sections, words):
    with pytest.raises(FaultsError, match=words):
        read_plan(plan_of(**sections))


@pytest.mark.parametrize(
    ("by", "heeds"),
    [
        ("random", False),
        ("mnlp, then random", False),  # the first round knows of no errors
        ("margin(errors=0), then random, 30% entropy(errors=0)", False),
        ("coverage for 2 rounds, then random", True),
        ("random, then random, 20% coverage", True),
        ("random, then near-errors", True),
        ("density", True),
        ("coverage-paper", True),
        ("margin", True),
    ],
)
def test_errors_that_no_rule_heeds_are_said_before_anything_is_spent(folder, by, heeds):
    assert read_selector(by).heeds_errors == heeds
    warnings = plan_warnings(inputs_of(folder, select={"by": by, "errors": True}))
    assert len(warnings) == (not heeds)
    assert all(f"select.errors: {by!r} does not heed" in one for one in warnings)
    if "near-errors" not in by:
        assert not plan_warnings(inputs_of(folder, select={"by": by}))


def test_plan_check_warns_of_errors_that_nothing_heeds(folder):
    sections = {"select": {"by": "random", "errors": True}}
    (folder / "plan.toml").write_text(toml(plan_of(**sections)))
    told = CliRunner().invoke(app, ["plan", "check", str(folder / "plan.toml")])
    assert told.exit_code == 0, told.output
    assert "warning: select.errors: 'random' does not heed" in " ".join(told.stdout.split())
    plain = CliRunner().invoke(app, ["plan", "check", str(folder / "plan.toml"), "--json"])
    assert len(json.loads(plain.stdout)["warnings"]) == 1


def test_a_rule_by_the_errors_alone_runs(folder):
    select = {"by": "random, then near-errors, 20% coverage(errors_as=target)", "errors": True}
    campaign = campaign_of(folder, select={**select, "batch": 7})
    assert campaign.run().rule == "pool"
    rules = [rule for one in campaign.ledger.records("picks").values() for rule in one["rules"]]
    assert {"random", "near-errors", "coverage"} == set(rules)
    assert json.dumps(campaign.ledger.records("errors"))
