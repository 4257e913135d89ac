"""What `goldspan run` refuses, `goldspan serve` refuses in the same words; no trace is left."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import sqlite3
import sys
from contextlib import closing, redirect_stderr, redirect_stdout

import pytest

from goldspan.archives import FREE
from goldspan.cli import main
from goldspan.web import Keys, open_service
from web.desks import as_json
from web.serving import answer, plan_file

KEYS = Keys(bytes(range(32)))


def goldspan(*words):
    """Run the real command in this process; return the exit code and what it said."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as said:
        patch.setattr(sys, "argv", ["goldspan", *map(str, words)])
        patch.setattr("goldspan.web.serve", lambda *_: None)  # as if Ctrl-C came at once
        patch.setattr("goldspan.web.logs.open_log", lambda *_: None)
        with redirect_stderr(said), pytest.raises(SystemExit) as end:
            main()
    return end.value.code or 0, said.getvalue()


def both(folder):
    """Run and serve a folder's plan."""
    words = [folder / "campaign.toml", "--out", folder / "out"]
    return goldspan("run", *words), goldspan("serve", *words, "--port", "0", "--no-loop")


def trees(folder):
    """Return every path below a folder with its content; a lock is empty or says who held it."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
        if path.suffix != ".lock"
    }


def bomb(folder):
    """Give a plan a pool of some kilobytes that decompresses to more than is allowed."""
    plan_file(folder, pool={"file": "pool.jsonl.gz"})
    data = gzip.compress(bytes(1 << 20)) * ((FREE >> 20) + 1)
    (folder / "pool.jsonl.gz").write_bytes(data)


def change(folder, **sections):
    plan_file(folder, **sections)


def spoil(name, text=None):
    """Change a file beside the plan, or take it away."""

    def act(folder):
        plan_file(folder)
        if text is None:
            (folder / name).unlink()
        else:
            (folder / name).write_text(text, encoding="utf-8")

    return act


def by(**sections):
    return lambda folder: change(folder, **sections)


FAULTY = {
    "no plan": (str, "cannot read"),
    "no TOML": (spoil("campaign.toml", "name = "), "it is not valid TOML"),
    "unknown key": (by(select={"bach": 3}), "select.bach: unknown key"),
    "misspelt source": (by(crowd={"source": "webb"}), "crowd.source: must be 'simulated'"),
    "missing section": (by(budget=None), "budget.money: is missing"),
    "min above max": (
        by(redundancy={"min": 5, "max": 2}), "redundancy: min is 5, more than max, 2"),
    "how it begins": (
        by(redundancy={"min": 5, "max": 2}), "goldspan: the plan is refused\n"),
    "unknown rule": (by(redundancy={"stop": "sure(1)"}), "redundancy.stop"),
    "unknown method": (by(aggregate={"method": "dss"}), "unknown method 'dss'"),
    "rule without probabilities": (
        by(aggregate={"method": "mv-token"}, redundancy={"stop": "confident(0.9)"}),
        "confident needs probabilities",
    ),
    "unknown model": (by(model={"name": "crfs"}), "unknown model 'crfs'"),
    "model of spans": (by(model={"name": "crf"}), "model"),
    "no solver": (by(model={"name": "hmm"}), "model"),
    "a currency that cannot be stored": (by(prices={"currency": "\0"}), "prices.currency"),
    "negative price": (by(prices={"per_answer": -1}), "prices.per_answer: it must lie in 0"),
    "nothing to pay": (
        by(prices={"per_answer": 0}), "if nobody is paid, leave out prices and budget.money"),
    "negative budget": (by(budget={"money": -3}), "budget.money: it must lie in 0"),
    "budget too small": (by(budget={"money": "0.05"}), "do not pay for one item"),
    "no test file": (by(evaluate={"by": "test", "file": "none.jsonl"}), "evaluate.file"),
    "no pool": (spoil("pool.jsonl"), "pool.file"),
    "a bomb": (bomb, "no small file can fill the memory: if it is right, decompress it first\n"),
    "empty pool": (spoil("pool.jsonl", ""), "pool.file"),
    "an item twice": (
        spoil("pool.jsonl", 2 * '{"id": "a", "text": "one"}\n'), "twice"),
    "no gold": (spoil("truth.csv"), "control.gold"),
    "gold of other labels": (spoil("truth.csv", "item,label\nd1,snow\n"), "control.gold"),
    "too few with gold": (by(control={"n": 30}), "control.n is 30"),
    "more test than control": (by(control={"first": 7}), "control.first"),
    "no instructions": (by(page={"instructions": "none.md"}), "cannot read none.md"),
    "unknown provider": (by(provider={"name": "mturk"}), "unknown provider 'mturk'"),
    "faulty provider": (by(provider={"name": "prolific"}), "provider.options"),
    "labels too few": (by(task={"labels": ["rain"]}), "task.labels"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTY)
def test_a_faulty_plan_is_refused_by_both_in_the_same_words_and_nothing_is_made(tmp_path, case):
    make, told = FAULTY[case]
    make(tmp_path)
    before = trees(tmp_path)
    ran, served = both(tmp_path)
    assert ran == served
    assert ran[0] == 1
    assert told in ran[1]
    assert "Traceback" not in ran[1]
    assert trees(tmp_path) == before


def test_items_that_the_store_refuses_leave_nothing_behind(tmp_path):
    plan_file(tmp_path, control=None, page=None)
    rows = [json.dumps({"id": f"{n}" * 1200, "text": f"wet day {n}"}) + "\n" for n in range(1, 9)]
    (tmp_path / "pool.jsonl").write_text("".join(rows), encoding="utf-8")
    before = trees(tmp_path)
    ran, served = both(tmp_path)
    assert ran == served
    assert ran[0] == 1
    assert "the pool is refused" in ran[1]
    assert trees(tmp_path) == before


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A folder with a campaign in which people have answered."""
    folder = tmp_path_factory.mktemp("begun")
    with closing(open_service(plan_file(folder), folder / "out", KEYS)) as service:
        service.begin()
        service.campaign.run()
        for _ in range(6):
            answer(service, "ann")
    return folder


