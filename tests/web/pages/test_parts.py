"""Parts of words: marked with Alt and the mouse, with keys, and with buttons on a touch screen."""

from __future__ import annotations

import pytest

from web.pages.conftest import done, press
from web.pages.fake import SPANS, span_task
from web.pages.test_fine import cut
from web.pages.test_states import check

TEXTS = {
    "hebrew": "קראנו והספרייה נפתחה.",
    "german": "Der Apfelkuchen schmeckt.",
    "emoji": "Zoe e\u0301t\u00e9👩🏽\u200d🚀 😀x",
}


@pytest.fixture
def show(visit, fake):
    """Open the page with a text that is cut finely; `more` belongs to the task."""

    def go(name, look="desktop", **more):
        task = {**cut(TEXTS.get(name, name)), **more}
        fake.reset(SPANS, [span_task(**task)])
        page = visit(look)
        if page.locator("#start").is_visible():
            page.tap("#start")
        return page

    return go


def letter(page, nth, at):
    """The middle of some letters [a, b) of a token, as the browser draws them."""
    return (
        page.locator(".token")
        .nth(nth)
        .evaluate(
            """(cell, [a, b]) => {
        const range = document.createRange();
        range.setStart(cell.firstChild, a);
        range.setEnd(cell.firstChild, b);
        const box = range.getBoundingClientRect();
        return [box.left + box.width / 2, box.top + box.height / 2];
        }""",
            at,
        )
    )


def alt_drag(page, nth, first, last):
    """Drag with Alt from some letters of a token to others."""
    a, b = letter(page, nth, first), letter(page, nth, last)
    page.keyboard.down("Alt")
    page.mouse.move(*a)
    page.mouse.down()
    page.mouse.move(*b, steps=4)
    page.mouse.up()
    page.keyboard.up("Alt")


def send(page, fake):
    page.keyboard.press("Enter")
    done(page)
    return fake.sent[-1]["spans"]


def test_two_parts_of_a_compound_are_two_labels(show, fake):
    page = show("german")
    alt_drag(page, 1, (0, 1), (4, 5))
    assert page.locator(".token.selected").all_text_contents() == ["Apfel"]
    assert page.text_content(".quote") == "Apfel"
    page.keyboard.press("1")
    # What is left of the word is a piece of its own now.
    assert page.locator(".token").all_text_contents() == ["Der", "Apfel", "kuchen", "schmeckt", "."]
    page.locator(".token", has_text="kuchen").click()
    page.keyboard.press("2")
    assert page.locator(".text").text_content() == TEXTS["german"]
    check(page)
    assert send(page, fake) == [
        {"start": 1, "end": 2, "type": "PER", "to_char": 5},
        {"start": 1, "end": 2, "type": "LOC", "from_char": 5},
    ]


def test_a_prefix_is_left_out_in_a_text_from_right_to_left(show, fake):
    page = show("hebrew")
    alt_drag(page, 1, (2, 3), (7, 8))
    assert page.locator(".token.selected").all_text_contents() == ["ספרייה"]
    page.keyboard.press("2")
    assert send(page, fake) == [{"start": 1, "end": 2, "type": "LOC", "from_char": 2}]


def test_what_readers_see_as_one_character_is_not_cut(show, fake):
    page = show("emoji")
    page.locator(".token").nth(1).click()
    press(page, "Alt+Shift+ArrowLeft", "Alt+Shift+ArrowLeft")
    assert page.locator(".token.selected").all_text_contents() == ["e\u0301"]
    page.keyboard.press("1")
    page.locator(".token", has_text="👩").click()
    press(page, "Alt+Shift+ArrowLeft", "2")  # a single character stays whole
    assert page.locator(".token.marked").all_text_contents() == ["e\u0301", "👩🏽\u200d🚀"]
    assert send(page, fake) == [
        {"start": 1, "end": 2, "type": "PER", "to_char": 2},
        {"start": 2, "end": 3, "type": "LOC"},
    ]


def test_a_drag_goes_over_several_words_and_cuts_the_first_and_the_last(show, fake):
    page = show("german")
    a, b = letter(page, 1, (5, 6)), letter(page, 2, (6, 7))
    page.keyboard.down("Alt")
    page.mouse.move(*a)
    page.mouse.down()
    page.mouse.move(*b, steps=6)
    page.mouse.up()
    page.keyboard.up("Alt")
    assert page.text_content(".quote") == "kuchen schmeck"
    page.keyboard.press("3")
    assert send(page, fake) == [{"start": 1, "end": 3, "type": "ORG", "from_char": 5, "to_char": 7}]


def test_keys_move_the_end_of_a_label_and_undo_brings_it_back(show, fake):
    page = show("german")
    page.locator(".token").nth(1).click()
    page.keyboard.press("1")
    press(page, *["Alt+Shift+ArrowLeft"] * 6)
    assert page.locator(".token.marked").all_text_contents() == ["Apfel"]
    assert page.text_content("#live").strip() == "“Apfel”"
    press(page, *["u"] * 6)
    assert page.locator(".token.marked").all_text_contents() == ["Apfelkuchen"]
    press(page, *["y"] * 6, "Alt+Shift+ArrowRight")
    assert page.locator(".token.marked").all_text_contents() == ["Apfelk"]
    page.reload()  # the draft knows it too
    page.wait_for_selector(".token.marked")
    assert page.locator(".token.marked").all_text_contents() == ["Apfelk"]
    assert send(page, fake) == [{"start": 1, "end": 2, "type": "PER", "to_char": 6}]


def test_a_part_that_is_put_down_leaves_the_word_whole(show):
    page = show("german")
    alt_drag(page, 1, (0, 1), (4, 5))
    page.keyboard.press("Escape")
    assert page.locator(".token").all_text_contents() == ["Der", "Apfelkuchen", "schmeckt", "."]
    alt_drag(page, 1, (0, 1), (4, 5))
    page.locator(".token", has_text="Apfel").click()
    assert page.locator(".token.selected").all_text_contents() == ["Apfelkuchen"]


def test_on_a_touch_screen_a_button_moves_the_ends_by_characters(show, fake):
    page = show("german", "phone")
    page.locator(".token").nth(1).tap()
    page.get_by_label("Move the ends by characters").tap()
    for _ in range(5):
        page.get_by_label("One word less at the start").tap()
    assert page.locator(".token.selected").all_text_contents() == ["kuchen"]
    check(page)
    page.locator("#dock .type").first.tap()
    page.locator("#send").tap()
    done(page)
    assert fake.sent == [{"spans": [{"start": 1, "end": 2, "type": "PER", "from_char": 5}]}]


def test_a_suggestion_within_a_word_is_shown_there(show, fake):
    part = {"start": 1, "end": 2, "type": "LOC", "from_char": 5}
    page = show("german", suggestion={"spans": [part]})
    assert page.locator(".token.suggested").all_text_contents() == ["kuchen"]
    press(page, "Enter", "Enter")
    assert send(page, fake) == [part]
