"""The network fails, the server stumbles, the worker comes back: nothing is lost or doubled."""

from __future__ import annotations

import pytest

from web.pages.conftest import press
from web.pages.fake import SPANS, span_task

ANN = {"spans": [{"start": 0, "end": 1, "type": "PER"}]}


@pytest.fixture
def fake(fake):
    """Two tasks, so that going on can be seen."""
    fake.reset(SPANS, [span_task(number=1), span_task("Bo sang", number=2)])
    return fake


def send_ann(page):
    press(page, "1", "Enter")


def next_task(page):
    page.locator(".token", has_text="Bo").wait_for()


def keys(fake):
    return [body["key"] for path, body in fake.posts if path == "answers"]


def test_an_answer_given_offline_is_sent_when_the_network_is_back(visit, fake):
    page = visit()
    page.context.set_offline(True)
    page.locator("#banner", has_text="No connection").wait_for()
    send_ann(page)
    page.locator("#banner", has_text="Your answer is kept in this browser").wait_for()
    assert fake.answers == {}
    page.context.set_offline(False)
    next_task(page)
    assert fake.sent == [ANN]
    assert not page.locator("#banner").is_visible()


def test_the_first_task_is_asked_for_before_the_whole_page_is_here(visit, fake):
    page = visit(path="/help")
    asked = []

    def hold(route):
        for _ in range(100):
            if fake.posts:
                break
            page.wait_for_timeout(20)
        asked.extend(path for path, _ in fake.posts)
        route.continue_()

    page.route("**/label.js", hold)
    page.goto(page.url.replace("/help", "/label"))
    page.wait_for_selector(".token")
    assert asked == ["next"]
    assert len(fake.posts) == 1


def test_an_answer_whose_reply_was_lost_is_sent_again_and_counts_once(visit, fake):
    fake.lost = 1
    page = visit()
    send_ann(page)
    page.locator("#banner", has_text="The server has a problem").wait_for()
    next_task(page)
    assert len(keys(fake)) == 2
    assert len(set(keys(fake))) == 1
    assert fake.sent == [ANN]


def test_an_answer_that_finds_no_place_is_sent_again_when_the_server_says(visit, fake):
    page = visit()
    fake.busy, fake.times = 2, []
    send_ann(page)
    page.locator("#banner", has_text="is busy for a moment").wait_for()
    assert "Your answer is kept in this browser" in page.text_content("#banner")
    next_task(page)
    assert fake.sent == [ANN]
    assert len(set(keys(fake))) == 1
    first, second, third = fake.times[:3]
    assert second - first >= 2
    assert third - second >= 2


def test_who_closes_the_page_before_it_was_sent_has_it_sent_at_the_next_visit(visit, fake):
    fake.broken = 1_000
    page = visit(path="/help")  # the same browser, and nothing in it yet
    fake.broken = 0
    page = visit(context=page.context)
    fake.broken = 1_000
    send_ann(page)
    page.locator("#banner", has_text="The server has a problem").wait_for()
    page.close()
    fake.broken = 0
    page = visit(context=page.context)
    next_task(page)
    assert fake.sent == [ANN]


def test_a_draft_is_there_on_the_next_day(visit, fake):
    page = visit()
    page.keyboard.press("1")
    page.close()
    page = visit(context=page.context)
    assert page.text_content("#note-text") == "Your draft is back."
    page.keyboard.press("Enter")
    next_task(page)
    assert fake.sent == [ANN]


def test_the_key_of_a_task_is_the_same_in_two_windows(visit, fake):
    one = visit()
    two = visit(context=one.context)
    send_ann(one)
    next_task(one)
    press(two, "2", "Enter")
    next_task(two)
    assert len(set(keys(fake))) == 1
    assert "Another answer to this text was sent before" in two.text_content("#note-text")
    assert fake.sent == [ANN]


def test_an_answer_waits_for_the_next_session(visit, fake):
    page = visit()
    fake.session = False
    send_ann(page)
    page.locator("h2", has_text="Your session has ended").wait_for()
    fake.session = True
    page.reload()
    next_task(page)
    assert fake.sent == [ANN]


def test_a_draft_of_somebody_else_is_not_shown(visit):
    page = visit()
    page.evaluate(
        "Object.keys(localStorage).forEach((name) => localStorage.setItem(name.replace('w1', 'w2'),"
        " localStorage[name]) || localStorage.removeItem(name))"
    )
    page.reload()
    page.wait_for_selector(".token")
    assert not page.locator("#note").is_visible()


@pytest.mark.parametrize(
    ("status", "message", "words"),
    [
        ("late", "", "came late"),
        ("draft", "", "does not count"),
        ("duplicate", "", "the first answer counts"),
        ("draft", "The money is spent.", "The money is spent."),
    ],
)
def test_what_became_of_an_answer_is_told(visit, fake, status, message, words):
    fake.status, fake.message = status, message
    page = visit()
    send_ann(page)
    next_task(page)
    assert words in page.text_content("#note-text")


def test_an_answer_that_is_refused_comes_back_to_be_mended(visit, fake):
    fake.refused = 1
    page = visit()
    send_ann(page)
    page.locator("#note-text", has_text="The spans do not fit.").wait_for()
    page.locator(".token.marked:focus").wait_for()
    page.keyboard.press("Enter")
    next_task(page)
    assert fake.sent == [ANN]


