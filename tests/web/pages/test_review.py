"""Review: the uncertain place first, nothing unread accepted, decisions undone; axe."""

from __future__ import annotations

import pytest

from web.desks import as_json
from web.loops import wait_until
from web.pages.conftest import press
from web.pages.test_desk import desk, first_doubt, sees  # noqa: F401 - a fixture
from web.pages.test_states import check

WORDS = [f"word{n}" for n in range(900)]
SURE = {"start": 3, "end": 4, "type": "LOC", "confidence": 0.999}
UNSURE = [{"start": 500, "end": 502, "type": "LOC", "confidence": 0.6},
          {"start": 501, "end": 502, "type": "LOC", "confidence": 0.3}]  # fmt: skip
ELSE = {"start": 40, "end": 41, "type": "LOC", "confidence": 0.9}


def uncertain(page, spans, alternatives, least):
    """Show one uncertain item of 900 words in place of the campaign's."""
    item = page.request.get(f"{page.url}/../../api/desk/uncertain").json()[0]["item"]
    tokens = [0.999] * len(WORDS)
    for token, confidence in least.items():
        tokens[token] = confidence
    found = {"confidence": 0.3, "tokens": tokens, "spans": spans, "alternatives": alternatives}
    shown = {"item": item, "tokens": WORDS, "text": " ".join(WORDS), "starts": None,
             "found": found, "answers": 2}  # fmt: skip
    page.route("**/api/desk/uncertain*", lambda route: route.fulfill(json=[shown]))
    page.goto(page.url)
    page.wait_for_selector("#work .token")
    page.wait_for_selector("#given:not([hidden])")
    return item


def seen(page):
    """Return which tokens are between the top of the window and the dock."""
    return set(
        page.evaluate("""() => {
        const foot = document.querySelector("#dock").getBoundingClientRect().top;
        return [...document.querySelectorAll(".token")].flatMap((token, i) => {
            const { top, bottom } = token.getBoundingClientRect();
            return top >= 0 && bottom <= foot ? [i] : [];
        });
    }""")
    )


@pytest.mark.parametrize("look", ["desktop", "phone"])
def test_a_long_text_is_read_before_it_is_accepted(desk, look):  # noqa: F811
    page = desk.open("/review", look=look)
    uncertain(page, [SURE, UNSURE[0]], [SURE, *UNSURE, ELSE], {500: 0.6, 501: 0.55, 40: 0.9})
    decided = []
    page.route("**/gold", lambda route: decided.append(route.request.method) or route.abort())
    been = seen(page)
    assert 500 in been
    assert page.locator(".token.unsure").count() == 3
    assert page.locator(".alt").all_text_contents() == [
        "LOCword500 word50160 %", "LOCword50130 %"
    ]  # fmt: skip
    assert "Uncertain place 2 of 2" in page.text_content("#either")
    check(page)
    page.get_by_role("button", name="The next uncertain place").click()
    assert 40 in seen(page)
    been |= seen(page)
    assert page.locator(".alt").count() == 1
    press(page, "Enter")
    assert page.text_content("#send") == "Read on"
    been |= seen(page)
    while page.text_content("#send") == "Read on":
        page.keyboard.press("Enter")
        been |= seen(page)
    assert been == {*range(900)}
    assert decided == []
    press(page, "Enter")
    page.wait_for_selector('#note[data-kind="bad"]')
    assert decided == ["POST"]
    assert page.locator("#note").bounding_box()["y"] >= 0  # in view, far below the top
    assert page.evaluate("scrollY") > 300


def test_the_answers_to_an_item_are_never_shown_under_the_next_one(desk):  # noqa: F811
    page = desk.open("/review")
    page.wait_for_selector("#given:not([hidden])")
    before = first_doubt(page)
    page.route("**/api/desk/items/*", lambda _: None)  # those of the next one take long
    press(page, "s")
    assert first_doubt(page) != before
    assert page.locator("#given").is_hidden()


