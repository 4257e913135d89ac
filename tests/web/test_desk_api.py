"""The requester's API: what the desk gives, for nobody else, and as it changes."""

from __future__ import annotations

import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from goldspan.web import desk_api as live
from web.desk.conftest import worked
from web.desks import Served, as_json, running
from web.loops import run_loop, wait_until
from web.played import HOUR, code_of


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    service = worked(tmp_path_factory.mktemp("api"))
    yield Served(service=service)
    service.close()


@pytest.fixture(scope="module")
def desk(served):
    browser = served.requester()
    browser.base_url = f"{served.settings.public_url}/api/desk/"
    return browser


@pytest.mark.parametrize("name", ["overview", "workers", "agreement", "uncertain", "exports"])
def test_the_api_sends_the_views_of_the_desk_as_they_are(served, desk, name):
    assert desk.get(name).json() == as_json(getattr(served.service.desk, name)())


def test_items_are_given_by_page_and_whole(served, desk):
    page = desk.get("items", params={"limit": 2, "state": "all"}).json()
    assert [len(page["items"]), page["more"]] == [2, True]
    item = page["items"][0]["item"]
    assert (
        desk.get(f"items/{item}").json()["answers"]
        == as_json(served.service.desk.item(item))["answers"]
    )
    assert code_of(desk.get("items/nothing")) == "unknown"
    assert desk.get("items", params={"state": "lost"}).status_code == 422
    assert desk.get("items", params={"limit": 201}).status_code == 422


@pytest.mark.parametrize(
    "body",
    [{}, {"label": "rain", "spans": []}, {"label": "rain", "more": 1}, {"label": 1}, {"spans": [1]},
     {"label": "snow"}, {"spans": []}],
)  # fmt: skip
def test_a_decision_that_does_not_fit_is_refused(desk, body):
    item = desk.get("uncertain").json()[0]["item"]
    assert desk.post(f"items/{item}/gold", json=body).status_code == 422


def test_decisions_are_taken(served, desk):
    item = desk.get("uncertain").json()[0]["item"]
    decided = desk.post(f"items/{item}/gold", json={"label": "rain"}).json()
    assert decided == {"item": item, "gold": "rain"}
    assert desk.post("workers/cat.k/verdict", json={"verdict": "drop"}).json()["verdict"] == "drop"
    assert served.service.ledger.standing()["cat.k"]
    assert desk.post("workers/cat.k/verdict", json={"verdict": "keep"}).status_code == 200
    assert desk.post("workers/zoe/verdict", json={"verdict": "keep"}).status_code == 404
    assert desk.post("workers/cat.k/verdict", json={"verdict": "fire"}).status_code == 422
    assert desk.post("pause").json() == {"paused": True}
    assert desk.get("overview").json()["state"] == "paused"
    assert desk.post("resume").json() == {"paused": False}


def test_links_are_made_shown_without_their_address_and_taken_back(served, desk):
    (made,) = desk.post("links", json={"workers": ["Lee, Bo"], "days": 2}).json()
    assert made["url"].startswith(f"{served.settings.public_url}/w/")
    listed = {one["id"]: one for one in desk.get("links").json()}[made["id"]]
    assert listed == {name: value for name, value in made.items() if name != "url"}
    assert listed["holds"]
    assert desk.delete(f"links/{made['id']}").json() == {"id": made["id"], "revoked": True}
    assert not {one["id"]: one["holds"] for one in desk.get("links").json()}[made["id"]]
    assert desk.delete("links/none").status_code == 404
    assert desk.post("links", json={"workers": ["a", "a"]}).status_code == 422
    assert desk.post("links", json={"workers": ["a"], "days": 0}).status_code == 422


def test_a_download_is_a_file_that_runs_nothing(desk):
    answer = desk.get("exports/bill.csv")
    assert answer.text.splitlines()[0].startswith("worker")
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''bill.csv"
    assert answer.headers["content-security-policy"].endswith("sandbox")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert desk.get("exports/..%2Fserver.key").status_code == 404
    assert desk.get("report.html").status_code == 404  # none is made here


