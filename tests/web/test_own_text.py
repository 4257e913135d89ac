"""People's own text on a server: shown as it is, with the places of its tokens."""

from __future__ import annotations

import json

import pytest

from goldspan.protocols import Lease
from goldspan.spans import tokenize
from goldspan.web.errors import Refused
from goldspan.web.service import open_service
from own_text import own_texts
from web.serving import KEYS, open_round, plan_file

TEXTS = [*own_texts(20), "a a  b a", " the the the"]


@pytest.fixture
def plan(tmp_path):
    rows = [{"id": f"t{n}", "text": text} for n, text in enumerate(TEXTS)]
    (tmp_path / "own.json").write_text(json.dumps(rows))
    return plan_file(
        tmp_path, spans=True, pool={"file": "own.json"}, control=None, page={"training": 0},
        model={"name": "none"},
    )  # fmt: skip


def lease_of(item, worker="ann"):
    return Lease(item, worker, ("x",), taken=0, expires=1, cost=0)


def test_a_task_has_the_text_and_the_places_that_the_store_has(plan, tmp_path):
    service = open_service(plan, tmp_path / "out", KEYS)
    open_round(service)
    crowd = service.ledger.crowd("pool")
    for n, item in enumerate(crowd.item_ids.to_pylist()):
        shown = service.work.tasks.shown(item)
        assert shown["text"] == crowd.texts[n].as_py() == TEXTS[int(item[1:])]
        assert shown["starts"] == [a for a, _ in tokenize(shown["text"])]
        assert shown["tokens"] == [shown["text"][a:b] for a, b in tokenize(shown["text"])]
        assert service.work.tasks.show(lease_of(item), practice=False)["text"] == shown["text"]
    service.close()


def test_an_open_page_never_answers_another_item_after_the_pool_was_put_in_order(plan, tmp_path):
    service = open_service(plan, tmp_path / "out", KEYS)
    open_round(service)
    task = service.work.tasks.show(lease_of("t3"), practice=False)["id"]
    assert service.work.tasks.item("ann", task) == "t3"
    service.close()
    rows = json.loads((tmp_path / "own.json").read_text())
    (tmp_path / "own.json").write_text(json.dumps([{"id": "new", "text": "first"}, *rows]))
    service = open_service(plan, tmp_path / "out", KEYS)
    open_round(service)
    with pytest.raises(Refused, match="load the page again"):
        service.work.tasks.item("ann", task)
    again = service.work.tasks.show(lease_of("t3"), practice=False)["id"]
    assert service.work.tasks.item("ann", again) == "t3"
    service.close()
