"""A browser that was here under the package's old name: nothing that it keeps is lost."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from goldspan.old_name import OLD_NAME
from goldspan.web import ServerSettings, create_app
from goldspan.web.security.secret import load_keys
from goldspan.web.service import open_service
from web.pages.fake import SPANS, Running, span_task

MADE = Path(__file__).parents[2] / "fixtures" / "old_name"
ANN = {"spans": [{"start": 0, "end": 1, "type": "PER"}]}
NAMES = "Object.keys(localStorage).sort()"
# What a page of before would have kept, from what a page of now has.
AGE = """(old) => {
  for (const name of Object.keys(localStorage)) {
    localStorage.setItem(name.replace("goldspan:", `${old}:`), localStorage.getItem(name));
    localStorage.removeItem(name);
  }
}"""


@pytest.fixture
def fake(fake):
    fake.reset(SPANS, [span_task(number=1), span_task("Bo sang", number=2)])
    return fake


def aged(page):
    page.evaluate(AGE, OLD_NAME)
    names = page.evaluate(NAMES)
    assert names
    assert all(name.startswith(f"{OLD_NAME}:w1:") for name in names)
    return names


def test_an_answer_that_a_page_of_before_could_not_send_is_sent_and_cleared_away(visit, fake):
    page = visit(path="/help")  # the same browser, and nothing in it yet
    page = visit(context=page.context)
    fake.broken = 1_000
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    page.locator("#banner", has_text="The server has a problem").wait_for()
    page.goto(page.url.replace("/label", "/help"))
    assert any(":unsent:" in name for name in aged(page))
    fake.broken = 0
    page.goto(page.url.replace("/help", "/label"))
    page.locator(".token", has_text="Bo").wait_for()
    assert fake.sent == [ANN]
    assert not any(OLD_NAME in name or ":unsent:" in name for name in page.evaluate(NAMES))


def test_a_draft_of_before_is_back(visit, fake):
    page = visit()
    page.keyboard.press("1")
    page.goto(page.url.replace("/label", "/help"))
    assert any(":draft:" in name for name in aged(page))
    page.goto(page.url.replace("/help", "/label"))
    page.locator("#note-text", has_text="Your draft is back.").wait_for()
    page.keyboard.press("Enter")
    page.locator(".token", has_text="Bo").wait_for()
    assert fake.sent == [ANN]
    assert not any(OLD_NAME in name for name in page.evaluate(NAMES))


def test_where_there_is_no_room_for_two_an_answer_of_before_is_sent_all_the_same(visit, fake):
    page = visit(path="/help")
    entry = {"path": "answers", "at": 1, "body": {"task": "task-1", "key": "k" * 20, **ANN}}
    page.evaluate(
        "([old, entry]) => localStorage.setItem(`${old}:w1:unsent:${entry.body.key}`,"
        " JSON.stringify(entry))",
        [OLD_NAME, entry],
    )
    page.add_init_script(
        "const kept = Storage.prototype.setItem;"
        "Storage.prototype.setItem = function (name, text) {"
        "  if (name.includes(':unsent:')) throw new DOMException('full', 'QuotaExceededError');"
        "  kept.call(this, name, text);"
        "};"
    )
    page.goto(page.url.replace("/help", "/label"))
    page.locator(".token", has_text="Bo").wait_for()
    assert fake.sent == [ANN]
    assert not any(":unsent:" in name for name in page.evaluate(NAMES))


def test_a_worker_of_before_is_logged_in_and_the_answer_on_the_way_arrives(visit, tmp_path):
    with zipfile.ZipFile(MADE / "served.zip") as packed:
        packed.extractall(tmp_path)
    for path in (tmp_path / "out").iterdir():
        path.chmod(0o600)
    facts = json.loads((tmp_path / "facts.json").read_text())
    ann, keys = facts["workers"]["ann"], load_keys(tmp_path / "out")
    clock = lambda: facts["now"] + 1_000  # noqa: E731
    service = open_service(tmp_path / "campaign.toml", tmp_path / "out", keys, clock=clock)
    make = lambda url: create_app(service, ServerSettings(keys, url, clock=clock))  # noqa: E731
    try:
        with Running(make) as server:
            page = visit(path="/help", server=server)
            cookie = {"name": f"{OLD_NAME}_worker", "value": ann["cookie"], "url": server.address}
            page.context.add_cookies([cookie])
            entry = {"path": "answers", "body": ann["open"], "about": None, "at": facts["now"]}
            kept = f"{OLD_NAME}:{ann['scope']}:unsent:{ann['open']['key']}"
            words = "([name, entry]) => localStorage.setItem(name, JSON.stringify(entry))"
            page.evaluate(words, [kept, entry])
            before = len(service.ledger.given())
            page.goto(f"{server.address}/label")
            page.locator(".text").wait_for()
            page.wait_for_function(f"Object.keys(localStorage).every((n) => !n.includes('{kept}'))")
            assert len(service.ledger.given()) == before + 1
            assert not any("unsent" in name for name in page.evaluate(NAMES))
    finally:
        service.close()
