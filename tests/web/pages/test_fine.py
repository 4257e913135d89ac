"""Texts as they are written, cut finer than into words: what is seen, selected and labelled."""

from __future__ import annotations

import re
from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import minimum_filter

from goldspan.spans import tokenize
from web.pages.conftest import done, drag, middle, press
from web.pages.fake import SPANS, span_task

TEXTS = {
    "blanks": "  Toyota's\tApple-Watch-Hülle,\u00a0 3M's  1,299 €\n\n\twww.apple.com  ",
    "arabic": "اشترى أحمد هاتف سامسونج،\nثم سافر إلى دبي.",
    "hebrew": 'דנה כהן גרה בת"א, רח׳ הרצל 5.',
    "chinese": "我在北京大学工作。",
    "thai": "ฉันไปกรุงเทพฯ กับสมชาย",
    "emoji": "👩🏽\u200d🚀 loves 🍎 Zoe\u0301 ❤\ufe0f 🇵🇹!",
}


def cut(text):
    """Cut a text as people's own texts are cut."""
    places = tokenize(text)
    return {"tokens": [text[a:b] for a, b in places], "starts": [a for a, _ in places],
            "text": text}  # fmt: skip


def number(task, words, nth=0):
    """The number of the token at which some words begin, for the nth time."""
    place = [found.start() for found in re.finditer(re.escape(words), task["text"])][nth]
    return task["starts"].index(place)


def selected(page, task):
    """What is selected, as it stands in the text."""
    numbers = [int(cell.get_attribute("data-i")) for cell in page.locator(".token.selected").all()]
    if not numbers:
        return ""
    last = numbers[-1]
    return task["text"][
        task["starts"][numbers[0]] : task["starts"][last] + len(task["tokens"][last])
    ]


@pytest.fixture
def show(visit, fake):
    """Open the page with a text that is cut finely."""

    def go(text, look="desktop", **options):
        task = cut(TEXTS.get(text, text))
        fake.reset(SPANS, [span_task(**task)])
        page = visit(look, **options)
        if page.locator("#start").is_visible():
            page.tap("#start")
        return page, task

    return go


WORDS = {
    "blanks": {"Toyota": "Toyota's", "Watch": "Watch", "apple.com": "apple", "299": "1,299"},
    "arabic": {"سامسونج": "سامسونج"},
    "hebrew": {"רח": "רח׳"},
    "chinese": {"京": "北京大学"},
    "thai": {"ฉั": "ฉัน"},
    "emoji": {"Zoe": "Zoe\u0301", "🇵🇹": "🇵🇹", "👩": "👩🏽\u200d🚀"},
}
"""The word that a reader sees where some words begin."""


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_stands_letter_for_letter_and_a_double_click_takes_a_word(show, name):
    page, task = show(name)
    assert page.evaluate("document.querySelector('.text').textContent") == task["text"]
    assert page.locator(".token").all_text_contents() == task["tokens"]
    assert page.evaluate("getComputedStyle(document.querySelector('.text')).whiteSpace") in {
        "break-spaces",
        "pre-wrap",
    }
    for at, word in WORDS[name].items():
        page.locator(".token").nth(number(task, at)).dblclick()
        found = selected(page, task)
        # Dictionaries differ: a long compound may be one word or two.
        assert found == word or (name == "chinese" and found in {"北京", "京", "大学"})


def test_blanks_are_seen(show):
    page, task = show("blanks")
    first, after = (
        page.locator(".token").nth(i).bounding_box() for i in (0, number(task, "Apple"))
    )
    left = page.locator(".text").bounding_box()["x"]
    padding = page.evaluate(
        "parseFloat(getComputedStyle(document.querySelector('.text')).paddingLeft)"
    )
    assert first["x"] > left + padding + 5  # two blanks in front
    s = page.locator(".token").nth(number(task, "'s") + 1).bounding_box()
    assert after["x"] > s["x"] + s["width"] + 2  # a tab: the next stop, eight blanks from the last
    blank = page.evaluate(
        """() => {
        const probe = document.createElement("span");
        probe.textContent = " ".repeat(8);
        document.querySelector(".text").prepend(probe);
        const { width } = probe.getBoundingClientRect();
        probe.remove();
        return width / 8;
        }"""
    )
    stops = (after["x"] - left - padding) / (8 * blank)
    assert abs(stops - round(stops)) < 0.02
    url = page.locator(".token").nth(number(task, "www")).bounding_box()
    assert url["y"] > first["y"] + 1.5 * first["height"]  # an empty line between


