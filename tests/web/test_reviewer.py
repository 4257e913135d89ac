"""A reviewer sees and decides uncertain items: no money, no names, no links, nothing else."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from goldspan.web import desk_api
from goldspan.web.errors import Refused
from goldspan.web.people import GOLD
from web.desk.conftest import worked
from web.desks import Served
from web.played import DAY, HOUR, code_of, with_token
from web.serving import Clock, answer, open_round, serve

"""What a reviewer may ask for."""
NAMES = ("ann.k", "bob.k", "cat.k")


BOTH = pytest.mark.parametrize("served", [False, True], ids=["single", "spans"], indirect=True)


@pytest.fixture(scope="module")
def served(request, tmp_path_factory):
    spans = getattr(request, "param", False)
    service = worked(tmp_path_factory.mktemp("reviewer"), spans=spans)
    yield Served(service=service)
    service.close()


def reviewer(served, name="rita", days=30):
    """Return the browser of a reviewer who has opened their link."""
    made, text = served.auth.reviewers.make(name, ["review"], days)
    browser = served.browser()
    opened = browser.get(f"/r/{text}")
    assert (opened.status_code, opened.headers["location"]) == (303, "/desk/review")
    browser.base_url = f"{served.settings.public_url}/api/desk/"
    browser.link = made
    return with_token(browser, served.csrf(browser, "reviewer"))


@pytest.fixture
def rita(served):
    return reviewer(served)


def routes(served):
    """Return all routes of the server, by method and path."""
    for route in served.app.router.routes:
        for method in getattr(route, "methods", None) or ():
            if method != "HEAD":
                yield method, route.path


def test_no_route_of_the_server_lets_a_reviewer_further(served, rita):
    open_to_all = {"/", "/login", "/logout", "/setup", "/static/{version}/{name}", "/healthz"}
    its_own = {
        "/desk/review", "/api/desk/uncertain", "/api/desk/computing",
        "/api/desk/items/{item:path}",
        "/api/desk/items/{item:path}/gold", "/r/{token}", "/desk/audit/check",
        "/api/desk/audit", *(f"/api/desk/audit/{act}" for act in ("next", "answers", "skip")),
    }  # fmt: skip
    seen = set()
    for method, path in routes(served):
        if path in open_to_all | its_own:
            continue
        seen.add(path)
        place = path.replace("{item:path}", "d1").replace("{name}", "workers")
        for name in ("worker:path", "link", "token", "number"):
            place = place.replace(f"{{{name}}}", "1")
        answer = rita.request(
            method, f"{served.settings.public_url}{place}",
            **({"json": {}} if method != "GET" else {}),
        )  # fmt: skip
        told = (answer.status_code, answer.headers.get("location"))
        if path.startswith("/api/desk/"):
            assert (told[0], code_of(answer)) in {(403, "scope"), (401, "session")}, place
        assert told[0] in {401, 403} or told == (303, "/desk/review"), (place, told)
    assert len(seen) > 25


@BOTH
def test_uncertain_items_are_seen_and_decided(served, rita):
    desk = served.service.desk
    rows = rita.get("uncertain").json()
    assert [row["item"] for row in rows] == [one.item for one in desk.uncertain()]
    item, single = rows[0]["item"], served.service.inputs.plan.is_single
    body = {"label": "rain"} if single else {"spans": [{"start": 0, "end": 1, "type": "LOC"}]}
    assert rita.post(f"items/{item}/gold", json=body).status_code == 200
    kept = list(desk.ledger.records(GOLD).values())[-1]
    assert kept["item"] == item
    assert kept["by"] == f"the reviewer {rita.link.id}"
    assert item not in [row["item"] for row in rita.get("uncertain").json()]
    assert rita.post(f"items/{item}/gold", json={}).status_code == 422


def test_decisions_of_a_day_are_bounded(served, rita, monkeypatch):
    monkeypatch.setattr(desk_api, "DAILY", 0)
    item = rita.get("uncertain").json()[0]["item"]
    before = served.service.ledger.n_events
    answer = rita.post(f"items/{item}/gold", json={"label": "rain"})
    assert (answer.status_code, code_of(answer)) == (429, "daily")
    assert int(answer.headers["Retry-After"]) > 0
    assert served.service.ledger.n_events == before


def test_a_decision_needs_the_token_of_the_page(rita):
    rita.headers["X-Goldspan-CSRF"] = "x"
    item = rita.get("uncertain").json()[0]["item"]
    answer = rita.post(f"items/{item}/gold", json={"spans": []})
    assert (answer.status_code, code_of(answer)) == (403, "csrf")


@BOTH
def test_what_is_seen_names_nobody_and_no_money(served, rita):
    said = [rita.get("uncertain").text]
    for row in json.loads(said[0]):
        said.append(rita.get(f"items/{row['item']}").text)
        found = json.loads(said[-1])
        assert found["answers"]
        for one in found["answers"]:
            assert one["worker"].startswith("annotator ")
            assert (one["paid"], one["submitted"], one["seconds"]) == (None, None, None)
    said.append(rita.get(f"{served.settings.public_url}/desk/review").text)
    known = [*NAMES, *(served.service.desk.names(name) for name in NAMES), "EUR", "rita"]
    for text in said:
        assert [name for name in known if name in text] == []


def refused(answer):
    """Return what a refusal says beside the item's name."""
    return answer.status_code, code_of(answer), answer.json()["error"]["message"].split("'")[::2]


