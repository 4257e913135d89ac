"""Downloads can be read again, and tell nobody who the workers are – the bill aside."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import closing

import pytest

from goldspan.crowd import read_crowd
from goldspan.crowd.registry import FORMATS, get_format
from goldspan.spans import Span
from goldspan.web.desk import downloads
from goldspan.web.desk.downloads import Pseudonyms
from goldspan.web.errors import Refused
from web.desk.conftest import worked
from web.desks import as_json
from web.serving import KEYS, serve

NAMES = {"ann.k", "bob.k", "cat.k"}


def files(service):
    return [one["name"] for one in as_json(service.desk.exports())]


def shown(service, name):
    """Return all bytes of a download, unpacked."""
    made = service.desk.export(name).content
    if name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(made)) as archive:
            return b"\n".join(archive.read(one) + one.encode() for one in archive.namelist())
    return made


def test_the_desk_offers_every_format_that_the_command_line_writes(service, monkeypatch):
    monkeypatch.setattr(downloads, "find_spec", lambda _: True)
    offered = {downloads._FILES[name][0] for name in files(service) if name in downloads._FILES}
    written = {name for name in FORMATS if hasattr(get_format(name), "write")}
    written -= {"lewidi", "mace"}  # They hold answers alone, which name their annotators.
    if service.inputs.plan.is_single:
        # These have no place for the label of a whole text, or cut it into tokens.
        written -= {"conll", "brat", "folder", "gliner", "span-table", "webanno", "xmi", "cas-json"}
    assert offered - {""} == written


def test_what_is_not_installed_is_not_offered(service, monkeypatch):
    monkeypatch.setattr(downloads, "find_spec", lambda _: None)
    assert not {"gold.spacy", "xmi.zip", "cas-json.zip"} & {*files(service)}
    assert "dataset.zip" in files(service)


def test_every_file_is_made_and_none_but_the_bill_names_a_worker(service):
    for name in files(service):
        words = shown(service, name)
        assert len(words) > 50, name
        named = {worker for worker in NAMES if worker.encode() in words}
        assert named == (NAMES if name == "bill.csv" else set()), name


def test_the_requester_may_have_the_names_and_the_log_keeps_it(fresh):
    events = fresh.ledger.n_events
    for name in files(fresh):
        fresh.desk.export(name)
    assert fresh.ledger.n_events == events
    for name in files(fresh):
        made = fresh.desk.export(name, names=True, by="the requester").content
        pseudonyms = [Pseudonyms(KEYS, fresh.inputs.key)(worker).encode() for worker in NAMES]
        assert not any(one in made for one in pseudonyms), name
    for name in ("answers.csv", "record.json"):
        made = fresh.desk.export(name, names=True, by="the requester").content
        assert all(worker.encode() in made for worker in NAMES)
    kept = list(fresh.ledger.records("named-download").values())
    assert kept == [
        {"file": name, "by": "the requester"}
        for name in [*files(fresh), "answers.csv", "record.json"]
    ]


def test_a_file_that_cannot_be_made_is_not_in_the_log(fresh):
    with pytest.raises(Refused):
        fresh.desk.export("none.csv", names=True)
    assert fresh.ledger.records("named-download") == {}


def test_a_worker_has_one_pseudonym_in_all_files(service):
    mine = service.ledger.pseudonyms()["ann.k"]
    record = json.loads(shown(service, "record.json"))
    assert set(record["workers"]) == {service.ledger.pseudonyms()[w] for w in NAMES}
    answers = "answers.csv" if service.inputs.plan.is_single else "answers.tsv"
    assert mine.encode() in shown(service, answers)
    # A campaign of before has keyed hashes.
    hashed = Pseudonyms(KEYS, service.inputs.key)("ann.k")
    assert hashed not in {mine, Pseudonyms(KEYS, "another-campaign")("ann.k")}


def test_answers_that_were_downloaded_are_the_answers(service, tmp_path):
    name = "answers.csv" if service.inputs.plan.is_single else "answers.tsv"
    path = tmp_path / name
    path.write_bytes(service.desk.export(name).content)
    crowd = read_crowd(path)
    assert (crowd.n_workers, len(crowd.latest)) == (3, 18)


def test_the_report_is_given_findings_with_pseudonyms(service, monkeypatch):
    assert "report.html" not in files(service)

    def write(findings, path):
        crowds = [findings.result.crowd, findings.tested.crowd]
        names = [name for crowd in crowds for name in crowd.worker_ids.to_pylist()]
        path.write_text(" ".join([*findings.record.workers, *names]))

    monkeypatch.setattr(service.desk.downloads, "report", write)
    mine = [service.ledger.pseudonyms()[worker] for worker in NAMES]
    assert sorted(shown(service, "report.html").decode().split()) == sorted(3 * mine)


def test_what_is_not_there_is_refused(service):
    with pytest.raises(Refused) as caught:
        service.desk.export("../server.key")
    assert caught.value.status == 404


def test_before_the_first_answer_labels_are_refused_and_the_record_is_not(tmp_path):
    from web.serving import open_round

    service = serve(tmp_path)
    open_round(service)
    service.engine.look()
    with pytest.raises(Refused, match="no answers yet"):
        service.desk.export("gold.csv")
    assert json.loads(service.desk.export("record.json").content)["workers"] == {}
    assert as_json(service.desk.agreement())["measures"] is None
    service.close()


def test_a_download_says_what_it_does_not_give_back(service, tmp_path):
    """Labels are read again from every file of them; of tools' files the confidence is told."""
    listed = files(service)
    path = tmp_path / "gold.parquet"
    path.write_bytes(service.desk.export("gold.parquet").content)
    assert read_crowd(path).gold is not None
    assert service.desk.export("gold.parquet").lost == ()
    if "prodigy.jsonl" in listed:
        assert service.desk.export("doccano.jsonl").lost[-1].startswith("the confidence of ")
        lost = service.desk.export("prodigy.jsonl").lost
        assert not any(one.startswith("the confidence") for one in lost)
        assert b'"score": ' in shown(service, "prodigy.jsonl")
        assert any(one.startswith("the starting times of 18 answers") for one in lost)


