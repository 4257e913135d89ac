"""The source "files": tasks go out, answers come back in any order, twice, in part."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest

from campaign.tiny import ledger_of, plan_of, write_files
from goldspan.campaign import Campaign, read_inputs, read_plan, write_exports
from goldspan.campaign.clock import wall_clock
from goldspan.campaign.plan import key_of
from goldspan.campaign.protocols import Waiting
from goldspan.errors import FaultsError, InputError

FILES = {
    "crowd": {"source": "files"},
    "redundancy": {"min": 2, "max": 3, "stop": "clear_majority(ahead=2, least=2)"},
    "aggregate": {"method": "mv-token"},
    "select": {"by": "random", "batch": 6},
    "stop": {"most_rounds": 1},
    "judging": {"drop": False},
}


@pytest.fixture
def run(tmp_path):
    """Run the campaign again, as `goldspan run` does; the ledger is made at the first time."""
    write_files(tmp_path)
    plan = plan_of(FILES)
    plan["crowd"] = FILES["crowd"]
    inputs = read_inputs(read_plan(plan), tmp_path)
    ledger = ledger_of(inputs, tmp_path / "campaign.sqlite")

    def again():
        return Campaign(inputs, ledger).run(), ledger

    again.ledger = ledger
    return again


def tasks(folder, name):
    lines = (folder / "tasks" / f"tasks-{name}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def answer(folder, file, rows, label="rain", **changed):
    lines = [
        json.dumps({"campaign": row["campaign"], "worker": w, "item": row["item"],
                    "labels": [label], **changed})
        for row, w in rows
    ]  # fmt: skip
    (folder / "answers" / file).write_text("\n".join(lines) + "\n")


def test_answers_may_come_in_parts_twice_and_in_any_order(run, tmp_path):
    found, _ = run()
    assert isinstance(found, Waiting)
    assert (found.answers, found.items) == (12, 6)
    out = tasks(tmp_path, "r001.1")
    assert {(one["answers"], *one["labels"]) for one in out} == {(2, "rain", "sun")}
    answer(tmp_path, "b.jsonl", [(one, "bob") for one in reversed(out)])
    assert run()[0].answers == 6
    answer(tmp_path, "again.jsonl", [(one, "bob") for one in out[:2]])
    answer(tmp_path, "a.jsonl", [(one, "ann") for one in out[:3]])
    assert run()[0].answers == 3
    answer(tmp_path, "rest.jsonl", [(one, "ann") for one in out])
    found, ledger = run()
    assert found.rule == "rounds"
    assert ledger.totals().spent == 12 * 50_000


def test_items_that_workers_disagree_about_go_out_again(run, tmp_path):
    run()
    out = tasks(tmp_path, "r001.1")
    answer(tmp_path, "a.jsonl", [(one, "ann") for one in out])
    answer(tmp_path, "b.jsonl", [(one, "bob") for one in out[1:]])
    answer(tmp_path, "c.jsonl", [(out[0], "bob")], label="sun")
    assert run()[0].answers == 1
    (more,) = tasks(tmp_path, "r001.2")
    assert (more["item"], more["answers"]) == (out[0]["item"], 1)
    answer(tmp_path, "d.jsonl", [(more, "cat")], label="sun")
    assert run()[0].stop


def surplus(run, folder):
    """Let two answer all items unlike, and a third at the same time four of them."""
    run()
    out = tasks(folder, "r001.1")
    answer(folder, "a.jsonl", [(one, "ann") for one in out])
    answer(folder, "b.jsonl", [(one, "bob") for one in out], label="sun")
    answer(folder, "c.jsonl", [(one, "cy") for one in out[:4]])
    return out


def test_an_answer_that_found_no_place_counts_when_one_opens(run, tmp_path):
    out = surplus(run, tmp_path)
    found, ledger = run()
    assert (found.answers, found.items) == (2, 2)
    assert "not counted" not in found.where
    assert {one["item"] for one in tasks(tmp_path, "r001.2")} == {one["item"] for one in out[4:]}
    answer(tmp_path, "d.jsonl", [(one, "cy") for one in out])
    assert run()[0].stop
    assert ledger.totals().spent == 18 * 50_000


def test_an_answer_that_still_finds_no_place_is_told_once_however_often_it_is_read(run, tmp_path):
    run()
    out = tasks(tmp_path, "r001.1")
    answer(tmp_path, "a.jsonl", [(one, w) for one in out[:4] for w in ("ann", "bob", "cy")])
    answer(tmp_path, "b.jsonl", [(one, "cy") for one in out[:3]])
    answer(tmp_path, "c.jsonl", [(out[0], "ann")], label="sun")
    for _ in range(2):
        found, ledger = run()
        assert found.answers == 4
        assert "1 by workers who had answered the item otherwise before, 4 to items" in found.where
    assert ledger.totals().spent == 8 * 50_000


def test_an_answer_whose_key_was_used_up_by_a_draft_still_counts(run, tmp_path):
    _, ledger = run()
    out = tasks(tmp_path, "r001.1")
    now = wall_clock()
    ledger.bar("ann", now)
    item = out[0]["item"]
    assert ledger.submit(key_of(item, "ann"), "ann", item, ["sun"], now).status == "draft"
    answer(tmp_path, "a.jsonl", [(one, "ann") for one in out])
    assert "6 by workers who are asked no more" in run()[0].where
    ledger.bar("ann", now, barred=False)
    assert run()[0].answers == 6


def test_killed_between_answers_it_counts_the_same(run, tmp_path, monkeypatch):
    surplus(run, tmp_path)
    ledger = run.ledger
    n, submit = 0, ledger.submit

    def breaking(*args):
        nonlocal n
        n += 1
        if n % 3 == 0:
            raise KeyboardInterrupt
        return submit(*args)

    monkeypatch.setattr(ledger, "submit", breaking)
    for _ in range(20):
        with suppress(KeyboardInterrupt):
            found, _ = run()
    assert (found.answers, ledger.totals().spent) == (2, 16 * 50_000)


@pytest.mark.parametrize("name", ["tasks-r001.1", "test"])
@pytest.mark.parametrize(
    ("line", "whose"),
    [('{"campaign": "other-1"}', "tasks of the campaign 'other-1'"), ("", "no tasks")],
)
def test_tasks_of_another_campaign_are_neither_kept_nor_lost(tmp_path, name, line, whose):
    write_files(tmp_path)
    plan = plan_of(TEST)
    plan["crowd"] = FILES["crowd"]
    inputs = read_inputs(read_plan(plan), tmp_path)
    ledger = ledger_of(inputs, tmp_path / "campaign.sqlite")
    path = tmp_path / "tasks" / f"{name}.jsonl"
    path.parent.mkdir()
    path.write_text(line)
    with pytest.raises(InputError, match=f"{name}.jsonl holds {whose}, and this is 'weather-"):
        Campaign(inputs, ledger).run()
    assert path.read_text() == line


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"campaign": "other-1"}, "line 1: of the campaign 'other-1', and this is 'weather-"),
        ({"labels": ["snow"]}, "label 'snow' is not in rain, sun"),
        ({"labels": []}, "needs a list of 1 labels"),
        ({"worker": 3}, "a worker is text of 1 to"),
        ({"item": "d99"}, "item 'd99' was not asked about"),
    ],
)
def test_a_file_with_a_fault_is_refused_whole(run, tmp_path, changed, message):
    _, ledger = run()
    out = tasks(tmp_path, "r001.1")
    answer(tmp_path, "a.jsonl", [(one, "ann") for one in out[:2]], **changed)
    path = tmp_path / "answers" / "a.jsonl"
    good = {"campaign": out[2]["campaign"], "worker": "ann", "item": out[2]["item"]}
    path.write_text(path.read_text() + json.dumps({**good, "labels": ["sun"]}) + "\nno json\n")
    with pytest.raises(FaultsError, match=message) as caught:
        run()
    assert len(caught.value.faults) == 3
    assert ledger.totals().spent == 0


def test_when_the_money_is_used_up_nothing_is_awaited(tmp_path):
    write_files(tmp_path)
    plan = plan_of({**FILES, "budget": {"money": "0.10"}})
    plan["crowd"] = FILES["crowd"]
    inputs = read_inputs(read_plan(plan), tmp_path)
    ledger = ledger_of(inputs, tmp_path / "campaign.sqlite")
    assert Campaign(inputs, ledger).run().answers == 2
    answer(tmp_path, "a.jsonl", [(one, w) for w in "ab" for one in tasks(tmp_path, "r001.1")])
    assert Campaign(inputs, ledger).run().stop
    totals = ledger.totals()
    assert (totals.spent, totals.left) == (100_000, 0)


def test_when_the_time_is_over_nothing_is_awaited_and_no_answer_is_no_trouble(tmp_path):
    write_files(tmp_path)
    plan = plan_of({**FILES, "budget": {"hours": 2.0}})
    plan["crowd"] = FILES["crowd"]
    inputs = read_inputs(read_plan(plan), tmp_path)
    campaign = Campaign(inputs, ledger_of(inputs, tmp_path / "campaign.sqlite"))
    assert campaign.run().rule == "time"
    assert all(row["places"] == 0 for row in campaign.ledger.slots().to_pylist())
    written = {path.name for path in write_exports(campaign, tmp_path / "out")}
    assert written == {"rounds.jsonl", "record.json"}


TEST = {**FILES, "control": {"n": 4, "gold": "truth.csv", "share": 0.2, "first": 3, "least": 0.6}}


def test_who_has_not_taken_the_test_waits_and_who_failed_it_is_not_paid_for_more(tmp_path):
    write_files(tmp_path)
    plan = plan_of(TEST)
    plan["crowd"] = FILES["crowd"]
    inputs = read_inputs(read_plan(plan), tmp_path)
    ledger = ledger_of(inputs, tmp_path / "campaign.sqlite")
    assert "takes the test first" in Campaign(inputs, ledger).run().where
    text = (tmp_path / "tasks" / "test.jsonl").read_text()
    test = [json.loads(line) for line in text.splitlines()]
    assert len(test) == 3
    out = [one for one in tasks(tmp_path, "r001.1") if one["item"] not in inputs.control]
    lines = [{"campaign": one["campaign"], "item": one["item"]} for one in [*out, *test]]

    def back(worker, rows, *, good):
        for row in rows:
            tags = ["sun", "rain"]
            known = inputs.control.get(row["item"], ["rain"])[0]
            label = known if good else tags[known == "sun"]
            yield json.dumps({**row, "worker": worker, "labels": [label]}) + "\n"

    folder = tmp_path / "answers"
    (folder / "a.jsonl").write_text("".join(back("ann", lines[: len(out)], good=True)))
    (folder / "b.jsonl").write_text("".join(back("bob", lines, good=False)))
    found = Campaign(inputs, ledger).run()
    assert "and 6 answers wait for it" in found.where
    assert "6 by workers who are asked no more" in found.where
    assert ledger.records("bar") == {"bob": {"why": "0 of 3 right in the test"}}
    assert ledger.totals().spent == 3 * 50_000
    (folder / "c.jsonl").write_text("".join(back("ann", lines[len(out) :], good=True)))
    found = Campaign(inputs, ledger).run()
    assert found.answers == 6
    assert ledger.totals().spent == (3 + 9) * 50_000
