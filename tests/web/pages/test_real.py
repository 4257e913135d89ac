"""The page before the real server: a link is opened, answers arrive in the campaign's store."""

from __future__ import annotations

from contextlib import ExitStack, closing

import pytest

from web.desks import running
from web.pages.conftest import press, title
from web.serving import open_round, serve


@pytest.fixture
def open_server(tmp_path):
    """Serve a tiny campaign."""
    with ExitStack() as stack:

        def go(**options):
            service = stack.enter_context(closing(serve(tmp_path, **options)))
            open_round(service)
            return stack.enter_context(running(service))

        yield go


def given(service):
    """All answers that are kept, with their labels."""
    rows = service.ledger.given()
    return [(row, list(service.ledger.given(row.item)[0].labels)) for row in rows]


def test_a_worker_opens_the_link_marks_and_sends(visit, open_server):
    served = open_server(spans=True, page={"training": 1})
    page = visit(path=served.link("ann"), address=served.url)
    assert page.url == f"{served.url}/label"
    assert page.text_content("#card-title") == "Practice"
    press(page, "1", "Enter")
    page.locator("h2", has_text="Not quite").or_(page.locator("h2", has_text="That is")).wait_for()
    page.keyboard.press("Enter")
    title(page, "Text 2")
    ((row, labels),) = given(served.service)
    assert (row.worker, row.counts, labels[0]) == ("ann", True, "B-LOC")


def test_skipping_and_reporting_reach_the_store(visit, open_server):
    served = open_server(page={"training": 0})
    page = visit(path=served.link("ann"), address=served.url)
    seen = [page.text_content(".text")]
    for key in ("s", "f"):
        press(page, key, "2", "Enter")
        page.locator(".text", has_not_text=seen[-1]).wait_for()
        seen.append(page.text_content(".text"))
    assert len(set(seen)) == 3
    (flag,) = served.service.ledger.records("flag").values()
    assert flag["worker"] == "ann"


def test_an_answer_is_changed_in_the_store_and_paid_once(visit, open_server):
    served = open_server(page={"training": 0}, control=None)
    page = visit(path=served.link("ann"), address=served.url)
    press(page, "1", "Enter")
    title(page, "Text 2")
    earned = page.text_content("#me")
    page.keyboard.press("b")
    title(page, "Your answer 1 of 1")
    press(page, "2", "Enter")
    title(page, "Text 2")
    assert page.text_content("#me") == earned
    first, second = served.service.ledger.given(served.service.ledger.given()[0].item)
    labels = served.service.inputs.plan.task.labels
    assert (first.labels, first.counts) == ([labels[0]], False)
    assert (second.labels, second.counts, second.status) == ([labels[1]], True, "changed")
    assert served.service.ledger.totals().spent == second.cost == 50_000


def test_a_worker_logs_out_on_the_help_page(visit, open_server):
    served = open_server()
    page = visit(path=served.link("ann"), address=served.url)
    page.goto(f"{served.url}/help")
    page.click("form button")
    page.locator("h1", has_text="Goodbye").wait_for()
    page.goto(f"{served.url}/label")
    assert "Open your personal link" in page.text_content("main")
