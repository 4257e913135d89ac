"""`goldspan run` on bad input and bad days: one clear error, and nothing is lost."""

from __future__ import annotations

import io
import json
import resource
import shutil
import sqlite3
import sys
import time
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial

import pytest

from campaign.tiny import SPANS, plan_of, toml, write_files, write_spans
from goldspan.cli import main
from goldspan.cli.options import told_of_damage
from goldspan.money import from_micro
from goldspan.store import open_ledger

RESULTS = ("gold.csv", "bill.csv", "rounds.jsonl", "record.json")
WORK = {
    "redundancy": {"stop": "clear_majority(ahead=2, least=2)"},
    "aggregate": {"method": "mv-token"},
    "model": {"name": "none"},
    "judging": {"drop": False},
}
"""A plan that needs little but the ledger."""


def goldspan(*words):
    """Run the real command in this process; give the return code and what it said."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as said:
        patch.setattr(sys, "argv", ["goldspan", *map(str, words)])
        with redirect_stderr(said), pytest.raises(SystemExit) as end:
            main()
    return end.value.code or 0, said.getvalue()


def run(folder, *more, **changes):
    """Write a plan with changes, and run it; the store is in the folder "out"."""
    write_plan(folder, **changes)
    return goldspan("run", folder / "campaign.toml", "--out", folder / "out", *more)


@pytest.fixture
def campaign(tmp_path):
    """Runs a campaign in a folder of its own."""
    write_files(tmp_path)
    return partial(run, tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder with a campaign that ran through."""
    folder = tmp_path_factory.mktemp("whole")
    write_files(folder)
    assert run(folder)[0] == 0
    return folder


@pytest.fixture
def done(whole, tmp_path):
    """Runs it again, in a copy of the folder."""
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    return partial(run, tmp_path)


def write_plan(folder, **changes):
    made = plan_of(WORK, **changes)
    if "crowd" in changes:
        made["crowd"] = changes["crowd"]
    (folder / "campaign.toml").write_text(toml(made))


def spent(folder):
    with open_ledger(folder / "out" / "campaign.sqlite") as ledger:
        ledger.verify()
        return from_micro(ledger.totals().spent)


def results(out):
    return {name: (out / name).read_bytes() for name in RESULTS}


def test_limits_may_change_under_a_campaign_and_the_log_tells(campaign, tmp_path):
    assert campaign(stop={"most_rounds": 1})[0] == 0
    assert spent(tmp_path) < "2.00"
    code, said = campaign(stop={"most_rounds": 2}, budget={"money": "3.00"})
    assert code == 0
    assert "changed: stop.most_rounds was 1 and is 2" in said
    assert "changed: budget.money was '8' and is '3.00'" in said
    assert "round 2 is done" in said
    with open_ledger(tmp_path / "out" / "campaign.sqlite") as ledger:
        assert [one.body for one in ledger.events() if one.kind == "cap"] == [{"cap": 3_000_000}]
        (change,) = ledger.records("change").values()
        n = ledger.verify()
    assert change["stopped"] == "r001"
    assert "changed" not in campaign(stop={"most_rounds": 2}, budget={"money": "3.00"})[1]
    with open_ledger(tmp_path / "out" / "campaign.sqlite") as ledger:
        assert ledger.verify() == n


def test_more_money_lets_a_campaign_go_on_that_had_spent_all_it_had(campaign, tmp_path):
    control = {"n": 4, "gold": "truth.csv", "share": 0.2}
    code, said = campaign(budget={"money": "1.00"}, control=control)
    assert "the money does not pay for another item" in said
    assert spent(tmp_path) == "1.00"
    code, said = campaign(budget={"money": "9"}, control=control)
    assert (code, "no item of the pool is left" in said) == (0, True)
    assert spent(tmp_path) > "1.00"
    record = json.loads((tmp_path / "out" / "record.json").read_text())
    assert record["counts"]["items"] == 16
    assert record["counts"]["control_answers"] > 0


def test_a_cap_below_what_is_spent_and_all_else_that_changes_is_refused(done, tmp_path):
    before = spent(tmp_path)
    code, said = done(budget={"money": "0.50"})
    assert code == 1
    assert f"budget.money: 0.50 are less than the {before} that are spent or reserved" in said
    code, said = done(select={"batch": 7}, prices={"per_answer": "0.06"}, stop={"rounds": 3})
    assert code == 1
    assert "prices.per_answer was '0.05' and is '0.06' (answers were paid at these prices)" in said
    assert "select.batch was 10 and is 7" in said
    assert done(name="other")[1].count("with other settings (name 'weather', not 'other')") == 1
    assert done()[0] == 0
    assert spent(tmp_path) == before


