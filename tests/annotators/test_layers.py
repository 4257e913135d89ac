"""Models and functions that answer all layers of a task at once."""

from __future__ import annotations

import json
import sys
from types import ModuleType

import pytest

from examples.model_server import ModelServer
from goldspan.annotators import AnnotationTask, open_annotator
from goldspan.annotators.llm import draw_examples
from goldspan.annotators.prompt import Prompt, hash_of
from goldspan.crowd.questions import Question, Questions
from goldspan.errors import InputError
from goldspan.protocols import PoolItem
from goldspan.spans import Codec

CODEC = Codec.from_types(["LOC", "ORG"])
ASKED = Questions(
    (
        Question("item", "spans", ("LOC", "ORG"), overlapping=True),
        Question("mood", "label", ("sad", "so-so", "glad"), ordinal=True),
        Question("topics", "labels", ("art", "law", "war")),
        Question("doubt", "label", ("some", "much"), required=False),
    )
)
ITEM = PoolItem("a", ("New", "York", "Times", ",", "York"))
ORG = {"first": 0, "last": 2, "text": "New York Times", "label": "ORG"}
LOC = {"first": 0, "last": 1, "text": "New York", "label": "LOC"}
RIGHT = {"item": [ORG, LOC], "mood": "glad", "topics": ["war", "art"], "doubt": None}
ANSWER = {
    "item": [{"start": 0, "end": 3, "type": "ORG"}, {"start": 0, "end": 2, "type": "LOC"}],
    "mood": "glad", "topics": ["art", "war"], "doubt": None,
}  # fmt: skip


def task_of(questions=ASKED, **facts):
    return AnnotationTask(CODEC, "Mark.", send_text=True, questions=questions, **facts)


def asked(*replies, task=None, **options):
    """Return the answer of a model that replies so, one after the other, and what it was asked."""
    told = iter(replies)

    def reply(question, _labels):
        return {"item": question["item"], "layers": next(told)}

    with ModelServer(reply).running() as server:
        entry = {"kind": "llm", "id": "m", "base_url": server.url, "model": "small", **options}
        with open_annotator({"concurrency": 1, **entry}, task or task_of()) as model:
            (answer,) = model.label([ITEM])
        return answer, server.calls


def test_one_reply_answers_every_layer():
    answer, (call,) = asked(RIGHT)
    assert answer.labels(CODEC, 5) == ANSWER
    system = call["messages"][0]["content"]
    for line in (
        '- "item": spans with the labels "LOC", "ORG"; they may overlap; [] if there are none',
        '- "mood": exactly one of the labels "sad", "so-so", "glad", from the least to the most',
        '- "topics": all of the labels "art", "law", "war" that hold; at least one',
        '- "doubt": exactly one of the labels "some", "much", or null',
    ):
        assert line in system.splitlines()
    assert '"layers": {"item": [{"first": 0,' in system
    assert '"mood": "LABEL", "topics": ["LABEL"], "doubt": "LABEL"}}' in system
    layers = call["response_format"]["json_schema"]["schema"]["properties"]["layers"]
    assert layers["required"] == ["item", "mood", "topics", "doubt"]
    assert {"type": "null"} in layers["properties"]["doubt"]["anyOf"]


def test_without_spans_the_text_is_asked_about():
    questions = Questions(ASKED.each[1:3])
    prompt = Prompt(AnnotationTask(Codec.from_types(["x"], "PLAIN"), questions=questions))
    assert json.loads(prompt.question(PoolItem("b", ("b",), text="Oh no"))["content"])["text"]
    assert "span" not in prompt.beginning[0]["content"]


def test_words_are_found_under_every_label_and_what_is_not_there_is_told():
    said = [("York", "LOC"), ("York", "ORG"), ("York", "LOC"), ("York", "LOC"), ("Rome", "LOC")]
    spans = [{"text": text, "label": label} for text, label in said]
    lost, _ = asked(*[{**RIGHT, "item": spans}] * 2, form="quotes")
    assert lost.missing.startswith("invalid: not all spans of item can be placed")
    assert lost.unplaced[1] == "LOC 'Rome' is not in the text"
    answer, _ = asked({**RIGHT, "item": spans[:-1]}, form="quotes")
    places = [(one["start"], one["type"]) for one in answer.layers["item"]]
    assert places == [(1, "LOC"), (4, "LOC"), (4, "ORG")]
    assert answer.unplaced == lost.unplaced[:1]


def test_of_spans_that_must_not_overlap_none_counts_where_a_token_is_left():
    flat = Questions((Question("item", "spans", ("LOC", "ORG")), *ASKED.each[1:]))
    answer, _ = asked(RIGHT, RIGHT, task=task_of(flat))
    assert answer.missing
    assert answer.unplaced == ("ORG at tokens 0-2 overlaps another",)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"mood": "mad"}, "mood is not what is asked for"),
        ({"mood": None}, "mood is not what is asked for"),
        ({"topics": ["art", "sport"]}, "topics is not what is asked for"),
        ({"topics": []}, "topics is not what is asked for"),
        ({"doubt": ["some"]}, "doubt is not what is asked for"),
        ({"item": None}, "item is not what is asked for"),
        ({"item": [{"label": "LOC"}]}, 'a span has no "label" and "text"'),
        (None, '"layers" is not an object'),
    ],
)
def test_a_reply_with_a_wrong_layer_is_asked_for_again(wrong, why):
    faulty = wrong and {**RIGHT, **wrong}
    answer, _ = asked(faulty, RIGHT)
    assert (answer.layers, answer.usage.calls) == (ANSWER, 2)
    answer, _ = asked(faulty, faulty)
    assert answer.missing == f"invalid: {why} (after 2 calls)"
    assert answer.labels(CODEC, 5) is None


