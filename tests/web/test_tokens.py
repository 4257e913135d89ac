"""Programs at the desk's API: a token allows what its scopes say, while it holds, and no more."""

from __future__ import annotations

import io
import json
import logging
import re
import zipfile
from contextlib import closing
from functools import partial
from typing import get_args

import pyarrow.parquet as pq
import pytest

from goldspan.errors import InputError
from goldspan.web import desk_api
from goldspan.web.desk import models
from goldspan.web.errors import Refused
from goldspan.web.people import GOLD
from goldspan.web.security.access import SCOPES, Caller, Tokens
from goldspan.web.security.sessions import RecordCache
from goldspan.web.settings import Rate, Rates
from web.desk.conftest import worked
from web.desks import Served
from web.played import DAY, HOUR, code_of

NEEDS = {
    "GET overview": "progress",
    "GET workers": "people",
    "POST workers/ann.k/verdict": "people",
    "GET agreement": "results",
    "GET uncertain": "results",
    "GET computing": "results",
    "GET items": "results",
    "GET items/d1": "results",
    "POST items/d1/gold": "review",
    "DELETE items/d1/gold": "review",
    "GET audit": "results",
    "POST audit/draw": "steer",
    "POST audit/next": "review",
    "POST audit/answers": "review",
    "POST audit/skip": "review",
    "POST pause": "steer",
    "POST resume": "steer",
    "POST stop": "steer",
    "GET links": "links",
    "POST links": "links",
    "DELETE links/x": "links",
    "GET exports": "results",
    "GET exports/gold.csv": "results",
    "GET webhooks": "progress",
    "POST webhooks/1/retry": "steer",
}
"""The scope that a route needs at least."""
SESSION_ALONE = [
    "GET live", "GET tokens", "POST tokens", "DELETE tokens/x",
    "GET reviewers", "POST reviewers", "DELETE reviewers/x",
]  # fmt: skip
ALSO = {"GET report.html"}
"""It needs several scopes."""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    service = worked(tmp_path_factory.mktemp("tokens"))
    yield Served(service=service)
    service.close()


def program_of(served, *scopes, text=None):
    """Return a client with a token of some scopes."""
    made = served.browser()
    made.base_url = f"{served.settings.public_url}/api/desk/"
    text = text or served.auth.tokens.make("a test", scopes, 1)[1]
    made.headers["Authorization"] = f"Bearer {text}"
    return made


@pytest.fixture
def program(served):
    return partial(program_of, served)


def ask(client, way):
    method, path = way.split(" ", 1)
    return client.request(method, path, **({"json": {}} if method != "GET" else {}))


def test_every_route_of_the_desk_has_a_scope_or_is_for_the_session(served):
    known = [*NEEDS, *SESSION_ALONE, *ALSO]
    for path, methods in served.app.openapi()["paths"].items():
        pattern = re.sub(r"\\{\w+\\}", ".+", re.escape(path.removeprefix("/api/desk/")))
        for method in methods if path.startswith("/api/desk/") else ():
            way = re.compile(f"{method.upper()} {pattern}")
            assert any(map(way.fullmatch, known)), f"{method} {path}"


@pytest.mark.parametrize("way", NEEDS)
def test_a_route_is_open_to_its_scope_and_to_no_other(program, way):
    others = [scope for scope in SCOPES if scope != NEEDS[way]]
    if way in {"GET uncertain", "GET computing", "GET items/d1", "GET audit"}:
        others.remove("review")
        assert ask(program("review"), way).status_code in {200, 404}
    for scope in others:
        answer = ask(program(scope), way)
        assert (answer.status_code, code_of(answer)) == (403, "scope"), scope
    if way != "POST stop":  # which cannot be taken back
        assert ask(program(NEEDS[way]), way).status_code not in {401, 403}


@pytest.mark.parametrize("way", SESSION_ALONE)
def test_some_routes_are_for_the_requesters_session_alone(program, way):
    answer = ask(program(*SCOPES), way)
    assert (answer.status_code, code_of(answer)) == (401, "session")


@pytest.mark.parametrize(
    ("name", "query", "needed"),
    [
        ("gold.csv", "", {"results"}),
        ("gold.csv", "?names=true", {"results", "people"}),
        ("record.json", "", {"results", "money"}),
        ("bill.csv", "", {"results", "people", "money"}),
    ],
)
def test_a_file_needs_the_scopes_of_what_is_in_it(program, name, query, needed):
    assert program(*needed).get(f"exports/{name}{query}").status_code == 200
    for scope in needed:
        answer = program(*(set(SCOPES) - {scope})).get(f"exports/{name}{query}")
        assert answer.status_code == 403
        listed = [one["name"] for one in program(*needed).get("exports").json()]
        assert name in listed
    if "money" in needed:
        assert name not in [one["name"] for one in program("results").get("exports").json()]


