"""The requester at the desk watches, reviews, drops, pauses and exports; axe on each page."""

from __future__ import annotations

import json
import re
import time
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest

from goldspan.errors import InputError
from goldspan.web import engine
from goldspan.web.people import GOLD
from goldspan.web.settings import wall_clock
from web.desks import as_json
from web.desks import running as serving
from web.loops import wait_until
from web.pages.conftest import LOOKS, WATCH, press
from web.pages.test_states import check
from web.played import PASSWORD
from web.serving import answer, open_round, serve

PAGES = ["", "/review", "/audit", "/workers", "/items", "/links", "/exports", "/api"]


@pytest.fixture(scope="module")
def desk(browser, tmp_path_factory):
    """The desk of a campaign of spans."""
    with opened(browser, tmp_path_factory.mktemp("desk"), spans=True) as found:
        yield found


@pytest.fixture(scope="module")
def single(browser, tmp_path_factory):
    """The desk of a campaign of single labels."""
    with opened(browser, tmp_path_factory.mktemp("desk"), spans=False) as found:
        yield found


def opened(browser, folder, *, spans, n=7, **sections):
    """Run a server whose requester has logged in: `open(path)` gives a page."""
    service = serve(
        folder, spans=spans, clock=wall_clock, redundancy={"min": 3, "max": 3}, **sections
    )
    open_round(service)
    for _ in range(n):
        for worker in ("ann", "bob"):
            answer(service, worker)
    return opened_over(browser, service)


@contextmanager
def opened_over(browser, service):
    """Run the server of a service."""
    service.start()
    contexts, faults = [], []
    with serving(service) as served:
        state = log_in(browser, served)

        def visit(path="", look="desktop", **options):
            context = browser.new_context(**LOOKS[look], **options, storage_state=state)
            context.set_default_timeout(30_000)
            context.add_init_script(WATCH)
            contexts.append(context)
            page = context.new_page()
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.goto(f"{served.url}/desk{path}")
            page.wait_for_selector("#state:not(:empty)")
            return page

        yield SimpleNamespace(open=visit, service=service, served=served)
        for context in contexts:
            for page in context.pages:
                faults += page.evaluate("window.stopped ?? []")
            context.close()
    service.close()
    assert faults == []


