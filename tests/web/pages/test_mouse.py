"""A worker labels with the mouse."""

from __future__ import annotations

import pytest

from web.pages.conftest import done, drag, press, title
from web.pages.fake import MOODS, SPANS, single_task, span_task

ANN = {"start": 0, "end": 2, "type": "PER"}
YORK = {"start": 4, "end": 6, "type": "LOC"}


def send(page, fake, n=1):
    """Send, and wait until the server has n answers."""
    page.click("#send")
    done(page)
    assert len(fake.sent) == n
    return fake.sent[-1]


def marked(page):
    """The marked tokens as the page shows them: (text, type)."""
    cells = page.locator(".token.marked").all()
    return [(cell.text_content(), cell.get_attribute("data-type")) for cell in cells]


def test_words_that_were_dragged_over_become_a_span(visit, fake):
    page = visit()
    drag(page, 0, 1)
    page.click(".type-0.type")
    drag(page, 5, 4)
    page.click(".type-1.type")
    assert marked(page) == [("Ann", "PER"), ("Lee", "PER"), ("New", "LOC"), ("York", "LOC")]
    assert send(page, fake) == {"spans": [ANN, YORK]}


def test_a_kind_chosen_first_labels_whatever_is_marked_next(visit, fake):
    page = visit()
    page.click(".type-0.type")
    drag(page, 0, 1)
    page.locator(".token").nth(4).click()
    expected = [ANN, {"start": 4, "end": 5, "type": "PER"}]
    assert send(page, fake) == {"spans": expected}


def test_a_click_on_a_span_changes_its_kind_and_its_ends(visit, fake):
    page = visit()
    drag(page, 0, 1)
    page.keyboard.press("1")
    page.locator(".token").nth(1).click()
    page.click(".type-2.type")
    page.click("[aria-label='One word more at the end']")
    page.click("[aria-label='One word less at the start']")
    assert send(page, fake) == {"spans": [{"start": 1, "end": 3, "type": "ORG"}]}


def test_enter_sends_after_a_press_on_any_button(visit, fake):
    page = visit()
    drag(page, 0, 2)
    page.click(".type-0.type")
    page.click("[aria-label='One word less at the end']")
    page.keyboard.press("Enter")
    done(page)
    assert fake.sent == [{"spans": [ANN]}]


def test_who_presses_a_button_with_keys_stays_on_it(visit):
    page = visit()
    drag(page, 0, 2)
    page.locator("[aria-label='One word less at the end']").focus()
    press(page, "Enter", "Enter")
    assert page.locator(".token.selected").all_text_contents() == ["Ann"]


@pytest.mark.parametrize("kind", ["spans", "single"])
def test_what_was_undone_is_done_again_by_a_button(visit, fake, kind):
    if kind == "single":
        fake.reset(MOODS, [single_task()])
    page = visit()
    assert page.get_attribute(".acts >> button:has-text('Redo')", "aria-disabled") == "true"
    page.keyboard.press("1")
    page.click(".acts >> text=Undo")
    page.click(".acts >> text=Redo")
    page.keyboard.press("Enter")
    done(page)
    answer = {"label": "glad"} if kind == "single" else {"spans": [{**ANN, "end": 1}]}
    assert fake.sent == [answer]


def test_a_drag_to_the_edge_scrolls_and_takes_what_comes(visit, fake):
    fake.reset(SPANS, [span_task("word " * 900)])
    page = visit()
    box, dock = (page.locator(one).bounding_box() for one in (".token >> nth=20", "#dock"))
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + 50, dock["y"] + 40)
    before = page.locator(".token.selected").count()
    page.wait_for_timeout(700)
    assert page.evaluate("scrollY") > 100
    assert page.locator(".token.selected").count() > before + 20
    page.mouse.up()
    at = page.evaluate("scrollY")
    page.wait_for_timeout(100)
    assert page.evaluate("scrollY") == at


def test_a_drag_within_a_short_text_scrolls_nothing(visit):
    page = visit("desktop", viewport={"width": 1280, "height": 330})
    box, dock = (page.locator(one).bounding_box() for one in (".token >> nth=0", "#dock"))
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + 50, dock["y"] - 5)
    page.wait_for_timeout(200)
    page.mouse.up()
    assert page.evaluate("scrollY") == 0


def test_nothing_is_sent_before_something_is_said(visit, fake):
    page = visit()
    page.click("#send", force=True)
    assert "Nothing here" in page.text_content("#note")
    page.click(".acts >> text=Nothing here")
    assert send(page, fake) == {"spans": []}


def test_a_double_click_on_send_counts_once(visit, fake):
    fake.reset(SPANS, [span_task(number=1), span_task("Bo sang", number=2)], delay=0.1)
    page = visit()
    drag(page, 0, 1)
    page.keyboard.press("1")
    page.dblclick("#send")
    page.locator(".token", has_text="Bo").wait_for()
    assert [body["task"] for path, body in fake.posts if path == "answers"] == ["task-1"]


def test_a_label_is_chosen_by_a_click(visit, fake):
    fake.reset(MOODS, [single_task("I sang\nall day.")])
    page = visit()
    assert page.text_content(".text") == "I sang\nall day."
    page.click(".choice >> nth=1")
    page.click(".choice >> nth=0")
    page.click(".acts >> text=Undo")
    assert send(page, fake) == {"label": "sad"}


@pytest.mark.parametrize(("press", "path"), [("#skip", "skip"), ("#flag", "flag")])
def test_a_task_can_be_skipped_or_reported_with_a_reason(visit, fake, press, path):
    page = visit()
    page.click(press)
    page.locator("dialog .check").nth(1).click()
    if path == "flag":
        page.fill("textarea", "half of it is missing")
    page.click("dialog .primary")
    done(page)
    ((sent, body),) = fake.answers.values()
    known = fake.page.skip_reasons if path == "skip" else fake.page.flag_reasons
    assert (sent, body["task"], body["reason"]) == (path, "task-1", known[1])
    assert body.get("note", "") == ("half of it is missing" if path == "flag" else "")


def test_who_thinks_better_of_skipping_keeps_the_task(visit, fake):
    page = visit()
    page.click("#skip")
    page.click("text=Cancel")
    assert page.locator("#task").is_visible()
    assert fake.answers == {}


def test_progress_and_earnings_are_shown(visit, fake):
    fake.reset(MOODS, [single_task(number=1), single_task(number=2)])
    page = visit()
    page.click(".choice >> nth=1")
    page.click("#send")
    page.locator("#me", has_text="1 done").wait_for()
    assert "€0.05 earned" in page.text_content("#me")
    title(page, "Text 2")