def test_without_the_scope_nothing_speaks_of_money(served, program):
    whole = program(*SCOPES).get("overview").json()
    assert whole["money"]["spent"] == served.service.desk.overview().money.spent
    told = program("progress").get("overview").json()
    assert told["money"] is None
    assert told["plan"]["budget"]["money"] is None
    assert all(one["spent"] is None for one in told["rounds"])
    assert {one["earned"] for one in program("people").get("workers").json()} == {None}
    assert {one["earned"] for one in program("people", "money").get("workers").json()} != {None}


def test_a_token_for_links_takes_nobodys_place_and_learns_no_ids(tmp_path):
    crowd = {"source": "web", "annotators": ["dora", "ann.k", "bob.k"]}
    with closing(worked(tmp_path, crowd=crowd)) as service:
        served = Served(service=service)
        ((eve, _),) = served.auth.links.make(["eve"], 1)
        links, both = program_of(served, "links"), program_of(served, "links", "people")
        for name in ("ann.k", service.ledger.pseudonyms()["ann.k"], "dora", "eve", "eve "):
            answer = links.post("links", json={"workers": ["new", name]})
            assert (answer.status_code, "'people'" in answer.text) == (422, True), name
            assert both.post("links", json={"workers": [name]}).status_code == 200
        (new,) = links.post("links", json={"workers": ["new"]}).json()
        assert links.post("links", json={"workers": ["new"]}).status_code == 422
        for gone, name in ((eve.id, "eve"), (new["id"], "new")):
            assert links.delete(f"links/{gone}").status_code == 200
            assert links.post("links", json={"workers": [name]}).status_code == 422
            assert both.post("links", json={"workers": [name]}).status_code == 200
        assert {one["worker"] for one in links.get("links").json()} == {""}
        assert "eve" in {one["worker"] for one in both.get("links").json()}


def members(name, content):
    """Yield the files of a download: those of an archive, or itself."""
    if not zipfile.is_zipfile(io.BytesIO(content)):
        yield name, content
        return
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for one in archive.namelist():
            yield one, archive.read(one)


def tells_costs(name, content):
    if name.endswith(".parquet"):
        found = pq.read_table(io.BytesIO(content))
        return any("cost" in column for column in found.column_names)
    return b"cost" in content


@pytest.mark.parametrize("spans", [False, True], ids=["single", "spans"])
def test_no_file_tells_costs_without_the_scope(tmp_path, spans):
    with closing(worked(tmp_path, spans=spans)) as service:
        served, told = Served(service=service), set()
        for scopes in (["results"], ["results", "money"]):
            client = program_of(served, *scopes)
            names = [one["name"] for one in client.get("exports").json()]
            for name in names:
                content = client.get(f"exports/{name}").content
                if any(tells_costs(*one) for one in members(name, content)):
                    told.add((len(scopes), name))
        assert len(names) > 8
        assert {name for n, name in told if n == 1} == set()
        assert {(2, "answers.csv"), (2, "answers.jsonl"), (2, "answers.parquet")} <= told


def test_the_forecast_has_no_money_without_the_scope(served):
    facts = {"next": {"cost": "13.00", "answers": 30}, "end": {"text": "between 12 and 15 more"}}
    view, caller = served.service.desk.overview(), Caller("t", "t", frozenset({"progress"}))
    learning = view.learning.model_copy(update={"forecast": facts})
    view = view.model_copy(update={"learning": learning})
    none = {"next": {"cost": None, "answers": 30}}
    assert desk_api.mask_overview(view, caller).learning.forecast == none
    # Where nobody is paid it counts answers.
    unpaid = desk_api.mask_overview(view.model_copy(update={"money": None}), caller)
    assert unpaid.learning.forecast["end"]["text"] == facts["end"]["text"]


def test_without_the_scope_nobody_is_named(served, program):
    desk = served.service.desk
    item = next(row.item for row in desk.items().items if row.answers >= 2)
    names = {"ann.k", "bob.k", "cat.k"}
    by = {one["worker"] for one in program("results").get(f"items/{item}").json()["answers"]}
    assert by <= {desk.names(name) for name in names}
    assert not by & names
    for way in ("overview", f"items/{item}", "uncertain", "items", "agreement"):
        said = program("progress", "results", "review", "money").get(way).text
        assert not any(name in said for name in names), way
    named = program("results", "people").get(f"items/{item}").json()["answers"]
    assert {one["worker"] for one in named} <= names


