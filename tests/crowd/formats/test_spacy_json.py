"""spaCy's training data as JSON: pairs, the file of NER annotators, cats, and that of spaCy 2."""

from __future__ import annotations

import json

import pytest

from crowd_strategies import lines_of
from goldspan.crowd import read_crowd
from goldspan.errors import FormatError

PAIRS = [
    ["Ada Byron saw Kent.", {"entities": [[0, 9, "PER"], [14, 18, "LOC"]]}],
    ["It rained.", {"entities": []}],
]
TAGS = {"1": ["B-PER", "I-PER", "O", "B-LOC", "O"], "2": ["O", "O", "O"]}


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(PAIRS).encode(),
        json.dumps(PAIRS, indent=1).encode(),
        lines_of(*PAIRS),
        json.dumps({"classes": ["PER"], "annotations": [*PAIRS, None]}).encode(),
    ],
)
def test_pairs_of_text_and_entities_are_gold(data):
    crowd = read_crowd(data)
    assert crowd.import_report.format == "spacy-json"
    assert crowd.tagged_by_id() == TAGS
    assert crowd.n_workers == 0


def test_one_pair_is_a_file():
    assert read_crowd(lines_of(PAIRS[0])).tagged_by_id() == {"1": TAGS["1"]}


def test_the_category_of_most_is_the_label_and_of_one_alone_what_it_is_not():
    two = [["a b", {"cats": {"P": 1.0, "N": 0.0}}], ["c d", {"cats": {"P": 0, "N": 1}}]]
    assert read_crowd(lines_of(*two)).tagged_by_id() == {"1": ["P"], "2": ["N"]}
    rows = [{"text": "a b", "cats": {"P": 1.0}}, {"id": "x", "text": "c d", "cats": {"P": 0.0}}]
    assert read_crowd(lines_of(*rows)).tagged_by_id() == {"1": ["P"], "x": ["not P"]}
    both = [["a", {"cats": {"P": 1, "N": 1}}], ["b", {"cats": {"P": 1, "N": 0}}]]
    crowd = read_crowd(lines_of(*both))
    assert crowd.tagged_by_id()["2"] == ["P"]
    assert crowd.n_workers == 0
    assert [fault.kind for fault in crowd.import_report.faults] == ["several choices"]


def test_entities_are_read_before_cats_unless_these_are_named():
    both = ["Ada saw", {"entities": [[0, 3, "PER"]], "cats": {"P": 1.0}, "links": {"x": 1}}]
    crowd = read_crowd(lines_of(both))
    assert crowd.tagged_by_id() == {"1": ["B-PER", "O"]}
    assert len(crowd.import_report.notes) == 3
    assert read_crowd(lines_of(both), columns={"label": "cats"}).tagged_by_id() == {"1": ["P"]}


def test_one_group_of_spans_is_read():
    row = ["Ada saw", {"spans": {"sc": [[0, 3, "PER"]]}}]
    assert read_crowd(lines_of(row)).tagged_by_id() == {"1": ["B-PER", "O"]}
    with pytest.raises(FormatError, match=r"several groups of spans \(sc, other\)"):
        read_crowd(lines_of(["Ada saw", {"spans": {"sc": [[0, 3, "PER"]], "other": []}}]))


def test_the_training_file_of_spacy_2_has_tokens_and_their_tags():
    tokens = [{"orth": word, "ner": tag} for word, tag in
              (("Ada", "B-PER"), ("Byron", "L-PER"), ("saw", "O"), ("Kent", "U-LOC"))]  # fmt: skip
    whole = [{"id": 0, "paragraphs": [{"raw": "x", "sentences": [{"tokens": tokens}]}]}]
    crowd = read_crowd(json.dumps(whole).encode())
    assert crowd.tokens_list == [["Ada", "Byron", "saw", "Kent"]]
    assert crowd.tagged_by_id() == {"1": ["B-PER", "I-PER", "O", "B-LOC"]}


def test_what_is_no_pair_and_no_span_is_refused_with_its_place():
    with pytest.raises(FormatError, match=r"line 2.*expected a list of a text and its labels"):
        read_crowd(lines_of(PAIRS[0], ["x", "y"]))
    with pytest.raises(FormatError, match=r"line 2.*outside the text"):
        read_crowd(lines_of(PAIRS[0], ["x", {"entities": [[0, 9, "P"]]}]), strict=True)
    with pytest.raises(FormatError, match="cats must hold a number for every category"):
        read_crowd(lines_of({"text": "x", "cats": {"P": "yes"}}))
