"""Versions of the label set and guideline: what may change while a campaign runs, and its marks."""

from __future__ import annotations

import csv
import json

import pytest

import goldspan
from campaign.tiny import (
    SPANS,
    Break,
    Breaking,
    inputs_of,
    ledger_of,
    telling,
    write_files,
    write_spans,
)
from goldspan.campaign import Campaign, CampaignRecord, changes, write_exports
from goldspan.crowd import write_crowd
from goldspan.errors import InputError

RULES = "Label the weather."
WEB = {"source": "web", "truth": None, "workers": []}


@pytest.fixture
def folder(tmp_path):
    write_files(tmp_path)
    return tmp_path


def plan_of(folder, labels=("rain", "sun"), text=RULES):
    return inputs_of(
        folder, task={"labels": list(labels)}, page={"instructions": text}, crowd=WEB
    )  # fmt: skip


def start(folder, labels=("rain", "sun"), text=RULES, wrap=lambda ledger: ledger):
    """Start a campaign of people in a browser, or start it again; return it and what it told."""
    inputs, told = plan_of(folder, labels, text), []
    ledger = wrap(ledger_of(inputs, folder / "c.sqlite"))
    campaign = Campaign(inputs, ledger, on_event=telling(told))
    campaign.run()
    return campaign, told


def answer(campaign, worker, item, label):
    now = campaign.steps.label.now()
    assert campaign.ledger.submit(f"{item}-{worker}", worker, item, [label], now).counts


def items_of(campaign):
    return campaign.ledger.slots()["item"].to_pylist()


def marks(ledger):
    """Return the version of every answer by item and worker."""
    crowd = ledger.crowd()
    ids, workers = crowd.item_ids.to_pylist(), crowd.worker_ids.to_pylist()
    columns = (crowd.answers.item, crowd.answers.worker, crowd.answers.guideline)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {(ids[item], workers[worker]): version for item, worker, version in rows}


def test_every_answer_is_marked_with_the_version_in_force_when_it_came(folder):
    campaign, told = start(folder)
    assert told[0].startswith("round 1")
    first, second, third, *_ = items_of(campaign)
    answer(campaign, "ann", first, "rain")
    campaign, told = start(folder, labels=("rain", "fog", "sun"))
    assert told[:2] == [
        "changed: task.labels was ['rain', 'sun'] and is ['rain', 'fog', 'sun']",
        "guideline: version 2 from now on: labels added: fog",
    ]
    answer(campaign, "ann", second, "fog")
    campaign, told = start(folder, labels=("rain", "fog", "sun"), text="Look at the sky.")
    assert told[1] == "guideline: version 3 from now on: the instructions changed"
    answer(campaign, "bob", first, "sun")
    answer(campaign, "bob", third, "fog")
    expected = {(first, "ann"): 1, (second, "ann"): 2, (first, "bob"): 3, (third, "bob"): 3}
    assert marks(campaign.ledger) == expected
    campaign.ledger.close()
    again, told = start(folder, labels=("rain", "fog", "sun"), text="Look at the sky.")
    assert not [line for line in told if "guideline" in line]
    assert marks(again.ledger) == expected
    assert again.ledger.verify() == again.ledger.n_events
    table = CampaignRecord.of(again.ledger).guidelines
    assert [(row["version"], row["answers"]) for row in table] == [(1, 1), (2, 1), (3, 2)]
    assert [row["labels"] for row in table] == [["rain", "sun"], *[["rain", "fog", "sun"]] * 2]
    assert len({row["hash"] for row in table}) == 3
    assert [row["time"] for row in table] == sorted(row["time"] for row in table)


def test_a_changed_answer_is_of_the_version_in_force_when_it_was_changed(folder):
    campaign, _ = start(folder)
    item = items_of(campaign)[0]
    answer(campaign, "ann", item, "rain")
    campaign, _ = start(folder, labels=("rain", "sun", "fog"))
    now = campaign.steps.label.now()
    assert campaign.ledger.change("again", "ann", item, ["fog"], now).counts
    assert marks(campaign.ledger) == {(item, "ann"): 2}


