"""Spans that overlap and any number of labels: dealt onto parts, put together, compared."""

from __future__ import annotations

import json
import random
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from goldspan import aggregate, agreement, read_crowd, score, write_crowd
from goldspan.crowd import ReadOptions, layers
from goldspan.crowd.gold import attach_gold
from goldspan.crowd.layers import (
    YES,
    answer_sets,
    ask_each,
    deal,
    masi_alpha,
    sets_of,
)
from goldspan.crowd.unitizing import unit_agreement
from goldspan.errors import FormatError

PLACES = st.tuples(st.sampled_from("XY"), st.integers(0, 8), st.integers(1, 5)).map(
    lambda one: (one[0], one[1], one[1] + one[2])
)


def overlaps(one, other):
    return one[0] < other[1] and other[0] < one[1]


@given(st.lists(st.lists(PLACES, max_size=6), max_size=5))
def test_in_no_answer_a_part_holds_spans_that_overlap(answers):
    for spans, parts in zip(answers, deal(answers), strict=True):
        assert sorted(parts) == list(range(len(spans)))
        for a, b in combinations(range(len(spans)), 2):
            assert parts[a] != parts[b] or not overlaps(spans[a][1:], spans[b][1:])


@given(st.lists(st.lists(PLACES, max_size=5, unique=True), max_size=4))
def test_flat_answers_need_one_part_however_they_differ(answers):
    flat = []
    for own in answers:
        kept = []
        for one in own:
            kept += [] if any(overlaps(one[1:], other[1:]) for other in kept) else [one]
        flat.append(kept)
    assert {part for parts in deal(flat) for part in parts.values()} <= {0}


def test_who_leaves_out_the_span_around_it_agrees_about_the_inner_one():
    outer, inner = ("X", 0, 5), ("Y", 1, 2)
    assert deal([[outer, inner], [inner], [outer]]) == [{0: 0, 1: 1}, {0: 1}, {0: 0}]


def test_what_two_gave_is_in_one_part_also_where_one_of_them_gave_a_variant_too():
    mine, wider = ("ORG", 4, 26), ("ORG", 0, 26)
    found = deal([[mine, ("LOC", 18, 26)], [("LOC", 18, 26)], [wider, mine, ("LOC", 18, 26)]])
    assert found[0][0] == found[2][1]
    assert found[0][1] == found[1][0] == found[2][2]


def test_a_document_of_many_flat_spans_is_one_part():
    spans = [("X", 3 * n, 3 * n + 2) for n in range(3000)]
    assert deal([spans, spans[::-1]]) == [dict.fromkeys(range(3000), 0)] * 2


@given(st.lists(st.lists(PLACES, max_size=5), max_size=4), st.integers(1, 3))
def test_spans_elsewhere_in_the_document_change_nothing(answers, n):
    far = [("X", 20 + 3 * k, 22 + 3 * k) for k in range(n)]
    alone = deal(answers)
    for own, both in zip(alone, deal([far + spans for spans in answers]), strict=True):
        assert both == dict.fromkeys(range(n), 0) | {n + k: part for k, part in own.items()}


def test_a_document_is_dealt_by_the_clusters_of_its_spans(monkeypatch):
    compared = []
    real = layers._alike
    monkeypatch.setattr(layers, "_alike", lambda *two: compared.append(two) or real(*two))
    spans = [("X", 3 * n, 3 * n + 2) for n in range(500)]
    assert deal([spans, [*spans, ("Y", 0, 5)]])[1][500] == 0
    assert len(compared) < 10


def test_two_labels_at_one_place_are_in_the_same_parts_in_any_order():
    one, other = ("ORG", 0, 2), ("LOC", 0, 2)
    first, second = deal([[one, other], [other, one]])
    assert (first[0], first[1]) == (second[1], second[0])


SAMPLE = {
    "item": "s1",
    "text": "The University of New York opened.",
    "answers": [
        {"worker": "ann", "spans": [[4, 26, "ORG"], [18, 26, "LOC"]]},
        {"worker": "bob", "spans": [[4, 26, "ORG"], [18, 26, "LOC"], [18, 26, "ORG"]]},
        {"worker": "eve", "spans": [[18, 26, "LOC"]]},
    ],
}


def _nested(rows=(SAMPLE,), **options):
    text = "".join(json.dumps(row) + "\n" for row in rows)
    return read_crowd(text.encode(), format="spans", **options)