def test_a_token_is_sent_as_a_bearer_and_needs_no_csrf_token(program, served):
    assert program("steer").post("pause").json() == {"paused": True}
    assert program("steer").post("resume").json() == {"paused": False}
    client = program("progress")
    text = client.headers["Authorization"].removeprefix("Bearer ")
    for header in (text, f"Basic {text}", "Bearer", "Bearer ", f"Bearer {text}x", "Bearer gst_a_b"):
        client.headers["Authorization"] = header
        assert client.get("overview").status_code == 401
    client.headers["Authorization"] = f"bearer {text}"
    assert client.get("overview").status_code == 200
    assert served.browser().get(f"/api/desk/overview?token={text}").status_code == 401


def test_a_foreign_page_cannot_use_a_token_either(program):
    answer = program("steer").post("pause", headers={"Origin": "https://evil.example"})
    assert (answer.status_code, code_of(answer)) == (403, "origin")


def test_the_token_of_a_request_counts_and_not_its_cookie(served, program):
    browser = served.requester()
    browser.headers["Authorization"] = program("progress").headers["Authorization"]
    assert browser.get("/api/desk/overview").json()["money"] is None
    assert browser.get("/api/desk/workers").status_code == 403
    browser.headers["Authorization"] = "Bearer gst_0_0"
    assert browser.get("/api/desk/overview").status_code == 401


def test_a_token_does_not_let_anybody_label(served, program):
    client = program(*SCOPES)
    client.base_url = served.settings.public_url
    assert client.post("/api/work/next", json={}).status_code == 401
    assert client.get("/desk").headers["location"] == "/login"


def test_a_token_that_was_revoked_or_has_expired_does_not_hold(served, program):
    clock, tokens = served.service.clock, served.auth.tokens
    client = program("progress")
    clock.time += DAY - 1
    assert client.get("overview").status_code == 200
    clock.time += 1
    answer = client.get("overview")
    words = "This token is not valid here, has expired or was revoked."
    assert answer.status_code == 401
    assert answer.json()["error"] == {"code": "token", "message": words}
    token, text = tokens.make("for a day", ["progress"], 1)
    client = program(text=text)
    assert client.get("overview").status_code == 200
    tokens.revoke(token.id)
    clock.time += 1_000
    assert client.get("overview").status_code == 401
    with pytest.raises(Refused, match="no token"):
        tokens.revoke("nothing")


def test_the_store_and_the_log_hold_no_token(served, caplog):
    with caplog.at_level(logging.DEBUG):
        browser = served.requester()
        made = browser.post(
            "/api/desk/tokens", json={"name": "export", "scopes": ["results"], "days": 7}
        ).json()
        client = served.browser()
        client.headers["Authorization"] = f"Bearer {made['token']}"
        assert client.get("/api/desk/agreement").status_code == 200
        client.headers["Authorization"] += "x"
        assert client.get("/api/desk/agreement").status_code == 401
    secret = made["token"].split("_", 2)[2]
    assert secret not in caplog.text
    with served.service.ledger.database.read() as connection:
        raw = connection.connection.driver_connection
        everything = "\n".join(raw.iterdump())
    assert made["id"] in everything
    assert secret not in everything
    (row,) = [one for one in browser.get("/api/desk/tokens").json() if one["id"] == made["id"]]
    assert "token" not in row
    assert row["used"] is not None
    assert row["holds"]
    assert browser.delete(f"/api/desk/tokens/{made['id']}").json()["revoked"] is True
    assert browser.delete("/api/desk/tokens/nothing").status_code == 404


def test_the_use_of_a_token_is_kept_once_an_hour_and_not_in_the_log(served, program):
    client, ledger = program("progress"), served.service.ledger
    name = client.headers["Authorization"].split("_")[1]
    before, clock = ledger.n_events, served.service.clock

    def used():
        return {one.id: one.used for one in served.auth.tokens.all()}[name]

    assert used() is None
    client.get("overview")
    first = used()
    assert first == clock.time
    clock.time += HOUR - 1
    client.get("overview")
    assert used() == first
    clock.time += 1
    client.get("overview")
    assert used() == clock.time
    assert ledger.n_events == before


def test_invalid_tokens_are_counted_by_address_and_valid_ones_are_not(served):
    rates = Rates(token=Rate(1 / 60, 3), program=Rate(1, 5))
    slow = Served(service=served.service, rates=rates)
    _, text = slow.auth.tokens.make("t", ["progress"], 1)
    client = slow.browser()

    def status(token):
        headers = {"Authorization": f"Bearer {token}"}
        return client.get("/api/desk/overview", headers=headers).status_code

    assert [status(f"{text}x") for _ in range(5)] == [401, 401, 401, 429, 429]
    assert [status(text) for _ in range(6)] == [200] * 5 + [429]
    served.service.clock.pass_seconds(60)
    assert (status(text), status("x")) == (200, 401)


