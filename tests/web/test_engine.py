"""The loop beside the pages."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
import time
from contextlib import closing, suppress
from dataclasses import replace

import pytest

from goldspan.aggregation.base import Aggregator
from goldspan.campaign import keeping
from goldspan.campaign.judging import Aggregating
from goldspan.cli.campaign import open_campaign
from goldspan.errors import GoldspanError, InputError
from goldspan.store import StoreError
from goldspan.web import engine, open_service
from goldspan.web.engine import end
from goldspan.web.people import GOLD
from web.desks import as_json
from web.loops import wait_until
from web.serving import KEYS, answer, key, right_answer, serve


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(engine, "LOOK", 0.05)
    monkeypatch.setattr(engine, "LEAST", 0.05)


@pytest.fixture
def service(tmp_path):
    """A served campaign whose loop waits for answers."""
    with serve(tmp_path) as made:
        wait_until(lambda: made.engine.live.state == "waiting")
        yield made


@pytest.fixture
def still(tmp_path):
    """A campaign with an open round, whose loop does not run."""
    with closing(serve(tmp_path)) as made:
        made.campaign.run()
        yield made


def test_after_a_restart_labels_that_were_kept_are_not_computed_again(tmp_path, monkeypatch):
    monkeypatch.setattr(keeping, "LEAST", 0)
    with closing(serve(tmp_path)) as first:
        first.campaign.run()
        for worker in ("ann", "bob", "ann", "bob"):
            answer(first, worker)
        made = first.engine.look().result
    fits = []
    monkeypatch.setattr(Aggregator, "fit", lambda *_, **__: fits.append(1))
    with closing(open_service(tmp_path / "campaign.toml", tmp_path / "out", KEYS)) as again:
        found = again.engine.look()
        assert found.result.confidence.tolist() == made.confidence.tolist()
        assert found.confidence == made.mean_confidence
        assert [
            one.name for one in again.desk.exports() if again.desk.export(one.name) is None
        ] == []
    with open_campaign(str(tmp_path / "out"), None) as ledger:  # as `goldspan report` does
        plan = first.inputs.plan
        assert (
            Aggregating(plan, ledger).labels(ledger.crowd()).codes.tolist() == made.codes.tolist()
        )
    assert fits == []


def test_who_waits_reads_what_is_computed_and_how_long():
    live, now = engine.Live(looked=(0, 1)), time.time()
    assert live.wait() == ""
    assert engine.Live().wait() == "The campaign is being opened, which takes some seconds"
    live = replace(live, computing="It is computed")
    assert live.wait() == "It is computed: it may take a minute"
    said = {21: "about 20 seconds more", 1: "about 5 seconds more", 200: "about 3 min more"}
    for seconds, words in {**said, -5: "it takes longer than before"}.items():
        assert replace(live, until=now + seconds).wait() == f"It is computed: {words}"


def test_an_annotator_without_a_task_reads_what_is_computed(still):
    while answer(still, "ann") is not None:
        pass
    still.engine.live = replace(still.engine.live, state="waiting")
    assert "nothing to do" in still.work.next("ann")["message"]
    still.engine.live = replace(still.engine.live, state="working", computing="It is computed")
    assert still.work.next("ann")["message"].startswith("It is computed: it may take a minute.")


def label_all(service, workers=("ann", "bob", "cid")):
    """Work until the campaign has ended."""

    def work():
        done = [answer(service, worker) for worker in workers]
        if not any(done):
            time.sleep(0.1)  # the loop computes, and would wait for who asks for tasks
        return service.engine.is_over()

    wait_until(work)


def test_a_served_campaign_runs_to_its_end_and_writes_files_that_name_nobody(tmp_path, monkeypatch):
    failed, told = [], []
    with serve(tmp_path) as service:
        monkeypatch.setattr(service.engine, "_fail", failed.append)
        service.report = lambda findings, path: told.append((findings, path))
        label_all(service)
        live = service.engine.live
        assert failed == []
        assert live.decision.rule == "rounds"
        assert live.n_answers == len(live.crowd.latest) > 20
        assert (tmp_path / "out" / "gold.csv").exists()
        assert service.work.next("ann")["state"] == "done"
        shown = service.desk.names("ann")
    findings, path = told[-1]
    assert path == tmp_path / "out" / "report.html"
    assert shown in findings.record.workers
    words = (tmp_path / "out" / "record.json").read_text(encoding="utf-8")
    assert f'"{shown}"' in words
    assert '"ann"' not in words


def test_answers_that_come_while_it_is_looked_at_wait_for_the_next_look(still):
    progress = still.campaign.progress
    for worker in ("ann", "bob"):
        answer(still, worker)
    with progress.frozen():
        crowd = progress.crowd
        answer(still, "cid")
        assert len(progress.result.crowd.latest) == len(crowd.latest) == 2
        assert len(progress.crowd.latest) == 2
    assert len(progress.crowd.latest) == len(progress.result.crowd.latest) == 3


def test_labels_are_seen_while_people_answer(service):
    version = service.engine.live.version
    for _ in range(4):
        answer(service, "ann")
    wait_until(lambda: service.engine.live.n_answers == 4)
    live = service.engine.wait_for(version, 5)
    assert live.version > version
    assert live.result is not None
    assert "ann" in live.workers


def test_a_served_campaign_goes_on_where_it_was(tmp_path):
    with serve(tmp_path) as service:
        wait_until(lambda: service.engine.live.state == "waiting")
        for _ in range(4):
            answer(service, "ann")
    with serve(tmp_path) as again:
        wait_until(lambda: again.engine.live.state == "waiting")
        assert again.work.me("ann")["done"] == 4
        assert answer(again, "ann")[1]["status"] == "accepted"
        wait_until(lambda: again.engine.live.n_answers == 5)


def test_gold_that_another_process_wrote_is_noticed_without_an_answer(service, tmp_path):
    answered = [answer(service, "ann")[0] for _ in range(4)]
    wait_until(lambda: service.engine.live.n_answers == 4)
    item = next(name for name in answered if name not in service.inputs.control)
    said = service.engine.live.result.tagged_by_id()[item]
    beside = serve(tmp_path)
    other = {"rain": "sun", "sun": "rain"}[said[0]]
    beside.desk.adjudicate(item, other)
    beside.close()
    wait_until(lambda: service.engine.live.result.tagged_by_id()[item] == [other])


def test_gold_that_is_kept_just_after_its_decision_is_noticed(still):
    answered = [answer(still, "ann")[0] for _ in range(4)]
    item = next(name for name in answered if name not in still.inputs.control)
    still.engine.look()
    other = {"rain": "sun", "sun": "rain"}[still.engine.live.result.tagged_by_id()[item][0]]
    # Another process writes the decision, the engine looks, and then comes the gold.
    still.ledger.record(GOLD, "one", {"item": item, "labels": [other]}, still.clock())
    still.engine._next_look = 0.0
    still.engine.look()
    still.ledger.set_gold({item: [other]}, still.clock())
    still.engine._next_look = 0.0
    still.engine.look()
    assert still.engine.live.result.tagged_by_id()[item] == [other]


def test_a_round_that_is_open_is_not_opened_again(still, monkeypatch):
    n_events, real = still.ledger.n_events, still.ledger.open_batch
    monkeypatch.setattr(still.ledger, "open_batch", lambda *_: pytest.fail("it was"))
    still.campaign.run()
    assert still.ledger.n_events == n_events
    monkeypatch.setattr(still.ledger, "open_batch", real)


def test_an_answer_that_comes_after_the_end_is_in_the_files(service, tmp_path):
    for _ in range(4):
        answer(service, "ann")
    held = service.work.next("bob")["task"]["id"]
    end(service.ledger, service.clock())
    service.engine.notify()
    wait_until(service.engine.is_over)
    assert service.engine.live.decision.rule == "requester"
    assert service.work.next("ann")["state"] == "done"
    said = right_answer(service, service.work.tasks.item("bob", held))
    assert service.work.submit("bob", held, key(), said)["status"] == "accepted"
    bill = tmp_path / "out" / "bill.csv"
    wait_until(lambda: "bob" in bill.read_text(encoding="utf-8"))
    assert service.engine.is_over()


def labels_in(table):
    """The label of every item in a table of labels."""
    return {row["item"]: row["label"] for row in csv.DictReader(io.StringIO(table))}


def test_what_is_decided_after_the_end_is_in_the_files_and_the_downloads(tmp_path, caplog):
    with serve(tmp_path) as service, caplog.at_level("INFO", logger="goldspan.web"):
        label_all(service)
        wait_until(lambda: "the campaign has ended: " in caplog.text)
        gold = tmp_path / "out" / "gold.csv"
        found = labels_in(gold.read_text(encoding="utf-8"))
        mine = [item for item in found if item not in service.inputs.control]
        for item in mine[:2]:
            label = found[item]
            other = next(name for name in service.inputs.plan.task.labels if name != label)
            service.desk.adjudicate(item, other)
            wait_until(lambda: labels_in(gold.read_text(encoding="utf-8"))[item] == other)  # noqa: B023
            assert labels_in(service.desk.export("gold.csv").content.decode())[item] == other
        assert service.engine.is_over()


def aggregation_fails(service, patch):
    def fail(*_):
        raise RuntimeError("no step worked")

    patch.setattr(type(service.campaign.steps.aggregate), "fit", fail, raising=False)
    patch.setattr(type(service.campaign.progress), "result", property(fail))
    return "RuntimeError: no step worked"


def store_is_gone(service, patch):
    def fail(*_, **__):
        raise StoreError("campaign.sqlite: unable to open database file; is it gone?")

    patch.setattr(service.ledger, "slots", fail)
    return "unable to open database file"


def disk_is_full(service, patch):
    def fail(*_, **__):
        raise InputError("cannot write gold.csv: No space left on device: make room on the disk")

    patch.setattr(service.ledger, "records", fail)
    return "make room on the disk"


@pytest.mark.parametrize("spoil", [aggregation_fails, store_is_gone, disk_is_full])
def test_what_stops_the_loop_is_logged_shown_beside_the_server_and_taken_back(
    tmp_path, monkeypatch, caplog, spoil
):
    monkeypatch.setattr(engine, "AFTER_ERROR", 0.05)
    caplog.set_level("INFO", logger="goldspan")
    with serve(tmp_path) as service:
        wait_until(lambda: service.engine.live.state == "waiting")
        with pytest.MonkeyPatch.context() as patch:
            told = spoil(service, patch)
            answer_quietly(service)
            wait_until(lambda: service.engine.live.state == "failed")
            live = service.engine.live
            assert told in live.error
            assert "no round closes" in live.advice
            wait_until(lambda: told in service.engine.trouble.read()["error"])
        beside = desk_of(tmp_path)
        if beside["error"]:  # it may work again by now
            assert (beside["state"], told in beside["error"]) == ("failed", True)
            assert beside["advice"]
        wait_until(lambda: service.engine.live.error == "")
        wait_until(lambda: desk_of(tmp_path)["error"] == "")
        assert as_json(service.desk.overview())["state"] in {"waiting", "working"}
    (said,) = [one for one in caplog.records if one.levelname == "ERROR"]
    is_foreseen = spoil is not aggregation_fails  # other messages may hold what people wrote
    assert (told in said.getMessage()) == is_foreseen
    assert "no round closes" in said.getMessage()
    assert said.fields["error"] in {"RuntimeError", "StoreError", "InputError"}
    assert said.fields["where"].startswith("test_engine.py:")
    assert any("the campaign continues" in one.getMessage() for one in caplog.records)
    assert not (tmp_path / "out" / "trouble.json").exists()


def answer_quietly(service):
    """Do a task where the fault lets somebody."""
    with suppress(GoldspanError):
        answer(service, "ann")
    service.engine.notify()


def desk_of(folder):
    """Look at the desk from another process's point of view."""
    with closing(open_service(folder / "campaign.toml", folder / "out", KEYS)) as service:
        return as_json(service.desk.overview())