def test_spans_that_overlap_are_kept_and_come_back_together():
    crowd = _nested()
    assert crowd.item_ids.to_pylist() == ["s1", "s1 (2)", "s1 (3)"]
    assert "spans that overlap" in crowd.import_report.notes[0]
    said = answer_sets(crowd, chars=True)
    assert said["s1", "bob", 0] == {("ORG", 4, 26), ("LOC", 18, 26), ("ORG", 18, 26)}
    result = aggregate(crowd, "mv-seg")
    found = result.spans.select(["item", "start_char", "end_char", "type"]).to_pylist()
    assert [tuple(row.values()) for row in found] == [("s1", 4, 26, "ORG"), ("s1", 18, 26, "LOC")]


def test_what_is_flat_is_read_as_it_was():
    flat = {**SAMPLE, "answers": [{"worker": "ann", "spans": [[4, 26, "ORG"]]}]}
    crowd = _nested([flat])
    assert crowd.wholes is None
    assert crowd == _nested([flat], overlapping="longest")


@pytest.mark.parametrize("rule", ["longest", "outermost"])
def test_one_rule_of_overlaps_leaves_items_whole(rule):
    crowd = _nested(overlapping=rule)
    assert crowd.wholes is None
    assert crowd.n_items == 1


# --------------------------------------------------------------------------------------------------
# Nasty texts through the files of six tools.

NASTY = [
    "Ünïted",
    "👩‍👩‍👧",
    "والْكتاب",
    "ולספרייה",
    "e\u0301t",
    "🇩🇪",
    "A.B.",
    "x\u200by",
    "東京都",
    "½",
    "'",
    "a|b",
]


def _texts(n):
    rng = random.Random(7)
    rows = []
    for i in range(n):
        words = [rng.choice(NASTY) for _ in range(rng.randint(3, 9))]
        starts, text = [], ""
        for word in words:
            text += rng.choice([" ", "  ", " "]) if text else ""
            starts.append((len(text), len(text) + len(word)))
            text += word
        answers = []
        for worker in ("ann", "bob"):
            spans = set()
            for _ in range(rng.randint(1, 4)):
                a = rng.randrange(len(words))
                b = rng.randrange(a, len(words))
                spans.add((starts[a][0], starts[b][1], rng.choice(["PER", "ORG", "LOC"])))
            answers.append({"worker": worker, "spans": [list(span) for span in sorted(spans)]})
        rows.append({"item": f"t{i}", "text": text, "answers": answers})
    return rows


@pytest.mark.parametrize(
    "tool",
    ["spans", "brat", "label-studio", "doccano", "prodigy", "webanno", "span-table", "parquet"],
)
def test_every_span_of_every_annotator_comes_back(tool, tmp_path):
    rows = _texts(200)
    crowd = _nested(rows)
    path = tmp_path / ("crowd.csv" if tool == "span-table" else "crowd")
    lost = write_crowd(crowd, path, format=tool)
    assert not [one for one in lost if "answer" in one or "span" in one], lost
    found = read_crowd(path, format=tool)
    first = found.whole_items  # tools name items anew, and order them
    ids = dict(zip(first.texts.to_pylist(), first.item_ids.to_pylist(), strict=True))
    back = answer_sets(found, chars=True)
    for row in rows:
        for answer in row["answers"]:
            units = back[ids[row["text"]], answer["worker"], 0]
            assert units == {(kind, a, b) for a, b, kind in answer["spans"]}


def test_gold_with_overlaps_is_written_and_read():
    crowd = _nested()
    result = aggregate(crowd, "mv-seg")
    assert sets_of(result.as_gold(), chars=True) == {"s1": {("ORG", 4, 26), ("LOC", 18, 26)}}


# --------------------------------------------------------------------------------------------------
# Scores and agreement of sets.


def test_scores_of_sets_count_what_is_exactly_the_same():
    gold = {"item": "s1", "text": SAMPLE["text"]}
    truth = _nested([{**gold, "gold": [[4, 26, "ORG"], [18, 26, "LOC"]]}])
    said = _nested([{**gold, "gold": [[4, 26, "ORG"], [18, 26, "ORG"], [0, 3, "LOC"]]}])
    found = score(truth, said)
    assert found.micro[3:] == (1, 3, 2)
    assert found.nested["outermost"][3:] == (1, 2, 1)
    assert found.nested["innermost"][3:] == (0, 2, 1)
    assert (found.accuracy, found.jaccard) == (0.0, 0.25)
    assert "mean Jaccard index 25.00" in str(found)


