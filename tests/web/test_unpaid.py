"""A campaign that pays nothing, in browsers: no page and no reply speaks of earnings."""

from __future__ import annotations

import json
import re
from contextlib import closing

import pytest

from goldspan.cli.desk import overview_text as overview_words
from goldspan.cli.desk import workers_text as workers_words
from goldspan.web.pages import PAGES
from web.desk.conftest import worked
from web.desks import Served, as_json
from web.serving import answer

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


def test_a_paid_campaign_still_does(tmp_path):
    with closing(worked(tmp_path)) as service:
        assert as_json(service.desk.overview())["money"]["cap"] == "8.00"
        assert service.work.me("ann.k")["earned"] == "0.30"
        assert "bill.csv" in [one["name"] for one in as_json(service.desk.exports())]
        assert "is paid" in shown(Served(service=service).worker("ann.k").get("/help"))


def test_the_record_that_is_downloaded_has_no_money(service):
    record = json.loads(service.desk.export("record.json").content)
    assert record["money"] is None
