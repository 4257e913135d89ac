"""Metrics: Prometheus can parse them, and they are the numbers of known traffic."""

from __future__ import annotations

import http.client
import socket
import urllib.error
import urllib.request
from contextlib import closing
from dataclasses import replace
from decimal import Decimal

import pytest
from prometheus_client.parser import text_string_to_metric_families

from goldspan.errors import InputError
from goldspan.store.engine import StoreError
from goldspan.web.metrics import Metrics, free_ports, offer_metrics
from web.desk.conftest import worked
from web.desks import Served, as_json
from web.played import Played
from web.serving import answer, key


def read(metrics):
    """Return the value of every sample by name and labels."""
    families = text_string_to_metric_families(metrics.text().decode())
    return {
        (one.name, *sorted(one.labels.items())): one.value
        for family in families
        for one in family.samples
    }


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with closing(worked(tmp_path_factory.mktemp("metrics"))) as made:
        yield made


@pytest.fixture
def served(service):
    """A server that has counted nothing yet."""
    return Served(service=service)


@pytest.fixture
def metrics(served):
    return served.app.state.context.metrics


def test_requests_are_counted_by_route_method_and_status(served, metrics):
    browser = served.worker("ann.k")
    for _ in range(3):
        assert browser.get("/api/work/me").status_code == 200
    assert browser.get("/somewhere/else").status_code == 404
    found = read(metrics)
    counted = ("goldspan_requests_total", ("method", "GET"))
    assert found[*counted, ("route", "/api/work/me"), ("status", "200")] == 3
    assert found[*counted, ("route", "/w/{token}"), ("status", "303")] == 1
    assert found[*counted, ("route", "(no route)"), ("status", "404")] == 1
    assert found["goldspan_request_seconds_count", ("route", "/api/work/me")] == 3
    everything = ("goldspan_request_seconds_bucket", ("le", "+Inf"), ("route", "/api/work/me"))
    assert found[everything] == 3
    assert found["goldspan_reply_seconds_count", ("route", "/api/work/me")] == 3
    begun = found["goldspan_request_seconds_sum", ("route", "/api/work/me")]
    assert found["goldspan_reply_seconds_sum", ("route", "/api/work/me")] >= begun


def test_answers_are_counted_by_what_became_of_them(served, metrics):
    before = read(metrics).get(("goldspan_answers_total", ("outcome", "accepted")), 0)
    browser = served.worker("dan")
    task = browser.post("/api/work/next", json={}).json()["task"]["id"]
    body = {"task": task, "key": key(), "label": "rain"}
    for _ in range(2):  # the second is the same answer, sent again
        assert browser.post("/api/work/answers", json=body).status_code == 200
    wrong = [
        {**body, "label": "sun"},
        {**body, "key": key(), "task": "made up"},
        {**body, "key": key(), "label": "snow"},
    ]
    assert [browser.post("/api/work/answers", json=one).status_code for one in wrong] == [
        409, 422, 422,
    ]  # fmt: skip
    assert served.browser().post("/api/work/answers", json=body).status_code == 401
    found = read(metrics)
    assert found["goldspan_answers_total", ("outcome", "accepted")] == before + 1
    refused = {name[1][1]: n for name, n in found.items() if "refused_total" in name[0]}
    assert refused == {"conflict": 1, "invalid": 2, "session": 1}


def test_the_campaign_is_told_as_the_desk_tells_it(served, metrics):
    service = served.service
    service.work.next("eve")
    found, now = read(metrics), as_json(service.desk.overview())
    assert found[("goldspan_open_assignments",)] == 1
    for kind in ("cap", "spent", "reserved", "left"):
        name = ("goldspan_money", ("currency", now["money"]["currency"]), ("kind", kind))
        assert Decimal(str(found[name])) == Decimal(now["money"][kind])
    for state in ("pool", "picked", "answered"):
        assert found["goldspan_items", ("state", state)] == now["items"][state]
    rows = as_json(service.desk.items(state="done", limit=200))["items"]
    assert found["goldspan_items", ("state", "done")] == sum(not row["control"] for row in rows)
    assert found[("goldspan_loop_look_age_seconds",)] >= 0
    assert found[("goldspan_loop_look_seconds",)] > 0
    assert found[("goldspan_loop_failing",)] == 0
    service.clock.pass_seconds(3600)  # the time of the assignment is over
    assert read(metrics)[("goldspan_open_assignments",)] == 0


