"""Span JSONL holds everything, is kind to what is written by hand, and refuses the rest clearly."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from crowd_strategies import lines_of, read_as
from goldspan.crowd import CrowdBuilder, ReadOptions, read_crowd, write_crowd
from goldspan.crowd.formats import span_jsonl
from goldspan.crowd.losses import losses
from goldspan.crowd.source import open_source
from goldspan.errors import FormatError
from goldspan.spans import Codec

HEADER = {"goldspan": 1, "encoding": "BIO", "types": ["LOC", "PER"], "workers": ["A01", "A02"]}
ITEM = {
    "item": "D1-1",
    "doc": "D1",
    "tokens": ["Ann", "Lee", "sang"],
    "gold": [[0, 2, "PER"]],
    "answers": [
        {"worker": "A01", "spans": [{"type": "PER", "start": 0, "end": 2}]},
        {"worker": "A02", "tags": ["B-PER", None, "I-PER"], "submitted": 1000},
    ],
}
FLAT = {"id": 7, "text": "Ann 😀 sang", "spans": [[0, 3, "PER"]], "worker": "A01"}


def read(*lines, **options):
    return read_as(span_jsonl, lines_of(*lines), **options)


def message(*lines, **options) -> str:
    with pytest.raises(FormatError) as caught:
        read(*lines, **options)
    return str(caught.value)


def test_a_crowd_is_read_from_lines_of_items():
    crowd = read(HEADER, ITEM)
    assert crowd.groups.to_pylist() == ["D1"]
    assert crowd.tagged_by_id() == {"D1-1": ["B-PER", "I-PER", "O"]}
    assert crowd.answers_of("D1-1") == {
        "A01": ["B-PER", "I-PER", "O"],
        "A02": ["B-PER", None, "I-PER"],
    }
    assert crowd.answers.submitted.tolist() == [-1, 1000]
    assert crowd.import_report.n_placed == 5


def test_the_first_line_is_a_header_with_a_version(tmp_path):
    path = tmp_path / "crowd.jsonl"
    write_crowd(read(HEADER, ITEM), path)
    first = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    assert first == HEADER


def test_a_newer_version_is_refused():
    text = message({**HEADER, "goldspan": 2}, ITEM)
    assert "<bytes> line 1: the file is of version 2, but this goldspan reads version 1" in text


def test_workers_and_types_that_nobody_used_survive():
    crowd = read({**HEADER, "workers": ["silent"]}, ITEM)
    assert sorted(crowd.worker_ids.to_pylist()) == ["A01", "A02", "silent"]
    assert crowd.tagset == Codec.from_types(["LOC", "PER"])


def test_a_type_that_the_header_does_not_declare_is_refused_with_its_place():
    wrong = {**ITEM, "answers": [{"worker": "A01", "spans": [[0, 1, "PRE"]]}]}
    text = message(HEADER, wrong)
    assert text.startswith("<bytes> line 2, item D1-1, worker A01: 'PRE' is not declared")
    assert "LOC, PER" in text
    wrong["answers"] = [{"worker": "A01", "tags": ["B-PER", "O", "I-ORG"]}]
    assert "'I-ORG' is not declared" in message(HEADER, wrong)


def test_a_label_that_is_declared_never_means_no_label():
    item = {"item": "a", "tokens": ["x"], "answers": [{"worker": "w", "label": "NA"}]}
    header = {"goldspan": 1, "encoding": "PLAIN", "types": ["NA", "yes"]}
    assert read(header, item).answers_of("a") == {"w": ["NA"]}
    assert read(item).answers_of("a") == {"w": [None]}


def test_another_encoding_than_the_header_has_is_refused():
    assert "the file is in BIO, not in IOBES" in message(HEADER, ITEM, encoding="IOBES")
    assert read(HEADER, ITEM, encoding="IOB2").tagset.encoding == "BIO"


def test_labels_can_be_renamed_and_dropped_in_spite_of_the_header():
    crowd = read(HEADER, ITEM, labels={"PER": "person", "LOC": ""})
    assert crowd.tagset == Codec.from_types(["person"])
    assert crowd.answers_of("D1-1")["A01"] == ["B-person", "I-person", "O"]


def test_tags_that_spans_cannot_say_are_written_as_tags(tmp_path):
    builder = CrowdBuilder(ReadOptions(encoding="BIO"))
    item = builder.add_item("a", ["x", "y"], gold=["O", "I-PER"])
    builder.add_answer(item, "w", ["O", "I-PER"])
    builder.add_answer(item, "v", [None, "B-PER"])
    path = tmp_path / "crowd.jsonl"
    write_crowd(builder.build(), path)
    line = json.loads(path.read_text(encoding="utf-8").splitlines()[1])
    assert line["gold"] == {"tags": ["O", "I-PER"]}
    assert line["answers"] == [
        {"worker": "w", "tags": ["O", "I-PER"]},
        {"worker": "v", "spans": [{"type": "PER", "start": 1, "end": 2}], "skipped": [[0, 1]]},
    ]


def test_attributes_with_the_names_of_fields_are_kept_apart(tmp_path):
    crowd = replace(
        read(HEADER, ITEM),
        attributes=pa.table({"worker": ["x"], "source": ["web"], "attributes": [[1, 2]]}),
    )
    path = tmp_path / "crowd.jsonl"
    write_crowd(crowd, path)
    line = json.loads(path.read_text(encoding="utf-8").splitlines()[1])
    assert line["source"] == "web"
    assert line["attributes"] == {"worker": "x", "attributes": [1, 2]}
    assert read_crowd(path) == crowd


def test_what_cannot_be_held_is_named(tmp_path):
    dated = pa.table({"when": pa.array([0], pa.timestamp("ms")), "x": [float("inf")]})
    crowd = replace(read(HEADER, ITEM), attributes=dated)
    when, x = write_crowd(crowd, tmp_path / "crowd.jsonl")
    assert when.startswith("attribute 'when' of 1 item: item 'D1-1', datetime.datetime(1970")
    assert x == "attribute 'x' of 1 item: item 'D1-1', inf comes back as nothing"
    again = read_crowd(tmp_path / "crowd.jsonl", format="spans").attributes.to_pydict()
    assert again == {"when": ["1970-01-01 00:00:00"], "x": [None]}
    (lost,) = losses(read(HEADER, ITEM).select_items(np.zeros(0, np.int64)), "spans")
    assert "the file is rejected" in lost


# Written by hand.


@pytest.mark.parametrize("key", ["spans", "entities", "labels", "label"])
@pytest.mark.parametrize("who", ["worker", "annotator"])
def test_a_line_may_be_one_workers_answer_to_a_text(key, who):
    crowd = read({"id": 7, "text": "Ann Lee sang", key: [[0, 7, "PER"]], who: 3})
    assert crowd.answers_of("7") == {"3": ["B-PER", "I-PER", "O"]}
    assert crowd.texts.to_pylist() == ["Ann Lee sang"]
    assert crowd.token_start.tolist() == [0, 4, 8]


@pytest.mark.parametrize(
    "span",
    [
        [6, 10, "X"],
        ["X", 6, 10],
        {"type": "X", "start": 6, "end": 10},
        {"label": "X", "start": 6, "end": 10, "text": "sang"},
        {"tag": "X", "start_offset": 6, "end_offset": 10},
    ],
)
def test_a_span_may_be_written_in_several_ways(span):
    assert read({**FLAT, "spans": [span]}).answers_of("7") == {"A01": ["O", "O", "B-X"]}


@pytest.mark.parametrize(("offsets", "start"), [("codepoint", 6), ("utf16", 7), ("utf8", 9)])
def test_offsets_count_what_they_are_said_to_count(offsets, start):
    line = {**FLAT, "spans": [{"type": "X", "start": start, "end": start + 4, "text": "sang"}]}
    assert read(line, offsets=offsets).answers_of("7") == {"A01": ["O", "O", "B-X"]}
    for other in {"codepoint", "utf16", "utf8"} - {offsets}:
        assert f"with offsets={offsets!r} it fits: pass that" in message(line, offsets=other)


def test_offsets_count_tokens_where_there_are_tokens_unless_the_line_says_otherwise():
    line = {"id": 1, "tokens": ["Ann", "Lee"], "text": "Ann Lee", "worker": "w"}
    by_token = read({**line, "spans": [[0, 1, "PER"]]})
    by_char = read({**line, "unit": "char", "spans": [[0, 3, "PER"]]})
    assert by_token == by_char
    assert by_token.answers_of("1") == {"w": ["B-PER", "O"]}
    text_only = {"id": 1, "text": "Ann Lee", "worker": "w", "unit": "token", "spans": [[1, 2, "X"]]}
    assert read(text_only).answers_of("1") == {"w": ["O", "B-X"]}
    assert read({"goldspan": 1, "unit": "char"}, {**line, "spans": [[0, 3, "PER"]]}) == by_char


def test_a_label_makes_a_crowd_of_single_labels():
    crowd = read(
        {"id": 1, "text": "so good", "label": "pos", "worker": "a", "gold": "neg"},
        {"id": 1, "text": "so good", "label": "neg", "worker": "b"},
    )
    assert crowd.is_classification
    assert crowd.tokens_list == [["so good"]]
    assert crowd.answers_of("1") == {"a": ["pos"], "b": ["neg"]}
    assert crowd.tagged_by_id() == {"1": ["neg"]}


def test_tags_may_be_labels_of_every_token():
    line = {"id": 1, "tokens": ["I", "go"], "tags": ["PRON", "VERB"], "worker": "a"}
    crowd = read(line)
    assert crowd.tagset.encoding == "PLAIN"
    assert crowd.answers_of("1") == {"a": ["PRON", "VERB"]}


def test_times_may_be_iso_8601():
    line = {**FLAT, "submitted": "2021-03-09T22:16:08.728353Z", "started": "2021-03-09T22:16"}
    answers = read(line).answers
    assert answers.submitted.tolist() == [1615328168728]
    assert answers.started.tolist() == [1615328160000]


def test_repeated_answers_are_numbered_in_order_or_as_they_say():
    again = {**FLAT, "spans": []}
    assert read(FLAT, again).answers_of("7") == {"A01": ["O", "O", "O"]}
    assert read(FLAT, again, repeated="first").answers_of("7")["A01"][0] == "B-PER"
    assert (
        read({**FLAT, "attempt": 1}, {**again, "attempt": 0}).answers_of("7")["A01"][0] == "B-PER"
    )


def test_lines_may_cut_the_same_text_otherwise():
    first = {"id": 1, "text": "U.S.-made", "tokens": ["U.S.", "-", "made"], "worker": "a"}
    other = {"id": 1, "text": "U.S.-made", "tokens": ["U.S.-made"], "worker": "b"}
    crowd = read({**first, "spans": [[0, 1, "LOC"]]}, {**other, "spans": [[0, 1, "LOC"]]})
    assert crowd.answers_of("1") == {"a": ["B-LOC", "O", "O"], "b": ["B-LOC", "I-LOC", "I-LOC"]}
    text = message({**first, "spans": []}, {**other, "tags": ["O"]})
    assert "line 2, item 1, worker b: other tokens than in <bytes> line 1" in text


def test_lines_with_another_text_for_one_item_are_refused():
    text = message(FLAT, {**FLAT, "text": "Bob sang", "worker": "B"})
    assert text.startswith(
        "<bytes> line 2, item 7: not the text that this item has in <bytes> line 1"
    )
    assert '"Bob sang"' in text
    assert '"Ann 😀 sang"' in text
    tokens = {"id": 1, "tokens": ["a"], "spans": [], "worker": "x"}
    assert "not the text" in message(tokens, {**tokens, "tokens": ["b"]})


# What a label is: the tag of one token, or a span that is not placed.


def test_of_overlapping_spans_the_longer_stays_and_the_others_are_counted():
    line = {**FLAT, "spans": [[0, 3, "PER"], [0, 5, "ORG"], [4, 10, "LOC"], [4, 10, "X"]]}
    crowd = read(line, overlapping="longest")
    assert crowd.answers_of("7") == {"A01": ["B-PER", "B-LOC", "I-LOC"]}
    report = crowd.import_report
    assert report.adds_up
    assert (report.n_labels, report.n_placed) == (5, 3)
    assert report.reasons == {"overlapping span": 1, "several labels of a span": 1}
    stays = "overlaps span LOC [4, 10), which stays"
    assert [str(fault) for fault in report.faults] == [
        f"<bytes> line 1, item 7 token 0, worker A01: span ORG [0, 5) {stays}",
        f"<bytes> line 1, item 7 token 1, worker A01: span X [4, 10) {stays}",
    ]
    with pytest.raises(FormatError, match="overlaps span LOC"):
        read(line, strict=True, overlapping="longest")


@pytest.mark.parametrize(
    ("cut", "tags", "verb"),
    [
        ("expand", ["B-PER", "I-PER", "O"], "expanded to tokens [0, 2)"),
        ("contract", ["B-PER", "O", "O"], "contracted to tokens [0, 1)"),
    ],
)
def test_a_span_that_cuts_a_token_is_listed(cut, tags, verb):
    line = {"id": 1, "text": "Ann Lee sang", "spans": [[0, 5, "PER"]], "worker": "w"}
    crowd = read(line, cut=cut)
    assert crowd.answers_of("1") == {"w": tags}
    (fault,) = crowd.import_report.faults
    assert str(fault).startswith(
        "<bytes> line 1, item 1 token 0, worker w: span PER [0, 5) 'Ann L' cuts token 1 'Lee'"
    )
    assert str(fault).endswith(verb)
    assert fault.kind == "cut"
    with pytest.raises(FormatError, match="cuts token 1 'Lee': pass cut="):
        read(line, cut="error")
    with pytest.raises(FormatError, match="cuts token 1"):
        read(line, cut=cut, strict=True)


def test_a_span_without_a_token_is_left_out_and_counted():
    line = {"id": 1, "text": "Ann  Lee", "spans": [[3, 4, "X"], [0, 3, "PER"]], "worker": "w"}
    crowd = read(line)
    assert crowd.answers_of("1") == {"w": ["B-PER", "O"]}
    assert crowd.import_report.reasons == {"covers no token": 1}
    crowd = read({**line, "spans": [[0, 2, "X"]]}, cut="contract")
    assert crowd.import_report.reasons == {"holds no whole token": 1}
    assert crowd.import_report.adds_up


def test_what_gold_cannot_place_is_listed_but_is_no_label_of_a_worker():
    crowd = read({**FLAT, "gold": [[0, 3, "PER"], [0, 5, "ORG"]]}, overlapping="longest")
    report = crowd.import_report
    assert crowd.tagged_by_id() == {"7": ["B-ORG", "I-ORG", "O"]}
    assert (report.n_labels, report.reasons, len(report.faults)) == (3, {}, 1)
    assert report.faults[0].worker == "gold"


def test_columns_can_have_other_names():
    line = {"nr": 1, "text": "Ann sang", "spans": [], "who": "w", "page": "p"}
    crowd = read(line, columns={"item": "nr", "worker": "who", "doc": "page"})
    assert crowd.answers_of("1").keys() == {"w"}
    assert crowd.groups.to_pylist() == ["p"]
    assert crowd.attributes is None


def test_attributes_that_mix_types_become_text():
    crowd = read({**FLAT, "n": 1}, {**FLAT, "id": 8, "n": "x"}, {**FLAT, "id": 9, "n": 2**70})
    assert crowd.attributes.to_pydict() == {"n": ["1", "x", str(2**70)]}
    assert "attribute 'n' mixes types" in crowd.import_report.notes[0]


# Refused.


def one(**fields):
    return {"id": 1, "text": "Ann sang", "spans": [], "worker": "w"} | fields


NESTED = {"item": "a", "tokens": ["x", "y"], "answers": [{"worker": "w", "spans": []}]}


def nested(**fields):
    return {**NESTED, "answers": [{"worker": "w", "spans": []} | fields]}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            one(spans=[[0, 30, "X"]]),
            "item 1, worker w: span X [0, 30) is outside the text, which has",
        ),
        (one(spans=[[3, 3, "X"]]), "item 1, worker w: span X [3, 3) is empty"),
        (
            one(spans=[[-1, 3, "X"]]),
            "span X: start must be a whole number from 0 on, not the number -1",
        ),
        (
            one(spans=[[0, 3.0, "X"]]),
            "span X: end must be a whole number from 0 on, not the number 3.0",
        ),
        (one(spans=[[0, 3, ""]]), 'a span has the string "" for its type'),
        (one(spans=[[0, 3]]), "a span must be an object, or a list of start, end and type"),
        (one(spans=[{"start": 0, "end": 3}]), "no field 'type' or 'label' (there are: start, end)"),
        (one(spans=[{"type": "X", "end": 3}]), "no field 'start'"),
        (one(spans="PER"), "a single label for an item of 2 tokens"),
        (one(spans=7), "field 'spans' must be a list, not the number 7"),
        (one(id=None), "no field 'item' or 'id'"),
        (one(id=""), "field 'item' must be a name or a number, not the string \"\""),
        (one(text=""), "field 'text' is empty"),
        (one(text=None), "no field 'text' or 'tokens'"),
        (one(text=5), "field 'text' must be a string, not the number 5"),
        (one(worker=None), "'spans' without 'worker': add the worker"),
        (one(answers=[]), "both 'answers' and a 'worker' of the line itself"),
        (one(unit="byte"), "unit must be 'token' or 'char', not the string \"byte\""),
        (one(tags=["O", "O"]), "expected one of spans, tags and label, found spans and tags"),
        (one(spans=None), "expected one of spans, tags and label, found none"),
        (one(submitted="soon"), "field 'submitted' must be a time from 1970 on"),
        (one(started=1.5), "field 'started' must be a time from 1970 on, not the number 1.5"),
        (one(cost="free"), "field 'cost' must be a whole number from 0 on"),
        (one(attempt=2**15), "field 'attempt' must be a whole number from 0 to 32767"),
        (one(gold={"a": 1}), "worker gold: expected one of spans, tags and label, found none"),
        (one(attributes=5), "attributes must be a JSON object, not the number 5"),
        (one(token_start=[0, 4]), "'token_start' without 'tokens'"),
        (one(goldspan=1), "line 2: a header must be the first line"),
        (nested(spans=[[0, 3, "X"]]), "worker w: span X [0, 3) is empty or outside the 2 tokens"),
        (nested(spans=[[0, 1, "X"]], unit="char"), "spans of characters need a text"),
        (nested(spans=[{"type": "X", "start": 0, "end": 1, "text": "y"}]), "but its own text is"),
        (nested(worker=None), "no field 'worker'"),
        (nested(skipped=[[1, 3]]), "skipped must be ranges among the 2 tokens, such as [0, 2]"),
        (nested(skipped=[[0, 1]], spans=[[0, 1, "X"]]), "the skipped tokens [0, 1] have a span"),
        (nested(spans=None, tags=["O"]), "1 tags for 2 tokens"),
        (
            nested(spans=None, tags=["O", 1]),
            "field 'tags' must hold strings and null, not the number 1",
        ),
        (nested(spans=None, tags=["O", "o"]), "item a token 1, worker w: tag 'o' has its prefix"),
        (NESTED | {"answers": ["w"]}, "each of 'answers' must be a JSON object"),
        (NESTED | {"tokens": ["x", ""]}, "field 'tokens' must hold strings, not the string \"\""),
        (NESTED | {"token_start": [0]}, "token_start must be 2 whole numbers, one per token"),
        (NESTED | {"text": "y x", "unit": "char"}, "token 0 'x' does not come next in the text"),
    ],
)
def test_a_wrong_field_is_refused_with_its_place(line, said):
    text = message(ITEM, line, strict=True)
    assert text.startswith("<bytes> line 2")
    assert said in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"goldspan": "1"}, "field 'goldspan' must be a whole number"),
        ({"goldspan": None}, "no field 'goldspan'"),
        ({"goldspan": 1, "encoding": "BOI"}, "unknown encoding 'BOI'"),
        ({"goldspan": 1, "types": ["PER"]}, "no field 'encoding'"),
        ({"goldspan": 1, "encoding": "BIO", "tags": ["PER"]}, "tag 'PER' is not in BIO"),
        ({"goldspan": 1, "encoding": "BIO", "types": "PER"}, "field 'types' must be a list"),
        ({"goldspan": 1, "workers": [1]}, "field 'workers' must hold strings"),
        ({"goldspan": 1, "unit": "byte"}, "unit must be 'token' or 'char'"),
    ],
)
def test_a_wrong_header_is_refused(header, said):
    assert said in message(header, FLAT)


def test_an_item_may_not_stand_twice():
    text = message(NESTED, NESTED)
    said = "the item id appears twice (first in <bytes> line 1): ids must be unique"
    assert text == f"<bytes> line 2, item a: {said}"


def test_tokens_that_are_not_in_the_text_are_fine_where_tokens_are_counted():
    line = {"id": 1, "text": 'He said "no".', "tokens": ["He", "said", "``", "no", "''", "."]}
    crowd = read({**line, "worker": "w", "spans": [[3, 4, "X"]]})
    assert crowd.texts.to_pylist() == ['He said "no".']
    assert crowd.answers_of("1") == {"w": ["O", "O", "O", "B-X", "O", "O"]}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"id": 1,}', "line 1: broken JSON in column 10: "),
        (
            b'{"id": 1, "te',
            "column 11: a string begins there that is not closed: is it cut off there?",
        ),
        (b'{"id": 1, "text":', "column 18: Expecting value: is it cut off there?"),
        (lines_of(FLAT) + b'{"id": 8, "text"\n', "line 2: broken JSON in column 17: "),
        (lines_of(FLAT) + b"{} {}\n", "line 2: broken JSON in column 3: something follows"),
        (lines_of(FLAT) + b"[1]\n", "line 2: expected a JSON object, found the list [1]"),
        (lines_of(FLAT) + b"null\n", "line 2: expected a JSON object, found null"),
        (b'{"id": NaN, "text": "a"}', "line 1: NaN is not a JSON number"),
        (b'{"id": 1, "id": 2}', "line 1: key 'id' appears twice in one object"),
        (b'{"id": "\\ud83d", "text": "a"}', "line 1: a string holds half of a surrogate pair"),
        (
            b'{"id": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            "line 1: the JSON is nested too deeply",
        ),
        (b'{"id": ' + b"1" * 5000 + b"}", "line 1: "),
        (b'[{"id": 1, "text": "a"} {"id": 2}]', "line 1: broken JSON in column 25: expected ','"),
        (b'[\n{"id": 1},\n{"id": }\n]', "line 3: broken JSON in column 8"),
        (b'[{"id": 1}', "expected ',' or ']'"),
        (b"[]", "the file holds no item"),
        (b"", "the file is empty"),
        (b'{"a": "\0"}', "a NUL byte"),
    ],
)
def test_broken_json_is_refused_with_line_and_column(data, said):
    with pytest.raises(FormatError) as caught:
        read_as(span_jsonl, data)
    assert said in str(caught.value)
    assert str(caught.value).startswith("<bytes>")


def test_a_line_separator_within_a_string_ends_no_line():
    text = "Ann\u2028sang\x85\x0b"
    assert read({**FLAT, "text": text}).texts.to_pylist() == [text]


def test_the_objects_may_stand_in_an_array_or_over_several_lines():
    crowd = read(FLAT)
    assert read_as(span_jsonl, json.dumps([FLAT], indent=2).encode()) == crowd
    assert read_as(span_jsonl, json.dumps(FLAT, indent=2).encode()) == crowd


def test_a_file_that_begins_with_items_alone_is_still_recognised():
    bare = [{"item": str(n), "tokens": ["x"]} for n in range(3)]
    assert span_jsonl.sniff(open_source(lines_of(*bare, ITEM)))
    assert not span_jsonl.sniff(open_source(lines_of(*bare)))
