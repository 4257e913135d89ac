"""A worker goes back to answers that were sent, and changes them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from web.pages.conftest import done, press, title
from web.pages.fake import MOODS, SPANS, single_task, span_task
from web.pages.test_states import check

TASKS = [span_task("Ann sang", 1), span_task("Bo saw Rome", 2), span_task("Cy left", 3)]
ONE = {"start": 0, "end": 1, "type": "PER"}


@pytest.fixture
def page(visit, fake):
    """The page after two answers, at the third text."""
    fake.reset(SPANS, list(TASKS), total=3)
    page = visit()
    for n in (2, 3):
        press(page, "1", "Enter")
        title(page, f"Text {n}")
    return page


def test_progress_is_shown(page):
    assert page.text_content("#me").startswith("2 of 3")


def test_where_nobody_knows_how_many_there_are_progress_is_what_was_done(visit, fake):
    fake.reset(replace(SPANS, paid=False), [TASKS[0]], done=5)
    page = visit()
    assert page.text_content("#me") == "5 done"  # and unpaid work does not speak of money


def test_an_answer_is_changed_with_keys_alone(page, fake):
    page.keyboard.press("b")
    title(page, "Your answer 2 of 2")
    assert page.locator(".token.marked").all_text_contents() == ["Bo"]
    page.keyboard.press("b")
    title(page, "Your answer 1 of 2")
    press(page, "3", "Enter")
    title(page, "Text 3")
    assert "changed" in page.text_content("#note-text")
    assert fake.versions["task-1"]["spans"] == [{**ONE, "type": "ORG"}]
    assert [path for path, _ in fake.answers.values()] == ["answers", "answers", "change"]
    page.keyboard.press("b")
    title(page, "Your answer 2 of 2")
    page.keyboard.press("b")
    title(page, "Your answer 1 of 2")
    page.locator(".token.marked[data-type=ORG]").wait_for()


def test_the_text_to_do_comes_back_with_its_draft(page, fake):
    page.keyboard.press("2")
    page.click("#back")
    title(page, "Your answer 2 of 2")
    page.click("#forward")
    title(page, "Text 3")
    assert page.locator(".token.marked[data-type=LOC]").all_text_contents() == ["Cy"]
    page.keyboard.press("Enter")
    done(page)
    assert fake.sent[-1] == {"spans": [{**ONE, "type": "LOC"}]}


def test_nothing_is_sent_where_nothing_was_changed(page, fake):
    page.keyboard.press("b")
    title(page, "Your answer 2 of 2")
    assert page.text_content("#send") == "Save"
    page.click("#send")
    title(page, "Text 3")
    assert len(fake.answers) == 2
    assert page.text_content("#send") == "Send"


def test_what_is_closed_is_shown_and_stays(page, fake):
    fake.closed["task-2"] = "The campaign has ended."
    page.keyboard.press("b")
    title(page, "Your answer 2 of 2")
    assert page.text_content("#past-note") == "The campaign has ended. Your answer stays as it is."
    assert page.text_content("#past-view") == "BoPER saw Rome"
    assert page.locator("#dock").is_hidden()
    check(page)
    press(page, "1", "n", "Shift+B")
    title(page, "Text 3")
    assert page.locator("#dock").is_visible()
    assert len(fake.answers) == 2


def test_what_closes_while_it_is_changed_is_said(page, fake):
    page.keyboard.press("b")
    title(page, "Your answer 2 of 2")
    fake.closed["task-2"] = "The campaign has ended."
    press(page, "2", "Enter")
    title(page, "Text 3")
    assert "stays as you gave it" in page.text_content("#note-text")
    assert fake.versions["task-2"]["spans"] == [ONE]


def test_before_the_first_answer_there_is_nothing_to_go_back_to(visit, fake):
    fake.reset(SPANS, [TASKS[0]])
    page = visit()
    page.keyboard.press("b")
    page.locator("#note-text", has_text="no answer to go back to").wait_for()
    page.keyboard.press("1")
    assert page.locator(".token.marked").count() == 1


def test_from_the_first_answer_on_there_is_no_way_back(page):
    page.keyboard.press("b")
    title(page, "Your answer 2 of 2")
    page.keyboard.press("b")
    title(page, "Your answer 1 of 2")
    assert page.is_disabled("#back")
    page.keyboard.press("b")
    page.locator("#note-text", has_text="the first answer since").wait_for()
    title(page, "Your answer 1 of 2")


def test_when_all_is_done_the_answers_can_still_be_changed(page, fake):
    press(page, "n", "Enter")
    done(page)
    check(page)
    page.click("#look-back")
    title(page, "Your answer 3 of 3")
    assert page.get_attribute(".toggle", "aria-pressed") == "true"
    check(page)
    press(page, "1", "Enter")
    done(page)
    assert fake.versions["task-3"]["spans"] == [ONE]


def test_a_change_that_was_not_received_is_sent_at_the_next_visit(page, fake, visit):
    page.keyboard.press("b")
    title(page, "Your answer 2 of 2")
    fake.broken = 99
    press(page, "2", "Enter")
    page.wait_for_selector("#banner:not([hidden])")
    fake.broken = 0
    page.close()
    again = visit(context=page.context)
    title(again, "Text 3")
    assert fake.versions["task-2"]["spans"] == [{**ONE, "type": "LOC"}]
    assert "changed" in again.text_content("#note-text")


def test_marks_of_a_change_are_kept_when_the_page_is_loaded_again(page):
    page.keyboard.press("b")
    title(page, "Your answer 2 of 2")
    page.keyboard.press("3")
    page.reload()
    title(page, "Text 3")
    page.keyboard.press("b")
    title(page, "Your answer 2 of 2")
    page.locator(".token.marked[data-type=ORG]").wait_for()


def test_a_wait_does_not_take_the_answer_away(visit, fake):
    fake.reset(SPANS, [TASKS[0]], end={"state": "wait", "seconds": 1, "message": ""})
    page = visit()
    press(page, "1", "Enter")
    done(page)
    page.click("#look-back")
    title(page, "Your answer 1 of 1")
    asked = sum(path == "next" for path, _ in fake.posts)
    page.wait_for_timeout(1500)
    assert sum(path == "next" for path, _ in fake.posts) == asked
    title(page, "Your answer 1 of 1")


def test_a_label_is_changed(visit, fake):
    fake.reset(MOODS, [single_task("I sang.", 1), single_task("I cried.", 2)])
    page = visit("phone")
    page.tap("#start")
    page.tap(".choice >> nth=0")
    page.tap("#send")
    title(page, "Text 2")
    page.tap("#back")
    title(page, "Your answer 1 of 1")
    assert page.text_content(".text") == "I sang."
    assert page.is_checked("#label-0")
    page.tap(".choice >> nth=1")
    page.tap("#send")
    title(page, "Text 2")
    assert fake.versions["task-1"]["label"] == "sad"