DECISION = {"label": "rain"}


def test_gold_questions_and_items_without_answers_are_refused_like_unknown_ones(served, rita):
    inputs, ledger = served.service.inputs, served.service.ledger
    control = next(iter(inputs.control))
    idle = next(item for item in inputs.pool.place if not ledger.given(item))
    before = ledger.records(GOLD)
    unknown = refused(rita.get("items/nothing"))
    assert unknown[:2] == (404, "unknown")
    assert [refused(rita.get(f"items/{item}")) for item in (control, idle)] == [unknown] * 2
    for item in ("nothing", control, idle):
        assert refused(rita.post(f"items/{item}/gold", json=DECISION)) == unknown
    assert ledger.records(GOLD) == before


def test_what_somebody_has_decided_stays(served, rita):
    desk = served.service.desk
    item = rita.get("uncertain").json()[0]["item"]
    key = {"Idempotency-Key": "rita-0001"}
    sent = {"json": DECISION, "headers": key}
    first = rita.post(f"items/{item}/gold", **sent)
    assert first.status_code == 200
    assert rita.post(f"items/{item}/gold", **sent).json() == first.json()
    sara = reviewer(served, "sara")
    for told in (
        sara.get(f"items/{item}"), rita.post(f"items/{item}/gold", json=DECISION),
        sara.post(f"items/{item}/gold", **sent),
    ):  # fmt: skip
        assert (told.status_code, code_of(told)) == (409, "conflict")
    rows = [row for row in desk.ledger.records(GOLD).values() if row["item"] == item]
    assert [row["by"] for row in rows] == [f"the reviewer {rita.link.id}"]
    # The key of a decision opens no other item.
    control = next(iter(desk.inputs.control))
    idle = next(one for one in desk.inputs.pool.place if not desk.ledger.given(one))
    told = [rita.post(f"items/{one}/gold", **sent) for one in ("nothing", control, idle)]
    assert [refused(one) for one in told] == [(404, "unknown", refused(told[0])[2])] * 3
    asked = served.requester().get(f"/api/desk/items/{item}")
    assert asked.status_code == 200
    # The requester decides again, whatever a reviewer said.
    assert desk.adjudicate(item, "sun").item == item


def test_a_reviewer_takes_back_their_own_decisions_alone(served, rita):
    item, sara = rita.get("uncertain").json()[0]["item"], reviewer(served, "sara")
    assert rita.post(f"items/{item}/gold", json=DECISION).status_code == 200
    control = next(iter(served.service.inputs.control))
    told = [sara.delete(f"items/{one}/gold") for one in (item, "nothing", control)]
    assert [refused(one) for one in told] == [refused(told[0])] * 3
    assert told[0].status_code == 404
    # The requester's own decision is taken back, and hers holds again.
    desk, hers = served.service.desk, served.service.desk.item(item).gold
    desk.adjudicate(item, "sun" if hers == "rain" else "rain")
    assert rita.delete(f"items/{item}/gold").status_code == 404
    assert desk.retract(item).gold == desk.item(item).gold == hers
    assert rita.delete(f"items/{item}/gold").json() == {"item": item, "gold": None}
    assert sara.post(f"items/{item}/gold", json=DECISION).status_code == 200


def test_of_two_reviewers_at_the_same_time_one_is_told(served, rita, monkeypatch):
    desk = served.service.desk
    item = rita.get("uncertain").json()[0]["item"]
    monkeypatch.setattr(desk, "check_reviewable", lambda _: None)  # both have looked before
    desk.adjudicate(item, "rain", by="the reviewer a", reviews=True)
    with pytest.raises(Refused) as error:
        desk.adjudicate(item, "rain", by="the reviewer b", reviews=True)
    assert (error.value.status, error.value.code) == (409, "conflict")
    rows = [row for row in desk.ledger.records(GOLD).values() if row["item"] == item]
    assert [row["by"] for row in rows] == ["the reviewer a"]