def test_a_failure_is_kept_where_the_disk_has_no_more_room(tmp_path):
    kept = engine.TroubleFile(tmp_path / "trouble.json")
    assert kept.read() == {"error": "", "advice": ""}
    kept.write()
    size = kept.path.stat().st_size
    kept.write("no room: ü" * 500, "make some")
    assert kept.path.stat().st_size == size
    assert kept.read()["error"].startswith("no room: ü")
    kept.write()
    assert kept.read() == {"error": "", "advice": ""}
    kept.remove()
    assert not kept.path.exists()


def test_what_a_server_that_was_killed_has_left_is_not_believed(tmp_path):
    path = tmp_path / "trouble.json"
    code = (
        "import sys, time; from pathlib import Path; from goldspan.web.engine import TroubleFile;"
        "file = TroubleFile(Path(sys.argv[1])); file.write('no room', 'make some');"
        "print('here', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", code]
    process = subprocess.Popen([*command, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "here\n"
        beside = engine.TroubleFile(path)
        assert beside.read() == {"error": "no room", "advice": "make some"}
    finally:
        process.kill()
        process.communicate()
    assert path.exists()
    assert beside.read() == {"error": "", "advice": ""}


def test_a_campaign_of_another_crowd_is_not_served(tmp_path):
    with pytest.raises(InputError, match="goldspan run"):
        serve(tmp_path, crowd={"source": "files"})