def test_pages_lead_to_the_login_and_are_there_afterwards(served):
    browser = served.browser()
    paths = ("", "/workers", "/review", "/items", "/items/d1", "/links", "/exports", "/api")
    for path in (*paths, "/items/x"):
        answer = browser.get(f"/desk{path}")
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    browser = served.requester()
    for path in paths:
        assert "<main" in browser.get(f"/desk{path}").text
    assert browser.get("/desk/items/x").status_code == 404
    assert browser.get("/desk/overview").status_code == 404
    assert browser.get("/desk/nothing").status_code == 404


# ---- the stream ----


@pytest.fixture
def stream(served, desk, monkeypatch):
    """Return the events of the requester's stream, as a function of what to do before each."""
    monkeypatch.setattr(live, "PACE", 0.0)
    context = served.app.state.context
    session = context.auth.sessions.read("desk", desk.cookies["goldspan_desk"])

    def hear(*acts):
        async def run():
            events, heard = live.events(context, session), []
            for act in acts:
                act()
                heard.append(await anext(events, "over"))
            await events.aclose()
            return heard

        return run_loop(run)

    yield hear
    context.leaving.clear()


def read(event):
    kind, data = event.rstrip("\n").split("\n")
    return kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def test_the_stream_tells_what_is_and_then_what_changes(served, stream):
    desk = served.service.desk
    heard = stream(lambda: None, desk.pause, lambda: desk.pause(paused=False))
    kinds, bodies = zip(*map(read, heard), strict=True)
    assert set(kinds) == {"overview"}
    assert bodies[0]["money"] == as_json(desk.overview())["money"]
    assert [body["state"] == "paused" for body in bodies] == [False, True, False]


def test_the_stream_is_no_use_of_the_session_and_ends_with_it(served, stream):
    clock = served.service.clock
    begin = clock.time

    def wait():
        clock.pass_seconds(2 * HOUR / 1000)

    try:
        heard = stream(lambda: None, wait, lambda: None)
    finally:
        clock.time = begin
    assert read(heard[1]) == ("ended", {})
    assert heard[2] == "over"


def test_the_stream_ends_when_the_server_stops(served, stream):
    assert stream(lambda: None, served.app.state.context.leaving.set)[1] == "over"


def test_a_quiet_stream_tells_that_time_passes(stream, monkeypatch):
    monkeypatch.setattr(live, "HEARTBEAT", 0.0)
    first, second = stream(lambda: None, lambda: None)
    assert read(first)[0] == read(second)[0] == "overview"


def test_a_store_that_cannot_be_read_does_not_end_the_stream(served, stream, monkeypatch):
    from goldspan.store import StoreError

    desk = served.service.desk
    failed = []

    def mark():
        if not failed:
            failed.append(True)
            raise StoreError("busy")
        return (1, 1)

    monkeypatch.setattr(desk, "mark", mark)
    heard = stream(lambda: None, lambda: None)
    assert [read(one)[0] for one in heard] == ["trouble", "overview"]
    assert "log of goldspan serve" in read(heard[0])[1]["error"]
    assert failed


def test_a_loop_that_does_not_answer_keeps_no_annotator_waiting(tmp_path, monkeypatch):
    """Who asks for more than there is place for is told at once; annotators have their threads."""
    service, held, told = worked(tmp_path), threading.Event(), Counter()
    for name in ("workers", "export"):
        monkeypatch.setattr(service.desk, name, lambda *_, **__: held.wait(120) and [])
    with running(service) as served, ThreadPoolExecutor(120) as pool:
        desk, worker = (
            {"Cookie": "; ".join(f"{k}={v}" for k, v in one.cookies.items()), **one.headers}
            for one in (served.requester(), served.worker("ann.k"))
        )

        def ask(path, who=desk, body=None):
            asked = Request(f"{served.url}/api/{path}", data=body, headers=who)
            try:
                with urlopen(asked, timeout=120) as reply:
                    return reply.status, ""
            except HTTPError as error:
                told[path] += 1
                return error.code, error.headers["Retry-After"]

        asked = {
            path: [pool.submit(ask, path) for _ in range(60)]
            for path in ("desk/workers", "desk/exports/dataset.zip")
        }
        wait_until(lambda: (told["desk/workers"], told["desk/exports/dataset.zip"]) == (48, 56))
        assert ask("work/next", worker | {"Content-Type": "application/json"}, b"{}")[0] == 200
        assert ask("desk/overview")[0] == 200
        held.set()
    found = Counter(one.result() for one in asked["desk/workers"])
    assert found == {(200, ""): 12, (503, "5"): 48}
    service.close()
