"""Tasks of several layers: spans that overlap, and questions below the text."""

from __future__ import annotations

import dataclasses

import pytest

from web.pages.conftest import done, drag, press, title
from web.pages.fake import LAYERS, layers_task
from web.pages.test_states import check

BANK = {"start": 1, "end": 4, "type": "ORG"}  # Bank of England
ENGLAND = {"start": 3, "end": 4, "type": "LOC"}
CROSSING = {"start": 3, "end": 6, "type": "PER"}  # England in London
GOOD = {"names": [BANK, ENGLAND], "mood": "good", "topics": ["sport"], "style": None}
QUESTIONS = dataclasses.replace(LAYERS, labels=(), layers=LAYERS.layers[1:])
HEBREW = "דנה כהן מבנק ישראל נסעה לברלין ."


@pytest.fixture
def show(visit, fake):
    """Open the page with tasks."""

    def go(*tasks, page=LAYERS, look="desktop", **turned):
        fake.reset(page, tasks or [layers_task()], **turned)
        made = visit(look)
        if made.locator("#start").is_visible():
            made.tap("#start")
        return made

    return go


def heard(page, i):
    return page.get_attribute(f".token >> nth={i}", "aria-label")


def focused(page):
    return page.evaluate("document.activeElement.id")


def test_the_mouse_nests_spans_and_chooses_them_in_turn(show, fake):
    page = show()
    drag(page, 1, 3)
    press(page, "3")
    page.dblclick(".token >> nth=3")
    press(page, "2")
    drag(page, 3, 5)
    press(page, "1")
    assert page.locator(".name").evaluate_all("all => all.map((one) => one.dataset.type)") == [
        "ORG", "LOC", "PER",
    ]  # fmt: skip
    page.click(".token >> nth=0")
    chosen = []
    for _ in range(4):
        page.click(".token >> nth=3")
        chosen.append(page.text_content(".quote"))
    assert chosen == ["England", "Bank of England", "England in London", "England"]
    assert heard(page, 3) == "England, LOC (chosen), ORG, PER"
    page.click(".name[data-type=ORG]")
    assert page.text_content(".quote") == "Bank of England"
    assert heard(page, 1) == "Bank, ORG"
    page.click("button[aria-label='Remove this label']")
    check(page)
    page.click("text=very good")
    page.click("text=money")
    page.click("text=sport")
    page.click("#send")
    done(page)
    layers = {"names": [CROSSING, ENGLAND], "mood": "very good", "topics": ["money", "sport"]}
    assert fake.sent == [{"layers": {**layers, "style": None}}]


def test_keys_alone_lead_from_the_text_through_the_questions_to_send(show, fake):
    page = show()
    press(page, "ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight", "3")
    press(page, "ArrowRight", "ArrowLeft", " ", "2", "o")
    assert page.text_content("#live").strip() == "“Bank of England”: ORG, 2 of 2"
    press(page, "1", "2", "3")  # the chosen one becomes another kind
    press(page, "Enter")
    assert "mood" in page.text_content("#note-text")
    assert focused(page) == "layer-0-0"  # the question that has no answer
    press(page, "2", "4", "Tab", "3", "1")
    assert page.text_content("#live").strip() == "topics: money, travel are chosen"
    press(page, *["Tab"] * 3, "2", "2", "1")  # from the first box over the others
    assert focused(page) == "layer-2-0"
    press(page, "Enter")
    done(page)
    answer = {"mood": "good", "topics": ["money", "travel"], "style": "plain"}
    assert fake.sent == [{"layers": {"names": [BANK, ENGLAND], **answer}}]


def test_undo_goes_back_through_all_layers_in_their_order(show):
    page = show()

    def now():
        chosen = page.locator(":checked").evaluate_all("all => all.map((one) => one.id)")
        return page.locator(".token.marked").count(), [one for one in chosen if "layer" in one]

    press(page, "1")
    page.check("#layer-0-1")
    drag(page, 0, 2)
    press(page, "2")
    page.check("#layer-1-2")
    page.click("#layer-0-3")
    states = [now()]
    for _ in range(5):
        press(page, "Control+z")
        states.append(now())
    assert states == [
        (3, ["layer-0-3", "layer-1-2"]), (3, ["layer-0-1", "layer-1-2"]), (3, ["layer-0-1"]),
        (1, ["layer-0-1"]), (1, []), (0, []),
    ]  # fmt: skip
    assert page.get_attribute("#dock .acts button:has-text('Undo')", "aria-disabled") == "true"
    press(page, *["y"] * 5)
    assert now() == states[0]
    press(page, "u", "u")
    page.check("#layer-1-0")  # what comes after cannot be done again
    press(page, "y")
    assert now() == (3, ["layer-0-1", "layer-1-0"])


