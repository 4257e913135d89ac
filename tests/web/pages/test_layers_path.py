"""Three annotators answer several layers in their browsers; review, and the files that come out."""

from __future__ import annotations

import json
import re

from goldspan import read_crowd, read_layers
from web.pages.conftest import drag, press
from web.pages.test_whole_path import PASSWORD, Server, enter, goldspan

__all__ = ["enter", "goldspan"]
TEXTS = {
    "The University of New York praised Kiel": [(1, 4, "1"), (3, 4, "2"), (6, 6, "2")],
    "We love the Bank of England": [(3, 5, "1"), (5, 5, "2")],
    "Nobody saw Rome": [(2, 2, "2")],
}
PLAN = """
name = "layers"
[[task.layers]]
name = "places"
kind = "spans"
types = ["ORG", "LOC"]
overlapping = true
[[task.layers]]
name = "sentiment"
kind = "label"
labels = ["bad", "good"]
[[task.layers]]
name = "topics"
kind = "labels"
labels = ["art", "law", "sport"]
[pool]
file = "texts.txt"
[crowd]
source = "web"
annotators = ["ann", "ben", "cleo"]
[redundancy]
overlap = 3
[aggregate]
method = "ibcc"
"""


def label(page):
    """Mark the spans of a text, answer its questions, and send."""
    text = page.text_content("#work .text")
    for first, last, key in TEXTS[text]:
        if first == last:  # a click would choose the span around it
            page.locator(".token").nth(first).dblclick()
        else:
            drag(page, first, last)
        press(page, key)
    page.get_by_text("good", exact=True).click()
    for topic in ("art", "sport"):
        page.get_by_text(topic, exact=True).click()
    title = page.text_content("#card-title")
    page.locator("#send").click()
    page.wait_for_function(
        "old => document.querySelector('#task').hidden"
        " || document.querySelector('#card-title').textContent !== old",
        arg=title,
    )
    return text


def test_three_people_answer_all_layers_and_every_file_has_their_answers(tmp_path, goldspan, enter):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n", "utf-8")
    (tmp_path / "plan.toml").write_text(PLAN, "utf-8")
    with Server(tmp_path, "plan.toml") as server:
        for link in server.links.values():
            page = enter(link)
            assert sorted(label(page) for _ in TEXTS) == sorted(TEXTS)
        desk = enter(server.setup)
        desk.fill("#password", PASSWORD)
        desk.fill("#again", PASSWORD)
        desk.keyboard.press("Enter")
        desk.wait_for_url(re.compile("/desk"))
        desk.goto(f"{desk.url.partition('/desk')[0]}/desk/items/1")
        desk.locator("#work .name").first.wait_for()
        desk.get_by_text("bad", exact=True).first.click()
        desk.locator("#send").click()
        desk.locator("text=These labels are gold now").first.wait_for()
        files = ("layers.jsonl", "label-studio.json", "places-spans.jsonl", "places-brat.zip")
        answers = ("places-answers.jsonl", "sentiment-answers.csv", "topics-answers.jsonl")
        for name in (*files, *answers):
            goldspan("desk", "export", "plan.toml", name, "-o", name)

    given = read_crowd(tmp_path / "places-answers.jsonl")
    assert given.n_workers == 3
    wanted = sorted(
        (words[a], words[b]) for words, a, b in (
            (text.split(), first, last)
            for text, spans in TEXTS.items() for first, last, _ in spans
        )
    )  # fmt: skip
    lines = (tmp_path / "places-answers.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    for who in given.worker_ids.to_pylist():
        own = [
            (row["tokens"][span["start"]], row["tokens"][span["end"] - 1])
            for row in rows
            for one in row.get("answers", ())
            if one["worker"] == who
            for span in one["spans"]
        ]
        assert sorted(own) == wanted  # every span of everybody comes back
    assert read_crowd(tmp_path / "sentiment-answers.csv").n_workers == 3
    for name in ("layers.jsonl", "label-studio.json"):
        layers = read_layers(tmp_path / name)
        assert set(layers) == {"places", "sentiment", "topics"}
    found = read_layers(tmp_path / "layers.jsonl")
    sentiment = found["sentiment"]
    assert sorted(sentiment.tagset.tags[code] for code in sentiment.gold) == ["bad", "good", "good"]
    assert found["places"].wholes is not None
    brat = read_crowd(tmp_path / "places-brat.zip")
    assert len({*brat.wholes.to_pylist()}) == 3