def test_label_studio_gets_predictions_but_where_the_requester_reviewed(tmp_path):
    with closing(worked(tmp_path, spans=True)) as service:
        item = service.desk.uncertain(1)[0].item
        service.desk.adjudicate(item, [Span("LOC", 0, 1)])
        service.engine.look()
        tasks = json.loads(shown(service, "label-studio.json"))
        crowd = service.engine.live.crowd
    assert [task["data"]["item"] for task in tasks] == crowd.item_ids.to_pylist()
    for task in tasks:
        gold = [one for one in task["annotations"] if one["ground_truth"]]
        assert len(task["annotations"]) > len(gold)
        if task["data"]["item"] == item:
            assert [one["value"]["labels"] for one in gold[0]["result"]] == [["LOC"]]
            assert "predictions" not in task
        else:
            assert gold == []
            (found,) = task["predictions"]
            assert 0 < found["score"] <= 1


def test_no_tool_gets_labels_as_gold_that_the_requester_did_not_review(tmp_path):
    with closing(worked(tmp_path, spans=True)) as service:
        item = service.desk.uncertain(1)[0].item
        service.desk.adjudicate(item, [Span("LOC", 0, 1)])
        service.engine.look()
        for name in ("label-studio.json", "doccano.jsonl", "prodigy.jsonl", "brat.zip"):
            made = service.desk.export(name)
            path = tmp_path / name
            path.write_bytes(made.content)
            back = read_crowd(path)
            known = [
                one for one, place in zip(back.item_ids.to_pylist(), back.offsets, strict=False)
                if back.gold[place] >= 0
            ]  # fmt: skip
            assert [one.removesuffix("-1") for one in known] == [item], name
            assert back.n_workers == 3
            assert any("prediction" in note for note in back.import_report.notes)
            assert not any("gold" in one for one in made.lost)