def test_without_a_dictionary_a_double_click_takes_letters_and_digits(browser, fake):
    task = cut("Ann's shop at 3M.")
    fake.reset(SPANS, [span_task(**task)])
    context = browser.new_context()
    context.add_init_script("delete Intl.Segmenter;")
    page = context.new_page()
    page.goto(f"{fake.address}/label")
    for at, word in [("Ann", "Ann's"), ("shop", "shop"), ("3", "3M"), (".", ".")]:
        page.locator(".token").nth(number(task, at)).dblclick()
        assert selected(page, task) == word
    context.close()


def test_with_a_kind_chosen_a_double_click_labels_the_word_and_loses_nothing(show, fake):
    page, task = show("blanks")
    page.click(".type-0.type")
    page.locator(".token").nth(number(task, "Toyota")).dblclick()
    assert page.locator(".token.marked").all_text_contents() == ["Toyota", "'", "s"]
    assert page.locator(".notice").is_hidden()
    page.keyboard.press("u")
    assert page.locator(".token.marked").count() == 0
    assert fake.answers == {}


def test_a_drag_takes_whole_tokens_either_way_and_over_lines(show):
    page, task = show("blanks")
    for one, other in (("Apple", "Hülle"), ("Watch", "www")):
        low, high = number(task, one), number(task, other)
        for a, b in ((low, high), (high, low)):
            drag(page, a, b)
            found = page.locator(".token.selected").all_text_contents()
            assert found == task["tokens"][low : high + 1]


def test_a_drag_from_one_blank_to_another_takes_what_is_between(show):
    page, task = show("blanks")
    first, last = number(task, "Apple"), number(task, "Hülle")
    boxes = [page.locator(".token").nth(i).bounding_box() for i in (first, last)]
    before = boxes[0]["x"] - 4, boxes[0]["y"] + 10  # within the tab
    behind = boxes[1]["x"] + boxes[1]["width"] - 1, boxes[1]["y"] + 10
    drag(page, before, behind)
    assert selected(page, task) == "Apple-Watch-Hülle"
    drag(page, behind, before)
    assert selected(page, task).startswith("Apple-Watch-Hülle") or selected(page, task).startswith(
        "s\t"
    )


def test_a_drag_ends_at_the_end_of_a_line_though_the_mouse_is_beyond_it(show):
    page, task = show("One two\nthree four five\nsix")
    line = middle(page, 1)
    drag(page, 0, (line[0] + 400, line[1]))
    assert selected(page, task) == "One two"
    below = middle(page, 5)
    drag(page, 3, (below[0] + 500, below[1] + 5))
    assert selected(page, task) == "four five\nsix"


def test_a_click_between_words_selects_nothing(show):
    page, _ = show("One    two")
    page.locator(".token").nth(1).click()
    box = page.locator(".token").nth(0).bounding_box()
    page.mouse.click(box["x"] + box["width"] + 8, box["y"] + 10)
    assert page.locator(".token.selected").count() == 0


@pytest.mark.parametrize("name", ["arabic", "hebrew"])
def test_a_drag_in_a_text_from_right_to_left(show, name):
    page, task = show(name)
    left, right = middle(page, 2), middle(page, 0)
    assert left[0] < right[0]
    for start, end in [(right, left), (left, right)]:
        drag(page, start, end)
        assert page.locator(".token.selected").all_text_contents() == task["tokens"][:3]