def test_a_flat_side_is_compared_with_one_that_overlaps():
    gold = {"item": "s1", "text": SAMPLE["text"], "gold": [[4, 26, "ORG"]]}
    result = aggregate(_nested(), "mv-seg")
    assert score(_nested([gold]), result).micro[3:] == (1, 2, 1)


def masi(one, other):
    a, b = set(one), set(other)
    if a == b:
        return 0.0
    kind = 2 / 3 if a < b or b < a else 1 / 3
    return 1 - kind * len(a & b) / len(a | b)


def test_sides_with_other_tokens_or_ids_are_compared_by_their_letters():
    rows = [{"item": "a", "text": "The U.S. opened.", "gold": [[4, 8, "LOC"], [0, 8, "ORG"]]}]
    tokens = [{"item": "a", "tokens": ["The", "U.S.", "opened", "."], "gold": [[1, 2, "LOC"]]}]
    assert score(_nested(rows), _nested(tokens)).micro[3:] == (1, 1, 2)
    other = [{**rows[0], "item": "b"}]
    assert score(_nested(rows), _nested(other)).f1 == 1


def test_masi_of_pairs():
    assert masi("a", "a") == masi("", "") == 0
    assert masi("ab", "bc") == pytest.approx(1 - (1 / 3) * (1 / 3))
    assert masi("a", "") == 1


SETS = b"item,worker,label\n1,a,x|y\n1,b,x\n1,c,z\n2,a,y\n2,b,y|z\n2,c,y\n3,a,x\n3,b,x\n"


def test_answers_of_several_labels_are_read_as_sets():
    crowd = read_crowd(SETS)
    assert crowd.parts.unique().to_pylist() == ["x", "y", "z"]
    assert answer_sets(crowd, chars=False)["2", "b", 0] == {("y", 0, 0), ("z", 0, 0)}
    assert "any number" in " ".join(crowd.import_report.notes)
    assert read_crowd(SETS, several="leave-out").import_report.reasons == {"several choices": 2}


def test_one_set_alone_is_a_slip_unless_sets_are_asked_for():
    once = SETS.replace(b"y|z", b"y")
    report = read_crowd(once).import_report
    assert report.reasons == {"several choices": 1}
    assert "--several labels" in str(report.faults[0])
    assert read_crowd(once, several="labels").wholes is not None


@pytest.mark.parametrize("gold", [{"1": ["x", "y"], "2": "y"}, b"item,gold\n1,x|y\n2,y\n"])
def test_known_sets_are_attached_to_whole_items(gold):
    crowd = read_crowd(SETS, gold=gold)
    known = sets_of(crowd, chars=False)
    assert known == {"1": {("x", 0, 0), ("y", 0, 0)}, "2": {("y", 0, 0)}, "3": None}
    assert score(crowd, aggregate(crowd, "mv-token")).micro[3:] == (2, 2, 3)


@pytest.mark.parametrize("tool", ["spans", "label-studio", "prodigy", "doccano", "parquet", "long"])
def test_every_set_of_every_annotator_comes_back(tool, tmp_path):
    crowd = read_crowd(SETS)
    path = tmp_path / ("crowd.csv" if tool == "long" else "crowd")
    assert write_crowd(crowd, path, format=tool) == []
    back = answer_sets(read_crowd(path, format=tool), chars=False)
    assert back == answer_sets(crowd, chars=False)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_sets_that_come_out_are_read_as_gold(ending, tmp_path):
    result = aggregate(read_crowd(SETS), "ds")
    path = tmp_path / f"gold.{ending}"
    assert result.write(path) == []
    assert score(read_crowd(path), result).f1 == 1


def test_gold_with_overlaps_from_a_second_file_goes_where_answers_have_it():
    gold = {"item": "s1", "text": SAMPLE["text"], "gold": [[4, 26, "ORG"], [18, 26, "PLACE"]]}
    crowd = _nested(gold=json.dumps(gold).encode())
    assert sets_of(crowd, chars=True) == {"s1": {("ORG", 4, 26), ("PLACE", 18, 26)}}


