"""The page before the real server: a link is opened, answers arrive in the campaign's store."""

from __future__ import annotations

import pytest

from goldspan.web import ServerSettings, create_app
from web.pages.fake import Running
from web.serving import KEYS, open_round, serve


@pytest.fixture
def open_server(tmp_path):
    """Serve a tiny campaign and give the server and its service."""
    opened = []

    def go(**options):
        service = serve(tmp_path, **options)
        open_round(service)
        server = Running(lambda address: create_app(service, ServerSettings(KEYS, address)))
        opened.append((server.__enter__(), service))
        return opened[-1]

    yield go
    for server, service in opened:
        server.__exit__()
        service.close()


def link(server, worker):
    ((_, token),) = server.server.config.app.state.house.entrance.links.make([worker], 1)
    return f"/w/{token}"


def given(service):
    """All answers that are kept, with their labels."""
    rows = service.ledger.given()
    return [(row, list(service.ledger.given(row.item)[0].labels)) for row in rows]


def test_a_worker_opens_the_link_marks_and_sends(visit, open_server):
    server, service = open_server(spans=True, page={"training": 1})
    page = visit(path=link(server, "ann"), server=server)
    assert page.url == f"{server.address}/label"
    assert page.text_content("#card-title") == "Practice"
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    page.locator("h2", has_text="Not quite").or_(page.locator("h2", has_text="That is")).wait_for()
    page.keyboard.press("Enter")
    page.locator("#card-title", has_text="Text 2").wait_for()
    ((row, labels),) = given(service)
    assert (row.worker, row.counts, labels[0]) == ("ann", True, "B-LOC")


def test_a_single_label_reaches_the_store(visit, open_server):
    server, service = open_server(page={"training": 0})
    page = visit(path=link(server, "ann"), server=server)
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    page.locator("#card-title", has_text="Text 2").wait_for()
    ((_, labels),) = given(service)
    assert labels == [service.inputs.plan.task.labels[0]]


def test_skipping_and_reporting_reach_the_store(visit, open_server):
    server, service = open_server(page={"training": 0})
    page = visit(path=link(server, "ann"), server=server)
    seen = [page.text_content(".text")]
    for key in ("s", "f"):
        page.keyboard.press(key)
        page.keyboard.press("2")
        page.keyboard.press("Enter")
        page.locator(".text", has_not_text=seen[-1]).wait_for()
        seen.append(page.text_content(".text"))
    assert len(set(seen)) == 3
    (flag,) = service.ledger.records("flag").values()
    assert flag["worker"] == "ann"


def test_an_answer_is_changed_in_the_store_and_paid_once(visit, open_server):
    server, service = open_server(page={"training": 0}, control=None)
    page = visit(path=link(server, "ann"), server=server)
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    page.locator("#card-title", has_text="Text 2").wait_for()
    earned = page.text_content("#me")
    page.keyboard.press("b")
    page.locator("#card-title", has_text="Your answer 1 of 1").wait_for()
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    page.locator("#card-title", has_text="Text 2").wait_for()
    assert page.text_content("#me") == earned
    first, second = service.ledger.given(service.ledger.given()[0].item)
    labels = service.inputs.plan.task.labels
    assert (first.labels, first.counts) == ([labels[0]], False)
    assert (second.labels, second.counts, second.status) == ([labels[1]], True, "changed")
    assert service.ledger.totals().spent == second.cost == 50_000


def test_without_a_link_the_page_says_how_to_come_in(visit, open_server):
    server, _ = open_server()
    page = visit(path="/help", server=server)
    assert "Open your personal link" in page.text_content("main")


def test_a_worker_logs_out_on_the_help_page(visit, open_server):
    server, _ = open_server()
    page = visit(path=link(server, "ann"), server=server)
    page.goto(f"{server.address}/help")
    page.click("form button")
    page.locator("h1", has_text="Goodbye").wait_for()
    page.goto(f"{server.address}/label")
    assert "Open your personal link" in page.text_content("main")
