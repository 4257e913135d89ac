"""The worker's pages and their files, without a browser."""

from __future__ import annotations

import json
import re
import time

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from goldspan.web.pages import (
    KEYS,
    LAYER_KEYS,
    assets,
    label_keys,
    message_page,
    read_instructions,
    static_files,
    worker_pages,
)
from web.pages.fake import SPANS


@pytest.fixture
def client():
    app = FastAPI()
    app.include_router(worker_pages(SPANS, lambda _: {"scope": "w1", "csrf": "</script>"}))
    app.include_router(static_files())
    return TestClient(app)


def test_the_page_holds_what_its_script_needs(client):
    page = client.get("/label")
    data = json.loads(re.search(r'id="page">(.*?)</script>', page.text)[1])
    assert data["csrf"] == "</script>"
    assert data["labels"][0] == {"name": "PER", "key": "1"}
    assert (data["kind"], data["scope"], data["campaign"]) == ("spans", "w1", "names-1a2b")
    assert page.headers["cache-control"] == "no-store"


def test_the_page_has_no_script_or_style_of_its_own(client):
    for path in ("/label", "/help"):
        html = client.get(path).text
        scripts = re.findall(r"<script([^>]*)>", html)
        assert all("src=" in one or "application/json" in one for one in scripts)
        assert not re.search(r"<style|style=|\son\w+=|https?://", html)


def test_all_files_of_the_page_are_there_and_kept_for_ever(client):
    addresses = re.findall(r'(?:src|href)="(/static/[^"]+)"', client.get("/label").text)
    assert len(addresses) >= 10
    for address in addresses:
        reply = client.get(address)
        assert reply.status_code == 200
        assert "immutable" in reply.headers["cache-control"]


def test_every_module_that_is_imported_is_loaded_ahead(client):
    names = {name for name in assets().files if name.endswith(".js")}
    needed, new = set(), {"label.js"}
    while new:
        needed |= new
        texts = [assets().files[name].decode() for name in new]
        new = {found for text in texts for found in re.findall(r'from "\./([^"]+)"', text)} - needed
    assert needed <= names
    ahead = re.findall(r'rel="modulepreload" href="/static/\w+/([^"]+)"', client.get("/label").text)
    assert sorted(ahead) == sorted(needed)
    desk = [address.rpartition("/")[2] for address in assets().modules("desk_item.js")]
    assert {"desk_item.js", "desk_charts.js", "state.js", "drag.js"} < set(desk)
    assert len(desk) == len(set(desk))


@pytest.mark.parametrize("name", ["label.py", "../rendering.py", "%2e%2e%2frendering.py", "x.js"])
def test_nothing_else_is_served(client, name):
    assert client.get(f"/static/{assets().version}/{name}").status_code == 404


def test_an_asset_that_is_not_there_is_an_error():
    with pytest.raises(LookupError, match=r"nothing\.js"):
        assets().address("nothing.js")


def test_keys_of_labels_differ_and_none_is_a_command():
    keys = [row["key"] for row in label_keys([str(n) for n in range(40)])]
    assert len(set(keys) - {""}) == len(KEYS) == len(set(KEYS))
    assert not set(KEYS) & set("bcfhnsuyz")
    commands = re.search(r"LETTERS = \{(.*?)\}", assets().files["keys.js"].decode())[1]
    assert not set(LAYER_KEYS) & set(re.findall(r"(\w):", commands))
    assert set(KEYS) & set(re.findall(r"(\w):", commands)) == {"o"}  # which flat spans do not need


def test_a_message_is_escaped():
    page = message_page("<b>No</b>", "first\n\nsecond & last", 404)
    assert page.status_code == 404
    assert b"<h1>&lt;b&gt;No&lt;/b&gt;</h1>" in page.body
    assert b"<p>second &amp; last</p>" in page.body


def test_instructions_are_read_into_blocks():
    text = "# Names\nAll of\nthem.\n\n- one\n- two\n1. first\n> [Ann](PER) sang\n> in *Rome*\n"
    html = str(read_instructions(text, ["LOC", "PER"])).replace("\n", " ").replace("> <", "><")
    assert html.strip() == (
        '<h3 dir="auto">Names</h3><p dir="auto">All of them.</p>'
        '<ul><li dir="auto">one</li><li dir="auto">two</li></ul><ol><li dir="auto">first</li></ol>'
        '<blockquote><p dir="auto"><span class="sample type-1">Ann'
        '<span class="sample-type">PER</span></span> sang</p>'
        '<p dir="auto">in <em>Rome</em></p></blockquote>'
    )


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**a** `b`", "<strong>a</strong> <code>b</code>"),
        ("[a](https://b.org/c)",
         '<a href="https://b.org/c" target="_blank" rel="noopener noreferrer">a</a>'),
        ("[a](javascript:b)", "[a](javascript:b)"),
        ("[a](JavaScript:b) [a](//b.org) [a](data:text/html,b)",
         "[a](JavaScript:b) [a](//b.org) [a](data:text/html,b)"),
        ('[a](https://b"onclick=c)',
         '<a href="https://b&quot;onclick=c" target="_blank" rel="noopener noreferrer">a</a>'),
        ("2 * 3 * 4 <b>", "2 * 3 * 4 &lt;b&gt;"),
        ("<script>a</script> ![a](b.org) <https://b.org>",
         "&lt;script&gt;a&lt;/script&gt; ![a](b.org) &lt;https://b.org&gt;"),
    ],
)  # fmt: skip
def test_styles_in_a_line(text, html):
    assert read_instructions(text) == f'<p dir="auto">{html}</p>\n'


def test_a_label_is_escaped_where_an_example_names_it():
    html = read_instructions("[a](<b>)", ["<b>"])
    assert "<b>" not in html
    html = read_instructions("[a](x&y)", ["x&y"])
    assert '<span class="sample-type">x&amp;y</span>' in html


def test_reading_instructions_takes_time_in_line_with_their_length():
    begin = time.process_time()
    for text in ("[" * 20_000, "**" * 20_000, "*a" * 20_000, "* " * 20_000, "[a](" * 10_000):
        read_instructions(text)
    assert time.process_time() - begin < 5  # a tenth of it on a machine that is not busy
