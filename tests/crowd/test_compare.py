"""Two crowds whose golds are compared."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from crowd_tables import crowd_of
from goldspan.crowd.measures import aligned_sides, score
from goldspan.errors import InputError

ONE = crowd_of([{}, {}], gold=[["B-X"], ["O", "O"]])


def test_with_a_shared_id_both_sides_stay_as_they_are():
    other = replace(ONE, item_ids=pa.array(["s1", "elsewhere"]))
    found = aligned_sides(ONE, other)
    assert found[0] is ONE
    assert found[1] is other


def test_without_a_shared_id_the_same_tokens_take_the_ids_of_the_truth():
    other = replace(ONE, item_ids=pa.array(["a", "b"]))
    predicted, truth = aligned_sides(ONE, other)
    assert truth is other
    assert predicted.item_ids.to_pylist() == ["a", "b"]
    assert predicted.gold.tolist() == ONE.gold.tolist()


def test_what_fits_in_neither_way_is_refused_with_the_first_ids():
    other = replace(ONE, item_ids=pa.array(["a", "b"]), tokens=pa.array([["x"], ["y", "z"]]))
    with pytest.raises(InputError, match=r"no item id is on both sides \('s0' …, 'a' …\)"):
        aligned_sides(ONE, other)


@pytest.mark.parametrize("side", ["mapping", "list of dicts"])
def test_a_mapping_from_items_to_labels_is_a_side(side):
    truth = {"q1": 1, "q2": 0, 3: 1}
    found = {"q2": 1, "3": 1, "q1": 1}
    rows = [{"item": item, "label": label} for item, label in found.items()]
    assert score(truth, found if side == "mapping" else rows).accuracy == pytest.approx(2 / 3)


@pytest.mark.parametrize("wrong", [[1, 0], ["O"], {"q1": ["O"], "q2": "O"}])
def test_what_is_no_list_of_tags_is_told(wrong):
    with pytest.raises(InputError, match=r"^truth: "):
        score(wrong, [["O"]])


# The characters of two sides are the same, their tokens are not

WHOLE = b'{"id": "1", "text": "Seenplatte bei Plau", "label": [[0, 10, "LOC"], [15, 19, "LOC"]]}\n'
PARTS = b"# id = 1\nSeen\tB-LOC\nplatte\tO\nbei\tO\nPlau\tB-LOC\n"


def test_two_files_of_one_annotator_are_scored_by_their_characters():
    found = score(WHOLE, PARTS)
    assert (found.micro.n_right, found.micro.n_predicted, found.micro.n_true) == (1, 2, 2)
    assert found.n_tokens == 4
    assert score(WHOLE, WHOLE.replace(b'[0, 10, "LOC"], ', b"")).micro.recall == 0.5


def test_other_ids_with_the_same_characters_are_matched_by_order():
    assert score(WHOLE, PARTS.replace(b"id = 1", b"id = x")).micro.n_right == 1
    with pytest.raises(InputError, match="and the texts differ too"):
        score(WHOLE, PARTS.replace(b"id = 1", b"id = x").replace(b"bei", b"by"))


def test_answers_of_several_annotators_are_no_labels_to_score():
    answers = WHOLE.replace(b"}", b', "user": "a"}') + WHOLE.replace(b"}", b', "user": "b"}')
    with pytest.raises(InputError, match="answers are to be aggregated first"):
        score(WHOLE, answers)


def test_outside_is_no_class_of_tokens_but_may_be_one_of_items():
    found = score(b"Ann PER\nsang O\nin O\nOslo LOC\n", b"Ann PER\nsang O\nin LOC\nOslo O\n")
    assert found.encoding == "PLAIN"
    assert set(found.types) == {"PER", "LOC"}
    assert (found.micro.n_right, found.micro.n_predicted, found.micro.n_true) == (1, 2, 2)
    blood = score({"p": "O", "q": "A"}, {"p": "O", "q": "O"})
    assert (blood.micro.n_right, blood.micro.n_true) == (1, 2)
