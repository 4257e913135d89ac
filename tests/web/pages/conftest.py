"""A browser, a fake server, and visits of a worker."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from web.pages.fake import SPANS, running_fake, span_task

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
# Everything that the policy stopped is kept for the end of the test.
WATCH = """
window.stopped = [];
addEventListener("securitypolicyviolation", (event) => {
  window.stopped.push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""
LOOKS = {
    "desktop": {"viewport": {"width": 1280, "height": 800}},
    "phone": {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True},
    "narrow": {"viewport": {"width": 320, "height": 640}, "has_touch": True, "is_mobile": True},
}


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def middle(page, i):
    """The middle of a token."""
    box = page.locator(".token").nth(i).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page, *places):
    """Drag from a place over others: each is a token's number, or a point of the page."""
    start, *others = [middle(page, one) if isinstance(one, int) else one for one in places]
    page.mouse.move(*start)
    page.mouse.down()
    for place in others:
        page.mouse.move(*place, steps=3)
    page.mouse.up()


def done(page):
    """Wait until there is no text to label."""
    page.wait_for_selector("#message:not([hidden])")


def title(page, words):
    """Wait until the page is at a text or an answer."""
    page.locator("#card-title", has_text=words).wait_for()


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium, once for all tests of a process."""
    program = next((found for name in ("chromium", "chromium-browser", "google-chrome")
                    if (found := shutil.which(name))), None)  # fmt: skip
    if program is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=str(Path(program)), args=FLAGS)
        yield made
        made.close()


@pytest.fixture(scope="session")
def running():
    with running_fake() as fake:
        yield fake


@pytest.fixture
def fake(running):
    """The fake server with one task of spans."""
    running.reset(SPANS, [span_task()])
    return running


@pytest.fixture(scope="session")
def kept():
    """The contexts that tests have in turn, by their options: to make one costs most of a test."""
    return {}


def forget(context, page, address):
    """Leave nothing of earlier visits in a context."""
    context.clear_cookies()
    session = context.new_cdp_session(page)
    session.send("Storage.clearDataForOrigin", {"origin": address, "storageTypes": "all"})
    session.detach()


@pytest.fixture
def visit(browser, kept, fake):
    """Open the page; at the end no script has failed and the policy has stopped nothing."""
    used, faults = [], []

    def enter(options):
        """Return a context that this test has not had yet."""
        context = kept.get(repr(options))
        if context is None or context in used:
            context = browser.new_context(**options)
            context.set_default_timeout(30_000)
            context.add_init_script(WATCH)
            context.new_page()  # keeps the window open, which costs as much as a visit
            kept.setdefault(repr(options), context)
        used.append(context)
        return context

    def go(look="desktop", path="/label", context=None, address=fake.address, **options):
        again = context is not None
        context = context or enter({**LOOKS[look], **options})
        page = context.new_page()
        if not again:
            forget(context, page, address)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"{address}{path}")
        if page.url.endswith("/label"):
            page.wait_for_selector("#task:not([hidden]), #message:not([hidden])", state="attached")
        return page

    yield go
    for context in used:
        for page in context.pages[1:]:
            faults += page.evaluate("window.stopped ?? []")
            page.close()
        context.set_offline(False)
        if context not in kept.values():
            context.close()
    assert faults == []