def test_every_paragraph_runs_as_its_letters_do_and_arrows_follow(show):
    page, task = show("One two\nאחת שתיים\nthree")
    x = [middle(page, i)[0] for i in range(4)]
    assert x[0] < x[1]
    assert x[2] > x[3]
    page.locator(".token").nth(0).click()
    for key, at in [("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 3), ("ArrowRight", 2)]:
        page.keyboard.press(key)
        assert page.evaluate("Number(document.activeElement.dataset.i)") == at
    assert task["tokens"][2] == "אחת"


def test_keys_go_from_word_to_word(show):
    page, task = show("blanks")
    seen = []
    for _ in range(6):
        seen.append(page.evaluate("document.activeElement.textContent"))
        page.keyboard.press("Control+ArrowRight")
    assert seen == ["Toyota", "Apple", "Watch", "Hülle", "3", "1"]
    page.keyboard.press("Control+ArrowLeft")
    assert page.evaluate("document.activeElement.textContent") == "1"
    press(page, "Control+Home", "Control+Shift+ArrowRight")
    assert selected(page, task) == "Toyota's"
    page.keyboard.press("Control+Shift+ArrowRight")
    assert selected(page, task) == "Toyota's\tApple"


def test_home_and_end_are_of_the_line_and_with_control_of_the_text(show):
    page, _ = show("One two\nthree four five\nsix")
    page.locator(".token").nth(3).click()
    at = []
    for key in ("End", "Home", "Control+End", "Control+Home"):
        page.keyboard.press(key)
        at.append(page.evaluate("document.activeElement.textContent"))
    assert at == ["five", "three", "six", "One"]


def test_space_takes_the_token_then_the_word_then_nothing(show):
    page, task = show("blanks")
    found = []
    for _ in range(3):
        page.keyboard.press("Space")
        found.append(selected(page, task))
    assert found == ["Toyota", "Toyota's", ""]


@pytest.mark.parametrize("labelled", [False, True])
def test_either_end_is_moved_by_one_token_with_keys(show, fake, labelled):
    page, task = show("a b c d e f g")
    page.locator(".token").nth(3).click()
    page.keyboard.press("2" if labelled else "Space")
    if not labelled:
        page.keyboard.press("Space")  # a click has selected it: Space puts it down
    for key in (",", ",", ".", "Shift+Comma", ".", "Shift+Period"):
        page.keyboard.press(key)
    if not labelled:
        assert selected(page, task) == "c d e"
        page.keyboard.press("2")
    page.keyboard.press("Enter")
    done(page)
    assert fake.sent == [{"spans": [{"start": 2, "end": 5, "type": "LOC"}]}]


def test_two_taps_on_one_place_take_the_word(show):
    page, task = show("blanks", "phone")
    at = f".token >> nth={number(task, 'Toyota')}"
    page.tap(at)
    assert selected(page, task) == "Toyota"
    page.tap(at)
    assert selected(page, task) == "Toyota's"
    page.tap(f".token >> nth={number(task, 'Watch')}")
    page.tap(f".token >> nth={number(task, 'Hülle')}")
    assert selected(page, task) == "Watch-Hülle"


def test_a_span_laid_over_others_says_so_and_they_come_back(show):
    page, _ = show("Ann Lee went to Rome with Bo")
    spans = [(0, 1, "1"), (4, 4, "2")]
    for first, last, key in spans:
        drag(page, first, (middle(page, last)[0] + 3, middle(page, last)[1]))
        page.keyboard.press(key)
    before = page.locator(".token.marked").all_text_contents()
    drag(page, 1, 4)
    page.keyboard.press("3")
    assert page.text_content(".notice span") == "Replaced: PER “Ann Lee”, LOC “Rome”"
    assert page.text_content("#live").strip() == (
        "Replaced: PER “Ann Lee”, LOC “Rome”. Press U to undo."
    )
    page.click(".notice button")
    assert page.locator(".token.marked").all_text_contents() == before
    assert page.locator(".notice").is_hidden()
    page.keyboard.press("n")
    assert page.text_content(".notice span").startswith("Removed: PER “Ann Lee”")
    page.keyboard.press("Control+z")
    assert page.locator(".token.marked").all_text_contents() == before
    # A label of the same words is changed, which is what was asked for.
    page.locator(".token").nth(4).click()
    page.keyboard.press("1")
    assert page.locator(".notice").is_hidden()


def test_the_notice_hides_nothing_of_the_text(show):
    for look in ("desktop", "phone"):
        page, _ = show("Ann Lee went", look)
        page.locator(".token").nth(1).focus()
        press(page, "1", "Escape")
        page.locator(".token").nth(0).focus()
        press(page, "Control+Shift+ArrowRight", "2")
        notice, text = page.locator(".notice").bounding_box(), page.locator(".text").bounding_box()
        assert notice["y"] >= text["y"] + text["height"] or look == "phone"
        dock = page.locator("#dock").bounding_box()
        assert dock["y"] <= notice["y"] <= dock["y"] + dock["height"]


def lightness(page, clip):
    """The largest of red, green and blue of every pixel of a part of the page."""
    with Image.open(BytesIO(page.screenshot(clip=clip))) as picture:
        return np.asarray(picture.convert("RGB")).max(axis=2)


def test_the_ring_of_the_focus_hides_no_letter(show):
    page, _ = show("xx-ABC-yy")
    boxes = [page.locator(".token").nth(i).bounding_box() for i in (0, 4)]
    clip = {
        "x": boxes[0]["x"] - 4, "y": boxes[0]["y"] - 2,
        "width": boxes[1]["x"] + boxes[1]["width"] - boxes[0]["x"] + 8,
        "height": boxes[0]["height"] + 4,
    }  # fmt: skip
    page.locator("#show-help").focus()
    without = lightness(page, clip)
    page.locator(".token").nth(2).focus()
    press(page, "ArrowRight", "ArrowLeft")
    assert page.evaluate("document.activeElement.textContent") == "ABC"
    with_ring = lightness(page, clip)
    assert (with_ring != without).any()  # the ring is seen
    letters = without < 60
    assert letters.sum() > 100
    # The focused token is drawn anew: with some fonts its edges move by a part of a pixel.
    assert (minimum_filter(with_ring, 3)[letters] < 100).all()
    assert (with_ring[letters] >= 100).mean() < 0.05


def luminance(colour):
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_disabled_button_can_be_read_also_under_the_mouse(show, scheme):
    page, _ = show("Ann Lee", color_scheme=scheme)
    for name in ("#send", ".acts >> button:has-text('Undo')", ".acts >> button:has-text('Clear')"):
        assert page.get_attribute(name, "aria-disabled") == "true"
        page.hover(name, force=True)
        text, ground = page.locator(name).evaluate(
            """(button) => {
            let back = button;
            const ground = () => getComputedStyle(back).backgroundColor;
            while (ground() === "rgba(0, 0, 0, 0)") back = back.parentElement;
            return [getComputedStyle(button).color, ground()];
            }"""
        )
        high, low = sorted([luminance(text), luminance(ground)], reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, (name, text, ground)


LONG = " ".join(["The company's low-cost phone, which Ann Lee bought in 2019,"] * 300)


def test_long_texts_stand_close_together_unless_it_is_wished_otherwise(show):
    page, task = show(LONG)
    assert len(LONG.split()) == 3000
    height = "document.querySelector('.text').getBoundingClientRect().height"
    room = page.evaluate(
        "innerHeight - document.querySelector('#dock').getBoundingClientRect().height"
    )
    assert page.evaluate(height) / room < 7
    close = page.evaluate(height)
    page.click("text=Settings")
    page.select_option("#spacing", "wide")
    assert page.evaluate(height) > 1.5 * close
    assert page.evaluate("document.querySelector('.text').textContent") == task["text"]
    page.reload()
    page.wait_for_selector(".token")
    assert page.evaluate(height) > 1.5 * close  # the wish is kept


def test_short_texts_stand_wide_unless_it_is_wished_otherwise(show):
    page, _ = show("Ann Lee went")
    assert page.locator(".text.close").count() == 0
    page.click("text=Settings")
    page.select_option("#spacing", "close")
    assert page.locator(".text.close").count() == 1
    drag(page, 0, 1)
    page.locator("#dock .type").first.click()
    name = "getComputedStyle(document.querySelector('.close .marked.first'), '::before')"
    assert page.evaluate(f"{name}.overflowY") == "visible"  # close lines cut no name at its top


def test_a_drag_or_a_key_in_a_long_text_touches_only_what_changes(show):
    page, _ = show(LONG)
    a, b = middle(page, 40), middle(page, 400)
    page.mouse.move(*a)
    page.mouse.down()
    page.mouse.move(*b)
    page.evaluate(
        """() => {
        window.touched = 0;
        const watch = new MutationObserver((list) => { window.touched += list.length; });
        const options = { subtree: true, attributes: true, attributeFilter: ["class"] };
        watch.observe(document.querySelector(".text"), options);
        }"""
    )
    page.mouse.move(*middle(page, 402))
    page.mouse.up()
    assert page.locator(".token.selected").count() == 363
    assert 0 < page.evaluate("window.touched") < 20
    page.locator(".token").nth(9).click()  # nor does a key
    before = page.evaluate("window.touched")
    for key in ("ArrowRight", "1", "ArrowRight"):
        page.keyboard.press(key)
    assert page.locator(".token.marked").count() == 1
    assert page.evaluate("window.touched") - before < 20