def other_day(folder):
    path = folder / "pool.jsonl"
    path.write_text(path.read_text().replace("day 7", "night 7"))


def fewer(folder):
    path = folder / "pool.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[12:]))
    plan_file_without_pool(folder, control={"n": 2, "first": 1}, page={"training": 0})


def plan_file_without_pool(folder, **sections):
    pool = (folder / "pool.jsonl").read_text()
    plan_file(folder, **sections)
    (folder / "pool.jsonl").write_text(pool)


def sql(statement):
    def act(folder):
        with sqlite3.connect(folder / "out" / "campaign.sqlite") as connection:
            connection.execute(statement)
        connection.close()

    return act


def not_a_store(folder):
    (folder / "out" / "campaign.sqlite").write_bytes(b"Dear diary, " * 1000)


CHANGED = {
    "another batch": (by(select={"batch": 7}), "select.batch was 5 and is 7"),
    "another price": (by(prices={"per_answer": "0.06"}), "answers were paid at these prices"),
    "another method": (by(aggregate={"method": "ds"}), "aggregate.method was"),
    "another name": (by(name="other"), "with other settings (name 'weather', not 'other')"),
    "other labels": (
        by(task={"labels": ["sun", "fog"]}, control=None, page={"training": 0}),
        "labels are missing now (rain)"),
    "labels in another order": (by(task={"labels": ["sun", "rain"]}), "answers are of this task"),
    "a cap below what is spent": (by(budget={"money": "0.15"}), "are less than the 0.30"),
    "an item with another text": (other_day, "d7: is in the store with other content"),
    "items gone": (fewer, "that were asked about are gone"),
    "sums that are wrong": (
        sql("UPDATE campaign SET spent = 0"), "the money spent is not that of the answers"),
    "a newer store": (
        sql("UPDATE schema_version SET version = 9009"), "has tables of version 9009"),
    "no store": (not_a_store, "is not a campaign's database"),
}  # fmt: skip