def test_an_item_without_likely_spans_has_no_empty_list_of_them(desk):  # noqa: F811
    item = as_json(desk.service.desk.uncertain())[0]["item"]
    page = desk.open(f"/items/{item}")
    page.get_by_role("heading", name="Probabilities").wait_for()

    # Asked beforehand: a page that is closed while a handler asks takes the answer away from it.
    answer = page.evaluate("path => fetch(path).then(it => it.json())", f"/api/desk/items/{item}")
    answer["found"]["alternatives"] = []
    page.route(f"**/api/desk/items/{item}*", lambda route: route.fulfill(json=answer))
    page.reload()
    page.get_by_role("heading", name="Consensus").wait_for()
    assert page.get_by_role("heading", name="Probabilities").count() == 0


def test_nobody_is_told_that_they_said_there_is_nothing(desk):  # noqa: F811
    page = desk.open("/review")
    uncertain(page, [], [], {450: 0.5})
    assert 450 in seen(page)
    assert page.text_content("#held-hint") == "Nothing is marked here."
    press(page, "n", "n")
    assert page.text_content("#held-hint") == "You marked that there is nothing here."


def test_a_decision_is_undone_with_what_was_marked(desk):  # noqa: F811
    page = desk.open("/review")
    item = first_doubt(page)
    press(page, "c", "n", "Enter")
    wait_until(lambda: as_json(desk.service.desk.item(item))["gold"] == [])
    page.locator("#note", has_text="These labels are gold now.").wait_for()
    check(page)
    page.click("#note >> text=Undo")
    wait_until(lambda: as_json(desk.service.desk.item(item))["gold"] is None)
    sees(page, f"document.querySelector('#open').href.endsWith('/{item}')")
    assert page.locator("#work .marked").count() == 0
    assert page.text_content("#sum") == ""
    press(page, "Enter")
    wait_until(lambda: as_json(desk.service.desk.item(item))["gold"] == [])
    page.locator("#note", has_text="These labels are gold now.").wait_for()
    press(page, "u")  # where nothing is left to undo in the text
    wait_until(lambda: as_json(desk.service.desk.item(item))["gold"] is None)


def test_parts_of_a_word_are_reviewed_as_they_were_cut(desk):  # noqa: F811
    page = desk.open("/review")
    apple = {"start": 1, "end": 2, "type": "LOC", "from_char": None, "to_char": 5}
    cake = {"start": 1, "end": 2, "type": "LOC", "from_char": 5, "to_char": None}
    both = [{**apple, "confidence": 0.9}, {**cake, "confidence": 0.4}]
    found = {"confidence": 0.4, "tokens": [1, 0.4, 1], "spans": both[:1], "alternatives": both}
    item = page.request.get(f"{page.url}/../../api/desk/uncertain").json()[0]["item"]
    shown = {"item": item, "tokens": ["Der", "Apfelkuchen", "schmeckt"], "starts": [0, 4, 16],
             "text": "Der Apfelkuchen schmeckt", "found": found, "answers": 2}  # fmt: skip
    page.route("**/api/desk/uncertain*", lambda route: route.fulfill(json=[shown]))
    sent = []
    page.route("**/gold", lambda route: sent.append(route.request.post_data_json) or route.abort())
    page.goto(page.url)
    page.wait_for_selector("#work .token")
    assert page.locator(".token.marked").all_text_contents() == ["Apfel"]
    assert page.locator(".token.unsure").all_text_contents() == ["Apfel", "kuchen"]
    chips = page.locator(".alt")
    assert chips.all_text_contents() == ["LOCApfel90 %", "LOCkuchen40 %"]
    assert chips.nth(0).get_attribute("aria-pressed") == "true"
    chips.nth(1).click()
    assert page.locator(".token.marked").all_text_contents() == ["Apfel", "kuchen"]
    assert chips.nth(1).get_attribute("aria-pressed") == "true"
    page.keyboard.press("Enter")
    wait_until(lambda: page.wait_for_timeout(20) or sent)
    assert sent[0]["spans"] == [
        {"start": 1, "end": 2, "type": "LOC", "to_char": 5},
        {"start": 1, "end": 2, "type": "LOC", "from_char": 5},
    ]
