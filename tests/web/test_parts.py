"""Answers that cut tokens, from the page to the crowd, the consensus, Review and the files."""

from __future__ import annotations

import pytest

from goldspan import agreement, read_crowd, write_crowd
from goldspan.campaign.auditing import certificate
from goldspan.campaign.suggestions import suggested_answers
from goldspan.cli.desk import item_text
from goldspan.spans.encoding import PartSpan
from goldspan.web.errors import Refused
from web.serving import Clock, key, open_round, serve

TEXTS = ["Der Apfelkuchen schmeckt.", "קראנו והספרייה נפתחה.", "Ein Haus steht da."]
APPLE, CAKE = PartSpan("LOC", 1, 2, 0, 5), PartSpan("LOC", 1, 2, 5)
WHOLE = PartSpan("LOC", 1, 2)


@pytest.fixture
def service(tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS * 4) + "\n", encoding="utf-8")
    made = serve(
        tmp_path, clock=Clock(), spans=True, pool={"file": "texts.txt"},
        control=None, page={"training": 0, "lease_minutes": 5},
        select={"by": "random", "batch": 12}, redundancy={"min": 3, "max": 3},
    )  # fmt: skip
    open_round(made)
    yield made
    made.close()


def say(service, worker, said):
    """Answer all texts: `said` gives the spans of a text."""
    while (got := service.work.next(worker))["state"] == "task":
        task = got["task"]
        service.work.submit(worker, task["id"], key(), said(task["text"]))


def parts_of(text, first, rest):
    return {"D": first, "ק": rest}.get(text[0], [])


def test_a_part_is_what_everybody_is_shown(service, tmp_path):
    library = PartSpan("LOC", 1, 2, 2)
    for worker, first in [("ann", [APPLE, CAKE]), ("ben", [APPLE]), ("cid", [APPLE, CAKE])]:
        say(service, worker, lambda text, first=first: parts_of(text, first, [library]))
    crowd = service.ledger.crowd()
    at = {text: n for n, text in enumerate(crowd.texts.to_pylist())}
    german, hebrew = at[TEXTS[0]], at[TEXTS[1]]
    assert crowd.tokens_list[german] == ["Der", "Apfel", "kuchen", "schmeckt", "."]
    assert crowd.answers_of(german) == {
        "ann": ["O", "B-LOC", "B-LOC", "O", "O"],
        "ben": ["O", "B-LOC", "O", "O", "O"],
        "cid": ["O", "B-LOC", "B-LOC", "O", "O"],
    }
    assert crowd.tokens_list[hebrew] == ["קראנו", "וה", "ספרייה", "נפתחה", "."]
    assert crowd.tokens_list[at[TEXTS[2]]] == ["Ein", "Haus", "steht", "da", "."]
    assert service.ledger.crowd("pool").tokens.equals(crowd.tokens)
    assert agreement(crowd).alpha < 1
    # the page goes back to it
    given = service.work.given("ben", 0)["answers"]
    seen = [service.work.recall("ben", one["task"], 0) for one in given]
    spans = {one["task"]["text"]: one["spans"] for one in seen}
    assert spans[TEXTS[0]] == [{"start": 1, "end": 2, "type": "LOC", "to_char": 5}]
    assert spans[TEXTS[1]] == [{"start": 1, "end": 2, "type": "LOC", "from_char": 2}]
    assert seen[0]["task"]["tokens"] in [["Der", "Apfelkuchen", "schmeckt", "."],
                                         ["קראנו", "והספרייה", "נפתחה", "."],
                                         ["Ein", "Haus", "steht", "da", "."]]  # fmt: skip
    # the desk shows the consensus within the tokens of the pool
    service.engine.look()
    german_id, hebrew_id = (crowd.item_ids[n].as_py() for n in (german, hebrew))
    shown = service.desk.item(german_id).to_dict()
    parts = [(one["start"], one["end"], one["from_char"], one["to_char"])
             for one in shown["found"]["spans"]]  # fmt: skip
    assert shown["tokens"] == ["Der", "Apfelkuchen", "schmeckt", "."]
    assert parts == [(1, 2, None, 5), (1, 2, 5, None)]
    assert len(shown["found"]["tokens"]) == 4
    assert [len(one["labels"]) for one in shown["answers"]] == [2, 1, 2]
    assert "ben: LOC[Apfel]" in item_text(shown)
    assert any(one.item == german_id for one in service.desk.uncertain(12))
    # what is decided is gold, on the parts
    gold = service.desk.adjudicate(german_id, [APPLE]).to_dict()["gold"]
    assert gold == [{"start": 1, "end": 2, "type": "LOC", "from_char": None, "to_char": 5}]
    crowd = service.ledger.crowd()
    assert crowd.tagged_by_id()[german_id] == ["O", "B-LOC", "O", "O", "O"]
    service.desk.adjudicate(hebrew_id, [WHOLE])
    assert service.ledger.crowd().tagged_by_id()[hebrew_id] == ["O", "B-LOC", "I-LOC", "O", "O"]
    service.desk.retract(german_id)
    # a file that is read again has the same
    service.engine.look()
    write_crowd(service.ledger.crowd(), tmp_path / "answers.jsonl")
    again = read_crowd(tmp_path / "answers.jsonl")
    assert again.answers_of(german_id) == crowd.answers_of(german_id)
    # the model learns and the campaign ends, on the tokens of the pool
    service.campaign.run()
    learned = service.campaign.progress.labelled
    lengths = [len(service.inputs.words[n]) for n in learned.items.tolist()]
    assert [len(labels) for labels in learned.labels] == lengths