def content(folder):
    """Return all rows of a store but those about processes; its bytes where it is none."""
    path = folder / "out" / "campaign.sqlite"
    try:
        with closing(sqlite3.connect(path)) as connection:
            lines = list(connection.iterdump())
    except sqlite3.DatabaseError:
        return path.read_bytes()
    return [one for one in lines if not one.startswith(('INSERT INTO "roles"', 'INSERT INTO "pro'))]


@pytest.mark.parametrize("case", CHANGED)
def test_a_store_that_the_plan_does_not_suit_is_refused_by_both_and_left_alone(
    begun, tmp_path, case
):
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    make, told = CHANGED[case]
    make(tmp_path)
    before, rows = trees(tmp_path), content(tmp_path)
    ran, served = both(tmp_path)
    assert ran == served
    assert (ran[0], told in ran[1]) == (1, True), ran[1]
    after = trees(tmp_path)
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    # Who asked for the campaign took its role, which is counted in the store.
    store = "out/campaign.sqlite"
    assert changed <= {store, f"{store}-shm", f"{store}-wal"}
    assert content(tmp_path) == rows


def test_a_plan_that_run_takes_is_served(begun, tmp_path):
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    ran, served = both(tmp_path)
    assert (ran[0], served[0]) == (0, 0), (ran, served)


def test_changed_limits_are_in_force_before_anybody_is_let_in(begun, tmp_path):
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    change(tmp_path, budget={"money": "5.25", "hours": 7.5}, stop={"most_rounds": 9})
    words = [tmp_path / "campaign.toml", "--out", tmp_path / "out"]
    seen = []

    def look(app, *_):
        service = app.state.context.service
        seen.append((service.ledger.totals().cap, as_json(service.desk.overview())))

    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()):
        command = ["goldspan", "serve", *map(str, words), "--port", "0", "--no-loop"]
        patch.setattr(sys, "argv", command)
        patch.setattr("goldspan.web.serve", look)
        patch.setattr("goldspan.web.logs.open_log", lambda *_: None)
        with pytest.raises(SystemExit) as end:
            main()
    assert not end.value.code
    ((cap, shown),) = seen
    assert cap == 5_250_000
    assert shown["money"]["cap"] == "5.25"
    assert 0 < shown["hours"]["left"] <= 7.5
    assert "budget.money was '8' and is '5.25'" in shown["plan"]["changes"]
    assert "stop.most_rounds was 2 and is 9" in shown["plan"]["changes"]
    assert shown["plan"]["pending"] == []


def test_the_desk_beside_a_server_shows_the_plan_in_force_and_what_waits_for_a_start(
    begun, tmp_path
):
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    # The seed may not change: it waits for no start, and the next one is refused.
    change(tmp_path, budget={"money": "5.25", "hours": 7.5}, seed=99)
    with closing(open_service(tmp_path / "campaign.toml", tmp_path / "out", KEYS)) as service:
        shown = as_json(service.desk.overview())
    assert shown["money"]["cap"] == "8.00"
    assert shown["hours"]["left"] is None
    assert shown["plan"]["pending"] == [
        "budget.money was '8' and is '5.25'", "budget.hours was not set and is 7.5",
    ]  # fmt: skip


@pytest.mark.parametrize("words", [["plan", "check"], ["run"], ["serve"]])
def test_texts_in_place_of_a_plan_lead_to_init(tmp_path, words):
    path = tmp_path / "texts.txt"
    path.write_text("[Ann] lives in Rome.\n", encoding="utf-8")
    out = [] if words == ["plan", "check"] else ["--out", tmp_path]
    code, said = goldspan(*words, path, *out)
    assert code == 1
    assert f"{path} is not a plan. To label its texts, write one with `goldspan init {path}" in said
