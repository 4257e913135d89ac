"""Suggested labels on the page: accepted, changed, taken away; and texts without any."""

from __future__ import annotations

import pytest

from campaign.tiny import plan_of, write_files, write_spans
from goldspan.campaign import read_inputs, read_plan
from goldspan.campaign.suggestions import SUGGESTED
from goldspan.web.service import open_service
from web.desks import running
from web.pages.conftest import done, press, title
from web.pages.fake import MOODS, SPANS, single_task, span_task
from web.serving import KEYS, WEB, Clock, open_round
from web.serving import SPANS as SPAN_SECTIONS

NAMES = [{"start": 0, "end": 2, "type": "PER"}, {"start": 4, "end": 6, "type": "ORG"}]


def suggested(page):
    return [cell.text_content() for cell in page.locator(".token.suggested").all()]


@pytest.fixture
def page(visit, fake):
    """A text with two suggested names, the second one wrong."""
    fake.reset(SPANS, [span_task(suggestion={"spans": NAMES})])
    return visit()


def test_enter_accepts_one_after_the_other_and_then_sends(page, fake):
    assert suggested(page) == ["Ann", "Lee", "New", "York"]
    assert "suggested and may be wrong" in page.text_content("#suggestion")
    assert page.text_content("#send") == "Accept"  # the cursor is on the first
    press(page, "Enter")
    assert suggested(page) == ["New", "York"]
    assert fake.sent == []
    press(page, "Enter")
    assert suggested(page) == []
    assert page.text_content("#send") == "Send"
    press(page, "Enter")
    done(page)
    assert fake.sent == [{"spans": NAMES}]


def test_nothing_is_sent_before_all_is_decided(page, fake):
    press(page, "End")  # away from what is suggested
    assert page.text_content("#send") == "Check 2"
    page.click("#send")
    assert suggested(page) == ["Ann", "Lee", "New", "York"]
    assert page.evaluate("document.activeElement.textContent") == "Ann"
    assert fake.sent == []


def test_a_suggestion_is_changed_by_keys(page, fake):
    press(page, "Enter", "2")  # New York is a place
    assert suggested(page) == []
    press(page, "Shift+ArrowRight", "Enter")
    done(page)
    changed = {"start": 4, "end": 6, "type": "LOC"}
    assert fake.sent[0]["spans"][0] == NAMES[0]
    assert fake.sent[0]["spans"][1]["type"] == changed["type"]


def test_a_suggestion_is_taken_away_and_comes_back_undecided(page, fake):
    press(page, "Delete")
    assert suggested(page) == ["New", "York"]
    press(page, "u")
    assert suggested(page) == ["Ann", "Lee", "New", "York"]
    press(page, "Enter", "u")  # to accept can be taken back, too
    assert suggested(page) == ["Ann", "Lee", "New", "York"]
    press(page, "n", "Enter")
    done(page)
    assert fake.sent == [{"spans": []}]


def test_the_mouse_accepts_and_takes_away(page, fake):
    page.click(".token >> nth=4")
    page.click("button[aria-label='Accept this label']")
    assert suggested(page) == ["Ann", "Lee"]
    page.click(".token >> nth=0")
    page.click("button[aria-label='Remove this label']")
    page.click("#send")
    done(page)
    assert fake.sent == [{"spans": [NAMES[1]]}]


def test_a_label_over_the_same_words_is_a_decision(page):
    press(page, "1")
    assert suggested(page) == ["New", "York"]
    assert page.get_attribute(".token >> nth=4", "aria-label") == "New, ORG, suggested"


def test_what_is_decided_stays_so_when_the_page_is_loaded_again(page, fake):
    press(page, "Enter")
    page.reload()
    page.wait_for_selector(".token")
    assert suggested(page) == ["New", "York"]
    assert page.locator(".token.marked").count() == 4
    press(page, "c")
    page.reload()
    page.wait_for_selector(".token")
    assert page.locator(".token.marked").count() == 0
    assert fake.sent == []


