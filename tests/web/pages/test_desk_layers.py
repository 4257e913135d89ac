"""The desk of a campaign of several layers in a browser: review with all of them; axe."""

from __future__ import annotations

import pytest

from goldspan.cli.campaign import write_findings
from goldspan.web.settings import wall_clock
from web.desk.conftest import layered
from web.loops import wait_until
from web.pages.conftest import press
from web.pages.test_desk import opened_over
from web.pages.test_states import check


@pytest.fixture(scope="module")
def desk(browser, tmp_path_factory):
    service = layered(tmp_path_factory.mktemp("layers"), clock=wall_clock, report=write_findings)
    with opened_over(browser, service) as found:
        yield found


@pytest.mark.parametrize("look", ["desktop", "phone"])
@pytest.mark.parametrize("path", ["", "/review", "/workers", "/items", "/items/d1", "/exports"])
def test_axe_finds_nothing(desk, path, look):
    page = desk.open(path, look=look)
    page.wait_for_load_state("networkidle" if path == "/exports" else "load")
    if path == "/review":
        page.wait_for_selector("#given:not([hidden])")
    check(page)
    assert page.get_by_role("link", name="Audit").count() == 0  # which is of one question
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0


def checked(page):
    return page.eval_on_selector_all(
        "#work input:checked", "all => all.map((one) => one.parentElement.textContent)"
    )


def test_review_begins_with_the_consensus_and_makes_all_layers_gold(desk):
    page = desk.open("/review")
    page.wait_for_selector("#given:not([hidden])")
    item = page.get_attribute("#open", "href").rpartition("/")[2]
    found = desk.service.desk.item(item).found.layers
    assert [text.lstrip("123").split(" ")[0] for text in checked(page)]
    for layer in (found["mood"], found["topics"]):
        for one in layer.alternatives:
            choice = page.locator("#work .choice", has_text=one.label)
            assert f"{100 * one.confidence:.0f} %" in choice.text_content()
    assert page.locator("#work .name, #work .token.first").count() >= 2
    assert page.locator("#answers .by-layer").count() == 3
    page.locator("#work .choice", has_text="good").click()
    press(page, "1")  # the focus is in the question: the key is its label's
    assert any("bad" in text for text in checked(page))
    press(page, "u")
    assert any("good" in text for text in checked(page))
    while page.text_content("#send") == "Read on":
        press(page, "Enter")
    press(page, "Enter")
    wait_until(lambda: desk.service.desk.gold_labels().get(item))
    kept = desk.service.desk.gold_labels()[item]
    assert kept["mood"] == "good"
    assert kept["topics"] == found["topics"].labels
    assert len(kept["places"]) == len(found["places"].spans)


def test_a_likely_span_is_marked_and_removed_beside_those_that_overlap(desk):
    page = desk.open("/review")
    page.wait_for_selector("#work .token")
    chip = page.locator(".alt", has_text="New York").first
    before = page.locator("#work .name").count()
    pressed = chip.get_attribute("aria-pressed") == "true"
    chip.click()
    assert (chip.get_attribute("aria-pressed") == "true") is not pressed
    assert page.locator("#work .name").count() == before + (-1 if pressed else 1)
    chip.click()
    assert page.locator("#work .name").count() == before


def test_files_stand_by_layer(desk):
    page = desk.open("/exports")
    page.get_by_role("heading", name="topics").wait_for()
    assert page.locator("main h2").all_text_contents() == ["places", "mood", "topics"]
    with page.expect_download() as got:
        page.get_by_role("button", name="Download topics-gold.csv").click()
    assert got.value.suggested_filename == "topics-gold.csv"
