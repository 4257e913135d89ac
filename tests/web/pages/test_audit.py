"""The requester draws, checks blind on the labelling page, and reads the certificate; axe."""

from __future__ import annotations

import pytest

from goldspan.campaign.auditing import CHECK, last_draw
from web.pages.conftest import press
from web.pages.test_desk import opened, sees
from web.pages.test_states import check
from web.serving import right_answer

N = 12


@pytest.fixture
def desk(browser, tmp_path):
    """The desk of a campaign of spans."""
    with opened(browser, tmp_path, spans=True, n=20, select={"batch": N + 2}) as found:
        yield found


def mark(page, spans, done):
    """Mark the spans of a text on the labelling page, and send."""
    sees(page, f"document.querySelector('#me').textContent.startsWith('{done} of')"
               " && !document.body.classList.contains('busy')")  # fmt: skip
    page.wait_for_selector("#task:not([hidden])")
    for span in spans:
        page.locator(".token").nth(span.start).click()
        for _ in range(span.end - span.start - 1):
            press(page, "Shift+ArrowRight")
        press(page, "1")
    if not spans:
        press(page, "n")
    press(page, "Enter")


def test_from_the_draw_to_the_certificate_on_the_overview(desk):
    service, page = desk.service, desk.open("/audit")
    answers = service.ledger.last_answer
    sees(page, "document.querySelector('#sum').textContent")
    check(page)
    page.fill("#n", str(N))
    page.click("#draw button")
    page.wait_for_selector("#check:not([hidden])")
    drawn = last_draw(service.ledger)["items"]
    page.click("#check")
    for done, item in enumerate(drawn[:-1]):
        mark(page, right_answer(service, item), done)
    sees(page, f"document.querySelector('#me').textContent.startsWith('{len(drawn) - 1} of')")
    check(page)
    page.reload()  # who comes back goes on where they were
    page.wait_for_selector("#task:not([hidden])")
    mark(page, [], len(drawn) - 1)  # a mistake of the labels
    page.wait_for_selector("#message:not([hidden])")
    page.goto(f"{desk.served.url}/desk")
    sees(page, f"document.querySelector('#certificate').textContent.endsWith('{N} checked')")
    found = service.desk.overview().certificate
    assert found["low"] < 1 - 1 / N < found["high"]
    assert page.text_content("#certificate") == found["text"]
    assert f"seed {found['seed']}" in page.text_content("#design")
    check(page)
    checks = service.ledger.records(CHECK).values()
    assert [(one["item"], one["by"]) for one in checks] == [(item, "") for item in drawn]
    assert service.ledger.last_answer == answers
