"""Texts of all scripts, of all lengths, and of people who mean harm."""

from __future__ import annotations

import dataclasses

import pytest

from web.pages.conftest import done
from web.pages.fake import MOODS, SPANS, single_task, span_task

EVIL = "<img src=x onerror=window.evil=1><script>window.evil=1</script>\"'&{{7*7}}</script>"


def send(page):
    page.keyboard.press("Enter")
    done(page)


def test_an_arabic_word_of_two_tokens_is_shown_joined(visit, fake):
    task = span_task(tokens=["و", "قال"], text="وقال", starts=[0, 1])
    fake.reset(SPANS, [task])
    page = visit()
    assert page.text_content(".text") == "وقال"
    boxes = [page.locator(".token").nth(i).bounding_box() for i in (0, 1)]
    assert boxes[0]["x"] == pytest.approx(boxes[1]["x"] + boxes[1]["width"], abs=1)


@pytest.mark.parametrize("words", ["I went to Oslo", "דנה הלכה אל ברלין"])
def test_a_long_name_ends_where_the_next_begins(visit, fake, words):
    labels = ("a kind whose name is very long indeed", "LOC")
    fake.reset(dataclasses.replace(SPANS, labels=labels), [span_task(words)])
    page = visit()
    for key in ("1", "ArrowLeft" if words[0] == "ד" else "ArrowRight", "2"):
        page.keyboard.press(key)
    page.wait_for_timeout(100)
    first, second = (page.locator(".token").nth(i).bounding_box() for i in (0, 1))
    shown = page.evaluate(
        "parseFloat(getComputedStyle(document.querySelector('.token.first'), '::before').width)"
    )
    between = abs(second["x"] + second["width"] - first["x"] - first["width"])
    room = between if words[0] == "ד" else second["x"] - first["x"]
    assert 0 < shown <= room


def test_text_is_text_wherever_it_stands(visit, fake):
    page = dataclasses.replace(
        SPANS, title=EVIL, labels=(EVIL, "LOC"), skip_reasons=(EVIL,),
        instructions=f"# {EVIL}\n\n{EVIL}\n\n> [{EVIL}](LOC) [x](javascript:alert(1))",
    )  # fmt: skip
    truth = {"right": False, "spans": [{"start": 0, "end": 1, "type": "LOC"}]}
    task = span_task(tokens=[EVIL, "sang"])
    fake.reset(page, [task], message=EVIL, truth={"task-1": truth})
    page = visit()
    page.keyboard.press("1")
    assert page.text_content(".token") == EVIL
    assert page.get_attribute(".token", "data-type") == EVIL
    page.keyboard.press("s")
    assert page.text_content("dialog .check") == EVIL
    page.keyboard.press("Escape")
    send(page)
    assert page.text_content("#note-text") == EVIL
    assert page.text_content(".sampled") == f"{EVIL}{EVIL} sang"
    visit(path="/help", context=page.context)
    for one in page.context.pages:
        assert one.evaluate("window.evil") is None
        assert one.locator("img, a[href^=javascript]").count() == 0


def test_a_message_and_a_single_label_are_text_too(visit, fake):
    page = dataclasses.replace(MOODS, labels=(EVIL, "sad"))
    end = {"state": "done", "message": EVIL, "completion": {"code": EVIL, "url": None}}
    fake.reset(page, [single_task(EVIL)], end=end)
    page = visit()
    assert page.text_content(".text") == EVIL
    page.keyboard.press("1")
    send(page)
    assert page.text_content("#message-text") == EVIL
    assert page.evaluate("window.evil") is None
    assert fake.sent == [{"label": EVIL}]


def test_the_page_is_light_and_usable(visit):
    sizes = {}
    page = visit()
    page.on("response", lambda reply: sizes.update({reply.url: len(reply.body())}))
    page.reload()
    page.wait_for_selector(".token")
    page.wait_for_load_state("networkidle")
    assert sum(sizes.values()) < 150_000
    assert any(url.endswith("/label.js") for url in sizes)
    assert not [url for url in sizes if "127.0.0.1" not in url]
    visit(context=page.context).wait_for_selector(".token:focus")