def test_items_that_went_or_changed_are_named(done, tmp_path):
    pool = tmp_path / "pool.jsonl"
    text = pool.read_text()
    pool.write_text("\n".join(text.splitlines()[2:]) + "\n")
    assert "2 items that were asked about are gone from pool.jsonl: d" in done()[1]
    pool.write_text(text.replace("day 7", "night 7"))
    code, said = done()
    assert code == 1
    assert "items are not what they were when the campaign took them" in said
    assert "item d7: is in the store with other content (text): give it back" in said
    pool.write_text(text)
    assert done()[0] == 0


def test_a_failure_before_the_campaign_began_is_told_as_it_is(tmp_path):
    with pytest.raises(TypeError, match="odd"), told_of_damage(tmp_path / "campaign.sqlite"):
        raise TypeError("odd")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("UPDATE records SET body = '{' WHERE kind = 'round'", "is damaged: it holds '{'"),
        ("DROP TABLE answers", "no such table: answers"),
    ],
)
def test_a_store_that_was_meddled_with_is_refused(done, tmp_path, sql, message):
    store = tmp_path / "out" / "campaign.sqlite"
    with sqlite3.connect(store) as connection:
        connection.execute(sql)
    connection.close()
    code, said = done()
    assert (code, message in said) == (1, True), said