def test_a_change_of_an_answer_puts_the_word_together_again(service):
    say(service, "ann", lambda text: parts_of(text, [APPLE], []))
    n_tokens = service.ledger.crowd().n_tokens
    for one in service.work.given("ann", 0)["answers"]:
        task = service.work.recall("ann", one["task"], 0)["task"]
        if task["text"] == TEXTS[0]:
            service.work.change("ann", task["id"], key(), [WHOLE], 0)
    assert service.ledger.crowd().n_tokens == n_tokens - 4


@pytest.mark.parametrize(
    "span", [PartSpan("LOC", 1, 2, 99), PartSpan("LOC", 1, 2, 5, 5), PartSpan("LOC", 0, 9, 1)]
)
def test_a_part_that_is_none_is_refused(service, span):
    task = service.work.next("ann")["task"]
    with pytest.raises(Refused, match="The spans do not fit"):
        service.work.submit("ann", task["id"], key(), [span])


def test_the_same_answer_again_is_the_same(service):
    task = service.work.next("ann")["task"]
    one = [PartSpan("LOC", 1, 2, 2)]
    for _ in range(2):
        assert service.work.submit("ann", task["id"], "again-0001", one)["status"] == "accepted"


@pytest.mark.parametrize(
    ("checked", "value"), [([APPLE], 1.0), ([WHOLE], 0.0), ([APPLE, CAKE], 2 / 3)]
)
def test_an_audit_compares_parts(service, checked, value):
    for worker in ("ann", "ben", "cid"):
        say(service, worker, lambda text: parts_of(text, [APPLE], []))
    service.engine.look()
    service.desk.draw_audit(12)
    checking = service.desk.checking
    while (got := checking.next("eva"))["state"] == "task":
        task = got["task"]
        checking.submit("eva", "eva", task["id"], key(), parts_of(task["text"], checked, []))
    service.engine.look()
    result, plan = service.engine.live.result, service.inputs.plan
    found = certificate(plan, service.ledger, result, {})
    assert found["value"] == pytest.approx(value)


def test_a_suggestion_is_what_more_than_half_have_cut_so(tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS[:1] * 8) + "\n", encoding="utf-8")
    service = serve(
        tmp_path, clock=Clock(), spans=True, pool={"file": "texts.txt"}, control=None,
        select={"by": "random", "batch": 8}, redundancy={"min": 2, "max": 2},
        page={"training": 0, "suggest": "consensus", "suggest_share": 0.9},
    )  # fmt: skip
    open_round(service)
    say(service, "ann", lambda text: parts_of(text, [APPLE], []))
    seen = []
    while (got := service.work.next("ben"))["state"] == "task":
        task = got["task"]
        seen.append(task.get("suggestion"))
        service.work.submit("ben", task["id"], key(), [WHOLE])
    part = {"start": 1, "end": 2, "type": "LOC", "to_char": 5}
    assert len(seen) == 8
    assert [one for one in seen if one] == [{"spans": [part]}] * sum(map(bool, seen))
    assert any(seen)
    rows = suggested_answers(service.ledger, service.ledger.crowd())
    assert [(one.suggested, one.given) for one in rows if one.suggested] == [
        ([("LOC", 1, 2)], [("LOC", 1, 3)])
    ] * 8
    service.close()
