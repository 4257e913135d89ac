"""A real campaign behind the API: persons, tasks and sessions over two starts of the server."""

from __future__ import annotations

import pytest

from web.desks import Served
from web.played import code_of
from web.serving import Clock, key, open_round, serve


@pytest.fixture
def served(tmp_path):
    service = serve(tmp_path, clock=Clock())
    open_round(service)
    yield Served(service=service)
    service.close()


def test_an_answer_counts_once_and_another_under_its_key_is_refused(served):
    ann = served.worker("ann")
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
    ann, bob = served.worker("ann"), served.worker("bob")
    task = ann.post("/api/work/next", json={}).json()["task"]["id"]
    more = {"answers": {"label": "rain"}, "release": {}}.get(path, {"reason": "x"})
    body = {"task": task, **({"key": key()} if more else {}), **more}
    refused = bob.post(f"/api/work/{path}", json=body)
    assert (refused.status_code, code_of(refused)) == (422, "invalid")
    assert ann.post("/api/work/next", json={}).json()["task"]["id"] == task


def test_a_task_shows_its_text_and_its_id_says_nothing_of_items(served):
    answer = served.worker("ann").post("/api/work/next", json={})
    task, inputs = answer.json()["task"], served.service.inputs
    assert not any(f'"{name}"' in answer.text for name in inputs.ids)
    assert set(task) <= {"id", "tokens", "text", "starts", "kind", "expires", "training"}
    item = served.service.work.tasks.item("ann", task["id"])
    assert (task["kind"], task["tokens"]) == ("single", [])
    assert task["text"] == inputs.pool.given[inputs.pool.place[item]]


def test_who_was_in_is_known_after_a_restart_unless_out_or_revoked(served):
    ann, bob, cat = map(served.worker, ("ann", "bob", "cat"))
    cookies = dict(cat.cookies)
    assert cat.post("/logout").status_code == 200
    (link,) = [one.id for one in served.auth.links.all() if one.worker == "bob"]
    served.auth.links.revoke(link)
    again = Served(service=served.service)
    for held, status in ((ann.cookies, 200), (bob.cookies, 401), (cookies, 401)):
        browser = again.browser()
        browser.cookies.update(held)
        assert browser.get("/api/work/me").status_code == status
