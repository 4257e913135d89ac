"""A browser, a fake server, and visits of a worker."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from server.pages.fake import SPANS, Running, span_task

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
}


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
    with Running() as running:
        yield running


@pytest.fixture
def fake(running):
    """The fake server with one task of spans."""
    running.fake.reset(SPANS, [span_task()])
    return running.fake


@pytest.fixture
def visit(browser, running, fake):  # noqa: ARG001 - begins the fake server anew
    """Open the page; at the end no script has failed and the policy has stopped nothing."""
    contexts, faults = [], []

    def go(look="desktop", path="/label", context=None, server=running, **options):
        if context is None:
            context = browser.new_context(**LOOKS[look], **options)
            context.set_default_timeout(30_000)
            context.add_init_script(WATCH)
            contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"{server.address}{path}")
        if page.url.endswith("/label"):
            page.wait_for_selector("#task:not([hidden]), #message:not([hidden])", state="attached")
        return page

    yield go
    for context in contexts:
        for page in context.pages:
            faults += page.evaluate("window.stopped ?? []")
        context.close()
    assert faults == []
