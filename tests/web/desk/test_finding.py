"""Items are found as by looking at all of them, however many there are."""

from __future__ import annotations

import itertools
import json

import pytest

from goldspan.web import open_service
from goldspan.web.desk import desk as finding
from web.desks import as_json
from web.serving import KEYS, answer, open_round, plan_file, serve

TEXTS = (
    "Die STRASSE ist lang", "Auf der Straße", "Größe zählt", "İstanbul ve Iğdır", "ışık",
    "Der ﬁsch, 100 %", "GRÖSSE 𝔘 😀", "a.*b [c]",
)  # fmt: skip
FINDS = (
    "strasse", "STRAßE", "größe", "GRÖSSE", "istanbul", "İstanbul", "ığdır", "IŞIK", "fisch",
    "100 %", "0 %", "😀", ".*", "[c]", "d1", "D1", "\n",
)  # fmt: skip


def by_hand(service, find="", after="", state="all", names=None):
    """Look at every item, as a list."""
    rows = service.ledger.slots().to_pylist()
    items = [row["item"] for row in rows]
    behind = rows[items.index(after) + 1 :] if after in items else rows
    done = {row["item"] for row in rows if row["filled"] >= row["wanted"]}
    found = []
    for item in (row["item"] for row in behind):
        text = service.work.tasks.text(item).casefold()
        fits = find.casefold() in item.casefold() or find.casefold() in text
        fits &= names is None or item in names
        if fits and (state not in {"open", "done"} or (item in done) == (state == "done")):
            found.append(item)
    return found


@pytest.mark.parametrize("few", [1, 3])
def test_every_page_is_what_looking_at_all_items_gives(service, monkeypatch, few):
    monkeypatch.setattr(finding, "FEW", few)
    monkeypatch.setattr(finding, "MANY", 2 * few)
    everything = by_hand(service)
    words = service.work.tasks.text(everything[4]).split()
    finds = ["", "a", words[0].upper(), words[-1], everything[2], "zebra"]
    for find, state, after in itertools.product(
        finds, ["all", "open", "done"], ["", everything[3], everything[-1], "no such item"]
    ):
        expected = by_hand(service, find, after, state)
        page = as_json(service.desk.items(after, find, state, limit=2))
        assert [row["item"] for row in page["items"]] == expected[:2]
        assert page["more"] == (len(expected) > 2)
        assert page["total"] == len(everything)


def test_reported_items_are_searched_by_their_words_and_behind_a_place(fresh):
    flagged = []
    for n in range(3):
        task = fresh.work.next("dan")["task"]["id"]
        flagged.append(fresh.work.tasks.item("dan", task))
        fresh.work.flag("dan", task, f"key-of-dan-{n}", "garbled", "")
    inside = by_hand(fresh, names=flagged)
    assert len(inside) == 3
    for find, after in itertools.product(["", flagged[1], "a"], ["", inside[0]]):
        page = as_json(fresh.desk.items(after, find, "flagged"))["items"]
        assert [row["item"] for row in page] == by_hand(fresh, find, after, names=flagged)


def test_items_that_are_asked_about_later_are_found(tmp_path):
    service = serve(tmp_path)
    open_round(service)
    before = len(as_json(service.desk.items(find="a", limit=200))["items"])
    while answer(service, "ann.k") or answer(service, "bob.k"):
        pass
    open_round(service)
    found = [row["item"] for row in as_json(service.desk.items(find="a", limit=200))["items"]]
    assert found == by_hand(service, "a")
    assert len(found) > before
    service.close()


def test_letters_of_all_kinds_are_found_whatever_the_case(tmp_path):
    plan = plan_file(tmp_path, select={"by": "random", "batch": 14})
    rows = [json.loads(line) for line in (tmp_path / "pool.jsonl").read_text().splitlines()]
    for row, text in zip(rows, itertools.cycle(TEXTS)):
        row["text"] = text
    (tmp_path / "pool.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    service = open_service(plan, tmp_path / "out", KEYS)
    open_round(service)
    found = {}
    for find in FINDS:
        found[find] = [row["item"] for row in as_json(service.desk.items(find=find))["items"]]
        assert found[find] == by_hand(service, find)
    service.close()
    assert len(found["strasse"]) == len(found["STRAßE"]) > 2
    # Python's case folding knows no Turkish: an i with a dot stays apart from one without.
    assert [find for find in FINDS if not found[find]] == ["istanbul", "ığdır", "IŞIK", "\n"]


def test_an_item_is_found_by_its_text_as_it_is_shown(tmp_path):
    service = serve(tmp_path, spans=True)
    open_round(service)
    item = by_hand(service)[2]
    words = " ".join(service.work.tasks.shown(item)["tokens"])
    place = service.inputs.pool.place[item]
    given = list(service.inputs.pool.given)
    given[place] = words.replace(" ", "  ")
    object.__setattr__(service.inputs.pool, "given", given)
    for find, is_found in ((words.replace(" ", "  "), True), (words, False)):
        found = [row["item"] for row in as_json(service.desk.items(find=find))["items"]]
        assert found == by_hand(service, find)
        assert (item in found) == is_found
    service.close()