def test_gold_that_overlaps_more_than_any_answer_is_kept_whole():
    spans = [[4, 26, "ORG"], [18, 26, "LOC"], [22, 26, "X"], [18, 21, "X"], [4, 21, "Y"]]
    gold = {"item": "s1", "text": SAMPLE["text"], "gold": spans}
    for answer in ([[4, 26, "ORG"], [18, 26, "LOC"]], [[4, 26, "ORG"]]):
        one = {**SAMPLE, "answers": [{"worker": "ann", "spans": answer}]}
        crowd = _nested([one], gold=json.dumps(gold).encode())
        assert sets_of(crowd, chars=True) == {"s1": {(kind, a, b) for a, b, kind in spans}}
        assert answer_sets(crowd, chars=True) == {
            ("s1", "ann", 0): {(kind, a, b) for a, b, kind in answer}
        }
        assert score(crowd, aggregate(crowd, "mv-seg")).micro[3:] == (len(answer),) * 2 + (5,)


@pytest.mark.parametrize("table", [
    b"item,text,ann,bob,gold\n1,hi,a|b,b|c,x\n2,ho,b,b,b\n",
    b"item,worker,label,gold\n1,ann,a|b,x\n1,bob,b|c,x\n2,ann,b,b\n2,bob,b,b\n",
])  # fmt: skip
def test_gold_beside_sets_may_hold_what_nobody_chose(table):
    crowd = read_crowd(table)
    assert sets_of(crowd, chars=False) == {"1": {("x", 0, 0)}, "2": {("b", 0, 0)}}
    said = answer_sets(crowd, chars=False)
    assert said["1", "ann", 0] == {("a", 0, 0), ("b", 0, 0)}
    assert said["2", "bob", 0] == {("b", 0, 0)}


def test_one_set_in_our_own_lines_is_a_set(tmp_path):
    crowd = read_crowd(b"item,worker,label\n1,ann,a|b\n1,bob,a\n", several="labels")
    write_crowd(crowd, tmp_path / "x.jsonl", format="spans")
    back = read_crowd(tmp_path / "x.jsonl")
    assert answer_sets(back, chars=False) == answer_sets(crowd, chars=False)


def test_labels_that_are_no_list_are_one_label_or_refused():
    def answer(labels):
        row = {"item": "1", "text": "hi", "answers": [{"worker": "ann", "labels": labels}]}
        return read_crowd(json.dumps(row).encode(), format="spans")

    assert answer("spam").wholes is None
    assert answer("spam").answers_of("1") == {"ann": ["spam"]}
    with pytest.raises(FormatError, match="must be"):
        answer({"x": 1})


def test_lists_in_json_may_hold_any_characters():
    rows = '1,ann,"[""5\\"" pipe"", ""b""]"\n1,bob,"[""\\u00e4""]"\n'
    crowd = read_crowd(f"item,worker,label\n{rows}".encode())
    assert crowd.parts.unique().to_pylist() == ['5" pipe', "b", "ä"]


LABELS = b"item,worker,label\n1,a,x+y\n1,b,x\n1,c,z\n2,a,y\n2,b,y+z\n2,c,y\n3,a,x\n3,b,x\n"


def _several():
    crowd = read_crowd(LABELS, format="long", several="leave-out")
    return ask_each(crowd, [tag.split("+") for tag in crowd.tagset.tags])


def _alpha(answers):
    within = sum(
        masi(a, b) / (len(own) - 1)
        for own in answers.values()
        for i, a in enumerate(own)
        for j, b in enumerate(own)
        if i != j
    )
    every = [one for own in answers.values() for one in own]
    between = sum(masi(a, b) for i, a in enumerate(every) for j, b in enumerate(every) if i != j)
    return 1 - within / (between / (len(every) - 1))


def test_alpha_of_sets_is_what_all_pairs_of_answers_give(monkeypatch):
    answers = {"1": ["xy", "x", "z"], "2": ["y", "yz", "y"], "3": ["x", "x"]}
    crowd = _several()
    assert masi_alpha(crowd) == pytest.approx(_alpha(answers))
    monkeypatch.setattr("goldspan.crowd.layers._BLOCK", 2)  # sets compared in several blocks
    found = agreement(crowd)
    assert found.to_dict()["masi_alpha"] == found.masi_alpha == pytest.approx(_alpha(answers))
    assert "sets' alpha (MASI)" in str(found)
    assert "masi_alpha" not in agreement(LABELS, format="long").to_dict()


