"""What is shown in every state, without a fault that axe knows: WCAG 2.2 A and AA, advice."""

from __future__ import annotations

import dataclasses

import pytest

from web.pages.conftest import press
from web.pages.fake import MOODS, SPANS, single_task, span_task

axe = pytest.importorskip("axe_playwright_python.sync_playwright")
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RULES = {"type": "tag", "values": LEVELS}


def check(page):
    """Ask axe; the page has no animation to wait for."""
    found = axe.Axe().run(page, options={"runOnly": RULES, "resultTypes": ["violations"]})
    assert [
        (fault["id"], [node["html"] for node in fault["nodes"]])
        for fault in found.response["violations"]
    ] == []


@pytest.mark.parametrize(("look", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_labelling_spans(visit, look, scheme):
    page = visit(look, color_scheme=scheme)
    page.click("summary >> nth=0")
    check(page)
    if look == "phone":
        page.tap("#start")
    page.locator(".token").nth(0).click()
    page.click(".type-0.type")
    page.locator(".token").nth(4).click()
    page.click(".type-1.type")
    page.locator(".token").nth(2).click()
    check(page)


def test_all_colours_of_kinds_can_be_read(visit, fake):
    labels = tuple(f"K{n}" for n in range(10))
    fake.reset(dataclasses.replace(SPANS, labels=labels), [span_task(" ".join("abcdefghijk"))])
    page = visit()
    for n in range(10):
        press(page, "1234567890"[n], "ArrowRight")
    assert page.locator(".token.marked").count() == 10
    check(page)
    page.emulate_media(color_scheme="dark")
    check(page)


def test_choosing_a_label(visit, fake):
    fake.reset(MOODS, [single_task()])
    page = visit()
    page.keyboard.press("1")
    check(page)


@pytest.mark.parametrize(("look", "scheme"), [("desktop", "dark"), ("phone", "light")])
def test_suggested_labels(visit, fake, look, scheme):
    names = [{"start": n, "end": n + 1, "type": kind} for n, kind in enumerate(SPANS.labels)]
    fake.reset(SPANS, [span_task(suggestion={"spans": names})])
    page = visit(look, color_scheme=scheme)
    if look == "phone":
        page.tap("#start")
    check(page)
    page.locator(".token").nth(1).click()
    check(page)
    fake.reset(MOODS, [single_task(suggestion={"label": "sad"})])
    check(visit(look, color_scheme=scheme))


@pytest.mark.parametrize("key", ["s", "f"])
def test_the_dialogs(visit, key):
    page = visit()
    page.keyboard.press(key)
    assert page.locator("dialog").is_visible()
    check(page)
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.textContent") == "Ann"


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ({"state": "wait", "seconds": 60, "message": ""}, "There is no text for you right now"),
        ({"state": "paused", "message": "Back at noon."}, "Back at noon."),
        (
            {"state": "done", "message": "That was all.", "completion": {"code": "C1", "url": "https://example.org/c"}},
            "C1",
        ),
    ],
    ids=["wait", "paused", "done"],
)  # fmt: skip
def test_when_there_is_no_task(visit, fake, end, words):
    fake.reset(SPANS, [], end=end)
    page = visit()
    assert words in page.text_content("#message")
    assert page.evaluate("document.activeElement.id") == "message-title"
    check(page)


def test_a_wait_ends_by_itself(visit, fake):
    fake.reset(SPANS, [], end={"state": "wait", "seconds": 1, "message": ""})
    page = visit()
    page.locator("#show-help").focus()
    asked = len(fake.posts)
    while len(fake.posts) == asked:
        page.wait_for_timeout(50)
    assert page.locator("#show-help:focus").count() == 1  # the wait took the focus once
    fake.tasks = [span_task()]
    page.wait_for_selector(".token")


def test_an_address_that_is_none_of_the_web_is_no_link(visit, fake):
    end = {
        "state": "done",
        "message": "",
        "completion": {"url": "javascript:alert(1)", "code": None},
    }
    fake.reset(SPANS, [], end=end)
    page = visit()
    assert page.locator("#message a").count() == 0


@pytest.mark.parametrize("right", [True, False])
def test_feedback_in_practice(visit, fake, right):
    truth = {"right": right, "spans": [{"start": 0, "end": 2, "type": "PER"}]}
    fake.reset(SPANS, [span_task(training=True)], truth={"task-1": truth})
    page = visit()
    assert page.text_content("#card-title") == "Practice"
    press(page, "2", "Enter")
    page.locator("h2", has_text="That is right" if right else "Not quite").wait_for()
    texts = page.locator(".sampled").all_text_contents()
    assert texts == ["AnnLOC Lee went to New York .", "Ann LeePER went to New York ."][: 2 - right]
    check(page)
    page.keyboard.press("Enter")
    page.locator("h2", has_text="Thank you").wait_for()


def test_feedback_says_where_nothing_was_marked(visit, fake):
    truth = {"right": False, "spans": [{"start": 0, "end": 2, "type": "PER"}]}
    fake.reset(SPANS, [span_task(training=True)], truth={"task-1": truth})
    page = visit()
    press(page, "n", "Enter")
    page.locator("h2", has_text="Not quite").wait_for()
    assert page.locator(".sampled .none").all_text_contents() == ["Nothing marked"]
    check(page)


def test_the_banner_and_the_help(visit):
    page = visit()
    page.context.set_offline(True)
    page.wait_for_selector("#banner:not([hidden])")
    check(page)
    page.context.set_offline(False)
    check(visit(path="/help", context=page.context))