def test_of_several_samples_counts_what_most_say():
    other = {"item": [LOC], "mood": "sad", "topics": ["law", "art"], "doubt": "some"}
    answer, _ = asked(RIGHT, {**other, "mood": "so-so"}, {**other, "topics": ["law"]}, samples=3)
    assert answer.layers == {
        "item": ANSWER["item"][1:],
        "mood": "sad",  # everybody says something else: of equals the first
        "topics": ["art", "law"],
        "doubt": "some",
    }


def test_examples_show_layers():
    bare = {"item": [], "mood": "sad", "topics": ["law"], "doubt": None}
    known = [(PoolItem(str(n), ("x",)), bare) for n in range(5)]
    known.append((PoolItem("e", ITEM.tokens), ANSWER))
    assert [item.id for item, _ in draw_examples(known, 1, 0)] == ["e"]
    _, (call,) = asked(RIGHT, task=task_of(examples=tuple(known)), examples=1)
    shown = json.loads(call["messages"][2]["content"])["layers"]
    assert shown == {**RIGHT, "topics": ["art", "war"]}


def test_the_prompts_of_one_question_are_what_they_were():
    example = (PoolItem("a", ("Ann", "sang")), ("B-PER", "O"))
    single = (PoolItem("a", ("a",), text="good"), ("yes",))
    names, labels = Codec.from_types(["PER", "LOC"]), Codec.from_types(["no", "yes"], "PLAIN")
    made = [
        Prompt(AnnotationTask(codec, "Mark."), form, (shown,), "Strict.")
        for codec, form, shown in (
            (names, "tokens", example), (names, "quotes", example), (labels, "tokens", single),
        )
    ]  # fmt: skip
    assert [hash_of([one.beginning, one.schema]) for one in made] == [
        "401da0870698e3225e45ecb50a1b9cb6",
        "3a1887e83131fb2216018d35db3efb97",
        "553a1ddcbb123f16ccfcc8a56ad9a314",
    ]


# Functions.


def called(monkeypatch, function, **facts):
    monkeypatch.setitem(sys.modules, "my_rules", module := ModuleType("my_rules"))
    module.label = function
    entry = {"kind": "python", "id": "w", "call": "my_rules:label"}
    with open_annotator(entry, task_of(allow_code=("my_rules",), **facts)) as annotator:
        return next(iter(annotator.label([ITEM])))


CHARS = [
    {"start": 0, "end": 8, "label": "LOC"}, {"start": 0, "end": 14, "label": "ORG"},
    {"start": 4, "end": 8, "label": "LOC", "probability": 0.4},
    {"start": 4, "end": 8, "label": "PER"},
]  # fmt: skip
SAID = {"item": CHARS, "mood": "glad", "topics": ["war", "art"]}


def test_a_function_answers_by_layer_and_its_answers_are_kept(monkeypatch, tmp_path):
    first = called(monkeypatch, lambda _: [SAID], answers=tmp_path)
    assert first.labels(CODEC, 5) == ANSWER
    assert first.unplaced == ("'PER' of 'York' is not a label of the task",)
    again = called(monkeypatch, lambda _: 1 / 0, answers=tmp_path)
    assert again == first
    assert again.repeated
    fewer = Questions(ASKED.each[:3])  # another task
    with pytest.raises(InputError, match="ZeroDivisionError"):
        called(monkeypatch, lambda _: 1 / 0, answers=tmp_path, questions=fewer)
    assert called(monkeypatch, lambda _: [None]).missing == "none was given"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (["B-LOC"], r"give a dict by layer, not \['B-LOC'\]"),
        ({**SAID, "item": None}, "item: give a list of spans, not None"),
        ({**SAID, "item": [(0, "LOC")]}, "item: a span has start and end"),
        ({**SAID, "mood": "mad"}, "mood: 'mad' is not one of sad, so-so, glad"),
        ({**SAID, "topics": []}, "topics: choose one of art"),
        ({**SAID, "words": 1}, "'words' is not one of item, mood"),
    ],
)
def test_what_a_function_does_wrong_is_named_with_item_and_layer(monkeypatch, wrong, why):
    with pytest.raises(InputError, match=f"^worker w, item a: {why}"):
        called(monkeypatch, lambda _: [wrong])


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"kind": "tagger", "model": "m.goldspan"}, "the kind 'tagger' answers one"),
        ({"kind": "replay", "answers": "a.csv"}, "the kind 'replay' answers one"),
        ({"kind": "python", "call": "a:b", "probe": True}, "a probe finds who pastes"),
        ({"kind": "llm", "base_url": "http://h", "model": "m", "logprobs": True}, "logprobs are"),
        (
            {
                "kind": "llm",
                "base_url": "http://h",
                "model": "m",
                "examples": 1,
                "style": "completion",
            },
            "a completion answers one",
        ),
    ],
)
def test_who_answers_one_question_is_refused(entry, why):
    with pytest.raises(InputError, match=f"the task has several questions, and {why}"):
        open_annotator(entry, task_of())