def offline_answer(visit, fake):
    """Return a browser that holds an answer to the first text, which others have done since."""
    page = visit()
    fake.broken = 1_000
    send_ann(page)
    page.locator("#banner", has_text="The server has a problem").wait_for()
    page.close()
    fake.broken = 0
    fake.tasks = fake.tasks[1:]
    return page.context


@pytest.mark.parametrize(
    "refusal",
    [(422, "invalid", "The campaign cannot take this."), (403, "error", ""), (409, "busy", "")],
    ids=lambda refusal: str(refusal[0]),
)  # fmt: skip
def test_a_queued_answer_that_is_refused_is_told_of_and_kept_to_be_seen_and_sent(
    visit, fake, refusal
):
    context = offline_answer(visit, fake)
    fake.refused, fake.refusal = 1, refusal
    page = visit(context=context)
    next_task(page)
    assert "What you have marked is kept in this browser" in page.text_content("#note-text")
    page.click("summary:has-text('One answer was not taken')")
    assert "AnnPER Lee went" in " ".join(page.inner_text("#refused .sampled").split())
    assert fake.answers == {}
    page.click("#refused >> text=Send again")
    page.locator("#note-text", has_text="The answer has arrived.").wait_for()
    assert fake.sent == [ANN]
    assert page.locator("#refused").is_hidden()
    assert page.locator(".token", has_text="Bo").is_visible()


@pytest.mark.parametrize(
    ("refusal", "sent"),
    [((422, "invalid", ""), []), ((410, "gone", ""), [ANN])],
    ids=["422", "410"],
)
def test_only_what_is_not_faulty_is_sent_again_at_the_next_visit(visit, fake, refusal, sent):
    context = offline_answer(visit, fake)
    fake.refused, fake.refusal = 1, refusal
    next_task(visit(context=context))
    next_task(visit(context=context))
    assert fake.sent == sent


def test_a_refused_answer_can_be_thrown_away(visit, fake):
    context = offline_answer(visit, fake)
    fake.refused = 1
    page = visit(context=context)
    page.click("summary:has-text('One answer was not taken')")
    page.click("#refused >> text=Discard")
    assert page.locator("#refused").is_hidden()
    page.reload()
    next_task(page)
    assert page.locator("#refused").is_hidden()


def test_the_end_of_a_lease_is_told_and_the_answer_still_sent(visit, fake):
    fake.tasks[0]["expires"] = 0
    page = visit()
    page.locator("#note-text", has_text="The time for this text is over").wait_for()
    send_ann(page)
    next_task(page)
    assert fake.sent == [ANN]


def test_without_storage_work_goes_on(visit, fake):
    page = visit()
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } })"
    )
    page.reload()
    page.wait_for_selector(".token")
    send_ann(page)
    next_task(page)
    assert fake.sent == [ANN]


def test_the_banner_stays_in_view_and_the_button_says_what_it_waits_for(visit, fake):
    fake.reset(SPANS, [span_task("Ann sang . " * 500, 1), span_task("Bo sang", number=2)])
    page = visit("phone")
    page.tap("#start")
    press(page, "1")
    page.evaluate("scrollTo(0, 3000)")
    page.context.set_offline(True)
    page.locator("#send", has_text="Waiting for the connection").wait_for()
    assert 0 <= page.locator("#banner").bounding_box()["y"] < 10
    press(page, "Enter")
    page.locator("#banner", has_text="Your answer is kept").wait_for()
    assert page.text_content("#send") == "Waiting for the connection"
    page.context.set_offline(False)
    next_task(page)
    assert page.text_content("#send") == "Send"


def test_the_second_window_says_which_answer_counts(visit, fake):
    one = visit()
    two = visit(context=one.context)
    send_ann(one)
    next_task(one)
    two.locator("#note-text", has_text="You have sent this text in another window").wait_for()
    assert "It says: PER “Ann”. “Back” shows it." in two.text_content("#note-text")
    press(two, "2", "Enter")
    two.locator("#note-text", has_text="Another answer to this text was sent before").wait_for()
    assert "That one counts. It says: PER “Ann”." in two.text_content("#note-text")
    assert fake.sent == [ANN]


def test_a_text_that_was_skipped_in_another_window_goes_there_too(visit):
    one = visit()
    two = visit(context=one.context)
    press(one, "s", "Enter")
    next_task(one)
    next_task(two)


def test_a_page_that_waits_says_for_what(visit, fake):
    page = visit(path="/help")
    fake.delay = 4
    page.goto(page.url.replace("/help", "/label"))
    page.locator("#message-text", has_text="The next text is on its way").wait_for()
    fake.delay = 0
    page.wait_for_selector(".token")


@pytest.mark.parametrize(
    ("end", "title"),
    [
        ({"state": "done", "message": "", "seconds": 60}, "Thank you, you are done"),
        ({"state": "wait", "message": "", "seconds": 60}, "Thank you, that is all for now"),
    ],
)
def test_who_has_done_all_is_thanked_at_once(visit, fake, end, title):
    fake.reset(SPANS, [span_task()], end=end)
    page = visit()
    send_ann(page)
    page.locator("h2", has_text=title).wait_for()
