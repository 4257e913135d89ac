"""The JSON API of workers: strict in what it takes, sparing in what it gives."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

import pytest

from goldspan.errors import InputError
from goldspan.spans.encoding import PartSpan
from goldspan.store import StoreError
from goldspan.web import ServerSettings
from goldspan.web.errors import Refused
from goldspan.web.settings import Rate, Rates
from web.played import BEGIN, KEYS, ME, Played, code_of

KEY = "0b9f3a6f-2c8e-1b4d"
SPANS = {"task": "t", "key": KEY, "spans": [{"start": 0, "end": 2, "type": "PER"}]}
CALLS = [
    ("next", {}, ("next", "ann")),
    ("answers", SPANS, ("submit", "ann", "t", KEY, [PartSpan("PER", 0, 2)])),
    ("answers", {**SPANS, "spans": []}, ("submit", "ann", "t", KEY, [])),
    ("answers", {"task": "t", "key": KEY, "label": "rain"}, ("submit", "ann", "t", KEY, "rain")),
    ("skip", {"task": "t", "key": KEY, "reason": "no idea"}, ("skip", "ann", "t", "no idea")),
    (
        "flag",
        {"task": "t", "key": KEY, "reason": "broken", "note": "no text"},
        ("flag", "ann", "t", KEY, "broken", "no text"),
    ),
    ("flag", {"task": "t", "key": KEY, "reason": "bad"}, ("flag", "ann", "t", KEY, "bad", "")),
    ("release", {"task": "t"}, ("release", "ann", "t")),
    ("given", {}, ("given", "ann", BEGIN)),
    ("recall", {"task": "t"}, ("recall", "ann", "t", BEGIN)),
    ("change", SPANS, ("change", "ann", "t", KEY, [PartSpan("PER", 0, 2)], BEGIN)),
]


@pytest.fixture(scope="module")
def server():
    return Played(settings=ServerSettings(KEYS, rates=Rates(worker=Rate(1_000, 1_000))))


@pytest.fixture(scope="module")
def worker(server):
    return server.worker("ann")


@pytest.fixture(autouse=True)
def _afresh(server):
    server.work.calls.clear()
    server.work.fails = None


@pytest.mark.parametrize(("path", "body", "call"), CALLS)
def test_a_request_reaches_the_work_of_the_worker_who_asks(server, worker, path, body, call):
    answer = worker.post(f"/api/work/{path}", json=body)
    assert answer.status_code == 200, answer.text
    assert server.work.calls == [call]


def test_a_body_may_name_its_letters(worker):
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert worker.post("/api/work/next", content=b"{}", headers=headers).status_code == 200


def test_what_a_worker_has_done_is_told(server, worker):
    assert worker.get("/api/work/me").json() == ME
    assert server.work.calls == [("me", "ann")]


def test_what_is_not_in_the_contract_is_not_sent(worker):
    task = worker.post("/api/work/next", json={}).json()["task"]
    assert task["id"] == "t"
    assert "is_control" not in task
    (row,) = worker.post("/api/work/given", json={}).json()["answers"]
    assert set(row) == {"task", "open"}
    assert "is_control" not in worker.post("/api/work/recall", json={"task": "t"}).text


@pytest.mark.parametrize(
    "body",
    [
        {**SPANS, "more": 1},
        {**SPANS, "worker": "bob"},
        {**SPANS, "label": "x"},
        {"task": "t", "key": KEY},
        {"key": KEY, "spans": []},
        {**SPANS, "key": "short"},
        {**SPANS, "key": "a" * 65},
        {**SPANS, "key": "x y z ä ö ü"},
        {**SPANS, "key": KEY + "\n"},
        {**SPANS, "task": 7},
        {**SPANS, "task": ""},
        {**SPANS, "task": "x" * 2_001},
        {**SPANS, "spans": [{"start": "0", "end": 2, "type": "PER"}]},
        {**SPANS, "spans": [{"start": 0.0, "end": 2, "type": "PER"}]},
        {**SPANS, "spans": [{"start": True, "end": 2, "type": "PER"}]},
        {**SPANS, "spans": [{"start": -1, "end": 2, "type": "PER"}]},
        {**SPANS, "spans": [{"start": 0, "end": 2}]},
        {**SPANS, "spans": [{"start": 0, "end": 2, "type": "PER", "confidence": 1}]},
        {**SPANS, "spans": {"start": 0}},
        {**SPANS, "spans": [{"start": 0, "end": 1, "type": "X"}] * 5_001},
        {"task": "t", "key": KEY, "label": ""},
        {"task": "t", "key": KEY, "label": "a\0b"},
        {"task": "t", "key": KEY, "label": ["rain"]},
        [],
        "text",
        None,
    ],
    ids=lambda body: json.dumps(body)[:60],
)
def test_a_body_that_is_not_as_described_is_refused(server, worker, body):
    answer = worker.post("/api/work/answers", json=body)
    assert (answer.status_code, code_of(answer)) == (422, "invalid")
    assert server.work.calls == []


@pytest.mark.parametrize(
    "content",
    [
        b"{", b"\xff", b'{"task": NaN}', b"", b"[" * 100_000, b'{"a":' + b"9" * 9_000 + b"}",
        b'{"task":"t","key":"' + KEY.encode() + b'","label":"\\ud800"}',
    ],
    ids=["cut", "no text", "NaN", "empty", "deep", "a long number", "half a character"],
)  # fmt: skip
def test_what_is_no_json_is_refused(server, worker, content):
    headers = {"Content-Type": "application/json"}
    answer = worker.post("/api/work/answers", content=content, headers=headers)
    assert answer.status_code in {400, 422}
    assert answer.json()["error"]["message"]
    assert server.work.calls == []


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_json_must_be_said_to_be_json(server, worker, kind):
    body = json.dumps(SPANS).encode()
    answer = worker.post("/api/work/answers", content=body, headers={"Content-Type": kind})
    assert answer.status_code == 422
    assert server.work.calls == []


def test_a_refusal_says_where_a_body_is_wrong_and_not_what_stood_there(worker):
    spans = [{"start": "<b>secret</b>", "end": 2, "type": "PER"}]
    answer = worker.post("/api/work/answers", json={**SPANS, "spans": spans})
    assert "body.spans.0.start" in answer.json()["error"]["message"]
    assert "secret" not in answer.text


@pytest.mark.parametrize(
    ("status", "code"), [(409, "conflict"), (410, "gone"), (422, "invalid"), (403, "barred")]
)
def test_a_refusal_of_the_work_is_told_with_its_code(server, worker, status, code):
    server.work.fails = Refused(code, "In words.", status)
    answer = worker.post("/api/work/answers", json=SPANS)
    assert answer.status_code == status
    assert answer.json() == {"error": {"code": code, "message": "In words."}}


def test_a_store_that_cannot_be_written_is_told_as_such(server, worker, caplog):
    server.work.fails = StoreError("/srv/campaign.sqlite: disk is full; nothing was changed")
    answer = worker.post("/api/work/answers", json=SPANS)
    assert (answer.status_code, code_of(answer)) == (503, "unavailable")
    assert int(answer.headers["retry-after"]) > 0
    assert "/srv" not in answer.text
    assert "disk is full" in caplog.text


def test_a_database_that_is_gone_does_not_fill_the_log(server, worker, caplog, monkeypatch):
    server.work.fails = StoreError("postgresql://here/c: the server is starting up")
    for _ in range(20):
        assert worker.post("/api/work/answers", json=SPANS).status_code == 503
    assert caplog.text.count("is starting up") == 1
    monkeypatch.setattr("goldspan.web.security.middleware.QUIET", 0.0)
    worker.post("/api/work/answers", json=SPANS)
    assert caplog.text.count("is starting up") == 2


def test_what_the_ledger_refuses_is_not_told_to_workers(server, worker):
    server.work.fails = InputError("item i7 of /srv/campaign.sqlite is in no batch")
    answer = worker.post("/api/work/answers", json=SPANS)
    assert (answer.status_code, code_of(answer)) == (422, "invalid")
    assert "i7" not in answer.text


@pytest.mark.parametrize("rate", ["address", "worker"])
def test_who_is_told_to_try_again_later_waits_for_that(monkeypatch, rate):
    pauses = []

    async def sleep(seconds):
        pauses.append(seconds)

    shown = SimpleNamespace(sleep=sleep, timeout=asyncio.timeout)
    monkeypatch.setattr("goldspan.web.security.middleware.asyncio", shown)
    monkeypatch.setattr("goldspan.web.security.middleware.PAUSE", 7)
    server = Played(settings=ServerSettings(KEYS, rates=Rates(**{rate: Rate(1, 4)})))
    ann = server.worker("ann")
    while ann.post("/api/work/next", json={}).status_code == 200:
        assert max(pauses, default=0) == 0
    assert ann.post("/api/work/next", json={}).status_code == 429
    assert pauses[-2:] == [7, 7]
    server.clock.now += 60_000
    server.work.fails = Refused("conflict", "In words.", 409)
    assert ann.post("/api/work/answers", json=SPANS).status_code == 409
    assert pauses[-1] == 0


def test_who_asks_without_pause_is_slowed_down_and_nobody_else():
    server = Played(settings=ServerSettings(KEYS, rates=Rates(worker=Rate(20, 3))))
    ann, bob = server.worker("ann"), server.worker("bob")
    answers = [ann.post("/api/work/next", json={}) for _ in range(5)]
    assert [one.status_code for one in answers] == [200, 200, 200, 429, 429]
    assert code_of(answers[-1]) == "slow-down"
    assert answers[-1].headers["retry-after"] == "1"
    assert bob.post("/api/work/next", json={}).status_code == 200
    assert server.worker("ann").post("/api/work/next", json={}).status_code == 429
    server.clock.now += 1_000
    assert ann.post("/api/work/next", json={}).status_code == 200
