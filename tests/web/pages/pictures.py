"""Draw the pictures of docs/labelling.md and the README: `python tests/web/pages/pictures.py`."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Page, sync_playwright

TESTS = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TESTS))

from web.pages.conftest import FLAGS, LOOKS, drag  # noqa: E402
from web.pages.fake import MOODS, SPANS, Fake, running_fake, single_task, span_task  # noqa: E402

INTO = TESTS.parent / "docs" / "img"
WORDS = (
    "On Monday Dr Amara Okafor of the Harbour Trust told reporters in Lisbon that the ferries to "
    "Cacilhas , which the city had bought from Nordvik Shipyards in 2019 , will return in spring ."
)
HEBREW = "דנה כהן מחברת אלביט נסעה אתמול מתל אביב לברלין כדי לפגוש את יואב לוי ."
INSTRUCTIONS = (TESTS.parent / "examples" / "instructions.md").read_text(encoding="utf-8")
NAMES = dataclasses.replace(SPANS, labels=("PER", "LOC", "ORG", "MISC"), instructions=INSTRUCTIONS)
FEELINGS = dataclasses.replace(
    MOODS, instructions="Choose what the **writer** feels, not what happens in the text."
)


def main() -> None:
    """Draw all pictures."""
    INTO.mkdir(exist_ok=True)
    program = shutil.which("chromium")
    with running_fake() as fake, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=FLAGS)
        for draw in (names, phone, single, suggested):
            draw(browser, fake)
        report(browser)
        browser.close()


def names(browser: Browser, fake: Fake) -> None:
    """Draw the page with a selection and spans: in both colours, and with a Hebrew text."""
    marks = [(3, 4, "1"), (7, 8, "3"), (12, 12, "2"), (17, 17, "2"), (25, 26, "")]
    label_names(browser, fake, "label-spans.png", WORDS, marks)
    label_names(browser, fake, "label-dark.png", WORDS, marks, color_scheme="dark")
    marks = [(0, 1, "1"), (3, 3, "3"), (6, 7, "2"), (8, 8, "")]
    label_names(browser, fake, "label-rtl.png", HEBREW, marks)


def label_names(browser: Browser, fake: Fake, name: str, text: str, marks: list, **options) -> None:
    """Mark some names with mouse and keys."""
    fake.reset(NAMES, [span_task(text)], done=41, total=150)
    page = visit(browser, fake, "desktop", **options)
    for first, last, key in marks:
        drag(page, first, last)
        if key:
            page.keyboard.press(key)
    page.screenshot(path=INTO / name, clip={"x": 0, "y": 0, "width": 1280, "height": 640})


def suggested(browser: Browser, fake: Fake) -> None:
    """Draw suggested labels, two of which are accepted."""
    places = [(3, 5, "PER"), (7, 9, "ORG"), (12, 13, "LOC"), (25, 26, "ORG")]
    spans = [{"start": a, "end": b, "type": kind} for a, b, kind in places]
    fake.reset(NAMES, [span_task(WORDS, suggestion={"spans": spans})], done=41, total=150)
    page = visit(browser, fake, "desktop")
    for _ in range(3):
        page.keyboard.press("Enter")
    clip = {"x": 0, "y": 0, "width": 1280, "height": 580}
    page.screenshot(path=INTO / "label-suggested.png", clip=clip)


def phone(browser: Browser, fake: Fake) -> None:
    """Draw a phone."""
    fake.reset(NAMES, [span_task(WORDS)], done=41, total=150)
    page = visit(browser, fake, "phone")
    page.tap("#start")
    for places in [(".token >> nth=3", ".token >> nth=4", ".type-0.type"),
                   (".token >> nth=7", ".token >> nth=8")]:  # fmt: skip
        for place in places:
            page.tap(place)
    page.screenshot(path=INTO / "label-phone.png")


def single(browser: Browser, fake: Fake) -> None:
    """Draw a choice of one label."""
    text = "The ferries are back! I stood on deck all the way over and could not stop smiling."
    fake.reset(FEELINGS, [single_task(text)], done=41, total=150)
    page = visit(browser, fake, "desktop")
    page.keyboard.press("1")
    page.screenshot(
        path=INTO / "label-single.png", clip={"x": 0, "y": 0, "width": 1280, "height": 440}
    )


def report(browser: Browser) -> None:
    """Draw the least certain spans in the report of the example."""
    with TemporaryDirectory() as folder:
        out = Path(folder, "report.html")
        crowd = TESTS.parent / "examples" / "crowd.tsv"
        words = ["aggregate", crowd, "-o", Path(folder, "gold.conll"), "--report", out]
        command = [sys.executable, "-m", "goldspan", *map(str, words)]
        subprocess.run(command, check=True, capture_output=True)
        page = browser.new_page(viewport={"width": 1000, "height": 900})
        page.goto(out.as_uri())
        top = page.locator("#uncertain").bounding_box()["y"]
        page.screenshot(
            path=INTO / "report-uncertain.png",
            full_page=True,
            clip={"x": 0, "y": top - 10, "width": 1000, "height": 640},
        )


def visit(browser: Browser, fake: Fake, look: str, **options: object) -> Page:
    """Open the page."""
    page = browser.new_context(**LOOKS[look], **options).new_page()
    page.goto(f"{fake.address}/label")
    page.wait_for_selector("#task:not([hidden])", state="attached")
    return page


if __name__ == "__main__":
    main()