def test_exports_list_the_version_of_every_answer_and_it_comes_back(folder):
    campaign, _ = start(folder)
    first, second, third, *_ = items_of(campaign)
    answer(campaign, "ann", first, "rain")
    campaign, _ = start(folder, labels=("rain", "sun", "fog"))
    answer(campaign, "ann", second, "fog")
    answer(campaign, "ann", third, "sun")
    crowd = campaign.ledger.crowd()
    expected = {(first, "ann"): 1, (second, "ann"): 2, (third, "ann"): 2}
    for name in ("answers.csv", "answers.jsonl", "answers.parquet"):
        assert not write_crowd(crowd, folder / name)
        back = goldspan.read_crowd(folder / name)
        assert back == crowd
        assert back.answers.guideline is not None
    with (folder / "answers.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["item"], row["worker"]): int(row["guideline"]) for row in rows} == expected
    lines = [json.loads(one) for one in (folder / "answers.jsonl").read_text().splitlines()[1:]]
    shown = {(one["item"], "ann"): one["answers"][0]["guideline"] for one in lines}
    assert shown == expected
    lost = write_crowd(crowd, folder / "answers.tsv", format="wide")
    assert "the guideline versions of 3 answers" in lost
    write_exports(campaign, folder / "out")
    record = json.loads((folder / "out" / "record.json").read_text())
    assert [row["answers"] for row in record["guidelines"]] == [1, 2]


def test_a_column_of_this_name_that_holds_texts_is_left_alone(tmp_path):
    rows = "item,worker,label,guideline\n1,ann,yes,short\n1,bob,no,long\n"
    (tmp_path / "a.csv").write_text(rows)
    assert goldspan.read_crowd(tmp_path / "a.csv").answers.guideline is None


@pytest.mark.parametrize("labels", [("rain", "fog"), ("rain", "sunshine"), ("rain", "fog", "hail")])
def test_labels_cannot_be_removed_or_renamed_and_the_message_says_what_to_do(folder, labels):
    campaign, _ = start(folder)
    events = campaign.ledger.n_events
    with pytest.raises(InputError, match=r"missing now \(sun\)\. .*put them back"):
        start(folder, labels=labels)
    with pytest.raises(
        InputError, match=r"task.labels .*not removed, renamed or reordered: put them back"
    ):
        Campaign(plan_of(folder, labels), campaign.ledger).run()
    assert campaign.ledger.n_events == events


def test_a_type_of_spans_can_be_added(tmp_path):
    write_spans(tmp_path)

    def run(*types):
        task = {"types": list(types), "labels": []}
        inputs = inputs_of(tmp_path, **{**SPANS, "crowd": WEB, "task": task})
        campaign = Campaign(inputs, ledger_of(inputs, tmp_path / "c.sqlite"))
        campaign.run()
        return campaign

    def mark(campaign, item, *tags):
        inputs = campaign.inputs
        full = [*tags, *["O"] * (len(inputs.words[inputs.pool.place[item]]) - len(tags))]
        now = campaign.steps.label.now()
        assert campaign.ledger.submit(item, "ann", item, full, now).counts
        return {"ann": full}

    campaign = run("LOC")
    first, second, *_ = items_of(campaign)
    given = mark(campaign, first, "O", "O", "B-LOC")
    campaign = run("PER", "LOC")
    more = mark(campaign, second, "O", "B-PER")
    crowd = campaign.ledger.crowd()
    assert crowd.tagset.types == ("LOC", "PER")
    assert (crowd.answers_of(first), crowd.answers_of(second)) == (given, more)
    assert marks(campaign.ledger) == {(first, "ann"): 1, (second, "ann"): 2}


def test_the_text_of_the_markdown_file_counts_not_its_name(folder):
    (folder / "guide.md").write_text("# Weather\n")
    start(folder, text="guide.md")
    assert not [line for line in start(folder, text="guide.md")[1] if "guideline" in line]
    (folder / "guide.md").write_text("# Weather of today\n")
    _, told = start(folder, text="guide.md")
    assert told[0] == "guideline: version 2 from now on: the instructions changed"
    (folder / "guide.md").unlink()
    with pytest.raises(InputError, match=r"page.instructions: cannot read guide.md"):
        start(folder, text="guide.md")


CHANGED = {"labels": ("rain", "sun", "fog"), "text": "Look up."}


def calls_of_a_change(folder):
    """Count the writing calls of a start with a changed plan."""
    start(folder)
    counting = []

    def wrap(ledger):
        counting.append(Breaking(ledger, 10**9, after=True))
        return counting[0]

    start(folder, **CHANGED, wrap=wrap)
    return 10**9 - counting[0].left


def test_a_process_that_ends_at_any_call_of_the_change_leaves_one_version(tmp_path):
    # After a call is before the next one
    places = [tmp_path / str(n) for n in range(20)]
    for place in places:
        place.mkdir()
        write_files(place)
    n_calls = calls_of_a_change(places[0])
    assert 2 <= n_calls < len(places)
    for n in range(1, n_calls + 1):
        folder = places[n]
        campaign, _ = start(folder)
        first, second, *_ = items_of(campaign)
        answer(campaign, "ann", first, "rain")
        with pytest.raises(Break):
            start(folder, **CHANGED, wrap=lambda ledger, n=n: Breaking(ledger, n, after=True))
        campaign, _ = start(folder, **CHANGED)
        answer(campaign, "ann", second, "fog")
        assert marks(campaign.ledger) == {(first, "ann"): 1, (second, "ann"): 2}
        assert len(campaign.ledger.records(changes.VERSION)) == 2
        assert changes.plan_in_force(campaign.ledger)["task"]["labels"] == ["rain", "sun", "fog"]


def test_another_process_sees_the_labels_that_were_added(folder):
    campaign, _ = start(folder)
    first, second, *_ = items_of(campaign)
    other = ledger_of(campaign.inputs, folder / "c.sqlite")
    answer(campaign, "ann", first, "rain")
    assert other.crowd().tagset.types == ("rain", "sun")
    campaign, _ = start(folder, labels=("fog", "rain", "sun"))
    answer(campaign, "ann", second, "fog")
    for crowd in (other.crowd(), other.crowd("pool")):
        assert crowd.tagset.types == ("fog", "rain", "sun")
        assert crowd.answers_of(second) == {"ann": ["fog"]}
        assert sorted(crowd.answers.guideline.tolist()) == [1, 2]
