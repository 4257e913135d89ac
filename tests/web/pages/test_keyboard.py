"""A worker who has no mouse."""

from __future__ import annotations

import dataclasses

from web.pages.conftest import done, press, title
from web.pages.fake import MOODS, SPANS, single_task, span_task


def focused(page):
    return page.evaluate("document.activeElement.textContent.trim()")


def test_a_task_is_done_with_keys_alone(visit, fake):
    page = visit()
    assert focused(page) == "Ann"
    press(page, "Shift+ArrowRight", "1", *["ArrowRight"] * 3, "Shift+ArrowRight", "2", "Enter")
    done(page)
    spans = [{"start": 0, "end": 2, "type": "PER"}, {"start": 4, "end": 6, "type": "LOC"}]
    assert fake.sent == [{"spans": spans}]


def test_shift_and_arrows_stretch_and_shrink_the_span_under_the_cursor(visit, fake):
    page = visit()
    press(page, "ArrowRight", "ArrowRight", "1")
    press(page, "Shift+ArrowRight", "Shift+ArrowRight", "Shift+ArrowLeft")
    press(page, "ArrowLeft", "Shift+ArrowLeft", "Shift+ArrowLeft", "Enter")
    done(page)
    assert fake.sent == [{"spans": [{"start": 0, "end": 4, "type": "PER"}]}]


def test_undo_redo_delete_clear_and_nothing_have_keys(visit, fake):
    page = visit()
    press(page, "1", "End", "2")
    count = page.locator(".token.marked")
    press(page, "Control+z")
    assert count.count() == 1
    press(page, "y")
    assert count.count() == 2
    press(page, "Delete")
    assert count.count() == 1
    press(page, "c")
    assert count.count() == 0
    press(page, "u", "n", "Enter")
    done(page)
    assert fake.sent == [{"spans": []}]


def test_up_and_down_go_from_line_to_line(visit, fake):
    fake.reset(SPANS, [span_task("word " * 60)])
    page = visit()
    press(page, "ArrowDown")
    first = page.evaluate("Number(document.activeElement.dataset.i)")
    press(page, "ArrowDown", "ArrowUp", "ArrowUp")
    assert first > 5
    assert page.evaluate("Number(document.activeElement.dataset.i)") == 0


def test_one_token_is_in_the_order_of_tab_and_tab_reaches_everything(visit):
    page = visit()
    assert page.locator(".token[tabindex='0']").count() == 1
    reached = []
    for _ in range(18):
        press(page, "Tab")
        reached.append(focused(page))
    for name in ["1PER", "3ORG", "Nothing here", "Send", "Instructions", "Skip…"]:
        assert name in reached


def test_focus_is_seen(visit):
    page = visit()
    press(page, "ArrowRight")
    style = "getComputedStyle(document.activeElement)"
    for _ in range(8):
        assert page.evaluate(f"{style}.outlineStyle") == "solid"
        assert float(page.evaluate(f"{style}.outlineWidth").removesuffix("px")) >= 2
        press(page, "Tab")


def test_a_label_has_a_key_and_the_key_again_sends(visit, fake):
    fake.reset(MOODS, [single_task(number=1), single_task(number=2)])
    page = visit()
    press(page, "2", "Enter")
    title(page, "Text 2")
    press(page, "1", "1")
    done(page)
    assert fake.sent == [{"label": "sad"}, {"label": "glad"}]


def test_a_key_can_send_at_once(visit, fake):
    fake.reset(MOODS, [single_task()])
    page = visit()
    page.click("text=Settings")
    page.check("#send-at-once")
    press(page, "3")
    done(page)
    assert fake.sent == [{"label": "neither"}]


def test_letters_can_be_switched_off(visit):
    page = visit()
    page.click("text=Settings")
    page.uncheck("#single-keys")
    page.locator(".token").nth(0).click()
    press(page, "n", "s", "h")
    assert page.locator("#side").is_visible()
    assert not page.locator("dialog").is_visible()
    assert page.locator("[aria-pressed=true]").count() == 0
    page.reload()
    page.wait_for_selector("#task:not([hidden])")
    assert not page.is_checked("#single-keys")


def test_skip_and_its_reason_have_keys_and_the_next_text_has_the_focus(visit, fake):
    fake.reset(SPANS, [span_task(number=1), span_task("Bo sang", number=2)])
    page = visit()
    press(page, "s", "2", "Enter")
    page.locator(".token:focus", has_text="Bo").wait_for()
    ((path, body),) = fake.answers.values()
    assert (path, body["reason"]) == ("skip", SPANS.skip_reasons[1])


def test_what_happens_is_told_to_screen_readers(visit):
    page = visit()
    assert page.text_content("#live") == "A new text of 6 words"
    press(page, "Shift+ArrowRight")
    assert page.text_content("#live") == "“Ann Lee”"
    press(page, "1")
    assert page.text_content("#live") == "“Ann Lee”: PER"
    assert page.get_attribute(".token >> nth=1", "aria-label") == "Lee, PER"
    press(page, "Delete")
    assert page.text_content("#live") == "Label removed"


def test_more_labels_than_digits_get_letters_that_do_nothing_else(visit, fake):
    labels = tuple(f"kind {n}" for n in range(14))
    fake.reset(dataclasses.replace(SPANS, labels=labels), [span_task()])
    page = visit()
    press(page, "e", "Enter")
    done(page)
    assert fake.sent == [{"spans": [{"start": 0, "end": 1, "type": "kind 12"}]}]