def log_in(browser, served):
    """Choose the password by the link that holds once, and give the cookies."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{served.url}/setup/{served.auth.account.open_setup()}")
    for field in ("#password", "#again"):
        page.fill(field, PASSWORD)
    page.click("button[type=submit]")
    page.wait_for_url("**/desk")
    state = context.storage_state()
    context.close()
    return state


def sees(page, words):
    """Wait until something holds on the page, whose policy lets no test wait by `eval`."""
    wait_until(lambda: page.evaluate(f"Boolean({words})"))


@pytest.mark.parametrize(
    ("look", "scheme"), [("desktop", "light"), ("phone", "dark"), ("narrow", "light")]
)
def test_axe_finds_no_fault_on_any_page_and_none_is_wider_than_a_phone(desk, look, scheme):
    item = next(iter(desk.service.inputs.control))
    page = desk.open(look=look, color_scheme=scheme)
    width, height = LOOKS[look]["viewport"].values()
    for path in [*PAGES, f"/items/{item}"]:
        page.goto(f"{desk.served.url}/desk{path}")
        page.wait_for_selector("#state:not(:empty)")
        sees(page, READY[path] if path in READY else READY["item"])
        if look != "narrow":
            check(page)
        # A phone's window grows with what is too wide: its own width tells nothing.
        assert page.evaluate("document.documentElement.scrollWidth") == width, path
        if path == "/review" and look != "desktop":
            box = page.locator("#send").bounding_box()
            assert box["y"] + box["height"] <= height
            assert box["x"] + box["width"] <= width
            assert page.locator("#open").bounding_box()["height"] < 50


def overview(page, **changes):
    """Show the overview as it would be with other numbers."""
    now = {**page.request.get(f"{page.url}/../api/desk/overview").json(), **changes}
    page.route(
        "**/api/desk/live",
        lambda route: route.fulfill(
            content_type="text/event-stream", body=f"event: overview\ndata: {json.dumps(now)}\n\n"
        ),
    )
    page.goto(page.url)
    page.wait_for_selector(f'#state[data-state="{now["state"]}"]')


READY = {
    "": "document.querySelector('#people-sub').textContent",
    "/review": "document.querySelector('#queue li')",
    "/audit": "document.querySelector('#sum').textContent",
    "/workers": "document.querySelector('#rows tr .gauge')",
    "/items": "document.querySelector('#rows tr')",
    "/links": "!document.querySelector('#empty').hidden || document.querySelector('#rows tr')",
    "/exports": "document.querySelector('#files li')",
    "/api": "!document.querySelector('#empty').hidden || document.querySelector('#rows tr')",
    "item": "!document.querySelector('#given').hidden",
}


def test_the_requester_watches_answers_come_in(desk):
    page = desk.open()
    before = as_json(desk.service.desk.overview())["answers"]["counting"]
    sees(page, f"document.querySelector('#items-sub').textContent.startsWith('{before} answers')")
    assert answer(desk.service, "ann") is not None
    sees(
        page, f"document.querySelector('#items-sub').textContent.startsWith('{before + 1} answers')"
    )
    spent = f"€{0.05 * (before + 1):.2f}"
    assert spent[1:] in page.text_content("#money-big")


def first_doubt(page):
    page.wait_for_selector("#queue li [aria-current]")
    return page.get_attribute("#open", "href").rpartition("/")[2]


def test_a_doubt_is_decided_by_keys_alone(desk):
    page = desk.open("/review")
    first_doubt(page)
    page.keyboard.press("s")
    item = first_doubt(page)
    page.keyboard.press("Enter")
    wait_until(lambda: as_json(desk.service.desk.item(item))["gold"] is not None)
    one = as_json(desk.service.desk.item(item))
    assert one["gold"] == [plain(span) for span in one["found"]["spans"]]
    sees(page, "document.querySelector('#sum').textContent === '1 item reviewed'")
    assert not page.get_attribute("#open", "href").endswith(f"/{item}")


def test_a_doubt_is_changed_by_a_press_on_what_else_it_may_be(desk):
    page = desk.open("/review")
    item = first_doubt(page)
    one = as_json(desk.service.desk.item(item))
    kept = [plain(span) for span in one["found"]["spans"]]
    other = [span for span in one["found"]["alternatives"] if span["confidence"] >= 0.005][-1]
    assert plain(other) not in kept
    page.locator(".alt").last.click()
    page.wait_for_selector('.alt[aria-pressed="true"]:last-child')
    page.click("#send")
    wait_until(lambda: as_json(desk.service.desk.item(item))["gold"] is not None)
    assert plain(other) in as_json(desk.service.desk.item(item))["gold"]


def test_a_label_is_decided_by_its_key(single):
    page = single.open("/review")
    item = first_doubt(page)
    check(page)
    found = as_json(single.service.desk.item(item))["found"]["label"]
    other = {"rain": "sun", "sun": "rain"}[found]
    press(page, {"rain": "1", "sun": "2"}[other], "Enter")
    wait_until(lambda: as_json(single.service.desk.item(item))["gold"] == other)


def plain(span):
    return {name: span[name] for name in ("start", "end", "type", "from_char", "to_char")}


def test_a_worker_is_dropped_and_kept_with_one_press_each(desk):
    page = desk.open("/workers")
    page.get_by_role("button", name="Drop: bob").click()
    wait_until(lambda: desk.service.ledger.standing()["bob"])
    page.wait_for_selector("tr.gone")
    assert page.locator("tr.gone .pill").text_content() == "dropped"
    page.get_by_role("button", name="Keep: bob").click()
    sees(page, "!document.querySelector('tr.gone')")
    assert not desk.service.ledger.standing()["bob"]


def test_the_campaign_pauses_and_goes_on(desk):
    page = desk.open()
    page.click("#pause")
    page.wait_for_selector('#state[data-state="paused"]')
    assert desk.service.ledger.is_paused
    sees(page, "document.querySelector('#pause').textContent === 'Resume'")
    page.click("#pause")
    page.wait_for_selector('#state:not([data-state="paused"])')
    page.click("#stop")
    page.keyboard.press("Escape")
    assert as_json(desk.service.desk.overview())["state"] != "ending"


def test_a_file_names_the_workers_where_that_is_chosen_and_the_bill_does(desk, tmp_path):
    page, file = desk.open("/exports"), tmp_path / "file"
    found = []
    for chosen, name in ((False, "bill.csv"), (False, "record.json"), (True, "record.json")):
        page.set_checked("#names", chosen)
        with page.expect_download() as waiting:
            page.get_by_role("button", name=f"Download {name}").click()
        waiting.value.save_as(file)
        found.append(re.search(r"\bann\b", file.read_text()) is not None)
    assert found == [True, False, True]
    (kept,) = desk.service.ledger.records("named-download").values()
    assert kept == {"file": "record.json", "by": "the requester, at the desk"}


def test_what_stops_the_campaign_is_a_banner_on_every_page_until_it_goes_on(desk):
    def fail():
        raise InputError("there is no room on the disk")

    page = desk.open("/exports")
    sees(page, "document.querySelector('#banner').hidden")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "AFTER_ERROR", 0.2)
        patch.setattr(desk.service.engine, "look", fail)
        page.wait_for_selector("#banner:not([hidden])")
        said = page.text_content("#banner")
        assert said.startswith("The campaign is blocked: there is no room on the disk. Answers")
        assert page.get_attribute("#state", "data-state") == "failed"
        check(page)
        patch.undo()
        sees(page, "document.querySelector('#banner').hidden")


def test_the_overview_shows_what_its_numbers_say(desk):
    page = desk.open()
    hidden = "document.querySelector('#plan').hidden && document.querySelector('#warnings').hidden"
    sees(page, hidden)
    plan = {"budget": {}, "stop": {}, "pending": ["stop.rounds was 2 and is 3"]}
    money = {"currency": "EUR", "cap": "9", "reserved": "0", "spent": "3", "left": "6"}
    items = {"answered": 5, "picked": 9, "pool": 10}
    overview(
        page, state="waiting", items=items, money={**money, "labels": "2.4", "control": "0.6"},
        plan={**plan, "changes": ["budget.money was 8 and is 9"]},
        warnings=["36.1% of the tokens have another label here"],
    )  # fmt: skip
    page.wait_for_selector("#plan:not([hidden])")
    assert page.locator("#plan-lines li").all_text_contents() == [
        "Changed: budget.money was 8 and is 9.",
        "Not in force until goldspan serve starts again: stop.rounds was 2 and is 3.",
    ]
    lines = page.locator("#warning-lines li").all_text_contents()
    assert lines == ["36.1% of the tokens have another label here."]
    assert page.text_content("#money-sub") == "labels 2.4, gold questions 0.6"
    check(page)
    assert "gold questions" in page.text_content("#items-sub")
    wide = "parseFloat(document.querySelector('#items-bar .part-good').getAttribute('width'))"
    sees(page, f"{wide} === 200")
    overview(page, items={"answered": 0, "picked": 9, "pool": 10})
    sees(page, f"{wide} === 0")


def test_the_large_number_is_the_labels_and_the_taggers_is_called_so(desk):
    page, score = desk.open(), {"value": 0.43, "low": 0.3, "high": 0.55}
    again = {"answers": 51, "cost": "2.5", "right": 246.8, "right_tokens": 0.0205}
    points = [{"items": 20, **score}, {"items": 40, **score}]
    learning = {"points": points[:1], "curve": None, "target": None}
    learning["forecast"] = {"next": None, "end": None, "ask_again": again}
    none = {"counting": 0, "control": 0, "drafts": 0, "workers": 0}
    overview(page, confidence=None, certificate=None, learning=learning, answers=none)
    sees(page, "document.querySelector('#certificate').textContent === 'There are no labels yet.'")
    assert "gold questions" not in page.text_content("#items-sub")
    overview(page, confidence=0.896, certificate=None, learning=learning)
    sees(page, "document.querySelector('#certificate').textContent === 'Mean confidence 89.6 %'")
    facts = page.text_content("#forecast")
    assert "Tagger's F1 now43.0 %" in facts
    assert "expected to set right about 2.1 % of the tokens" in facts or "2.0 %" in facts
    assert page.locator("#curve svg").count() == 0  # one point is no curve
    audited = {
        "value": 0.9, "text": "F1 90.0 %, between 86.1 and 92.4, 84 checked", "design": "d",
        "goal": "", "cost": "", "notes": [],
    }  # fmt: skip
    overview(page, confidence=0.896, certificate=audited, learning={**learning, "points": points})
    sees(page, "document.querySelector('#certificate').textContent.startsWith('F1 90.0 %')")
    page.wait_for_selector("#curve svg")


@pytest.mark.parametrize("path", ["/review", "/workers"])
def test_a_page_says_what_it_waits_for_and_about_how_long(desk, path):
    page, live = desk.open(), desk.service.engine.live
    page.route("**/api/desk/uncertain?*", lambda route: route.fulfill(json=[]))
    desk.service.engine.live = replace(live, computing="It is computed", until=time.time() + 30)
    try:
        page.goto(f"{desk.served.url}/desk{path}")
        sees(page, "/^It is computed: about (25|30) seconds more.$/.test("
             "document.querySelector('#computing').textContent)")  # fmt: skip
        assert page.locator("#empty").is_hidden()
        check(page)
    finally:
        desk.service.engine.live = live
    page.locator("#computing").wait_for(state="hidden")


def test_items_are_found_and_opened(desk):
    page = desk.open("/items")
    page.wait_for_selector("#rows tr")
    name = page.locator("#rows a").nth(1).text_content()
    text = desk.service.work.tasks.text(name)
    page.fill("#find", text)
    sees(page, "document.querySelectorAll('#rows tr').length === 1")
    page.click("#rows a")
    page.wait_for_selector("#given:not([hidden])")
    assert page.locator("h1").text_content() == name
    assert page.locator("#answers .answer").count() == len(desk.service.ledger.given(name))


def test_a_link_is_made_used_and_taken_back(desk, browser):
    page = desk.open("/links")
    page.fill("#names", "<b>zoe</b>")
    page.click("#make button")
    url = page.locator("#new code").text_content()
    assert page.locator("#new strong").text_content() == "<b>zoe</b>"
    context = browser.new_context()
    visitor = context.new_page()
    visitor.goto(url)
    assert visitor.url.endswith("/label")
    page.get_by_role("button", name="Revoke the link of <b>zoe</b>").click()
    page.click("dialog .danger")
    page.wait_for_selector('#rows .pill[data-kind="bad"]')
    assert context.request.get(url).status == 403
    context.close()


def test_a_reviewers_link_is_made_used_and_taken_back(desk, browser):
    page = desk.open("/links")
    sees(page, "!document.querySelector('#r-empty').hidden")
    page.fill("#r-names", "<b>rita</b>\nrob")
    page.fill("#r-days", "7")
    page.click("#r-make button")
    sees(page, "document.querySelectorAll('#r-rows tr').length === 2")
    assert page.locator("#r-new strong").all_text_contents() == ["<b>rita</b>", "rob"]
    assert page.text_content("#r-sum") == "2 links valid"
    assert page.input_value("#r-names") == ""
    assert page.locator("#r-rows td[data-name='Last used']").all_text_contents() == ["never"] * 2
    assert not page.locator("#rows", has_text="rob").count()
    check(page)
    url = page.locator("#r-new code").first.text_content()
    context = browser.new_context()
    visitor = context.new_page()
    visitor.goto(url)
    assert visitor.url.endswith("/desk/review")
    page.get_by_role("button", name="Revoke the link of <b>rita</b>").click()
    page.click("dialog .danger")
    page.wait_for_selector('#r-rows .pill[data-kind="bad"]')
    assert page.text_content("#r-sum") == "1 link valid"
    assert context.request.get(url).status == 403
    wait_until(lambda: context.request.get(f"{desk.served.url}/api/desk/uncertain").status == 401)
    context.close()


def test_a_name_that_is_refused_loses_no_link_that_was_made_before_it(desk):
    page = desk.open("/links")
    page.fill("#r-names", f"rob\n{'x' * 500}\nlast")
    page.click("#r-make button")
    page.wait_for_selector('#note[data-kind="bad"]')
    sees(page, "document.querySelectorAll('#r-new li').length === 1")
    assert page.input_value("#r-names") == f"{'x' * 500}\nlast"


def test_enter_decides_after_a_press_on_what_else_it_may_be(desk):
    page = desk.open("/review")
    item = first_doubt(page)
    page.locator("#queue button").first.click()
    page.locator(".alt").first.click()
    press(page, "n", "Enter")
    wait_until(lambda: as_json(desk.service.desk.item(item))["gold"] == [])
    page.goto(f"{desk.served.url}/desk/items/{item}")
    page.locator(".none", has_text="Nothing marked").first.wait_for()


def test_a_desk_that_finds_no_place_waits_and_comes_back(desk):
    page, told = desk.open("/items"), []
    page.wait_for_selector("#rows tr")

    def busy(route):
        told.append(route.request.url.rpartition("/api/desk/")[2].partition("?")[0])
        if told.count(told[-1]) > 1:
            route.continue_()
            return
        error = {"code": "busy", "message": "The server has no place left."}
        route.fulfill(status=503, headers={"Retry-After": "1"}, json={"error": error})

    page.route("**/api/desk/**", busy)
    page.reload()
    page.wait_for_selector("#state:not(:empty)")
    page.wait_for_selector("#rows tr")
    assert {"live", "items"} <= set(told)


def test_a_reviewer_decides_an_item_and_has_no_other_page(single, browser):
    url, kept = single.served.url, single.service.ledger.records(GOLD)
    _, text = single.served.auth.reviewers.make("rita", ["review"], 1)
    context = browser.new_context()
    page, faults = context.new_page(), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"{url}/r/{text}")
    assert page.url == f"{url}/desk/review"
    sees(page, "document.querySelector('#queue li')")
    assert page.text_content("#state") == "Review"
    assert page.locator("nav a").count() == 2
    assert page.locator("#open").is_hidden()
    sees(page, "document.querySelector('#answers .answer')")
    assert "annotator 1" in page.text_content("#answers")
    assert "ann" not in page.text_content("#answers").replace("annotator", "")
    check(page)
    page.click("#send")
    wait_until(lambda: len(single.service.ledger.records(GOLD)) > len(kept))
    *_, last = single.service.ledger.records(GOLD).values()
    assert last["by"].startswith("the reviewer ")
    page.goto(f"{url}/desk/workers")
    assert page.url == f"{url}/desk/review"
    context.close()
    assert faults == []


def test_who_is_logged_out_elsewhere_is_told(desk):
    """It ends the session that all tests of this file share, and is the last of them."""
    page = desk.open()
    context = desk.served.app.state.context
    cookie = next(one for one in page.context.cookies() if one["name"] == "goldspan_desk")
    session = context.auth.sessions.read("desk", cookie["value"])
    context.auth.sessions.end(session)
    page.wait_for_selector("#banner a")
    page.click("#banner a")
    assert page.url.endswith("/login")