def test_writes_of_the_store_are_timed(served, metrics):
    before = read(metrics)[("goldspan_store_write_seconds_count",)]
    answer(served.service, "ann.k")
    found = read(metrics)
    assert found[("goldspan_store_write_seconds_count",)] >= before + 1
    assert found[("goldspan_store_write_seconds_sum",)] > 0


def test_faults_are_counted(metrics, served, monkeypatch):
    def fail(_):
        raise RuntimeError("a secret")

    monkeypatch.setattr(served.service.work, "me", fail)
    reply = served.worker("ann.k").get("/api/work/me")
    assert reply.status_code == 500
    assert reply.headers["x-request-id"] in reply.json()["error"]["message"]
    assert read(metrics)[("goldspan_request_faults_total",)] == 1
    engine = served.service.engine
    monkeypatch.setattr(engine, "live", replace(engine.live, n_faults=2))
    assert read(metrics)["goldspan_loop_faults_total", ("part", "loop")] == 2


def test_without_the_store_the_rest_is_told(metrics, served, monkeypatch):
    def fail():
        raise StoreError("the disk is gone")

    assert read(metrics)[("goldspan_store_readable",)] == 1
    monkeypatch.setattr(served.service.desk, "money", fail)
    found = read(metrics)
    assert found[("goldspan_store_readable",)] == 0
    assert ("goldspan_loop_failing",) in found


def test_no_label_holds_an_id_or_a_text(served, metrics):
    browser = served.worker("ann.k")
    browser.get("/label")
    task = browser.post("/api/work/next", json={}).json()["task"]
    browser.request("BREW", "/api/work/me")
    words = metrics.text().decode()
    for secret in ("ann.k", task["id"], task["text"], "BREW", "192.0.2"):
        assert secret not in words


def test_a_port_of_this_machine_offers_them(metrics):
    with offer_metrics({"": metrics}, 0) as address:
        with urllib.request.urlopen(address) as reply:
            assert reply.headers["content-type"].startswith("text/plain; version=")
            names = {one.name for one in text_string_to_metric_families(reply.read().decode())}
        assert {"goldspan_requests", "goldspan_money", "goldspan_loop_failing"} <= names
        port = int(address.rpartition(":")[2].partition("/")[0])
        with pytest.raises(InputError, match=f"port {port}: Address already in use.*; .*--metrics"):
            free_ports(port)
        assert address == f"http://127.0.0.1:{port}/metrics"
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address)


def test_several_processes_have_ports_next_to_each_other():
    first, second, third = free_ports(0, 3)
    assert (second, third) == (first + 1, first + 2)
    with (
        socket.create_server(("127.0.0.1", second)),
        pytest.raises(InputError, match=rf"port {second}: .* from {first} on.*--metrics"),
    ):
        free_ports(first, 3)
    assert free_ports(first, 3) == [first, second, third]  # what was opened is free again


def test_a_port_after_the_last_one_is_refused():
    with pytest.raises(InputError, match=r"port 65536: the last port is 65535 .* from 65535 on"):
        free_ports(65535, 2)


@pytest.mark.parametrize(
    ("method", "path", "host", "status"),
    [("GET", "/metrics", "evil.example", 404), ("GET", "/metrics", "evil.example:1", 404),
     ("GET", "/", "127.0.0.1", 404), ("POST", "/metrics", "127.0.0.1", 405),
     ("GET", "/metrics", "localhost:9", 200)],
)  # fmt: skip
def test_the_port_answers_nothing_else(method, path, host, status):
    with offer_metrics({"": Metrics()}, 0) as address:
        connection = http.client.HTTPConnection(address.split("/")[2], timeout=60)
        connection.request(method, path, headers={"Host": host})
        assert connection.getresponse().status == status
        connection.close()


@pytest.mark.parametrize("headers", [{}, {"X-Forwarded-For": "127.0.0.1"}])
def test_the_port_of_people_never_offers_them(headers):
    for address in ("192.0.2.1", "127.0.0.1"):
        browser = Played().browser(address=address, headers=headers)
        assert browser.get("/metrics").status_code == 404
