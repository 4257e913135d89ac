"""The desk of a campaign of several layers: what is found, decisions, downloads."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import closing

import pytest

from goldspan import read_crowd, read_layers
from goldspan.cli.campaign import write_findings
from goldspan.cli.desk import agreement_text, gold_text, item_text, items_text, uncertain_text
from goldspan.crowd.layers import sets_of
from goldspan.web.errors import Refused
from web.desk.conftest import OTHER, TOLD, layered
from web.desks import Served, as_json

NAMES = {"ann.k", "bob.k", "cat.k"}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with closing(layered(tmp_path_factory.mktemp("layers"), report=write_findings)) as made:
        yield made


@pytest.fixture
def fresh(tmp_path):
    with closing(layered(tmp_path)) as made:
        yield made


def of_answer(spans):
    return [{key: one[key] for key in ("start", "end", "type")} for one in spans]


def test_an_uncertain_item_shows_what_is_found_in_every_layer(service):
    rows = as_json(service.desk.uncertain())
    sure = [row["found"]["confidence"] for row in rows]
    assert sure == sorted(sure)
    assert rows == as_json(service.desk.uncertain(by="information"))
    found = rows[0]["found"]["layers"]
    assert list(found) == ["places", "mood", "topics"]
    assert of_answer(found["places"]["spans"]) == TOLD["places"]
    assert len(found["places"]["tokens"]) == len(rows[0]["tokens"])
    assert (found["mood"]["label"], found["topics"]["labels"]) == ("fair", ["art", "law"])
    chances = [one["confidence"] for one in found["topics"]["alternatives"]]
    assert chances == sorted(chances, reverse=True)
    assert len(chances) == 3
    shares = [one["confidence"] for one in found.values()]
    product = shares[0] * shares[1] * shares[2]
    assert rows[0]["found"]["confidence"] == pytest.approx(product, abs=1e-3)


def test_items_and_answers_are_shown_with_layers(service):
    rows = [row for row in as_json(service.desk.items())["items"] if row["confidence"]]
    found = {row["item"]: service.desk.item(row["item"]).found.layers for row in rows}
    for row in rows:
        least = min(one.confidence for one in found[row["item"]].values())
        if row["unsure"] is not None:
            assert found[row["item"]][row["unsure"]].confidence == pytest.approx(least, abs=1e-4)
    one = as_json(service.desk.item(rows[-1]["item"]))
    said = [
        row["labels"] | {"places": of_answer(row["labels"]["places"])} for row in one["answers"]
    ]
    assert TOLD in said
    assert OTHER in said
    agreed = as_json(service.desk.agreement())
    assert agreed["measures"] is None
    assert agreed["layers"]["mood"]["alpha"] < 1
    assert {row.control.unit for row in service.desk.workers()} == {"labels"}


def test_a_decision_is_gold_of_every_layer_and_can_be_taken_back(fresh):
    item = fresh.desk.uncertain(1)[0].item
    before = fresh.desk.item(item).found
    assert fresh.desk.adjudicate(item, OTHER).to_dict()["gold"]["mood"] == "bad"
    known = {
        name: sets_of(crowd, chars=False)[item] for name, crowd in fresh.ledger.layers().items()
    }
    assert known == {"places": {("LOC", 1, 5)}, "mood": {("bad", 0, 0)}, "topics": set()}
    fresh.engine.look()
    found = fresh.desk.item(item).found
    assert found.confidence == 1
    assert of_answer(as_json(found)["layers"]["places"]["spans"]) == OTHER["places"]
    assert (found.layers["mood"].label, found.layers["topics"].labels) == ("bad", [])
    assert item not in [row.item for row in fresh.desk.uncertain()]
    fresh.desk.retract(item)
    fresh.engine.look()
    assert fresh.desk.item(item).found == before
    for wrong in ("bad", {"mood": "glad"}, {"topics": []}):
        with pytest.raises(Refused, match="does not fit"):
            fresh.desk.adjudicate(item, wrong)
    fresh.ledger.verify()


def test_every_file_is_made_and_names_nobody(service, tmp_path):
    listed = as_json(service.desk.exports())
    assert {one.get("layer") for one in listed} == {None, "places", "mood", "topics"}
    for one in listed:
        made = service.desk.export(one["name"]).content
        (tmp_path / one["name"]).write_bytes(made)
        named = {worker for worker in NAMES if worker.encode() in made}
        assert named == (NAMES if one["name"] == "bill.csv" else set()), one["name"]
    result = service.engine.live.result
    truth = {name: sets_of(one.as_gold(), chars=True) for name, one in result.layers.items()}
    back = read_layers(tmp_path / "layers.jsonl")
    assert {name: sets_of(crowd, chars=True) for name, crowd in back.items()} == truth
    for name in ("places-spans.jsonl", "mood-gold.csv", "topics-gold.csv", "topics-gold.parquet"):
        own = sets_of(read_crowd(tmp_path / name), chars=True)
        assert own == truth[name.partition("-")[0]], name
    assert read_crowd(tmp_path / "places-answers.jsonl").n_workers == 3


def test_label_studio_gets_the_layers_as_results_of_one_annotation(fresh, tmp_path):
    item = fresh.desk.uncertain(1)[0].item
    fresh.desk.adjudicate(item, TOLD)
    fresh.engine.look()
    path = tmp_path / "label-studio.json"
    path.write_bytes(fresh.desk.export(path.name).content)
    tasks = {task["data"]["item"]: task for task in json.loads(path.read_text())}
    people = [one.get("completed_by", {}).get("email") for one in tasks[item]["annotations"]]
    assert len(people) == len({*people}) == 4  # three annotators and the reviewer
    names = Counter(one["from_name"] for one in tasks[item]["annotations"][0]["result"])
    assert names == {"places": 2, "mood": 1, "topics": 1}
    (other, *_) = (task for task in tasks.values() if task["predictions"])
    (one,) = other["predictions"]
    found = fresh.desk.item(other["data"]["item"]).found
    assert one["score"] == pytest.approx(found.confidence, abs=3e-4)
    gliner = json.loads(fresh.desk.export("places-gliner.json").content)
    sure = {row["item"]: row["confidence"] for row in gliner}
    places = found.layers["places"].confidence  # of all its parts
    assert sure[other["data"]["item"]] == pytest.approx(places, abs=3e-4)
    back = read_layers(path)
    ledger = fresh.ledger.layers()
    assert {name: crowd.n_workers for name, crowd in back.items()} == dict.fromkeys(ledger, 3)
    known = {name: sets_of(crowd, chars=True)[item] for name, crowd in back.items()}
    assert known == {name: sets_of(crowd, chars=True)[item] for name, crowd in ledger.items()}


def test_before_the_first_answer_the_files_of_a_layer_are_refused(tmp_path):
    with closing(layered(tmp_path, n=0)) as service:
        with pytest.raises(Refused, match="no answers yet"):
            service.desk.export("mood-gold.csv")
        assert service.desk.uncertain() == []


def test_the_report_has_a_section_of_every_layer(service):
    page = service.desk.export("report.html").content.decode()
    headings = re.findall(r'<h2 id="layer-\d"><bdi>(\w+)</bdi></h2>', page)
    assert headings == ["places", "mood", "topics"]
    assert page.count("How well the workers agree") == 3
    assert "mood (label): bad, fair, good" in page
    ids = Counter(re.findall(r'<(?!path)[^>]* id="([^"]+)"', page))
    assert not [one for one, n in ids.items() if n > 1 and "plots" not in one]


def test_there_is_no_page_of_an_audit(service):
    assert Served(service=service).requester().get("/desk/audit").status_code == 404


def test_the_command_line_tells_layers_in_words(service):
    first = as_json(service.desk.uncertain(1))[0]
    said = "places: ORG[University of New York] LOC[New York]; mood: fair; topics: art, law"
    assert "places: ORG[University of New York] LOC[" in uncertain_text([first])
    shown = item_text(as_json(service.desk.item(first["item"])))
    assert f"the answers say: {said} (" in shown
    assert "cat.k: places: LOC[University of New York]; mood: bad; topics: nothing" in shown
    assert "mood: alpha" in agreement_text(as_json(service.desk.agreement()))
    assert re.search(r"0\.\d+ \((places|mood|topics)\)", items_text(as_json(service.desk.items())))
    gold = {"item": "d1", "gold": TOLD}
    assert gold_text(gold) == "d1 is gold: places: 2 spans; mood: fair; topics: art, law"