def test_on_a_phone_taps_choose_spans_and_then_begin_one_within(show, fake):
    page = show(look="phone")
    for place in (".token >> nth=1", ".token >> nth=3", ".type-2.type", ".token >> nth=0"):
        page.tap(place)
    page.keyboard.press("Escape")
    for _ in range(2):  # the span, then its word
        page.tap(".token >> nth=3")
    page.tap(".token >> nth=3")
    page.tap(".type-1.type")
    quotes = []
    for _ in range(2):
        page.tap(".token >> nth=3")
        quotes.append(page.text_content(".quote"))
    assert quotes == ["Bank of England", "England"]
    check(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    for label in ("bad", "travel"):
        page.get_by_text(label, exact=True).tap()
    page.tap("#send")
    done(page)
    answer = {"mood": "bad", "topics": ["travel"], "style": None}
    assert fake.sent == [{"layers": {"names": [BANK, ENGLAND], **answer}}]


def test_names_stand_at_the_beginning_of_their_lines_from_right_to_left(show):
    page = show(layers_task(HEBREW))
    drag(page, 0, 3)
    press(page, "1")
    drag(page, 2, 3)
    press(page, "3")
    page.click(".token >> nth=2")
    rows = []
    for i, kind in ((0, "PER"), (2, "ORG")):
        cell = page.locator(".token").nth(i).bounding_box()
        name = page.locator(f".name[data-type={kind}]").bounding_box()
        assert name["x"] + name["width"] == pytest.approx(cell["x"] + cell["width"], abs=1)
        rows.append(name["y"])
    assert rows[0] > rows[1]  # the inner one is nearer to the words
    check(page)


def test_parts_of_words_overlap_too(show, fake):
    text = "Der Apfelkuchen"
    page = show(layers_task(tokens=text.split(), text=text, starts=[0, 4]))
    press(page, "End", "1", " ", *["Alt+Shift+ArrowLeft"] * 6, "2")
    assert page.locator(".token.marked").all_text_contents() == ["Apfel", "kuchen"]
    page.check("#layer-0-0")
    page.reload()  # the draft knows all of it
    page.wait_for_selector(".token.marked")
    assert page.text_content("#note-text") == "Your draft is back."
    page.click("#send")
    done(page)
    whole = {"start": 1, "end": 2, "type": "PER"}
    names = fake.sent[0]["layers"]["names"]
    assert names == [whole, {**whole, "type": "LOC", "to_char": 5}]
    assert fake.sent[0]["layers"]["mood"] == "very bad"


def test_what_is_suggested_is_decided_in_the_text_and_marked_in_the_questions(show, fake):
    page = show(layers_task(suggestion={"layers": GOOD}))
    assert heard(page, 3) == "England, LOC, suggested, ORG, suggested"
    assert page.locator(".choice.suggested").all_text_contents() == ["4good", "2sport"]
    assert page.locator(".questions :checked").count() == 0
    check(page)
    assert page.text_content("#send") == "Check 2"
    press(page, "Enter", "Enter")  # the outer one begins first
    assert heard(page, 3) == "England, LOC, suggested (chosen), ORG"
    press(page, "Delete", "Enter", "4", "Enter")
    done(page)
    answer = {"names": [BANK], "mood": "good", "topics": [], "style": None}
    assert fake.sent == [{"layers": answer}]


def test_an_answer_is_looked_at_again_and_changed(show, fake):
    page = show(layers_task(), layers_task("Bo left", 2))
    for keys in (["ArrowRight", "3"], ["Tab", "2", "Enter"]):
        press(page, *keys)
    title(page, "Text 2")
    press(page, "b")
    title(page, "Your answer")
    assert page.is_checked("#layer-0-1")
    press(page, "Enter")  # nothing was changed
    title(page, "Text 2")
    assert [path for path, _ in fake.answers.values()] == ["answers"]
    press(page, "b")
    title(page, "Your answer")
    page.check("#layer-0-4")
    press(page, "Enter")
    title(page, "Text 2")
    assert fake.versions["task-1"]["layers"]["mood"] == "very good"
    fake.closed["task-1"] = "The campaign has ended."
    press(page, "b")
    title(page, "Your answer")
    page.wait_for_selector("#past-view:not([hidden])")
    shown = page.inner_text("#past-view").split("\n")
    assert [line for line in shown if line] == [
        "The BankORG of England in London said so .", "mood very good", "topics no label",
        "style no label",
    ]  # fmt: skip
    check(page)


def test_feedback_shows_what_overlaps_and_says_which_labels_were_expected(show):
    truth = {"right": False, "layers": {**GOOD, "names": [BANK, ENGLAND, CROSSING]}}
    page = show(layers_task(training=True), truth={"task-1": truth})
    press(page, "n", "Tab", "1", "Enter")
    page.locator("h2", has_text="Not quite").wait_for()
    assert (
        page.text_content(".sampled >> nth=0")
        == "The Bank of England in London said so .Nothing marked"
    )
    expected = "The Bank of EnglandLOCORG in LondonPER said so ."
    assert page.text_content(".sampled >> nth=1") == expected
    assert page.locator(".answered").all_text_contents() == ["very bad", "good", "sport"]
    check(page)


def test_which_answer_counts_is_said_in_words(show, fake):
    page = show()
    press(page, "ArrowRight", "3", "Tab", "2")
    fake.status = "duplicate"
    press(page, "Enter")
    page.wait_for_selector("#note:not([hidden])")
    said = "It says: names: ORG “Bank”; mood: bad; topics: no label; style: no label."
    assert said in page.text_content("#note-text")


def test_questions_alone_have_keys_from_the_first_one_on(show, fake):
    task = layers_task("", text="I slept all day.")
    page = show(task, page=QUESTIONS)
    press(page, "Enter")
    assert fake.sent == []
    press(page, "4", "Tab", "2", *["Tab"] * 2, "1")
    page.click("#layer-2-0")  # what is optional is taken back
    assert page.locator("#layer-2-0").is_checked() is False
    check(page)
    press(page, "Enter")
    done(page)
    assert fake.sent == [{"layers": {"mood": "good", "topics": ["sport"], "style": None}}]


def test_the_help_and_the_keys_speak_of_layers(show, visit):
    page = show()
    page.click("text=Keys")
    assert "choose the next one under the cursor" in page.inner_text(".keys")
    help_page = visit(path="/help", context=page.context)
    assert "Labels may overlap" in help_page.inner_text("main")
    assert "Answering questions" in help_page.inner_text("main")
    check(help_page)