@pytest.mark.torture(
    "a store is damaged", "the damage is noticed and told, and nothing is overwritten"
)
@pytest.mark.parametrize("kind", ["pages", "half", "another file"])
def test_a_damaged_file_is_refused_and_left_as_it_is(done, tmp_path, kind):
    store = tmp_path / "out" / "campaign.sqlite"
    data = bytearray(store.read_bytes())
    if kind == "pages":
        data[20_000:60_000] = b"Z" * 40_000
    elif kind == "half":
        del data[len(data) // 2 :]
    else:
        data = bytearray(b"Dear diary, " * 1000)
    store.write_bytes(data)
    code, said = done()
    assert code == 1
    assert any(words in said for words in ("malformed", "not a database", "is damaged")), said
    assert said.startswith("goldspan: ")
    assert store.read_bytes() == data


def test_a_database_that_cannot_be_written_is_left_and_goes_on_when_it_can(campaign, tmp_path):
    campaign(stop={"most_rounds": 1})
    store, before = tmp_path / "out" / "campaign.sqlite", spent(tmp_path)
    place = f"sqlite:///file:{store}?mode=ro&uri=true"
    code, said = campaign("--store", place, stop={"most_rounds": 2})
    assert code == 1
    assert "make the file and its folder writable; nothing was changed" in said
    assert spent(tmp_path) == before
    assert campaign(stop={"most_rounds": 2})[0] == 0
    assert spent(tmp_path) > before


@contextmanager
def disk_of(size):
    """Let no file grow larger: what a full disk does, without one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.torture(
    "the disk is full", "it stops with one clear error, and goes on when there is room"
)
def test_on_a_full_disk_it_stops_and_ends_with_the_same_bytes_when_there_is_room(
    campaign, whole, tmp_path
):
    expected = results(whole / "out")
    with disk_of(1_000_000):
        code, said = campaign()
    assert code == 1
    assert "is the disk full, or gone?; nothing was changed" in said
    assert (
        "0.00" < spent(tmp_path) < from_micro(json.loads(expected["record.json"])["money"]["spent"])
    )
    assert campaign()[0] == 0
    assert results(tmp_path / "out") == expected


# Answers in files.

FILES = {"crowd": {"source": "files"}, "select": {"batch": 6}, "stop": {"most_rounds": 1}}


def tasks(folder):
    lines = (folder / "tasks" / "tasks-r001.1.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def answers(folder, labels=("rain",)):
    """Return an answer of ann to every task."""
    rows = [
        {"campaign": task["campaign"], "worker": "ann", "item": task["item"],
         "labels": list(labels)} for task in tasks(folder)
    ]  # fmt: skip
    return "".join(json.dumps(row) + "\n" for row in rows)


FAULTS = [
    ({"campaign": "other-1"}, "of the campaign 'other-1', and this is 'weather-"),
    ({"labels": []}, "needs a list of 1 labels, not []"),
    ({"labels": ["rain", "sun"]}, "needs a list of 1 labels"),
    ({"labels": ["snow"]}, "label 'snow' is not in rain, sun"),
    ({"labels": [["sun"]]}, "label ['sun'] is not in rain, sun"),
    ({"worker": 3}, "a worker is text of 1 to 400 characters, not 3"),
    ({"worker": "a\0b"}, "a worker is text of 1 to 400 characters"),
    ({"worker": "\ud800"}, "a worker is text of 1 to 400 characters"),
    ({"item": "d99"}, "item 'd99' was not asked about"),
    ({"item": ["d1"]}, "item ['d1'] was not asked about"),
]


def test_faulty_answers_are_all_named_and_their_file_taken_when_mended(campaign, tmp_path):
    campaign(**FILES)
    asked = {task["item"] for task in tasks(tmp_path)}
    not_asked = next(name for name in (f"d{n}" for n in range(20)) if name not in asked)
    good = json.loads(answers(tmp_path).splitlines()[0])
    faults = [*FAULTS, ({"item": not_asked}, f"item '{not_asked}' was not asked about")]
    file = tmp_path / "answers" / "a.jsonl"
    lines = [json.dumps({**good, **changed}) + "\n" for changed, _ in faults]
    file.write_text("".join(lines) + answers(tmp_path))
    code, said = campaign(**FILES)
    assert code == 1
    for number, (_, message) in enumerate(faults, start=1):
        (line,) = [one for one in said.splitlines() if f"{file} line {number}: " in one]
        assert message in line
    assert said.count(str(file)) == len(faults)
    assert spent(tmp_path) == "0.00"
    file.write_text(answers(tmp_path))
    assert campaign(**FILES)[0] == 0
    assert spent(tmp_path) == "0.30"


def test_a_file_that_is_half_written_or_none_is_taken_when_it_is_whole(campaign, tmp_path):
    campaign(**FILES)
    file, whole = tmp_path / "answers" / "a.jsonl", answers(tmp_path).encode()
    for spoiled, message in [
        (whole[:-20], "the file ends in this line: is it still being written?"),
        (whole.replace(b"ann", b"\xff\xfe", 1), "line 1: it is not valid JSON: 'utf-8'"),
        (b"[" * 100_000 + b"\n" + whole, "line 1: it is not valid JSON: maximum recursion"),
        (b"[1]\n" + whole, "an answer has campaign, worker, item and labels"),
    ]:
        file.write_bytes(spoiled)
        code, said = campaign(**FILES)
        assert (code, message in said) == (1, True), said
        assert spent(tmp_path) == "0.00"
    file.write_bytes(b"\xef\xbb\xbf" + whole)
    assert campaign(**FILES)[0] == 0
    assert spent(tmp_path) == "0.30"


def test_tags_that_are_no_spans_are_refused_but_not_beside_what_was_skipped(tmp_path):
    write_spans(tmp_path, 6)
    changes = {**SPANS, **FILES, "model": {"name": "none"}, "select": {"by": "random", "batch": 6}}
    changes["redundancy"] = {"stop": "fixed(2)"}
    assert run(tmp_path, **changes)[0] == 0
    for second, code in (("O", 1), (None, 0)):
        rows = [json.loads(line) for line in answers(tmp_path).splitlines()]
        for row, task in zip(rows, tasks(tmp_path), strict=True):
            row["labels"] = ["O", second, "I-LOC", *["O"] * (len(task["tokens"]) - 3)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "answers" / "a.jsonl").write_text(text)
        found, said = run(tmp_path, **changes)
        assert found == code, said
        assert ("token 2: I-LOC follows O" in said) == bool(code)


def test_what_does_not_count_is_told_and_not_paid(campaign, tmp_path):
    campaign(**FILES)
    (tmp_path / "answers" / "a.jsonl").write_text(answers(tmp_path))
    (tmp_path / "answers" / "b.jsonl").write_text(answers(tmp_path, labels=["sun"]))
    (tmp_path / "answers" / "copy.jsonl").write_text(answers(tmp_path))
    code, said = campaign(**FILES)
    assert code == 0
    assert "not counted: 6 by workers who had answered the item otherwise before" in said
    assert spent(tmp_path) == "0.30"


def test_a_folder_of_tasks_that_was_deleted_is_written_again(campaign, tmp_path):
    campaign(**FILES)
    before = tasks(tmp_path)
    shutil.rmtree(tmp_path / "tasks")
    assert campaign(**FILES)[0] == 0
    assert tasks(tmp_path) == before


@pytest.mark.parametrize("hours", [-8760, 8760])
def test_answers_are_taken_whatever_the_clock_of_the_machine_shows(
    campaign, tmp_path, monkeypatch, hours
):
    campaign(**FILES)
    (tmp_path / "answers" / "a.jsonl").write_text(answers(tmp_path))
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + hours * 3_600 * 10**9)
    assert campaign(**FILES)[0] == 0
    assert spent(tmp_path) == "0.30"
    monkeypatch.undo()
    code, said = campaign(**FILES)
    assert (code, spent(tmp_path)) == (0, "0.30"), said
