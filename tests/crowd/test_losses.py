"""What a file does not give back is found by reading it: counts, first examples, plain words."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from crowd_strategies import alike, crowds
from crowd_tables import crowd_of, small
from goldspan.cli import main
from goldspan.crowd import CrowdBuilder, ReadOptions, read_crowd, registry, write_crowd
from goldspan.crowd.losses import differences, losses
from goldspan.errors import FormatError
from goldspan.spans import Codec


@given(crowds())
def test_a_crowd_does_not_differ_from_itself(crowd):
    assert differences(crowd, crowd) == []


@given(crowds(), crowds())
def test_two_crowds_differ_if_and_only_if_something_is_named(one, two):
    if one.tagset.encoding == two.tagset.encoding:
        assert alike(two, one) == (differences(one, two) == [])


def text_crowd(**changes):
    builder = CrowdBuilder(ReadOptions(encoding="BIO"))
    for n, text in enumerate(("Ann  sang .", "Bob\u00a0ran .", "Cem ate .")):
        tokens = text.split()
        starts = [text.index(token) for token in tokens]
        item = builder.add_item(f"i{n}", tokens, text=text, token_start=starts)
        builder.add_answer(item, "w", ["B-X", "O", "O"], submitted=5 + n, cost=2)
    return replace(builder.build(), **changes)


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        (
            {"texts": pa.array(["Ann sang .", "Bob ran .", "Cem ate ."])},
            ["the text of 2 items: item 'i0' differs at character 4"],
        ),
        ({"texts": None}, ["the text of 3 items: item 'i0'"]),
        ({"token_start": None}, ["the character offsets of 3 items"]),
        ({"item_ids": pa.array(["a", "b", "c"])}, ["ids of 3 items: 'i0' comes back as 'a'"]),
        ({"groups": pa.array(["d", "d", None])}, ["the documents of 2 items: item 'i0', nothing"]),
        ({"gold": np.zeros(9, np.int16)}, ["that there is no gold"]),
        ({"worker_ids": pa.array(["v"])}, ["1 worker: 'w' is missing"]),
    ],
)
def test_a_difference_has_a_count_and_an_example(changes, wanted):
    found = differences(text_crowd(), text_crowd(**changes))
    assert [one.startswith(two) for one, two in zip(found, wanted, strict=False)] == [True]


def chosen(*items: int):
    return text_crowd().select_items(np.array(items))


def silenced():
    """The first answer skips every token."""
    crowd = text_crowd()
    codes = crowd.answers.codes.copy()
    codes[:3] = -1
    return replace(crowd, answers=replace(crowd.answers, codes=codes))


@pytest.mark.parametrize(
    ("mine", "back", "wanted"),
    [
        (chosen(0, 1, 2), chosen(0, 2), "1 item: 'i1' is missing"),
        (chosen(0, 2), chosen(0, 1, 2), "1 item that are none: 'i1' is new"),
        (chosen(0, 1, 2), chosen(2, 0, 1), "the order of items"),
        (
            silenced(),
            replace(silenced(), answers=text_crowd().answers.take(np.array([1, 2]))),
            "1 answer in which every token was skipped: item 'i0', worker 'w'",
        ),
        (silenced(), text_crowd(), "skipped tokens of 1 answer: item 'i0', worker 'w', skipped"),
        (
            text_crowd(),
            text_crowd(answers=text_crowd().answers.take(np.array([1, 2]))),
            "1 answer: item 'i0', worker 'w' is missing",
        ),
        (
            text_crowd(),
            text_crowd(attributes=pa.table({"n": ["a"] * 3})),
            "that there is no attribute 'n'",
        ),
    ],
)
def test_what_is_missing_new_or_moved_is_named(mine, back, wanted):
    assert any(one.startswith(wanted) for one in differences(mine, back))


def test_times_costs_and_repeated_answers_are_counted():
    crowd = text_crowd()
    answers = crowd.answers
    late = replace(crowd, answers=replace(answers, submitted=answers.submitted + 1, cost=None))
    assert differences(crowd, late) == [
        "the submission times of 3 answers (other values come back)",
        "the costs of 3 answers",
    ]
    twice = crowd_of([{"w": ["B-X"]}, {"w": ["O"]}])
    again = replace(twice.answers, item=np.zeros(2, np.int32), attempt=np.array([0, 1], np.int16))
    repeated = replace(twice, answers=again)
    assert differences(repeated, replace(repeated, answers=repeated.latest)) == [
        "1 repeated answer (the one that counts is there)"
    ]


def test_labels_on_other_tokens_are_compared_by_their_characters():
    def cut(tokens, tags):
        builder = CrowdBuilder(ReadOptions(encoding="BIO"))
        starts = ["Toyota's".index(token) for token in tokens]
        item = builder.add_item("i", tokens, text="Toyota's", token_start=starts)
        builder.add_answer(item, "w", tags)
        return builder.build()

    whole = cut(["Toyota's"], ["B-X"])
    parts = cut(["Toyota", "'", "s"], ["B-X", "I-X", "I-X"])
    found = differences(whole, parts)
    assert [one.split(":")[0] for one in found] == ["tokens of 1 item"]
    shorter = cut(["Toyota", "'", "s"], ["B-X", "O", "O"])
    assert "labels of 1 answer: item 'i', worker 'w', characters 0 to 8 (X)" in differences(
        whole, shorter
    )


def test_the_encoding_is_named_and_all_else_is_compared_in_it():
    codec = Codec.from_types(["X"], "IOBES")
    crowd = replace(small(["x", "y"], ["O", "O"]), tagset=codec)
    lost = losses(crowd, "wide")
    assert lost[0] == "the encoding IOBES (read it back with encoding='IOBES')"


# Formats of other packages


def plugin(**parts) -> ModuleType:
    module = ModuleType("goldspan_test_format")
    module.sniff = lambda _: False
    for name, part in parts.items():
        setattr(module, name, part)
    return module


def write_words(crowd, path):
    path.write_text(" ".join(crowd.tokens_list[0]))


def read_words(source, options):
    builder = CrowdBuilder(options)
    builder.add_item("i", source.text.value.split())
    return builder.build()


def refuse(_source, _options):
    raise FormatError([])


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ({"read": read_words}, ["1 worker: 'w' is missing"]),
        ({"read": read_words, "cannot_hold": lambda _: ["much"]}, ["1 worker: 'w' is missing"]),
        ({"cannot_hold": lambda _: ["much"]}, ["much"]),
        ({}, ["(unknown: goldspan has no reader for this format to compare with)"]),
        ({"read": refuse}, ["everything: the file is rejected when it is read back"]),
    ],
)
def test_formats_of_other_packages_are_compared_or_asked(monkeypatch, tmp_path, parts, wanted):
    monkeypatch.setitem(sys.modules, "goldspan_test_format", plugin(write=write_words, **parts))
    monkeypatch.setattr(registry, "plugins", lambda _: {"other": "goldspan_test_format"})
    crowd = small().select_items(np.array([0]))
    lost = write_crowd(crowd, tmp_path / "x", format="other")
    assert lost[0].startswith(wanted[0])


# At the command line


def test_convert_says_what_is_lost_and_leaves_texts_out(tmp_path, monkeypatch, capsys):
    write_crowd(text_crowd(), tmp_path / "in.jsonl")

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["goldspan", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
        return left.value.code or 0, *capsys.readouterr()

    code, out, _ = run("convert", tmp_path / "in.jsonl", "-o", tmp_path / "out.tsv", "--json")
    assert code == 0
    lost = json.loads(out)["lost"]
    assert lost == ["the submission times of 3 answers", "the costs of 3 answers"]
    code, _, err = run("convert", tmp_path / "in.jsonl", "-o", tmp_path / "bare.tsv", "--no-text")
    assert "the file does not give back: the text of 3 items: item 'i0'" in err
    assert read_crowd(tmp_path / "bare.tsv").texts is None
    assert read_crowd(tmp_path / "out.tsv").texts.to_pylist()[1] == "Bob\u00a0ran ."
    code, out, _ = run(
        "aggregate", tmp_path / "in.jsonl", "-m", "mv-token", "-o", tmp_path / "gold.conll",
        "--json", "--no-text",
    )  # fmt: skip
    assert code == 0
    assert json.loads(out)["lost"] == [
        "the text of 3 items: item 'i0'", "the character offsets of 3 items"
    ]  # fmt: skip
