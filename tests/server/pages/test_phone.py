"""A worker on a phone: 360 pixels, fingers, no keys."""

from __future__ import annotations

import dataclasses

from server.pages.fake import MOODS, SPANS, single_task, span_task


def begin(visit, **options):
    """Open the page and put the instructions away, as every worker does once."""
    page = visit("phone", **options)
    if page.locator("#start").is_visible():
        page.tap("#start")
    return page


def finish(page):
    page.tap("#send")
    page.wait_for_selector("#message:not([hidden])")


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


def test_with_a_kind_chosen_first_two_taps_on_one_word_mark_it(visit, fake):
    page = begin(visit)
    page.tap(".type-2.type")
    page.tap(".token >> nth=3")
    page.tap(".token >> nth=3")
    finish(page)
    assert fake.sent == [{"spans": [{"start": 3, "end": 4, "type": "ORG"}]}]


def test_a_span_is_tapped_to_be_mended_with_buttons(visit, fake):
    page = begin(visit)
    page.tap(".token >> nth=0")
    page.tap(".type-0.type")
    page.tap(".token >> nth=0")
    page.tap("[aria-label='One word more at the end']")
    finish(page)
    assert fake.sent == [{"spans": [{"start": 0, "end": 2, "type": "PER"}]}]


def test_instructions_come_first_and_once(visit):
    page = visit("phone")
    assert page.locator("#side").is_visible()
    assert not page.locator(".token >> nth=0").is_visible()
    page.tap("#start")
    assert page.locator(".token >> nth=0").is_visible()
    page.reload()
    page.wait_for_selector(".token", state="attached")
    assert not page.locator("#side").is_visible()


def test_nothing_is_wider_than_the_screen_and_the_answer_stays_in_sight(visit, fake):
    labels = ("PERSON", "LOCATION", "ORGANISATION", "MISCELLANEOUS", "W" * 60)
    words = f"{'x' * 200} " + "a long text " * 300
    fake.reset(dataclasses.replace(SPANS, labels=labels, title="T" * 80), [span_task(words)])
    page = begin(visit)
    page.tap(".token >> nth=0")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    box = page.locator("#send").bounding_box()
    assert box["y"] + box["height"] <= 740
    assert box["x"] + box["width"] <= 360


def test_what_is_tapped_is_large_enough(visit):
    page = begin(visit)
    page.tap(".token >> nth=0")
    for button in page.locator("button:visible").all():
        box = button.bounding_box()
        assert min(box["width"], box["height"]) >= 24, button.text_content()


def test_a_label_is_tapped(visit, fake):
    fake.reset(MOODS, [single_task()])
    page = begin(visit)
    page.tap(".choice >> nth=2")
    finish(page)
    assert fake.sent == [{"label": "neither"}]
