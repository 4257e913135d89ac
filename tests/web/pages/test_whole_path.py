"""From a file of people's own texts to a labelled dataset, by the commands and the pages alone.

`GOLDSPAN_COMMAND` names another installation's command: `make wheel-test` runs this file on the
built wheel in a fresh virtual environment.
"""

from __future__ import annotations

import csv
import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from itertools import pairwise

import pytest

from goldspan.crowd import read_crowd
from goldspan.spans import parse
from own_text import own_texts

pytestmark = pytest.mark.wheel
COMMAND = shlex.split(os.environ.get("GOLDSPAN_COMMAND", "")) or [sys.executable, "-m", "goldspan"]
PATIENCE = 600
"""Seconds for one command or one step of a page: machines are slow at times."""
N_TEXTS = 40
"""Lines that are labelled in the browser."""
PASSWORD = "a long enough sentence"
PRODUCTS = (
    "Toyota's Corolla",
    "Apple-Watch-Hülle",
    "3M tape",
    "iPhone 15 Pro",
    "東京タワー",
    "☕️ mug",
)
COMPANIES = ("Müller GmbH", "O'Neill & Sons", "شركة أبل", "삼성전자", "foo_bar Ltd.", "Coca‑Cola")


@pytest.fixture
def goldspan(tmp_path):
    """Run a command in the folder of the texts, and return what it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}

    def go(*words):
        run = subprocess.run(
            [*COMMAND, *words], cwd=tmp_path, env=environment, capture_output=True, text=True,
            encoding="utf-8", timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert run.returncode == 0, f"{shlex.join(words)}\n{run.stdout}\n{run.stderr}"
        return run.stdout

    return go


class Server:
    """`goldspan serve` in a process of its own; ends as Ctrl-C ends it."""

    def __init__(self, folder, *words):
        with (folder / "serve.log").open("w") as log:
            self.process = subprocess.Popen(
                [*COMMAND, "serve", *words, "--port", "0"], cwd=folder, stdout=subprocess.PIPE,
                stderr=log, text=True, encoding="utf-8",
            )  # fmt: skip
        self.lines, self.told = [], threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        assert self.told.wait(PATIENCE), (folder / "serve.log").read_text()
        text = "".join(self.lines)
        self.setup = re.search(r"http://\S+/setup/\S+", text)[0]
        self.links = dict(re.findall(r"^ +(\S+) +(http://\S+/w/\S+)$", text, re.MULTILINE))

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line)
            if "Ctrl-C ends it" in line:
                self.told.set()
        self.told.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE)
        self.reader.join()
        self.process.stdout.close()


@pytest.fixture
def enter(browser):
    """Open a page in a context of its own."""
    contexts = []

    def go(address):
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        context.set_default_timeout(1000 * PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.goto(address)
        if "/w/" in address:  # the loop opens the first round in a process of its own
            shown = page.locator("#task:not([hidden]), #message:not([hidden])").first
            shown.wait_for()
            until = time.monotonic() + PATIENCE
            while page.locator("#message").is_visible() and time.monotonic() < until:
                page.wait_for_timeout(500)
                page.reload()
                shown.wait_for()
        return page

    yield go
    for context in contexts:
        context.close()


def sentences():
    """Twenty sentences, and the pieces that are to be marked in each."""
    drawn = random.Random(5)
    found = {}
    for n in range(20):
        product, company = drawn.choice(PRODUCTS), drawn.choice(COMPANIES)
        text = f"{n}. The {product}  by\u00a0{company} costs {n + 3},50 €, see www.example.org/{n}"
        found[text] = [(product, "PRODUCT"), (company, "COMPANY")]
    return found


def tokens_of(page):
    """The text on the page, and the characters of each of its tokens."""
    return page.evaluate(
        """() => {
          const text = document.querySelector("#work .text"), places = [];
          const walk = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
          let at = 0;
          for (let node = walk.nextNode(); node; node = walk.nextNode()) {
            const length = [...node.data].length, cell = node.parentElement.closest(".token");
            if (cell) {
              const i = Number(cell.dataset.i);
              places[i] = [places[i]?.[0] ?? at, at + length];
            }
            at += length;
          }
          return [text.textContent, places];
        }"""
    )


def numbers(places, start, end):
    """The first and the last token of some characters."""
    inside = [i for i, (a, b) in enumerate(places) if a >= start and b <= end]
    assert (places[inside[0]][0], places[inside[-1]][1]) == (start, end)
    return inside[0], inside[-1]


def by_mouse(page, first, last, kind):
    """Drag over tokens and press the label's button."""
    spots = []
    for i in (first, last):
        cell = page.locator(f".token[data-i='{i}']")
        cell.scroll_into_view_if_needed()
        box = cell.bounding_box()
        spots.append((box["x"] + box["width"] / 2, box["y"] + box["height"] / 2))
    page.mouse.move(*spots[0])
    page.mouse.down()
    page.mouse.move(*spots[1], steps=2)
    page.mouse.up()
    page.locator(f"#dock .type-{kind}.type").click()