def test_what_annotators_wrote_is_left_out(tmp_path):
    with closing(serve(tmp_path, clock=Clock())) as service:
        open_round(service)
        work, item = service.work, None
        while item is None:
            got = work.next("ann.k")["task"]
            name = work.tasks.item("ann.k", got["id"])
            if name in service.inputs.control:
                answer(service, "ann.k")
            else:
                item = name
        work.flag("ann.k", got["id"], "key-0000", "call me: 555-1234", "I live at …")
        while not service.ledger.given(item):
            answer(service, "bob.k")
        served = Served(service=service)
        found = reviewer(served).get(f"items/{item}").json()
        assert found["flags"] == [{"worker": "annotator 2", "reason": "Another reason", "note": ""}]
        whole = served.requester().get(f"/api/desk/items/{item}").json()
        assert whole["flags"][0]["note"] == "I live at …"


def test_the_page_is_there_and_no_other(served, rita):
    rita.base_url = served.settings.public_url
    page = rita.get("/desk/review").text
    assert "<main" in page
    assert "/desk/workers" not in page
    for path in ("", "/workers", "/items", "/items/d1", "/links", "/exports", "/api"):
        told = rita.get(f"/desk{path}")
        assert (told.status_code, told.headers["location"]) == (303, "/desk/review")
    assert rita.get("/").headers["location"] == "/desk/review"


def test_a_link_that_was_revoked_or_has_expired_ends_the_session(served):
    clock = served.service.clock
    one = reviewer(served)
    assert one.get("uncertain").status_code == 200
    served.auth.reviewers.revoke(one.link.id)
    clock.time += 1_000
    assert one.get("uncertain").status_code == 401
    two = reviewer(served, days=1 / 24)
    clock.time += HOUR - 1
    assert two.get("uncertain").status_code == 200
    clock.time += 1
    assert two.get("uncertain").status_code == 401
    idle = reviewer(served)
    clock.time += HOUR
    assert idle.get("uncertain").status_code == 401
    three = reviewer(served, days=1 / 48)
    clock.time += HOUR // 2 - 1
    assert three.get("uncertain").status_code == 200
    clock.time += 1
    assert three.get("uncertain").status_code == 401
    made, text = served.auth.reviewers.make("r", ["review"], 1)
    clock.time += DAY
    refused = served.browser().get(f"/r/{text}")
    assert refused.status_code == 403
    assert "has expired" in refused.text
    assert made.name not in refused.headers


def test_links_of_another_kind_do_not_make_a_reviewer(served):
    browser = served.browser()
    _, token = served.auth.tokens.make("t", ["review"], 1)
    assert browser.get(f"/r/{token}").status_code == 403
    assert browser.get("/r/grv_0_0").status_code == 403
    _, text = served.auth.reviewers.make("r", ["review"], 1)
    browser.headers["Authorization"] = f"Bearer {text}"
    assert browser.get("/api/desk/uncertain").status_code == 401


def test_a_requester_in_the_same_browser_stays_one(served, rita):
    _, text = served.auth.reviewers.make("r", ["review"], 1)
    browser = served.requester()
    assert browser.get(f"/r/{text}").status_code == 303
    assert browser.get("/api/desk/overview").status_code == 200
    browser.headers["X-Goldspan-CSRF"] = served.csrf(browser, "desk")
    assert browser.post("/logout").status_code == 200
    assert browser.get("/api/desk/overview").status_code == 403  # a reviewer is left
    assert rita.post(f"{served.settings.public_url}/logout").status_code == 200
    assert rita.get("uncertain").status_code == 401


def test_the_requester_makes_lists_and_revokes_reviewers(served):
    desk = served.requester()
    made = desk.post("/api/desk/reviewers", json={"name": "Rita R.", "days": 7}).json()
    assert made["url"].startswith(f"{served.settings.public_url}/r/grv_")
    (row,) = [one for one in desk.get("/api/desk/reviewers").json() if one["id"] == made["id"]]
    assert row == {name: value for name, value in made.items() if name != "url"}
    assert desk.delete(f"/api/desk/reviewers/{made['id']}").json()["revoked"]
    assert desk.delete("/api/desk/reviewers/nothing").status_code == 404
    secret = made["url"].split("/r/grv_")[1]
    with served.service.ledger.database.read() as connection:
        everything = "\n".join(connection.connection.driver_connection.iterdump())
    assert secret not in everything
    log = [e.body for e in served.service.ledger.events()]
    assert "Rita R." not in json.dumps([dict(body) for body in log])