@given(st.lists(st.lists(st.frozensets(PLACES, max_size=4), min_size=2, max_size=3), min_size=1))
def test_alpha_of_spans_that_overlap_is_that_of_their_sets(answers):
    text = "a b c d e f g h i j k l m n"
    rows = [
        {"item": f"s{n}", "text": text, "answers": [
            {"worker": f"w{k}", "spans": [[2 * a, 2 * b - 1, kind] for kind, a, b in one]}
            for k, one in enumerate(own)
        ]}
        for n, own in enumerate(answers)
    ]  # fmt: skip
    assume(len({one for own in answers for one in own}) > 1)
    assert masi_alpha(_nested(rows)) == pytest.approx(_alpha(dict(enumerate(answers))))


def test_whole_items_are_counted():
    rows = [SAMPLE, {**SAMPLE, "item": "s2", "text": SAMPLE["text"] + " too"}]
    crowd = _nested(rows)
    n_answers = sum(len(row["answers"]) for row in rows)
    assert repr(crowd).startswith("Crowd(2 items in 6 parts, ")
    assert f"{n_answers} answers" in repr(crowd)
    assert "2 items in 6 parts" in crowd._repr_html_()
    result = aggregate(crowd, "mv-seg")
    assert f"2 items in 6 parts, {len(result.spans)} spans, {n_answers} answers" in repr(result)
    assert result.summary()["items"] == 2
    assert result.summary()["parts"] == 6
    for method in ("mv-seg", "ds"):
        assert {*aggregate(crowd, method).workers["answers"].to_pylist()} == {2}
    assert agreement(crowd).quartiles["answers_per_item"].maximum == n_answers / 2


def test_what_is_wrong_in_sets_is_listed():
    gold = {"item": "s1", "text": SAMPLE["text"]}
    truth = _nested([{**gold, "gold": [[4, 26, "ORG"], [18, 26, "LOC"]]}])
    said = _nested([{**gold, "gold": [[4, 26, "ORG"], [18, 26, "ORG"]]}])
    found = [one[1:] for one in score(truth, said, wrong=True).wrong]
    assert found == [("missed", "LOC", 18, 26), ("spurious", "ORG", 18, 26)]


def test_every_label_is_asked_about_and_sets_come_out():
    crowd = _several()
    assert (crowd.n_items, len(crowd.answers), crowd.tagset.tags) == (9, 24, ("no", YES))
    assert answer_sets(crowd, chars=False)["1", "a", 0] == {("x", 0, 0), ("y", 0, 0)}
    result = aggregate(crowd, "mv-token")
    assert result.labels == [["x"], ["y"], ["x"]]
    assert result.to_pandas().columns.tolist() == ["item", "labels", "confidence"]
    assert result.label_probs.num_rows == 9
    assert agreement(crowd).observed > 0


def test_known_sets_are_taken_from_a_crowd_or_a_result():
    crowd = _several()
    result = aggregate(crowd, "mv-token")
    expected = sets_of(result.as_gold(), chars=False)
    for known in (result, result.as_gold()):
        assert sets_of(attach_gold(crowd, known, ReadOptions()), chars=False) == expected


def test_parts_of_an_item_are_one_document_of_units():
    found = unit_agreement(_nested()).documents.to_pylist()
    assert [(row["document"], row["annotators"], row["spans"]) for row in found] == [("s1", 3, 12)]


def test_confidences_of_sets_of_labels_are_measured():
    result = aggregate(LABELS.replace(b"+", b"|"), "ds", several="labels")
    known = {"1": {"x"}, "2": {"y", "w"}}
    rows = [{"item": item, "label": "|".join(own)} for item, own in known.items()]
    found = score(read_crowd(rows, several="labels"), result).confidence
    holds = {
        (row["item"], row["label"]): row["probability"] for row in result.label_probs.to_pylist()
    }
    true = [
        p if label in known[item] else 1 - p for (item, label), p in holds.items() if item in known
    ]
    assert (found.n, found.n_tokens) == (6, 6)
    assert found.cross_entropy == pytest.approx(-np.log(true).mean(), rel=1e-5)