def test_that_nothing_is_there_can_be_suggested(visit, fake):
    fake.reset(SPANS, [span_task(suggestion={"spans": []})])
    page = visit()
    assert page.text_content("#suggestion") == "Suggested: nothing here. It may be wrong."
    press(page, "Enter")
    assert fake.sent == []
    press(page, "n", "Enter")
    done(page)
    assert fake.sent == [{"spans": []}]


def test_one_label_is_marked_and_the_worker_chooses(visit, fake):
    fake.reset(MOODS, [single_task(suggestion={"label": "sad"}), single_task("I slept.", 2)])
    page = visit()
    assert page.text_content("#suggestion") == "Suggested: sad. It may be wrong."
    assert page.text_content(".choice.suggested") == "2sad"
    press(page, "Enter")
    assert fake.sent == []
    press(page, "1", "Enter")
    title(page, "Text 2")
    assert fake.sent == [{"label": "glad"}]
    assert page.locator(".choice.suggested").count() == 0
    assert page.is_hidden("#suggestion")


def test_an_answer_that_is_looked_at_again_has_no_suggestion(visit, fake):
    tasks = [span_task(suggestion={"spans": NAMES}), span_task("Bo sang .", 2)]
    fake.reset(SPANS, tasks)
    page = visit()
    press(page, "Enter", "Enter", "Enter")
    title(page, "Text 2")
    press(page, "b")
    title(page, "Your answer")
    assert suggested(page) == []
    assert page.is_hidden("#suggestion")
    assert page.locator(".token.marked").count() == 4


@pytest.fixture
def campaign(tmp_path):
    """A served campaign in which a function suggests places, and gold questions are mixed in."""
    write_files(tmp_path)
    write_spans(tmp_path)
    gold = tmp_path / "gold.conll"
    parts = gold.read_text().split("\n\n")
    gold.write_text("\n\n".join(f"{n}\tO\n{part}" for n, part in enumerate(parts) if part.strip()))
    function = {"id": "m", "kind": "python", "call": "campaign.rules:places"}
    team = {"source": "mixed", "workers": [function, {"id": "p", "kind": "people"}], "truth": None}
    sections = {
        **WEB, **SPAN_SECTIONS, "crowd": team, "page": {"suggest": "m"},
        "control": {"n": 4, "gold": "gold.conll", "share": 0.25},
        "select": {"by": "random", "batch": 20}, "prices": None, "budget": None,
    }  # fmt: skip
    plan = plan_of(sections)
    plan["task"] = {"types": ["LOC"]}
    inputs = read_inputs(read_plan(plan), tmp_path, allow_code=["campaign.rules"])
    service = open_service(inputs, tmp_path / "out", KEYS, clock=Clock())
    open_round(service)
    with running(service) as served:
        yield served
    service.close()


def test_a_worker_sees_suggestions_and_blind_texts_and_the_store_knows_which(visit, campaign):
    service = campaign.service
    page = visit(path=campaign.link("ann-lee"), address=campaign.url)
    seen = []
    for n in range(1, 10):
        title(page, f"Text {n}")
        seen.append((page.text_content(".text"), page.is_visible("#suggestion")))
        assert bool(suggested(page)) <= seen[-1][1]
        while suggested(page):  # the first one goes there
            press(page, "Enter")
        press(page, "n" if not page.locator(".token.marked").count() else "Escape", "Enter")
    title(page, "Text 10")
    assert {shown for _, shown in seen} == {True, False}
    rows = service.ledger.records(SUGGESTED).values()
    control = service.inputs.control
    assert all(row["item"] not in control for row in rows)
    texts = {service.work.tasks.text(row["item"]): row["shown"] for row in rows}
    golds = {service.work.tasks.text(item) for item in control}
    assert golds & {text for text, _ in seen}
    for text, shown in seen:
        assert shown == texts.get(text, False)
