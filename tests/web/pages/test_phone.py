"""A worker on a phone: 360 pixels, fingers, no keys."""

from __future__ import annotations

import dataclasses

import pytest

from web.pages.conftest import done
from web.pages.fake import MOODS, SPANS, single_task, span_task


def begin(visit, look="phone", **options):
    """Open the page and put the instructions away, as every worker does once."""
    page = visit(look, **options)
    if page.locator("#start").is_visible():
        page.tap("#start")
    return page


def finish(page):
    page.tap("#send")
    done(page)


def test_the_first_and_the_last_word_are_tapped(visit, fake):
    page = begin(visit)
    for place in (".token >> nth=4", ".token >> nth=5", ".type-1.type"):
        page.tap(place)
    page.tap(".token >> nth=1")
    page.tap(".token >> nth=0")
    page.tap(".type-0.type")
    finish(page)
    spans = [{"start": 0, "end": 2, "type": "PER"}, {"start": 4, "end": 6, "type": "LOC"}]
    assert fake.sent == [{"spans": spans}]


def test_who_is_done_sees_so_before_the_instructions(visit):
    page = begin(visit)
    page.tap("#dock >> text=Nothing here")
    finish(page)
    page.tap("#show-help")
    page.reload()
    done(page)
    assert page.locator("#side").is_hidden()
    page.tap("#show-help")
    assert page.locator("#side").is_visible()


def test_with_a_kind_chosen_first_two_taps_on_one_word_mark_it(visit, fake):
    page = begin(visit)
    page.tap(".type-2.type")
    page.tap(".token >> nth=3")
    page.tap(".token >> nth=3")
    finish(page)
    assert fake.sent == [{"spans": [{"start": 3, "end": 4, "type": "ORG"}]}]


def test_instructions_come_first_and_once(visit):
    page = visit("phone")
    assert page.locator("#side").is_visible()
    assert not page.locator(".token >> nth=0").is_visible()
    page.tap("#start")
    assert page.locator(".token >> nth=0").is_visible()
    page.reload()
    page.wait_for_selector(".token", state="attached")
    assert not page.locator("#side").is_visible()


@pytest.mark.parametrize(("look", "width", "height"), [("phone", 360, 740), ("narrow", 320, 640)])
def test_nothing_is_wider_than_the_screen_and_the_answer_stays_in_sight(
    visit, fake, look, width, height
):
    labels = ("PERSON", "LOCATION", "ORGANISATION", "MISCELLANEOUS", "W" * 60)
    words = f"{'x' * 200} " + "a long text " * 300
    fake.reset(dataclasses.replace(SPANS, labels=labels, title="T" * 80), [span_task(words)])
    page = begin(visit, look)
    page.tap(".token >> nth=0")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for button in page.locator("#dock .acts button").all():
        box = button.bounding_box()
        assert box["y"] + box["height"] <= height
        assert 0 <= box["x"] <= box["x"] + box["width"] <= width


@pytest.mark.parametrize("kind", ["spans", "single"])
def test_no_page_of_a_worker_is_wider_than_the_narrowest_phone(visit, fake, kind):
    if kind == "single":
        fake.reset(MOODS, [single_task()])
    page = visit("narrow")
    width = "document.documentElement.scrollWidth"
    assert page.evaluate(width) == 320
    page.click("summary >> nth=0")
    page.tap("#start")
    assert page.evaluate(width) == 320
    page.tap("#flag")
    assert page.evaluate(width) == 320
    assert page.locator("dialog").bounding_box()["width"] <= 320
    page.tap("text=Cancel")
    page.tap(".choice" if kind == "single" else ".toggle")
    finish(page)
    assert page.evaluate(width) == 320
    assert visit(path="/help", context=page.context).evaluate(width) == 320


def test_what_is_tapped_is_large_enough(visit):
    page = begin(visit)
    page.tap(".token >> nth=0")
    for button in page.locator("button:visible").all():
        box = button.bounding_box()
        assert min(box["width"], box["height"]) >= 24, button.text_content()
