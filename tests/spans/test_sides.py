"""Two sides that know the ids of their items are compared item by item."""

from __future__ import annotations

import pyarrow as pa
import pytest

import goldspan
from goldspan.errors import InputError
from goldspan.spans import Codec, score


class Side:
    """Stand in for a crowd with gold: tags by item id, None where there is none."""

    def __init__(self, tags, encoding="BIO"):
        self.tagset = Codec.from_types(["X", "Y"], encoding)
        self.item_ids = pa.array(list(tags))
        self.gold_tagged = self.tagset.encode(list(tags.values()))


def test_items_are_paired_by_id_and_not_by_place():
    truth = Side({"a": ["B-X"], "b": ["O"]})
    found = Side({"b": ["O"], "a": ["B-X"]})
    assert score(truth, found).f1 == 1.0


def test_only_items_on_both_sides_are_compared():
    truth = Side({"a": ["B-X"], "b": ["B-X"]})
    found = Side({"b": ["B-X"], "c": ["B-Y"]})
    result = score(truth, found)
    assert (result.n_items, result.micro.n_true, result.f1) == (1, 1, 1.0)


def test_tokens_without_a_known_truth_are_left_out_on_both_sides():
    truth = Side({"a": ["B-X", None, "O"]})
    found = Side({"a": ["B-X", "B-Y", "O"]})
    result = score(truth, found)
    assert (result.n_tokens, result.micro.n_predicted, result.f1) == (2, 1, 1.0)


def test_tokens_that_the_prediction_lacks_count_as_missed():
    result = score(Side({"a": ["B-X", "O"]}), Side({"a": [None, "O"]}))
    assert (result.n_tokens, result.micro.n_true, result.micro.n_right) == (1, 1, 0)


def test_one_side_may_be_a_list_in_the_order_of_the_other():
    sides = Side({"a": ["B-X"], "b": ["O"]}), [["B-X"], ["O"]]
    assert score(*sides).f1 == score(*reversed(sides)).f1 == 1.0


def test_one_side_may_be_a_mapping_by_id():
    sides = Side({"a": ["B-X"], "b": ["O"]}), {"b": ["O"], "a": ["B-X"]}
    assert score(*sides).f1 == score(*reversed(sides)).f1 == 1.0


def test_the_encoding_is_that_of_the_sides():
    sides = Side({"a": ["S-X"]}, "IOBES"), Side({"a": ["S-X"]}, "IOBES")
    result = score(*sides)
    assert (result.encoding, result.f1) == ("IOBES", 1.0)


def test_sides_in_two_encodings_are_refused_unless_one_is_named():
    sides = Side({"a": ["B-X"]}, "BIO"), Side({"a": ["I-X"]}, "IOB")
    with pytest.raises(InputError, match="one side is BIO and the other IOB"):
        score(*sides)
    assert score(*sides, encoding="IOB").encoding == "IOB"


def test_sides_without_a_common_item_are_refused_with_an_example_of_each():
    with pytest.raises(InputError, match="ids like 'a', the other like 'b'"):
        score(Side({"a": ["O"]}), Side({"b": ["O"]}))


def test_an_item_of_two_lengths_is_refused_by_its_id():
    with pytest.raises(InputError, match="item a: 1 tokens on one side, 2 on the other"):
        score(Side({"a": ["O"]}), Side({"a": ["O", "O"]}))


def test_a_list_of_another_length_is_refused():
    with pytest.raises(InputError, match="2 items on one side, 1 on the other"):
        score(Side({"a": ["O"]}), [["O"], ["O"]])


def test_a_question_mark_is_a_label_like_any_other():
    truth = goldspan.read_crowd(
        b"item,worker,label\n1,a,?\n2,a,yes\n3,a,no\n",
        missing=(),
        gold=b"item,label\n1,?\n2,yes\n3,no\n",
    )
    found = {"1": ["no"], "2": ["yes"], "3": ["no"]}
    assert score(truth, found, encoding="PLAIN").accuracy == pytest.approx(2 / 3)
    assert score(truth, truth).n_tokens == 3