@pytest.mark.parametrize(
    ("name", "scopes", "days"),
    [("", ["progress"], 1), (" ", ["progress"], 1), ("a\n", ["progress\n"], 1), ("a", [], 1),
     ("a", ["all"], 1), ("a", ["progress"], 0), ("a", ["progress"], 367),
     ("a" * 201, ["money"], 1)],
)  # fmt: skip
def test_a_token_that_cannot_be_is_not_made(served, name, scopes, days):
    before = len(served.auth.tokens.all())
    with pytest.raises(InputError):
        served.auth.tokens.make(name, scopes, days)
    body = {"name": name, "scopes": scopes, "days": days}
    assert served.requester().post("/api/desk/tokens", json=body).status_code == 422
    assert len(served.auth.tokens.all()) == before


def test_a_decision_under_a_key_is_kept_once_and_says_who_made_it(served, program):
    desk, client = served.service.desk, program("review", "people")
    item = desk.uncertain()[0].item
    headers = {"Idempotency-Key": "decision-0001"}
    before = len(desk.ledger.records(GOLD))
    for _ in range(3):
        answer = client.post(f"items/{item}/gold", json={"label": "rain"}, headers=headers)
        assert answer.json() == {"item": item, "gold": "rain"}
    kept = list(desk.ledger.records(GOLD).values())
    assert len(kept) == before + 1
    assert re.fullmatch("a program, with the token [0-9a-f]{32}", kept[-1]["by"])
    answer = client.post(f"items/{item}/gold", json={"label": "sun"}, headers=headers)
    assert (answer.status_code, code_of(answer)) == (409, "conflict")
    # Somebody else decided meanwhile: the same request again does not take that back.
    desk.adjudicate(item, "sun")
    assert client.post(f"items/{item}/gold", json={"label": "rain"}, headers=headers).json() == {
        "item": item, "gold": "sun",
    }  # fmt: skip
    assert desk.item(item).gold == "sun"
    for _ in range(2):
        client.post("workers/cat.k/verdict", json={"verdict": "drop"}, headers=headers)
    assert len(desk.ledger.records("decision")) == 1
    desk.judge("cat.k", "keep")
    client.post("workers/cat.k/verdict", json={"verdict": "drop"}, headers=headers)
    assert not desk.ledger.standing()["cat.k"]
    other = program("review", "results").post(
        f"items/{item}/gold", json={"label": "rain"}, headers=headers
    )
    assert other.json()["gold"] == "rain"  # a key is of one caller
    bad = client.post("pause", headers={"Idempotency-Key": "x"})
    assert bad.status_code == 403


def test_the_document_names_both_ways_in_and_the_scopes(served, program):
    document = program("progress")
    document.base_url = served.settings.public_url
    found = document.get("/api/openapi.json").json()
    assert found["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    ways = found["paths"]["/api/desk/items/{item}/gold"]["post"]["security"]
    assert {next(iter(one)) for one in ways} == {"requester", "token"}
    assert {"token": ["review"]} in ways
    assert served.browser().get("/api/openapi.json").status_code == 401


def test_the_scopes_of_a_body_are_those_that_there_are():
    assert get_args(models.Scope) == tuple(SCOPES)


def test_an_unknown_token_takes_no_place_in_the_store_and_tells_nothing(served):
    tokens = served.auth.tokens
    before = served.service.ledger.n_events
    for text in ("", "gst", "gst_", "gst__", f"gst_{'a' * 32}_{'b' * 43}", "x" * 100_000, "\ud800"):
        with pytest.raises(Refused) as refused:
            tokens.read(text)
        assert refused.value.code == "token"
    assert served.service.ledger.n_events == before


def test_tokens_are_kept_in_both_databases(new_ledger):
    ledger = new_ledger()
    clock = [10**12]
    tokens = Tokens(RecordCache(ledger, lambda: clock[0]), ledger)
    made, text = tokens.make("ann's laptop", ["results"], 1)
    assert tokens.read(text).scopes == ("results",)
    tokens.touch(made)
    tokens.touch(made)
    (listed,) = tokens.all()
    assert (listed.name, listed.used, listed.revoked) == ("ann's laptop", 10**12, False)
    tokens.revoke(made.id)
    tokens.revoke(made.id)
    clock[0] += 1_000
    with pytest.raises(Refused):
        tokens.read(text)
    assert json.dumps(ledger.records("api-token")).count("hash") == 1