def by_keys(page, first, last, kind):
    """Move to the first token, extend to the last, press the label's key."""
    page.keyboard.press("Control+Home")
    for _ in range(first):
        page.keyboard.press("ArrowRight")
    for _ in range(last - first):
        page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press(str(kind + 1))


def label(page, mark, wanted, kinds, send):
    """Label the next text; return it with what was marked, None where there is no text."""
    page.locator("#task:not([hidden]), #message:not([hidden])").first.wait_for()
    if page.locator("#message").is_visible():
        return None
    title = page.text_content("#card-title")
    text, places = tokens_of(page)
    found = []
    for start, end, kind in wanted(text, places):
        mark(page, *numbers(places, start, end), kinds.index(kind))
        found.append((kind, start, end))
    marked = (numbers(places, start, end) for _, start, end in found)
    assert page.locator(".token.marked").count() == sum(b - a + 1 for a, b in marked)
    send(page)
    page.wait_for_function(
        "old => document.querySelector('#task').hidden"
        " || document.querySelector('#card-title').textContent !== old",
        arg=title,
    )
    return text, sorted(found)


def click(page):
    """Send by the mouse."""
    if not page.locator(".token.marked").count():
        page.get_by_role("button", name="Nothing here").click()
    page.locator("#send").click()


def press(page):
    """Send by a key."""
    page.keyboard.press("Enter")


def write_reviews(path, texts):
    """Write a table whose other columns are nobody's business."""
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["stars", "text", "shop"])
        out.writerows([n % 5, text, "=1+1"] for n, text in enumerate(texts))


def review(page, server, item, known, kinds):
    """Decide on an item at the desk."""
    page.goto(f"{server}/desk/items/{item}")
    page.locator("#send").wait_for()
    page.keyboard.press("c")  # clear: before the first aggregation nothing is marked
    text, places = tokens_of(page)
    for piece, kind in known[text]:
        start = text.index(piece)
        by_mouse(page, *numbers(places, start, start + len(piece)), kinds.index(kind))
    page.locator("#send").click()
    page.locator("text=These labels are gold now").first.wait_for()


def test_from_a_file_of_ones_own_to_a_tagger(tmp_path, goldspan, enter):
    known, kinds = sentences(), ["PRODUCT", "COMPANY"]
    write_reviews(tmp_path / "reviews.csv", known)
    said = goldspan(
        "init", "reviews.csv", "--labels", "PRODUCT,COMPANY", "--annotators", "ann,ben,cleo"
    )
    assert "goldspan serve plan.toml" in said
    goldspan("plan", "check", "plan.toml")

    def right(text, places):
        assert places
        at = [(text.index(piece), len(piece), kind) for piece, kind in known[text]]
        return [(start, start + length, kind) for start, length, kind in at]

    def careless(text, places):  # forgets the company now and then
        return right(text, places)[: 1 if len(text) % 4 == 0 else 2]

    people = {
        "ann": (by_mouse, right, click),
        "ben": (by_mouse, right, click),
        "cleo": (by_keys, careless, press),
    }
    with Server(tmp_path, "plan.toml") as server:
        assert list(server.links) == list(people)
        pages = {name: enter(link) for name, link in server.links.items()}
        pages["ann"].locator("#card-title").wait_for()
        for word in ("€", "EUR", "earned"):
            assert word not in pages["ann"].text_content("header.top")
        done, by = Counter(), Counter()
        while len(done) < len(known) or min(done.values()) < 2:
            before = by.total()
            for name, (mark, wanted, send) in people.items():
                labelled = label(pages[name], mark, wanted, kinds, send)
                if labelled:
                    done[labelled[0]] += 1
                    by[name] += 1
            assert by.total() > before
        assert done == dict.fromkeys(known, 2)  # two answers for every text
        assert min(by.values()) >= 10
        desk = enter(server.setup)
        desk.fill("#password", PASSWORD)
        desk.fill("#again", PASSWORD)
        desk.keyboard.press("Enter")
        desk.wait_for_url(re.compile("/desk"))
        (doubt, *_) = json.loads(goldspan("desk", "uncertain", "plan.toml", "--json"))
        review(desk, desk.url.partition("/desk")[0], doubt["item"], known, kinds)
        for name in ("label-studio.json", "gold.conll"):
            goldspan("desk", "export", "plan.toml", name, "-o", name)

    # A new aggregation of what came out, a tagger, and new text.
    goldspan("aggregate", "label-studio.json", "--method", "bsc-seq", "-o", "gold.jsonl")
    found = dict(in_lines(tmp_path / "gold.jsonl"))
    assert found.keys() == known.keys()
    n_right = sum(
        len({(text[a:b], kind) for kind, a, b in spans} & {*known[text]})
        for text, spans in found.items()
    )
    assert n_right >= 0.9 * 2 * len(known)
    goldspan("train", "gold.conll", "-o", "own.goldspan")
    new = "The Corolla by Müller GmbH  costs 5,50 €"
    (tmp_path / "new.txt").write_text(f"{new}\n", "utf-8")
    goldspan("tag", "own.goldspan", "new.txt", "-o", "tagged.jsonl")
    ((text, _),) = in_lines(tmp_path / "tagged.jsonl")
    assert text == new


