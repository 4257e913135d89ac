"""A reviewer opens their link, and decides an item on the page of reviews; axe looks on."""

from __future__ import annotations

from goldspan.web.people import GOLD
from web.pages.test_desk import opened, sees, until
from web.pages.test_states import check


def test_a_reviewer_decides_an_item_and_has_no_other_page(browser, tmp_path):
    with opened(browser, tmp_path, spans=False) as desk:
        _, text = desk.served.auth.reviewers.make("rita", ["review"], 1)
        context = browser.new_context()
        page = context.new_page()
        faults = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"{desk.served.url}/r/{text}")
        assert page.url == f"{desk.served.url}/desk/review"
        sees(page, "document.querySelector('#queue li')")
        assert page.text_content("#state") == "Review"
        assert page.locator("nav a").count() == 1
        assert page.locator("#open").is_hidden()
        sees(page, "document.querySelector('#answers .answer')")
        assert "annotator 1" in page.text_content("#answers")
        assert "ann" not in page.text_content("#answers").replace("annotator", "")
        check(page)
        page.click("#send")
        until(lambda: desk.service.ledger.records(GOLD))
        (kept,) = desk.service.ledger.records(GOLD).values()
        assert kept["by"].startswith("the reviewer ")
        page.goto(f"{desk.served.url}/desk/workers")
        assert page.url == f"{desk.served.url}/desk/review"
        context.close()
        assert faults == []
