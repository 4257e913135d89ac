"""A real campaign behind the API: persons, tasks and sessions over two starts of the server."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

from goldspan.web import ServerSettings, create_app
from web.houses import code_of
from web.serving import KEYS, Clock, key, open_round, serve

URL = "http://127.0.0.1:8080"


@pytest.fixture
def served(tmp_path):
    """Give a campaign with an open round, and its application."""
    clock = Clock()
    service = serve(tmp_path, clock=clock)
    open_round(service)
    made = SimpleNamespace(service=service, clock=clock, app=start(service, clock))
    yield made
    service.close()


def start(service, clock):
    return create_app(service, ServerSettings(KEYS, URL, clock=clock))


def browser_of(app, cookies=None):
    made = TestClient(app, base_url=URL, follow_redirects=False)
    made.cookies.update(cookies or {})
    return made


def worker_of(app, name):
    """Return the browser of a worker who has opened a link, and the id of the link."""
    entrance = app.state.house.entrance
    ((link, token),) = entrance.links.make([name], 30)
    made = browser_of(app)
    made.get(f"/w/{token}")
    session = entrance.sessions.read("worker", made.cookies["goldspan_worker"])
    made.headers["X-Goldspan-CSRF"] = entrance.sessions.csrf(session)
    return made, link.id


def test_an_answer_counts_once_and_another_under_its_key_is_refused(served):
    ann, _ = worker_of(served.app, "ann")
    task = ann.post("/api/work/next", json={}).json()["task"]
    assert ann.post("/api/work/next", json={}).json()["task"] == task
    body = {"task": task["id"], "key": key(), "label": "rain"}
    first = ann.post("/api/work/answers", json=body).json()
    assert first["status"] == "accepted"
    assert ann.post("/api/work/answers", json=body).json() == first
    other = ann.post("/api/work/answers", json={**body, "label": "sun"})
    assert (other.status_code, code_of(other)) == (409, "conflict")
    assert ann.get("/api/work/me").json()["done"] == 1


@pytest.mark.parametrize("path", ["answers", "skip", "flag", "release"])
def test_a_task_of_another_worker_is_nobodys(served, path):
    (ann, _), (bob, _) = worker_of(served.app, "ann"), worker_of(served.app, "bob")
    task = ann.post("/api/work/next", json={}).json()["task"]["id"]
    body = {"task": task, "key": key(), "label": "rain"}
    if path in {"skip", "flag"}:
        body = {"task": task, "key": key(), "reason": "x"}
    elif path == "release":
        body = {"task": task}
    refused = bob.post(f"/api/work/{path}", json=body)
    assert (refused.status_code, code_of(refused)) == (422, "invalid")
    assert ann.post("/api/work/next", json={}).json()["task"]["id"] == task


def test_ids_of_tasks_say_nothing_of_items(served):
    ann, _ = worker_of(served.app, "ann")
    answer = ann.post("/api/work/next", json={})
    task = answer.json()["task"]
    names = [f'"{name}"' for name in served.service.inputs.ids]
    assert not any(name in answer.text for name in names)
    assert set(task) <= {"id", "tokens", "text", "starts", "kind", "expires", "training"}


def test_a_worker_is_known_after_a_restart_unless_the_link_was_revoked(served):
    (ann, _), (bob, link) = worker_of(served.app, "ann"), worker_of(served.app, "bob")
    served.app.state.house.entrance.links.revoke(link)
    again = start(served.service, served.clock)
    assert browser_of(again, ann.cookies).get("/api/work/me").status_code == 200
    assert browser_of(again, bob.cookies).get("/api/work/me").status_code == 401


def test_a_logout_is_remembered_after_a_restart(served):
    ann, _ = worker_of(served.app, "ann")
    cookies = dict(ann.cookies)
    assert ann.post("/logout").status_code == 200
    again = start(served.service, served.clock)
    assert browser_of(again, cookies).get("/api/work/me").status_code == 401