def test_lines_of_ones_own_come_back_from_every_file(tmp_path, goldspan, enter):
    texts = own_texts(N_TEXTS)
    (tmp_path / "own.txt").write_bytes(("\n".join(texts) + "\n").encode())
    goldspan("init", "own.txt", "--labels", "A,B", "--annotators", "ann", "--overlap", "1")
    drawn = random.Random(1)

    def some(text, places):
        """Any run of tokens, now and then two or none."""
        assert text in texts
        n_ends = min(len(places) + 1, drawn.choice((1, 2, 2, 4)))
        ends = sorted(drawn.sample(range(len(places) + 1), n_ends))
        pairs = list(pairwise(ends))[::2]
        return [(places[a][0], places[b - 1][1], drawn.choice("AB")) for a, b in pairs]

    with Server(tmp_path, "plan.toml") as server:
        page = enter(server.links["ann"])
        marked = {}
        while labelled := label(page, by_mouse, some, ["A", "B"], click):
            marked[labelled[0]] = labelled[1]
        assert marked.keys() == {*texts}
        for name in FILES:
            goldspan("desk", "export", "plan.toml", name, "-o", name)
    for name, read in FILES.items():
        found = read(tmp_path / name)
        # Line by line: the message of a failure should not hold all texts.
        assert len(found) == len(marked), name
        for text, spans in found:
            assert text in marked, name
            assert spans == marked[text], name
    # And through an aggregation of the export once more.
    goldspan("aggregate", "label-studio.json", "--method", "mv-token", "-o", "again.jsonl")
    assert dict(in_lines(tmp_path / "again.jsonl")) == marked


def lines_of(path):
    """JSON lines; a text may hold characters that `splitlines` takes for line ends."""
    return [json.loads(line) for line in path.read_bytes().decode().split("\n")[:-1]]


def in_label_studio(path):
    found = []
    for task in json.loads(path.read_bytes()):
        (mine,) = [one for one in task["annotations"] if not one.get("ground_truth")]
        text = task["data"]["text"]
        values = [one["value"] for one in mine["result"]]
        assert all(text[one["start"] : one["end"]] == one["text"] for one in values)
        found.append((text, sorted((one["labels"][0], one["start"], one["end"]) for one in values)))
    return found


def in_lines(path):
    """The lines of an aggregation: spans in characters, with what they cover."""
    found = []
    for one in lines_of(path):
        spans = [(span["type"], span["start"], span["end"]) for span in one["gold"]]
        assert all(
            one["text"][a:b] == span["text"]
            for (_, a, b), span in zip(spans, one["gold"], strict=True)
        )
        found.append((one["text"], sorted(spans)))
    return found


def in_characters(path):
    """The only annotator's spans of every text in a file, the gold labels where there is none."""
    crowd = read_crowd(path)
    found = []
    for n, item in enumerate(crowd.item_ids.to_pylist()):
        begin, end = crowd.offsets[n : n + 2].tolist()
        starts, words = crowd.token_start[begin:end].tolist(), crowd.tokens[n].as_py()
        if crowd.n_workers:
            (labels,) = crowd.answers_of(item).values()
        else:
            labels = [crowd.tagset.tags[code] for code in crowd.gold[begin:end]]
        spans = [
            (one.type, starts[one.start], starts[one.end - 1] + len(words[one.end - 1]))
            for one in parse(labels, crowd.tagset.encoding)
        ]
        found.append((crowd.texts[n].as_py(), sorted(spans)))
    return found


NAMES = (
    "doccano.jsonl", "prodigy.jsonl", "brat.zip", "answers.jsonl", "gold.conll", "gold.parquet",
)  # fmt: skip
FILES = {
    "label-studio.json": in_label_studio, "spans.jsonl": in_lines,
    **dict.fromkeys(NAMES, in_characters),
}  # fmt: skip
