"""A campaign that pays nothing, in browsers: no page and no reply speaks of earnings."""

from __future__ import annotations

import json
import re
from contextlib import closing

import pytest

from campaign.tiny import plan_of, write_files
from goldspan.campaign import read_inputs, read_plan
from goldspan.cli.desk import overview_text as overview_words
from goldspan.cli.desk import workers_text as workers_words
from goldspan.web.pages import PAGES
from goldspan.web.service import open_service
from web.desk.conftest import worked
from web.desks import Served, as_json
from web.serving import KEYS, WEB, answer, open_round

MONEY = re.compile(
    r"money|spent|\bcost|\bpaid\b|\bpays\b|budget|\bearn|\bprice|\bbill", re.IGNORECASE
)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpaid")
    made = worked(folder, prices=None, budget=None)
    yield made
    made.close()


def shown(page):
    """Return what a person sees of a page."""
    text = re.sub(r"<(script|style).*?</\1>", " ", page.text, flags=re.DOTALL)
    return re.sub(r"<[^>]*>", " ", text)


def test_the_desk_has_no_money(service):
    now = as_json(service.desk.overview())
    assert now["money"] is None
    assert not MONEY.search(overview_words(now))
    rows = as_json(service.desk.workers())
    assert [row["earned"] for row in rows] == [None] * len(rows)
    assert not MONEY.search(workers_words(rows))
    assert "bill.csv" not in [one["name"] for one in as_json(service.desk.exports())]
    item = as_json(service.desk.items())["items"][0]["item"]
    assert {row["paid"] for row in as_json(service.desk.item(item))["answers"]} <= {None}


def test_no_page_of_the_desk_speaks_of_it(service):
    served = Served(service=service)
    browser = served.requester()
    for name in PAGES:
        page = browser.get("/desk" if name == "overview" else f"/desk/{name}")
        assert page.status_code == 200, name
        assert not MONEY.search(shown(page)), name
    assert browser.get("/api/desk/overview").json()["money"] is None


def test_no_page_of_an_annotator_speaks_of_it(service):
    served = Served(service=service)
    browser = served.worker("dora")
    for path in ("/label", "/help"):
        assert not MONEY.search(shown(browser.get(path))), path
    got = browser.post("/api/work/next", json={}).json()
    assert got["me"]["earned"] is None
    found = answer(service, "dora")
    assert found is not None
    assert found[1]["paid"] is None


def test_who_is_finished_is_told_how_many_answers_there_are(service):
    service.work.is_over = lambda: True
    try:
        said = service.work.next("ann.k")["message"]
    finally:
        service.work.is_over = service.engine.is_over
    n = service.people["ann.k"].counting
    assert f"You have given {n} answers that count." in said
    assert not MONEY.search(said)


def test_unpaid_people_beside_a_paid_model_hear_nothing_of_money(tmp_path):
    """Others of the same campaign are paid."""
    team = [{"id": "m", "kind": "python", "call": "campaign.rules:weather",
             "prices": {"per_answer": "0.001"}},
            {"id": "paid", "kind": "people", "names": ["eve"], "prices": {"per_answer": "0.2"}},
            {"id": "free", "kind": "people", "prices": {"per_answer": "0"}}]  # fmt: skip
    write_files(tmp_path)
    sections = {**WEB, "control": None, "page": {}}
    plan = read_plan(plan_of(sections, crowd={"source": "mixed", "workers": team}))
    inputs = read_inputs(plan, tmp_path, allow_code=["campaign.rules"])
    with closing(open_service(inputs, tmp_path / "out", KEYS)) as service:
        open_round(service)
        told = {name: answer(service, name)[1] for name in ("ann", "eve")}
        me = service.work.me
        earned = {name: (one["paid"], me(name)["earned"]) for name, one in told.items()}
        assert earned == {"ann": (None, None), "eve": ("0.20", "0.20")}
        shown_to = {name: shown(Served(service=service).worker(name).get("/help")) for name in told}
        assert [bool(MONEY.search(text)) for text in shown_to.values()] == [False, True]
        rows = {row.worker: row.earned for row in service.desk.workers()}
        assert rows == {"ann": None, "eve": "0.20", "m": "0.005"}


def test_a_paid_campaign_still_does(tmp_path):
    with closing(worked(tmp_path)) as service:
        assert as_json(service.desk.overview())["money"]["cap"] == "8.00"
        assert service.work.me("ann.k")["earned"] == "0.30"
        assert "bill.csv" in [one["name"] for one in as_json(service.desk.exports())]
        assert "is paid" in shown(Served(service=service).worker("ann.k").get("/help"))


def test_the_record_that_is_downloaded_has_no_money(service):
    record = json.loads(service.desk.export("record.json").content)
    assert record["money"] is None
